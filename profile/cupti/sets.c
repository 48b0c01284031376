/*
 * sets.c - sets of metrics, by the quantities that they give.
 */
#include "profile/cupti/sets.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* What belongs to a set on every GPU; matrix FLOPs depend on the precision and come besides. */
static const struct {
	unsigned set;
	enum rfl_quantity quantity;
} rows[] = {
	{ RFL_SET_CORE, RFL_QUANTITY_TIME },        { RFL_SET_CORE, RFL_QUANTITY_CYCLES },
	{ RFL_SET_CORE, RFL_QUANTITY_DRAM_READ },   { RFL_SET_CORE, RFL_QUANTITY_DRAM_WRITE },
	{ RFL_SET_CORE, RFL_QUANTITY_L2_FILL }, /* where a chip cannot count its memory */
	{ RFL_SET_CORE, RFL_QUANTITY_L2 },          { RFL_SET_CORE, RFL_QUANTITY_L1 },
	{ RFL_SET_FLOPS, RFL_QUANTITY_FLOPS_FP16 }, { RFL_SET_FLOPS, RFL_QUANTITY_FLOPS_FP32 },
	{ RFL_SET_FLOPS, RFL_QUANTITY_FLOPS_FP64 }, { RFL_SET_LINKS, RFL_QUANTITY_PCIE_READ },
	{ RFL_SET_LINKS, RFL_QUANTITY_PCIE_WRITE }, { RFL_SET_LINKS, RFL_QUANTITY_NVLINK_RX },
	{ RFL_SET_LINKS, RFL_QUANTITY_NVLINK_TX },
};

static const enum rfl_quantity matrix[] = {
	RFL_QUANTITY_FLOPS_TENSOR_FP16, RFL_QUANTITY_FLOPS_TENSOR_BF16,
	RFL_QUANTITY_FLOPS_TENSOR_TF32, RFL_QUANTITY_FLOPS_TENSOR_FP64,
	RFL_QUANTITY_FLOPS_TENSOR_FP8,  RFL_QUANTITY_FLOPS_TENSOR_FP4,
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
	const char *name;

	if (slot < 0)
		return;
	name = rfl_formulas_slot_name(f, (size_t)slot);
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->names[i], name) == 0)
			return;
	if (s->n < RFL_METRIC_SET_MAX)
		s->names[s->n++] = name;
}

static bool can_ask(const struct rfl_formulas *f, int slot)
{
	return slot < 0 || !rfl_formulas_slot_is_report(f, (size_t)slot);
}

/* Whether a way takes metrics of the chip only, and counts rather than rates. */
static bool is_counted(const struct rfl_formulas *f, const struct rfl_term *terms, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!can_ask(f, (int)terms[i].slot) || !can_ask(f, terms[i].per_slot) ||
		    !can_ask(f, terms[i].over_slot) || terms[i].per_quantity >= 0)
			return false;
	return n > 0;
}

static bool add_way(struct rfl_metric_set *s, const struct rfl_formulas *f, enum rfl_quantity q,
		    size_t way)
{
	size_t n = 0;
	const struct rfl_term *terms = rfl_formula_way(f, q, way, &n);

	if (!is_counted(f, terms, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		add(s, f, (int)terms[i].slot);
		add(s, f, terms[i].per_slot);
		add(s, f, terms[i].over_slot);
	}
	return true;
}

unsigned rfl_metric_set_of(enum rfl_quantity q, const char *precision)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (rows[i].quantity == q)
			return rows[i].set;
	for (size_t i = 0; i < RFL_ARRAY_LEN(matrix); i++)
		if (matrix[i] == q)
			return q == rfl_precision_matrix(precision) ? RFL_SET_CORE : RFL_SET_AUDIT;
	return 0;
}

int rfl_metric_set_way(const struct rfl_formulas *f, enum rfl_quantity q,
		       const struct rfl_metric_set *within)
{
	for (size_t way = 0; way < rfl_formula_ways(f, q); way++) {
		struct rfl_metric_set s = { .n = 0 }, all;

		if (!add_way(&s, f, q, way))
			continue;
		if (!within)
			return (int)way;
		all = *within;
		(void)add_way(&all, f, q, way);
		if (all.n == within->n)
			return (int)way;
	}
	return -1;
}

/* Quantities of a set, and what has to be taken off them. */
static void add_quantity(struct rfl_metric_set *s, const struct rfl_formulas *f,
			 enum rfl_quantity q)
{
	const int way = rfl_metric_set_way(f, q, NULL);

	if (way >= 0 && add_way(s, f, q, (size_t)way))
		add(s, f, rfl_formula_subtracted(f, q, NULL));
}

void rfl_metric_set_add_sets(struct rfl_metric_set *s, const struct rfl_formulas *f, unsigned sets,
			     const char *precision)
{
	const enum rfl_quantity own = rfl_precision_matrix(precision);

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (rows[i].set & sets)
			add_quantity(s, f, rows[i].quantity);
	for (size_t i = 0; i < RFL_ARRAY_LEN(matrix); i++)
		if (sets & (matrix[i] == own ? RFL_SET_CORE : RFL_SET_AUDIT))
			add_quantity(s, f, matrix[i]);
}

void rfl_metric_set_take_out(struct rfl_metric_set *s, size_t i, const char *why)
{
	s->absent[s->nabsent] = s->names[i];
	s->why_absent[s->nabsent++] = why;
	s->n--;
	memmove(&s->names[i], &s->names[i + 1], (s->n - i) * sizeof(s->names[0]));
}

/* Drops each metric that CUPTI lacks for the chip or refuses on this device, and keeps the others.
 */
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
		rfl_metric_set_take_out(s, refused,
					rc == RFL_ENOTFOUND
						? "this CUPTI does not have the metric for the chip"
						: "CUPTI refuses to count it on this device");
	}
	if (rc == RFL_OK || rc == RFL_ENOTFOUND)
		return RFL_OK;
	return rfl_fail(err, rc, why.native, "%s", why.msg);
}

enum rfl_rc rfl_metric_set_choose(struct rfl_cupti_host *h, const struct rfl_formulas *f,
				  unsigned sets, const char *precision, struct rfl_metric_set *ret,
				  size_t *passes, struct rfl_err *err)
{
	const enum rfl_quantity own = rfl_precision_matrix(precision);
	const bool has_own =
		own < RFL_QUANTITY_COUNT && (sets & RFL_SET_CORE) && !(sets & RFL_SET_AUDIT);
	const size_t ways = has_own ? rfl_formula_ways(f, own) : 0;
	struct rfl_metric_set base = { .n = 0 };
	size_t most_passes = SIZE_MAX, least_cost = SIZE_MAX;
	enum rfl_rc rc;

	rfl_metric_set_add_sets(&base, f, sets, NULL);
	*ret = base;
	rc = fit(h, ret, passes, err);
	/* a run in fp32 should have none of tf32: to make sure is worth one pass, not two */
	if (has_own && strcmp(precision, "fp32") == 0)
		most_passes = *passes + 1;
	for (size_t way = 0; way < ways && rc == RFL_OK; way++) {
		const bool whole = rfl_formula_way_kind(f, own, way) == RFL_WAY_FULL;
		struct rfl_metric_set with = base;
		size_t n = 0, cost;

		if (!add_way(&with, f, own, way))
			continue;
		rc = fit(h, &with, &n, err);
		/* a part of the count that is missing is dearer than any number of passes */
		cost = (2 * with.nabsent + !whole) * 1000 + n;
		if (rc != RFL_OK || n > most_passes || cost >= least_cost)
			continue;
		*ret = with;
		*passes = n;
		least_cost = cost;
	}
	return rc;
}
