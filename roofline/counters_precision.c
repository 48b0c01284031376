/*
 * counters_precision.c - which FLOPs are of the precision that a run is labelled with, and which
 * ceiling every part of them stands under.
 */
#include "roofline/counters_parts.h"

#include <math.h>

#include "base/text.h"

static const struct own {
	const char *backend, *precision;
	enum rfl_quantity parts[3];
	size_t n;
	double least; /* of all FLOPs: below that they are of another precision */
} own_parts[] = {
	{ "cuda", "fp32", { RFL_QUANTITY_FLOPS_FP32 }, 1, 0.9 },
	{ "cuda", "tf32", { RFL_QUANTITY_FLOPS_TENSOR_TF32 }, 1, 0.5 },
	{ "cuda", "amp", { RFL_QUANTITY_FLOPS_TENSOR_FP16 }, 1, 0.5 },
	{ "cuda", "fp16", { RFL_QUANTITY_FLOPS_TENSOR_FP16 }, 1, 0.5 },
	{ "cuda", "bf16", { RFL_QUANTITY_FLOPS_TENSOR_BF16 }, 1, 0.5 },
	{ "cpu", "fp32", { RFL_QUANTITY_FLOPS_FP32, RFL_QUANTITY_FLOPS_MIXED }, 2, 0.9 },
	{ "cpu",
	  "amp",
	  { RFL_QUANTITY_FLOPS_TENSOR_BF16, RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_MIXED },
	  3,
	  0.5 },
	{ "cpu",
	  "bf16",
	  { RFL_QUANTITY_FLOPS_TENSOR_BF16, RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_MIXED },
	  3,
	  0.5 },
	{ "cpu",
	  "fp16",
	  { RFL_QUANTITY_FLOPS_TENSOR_FP16, RFL_QUANTITY_FLOPS_FP16, RFL_QUANTITY_FLOPS_MIXED },
	  3,
	  0.5 },
};

static const struct own *find_own(const struct rfl_config *c)
{
	const struct rfl_ledger_row *row = c->row;

	for (size_t i = 0; i < RFL_ARRAY_LEN(own_parts); i++)
		if (rfl_text_same(own_parts[i].backend, row->backend) &&
		    rfl_text_same(own_parts[i].precision, row->precision))
			return &own_parts[i];
	return NULL;
}

static bool is_own(const struct own *own, enum rfl_quantity q)
{
	for (size_t i = 0; i < own->n; i++)
		if (own->parts[i] == q)
			return true;
	return false;
}

const char *rfl_counters_ceiling(enum rfl_quantity part)
{
	static const char *const keys[RFL_QUANTITY_COUNT] = {
		[RFL_QUANTITY_FLOPS_FP16] = "fp16.vector",
		[RFL_QUANTITY_FLOPS_FP32] = "fp32.vector",
		[RFL_QUANTITY_FLOPS_FP64] = "fp64.vector",
		[RFL_QUANTITY_FLOPS_TENSOR_FP16] = "fp16.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_BF16] = "bf16.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_TF32] = "tf32.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP64] = "fp64.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP8] = "fp8.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP4] = "fp4.matrix",
	};

	return keys[part];
}

/* How much of the FLOPs is of the run's precision, and what the rest mostly is. */
void rfl_counters__precision(struct rfl_config *config)
{
	struct rfl_measured *m = &config->measured;
	const struct own *own = find_own(config);
	double all = 0, mine = 0, most = 0;

	if (!own)
		return;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		if (!rfl_quantity_is_flops((enum rfl_quantity)q) || isnan(m->part[q]))
			continue;
		all += m->part[q];
		if (is_own(own, (enum rfl_quantity)q)) {
			mine += m->part[q];
		} else if (m->part[q] > most) {
			most = m->part[q];
			m->foreign = (enum rfl_quantity)q;
		}
	}
	if (!(all > 0))
		return;
	m->expected_share = mine / all;
	if (m->expected_share >= own->least)
		m->foreign = RFL_QUANTITY_COUNT;
}

enum rfl_quantity rfl_counters__main_part(const struct rfl_config *config)
{
	const struct own *own = find_own(config);

	return own ? own->parts[0] : RFL_QUANTITY_FLOPS;
}

enum rfl_quantity rfl_counters__own_part(const struct rfl_config *config,
					 const struct rfl_counted *counted)
{
	const struct own *own = find_own(config);

	for (size_t i = 0; own && i < own->n; i++)
		if (!isnan(rfl_counters__total(counted, own->parts[i]).value))
			return own->parts[i];
	return RFL_QUANTITY_FLOPS;
}

bool rfl_counters_own_precision(const struct rfl_measured *m)
{
	return m->foreign == RFL_QUANTITY_COUNT;
}

/* The FLOPs count when the precision of the run is among what was counted. */
bool rfl_counters__knows(const struct rfl_config *config, const struct rfl_counted *counted,
			 enum rfl_quantity q)
{
	const struct own *own = find_own(config);
	struct rfl_amount a = rfl_counters__total(counted, q);
	bool mine = !own || q != RFL_QUANTITY_FLOPS ||
		    rfl_counters__own_part(config, counted) != RFL_QUANTITY_FLOPS;

	if (counted->left_out || isnan(a.value))
		return false;
	/* an fp32 run may turn out to be one of TF32 */
	if (!mine && own->parts[0] == RFL_QUANTITY_FLOPS_FP32)
		mine = rfl_counters__total(counted, RFL_QUANTITY_FLOPS_TENSOR_TF32).value > 0;
	return mine;
}
