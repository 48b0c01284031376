/* captures_compare.c - the times of two captures, operator by operator or kernel by kernel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "report/captures_impl.h"
#include "roofline/points.h"

/* An operator or kernel of both captures, or of one. */
struct pair {
	const char *name;
	double time_s[2]; /* NaN: absent, or not timed */
	double ratio, difference_s;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static int by_difference(const void *a, const void *b)
{
	const double x = fabs(((const struct pair *)a)->difference_s);
	const double y = fabs(((const struct pair *)b)->difference_s);

	return x < y ? 1 : x > y ? -1 : by_name(a, b);
}

/* Add the times of the second to the first; fmax(NaN, 0) is 0. */
static void add(struct pair *to, const struct pair *from)
{
	for (int i = 0; i < 2; i++)
		if (!isnan(from->time_s[i]))
			to->time_s[i] = fmax(to->time_s[i], 0) + from->time_s[i];
	to->ratio = to->time_s[0] > 0 ? to->time_s[1] / to->time_s[0] : (double)NAN;
	to->difference_s = fmax(to->time_s[1], 0) - fmax(to->time_s[0], 0);
}

void rfl_captures_compare(const struct rfl_captures *captures, const struct rfl_capture_view *view,
			  struct rfl_buf *out)
{
	static const struct rfl_column columns[] = {
		RFL_COLUMN(TEXT, struct pair, name, "name", "Name"),
		RFL_COLUMN(REAL, struct pair, time_s[0], "a_s", "A ms", .scale = 1e-3),
		RFL_COLUMN(REAL, struct pair, time_s[1], "b_s", "B ms", .scale = 1e-3),
		RFL_COLUMN(REAL, struct pair, ratio, "ratio", "B / A"),
		RFL_COLUMN(REAL, struct pair, difference_s, "difference_s", "B - A ms",
			   .scale = 1e-3),
	};
	const struct rfl_capture *const *c = captures->captures;
	const enum rfl_range_kind kind =
		c[0]->total_kind == c[1]->total_kind ? c[0]->total_kind : RFL_RANGE_KERNEL;
	const bool per_step = c[0]->steps > 0 && c[1]->steps > 0;
	struct pair total = { .name = "total", .time_s = { NAN, NAN } };
	RFL_AUTOFREE struct pair *pairs =
		rfl_alloc_array(c[0]->nranges + c[1]->nranges, sizeof(*pairs));
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	char name[RFL_CAPTURE_NAME_MAX + 1];
	size_t all = 0, n = 0;

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < c[side]->nranges; i++) {
			const struct rfl_range *r = &c[side]->ranges[i];

			if (r->kind != kind)
				continue;
			pairs[all] = (struct pair){ .name = r->name, .time_s = { NAN, NAN } };
			pairs[all++].time_s[side] = r->amount[RFL_QUANTITY_TIME].value /
						    (per_step ? (double)c[side]->steps : 1);
		}
	if (all > 0)
		qsort(pairs, all, sizeof(*pairs), by_name);
	for (size_t i = 0; i < all; i++) {
		const struct pair one = pairs[i];

		add(&total, &one);
		if (n == 0 || strcmp(pairs[n - 1].name, one.name) != 0)
			pairs[n++] = (struct pair){ .name = one.name, .time_s = { NAN, NAN } };
		add(&pairs[n - 1], &one);
	}
	if (n > 0)
		qsort(pairs, n, sizeof(*pairs), by_difference);
	const size_t shown = view->most > 0 && view->most < n ? view->most : n;
	for (size_t i = 0; i < shown; i++) {
		if (rfl_format_for_people(view->format))
			pairs[i].name = rfl_captures__short_name(pairs[i].name, name);
		rfl_table_add(t, &pairs[i], 1, sizeof(*pairs));
	}
	rfl_table_add(t, &total, 1, sizeof(total));
	rfl_table_note(t, "A: %s; B: %s; times of %ss%s", c[0]->label, c[1]->label,
		       rfl_part_word(rfl_range_kind_names[kind]), per_step ? " per step" : "");
	if (shown < n)
		rfl_table_note(t, "Rows with the largest difference: %zu of %zu.", shown, n);
	rfl_table_finish(t, view->format, out);
}
