/*
 * counters_list.c - roofline counters list: the chips; what is counted on one, by which
 * metrics, in how many passes; the same as an argument of ncu; and all metrics of a chip.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cmd.h"
#include "cli/cmd/counters_chip.h"
#include "cli/put.h"
#include "profile/chips.h"
#include "profile/cupti/plan.h"
#include "report/table.h"
#include "runner/engine.h"

#define RANGE_PROFILER_SINCE 75 /* compute capability */

struct list_args {
	const char *chip;
	const char *precision;
	bool ncu, all;
	int format;
};

static const struct rfl_opt opts[] = {
	{ .name = "chip",
	  .meta = "CHIP",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct list_args, chip),
	  .help = "a chip (GH100) or a product (H100); without it the chips are listed" },
	{ .letter = 'p',
	  .name = "precision",
	  .meta = "NAME",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct list_args, precision),
	  .help = "of a run (fp32, tf32, amp, bf16, fp16): its matrix FLOPs are in the core, and "
		  "with --ncu no others are asked for" },
	{ .name = "ncu",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct list_args, ncu),
	  .help = "print the --metrics argument for ncu, in one line" },
	{ .name = "all",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct list_args, all),
	  .help = "every metric that CUPTI has for the chip, with its description" },
	RFL_OPT_FORMAT_ROW(offsetof(struct list_args, format)),
	{ .name = NULL },
};

#define TEXT(key_, title_)                                            \
	{                                                             \
		.key = key_, .title = title_, .kind = RFL_COLUMN_TEXT \
	}

/* ------------------------------------------------------------------ chips */

static const struct rfl_column chip_columns[] = {
	TEXT("chip", "Chip"),
	{ .key = "compute_capability", .title = "CC", .kind = RFL_COLUMN_REAL, .decimals = 1 },
	TEXT("family", "Formulas"),
	TEXT("products", "Products"),
};

static enum rfl_rc fill_chips(struct rfl_table *t, struct rfl_err *err)
{
	const struct rfl_chip *chip;

	for (size_t i = 0; (chip = rfl_chip_at(i)); i++) {
		struct rfl_formulas *f = NULL;
		enum rfl_rc rc = rfl_formulas_new(chip->name, &f, err);

		if (rc != RFL_OK)
			return rc;
		rfl_table_text(t, chip->name);
		rfl_table_real(t, chip->capability / 10.0);
		rfl_table_text(t, f->family);
		rfl_table_text(t, chip->products);
		rfl_formulas_free(f);
	}
	rfl_table_note(t, "'roofline counters list --chip CHIP' says what is counted on one, and "
			  "in how many passes.");
	rfl_table_note(t, "CUPTI's range profiler, which 'run --counters' uses, needs compute "
			  "capability 7.5; ncu counts on 7.0 as well.");
	return RFL_OK;
}

/* ------------------------------------------------------------------ one chip */

static const struct rfl_column quantity_columns[] = {
	TEXT("quantity", "Quantity"),
	{ .key = "weight", .title = "x", .kind = RFL_COLUMN_REAL, .digits = 3 },
	TEXT("metric", "Metric"),
	TEXT("set", "Set"),
	{ .key = "passes", .title = "Passes", .kind = RFL_COLUMN_INT },
	TEXT("note", "Note"),
};

static const unsigned sets[] = { RFL_SET_CORE, RFL_SET_FLOPS, RFL_SET_AUDIT, RFL_SET_LINKS };
enum { SETS = RFL_ARRAY_LEN(sets) };

struct listing {
	struct rfl_table *t;
	const struct rfl_asked_chip *chip;
	const char *precision;
	bool people;
	struct rfl_cupti_plan *plan; /* owns the names below; NULL without CUPTI */
	struct rfl_metric_set chosen[SETS];
	size_t passes[SETS]; /* 0: not known */
};

/* The sessions of a run that asks for everything, as far as CUPTI is there to plan them. */
static enum rfl_rc choose_sets(struct listing *l, struct rfl_err *err)
{
	unsigned wanted = 0;
	enum rfl_rc rc;

	for (size_t i = 0; i < SETS; i++) {
		wanted |= sets[i];
		if (!l->chip->host)
			rfl_metric_set_add_sets(&l->chosen[i], l->chip->f, sets[i], l->precision);
	}
	if (!l->chip->host)
		return RFL_OK;
	rc = rfl_cupti_plan_new(l->chip->lib, l->chip->name, NULL, wanted, l->precision, &l->plan,
				err);
	for (size_t i = 0; rc == RFL_OK && i < SETS; i++)
		for (size_t k = 0; k < l->plan->n; k++)
			if (l->plan->sessions[k].set == sets[i]) {
				l->passes[i] = l->plan->sessions[k].passes;
				l->chosen[i] = l->plan->sessions[k].metrics;
			}
	return rc;
}

/* The set that counts a metric of a quantity: its own, or that in which it costs no pass. */
static int set_with(const struct listing *l, int own, const char *metric)
{
	for (int i = 0; own >= 0 && i < SETS; i++) {
		const struct rfl_metric_set *s = &l->chosen[(i + own) % SETS];

		for (size_t m = 0; m < s->n; m++)
			if (strcmp(s->names[m], metric) == 0)
				return (i + own) % SETS;
	}
	return own;
}

/* The row of `sets` that counts a quantity in this run, or -1. */
static int set_of(const struct listing *l, enum rfl_quantity q)
{
	const unsigned set = rfl_metric_set_of(q, l->precision);

	for (int i = 0; i < SETS; i++)
		if (sets[i] == set)
			return i;
	return -1;
}

static void metric_row(struct listing *l, enum rfl_quantity q, int set, double weight, size_t slot,
		       const char *note)
{
	const char *metric = l->chip->f->slots[slot].name;
	const bool absent = l->chip->host &&
			    rfl_cupti_metric(l->chip->host, metric, NULL, NULL) == RFL_ENOTFOUND;

	set = set_with(l, set, metric);
	rfl_table_text(l->t, rfl_quantity_info(q)->name);
	rfl_table_real(l->t, weight);
	rfl_table_text(l->t, metric);
	rfl_table_text(l->t, set < 0 ? NULL : rfl_counter_set_name(sets[set]));
	if (set >= 0 && l->passes[set])
		rfl_table_int(l->t, (int64_t)l->passes[set]);
	else
		rfl_table_null(l->t);
	rfl_table_text(l->t, absent ? "this CUPTI does not have it for the chip" : note);
}

/* Why a quantity is not counted on the chip at all; NULL: it is. */
static const char *why_not(const struct listing *l, enum rfl_quantity q)
{
	const char *impossible = l->chip->f->quantities[q].impossible;

	if (rfl_metric_set_way(l->chip->f, q, NULL) >= 0)
		return NULL;
	if (impossible)
		return impossible;
	return l->chip->f->quantities[q].nways > 0 ? "found in reports of profilers only" : NULL;
}

/* Why a quantity is not counted: for people one line for all that share the reason, at the first of
 * them. */
static void put_reason(struct listing *l, enum rfl_quantity q, const char *reason)
{
	struct rfl_buf names;

	if (!l->people) {
		rfl_table_text(l->t, rfl_quantity_info(q)->name);
		for (int i = 0; i < 4; i++)
			rfl_table_null(l->t);
		rfl_table_text(l->t, reason);
		return;
	}
	rfl_buf_init(&names, 1024);
	for (int other = 0; other < RFL_QUANTITY_COUNT; other++) {
		const char *same = why_not(l, (enum rfl_quantity)other);

		if (!same || strcmp(same, reason) != 0)
			continue;
		if (other < (int)q)
			goto done; /* said */
		rfl_buf_printf(&names, "%s%s", names.len ? ", " : "",
			       rfl_quantity_info((enum rfl_quantity)other)->name);
	}
	rfl_table_note(l->t, "%s: %s.", rfl_buf_str(&names), reason);
done:
	rfl_buf_fini(&names);
}

static void quantity_rows(struct listing *l, enum rfl_quantity q)
{
	const struct rfl_formulas *f = l->chip->f;
	const char *reason = why_not(l, q);
	const struct rfl_formula_way *w;
	const int set = set_of(l, q);
	int way = set < 0 ? -1 : rfl_metric_set_way(f, q, &l->chosen[set]);

	if (reason)
		put_reason(l, q, reason);
	if (way < 0)
		way = rfl_metric_set_way(f, q, NULL);
	if (way < 0)
		return;
	w = &f->quantities[q].ways[way];
	for (size_t i = 0; i < w->nterms; i++)
		metric_row(l, q, set, w->terms[i].weight, w->terms[i].slot,
			   i == 0 ? w->caveat : NULL);
	if (f->quantities[q].less.reason)
		metric_row(l, q, set, -f->quantities[q].less.weight, f->quantities[q].less.slot,
			   "moves of registers, taken off");
}

/* The core by precision, since that is what a run is asked with. */
static enum rfl_rc core_note(struct listing *l, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&text, 1024);
	for (size_t i = 0; rc == RFL_OK && rfl_precision_names[i]; i++) {
		struct rfl_metric_set set;
		size_t passes = 0;

		rc = rfl_metric_set_choose(l->chip->host, l->chip->f, RFL_SET_CORE,
					   rfl_precision_names[i], &set, &passes, err);
		rfl_buf_printf(&text, "%s%s %zu", i ? ", " : "", rfl_precision_names[i], passes);
	}
	if (rc == RFL_OK)
		rfl_table_note(l->t, "Passes of the core with the matrix FLOPs of a precision: %s.",
			       rfl_buf_str(&text));
	rfl_buf_fini(&text);
	return rc;
}

static enum rfl_rc fill_quantities(struct listing *l, struct rfl_err *err)
{
	enum rfl_rc rc = choose_sets(l, err);

	if (rc != RFL_OK)
		return rc;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		quantity_rows(l, (enum rfl_quantity)q);
	rfl_table_note(l->t,
		       "%s, formulas of %s. A quantity is the sum of weight x metric. The step is "
		       "run once for each pass of a set; without a set it is found in files only.",
		       l->chip->name, l->chip->f->family);
	if (rfl_chip_find(l->chip->name)->capability < RANGE_PROFILER_SINCE)
		rfl_table_note(l->t, "'run --counters' does not count on this chip, ncu does: "
				     "CUPTI's range profiler needs compute capability 7.5.");
	if (!l->chip->host) {
		rfl_table_note(l->t, "Neither names nor passes were checked: %s", l->chip->why.msg);
		return RFL_OK;
	}
	rc = core_note(l, err);
	rfl_table_note(l->t, "Names and passes were asked of %s.", l->chip->lib->path);
	return rc;
}

/* ------------------------------------------------------------------ all metrics */

static const struct rfl_column metric_columns[] = {
	TEXT("metric", "Metric"),
	TEXT("unit", "Unit"),
	TEXT("hw_unit", "Counted in"),
	TEXT("description", "Description"),
};

static enum rfl_rc fill_all(struct rfl_table *t, const struct rfl_asked_chip *chip,
			    struct rfl_err *err)
{
	const char **metrics = NULL;
	size_t n = 0;
	enum rfl_rc rc;

	if (!chip->host)
		return rfl_fail(err, chip->why.rc, chip->why.native, "%s", chip->why.msg);
	rc = rfl_cupti_metrics(chip->host, &metrics, &n, err);
	for (size_t i = 0; i < n; i++) {
		struct rfl_cupti_host_metric_properties info;

		rc = rfl_cupti_describe(chip->host, metrics[i], &info, err);
		if (rc != RFL_OK)
			break;
		rfl_table_text(t, metrics[i]);
		rfl_table_text(t, info.unit);
		rfl_table_text(t, info.hw_unit);
		rfl_table_text(t, info.description);
	}
	rfl_table_note(t,
		       "%zu metrics of %s in %s. To count one, append a rollup: .sum, .avg, "
		       ".min or .max of a counter; .ratio or .pct of a ratio; "
		       ".avg.pct_of_peak_sustained_elapsed of a throughput.",
		       rfl_table_rows(t), chip->name, chip->lib->path);
	free(metrics);
	return rc;
}

/* ------------------------------------------------------------------ ncu's argument */

/* What a roofline of training needs, as far as it exists. ncu runs each kernel once per pass. */
static enum rfl_rc print_ncu(struct rfl_cli *cli, const struct rfl_asked_chip *chip,
			     const char *precision, struct rfl_err *err)
{
	const unsigned wanted = RFL_SET_CORE | RFL_SET_FLOPS | (precision ? 0 : RFL_SET_AUDIT);
	struct rfl_metric_set set = { .n = 0 }, there = { .n = 0 };
	struct rfl_buf line;
	size_t passes = 0;
	enum rfl_rc rc = RFL_OK;

	rfl_metric_set_add_sets(&set, chip->f, wanted, precision);
	for (size_t i = 0; i < set.n; i++)
		if (!chip->host || rfl_cupti_metric(chip->host, set.names[i], NULL, NULL) == RFL_OK)
			there.names[there.n++] = set.names[i];
	if (there.n == 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "%s: no metric is known for this chip",
				chip->name);
	if (chip->host)
		rc = rfl_cupti_passes(chip->host, there.names, there.n, &passes, NULL, err);
	if (rc != RFL_OK)
		return rc;
	rfl_buf_init(&line, 0);
	rfl_buf_puts(&line, "--metrics ");
	for (size_t i = 0; i < there.n; i++)
		rfl_buf_printf(&line, "%s%s", i ? "," : "", there.names[i]);
	rfl_buf_putc(&line, '\n');
	rc = rfl_cli_put(cli, &line, "the argument", err);
	rfl_buf_fini(&line);
	if (chip->host)
		rfl_log(RFL_LOG_INFO, "%zu metrics of %s in %zu passes, by %s", there.n, chip->name,
			passes, chip->lib->path);
	else
		rfl_log(RFL_LOG_INFO,
			"%zu metrics of %s; neither names nor passes were checked: %s", there.n,
			chip->name, chip->why.msg);
	return rc;
}

/* ------------------------------------------------------------------ the command */

/* One of a run: without the option no matrix FLOPs are in the core, so it is not a choice with a
 * default. */
static bool is_precision(const char *name)
{
	for (size_t i = 0; rfl_precision_names[i]; i++)
		if (strcmp(rfl_precision_names[i], name) == 0)
			return true;
	return false;
}

static enum rfl_rc check_args(const struct list_args *a, struct rfl_err *err)
{
	if (!a->chip && (a->ncu || a->all || a->precision))
		return rfl_fail(err, RFL_EUSAGE, 0, "--%s: needs --chip",
				a->ncu   ? "ncu"
				: a->all ? "all"
					 : "precision");
	if (a->ncu && a->all)
		return rfl_fail(err, RFL_EUSAGE, 0, "--ncu, --all: one at a time");
	if (a->ncu && a->format != RFL_FORMAT_TABLE)
		return rfl_fail(err, RFL_EUSAGE, 0, "--ncu: is one line and has no --format");
	if (a->precision && !is_precision(a->precision))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--precision: '%s' is none of fp32, tf32, amp, bf16, fp16",
				a->precision);
	return RFL_OK;
}

static enum rfl_rc print_table(struct rfl_cli *cli, const struct list_args *a,
			       const struct rfl_asked_chip *chip, struct rfl_err *err)
{
	struct listing l = {
		.chip = chip,
		.precision = a->precision,
		.people = a->format == RFL_FORMAT_TABLE || a->format == RFL_FORMAT_MD,
	};
	enum rfl_rc rc;

	if (!chip)
		l.t = rfl_table_new(chip_columns, RFL_ARRAY_LEN(chip_columns));
	else if (a->all)
		l.t = rfl_table_new(metric_columns, RFL_ARRAY_LEN(metric_columns));
	else
		l.t = rfl_table_new(quantity_columns, RFL_ARRAY_LEN(quantity_columns));
	if (!l.t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the table");
	if (!chip)
		rc = fill_chips(l.t, err);
	else
		rc = a->all ? fill_all(l.t, chip, err) : fill_quantities(&l, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_table(cli, l.t, (enum rfl_format)a->format, err);
	rfl_table_free(l.t);
	rfl_cupti_plan_free(l.plan);
	return rc;
}

static enum rfl_rc list_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct list_args *a = args;
	struct rfl_asked_chip chip = { .f = NULL };
	enum rfl_rc rc = check_args(a, err);

	if (rc != RFL_OK || !a->chip)
		return rc == RFL_OK ? print_table(cli, a, NULL, err) : rc;
	rc = rfl_asked_chip_init(&chip, a->chip, err);
	if (rc == RFL_OK && !chip.f && !a->all)
		rc = rfl_fail(err, RFL_ENOTFOUND, 0,
			      "%s: there are no formulas for this chip; --all lists its metrics",
			      chip.name);
	if (rc == RFL_OK)
		rc = a->ncu ? print_ncu(cli, &chip, a->precision, err)
			    : print_table(cli, a, &chip, err);
	rfl_asked_chip_fini(&chip);
	return rc;
}

const struct rfl_cmd rfl_cmd_counters_list = {
	.name = "counters list",
	.summary = "print what can be counted on a chip, by which metrics, in how many passes",
	.description =
		"Needs no GPU. Names and passes are asked of libcupti, which comes with a CUDA "
		"toolkit and with a PyTorch built with CUDA; without it the formulas are printed "
		"unchecked. RFL_CUPTI_PATH names a libcupti or its folder. The argument for ncu "
		"has "
		"time, traffic and FLOPs of all data types, or of --precision alone; PCI Express "
		"and "
		"NVLink, which are counted apart, are not in it.",
	.example = "roofline counters list --chip GH100\n"
		   "ncu $(roofline counters list --chip H100 --ncu) --csv --page raw "
		   "--print-units base --log-file "
		   "out.csv "
		   "python train.py",
	.opts = opts,
	.args_size = sizeof(struct list_args),
	.operands_offset = -1,
	.run = list_run,
};
