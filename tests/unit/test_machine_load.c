/* The load of CPUs from files made for the test, and the clock of this one. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "machine/load.h"
#include "machine/machine.h"
#include "tests/unit/file_rig.h"

#define IN_TMP(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)

static void adds_the_times_of_processors(void **state)
{
	static const int both[] = { 0, 10 }, one[] = { 1 };
	const double tick = rfl_load_tick_s();
	struct rfl_load load;

	assert_false(rfl_load_read(*state, both, 2, &load));
	put(*state, "/proc/stat",
	    "cpu  1000 200 30 99999 888 4 5 66 7 8\n"
	    "cpu0 500 100 10 9 8 1 2 11 0 0\n"
	    "cpu1 500 100 20 9 8 3 3 22 0 0\n"
	    "cpu10 0 0 0 9 8 0 0 33 0 0\n"
	    "intr 12345 0 0\nctxt 77\n");
	/* busy: user, nice, system, irq, softirq of the first line; steal: cpu0 and cpu10 */
	assert_true(rfl_load_read(*state, both, 2, &load));
	assert_close(load.busy_s, 1239 * tick, 1e-12);
	assert_close(load.steal_s, 44 * tick, 1e-12);
	assert_true(rfl_load_read(*state, one, 1, &load));
	assert_close(load.steal_s, 22 * tick, 1e-12);
	assert_true(rfl_load_read(*state, NULL, 0, &load));
	assert_close(load.steal_s, 0, 0);
	assert_int_equal(load.hw_threads, 3);
	assert_true(load.own_s > 0);
}

static void other_programs_are_what_is_left(void **state)
{
	const double ticks = 4 * rfl_load_tick_s();
	struct rfl_load from = { .busy_s = 100, .own_s = 5, .at_s = 1000, .hw_threads = 4 };
	struct rfl_load to = { .busy_s = 116, .own_s = 12, .at_s = 1010, .hw_threads = 4 };

	(void)state;
	/* of 40 s, 16 were busy, 7 of them by this process */
	assert_close(rfl_load_others(&from, &to), (9 - ticks) / 40, 1e-12);
	to.own_s = 21;
	assert_close(rfl_load_others(&from, &to), 0, 0);
	to.hw_threads = 0; /* the file has no line for each */
	assert_true(isnan(rfl_load_others(&from, &to)));
	to.hw_threads = 4;
	from.busy_s = (double)NAN; /* the first reading failed */
	assert_true(isnan(rfl_load_others(&from, &to)));
}

/* Old kernels and emulations of /proc: no time, or fewer columns. */
static void incomplete_files_are_unknown(void **state)
{
	static const char *const texts[] = { "cpu\n",
					     "cpu  1 2 3 4\n",
					     "cpu0 1 2 3 4 5 6 7 8\n",
					     "cp",
					     "intr 1\ncpu  1 2 3 4 5 6 7 8\n",
					     "cpu  a b c d e f g h\n" };
	static const int cpus[] = { 0 };
	struct rfl_load load;

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		put(*state, "/proc/stat", texts[i]);
		assert_false(rfl_load_read(*state, cpus, 1, &load));
		assert_true(isnan(load.busy_s) && isnan(load.steal_s));
	}
}

#define RAPL "/sys/class/powercap/intel-rapl:"

/* Packages are added, a counter may wrap, and other domains are no packages. */
static void adds_the_energy_of_packages(void **state)
{
	struct rfl_energy e;

	rfl_energy_begin(*state, &e);
	assert_true(isnan(e.used_j));
	for (char i = '0'; i < '3'; i++) {
		char path[] = RAPL "?/max_energy_range_uj";

		path[strlen(RAPL)] = i;
		put(*state, path, "10000000\n");
	}
	put(*state, RAPL "0/name", "package-0\n");
	put(*state, RAPL "1/name", "psys\n");
	put(*state, RAPL "2/name", "package-1\n");
	put(*state, RAPL "0/energy_uj", "1000000\n");
	put(*state, RAPL "1/energy_uj", "1\n");
	put(*state, RAPL "2/energy_uj", "9000000\n");
	rfl_energy_begin(*state, &e);
	assert_int_equal(e.n, 2);
	assert_close(e.used_j, 0, 0);
	put(*state, RAPL "0/energy_uj", "1500000\n");
	put(*state, RAPL "1/energy_uj", "9000000\n");
	put(*state, RAPL "2/energy_uj", "250000\n");
	rfl_energy_add(*state, &e);
	assert_close(e.used_j, 0.5 + 1.25, 1e-12);
	put(*state, RAPL "2/energy_uj", "no\n");
	rfl_energy_add(*state, &e);
	assert_true(isnan(e.used_j));
}

/* Work of this process appears in the file of the kernel, a tick later at most. */
static void this_process_is_busy(void **state)
{
	struct rfl_load before, after;
	volatile uint64_t x = 1;

	(void)state;
	if (!rfl_load_read("", NULL, 0, &before) || before.busy_s <= 0)
		skip();
	for (int i = 0; i < 1000; i++) {
		for (int k = 0; k < 1000000; k++)
			x = x * 3 + 1;
		assert_true(rfl_load_read("", NULL, 0, &after));
		if (after.busy_s > before.busy_s)
			break;
	}
	assert_true(after.busy_s > before.busy_s);
}

/* The fastest of several readings repeats, and is the clock of some CPU. */
static void the_clock_of_a_core_repeats(void **state)
{
	double most[2] = { 0 };

	(void)state;
	if (isnan(rfl_core_clock_hz()))
		skip();
	for (int i = 0; i < 200; i++)
		most[i % 2] = fmax(most[i % 2], rfl_core_clock_hz());
	assert_true(most[0] > 1e8 && most[0] < 1e10);
	assert_close(most[0], most[1], 0.1);
}

static void memory_is_bound_to_a_node_or_not_at_all(void **state)
{
	const size_t size = 1 << 16;
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char *memory = malloc(size);
	enum rfl_rc rc;

	(void)state;
	assert_non_null(memory);
	assert_ok(rfl_machine_new(&m, &err), &err);
	assert_int_equal(rfl_bind_memory(memory, size, -1, &err), RFL_EINVAL);
	rfl_err_clear(&err);
	assert_int_equal(rfl_bind_memory(memory, size, 1023, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "NUMA node 1023");
	rfl_err_clear(&err);
	/* some containers refuse every node */
	rc = rfl_bind_memory(memory, size, m->cpus[0].numa_node, &err);
	assert_true(rc == RFL_OK || rc == RFL_EUNAVAILABLE);
	memory[size - 1] = 1;
	rfl_machine_free(m);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TMP(adds_the_times_of_processors),
		cmocka_unit_test(other_programs_are_what_is_left),
		IN_TMP(adds_the_energy_of_packages),
		IN_TMP(incomplete_files_are_unknown),
		cmocka_unit_test(this_process_is_busy),
		cmocka_unit_test(the_clock_of_a_core_repeats),
		cmocka_unit_test(memory_is_bound_to_a_node_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
