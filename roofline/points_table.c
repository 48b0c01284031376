/*
 * points_table.c - points from the arithmetic intensities and rates of another program or of its
 * table. Nothing is counted: the numbers are the program's, the ceilings the environment's.
 */
#include "roofline/parts.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "roofline/verdict.h"

/* The key of the compute ceiling: the one for runs in this precision, else any that is known. */
static const char *key_of(const struct rfl_peaks_env *env, const struct rfl_point *p,
			  struct rfl_arena *arena)
{
	static const char *const units[] = { "vector", "matrix" };
	const bool gpu = rfl_text_same(env->kind, "gpu");
	const char *backend = p->backend ? p->backend : gpu ? "cuda" : "cpu", *key = NULL;
	const struct rfl_ceiling *ceiling;

	if (rfl_ceiling_find(backend, p->precision, &ceiling, NULL) == RFL_OK)
		return rfl_ceiling_key(ceiling, env);
	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++) {
		key = rfl_arena_printf(arena, "%s.%s", p->precision, units[i]);
		if (rfl_peak_usable(rfl_peaks_compute(env, key)))
			return key;
	}
	return rfl_arena_printf(arena, "%s.vector", p->precision);
}

enum rfl_rc rfl_point_assess(struct rfl_point *p, const struct rfl_peaks *peaks,
			     struct rfl_arena *arena, struct rfl_err *err)
{
	struct rfl_verdict_facts facts = { .env = rfl_peaks_find(peaks, p->env),
					   .step_compulsory_bytes = NAN };
	RFL_AUTO(buf) fact = { .len = 0 };
	RFL_AUTO(buf) fix = { .len = 0 };
	RFL_AUTO(buf) verdict = { .len = 0 };
	const char *key = facts.env ? key_of(facts.env, p, arena) : "";

	facts.compute = facts.env ? rfl_peaks_compute(facts.env, key) : NULL;
	facts.dram = facts.env ? rfl_peaks_dram(facts.env) : NULL;
	for (int dram = 0; dram < 2 && !fact.len; dram++)
		rfl_missing_ceiling(peaks, p->env, dram ? "DRAM" : key,
				    dram ? facts.dram : facts.compute, p->backend,
				    "leave out the point", &fact, &fix);
	if (fact.len)
		return rfl_fail(err, RFL_EMISSING, 0, "%s; %s", rfl_buf_str(&fact),
				rfl_buf_str(&fix));
	rfl_point_set_roof(p, key, facts.compute->value, facts.compute->status, facts.dram, arena);
	rfl_point_judge(p, &facts, arena);
	rfl_verdict_write(p, &facts, &verdict);
	p->verdict = rfl_arena_strdup(arena, rfl_buf_str(&verdict));
	return RFL_OK;
}

static bool is_precision(const char *name)
{
	for (size_t i = 0; rfl_peaks_precisions[i]; i++)
		if (rfl_text_same(name, rfl_peaks_precisions[i]))
			return true;
	return false;
}

enum rfl_rc rfl_points_of_table(const struct rfl_ledger *table, const char *path,
				const struct rfl_peaks *peaks, const char *env,
				struct rfl_points **ret, struct rfl_err *err)
{
	RFL_AUTOPTR(points) pts = rfl_points_new(table->nrows);
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < table->nrows && rc == RFL_OK; i++) {
		const struct rfl_ledger_row *row = &table->rows[i];
		const char *of = row->env ? row->env : env;
		const char *near, *lacks = !of ? "env" : !row->precision ? "precision" : NULL;
		struct rfl_point *p = &pts->points[i];
		const struct {
			char **to;
			const char *from;
		} texts[] = {
			{ &p->env, of },
			{ &p->model, row->model ? row->model : row->label },
			{ &p->precision, row->precision },
			{ &p->mode, row->mode },
			{ &p->layout, row->layout },
			{ &p->backend, row->backend },
			{ &p->engine, row->engine },
			{ &p->device_name, row->device_name },
			{ &p->flops_source, RFL_POINT_OF_TABLE },
			{ &p->bytes_source, RFL_POINT_OF_TABLE },
			{ &p->peaks_hash, peaks->hash },
			{ &p->ledger_hash, table->hash },
		};

		if (lacks)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:%zu: the %s is unknown; add --map '%s=\"%s\"'", path,
					row->line, lacks, lacks, row->env || env ? "fp32" : "lab");
		if (!is_precision(row->precision)) {
			near = rfl_text_nearest(row->precision, rfl_peaks_precisions);
			return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: unknown precision '%s'%s%s%s",
					path, row->line, row->precision,
					near ? "; did you mean " : "", near ? near : "",
					near ? "?" : "");
		}
		for (size_t k = 0; k < RFL_ARRAY_LEN(texts); k++)
			if (texts[k].from && *texts[k].from)
				*texts[k].to = rfl_arena_strdup(pts->arena, texts[k].from);
		p->batch = row->batch;
		p->runs = row->samples_per_s_n;
		p->samples_per_s = row->samples_per_s;
		p->samples_per_s_std = row->samples_per_s_std;
		p->ai = p->ai_lo = p->ai_hi = row->ai;
		p->ai_l2 = row->ai_l2;
		p->ai_l1 = row->ai_l1;
		p->attained_gflops = row->attained_gflops;
		if (row->attained_gflops_std > 0 && isfinite(row->attained_gflops_std)) {
			p->attained_gflops_lo =
				fmax(row->attained_gflops - row->attained_gflops_std, 0);
			p->attained_gflops_hi = row->attained_gflops + row->attained_gflops_std;
			p->step_source = rfl_arena_strdup(pts->arena, RFL_POINT_OF_TABLE);
		}
		if (row->ai > 0 && row->attained_gflops > 0 &&
		    (rc = rfl_point_assess(p, peaks, pts->arena, err)))
			rfl_err_prefix(err, "%s:%zu", path, row->line);
	}
	if (rc == RFL_OK && pts->n == 0)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s: the table has no rows; add one per point",
			      path);
	if (rc == RFL_OK) {
		*ret = pts;
		pts = NULL;
	}
	return rc;
}
