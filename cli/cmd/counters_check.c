/*
 * counters_check.c - roofline counters check: whether counters can be read here; or, of a chip
 * that need not be here, whether it has some metrics and in how many passes it counts them.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/cmd/counters_chip.h"
#include "cli/places.h"
#include "cli/put.h"
#include "profile/cupti/gpu_check.h"
#include "profile/cupti/plan.h"
#include "profile/source.h"
#include "report/table.h"
#include "runner/engine.h"

struct check_args {
	const char *chip;
	struct rfl_opt_list metrics;
	int64_t device;
	int precision;
	bool self_test;
	int format;
};

static const struct rfl_opt opts[] = {
	{ .name = "chip",
	  .meta = "CHIP",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct check_args, chip),
	  .help = "ask about a chip (GH100) or product (H100), which need not be here" },
	{ .name = "metrics",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = offsetof(struct check_args, metrics),
	  .help = "with --chip: metrics to look at, alone and together; without it those that "
		  "'run --counters' takes" },
	{ .name = "device",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = offsetof(struct check_args, device),
	  .def = "0",
	  .max = 1023,
	  .help = "index of the GPU" },
	{ .letter = 'p',
	  .name = "precision",
	  .meta = "NAME",
	  .kind = RFL_OPT_CHOICE,
	  .offset = offsetof(struct check_args, precision),
	  .choices = rfl_precision_names,
	  .def = "fp32",
	  .help = "of the run that shall be counted" },
	{ .name = "self-test",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct check_args, self_test),
	  .def = "on",
	  .negatable = true,
	  .help = "count a copy and matrix products of known size" },
	RFL_OPT_FORMAT_ROW(offsetof(struct check_args, format)),
	{ .name = NULL },
};

#define TEXT(key_, title_)                                            \
	{                                                             \
		.key = key_, .title = title_, .kind = RFL_COLUMN_TEXT \
	}

static bool for_people(int format)
{
	return format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD;
}

/* ------------------------------------------------------------------ metrics of a chip */

/* People have description or reason in one column. */
static const struct rfl_column metric_columns[] = {
	TEXT("metric", "Metric"),
	TEXT("valid", "Valid"),
	{ .key = "passes", .title = "Passes", .kind = RFL_COLUMN_INT },
	TEXT("unit", "Unit"),
	TEXT("description", "What it is, or why it is not valid"),
	TEXT("reason", "Reason"),
};
enum { METRIC_COLUMNS_FOR_PEOPLE = 5 };

/* A row of one metric, or of all together. */
static bool check_metrics(struct rfl_table *t, const struct rfl_asked_chip *chip,
			  const char *const *metrics, size_t n, bool together, bool people)
{
	struct rfl_cupti_host_metric_properties info = {
		.description = together ? "the passes of all of them in one session" : NULL,
	};
	struct rfl_err why = RFL_ERR_INIT;
	size_t passes = 0;
	const bool valid =
		(together || rfl_cupti_metric(chip->host, metrics[0], &info, &why) == RFL_OK) &&
		rfl_cupti_passes(chip->host, metrics, n, &passes, NULL, &why) == RFL_OK;

	rfl_table_text(t, together ? "(together)" : metrics[0]);
	rfl_table_text(t, valid ? "yes" : "no");
	if (valid)
		rfl_table_int(t, (int64_t)passes);
	else
		rfl_table_null(t);
	rfl_table_text(t, info.unit);
	rfl_table_text(t, people && !valid ? why.msg : info.description);
	if (!people)
		rfl_table_text(t, valid ? NULL : why.msg);
	return valid;
}

static enum rfl_rc check_chip(struct rfl_cli *cli, const struct check_args *a,
			      const struct rfl_asked_chip *chip, struct rfl_err *err)
{
	const bool people = for_people(a->format);
	struct rfl_table *t = rfl_table_new(metric_columns, people ? METRIC_COLUMNS_FOR_PEOPLE
								   : RFL_ARRAY_LEN(metric_columns));
	struct rfl_metric_set set = { .n = 0 };
	const char *const *metrics = a->metrics.items;
	size_t n = a->metrics.n;
	bool valid = true;
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the table");
	if (n == 0) {
		rfl_metric_set_add_sets(&set, chip->f, RFL_SET_CORE | RFL_SET_FLOPS,
					rfl_precision_names[a->precision]);
		metrics = set.names;
		n = set.n;
	}
	for (size_t i = 0; i < n; i++)
		valid &= check_metrics(t, chip, &metrics[i], 1, false, people);
	if (valid)
		valid = check_metrics(t, chip, metrics, n, true, people);
	rfl_table_note(t, "%s, asked of %s.", chip->name, chip->lib->path);
	rc = rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
	rfl_table_free(t);
	return rc == RFL_OK && !valid ? RFL_EFAILED : rc;
}

static enum rfl_rc run_chip(struct rfl_cli *cli, const struct check_args *a, struct rfl_err *err)
{
	struct rfl_asked_chip chip = { .f = NULL };
	enum rfl_rc rc = rfl_asked_chip_init(&chip, a->chip, err);

	if (rc == RFL_OK && !chip.host)
		rc = rfl_fail(err, chip.why.rc, chip.why.native, "%s", chip.why.msg);
	if (rc == RFL_OK && !chip.f && a->metrics.n == 0)
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--metrics: is needed for %s, which has no formulas", chip.name);
	if (rc == RFL_OK)
		rc = check_chip(cli, a, &chip, err);
	rfl_asked_chip_fini(&chip);
	return rc;
}

/* ------------------------------------------------------------------ this machine */

static const struct rfl_column here_columns[] = {
	TEXT("what", "What"),
	TEXT("state", "State"),
	TEXT("detail", "Found"),
	TEXT("reason", "Reason"),
};
enum { HERE_COLUMNS_FOR_PEOPLE = 3 };

/* People read why something failed, and what to do, below the table: it is long. */
static void here_row(struct rfl_table *t, const struct rfl_gpu_check_row *row, bool people)
{
	const bool skipped = row->state == RFL_GPU_CHECK_SKIPPED;

	rfl_table_text(t, row->what);
	rfl_table_text(t, rfl_gpu_check_state_names[row->state]);
	rfl_table_text(t, people && skipped ? row->reason : row->detail);
	if (!people)
		rfl_table_text(t, row->reason);
}

static bool fails_alike(const struct rfl_gpu_check_row *a, const struct rfl_gpu_check_row *b)
{
	return a->state == RFL_GPU_CHECK_FAILED && b->state == RFL_GPU_CHECK_FAILED &&
	       strcmp(a->reason, b->reason) == 0;
}

/* One line for all that failed for the same reason. */
static void note_failures(struct rfl_table *t, const struct rfl_gpu_check_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rfl_gpu_check_row *row = &rows[i];
		struct rfl_buf what;
		size_t first = 0;

		while (first < i && !fails_alike(&rows[first], row))
			first++;
		if (row->state != RFL_GPU_CHECK_FAILED || first < i)
			continue;
		rfl_buf_init(&what, 0);
		for (size_t k = i; k < n; k++)
			if (fails_alike(row, &rows[k]))
				rfl_buf_printf(&what, "%s%s", k > i ? ", " : "", rows[k].what);
		rfl_table_note(t, "%s: %s", rfl_buf_str(&what), row->reason);
		rfl_buf_fini(&what);
	}
}

/* Counters of the processor, which need neither a GPU nor CUPTI. */
static void processor_row(struct rfl_table *t, bool people)
{
	struct rfl_gpu_check_row row = { .what = "processor", .state = RFL_GPU_CHECK_FAILED };
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_perf_status s;
	char found[160];

	if (rfl_perf_look(&s, &why) != RFL_OK) {
		row.reason = why.msg;
	} else {
		snprintf(found, sizeof(found),
			 "%s: %zu events of hardware (%zu of FLOPs, %zu of memory), %zu of the "
			 "kernel",
			 s.processor, s.hardware, s.flops, s.dram, s.software);
		row.detail = found;
		if (s.hardware)
			row.state = RFL_GPU_CHECK_OK;
		else
			row.reason = s.no_hardware;
	}
	here_row(t, &row, people);
	if (people)
		note_failures(t, &row, 1);
	if (row.state == RFL_GPU_CHECK_OK && people && s.no_flops[0] != '\0')
		rfl_table_note(t, "processor, FLOPs: %s", s.no_flops);
	if (row.state == RFL_GPU_CHECK_OK && people && s.no_dram[0] != '\0')
		rfl_table_note(t, "processor, memory: %s", s.no_dram);
}

/* The first condition that does not hold is why. */
static enum rfl_rc verdict_of(const struct rfl_gpu_check *check, struct rfl_err *err)
{
	const struct rfl_gpu_check_row *none = NULL, *some = NULL;

	for (size_t i = check->n; i-- > 0;) {
		const struct rfl_gpu_check_row *row = &check->rows[i];

		if (row->state == RFL_GPU_CHECK_FAILED && row->rc == RFL_EUNAVAILABLE)
			none = row;
		if (row->state == RFL_GPU_CHECK_FAILED && row->rc == RFL_EFAILED)
			some = row;
	}
	if (none)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"counters of a GPU cannot be read here (%s, see there); "
				"a run counts FLOPs and bytes from its network all the same",
				none->what);
	if (some)
		return rfl_fail(err, RFL_EFAILED, 0,
				"counters of this GPU can be read, but not all is well with them "
				"(%s, see there)",
				some->what);
	return RFL_OK;
}

static enum rfl_rc run_here(struct rfl_cli *cli, const struct check_args *a, struct rfl_err *err)
{
	const bool people = for_people(a->format);
	const struct rfl_gpu_check_request request = {
		.places = rfl_cli_places(),
		.device = (int)a->device,
		.precision = rfl_precision_names[a->precision],
		.self_test = a->self_test,
	};
	struct rfl_gpu_check *check = NULL;
	struct rfl_table *t = NULL;
	enum rfl_rc rc = rfl_gpu_check_new(&request, &check, err);

	if (rc != RFL_OK)
		goto done;
	t = rfl_table_new(here_columns,
			  people ? HERE_COLUMNS_FOR_PEOPLE : RFL_ARRAY_LEN(here_columns));
	if (!t) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the table");
		goto done;
	}
	for (size_t i = 0; i < check->n; i++)
		here_row(t, &check->rows[i], people);
	if (people)
		note_failures(t, check->rows, check->n);
	processor_row(t, people);
	rc = rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
	if (rc == RFL_OK)
		rc = verdict_of(check, err);
done:
	rfl_table_free(t);
	rfl_gpu_check_free(check);
	return rc;
}

static enum rfl_rc check_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct check_args *a = args;

	if (!a->chip && a->metrics.n)
		return rfl_fail(err, RFL_EUSAGE, 0, "--metrics: needs --chip");
	return a->chip ? run_chip(cli, a, err) : run_here(cli, a, err);
}

const struct rfl_cmd rfl_cmd_counters_check = {
	.name = "counters check",
	.summary = "say whether counters can be read here, or whether a chip has some metrics",
	.description =
		"Without --chip: driver, GPU, CUPTI, permission and self-test in their order, with "
		"what to do where one fails, and the counters of the processor; 77 when no "
		"counter of a GPU can be read, 1 when some cannot or the self-test is off. With "
		"--chip, for which neither GPU nor driver is needed: each metric, and the passes "
		"of all of them together; 1 when one does not exist or does not go with the "
		"others.",
	.example = "roofline counters check\n"
		   "roofline counters check --chip GH100 --metrics "
		   "dram__bytes_read.sum,lts__t_bytes.sum",
	.opts = opts,
	.args_size = sizeof(struct check_args),
	.operands_offset = -1,
	.run = check_run,
};
