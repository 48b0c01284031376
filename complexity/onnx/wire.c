/*
 * wire.c - reads the protobuf wire format. A message is a list of fields, each a number with a wire
 * type, then a varint, 4 or 8 bytes, or a length with as many bytes. Unknown fields are skipped.
 * Lengths are checked against the enclosing message, and subgraphs against a maximum depth.
 */
#include "complexity/onnx/wire.h"

#include <string.h>

#include "base/alloc.h"

enum {
	MAX_DEPTH = 64,      /* of subgraphs in attributes */
	MAX_ITEMS = 1 << 22, /* nodes, tensors, attributes and integers in all */
	MIN_OPSET = 11,
	MAX_OPSET = 23,
};

enum wire { VARINT = 0, EIGHT = 1, BYTES = 2, FOUR = 5 };

struct field {
	uint32_t number;
	enum wire wire;
	uint64_t value;
	struct rfl_span bytes;
};

struct reader {
	struct rfl_arena *arena;
	struct rfl_err *err;
	struct rfl_onnx_graph *graph;
	size_t nitems;
};

static bool fail(struct reader *r, const char *why)
{
	(void)rfl_fail(r->err, RFL_EFORMAT, 0, "%s", why);
	return false;
}

static bool damaged(struct reader *r)
{
	return fail(r, "the file is cut short or damaged; export it again");
}

/* Append to a list. The total is limited, because an item of 2 bytes in the file takes 100 in
 * memory. */
#define APPEND(r, items, n) (count_item(r), rfl_arena_append((r)->arena, (items), (n)))

static void count_item(struct reader *r)
{
	if (++r->nitems > MAX_ITEMS)
		(void)fail(r, "the graph has more than 4 million items, which is not supported");
}

static bool read_varint(struct rfl_span *in, uint64_t *ret)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 70 && in->len > 0; shift += 7) {
		const uint8_t byte = (uint8_t)*in->at;

		*in = rfl_span_from(*in, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take(struct rfl_span *in, uint64_t n, struct rfl_span *ret)
{
	if (n > in->len)
		return false;
	*ret = (struct rfl_span){ in->at, (size_t)n };
	*in = rfl_span_from(*in, (size_t)n);
	return true;
}

/* Take the next field of a message. False at its end, or after a failure. */
static bool next(struct reader *r, struct rfl_span *in, struct field *f)
{
	uint64_t key, n = 0;
	bool ok;

	if (in->len == 0 || (r->err && r->err->rc))
		return false;
	if (!read_varint(in, &key) || key >> 3 == 0 || key >> 32)
		return damaged(r);
	f->number = (uint32_t)(key >> 3);
	f->wire = (enum wire)(key & 7);
	f->value = 0;
	f->bytes = (struct rfl_span){ "", 0 };
	switch (f->wire) {
	case VARINT:
		ok = read_varint(in, &f->value);
		break;
	case BYTES:
		ok = read_varint(in, &n) && take(in, n, &f->bytes);
		break;
	case EIGHT:
	case FOUR:
		ok = take(in, f->wire == EIGHT ? 8 : 4, &f->bytes);
		break;
	default:
		ok = false;
	}
	return ok || damaged(r);
}

static bool is_bytes(const struct field *f, uint32_t number)
{
	return f->number == number && f->wire == BYTES;
}

static bool is_varint(const struct field *f, uint32_t number)
{
	return f->number == number && f->wire == VARINT;
}

/* --- tensors --- */

static bool add_dim(struct reader *r, struct rfl_onnx_dims *dims, uint64_t size)
{
	if (dims->n == RFL_ONNX_MAX_DIMS)
		return fail(r, "a tensor has more than 8 dimensions, which is not supported");
	if (size > INT64_MAX)
		return fail(r, "a dimension of a tensor is negative; export the file again");
	dims->dim[dims->n++] = (int64_t)size;
	return true;
}

/* Only a file in the same directory, or in a directory inside it. */
static bool is_inside(struct rfl_span path)
{
	struct rfl_span rest = path, part;

	if (path.len == 0 || path.at[0] == '/' || memchr(path.at, '\\', path.len) ||
	    memchr(path.at, '\0', path.len))
		return false;
	while (rfl_span_next_field(&rest, '/', &part))
		if (rfl_span_is(part, ".."))
			return false;
	return true;
}

static void read_external(struct reader *r, struct rfl_span in, struct rfl_onnx_tensor *t)
{
	struct rfl_span key = { "", 0 }, value = { "", 0 };
	struct field f;
	double offset;

	while (next(r, &in, &f))
		if (f.wire == BYTES)
			*(f.number == 1 ? &key : &value) = f.bytes;
	if (rfl_span_is(key, "location")) {
		t->location = value;
		if (!is_inside(value))
			(void)fail(r,
				   "the elements of a tensor are outside the directory of the "
				   "file, which is not allowed; put both files into one directory");
	} else if (rfl_span_is(key, "offset")) {
		if (!rfl_span_number(value, &offset) || !(offset >= 0 && offset < 9e15))
			(void)damaged(r);
		else
			t->offset = (int64_t)offset;
	}
}

static void read_tensor(struct reader *r, struct rfl_span in, struct rfl_onnx_tensor *t)
{
	struct field f;
	uint64_t size;

	t->dims.known = true;
	while (next(r, &in, &f)) {
		if (is_varint(&f, 1))
			(void)add_dim(r, &t->dims, f.value);
		while (is_bytes(&f, 1) && f.bytes.len > 0)
			if (!read_varint(&f.bytes, &size)) {
				(void)damaged(r);
				return;
			} else if (!add_dim(r, &t->dims, size)) {
				return;
			}
		if (is_varint(&f, 2))
			t->type = (int)(f.value & 127);
		else if (is_bytes(&f, 4))
			t->floats = f.bytes;
		else if (is_bytes(&f, 5) || is_bytes(&f, 7))
			t->integers = f.bytes;
		else if (is_bytes(&f, 8))
			t->name = f.bytes;
		else if (is_bytes(&f, 9))
			t->data = f.bytes;
		else if (is_bytes(&f, 13))
			read_external(r, f.bytes, t);
	}
}

static void read_dimension(struct reader *r, struct rfl_span in, struct rfl_onnx_dims *dims)
{
	const int at = dims->n;
	struct field f;

	if (!add_dim(r, dims, 0))
		return;
	dims->dim[at] = RFL_ONNX_DYNAMIC;
	while (next(r, &in, &f))
		if (is_varint(&f, 1))
			dims->dim[at] = f.value <= INT64_MAX ? (int64_t)f.value : RFL_ONNX_DYNAMIC;
}

static void read_shape(struct reader *r, struct rfl_span in, struct rfl_onnx_dims *dims)
{
	struct field f;

	dims->known = true;
	while (next(r, &in, &f))
		if (is_bytes(&f, 1))
			read_dimension(r, f.bytes, dims);
}

/* ValueInfoProto: a name and a TypeProto, whose field 1 is the type of a tensor. */
static void read_value(struct reader *r, struct rfl_span in, struct rfl_onnx_tensor *t)
{
	struct field f, g, h;

	while (next(r, &in, &f)) {
		if (is_bytes(&f, 1))
			t->name = f.bytes;
		if (!is_bytes(&f, 2))
			continue;
		while (next(r, &f.bytes, &g))
			while (is_bytes(&g, 1) && next(r, &g.bytes, &h)) {
				if (is_varint(&h, 1))
					t->type = (int)(h.value & 127);
				else if (is_bytes(&h, 2))
					read_shape(r, h.bytes, &t->dims);
			}
	}
}

bool rfl_onnx_element(const struct rfl_onnx_tensor *t, size_t i, double *ret)
{
	const size_t size = t->type == RFL_ONNX_INT64 ? 8 : t->type == RFL_ONNX_BOOL ? 1 : 4;
	const struct rfl_span in = t->data.len ? t->data : t->floats;
	struct rfl_span list = t->integers;
	int64_t integer = 0;
	uint64_t value = 0;
	int32_t word = 0;
	float real = 0;

	if (t->type != RFL_ONNX_FLOAT && list.len > 0) {
		for (size_t k = 0; k <= i; k++)
			if (!read_varint(&list, &value))
				return false;
		*ret = (double)(int64_t)value;
		return true;
	}
	if (i >= in.len / size)
		return false;
	if (t->type == RFL_ONNX_FLOAT)
		memcpy(&real, in.at + i * size, size);
	else if (t->type == RFL_ONNX_INT64)
		memcpy(&integer, in.at + i * size, size);
	else if (t->type == RFL_ONNX_INT32)
		memcpy(&word, in.at + i * size, size);
	else if (t->type == RFL_ONNX_BOOL)
		word = in.at[i] != 0;
	else
		return false;
	*ret = (double)real + (double)integer + (double)word;
	return true;
}

/* --- nodes --- */

static void check_depth(struct reader *r, struct rfl_span graph, int depth);

static void add_int(struct reader *r, struct rfl_onnx_attribute *a, uint64_t value)
{
	int64_t *to = APPEND(r, &a->ints, &a->nints);

	*to = (int64_t)value;
}

static void read_attribute(struct reader *r, struct rfl_span in, struct rfl_onnx_attribute *a)
{
	struct rfl_onnx_tensor *tensor;
	struct field f;
	uint64_t value;
	float real;

	while (next(r, &in, &f)) {
		if (is_bytes(&f, 1))
			a->name = f.bytes;
		if (f.number == 2 && f.wire == FOUR) {
			memcpy(&real, f.bytes.at, sizeof(real));
			a->real = (double)real;
		}
		if (is_varint(&f, 3))
			a->integer = (int64_t)f.value;
		if (is_bytes(&f, 4))
			a->text = f.bytes;
		if (is_bytes(&f, 5)) {
			tensor = rfl_arena_array(r->arena, 1, sizeof(*tensor));
			read_tensor(r, f.bytes, tensor);
			a->tensor = tensor;
		}
		if (is_bytes(&f, 6) || is_bytes(&f, 11))
			check_depth(r, f.bytes, 1);
		if (is_varint(&f, 8))
			add_int(r, a, f.value);
		while (is_bytes(&f, 8) && f.bytes.len > 0 && !r->err->rc)
			if (read_varint(&f.bytes, &value))
				add_int(r, a, value);
			else
				(void)damaged(r);
	}
}

static void read_node(struct reader *r, struct rfl_span in, struct rfl_onnx_node *n)
{
	struct rfl_span *name;
	struct field f;

	while (next(r, &in, &f)) {
		if (is_bytes(&f, 1) || is_bytes(&f, 2)) {
			name = f.number == 1 ? APPEND(r, &n->inputs, &n->ninputs)
					     : APPEND(r, &n->outputs, &n->noutputs);
			*name = f.bytes;
		} else if (is_bytes(&f, 3)) {
			n->name = f.bytes;
		} else if (is_bytes(&f, 4)) {
			n->op = f.bytes;
		} else if (is_bytes(&f, 5)) {
			read_attribute(r, f.bytes, APPEND(r, &n->attributes, &n->nattributes));
		} else if (is_bytes(&f, 7)) {
			n->domain = f.bytes;
		}
	}
}

/* Subgraphs are the bodies of If, Loop and Scan, which are not supported; only their depth is of
 * interest, because a reader that followed it without a limit would exhaust the stack. */
static void check_depth(struct reader *r, struct rfl_span graph, int depth)
{
	struct field node, attribute, sub;

	if (depth > MAX_DEPTH) {
		(void)fail(r, "graphs are nested more than 64 levels deep; this is not a model");
		return;
	}
	while (next(r, &graph, &node))
		while (is_bytes(&node, 1) && next(r, &node.bytes, &attribute))
			while (is_bytes(&attribute, 5) && next(r, &attribute.bytes, &sub))
				if (is_bytes(&sub, 6) || is_bytes(&sub, 11))
					check_depth(r, sub.bytes, depth + 1);
}

const struct rfl_onnx_attribute *rfl_onnx_attribute(const struct rfl_onnx_node *node,
						    const char *name)
{
	for (size_t i = 0; i < node->nattributes; i++)
		if (rfl_span_is(node->attributes[i].name, name))
			return &node->attributes[i];
	return NULL;
}

/* --- the file --- */

static void read_graph(struct reader *r, struct rfl_span in)
{
	struct rfl_onnx_graph *g = r->graph;
	struct field f;

	while (next(r, &in, &f)) {
		if (is_bytes(&f, 1))
			read_node(r, f.bytes, APPEND(r, &g->nodes, &g->nnodes));
		else if (is_bytes(&f, 5))
			read_tensor(r, f.bytes, APPEND(r, &g->tensors, &g->ntensors));
		else if (is_bytes(&f, 11))
			read_value(r, f.bytes, APPEND(r, &g->inputs, &g->ninputs));
		else if (is_bytes(&f, 12))
			read_value(r, f.bytes, APPEND(r, &g->outputs, &g->noutputs));
		else if (is_bytes(&f, 13))
			read_value(r, f.bytes, APPEND(r, &g->values, &g->nvalues));
	}
}

/* OperatorSetIdProto: the version of the standard operators has no domain. */
static void read_opset(struct reader *r, struct rfl_span in)
{
	struct rfl_span domain = { "", 0 };
	struct field f;
	int64_t version = 0;

	while (next(r, &in, &f)) {
		if (is_bytes(&f, 1))
			domain = f.bytes;
		else if (is_varint(&f, 2))
			version = (int64_t)f.value;
	}
	if (domain.len == 0 || rfl_span_is(domain, "ai.onnx"))
		r->graph->opset = version;
}

enum rfl_rc rfl_onnx_read(struct rfl_span data, struct rfl_arena *arena, struct rfl_onnx_graph *ret,
			  struct rfl_err *err)
{
	struct rfl_err own = RFL_ERR_INIT;
	struct reader r = { arena, &own, ret, 0 };
	bool found = false;
	struct field f;

	*ret = (struct rfl_onnx_graph){ 0 };
	while (next(&r, &data, &f)) {
		if (is_bytes(&f, 7)) {
			read_graph(&r, f.bytes);
			found = true;
		} else if (is_bytes(&f, 8)) {
			read_opset(&r, f.bytes);
		}
	}
	if (!own.rc && (!found || ret->nnodes == 0))
		(void)fail(&r, "this is not an ONNX model; use torch.onnx.export");
	if (!own.rc && (ret->opset < MIN_OPSET || ret->opset > MAX_OPSET))
		(void)rfl_fail(&own, RFL_EFORMAT, 0,
			       "operators of opset %lld are not supported; export it with "
			       "opset_version from %d to %d",
			       (long long)ret->opset, MIN_OPSET, MAX_OPSET);
	return own.rc ? rfl_err_pass(err, &own) : RFL_OK;
}
