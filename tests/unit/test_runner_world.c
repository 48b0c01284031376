/* Who we are among several processes, as launchers say it in the environment. */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "runner/run.h"

/* "NAME=value" texts, ended by NULL. */
static const char *of_list(const char *name, void *ctx)
{
	const size_t len = strlen(name);

	for (const char *const *at = ctx; *at; at++)
		if (strncmp(*at, name, len) == 0 && (*at)[len] == '=')
			return *at + len + 1;
	return NULL;
}

static const struct {
	const char *env[10];
	const char *launcher, *address;
	int expected[5]; /* rank, size, local_rank, local_size, port */
} launchers[] = {
	{ { "HOME=/root", NULL }, NULL, "", { 0, 1, 0, 1, 29500 } },
	{ { "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=node1",
	    "MASTER_PORT=1234", NULL },
	  "torchrun",
	  "node1",
	  { 3, 8, 1, 2, 1234 } },
	{ { "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", NULL },
	  "torchrun",
	  "127.0.0.1",
	  { 1, 2, 1, 2, 29500 } },
	/* srun starts torchrun: the latter decides */
	{ { "SLURM_PROCID=0", "SLURM_NTASKS=1", "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=5",
	    "LOCAL_WORLD_SIZE=8", NULL },
	  "torchrun",
	  "127.0.0.1",
	  { 5, 8, 5, 8, 29500 } },
	{ { "SLURM_PROCID=9", "SLURM_NTASKS=16", "SLURM_LOCALID=1",
	    "SLURM_JOB_NODELIST=gpu[003-007,9],x", NULL },
	  "slurm",
	  "gpu003",
	  { 9, 16, 1, -1, 29500 } },
	{ { "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_LOCALID=0", "SLURM_JOB_NODELIST=alpha,beta",
	    NULL },
	  "slurm",
	  "alpha",
	  { 0, 2, 0, -1, 29500 } },
	{ { "SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_LOCALID=0", "SLURM_JOB_NODELIST=localhost",
	    NULL },
	  "slurm",
	  "127.0.0.1",
	  { 0, 1, 0, 1, 29500 } },
	{ { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
	    "OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL },
	  "openmpi",
	  "127.0.0.1",
	  { 1, 2, 1, 2, 29500 } },
	{ { "PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2",
	    "MASTER_ADDR=10.0.0.1", NULL },
	  "mpich",
	  "10.0.0.1",
	  { 2, 4, 0, 2, 29500 } },
	/* an empty variable is one that is not set */
	{ { "RANK=", "PMI_RANK=0", "PMI_SIZE=1", NULL },
	  "mpich",
	  "127.0.0.1",
	  { 0, 1, 0, 1, 29500 } },
};

static void launchers_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(launchers); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_world w;

		assert_ok(
			rfl_world_from_env(of_list, (void *)(uintptr_t)launchers[i].env, &w, &err),
			&err);
		if (launchers[i].launcher)
			assert_string_equal(w.launcher, launchers[i].launcher);
		else
			assert_null(w.launcher);
		assert_string_equal(w.address, launchers[i].address);
		const int have[] = { w.rank, w.size, w.local_rank, w.local_size, w.port };

		assert_memory_equal(have, launchers[i].expected, sizeof(have));
	}
}

static void wrong_variables_are_named(void **state)
{
	static const struct {
		const char *env[8];
		const char *says;
	} cases[] = {
		{ { "RANK=0", NULL }, "WORLD_SIZE is not set, but RANK is" },
		{ { "RANK=2", "WORLD_SIZE=2", NULL },
		  "RANK: '2' is not a whole number from 0 to 1" },
		{ { "RANK=0", "WORLD_SIZE=two", NULL }, "WORLD_SIZE: 'two' is not a whole number" },
		{ { "RANK=0", "WORLD_SIZE=0", NULL }, "WORLD_SIZE: '0'" },
		{ { "RANK=0", "WORLD_SIZE=2", NULL }, "LOCAL_RANK is not set" },
		{ { "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_PORT=0",
		    NULL },
		  "MASTER_PORT: '0' is not a whole number from 1 to 65535" },
		{ { "RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", NULL },
		  "MASTER_ADDR is not set: set it to the host of rank 0 (torchrun" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_world w = { .size = 77 };

		assert_int_equal(
			rfl_world_from_env(of_list, (void *)(uintptr_t)cases[i].env, &w, &err),
			RFL_EINVAL);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
		assert_int_equal(w.size, 77);
	}
}

static void a_job_has_a_port_and_a_step_its_machine(void **state)
{
	const char *const one[] = { "SLURM_PROCID=1",
				    "SLURM_NTASKS=2",
				    "SLURM_LOCALID=1",
				    "SLURM_JOB_NODELIST=gpu1,gpu2",
				    "SLURM_STEP_NUM_NODES=1",
				    "SLURM_JOB_ID=1234567",
				    NULL };
	const char *const torchrun[] = { "RANK=0",
					 "WORLD_SIZE=2",
					 "LOCAL_RANK=0",
					 "LOCAL_WORLD_SIZE=2",
					 "MASTER_PORT=29400",
					 "TORCHELASTIC_USE_AGENT_STORE=True",
					 NULL };
	struct rfl_world w;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_world_from_env(of_list, (void *)(uintptr_t)one, &w, &err), &err);
	assert_int_equal(w.local_size, 2);
	assert_string_equal(w.address, "127.0.0.1");
	assert_int_equal(w.port, 15000 + 4567);
	assert_false(w.hosted);
	assert_ok(rfl_world_from_env(of_list, (void *)(uintptr_t)torchrun, &w, &err), &err);
	assert_true(w.hosted);
	assert_int_equal(w.port, 29400);
}

static void each_process_has_its_gpu(void **state)
{
	static const struct {
		const char *visible, *own; /* own NULL: as it is */
		int local_rank;
	} cases[] = {
		{ NULL, "3", 3 },
		{ "4,5,7", "7", 2 },
		{ "4,5,7", NULL, 3 },
		{ "6", "6", 0 },
		{ "6", NULL, 1 },
		{ "", NULL, 0 },
		{ "GPU-a,GPU-b", "GPU-b", 1 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		char own[64] = "";
		const bool chosen = rfl_world_gpu(cases[i].visible, cases[i].local_rank, own);

		assert_int_equal(chosen, cases[i].own != NULL);
		if (chosen)
			assert_string_equal(own, cases[i].own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launchers_are_read),
		cmocka_unit_test(a_job_has_a_port_and_a_step_its_machine),
		cmocka_unit_test(each_process_has_its_gpu),
		cmocka_unit_test(wrong_variables_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
