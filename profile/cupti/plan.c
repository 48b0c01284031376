/*
 * plan.c - sessions as CUPTI can count them on the chip.
 */
#include "profile/cupti/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/cupti/sets.h"
#include "profile/source.h"

/* In the order in which they are counted. Counters of instructions patch every kernel: that comes
 * last, when all else has been counted. */
static const unsigned sets[] = { RFL_SET_CORE, RFL_SET_AUDIT, RFL_SET_LINKS, RFL_SET_FLOPS };

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

static enum rfl_rc configure(struct rfl_cupti_planned *s, struct rfl_err *err)
{
	free(s->config);
	s->config = NULL;
	return rfl_cupti_config(s->host, s->metrics.names, s->metrics.n, &s->config,
				&s->config_size, &s->passes, NULL, err);
}

/* Links are counted for the whole device. Such counters are not in the image of what is available,
 * which CUPTI makes for a context: with the image it refuses them, without it they have no value
 * where there are none. */
static enum rfl_rc plan_row(struct rfl_cupti_plan *p, size_t row, struct rfl_cupti *lib,
			    const char *chip, const uint8_t *availability, const char *precision,
			    struct rfl_err *err)
{
	struct rfl_cupti_planned *s = &p->sessions[p->n++];
	size_t passes = 0;
	enum rfl_rc rc;

	s->name = rfl_counter_set_name(sets[row]);
	s->set = sets[row];
	rc = rfl_cupti_host_open(lib, chip, s->set == RFL_SET_LINKS ? NULL : availability, &s->host,
				 &s->why);
	if (rc == RFL_OK)
		rc = rfl_metric_set_choose(s->host, p->formulas, s->set, precision, &s->metrics,
					   &passes, &s->why);
	if (rc == RFL_OK && s->metrics.n > 0)
		rc = configure(s, &s->why);
	return rc == RFL_ENOMEM ? rfl_fail(err, rc, 0, "%s", s->why.msg) : RFL_OK;
}

/* ------------------------------------------------------------------ saving a pass */

/* Whether a session can take a metric in so many passes. */
static bool takes(struct rfl_cupti_planned *s, const char *metric, size_t passes)
{
	if (!s || s->metrics.n == RFL_METRIC_SET_MAX)
		return false;
	s->metrics.names[s->metrics.n++] = metric;
	if (configure(s, NULL) == RFL_OK && s->passes <= passes)
		return true;
	s->metrics.n--;
	(void)!configure(s, &s->why);
	return false;
}

/* Counters of executed instructions are a pass of their own. What else the FLOPs want (moves of
 * registers that look like half-precision arithmetic, to be subtracted) goes to the core when it is
 * free there, to the audit when there is one, and is else left out: it is small, and a pass dear.
 */
static void relieve(struct rfl_cupti_planned *flops, struct rfl_cupti_planned *core,
		    struct rfl_cupti_planned *audit)
{
	struct rfl_metric_set *m = &flops->metrics;

	for (size_t i = m->n; i-- > 0;) {
		if (strstr(m->names[i], "__sass_"))
			continue;
		rfl_metric_set_take_out(
			m, i, "left out, as it takes a pass of its own: the audit counts it");
		if (takes(core, m->absent[m->nabsent - 1], core ? core->passes : 0) ||
		    takes(audit, m->absent[m->nabsent - 1], SIZE_MAX))
			m->nabsent--;
		if (configure(flops, &flops->why) != RFL_OK)
			return;
	}
}

/* Metrics that are counted have their unit. */
static enum rfl_rc find_units(struct rfl_cupti_planned *s, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < s->metrics.n && rc == RFL_OK; i++) {
		struct rfl_cupti_metric_info info = { .unit = "" };

		rc = rfl_cupti_metric(s->host, s->metrics.names[i], &info, err);
		s->units[i] = unit_of(info.unit);
	}
	return rc;
}

static struct rfl_cupti_planned *planned(struct rfl_cupti_plan *p, unsigned set)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->sessions[i].set == set && p->sessions[i].why.rc == RFL_OK &&
		    p->sessions[i].metrics.n > 0)
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
	p->sessions = calloc(RFL_ARRAY_LEN(sets), sizeof(*p->sessions));
	if (!p->sessions) {
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
	for (size_t i = 0; i < p->n && rc == RFL_OK; i++)
		if (p->sessions[i].why.rc == RFL_OK)
			rc = find_units(&p->sessions[i], err);
	if (rc != RFL_OK)
		goto done;
	*ret = p;
	p = NULL;
done:
	rfl_cupti_plan_free(p);
	return rc;
}

void rfl_cupti_planned_text(const struct rfl_cupti_planned *s, struct rfl_buf *out)
{
	const struct rfl_metric_set *m = &s->metrics;

	rfl_buf_printf(out, "%zu metrics in %zu pass%s", m->n, s->passes,
		       s->passes == 1 ? "" : "es");
	for (size_t i = 0; i < m->nabsent; i++)
		rfl_buf_printf(out, "%s %s (%s)", i ? "," : "; without", m->absent[i],
			       m->why_absent[i]);
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
	for (size_t i = 0; i < session->metrics.n; i++) {
		const char *name = session->metrics.names[i];
		int slot = rfl_formulas_slot(p->formulas, name, strlen(name));

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
	free(p);
}
