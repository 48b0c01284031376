/* continued.c - finds training runs that a later run continued from their checkpoint. */
#include "ledger/runs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/epochs.h"
#include "ledger/facts.h"

struct training {
	size_t run;
	struct rfl_epochs epochs;
};

static bool is_training(const struct rfl_ledger_row *row)
{
	return rfl_text_same(row->mode, "train") && row->data_mode &&
	       !rfl_text_same(row->data_mode, "synthetic");
}

/* The epochs of a continued training are equal to the later one's, with the same times to the last
 * digit. A training that was interrupted in its first epoch has none; the next with the same
 * options replaces it. */
static bool is_continued(const struct rfl_runs *runs, const struct training *a,
			 const struct training *b)
{
	const struct rfl_ledger_row *x = runs->runs[a->run].like, *y = runs->runs[b->run].like;
	const size_t n = a->epochs.n;

	if (n == 0)
		return b->epochs.n > 0 && rfl_text_same(x->config_hash, y->config_hash) &&
		       rfl_facts_agree(x, y, RFL_IDENTITY_BOTH | RFL_IDENTITY_REPEAT);
	return rfl_text_same(x->model, y->model) && n <= b->epochs.n &&
	       memcmp(a->epochs.rows, b->epochs.rows, n * sizeof(*a->epochs.rows)) == 0;
}

/* Read the epochs of all training runs. A file that cannot be read has none: who shows it reports
 * that.
 */
static struct training *read_trainings(const struct rfl_runs *runs, size_t *n)
{
	struct training *list = NULL;
	RFL_AUTO(buf) path = { .len = 0 };
	size_t cap = 0;

	for (size_t i = 0; i < runs->n; i++) {
		struct training t = { .run = i };

		rfl_buf_reset(&path);
		if (!is_training(runs->runs[i].like) ||
		    !rfl_runs_beside(runs, &runs->runs[i], NULL, "epochs", &path))
			continue;
		if (rfl_file_exists(rfl_buf_str(&path)) &&
		    rfl_epochs_load(rfl_buf_str(&path), &t.epochs, NULL) != RFL_OK)
			rfl_epochs_fini(&t.epochs);
		if (t.epochs.n == 0 && !rfl_text_same(runs->runs[i].like->status, "interrupted"))
			continue;
		rfl_reserve(&list, &cap, *n + 1);
		list[(*n)++] = t;
	}
	return list;
}

static bool is_kept(const struct rfl_runs *runs, size_t i, void *drop)
{
	(void)runs;
	return !((const bool *)drop)[i];
}

void rfl_runs_drop_continued(struct rfl_runs *runs)
{
	size_t n = 0, dropped = 0;
	RFL_AUTOFREE struct training *list = read_trainings(runs, &n);
	RFL_AUTOFREE bool *drop = rfl_alloc_array(runs->n, sizeof(*drop));

	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n && !drop[list[i].run]; k++)
			if (is_continued(runs, &list[i], &list[k])) {
				drop[list[i].run] = true;
				rfl_buf_puts(&runs->notes, dropped++ ? ", " : "skipped ");
				rfl_runs_where(runs, &runs->runs[list[i].run], &runs->notes);
			}
	if (dropped > 0) {
		rfl_buf_puts(&runs->notes, ": continued by a later training run\n");
		rfl_runs_select(runs, is_kept, drop);
	}
	for (size_t i = 0; i < n; i++)
		rfl_epochs_fini(&list[i].epochs);
}
