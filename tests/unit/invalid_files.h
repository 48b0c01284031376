/*
 * invalid_files.h - a folder of files that a reader refuses: <case>/input.json, and in <case>/error
 * the message behind the file's name, word for word.
 */
#ifndef RFL_TESTS_INVALID_FILES_H
#define RFL_TESTS_INVALID_FILES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "tests/unit/rfl_test.h"

/** Read a file; `made` says whether an object was handed out. */
typedef enum rfl_rc try_load_fn(const char *path, bool *made, struct rfl_err *err);

/* The message of a case is that of its file; with RFL_TEST_UPDATE=1 it is written there. */
static inline void check_message(const char *folder, const char *name, const char *got)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf line;
	char rel[512];

	(void)snprintf(rel, sizeof(rel), "%s/%s/error", folder, name);
	rfl_buf_init(&line, 0);
	if (getenv("RFL_TEST_UPDATE")) {
		rfl_buf_printf(&line, "%s\n", got);
		assert_ok(rfl_file_write(data_path(rel), line.data, line.len, &err), &err);
	} else {
		assert_ok(rfl_file_read(data_path(rel), &line, &err), &err);
		assert_true(line.len > 0 && line.data[line.len - 1] == '\n');
		line.data[line.len - 1] = '\0';
		if (strcmp(got, line.data) != 0)
			print_error("case %s\n", name);
		assert_string_equal(got, line.data);
	}
	rfl_buf_fini(&line);
}

static inline void check_invalid_file(const char *folder, const char *name, try_load_fn *try_load)
{
	char rel[512], path[1024];
	struct rfl_err err = RFL_ERR_INIT;
	const char *got;
	bool made = false;

	(void)snprintf(rel, sizeof(rel), "%s/%s/input.json", folder, name);
	(void)snprintf(path, sizeof(path), "%s", data_path(rel));
	if (try_load(path, &made, &err) != RFL_EFORMAT)
		fail_msg("%s: %s: %s", name, rfl_rc_text(err.rc), err.msg);
	assert_false(made);
	assert_int_equal(strncmp(err.msg, path, strlen(path)), 0);
	got = err.msg + strlen(path);
	assert_int_equal(*got, ':');
	got++;
	check_message(folder, name, got + (*got == ' '));
}

/** Every case of a folder under tests/data, of which there are `least` or more. */
static inline void check_invalid_files(const char *folder, int least, try_load_fn *try_load)
{
	DIR *dir = opendir(data_path(folder));
	const struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		check_invalid_file(folder, entry->d_name, try_load);
		n++;
	}
	(void)closedir(dir);
	assert_true(n >= least);
}

#endif
