/*
 * label.c - parses and generates run names, and finds the next free number of a label. A large
 * ledger is not read again for each run: the numbers found so far are cached next to it in
 * metrics.labels, and only newer rows are read. The cache may be removed at any time.
 */
#include "ledger/label.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "complexity/zoo.h"
#include "ledger/file/steps.h"
#include "machine/terms.h"

#define READ_EACH_TIME ((uint64_t)1 << 20)  /* smaller ledgers are not cached */
#define TAIL_MAX       ((uint64_t)16 << 20) /* limit for new rows read into memory */
#define KEPT_MAX       ((size_t)1 << 30)
#define MARK_SIZE      4096 /* bytes hashed to identify the part already read */
#define DIGITS_MAX     18

/* The number at the beginning of a text, or -1. *len is set to the count of its digits. */
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

/* The index of `name` in "_name_", or in "_name" at the end of a label. 0: not found. */
static size_t find_word(const char *label, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = label; (p = strstr(p, name)) != NULL; p++)
		if (p > label && p[-1] == '_' && (p[n] == '_' || p[n] == '\0'))
			return (size_t)(p - label);
	return 0;
}

static bool is_word(const char *word, size_t len, const char *what)
{
	return strlen(what) == len && memcmp(word, what, len) == 0;
}

/* The number in a word "prefix<digits>", or -1. */
static int64_t number_after(const char *word, size_t len, const char *prefix)
{
	size_t n = strlen(prefix), digits;
	int64_t value;

	if (len <= n || memcmp(word, prefix, n) != 0)
		return -1;
	value = number_at(word + n, &digits);
	return digits == len - n ? value : -1;
}

void rfl_label_parse(const char *label, const char *model, struct rfl_label *ret)
{
	/* a mode such as "fwd_bwd" consists of two words */
	static const struct {
		const char *word, *before, *mode;
	} modes[] = {
		{ "train", "", "train" },
		{ "fwd", "", "fwd" },
		{ "bwd", "fwd", "fwd_bwd" },
	};
	const bool known = model != NULL;
	const struct rfl_zoo_model *m;
	const char *word = label ? label : "";
	size_t at = 0, len;

	memset(ret, 0, sizeof(*ret));
	ret->batch = ret->run = -1;
	for (size_t i = 0; !known && (m = rfl_zoo_at(i)) != NULL; i++)
		if (find_word(word, m->name) && (!model || strlen(m->name) > strlen(model)))
			model = m->name;
	if (model && strlen(model) < sizeof(ret->model))
		at = find_word(word, model);
	if (at) {
		snprintf(ret->model, sizeof(ret->model), "%s", model);
		snprintf(ret->env, sizeof(ret->env), "%.*s", (int)(at - 1), word);
		if (at - 1 >= sizeof(ret->env) || !rfl_text_is_env_name(ret->env)) {
			memcpy(ret->not_env, ret->env, sizeof(ret->env));
			ret->env[0] = '\0';
		}
		word += at + strlen(model);
	}
	for (; *word; word += len + (word[len] == '_')) {
		int64_t value;

		len = strcspn(word, "_");
		ret->profiled = ret->profiled || is_word(word, len, "prof");
		for (size_t i = 0; i < RFL_ARRAY_LEN(modes); i++)
			if (is_word(word, len, modes[i].word) &&
			    strcmp(ret->mode, modes[i].before) == 0) {
				snprintf(ret->mode, sizeof(ret->mode), "%s", modes[i].mode);
				break;
			}
		if ((value = number_after(word, len, "bs")) >= 0)
			ret->batch = value;
		if ((value = number_after(word, len, "run")) >= 0 ||
		    (value = number_after(word, len, "r")) >= 0)
			ret->run = value;
		for (size_t i = 0; rfl_precision_names[i]; i++)
			if (is_word(word, len, rfl_precision_names[i]))
				snprintf(ret->precision, sizeof(ret->precision), "%s",
					 rfl_precision_names[i]);
	}
}

/* Return the index of the '_' before the last word of a label if that word has `digits` digits
 * (0: any number of digits), else `len`, the length of the label. */
static size_t before_digits(const char *label, size_t len, size_t digits)
{
	size_t at = len;

	while (at > 0 && isdigit((unsigned char)label[at - 1]))
		at--;
	if (at == len || at < 2 || label[at - 1] != '_' || (digits && len - at != digits))
		return len;
	return at - 1;
}

static size_t before_stamp(const char *label, size_t len)
{
	size_t clock = before_digits(label, len, 6);
	size_t date = clock == len ? len : before_digits(label, clock, 8);

	return date == clock ? len : date;
}

size_t rfl_label_unstamped(const char *label)
{
	size_t len = strlen(label), stem = before_stamp(label, len);
	size_t counter = before_digits(label, len, 0);

	if (stem == len && counter < len && before_stamp(label, counter) < counter)
		stem = before_stamp(label, counter);
	return stem;
}

enum rfl_rc rfl_label_check(const char *label, struct rfl_err *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t len = strlen(label);

	if (len == 0 || len > RFL_LABEL_MAX || strspn(label, allowed) != len ||
	    !isalnum((unsigned char)label[0]))
		return rfl_fail(err, RFL_EINVAL, 0,
				"label '%.200s': not valid as a file name; use 1 to %d letters, "
				"digits, '_', '-' or '.', beginning with a letter or digit",
				label, RFL_LABEL_MAX);
	return RFL_OK;
}

enum rfl_rc rfl_label_env(const char *given, const char *label, const char *model,
			  const char *backend, char ret[49], struct rfl_err *err)
{
	struct rfl_label parts = { .env = "" };

	if (given && rfl_text_check_env_name("env", given, RFL_EINVAL, err) != RFL_OK)
		return RFL_EINVAL;
	if (!given && label)
		rfl_label_parse(label, model, &parts);
	if (!given)
		given = parts.env[0] ? parts.env : backend;
	snprintf(ret, 49, "%s", given);
	return RFL_OK;
}

enum rfl_rc rfl_label_stem(const char *env, const char *model, const char *precision, int64_t batch,
			   int world, char ret[RFL_LABEL_STEM], struct rfl_err *err)
{
	char several[24] = "";
	int len;

	if (world > 1)
		snprintf(several, sizeof(several), "_w%d", world);
	len = snprintf(ret, RFL_LABEL_STEM, "%s_%s_%s_bs%" PRId64 "%s_run", env, model, precision,
		       batch, several);
	if (len < 0 || len >= RFL_LABEL_STEM)
		return rfl_fail(err, RFL_EINVAL, 0, "label: '%s' is too long; use a shorter --env",
				ret);
	return RFL_OK;
}

/* The largest N for each "..._run" at the beginning of labels. */
struct numbers {
	struct rfl_texts stems;
	int64_t *most; /* by stem */
	size_t cap;
	bool failed;
};

static void numbers_fini(struct numbers *s)
{
	rfl_texts_fini(&s->stems);
	free(s->most);
	*s = (struct numbers){ .most = NULL };
}

static void add(struct numbers *s, const char *stem, size_t len, int64_t number)
{
	char text[RFL_LABEL_MAX + 1];
	size_t i, before = s->stems.index.n;

	if (s->failed || len > RFL_LABEL_MAX || memchr(stem, '\n', len)) /* not a generated label */
		return;
	memcpy(text, stem, len);
	text[len] = '\0';
	s->failed = !rfl_texts_put(&s->stems, text, &i) ||
		    rfl_grow(&s->most, &s->cap, i + 1, SIZE_MAX, NULL) != RFL_OK;
	if (!s->failed && (i == before || number > s->most[i]))
		s->most[i] = number;
}

/* Matches "lab_vgg16_fp32_bs4_run2" and "lab_vgg16_fp32_bs4_run2_20260101_000000.txt". */
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

static void note_time_logs(struct numbers *s, const char *dir_path)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		note(s, entry->d_name);
	if (dir)
		closedir(dir);
}

/* Record the labels of rows after the first `from` bytes; the rows are read into memory if from >
 * 0.
 * @param whole  set if the table ends with a complete row */
static enum rfl_rc note_rows(struct numbers *s, const char *path, int fd, uint64_t from,
			     uint64_t size, bool *whole, struct rfl_err *err)
{
	const size_t len = (size_t)(size - from);
	struct rfl_csv *table = NULL, *tail = NULL, *csv;
	char *rows = NULL;
	struct rfl_buf text;
	bool more = true;
	int label;
	enum rfl_rc rc = rfl_csv_open(path, &table, err);

	rfl_buf_init(&text, 0);
	if (rc == RFL_OK && from) {
		rows = malloc(len + 1);
		if (!rows || pread(fd, rows, len, (off_t)from) != (ssize_t)len)
			rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot read", path);
		else
			rc = rfl_ledger__open_rows(table, rows, len, &text, &tail, err);
	}
	if (rc)
		goto done;
	csv = from ? tail : table;
	label = rfl_csv_find(csv, "label");
	while ((rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more)
		note(s, rfl_csv_text(csv, label));
	*whole = !csv->torn;
done:
	rfl_csv_close(tail);
	rfl_csv_close(table);
	rfl_buf_fini(&text);
	free(rows);
	return rc;
}

/*
 * Format of metrics.labels:
 * roofline-labels 1 <bytes of the ledger> <its inode> <mark>
 * <N> <stem>
 * ...
 * end <hash of the preceding text>
 * A replaced ledger has another inode. A ledger that was truncated or edited in place has another
 * mark, which is a hash of the last bytes that were read. Rows appended later follow these bytes.
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

/* @return number of ledger bytes covered by the cache; 0: no cache, or a cache of another file */
static uint64_t load_kept(struct numbers *s, const char *name, int fd, const struct stat *ledger)
{
	const size_t last_len = strlen("end 0123456789abcdef\n");
	uint64_t covered = 0, inode, mark, now, sum;
	const char *end = NULL;
	struct rfl_buf text;

	rfl_buf_init(&text, KEPT_MAX);
	if (rfl_file_size(name) > last_len && rfl_file_read(name, &text, NULL) == RFL_OK)
		end = text.data + text.len - last_len;
	if (!end || sscanf(end, "end %16" SCNx64, &sum) != 1 ||
	    sum != rfl_hash64(0, text.data, text.len - last_len) ||
	    sscanf(text.data, HEAD "%" SCNu64 " %" SCNu64 " %16" SCNx64, &covered, &inode, &mark) !=
		    3 ||
	    covered > (uint64_t)ledger->st_size || inode != (uint64_t)ledger->st_ino ||
	    !mark_of(fd, covered, &now) || now != mark) {
		covered = 0;
		goto done;
	}
	for (const char *line = strchr(text.data, '\n') + 1, *stop; line < end; line = stop + 1) {
		size_t len;
		const int64_t n = number_at(line, &len);

		stop = strchr(line, '\n');
		if (n >= 0 && line[len] == ' ')
			add(s, line + len + 1, (size_t)(stop - line) - len - 1, n);
	}
done:
	rfl_buf_fini(&text);
	return covered;
}

/* Without the cache, only time is lost, so errors are ignored. */
static void keep(struct numbers *s, const char *name, int fd, const struct stat *ledger)
{
	struct rfl_err why = RFL_ERR_INIT;
	const uint64_t size = (uint64_t)ledger->st_size;
	struct rfl_buf text;
	uint64_t mark;

	if (s->failed || !mark_of(fd, size, &mark))
		return;
	rfl_buf_init(&text, KEPT_MAX);
	rfl_buf_printf(&text, HEAD "%" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", size,
		       (uint64_t)ledger->st_ino, mark);
	for (size_t i = 0; i < s->stems.index.n; i++)
		rfl_buf_printf(&text, "%" PRId64 " %s\n", s->most[i],
			       (const char *)s->stems.index.rows[i]);
	rfl_buf_printf(&text, "end %016" PRIx64 "\n", rfl_hash64(0, text.data, text.len));
	if (rfl_buf_check(&text, name, &why) != RFL_OK ||
	    rfl_file_write(name, text.data, text.len, &why) != RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "%s", why.msg);
	rfl_buf_fini(&text);
}

/* Find the numbers in a large ledger. RFL_EFORMAT: the ledger is damaged. */
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
	rc = rfl_file_lock_shared(path, &fd, err); /* no append is in progress */
	if (rc == RFL_OK && fstat(fd, &st) != 0)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot stat: %s", path, strerror(errno));
	if (rc)
		goto done;
	size = (uint64_t)st.st_size;
	covered = load_kept(s, name, fd, &st);
	if (size - covered > TAIL_MAX) {
		covered = 0;
		numbers_fini(s);
	}
	rc = note_rows(s, path, fd, covered, size, &whole, err);
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
	static const bool wanted[RFL_LEDGER_NCOLUMNS] = { [RFL_LEDGER_AT_label] = true };
	struct rfl_err why = RFL_ERR_INIT;
	struct numbers s = { .most = NULL };
	struct rfl_ledger *rows = NULL;
	size_t i;
	enum rfl_rc rc = RFL_EFORMAT;

	if (rfl_file_size(ledger) > READ_EACH_TIME)
		rc = note_large(&s, ledger, time_dir, &why);
	if (rc == RFL_EFORMAT) { /* the ledger is small or damaged */
		numbers_fini(&s);
		rc = rfl_file_size(ledger) ? rfl_ledger_load_columns(ledger, wanted, &rows, err)
					   : RFL_OK;
		for (i = 0; rows && i < rows->nrows; i++)
			if (rows->rows[i].label)
				note(&s, rows->rows[i].label);
		rfl_ledger_free(rows);
		note_time_logs(&s, time_dir);
	} else if (rc) {
		(void)rfl_err_pass(err, &why);
	}
	if (rc == RFL_OK && s.failed)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", ledger);
	if (rc == RFL_OK) {
		i = rfl_row_index_find(&s.stems.index, stem);
		*ret = i == SIZE_MAX ? 1 : s.most[i] + 1;
	}
	numbers_fini(&s);
	return rc;
}

void rfl_label_forget(const char *ledger)
{
	rfl_ledger__drop(ledger, ".labels");
}

enum rfl_rc rfl_label_next(const char *env, const char *model, const char *precision, int64_t batch,
			   const char *ledger, const char *time_dir, char ret[RFL_LABEL_MAX + 1],
			   struct rfl_err *err)
{
	char stem[RFL_LABEL_STEM];
	int64_t number = 0;
	enum rfl_rc rc = rfl_label_stem(env, model, precision, batch, 1, stem, err);

	if (rc == RFL_OK)
		rc = rfl_label_number(stem, ledger, time_dir, &number, err);
	if (rc == RFL_OK)
		snprintf(ret, RFL_LABEL_MAX + 1, "%s%" PRId64, stem, number);
	return rc;
}
