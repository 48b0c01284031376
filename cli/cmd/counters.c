/* counters.c - roofline counters import and show: read and show the files of profilers. */
#include "cli/cmd.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "report/captures.h"
#include "profile/capture.h"
#include "profile/import/importer.h"

#define WARNINGS_SHOWN 20

/* Arguments of both commands. */
struct counters_args {
	struct rfl_opt_list files, labels;
	const char *from, *label, *output;
	int format, by;
	int64_t kernels, steps;
	bool keep_going, strict, all_metrics, explain, compare;
};

#define OPT(kind, member, ...) RFL_OPT(struct counters_args, kind, member, __VA_ARGS__)
#define OPT_COMPARE                                                                      \
	OPT(FLAG, compare, .name = "compare", .often = true,                             \
	    .help = "compare the times of two captures, by operator or kernel, largest " \
		    "difference "                                                        \
		    "first")

static const struct rfl_opt import_opts[] = {
	OPT(TEXT, from, .name = "from", .often = true, .meta = "KIND",
	    .help = "kind of the files; see 'roofline list importers'; default: detected from the "
		    "content"),
	OPT(TEXT, label, .name = "label", .often = true, .meta = "LABEL",
	    .help = "label of the profiled run; default: the file name without directory and "
		    "suffix"),
	OPT(INT, steps, .name = "steps", .often = true, .meta = "N", .min = 1, .max = -1,
	    .help = "number of training steps in each file, including profiled warm-up steps; "
		    "'roofline points' divides by it"),
	OPT(TEXT, output, RFL_OPT_OUTPUT,
	    .help = "counters.csv file to which the captures are added"),
	OPT(CHOICE, by, .name = "by", .often = true, .meta = "WHAT",
	    .choices = rfl_capture_by_names, .def = "kernel",
	    .help = "content of each row: a kernel, a range (a kernel with its block and grid), or "
		    "a metric"),
	OPT(INT, kernels, .name = "kernels", .often = true, .meta = "N", .min = 0, .max = -1,
	    .def = "20", .help = "number of rows to show, longest first; 0: all"),
	OPT(FLAG, keep_going, .name = "keep-going", .often = true,
	    .help = "skip files and rows that cannot be read, and report their number"),
	OPT(FLAG, strict, .name = "strict", .help = "reject values that the profiler has rounded"),
	OPT(FLAG, all_metrics, .name = "all-metrics",
	    .help = "also keep metrics that no formula uses"),
	OPT_COMPARE,
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static enum rfl_rc put_captures(struct rfl_cli *cli, const struct counters_args *a,
				const struct rfl_captures *captures, struct rfl_err *err)
{
	const struct rfl_capture_view view = { .format = (enum rfl_format)a->format,
					       .by = (enum rfl_capture_by)a->by,
					       .most = (size_t)a->kernels,
					       .explain = a->explain };
	RFL_AUTO(buf) out = { .max = (size_t)1 << 30 };

	if (a->compare && captures->n != 2)
		return rfl_usage(
			err,
			"--compare: needs two captures, not %zu; name two files, or select "
			"two runs with --label",
			captures->n);
	if (a->compare)
		rfl_captures_compare(captures, &view, &out);
	else
		rfl_captures_render(captures, &view, &out);
	return rfl_cli_put_as(cli, view.format, &out, "captures", err);
}

/* Limit the number of warnings: a file may have a million invalid rows. */
static void warn(const char *line, void *ctx)
{
	size_t *n = ctx;

	if ((*n)++ < WARNINGS_SHOWN)
		rfl_log(RFL_LOG_WARN, "%s", line);
}

/* Find out whether a capture has FLOPs and whether it has bytes. */
static void look_at(const struct rfl_capture *c, bool *flops, bool *bytes)
{
	*flops = *bytes = false;
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		if (isnan(c->total[q].value))
			continue;
		*flops = *flops || rfl_quantity_is_flops(q) || q == RFL_QUANTITY_FLOPS;
		*bytes = *bytes || strcmp(rfl_quantity_info(q)->unit, "byte") == 0;
	}
}

/* Whether captures with the same label cannot belong to the same run. Two files can if they
 * complement each other (FLOPs and bytes, or times and counts); two captures of 'roofline run'
 * cannot. Processes in the same file share its label. */
static bool clash(const struct rfl_capture *a, const struct rfl_capture *b)
{
	bool a_flops, a_bytes, b_flops, b_bytes;

	if (!rfl_text_same(a->label, b->label) || !rfl_text_same(a->run_id, b->run_id))
		return false;
	if (!a->path || !b->path)
		return !a->path && !b->path;
	look_at(a, &a_flops, &a_bytes);
	look_at(b, &b_flops, &b_bytes);
	return (a_flops && b_flops) || (a_bytes && b_bytes) ||
	       !(a_flops || a_bytes || b_flops || b_bytes);
}

/* @param ends number of captures read up to and including each operand */
static enum rfl_rc check_labels(const struct rfl_captures *c, const size_t *ends,
				struct rfl_err *err)
{
	for (size_t i = 0, operand = 0; i < c->n; i++) {
		while (ends[operand] <= i)
			operand++;
		for (size_t j = i + 1; j < c->n; j++) {
			const struct rfl_capture *a = c->captures[i], *b = c->captures[j];

			if (rfl_text_same(a->path, b->path) && a->path && j >= ends[operand])
				return rfl_usage(err, "%s: named twice; name it once", a->path);
			if (rfl_text_same(a->path, b->path) || !clash(a, b))
				continue;
			return rfl_fail(
				err, RFL_EFORMAT, 0,
				"%s and %s both have the label '%s'; import them separately with "
				"different --label values, or rename the files after their runs",
				a->path, b->path, a->label);
		}
	}
	return RFL_OK;
}

/* Reject captures that conflict with those in the output file. */
static enum rfl_rc check_output(const char *path, const struct rfl_captures *c, struct rfl_err *err)
{
	static const char live[] = "a run with --counters";
	RFL_AUTO(captures) there = { .n = 0 };
	enum rfl_rc rc = RFL_OK;

	if (rfl_file_size(path) > 0)
		rc = rfl_counters_load(path, NULL, 0, &there, err);
	for (size_t i = 0; rc == RFL_OK && i < there.n; i++)
		for (size_t j = 0; j < c->n; j++) {
			const struct rfl_capture *old = there.captures[i], *new = c->captures[j];

			if (!clash(old, new))
				continue;
			if (new->path && rfl_text_same(old->path, new->path))
				return rfl_fail(
					err, RFL_EFORMAT, 0,
					"%s: %s was already imported, with the label '%s'; to "
					"read it again, delete %s or use another --output",
					path, new->path, new->label, path);
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: the label '%s' is already used by %s; to add "
					"%s, use another --label or --output",
					path, new->label, old->path ? old->path : live,
					new->path ? new->path : live);
		}
	return rc;
}

/* With --keep-going, skip files that cannot be read, with a warning. */
static enum rfl_rc read_all(const struct rfl_opt_list *files,
			    const struct rfl_import_options *options, struct rfl_captures *to,
			    size_t *ends, size_t *left_out, struct rfl_err *err)
{
	struct rfl_err first = RFL_ERR_INIT;

	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->items[i];
		struct rfl_err why = RFL_ERR_INIT;
		enum rfl_rc rc = strcmp(path, "-") != 0 && rfl_dir_exists(path)
					 ? rfl_import_dir(path, options, to, &why)
					 : rfl_import_file(path, options, to, &why);

		if (rc == RFL_OK)
			rc = rfl_import_join_passes(to, options, &why);
		ends[i] = to->n;
		if (rc == RFL_OK)
			continue;
		if (!options->keep_going || files->n == 1)
			return rfl_fail(err, rc, why.native, "%s%s", why.msg,
					files->n > 1 ? "; use --keep-going to skip it" : "");
		warn(why.msg, options->ctx);
		++*left_out;
		if (first.rc == RFL_OK)
			first = why;
	}
	if (to->n == 0)
		return rfl_fail(err, first.rc == RFL_OK ? RFL_EFAILED : first.rc, 0,
				"no file could be read: %s", first.msg);
	return RFL_OK;
}

static enum rfl_rc import_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct counters_args *a = args;
	size_t warnings = 0, files_left_out = 0;
	size_t *ends = rfl_arena_array(cli->arena, a->files.n, sizeof(*ends));
	const struct rfl_import_options options = { .from = a->from,
						    .label = a->label,
						    .steps = a->steps,
						    .keep_going = a->keep_going,
						    .strict = a->strict,
						    .all_metrics = a->all_metrics,
						    .warn = warn,
						    .ctx = &warnings };
	RFL_AUTO(captures) captures = { .n = 0 };
	int64_t rows = 0;
	enum rfl_rc rc;

	/* Standard input has no file name from which to derive a label. */
	if (a->output && !a->label && rfl_opt_list_has(&a->files, "-"))
		return rfl_usage(err, "--output: standard input has no name; use --label");
	if (a->from && !rfl_importer_find(a->from, err))
		return rfl_usage_of("--from", err);
	rc = read_all(&a->files, &options, &captures, ends, &files_left_out, err);
	if (warnings > WARNINGS_SHOWN)
		rfl_log(RFL_LOG_WARN, "%zu more such warnings", warnings - WARNINGS_SHOWN);
	for (size_t i = 0; i < captures.n; i++)
		rows += captures.captures[i]->rows_left_out;
	if (rows > 0)
		rfl_log(RFL_LOG_WARN, "%" PRId64 " row%s skipped", rows,
			rows == 1 ? " was" : "s were");
	if (files_left_out > 0)
		rfl_log(RFL_LOG_WARN, "%zu file%s skipped", files_left_out,
			files_left_out == 1 ? " was" : "s were");
	if (rc || (rc = check_labels(&captures, ends, err)))
		return rc;
	if (a->output) {
		if ((rc = check_output(a->output, &captures, err)) ||
		    (rc = rfl_file_mkdirs_for(a->output, err)) ||
		    (rc = rfl_counters_append(a->output, &captures, err)))
			return rc;
		rfl_log(RFL_LOG_INFO, "added %zu capture%s to %s", captures.n,
			captures.n == 1 ? "" : "s", a->output);
	}
	return put_captures(cli, a, &captures, err);
}

const struct rfl_cmd rfl_cmd_counters_import = {
	.name = "counters import",
	.summary = "read FLOPs, bytes and times from the files of other profilers",
	.operands = "FILE|DIR...",
	.description =
		"Reads the output of ncu, nvprof, nsys, rocprof, perf stat, time, likwid-perfctr "
		"and torch.profiler, gzipped or not; '-' is standard input. The kind of a file is "
		"detected from its "
		"content. A value that a file does not contain is reported as unavailable, with "
		"the reason, never as 0; this is not an error.\n\nThe label of a file is given "
		"by --label, or is the file name without directory and suffix; the file belongs to "
		"the run with the same label. Two files with the same label must complement each "
		"other (for example, one has the FLOPs and the other the bytes); otherwise they "
		"are rejected. Without --output, nothing is written. Captures that are already in "
		"the output file are kept.",
	.example = "roofline counters import a100_resnet50_fp32_bs64_prof.csv\n"
		   "roofline counters import profiles/ --keep-going --output logs/counters.csv\n"
		   "roofline counters import before.json after.json --compare\n"
		   "ncu --csv --page raw --print-units base --import run.ncu-rep | roofline "
		   "counters import - --label a100_resnet50_fp32_bs64_run1 --format json",
	.opts = import_opts,
	.args_size = sizeof(struct counters_args),
	.run = import_run,
};

static const struct rfl_opt show_opts[] = {
	OPT(LIST, labels, .name = "label", .meta = "L", .help = "labels of the runs to show"),
	OPT(CHOICE, by, .name = "by", .meta = "WHAT", .choices = rfl_capture_by_names,
	    .def = "kernel",
	    .help = "content of each row: a kernel, a range (a kernel with its block and grid, a "
		    "phase, a layer), or a metric"),
	OPT(INT, kernels, .name = "kernels", .meta = "N", .def = "20", .min = 0, .max = -1,
	    .help = "number of rows to show, longest first; 0: all"),
	OPT(FLAG, explain, .name = "explain",
	    .help = "show the formula and metrics of each value, and which metrics the unavailable "
		    "values lack"),
	OPT_COMPARE,
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static enum rfl_rc show_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct counters_args *a = args;
	RFL_AUTO(captures) all = { .n = 0 };
	struct rfl_captures chosen = { .n = 0 }; /* borrows from `all` */
	enum rfl_rc rc;

	for (size_t i = 0; i < a->files.n; i++)
		if ((rc = rfl_cli_need_file(a->files.items[i],
					    "roofline counters import FILE --output FILE", err)) ||
		    (rc = rfl_counters_load(a->files.items[i], NULL, 0, &all, err)))
			return rc;
	chosen.captures = rfl_arena_array(cli->arena, all.n, sizeof(*chosen.captures));
	for (size_t i = 0; i < all.n; i++)
		if (a->labels.n == 0 || rfl_opt_list_has(&a->labels, all.captures[i]->label))
			chosen.captures[chosen.n++] = all.captures[i];
	if (all.n == 0)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"no captures in the files; add some with 'roofline counters import'");
	if (chosen.n == 0)
		return rfl_fail(err, RFL_ENOTFOUND, 0,
				"no capture has the label '%s' (captures: %zu); use another one, "
				"such as '%s'",
				a->labels.items[0], all.n, all.captures[0]->label);
	return put_captures(cli, a, &chosen, err);
}

const struct rfl_cmd rfl_cmd_counters_show = {
	.name = "counters show",
	.summary = "show the contents of a counters.csv file: kernels, traffic, FLOPs",
	.operands = "FILE.csv...",
	.description = "Shows the captures in a counters.csv file: kernels ordered by time with "
		       "their FLOPs, DRAM bytes, arithmetic intensity and rates; the totals; "
		       "kernels without FLOPs; and values that could not be counted. To show the "
		       "files of other profilers, use 'roofline counters import'.",
	.example = "roofline counters show logs/counters.csv --kernels 5\n"
		   "roofline counters show logs/counters.csv --explain",
	.opts = show_opts,
	.args_size = sizeof(struct counters_args),
	.run = show_run,
};
