/*
 * captures.c - captures as people read them: ranges by time, totals, and under them what did no
 * FLOPs, what is not known, and what the source had to say.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "profile/capture/counters_csv.h"
#include "profile/cupti/kernel_class.h"
#include "report/captures_impl.h"

#define ZERO_MOST 10 /* kernels without FLOPs that are listed */

const char *const rfl_capture_by_names[] = { "kernel", "range", "metric", NULL };

/* ---- names and lines ---- */

#define NAME_TAIL 14 /* of a long name: what it was instantiated with ends it */

/* Where the parameters of "void f<4, (int)2>(int, g(*)(int))" begin; its length when there are
 * none. */
static size_t parameters_at(const char *name, size_t len)
{
	size_t depth = 0;

	if (len == 0 || name[len - 1] != ')')
		return len;
	for (size_t at = len; at-- > 0;) {
		if (name[at] == ')')
			depth++;
		else if (name[at] == '(' && --depth == 0)
			return at > 0 ? at : len;
	}
	return len;
}

/* Not inside a character of UTF-8. */
static bool is_begin(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

const char *rfl_captures__short_name(const char *name, char out[RFL_CAPTURE_NAME_MAX + 1])
{
	size_t len = strlen(name), head = RFL_CAPTURE_NAME_MAX - NAME_TAIL - 3, tail;

	if (len > RFL_CAPTURE_NAME_MAX) {
		if (strncmp(name, "void ", 5) == 0) {
			name += 5;
			len -= 5;
		}
		len = parameters_at(name, len);
	}
	if (len > RFL_CAPTURE_NAME_MAX) {
		tail = len - NAME_TAIL;
		while (head > 0 && !is_begin(name[head]))
			head--;
		while (tail < len && !is_begin(name[tail]))
			tail++;
		(void)snprintf(out, RFL_CAPTURE_NAME_MAX + 1, "%.*s...%.*s", (int)head, name,
			       (int)(len - tail), name + tail);
	} else {
		(void)snprintf(out, RFL_CAPTURE_NAME_MAX + 1, "%.*s", (int)len, name);
	}
	rfl_text_one_line(out);
	return out;
}

void rfl_captures__end_line(struct rfl_buf *out, size_t at)
{
	if (!out->failed && out->len > at)
		rfl_text_one_line(out->data + at);
	rfl_buf_putc(out, '\n');
}

/* a / b where both are of the same launches and b is above 0, else NaN. */
static double ratio_of(double a, int64_t a_launches, double b, int64_t b_launches)
{
	return a_launches == b_launches && b > 0 ? a / b : (double)NAN;
}

/* Render, and release. A table that could not be made is out of memory. */
static enum rfl_rc finish_table(struct rfl_table *t, enum rfl_format format, struct rfl_buf *out,
				struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a table");
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	rfl_buf_putc(out, '\n');
	return rc;
}

/* A row of the table: one range, or one kernel over its blocks and grids. */
struct line {
	const struct rfl_range *range;
	int64_t launches;
	double time_s, flops, bytes;
	int64_t time_launches, flops_launches, bytes_launches;
	int64_t fp32_launches;   /* of which the arithmetic outside the matrix units is known */
	int64_t matrix_launches; /* of which that inside them is */
	size_t index;            /* equal times stay in order */
};

static void add_to(double *sum, int64_t *launches, const struct rfl_amount *a)
{
	if (isnan(a->value))
		return;
	*sum = isnan(*sum) ? a->value : *sum + a->value;
	*launches += a->launches;
}

static struct line empty_line(const struct rfl_range *r, size_t index)
{
	return (struct line){
		.range = r, .time_s = NAN, .flops = NAN, .bytes = NAN, .index = index
	};
}

static void add_amounts(struct line *line, const struct rfl_amount *amount, int64_t launches)
{
	line->launches += launches;
	add_to(&line->time_s, &line->time_launches, &amount[RFL_QUANTITY_TIME]);
	add_to(&line->flops, &line->flops_launches, &amount[RFL_QUANTITY_FLOPS]);
	add_to(&line->bytes, &line->bytes_launches, &amount[RFL_QUANTITY_DRAM]);
	line->fp32_launches += amount[RFL_QUANTITY_FLOPS_FP32].launches;
	if (!isnan(amount[RFL_QUANTITY_FLOPS_TENSOR_FP16].value) &&
	    !isnan(amount[RFL_QUANTITY_FLOPS_TENSOR_BF16].value) &&
	    !isnan(amount[RFL_QUANTITY_FLOPS_TENSOR_TF32].value))
		line->matrix_launches += launches;
}

/* ---- which lines ---- */

static int by_index(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_name(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int order = strcmp(x->range->name, y->range->name);

	return order ? order : by_index(a, b);
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	double s = isnan(x->time_s) ? -1 : x->time_s, t = isnan(y->time_s) ? -1 : y->time_s;

	if (s != t)
		return s > t ? -1 : 1;
	return by_index(a, b);
}

/* Those that take the longest come first, in the order of the step. */
static void pick_longest(struct line *lines, size_t n, size_t most)
{
	if (most == 0 || most >= n)
		return;
	qsort(lines, n, sizeof(*lines), by_time);
	qsort(lines, most, sizeof(*lines), by_index);
}

/* Kernels of one name become one line. */
static size_t gather(struct line *lines, size_t n)
{
	size_t kept = 0;

	if (n > 0)
		qsort(lines, n, sizeof(*lines), by_name);
	for (size_t i = 0; i < n; i++) {
		struct line *last = kept > 0 ? &lines[kept - 1] : NULL;

		if (!last || strcmp(last->range->name, lines[i].range->name) != 0) {
			lines[kept++] = lines[i];
			continue;
		}
		add_amounts(last, lines[i].range->amount, lines[i].launches);
	}
	return kept;
}

/* The lines of kernels or of all other ranges; @param lines  room for all ranges */
static size_t lines_of(const struct rfl_capture *c, bool kernels, bool gathered, struct line *lines)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		if ((c->ranges[i].kind == RFL_RANGE_KERNEL) != kernels)
			continue;
		lines[n] = empty_line(&c->ranges[i], i);
		add_amounts(&lines[n], c->ranges[i].amount, c->ranges[i].launches);
		n++;
	}
	if (gathered)
		n = gather(lines, n);
	if (kernels && n > 0)
		qsort(lines, n, sizeof(*lines), by_time);
	return n;
}

/* ---- the table of ranges ---- */

static const struct rfl_column range_columns[] = {
	{ .key = "kind", .title = "Kind", .kind = RFL_COLUMN_TEXT },
	{ .key = "name", .title = "Name", .kind = RFL_COLUMN_TEXT },
	{ .key = "block", .title = "Block", .kind = RFL_COLUMN_TEXT },
	{ .key = "grid", .title = "Grid", .kind = RFL_COLUMN_TEXT },
	{ .key = "launches", .title = "Launches", .kind = RFL_COLUMN_INT },
	{ .key = "time_s", .title = "Time ms", .kind = RFL_COLUMN_REAL, .scale = 1e-3 },
	{ .key = "share",
	  .title = "Share %",
	  .kind = RFL_COLUMN_REAL,
	  .decimals = 1,
	  .scale = 1e-2 },
	{ .key = "flops", .title = "GFLOP", .kind = RFL_COLUMN_REAL, .scale = 1e9 },
	{ .key = "dram_bytes", .title = "DRAM GB", .kind = RFL_COLUMN_REAL, .scale = 1e9 },
	{ .key = "ai", .title = "FLOP/B", .kind = RFL_COLUMN_REAL },
	{ .key = "flop_per_s", .title = "GFLOP/s", .kind = RFL_COLUMN_REAL, .scale = 1e9 },
	{ .key = "byte_per_s", .title = "GB/s", .kind = RFL_COLUMN_REAL, .scale = 1e9 },
};
#define GEOMETRY_FIRST 2 /* Block and Grid */
#define GEOMETRY_N     2

static void put_numbers(struct rfl_table *t, const struct line *line, double all_time)
{
	rfl_table_int(t, line->launches);
	rfl_table_real(t, line->time_s);
	rfl_table_real(t, all_time > 0 ? line->time_s / all_time : (double)NAN);
	rfl_table_real(t, line->flops);
	rfl_table_real(t, line->bytes);
	rfl_table_real(
		t, ratio_of(line->flops, line->flops_launches, line->bytes, line->bytes_launches));
	rfl_table_real(
		t, ratio_of(line->flops, line->flops_launches, line->time_s, line->time_launches));
	rfl_table_real(
		t, ratio_of(line->bytes, line->bytes_launches, line->time_s, line->time_launches));
}

static void put_line(struct rfl_table *t, const struct line *line, bool geometry, double all_time)
{
	const struct rfl_range *r = line->range;
	char name[RFL_CAPTURE_NAME_MAX + 1];

	rfl_table_text(t, rfl_range_kind_names[r->kind]);
	rfl_table_text(t, rfl_captures__short_name(r->name, name));
	if (geometry) {
		rfl_table_text(t, r->block);
		rfl_table_text(t, r->grid);
	}
	put_numbers(t, line, all_time);
}

static void put_total(struct rfl_table *t, const struct rfl_capture *c, bool geometry)
{
	struct line line = empty_line(NULL, 0);

	add_amounts(&line, c->total, rfl_capture_launches_of_total(c));
	rfl_table_text(t, "total");
	rfl_table_null(t);
	for (int i = 0; geometry && i < GEOMETRY_N; i++)
		rfl_table_null(t);
	put_numbers(t, &line, line.time_s);
}

/* ---- the table of totals ---- */

static const struct rfl_column total_columns[] = {
	{ .key = "quantity", .title = "Quantity", .kind = RFL_COLUMN_TEXT },
	{ .key = "value", .title = "Total", .kind = RFL_COLUMN_TEXT },
	{ .key = "exact", .title = "Exact", .kind = RFL_COLUMN_TEXT },
	{ .key = "known", .title = "Known of", .kind = RFL_COLUMN_TEXT },
	{ .key = "validity", .title = "Validity", .kind = RFL_COLUMN_TEXT },
};

/* @param a, b  what it is, or follows from */
static void put_total_row(struct rfl_table *t, const char *name, const char *unit, double value,
			  const struct rfl_amount *a, const struct rfl_amount *b, int64_t all)
{
	enum rfl_validity worst = a->validity > b->validity ? a->validity : b->validity;
	char si[64], exact[RFL_NUM_MAX], of[RFL_NUM_MAX], known[2 * RFL_NUM_MAX + 8];

	rfl_table_text(t, name);
	/* No prefixes where values are compared with a knee, nor of ratios. */
	if (strcmp(unit, "FLOP/B") == 0 || (unit[0] == '\0' && value < 1000.0))
		(void)snprintf(si, sizeof(si), "%s%s%s", rfl_num_people(value, 5, exact),
			       unit[0] ? " " : "", unit);
	else
		(void)rfl_num_si(value, unit, 5, si, sizeof(si));
	rfl_table_text(t, si);
	rfl_table_text(t, rfl_num_full(value, exact));
	(void)snprintf(known, sizeof(known), "%s of %s", rfl_num_grouped(a->launches, exact),
		       rfl_num_grouped(all, of));
	rfl_table_text(t, known);
	rfl_table_text(t, rfl_validity_names[worst]);
}

static void put_totals(struct rfl_table *t, const struct rfl_capture *c)
{
	static const struct {
		const char *name, *unit;
		enum rfl_quantity a, b;
	} ratios[] = {
		{ "flops.total / dram_bytes", "FLOP/B", RFL_QUANTITY_FLOPS, RFL_QUANTITY_DRAM },
		{ "flops.total / l2_bytes", "FLOP/B", RFL_QUANTITY_FLOPS, RFL_QUANTITY_L2 },
		{ "flops.total / l1_bytes", "FLOP/B", RFL_QUANTITY_FLOPS, RFL_QUANTITY_L1 },
		{ "flops.total / time_s", "FLOP/s", RFL_QUANTITY_FLOPS, RFL_QUANTITY_TIME },
		{ "dram_bytes / time_s", "B/s", RFL_QUANTITY_DRAM, RFL_QUANTITY_TIME },
		{ "cycles / time_s", "Hz", RFL_QUANTITY_CYCLES, RFL_QUANTITY_TIME },
		{ "cycles / task_clock_s", "Hz", RFL_QUANTITY_CYCLES, RFL_QUANTITY_TASK_CLOCK },
		{ "instructions / cycles", "", RFL_QUANTITY_INSTRUCTIONS, RFL_QUANTITY_CYCLES },
	};

	const int64_t all = rfl_capture_launches_of_total(c);

	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const struct rfl_quantity_info *info = rfl_quantity_info((enum rfl_quantity)q);
		const struct rfl_amount *a = &c->total[q];
		const char *unit = strcmp(info->unit, "byte") == 0 ? "B" : info->unit;

		if (!isnan(a->value))
			put_total_row(t, info->name, unit, a->value, a, a, all);
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(ratios); i++) {
		const struct rfl_amount *a = &c->total[ratios[i].a], *b = &c->total[ratios[i].b];
		double value = ratio_of(a->value, a->launches, b->value, b->launches);

		/* Cycles of several processors over the time of one process are not a clock. */
		if ((ratios[i].a == RFL_QUANTITY_CYCLES && ratios[i].b == RFL_QUANTITY_TIME &&
		     c->total_kind == RFL_RANGE_PROCESS) ||
		    (ratios[i].a == RFL_QUANTITY_INSTRUCTIONS && isnan(rfl_capture_ipc(c))))
			continue;
		if (!isnan(value))
			put_total_row(t, ratios[i].name, ratios[i].unit, value, a, b, all);
	}
}

static enum rfl_rc total_table(const struct rfl_capture *c, enum rfl_format format,
			       struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(total_columns, RFL_ARRAY_LEN(total_columns));

	if (t)
		put_totals(t, c);
	if (t && rfl_table_rows(t) == 0) {
		rfl_table_free(t);
		rfl_buf_puts(out, "Nothing is known of the totals.\n\n");
		return RFL_OK;
	}
	return finish_table(t, format, out, err);
}

/* ---- under the tables ---- */

static double share_of(double part, double all)
{
	return all > 0 ? 100 * part / all : (double)NAN;
}

static void put_said(struct rfl_buf *out, const char *what, const char *text)
{
	size_t at = out->len;

	rfl_buf_printf(out, "%s: ", what);
	rfl_buf_puts(out, text);
	rfl_captures__end_line(out, at);
}

/* Counted, as 0, and not with the matrix units alone; a matrix product not without them. */
static bool did_none(const struct line *line)
{
	return line->flops == 0 && line->flops_launches == line->launches &&
	       line->fp32_launches == line->launches &&
	       (line->matrix_launches == line->launches ||
		rfl_kernel_classify(line->range->name) != RFL_KERNEL_MATRIX);
}

static void put_zero_kernel(const struct line *line, double all_time, struct rfl_buf *out)
{
	char number[RFL_NUM_MAX], name[RFL_CAPTURE_NAME_MAX + 1];

	rfl_buf_puts(out, "  ");
	if (!isnan(line->time_s))
		rfl_buf_printf(out, "%s ms  ", rfl_num_people(line->time_s * 1e3, 4, number));
	if (!isnan(share_of(line->time_s, all_time)))
		rfl_buf_printf(out, "%s %%  ",
			       rfl_num_fixed(share_of(line->time_s, all_time), 1, number));
	rfl_buf_printf(out, "%s\n", rfl_captures__short_name(line->range->name, name));
}

/* Kernels whose FLOPs were counted, as 0: copies, casts, integers, comparisons. */
static void put_zero_kernels(const struct rfl_capture *c, const struct line *lines, size_t n,
			     struct rfl_buf *out)
{
	const char *parts = c->total[RFL_QUANTITY_FLOPS].rule;
	double all_time = c->total[RFL_QUANTITY_TIME].value;
	char number[RFL_NUM_MAX];
	double time_s = 0;
	size_t zero = 0, shown = 0;

	for (size_t i = 0; i < n; i++) {
		if (!did_none(&lines[i]))
			continue;
		time_s += isnan(lines[i].time_s) ? 0 : lines[i].time_s;
		zero++;
	}
	if (zero == 0)
		return;
	rfl_buf_printf(out, "Kernels with 0 FLOPs (%s): %zu", parts ? parts : "flops.total", zero);
	if (!isnan(share_of(time_s, all_time)))
		rfl_buf_printf(out, ", %s %% of the time",
			       rfl_num_fixed(share_of(time_s, all_time), 1, number));
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < n && shown < ZERO_MOST; i++) {
		if (!did_none(&lines[i]))
			continue;
		put_zero_kernel(&lines[i], all_time, out);
		shown++;
	}
	if (shown < zero)
		rfl_buf_printf(out, "  and %zu more\n", zero - shown);
}

static void put_remarks(const struct rfl_capture *c, const struct line *lines, size_t nkernels,
			struct rfl_buf *out)
{
	const double share = rfl_capture_coverage(c, RFL_QUANTITY_FLOPS);
	char number[RFL_NUM_MAX], bytes[RFL_NUM_MAX];
	struct rfl_buf sets;

	put_zero_kernels(c, lines, nkernels, out);
	if (!isnan(share))
		rfl_buf_printf(
			out,
			"Coverage: FLOPs were counted in %s %% of the time, DRAM bytes in %s %%\n",
			rfl_num_fixed(100 * share, 1, number),
			rfl_num_fixed(100 * rfl_capture_coverage(c, RFL_QUANTITY_DRAM), 1, bytes));
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!isnan(c->total[q].value) && c->total[q].reason)
			put_said(out, rfl_quantity_info((enum rfl_quantity)q)->name,
				 c->total[q].reason);
	if (c->nranges > 0 || c->nrefusals == 0) /* else nothing was counted, for one reason */
		rfl_captures__unknown(c, out);
	rfl_buf_init(&sets, 0);
	for (size_t i = 0; i < c->nrefusals; i++) {
		rfl_buf_reset(&sets);
		rfl_buf_puts(&sets, "Not counted: ");
		if (rfl_capture_refused_alike(c, i, &sets))
			put_said(out, rfl_buf_str(&sets), c->refusals[i].reason);
	}
	rfl_buf_fini(&sets);
	for (size_t i = 0; i < c->nnotes; i++)
		put_said(out, "Note", c->notes[i]);
	if (c->unused_metrics > 0)
		rfl_buf_printf(out, "Metrics that no formula names: %s\n",
			       rfl_num_grouped(c->unused_metrics, number));
	if (c->rows_left_out > 0)
		rfl_buf_printf(out, "Rows left out, because they could not be read: %s\n",
			       rfl_num_grouped(c->rows_left_out, number));
}

/* ---- one capture ---- */

static void put_head(const struct rfl_capture *c, enum rfl_format format, struct rfl_buf *out)
{
	const char *mark = format == RFL_FORMAT_MD ? "### " : "";
	size_t at = out->len;

	rfl_buf_printf(out, "%s%s: %s%s%s", mark, c->label[0] ? c->label : "(no label)", c->source,
		       c->path ? ", " : "", c->path ? c->path : "");
	if (c->device)
		rfl_buf_printf(out, ", %s", c->device);
	if (c->chip)
		rfl_buf_printf(out, ", chip %s", c->chip);
	if (c->family)
		rfl_buf_printf(out, ", formulas '%s'", c->family);
	if (c->steps >= 0)
		rfl_buf_printf(out, ", %lld step%s", (long long)c->steps, c->steps == 1 ? "" : "s");
	if (c->passes >= 0)
		rfl_buf_printf(out, ", %lld pass%s", (long long)c->passes,
			       c->passes == 1 ? "" : "es");
	rfl_captures__end_line(out, at);
	rfl_buf_putc(out, '\n');
}

static enum rfl_rc put_ranges(const struct rfl_capture *c, const struct rfl_capture_view *view,
			      const struct line *lines, size_t n, bool geometry,
			      struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_column columns[RFL_ARRAY_LEN(range_columns)];
	struct rfl_table *t;
	size_t ncolumns = 0;
	size_t shown = view->most > 0 && view->most < n ? view->most : n;
	double all_time = c->total[RFL_QUANTITY_TIME].value;

	if (n == 0)
		return RFL_OK;
	for (size_t i = 0; i < RFL_ARRAY_LEN(range_columns); i++)
		if (geometry || i < GEOMETRY_FIRST || i >= GEOMETRY_FIRST + GEOMETRY_N)
			columns[ncolumns++] = range_columns[i];
	t = rfl_table_new(columns, ncolumns);
	for (size_t i = 0; t && i < shown; i++)
		put_line(t, &lines[i], geometry, all_time);
	if (t && lines[0].range->kind == c->total_kind)
		put_total(t, c, geometry);
	if (t && shown < n)
		rfl_table_note(t, "The %zu that take the longest, of %zu.", shown, n);
	return finish_table(t, view->format, out, err);
}

static enum rfl_rc put_metrics(const struct rfl_capture *c, const struct rfl_capture_view *view,
			       struct rfl_buf *out, struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		{ .key = "kind", .title = "Kind", .kind = RFL_COLUMN_TEXT },
		{ .key = "name", .title = "Name", .kind = RFL_COLUMN_TEXT },
		{ .key = "metric", .title = "Metric", .kind = RFL_COLUMN_TEXT },
		{ .key = "value", .title = "Value", .kind = RFL_COLUMN_TEXT },
		{ .key = "unit", .title = "Unit", .kind = RFL_COLUMN_TEXT },
		{ .key = "rollup", .title = "Over launches", .kind = RFL_COLUMN_TEXT },
		{ .key = "validity", .title = "Validity", .kind = RFL_COLUMN_TEXT },
		{ .key = "reason", .title = "Remark", .kind = RFL_COLUMN_TEXT },
	};
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	char name[RFL_CAPTURE_NAME_MAX + 1], number[RFL_NUM_MAX];
	size_t n = view->most > 0 && view->most < c->nranges ? view->most : c->nranges;

	for (size_t i = 0; t && i < n; i++) {
		const struct rfl_range *r = &c->ranges[i];

		for (size_t k = 0; k < r->nmetrics; k++) {
			const struct rfl_metric *m = &r->metrics[k];

			rfl_table_text(t, rfl_range_kind_names[r->kind]);
			rfl_table_text(t, rfl_captures__short_name(r->name, name));
			rfl_table_text(t, m->name);
			rfl_table_text(t, isnan(m->value) ? NULL : rfl_num_full(m->value, number));
			rfl_table_text(t, m->unit);
			rfl_table_text(t, rfl_rollup_names[m->rollup]);
			rfl_table_text(t, rfl_validity_names[m->validity]);
			rfl_table_text(t, m->reason);
		}
	}
	if (t && n < c->nranges)
		rfl_table_note(t, "The first %zu ranges of %zu.", n, c->nranges);
	return finish_table(t, view->format, out, err);
}

static enum rfl_rc put_capture(const struct rfl_capture *c, const struct rfl_capture_view *view,
			       struct rfl_buf *out, struct rfl_err *err)
{
	struct line *lines = rfl_alloc_array(c->nranges, sizeof(*lines));
	bool geometry = view->by == RFL_CAPTURE_BY_RANGE;
	size_t n;
	enum rfl_rc rc = RFL_OK;

	if (!lines)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a table");
	put_head(c, view->format, out);
	if (view->by == RFL_CAPTURE_BY_METRIC) {
		rc = put_metrics(c, view, out, err);
	} else {
		n = lines_of(c, false, false, lines);
		pick_longest(lines, n, view->most);
		rc = put_ranges(c, view, lines, n, geometry, out, err);
		n = lines_of(c, true, !geometry, lines);
		if (rc == RFL_OK)
			rc = put_ranges(c, view, lines, n, geometry, out, err);
	}
	if (rc == RFL_OK)
		rc = total_table(c, view->format, out, err);
	n = lines_of(c, true, true, lines);
	if (rc == RFL_OK)
		put_remarks(c, lines, n, out);
	if (rc == RFL_OK && view->explain)
		rc = rfl_captures__explain(c, view, out, err);
	free(lines);
	return rc;
}

enum rfl_rc rfl_captures_render(const struct rfl_captures *captures,
				const struct rfl_capture_view *view, struct rfl_buf *out,
				struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (view->format == RFL_FORMAT_CSV || view->format == RFL_FORMAT_JSON) {
		if (view->format == RFL_FORMAT_CSV)
			rfl_counters_write(out, captures, true);
		else
			rfl_captures__json(captures, out);
		return rfl_buf_check(out, "captures", err);
	}
	for (size_t i = 0; i < captures->n && rc == RFL_OK; i++) {
		if (i > 0)
			rfl_buf_putc(out, '\n');
		rc = put_capture(captures->captures[i], view, out, err);
	}
	return rc;
}
