/*
 * plan.c - tries the events of this CPU and its memory controllers one by one, explains those
 * that perf_event_open refuses, and assigns the others to passes.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "machine/isa.h"
#include "profile/perf/impl.h"

#define PAGE "docs/reference/counters.md"

void rfl_perf_env_init(struct rfl_perf_env *env)
{
	char hypervisor[13], brand[49];

	*env = (struct rfl_perf_env){ .sys = &rfl_perf_sys_linux, .isa = rfl_isa_detect() };
	rfl_cpu_id_get(env->sys->root, &env->id);
	rfl_isa_hypervisor(hypervisor);
	rfl_isa_cpu_brand(brand);
	env->guest = hypervisor[0] != '\0';
	snprintf(env->brand, sizeof(env->brand), "%s", brand + strspn(brand, " "));
}

/* ---- refusals ---- */

int rfl_perf_paranoid(const char *root)
{
	char text[32];
	int64_t level;

	if (!rfl_perf_slurp(text, sizeof(text), root, "/proc/sys/kernel/perf_event_paranoid") ||
	    rfl_num_parse_int(text, "perf_event_paranoid", &level, NULL) != RFL_OK)
		return 99;
	return (int)level;
}

static const char *not_allowed(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item)
{
	const int level = rfl_perf_paranoid(plan->env->sys->root);
	const int need = item->is_uncore ? 0 : item->event.needs_kernel ? 1 : 2;
	const char *what = item->is_uncore            ? "counting a whole CPU"
			   : item->event.needs_kernel ? "counting in the kernel"
						      : "counting this process";

	if (level == 99)
		return rfl_arena_printf(plan->arena,
					"%s is not allowed, and "
					"/proc/sys/kernel/perf_event_paranoid cannot be read: run "
					"as root, or give the program CAP_PERFMON",
					what);
	if (level <= need)
		return rfl_arena_printf(
			plan->arena,
			"%s is not allowed, although perf_event_paranoid is %d: a seccomp filter "
			"or a security module forbids perf_event_open; start the container with "
			"--cap-add PERFMON and a seccomp profile that allows it",
			what, level);
	return rfl_arena_printf(plan->arena,
				"%s is not allowed with perf_event_paranoid %d: run 'sudo sysctl "
				"kernel.perf_event_paranoid=%d', or give the program CAP_PERFMON "
				"(sudo setcap cap_perfmon+ep PROGRAM)",
				what, level, need);
}

const char *rfl_perf_refusal(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item,
			     int error, size_t threads)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		/* most guests have no PMU at all; otherwise the kernel does not know the event */
		if (rfl_perf_has_core_pmu(plan->arena, plan->env->sys->root))
			return "the kernel does not know this event of the CPU: use a newer "
			       "kernel";
		if (plan->env->guest)
			return "this virtual machine has no hardware counters; use a bare-metal "
			       "instance, or an instance type with an enabled PMU (" PAGE ")";
		return "this system has no hardware counters (no core PMU in "
		       "/sys/bus/event_source/devices): a container or hypervisor hides them, or "
		       "the kernel has no driver for this CPU (" PAGE ")";
	case EACCES:
	case EPERM:
		return not_allowed(plan, item);
	case EMFILE:
	case ENFILE:
		return rfl_arena_printf(
			plan->arena,
			"too many open files: every event needs one in each of %zu threads; raise "
			"the hard limit (ulimit -Hn 65536 as root), or count with fewer threads",
			threads);
	case EINVAL:
		return "the kernel rejects the code or the flags of this event: it is older than "
		       "the CPU, or encodes the event differently; use a newer kernel";
	case E2BIG:
		return "the kernel is too old for the requested event attributes: use a newer "
		       "kernel";
	case ENOSYS:
		return "this kernel has no perf_event_open: it was built without "
		       "CONFIG_PERF_EVENTS, or a sandbox (gVisor, an old container runtime) hides "
		       "it";
	case EBUSY:
		return "another program uses this counter exclusively: stop other profilers and "
		       "the NMI watchdog (sudo sysctl kernel.nmi_watchdog=0)";
	case ENOMEM:
		return "the kernel has no memory for another event";
	default:
		return rfl_arena_printf(plan->arena, "perf_event_open: %s", strerror(error));
	}
}

/* ---- trying ---- */

void rfl_perf_attr(const struct rfl_perf_item *item, const struct rfl_perf_target *target,
		   bool leads, struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){
		.size = sizeof(*ret),
		.type = target->type,
		.config = target->config[0],
		.config1 = target->config[1],
		.config2 = target->config[2],
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = leads,
		.inherit = target->cpu < 0,
		.exclude_kernel = item->user_only,
		.exclude_hv = item->user_only,
	};
}

/* Open the events of an item and close them; returns 0 or errno. */
static int try_once(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item)
{
	const struct rfl_perf_sys *sys = plan->env->sys;

	for (size_t i = 0; i < item->ntargets; i++) {
		const struct rfl_perf_target *t = &item->targets[i];
		struct perf_event_attr attr;

		rfl_perf_attr(item, t, true, &attr);
		int fd = sys->open(sys->ctx, &attr, t->cpu < 0 ? 0 : -1, t->cpu, -1);
		if (fd < 0)
			return errno;
		sys->close(sys->ctx, fd);
	}
	return 0;
}

/* Append an item; its strings are borrowed. Unless it has a reason, try to open it, which may set
 * the reason or user_only. */
static void add_item(struct rfl_perf_plan *plan, struct rfl_perf_item item)
{
	int error = item.reason ? 0 : try_once(plan, &item);

	if ((error == EACCES || error == EPERM) && !item.is_uncore && !item.event.needs_kernel) {
		item.user_only = true; /* perf_event_paranoid 2 allows this */
		error = try_once(plan, &item);
	}
	if (error != 0)
		item.reason = rfl_perf_refusal(plan, &item, error, 1);
	*(struct rfl_perf_item *)rfl_arena_append(plan->arena, &plan->items, &plan->n) = item;
}

static enum rfl_rc add_core_events(struct rfl_perf_plan *plan, const char *precision,
				   struct rfl_err *err)
{
	static const char path[] = "/sys/bus/event_source/devices/cpu_core/type";
	const struct rfl_perf_env *env = plan->env;
	/* no event counts the FLOPs of AMX and SME */
	const bool matrix_unit = precision &&
				 (env->isa & (RFL_ISA_BIT(AMX_TILE) | RFL_ISA_BIT(SME))) &&
				 (strcmp(precision, "bf16") == 0 || strcmp(precision, "amp") == 0 ||
				  strcmp(precision, "fp16") == 0);
	const struct rfl_perf_event *event;
	uint32_t core_type = 0; /* the PMU of the P-cores of a hybrid CPU */
	char text[32];

	if (rfl_perf_slurp(text, sizeof(text), env->sys->root, "%s", path) &&
	    sscanf(text, "%u", &core_type) != 1)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: does not contain the number of a PMU",
				path);
	for (size_t i = 0; (event = rfl_perf_event_at(plan->cpu->kind, i)); i++) {
		const bool hybrid = core_type != 0 && event->type != PERF_TYPE_SOFTWARE;
		struct rfl_perf_item item = {
			.event = *event,
			.partial = hybrid,
			.ntargets = 1,
			.targets = rfl_arena_array(plan->arena, 1, sizeof(*item.targets)),
		};

		if ((event->needs & env->isa) != event->needs)
			continue;
		*item.targets = (struct rfl_perf_target){ .type = event->type, .cpu = -1 };
		item.targets->config[0] = event->config;
		if (hybrid && event->type == PERF_TYPE_RAW)
			item.targets->type = core_type;
		else if (hybrid)
			item.targets->config[0] |= (uint64_t)core_type << 32;
		if (event->is_flops && matrix_unit)
			item.reason = "this run may use AMX or SME, whose FLOPs no event counts: "
				      "the total would be far too low; use the analytic count";
		add_item(plan, item);
	}
	return RFL_OK;
}

/* ---- events of memory controllers ---- */

/* The targets of a row on all its PMUs and sockets; none if the PMU or the event is absent. */
static enum rfl_rc find_targets(struct rfl_perf_plan *plan, const struct rfl_perf_uncore *row,
				struct rfl_perf_item *item, struct rfl_err *err)
{
	const char *root = plan->env->sys->root;
	struct rfl_perf_pmu *pmus = NULL;
	size_t npmus = 0, n = 0;
	struct rfl_perf_code code;
	enum rfl_rc rc = rfl_perf_pmus_find(plan->arena, root, row->pmu, &pmus, &npmus, err);

	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < npmus; i++)
		n += pmus[i].ncpus;
	item->targets = rfl_arena_array(plan->arena, n, sizeof(*item->targets));
	for (size_t i = 0; i < npmus && rc == RFL_OK; i++) {
		rc = rfl_perf_code_find(root, pmus[i].name, row->event, row->terms, &code, err);
		if (rc == RFL_OK && row->bytes > 0)
			item->event.scale = isnan(code.bytes) ? row->bytes : code.bytes;
		for (size_t k = 0; k < pmus[i].ncpus && rc == RFL_OK; k++) {
			struct rfl_perf_target *t = &item->targets[item->ntargets++];

			*t = (struct rfl_perf_target){ .type = pmus[i].type,
						       .cpu = pmus[i].cpus[k] };
			memcpy(t->config, code.config, sizeof(t->config));
		}
	}
	return rc;
}

static struct rfl_perf_item uncore_item(const struct rfl_perf_uncore *row)
{
	return (struct rfl_perf_item){
		.event = { .name = row->metric, .unit = row->bytes > 0 ? "byte" : "", .scale = 1 },
		.is_uncore = true,
		.limit = row->counters,
	};
}

/* Add all rows of a set, provided that the kernel has all of them. A row with invalid files in /sys
 * is added with the error as its reason. */
static bool add_set(struct rfl_perf_plan *plan, int set)
{
	const struct rfl_perf_uncore *row;
	struct rfl_perf_item items[8];
	size_t n = 0;

	for (size_t i = 0; (row = rfl_perf_uncore_at(i)); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (row->set != set)
			continue;
		if (n == RFL_ARRAY_LEN(items) || (row->fits && !row->fits(plan->cpu)))
			return false;
		items[n] = uncore_item(row);
		enum rfl_rc rc = find_targets(plan, row, &items[n], &why);
		if (rc != RFL_OK)
			items[n].ntargets = 0;
		if (rc != RFL_OK && rc != RFL_ENOTFOUND) /* the PMU exists but cannot be read */
			items[n].reason = rfl_arena_strdup(plan->arena, why.msg);
		if (items[n].ntargets == 0 && !items[n].reason)
			return false;
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		add_item(plan, items[i]);
		if (plan->n > 0 && !plan->no_dram)
			plan->no_dram = plan->items[plan->n - 1].reason;
	}
	return n > 0;
}

/* Add the first set that the kernel has; otherwise the metrics expected of such a CPU, with
 * the reason why they are missing. */
static void add_uncore_events(struct rfl_perf_plan *plan)
{
	static const struct {
		const char *formulas;
		enum rfl_perf_kind kind; /* RFL_PERF_KIND_COUNT: any */
		const char *pmu;
	} expected[] = {
		{ "cpu-amd", RFL_PERF_KIND_COUNT, "amd_umc" },
		{ "cpu-amd", RFL_PERF_ZEN2, "amd_df" },
		{ "cpu-amd-zen5", RFL_PERF_KIND_COUNT, "amd_umc" },
		{ "cpu-amd-zen6", RFL_PERF_KIND_COUNT, "amd_umc" },
		{ "cpu-intel", RFL_PERF_KIND_COUNT, "uncore_imc" },
		{ "cpu-neoverse-v2", RFL_PERF_KIND_COUNT, "nvidia_scf_pmu" },
	};
	const struct rfl_perf_cpu *cpu = plan->cpu;
	const struct rfl_perf_uncore *row;
	const char *pmu = "";
	int set = -1;

	for (size_t i = 0; (row = rfl_perf_uncore_at(i)); i++) {
		if (row->set != set && add_set(plan, row->set))
			return;
		set = row->set;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(expected); i++)
		if (strcmp(cpu->formulas, expected[i].formulas) == 0 &&
		    (expected[i].kind == RFL_PERF_KIND_COUNT || expected[i].kind == cpu->kind))
			pmu = expected[i].pmu;
	if (plan->env->guest)
		plan->no_dram = "this virtual machine has no counters of memory controllers; use a "
				"bare-metal instance (" PAGE ")";
	else if (cpu->kind == RFL_PERF_ZEN4 || cpu->kind == RFL_PERF_ZEN5)
		plan->no_dram = "the kernel has no PMU of the memory controllers (amd_umc): use "
				"Linux 6.7 or later (on Debian 12, from bookworm-backports)";
	else
		plan->no_dram = "the kernel has no PMU of the memory controllers for this CPU";
	set = -1;
	for (size_t i = 0; (row = rfl_perf_uncore_at(i)); i++) {
		struct rfl_perf_item item = uncore_item(row);

		if (strcmp(row->pmu, pmu) != 0 || (set >= 0 && row->set != set))
			continue;
		set = row->set;
		item.reason = plan->no_dram;
		add_item(plan, item);
	}
}

/* ---- passes ---- */

/* Counters needed by all usable events of an item's group. */
static int group_slots(const struct rfl_perf_plan *plan, size_t first)
{
	const int group = plan->items[first].event.group;
	int slots = 0;

	for (size_t i = first; i < plan->n; i++) {
		const struct rfl_perf_item *item = &plan->items[i];

		if (!item->reason && !item->is_uncore &&
		    (i == first || (group > 0 && item->event.group == group)))
			slots += item->event.slots;
	}
	return slots;
}

/* Each group goes into the first pass with enough free counters. A group that needs more counters
 * than the CPU has would never be scheduled, so its events are counted one by one. Events of
 * a memory controller share a pass as long as counters are free. */
static void assign_passes(struct rfl_perf_plan *plan)
{
	const struct rfl_perf_env *env = plan->env;
	/* general counters of a hardware thread; six, as on Neoverse, if unknown */
	const int counters = env->id.counters > 0 ? env->id.counters : 6;
	int used[RFL_PERF_GROUPS_MAX] = { 0 }, budget = counters, nuncore = 0, check = 0;
	uint64_t laid = 0;
	char text[16];

	if (rfl_perf_slurp(text, sizeof(text), env->sys->root, "/proc/sys/kernel/nmi_watchdog") &&
	    strcmp(text, "1") == 0)
		budget--; /* the watchdog may use one */
	if (env->multiplex)
		budget = INT_MAX;
	for (size_t i = 0; i < plan->n && env->program; i++)
		if (!plan->items[i].reason &&
		    strcmp(plan->items[i].event.name, "instructions") == 0)
			plan->check = i;
	if (plan->check != SIZE_MAX)
		check = plan->items[plan->check].event.slots;
	for (int pass = 1; pass < RFL_PERF_GROUPS_MAX; pass++)
		used[pass] = check;
	for (size_t i = 0; i < plan->n; i++) {
		const int group = plan->items[i].event.group;

		if (group == 0 || group_slots(plan, i) <= counters)
			continue;
		for (size_t k = i; k < plan->n; k++)
			if (plan->items[k].event.group == group)
				plan->items[k].event.group = 0;
	}
	for (size_t i = 0; i < plan->n; i++) {
		struct rfl_perf_item *item = &plan->items[i];
		const int group = item->event.group, slots = group_slots(plan, i);
		int pass = 0;

		if (item->reason || (group > 0 && laid >> group & 1))
			continue;
		if (item->is_uncore)
			pass = item->limit > 0 ? nuncore++ / item->limit : 0;
		while (!item->is_uncore && pass + 1 < RFL_PERF_GROUPS_MAX &&
		       used[pass] > (pass > 0 ? check : 0) && used[pass] + slots > budget)
			pass++;
		used[pass] += item->is_uncore ? 0 : slots;
		item->pass = pass;
		for (size_t k = i; k < plan->n; k++)
			if (group > 0 && plan->items[k].event.group == group)
				plan->items[k].pass = pass;
		if (pass >= plan->passes)
			plan->passes = pass + 1;
		if (group > 0)
			laid |= UINT64_C(1) << group;
	}
}

enum rfl_rc rfl_perf_plan_new(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_plan **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_perf_plan *plan = rfl_arena_array(arena, 1, sizeof(*plan));
	enum rfl_rc rc;

	plan->arena = arena;
	plan->env = env;
	plan->cpu = rfl_perf_cpu_find(&env->id);
	plan->formulas = plan->cpu->formulas;
	if (strcmp(plan->formulas, "cpu-intel") == 0 && (env->isa & RFL_ISA_BIT(AVX512_FP16)))
		plan->formulas = "cpu-intel-fp16";
	else if (strcmp(plan->formulas, "cpu-intel") == 0 && !(env->isa & RFL_ISA_BIT(AVX512F)))
		plan->formulas = "cpu-intel-avx2";
	plan->passes = 1;
	plan->check = SIZE_MAX;
	if ((rc = add_core_events(plan, precision, err)) != RFL_OK) {
		rfl_perf_plan_free(plan);
		return rc;
	}
	add_uncore_events(plan);
	assign_passes(plan);
	*ret = plan;
	return RFL_OK;
}

void rfl_perf_plan_free(struct rfl_perf_plan *plan)
{
	if (plan)
		rfl_arena_free(plan->arena);
}

size_t rfl_perf_plan_usable(const struct rfl_perf_plan *plan, bool hardware)
{
	size_t n = 0;

	for (const struct rfl_perf_item *item = plan->items; item < plan->items + plan->n; item++)
		n += !item->reason && !(hardware && item->event.type == PERF_TYPE_SOFTWARE);
	return n;
}
