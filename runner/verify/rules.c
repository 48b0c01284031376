/*
 * rules.c - the list of comparisons, and the rules that judge them.
 *
 * Autocast to bfloat16 rounds numbers with a relative error of at most u = 2^-8. A product of the
 * network (convolution, linear layer, matrix product) rounds three tensors, both operands and the
 * result; it accumulates in float32, which adds only 2^-16 of that error. Rounding errors are
 * independent, so the relative l2 error of a tensor after D products is about u sqrt(3 D). A
 * gradient has passed through each product forward and two per product backward: u sqrt(9 D). The
 * tolerance is twice that, on the assumption that operations between the products do not amplify
 * errors. Batch norm over two samples does, so everything after it is reported, not judged.
 *
 * The tolerances of single values follow from the l2 error of the logits. They are four times the
 * root mean square error for a logit; sqrt(n) times the l2 error for the sum (Cauchy-Schwarz); and
 * sqrt(2 / rows), the l2 of its gradient, times the l2 error for the loss, plus u times the loss,
 * which is also a bfloat16.
 *
 * Two runs of the same arithmetic with different orders of summation differ only if a sum is so
 * close to the midpoint of two bfloat16 numbers that it is rounded the other way. All other values
 * are rounded equally, so logits get half the tolerance. Gradients get all of it, because
 * normalisation kernels round at different points in different versions of PyTorch.
 */
#include "runner/verify.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/fill.h"

const char *const rfl_verdict_names[] = { "agrees", "differs", "reported", NULL };

/* Multiples of PyTorch's own deviation of float32 from double. */
#define LOGIT_FACTOR 5.0
#define STEP_FACTOR  10.0
#define STEP_FLOOR   1e-5
#define TRACE_SHARE  2e-5

/* The files hold NCHW. In channels-last, PyTorch itself sums in a different order and deviates
 * more: up to 1.8 times the NCHW tolerance for VGG-16's gradients, in both 1.13 and 2.11. */
#define NHWC_FACTOR 4.0

/* Rounding errors of large gradients dominate small gradients, which are therefore judged relative
 * to this fraction of the largest one. */
#define SMALL_GRADIENT      0.01
#define BF16_SMALL_GRADIENT 0.1

#define UNIT_ROUNDOFF 0x1p-8
#define SAFETY        2.0
#define SAME          0.5 /* fraction of the tolerance for two runs of the same arithmetic */

static const char chaotic[] = "batch norm over so few images is chaotic at this learning rate";
static const char unsteady[] = "differs between versions of PyTorch";
static const char amplified[] = "batch norm over so few samples amplifies rounding errors";
static const char later[] = "training steps amplify rounding errors";

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
	return d == 0 ? 0 : d / check->allowed; /* infinite if nothing is allowed */
}

enum rfl_rc rfl_checks_add(struct rfl_checks *checks, const struct rfl_check *check,
			   struct rfl_err *err)
{
	struct rfl_check c = *check;

	if (rfl_grow(&checks->items, &checks->cap, checks->n + 1, SIZE_MAX, NULL) != RFL_OK)
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	c.section = rfl_arena_strdup(checks->arena, check->section);
	c.what = rfl_arena_strdup(checks->arena, check->what);
	c.item = rfl_arena_strdup(checks->arena, check->item ? check->item : "");
	c.note = check->note ? rfl_arena_strdup(checks->arena, check->note) : NULL;
	if (!c.section || !c.what || !c.item || (check->note && !c.note))
		return rfl_fail(err, RFL_ENOMEM, 0, "verify: out of memory");
	if (isnan(c.allowed))
		c.verdict = RFL_VERDICT_REPORTED;
	else
		c.verdict = rfl_check_difference(&c) <= c.allowed ? RFL_VERDICT_AGREES
								  : RFL_VERDICT_DIFFERS;
	checks->items[checks->n++] = c;
	return RFL_OK;
}

/* A list to add to, and the first failure, after which nothing more is added. */
struct adding {
	struct rfl_checks *to;
	struct rfl_err *err;
	enum rfl_rc rc;
};

/* Add a check; the format names its item. An item with a note is reported, not judged. */
static void RFL_PRINTF(5, 6) add_item(struct adding *a, struct rfl_check check, double expected,
				      double got, const char *fmt, ...)
{
	char item[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(item, sizeof(item), fmt, ap);
	va_end(ap);
	check.item = item;
	check.expected = expected;
	check.got = got;
	if (check.note)
		check.allowed = (double)NAN;
	if (a->rc == RFL_OK)
		a->rc = rfl_checks_add(a->to, &check, a->err);
}

static void add_logits(struct adding *a, struct rfl_check check, int64_t rows, int64_t first,
		       const double *expected, const double *got)
{
	for (int64_t i = 0; i < rows * first && a->rc == RFL_OK; i++)
		add_item(a, check, expected[i], got[i], "[%lld][%lld]", (long long)(i / first),
			 (long long)(i % first));
}

/* Add a single number with its tolerance. */
static void add_scalar(struct adding *a, struct rfl_check check, const char *what, double expected,
		       double got, double allowed)
{
	check.what = what;
	check.allowed = allowed;
	add_item(a, check, expected, got, "%s", "");
}

static double largest_of(const double *x, int64_t n)
{
	double largest = 0;

	for (int64_t i = 0; i < n; i++)
		largest = fmax(largest, x[i]);
	return largest;
}

static double largest_deviation(const double *a, const double *b, int64_t n)
{
	double largest = 0;

	for (int64_t i = 0; i < n; i++)
		largest = fmax(largest, fabs(a[i] - b[i]));
	return largest;
}

/* The index of the first trained parameter, from p on. */
static int next_trained(const struct rfl_net *net, int p)
{
	while (rfl_param_is_buffer(net->params[p].kind))
		p++;
	return p;
}

/* ------------------------------------------------------------------ the fill */

enum rfl_rc rfl_verify_fill(struct rfl_checks *checks, struct rfl_err *err)
{
	struct adding a = { .to = checks, .err = err };
	const struct rfl_fill_vector *v;

	for (size_t i = 0; a.rc == RFL_OK && (v = rfl_fill_vector_at(i)); i++) {
		const struct rfl_check check = { .section = "fill",
						 .what = "test vectors, bit for bit" };
		uint32_t first5[5], bitsum;

		a.rc = rfl_fill_vector_run(v, first5, &bitsum, err);
		for (int j = 0; a.rc == RFL_OK && j < 5; j++)
			add_item(&a, check, v->first5[j], first5[j], "%s [%d]", v->name, j);
		if (a.rc == RFL_OK)
			add_item(&a, check, v->bitsum, bitsum, "%s, bit sum", v->name);
	}
	return a.rc;
}

/* ------------------------------------------------------------------ in float32 */

/* If every logit is within t, their sum is within n t and their l2 within sqrt(n) t. The absolute
 * values of the cross entropy's gradient add up to at most 2, so the loss is within 2 t, plus its
 * rounding to float. */
enum rfl_rc rfl_verify__forward(struct rfl_checks *checks, const char *section,
				const struct rfl_golden_forward *expected,
				const struct rfl_golden_forward *got, int64_t rows, int64_t classes,
				struct rfl_err *err)
{
	const double t = LOGIT_FACTOR * expected->max_abs_diff_fp32;
	const double n = (double)(rows * classes);
	const bool close = expected->min_margin <= 2 * t; /* false if the margin is NaN */
	struct adding a = { .to = checks, .err = err };
	struct rfl_check check = { .section = section, .what = "logits", .allowed = t };

	add_logits(&a, check, expected->rows, expected->first, expected->logits, got->logits);
	add_scalar(&a, check, "sum", expected->sum, got->sum, n * t);
	add_scalar(&a, check, "l2", expected->l2, got->l2, sqrt(n) * t);
	add_scalar(&a, check, "loss", expected->loss, got->loss,
		   2 * t + 0x1p-22 * fabs(expected->loss));
	check.what = "argmax";
	check.allowed = 0;
	check.note = close ? "the two largest logits are too close" : NULL;
	for (int64_t i = 0; i < expected->rows; i++)
		add_item(&a, check, (double)expected->argmax[i], (double)got->argmax[i], "row %lld",
			 (long long)i);
	return a.rc;
}

enum rfl_rc rfl_verify__layer(struct rfl_checks *checks, const struct rfl_golden_layer *expected,
			      const struct rfl_golden_layer *got, double share, struct rfl_err *err)
{
	const struct rfl_check check = {
		.section = "trace",
		.what = "l2 of layers",
		.item = expected->name,
		.expected = expected->l2,
		.got = got->l2,
		.allowed = (isnan(share) ? TRACE_SHARE : share) * expected->l2,
	};

	return rfl_checks_add(checks, &check, err);
}

static double allowance(const struct rfl_checks *checks, double deviation)
{
	return (checks->layout == RFL_LAYOUT_NHWC ? NHWC_FACTOR : 1) *
	       (STEP_FLOOR + STEP_FACTOR * deviation);
}

enum rfl_rc rfl_verify__gradient(struct rfl_checks *checks, const struct rfl_net *net,
				 const struct rfl_golden_gradient *expected,
				 const struct rfl_golden_gradient *got, struct rfl_err *err)
{
	const double least = SMALL_GRADIENT * largest_of(expected->each, expected->n);
	struct adding a = { .to = checks, .err = err };
	struct rfl_check check = { .section = "gradient", .what = "l2 of each" };

	add_scalar(&a, check, "loss", expected->loss, got->loss,
		   allowance(checks, expected->loss_abs_diff_fp32));
	for (int64_t i = 0, p = 0; i < expected->n; i++, p++) {
		p = next_trained(net, (int)p);
		check.allowed = allowance(checks, expected->max_rel_diff_fp32 *
							  fmax(expected->each[i], least));
		add_item(&a, check, expected->each[i], got->each[i], "%s", net->params[p].name);
	}
	return a.rc;
}

enum rfl_rc rfl_verify__section(struct rfl_checks *checks, const struct rfl_golden *golden,
				const struct rfl_golden_section *section,
				const struct rfl_golden_run *got, struct rfl_err *err)
{
	const struct rfl_golden_run *is32 = &section->fp32, *is64 = &section->fp64;
	const bool is_chaotic =
		!isnan(is64->norms[RFL_GOLDEN_RUNNING_MEAN]) && strcmp(section->name, "sgd") == 0;
	const double worst = largest_deviation(is32->grads, is64->grads, is64->ngrads);
	struct adding a = { .to = checks, .err = err };
	struct rfl_check check = { .section = section->name };

	for (int64_t i = 0; i < is64->nlosses; i++) {
		check.note = is_chaotic && i > 0 ? chaotic : NULL;
		check.what = check.note ? "later losses" : "losses";
		check.allowed =
			allowance(checks, largest_deviation(is32->losses, is64->losses, i + 1));
		add_item(&a, check, is64->losses[i], got->losses[i], "step %lld", (long long)i);
	}
	check.note = NULL;
	check.what = "logits_first4_step0";
	check.allowed = allowance(
		checks, largest_deviation(is32->logits, is64->logits, is64->rows * is64->first));
	add_logits(&a, check, is64->rows, is64->first, is64->logits, got->logits);
	check.what = "grad_l2_each_step0";
	check.allowed = allowance(checks, worst);
	for (int64_t i = 0; i < is64->ngrads; i++)
		add_item(&a, check, is64->grads[i], got->grads[i], "%s",
			 golden->train.param_names[i]);
	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT; i++) {
		const bool is_gradient = i == RFL_GOLDEN_GRAD_FIRST || i == RFL_GOLDEN_GRAD_LAST ||
					 i == RFL_GOLDEN_GRAD_ALL;
		double deviation = fabs(is32->norms[i] - is64->norms[i]);

		if (isnan(is64->norms[i]))
			continue; /* the network lacks this norm */
		/* PyTorch's deviation of one number may be small by chance and larger in another
		 * order of summation, so use the largest deviation of all gradients */
		if (checks->layout != RFL_LAYOUT_NCHW && is_gradient)
			deviation = fmax(deviation, i == RFL_GOLDEN_GRAD_ALL
							    ? sqrt((double)is64->ngrads) * worst
							    : worst);
		/* values from before the first step are always judged */
		if (i == RFL_GOLDEN_RUNNING_VAR)
			check.note = unsteady;
		else if (is_chaotic && !is_gradient && i != RFL_GOLDEN_PARAM_BEFORE)
			check.note = chaotic;
		else
			check.note = NULL;
		add_scalar(&a, check, rfl_golden_norm_names[i], is64->norms[i], got->norms[i],
			   allowance(checks, deviation));
	}
	return a.rc;
}

/* ------------------------------------------------------------------ in bfloat16 */

static int products(const struct rfl_net *net)
{
	int n = 0;

	for (int i = 0; i < net->nnodes; i++) {
		const enum rfl_op op = net->nodes[i].op;

		if (op == RFL_OP_SDPA)
			n += 2;
		else if (op == RFL_OP_CONV2D || op == RFL_OP_LINEAR || op == RFL_OP_MATMUL)
			n++;
	}
	return n;
}

double rfl_verify__bf16_forward_error(const struct rfl_net *net)
{
	return SAFETY * UNIT_ROUNDOFF * sqrt(3.0 * products(net));
}

static bool normalises_by_batch(const struct rfl_net *net)
{
	for (int i = 0; i < net->nnodes; i++)
		if (net->nodes[i].op == RFL_OP_BATCH_NORM)
			return true;
	return false;
}

enum rfl_rc rfl_verify__bf16_forward(struct rfl_checks *checks, const char *section,
				     const struct rfl_net *net, int64_t rows,
				     const struct rfl_golden_forward *expected,
				     const struct rfl_golden_cast *same,
				     const struct rfl_golden_forward *got, bool batch_statistics,
				     struct rfl_err *err)
{
	const double error = rfl_verify__bf16_forward_error(net) * expected->l2;
	const double n = (double)rows * (double)net->classes;
	const double of_one = 2 * error / sqrt(n); /* four times the error: error includes SAFETY */
	const double of_loss = sqrt(2.0 / (double)rows) * error;
	struct adding a = { .to = checks, .err = err };
	struct rfl_check check = {
		.section = section,
		.what = "logits",
		.allowed = of_one,
		.note = batch_statistics ? amplified : NULL,
	};

	add_logits(&a, check, expected->rows, expected->first, expected->logits, got->logits);
	add_scalar(&a, check, "l2", expected->l2, got->l2, error);
	add_scalar(&a, check, "sum", expected->sum, got->sum, sqrt(n) * error);
	add_scalar(&a, check, "loss", expected->loss, got->loss,
		   of_loss + UNIT_ROUNDOFF * fabs(expected->loss));
	check.section = batch_statistics ? "PyTorch's bf16, batch_stats" : "PyTorch's bf16";
	check.allowed = SAME * of_one;
	if (same)
		add_logits(&a, check, same->rows, same->first, same->logits, got->logits);
	return a.rc;
}

/* @param share  fraction of the tolerance, for two libraries with the same arithmetic */
static void add_bf16_gradients(struct adding *a, struct rfl_check check, const struct rfl_net *net,
			       int64_t batch, int64_t n, const double *expected, const double *got,
			       double share)
{
	const double least = BF16_SMALL_GRADIENT * largest_of(expected, n);
	const int nproducts = products(net);

	for (int64_t i = 0, p = 0; i < n; i++, p++) {
		int64_t terms = 0; /* terms of a gradient summed in bfloat16; else 0 */

		p = next_trained(net, (int)p);
		for (int k = 0; k < net->nnodes && !terms; k++) {
			const struct rfl_node *node = &net->nodes[k];
			const struct rfl_shape *shape = &node->shape;

			for (int j = 0; j < node->nparams && node->op == RFL_OP_LAYER_NORM; j++)
				if (node->param[j] == p)
					terms = batch * rfl_shape_numel(shape) /
						shape->dim[shape->ndim - 1];
		}
		check.allowed =
			(terms ? 1 : share) *
			(SAFETY * UNIT_ROUNDOFF * sqrt(9.0 * nproducts + (double)terms / 6)) *
			fmax(expected[i], least);
		add_item(a, check, expected[i], got[i], "%s", net->params[p].name);
	}
}

enum rfl_rc rfl_verify__bf16_gradient(struct rfl_checks *checks, const struct rfl_net *net,
				      const struct rfl_golden *golden,
				      const struct rfl_golden_gradient *got, struct rfl_err *err)
{
	const struct rfl_golden_gradient *expected = &golden->logits.gradient;
	struct adding a = { .to = checks, .err = err };
	struct rfl_check check = {
		.section = "gradient",
		.what = "l2 of each",
		.note = normalises_by_batch(net) ? amplified : NULL,
	};

	add_bf16_gradients(&a, check, net, golden->batch, expected->n, expected->each, got->each,
			   1);
	check.section = "PyTorch's bf16, gradient";
	if (golden->logits.has_bf16)
		add_bf16_gradients(&a, check, net, golden->batch, expected->n,
				   golden->logits.bf16_each, got->each, SAME);
	return a.rc;
}

enum rfl_rc rfl_verify__bf16_section(struct rfl_checks *checks, const struct rfl_net *net,
				     const struct rfl_golden *golden,
				     const struct rfl_golden_section *section,
				     const struct rfl_golden_run *got, struct rfl_err *err)
{
	const char *note =
		normalises_by_batch(net) && section->mode == RFL_ENGINE_TRAIN ? amplified : NULL;
	const double *losses = section->fp64.losses;
	struct adding a = { .to = checks, .err = err };
	struct rfl_check check = {
		.section = section->name,
		.what = "grad_l2_each_step0",
		.note = note,
	};

	add_bf16_gradients(&a, check, net, golden->batch, section->fp64.ngrads, section->fp64.grads,
			   got->grads, 1);
	for (int64_t i = 0; i < section->fp64.nlosses; i++) {
		check.what = i == 0 ? "losses" : "later losses";
		check.note = note ? note : i > 0 ? later : NULL;
		check.allowed = rfl_verify__bf16_forward_error(net) * fabs(losses[i]);
		add_item(&a, check, losses[i], got->losses[i], "step %lld", (long long)i);
	}
	return a.rc;
}
