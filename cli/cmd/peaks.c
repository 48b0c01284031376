/* peaks.c - roofline peaks: show, check and edit peaks files, print data sheets. */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/project.h"
#include "peaks/devices.h"
#include "peaks/edit.h"
#include "peaks/peaks.h"

/* Arguments of all commands in this file. */
struct peaks_args {
	struct rfl_opt_list operands, env;
	const char *source, *device, *sheet;
	int kind, format;
	bool strict, replace, spec;
};

#define OPT(kind, member, ...) RFL_OPT(struct peaks_args, kind, member, __VA_ARGS__)

static const struct rfl_opt show_opts[] = {
	OPT(LIST, env, .name = "env", .meta = "NAME", .help = "environments to show"),
	OPT(FLAG, spec, .name = "spec",
	    .help = "add the device's data sheet, the share of it that each ceiling reaches, and "
		    "the recorded causes of a low share"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

/* Read FILE, or without it the peaks file of the project. */
static enum rfl_rc load_file(struct rfl_cli *cli, const struct peaks_args *a,
			     struct rfl_peaks **ret, struct rfl_err *err)
{
	struct rfl_project project = { .arena = cli->arena };
	const char *path = a->operands.n ? a->operands.items[0] : NULL;
	enum rfl_rc rc = path ? RFL_OK : rfl_project_path(&project, "peaks", &path, err);

	return rc ? rc : rfl_cli_load_peaks(path, ret, err);
}

enum { WITH_SPEC = 1 };
#define LOW_SHARE 0.9 /* of the sheet; below it, likely causes are named */

/* A row of the table of ceilings. */
struct shown {
	const char *env, *cell, *unit, *status, *causes, *from;
	double value, knee_flop_per_byte, max_over_median, sheet, percent_of_sheet;
};

static const struct rfl_column show_columns[] = {
	RFL_COLUMN(TEXT, struct shown, env, "env", "Environment"),
	RFL_COLUMN(TEXT, struct shown, cell, "cell", "Entry"),
	RFL_COLUMN(REAL, struct shown, value, "value", "Value", .digits = 5),
	RFL_COLUMN(TEXT, struct shown, unit, "unit", "Unit"),
	RFL_COLUMN(REAL, struct shown, knee_flop_per_byte, "knee_flop_per_byte", "Ridge FLOP/B"),
	RFL_COLUMN(TEXT, struct shown, status, "status", "Status"),
	RFL_COLUMN(REAL, struct shown, max_over_median, "max_over_median", "Max/median",
		   .digits = 3),
	RFL_COLUMN(REAL, struct shown, sheet, "sheet", "Sheet", .digits = 5, .when = WITH_SPEC),
	RFL_COLUMN(REAL, struct shown, percent_of_sheet, "percent_of_sheet", "% of sheet",
		   .digits = 3, .when = WITH_SPEC),
	RFL_COLUMN(TEXT, struct shown, causes, "causes", "Likely causes", .when = WITH_SPEC),
	RFL_COLUMN(TEXT, struct shown, from, "from", "From"),
};

/* Add a ceiling. @param sheet  the data sheet of the device; NULL: unknown */
static void show_peak(struct rfl_table *t, const struct rfl_peaks_env *env,
		      const struct rfl_device_sheet *sheet, const char *cell,
		      const struct rfl_peak *p, const char *unit, double knee, const char *key)
{
	const double spec = p->spec > 0    ? p->spec
			    : sheet && key ? rfl_device_ceiling(sheet, key)
					   : (double)NAN;
	char causes[256] = "";
	const struct shown row = {
		.env = env->name,
		.cell = cell,
		.unit = unit,
		.status = rfl_peak_status_name(p->status),
		.causes = causes,
		.from = p->reason   ? p->reason
			: p->kernel ? p->kernel
			: p->source ? p->source
				    : "",
		.value = p->value / 1e9,
		.knee_flop_per_byte = knee,
		.max_over_median = p->stats.n > 0 ? p->stats.max / p->stats.median : (double)NAN,
		.sheet = spec / 1e9,
		.percent_of_sheet = 100 * p->value / spec,
	};

	if (p->value < LOW_SHARE * spec)
		rfl_peaks_causes(env, cell, p, sheet, causes, sizeof(causes));
	rfl_table_add(t, &row, 1, sizeof(row));
}

static bool is_thin(const char *key)
{
	const struct rfl_peaks_part *part = rfl_peaks_part(key, false);

	return part && part->line != RFL_LINE_NONE;
}

static enum rfl_rc show_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct peaks_args *a = args;
	RFL_AUTOPTR(devices) devices = NULL;
	const struct rfl_peaks_env *env;
	RFL_AUTOPTR(peaks) peaks = NULL;
	struct rfl_table *t;
	enum rfl_rc rc = load_file(cli, a, &peaks, err);

	if (a->spec)
		devices = rfl_devices_new();
	for (size_t i = 0; rc == RFL_OK && i < a->env.n; i++)
		rc = rfl_peaks_get(peaks, a->env.items[i], &env, err);
	if (rc)
		return rc;
	t = rfl_table_of(show_columns, RFL_ARRAY_LEN(show_columns), a->spec ? WITH_SPEC : 0);
	for (env = peaks->envs; env < peaks->envs + peaks->nenvs; env++) {
		const struct rfl_peak *dram = rfl_peaks_dram(env);
		const double bandwidth = rfl_peak_usable(dram) ? dram->value : (double)NAN;
		const struct rfl_device_sheet *sheet = rfl_devices_get(devices, env->device);

		if (a->env.n && !rfl_opt_list_has(&a->env, env->name))
			continue;
		for (const struct rfl_peak_compute *c = env->compute;
		     c < env->compute + env->ncompute; c++)
			/* a ceiling that is never a roof of the machine has no ridge point */
			show_peak(t, env, sheet, c->cell, &c->peak, rfl_peaks_unit(c->key),
				  is_thin(c->key) ? (double)NAN : c->peak.value / bandwidth,
				  c->key);
		for (const struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels;
		     l++)
			show_peak(t, env, sheet, l->cell, &l->peak,
				  strcmp(l->scope, "core") == 0 ? "GB/s per core" : "GB/s",
				  (double)NAN, &l->peak == dram ? "DRAM" : NULL);
	}
	rfl_table_note(t, "Ridge: the arithmetic intensity at which the compute ceiling meets the "
			  "DRAM bandwidth; memory is the limit below it, arithmetic above it.");
	if (a->spec)
		rfl_table_note(t, "Sheet: the data sheet's value in the file, or in 'roofline "
				  "peaks devices'; for a CPU, at base clock.");
	return rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
}

const struct rfl_cmd rfl_cmd_peaks_show = {
	.name = "peaks show",
	.summary = "print the ceilings of a peaks file, with the ridge point of each precision",
	.operands = "[FILE]",
	.description = "FILE is by default the peaks file of the project, peaks.json.",
	.example = "roofline peaks show peaks.json --env lab_cpu\n"
		   "roofline peaks show peaks.json --spec",
	.opts = show_opts,
	.args_size = sizeof(struct peaks_args),
	.run = show_run,
};

static const struct rfl_opt check_opts[] = {
	OPT(FLAG, strict, .name = "strict",
	    .help = "also exit with 1 if there are doubtful values"),
	{ .name = NULL },
};

#define ADVICE "; measure again on an idle machine"

struct doubts {
	struct rfl_buf lines;
	const char *env, *cell; /* of the last line if it ends with ADVICE; otherwise NULL */
};

/* Print a line per ceiling and advice. */
static void print_doubt(const char *env, const char *cell, const char *text, void *ctx)
{
	struct doubts *d = ctx;
	const bool idle = rfl_span_ends(rfl_span_of(text), ADVICE);

	if (idle && rfl_text_same(d->env, env) && rfl_text_same(d->cell, cell)) {
		d->lines.len -= strlen(ADVICE "\n");
		rfl_buf_printf(&d->lines, "; %s\n", text);
	} else {
		rfl_buf_printf(&d->lines, "%s: %s: %s\n", env, cell, text);
	}
	d->env = idle ? env : NULL;
	d->cell = idle ? cell : NULL;
}

static enum rfl_rc check_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct peaks_args *a = args;
	RFL_AUTOPTR(peaks) peaks = NULL;
	struct doubts found = { .env = NULL };
	char today[RFL_TIME_ISO_SIZE];
	size_t doubts;
	enum rfl_rc rc = load_file(cli, a, &peaks, err);

	if (rc != RFL_OK)
		return rc;
	rfl_clock_iso(today);
	doubts = rfl_peaks_check(peaks, today, print_doubt, &found);
	rfl_cli_printf(cli, "%s: %zu environment%s, valid format, %zu warning%s\n", peaks->path,
		       peaks->nenvs, peaks->nenvs == 1 ? "" : "s", doubts, doubts == 1 ? "" : "s");
	rc = rfl_cli_put(cli, &found.lines, "doubts", err);
	rfl_buf_fini(&found.lines);
	return rc == RFL_OK && a->strict && doubts > 0 ? RFL_EFAILED : rc;
}

const struct rfl_cmd rfl_cmd_peaks_check = {
	.name = "peaks check",
	.summary = "check the format of a peaks file and report doubtful values",
	.operands = "[FILE]",
	.description = "FILE is by default the peaks file of the project, peaks.json. If the "
		       "format is invalid, reports the JSON path and exits with 1. Reports "
		       "as doubtful: cache levels with bandwidths out of order, and measurements "
		       "that are unsteady, old or far from the data sheet. They change the exit "
		       "code only with --strict.",
	.example = "roofline peaks check peaks.json",
	.opts = check_opts,
	.args_size = sizeof(struct peaks_args),
	.run = check_run,
};

static const char *const kinds[] = { "cpu", "gpu", NULL };

static const struct rfl_opt set_opts[] = {
	OPT(TEXT, source, .name = "source", .meta = "TEXT",
	    .help = "source of VALUE, such as the title of a data sheet"),
	OPT(TEXT, sheet, .name = "from-device", .meta = "DEVICE", .against = "source kind device",
	    .help = "write all ceilings of a data sheet ('roofline peaks devices') instead of KEY "
		    "and VALUE"),
	OPT(CHOICE, kind, .name = "kind", .meta = "KIND", .choices = kinds, .def = "cpu",
	    .help = "kind of device, for a new environment"),
	OPT(TEXT, device, .name = "device", .meta = "NAME",
	    .help = "name of the device as reported by its driver, for a new environment"),
	{ .name = NULL },
};

/* JSON requires UTF-8. */
static enum rfl_rc check_text(const char *option, const char *text, struct rfl_err *err)
{
	json_auto_t *string = text ? json_string(text) : NULL;

	if (text && !string)
		return rfl_usage(err, "--%s: '%s' is not UTF-8 text; convert it", option, text);
	return RFL_OK;
}

static enum rfl_rc set_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct peaks_args *a = args;
	const char *const *word = a->operands.items;
	const char *value = a->operands.n > 4
				    ? rfl_arena_printf(cli->arena, "%s %s", word[3], word[4])
			    : a->operands.n > 3 ? word[3]
						: "";
	struct rfl_peaks_set set = {
		.env = word[1],
		.key = a->operands.n > 2 ? word[2] : NULL,
		.source = a->source,
		.kind = kinds[a->kind],
		.device = a->device,
	};
	const struct rfl_device_sheet *sheet = NULL;
	RFL_AUTOPTR(devices) devices = NULL;
	RFL_AUTOPTR(peaks_edit) edit = NULL;
	enum rfl_rc rc;

	if ((rc = rfl_text_check_env_name("ENV", word[1], RFL_EUSAGE, err)) ||
	    (rc = check_text("source", a->source, err)) ||
	    (rc = check_text("device", a->device, err)))
		return rc;
	if (a->sheet && a->operands.n > 2)
		return rfl_usage(
			err, "--from-device writes all ceilings of a data sheet; leave out '%s'",
			word[2]);
	if (!a->sheet && a->operands.n < 4)
		return rfl_usage(
			err, "KEY and VALUE are missing; add them, or use --from-device DEVICE");
	if (!a->sheet && !a->source)
		return rfl_usage(err, "--source is required: where the value is from, such as "
				      "--source 'data sheet'");
	if (a->sheet)
		devices = rfl_devices_new();
	if ((rc = a->sheet ? rfl_devices_find(devices, a->sheet, &sheet, err)
			   : rfl_peaks_rate(value, word[2], &set.value, err)) ||
	    (rc = rfl_peaks_edit_open(word[0], &edit, err)) ||
	    (rc = sheet ? rfl_peaks_edit_sheet(edit, word[1], sheet, err)
			: rfl_peaks_edit_set(edit, &set, err)))
		return rc;
	return rfl_peaks_edit_save(edit, err);
}

const struct rfl_cmd rfl_cmd_peaks_set = {
	.name = "peaks set",
	.summary = "write a ceiling that you know, or a data sheet, into a peaks file",
	.operands = "FILE ENV [KEY VALUE [UNIT]]",
	.description =
		"KEY is a compute ceiling such as fp32.vector or bf16.matrix, or a memory level "
		"such as DRAM; VALUE is in GFLOP/s or GB/s, or has a unit, such as 121TFLOP/s, "
		"3.35TB/s or 242 TOPS. The file and the environment are created if they do not "
		"exist. For an environment in the short form (docs/reference/peaks.md), KEY is "
		"peak_gflops, "
		"peak_gbps, or the key of a precision as spelled in the file.\n\n--from-device "
		"writes the rates and the bandwidth of a data sheet at once. Values that were "
		"measured or entered are kept, with the sheet's beside them. A rate with "
		"sparsity, which is twice as high, is refused.",
	.example = "roofline peaks set peaks.json lab_gpu bf16.matrix 121TFLOP/s --kind gpu "
		   "--device 'NVIDIA L4' --source 'NVIDIA L4 data sheet, dense'\n"
		   "roofline peaks set peaks.json lab_gpu --from-device 'NVIDIA L4'",
	.opts = set_opts,
	.args_size = sizeof(struct peaks_args),
	.run = set_run,
};

static const struct rfl_opt merge_opts[] = {
	OPT(FLAG, replace, .name = "replace", .help = "replace environments in FILE that differ"),
	{ .name = NULL },
};

static enum rfl_rc merge_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct peaks_args *a = args;
	RFL_AUTOPTR(peaks_edit) edit = NULL;
	enum rfl_rc rc = rfl_peaks_edit_open(a->operands.items[0], &edit, err);

	(void)cli;
	for (size_t i = 1; rc == RFL_OK && i < a->operands.n; i++)
		rc = rfl_peaks_edit_add(edit, a->operands.items[i], a->replace, err);
	return rc ? rc : rfl_peaks_edit_save(edit, err);
}

const struct rfl_cmd rfl_cmd_peaks_merge = {
	.name = "peaks merge",
	.summary = "merge the environments of other peaks files into one file",
	.operands = "FILE OTHER...",
	.description = "FILE is created if it does not exist. The other files are not changed. An "
		       "environment that FILE already contains must be identical unless --replace "
		       "is given.",
	.example = "roofline peaks merge peaks.json laptop/peaks.json server/peaks.json",
	.opts = merge_opts,
	.args_size = sizeof(struct peaks_args),
	.run = merge_run,
};

static const struct rfl_opt devices_opts[] = {
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

enum { FOR_PROGRAMS = 1 };

/* The last columns are for csv and json only. */
static const struct rfl_column devices_columns[] = {
	RFL_COLUMN(TEXT, struct rfl_device_sheet, label, "device", "Device"),
	RFL_COLUMN(INT, struct rfl_device_sheet, units, "units", "Units"),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_FP64], "fp64_flop_per_s",
		   "FP64 TFLOP/s", .scale = 1e12),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_FP32], "fp32_flop_per_s",
		   "FP32", .scale = 1e12),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_TF32], "tf32_flop_per_s",
		   "TF32", .scale = 1e12),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_FP16], "fp16_flop_per_s",
		   "FP16", .scale = 1e12),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_BF16], "bf16_flop_per_s",
		   "BF16", .scale = 1e12),
	RFL_COLUMN(REAL, struct rfl_device_sheet, bandwidth_bytes_per_s, "bandwidth_bytes_per_s",
		   "GB/s", .scale = 1e9),
	RFL_COLUMN(REAL, struct rfl_device_sheet, memory_bytes, "memory_bytes", "Memory GiB",
		   .scale = 0x1p30),
	RFL_COLUMN(REAL, struct rfl_device_sheet, power_w, "power_w", "W", .digits = 3),
	RFL_COLUMN(TEXT, struct rfl_device_sheet, evidence, "evidence", "Evidence"),
	RFL_COLUMN(TEXT, struct rfl_device_sheet, vendor, "vendor", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct rfl_device_sheet, kind, "kind", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct rfl_device_sheet, compute_capability, "compute_capability", NULL,
		   .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, struct rfl_device_sheet, clock_hz, "clock_hz", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_FP64_TENSOR],
		   "fp64_tensor_flop_per_s", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_FP8], "fp8_flop_per_s",
		   NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, struct rfl_device_sheet, flop_per_s[RFL_DEVICE_INT8], "int8_op_per_s",
		   NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, struct rfl_device_sheet, l2_bytes, "l2_bytes", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, struct rfl_device_sheet, llc_bytes, "llc_bytes", NULL,
		   .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct rfl_device_sheet, source, "source", NULL, .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, struct rfl_device_sheet, notes, "notes", NULL, .when = FOR_PROGRAMS),
};

static enum rfl_rc devices_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct peaks_args *a = args;
	const enum rfl_format format = (enum rfl_format)a->format;
	const bool people = rfl_format_for_people(format);
	const struct rfl_device_sheet *none;
	RFL_AUTOPTR(devices) devices = rfl_devices_new();
	struct rfl_table *t = rfl_table_of(devices_columns, RFL_ARRAY_LEN(devices_columns),
					   people ? 0 : FOR_PROGRAMS);
	enum rfl_rc rc = RFL_OK;

	if (a->operands.n == 0)
		rfl_table_add(t, devices->sheets, devices->n, sizeof(*devices->sheets));
	for (size_t k = 0; k < a->operands.n && rc == RFL_OK; k++) {
		const char *name = a->operands.items[k];
		bool found = false;

		for (size_t i = 0; i < devices->n; i++) {
			if (!rfl_device_matches(&devices->sheets[i], name))
				continue;
			found = true;
			rfl_table_add(t, &devices->sheets[i], 1, sizeof(*devices->sheets));
		}
		if (!found)
			rc = rfl_devices_find(devices, name, &none, err);
	}
	rfl_table_note(t, "Rates are dense, that is, without sparsity. FP16 and BF16: tensor units "
			  "with FP32 accumulation. CPUs: at base clock.");
	rfl_table_note(t,
		       "Evidence: ds: from the vendor; dq: read from a device; calc: computed from "
		       "units and clock; mem: unverified. For the sources, use --format csv.");
	if (rc == RFL_OK)
		return rfl_cli_put_table(cli, t, format, err);
	rfl_table_free(t);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_devices = {
	.name = "peaks devices",
	.summary = "print the data sheets of known devices",
	.operands = "[DEVICE...]",
	.description = "DEVICE is a name, an alias, or part of either, such as 'NVIDIA L4', l4 or "
		       "m3; all matching devices are listed. Data sheets contain the claims of the "
		       "vendors; measure before you rely on them.",
	.example = "roofline peaks devices l4 'rtx 4090'",
	.opts = devices_opts,
	.args_size = sizeof(struct peaks_args),
	.run = devices_run,
};
