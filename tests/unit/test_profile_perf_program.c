/* What the perf source makes of another process that the workload starts: events that begin at its
 * exec, regions inside the process, runs that differ, multiplexing, and the traffic of others. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "profile/perf/impl.h"
#include "tests/unit/perf_fake.h"

#define PID 500

struct rig {
	struct fake_kernel k;
	struct rfl_perf_env env;
	struct rfl_source_request request;
	struct rfl_captures captures;
	int starts;
	double grows;                 /* seconds that each run takes longer than the one before */
	const struct fake_rule *busy; /* the rules once the process has started */
	size_t nbusy;
};

/* The kernel enables the leaders, and with them their groups. */
static void fake_exec(struct fake_kernel *k)
{
	for (int i = 0; i < k->nfds; i++) {
		struct fake_fd *f = &k->fds[i];
		const struct fake_fd *leader = f->leader < 0 ? f : &k->fds[f->leader];

		if (!f->open || !leader->attr.enable_on_exec)
			continue;
		assert_int_equal(f->tid, PID);
		assert_true(f->disabled);
		f->disabled = false;
		f->on_since = k->now_s;
	}
}

static enum rfl_rc start(void *ctx, int *pid, struct rfl_err *err)
{
	struct rig *r = ctx;

	(void)err;
	r->starts++;
	*pid = PID;
	if (r->busy) {
		r->k.rules = r->busy;
		r->k.nrules = r->nbusy;
	}
	return RFL_OK;
}

/* 1 s outside, 2 s in the region, 1 s outside, and so again. */
static enum rfl_rc run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct rig *r = ctx;

	assert_ok(ranges->begin(ranges, RFL_RANGE_PROCESS, "app", err), err);
	r->k.now_s += 100; /* before the exec */
	fake_exec(&r->k);
	for (int i = 0; i < 2; i++) {
		r->k.now_s += 1;
		assert_ok(ranges->begin(ranges, RFL_RANGE_PHASE, "solve", err), err);
		r->k.now_s += 2;
		ranges->add(ranges, "given FLOPs", "", 1e9, "by the program");
		ranges->end(ranges);
		ranges->end(ranges); /* nothing is open */
		r->k.now_s += 1;
	}
	r->k.now_s += r->grows * (r->starts - 1);
	ranges->add(ranges, "user_time", "s", 3, NULL);
	return RFL_OK;
}

static struct rig *rig_new(void *state, const struct fake_machine *machine)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	fake_machine_init(state, machine, &r->k, &r->env);
	r->request = (struct rfl_source_request){ .precision = "fp32", .label = "run" };
	rfl_captures_init(&r->captures);
	return r;
}

static const struct rfl_capture *rig_capture(struct rig *r)
{
	const struct rfl_workload workload = { .start = start, .run = run, .ctx = r };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_source_perf__measure(&r->env, &r->request, &workload, &r->captures, &err),
		  &err);
	assert_int_equal(r->k.open_now, 0);
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

/* Counted from the exec on, in the process only; a region is a part of it, and totals are the
 * process's. */
static void counts_from_the_exec(void **state)
{
	struct rig *r = rig_new(*state, &fake_zen3);
	const struct rfl_capture *c = rig_capture(r);

	for (int i = 0; i < r->k.nfds; i++)
		if (r->k.fds[i].tid == PID) {
			assert_int_equal(r->k.fds[i].attr.inherit, 1);
			assert_int_equal(r->k.fds[i].attr.enable_on_exec, r->k.fds[i].leader < 0);
		}
	assert_int_equal(c->total_kind, RFL_RANGE_PROCESS);
	assert_close(metric_of(range_of(c, "app"), "cycles")->value, 8000, 0);
	assert_close(metric_of(range_of(c, "app"), "user_time")->value, 3, 0);
	assert_close(metric_of(range_of(c, "solve"), "cycles")->value, 4000, 0);
	assert_int_equal(range_of(c, "solve")->launches, 2);
	assert_close(range_of(c, "solve")->amount[RFL_QUANTITY_TIME].value, 4, 1e-12);
	assert_close(c->total[RFL_QUANTITY_CYCLES].value, 8000, 0);
	/* what the program gave is the region's, and prevails over what was counted there */
	assert_close(range_of(c, "solve")->amount[RFL_QUANTITY_FLOPS].value, 2e9, 0);
	assert_true(rfl_amount_is_given(&range_of(c, "solve")->amount[RFL_QUANTITY_FLOPS]));
	assert_false(rfl_amount_is_given(&c->total[RFL_QUANTITY_FLOPS]));
	assert_close(c->total[RFL_QUANTITY_FLOPS].value, 8000, 0);
	rig_free(r);
}

/* On every CPU. */
static void takes_what_is_given(void **state)
{
	const struct fake_machine *const machines[] = { &fake_spr,  &fake_skylake, &fake_zen4,
							&fake_zen5, &fake_zen6,    &fake_grace };

	for (size_t i = 0; i < RFL_ARRAY_LEN(machines); i++) {
		struct rig *r = rig_new(*state, machines[i]);
		const struct rfl_range *solve = range_of(rig_capture(r), "solve");

		assert_close(solve->amount[RFL_QUANTITY_FLOPS].value, 2e9, 0);
		assert_true(rfl_amount_is_given(&solve->amount[RFL_QUANTITY_FLOPS]));
		rig_free(r);
	}
}

/* Every pass is a run of its own, in which the instructions are counted again; a run that did other
 * work is left out. */
static void compares_the_runs(void **state)
{
	for (int differs = 0; differs <= 1; differs++) {
		struct rig *r = rig_new(*state, &fake_spr);
		const struct rfl_capture *c;
		const struct rfl_metric *half;

		r->grows = differs ? 0.8 : 0.08; /* of 8 s */
		c = rig_capture(r);
		assert_int_equal(c->passes, 2);
		assert_int_equal(r->starts, 2);
		assert_close(metric_of(range_of(c, "app"), "instructions")->value, 8000, 0);
		half = metric_of(range_of(c, "app"), "fp_arith_inst_retired2.scalar_half");
		assert_int_equal(isnan(half->value), differs);
		if (differs)
			assert_non_null(strstr(half->reason, "run 2 executed 1.1 times the "
							     "instructions of the first run"));
		rig_free(r);
	}
}

static void multiplexes_on_request(void **state)
{
	static const struct fake_rule some[] = { { .any = true, .rate = 1000, .share = 0.3 } };

	for (int asked = 0; asked <= 1; asked++) {
		struct rig *r = rig_new(*state, &fake_spr);
		const struct rfl_metric *cycles;

		r->k.rules = some;
		r->k.nrules = 1;
		r->request.multiplex = asked;
		cycles = metric_of(range_of(rig_capture(r), "app"), "cycles");
		assert_int_equal(r->starts, asked ? 1 : 2);
		assert_int_equal(cycles->validity,
				 asked ? RFL_VALID_SCALED : RFL_VALID_UNAVAILABLE);
		assert_non_null(strstr(cycles->reason, "counted for 30 % of the time"));
		if (asked)
			assert_close(cycles->value, 8000, 1e-9);
		rig_free(r);
	}
}

/* The bytes of the memory controllers less those that others moved before the run; none if others
 * move more than a fifth. */
static void subtracts_idle_traffic(void **state)
{
	static const double idle[] = { 100, 500 };
	static const struct fake_rule busy[] = { { .any = true, .rate = 1000 } };

	for (size_t i = 0; i < RFL_ARRAY_LEN(idle); i++) {
		struct rig *r = rig_new(*state, &fake_spr);
		const struct fake_rule rest[] = { { .any = true, .rate = idle[i] } };
		const struct rfl_capture *c;
		const struct rfl_metric *read;
		double before;

		r->k.rules = rest;
		r->k.nrules = 1;
		r->busy = busy;
		r->nbusy = 1;
		c = rig_capture(r);
		read = metric_of(range_of(c, "app"), "uncore_imc/cas_count_read/");
		before = metric_of(range_of(c, "idle"), "uncore_imc/cas_count_read/")->value;
		if (i == 0) {
			assert_close(read->value, before / 0.1 * 10 * 108 - before / 0.1 * 108,
				     1e-6);
			assert_non_null(strstr(read->reason, "minus 10 % by other programs"));
		} else {
			assert_true(isnan(read->value));
			assert_non_null(strstr(read->reason, "other programs cause 50 %"));
		}
		rig_free(r);
	}
}

/* It is subtracted from multiplexed bytes as well; if it was not counted, there are no bytes. */
static void knows_idle_traffic(void **state)
{
	static const struct fake_rule busy[] = { { .any = true, .rate = 1000, .share = 0.6 } };
	static const struct fake_rule rest[] = { { .any = true, .rate = 100 },
						 { .any = true, .rate = 100, .never = true } };

	for (size_t i = 0; i < RFL_ARRAY_LEN(rest); i++) {
		struct rig *r = rig_new(*state, &fake_spr);
		const struct rfl_capture *c;
		const struct rfl_metric *read;

		r->k.rules = &rest[i];
		r->k.nrules = 1;
		r->busy = busy;
		r->nbusy = 1;
		c = rig_capture(r);
		read = metric_of(range_of(c, "app"), "uncore_imc/cas_count_read/");
		if (i == 0) {
			assert_int_equal(read->validity, RFL_VALID_SCALED);
			assert_non_null(strstr(read->reason, "scaled to the whole time; of whole "
							     "sockets, minus 10 % by other"));
		} else {
			assert_true(isnan(read->value));
			assert_non_null(strstr(read->reason, "could not be counted"));
		}
		rig_free(r);
	}
}

/* Without a single event, the time and what the workload knows are still a capture. */
static void measures_without_events(void **state)
{
	static const struct fake_rule none[] = { { .any = true, .error = ENOENT } };

	for (int asked = 0; asked <= 1; asked++) {
		struct rig *r = rig_new(*state, &fake_icelake);
		const struct rfl_capture *c;

		r->k.rules = none;
		r->k.nrules = asked ? 0 : 1;
		r->request.no_events = asked ? "not asked for" : NULL;
		c = rig_capture(r);
		assert_int_equal(r->starts, 1);
		assert_close(c->total[RFL_QUANTITY_TIME].value, 108, 1e-12);
		assert_true(isnan(c->total[RFL_QUANTITY_CYCLES].value));
		assert_non_null(strstr(c->total[RFL_QUANTITY_CYCLES].reason,
				       asked ? "not asked for" : "no hardware counters"));
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_from_the_exec, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(takes_what_is_given, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(compares_the_runs, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(multiplexes_on_request, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(subtracts_idle_traffic, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(knows_idle_traffic, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(measures_without_events, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
