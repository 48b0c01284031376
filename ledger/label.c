/* label.c - parses and generates run names, and finds the next free number of a label. */
#include "ledger/label.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

#define DIGITS_MAX 18

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

/* Raise *most to the N of a label such as "lab_vgg16_fp32_bs4_run2", of its row in the ledger, or
 * of its time log "lab_vgg16_fp32_bs4_run2_20260101_000000.txt". */
static void note(const char *label, const char *stem, int64_t *most)
{
	const size_t len = strlen(stem);
	size_t digits;
	int64_t n;

	if (strncmp(label, stem, len) != 0)
		return;
	n = number_at(label + len, &digits);
	if (n > *most && strchr("_.,\"\r\n", label[len + digits]))
		*most = n;
}

/* Search the text of the rows for the stem: parsing a ledger of a million rows takes ten times as
 * long, and a damaged one could not be read. */
static enum rfl_rc note_rows(const char *path, const char *stem, int64_t *most, struct rfl_err *err)
{
	FILE *f = rfl_file_size(path) ? fopen(path, "re") : NULL;
	char *line = NULL;
	size_t cap = 0;
	enum rfl_rc rc = RFL_OK;

	if (!f && rfl_file_size(path) == 0)
		return RFL_OK;
	while (f && getline(&line, &cap, f) >= 0)
		for (const char *at = line; (at = strstr(at, stem)) != NULL; at++)
			if (at == line || at[-1] == ',' || at[-1] == '"')
				note(at, stem, most);
	if (!f || !feof(f))
		rc = rfl_fail(err, RFL_EIO, errno, "%s: cannot read: %s", path, strerror(errno));
	free(line);
	if (f)
		(void)fclose(f); /* read-only */
	return rc;
}

enum rfl_rc rfl_label_number(const char *stem, const char *ledger, const char *time_dir,
			     int64_t *ret, struct rfl_err *err)
{
	const struct dirent *entry;
	int64_t most = 0;
	enum rfl_rc rc = note_rows(ledger, stem, &most, err);
	DIR *dir = rc ? NULL : opendir(time_dir);

	while (dir && (entry = readdir(dir)) != NULL)
		note(entry->d_name, stem, &most);
	if (dir)
		(void)closedir(dir);
	*ret = most + 1;
	return rc;
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
