/*
 * regnet.c - RegNet (Radosavovic et al., "Designing Network Design Spaces", CVPR 2020) as in
 * torchvision: four numbers determine the widths of all blocks; each block of a Y model has squeeze
 * and excitation.
 */
#include <math.h>

#include "complexity/zoo/blocks.h"

enum { STEM = 32, QUANTUM = 8, SQUEEZE = 4 };

struct regnet {
	int depth, w_0;
	double w_a, w_m;
	int group_width;
	bool squeeze;
};

/* The width of block j: w_0 w_m^s, rounded to a multiple of 8, with the integer s that brings it
 * nearest to w_0 + w_a j on a logarithmic scale; then made a multiple of the group width. */
static int64_t block_width(const struct regnet *r, int j)
{
	double line = r->w_0 + r->w_a * j;
	double s = rint(log(line / r->w_0) / log(r->w_m));
	int64_t width = (int64_t)rint(r->w_0 * pow(r->w_m, s) / QUANTUM) * QUANTUM;

	return rfl_zoo_divisible((double)width, width < r->group_width ? width : r->group_width);
}

/* 1x1, grouped 3x3, squeeze and excitation, 1x1. The projection comes before them, both in the
 * state_dict and in execution. */
static int residual(struct rfl_net_builder *b, int x, const struct regnet *r, int64_t width,
		    int64_t stride)
{
	const int64_t groups = width / (width < r->group_width ? width : r->group_width);
	const int64_t in = rfl_net_channels(b, x);
	int y = x;

	if (stride != 1 || in != width)
		x = rfl_chain(b, x, CONV_NORM("proj", width, 1, stride, 1, 0));
	rfl_net_enter(b, "f");
	y = rfl_chain(b, y, CONV_NORM("a", width, 1, 1, 1, RFL_OP_RELU),
		      CONV_NORM("b", width, 3, stride, groups, RFL_OP_RELU));
	if (r->squeeze)
		y = rfl_zoo_squeeze_excitation(b, y, "se", in / SQUEEZE,
					       (struct rfl_node)STEP(RFL_OP_RELU, "activation"),
					       RFL_OP_SIGMOID);
	y = rfl_chain(b, y, CONV_NORM("c", width, 1, 1, 1, 0));
	rfl_net_leave(b);
	return rfl_chain(b, rfl_add(b, x, y, RFL_OUT_OF_PLACE), RELU("activation"));
}

/* Blocks of the same width form a stage; each stage begins with a stride of 2. */
static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct regnet *r = sizes->config;
	int stage = 0, index = 0;
	int64_t before = 0;

	x = rfl_chain(b, x, CONV_NORM("stem", STEM, 3, 2, 1, RFL_OP_RELU));
	for (int j = 0; j < r->depth; j++) {
		int64_t width = block_width(r, j);
		bool begins = width != before;

		stage += begins;
		index = begins ? 0 : index + 1;
		rfl_net_enter_block(b, "trunk_output.block%d.block%d-%d", stage, stage, index);
		x = residual(b, x, r, width, begins ? 2 : 1);
		rfl_net_leave(b);
		before = width;
	}
	return rfl_chain(b, x, AVERAGE("avgpool", 1), FLATTEN(NULL), FC("fc", sizes->classes));
}

#define REGNET(letter_, name_, title_, squeeze_, summary_, ...)                  \
	RFL_ZOO_IMAGENET("regnet", "regnet_" letter_ "_" name_, "RegNet" title_, \
			 summary_ " (Radosavovic et al. 2020)", 224,             \
			 &(const struct regnet){ __VA_ARGS__, .squeeze = squeeze_ })
#define X(name_, title_, ...) \
	REGNET("x", name_, "X-" title_, false, "grouped residual blocks", __VA_ARGS__)
#define Y(name_, title_, ...)                 \
	REGNET("y", name_, "Y-" title_, true, \
	       "grouped residual blocks with squeeze and excitation", __VA_ARGS__)

/* Depth, w_0, w_a, w_m and group width, from the paper's appendix. */
static const struct rfl_zoo_entry entries[] = {
	X("400mf", "400MF", 22, 24, 24.48, 2.54, 16),
	X("800mf", "800MF", 16, 56, 35.73, 2.28, 16),
	X("1_6gf", "1.6GF", 18, 80, 34.01, 2.25, 24),
	X("3_2gf", "3.2GF", 25, 88, 26.31, 2.25, 48),
	X("8gf", "8GF", 23, 80, 49.56, 2.88, 120),
	X("16gf", "16GF", 22, 216, 55.59, 2.1, 128),
	X("32gf", "32GF", 23, 320, 69.86, 2.0, 168),
	Y("400mf", "400MF", 16, 48, 27.89, 2.09, 8),
	Y("800mf", "800MF", 14, 56, 38.84, 2.4, 16),
	Y("1_6gf", "1.6GF", 27, 48, 20.71, 2.65, 24),
	Y("3_2gf", "3.2GF", 21, 80, 42.63, 2.66, 24),
	Y("8gf", "8GF", 17, 192, 76.82, 2.19, 56),
	Y("16gf", "16GF", 18, 200, 106.23, 2.48, 112),
	Y("32gf", "32GF", 20, 232, 115.89, 2.53, 232),
	Y("128gf", "128GF", 27, 456, 160.83, 2.52, 264),
};

RFL_ZOO_FAMILY(regnet, entries, build);
