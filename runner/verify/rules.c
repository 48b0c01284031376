/*
 * rules.c - the list of comparisons, and the rules by which they are judged.
 */
#include "runner/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/fill.h"

const char *const rfl_verdict_names[] = { "agrees", "differs", "reported", NULL };

/* Times PyTorch's own deviation of float32 from double. */
#define LOGIT_FACTOR 5.0
#define STEP_FACTOR  10.0
#define STEP_FLOOR   1e-5
#define TRACE_SHARE  2e-5

/* The files hold NCHW. In channels-last PyTorch itself sums in another order and strays further: in
 * VGG-16's gradients to 1.8 times what is allowed in NCHW, in 1.13 and 2.11 alike. */
#define NHWC_FACTOR 4.0

static const char chaotic[] = "batch norm over so few images is chaotic at this learning rate";
static const char unsteady[] = "PyTorch's own versions differ in it";

/* ------------------------------------------------------------------ the list */

enum rfl_rc rfl_checks_new(enum rfl_layout layout, struct rfl_checks **ret, struct rfl_err *err)
{
	struct rfl_checks *checks = calloc(1, sizeof(*checks));

	if (checks) {
		checks->layout = layout;
		checks->arena = rfl_arena_new(0);
	}
	if (!checks || !checks->arena) {
		rfl_checks_free(checks);
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	}
	*ret = checks;
	return RFL_OK;
}

void rfl_checks_free(struct rfl_checks *checks)
{
	if (!checks)
		return;
	rfl_arena_free(checks->arena);
	free(checks->items);
	free(checks);
}

double rfl_check_difference(const struct rfl_check *check)
{
	const double d = fabs(check->got - check->expected);

	return isnan(d) ? INFINITY : d;
}

double rfl_check_strain(const struct rfl_check *check)
{
	const double d = rfl_check_difference(check);

	if (isnan(check->allowed))
		return -1;
	if (d == 0)
		return 0;
	return d / check->allowed; /* infinite for 0 */
}

enum rfl_rc rfl_checks_add(struct rfl_checks *checks, const struct rfl_check *check,
			   struct rfl_err *err)
{
	struct rfl_check *items = checks->items, *c;

	if ((checks->n & (checks->n - 1)) == 0) { /* full at every power of two */
		const size_t room = checks->n ? 2 * checks->n : 1;

		items = realloc(items, room * sizeof(*items));
		if (!items)
			return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
		checks->items = items;
	}
	c = &items[checks->n];
	*c = *check;
	c->section = rfl_arena_strdup(checks->arena, check->section);
	c->what = rfl_arena_strdup(checks->arena, check->what);
	c->item = rfl_arena_strdup(checks->arena, check->item ? check->item : "");
	c->note = check->note ? rfl_arena_strdup(checks->arena, check->note) : NULL;
	if (!c->section || !c->what || !c->item || (check->note && !c->note))
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	if (isnan(c->allowed))
		c->verdict = RFL_VERDICT_REPORTED;
	else
		c->verdict = rfl_check_difference(c) <= c->allowed ? RFL_VERDICT_AGREES
								   : RFL_VERDICT_DIFFERS;
	checks->n++;
	return RFL_OK;
}

/* ------------------------------------------------------------------ the fill */

static enum rfl_rc fill_check(struct rfl_checks *checks, const char *item, uint32_t expected,
			      uint32_t got, struct rfl_err *err)
{
	return rfl_checks_add(checks,
			      &(struct rfl_check){ .section = "fill",
						   .what = "test vectors, to the bit",
						   .item = item,
						   .expected = expected,
						   .got = got },
			      err);
}

enum rfl_rc rfl_verify_fill(struct rfl_checks *checks, struct rfl_err *err)
{
	const struct rfl_fill_vector *v;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; rc == RFL_OK && (v = rfl_fill_vector_at(i)); i++) {
		uint32_t first5[5], bitsum;
		char item[96];

		rc = rfl_fill_vector_run(v, first5, &bitsum, err);
		for (int j = 0; rc == RFL_OK && j < 5; j++) {
			(void)snprintf(item, sizeof(item), "%s [%d]", v->name, j);
			rc = fill_check(checks, item, v->first5[j], first5[j], err);
		}
		(void)snprintf(item, sizeof(item), "%s, bit sum", v->name);
		if (rc == RFL_OK)
			rc = fill_check(checks, item, v->bitsum, bitsum, err);
	}
	return rc;
}

/* ------------------------------------------------------------------ one forward */

static enum rfl_rc logit_checks(struct rfl_checks *checks, const char *section,
				const struct rfl_golden_forward *expected,
				const struct rfl_golden_forward *got, double tolerance,
				struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < expected->rows * expected->first && rc == RFL_OK; i++) {
		char item[48];

		(void)snprintf(item, sizeof(item), "[%lld][%lld]", (long long)(i / expected->first),
			       (long long)(i % expected->first));
		rc = rfl_checks_add(checks,
				    &(struct rfl_check){ .section = section,
							 .what = "logits",
							 .item = item,
							 .expected = expected->logits[i],
							 .got = got->logits[i],
							 .allowed = tolerance },
				    err);
	}
	return rc;
}

static enum rfl_rc argmax_checks(struct rfl_checks *checks, const char *section,
				 const struct rfl_golden_forward *expected,
				 const struct rfl_golden_forward *got, double tolerance,
				 struct rfl_err *err)
{
	const bool safe = isnan(expected->min_margin) || expected->min_margin > 2 * tolerance;
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < expected->rows && rc == RFL_OK; i++) {
		char item[32];

		(void)snprintf(item, sizeof(item), "row %lld", (long long)i);
		rc = rfl_checks_add(
			checks,
			&(struct rfl_check){ .section = section,
					     .what = "argmax",
					     .item = item,
					     .expected = (double)expected->argmax[i],
					     .got = (double)got->argmax[i],
					     .allowed = safe ? 0 : NAN,
					     .note = safe ? NULL : "two logits are too close" },
			err);
	}
	return rc;
}

/* When every logit is within t, their sum is within n t, their l2 within sqrt(n) t, and the cross
 * entropy, whose gradient has an absolute sum of at most 2, within 2 t; it is itself a float. */
enum rfl_rc rfl_verify__forward(struct rfl_checks *checks, const char *section,
				const struct rfl_golden_forward *expected,
				const struct rfl_golden_forward *got, int64_t rows, int64_t classes,
				struct rfl_err *err)
{
	const double t = LOGIT_FACTOR * expected->max_abs_diff_fp32;
	const double n = (double)(rows * classes);
	const struct {
		const char *what;
		double expected, got, allowed;
	} scalars[] = {
		{ "sum", expected->sum, got->sum, n * t },
		{ "l2", expected->l2, got->l2, sqrt(n) * t },
		{ "loss", expected->loss, got->loss, 2 * t + 0x1p-22 * fabs(expected->loss) },
	};
	enum rfl_rc rc = logit_checks(checks, section, expected, got, t, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(scalars) && rc == RFL_OK; i++)
		rc = rfl_checks_add(checks,
				    &(struct rfl_check){ .section = section,
							 .what = scalars[i].what,
							 .expected = scalars[i].expected,
							 .got = scalars[i].got,
							 .allowed = scalars[i].allowed },
				    err);
	if (rc == RFL_OK)
		rc = argmax_checks(checks, section, expected, got, t, err);
	return rc;
}

enum rfl_rc rfl_verify__layer(struct rfl_checks *checks, const struct rfl_golden_layer *expected,
			      const struct rfl_golden_layer *got, double share, struct rfl_err *err)
{
	struct rfl_check check = {
		.section = "trace",
		.what = "l2 of layers",
		.item = expected->name,
		.expected = expected->l2,
		.got = got->l2,
		.allowed = (isnan(share) ? TRACE_SHARE : share) * expected->l2,
	};

	return rfl_checks_add(checks, &check, err);
}

/* ------------------------------------------------------------------ training */

static double largest_deviation(const double *a, const double *b, int64_t n)
{
	double largest = 0;

	for (int64_t i = 0; i < n; i++)
		largest = fmax(largest, fabs(a[i] - b[i]));
	return largest;
}

static double allowance(const struct rfl_checks *checks, double deviation)
{
	return (checks->layout == RFL_LAYOUT_NHWC ? NHWC_FACTOR : 1) *
	       (STEP_FLOOR + STEP_FACTOR * deviation);
}

static enum rfl_rc loss_checks(struct rfl_checks *checks, const struct rfl_golden_section *s,
			       const struct rfl_golden_run *got, bool is_chaotic,
			       struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < s->fp64.nlosses && rc == RFL_OK; i++) {
		const bool judged = !is_chaotic || i == 0;
		char item[32];

		(void)snprintf(item, sizeof(item), "step %lld", (long long)i);
		rc = rfl_checks_add(
			checks,
			&(struct rfl_check){
				.section = s->name,
				.what = judged ? "losses" : "later losses",
				.item = item,
				.expected = s->fp64.losses[i],
				.got = got->losses[i],
				.allowed =
					judged ? allowance(checks,
							   largest_deviation(s->fp32.losses,
									     s->fp64.losses, i + 1))
					       : NAN,
				.note = judged ? NULL : chaotic },
			err);
	}
	return rc;
}

static enum rfl_rc first_logit_checks(struct rfl_checks *checks, const struct rfl_golden_section *s,
				      const struct rfl_golden_run *got, struct rfl_err *err)
{
	const int64_t n = s->fp64.rows * s->fp64.first;
	const double allowed =
		allowance(checks, largest_deviation(s->fp32.logits, s->fp64.logits, n));
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < n && rc == RFL_OK; i++) {
		char item[48];

		(void)snprintf(item, sizeof(item), "[%lld][%lld]", (long long)(i / s->fp64.first),
			       (long long)(i % s->fp64.first));
		rc = rfl_checks_add(checks,
				    &(struct rfl_check){ .section = s->name,
							 .what = "logits_first4_step0",
							 .item = item,
							 .expected = s->fp64.logits[i],
							 .got = got->logits[i],
							 .allowed = allowed },
				    err);
	}
	return rc;
}

static enum rfl_rc grad_checks(struct rfl_checks *checks, const struct rfl_golden *golden,
			       const struct rfl_golden_section *s, const struct rfl_golden_run *got,
			       struct rfl_err *err)
{
	const double allowed =
		allowance(checks, largest_deviation(s->fp32.grads, s->fp64.grads, s->fp64.ngrads));
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < s->fp64.ngrads && rc == RFL_OK; i++)
		rc = rfl_checks_add(checks,
				    &(struct rfl_check){ .section = s->name,
							 .what = "grad_l2_each_step0",
							 .item = golden->train.param_names[i],
							 .expected = s->fp64.grads[i],
							 .got = got->grads[i],
							 .allowed = allowed },
				    err);
	return rc;
}

/* Of small gradients, which other ones' rounding drowns, a hundredth of the largest is the scale.
 */
#define SMALL_GRADIENT 0.01

enum rfl_rc rfl_verify__gradient(struct rfl_checks *checks, const struct rfl_net *net,
				 const struct rfl_golden_gradient *expected,
				 const struct rfl_golden_gradient *got, struct rfl_err *err)
{
	struct rfl_check check = {
		.section = "gradient",
		.what = "loss",
		.expected = expected->loss,
		.got = got->loss,
		.allowed = allowance(checks, expected->loss_abs_diff_fp32),
	};
	double largest = 0;
	enum rfl_rc rc = rfl_checks_add(checks, &check, err);

	check.what = "l2 of each";
	for (int64_t i = 0; i < expected->n; i++)
		largest = fmax(largest, expected->each[i]);
	for (int64_t i = 0, p = 0; i < expected->n && rc == RFL_OK; i++, p++) {
		const double scale = fmax(expected->each[i], SMALL_GRADIENT * largest);

		while (rfl_param_is_buffer(net->params[p].kind))
			p++;
		check.item = net->params[p].name;
		check.expected = expected->each[i];
		check.got = got->each[i];
		check.allowed = allowance(checks, expected->max_rel_diff_fp32 * scale);
		rc = rfl_checks_add(checks, &check, err);
	}
	return rc;
}

static bool is_gradient(enum rfl_golden_norm norm)
{
	return norm == RFL_GOLDEN_GRAD_FIRST || norm == RFL_GOLDEN_GRAD_LAST ||
	       norm == RFL_GOLDEN_GRAD_ALL;
}

/* What is known before the first step is judged in any case. */
static bool is_before_step(enum rfl_golden_norm norm)
{
	return is_gradient(norm) || norm == RFL_GOLDEN_PARAM_BEFORE;
}

/* PyTorch's deviation in one number may be small by luck, and in another order of summation luck
 * falls elsewhere: there, the worst of all gradients stands for each. */
static double norm_deviation(const struct rfl_checks *checks, const struct rfl_golden_section *s,
			     enum rfl_golden_norm norm)
{
	const double own = fabs(s->fp32.norms[norm] - s->fp64.norms[norm]);
	const int64_t n = s->fp64.ngrads;
	double worst;

	if (checks->layout == RFL_LAYOUT_NCHW || !is_gradient(norm))
		return own;
	worst = largest_deviation(s->fp32.grads, s->fp64.grads, n);
	return fmax(own, norm == RFL_GOLDEN_GRAD_ALL ? sqrt((double)n) * worst : worst);
}

static enum rfl_rc norm_checks(struct rfl_checks *checks, const struct rfl_golden_section *s,
			       const struct rfl_golden_run *got, bool is_chaotic,
			       struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT && rc == RFL_OK; i++) {
		const enum rfl_golden_norm norm = (enum rfl_golden_norm)i;
		struct rfl_check check = {
			.section = s->name,
			.what = rfl_golden_norm_names[i],
			.expected = s->fp64.norms[i],
			.got = got->norms[i],
			.allowed = allowance(checks, norm_deviation(checks, s, norm)),
		};

		if (isnan(s->fp64.norms[i]))
			continue; /* the network has no such thing */
		if (norm == RFL_GOLDEN_RUNNING_VAR)
			check.note = unsteady;
		else if (is_chaotic && !is_before_step(norm))
			check.note = chaotic;
		if (check.note)
			check.allowed = NAN;
		rc = rfl_checks_add(checks, &check, err);
	}
	return rc;
}

enum rfl_rc rfl_verify__section(struct rfl_checks *checks, const struct rfl_golden *golden,
				const struct rfl_golden_section *section,
				const struct rfl_golden_run *got, struct rfl_err *err)
{
	const bool has_batch_norm = !isnan(section->fp64.norms[RFL_GOLDEN_RUNNING_MEAN]);
	const bool is_chaotic = has_batch_norm && strcmp(section->name, "sgd") == 0;
	enum rfl_rc rc = loss_checks(checks, section, got, is_chaotic, err);

	if (rc == RFL_OK)
		rc = first_logit_checks(checks, section, got, err);
	if (rc == RFL_OK)
		rc = grad_checks(checks, golden, section, got, err);
	if (rc == RFL_OK)
		rc = norm_checks(checks, section, got, is_chaotic, err);
	return rc;
}
