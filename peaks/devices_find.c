/*
 * devices_find.c - which device is meant by a name that a person typed.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"
#include "peaks/devices.h"

enum { MAX_WORDS_TEXT = 256, SUGGESTIONS = 4, LISTED = 12 };

/* How well a name fits; more is better. */
enum fit { FIT_NONE, FIT_PART, FIT_END, FIT_WHOLE };

static int kind_of(char c)
{
	return isdigit((unsigned char)c) ? 1 : isalpha((unsigned char)c) ? 2 : 0;
}

/*
 * " nvidia rtx 4090 ": lower case, a blank around every word; letters and digits are words of their
 * own, so that "RTX4090" is "RTX 4090". A name that is too long has no words.
 */
static void words_of(const char *name, char out[MAX_WORDS_TEXT])
{
	size_t n = 0;
	int before = 0;

	out[n++] = ' ';
	for (; *name && n + 3 < MAX_WORDS_TEXT; name++) {
		int kind = kind_of(*name);

		if (before && kind != before)
			out[n++] = ' ';
		if (kind)
			out[n++] = (char)tolower((unsigned char)*name);
		before = kind;
	}
	if (before)
		out[n++] = ' ';
	out[n] = '\0';
	if (*name)
		out[0] = '\0';
}

static enum fit fit_name(const char *wanted, const char *name)
{
	char words[MAX_WORDS_TEXT];
	size_t n = strlen(wanted), all;

	words_of(name, words);
	all = strlen(words);
	if (n < 3 || n > all)
		return FIT_NONE;
	if (strcmp(wanted, words) == 0)
		return FIT_WHOLE;
	if (strcmp(wanted, words + all - n) == 0)
		return FIT_END;
	return strstr(words, wanted) ? FIT_PART : FIT_NONE;
}

static enum fit fit_sheet(const char *wanted, const struct rfl_device_sheet *sheet)
{
	enum fit best = fit_name(wanted, sheet->label), fit = fit_name(wanted, sheet->name);

	best = fit > best ? fit : best;
	for (const char *const *alias = sheet->aliases; *alias; alias++) {
		fit = fit_name(wanted, *alias);
		best = fit > best ? fit : best;
	}
	return best;
}

bool rfl_device_matches(const struct rfl_device_sheet *sheet, const char *name)
{
	char wanted[MAX_WORDS_TEXT];

	words_of(name, wanted);
	return fit_sheet(wanted, sheet) != FIT_NONE;
}

static enum rfl_rc not_found(const struct rfl_devices *devices, const char *name,
			     struct rfl_err *err)
{
	const char **labels = rfl_alloc_array(devices->n + 1, sizeof(*labels));
	struct rfl_buf near;
	enum rfl_rc rc;

	if (!labels)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < devices->n; i++)
		labels[i] = devices->sheets[i].label;
	rfl_buf_init(&near, 0);
	if (rfl_text_suggest(name, labels, SUGGESTIONS, &near) > 0)
		rc = rfl_fail(err, RFL_ENOTFOUND, 0, "no data sheet of '%s'; did you mean %s?",
			      name, rfl_buf_str(&near));
	else
		rc = rfl_fail(err, RFL_ENOTFOUND, 0,
			      "no data sheet of '%s'; 'roofline peaks devices' names all", name);
	rfl_buf_fini(&near);
	free(labels);
	return rc;
}

static enum rfl_rc ambiguous(const struct rfl_devices *devices, const char *name,
			     const char *wanted, enum fit fit, struct rfl_err *err)
{
	struct rfl_buf all;
	size_t n = 0;
	enum rfl_rc rc;

	rfl_buf_init(&all, 0);
	for (size_t i = 0; i < devices->n; i++) {
		if (fit_sheet(wanted, &devices->sheets[i]) != fit)
			continue;
		if (n < LISTED)
			rfl_buf_printf(&all, "%s%s", n ? ", " : "", devices->sheets[i].label);
		n++;
	}
	rc = rfl_fail(err, RFL_ENOTFOUND, 0, "'%s' could be %s%s", name, rfl_buf_str(&all),
		      n > LISTED ? ", ..." : "");
	rfl_buf_fini(&all);
	return rc;
}

enum rfl_rc rfl_devices_find(const struct rfl_devices *devices, const char *name,
			     const struct rfl_device_sheet **ret, struct rfl_err *err)
{
	const struct rfl_device_sheet *found = NULL;
	enum fit best = FIT_NONE;
	size_t n = 0;
	char wanted[MAX_WORDS_TEXT];

	words_of(name, wanted);
	for (size_t i = 0; i < devices->n; i++) {
		enum fit fit = fit_sheet(wanted, &devices->sheets[i]);

		if (fit == FIT_NONE || fit < best)
			continue;
		n = fit > best ? 1 : n + 1;
		best = fit;
		found = &devices->sheets[i];
	}
	if (n == 0)
		return not_found(devices, name, err);
	if (n > 1)
		return ambiguous(devices, name, wanted, best, err);
	*ret = found;
	return RFL_OK;
}
