/*
 * file_write.c - a network as a document: what the reader would assume is left out, names are
 * made where nodes must be distinguished.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "complexity/net/file.h"
#include "complexity/net/file_impl.h"

struct writer {
	const struct rfl_net *net;
	const char **ids; /* by node; in names */
	bool *wanted;     /* by node: some list in the file names it */
	json_t *names;    /* every id, with the last number that was appended to it */
	struct rfl_arena *arena;
	bool failed; /* memory was short */
};

static bool put(struct writer *w, json_t *obj, const char *key, json_t *take_value)
{
	if (json_object_set_new(obj, key, take_value) != 0)
		w->failed = true;
	return !w->failed;
}

/* --- names --- */

/* A step that is no module; its name is that of the block around it. */
static bool is_step(const struct rfl_node *node)
{
	return node->functional && rfl_op_info_of(node->op)->arity != RFL_OP_NO_INPUTS &&
	       !rfl_net_file__has_weights(node->op);
}

static bool reads_the_node_before(const struct rfl_net *net, int i)
{
	const struct rfl_node *node = &net->nodes[i];

	return rfl_op_info_of(node->op)->arity == 0 && node->input[0] == i - 1;
}

static bool owns_params(const struct rfl_node *node)
{
	return node->nparams > 0 && !node->tied;
}

/* Whether the parameters stand in the order of execution. */
static bool in_order(const struct rfl_net *net)
{
	int next = 0;

	for (int i = 0; i < net->nnodes; i++)
		for (int k = 0; owns_params(&net->nodes[i]) && k < net->nodes[i].nparams; k++)
			if (net->nodes[i].param[k] != next++)
				return false;
	return true;
}

static void find_wanted(struct writer *w)
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
}

/* "layer1.0.relu", "layer1.0.relu:2", ...: the first that is free. NULL when memory is short. */
static const char *make_id(struct writer *w, const char *base)
{
	json_int_t n = json_integer_value(json_object_get(w->names, base)); /* 0: it is free */
	const char *id = base;

	if (n > 0) {
		do {
			id = rfl_arena_printf(w->arena, "%s:%lld", base, (long long)++n);
		} while (id && json_object_get(w->names, id));
		(void)put(w, w->names, base, json_integer(n));
	}
	if (!id || !put(w, w->names, id, json_integer(1))) {
		w->failed = true;
		return NULL;
	}
	return id;
}

/* What a step is called where it must be called something: "layer1.0:add". */
static const char *step_base(struct writer *w, const struct rfl_node *node)
{
	const char *op = rfl_op_info_of(node->op)->name;
	const char *base = *node->name ? rfl_arena_printf(w->arena, "%s:%s", node->name, op) : op;

	if (!base)
		w->failed = true;
	return base;
}

/* Modules keep their own names, so they come first. */
static void name_nodes(struct writer *w)
{
	const struct rfl_net *net = w->net;

	w->ids[0] = RFL_NET_FILE_INPUT;
	(void)put(w, w->names, RFL_NET_FILE_INPUT, json_integer(1));
	for (int i = 1; i < net->nnodes && !w->failed; i++)
		if (!is_step(&net->nodes[i]))
			w->ids[i] = make_id(w, net->nodes[i].name);
	for (int i = 1; i < net->nnodes && !w->failed; i++)
		if (is_step(&net->nodes[i]) && w->wanted[i]) {
			const char *base = step_base(w, &net->nodes[i]);

			w->ids[i] = base ? make_id(w, base) : NULL;
		}
}

/* --- the document --- */

static json_t *list_inputs(const struct writer *w, const struct rfl_node *node)
{
	json_t *list = json_array();

	for (int i = 0; list && i < node->ninputs; i++)
		if (json_array_append_new(list, json_string(w->ids[node->input[i]])) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static void write_names(struct writer *w, int i, json_t *obj)
{
	const struct rfl_node *node = &w->net->nodes[i];
	bool step = is_step(node);

	if (w->ids[i] && (step || strcmp(w->ids[i], node->name) != 0))
		(void)put(w, obj, "id", json_string(w->ids[i]));
	if (step && *node->name)
		(void)put(w, obj, "within", json_string(node->name));
	if (!step)
		(void)put(w, obj, "name", json_string(node->name));
	(void)put(w, obj, "op", json_string(rfl_op_info_of(node->op)->name));
	if (node->ninputs && !reads_the_node_before(w->net, i))
		(void)put(w, obj, "inputs", list_inputs(w, node));
}

static json_t *node_json(struct writer *w, int i)
{
	const struct rfl_node *node = &w->net->nodes[i];
	json_t *obj = json_object();

	if (!obj) {
		w->failed = true;
		return NULL;
	}
	write_names(w, i, obj);
	if (!rfl_net_file__write_attrs(w->net, node, obj))
		w->failed = true;
	if (node->inplace)
		(void)put(w, obj, "inplace", json_true());
	if (node->functional && rfl_net_file__has_weights(node->op))
		(void)put(w, obj, "functional", json_true());
	if (node->tied)
		(void)put(w, obj, "tied", json_string(w->ids[node->tied]));
	if (node->auxiliary)
		(void)put(w, obj, "auxiliary", json_true());
	if (node->block)
		(void)put(w, obj, "block", json_integer(node->block));
	if (node->function)
		(void)put(w, obj, "function", json_integer(node->function));
	return obj;
}

static json_t *nodes_json(struct writer *w)
{
	json_t *list = json_array();

	for (int i = 1; list && i < w->net->nnodes && !w->failed; i++)
		if (json_array_append_new(list, node_json(w, i)) != 0)
			w->failed = true;
	return list;
}

static json_t *input_json(struct writer *w)
{
	const struct rfl_node *input = &w->net->nodes[0];
	json_t *obj = json_object();

	if (input->dtype == RFL_DTYPE_I64)
		(void)put(w, obj, "tokens", json_integer(input->shape.dim[0]));
	else
		(void)put(w, obj, "image",
			  rfl_net_file__sizes(input->shape.dim, input->shape.ndim));
	return obj;
}

static json_t *state_dict_json(struct writer *w)
{
	json_t *list = json_array();
	int last = 0; /* no node: the input owns nothing */

	for (int i = 0; list && i < w->net->nparams; i++) {
		int node = w->net->params[i].node;

		if (node != last && json_array_append_new(list, json_string(w->ids[node])) != 0)
			w->failed = true;
		last = node;
	}
	return list;
}

static json_t *net_json(struct writer *w)
{
	const struct rfl_net *net = w->net;
	json_t *root = json_object();

	(void)put(w, root, "schema", json_string(RFL_NET_FILE_SCHEMA));
	(void)put(w, root, "model", json_string(net->model));
	if (net->title)
		(void)put(w, root, "title", json_string(net->title));
	(void)put(w, root, "family", json_string(net->family));
	(void)put(w, root, "input", input_json(w));
	(void)put(w, root, "nodes", nodes_json(w));
	(void)put(w, root, "output", json_string(w->ids[net->output]));
	if (net->loss == RFL_LOSS_COMPOSED)
		(void)put(w, root, "loss", json_string("composed"));
	if (!in_order(net))
		(void)put(w, root, "state_dict", state_dict_json(w));
	if (!w->failed)
		return root;
	json_decref(root);
	return NULL;
}

enum rfl_rc rfl_net_json(const struct rfl_net *net, json_t **ret, struct rfl_err *err)
{
	struct writer w = {
		.net = net,
		.arena = rfl_arena_new(0),
		.names = json_object(),
		.ids = rfl_alloc_array((size_t)net->nnodes, sizeof(*w.ids)),
		.wanted = rfl_alloc_array((size_t)net->nnodes, sizeof(*w.wanted)),
	};
	json_t *root = NULL;

	if (w.arena && w.names && w.ids && w.wanted) {
		find_wanted(&w);
		name_nodes(&w);
		root = w.failed ? NULL : net_json(&w);
	}
	free(w.ids);
	free(w.wanted);
	json_decref(w.names);
	rfl_arena_free(w.arena);
	if (!root)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	*ret = root;
	return RFL_OK;
}

/* --- the text: one node a line --- */

static void write_list(struct rfl_buf *out, const json_t *list)
{
	size_t n = json_array_size(list);

	rfl_buf_puts(out, "[");
	for (size_t i = 0; i < n; i++) {
		rfl_buf_puts(out, i ? ",\n    " : "\n    ");
		rfl_json_write_line(out, json_array_get(list, i));
	}
	rfl_buf_puts(out, n ? "\n  ]" : "]");
}

enum rfl_rc rfl_net_write(const struct rfl_net *net, struct rfl_buf *out, struct rfl_err *err)
{
	json_t *root = NULL, *value;
	const char *key, *between = "{\n  ";
	enum rfl_rc rc = rfl_net_json(net, &root, err);

	if (rc != RFL_OK)
		return rc;
	json_object_foreach(root, key, value)
	{
		rfl_buf_puts(out, between);
		rfl_json_write_string(out, key, strlen(key));
		rfl_buf_puts(out, ": ");
		if (json_is_array(value))
			write_list(out, value);
		else
			rfl_json_write_line(out, value);
		between = ",\n  ";
	}
	rfl_buf_puts(out, "\n}\n");
	json_decref(root);
	return rfl_buf_check(out, net->model, err);
}

enum rfl_rc rfl_net_save(const char *path, const struct rfl_net *net, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_net_write(net, &text, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	rfl_buf_fini(&text);
	return rc;
}
