/* verify.c - roofline verify: check that an engine computes the same values as PyTorch. */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "complexity/zoo.h"
#include "machine/machine.h"
#include "runner/verify.h"
#include "runner/verify/golden.h"

struct verify_args {
	struct rfl_opt_list files;
	const char *engine;
	int64_t threads;
	int device, precision, layout, attention, format;
	bool all;
};

#define OPT(kind, member, ...) RFL_OPT(struct verify_args, kind, member, __VA_ARGS__)

/* Precisions for which tolerances are defined. */
static const char *const precisions[] = { "fp32", "bf16", NULL };
static const enum rfl_precision precision_of[] = { RFL_PRECISION_FP32, RFL_PRECISION_BF16 };

static const struct rfl_opt opts[] = {
	OPT(TEXT, engine, .name = "engine", .meta = "NAME", .def = "auto",
	    .help = "engine to use, such as torch or torch@2.11; see 'roofline list engines'"),
	OPT(CHOICE, device, .name = "backend", .meta = "DEVICE", .choices = rfl_device_names,
	    .def = "cpu", .help = "device to run on"),
	OPT(INT, threads, .name = "threads", .meta = "N", .def = "0", .min = 0, .max = 4096,
	    .help = "number of compute threads; 0: one per usable core"),
	OPT(CHOICE, precision, .name = "precision", .meta = "P", .choices = precisions,
	    .def = "fp32", .help = "arithmetic of the network"),
	OPT(CHOICE, layout, .name = "layout", .meta = "LAYOUT", .choices = rfl_layout_names,
	    .def = "nchw", .help = "order of images and weights in memory"),
	OPT(CHOICE, attention, .name = "attention", .meta = "FORM", .choices = rfl_attention_names,
	    .def = "auto", .help = "attention implementation in the network; auto: as in the file"),
	OPT(FLAG, all, .name = "all",
	    .help = "show every comparison, not only the worst of each field"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static const struct rfl_column columns[] = {
	{ .key = "model", .title = "Model" },
	{ .key = "section", .title = "Section" },
	{ .key = "field", .title = "Field" },
	{ .key = "values", .title = "Values", .kind = RFL_COLUMN_INT },
	{ .key = "item", .title = "Shown" },
	{ .key = "expected", .title = "Expected", .kind = RFL_COLUMN_REAL, .digits = 9 },
	{ .key = "got", .title = "Got", .kind = RFL_COLUMN_REAL, .digits = 9 },
	{ .key = "relative_difference",
	  .title = "Rel. diff.",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 2 },
	{ .key = "allowed", .title = "Allowed", .kind = RFL_COLUMN_REAL, .digits = 2 },
	{ .key = "verdict", .title = "Verdict" },
	{ .key = "note", .title = "Note" },
};

/* The table of comparisons, and their number. */
struct shown {
	struct rfl_table *table;
	size_t compared, different;
};

/* The difference relative to the expected value; absolute if that is 0. */
static double relative(const struct rfl_check *c, double difference)
{
	return c->expected != 0 ? difference / fabs(c->expected) : difference;
}

static void add_row(struct shown *s, const char *model, const struct rfl_check *c, size_t values)
{
	const double d = rfl_check_difference(c);

	rfl_table_text(s->table, model);
	rfl_table_text(s->table, c->section);
	rfl_table_text(s->table, c->what);
	rfl_table_int(s->table, (int64_t)values);
	rfl_table_text(s->table, *c->item ? c->item : NULL);
	rfl_table_real(s->table, c->expected);
	rfl_table_real(s->table, c->got);
	rfl_table_real(s->table, isinf(d) ? NAN : relative(c, d));
	rfl_table_real(s->table, relative(c, c->allowed));
	rfl_table_text(s->table, rfl_verdict_names[c->verdict]);
	rfl_table_text(s->table, c->note);
}

/* Add a row for the worst value of each field, and for every other value that differs. */
static void add_checks(struct shown *s, const char *model, const struct rfl_checks *checks,
		       bool all)
{
	for (size_t i = 0, n; i < checks->n; i += n) {
		const struct rfl_check *first = &checks->items[i], *worst = first;

		for (n = 0; i + n < checks->n && strcmp(first->section, first[n].section) == 0 &&
			    strcmp(first->what, first[n].what) == 0;
		     n++) {
			const double a = rfl_check_strain(&first[n]), b = rfl_check_strain(worst);

			if (a > b || (a == b && rfl_check_difference(&first[n]) >
							rfl_check_difference(worst)))
				worst = &first[n];
		}
		if (!all)
			add_row(s, model, worst, n);
		for (const struct rfl_check *c = first; c < first + n; c++) {
			const bool differs = c->verdict == RFL_VERDICT_DIFFERS;

			s->different += differs;
			if (all || (differs && c != worst))
				add_row(s, model, c, 1);
		}
		s->compared += n;
	}
}

/* Verify one file or, if path is NULL, the formula that generates weights. */
static enum rfl_rc verify_one(struct shown *s, const char *path,
			      const struct rfl_verify_setup *setup, bool all, struct rfl_err *err)
{
	RFL_AUTOPTR(checks) checks = rfl_checks_new();
	RFL_AUTOPTR(golden) golden = NULL;
	enum rfl_rc rc = path ? rfl_golden_load(path, &golden, err) : RFL_OK;

	if (!path)
		rfl_verify_fill(checks);
	else if (rc == RFL_OK)
		rc = rfl_verify_golden(golden, setup, checks, err);
	if (rc == RFL_OK)
		add_checks(s, path ? golden->model : NULL, checks, all);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct verify_args *a = args;
	struct rfl_verify_setup setup = {
		.device = (enum rfl_device)a->device,
		.threads = (int)a->threads,
		.precision = precision_of[a->precision],
		.layout = (enum rfl_layout)a->layout,
		.attention = (enum rfl_attention)a->attention,
	};
	RFL_AUTOPTR(engine_list) engines = NULL;
	RFL_AUTOPTR(machine) machine = NULL;
	struct shown s = { .table = NULL };
	enum rfl_rc rc;

	if ((setup.threads == 0 && (rc = rfl_machine_new(&machine, err))) ||
	    (rc = rfl_engine_list_new(cli->plugin_dirs, &engines, err)) ||
	    (rc = rfl_engine_load(engines, a->engine, setup.device, &setup.ops, err)))
		return rc;
	if (setup.threads == 0)
		setup.threads = rfl_machine_threads(machine);
	s.table = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	rc = verify_one(&s, NULL, &setup, a->all, err);
	for (size_t i = 0; i < a->files.n && rc == RFL_OK; i++) {
		rfl_cli_progress(cli, "%zu/%zu %s", i + 1, a->files.n, a->files.items[i]);
		rc = verify_one(&s, a->files.items[i], &setup, a->all, err);
	}
	rfl_cli_progress(cli, NULL);
	if (rc) {
		rfl_table_free(s.table);
		return rc;
	}
	rfl_table_note(s.table, "%zu values compared, %zu differ: %s %s (%s), %s, %s, %d threads",
		       s.compared, s.different, setup.ops->name, setup.ops->library_version(),
		       setup.ops->variant, rfl_precision_names[setup.precision],
		       rfl_layout_names[setup.layout], setup.threads);
	rc = rfl_cli_put_table(cli, s.table, (enum rfl_format)a->format, err);
	/* the differences are already printed */
	return rc == RFL_OK && s.different > 0 ? RFL_EFAILED : rc;
}

const struct rfl_cmd rfl_cmd_verify = {
	.name = "verify",
	.summary = "check an engine against reference files from PyTorch",
	.operands = "FILE.json...",
	.description = "Compares the results of an engine with reference files: logits, the output "
		       "of every layer, losses, gradients and training steps, with weights that "
		       "are generated by a formula. Each field is represented by its worst value; "
		       "the last column has the reason if a value is not judged. Differences are "
		       "relative. The exit code is 1 if a difference exceeds the error that "
		       "PyTorch itself may have with float32.",
	.example = "roofline verify logits_resnet50.json train_resnet50.json\n"
		   "roofline verify --engine torch@2.11 --layout nhwc --all train_vgg16.json",
	.opts = opts,
	.args_size = sizeof(struct verify_args),
	.run = run,
};
