/*
 * label_number.c - the next free number of a label. A ledger grows beyond what can be read for each
 * run: the numbers of its beginning are kept beside it in metrics.labels, and only the rows after
 * that are read. The file is made from the ledger and may be removed at any time.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "ledger/label.h"
#include "ledger/file/steps.h"

#define READ_EACH_TIME ((uint64_t)1 << 20)  /* bytes of rows that are not worth a file */
#define TAIL_MAX       ((uint64_t)16 << 20) /* bytes of rows that are read into memory */
#define KEPT_MAX       ((size_t)1 << 30)
#define MARK_SIZE      4096 /* bytes that show whether the beginning is the one that was read */
#define DIGITS_MAX     18

/* The largest N of each "..._run" that labels begin with. */
struct numbers {
	struct number {
		char stem[RFL_LABEL_MAX + 1];
		int64_t most;
	} * all;
	size_t n, cap;
	bool failed;
};

/* ---- numbers ---- */

static int by_stem(const void *a, const void *b)
{
	const struct number *x = a, *y = b;
	const int order = strcmp(x->stem, y->stem);

	return order ? order : (x->most < y->most) - (x->most > y->most);
}

/* Each stem once, with its largest number. */
static void unite(struct numbers *s)
{
	size_t n = 0;

	if (s->n > 0)
		qsort(s->all, s->n, sizeof(*s->all), by_stem);
	for (size_t i = 0; i < s->n; i++)
		if (n == 0 || strcmp(s->all[n - 1].stem, s->all[i].stem) != 0)
			s->all[n++] = s->all[i];
	s->n = n;
}

static bool has_room(struct numbers *s)
{
	const size_t cap = s->cap ? 2 * s->cap : 1024;
	struct number *all;

	if (s->n == s->cap)
		unite(s);
	if (2 * s->n < s->cap)
		return true;
	all = cap > SIZE_MAX / sizeof(*all) ? NULL : realloc(s->all, cap * sizeof(*all));
	if (all) {
		s->all = all;
		s->cap = cap;
	}
	s->failed = s->failed || !all;
	return all != NULL;
}

static void add(struct numbers *s, const char *stem, size_t len, int64_t number)
{
	if (len > RFL_LABEL_MAX || memchr(stem, '\n', len)) /* none that we make */
		return;
	if (s->n == s->cap && !has_room(s))
		return;
	memcpy(s->all[s->n].stem, stem, len);
	s->all[s->n].stem[len] = '\0';
	s->all[s->n++].most = number;
}

/* The digits at the beginning of a text, or -1; *len is how many they are. */
static int64_t number_at(const char *text, size_t *len)
{
	int64_t n = 0;

	*len = strspn(text, "0123456789");
	if (*len == 0 || *len > DIGITS_MAX)
		return -1;
	for (size_t i = 0; i < *len; i++)
		n = n * 10 + (text[i] - '0');
	return n;
}

/* "lab_vgg16_fp32_bs4_run2", and "lab_vgg16_fp32_bs4_run2_20260101_000000.txt". */
static void note(struct numbers *s, const char *label)
{
	for (const char *at = label; (at = strstr(at, "_run")) != NULL;) {
		size_t len;
		int64_t n;

		at += strlen("_run");
		n = number_at(at, &len);
		if (n >= 0 && (at[len] == '_' || at[len] == '.' || at[len] == '\0'))
			add(s, label, (size_t)(at - label), n);
	}
}

static int64_t most_of(const struct numbers *s, const char *stem)
{
	int64_t most = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].most > most && strcmp(s->all[i].stem, stem) == 0)
			most = s->all[i].most;
	return most;
}

/* ---- where they are ---- */

static void note_time_logs(struct numbers *s, const char *dir_path)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		note(s, entry->d_name);
	if (dir)
		closedir(dir);
}

/* Every row, each checked as far as its label. */
static enum rfl_rc note_ledger(struct numbers *s, const char *path, struct rfl_err *err)
{
	static const bool wanted[RFL_LEDGER_NCOLUMNS] = { [RFL_LEDGER_AT_label] = true };
	struct rfl_ledger *ledger = NULL;
	enum rfl_rc rc;

	if (rfl_file_size(path) == 0)
		return RFL_OK;
	rc = rfl_ledger_load_columns(path, wanted, &ledger, err);
	for (size_t i = 0; rc == RFL_OK && i < ledger->nrows; i++)
		if (ledger->rows[i].label)
			note(s, ledger->rows[i].label);
	rfl_ledger_free(ledger);
	return rc;
}

/* @param whole  the table ends with a whole row */
static enum rfl_rc note_rows(struct numbers *s, struct rfl_csv *csv, bool *whole,
			     struct rfl_err *err)
{
	const int label = rfl_csv_find(csv, "label");
	bool more = true;
	enum rfl_rc rc;

	while ((rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more)
		note(s, rfl_csv_text(csv, label));
	*whole = !rfl_csv_torn(csv);
	return rc;
}

/* The rows after the first `from` bytes, in memory. */
static enum rfl_rc note_tail(struct numbers *s, const char *path, int fd, uint64_t from,
			     uint64_t size, bool *whole, struct rfl_err *err)
{
	struct rfl_csv *header = NULL, *csv = NULL;
	const size_t len = (size_t)(size - from);
	char *rows = malloc(len + 1);
	struct rfl_buf text;
	enum rfl_rc rc = rfl_csv_open(path, &header, err);

	rfl_buf_init(&text, 0);
	if (rc)
		goto done;
	if (!rows || pread(fd, rows, len, (off_t)from) != (ssize_t)len) {
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot read", path);
		goto done;
	}
	rfl_ledger__put_header_of(header, &text);
	rfl_buf_append(&text, rows, len);
	rc = rfl_buf_check(&text, path, err);
	if (rc == RFL_OK)
		rc = rfl_csv_open_text(text.data, text.len, path, &csv, err);
	if (rc == RFL_OK)
		rc = note_rows(s, csv, whole, err);
done:
	rfl_csv_close(csv);
	rfl_csv_close(header);
	rfl_buf_fini(&text);
	free(rows);
	return rc;
}

static enum rfl_rc note_all(struct numbers *s, const char *path, bool *whole, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc = rfl_csv_open(path, &csv, err);

	if (rc == RFL_OK)
		rc = note_rows(s, csv, whole, err);
	rfl_csv_close(csv);
	return rc;
}

/* ---- metrics.labels ---- */

/*
 * roofline-labels 1 <bytes of the ledger> <its inode> <mark>
 * <N> <stem>
 * ...
 * end <hash of all this>
 *
 * A ledger that was replaced has another inode; one that was cut or edited in place has another
 * mark, the hash of the bytes before the end of what was read. What was appended comes after it.
 */
#define HEAD "roofline-labels 1 "

static bool mark_of(int fd, uint64_t size, uint64_t *ret)
{
	char block[MARK_SIZE];
	const size_t len = size < sizeof(block) ? (size_t)size : sizeof(block);

	*ret = 0;
	if (pread(fd, block, len, (off_t)(size - len)) != (ssize_t)len)
		return false;
	*ret = rfl_hash64(0, block, len);
	return true;
}

static bool is_of(const char *text, int fd, const struct stat *ledger, uint64_t *covered)
{
	uint64_t inode, mark, now;

	return sscanf(text, HEAD "%" SCNu64 " %" SCNu64 " %16" SCNx64, covered, &inode, &mark) ==
		       3 &&
	       *covered <= (uint64_t)ledger->st_size && inode == (uint64_t)ledger->st_ino &&
	       mark_of(fd, *covered, &now) && now == mark;
}

/* @return how many bytes of the ledger the numbers are of; 0: there are none, or not of this file
 */
static uint64_t load_kept(struct numbers *s, const char *name, int fd, const struct stat *ledger)
{
	static const char last[] = "end 0123456789abcdef\n";
	const size_t last_len = sizeof(last) - 1;
	struct rfl_buf text;
	uint64_t covered = 0, sum = 0;
	char *end = NULL;

	rfl_buf_init(&text, KEPT_MAX);
	if (rfl_file_size(name) > last_len && rfl_file_read(name, &text, NULL) == RFL_OK)
		end = text.data + text.len - last_len;
	if (!end || sscanf(end, "end %16" SCNx64, &sum) != 1 ||
	    sum != rfl_hash64(0, text.data, text.len - last_len) ||
	    !is_of(text.data, fd, ledger, &covered)) {
		covered = 0;
		goto done;
	}
	for (char *line = strchr(text.data, '\n') + 1; line < end;) {
		char *stop = strchr(line, '\n');
		size_t len;
		const int64_t n = number_at(line, &len);

		if (n >= 0 && line[len] == ' ')
			add(s, line + len + 1, (size_t)(stop - line) - len - 1, n);
		line = stop + 1;
	}
done:
	rfl_buf_fini(&text);
	return covered;
}

/* A file that cannot be written costs time and nothing else. */
static void keep(struct numbers *s, const char *name, int fd, const struct stat *ledger)
{
	struct rfl_err why = RFL_ERR_INIT;
	const uint64_t size = (uint64_t)ledger->st_size;
	struct rfl_buf text;
	uint64_t mark;

	if (s->failed || !mark_of(fd, size, &mark))
		return;
	unite(s);
	rfl_buf_init(&text, KEPT_MAX);
	rfl_buf_printf(&text, HEAD "%" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", size,
		       (uint64_t)ledger->st_ino, mark);
	for (size_t i = 0; i < s->n; i++)
		rfl_buf_printf(&text, "%" PRId64 " %s\n", s->all[i].most, s->all[i].stem);
	rfl_buf_printf(&text, "end %016" PRIx64 "\n", rfl_hash64(0, text.data, text.len));
	if (rfl_buf_check(&text, name, &why) != RFL_OK ||
	    rfl_file_write(name, text.data, text.len, &why) != RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "%s", why.msg);
	rfl_buf_fini(&text);
}

/* ---- all of them ---- */

/* Of a ledger that is large. RFL_EFORMAT: not all of it could be read like this. */
static enum rfl_rc note_large(struct numbers *s, const char *path, const char *time_dir,
			      struct rfl_err *err)
{
	char *name = rfl_ledger__beside(path, ".labels");
	bool whole = false;
	uint64_t covered, size;
	struct stat st;
	enum rfl_rc rc;
	int fd = -1;

	if (!name)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	rc = rfl_file_lock_shared(path, &fd, err); /* an append is over, or has not begun */
	if (rc == RFL_OK && fstat(fd, &st) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot stat: %s", path, strerror(errno));
	if (rc)
		goto done;
	size = (uint64_t)st.st_size;
	covered = load_kept(s, name, fd, &st);
	if (size - covered > TAIL_MAX)
		covered = s->n = 0;
	rc = covered ? note_tail(s, path, fd, covered, size, &whole, err)
		     : note_all(s, path, &whole, err);
	if (rc == RFL_OK && size - covered > READ_EACH_TIME) {
		note_time_logs(s, time_dir);
		if (whole)
			keep(s, name, fd, &st);
	}
done:
	if (fd >= 0)
		(void)!rfl_file_unlock(fd, path, NULL); /* nothing was written */
	free(name);
	return rc;
}

enum rfl_rc rfl_label_number(const char *stem, const char *ledger, const char *time_dir,
			     int64_t *ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct numbers s = { .n = 0 };
	enum rfl_rc rc = RFL_EFORMAT;

	if (rfl_file_size(ledger) > READ_EACH_TIME)
		rc = note_large(&s, ledger, time_dir, &why);
	if (rc == RFL_EFORMAT) { /* it is small, or damaged somewhere */
		s.n = 0;
		rc = note_ledger(&s, ledger, err);
		note_time_logs(&s, time_dir);
	} else if (rc != RFL_OK) {
		rc = rfl_fail(err, rc, why.native, "%s", why.msg);
	}
	if (rc == RFL_OK && s.failed)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", ledger);
	if (rc == RFL_OK)
		*ret = most_of(&s, stem) + 1;
	free(s.all);
	return rc;
}

void rfl_label_forget(const char *ledger)
{
	char *name = rfl_ledger__beside(ledger, ".labels");

	if (name)
		(void)unlink(name);
	free(name);
}
