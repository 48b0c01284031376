/* accumulate.c - the same sum in several precisions. */
#include "report/accumulate.h"

#include <math.h>

#include "base/ieee.h"
#include "base/num.h"

/* The formats of the addend and of the sum. An addition converts both to the sum's format, as
 * PyTorch does for tensors of two types; an upcast before the addition changes nothing. */
static const struct {
	const char *name;
	const struct rfl_ieee *addend, *sum;
} sums[] = {
	{ "fp32", &rfl_ieee_fp32, &rfl_ieee_fp32 },
	{ "fp16", &rfl_ieee_fp16, &rfl_ieee_fp16 },
	{ "fp32 += fp16", &rfl_ieee_fp16, &rfl_ieee_fp32 },
	{ "fp32 += fp16 upcast to fp32", &rfl_ieee_fp16, &rfl_ieee_fp32 },
	{ "bf16", &rfl_ieee_bf16, &rfl_ieee_bf16 },
	{ "fp32 += bf16", &rfl_ieee_bf16, &rfl_ieee_fp32 },
};

struct row {
	const char *name, *addend_format, *sum_format;
	double sum, addend, error;
	double of_addend; /* part of the error: N times the rounding of the addend */
	double of_sum;    /* the rest: rounding of the additions */
	double spacing;   /* of the sum's format at the sum */
	int64_t stuck;    /* additions after which the sum no longer changes; unknown: it does */
};

#define REAL(member, ...) RFL_COLUMN(REAL, struct row, member, __VA_ARGS__)

static const struct rfl_column columns[] = {
	RFL_COLUMN(TEXT, struct row, name, "sum_of", "Sum"),
	REAL(sum, "sum", "Result", .decimals = 4),
	REAL(error, "error", "Error", .digits = 3),
	REAL(addend, "addend", "Stored addend", .digits = 9),
	REAL(of_addend, "error_of_addend", "error of the addend", .digits = 3),
	REAL(of_sum, "error_of_additions", "error of the additions", .digits = 3),
	REAL(spacing, "spacing", "Spacing", .digits = 3),
	RFL_COLUMN(INT, struct row, stuck, "stuck_after", "Stuck after"),
};

/* Note what makes most of the error. */
static void explain(struct rfl_table *t, double addend_value, int64_t count, const struct row *r)
{
	char addend[RFL_NUM_MAX], spacing[RFL_NUM_MAX], value[RFL_NUM_MAX];

	rfl_num_people(r->addend, 7, addend);
	rfl_num_people(r->spacing, 4, spacing);
	rfl_num_people(addend_value, 7, value);
	if (!isfinite(r->addend))
		rfl_table_note(t, "%s: %s is beyond the largest number of %s", r->name, value,
			       r->addend_format);
	else if (!isfinite(r->sum))
		rfl_table_note(t, "%s: the sum is beyond the largest number of %s", r->name,
			       r->sum_format);
	else if (r->stuck != RFL_INT_UNKNOWN)
		rfl_table_note(t,
			       "%s: stops growing: %s is not more than half of the spacing of %s "
			       "there, %s, so every addition is rounded back",
			       r->name, addend, r->sum_format, spacing);
	else if (r->of_sum == 0 && r->of_addend == 0)
		rfl_table_note(t, "%s: exact: nothing is rounded", r->name);
	else if (fabs(r->of_sum) > fabs(r->of_addend))
		rfl_table_note(t,
			       "%s: each addition is rounded to a multiple of the spacing of %s, "
			       "up to %s at the end; the errors add up",
			       r->name, r->sum_format, spacing);
	else
		rfl_table_note(t,
			       "%s: %s stores %s as %s; converting it to %s keeps that error, "
			       "which is added %lld times",
			       r->name, r->addend_format, value, addend, r->sum_format,
			       (long long)count);
}

struct rfl_table *rfl_accumulate_table(double value, int64_t count)
{
	const double exact = value * (double)count;
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	char number[RFL_NUM_MAX];

	rfl_num_people(exact, 6, number);
	rfl_table_note(t, "%lld additions; the exact sum is %s", (long long)count, number);
	for (size_t i = 0; i < RFL_ARRAY_LEN(sums); i++) {
		struct row r = {
			.name = sums[i].name,
			.addend_format = sums[i].addend->name,
			.sum_format = sums[i].sum->name,
			.addend = rfl_ieee_round(sums[i].addend, value),
			.stuck = RFL_INT_UNKNOWN,
		};

		for (int64_t k = 0; k < count; k++) {
			const double next = rfl_ieee_round(sums[i].sum, r.sum + r.addend);

			if (next == r.sum && r.addend != 0) {
				r.stuck = k;
				break;
			}
			r.sum = next;
		}
		r.error = r.sum - exact;
		r.of_addend = (double)count * (r.addend - value);
		r.of_sum = r.sum - (double)count * r.addend;
		r.spacing = isfinite(r.sum) ? rfl_ieee_spacing(sums[i].sum, r.sum) : (double)NAN;
		rfl_table_add(t, &r, 1, sizeof(r));
		explain(t, value, count, &r);
	}
	return t;
}
