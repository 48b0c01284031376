/* What makes a measurement trustworthy: the time is divided, plateaus are found, parts of the
 * machine are distinguished, and other load is reported. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* prctl */
#endif
#include "base/alloc.h"
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "peaks/edit.h"
#include "peaks/measure_parts.h"
#include "peaks/peaks.h"

static json_t *json_of(struct rfl_measurement *m)
{
	rfl_measurement_finish(m);
	return rfl_peaks_env_json(&m->env);
}

static struct rfl_machine *machine;

static int look(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (rfl_machine_new(&machine, &err) == RFL_OK)
		return 0;
	print_error("%s\n", err.msg);
	return -1;
}

static int forget(void **state)
{
	(void)state;
	rfl_machine_free(machine);
	return 0;
}

/* Whatever the number of ceilings, the time is that of the budget, unless there are so few that a
 * loop would take more than an eighth of it. */
static void the_time_is_divided(void **state)
{
	static const double budgets[] = { RFL_MEASURE_QUICK_S, 0, RFL_MEASURE_FULL_S };
	static const struct {
		int counts[RFL_RUN_KINDS];
		bool few;
	} plans[] = {
		{ { 2, 2, 0, 0 }, true },     /* one ceiling */
		{ { 22, 23, 30, 1 }, false }, /* a small CPU */
		{ { 60, 80, 60, 1 }, false }, /* many precisions */
		{ { 90, 90, 120, 1 }, false } /* and large caches */
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(budgets); i++) {
		const double budget = budgets[i] > 0 ? budgets[i] : RFL_MEASURE_S;
		const struct rfl_measure_spec spec = { .budget_s = budgets[i] };
		double unit = INFINITY;

		for (size_t k = 0; k < RFL_ARRAY_LEN(plans); k++) {
			struct rfl_session s = { .spec = &spec };

			memcpy(s.counts, plans[k].counts, sizeof(s.counts));
			rfl_measure__divide(&s);
			assert_true(s.unit_s > 0 && s.unit_s < unit);
			unit = s.unit_s;
			if (plans[k].few)
				assert_true(s.planned_s < budget / 3);
			else if (i == 0 || k < 3) /* else limited by the longest repeats */
				assert_true(s.planned_s <= budget * 1.01);
			if (!plans[k].few && budget <= RFL_MEASURE_S)
				assert_true(s.planned_s > budget * 0.8);
		}
	}
}

/* A given number of repeats has priority over the time. */
static void repeats_take_their_time(void **state)
{
	struct rfl_measure_spec spec = { .repeats = 3 };
	struct rfl_session s = { .spec = &spec, .counts = { 22, 23, 30, 1 } };
	double few;

	(void)state;
	rfl_measure__divide(&s);
	few = s.planned_s;
	assert_true(few < RFL_MEASURE_S);
	spec.repeats = 1000;
	rfl_measure__divide(&s);
	assert_true(s.planned_s > RFL_MEASURE_S && s.planned_s > 10 * few);
}

/* Rates of working sets of 1, 2, ... KiB; the plateau is not the fastest size if that is alone. */
static void a_plateau_is_not_one_lucky_size(void **state)
{
	static const struct {
		double rates[8];
		size_t chosen;
		int64_t from, to; /* KiB; 0: no plateau */
		int64_t least, most;
	} cases[] = {
		{ { 50, 50, 50, 99, 50, 50, 50, 50 }, 0, 0, 0, 4, 4 }, /* one candidate */
		{ { 90, 99, 91, 92, 93, 60, 50, 40 }, 3, 1, 5, 1, 8 },
		{ { 50, 51, 180, 52, 50, 48, 47, 20 }, 3, 0, 0, 1, 8 }, /* lucky: a doubt */
		{ { 10, 50, 50, 50, 81, 80, 82, 20 }, 4, 5, 7, 1, 8 },
		{ { 10, 50, 50, 50, 81, 80, 82, 20 }, 2, 2, 4, 1, 5 }, /* the faster is no cache's
									*/
		{ { 100, 97, 0, 0, 0, 0, 0, 0 }, 1, 1, 2, 1, 2 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_measured_run runs[8] = { 0 };
		struct rfl_measurement m = { .arena = rfl_arena_new() };
		struct rfl_measured_cell cell = { .key = "L2", .as.peak = rfl_peak_none };
		const struct rfl_session s = { .m = &m, .cell = &cell, .runs = runs, .nruns = 8 };
		const struct rfl_peak *peak = &cell.as.peak;
		size_t at;

		for (size_t k = 0; k < 8; k++) {
			runs[k].threads = 2;
			runs[k].slice_bytes = (int64_t)(k + 1) << 10;
			runs[k].stats.max = cases[i].rates[k];
		}
		at = rfl_measure__plateau(&s, 0, cases[i].least << 10, cases[i].most << 10);
		if (cases[i].least == cases[i].most) {
			assert_int_equal(at, 3);
			rfl_arena_free(m.arena);
			continue;
		}
		assert_int_equal(at, cases[i].chosen);
		assert_int_equal(peak->nplateau, cases[i].from ? 2 : 0);
		if (peak->nplateau) {
			assert_int_equal(peak->plateau_bytes[0], 2 * cases[i].from << 10);
			assert_int_equal(peak->plateau_bytes[1], 2 * cases[i].to << 10);
		}
		assert_int_equal(peak->ndoubts, cases[i].from == 0);
		at = rfl_measure__plateau(&s, 8, 1, 1 << 20);
		assert_true(at == SIZE_MAX);
		rfl_arena_free(m.arena);
	}
}

/* --- whole measurements --- */

static struct rfl_measurement *measure(const struct rfl_machine *on, const char *const *only,
				       int threads)
{
	const struct rfl_measure_spec spec = { .machine = on,
					       .only = only,
					       .repeats = 3,
					       .threads = threads,
					       .budget_s = RFL_MEASURE_QUICK_S };
	struct rfl_measurement *m = rfl_measurement_new();
	struct rfl_err err = RFL_ERR_INIT;

	rfl_measure_host(m, on);
	assert_ok(rfl_measure(&spec, m, &err), &err);
	return m;
}

static const struct rfl_peak *peak_of(const struct rfl_measurement *m, const char *key)
{
	const struct rfl_measured_peak *one = m->all;

	while (strcmp(one->key, key) != 0)
		one++;
	return &one->level.peak;
}

static bool has_doubt(const struct rfl_peak *peak, const char *word)
{
	for (size_t i = 0; i < peak->ndoubts; i++)
		if (strstr(peak->doubts[i], word))
			return true;
	return false;
}

/* This machine, as if its first and its last CPU were two sockets, each a NUMA node. */
static void sockets_and_nodes_are_told_apart(void **state)
{
	static const char *const only[] = { "DRAM", "DRAM.1core", "DRAM.1socket", "remote", NULL };
	struct rfl_cache caches[] = {
		{ .level = 3, .size_bytes = 4 << 20, .sharers = 1, .count = 2 }
	};
	struct rfl_cpu cpus[] = { machine->cpus[machine->ncpus - 1], machine->cpus[0] };
	struct rfl_machine two = *machine;
	struct rfl_measurement *m;

	(void)state;
	cpus[0].package = 1;
	cpus[1].package = 0;
	cpus[0].numa_node = 1;
	cpus[1].numa_node = 0;
	two.cpus = cpus;
	two.ncpus = 2;
	two.caches = caches;
	two.ncaches = 1;
	two.packages = two.numa_nodes = 2;
	m = measure(&two, only, 2);

	json_t *value = json_of(m);
	const json_t *memory = json_object_get(value, "memory");
	const json_t *notes = json_object_get(value, "notes");
	static const char *const scopes[] = { "node", "core", "socket", "socket" };

	assert_int_equal(json_array_size(memory), 4);
	for (size_t i = 0; i < 4; i++) {
		const json_t *level = json_array_get(memory, i);
		const json_t *gbs = json_object_get(level, "gbs");
		const json_t *conditions = json_object_get(gbs, "conditions");

		assert_string_equal(json_string_value(json_object_get(level, "level")),
				    i == 3 ? "remote" : "DRAM");
		assert_string_equal(json_string_value(json_object_get(level, "scope")), scopes[i]);
		assert_true(json_number_value(json_object_get(gbs, "value")) > 0);
		assert_int_equal(json_integer_value(json_object_get(conditions, "threads")),
				 i == 0 ? 2 : 1);
	}
	/* the first worker is on node 0, and uses the memory of node 1 */
	assert_non_null(strstr(json_string_value(json_array_get(notes, 2)), "1socket by part"));
	assert_non_null(strstr(json_string_value(json_array_get(notes, 2)), "socket 0, "));
	assert_non_null(strstr(json_string_value(json_array_get(notes, 2)), "socket 1, "));
	assert_non_null(strstr(json_string_value(json_array_get(notes, 3)), "node 0 to 1, "));
	/* here is no second node to which memory could be bound */
	assert_int_equal(has_doubt(peak_of(m, "remote"), "bound"), machine->numa_nodes == 1);
	json_decref(value);
	rfl_measurement_free(m);
}

/* One socket and one node are the machine: nothing to compare. */
static void one_socket_is_the_machine(void **state)
{
	static const char *const only[] = { "fp32.vector.1core", "DRAM.1socket", "remote", NULL };
	struct rfl_machine one = *machine;
	struct rfl_measurement *m;

	(void)state;
	one.ncpus = 1;
	m = measure(&one, only, 1);
	assert_int_equal(m->n, 3);
	assert_non_null(strstr(m->all[1].level.peak.reason, "on one socket"));
	assert_non_null(strstr(m->all[2].level.peak.reason, "on one NUMA node"));

	json_t *value = json_of(m);

	/* only DRAM, which is always listed */
	assert_int_equal(json_array_size(json_object_get(value, "memory")), 1);
	json_decref(value);
	rfl_measurement_free(m);
}

static void count_doubt(const char *env, const char *cell, const char *text, void *ctx)
{
	int *n = ctx;

	assert_string_equal(env, "lab");
	if (strcmp(cell, "compute.fp32.vector") == 0)
		*n += strstr(text, "other programs") || strstr(text, "disturbed");
}

/* Two busy processes on every CPU: the doubt is found, stored and read back. */
static void other_load_is_reported(void **state)
{
	static const char *const only[] = { "fp32.vector", NULL };
	const char *path = tmp_path(*state, "peaks.json");
	const size_t n = 2 * machine->ncpus;
	pid_t *busy = calloc(n, sizeof(*busy));
	struct rfl_peaks_edit *e = NULL;
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_measurement *m;
	json_t *value;
	int doubts = 0;

	assert_non_null(busy);
	for (size_t i = 0; i < n; i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)!rfl_pin_thread(machine->cpus[i / 2].os_index, NULL);
			for (volatile unsigned x = 0;; x++)
				;
		}
		assert_true(busy[i] > 0);
	}
	m = measure(machine, only, 0);
	for (size_t i = 0; i < n; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	free(busy);

	const struct rfl_peak *peak = peak_of(m, "fp32.vector");

	assert_true(peak->interference->switches > 0);
	assert_true(peak->interference->off_cpu > 0.1);
	assert_true(has_doubt(peak, "other programs") || has_doubt(peak, "disturbed"));
	value = json_of(m);
	assert_ok(rfl_peaks_edit_open(path, &e, &err), &err);
	rfl_peaks_edit_merge(e, "lab", value);
	assert_ok(rfl_peaks_edit_save(e, &err), &err);
	assert_ok(rfl_peaks_load(path, &p, &err), &err);
	(void)rfl_peaks_check(p, NULL, count_doubt, &doubts);
	assert_true(doubts > 0);
	json_decref(value);
	rfl_peaks_free(p);
	rfl_peaks_edit_close(e);
	rfl_measurement_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_is_divided),
		cmocka_unit_test(repeats_take_their_time),
		cmocka_unit_test(a_plateau_is_not_one_lucky_size),
		cmocka_unit_test(sockets_and_nodes_are_told_apart),
		cmocka_unit_test(one_socket_is_the_machine),
		cmocka_unit_test_setup_teardown(other_load_is_reported, tmpdir_make, tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, look, forget);
}
