/* gpu_bench.c - runs and times work on a GPU. */
#include "peaks/gpu_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

enum { REPEATS = 21, TRIAL_REPEATS = 10, BATCH_MAX = 4096, REPEATS_MAX = 1000 };

#define WINDOW_S       0.1
#define WINDOW_TRIAL_S 0.005
#define SUSTAINED_S    2.0
#define LAUNCHES       4  /* launches of a loop in a window */
#define ARRAY_PER_L2   32 /* L2 does not forget strictly in order */
#define ARRAY_LEAST    (INT64_C(256) << 20)
#define LINK_BYTES     ((size_t)64 << 20)

#define ONE  0x3f800000u /* 1.0f: what arrays hold */
#define HALF 0x3f000000u /* 0.5f: factor of the triad, and what is written */

enum rfl_rc rfl_gpu_bench_open(int repeats, double sustained_s, struct rfl_gpu_bench **ret,
			       struct rfl_err *err)
{
	RFL_AUTOPTR(gpu_bench) b = rfl_alloc_array(1, sizeof(*b));
	struct rfl_err why = RFL_ERR_INIT;
	char pci[32];
	enum rfl_rc rc;

	b->repeats = repeats > 0 ? repeats : REPEATS;
	b->sustained_s = sustained_s > 0 ? sustained_s : SUSTAINED_S;
	b->window_s = fmin(b->sustained_s / 10, WINDOW_S);
	if ((rc = rfl_cuda_open(0, NULL, &b->cuda, err)))
		return rc;
	if (b->cuda->capability < 75) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
			      "%s has compute capability %d.%d; the loops need 7.5 or later",
			      b->cuda->name, b->cuda->capability / 10, b->cuda->capability % 10);
		return rc;
	}
	if ((rc = RFL_CUDA_CALL(b->cuda, device_pci, err, pci, (int)sizeof(pci),
				b->cuda->device)) ||
	    (rc = RFL_CUDA_CALL(b->cuda, event_create, err, &b->begin, 0)) ||
	    (rc = RFL_CUDA_CALL(b->cuda, event_create, err, &b->end, 0)) ||
	    (rc = RFL_CUDA_CALL(b->cuda, memory_alloc, err, &b->operands, RFL_GPU_TILE)) ||
	    (rc = RFL_CUDA_CALL(b->cuda, memory_alloc, err, &b->constants, RFL_GPU_TILE)))
		return rc;
	if (rfl_sampler_new(pci, 10, &b->sampler, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "clocks, power and temperature are not recorded: %s",
			why.msg);
	*ret = b;
	b = NULL;
	return rc;
}

void rfl_gpu_bench_close(struct rfl_gpu_bench *b)
{
	if (!b)
		return;
	for (int i = 0; i < 3; i++)
		if (b->arrays[i])
			(void)b->cuda->calls.memory_free(b->arrays[i]);
	if (b->operands)
		(void)b->cuda->calls.memory_free(b->operands);
	if (b->constants)
		(void)b->cuda->calls.memory_free(b->constants);
	if (b->begin)
		(void)b->cuda->calls.event_destroy(b->begin);
	if (b->end)
		(void)b->cuda->calls.event_destroy(b->end);
	rfl_sampler_free(b->sampler);
	rfl_cuda_close(b->cuda);
	free(b);
}

int64_t rfl_gpu_array_bytes(int64_t l2_bytes, size_t available, bool *capped)
{
	const int64_t wanted = ARRAY_PER_L2 * l2_bytes, most = (int64_t)(available / 4);
	int64_t size = wanted > ARRAY_LEAST ? wanted : ARRAY_LEAST;

	*capped = size > most;
	if (*capped)
		size = most;
	return size - size % RFL_GPU_CHUNK;
}

enum rfl_rc rfl_gpu_bench_arrays(struct rfl_gpu_bench *b, struct rfl_err *err)
{
	const struct rfl_cuda *c = b->cuda;
	size_t available = 0, total = 0;
	int64_t size;
	enum rfl_rc rc;

	if (b->array_bytes)
		return RFL_OK;
	if ((rc = RFL_CUDA_CALL(c, memory_info, err, &available, &total)))
		return rc;
	size = rfl_gpu_array_bytes(c->l2_bytes, available, &b->capped);
	if (size == 0)
		return rfl_fail(err, RFL_EDEVMEM, 0,
				"%zu bytes of free device memory are not enough", available);
	for (int i = 0; i < 3; i++)
		if ((!b->arrays[i] &&
		     (rc = RFL_CUDA_CALL(c, memory_alloc, err, &b->arrays[i], (size_t)size))) ||
		    (rc = RFL_CUDA_CALL(c, set_words, err, b->arrays[i], ONE, (size_t)size / 4)))
			return rc;
	b->array_bytes = size;
	return RFL_OK;
}

/* Time `n` pieces of work from event to event. */
static enum rfl_rc between_events(struct rfl_gpu_bench *b, const struct rfl_gpu_work *w, int64_t n,
				  double *ret, struct rfl_err *err)
{
	const struct rfl_cuda *c = b->cuda;
	float ms = 0;
	enum rfl_rc rc = RFL_CUDA_CALL(c, event_record, err, b->begin, NULL);

	for (int64_t i = 0; i < n && rc == RFL_OK; i++)
		rc = w->enqueue(w->ctx, err);
	if (rc || (rc = RFL_CUDA_CALL(c, event_record, err, b->end, NULL)) ||
	    (rc = RFL_CUDA_CALL(c, event_synchronize, err, b->end)) ||
	    (rc = RFL_CUDA_CALL(c, event_elapsed, err, &ms, b->begin, b->end)))
		return rc;
	if (!(ms > 0))
		return rfl_fail(err, RFL_EFAILED, 0,
				"the GPU's clock did not advance during a measurement");
	*ret = (double)ms * 1e-3;
	return RFL_OK;
}

enum rfl_rc rfl_gpu_bench_time(struct rfl_gpu_bench *b, const struct rfl_gpu_work *w, int64_t n,
			       double *ret, struct rfl_err *err)
{
	enum rfl_rc rc = w->enqueue(w->ctx, err);

	if (rc || (rc = between_events(b, w, n, ret, err)))
		return rc;
	*ret /= (double)n;
	return RFL_OK;
}

enum rfl_rc rfl_gpu_bench_run(struct rfl_gpu_bench *b, const struct rfl_gpu_work *w, bool trial,
			      struct rfl_gpu_timed *ret, struct rfl_err *err)
{
	const double window_s = trial ? WINDOW_TRIAL_S : b->window_s;
	struct rfl_gpu_timed timed = { .samples = { .sm_clock_mean_hz = NAN,
						    .power_mean_w = NAN,
						    .temperature_max_c = NAN } };
	double one_s = 0, batch, repeats;
	RFL_AUTOFREE double *rates = NULL;
	bool sampling = false;
	size_t n;
	enum rfl_rc rc = rfl_gpu_bench_time(b, w, 1, &one_s, err);

	if (rc)
		return rc;
	batch = fmin(fmax(ceil(window_s / one_s), 1), BATCH_MAX);
	repeats = trial ? TRIAL_REPEATS : fmax(b->repeats, ceil(b->sustained_s / (batch * one_s)));
	n = (size_t)fmin(repeats, REPEATS_MAX);
	rates = rfl_alloc_array(n, sizeof(*rates));
	sampling = b->sampler && !trial && rfl_sampler_start(b->sampler, NULL) == RFL_OK;
	for (size_t i = 0; i < n; i++) {
		double window = 0;

		if ((rc = between_events(b, w, (int64_t)batch, &window, err)))
			goto done;
		rates[i] = batch * w->amount / window;
		timed.seconds += window;
	}
	timed.stats = rfl_stats_of(rates, n);
	timed.sustained = rfl_stats_of(rates + n / 2, n - n / 2).median;
done:
	if (sampling)
		rfl_sampler_stop(b->sampler, &timed.samples);
	if (rc == RFL_OK)
		*ret = timed;
	return rc;
}

/* ---- loops ---- */

struct loop {
	const struct rfl_cuda *cuda;
	struct rfl_cuda_module *module;
	struct rfl_cuda_function *function;
	unsigned blocks;
	rfl_cuda_address to, from, other;
	uint64_t size, turns;
	uint32_t word;
};

static enum rfl_rc launch(void *ctx, struct rfl_err *err)
{
	struct loop *l = ctx;
	void *arguments[] = { &l->to, &l->from, &l->other, &l->size, &l->turns, &l->word };

	return RFL_CUDA_CALL(l->cuda, launch, err, l->function, l->blocks, 1, 1, RFL_GPU_THREADS, 1,
			     1, 0, NULL, arguments, NULL);
}

static enum rfl_rc load(struct loop *l, const struct rfl_gpu_kernel *k, struct rfl_err *err)
{
	RFL_AUTO(buf) ptx = { .max = 1 << 20 };
	int blocks = 0;
	enum rfl_rc rc;

	rfl_gpu_ptx(k, &ptx);
	if ((rc = rfl_buf_check(&ptx, k->name, err)) ||
	    (rc = RFL_CUDA_CALL(l->cuda, module_load, err, &l->module, rfl_buf_str(&ptx))) ||
	    (rc = RFL_CUDA_CALL(l->cuda, module_function, err, &l->function, l->module, k->name)) ||
	    (rc = RFL_CUDA_CALL(l->cuda, occupancy, err, &blocks, l->function, RFL_GPU_THREADS, 0)))
		return rc;
	l->blocks = (unsigned)(blocks * l->cuda->multiprocessors);
	if (l->blocks == 0)
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s: no block fits on a multiprocessor of %s",
			      k->name, l->cuda->name);
	return rc;
}

/* Find the number of turns with which LAUNCHES launches take a window. */
static enum rfl_rc calibrate(struct rfl_gpu_bench *b, struct loop *l, double window_s,
			     struct rfl_err *err)
{
	const struct rfl_gpu_work w = { .enqueue = launch, .ctx = l };
	const double target_s = window_s / LAUNCHES;
	double time_s;

	for (;;) {
		enum rfl_rc rc = rfl_gpu_bench_time(b, &w, 1, &time_s, err);

		if (rc || time_s >= target_s / 2 || l->turns > UINT64_C(1) << 40)
			return rc;
		l->turns = (uint64_t)((double)l->turns * fmin(fmax(target_s / time_s, 2), 1000));
	}
}

/* Check the first and the last bytes that a memory loop wrote. */
static enum rfl_rc check(const struct loop *l, const struct rfl_gpu_kernel *k, struct rfl_err *err)
{
	const float expected = k->kind == RFL_GPU_WRITE ? 0.5F : k->kind == RFL_GPU_COPY ? 1 : 1.5F;
	float got[2][4];
	enum rfl_rc rc;

	if (k->kind != RFL_GPU_WRITE && k->kind != RFL_GPU_COPY && k->kind != RFL_GPU_TRIAD)
		return RFL_OK;
	if ((rc = RFL_CUDA_CALL(l->cuda, copy_from_device, err, got[0], l->to, sizeof(got[0]))) ||
	    (rc = RFL_CUDA_CALL(l->cuda, copy_from_device, err, got[1],
				l->to + l->size - sizeof(got[1]), sizeof(got[1]))))
		return rc;
	for (int i = 0; i < 8; i++)
		if (got[i / 4][i % 4] != expected)
			return rfl_fail(err, RFL_EFAILED, 0,
					"the loop %s wrote %g instead of %g: the GPU or its driver "
					"is faulty; reboot, or use another GPU",
					k->name, (double)got[i / 4][i % 4], (double)expected);
	return RFL_OK;
}

enum rfl_rc rfl_gpu_bench_loop(struct rfl_gpu_bench *b, const struct rfl_gpu_kernel *k,
			       int64_t size, bool trial, struct rfl_gpu_timed *ret,
			       struct rfl_err *err)
{
	const bool memory = k->bytes_per_turn > 0;
	struct loop l = { .cuda = b->cuda,
			  .to = memory ? b->arrays[0] : b->constants + RFL_GPU_TILE / 2,
			  .from = memory ? b->arrays[1] : b->operands,
			  .other = memory ? b->arrays[2] : b->constants,
			  .size = (uint64_t)size,
			  .turns = 100, /* enough for the resolution of events */
			  .word = HALF };
	RFL_AUTOFREE unsigned char *tile = NULL;
	enum rfl_rc rc = load(&l, k, err);

	if (rc)
		goto done;
	if (memory) { /* a launch covers the arrays */
		l.turns = ((uint64_t)size / RFL_GPU_CHUNK + l.blocks - 1) / l.blocks;
	} else {
		tile = rfl_alloc_array(RFL_GPU_TILE, 1);
		rfl_gpu_fill(k->type, tile, RFL_GPU_TILE);
		if ((rc = RFL_CUDA_CALL(b->cuda, copy_to_device, err, b->operands, tile,
					RFL_GPU_TILE)) ||
		    (rc = RFL_CUDA_CALL(b->cuda, copy_to_device, err, b->constants, k->words,
					sizeof(k->words))))
			goto done;
	}
	if ((rc = calibrate(b, &l, trial ? WINDOW_TRIAL_S : b->window_s, err)))
		goto done;
	const struct rfl_gpu_work w = {
		.enqueue = launch,
		.ctx = &l,
		.amount = (memory ? k->bytes_per_turn : k->flops_per_turn) * (double)l.turns *
			  l.blocks,
	};

	if ((rc = rfl_gpu_bench_run(b, &w, trial, ret, err)) == RFL_OK)
		rc = check(&l, k, err);
done:
	if (l.module)
		(void)b->cuda->calls.module_unload(l.module);
	return rc;
}

/* ---- host and device ---- */

struct transfer {
	const struct rfl_cuda *cuda;
	rfl_cuda_address device;
	void *host;
	size_t size;
	bool to_device;
};

static enum rfl_rc transfer(void *ctx, struct rfl_err *err)
{
	const struct transfer *t = ctx;

	if (t->to_device)
		return RFL_CUDA_CALL(t->cuda, send, err, t->device, t->host, t->size, NULL);
	return RFL_CUDA_CALL(t->cuda, fetch, err, t->host, t->device, t->size, NULL);
}

enum rfl_rc rfl_gpu_bench_link(struct rfl_gpu_bench *b, bool to_device, bool pinned,
			       struct rfl_gpu_timed *ret, struct rfl_err *err)
{
	const size_t size =
		LINK_BYTES < (size_t)b->array_bytes ? LINK_BYTES : (size_t)b->array_bytes;
	struct transfer t = {
		.cuda = b->cuda, .device = b->arrays[0], .size = size, .to_device = to_device
	};
	const struct rfl_gpu_work w = { .enqueue = transfer, .ctx = &t, .amount = (double)size };
	enum rfl_rc rc = RFL_OK;

	if (pinned)
		rc = RFL_CUDA_CALL(b->cuda, host_alloc, err, &t.host, size, 0);
	else
		t.host = rfl_alloc_array(size, 1);
	if (rc)
		return rc;
	memset(t.host, 1, size); /* so that all pages exist */
	rc = rfl_gpu_bench_run(b, &w, false, ret, err);
	if (pinned)
		(void)b->cuda->calls.host_free(t.host);
	else
		free(t.host);
	return rc;
}
