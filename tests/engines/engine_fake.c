/*
 * engine_fake.c - an engine that computes nothing. Tests tell it through the environment how long a
 * phase takes and where to go wrong:
 *
 *   RFL_FAKE=<action>:<place>[:<n>]   at the n-th call (from 0) of that place:
 *       kill segv exit hang edevmem fail nan     at open forward backward step snapshot restore
 *                                                 close
 *     or RFL_FAKE=unsupported, RFL_FAKE=unavailable
 *   RFL_FAKE_DEVICE=cuda                         serves this device beside the cpu
 *   RFL_FAKE_LACKS=snapshot,mark                 has no such slots
 *   RFL_FAKE_LOG=<file>                          receives at close how often what was called, and
 *                                                how many updates the parameters have seen
 *   RFL_FAKE_MS=<forward>,<backward>,<step>      milliseconds, 0 when absent
 *   RFL_FAKE_PID=<file>                          receives the process id at open
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runner/engine.h"

struct rfl_engine {
	const struct rfl_engine_ops *ops;
	const struct rfl_net *net;
	float **params;
	double ms[3];
	int calls[3]; /* of forward, backward, step */
	int snapshots, restores;
	int64_t updates, saved_updates; /* the state that a step changes */
	double loss, saved_loss;
	rfl_engine_mark_fn mark;
	void *mark_ctx;
};

/* True when RFL_FAKE asks for something at the n-th call of a place; the action's name in `action`.
 */
static bool is_asked(const char *place, int n, char action[16])
{
	const char *text = getenv("RFL_FAKE");
	char where[16] = "";
	int at = 0;

	action[0] = '\0';
	if (!text || sscanf(text, "%15[^:]:%15[^:]:%d", action, where, &at) < 2)
		return false;
	return strcmp(where, place) == 0 && at == n;
}

static enum rfl_rc misbehave(const char *place, int n, struct rfl_engine *e, struct rfl_err *err)
{
	char action[16];

	if (!is_asked(place, n, action))
		return RFL_OK;
	if (strcmp(action, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(action, "segv") == 0) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer must not turn it into an exit */
		raise(SIGSEGV);
	}
	if (strcmp(action, "exit") == 0)
		_exit(9);
	while (strcmp(action, "hang") == 0)
		pause();
	if (strcmp(action, "edevmem") == 0)
		return rfl_fail(err, RFL_EDEVMEM, 0, "fake: no memory left for 7 GiB");
	if (strcmp(action, "fail") == 0)
		return rfl_fail(err, RFL_EFAILED, 0, "fake: told to fail at %s %d", place, n);
	if (strcmp(action, "nan") == 0 && e)
		e->loss = (double)NAN;
	return RFL_OK;
}

static enum rfl_rc fake_probe(enum rfl_device device, struct rfl_err *err)
{
	const char *text = getenv("RFL_FAKE");

	if (text && strcmp(text, "unavailable") == 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "fake: told to be unavailable");
	text = getenv("RFL_FAKE_DEVICE");
	if (device == RFL_DEVICE_CPU ||
	    (device == RFL_DEVICE_CUDA && text && strcmp(text, "cuda") == 0))
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "fake: runs on the cpu only");
}

static const char *fake_library_version(void)
{
	return "1.0.7";
}

static const char *fake_unsupported(enum rfl_op op, enum rfl_precision precision)
{
	const char *text = getenv("RFL_FAKE");

	if (text && strcmp(text, "unsupported") == 0 && op == RFL_OP_MAX_POOL)
		return "told not to";
	return precision == RFL_PRECISION_FP32 ? NULL : "only fp32 is faked";
}

static void write_log(const struct rfl_engine *e)
{
	const char *path = getenv("RFL_FAKE_LOG");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (f) {
		fprintf(f, "forward=%d backward=%d step=%d snapshot=%d restore=%d updates=%lld\n",
			e->calls[0], e->calls[1], e->calls[2], e->snapshots, e->restores,
			(long long)e->updates);
		fclose(f);
	}
}

static void fake_close(struct rfl_engine *e)
{
	if (!e)
		return;
	write_log(e);
	(void)misbehave("close", 0, e, NULL);
	for (int i = 0; e->params && i < e->net->nparams; i++)
		free(e->params[i]);
	free(e->params);
	free(e);
}

static void note_pid(void)
{
	const char *path = getenv("RFL_FAKE_PID");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (f) {
		fprintf(f, "%ld\n", (long)getpid());
		fclose(f);
	}
}

static enum rfl_rc fake_open(const struct rfl_net *net, const struct rfl_engine_config *config,
			     struct rfl_engine **ret, struct rfl_err *err)
{
	extern struct rfl_engine_ops rfl_fake_ops;
	const char *ms = getenv("RFL_FAKE_MS");
	struct rfl_engine *e = NULL;
	enum rfl_rc rc;

	(void)config;
	note_pid();
	rc = misbehave("open", 0, NULL, err);
	if (rc)
		return rc;
	e = calloc(1, sizeof(*e));
	if (!e)
		return rfl_fail(err, RFL_ENOMEM, 0, "fake: out of memory");
	e->ops = &rfl_fake_ops;
	e->net = net;
	e->loss = (double)NAN;
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
	(void)e, (void)err;
	return RFL_OK;
}

static enum rfl_rc phase(struct rfl_engine *e, int which, const char *name, struct rfl_err *err)
{
	const struct timespec pause = { .tv_sec = (time_t)(e->ms[which] / 1e3),
					.tv_nsec = (long)(fmod(e->ms[which], 1e3) * 1e6) };

	nanosleep(&pause, NULL);
	return misbehave(name, e->calls[which]++, e, err);
}

/* The node behind the last is the loss. */
static enum rfl_rc mark(struct rfl_engine *e, const char *phase_name, int node, struct rfl_err *err)
{
	char name[256];

	if (!e->mark)
		return RFL_OK;
	(void)snprintf(name, sizeof(name), "%s/%s", phase_name,
		       node < e->net->nnodes ? e->net->nodes[node].name : "loss");
	return e->mark(name, e->mark_ctx, err);
}

static enum rfl_rc fake_forward(struct rfl_engine *e, const struct rfl_batch *batch,
				struct rfl_err *err)
{
	(void)batch;
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i <= e->net->nnodes && rc == RFL_OK; i++)
		rc = mark(e, "fwd", i, err);
	e->loss = 8.0 / (1.0 + e->calls[0]);
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
	(void)how;
	enum rfl_rc rc = RFL_OK;

	for (int i = e->net->nnodes; i > 0 && rc == RFL_OK; i--)
		rc = mark(e, "bwd", i, err);
	return rc ? rc : phase(e, 1, "backward", err);
}

static enum rfl_rc fake_step(struct rfl_engine *e, struct rfl_err *err)
{
	e->updates++;
	return phase(e, 2, "step", err);
}

static enum rfl_rc fake_snapshot(struct rfl_engine *e, struct rfl_err *err)
{
	e->saved_updates = e->updates;
	e->saved_loss = e->loss;
	return misbehave("snapshot", e->snapshots++, e, err);
}

static enum rfl_rc fake_restore(struct rfl_engine *e, struct rfl_err *err)
{
	e->updates = e->saved_updates;
	e->loss = e->saved_loss;
	return misbehave("restore", e->restores++, e, err);
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

static enum rfl_rc fake_loss(struct rfl_engine *e, double *ret, struct rfl_err *err)
{
	(void)err;
	*ret = e->loss;
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
	(void)e, (void)err;
	*ret = (struct rfl_engine_memory){ .allocated_peak_bytes = 4096,
					   .reserved_peak_bytes = (double)NAN };
	return RFL_OK;
}

static const char *fake_describe(struct rfl_engine *e)
{
	(void)e;
	return "fake\n";
}

extern struct rfl_engine_ops rfl_fake_ops;
struct rfl_engine_ops rfl_fake_ops = {
	.name = "fake",
	.version = "1.0",
	.variant = "test",
	.summary = "computes nothing, for tests",
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
	.backward = fake_backward,
	.step = fake_step,
	.reset_optimizer = fake_nothing,
	.loss = fake_loss,
	.logits = fake_logits,
	.set_param = fake_set_param,
	.get_param = fake_get_param,
	.get_grad = fake_get_param,
	.param_data = fake_param_data,
	.sync = fake_nothing,
	.memory = fake_memory,
	.snapshot = fake_snapshot,
	.restore = fake_restore,
	.mark = fake_mark,
	.describe = fake_describe,
};

RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi);
RFL_EXPORT const struct rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	const char *lacks = getenv("RFL_FAKE_LACKS");

	rfl_fake_ops.snapshot = lacks && strstr(lacks, "snapshot") ? NULL : fake_snapshot;
	rfl_fake_ops.mark = lacks && strstr(lacks, "mark") ? NULL : fake_mark;
	return abi == RFL_ENGINE_ABI ? &rfl_fake_ops : NULL;
}
