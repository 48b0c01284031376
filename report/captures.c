/*
 * captures.c - tables of captures: ranges sorted by time and totals, followed by kernels without
 * FLOPs, unknown quantities and the notes of the source.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "profile/capture.h"
#include "report/captures_impl.h"

#define ZERO_MOST 10 /* limit for the list of kernels without FLOPs */

const char *const rfl_capture_by_names[] = { "kernel", "range", "metric", NULL };

#define NAME_TAIL 14 /* characters kept from the end of a long name: the template arguments */

/* Return true for the first byte of a UTF-8 character. */
static bool is_begin(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

const char *rfl_captures__short_name(const char *name, char out[RFL_CAPTURE_NAME_MAX + 1])
{
	size_t len = strlen(name), head = RFL_CAPTURE_NAME_MAX - NAME_TAIL - 3, tail, depth = 0;

	if (len > RFL_CAPTURE_NAME_MAX) {
		if (strncmp(name, "void ", 5) == 0) {
			name += 5;
			len -= 5;
		}
		/* Remove the parameters of "void f<4, (int)2>(int, g(*)(int))". */
		for (size_t at = len; at-- > 0 && name[len - 1] == ')';) {
			depth += name[at] == ')';
			if (name[at] == '(' && --depth == 0) {
				len = at > 0 ? at : len;
				break;
			}
		}
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

/* a / b if both are from the same launches and b is positive, else NaN. */
static double ratio_of(const struct rfl_amount *a, const struct rfl_amount *b)
{
	return a->launches == b->launches && b->value > 0 ? a->value / b->value : (double)NAN;
}

/* A row of the table: a range, or a kernel summed over its blocks and grids. */
struct line {
	const struct rfl_range *range;
	struct rfl_amounts_sum sum;
	size_t index; /* position among lines with equal time */

	/* only shown */
	const char *kind, *name, *block, *grid;
	double share, ai, flop_per_s, byte_per_s;
};

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

static double time_of(const struct line *line)
{
	return line->sum.amount[RFL_QUANTITY_TIME].value;
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	const double s = time_of(x), t = time_of(y);

	if (isnan(s) != isnan(t) || s < t || s > t)
		return isnan(t) || s > t ? -1 : 1;
	return by_index(a, b);
}

/* Collect either kernels sorted by time, or all other ranges (operators by time, others in the
 * order of the step), with the `most` longest first.
 * @param gathered  merge kernels of the same name
 * @param lines  array large enough for all ranges */
static size_t lines_of(const struct rfl_capture *c, bool kernels, bool gathered, size_t most,
		       struct line *lines)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		if ((c->ranges[i].kind == RFL_RANGE_KERNEL) != kernels)
			continue;
		lines[n] = (struct line){ .range = &c->ranges[i], .index = i };
		rfl_amounts_clear(&lines[n].sum);
		rfl_amounts_add(&lines[n++].sum, c->ranges[i].amount, c->ranges[i].launches);
	}
	if (n > 0 && gathered) {
		qsort(lines, n, sizeof(*lines), by_name);
		for (size_t i = 0; i < n; i++) {
			struct line *last = kept > 0 ? &lines[kept - 1] : NULL;

			if (last && strcmp(last->range->name, lines[i].range->name) == 0)
				rfl_amounts_add(&last->sum, lines[i].range->amount,
						lines[i].range->launches);
			else
				lines[kept++] = lines[i];
		}
		n = kept;
	}
	const bool timed = kernels || c->total_kind == RFL_RANGE_OP;
	if (n > 0 && (timed || (most > 0 && most < n)))
		qsort(lines, n, sizeof(*lines), by_time);
	if (!timed && most > 0 && most < n)
		qsort(lines, most, sizeof(*lines), by_index);
	return n;
}

#define GEOMETRY 1U /* show block and grid */

#define SUM(quantity) sum.amount[RFL_QUANTITY_##quantity].value

static const struct rfl_column range_columns[] = {
	RFL_COLUMN(TEXT, struct line, kind, "kind", "Kind"),
	RFL_COLUMN(TEXT, struct line, name, "name", "Name"),
	RFL_COLUMN(TEXT, struct line, block, "block", "Block", .when = GEOMETRY),
	RFL_COLUMN(TEXT, struct line, grid, "grid", "Grid", .when = GEOMETRY),
	RFL_COLUMN(INT, struct line, sum.launches, "launches", "Launches"),
	RFL_COLUMN(REAL, struct line, SUM(TIME), "time", "Time ms", .scale = 1e-3),
	RFL_COLUMN(REAL, struct line, share, "share", "Share %", .scale = 1e-2, .decimals = 1),
	RFL_COLUMN(REAL, struct line, SUM(FLOPS), "flops", "GFLOP", .scale = 1e9),
	RFL_COLUMN(REAL, struct line, SUM(DRAM), "bytes", "DRAM GB", .scale = 1e9),
	RFL_COLUMN(REAL, struct line, ai, "ai", "FLOP/B"),
	RFL_COLUMN(REAL, struct line, flop_per_s, "flop_per_s", "GFLOP/s", .scale = 1e9),
	RFL_COLUMN(REAL, struct line, byte_per_s, "byte_per_s", "GB/s", .scale = 1e9),
};

static void put_line(struct rfl_table *t, struct line line, double all_time)
{
	const struct rfl_amount *amount = line.sum.amount;
	char name[RFL_CAPTURE_NAME_MAX + 1];

	line.kind = "total";
	if (line.range) {
		line.kind = rfl_range_kind_names[line.range->kind];
		line.name = rfl_captures__short_name(line.range->name, name);
		line.block = line.range->block;
		line.grid = line.range->grid;
	}
	line.share = all_time > 0 ? time_of(&line) / all_time : (double)NAN;
	line.ai = ratio_of(&amount[RFL_QUANTITY_FLOPS], &amount[RFL_QUANTITY_DRAM]);
	line.flop_per_s = ratio_of(&amount[RFL_QUANTITY_FLOPS], &amount[RFL_QUANTITY_TIME]);
	line.byte_per_s = ratio_of(&amount[RFL_QUANTITY_DRAM], &amount[RFL_QUANTITY_TIME]);
	rfl_table_add(t, &line, 1, sizeof(line));
}

/* @param a,  b the amount, or both amounts of a ratio */
static void put_total_row(struct rfl_table *t, const char *name, const char *unit, double value,
			  const struct rfl_amount *a, const struct rfl_amount *b, int64_t all)
{
	enum rfl_validity worst = a->validity > b->validity ? a->validity : b->validity;
	char si[64], exact[RFL_NUM_MAX], of[RFL_NUM_MAX], known[2 * RFL_NUM_MAX + 8];

	rfl_table_text(t, name);
	/* Arithmetic intensities, which are compared with a ridge point, and ratios have no SI
	 * prefix. */
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

static void put_totals(const struct rfl_capture *c, enum rfl_format format, struct rfl_buf *out)
{
	static const struct rfl_column columns[] = {
		{ .key = "quantity", .title = "Quantity" },
		{ .key = "value", .title = "Total" },
		{ .key = "exact", .title = "Exact" },
		{ .key = "known", .title = "Known launches" },
		{ .key = "validity", .title = "Validity" },
	};
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
	RFL_AUTOPTR(table) t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
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
		const double value = ratio_of(a, b);

		/* The cycles of several CPUs divided by the time of one process are not a
		 * clock rate. */
		if ((ratios[i].a == RFL_QUANTITY_CYCLES && ratios[i].b == RFL_QUANTITY_TIME &&
		     c->total_kind == RFL_RANGE_PROCESS) ||
		    (ratios[i].a == RFL_QUANTITY_INSTRUCTIONS && isnan(rfl_capture_ipc(c))))
			continue;
		if (!isnan(value))
			put_total_row(t, ratios[i].name, ratios[i].unit, value, a, b, all);
	}
	if (rfl_table_rows(t) == 0)
		rfl_buf_puts(out, "All totals are unknown.\n");
	else
		rfl_table_render(t, format, out);
}

static void put_said(struct rfl_buf *out, const char *what, const char *text)
{
	size_t at = out->len;

	rfl_buf_printf(out, "%s: ", what);
	rfl_buf_puts(out, text);
	rfl_captures__end_line(out, at);
}

/* Return true if the count was 0 outside the Tensor Cores and, for GEMMs, also in
 * them. */
static bool did_none(const struct line *line)
{
	static const enum rfl_quantity known[] = { RFL_QUANTITY_FLOPS, RFL_QUANTITY_FLOPS_FP32,
						   RFL_QUANTITY_FLOPS_TENSOR_FP16,
						   RFL_QUANTITY_FLOPS_TENSOR_BF16,
						   RFL_QUANTITY_FLOPS_TENSOR_TF32 };
	const bool matrix = rfl_kernel_classify(line->range->name) == RFL_KERNEL_MATRIX;
	const struct rfl_amount *amount = line->sum.amount;
	size_t n = 0;

	while (n < RFL_ARRAY_LEN(known) && amount[known[n]].launches == line->sum.launches)
		n++;
	return amount[RFL_QUANTITY_FLOPS].value == 0 && n >= (matrix ? RFL_ARRAY_LEN(known) : 2);
}

/* List kernels without FLOPs, such as copies, casts and comparisons. */
static void put_zero_kernels(const struct rfl_capture *c, const struct line *lines, size_t n,
			     struct rfl_buf *out)
{
	const char *parts = c->total[RFL_QUANTITY_FLOPS].rule;
	const double all_time = c->total[RFL_QUANTITY_TIME].value;
	char number[RFL_NUM_MAX], name[RFL_CAPTURE_NAME_MAX + 1];
	double time_s = 0;
	size_t zero = 0, shown = 0;

	for (size_t i = 0; i < n; i++) {
		if (!did_none(&lines[i]))
			continue;
		time_s += isnan(time_of(&lines[i])) ? 0 : time_of(&lines[i]);
		zero++;
	}
	if (zero == 0)
		return;
	rfl_buf_printf(out, "Kernels with 0 FLOPs (%s): %zu", parts ? parts : "flops.total", zero);
	if (all_time > 0)
		rfl_buf_printf(out, ", %s %% of the time",
			       rfl_num_fixed(100 * time_s / all_time, 1, number));
	rfl_buf_putc(out, '\n');
	for (const struct line *line = lines; line < lines + n && shown < ZERO_MOST; line++) {
		if (!did_none(line))
			continue;
		rfl_buf_puts(out, "  ");
		if (!isnan(time_of(line)))
			rfl_buf_printf(out, "%s ms  ",
				       rfl_num_people(time_of(line) * 1e3, 4, number));
		if (!isnan(time_of(line)) && all_time > 0)
			rfl_buf_printf(out, "%s %%  ",
				       rfl_num_fixed(100 * time_of(line) / all_time, 1, number));
		rfl_buf_printf(out, "%s\n", rfl_captures__short_name(line->range->name, name));
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
	RFL_AUTO(buf) sets = { .len = 0 };

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
	if (c->nranges > 0 || c->nrefusals == 0) /* else nothing was counted, for a single reason */
		rfl_captures__unknown(c, out);
	for (size_t i = 0; i < c->nrefusals; i++) {
		rfl_buf_reset(&sets);
		rfl_buf_puts(&sets, "Not counted: ");
		if (rfl_capture_refused_alike(c, i, &sets))
			put_said(out, rfl_buf_str(&sets), c->refusals[i].reason);
	}
	for (size_t i = 0; i < c->nnotes; i++)
		put_said(out, "Note", c->notes[i]);
	if (c->unused_metrics > 0)
		rfl_buf_printf(out, "Metrics not used by any formula: %s\n",
			       rfl_num_grouped(c->unused_metrics, number));
	if (c->rows_left_out > 0)
		rfl_buf_printf(out, "Rows that could not be read and were skipped: %s\n",
			       rfl_num_grouped(c->rows_left_out, number));
}

static void put_ranges(const struct rfl_capture *c, const struct rfl_capture_view *view,
		       const struct line *lines, size_t n, struct rfl_buf *out)
{
	const unsigned geometry = view->by == RFL_CAPTURE_BY_RANGE ? GEOMETRY : 0;
	const double all_time = c->total[RFL_QUANTITY_TIME].value;
	const size_t shown = view->most > 0 && view->most < n ? view->most : n;
	struct rfl_table *t;

	if (n == 0)
		return;
	t = rfl_table_of(range_columns, RFL_ARRAY_LEN(range_columns), geometry);
	for (size_t i = 0; i < shown; i++)
		put_line(t, lines[i], all_time);
	if (lines[0].range->kind == c->total_kind) {
		struct line total = { .sum.launches = rfl_capture_launches_of_total(c) };

		memcpy(total.sum.amount, c->total, sizeof(c->total));
		put_line(t, total, time_of(&total));
	}
	if (shown < n)
		rfl_table_note(t, "Rows with the longest time: %zu of %zu.", shown, n);
	rfl_table_finish(t, view->format, out);
	rfl_buf_putc(out, '\n');
}

static void put_metrics(const struct rfl_capture *c, const struct rfl_capture_view *view,
			struct rfl_buf *out)
{
	static const struct rfl_column columns[] = {
		{ .key = "kind", .title = "Kind" },         { .key = "name", .title = "Name" },
		{ .key = "metric", .title = "Metric" },     { .key = "value", .title = "Value" },
		{ .key = "unit", .title = "Unit" },         { .key = "rollup", .title = "Rollup" },
		{ .key = "validity", .title = "Validity" }, { .key = "reason", .title = "Remark" },
	};
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	char name[RFL_CAPTURE_NAME_MAX + 1], number[RFL_NUM_MAX];
	const size_t n = view->most > 0 && view->most < c->nranges ? view->most : c->nranges;

	for (const struct rfl_range *r = c->ranges; r < c->ranges + n; r++)
		for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics; m++) {
			rfl_table_text(t, rfl_range_kind_names[r->kind]);
			rfl_table_text(t, rfl_captures__short_name(r->name, name));
			rfl_table_text(t, m->name);
			rfl_table_text(t, isnan(m->value) ? NULL : rfl_num_full(m->value, number));
			rfl_table_text(t, m->unit);
			rfl_table_text(t, rfl_rollup_names[m->rollup]);
			rfl_table_text(t, rfl_validity_names[m->validity]);
			rfl_table_text(t, m->reason);
		}
	if (n < c->nranges)
		rfl_table_note(t, "The first %zu of %zu ranges.", n, c->nranges);
	rfl_table_finish(t, view->format, out);
	rfl_buf_putc(out, '\n');
}

static void put_capture(const struct rfl_capture *c, const struct rfl_capture_view *view,
			struct rfl_buf *out)
{
	RFL_AUTOFREE struct line *lines = rfl_alloc_array(c->nranges, sizeof(*lines));
	size_t at = out->len, n;

	rfl_buf_printf(out, "%s%s: %s%s%s", view->format == RFL_FORMAT_MD ? "### " : "",
		       c->label[0] ? c->label : "(no label)", c->source, c->path ? ", " : "",
		       c->path ? c->path : "");
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

	if (view->by == RFL_CAPTURE_BY_METRIC) {
		put_metrics(c, view, out);
	} else {
		n = lines_of(c, false, false, view->most, lines);
		put_ranges(c, view, lines, n, out);
		n = lines_of(c, true, view->by == RFL_CAPTURE_BY_KERNEL, 0, lines);
		put_ranges(c, view, lines, n, out);
	}
	put_totals(c, view->format, out);
	rfl_buf_putc(out, '\n');
	put_remarks(c, lines, lines_of(c, true, true, 0, lines), out);
	if (view->explain)
		rfl_captures__explain(c, view, out);
}

void rfl_captures_render(const struct rfl_captures *captures, const struct rfl_capture_view *view,
			 struct rfl_buf *out)
{
	if (view->format == RFL_FORMAT_CSV)
		rfl_counters_write(out, captures, true);
	else if (view->format == RFL_FORMAT_JSON)
		rfl_captures__json(captures, out);
	for (size_t i = 0; rfl_format_for_people(view->format) && i < captures->n; i++) {
		rfl_buf_puts(out, i > 0 ? "\n" : "");
		put_capture(captures->captures[i], view, out);
	}
}
