/* peaks_import.c - roofline peaks import and export: results of other tools that measure ceilings.
 */
#include "cli/cmd.h"

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "peaks/edit.h"
#include "peaks/import.h"
#include "peaks/peaks.h"

static const char *const kinds[] = { "cpu", "gpu", NULL };

struct import_args {
	struct rfl_opt_list files;
	struct rfl_peaks_import_options options;
	const char *env, *output;
	bool force;
};

#define OPT(kind, member, ...) RFL_OPT(struct import_args, kind, member, __VA_ARGS__)

static const struct rfl_opt import_opts[] = {
	OPT(TEXT, env, .name = "env", .meta = "NAME", .required = true, .project = "env",
	    .help = "environment to which the ceilings belong"),
	OPT(TEXT, output, RFL_OPT_OUTPUT, .required = true,
	    .help = "peaks file into which the environment is merged"),
	OPT(TEXT, options.from, .name = "from", .meta = "FORMAT", .choices = rfl_peaks_format_names,
	    .help = "format of the files; default: detected from the content"),
	OPT(TEXT, options.select, .name = "select", .meta = "DEVICE",
	    .help = "device to read, by its name or number in the files; required if they have "
		    "several"),
	OPT(TEXT, options.level, .name = "level", .meta = "LEVEL", .choices = rfl_peaks_levels,
	    .help = "memory level that likwid-bench measured, which its output does not contain"),
	OPT(TEXT, options.precision, .name = "precision", .meta = "NAME",
	    .choices = rfl_peaks_precisions,
	    .help = "precision of the compute roofs in a file of NERSC's scripts, which does not "
		    "contain it"),
	OPT(TEXT, options.kind, .name = "kind", .meta = "KIND", .choices = kinds,
	    .help = "kind of device; default: as the format says"),
	OPT(TEXT, options.device, .name = "device", .meta = "NAME",
	    .help = "name of the device as reported by its driver; default: the name in the files"),
	OPT(FLAG, force, .name = "force",
	    .help = "also change an environment that belongs to another device"),
	{ .name = NULL },
};

/* Log the names that have no key. */
static void log_ignored(const struct rfl_peaks_import *in)
{
	RFL_AUTO(buf) list = { .len = 0 };
	const char *name;
	json_t *value;

	json_object_foreach(in->ignored, name, value)
		rfl_buf_printf(&list, "%s%s", list.len ? ", " : "", name);
	if (list.len)
		rfl_log(RFL_LOG_WARN, "not imported, because peaks.json has no keys for them: %s",
			rfl_buf_str(&list));
}

static enum rfl_rc import_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct import_args *a = args;
	RFL_AUTOPTR(peaks_edit) edit = NULL;
	RFL_AUTO(peaks_import) in;
	const char *kind, *device;
	json_auto_t *env = NULL;
	enum rfl_rc rc = rfl_text_check_env_name("--env", a->env, RFL_EUSAGE, err);

	rfl_peaks_import_init(&in, &a->options);
	for (size_t i = 0; rc == RFL_OK && i < a->files.n; i++)
		rc = rfl_peaks_import_file(&in, a->files.items[i], err);
	if (rc || (rc = rfl_peaks_import_env(&in, &env, err)) ||
	    (rc = rfl_peaks_edit_open(a->output, &edit, err)))
		return rc;
	kind = json_string_value(json_object_get(env, "kind"));
	device = json_string_value(json_object_get(json_object_get(env, "device"), "name"));
	if (!a->force && (rc = rfl_peaks_edit_fits(edit, a->env, kind, device, err)))
		return rc;
	rfl_peaks_edit_merge(edit, a->env, env);
	if ((rc = rfl_peaks_edit_save(edit, err)))
		return rc;
	log_ignored(&in);
	rfl_cli_printf(cli, "%s: %s: %zu compute and %zu memory ceiling%s; kind %s, device %s\n",
		       a->output, a->env, json_object_size(in.compute), json_array_size(in.memory),
		       json_array_size(in.memory) == 1 ? "" : "s", kind, device);
	return RFL_OK;
}

const struct rfl_cmd rfl_cmd_peaks_import = {
	.name = "peaks import",
	.summary = "import ceilings that other tools have measured",
	.operands = "FILE...",
	.description =
		"Reads results of the Empirical Roofline Toolkit (roofline.json), likwid-bench "
		"(its output), rocprof-compute or Omniperf (roofline.csv, or what 'rocprof-compute "
		"analyze' prints), clpeak (--json-file, --csv-file or --xml-file), nvbandwidth "
		"(--json) and NERSC's roofline scripts (the data file). docs/reference/peaks.md "
		"lists the names and their ceilings; other names are reported, not guessed. Of "
		"several values for a ceiling, the highest is used. Imported values replace "
		"existing values of the same ceilings; use a separate environment to compare "
		"them.",
	.example =
		"roofline peaks import roofline.csv --env lab_gpu --select 0 --output peaks.json\n"
		"roofline peaks import load.txt --level L2 --env lab_cpu --output peaks.json",
	.opts = import_opts,
	.args_size = sizeof(struct import_args),
	.run = import_run,
};

struct export_args {
	struct rfl_opt_list files;
	const char *env, *output;
};

static const struct rfl_opt export_opts[] = {
	RFL_OPT(struct export_args, TEXT, env, .name = "env", .meta = "NAME", .required = true,
		.project = "env", .help = "environment to export"),
	RFL_OPT(struct export_args, TEXT, output, RFL_OPT_OUTPUT,
		.help = "file to write; default: standard output"),
	{ .name = NULL },
};

static enum rfl_rc export_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct export_args *a = args;
	const struct rfl_peaks_env *env;
	RFL_AUTOPTR(peaks) peaks = NULL;
	json_auto_t *value = NULL;
	RFL_AUTO(buf) skipped = { .len = 0 };
	enum rfl_rc rc;

	if ((rc = rfl_cli_load_peaks(a->files.items[0], &peaks, err)) ||
	    (rc = rfl_peaks_get(peaks, a->env, &env, err)))
		return rc;
	value = rfl_peaks_export_ert(env, &skipped);
	if ((rc = a->output ? rfl_json_save(a->output, value, err)
			    : rfl_cli_put_json(cli, value, "roofline.json", err)))
		return rc;
	if (skipped.len)
		rfl_log(RFL_LOG_WARN,
			"not exported, because they are unknown or ERT has no name for them: %s",
			rfl_buf_str(&skipped));
	return RFL_OK;
}

const struct rfl_cmd rfl_cmd_peaks_export = {
	.name = "peaks export",
	.summary = "write the ceilings of an environment as roofline.json of ERT",
	.operands = "FILE",
	.description = "The Empirical Roofline Toolkit (ERT) has one rate for each precision, and "
		       "bandwidths of the whole machine: values of one core are multiplied by the "
		       "number of cores.",
	.example = "roofline peaks export peaks.json --env lab_cpu --output roofline.json",
	.opts = export_opts,
	.args_size = sizeof(struct export_args),
	.run = export_run,
};
