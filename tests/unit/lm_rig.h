/*
 * lm_rig.h - transformers of the zoo at chosen sizes, in every setting of attention.
 */
#ifndef RFL_TESTS_LM_RIG_H
#define RFL_TESTS_LM_RIG_H

#include "complexity/count.h"
#include "tests/unit/published.h"

static const enum rfl_attention settings[] = {
	RFL_ATTENTION_AUTO,
	RFL_ATTENTION_COMPOSED,
	RFL_ATTENTION_NAIVE,
	RFL_ATTENTION_SDPA,
};

static inline struct rfl_net *build_with(const char *model, const struct rfl_zoo_options *options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, options, &net, &err), &err);
	return net;
}

static inline struct rfl_count *count_with(const struct rfl_net *net,
					   const struct rfl_count_options *options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	assert_ok(rfl_count_net(net, options, &count, &err), &err);
	return count;
}

#endif
