/*
 * test_plot_chart.c - charts: the numbers in their scripts, texts that gnuplot must not execute,
 * and the errors if gnuplot is missing or fails.
 */
#include "rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "plot/chart.h"

static const struct rfl_chart_spec spec = { .data_dir = NULL };
static const char *const svg[] = { "svg" };

/* The chart of a ledger's environment. */
static struct rfl_chart *throughput(const char *path, const char *env, struct rfl_runs **runs,
				    struct rfl_repeats **r)
{
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0] };
	struct rfl_chart *c = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_runs_load(&path, 1, NULL, options.metric, RFL_ROWS_SHORT, runs, &err), &err);
	assert_ok(rfl_repeats_new(*runs, &options, r, &err), &err);
	assert_ok(rfl_chart_batches(*r, env, &rfl_chart_quantities[0], &c, &err), &err);
	return c;
}

static void script_of(const struct rfl_chart *c, struct rfl_buf *out)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	assert_ok(rfl_chart_script(c, &spec, svg, 1, true, out, &err), &err);
}

/* 136.75, 132.35, 129.15: mean 132.75, sample standard deviation 3.8157568056677...; the table of
 * another program's ledger. */
static void a_foreign_ledger_gives_means_and_deviations(void **state)
{
	const char *path = data_path("ledger/mac_mps.csv");
	struct rfl_repeats *r = NULL;
	struct rfl_runs *runs = NULL;
	struct rfl_chart *c = throughput(path, "mac_mps", &runs, &r);
	const struct rfl_chart_series *resnet = &c->panels[0].series[0];
	struct rfl_buf script, again;

	(void)state;
	assert_int_equal(c->panels[0].n, 3);
	assert_string_equal(resnet->name, "ResNet-50");
	assert_int_equal(resnet->n, 3);
	assert_close(resnet->rows[0].x, 16, 0);
	assert_close(resnet->rows[0].y, 132.75, 1e-12);
	assert_close(resnet->rows[0].hi - resnet->rows[0].y, 3.8157568056677, 1e-9);
	assert_int_equal(resnet->rows[0].n, 3);
	assert_string_equal(c->note, "n = 3 runs per point (mean); error bars: \xc2\xb1 one sample "
				     "standard deviation.");
	script_of(c, &script);
	script_of(c, &again);
	assert_string_equal(rfl_buf_str(&script), rfl_buf_str(&again));
	assert_non_null(strstr(script.data, "set output 'throughput_mac_mps.svg'"));
	assert_non_null(strstr(script.data, "set xtics ('16' 16, '32' 32, '64' 64)"));
	assert_non_null(strstr(script.data, "set yrange [0:200]"));
	assert_non_null(strstr(script.data, "vectors")); /* error bars */
	rfl_buf_fini(&script);
	rfl_buf_fini(&again);
	rfl_chart_free(c);
	rfl_repeats_free(r);
	rfl_runs_free(runs);
}

static void single_runs_have_no_error_bars(void **state)
{
	const char *path =
		write_file(*state, "a.csv",
			   "env,model,precision,batch,mode,backend,samples_per_s,status\n"
			   "lab,resnet50,fp32,8,train,cpu,50,ok\n"
			   "lab,resnet50,fp32,16,train,cpu,,oom\n");
	struct rfl_repeats *r = NULL;
	struct rfl_runs *runs = NULL;
	struct rfl_chart *c = throughput(path, "lab", &runs, &r);
	struct rfl_buf script;

	assert_true(isnan(c->panels[0].series[0].rows[0].lo));
	assert_string_equal(c->note,
			    "n = 1 run per point. 1 configuration without a successful run "
			    "is not shown.");
	script_of(c, &script);
	assert_null(strstr(script.data, "vectors"));
	rfl_buf_fini(&script);
	rfl_chart_free(c);
	rfl_repeats_free(r);
	rfl_runs_free(runs);
}

/* 56 models differ in colour or mark; of 58, two look like others, and the note says so. */
static void lines_differ_or_the_note_says_so(void **state)
{
	for (int n = 56; n <= 58; n += 2) {
		char text[1 << 13] =
			"env,model,precision,batch,mode,backend,samples_per_s,status\n";
		struct rfl_repeats *r = NULL;
		struct rfl_runs *runs = NULL;
		struct rfl_chart *c;

		for (int i = 0; i < n; i++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "lab,m%d,fp32,8,train,cpu,50,ok\n", i);
		c = throughput(write_file(*state, "a.csv", text), "lab", &runs, &r);
		assert_int_equal(c->panels[0].n, n);
		if (n == 56)
			assert_null(strstr(c->note, "look"));
		else
			assert_non_null(strstr(c->note, "2 lines look like an earlier one"));
		rfl_chart_free(c);
		rfl_repeats_free(r);
		rfl_runs_free(runs);
	}
}

/* Two repeats of batch 4: forward 150 and 156, backward 320 and 332, optimizer 28 and 30 ms;
 * waiting 1 and unknown. Per sample, the segments end at 153 / 4, + 326 / 4, + 29 / 4, + 1 / 4. */
static void phases_are_means_per_sample(void **state)
{
	static const double ends[] = { 38.25, 119.75, 127, 127.25 };
	const char *path = write_file(*state, "a.csv",
				      "env,model,precision,batch,mode,backend,samples_per_s,status,"
				      "fwd_ms_mean,bwd_ms_mean,opt_ms_mean,data_wait_ms_mean\n"
				      "lab,resnet50,fp32,4,train,cpu,8,ok,150,320,28,1\n"
				      "lab,resnet50,fp32,4,train,cpu,8,ok,156,332,30,\n"
				      "lab,vgg16,fp32,4,train,cpu,8,ok,,,,\n");
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0] };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_repeats *r = NULL;
	struct rfl_runs *runs = NULL;
	struct rfl_chart *c = NULL;

	assert_ok(rfl_runs_load(&path, 1, NULL, options.metric, RFL_ROWS_TIMES, &runs, &err), &err);
	assert_ok(rfl_repeats_new(runs, &options, &r, &err), &err);
	assert_ok(rfl_chart_phases(r, runs, "lab", &c, &err), &err);
	assert_int_equal(c->nbars, 1);
	assert_string_equal(c->bars[0].name, "ResNet-50, batch 4");
	assert_string_equal(c->bars[0].end, "509 ms per step");
	for (size_t i = 0; i < 4; i++)
		assert_close(c->panels[0].series[i].rows[0].hi, ends[i], 1e-12);
	assert_non_null(strstr(c->note, "1 configuration without times of phases is not shown."));
	assert_null(strstr(c->note, "Not measured"));
	rfl_chart_free(c);
	rfl_repeats_free(r);
	rfl_runs_free(runs);
}

/* Times of 10, 10, 20 and 10 ms: 1, 1, 2, 1 medians. */
static void steps_are_relative_to_the_median_of_their_run(void **state)
{
	static const struct {
		const char *file, *text;
		enum rfl_rc rc;
		const char *words;
	} cases[] = {
		{ "steps/a1.csv", "step,step_ms\n0,10\n1,10\n2,20\n3,10\n4,\n", RFL_OK, NULL },
		{ "steps/a1.csv", "step,step_ms\n0,10\n1,fast\n", RFL_EFORMAT, "a1.csv:3" },
		{ "steps/a1.csv", "step,ms\n0,10\n", RFL_EFORMAT, "step_ms" },
		{ "steps/a2.csv", "step,step_ms\n0,10\n", RFL_EMISSING, "steps/a1.csv" },
	};
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0] };
	const char *path = write_file(*state, "m.csv",
				      "run_id,env,model,precision,batch,mode,backend,samples_per_s,"
				      "status\n"
				      "a1,lab,resnet50,fp32,4,train,cpu,8,ok\n"
				      "../m,lab,resnet50,fp32,4,train,cpu,8,ok\n");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_repeats *r = NULL;
	struct rfl_chart *loss = NULL;
	struct rfl_runs *runs = NULL;

	assert_ok(rfl_runs_load(&path, 1, NULL, options.metric, RFL_ROWS_TIMES, &runs, &err), &err);
	assert_ok(rfl_repeats_new(runs, &options, &r, &err), &err);
	assert_int_equal(mkdir(tmp_path(*state, "steps"), 0777), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *file = write_file(*state, cases[i].file, cases[i].text);
		struct rfl_chart *c = NULL;

		err = (struct rfl_err)RFL_ERR_INIT;
		assert_int_equal(rfl_chart_steps(r, runs, "lab", "steps", NULL, &c, &err),
				 cases[i].rc);
		if (c) {
			const struct rfl_chart_row *all = c->panels[0].series[0].rows;
			const struct rfl_chart_row *drift = c->panels[1].series[0].rows;

			assert_int_equal(c->panels[0].series[0].n, 4);
			assert_int_equal(c->panels[1].series[0].n, 4);
			assert_true(all[2].x == 1 && all[2].y == 75);
			assert_true(all[3].x == 2 && all[3].y == 100);
			assert_true(drift[2].x == 3 && drift[2].y == 2);
			assert_true(drift[3].x == 4 && drift[3].y == 1);
			assert_non_null(strstr(c->note, "1 run has no file of steps"));
		} else {
			assert_says(&err, cases[i].words);
		}
		rfl_chart_free(c);
		assert_int_equal(unlink(file), 0);
	}
	/* the loss is unchanged; a step without one is omitted */
	(void)write_file(*state, "steps/a1.csv", "step,loss\n0,7.5\n1,\n2,-0.5\n");
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_ok(rfl_chart_steps(r, runs, "lab", "loss", NULL, &loss, &err), &err);
	assert_int_equal(loss->npanels, 1);
	assert_int_equal(loss->panels[0].series[0].n, 2);
	assert_true(loss->panels[0].series[0].rows[0].y == 7.5);
	assert_true(loss->panels[0].series[0].rows[1].y == -0.5);
	rfl_chart_free(loss);
	rfl_repeats_free(r);
	rfl_runs_free(runs);
}

static struct rfl_chart *demo(const char *name)
{
	struct rfl_chart *c = rfl_chart_new("demo", "lab");

	assert_non_null(c);
	c->npanels = 1;
	c->panels[0].x.title = c->panels[0].y.title = name;
	c->title = c->subtitle = c->note = name;
	for (int i = 1; i < 3; i++) {
		const struct rfl_chart_row row = { .x = i, .y = i, .lo = NAN, .hi = NAN, .n = 1 };
		const char *text = i == 1 ? name : "other";

		rfl_chart_add(c, rfl_chart_series(c, 0, text), row);
	}
	return c;
}

/* Texts that would run a command, end a string, a block of data or a line, or be formatted. */
static const char *const hostile[] = {
	"'`touch pwned`'",
	"`touch pwned`",
	"\"; system(\"touch pwned\"); \"",
	"'; system('touch pwned') #",
	"'.system('touch pwned').'",
	"\\'.system(\"touch pwned\").'\\",
	"EOD\n!touch pwned\n",
	"$x @y {z}_1^2 %d %% \\n",
	"\xe6\xa8\xa1\xe5\x9e\x8b \\",
};

/* Read the script as gnuplot does: every byte of a text is inside a string. */
static void texts_stay_inside_of_strings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		struct rfl_chart *c = demo(hostile[i]);
		struct rfl_buf script;
		char quote = 0;

		script_of(c, &script);
		for (const char *s = script.data; *s; s++) {
			if (quote) {
				/* the only texts in double quotes are "'" and "\n" */
				if (quote == '"' && *s != '"')
					assert_true(*s == '\'' || *s == '\\' || *s == 'n');
				assert_int_not_equal(*s, '\n');
				quote = *s == quote ? 0 : quote;
			} else {
				assert_false(strncmp(s, "touch", 5) == 0 || *s == '`' || *s == '!');
				quote = *s == '\'' || *s == '"' ? *s : 0;
			}
		}
		assert_int_equal(quote, 0);
		rfl_buf_fini(&script);
		rfl_chart_free(c);
	}
}

static void gnuplot_runs_no_text(void **state)
{
	char here[4096];

	if (rfl_chart_probe(NULL, NULL) != RFL_OK)
		skip();
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(*state), 0);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		struct rfl_chart *c = demo(hostile[i]);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf out;

		rfl_buf_init(&out, 0);
		assert_ok(rfl_chart_draw(c, &spec, "svg", "demo.gp", &out, &err), &err);
		if (i == 0) /* printed unchanged */
			assert_non_null(strstr(out.data, "<text>'`touch pwned`'</text>"));
		rfl_buf_fini(&out);
		rfl_chart_free(c);
	}
	assert_int_equal(chdir(here), 0);
	assert_false(rfl_file_exists(tmp_path(*state, "pwned")));
}

static void pictures_are_whole_and_reproducible(void **state)
{
	struct rfl_chart *c = demo("A");
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; rfl_chart_probe(NULL, NULL) == RFL_OK && rfl_chart_formats[i]; i++) {
		struct rfl_buf a, b;

		rfl_buf_init(&a, 0);
		rfl_buf_init(&b, 0);
		assert_ok(rfl_chart_draw(c, &spec, rfl_chart_formats[i], "x", &a, &err), &err);
		if (i == 2)
			sleep(1); /* the time in a PDF file must not matter */
		assert_ok(rfl_chart_draw(c, &spec, rfl_chart_formats[i], "x", &b, &err), &err);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.data, b.data, a.len);
		rfl_buf_fini(&a);
		rfl_buf_fini(&b);
	}
	rfl_chart_free(c);
}

static void a_page_has_a_maximum(void **state)
{
	struct rfl_chart *c = demo("A");
	const struct rfl_chart_row row = { .x = 1, .y = 1, .lo = NAN, .hi = NAN, .n = 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	for (int i = 0; i < 1000; i++)
		rfl_chart_add(c, rfl_chart_series(c, 0, rfl_scene_printf(c->scene, "%d", i)), row);
	assert_int_equal(rfl_chart_script(c, &spec, svg, 1, true, &out, &err), RFL_EINVAL);
	assert_says(&err, "1002 configurations do not fit on a page");
	rfl_buf_fini(&out);
	rfl_chart_free(c);
}

/* A program called gnuplot that fails in a known way. */
static void failures_name_the_script(void **state)
{
	static const struct {
		const char *program;
		enum rfl_rc rc;
		const char *words;
	} cases[] = {
		{ "cat >/dev/null; echo 'line 7: no such terminal' >&2; exit 1", RFL_EFAILED,
		  "f/demo.gp: gnuplot failed: line 7: no such terminal" },
		{ "cat >/dev/null", RFL_EFAILED, "f/demo.gp: gnuplot wrote no svg picture" },
		{ "cat >/dev/null; echo '<?xml>'", RFL_EFAILED, "gnuplot wrote no svg picture" },
		{ "kill -9 $$", RFL_EFAILED, "f/demo.gp: gnuplot failed" },
		{ NULL, RFL_EUNAVAILABLE, "gnuplot-nox" },
	};
	char path[4096], text[256];
	struct rfl_chart *c = demo("A");

	(void)snprintf(path, sizeof(path), "%s", getenv("PATH"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf out;

		(void)snprintf(text, sizeof(text), "#!/bin/sh\nPATH=/usr/bin:/bin\n%s\n",
			       cases[i].program ? cases[i].program : "");
		assert_int_equal(
			chmod(write_file(*state, "gnuplot", text), cases[i].program ? 0755 : 0644),
			0);
		assert_int_equal(setenv("PATH", *state, 1), 0);
		rfl_buf_init(&out, 0);
		assert_int_equal(rfl_chart_draw(c, &spec, "svg", "f/demo.gp", &out, &err),
				 cases[i].rc);
		assert_int_equal(setenv("PATH", path, 1), 0);
		assert_says(&err, cases[i].words);
		assert_int_equal(out.len, 0);
		rfl_buf_fini(&out);
	}
	rfl_chart_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_ledger_gives_means_and_deviations),
		cmocka_unit_test_setup_teardown(single_runs_have_no_error_bars, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(lines_differ_or_the_note_says_so, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(phases_are_means_per_sample, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(steps_are_relative_to_the_median_of_their_run,
						tmpdir_make, tmpdir_remove),
		cmocka_unit_test(texts_stay_inside_of_strings),
		cmocka_unit_test_setup_teardown(gnuplot_runs_no_text, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(a_page_has_a_maximum),
		cmocka_unit_test(pictures_are_whole_and_reproducible),
		cmocka_unit_test_setup_teardown(failures_name_the_script, tmpdir_make,
						tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
