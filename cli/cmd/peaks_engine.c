/*
 * peaks_engine.c - ceilings that a framework attains: runs of networks that consist of one kind of
 * operation, through an engine, as by 'roofline run'. Their ledger is temporary.
 */
#define _XOPEN_SOURCE 700 /* nftw */
#include "cli/cmd/peaks_engine.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/cmd/run_config.h"
#include "complexity/count.h"
#include "complexity/net/file.h"
#include "peaks/measure.h"
#include "rfl_config.h"

#define CHAIN        4 /* products or elementwise operations in a network */
#define CLASSES      8 /* few, so that the loss takes no time */
#define WARMUP       2
#define REPEATS      21
#define LEAST_STEPS  5 /* for a size that is slow */
#define SIZE_LEAST   512
#define SIZE_MOST    8192
#define COPY_BYTES   ((int64_t)256 << 20) /* each tensor; larger than caches */
#define COPY_PIXELS  ((int64_t)512)
#define COPY_PLANES  ((int64_t)64)
#define SIZE_S       3.0 /* approximate time for one size, and the largest */
#define SIZE_MOST_S  10.0
#define QUICK_S      1.0
#define QUICK_MOST_S 3.0

#define PRODUCTS    "products of "
#define ELEMENTWISE "ReLU of "

static const struct {
	const char *precision, *gemm, *vector;
	bool cuda_only;
} rows[] = {
	{ "fp32", "fp32.gemm", "fp32.vector", false },
	{ "tf32", "tf32.gemm", NULL, true },
	{ "bf16", "bf16.gemm", "bf16.vector", false },
	{ "fp16", "fp16.gemm", "fp16.vector", false },
};

struct job {
	struct rfl_cli *cli;
	const struct rfl_engine_peaks_spec *spec;
	struct rfl_engine_peaks *to;
	int64_t repeats;
	char dir[256], net[300];
};

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "peaks measure: out of memory");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

/* ---- networks ---- */

static json_t *product_net(int64_t size)
{
	json_t *nodes = json_pack("[{s:s}]", "op", "flatten");
	bool ok = nodes != NULL;

	for (int i = 0; i <= CHAIN && ok; i++)
		ok = json_array_append_new(
			     nodes, json_pack("{s:s, s:o, s:I}", "op", "linear", "name",
					      json_sprintf("product%d", i), "out_features",
					      (json_int_t)(i < CHAIN ? size : CLASSES))) == 0;
	return json_pack("{s:s, s:s, s:{s:[I, i, i]}, s:o}", "schema", RFL_NET_FILE_SCHEMA, "model",
			 "products", "input", "image", (json_int_t)size, 1, 1, "nodes", nodes);
}

static json_t *elementwise_net(void)
{
	json_t *nodes = json_array();
	bool ok = nodes != NULL;

	for (int i = 0; i < CHAIN && ok; i++)
		ok = json_array_append_new(nodes, json_pack("{s:s, s:o}", "op", "relu", "name",
							    json_sprintf("relu%d", i))) == 0;
	ok = ok &&
	     json_array_append_new(nodes, json_pack("{s:s, s:s, s:i}", "op", "adaptive_avg_pool",
						    "name", "mean", "out", 1)) == 0 &&
	     json_array_append_new(nodes, json_pack("{s:s}", "op", "flatten")) == 0 &&
	     json_array_append_new(nodes, json_pack("{s:s, s:s, s:i}", "op", "linear", "name",
						    "head", "out_features", CLASSES)) == 0;
	return json_pack("{s:s, s:s, s:{s:[I, I, I]}, s:o}", "schema", RFL_NET_FILE_SCHEMA, "model",
			 "elementwise", "input", "image", (json_int_t)COPY_PLANES,
			 (json_int_t)COPY_PIXELS, (json_int_t)COPY_PIXELS, "nodes", nodes);
}

static enum rfl_rc save_net(const struct job *j, json_t *take_net, struct rfl_err *err)
{
	enum rfl_rc rc = take_net ? rfl_json_save(j->net, take_net, err) : no_memory(err);

	json_decref(take_net);
	return rc;
}

/* The bytes of the elementwise network: each operation reads and writes its tensors. */
static enum rfl_rc count_bytes(const struct job *j, int64_t batch, double *ret, struct rfl_err *err)
{
	const struct rfl_count_options options = { .batch = batch };
	struct rfl_count *count = NULL;
	struct rfl_net *net = NULL;
	enum rfl_rc rc;

	if ((rc = rfl_net_load(j->net, &net, err)) == RFL_OK &&
	    (rc = rfl_count_net(net, &options, &count, err)) == RFL_OK)
		*ret = (double)rfl_count_bytes(count, RFL_FUSION_UNFUSED, RFL_SCOPE_FORWARD);
	rfl_count_free(count);
	rfl_net_free(net);
	return rc;
}

/* ---- runs ---- */

/* Run the network forward. @param ret  always release it */
static enum rfl_rc run_net(struct job *j, const char *precision, int64_t batch, int64_t iters,
			   struct rfl_run_result *ret, struct rfl_err *err)
{
	struct rfl_cli *cli = j->cli;
	const char *outer = cli->line.prefix;
	const struct rfl_engine_peaks_spec *s = j->spec;
	char batch_size[24], steps[24], threads[24], warmup[24], prefix[64];
	const char *const argv[] = {
		"run",
		"--synthetic",
		"--mode",
		"fwd",
		"--arch",
		j->net,
		"--precision",
		precision,
		"--batch-size",
		batch_size,
		"--iters",
		steps,
		"--warmup-iters",
		warmup,
		"--threads",
		threads,
		"--env",
		s->env,
		"--log-dir",
		j->dir,
		"--backend",
		rfl_device_names[s->device],
		"--engine",
		s->engine,
		NULL,
	};
	struct rfl_run_config config;
	enum rfl_rc rc;

	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	snprintf(batch_size, sizeof(batch_size), "%lld", (long long)batch);
	snprintf(steps, sizeof(steps), "%lld", (long long)iters);
	snprintf(threads, sizeof(threads), "%lld", (long long)s->threads);
	snprintf(warmup, sizeof(warmup), "%d", WARMUP);
	snprintf(prefix, sizeof(prefix), "peaks measure: %s %lld, ", precision, (long long)batch);
	cli->line.prefix = prefix;
	rc = rfl_run_config_parse(cli, (int)RFL_ARRAY_LEN(argv) - 1, (char *const *)argv, &config,
				  err);
	if (rc == RFL_OK)
		rc = rfl_cli_run(cli, &config, "peaks measure", NULL, ret, err);
	cli->line.prefix = outer;
	if (rc == RFL_OK && ret->row.status && strcmp(ret->row.status, "interrupted") == 0)
		rc = rfl_fail(err, RFL_EINTR, 0, "interrupted");
	return rc;
}

/* Compare a run with the best so far; without one, a failure is the reason. */
static void take(struct job *j, struct rfl_engine_peak *p, const struct rfl_run_result *run,
		 double work, int64_t size)
{
	const struct rfl_ledger_row *row = &run->row;
	const double best = work / (row->step_ms_min * 1e-3);
	char bytes[RFL_NUM_MAX];

	if (!row->status || strcmp(row->status, "ok") != 0) {
		if (p->size > 0)
			return;
		snprintf(p->reason, sizeof(p->reason), "%.250s",
			 row->error_text ? row->error_text : rfl_rc_text(run->rc));
		p->unsupported = (row->status && strcmp(row->status, "unsupported") == 0) ||
				 run->rc == RFL_EUNAVAILABLE;
		return;
	}
	if (row->device_name)
		snprintf(j->to->device, sizeof(j->to->device), "%.127s", row->device_name);
	if (p->size > 0 && !(best > p->stats.max))
		return;
	p->size = size;
	p->threads = j->spec->device == RFL_DEVICE_CPU ? row->threads : 0;
	p->stats = (struct rfl_stats){
		.n = (size_t)row->iters,
		.median = work / (row->step_ms_median * 1e-3),
		.min = work / (row->step_ms_max * 1e-3),
		.max = best,
	};
	if (strcmp(p->key, "DRAM") == 0)
		snprintf(p->kernel, sizeof(p->kernel), "%s %s, " ELEMENTWISE "%s", row->engine,
			 row->engine_version, rfl_num_bytes((double)size, bytes, sizeof(bytes)));
	else
		snprintf(p->kernel, sizeof(p->kernel),
			 "%s %s, " PRODUCTS "%lld x %lld matrices%s%s", row->engine,
			 row->engine_version, (long long)size, (long long)size,
			 run->libraries[0] ? ", " : "", run->libraries);
}

/* Try sizes as long as one does not take too long; the fastest is the ceiling. */
static enum rfl_rc measure_product(struct job *j, const char *precision, struct rfl_engine_peak *p,
				   struct rfl_err *err)
{
	const struct rfl_engine_peaks_spec *s = j->spec;
	const double time_s = s->quick ? QUICK_S : SIZE_S;
	const double most_s = s->quick ? QUICK_MOST_S : SIZE_MOST_S;
	const int64_t least = j->repeats < LEAST_STEPS ? j->repeats : LEAST_STEPS;
	double step_s = 0; /* expected; 0: unknown */
	enum rfl_rc rc = RFL_OK;

	for (int64_t size = SIZE_LEAST; size <= SIZE_MOST && rc == RFL_OK && !p->reason[0] &&
					step_s * (double)(WARMUP + least) <= most_s;
	     size *= 2) {
		struct rfl_run_result run;
		int64_t iters = j->repeats;

		if (step_s * (double)iters > time_s)
			iters = (int64_t)(time_s / step_s);
		iters = iters < least ? least : iters;
		if ((rc = save_net(j, product_net(size), err)))
			break;
		rc = run_net(j, precision, size, iters, &run, err);
		if (rc == RFL_OK) {
			const double flops = (double)run.row.model_flops_per_step;

			take(j, p, &run, flops, size);
			rfl_log(RFL_LOG_DEBUG, "%s: %lld: %.4g GFLOP/s", p->key, (long long)size,
				flops / run.row.step_ms_min * 1e-6);
			if (run.rc != RFL_OK) /* such as too little memory for this size */
				step_s = INFINITY;
			else
				step_s = run.row.step_ms_median * 1e-3 * 8;
		}
		rfl_run_result_fini(&run);
	}
	return rc;
}

static enum rfl_rc measure_elementwise(struct job *j, struct rfl_engine_peak *p,
				       struct rfl_err *err)
{
	const int64_t sample = COPY_PLANES * COPY_PIXELS * COPY_PIXELS * (int64_t)sizeof(float);
	const int64_t batch = COPY_BYTES / sample;
	struct rfl_run_result run;
	double bytes = 0;
	enum rfl_rc rc;

	if ((rc = save_net(j, elementwise_net(), err)) || (rc = count_bytes(j, batch, &bytes, err)))
		return rc;
	rc = run_net(j, "fp32", batch, j->repeats, &run, err);
	if (rc == RFL_OK)
		take(j, p, &run, bytes, COPY_BYTES);
	rfl_run_result_fini(&run);
	return rc;
}

/* ---- the ceilings to measure ---- */

static bool is_named(const struct rfl_engine_peaks_spec *s, const char *key)
{
	return s->only->n > 0 && rfl_opt_list_has(s->only, key);
}

static bool is_wanted(const struct rfl_engine_peaks_spec *s, const char *key)
{
	return s->only->n == 0 || is_named(s, key);
}

/* Whether to measure a ceiling for which an engine is only a substitute. */
static bool is_needed(const struct rfl_engine_peaks_spec *s, const char *key,
		      const struct rfl_peak *known)
{
	const bool ours = known && known->kernel &&
			  (strstr(known->kernel, PRODUCTS) || strstr(known->kernel, ELEMENTWISE));

	if (is_named(s, key))
		return true;
	if (s->only->n > 0)
		return false;
	if (rfl_peak_usable(known) && !ours) {
		rfl_log(RFL_LOG_INFO,
			"%s is already known (%s) and is not measured; use --only %s to replace it",
			key, rfl_peak_status_name(known->status), key);
		return false;
	}
	return true;
}

static struct rfl_engine_peak *next(struct job *j, const char *key)
{
	struct rfl_engine_peak *p = &j->to->peaks[j->to->n++];

	assert(j->to->n <= RFL_ARRAY_LEN(j->to->peaks));
	*p = (struct rfl_engine_peak){ .key = key };
	return p;
}

static enum rfl_rc measure_all(struct job *j, struct rfl_err *err)
{
	const struct rfl_engine_peaks_spec *s = j->spec;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows) && rc == RFL_OK; i++) {
		const bool gemm = is_wanted(s, rows[i].gemm) &&
				  (!rows[i].cuda_only || s->device == RFL_DEVICE_CUDA ||
				   is_named(s, rows[i].gemm));
		const bool vector =
			s->device == RFL_DEVICE_MPS && rows[i].vector &&
			is_needed(s, rows[i].vector,
				  s->known ? rfl_peaks_compute(s->known, rows[i].vector) : NULL);
		struct rfl_engine_peak *p;

		if (!gemm && !vector)
			continue;
		p = next(j, gemm ? rows[i].gemm : rows[i].vector);
		rc = measure_product(j, rows[i].precision, p, err);
		if (gemm && vector) {
			struct rfl_engine_peak *also = next(j, rows[i].vector);

			*also = *p;
			also->key = rows[i].vector;
		}
	}
	if (rc == RFL_OK && s->device == RFL_DEVICE_MPS &&
	    is_needed(s, "DRAM", s->known ? rfl_peaks_dram(s->known) : NULL))
		rc = measure_elementwise(j, next(j, "DRAM"), err);
	return rc;
}

enum rfl_rc rfl_engine_peaks_measure(struct rfl_cli *cli, const struct rfl_engine_peaks_spec *spec,
				     struct rfl_engine_peaks *ret, struct rfl_err *err)
{
	const char *tmp = getenv("TMPDIR");
	struct job j = { .cli = cli, .spec = spec, .to = ret };
	size_t kept = 0, measured = 0;
	char why[256] = "it cannot measure the ceilings selected with --only";
	enum rfl_rc rc;

	*ret = (struct rfl_engine_peaks){ .n = 0 };
	j.repeats = spec->repeats > 0 ? spec->repeats : REPEATS;
	snprintf(j.dir, sizeof(j.dir), "%.200s/roofline-peaks-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(j.dir))
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", j.dir, strerror(errno));
	snprintf(j.net, sizeof(j.net), "%s/net.json", j.dir);
	rc = measure_all(&j, err);
	(void)nftw(j.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rfl_clock_iso(ret->measured_at);
	for (size_t i = 0; i < ret->n; i++) {
		const struct rfl_engine_peak *p = &ret->peaks[i];

		measured += !p->reason[0];
		if (p->reason[0])
			memcpy(why, p->reason, sizeof(why));
		/* a precision that was not requested and does not exist is left out */
		if (!p->unsupported || is_named(spec, p->key))
			ret->peaks[kept++] = *p;
	}
	ret->n = kept;
	if (rc == RFL_OK && measured == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing was measured with engine %s: %s",
			      spec->engine, why);
	return rc;
}

/* ---- as JSON ---- */

static json_t *ceiling_json(const struct rfl_engine_peaks *all, const struct rfl_engine_peak *p)
{
	const json_int_t size = (json_int_t)p->size;
	json_t *method;

	if (p->reason[0])
		return rfl_measure_no_ceiling(p->unsupported ? "unsupported" : "failed", p->reason);
	method = json_pack("{s:s, s:s, s:s, s:s}", "kernel", p->kernel, "tool",
			   "roofline " RFL_VERSION, "measured_at", all->measured_at, "input",
			   "random");
	if (strcmp(p->key, "DRAM") == 0)
		(void)json_object_update_new(method,
					     json_pack("{s:s, s:I}", "bytes_counted", "explicit",
						       "working_set_bytes", size));
	else
		(void)json_object_set_new(method, "shape",
					  json_pack("[I, I, I]", size, size, size));
	return rfl_measure_ceiling(
		p->stats.max, &p->stats, 1, method,
		json_pack("{s:o*}", "threads", p->threads > 0 ? json_integer(p->threads) : NULL));
}

enum rfl_rc rfl_engine_peaks_add(const struct rfl_engine_peaks *all, json_t *env,
				 struct rfl_err *err)
{
	json_t *compute = json_object_get(env, "compute"), *memory = json_object_get(env, "memory");
	bool ok = compute && memory;

	for (size_t i = 0; i < all->n && ok; i++) {
		const struct rfl_engine_peak *p = &all->peaks[i];
		json_t *ceiling = ceiling_json(all, p);

		if (strcmp(p->key, "DRAM") == 0)
			ok = json_array_clear(memory) == 0 &&
			     json_array_append_new(memory, json_pack("{s:s, s:s, s:o}", "level",
								     "DRAM", "scope", "device",
								     "gbs", ceiling)) == 0;
		else
			ok = json_object_set_new(compute, p->key, ceiling) == 0;
	}
	return ok ? RFL_OK : no_memory(err);
}
