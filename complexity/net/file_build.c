/*
 * file_build.c - the nodes of a file through the builder, in order of execution: shapes are
 * inferred and parameters made as for a model of the zoo.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "complexity/net/build_impl.h"
#include "complexity/net/file_impl.h"

/* The builder's first failure as one of the file. */
static enum rfl_rc builder_failed(struct rfl_net_reader *r)
{
	const struct rfl_err *e = rfl_net__failure(r->b);

	return rfl_fail(r->err, e->rc == RFL_ENOMEM ? RFL_ENOMEM : RFL_EFORMAT, 0, "%s", e->msg);
}

void rfl_net_file__at(struct rfl_net_reader *r, const char *pointer)
{
	(void)snprintf(r->label, sizeof(r->label), "%s: %s", r->where.file, pointer);
	rfl_net__label(r->b, r->label);
}

static enum rfl_rc read_size(struct rfl_net_reader *r, const json_t *value, int64_t *ret)
{
	char shown[80];

	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return rfl_where_fail(&r->where, r->err,
				      "must be a whole number of 1 or more, is %s",
				      rfl_json_show(value, shown, sizeof(shown)));
	*ret = json_integer_value(value);
	return RFL_OK;
}

static enum rfl_rc read_image(struct rfl_net_reader *r, const json_t *value, int64_t dim[3])
{
	enum rfl_rc rc = RFL_OK;

	if (json_array_size(value) != 3)
		return rfl_where_fail(&r->where, r->err,
				      "must be a list of channels, height and width");
	for (size_t i = 0; i < 3 && rc == RFL_OK; i++) {
		size_t mark = rfl_where_index(&r->where, i);

		rc = read_size(r, json_array_get(value, i), &dim[i]);
		if (rc == RFL_OK)
			rfl_where_up(&r->where, mark);
	}
	return rc;
}

/* "input": {"image": [3, 224, 224]} or {"tokens": 512} */
enum rfl_rc rfl_net_file__input(struct rfl_net_reader *r)
{
	static const char *const keys[] = { "image", "tokens", NULL };
	const json_t *input = json_object_get(r->root, "input");
	const json_t *image = json_object_get(input, "image");
	const json_t *tokens = json_object_get(input, "tokens");
	size_t mark = rfl_where_key(&r->where, "input");
	int64_t dim[3] = { 0 };
	enum rfl_rc rc = RFL_OK;

	if (!json_is_object(input))
		return rfl_where_fail(&r->where, r->err,
				      "must be {\"image\": [channels, height, width]} or "
				      "{\"tokens\": length}");
	rc = rfl_json_only_keys(input, keys, r->where.file, r->where.pointer, r->err);
	if (rc != RFL_OK)
		return rc;
	if (!image == !tokens)
		return rfl_where_fail(&r->where, r->err,
				      "must have one of \"image\" and \"tokens\"");
	(void)rfl_where_key(&r->where, image ? "image" : "tokens");
	rc = image ? read_image(r, image, dim) : read_size(r, tokens, dim);
	if (rc != RFL_OK)
		return rc;
	rfl_net_file__at(r, "/input");
	if (image)
		(void)rfl_net_input(r->b, dim[0], dim[1], dim[2]);
	else
		(void)rfl_net_tokens(r->b, dim[0]);
	rfl_where_up(&r->where, mark);
	return rfl_net__failure(r->b)->rc == RFL_OK ? RFL_OK : builder_failed(r);
}

/* Nodes that are one repeated block, or the steps of one function. */
struct run {
	const char *key;
	int64_t current, last;
	void (*begin)(struct rfl_net_builder *b);
	void (*end)(struct rfl_net_builder *b);
};

/* Runs are numbered from 1, in order, and the nodes of one follow each other. */
static enum rfl_rc enter(struct rfl_net_reader *r, int draft, struct run *run, int64_t number)
{
	if (number == run->current)
		return RFL_OK;
	if (run->current)
		run->end(r->b);
	run->current = number;
	if (!number)
		return RFL_OK;
	if (number <= run->last)
		return rfl_net_file__fail(r, draft, run->key, -1,
					  "%s %lld has ended; the nodes of a %s follow each other",
					  run->key, (long long)number, run->key);
	if (number != run->last + 1)
		return rfl_net_file__fail(
			r, draft, run->key, -1,
			"should be %lld, is %lld; %ss are numbered from 1 in order of execution",
			(long long)run->last + 1, (long long)number, run->key);
	run->last = number;
	run->begin(r->b);
	return RFL_OK;
}

/* Tokens are indices into the rows of a table. */
static enum rfl_rc check_indices(struct rfl_net_reader *r, int draft)
{
	const struct rfl_net_draft *d = &r->drafts[draft];
	const bool text = rfl_net_shape(r->b, 0).ndim == 1;

	for (int i = 0; i < d->ninputs; i++) {
		const bool tokens = text && d->inputs[i] == 0;

		if (tokens && d->op != RFL_OP_EMBEDDING)
			return rfl_net_file__fail(r, draft, NULL, -1,
						  "%s cannot read tokens; an embedding can",
						  rfl_op_info_of(d->op)->name);
		if (!tokens && d->op == RFL_OP_EMBEDDING &&
		    r->drafts[d->inputs[i]].op != RFL_OP_CONSTANT)
			return rfl_net_file__fail(r, draft, NULL, -1,
						  "an embedding reads tokens, not '%s'",
						  rfl_net_file__label(&r->drafts[d->inputs[i]]));
	}
	return RFL_OK;
}

/* The weight that is shared must have the size that the node would make for itself. */
static enum rfl_rc check_tied(struct rfl_net_reader *r, int draft, const struct rfl_node *node)
{
	const struct rfl_net_draft *d = &r->drafts[draft];
	struct rfl_op_param own[RFL_OP_MAX_PARAMS] = { 0 };
	struct rfl_shape mine = { 0 }, shared = { 0 };
	char a[160], b[160];

	if (!d->tied)
		return RFL_OK;
	if (rfl_op_info_of(node->op)->params(node, own) != 1)
		return rfl_net_file__fail(r, draft, "tied", -1,
					  "shares one weight, but the node has more than one");
	mine.ndim = own[0].ndim;
	memcpy(mine.dim, own[0].dim, sizeof(mine.dim));
	shared = rfl_net__first_param(r->b, r->drafts[d->tied].node);
	if (mine.ndim == shared.ndim &&
	    memcmp(mine.dim, shared.dim, (size_t)mine.ndim * sizeof(mine.dim[0])) == 0)
		return RFL_OK;
	return rfl_net_file__fail(r, draft, "tied", -1, "needs a weight of %s, '%s' has %s",
				  rfl_shape_text(&mine, a, sizeof(a)),
				  rfl_net_file__label(&r->drafts[d->tied]),
				  rfl_shape_text(&shared, b, sizeof(b)));
}

static enum rfl_rc append(struct rfl_net_reader *r, int draft)
{
	struct rfl_net_draft *d = &r->drafts[draft];
	const bool outside = rfl_op_info_of(d->op)->arity == RFL_OP_NO_INPUTS;
	int inputs[RFL_NET_MAX_INPUTS];
	struct rfl_node node = {
		.op = d->op,
		.functional = outside || d->functional || !d->name,
		.batchless = outside,
		.inplace = d->inplace,
		.tied = d->tied ? r->drafts[d->tied].node : 0,
		.ninputs = d->ninputs,
		.input = inputs,
	};
	struct rfl_shape in = { 0 };
	char pointer[320];
	const bool other_id = d->id && d->id != d->name;
	enum rfl_rc rc;

	for (int i = 0; i < d->ninputs; i++)
		inputs[i] = r->drafts[d->inputs[i]].node;
	if (d->ninputs)
		in = rfl_net_shape(r->b, inputs[0]);
	rc = check_indices(r, draft);
	if (rc == RFL_OK)
		rc = rfl_net_file__read_attrs(r, draft, d->ninputs ? &in : NULL, &node);
	if (rc == RFL_OK)
		rc = check_tied(r, draft, &node);
	if (rc != RFL_OK)
		return rc;
	(void)snprintf(pointer, sizeof(pointer), "/nodes/%d%s%s", draft - 1, other_id ? ": " : "",
		       other_id ? d->id : "");
	rfl_net_file__at(r, pointer);
	if (d->auxiliary)
		rfl_net_auxiliary_begin(r->b);
	d->node = rfl_net__append(r->b, &node, d->name ? d->name : d->within ? d->within : "");
	rfl_net_auxiliary_end(r->b);
	return d->node >= 0 ? RFL_OK : builder_failed(r);
}

enum rfl_rc rfl_net_file__build(struct rfl_net_reader *r)
{
	struct run block = {
		.key = "block",
		.begin = rfl_net_block_begin,
		.end = rfl_net_block_end,
	};
	struct run function = {
		.key = "function",
		.begin = rfl_net_function_begin,
		.end = rfl_net_function_end,
	};
	enum rfl_rc rc = RFL_OK;

	for (int i = 1; i < r->ndrafts && rc == RFL_OK; i++) {
		int draft = r->order[i];

		rc = enter(r, draft, &block, r->drafts[draft].block);
		if (rc == RFL_OK)
			rc = enter(r, draft, &function, r->drafts[draft].function);
		if (rc == RFL_OK)
			rc = append(r, draft);
	}
	return rc;
}
