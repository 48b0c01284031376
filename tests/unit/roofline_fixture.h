/*
 * roofline_fixture.h - ledgers made in memory and ceilings made from text, for the tests of the
 * room roofline.
 */
#ifndef RFL_TESTS_ROOFLINE_FIXTURE_H
#define RFL_TESTS_ROOFLINE_FIXTURE_H

#include "rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "roofline/merge.h"

#define MAX_ROWS 256

struct fixture {
	struct rfl_ledger_row rows[MAX_ROWS];
	struct rfl_ledger ledger;
	struct rfl_runs *runs; /* of a copy of the rows, as merge() found them */
	struct rfl_peaks *peaks;
	struct rfl_merge_inputs in;
	struct rfl_merge_options options;
	struct rfl_merge_report report;
	struct rfl_points *pts;
	struct rfl_err err;
};

static inline void set(char **field, const char *text)
{
	rfl_field_set(field, text);
}

static inline struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ledger.rows = f->rows;
	f->in.ledger_hash = "00112233445566778";
	f->in.peaks_hash = "8899aabbccddeeff";
	return f;
}

/* One more run with status ok: resnet50, fp32, train, batch samples, steps of `ms`. */
static inline struct rfl_ledger_row *add_run(struct fixture *f, const char *env, const char *hash,
					     int64_t batch, double ms)
{
	struct rfl_ledger_row *row = &f->rows[f->ledger.nrows++];
	char label[120];

	assert_true(f->ledger.nrows <= MAX_ROWS);
	rfl_ledger_row_init(row);
	row->line = f->ledger.nrows + 1;
	(void)snprintf(label, sizeof(label), "%s_resnet50_fp32_bs%lld_run%zu", env,
		       (long long)batch, f->ledger.nrows);
	set(&row->label, label);
	set(&row->env, env);
	set(&row->version, "0.1.0"); /* the last column: the row is whole */
	set(&row->config_hash, hash);
	set(&row->status, "ok");
	set(&row->engine, "torch");
	set(&row->engine_version, "1.13.1");
	set(&row->backend, "cpu");
	set(&row->model, "resnet50");
	set(&row->precision, "fp32");
	set(&row->layout, "nchw");
	set(&row->mode, "train");
	set(&row->optimizer, "sgd");
	set(&row->data_mode, "synthetic");
	row->batch = row->micro_batch = batch;
	row->accum = 1;
	row->img_size = 224;
	row->classes = 1000;
	row->threads = 2;
	row->iters = 10;
	row->samples_per_s = 1e3 * (double)batch / ms;
	row->step_ms_median = ms;
	row->step_ms_p10 = ms * 0.98;
	row->step_ms_p90 = ms * 1.04;
	return row;
}

static inline void use_peaks(struct fixture *f, void **state, const char *json)
{
	rfl_peaks_free(f->peaks);
	f->peaks = NULL;
	assert_ok(rfl_peaks_load(write_file(*state, "peaks.json", json), &f->peaks, &f->err),
		  &f->err);
	f->in.peaks = f->peaks;
}

/* The rows as a ledger, read as `points` reads one; in messages it is logs/metrics.csv. */
static inline enum rfl_rc make_runs(struct fixture *f)
{
	char name[] = "/tmp/rfl-ledger-XXXXXX";
	const char *path = name;
	const int fd = mkstemp(name);
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_runs_free(f->runs);
	f->runs = NULL;
	assert_true(fd >= 0);
	rfl_buf_init(&text, 0);
	rfl_fields_write_header(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, &text);
	for (size_t i = 0; i < f->ledger.nrows; i++)
		rfl_fields_write(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, &f->rows[i], &text);
	assert_int_equal(write(fd, text.data, text.len), text.len);
	close(fd);
	rfl_buf_fini(&text);
	rc = rfl_runs_load(&path, 1, NULL, &rfl_ledger_metrics[0], RFL_ROWS_TIMES, &f->runs,
			   &f->err);
	unlink(name);
	if (rc == RFL_OK)
		f->runs->files[0].path = "logs/metrics.csv";
	f->in.runs = f->runs;
	return rc;
}

static inline enum rfl_rc merge(struct fixture *f)
{
	rfl_points_free(f->pts);
	f->pts = NULL;
	rfl_buf_fini(&f->report.notes);
	rfl_err_clear(&f->err);
	if (make_runs(f) != RFL_OK)
		return f->err.rc;
	return rfl_merge(&f->in, &f->options, &f->pts, &f->report, &f->err);
}

static inline void fixture_free(struct fixture *f)
{
	for (size_t i = 0; i < f->ledger.nrows; i++)
		rfl_ledger_row_fini(&f->rows[i]);
	rfl_runs_free(f->runs);
	rfl_points_free(f->pts);
	rfl_buf_fini(&f->report.notes);
	rfl_peaks_free(f->peaks);
	free(f);
}

#define assert_notes(f, word) assert_non_null(strstr(rfl_buf_str(&(f)->report.notes), (word)))

/* A test with a directory of its own. */
#define T(name) cmocka_unit_test_setup_teardown(name, tmpdir_make, tmpdir_remove)

/* Ceilings of the short form: 420 GFLOP/s over 92 GB/s. */
#define SMALL_PEAKS "{\"lab_cpu\": {\"peak_gflops\": 420, \"peak_gbps\": 92}}"

#endif
