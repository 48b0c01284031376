/*
 * counters_fixture.h - captures made by hand, for the tests of measured points.
 */
#ifndef RFL_TESTS_COUNTERS_FIXTURE_H
#define RFL_TESTS_COUNTERS_FIXTURE_H

#include "roofline_fixture.h"

#include "profile/capture.h"
#include "roofline/merge.h"

#define MAX_CAPTURES 8
#define MAX_RANGES   8

/* ResNet-50 counts 24299077632 FLOPs per sample of a training step. */
#define TRAINING_FLOPS 24299077632.0

struct captures {
	struct rfl_capture capture[MAX_CAPTURES];
	struct rfl_range range[MAX_CAPTURES][MAX_RANGES];
	const struct rfl_capture *list[MAX_CAPTURES];
	struct rfl_captures all;
};

static inline struct captures *captures_new(struct fixture *f)
{
	struct captures *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->all.captures = c->list;
	f->in.counters.captures = &c->all;
	return c;
}

static inline void unknown(struct rfl_amount *amount)
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		amount[q] = (struct rfl_amount){ .value = NAN, .validity = RFL_VALID_UNAVAILABLE };
}

static inline void know(struct rfl_amount *amount, enum rfl_quantity q, double value)
{
	amount[q] = (struct rfl_amount){ .value = value, .validity = RFL_VALID };
}

/* One more capture of ncu that knows nothing yet. */
static inline struct rfl_capture *add_capture(struct captures *c, const char *label)
{
	struct rfl_capture *ret = &c->capture[c->all.n];

	assert_true(c->all.n < MAX_CAPTURES);
	*ret = (struct rfl_capture){ .label = label,
				     .source = "ncu",
				     .steps = -1,
				     .passes = -1,
				     .ranges = c->range[c->all.n],
				     .total_kind = RFL_RANGE_KERNEL };
	unknown(ret->total);
	c->list[c->all.n++] = ret;
	return ret;
}

/* One more kernel of the newest capture. */
static inline struct rfl_range *add_kernel(struct captures *c, const char *name, int64_t launches,
					   double time_s)
{
	struct rfl_capture *capture = &c->capture[c->all.n - 1];
	struct rfl_range *ret = &c->range[c->all.n - 1][capture->nranges++];

	assert_true(capture->nranges <= MAX_RANGES);
	*ret = (struct rfl_range){ .kind = RFL_RANGE_KERNEL, .name = name, .launches = launches };
	unknown(ret->amount);
	if (time_s > 0)
		know(ret->amount, RFL_QUANTITY_TIME, time_s);
	return ret;
}

static inline void give_bytes(struct rfl_capture *c, double bytes)
{
	know(c->total, RFL_QUANTITY_DRAM, bytes);
}

static inline void give_flops(struct rfl_capture *c, enum rfl_quantity part, double flops)
{
	double before = c->total[RFL_QUANTITY_FLOPS].value;

	know(c->total, part, flops);
	know(c->total, RFL_QUANTITY_FLOPS, isnan(before) ? flops : before + flops);
}

/* A run on lab_gpu, whose ceilings are those of GPU_PEAKS. */
static inline struct rfl_ledger_row *add_gpu_run(struct fixture *f, const char *label,
						 const char *hash, const char *precision,
						 int64_t batch, int64_t iters)
{
	struct rfl_ledger_row *row = add_run(f, "lab_gpu", hash, batch, 100);

	set(&row->backend, "cuda");
	set(&row->precision, precision);
	if (label)
		set(&row->label, label);
	row->iters = iters;
	row->warmup = 5;
	return row;
}

/* compute TFLOP/s: fp32 40, tf32 80, fp16 and bf16 160; memory 1000 GB/s */
#define GPU_CELL(key, value)                                     \
	"\"" key "\": {\"status\": \"user\", \"value\": " #value \
	", \"source\": {\"title\": \"by hand\"}}"
#define GPU_PEAKS                                                                                  \
	"{\"schema_version\": \"1.0\", \"environments\": {\"lab_gpu\": {\"kind\": \"gpu\", "       \
	"\"device\": {\"name\": \"a card\"}, \"compute\": {" GPU_CELL(                             \
		"fp32.vector",                                                                     \
		40000) ", " GPU_CELL("tf32.matrix",                                                \
				     80000) ", " GPU_CELL("fp16.matrix",                           \
							  160000) ", " GPU_CELL("bf16.matrix",     \
										160000) "}, "      \
											"\"memory" \
											"\": "     \
											"[{"       \
											"\"level"  \
											"\": "     \
											"\"DRAM\"" \
											", "       \
											"\"scope"  \
											"\": "     \
											"\"device" \
											"\", "     \
											"\"gbs\":" \
											" {"       \
											"\"status" \
											"\": "     \
											"\"user\"" \
											", "       \
											"\"value"  \
											"\": "     \
											"1000, "   \
											"\"source" \
											"\": "     \
											"{\"title" \
											"\": "     \
											"\"by "    \
											"hand\"}}" \
											"}]}}}"

/* One configuration of lab_gpu: resnet50 fp32 bs 4 in 100 timed steps, and a profiled run of 30
 * with 5 steps of warm-up. */
#define PROF "lab_gpu_resnet50_fp32_prof"

static inline struct fixture *profiled(void **state, struct captures **c)
{
	struct fixture *f = fixture_new();

	add_gpu_run(f, NULL, "a", "fp32", 4, 100);
	add_gpu_run(f, PROF, "b", "fp32", 4, 30);
	use_peaks(f, state, GPU_PEAKS);
	*c = captures_new(f);
	return f;
}

static inline void finish(struct fixture *f, struct captures *c)
{
	fixture_free(f);
	free(c);
}

#define FLOPS 97196310528.0 /* 4 x TRAINING_FLOPS */
#define BYTES 4e9           /* of a step; between compulsory and unfused */

#endif
