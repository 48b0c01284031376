/*
 * merge_files.c - files of a task into the common log folder: by their name and content.
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include "ledger/matrix/merge_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define NAME_TRIES 10000

enum have { HAVE_NONE, HAVE_SAME, HAVE_BEGIN, HAVE_OTHER };

/* What a file that may be there has of a content. The beginning: it was copied while it was being
 * written. */
static enum have look(const char *path, const struct rfl_buf *want)
{
	struct rfl_buf have;
	enum have is = HAVE_OTHER;

	if (!rfl_file_exists(path))
		return HAVE_NONE;
	if (rfl_file_size(path) > want->len)
		return HAVE_OTHER;
	rfl_buf_init(&have, 0);
	if (rfl_file_read(path, &have, NULL) == RFL_OK && have.len <= want->len &&
	    (have.len == 0 || memcmp(have.data, want->data, have.len) == 0))
		is = have.len == want->len ? HAVE_SAME : HAVE_BEGIN;
	rfl_buf_fini(&have);
	return is;
}

/* The n-th name that a file may have: x.txt, x_2.txt and so on. */
static enum rfl_rc name_file(char *path, size_t size, const char *dir, const char *name, unsigned n,
			     struct rfl_err *err)
{
	const char *dot = strrchr(name, '.');
	const int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
	int len;

	if (n == 1)
		len = snprintf(path, size, "%s/%s", dir, name);
	else
		len = snprintf(path, size, "%s/%.*s_%u%s", dir, stem, name, n, dot ? dot : "");
	if (len >= 0 && (size_t)len < size)
		return RFL_OK;
	return rfl_fail(err, RFL_EIO, ENAMETOOLONG, "%s/%s: %s", dir, name, strerror(ENAMETOOLONG));
}

/* Under the first of its names that is free, or that has it. */
static enum rfl_rc put_file(struct rfl_merge__job *m, const char *dir, const char *name,
			    const struct rfl_buf *text, struct rfl_err *err)
{
	char path[8192];

	for (unsigned n = 1; n <= NAME_TRIES; n++) {
		const enum rfl_rc rc = name_file(path, sizeof(path), dir, name, n, err);
		const enum have have = rc ? HAVE_OTHER : look(path, text);

		if (rc)
			return rc;
		if (have == HAVE_OTHER)
			continue;
		m->sum->files += have == HAVE_NONE;
		m->sum->files_there += have != HAVE_NONE;
		return have == HAVE_SAME ? RFL_OK
					 : rfl_file_write(path, rfl_buf_str(text), text->len, err);
	}
	return rfl_fail(err, RFL_EIO, EEXIST, "%s/%s: %s", dir, name, strerror(EEXIST));
}

static enum rfl_rc copy_file(struct rfl_merge__job *m, const char *from, const char *dir,
			     const char *name, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_file_read(from, &text, err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(dir, err);
	if (rc == RFL_OK)
		rc = put_file(m, dir, name, &text, err);
	rfl_buf_fini(&text);
	return rc;
}

/* Every file of <folder>/<part> into <to>/<part>. */
static enum rfl_rc merge_part(struct rfl_merge__job *m, const char *folder, const char *part,
			      struct rfl_err *err)
{
	char *from = rfl_path_join(folder, part), *to = rfl_path_join(m->to, part);
	DIR *dir = from ? opendir(from) : NULL;
	const struct dirent *entry;
	enum rfl_rc rc = RFL_OK;

	if (!from || !to)
		rc = rfl_merge__no_memory(m->to, err);
	else if (!dir && errno != ENOENT)
		rc = rfl_merge__unreadable(from, err);
	while (dir && rc == RFL_OK && (errno = 0, entry = readdir(dir))) {
		char *path = rfl_path_join(from, entry->d_name);
		bool there;

		rc = path ? rfl_merge__is_there(path, &there, err)
			  : rfl_merge__no_memory(from, err);
		if (rc == RFL_OK && entry->d_name[0] != '.' && rfl_file_exists(path))
			rc = copy_file(m, path, to, entry->d_name, err);
		free(path);
	}
	if (dir && rc == RFL_OK && errno != 0)
		rc = rfl_merge__unreadable(from, err);
	if (dir)
		(void)closedir(dir);
	free(from);
	free(to);
	return rc;
}

/* Which machine a task ran on: a record for each folder, by the folder's own name, however it was
 * written ("logs/", "."). */
static enum rfl_rc merge_records(struct rfl_merge__job *m, const char *folder, struct rfl_err *err)
{
	static const char *const names[][2] = { { "env.json", ".json" }, { "env_info.md", ".md" } };
	char *to = rfl_path_join(m->to, "env"), *whole = realpath(folder, NULL);
	enum rfl_rc rc = to ? RFL_OK : rfl_merge__no_memory(m->to, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(names) && whole && rc == RFL_OK; i++) {
		char *from = rfl_path_join(folder, names[i][0]);
		bool there;
		char name[300];

		(void)snprintf(name, sizeof(name), "%.255s%s", rfl_path_base(whole), names[i][1]);
		rc = from ? rfl_merge__is_there(from, &there, err)
			  : rfl_merge__no_memory(m->to, err);
		if (rc == RFL_OK && rfl_file_exists(from))
			rc = copy_file(m, from, to, name, err);
		free(from);
	}
	free(whole);
	free(to);
	return rc;
}

enum rfl_rc rfl_merge__files(struct rfl_merge__job *m, const char *folder, struct rfl_err *err)
{
	enum rfl_rc rc = merge_part(m, folder, "steps", err);

	if (rc == RFL_OK)
		rc = merge_part(m, folder, "time", err);
	if (rc == RFL_OK)
		rc = merge_records(m, folder, err);
	return rc;
}
