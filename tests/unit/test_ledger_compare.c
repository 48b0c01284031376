/*
 * Verdicts on two sets of repeats: the interval against values computed elsewhere, the rule at its
 * edges, and how often it is right on noise whose truth is known. The table of docs/internals/comparison.md is
 * made here; RFL_TEST_UPDATE=1 writes it.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ledger/repeats.h"
#include "tests/unit/docs_page.h"

#define PAGE   RFL_TEST_DATA "/../../docs/internals/comparison.md"
#define TRIALS 4000

static struct rfl_speed_ratio ratio_of(const double *a, size_t na, const double *b, size_t nb,
				       int speed)
{
	struct rfl_speed_ratio r;

	r = rfl_compare_ratio(a, na, b, nb, speed);
	return r;
}

/* By numpy and mpmath: exp of Welch's interval for the difference of the means of the logarithms.
 */
static void intervals(void **state)
{
	const double a[] = { 136.75, 132.35, 129.15 }, b[] = { 120.59, 120.86, 114.68 };
	struct rfl_speed_ratio r = ratio_of(a, 3, b, 3, 1);

	(void)state;
	assert_close(r.value, 0.89422188136967728, 1e-12);
	assert_close(r.lo, 0.83694310025514838, 1e-9);
	assert_close(r.hi, 0.95542071244335623, 1e-9);
	/* of times, conversely: B is faster by as much as A's are longer */
	r = ratio_of(b, 3, a, 3, -1);
	assert_close(r.value, 0.89422188136967728, 1e-12);
	assert_close(r.lo, 0.83694310025514838, 1e-9);
	assert_close(r.hi, 0.95542071244335623, 1e-9);
}

static void what_has_no_interval(void **state)
{
	const double one[] = { 100 }, three[] = { 99, 100, 101 }, zero[] = { 100, 0, 100 };
	struct rfl_speed_ratio r = ratio_of(one, 1, three, 3, 1);

	(void)state;
	assert_close(r.value, 0.99996666, 1e-7);
	assert_true(isnan(r.lo) && isnan(r.hi));
	assert_int_equal(rfl_compare_verdict(&r, 0.02), RFL_SPEED_UNCLEAR);
	r = ratio_of(three, 3, zero, 3, 1);
	assert_true(isnan(r.value));
	assert_int_equal(rfl_compare_verdict(&r, 0.02), RFL_SPEED_UNCLEAR);
	r = ratio_of(three, 3, NULL, 0, 1);
	assert_true(isnan(r.value));
}

static void the_rule_at_its_edges(void **state)
{
	static const struct {
		double lo, hi;
		enum rfl_speed_verdict verdict;
	} cases[] = {
		{ 0.99, 1.01, RFL_SPEED_SAME },    { 1, 1, RFL_SPEED_SAME },
		{ 1.005, 1.02, RFL_SPEED_SAME },   { 1 / 1.02, 1.02, RFL_SPEED_SAME },
		{ 0.98, 1.01, RFL_SPEED_UNCLEAR }, /* 0.98 is less than 1 / 1.02 */
		{ 1.01, 1.03, RFL_SPEED_UNCLEAR }, { 0.5, 2, RFL_SPEED_UNCLEAR },
		{ 1.02, 1.03, RFL_SPEED_UNCLEAR }, { 1.021, 1.03, RFL_SPEED_FASTER },
		{ 0.9, 0.98, RFL_SPEED_SLOWER },   { 0.9, 1 / 1.02, RFL_SPEED_UNCLEAR },
	};
	const struct rfl_speed_ratio still = { 1.0001, 1.0001, 1.0001 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_speed_ratio r = { sqrt(cases[i].lo * cases[i].hi), cases[i].lo,
						   cases[i].hi };

		assert_int_equal(rfl_compare_verdict(&r, 0.02), cases[i].verdict);
	}
	assert_int_equal(rfl_compare_verdict(&still, 0), RFL_SPEED_FASTER);
}

/* --- how often it is right ------------------------------------------------------------------- */

static uint64_t state64;

/* splitmix64, as published by S. Vigna; uniform in (0, 1). */
static double uniform(void)
{
	uint64_t z = (state64 += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Student's t with 3 degrees of freedom, scaled to a variance of 1. */
static double heavy(void)
{
	double chi = 0;

	for (int i = 0; i < 3; i++) {
		double x = normal();

		chi += x * x;
	}
	return normal() / sqrt(chi / 3) / sqrt(3);
}

/* One run in ten is disturbed: slower by up to ten times the usual spread. */
static double disturbed(void)
{
	return normal() - (uniform() < 0.1 ? 10 * uniform() : 0);
}

struct noise {
	const char *name;
	double (*draw)(void);
};

struct rates {
	double count[RFL_SPEED_VERDICTS];
};

static struct rates simulate(const struct noise *noise, double cv, double truth, size_t n)
{
	struct rates r = { { 0 } };

	state64 = 1; /* every row of the table by itself */
	for (int t = 0; t < TRIALS; t++) {
		double a[16], b[16];
		struct rfl_speed_ratio ratio;

		for (size_t i = 0; i < n; i++) {
			a[i] = 100 * exp(cv * noise->draw());
			b[i] = 100 * truth * exp(cv * noise->draw());
		}
		ratio = ratio_of(a, n, b, n, 1);
		r.count[rfl_compare_verdict(&ratio, 0.02)] += 100.0 / TRIALS;
	}
	return r;
}

static void how_often_it_is_right(void **state)
{
	static const struct noise noises[] = {
		{ "normal", normal },
		{ "heavy-tailed", heavy },
		{ "disturbed", disturbed },
	};
	static const struct {
		double truth, cv;
		size_t n;
	} rows[] = {
		{ 1, 0.002, 3 },       { 1, 0.005, 3 },    { 1, 0.01, 3 },
		{ 1, 0.03, 3 },        { 1, 0.01, 10 },    { 1 / 1.02, 0.005, 3 },
		{ 1 / 1.02, 0.02, 3 }, { 0.95, 0.005, 3 }, { 0.95, 0.01, 3 },
		{ 0.9, 0.01, 3 },      { 0.9, 0.03, 3 },   { 0.95, 0.01, 10 },
	};
	struct rfl_buf page;

	(void)state;
	rfl_buf_init(&page, 0);
	rfl_buf_puts(&page, "\n| B : A in truth | CV | repeats |");
	for (size_t k = 0; k < RFL_ARRAY_LEN(noises); k++)
		rfl_buf_printf(&page, " %s |", noises[k].name);
	rfl_buf_puts(&page, "\n|---:|---:|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		rfl_buf_printf(&page, "| %.3f | %.1f | %zu |", rows[i].truth, 100 * rows[i].cv,
			       rows[i].n);
		for (size_t k = 0; k < RFL_ARRAY_LEN(noises); k++) {
			struct rates r = simulate(&noises[k], rows[i].cv, rows[i].truth, rows[i].n);
			double wrong = r.count[RFL_SPEED_FASTER];

			if (rows[i].truth == 1)
				wrong += r.count[RFL_SPEED_SLOWER];
			else
				assert_true(r.count[RFL_SPEED_SAME] < 3);
			assert_true(wrong < 2.5); /* a difference that is not there */
			if (rows[i].truth > 0.97 && rows[i].truth < 1)
				assert_true(r.count[RFL_SPEED_SLOWER] < 4); /* the edge itself */
			rfl_buf_printf(&page, " %.1f/%.1f/%.1f/%.1f |",
				       r.count[RFL_SPEED_SAME], r.count[RFL_SPEED_FASTER],
				       r.count[RFL_SPEED_SLOWER], r.count[RFL_SPEED_UNCLEAR]);
		}
		rfl_buf_putc(&page, '\n');
	}
	check_page_part(PAGE, "<!-- simulation -->\n", "<!-- end of simulation -->", &page);
	rfl_buf_fini(&page);
}

/* --- pairs ----------------------------------------------------------------------------------- */

#define HEADER                                                                                  \
	"schema_version,run_id,config_hash,repeat,label,env,status,model,batch,precision,mode," \
	"layout,threads,samples_per_s,step_ms_median,version\n"

struct two {
	struct rfl_runs *runs[2];
	struct rfl_repeats *repeats[2];
	struct rfl_comparison *c;
};

static struct two compare_texts(void *state, const char *a, const char *b)
{
	const struct rfl_repeats_options o = { .metric = &rfl_ledger_metrics[0] };
	const char *texts[2] = { a, b }, *names[2] = { "a.csv", "b.csv" };
	struct rfl_err err = RFL_ERR_INIT;
	struct two t;

	for (size_t i = 0; i < 2; i++) {
		char text[4096];
		const char *path;

		(void)snprintf(text, sizeof(text), HEADER "%s", texts[i]);
		path = write_file(state, names[i], text);
		assert_ok(rfl_runs_load(&path, 1, NULL, o.metric, RFL_ROWS_SHORT, &t.runs[i], &err),
			  &err);
		assert_ok(rfl_repeats_new(t.runs[i], &o, &t.repeats[i], &err), &err);
	}
	t.c = rfl_compare(t.repeats[0], t.repeats[1], 0.02);
	return t;
}

static void two_free(struct two *t)
{
	rfl_comparison_free(t->c);
	for (size_t i = 0; i < 2; i++) {
		rfl_repeats_free(t->repeats[i]);
		rfl_runs_free(t->runs[i]);
	}
}

/* Another machine, another version, another number of threads: compared. Another layout: not. */
static void matches_the_same_work(void **state)
{
	struct two t =
		compare_texts(*state,
			      "3,1,h1,1,x_run1,x,ok,resnet18,8,fp32,train,nchw,2,100,80,0.1\n"
			      "3,2,h1,2,x_run2,x,ok,resnet18,8,fp32,train,nchw,2,100.2,80,0.1\n"
			      "3,3,h2,1,z_run1,x,ok,resnet18,8,fp32,train,nhwc,2,50,80,0.1\n",
			      "3,4,h3,1,y_run1,y,ok,resnet18,8,fp32,train,nchw,4,200,40,0.2\n"
			      "3,5,h3,2,y_run2,y,ok,resnet18,8,fp32,train,nchw,4,200.2,40,0.2\n"
			      "3,6,h4,1,w_run1,y,ok,vgg11,8,fp32,train,nchw,4,9,40,0.2\n");

	assert_int_equal(t.c->n, 3);
	assert_int_equal(t.c->pairs[0].verdict, RFL_SPEED_FASTER);
	assert_close(t.c->pairs[0].ratio.value, 1.99900174688066, 1e-9);
	assert_int_equal(t.c->pairs[1].verdict, RFL_SPEED_MISSING);
	assert_string_equal(t.c->pairs[1].why, "only in A");
	assert_string_equal(t.c->pairs[2].why, "only in B");
	assert_int_equal(t.c->count[RFL_SPEED_MISSING], 2);
	two_free(&t);
}

/* Where a side has several numbers of threads, equal ones belong together. */
static void ways_that_vary_must_agree(void **state)
{
	struct two t =
		compare_texts(*state,
			      "3,1,h1,1,x_run1,x,ok,resnet18,8,fp32,train,nchw,2,100,80,0.1\n"
			      "3,2,h2,1,v_run1,x,ok,resnet18,8,fp32,train,nchw,4,180,40,0.1\n",
			      "3,3,h3,1,y_run1,x,ok,resnet18,8,fp32,train,nchw,4,181,40,0.2\n"
			      "3,4,h4,1,w_run1,x,ok,resnet18,8,fp32,train,nchw,8,300,40,0.2\n");

	assert_int_equal(t.c->n, 3);
	assert_null(t.c->pairs[0].b);
	assert_int_equal(t.c->pairs[1].b->row->threads, 4);
	assert_int_equal(t.c->pairs[1].verdict, RFL_SPEED_UNCLEAR);
	assert_string_equal(t.c->pairs[1].why, "a single repeat has no spread");
	assert_int_equal(t.c->pairs[2].b->row->threads, 8);
	two_free(&t);
}

/* What one side does not know is no difference: an older ledger, a table of others. */
static void what_is_not_known_does_not_part(void **state)
{
	struct two t =
		compare_texts(*state, "3,1,h1,1,x_run1,x,ok,resnet18,8,fp32,,,,100,80,0.1\n",
			      "3,2,h2,1,x_run1,x,ok,resnet18,8,fp32,train,nhwc,2,101,79,0.2\n");

	assert_int_equal(t.c->n, 1);
	assert_non_null(t.c->pairs[0].a);
	assert_non_null(t.c->pairs[0].b);
	two_free(&t);
}

/* A configuration of which no run is ok is missing, and says so. */
static void failed_ones_are_missing(void **state)
{
	struct two t = compare_texts(
		*state, "3,1,h1,1,x_run1,x,ok,resnet18,8,fp32,train,nchw,2,100,80,0.1\n",
		"3,2,h2,1,x_run1,x,oom,resnet18,8,fp32,train,nchw,2,,,0.2\n");

	assert_int_equal(t.c->n, 1);
	assert_int_equal(t.c->pairs[0].verdict, RFL_SPEED_MISSING);
	assert_string_equal(t.c->pairs[0].why, "no run of B is ok");
	two_free(&t);
}

/* --- by one column --------------------------------------------------------------------------- */

/* 100 and 102.01 have the geometric mean 101, and so on, so every ratio is known. */
#define RATES(hash, env, status, batch, precision, layout, threads, a, b)                      \
	"3,1," hash ",1,,env" env "," status ",resnet18," batch "," precision ",train," layout \
	"," threads "," a ",80,0.1\n3,2," hash ",2,,env" env "," status ",resnet18," batch     \
	"," precision ",train," layout "," threads "," b ",80,0.1\n"

static const char by_rows[] = RATES("a", "1", "ok", "8", "fp32", "nchw", "2", "100", "102.01")
	RATES("b", "1", "ok", "16", "fp32", "nchw", "2", "150", "153.015") /* 151.5 */
	RATES("c", "1", "ok", "8", "amp", "nchw", "2", "200", "204.02")    /* 202 */
	RATES("d", "1", "ok", "8", "fp32", "nhwc", "2", "50", "51.005")    /* 50.5 */
	RATES("e", "1", "ok", "8", "fp32", "nchw", "4", "110", "112.211")  /* 111.1 */
	RATES("f", "2", "ok", "8", "amp", "nchw", "2", "1", "1.0201");

struct by {
	struct rfl_runs *runs;
	struct rfl_repeats *repeats;
	struct rfl_comparison *c;
	enum rfl_rc rc;
	struct rfl_err err;
};

static struct by compare_by(void *state, const char *rows, const char *column, const char *baseline)
{
	const struct rfl_repeats_options o = { .metric = &rfl_ledger_metrics[0] };
	struct by t = { .err = RFL_ERR_INIT };
	char text[4096];
	const char *path;
	size_t k = 0;

	while (strcmp(rfl_facts[k].name, column) != 0)
		k++;
	(void)snprintf(text, sizeof(text), HEADER "%s", rows);
	path = write_file(state, "by.csv", text);
	assert_ok(rfl_runs_load(&path, 1, NULL, o.metric, RFL_ROWS_SHORT, &t.runs, &t.err), &t.err);
	assert_ok(rfl_repeats_new(t.runs, &o, &t.repeats, &t.err), &t.err);
	t.rc = rfl_compare_by(t.repeats, &rfl_facts[k], baseline, 0.02, &t.c, &t.err);
	return t;
}

static void by_free(struct by *t)
{
	rfl_comparison_free(t->c);
	rfl_repeats_free(t->repeats);
	rfl_runs_free(t->runs);
}

/* One pair each: configurations that differ in more than the column have no counterpart. Of two
 * names the slower one is the baseline. */
static void pairs_differ_in_one_column(void **state)
{
	static const struct {
		const char *column, *baseline;
		size_t n, alone;
		double ratio; /* of the first pair */
	} cases[] = {
		{ "precision", NULL, 1, 4, 2 },      { "precision", "amp", 1, 4, 0.5 },
		{ "batch", NULL, 1, 4, 1.5 },        { "batch", "16", 1, 4, 2.0 / 3 },
		{ "layout", NULL, 1, 4, 2 },         { "threads", NULL, 1, 4, 1.1 },
		{ "env", NULL, 1, 4, 202.0 / 1.01 },
	};
	/* Two values, each with ln 1.01 above and below the mean: s^2 = 2 ln^2 1.01, and 2 degrees
	 * of freedom. */
	const double half = 4.3026527297494639 * sqrt(2) * log(1.01);

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct by t = compare_by(*state, by_rows, cases[i].column, cases[i].baseline);

		assert_ok(t.rc, &t.err);
		assert_int_equal(t.c->n, cases[i].n);
		assert_int_equal(t.c->alone, cases[i].alone);
		assert_close(t.c->pairs[0].ratio.value, cases[i].ratio, 1e-12);
		assert_close(t.c->pairs[0].ratio.lo, cases[i].ratio * exp(-half), 1e-9);
		assert_close(t.c->pairs[0].ratio.hi, cases[i].ratio * exp(half), 1e-9);
		by_free(&t);
	}
}

/* Three values: two rows against one baseline, which is the first text and the smallest number. */
static void one_row_for_each_other_value(void **state)
{
	/* clang-format off */
	struct by t = compare_by(*state,
		RATES("a", "1", "ok", "16", "fp32", "nchw", "2", "100", "102.01")
		RATES("b", "1", "ok", "8", "fp32", "nchw", "2", "50", "51.005")
		RATES("c", "1", "oom", "32", "fp32", "nchw", "2", "", "")
		RATES("d", "1", "ok", "9", "fp32", "", "", "60", "61.206"),
		"batch", NULL);
	/* clang-format on */

	assert_ok(t.rc, &t.err);
	assert_int_equal(t.c->baseline->batch, 8);
	assert_int_equal(t.c->n, 3);
	assert_int_equal(t.c->pairs[0].b->row->batch, 9); /* unknown fields match */
	assert_close(t.c->pairs[0].ratio.value, 1.2, 1e-12);
	assert_close(t.c->pairs[1].ratio.value, 2, 1e-12);
	assert_int_equal(t.c->pairs[2].verdict, RFL_SPEED_MISSING);
	assert_string_equal(t.c->pairs[2].why, "no run of B is ok");
	by_free(&t);
}

/* amp runs in both types of autocast: each is compared with fp32, which has none. The kernels
 * follow from the optimizer, but not from the precision. The number of steps never matters. */
static void facts_that_follow_may_differ(void **state)
{
	static const char header[] =
		"env,status,model,batch,precision,autocast,optimizer,optimizer_kernels,"
		"samples_per_s,iters\n";
	static const struct {
		const char *rows;
		size_t by, n;
	} cases[] = {
		{ "e,ok,resnet18,8,fp32,,sgd,,100,10\ne,ok,resnet18,8,amp,fp16,sgd,,200,20\n"
		  "e,ok,resnet18,8,amp,bf16,sgd,,200,20\n",
		  RFL_LEDGER_AT_precision, 2 },
		{ "e,ok,resnet18,8,fp32,,sgd,fused,100,10\n"
		  "e,ok,resnet18,8,fp32,,adam,foreach,200,20\n",
		  RFL_LEDGER_AT_optimizer, 1 },
		{ "e,ok,resnet18,8,fp32,,sgd,fused,100,10\n"
		  "e,ok,resnet18,8,amp,,sgd,foreach,200,20\n",
		  RFL_LEDGER_AT_precision, 0 },
		/* of two, the one with the same kernels */
		{ "e,ok,resnet18,8,fp32,,sgd,fused,1,10\ne,ok,resnet18,8,fp32,,sgd,foreach,100,10\n"
		  "e,ok,resnet18,8,fp32,,adam,foreach,200,10\n",
		  RFL_LEDGER_AT_optimizer, 1 },
	};
	const struct rfl_repeats_options o = { .metric = &rfl_ledger_metrics[0] };

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct by t = { .err = RFL_ERR_INIT };
		const char *path;
		char text[1024];
		size_t k = 0;

		(void)snprintf(text, sizeof(text), "%s%s", header, cases[i].rows);
		path = write_file(*state, "follow.csv", text);
		while (rfl_facts[k].column != cases[i].by)
			k++;
		assert_ok(rfl_runs_load(&path, 1, NULL, o.metric, RFL_ROWS_SHORT, &t.runs, &t.err),
			  &t.err);
		assert_ok(rfl_repeats_new(t.runs, &o, &t.repeats, &t.err), &t.err);
		assert_ok(rfl_compare_by(t.repeats, &rfl_facts[k], NULL, 0.02, &t.c, &t.err),
			  &t.err);
		assert_int_equal(t.c->n, cases[i].n);
		for (size_t p = 0; p < t.c->n; p++)
			assert_close(t.c->pairs[p].ratio.value, 2, 1e-12);
		by_free(&t);
	}
}

static void the_value_that_most_have(void **state)
{
	/* 8 is in one comparison and twice alone, 16 in two: with 8 and with 32 */
	/* clang-format off */
	struct by t = compare_by(*state,
		RATES("a", "1", "ok", "8", "fp32", "nchw", "2", "1", "1")
		RATES("b", "1", "ok", "16", "fp32", "nchw", "2", "2", "2")
		RATES("c", "2", "ok", "16", "fp32", "nchw", "2", "3", "3")
		RATES("d", "2", "ok", "32", "fp32", "nchw", "2", "4", "4")
		RATES("e", "3", "ok", "8", "fp32", "nchw", "2", "5", "5")
		RATES("f", "4", "ok", "8", "fp32", "nchw", "2", "6", "6"),
		"batch", NULL);
	/* clang-format on */

	assert_ok(t.rc, &t.err);
	assert_int_equal(t.c->baseline->batch, 16);
	assert_int_equal(t.c->n, 2);
	assert_int_equal(t.c->alone, 2);
	by_free(&t);
}

static void what_cannot_be_compared_by(void **state)
{
	struct by t = compare_by(*state, by_rows, "mode", NULL);

	assert_int_equal(t.rc, RFL_EFAILED);
	assert_string_equal(t.err.msg,
			    "all runs have mode train; name more ledgers, or another column");
	assert_null(t.c);
	by_free(&t);
	t = compare_by(*state, by_rows, "optimizer", NULL);
	assert_int_equal(t.rc, RFL_EFAILED);
	assert_non_null(strstr(t.err.msg, "optimizer unknown"));
	by_free(&t);
	t = compare_by(*state, by_rows, "precision", "fp23");
	assert_int_equal(t.rc, RFL_ENOTFOUND);
	assert_string_equal(t.err.msg, "no run has precision 'fp23' (known: fp32, amp); did you "
				       "mean fp32?");
	assert_null(t.c);
	by_free(&t);
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals),
		cmocka_unit_test(what_has_no_interval),
		cmocka_unit_test(the_rule_at_its_edges),
		cmocka_unit_test(how_often_it_is_right),
		in_tmpdir(matches_the_same_work),
		in_tmpdir(ways_that_vary_must_agree),
		in_tmpdir(what_is_not_known_does_not_part),
		in_tmpdir(failed_ones_are_missing),
		in_tmpdir(pairs_differ_in_one_column),
		in_tmpdir(one_row_for_each_other_value),
		in_tmpdir(facts_that_follow_may_differ),
		in_tmpdir(the_value_that_most_have),
		in_tmpdir(what_cannot_be_compared_by),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
