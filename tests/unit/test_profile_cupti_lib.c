/*
 * How libcupti is found and refused, and how its results are reported. A process maps one libcupti
 * at most, so each case that opens one runs in a child.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "tests/unit/rfl_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"
#include "profile/cupti/api.h"
#include "profile/cupti/lib.h"

static const char fake[] = RFL_TEST_BUILD "/tests/fakes/libcupti.so.13";

/* Run a case in a child; it prints what is wrong and returns false. */
static void in_a_child(bool (*good)(void **state), void **state)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(good(state) ? 0 : 1);
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
}

/* Open, and have the message or the path of the file. */
static bool says(const struct rfl_cupti_places *places, enum rfl_rc rc, const char *word)
{
	struct rfl_cupti *c = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const enum rfl_rc got = rfl_cupti_open(places, &c, &err);
	const char *text = got == RFL_OK ? c->path : err.msg;
	const bool good = got == rc && (got == RFL_OK) == (c != NULL) && strstr(text, word);

	if (!good)
		print_error("%d '%s' instead of %d '%s'\n", got, text, rc, word);
	rfl_cupti_close(c);
	return good;
}

static const char *copy_to(void **state, const char *from, const char *name)
{
	const char *path = tmp_path(*state, name);
	struct rfl_buf bytes;
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(&bytes, 0);
	assert_ok(rfl_file_read(from, &bytes, &err), &err);
	assert_ok(rfl_file_mkdirs_for(path, &err), &err);
	assert_ok(rfl_file_write(path, bytes.data, bytes.len, &err), &err);
	rfl_buf_fini(&bytes);
	return path;
}

static bool cannot_be_opened(void **state)
{
	const char *text = write_file(*state, "text.so", "no library");
	const struct {
		const char *path;
		const char *word;
	} cases[] = {
		{ *state, "contains neither libcupti.so.13 nor libcupti.so.12" },
		{ "/no/such/file.so", "cannot load /no/such/file.so" },
		{ text, "text.so" },
		{ "libm.so.6", ": symbol cupti" },
		{ "libm.so.6", "(it has no range profiler)" },
		{ "/no/such/file.so", "set RFL_CUPTI_PATH to its directory" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		if (!says(&(struct rfl_cupti_places){ .path = cases[i].path }, RFL_EUNAVAILABLE,
			  cases[i].word))
			return false;
	return true;
}

static bool is_opened_by_its_path(void **state)
{
	(void)state;
	return says(&(struct rfl_cupti_places){ .path = fake }, RFL_OK, fake);
}

static bool is_opened_in_its_folder(void **state)
{
	char folder[] = RFL_TEST_BUILD "/tests/fakes";

	(void)state;
	return says(&(struct rfl_cupti_places){ .path = folder }, RFL_OK, fake);
}

/* What another library brought is used, wherever the places point to. */
static bool is_the_copy_that_is_mapped(void **state)
{
	const char *theirs = copy_to(state, fake, "site/libcupti-0f00.so.13");

	return dlopen(theirs, RTLD_NOW | RTLD_LOCAL) &&
	       says(&(struct rfl_cupti_places){ .path = fake }, RFL_OK, theirs) &&
	       says(NULL, RFL_OK, theirs);
}

/* A second one beside a mapped one does not work: it is not tried. */
static bool a_mapped_one_without_range_profiler_is_the_end(void **state)
{
	Dl_info info;
	const char *old;
	void *handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	void *cosine = handle ? dlsym(handle, "cos") : NULL;

	if (!cosine || !dladdr(cosine, &info))
		return false;
	old = copy_to(state, info.dli_fname, "libcupti.so.11.8");
	return dlopen(old, RTLD_NOW | RTLD_LOCAL) &&
	       says(&(struct rfl_cupti_places){ .path = fake }, RFL_EUNAVAILABLE, old) &&
	       says(&(struct rfl_cupti_places){ .path = fake }, RFL_EUNAVAILABLE,
		    "loaded by another library in this process");
}

/* The version of the driver goes first: here 12, which the loader does not know by itself. */
static bool is_found_in_a_toolkit(void **state)
{
	const char *there = copy_to(state, fake, "cuda/extras/CUPTI/lib64/libcupti.so.12");
	const char *home = tmp_path(*state, "cuda");

	if (dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL))
		return true; /* the loader's own comes first */
	return says(&(struct rfl_cupti_places){ .cuda_home = home, .driver_major = 12 }, RFL_OK,
		    there);
}

static bool is_found_beside_pytorch(void **state)
{
	const char *there = copy_to(state, fake, "site/nvidia/cuda_cupti/lib/libcupti.so.12");
	const char *beside = tmp_path(*state, "site/torch/lib");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_cupti *c = NULL;
	struct stat a, b;
	bool same;

	if (dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL))
		return true;
	assert_ok(rfl_file_mkdirs(beside, &err), &err);
	assert_ok(rfl_cupti_open(&(struct rfl_cupti_places){ .beside = beside, .driver_major = 12 },
				 &c, &err),
		  &err);
	same = stat(there, &a) == 0 && stat(c->path, &b) == 0 && a.st_ino == b.st_ino;
	rfl_cupti_close(c);
	return same;
}

/* CUPTI says "not initialized" when the library that it opens itself is not there. */
static bool its_missing_neighbour_is_named(void **state)
{
	struct rfl_cupti *c = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (rfl_cupti_open(&(struct rfl_cupti_places){ .path = fake }, &c, &err) != RFL_OK)
		return false;
	return rfl_cupti_check(c, RFL_CUPTI_NOT_INITIALIZED, "cuptiProfilerHostInitialize", &err) ==
		       RFL_EUNAVAILABLE &&
	       strstr(err.msg,
		      "libnvperf_host.so is missing from " RFL_TEST_BUILD "/tests/fakes") &&
	       err.native == RFL_CUPTI_NOT_INITIALIZED;
}

#define IN_A_CHILD(name)                  \
	static void name##_(void **state) \
	{                                 \
		in_a_child(name, state);  \
	}
IN_A_CHILD(cannot_be_opened)
IN_A_CHILD(is_opened_by_its_path)
IN_A_CHILD(is_opened_in_its_folder)
IN_A_CHILD(is_the_copy_that_is_mapped)
IN_A_CHILD(a_mapped_one_without_range_profiler_is_the_end)
IN_A_CHILD(is_found_in_a_toolkit)
IN_A_CHILD(is_found_beside_pytorch)
IN_A_CHILD(its_missing_neighbour_is_named)

/* ------------------------------------------------------------------ messages */

static void every_result_has_its_message(void **state)
{
#define VALUE(name, theirs, value, ...) value,
	static const int results[] = { RFL_CUPTI_RESULTS(VALUE) };

	(void)state;
	for (size_t k = 0; k < RFL_ARRAY_LEN(results); k++) {
		struct rfl_err err = RFL_ERR_INIT;

		if (rfl_cupti_check(NULL, results[k], "cupti", &err) == RFL_OK)
			assert_int_equal(results[k], RFL_CUPTI_SUCCESS);
		else /* of its own, which one that is not in the table has not */
			assert_true(strstr(err.msg, "CUPTI error") - err.msg > 15);
	}
}

static void results_become_errors(void **state)
{
	static const struct {
		int result;
		enum rfl_rc rc;
		const char *word;
	} cases[] = {
		{ 35, RFL_EUNAVAILABLE, "NVreg_RestrictProfilingToAdminUsers=0" },
		{ 35, RFL_EUNAVAILABLE, "CUPTI error, 35" }, /* no library to ask for its name */
		{ 26, RFL_EUNAVAILABLE, "dcgm-exporter" },
		{ 39, RFL_EUNAVAILABLE, "another profiler is active in this process" },
		{ 27, RFL_EUNSUPPORTED, "cannot be counted together" },
		{ 17, RFL_ENOTFOUND, "no such metric" },
		{ 46, RFL_EUNAVAILABLE, "older than the chip" },
		{ 4711, RFL_EUNAVAILABLE, "4711" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_cupti_check(NULL, cases[i].result, "cuptiSomething", &err),
				 cases[i].rc);
		assert_says(&err, "cuptiSomething: ");
		assert_says(&err, cases[i].word);
		assert_int_equal(err.native, cases[i].result);
	}
	assert_int_equal(rfl_cupti_check(NULL, 0, "cuptiSomething", NULL), RFL_OK);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name##_, tmpdir_make, tmpdir_remove)
	const struct CMUnitTest tests[] = {
		CASE(cannot_be_opened),
		CASE(is_opened_by_its_path),
		CASE(is_opened_in_its_folder),
		CASE(is_the_copy_that_is_mapped),
		CASE(a_mapped_one_without_range_profiler_is_the_end),
		CASE(is_found_in_a_toolkit),
		CASE(is_found_beside_pytorch),
		CASE(its_missing_neighbour_is_named),
		cmocka_unit_test(every_result_has_its_message),
		cmocka_unit_test(results_become_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
