/*
 * sections_training.c - the sections of a report on trainings to accuracy. The epochs are read from
 * epochs/<run_id>.csv next to the ledger.
 */
#include "report/report_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "plot/chart.h"
#include "report/training.h"

/* The trainings with equal settings, on one or more devices. */
struct group {
	size_t n;
	struct rfl_training *trainings;
	struct rfl_epochs *epochs; /* of each */
};

static const enum rfl_ledger_at same_settings[] = {
	RFL_LEDGER_AT_model,   RFL_LEDGER_AT_data_mode,    RFL_LEDGER_AT_precision,
	RFL_LEDGER_AT_batch,   RFL_LEDGER_AT_img_size,     RFL_LEDGER_AT_optimizer,
	RFL_LEDGER_AT_lr,      RFL_LEDGER_AT_weight_decay, RFL_LEDGER_AT_momentum,
	RFL_LEDGER_AT_augment, RFL_LEDGER_AT_seed,
};

const char *rfl_report__beside(const struct rfl_report *r, struct rfl_page *page,
			       const struct rfl_run *run, const char *folder)
{
	const char *path = NULL;
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	if (rfl_runs_beside(r->runs, run, NULL, folder, &out) &&
	    rfl_file_exists(rfl_buf_str(&out))) {
		path = rfl_arena_strdup(page->arena, rfl_buf_str(&out));
		page->failed |= !path;
	}
	page->failed |= out.failed;
	rfl_buf_fini(&out);
	return path;
}

/* Whether a row is the attempt of a training that has no epochs, such as on a missing device. */
static bool is_attempt(const struct rfl_ledger_row *row)
{
	return row->status && !rfl_text_same(row->status, "ok") &&
	       rfl_text_same(row->mode, "train") && row->data_mode &&
	       !rfl_text_same(row->data_mode, "synthetic");
}

static void free_group(struct group *g)
{
	for (size_t i = 0; g->epochs && i < g->n; i++)
		rfl_epochs_fini(&g->epochs[i]);
	g->n = 0;
}

/* Add the training of a row with its epochs, if it has any. */
static void add(const struct rfl_report *r, struct rfl_page *page, size_t i, struct group *g)
{
	const struct rfl_ledger_row *row = &r->runs->ledger->rows[i];
	const char *path = rfl_report__beside(r, page, &r->runs->runs[i], "epochs"),
		   *device = row->backend;
	struct rfl_epochs *e = &g->epochs[g->n];
	struct rfl_err err = RFL_ERR_INIT;

	if (!path && !is_attempt(row))
		return;
	*e = (struct rfl_epochs){ .n = 0 };
	if (path && rfl_epochs_load(path, e, &err) != RFL_OK) {
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "Not shown: %s.", err.msg);
		rfl_epochs_fini(e);
		return;
	}
	if (!device)
		device = row->env;
	else if (!rfl_text_same(row->env, device))
		device = rfl_arena_printf(page->arena, "%s, %s", device, row->env);
	page->failed |= !device;
	g->trainings[g->n++] = (struct rfl_training){ .device = device, .row = row, .epochs = e };
}

/* Collect the trainings that have the settings of the next row, from `*next` on. @return false at
 * the end */
static bool next_group(const struct rfl_report *r, struct rfl_page *page, size_t *next,
		       struct group *g)
{
	const struct rfl_ledger *l = r->runs ? r->runs->ledger : NULL;
	bool seen;

	free_group(g);
	for (; l && g->n == 0 && *next < l->nrows && !page->failed; ++*next) {
		const struct rfl_ledger_row *row = &l->rows[*next];

		seen = false;
		for (size_t i = 0; i < *next && !seen; i++)
			seen = rfl_ledger_same(same_settings, RFL_ARRAY_LEN(same_settings), row,
					       &l->rows[i]);
		for (size_t i = *next; i < l->nrows && !seen; i++)
			if (rfl_ledger_same(same_settings, RFL_ARRAY_LEN(same_settings), row,
					    &l->rows[i]))
				add(r, page, i, g);
	}
	return g->n > 0;
}

static bool begin(const struct rfl_report *r, struct rfl_page *page, struct group *g)
{
	const size_t n = r->runs ? r->runs->ledger->nrows : 0;

	*g = (struct group){
		.trainings = rfl_arena_array(page->arena, n + 1, sizeof(*g->trainings)),
		.epochs = rfl_arena_array(page->arena, n + 1, sizeof(*g->epochs)),
	};
	page->failed |= !g->trainings || !g->epochs;
	return !page->failed;
}

/* The first training that has epochs; the first of all if none has. */
static const struct rfl_training *first_with_epochs(const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->trainings[i].epochs->n > 0)
			return &g->trainings[i];
	return g->trainings;
}

static void say_none(struct rfl_page *page)
{
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "Missing: trainings. Train with 'roofline train --data DIR --epochs N "
		      "--devices cpu,cuda', and add --metrics logs/metrics.csv to the command of "
		      "this report; the epochs are in the folder epochs next to the ledger.");
}

static const char *title_of(const struct rfl_page *page, const struct group *g)
{
	const struct rfl_ledger_row *row = g->trainings->row;
	const char *title = rfl_arena_printf(
		page->arena, "%s on %s, %s, batch size %lld", row->model ? row->model : "a network",
		row->data_mode ? row->data_mode : "unknown data",
		row->precision ? row->precision : "unknown precision", (long long)row->batch);

	return title ? title : "";
}

/* ---- the sections ---- */

/* The result of each training as a sentence. */
void rfl_report__training_summary(const struct rfl_report *r, struct rfl_page *page)
{
	size_t next = 0, n = 0;
	struct group g;

	while ((n > 0 || begin(r, page, &g)) && next_group(r, page, &next, &g)) {
		n += g.n;
		for (size_t i = 0; i < g.n; i++) {
			struct rfl_buf text;

			rfl_buf_init(&text, 0);
			rfl_training_say(g.trainings, g.n, i, &text);
			rfl_page_text(page, RFL_BLOCK_ITEM, "%s: %s", title_of(page, &g),
				      rfl_buf_str(&text));
			page->failed |= text.failed;
			rfl_buf_fini(&text);
		}
	}
	if (n == 0)
		say_none(page);
}

struct setting {
	const char *name, *value;
};

static const struct rfl_column of_settings[] = {
	{ TEXT(struct setting, name, "Setting") },
	{ TEXT(struct setting, value, "Value") },
};

/* "0.001 in epochs 1 to 5, 0.0001 in epochs 6 to 10" */
static void put_rates(const struct rfl_epochs *e, struct rfl_buf *out)
{
	for (size_t i = 0, end; i < e->n; i = end) {
		for (end = i + 1; end < e->n && e->rows[end].lr >= e->rows[i].lr &&
				  e->rows[end].lr <= e->rows[i].lr;
		     end++)
			;
		rfl_buf_printf(out, "%s%.4g in epoch%s %lld", i ? ", " : "", e->rows[i].lr,
			       end - i > 1 ? "s" : "", (long long)e->rows[i].epoch);
		if (end - i > 1)
			rfl_buf_printf(out, " to %lld", (long long)e->rows[end - 1].epoch);
	}
}

static void settings_table(const struct group *g, struct rfl_page *page)
{
	static const struct {
		enum rfl_ledger_at column;
		const char *name;
	} settings[] = {
		{ RFL_LEDGER_AT_model, "Network" },
		{ RFL_LEDGER_AT_params, "Parameters" },
		{ RFL_LEDGER_AT_data_mode, "Data set" },
		{ RFL_LEDGER_AT_img_size, "Image size" },
		{ RFL_LEDGER_AT_classes, "Classes" },
		{ RFL_LEDGER_AT_batch, "Batch size" },
		{ RFL_LEDGER_AT_precision, "Precision" },
		{ RFL_LEDGER_AT_optimizer, "Optimizer" },
		{ RFL_LEDGER_AT_momentum, "Momentum" },
		{ RFL_LEDGER_AT_weight_decay, "Weight decay" },
		{ RFL_LEDGER_AT_augment, "Augmentation (1: on)" },
		{ RFL_LEDGER_AT_workers, "Loader threads" },
		{ RFL_LEDGER_AT_seed, "Seed" },
	};
	struct rfl_table *t = rfl_table_new(of_settings, RFL_ARRAY_LEN(of_settings));
	const struct rfl_training *of = first_with_epochs(g);
	char number[RFL_NUM_MAX];
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++) {
		const struct rfl_field *f = &rfl_ledger_fields[settings[i].column];

		if (!rfl_field_known(f, of->row))
			continue;
		rfl_table_text(t, settings[i].name);
		rfl_table_text(t, rfl_field_write(f, of->row, number));
	}
	put_rates(of->epochs, &text);
	if (text.len) {
		rfl_table_text(t, "Learning rate");
		rfl_table_text(t, rfl_buf_str(&text));
		rfl_buf_reset(&text);
		rfl_buf_printf(&text, "%.0f",
			       of->epochs->rows->samples_per_s * of->epochs->rows->train_s);
		rfl_table_text(t, "Training samples per epoch");
		rfl_table_text(t, rfl_buf_str(&text));
	}
	page->failed |= text.failed;
	rfl_buf_fini(&text);
	rfl_page_table(page, title_of(page, g), t);
}

void rfl_report__training_design(const struct rfl_report *r, struct rfl_page *page)
{
	size_t next = 0, n = 0;
	struct group g;

	while ((n > 0 || begin(r, page, &g)) && next_group(r, page, &next, &g)) {
		settings_table(&g, page);
		n += g.n;
	}
	if (n == 0)
		say_none(page);
	else
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "All devices train with the same seed: they see the same images in "
			      "the same order, with the same augmentation, and begin with the same "
			      "weights. The random numbers of dropout are those of the device.");
}

void rfl_report__training_results(const struct rfl_report *r, struct rfl_page *page)
{
	size_t next = 0, n = 0;
	struct group g;

	while ((n > 0 || begin(r, page, &g)) && next_group(r, page, &next, &g)) {
		rfl_page_heading(page, 3, "%s", title_of(page, &g));
		rfl_page_table(page, "Epochs", rfl_training_epochs(g.trainings, g.n));
		rfl_page_table(page, "Devices", rfl_training_devices(g.trainings, g.n, false));
		n += g.n;
	}
	if (n == 0)
		say_none(page);
}

void rfl_report__training_curves(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_chart *chart = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (!r->repeats) {
		say_none(page);
		return;
	}
	page->failed |= rfl_chart_accuracy(r->repeats, r->runs, NULL, &chart, &err) == RFL_ENOMEM;
	rfl_report__chart(r, page, chart, &err,
			  "Loss and accuracy of training and test after each epoch");
}

/* The command of a group: the folders are not in the ledger. */
static void put_command(const struct group *g, struct rfl_buf *out)
{
	const struct rfl_training *of = first_with_epochs(g);
	const struct rfl_ledger_row *row = of->row;

	rfl_buf_puts(out, "roofline train --data DIR --devices ");
	for (size_t i = 0; i < g->n; i++)
		rfl_buf_printf(out, "%s%s", i ? "," : "",
			       g->trainings[i].row->backend ? g->trainings[i].row->backend
							    : g->trainings[i].device);
	rfl_buf_puts(out, " --arch ");
	rfl_text_shell_word(row->model, out);
	rfl_buf_printf(out,
		       " --dataset %s --epochs %zu --batch-size %lld --precision %s --optimizer %s "
		       "--lr %.6g --weight-decay %.6g --seed %lld",
		       row->data_mode, of->epochs->n, (long long)row->batch, row->precision,
		       row->optimizer, of->epochs->n ? of->epochs->rows->lr : row->lr,
		       row->weight_decay, (long long)row->seed);
	rfl_buf_puts(out, row->augment == 0 ? " --no-augment\n" : "\n");
}

void rfl_report__training_commands(const struct rfl_report *r, struct rfl_page *page)
{
	size_t next = 0, n = 0;
	struct rfl_buf out;
	struct group g;

	rfl_buf_init(&out, 0);
	while ((n > 0 || begin(r, page, &g)) && next_group(r, page, &next, &g)) {
		const struct rfl_ledger_row *row = first_with_epochs(&g)->row;

		n += g.n;
		if (row->model && row->data_mode && row->precision && row->optimizer)
			put_command(&g, &out);
	}
	rfl_buf_puts(&out, r->command);
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "The trainings are reconstructed from the ledger, which does not have the "
		      "folder of the data, DIR, or the schedule of the learning rate. The last "
		      "command writes this report.");
	rfl_page_text(page, RFL_BLOCK_CODE, "%s", rfl_buf_str(&out));
	page->failed |= out.failed;
	rfl_buf_fini(&out);
}
