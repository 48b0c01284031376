/*
 * counters_show.c - roofline counters show: what counters.csv holds, for people and programs.
 */
#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/put.h"
#include "report/captures.h"
#include "profile/capture.h"

struct show_args {
	struct rfl_opt_list operands, labels;
	int format, by;
	int64_t kernels;
	bool explain;
};

static const struct rfl_opt opts[] = {
	{ .name = "label",
	  .meta = "L",
	  .kind = RFL_OPT_LIST,
	  .offset = offsetof(struct show_args, labels),
	  .help = "only the captures of these runs" },
	{ .name = "by",
	  .meta = "WHAT",
	  .kind = RFL_OPT_CHOICE,
	  .offset = offsetof(struct show_args, by),
	  .choices = rfl_capture_by_names,
	  .def = "kernel",
	  .help = "one row per kernel, per range (a kernel's block and grid, a phase, a layer), or "
		  "per metric" },
	{ .name = "kernels",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = offsetof(struct show_args, kernels),
	  .def = "20",
	  .min = 0,
	  .max = -1,
	  .help = "rows of a table, those that take the longest; 0: all" },
	{ .name = "explain",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct show_args, explain),
	  .help = "the rule of each figure, the metrics that went in, and what is missing for "
		  "the others" },
	RFL_OPT_FORMAT_ROW(offsetof(struct show_args, format)),
	{ .name = NULL },
};

static bool is_wanted(const struct rfl_opt_list *labels, const char *label)
{
	for (size_t i = 0; i < labels->n; i++)
		if (strcmp(labels->items[i], label) == 0)
			return true;
	return labels->n == 0;
}

/* The captures of some labels, borrowed: `ret->captures` is freed by the caller. */
static enum rfl_rc choose(const struct rfl_captures *all, const struct rfl_opt_list *labels,
			  struct rfl_captures *ret, struct rfl_err *err)
{
	ret->captures = rfl_alloc_array(all->n, sizeof(*ret->captures));
	if (!ret->captures)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for captures");
	for (size_t i = 0; i < all->n; i++)
		if (is_wanted(labels, all->captures[i]->label))
			ret->captures[ret->n++] = all->captures[i];
	if (ret->n > 0)
		return RFL_OK;
	if (all->n == 0)
		return rfl_fail(err, RFL_EMISSING, 0, "the files hold no captures");
	return rfl_fail(err, RFL_ENOTFOUND, 0,
			"no capture has the label '%s'; the first of %zu has '%s'",
			labels->items[0], all->n, all->captures[0]->label);
}

static enum rfl_rc show(struct rfl_cli *cli, const struct show_args *a,
			const struct rfl_captures *captures, struct rfl_err *err)
{
	const struct rfl_capture_view view = {
		.format = (enum rfl_format)a->format,
		.by = (enum rfl_capture_by)a->by,
		.most = (size_t)a->kernels,
		.explain = a->explain,
	};
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, (size_t)1 << 30);
	rc = rfl_captures_render(captures, &view, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, view.format, &out, "counters", err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct show_args *a = args;
	struct rfl_captures all, chosen = { 0 };
	enum rfl_rc rc = RFL_OK;

	rfl_captures_init(&all);
	for (size_t i = 0; i < a->operands.n && rc == RFL_OK; i++) {
		const char *path = a->operands.items[i];

		rc = rfl_cli_need_file(path, "roofline counters import FILE --output FILE", err);
		if (rc == RFL_OK)
			rc = rfl_counters_load(path, NULL, 0, &all, err);
	}
	if (rc == RFL_OK)
		rc = choose(&all, &a->labels, &chosen, err);
	if (rc == RFL_OK)
		rc = show(cli, a, &chosen, err);
	free(chosen.captures);
	rfl_captures_fini(&all);
	return rc;
}

const struct rfl_cmd rfl_cmd_counters_show = {
	.name = "counters show",
	.summary = "what a counters.csv holds: kernels, traffic, FLOPs, and what is not known",
	.operands = "FILE.csv...",
	.description =
		"Shows the captures of counters.csv: kernels by time with their FLOPs, DRAM bytes, "
		"intensity and rates, the totals, kernels without FLOPs, and what could not be "
		"counted. Files of other profilers are shown by 'roofline counters import', which "
		"also makes a counters.csv of them.",
	.example = "roofline counters show logs/counters.csv --kernels 5\n"
		   "roofline counters show logs/counters.csv --explain",
	.opts = opts,
	.args_size = sizeof(struct show_args),
	.operands_offset = offsetof(struct show_args, operands),
	.run = run,
};
