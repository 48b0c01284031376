/*
 * peaks_engine.c - ceilings that a framework achieves: runs of networks that consist of one kind of
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
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/cmd/run_config.h"
#include "complexity/net/file.h"
#include "peaks/measure.h"

#define CHAIN         4 /* products or elementwise operations in a network */
#define CLASSES       8 /* few, so that the loss takes no time */
#define WARMUP        2
#define REPEATS       21
#define LEAST_REPEATS 5                    /* of a slow size */
#define COPY_BYTES    ((int64_t)256 << 20) /* each tensor; larger than caches */
#define COPY_PIXELS   512
#define COPY_PLANES   64
#define SIZE_SHARE    0.05 /* of the budget: the repeats of one size, if they need no longer */
#define LARGEST       0.2  /* the repeats of the largest size */

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

/* A ceiling to measure. */
struct engine_peak {
	const char *key;
	const char *precision; /* of the products; NULL: elementwise operations */
	struct rfl_peak peak;
};

struct job {
	struct rfl_cli *cli;
	const struct rfl_engine_peaks_spec *spec;
	struct rfl_measurement *m;
	size_t n;
	struct engine_peak peaks[8];
	int64_t repeats;
	double until_s; /* clock time by which the current ceiling should be done */
	char dir[256], net[300];
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

/* Write the network of the products of size x size matrices, or with size 0 that of elementwise
 * operations. */
static enum rfl_rc save_net(const struct job *j, int64_t size, struct rfl_err *err)
{
	const long long n = (long long)size;
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_buf_puts(&text, "{\"schema\": \"" RFL_NET_FILE_SCHEMA "\", \"model\": \"peaks\", ");
	if (size > 0)
		rfl_buf_printf(&text, "\"input\": {\"image\": [%lld, 1, 1]}, \"nodes\": [", n);
	else
		rfl_buf_printf(&text, "\"input\": {\"image\": [%d, %d, %d]}, \"nodes\": [",
			       COPY_PLANES, COPY_PIXELS, COPY_PIXELS);
	for (int i = 0; i < CHAIN && size == 0; i++)
		rfl_buf_printf(&text, "{\"op\": \"relu\", \"name\": \"relu%d\"}, ", i);
	if (size == 0)
		rfl_buf_puts(&text,
			     "{\"op\": \"adaptive_avg_pool\", \"name\": \"mean\", \"out\": 1}, ");
	rfl_buf_puts(&text, "{\"op\": \"flatten\"}, ");
	for (int i = 0; i < CHAIN && size > 0; i++)
		rfl_buf_printf(
			&text,
			"{\"op\": \"linear\", \"name\": \"product%d\", \"out_features\": %lld}, ",
			i, n);
	rfl_buf_printf(&text, "{\"op\": \"linear\", \"name\": \"head\", \"out_features\": %d}]}\n",
		       CLASSES);
	return rfl_file_write(j->net, text.data, text.len, err);
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
	/* clang-format off */
	const char *const argv[] = {
		"run", "--synthetic", "--mode", "fwd",
		"--arch", j->net, "--precision", precision,
		"--batch-size", batch_size, "--iters", steps, "--warmup-iters", warmup,
		"--threads", threads, "--env", s->env, "--log-dir", j->dir,
		"--backend", rfl_device_names[s->device], "--engine", s->engine, NULL
	};
	/* clang-format on */
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

static bool is_measured(const struct engine_peak *p)
{
	return p->peak.status == RFL_PEAK_MEASURED;
}

/* Compare a run with the best so far; without one, a failure is the reason.
 * @param size  rows of the matrices; bytes of the tensor */
static void take(struct job *j, struct engine_peak *p, const struct rfl_run_result *run,
		 double work, int64_t size)
{
	const struct rfl_ledger_row *row = &run->row;
	const struct rfl_stats stats = { .n = (size_t)row->iters,
					 .median = work / (row->step_ms_median * 1e-3),
					 .min = work / (row->step_ms_max * 1e-3),
					 .max = work / (row->step_ms_min * 1e-3) };
	struct rfl_arena *a = j->m->arena;
	const char *status = row->status ? row->status : "", *kernel;
	char bytes[RFL_NUM_MAX];

	if (strcmp(status, "ok") != 0 && !is_measured(p))
		rfl_measure_none(&p->peak,
				 strcmp(status, "unsupported") == 0 || run->rc == RFL_EUNAVAILABLE
					 ? RFL_PEAK_UNSUPPORTED
					 : RFL_PEAK_FAILED,
				 rfl_arena_strdup(a, row->error_text ? row->error_text
								     : rfl_rc_text(run->rc)));
	if (strcmp(status, "ok") != 0)
		return;
	if (!j->m->env.device)
		j->m->env.device = rfl_arena_strdup(a, row->device_name);
	if (is_measured(p) && !(stats.max > p->peak.value))
		return;
	if (p->precision)
		kernel = rfl_arena_printf(a, "%s %s, " PRODUCTS "%lld x %lld matrices%s%s",
					  row->engine, row->engine_version, (long long)size,
					  (long long)size, run->libraries[0] ? ", " : "",
					  run->libraries);
	else
		kernel = rfl_arena_printf(a, "%s %s, " ELEMENTWISE "%s", row->engine,
					  row->engine_version,
					  rfl_num_bytes((double)size, bytes, sizeof(bytes)));
	rfl_measure_value(j->m, &p->peak, stats.max, &stats, 1, kernel);
	p->peak.threads = j->spec->device == RFL_DEVICE_CPU ? (int)row->threads : 0;
	p->peak.input = "random";
	if (p->precision) {
		rfl_measure_shape(j->m, &p->peak, size);
	} else {
		p->peak.bytes_counted = "explicit";
		p->peak.working_set_bytes = size;
	}
}

/* The repeats of a size: as many as fit into its share of the time.
 * @param rate    FLOP/s; 0: unknown
 * @param time_s  set to the time that they are expected to take */
static int64_t plan(const struct job *j, int64_t size, double rate, double *time_s)
{
	const double n = (double)size, step_s = rate > 0 ? 2 * CHAIN * n * n * n / rate : 0;
	int64_t repeats = j->repeats;

	if (rate <= 0 && j->spec->repeats == 0) /* bf16 without instructions for it is very slow */
		repeats = LEAST_REPEATS;
	if (step_s * (double)repeats > SIZE_SHARE * j->spec->budget_s)
		repeats = (int64_t)(SIZE_SHARE * j->spec->budget_s / step_s);
	if (repeats < LEAST_REPEATS)
		repeats = j->repeats < LEAST_REPEATS ? j->repeats : LEAST_REPEATS;
	*time_s = (double)(WARMUP + repeats) * step_s;
	return repeats;
}

/* Measure the smallest size, and then the largest ones that are expected to fit into the time. The
 * fastest is the ceiling. */
static enum rfl_rc measure_product(struct job *j, struct engine_peak *p, struct rfl_err *err)
{
	static const int64_t sizes[] = { 512, 8192, 4096, 2048, 1024 };
	bool tried[RFL_ARRAY_LEN(sizes)] = { false };
	double rate = 0, startup_s = 0, time_s; /* rate of the fastest; time to start a run */
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes) && rc == RFL_OK && !p->peak.reason;) {
		const int64_t repeats = plan(j, sizes[i], rate, &time_s);
		const double begin_s = rfl_clock_s();
		RFL_AUTO(run_result) run = { .rc = RFL_OK };

		if ((rc = save_net(j, sizes[i], err)))
			break;
		tried[i] = true;
		rc = run_net(j, p->precision, sizes[i], repeats, &run, err);
		if (rc == RFL_OK) {
			const double flops = (double)run.row.model_flops_per_step;
			const double step_s = run.row.step_ms_median * 1e-3;

			take(j, p, &run, flops, sizes[i]);
			if (run.rc == RFL_OK) { /* else, e.g., too little memory for this size */
				rfl_log(RFL_LOG_DEBUG, "%s: %lld: %.4g GFLOP/s", p->key,
					(long long)sizes[i], flops / run.row.step_ms_min * 1e-6);
				rate = fmax(rate, flops / step_s);
				startup_s = rfl_clock_s() - begin_s -
					    (double)(WARMUP + repeats) * step_s;
			}
		}
		for (i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
			(void)plan(j, sizes[i], rate, &time_s);
			if (!tried[i] && time_s <= LARGEST * j->spec->budget_s &&
			    rfl_clock_s() + startup_s + time_s <= j->until_s)
				break;
		}
	}
	return rc;
}

static enum rfl_rc measure_elementwise(struct job *j, struct engine_peak *p, struct rfl_err *err)
{
	const int64_t sample = COPY_PLANES * COPY_PIXELS * COPY_PIXELS * (int64_t)sizeof(float);
	RFL_AUTO(run_result) run = { .rc = RFL_OK };
	enum rfl_rc rc = save_net(j, 0, err);

	if (rc)
		return rc;
	rc = run_net(j, "fp32", COPY_BYTES / sample, j->repeats, &run, err);
	if (rc == RFL_OK) /* each operation reads and writes, and the mean reads */
		take(j, p, &run, (2 * CHAIN + 1) * (double)COPY_BYTES, COPY_BYTES);
	return rc;
}

/* ---- the ceilings to measure ---- */

static bool is_named(const struct rfl_engine_peaks_spec *s, const char *key)
{
	return s->only->n > 0 && rfl_opt_list_has(s->only, key);
}

/* Whether to measure a ceiling for which an engine is only a substitute. */
static bool is_needed(const struct rfl_engine_peaks_spec *s, const char *key,
		      const struct rfl_peak *known)
{
	const bool ours = known && known->kernel &&
			  (strstr(known->kernel, PRODUCTS) || strstr(known->kernel, ELEMENTWISE));

	if (s->only->n > 0)
		return is_named(s, key);
	if (!rfl_peak_usable(known) || ours)
		return true;
	rfl_log(RFL_LOG_INFO,
		"%s is already known (%s) and is not measured; use --only %s to replace it", key,
		rfl_peak_status_name(known->status), key);
	return false;
}

static void select_peak(struct job *j, const char *key, const char *precision)
{
	assert(j->n < RFL_ARRAY_LEN(j->peaks));
	j->peaks[j->n++] =
		(struct engine_peak){ .key = key, .precision = precision, .peak = rfl_peak_none };
}

/* List the ceilings to measure; those of the vector units follow the gemm of the same products. */
static void select_peaks(struct job *j)
{
	const struct rfl_engine_peaks_spec *s = j->spec;
	const bool mps = s->device == RFL_DEVICE_MPS;

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		if (is_named(s, rows[i].gemm) ||
		    (s->only->n == 0 && (!rows[i].cuda_only || s->device == RFL_DEVICE_CUDA)))
			select_peak(j, rows[i].gemm, rows[i].precision);
		if (mps && rows[i].vector &&
		    is_needed(s, rows[i].vector,
			      s->known ? rfl_peaks_compute(s->known, rows[i].vector) : NULL))
			select_peak(j, rows[i].vector, rows[i].precision);
	}
	if (mps && is_needed(s, "DRAM", s->known ? rfl_peaks_dram(s->known) : NULL))
		select_peak(j, "DRAM", NULL);
}

static enum rfl_rc measure_all(struct job *j, struct rfl_err *err)
{
	const double end_s = j->spec->begin_s + j->spec->budget_s;
	struct engine_peak *const end = j->peaks + j->n;
	enum rfl_rc rc = RFL_OK;

	for (struct engine_peak *p = j->peaks; p < end && rc == RFL_OK; p++) {
		const double now_s = rfl_clock_s();
		int left = 0;

		for (const struct engine_peak *q = p; q < end; q++)
			left += q == p || !q->precision || q->precision != q[-1].precision;
		j->until_s = now_s + (end_s - now_s) / left;
		if (p > j->peaks && p->precision && p[-1].precision == p->precision &&
		    p[-1].peak.status != RFL_PEAK_UNKNOWN)
			p->peak = p[-1].peak; /* of the same products */
		else if (now_s >= end_s)
			rfl_measure_none(
				&p->peak, RFL_PEAK_UNKNOWN,
				rfl_arena_printf(
					j->m->arena,
					"no time is left of the %.0f s; measure it with --only %s",
					j->spec->budget_s, p->key));
		else if (p->precision)
			rc = measure_product(j, p, err);
		else
			rc = measure_elementwise(j, p, err);
	}
	return rc;
}

enum rfl_rc rfl_engine_peaks_measure(struct rfl_cli *cli, const struct rfl_engine_peaks_spec *spec,
				     struct rfl_measurement *m, struct rfl_err *err)
{
	const char *tmp = getenv("TMPDIR");
	struct job j = { .cli = cli, .spec = spec, .m = m };
	const char *why = "it cannot measure the ceilings selected with --only";
	size_t measured = 0;
	enum rfl_rc rc;

	select_peaks(&j);
	j.repeats = spec->repeats > 0 ? spec->repeats : REPEATS;
	snprintf(j.dir, sizeof(j.dir), "%.200s/roofline-peaks-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(j.dir))
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", j.dir, strerror(errno));
	snprintf(j.net, sizeof(j.net), "%s/net.json", j.dir);
	rc = measure_all(&j, err);
	(void)nftw(j.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	for (const struct engine_peak *p = j.peaks; p < j.peaks + j.n; p++) {
		struct rfl_measured_peak *to;

		measured += is_measured(p);
		why = p->peak.reason ? p->peak.reason : why;
		/* a precision that was not requested and does not exist is omitted */
		if (p->peak.status == RFL_PEAK_UNSUPPORTED && !is_named(spec, p->key))
			continue;
		to = rfl_measure_add(m, p->key);
		to->level.peak = p->peak;
		if (!p->precision) {
			to->level.level = p->key;
			to->level.scope = "device";
		}
	}
	if (rc == RFL_OK && measured == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing was measured with engine %s: %s",
			      spec->engine, why);
	return rc;
}
