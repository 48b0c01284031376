/*
 * sections_training.c - the sections of a report on training runs to accuracy. The epochs are read
 * from epochs/<run_id>.csv next to the ledger.
 */
#include "report/report_impl.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "plot/chart.h"
#include "report/complexity.h"
#include "report/training.h"

#define SAME_TRAINING ((unsigned)RFL_IDENTITY_TRAINING | RFL_IDENTITY_REPEAT)

/* The training runs with equal settings, on one or more devices. */
struct group {
	size_t n;
	struct rfl_training *trainings;
};

struct rfl_trainings {
	size_t n;
	struct group *groups;
	const char *unread; /* messages on files of epochs that cannot be read; "" */
};

const char *rfl_report__beside(const struct rfl_report *r, struct rfl_page *page,
			       const struct rfl_run *run, const char *folder)
{
	RFL_AUTO(buf) out = { .len = 0 };

	if (rfl_runs_beside(r->runs, run, NULL, folder, &out) && rfl_file_exists(rfl_buf_str(&out)))
		return rfl_page_keep(page, &out);
	return NULL;
}

/* Whether a row is of a training run without epochs, such as on a missing device. */
static bool is_attempt(const struct rfl_ledger_row *row)
{
	return row->status && !rfl_text_same(row->status, "ok") &&
	       rfl_text_same(row->mode, "train") && row->data_mode &&
	       !rfl_text_same(row->data_mode, "synthetic");
}

/* Read the training run of a row. @return false: it has none, or its epochs cannot be read */
static bool read_training(const struct rfl_report *r, struct rfl_page *page, size_t i,
			  struct rfl_trainings *to, struct rfl_training *ret)
{
	const struct rfl_ledger_row *row = &r->runs->ledger->rows[i];
	const char *path = rfl_report__beside(r, page, &r->runs->runs[i], "epochs");
	struct rfl_epochs read = { .n = 0 }, *e;
	struct rfl_err err = RFL_ERR_INIT;

	if (!path && !is_attempt(row))
		return false;
	if (path && rfl_epochs_load(path, &read, &err) != RFL_OK) {
		rfl_epochs_fini(&read);
		to->unread = rfl_page_printf(page, "%s%s%s", to->unread, *to->unread ? "; " : "",
					     err.msg);
		return false;
	}
	*ret = (struct rfl_training){ .device = row->backend, .row = row };
	if (!ret->device)
		ret->device = row->env;
	else if (!rfl_text_same(row->env, ret->device))
		ret->device = rfl_page_printf(page, "%s, %s", row->backend, row->env);
	e = rfl_arena_array(page->arena, 1, sizeof(*e));
	e->rows = rfl_arena_array(page->arena, read.n, sizeof(*e->rows));
	if (read.n)
		memcpy(e->rows, read.rows, read.n * sizeof(*e->rows));
	e->n = read.n;
	ret->epochs = e;
	rfl_epochs_fini(&read);
	return true;
}

/* The first training that has epochs; the first of all if none has. */
static const struct rfl_training *first_with_epochs(const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->trainings[i].epochs->n > 0)
			return &g->trainings[i];
	return g->trainings;
}

struct rfl_trainings *rfl_report__trainings_new(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t nrows = r->runs ? r->runs->ledger->nrows : 0;
	struct rfl_trainings *ret = rfl_arena_array(page->arena, 1, sizeof(*ret));
	struct group *groups = rfl_arena_array(page->arena, nrows + 1, sizeof(*groups));
	struct rfl_training *all = rfl_arena_array(page->arena, nrows + 1, sizeof(*all));
	struct rfl_training *sorted = rfl_arena_array(page->arena, nrows + 1, sizeof(*sorted));
	size_t n = 0;

	*ret = (struct rfl_trainings){ .groups = groups, .unread = "" };
	for (size_t i = 0; i < nrows; i++)
		n += read_training(r, page, i, ret, &all[n]);
	while (n > 0) { /* move those with the settings of the first that has epochs */
		struct group *g = &groups[ret->n++];
		const struct rfl_ledger_row *first;
		size_t left = 0;

		*g = (struct group){ .n = n, .trainings = all };
		first = first_with_epochs(g)->row;
		*g = (struct group){ .trainings = sorted };
		for (size_t i = 0; i < n; i++)
			if (rfl_facts_agree(first, all[i].row, SAME_TRAINING))
				g->trainings[g->n++] = all[i];
			else
				all[left++] = all[i];
		sorted += g->n;
		n = left;
	}
	return ret;
}

/* If there are no training runs, explain how to train. */
static bool have_trainings(const struct rfl_report *r, struct rfl_page *page)
{
	if (r->work->trainings->n == 0)
		rfl_report__lacks(r, page,
				  "training runs: train with 'roofline train --data DIR --epochs N "
				  "--devices cpu,cuda', and add --metrics logs/metrics.csv; the "
				  "epochs are in the directory epochs next to the ledger");
	return r->work->trainings->n > 0;
}

static const char *title_of(struct rfl_page *page, const struct group *g)
{
	const struct rfl_ledger_row *row = g->trainings->row;

	return rfl_page_printf(
		page, "%s on %s, %s, batch size %lld", row->model ? row->model : "a network",
		row->data_mode ? row->data_mode : "unknown data",
		row->precision ? row->precision : "unknown precision", (long long)row->batch);
}

/* ---- the sections ---- */

/* The result of each training as a sentence. */
void rfl_report__training_summary(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_trainings *all = r->work->trainings;
	RFL_AUTO(buf) text = { .len = 0 };

	for (size_t i = 0; have_trainings(r, page) && i < all->n; i++)
		for (size_t k = 0; k < all->groups[i].n; k++) {
			rfl_buf_reset(&text);
			rfl_training_say(all->groups[i].trainings, all->groups[i].n, k, &text);
			rfl_page_item(page, "%s: %s", title_of(page, &all->groups[i]),
				      rfl_buf_str(&text));
		}
	if (*all->unread)
		rfl_page_para(page, "Not shown: %s.", all->unread);
}

static const struct rfl_column of_settings[] = { { .title = "Setting" }, { .title = "Value" } };

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
	struct rfl_table *t = rfl_table_new(of_settings, RFL_ARRAY_LEN(of_settings));
	const struct rfl_training *of = first_with_epochs(g);
	char number[RFL_NUM_MAX];
	RFL_AUTO(buf) text = { .len = 0 };

	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_fact *f = &rfl_facts[i];

		if (!(f->identity & SAME_TRAINING) || !rfl_fact_known(f, of->row))
			continue;
		rfl_table_text(t, f->name);
		rfl_table_text(t, rfl_field_write(&rfl_ledger_fields[f->column], of->row, number));
	}
	for (size_t i = 0; i < g->n; i++) {
		const struct rfl_ledger_row *row = g->trainings[i].row;

		if (!row->device_name)
			continue;
		rfl_buf_reset(&text);
		rfl_buf_printf(&text, "%s", row->device_name);
		if (row->threads > 0)
			rfl_buf_printf(&text, ", %lld threads", (long long)row->threads);
		rfl_buf_printf(&text, ", %s", row->engine_id ? row->engine_id : "unknown engine");
		rfl_table_text(t, rfl_page_printf(page, "Device %s", g->trainings[i].device));
		rfl_table_text(t, rfl_buf_str(&text));
	}
	rfl_buf_reset(&text);
	put_rates(of->epochs, &text);
	if (text.len) {
		rfl_table_text(t, "Learning rate");
		rfl_table_text(t, rfl_buf_str(&text));
		const double samples = of->epochs->rows->samples_per_s * of->epochs->rows->train_s;
		if (isfinite(samples)) {
			rfl_table_text(t, "Training samples per epoch");
			rfl_table_text(t, rfl_page_printf(page, "%.0f", samples));
		}
	}
	rfl_page_table(page, title_of(page, g), t);
}

/* The layers of a network of the program, with dropout. A user's own network is not in the ledger.
 */
static void layers_table(const struct rfl_ledger_row *row, struct rfl_page *page)
{
	static const char *const columns[] = { "name", "kind", "output", "params", "macs" };
	const struct rfl_zoo_options sizes = { .image_size = row->img_size > 0 ? row->img_size : 0,
					       .classes = row->classes > 0 ? row->classes : 0 };
	RFL_AUTOPTR(summary) summary = NULL;
	struct rfl_complexity c = {
		.items = &summary,
		.n = 1,
		.options = { .sizes = sizes,
			     .precision = row->precision,
			     .by = RFL_SUMMARY_BY_LAYER,
			     .depth = 1 },
		.batches = (const int64_t[]){ 1 },
		.nbatches = 1,
		.fusion = RFL_FUSION_AUTO,
		.columns = columns,
		.ncolumns = RFL_ARRAY_LEN(columns),
	};
	struct rfl_table *tables[2];
	const char *caption;

	if (!row->model || !row->precision)
		return;
	caption = rfl_page_printf(page, "Layers of %s, for one sample", row->model);
	rfl_complexity_needs(&c, false);
	if (rfl_summary_new(row->model, &c.options, &summary, NULL) == RFL_OK &&
	    rfl_complexity_tables(&c, true, tables, NULL) == RFL_OK)
		rfl_page_table(page, caption, tables[0]);
}

void rfl_report__training_design(const struct rfl_report *r, struct rfl_page *page)
{
	if (!have_trainings(r, page))
		return;
	for (size_t i = 0; i < r->work->trainings->n; i++) {
		const struct rfl_ledger_row *row =
			first_with_epochs(&r->work->trainings->groups[i])->row;
		size_t k = 0;

		settings_table(&r->work->trainings->groups[i], page);
		while (k < i &&
		       !rfl_text_same(first_with_epochs(&r->work->trainings->groups[k])->row->model,
				      row->model))
			k++;
		if (k == i)
			layers_table(row, page);
	}
	rfl_page_para(page, "All devices train with the same seed: they see the same images in the "
			    "same order, with the same augmentation, and begin with the same "
			    "weights. The device draws the random numbers of dropout.");
}

void rfl_report__training_results(const struct rfl_report *r, struct rfl_page *page)
{
	if (!have_trainings(r, page))
		return;
	for (size_t i = 0; i < r->work->trainings->n; i++) {
		const struct group *g = &r->work->trainings->groups[i];

		rfl_page_part(page, "%s", title_of(page, g));
		rfl_page_table(page, "Epochs", rfl_training_epochs(g->trainings, g->n));
		rfl_page_table(page, "Devices", rfl_training_devices(g->trainings, g->n, false));
	}
}

void rfl_report__training_curves(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t at = page->n;

	if (!have_trainings(r, page))
		return;
	rfl_page_para(page, "The charts show the loss, the accuracy and the time of each epoch.");
	rfl_report__charts(r, page, "accuracy", 0, 0,
			   "Loss, accuracy and time of training and test in each epoch");
	if (page->n == at + 1)
		page->n = at;
}

/* The command of a training run of an older version: its row has neither the directory of its data
 * nor the schedule of its learning rate. */
static void put_old_command(const struct rfl_training *t, struct rfl_buf *out)
{
	const struct rfl_ledger_row *row = t->row;

	if (!row->model || !row->data_mode || !row->precision || !row->optimizer)
		return;
	rfl_buf_printf(out, "roofline train --data DIR --devices %s --arch ", t->device);
	rfl_text_shell_word(row->model, out);
	rfl_buf_printf(out,
		       " --dataset %s --epochs %zu --batch-size %lld --precision %s --optimizer %s "
		       "--lr %.6g --weight-decay %.6g --seed %lld%s\n",
		       row->data_mode, t->epochs->n, (long long)row->batch, row->precision,
		       row->optimizer, row->lr, row->weight_decay, (long long)row->seed,
		       row->augment == 0 ? " --no-augment" : "");
}

void rfl_report__training_commands(const struct rfl_report *r, struct rfl_page *page)
{
	RFL_AUTO(buf) out = { .len = 0 };

	for (size_t i = 0; i < r->work->trainings->n; i++)
		for (size_t k = 0; k < r->work->trainings->groups[i].n; k++) {
			const struct rfl_training *t = &r->work->trainings->groups[i].trainings[k];
			const char *line;

			if (!t->row->command) {
				put_old_command(t, &out);
				continue;
			}
			line = rfl_page_printf(page, "%s\n", t->row->command);
			if (!strstr(rfl_buf_str(&out), line)) /* else a repeat */
				rfl_buf_puts(&out, line);
		}
	rfl_buf_puts(&out, r->command);
	rfl_page_para(
		page,
		"The commands of the training runs, as they were given; they write to the "
		"directory logs, or to the one of --log-dir. A command with DIR is reconstructed "
		"from a row of an older version, which has neither the directory of the data nor "
		"the schedule of the learning rate. The last command writes this report.");
	rfl_page_text(page, RFL_BLOCK_CODE, "%s", rfl_buf_str(&out));
}
