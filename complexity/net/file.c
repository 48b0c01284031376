/*
 * file.c - build a network from a JSON document: read the names and inputs of all nodes, find an
 * execution order, then pass each node to the builder, which infers shapes and creates parameters
 * as for the zoo. The format is described in docs/reference/net.md.
 */
#include "complexity/net/file.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"
#include "complexity/count.h"
#include "complexity/net/build.h"
#include "complexity/onnx/onnx.h"

enum {
	MAX_NODES = 1000000,
	MAX_NAME = 255,
	MAX_MODEL_NAME = 64,
	MAX_CANDIDATES = 4096, /* most names searched for a suggestion */
	MAX_KEYS = 40,         /* of a node, with one for each pair of attributes x_h and x_w */
	CYCLE_SHOWN = 12,
};

/* A node as in the file. Draft 0 is the input; draft i is node i - 1 of the file. */
struct draft {
	const json_t *obj;
	const char *op_name;
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
	struct rfl_bind b;
	const json_t *root;
	struct rfl_err err;
	const char *model, *title, *family, *output;
	int loss; /* enum rfl_loss */
	int at;   /* the draft being read; 0: the document itself */
	int ndrafts;
	struct draft *drafts;
	json_t *ids; /* draft index by name */
	int *order;  /* drafts in execution order */
	struct rfl_net_builder *builder;
	char label[1400]; /* prefix of the builder's messages */
};

/* --- messages; all return false -------------------------------------------------------------- */

static const char *label_of(const struct draft *d)
{
	return d->id ? d->id : d->info->name;
}

/* Set the location of values and messages: r->at (key NULL), one of its keys (index -1), or an
 * element of that key's list. */
static void go_to(struct reader *r, const char *key, int index)
{
	const struct draft *d = r->at ? &r->drafts[r->at] : NULL;

	rfl_where_begin(&r->b.at, r->b.at.file, "");
	r->b.at.name = d && (d->id || d->info) ? label_of(d) : NULL;
	if (d) {
		(void)rfl_where_key(&r->b.at, "nodes");
		(void)rfl_where_index(&r->b.at, (size_t)r->at - 1);
	}
	if (key)
		(void)rfl_where_key(&r->b.at, key);
	if (index >= 0)
		(void)rfl_where_index(&r->b.at, (size_t)index);
}

RFL_PRINTF(4, 5)
static bool fail(struct reader *r, const char *key, int index, const char *fmt, ...)
{
	char text[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	go_to(r, key, index);
	rfl_bind_refuse(&r->b, "%s", text);
	return false;
}

/* Pass on a failure of the builder or of a finished network. */
static bool failed_with(struct reader *r, const struct rfl_err *e)
{
	r->b.rc = rfl_fail(&r->err, RFL_EFORMAT, 0, "%s", e->msg);
	return false;
}

/* Make the builder's messages begin with the file and a location in it; for a node, also its id. */
static void label_as(struct reader *r, const char *key, const char *id)
{
	go_to(r, key, -1);
	(void)snprintf(r->label, sizeof(r->label), "%s: %s%s%s", r->b.at.file, r->b.at.pointer,
		       id ? ": " : "", id ? id : "");
	r->builder->label = r->label;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Whether a text is neither empty nor too long and has no control characters. */
static bool is_name(const char *text)
{
	size_t n = 0;

	for (; text[n]; n++)
		if (n >= MAX_NAME || rfl_text_control(text + n))
			return false;
	return n > 0;
}

/* Whether a text can be part of a file name. */
static bool is_model(const char *text)
{
	static const char alnum[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *text && strlen(text) <= MAX_MODEL_NAME && !text[strspn(text, alnum)] &&
	       !strchr("._-", text[0]);
}

#define NAME(key_, type, member)                                         \
	.key = (key_), RFL_MEMBER(TEXT, type, member), .valid = is_name, \
	.what = "a string of 1 to 255 bytes without control characters"

/* Find the draft that a text names; suggest the nearest name if there is none. */
static bool resolve(struct reader *r, const char *key, int index, const json_t *value, int *ret)
{
	const char *id = json_string_value(value);
	const bool plain = id && is_name(id); /* otherwise it may be of any length */
	const int shown = plain ? MAX_NAME : 60;
	char advice[RFL_ADVICE_SIZE];
	const char **names;
	size_t n = 0;

	go_to(r, key, index);
	if (!id) {
		rfl_bind_must(&r->b, value, "the name of a node");
		return false;
	}
	if (json_object_get(r->ids, id)) {
		*ret = (int)json_integer_value(json_object_get(r->ids, id));
		return true;
	}
	names = rfl_arena_array(r->b.arena, MAX_CANDIDATES + 1, sizeof(*names));
	for (int i = 0; i < r->ndrafts && n < MAX_CANDIDATES; i++)
		if (r->drafts[i].id)
			names[n++] = r->drafts[i].id;
	return fail(r, key, index, "no node '%.*s%s'; %s", shown, id,
		    strlen(id) > (size_t)shown ? "..." : "",
		    rfl_text_advice(plain ? id : "", names, 1, "name a node of the file", advice));
}

/* The row of a whole number or, with `real`, of any number; `min` INT64_MIN: no limit. */
static struct rfl_member number(bool real, int64_t min)
{
	const bool any = min == INT64_MIN;

	return (struct rfl_member){ .kind = real ? RFL_BIND_REAL : RFL_BIND_INT,
				    .size = sizeof(int64_t),
				    .min = any ? 0 : (double)min,
				    .max = any ? 0 : (double)INFINITY };
}

/* Read a list of `least` to `most` whole numbers at the current location. */
static void read_list(struct rfl_bind *b, const json_t *value, int least, int most, int64_t min,
		      int64_t *dim, int *ndim)
{
	const struct rfl_member item = number(false, min);
	const size_t n = json_array_size(value);

	*ndim = (int)n;
	if (!json_is_array(value) || n < (size_t)least || n > (size_t)most)
		rfl_bind_refuse(b,
				least == most ? "must be a list of %d integers"
					      : "must be a list of %d to %d integers",
				least, most);
	for (size_t i = 0; i < n && !b->rc; i++) {
		const size_t mark = rfl_where_index(&b->at, i);

		rfl_bind_value(b, json_array_get(value, i), &item, &dim[i]);
		rfl_where_up(&b->at, mark);
	}
}

/* Read an attribute, or set its default. @param ndim  of the node's first input */
static void read_attr(struct reader *r, const struct rfl_op_attr *attr, int ndim, void *node)
{
	const json_t *obj = r->drafts[r->at].obj, *value = json_object_get(obj, attr->name);
	void *to = (char *)node + attr->offset;
	struct rfl_member m = number(attr->type == RFL_ATTR_REAL, attr->min);
	struct rfl_shape *shape = to;
	int n;

	if (attr->type == RFL_ATTR_INT)
		*(int64_t *)to = (int64_t)attr->def;
	else if (attr->type == RFL_ATTR_REAL)
		*(double *)to = attr->def;
	else if (attr->type == RFL_ATTR_BOOL)
		*(bool *)to = attr->def != 0;
	m.key = attr->name;
	m.must = attr->required;
	if (attr->type == RFL_ATTR_BOOL)
		m = (struct rfl_member){ .key = m.key,
					 .kind = RFL_BIND_FLAG,
					 .size = sizeof(bool) };
	if (attr->type < RFL_ATTR_SHAPE || !value) {
		go_to(r, NULL, -1);
		rfl_bind_key(&r->b, obj, &m, to);
		return;
	}
	go_to(r, attr->name, -1);
	if (attr->type == RFL_ATTR_SHAPE)
		read_list(&r->b, value, 1, RFL_NET_MAX_DIMS, 1, shape->dim, &shape->ndim);
	else if (json_array_size(value) != (size_t)ndim)
		rfl_bind_refuse(&r->b, "must be a list of %d integers: the input has %d dimensions",
				ndim, ndim);
	else
		read_list(&r->b, value, ndim, ndim, 0, to, &n);
}

/* Read "kernel": 3, "kernel": [1, 7], or separate "kernel_h" and "kernel_w". */
static void read_pair(struct reader *r, const struct rfl_op_attr attr[2], void *node)
{
	const json_t *obj = r->drafts[r->at].obj, *value = json_object_get(obj, attr->pair);
	const bool half[2] = { json_object_get(obj, attr[0].name),
			       json_object_get(obj, attr[1].name) };
	const struct rfl_member size = number(false, attr->min);
	int64_t both[2] = { 0 };
	int n = 1;

	if (value && (half[0] || half[1])) {
		(void)fail(r, attr[half[0] ? 0 : 1].name, -1,
			   "\"%s\" already sets it; remove one of them", attr->pair);
	} else if (value) {
		go_to(r, attr->pair, -1);
		if (json_is_array(value))
			read_list(&r->b, value, 2, 2, attr->min, both, &n);
		else
			rfl_bind_value(&r->b, value, &size, both);
		*(int64_t *)((char *)node + attr[0].offset) = both[0];
		*(int64_t *)((char *)node + attr[1].offset) = both[n > 1];
	} else if (attr->required && !half[0] && !half[1]) {
		(void)fail(r, NULL, -1, "the key \"%s\" is missing; add it", attr->pair);
	} else {
		read_attr(r, &attr[0], 0, node);
		read_attr(r, &attr[1], 0, node);
	}
}

/* --- the document, before the contents of its nodes ------------------------------------------- */

static void read_input(struct rfl_bind *b, const json_t *value, void *to)
{
	static const struct rfl_member keys[] = { { .key = "image" }, { .key = "tokens" }, { 0 } };
	const struct rfl_member size = number(false, 1);
	struct reader *r = b->ctx;
	const json_t *image = json_object_get(value, "image");
	const json_t *tokens = json_object_get(value, "tokens");
	int64_t dim[3] = { 0 };
	size_t mark;
	int n;

	(void)to;
	if (!json_is_object(value))
		rfl_bind_refuse(b, "must be {\"image\": [channels, height, width]} or "
				   "{\"tokens\": length}");
	rfl_bind_only(b, value, keys);
	if (!image == !tokens)
		rfl_bind_refuse(b, "must have either \"image\" or \"tokens\"");
	mark = rfl_where_key(&b->at, image ? "image" : "tokens");
	if (image && json_array_size(image) != 3)
		rfl_bind_refuse(b, "must be a list of channels, height and width");
	if (b->rc == RFL_OK && image)
		read_list(b, image, 3, 3, 1, dim, &n);
	else if (b->rc == RFL_OK)
		rfl_bind_value(b, tokens, &size, dim);
	rfl_where_up(&b->at, mark);
	if (b->rc)
		return;
	r->builder = rfl_net_builder_new(r->model, r->family ? r->family : "user");
	r->builder->title = r->title;
	label_as(r, "input", NULL);
	if (image)
		(void)rfl_net_input(r->builder, dim[0], dim[1], dim[2]);
	else
		(void)rfl_net_tokens(r->builder, dim[0]);
	if (r->builder->err.rc != RFL_OK)
		(void)failed_with(r, &r->builder->err);
}

static void read_nodes(struct rfl_bind *b, const json_t *value, void *to)
{
	struct reader *r = b->ctx;
	const size_t n = json_array_size(value);

	(void)to;
	if (n < 1 || n > MAX_NODES) {
		rfl_bind_refuse(b, "must be a list of 1 to %d nodes", MAX_NODES);
		return;
	}
	r->ids = json_object();
	r->drafts = rfl_arena_array(b->arena, n + 1, sizeof(*r->drafts));
	r->order = rfl_arena_array(b->arena, n + 1, sizeof(*r->order));
	json_object_set_new(r->ids, RFL_NET_FILE_INPUT, json_integer(0));
	r->ndrafts = (int)n + 1;
	r->drafts[0].id = RFL_NET_FILE_INPUT;
	r->drafts[0].info = rfl_op_info_of(RFL_OP_INPUT);
	for (size_t i = 0; i < n; i++)
		r->drafts[i + 1].obj = json_array_get(value, i);
}

static bool read_document(struct reader *r)
{
	static const char *const losses[] = { "fused", "composed", NULL };
	static const struct rfl_member of_document[] = {
		{ "$schema", RFL_CHECKED(TEXT) },
		{ "schema", RFL_CHECKED(TEXT) },
		{ "model", RFL_MEMBER(TEXT, struct reader, model), .must = true, .valid = is_model,
		  .what = "a name of letters, digits, '.', '_' and '-', at most 64, that begins "
			  "with a letter or a digit" },
		{ NAME("title", struct reader, title) },
		{ NAME("family", struct reader, family) },
		{ "input", .kind = RFL_BIND_OTHER, .must = true, .read = read_input,
		  .example = "{\"image\": [channels, height, width]}" },
		{ "nodes", .kind = RFL_BIND_OTHER, .must = true, .read = read_nodes },
		{ NAME("output", struct reader, output) },
		{ "loss", RFL_MEMBER(CHOICE, struct reader, loss), .choices = losses },
		{ "state_dict", .list = true, RFL_CHECKED(TEXT) },
		{ .key = NULL },
	};

	rfl_bind_schema(&r->b, r->root, RFL_NET_FILE_SCHEMA, "a network");
	rfl_bind_read(&r->b, r->root, of_document, r);
	return r->b.rc == RFL_OK;
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

const struct rfl_member rfl_net_file_node[] = {
	{ NAME("name", struct draft, name) }, /* first, because messages contain them */
	{ NAME("id", struct draft, id) },
	{ NAME("op", struct draft, op_name), .must = true },
	{ NAME("within", struct draft, within) },
	{ "inputs", .list = true, RFL_CHECKED(TEXT) },
	{ "inplace", RFL_MEMBER(FLAG, struct draft, inplace) },
	{ "auxiliary", RFL_MEMBER(FLAG, struct draft, auxiliary) },
	{ "block", RFL_MEMBER(INT, struct draft, block), .min = 1 },
	{ "function", RFL_MEMBER(INT, struct draft, function), .min = 1 },
	{ "functional", RFL_MEMBER(FLAG, struct draft, functional) },
	{ "tied", RFL_CHECKED(TEXT) },
	{ .key = NULL },
};

static bool find_op(struct reader *r, struct draft *d)
{
	const char *names[RFL_OP_COUNT + 1] = { 0 };
	char advice[RFL_ADVICE_SIZE];
	size_t n = 0;

	for (int i = 0; i < RFL_OP_COUNT; i++) {
		const struct rfl_op_info *info = rfl_op_info_of((enum rfl_op)i);

		if (!rfl_net_file_is_node((enum rfl_op)i))
			continue;
		names[n++] = info->name;
		if (strcmp(info->name, d->op_name) == 0) {
			d->op = (enum rfl_op)i;
			d->info = info;
			return true;
		}
	}
	return fail(r, "op", -1, "no operation '%s'; %s", d->op_name,
		    rfl_text_advice(d->op_name, names, 1, "see docs/reference/net.md for a list",
				    advice));
}

static bool read_draft(struct reader *r, struct draft *d)
{
	const bool named = !json_object_get(d->obj, "id");
	struct rfl_member keys[MAX_KEYS] = { { 0 } };
	const json_t *other;
	size_t n = 0;

	go_to(r, NULL, -1);
	if (!json_is_object(d->obj))
		rfl_bind_must(&r->b, d->obj, "an object");
	for (const struct rfl_member *m = rfl_net_file_node; m->key; m++) {
		if (m->size)
			rfl_bind_key(&r->b, d->obj, m, d);
		r->b.at.name = d->id ? d->id : d->name;
	}
	d->id = d->id ? d->id : d->name;
	if (r->b.rc || !find_op(r, d))
		return false;
	/* Attributes come first, so that they win if two suggestions are equally near. */
	for (size_t i = 0; i < d->info->nattrs; i++) {
		const struct rfl_op_attr *attr = &d->info->attrs[i];

		if (attr->inferred && json_object_get(d->obj, attr->name))
			return fail(r, attr->name, -1,
				    "is inferred from the input's shape; leave it out");
		if (attr->pair)
			keys[n++].key = attr->pair;
		if (!attr->inferred)
			keys[n++].key = attr->name;
	}
	for (size_t i = 0; rfl_net_file_node[i].key; i++)
		keys[n++].key = rfl_net_file_node[i].key;
	assert(n < MAX_KEYS);
	rfl_bind_only(&r->b, d->obj, keys);
	if (r->b.rc)
		return false;
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
	if (!d->name && (d->info->params || d->info->arity == RFL_OP_NO_INPUTS))
		return fail(r, NULL, -1, "a node of this kind needs a \"name\"; add one");
	if (!d->id)
		return true;
	/* Other nodes refer to a node by its id, or by its name if it has no id. */
	other = json_object_get(r->ids, d->id);
	if (json_integer_value(other) > 0)
		return fail(r, named ? "name" : "id", -1, "the name is used by /nodes/%d; %s",
			    (int)json_integer_value(other) - 1,
			    named ? "add a unique \"id\" if the module runs again"
				  : "choose another");
	if (other)
		return fail(r, named ? "name" : "id", -1,
			    "the name is reserved for the network's input; use another");
	json_object_set_new(r->ids, d->id, json_integer(r->at));
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
	d->inputs = rfl_arena_array(r->b.arena, n + 1, sizeof(*d->inputs));
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
	RFL_AUTO(buf) path = { .max = 8192 };
	int shown = 0;

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
	const bool text = rfl_net_shape(r->builder, 0).ndim == 1;
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

	if (!enter(r, "block", d->block, &r->builder->in_block, &r->builder->nblocks) ||
	    !enter(r, "function", d->function, &r->builder->in_function, &r->builder->nfunctions))
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
		ndim = rfl_net_shape(r->builder, inputs[0]).ndim;
	for (size_t i = 0; i < d->info->nattrs; i++) {
		const struct rfl_op_attr *attr = &d->info->attrs[i];

		if (attr->pair)
			read_pair(r, attr, &node);
		else if (!attr->inferred)
			read_attr(r, attr, ndim, &node);
		i += attr->pair != NULL;
	}
	if (r->b.rc)
		return false;
	if (d->tied) { /* the weight must have the size that the node's own would have */
		rfl_net_infer_attrs(r->builder, &node);
		if (d->info->params(&node, own) != 1)
			return fail(r, "tied", -1,
				    "the node has more than one weight; only one can be shared");
		shared = rfl_net_first_param(r->builder, node.tied);
		if (mine->ndim != shared.ndim ||
		    memcmp(mine->dim, shared.dim, (size_t)mine->ndim * sizeof(mine->dim[0])) != 0)
			return fail(r, "tied", -1, "needs a weight of %s, but '%s' has %s",
				    rfl_shape_text(mine, a, sizeof(a)),
				    label_of(&r->drafts[d->tied]),
				    rfl_shape_text(&shared, b, sizeof(b)));
	}
	label_as(r, NULL, d->id != d->name ? d->id : NULL);
	r->builder->in_auxiliary = d->auxiliary;
	d->node = rfl_net_append(r->builder, &node, d->name ? d->name : d->within ? d->within : "");
	return d->node >= 0 || failed_with(r, &r->builder->err);
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
	bool *listed = rfl_arena_array(r->b.arena, (size_t)r->ndrafts, sizeof(*listed));
	int *nodes = rfl_arena_array(r->b.arena, n + 1, sizeof(*nodes));
	int draft;

	if (!list)
		return true;
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
	rfl_net_state_dict_order(r->builder, nodes, (int)n);
	return true;
}

/* Find the output, and check that everything else is read. */
static bool find_output(struct reader *r, int *ret)
{
	int draft = r->ndrafts - 1;

	r->builder->loss = (enum rfl_loss)r->loss;
	if (r->output && !resolve(r, "output", -1, json_object_get(r->root, "output"), &draft))
		return false;
	if (r->drafts[draft].auxiliary)
		return fail(r, "output", -1, "'%s' is auxiliary; name a node of the main network",
			    label_of(&r->drafts[draft]));
	if (draft == 0 || r->builder->nodes[r->drafts[draft].node].batchless)
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

enum rfl_rc rfl_net_check_counts(const struct rfl_net *net, struct rfl_err *err)
{
	static const struct rfl_count_options one = {
		.batch = 1,
		.training = true,
		.auxiliary = true,
		.optimizer = RFL_OPT_ADAMW,
	};
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	if (rfl_count_net(net, &one, &count, &why) != RFL_OK)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s", why.msg);
	rfl_count_free(count);
	return RFL_OK;
}

/* Finish the network. Tensor names must be unique, and counts for one sample must fit in 63
 * bits. */
static bool finish(struct reader *r, struct rfl_net **ret)
{
	struct rfl_net_builder *b = r->builder;
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	json_auto_t *names = NULL;
	int output = 0;
	bool ok;

	if (!find_output(r, &output))
		return false;
	names = json_object();
	label_as(r, "output", NULL);
	r->builder = NULL; /* rfl_net_finish() releases it, even on failure */
	ok = rfl_net_finish(b, r->drafts[output].node, &net, &err) == RFL_OK ||
	     failed_with(r, &err);
	for (int i = 0; ok && i < net->nparams; i++) {
		const char *name = net->params[i].name;

		if (json_object_get(names, name)) {
			r->at = r->order[net->params[i].node];
			ok = fail(r, NULL, -1,
				  "the state_dict already has a tensor '%s'; rename this node",
				  name);
		}
		json_object_set_new(names, name, json_true());
	}
	if (ok && rfl_net_check_counts(net, &err) != RFL_OK)
		ok = fail(r, "nodes", -1, "%s", err.msg);
	if (ok)
		*ret = net;
	else
		rfl_net_free(net);
	return ok;
}

enum rfl_rc rfl_net_from_json(const json_t *root, const char *name, struct rfl_net **ret,
			      struct rfl_err *err)
{
	struct reader r = { .root = root, .err = RFL_ERR_INIT };
	bool ok;

	r.b = (struct rfl_bind){ .arena = rfl_arena_new(), .ctx = &r, .err = &r.err };
	rfl_where_begin(&r.b.at, name, "");
	ok = read_document(&r) && at_each(&r, NULL, read_draft) && at_each(&r, NULL, read_inputs) &&
	     sort(&r) && at_each(&r, r.order, append) && read_state_dict(&r) && finish(&r, ret);
	rfl_net_builder_free(r.builder);
	json_decref(r.ids);
	rfl_arena_free(r.b.arena);
	return ok ? RFL_OK : rfl_err_pass(err, &r.err);
}

bool rfl_net_is_file(const char *model)
{
	return rfl_span_ends(rfl_span_of(model), ".json") ||
	       rfl_span_ends(rfl_span_of(model), ".onnx");
}

enum rfl_rc rfl_net_load(const char *path, struct rfl_net **ret, struct rfl_err *err)
{
	json_auto_t *root = NULL;
	enum rfl_rc rc;

	if (rfl_onnx_is_file(path))
		return rfl_onnx_load(path, ret, err);
	rc = rfl_json_load(path, &root, err);

	if (rc == RFL_OK)
		rc = rfl_net_from_json(root, path, ret, err);
	return rc;
}
