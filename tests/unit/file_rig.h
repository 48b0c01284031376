/*
 * file_rig.h - for tests that make files and look into them.
 */
#ifndef RFL_TESTS_FILE_RIG_H
#define RFL_TESTS_FILE_RIG_H

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "tests/unit/rfl_test.h"

/** Write a text to a path below a root; its directories are made. */
static inline void put(const char *root, const char *path, const char *text)
{
	struct rfl_err err = RFL_ERR_INIT;
	char full[1024];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_ok(rfl_file_mkdirs_for(full, &err), &err);
	assert_ok(rfl_file_write(full, text, strlen(text), &err), &err);
}

/** A file's text. The caller frees. */
static inline char *content(const char *path)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;
	char *copy;

	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(path, &text, &err), &err);
	copy = strdup(rfl_buf_str(&text));
	assert_non_null(copy);
	rfl_buf_fini(&text);
	return copy;
}

#endif
