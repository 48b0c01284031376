/* gpu_measure.c - selects and runs the work for each ceiling of a GPU, and writes the result as an
 * environment of peaks.json. Of all loops and products that compete for a ceiling, the one with the
 * highest sustained rate is the ceiling. */
#include "peaks/gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "peaks/gpu_matmul.h"
#include "peaks/measure.h"
#include "peaks/peaks.h"
#include "rfl_config.h"

enum { RUNS_MAX = 256 };

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
	struct rfl_gpu_measurement *m;
	struct rfl_gpu_bench *bench;
	struct rfl_gpu_matmul matmul;
	struct rfl_err no_matmul; /* why there are no products; filled at the first use */
	int done;                 /* number of completed ceilings */
};

static bool is_level(const char *key)
{
	return !strchr(key, '.');
}

const char *rfl_gpu_unit(const char *key)
{
	return is_level(key) ? "GB/s" : rfl_peaks_unit(key);
}

/* Add a run without its result. */
static enum rfl_rc begin(struct session *s, const char *what, struct rfl_gpu_run **ret,
			 struct rfl_err *err)
{
	struct rfl_gpu_run *run = &s->m->runs[s->m->nruns];
	const char *key = s->m->cells[s->done].key;
	char line[160], when[40];

	if (s->m->nruns == RUNS_MAX)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "more than %d measurement runs",
				(int)RUNS_MAX);
	*run = (struct rfl_gpu_run){ .key = key, .competes = true };
	snprintf(run->what, sizeof(run->what), "%s", what);
	snprintf(line, sizeof(line), "%s: %s", key, what);
	snprintf(when, sizeof(when), "%d of %zu", s->done + 1, s->m->ncells);
	if (s->spec->progress)
		s->spec->progress(when, line, s->spec->ctx);
	*ret = run;
	return RFL_OK;
}

/* Keep a run that has succeeded. */
static void keep(struct session *s, struct rfl_gpu_cell *cell, const struct rfl_gpu_run *run)
{
	const struct rfl_gpu_run *runs = s->m->runs;

	if (run->competes &&
	    (cell->best == SIZE_MAX || run->timed.sustained > runs[cell->best].timed.sustained))
		cell->best = s->m->nruns;
	s->m->nruns++;
}

static void refuse(struct rfl_gpu_cell *cell, const char *status, const char *reason)
{
	cell->status = status;
	snprintf(cell->reason, sizeof(cell->reason), "%.*s", (int)sizeof(cell->reason) - 1, reason);
}

/* ---- arithmetic ---- */

/* Run a loop. @param size  bytes of each array of a memory loop @param trial  for a sweep */
static enum rfl_rc run_loop(struct session *s, struct rfl_gpu_cell *cell,
			    const struct rfl_gpu_kernel *k, int64_t size, bool trial,
			    struct rfl_err *err)
{
	const bool memory = k->bytes_per_turn > 0;
	struct rfl_gpu_run *run = NULL;
	enum rfl_rc rc = begin(s, k->summary, &run, err);

	if (rc || (rc = rfl_gpu_bench_loop(s->bench, k, size, trial, &run->timed, err)))
		return rc;
	run->accumulate = k->accumulate;
	run->accumulators = memory ? 0 : RFL_GPU_CHAINS;
	run->random = !memory;
	run->working_set_bytes = (int64_t)(k->bytes_per_turn / RFL_GPU_CHUNK) * size;
	run->sweep = trial;
	run->competes = !trial && k->kind != RFL_GPU_WRITE; /* no program only writes */
	keep(s, cell, run);
	return RFL_OK;
}

static enum rfl_rc run_product(struct session *s, struct rfl_gpu_cell *cell,
			       const struct rfl_gpu_product *p, struct rfl_err *err)
{
	struct rfl_gpu_matmul *m = &s->matmul;
	struct rfl_gpu_run *run = NULL;
	char what[96];
	size_t version;
	enum rfl_rc rc;

	if (!m->bench)
		(void)!rfl_gpu_matmul_open(m, s->bench, &s->spec->places, &s->no_matmul);
	if (s->no_matmul.rc)
		return rfl_err_pass(err, &s->no_matmul);
	version = m->version();
	snprintf(what, sizeof(what), "cuBLASLt %zu.%zu.%zu product of %s", version / 10000,
		 version / 100 % 100, version % 100, p->name);
	if ((rc = begin(s, what, &run, err)) ||
	    (rc = rfl_gpu_matmul_run(m, p, &run->n, &run->timed, err)))
		return rc;
	run->accumulate = p->accumulate;
	run->random = true;
	keep(s, cell, run);
	return RFL_OK;
}

/* Let the loop and the product of a key compete. One of them is enough. */
static enum rfl_rc measure_compute(struct session *s, struct rfl_gpu_cell *cell,
				   struct rfl_err *err)
{
	const int capability = s->m->capability;
	const struct rfl_gpu_kernel *k, *loop = NULL;
	const struct rfl_gpu_product *p, *product = NULL;
	struct rfl_err no_loop = RFL_ERR_INIT, no_product = RFL_ERR_INIT;
	char reason[128];

	for (size_t i = 0; (k = rfl_gpu_kernel_at(i)); i++)
		if (strcmp(k->key, cell->key) == 0 && capability >= k->min_capability)
			loop = k;
	for (size_t i = 0; (p = rfl_gpu_product_at(i)); i++)
		if (strcmp(p->key, cell->key) == 0 && capability >= p->min_capability)
			product = p;
	if (!loop && !product) {
		snprintf(reason, sizeof(reason),
			 "GPUs of compute capability %d.%d have no instructions for it",
			 capability / 10, capability % 10);
		refuse(cell, "unsupported", reason);
		return RFL_OK;
	}
	if (loop && run_loop(s, cell, loop, RFL_GPU_CHUNK, false, &no_loop) == RFL_ENOMEM)
		return rfl_err_pass(err, &no_loop);
	if (product && run_product(s, cell, product, &no_product) == RFL_ENOMEM)
		return rfl_err_pass(err, &no_product);
	if (!loop && s->no_matmul.rc) {
		refuse(cell, "unknown", no_product.msg);
		return RFL_OK;
	}
	if (cell->best == SIZE_MAX)
		return rfl_err_pass(err, no_loop.rc ? &no_loop : &no_product);
	if (no_product.rc && loop && loop->kind == RFL_GPU_MMA &&
	    !rfl_gpu_mma_is_full(cell->key, capability)) {
		cell->best = SIZE_MAX;
		rfl_err_prefix(&no_product, "mma reaches only a part of the rate of this GPU, and "
					    "there is no product to measure");
		refuse(cell, "unknown", no_product.msg);
		return RFL_OK;
	}
	if (no_loop.rc)
		rfl_log(RFL_LOG_WARN, "%s: %s", cell->key, no_loop.msg);
	if (no_product.rc && no_product.rc != s->no_matmul.rc)
		rfl_log(RFL_LOG_WARN, "%s: %s", cell->key, no_product.msg);
	return RFL_OK;
}

/* ---- memory ---- */

/* Read working sets of some sizes. @param best  set to the fastest that is at most `most` */
static enum rfl_rc sweep(struct session *s, struct rfl_gpu_cell *cell, int64_t from, int64_t to,
			 int64_t most, int64_t *best, struct rfl_err *err)
{
	double rate, highest = 0;
	enum rfl_rc rc;

	for (int64_t power = INT64_C(2) * RFL_GPU_CHUNK; power <= to; power *= 2)
		for (int half = 0; half <= (s->bench->sustained_s >= 1); half++) {
			const int64_t size = power + half * power / 2;

			if (size < from || size > to)
				continue;
			rc = run_loop(s, cell, rfl_gpu_kernel_at(0), size, true, err);
			if (rc)
				return rc;
			rate = s->m->runs[s->m->nruns - 1].timed.sustained;
			if (size <= most && rate > highest) {
				highest = rate;
				*best = size;
			}
		}
	return RFL_OK;
}

static enum rfl_rc measure_l2(struct session *s, struct rfl_gpu_cell *cell, struct rfl_err *err)
{
	const int64_t l2 = s->m->l2_bytes;
	int64_t best = 0;
	enum rfl_rc rc;

	if (l2 == 0) {
		refuse(cell, "unknown", "the driver does not report the size of L2");
		return RFL_OK;
	}
	rc = sweep(s, cell, l2 / 16, l2 < s->m->array_bytes ? l2 : s->m->array_bytes, l2 / 4 * 3,
		   &best, err);
	if (rc == RFL_OK && best == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "L2 is too small to be measured");
	return rc ? rc : run_loop(s, cell, rfl_gpu_kernel_at(0), best, false, err);
}

static enum rfl_rc measure_dram(struct session *s, struct rfl_gpu_cell *cell, struct rfl_err *err)
{
	const struct rfl_gpu_kernel *k;
	int64_t ignored;
	enum rfl_rc rc = RFL_OK;

	if (s->m->array_bytes < 2 * s->m->l2_bytes) {
		refuse(cell, "unknown",
		       "the free device memory allows only arrays that fit into L2; end other "
		       "programs on the GPU");
		return RFL_OK;
	}
	for (size_t i = 0; rc == RFL_OK && (k = rfl_gpu_kernel_at(i)); i++)
		if (strcmp(k->key, cell->key) == 0)
			rc = run_loop(s, cell, k, s->m->array_bytes, false, err);
	return rc ? rc : sweep(s, cell, 2 * s->m->l2_bytes, s->m->array_bytes, 0, &ignored, err);
}

/* The ceiling is that of pinned memory to the device, which is how batches are sent. */
static enum rfl_rc measure_link(struct session *s, struct rfl_gpu_cell *cell, struct rfl_err *err)
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
	struct rfl_gpu_run *run = NULL;
	enum rfl_rc rc;

	if (s->bench->cuda->integrated) {
		refuse(cell, "unsupported", "the GPU uses the memory of the host");
		return RFL_OK;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(ways); i++) {
		if ((rc = begin(s, ways[i].what, &run, err)) ||
		    (rc = rfl_gpu_bench_link(s->bench, ways[i].to_device, ways[i].pinned,
					     &run->timed, err)))
			return rc;
		run->competes = i == 0;
		keep(s, cell, run);
	}
	return RFL_OK;
}

/* ---- all ceilings ---- */

static enum rfl_rc measure_cell(struct session *s, struct rfl_gpu_cell *cell, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!is_level(cell->key))
		return measure_compute(s, cell, err);
	if ((rc = rfl_gpu_bench_arrays(s->bench, err)))
		return rc;
	s->m->array_bytes = s->bench->array_bytes;
	s->m->capped = s->bench->capped;
	if (strcmp(cell->key, "L2") == 0)
		return measure_l2(s, cell, err);
	return strcmp(cell->key, "DRAM") == 0 ? measure_dram(s, cell, err)
					      : measure_link(s, cell, err);
}

/* What NVML knows of the device with this UUID, or of the only one. */
static void add_nvml(struct rfl_gpu_measurement *m)
{
	struct rfl_gpus *g = NULL;

	if (rfl_gpus_new(&g, NULL) != RFL_OK)
		return;
	snprintf(m->driver, sizeof(m->driver), "%s", g->driver);
	for (size_t i = 0; i < g->n; i++) {
		char hex[RFL_CUDA_UUID_MAX];
		size_t len = 0;

		for (const char *at = g->gpus[i].uuid; *at && len + 1 < sizeof(hex); at++)
			if (isxdigit((unsigned char)*at) && at >= g->gpus[i].uuid + 4)
				hex[len++] = *at; /* after "GPU-" */
		hex[len] = '\0';
		if (strcmp(hex, m->uuid) == 0 || (g->n == 1 && !m->mig))
			m->power_limit_w = g->gpus[i].power_limit_w;
	}
	rfl_gpus_free(g);
}

static void describe(struct session *s)
{
	const struct rfl_cuda *c = s->bench->cuda;
	struct rfl_gpu_measurement *m = s->m;
	size_t bytes = 0;

	snprintf(m->name, sizeof(m->name), "%s", c->name);
	m->capability = c->capability;
	m->multiprocessors = c->multiprocessors;
	m->cuda_version = c->version;
	m->l2_bytes = c->l2_bytes;
	m->ecc = c->ecc;
	m->mig = strstr(c->name, " MIG ") != NULL;
	m->power_limit_w = NAN;
	if (c->calls.device_memory(&bytes, c->device) == RFL_CUDA_SUCCESS)
		m->memory_bytes = (int64_t)bytes;
	(void)rfl_cuda_uuids(&m->uuid, 1);
	add_nvml(m);
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
	struct rfl_cuda *c = NULL;
	enum rfl_rc rc = rfl_cuda_open(0, NULL, &c, err);

	if (rc == RFL_OK)
		snprintf(out, size, "%s", c->name[0] ? c->name : "NVIDIA GPU");
	rfl_cuda_close(c);
	return rc;
}

enum rfl_rc rfl_gpu_measure(const struct rfl_gpu_spec *spec, struct rfl_gpu_measurement **ret,
			    struct rfl_err *err)
{
	struct session s = { .spec = spec, .m = calloc(1, sizeof(*s.m)) };
	const double start_s = rfl_clock_s();
	size_t measured = 0, unsupported = 0;
	enum rfl_rc rc;

	if (s.m) {
		s.m->runs = rfl_alloc_array(RUNS_MAX, sizeof(*s.m->runs));
		s.m->cells = rfl_alloc_array(RFL_ARRAY_LEN(rfl_gpu_keys), sizeof(*s.m->cells));
	}
	if (!s.m || !s.m->runs || !s.m->cells) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "measurement: out of memory");
		goto done;
	}
	if ((rc = rfl_gpu_bench_open(spec->repeats, spec->sustained_s, &s.bench, err)))
		goto done;
	describe(&s);
	for (size_t i = 0; rfl_gpu_keys[i]; i++)
		if (is_wanted(spec, rfl_gpu_keys[i]))
			s.m->cells[s.m->ncells++] =
				(struct rfl_gpu_cell){ .key = rfl_gpu_keys[i], .best = SIZE_MAX };
	for (; s.done < (int)s.m->ncells; s.done++) {
		struct rfl_gpu_cell *cell = &s.m->cells[s.done];
		struct rfl_err why = RFL_ERR_INIT;

		rc = measure_cell(&s, cell, &why);
		if (rc == RFL_ENOMEM) {
			rc = rfl_err_pass(err, &why);
			goto done;
		}
		if (rc != RFL_OK) {
			cell->best = SIZE_MAX;
			refuse(cell, "failed", why.msg);
			rfl_log(RFL_LOG_WARN, "%s: %s", cell->key, why.msg);
		}
		measured += cell->best != SIZE_MAX;
		unsupported += cell->best == SIZE_MAX && strcmp(cell->status, "unsupported") == 0;
	}
	if (s.no_matmul.rc)
		rfl_log(RFL_LOG_WARN, "products of matrices are not measured: %s", s.no_matmul.msg);
	if (measured == 0 && (unsupported == 0 || unsupported < s.m->ncells)) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "nothing could be measured: %s",
			      s.m->ncells > 0 ? s.m->cells[0].reason : "no ceiling was selected");
		goto done;
	}
	rfl_clock_iso(s.m->measured_at);
	s.m->seconds = rfl_clock_s() - start_s;
	*ret = s.m;
	s.m = NULL;
	rc = RFL_OK;
done:
	rfl_gpu_matmul_close(&s.matmul);
	rfl_gpu_bench_close(s.bench);
	rfl_gpu_measurement_free(s.m);
	return rc;
}

void rfl_gpu_measurement_free(struct rfl_gpu_measurement *m)
{
	if (!m)
		return;
	free(m->runs);
	free(m->cells);
	free(m);
}

/* ---- as JSON ---- */

/* A number, or NULL (to be left out) if it is unknown. */
static json_t *real(double value, double unit)
{
	return isnan(value) ? NULL : json_real(round(value / unit * 10) / 10);
}

/* The throttle reasons as a list; NULL if they are not reported. */
static json_t *reasons_json(const struct rfl_gpu_samples *samples)
{
	json_t *list = samples->throttle_known ? json_array() : NULL;
	char words[256];

	rfl_throttle_words(samples->throttle_bits, words, sizeof(words));
	for (char *at = words; list && *at;) {
		const size_t len = strcspn(at, ",");

		(void)json_array_append_new(list, json_stringn(at, len));
		at += len + strspn(at + len, ", ");
	}
	return list;
}

static json_t *conditions_json(const struct rfl_gpu_measurement *m, const struct rfl_gpu_run *run)
{
	const struct rfl_gpu_samples *samples = &run->timed.samples;

	return json_pack("{s:f, s:o*, s:o*, s:o*, s:o*, s:o*}", "sustained_s",
			 round(run->timed.seconds * 1e3) / 1e3, "clock_mhz",
			 real(samples->sm_clock_mean_hz, 1e6), "power_w",
			 real(samples->power_mean_w, 1), "power_limit_w", real(m->power_limit_w, 1),
			 "temp_c", real(samples->temperature_max_c, 1), "throttle_reasons",
			 reasons_json(samples));
}

static json_t *method_json(const struct rfl_gpu_measurement *m, const struct rfl_gpu_run *run)
{
	const bool memory = run->working_set_bytes > 0;

	return json_pack("{s:s, s:s, s:s, s:s*, s:o*, s:o*, s:s*, s:s*, s:o*}", "kernel", run->what,
			 "tool", "roofline " RFL_VERSION, "measured_at", m->measured_at,
			 "bytes_counted", memory ? "explicit" : NULL, "working_set_bytes",
			 memory ? json_integer(run->working_set_bytes) : NULL, "accumulators",
			 run->accumulators ? json_integer(run->accumulators) : NULL, "accumulate",
			 run->accumulate, "input",
			 run->random ? "random"
			 : memory    ? "ones"
				     : NULL,
			 "shape",
			 run->n ? json_pack("[I, I, I]", (json_int_t)run->n, (json_int_t)run->n,
					    (json_int_t)run->n)
				: NULL);
}

static json_t *ceiling_json(const struct rfl_gpu_measurement *m, const struct rfl_gpu_cell *cell)
{
	const struct rfl_gpu_run *run;

	if (cell->best == SIZE_MAX)
		return rfl_measure_no_ceiling(cell->status, cell->reason);
	run = &m->runs[cell->best];
	return rfl_measure_ceiling(run->timed.sustained, &run->timed.stats, 1, method_json(m, run),
				   conditions_json(m, run));
}

/* The working sets that were tried for a level. NULL if there are none. */
static json_t *sweep_json(const struct rfl_gpu_measurement *m, const struct rfl_gpu_cell *cell)
{
	json_t *list = NULL;

	for (const struct rfl_gpu_run *run = m->runs; run < m->runs + m->nruns; run++) {
		if (!run->sweep || run->key != cell->key)
			continue;
		list = list ? list : json_array();
		if (json_array_append_new(list, json_pack("{s:s, s:I, s:o}", "scope", "device",
							  "working_set_bytes",
							  (json_int_t)run->working_set_bytes, "gbs",
							  rfl_measure_rate(run->timed.stats.max))))
			break;
	}
	return list;
}

/* Notes on results without a field in the schema: all runs that are not the ceiling and the size of
 * the arrays, each after its key, and the device. */
static json_t *notes_json(const struct rfl_gpu_measurement *m)
{
	json_t *notes = json_array();
	char size[RFL_NUM_MAX];

	for (const struct rfl_gpu_cell *cell = m->cells; cell < m->cells + m->ncells; cell++) {
		for (size_t j = 0; j < m->nruns; j++) {
			const struct rfl_gpu_run *run = &m->runs[j];

			if (run->key == cell->key && !run->sweep && j != cell->best)
				(void)json_array_append_new(
					notes,
					json_sprintf("measured: %s, %s: %.4g %s sustained, %.4g in "
						     "the fastest repeat",
						     run->key, run->what,
						     run->timed.sustained / 1e9,
						     rfl_gpu_unit(run->key),
						     run->timed.stats.max / 1e9));
		}
		if (strcmp(cell->key, "DRAM") == 0 && m->array_bytes)
			(void)json_array_append_new(
				notes,
				json_sprintf(
					"measured: DRAM, arrays of %s each%s",
					rfl_num_bytes((double)m->array_bytes, size, sizeof(size)),
					m->capped ? ", less than 32 times L2 or 256 MiB, for "
						    "lack of free device memory"
						  : ""));
	}
	if (m->ecc)
		(void)json_array_append_new(notes, json_string(RFL_PEAKS_NOTE_ECC));
	if (m->mig)
		(void)json_array_append_new(
			notes,
			json_string("measured: a MIG instance; clocks, power and temperature "
				    "are those of the whole GPU"));
	return notes;
}

json_t *rfl_gpu_measurement_json(const struct rfl_gpu_measurement *m)
{
	json_t *compute = json_object(), *memory = json_array();
	bool ok = compute && memory;

	for (size_t i = 0; i < m->ncells && ok; i++) {
		const struct rfl_gpu_cell *cell = &m->cells[i];
		const bool is_l2 = strcmp(cell->key, "L2") == 0;

		if (!is_level(cell->key))
			ok = json_object_set_new(compute, cell->key, ceiling_json(m, cell)) == 0;
		else
			ok = json_array_append_new(
				     memory,
				     json_pack("{s:s, s:s, s:o*, s:o, s:o*}", "level", cell->key,
					       "scope", "device", "capacity_bytes",
					       is_l2 && m->l2_bytes ? json_integer(m->l2_bytes)
								    : NULL,
					       "gbs", ceiling_json(m, cell), "sweep",
					       sweep_json(m, cell))) == 0;
	}
	ok = ok && rfl_measure_complete(compute, memory, "device");
	if (!ok) {
		json_decref(compute);
		json_decref(memory);
		return NULL;
	}
	return json_pack("{s:s, s:{s:s, s:s, s:o, s:o*, s:o*, s:s*}, s:{s:s*, s:o}, s:o, s:o, s:o}",
			 "kind", "gpu", "device", "name", m->name, "vendor", "NVIDIA",
			 "compute_capability",
			 json_sprintf("%d.%d", m->capability / 10, m->capability % 10), "units",
			 m->multiprocessors ? json_integer(m->multiprocessors) : NULL,
			 "memory_bytes", m->memory_bytes ? json_integer(m->memory_bytes) : NULL,
			 "uuid", m->uuid[0] ? m->uuid : NULL, "host", "driver",
			 m->driver[0] ? m->driver : NULL, "cuda_runtime",
			 json_sprintf("%d.%d", m->cuda_version / 1000, m->cuda_version % 1000 / 10),
			 "compute", compute, "memory", memory, "notes", notes_json(m));
}
