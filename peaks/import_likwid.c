/* import_likwid.c - the output of one or more runs of likwid-bench. It does not name the memory
 * that its arrays are in: bandwidths need --level. */
#include <string.h>

#include "peaks/import.h"

#define LEVEL "DRAM" /* stands for the level that the user gives */

/* The tests "amd_zen_..._fma_add" run additions beside multiply-adds. Loops that only store are no
 * ceiling of programs, which also read. */
static const struct rfl_peaks_name names[] = {
	{ "peakflops", "fp64.scalar" },
	{ "peakflops_fma", "fp64.scalar" },
	{ "peakflops_sp", "fp32.scalar" },
	{ "peakflops_sp_fma", "fp32.scalar" },
	{ "peakflops_amd_*_fma_add", "fp64.vector.fmaadd" },
	{ "peakflops_amd_*", NULL },
	{ "peakflops_sp_*_fma", "fp32.vector" },
	{ "peakflops_sp_*", "fp32.vector.nofma" },
	{ "peakflops_*_fma", "fp64.vector" },
	{ "peakflops_*", "fp64.vector.nofma" },
	{ "load*", LEVEL },
	{ "copy*", LEVEL },
	{ "stream*", LEVEL },
	{ "triad*", LEVEL },
	{ "daxpy*", LEVEL },
	{ "update*", LEVEL },
	{ "sum*", LEVEL },
	{ "ddot*", LEVEL },
	{ NULL, NULL },
};

static bool detect(struct rfl_span head)
{
	return rfl_span_has(head, "LIKWID MICRO BENCHMARK") ||
	       (rfl_span_has(head, "MFlops/s:") && rfl_span_has(head, "MByte/s:"));
}

/* The number after a label at the beginning of a line; `value` is unchanged if it is another line.
 * @return false: not a number */
static bool take(struct rfl_span line, const char *label, double *value)
{
	struct rfl_span word, rest = rfl_span_from(line, strlen(label));

	return !rfl_span_starts(line, label) ||
	       (rfl_span_next_word(&rest, &word) && rfl_span_number(word, value));
}

/* One run of the file. */
struct run {
	char test[64]; /* "": none */
	double threads, size, mflops, mbytes;
};

/* @param size  of the arrays of the first bandwidth in the file; 0: this is the first */
static enum rfl_rc put_run(struct rfl_peaks_import *in, const struct run *run, double *size)
{
	const char *key = rfl_peaks_import_key(in, run->test);

	if (!key || strcmp(key, LEVEL) != 0)
		return rfl_peaks_import_put(in, key, run->test, run->mflops / 1e3,
					    (int)run->threads);
	if (!in->options->level)
		return rfl_fail(in->err, RFL_EINVAL, 0,
				"%s: %s: likwid-bench does not name the memory level of its arrays "
				"(%g bytes); add --level, such as --level DRAM",
				in->name, run->test, run->size);
	if (*size > 0 && !(run->size > *size / 2 && run->size < *size * 2))
		return rfl_peaks_import_refuse(
			in,
			"%s: arrays of %g and %g bytes may be in different memory levels; import "
			"the runs of each level from a file of their own",
			run->test, *size, run->size);
	*size = *size > 0 ? *size : run->size;
	return rfl_peaks_import_put(in, in->options->level, run->test, run->mbytes / 1e3,
				    (int)run->threads);
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	struct rfl_span rest = in->text, line;
	struct run run = { .test = "" };
	double size = 0;
	enum rfl_rc rc = RFL_OK;

	for (size_t number = 1; rc == RFL_OK && rfl_span_next_line(&rest, &line); number++) {
		if (rfl_span_starts(line, "Test: ")) {
			if (*run.test)
				break;
			run = (struct run){ .mflops = -1, .mbytes = -1 };
			rfl_span_copy(rfl_span_trim(rfl_span_from(line, 6)), run.test,
				      sizeof(run.test));
			continue;
		}
		/* "Size:" in version 4 */
		if ((rfl_span_has(line, " threads") && !take(line, "Using ", &run.threads)) ||
		    !take(line, "Size (Byte):", &run.size) || !take(line, "Size:", &run.size) ||
		    !take(line, "MFlops/s:", &run.mflops) || !take(line, "MByte/s:", &run.mbytes))
			rc = rfl_peaks_import_refuse(in, "line %zu: '%.*s' has no valid number",
						     number, RFL_SPAN_ARG(line));
		else if (!rfl_span_starts(line, "MByte/s:"))
			continue;
		else if (!*run.test || run.mflops < 0 || !(run.size > 0) ||
			 !(run.threads >= 1 && run.threads <= 1e6))
			rc = rfl_peaks_import_refuse(
				in,
				"line %zu: '%.*s' without 'Test:', 'Using N threads', 'Size' "
				"and 'MFlops/s:' before it",
				number, RFL_SPAN_ARG(line));
		else
			rc = put_run(in, &run, &size);
		run = (struct run){ .test = "" };
	}
	if (rc == RFL_OK && *run.test)
		rc = rfl_peaks_import_refuse(in, "the run of %s has no rates; the file is cut off",
					     run.test);
	return rc;
}

const struct rfl_peaks_format rfl_peaks_format_likwid = {
	.name = "likwid-bench",
	.tool = "likwid-bench",
	.detect = detect,
	.read = read_file,
	.names = names,
};
