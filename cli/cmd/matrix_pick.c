/*
 * matrix_pick.c - which runs of a matrix a command is for: --only and --shard.
 */
#include "cli/cmd/matrix.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

#define PARTS    4
#define PART_MAX 128

/* "env/model/precision/batch"; a part that is not there matches everything. */
struct pattern {
	char part[PARTS][PART_MAX];
	size_t n;
};

static bool split(const char *text, struct pattern *ret)
{
	ret->n = 0;
	for (;;) {
		const size_t len = strcspn(text, "/");

		if (ret->n == PARTS || len == 0 || len >= PART_MAX)
			return false;
		memcpy(ret->part[ret->n], text, len);
		ret->part[ret->n++][len] = '\0';
		if (text[len] == '\0')
			return true;
		text += len + 1;
	}
}

static bool matches(const struct pattern *p, const struct rfl_matrix_cell *cell)
{
	char batch[24];
	const char *const words[PARTS] = { cell->env, cell->model, cell->precision, batch };

	(void)snprintf(batch, sizeof(batch), "%" PRId64, cell->batch);
	for (size_t i = 0; i < p->n; i++)
		if (fnmatch(p->part[i], words[i], 0) != 0)
			return false;
	return true;
}

/* Marks the runs that one word of --only names. */
static enum rfl_rc mark(const struct rfl_matrix *m, const char *word, bool *chosen,
			struct rfl_err *err)
{
	const size_t nruns = m->ncells * (size_t)m->repeats;
	struct pattern pattern;
	const bool is_pattern = split(word, &pattern);
	bool any = false;

	for (size_t i = 0; i < nruns; i++) {
		const struct rfl_matrix_cell *cell = &m->cells[i % m->ncells];
		char label[RFL_LABEL_MAX + 1];

		rfl_matrix_label(cell, (int)(i / m->ncells) + 1, label);
		if (strcmp(word, cell->id) != 0 && strcmp(word, label) != 0 &&
		    !(is_pattern && matches(&pattern, cell)))
			continue;
		chosen[i] = any = true;
	}
	if (any)
		return RFL_OK;
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--only: '%s' is no run of %s; 'roofline matrix expand %s' lists them",
			word, m->path, m->path);
}

static enum rfl_rc parse_shard(const char *text, int64_t *index, int64_t *count,
			       struct rfl_err *err)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	char first[24];

	*index = 0;
	*count = 1;
	if (!text)
		return RFL_OK;
	if (slash && (size_t)(slash - text) < sizeof(first)) {
		(void)snprintf(first, sizeof(first), "%.*s", (int)(slash - text), text);
		if (rfl_num_parse_int(first, "shard", index, NULL) == RFL_OK &&
		    rfl_num_parse_int(slash + 1, "shard", count, NULL) == RFL_OK && *index >= 0 &&
		    *index < *count)
			return RFL_OK;
	}
	return rfl_fail(err, RFL_EUSAGE, 0, "--shard: '%s' is not I/N with I from 0 to N - 1",
			text);
}

enum rfl_rc rfl_cli_matrix_pick(const struct rfl_matrix *m, const struct rfl_opt_list *only,
				const char *shard, struct rfl_matrix_pick *ret, struct rfl_err *err)
{
	const size_t nruns = m->ncells * (size_t)m->repeats;
	bool *chosen = rfl_alloc_array(nruns, sizeof(*chosen));
	int64_t index, count, at = 0;
	enum rfl_rc rc;

	*ret = (struct rfl_matrix_pick){ .runs = rfl_alloc_array(nruns, sizeof(*ret->runs)) };
	rc = parse_shard(shard, &index, &count, err);
	if (rc == RFL_OK && (!chosen || !ret->runs))
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	for (size_t i = 0; rc == RFL_OK && i < only->n; i++)
		rc = mark(m, only->items[i], chosen, err);
	for (size_t i = 0; rc == RFL_OK && i < nruns; i++) {
		if (only->n && !chosen[i])
			continue;
		if (at++ % count == index)
			ret->runs[ret->n++] = i;
	}
	free(chosen);
	return rc;
}

void rfl_matrix_pick_fini(struct rfl_matrix_pick *p)
{
	free(p->runs);
	*p = (struct rfl_matrix_pick){ 0 };
}
