/*
 * A PyTorch built with CUDA brings its own libcupti into the process: that one is used, and no
 * second one is loaded beside it, whatever lies on the machine.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "tests/unit/rfl_test.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/dl.h"
#include "profile/cupti/plan.h"
#include "profile/cupti/lib.h"

static char theirs[4096];

static int count(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(size_t *)ctx += strstr(info->dlpi_name, "libcupti") != NULL;
	return 0;
}

static void the_copy_of_pytorch_is_used(void **state)
{
	/* elsewhere, and under every name that is looked for */
	const struct rfl_cupti_places places = { .path = RFL_TEST_BUILD "/tests/fakes" };
	const struct rfl_cupti_places *const all[] = { NULL, &places };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(all); i++) {
		struct rfl_cupti *c = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		size_t copies = 0;

		assert_ok(rfl_cupti_open(all[i], &c, &err), &err);
		assert_string_equal(c->path, theirs);
		(void)dl_iterate_phdr(count, &copies);
		assert_int_equal(copies, 1);
		rfl_cupti_close(c);
	}
}

static void it_answers_as_it_does_alone(void **state)
{
	static const char *const metrics[] = { "gpu__time_duration.sum", "dram__bytes_read.sum" };
	struct rfl_cupti *c = NULL;
	struct rfl_cupti_host *h = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t passes = 0;

	(void)state;
	assert_ok(rfl_cupti_open(NULL, &c, &err), &err);
	assert_ok(rfl_cupti_host_open(c, "GA100", NULL, &h, &err), &err);
	assert_ok(rfl_cupti_passes(h, metrics, 2, &passes, NULL, &err), &err);
	assert_int_equal(passes, 1);
	rfl_cupti_host_close(h);
	rfl_cupti_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_copy_of_pytorch_is_used),
		cmocka_unit_test(it_answers_as_it_does_alone),
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_cupti *c = NULL;
	const char *path;

	if (RFL_TEST_TORCH[0] == '\0') {
		puts("skipped: configured without libtorch");
		return 77;
	}
	if (!dlopen(RFL_TEST_TORCH, RTLD_NOW | RTLD_LOCAL)) {
		printf("%s\n", dlerror());
		return 1;
	}
	path = rfl_dl_mapped("libcupti");
	if (!path) {
		puts("skipped: " RFL_TEST_TORCH " brings no CUPTI: it was built without CUDA");
		return 77;
	}
	snprintf(theirs, sizeof(theirs), "%s", path);
	if (rfl_cupti_open(NULL, &c, &err) != RFL_OK && strstr(err.msg, "address sanitizer")) {
		printf("skipped: %s\n", err.msg);
		return 77;
	}
	rfl_cupti_close(c);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
