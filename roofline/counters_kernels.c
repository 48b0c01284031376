/*
 * counters_kernels.c - sums over the ranges of a capture: totals, how much of the time they
 * explain, and where time goes without a FLOP.
 */
#include "roofline/counters_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "profile/capture.h"
#include "profile/cupti/kernel_class.h"

struct rfl_amount rfl_counters__total(const struct rfl_counted *counted, enum rfl_quantity q)
{
	return counted->capture->total[q];
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

/* What has to be known of a range for its FLOPs to be: of a kernel that is no matrix product by its
 * name FP32, of all others what the run's precision is made of. A sum is known where any part is.
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

double rfl_counters__coverage(const struct rfl_config *config, const struct rfl_counted *counted,
			      enum rfl_quantity q)
{
	const struct rfl_capture *c = counted->capture;
	const enum rfl_quantity own = rfl_counters__own_part(config, counted);
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
				    const struct rfl_counted *counted, struct rfl_measured *m,
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
