/*
 * impl.c - metrics by name, columns by title, units.
 */
#include "profile/import/impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* --- metrics --------------------------------------------------------------------------------- */

enum rfl_rc rfl_import_give(struct rfl_import *import, const struct rfl_reading *r,
			    enum rfl_given *given)
{
	struct rfl_metric_id *known = NULL;
	enum rfl_given how = RFL_GIVEN_NEW;
	bool huge = isinf(r->value);

	for (size_t i = 0; i < import->nids && !known; i++) {
		size_t at = (import->next_id + i) % import->nids;

		if (strcmp(import->ids[at].name, r->name) != 0)
			continue;
		known = &import->ids[at];
		import->next_id = at + 1;
	}
	if (!known) {
		const char *name = rfl_arena_strdup(import->arena, r->name);

		if (!name || rfl_grow(&import->ids, &import->ids_cap, import->nids + 1, SIZE_MAX,
				      NULL) != RFL_OK)
			return rfl_import_no_memory(import);
		known = &import->ids[import->nids++];
		known->name = name;
		known->id = rfl_capture_metric_id(import->b, name, strlen(name), r->unit);
	}
	if (known->id == -2)
		return rfl_import_no_memory(import);
	if (known->id >= 0)
		how = rfl_capture_metric(import->b, known->id, huge ? NAN : r->value,
					 huge ? RFL_VALID_UNAVAILABLE : r->validity, -1,
					 huge ? "too large for a number" : r->reason);
	if (given)
		*given = how;
	return RFL_OK;
}

enum rfl_rc rfl_import_times(struct rfl_import *import, struct rfl_span kernel, const char *block,
			     const char *grid, int64_t launches, const struct rfl_reading *time)
{
	char name[4096];
	enum rfl_rc rc = rfl_capture_begin(import->b, RFL_RANGE_KERNEL,
					   rfl_span_copy(kernel, name, sizeof(name)), block, grid,
					   import->err);

	if (rc != RFL_OK)
		return rc;
	rfl_capture_launches(import->b, launches);
	rc = rfl_import_give(import, time, NULL);
	return rc == RFL_OK ? rfl_capture_end(import->b, import->err) : rc;
}

bool rfl_import_is_rounded(double value, double half_digit)
{
	return half_digit > 0.01 * value;
}

void rfl_import_note_copies(struct rfl_import *import, double bytes, double seconds,
			    int64_t operations)
{
	char count[RFL_NUM_MAX], number[RFL_NUM_MAX], size[64] = "", time[64] = "";

	if (operations < 1)
		return;
	if (!isnan(bytes))
		(void)snprintf(size, sizeof(size), ", %s bytes", rfl_num_full(bytes, number));
	if (!isnan(seconds))
		(void)snprintf(time, sizeof(time), ", %.6g s", seconds);
	rfl_capture_note(
		import->b, "copies and fills of memory are in no total: %s operation%s%s%s",
		rfl_num_grouped(operations, count), operations == 1 ? "" : "s", size, time);
}

void rfl_import_nothing_counted(struct rfl_import *import, const char *fmt, ...)
{
	struct rfl_err reason = RFL_ERR_INIT; /* one line that can be shown */
	char text[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)rfl_fail(&reason, RFL_EFORMAT, 0, "%s", text);
	rfl_import_warn(import, "nothing was counted: %s", reason.msg);
	rfl_capture_refuse(import->b, RFL_REFUSED_ALL, reason.msg);
}

/* --- the record at hand ---------------------------------------------------------------------- */

int rfl_import_column(const struct rfl_import *import, const char *title, struct rfl_span *unit)
{
	for (size_t i = 0; i < import->n; i++) {
		struct rfl_span f = rfl_span_trim(import->f[i]);

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

int rfl_import_exact_column(const struct rfl_import *import, const char *title)
{
	for (size_t i = 0; i < import->n; i++)
		if (rfl_span_is(rfl_span_trim(import->f[i]), title))
			return (int)i;
	return -1;
}

struct rfl_span rfl_import_field(const struct rfl_import *import, int column)
{
	if (column < 0 || (size_t)column >= import->n)
		return (struct rfl_span){ .at = "", .len = 0 };
	return rfl_span_trim(import->f[column]);
}

const char *rfl_import_shape(const struct rfl_import *import, const int columns[3], char out[64])
{
	struct rfl_span x = rfl_import_field(import, columns[0]);
	struct rfl_span y = rfl_import_field(import, columns[1]);
	struct rfl_span z = rfl_import_field(import, columns[2]);

	if (x.len == 0 || y.len == 0 || z.len == 0)
		return NULL;
	(void)snprintf(out, 64, "(%.*s, %.*s, %.*s)", RFL_SPAN_ARG(x), RFL_SPAN_ARG(y),
		       RFL_SPAN_ARG(z));
	return out;
}

enum rfl_rc rfl_import_bad_width(struct rfl_import *import, size_t width)
{
	return rfl_import_bad_row(import, NULL, "%zu fields where the header has %zu%s", import->n,
				  width, import->in->torn ? ": the file is cut off" : "");
}

bool rfl_import_launches(struct rfl_span s, double *ret)
{
	return rfl_span_grouped(s, '.', ret, NULL) && *ret >= 1 && *ret <= 9e15 &&
	       *ret == floor(*ret);
}

/* --- tables of texts ------------------------------------------------------------------------- */

const struct rfl_unit *rfl_unit_find(const struct rfl_unit *units, size_t n, struct rfl_span text)
{
	for (size_t i = 0; i < n; i++)
		if (rfl_span_is(text, units[i].text))
			return &units[i];
	return NULL;
}

double rfl_unit_value(const struct rfl_unit *units, size_t n, struct rfl_span text)
{
	const struct rfl_unit *known = rfl_unit_find(units, n, text);

	return known ? known->value : 0.0;
}

double rfl_unit_apply(double value, double scale)
{
	return scale < 0 ? value / -scale : value * scale;
}

double rfl_import_per_second(struct rfl_span unit)
{
	static const struct rfl_unit units[] = {
		{ "ns", "s", 1e9 },     { "nsec", "s", 1e9 },     { "us", "s", 1e6 },
		{ "usec", "s", 1e6 },   { "ms", "s", 1e3 },       { "msec", "s", 1e3 },
		{ "s", "s", 1.0 },      { "sec", "s", 1.0 },      { "min", "s", 1 / 60.0 },
		{ "m", "s", 1 / 60.0 }, { "h", "s", 1 / 3600.0 },
	};

	return rfl_unit_value(units, RFL_ARRAY_LEN(units), unit);
}

bool rfl_span_starts_any(struct rfl_span s, const char *const *texts)
{
	for (; *texts; texts++)
		if (rfl_span_starts(s, *texts))
			return true;
	return false;
}
