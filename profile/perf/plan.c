/*
 * plan.c - events of this processor, tried one by one, and laid into passes.
 */
#include "profile/perf/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "machine/isa.h"
#include "profile/perf/sysfs.h"

#define GROUPS_MAX 32

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

struct rfl_perf_item *rfl_perf_plan_add(struct rfl_perf_plan *plan,
					const struct rfl_perf_item *item)
{
	if (plan->n == plan->cap) {
		const size_t cap = plan->cap > 0 ? 2 * plan->cap : 32;
		void *bigger = realloc(plan->items, cap * sizeof(*item));

		if (!bigger)
			return NULL;
		plan->items = bigger;
		plan->cap = cap;
	}
	plan->items[plan->n] = *item;
	return &plan->items[plan->n++];
}

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

/* Open and close; 0 or errno. */
static int try_once(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item)
{
	const struct rfl_perf_sys *sys = plan->env->sys;

	for (size_t i = 0; i < item->ntargets; i++) {
		const struct rfl_perf_target *t = &item->targets[i];
		struct perf_event_attr attr;
		int fd;

		rfl_perf_attr(item, t, true, &attr);
		fd = sys->open(sys->ctx, &attr, t->cpu < 0 ? 0 : -1, t->cpu, -1);
		if (fd < 0)
			return errno;
		sys->close(sys->ctx, fd);
	}
	return 0;
}

enum rfl_rc rfl_perf_plan_try(struct rfl_perf_plan *plan, struct rfl_perf_item *item,
			      struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	int error;

	if (item->reason)
		return RFL_OK;
	error = try_once(plan, item);
	if ((error == EACCES || error == EPERM) && !item->is_uncore && !item->needs_kernel) {
		item->user_only = true; /* what perf_event_paranoid 2 allows */
		error = try_once(plan, item);
	}
	if (error == 0)
		return RFL_OK;
	(void)rfl_perf_refused(plan->env, item, error, 1, &why);
	item->reason = rfl_arena_strdup(plan->arena, why.msg);
	return item->reason ? RFL_OK
			    : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", item->metric);
}

/* ---- events of cores ---- */

/* The PMU of the P-cores of a hybrid processor; 0 elsewhere. */
static enum rfl_rc find_core_type(const struct rfl_perf_env *env, uint32_t *ret,
				  struct rfl_err *err)
{
	char text[32];

	*ret = 0;
	if (!rfl_perf_slurp(env->sys->root, "/sys/bus/event_source/devices/cpu_core/type", text,
			    sizeof(text)))
		return RFL_OK;
	if (sscanf(text, "%u", ret) == 1)
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"/sys/bus/event_source/devices/cpu_core/type: not the number of a PMU");
}

static bool counts_matrix_units(const struct rfl_perf_env *env, const char *precision)
{
	static const char *const half[] = { "bf16", "amp", "fp16" };

	if (!precision || !(env->isa & (RFL_ISA_BIT(AMX_TILE) | RFL_ISA_BIT(SME))))
		return true;
	for (size_t i = 0; i < RFL_ARRAY_LEN(half); i++)
		if (strcmp(precision, half[i]) == 0)
			return false;
	return true;
}

static const char *refuse_flops(const struct rfl_perf_plan *plan, const char *precision)
{
	if (counts_matrix_units(plan->env, precision))
		return NULL;
	return "this run may use the processor's matrix unit (AMX, SME), whose products no event "
	       "counts: FLOPs would come out far too low; take the analytic count";
}

static enum rfl_rc add_core_event(struct rfl_perf_plan *plan, const struct rfl_perf_event *event,
				  uint32_t core_type, const char *no_flops, struct rfl_err *err)
{
	const bool hybrid = core_type != 0 && event->type != PERF_TYPE_SOFTWARE;
	struct rfl_perf_item item = {
		.metric = event->name,
		.unit = event->unit,
		.scale = event->scale,
		.slots = event->slots,
		.group = event->group,
		.is_flops = event->is_flops,
		.needs_kernel = event->needs_kernel,
		.partial = hybrid,
		.ntargets = 1,
		.reason = event->is_flops ? no_flops : NULL,
	};
	struct rfl_perf_item *added;

	if ((event->needs & plan->env->isa) != event->needs)
		return RFL_OK;
	item.targets = rfl_arena_array(plan->arena, 1, sizeof(*item.targets));
	if (item.targets) {
		item.targets->type = event->type;
		item.targets->config[0] = event->config;
		item.targets->cpu = -1;
		if (hybrid && event->type == PERF_TYPE_RAW)
			item.targets->type = core_type;
		else if (hybrid)
			item.targets->config[0] |= (uint64_t)core_type << 32;
	}
	added = item.targets ? rfl_perf_plan_add(plan, &item) : NULL;
	if (!added)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", event->name);
	return rfl_perf_plan_try(plan, added, err);
}

static enum rfl_rc add_core_events(struct rfl_perf_plan *plan, const char *precision,
				   struct rfl_err *err)
{
	const char *no_flops = refuse_flops(plan, precision);
	const struct rfl_perf_event *event;
	uint32_t core_type;
	enum rfl_rc rc = find_core_type(plan->env, &core_type, err);

	for (size_t i = 0; rc == RFL_OK && (event = rfl_perf_event_at(plan->cpu->kind, i)); i++)
		rc = add_core_event(plan, event, core_type, no_flops, err);
	return rc;
}

/* ---- passes ---- */

/* General counters of a hardware thread; six where it does not tell, as Neoverse has. */
static int core_counters(const struct rfl_perf_env *env)
{
	return env->id.counters > 0 ? env->id.counters : 6;
}

/* Those that we may take: the NMI watchdog may hold one. */
static int core_budget(const struct rfl_perf_env *env)
{
	char text[16];
	const bool watchdog = rfl_perf_slurp(env->sys->root, "/proc/sys/kernel/nmi_watchdog", text,
					     sizeof(text)) &&
			      strcmp(text, "1") == 0;

	return core_counters(env) - (watchdog ? 1 : 0);
}

/* Counters that the usable members of an item's group take together. */
static int group_slots(const struct rfl_perf_plan *plan, size_t first)
{
	const struct rfl_perf_item *leader = &plan->items[first];
	int slots = 0;

	for (size_t i = first; i < plan->n; i++) {
		const struct rfl_perf_item *item = &plan->items[i];

		if (!item->reason && !item->is_uncore &&
		    (i == first || (leader->group > 0 && item->group == leader->group)))
			slots += item->slots;
	}
	return slots;
}

static void put_group(struct rfl_perf_plan *plan, size_t first, int pass)
{
	const int group = plan->items[first].group;

	plan->items[first].pass = pass;
	for (size_t i = first + 1; group > 0 && i < plan->n; i++)
		if (plan->items[i].group == group && !plan->items[i].is_uncore)
			plan->items[i].pass = pass;
	if (pass >= plan->passes)
		plan->passes = pass + 1;
}

/* A group that is larger than what the processor has would be on no counter ever: its members are
 * counted apart. */
static void split_large_groups(struct rfl_perf_plan *plan)
{
	const int counters = core_counters(plan->env);

	for (size_t i = 0; i < plan->n; i++) {
		const int group = plan->items[i].group;

		if (group == 0 || group_slots(plan, i) <= counters)
			continue;
		for (size_t k = i; k < plan->n; k++)
			if (plan->items[k].group == group)
				plan->items[k].group = 0;
	}
}

/* Groups go into the first pass that has room for them. */
static void lay_cores(struct rfl_perf_plan *plan)
{
	const int budget = core_budget(plan->env);
	int used[GROUPS_MAX] = { 0 };
	uint64_t laid = 0;

	for (size_t i = 0; i < plan->n; i++) {
		struct rfl_perf_item *item = &plan->items[i];
		int pass = 0;

		if (item->is_uncore || item->reason || (item->group > 0 && laid >> item->group & 1))
			continue;
		const int slots = group_slots(plan, i);

		while (pass + 1 < GROUPS_MAX && used[pass] > 0 && used[pass] + slots > budget)
			pass++;
		used[pass] += slots;
		put_group(plan, i, pass);
		if (item->group > 0)
			laid |= UINT64_C(1) << item->group;
	}
}

/* Events of one memory controller are counted together as far as it has counters. */
static void lay_uncore(struct rfl_perf_plan *plan)
{
	int n = 0;

	for (size_t i = 0; i < plan->n; i++) {
		struct rfl_perf_item *item = &plan->items[i];

		if (!item->is_uncore || item->reason)
			continue;
		item->pass = item->limit > 0 ? n / item->limit : 0;
		n++;
		if (item->pass >= plan->passes)
			plan->passes = item->pass + 1;
	}
}

/* ---- all of it ---- */

static const char *family_of(const struct rfl_perf_env *env, const struct rfl_perf_cpu *cpu)
{
	if (strcmp(cpu->formulas, "cpu-intel") != 0)
		return cpu->formulas;
	if (env->isa & RFL_ISA_BIT(AVX512_FP16))
		return "cpu-intel-fp16";
	return env->isa & RFL_ISA_BIT(AVX512F) ? "cpu-intel" : "cpu-intel-avx2";
}

enum rfl_rc rfl_perf_plan_new(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_plan **ret, struct rfl_err *err)
{
	struct rfl_perf_plan *plan = calloc(1, sizeof(*plan));
	enum rfl_rc rc;

	if (plan)
		plan->arena = rfl_arena_new(0);
	if (!plan || !plan->arena) {
		free(plan);
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the list of events");
	}
	plan->env = env;
	plan->cpu = rfl_perf_cpu_find(&env->id);
	plan->formulas = family_of(env, plan->cpu);
	plan->passes = 1;
	rc = add_core_events(plan, precision, err);
	if (rc == RFL_OK)
		rc = rfl_perf_plan_uncore(plan, err);
	if (rc != RFL_OK) {
		rfl_perf_plan_free(plan);
		return rc;
	}
	split_large_groups(plan);
	lay_cores(plan);
	lay_uncore(plan);
	*ret = plan;
	return RFL_OK;
}

void rfl_perf_plan_free(struct rfl_perf_plan *plan)
{
	if (!plan)
		return;
	free(plan->items);
	rfl_arena_free(plan->arena);
	free(plan);
}

static bool is_software(const struct rfl_perf_item *item)
{
	return item->ntargets > 0 && item->targets[0].type == PERF_TYPE_SOFTWARE;
}

size_t rfl_perf_plan_usable(const struct rfl_perf_plan *plan, bool hardware)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n; i++)
		n += !plan->items[i].reason && !(hardware && is_software(&plan->items[i]));
	return n;
}

const char *rfl_perf_plan_reason(const struct rfl_perf_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->items[i].reason && !is_software(&plan->items[i]))
			return plan->items[i].reason;
	return NULL;
}
