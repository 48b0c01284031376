/*
 * rules.c - the list of comparisons, and the rules that judge them.
 *
 * Autocast to bfloat16 rounds numbers with a relative error of at most u = 2^-8. A product of the
 * network (convolution, linear layer, matmul) rounds three tensors, both operands and the
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

/* The files hold NCHW, computed with AVX-512. In channels-last, or without AVX-512, PyTorch itself
 * sums in a different order and deviates more: up to 1.8 times the tolerance for VGG-16's gradients
 * in channels-last, in both 1.13 and 2.11, and 2.3 times for ResNet-18's with AVX2, in 1.13. */
#define ORDER_FACTOR 4.0

/* Without instructions for bfloat16, libtorch converts to float32 and back, which rounds more often
 * than the model above: logits of GPT-2 deviate by up to 1.2 times its tolerance, in 1.13. */
#define CONVERT_FACTOR 2.0

/* cuDNN may compute a float32 convolution by Winograd's algorithm. With tiles of 4 x 4 outputs its
 * largest error is about 7 times the error of a direct convolution (Lavin and Gray, 2016). Twice
 * that allows for FFTs and for sums of atomic additions. TF32, which is off, deviates by hundreds
 * of times PyTorch's own deviation. This factor has not been checked on a GPU. */
#define CUDA_FACTOR 16.0

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
static const char converted[] =
	"this CPU has no instructions for bf16, so it rounds at other points";
static const char later[] = "training steps amplify rounding errors";

/* ------------------------------------------------------------------ the list */

struct rfl_checks *rfl_checks_new(void)
{
	struct rfl_checks *checks = rfl_alloc_array(1, sizeof(*checks));

	checks->arena = rfl_arena_new();
	return checks;
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

void rfl_checks_add(struct rfl_checks *checks, const struct rfl_check *check)
{
	struct rfl_check c = *check;

	rfl_reserve(&checks->items, &checks->cap, checks->n + 1);
	c.section = rfl_arena_strdup(checks->arena, check->section);
	c.what = rfl_arena_strdup(checks->arena, check->what);
	c.item = rfl_arena_strdup(checks->arena, check->item ? check->item : "");
	if (c.note) /* reported, not judged */
		c.allowed = (double)NAN;
	if (isnan(c.allowed))
		c.verdict = RFL_VERDICT_REPORTED;
	else
		c.verdict = rfl_check_difference(&c) <= c.allowed ? RFL_VERDICT_AGREES
								  : RFL_VERDICT_DIFFERS;
	checks->items[checks->n++] = c;
}

/* Add a check; the format names its item. */
static void RFL_PRINTF(5, 6) add_item(struct rfl_checks *to, struct rfl_check check,
				      double expected, double got, const char *fmt, ...)
{
	char item[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(item, sizeof(item), fmt, ap);
	va_end(ap);
	check.item = item;
	check.expected = expected;
	check.got = got;
	rfl_checks_add(to, &check);
}

static void add_logits(struct rfl_checks *to, struct rfl_check check,
		       const struct rfl_golden_matrix *expected,
		       const struct rfl_golden_matrix *got)
{
	for (int64_t i = 0; i < expected->rows * expected->columns; i++)
		add_item(to, check, expected->values[i], got->values[i], "[%lld][%lld]",
			 (long long)(i / expected->columns), (long long)(i % expected->columns));
}

/* Add a single number with its tolerance. */
static void add_scalar(struct rfl_checks *to, struct rfl_check check, const char *what,
		       double expected, double got, double allowed)
{
	check.what = what;
	check.allowed = allowed;
	add_item(to, check, expected, got, "%s", "");
}

/* The largest |a - b|; b NULL: the largest a, which are not negative. */
static double largest(const double *a, const double *b, int64_t n)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, b ? fabs(a[i] - b[i]) : a[i]);
	return most;
}

/* The index of the first trained parameter, from p on. */
static int next_trained(const struct rfl_net *net, int p)
{
	while (rfl_param_is_buffer(net->params[p].kind))
		p++;
	return p;
}

void rfl_verify_fill(struct rfl_checks *checks)
{
	const struct rfl_check check = { .section = "fill", .what = "test vectors, bit for bit" };
	const struct rfl_fill_vector *v;

	for (size_t i = 0; (v = rfl_fill_vector_at(i)); i++) {
		uint32_t first5[5], bitsum;

		rfl_fill_vector_run(v, first5, &bitsum);
		for (int j = 0; j < 5; j++)
			add_item(checks, check, v->first5[j], first5[j], "%s [%d]", v->name, j);
		add_item(checks, check, v->bitsum, bitsum, "%s, bit sum", v->name);
	}
}

/* ------------------------------------------------------------------ logits */

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

double rfl_verify__bf16_error(const struct rfl_net *net)
{
	return SAFETY * UNIT_ROUNDOFF * sqrt(3.0 * products(net));
}

static double convert_factor(const struct rfl_verify__rules *r)
{
	return r->converts_bf16 ? CONVERT_FACTOR : 1;
}

static double bf16_error(const struct rfl_verify__rules *r)
{
	return convert_factor(r) * rfl_verify__bf16_error(r->net);
}

/* In float32, if every logit is within t, their sum is within n t and their l2 within sqrt(n) t.
 * The absolute values of the cross entropy's gradient add up to at most 2, so the loss is within
 * 2 t, plus its rounding to float. */
void rfl_verify__forward(const struct rfl_verify__rules *r, bool batch_statistics,
			 const struct rfl_golden_forward *got)
{
	const struct rfl_golden *g = r->golden;
	const struct rfl_golden_forward *expected =
		batch_statistics ? &g->logits.batch_stats : &g->logits.fp64;
	const struct rfl_golden_cast *same =
		batch_statistics ? &g->logits.bf16_train : &g->logits.bf16_eval;
	const double rows = (double)(g->batch * (g->tokens ? g->tokens : 1));
	const double n = rows * (double)g->logits.classes;
	struct rfl_check check = {
		.section = batch_statistics ? "batch_stats" : "logits",
		.what = "logits",
		.note = r->bf16 && batch_statistics ? amplified : NULL,
	};
	double t = (r->device == RFL_DEVICE_CUDA ? CUDA_FACTOR : 1) * LOGIT_FACTOR *
		   expected->max_abs_diff_fp32;
	double l2 = sqrt(n) * t;
	double loss = 2 * t + 0x1p-22 * fabs(expected->loss);

	if (r->bf16) {
		l2 = bf16_error(r) * expected->l2;
		t = 2 * l2 / sqrt(n); /* four times the error: l2 includes SAFETY */
		loss = sqrt(2.0 / rows) * l2 + UNIT_ROUNDOFF * fabs(expected->loss);
	}
	check.allowed = t;
	add_logits(r->to, check, &expected->logits, &got->logits);
	add_scalar(r->to, check, "sum", expected->sum, got->sum, sqrt(n) * l2);
	add_scalar(r->to, check, "l2", expected->l2, got->l2, l2);
	add_scalar(r->to, check, "loss", expected->loss, got->loss, loss);
	if (r->bf16) {
		check.section = batch_statistics ? "PyTorch's bf16, batch_stats" : "PyTorch's bf16";
		check.allowed = SAME * t;
		check.note = r->converts_bf16 ? converted : check.note;
		if (g->logits.has_bf16)
			add_logits(r->to, check, &same->logits, &got->logits);
		return;
	}
	check.what = "argmax";
	check.allowed = 0;
	if (expected->min_margin <= 2 * t) /* false if the margin is NaN */
		check.note = "the two largest logits are too close";
	for (int64_t i = 0; i < expected->logits.rows; i++)
		add_item(r->to, check, (double)expected->argmax[i], (double)got->argmax[i],
			 "row %lld", (long long)i);
}

void rfl_verify__layer(const struct rfl_verify__rules *r, const struct rfl_golden_layer *expected,
		       double l2)
{
	const struct rfl_check check = {
		.section = "trace",
		.what = "l2 of layers",
		.item = expected->name,
		.expected = expected->l2,
		.got = l2,
		.allowed = (r->bf16 ? bf16_error(r) : TRACE_SHARE) * expected->l2,
	};

	rfl_checks_add(r->to, &check);
}

/* ------------------------------------------------------------------ gradients and steps */

static bool normalises_by_batch(const struct rfl_net *net)
{
	for (int i = 0; i < net->nnodes; i++)
		if (net->nodes[i].op == RFL_OP_BATCH_NORM)
			return true;
	return false;
}

/* @param share  fraction of the tolerance, for two libraries with the same arithmetic */
static void add_bf16_gradients(const struct rfl_verify__rules *r, struct rfl_check check, int64_t n,
			       const double *expected, const double *got, double share)
{
	const double least = BF16_SMALL_GRADIENT * largest(expected, NULL, n);
	const struct rfl_net *net = r->net;
	const int nproducts = products(net);

	for (int64_t i = 0, p = 0; i < n; i++, p++) {
		int64_t terms = 0; /* terms of a gradient summed in bfloat16; else 0 */

		p = next_trained(net, (int)p);
		for (int k = 0; k < net->nnodes && !terms; k++) {
			const struct rfl_node *node = &net->nodes[k];
			const struct rfl_shape *shape = &node->shape;

			for (int j = 0; j < node->nparams && node->op == RFL_OP_LAYER_NORM; j++)
				if (node->param[j] == p)
					terms = r->golden->batch * rfl_shape_numel(shape) /
						shape->dim[shape->ndim - 1];
		}
		check.allowed = (terms ? 1 : share) *
				(convert_factor(r) * SAFETY * UNIT_ROUNDOFF *
				 sqrt(9.0 * nproducts + (double)terms / 6)) *
				fmax(expected[i], least);
		add_item(r->to, check, expected[i], got[i], "%s", net->params[p].name);
	}
}

/* Whether PyTorch sums in the order of the files. */
static bool has_order(const struct rfl_verify__rules *r)
{
	return r->device == RFL_DEVICE_CPU && r->layout == RFL_LAYOUT_NCHW && !r->other_order;
}

static double allowance(const struct rfl_verify__rules *r, double deviation)
{
	return (r->device == RFL_DEVICE_CUDA ? CUDA_FACTOR
		: has_order(r)               ? 1
					     : ORDER_FACTOR) *
	       (STEP_FLOOR + STEP_FACTOR * deviation);
}

void rfl_verify__gradient(const struct rfl_verify__rules *r, const struct rfl_golden_gradient *got)
{
	const struct rfl_golden_gradient *expected = &r->golden->logits.gradient;
	const double least = SMALL_GRADIENT * largest(expected->each, NULL, expected->n);
	struct rfl_check check = { .section = "gradient", .what = "l2 of each" };

	if (r->bf16) {
		check.note = normalises_by_batch(r->net) ? amplified : NULL;
		add_bf16_gradients(r, check, expected->n, expected->each, got->each, 1);
		check.section = "PyTorch's bf16, gradient";
		check.note = r->converts_bf16 ? converted : check.note;
		if (r->golden->logits.has_bf16)
			add_bf16_gradients(r, check, expected->n, r->golden->logits.bf16_each,
					   got->each, SAME);
		return;
	}
	add_scalar(r->to, check, "loss", expected->loss, got->loss,
		   allowance(r, expected->loss_abs_diff_fp32));
	for (int64_t i = 0, p = 0; i < expected->n; i++, p++) {
		p = next_trained(r->net, (int)p);
		check.allowed =
			allowance(r, expected->max_rel_diff_fp32 * fmax(expected->each[i], least));
		add_item(r->to, check, expected->each[i], got->each[i], "%s",
			 r->net->params[p].name);
	}
}

static void bf16_section(const struct rfl_verify__rules *r,
			 const struct rfl_golden_section *section, const struct rfl_golden_run *got)
{
	const char *note =
		normalises_by_batch(r->net) && section->mode == RFL_ENGINE_TRAIN ? amplified : NULL;
	const struct rfl_golden_run *is64 = &section->fp64;
	struct rfl_check check = {
		.section = section->name,
		.what = "grad_l2_each_step0",
		.note = note,
	};

	add_bf16_gradients(r, check, is64->ngrads, is64->grads, got->grads, 1);
	for (int64_t i = 0; i < is64->nlosses; i++) {
		check.what = i == 0 ? "losses" : "later losses";
		check.note = note ? note : i > 0 ? later : NULL;
		check.allowed = bf16_error(r) * fabs(is64->losses[i]);
		add_item(r->to, check, is64->losses[i], got->losses[i], "step %lld", (long long)i);
	}
}

void rfl_verify__section(const struct rfl_verify__rules *r,
			 const struct rfl_golden_section *section, const struct rfl_golden_run *got)
{
	const struct rfl_golden_run *is32 = &section->fp32, *is64 = &section->fp64;
	const bool is_chaotic =
		!isnan(is64->norms[RFL_GOLDEN_RUNNING_MEAN]) && strcmp(section->name, "sgd") == 0;
	const double worst = largest(is32->grads, is64->grads, is64->ngrads);
	struct rfl_check check = { .section = section->name };

	if (r->bf16) {
		bf16_section(r, section, got);
		return;
	}
	for (int64_t i = 0; i < is64->nlosses; i++) {
		check.note = is_chaotic && i > 0 ? chaotic : NULL;
		check.what = check.note ? "later losses" : "losses";
		check.allowed = allowance(r, largest(is32->losses, is64->losses, i + 1));
		add_item(r->to, check, is64->losses[i], got->losses[i], "step %lld", (long long)i);
	}
	check.note = NULL;
	check.what = "logits_first4_step0";
	check.allowed = allowance(r, largest(is32->logits.values, is64->logits.values,
					     is64->logits.rows * is64->logits.columns));
	add_logits(r->to, check, &is64->logits, &got->logits);
	check.what = "grad_l2_each_step0";
	check.allowed = allowance(r, worst);
	for (int64_t i = 0; i < is64->ngrads; i++)
		add_item(r->to, check, is64->grads[i], got->grads[i], "%s",
			 r->golden->train.param_names[i]);
	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT; i++) {
		const bool is_gradient = i == RFL_GOLDEN_GRAD_FIRST || i == RFL_GOLDEN_GRAD_LAST ||
					 i == RFL_GOLDEN_GRAD_ALL;
		double deviation = fabs(is32->norms[i] - is64->norms[i]);

		if (isnan(is64->norms[i]))
			continue; /* the network lacks this norm */
		/* PyTorch's deviation of one number may be small by chance and larger in another
		 * order of summation, so use the largest deviation of all gradients */
		if (!has_order(r) && is_gradient)
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
		add_scalar(r->to, check, rfl_golden_norm_names[i], is64->norms[i], got->norms[i],
			   allowance(r, deviation));
	}
}
