/*
 * ncu_launch.c - which launch a row of ncu's tables is of: by the numbers of process and
 * launch; in a summary by the kernel, its block and grid. None comes twice, in another table
 * either: two pages of one report would count everything twice.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/import/ncu_impl.h"
#include "profile/import/span.h"

/* --- opening and closing --------------------------------------------------------------------- */

/* "17", or "17.0" of a table that went through a data frame. */
static bool read_integer(struct rfl_span s, int64_t *ret)
{
	int64_t value = 0;

	s = rfl_span_trim(s);
	if (s.len > 2 && rfl_span_ends(s, ".0"))
		s.len -= 2;
	if (s.len == 0 || s.len > 18)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		value = 10 * value + (s.at[i] - '0');
	}
	*ret = value;
	return true;
}

/* Which columns make a launch; a summary has no numbers and takes more. */
static const enum rfl_ncu_column numbered[] = { RFL_NCU_COLUMN_PROCESS, RFL_NCU_COLUMN_ID };
static const enum rfl_ncu_column summarized[] = { RFL_NCU_COLUMN_PROCESS, RFL_NCU_COLUMN_KERNEL,
						  RFL_NCU_COLUMN_BLOCK,   RFL_NCU_COLUMN_GRID,
						  RFL_NCU_COLUMN_DEVICE,  RFL_NCU_COLUMN_CC };

static size_t identity_columns(const struct rfl_ncu *n, const enum rfl_ncu_column **ret)
{
	bool summary = n->table.layout == RFL_NCU_SUMMARY;

	*ret = summary ? summarized : numbered;
	return summary ? RFL_ARRAY_LEN(summarized) : RFL_ARRAY_LEN(numbered);
}

/* Whether the fields are those of the open launch. */
static bool is_open_launch(const struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields)
{
	const enum rfl_ncu_column *columns;
	size_t ncolumns = identity_columns(n, &columns), at = 0;

	if (!n->open && !n->bad)
		return false;
	for (size_t i = 0; i < ncolumns; i++) {
		struct rfl_span f = rfl_ncu__field(&n->table, fields, nfields, columns[i]);

		if (at + f.len + 1 > n->identity.len ||
		    memcmp(n->identity.data + at, f.at, f.len) != 0 ||
		    n->identity.data[at + f.len] != '\n')
			return false;
		at += f.len + 1;
	}
	return at == n->identity.len;
}

static bool keep_identity(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields)
{
	const enum rfl_ncu_column *columns;
	size_t ncolumns = identity_columns(n, &columns);

	rfl_buf_reset(&n->identity);
	for (size_t i = 0; i < ncolumns; i++) {
		struct rfl_span f = rfl_ncu__field(&n->table, fields, nfields, columns[i]);

		rfl_buf_append(&n->identity, f.at, f.len);
		rfl_buf_putc(&n->identity, '\n');
	}
	return !n->identity.failed;
}

static void keep_text(struct rfl_buf *b, struct rfl_span s)
{
	s = rfl_span_trim(s);
	rfl_buf_reset(b);
	rfl_buf_append(b, s.at, s.len);
}

enum rfl_rc rfl_ncu__close(struct rfl_ncu *n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	struct rfl_ncu_process *p;

	if (n->open) {
		rc = rfl_capture_end(n->builder, err);
		n->launches++;
	}
	if (rc == RFL_OK && n->open && n->table.layout != RFL_NCU_SUMMARY) {
		p = rfl_ncu__process(n, n->process);
		if (!p || !rfl_ncu__mark_read(p, n->id))
			rc = rfl_ncu__no_memory(n, err);
	}
	n->open = n->bad = false;
	return rc;
}

/* A launch that cannot be: its rows are left out, the first of them is told. */
static enum rfl_rc refuse_launch(struct rfl_ncu *n, const char *column, struct rfl_span field,
				 const char *why, struct rfl_err *err)
{
	n->bad = true;
	n->bad_rows = 0;
	return rfl_import_bad_row(n->import, column, err, "'%.*s' %s", RFL_SPAN_ARG(field), why);
}

/* The process of a row. Where one table sums it up and another has its launches, they are two pages
 * of one report. */
static enum rfl_rc find_process(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
				struct rfl_ncu_process **ret, struct rfl_err *err)
{
	struct rfl_span process =
		rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_PROCESS);
	bool summary = n->table.layout == RFL_NCU_SUMMARY;

	n->process = RFL_NCU_UNNUMBERED;
	if (process.len > 0 && !read_integer(process, &n->process))
		return refuse_launch(n, "Process ID", process, "is not the number of a process",
				     err);
	*ret = rfl_ncu__process(n, n->process);
	if (!*ret)
		return rfl_ncu__no_memory(n, err);
	if (!summary && (*ret)->summarized)
		return refuse_launch(n, "Process ID", process,
				     "is a process whose kernels another table of this file sums "
				     "up: take one page of a report",
				     err);
	if (summary && (*ret)->nruns > 0)
		return refuse_launch(n, "Process ID", process,
				     "is a process whose launches another table of this file has: "
				     "take one page of a report",
				     err);
	(*ret)->summarized = summary;
	return RFL_OK;
}

static enum rfl_rc check_numbered(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
				  struct rfl_err *err)
{
	struct rfl_span id = rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_ID);
	struct rfl_ncu_process *p;
	enum rfl_rc rc;

	if (!read_integer(id, &n->id))
		return refuse_launch(n, "ID", id, "is not the number of a launch", err);
	rc = find_process(n, fields, nfields, &p, err);
	if (rc != RFL_OK || n->bad)
		return rc;
	if (rfl_ncu__was_read(p, n->id))
		return refuse_launch(n, "ID", id,
				     "is a launch whose rows were read before: rows of one launch "
				     "stand together, and of a report one page is taken",
				     err);
	return RFL_OK;
}

static enum rfl_rc check_summarized(struct rfl_ncu *n, const struct rfl_span *fields,
				    size_t nfields, struct rfl_err *err)
{
	struct rfl_span times =
		rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_INVOCATIONS);
	struct rfl_span identity = { .at = n->identity.data, .len = n->identity.len };
	struct rfl_span kernel = rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_KERNEL);
	struct rfl_ncu_convention plain = n->convention;
	struct rfl_ncu_number number = rfl_ncu_number_read(&plain, times, true, 0, 0);
	struct rfl_ncu_process *p;
	enum rfl_rc rc = find_process(n, fields, nfields, &p, err);
	int there;

	if (rc != RFL_OK || n->bad)
		return rc;
	if (number.what != RFL_NCU_VALUE || !(number.value >= 1 && number.value < 1e15) ||
	    number.value != (double)(int64_t)number.value)
		return refuse_launch(n, "Invocations", times, "is not a number of launches", err);
	n->invocations = number.value;
	there = rfl_ncu__add_kernel(n, identity);
	if (there < 0)
		return rfl_ncu__no_memory(n, err);
	if (there > 0)
		return refuse_launch(n, "Kernel Name", kernel,
				     "was summed up before: rows of one kernel stand together, "
				     "and of a report one page is taken",
				     err);
	return RFL_OK;
}

/* "8.0" and, on a wide page, the device's name choose the formulas. */
static enum rfl_rc choose_chip(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			       struct rfl_err *err)
{
	struct rfl_span name = { .at = "", .len = 0 };
	char device[128];
	double cc = 0;

	if (n->table.display_name >= 0 && (size_t)n->table.display_name < nfields)
		name = fields[n->table.display_name];
	(void)rfl_span_copy(rfl_span_trim(name), device, sizeof(device));
	if (!rfl_span_number((struct rfl_span){ .at = n->cc, .len = strlen(n->cc) }, &cc) ||
	    !(cc >= 0 && cc < 100))
		cc = 0;
	n->chip = rfl_chip_of_device(device[0] ? device : NULL, (int)lround(10 * cc));
	return rfl_capture_chip(n->builder, n->chip ? n->chip->name : NULL,
				device[0] ? device : NULL, err);
}

static enum rfl_rc look_at_chip(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
				struct rfl_err *err)
{
	struct rfl_span cc = rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_CC);
	struct rfl_span device = rfl_ncu__field(&n->table, fields, nfields, RFL_NCU_COLUMN_DEVICE);
	char text[sizeof(n->cc)], number[sizeof(n->device)];

	(void)rfl_span_copy(rfl_span_trim(cc), text, sizeof(text));
	(void)rfl_span_copy(rfl_span_trim(device), number, sizeof(number));
	if (n->launches > 0 && text[0] != '\0' && strcmp(n->cc, text) != 0)
		n->mixed_cc = true;
	if (n->launches > 0 && number[0] != '\0' && strcmp(n->device, number) != 0)
		n->mixed_device = true;
	if (n->launches > 0 || n->chip_chosen)
		return RFL_OK;
	n->chip_chosen = true;
	memcpy(n->cc, text, sizeof(text));
	memcpy(n->device, number, sizeof(number));
	return choose_chip(n, fields, nfields, err);
}

static enum rfl_rc open_launch(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			       struct rfl_err *err)
{
	const struct rfl_ncu_table *t = &n->table;
	struct rfl_err why; /* not cleared for every launch: it is large */
	enum rfl_rc rc;

	keep_text(&n->kernel, rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_KERNEL));
	keep_text(&n->block, rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_BLOCK));
	keep_text(&n->grid, rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_GRID));
	if (n->kernel.failed || n->block.failed || n->grid.failed)
		return rfl_ncu__no_memory(n, err);
	if (n->kernel.len == 0)
		rfl_buf_puts(&n->kernel,
			     t->layout == RFL_NCU_SUMMARY ? "(all kernels)" : "(no name)");
	why.rc = RFL_OK;
	rc = rfl_capture_begin(n->builder, RFL_RANGE_KERNEL, rfl_buf_str(&n->kernel),
			       n->block.len > 0 ? n->block.data : NULL,
			       n->grid.len > 0 ? n->grid.data : NULL, &why);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, 0, "%s:%zu: %s", rfl_input_name(n->import->in),
				rfl_input_line_number(n->import->in), why.msg);
	n->open = true;
	if (t->layout == RFL_NCU_SUMMARY)
		rfl_capture_launches(n->builder, (int64_t)n->invocations);
	return RFL_OK;
}

enum rfl_rc rfl_ncu__launch(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			    struct rfl_err *err)
{
	enum rfl_rc rc;

	if (is_open_launch(n, fields, nfields))
		return RFL_OK;
	rc = rfl_ncu__close(n, err);
	if (rc != RFL_OK)
		return rc;
	if (!keep_identity(n, fields, nfields))
		return rfl_ncu__no_memory(n, err);
	rc = n->table.layout == RFL_NCU_SUMMARY ? check_summarized(n, fields, nfields, err)
						: check_numbered(n, fields, nfields, err);
	if (rc == RFL_OK && !n->bad)
		rc = look_at_chip(n, fields, nfields, err);
	if (rc == RFL_OK && !n->bad)
		rc = open_launch(n, fields, nfields, err);
	return rc;
}
