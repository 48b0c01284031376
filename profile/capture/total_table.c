/*
 * total_table.c - the totals of a capture as people read them, and what follows from two of
 * them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/capture/table_impl.h"

double rfl_amounts_ratio(double a, int64_t a_launches, double b, int64_t b_launches)
{
	return a_launches == b_launches && b > 0 ? a / b : (double)NAN;
}

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
		double value = rfl_amounts_ratio(a->value, a->launches, b->value, b->launches);

		/* Cycles of several processors over the time of one process are no clock. */
		if ((ratios[i].a == RFL_QUANTITY_CYCLES && ratios[i].b == RFL_QUANTITY_TIME &&
		     c->total_kind == RFL_RANGE_PROCESS) ||
		    (ratios[i].a == RFL_QUANTITY_INSTRUCTIONS && isnan(rfl_capture_ipc(c))))
			continue;
		if (!isnan(value))
			put_total_row(t, ratios[i].name, ratios[i].unit, value, a, b, all);
	}
}

/* Render, and release. A table that could not be made is out of memory. */
enum rfl_rc rfl_capture__finish_table(struct rfl_table *t, enum rfl_format format,
				      struct rfl_buf *out, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a table");
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	rfl_buf_putc(out, '\n');
	return rc;
}

enum rfl_rc rfl_capture__total_table(const struct rfl_capture *c, enum rfl_format format,
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
	return rfl_capture__finish_table(t, format, out, err);
}
