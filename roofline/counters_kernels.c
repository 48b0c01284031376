/*
 * counters_kernels.c - sums over the ranges of a capture: totals, how much of the time they
 * explain, and where time goes without a FLOP.
 */
#include "roofline/counters_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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

static double weight(const struct rfl_range *r, bool timed)
{
	return timed ? r->amount[RFL_QUANTITY_TIME].value : (double)r->launches;
}

/* The share of a range's launches that had a quantity. */
static double counted_share(const struct rfl_range *r, enum rfl_quantity q)
{
	const struct rfl_amount *a = &r->amount[q];

	if (isnan(a->value))
		return 0;
	if (a->validity != RFL_VALID_PARTIAL || r->launches < 1 || a->launches < 0 ||
	    a->launches >= r->launches)
		return 1;
	return (double)a->launches / (double)r->launches;
}

double rfl_counters__coverage(const struct rfl_counted *counted, enum rfl_quantity q)
{
	const struct rfl_capture *c = counted->capture;
	bool timed = all_timed(c);
	double all = 0, had = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];

		if (r->kind != c->total_kind)
			continue;
		all += weight(r, timed);
		had += weight(r, timed) * counted_share(r, q);
	}
	return all > 0 ? had / all : NAN;
}

/* --- kernels without a FLOP --- */

#define NAMES_SHOWN  3
#define LONGEST_NAME 60

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

static void write_names(const struct idle_kernel *list, size_t n, double all, struct rfl_buf *out)
{
	size_t shown = n < NAMES_SHOWN ? n : NAMES_SHOWN;

	for (size_t i = 0; i < shown; i++)
		rfl_buf_printf(out, "%s%.*s%s %.2g %%", i ? "; " : "", LONGEST_NAME, list[i].name,
			       strlen(list[i].name) > LONGEST_NAME ? "..." : "",
			       100 * list[i].time_s / all);
	if (n > shown)
		rfl_buf_printf(out, "; %zu more", n - shown);
}

static bool has_no_flop(const struct rfl_range *r)
{
	const struct rfl_amount *a = &r->amount[RFL_QUANTITY_FLOPS];

	return a->value == 0 && counted_share(r, RFL_QUANTITY_FLOPS) == 1;
}

enum rfl_rc rfl_counters__zero_flop(const struct rfl_counted *counted, double *share,
				    struct rfl_buf *names, struct rfl_err *err)
{
	const struct rfl_capture *c = counted->capture;
	struct idle_kernel *list;
	double all = 0, idle = 0;
	size_t n = 0;

	*share = NAN;
	if (c->total_kind != RFL_RANGE_KERNEL || !all_timed(c))
		return RFL_OK;
	list = rfl_alloc_array(c->nranges + 1, sizeof(*list));
	if (!list)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];

		if (r->kind != RFL_RANGE_KERNEL)
			continue;
		all += r->amount[RFL_QUANTITY_TIME].value;
		if (!has_no_flop(r))
			continue;
		idle += r->amount[RFL_QUANTITY_TIME].value;
		list[n++] = (struct idle_kernel){
			.name = r->name ? r->name : "?",
			.time_s = r->amount[RFL_QUANTITY_TIME].value,
		};
	}
	if (all > 0) {
		*share = idle / all;
		n = fold(list, n);
		write_names(list, n, all, names);
	}
	free(list);
	return RFL_OK;
}
