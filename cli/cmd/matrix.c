/*
 * matrix.c - a matrix as the commands need it: read, its options held against those that a run has,
 * and beside its ledger.
 */
#include "cli/cmd/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "base/where.h"
#include "cli/cmd/run_config.h"
#include "cli/cmd/runs_args.h"

#define OPTIONS_MAX 128

/* ---- the options of a run ---- */

static const struct rfl_opt *find_row(const char *name)
{
	const struct rfl_opt *row = rfl_cmd_find("run")->opts;

	for (; row->name; row++)
		if (!row->hidden && strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

static enum rfl_rc unknown_option(const struct rfl_where *w, const char *name, struct rfl_err *err)
{
	const struct rfl_opt *row = rfl_cmd_find("run")->opts;
	const char *names[OPTIONS_MAX + 1] = { NULL };
	const char *near;
	size_t n = 0;

	for (; row->name && n < OPTIONS_MAX; row++)
		if (!row->hidden)
			names[n++] = row->name;
	near = rfl_text_nearest(name, names);
	if (near)
		return rfl_where_fail(w, err, "is no option of 'roofline run'; did you mean '%s'?",
				      near);
	return rfl_where_fail(w, err, "is no option of 'roofline run', whose --help lists them");
}

static bool is_list(const struct rfl_opt *row)
{
	return row->kind == RFL_OPT_LIST || row->kind == RFL_OPT_INT_LIST;
}

static enum rfl_rc check_option(const char *path, const struct rfl_matrix_option *o,
				struct rfl_err *err)
{
	const struct rfl_opt *row = find_row(o->name);
	struct rfl_where w;

	rfl_where_begin(&w, path, o->pointer);
	if (!row)
		return unknown_option(&w, o->name, err);
	if (row->kind == RFL_OPT_FLAG && o->n > 0)
		return rfl_where_fail(&w, err, "is switched on by true, and takes no value");
	if (row->kind != RFL_OPT_FLAG && o->n == 0)
		return rfl_where_fail(&w, err, "needs a value; true is none");
	if (o->n > 1 && !is_list(row))
		return rfl_where_fail(&w, err, "takes one value, not a list");
	return RFL_OK;
}

/* ---- each run as it would be asked for ---- */

/* The option that a message begins with: "--iters: 'abc' is not ..." */
static const struct rfl_matrix_option *option_of(const struct rfl_matrix_cell *cell,
						 const char *message)
{
	size_t len = strncmp(message, "--", 2) == 0 ? strcspn(message + 2, " :,=") : 0;

	for (size_t i = 0; len && i < cell->noptions; i++)
		if (strlen(cell->options[i].name) == len &&
		    memcmp(cell->options[i].name, message + 2, len) == 0)
			return &cell->options[i];
	return NULL;
}

static enum rfl_rc refuse(const struct rfl_matrix *m, const struct rfl_matrix_cell *cell,
			  const struct rfl_err *why, struct rfl_err *err)
{
	const struct rfl_matrix_option *o = option_of(cell, why->msg);
	struct rfl_where w;

	if (why->rc == RFL_ENOMEM)
		return rfl_fail(err, why->rc, why->native, "%s", why->msg);
	rfl_where_begin(&w, m->path, o ? o->pointer : cell->pointer);
	return rfl_where_fail(&w, err, "%s %s %s batch %" PRId64 ": %s", cell->env, cell->model,
			      cell->precision, cell->batch, why->msg);
}

char **rfl_cli_matrix_argv(const struct rfl_matrix_cell *cell, size_t more, int *argc)
{
	char **argv;
	size_t n = 0;

	while (cell->args[n])
		n++;
	argv = rfl_alloc_array(1 + n + more + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv + 1, cell->args, n * sizeof(*argv));
	*argc = (int)n + 1;
	return argv;
}

static enum rfl_rc check_cell(const struct rfl_cli *cli, const struct rfl_matrix *m,
			      const struct rfl_matrix_cell *cell, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_run_config config;
	enum rfl_rc rc = RFL_OK;
	char **argv;
	int argc = 0;

	for (size_t i = 0; i < cell->noptions && rc == RFL_OK; i++)
		rc = check_option(m->path, &cell->options[i], err);
	if (rc)
		return rc;
	argv = rfl_cli_matrix_argv(cell, 0, &argc);
	if (!argv)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	rc = rfl_run_config_parse(cli, argc, argv, &config, &why);
	free(argv);
	return rc ? refuse(m, cell, &why, err) : RFL_OK;
}

enum rfl_rc rfl_cli_matrix_load(const struct rfl_cli *cli, const char *path,
				struct rfl_matrix **ret, struct rfl_err *err)
{
	struct rfl_matrix *m = NULL;
	enum rfl_rc rc = rfl_matrix_load(path, &m, err);

	for (size_t i = 0; rc == RFL_OK && i < m->ncells; i++)
		rc = check_cell(cli, m, &m->cells[i], err);
	if (rc == RFL_OK)
		*ret = m;
	else
		rfl_matrix_free(m);
	return rc;
}

/* ---- beside its ledger ---- */

/* Rows that another program wrote: a run with a throughput is one that is ok. */
static enum rfl_rc load_foreign(const char *path, const struct rfl_matrix *m,
				struct rfl_ledger **ret, struct rfl_err *err)
{
	const struct rfl_opt_list no_map = { .n = 0 };
	struct rfl_runs *runs = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_cli_load_runs(&path, 1, &no_map, &rfl_ledger_metrics[0], RFL_ROWS_KEPT,
					   &runs, &why);

	if (rc)
		return rfl_fail(err, rc, why.native,
				"%s; read it with 'roofline summary --metrics %s --matrix %s', "
				"which takes --map",
				why.msg, path, m->path);
	*ret = runs->ledger;
	runs->ledger = NULL;
	rfl_runs_free(runs);
	return RFL_OK;
}

/* What decides to which run a row belongs, and what is said of it. */
static enum rfl_rc load_ledger(const char *path, const struct rfl_matrix *m,
			       struct rfl_ledger **ret, struct rfl_err *err)
{
	bool wanted[RFL_LEDGER_NCOLUMNS] = {
		[RFL_LEDGER_AT_run_id] = true,     [RFL_LEDGER_AT_cell] = true,
		[RFL_LEDGER_AT_repeat] = true,     [RFL_LEDGER_AT_label] = true,
		[RFL_LEDGER_AT_env] = true,        [RFL_LEDGER_AT_status] = true,
		[RFL_LEDGER_AT_error_text] = true, [RFL_LEDGER_AT_model] = true,
		[RFL_LEDGER_AT_batch] = true,      [RFL_LEDGER_AT_requested_batch] = true,
		[RFL_LEDGER_AT_precision] = true,  [RFL_LEDGER_AT_warmup] = true,
		[RFL_LEDGER_AT_iters] = true,      [RFL_LEDGER_AT_step_ms_mean] = true,
		[RFL_LEDGER_AT_setup_s] = true,    [RFL_LEDGER_AT_world_size] = true,
		[RFL_LEDGER_AT_rank] = true,       [RFL_LEDGER_AT_micro_batch] = true,
	};

	if (rfl_ledger_check(path, NULL) == RFL_EFORMAT) /* what cannot be read says so below */
		return load_foreign(path, m, ret, err);
	return rfl_ledger_load_columns(path, wanted, ret, err);
}

enum rfl_rc rfl_cli_matrix_view(const struct rfl_matrix *m, const char *log_dir,
				struct rfl_matrix_view *ret, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	int len;

	*ret = (struct rfl_matrix_view){ .ledger = NULL };
	len = snprintf(ret->path, sizeof(ret->path), "%s/metrics.csv", log_dir);
	if (len < 0 || (size_t)len >= sizeof(ret->path))
		return rfl_fail(err, RFL_EUSAGE, 0, "--log-dir: its name is too long");
	if (rfl_file_size(ret->path) > 0)
		rc = load_ledger(ret->path, m, &ret->ledger, err);
	if (rc == RFL_OK)
		rc = rfl_matrix_cover(m, ret->ledger, &ret->cover, err);
	return rc;
}

void rfl_matrix_view_fini(struct rfl_matrix_view *v)
{
	rfl_matrix_coverage_fini(&v->cover);
	rfl_ledger_free(v->ledger);
	v->ledger = NULL;
}

/* ---- as a command ---- */

void rfl_cli_shell_word(const char *word, struct rfl_buf *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789@%+=:,./_-";

	if (*word && strspn(word, plain) == strlen(word)) {
		rfl_buf_puts(out, word);
		return;
	}
	rfl_buf_putc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			rfl_buf_puts(out, "'\\''");
		else
			rfl_buf_putc(out, *word);
	}
	rfl_buf_putc(out, '\'');
}

void rfl_cli_matrix_command(const struct rfl_matrix *m, size_t run, const char *log_dir,
			    struct rfl_buf *out)
{
	const struct rfl_matrix_cell *cell = &m->cells[run % m->ncells];
	char label[RFL_LABEL_MAX + 1];

	rfl_matrix_label(cell, (int)(run / m->ncells) + 1, label);
	rfl_buf_puts(out, "roofline run");
	for (size_t i = 0; cell->args[i]; i++) {
		rfl_buf_putc(out, ' ');
		rfl_cli_shell_word(cell->args[i], out);
	}
	rfl_buf_printf(out, " --label=%s --log-dir=", label);
	rfl_cli_shell_word(log_dir, out);
}
