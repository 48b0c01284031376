/* Which CPUs and events are known, what /sys says of PMUs, what goes into which pass, and
 * what is said of what cannot be counted. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/formula.h"
#include "profile/perf/impl.h"
#include "tests/unit/perf_fake.h"

/* ---- CPUs and events ---- */

static void knows_processors(void **state)
{
	static const struct {
		const char *vendor;
		int family, model;
		const char *name;
		enum rfl_perf_kind kind;
	} cases[] = {
		{ "GenuineIntel", 6, 0x4f, "Broadwell server", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0x55, "Skylake or Cascade Lake server", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0x6a, "Ice Lake server", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0x8f, "Sapphire Rapids", RFL_PERF_INTEL_FP16 },
		{ "GenuineIntel", 6, 0xad, "Granite Rapids", RFL_PERF_INTEL_FP16 },
		{ "GenuineIntel", 6, 0x97, "Alder Lake", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0xaa, "Meteor Lake", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0xac, "Meteor Lake", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0xb5, "Arrow Lake", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0xc6, "Arrow Lake", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0xbd, "Lunar Lake", RFL_PERF_INTEL },
		{ "GenuineIntel", 6, 0x2a, "Sandy Bridge", RFL_PERF_OTHER },
		{ "GenuineIntel", 6, 0x3e, "Ivy Bridge server", RFL_PERF_OTHER },
		{ "GenuineIntel", 6, 0x3f, "Haswell server", RFL_PERF_OTHER },
		/* Westmere; E-cores alone: Alder Lake-N, Sierra Forest */
		{ "GenuineIntel", 6, 0x2c, "Intel", RFL_PERF_OTHER },
		{ "GenuineIntel", 6, 0xbe, "Intel", RFL_PERF_OTHER },
		{ "GenuineIntel", 6, 0xaf, "Intel", RFL_PERF_OTHER },
		{ "AuthenticAMD", 0x17, 0x01, "Zen", RFL_PERF_OTHER },
		{ "AuthenticAMD", 0x17, 0x50, "Zen", RFL_PERF_OTHER },
		{ "AuthenticAMD", 0x17, 0x31, "Zen 2", RFL_PERF_ZEN2 },
		{ "AuthenticAMD", 0x17, 0x71, "Zen 2", RFL_PERF_ZEN2 },
		{ "AuthenticAMD", 0x19, 0x01, "Zen 3", RFL_PERF_ZEN2 },
		{ "AuthenticAMD", 0x19, 0x21, "Zen 3", RFL_PERF_ZEN2 },
		{ "AuthenticAMD", 0x19, 0x50, "Zen 3", RFL_PERF_ZEN2 },
		{ "AuthenticAMD", 0x19, 0x11, "Zen 4 server", RFL_PERF_ZEN4 },
		{ "AuthenticAMD", 0x19, 0x61, "Zen 4", RFL_PERF_ZEN4 },
		{ "AuthenticAMD", 0x19, 0xa0, "Zen 4c server", RFL_PERF_ZEN4 },
		{ "AuthenticAMD", 0x19, 0x90, "Zen 4 of MI300A", RFL_PERF_ZEN4 },
		{ "AuthenticAMD", 0x1a, 0x02, "Zen 5", RFL_PERF_ZEN5 },
		{ "AuthenticAMD", 0x1a, 0x44, "Zen 5", RFL_PERF_ZEN5 },
		{ "AuthenticAMD", 0x1a, 0x70, "Zen 5", RFL_PERF_ZEN5 },
		{ "AuthenticAMD", 0x1a, 0x50, "Zen 6", RFL_PERF_ZEN5 },
		{ "AuthenticAMD", 0x1a, 0x57, "Zen 6", RFL_PERF_ZEN5 },
		{ "AuthenticAMD", 0x1a, 0x58, "AMD", RFL_PERF_OTHER },
		{ "0x41", 0, 0xd40, "Neoverse V1", RFL_PERF_NEOVERSE },
		{ "0x41", 0, 0xd49, "Neoverse N2", RFL_PERF_NEOVERSE },
		{ "0x41", 0, 0xd4f, "Neoverse V2", RFL_PERF_NEOVERSE },
		{ "0x41", 0, 0xd0c, "unknown CPU", RFL_PERF_OTHER },
		{ "CentaurHauls", 6, 0x6a, "unknown CPU", RFL_PERF_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_cpu_id id = { .family = cases[i].family, .model = cases[i].model };
		const struct rfl_perf_cpu *cpu;

		(void)snprintf(id.vendor, sizeof(id.vendor), "%s", cases[i].vendor);
		cpu = rfl_perf_cpu_find(&id);
		assert_string_equal(cpu->name, cases[i].name);
		assert_int_equal(cpu->kind, cases[i].kind);
		assert_true((cpu->no_flops != NULL) == (cpu->kind == RFL_PERF_OTHER));
	}
}

static const struct rfl_perf_event *event_of(enum rfl_perf_kind kind, const char *name)
{
	const struct rfl_perf_event *e;

	for (size_t i = 0; (e = rfl_perf_event_at(kind, i)); i++)
		if (strcmp(e->name, name) == 0)
			return e;
	fail_msg("there is no %s", name);
	return NULL;
}

static void has_the_codes_of_the_vendors(void **state)
{
	static const struct {
		enum rfl_perf_kind kind;
		const char *name;
		uint64_t code;
		int slots;
	} cases[] = {
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.scalar_double", 0x01c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.scalar_single", 0x02c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.128b_packed_double", 0x04c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.128b_packed_single", 0x08c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.256b_packed_double", 0x10c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.256b_packed_single", 0x20c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.512b_packed_double", 0x40c7, 1 },
		{ RFL_PERF_INTEL, "fp_arith_inst_retired.512b_packed_single", 0x80c7, 1 },
		{ RFL_PERF_INTEL_FP16, "fp_arith_inst_retired2.scalar_half", 0x01cf, 1 },
		{ RFL_PERF_INTEL_FP16, "fp_arith_inst_retired2.512b_packed_half", 0x10cf, 1 },
		{ RFL_PERF_ZEN2, "fp_ret_sse_avx_ops.all", 0x0f03, 2 },
		{ RFL_PERF_ZEN4, "fp_ret_sse_avx_ops.all", 0x1f03, 2 },
		{ RFL_PERF_ZEN5, "cpu/event=0x03,umask=0x4f/", 0x4f03, 2 },
		{ RFL_PERF_ZEN5, "cpu/event=0x03,umask=0xaf/", 0xaf03, 2 },
		{ RFL_PERF_NEOVERSE, "fp_scale_ops_spec", 0x80c0, 1 },
		{ RFL_PERF_NEOVERSE, "fp_fixed_ops_spec", 0x80c1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_perf_event *e = event_of(cases[i].kind, cases[i].name);

		assert_int_equal(e->type, PERF_TYPE_RAW);
		assert_int_equal(e->config, cases[i].code);
		assert_int_equal(e->slots, cases[i].slots);
		assert_true(e->is_flops);
	}
}

/* Every table: names once, at most four general counters per group, and FLOPs known to a formula.
 */
static void tables_are_whole(void **state)
{
	static const char *const families[RFL_PERF_KIND_COUNT] = {
		[RFL_PERF_OTHER] = "cpu",
		[RFL_PERF_INTEL] = "cpu-intel",
		[RFL_PERF_INTEL_FP16] = "cpu-intel-fp16",
		[RFL_PERF_ZEN2] = "cpu-amd",
		[RFL_PERF_ZEN4] = "cpu-amd",
		[RFL_PERF_ZEN5] = "cpu-amd-zen5",
		[RFL_PERF_NEOVERSE] = "cpu-neoverse-v2",
	};

	(void)state;
	for (int kind = 0; kind < RFL_PERF_KIND_COUNT; kind++) {
		struct rfl_formulas *f = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		const struct rfl_perf_event *e, *other;
		int slots[8] = { 0 };

		assert_ok(rfl_formulas_new(families[kind], &f, &err), &err);
		for (size_t i = 0; (e = rfl_perf_event_at((enum rfl_perf_kind)kind, i)); i++) {
			slots[e->group] += e->group > 0 ? e->slots : 0;
			assert_true(e->group == 0 || slots[e->group] <= 4);
			for (size_t k = 0; k < i; k++) {
				other = rfl_perf_event_at((enum rfl_perf_kind)kind, k);
				assert_string_not_equal(e->name, other->name);
			}
			if (e->is_flops)
				assert_true(rfl_formulas_slot(f, e->name, strlen(e->name)) >= 0);
		}
		rfl_formulas_free(f);
	}
	for (size_t i = 0; rfl_perf_uncore_at(i); i++) {
		struct rfl_formulas *f = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		const char *metric = rfl_perf_uncore_at(i)->metric;

		assert_ok(rfl_formulas_new("cpu", &f, &err), &err);
		assert_true(rfl_formulas_slot(f, metric, strlen(metric)) >= 0);
		rfl_formulas_free(f);
	}
}

/* ---- /sys ---- */

static void finds_pmus_and_codes(void **state)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_perf_pmu *pmus = NULL;
	struct rfl_perf_code code;
	struct rfl_err err = RFL_ERR_INIT;
	struct fake_kernel k;
	struct rfl_perf_env env;
	size_t n = 0;

	fake_machine_init(*state, &fake_spr, &k, &env);
	assert_ok(rfl_perf_pmus_find(arena, k.sys.root, "uncore_imc", &pmus, &n, &err), &err);
	assert_int_equal(n, 2); /* and not the one that runs freely */
	assert_string_equal(pmus[1].name, "uncore_imc_1");
	assert_int_equal(pmus[1].type, 81);
	assert_int_equal(pmus[1].ncpus, 2);
	assert_int_equal(pmus[1].cpus[1], 56);
	assert_ok(
		rfl_perf_code_find(k.sys.root, "uncore_imc_0", "cas_count_read", NULL, &code, &err),
		&err);
	assert_int_equal(code.config[0], 0xcf05);
	assert_close(code.bytes, 64, 0);
	assert_ok(rfl_perf_code_find(k.sys.root, "uncore_imc_0", "clockticks", NULL, &code, &err),
		  &err);
	assert_true(isnan(code.bytes));
	assert_int_equal(rfl_perf_code_find(k.sys.root, "uncore_imc_0", "none", NULL, &code, &err),
			 RFL_ENOTFOUND);

	/* an event number that does not fit the first eight bits continues at bit 32 */
	fake_machine_init(*state, &fake_zen3, &k, &env);
	rfl_err_clear(&err);
	assert_ok(rfl_perf_code_find(k.sys.root, "amd_df", NULL, "event=0x147,umask=0x38", &code,
				     &err),
		  &err);
	assert_int_equal(code.config[0], UINT64_C(0x100003847));
	assert_true(rfl_perf_has_core_pmu(arena, k.sys.root));
	fake_machine_init(*state, &fake_icelake, &k, &env);
	assert_false(rfl_perf_has_core_pmu(arena, k.sys.root));
	assert_ok(rfl_perf_pmus_find(arena, k.sys.root, "uncore_imc", &pmus, &n, &err), &err);
	assert_int_equal(n, 0);
	assert_null(pmus);
	rfl_arena_free(arena);
}

static void refuses_damaged_files(void **state)
{
	static const struct {
		const char *event;
		enum rfl_rc rc;
		const char *word;
	} codes[] = {
		{ "e1", RFL_OK, "" }, /* a term without a value is 1 */
		{ "e2", RFL_EFORMAT, "uncore_c: the PMU has no term 'nothing'" },
		{ "e3", RFL_EFORMAT, "'event=0x1ff' does not fit in 'config:0-7'" },
		{ "e4", RFL_EFORMAT, "'event=0xzz' has no number" },
		{ "e5", RFL_EFORMAT, "'=1' is not a list of terms" },
		{ "e6", RFL_OK, "" },
		{ "e7", RFL_EFORMAT, "'odd=1' does not fit in 'configs:0-7'" },
	};
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_perf_pmu *pmus = NULL;
	size_t n = 0;

	fake_files(*state, "damaged");
	for (size_t i = 0; i < RFL_ARRAY_LEN(codes); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_perf_code code;

		assert_int_equal(
			rfl_perf_code_find(*state, "uncore_c", codes[i].event, NULL, &code, &err),
			codes[i].rc);
		assert_says(&err, codes[i].word);
	}
	for (int i = 0; i < 2; i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_perf_pmus_find(arena, *state, i ? "uncore_b" : "uncore_a",
						    &pmus, &n, &err),
				 RFL_EFORMAT);
		assert_says(&err, i ? "uncore_b/cpumask: does not contain a list of CPUs"
				    : "uncore_a/type: does not contain the number of a PMU");
	}
	rfl_arena_free(arena);
}

/* ---- plans ---- */

static struct rfl_perf_plan *plan_of(const struct rfl_perf_env *env, const char *precision)
{
	struct rfl_perf_plan *plan = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_perf_plan_new(env, precision, &plan, &err), &err);
	return plan;
}

/* Passes by the counters that there are; no pass holds more than them. */
static void lays_passes(void **state)
{
	static const struct {
		const struct fake_machine *machine;
		int counters, passes;
		const char *formulas;
	} cases[] = {
		/* single 4 + double 4 + half 4 + misses 1, of 8 counters */
		{ &fake_spr, 8, 2, "cpu-intel-fp16" },
		{ &fake_spr, 4, 4, "cpu-intel-fp16" },
		/* three counters each without AVX-512, misses, and a watchdog that holds one */
		{ &fake_skylake, 4, 3, "cpu-intel-avx2" },
		/* cycles 1, instructions 1, misses 1, FLOPs 2; eight channels by four counters */
		{ &fake_zen3, 6, 2, "cpu-amd" },
		{ &fake_zen4, 6, 1, "cpu-amd" },
		/* cycles, instructions, misses, bf16: 5; two groups of two that take two each */
		{ &fake_zen5, 6, 3, "cpu-amd-zen5" },
		{ &fake_zen6, 6, 3, "cpu-amd-zen6" },
		{ &fake_grace, 0, 1, "cpu-neoverse-v2" },
		/* a group that no two counters hold is counted event by event */
		{ &fake_skylake, 2, 7, "cpu-intel-avx2" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fake_kernel k;
		struct rfl_perf_env env;
		struct rfl_perf_plan *plan;

		fake_machine_init(*state, cases[i].machine, &k, &env);
		env.id.counters = cases[i].counters;
		plan = plan_of(&env, "fp32");
		assert_string_equal(plan->formulas, cases[i].formulas);
		assert_int_equal(plan->passes, cases[i].passes);
		for (int pass = 0; pass < plan->passes; pass++) {
			int slots = 0;

			for (size_t e = 0; e < plan->n; e++)
				if (plan->items[e].pass == pass)
					slots += plan->items[e].event.slots;
			assert_true(slots <= (cases[i].counters ? cases[i].counters : 6));
		}
		assert_int_equal(k.open_now, 0);
		rfl_perf_plan_free(plan);
	}
}

/* Which memory controllers are counted, and in what unit. */
static void picks_memory_controllers(void **state)
{
	static const struct {
		const struct fake_machine *machine;
		const char *metric;
		size_t targets;
		double scale;
		uint64_t config;
	} cases[] = {
		{ &fake_spr, "uncore_imc/cas_count_write/", 4, 64, 0xf005 },
		{ &fake_spr_unnamed, "uncore_imc/cas_count_write/", 1, 64, 0xf005 },
		{ &fake_granite, "uncore_imc/cas_count_read_sch1/", 1, 64, 0xcf06 },
		{ &fake_skylake, "uncore_imc/data_writes/", 1, 64, 0x02 },
		{ &fake_alder, "uncore_imc_free_running/data_read/", 2, 64, 0x20ff },
		{ &fake_zen3, "dram_channel_data_controller_7", 2, 1, UINT64_C(0x1000038c7) },
		{ &fake_zen5, "amd_umc/umc_cas_cmd.wr/", 3, 1, 0x020a },
		{ &fake_zen6, "amd_umc/umc_cas_cmd.wr/", 3, 1, 0x020a },
		{ &fake_grace, "nvidia_scf_pmu/cmem_rd_data/", 1, 1, 0x1a5 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fake_kernel k;
		struct rfl_perf_env env;
		struct rfl_perf_plan *plan;
		const struct rfl_perf_item *item;

		fake_machine_init(*state, cases[i].machine, &k, &env);
		plan = plan_of(&env, NULL);
		item = fake_item(plan, cases[i].metric);
		assert_null(item->reason);
		assert_null(plan->no_dram);
		assert_int_equal(item->ntargets, cases[i].targets);
		assert_close(item->event.scale, cases[i].scale, 0);
		assert_int_equal(item->targets[0].config[0], cases[i].config);
		assert_true(item->targets[0].cpu >= 0);
		rfl_perf_plan_free(plan);
	}
}

/* What the kernel says of a count goes before what the table says; without its word that is taken.
 */
static void takes_the_kernels_scale(void **state)
{
	static const struct {
		const char *scale;
		double bytes;
	} cases[] = { { "3.0517578125e-5", 32 }, { "nothing", 64 } };

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_perf_plan *plan;
		struct rfl_perf_env env;
		struct fake_kernel k;

		fake_machine_init(*state, &fake_spr, &k, &env);
		for (int box = 0; box < 2; box++) {
			char path[1024];

			(void)snprintf(path, sizeof(path),
				       "%s/sys/bus/event_source/devices/uncore_imc_%d/events/"
				       "cas_count_read.scale",
				       k.sys.root, box);
			assert_ok(
				rfl_file_write(path, cases[i].scale, strlen(cases[i].scale), &err),
				&err);
		}
		assert_ok(rfl_perf_plan_new(&env, "fp32", &plan, &err), &err);
		assert_close(fake_item(plan, "uncore_imc/cas_count_read/")->event.scale,
			     cases[i].bytes, 0);
		assert_close(fake_item(plan, "uncore_imc/cas_count_write/")->event.scale, 64, 0);
		rfl_perf_plan_free(plan);
	}
}

static void counts_p_cores_of_hybrids(void **state)
{
	struct fake_kernel k;
	struct rfl_perf_env env;
	struct rfl_perf_plan *plan;

	fake_machine_init(*state, &fake_alder, &k, &env);
	plan = plan_of(&env, NULL);
	assert_int_equal(fake_item(plan, "cycles")->targets->config[0], UINT64_C(4) << 32);
	assert_true(fake_item(plan, "cycles")->partial);
	assert_int_equal(fake_item(plan, "fp_arith_inst_retired.scalar_single")->targets->type, 4);
	assert_false(fake_item(plan, "task-clock")->partial);
	rfl_perf_plan_free(plan);
}

/* ---- what cannot be counted ---- */

static const char *reason_of(void *state, const struct fake_machine *machine, int error,
			     const char *paranoid, const char *metric)
{
	static char text[512];
	const struct fake_rule rule = { .any = true, .error = error, .error_from = -1 };
	struct fake_kernel k;
	struct rfl_perf_env env;
	struct rfl_perf_plan *plan;
	struct rfl_err err = RFL_ERR_INIT;
	char path[600];

	fake_machine_init(state, machine, &k, &env);
	k.rules = &rule;
	k.nrules = 1;
	(void)snprintf(path, sizeof(path), "%s/proc/sys/kernel/perf_event_paranoid", k.sys.root);
	if (paranoid)
		assert_ok(rfl_file_write(path, paranoid, strlen(paranoid), &err), &err);
	plan = plan_of(&env, NULL);
	assert_int_equal(rfl_perf_plan_usable(plan, false), 0);
	(void)snprintf(text, sizeof(text), "%s", fake_item(plan, metric)->reason);
	rfl_perf_plan_free(plan);
	return text;
}

static void says_why(void **state)
{
	static const struct {
		const struct fake_machine *machine;
		int error;
		const char *paranoid, *metric, *word;
	} cases[] = {
		{ &fake_icelake, ENOENT, NULL, "cycles",
		  "this virtual machine has no hardware counters; use a bare-metal instance" },
		{ &fake_icelake, ENOENT, NULL, "uncore_imc/cas_count_read/",
		  "this virtual machine has no counters of memory controllers" },
		{ &fake_spr, ENOENT, NULL, "cycles", "the kernel does not know this event" },
		{ &fake_spr, EACCES, "4", "cycles",
		  "counting this process is not allowed with perf_event_paranoid 4: run 'sudo "
		  "sysctl kernel.perf_event_paranoid=2', or give the program CAP_PERFMON" },
		{ &fake_spr, EPERM, "2", "context-switches",
		  "in the kernel is not allowed with perf_event_paranoid 2: run 'sudo sysctl "
		  "kernel.perf_event_paranoid=1" },
		{ &fake_spr, EACCES, "2", "uncore_imc/cas_count_read/",
		  "counting a whole CPU is not allowed with perf_event_paranoid 2: run 'sudo "
		  "sysctl kernel.perf_event_paranoid=0" },
		{ &fake_spr, EPERM, "-1", "cycles", "seccomp" },
		{ &fake_spr, EINVAL, NULL, "cycles",
		  "rejects the code or the flags of this event" },
		{ &fake_spr, EMFILE, NULL, "cycles", "ulimit -Hn" },
		{ &fake_spr, ENOSYS, NULL, "task-clock", "CONFIG_PERF_EVENTS" },
		{ &fake_spr, EBUSY, NULL, "cycles", "kernel.nmi_watchdog=0" },
		{ &fake_spr, EIO, NULL, "cycles", "perf_event_open: Input/output error" },
		{ &fake_zen4, ENOENT, NULL, "amd_umc/umc_cas_cmd.rd/", "Linux 6.7" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *said = reason_of(*state, cases[i].machine, cases[i].error,
					     cases[i].paranoid, cases[i].metric);

		if (!strstr(said, cases[i].word))
			fail_msg("case %zu says '%s'", i, said);
		assert_null(strchr(said, '\n'));
	}
}

/* A system without PMU and hypervisor, and one without the file of the level. */
static void says_why_elsewhere(void **state)
{
	struct fake_machine bare = fake_icelake;
	struct fake_machine nothing = fake_spr;

	bare.guest = false;
	assert_non_null(strstr(reason_of(*state, &bare, ENOENT, NULL, "cycles"),
			       "no core PMU in /sys/bus/event_source/devices"));
	nothing.tree = "damaged"; /* has no /proc */
	assert_non_null(strstr(reason_of(*state, &nothing, EACCES, NULL, "cycles"),
			       "perf_event_paranoid cannot be read"));
}

/* The Tensor Core is in no count of FLOPs: a run that may use it has none. */
static void leaves_matrix_units_out(void **state)
{
	static const struct {
		const struct fake_machine *machine;
		const char *precision;
		bool counted;
	} cases[] = {
		{ &fake_spr, "fp32", true },     { &fake_spr, "bf16", false },
		{ &fake_spr, "amp", false },     { &fake_spr, NULL, true },
		{ &fake_icelake, "bf16", true }, { &fake_zen5, "amp", true },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fake_kernel k;
		struct rfl_perf_env env;
		struct rfl_perf_plan *plan;
		size_t refused = 0;

		fake_machine_init(*state, cases[i].machine, &k, &env);
		plan = plan_of(&env, cases[i].precision);
		for (size_t e = 0; e < plan->n; e++)
			refused += plan->items[e].event.is_flops && plan->items[e].reason &&
				   strstr(plan->items[e].reason, "AMX");
		assert_true((refused == 0) == cases[i].counted);
		assert_null(fake_item(plan, "cycles")->reason);
		rfl_perf_plan_free(plan);
	}
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_processors),
		cmocka_unit_test(has_the_codes_of_the_vendors),
		cmocka_unit_test(tables_are_whole),
		IN_FOLDER(finds_pmus_and_codes),
		IN_FOLDER(refuses_damaged_files),
		IN_FOLDER(lays_passes),
		IN_FOLDER(picks_memory_controllers),
		IN_FOLDER(takes_the_kernels_scale),
		IN_FOLDER(counts_p_cores_of_hybrids),
		IN_FOLDER(says_why),
		IN_FOLDER(says_why_elsewhere),
		IN_FOLDER(leaves_matrix_units_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
