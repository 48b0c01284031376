/* The config.json of a language model: what loads is consistent, and a prefill, a decode step and
 * the largest batch of it are counted, of few tokens and of as many as the command line accepts. */
#include <math.h>

#include "complexity/lm.h"
#include "fuzz.h"

enum { CONTEXT_MAX = 1 << 24 }; /* of --past and --new */

static bool is_amount(double value)
{
	return isfinite(value) && value >= 0;
}

static double memory(const struct rfl_lm *lm, const struct rfl_lm_step *s)
{
	struct rfl_lm_count c;

	rfl_lm_count(lm, s, &c);
	FUZZ_ASSERT(is_amount(c.weights_bytes) && is_amount(c.cache_bytes) &&
		    is_amount(c.workspace_bytes));
	return c.weights_bytes + c.cache_bytes + c.workspace_bytes;
}

static void check_op(const struct rfl_lm_op *op)
{
	FUZZ_ASSERT(is_amount(op->params) && is_amount(op->active) && op->active <= op->params);
	FUZZ_ASSERT(is_amount(op->flops) && is_amount(op->elementwise));
	for (int i = 0; i < RFL_LM_BYTES_COUNT; i++)
		FUZZ_ASSERT(is_amount(op->bytes[i]));
	FUZZ_ASSERT(is_amount(op->stored) && is_amount(op->cached));
}

/* The sum of a step whose operations have all been checked. */
static struct rfl_lm_op count(const struct rfl_lm *lm, const struct rfl_lm_step *s)
{
	struct rfl_lm_count c;
	struct rfl_lm_op total;

	rfl_lm_count(lm, s, &c);
	for (size_t i = 0; i < c.n; i++)
		check_op(&c.ops[i]);
	total = rfl_lm_total(&c);
	check_op(&total);
	FUZZ_ASSERT(total.params >= 1 && total.params <= 0x1p53);
	FUZZ_ASSERT(total.flops > 0 && isfinite(rfl_lm_intensity(&total)));
	return total;
}

/* A step at every level of fusion, on one device and, if it can be split, on more. */
static void check_step(const struct rfl_lm *lm, struct rfl_lm_step s)
{
	struct rfl_lm_op unfused, fused, compulsory, half;

	s.fusion = RFL_FUSION_UNFUSED;
	unfused = count(lm, &s);
	s.fusion = RFL_FUSION_COMPULSORY;
	compulsory = count(lm, &s);
	s.fusion = RFL_FUSION_FUSED;
	fused = count(lm, &s);
	FUZZ_ASSERT(rfl_lm_traffic(&unfused) >= rfl_lm_traffic(&fused));
	FUZZ_ASSERT(rfl_lm_traffic(&fused) >= rfl_lm_traffic(&compulsory));
	FUZZ_ASSERT(unfused.flops == fused.flops && fused.flops == compulsory.flops);
	s.causal_half = true;
	half = count(lm, &s);
	FUZZ_ASSERT(half.flops <= fused.flops);
	s.tensor = lm->heads;
	s.pipeline = lm->layers;
	if (rfl_lm_check_split(lm, s.tensor, s.pipeline, NULL) == RFL_OK) {
		const double part = memory(lm, &s);

		(void)count(lm, &s);
		s.tensor = s.pipeline = 1;
		FUZZ_ASSERT(part <= memory(lm, &s));
	}
}

/* What fits is the largest: it fits, and one more does not. */
static void check_fit(const struct rfl_lm *lm, struct rfl_lm_step s)
{
	const double bytes = memory(lm, &s);
	const int64_t batch = rfl_lm_fit_batch(lm, &s, bytes);
	int64_t *tokens = s.decode ? &s.past : &s.tokens;
	const int64_t most = rfl_lm_fit_tokens(lm, &s, bytes);

	FUZZ_ASSERT(batch >= s.batch && batch <= RFL_LM_FIT_MAX);
	FUZZ_ASSERT(most >= *tokens && most <= RFL_LM_FIT_MAX);
	*tokens = most;
	FUZZ_ASSERT(memory(lm, &s) <= bytes);
	s.batch = batch + 1;
	FUZZ_ASSERT(batch == RFL_LM_FIT_MAX || memory(lm, &s) > bytes);
}

static void check_steps(const struct rfl_lm *lm, const struct rfl_lm_formats *formats, bool fit)
{
	static const int64_t batches[] = { 1, 2, RFL_LM_FIT_MAX };
	const int64_t few = lm->positions ? 1 : 3;
	const int64_t many = lm->positions ? lm->positions : CONTEXT_MAX;

	for (size_t i = 0; i < 4 * RFL_ARRAY_LEN(batches); i++) {
		const bool decode = i % 2, large = i / 2 % 2;
		const int64_t tokens = large ? many : few;
		const struct rfl_lm_step s = {
			.batch = batches[i / 4],
			.past = decode ? tokens - 1 : 0,
			.tokens = decode ? 1 : tokens,
			.logits = 1,
			.decode = decode,
			.page = large ? 16 : 0,
			.formats = *formats,
		};

		check_step(lm, s);
		if (fit)
			check_fit(lm, s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_lm_formats formats = { .base = { .name = NULL } };
	struct rfl_lm lm = { .name = NULL };
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = fuzz_memory(data, size);
	const enum rfl_rc rc = rfl_lm_load(path, arena, &lm, &formats, &err);

	fuzz_check(rc, lm.name, &err, path);
	if (rc == RFL_OK) {
		FUZZ_ASSERT(rfl_lm_check(&lm, NULL) == RFL_OK);
		rfl_lm_formats_fill(&formats);
		check_steps(&lm, &formats, fuzz_due(data, size, 0));
	}
	rfl_arena_free(arena);
	return 0;
}
