/* What the perf source makes of counters, with a kernel whose every answer is scripted: values,
 * threads, several passes, multiplexing, and errors at each call. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/perf/impl.h"
#include "tests/unit/perf_fake.h"

/* ---- a workload that only passes time ---- */

struct load {
	struct fake_kernel *k;
	int runs, saves, restores;
	double fwd_s, bwd_s;
	int thread_begins, thread_ends; /* numbers, while it runs */
	enum rfl_rc fails;
};

static enum rfl_rc load_run(void *ctx, struct rfl_ranges *r, struct rfl_err *err)
{
	struct load *l = ctx;

	l->runs++;
	assert_ok(r->begin(r, RFL_RANGE_PHASE, "fwd", err), err);
	l->k->now_s += l->fwd_s;
	assert_ok(r->begin(r, RFL_RANGE_PHASE, "bwd", err), err);
	l->k->now_s += l->bwd_s;
	if (l->thread_begins)
		l->k->threads[l->k->nthreads++] = l->thread_begins;
	if (l->thread_ends)
		l->k->threads[0] = l->k->threads[--l->k->nthreads];
	l->thread_begins = l->thread_ends = 0;
	return l->fails ? rfl_fail(err, l->fails, 0, "the workload failed") : RFL_OK;
}

static enum rfl_rc load_save(void *ctx, struct rfl_err *err)
{
	(void)err;
	((struct load *)ctx)->saves++;
	return RFL_OK;
}

static enum rfl_rc load_restore(void *ctx, struct rfl_err *err)
{
	(void)err;
	((struct load *)ctx)->restores++;
	return RFL_OK;
}

struct rig {
	struct fake_kernel k;
	struct rfl_perf_env env;
	struct load load;
	struct rfl_workload workload;
	struct rfl_captures captures;
	const char *precision;
};

static struct rig *rig_new(void *state, const struct fake_machine *machine,
			   const struct fake_rule *rules, size_t nrules)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	fake_machine_init(state, machine, &r->k, &r->env);
	r->k.rules = rules;
	r->k.nrules = nrules;
	r->load = (struct load){ .k = &r->k, .fwd_s = 2, .bwd_s = 4 };
	r->workload = (struct rfl_workload){
		.run = load_run, .save = load_save, .restore = load_restore, .ctx = &r->load
	};
	r->precision = "fp32";
	rfl_captures_init(&r->captures);
	return r;
}

static enum rfl_rc rig_measure(struct rig *r, struct rfl_err *err)
{
	const struct rfl_source_request request = { .precision = r->precision, .label = "run" };
	const enum rfl_rc rc =
		rfl_source_perf__measure(&r->env, &request, &r->workload, &r->captures, err);

	assert_int_equal(r->k.open_now, 0);
	return rc;
}

static const struct rfl_capture *rig_capture(struct rig *r)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rig_measure(r, &err), &err);
	assert_int_equal(r->captures.n, 1);
	return r->captures.captures[0];
}

static void rig_free(struct rig *r)
{
	rfl_captures_fini(&r->captures);
	free(r);
}

static const struct rfl_range *range_of(const struct rfl_capture *c, const char *name)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	fail_msg("there is no range %s", name);
	return NULL;
}

static const struct rfl_metric *metric_of(const struct rfl_range *r, const char *name)
{
	for (size_t i = 0; i < r->nmetrics; i++)
		if (strcmp(r->metrics[i].name, name) == 0)
			return &r->metrics[i];
	fail_msg("there is no metric %s", name);
	return NULL;
}

static bool has_note(const struct rfl_capture *c, const char *words)
{
	for (size_t i = 0; i < c->nnotes; i++)
		if (strstr(c->notes[i], words))
			return true;
	return false;
}

/* ---- values ---- */

#define RAW_RULE(code, rate_)                                            \
	{                                                                \
		.type = PERF_TYPE_RAW, .config = (code), .rate = (rate_) \
	}

/* FP_ARITH at rates of powers of ten, so that each weight shows in its own digits. */
static const struct fake_rule intel_rules[] = {
	RAW_RULE(0x02c7, 1),       RAW_RULE(0x08c7, 100),     RAW_RULE(0x20c7, 10000),
	RAW_RULE(0x80c7, 1000000), RAW_RULE(0x01c7, 2),       RAW_RULE(0x04c7, 200),
	RAW_RULE(0x10c7, 20000),   RAW_RULE(0x40c7, 2000000), RAW_RULE(0x01cf, 1),
	RAW_RULE(0x04cf, 100),     RAW_RULE(0x08cf, 10000),   RAW_RULE(0x10cf, 1000000),
};

static void weighs_flops_of_all_threads(void **state)
{
	struct rig *r = rig_new(*state, &fake_spr, intel_rules, RFL_ARRAY_LEN(intel_rules));
	const struct rfl_capture *c;

	r->k.nthreads = 3;
	r->k.threads[1] = 101;
	r->k.threads[2] = 102;
	c = rig_capture(r);
	assert_string_equal(c->source, "perf");
	assert_string_equal(c->label, "run");
	assert_string_equal(c->chip, "Sapphire Rapids");
	assert_string_equal(c->family, "cpu-intel-fp16");
	assert_int_equal(c->steps, 1);
	assert_int_equal(c->passes, 2);
	/* three threads for two seconds: 6 x (1 + 400 + 80000 + 16000000) */
	assert_close(range_of(c, "fwd")->amount[RFL_QUANTITY_FLOPS_FP32].value, 6 * 16080401.0, 0);
	assert_close(range_of(c, "fwd")->amount[RFL_QUANTITY_FLOPS_FP64].value,
		     12 * (1 + 200 + 40000 + 8000000.0), 0);
	assert_close(range_of(c, "bwd")->amount[RFL_QUANTITY_FLOPS_FP16].value,
		     12 * (1 + 800 + 160000 + 32000000.0), 0);
	assert_close(c->total[RFL_QUANTITY_FLOPS_FP32].value, 18 * 16080401.0, 0);
	assert_int_equal(c->total[RFL_QUANTITY_FLOPS_FP32].validity, RFL_VALID);
	assert_close(c->total[RFL_QUANTITY_FLOPS].value,
		     18 * (16080401.0 + 2 * 8040201.0 + 32160801.0), 0);
	assert_close(c->total[RFL_QUANTITY_TIME].value, 6, 1e-12);
	assert_close(c->total[RFL_QUANTITY_CYCLES].value, 18000, 0);
	assert_close(c->total[RFL_QUANTITY_TASK_CLOCK].value, 18000e-9, 1e-12);
	rig_free(r);
}

/* Every event in every thread, by inheritance in those to come; members of a group after their
 * leader in the same thread; memory controllers on one CPU of each socket, for everyone. */
static void opens_what_belongs_together(void **state)
{
	struct rig *r = rig_new(*state, &fake_spr, NULL, 0);
	int led = 0, wide[2] = { 0 };

	r->k.threads[r->k.nthreads++] = 101;
	(void)rig_capture(r);
	for (int i = 0; i < r->k.nfds; i++) {
		const struct fake_fd *f = &r->k.fds[i];

		assert_int_equal(f->attr.inherit, f->cpu < 0);
		assert_int_equal(f->attr.read_format,
				 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
		assert_int_equal(f->attr.disabled, f->leader < 0);
		assert_int_equal(f->attr.exclude_kernel, 0);
		if (f->cpu >= 0) {
			assert_true(f->cpu == 0 || f->cpu == 56);
			wide[f->cpu > 0]++;
		}
		if (f->leader < 0)
			continue;
		led++;
		assert_int_equal(r->k.fds[f->leader].tid, f->tid);
		assert_true(r->k.fds[f->leader].leader < 0);
	}
	/* of cycles 1, of each group of four 3; two threads; once resting and once at work */
	assert_int_equal(led, (1 + 3 * 3) * 2 * 2);
	assert_int_equal(wide[0], wide[1]);
	assert_true(wide[0] > 0);
	rig_free(r);
}

/* A thread that appears while events are opened is opened as well. */
static void finds_late_threads(void **state)
{
	struct rig *r = rig_new(*state, &fake_zen4, NULL, 0);
	const struct rfl_capture *c;

	r->k.late_tid = 101;
	c = rig_capture(r);
	assert_close(metric_of(range_of(c, "fwd"), "cycles")->value, 4000, 0);
	assert_false(has_note(c, "began while it ran"));
	rig_free(r);
}

static enum rfl_rc run_twice(void *ctx, struct rfl_ranges *r, struct rfl_err *err)
{
	struct load *l = ctx;

	for (int i = 0; i < 2; i++) {
		assert_ok(r->begin(r, RFL_RANGE_PHASE, "fwd", err), err);
		l->k->now_s += l->fwd_s;
		assert_ok(r->begin(r, RFL_RANGE_LAYER, "fwd", err), err);
		l->k->now_s += l->bwd_s;
	}
	return RFL_OK;
}

/* A range that comes twice is one of two launches; kinds are distinct. */
static void adds_up_repeated_ranges(void **state)
{
	struct rig *r = rig_new(*state, &fake_zen4, NULL, 0);
	const struct rfl_capture *c;

	r->workload.run = run_twice;
	c = rig_capture(r);
	assert_int_equal(c->nranges, 2);
	assert_int_equal(c->ranges[0].kind, RFL_RANGE_PHASE);
	assert_int_equal(c->ranges[0].launches, 2);
	assert_close(metric_of(&c->ranges[0], "cycles")->value, 4000, 0);
	assert_close(metric_of(&c->ranges[1], "cycles")->value, 8000, 0);
	assert_close(c->ranges[1].amount[RFL_QUANTITY_TIME].value, 8, 1e-12);
	rig_free(r);
}

/* The step is repeated for every pass, from the state in front of the first. */
static void repeats_the_step(void **state)
{
	struct rig *r = rig_new(*state, &fake_spr, intel_rules, RFL_ARRAY_LEN(intel_rules));
	const struct rfl_capture *c;

	r->env.id.counters = 4;
	c = rig_capture(r);
	assert_int_equal(c->passes, 4);
	assert_int_equal(r->load.runs, 4);
	assert_int_equal(r->load.saves, 1);
	assert_int_equal(r->load.restores, 3);
	assert_true(has_note(c, "counted in 4 runs of the same step"));
	assert_int_equal(range_of(c, "fwd")->launches, 1);
	assert_close(c->total[RFL_QUANTITY_TIME].value, 6, 1e-12);
	assert_close(c->total[RFL_QUANTITY_FLOPS_FP32].value, 6 * 16080401.0, 0);
	assert_int_equal(metric_of(range_of(c, "fwd"), "cycles")->pass, 0);
	assert_true(metric_of(range_of(c, "fwd"), "fp_arith_inst_retired.scalar_double")->pass > 0);
	rig_free(r);

	r = rig_new(*state, &fake_zen4, NULL, 0);
	c = rig_capture(r);
	assert_int_equal(r->load.runs, 1);
	assert_int_equal(r->load.saves, 0);
	rig_free(r);
}

static void derives_flops_of_others(void **state)
{
	static const struct fake_rule rules[] = {
		RAW_RULE(0x0f03, 7),    RAW_RULE(0x4f03, 1),    RAW_RULE(0x6f03, 10),
		RAW_RULE(0x8f03, 100),  RAW_RULE(0xaf03, 1000), RAW_RULE(0x2f03, 10000),
		RAW_RULE(0x80c0, 1000), RAW_RULE(0x80c1, 1),
	};
	struct fake_machine v1 = fake_grace;
	struct rig *r = rig_new(*state, &fake_zen3, rules, RFL_ARRAY_LEN(rules));

	assert_close(rig_capture(r)->total[RFL_QUANTITY_FLOPS_MIXED].value, 6 * 7, 0);
	rig_free(r);

	r = rig_new(*state, &fake_zen5, rules, RFL_ARRAY_LEN(rules));
	const struct rfl_capture *c = rig_capture(r);

	assert_close(c->total[RFL_QUANTITY_FLOPS_FP32].value, 6 * 11, 0);
	assert_close(c->total[RFL_QUANTITY_FLOPS_FP64].value, 6 * 1100, 0);
	assert_close(c->total[RFL_QUANTITY_FLOPS].value, 6 * 11111, 0);
	rig_free(r);

	r = rig_new(*state, &fake_grace, rules, RFL_ARRAY_LEN(rules));
	assert_close(rig_capture(r)->total[RFL_QUANTITY_FLOPS_MIXED].value, 6 * 1001, 0);
	rig_free(r);

	v1.model = 0xd40; /* its vectors are twice as long */
	r = rig_new(*state, &v1, rules, RFL_ARRAY_LEN(rules));
	assert_close(rig_capture(r)->total[RFL_QUANTITY_FLOPS_MIXED].value, 6 * 2001, 0);
	rig_free(r);
}

/* ---- memory controllers ---- */

static void counts_dram_of_sockets(void **state)
{
	static const struct {
		const struct fake_machine *machine;
		double read, write, both; /* of six seconds at 1000 per second and target */
		enum rfl_validity validity;
	} cases[] = {
		{ &fake_spr, 4 * 6000 * 64., 4 * 6000 * 64., 8 * 6000 * 64., RFL_VALID },
		{ &fake_spr_unnamed, 6000 * 64., 6000 * 64., 2 * 6000 * 64., RFL_VALID },
		{ &fake_granite, 2 * 6000 * 64., 2 * 6000 * 64., 4 * 6000 * 64., RFL_VALID },
		{ &fake_skylake, 6000 * 64., 6000 * 64., 2 * 6000 * 64., RFL_VALID },
		{ &fake_alder, 2 * 6000 * 64., 2 * 6000 * 64., 4 * 6000 * 64., RFL_VALID },
		{ &fake_zen3, NAN, NAN, 16 * 6000 * 64., RFL_VALID_ESTIMATE },
		{ &fake_zen5, 3 * 6000 * 64., 3 * 6000 * 64., 6 * 6000 * 64., RFL_VALID },
		{ &fake_grace, 6000 * 32., 6000, 6000 * 33., RFL_VALID },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rig *r = rig_new(*state, cases[i].machine, NULL, 0);
		const struct rfl_capture *c = rig_capture(r);
		char rate[64];

		assert_close(c->total[RFL_QUANTITY_DRAM_READ].value, cases[i].read, 1e-12);
		assert_close(c->total[RFL_QUANTITY_DRAM_WRITE].value, cases[i].write, 1e-12);
		assert_close(c->total[RFL_QUANTITY_DRAM].value, cases[i].both, 1e-12);
		assert_int_equal(c->total[RFL_QUANTITY_DRAM].validity, cases[i].validity);
		assert_true(has_note(c, "all processes; while this process was idle for 0.1 s"));
		/* others move bytes at the same rate while it rests */
		rfl_num_si(cases[i].both / 6, "B/s", 3, rate, sizeof(rate));
		assert_true(has_note(c, rate));
		assert_int_equal(range_of(c, "idle")->kind, RFL_RANGE_IDLE);
		rig_free(r);
	}
}

/* Without them, misses of the last cache are used, as an estimate. */
static void estimates_dram_without_them(void **state)
{
	static const struct fake_rule rules[] = {
		{ .type = 80, .config = 0xcf05, .error = EACCES, .error_from = -1 },
		{ .type = 80, .config = 0xf005, .error = EACCES, .error_from = -1 },
	};
	struct rig *r = rig_new(*state, &fake_spr, rules, RFL_ARRAY_LEN(rules));
	const struct rfl_capture *c = rig_capture(r);
	const struct rfl_amount *dram = &c->total[RFL_QUANTITY_DRAM];

	assert_close(dram->value, 64 * 6000, 0);
	assert_int_equal(dram->validity, RFL_VALID_ESTIMATE);
	assert_non_null(dram->reason);
	assert_non_null(strstr(dram->reason, "without prefetches and write-backs"));
	assert_true(isnan(c->total[RFL_QUANTITY_DRAM_READ].value));
	assert_non_null(
		strstr(c->total[RFL_QUANTITY_DRAM_READ].reason,
		       "counting a whole CPU is not allowed, although perf_event_paranoid is 0"));
	assert_false(has_note(c, "all processes"));
	rig_free(r);
}

/* ---- multiplexing ---- */

static void scales_or_refuses(void **state)
{
	static const struct {
		double share;
		bool never;
		enum rfl_validity validity;
		const char *word;
	} cases[] = {
		{ 1, false, RFL_VALID, NULL },
		{ 0.8, false, RFL_VALID_SCALED, "counted for 80 % of the time: scaled" },
		{ 0.5, false, RFL_VALID_SCALED, "50 %" },
		{ 0.37, false, RFL_VALID_UNAVAILABLE, "counted for 37 % of the time" },
		{ 1, true, RFL_VALID_UNAVAILABLE, "counted for 0 % of the time" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct fake_rule rules[] = { { .type = PERF_TYPE_HARDWARE,
						     .config = PERF_COUNT_HW_CPU_CYCLES,
						     .rate = 1e6,
						     .share = cases[i].share,
						     .never = cases[i].never } };
		struct rig *r = rig_new(*state, &fake_zen4, rules, RFL_ARRAY_LEN(rules));
		const struct rfl_metric *m = metric_of(range_of(rig_capture(r), "fwd"), "cycles");

		assert_int_equal(m->validity, cases[i].validity);
		if (m->validity == RFL_VALID_UNAVAILABLE)
			assert_true(isnan(m->value));
		else
			assert_close(m->value, 2e6, 1e-6);
		assert_true((m->reason != NULL) == (cases[i].word != NULL));
		if (cases[i].word)
			assert_non_null(strstr(m->reason, cases[i].word));
		rig_free(r);
	}
}

/* On a CPU with E-cores an event of the P-cores rests while its thread is elsewhere: what was
 * read is a lower bound, which must not be scaled as if the counter had been shared. */
static void counts_p_cores_without_scaling(void **state)
{
	static const struct {
		double share;
		bool never;
		double value;
		const char *word;
	} cases[] = {
		{ 1, false, 2e6, "P-cores only" },
		{ 0.8, false, 1.6e6, "P-cores only" },
		{ 0.25, false, 0.5e6, "P-cores only" },
		{ 1, true, NAN, "where no thread ran" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct fake_rule rules[] = { { .type = 4, /* of cpu_core */
						     .config = 0x20c7,
						     .rate = 1e6,
						     .share = cases[i].share,
						     .never = cases[i].never } };
		struct rig *r = rig_new(*state, &fake_alder, rules, RFL_ARRAY_LEN(rules));
		const struct rfl_metric *m = metric_of(range_of(rig_capture(r), "fwd"),
						       "fp_arith_inst_retired.256b_packed_single");

		if (cases[i].never)
			assert_true(isnan(m->value));
		else
			assert_close(m->value, cases[i].value, 1e-6);
		assert_int_equal(m->validity,
				 cases[i].never ? RFL_VALID_UNAVAILABLE : RFL_VALID_PARTIAL);
		assert_non_null(strstr(m->reason, cases[i].word));
		rig_free(r);
	}
}

/* A thread whose events were on no counter at all is compensated by the others. */
static void makes_up_for_starved_threads(void **state)
{
	static const struct fake_rule rules[] = { { .type = PERF_TYPE_HARDWARE,
						    .config = PERF_COUNT_HW_CPU_CYCLES,
						    .rate = 1e6,
						    .never_from = 102 } };
	struct rig *r = rig_new(*state, &fake_zen4, rules, RFL_ARRAY_LEN(rules));
	const struct rfl_metric *m;
	const struct rfl_perf_tally t = {
		.value = 300, .enabled_s = 3, .running_s = 3, .lost_s = 1
	};
	const struct rfl_perf_tally none = { .lost_s = 1 };
	double share;

	r->k.threads[r->k.nthreads++] = 101;
	r->k.threads[r->k.nthreads++] = 102;
	m = metric_of(range_of(rig_capture(r), "fwd"), "cycles");
	assert_close(m->value, 3 * 2e6, 1e-6);
	assert_int_equal(m->validity, RFL_VALID_SCALED);
	assert_non_null(strstr(m->reason, "66.7 %"));
	rig_free(r);
	assert_close(rfl_perf_tally_value(&t, &share), 400, 1e-12);
	assert_close(share, 0.75, 1e-12);
	assert_true(isnan(rfl_perf_tally_value(&none, &share)));
	assert_close(share, 0, 0);
}

/* ---- permissions and errors ---- */

static void counts_user_mode_where_that_is_all(void **state)
{
	static const struct fake_rule rules[] = {
		{ .any = true,
		  .rate = 1000,
		  .error = EACCES,
		  .user_only_works = true,
		  .error_from = -1 },
	};
	struct fake_machine m = fake_skylake; /* perf_event_paranoid 2 */
	struct rig *r = rig_new(*state, &m, rules, RFL_ARRAY_LEN(rules));
	const struct rfl_capture *c = rig_capture(r);
	const struct rfl_range *fwd = range_of(c, "fwd");

	assert_close(metric_of(fwd, "cycles")->value, 2000, 0);
	assert_non_null(strstr(metric_of(fwd, "cycles")->reason, "user mode only"));
	/* what happens in the kernel would read 0: it is unavailable instead */
	assert_true(isnan(metric_of(fwd, "context-switches")->value));
	assert_non_null(
		strstr(metric_of(fwd, "context-switches")->reason, "perf_event_paranoid 2"));
	rig_free(r);
}

static void has_nothing_where_nothing_opens(void **state)
{
	static const struct fake_rule rules[] = {
		{ .any = true, .error = ENOSYS, .error_from = -1 }
	};
	struct rig *r = rig_new(*state, &fake_spr, rules, RFL_ARRAY_LEN(rules));
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rig_measure(r, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "this kernel has no perf_event_open");
	assert_int_equal(r->captures.n, 0);
	assert_int_equal(r->load.runs, 0);
	rig_free(r);
}

/* On a guest: what the kernel counts by itself, and the reason for the rest. */
static void counts_software_alone(void **state)
{
	static const struct fake_rule rules[] = {
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .rate = 1e9 },
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .rate = 5 },
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES, .rate = 0 },
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_MIGRATIONS, .rate = 0 },
		{ .any = true, .error = ENOENT, .error_from = -1 },
	};
	static const enum rfl_quantity alike[] = { RFL_QUANTITY_CYCLES, RFL_QUANTITY_INSTRUCTIONS,
						   RFL_QUANTITY_FLOPS_FP32, RFL_QUANTITY_FLOPS_FP64,
						   RFL_QUANTITY_FLOPS };
	struct rig *r = rig_new(*state, &fake_icelake, rules, RFL_ARRAY_LEN(rules));
	const struct rfl_capture *c = rig_capture(r);

	assert_close(c->total[RFL_QUANTITY_TASK_CLOCK].value, 6, 1e-9);
	assert_close(metric_of(range_of(c, "bwd"), "page-faults")->value, 20, 0);
	assert_close(metric_of(range_of(c, "bwd"), "context-switches")->value, 0, 0);
	assert_true(isnan(c->total[RFL_QUANTITY_FLOPS_FP32].value));
	assert_non_null(strstr(c->total[RFL_QUANTITY_FLOPS_FP32].reason,
			       "this virtual machine has no hardware counters"));
	/* one reason, in the same words for all: no name of an event in front of it */
	for (size_t i = 0; i < RFL_ARRAY_LEN(alike); i++)
		assert_string_equal(c->total[alike[i]].reason,
				    metric_of(range_of(c, "fwd"), "cycles")->reason);
	assert_true(isnan(c->total[RFL_QUANTITY_DRAM].value));
	assert_string_equal(c->total[RFL_QUANTITY_DRAM].reason,
			    c->total[RFL_QUANTITY_DRAM_WRITE].reason);
	assert_true(has_note(c, "only software events of the kernel were counted"));
	rig_free(r);
}

/* Errors that come later than the trial: at the second thread, at the limit of files, at reading,
 * and when switched on. */
static void survives_late_errors(void **state)
{
	static const struct fake_rule second[] = {
		{ .type = PERF_TYPE_HARDWARE,
		  .config = PERF_COUNT_HW_CPU_CYCLES,
		  .rate = 1000,
		  .error = EBUSY,
		  .error_from = 101 },
	};
	static const struct fake_rule unreadable[] = {
		{ .type = PERF_TYPE_HARDWARE,
		  .config = PERF_COUNT_HW_CPU_CYCLES,
		  .rate = 1000,
		  .read_fails = true },
	};
	static const struct fake_rule gone[] = {
		{ .any = true, .rate = 1000, .error = ESRCH, .error_from = 101 },
	};
	struct rig *r = rig_new(*state, &fake_zen4, second, 1);
	const struct rfl_range *fwd;

	r->k.threads[r->k.nthreads++] = 101;
	fwd = range_of(rig_capture(r), "fwd");
	assert_true(isnan(metric_of(fwd, "cycles")->value));
	assert_non_null(strstr(metric_of(fwd, "cycles")->reason, "nmi_watchdog"));
	assert_close(metric_of(fwd, "instructions")->value, 4000, 0); /* without a leader now */
	rig_free(r);

	r = rig_new(*state, &fake_zen4, unreadable, 1);
	fwd = range_of(rig_capture(r), "fwd");
	assert_non_null(strstr(metric_of(fwd, "cycles")->reason, "could not be read"));
	assert_close(metric_of(fwd, "instructions")->value, 2000, 0);
	rig_free(r);

	r = rig_new(*state, &fake_zen4, gone, 1); /* a thread that ended meanwhile is no error */
	r->k.threads[r->k.nthreads++] = 101;
	fwd = range_of(rig_capture(r), "fwd");
	assert_close(metric_of(fwd, "cycles")->value, 2000, 0);
	rig_free(r);

	r = rig_new(*state, &fake_zen4, NULL, 0);
	r->k.nthreads = 3;
	r->k.threads[1] = 101;
	r->k.threads[2] = 102;
	r->k.limit = 10; /* three events fit in three threads: FLOPs, and the first of the rest */
	fwd = range_of(rig_capture(r), "fwd");
	assert_non_null(strstr(metric_of(fwd, "cycles")->reason, "ulimit -Hn"));
	assert_non_null(strstr(metric_of(fwd, "cycles")->reason, "in each of 3 threads"));
	assert_close(metric_of(fwd, "task-clock")->value, 3 * 2000 * 1e-9, 0);
	assert_close(metric_of(fwd, "page-faults")->value, 3 * 2000, 0);
	assert_true(isnan(metric_of(fwd, "context-switches")->value));
	assert_close(metric_of(fwd, "fp_ret_sse_avx_ops.all")->value, 3 * 2000, 0);
	rig_free(r);

	r = rig_new(*state, &fake_zen4, NULL, 0);
	r->k.control_fails = true;
	fwd = range_of(rig_capture(r), "fwd");
	assert_non_null(strstr(metric_of(fwd, "cycles")->reason, "could not be switched"));
	rig_free(r);
}

static void returns_the_workloads_error(void **state)
{
	struct rig *r = rig_new(*state, &fake_spr, NULL, 0);
	struct rfl_err err = RFL_ERR_INIT;

	r->load.fails = RFL_EDEVMEM;
	assert_int_equal(rig_measure(r, &err), RFL_EDEVMEM);
	assert_says(&err, "the workload failed");
	assert_int_equal(r->captures.n, 0);
	rig_free(r);
}

/* ---- notes ---- */

static void notes_threads_and_cost(void **state)
{
	struct rig *r = rig_new(*state, &fake_zen4, NULL, 0);
	const struct rfl_capture *c;

	r->k.threads[r->k.nthreads++] = 101;
	r->load.thread_begins = 102;
	r->load.thread_ends = 100;
	c = rig_capture(r);
	assert_true(has_note(c, "of 2 threads, 1 ended and 1 began during the run"));
	assert_false(has_note(c, "reading the counters takes"));
	rig_free(r);

	r = rig_new(*state, &fake_zen4, NULL, 0);
	r->k.read_cost_s = 0.01; /* of each of 8 events, where the shortest range has 2 s */
	c = rig_capture(r);
	assert_true(has_note(c, "reading the counters takes"));
	assert_true(has_note(c, "more than 1 % of the shortest range (2 s)"));
	rig_free(r);

	r = rig_new(*state, &fake_zen4, NULL, 0);
	r->env.id.model = 0;
	r->env.id.family = 0x17; /* Zen: other codes */
	c = rig_capture(r);
	assert_true(
		has_note(c, "Zen: the table of events has no codes for the FLOPs of Zen and Zen+"));
	rig_free(r);
}

static void looks(void **state)
{
	static const struct fake_rule rules[] = {
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK },
		{ .any = true, .error = ENOENT, .error_from = -1 },
	};
	struct rig *r = rig_new(*state, &fake_spr, NULL, 0);
	struct rfl_perf_status status;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_perf_look__at(&r->env, "fp32", &status, &err), &err);
	assert_string_equal(status.processor, "Sapphire Rapids");
	assert_int_equal(status.paranoid, 0);
	assert_int_equal(status.software, 4);
	assert_int_equal(status.hardware, 17);
	assert_int_equal(status.flops, 12);
	assert_int_equal(status.dram, 2);
	assert_string_equal(status.no_flops, "");
	assert_string_equal(status.no_dram, "");
	rig_free(r);

	r = rig_new(*state, &fake_icelake, rules, RFL_ARRAY_LEN(rules));
	assert_ok(rfl_perf_look__at(&r->env, "fp32", &status, &err), &err);
	assert_int_equal(status.paranoid, 2);
	assert_int_equal(status.software, 1);
	assert_int_equal(status.hardware, 0);
	assert_non_null(strstr(status.no_hardware, "this virtual machine"));
	assert_non_null(strstr(status.no_flops, "this virtual machine"));
	assert_non_null(strstr(status.no_dram, "memory controllers"));
	rig_free(r);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(weighs_flops_of_all_threads),
		IN_FOLDER(opens_what_belongs_together),
		IN_FOLDER(finds_late_threads),
		IN_FOLDER(adds_up_repeated_ranges),
		IN_FOLDER(repeats_the_step),
		IN_FOLDER(derives_flops_of_others),
		IN_FOLDER(counts_dram_of_sockets),
		IN_FOLDER(estimates_dram_without_them),
		IN_FOLDER(scales_or_refuses),
		IN_FOLDER(counts_p_cores_without_scaling),
		IN_FOLDER(makes_up_for_starved_threads),
		IN_FOLDER(counts_user_mode_where_that_is_all),
		IN_FOLDER(has_nothing_where_nothing_opens),
		IN_FOLDER(counts_software_alone),
		IN_FOLDER(survives_late_errors),
		IN_FOLDER(returns_the_workloads_error),
		IN_FOLDER(notes_threads_and_cost),
		IN_FOLDER(looks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
