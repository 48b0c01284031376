/*
 * Summaries of repeats: statistics of published tables to the printed digit, and which rows of a
 * ledger count.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "ledger/matrix.h"
#include "report/runs.h"

struct summary {
	struct rfl_runs *runs;
	struct rfl_repeats *r;
};

static const struct rfl_ledger_metric *metric_named(const char *name)
{
	size_t i = 0;

	while (strcmp(rfl_ledger_metric_names[i], name) != 0)
		i++;
	return &rfl_ledger_metrics[i];
}

static struct summary summarise(const char *path, const char *metric)
{
	const struct rfl_repeats_options o = { .metric = metric_named(metric) };
	struct rfl_err err = RFL_ERR_INIT;
	struct summary s;

	assert_ok(rfl_runs_load(&path, 1, NULL, o.metric, RFL_ROWS_KEPT, &s.runs, &err), &err);
	assert_ok(rfl_repeats_new(s.runs, &o, &s.r, &err), &err);
	return s;
}

static void summary_free(struct summary *s)
{
	rfl_repeats_free(s->r);
	rfl_runs_free(s->runs);
}

/* --- 27 runs of a published report ----------------------------------------------------------- */

/* Means as the report prints them; standard deviations by numpy (ddof=1). The report itself prints
 * 3.52, 1.46, 13.83, 1.62, 1.23 and 1.91 in six of the nine places, which its own runs do not
 * give: slips of the report. */
static const struct {
	const char *model;
	int batch;
	const char *mean, *std;
	double exact_std;
} published[] = {
	{ "resnet50", 16, "132.75", "3.82", 3.81575680566778 },
	{ "resnet50", 32, "118.71", "3.49", 3.4926923712230913 },
	{ "resnet50", 64, "89.26", "2.35", 2.3457479262131566 },
	{ "vgg16", 16, "71.04", "1.48", 1.4775091652281966 },
	{ "vgg16", 32, "67.07", "13.75", 13.748392633322629 },
	{ "vgg16", 64, "76.55", "1.66", 1.656089772123878 },
	{ "mobilenet_v2", 16, "160.73", "1.03", 1.0307925753192713 },
	{ "mobilenet_v2", 32, "188.61", "1.24", 1.239771484320123 },
	{ "mobilenet_v2", 64, "178.46", "1.90", 1.9041621079449405 },
};

static void published_tables_to_the_digit(void **state)
{
	struct summary s = summarise(data_path("ledger/mac_mps.csv"), "samples_per_s");

	(void)state;
	assert_int_equal(s.r->n, RFL_ARRAY_LEN(published));
	for (size_t i = 0; i < s.r->n; i++) {
		const struct rfl_repeats_config *c = &s.r->configs[i];
		char text[32];

		assert_string_equal(c->row->env, "mac_mps");
		assert_string_equal(c->row->model, published[i].model);
		assert_int_equal(c->row->batch, published[i].batch);
		assert_int_equal(c->n, 3);
		(void)snprintf(text, sizeof(text), "%.2f", c->stats.mean);
		assert_string_equal(text, published[i].mean);
		(void)snprintf(text, sizeof(text), "%.2f", c->stats.std);
		assert_string_equal(text, published[i].std);
		assert_close(c->stats.std, published[i].exact_std, 1e-13);
		assert_close(c->stats.ci95, 4.3026527297494639 * c->stats.std / sqrt(3), 1e-12);
		assert_int_equal(c->flags, i == 4 ? RFL_REPEATS_UNSTABLE : 0);
	}
	assert_int_equal(s.r->notes.len, 0);
	summary_free(&s);
}

static void published_tables_in_their_form(void **state)
{
	struct summary s = summarise(data_path("ledger/mac_mps.csv"), "samples_per_s");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out = { 0 };

	(void)state;
	assert_ok(rfl_repeats_markdown(s.r, "coverage: 27 of 27 runs\n", &out, &err), &err);
	assert_non_null(strstr(out.data, "## vgg16 fp32 on mac_mps\n\n"
					 "| Batch Size | Run 1 | Run 2 | Run 3 | Mean | Std Dev |\n"
					 "|---:|---:|---:|---:|---:|---:|\n"
					 "| 16 | 72.74 | 70.04 | 70.35 | 71.04 | 1.48 |\n"
					 "| 32 | 55.86 | 62.94 | 82.41 | 67.07 | 13.75 |\n"
					 "| 64 | 78.38 | 76.13 | 75.15 | 76.55 | 1.66 |\n"));
	assert_non_null(strstr(out.data, "- coverage: 27 of 27 runs\n"));
	rfl_buf_fini(&out);
	summary_free(&s);
}

/* Copy the file without its 14th row (drop), and with a row after the last (add). */
static const char *changed(void *state, bool drop, const char *add)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text = { 0 }, out = { 0 };
	const char *path;
	int line = 0;

	assert_ok(rfl_file_read(data_path("ledger/mac_mps.csv"), &text, &err), &err);
	for (const char *at = text.data; *at; line++) {
		size_t len = strcspn(at, "\n") + 1;

		if (!drop || line != 14)
			rfl_buf_append(&out, at, len);
		at += len;
	}
	rfl_buf_puts(&out, add);
	path = write_file(state, "changed.csv", out.data);
	rfl_buf_fini(&text);
	rfl_buf_fini(&out);
	return path;
}

static struct rfl_matrix_coverage cover(const struct summary *s, struct rfl_matrix **m)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_matrix_coverage c;

	assert_ok(rfl_matrix_load(RFL_TEST_DATA "/../../examples/study-mac-mps.json", m, &err),
		  &err);
	rfl_matrix_cover(*m, s->runs->ledger, &c);
	return c;
}

static void coverage_of_27(void **state)
{
	struct summary s = summarise(data_path("ledger/mac_mps.csv"), "samples_per_s");
	struct rfl_matrix *m = NULL;
	struct rfl_matrix_coverage c = cover(&s, &m);

	assert_int_equal(c.nruns, 27);
	assert_int_equal(c.done, 27);
	rfl_matrix_coverage_fini(&c);
	rfl_matrix_free(m);
	summary_free(&s);
	s = summarise(changed(*state, true, ""), "samples_per_s");
	c = cover(&s, &m);
	assert_int_equal(c.done, 26);
	assert_int_equal(c.missing, 1);
	for (size_t i = 0; i < c.nruns; i++)
		if (c.runs[i].state == RFL_MATRIX_MISSING) {
			char label[RFL_LABEL_MAX + 1];

			rfl_matrix_label(&m->cells[c.runs[i].cell], c.runs[i].repeat, label);
			assert_string_equal(label, "mac_mps_vgg16_fp32_bs32_run2");
		}
	rfl_matrix_coverage_fini(&c);
	rfl_matrix_free(m);
	summary_free(&s);
}

static void a_retry_counts_once(void **state)
{
	struct summary s = summarise(
		changed(*state, false,
			"2025-11-14T12:40:00,macbook,mps,vgg16,32,0,fp32,10,100,40,80.00,mps,"
			"mac_mps_vgg16_fp32_bs32_r2_20251114_124000,2.9.1\n"),
		"samples_per_s");
	struct rfl_matrix *m = NULL;
	struct rfl_matrix_coverage c = cover(&s, &m);

	assert_int_equal(c.done, 27);
	assert_int_equal(c.surplus, 1);
	assert_int_equal(s.r->configs[4].n, 3);
	assert_close(s.r->configs[4].stats.median, 80, 0); /* the last of the two */
	assert_non_null(strstr(s.r->notes.data,
			       "duplicate: mac_mps_vgg16_fp32_bs32_r2_20251114_124000 is ok in "));
	assert_non_null(strstr(s.r->notes.data, "changed.csv:15 and in "));
	assert_non_null(strstr(s.r->notes.data, "changed.csv:29; only the last is used\n"));
	rfl_matrix_coverage_fini(&c);
	rfl_matrix_free(m);
	summary_free(&s);
}

/* --- our own ledger -------------------------------------------------------------------------- */

#define HEADER                                                                                \
	"schema_version,run_id,config_hash,repeat,timestamp_utc,label,env,status,error_text," \
	"model,"                                                                              \
	"batch,precision,threads,world_size,rank,samples_per_s,flags,version\n"
#define ROW(id, hash, n, label, status, threads, value, flags)                   \
	"3," id "," hash "," n ",2026-01-01T00:00:0" n "Z," label ",lab," status \
	",,resnet18,8,fp32," threads ",1,," value "," flags ",0.1\n"

static struct summary of_text(void *state, const char *rows)
{
	struct rfl_buf text = { 0 };
	struct summary s;

	rfl_buf_printf(&text, "%s%s", HEADER, rows);
	s = summarise(write_file(state, "metrics.csv", text.data), "samples_per_s");
	rfl_buf_fini(&text);
	return s;
}

static void one_repeat_has_no_spread(void **state)
{
	struct summary s = of_text(*state, ROW("a", "h", "1", "l_run1", "ok", "2", "10", ""));
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out = { 0 };

	assert_int_equal(s.r->n, 1);
	assert_true(s.r->configs[0].stats.mean == 10);
	assert_true(isnan(s.r->configs[0].stats.std) && isnan(s.r->configs[0].stats.ci95));
	assert_true(isnan(s.r->configs[0].cv) && isnan(s.r->configs[0].drift));
	for (enum rfl_format format = RFL_FORMAT_TABLE; format <= RFL_FORMAT_MD; format++) {
		struct rfl_table *t = rfl_repeats_table(s.r, rfl_format_for_people(format), "");

		rfl_table_finish(t, format, &out);
		assert_null(strstr(out.data, "nan"));
		if (format == RFL_FORMAT_JSON)
			assert_non_null(strstr(out.data, "\"std\": null, \"median\": 10.0, "
							 "\"ci95_lo\": null, \"ci95_hi\": null"));
		rfl_buf_reset(&out);
	}
	assert_ok(rfl_repeats_markdown(s.r, "", &out, &err), &err);
	assert_non_null(strstr(out.data, "| 8 | 10.00 | 10.00 | - |\n"));
	rfl_buf_fini(&out);
	summary_free(&s);
}

static void mixed_labels_are_not_averaged(void **state)
{
	struct summary s = of_text(*state, ROW("a", "h1", "1", "l_run1", "ok", "2", "10", "") ROW(
						   "b", "h2", "1", "l_run1", "ok", "4", "20", ""));

	assert_int_equal(s.r->n, 2);
	assert_int_equal(s.r->configs[0].n, 1);
	assert_int_equal(s.r->configs[1].n, 1);
	assert_non_null(strstr(s.r->notes.data, "mixed: l_run1 names two configurations, in "));
	assert_non_null(
		strstr(s.r->notes.data, "(threads '2' and '4'); they are averaged separately\n"));
	summary_free(&s);
}

static void failures_are_named(void **state)
{
	struct summary s =
		of_text(*state, ROW("a", "h", "1", "l_run1", "oom", "2", "",
				    "") ROW("b", "h", "1", "l_run1", "ok", "2", "10", "")
					ROW("c", "h", "2", "l_run2", "crash", "2", "", "")
						ROW("d", "i", "1", "k_run1", "nan", "4", "5", ""));

	assert_int_equal(s.r->n, 2);
	assert_int_equal(s.r->configs[0].n, 1);
	assert_int_equal(s.r->configs[0].failed, 1);
	assert_int_equal(s.r->configs[1].n, 0);
	assert_int_equal(s.r->configs[1].failed, 1);
	assert_true(isnan(s.r->configs[1].stats.mean));
	assert_non_null(strstr(s.r->notes.data, "failed: l_run2: crash ("));
	assert_non_null(strstr(s.r->notes.data, "failed: k_run1: nan ("));
	assert_null(strstr(s.r->notes.data, "failed: l_run1"));
	assert_non_null(strstr(s.r->notes.data, "skipped 1 failed attempt; a retry succeeded"));
	summary_free(&s);
	/* stopping a run is not a failure, if it was continued */
	s = of_text(*state, ROW("a", "h", "1", "l_run1", "interrupted", "2", "", "")
				    ROW("b", "h", "1", "l_run1", "ok", "2", "10", ""));
	assert_int_equal(s.r->n, 1);
	assert_int_equal(s.r->configs[0].failed, 0);
	assert_null(strstr(rfl_buf_str(&s.r->notes), "skipped"));
	summary_free(&s);
}

static void rows_that_are_no_repeats_are_left_out(void **state)
{
	struct summary s =
		of_text(*state, ROW("a", "h", "1", "lab_resnet18_run1", "ok", "2", "10", "")
					ROW("b", "h", "2", "lab_resnet18_run2_prof", "ok", "2", "1",
					    "") ROW("c", "h", "3", "lab_resnet18_run3", "ok", "2",
						    "", "") "3,d,h,4,,lab_resnet18_run4,lab,ok,,"
							    "resnet18,8,fp32,2,2,0,5,,0.1\n");

	assert_int_equal(s.r->n, 1);
	assert_int_equal(s.r->configs[0].n, 1);
	assert_non_null(strstr(s.r->notes.data, "skipped 1 run recorded under a profiler"));
	assert_non_null(
		strstr(s.r->notes.data, "skipped 1 row with status ok but without samples_per_s"));
	assert_non_null(strstr(s.r->notes.data, "1 row of single ranks"));
	summary_free(&s);
}

/* Runs are put in the order of time, and what they say of themselves is counted. */
static void drift_outliers_and_flags(void **state)
{
	struct summary s = of_text(
		*state, ROW("c", "h", "3", "l_run3", "ok", "2", "94.1", "drift loader_bound")
				ROW("a", "h", "1", "l_run1", "ok", "2", "100", "loader_bound")
					ROW("b", "h", "2", "l_run2", "ok", "2", "97", ""));
	struct rfl_buf words = { 0 };

	assert_true(s.r->configs[0].runs[0].value == 100);
	assert_close(s.r->configs[0].drift, -5.9 / (291.1 / 3), 1e-12);
	assert_int_equal(s.r->configs[0].flags, RFL_REPEATS_DRIFT);
	rfl_table_finish(rfl_repeats_table(s.r, false, ""), RFL_FORMAT_CSV, &words);
	assert_non_null(strstr(words.data, ",loader_bound:2 drift:1,"));
	rfl_buf_fini(&words);
	summary_free(&s);
	s = of_text(*state, ROW("a", "h", "1", "l_run1", "ok", "2", "100",
				"") ROW("b", "h", "2", "l_run2", "ok", "2", "101",
					"") ROW("c", "h", "3", "l_run3", "ok", "2", "60", "")
				    ROW("d", "h", "4", "l_run4", "ok", "2", "100.5", "")
					    ROW("e", "h", "5", "l_run5", "ok", "2", "99.5", ""));
	assert_int_equal(s.r->configs[0].n, 5); /* it counts all the same */
	assert_int_equal(s.r->configs[0].flags, RFL_REPEATS_UNSTABLE | RFL_REPEATS_OUTLIER);
	assert_non_null(strstr(s.r->notes.data, "outlier: l_run3, 60 (the median of 5 repeats"));
	summary_free(&s);
}

static void filters(void **state)
{
	const char *rows = HEADER ROW("a", "h", "1", "l_run1", "ok", "2", "10", "");
	const char *path = write_file(*state, "metrics.csv", rows);
	const char *yes = "resnet18", *no = "resnet19";
	struct rfl_repeats_options o = { .metric = metric_named("samples_per_s"),
					 .filters = { { RFL_LEDGER_AT_model, &yes, 1 } } };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_runs *runs = NULL;
	struct rfl_repeats *r = NULL;

	assert_ok(rfl_runs_load(&path, 1, NULL, o.metric, RFL_ROWS_SHORT, &runs, &err), &err);
	assert_ok(rfl_repeats_new(runs, &o, &r, &err), &err);
	rfl_repeats_free(r);
	r = NULL;
	o.filters[0].list = &no;
	assert_int_equal(rfl_repeats_new(runs, &o, &r, &err), RFL_ENOTFOUND);
	assert_says(&err, "no run has model 'resnet19' (known: resnet18)");
	assert_null(r);
	rfl_runs_free(runs);
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

/* A word for all runs, with the number of the repeat in a column of its own, parts them by both. */
static void a_tag_is_no_label(void **state)
{
	struct summary s = summarise(write_file(*state, "t.csv",
						"tag,run,env,model,batch,precision,ips,resolution\n"
						"base,1,lab,vgg16,8,fp32,10,224\n"
						"base,2,lab,vgg16,8,fp32,11,224\n"
						"base,3,lab,vgg16,8,fp32,12,224\n"
						"base,1,lab,vgg16,16,fp32,13,224\n"
						"base,3,lab,vgg16,8,fp32,15,224\n"),
				     "samples_per_s");

	assert_int_equal(s.r->n, 2);
	assert_int_equal(s.r->configs[0].n, 3);
	assert_true(s.r->configs[0].stats.mean == 12);
	assert_int_equal(s.r->configs[1].n, 1);
	assert_null(strstr(rfl_buf_str(&s.r->notes), "mixed"));
	assert_non_null(strstr(rfl_buf_str(&s.r->notes), "duplicate: base is ok in"));
	summary_free(&s);
}

/* config_hash is of what was asked for: an environment with two kinds of device has two
 * configurations; and a failure in one way is not made good by a success in another. */
static void other_devices_are_other_configurations(void **state)
{
	struct summary s = summarise(
		write_file(*state, "t.csv",
			   "schema_version,run_id,config_hash,repeat,label,env,status,device_name,"
			   "model,batch,precision,threads,samples_per_s,version\n"
			   "3,a,0a,1,lab_vgg16_fp32_bs8_run1,lab,ok,L4,vgg16,8,fp32,2,10,0.1.0\n"
			   "3,b,0a,2,lab_vgg16_fp32_bs8_run2,lab,ok,A100,vgg16,8,fp32,2,30,0.1.0\n"
			   "3,c,0b,2,lab_vgg16_fp32_bs8_run2,lab,crash,A100,vgg16,8,fp32,4,,0.1.0\n"
			   "3,d,0a,1,lab_vgg16_fp32_bs8_run1,lab,crash,,vgg16,8,fp32,,,0.1.0\n"),
		"samples_per_s");

	assert_int_equal(s.r->n, 3);
	assert_true(s.r->configs[0].stats.mean == 10);
	assert_int_equal(s.r->configs[0].failed, 0);
	assert_true(s.r->configs[1].stats.mean == 30);
	assert_int_equal(s.r->configs[2].n, 0);
	assert_int_equal(s.r->configs[2].failed, 1);
	assert_true(isnan(s.r->configs[2].stats.mean));
	summary_free(&s);
}

/* Two decimals, but small numbers are not rounded to nothing. */
static void small_numbers_in_markdown(void **state)
{
	struct summary s = summarise(write_file(*state, "t.csv",
						"env,model,batch,precision,opt_ms_mean\n"
						"lab,vgg16,8,fp32,0.0031\nlab,vgg16,8,fp32,0.0032\n"
						"lab,vgg16,16,fp32,0\n"),
				     "opt_ms");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	assert_ok(rfl_repeats_markdown(s.r, "", &out, &err), &err);
	assert_non_null(strstr(rfl_buf_str(&out), "| 8 | 0.00310 | 0.00320 | 0.00315 | 7.07e-05 |\n"
						  "| 16 | 0.00 | - | 0.00 | - |\n"));
	rfl_buf_fini(&out);
	summary_free(&s);
}

/* The same summary from rows that are kept whole and from what is kept of them, in less memory; a
 * row in the midst that a power cut tore is left out of both. */
static void many_rows_take_little_memory(void **state)
{
	enum { ROWS = 60000, CONFIGS = 20 };
	const struct rfl_repeats_options o = { .metric = metric_named("samples_per_s") };
	const char *path = tmp_path(*state, "metrics.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf texts[2] = { { 0 }, { 0 } };
	struct rusage before, after;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(HEADER, f);
	for (int i = 0; i < ROWS; i++) {
		const char *flags = i % 3 ? "" : i % 2 ? "unstable" : "drift unstable";
		const int repeat = i / CONFIGS;

		if (i == 50000)
			fputs("3,torn,\"a quote\n", f);
		fprintf(f,
			"3,%d,h%d,%d,2026-01-01T00:00:00Z,l%d_run%d,lab,%s,,resnet18,8,fp32,%d,1,,"
			"%d,%s,0.1\n",
			i, i % CONFIGS, repeat, i % CONFIGS, repeat, i % 1000 ? "ok" : "crash",
			i % CONFIGS, 1000 + i % 7, flags);
	}
	fclose(f);
	for (int rows = 0; rows < 2; rows++) {
		struct rfl_runs *runs = NULL;
		struct rfl_repeats *r = NULL;

		getrusage(RUSAGE_SELF, &before);
		assert_ok(rfl_runs_load(&path, 1, NULL, o.metric,
					rows ? RFL_ROWS_KEPT : RFL_ROWS_SHORT, &runs, &err),
			  &err);
		getrusage(RUSAGE_SELF, &after);
		/* 48 bytes, a label and a time, and the text of the file, which is read whole to
		 * leave out the torn row: 5 MB; a row alone has more than 1000 bytes */
#ifndef RFL_ARENA_DEBUG
		if (!rows)
			assert_true(after.ru_maxrss - before.ru_maxrss < 30 * 1024);
#endif
		assert_int_equal(runs->n, ROWS);
		assert_int_equal(runs->ledger->nrows, rows ? ROWS : 0);
		assert_ok(rfl_repeats_new(runs, &o, &r, &err), &err);
		assert_int_equal(r->n, CONFIGS);
		rfl_table_finish(rfl_repeats_table(r, false, ""), RFL_FORMAT_CSV, &texts[rows]);
		rfl_repeats_free(r);
		rfl_runs_free(runs);
	}
	/* configuration 0 has rows 0, 20, 40 ...: every third of its 3000 has both flags, 1000 in
	 * all, of which every fiftieth repeat failed: 20 */
	assert_non_null(strstr(texts[0].data, ",drift:980 unstable:980,"));
	assert_string_equal(texts[0].data, texts[1].data);
	rfl_buf_fini(&texts[0]);
	rfl_buf_fini(&texts[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_tables_to_the_digit),
		cmocka_unit_test(published_tables_in_their_form),
		in_tmpdir(coverage_of_27),
		in_tmpdir(a_retry_counts_once),
		in_tmpdir(one_repeat_has_no_spread),
		in_tmpdir(mixed_labels_are_not_averaged),
		in_tmpdir(failures_are_named),
		in_tmpdir(rows_that_are_no_repeats_are_left_out),
		in_tmpdir(drift_outliers_and_flags),
		in_tmpdir(filters),
		in_tmpdir(many_rows_take_little_memory),
		cmocka_unit_test_setup_teardown(a_tag_is_no_label, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(other_devices_are_other_configurations, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(small_numbers_in_markdown, tmpdir_make,
						tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
