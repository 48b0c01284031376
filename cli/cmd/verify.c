/*
 * verify.c - roofline verify: does an engine compute what PyTorch computes?
 */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "cli/put.h"
#include "machine/machine.h"
#include "report/table.h"
#include "runner/verify.h"
#include "runner/verify/golden.h"

struct verify_args {
	struct rfl_opt_list files;
	const char *engine;
	int64_t threads;
	int device, precision, layout, format;
	bool all;
};

#define AT(member) offsetof(struct verify_args, member)

/* Those that have rules. */
static const char *const precisions[] = { "fp32", "bf16", NULL };
static const enum rfl_precision precision_of[] = { RFL_PRECISION_FP32, RFL_PRECISION_BF16 };

/* clang-format off */
static const struct rfl_opt opts[] = {
	{ .name = "engine", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(engine), .def = "auto",
	  .help = "what runs it: torch, torch@2.11; 'roofline list engines' names them" },
	{ .name = "backend", .meta = "DEVICE", .kind = RFL_OPT_CHOICE, .offset = AT(device),
	  .choices = rfl_device_names, .def = "cpu", .help = "where it runs" },
	{ .name = "threads", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(threads), .def = "0",
	  .min = 0, .max = 4096, .help = "compute threads; 0 is every core that the process may use" },
	{ .name = "precision", .meta = "P", .kind = RFL_OPT_CHOICE, .offset = AT(precision),
	  .choices = precisions, .def = "fp32", .help = "arithmetic of the network" },
	{ .name = "layout", .meta = "LAYOUT", .kind = RFL_OPT_CHOICE, .offset = AT(layout),
	  .choices = rfl_layout_names, .def = "nchw", .help = "order of images and weights in memory" },
	{ .name = "all", .kind = RFL_OPT_FLAG, .offset = AT(all),
	  .help = "every comparison, not the worst of each field" },
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};
/* clang-format on */

static const struct rfl_column columns[] = {
	{ .key = "model", .title = "Model", .kind = RFL_COLUMN_TEXT },
	{ .key = "section", .title = "Section", .kind = RFL_COLUMN_TEXT },
	{ .key = "field", .title = "Field", .kind = RFL_COLUMN_TEXT },
	{ .key = "values", .title = "Values", .kind = RFL_COLUMN_INT },
	{ .key = "item", .title = "Shown", .kind = RFL_COLUMN_TEXT },
	{ .key = "expected", .title = "Expected", .kind = RFL_COLUMN_REAL, .digits = 9 },
	{ .key = "got", .title = "Got", .kind = RFL_COLUMN_REAL, .digits = 9 },
	{ .key = "relative_difference",
	  .title = "Rel. diff.",
	  .kind = RFL_COLUMN_REAL,
	  .digits = 2 },
	{ .key = "allowed", .title = "Allowed", .kind = RFL_COLUMN_REAL, .digits = 2 },
	{ .key = "verdict", .title = "Verdict", .kind = RFL_COLUMN_TEXT },
	{ .key = "note", .title = "Note", .kind = RFL_COLUMN_TEXT },
};

/* The comparisons of one file (or of the fill), under the name of a model. */
struct shown {
	struct rfl_table *table;
	size_t compared, different;
};

/* Relative to the expected value; absolute where that is 0. */
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

/* One row per field: its worst value; and every other value that differs. */
static void add_field(struct shown *s, const char *model, const struct rfl_check *first, size_t n,
		      bool all)
{
	const struct rfl_check *worst = first;

	for (size_t i = 1; i < n; i++) {
		const double a = rfl_check_strain(&first[i]), b = rfl_check_strain(worst);

		if (a > b ||
		    (a == b && rfl_check_difference(&first[i]) > rfl_check_difference(worst)))
			worst = &first[i];
	}
	if (!all)
		add_row(s, model, worst, n);
	for (size_t i = 0; i < n; i++) {
		const bool differs = first[i].verdict == RFL_VERDICT_DIFFERS;

		s->different += differs;
		if (all || (differs && &first[i] != worst))
			add_row(s, model, &first[i], 1);
	}
	s->compared += n;
}

static void add_checks(struct shown *s, const char *model, const struct rfl_checks *checks,
		       bool all)
{
	for (size_t i = 0, n; i < checks->n; i += n) {
		const struct rfl_check *first = &checks->items[i];

		for (n = 1; i + n < checks->n; n++)
			if (strcmp(first->section, first[n].section) != 0 ||
			    strcmp(first->what, first[n].what) != 0)
				break;
		add_field(s, model, first, n, all);
	}
}

/* One file, or with path NULL the formula that fills weights. */
static enum rfl_rc verify_one(struct shown *s, const char *path,
			      const struct rfl_verify_setup *setup, bool all, struct rfl_err *err)
{
	struct rfl_checks *checks = NULL;
	struct rfl_golden *golden = NULL;
	enum rfl_rc rc = path ? rfl_golden_load(path, &golden, err) : RFL_OK;

	if (rc == RFL_OK)
		rc = rfl_checks_new(path ? setup->layout : RFL_LAYOUT_NCHW, &checks, err);
	if (rc == RFL_OK)
		rc = path ? rfl_verify_golden(golden, setup, checks, err)
			  : rfl_verify_fill(checks, err);
	if (rc == RFL_OK)
		add_checks(s, path ? golden->model : NULL, checks, all);
	rfl_checks_free(checks);
	rfl_golden_free(golden);
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
	};
	struct rfl_engine_list *engines = NULL;
	struct rfl_machine *machine = NULL;
	struct shown s = { .table = NULL };
	enum rfl_rc rc = RFL_OK;

	if (setup.threads == 0) {
		rc = rfl_machine_new(&machine, err);
		setup.threads = rc == RFL_OK ? rfl_machine_threads(machine) : 0;
	}
	if (rc == RFL_OK)
		rc = rfl_engine_list_new(cli->plugin_dirs, &engines, err);
	if (rc == RFL_OK)
		rc = rfl_engine_load(engines, a->engine, setup.device, &setup.ops, err);
	if (rc)
		goto done;
	s.table = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	if (!s.table) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	rc = verify_one(&s, NULL, &setup, a->all, err);
	for (size_t i = 0; i < a->files.n && rc == RFL_OK; i++) {
		rfl_cli_progress(cli, "%zu/%zu %s", i + 1, a->files.n, a->files.items[i]);
		rc = verify_one(&s, a->files.items[i], &setup, a->all, err);
	}
	rfl_cli_progress(cli, NULL);
	if (rc)
		goto done;
	rfl_table_note(s.table, "%zu values compared, %zu differ: %s %s (%s), %s, %s, %d threads",
		       s.compared, s.different, setup.ops->name, setup.ops->library_version(),
		       setup.ops->variant, rfl_precision_names[setup.precision],
		       rfl_layout_names[setup.layout], setup.threads);
	rc = rfl_cli_put_table(cli, s.table, (enum rfl_format)a->format, err);
	if (rc == RFL_OK && s.different > 0)
		rc = RFL_EFAILED; /* printed */
done:
	rfl_table_free(s.table);
	rfl_engine_list_free(engines);
	rfl_machine_free(machine);
	return rc;
}

const struct rfl_cmd rfl_cmd_verify = {
	.name = "verify",
	.summary = "compare an engine with golden files of PyTorch",
	.operands = "FILE.json...",
	.description =
		"Runs golden files through an engine: logits, every layer's output, losses, "
		"gradients and steps of training, from weights that a formula gives. Each field is "
		"shown by its worst value; the last column says why a value is not judged. "
		"Differences are relative. Exit code 1 when a value differs by more than PyTorch's "
		"own float32 may.",
	.example = "roofline verify logits_resnet50.json train_resnet50.json\n"
		   "roofline verify --engine torch@2.11 --layout nhwc --all train_vgg16.json",
	.opts = opts,
	.args_size = sizeof(struct verify_args),
	.operands_offset = AT(files),
	.run = run,
};
