/*
 * uncore.c - the memory controllers: which of their PMUs the kernel shows, and their events.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/perf/plan.h"
#include "profile/perf/sysfs.h"

/* The targets of one row over all its PMUs and sockets; none when the PMU or its event is absent.
 */
static enum rfl_rc find_targets(struct rfl_perf_plan *plan, const struct rfl_perf_uncore *row,
				struct rfl_perf_item *item, struct rfl_err *err)
{
	const char *root = plan->env->sys->root;
	struct rfl_perf_pmu *pmus = NULL;
	size_t npmus = 0, n = 0;
	struct rfl_perf_code code;
	enum rfl_rc rc = rfl_perf_pmus_find(root, row->pmu, &pmus, &npmus, err);

	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < npmus; i++)
		n += pmus[i].ncpus;
	item->targets = n > 0 ? rfl_arena_array(plan->arena, n, sizeof(*item->targets)) : NULL;
	if (n > 0 && !item->targets)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", row->metric);
	for (size_t i = 0; i < npmus && rc == RFL_OK; i++) {
		rc = rfl_perf_code_find(root, pmus[i].name, row->event, row->terms, &code, err);
		if (rc == RFL_OK && row->bytes > 0)
			item->scale = isnan(code.bytes) ? row->bytes : code.bytes;
		for (size_t k = 0; k < pmus[i].ncpus && rc == RFL_OK; k++) {
			struct rfl_perf_target *t = &item->targets[item->ntargets++];

			*t = (struct rfl_perf_target){ .type = pmus[i].type,
						       .cpu = pmus[i].cpus[k] };
			memcpy(t->config, code.config, sizeof(t->config));
		}
	}
	rfl_perf_pmus_free(pmus, npmus);
	return rc;
}

/* One row as an item; what /sys says wrong is its reason. */
static enum rfl_rc read_row(struct rfl_perf_plan *plan, const struct rfl_perf_uncore *row,
			    struct rfl_perf_item *item, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	*item = (struct rfl_perf_item){
		.metric = row->metric,
		.unit = row->bytes > 0 ? "byte" : "",
		.scale = 1,
		.is_uncore = true,
		.limit = row->counters,
	};
	rc = find_targets(plan, row, item, &why);
	if (rc == RFL_OK)
		return RFL_OK;
	item->ntargets = 0;
	if (rc == RFL_ENOMEM)
		return rfl_fail(err, rc, 0, "%s", why.msg);
	if (rc != RFL_ENOTFOUND) /* the PMU is there, and says what cannot be read */
		item->reason = rfl_arena_strdup(plan->arena, why.msg);
	return RFL_OK;
}

/* All rows of one set. @param there  whether the kernel shows all of them */
static enum rfl_rc add_set(struct rfl_perf_plan *plan, int set, bool *there, struct rfl_err *err)
{
	const struct rfl_perf_uncore *row;
	struct rfl_perf_item items[8];
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	*there = true;
	for (size_t i = 0; rc == RFL_OK && (row = rfl_perf_uncore_at(i)); i++) {
		if (row->set != set)
			continue;
		if (n == RFL_ARRAY_LEN(items) || (row->fits && !row->fits(plan->cpu))) {
			*there = false;
			return RFL_OK;
		}
		rc = read_row(plan, row, &items[n], err);
		*there = *there && (items[n].ntargets > 0 || items[n].reason);
		n++;
	}
	*there = *there && n > 0;
	for (size_t i = 0; i < n && rc == RFL_OK && *there; i++) {
		struct rfl_perf_item *item = rfl_perf_plan_add(plan, &items[i]);

		rc = item ? rfl_perf_plan_try(plan, item, err)
			  : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", items[i].metric);
		if (rc == RFL_OK && item->reason && !plan->no_dram)
			plan->no_dram = item->reason;
	}
	return rc;
}

static const char *why_none(const struct rfl_perf_plan *plan)
{
	if (plan->env->guest)
		return "this virtual machine shows no counters of memory controllers; a metal "
		       "instance does (docs/counters-cpu.md)";
	if (plan->cpu->kind == RFL_PERF_ZEN4 || plan->cpu->kind == RFL_PERF_ZEN5)
		return "the kernel shows no PMU of the memory controllers (amd_umc): Linux 6.7 or "
		       "later has it; on Debian 12 the kernel of bookworm-backports";
	return "the kernel shows no PMU of the memory controllers for this processor";
}

/* The PMU that such a processor would have. */
static const char *expected_pmu(const struct rfl_perf_cpu *cpu)
{
	static const struct {
		const char *formulas;
		enum rfl_perf_kind kind; /* RFL_PERF_KIND_COUNT: any */
		const char *pmu;
	} rows[] = {
		{ "cpu-intel", RFL_PERF_KIND_COUNT, "uncore_imc" },
		{ "cpu-amd", RFL_PERF_ZEN2, "amd_df" },
		{ "cpu-amd", RFL_PERF_KIND_COUNT, "amd_umc" },
		{ "cpu-amd-zen5", RFL_PERF_KIND_COUNT, "amd_umc" },
		{ "cpu-neoverse-v2", RFL_PERF_KIND_COUNT, "nvidia_scf_pmu" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (strcmp(cpu->formulas, rows[i].formulas) == 0 &&
		    (rows[i].kind == RFL_PERF_KIND_COUNT || rows[i].kind == cpu->kind))
			return rows[i].pmu;
	return "";
}

/* Say of the metrics that such a processor would have why they are not there. */
static enum rfl_rc add_absent(struct rfl_perf_plan *plan, struct rfl_err *err)
{
	const struct rfl_perf_uncore *row;
	const char *pmu = expected_pmu(plan->cpu);
	int set = -1;

	plan->no_dram = why_none(plan);
	for (size_t i = 0; (row = rfl_perf_uncore_at(i)); i++) {
		const struct rfl_perf_item item = {
			.metric = row->metric,
			.unit = row->bytes > 0 ? "byte" : "",
			.is_uncore = true,
			.reason = plan->no_dram,
		};

		if (strcmp(row->pmu, pmu) != 0 || (set >= 0 && row->set != set))
			continue;
		set = row->set;
		if (!rfl_perf_plan_add(plan, &item))
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", row->metric);
	}
	return RFL_OK;
}

enum rfl_rc rfl_perf_plan_uncore(struct rfl_perf_plan *plan, struct rfl_err *err)
{
	const struct rfl_perf_uncore *row;
	int last = -1;
	bool there = false;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; rc == RFL_OK && !there && (row = rfl_perf_uncore_at(i)); i++) {
		if (row->set == last)
			continue;
		last = row->set;
		rc = add_set(plan, row->set, &there, err);
	}
	return rc == RFL_OK && !there ? add_absent(plan, err) : rc;
}
