/*
 * published.h - networks of the zoo beside the published rows of tests/data/complexity. A column
 * that is not there fails the test.
 */
#ifndef RFL_TESTS_PUBLISHED_H
#define RFL_TESTS_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "complexity/zoo.h"
#include "tests/unit/rfl_test.h"

static inline struct rfl_net *build(const char *model)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, NULL, &net, &err), &err);
	return net;
}

/* Attention, norms and softmax are single operations, as published layer lists have them. */
static inline struct rfl_net *build_naive(const char *model, int64_t image_size)
{
	struct rfl_zoo_options options = {
		.image_size = image_size,
		.attention = RFL_ATTENTION_NAIVE,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, &options, &net, &err), &err);
	return net;
}

static inline bool in_zoo(const char *name)
{
	const struct rfl_zoo_model *model;

	return rfl_zoo_find(name, &model, NULL) == RFL_OK;
}

static inline struct rfl_csv *open_published(const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	char path[128];

	(void)snprintf(path, sizeof(path), "complexity/%s", name);
	assert_ok(rfl_csv_open(data_path(path), &csv, &err), &err);
	return csv;
}

static inline bool next(struct rfl_csv *csv)
{
	struct rfl_err err = RFL_ERR_INIT;
	bool more = false;

	assert_ok(rfl_csv_next(csv, &more, &err), &err);
	return more;
}

static inline const char *text(struct rfl_csv *csv, const char *column)
{
	int i = rfl_csv_find(csv, column);

	assert_true(i >= 0);
	return rfl_csv_text(csv, i);
}

static inline int64_t integer(struct rfl_csv *csv, const char *column)
{
	struct rfl_err err = RFL_ERR_INIT;
	int64_t value = 0;
	int i = rfl_csv_find(csv, column);

	assert_true(i >= 0);
	assert_ok(rfl_csv_int(csv, i, 0, &value, &err), &err);
	return value;
}

/* A parameter beside its row of a params file. */
static inline void check_param(struct rfl_csv *csv, const struct rfl_param *p)
{
	static const char *const kinds[RFL_PARAM_KIND_COUNT] = {
		[RFL_PARAM_CONV_WEIGHT] = "conv.weight",
		[RFL_PARAM_CONV_BIAS] = "conv.bias",
		[RFL_PARAM_LINEAR_WEIGHT] = "linear.weight",
		[RFL_PARAM_LINEAR_BIAS] = "linear.bias",
		[RFL_PARAM_NORM_WEIGHT] = "norm.weight",
		[RFL_PARAM_NORM_BIAS] = "norm.bias",
		[RFL_PARAM_RUNNING_MEAN] = "running_mean",
		[RFL_PARAM_RUNNING_VAR] = "running_var",
		[RFL_PARAM_EMBEDDING_WEIGHT] = "embedding.weight",
		[RFL_PARAM_OTHER] = "other",
	};
	struct rfl_shape shape = { .ndim = p->ndim };
	char buf[96];

	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	assert_string_equal(p->name, text(csv, "name"));
	assert_string_equal(rfl_shape_text(&shape, buf, sizeof(buf)), text(csv, "shape"));
	assert_string_equal(kinds[p->kind], text(csv, "kind"));
	assert_int_equal(p->numel, integer(csv, "numel"));
	assert_int_equal(p->position, integer(csv, "p"));
	assert_int_equal(!rfl_param_is_buffer(p->kind), integer(csv, "trainable"));
}

/* What is refused, and the words that say why. */
static inline void refuses_with(const char *model, const struct rfl_zoo_options *options,
				enum rfl_rc rc, const char *words)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_int_equal(rfl_zoo_build(model, options, &net, &err), rc);
	assert_null(net);
	assert_says(&err, words);
}

#endif
