/*
 * selftest.c - the work of known size, counted by the same sessions that count a run, and turned
 * into quantities by the same formulas.
 */
#include "profile/cupti/selftest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/cupti/plan.h"
#include "profile/cupti/session.h"
#include "profile/cupti/selftest_impl.h"

#define ECC_MOST 1.25 /* more than a quarter is not put down to check bits */

/* ------------------------------------------------------------------ what is expected */

static void expect(struct rfl_selftest *t, const char *work, enum rfl_quantity q, double known,
		   const char *reason)
{
	struct rfl_selftest_row *r = &t->rows[t->n++];

	*r = (struct rfl_selftest_row){
		.work = work, .quantity = q, .known = known, .measured = NAN
	};
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static void expect_all(struct rfl_selftest *t, const struct rfl_selftest_work *w, unsigned set)
{
	const double copied =
		w->copy_bytes ? (double)w->copies * (double)w->copy_bytes : (double)NAN;

	if (set == RFL_SET_CORE) {
		expect(t, "copy", RFL_QUANTITY_DRAM_READ, copied, w->copy_reason);
		expect(t, "copy", RFL_QUANTITY_DRAM_WRITE, copied, w->copy_reason);
	}
	if (w->product.kernel)
		expect(t, w->product.kernel->name, w->product.kernel->quantity, w->product.flops,
		       "");
}

/* ------------------------------------------------------------------ counting */

/* Values of a session into the rows that belong to its ranges. */
static void take(struct rfl_selftest *t, const struct rfl_cupti_plan *plan,
		 const struct rfl_cupti_planned *s, const struct rfl_counted *c)
{
	double amounts[RFL_QUANTITY_COUNT];

	for (size_t i = 0; i < c->n; i++) {
		rfl_cupti_plan_amounts(plan, s, c->ranges[i].values, amounts);
		for (size_t k = 0; k < t->n; k++)
			if (strcmp(t->rows[k].work, c->ranges[i].name) == 0 &&
			    isnan(t->rows[k].measured))
				t->rows[k].measured = amounts[t->rows[k].quantity];
	}
}

static enum rfl_rc count(struct rfl_selftest *t, struct rfl_cupti_target *target,
			 const struct rfl_cupti_plan *plan, const struct rfl_cupti_planned *s,
			 struct rfl_selftest_work *work, struct rfl_err *err)
{
	struct rfl_replay replay = { .run = rfl_selftest__work_run, .ctx = work, .max_ranges = 2 };
	struct rfl_cupti_session *session = NULL;
	struct rfl_counted counted = { .arena = NULL };
	enum rfl_rc rc;

	rc = rfl_cupti_session_open(target, s, replay.max_ranges, &session, err);
	if (rc == RFL_OK)
		rc = rfl_cupti_session_count(session, &replay, &counted, err);
	if (rc == RFL_OK)
		take(t, plan, s, &counted);
	rfl_counted_fini(&counted);
	rfl_cupti_session_close(session);
	return rc;
}

/* Rows that the session gave no value get the reason. */
static void explain(struct rfl_selftest *t, const struct rfl_cupti_plan *plan, const char *why)
{
	for (size_t i = 0; i < t->n; i++) {
		struct rfl_selftest_row *r = &t->rows[i];
		const char *impossible = plan->formulas->quantities[r->quantity].impossible;

		if (isnan(r->measured) && !r->reason[0])
			snprintf(r->reason, sizeof(r->reason), "%.*s", (int)sizeof(r->reason) - 1,
				 impossible ? impossible : why);
	}
}

enum rfl_rc rfl_selftest_run(struct rfl_cuda *cuda, struct rfl_cupti_target *target,
			     const char *precision, unsigned set, struct rfl_selftest *ret,
			     struct rfl_err *err)
{
	struct rfl_selftest_work work = { .cuda = NULL };
	const struct rfl_cupti_planned *s;
	struct rfl_selftest rows = *ret;
	struct rfl_cupti_plan *plan = NULL;
	enum rfl_rc rc;

	rc = rfl_cupti_plan_new(target->lib, target->chip, target->availability, set, precision,
				&plan, err);
	if (rc == RFL_OK)
		rc = rfl_selftest__work_init(&work, cuda, precision, set, err);
	if (rc != RFL_OK)
		goto done;
	expect_all(&rows, &work, set);
	s = &plan->sessions[0];
	if (s->why.rc != RFL_OK)
		rc = rfl_fail(err, s->why.rc, s->why.native, "%s", s->why.msg);
	else if (s->metrics.n == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "the chip has no counters for it");
	else
		rc = count(&rows, target, plan, s, &work, err);
	if (rc != RFL_OK)
		goto done;
	explain(&rows, plan, "the counter gave no value");
	rows.ecc = rfl_cuda_ecc(cuda);
	*ret = rows;
done:
	rfl_selftest__work_fini(&work);
	rfl_cupti_plan_free(plan);
	return rc;
}

/* ------------------------------------------------------------------ results */

double rfl_selftest_ratio(const struct rfl_selftest_row *row)
{
	return row->known > 0 ? row->measured / row->known : NAN;
}

bool rfl_selftest_is_ecc(const struct rfl_selftest *t, const struct rfl_selftest_row *row)
{
	const double ratio = rfl_selftest_ratio(row);

	return t->ecc && strncmp(rfl_quantity_info(row->quantity)->name, "dram", 4) == 0 &&
	       ratio > 1 && ratio < ECC_MOST;
}

const struct rfl_selftest_row *rfl_selftest_worst(const struct rfl_selftest *t, const char *family)
{
	const struct rfl_selftest_row *worst = NULL;
	double most = RFL_SELFTEST_TOLERANCE;

	for (size_t i = 0; i < t->n; i++) {
		const char *name = rfl_quantity_info(t->rows[i].quantity)->name;
		double off = fabs(rfl_selftest_ratio(&t->rows[i]) - 1);

		/* never true for NaN */
		if (off > most && strncmp(name, family, strlen(family)) == 0) {
			most = off;
			worst = &t->rows[i];
		}
	}
	return worst;
}

/* "dram_read_bytes of copy 1.0030 of what is known; ..." */
static void put_text(const struct rfl_selftest *t, struct rfl_buf *out)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct rfl_selftest_row *r = &t->rows[i];

		rfl_buf_printf(out, "%s%s of %s ", i ? "; " : "",
			       rfl_quantity_info(r->quantity)->name, r->work);
		if (isnan(r->measured))
			rfl_buf_printf(out, "not counted (%s)", r->reason);
		else
			rfl_buf_printf(out, "%.4f of what is known", rfl_selftest_ratio(r));
	}
}

static enum rfl_rc add_row(const struct rfl_selftest_row *r, struct rfl_capture_builder *b,
			   struct rfl_err *err)
{
	static const char *const parts[] = { "known", "measured", "ratio" };
	const struct rfl_quantity_info *info = rfl_quantity_info(r->quantity);
	const double values[] = { r->known, r->measured, rfl_selftest_ratio(r) };

	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++) {
		char name[96];
		int id;

		snprintf(name, sizeof(name), "selftest.%s.%s", info->name, parts[i]);
		id = rfl_capture_metric_id(b, name, strlen(name), i < 2 ? info->unit : "");
		if (id == -2)
			return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		if (id >= 0)
			(void)rfl_capture_metric(b, id, values[i],
						 isnan(values[i]) ? RFL_VALID_UNAVAILABLE
								  : RFL_VALID,
						 -1, isnan(values[i]) ? r->reason : NULL);
	}
	return RFL_OK;
}

enum rfl_rc rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b,
			     struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < t->n && rc == RFL_OK;) {
		const char *work = t->rows[i].work;

		rc = rfl_capture_begin(b, RFL_RANGE_SELF_TEST, work, NULL, NULL, err);
		for (; rc == RFL_OK && i < t->n && strcmp(t->rows[i].work, work) == 0; i++)
			rc = add_row(&t->rows[i], b, err);
		if (rc == RFL_OK)
			rc = rfl_capture_end(b, err);
	}
	rfl_buf_init(&text, RFL_ERR_MSG_MAX);
	put_text(t, &text);
	rfl_capture_note(b, "self-test: %s", rfl_buf_str(&text));
	rfl_buf_fini(&text);
	return rc;
}
