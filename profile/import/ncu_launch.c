/*
 * ncu_launch.c - which launch a row of ncu's tables is of: by the numbers of process and launch; in
 * a summary by the kernel, its block and grid. None comes twice, in another table either: two pages
 * of one report would count everything twice. Numbers that are over are kept as runs, so that
 * memory does not grow with their count.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/import/ncu.h"

#define RUNS_MAX 65536 /* of a process: beyond it nothing is looked for */

/* --- launches that are over ------------------------------------------------------------------ */

/* The process of that number; a new one is made. NULL: out of memory. Valid until the next call. */
static struct rfl_ncu_process *process_of(struct rfl_ncu *n, int64_t id)
{
	for (size_t i = n->nprocesses; i-- > 0;)
		if (n->processes[i].id == id)
			return &n->processes[i];
	if (rfl_grow(&n->processes, &n->processes_cap, n->nprocesses + 1, SIZE_MAX, NULL) != RFL_OK)
		return NULL;
	n->processes[n->nprocesses] = (struct rfl_ncu_process){ .id = id };
	return &n->processes[n->nprocesses++];
}

/* The first run that ends at `id` or after it. */
static size_t find_run(const struct rfl_ncu_process *p, int64_t id)
{
	size_t low = 0, high = p->nruns;

	if (high > 0 && p->runs[high - 1].last < id)
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->runs[mid].last < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* False: out of memory. */
static bool mark_read(struct rfl_ncu_process *p, int64_t id)
{
	size_t i = find_run(p, id);
	struct rfl_ncu_run *after = p->runs + i;
	bool joins_before = i > 0 && after[-1].last == id - 1;
	bool joins_after = i < p->nruns && after->first == id + 1;

	if (joins_before && joins_after) {
		after[-1].last = after->last;
		p->nruns--;
		memmove(after, after + 1, (p->nruns - i) * sizeof(*after));
	} else if (joins_before) {
		after[-1].last = id;
	} else if (joins_after) {
		after->first = id;
	} else if (p->nruns < RUNS_MAX) {
		if (rfl_grow(&p->runs, &p->cap, p->nruns + 1, SIZE_MAX, NULL) != RFL_OK)
			return false;
		memmove(p->runs + i + 1, p->runs + i, (p->nruns - i) * sizeof(*p->runs));
		p->runs[i] = (struct rfl_ncu_run){ .first = id, .last = id };
		p->nruns++;
	}
	return true;
}

/* A kernel of a summary. @param there  set to whether it was there already */
static enum rfl_rc add_kernel(struct rfl_ncu *n, bool *there, struct rfl_err *err)
{
	/* Where no process is named the same kernel in another table is of another run. */
	uint64_t seed = n->process == RFL_NCU_UNNUMBERED ? n->tables : 0;
	uint64_t hash = rfl_hash64(seed, n->identity.data, n->identity.len) | 1;
	size_t cap = n->kernels_cap, at;

	if (2 * (n->nkernels + 1) > cap) {
		uint64_t *kernels = rfl_alloc_array(cap ? 2 * cap : 64, sizeof(*kernels));

		if (!kernels)
			return rfl_import_no_memory(&n->i, err);
		n->kernels_cap = cap ? 2 * cap : 64;
		for (size_t i = 0; i < cap; i++) {
			for (at = n->kernels[i] & (n->kernels_cap - 1); kernels[at] != 0;
			     at = (at + 1) & (n->kernels_cap - 1))
				continue;
			kernels[at] = n->kernels[i];
		}
		free(n->kernels);
		n->kernels = kernels;
	}
	for (at = hash & (n->kernels_cap - 1); n->kernels[at] != 0 && n->kernels[at] != hash;
	     at = (at + 1) & (n->kernels_cap - 1))
		continue;
	*there = n->kernels[at] == hash;
	n->nkernels += !*there;
	n->kernels[at] = hash;
	return RFL_OK;
}

void rfl_ncu__forget_unnumbered(struct rfl_ncu *n)
{
	for (size_t i = 0; i < n->nprocesses; i++)
		if (n->processes[i].id == RFL_NCU_UNNUMBERED) {
			n->processes[i].nruns = 0;
			n->processes[i].summarized = false;
		}
}

void rfl_ncu__launches_fini(struct rfl_ncu *n)
{
	for (size_t i = 0; i < n->nprocesses; i++)
		free(n->processes[i].runs);
	free(n->processes);
	free(n->kernels);
}

enum rfl_rc rfl_ncu__close(struct rfl_ncu *n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	struct rfl_ncu_process *p;

	if (n->open) {
		rc = rfl_capture_end(n->i.b, err);
		n->launches++;
	}
	if (rc == RFL_OK && n->open && n->table.layout != RFL_NCU_SUMMARY) {
		p = process_of(n, n->process);
		if (!p || !mark_read(p, n->id))
			rc = rfl_import_no_memory(&n->i, err);
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
				 const char *why, struct rfl_err *err)
{
	n->bad = true;
	n->bad_rows = 0;
	return rfl_import_bad_row(&n->i, column, err, "'%.*s' %s", RFL_SPAN_ARG(field), why);
}

static enum rfl_rc check_launch(struct rfl_ncu *n, struct rfl_err *err)
{
	bool summary = n->table.layout == RFL_NCU_SUMMARY, there = false;
	struct rfl_span id = rfl_ncu__field(n, RFL_NCU_ID);
	struct rfl_span process = rfl_ncu__field(n, RFL_NCU_PROCESS);
	struct rfl_span times = rfl_ncu__field(n, RFL_NCU_INVOCATIONS);
	struct rfl_ncu_convention convention = n->convention; /* this cell decides nothing */
	struct rfl_ncu_number number;
	struct rfl_ncu_process *p;
	size_t run;
	enum rfl_rc rc;

	if (!summary && !read_integer(id, &n->id))
		return refuse_launch(n, "ID", id, "is not the number of a launch", err);
	n->process = RFL_NCU_UNNUMBERED;
	if (process.len > 0 && !read_integer(process, &n->process))
		return refuse_launch(n, "Process ID", process, "is not the number of a process",
				     err);
	p = process_of(n, n->process);
	if (!p)
		return rfl_import_no_memory(&n->i, err);
	/* Where one table sums a process up and another has its launches, they are two pages of one
	 * report. */
	if (!summary && p->summarized)
		return refuse_launch(n, "Process ID", process,
				     "is a process whose kernels another table of this file sums "
				     "up: take one page of a report",
				     err);
	if (summary && p->nruns > 0)
		return refuse_launch(n, "Process ID", process,
				     "is a process whose launches another table of this file has: "
				     "take one page of a report",
				     err);
	p->summarized = summary;
	if (!summary) {
		run = find_run(p, n->id);
		if (run == p->nruns || p->runs[run].first > n->id)
			return RFL_OK;
		return refuse_launch(n, "ID", id,
				     "is a launch whose rows were read before: rows of one launch "
				     "stand together, and of a report one page is taken",
				     err);
	}
	number = rfl_ncu_number_read(&convention, times, true, 0, 0);
	if (number.what != RFL_NCU_VALUE || !(number.value >= 1 && number.value < 1e15) ||
	    number.value != floor(number.value))
		return refuse_launch(n, "Invocations", times, "is not a number of launches", err);
	n->invocations = number.value;
	rc = add_kernel(n, &there, err);
	if (rc != RFL_OK || !there)
		return rc;
	return refuse_launch(n, "Kernel Name", rfl_ncu__field(n, RFL_NCU_KERNEL),
			     "was summed up before: rows of one kernel stand together, and of a "
			     "report one page is taken",
			     err);
}

/* "8.0" and, on a wide page, the device's name choose the formulas: those of the first launch. */
static enum rfl_rc choose_chip(struct rfl_ncu *n, struct rfl_err *err)
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
	return rfl_capture_chip(n->i.b, n->chip ? n->chip->name : NULL, name[0] ? name : NULL, err);
}

enum rfl_rc rfl_ncu__launch(struct rfl_ncu *n, struct rfl_err *err)
{
	static const enum rfl_ncu_column texts[] = { RFL_NCU_KERNEL, RFL_NCU_BLOCK, RFL_NCU_GRID };
	bool summary = n->table.layout == RFL_NCU_SUMMARY;
	struct rfl_err why; /* not cleared for every launch: it is large */
	enum rfl_rc rc;

	if (keep_identity(n))
		return RFL_OK;
	rc = rfl_ncu__close(n, err);
	if (rc != RFL_OK)
		return rc;
	if (n->identity.failed)
		return rfl_import_no_memory(&n->i, err);
	rc = check_launch(n, err);
	if (rc == RFL_OK && !n->bad)
		rc = choose_chip(n, err);
	if (rc != RFL_OK || n->bad)
		return rc;
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		struct rfl_span text = rfl_span_trim(rfl_ncu__field(n, texts[i]));

		rfl_buf_reset(&n->text[i]);
		rfl_buf_append(&n->text[i], text.at, text.len);
		if (i == 0 && text.len == 0)
			rfl_buf_puts(&n->text[i], summary ? "(all kernels)" : "(no name)");
		if (n->text[i].failed)
			return rfl_import_no_memory(&n->i, err);
	}
	why.rc = RFL_OK;
	rc = rfl_capture_begin(n->i.b, RFL_RANGE_KERNEL, n->text[0].data,
			       n->text[1].len > 0 ? n->text[1].data : NULL,
			       n->text[2].len > 0 ? n->text[2].data : NULL, &why);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, 0, "%s:%zu: %s", n->i.in->name, n->i.in->line, why.msg);
	n->open = true;
	if (summary)
		rfl_capture_launches(n->i.b, (int64_t)n->invocations);
	return RFL_OK;
}
