/* matrix.c - load a matrix, select runs, read the ledger, estimate the remaining time. */
#include "cli/cmd/matrix.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "base/json.h"
#include "cli/inputs.h"
#include "ledger/repeats/row_index.h"

#define OPTIONS_MAX 128
#define PART_MAX    128 /* length of a part of --only */

/* ---- check the options of the cells ---- */

static enum rfl_rc check_option(const char *path, const struct rfl_matrix_option *o,
				struct rfl_err *err)
{
	const char *names[OPTIONS_MAX + 1] = { NULL };
	char advice[RFL_ADVICE_SIZE];
	const struct rfl_opt *row = rfl_cmd_find("run")->opts;
	struct rfl_where w;
	size_t n = 0;

	rfl_where_begin(&w, path, o->pointer);
	for (; row->name && (row->hidden || strcmp(row->name, o->name) != 0); row++)
		if (!row->hidden && n < OPTIONS_MAX)
			names[n++] = row->name;
	if (row->name && row->kind == RFL_OPT_FLAG && o->n > 0)
		return rfl_where_fail(&w, err, "takes no value; use true");
	if (row->name && row->kind != RFL_OPT_FLAG && o->n == 0)
		return rfl_where_fail(&w, err, "needs a value; give one instead of true");
	if (row->name && o->n > 1 && row->kind != RFL_OPT_LIST && row->kind != RFL_OPT_INT_LIST)
		return rfl_where_fail(&w, err,
				      "accepts a single value; give one instead of the list");
	if (row->name)
		return RFL_OK;
	return rfl_where_fail(&w, err, "is not an option of 'roofline run'; %s",
			      rfl_text_advice(o->name, names, 1,
					      "run 'roofline run --help all' for a list", advice));
}

enum rfl_rc rfl_cli_matrix_config(const struct rfl_cli *cli, const struct rfl_matrix_cell *cell,
				  const char *const more[2], struct rfl_run_config *ret,
				  struct rfl_err *err)
{
	char **argv;
	size_t n = 0;
	enum rfl_rc rc;

	while (cell->args[n])
		n++;
	argv = rfl_alloc_array(1 + n + 2 + 1, sizeof(*argv));
	memcpy(argv + 1, cell->args, n++ * sizeof(*argv));
	if (more)
		memcpy(argv + n, more, 2 * sizeof(*argv));
	rc = rfl_run_config_parse(cli, (int)n + (more ? 2 : 0), argv, ret, err);
	free(argv);
	return rc;
}

static enum rfl_rc check_cell(const struct rfl_cli *cli, const struct rfl_matrix *m,
			      const struct rfl_matrix_cell *cell, struct rfl_err *err)
{
	const char *name, *pointer = cell->pointer;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_run_config config;
	struct rfl_where w;
	enum rfl_rc rc = RFL_OK;
	size_t len;

	for (size_t i = 0; i < cell->noptions && rc == RFL_OK; i++)
		rc = check_option(m->path, &cell->options[i], err);
	if (rc || rfl_cli_matrix_config(cli, cell, NULL, &config, &why) == RFL_OK)
		return rc;

	/* If the message begins with an option ("--iters: 'abc' is not ..."), point to that option
	 * in the file. */
	name = strncmp(why.msg, "--", 2) == 0 ? why.msg + 2 : "";
	len = strcspn(name, " :,=");
	for (size_t i = 0; len && i < cell->noptions; i++)
		if (strlen(cell->options[i].name) == len &&
		    memcmp(cell->options[i].name, name, len) == 0)
			pointer = cell->options[i].pointer;
	rfl_where_begin(&w, m->path, pointer);
	return rfl_where_fail(&w, err, "%s %s %s batch %" PRId64 ": %s", cell->env, cell->model,
			      cell->precision, cell->batch, why.msg);
}

enum rfl_rc rfl_cli_matrix_load(const struct rfl_cli *cli, const char *path,
				struct rfl_matrix **ret, struct rfl_err *err)
{
	RFL_AUTOPTR(matrix) m = NULL;
	enum rfl_rc rc = rfl_matrix_load(path, &m, err);

	for (size_t i = 0; rc == RFL_OK && i < m->ncells; i++)
		rc = check_cell(cli, m, &m->cells[i], err);
	if (rc)
		return rc;
	*ret = m;
	m = NULL;
	return RFL_OK;
}

/* ---- --only and --shard ---- */

/* Whether a cell matches "env/model/precision/batch"; trailing parts may be omitted. */
static bool matches(const struct rfl_matrix_cell *cell, const char *word)
{
	char batch[24], part[PART_MAX];
	const char *const parts[] = { cell->env, cell->model, cell->precision, batch };

	(void)snprintf(batch, sizeof(batch), "%" PRId64, cell->batch);
	for (size_t n = 0; n < RFL_ARRAY_LEN(parts); n++) {
		const size_t len = strcspn(word, "/");

		if (len == 0 || len >= PART_MAX)
			return false;
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, word);
		if (fnmatch(part, parts[n], 0) != 0)
			return false;
		if (word[len] == '\0')
			return true;
		word += len + 1;
	}
	return false;
}

static enum rfl_rc parse_shard(const char *text, int64_t *index, int64_t *count,
			       struct rfl_err *err)
{
	const struct rfl_span all = rfl_span_of(text);
	const size_t slash = rfl_span_find(all, "/");
	char first[24];

	if (slash < all.len && slash < sizeof(first) &&
	    rfl_span_copy((struct rfl_span){ text, slash }, first, sizeof(first)) &&
	    rfl_num_parse_int(first, "shard", index, NULL) == RFL_OK &&
	    rfl_num_parse_int(text + slash + 1, "shard", count, NULL) == RFL_OK && *index >= 0 &&
	    *index < *count)
		return RFL_OK;
	return rfl_usage(err, "--shard: '%s' is not I/N with I from 0 to N - 1", text);
}

enum rfl_rc rfl_cli_matrix_pick(struct rfl_cli *cli, const char *path,
				const struct rfl_opt_list *only, const char *shard,
				struct rfl_matrix_pick *ret, struct rfl_err *err)
{
	int64_t index = 0, count = 1, at = 0;
	bool *chosen;
	size_t nruns;
	enum rfl_rc rc;

	*ret = (struct rfl_matrix_pick){ .m = NULL };
	if ((rc = rfl_cli_matrix_load(cli, path, &ret->m, err)) ||
	    (shard && (rc = parse_shard(shard, &index, &count, err))))
		return rc;
	nruns = ret->m->ncells * (size_t)ret->m->repeats;
	chosen = rfl_arena_array(cli->arena, nruns, sizeof(*chosen));
	ret->runs = rfl_arena_array(cli->arena, nruns, sizeof(*ret->runs));
	for (size_t i = 0; i < only->n; i++) {
		const char *word = only->items[i];
		bool any = false;

		for (size_t k = 0; k < nruns; k++) {
			char label[RFL_LABEL_MAX + 1];
			const struct rfl_matrix_cell *cell = rfl_cli_matrix_cell(ret->m, k, label);

			if (matches(cell, word) || strcmp(word, cell->id) == 0 ||
			    strcmp(word, label) == 0)
				chosen[k] = any = true;
		}
		if (!any)
			return rfl_usage(err,
					 "--only: '%s' matches no run of %s; run 'roofline matrix "
					 "expand %s' for a list",
					 word, path, path);
	}
	for (size_t i = 0; i < nruns; i++)
		if ((!only->n || chosen[i]) && at++ % count == index)
			ret->runs[ret->n++] = i;
	return RFL_OK;
}

void rfl_matrix_pick_fini(struct rfl_matrix_pick *p)
{
	rfl_matrix_free(p->m);
}

const struct rfl_matrix_cell *rfl_cli_matrix_cell(const struct rfl_matrix *m, size_t run,
						  char label[RFL_LABEL_MAX + 1])
{
	const struct rfl_matrix_cell *cell = &m->cells[run % m->ncells];

	if (label)
		rfl_matrix_label(cell, (int)(run / m->ncells) + 1, label);
	return cell;
}

void rfl_cli_matrix_command(const struct rfl_matrix *m, size_t run, const char *log_dir,
			    struct rfl_buf *out)
{
	char label[RFL_LABEL_MAX + 1];
	const struct rfl_matrix_cell *cell = rfl_cli_matrix_cell(m, run, label);
	size_t n = 0;

	while (cell->args[n])
		n++;
	rfl_buf_puts(out, "roofline run");
	rfl_cli_quote((const char *const *)cell->args, n, out);
	rfl_buf_printf(out, " --label=%s --log-dir=", label);
	rfl_text_shell_word(log_dir, out);
}

struct rfl_matrix_alike *rfl_matrix_alike(const struct rfl_matrix *m)
{
	struct rfl_matrix_alike *ret = rfl_alloc_array(m->ncells, sizeof(*ret));
	RFL_AUTO(texts) tables = { .arena = NULL };
	RFL_AUTO(texts) models = { .arena = NULL };
	RFL_AUTO(buf) name = { .len = 0 };

	for (size_t i = 0; i < m->ncells; i++) {
		const struct rfl_matrix_cell *c = &m->cells[i];

		rfl_buf_reset(&name);
		rfl_buf_printf(&name, "%s %s", c->env, c->precision);
		ret[i].table = rfl_texts_put(&tables, rfl_buf_str(&name));
		rfl_buf_printf(&name, " %s", c->model);
		ret[i].model = rfl_texts_put(&models, rfl_buf_str(&name));
	}
	return ret;
}

static enum rfl_rc load_foreign(const char *path, const struct rfl_matrix *m,
				struct rfl_ledger **ret, struct rfl_err *err)
{
	const struct rfl_opt_list no_map = { .n = 0 };
	RFL_AUTOPTR(runs) runs = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_cli_load_runs(&path, 1, &no_map, &rfl_ledger_metrics[0], RFL_ROWS_KEPT,
					   &runs, &why);

	if (rc)
		return rfl_fail(
			err, rc, why.native,
			"%s; run 'roofline summary --metrics %s --matrix %s' with --map instead",
			why.msg, path, m->path);
	*ret = runs->ledger;
	runs->ledger = NULL;
	return RFL_OK;
}

/* Set the path of the ledger and its size before it is read. */
static enum rfl_rc find_ledger(const char *log_dir, struct rfl_matrix_view *ret,
			       struct rfl_err *err)
{
	int len;

	*ret = (struct rfl_matrix_view){ .ledger = NULL };
	len = snprintf(ret->path, sizeof(ret->path), "%s/metrics.csv", log_dir);
	if (len < 0 || (size_t)len >= sizeof(ret->path))
		return rfl_usage(err, "--log-dir: the name is too long; use a shorter one");
	ret->size = rfl_file_size(ret->path);
	return RFL_OK;
}

/* An unreadable file is reported when it is loaded. */
static bool is_foreign(const struct rfl_matrix_view *v)
{
	return v->size > 0 && rfl_ledger_is_foreign(v->path);
}

enum rfl_rc rfl_cli_matrix_view(const struct rfl_matrix *m, const char *log_dir, size_t since,
				struct rfl_matrix_view *ret, struct rfl_err *err)
{
	enum rfl_rc rc = find_ledger(log_dir, ret, err);

	if (rc)
		return rc;
	if (is_foreign(ret)) {
		if (!(rc = load_foreign(ret->path, m, &ret->ledger, err)))
			rfl_matrix_cover(m, ret->ledger, &ret->cover);
		return rc;
	}
	if (since > 0 && ret->size >= since) {
		const char *path = ret->size > since ? ret->path : NULL;

		ret->partial = rfl_matrix_cover_file(m, path, since, &ret->cover, NULL) == RFL_OK;
		if (ret->partial)
			return RFL_OK;
		rfl_matrix_coverage_fini(&ret->cover);
	}
	return rfl_matrix_cover_file(m, ret->size > 0 ? ret->path : NULL, 0, &ret->cover, err);
}

enum rfl_rc rfl_cli_matrix_view_rows(const struct rfl_matrix *m, const char *log_dir,
				     struct rfl_matrix_view *ret, struct rfl_err *err)
{
	enum rfl_rc rc = find_ledger(log_dir, ret, err);

	if (rc == RFL_OK && ret->size > 0)
		rc = is_foreign(ret) ? load_foreign(ret->path, m, &ret->ledger, err)
				     : rfl_ledger_load(ret->path, &ret->ledger, err);
	if (rc == RFL_OK)
		rfl_matrix_cover(m, ret->ledger, &ret->cover);
	return rc;
}

void rfl_matrix_view_fini(struct rfl_matrix_view *v)
{
	rfl_matrix_coverage_fini(&v->cover);
	rfl_ledger_free(v->ledger);
	v->ledger = NULL;
}

/* ---- remaining time ---- */

/* Times are averaged over the runs of a cell, over the samples of a model, and over all runs. */
enum { OF_CELL, OF_MODEL, OF_ALL, LEVELS };

void rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret)
{
	*ret = (struct rfl_matrix_left){
		.m = m,
		.alike = rfl_matrix_alike(m),
		.known = rfl_alloc_array(LEVELS * m->ncells, sizeof(*ret->known)),
	};
}

void rfl_matrix_left_fini(struct rfl_matrix_left *l)
{
	free(l->alike);
	free(l->known);
	*l = (struct rfl_matrix_left){ .m = NULL };
}

/* The sum to which a cell belongs. @param amount  set to what a run of the cell adds to it */
static struct rfl_matrix_known *known_at(const struct rfl_matrix_left *l, int level, size_t cell,
					 double *amount)
{
	*amount = level == OF_MODEL ? (double)l->m->cells[cell].batch : 1;
	if (level == OF_MODEL)
		cell = l->alike[cell].model;
	return &l->known[(size_t)level * l->m->ncells + (level == OF_ALL ? 0 : cell)];
}

void rfl_matrix_left_add(struct rfl_matrix_left *l, size_t cell, double seconds)
{
	for (int level = 0; level < LEVELS && !isnan(seconds); level++) {
		double amount;
		struct rfl_matrix_known *k = known_at(l, level, cell, &amount);

		k->seconds += seconds;
		k->amount += amount;
	}
}

double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell)
{
	for (int level = 0; level < LEVELS; level++) {
		double amount;
		const struct rfl_matrix_known *k = known_at(l, level, cell, &amount);

		if (k->amount > 0)
			return k->seconds / k->amount * amount;
	}
	return (double)NAN;
}
