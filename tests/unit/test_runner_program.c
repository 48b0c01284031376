/* A program that is run and recorded, on a machine whose files are made for the test. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runner/program.h"
#include "tests/unit/file_rig.h"

#define RAPL "/sys/class/powercap/intel-rapl:0/"

/* The energy is the mean of the runs; without counters, it is unknown. */
static void records_the_energy(void **state)
{
	static const char script[] = "read -r e <$1; echo $((e + 3000000)) >$1";
	const char *const argv[] = { "sh", "-c", script, "sh", NULL, NULL };
	const char *words[RFL_ARRAY_LEN(argv)], *root = *state;
	char path[1024];
	struct rfl_program_config c = { .argv = words,
					.name = "app",
					.env = "lab",
					.backend = "cpu",
					.log_dir = root,
					.root = root,
					.command = "app",
					.flops = NAN,
					.bytes = NAN,
					.repeats = 2,
					.batch = 6,
					.no_counters = true };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_program_result r;

	memcpy(words, argv, sizeof(words));
	(void)snprintf(path, sizeof(path), "%s" RAPL "energy_uj", root);
	words[4] = path;
	put(root, RAPL "name", "package-0\n");
	put(root, RAPL "energy_uj", "1000000\n");
	put(root, RAPL "max_energy_range_uj", "100000000\n");
	assert_ok(rfl_program_run(&c, &r, &err), &err);
	assert_close(r.row.energy_j_per_step, 3, 1e-9);
	assert_close(r.row.samples_per_j, 2, 1e-9);
	rfl_program_result_fini(&r);
	c.root = "/nonexistent";
	assert_ok(rfl_program_run(&c, &r, &err), &err);
	assert_true(isnan(r.row.energy_j_per_step) && isnan(r.row.samples_per_j));
	rfl_program_result_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_the_energy, tmpdir_make, tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
