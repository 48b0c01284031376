/*
 * merge_group.c - which rows of the ledger count, and which of them are repeats of one another.
 */
#include "roofline/merge_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/label.h"

/* Equal in everything that the FLOPs, the bytes and the roof are made of. */
static const char *contradiction(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b)
{
	if (!rfl_text_same(a->model, b->model))
		return "model";
	if (!rfl_text_same(a->precision, b->precision))
		return "precision";
	if (!rfl_text_same(a->mode, b->mode))
		return "mode";
	if (!rfl_text_same(a->backend, b->backend))
		return "backend";
	if (!rfl_text_same(a->optimizer, b->optimizer))
		return "optimizer";
	if (a->batch != b->batch)
		return "batch";
	if (a->micro_batch != b->micro_batch)
		return "micro_batch";
	if (a->accum != b->accum)
		return "accum";
	if (a->img_size != b->img_size)
		return "img_size";
	if (a->classes != b->classes)
		return "classes";
	if (a->context_length != b->context_length)
		return "context_length";
	if (a->vocab != b->vocab)
		return "vocab";
	return NULL;
}

static bool same_hash(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b)
{
	return a->config_hash && *a->config_hash && rfl_text_same(a->config_hash, b->config_hash);
}

/* A row with status ok has these, or it cannot be placed. */
static enum rfl_rc check_row(const char *path, const struct rfl_ledger_row *row,
			     struct rfl_err *err)
{
	const char *empty = NULL;

	if (!row->model || !*row->model)
		empty = "model";
	else if (!row->precision || !*row->precision)
		empty = "precision";
	else if (!row->mode || !*row->mode)
		empty = "mode";
	else if (!row->backend || !*row->backend)
		empty = "backend";
	if (empty)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: column '%s' is empty; a run with status ok has one", path,
				row->line, empty);
	if (row->batch < 1)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: column 'batch' is not a number of samples", path,
				row->line);
	return RFL_OK;
}

static struct rfl_config *new_config(struct rfl_configs *cs, const char *env)
{
	struct rfl_config *c;

	if (cs->n == cs->cap) {
		size_t cap = cs->cap ? cs->cap * 2 : 16;
		struct rfl_config *grown = rfl_alloc_array(cap, sizeof(*grown));

		if (!grown)
			return NULL;
		if (cs->n)
			memcpy(grown, cs->configs, cs->n * sizeof(*grown));
		free(cs->configs);
		cs->configs = grown;
		cs->cap = cap;
	}
	c = &cs->configs[cs->n++];
	(void)snprintf(c->env, sizeof(c->env), "%s", env);
	return c;
}

static enum rfl_rc add_row(struct rfl_config *c, const struct rfl_ledger_row *row,
			   struct rfl_err *err)
{
	if (c->nrows == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 4;
		const struct rfl_ledger_row **grown = rfl_alloc_array(cap, sizeof(*grown));

		if (!grown)
			return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		if (c->nrows)
			memcpy(grown, c->rows, c->nrows * sizeof(*grown));
		free(c->rows);
		c->rows = grown;
		c->cap = cap;
	}
	c->rows[c->nrows++] = row;
	return RFL_OK;
}

/* The configuration of a row, made when it is the first of it. */
static enum rfl_rc find_config(const char *path, struct rfl_configs *cs, const char *env,
			       const struct rfl_ledger_row *row, struct rfl_config **ret,
			       struct rfl_err *err)
{
	for (size_t i = 0; i < cs->n; i++) {
		struct rfl_config *c = &cs->configs[i];
		const char *what;

		if (strcmp(c->env, env) != 0)
			continue;
		what = same_hash(c->rows[0], row) ? contradiction(c->rows[0], row) : NULL;
		if (what)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:%zu: has the config_hash %s of line %zu but another "
					"'%s'; one of the two rows was changed",
					path, row->line, row->config_hash, c->rows[0]->line, what);
		if (!rfl_facts_repeats(c->rows[0], row))
			continue;
		*ret = c;
		return RFL_OK;
	}
	*ret = new_config(cs, env);
	return *ret ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
}

enum rfl_rc rfl_merge__row_env(const char *path, const struct rfl_ledger_row *row, char ret[49],
			       struct rfl_err *err)
{
	const char *given = row->env && *row->env ? row->env : NULL;
	enum rfl_rc rc = rfl_label_env(given, row->label, row->model,
				       row->backend ? row->backend : "", ret, err);

	if (rc != RFL_OK)
		rfl_err_prefix(err, "%s:%zu", path, row->line);
	return rc;
}

bool rfl_merge__wanted(const struct rfl_merge_options *o, const char *env)
{
	for (size_t i = 0; i < o->nenvs; i++)
		if (strcmp(o->envs[i], env) == 0)
			return true;
	return o->nenvs == 0;
}

/* The environments of a ledger, each once, as borrowed names. NULL out of memory. */
static const char **env_names(const struct rfl_merge_inputs *in, char (*room)[49], size_t *n)
{
	const struct rfl_ledger *l = in->ledger;
	const char **names = rfl_alloc_array(l->nrows + 1, sizeof(*names));

	*n = 0;
	for (size_t i = 0; names && i < l->nrows; i++) {
		const struct rfl_ledger_row *row = &l->rows[i];
		size_t k = 0;

		/* a run that failed early may not say enough; it has no environment then */
		if (!row->backend ||
		    rfl_merge__row_env(in->ledger_path, row, room[*n], NULL) != RFL_OK)
			continue;
		while (k < *n && strcmp(names[k], room[*n]) != 0)
			k++;
		if (k == *n)
			names[(*n)++] = room[k];
	}
	return names;
}

/* Every environment that was asked for must be in the ledger, with whatever status. */
static enum rfl_rc check_envs(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			      struct rfl_err *err)
{
	char(*room)[49] = rfl_alloc_array(in->ledger->nrows + 1, sizeof(*room));
	const char **names = NULL;
	struct rfl_buf list;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&list, 1 << 16);
	names = room ? env_names(in, room, &n) : NULL;
	if (!names) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		rfl_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	for (size_t i = 0; i < o->nenvs && rc == RFL_OK; i++) {
		const char *near = rfl_text_nearest(o->envs[i], names);
		size_t k = 0;

		while (k < n && strcmp(names[k], o->envs[i]) != 0)
			k++;
		if (k < n)
			continue;
		rc = rfl_fail(err, RFL_ENOTFOUND, 0,
			      "%s has no run of environment '%s' (it has: %s)%s%s%s",
			      in->ledger_path, o->envs[i], list.len ? rfl_buf_str(&list) : "none",
			      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
done:
	free(names);
	free(room);
	rfl_buf_fini(&list);
	return rc;
}

static void note_statuses(const struct rfl_ledger *l, struct rfl_merge_report *report)
{
	static const char *const statuses[] = { "oom", "timeout",     "failed",      "crash",
						"nan", "unsupported", "interrupted", NULL };
	size_t named = 0;

	if (!report->not_ok)
		return;
	rfl_buf_printf(&report->notes,
		       "left out %zu of %zu runs whose status is not ok:", report->not_ok,
		       report->rows);
	for (size_t s = 0; statuses[s]; s++) {
		size_t n = 0;

		for (size_t i = 0; i < l->nrows; i++)
			n += rfl_text_same(l->rows[i].status, statuses[s]);
		if (n)
			rfl_buf_printf(&report->notes, " %zu %s", n, statuses[s]);
		named += n;
	}
	if (named < report->not_ok)
		rfl_buf_printf(&report->notes, " %zu other", report->not_ok - named);
	rfl_buf_putc(&report->notes, '\n');
}

/* A run under a profiler tells batch and steps of its counters; its times are slowed. */
static bool is_profiled(const struct rfl_ledger_row *row)
{
	struct rfl_label parts;

	if (!row->label)
		return false;
	rfl_label_parse(row->label, row->model, &parts);
	return parts.profiled;
}

static void note_profiled(const char *path, const struct rfl_ledger_row *first,
			  struct rfl_merge_report *report)
{
	if (first)
		rfl_buf_printf(
			&report->notes,
			"%zu of %zu runs %s profiled (label ..._prof, first %s:%zu): slowed, "
			"so that no point is made of their times; they tell batch and steps "
			"of their counters\n",
			report->profiled, report->rows, report->profiled == 1 ? "was" : "were",
			path, first->line);
}

int64_t rfl_merge__roofs(const struct rfl_ledger_row *row)
{
	if (row->world_size <= 1)
		return 1;
	if (rfl_text_same(row->backend, "cuda"))
		return row->world_size;
	return rfl_text_same(row->launcher, "roofline") ? 1 : 0;
}

int64_t rfl_merge__batch(const struct rfl_ledger_row *row)
{
	const int64_t roofs = rfl_merge__roofs(row);

	return roofs > 1 && row->batch % roofs == 0 ? row->batch / roofs : row->batch;
}

/* Of several processes the row of all is placed, where it is known under what. */
static bool is_placed(const char *path, const struct rfl_ledger_row *row,
		      struct rfl_merge_report *report)
{
	if (row->world_size <= 1)
		return true;
	if (row->rank >= 0)
		return false;
	if (rfl_merge__roofs(row) > 0)
		return true;
	rfl_buf_printf(&report->notes,
		       "left out %s:%zu: %" PRId64
		       " processes on processors of machines whose number the ledger does not "
		       "tell\n",
		       path, row->line, row->world_size);
	return false;
}

enum rfl_rc rfl_merge__group(const struct rfl_merge_inputs *in,
			     const struct rfl_merge_options *options, struct rfl_configs *ret,
			     struct rfl_merge_report *report, struct rfl_err *err)
{
	const struct rfl_ledger *l = in->ledger;
	const struct rfl_ledger_row *profiled = NULL;
	enum rfl_rc rc = options->nenvs ? check_envs(in, options, err) : RFL_OK;

	for (size_t i = 0; i < l->nrows && rc == RFL_OK; i++) {
		const struct rfl_ledger_row *row = &l->rows[i];
		struct rfl_config *config = NULL;
		char env[49];

		report->rows++;
		if (!row->status || !*row->status) {
			rc = rfl_fail(err, RFL_EFORMAT, 0,
				      "%s:%zu: there is no 'status' (such as ok); is this the "
				      "metrics.csv of 'roofline run'?",
				      in->ledger_path, row->line);
			break;
		}
		if (!rfl_text_same(row->status, "ok")) {
			report->not_ok++;
			continue;
		}
		rc = check_row(in->ledger_path, row, err);
		if (rc == RFL_OK)
			rc = rfl_merge__row_env(in->ledger_path, row, env, err);
		if (rc != RFL_OK)
			break;
		if (!rfl_merge__wanted(options, env)) {
			report->other_env++;
			continue;
		}
		if (is_profiled(row)) {
			profiled = profiled ? profiled : row;
			report->profiled++;
			continue;
		}
		if (!is_placed(in->ledger_path, row, report))
			continue;
		if (!(row->step_ms_median > 0)) {
			report->no_time++;
			rfl_buf_printf(&report->notes,
				       "left out %s:%zu: status ok, but no median step time\n",
				       in->ledger_path, row->line);
			continue;
		}
		rc = find_config(in->ledger_path, ret, env, row, &config, err);
		if (rc == RFL_OK)
			rc = add_row(config, row, err);
		report->used++;
	}
	note_statuses(l, report);
	note_profiled(in->ledger_path, profiled, report);
	return rc;
}

void rfl_configs_fini(struct rfl_configs *configs)
{
	for (size_t i = 0; i < configs->n; i++) {
		free(configs->configs[i].rows);
		free(configs->configs[i].counted);
		rfl_measured_fini(&configs->configs[i].measured);
	}
	free(configs->configs);
	*configs = (struct rfl_configs){ .n = 0 };
}
