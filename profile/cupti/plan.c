/*
 * plan.c - chooses the metrics for the requested quantities, and plans the sessions that count
 * them.
 */
#include "profile/cupti/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- sets of metrics ---- */

/* The set of each quantity; 0: matrix FLOPs, for which the set depends on the precision. */
static const struct {
	unsigned set;
	enum rfl_quantity quantity;
} rows[] = {
	{ RFL_SET_CORE, RFL_QUANTITY_TIME },        { RFL_SET_CORE, RFL_QUANTITY_CYCLES },
	{ RFL_SET_CORE, RFL_QUANTITY_DRAM_READ },   { RFL_SET_CORE, RFL_QUANTITY_DRAM_WRITE },
	{ RFL_SET_CORE, RFL_QUANTITY_L2_FILL }, /* for chips without DRAM counters */
	{ RFL_SET_CORE, RFL_QUANTITY_L2 },          { RFL_SET_CORE, RFL_QUANTITY_L1 },
	{ RFL_SET_FLOPS, RFL_QUANTITY_FLOPS_FP16 }, { RFL_SET_FLOPS, RFL_QUANTITY_FLOPS_FP32 },
	{ RFL_SET_FLOPS, RFL_QUANTITY_FLOPS_FP64 }, { RFL_SET_LINKS, RFL_QUANTITY_PCIE_READ },
	{ RFL_SET_LINKS, RFL_QUANTITY_PCIE_WRITE }, { RFL_SET_LINKS, RFL_QUANTITY_NVLINK_RX },
	{ RFL_SET_LINKS, RFL_QUANTITY_NVLINK_TX },  { 0, RFL_QUANTITY_FLOPS_TENSOR_FP16 },
	{ 0, RFL_QUANTITY_FLOPS_TENSOR_BF16 },      { 0, RFL_QUANTITY_FLOPS_TENSOR_TF32 },
	{ 0, RFL_QUANTITY_FLOPS_TENSOR_FP64 },      { 0, RFL_QUANTITY_FLOPS_TENSOR_FP8 },
	{ 0, RFL_QUANTITY_FLOPS_TENSOR_FP4 },
};

enum rfl_quantity rfl_precision_matrix(const char *precision)
{
	static const struct {
		const char *precision;
		enum rfl_quantity quantity;
	} table[] = {
		{ "fp32", RFL_QUANTITY_FLOPS_TENSOR_TF32 },
		{ "tf32", RFL_QUANTITY_FLOPS_TENSOR_TF32 },
		{ "amp", RFL_QUANTITY_FLOPS_TENSOR_FP16 },
		{ "fp16", RFL_QUANTITY_FLOPS_TENSOR_FP16 },
		{ "bf16", RFL_QUANTITY_FLOPS_TENSOR_BF16 },
		{ "fp64", RFL_QUANTITY_FLOPS_TENSOR_FP64 },
		{ "fp8", RFL_QUANTITY_FLOPS_TENSOR_FP8 },
	};

	for (size_t i = 0; precision && i < RFL_ARRAY_LEN(table); i++)
		if (strcmp(table[i].precision, precision) == 0)
			return table[i].quantity;
	return RFL_QUANTITY_COUNT;
}

static void add(struct rfl_metric_set *s, const struct rfl_formulas *f, int slot)
{
	for (size_t i = 0; slot >= 0 && i < s->n; i++)
		if (strcmp(s->names[i], f->slots[slot].name) == 0)
			return;
	if (slot >= 0 && s->n < RFL_METRIC_SET_MAX)
		s->names[s->n++] = f->slots[slot].name;
}

/* Add the metrics of a way. Returns false and adds nothing if it needs names that exist only in
 * reports, or rates instead of counts. */
static bool add_way(struct rfl_metric_set *s, const struct rfl_formulas *f,
		    const struct rfl_formula_way *way)
{
	struct rfl_metric_set with = *s;

	for (const struct rfl_term *t = way->terms; t < way->terms + way->nterms; t++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(t->slot); i++) {
			if (t->quantity >= 0 || (t->slot[i] >= 0 && f->slots[t->slot[i]].is_report))
				return false;
			add(&with, f, t->slot[i]);
		}
	*s = with;
	return way->nterms > 0;
}

unsigned rfl_metric_set_of(enum rfl_quantity q, const char *precision)
{
	const unsigned matrix = q == rfl_precision_matrix(precision) ? RFL_SET_CORE : RFL_SET_AUDIT;

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (rows[i].quantity == q)
			return rows[i].set ? rows[i].set : matrix;
	return 0;
}

int rfl_metric_set_way(const struct rfl_formulas *f, enum rfl_quantity q,
		       const struct rfl_metric_set *within)
{
	for (size_t way = 0; way < f->quantities[q].nways; way++) {
		struct rfl_metric_set all = { .n = 0 };

		if (within)
			all = *within;
		if (add_way(&all, f, &f->quantities[q].ways[way]) &&
		    (!within || all.n == within->n))
			return (int)way;
	}
	return -1;
}

void rfl_metric_set_add_sets(struct rfl_metric_set *s, const struct rfl_formulas *f, unsigned sets,
			     const char *precision)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		const enum rfl_quantity q = rows[i].quantity;
		const struct rfl_formula_quantity *quantity = &f->quantities[q];
		const int way = rfl_metric_set_way(f, q, NULL);

		if (!(rfl_metric_set_of(q, precision) & sets) || way < 0)
			continue;
		(void)add_way(s, f, &quantity->ways[way]);
		if (quantity->less.reason)
			add(s, f, (int)quantity->less.slot);
	}
}

/* Remove the i-th name. */
static void take_out(struct rfl_metric_set *s, size_t i, const char *why)
{
	s->absent[s->nabsent] = s->names[i];
	s->why_absent[s->nabsent++] = why;
	s->n--;
	memmove(&s->names[i], &s->names[i + 1], (s->n - i) * sizeof(s->names[0]));
}

/* Remove the metrics that CUPTI lacks for the chip or refuses on this device. */
static enum rfl_rc fit(struct rfl_cupti_host *h, struct rfl_metric_set *s, size_t *passes,
		       struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;
	size_t refused = 0;

	*passes = 0;
	while (s->n > 0) {
		rfl_err_clear(&why);
		rc = rfl_cupti_passes(h, s->names, s->n, passes, &refused, &why);
		if (rc != RFL_ENOTFOUND && rc != RFL_EUNSUPPORTED)
			break;
		take_out(s, refused,
			 rc == RFL_ENOTFOUND ? "this CUPTI lacks the metric for the chip"
					     : "CUPTI refuses to count it on this device");
	}
	if (rc == RFL_OK || rc == RFL_ENOTFOUND)
		return RFL_OK;
	return rfl_err_pass(err, &why);
}

enum rfl_rc rfl_metric_set_choose(struct rfl_cupti_host *h, const struct rfl_formulas *f,
				  unsigned sets, const char *precision, struct rfl_metric_set *ret,
				  size_t *passes, struct rfl_err *err)
{
	const enum rfl_quantity own = rfl_precision_matrix(precision);
	const bool has_own =
		own < RFL_QUANTITY_COUNT && (sets & RFL_SET_CORE) && !(sets & RFL_SET_AUDIT);
	const size_t ways = has_own ? f->quantities[own].nways : 0;
	struct rfl_metric_set base = { .n = 0 };
	size_t most_passes = SIZE_MAX, least_cost = SIZE_MAX;

	rfl_metric_set_add_sets(&base, f, sets, NULL);
	*ret = base;
	enum rfl_rc rc = fit(h, ret, passes, err);
	/* checking that a run in fp32 does not use tf32 is worth one more pass, not two */
	if (has_own && strcmp(precision, "fp32") == 0)
		most_passes = *passes + 1;
	for (size_t i = 0; i < ways && rc == RFL_OK; i++) {
		const struct rfl_formula_way *way = &f->quantities[own].ways[i];
		struct rfl_metric_set with = base;
		size_t n = 0, cost;

		if (!add_way(&with, f, way))
			continue;
		rc = fit(h, &with, &n, err);
		/* a complete count is worth any number of passes */
		cost = (2 * with.nabsent + (way->kind != RFL_WAY_FULL)) * 1000 + n;
		if (rc != RFL_OK || n > most_passes || cost >= least_cost)
			continue;
		*ret = with;
		*passes = n;
		least_cost = cost;
	}
	return rc;
}

enum rfl_rc rfl_metric_set_ncu(const struct rfl_formulas *f, struct rfl_cupti_host *h,
			       const char *precision, struct rfl_metric_set *ret,
			       struct rfl_err *err)
{
	struct rfl_metric_set set = { .n = 0 };

	rfl_metric_set_add_sets(
		&set, f, RFL_SET_CORE | RFL_SET_FLOPS | (precision ? 0 : RFL_SET_AUDIT), precision);
	*ret = (struct rfl_metric_set){ .n = 0 };
	for (size_t i = 0; i < set.n; i++)
		if (!h || rfl_cupti_metric(h, set.names[i], NULL, NULL) == RFL_OK)
			ret->names[ret->n++] = set.names[i];
	if (ret->n == 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"no metrics are known for this chip (formulas '%s'); use another "
				"--chip",
				f->family);
	return RFL_OK;
}

void rfl_metric_set_text(const struct rfl_metric_set *s, struct rfl_buf *out)
{
	for (size_t i = 0; i < s->n; i++)
		rfl_buf_printf(out, "%s%s", i ? "," : "", s->names[i]);
}

/* ---- sessions ---- */

/* In the order of counting. Instruction counters patch every kernel, so they come last. */
static const unsigned sets[RFL_CUPTI_SESSIONS] = { RFL_SET_CORE, RFL_SET_AUDIT, RFL_SET_LINKS,
						   RFL_SET_FLOPS };

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

static enum rfl_rc configure(struct rfl_cupti_planned *s, struct rfl_err *err)
{
	free(s->config);
	s->config = NULL;
	return rfl_cupti_config(s->host, s->metrics.names, s->metrics.n, &s->config,
				&s->config_size, &s->passes, NULL, err);
}

/* Add a metric to a session unless it then needs more than `passes` passes. */
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

/* Counters of executed instructions need a separate pass. Move the other metrics of the FLOPs
 * session (register moves that are counted as half-precision arithmetic and subtracted) to the core
 * if that adds no pass, otherwise to the audit, or omit them: they are small, and a pass is
 * slow. */
static void move_others(struct rfl_cupti_planned *flops, struct rfl_cupti_planned *core,
			struct rfl_cupti_planned *audit)
{
	struct rfl_metric_set *m = &flops->metrics;

	for (size_t i = m->n; i-- > 0;) {
		if (strstr(m->names[i], "__sass_"))
			continue;
		take_out(m, i, "skipped: it needs a separate pass; request the audit to count it");
		if (takes(core, m->absent[m->nabsent - 1], core ? core->passes : 0) ||
		    takes(audit, m->absent[m->nabsent - 1], SIZE_MAX))
			m->nabsent--;
		if (configure(flops, &flops->why) != RFL_OK)
			return;
	}
}

/* The session of a set; NULL if it cannot be counted. */
static struct rfl_cupti_planned *planned(struct rfl_cupti_plan *p, unsigned set)
{
	for (struct rfl_cupti_planned *s = p->sessions; s < p->sessions + p->n; s++)
		if (s->set == set && s->why.rc == RFL_OK && s->metrics.n > 0)
			return s;
	return NULL;
}

enum rfl_rc rfl_cupti_plan_new(struct rfl_cupti *lib, const char *chip, const uint8_t *availability,
			       unsigned wanted, const char *precision, struct rfl_cupti_plan **ret,
			       struct rfl_err *err)
{
	struct rfl_cupti_plan *p = rfl_alloc_array(1, sizeof(*p));
	struct rfl_cupti_planned *flops;

	enum rfl_rc rc = rfl_formulas_new(chip, &p->formulas, err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(sets) && rc == RFL_OK; i++) {
		struct rfl_cupti_planned *s = &p->sessions[p->n];
		/* Links are counted for the whole device, but CUPTI's availability image describes
		 * a context: with the image, CUPTI refuses them; without it, they lack values on
		 * devices without links. */
		const uint8_t *available = sets[i] == RFL_SET_LINKS ? NULL : availability;
		size_t passes = 0;

		if (!(wanted & sets[i]))
			continue;
		p->n++;
		s->name = rfl_counter_set_name(sets[i]);
		s->set = sets[i];
		if (!lib)
			rfl_metric_set_add_sets(&s->metrics, p->formulas, s->set, precision);
		else if (rfl_cupti_host_open(lib, chip, available, &s->host, &s->why) == RFL_OK &&
			 rfl_metric_set_choose(s->host, p->formulas, s->set, precision, &s->metrics,
					       &passes, &s->why) == RFL_OK &&
			 s->metrics.n > 0)
			(void)!configure(s, &s->why);
	}
	flops = planned(p, RFL_SET_FLOPS);
	if (flops && flops->passes > 1)
		move_others(flops, planned(p, RFL_SET_CORE), planned(p, RFL_SET_AUDIT));
	for (struct rfl_cupti_planned *s = p->sessions; s < p->sessions + p->n; s++)
		for (size_t i = 0; lib && s->why.rc == RFL_OK && rc == RFL_OK && i < s->metrics.n;
		     i++) {
			struct rfl_cupti_host_metric_properties info = { .unit = "" };

			rc = rfl_cupti_metric(s->host, s->metrics.names[i], &info, err);
			s->units[i] = (struct rfl_cupti_unit){ "", 1 };
			for (size_t k = 0; k < RFL_ARRAY_LEN(units); k++)
				if (strcmp(units[k].theirs, info.unit) == 0)
					s->units[i] = units[k].ours;
		}
	if (rc == RFL_OK)
		*ret = p;
	else
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

void rfl_cupti_plan_free(struct rfl_cupti_plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		rfl_cupti_host_close(p->sessions[i].host);
		free(p->sessions[i].config);
	}
	rfl_formulas_free(p->formulas);
	free(p);
}
