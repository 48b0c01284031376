/*
 * events.c - tables of CPUs and of their events. Sources of the codes: the lists of Intel,
 * AMD and Arm in the kernel (tools/perf/pmu-events), and likwid's groups (groups/zen3, zen5, ...).
 */
#include <string.h>

#include "base/compiler.h"
#include "machine/isa.h"
#include "profile/perf/impl.h"

#define NOT_KNOWN   "is not in the table of events: its FLOPs are not counted"
#define NEW_INTEL   "this Intel CPU " NOT_KNOWN
#define NEW_AMD     "this AMD CPU " NOT_KNOWN
#define NO_FP_ARITH "Intel CPUs before Broadwell have no event for retired FLOPs"
#define ZEN1        "the table of events has no codes for the FLOPs of Zen and Zen+"

#define INTEL "GenuineIntel", 6
#define FP    "cpu-intel", RFL_PERF_INTEL, NULL
#define AMD   "AuthenticAMD"
#define ARM   "0x41", 0

static const struct {
	const char *vendor;
	int family, first, last; /* models */
	struct rfl_perf_cpu cpu;
} processors[] = {
	{ INTEL, 0x3d, 0x3d, { "Broadwell", FP } },
	{ INTEL, 0x47, 0x47, { "Broadwell", FP } },
	{ INTEL, 0x4f, 0x4f, { "Broadwell server", FP } },
	{ INTEL, 0x56, 0x56, { "Broadwell server", FP } },
	{ INTEL, 0x4e, 0x4e, { "Skylake", FP } },
	{ INTEL, 0x5e, 0x5e, { "Skylake", FP } },
	{ INTEL, 0x55, 0x55, { "Skylake or Cascade Lake server", FP } },
	{ INTEL, 0x8e, 0x8e, { "Kaby Lake", FP } },
	{ INTEL, 0x9e, 0x9e, { "Kaby Lake", FP } },
	{ INTEL, 0xa5, 0xa6, { "Comet Lake", FP } },
	{ INTEL, 0x7d, 0x7e, { "Ice Lake", FP } },
	{ INTEL, 0x6a, 0x6a, { "Ice Lake server", FP } },
	{ INTEL, 0x6c, 0x6c, { "Ice Lake server", FP } },
	{ INTEL, 0x8c, 0x8d, { "Tiger Lake", FP } },
	{ INTEL, 0xa7, 0xa7, { "Rocket Lake", FP } },
	{ INTEL, 0x97, 0x97, { "Alder Lake", FP } },
	{ INTEL, 0x9a, 0x9a, { "Alder Lake", FP } },
	{ INTEL, 0xb7, 0xb7, { "Raptor Lake", FP } },
	{ INTEL, 0xba, 0xba, { "Raptor Lake", FP } },
	{ INTEL, 0xbf, 0xbf, { "Raptor Lake", FP } },
	{ INTEL, 0xaa, 0xaa, { "Meteor Lake", FP } },
	{ INTEL, 0xac, 0xac, { "Meteor Lake", FP } },
	{ INTEL, 0xb5, 0xb5, { "Arrow Lake", FP } },
	{ INTEL, 0xc5, 0xc6, { "Arrow Lake", FP } },
	{ INTEL, 0xbd, 0xbd, { "Lunar Lake", FP } },
	{ INTEL, 0x8f, 0x8f, { "Sapphire Rapids", "cpu-intel", RFL_PERF_INTEL_FP16, NULL } },
	{ INTEL, 0xcf, 0xcf, { "Emerald Rapids", "cpu-intel", RFL_PERF_INTEL_FP16, NULL } },
	{ INTEL, 0xad, 0xae, { "Granite Rapids", "cpu-intel", RFL_PERF_INTEL_FP16, NULL } },
	{ INTEL, 0x2a, 0x2a, { "Sandy Bridge", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0x2d, 0x2d, { "Sandy Bridge server", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0x3a, 0x3a, { "Ivy Bridge", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0x3e, 0x3e, { "Ivy Bridge server", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0x3c, 0x3c, { "Haswell", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0x45, 0x46, { "Haswell", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0x3f, 0x3f, { "Haswell server", "cpu-intel", RFL_PERF_OTHER, NO_FP_ARITH } },
	{ INTEL, 0, 0xfff, { "Intel", "cpu-intel", RFL_PERF_OTHER, NEW_INTEL } },
	{ AMD, 0x17, 0x00, 0x2f, { "Zen", "cpu-amd", RFL_PERF_OTHER, ZEN1 } },
	{ AMD, 0x17, 0x50, 0x5f, { "Zen", "cpu-amd", RFL_PERF_OTHER, ZEN1 } },
	{ AMD, 0x17, 0x30, 0xff, { "Zen 2", "cpu-amd", RFL_PERF_ZEN2, NULL } },
	{ AMD, 0x19, 0x00, 0x0f, { "Zen 3", "cpu-amd", RFL_PERF_ZEN2, NULL } },
	{ AMD, 0x19, 0x20, 0x5f, { "Zen 3", "cpu-amd", RFL_PERF_ZEN2, NULL } },
	{ AMD, 0x19, 0x10, 0x1f, { "Zen 4 server", "cpu-amd", RFL_PERF_ZEN4, NULL } },
	{ AMD, 0x19, 0x60, 0x8f, { "Zen 4", "cpu-amd", RFL_PERF_ZEN4, NULL } },
	{ AMD, 0x19, 0x90, 0x9f, { "Zen 4 of MI300A", "cpu-amd", RFL_PERF_ZEN4, NULL } },
	{ AMD, 0x19, 0xa0, 0xaf, { "Zen 4c server", "cpu-amd", RFL_PERF_ZEN4, NULL } },
	{ AMD, 0x1a, 0x00, 0x2f, { "Zen 5", "cpu-amd-zen5", RFL_PERF_ZEN5, NULL } },
	{ AMD, 0x1a, 0x40, 0x4f, { "Zen 5", "cpu-amd-zen5", RFL_PERF_ZEN5, NULL } },
	{ AMD, 0x1a, 0x60, 0x7f, { "Zen 5", "cpu-amd-zen5", RFL_PERF_ZEN5, NULL } },
	{ AMD, 0x1a, 0x50, 0x57, { "Zen 6", "cpu-amd-zen6", RFL_PERF_ZEN5, NULL } },
	{ AMD, 0x1a, 0x00, 0xff, { "AMD", "cpu-amd", RFL_PERF_OTHER, NEW_AMD } },
	{ ARM, 0xd40, 0xd40, { "Neoverse V1", "cpu-neoverse-v1", RFL_PERF_NEOVERSE, NULL } },
	{ ARM, 0xd49, 0xd49, { "Neoverse N2", "cpu-neoverse-v2", RFL_PERF_NEOVERSE, NULL } },
	{ ARM, 0xd4f, 0xd4f, { "Neoverse V2", "cpu-neoverse-v2", RFL_PERF_NEOVERSE, NULL } },
};

static const struct rfl_perf_cpu unknown_cpu = {
	.name = "unknown CPU",
	.formulas = "cpu",
	.kind = RFL_PERF_OTHER,
	.no_flops = "this CPU " NOT_KNOWN,
};

const struct rfl_perf_cpu *rfl_perf_cpu_find(const struct rfl_cpu_id *id)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(processors); i++) {
		if (strcmp(id->vendor, processors[i].vendor) == 0 &&
		    id->family == processors[i].family && id->model >= processors[i].first &&
		    id->model <= processors[i].last)
			return &processors[i].cpu;
	}
	return &unknown_cpu;
}

const struct rfl_perf_cpu *rfl_perf_cpu_at(size_t i)
{
	return i < RFL_ARRAY_LEN(processors) ? &processors[i].cpu : NULL;
}

#define SOFTWARE(label, unit_, scale_, id, kernel)                                               \
	{                                                                                        \
		.name = (label), .unit = (unit_), .scale = (scale_), .type = PERF_TYPE_SOFTWARE, \
		.config = PERF_COUNT_SW_##id, .needs_kernel = (kernel)                           \
	}
#define EVENT(label, type_, code, nslots, group_, flops, needs_)                             \
	{                                                                                    \
		.name = (label), .unit = "", .scale = 1, .type = PERF_TYPE_##type_,          \
		.config = (code), .slots = (nslots), .group = (group_), .is_flops = (flops), \
		.needs = (needs_)                                                            \
	}
#define GENERIC(label, id, nslots, group) \
	EVENT(label, HARDWARE, PERF_COUNT_HW_##id, nslots, group, false, 0)
#define RAW(label, code, nslots, group)  EVENT(label, RAW, code, nslots, group, true, 0)
#define RAW_ISA(label, code, group, isa) EVENT(label, RAW, code, 1, group, true, RFL_ISA_BIT(isa))

enum { ALONE, CLOCK, SINGLE, DOUBLE, HALF };

/* The event can count 16 or more per cycle, so the kernel merges two counters (MergeEvent). */
#define MERGED 2

#define KIND(kind) (1u << RFL_PERF_##kind)
#define ANY        (~0u)
#define INTEL_ANY  (KIND(INTEL) | KIND(INTEL_FP16))

static const struct {
	unsigned kinds; /* KIND()s of the CPUs with this event */
	struct rfl_perf_event event;
} events[] = {
	{ ANY, SOFTWARE("task-clock", "s", 1e-9, TASK_CLOCK, false) },
	{ ANY, SOFTWARE("page-faults", "", 1, PAGE_FAULTS, false) },
	{ ANY, SOFTWARE("context-switches", "", 1, CONTEXT_SWITCHES, true) },
	{ ANY, SOFTWARE("cpu-migrations", "", 1, CPU_MIGRATIONS, true) },
	/* Intel has fixed counters for cycles and instructions; on other CPUs, these events
	   use general counters */
	{ INTEL_ANY, GENERIC("cycles", CPU_CYCLES, 0, CLOCK) },
	{ INTEL_ANY, GENERIC("instructions", INSTRUCTIONS, 0, CLOCK) },
	{ ~INTEL_ANY, GENERIC("cycles", CPU_CYCLES, 1, CLOCK) },
	{ ~INTEL_ANY, GENERIC("instructions", INSTRUCTIONS, 1, CLOCK) },
	{ ANY, GENERIC("cache-misses", CACHE_MISSES, 1, ALONE) },
	/* One count per instruction and lane group; the hardware counts a fused multiply-add
	 * twice. The weights (lanes) are in the formulas. */
	{ INTEL_ANY, RAW("fp_arith_inst_retired.scalar_single", 0x02c7, 1, SINGLE) },
	{ INTEL_ANY, RAW("fp_arith_inst_retired.128b_packed_single", 0x08c7, 1, SINGLE) },
	{ INTEL_ANY, RAW("fp_arith_inst_retired.256b_packed_single", 0x20c7, 1, SINGLE) },
	{ INTEL_ANY, RAW_ISA("fp_arith_inst_retired.512b_packed_single", 0x80c7, SINGLE, AVX512F) },
	{ INTEL_ANY, RAW("fp_arith_inst_retired.scalar_double", 0x01c7, 1, DOUBLE) },
	{ INTEL_ANY, RAW("fp_arith_inst_retired.128b_packed_double", 0x04c7, 1, DOUBLE) },
	{ INTEL_ANY, RAW("fp_arith_inst_retired.256b_packed_double", 0x10c7, 1, DOUBLE) },
	{ INTEL_ANY, RAW_ISA("fp_arith_inst_retired.512b_packed_double", 0x40c7, DOUBLE, AVX512F) },
	{ KIND(INTEL_FP16),
	  RAW_ISA("fp_arith_inst_retired2.scalar_half", 0x01cf, HALF, AVX512_FP16) },
	{ KIND(INTEL_FP16),
	  RAW_ISA("fp_arith_inst_retired2.128b_packed_half", 0x04cf, HALF, AVX512_FP16) },
	{ KIND(INTEL_FP16),
	  RAW_ISA("fp_arith_inst_retired2.256b_packed_half", 0x08cf, HALF, AVX512_FP16) },
	{ KIND(INTEL_FP16),
	  RAW_ISA("fp_arith_inst_retired2.512b_packed_half", 0x10cf, HALF, AVX512_FP16) },
	{ KIND(ZEN2), RAW("fp_ret_sse_avx_ops.all", 0x0f03, MERGED, ALONE) },
	{ KIND(ZEN4), RAW("fp_ret_sse_avx_ops.all", 0x1f03, MERGED, ALONE) },
	/* perf's named events select no kind of operation (0x4003); these codes count all kinds */
	{ KIND(ZEN5), RAW("cpu/event=0x03,umask=0x4f/", 0x4f03, MERGED, SINGLE) },
	{ KIND(ZEN5), RAW("cpu/event=0x03,umask=0x6f/", 0x6f03, MERGED, SINGLE) },
	{ KIND(ZEN5), RAW("cpu/event=0x03,umask=0x8f/", 0x8f03, MERGED, DOUBLE) },
	{ KIND(ZEN5), RAW("cpu/event=0x03,umask=0xaf/", 0xaf03, MERGED, DOUBLE) },
	{ KIND(ZEN5), RAW("cpu/event=0x03,umask=0x2f/", 0x2f03, MERGED, ALONE) },
	{ KIND(NEOVERSE), RAW("fp_scale_ops_spec", 0x80c0, 1, SINGLE) },
	{ KIND(NEOVERSE), RAW("fp_fixed_ops_spec", 0x80c1, 1, SINGLE) },
	{ KIND(NEOVERSE), EVENT("ll_cache_miss_rd", RAW, 0x37, 1, ALONE, false, 0) },
};

const struct rfl_perf_event *rfl_perf_event_at(enum rfl_perf_kind kind, size_t i)
{
	for (size_t k = 0; k < RFL_ARRAY_LEN(events); k++)
		if ((events[k].kinds >> kind & 1) && i-- == 0)
			return &events[k].event;
	return NULL;
}

static bool is_zen2(const struct rfl_perf_cpu *cpu)
{
	return cpu->kind == RFL_PERF_ZEN2;
}

static bool is_sapphire_rapids(const struct rfl_perf_cpu *cpu)
{
	return strcmp(cpu->name, "Sapphire Rapids") == 0 ||
	       strcmp(cpu->name, "Emerald Rapids") == 0;
}

#define LINE 64.0 /* bytes per CAS */

enum { IMC, IMC_UNNAMED, IMC_SCHEDULERS, IMC_CLIENT, IMC_FREE, UMC, DF, SCF };

#define ROW(set_, pmu_, event_, terms_, bytes_, counters_, fits_)                \
	{                                                                        \
		.pmu = (pmu_), .event = (event_), .terms = (terms_),             \
		.metric = pmu_ "/" event_ "/", .bytes = (bytes_), .set = (set_), \
		.counters = (counters_), .fits = (fits_)                         \
	}
#define IMC_ROW(set, event)  ROW(set, "uncore_imc", event, NULL, LINE, 0, NULL)
#define UMC_ROW(event, code) ROW(UMC, "amd_umc", event, code, 0, 4, NULL)
#define SCF_ROW(event, code) ROW(SCF, "nvidia_scf_pmu", event, code, 0, 0, NULL)
/* Early kernels do not name the memory controller events of these CPUs. */
#define SPR_ROW(event, code) \
	ROW(IMC_UNNAMED, "uncore_imc", event, code, LINE, 0, is_sapphire_rapids)
#define DF_ROW(n, code)                                                                 \
	{                                                                               \
		.pmu = "amd_df", .event = "dram_channel_data_controller_" #n,           \
		.terms = "event=" code ",umask=0x38",                                   \
		.metric = "dram_channel_data_controller_" #n, .set = DF, .counters = 4, \
		.fits = is_zen2                                                         \
	}

static const struct rfl_perf_uncore uncore[] = {
	IMC_ROW(IMC, "cas_count_read"),
	IMC_ROW(IMC, "cas_count_write"),
	SPR_ROW("cas_count_read", "event=0x05,umask=0xcf"),
	SPR_ROW("cas_count_write", "event=0x05,umask=0xf0"),
	IMC_ROW(IMC_SCHEDULERS, "cas_count_read_sch0"),
	IMC_ROW(IMC_SCHEDULERS, "cas_count_read_sch1"),
	IMC_ROW(IMC_SCHEDULERS, "cas_count_write_sch0"),
	IMC_ROW(IMC_SCHEDULERS, "cas_count_write_sch1"),
	IMC_ROW(IMC_CLIENT, "data_reads"),
	IMC_ROW(IMC_CLIENT, "data_writes"),
	ROW(IMC_FREE, "uncore_imc_free_running", "data_read", NULL, LINE, 0, NULL),
	ROW(IMC_FREE, "uncore_imc_free_running", "data_write", NULL, LINE, 0, NULL),
	UMC_ROW("umc_cas_cmd.rd", "event=0x0a,rdwrmask=0x1"),
	UMC_ROW("umc_cas_cmd.wr", "event=0x0a,rdwrmask=0x2"),
	DF_ROW(0, "0x07"),
	DF_ROW(1, "0x47"),
	DF_ROW(2, "0x87"),
	DF_ROW(3, "0xc7"),
	DF_ROW(4, "0x107"),
	DF_ROW(5, "0x147"),
	DF_ROW(6, "0x187"),
	DF_ROW(7, "0x1c7"),
	SCF_ROW("cmem_rd_data", "event=0x1a5"),
	SCF_ROW("cmem_wr_total_bytes", "event=0x1db"),
};

const struct rfl_perf_uncore *rfl_perf_uncore_at(size_t i)
{
	return i < RFL_ARRAY_LEN(uncore) ? &uncore[i] : NULL;
}
