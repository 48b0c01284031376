/*
 * rfl_test.h - cmocka with what our tests need besides: exact comparison of doubles with a
 * tolerance that is stated, and a scratch directory per test.
 */
#ifndef RFL_TESTS_RFL_TEST_H
#define RFL_TESTS_RFL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

/** |a - b| <= rel * max(|a|, |b|); NaN equals only NaN. */
#define assert_close(a, b, rel) rfl_test_close((a), (b), (rel), #a, __FILE__, __LINE__)
void rfl_test_close(double a, double b, double rel, const char *expr, const char *file, int line);

/** A call that must succeed; prints the message when it does not. */
#define assert_ok(call, err) rfl_test_ok((call), (err), #call, __FILE__, __LINE__)
void rfl_test_ok(enum rfl_rc rc, const struct rfl_err *err, const char *expr, const char *file,
		 int line);

/** A message that must contain a word. */
#define assert_says(err, word) rfl_test_says((err), (word), __FILE__, __LINE__)
void rfl_test_says(const struct rfl_err *err, const char *word, const char *file, int line);

/* Fixtures: *state is a path of an empty directory that the test may fill. */
int tmpdir_make(void **state);
int tmpdir_remove(void **state);

/** Write text into <tmpdir>/name and return the path (valid until the test ends). */
const char *write_file(void *state, const char *name, const char *text);

/** <tmpdir>/name (valid until the test ends). */
const char *tmp_path(void *state, const char *name);

/** Path of a file under tests/data (valid until the next 15 calls). */
const char *data_path(const char *name);

#endif
