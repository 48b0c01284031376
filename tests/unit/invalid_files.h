/*
 * invalid_files.h - documents that a reader refuses, many in one file under tests/data. In it
 *
 *	=== BASE        begins a document that is fine,
 *	--- CASE: BASE  that document changed: what "- " lines say stands there once and becomes
 *what the "+ " lines below say (the space after the sign is none of it), any number of times,
 *	--- CASE        a document of its own; a last line "\" says that no newline ends it,
 *
 * and each case ends with a line "! " of the exact message after the file's name. With
 * RFL_TEST_UPDATE=1 the messages are written there, to be checked.
 */
#ifndef RFL_TESTS_INVALID_FILES_H
#define RFL_TESTS_INVALID_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "tests/unit/rfl_test.h"

/** Read a file; `made` says whether an object was handed out. */
typedef enum rfl_rc try_load_fn(const char *path, bool *made, struct rfl_err *err);

#define INVALID_BASES 4

struct invalid_files {
	void *state;
	try_load_fn *try_load;
	struct {
		char name[32];
		struct rfl_buf text;
	} bases[INVALID_BASES];
	size_t nbases;
	char name[64];              /* of the case */
	bool changes;               /* it is made from a base */
	struct rfl_buf doc;         /* the base or the case that is being read */
	struct rfl_buf before, now; /* the change that is being read; nothing: `before` is empty */
};

/* The text that occurs once in the document, before and after the change. */
static inline void invalid_change(struct invalid_files *f)
{
	struct rfl_buf text;
	const char *doc = rfl_buf_str(&f->doc), *before = rfl_buf_str(&f->before), *at;

	if (f->before.len == 0)
		return;
	at = strstr(doc, before);
	if (!at || strstr(at + 1, before))
		fail_msg("%s: stands %s in the document: %s", f->name, at ? "twice" : "nowhere",
			 before);
	rfl_buf_init(&text, 0);
	rfl_buf_append(&text, doc, (size_t)(at - doc));
	rfl_buf_puts(&text, rfl_buf_str(&f->now));
	rfl_buf_puts(&text, at + f->before.len);
	rfl_buf_reset(&f->doc);
	rfl_buf_puts(&f->doc, rfl_buf_str(&text));
	rfl_buf_fini(&text);
	rfl_buf_reset(&f->before);
	rfl_buf_reset(&f->now);
}

/* Load the document; the message after its name is left in err->msg. */
static inline const char *invalid_message(struct invalid_files *f, struct rfl_err *err)
{
	const char *path, *doc;
	bool made = false;

	invalid_change(f);
	doc = rfl_buf_str(&f->doc);
	if (f->doc.len >= 2 && strcmp(doc + f->doc.len - 2, "\\\n") == 0)
		f->doc.len -= 3;
	path = tmp_path(f->state, "input.json");
	assert_ok(rfl_file_write(path, doc, f->doc.len, err), err);
	if (f->try_load(path, &made, err) != RFL_EFORMAT)
		fail_msg("%s: %s: %s", f->name, rfl_rc_text(err->rc), err->msg);
	assert_false(made);
	assert_int_equal(strncmp(err->msg, path, strlen(path)), 0);
	assert_int_equal(err->msg[strlen(path)], ':');
	return err->msg + strlen(path) + (err->msg[strlen(path) + 1] == ' ' ? 2 : 1);
}

/* "--- CASE" or "--- CASE: BASE" */
static inline void invalid_begin(struct invalid_files *f, const char *line)
{
	const char *base = strstr(line, ": ");

	snprintf(f->name, sizeof(f->name), "%.*s", base ? (int)(base - line) : (int)strlen(line),
		 line);
	f->changes = base != NULL;
	rfl_buf_reset(&f->doc);
	if (!base)
		return;
	for (size_t i = 0; i < f->nbases; i++)
		if (strcmp(f->bases[i].name, base + 2) == 0)
			rfl_buf_puts(&f->doc, rfl_buf_str(&f->bases[i].text));
	if (f->doc.len == 0)
		fail_msg("%s: nothing is called %s", f->name, base + 2);
}

/* A document that others change has nothing wrong itself. */
static inline void invalid_check_base(struct invalid_files *f, struct rfl_buf *text)
{
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = tmp_path(f->state, "input.json");
	bool made = false;

	assert_ok(rfl_file_write(path, text->data, text->len, &err), &err);
	assert_ok(f->try_load(path, &made, &err), &err);
	assert_true(made);
}

/** Every case of a file under tests/data, of which there are `least` or more. */
static inline void check_invalid_files(void *state, const char *file, int least,
				       try_load_fn *try_load)
{
	struct invalid_files f = { .state = state, .try_load = try_load };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text, updated, *into = NULL;
	char *line, *end;
	int n = 0;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&updated, 0);
	rfl_buf_init(&f.doc, 0);
	rfl_buf_init(&f.before, 0);
	rfl_buf_init(&f.now, 0);
	assert_ok(rfl_file_read(data_path(file), &text, &err), &err);
	for (line = text.data; line < text.data + text.len; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		*end = '\0';
		if (strncmp(line, "! ", 2) == 0) {
			const char *got = invalid_message(&f, &err);

			if (!getenv("RFL_TEST_UPDATE") && strcmp(got, line + 2) != 0) {
				print_error("case %s\n", f.name);
				assert_string_equal(got, line + 2);
			}
			rfl_buf_printf(&updated, "! %s\n", got);
			rfl_err_clear(&err);
			n++;
			continue;
		}
		rfl_buf_printf(&updated, "%s\n", line);
		if (strncmp(line, "=== ", 4) == 0) {
			assert_true(f.nbases < INVALID_BASES);
			f.changes = false;
			into = &f.bases[f.nbases].text;
			snprintf(f.bases[f.nbases].name, sizeof(f.bases[0].name), "%s", line + 4);
			rfl_buf_init(into, 0);
			f.nbases++;
		} else if (strncmp(line, "--- ", 4) == 0) {
			into = &f.doc;
			invalid_begin(&f, line + 4);
		} else if (f.changes) {
			bool is_before = line[0] == '-';

			assert_true((line[0] == '-' || line[0] == '+') && line[1] == ' ');
			if (is_before && f.now.len > 0)
				invalid_change(&f);
			into = is_before ? &f.before : &f.now;
			if (into->len > 0)
				rfl_buf_putc(into, '\n');
			rfl_buf_puts(into, line + 2);
		} else if (into) {
			rfl_buf_printf(into, "%s\n", line);
		}
	}
	assert_true(n >= least);
	for (size_t i = 0; i < f.nbases; i++) {
		invalid_check_base(&f, &f.bases[i].text);
		rfl_buf_fini(&f.bases[i].text);
	}
	if (getenv("RFL_TEST_UPDATE"))
		assert_ok(rfl_file_write(data_path(file), updated.data, updated.len, &err), &err);
	rfl_buf_fini(&text);
	rfl_buf_fini(&updated);
	rfl_buf_fini(&f.doc);
	rfl_buf_fini(&f.before);
	rfl_buf_fini(&f.now);
}

#endif
