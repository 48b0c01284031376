/*
 * ncu_launch.c - which launch a row of ncu's tables is of: by the numbers of process and launch; in
 * a summary by the kernel, its block and grid.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/import/ncu.h"

/* --- launches that are over ------------------------------------------------------------------ */

/* Whether a launch, or a kernel of a summary, is over; it is entered where `add` says so. */
static enum rfl_rc find_seen(struct rfl_ncu *n, struct rfl_ncu_seen one, bool add, bool *found)
{
	uint64_t hash = rfl_hash64(0, &one, sizeof(one));
	uint32_t number;

	*found = false;
	for (size_t at = 0; (number = rfl_places_next(&n->seen_places, hash, &at)) && !*found;)
		*found = n->seen[number - 1].process == one.process &&
			 n->seen[number - 1].id == one.id;
	if (*found || !add)
		return RFL_OK;
	if (rfl_grow(&n->seen, &n->seen_cap, n->nseen + 1, UINT32_MAX - 1, NULL) != RFL_OK ||
	    !rfl_places_put(&n->seen_places, hash, (uint32_t)n->nseen + 1))
		return rfl_import_no_memory(&n->i);
	n->seen[n->nseen++] = one;
	return RFL_OK;
}

enum rfl_rc rfl_ncu__close(struct rfl_ncu *n)
{
	const struct rfl_ncu_seen one = { .process = n->process, .id = (uint64_t)n->id };
	enum rfl_rc rc = RFL_OK;
	bool found;

	if (n->open) {
		rc = rfl_capture_end(n->i.b, n->i.err);
		n->launches++;
		if (rc == RFL_OK && n->table.layout != RFL_NCU_SUMMARY)
			rc = find_seen(n, one, true, &found);
	}
	n->open = n->bad = false;
	return rc;
}

/* --- the launch of a row --------------------------------------------------------------------- */

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

/* Whether the row is of the open launch; else its identity is kept. A summary has no numbers. */
static bool keep_identity(struct rfl_ncu *n)
{
	static const enum rfl_ncu_column numbered[] = { RFL_NCU_PROCESS, RFL_NCU_ID };
	static const enum rfl_ncu_column summarized[] = { RFL_NCU_PROCESS, RFL_NCU_KERNEL,
							  RFL_NCU_BLOCK,   RFL_NCU_GRID,
							  RFL_NCU_DEVICE,  RFL_NCU_CC };
	bool summary = n->table.layout == RFL_NCU_SUMMARY, same = n->open || n->bad;
	const enum rfl_ncu_column *columns = summary ? summarized : numbered;
	size_t ncolumns = summary ? RFL_ARRAY_LEN(summarized) : RFL_ARRAY_LEN(numbered), at = 0;

	for (size_t i = 0; i < ncolumns && same; i++) {
		struct rfl_span f = rfl_ncu__field(n, columns[i]);

		same = at + f.len + 1 <= n->identity.len &&
		       memcmp(n->identity.data + at, f.at, f.len) == 0 &&
		       n->identity.data[at + f.len] == '\n';
		at += f.len + 1;
	}
	if (same && at == n->identity.len)
		return true;
	rfl_buf_reset(&n->identity);
	for (size_t i = 0; i < ncolumns; i++) {
		struct rfl_span f = rfl_ncu__field(n, columns[i]);

		rfl_buf_append(&n->identity, f.at, f.len);
		rfl_buf_putc(&n->identity, '\n');
	}
	return false;
}

/* An invalid launch: its rows are left out, with a warning of the first. */
static enum rfl_rc refuse_launch(struct rfl_ncu *n, const char *column, struct rfl_span field,
				 const char *why)
{
	n->bad = true;
	n->bad_rows = 0;
	return rfl_import_bad_row(&n->i, column, "'%.*s' %s", RFL_SPAN_ARG(field), why);
}

static enum rfl_rc check_launch(struct rfl_ncu *n)
{
	bool summary = n->table.layout == RFL_NCU_SUMMARY, there;
	struct rfl_span id = rfl_ncu__field(n, RFL_NCU_ID);
	struct rfl_span process = rfl_ncu__field(n, RFL_NCU_PROCESS);
	struct rfl_span times = rfl_ncu__field(n, RFL_NCU_INVOCATIONS);
	struct rfl_ncu_convention convention = n->convention; /* this cell decides nothing */
	struct rfl_ncu_number number;
	struct rfl_ncu_process *p;
	struct rfl_ncu_seen one;
	enum rfl_rc rc;

	if (!summary && !read_integer(id, &n->id))
		return refuse_launch(n, "ID", id, "is not the number of a launch");
	/* Where no process is named, the same launch in another table is of another run. */
	n->process = -(int64_t)n->tables;
	if (process.len > 0 && !read_integer(process, &n->process))
		return refuse_launch(n, "Process ID", process, "is not the number of a process");
	for (p = n->processes; p < n->processes + n->nprocesses && p->id != n->process; p++)
		continue;
	if (p == n->processes + n->nprocesses) {
		if (rfl_grow(&n->processes, &n->processes_cap, n->nprocesses + 1, SIZE_MAX, NULL) !=
		    RFL_OK)
			return rfl_import_no_memory(&n->i);
		p = &n->processes[n->nprocesses++];
		*p = (struct rfl_ncu_process){ .id = n->process };
	}
	if (!summary && p->summarized)
		return refuse_launch(n, "Process ID", process,
				     "is a process whose kernels another table of this file sums "
				     "up: take one page of a report");
	if (summary && p->launched)
		return refuse_launch(n, "Process ID", process,
				     "is a process whose launches another table of this file has: "
				     "take one page of a report");
	p->summarized = summary;
	if (!summary) {
		one = (struct rfl_ncu_seen){ .process = n->process, .id = (uint64_t)n->id };
		rc = find_seen(n, one, false, &there);
		if (there)
			return refuse_launch(
				n, "ID", id,
				"is a launch whose rows were read before: rows of one launch "
				"stand together, and of a report one page is taken");
		p->launched = true;
		return rc;
	}
	number = rfl_ncu_number_read(&convention, times, true, 0, 0);
	if (number.what != RFL_NCU_VALUE || !(number.value >= 1 && number.value < 1e15) ||
	    number.value != floor(number.value))
		return refuse_launch(n, "Invocations", times, "is not a number of launches");
	n->invocations = number.value;
	one = (struct rfl_ncu_seen){
		.process = n->process,
		.id = rfl_hash64(0, n->identity.data, n->identity.len),
	};
	rc = find_seen(n, one, true, &there);
	if (rc != RFL_OK || !there)
		return rc;
	return refuse_launch(n, "Kernel Name", rfl_ncu__field(n, RFL_NCU_KERNEL),
			     "was summed up before: rows of one kernel stand together, and of a "
			     "report one page is taken");
}

/* "8.0" and, on a wide page, the device's name choose the formulas: those of the first launch. */
static enum rfl_rc choose_chip(struct rfl_ncu *n)
{
	char cc_text[sizeof(n->cc)], device[sizeof(n->device)], name[128];
	double cc;

	rfl_span_copy(rfl_span_trim(rfl_ncu__field(n, RFL_NCU_CC)), cc_text, sizeof(cc_text));
	rfl_span_copy(rfl_span_trim(rfl_ncu__field(n, RFL_NCU_DEVICE)), device, sizeof(device));
	if (n->launches > 0) {
		n->mixed_cc = n->mixed_cc || (cc_text[0] && strcmp(n->cc, cc_text) != 0);
		n->mixed_device = n->mixed_device || (device[0] && strcmp(n->device, device) != 0);
	}
	if (n->launches > 0 || n->chip_chosen)
		return RFL_OK;
	n->chip_chosen = true;
	memcpy(n->cc, cc_text, sizeof(cc_text));
	memcpy(n->device, device, sizeof(device));
	rfl_span_copy(rfl_import_field(&n->i, n->table.display_name), name, sizeof(name));
	if (!rfl_span_number(rfl_span_of(n->cc), &cc) || !(cc >= 0 && cc < 100))
		cc = 0;
	n->chip = rfl_chip_of_device(name[0] ? name : NULL, (int)lround(10 * cc));
	return rfl_capture_chip(n->i.b, n->chip ? n->chip->name : NULL, name[0] ? name : NULL,
				n->i.err);
}

enum rfl_rc rfl_ncu__launch(struct rfl_ncu *n)
{
	static const enum rfl_ncu_column texts[] = { RFL_NCU_KERNEL, RFL_NCU_BLOCK, RFL_NCU_GRID };
	bool summary = n->table.layout == RFL_NCU_SUMMARY;
	struct rfl_err why; /* not cleared for every launch: it is large */
	enum rfl_rc rc;

	if (keep_identity(n))
		return RFL_OK;
	rc = rfl_ncu__close(n);
	if (rc == RFL_OK && n->identity.failed)
		rc = rfl_import_no_memory(&n->i);
	if (rc == RFL_OK)
		rc = check_launch(n);
	if (rc == RFL_OK && !n->bad)
		rc = choose_chip(n);
	if (rc != RFL_OK || n->bad)
		return rc;
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		struct rfl_span text = rfl_span_trim(rfl_ncu__field(n, texts[i]));

		rfl_buf_reset(&n->text[i]);
		rfl_buf_append(&n->text[i], text.at, text.len);
		if (i == 0 && text.len == 0)
			rfl_buf_puts(&n->text[i], summary ? "(all kernels)" : "(no name)");
		if (n->text[i].failed)
			return rfl_import_no_memory(&n->i);
	}
	why.rc = RFL_OK;
	rc = rfl_capture_begin(n->i.b, RFL_RANGE_KERNEL, n->text[0].data,
			       n->text[1].len > 0 ? n->text[1].data : NULL,
			       n->text[2].len > 0 ? n->text[2].data : NULL, &why);
	if (rc != RFL_OK)
		return rfl_fail(n->i.err, rc, 0, "%s:%zu: %s", n->i.in->name, n->i.in->line,
				why.msg);
	n->open = true;
	if (summary)
		rfl_capture_launches(n->i.b, (int64_t)n->invocations);
	return RFL_OK;
}
