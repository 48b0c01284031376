/*
 * engine_fake.c - an engine that computes nothing. Tests set through the environment how long a
 * phase takes, how it was called is written down, and where to go wrong: fake_told.h. On cuda it
 * has a clock of its own (fake_device.h): work is queued and done later, and the only waits are in
 * sync, loss and memory.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/num.h"
#include "runner/engine.h"
#include "tests/engines/fake_device.h"
#include "tests/engines/fake_log.h"
#include "tests/engines/fake_told.h"
#include "tests/engines/fake_world.h"

struct rfl_engine {
	const struct rfl_engine_ops *ops;
	const struct rfl_net *net;
	float **params;
	double ms[3];
	struct rfl_engine_config config;
	struct fake_device *device; /* NULL: work is done when it is asked for */
	struct fake_log log;
	bool captured;
	struct fake_world *world; /* NULL: alone */
	int64_t saved_updates;
	double loss, saved_loss;
	struct rfl_score score;
	double held; /* bytes in use: each layer adds 1024 in forward, and frees them in backward */
	bool watched;
	rfl_engine_mark_fn mark;
	void *mark_ctx;
};

/* Do the tests' settings apply to this rank? Before it has joined the rank is unknown. */
static bool is_meant(const struct rfl_engine *e)
{
	const char *rank = getenv("RFL_FAKE_RANK");
	char ours[16] = "";

	if (e)
		(void)snprintf(ours, sizeof(ours), "%d", fake_world_rank(e->world));
	return !rank || strcmp(rank, ours) == 0;
}

/* A loss that is none is the one thing that goes wrong here. */
static enum rfl_rc misbehave(const char *place, int n, struct rfl_engine *e, struct rfl_err *err)
{
	if (!is_meant(e))
		return RFL_OK;
	if (e && fake_told_nan(place, n))
		e->loss = (double)NAN;
	return fake_misbehave(place, n, err);
}

static enum rfl_rc fake_probe(enum rfl_device device, struct rfl_err *err)
{
	const char *text = getenv("RFL_FAKE_DEVICE");

	if (fake_told("unavailable"))
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "fake: asked to be unavailable");
	if (device == RFL_DEVICE_CPU || (text && strcmp(text, rfl_device_names[device]) == 0))
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "fake: runs on the cpu only");
}

static const char *fake_library_version(void)
{
	return "1.0.7";
}

static const char *fake_unsupported(enum rfl_op op, enum rfl_precision precision)
{
	if (fake_told("unsupported") && op == RFL_OP_MAX_POOL)
		return "asked not to";
	return precision == RFL_PRECISION_TF32 ? "tf32 is not faked" : NULL;
}

static void fake_close(struct rfl_engine *e)
{
	if (!e)
		return;
	fake_log_write(&e->log, &e->config);
	(void)misbehave("close", 0, e, NULL);
	for (int i = 0; e->params && i < e->net->nparams; i++)
		free(e->params[i]);
	free(e->params);
	fake_device_free(e->device);
	fake_world_leave(e->world);
	free(e);
}

static enum rfl_rc fake_open(const struct rfl_net *net, const struct rfl_engine_config *config,
			     struct rfl_engine **ret, struct rfl_err *err)
{
	extern struct rfl_engine_ops rfl_fake_ops;
	const char *ms = getenv("RFL_FAKE_MS");
	struct rfl_engine *e = NULL;
	enum rfl_rc rc;

	fake_note_pid();
	rc = misbehave("open", 0, NULL, err);
	if (rc)
		return rc;
	e = calloc(1, sizeof(*e));
	if (!e)
		return rfl_fail(err, RFL_ENOMEM, 0, "fake: out of memory");
	e->ops = &rfl_fake_ops;
	e->net = net;
	e->config = *config;
	e->loss = (double)NAN;
	if (config->device != RFL_DEVICE_CPU && !fake_lacks("events")) {
		e->device = fake_device_new();
		if (!e->device)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "fake: out of memory");
	}
	if (ms && sscanf(ms, "%lf,%lf,%lf", &e->ms[0], &e->ms[1], &e->ms[2]) != 3)
		rc = rfl_fail(err, RFL_EINVAL, 0, "fake: RFL_FAKE_MS is '%s'", ms);
	e->params = rfl_alloc_array((size_t)net->nparams, sizeof(*e->params));
	for (int i = 0; e->params && i < net->nparams; i++)
		e->params[i] = rfl_alloc_array((size_t)net->params[i].numel, sizeof(float));
	if (rc) {
		fake_close(e);
		return rc;
	}
	*ret = e;
	return RFL_OK;
}

static enum rfl_rc fake_set_mode(struct rfl_engine *e, enum rfl_engine_mode mode,
				 struct rfl_err *err)
{
	(void)e, (void)mode, (void)err;
	return RFL_OK;
}

static enum rfl_rc fake_set_optimizer(struct rfl_engine *e, const struct rfl_optimizer *optimizer,
				      struct rfl_err *err)
{
	(void)e, (void)optimizer, (void)err;
	return RFL_OK;
}

static enum rfl_rc fake_zero_grad(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	e->log.zeroed++;
	return RFL_OK;
}

/* Time passes: here, or in the device's queue. */
static void take(struct rfl_engine *e, double ms)
{
	const struct timespec pause = { .tv_sec = (time_t)(ms / 1e3),
					.tv_nsec = (long)(fmod(ms, 1e3) * 1e6) };

	if (e->device)
		fake_device_queue(e->device, ms * 1e-3);
	else
		nanosleep(&pause, NULL);
}

static enum rfl_rc phase(struct rfl_engine *e, int which, const char *name, struct rfl_err *err)
{
	take(e, is_meant(e) ? e->ms[which] : 0);
	return misbehave(name, e->log.calls[which]++, e, err);
}

/* The node after the last is the loss. */
static enum rfl_rc mark(struct rfl_engine *e, const char *phase_name, int node, struct rfl_err *err)
{
	char name[256];
	enum rfl_rc rc = RFL_OK;

	(void)snprintf(name, sizeof(name), "%s/%s", phase_name,
		       node < e->net->nnodes ? e->net->nodes[node].name : "loss");
	if (e->mark)
		rc = e->mark(name, e->mark_ctx, err);
	e->held += *phase_name == 'f' ? 1024 : -1024;
	return rc;
}

static enum rfl_rc fake_forward(struct rfl_engine *e, const struct rfl_batch *batch,
				struct rfl_err *err)
{
	const char *fits = getenv("RFL_FAKE_FITS");
	int64_t most = INT64_MAX;
	enum rfl_rc rc = fits ? rfl_num_parse_int(fits, "RFL_FAKE_FITS", &most, err) : RFL_OK;

	if (rc)
		return rc;
	if (batch->n > most)
		return rfl_fail(err, RFL_EDEVMEM, 0, "fake: no memory for %lld samples",
				(long long)batch->n);
	for (int i = 0; i <= e->net->nnodes && rc == RFL_OK; i++)
		rc = mark(e, "fwd", i, err);
	e->loss = 8.0 / (1.0 + e->log.calls[0]);
	if (e->config.score) {
		e->score.rows += batch->n;
		e->score.correct += batch->n / 2;
		e->score.loss += e->loss * (double)batch->n;
	}
	return rc ? rc : phase(e, 0, "forward", err);
}

static enum rfl_rc fake_generate(struct rfl_engine *e, const struct rfl_batch *batch, int64_t past,
				 struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	(void)batch;
	if (past + e->net->nodes[0].shape.dim[0] > e->config.cache_tokens)
		return rfl_fail(err, RFL_EINVAL, 0, "fake: the cache has no place for %lld",
				(long long)past);
	for (int i = 0; i < e->net->nnodes && rc == RFL_OK; i++)
		rc = mark(e, "fwd", i, err);
	return rc ? rc : phase(e, 0, "forward", err);
}

static enum rfl_rc fake_forward_traced(struct rfl_engine *e, const struct rfl_batch *batch,
				       rfl_engine_trace_fn fn, void *ctx, struct rfl_err *err)
{
	(void)e, (void)batch, (void)fn, (void)ctx;
	return rfl_fail(err, RFL_EUNSUPPORTED, 0, "fake: no trace");
}

static enum rfl_rc fake_backward(struct rfl_engine *e, const struct rfl_backward *how,
				 struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	e->log.weights += how ? how->weight : 1;
	e->log.last_backwards += how ? how->last : 1;
	for (int i = e->net->nnodes; i > 0 && rc == RFL_OK; i--)
		rc = mark(e, "bwd", i, err);
	return rc ? rc : phase(e, 1, "backward", err);
}

static enum rfl_rc fake_step(struct rfl_engine *e, struct rfl_err *err)
{
	e->log.updates++;
	return phase(e, 2, "step", err);
}

static enum rfl_rc fake_snapshot(struct rfl_engine *e, struct rfl_err *err)
{
	e->saved_updates = e->log.updates;
	e->saved_loss = e->loss;
	return misbehave("snapshot", e->log.snapshots++, e, err);
}

static enum rfl_rc fake_restore(struct rfl_engine *e, struct rfl_err *err)
{
	e->log.updates = e->saved_updates;
	e->loss = e->saved_loss;
	return misbehave("restore", e->log.restores++, e, err);
}

static enum rfl_rc fake_mark(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			     struct rfl_err *err)
{
	(void)err;
	e->mark = fn;
	e->mark_ctx = ctx;
	return RFL_OK;
}

static enum rfl_rc fake_nothing(struct rfl_engine *e, struct rfl_err *err)
{
	(void)e, (void)err;
	return RFL_OK;
}

static enum rfl_rc fake_sync(struct rfl_engine *e, struct rfl_err *err)
{
	(void)err;
	e->log.syncs++;
	if (e->device)
		fake_device_wait(e->device);
	return RFL_OK;
}

static enum rfl_rc fake_loss(struct rfl_engine *e, double *ret, struct rfl_err *err)
{
	(void)err;
	e->log.losses++;
	if (e->device)
		fake_device_wait(e->device);
	*ret = e->loss;
	return RFL_OK;
}

/* Every second row is right. */
static enum rfl_rc fake_score(struct rfl_engine *e, struct rfl_score *ret, struct rfl_err *err)
{
	(void)err;
	if (e->device)
		fake_device_wait(e->device);
	*ret = e->score;
	e->score = (struct rfl_score){ .rows = 0 };
	return RFL_OK;
}

static enum rfl_rc fake_visit_state(struct rfl_engine *e, bool load, rfl_engine_state_fn fn,
				    void *ctx, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	(void)load;
	for (int i = 0; i < e->net->nparams && rc == RFL_OK; i++)
		rc = fn(e->net->params[i].name, e->params[i],
			(size_t)e->net->params[i].numel * sizeof(float), ctx, err);
	return rc ? rc : fn("updates", &e->log.updates, sizeof(e->log.updates), ctx, err);
}

/* ---- what a GPU has ---- */

static enum rfl_rc fake_device_info(struct rfl_engine *e, struct rfl_engine_device *ret,
				    struct rfl_err *err)
{
	(void)err;
	*ret = (struct rfl_engine_device){ .memory_bytes = -1 };
	if (e->config.device != RFL_DEVICE_CUDA)
		return RFL_OK;
	*ret = (struct rfl_engine_device){
		.name = "Fake GPU",
		.pci_bus_id = "00000000:0A:00.0",
		.cuda_runtime = "13.0",
		.cuda_driver = "13.1",
		.cudnn = "9.19.0",
		.memory_bytes = (int64_t)8 << 30,
	};
	return RFL_OK;
}

static enum rfl_rc fake_scaling(struct rfl_engine *e, struct rfl_loss_scaling *ret,
				struct rfl_err *err)
{
	const bool scales = e->config.precision == RFL_PRECISION_FP16;

	(void)err;
	*ret = (struct rfl_loss_scaling){ .scale = scales ? 32768 : (double)NAN,
					  .skipped = scales ? 1 : -1 };
	return RFL_OK;
}

static enum rfl_rc fake_host_alloc(struct rfl_engine *e, size_t bytes, void **ret,
				   struct rfl_err *err)
{
	e->log.pinned++;
	*ret = malloc(bytes);
	return *ret ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "fake: out of memory");
}

static void fake_host_free(struct rfl_engine *e, void *memory)
{
	(void)e;
	free(memory);
}

static enum rfl_rc fake_upload(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	(void)batch, (void)err;
	e->log.uploads++;
	return RFL_OK;
}

static enum rfl_rc fake_reserve_events(struct rfl_engine *e, int64_t n, struct rfl_err *err)
{
	if (!e->device)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "fake: no marks");
	return fake_device_reserve(e->device, n)
		       ? RFL_OK
		       : rfl_fail(err, RFL_ENOMEM, 0, "fake: out of memory");
}

static enum rfl_rc fake_record_event(struct rfl_engine *e, int64_t i, struct rfl_err *err)
{
	return fake_device_record(e->device, i)
		       ? RFL_OK
		       : rfl_fail(err, RFL_EINVAL, 0, "fake: mark %lld is not reserved",
				  (long long)i);
}

static enum rfl_rc fake_elapsed(struct rfl_engine *e, int64_t from, int64_t to, double *ret,
				struct rfl_err *err)
{
	return fake_device_elapsed(e->device, from, to, ret)
		       ? RFL_OK
		       : rfl_fail(err, RFL_EINVAL, 0, "fake: marks %lld and %lld are not passed",
				  (long long)from, (long long)to);
}

static enum rfl_rc fake_capture(struct rfl_engine *e, const struct rfl_batch *batch, bool backward,
				bool step, struct rfl_err *err)
{
	(void)batch;
	e->captured = true;
	if (!backward)
		e->ms[1] = 0;
	if (!step)
		e->ms[2] = 0;
	return misbehave("capture", e->log.captures++, e, err);
}

static enum rfl_rc fake_replay(struct rfl_engine *e, const struct rfl_batch *batch,
			       struct rfl_err *err)
{
	(void)batch;
	if (!e->captured)
		return rfl_fail(err, RFL_EINVAL, 0, "fake: nothing is recorded");
	e->log.replays++;
	e->log.updates++;
	e->loss = 8.0 / (1.0 + e->log.calls[0] + e->log.replays);
	take(e, e->ms[0] + e->ms[1] + e->ms[2]);
	return RFL_OK;
}

/* ---- several processes ---- */

static enum rfl_rc fake_join(struct rfl_engine *e, const struct rfl_world *world,
			     struct rfl_err *err)
{
	const char *path = getenv("RFL_FAKE_JOINED"), *gpus = getenv("CUDA_VISIBLE_DEVICES");
	enum rfl_rc rc = fake_world_join(world, &e->world, err);
	FILE *f = rc == RFL_OK && path ? fopen(path, "a") : NULL;

	if (f) {
		fprintf(f, "%s threads=%d gpus=%s\n", fake_world_text(e->world), e->config.threads,
			gpus ? gpus : "");
		fclose(f);
	}
	return rc;
}

static enum rfl_rc fake_gather(struct rfl_engine *e, const double *mine, size_t n, double *all,
			       struct rfl_err *err)
{
	if (e->world)
		return fake_world_gather(e->world, mine, n, all, err);
	memcpy(all, mine, n * sizeof(*mine));
	return RFL_OK;
}

static enum rfl_rc fake_logits(struct rfl_engine *e, float *out, int64_t numel, struct rfl_err *err)
{
	(void)e;
	memset(out, 0, (size_t)numel * sizeof(*out));
	return rfl_fail(err, RFL_EUNSUPPORTED, 0, "fake: no logits");
}

static enum rfl_rc fake_set_param(struct rfl_engine *e, int param, const float *values,
				  int64_t numel, struct rfl_err *err)
{
	(void)err;
	memcpy(e->params[param], values, (size_t)numel * sizeof(*values));
	return RFL_OK;
}

static enum rfl_rc fake_get_param(struct rfl_engine *e, int param, float *out, int64_t numel,
				  struct rfl_err *err)
{
	(void)err;
	memcpy(out, e->params[param], (size_t)numel * sizeof(*out));
	return RFL_OK;
}

static float *fake_param_data(struct rfl_engine *e, int param)
{
	return e->params[param];
}

static enum rfl_rc fake_memory(struct rfl_engine *e, struct rfl_engine_memory *ret,
			       struct rfl_err *err)
{
	/* every layer has a temporary of 64 bytes */
	(void)err;
	*ret = (struct rfl_engine_memory){ .now = e->watched ? e->held : (double)NAN,
					   .allocated_peak = e->watched ? e->held + 64 : 4096,
					   .reserved_peak = (double)NAN };
	return RFL_OK;
}

static enum rfl_rc fake_watch_memory(struct rfl_engine *e, bool on, struct rfl_err *err)
{
	e->watched = on;
	e->held = 4096;
	return on ? misbehave("watch", 0, e, err) : RFL_OK;
}

static const char *fake_optimizer_kernels(struct rfl_engine *e)
{
	const bool fused = e->config.optimizer.kernels == RFL_KERNELS_FUSED;

	return rfl_optimizer_kernels_names[fused ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH];
}

extern struct rfl_engine_ops rfl_fake_ops;
struct rfl_engine_ops rfl_fake_ops = {
	.name = "fake",
	.version = "1.0",
	.variant = "test",
	.probe = fake_probe,
	.library_version = fake_library_version,
	.unsupported = fake_unsupported,
	.open = fake_open,
	.close = fake_close,
	.set_mode = fake_set_mode,
	.set_optimizer = fake_set_optimizer,
	.zero_grad = fake_zero_grad,
	.forward = fake_forward,
	.forward_traced = fake_forward_traced,
	.generate = fake_generate,
	.backward = fake_backward,
	.step = fake_step,
	.reset_optimizer = fake_nothing,
	.loss = fake_loss,
	.logits = fake_logits,
	.set_param = fake_set_param,
	.get_param = fake_get_param,
	.get_grad = fake_get_param,
	.param_data = fake_param_data,
	.sync = fake_sync,
	.memory = fake_memory,
	.snapshot = fake_snapshot,
	.restore = fake_restore,
	.mark = fake_mark,
	.device_info = fake_device_info,
	.reset_memory = fake_nothing,
	.scaling = fake_scaling,
	.host_alloc = fake_host_alloc,
	.host_free = fake_host_free,
	.upload = fake_upload,
	.uploaded = fake_nothing,
	.reserve_events = fake_reserve_events,
	.record_event = fake_record_event,
	.elapsed = fake_elapsed,
	.capture = fake_capture,
	.replay = fake_replay,
	.join = fake_join,
	.gather = fake_gather,
	.optimizer_kernels = fake_optimizer_kernels,
	.score = fake_score,
	.visit_state = fake_visit_state,
};

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi);
RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	/* each time: a process may ask more than once */
	rfl_fake_ops.snapshot = fake_lacks("snapshot") ? NULL : fake_snapshot;
	rfl_fake_ops.mark = fake_lacks("mark") ? NULL : fake_mark;
	rfl_fake_ops.watch_memory = fake_lacks("watch") ? NULL : fake_watch_memory;
	rfl_fake_ops.upload = fake_lacks("upload") ? NULL : fake_upload;
	rfl_fake_ops.capture = fake_lacks("capture") ? NULL : fake_capture;
	rfl_fake_ops.optimizer_kernels = fake_lacks("kernels") ? NULL : fake_optimizer_kernels;
	rfl_fake_ops.join = fake_lacks("join") ? NULL : fake_join;
	rfl_fake_ops.host_alloc = fake_lacks("pinned") ? NULL : fake_host_alloc;
	return abi == RFL_ENGINE_ABI ? &rfl_fake_ops : NULL;
}
