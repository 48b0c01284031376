/*
 * engine_tables.c - constants of networks: tables of angles, positions, indices and masks. A net
 * contains only the name and shape of a constant; this file computes the values according to the
 * name in the published model. Nodes with equal tables share one.
 */
#include "runner/torch/engine_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { PARTS = 2 };

/* Return the side of a square of n elements; 0 if n is not a square number. */
static int64_t side_of(int64_t n)
{
	const int64_t side = llround(sqrt((double)n));

	return side * side == n ? side : 0;
}

/* ------------------------------------------------------------------ values */

/* A table to fill. */
struct table {
	const struct rfl_node *node;
	struct rfl_shape shape;
	bool sine; /* fill with sines instead of cosines */
};

/* 0, 1, 2, ... */
static void fill_positions(const struct table *t, float *out)
{
	for (int64_t i = 0; i < t->shape.dim[0]; i++)
		out[i] = (float)i;
}

/* Cosine or sine of t theta^(-k / pairs) for token t and pair k, in double (Su et al. 2021). */
static void fill_angles(const struct table *t, float *out)
{
	const double theta = t->node->op == RFL_OP_ROPE ? t->node->attr.rope.theta : 10000;
	const int64_t tokens = t->shape.dim[0], pairs = t->shape.dim[1];

	for (int64_t i = 0; i < tokens; i++)
		for (int64_t k = 0; k < pairs; k++) {
			const double angle = (double)i * pow(theta, -(double)k / (double)pairs);

			*out++ = (float)(t->sine ? sin(angle) : cos(angle));
		}
}

/* 1 above the diagonal: a query does not attend to later keys. */
static void fill_causal(const struct table *t, float *out)
{
	for (int64_t i = 0; i < t->shape.dim[0]; i++)
		for (int64_t j = 0; j < t->shape.dim[1]; j++)
			out[i * t->shape.dim[1] + j] = j > i;
}

/* For each pair of pixels of a window, the index of their distance (rows, columns) in a table of
 * all distances (Swin, MaxViT). */
static void fill_distances(const struct table *t, float *out)
{
	const int64_t pixels = t->node->shape.dim[0], side = side_of(pixels);

	for (int64_t i = 0; i < pixels; i++)
		for (int64_t j = 0; j < pixels; j++) {
			const int64_t down = i / side - j / side + side - 1;
			const int64_t right = i % side - j % side + side - 1;

			out[i * pixels + j] = (float)(down * (2 * side - 1) + right);
		}
}

/* sign(x) log2(8 |x| + 1) / 3 for x = distance / largest (Swin V2). */
static float log_distance(int64_t distance, int64_t largest)
{
	const float x = 8.0f * ((float)distance / (float)largest);

	return copysignf(log2f(fabsf(x) + 1.0f) / 3.0f, x);
}

static void fill_log_distances(const struct table *t, float *out)
{
	const int64_t n = side_of(t->shape.dim[0]), largest = (n - 1) / 2;

	for (int64_t i = 0; i < n * n; i++) {
		out[2 * i] = log_distance(i / n - largest, largest);
		out[2 * i + 1] = log_distance(i % n - largest, largest);
	}
}

/* Shifted windows wrap around, so they contain pixels of up to three separate stripes. */
static int stripe_of(int64_t at, int64_t size, int64_t window)
{
	if (at < size - window)
		return 0;
	return at < size - window / 2 ? 1 : 2;
}

/* -100 between pixels of different stripes, else 0; {windows, 1, pixels, pixels} (Swin). */
static void fill_shift_mask(const struct table *t, float *out)
{
	const int64_t rows = side_of(t->shape.dim[0]), pixels = t->shape.dim[2];
	const int64_t side = side_of(pixels), size = rows * side;

	for (int64_t w = 0; w < rows * rows; w++)
		for (int64_t i = 0; i < pixels; i++)
			for (int64_t j = 0; j < pixels; j++) {
				const int64_t top = w / rows * side, left = w % rows * side;
				const bool together =
					stripe_of(top + i / side, size, side) ==
						stripe_of(top + j / side, size, side) &&
					stripe_of(left + i % side, size, side) ==
						stripe_of(left + j % side, size, side);

				*out++ = together ? 0.0f : -100.0f;
			}
}

/* ------------------------------------------------------------------ known tables */

/* Return whether a table has one entry for each distance in a square window with an odd side of at
 * least 3. */
static bool is_coordinates(const struct rfl_shape *s)
{
	return s->dim[1] == 2 && side_of(s->dim[0]) > 1 && side_of(s->dim[0]) % 2 == 1;
}

static bool is_window_mask(const struct rfl_shape *s)
{
	return side_of(s->dim[0]) > 0 && s->dim[1] == 1 && s->dim[2] == s->dim[3] &&
	       side_of(s->dim[2]) > 0;
}

static const struct kind {
	enum rfl_op op;
	const char *constant; /* name of the constant; NULL for the other operations */
	enum rfl_torch_type type;
	int ndim; /* dimensions of a constant */
	void (*fill)(const struct table *t, float *out);
	bool sine;
	bool (*fits)(const struct rfl_shape *shape); /* additional check of a constant's shape */
} kinds[] = {
	{ RFL_OP_ROPE, NULL, RFL_TORCH_F32, 2, fill_angles, false, NULL },
	{ RFL_OP_CAUSAL_MASK, NULL, RFL_TORCH_BOOL, 2, fill_causal, false, NULL },
	{ RFL_OP_GATHER, NULL, RFL_TORCH_I64, 1, fill_distances, false, NULL },
	{ RFL_OP_CONSTANT, "position_ids", RFL_TORCH_I64, 1, fill_positions, false, NULL },
	{ RFL_OP_CONSTANT, "cos", RFL_TORCH_F32, 2, fill_angles, false, NULL },
	{ RFL_OP_CONSTANT, "sin", RFL_TORCH_F32, 2, fill_angles, true, NULL },
	{ RFL_OP_CONSTANT, "relative_coords_table", RFL_TORCH_F32, 2, fill_log_distances, false,
	  is_coordinates },
	{ RFL_OP_CONSTANT, "attn_mask", RFL_TORCH_F32, 4, fill_shift_mask, false, is_window_mask },
};

/* NULL if the node has no table, or an unknown one. */
static const struct kind *kind_of(const struct rfl_node *node)
{
	const char *dot = strrchr(node->name, '.');
	const char *name = dot ? dot + 1 : node->name;

	for (size_t i = 0; i < RFL_ARRAY_LEN(kinds); i++)
		if (kinds[i].op == node->op &&
		    (!kinds[i].constant || strcmp(kinds[i].constant, name) == 0))
			return &kinds[i];
	return NULL;
}

const char *rfl_torch__unknown_table(const struct rfl_node *node)
{
	const struct kind *kind = kind_of(node);
	const struct rfl_shape *s =
		node->op == RFL_OP_CONSTANT ? &node->attr.constant.shape : &node->shape;

	if (node->op == RFL_OP_CONSTANT &&
	    (!kind || s->ndim != kind->ndim || (kind->fits && !kind->fits(s))))
		return "the torch engine has no values for a constant of this name and shape; see "
		       "docs/engines.md for the known constants";
	/* the result is {pixels, pixels, features}; the input's shape sets the table size */
	if (node->op == RFL_OP_GATHER &&
	    (s->ndim != 3 || s->dim[0] != s->dim[1] || side_of(s->dim[0]) == 0))
		return "the torch engine gathers only by the distances in a square window, to "
		       "{pixels, pixels, features}";
	return NULL;
}

static struct rfl_shape shape_of(const struct rfl_node *node)
{
	const int64_t *dim = node->shape.dim;
	const int n = node->shape.ndim;

	switch (node->op) {
	case RFL_OP_ROPE:
		return (struct rfl_shape){ 2, { dim[n - 2], dim[n - 1] / 2 } };
	case RFL_OP_CAUSAL_MASK:
		return (struct rfl_shape){ 2, { dim[n - 2], dim[n - 1] } };
	case RFL_OP_GATHER:
		return (struct rfl_shape){ 1, { dim[0] * dim[1] } };
	default:
		return node->attr.constant.shape;
	}
}

/* ------------------------------------------------------------------ tensors */

struct rfl_torch_tensor *const *rfl_torch__tables_of(const struct rfl_engine *e,
						     const struct rfl_node *node)
{
	return &e->tables[PARTS * (node - e->net->nodes)];
}

static enum rfl_rc make_table(struct rfl_engine *e, const struct rfl_node *node,
			      const struct kind *kind, struct rfl_err *err)
{
	struct rfl_torch_tensor **to = &e->tables[PARTS * (node - e->net->nodes)];
	struct table t = { .node = node, .shape = shape_of(node), .sine = kind->sine };
	const struct rfl_node *twin = NULL; /* an earlier node with the same table */
	const int parts = node->op == RFL_OP_ROPE ? PARTS : 1;
	enum rfl_rc rc = RFL_OK;
	float *values = NULL;

	for (const struct rfl_node *n = e->net->nodes; n < node && !twin; n++) {
		const struct rfl_shape s = shape_of(n);

		if (n->op == node->op && kind_of(n) == kind && s.ndim == t.shape.ndim &&
		    memcmp(s.dim, t.shape.dim, (size_t)s.ndim * sizeof(s.dim[0])) == 0 &&
		    (n->op != RFL_OP_ROPE || n->attr.rope.theta == node->attr.rope.theta))
			twin = n;
	}
	if (!twin) {
		values = rfl_alloc_array((size_t)rfl_shape_numel(&t.shape), sizeof(*values));
		if (!values)
			return rfl_fail(err, RFL_ENOMEM, 0, "torch: %s: out of memory", node->name);
	}
	for (int i = 0; i < parts && rc == RFL_OK; i++) {
		if (twin) {
			rc = rfl_torch_tensor_as(rfl_torch__tables_of(e, twin)[i], RFL_TORCH_SAME,
						 &to[i], node->name, err);
			continue;
		}
		kind->fill(&t, values);
		rc = rfl_torch_table(values, kind->type, t.shape.ndim, t.shape.dim, e->block,
				     &to[i], node->name, err);
		e->tables_bytes += rfl_torch_tensor_bytes(to[i]);
		t.sine = true;
	}
	free(values);
	return rc;
}

enum rfl_rc rfl_torch__make_tables(struct rfl_engine *e, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	e->tables =
		rfl_alloc_array(PARTS * (size_t)e->net->nnodes, sizeof(struct rfl_torch_tensor *));
	if (!e->tables)
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	for (int i = 0; i < e->net->nnodes && rc == RFL_OK; i++) {
		const struct kind *kind = kind_of(&e->net->nodes[i]);

		if (kind)
			rc = make_table(e, &e->net->nodes[i], kind, err);
	}
	if (rc != RFL_OK)
		rfl_torch__tables_fini(e); /* the next forward pass creates them or fails again */
	return rc;
}

void rfl_torch__tables_fini(struct rfl_engine *e)
{
	for (int i = 0; e->tables && i < PARTS * e->net->nnodes; i++)
		rfl_torch_tensor_free(e->tables[i]);
	free(e->tables);
	e->tables = NULL;
	e->tables_bytes = 0;
}
