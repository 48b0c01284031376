/*
 * file_write.c - write a network as a document. Values that equal the reader's defaults are
 * omitted; ids are added to nodes without unique names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "complexity/net/file.h"

struct writer {
	const struct rfl_net *net;
	const char **ids; /* by node; stored in names */
	bool *wanted;     /* by node: some list in the file refers to it */
	json_t *names;    /* every id, with the last number appended to it */
	struct rfl_arena *arena;
};

/* --- names --- */

/* A step that is not a module; it has the name of the enclosing block. */
static bool is_step(const struct rfl_node *node)
{
	return node->functional && rfl_op_info_of(node->op)->arity != RFL_OP_NO_INPUTS &&
	       !rfl_net_file_has_weights(node->op);
}

static bool reads_the_node_before(const struct rfl_net *net, int i)
{
	const struct rfl_node *node = &net->nodes[i];

	return rfl_op_info_of(node->op)->arity == 0 && node->input[0] == i - 1;
}

/* Choose the first unused of "layer1.0.relu", "layer1.0.relu:2", ... */
static const char *make_id(struct writer *w, const char *base)
{
	json_int_t n = json_integer_value(json_object_get(w->names, base)); /* 0: unused */
	const char *id = base;

	if (n > 0) {
		do {
			id = rfl_arena_printf(w->arena, "%s:%lld", base, (long long)++n);
		} while (json_object_get(w->names, id));
		json_object_set_new(w->names, base, json_integer(n));
	}
	json_object_set_new(w->names, id, json_integer(1));
	return id;
}

/* Name modules first, since they keep their own names. A step gets a name, such as "layer1.0:add",
 * only if some list refers to it. */
static void name_nodes(struct writer *w)
{
	const struct rfl_net *net = w->net;

	w->wanted[net->output] = true;
	for (int i = 1; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (node->tied)
			w->wanted[node->tied] = true;
		for (int k = 0; k < node->ninputs && !reads_the_node_before(net, i); k++)
			w->wanted[node->input[k]] = true;
	}
	w->ids[0] = make_id(w, RFL_NET_FILE_INPUT);
	for (int i = 1; i < net->nnodes; i++)
		if (!is_step(&net->nodes[i]))
			w->ids[i] = make_id(w, net->nodes[i].name);
	for (int i = 1; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const char *op = rfl_op_info_of(node->op)->name;

		if (is_step(node) && w->wanted[i])
			w->ids[i] = make_id(
				w, *node->name ? rfl_arena_printf(w->arena, "%s:%s", node->name, op)
					       : op);
	}
}

/* --- the document --- */

/* A list of sizes. */
static json_t *sizes(const int64_t *dim, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_integer(dim[i]));
	return list;
}

/* The value of a node's attribute; `*is_default` if files omit it. */
static json_t *attr_json(struct writer *w, const struct rfl_op_attr *attr,
			 const struct rfl_node *node, bool *is_default)
{
	const void *value = (const char *)node + attr->offset;
	const struct rfl_shape *shape = value;

	*is_default = false;
	switch (attr->type) {
	case RFL_ATTR_INT:
		*is_default = *(const int64_t *)value == (int64_t)attr->def;
		return json_integer(*(const int64_t *)value);
	case RFL_ATTR_REAL:
		*is_default = *(const double *)value == attr->def;
		return json_real(*(const double *)value);
	case RFL_ATTR_BOOL:
		*is_default = *(const bool *)value == (attr->def != 0);
		return json_boolean(*(const bool *)value);
	case RFL_ATTR_SHAPE:
		return sizes(shape->dim, shape->ndim);
	case RFL_ATTR_ORDER:
		break;
	}
	return sizes(value, w->net->nodes[node->input[0]].shape.ndim);
}

static void put_attrs(struct writer *w, const struct rfl_node *node, json_t *obj)
{
	const struct rfl_op_info *op = rfl_op_info_of(node->op);

	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];
		bool is_default, is_default_w = true;
		json_t *value, *value_w = NULL;

		if (attr->inferred)
			continue;
		value = attr_json(w, attr, node, &is_default);
		if (attr->pair) {
			value_w = attr_json(w, &op->attrs[++i], node, &is_default_w);
			if (json_equal(value, value_w))
				json_decref(value_w);
			else
				value = json_pack("[o, o]", value, value_w);
		}
		if (attr->required || !is_default || !is_default_w)
			json_object_set_new(obj, attr->pair ? attr->pair : attr->name, value);
		else
			json_decref(value);
	}
}

static json_t *node_json(struct writer *w, int i)
{
	const struct rfl_node *node = &w->net->nodes[i];
	const bool step = is_step(node);
	const bool named = w->ids[i] && (step || strcmp(w->ids[i], node->name) != 0);
	const bool functional = node->functional && rfl_net_file_has_weights(node->op);
	const bool listed = node->ninputs && !reads_the_node_before(w->net, i);
	json_t *inputs = listed ? json_array() : NULL, *obj;
	json_auto_t *rest = NULL;

	for (int k = 0; listed && k < node->ninputs; k++)
		json_array_append_new(inputs, json_string(w->ids[node->input[k]]));
	obj = json_pack("{s:s*, s:s*, s:s, s:o*}", "id", named ? w->ids[i] : NULL,
			step ? "within" : "name", step && !*node->name ? NULL : node->name, "op",
			rfl_op_info_of(node->op)->name, "inputs", inputs);
	put_attrs(w, node, obj);
	rest = json_pack("{s:o*, s:o*, s:s*, s:o*}", "inplace", node->inplace ? json_true() : NULL,
			 "functional", functional ? json_true() : NULL, "tied",
			 node->tied ? w->ids[node->tied] : NULL, "auxiliary",
			 node->auxiliary ? json_true() : NULL);
	json_object_update(obj, rest);
	if (node->block)
		json_object_set_new(obj, "block", json_integer(node->block));
	if (node->function)
		json_object_set_new(obj, "function", json_integer(node->function));
	return obj;
}

static json_t *net_json(struct writer *w)
{
	const struct rfl_net *net = w->net;
	const struct rfl_shape *shape = &net->nodes[0].shape;
	const bool text = net->nodes[0].dtype == RFL_DTYPE_I64;
	json_t *nodes = json_array(), *root;
	json_auto_t *order = json_array();
	bool in_order = true;
	int last = 0; /* node 0, the input, has no parameters */

	for (int i = 1; i < net->nnodes; i++)
		json_array_append_new(nodes, node_json(w, i));
	/* list the nodes with parameters, for a state_dict that is not in execution order */
	for (int i = 0; i < net->nparams; i++) {
		int node = net->params[i].node;

		if (node != last)
			json_array_append_new(order, json_string(w->ids[node]));
		in_order = in_order && node >= last;
		last = node;
	}
	root = json_pack("{s:s, s:s, s:s*, s:s, s:{s:o}, s:o, s:s, s:s*, s:O*}", "schema",
			 RFL_NET_FILE_SCHEMA, "model", net->model, "title", net->title, "family",
			 net->family, "input", text ? "tokens" : "image",
			 text ? json_integer(shape->dim[0]) : sizes(shape->dim, shape->ndim),
			 "nodes", nodes, "output", w->ids[net->output], "loss",
			 net->loss == RFL_LOSS_COMPOSED ? "composed" : NULL, "state_dict",
			 in_order ? NULL : order);
	return root;
}

/* Write one node per line. */
enum rfl_rc rfl_net_write(const struct rfl_net *net, struct rfl_buf *out, struct rfl_err *err)
{
	const size_t nnodes = (size_t)net->nnodes;
	const char *key, *between = "{\n  ";
	json_t *value, *line;
	json_auto_t *root = NULL;
	struct writer w;
	size_t i;

	if (net->uncounted)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"%s: cannot be written, because these operations are not supported: %s",
			net->model, net->uncounted);
	if (net->ninputs > 1) /* the format has one input */
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"%s: has several inputs, which a file of a network cannot express",
				net->model);
	w = (struct writer){ .net = net, .names = json_object(), .arena = rfl_arena_new() };
	w.ids = rfl_arena_array(w.arena, nnodes, sizeof(*w.ids));
	w.wanted = rfl_arena_array(w.arena, nnodes, sizeof(*w.wanted));
	name_nodes(&w);
	root = net_json(&w);
	json_object_foreach(root, key, value)
	{
		rfl_buf_puts(out, between);
		rfl_json_write_string(out, key, strlen(key));
		rfl_buf_puts(out, json_is_array(value) ? ": [" : ": ");
		json_array_foreach(value, i, line)
		{
			rfl_buf_puts(out, i ? ",\n    " : "\n    ");
			rfl_json_write_line(out, line);
		}
		if (json_is_array(value))
			rfl_buf_puts(out, i ? "\n  ]" : "]");
		else
			rfl_json_write_line(out, value);
		between = ",\n  ";
	}
	rfl_buf_puts(out, "\n}\n");
	json_decref(w.names);
	rfl_arena_free(w.arena);
	return rfl_buf_check(out, net->model, err);
}

/* Write what identifies a network. */
static enum rfl_rc write_content(const struct rfl_net *net, struct rfl_buf *out, char digest[17],
				 struct rfl_err *err)
{
	struct rfl_net content = *net;
	enum rfl_rc rc;

	if (net->named_by_file) {
		content.model = "network";
		content.title = NULL;
	}
	rc = rfl_net_write(&content, out, err);
	rfl_hash64_text(rfl_hash64(0, out->data, out->len), digest);
	return rc;
}

enum rfl_rc rfl_net_digest(const struct rfl_net *net, char out[17], struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };

	return write_content(net, &text, out, err);
}

enum rfl_rc rfl_net_keep(const char *dir, const struct rfl_net *net, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	char digest[17];
	enum rfl_rc rc = write_content(net, &text, digest, err);
	RFL_AUTO(buf) name = { .len = 0 };

	rfl_buf_printf(&name, "%s/%s.json", dir, digest);
	if (rc || rfl_file_exists(rfl_buf_str(&name)) || (rc = rfl_file_mkdirs(dir, err)))
		return rc;
	return rfl_file_write(rfl_buf_str(&name), text.data, text.len, err);
}

enum rfl_rc rfl_net_save(const char *path, const struct rfl_net *net, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	rc = rfl_net_write(net, &text, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	return rc;
}
