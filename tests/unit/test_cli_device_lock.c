/*
 * Locks of devices: one for each GPU whatever names it, all that a run uses, in one order.
 */
#include "tests/unit/fake_gpu.h"

#include <stdlib.h>

#include "cli/device_lock.h"

static struct rfl_device_lock lock_of(const char *visible, size_t ngpus, const char *dir)
{
	struct rfl_device_lock l;

	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	rfl_device_lock_init(&l, "cuda", ngpus, dir);
	unsetenv("CUDA_VISIBLE_DEVICES");
	return l;
}

static bool are_same(const struct rfl_device_lock *a, const struct rfl_device_lock *b)
{
	bool same = a->n == b->n;

	for (int i = 0; same && i < a->n; i++)
		same = strcmp(a->path[i], b->path[i]) == 0;
	return same;
}

static void a_gpu_has_one_lock_whatever_names_it(void **state)
{
	static const struct {
		const char *a, *b;
		size_t ngpus;
		bool same;
	} cases[] = {
		{ NULL, "0", 1, true },
		{ "0", "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0", 1, true },
		{ "2", "GPU-a2a2a2a2", 1, true },
		{ "0", "1", 1, false },
		{ "0", "0,1", 1, true },
		{ "0,1", "1,0", 2, true }, /* the same two, in one order */
		{ "0,1", "0,2", 2, false },
		{ "0", "MIG-b0b0b0b0-b0b0-b0b0-b0b0-b0b0b0b0b0b0", 1, false },
		{ "MIG-b0b0b0b0", "MIG-b1b1b1b1", 1, false },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_device_lock a, b;

		fake_scripts("count=4", "");
		a = lock_of(cases[i].a, cases[i].ngpus, "/locks");
		b = lock_of(cases[i].b, cases[i].ngpus, "/locks");
		assert_int_equal(a.n, cases[i].ngpus);
		if (are_same(&a, &b) != cases[i].same)
			fail_msg("%zu: %s and %s", i, a.path[0], b.path[0]);
		fake_is_clean(); /* no context was made */
	}
}

/* No run of CUDA gets far there. */
static void without_a_driver_gpus_are_numbered(void **state)
{
	struct rfl_device_lock l;

	(void)state;
	fake_scripts("fail=cuInit:100", "");
	rfl_device_lock_init(&l, "auto", 2, "/locks");
	assert_int_equal(l.n, 3);
	assert_string_equal(l.path[0], "/locks/roofline-cpu.lock");
	assert_string_equal(l.path[1], "/locks/roofline-gpu-0.lock");
	assert_string_equal(l.path[2], "/locks/roofline-gpu-1.lock");
	rfl_device_lock_init(&l, "cpu", 4, "/locks");
	assert_int_equal(l.n, 1);
	rfl_device_lock_init(&l, "mps", 100, "/locks");
	assert_int_equal(l.n, RFL_DEVICE_LOCKS_MAX - 1);
}

static bool is_free(struct rfl_device_lock *l)
{
	struct rfl_err err = RFL_ERR_INIT;
	bool busy = false;

	assert_ok(rfl_device_lock_try(l, &busy, &err), &err);
	if (!busy)
		rfl_device_lock_release(l);
	return !busy;
}

/* A run of two processes keeps others off both of its GPUs, and off no third. */
static void a_run_locks_every_gpu_that_it_uses(void **state)
{
	const char *dir = tmp_path(*state, "");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_device_lock two, first, second, third;
	bool busy = true;

	fake_scripts("count=4", "");
	two = lock_of("0,1", 2, dir);
	first = lock_of("GPU-a0a0a0a0", 1, dir);
	second = lock_of("1", 1, dir);
	third = lock_of("2", 1, dir);
	assert_ok(rfl_device_lock_try(&two, &busy, &err), &err);
	assert_false(busy);
	assert_false(is_free(&first));
	assert_false(is_free(&second));
	assert_true(is_free(&third));
	rfl_device_lock_release(&two);
	assert_ok(rfl_device_lock_try(&second, &busy, &err), &err);
	assert_false(busy);
	assert_false(is_free(&two)); /* and then it keeps none of them */
	assert_true(is_free(&first));
	rfl_device_lock_release(&second);
	assert_true(is_free(&two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_has_one_lock_whatever_names_it),
		cmocka_unit_test(without_a_driver_gpus_are_numbered),
		cmocka_unit_test_setup_teardown(a_run_locks_every_gpu_that_it_uses, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
