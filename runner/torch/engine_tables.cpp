/*
 * engine_tables.cpp - constants of networks: tables of angles, positions, indices and masks. A net
 * contains only the name and shape of a constant; this file computes the values according to the
 * name in the published model. Nodes with equal tables share one.
 */
#include "runner/torch/engine.hpp"

#include <cstring>

using namespace rfl_torch;

namespace
{

/* Return the side of a square of n elements; 0 if n is not a square number. */
int64_t side_of(int64_t n)
{
	const int64_t side = std::llround(std::sqrt(static_cast<double>(n)));

	return side * side == n ? side : 0;
}

/* ------------------------------------------------------------------ values */

/* A table to fill. */
struct table {
	const rfl_node *node;
	rfl_shape shape;
	bool sine; /* fill with sines instead of cosines */
};

/* 0, 1, 2, ... */
void fill_positions(const table &t, float *out)
{
	for (int64_t i = 0; i < t.shape.dim[0]; i++)
		out[i] = static_cast<float>(i);
}

/* Cosine or sine of t theta^(-k / pairs) for token t and pair k, in double (Su et al. 2021). Of
 * halves: for both, the sine of the first negative. */
void fill_angles(const table &t, float *out)
{
	const double theta = t.node->op == RFL_OP_ROPE ? t.node->attr.rope.theta : 10000;
	const bool halves = t.node->op == RFL_OP_ROPE && t.node->attr.rope.halves;
	const int64_t tokens = t.shape.dim[0], columns = t.shape.dim[1];
	const int64_t pairs = halves ? columns / 2 : columns;

	for (int64_t i = 0; i < tokens; i++)
		for (int64_t k = 0; k < columns; k++) {
			const double angle = static_cast<double>(i) *
					     std::pow(theta, -static_cast<double>(k % pairs) /
								     static_cast<double>(pairs));
			const double sine = std::sin(angle);

			*out++ = static_cast<float>(!t.sine               ? std::cos(angle)
						    : halves && k < pairs ? -sine
									  : sine);
		}
}

/* 1 above the diagonal: a query does not attend to later keys. */
void fill_causal(const table &t, float *out)
{
	for (int64_t i = 0; i < t.shape.dim[0]; i++)
		for (int64_t j = 0; j < t.shape.dim[1]; j++)
			out[i * t.shape.dim[1] + j] = j > i;
}

/* For each pair of pixels of a window, the index of their distance (rows, columns) in a table of
 * all distances (Swin, MaxViT). */
void fill_distances(const table &t, float *out)
{
	const int64_t pixels = t.node->shape.dim[0], side = side_of(pixels);

	for (int64_t i = 0; i < pixels; i++)
		for (int64_t j = 0; j < pixels; j++) {
			const int64_t down = i / side - j / side + side - 1;
			const int64_t right = i % side - j % side + side - 1;

			out[i * pixels + j] = static_cast<float>(down * (2 * side - 1) + right);
		}
}

/* sign(x) log2(8 |x| + 1) / 3 for x = distance / largest (Swin V2). */
float log_distance(int64_t distance, int64_t largest)
{
	const float x = 8.0F * (static_cast<float>(distance) / static_cast<float>(largest));

	return std::copysign(std::log2(std::fabs(x) + 1.0F) / 3.0F, x);
}

void fill_log_distances(const table &t, float *out)
{
	const int64_t n = side_of(t.shape.dim[0]), largest = (n - 1) / 2;

	for (int64_t i = 0; i < n * n; i++) {
		out[2 * i] = log_distance(i / n - largest, largest);
		out[2 * i + 1] = log_distance(i % n - largest, largest);
	}
}

/* Shifted windows wrap around, so they contain pixels of up to three separate stripes. */
int stripe_of(int64_t at, int64_t size, int64_t window)
{
	if (at < size - window)
		return 0;
	return at < size - window / 2 ? 1 : 2;
}

/* -100 between pixels of different stripes, else 0; {windows, 1, pixels, pixels} (Swin). */
void fill_shift_mask(const table &t, float *out)
{
	const int64_t rows = side_of(t.shape.dim[0]), pixels = t.shape.dim[2];
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

				*out++ = together ? 0.0F : -100.0F;
			}
}

/* ------------------------------------------------------------------ known tables */

/* Return whether a table has one entry for each distance in a square window with an odd side of at
 * least 3. */
bool is_coordinates(const rfl_shape &s)
{
	return s.dim[1] == 2 && side_of(s.dim[0]) > 1 && side_of(s.dim[0]) % 2 == 1;
}

bool is_window_mask(const rfl_shape &s)
{
	return side_of(s.dim[0]) > 0 && s.dim[1] == 1 && s.dim[2] == s.dim[3] &&
	       side_of(s.dim[2]) > 0;
}

struct kind {
	enum rfl_op op;
	const char *constant; // name of the constant; nullptr for the other operations
	at::ScalarType type;
	int ndim; // dimensions of a constant
	void (*fill)(const table &t, float *out);
	bool sine;
	bool (*fits)(const rfl_shape &shape); // additional check of a constant's shape
};

const kind kinds[] = {
	{ RFL_OP_ROPE, nullptr, at::kFloat, 2, fill_angles, false, nullptr },
	{ RFL_OP_CAUSAL_MASK, nullptr, at::kBool, 2, fill_causal, false, nullptr },
	{ RFL_OP_GATHER, nullptr, at::kLong, 1, fill_distances, false, nullptr },
	{ RFL_OP_CONSTANT, "position_ids", at::kLong, 1, fill_positions, false, nullptr },
	{ RFL_OP_CONSTANT, "cos", at::kFloat, 2, fill_angles, false, nullptr },
	{ RFL_OP_CONSTANT, "sin", at::kFloat, 2, fill_angles, true, nullptr },
	{ RFL_OP_CONSTANT, "relative_coords_table", at::kFloat, 2, fill_log_distances, false,
	  is_coordinates },
	{ RFL_OP_CONSTANT, "attn_mask", at::kFloat, 4, fill_shift_mask, false, is_window_mask },
};

// nullptr if the node has no table, or an unknown one.
const kind *kind_of(const rfl_node &node)
{
	const char *dot = std::strrchr(node.name, '.');
	const char *name = dot ? dot + 1 : node.name;

	for (const kind &k : kinds)
		if (k.op == node.op && (!k.constant || std::strcmp(k.constant, name) == 0))
			return &k;
	return nullptr;
}

rfl_shape shape_of(const rfl_node &node)
{
	const int64_t *dim = node.shape.dim;
	const int n = node.shape.ndim;

	switch (node.op) {
	case RFL_OP_ROPE:
		return { 2, { dim[n - 2], dim[n - 1] / (node.attr.rope.halves ? 1 : 2) } };
	case RFL_OP_CAUSAL_MASK:
		return { 2, { dim[n - 2], dim[n - 1] } };
	case RFL_OP_GATHER:
		return { 1, { dim[0] * dim[1] } };
	default:
		return node.attr.constant.shape;
	}
}

at::IntArrayRef sizes_of(const rfl_shape &s)
{
	return { s.dim, static_cast<size_t>(s.ndim) };
}

bool same_table(const rfl_node &a, const rfl_node &b)
{
	const rfl_shape x = shape_of(a), y = shape_of(b);

	return a.op == b.op && kind_of(a) == kind_of(b) && sizes_of(x) == sizes_of(y) &&
	       (a.op != RFL_OP_ROPE || (a.attr.rope.theta == b.attr.rope.theta &&
					a.attr.rope.halves == b.attr.rope.halves));
}

at::Tensor make_table(rfl_engine &e, const kind &k, const table &t)
{
	std::vector<float> values(static_cast<size_t>(rfl_shape_numel(&t.shape)));

	k.fill(t, values.data());
	const at::Tensor made =
		at::from_blob(values.data(), sizes_of(t.shape), at::kFloat)
			.to(e.device->where, k.type == at::kFloat ? e.stored() : k.type, false,
			    true);

	e.tables_bytes += static_cast<double>(made.nbytes());
	return made;
}

} // namespace

const char *rfl_torch::unknown_table(const rfl_node &node)
{
	const kind *k = kind_of(node);
	const rfl_shape &s = node.op == RFL_OP_CONSTANT ? node.attr.constant.shape : node.shape;

	if (node.op == RFL_OP_CONSTANT && (!k || s.ndim != k->ndim || (k->fits && !k->fits(s))))
		return "the torch engine has no values for a constant of this name and shape; see "
		       "docs/internals/engines.md for the known constants";
	// the result is {pixels, pixels, features}; the input's shape sets the table size
	if (node.op == RFL_OP_GATHER &&
	    (s.ndim != 3 || s.dim[0] != s.dim[1] || side_of(s.dim[0]) == 0))
		return "the torch engine gathers only by the distances in a square window, to "
		       "{pixels, pixels, features}";
	return nullptr;
}

void rfl_torch::make_tables(rfl_engine &e)
{
	std::vector<tables> all(static_cast<size_t>(e.net->nnodes));

	e.tables_bytes = 0;
	for (size_t i = 0; i < all.size(); i++) {
		const rfl_node &node = e.net->nodes[i];
		const kind *k = kind_of(node);
		size_t twin = 0; // an earlier node with the same table, or this one

		if (!k)
			continue;
		while (!same_table(e.net->nodes[twin], node))
			twin++;
		all[i] = twin < i ? all[twin] : about(node.name, [&] {
			rfl_shape shape = shape_of(node);

			if (e.caches()) // a row for each token of a sequence
				shape.dim[0] = e.config.cache_tokens;
			tables made = { make_table(e, *k, { &node, shape, k->sine }) };

			if (node.op == RFL_OP_ROPE)
				made[1] = make_table(e, *k, { &node, shape, true });
			return made;
		});
	}
	e.tables = std::move(all); // unless it failed: the next forward pass tries again
}
