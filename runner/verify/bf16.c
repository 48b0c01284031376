/*
 * bf16.c - the rules for autocast to bfloat16.
 *
 * A number is rounded to bfloat16 with a relative error of at most u = 2^-8. A product of the
 * network (convolution, linear layer, matrix product) rounds three tensors: both operands and the
 * result; it adds up in float32, whose rounding is 2^-16 of that. Roundings are independent, so the
 * relative error of a tensor behind D products, in l2, is about u sqrt(3 D); a gradient has passed
 * each product forward and, with two products each, backward: u sqrt(9 D). Twice that is allowed.
 * It presumes that the operations between the products do not amplify: batch norm over two samples
 * does, and what comes behind it is reported, not judged.
 *
 * From the l2 of the logits follow their parts: one of them is allowed four times the root mean
 * square error, the sum sqrt(n) times the l2 (Cauchy), the loss sqrt(2 / rows) times it (the l2 of
 * its gradient), and u of itself, for it is a bfloat16 too.
 *
 * Two runs of the same arithmetic that add up in another order differ where a sum lies so near to
 * the middle between two bfloat16 numbers that it is rounded to the other one. They share all other
 * roundings: their logits are allowed half of that. Their gradients are allowed all of it, for the
 * kernels of normalisation round elsewhere from one version of PyTorch to the next.
 */
#include "runner/verify.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"

#define UNIT_ROUNDOFF 0x1p-8
#define SAFETY        2.0
#define SAME          0.5 /* of what is allowed, for two runs of the same arithmetic */
/* A small gradient is a difference of large terms: a tenth of the largest is the scale. */
#define SMALL_GRADIENT 0.1

static const char amplified[] = "batch norm over so few samples amplifies roundings";
static const char later[] = "steps amplify roundings";

static int products(const struct rfl_net *net)
{
	int n = 0;

	for (int i = 0; i < net->nnodes; i++)
		switch (net->nodes[i].op) {
		case RFL_OP_SDPA:
			n += 2;
			break;
		case RFL_OP_CONV2D:
		case RFL_OP_LINEAR:
		case RFL_OP_MATMUL:
			n++;
			break;
		default:
			break;
		}
	return n;
}

double rfl_verify__bf16_forward_error(const struct rfl_net *net)
{
	return SAFETY * UNIT_ROUNDOFF * sqrt(3.0 * products(net));
}

/* Terms of the sum in bfloat16 that is the gradient of a parameter; 0: it is another sum. */
static int64_t terms_in_bf16(const struct rfl_net *net, int param, int64_t batch)
{
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_shape *shape = &node->shape;

		if (node->op != RFL_OP_LAYER_NORM)
			continue;
		for (int j = 0; j < node->nparams; j++)
			if (node->param[j] == param)
				return batch * rfl_shape_numel(shape) / shape->dim[shape->ndim - 1];
	}
	return 0;
}

/* Allowed in the l2 of a gradient, relative. Products are counted by the caller, once. */
static double backward_error(int nproducts, int64_t terms)
{
	return SAFETY * UNIT_ROUNDOFF * sqrt(9.0 * nproducts + (double)terms / 6);
}

static bool normalises_by_batch(const struct rfl_net *net)
{
	for (int i = 0; i < net->nnodes; i++)
		if (net->nodes[i].op == RFL_OP_BATCH_NORM)
			return true;
	return false;
}

/* Logits in a list, all with one allowance. */
static enum rfl_rc each_logit(struct rfl_checks *checks, struct rfl_check check, int64_t rows,
			      int64_t first, const double *expected, const double *got,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	check.what = "logits";
	for (int64_t i = 0; i < rows * first && rc == RFL_OK; i++) {
		char item[48];

		(void)snprintf(item, sizeof(item), "[%lld][%lld]", (long long)(i / first),
			       (long long)(i % first));
		check.item = item;
		check.expected = expected[i];
		check.got = got[i];
		rc = rfl_checks_add(checks, &check, err);
	}
	return rc;
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
	const double of_one = 2 * error / sqrt(n); /* four times half of SAFETY */
	const double of_loss = sqrt(2.0 / (double)rows) * error;
	const struct {
		const char *what;
		double expected, got, allowed;
	} scalars[] = {
		{ "l2", expected->l2, got->l2, error },
		{ "sum", expected->sum, got->sum, sqrt(n) * error },
		{ "loss", expected->loss, got->loss,
		  of_loss + UNIT_ROUNDOFF * fabs(expected->loss) },
	};
	const char *note = batch_statistics ? amplified : NULL;
	struct rfl_check check = { .section = section,
				   .allowed = note ? NAN : of_one,
				   .note = note };
	enum rfl_rc rc = each_logit(checks, check, expected->rows, expected->first,
				    expected->logits, got->logits, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(scalars) && rc == RFL_OK; i++) {
		check.what = scalars[i].what;
		check.item = NULL;
		check.expected = scalars[i].expected;
		check.got = scalars[i].got;
		check.allowed = note ? NAN : scalars[i].allowed;
		rc = rfl_checks_add(checks, &check, err);
	}
	check.section = batch_statistics ? "PyTorch's bf16, batch_stats" : "PyTorch's bf16";
	check.allowed = note ? NAN : SAME * of_one;
	if (rc == RFL_OK && same)
		rc = each_logit(checks, check, same->rows, same->first, same->logits, got->logits,
				err);
	return rc;
}

/* @param share  of what is allowed where two libraries do the same arithmetic */
static enum rfl_rc each_gradient(struct rfl_checks *checks, struct rfl_check check,
				 const struct rfl_net *net, const struct rfl_golden *golden,
				 int64_t n, const double *expected, const double *got, double share,
				 struct rfl_err *err)
{
	const int nproducts = products(net);
	double largest = 0;
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < n; i++)
		largest = fmax(largest, expected[i]);
	for (int64_t i = 0, p = 0; i < n && rc == RFL_OK; i++, p++) {
		int64_t terms;

		while (rfl_param_is_buffer(net->params[p].kind))
			p++;
		terms = terms_in_bf16(net, (int)p, golden->batch);
		check.item = net->params[p].name;
		check.expected = expected[i];
		check.got = got[i];
		check.allowed = check.note
					? NAN
					: (terms ? 1 : share) * backward_error(nproducts, terms) *
						  fmax(expected[i], SMALL_GRADIENT * largest);
		rc = rfl_checks_add(checks, &check, err);
	}
	return rc;
}

enum rfl_rc rfl_verify__bf16_gradient(struct rfl_checks *checks, const struct rfl_net *net,
				      const struct rfl_golden *golden,
				      const struct rfl_golden_gradient *got, struct rfl_err *err)
{
	const struct rfl_golden_gradient *expected = &golden->logits.gradient;
	struct rfl_check check = {
		.section = "gradient",
		.what = "l2 of each",
		.note = normalises_by_batch(net) ? amplified : NULL,
	};
	enum rfl_rc rc = each_gradient(checks, check, net, golden, expected->n, expected->each,
				       got->each, 1, err);

	check.section = "PyTorch's bf16, gradient";
	if (rc == RFL_OK && golden->logits.has_bf16)
		rc = each_gradient(checks, check, net, golden, expected->n,
				   golden->logits.bf16_each, got->each, SAME, err);
	return rc;
}

enum rfl_rc rfl_verify__bf16_section(struct rfl_checks *checks, const struct rfl_net *net,
				     const struct rfl_golden *golden,
				     const struct rfl_golden_section *section,
				     const struct rfl_golden_run *got, struct rfl_err *err)
{
	const char *note =
		normalises_by_batch(net) && section->mode == RFL_ENGINE_TRAIN ? amplified : NULL;
	struct rfl_check check = { .section = section->name,
				   .what = "grad_l2_each_step0",
				   .note = note };
	enum rfl_rc rc = each_gradient(checks, check, net, golden, section->fp64.ngrads,
				       section->fp64.grads, got->grads, 1, err);

	for (int64_t i = 0; i < section->fp64.nlosses && rc == RFL_OK; i++) {
		char item[32];

		(void)snprintf(item, sizeof(item), "step %lld", (long long)i);
		check.what = i == 0 ? "losses" : "later losses";
		check.item = item;
		check.expected = section->fp64.losses[i];
		check.got = got->losses[i];
		check.note = note ? note : i > 0 ? later : NULL;
		check.allowed = check.note ? NAN
					   : rfl_verify__bf16_forward_error(net) *
						     fabs(section->fp64.losses[i]);
		rc = rfl_checks_add(checks, &check, err);
	}
	return rc;
}
