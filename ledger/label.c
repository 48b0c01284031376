/*
 * label.c - reads and makes the names of runs. Which run has which name is the ledger's.
 */
#include "ledger/label.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

/* The place of "_name_" in a label (or "_name" at its end), as the index of the name; 0: absent. */
static size_t find_word(const char *label, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = label; (p = strstr(p, name)) != NULL; p++) {
		if (p > label && p[-1] == '_' && (p[n] == '_' || p[n] == '\0'))
			return (size_t)(p - label);
	}
	return 0;
}

static const char *find_model(const char *label)
{
	const char *best = NULL;
	const struct rfl_zoo_model *m;

	for (size_t i = 0; (m = rfl_zoo_at(i)) != NULL; i++) {
		if (find_word(label, m->name) && (!best || strlen(m->name) > strlen(best)))
			best = m->name;
	}
	return best;
}

static bool all_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)s[i]))
			return false;
	}
	return n > 0;
}

/* The number of a word "prefix<digits>", or -1. */
static int64_t number_after(const char *word, size_t len, const char *prefix)
{
	char digits[20];
	size_t n = strlen(prefix);
	int64_t value;

	if (len <= n || len - n >= sizeof(digits) || memcmp(word, prefix, n) != 0 ||
	    !all_digits(word + n, len - n))
		return -1;
	memcpy(digits, word + n, len - n);
	digits[len - n] = '\0';
	return rfl_num_parse_int(digits, "number", &value, NULL) == RFL_OK ? value : -1;
}

static bool is_word(const char *word, size_t len, const char *what)
{
	return strlen(what) == len && memcmp(word, what, len) == 0;
}

/* "fwd" and, after it, "bwd" are two words. */
static bool read_mode(const char *word, size_t len, struct rfl_label *ret)
{
	static const struct {
		const char *word, *before, *mode;
	} modes[] = {
		{ "train", "", "train" },
		{ "fwd", "", "fwd" },
		{ "bwd", "fwd", "fwd_bwd" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(modes); i++)
		if (is_word(word, len, modes[i].word) && strcmp(ret->mode, modes[i].before) == 0) {
			snprintf(ret->mode, sizeof(ret->mode), "%s", modes[i].mode);
			return true;
		}
	return false;
}

static void read_word(const char *word, size_t len, struct rfl_label *ret)
{
	int64_t value;

	if (is_word(word, len, "prof")) {
		ret->profiled = true;
		return;
	}
	if (read_mode(word, len, ret))
		return;
	if ((value = number_after(word, len, "bs")) >= 0) {
		ret->batch = value;
		return;
	}
	if ((value = number_after(word, len, "run")) >= 0 ||
	    (value = number_after(word, len, "r")) >= 0) {
		ret->run = value;
		return;
	}
	for (size_t i = 0; rfl_precision_names[i]; i++) {
		if (is_word(word, len, rfl_precision_names[i]))
			snprintf(ret->precision, sizeof(ret->precision), "%s",
				 rfl_precision_names[i]);
	}
}

void rfl_label_parse(const char *label, const char *model, struct rfl_label *ret)
{
	size_t at = 0;
	const char *rest = label;

	memset(ret, 0, sizeof(*ret));
	ret->batch = ret->run = -1;
	if (!model)
		model = find_model(label);
	if (model && strlen(model) < sizeof(ret->model))
		at = find_word(label, model);
	if (at) {
		snprintf(ret->model, sizeof(ret->model), "%s", model);
		snprintf(ret->env, sizeof(ret->env), "%.*s", (int)(at - 1), label);
		if (at - 1 >= sizeof(ret->env) || !rfl_text_is_env_name(ret->env)) {
			memcpy(ret->not_env, ret->env, sizeof(ret->env));
			ret->env[0] = '\0';
		}
		rest = label + at + strlen(model);
	}
	while (*rest) {
		size_t len = strcspn(rest, "_");

		read_word(rest, len, ret);
		rest += len;
		rest += *rest == '_';
	}
}

/* The place of the '_' before the last word of a label of `len` characters, where that word is of
 * `digits` digits, 0 for any number; else len. */
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
				"label '%.200s': it names files, so it must be 1 to %d letters, "
				"digits, '_', '-' or '.', beginning with a letter or digit",
				label, RFL_LABEL_MAX);
	return RFL_OK;
}

enum rfl_rc rfl_label_env(const char *given, const char *label, const char *model,
			  const char *backend, char ret[49], struct rfl_err *err)
{
	struct rfl_label parts;
	const char *name = given;

	if (given && rfl_text_check_env_name("env", given, RFL_EINVAL, err) != RFL_OK)
		return RFL_EINVAL;
	if (!name && label) {
		rfl_label_parse(label, model, &parts);
		if (parts.env[0])
			name = parts.env;
	}
	if (!name)
		name = backend;
	snprintf(ret, 49, "%s", name);
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
		return rfl_fail(err, RFL_EINVAL, 0, "label: '%s' is too long", ret);
	return RFL_OK;
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
