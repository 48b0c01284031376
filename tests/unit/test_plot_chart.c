/*
 * test_plot_chart.c - charts: their numbers, what is drawn and what is refused, and texts that
 * gnuplot must not execute.
 */
#include "rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/proc.h"
#include "plot/chart.h"
#include "plot/plot.h"

/* The chart of a table. */
struct fixture {
	void *dir;
	struct rfl_runs *runs;
	struct rfl_repeats *r;
	struct rfl_chart *c;
	struct rfl_err err;
};

static void drop(struct fixture *f)
{
	rfl_chart_free(f->c);
	rfl_repeats_free(f->r);
	rfl_runs_free(f->runs);
	*f = (struct fixture){ .dir = f->dir, .err = RFL_ERR_INIT };
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return f ? tmpdir_make(&f->dir) : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int failed;

	drop(f);
	failed = tmpdir_remove(&f->dir);
	free(f);
	return failed;
}

/* Load the runs and repeats of a table instead of those before. */
static void load(struct fixture *f, const char *path)
{
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0] };

	drop(f);
	assert_ok(rfl_runs_load(&path, 1, NULL, options.metric, RFL_ROWS_WHOLE, &f->runs, &f->err),
		  &f->err);
	assert_ok(rfl_repeats_new(f->runs, &options, &f->r, &f->err), &f->err);
}

static void load_text(struct fixture *f, const char *text)
{
	load(f, write_file(f->dir, "m.csv", text));
}

/* Group the runs by their losses, too. */
static void load_losses(struct fixture *f)
{
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0],
						     .losses = true };

	rfl_repeats_free(f->r);
	f->r = NULL;
	assert_ok(rfl_repeats_new(f->runs, &options, &f->r, &f->err), &f->err);
}

/* Create a chart of the table. */
static enum rfl_rc make(struct fixture *f, const char *kind, const char *env)
{
	const struct rfl_chart_input in = { .repeats = f->r, .runs = f->runs, .env = env };

	return rfl_chart_make(rfl_chart_find(kind), &in, &f->c, &f->err);
}

static const struct rfl_chart *throughput(struct fixture *f, const char *env)
{
	assert_ok(make(f, "throughput", env), &f->err);
	return f->c;
}

static void script_of(const struct rfl_chart *c, struct rfl_buf *out)
{
	rfl_buf_init(out, 0);
	rfl_chart_script(c, out);
}

/* Draw a chart in a style and on a page of this width. */
static const struct rfl_scene *draw(struct rfl_chart *c, const char *style, double width)
{
	const struct rfl_chart_spec spec = { .style = style, .width = width };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_chart_draw(c, &spec, &err), &err);
	return c->scene;
}

static size_t count(const struct rfl_scene *s, enum rfl_prim_kind kind, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->prims[i].kind == kind &&
		     (!text || strcmp(s->prims[i].at.text.text, text) == 0);
	return n;
}

/* The position of a text. */
static struct rfl_xy at(const struct rfl_scene *s, const char *text)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->prims[i].kind == RFL_PRIM_TEXT &&
		    strcmp(s->prims[i].at.text.text, text) == 0)
			return (struct rfl_xy){ s->prims[i].at.text.x, s->prims[i].at.text.y };
	fail_msg("no '%s'", text);
	return (struct rfl_xy){ 0, 0 };
}

/* 136.75, 132.35, 129.15: mean 132.75, sample standard deviation 3.8157568056677...; the table of
 * another program's ledger. */
static void a_foreign_ledger_gives_means_and_deviations(void **state)
{
	const struct rfl_chart_series *resnet;
	struct fixture *f = *state;
	const struct rfl_scene *s;
	const struct rfl_chart *c;
	struct rfl_buf script, again;
	size_t lines;

	load(*state, data_path("ledger/mac_mps.csv"));
	c = throughput(*state, "mac_mps");
	resnet = &c->panels[0].series[0];
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
	assert_non_null(strstr(script.data, "set output 'throughput_mac_mps_gnuplot.png'"));
	assert_non_null(strstr(script.data, "set logscale x 2"));
	assert_non_null(strstr(script.data, "1:2:3:4 with yerrorlines title 'VGG-16'"));
	rfl_buf_fini(&script);
	rfl_buf_fini(&again);
	/* equal distances between powers of two, and from 0 to 200 */
	s = draw(f->c, NULL, 0);
	assert_close(at(s, "64").x - at(s, "32").x, at(s, "32").x - at(s, "16").x, 1e-9);
	assert_close(at(s, "0").y - at(s, "100").y, at(s, "100").y - at(s, "200").y, 1e-9);
	assert_int_equal(count(s, RFL_PRIM_MARKER, NULL), 9 + 3); /* and the key */
	/* the same again: a drawing replaces the one before */
	lines = count(s, RFL_PRIM_LINE, NULL);
	assert_int_equal(count(draw(f->c, NULL, 0), RFL_PRIM_LINE, NULL), lines);
}

static void single_runs_have_no_error_bars(void **state)
{
	const struct rfl_chart *c;
	struct rfl_buf script;

	load_text(*state, "env,model,precision,batch,mode,backend,samples_per_s,status\n"
			  "lab,resnet50,fp32,8,train,cpu,50,ok\n"
			  "lab,resnet50,fp32,32,train,cpu,60,ok\n"
			  "lab,resnet50,fp32,16,train,cpu,,oom\n");
	c = throughput(*state, "lab");
	assert_true(isnan(c->panels[0].series[0].rows[0].lo));
	assert_string_equal(c->note,
			    "n = 1 run per point. 1 configuration without a successful run "
			    "is not shown.");
	script_of(c, &script);
	assert_null(strstr(script.data, "yerrorlines"));
	rfl_buf_fini(&script);
}

/* 56 models differ in colour or mark; of 58, two look like others, and the note says so. */
static void lines_differ_or_the_note_says_so(void **state)
{
	for (int n = 56; n <= 58; n += 2) {
		char text[1 << 14] =
			"env,model,precision,batch,mode,backend,samples_per_s,status\n";
		const struct rfl_chart *c;

		for (int i = 0; i < n; i++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "lab,m%d,fp32,8,train,cpu,50,ok\n"
				       "lab,m%d,fp32,16,train,cpu,50,ok\n",
				       i, i);
		load_text(*state, text);
		c = throughput(*state, "lab");
		assert_int_equal(c->panels[0].n, n);
		if (n == 56)
			assert_null(strstr(c->note, "look"));
		else
			assert_non_null(strstr(c->note, "2 lines look like an earlier one"));
	}
}

/* As in rooflines: the mark is the model, the colour the precision, else other differences. */
static void marks_are_models_and_colours_precisions(void **state)
{
	static const struct {
		const char *rows;
		int color[4], marker[4];
	} cases[] = {
		{ "lab,a,fp32,8,0,1,ok\nlab,a,amp,8,0,1,ok\nlab,b,fp32,8,0,1,ok\nlab,b,amp,8,0,1,"
		  "ok\nlab,a,fp32,16,0,1,ok\n",
		  { 0, 1, 0, 1 },
		  { 0, 0, 1, 1 } },
		{ "lab,a,fp32,8,0,1,ok\nlab,a,fp32,8,4,1,ok\nlab,b,fp32,8,0,1,ok\nlab,b,fp32,8,4,1,"
		  "ok\nlab,a,fp32,16,0,1,ok\n",
		  { 0, 1, 0, 1 },
		  { 0, 0, 1, 1 } },
		{ "lab,a,fp32,8,0,1,ok\nlab,b,fp32,8,0,1,ok\nlab,c,fp32,8,0,1,ok\nlab,d,fp32,8,0,1,"
		  "ok\nlab,a,fp32,16,0,1,ok\n",
		  { 0, 1, 2, 3 },
		  { 0, 1, 2, 3 } },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		char text[512] = "env,model,precision,batch,workers,samples_per_s,status\n";
		const struct rfl_chart *c;

		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s",
			       cases[i].rows);
		load_text(*state, text);
		c = throughput(*state, "lab");
		assert_int_equal(c->panels[0].n, 4);
		for (size_t k = 0; k < 4; k++) {
			const struct rfl_chart_series *s = &c->panels[0].series[k];

			assert_int_equal(s->color, cases[i].color[k]);
			assert_int_equal(s->marker, cases[i].marker[k]);
			if (i == 1 && k == 1) /* in the words of rooflines */
				assert_string_equal(s->name, "a, 4 workers");
			for (size_t j = 0; i < 2 && j < k; j++) /* the dash is the model, too */
				assert_int_equal(s->dash == c->panels[0].series[j].dash,
						 s->marker == c->panels[0].series[j].marker);
		}
	}
}

/* A line per batch: ordered colours, whatever the order of the runs. */
static void batches_have_ordered_colours(void **state)
{
	static const int colors[] = { 1, 0, 2 };
	struct fixture *f = *state;
	const struct rfl_chart *c;

	load_text(f, "env,model,precision,batch,mode,backend,context_length,status,step_ms_mean\n"
		     "lab,gpt2,fp32,16,train,cpu,256,ok,10\n"
		     "lab,gpt2,fp32,8,train,cpu,256,ok,5\n"
		     "lab,gpt2,fp32,8,train,cpu,512,ok,9\n"
		     "lab,gpt2,fp32,32,train,cpu,256,oom,\n");
	assert_ok(make(f, "scaling", "lab"), &f->err);
	c = f->c;
	assert_int_equal(c->nramp, 3);
	assert_int_equal(c->panels[0].n, 3);
	for (size_t i = 0; i < 3; i++) {
		const char *name = c->panels[0].series[i].name;
		const size_t at = strstr(name, "batch 16") ? 0 : strstr(name, "batch 8") ? 1 : 2;

		assert_int_equal(c->panels[0].series[i].color, colors[at]);
		assert_int_equal(c->panels[0].series[i].marker, 0);
	}
}

/* Two repeats of batch 4: forward 150 and 156, backward 320 and 332, optimizer 28 and 30 ms;
 * waiting 1 and unknown. Per sample, the segments end at 153 / 4, + 326 / 4, + 29 / 4, + 1 / 4. */
static void phases_are_means_per_sample(void **state)
{
	static const double ends[] = { 38.25, 119.75, 127, 127.25 };
	struct fixture *f = *state;
	const struct rfl_chart *c;

	load_text(f, "env,model,precision,batch,mode,backend,samples_per_s,status,"
		     "fwd_ms_mean,bwd_ms_mean,opt_ms_mean,data_wait_ms_mean\n"
		     "lab,resnet50,fp32,4,train,cpu,7,ok,150,320,28,1\n"
		     "lab,resnet50,fp32,4,train,cpu,7,ok,156,332,30,\n"
		     "lab,vgg16,fp32,4,train,cpu,8,ok,,,,\n");
	assert_ok(make(f, "phases", "lab"), &f->err);
	c = f->c;
	assert_int_equal(c->nbars, 1);
	assert_string_equal(c->bars[0].name, "ResNet-50, batch 4");
	assert_string_equal(c->bars[0].end, "509 ms per step");
	for (size_t i = 0; i < 4; i++)
		assert_close(c->panels[0].series[i].rows[0].hi, ends[i], 1e-12);
	assert_non_null(strstr(c->note, "1 configuration without times of phases is not shown."));
	assert_null(strstr(c->note, "Not measured"));
}

/* A step of 100 ms (batch 4 at 40 samples/s), of which the device computes 90: 6 ms of waiting and
 * 4 of the 20 ms of copying are outside of it. */
static void what_overlaps_is_not_counted_twice(void **state)
{
	static const double widths[] = { 30, 50, 10, 6, 4 };
	struct fixture *f = *state;
	const struct rfl_chart *c;

	load_text(f, "env,model,precision,batch,mode,backend,samples_per_s,status,"
		     "fwd_ms_mean,bwd_ms_mean,opt_ms_mean,data_wait_ms_mean,upload_ms_mean\n"
		     "lab,resnet50,fp32,4,train,cuda,40,ok,30,50,10,6,20\n");
	assert_ok(make(f, "phases", "lab"), &f->err);
	c = f->c;
	assert_int_equal(c->panels[0].n, 5);
	for (size_t i = 0; i < 5; i++) {
		const struct rfl_chart_row *row = &c->panels[0].series[i].rows[0];

		assert_close(4 * (row->hi - row->lo), widths[i], 1e-9);
	}
	assert_string_equal(c->bars[0].end, "100 ms per step");
	assert_non_null(strstr(c->note, "Waiting and copying while the device computes are not"));
}

/* Repeats of 10 and 12 ms: mean 11, deviation sqrt(2); one run has the deviation of its steps. The
 * longest context ran out of memory, and a backward time is 0. */
static void scaling_has_a_line_per_model_and_marks_what_does_not_fit(void **state)
{
	const struct rfl_chart_series *d64;
	struct fixture *f = *state;
	const struct rfl_chart *c;
	struct rfl_buf script;

	load_text(f, "env,model,precision,batch,mode,backend,context_length,status,step_ms_mean,"
		     "step_ms_std,fwd_ms_mean,fwd_ms_std,bwd_ms_mean,mem_alloc_peak_bytes\n"
		     "lab,attention_d64,fp32,8,fwd_bwd,cuda,256,ok,10,1,3,0.5,7,2e9\n"
		     "lab,attention_d64,fp32,8,fwd_bwd,cuda,256,ok,12,1,3,0.5,9,2e9\n"
		     "lab,attention_d64,fp32,8,fwd_bwd,cuda,512,ok,40,2,13,0.25,0,4e9\n"
		     "lab,attention_d64,fp32,8,fwd_bwd,cuda,1024,oom,,,,,,\n"
		     "lab,attention_d128,fp32,8,fwd_bwd,cuda,256,ok,20,1,6,0.5,14,4e9\n"
		     "lab,resnet50,fp32,8,fwd_bwd,cuda,,ok,20,1,6,0.5,14,4e9\n");
	assert_ok(make(f, "scaling", "lab"), &f->err);
	c = f->c;
	assert_int_equal(c->npanels, 4);
	assert_int_equal(c->panels[0].n, 2);
	d64 = &c->panels[2].series[0]; /* the whole step */
	assert_string_equal(d64->name, "attention_d64");
	assert_int_equal(d64->n, 3);
	assert_close(d64->rows[0].x, 256, 0);
	assert_close(d64->rows[0].y, 11, 1e-12);
	assert_close(d64->rows[0].hi - 11, 1.4142135623730951, 1e-12);
	assert_close(d64->rows[1].hi - 40, 2, 1e-12);
	assert_close(d64->rows[2].x, 1024, 0);
	assert_int_equal(d64->rows[2].n, 0);
	assert_true(isnan(d64->rows[2].y));
	assert_int_equal(c->panels[1].series[0].n, 2); /* without the 0 */
	assert_close(c->panels[3].series[0].rows[1].y, 4e9 / 0x1p30, 1e-12);
	assert_non_null(
		strstr(c->note, "Memory: allocated by the engine. Crossed marks: out of memory"));
	assert_non_null(strstr(c->note, "n = 1 to 2 runs per point (mean of the runs); times of a "
					"run are means over its steps; error bars"));
	assert_non_null(strstr(c->note, "1 value of 0 or less is not shown"));
	assert_non_null(strstr(c->note, "1 configuration without a context length"));
	script_of(c, &script);
	assert_non_null(strstr(script.data, "set logscale x 2\nset logscale y 10"));
	assert_non_null(strstr(script.data, "1024 NaN NaN NaN 0"));
	rfl_buf_fini(&script);
	/* a mark for each of 3 + 2 values of forward, 2 + 2 of backward and so on, the key, and the
	 * crossed marks */
	assert_int_equal(count(draw(f->c, NULL, 0), RFL_PRIM_MARKER, NULL), 3 + 2 + 3 + 3 + 4 + 2);

	/* at a single length there is no course */
	load_text(f, "env,model,precision,batch,mode,backend,context_length,status,step_ms_mean\n"
		     "lab,gpt2,fp32,8,train,cuda,256,ok,20\n"
		     "lab,gpt2,fp32,16,train,cuda,256,ok,40\n");
	assert_int_equal(make(f, "scaling", "lab"), RFL_EMISSING);
	assert_says(&f->err, "lab: all values are at one place of the axis 'Context length "
			     "(tokens)'; a chart needs two");
	rfl_err_clear(&f->err);
	load_text(f, "env,model,precision,batch,mode,backend,samples_per_s,status\n"
		     "lab,resnet50,fp32,8,train,cuda,20,ok\n"
		     "lab,resnet18,fp32,8,train,cuda,50,ok\n");
	assert_int_equal(make(f, "throughput", "lab"), RFL_EMISSING);
	assert_says(&f->err, "lab: all values are at one place of the axis 'Batch size");

	load_text(f, "env,model,precision,batch,mode,backend,status,step_ms_mean\n"
		     "lab,resnet50,fp32,8,train,cuda,ok,20\n");
	assert_int_equal(make(f, "scaling", "lab"), RFL_EMISSING);
	assert_says(&f->err, "no run has a context length");
}

/* Two repeats with accuracies of 0.5 and 0.6 in the second epoch: 55 %, deviation sqrt(50). */
static void accuracy_has_means_per_epoch_of_all_environments(void **state)
{
	static const char head[] = "epoch,lr,train_loss,train_accuracy,test_loss,test_accuracy,"
				   "train_s,test_s,samples_per_s\n";
	char text[512];
	const struct rfl_chart_series *s;
	struct fixture *f = *state;
	const struct rfl_chart *c;

	load_text(f, "schema_version,run_id,config_hash,env,model,precision,batch,mode,backend,"
		     "samples_per_s,status\n"
		     "3,a,x,lab_cpu,resnet18,fp32,8,train,cpu,10,ok\n"
		     "3,b,x,lab_cpu,resnet18,fp32,8,train,cpu,10,ok\n"
		     "3,c,y,lab_gpu,resnet18,fp32,8,train,cuda,10,ok\n"
		     "3,d,z,lab_gpu,vgg16,fp32,8,train,cuda,10,ok\n");
	assert_int_equal(make(f, "accuracy", NULL), RFL_EMISSING);
	assert_says(&f->err, "epochs/a.csv");
	rfl_err_clear(&f->err);
	(void)snprintf(text, sizeof(text), "%s1,0.1,,,,,9,1,5\n,0.1,2,0.3,2.1,,9,1,5\n", head);
	(void)write_file(f->dir, "epochs/a.csv", text);
	assert_int_equal(make(f, "accuracy", NULL), RFL_EMISSING);
	assert_says(&f->err, "no file of epochs has a value in column test_loss");
	rfl_err_clear(&f->err);
	(void)snprintf(text, sizeof(text),
		       "%s1,0.1,2,0.3,2.1,0.25,9,1,5\n2,0.1,1,0.6,1.1,0.5,9,1,5\n", head);
	(void)write_file(f->dir, "epochs/a.csv", text);
	(void)snprintf(text, sizeof(text), "%s2,0.1,1,0.6,1.3,0.6,9,1,5\n1,0.1,2,0.3,2.1,,9,1,5\n",
		       head);
	(void)write_file(f->dir, "epochs/b.csv", text);
	(void)write_file(f->dir, "epochs/c.csv", text);
	assert_ok(make(f, "accuracy", NULL), &f->err);
	c = f->c;
	assert_string_equal(c->stem, "accuracy_all");
	assert_int_equal(c->panels[0].n, 4);
	assert_int_equal(c->panels[1].n, 4);
	s = &c->panels[1].series[0];
	assert_string_equal(s->name, "lab_cpu: ResNet-18, batch 8, test");
	assert_int_equal(s->n, 2);
	assert_close(s->rows[0].x, 1, 0);
	assert_close(s->rows[0].y, 25, 1e-12);
	assert_true(isnan(s->rows[0].lo));
	assert_close(s->rows[1].y, 55, 1e-12);
	assert_close(s->rows[1].hi - 55, 7.0710678118654755, 1e-12);
	assert_close(c->panels[0].series[0].rows[1].y, 1.2, 1e-12);
	assert_close(c->panels[2].series[1].rows[1].y, 9, 0);      /* of training */
	assert_close(c->panels[3].series[0].rows[1].x, 18, 1e-12); /* two epochs */
	assert_close(c->panels[3].series[0].rows[1].y, 55, 1e-12);
	assert_int_equal(c->panels[1].series[1].color, s->color); /* train and test */
	assert_int_not_equal(c->panels[1].series[1].dash, s->dash);
	assert_int_not_equal(c->panels[1].series[2].color, s->color);
	assert_non_null(strstr(c->note, "3 training runs"));
	assert_non_null(strstr(c->note, "1 run has no file of epochs"));

	/* files without times: there is no panel of times */
	for (const char *name = "abc"; *name; name++)
		(void)write_file(f->dir, rfl_scene_printf(c->scene, "epochs/%c.csv", *name),
				 "epoch,test_loss\n1,2.5\n2,2.25\n");
	rfl_chart_free(f->c);
	f->c = NULL;
	assert_ok(make(f, "accuracy", NULL), &f->err);
	assert_int_equal(f->c->npanels, 1);
	assert_non_null(strstr(f->c->note, "Without values: Accuracy (%), Time (s)."));

	(void)write_file(f->dir, "epochs/c.csv", "epoch,test_loss\n1,2.5\n2,x\n");
	assert_int_equal(make(f, "accuracy", NULL), RFL_EFORMAT);
	assert_says(&f->err, "c.csv:3: column 'test_loss': 'x' is not a number");
}

/* Training runs with other rates or data are drawn apart, also with equal hashes; other seeds are
 * repeats. Losses of bursts are those of training runs, too. */
static void only_equal_trainings_are_averaged(void **state)
{
#define HEADER                                                                                \
	"schema_version,run_id,config_hash,env,model,precision,batch,mode,backend,data_mode," \
	"data_name,data_digest,lr,seed,epochs,samples_per_s,status\n"
#define ROW(id, name, digest, lr, seed, epochs)                                           \
	"5," id ",x,lab,resnet18,fp32,8,train,cpu,mnist," name "," digest "," lr "," seed \
	"," epochs ",10,ok\n"
	static const char *const names[] = {
		"lab: ResNet-18, batch 8, one, data d1, learning rate 0.1, test",
		"lab: ResNet-18, batch 8, one, data d1, learning rate 0.5, test",
		"lab: ResNet-18, batch 8, two, data d2, learning rate 0.1, test",
	};
	struct fixture *f = *state;
	char path[64];

	load_text(f, HEADER ROW("a", "one", "d1", "0.1", "0", "1")
			     ROW("b", "one", "d1", "0.1", "1", "1")
				     ROW("c", "one", "d1", "0.5", "0", "1")
					     ROW("d", "two", "d2", "0.1", "0", "1"));
	for (const char *id = "abcd"; *id; id++) {
		(void)snprintf(path, sizeof(path), "epochs/%c.csv", *id);
		(void)write_file(f->dir, path,
				 *id == 'b' ? "epoch,test_loss\n1,4\n2,4\n"
					    : "epoch,test_loss\n1,2\n2,2\n");
		(void)snprintf(path, sizeof(path), "steps/%c.csv", *id);
		(void)write_file(f->dir, path, "step,loss\n0,2\n1,2\n");
	}
	assert_ok(make(f, "accuracy", NULL), &f->err);
	assert_int_equal(f->c->panels[0].n, 2 * RFL_ARRAY_LEN(names)); /* test and train */
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		assert_string_equal(f->c->panels[0].series[2 * i].name, names[i]);
		assert_true(f->c->panels[0].series[2 * i].rows[0].y == (i == 0 ? 3 : 2));
	}

	load_text(f,
		  HEADER ROW("a", "one", "d1", "0.1", "0", "") ROW("b", "one", "d1", "0.1", "1", "")
			  ROW("c", "one", "d1", "0.5", "0", ""));
	assert_int_equal(f->r->n, 1); /* their speed is that of repeats */
	load_losses(f);
	assert_int_equal(f->r->n, 2);
	assert_ok(make(f, "loss", "lab"), &f->err);
	assert_int_equal(f->c->panels[0].n, 2);
	assert_string_equal(f->c->panels[0].series[1].name,
			    "ResNet-18, batch 8, learning rate 0.5");
#undef HEADER
#undef ROW
}

/* Two cores with an L1 of 48 KiB each, and a shared L3 of 4 MiB. A ceiling of one core counts for
 * both, as does the capacity of its cache. */
static void bandwidth_has_a_panel_per_scope_and_the_capacities(void **state)
{
	struct rfl_peak_size l1[] = { { "node", 16384, 400e9 },
				      { "node", 65536, 300e9 },
				      { "core", 8192, 200e9 } },
			     l3[] = { { "node", 3145728, 60e9 }, { "core", 3145728, 50e9 } };
	struct rfl_peak_level levels[] = {
		{ .level = "L1",
		  .scope = "core",
		  .capacity_bytes = 49152,
		  .nsweep = 3,
		  .sweep = l1,
		  .peak = { .status = RFL_PEAK_MEASURED,
			    .value = 210e9,
			    .kernel = "read",
			    .threads = 2,
			    .working_set_bytes = 32768,
			    .stats = { .n = 21, .min = 100e9, .max = 210e9 } } },
		{ .level = "L3",
		  .scope = "node",
		  .capacity_bytes = 4194304,
		  .nsweep = 2,
		  .sweep = l3,
		  .peak = { .status = RFL_PEAK_FAILED } },
	};
	const struct rfl_peaks_env env = {
		.name = "lab", .device = "A CPU", .nlevels = 2, .levels = levels
	};
	const struct rfl_chart_input in = { .peaks = &env, .env = "lab" };
	const struct rfl_chart_kind *kind = rfl_chart_find("bandwidth");
	const struct rfl_chart_panel *all, *one;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_chart *c = NULL;
	char name[400] = "";

	(void)state;
	assert_ok(rfl_chart_make(kind, &in, &c, &err), &err);
	assert_int_equal(c->npanels, 2);
	all = &c->panels[0];
	one = &c->panels[1];
	assert_int_equal(all->n, 2);
	assert_int_equal(all->series[0].n, 3);
	assert_close(all->series[0].rows[2].x, 3145728, 0);
	assert_close(all->series[0].rows[2].y, 60, 1e-12);
	assert_close(all->series[1].rows[0].y, 420, 1e-12);
	assert_close(all->series[1].rows[0].lo, 200, 1e-12);
	assert_int_equal(all->nedges, 2);
	assert_close(all->edges[0].x, 98304, 0);
	assert_string_equal(all->edges[0].text, "L1 96 KiB");
	assert_int_equal(one->series[0].n, 2);
	assert_int_equal(one->series[1].n, 0);
	assert_int_equal(one->nedges, 1); /* no test of one core fills more than half of its L1 */
	assert_string_equal(one->edges[0].text, "L3 4 MiB");
	assert_non_null(strstr(c->note, "1 ceiling without a measured working set is not shown"));
	assert_true(at(draw(c, NULL, 0), "L1 96 KiB").x < at(c->scene, "L3 4 MiB").x);
	rfl_chart_free(c);

	/* A name that is wider than the page is in the last row of texts. */
	memset(name, 'L', sizeof(name) - 1);
	levels[1].level = name;
	assert_ok(rfl_chart_make(kind, &in, &c, &err), &err);
	assert_true(draw(c, NULL, 0)->n > 0);
	rfl_chart_free(c);

	levels[0].nsweep = levels[1].nsweep = 0; /* one ceiling */
	assert_int_equal(rfl_chart_make(kind, &in, &c, &err), RFL_EMISSING);
	assert_says(&err, "all values are at one place of the axis 'Working set'");
}

/* A GPU has one panel; its ceilings are not the fastest repeats. */
static void bandwidth_of_a_gpu_is_that_of_the_device(void **state)
{
	struct rfl_peak_size sizes[] = { { "device", 1 << 20, 5e12 }, { "device", 1 << 22, 2e12 } };
	struct rfl_peak_level level = { .level = "L2",
					.scope = "device",
					.capacity_bytes = 1 << 21,
					.nsweep = 2,
					.sweep = sizes,
					.peak = {
						.status = RFL_PEAK_MEASURED,
						.value = 4e12,
						.working_set_bytes = 1 << 20,
						.stats = { .n = 21, .min = 3e12, .max = 6e12 } } };
	const struct rfl_peaks_env env = {
		.name = "lab", .kind = "gpu", .nlevels = 1, .levels = &level
	};
	const struct rfl_chart_input in = { .peaks = &env, .env = "lab" };
	const struct rfl_chart_kind *kind = rfl_chart_find("bandwidth");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_chart *c = NULL;

	(void)state;
	assert_ok(rfl_chart_make(kind, &in, &c, &err), &err);
	assert_int_equal(c->npanels, 1);
	assert_int_equal(c->panels[0].series[0].n, 2);
	assert_close(c->panels[0].series[0].rows[1].y, 2000, 1e-12);
	assert_close(c->panels[0].series[1].rows[0].y, 4000, 1e-12);
	assert_int_equal(c->panels[0].nedges, 1);
	assert_non_null(strstr(c->note, "Levels: the sustained rate of 21 runs"));
	rfl_chart_free(c);
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
	struct fixture *f = *state;
	const struct rfl_chart_series *loss;

	load_text(f, "run_id,env,model,precision,batch,mode,backend,samples_per_s,status\n"
		     "a1,lab,resnet50,fp32,4,train,cpu,8,ok\n"
		     "../m,lab,resnet50,fp32,4,train,cpu,8,ok\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *file = write_file(f->dir, cases[i].file, cases[i].text);
		const struct rfl_chart *c;

		rfl_err_clear(&f->err);
		assert_int_equal(make(f, "steps", "lab"), cases[i].rc);
		c = f->c;
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
			assert_says(&f->err, cases[i].words);
		}
		rfl_chart_free(f->c);
		f->c = NULL;
		assert_int_equal(unlink(file), 0);
	}
	/* the loss is unchanged; a step without one is omitted */
	(void)write_file(f->dir, "steps/a1.csv", "step,loss\n0,7.5\n1,\n2,-0.5\n");
	rfl_err_clear(&f->err);
	assert_ok(make(f, "loss", "lab"), &f->err);
	assert_int_equal(f->c->npanels, 1);
	loss = &f->c->panels[0].series[0];
	assert_int_equal(loss->n, 2);
	assert_true(loss->rows[0].y == 7.5);
	assert_true(loss->rows[1].y == -0.5);
}

/* The values that a logarithmic axis cannot show, which once led to an endless loop. */
static void values_without_a_place_are_left_out(void **state)
{
	static const char *const values[] = { "0", "5e-324", "1e308", "1e-290", "1e290" };
	static const size_t shown[] = { 1, 1, 1, 2, 2 };
	struct fixture *f = *state;
	struct rfl_buf script;
	char text[512];

	for (size_t i = 0; i < RFL_ARRAY_LEN(values); i++) {
		(void)snprintf(text, sizeof(text),
			       "env,model,precision,batch,mode,backend,context_length,status,"
			       "step_ms_mean,fwd_ms_mean,fwd_ms_std\n"
			       "lab,gpt2,fp32,8,train,cpu,256,ok,10,10,1e308\n"
			       "lab,gpt2,fp32,8,train,cpu,512,ok,10,%s,1\n",
			       values[i]);
		load_text(f, text);
		assert_ok(make(f, "scaling", "lab"), &f->err);
		assert_int_equal(f->c->panels[0].series[0].n, shown[i]);
		assert_true(isnan(f->c->panels[0].series[0].rows[0].hi)); /* of 1e308 */
		if (shown[i] == 1)
			assert_non_null(strstr(f->c->note, "1 value o"));
		script_of(f->c, &script);
		assert_null(strstr(script.data, "inf"));
		rfl_buf_fini(&script);
		(void)draw(f->c, NULL, 0);
		for (size_t k = 0; k < f->c->scene->n; k++)
			if (f->c->scene->prims[k].kind == RFL_PRIM_LINE)
				assert_true(isfinite(f->c->scene->prims[k].at.line.y1));
	}
	load_text(f, "env,model,precision,batch,mode,backend,context_length,status,step_ms_mean\n"
		     "lab,gpt2,fp32,8,train,cpu,256,ok,5e-324\n");
	assert_int_equal(make(f, "scaling", "lab"), RFL_EMISSING);
	assert_says(&f->err, "lab: no value has a place on the axes");
}

static struct rfl_chart *demo(const char *name)
{
	struct rfl_chart *c = rfl_chart_new("demo", "lab");

	assert_non_null(c);
	c->npanels = 1;
	c->panels[0].x.title = c->panels[0].y.title = name;
	c->title = c->subtitle = c->note = name;
	for (int i = 1; i < 3; i++) {
		const char *text = i == 1 ? name : "other";

		rfl_chart_add(c, rfl_chart_series(c, 0, text), rfl_chart_point(i, i, 1));
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
	struct rfl_proc_result r;
	struct rfl_err err = RFL_ERR_INIT;
	char here[4096];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(*state), 0);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		const char *const argv[] = { "gnuplot", "-d", "demo.gp", NULL };
		const struct rfl_proc_spec spec = { .argv = argv,
						    .capture_stderr = true,
						    .timeout_s = 60 };
		struct rfl_chart *c = demo(hostile[i]);
		struct rfl_buf script;

		script_of(c, &script);
		(void)write_file(*state, "demo.gp", script.data);
		if (rfl_proc_run(&spec, &r, &err) != RFL_OK) {
			assert_int_equal(chdir(here), 0);
			skip(); /* no gnuplot */
		}
		assert_int_equal(r.exit_code, 0);
		rfl_proc_result_fini(&r);
		rfl_buf_fini(&script);
		rfl_chart_free(c);
	}
	assert_int_equal(chdir(here), 0);
	assert_true(rfl_file_exists(tmp_path(*state, "demo_lab_gnuplot.png")));
	assert_false(rfl_file_exists(tmp_path(*state, "pwned")));
}

/* Everything is on the page, whatever the style, the width and the length of the texts. */
static void charts_hold_on_every_page(void **state)
{
	static const double widths[] = { 0, 200, 504, 1180 };
	char text[300];

	(void)state;
	memset(text, 'w', sizeof(text) - 1);
	for (size_t i = 20; i < sizeof(text); i += 20)
		text[i] = ' ';
	text[sizeof(text) - 1] = '\0';
	for (size_t k = 0; rfl_plot_styles[k]; k++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(widths); i++) {
			struct rfl_chart *c = demo(i % 2 ? "short" : text);
			const struct rfl_scene *s;

			c->npanels = 1 + (k + i) % 4;
			for (size_t panel = 1; panel < c->npanels; panel++) {
				c->panels[panel] = c->panels[0];
				c->panels[panel].y.log = panel % 2 ? 10 : 0;
				c->panels[panel].x.log = panel % 2 ? 2 : 0;
			}
			s = draw(c, rfl_plot_styles[k], widths[i]);
			for (size_t p = 0; p < s->n; p++) {
				struct rfl_xy corners[4];

				if (s->prims[p].kind != RFL_PRIM_TEXT)
					continue;
				rfl_prim_text_corners(&s->prims[p], corners);
				for (int at = 0; at < 4; at++)
					if (corners[at].x < -1 || corners[at].x > s->width + 1 ||
					    corners[at].y < -1 || corners[at].y > s->height + 1)
						fail_msg("%s at %g: '%s' leaves the page",
							 rfl_plot_styles[k], widths[i],
							 s->prims[p].at.text.text);
			}
			rfl_chart_free(c);
		}
}

static void a_page_has_a_maximum(void **state)
{
	const struct rfl_chart_spec spec = { .width = 0 };
	struct rfl_chart *c = demo("A");
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int i = 0; i < 4000; i++)
		rfl_chart_add(c, rfl_chart_series(c, 0, rfl_scene_printf(c->scene, "%d", i)),
			      rfl_chart_point(1, 1, 1));
	assert_int_equal(rfl_chart_draw(c, &spec, &err), RFL_EINVAL);
	assert_says(&err, "4002 configurations do not fit on a page");
	rfl_chart_free(c);
}

int main(void)
{
#define TABLE(test)  cmocka_unit_test_setup_teardown(test, setup, teardown)
#define FOLDER(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)
	const struct CMUnitTest tests[] = {
		TABLE(marks_are_models_and_colours_precisions),
		TABLE(batches_have_ordered_colours),
		TABLE(what_overlaps_is_not_counted_twice),
		TABLE(scaling_has_a_line_per_model_and_marks_what_does_not_fit),
		TABLE(accuracy_has_means_per_epoch_of_all_environments),
		TABLE(only_equal_trainings_are_averaged),
		TABLE(a_foreign_ledger_gives_means_and_deviations),
		TABLE(single_runs_have_no_error_bars),
		TABLE(lines_differ_or_the_note_says_so),
		TABLE(phases_are_means_per_sample),
		TABLE(values_without_a_place_are_left_out),
		TABLE(steps_are_relative_to_the_median_of_their_run),
		cmocka_unit_test(bandwidth_has_a_panel_per_scope_and_the_capacities),
		cmocka_unit_test(bandwidth_of_a_gpu_is_that_of_the_device),
		cmocka_unit_test(texts_stay_inside_of_strings),
		FOLDER(gnuplot_runs_no_text),
		cmocka_unit_test(charts_hold_on_every_page),
		cmocka_unit_test(a_page_has_a_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
