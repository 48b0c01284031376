/*
 * matrix_data.c - can the data of a matrix be read here? Asked once per folder and not per run: a
 * folder that is missing is one thing to fix, however many runs need it.
 */
#include "cli/cmd/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/json.h"
#include "cli/cmd/run_config.h"
#include "complexity/zoo.h"

/* What decides whether data can be read. Texts are the matrix's. */
struct look {
	const struct rfl_matrix_option *data; /* --data, with its place in the file */
	const char *model;
	struct rfl_zoo_options sizes;
	int kind;      /* RFL_RUN_DATA_AUTO: what the folder holds */
	size_t reason; /* what was found: 1 + a number of the reasons; 0: nothing is wrong */
};

/* Why something cannot be read; reported once for each place in the file. */
struct reason {
	char *text;
	const char *pointer;
	size_t nruns;
};

struct looks {
	const struct rfl_matrix *m;
	size_t n, nreasons;
	struct look *items; /* room for one per cell */
	struct reason *reasons;
	size_t *cells; /* per cell: 1 + its reason as in struct look; 0: not checked yet */
};

static enum rfl_rc no_memory(const struct rfl_matrix *m, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
}

/* ---- one look ---- */

/* Find the data that a cell reads. @param ret  .data NULL: it reads no folder */
static enum rfl_rc ask_cell(const struct rfl_cli *cli, const struct rfl_matrix *m,
			    const struct rfl_matrix_cell *cell, struct look *ret,
			    struct rfl_err *err)
{
	struct rfl_run_config config;
	enum rfl_rc rc;
	char **argv;
	int argc = 0;

	*ret = (struct look){ .model = cell->model };
	argv = rfl_cli_matrix_argv(cell, 0, &argc);
	if (!argv)
		return no_memory(m, err);
	rc = rfl_run_config_parse(cli, argc, argv, &config, err);
	if (rc == RFL_OK) {
		ret->sizes.image_size = config.image_size;
		ret->sizes.context_length = config.context_length;
		ret->kind = config.data_kind;
		for (size_t i = 0; config.data_dir && i < cell->noptions; i++)
			if (strcmp(cell->options[i].name, "data") == 0)
				ret->data = &cell->options[i];
	}
	free(argv);
	return rc;
}

/* As the run itself would look, before it begins. What is wrong with the network is the run's to
 * say. */
static enum rfl_rc look_at(const struct look *l, struct rfl_err *why)
{
	struct rfl_data_spec spec = { .kind = (enum rfl_data_kind)l->kind,
				      .dir = l->data->values[0] };
	struct rfl_net *net = NULL;
	enum rfl_rc rc = RFL_OK;

	if (l->kind == RFL_RUN_DATA_AUTO)
		rc = rfl_data_detect(spec.dir, &spec.kind, why);
	if (rc == RFL_OK && rfl_zoo_build(l->model, &l->sizes, &net, NULL) == RFL_OK)
		rc = rfl_data_probe(&spec, net, why);
	rfl_net_free(net);
	return rc;
}

static bool is_same(const struct look *a, const struct look *b)
{
	return strcmp(a->data->pointer, b->data->pointer) == 0 && a->kind == b->kind &&
	       a->sizes.image_size == b->sizes.image_size &&
	       a->sizes.context_length == b->sizes.context_length &&
	       strcmp(a->model, b->model) == 0;
}

/* ---- all of them ---- */

/* The number of a reason, as in struct look; 0: out of memory. */
static size_t keep_reason(struct looks *ls, const char *pointer, const char *text)
{
	struct reason *r = ls->reasons;

	for (size_t i = 0; i < ls->nreasons; i++)
		if (strcmp(r[i].pointer, pointer) == 0 && strcmp(r[i].text, text) == 0)
			return i + 1;
	r[ls->nreasons] = (struct reason){ .text = strdup(text), .pointer = pointer };
	return r[ls->nreasons].text ? ++ls->nreasons : 0;
}

/* Fills the entry of a cell. */
static enum rfl_rc judge(const struct rfl_cli *cli, struct looks *ls, size_t cell,
			 struct rfl_err *err)
{
	struct look look;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = ask_cell(cli, ls->m, &ls->m->cells[cell], &look, err);

	ls->cells[cell] = 1;
	if (rc || !look.data)
		return rc;
	for (size_t i = 0; i < ls->n; i++)
		if (is_same(&ls->items[i], &look)) {
			ls->cells[cell] = 1 + ls->items[i].reason;
			return RFL_OK;
		}
	if (look_at(&look, &why) != RFL_OK) {
		if (why.rc != RFL_ENOMEM)
			look.reason = keep_reason(ls, look.data->pointer, why.msg);
		if (look.reason == 0)
			return no_memory(ls->m, err);
	}
	ls->items[ls->n++] = look;
	ls->cells[cell] = 1 + look.reason;
	return RFL_OK;
}

enum rfl_rc rfl_matrix_data_check(const struct rfl_cli *cli, const struct rfl_matrix *m,
				  const size_t *runs, size_t n, char **refusals,
				  struct rfl_err *err)
{
	struct looks ls = {
		.m = m,
		.items = rfl_alloc_array(m->ncells, sizeof(*ls.items)),
		.reasons = rfl_alloc_array(m->ncells, sizeof(*ls.reasons)),
		.cells = rfl_alloc_array(m->ncells, sizeof(*ls.cells)),
	};
	enum rfl_rc rc = ls.items && ls.reasons && ls.cells ? RFL_OK : no_memory(m, err);

	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const size_t cell = runs[i] % m->ncells;

		if (!ls.cells[cell])
			rc = judge(cli, &ls, cell, err);
		if (rc == RFL_OK && ls.cells[cell] > 1) {
			struct reason *reason = &ls.reasons[ls.cells[cell] - 2];

			reason->nruns++;
			refusals[runs[i]] = strdup(reason->text);
			if (!refusals[runs[i]])
				rc = no_memory(m, err);
		}
	}
	for (size_t i = 0; i < ls.nreasons; i++) {
		const struct reason *r = &ls.reasons[i];
		struct rfl_err line = RFL_ERR_INIT;
		struct rfl_where w;

		rfl_where_begin(&w, m->path, r->pointer);
		(void)rfl_where_fail(&w, &line, "%zu run%s cannot begin: %s", r->nruns,
				     r->nruns == 1 ? "" : "s", r->text);
		if (rc == RFL_OK)
			rfl_log(RFL_LOG_ERROR, "%s", line.msg);
		free(r->text);
	}
	free(ls.items);
	free(ls.reasons);
	free(ls.cells);
	return rc;
}
