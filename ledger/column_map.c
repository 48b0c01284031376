/*
 * column_map.c - parses the rules of a column map and converts units. Column names that need no
 * rule are listed in runs.c.
 */
#include "ledger/file/steps.h"
#include "ledger/runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#define FILE_MAX    ((size_t)1 << 20)
#define LISTED_MOST 40

struct rfl_column_map *rfl_column_map_new(void)
{
	struct rfl_column_map *map = rfl_alloc_array(1, sizeof(*map));

	map->arena = rfl_arena_new();
	return map;
}

void rfl_column_map_free(struct rfl_column_map *map)
{
	if (!map)
		return;
	rfl_arena_free(map->arena);
	free(map);
}

/* Copy a text without leading and trailing blanks. */
static char *trimmed(struct rfl_arena *a, const char *from, size_t len)
{
	const struct rfl_span s = rfl_span_trim((struct rfl_span){ from, len });

	return rfl_arena_printf(a, "%.*s", (int)s.len, s.at);
}

enum rfl_rc rfl_column_map_add(struct rfl_column_map *map, const char *rule, const char *where,
			       struct rfl_err *err)
{
	const char *equals = strchr(rule, '=');
	char advice[RFL_ADVICE_SIZE];
	const char *names[RFL_LEDGER_NREAD + 1] = { NULL };
	struct rfl_column_rule r = { .constant = NULL };
	const struct rfl_field *f;
	char *name, *right;
	double real;
	int64_t whole;
	size_t len;
	enum rfl_rc rc = RFL_OK;

	if (!equals)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: '%.200s' is not a valid rule; write NAME=COLUMN or NAME=\"constant\"",
			where, rule);
	name = trimmed(map->arena, rule, (size_t)(equals - rule));
	right = trimmed(map->arena, equals + 1, strlen(equals + 1));
	r.where = rfl_arena_strdup(map->arena, where);

	r.column = rfl_fields_find(rfl_ledger_fields, RFL_LEDGER_NREAD, name);
	if (r.column == RFL_LEDGER_NREAD) {
		for (size_t i = 0; i < RFL_LEDGER_NREAD; i++)
			names[i] = rfl_ledger_fields[i].name;
		for (size_t i = 0; i < RFL_LEDGER_NREAD; i++) /* fwd_ms: fwd_ms_mean */
			if (rfl_span_starts(rfl_span_of(names[i]), name) &&
			    names[i][strlen(name)] == '_')
				return rfl_fail(
					err, RFL_EINVAL, 0,
					"%s: the ledger has no column '%s'; did you mean %s?",
					where, name, names[i]);
		return rfl_fail(err, RFL_EINVAL, 0, "%s: the ledger has no column '%s'; %s", where,
				name,
				rfl_text_advice(name, names, 1,
						"docs/reference/columns.md lists them", advice));
	}
	for (size_t i = 0; i < map->n; i++)
		if (map->rules[i].column == r.column)
			return rfl_fail(err, RFL_EINVAL, 0,
					"%s: '%s' already has a rule, in %s; remove one of them",
					where, name, map->rules[i].where);

	len = strlen(right);
	if (len == 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s= has no value; write the name of a column, or \"a "
				"constant\" in quotes",
				where, name);
	if (right[0] != '"') {
		r.source = right;
	} else {
		if (len < 2 || right[len - 1] != '"' || memchr(right + 1, '"', len - 2))
			return rfl_fail(err, RFL_EINVAL, 0,
					"%s: %s=%s is not a valid constant; write it between two "
					"double quotes",
					where, name, right);
		right[len - 1] = '\0';
		r.constant = right + 1;
	}
	/* The constant of a numeric column must be a number. An empty constant means unknown. */
	f = &rfl_ledger_fields[r.column];
	if (r.constant && *r.constant && f->kind == RFL_FIELD_INT)
		rc = rfl_num_parse_int(r.constant, name, &whole, err);
	else if (r.constant && *r.constant && f->kind == RFL_FIELD_REAL)
		rc = rfl_num_parse_double(r.constant, name, &real, err);
	if (rc) {
		rfl_err_prefix(err, "%s", where);
		if (err)
			err->rc = RFL_EINVAL;
		return RFL_EINVAL;
	}
	map->rules[map->n++] = r;
	return RFL_OK;
}

enum rfl_rc rfl_column_map_load(struct rfl_column_map *map, const char *path, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTO(buf) text = { .max = FILE_MAX };
	struct rfl_span rest, line;
	enum rfl_rc rc;

	rc = rfl_file_read(path, &text, err);
	if (rc != RFL_OK)
		return rc;
	rest = (struct rfl_span){ rfl_buf_str(&text), text.len };
	if (memchr(rest.at, '\0', rest.len)) {
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: not a text file (it contains a zero byte); write one "
			      "NAME=COLUMN rule per line",
			      path);
		return rc;
	}
	if (rfl_span_starts(rest, "\xef\xbb\xbf")) /* byte order mark */
		rest = rfl_span_from(rest, 3);
	for (size_t number = 1; rc == RFL_OK && rfl_span_next_line(&rest, &line); number++) {
		char where[512];

		line = rfl_span_trim(line);
		if (line.len == 0 || *line.at == '#')
			continue;
		snprintf(where, sizeof(where), "%s:%zu", path, number);
		rc = rfl_column_map_add(map, trimmed(map->arena, line.at, line.len), where, &why);
	}
	if (rc == RFL_EINVAL)
		rc = RFL_EFORMAT;
	if (rc)
		(void)rfl_fail(err, rc, why.native, "%s", why.msg);
	return rc;
}

struct unit {
	const char *name;
	const char *of; /* base unit */
	double factor;
};

static const struct unit units[] = {
	{ "s", "s", 1 },
	{ "ms", "s", 1e-3 },
	{ "us", "s", 1e-6 },
	{ "ns", "s", 1e-9 },
	{ "min", "s", 60 },
	{ "h", "s", 3600 },
	{ "B", "bytes", 1 },
	{ "kB", "bytes", 1e3 },
	{ "KB", "bytes", 1e3 },
	{ "MB", "bytes", 1e6 },
	{ "GB", "bytes", 1e9 },
	{ "KiB", "bytes", 1024 },
	{ "MiB", "bytes", 1048576 },
	{ "GiB", "bytes", 1073741824 },
	{ "Hz", "hz", 1 },
	{ "kHz", "hz", 1e3 },
	{ "MHz", "hz", 1e6 },
	{ "GHz", "hz", 1e9 },
	{ "mW", "w", 1e-3 },
	{ "W", "w", 1 },
	{ "kW", "w", 1e3 },
};

static const struct unit *find_unit(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

/* Derive the unit of a ledger column from its name. NULL: no unit. */
static const struct unit *unit_of(const char *name)
{
	static const struct {
		const char *part, *unit;
	} parts[] = {
		{ "_per_", NULL }, { "_ms", "ms" }, { "_bytes", "B" },
		{ "_hz", "Hz" },   { "_w", "W" },   { "_s", "s" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++) {
		const char *at = strstr(name, parts[i].part);
		const char *after = at ? at + strlen(parts[i].part) : NULL;

		if (at && !parts[i].unit)
			return NULL;
		if (at && (*after == '\0' || *after == '_'))
			return find_unit(parts[i].unit);
	}
	return NULL;
}

void rfl_column_map__list(const struct rfl_csv *csv, struct rfl_buf *out)
{
	size_t n = csv->ncolumns;

	for (size_t i = 0; i < n && i < LISTED_MOST; i++)
		rfl_buf_printf(out, "%s'%.80s'", i ? ", " : "", csv->columns[i]);
	if (n > LISTED_MOST)
		rfl_buf_printf(out, " and %zu more", n - LISTED_MOST);
}

int rfl_column_map__named(const struct rfl_csv *csv, const char *source, const char *end)
{
	const struct rfl_span name =
		rfl_span_trim((struct rfl_span){ source, (size_t)(end - source) });

	for (size_t i = 0; i < csv->ncolumns; i++)
		if (rfl_span_is(name, csv->columns[i]))
			return (int)i;
	return -1;
}

double rfl_column_map__ms(const char *unit)
{
	const struct unit *u = find_unit(unit);

	return u && strcmp(u->of, "s") == 0 ? 1e3 * u->factor : (double)NAN;
}

/* The number in a name such as "Run 2"; 0: none. */
static int run_of(const char *name)
{
	const char *const words[] = { "run", "repeat", "rep", "trial" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strncasecmp(name, words[i], strlen(words[i])) == 0) {
			const char *digit = name + strlen(words[i]);

			digit += strspn(digit, " _#");
			return digit[0] >= '1' && digit[0] <= '9' && strlen(digit) < 3
				       ? (int)strtod(digit, NULL)
				       : 0;
		}
	return 0;
}

int rfl_column_map__runs(const struct rfl_csv *csv, int column)
{
	const size_t first = (size_t)column;
	size_t n = 0;

	while (column >= 0 && n < RFL_LEDGER__RUNS_MOST && first + n < csv->ncolumns &&
	       run_of(csv->columns[first + n]) == (int)n + 1)
		n++;
	return n > 1 ? (int)n : 0;
}

static enum rfl_rc no_such_column(const struct rfl_column_rule *r, const struct rfl_csv *csv,
				  const char *source, struct rfl_err *err)
{
	RFL_AUTO(buf) list = { .max = 1 << 16 };

	rfl_column_map__list(csv, &list);
	(void)rfl_fail(err, RFL_EINVAL, 0, "%s: %s=%s: no such column in %s; use one of %s",
		       r->where, rfl_ledger_fields[r->column].name, source, csv->path,
		       rfl_buf_str(&list));
	return RFL_EINVAL;
}

/* Check the columns in the braces of a constant, if it has any. */
static enum rfl_rc bind_pattern(const struct rfl_column_rule *r, const struct rfl_csv *csv,
				struct rfl_ledger_source *ret, struct rfl_err *err)
{
	const char *open = strchr(r->constant, '{'), *end;
	int column;

	if (!open)
		return RFL_OK;
	ret->pattern = r->constant;
	ret->text = NULL;
	for (; open; open = strchr(end, '{')) {
		end = strchr(open, '}');
		if (!end)
			return rfl_fail(
				err, RFL_EINVAL, 0,
				"%s: %s=\"%s\": '{' without '}'; write the name of a column "
				"between braces",
				r->where, rfl_ledger_fields[r->column].name, r->constant);
		column = rfl_column_map__named(csv, open + 1, end);
		if (column < 0)
			return no_such_column(r, csv, r->constant, err);
		ret->column = ret->column < 0 ? column : ret->column;
	}
	return RFL_OK;
}

/* A source is a column name, optionally followed by a factor or unit. */
static enum rfl_rc bind_source(const struct rfl_column_rule *r, const struct rfl_csv *csv,
			       struct rfl_ledger_source *ret, struct rfl_err *err)
{
	const char *source = r->source, *star = strrchr(source, '*'), *word = strrchr(source, ' ');
	const struct rfl_field *f = &rfl_ledger_fields[r->column];
	const struct unit *theirs = word ? find_unit(word + 1) : NULL, *ours = unit_of(f->name);
	double factor;

	*ret = (struct rfl_ledger_source){
		.column = rfl_column_map__named(csv, source, source + strlen(source)),
		.foreign = true,
	};
	if (ret->column >= 0)
		return RFL_OK;
	/* "COLUMN * FACTOR", split at the last asterisk */
	if (star &&
	    rfl_num_parse_double(star + 1 + strspn(star + 1, " \t"), "", &factor, NULL) == RFL_OK &&
	    factor != 0) {
		ret->column = rfl_column_map__named(csv, source, star);
		ret->scale = factor;
	}
	/* "COLUMN UNIT", split at the last blank */
	if (ret->column < 0 && theirs && ours && strcmp(theirs->of, ours->of) == 0) {
		ret->column = rfl_column_map__named(csv, source, word);
		ret->scale = theirs->factor / ours->factor;
	}
	if (ret->column < 0)
		return no_such_column(r, csv, source, err);
	if (f->kind == RFL_FIELD_TEXT)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s=%s: the column %s is text, which has no unit; remove the "
				"unit or factor",
				r->where, f->name, source, f->name);
	return RFL_OK;
}

enum rfl_rc rfl_column_map__bind(const struct rfl_column_map *map, const struct rfl_csv *csv,
				 struct rfl_ledger_source from[RFL_LEDGER_NREAD],
				 struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < map->n && rc == RFL_OK; i++) {
		const struct rfl_column_rule *r = &map->rules[i];
		struct rfl_ledger_source *to = &from[r->column];

		*to = (struct rfl_ledger_source){ .column = -1,
						  .text = r->constant,
						  .foreign = true };
		rc = r->constant ? bind_pattern(r, csv, to, err) : bind_source(r, csv, to, err);
	}
	return rc;
}
