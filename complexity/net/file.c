/*
 * file.c - build a network from a JSON document: read the names and inputs of all nodes, find an
 * execution order, then pass each node to the builder, which infers shapes and creates parameters
 * as for the zoo. The format is described in docs/net.md.
 */
#include "complexity/net/file.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "complexity/count.h"
#include "complexity/net/build.h"

enum {
	MAX_NODES = 1000000, /* the builder's limit */
	MAX_NAME = 255,
	MAX_MODEL_NAME = 64,
	MAX_CANDIDATES = 4096, /* most names searched for a suggestion */
	CYCLE_SHOWN = 12,
};

/* A node as in the file. Draft 0 is the input; draft i is node i - 1 of the file. */
struct draft {
	const json_t *obj;
	const char *id;     /* its name in lists of inputs; NULL: none */
	const char *name;   /* of the module; NULL: a step that is not a module */
	const char *within; /* of a step: the enclosing block; NULL: the network itself */
	enum rfl_op op;
	const struct rfl_op_info *info; /* NULL: not read yet */
	int64_t block, function;
	bool inplace, auxiliary, functional;
	bool read; /* some node reads it */
	int ninputs, tied;
	int *inputs; /* drafts: ninputs inputs, then `tied` (the owner of its weight; 0: none) */
	int node;    /* in the network, once built */

	/* state of the walk that finds the execution order */
	enum { NEW, OPEN, DONE } state;
	int next, waiting; /* next input to visit; draft that waits for this one */
};

struct reader {
	const char *file;
	const json_t *root;
	struct rfl_err err; /* the first failure */
	struct rfl_arena *arena;
	int at; /* the draft being read, for messages; 0: the document itself */
	int ndrafts;
	struct draft *drafts;
	json_t *ids; /* draft index by name */
	int *order;  /* drafts in execution order */
	struct rfl_net_builder *b;
	char label[1400]; /* prefix of the builder's messages */
};

/* --- messages; all return false -------------------------------------------------------------- */

static bool no_memory(struct reader *r)
{
	(void)rfl_fail(&r->err, RFL_ENOMEM, 0, "%s: out of memory", r->file);
	return false;
}

static const char *label_of(const struct draft *d)
{
	return d->id ? d->id : d->info->name;
}

/* Fail at r->at (key NULL), at one of its keys (index -1), or at an element of that key's list. */
RFL_PRINTF(4, 5)
static bool fail(struct reader *r, const char *key, int index, const char *fmt, ...)
{
	const struct draft *d = r->at ? &r->drafts[r->at] : NULL;
	const char *label = d && (d->id || d->info) ? label_of(d) : NULL;
	char node[32] = "", element[16] = "", text[RFL_ERR_MSG_MAX];
	va_list ap;

	if (d)
		(void)snprintf(node, sizeof(node), "/nodes/%d", r->at - 1);
	if (index >= 0)
		(void)snprintf(element, sizeof(element), "/%d", index);
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)rfl_fail(&r->err, RFL_EFORMAT, 0, "%s: %s%s%s%s: %s%s%s", r->file, node,
		       key || !d ? "/" : "", key ? key : "", element, label ? label : "",
		       label ? ": " : "", text);
	return false;
}

/* Report "must be ..., not <value>". */
static bool wrong(struct reader *r, const char *key, int index, const json_t *value,
		  const char *must)
{
	char shown[80];

	return fail(r, key, index, "%s, not %s", must, rfl_json_show(value, shown, sizeof(shown)));
}

static bool missing(struct reader *r, const char *key)
{
	return fail(r, NULL, -1, "the key \"%s\" is missing; add it", key);
}

/* Pass on a failure of the builder or of a finished network. */
static bool failed_with(struct reader *r, const struct rfl_err *e)
{
	(void)rfl_fail(&r->err, e->rc == RFL_ENOMEM ? RFL_ENOMEM : RFL_EFORMAT, 0, "%s", e->msg);
	return false;
}

/* Make the builder's messages begin with the file and a location in it; for a node, also its id. */
static void label_as(struct reader *r, const char *place, int index, const char *id)
{
	char number[16] = "";

	if (index >= 0)
		(void)snprintf(number, sizeof(number), "/%d", index);
	(void)snprintf(r->label, sizeof(r->label), "%s: %s%s%s%s", r->file, place, number,
		       id ? ": " : "", id ? id : "");
	r->b->label = r->label;
}

/* Whether a text is neither empty nor too long and has no control characters. */
static bool is_name(const char *text)
{
	size_t n = 0;

	for (; text && text[n]; n++)
		if (n >= MAX_NAME || rfl_text_control(text + n))
			return false;
	return n > 0;
}

/* Read a text of the current draft or of the document; NULL if it is missing. */
static bool read_text(struct reader *r, const char *key, const char **ret)
{
	const json_t *value = json_object_get(r->at ? r->drafts[r->at].obj : r->root, key);
	const char *text = json_string_value(value);

	*ret = is_name(text) ? text : NULL;
	return !value || *ret ||
	       wrong(r, key, -1, value,
		     r->at ? "must be a string of 1 to 255 bytes without control characters"
			   : "must be a short string without control characters");
}

/* Find the draft that a text names; suggest the nearest name if there is none. */
static bool resolve(struct reader *r, const char *key, int index, const json_t *value, int *ret)
{
	const char *id = json_string_value(value);
	const bool plain = is_name(id); /* otherwise it may be of any length */
	const int shown = plain ? MAX_NAME : 60;
	char advice[RFL_ADVICE_SIZE];
	const char **names;
	size_t n = 0;

	if (!id)
		return wrong(r, key, index, value, "must be the name of a node");
	if (json_object_get(r->ids, id)) {
		*ret = (int)json_integer_value(json_object_get(r->ids, id));
		return true;
	}
	names = rfl_arena_array(r->arena, MAX_CANDIDATES + 1, sizeof(*names));
	if (!names)
		return no_memory(r);
	for (int i = 0; i < r->ndrafts && n < MAX_CANDIDATES; i++)
		if (r->drafts[i].id)
			names[n++] = r->drafts[i].id;
	return fail(r, key, index, "no node '%.*s%s'; %s", shown, id,
		    strlen(id) > (size_t)shown ? "..." : "",
		    rfl_text_advice(plain ? id : "", names, 1, "name a node of the file", advice));
}

/* --- values of attributes --------------------------------------------------------------------- */

static bool read_list(struct reader *r, const char *key, const json_t *value, int least, int most,
		      int64_t min, int64_t *dim, int *ndim);

/* @param ndim  of the node's first input */
static bool read_value(struct reader *r, const struct rfl_op_attr *attr, const char *key, int index,
		       const json_t *value, int ndim, void *to)
{
	const bool real = attr->type == RFL_ATTR_REAL, any = attr->min == INT64_MIN;
	struct rfl_shape *shape = to;
	char must[64];
	int n;

	switch (attr->type) {
	case RFL_ATTR_BOOL:
		*(bool *)to = json_is_true(value);
		return json_is_boolean(value) ||
		       wrong(r, key, index, value, "must be true or false");
	case RFL_ATTR_INT:
	case RFL_ATTR_REAL:
		if (real)
			*(double *)to = json_number_value(value);
		else
			*(int64_t *)to = json_integer_value(value);
		if ((real ? json_is_number(value) : json_is_integer(value)) &&
		    (any || json_number_value(value) >= (double)attr->min))
			return true;
		n = snprintf(must, sizeof(must), "must be a %snumber", real ? "" : "whole ");
		if (!any)
			(void)snprintf(must + n, sizeof(must) - (size_t)n, " of at least %lld",
				       (long long)attr->min);
		return wrong(r, key, index, value, must);
	case RFL_ATTR_SHAPE:
		return read_list(r, key, value, 1, RFL_NET_MAX_DIMS, 1, shape->dim, &shape->ndim);
	case RFL_ATTR_ORDER:
		break;
	}
	if (json_array_size(value) != (size_t)ndim)
		return fail(r, key, -1,
			    "must be a list of %d whole numbers: the input has %d dimensions", ndim,
			    ndim);
	return read_list(r, key, value, ndim, ndim, 0, to, &n);
}

/* Read a list of `least` to `most` whole numbers. */
static bool read_list(struct reader *r, const char *key, const json_t *value, int least, int most,
		      int64_t min, int64_t *dim, int *ndim)
{
	const struct rfl_op_attr element = { .type = RFL_ATTR_INT, .min = min };
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n < (size_t)least || n > (size_t)most)
		return least == most ? fail(r, key, -1, "must be a list of %d whole numbers", most)
				     : fail(r, key, -1, "must be a list of %d to %d whole numbers",
					    least, most);
	for (*ndim = 0; *ndim < (int)n; ++*ndim)
		if (!read_value(r, &element, key, *ndim, json_array_get(value, (size_t)*ndim), 0,
				&dim[*ndim]))
			return false;
	return true;
}

static bool read_attr(struct reader *r, const struct rfl_op_attr *attr, int ndim, void *base)
{
	const json_t *value = json_object_get(r->drafts[r->at].obj, attr->name);
	void *to = (char *)base + attr->offset;

	if (value)
		return read_value(r, attr, attr->name, -1, value, ndim, to);
	if (attr->required)
		return missing(r, attr->name);
	if (attr->type == RFL_ATTR_INT)
		*(int64_t *)to = (int64_t)attr->def;
	else if (attr->type == RFL_ATTR_REAL)
		*(double *)to = attr->def;
	else if (attr->type == RFL_ATTR_BOOL)
		*(bool *)to = attr->def != 0;
	return true;
}

/* Read "kernel": 3, "kernel": [1, 7], or separate "kernel_h" and "kernel_w". */
static bool read_pair(struct reader *r, const struct rfl_op_attr attr[2], struct rfl_node *node)
{
	const json_t *obj = r->drafts[r->at].obj, *value = json_object_get(obj, attr->pair);
	const json_t *half[2] = { json_object_get(obj, attr[0].name),
				  json_object_get(obj, attr[1].name) };
	int64_t both[2];
	int n = 1;

	if (!value && !half[0] && !half[1] && attr->required)
		return missing(r, attr->pair);
	if (!value)
		return read_attr(r, &attr[0], 0, node) && read_attr(r, &attr[1], 0, node);
	if (half[0] || half[1])
		return fail(r, attr[half[0] ? 0 : 1].name, -1,
			    "\"%s\" already sets it; remove one of them", attr->pair);
	if (json_is_array(value) ? !read_list(r, attr->pair, value, 2, 2, attr->min, both, &n)
				 : !read_value(r, attr, attr->pair, -1, value, 0, both))
		return false;
	*(int64_t *)((char *)node + attr[0].offset) = both[0];
	*(int64_t *)((char *)node + attr[1].offset) = both[n - 1];
	return true;
}

/* Read everything before the nodes' contents. */
static bool read_top(struct reader *r)
{
	static const char *const keys[] = { "$schema", "schema",     "model", "title",
					    "family",  "input",      "nodes", "output",
					    "loss",    "state_dict", NULL };
	static const char alnum[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	static const char *const input_keys[] = { "image", "tokens", NULL };
	static const struct rfl_op_attr size = { .type = RFL_ATTR_INT, .min = 1 };
	const json_t *input = json_object_get(r->root, "input");
	const json_t *image = json_object_get(input, "image");
	const json_t *tokens = json_object_get(input, "tokens");
	int64_t dim[3];
	int ndim;
	const json_t *nodes = json_object_get(r->root, "nodes");
	const size_t n = json_array_size(nodes);
	const char *schema, *ignored, *model, *family, *title;

	if (rfl_json_only_keys(r->root, keys, r->file, "", &r->err) != RFL_OK ||
	    !read_text(r, "schema", &schema))
		return false;
	if (!schema)
		return fail(r, NULL, -1,
			    "the key \"schema\" is missing; write \"schema\": "
			    "\"" RFL_NET_FILE_SCHEMA "\"");
	if (strcmp(schema, RFL_NET_FILE_SCHEMA) != 0)
		return fail(r, "schema", -1,
			    "must be \"" RFL_NET_FILE_SCHEMA
			    "\", not \"%s\"; read this file with a matching version of roofline",
			    schema);
	if (!read_text(r, "$schema", &ignored) || !read_text(r, "model", &model) ||
	    !read_text(r, "family", &family) || !read_text(r, "title", &title))
		return false;
	if (!model)
		return missing(r, "model");
	if (strlen(model) > MAX_MODEL_NAME ||
	    model[strspn(model, alnum)] || /* used in file names */
	    strchr("._-", model[0]))
		return fail(r, "model", -1,
			    "'%s' must begin with a letter or a digit and contain only letters, "
			    "digits, '.', '_' and '-', at most %d",
			    model, MAX_MODEL_NAME);
	r->b = rfl_net_builder_new(model, family ? family : "user");
	if (!r->b)
		return no_memory(r);
	r->b->title = title;
	/* {"image": [3, 224, 224]} or {"tokens": 512} */
	if (!json_is_object(input))
		return fail(r, "input", -1,
			    "must be {\"image\": [channels, height, width]} or "
			    "{\"tokens\": length}");
	if (rfl_json_only_keys(input, input_keys, r->file, "/input", &r->err) != RFL_OK)
		return false;
	if (!image == !tokens)
		return fail(r, "input", -1, "must have either \"image\" or \"tokens\"");
	if (image && json_array_size(image) != 3)
		return fail(r, "input/image", -1, "must be a list of channels, height and width");
	if (image ? !read_list(r, "input/image", image, 3, 3, 1, dim, &ndim)
		  : !read_value(r, &size, "input/tokens", -1, tokens, 0, dim))
		return false;
	label_as(r, "/input", -1, NULL);
	if (image)
		(void)rfl_net_input(r->b, dim[0], dim[1], dim[2]);
	else
		(void)rfl_net_tokens(r->b, dim[0]);
	if (r->b->err.rc != RFL_OK)
		return failed_with(r, &r->b->err);
	if (n < 1 || n > MAX_NODES)
		return fail(r, "nodes", -1, "must be a list of 1 to %d nodes", MAX_NODES);
	r->ids = json_object();
	r->drafts = rfl_arena_array(r->arena, n + 1, sizeof(*r->drafts));
	r->order = rfl_arena_array(r->arena, n + 1, sizeof(*r->order));
	if (!r->ids || !r->drafts || !r->order ||
	    json_object_set_new(r->ids, RFL_NET_FILE_INPUT, json_integer(0)) != 0)
		return no_memory(r);
	r->ndrafts = (int)n + 1;
	r->drafts[0].id = RFL_NET_FILE_INPUT;
	r->drafts[0].info = rfl_op_info_of(RFL_OP_INPUT);
	for (int i = 1; i < r->ndrafts; i++)
		r->drafts[i].obj = json_array_get(nodes, (size_t)i - 1);
	return true;
}

/* Call a function for every node, in file order (NULL) or the given order. */
static bool at_each(struct reader *r, const int *order,
		    bool (*step)(struct reader *r, struct draft *d))
{
	for (int i = 1; i < r->ndrafts; i++) {
		r->at = order ? order[i] : i;
		if (!step(r, &r->drafts[r->at]))
			return false;
	}
	r->at = 0;
	return true;
}

/* --- nodes; their attributes, which need input shapes, are read later ------------------------ */

const char *const rfl_net_file_node_keys[] = { "op",       "name",       "id",        "within",
					       "inputs",   "inplace",    "auxiliary", "block",
					       "function", "functional", "tied",      NULL };

static bool read_op(struct reader *r, struct draft *d)
{
	const json_t *value = json_object_get(d->obj, "op");
	const char *name = json_string_value(value);
	char advice[RFL_ADVICE_SIZE];
	const char *names[RFL_OP_COUNT + 1] = { 0 };
	size_t n = 0;

	if (!value)
		return missing(r, "op");
	if (!is_name(name))
		return wrong(r, "op", -1, value, "must be the name of an operation");
	for (int i = 0; i < RFL_OP_COUNT; i++) {
		const struct rfl_op_info *info = rfl_op_info_of((enum rfl_op)i);

		if (!rfl_net_file_is_node((enum rfl_op)i))
			continue;
		names[n++] = info->name;
		if (strcmp(info->name, name) == 0) {
			d->op = (enum rfl_op)i;
			d->info = info;
			return true;
		}
	}
	return fail(r, "op", -1, "no operation '%s'; %s", name,
		    rfl_text_advice(name, names, 1, "see docs/net.md for a list", advice));
}

static bool read_draft(struct reader *r, struct draft *d)
{
#define FACT(type_, member_)                                        \
	{                                                           \
		.name = #member_, .type = RFL_ATTR_##type_,         \
		.offset = offsetof(struct draft, member_), .min = 1 \
	}
	static const struct rfl_op_attr facts[] = {
		FACT(BOOL, inplace), FACT(BOOL, auxiliary), FACT(BOOL, functional),
		FACT(INT, block),    FACT(INT, function),
	};
#undef FACT
	const bool named = !json_object_get(d->obj, "id");
	const char *keys[RFL_NET_FILE_MAX_KEYS] = { 0 };
	const json_t *other;
	char pointer[32];
	size_t n = 0;
	int taken;

	if (!json_is_object(d->obj))
		return fail(r, NULL, -1, "must be an object");
	if (!read_text(r, "name", &d->name) || !read_text(r, "id", &d->id))
		return false;
	d->id = d->id ? d->id : d->name;
	if (!read_op(r, d))
		return false;
	/* Attributes come first, so that they win if two suggestions are equally near. */
	for (size_t i = 0; i < d->info->nattrs; i++) {
		const struct rfl_op_attr *attr = &d->info->attrs[i];

		if (attr->inferred && json_object_get(d->obj, attr->name))
			return fail(r, attr->name, -1,
				    "is inferred from the input's shape; leave it out");
		if (attr->pair)
			keys[n++] = attr->pair;
		if (!attr->inferred)
			keys[n++] = attr->name;
	}
	for (size_t i = 0; rfl_net_file_node_keys[i]; i++)
		keys[n++] = rfl_net_file_node_keys[i];
	assert(n < RFL_NET_FILE_MAX_KEYS);
	(void)snprintf(pointer, sizeof(pointer), "/nodes/%d", r->at - 1);
	if (rfl_json_only_keys(d->obj, keys, r->file, pointer, &r->err) != RFL_OK ||
	    !read_text(r, "within", &d->within))
		return false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(facts); i++)
		if (!read_attr(r, &facts[i], 0, d))
			return false;
	if (d->info->arity == RFL_OP_NO_INPUTS && !d->name)
		return missing(r, "name");
	if (d->name && d->within)
		return fail(r, "within", -1,
			    "remove \"within\": it is only for steps without a \"name\"");
	if (d->inplace && !rfl_net_file_can_be_inplace(d->op))
		return fail(r, "inplace", -1,
			    "%s cannot overwrite its input; only elementwise operations can",
			    d->info->name);
	if (d->functional && !rfl_net_file_has_weights(d->op))
		return fail(r, "functional", -1,
			    "%s has no weights; remove \"functional\" and the \"name\" to make it "
			    "a step",
			    d->info->name);
	if (!d->name && d->info->params)
		return fail(r, NULL, -1, "a node with parameters needs a \"name\"; add one");
	/* Other nodes refer to a node by its id, or by its name if it has no id. */
	other = d->id ? json_object_get(r->ids, d->id) : NULL;
	taken = other ? (int)json_integer_value(other) : -1;
	if (taken == 0)
		return fail(r, named ? "name" : "id", -1,
			    "the name is reserved for the network's input; use another");
	if (taken > 0 && named)
		return fail(r, "name", -1,
			    "the name is used by /nodes/%d; add a unique \"id\" if the module runs "
			    "again, such as \"%.200s:2\"",
			    taken - 1, d->id);
	if (taken > 0)
		return fail(r, "id", -1, "the id is used by /nodes/%d; choose another", taken - 1);
	if (d->id && json_object_set_new(r->ids, d->id, json_integer(r->at)) != 0)
		return no_memory(r);
	return true;
}

/* Read the list of drafts that a node reads, and the one that owns its weight. */
static bool read_inputs(struct reader *r, struct draft *d)
{
	const json_t *value = json_object_get(d->obj, "inputs");
	const json_t *tied = json_object_get(d->obj, "tied");
	const int arity = d->info->arity;
	const size_t wanted = arity == 0 ? 1 : arity == RFL_OP_NO_INPUTS ? 0 : (size_t)arity;
	const size_t n = value ? json_array_size(value) : arity == 0;

	if (!value && arity != 0 && arity != RFL_OP_NO_INPUTS)
		return fail(r, NULL, -1, "needs several tensors; name them in \"inputs\"");
	if (value && !json_is_array(value))
		return fail(r, "inputs", -1, "must be a list of node names");
	if (arity == RFL_OP_ANY_INPUTS && (n < 1 || n > RFL_NET_MAX_INPUTS))
		return fail(r, "inputs", -1, "%s needs 1 to %d tensors, not %zu", d->info->name,
			    RFL_NET_MAX_INPUTS, n);
	if (arity != RFL_OP_ANY_INPUTS && n != wanted)
		return fail(r, "inputs", -1, "needs %zu tensor%s, not %zu", wanted,
			    wanted == 1 ? "" : "s", n);
	d->inputs = rfl_arena_array(r->arena, n + 1, sizeof(*d->inputs));
	if (!d->inputs)
		return no_memory(r);
	for (size_t i = 0; i < n; i++) {
		d->inputs[i] = r->at - 1; /* by default, the previous node */
		if (value && !resolve(r, "inputs", (int)i, json_array_get(value, i), &d->inputs[i]))
			return false;
		r->drafts[d->inputs[i]].read = true;
	}
	d->ninputs = (int)n;
	/* The main network must run without the auxiliary heads and their weights. */
	for (int i = 0; i < d->ninputs && !d->auxiliary; i++)
		if (r->drafts[d->inputs[i]].auxiliary)
			return fail(r, NULL, -1,
				    "cannot read '%s', which is auxiliary; only other auxiliary "
				    "nodes can",
				    label_of(&r->drafts[d->inputs[i]]));
	if (!tied)
		return true;
	if (!resolve(r, "tied", -1, tied, &d->tied))
		return false;
	d->inputs[n] = d->tied;
	if (!d->auxiliary && r->drafts[d->tied].auxiliary)
		return fail(r, "tied", -1,
			    "'%s' is auxiliary; only other auxiliary nodes can use its weight",
			    label_of(&r->drafts[d->tied]));
	if (!rfl_net_file_has_weights(d->op))
		return fail(r, "tied", -1, "%s has no weight to share; remove \"tied\"",
			    d->info->name);
	if (!r->drafts[d->tied].info->params || json_object_get(r->drafts[d->tied].obj, "tied"))
		return fail(r, "tied", -1, "'%s' has no weight of its own; name the owner",
			    json_string_value(tied));
	return true;
}

/* Report a cycle: data flows from each draft to the one that waits for it. */
static bool fail_cycle(struct reader *r, int at, int meets)
{
	const struct draft *d = &r->drafts[at];
	const bool tied = d->next >= d->ninputs;
	const bool listed = !tied && json_object_get(d->obj, "inputs");
	struct rfl_buf path;
	int shown = 0;

	rfl_buf_init(&path, 8192);
	rfl_buf_puts(&path, label_of(&r->drafts[meets]));
	for (int i = at; i != meets; i = r->drafts[i].waiting)
		if (++shown <= CYCLE_SHOWN)
			rfl_buf_printf(&path, " -> %s", label_of(&r->drafts[i]));
	rfl_buf_printf(&path, "%s -> %s", shown > CYCLE_SHOWN ? " -> ..." : "",
		       label_of(&r->drafts[meets]));
	r->at = at;
	(void)fail(r,
		   tied     ? "tied"
		   : listed ? "inputs"
			    : NULL,
		   listed ? d->next : -1, "the inputs form a cycle: %s", rfl_buf_str(&path));
	rfl_buf_fini(&path);
	return false;
}

/* Sort the nodes so that each follows those it needs, otherwise in file order. The depth-first walk
 * uses `waiting` instead of recursion, so that a chain may have any length. */
static bool sort(struct reader *r)
{
	int n = 0;

	for (int first = 0; first < r->ndrafts; first++) {
		int at = r->drafts[first].state == NEW ? first : -1;

		if (at >= 0)
			r->drafts[at].waiting = -1;
		while (at >= 0) {
			struct draft *d = &r->drafts[at];

			d->state = OPEN;
			if (d->next == d->ninputs + (d->tied > 0)) {
				d->state = DONE;
				r->order[n++] = at;
				at = d->waiting;
			} else if (r->drafts[d->inputs[d->next]].state == OPEN) {
				return fail_cycle(r, at, d->inputs[d->next]);
			} else if (r->drafts[d->inputs[d->next++]].state == NEW) {
				r->drafts[d->inputs[d->next - 1]].waiting = at;
				at = d->inputs[d->next - 1];
			}
		}
	}
	return true;
}

/* Blocks and functions are numbered from 1, in order, and their nodes are consecutive. */
static bool enter(struct reader *r, const char *key, int64_t number, bool *inside, int *last)
{
	if (number == (*inside ? *last : 0))
		return true;
	*inside = number > 0;
	if (!number)
		return true;
	if (number <= *last)
		return fail(r, key, -1,
			    "%s %lld has already ended; make the nodes of a %s consecutive", key,
			    (long long)number, key);
	if (number != *last + 1)
		return fail(r, key, -1,
			    "must be %d, not %lld; number each %s from 1 in execution order",
			    *last + 1, (long long)number, key);
	++*last;
	return true;
}

static bool append(struct reader *r, struct draft *d)
{
	const bool text = rfl_net_shape(r->b, 0).ndim == 1;
	struct rfl_op_param own[RFL_OP_MAX_PARAMS] = { 0 };
	int inputs[RFL_NET_MAX_INPUTS];
	struct rfl_node node = {
		.op = d->op,
		.functional = d->functional || !d->name,
		.inplace = d->inplace,
		.tied = d->tied ? r->drafts[d->tied].node : 0,
		.ninputs = d->ninputs,
		.input = inputs,
	};
	struct rfl_shape *mine = &own[0].shape, shared;
	char a[160], b[160];
	int ndim = 0;

	if (!enter(r, "block", d->block, &r->b->in_block, &r->b->nblocks) ||
	    !enter(r, "function", d->function, &r->b->in_function, &r->b->nfunctions))
		return false;
	for (int i = 0; i < d->ninputs; i++) {
		const struct draft *in = &r->drafts[d->inputs[i]];
		const bool tokens = text && d->inputs[i] == 0;

		inputs[i] = in->node;
		/* tokens are row indices of a table */
		if (tokens && d->op != RFL_OP_EMBEDDING)
			return fail(r, NULL, -1, "%s cannot read tokens; insert an embedding",
				    d->info->name);
		if (!tokens && d->op == RFL_OP_EMBEDDING && in->op != RFL_OP_CONSTANT)
			return fail(r, NULL, -1, "an embedding must read tokens, not '%s'",
				    label_of(in));
	}
	if (node.ninputs)
		ndim = rfl_net_shape(r->b, inputs[0]).ndim;
	for (size_t i = 0; i < d->info->nattrs; i++) {
		const struct rfl_op_attr *attr = &d->info->attrs[i];

		if (attr->pair ? !read_pair(r, attr, &node)
			       : !attr->inferred && !read_attr(r, attr, ndim, &node))
			return false;
		i += attr->pair != NULL;
	}
	if (d->tied) { /* the weight must have the size that the node's own would have */
		rfl_net_infer_attrs(r->b, &node);
		if (d->info->params(&node, own) != 1)
			return fail(r, "tied", -1,
				    "the node has more than one weight; only one can be shared");
		shared = rfl_net_first_param(r->b, node.tied);
		if (mine->ndim != shared.ndim ||
		    memcmp(mine->dim, shared.dim, (size_t)mine->ndim * sizeof(mine->dim[0])) != 0)
			return fail(r, "tied", -1, "needs a weight of %s, but '%s' has %s",
				    rfl_shape_text(mine, a, sizeof(a)),
				    label_of(&r->drafts[d->tied]),
				    rfl_shape_text(&shared, b, sizeof(b)));
	}
	label_as(r, "/nodes", r->at - 1, d->id != d->name ? d->id : NULL);
	r->b->in_auxiliary = d->auxiliary;
	d->node = rfl_net_append(r->b, &node, d->name ? d->name : d->within ? d->within : "");
	return d->node >= 0 || failed_with(r, &r->b->err);
}

/* --- keys after the nodes -------------------------------------------------------------------- */

static bool owns_params(const struct draft *d)
{
	return d->info->params && !d->tied;
}

/* Read "state_dict": the nodes with parameters, if they are not in execution order. */
static bool read_state_dict(struct reader *r)
{
	const json_t *list = json_object_get(r->root, "state_dict");
	const size_t n = json_array_size(list);
	bool *listed = rfl_arena_array(r->arena, (size_t)r->ndrafts, sizeof(*listed));
	int *nodes = rfl_arena_array(r->arena, n + 1, sizeof(*nodes));
	int draft;

	if (!listed || !nodes)
		return no_memory(r);
	if (!list)
		return true;
	if (!json_is_array(list))
		return fail(r, "state_dict", -1,
			    "must be a list of the nodes that have parameters");
	for (size_t i = 0; i < n; i++) {
		if (!resolve(r, "state_dict", (int)i, json_array_get(list, i), &draft))
			return false;
		if (!owns_params(&r->drafts[draft]) || listed[draft])
			return fail(r, "state_dict", (int)i, "'%s' %s", label_of(&r->drafts[draft]),
				    listed[draft] ? "is already in the list; remove one"
						  : "has no parameters; remove it");
		listed[draft] = true;
		nodes[i] = r->drafts[draft].node;
	}
	for (int i = 1; i < r->ndrafts; i++)
		if (owns_params(&r->drafts[i]) && !listed[i])
			return fail(r, "state_dict", -1,
				    "'%s' has parameters but is not in the list; add it",
				    label_of(&r->drafts[i]));
	rfl_net_state_dict_order(r->b, nodes, (int)n);
	return true;
}

/* Read "loss" and "output". */
static bool read_output(struct reader *r, int *ret)
{
	int draft = r->ndrafts - 1;
	const char *id, *loss;

	if (!read_text(r, "loss", &loss))
		return false;
	if (loss && strcmp(loss, "composed") == 0)
		r->b->loss = RFL_LOSS_COMPOSED;
	else if (loss && strcmp(loss, "fused") != 0)
		return fail(r, "loss", -1, "must be \"fused\" or \"composed\", not \"%s\"", loss);
	if (!read_text(r, "output", &id) ||
	    (id && !resolve(r, "output", -1, json_object_get(r->root, "output"), &draft)))
		return false;
	if (r->drafts[draft].auxiliary)
		return fail(r, "output", -1, "'%s' is auxiliary; name a node of the main network",
			    label_of(&r->drafts[draft]));
	if (draft == 0 || r->b->nodes[r->drafts[draft].node].batchless)
		return fail(r, "output", -1, "'%s' does not depend on the network's input",
			    label_of(&r->drafts[draft]));
	for (int i = 1; i < r->ndrafts; i++)
		if (i != draft && !r->drafts[i].read && !r->drafts[i].auxiliary) {
			r->at = i;
			return fail(r, NULL, -1,
				    "no node reads it, and it is not the output; remove it");
		}
	*ret = draft;
	return true;
}

/* Finish the network. Tensor names must be unique, and counts for one sample must fit in 63
 * bits. */
static bool finish(struct reader *r, struct rfl_net **ret)
{
	static const struct rfl_count_options one = {
		.batch = 1,
		.training = true,
		.auxiliary = true,
		.optimizer = RFL_OPT_ADAMW,
	};
	struct rfl_net_builder *b = r->b;
	struct rfl_net *net = NULL;
	struct rfl_count *count = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	json_t *names = json_object();
	int output = 0;
	bool ok = (names || no_memory(r)) && read_output(r, &output);

	if (!ok)
		goto done;
	label_as(r, "/output", -1, NULL);
	r->b = NULL; /* rfl_net_finish() releases it, even on failure */
	ok = rfl_net_finish(b, r->drafts[output].node, &net, &err) == RFL_OK ||
	     failed_with(r, &err);
	for (int i = 0; ok && i < net->nparams; i++) {
		const char *name = net->params[i].name;

		if (json_object_get(names, name)) {
			r->at = r->order[net->params[i].node];
			ok = fail(r, NULL, -1,
				  "the state_dict already has a tensor '%s'; rename this node",
				  name);
		} else if (json_object_set_new(names, name, json_true()) != 0) {
			ok = no_memory(r);
		}
	}
	if (ok && rfl_count_net(net, &one, &count, &err) != RFL_OK)
		ok = err.rc == RFL_ENOMEM ? no_memory(r) : fail(r, "nodes", -1, "%s", err.msg);
	if (ok) {
		*ret = net;
		net = NULL;
	}
done:
	rfl_count_free(count);
	rfl_net_free(net);
	json_decref(names);
	return ok;
}

enum rfl_rc rfl_net_from_json(const json_t *root, const char *name, struct rfl_net **ret,
			      struct rfl_err *err)
{
	struct reader r = {
		.file = name,
		.root = root,
		.err = RFL_ERR_INIT,
		.arena = rfl_arena_new(),
	};
	bool ok = r.arena || no_memory(&r);

	ok = ok && read_top(&r) && at_each(&r, NULL, read_draft) &&
	     at_each(&r, NULL, read_inputs) && sort(&r) && at_each(&r, r.order, append) &&
	     read_state_dict(&r) && finish(&r, ret);
	rfl_net_builder_free(r.b);
	json_decref(r.ids);
	rfl_arena_free(r.arena);
	return ok ? RFL_OK : rfl_fail(err, r.err.rc, 0, "%s", r.err.msg);
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
