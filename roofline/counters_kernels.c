/*
 * counters_kernels.c - sums over the ranges of a capture: which FLOPs are of the precision that the
 * run is labelled with, how much of the time they explain, and where time goes without a FLOP.
 */
#include "roofline/counters_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "profile/capture.h"
#include "profile/cupti/kernel_class.h"

struct rfl_amount rfl_counters__total(const struct rfl_joined *counted, enum rfl_quantity q)
{
	return counted->capture->total[q];
}

/* --- precision ------------------------------------------------------------------------------- */

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

/* The first part of that precision that a capture knows; flops.total when it knows none. */
static enum rfl_quantity own_part(const struct rfl_config *config, const struct rfl_joined *counted)
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
bool rfl_counters__knows(const struct rfl_config *config, const struct rfl_joined *counted,
			 enum rfl_quantity q)
{
	const struct own *own = find_own(config);
	struct rfl_amount a = rfl_counters__total(counted, q);
	bool mine =
		!own || q != RFL_QUANTITY_FLOPS || own_part(config, counted) != RFL_QUANTITY_FLOPS;

	if (counted->left_out || isnan(a.value))
		return false;
	/* an fp32 run may turn out to be one of TF32 */
	if (!mine && own->parts[0] == RFL_QUANTITY_FLOPS_FP32)
		mine = rfl_counters__total(counted, RFL_QUANTITY_FLOPS_TENSOR_TF32).value > 0;
	return mine;
}

/* --- coverage --- */

/* Does every range of the total's kind have a time? */
static bool all_timed(const struct rfl_capture *c)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == c->total_kind &&
		    isnan(c->ranges[i].amount[RFL_QUANTITY_TIME].value))
			return false;
	return true;
}

/* What has to be known of a range for its FLOPs to be: of a kernel that is not a matrix product by
 * its name FP32, of all others what the run's precision is made of. A sum is known where any part
 * is.
 */
static enum rfl_quantity needed_of(const struct rfl_capture *c, const struct rfl_range *r,
				   enum rfl_quantity q, enum rfl_quantity own)
{
	if (q != RFL_QUANTITY_FLOPS)
		return q;
	if (r->kind != RFL_RANGE_KERNEL || isnan(c->total[RFL_QUANTITY_FLOPS_FP32].value) ||
	    rfl_kernel_classify(r->name ? r->name : "") == RFL_KERNEL_MATRIX)
		return own;
	return RFL_QUANTITY_FLOPS_FP32;
}

double rfl_counters__coverage(const struct rfl_config *config, const struct rfl_joined *counted,
			      enum rfl_quantity q)
{
	const struct rfl_capture *c = counted->capture;
	const enum rfl_quantity own = own_part(config, counted);
	bool timed = all_timed(c);
	double all = 0, had = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];
		double weight = timed ? r->amount[RFL_QUANTITY_TIME].value : (double)r->launches;

		if (r->kind != c->total_kind)
			continue;
		all += weight;
		had += weight * rfl_range_share(r, needed_of(c, r, q, own));
	}
	return all > 0 ? had / all : NAN;
}

/* --- kernels without a FLOP --- */

/* How many names are written, and how much of each: in a verdict, and in the column. */
struct names_shown {
	size_t n;
	int length;
};
static const struct names_shown in_verdict = { 3, 60 }, in_column = { 100, 160 };

struct idle_kernel {
	const char *name;
	double time_s;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct idle_kernel *)a)->name, ((const struct idle_kernel *)b)->name);
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct idle_kernel *)a)->time_s;
	double y = ((const struct idle_kernel *)b)->time_s;

	return x != y ? (x < y) - (x > y) : by_name(a, b);
}

/* One entry per name: a kernel has a range for each of its shapes. Returns how many are left. */
static size_t fold(struct idle_kernel *list, size_t n)
{
	size_t last = 0;

	if (!n)
		return 0;
	qsort(list, n, sizeof(*list), by_name);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(list[i].name, list[last].name) == 0)
			list[last].time_s += list[i].time_s;
		else
			list[++last] = list[i];
	}
	qsort(list, last + 1, sizeof(*list), by_time);
	return last + 1;
}

static void write_names(const struct idle_kernel *list, size_t n, double all,
			const struct names_shown *most, struct rfl_buf *out)
{
	size_t shown = n < most->n ? n : most->n;

	for (size_t i = 0; i < shown; i++)
		rfl_buf_printf(out, "%s%.*s%s %.2g %%", i ? "; " : "", most->length, list[i].name,
			       strlen(list[i].name) > (size_t)most->length ? "..." : "",
			       100 * list[i].time_s / all);
	if (n > shown)
		rfl_buf_printf(out, "; %zu more", n - shown);
}

/* What a matrix product may have been computed in, beside the types outside the matrix units. */
static bool knows_matrix_units(const struct rfl_range *r)
{
	return !isnan(r->amount[RFL_QUANTITY_FLOPS_TENSOR_FP16].value) &&
	       !isnan(r->amount[RFL_QUANTITY_FLOPS_TENSOR_BF16].value) &&
	       !isnan(r->amount[RFL_QUANTITY_FLOPS_TENSOR_TF32].value);
}

/* Counted, as 0, in everything that it is likely to be made of: the sum alone is 0 as well where
 * the one type that a kernel works in was not counted. */
static bool has_no_flop(const struct rfl_range *r, bool half)
{
	const enum rfl_quantity needed[] = { RFL_QUANTITY_FLOPS, RFL_QUANTITY_FLOPS_FP32,
					     half ? RFL_QUANTITY_FLOPS_FP16
						  : RFL_QUANTITY_FLOPS_FP32 };

	if (r->amount[RFL_QUANTITY_FLOPS].value != 0)
		return false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(needed); i++)
		if (rfl_range_share(r, needed[i]) < 1)
			return false;
	return knows_matrix_units(r) ||
	       rfl_kernel_classify(r->name ? r->name : "") != RFL_KERNEL_MATRIX;
}

enum rfl_rc rfl_counters__zero_flop(const struct rfl_config *config,
				    const struct rfl_joined *counted, struct rfl_measured *m,
				    struct rfl_err *err)
{
	const struct rfl_capture *c = counted->capture;
	const char *precision = config->row->precision;
	bool half = !rfl_text_same(precision, "fp32") && !rfl_text_same(precision, "tf32");
	struct idle_kernel *list;
	double all = 0, idle = 0;
	size_t n = 0;

	if (c->total_kind != RFL_RANGE_KERNEL || !all_timed(c) ||
	    isnan(c->total[RFL_QUANTITY_FLOPS_FP32].value))
		return RFL_OK;
	list = rfl_alloc_array(c->nranges + 1, sizeof(*list));
	if (!list)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];

		if (r->kind != RFL_RANGE_KERNEL)
			continue;
		all += r->amount[RFL_QUANTITY_TIME].value;
		if (!has_no_flop(r, half))
			continue;
		idle += r->amount[RFL_QUANTITY_TIME].value;
		list[n++] = (struct idle_kernel){
			.name = r->name ? r->name : "?",
			.time_s = r->amount[RFL_QUANTITY_TIME].value,
		};
	}
	if (all > 0) {
		m->zero_share = idle / all;
		n = fold(list, n);
		write_names(list, n, all, &in_column, &m->zero_kernels);
		write_names(list, n, all, &in_verdict, &m->zero_longest);
	}
	free(list);
	return RFL_OK;
}
