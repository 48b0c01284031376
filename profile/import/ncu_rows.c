/*
 * ncu_rows.c - rows of ncu's tables: a metric of a launch, a launch, or a metric over the
 * launches of a kernel.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/import/ncu_impl.h"
#include "profile/import/span.h"

/* --- metrics of long tables ------------------------------------------------------------------ */

static bool is_metric(const struct rfl_ncu_metric *m, struct rfl_span section, struct rfl_span name,
		      struct rfl_span unit)
{
	return m->name_len == name.len && m->unit_len == unit.len &&
	       m->section_len == section.len && memcmp(m->name, name.at, name.len) == 0 &&
	       memcmp(m->unit_text, unit.at, unit.len) == 0 &&
	       memcmp(m->section, section.at, section.len) == 0;
}

static uint64_t hash_of(struct rfl_span section, struct rfl_span name, struct rfl_span unit)
{
	uint64_t hash = rfl_hash64(1, name.at, name.len);

	return rfl_hash64(rfl_hash64(hash, unit.at, unit.len), section.at, section.len);
}

static void put_slot(struct rfl_ncu *n, size_t i)
{
	const struct rfl_ncu_metric *m = &n->metrics[i];
	uint64_t at = hash_of((struct rfl_span){ .at = m->section, .len = m->section_len },
			      (struct rfl_span){ .at = m->name, .len = m->name_len },
			      (struct rfl_span){ .at = m->unit_text, .len = m->unit_len });

	for (at &= n->nslots - 1; n->slots[at] != 0; at = (at + 1) & (n->nslots - 1))
		continue;
	n->slots[at] = (uint32_t)i + 1;
}

static bool grow_metrics(struct rfl_ncu *n)
{
	size_t cap = n->metrics_cap ? 2 * n->metrics_cap : 128;
	struct rfl_ncu_metric *metrics;
	uint32_t *slots;

	if (n->nmetrics < n->metrics_cap)
		return true;
	metrics = realloc(n->metrics, cap * sizeof(*metrics));
	if (!metrics)
		return false;
	n->metrics = metrics;
	slots = rfl_alloc_array(4 * cap, sizeof(*slots));
	if (!slots)
		return false;
	free(n->slots);
	n->slots = slots;
	n->nslots = 4 * cap;
	n->metrics_cap = cap;
	for (size_t i = 0; i < n->nmetrics; i++)
		put_slot(n, i);
	return true;
}

/* By hash; a new one is made. *ret stays where memory is short. */
static enum rfl_rc look_up(struct rfl_ncu *n, struct rfl_span section, struct rfl_span name,
			   struct rfl_span unit, size_t *ret, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!grow_metrics(n))
		return rfl_ncu__no_memory(n, err);
	for (uint64_t at = hash_of(section, name, unit) & (n->nslots - 1); n->slots[at] != 0;
	     at = (at + 1) & (n->nslots - 1)) {
		*ret = n->slots[at] - 1;
		if (is_metric(&n->metrics[*ret], section, name, unit))
			return RFL_OK;
	}
	rc = rfl_ncu__metric_init(n, &n->metrics[n->nmetrics], section, name, unit, err);
	if (rc != RFL_OK)
		return rc;
	*ret = n->nmetrics++;
	put_slot(n, *ret);
	return RFL_OK;
}

/* The metric of a row: most often the one that followed the last row's the time before. */
static enum rfl_rc find_metric(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			       struct rfl_ncu_metric **ret, struct rfl_err *err)
{
	const struct rfl_ncu_table *t = &n->table;
	struct rfl_span section = rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_SECTION);
	struct rfl_span name = rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_METRIC);
	struct rfl_span unit = rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_UNIT);
	size_t i = n->last < n->nmetrics ? n->metrics[n->last].next : SIZE_MAX;
	enum rfl_rc rc = RFL_OK;

	if (i >= n->nmetrics || !is_metric(&n->metrics[i], section, name, unit)) {
		i = SIZE_MAX;
		rc = look_up(n, section, name, unit, &i, err);
		if (rc != RFL_OK)
			return rc;
		if (n->last < n->nmetrics)
			n->metrics[n->last].next = i;
	}
	n->last = i;
	*ret = &n->metrics[i];
	return RFL_OK;
}

/* --- long and summary ------------------------------------------------------------------------ */

static enum rfl_rc long_row(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			    struct rfl_err *err)
{
	struct rfl_ncu_metric *m;
	enum rfl_rc rc;

	if (rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_METRIC).len == 0)
		return RFL_OK; /* a rule */
	if (nfields <= (size_t)n->table.column[RFL_NCU_COLUMN_VALUE])
		return rfl_import_bad_row(n->import, "Metric Value", err,
					  "the row ends in front of it: cut off?");
	rc = find_metric(n, fields, nfields, &m, err);
	if (rc != RFL_OK || (m->id < 0 && !m->legacy))
		return rc;
	return rfl_ncu__cell(n, m, rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_VALUE),
			     1, "Metric Value", err);
}

/* Of a summary: the average over its launches. */
static enum rfl_rc summary_row(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			       struct rfl_err *err)
{
	struct rfl_ncu_metric *m;
	enum rfl_rc rc;

	if (rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_METRIC).len == 0)
		return RFL_OK;
	if (nfields <= (size_t)n->table.column[RFL_NCU_COLUMN_AVERAGE])
		return rfl_import_bad_row(n->import, "Average", err,
					  "the row ends in front of it: cut off?");
	rc = find_metric(n, fields, nfields, &m, err);
	if (rc != RFL_OK || (m->id < 0 && !m->legacy))
		return rc;
	return rfl_ncu__cell(n, m,
			     rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_AVERAGE),
			     n->invocations, "Average", err);
}

/* --- wide ------------------------------------------------------------------------------------ */

/* The row of units: nothing in the columns that tell launches apart. */
static bool is_units_row(const struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields)
{
	return rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_ID).len == 0 &&
	       rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_KERNEL).len == 0;
}

static enum rfl_rc keep_units(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			      struct rfl_err *err)
{
	for (size_t i = 0; i < n->table.ncolumns && i < nfields; i++) {
		struct rfl_span unit = rfl_span_trim(fields[i]);
		char *text = rfl_arena_array(n->arena, unit.len + 1, 1);

		if (!text)
			return rfl_ncu__no_memory(n, err);
		memcpy(text, unit.at, unit.len);
		n->table.metrics[i].unit_text = text;
		n->table.metrics[i].unit_len = unit.len;
	}
	return RFL_OK;
}

static enum rfl_rc wide_row(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			    struct rfl_err *err)
{
	struct rfl_ncu_table *t = &n->table;
	int64_t left_out = n->import->left_out;
	enum rfl_rc rc = RFL_OK;

	if (!t->ready)
		rc = rfl_ncu__columns(n, err);
	for (size_t i = 0; rc == RFL_OK && i < t->nused && t->used[i] < nfields; i++) {
		struct rfl_ncu_metric *m = &t->metrics[t->used[i]];

		rc = rfl_ncu__cell(n, m, fields[t->used[i]], 1, m->name, err);
	}
	/* However many of its cells cannot be read, it is one row. */
	if (n->import->left_out > left_out)
		n->import->left_out = left_out + 1;
	/* A launch is a row here: the same one again is refused by its number. */
	return rc == RFL_OK ? rfl_ncu__close(n, err) : rc;
}

/* --- any ------------------------------------------------------------------------------------- */

static enum rfl_rc refuse_size(struct rfl_ncu *n, size_t nfields, struct rfl_err *err)
{
	if (nfields > n->table.ncolumns)
		return rfl_import_bad_row(n->import, NULL, err,
					  "%zu fields, but the header on line %zu has %zu columns",
					  nfields, n->table.line, n->table.ncolumns);
	return rfl_import_bad_row(n->import, NULL, err, "%zu of %zu fields: the row was cut off",
				  nfields, n->table.ncolumns);
}

/* The row behind the header of a wide page: of units, or there are none. @param units  which */
static enum rfl_rc look_for_units(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
				  bool *units, struct rfl_err *err)
{
	struct rfl_ncu_table *t = &n->table;

	*units = is_units_row(n, fields, nfields);
	if (*units && nfields < t->ncolumns)
		return refuse_size(n, nfields, err);
	t->units_due = false;
	if (*units)
		return keep_units(n, fields, nfields, err);
	if (n->import->left_out > t->left_out)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: the rows between the header on line %zu and this one were "
				"left out, and the units with them: the values cannot be converted",
				rfl_input_name(n->import->in), rfl_input_line_number(n->import->in),
				t->line);
	n->no_units = true;
	return RFL_OK;
}

enum rfl_rc rfl_ncu__row(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			 struct rfl_err *err)
{
	static enum rfl_rc (*const rows[])(struct rfl_ncu *, const struct rfl_span *, size_t,
					   struct rfl_err *) = { [RFL_NCU_LONG] = long_row,
								 [RFL_NCU_WIDE] = wide_row,
								 [RFL_NCU_SUMMARY] = summary_row };
	struct rfl_ncu_table *t = &n->table;
	enum rfl_rc rc;
	bool units, known = n->open && n->follows &&
			    rfl_input_same_fields(n->import->in) >= t->identity_end;

	n->follows = false;
	if (nfields > t->ncolumns || nfields < t->least ||
	    (rfl_input_torn(n->import->in) && nfields < t->ncolumns && !t->least))
		return refuse_size(n, nfields, err);
	if (t->units_due) {
		rc = look_for_units(n, fields, nfields, &units, err);
		if (rc != RFL_OK || units)
			return rc;
	}
	if (!known) {
		rc = rfl_ncu__launch(n, fields, nfields, err);
		if (rc != RFL_OK)
			return rc;
	}
	n->follows = true;
	if (n->bad) { /* the first of its rows was told and counted */
		n->import->left_out += n->bad_rows++ > 0;
		return RFL_OK;
	}
	return rows[t->layout](n, fields, nfields, err);
}
