/*
 * complexity_check.c - options of roofline complexity that contradict each other, or the networks
 * that were named. One that merely has no effect is accepted.
 */
#include "cli/cmd/complexity.h"

static bool is_of_zoo(const struct rfl_summary *s)
{
	return s->model != NULL;
}

static bool reads_images(const struct rfl_summary *s)
{
	return s->context_length == 0;
}

static bool has_auxiliary(const struct rfl_summary *s)
{
	for (int i = 0; i < s->net->nnodes; i++)
		if (s->net->nodes[i].auxiliary)
			return true;
	return false;
}

static bool has_causal(const struct rfl_summary *s)
{
	for (int i = 0; i < s->net->nnodes; i++) {
		const struct rfl_node *node = &s->net->nodes[i];

		if ((node->op == RFL_OP_MATMUL && node->attr.matmul.causal) ||
		    (node->op == RFL_OP_SDPA && node->attr.sdpa.causal))
			return true;
	}
	return false;
}

static bool has_attention(const struct rfl_summary *s)
{
	for (int i = 0; i < s->net->nnodes && is_of_zoo(s); i++)
		if (s->net->nodes[i].op == RFL_OP_MATMUL || s->net->nodes[i].op == RFL_OP_SDPA)
			return true;
	return false;
}

static enum rfl_rc check_needs(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	const struct {
		const char *option;
		bool given;
		bool (*suits)(const struct rfl_summary *s);
		const char *reason;
	} needs[] = {
		{ "image-size", a->image_size != 0, is_of_zoo,
		  "a network from a file has the size that is written there" },
		{ "context-length", a->contexts.n > 0, is_of_zoo,
		  "a network from a file has the length that is written there" },
		{ "classes", a->classes != 0, is_of_zoo,
		  "a network from a file has the classes that are written there" },
		{ "attention", a->attention != 0, has_attention,
		  "no model of the zoo that was named has attention" },
		{ "causal", a->causal != 0, has_causal,
		  "no network that was named has a causal mask" },
		{ "input-grad", a->input_grad, reads_images,
		  "tokens have no gradient; it is for networks that read images" },
		{ "aux", a->auxiliary, has_auxiliary,
		  "no network that was named has auxiliary heads" },
	};

	for (size_t k = 0; k < RFL_ARRAY_LEN(needs); k++) {
		bool suits = !needs[k].given;

		for (size_t i = 0; i < r->n && !suits; i++)
			suits = needs[k].suits(r->items[i]);
		if (!suits)
			return rfl_fail(err, RFL_EUSAGE, 0, "--%s: %s", needs[k].option,
					needs[k].reason);
	}
	return RFL_OK;
}

enum rfl_rc rfl_complexity_check(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	const bool document = a->output_dir || (a->format == RFL_FORMAT_JSON && !a->summary);

	if (a->fit && !document && !rfl_summary_any_context(r->items, r->n) &&
	    (a->batches.n > 1 || a->batches.items[0] != 1))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--batch-sizes has no effect with --fit, which searches for it");
	if (a->batches.n > 1 && !document && (a->fit || a->summary))
		return rfl_fail(err, RFL_EUSAGE, 0, "--batch-sizes: %s takes one, not %zu",
				a->fit ? "--fit" : "--summary", a->batches.n);
	return check_needs(r, err);
}
