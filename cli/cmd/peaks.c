/*
 * peaks.c - roofline peaks show, check, set: what is in a peaks file, whether to believe it,
 * and a ceiling given by hand.
 */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/put.h"
#include "peaks/check.h"
#include "peaks/edit.h"
#include "peaks/peaks.h"

/* --- show --- */

struct show_args {
	struct rfl_opt_list operands, env;
	int format;
};

static const struct rfl_opt show_opts[] = {
	{ .name = "env",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = offsetof(struct show_args, env),
	  .help = "only these environments" },
	RFL_OPT_FORMAT_ROW(offsetof(struct show_args, format)),
	{ .name = NULL },
};

static const struct rfl_column show_columns[] = {
	{ .key = "env", .title = "Environment", .kind = RFL_COLUMN_TEXT },
	{ .key = "cell", .title = "Cell", .kind = RFL_COLUMN_TEXT },
	{ .key = "value", .title = "Value", .kind = RFL_COLUMN_REAL, .digits = 5 },
	{ .key = "unit", .title = "Unit", .kind = RFL_COLUMN_TEXT },
	{ .key = "knee_flop_per_byte",
	  .title = "Knee FLOP/B",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 4 },
	{ .key = "status", .title = "Status", .kind = RFL_COLUMN_TEXT },
	{ .key = "max_over_median", .title = "Max/median", .kind = RFL_COLUMN_REAL, .digits = 3 },
	{ .key = "from", .title = "From", .kind = RFL_COLUMN_TEXT },
};

/* Where a ceiling comes from, or why there is none. */
static const char *origin(const struct rfl_peak *p)
{
	if (p->reason)
		return p->reason;
	if (p->kernel)
		return p->kernel;
	return p->source ? p->source : "";
}

static void show_row(struct rfl_table *t, const struct rfl_peaks_env *env, const char *cell,
		     const struct rfl_peak *p, const char *unit, double knee)
{
	rfl_table_text(t, env->name);
	rfl_table_text(t, cell);
	rfl_table_real(t, p->value / 1e9);
	rfl_table_text(t, unit);
	rfl_table_real(t, knee);
	rfl_table_text(t, rfl_peak_status_name(p->status));
	rfl_table_real(t, p->stats.n > 0 ? p->stats.max / p->stats.median : (double)NAN);
	rfl_table_text(t, origin(p));
}

static void show_env(struct rfl_table *t, const struct rfl_peaks_env *env)
{
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	const double bandwidth = dram && rfl_peak_usable(dram) ? dram->value : (double)NAN;

	for (size_t i = 0; i < env->ncompute; i++) {
		const struct rfl_peak_compute *c = &env->compute[i];
		/* one core does not have the whole machine's bandwidth */
		const bool one_core = strstr(c->key, ".1core");

		show_row(t, env, c->cell, &c->peak, "GFLOP/s",
			 one_core ? (double)NAN : c->peak.value / bandwidth);
	}
	for (size_t i = 0; i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];
		const bool core = strcmp(l->scope, "core") == 0;

		show_row(t, env, l->cell, &l->peak, core ? "GB/s per core" : "GB/s", (double)NAN);
	}
}

static bool wanted(const struct rfl_opt_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->items[i], name) == 0)
			return true;
	}
	return list->n == 0;
}

static enum rfl_rc show_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct show_args *a = args;
	struct rfl_peaks *peaks = NULL;
	struct rfl_table *t = NULL;
	const char *path = a->operands.items[0];
	enum rfl_rc rc =
		rfl_cli_need_file(path, "roofline peaks measure --env NAME --output FILE", err);

	if (rc == RFL_OK)
		rc = rfl_peaks_load(path, &peaks, err);
	for (size_t i = 0; rc == RFL_OK && i < a->env.n; i++) {
		if (!rfl_peaks_find(peaks, a->env.items[i]))
			rc = rfl_fail(err, RFL_ENOTFOUND, 0, "%s has no environment '%s'", path,
				      a->env.items[i]);
	}
	if (rc != RFL_OK)
		goto done;
	t = rfl_table_new(show_columns, RFL_ARRAY_LEN(show_columns));
	if (!t) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the table");
		goto done;
	}
	for (size_t i = 0; i < peaks->nenvs; i++) {
		if (wanted(&a->env, peaks->envs[i].name))
			show_env(t, &peaks->envs[i]);
	}
	rfl_table_note(t,
		       "Knee: where the compute ceiling meets the DRAM bandwidth. Below it memory "
		       "limits, above it arithmetic.");
	rc = rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
done:
	rfl_table_free(t);
	rfl_peaks_free(peaks);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_show = {
	.name = "peaks show",
	.summary = "print the ceilings of a peaks file, with the knee of each precision",
	.operands = "FILE",
	.example = "roofline peaks show peaks.json --env lab_cpu",
	.opts = show_opts,
	.args_size = sizeof(struct show_args),
	.operands_offset = offsetof(struct show_args, operands),
	.run = show_run,
};

/* --- check --- */

struct check_args {
	struct rfl_opt_list operands;
	bool strict;
};

static const struct rfl_opt check_opts[] = {
	{ .name = "strict",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct check_args, strict),
	  .help = "a doubt is a failure: exit code 1" },
	{ .name = NULL },
};

static void print_doubt(const char *env, const char *cell, const char *text, void *ctx)
{
	struct rfl_cli *cli = ctx;

	rfl_cli_printf(cli, "%s: %s: %s\n", env, cell, text);
}

static enum rfl_rc check_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct check_args *a = args;
	struct rfl_peaks *peaks = NULL;
	char today[RFL_TIME_ISO_SIZE];
	const char *path = a->operands.items[0];
	size_t doubts;
	enum rfl_rc rc =
		rfl_cli_need_file(path, "roofline peaks measure --env NAME --output FILE", err);

	if (rc == RFL_OK)
		rc = rfl_peaks_load(path, &peaks, err);
	if (rc != RFL_OK)
		return rc;
	rfl_clock_iso(today);
	doubts = rfl_peaks_check(peaks, today, print_doubt, cli);
	rfl_cli_printf(cli, "%s: %zu environment%s, the format is right, %zu doubt%s\n", path,
		       peaks->nenvs, peaks->nenvs == 1 ? "" : "s", doubts, doubts == 1 ? "" : "s");
	rfl_peaks_free(peaks);
	return a->strict && doubts > 0 ? RFL_EFAILED : RFL_OK;
}

const struct rfl_cmd rfl_cmd_peaks_check = {
	.name = "peaks check",
	.summary = "check the format of a peaks file and name what is doubtful in it",
	.operands = "FILE",
	.description =
		"A wrong format is exit code 1, with the JSON path. Doubts are cache levels out of "
		"order, measurements far from the data sheet, unsteady or old ones; they do not "
		"change "
		"the exit code unless --strict is given.",
	.example = "roofline peaks check peaks.json",
	.opts = check_opts,
	.args_size = sizeof(struct check_args),
	.operands_offset = offsetof(struct check_args, operands),
	.run = check_run,
};

/* --- set --- */

struct set_args {
	struct rfl_opt_list operands;
	const char *source, *device;
	int kind;
};

static const char *const kinds[] = { "cpu", "gpu", NULL };

static const struct rfl_opt set_opts[] = {
	{ .name = "source",
	  .meta = "TEXT",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct set_args, source),
	  .required = true,
	  .help = "where the value is from, for example a data sheet's title" },
	{ .name = "kind",
	  .meta = "KIND",
	  .kind = RFL_OPT_CHOICE,
	  .offset = offsetof(struct set_args, kind),
	  .choices = kinds,
	  .def = "cpu",
	  .help = "of an environment that is new" },
	{ .name = "device",
	  .meta = "NAME",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct set_args, device),
	  .help = "of an environment that is new: the device as its driver names it" },
	{ .name = NULL },
};

/* What goes into the file must be what JSON can hold. */
static enum rfl_rc check_text(const char *option, const char *text, struct rfl_err *err)
{
	json_t *string = text ? json_string(text) : NULL;

	if (text && !string)
		return rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not UTF-8 text", option, text);
	json_decref(string);
	return RFL_OK;
}

static enum rfl_rc set_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct set_args *a = args;
	const char *const *word = a->operands.items;
	struct rfl_peaks_edit *edit = NULL;
	double value;
	enum rfl_rc rc;

	(void)cli;
	if (!rfl_text_is_env_name(word[1]))
		return rfl_fail(
			err, RFL_EUSAGE, 0,
			"ENV: '%s' is not a name; use a letter a-z, then a-z, 0-9 and _, at "
			"most 48 characters",
			word[1]);
	rc = check_text("source", a->source, err);
	if (rc == RFL_OK)
		rc = check_text("device", a->device, err);
	if (rc != RFL_OK)
		return rc;
	if (rfl_num_parse_double(word[3], "VALUE", &value, NULL) != RFL_OK || !(value > 0))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"VALUE: '%s' is not a number greater than 0, in GFLOP/s or GB/s",
				word[3]);

	const struct rfl_peaks_set set = {
		.env = word[1],
		.key = word[2],
		.value = value,
		.source = a->source,
		.kind = kinds[a->kind],
		.device = a->device,
	};

	rc = rfl_peaks_edit_open(word[0], &edit, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_edit_set(edit, &set, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_edit_save(edit, err);
	rfl_peaks_edit_close(edit);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_set = {
	.name = "peaks set",
	.summary = "write a ceiling that you know into a peaks file",
	.operands = "FILE ENV KEY VALUE",
	.description =
		"KEY is a compute ceiling such as fp32.vector or bf16.matrix, or a level of memory "
		"such "
		"as DRAM; VALUE is in GFLOP/s or GB/s. File and environment are made when they are "
		"new. "
		"In an environment of the short form KEY is peak_gflops, peak_gbps, or one per "
		"precision, as the file spells it.",
	.example = "roofline peaks set peaks.json lab_gpu bf16.matrix 121000 --kind gpu "
		   "--device 'NVIDIA L4' --source 'NVIDIA L4 data sheet, dense'",
	.opts = set_opts,
	.args_size = sizeof(struct set_args),
	.operands_offset = offsetof(struct set_args, operands),
	.run = set_run,
};
