/*
 * summary_rig.h - what tests of importers of summaries share: read a text or a file, look at its
 * one capture.
 */
#ifndef RFL_TESTS_SUMMARY_RIG_H
#define RFL_TESTS_SUMMARY_RIG_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/import/importer.h"
#include "tests/unit/rfl_test.h"

struct summary_rig {
	struct rfl_import_options options;
	struct rfl_captures captures;
	struct rfl_err err;
	char warned[4096]; /* all lines, each with its newline */
};

static inline void rig_warn(const char *line, void *ctx)
{
	struct summary_rig *rig = ctx;
	size_t at = strlen(rig->warned);

	(void)snprintf(rig->warned + at, sizeof(rig->warned) - at, "%s\n", line);
}

static inline void rig_init(struct summary_rig *rig)
{
	*rig = (struct summary_rig){ .options = { .warn = rig_warn, .ctx = rig } };
	rfl_captures_init(&rig->captures);
}

static inline void rig_fini(struct summary_rig *rig)
{
	rfl_captures_fini(&rig->captures);
}

/** Forget what was read, keep the options. */
static inline void rig_again(struct summary_rig *rig)
{
	rfl_captures_fini(&rig->captures);
	rfl_captures_init(&rig->captures);
	rfl_err_clear(&rig->err);
	rig->warned[0] = '\0';
}

static inline enum rfl_rc rig_text(struct summary_rig *rig, const char *text)
{
	rig_again(rig);
	return rfl_import_text(text, strlen(text), "file", &rig->options, &rig->captures,
			       &rig->err);
}

/** The one capture of a text that must be read, by this importer. */
static inline const struct rfl_capture *rig_read(struct summary_rig *rig, const char *source,
						 const char *text)
{
	assert_ok(rig_text(rig, text), &rig->err);
	assert_int_equal(rig->captures.n, 1);
	assert_string_equal(rig->captures.captures[0]->source, source);
	return rig->captures.captures[0];
}

/** The same of a file under tests/data/profile. */
static inline const struct rfl_capture *rig_file(struct summary_rig *rig, const char *source,
						 const char *name)
{
	char path[256];

	rig_again(rig);
	(void)snprintf(path, sizeof(path), "profile/%s", name);
	assert_ok(rfl_import_file(data_path(path), &rig->options, &rig->captures, &rig->err),
		  &rig->err);
	assert_int_equal(rig->captures.n, 1);
	assert_string_equal(rig->captures.captures[0]->source, source);
	return rig->captures.captures[0];
}

/** A text that must be refused, with this message after "file". */
static inline void rig_refuses(struct summary_rig *rig, const char *text, const char *message)
{
	char expected[1024];

	(void)snprintf(expected, sizeof(expected), "file%s", message);
	assert_int_equal(rig_text(rig, text), RFL_EFORMAT);
	assert_string_equal(rig->err.msg, expected);
	assert_int_equal(rig->captures.n, 0);
}

static inline const struct rfl_metric *find_metric(const struct rfl_range *r, const char *name)
{
	for (size_t i = 0; i < r->nmetrics; i++)
		if (strcmp(r->metrics[i].name, name) == 0)
			return &r->metrics[i];
	return NULL;
}

static inline const struct rfl_metric *metric_of(const struct rfl_capture *c, size_t range,
						 const char *name)
{
	const struct rfl_metric *m;

	assert_true(range < c->nranges);
	m = find_metric(&c->ranges[range], name);
	if (!m)
		fail_msg("no metric '%s'", name);
	return m;
}

#define assert_metric(capture, range, name, expected)                                     \
	do {                                                                              \
		const struct rfl_metric *metric_ = metric_of((capture), (range), (name)); \
		assert_close(metric_->value, (expected), 1e-15);                          \
		assert_int_equal(metric_->validity, RFL_VALID);                           \
	} while (0)

#define assert_total(capture, quantity, expected) \
	assert_close((capture)->total[RFL_QUANTITY_##quantity].value, (expected), 1e-15)
#define assert_unknown(capture, quantity) \
	assert_true(isnan((capture)->total[RFL_QUANTITY_##quantity].value))

#endif
