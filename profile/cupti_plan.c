/*
 * cupti_plan.c - sessions as CUPTI can count them on the chip.
 */
#include "profile/cupti_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/cupti_sets.h"
#include "profile/source.h"

static const unsigned sets[] = { RFL_SET_CORE, RFL_SET_FLOPS, RFL_SET_AUDIT, RFL_SET_LINKS };

static struct rfl_cupti_unit unit_of(const char *theirs)
{
	static const struct {
		const char *theirs;
		struct rfl_cupti_unit ours;
	} units[] = {
		{ "nanosecond", { "s", 1e-9 } },  { "ns", { "s", 1e-9 } },
		{ "second", { "s", 1 } },         { "byte", { "byte", 1 } },
		{ "math_op", { "FLOP", 1 } },     { "instruction", { "inst", 1 } },
		{ "gpc_cycle", { "cycle", 1 } },  { "sys_cycle", { "cycle", 1 } },
		{ "fbp_cycle", { "cycle", 1 } },  { "dram_cycle", { "cycle", 1 } },
		{ "l2_sector", { "sector", 1 } },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++)
		if (strcmp(units[i].theirs, theirs) == 0)
			return units[i].ours;
	return (struct rfl_cupti_unit){ "", 1 };
}

/* Metrics of the set that CUPTI has for the chip: an older one may lack some. */
static enum rfl_rc choose(struct rfl_cupti_plan *p, struct rfl_cupti_planned *s,
			  const struct rfl_metric_set *set, struct rfl_err *err)
{
	for (size_t i = 0; i < set->n; i++) {
		struct rfl_cupti_metric_info info;
		struct rfl_err why = RFL_ERR_INIT;
		const char *name = rfl_arena_strdup(p->arena, set->names[i]);
		enum rfl_rc rc = name ? rfl_cupti_metric(s->host, name, &info, &why) : RFL_ENOMEM;

		if (rc == RFL_ENOTFOUND) {
			s->absent[s->nabsent++] = name;
			continue;
		}
		if (rc != RFL_OK)
			return rfl_fail(err, rc, why.native, "%s",
					name ? why.msg : "out of memory");
		s->metrics[s->n] = name;
		s->units[s->n++] = unit_of(info.unit);
	}
	return RFL_OK;
}

static enum rfl_rc plan_session(struct rfl_cupti_plan *p, struct rfl_cupti_planned *s,
				const char *precision, struct rfl_err *err)
{
	struct rfl_metric_set set = { .n = 0 };
	size_t passes = 0;
	enum rfl_rc rc =
		rfl_metric_set_choose(s->host, p->formulas, s->set, precision, &set, &passes, err);

	if (rc == RFL_OK)
		rc = choose(p, s, &set, err);
	if (rc != RFL_OK || s->n == 0)
		return rc;
	return rfl_cupti_config(s->host, s->metrics, s->n, &s->config, &s->config_size, &s->passes,
				err);
}

static enum rfl_rc plan_row(struct rfl_cupti_plan *p, size_t row, struct rfl_cupti *lib,
			    const char *chip, const uint8_t *availability, const char *precision,
			    struct rfl_err *err)
{
	struct rfl_cupti_planned *s = &p->sessions[p->n++];
	enum rfl_rc rc;

	s->name = rfl_counter_set_name(sets[row]);
	s->set = sets[row];
	s->metrics = rfl_arena_array(p->arena, RFL_METRIC_SET_MAX, sizeof(*s->metrics));
	s->absent = rfl_arena_array(p->arena, RFL_METRIC_SET_MAX, sizeof(*s->absent));
	s->units = rfl_arena_array(p->arena, RFL_METRIC_SET_MAX, sizeof(*s->units));
	if (!s->metrics || !s->absent || !s->units)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rc = rfl_cupti_host_open(lib, chip, availability, &s->host, &s->why);
	if (rc == RFL_OK)
		rc = plan_session(p, s, precision, &s->why);
	return rc == RFL_ENOMEM ? rfl_fail(err, rc, 0, "%s", s->why.msg) : RFL_OK;
}

/* ------------------------------------------------------------------ saving a pass */

static bool configure(struct rfl_cupti_planned *s)
{
	free(s->config);
	s->config = NULL;
	return rfl_cupti_config(s->host, s->metrics, s->n, &s->config, &s->config_size, &s->passes,
				&s->why) == RFL_OK;
}

/* Whether a session can take a metric in so many passes. */
static bool takes(struct rfl_cupti_planned *s, const char *metric, struct rfl_cupti_unit unit,
		  size_t passes)
{
	if (!s || s->n == RFL_METRIC_SET_MAX)
		return false;
	s->metrics[s->n] = metric;
	s->units[s->n++] = unit;
	if (configure(s) && s->passes <= passes)
		return true;
	s->n--;
	rfl_err_clear(&s->why);
	(void)configure(s);
	return false;
}

static void remove_metric(struct rfl_cupti_planned *s, size_t i)
{
	s->n--;
	memmove(&s->metrics[i], &s->metrics[i + 1], (s->n - i) * sizeof(*s->metrics));
	memmove(&s->units[i], &s->units[i + 1], (s->n - i) * sizeof(*s->units));
}

/* Counters of executed instructions are a pass of their own. What else the FLOPs want (moves of
 * registers that look like half-precision arithmetic, to be subtracted) goes to the core when it is
 * free there, to the audit when there is one, and is else left out: it is small, and a pass dear.
 */
static void relieve(struct rfl_cupti_planned *flops, struct rfl_cupti_planned *core,
		    struct rfl_cupti_planned *audit)
{
	for (size_t i = flops->n; i-- > 0;) {
		const char *metric = flops->metrics[i];
		struct rfl_cupti_unit unit = flops->units[i];

		if (strstr(metric, "__sass_"))
			continue;
		if (!takes(core, metric, unit, core ? core->passes : 0) &&
		    !takes(audit, metric, unit, SIZE_MAX))
			flops->left_out = metric;
		remove_metric(flops, i);
		if (!configure(flops))
			return;
	}
}

static struct rfl_cupti_planned *planned(struct rfl_cupti_plan *p, unsigned set)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->sessions[i].set == set && p->sessions[i].why.rc == RFL_OK &&
		    p->sessions[i].n > 0)
			return &p->sessions[i];
	return NULL;
}

enum rfl_rc rfl_cupti_plan_new(struct rfl_cupti *lib, const char *chip, const uint8_t *availability,
			       unsigned wanted, const char *precision, struct rfl_cupti_plan **ret,
			       struct rfl_err *err)
{
	struct rfl_cupti_plan *p = calloc(1, sizeof(*p));
	struct rfl_cupti_planned *core, *flops;
	enum rfl_rc rc;

	if (!p)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	p->arena = rfl_arena_new(0);
	p->sessions = calloc(RFL_ARRAY_LEN(sets), sizeof(*p->sessions));
	if (!p->arena || !p->sessions) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	rc = rfl_formulas_new(chip, &p->formulas, err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(sets) && rc == RFL_OK; i++)
		if (wanted & sets[i])
			rc = plan_row(p, i, lib, chip, availability, precision, err);
	if (rc != RFL_OK)
		goto done;
	core = planned(p, RFL_SET_CORE);
	flops = planned(p, RFL_SET_FLOPS);
	if (flops && flops->passes > 1)
		relieve(flops, core, planned(p, RFL_SET_AUDIT));
	*ret = p;
	p = NULL;
done:
	rfl_cupti_plan_free(p);
	return rc;
}

enum rfl_rc rfl_cupti_plan_amounts(const struct rfl_cupti_plan *p,
				   const struct rfl_cupti_planned *session, const double *values,
				   double ret[RFL_QUANTITY_COUNT], struct rfl_err *err)
{
	size_t n = rfl_formulas_slots(p->formulas);
	double *slots = rfl_alloc_array(n + 1, sizeof(*slots));

	if (!slots)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %zu metrics", n);
	for (size_t i = 0; i < n; i++)
		slots[i] = NAN;
	for (size_t i = 0; i < session->n; i++) {
		int slot = rfl_formulas_slot(p->formulas, session->metrics[i],
					     strlen(session->metrics[i]));

		if (slot >= 0)
			slots[slot] = values[i];
	}
	rfl_formulas_eval(p->formulas, slots, ret, NULL);
	free(slots);
	return RFL_OK;
}

void rfl_cupti_plan_free(struct rfl_cupti_plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		rfl_cupti_host_close(p->sessions[i].host);
		free(p->sessions[i].config);
	}
	free(p->sessions);
	rfl_formulas_free(p->formulas);
	rfl_arena_free(p->arena);
	free(p);
}
