/*
 * value.c - one value of one option: from the text that the user wrote into the member of the
 * command's argument struct, with the check that its row asks for. Which words count as values is
 * decided in parse.c.
 */
#include "cli/opt/opt.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"

#define LIST_MAX 4096 /* values of one option */

static bool has_upper(const struct rfl_opt *row)
{
	return row->max >= row->min && row->max != INT64_MAX && !(row->min == 0 && row->max == 0);
}

static bool has_lower(const struct rfl_opt *row)
{
	return row->min != INT64_MIN && !(row->min == 0 && row->max == 0);
}

char *rfl_opt_range(const struct rfl_opt *row, char *out, size_t out_size)
{
	const bool real = row->kind == RFL_OPT_REAL;
	const bool whole = row->kind == RFL_OPT_INT || row->kind == RFL_OPT_INT_LIST;
	char lo[RFL_NUM_MAX], hi[RFL_NUM_MAX];
	bool lower = false, upper = false;

	if (real) {
		rfl_num_exact(row->rmin, lo);
		rfl_num_exact(row->rmax, hi);
		lower = row->rmin != 0.0 || row->rmax != 0.0;
		upper = lower && row->rmax >= row->rmin && strcmp(hi, "inf") != 0;
	} else if (whole) {
		snprintf(lo, sizeof(lo), "%lld", (long long)row->min);
		snprintf(hi, sizeof(hi), "%lld", (long long)row->max);
		lower = has_lower(row);
		upper = has_upper(row);
	}
	if (lower && upper)
		snprintf(out, out_size, "number from %s to %s", lo, hi);
	else if (lower || upper)
		snprintf(out, out_size, "number of at %s %s", lower ? "least" : "most",
			 lower ? lo : hi);
	else
		snprintf(out, out_size, "%s", real || whole ? "number" : "");
	return out;
}

static enum rfl_rc parse_int(const struct rfl_opt *row, const char *text, int64_t *ret,
			     struct rfl_err *err)
{
	enum rfl_rc rc;
	char range[128];
	double real;
	int64_t value;
	bool whole;

	rc = rfl_num_parse_int(text, row->name, &value, NULL);
	if (rc == RFL_OK && !(has_lower(row) && value < row->min) &&
	    !(has_upper(row) && value > row->max)) {
		*ret = value;
		return RFL_OK;
	}
	/* 1.5 is a number, so say what kind is wanted; 99999999999999999999 is whole but too large.
	 */
	whole = rc != RFL_EFORMAT || rfl_num_parse_double(text, row->name, &real, NULL) != RFL_OK;
	return rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not a %s%s", row->name, text,
			whole ? "" : "whole ", rfl_opt_range(row, range, sizeof(range)));
}

static enum rfl_rc parse_real(const struct rfl_opt *row, const char *text, double *ret,
			      struct rfl_err *err)
{
	char range[128];
	double value;
	bool bounded = row->rmin != 0.0 || row->rmax != 0.0;

	if (rfl_num_parse_double(text, row->name, &value, NULL) == RFL_OK &&
	    !(bounded && value < row->rmin) &&
	    !(bounded && row->rmax >= row->rmin && value > row->rmax)) {
		*ret = value;
		return RFL_OK;
	}
	return rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not a %s", row->name, text,
			rfl_opt_range(row, range, sizeof(range)));
}

static enum rfl_rc find_choice(const struct rfl_opt *row, const char *text, size_t len, int *ret,
			       struct rfl_err *err)
{
	struct rfl_buf names, given;
	const char *near;
	enum rfl_rc rc;

	for (int i = 0; row->choices[i]; i++) {
		if (strlen(row->choices[i]) == len && memcmp(row->choices[i], text, len) == 0) {
			*ret = i + row->first;
			return RFL_OK;
		}
	}
	rfl_buf_init(&names, 0);
	rfl_buf_init(&given, 0);
	rfl_buf_append(&given, text, len);
	for (int i = 0; row->choices[i]; i++)
		rfl_buf_printf(&names, "%s%s", i > 0 ? ", " : "", row->choices[i]);
	near = rfl_text_nearest(rfl_buf_str(&given), row->choices);
	if (near && len <= 3 && near[0] != text[0]) /* "gpu" is not a slip for "cpu" */
		near = NULL;
	rc = rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not one of %s%s%s%s", row->name,
		      rfl_buf_str(&given), rfl_buf_str(&names), near ? "; did you mean " : "",
		      near ? near : "", near ? "?" : "");
	rfl_buf_fini(&given);
	rfl_buf_fini(&names);
	return rc;
}

/* Room for one more item of `size` bytes after n, and for the NULL that ends a list. */
static enum rfl_rc grow(void **items, size_t n, size_t size, struct rfl_err *err)
{
	void *bigger;

	if (n >= LIST_MAX)
		return rfl_fail(err, RFL_EUSAGE, 0, "more than %d values in one list", LIST_MAX);
	bigger = realloc(*items, (n + 2) * size);
	if (!bigger)
		return rfl_fail(err, RFL_ENOMEM, 0, "command line: out of memory");
	*items = bigger;
	return RFL_OK;
}

enum rfl_rc rfl_opt_list_add(struct rfl_opt_list *list, const char *text, size_t len,
			     struct rfl_err *err)
{
	void *items = list->items;
	enum rfl_rc rc = grow(&items, list->n, sizeof(*list->items), err);
	char *copy;

	if (rc != RFL_OK)
		return rc;
	list->items = items;
	copy = strndup(text, len);
	if (!copy)
		return rfl_fail(err, RFL_ENOMEM, 0, "command line: out of memory");
	list->items[list->n++] = copy;
	list->items[list->n] = NULL;
	return RFL_OK;
}

void rfl_opt_list_fini(struct rfl_opt_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free((void *)list->items[i]);
	free(list->items);
	list->items = NULL;
	list->n = 0;
}

static enum rfl_rc add_int(const struct rfl_opt *row, struct rfl_opt_int_list *list,
			   const char *text, size_t len, struct rfl_err *err)
{
	char word[64];
	void *items = list->items;
	int64_t value = 0;
	enum rfl_rc rc;

	/* A word that is cut off here is far too long for a number and is refused as one. */
	snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), text);
	rc = parse_int(row, word, &value, err);
	if (rc != RFL_OK)
		return rc;
	rc = grow(&items, list->n, sizeof(*list->items), err);
	if (rc != RFL_OK)
		return rc;
	list->items = items;
	list->items[list->n++] = value;
	return RFL_OK;
}

static enum rfl_rc add_item(const struct rfl_opt *row, void *member, const char *text, size_t len,
			    struct rfl_err *err)
{
	int index;

	if (row->kind == RFL_OPT_INT_LIST)
		return add_int(row, member, text, len, err);
	if (row->choices) {
		enum rfl_rc rc = find_choice(row, text, len, &index, err);

		if (rc != RFL_OK)
			return rc;
	}
	return rfl_opt_list_add(member, text, len, err);
}

/* "a,b,c": each part is a value. */
static enum rfl_rc add_items(const struct rfl_opt *row, void *member, const char *text,
			     struct rfl_err *err)
{
	if (row->whole && *text)
		return add_item(row, member, text, strlen(text), err);
	for (const char *part = text;; part++) {
		size_t len = strcspn(part, ",");
		enum rfl_rc rc;

		if (len == 0)
			return rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' has an empty value",
					row->name, text);
		rc = add_item(row, member, part, len, err);
		if (rc != RFL_OK)
			return rc;
		part += len;
		if (*part == '\0')
			return RFL_OK;
	}
}

enum rfl_rc rfl_opt_set(const struct rfl_opt *row, void *base, const char *text,
			struct rfl_err *err)
{
	void *member = (char *)base + row->offset;

	switch (row->kind) {
	case RFL_OPT_FLAG:
		*(bool *)member = strcmp(text, "on") == 0;
		return RFL_OK;
	case RFL_OPT_INT:
		return parse_int(row, text, member, err);
	case RFL_OPT_REAL:
		return parse_real(row, text, member, err);
	case RFL_OPT_TEXT:
		if (*text == '\0' && !row->may_be_empty)
			return rfl_fail(err, RFL_EUSAGE, 0, "--%s must not be empty", row->name);
		*(const char **)member = text;
		return RFL_OK;
	case RFL_OPT_CHOICE:
		return find_choice(row, text, strlen(text), member, err);
	case RFL_OPT_LIST:
	case RFL_OPT_INT_LIST:
		return add_items(row, member, text, err);
	}
	return rfl_fail(err, RFL_EINVAL, 0, "--%s: its row has no kind", row->name);
}

enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base, struct rfl_err *err)
{
	void *member = (char *)base + row->offset;
	const char *part = row->def;

	if (!part)
		return RFL_OK;
	if (row->kind != RFL_OPT_LIST && row->kind != RFL_OPT_INT_LIST)
		return rfl_opt_set(row, base, part, err);
	for (;;) { /* a list is written as on the command line: with blanks or commas */
		enum rfl_rc rc;
		size_t len;

		part += strspn(part, " ,");
		len = strcspn(part, " ,");
		if (len == 0)
			return RFL_OK;
		rc = add_item(row, member, part, len, err);
		if (rc != RFL_OK)
			return rc;
		part += len;
	}
}
