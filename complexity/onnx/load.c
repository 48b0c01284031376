/*
 * load.c - an ONNX file becomes a network, in two walks over its nodes, which are in execution
 * order. The first converts all nodes one by one, which gives every value its dimensions. Then
 * forms of several nodes are recognised, and the second walk builds the network of what the output
 * needs.
 */
#include "complexity/onnx/onnx.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "complexity/net/file.h"
#include "complexity/onnx/graph.h"

typedef struct rfl_onnx_value value;

#define fail(c, rc, ...) (rfl_fail(&(c)->err, (rc), 0, __VA_ARGS__) == RFL_OK)

/* --- values by name --- */

static value *find(const struct rfl_onnx *c, struct rfl_span name)
{
	const uint32_t number = rfl_keys_find(&c->numbers, name.at, name.len);

	return number ? &c->values[number - 1] : NULL;
}

/* Add a value; its name must be new. */
static value *add(struct rfl_onnx *c, struct rfl_span name)
{
	bool added;
	const uint32_t number = rfl_keys_add(&c->numbers, c->arena, name.at, name.len, &added);
	value *v = &c->values[number - 1];

	if (!added) {
		(void)fail(c, RFL_EFORMAT, "two values are called '%.*s'; export the file again",
			   RFL_SPAN_ARG(name));
		return v;
	}
	v->name = name;
	v->node = -1;
	v->inside = v->outer = 1;
	c->nvalues = number;
	return v;
}

static void index_values(struct rfl_onnx *c)
{
	const struct rfl_onnx_graph *g = &c->graph;
	size_t most = g->ntensors + g->ninputs;

	for (size_t i = 0; i < g->nnodes; i++)
		most += g->nodes[i].noutputs;
	c->values = rfl_arena_array(c->arena, most + 1, sizeof(*c->values));
	c->owners = rfl_arena_array(c->arena, g->ntensors + 1, sizeof(*c->owners));
	for (size_t i = 0; i < g->ntensors; i++) {
		value *v = add(c, g->tensors[i].name);

		v->constant = true;
		v->weight = &g->tensors[i];
		rfl_onnx_set_tensor(c, v, v->weight);
	}
}

static bool find_input(struct rfl_onnx *c)
{
	const struct rfl_onnx_graph *g = &c->graph;
	struct rfl_onnx_dims *d;

	for (size_t i = 0; i < g->ninputs; i++) { /* old files list the initialisers as well */
		if (find(c, g->inputs[i].name))
			continue;
		if (c->input)
			return fail(c, RFL_EUNSUPPORTED,
				    "the network has several inputs, '%.*s' and '%.*s'; export it "
				    "with one",
				    RFL_SPAN_ARG(c->input->name), RFL_SPAN_ARG(g->inputs[i].name));
		c->input = add(c, g->inputs[i].name);
		c->input->type = g->inputs[i].type;
		c->input->dims = g->inputs[i].dims;
	}
	if (!c->input)
		return fail(c, RFL_EFORMAT, "the network has no input; export it again");
	d = &c->input->dims;
	if (!d->known || d->n < 2 || d->n > 4)
		return fail(
			c, RFL_EUNSUPPORTED,
			"the input '%.*s' has %d dimensions; networks of images (4), tokens (2) "
			"and sequences (3) are supported",
			RFL_SPAN_ARG(c->input->name), d->n);
	for (int i = 1; i < d->n; i++)
		if (d->dim[i] < 1)
			return fail(c, RFL_EUNSUPPORTED,
				    "dimension %d of the input '%.*s' is dynamic; export it with a "
				    "fixed size, only the batch can be dynamic",
				    i, RFL_SPAN_ARG(c->input->name));
	c->batch = d->dim[0] = d->dim[0] < 1 ? 1 : d->dim[0];
	return rfl_onnx_numel(d) > 0 ||
	       fail(c, RFL_EUNSUPPORTED, "the input '%.*s' has 2^63 elements or more",
		    RFL_SPAN_ARG(c->input->name));
}

/* Connect the nodes. They are in execution order, so that what a node reads exists. */
static bool connect(struct rfl_onnx *c)
{
	const struct rfl_onnx_graph *g = &c->graph;

	for (size_t i = 0; i < g->nnodes && !c->err.rc; i++) {
		struct rfl_onnx_node *n = &g->nodes[i];

		n->in = rfl_arena_array(c->arena, n->ninputs + 1, sizeof(*n->in));
		n->out = rfl_arena_array(c->arena, n->noutputs + 1, sizeof(*n->out));
		for (size_t k = 0; k < n->ninputs; k++) {
			value *v = n->in[k] = n->inputs[k].len ? find(c, n->inputs[k]) : NULL;

			if (n->inputs[k].len && !v)
				return fail(c, RFL_EFORMAT,
					    "a node %.*s reads '%.*s', which no node before it "
					    "computes: the nodes form a cycle or are out of order; "
					    "export the file again",
					    RFL_SPAN_ARG(n->op), RFL_SPAN_ARG(n->inputs[k]));
			if (v && v->uses++ == 0)
				v->reader = n;
		}
		for (size_t k = 0; k < n->noutputs; k++)
			if (n->outputs[k].len) {
				n->out[k] = add(c, n->outputs[k]);
				n->out[k]->producer = n;
			}
	}
	for (size_t i = 0; i < g->nvalues; i++) {
		value *v = find(c, g->values[i].name);

		if (!v || !v->producer)
			continue;
		v->dims = g->values[i].dims;
		v->type = g->values[i].type;
		if (v->dims.known && v->dims.n > 0 && v->dims.dim[0] < 0)
			v->dims.dim[0] = c->batch;
	}
	c->output = g->noutputs ? find(c, g->outputs[0].name) : NULL;
	if (!c->err.rc && (!c->output || c->output->constant))
		return fail(c, RFL_EFORMAT, "no node computes the output; export the file again");
	if (!c->err.rc && !c->output->dims.known)
		c->output->dims = g->outputs[0].dims;
	return !c->err.rc;
}

/* --- the two walks --- */

/* The name of the file without its suffix, as the name of the model. */
static const char *model_of(struct rfl_onnx *c)
{
	char *name = rfl_arena_strdup(c->arena, rfl_path_base(c->path));
	const struct rfl_span all = rfl_span_of(name);

	if (rfl_span_ends(all, ".onnx"))
		name[all.len - strlen(".onnx")] = '\0';
	rfl_text_plain(name);
	if (strlen(name) > 64)
		name[64] = '\0';
	return *name && !strchr("._-", *name) ? name
					      : rfl_arena_printf(c->arena, "onnx%.60s", name);
}

static void start(struct rfl_onnx *c)
{
	const struct rfl_onnx_dims *d = &c->input->dims;
	const bool tokens = d->n == 2 && c->input->type != RFL_ONNX_FLOAT;
	struct rfl_shape shape = { .ndim = d->n - 1 };

	for (int i = 0; i < shape.ndim; i++)
		shape.dim[i] = d->dim[i + 1];
	rfl_net_builder_free(c->builder);
	c->builder = rfl_net_builder_new(model_of(c), "user");
	c->builder->label = c->path;
	if (d->n == 3)
		c->builder->loss = RFL_LOSS_MEAN;
	json_decref(c->names);
	c->names = json_object();
	json_decref(c->unknown);
	c->unknown = json_object();
	c->nafter = 0;
	c->batch_norms = c->folded = 0;
	for (size_t i = 0; i < c->nvalues; i++)
		c->values[i].node = -1;
	memset(c->owners, 0, c->graph.ntensors * sizeof(*c->owners));
	c->input->node = rfl_net_add_input(c->builder, "input",
					   tokens ? RFL_DTYPE_I64 : RFL_DTYPE_F32, &shape);
}

static bool is_constant(const struct rfl_onnx_node *n)
{
	const value *x = rfl_onnx_in(n, 0);

	if ((rfl_span_is(n->op, "Shape") || rfl_span_is(n->op, "Size")) && x)
		return x->dims.known;
	for (size_t k = 0; k < n->ninputs; k++)
		if (n->in[k] && !n->in[k]->constant && !(k == 1 && rfl_span_is(n->op, "CastLike")))
			return false;
	return n->noutputs > 0;
}

static bool walk(struct rfl_onnx *c, bool all)
{
	struct rfl_onnx_node *n = c->graph.nodes;

	start(c);
	for (; n < c->graph.nodes + c->graph.nnodes && !c->builder->err.rc; n++)
		if (all && is_constant(n))
			rfl_onnx_fold(c, n);
		else if (all || (n->live && !rfl_onnx_out(n, 0)->constant))
			(void)rfl_onnx_convert(c, n);
	if (!c->builder->err.rc)
		return true;
	(void)rfl_fail(&c->err, RFL_EFORMAT, 0, "%s", c->builder->err.msg);
	return false;
}

/* Mark the nodes that compute what the output needs. */
static void mark_live(struct rfl_onnx *c)
{
	c->output->uses = -1; /* needed */
	for (size_t i = c->graph.nnodes; i-- > 0;) {
		struct rfl_onnx_node *n = &c->graph.nodes[i];

		for (size_t k = 0; k < n->noutputs; k++)
			n->live |= n->out[k] && n->out[k]->uses < 0;
		for (size_t k = 0; k < n->ninputs && n->live; k++)
			if (n->in[k])
				n->in[k]->uses = -1;
	}
}

/* --- the network --- */

/* "2 NonMaxSuppression, 1 TopK": the operations that are not supported; NULL: none. */
static const char *list_unknown(const struct rfl_onnx *c)
{
	char *text = NULL;
	const char *name;
	json_t *count;

	json_object_foreach(c->unknown, name, count) if (!text || strlen(text) < 1000) text =
		rfl_arena_printf(c->arena, "%s%s%d %s", text ? text : "", text ? ", " : "",
				 (int)json_integer_value(count), name);
	return text && c->nafter ? rfl_arena_printf(c->arena, "%s, and %zu that depend on them",
						    text, c->nafter)
				 : text;
}

/* The logits: rows of classes. An image of classes becomes a row for each pixel. */
static int logits(struct rfl_onnx *c)
{
	const struct rfl_shape s = rfl_net_shape(c->builder, c->output->node);
	const struct rfl_node pixels = { .op = RFL_OP_PERMUTE,
					 .ninputs = 1,
					 .input = &c->output->node,
					 .attr.permute.order = { 1, 2, 0 } };
	struct rfl_node rows = { .op = RFL_OP_RESHAPE, .ninputs = 1 };
	struct rfl_shape *to = &rows.attr.reshape.shape;
	int at = c->output->node;

	if (s.ndim <= 2)
		return at;
	if (s.ndim == 3 && c->input->dims.n == 4) {
		at = rfl_net_append(c->builder, &pixels, NULL);
		at = rfl_net_append(c->builder,
				    &(const struct rfl_node){ .op = RFL_OP_CONTIGUOUS,
							      .ninputs = 1,
							      .input = (const int[]){ at } },
				    NULL);
	}
	*to = (struct rfl_shape){ 2, { 1, rfl_net_features(c->builder, at) } };
	to->dim[0] = rfl_shape_numel(&s) / (to->dim[1] ? to->dim[1] : 1);
	rows.input = (const int[]){ at };
	return rfl_net_append(c->builder, &rows, NULL);
}

static bool finish(struct rfl_onnx *c, struct rfl_net **ret)
{
	struct rfl_net *net = NULL;
	struct rfl_net_builder *b = c->builder;
	const char *unknown = list_unknown(c);

	if (c->output->node < 0)
		return fail(c, RFL_EUNSUPPORTED,
			    "the shape of the output is unknown, because these operations are not "
			    "supported: %s",
			    unknown ? unknown : "none");
	const int output = logits(c);

	c->builder = NULL;
	if (rfl_net_finish(b, output, &net, &c->err) != RFL_OK)
		return false;
	net->named_by_file = true;
	net->uncounted = rfl_arena_strdup(net->arena, unknown);
	if (c->folded && !c->batch_norms)
		net->caution = rfl_arena_printf(net->arena,
						"%d batch norm%s folded into convolutions: "
						"training this is training another "
						"network; export with optimize=False",
						c->folded, c->folded == 1 ? " is" : "s are");
	if (rfl_net_check_counts(net, &c->err) != RFL_OK) {
		rfl_net_free(net);
		return false;
	}
	*ret = net;
	return true;
}

enum rfl_rc rfl_onnx_from_memory(struct rfl_span data, const char *path, struct rfl_net **ret,
				 struct rfl_err *err)
{
	struct rfl_onnx c = { .path = path, .arena = rfl_arena_new(), .err = RFL_ERR_INIT };
	const size_t len = strlen(path);
	enum rfl_rc rc;

	if (rfl_onnx_read(data, c.arena, &c.graph, &c.err) == RFL_OK) {
		index_values(&c);
		if (!c.err.rc && find_input(&c) && connect(&c) && walk(&c, true)) {
			rfl_onnx_recognise(&c);
			mark_live(&c);
			if (walk(&c, false))
				(void)finish(&c, ret);
		}
	}
	if (c.err.rc && strncmp(c.err.msg, path, len) != 0)
		rfl_err_prefix(&c.err, "%s", path);
	rc = c.err.rc ? rfl_err_pass(err, &c.err) : RFL_OK;
	rfl_net_builder_free(c.builder);
	json_decref(c.names);
	json_decref(c.unknown);
	rfl_arena_free(c.arena);
	return rc;
}

bool rfl_onnx_is_file(const char *path)
{
	unsigned char first = ' ';
	struct stat s;
	int fd;

	if (rfl_span_ends(rfl_span_of(path), ".onnx"))
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	/* a pipe would lose the byte */
	if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || read(fd, &first, 1) != 1)
		first = ' ';
	(void)close(fd);
	return first < ' ' && !strchr("\t\n\r", first); /* the key of a field, not text */
}

enum rfl_rc rfl_onnx_load(const char *path, struct rfl_net **ret, struct rfl_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat s;
	void *map = MAP_FAILED;
	enum rfl_rc rc;

	if (fd < 0 || fstat(fd, &s) != 0) {
		rc = rfl_fail_errno(err, "%s", path);
	} else if (!S_ISREG(s.st_mode)) {
		rc = rfl_fail(err, RFL_EIO, 0, "%s: not a regular file", path);
	} else if (s.st_size == 0) {
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s: the file is empty; export it again", path);
	} else {
		map = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		rc = map == MAP_FAILED
			     ? rfl_fail_errno(err, "%s", path)
			     : rfl_onnx_from_memory((struct rfl_span){ map, (size_t)s.st_size },
						    path, ret, err);
	}
	if (map != MAP_FAILED)
		(void)munmap(map, (size_t)s.st_size);
	if (fd >= 0)
		(void)close(fd);
	return rc;
}
