/*
 * files.c - the formula files that were compiled in: families by chip, and shared parts.
 */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "profile/formula/impl.h"

const struct rfl_formula_file *rfl_formulas__file(const char *name)
{
	const struct rfl_formula_file *file;

	for (size_t i = 0; (file = rfl_formulas__file_at(i)); i++)
		if (strcmp(file->name, name) == 0)
			return file;
	return NULL;
}

/* The words behind `keyword` in the line of a file that begins with it; len 0: no such line. */
static const char *line_of(const struct rfl_formula_file *file, const char *keyword, size_t *len)
{
	size_t word = strlen(keyword);
	const char *end = file->text + file->len;

	*len = 0;
	for (const char *at = file->text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		if ((size_t)(stop - at) > word && memcmp(at, keyword, word) == 0 &&
		    at[word] == ' ') {
			*len = (size_t)(stop - at) - word - 1;
			return at + word + 1;
		}
		at = stop + 1;
	}
	return NULL;
}

static bool is_family(const struct rfl_formula_file *file)
{
	size_t len;

	return line_of(file, "family", &len) != NULL;
}

const char *rfl_formulas_family_at(size_t i)
{
	const struct rfl_formula_file *file;

	for (size_t k = 0; (file = rfl_formulas__file_at(k)); k++)
		if (is_family(file) && i-- == 0)
			return file->name;
	return NULL;
}

static bool has_chip(const struct rfl_formula_file *file, const char *chip)
{
	size_t len, word = strlen(chip);
	const char *at = line_of(file, "chips", &len);

	for (size_t i = 0; at && i + word <= len; i++)
		if ((i == 0 || at[i - 1] == ' ') && memcmp(at + i, chip, word) == 0 &&
		    (i + word == len || at[i + word] == ' '))
			return true;
	return false;
}

static const struct rfl_formula_file *file_for(const char *chip)
{
	const struct rfl_formula_file *file;

	for (size_t i = 0; (file = rfl_formulas__file_at(i)); i++)
		if (is_family(file) && (strcmp(file->name, chip) == 0 || has_chip(file, chip)))
			return file;
	return NULL;
}

/* Families and chips, for the message. */
static void put_known(struct rfl_buf *out)
{
	const struct rfl_formula_file *file;
	const char *sep = "", *at;
	size_t len;

	for (size_t i = 0; (file = rfl_formulas__file_at(i)); i++) {
		if (!is_family(file))
			continue;
		at = line_of(file, "chips", &len);
		rfl_buf_printf(out, "%s%s", sep, file->name);
		if (at)
			rfl_buf_printf(out, " (%.*s)", (int)len, at);
		sep = ", ";
	}
}

enum rfl_rc rfl_formulas_new(const char *chip, struct rfl_formulas **ret, struct rfl_err *err)
{
	const char *name = chip ? chip : "any";
	const struct rfl_formula_file *file = name[0] ? file_for(name) : NULL;
	struct rfl_buf known;
	enum rfl_rc rc;

	if (file)
		return rfl_formulas_parse(file->text, file->len, file->name, ret, err);
	rfl_buf_init(&known, 0);
	put_known(&known);
	rc = rfl_fail(err, RFL_ENOTFOUND, 0,
		      "there are no formulas for '%s'; families and their chips: %s", name,
		      rfl_buf_str(&known));
	rfl_buf_fini(&known);
	return rc;
}
