/* generation.c - runs of language models with a cache: their times, bounds and bytes, as a table.
 */
#include "report/generation.h"

#include <math.h>

#include "base/text.h"
#include "complexity/lm.h"
#include "roofline/lm_time.h"

#define TEXT(member, ...) RFL_COLUMN(TEXT, struct rfl_generation, member, __VA_ARGS__)
#define INT(member, ...)  RFL_COLUMN(INT, struct rfl_generation, member, __VA_ARGS__)
#define REAL(member, ...) RFL_COLUMN(REAL, struct rfl_generation, member, __VA_ARGS__)

enum { ALL = 1 }; /* for programs */

static const struct rfl_column columns[] = {
	TEXT(env, "env", "environment", .setting = true),
	TEXT(model, "model", "model"),
	TEXT(precision, "precision", "precision"),
	TEXT(weights, "weights", "weights", .setting = true),
	TEXT(mode, "mode", "mode"),
	INT(batch, "batch", "batch"),
	INT(past, "past", "past"),
	INT(tokens, "tokens", "new"),
	REAL(step_s, "step_s", "step ms", .scale = 1e-3),
	REAL(deviation, "step_deviation", "+- %", .digits = 2, .scale = 0.01),
	REAL(tokens_per_s, "tokens_per_s", "tokens/s"),
	REAL(most_tokens_per_s, "most_tokens_per_s", "bound"),
	REAL(share, "share_of_bound", "%", .digits = 3, .scale = 0.01),
	REAL(weights_bytes, "weights_bytes", "weights MB", .scale = 1e6),
	REAL(cache_bytes, "cache_bytes", "cache MB", .scale = 1e6),
	REAL(byte_per_s, "byte_per_s", "GB/s", .scale = 1e9, .digits = 3),
	REAL(linear_s, "linear_s", "linear ms", .scale = 1e-3, .digits = 3),
	REAL(attention_s, "attention_s", "attention ms", .scale = 1e-3, .digits = 3),
	REAL(other_s, "other_s", "other ms", .scale = 1e-3, .digits = 3),
	INT(runs, "runs", "runs", .setting = true),
	REAL(least_s, "least_s", "least s", .when = ALL),
	TEXT(status, "status", "status"),
	TEXT(reason, "reason", "reason", .when = ALL),
};

/* The means of the runs that are ok. */
static void add_times(const struct rfl_ledger_row *const *rows, size_t n, struct rfl_generation *g)
{
	double step = 0, linear = 0, attention = 0, other = 0;

	for (size_t i = 0; i < n; i++) {
		const struct rfl_ledger_row *r = rows[i];
		const double s = (double)r->batch / r->samples_per_s;

		if (!rfl_text_same(r->status, "ok"))
			continue;
		g->runs++;
		step += s;
		linear += r->linear_ms * 1e-3;
		attention += r->attention_ms * 1e-3;
		other += r->other_ms * 1e-3;
		g->deviation = fmax(g->deviation, r->step_ms_std / r->step_ms_mean);
	}
	g->step_s = step / (double)g->runs;
	g->linear_s = linear / (double)g->runs;
	g->attention_s = attention / (double)g->runs;
	g->other_s = other / (double)g->runs;
	g->tokens_per_s = (double)(g->batch * g->tokens) / g->step_s;
}

static void add_bytes(const struct rfl_lm_run *run, double steps, struct rfl_generation *g)
{
	const struct rfl_lm_op sum = rfl_lm_total(&run->count);

	g->weights_bytes = (sum.bytes[RFL_LM_WEIGHTS] + sum.bytes[RFL_LM_SCALES]) / steps;
	g->cache_bytes = (sum.bytes[RFL_LM_CACHE_READ] + sum.bytes[RFL_LM_CACHE_WRITTEN]) / steps;
	g->byte_per_s = rfl_lm_traffic(&sum) / steps / g->step_s;
}

/* The counts of the steps, and their minimum time. */
static void add_bound(const struct rfl_ledger_row *row, const char *net,
		      const struct rfl_peaks *peaks, struct rfl_arena *arena,
		      struct rfl_generation *g)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_lm_steps steps;
	const enum rfl_rc rc = rfl_lm_steps_of(row, net, peaks, arena, &steps, &why);

	if (rc != RFL_OK && rc != RFL_EMISSING) {
		g->reason = g->reason ? g->reason : rfl_arena_strdup(arena, why.msg);
		return;
	}
	add_bytes(&steps.run, (double)steps.run.steps, g);
	g->least_s = steps.least_s;
	g->share = g->least_s / g->step_s;
	g->most_tokens_per_s = (double)(g->batch * g->tokens) / g->least_s;
}

void rfl_generation_of(const struct rfl_ledger_row *const *rows, size_t n, const char *net,
		       const struct rfl_peaks *peaks, struct rfl_arena *arena,
		       struct rfl_generation *ret)
{
	const struct rfl_ledger_row *last = rows[n - 1];
	const bool ok = rfl_text_same(last->status, "ok");
	struct rfl_generation g = {
		.env = rfl_arena_strdup(arena, last->env),
		.model = rfl_arena_strdup(arena, last->model),
		.mode = rfl_arena_strdup(arena, last->mode),
		.precision = rfl_arena_strdup(arena, last->precision),
		.weights = rfl_arena_strdup(arena, rfl_text_same(last->weights, "int8")
							   ? last->weights
							   : last->precision),
		.batch = last->batch,
		.past = last->past,
		.tokens = last->context_length,
		.deviation = NAN,
		.least_s = NAN,
		.share = NAN,
		.most_tokens_per_s = NAN,
		.weights_bytes = NAN,
		.cache_bytes = NAN,
		.byte_per_s = NAN,
		.status = rfl_arena_strdup(arena, last->status),
		.reason = ok ? NULL : rfl_arena_strdup(arena, last->error_text),
	};

	add_times(rows, n, &g);
	add_bound(last, net, peaks, arena, &g);
	*ret = g;
}

struct rfl_table *rfl_generation_table(const struct rfl_generation *rows, size_t n, bool all)
{
	struct rfl_table *t = rfl_table_of(columns, RFL_ARRAY_LEN(columns), all ? ALL : 0);
	bool bound = false;

	rfl_table_add(t, rows, n, sizeof(*rows));
	for (size_t i = 0; i < n; i++) {
		bound |= !isnan(rows[i].least_s);
		if (rows[i].reason)
			rfl_table_note(t, "%s, batch %lld, past %lld: %s: %s", rows[i].model,
				       (long long)rows[i].batch, (long long)rows[i].past,
				       rows[i].status, rows[i].reason);
	}
	if (bound)
		rfl_table_note(t,
			       "bound: tokens/s if every operation takes the minimum time of the "
			       "ceilings; %%: the share of it that was reached.");
	rfl_table_note(t, "linear, attention, other: the time of a step by kind of operation, from "
			  "steps after the measured ones.");
	return t;
}
