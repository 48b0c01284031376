/* counters_chip.c - roofline counters list and check: list and check the metrics of chips. */
#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/inputs.h"
#include "profile/chips.h"
#include "profile/cupti/plan.h"
#include "profile/formula.h"
#include "profile/source.h"
#include "runner/engine.h"

#define RANGE_PROFILER_SINCE 75 /* compute capability */

/* Arguments of both commands. */
struct chip_args {
	const char *chip, *precision_name;
	struct rfl_opt_list metrics;
	int64_t device;
	int precision, format;
	bool ncu, all, self_test;
};

#define OPT(kind, member, ...) RFL_OPT(struct chip_args, kind, member, __VA_ARGS__)

static bool for_people(const struct chip_args *a)
{
	return rfl_format_for_people((enum rfl_format)a->format);
}

/* The flag of columns for csv and json only. */
enum { FOR_PROGRAMS = 1 };

static struct rfl_table *new_table(const struct rfl_column *columns, size_t n,
				   const struct chip_args *a)
{
	return rfl_table_of(columns, n, for_people(a) ? 0 : FOR_PROGRAMS);
}

struct chip {
	char name[32];               /* "GH100" */
	struct rfl_formulas *f;      /* NULL: the chip has none */
	struct rfl_cupti *lib;       /* NULL: not found */
	struct rfl_cupti_host *host; /* NULL: no library, or one that does not support the chip */
	struct rfl_err why;          /* why `host` is NULL */
};

static enum rfl_rc chip_init(const struct rfl_cli *cli, struct chip *ret, const char *text,
			     struct rfl_err *err)
{
	const struct rfl_cupti_places places = rfl_cli_places(cli);
	const struct rfl_chip *chip = rfl_chip_of_text(text);
	RFL_AUTO(buf) near = { .len = 0 };
	bool similar;

	snprintf(ret->name, sizeof(ret->name), "%s", chip ? chip->name : text);
	if (rfl_cupti_open(&places, &ret->lib, &ret->why) == RFL_OK)
		(void)!rfl_cupti_host_open(ret->lib, ret->name, NULL, &ret->host, &ret->why);
	if (chip)
		return rfl_formulas_new(chip->name, &ret->f, err);
	if (ret->host)
		return RFL_OK;
	similar = rfl_chip_suggest(text, &near) > 0;
	return rfl_fail(err, RFL_ENOTFOUND, 0,
			"'%s' is neither a chip nor a product; %s%s%s'roofline counters list' "
			"lists all",
			text, similar ? "did you mean " : "", rfl_buf_str(&near),
			similar ? "? " : "");
}

static void chip_fini(struct chip *c)
{
	rfl_cupti_host_close(c->host);
	rfl_cupti_close(c->lib);
	rfl_formulas_free(c->f);
}

static const struct rfl_opt list_opts[] = {
	OPT(TEXT, chip, .name = "chip", .meta = "CHIP",
	    .help = "chip (GH100) or product (H100); default: list the chips"),
	OPT(TEXT, precision_name, .letter = 'p', .name = "precision", .meta = "NAME",
	    .choices = rfl_precision_names,
	    .help = "precision of the matrix FLOPs in the core set; with --ncu, no other matrix "
		    "FLOPs are requested"),
	OPT(FLAG, ncu, .name = "ncu", .help = "print the --metrics argument for ncu on one line"),
	OPT(FLAG, all, .name = "all",
	    .help = "list all metrics that CUPTI has for the chip, with their descriptions"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static const struct rfl_column chip_columns[] = {
	{ .key = "chip", .title = "Chip" },
	{ .key = "compute_capability", .title = "CC", .kind = RFL_COLUMN_REAL, .decimals = 1 },
	{ .key = "family", .title = "Formulas" },
	{ .key = "products", .title = "Products" },
};

static enum rfl_rc list_chips(struct rfl_cli *cli, const struct chip_args *a, struct rfl_err *err)
{
	struct rfl_table *t = new_table(chip_columns, RFL_ARRAY_LEN(chip_columns), a);
	const struct rfl_chip *chip;

	for (size_t i = 0; (chip = rfl_chip_at(i)); i++) {
		rfl_table_text(t, chip->name);
		rfl_table_real(t, chip->capability / 10.0);
		rfl_table_text(t, chip->family);
		rfl_table_text(t, chip->products);
	}
	rfl_table_note(
		t,
		"For the metrics and passes of a chip, use 'roofline counters list --chip CHIP'.");
	rfl_table_note(t, "'run --counters' needs compute capability 7.5 or higher; ncu needs 7.0 "
			  "or higher.");
	return rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
}

/* ---- list: the quantities of one chip ---- */

static const struct rfl_column quantity_columns[] = {
	{ .key = "quantity", .title = "Quantity" },
	{ .key = "weight", .title = "x", .kind = RFL_COLUMN_REAL, .digits = 3 },
	{ .key = "metric", .title = "Metric" },
	{ .key = "set", .title = "Set" },
	{ .key = "passes", .title = "Passes", .kind = RFL_COLUMN_INT },
	{ .key = "note", .title = "Note" },
};

struct listing {
	struct rfl_table *t;
	const struct chip *chip;
	const char *precision;
	bool people;
	struct rfl_cupti_plan *plan; /* the sessions of a run with all sets */
};

static bool has_metric(const struct rfl_metric_set *s, const char *metric)
{
	size_t i = 0;

	while (i < s->n && strcmp(s->names[i], metric) != 0)
		i++;
	return i < s->n;
}

/* @param own  the session that counts the quantity; NULL: none */
static void metric_row(struct listing *l, enum rfl_quantity q, const struct rfl_cupti_planned *own,
		       double weight, int slot, const char *note)
{
	const char *metric = l->chip->f->slots[slot].name;
	const struct rfl_cupti_planned *s = own;

	/* another session may already count the metric, without an additional pass */
	for (size_t i = 0; own && !has_metric(&own->metrics, metric) && i < l->plan->n; i++)
		if (has_metric(&l->plan->sessions[i].metrics, metric))
			s = &l->plan->sessions[i];
	if (l->chip->host && rfl_cupti_metric(l->chip->host, metric, NULL, NULL) == RFL_ENOTFOUND)
		note = "not available for this chip in this version of CUPTI";
	rfl_table_text(l->t, rfl_quantity_info(q)->name);
	rfl_table_real(l->t, weight);
	rfl_table_text(l->t, metric);
	rfl_table_text(l->t, s ? s->name : NULL);
	rfl_table_int(l->t, s && l->chip->host ? (int64_t)s->passes : RFL_INT_UNKNOWN);
	rfl_table_text(l->t, note);
}

/* The reason why a quantity cannot be counted on the chip; NULL: it can. */
static const char *why_not(const struct listing *l, enum rfl_quantity q)
{
	const char *impossible = l->chip->f->quantities[q].impossible;

	if (rfl_metric_set_way(l->chip->f, q, NULL) >= 0)
		return NULL;
	if (impossible)
		return impossible;
	return l->chip->f->quantities[q].nways > 0 ? "only read from reports of profilers" : NULL;
}

/* Print why a quantity is not counted. In text tables, quantities with the same reason share a
 * note. */
static void put_reason(struct listing *l, enum rfl_quantity q, const char *reason)
{
	RFL_AUTO(buf) names = { .max = 1024 };
	bool first = true;

	if (!l->people) {
		rfl_table_text(l->t, rfl_quantity_info(q)->name);
		for (int i = 0; i < 4; i++)
			rfl_table_text(l->t, NULL);
		rfl_table_text(l->t, reason);
		return;
	}
	for (enum rfl_quantity other = 0; other < RFL_QUANTITY_COUNT; other++) {
		const char *same = why_not(l, other);

		if (!same || strcmp(same, reason) != 0)
			continue;
		first = first && other >= q;
		rfl_buf_printf(&names, "%s%s", names.len ? ", " : "",
			       rfl_quantity_info(other)->name);
	}
	if (first)
		rfl_table_note(l->t, "%s: %s.", rfl_buf_str(&names), reason);
}

static void quantity_rows(struct listing *l, enum rfl_quantity q)
{
	const struct rfl_formula_quantity *quantity = &l->chip->f->quantities[q];
	const unsigned in_run = rfl_metric_set_of(q, l->precision);
	const struct rfl_cupti_planned *own = NULL;
	const char *reason = why_not(l, q);
	int way = -1;

	for (size_t i = 0; i < l->plan->n; i++)
		if (l->plan->sessions[i].set == in_run)
			own = &l->plan->sessions[i];
	if (reason)
		put_reason(l, q, reason);
	if (own)
		way = rfl_metric_set_way(l->chip->f, q, &own->metrics);
	if (way < 0)
		way = rfl_metric_set_way(l->chip->f, q, NULL);
	if (way < 0)
		return;
	const struct rfl_formula_way *w = &quantity->ways[way];
	for (size_t i = 0; i < w->nterms; i++)
		metric_row(l, q, own, w->terms[i].weight, w->terms[i].slot[0],
			   i == 0 ? w->caveat : NULL);
	if (quantity->less.reason)
		metric_row(l, q, own, -quantity->less.weight, (int)quantity->less.slot,
			   "register moves, subtracted");
}

static enum rfl_rc list_quantities(struct rfl_cli *cli, const struct chip_args *a,
				   const struct chip *chip, struct rfl_err *err)
{
	struct listing l = {
		.chip = chip,
		.precision = a->precision_name,
		.people = for_people(a),
	};
	RFL_AUTO(buf) passes = { .len = 0 };
	enum rfl_rc rc = rfl_cupti_plan_new(chip->host ? chip->lib : NULL, chip->name, NULL,
					    RFL_SETS_COUNTED, l.precision, &l.plan, err);

	if (rc != RFL_OK)
		return rc;
	l.t = new_table(quantity_columns, RFL_ARRAY_LEN(quantity_columns), a);
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		quantity_rows(&l, q);
	rfl_table_note(l.t,
		       "%s, formulas of %s. A quantity is the sum of weight x metric. A step is "
		       "run once for each pass of a set. Quantities without a set are only read "
		       "from reports of profilers.",
		       chip->name, chip->f->family);
	if (rfl_chip_find(chip->name)->capability < RANGE_PROFILER_SINCE)
		rfl_table_note(l.t, "'run --counters' does not support this chip, because it needs "
				    "compute capability 7.5; use ncu.");
	if (!chip->host)
		rfl_table_note(l.t, "Names and passes are unchecked: %s", chip->why.msg);

	/* The number of passes of the core set depends on the precision of the run. */
	for (size_t i = 0; chip->host && rc == RFL_OK && rfl_precision_names[i]; i++) {
		struct rfl_metric_set set;
		size_t n = 0;

		rc = rfl_metric_set_choose(chip->host, chip->f, RFL_SET_CORE,
					   rfl_precision_names[i], &set, &n, err);
		rfl_buf_printf(&passes, "%s%s %zu", i ? ", " : "", rfl_precision_names[i], n);
	}
	if (chip->host) {
		rfl_table_note(l.t,
			       "Passes of the core set with the matrix FLOPs of a precision: %s.",
			       rfl_buf_str(&passes));
		rfl_table_note(l.t, "Names and passes are from %s.", chip->lib->path);
	}
	if (rc == RFL_OK)
		rc = rfl_cli_put_table(cli, l.t, (enum rfl_format)a->format, err);
	else
		rfl_table_free(l.t);
	rfl_cupti_plan_free(l.plan);
	return rc;
}

static const struct rfl_column all_columns[] = {
	{ .key = "metric", .title = "Metric" },
	{ .key = "unit", .title = "Unit" },
	{ .key = "hw_unit", .title = "Counted in" },
	{ .key = "description", .title = "Description" },
};

static enum rfl_rc list_all(struct rfl_cli *cli, const struct chip_args *a, const struct chip *chip,
			    struct rfl_err *err)
{
	const char **metrics = NULL;
	size_t n = 0;

	if (!chip->host)
		return rfl_err_pass(err, &chip->why);
	struct rfl_table *t = new_table(all_columns, RFL_ARRAY_LEN(all_columns), a);
	enum rfl_rc rc = rfl_cupti_metrics(chip->host, &metrics, &n, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		struct rfl_cupti_host_metric_properties info;

		rc = rfl_cupti_describe(chip->host, metrics[i], &info, err);
		if (rc != RFL_OK)
			break;
		rfl_table_text(t, metrics[i]);
		rfl_table_text(t, info.unit);
		rfl_table_text(t, info.hw_unit);
		rfl_table_text(t, info.description);
	}
	free(metrics);
	if (rc != RFL_OK) {
		rfl_table_free(t);
		return rc;
	}
	rfl_table_note(t,
		       "%zu metrics of %s in %s. To count a metric, append a rollup: .sum, .avg, "
		       ".min or .max to a counter; .ratio or .pct to a ratio; "
		       ".avg.pct_of_peak_sustained_elapsed to a throughput.",
		       rfl_table_rows(t), chip->name, chip->lib->path);
	return rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
}

/* Print the metrics that a roofline needs, as far as the chip has them. */
static enum rfl_rc print_ncu(struct rfl_cli *cli, const struct chip *chip, const char *precision,
			     struct rfl_err *err)
{
	struct rfl_metric_set there = { .n = 0 };
	RFL_AUTO(buf) line = { .len = 0 };
	size_t passes = 0;
	enum rfl_rc rc = rfl_metric_set_ncu(chip->f, chip->host, precision, &there, err);

	if (rc || (chip->host &&
		   (rc = rfl_cupti_passes(chip->host, there.names, there.n, &passes, NULL, err))))
		return rc;
	rfl_buf_puts(&line, "--metrics ");
	rfl_metric_set_text(&there, &line);
	rfl_buf_putc(&line, '\n');
	rc = rfl_cli_put(cli, &line, "the argument", err);
	if (chip->host)
		rfl_log(RFL_LOG_INFO, "%zu metrics of %s in %zu passes, according to %s", there.n,
			chip->name, passes, chip->lib->path);
	else
		rfl_log(RFL_LOG_INFO, "%zu metrics of %s; names and passes are unchecked: %s",
			there.n, chip->name, chip->why.msg);
	return rc;
}

static enum rfl_rc list_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct chip_args *a = args;
	const char *precision = a->precision_name;
	RFL_CLEANUP(chip_fini) struct chip chip = { .f = NULL };
	enum rfl_rc rc;

	if (!a->chip && (a->ncu || a->all || precision))
		return rfl_usage(err, "--%s needs --chip; add it",
				 a->ncu   ? "ncu"
				 : a->all ? "all"
					  : "precision");
	if (a->ncu && a->all)
		return rfl_usage(err, "--ncu and --all cannot be used together");
	if (a->ncu && a->format != RFL_FORMAT_TABLE)
		return rfl_usage(err, "--format has no effect with --ncu; leave it out");
	if (!a->chip)
		return list_chips(cli, a, err);
	if ((rc = chip_init(cli, &chip, a->chip, err)))
		return rc;
	if (!chip.f && !a->all)
		return rfl_fail(err, RFL_ENOTFOUND, 0,
				"%s: no formulas for this chip; use --all to list its metrics",
				chip.name);
	return a->ncu   ? print_ncu(cli, &chip, precision, err)
	       : a->all ? list_all(cli, a, &chip, err)
			: list_quantities(cli, a, &chip, err);
}

const struct rfl_cmd rfl_cmd_counters_list = {
	.name = "counters list",
	.summary = "list the metrics that a chip can count, and the passes needed",
	.description = "Lists chips or, with --chip, the quantities that can be counted on one. No "
		       "GPU is needed. Metric names and numbers of passes are obtained from "
		       "libcupti, which is part of the CUDA toolkit and of PyTorch built with "
		       "CUDA; without libcupti, the formulas are printed unchecked. RFL_CUPTI_PATH "
		       "is the path of libcupti or of its directory. The argument for ncu requests "
		       "time, memory traffic and FLOPs (--precision restricts the matrix FLOPs), "
		       "but not the traffic on PCI Express and NVLink.",
	.example = "roofline counters list --chip GH100\n"
		   "ncu $(roofline counters list --chip H100 --ncu) --csv --page raw --print-units "
		   "base --log-file out.csv python train.py",
	.opts = list_opts,
	.args_size = sizeof(struct chip_args),
	.run = list_run,
};

static const struct rfl_opt check_opts[] = {
	OPT(TEXT, chip, .name = "chip", .meta = "CHIP",
	    .help = "chip (GH100) or product (H100) to check, which need not be installed"),
	OPT(LIST, metrics, .name = "metrics", .meta = "NAME",
	    .help = "metrics to check with --chip, separately and together; default: the metrics "
		    "of 'run --counters'"),
	OPT(INT, device, .name = "device", .meta = "N", .def = "0", .max = 1023,
	    .help = "index of the GPU"),
	OPT(CHOICE, precision, .letter = 'p', .name = "precision", .meta = "NAME",
	    .choices = rfl_precision_names, .def = "fp32", .help = "precision of the counted runs"),
	OPT(FLAG, self_test, .name = "self-test", .def = "on", .negatable = true,
	    .help = "also count a copy and GEMMs of known size"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static const struct rfl_column metric_columns[] = {
	{ .key = "metric", .title = "Metric" },
	{ .key = "valid", .title = "Valid" },
	{ .key = "passes", .title = "Passes", .kind = RFL_COLUMN_INT },
	{ .key = "unit", .title = "Unit" },
	{ .key = "description", .title = "Description, or reason why not valid" },
	{ .key = "reason", .title = "Reason", .when = FOR_PROGRAMS },
};

/* Add a row for one metric or, if `together`, for all metrics. */
static bool check_metrics(struct rfl_table *t, const struct chip *chip, const char *const *metrics,
			  size_t n, bool together, bool people)
{
	struct rfl_cupti_host_metric_properties info = {
		.description = together ? "all metrics in one session" : NULL,
	};
	struct rfl_err why = RFL_ERR_INIT;
	size_t passes = 0;
	const bool valid =
		(together || rfl_cupti_metric(chip->host, metrics[0], &info, &why) == RFL_OK) &&
		rfl_cupti_passes(chip->host, metrics, n, &passes, NULL, &why) == RFL_OK;

	rfl_table_text(t, together ? "(together)" : metrics[0]);
	rfl_table_text(t, valid ? "yes" : "no");
	rfl_table_int(t, valid ? (int64_t)passes : RFL_INT_UNKNOWN);
	rfl_table_text(t, info.unit);
	rfl_table_text(t, people && !valid ? why.msg : info.description);
	if (!people)
		rfl_table_text(t, valid ? NULL : why.msg);
	return valid;
}

static enum rfl_rc check_chip(struct rfl_cli *cli, const struct chip_args *a,
			      const struct chip *chip, struct rfl_err *err)
{
	struct rfl_metric_set set = { .n = 0 };
	const char *const *metrics = a->metrics.items;
	size_t n = a->metrics.n;
	bool valid = true;

	if (!chip->host)
		return rfl_err_pass(err, &chip->why);
	if (!chip->f && n == 0)
		return rfl_usage(err, "--metrics is required for %s, which has no formulas; add it",
				 chip->name);
	if (n == 0) {
		rfl_metric_set_add_sets(&set, chip->f, RFL_SET_CORE | RFL_SET_FLOPS,
					rfl_precision_names[a->precision]);
		metrics = set.names;
		n = set.n;
	}
	struct rfl_table *t = new_table(metric_columns, RFL_ARRAY_LEN(metric_columns), a);
	for (size_t i = 0; i < n; i++)
		valid &= check_metrics(t, chip, &metrics[i], 1, false, for_people(a));
	if (valid)
		valid = check_metrics(t, chip, metrics, n, true, for_people(a));
	rfl_table_note(t, "%s, according to %s.", chip->name, chip->lib->path);
	enum rfl_rc rc = rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
	return rc == RFL_OK && !valid ? RFL_EFAILED : rc;
}

/* ---- check: this machine ---- */

static const struct rfl_column here_columns[] = {
	{ .key = "what", .title = "What" },
	{ .key = "state", .title = "State" },
	{ .key = "detail", .title = "Found" },
	{ .key = "reason", .title = "Reason", .when = FOR_PROGRAMS },
};

static bool fails_alike(const struct rfl_gpu_check_row *a, const struct rfl_gpu_check_row *b)
{
	return a->state == RFL_GPU_CHECK_FAILED && b->state == RFL_GPU_CHECK_FAILED &&
	       strcmp(a->reason, b->reason) == 0;
}

/* In text tables, reasons and fixes are notes below the table; rows that failed for the same reason
 * share a note. */
static void here_rows(struct rfl_table *t, const struct rfl_gpu_check_row *rows, size_t n,
		      bool people)
{
	for (size_t i = 0; i < n; i++) {
		const struct rfl_gpu_check_row *row = &rows[i];
		const bool skipped = row->state == RFL_GPU_CHECK_SKIPPED;
		RFL_AUTO(buf) what = { .len = 0 };
		size_t first = 0;

		rfl_table_text(t, row->what);
		rfl_table_text(t, rfl_gpu_check_state_names[row->state]);
		rfl_table_text(t, people && skipped ? row->reason : row->detail);
		if (!people) {
			rfl_table_text(t, row->reason);
			continue;
		}
		while (first < i && !fails_alike(&rows[first], row))
			first++;
		if (row->state != RFL_GPU_CHECK_FAILED || first < i)
			continue;
		for (size_t k = i; k < n; k++)
			if (fails_alike(row, &rows[k]))
				rfl_buf_printf(&what, "%s%s", k > i ? ", " : "", rows[k].what);
		rfl_table_note(t, "%s: %s", rfl_buf_str(&what), row->reason);
	}
}

/* The counters of the CPU need neither a GPU nor CUPTI. */
static void processor_row(struct rfl_table *t, bool people)
{
	struct rfl_gpu_check_row row = { .what = "cpu", .state = RFL_GPU_CHECK_FAILED };
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_perf_status s;
	char found[160];

	if (rfl_perf_look(&s, &why) != RFL_OK) {
		row.reason = why.msg;
	} else {
		snprintf(found, sizeof(found),
			 "%s: %zu hardware events (%zu for FLOPs, %zu for memory), %zu kernel "
			 "events",
			 s.processor, s.hardware, s.flops, s.dram, s.software);
		row.detail = found;
		if (s.hardware)
			row.state = RFL_GPU_CHECK_OK;
		else
			row.reason = s.no_hardware;
	}
	here_rows(t, &row, 1, people);
	if (row.state == RFL_GPU_CHECK_OK && people && s.no_flops[0] != '\0')
		rfl_table_note(t, "CPU, FLOPs: %s", s.no_flops);
	if (row.state == RFL_GPU_CHECK_OK && people && s.no_dram[0] != '\0')
		rfl_table_note(t, "CPU, memory: %s", s.no_dram);
}

static enum rfl_rc check_here(struct rfl_cli *cli, const struct chip_args *a, struct rfl_err *err)
{
	const struct rfl_gpu_check_request request = {
		.places = rfl_cli_places(cli),
		.device = (int)a->device,
		.precision = rfl_precision_names[a->precision],
		.self_test = a->self_test,
	};
	const struct rfl_gpu_check_row *none = NULL, *some = NULL; /* the first that failed */
	RFL_AUTOPTR(gpu_check) check = rfl_gpu_check_new(&request);
	struct rfl_table *t = new_table(here_columns, RFL_ARRAY_LEN(here_columns), a);

	here_rows(t, check->rows, check->n, for_people(a));
	processor_row(t, for_people(a));
	enum rfl_rc rc = rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
	for (size_t i = check->n; i-- > 0;) {
		const struct rfl_gpu_check_row *row = &check->rows[i];

		if (row->state == RFL_GPU_CHECK_FAILED && row->rc == RFL_EUNAVAILABLE)
			none = row;
		if (row->state == RFL_GPU_CHECK_FAILED && row->rc == RFL_EFAILED)
			some = row;
	}
	if (rc == RFL_OK && none)
		rc = rfl_fail(
			err, RFL_EUNAVAILABLE, 0,
			"GPU counters cannot be read here; '%s' shows the fix. You need them only "
			"to count on an NVIDIA GPU: without counters, FLOPs and bytes are "
			"computed from the network",
			none->what);
	else if (rc == RFL_OK && some)
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "GPU counters can be read, but a check failed; see '%s' for the fix",
			      some->what);
	return rc;
}

static enum rfl_rc check_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct chip_args *a = args;
	RFL_CLEANUP(chip_fini) struct chip chip = { .f = NULL };
	enum rfl_rc rc;

	if (!a->chip && a->metrics.n)
		return rfl_usage(err, "--metrics needs --chip; add it");
	if (!a->chip)
		return check_here(cli, a, err);
	rc = chip_init(cli, &chip, a->chip, err);
	return rc ? rc : check_chip(cli, a, &chip, err);
}

const struct rfl_cmd rfl_cmd_counters_check = {
	.name = "counters check",
	.summary = "check whether counters can be read here, or whether a chip has certain metrics",
	.description =
		"Without --chip, checks driver, GPU, CUPTI and permissions, runs a self-test, "
		"explains how to fix a failure, and lists the counters of the CPU. The exit "
		"code is 77 if GPU counters cannot be read, and 1 if some of them cannot be read "
		"or the self-test fails. With --chip, checks each metric, and the number of passes "
		"for all metrics together; neither GPU nor driver is needed. The exit code is 1 if "
		"a metric does not exist or cannot be combined with the others.",
	.example = "roofline counters check\n"
		   "roofline counters check --chip GH100 --metrics "
		   "dram__bytes_read.sum,lts__t_bytes.sum",
	.opts = check_opts,
	.args_size = sizeof(struct chip_args),
	.run = check_run,
};
