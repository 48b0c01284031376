/*
 * impl.c - a builder from an import, and metrics by name.
 */
#include "profile/import/impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "profile/capture/impl.h"
#include "profile/import/span.h"

enum rfl_rc rfl_import_builder(const struct rfl_import *import, const char *source,
			       const char *formulas, bool all, struct rfl_capture_builder **ret,
			       struct rfl_err *err)
{
	const struct rfl_capture_spec spec = {
		.source = source,
		.label = import->label,
		.path = rfl_input_name(import->in),
		.formulas = formulas,
		.all_metrics = all || import->options->all_metrics,
	};

	enum rfl_rc rc = rfl_capture_builder_new(&spec, ret, err);

	if (rc == RFL_OK && import->options->steps > 0)
		rfl_capture_steps(*ret, import->options->steps, -1);
	return rc;
}

void rfl_metric_ids_fini(struct rfl_metric_ids *ids)
{
	for (size_t i = 0; i < ids->n; i++)
		free(ids->rows[i].name);
	free(ids->rows);
	*ids = (struct rfl_metric_ids){ .rows = NULL };
}

static struct rfl_metric_id *find_id(struct rfl_metric_ids *ids, const char *name)
{
	for (size_t i = 0; i < ids->n; i++) {
		size_t at = ids->next + i < ids->n ? ids->next + i : ids->next + i - ids->n;

		if (strcmp(ids->rows[at].name, name) == 0) {
			ids->next = at + 1 < ids->n ? at + 1 : 0;
			return &ids->rows[at];
		}
	}
	return NULL;
}

/* The builder's number of a metric; -1: not kept, -2: out of memory. */
static int id_of(struct rfl_capture_builder *b, struct rfl_metric_ids *ids,
		 const struct rfl_reading *r)
{
	const struct rfl_metric_id *known = find_id(ids, r->name);
	struct rfl_metric_id *row;

	if (known)
		return known->id;
	if (!rfl_capture__room(&ids->rows, ids->n, &ids->cap, sizeof(*ids->rows)))
		return -2;
	row = &ids->rows[ids->n];
	row->name = strdup(r->name);
	if (!row->name)
		return -2;
	row->id = rfl_capture_metric_id(b, r->name, strlen(r->name), r->unit);
	ids->n++;
	return row->id;
}

enum rfl_rc rfl_import_give(struct rfl_capture_builder *b, struct rfl_metric_ids *ids,
			    const struct rfl_reading *r, enum rfl_given *given, struct rfl_err *err)
{
	int id = id_of(b, ids, r);
	enum rfl_given how = RFL_GIVEN_NEW;

	if (id == -2)
		return rfl_fail(err, RFL_ENOMEM, 0, "metric '%s': out of memory", r->name);
	if (id >= 0 && isinf(r->value))
		how = rfl_capture_metric(b, id, NAN, RFL_VALID_UNAVAILABLE, -1,
					 "too large for a number");
	else if (id >= 0)
		how = rfl_capture_metric(b, id, r->value, r->validity, -1, r->reason);
	if (given)
		*given = how;
	return RFL_OK;
}

enum rfl_rc rfl_import_range(struct rfl_capture_builder *b, struct rfl_metric_ids *ids,
			     enum rfl_range_kind kind, const char *name,
			     const struct rfl_reading *readings, size_t n, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_capture_begin(b, kind, name, NULL, NULL, err);

	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = rfl_import_give(b, ids, &readings[i], NULL, err);
	return rc == RFL_OK ? rfl_capture_end(b, err) : rc;
}

bool rfl_import_is_rounded(double value, double half_digit)
{
	return half_digit > 0.01 * value;
}

void rfl_import_note_copies(struct rfl_capture_builder *b, double bytes, double seconds,
			    int64_t operations)
{
	char count[RFL_NUM_MAX], number[RFL_NUM_MAX], size[64] = "", time[64] = "";

	if (operations < 1)
		return;
	if (!isnan(bytes))
		(void)snprintf(size, sizeof(size), ", %s bytes", rfl_num_full(bytes, number));
	if (!isnan(seconds))
		(void)snprintf(time, sizeof(time), ", %.6g s", seconds);
	rfl_capture_note(b, "copies and fills of memory are in no total: %s operation%s%s%s",
			 rfl_num_grouped(operations, count), operations == 1 ? "" : "s", size,
			 time);
}

enum rfl_rc rfl_import_finish(const struct rfl_import *import, struct rfl_capture_builder *b,
			      struct rfl_captures *to, struct rfl_err *err)
{
	if (import->left_out > 0)
		rfl_capture_left_out(b, import->left_out);
	return rfl_capture_finish(b, to, err);
}

enum rfl_rc rfl_import_refused(struct rfl_import *import, const char *source,
			       struct rfl_captures *to, struct rfl_err *err, const char *fmt, ...)
{
	struct rfl_capture_builder *b = NULL;
	char reason[RFL_ERR_MSG_MAX];
	enum rfl_rc rc;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	rfl_text_one_line(reason);
	rc = rfl_import_builder(import, source, NULL, false, &b, err);
	if (rc == RFL_OK) {
		rfl_import_warn(import, "nothing was counted: %s", reason);
		rfl_capture_refuse(b, RFL_REFUSED_ALL, reason);
		rc = rfl_import_finish(import, b, to, err);
	}
	rfl_capture_builder_free(b);
	return rc;
}

int rfl_import_column(const struct rfl_span *fields, size_t n, const char *title,
		      struct rfl_span *unit)
{
	for (size_t i = 0; i < n; i++) {
		struct rfl_span f = rfl_span_trim(fields[i]);

		if (!rfl_span_starts(f, title))
			continue;
		f = rfl_span_trim(rfl_span_from(f, strlen(title)));
		if (f.len > 0 && (f.len < 2 || f.at[0] != '(' || f.at[f.len - 1] != ')'))
			continue;
		if (f.len > 0)
			f = (struct rfl_span){ .at = f.at + 1, .len = f.len - 2 };
		if (unit)
			*unit = f;
		return (int)i;
	}
	return -1;
}

struct rfl_span rfl_import_field(const struct rfl_span *fields, size_t n, int column)
{
	if (column < 0 || (size_t)column >= n)
		return (struct rfl_span){ .at = "", .len = 0 };
	return rfl_span_trim(fields[column]);
}

const char *rfl_import_shape(const struct rfl_span *fields, size_t n, const int columns[3],
			     char out[64])
{
	struct rfl_span side[3];

	for (size_t i = 0; i < RFL_ARRAY_LEN(side); i++) {
		side[i] = rfl_import_field(fields, n, columns[i]);
		if (side[i].len == 0)
			return NULL;
	}
	(void)snprintf(out, 64, "(%.*s, %.*s, %.*s)", RFL_SPAN_ARG(side[0]), RFL_SPAN_ARG(side[1]),
		       RFL_SPAN_ARG(side[2]));
	return out;
}

double rfl_import_per_second(struct rfl_span unit)
{
	static const struct {
		const char *text;
		double per_second;
	} units[] = {
		{ "ns", 1e9 },       { "nsec", 1e9 },   { "us", 1e6 },       { "usec", 1e6 },
		{ "ms", 1e3 },       { "msec", 1e3 },   { "s", 1.0 },        { "sec", 1.0 },
		{ "min", 1 / 60.0 }, { "m", 1 / 60.0 }, { "h", 1 / 3600.0 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++)
		if (rfl_span_is(unit, units[i].text))
			return units[i].per_second;
	return 0.0;
}
