/*
 * fuzz.h - a fuzz target is one file fuzz_<name>.c with the function below; its first inputs are
 * corpus/<name>/. Built with gcc it gets the main() of replay.c, which runs files given by name;
 * with clang and -DRFL_FUZZ=ON it gets libFuzzer's.
 */
#ifndef RFL_TESTS_FUZZ_FUZZ_H
#define RFL_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** The input under a path that rfl_file_read() and rfl_csv_open() read from memory. Valid until the
 * next call. */
const char *fuzz_memory(const uint8_t *data, size_t size);

/** The input as a file, for parsers that take a path. The same file each time; it is removed when
 * the process ends. */
const char *fuzz_file(const uint8_t *data, size_t size);

/** Whether the check of this number, 0 to 15, is due for an input: one of 16 in a search, so that time
 * goes into the parser; all of them where replay.c runs files. */
bool fuzz_due(const uint8_t *data, size_t size, unsigned check);
extern bool fuzz_all_due; /**< set by replay.c */

/** What must hold of every call: a result exactly on success, else a message that names the file.
 */
void fuzz_check(enum rfl_rc rc, const void *ret, const struct rfl_err *err, const char *path);

/** Stop here: an input has shown something that must not be. */
#define FUZZ_ASSERT(condition)                                     \
	do {                                                       \
		if (!(condition))                                  \
			fuzz_fail(#condition, __FILE__, __LINE__); \
	} while (0)
void fuzz_fail(const char *condition, const char *file, int line);

#endif
