/*
 * fake_source.h - a source of counters for tests of counted steps: three passes, known counts. It
 * writes down what it was asked, and RFL_TEST_SOURCE says what it does.
 */
#ifndef RFL_TESTS_UNIT_FAKE_SOURCE_H
#define RFL_TESTS_UNIT_FAKE_SOURCE_H

#include "tests/unit/rfl_test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/source.h"

#define PASSES 3

/* Written down: what the source and the engine were asked, in order. */
static struct {
	char text[1 << 16];
	size_t len;
} asked;

static void note(const char *what)
{
	int n = snprintf(asked.text + asked.len, sizeof(asked.text) - asked.len, "%s ", what);

	assert_in_range(n, 1, sizeof(asked.text) - asked.len - 1);
	asked.len += (size_t)n;
}

/* Every range of every pass reads 1000 bytes, writes 500 and does 10 + 20 + 2 x 35 FLOPs. */
static const struct {
	const char *name, *unit;
	double value;
} metrics[] = {
	{ "dram__bytes_read.sum", "byte", 1000 },
	{ "dram__bytes_write.sum", "byte", 500 },
	{ "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "inst", 10 },
	{ "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "inst", 20 },
	{ "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", 35 },
	{ "gpu__time_duration.sum", "s", 0.5 },
	{ "sm__cycles_elapsed.max", "cycle", 800 },
	{ "sm__inst_executed.sum", "inst", 600 },
};

/* Left out of the second range, the optimizer's or the layer's: "no-flops" of all. */
static bool is_absent(const char *metric, size_t range)
{
	const char *how = getenv("RFL_TEST_SOURCE");

	if (!how)
		return false;
	if (strcmp(how, "no-flops") == 0)
		return strstr(metric, "_sass_") != NULL;
	return strcmp(how, "few-instructions") == 0 && range == 1 &&
	       strcmp(metric, "sm__inst_executed.sum") == 0;
}

struct fake_ranges {
	struct rfl_ranges ranges;
	struct rfl_capture_builder
		*builder; /* of the first pass; NULL: count again, keep nothing */
	bool open;
	size_t n; /* ranges that ended */
};

static enum rfl_rc end_range(struct rfl_ranges *r, struct rfl_err *err)
{
	struct fake_ranges *f = (struct fake_ranges *)(void *)r;

	if (!f->open || !f->builder)
		return RFL_OK;
	f->open = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics); i++) {
		const bool absent = is_absent(metrics[i].name, f->n);
		int id = rfl_capture_metric_id(f->builder, metrics[i].name, strlen(metrics[i].name),
					       metrics[i].unit);

		assert_true(id >= 0);
		(void)rfl_capture_metric(f->builder, id, absent ? (double)NAN : metrics[i].value,
					 absent ? RFL_VALID_UNAVAILABLE : RFL_VALID,
					 (int)i % PASSES,
					 absent ? "the driver gave no value" : NULL);
	}
	f->n++;
	(void)err;
	return RFL_OK;
}

static enum rfl_rc begin_range(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
			       struct rfl_err *err)
{
	struct fake_ranges *f = (struct fake_ranges *)(void *)r;
	char text[512];
	enum rfl_rc rc = end_range(r, err);

	(void)snprintf(text, sizeof(text), "%s:%s", rfl_range_kind_names[kind], name);
	note(text);
	f->open = true;
	if (rc || !f->builder)
		return rc;
	rfl_capture_begin(f->builder, kind, name, NULL, NULL);
	return RFL_OK;
}

static bool is_told(const char *what)
{
	const char *how = getenv("RFL_TEST_SOURCE");

	return how && strcmp(how, what) == 0;
}

/* 1500 bytes in half a second. */
static enum rfl_rc rest(struct fake_ranges *f, struct rfl_err *err)
{
	rfl_capture_begin(f->builder, RFL_RANGE_IDLE, "idle", NULL, NULL);
	f->open = true;
	return end_range(&f->ranges, err);
}

/* More ranges than fit one event, with names that need care on the way. */
static enum rfl_rc many_ranges(struct fake_ranges *f, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < 700 && rc == RFL_OK; i++) {
		char name[128];

		(void)snprintf(name, sizeof(name),
			       "kernel<%d, \"\xc3\xa4\xe2\x82\xac\">\n\xf0\x9f\x8c\x8d%s", i,
			       is_told("latin") ? "\xe4" : "");
		rfl_capture_begin(f->builder, RFL_RANGE_KERNEL, name, NULL, NULL);
		f->open = true;
		rc = end_range(&f->ranges, err);
	}
	return rc;
}

static enum rfl_rc run_passes(const struct rfl_workload *w, struct fake_ranges *f,
			      struct rfl_err *err)
{
	struct rfl_capture_builder *builder = f->builder;
	enum rfl_rc rc = w->save ? w->save(w->ctx, err) : RFL_OK;

	for (int pass = 0; pass < PASSES && rc == RFL_OK; pass++) {
		if (pass > 0 && w->restore)
			rc = w->restore(w->ctx, err);
		f->builder = pass == 0 ? builder : NULL;
		if (rc == RFL_OK)
			rc = w->run(w->ctx, &f->ranges, err);
		if (rc == RFL_OK)
			rc = end_range(&f->ranges, err);
	}
	f->builder = builder;
	return rc;
}

/* How often it was opened ahead of the engine, and closed. The engine of the tests has a GPU from
 * then on. */
static int opened, closed;

static struct rfl_source_early *open_early(const struct rfl_source_request *request)
{
	static char early;

	assert_null(request->early);
	opened++;
	setenv("RFL_FAKE_DEVICE", "cuda", 1);
	return (struct rfl_source_early *)(void *)&early;
}

static void close_early(struct rfl_source_early *early)
{
	assert_non_null(early);
	closed++;
}

static enum rfl_rc measure(const struct rfl_source_request *request, const struct rfl_workload *w,
			   struct rfl_captures *to, struct rfl_err *err)
{
	const struct rfl_capture_spec spec = {
		.source = "fake",
		.label = request->label,
		.formulas = "any",
	};
	struct fake_ranges f = { .ranges = { begin_range } };
	enum rfl_rc rc;

	if (is_told("unavailable"))
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"fake source: the driver refuses counters: ask root to allow them");
	f.builder = rfl_capture_builder_new(&spec);
	rc = run_passes(w, &f, err);
	if (rc == RFL_OK && is_told("idle"))
		rc = rest(&f, err);
	if (rc == RFL_OK && (is_told("many") || is_told("latin")))
		rc = many_ranges(&f, err);
	if (is_told("segv")) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer must not turn it into an exit */
		raise(SIGSEGV);
	}
	if (is_told("exit-late") || is_told("hang-late")) { /* with all of it handed over */
		struct rfl_captures so_far;

		rfl_captures_init(&so_far);
		rfl_capture_steps(f.builder, 1, PASSES);
		rfl_capture_refuse(f.builder, "flops", "the run ended before this was counted");
		assert_int_equal(rfl_capture_finish(f.builder, &so_far, NULL), RFL_OK);
		request->so_far(&so_far, 0.2, request->ctx);
		rfl_captures_fini(&so_far);
		if (is_told("hang-late"))
			sleep(60);
		_exit(7);
	}
	if (is_told("exit"))
		_exit(7);
	rfl_capture_steps(f.builder, 1, PASSES);
	if (rc == RFL_OK)
		return rfl_capture_finish(f.builder, to, err);
	rfl_capture_builder_free(f.builder);
	return rc;
}

static const struct rfl_source_ops source = {
	.name = "fake",
	.summary = "of this test",
	.device = "cpu",
	.open = open_early,
	.close = close_early,
	.measure = measure,
};

static inline const struct rfl_range *range_of(const struct rfl_capture *c, const char *name)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	fail_msg("no range %s", name);
	return NULL;
}

#endif
