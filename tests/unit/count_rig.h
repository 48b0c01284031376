/*
 * count_rig.h - counts of small networks and of the zoo's, for tests.
 */
#ifndef RFL_TESTS_COUNT_RIG_H
#define RFL_TESTS_COUNT_RIG_H

#include "complexity/count.h"
#include "tests/unit/rfl_test.h"
#include "tests/unit/build_rig.h"

/* At batch 1 unless the options say more. */
static inline struct rfl_count *count_of(const struct rfl_net *net,
					 struct rfl_count_options options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	if (!options.batch)
		options.batch = 1;
	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	return count;
}

static inline struct rfl_net *finish(struct rfl_net_builder *b, int x)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_net_finish(b, x, &net, &err), &err);
	return net;
}

/* FLOPs of passes as the counter of PyTorch has them on a CPU: without fused attention. */
static inline int64_t flops_seen(const struct rfl_count *count, unsigned passes)
{
	int64_t macs = 0;

	for (int i = 0; i < count->nnodes; i++)
		for (int pass = 0; pass < RFL_PASS_COUNT; pass++)
			if ((passes & (1u << pass)) && count->net->nodes[i].op != RFL_OP_SDPA)
				macs += count->nodes[i].macs[pass];
	return 2 * macs;
}

#endif
