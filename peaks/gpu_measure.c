/* gpu_measure.c - selects and runs the work for each ceiling of a GPU, and writes the result as an
 * environment of peaks.json. Of all loops and products that compete for a ceiling, the one with the
 * highest sustained rate is the ceiling. */
#include "peaks/gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "peaks/gpu_matmul.h"
#include "peaks/measure.h"
#include "peaks/peaks.h"

const char *const rfl_gpu_keys[] = {
	"fp64.vector",
	"fp32.vector",
	"fp16.vector",
	"bf16.vector",
	"fp64.matrix",
	"tf32.matrix",
	"fp16.matrix",
	"bf16.matrix",
	"fp16.matrix.fp16acc",
	"fp8.matrix",
	"fp8.matrix.fastacc",
	"int8.matrix",
	"L2",
	"DRAM",
	"link",
	NULL,
};

struct session {
	const struct rfl_gpu_spec *spec;
	struct rfl_measurement *m;
	struct rfl_gpu_bench *bench;
	struct rfl_gpu_matmul matmul;
	struct rfl_err no_matmul; /* why there are no products; filled at the first use */
	double power_limit_w;     /* NaN if unknown */
	size_t done, wanted;      /* number of completed ceilings, and of all */
	size_t at, best;          /* the ceiling in the list, and its best run; 0: none yet */
};

static bool is_level(const char *key)
{
	return !strchr(key, '.');
}

/* The ceiling that is being measured. */
static struct rfl_measured_peak *ceiling(const struct session *s)
{
	return &s->m->all[s->at];
}

static void refuse(struct session *s, enum rfl_peak_status status, const char *reason)
{
	s->best = 0;
	rfl_measure_none(&ceiling(s)->level.peak, status, rfl_arena_strdup(s->m->arena, reason));
}

static void announce(const struct session *s, const char *what)
{
	char line[160], when[40];

	snprintf(line, sizeof(line), "%s: %s", ceiling(s)->key, what);
	snprintf(when, sizeof(when), "%zu of %zu", s->done + 1, s->wanted);
	if (s->spec->progress)
		s->spec->progress(when, line, s->spec->ctx);
}

static double rounded(double value, double unit)
{
	return round(value / unit * 10) / 10 * unit;
}

/* Keep a run. @return what it measured, without what the kind of run adds */
static struct rfl_peak *keep(struct session *s, const char *what, const struct rfl_gpu_timed *t,
			     bool competes)
{
	const struct rfl_gpu_samples *samples = &t->samples;
	struct rfl_measured_peak *run = rfl_measure_add(s->m, ceiling(s)->key);
	struct rfl_peak *peak = &run->level.peak;
	char words[256];

	run->other = true;
	run->level.level = ceiling(s)->level.level;
	run->level.scope = ceiling(s)->level.scope;
	rfl_measure_value(s->m, peak, t->sustained, &t->stats, 1,
			  rfl_arena_strdup(s->m->arena, what));
	peak->sustained_s = round(t->seconds * 1e3) / 1e3;
	peak->clock_hz = rounded(samples->sm_clock_mean_hz, 1e6);
	peak->power_w = rounded(samples->power_mean_w, 1);
	peak->power_limit_w = rounded(s->power_limit_w, 1);
	peak->temp_c = rounded(samples->temperature_max_c, 1);
	if (samples->throttle_known)
		peak->throttled =
			rfl_arena_strdup(s->m->arena, rfl_throttle_words(samples->throttle_bits,
									 words, sizeof(words)));
	if (competes && (!s->best || t->sustained > s->m->all[s->best].level.peak.value))
		s->best = s->m->n - 1;
	return peak;
}

/* ---- arithmetic ---- */

/* Run a loop. @param size  bytes of each array of a memory loop
 * @param trial  of a sweep: the rate is set; NULL: a full run */
static enum rfl_rc run_loop(struct session *s, const struct rfl_gpu_kernel *k, int64_t size,
			    double *trial, struct rfl_err *err)
{
	const bool memory = k->bytes_per_turn > 0;
	const int64_t all = (int64_t)(k->bytes_per_turn / RFL_GPU_CHUNK) * size;
	struct rfl_gpu_timed timed;
	struct rfl_peak *peak;
	enum rfl_rc rc;

	announce(s, k->summary);
	if ((rc = rfl_gpu_bench_loop(s->bench, k, size, trial, &timed, err)))
		return rc;
	if (trial) {
		*trial = timed.sustained;
		rfl_measure_size(s->m, &ceiling(s)->level, "device", all, timed.stats.max);
		return RFL_OK;
	}
	peak = keep(s, k->summary, &timed, k->kind != RFL_GPU_WRITE); /* no program only writes */
	peak->accumulate = k->accumulate;
	peak->accumulators = memory ? 0 : RFL_GPU_CHAINS;
	peak->input = memory ? "ones" : "random";
	peak->bytes_counted = memory ? "explicit" : NULL;
	peak->working_set_bytes = all;
	return RFL_OK;
}

static enum rfl_rc run_product(struct session *s, const struct rfl_gpu_product *p,
			       struct rfl_err *err)
{
	struct rfl_gpu_matmul *m = &s->matmul;
	struct rfl_gpu_timed timed;
	struct rfl_peak *peak;
	char what[96];
	size_t version;
	int64_t n;
	enum rfl_rc rc;

	if (!m->bench)
		(void)!rfl_gpu_matmul_open(m, s->bench, &s->spec->places, &s->no_matmul);
	if (s->no_matmul.rc)
		return rfl_err_pass(err, &s->no_matmul);
	version = m->version();
	snprintf(what, sizeof(what), "cuBLASLt %zu.%zu.%zu product of %s", version / 10000,
		 version / 100 % 100, version % 100, p->name);
	announce(s, what);
	if ((rc = rfl_gpu_matmul_run(m, p, &n, &timed, err)))
		return rc;
	peak = keep(s, what, &timed, true);
	peak->accumulate = p->accumulate;
	peak->input = "random";
	rfl_measure_shape(s->m, peak, n);
	return RFL_OK;
}

/* Let the loop and the product of a key compete. One of them is enough. */
static enum rfl_rc measure_compute(struct session *s, struct rfl_err *err)
{
	const int capability = s->bench->cuda->capability;
	const char *key = ceiling(s)->key;
	const struct rfl_gpu_kernel *k, *loop = NULL;
	const struct rfl_gpu_product *p, *product = NULL;
	struct rfl_err no_loop = RFL_ERR_INIT, no_product = RFL_ERR_INIT;
	char reason[128];

	for (size_t i = 0; (k = rfl_gpu_kernel_at(i)); i++)
		if (strcmp(k->key, key) == 0 && capability >= k->min_capability)
			loop = k;
	for (size_t i = 0; (p = rfl_gpu_product_at(i)); i++)
		if (strcmp(p->key, key) == 0 && capability >= p->min_capability)
			product = p;
	if (!loop && !product) {
		snprintf(reason, sizeof(reason),
			 "GPUs of compute capability %d.%d have no instructions for it",
			 capability / 10, capability % 10);
		refuse(s, RFL_PEAK_UNSUPPORTED, reason);
		return RFL_OK;
	}
	if (loop)
		(void)!run_loop(s, loop, RFL_GPU_CHUNK, NULL, &no_loop);
	if (product)
		(void)!run_product(s, product, &no_product);
	if (!loop && s->no_matmul.rc) {
		refuse(s, RFL_PEAK_UNKNOWN, no_product.msg);
		return RFL_OK;
	}
	if (!s->best)
		return rfl_err_pass(err, no_loop.rc ? &no_loop : &no_product);
	if (no_product.rc && loop && loop->kind == RFL_GPU_MMA &&
	    !rfl_gpu_mma_is_full(key, capability)) {
		rfl_err_prefix(&no_product, "mma reaches only a part of the rate of this GPU, and "
					    "there is no product to measure");
		refuse(s, RFL_PEAK_UNKNOWN, no_product.msg);
		return RFL_OK;
	}
	if (no_loop.rc)
		rfl_log(RFL_LOG_WARN, "%s: %s", key, no_loop.msg);
	if (no_product.rc && no_product.rc != s->no_matmul.rc)
		rfl_log(RFL_LOG_WARN, "%s: %s", key, no_product.msg);
	return RFL_OK;
}

/* ---- memory ---- */

/* Read working sets of some sizes. @param best  set to the fastest that is at most `most` */
static enum rfl_rc sweep(struct session *s, int64_t from, int64_t to, int64_t most, int64_t *best,
			 struct rfl_err *err)
{
	double rate, highest = 0;
	enum rfl_rc rc;

	for (int64_t power = INT64_C(2) * RFL_GPU_CHUNK; power <= to; power *= 2)
		for (int half = 0; half <= (s->bench->sustained_s >= 1); half++) {
			const int64_t size = power + half * power / 2;

			if (size < from || size > to)
				continue;
			rc = run_loop(s, rfl_gpu_kernel_at(0), size, &rate, err);
			if (rc)
				return rc;
			if (size <= most && rate > highest) {
				highest = rate;
				*best = size;
			}
		}
	return RFL_OK;
}

static enum rfl_rc measure_l2(struct session *s, struct rfl_err *err)
{
	const int64_t l2 = s->bench->cuda->l2_bytes;
	int64_t best = 0;
	enum rfl_rc rc;

	ceiling(s)->level.capacity_bytes = l2;
	if (l2 == 0) {
		refuse(s, RFL_PEAK_UNKNOWN, "the driver does not report the size of L2");
		return RFL_OK;
	}
	rc = sweep(s, l2 / 16, l2 < s->m->array_bytes ? l2 : s->m->array_bytes, l2 / 4 * 3, &best,
		   err);
	if (rc == RFL_OK && best == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "L2 is too small to be measured");
	return rc ? rc : run_loop(s, rfl_gpu_kernel_at(0), best, NULL, err);
}

static enum rfl_rc measure_dram(struct session *s, struct rfl_err *err)
{
	const int64_t l2 = s->bench->cuda->l2_bytes;
	const struct rfl_gpu_kernel *k;
	int64_t ignored;
	enum rfl_rc rc = RFL_OK;

	if (s->m->array_bytes < 2 * l2) {
		refuse(s, RFL_PEAK_UNKNOWN,
		       "the free device memory allows only arrays that fit into L2; end other "
		       "programs on the GPU");
		return RFL_OK;
	}
	for (size_t i = 0; rc == RFL_OK && (k = rfl_gpu_kernel_at(i)); i++)
		if (strcmp(k->key, "DRAM") == 0)
			rc = run_loop(s, k, s->m->array_bytes, NULL, err);
	return rc ? rc : sweep(s, 2 * l2, s->m->array_bytes, 0, &ignored, err);
}

/* The ceiling is for pinned memory to the device, which is how batches are sent. */
static enum rfl_rc measure_link(struct session *s, struct rfl_err *err)
{
	static const struct {
		const char *what;
		bool to_device, pinned;
	} ways[] = {
		{ "host to device, pinned", true, true },
		{ "device to host, pinned", false, true },
		{ "host to device, pageable", true, false },
		{ "device to host, pageable", false, false },
	};
	struct rfl_gpu_timed timed;
	enum rfl_rc rc;

	if (s->bench->cuda->integrated) {
		refuse(s, RFL_PEAK_UNSUPPORTED, "the GPU uses the memory of the host");
		return RFL_OK;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(ways); i++) {
		announce(s, ways[i].what);
		if ((rc = rfl_gpu_bench_link(s->bench, ways[i].to_device, ways[i].pinned, &timed,
					     err)))
			return rc;
		(void)keep(s, ways[i].what, &timed, i == 0);
	}
	return RFL_OK;
}

/* ---- all ceilings ---- */

static enum rfl_rc measure_key(struct session *s, struct rfl_err *err)
{
	const char *key = ceiling(s)->key;
	enum rfl_rc rc;

	if (!is_level(key))
		return measure_compute(s, err);
	ceiling(s)->level.level = key;
	ceiling(s)->level.scope = "device";
	if ((rc = rfl_gpu_bench_arrays(s->bench, err)))
		return rc;
	s->m->array_bytes = s->bench->array_bytes;
	s->m->capped = s->bench->capped;
	if (strcmp(key, "L2") == 0)
		return measure_l2(s, err);
	return strcmp(key, "DRAM") == 0 ? measure_dram(s, err) : measure_link(s, err);
}

/* Measure a ceiling, or set the reason why it has none. Results without a field in the schema are
 * notes: its other runs, and the size of the arrays. */
static enum rfl_peak_status measure(struct session *s, const char *key)
{
	struct rfl_measurement *m = s->m;
	struct rfl_arena *a = m->arena;
	struct rfl_err why = RFL_ERR_INIT;
	char size[RFL_NUM_MAX];

	s->at = m->n;
	s->best = 0;
	(void)rfl_measure_add(m, key);
	if (measure_key(s, &why) != RFL_OK) {
		refuse(s, RFL_PEAK_FAILED, why.msg);
		rfl_log(RFL_LOG_WARN, "%s: %s", key, why.msg);
	}
	if (s->best) {
		ceiling(s)->level.peak = m->all[s->best].level.peak;
		memmove(&m->all[s->best], &m->all[s->best + 1],
			(--m->n - s->best) * sizeof(*m->all));
	}
	for (const struct rfl_measured_peak *run = ceiling(s) + 1; run < m->all + m->n; run++)
		rfl_measure_note(m, rfl_arena_printf(a,
						     "measured: %s, %s: %.4g %s sustained, "
						     "%.4g in the fastest repeat",
						     key, run->level.peak.kernel,
						     run->level.peak.value / 1e9,
						     is_level(key) ? "GB/s" : rfl_peaks_unit(key),
						     run->level.peak.stats.max / 1e9));
	if (strcmp(key, "DRAM") == 0 && m->array_bytes)
		rfl_measure_note(
			m,
			rfl_arena_printf(a, "measured: DRAM, arrays of %s each%s",
					 rfl_num_bytes((double)m->array_bytes, size, sizeof(size)),
					 m->capped ? ", less than 32 times L2 or 256 MiB, for "
						     "lack of free device memory"
						   : ""));
	return ceiling(s)->level.peak.status;
}

/* What NVML knows of the device with this UUID, or of the only one. */
static void add_nvml(struct session *s, bool mig)
{
	struct rfl_peaks_env *env = &s->m->env;
	RFL_AUTOPTR(gpus) g = NULL;

	if (rfl_gpus_new(&g, NULL) != RFL_OK)
		return;
	env->driver = rfl_arena_strdup(s->m->arena, g->driver);
	for (size_t i = 0; i < g->n; i++) {
		char hex[RFL_CUDA_UUID_MAX];
		size_t len = 0;

		for (const char *at = g->gpus[i].uuid; *at && len + 1 < sizeof(hex); at++)
			if (isxdigit((unsigned char)*at) && at >= g->gpus[i].uuid + 4)
				hex[len++] = *at; /* after "GPU-" */
		hex[len] = '\0';
		if (strcmp(hex, env->uuid) == 0 || (g->n == 1 && !mig))
			s->power_limit_w = g->gpus[i].power_limit_w;
	}
}

static const char *device_name(const struct rfl_cuda *c)
{
	return c->name[0] ? c->name : "NVIDIA GPU";
}

static const char *version_text(struct rfl_arena *a, int major, int minor)
{
	return rfl_arena_printf(a, "%d.%d", major, minor);
}

static void describe(struct session *s)
{
	const struct rfl_cuda *c = s->bench->cuda;
	struct rfl_peaks_env *env = &s->m->env;
	struct rfl_arena *a = s->m->arena;
	char uuid[RFL_CUDA_UUID_MAX] = "";
	size_t bytes = 0;

	(void)rfl_cuda_uuids(&uuid, 1);
	if (c->calls.device_memory(&bytes, c->device) != RFL_CUDA_SUCCESS)
		bytes = 0;
	env->device = rfl_arena_strdup(a, device_name(c));
	env->vendor = "NVIDIA";
	env->capability = version_text(a, c->capability / 10, c->capability % 10);
	env->units = c->multiprocessors;
	env->memory_bytes = (int64_t)bytes;
	env->uuid = rfl_arena_strdup(a, uuid);
	env->cuda_runtime = version_text(a, c->version / 1000, c->version % 1000 / 10);
	env->ecc = c->ecc;
	s->power_limit_w = NAN;
	add_nvml(s, strstr(c->name, " MIG "));
}

static bool is_wanted(const struct rfl_gpu_spec *spec, const char *key)
{
	for (const char *const *only = spec->only; only && *only; only++)
		if (strcmp(*only, key) == 0)
			return true;
	return !spec->only;
}

enum rfl_rc rfl_gpu_name(char *out, size_t size, struct rfl_err *err)
{
	RFL_AUTOPTR(cuda) c = NULL;
	enum rfl_rc rc = rfl_cuda_open(0, NULL, &c, err);

	if (rc == RFL_OK)
		snprintf(out, size, "%s", device_name(c));
	return rc;
}

enum rfl_rc rfl_gpu_measure(const struct rfl_gpu_spec *spec, struct rfl_measurement *m,
			    struct rfl_err *err)
{
	struct session s = { .spec = spec, .m = m };
	const double start_s = rfl_clock_s();
	size_t measured = 0, unsupported = 0;
	enum rfl_rc rc;

	if ((rc = rfl_gpu_bench_open(spec->repeats, spec->sustained_s, &s.bench, err)))
		goto done;
	describe(&s);
	for (size_t i = 0; rfl_gpu_keys[i]; i++)
		s.wanted += is_wanted(spec, rfl_gpu_keys[i]);
	for (size_t i = 0; rfl_gpu_keys[i]; i++) {
		enum rfl_peak_status status;

		if (!is_wanted(spec, rfl_gpu_keys[i]))
			continue;
		status = measure(&s, rfl_gpu_keys[i]);
		measured += status == RFL_PEAK_MEASURED;
		unsupported += status == RFL_PEAK_UNSUPPORTED;
		s.done++;
	}
	if (s.no_matmul.rc)
		rfl_log(RFL_LOG_WARN, "GEMMs are not measured: %s", s.no_matmul.msg);
	if (measured == 0 && (unsupported == 0 || unsupported < s.wanted)) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing could be measured: %s",
			      m->n > 0 ? m->all[0].level.peak.reason : "no ceiling was selected");
		goto done;
	}
	if (m->env.ecc)
		rfl_measure_note(m, RFL_PEAKS_NOTE_ECC);
	if (strstr(s.bench->cuda->name, " MIG "))
		rfl_measure_note(m, "measured: a MIG instance; clocks, power and temperature "
				    "describe the whole GPU");
	m->seconds = rfl_clock_s() - start_s;
done:
	rfl_gpu_matmul_close(&s.matmul);
	rfl_gpu_bench_close(s.bench);
	return rc;
}
