/*
 * measure.c - the child's work: engine, network, weights, data, burst. What it did run/tell.c
 * reports; every file is left to the parent.
 */
#include "runner/run/job.h"

#include <math.h>

#include "base/clock.h"
#include "runner/burst/counted.h"
#include "runner/fill_engine.h"

#define SAMPLES_PER_S 10

/* ---- counters ---- */

static struct rfl_source_request counters_request(struct rfl_run__job *job)
{
	const struct rfl_run_config *c = &job->config;

	return (struct rfl_source_request){
		.sets = rfl_counted_sets(job->choice.device, (unsigned)c->counter_sets),
		.precision = rfl_precision_names[c->precision],
		.label = c->arch,
		.step_s = job->burst.nsteps ? job->burst.wall_s / (double)job->burst.nsteps : 0,
		.places = c->places,
		.early = job->early,
		.so_far = rfl_run__tell_so_far,
		.ctx = job,
	};
}

/* Before the engine opens its device. What fails is reported when the steps are to be counted. */
static void open_counters(struct rfl_run__job *job)
{
	const struct rfl_source_request request = counters_request(job);

	if (job->config.counters != RFL_DETAIL_OFF &&
	    job->source_for(rfl_device_names[job->choice.device], &job->source, NULL) == RFL_OK &&
	    job->source->open)
		job->early = job->source->open(&request);
}

/* ---- engine ---- */

static enum rfl_rc open_engine(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	enum rfl_rc rc = rfl_engine_list_new(c->plugin_dirs, &job->list, err);

	if (rc == RFL_OK)
		rc = rfl_run__choose(c, job->list, &job->choice, err);
	if (rc)
		return rc;
	rfl_run__tell_engine(job);
	rc = rfl_run__suit(&job->config, &job->choice, err);
	if (rc == RFL_OK)
		open_counters(job);
	if (rc == RFL_OK)
		rc = rfl_run__open_engine(c, &job->choice, job->net, &job->engine, err);
	if (rc == RFL_OK)
		rc = rfl_run__tell_device(job, err);
	if (rc == RFL_OK)
		rc = rfl_run__join(job, err);
	if (rc == RFL_OK) /* the same weights in every process: nobody sends them */
		rc = rfl_fill_engine(job->choice.ops, job->engine, job->net, (int)c->threads, err);
	return rc;
}

/* ---- data ---- */

static enum rfl_rc alloc_pinned(void *ctx, size_t bytes, void **ret, struct rfl_err *err)
{
	const struct rfl_run__job *job = ctx;

	return job->choice.ops->host_alloc(job->engine, bytes, ret, err);
}

static void free_pinned(void *ctx, void *memory)
{
	const struct rfl_run__job *job = ctx;

	job->choice.ops->host_free(job->engine, memory);
}

static enum rfl_rc open_data(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_data_memory pinned = {
		.alloc = alloc_pinned,
		.free = free_pinned,
		.ctx = job,
	};

	const struct rfl_data_spec spec = rfl_run__data_spec(c);

	return rfl_data_open(&spec, job->net, c->micro_batch, rfl_run__layout(c), (int)c->threads,
			     c->pin_memory ? &pinned : NULL, &job->data, err);
}

/* ---- burst ---- */

static void on_progress(const char *phase, int64_t done, int64_t total, void *ctx)
{
	rfl_run__tell_progress(ctx, phase, done, total);
}

/* Beside the window, not in it: the threads that watch begin and end here. */
static void on_window(bool begins, void *ctx)
{
	struct rfl_run__job *job = ctx;

	if (begins) {
		rfl_data_reset_stats(job->data);
		if (job->sampler && rfl_sampler_start(job->sampler, &job->no_samples) != RFL_OK) {
			rfl_sampler_free(job->sampler);
			job->sampler = NULL;
		}
		return;
	}
	if (job->sampler)
		rfl_sampler_stop(job->sampler, &job->gpu);
	rfl_data_stats(job->data, &job->data_stats);
}

static enum rfl_rc on_meet(void *ctx, struct rfl_err *err)
{
	return rfl_run__meet(ctx, err);
}

static enum rfl_rc on_measured(void *ctx, struct rfl_err *err)
{
	const enum rfl_rc rc = rfl_run__tell_measured(ctx, err);

	return rc ? rc : rfl_run__unite(ctx, err);
}

static enum rfl_rc burst(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_engine_ops *ops = job->choice.ops;
	const struct rfl_burst_config config = {
		.mode = (enum rfl_run_mode)c->mode,
		.warmup = c->warmup,
		.iters = c->iters,
		.accum = c->accum,
		.asynchronous = job->choice.device != RFL_DEVICE_CPU,
		.sync_each_step = c->sync_each_step,
		.cuda_graph = c->cuda_graph,
		.until_stdrel = c->until_stdrel,
		.until_max_s = c->until_max_s,
		.nvtx = job->nvtx,
		.nvtx_detail = (enum rfl_detail)c->nvtx,
		.progress = on_progress,
		.meet = on_meet,
		.window = on_window,
		.measured = on_measured,
		.ctx = job,
	};
	enum rfl_rc rc = rfl_burst_init(&job->burst, c->iters, err);

	if (rc == RFL_OK && ops->reset_memory) /* of training, not of setting up */
		rc = ops->reset_memory(job->engine, err);
	if (rc == RFL_OK)
		rc = rfl_burst_run(ops, job->engine, job->data, &config, &job->burst, err);
	if (rc == RFL_OK)
		rfl_run__tell_until(job);
	return rc;
}

/* ---- counted steps ---- */

static enum rfl_rc count_step(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_counted_config config = {
		.detail = (enum rfl_detail)c->counters,
		.mode = (enum rfl_run_mode)c->mode,
		.accum = c->accum,
		.request = counters_request(job),
	};
	const struct rfl_counted_parts parts = {
		.ops = job->choice.ops,
		.engine = job->engine,
		.net = job->net,
		.data = job->data,
	};
	struct rfl_captures captures;
	enum rfl_rc rc;

	rfl_captures_init(&captures);
	rc = job->source_for(rfl_device_names[job->choice.device], &job->source, err);
	if (rc == RFL_OK)
		rc = rfl_counted_run(job->source, &config, &parts, &captures, err);
	if (rc == RFL_OK)
		rc = rfl_run__tell_counters(job, &captures, err);
	rfl_captures_fini(&captures);
	return rc;
}

/* The run is measured by now: whatever happens here is news of the counters, not of the run. */
static void count(struct rfl_run__job *job)
{
	struct rfl_err end = RFL_ERR_INIT;

	if (job->config.counters == RFL_DETAIL_OFF)
		return;
	rfl_run__tell_progress(job, "counting", 0, 1);
	end.rc = count_step(job, &end);
	rfl_run__tell_counted(job, &end);
}

/* ---- all of it ---- */

static enum rfl_rc open_nvtx(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;

	if (c->nvtx == RFL_DETAIL_OFF)
		return RFL_OK;
	if (c->nvtx == RFL_DETAIL_LAYER && !job->choice.ops->mark)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"engine '%s' cannot tell layers apart (it has no marks): use --nvtx "
			"phase",
			job->choice.ops->name);
	return rfl_nvtx_open(c->nvtx_injection, &job->nvtx, err);
}

/* A GPU that cannot be watched trains all the same; the row is told why it lacks the columns. */
static void open_sampler(struct rfl_run__job *job)
{
	const char *id = job->pci_bus_id[0] ? job->pci_bus_id : NULL;

	if (job->choice.device == RFL_DEVICE_CUDA &&
	    rfl_sampler_new(id, SAMPLES_PER_S, &job->sampler, &job->no_samples) != RFL_OK)
		job->sampler = NULL;
}

static enum rfl_rc set_up(struct rfl_run__job *job, struct rfl_err *err)
{
	double start = rfl_clock_s();
	enum rfl_rc rc;

	rfl_run__tell_progress(job, "setup", 0, 1);
	rc = rfl_run__check(&job->config, &job->net, err);
	if (rc == RFL_OK)
		rc = open_engine(job, err);
	if (rc == RFL_OK)
		rc = open_nvtx(job, err);
	if (rc == RFL_OK)
		rc = open_data(job, err);
	if (rc)
		return rc;
	open_sampler(job);
	job->setup_s = rfl_clock_s() - start;
	rfl_run__tell_ready(job);
	return RFL_OK;
}

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     rfl_run__emit_fn emit, void *ctx, struct rfl_err *err)
{
	struct rfl_run__job job = {
		.config = *config,
		.emit = emit,
		.ctx = ctx,
		.source_for = source_for ? source_for : rfl_source_for,
		.no_samples = RFL_ERR_INIT,
		.data_stats = { .decode_s = (double)NAN,
				.queue_mean = (double)NAN,
				.queue_min = (double)NAN },
	};
	struct rfl_err failure = RFL_ERR_INIT;
	enum rfl_rc rc = set_up(&job, &failure);

	if (rc == RFL_OK)
		rc = burst(&job, &failure);
	if (rc == RFL_OK)
		count(&job);
	if (rc) {
		rfl_run__tell_failed(&job, &failure);
		rfl_fail(err, rc, failure.native, "%s", failure.msg);
	}
	if (job.early)
		job.source->close(job.early);
	rfl_sampler_free(job.sampler);
	rfl_burst_fini(&job.burst);
	rfl_data_free(job.data);
	rfl_nvtx_close(job.nvtx);
	if (job.engine)
		job.choice.ops->close(job.engine);
	rfl_net_free(job.net);
	rfl_engine_list_free(job.list);
	return rc;
}
