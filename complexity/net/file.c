/*
 * file.c - a network from a JSON document: its top level, and the nodes in order of execution
 * through the builder, which infers shapes and makes parameters as it does for the zoo. The format
 * is docs/net.md.
 */
#include "complexity/net/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "complexity/count.h"
#include "complexity/net/build_impl.h"
#include "complexity/net/file_impl.h"

enum { MAX_MODEL_NAME = 64 };

static const char *const top_keys[] = { "$schema", "schema",     "model", "title",
					"family",  "input",      "nodes", "output",
					"loss",    "state_dict", NULL };

static const char *const loss_names[] = { "fused", "composed", NULL }; /* as enum rfl_loss */

/* --- the top level --- */

/* A text at the top; NULL where it is not there. */
static enum rfl_rc top_text(struct rfl_net_reader *r, const char *key, const char **ret)
{
	const json_t *value = json_object_get(r->root, key);
	size_t mark = rfl_where_key(&r->where, key);
	char shown[80];
	enum rfl_rc rc = RFL_OK;

	*ret = json_string_value(value);
	if (value && (!*ret || !rfl_net_file__is_name(*ret)))
		rc = rfl_where_fail(&r->where, r->err,
				    "must be a short text without control characters, is %s",
				    rfl_json_show(value, shown, sizeof(shown)));
	rfl_where_up(&r->where, mark);
	return rc;
}

/* Files are named after a model. */
static bool is_model_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t n = strlen(name);

	if (n > MAX_MODEL_NAME || strspn(name, letters) == 0)
		return false;
	for (; *name; name++)
		if (!strchr(letters, *name) && !strchr("._-", *name))
			return false;
	return true;
}

static enum rfl_rc check_schema(struct rfl_net_reader *r)
{
	const char *schema;
	enum rfl_rc rc = rfl_json_only_keys(r->root, top_keys, r->where.file, "", r->err);

	if (rc == RFL_OK)
		rc = top_text(r, "schema", &schema);
	if (rc != RFL_OK)
		return rc;
	if (!schema)
		return rfl_where_fail(&r->where, r->err,
				      "the key \"schema\" is missing; write \"schema\": "
				      "\"" RFL_NET_FILE_SCHEMA "\"");
	if (strcmp(schema, RFL_NET_FILE_SCHEMA) == 0)
		return RFL_OK;
	(void)rfl_where_key(&r->where, "schema");
	return rfl_where_fail(&r->where, r->err,
			      "must be \"" RFL_NET_FILE_SCHEMA "\", is \"%s\"; a file of another "
			      "version needs a program that knows it",
			      schema);
}

static enum rfl_rc start(struct rfl_net_reader *r)
{
	const char *ignored, *model, *family, *title;
	enum rfl_rc rc = check_schema(r);

	if (rc == RFL_OK)
		rc = top_text(r, "$schema", &ignored);
	if (rc == RFL_OK)
		rc = top_text(r, "model", &model);
	if (rc == RFL_OK)
		rc = top_text(r, "family", &family);
	if (rc == RFL_OK)
		rc = top_text(r, "title", &title);
	if (rc != RFL_OK)
		return rc;
	if (!model)
		return rfl_where_fail(&r->where, r->err, "the key \"model\" is missing");
	if (!is_model_name(model)) {
		(void)rfl_where_key(&r->where, "model");
		return rfl_where_fail(&r->where, r->err,
				      "'%s' must begin with a letter or a digit and be made of "
				      "letters, digits, '.', '_' and '-', at most %d",
				      model, MAX_MODEL_NAME);
	}
	r->b = rfl_net_builder_new(model, family ? family : "user");
	if (!r->b)
		return rfl_net_file__no_memory(r);
	if (title)
		rfl_net_title(r->b, title);
	return RFL_OK;
}

/* --- the input and the nodes, through the builder --- */

/* The builder's first failure as one of the file. */
static enum rfl_rc builder_failed(struct rfl_net_reader *r)
{
	const struct rfl_err *e = rfl_net__failure(r->b);

	return rfl_fail(r->err, e->rc == RFL_ENOMEM ? RFL_ENOMEM : RFL_EFORMAT, 0, "%s", e->msg);
}

static void label_as(struct rfl_net_reader *r, const char *pointer)
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
static enum rfl_rc read_input(struct rfl_net_reader *r)
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
	label_as(r, "/input");
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
	label_as(r, pointer);
	if (d->auxiliary)
		rfl_net_auxiliary_begin(r->b);
	d->node = rfl_net__append(r->b, &node, d->name ? d->name : d->within ? d->within : "");
	rfl_net_auxiliary_end(r->b);
	return d->node >= 0 ? RFL_OK : builder_failed(r);
}

static enum rfl_rc build_nodes(struct rfl_net_reader *r)
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

/* --- what comes after the nodes --- */

static bool owns_params(const struct rfl_net_draft *d)
{
	return rfl_op_info_of(d->op)->params && !d->tied;
}

static enum rfl_rc forgotten(struct rfl_net_reader *r, const bool *listed)
{
	for (int i = 1; i < r->ndrafts; i++)
		if (owns_params(&r->drafts[i]) && !listed[i])
			return rfl_where_fail(&r->where, r->err,
					      "'%s' has parameters and is not in the list",
					      rfl_net_file__label(&r->drafts[i]));
	return RFL_OK;
}

/* "state_dict": the nodes with parameters, where their order is not that of execution. */
static enum rfl_rc read_state_dict(struct rfl_net_reader *r)
{
	const json_t *list = json_object_get(r->root, "state_dict");
	size_t n = json_array_size(list), mark = rfl_where_key(&r->where, "state_dict");
	bool *listed = rfl_arena_array(r->arena, (size_t)r->ndrafts, sizeof(*listed));
	int *nodes = rfl_arena_array(r->arena, n + 1, sizeof(*nodes));
	enum rfl_rc rc = RFL_OK;

	if (!listed || !nodes)
		return rfl_net_file__no_memory(r);
	if (list && !json_is_array(list))
		return rfl_where_fail(&r->where, r->err,
				      "must be a list of the nodes that have parameters");
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const char *id = json_string_value(json_array_get(list, i));
		int draft = id ? rfl_net_file__find(r, id) : -1;
		size_t up = rfl_where_index(&r->where, i);

		if (!id)
			rc = rfl_where_fail(&r->where, r->err, "must be the name of a node");
		else if (draft < 0)
			rc = rfl_net_file__no_node(r, 0, NULL, -1, id);
		else if (!owns_params(&r->drafts[draft]))
			rc = rfl_where_fail(&r->where, r->err, "'%s' has no parameters", id);
		else if (listed[draft])
			rc = rfl_where_fail(&r->where, r->err, "'%s' is in the list already", id);
		if (rc != RFL_OK)
			break;
		listed[draft] = true;
		nodes[i] = r->drafts[draft].node;
		rfl_where_up(&r->where, up);
	}
	if (rc == RFL_OK && list)
		rc = forgotten(r, listed);
	if (rc == RFL_OK && list)
		rfl_net_state_dict_order(r->b, nodes, (int)n);
	if (rc == RFL_OK)
		rfl_where_up(&r->where, mark);
	return rc;
}

static enum rfl_rc read_loss(struct rfl_net_reader *r)
{
	const char *loss;
	enum rfl_rc rc = top_text(r, "loss", &loss);

	if (rc != RFL_OK || !loss)
		return rc;
	for (int i = 0; loss_names[i]; i++)
		if (strcmp(loss, loss_names[i]) == 0) {
			rfl_net_loss(r->b, (enum rfl_loss)i);
			return RFL_OK;
		}
	(void)rfl_where_key(&r->where, "loss");
	return rfl_where_fail(&r->where, r->err, "must be \"fused\" or \"composed\", is \"%s\"",
			      loss);
}

static enum rfl_rc read_output(struct rfl_net_reader *r, int *ret)
{
	const char *id;
	enum rfl_rc rc = top_text(r, "output", &id);
	int draft = r->ndrafts - 1;
	size_t mark;

	if (rc != RFL_OK)
		return rc;
	if (id)
		draft = rfl_net_file__find(r, id);
	mark = rfl_where_key(&r->where, "output");
	if (draft < 0)
		return rfl_net_file__no_node(r, 0, NULL, -1, id);
	if (r->drafts[draft].auxiliary)
		return rfl_where_fail(&r->where, r->err, "'%s' is auxiliary",
				      rfl_net_file__label(&r->drafts[draft]));
	if (draft == 0 || r->b->nodes[r->drafts[draft].node].batchless)
		return rfl_where_fail(&r->where, r->err,
				      "'%s' is not made from the network's input",
				      rfl_net_file__label(&r->drafts[draft]));
	rfl_where_up(&r->where, mark);
	for (int i = 1; i < r->ndrafts; i++)
		if (i != draft && !r->drafts[i].read && !r->drafts[i].auxiliary)
			return rfl_net_file__fail(r, i, NULL, -1,
						  "nobody reads it, and it is not the output");
	*ret = draft;
	return RFL_OK;
}

/* Two nodes, or a node and a tensor, that would be one entry of the state_dict. */
static enum rfl_rc check_params(struct rfl_net_reader *r, const struct rfl_net *net)
{
	json_t *names = json_object();
	enum rfl_rc rc = names ? RFL_OK : rfl_net_file__no_memory(r);

	for (int i = 0; i < net->nparams && rc == RFL_OK; i++) {
		int draft = r->order[net->params[i].node];

		if (json_object_get(names, net->params[i].name))
			rc = rfl_net_file__fail(r, draft, NULL, -1,
						"the state_dict has a tensor '%s' already",
						net->params[i].name);
		else if (json_object_set_new(names, net->params[i].name, json_true()) != 0)
			rc = rfl_net_file__no_memory(r);
	}
	json_decref(names);
	return rc;
}

/* What cannot be counted for one sample is no network. */
static enum rfl_rc check_counts(struct rfl_net_reader *r, const struct rfl_net *net)
{
	const struct rfl_count_options one = {
		.batch = 1,
		.training = true,
		.auxiliary = true,
		.optimizer = RFL_OPT_ADAMW,
	};
	struct rfl_count *count = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_count_net(net, &one, &count, &err);

	rfl_count_free(count);
	if (rc == RFL_OK)
		return RFL_OK;
	if (rc == RFL_ENOMEM)
		return rfl_net_file__no_memory(r);
	return rfl_fail(r->err, RFL_EFORMAT, 0, "%s: /nodes: %s", r->where.file, err.msg);
}

static enum rfl_rc finish(struct rfl_net_reader *r, int output, struct rfl_net **ret)
{
	struct rfl_net_builder *b = r->b;
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc;

	label_as(r, "/output");
	r->b = NULL; /* it is taken, also on failure */
	rc = rfl_net_finish(b, r->drafts[output].node, &net, &err);
	if (rc != RFL_OK)
		return rfl_fail(r->err, rc == RFL_ENOMEM ? RFL_ENOMEM : RFL_EFORMAT, 0, "%s",
				err.msg);
	rc = check_params(r, net);
	if (rc == RFL_OK)
		rc = check_counts(r, net);
	if (rc == RFL_OK)
		*ret = net;
	else
		rfl_net_free(net);
	return rc;
}

static enum rfl_rc read_net(struct rfl_net_reader *r, struct rfl_net **ret)
{
	const json_t *nodes;
	int output = 0;
	enum rfl_rc rc = start(r);

	if (rc == RFL_OK)
		rc = read_input(r);
	nodes = json_object_get(r->root, "nodes");
	if (rc == RFL_OK)
		rc = rfl_net_file__drafts(r, nodes);
	if (rc == RFL_OK)
		rc = rfl_net_file__sort(r);
	if (rc == RFL_OK)
		rc = build_nodes(r);
	if (rc == RFL_OK)
		rc = read_state_dict(r);
	if (rc == RFL_OK)
		rc = read_loss(r);
	if (rc == RFL_OK)
		rc = read_output(r, &output);
	return rc == RFL_OK ? finish(r, output, ret) : rc;
}

enum rfl_rc rfl_net_from_json(const json_t *root, const char *name, struct rfl_net **ret,
			      struct rfl_err *err)
{
	struct rfl_err first = RFL_ERR_INIT;
	struct rfl_net_reader *r = calloc(1, sizeof(*r));
	enum rfl_rc rc;

	if (!r || !(r->arena = rfl_arena_new(0))) {
		rc = rfl_fail(&first, RFL_ENOMEM, 0, "%s: out of memory", name);
		goto done;
	}
	rfl_where_init(&r->where, name);
	r->root = root;
	r->err = &first;
	rc = read_net(r, ret);
done:
	if (r) {
		rfl_net_builder_free(r->b);
		json_decref(r->ids);
		rfl_arena_free(r->arena);
	}
	free(r);
	return rc == RFL_OK ? RFL_OK : rfl_fail(err, first.rc, 0, "%s", first.msg);
}

enum rfl_rc rfl_net_parse(const char *text, size_t length, const char *name, struct rfl_net **ret,
			  struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(text, length, name, &root, err);

	if (rc == RFL_OK)
		rc = rfl_net_from_json(root, name, ret, err);
	json_decref(root);
	return rc;
}

enum rfl_rc rfl_net_load(const char *path, struct rfl_net **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	if (rc == RFL_OK)
		rc = rfl_net_from_json(root, path, ret, err);
	json_decref(root);
	return rc;
}
