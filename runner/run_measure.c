/*
 * run_measure.c - the child's work: engine, network, weights, data, burst. It reports what it did
 * and leaves every file to the parent.
 */
#include "runner/run_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "machine/sampler.h"
#include "profile/counters_csv.h"
#include "runner/counted.h"
#include "runner/fill_engine.h"

#define STEPS_PER_EVENT 256
#define CSV_PER_EVENT   ((size_t)32 << 10)
#define SAMPLES_PER_S   10

/* What a measurement owns. */
struct job {
	struct rfl_run_config config; /* less what the device has no use for */
	rfl_run__emit_fn emit;
	void *ctx;
	struct rfl_net *net;
	struct rfl_engine_list *list;
	struct rfl_run__choice choice;
	struct rfl_engine *engine;
	char pci_bus_id[32];         /* of the device */
	struct rfl_sampler *sampler; /* of a GPU; NULL: not possible */
	struct rfl_err no_samples;   /* why */
	struct rfl_gpu_samples gpu;
	struct rfl_data_stats data_stats; /* of the window */
	struct rfl_data *data;
	struct rfl_nvtx *nvtx;
	struct rfl_burst burst;
	double setup_s;
	rfl_run_source_fn source_for;
	size_t counters_len; /* sent so far */
};

static void send(struct job *job, json_t *take_event)
{
	if (take_event)
		job->emit(take_event, job->ctx);
}

/* Messages quote file names, and JSON is UTF-8: what is not is shown as '?'. */
static json_t *text_of(char *text)
{
	json_t *json = json_string(text);

	for (char *p = text; !json && *p; p++) {
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	}
	return json ? json : json_string(text);
}

json_t *rfl_run__failed_event(struct rfl_err *end)
{
	return json_pack("{s:s, s:i, s:o}", "event", "failed", "rc", (int)end->rc, "text",
			 text_of(end->msg));
}

static void say_progress(struct job *job, const char *phase, int64_t done, int64_t total)
{
	send(job, json_pack("{s:s, s:s, s:I, s:I}", "event", "progress", "phase", phase, "done",
			    (json_int_t)done, "total", (json_int_t)total));
}

/* ---- engine ---- */

static void say_engine(struct job *job)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	char id[128];

	snprintf(id, sizeof(id), "%s-%s-%s", ops->name, ops->version, ops->variant);
	send(job,
	     json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "event", "engine", "name", ops->name,
		       "id", id, "version", ops->library_version(), "abi", RFL_ENGINE_ABI, "device",
		       (int)job->choice.device, "reason", text_of(job->choice.reason)));
}

static enum rfl_rc say_device(struct job *job, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	struct rfl_engine_device d = { .memory_bytes = -1 };
	enum rfl_rc rc = ops->device_info ? ops->device_info(job->engine, &d, err) : RFL_OK;

	if (rc)
		return rc;
	snprintf(job->pci_bus_id, sizeof(job->pci_bus_id), "%s", d.pci_bus_id);
	send(job,
	     json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s}", "event", "device", "name",
		       text_of(d.name), "pci_bus_id", text_of(d.pci_bus_id), "cuda_runtime",
		       text_of(d.cuda_runtime), "cuda_driver", text_of(d.cuda_driver), "cudnn",
		       text_of(d.cudnn), "nccl", text_of(d.nccl), "memory_bytes",
		       (json_int_t)d.memory_bytes, "describe", ops->describe(job->engine)));
	return RFL_OK;
}

static enum rfl_rc open_engine(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	enum rfl_rc rc = rfl_engine_list_new(c->plugin_dirs, &job->list, err);

	if (rc == RFL_OK)
		rc = rfl_run__choose(c, job->list, &job->choice, err);
	if (rc)
		return rc;
	say_engine(job);
	rc = rfl_run__suit(&job->config, &job->choice, err);
	if (rc == RFL_OK)
		rc = rfl_run__open_engine(c, &job->choice, job->net, &job->engine, err);
	if (rc == RFL_OK)
		rc = say_device(job, err);
	if (rc == RFL_OK)
		rc = rfl_fill_engine(job->choice.ops, job->engine, job->net, c->threads, err);
	return rc;
}

/* ---- data ---- */

static enum rfl_rc alloc_pinned(void *ctx, size_t bytes, void **ret, struct rfl_err *err)
{
	const struct job *job = ctx;

	return job->choice.ops->host_alloc(job->engine, bytes, ret, err);
}

static void free_pinned(void *ctx, void *memory)
{
	const struct job *job = ctx;

	job->choice.ops->host_free(job->engine, memory);
}

static enum rfl_rc open_data(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_data_memory pinned = {
		.alloc = alloc_pinned,
		.free = free_pinned,
		.ctx = job,
	};

	return rfl_data_open(&c->data, job->net, c->batch / c->accum, c->layout, c->threads,
			     c->data.pin_memory ? &pinned : NULL, &job->data, err);
}

/* ---- burst ---- */

static void on_progress(int64_t done, int64_t total, void *ctx)
{
	struct job *job = ctx;

	say_progress(job, "warmup", done, total);
	if (done == total)
		say_progress(job, "window", 0, job->config.iters);
}

/* Beside the window, not in it: the threads that watch begin and end here. */
static void on_window(bool begins, void *ctx)
{
	struct job *job = ctx;

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

static json_t *step_to_json(const struct rfl_burst_step *s)
{
	return json_pack("[o, o, o, o, o, o, o]", rfl_json_real(s->data_wait_s),
			 rfl_json_real(s->upload_s), rfl_json_real(s->forward_s),
			 rfl_json_real(s->backward_s), rfl_json_real(s->optimizer_s),
			 rfl_json_real(s->total_s), rfl_json_real(s->loss));
}

static void say_steps(struct job *job)
{
	for (int64_t first = 0; first < job->burst.nsteps; first += STEPS_PER_EVENT) {
		json_t *rows = json_array();

		for (int64_t i = first; i < first + STEPS_PER_EVENT && i < job->burst.nsteps; i++)
			json_array_append_new(rows, step_to_json(&job->burst.steps[i]));
		send(job, json_pack("{s:s, s:I, s:o}", "event", "steps", "first", (json_int_t)first,
				    "rows", rows));
	}
}

/* What the GPU did in the window, or why that is not known. */
static void say_gpu(struct job *job)
{
	const struct rfl_gpu_samples *g = &job->gpu;
	char throttle[256];

	if (job->choice.device != RFL_DEVICE_CUDA)
		return;
	if (!job->sampler) {
		send(job, json_pack("{s:s, s:o}", "event", "gpu", "reason",
				    text_of(job->no_samples.msg)));
		return;
	}
	rfl_throttle_words(g->throttle_bits, throttle, sizeof(throttle));
	send(job, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "event", "gpu",
			    "sm_clock_mean_hz", rfl_json_real(g->sm_clock_mean_hz),
			    "sm_clock_min_hz", rfl_json_real(g->sm_clock_min_hz),
			    "memory_clock_mean_hz", rfl_json_real(g->memory_clock_mean_hz),
			    "power_mean_w", rfl_json_real(g->power_mean_w), "energy_j",
			    rfl_json_real(g->energy_j), "temperature_max_c",
			    rfl_json_real(g->temperature_max_c), "memory_used_peak_bytes",
			    rfl_json_real(g->memory_used_peak_bytes), "throttle", throttle));
}

static double own_peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss * 1024.0;
}

/* Images per second that the loader's threads make while they work: what it could keep up with. */
static double decode_rate(const struct job *job)
{
	const int threads = job->config.data.workers > 0 ? job->config.data.workers : 1;

	return (double)job->data_stats.decoded / job->data_stats.decode_s * threads;
}

static json_t *burst_to_json(const struct rfl_burst *b)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "event", "timed", "wall_s",
			 rfl_json_real(b->wall_s), "ttfb_s", rfl_json_real(b->ttfb_s), "loss_first",
			 rfl_json_real(b->loss_first), "loss_last", rfl_json_real(b->loss_last),
			 "launch_gap", rfl_json_real(b->launch_gap), "synced", b->synced);
}

static void say_until(struct job *job)
{
	const struct rfl_burst *b = &job->burst;

	if (b->until_steps > 0)
		send(job,
		     json_pack("{s:s, s:I, s:o, s:o}", "event", "until", "steps",
			       (json_int_t)b->until_steps, "step_s", rfl_json_real(b->until_step_s),
			       "stdrel", rfl_json_real(b->until_stdrel)));
}

/* From here on the run is measured, whatever comes. */
static enum rfl_rc on_measured(void *ctx, struct rfl_err *err)
{
	struct job *job = ctx;
	const struct rfl_engine_ops *ops = job->choice.ops;
	struct rfl_loss_scaling scaling = { .scale = (double)NAN, .skipped = -1 };
	struct rfl_engine_memory memory;
	enum rfl_rc rc = ops->memory(job->engine, &memory, err);
	json_t *event;

	if (rc == RFL_OK && ops->scaling)
		rc = ops->scaling(job->engine, &scaling, err);
	if (rc)
		return rc;
	say_steps(job);
	event = burst_to_json(&job->burst);
	if (event &&
	    json_object_update_new(
		    event,
		    json_pack("{s:o, s:o, s:o, s:I, s:o, s:I, s:o, s:o, s:o}",
			      "allocated_peak_bytes", rfl_json_real(memory.allocated_peak_bytes),
			      "reserved_peak_bytes", rfl_json_real(memory.reserved_peak_bytes),
			      "host_peak_bytes", rfl_json_real(own_peak_bytes()), "skipped",
			      (json_int_t)rfl_data_skipped(job->data), "loss_scale",
			      rfl_json_real(scaling.scale), "scale_skipped",
			      (json_int_t)scaling.skipped, "queue_mean",
			      rfl_json_real(job->data_stats.queue_mean), "queue_min",
			      rfl_json_real(job->data_stats.queue_min), "decode_rate",
			      rfl_json_real(decode_rate(job)))) != 0) {
		json_decref(event);
		event = NULL;
	}
	if (!event)
		return rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
	send(job, event);
	say_gpu(job);
	return RFL_OK;
}

static enum rfl_rc burst(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_engine_ops *ops = job->choice.ops;
	const struct rfl_burst_config config = {
		.mode = c->mode,
		.warmup = c->warmup,
		.iters = c->iters,
		.accum = c->accum,
		.asynchronous = job->choice.device != RFL_DEVICE_CPU,
		.sync_each_step = c->sync_each_step,
		.cuda_graph = c->cuda_graph,
		.until_stdrel = c->until_stdrel,
		.until_max_s = c->until_max_s,
		.nvtx = job->nvtx,
		.nvtx_detail = c->nvtx,
		.progress = on_progress,
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
		say_until(job);
	return rc;
}

/* ---- counted steps ---- */

/* A row is one line, but a field may hold a newline: cut anywhere but inside a character. */
static size_t piece_of(const char *text, size_t len)
{
	size_t n = CSV_PER_EVENT;

	if (len <= n)
		return len;
	while (n > CSV_PER_EVENT - 4 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* Names of kernels are UTF-8; what is not is shown as '?'. */
static json_t *piece_to_json(char *text, size_t n)
{
	json_t *json = json_stringn(text, n);

	for (size_t i = 0; !json && i < n; i++) {
		if ((unsigned char)text[i] >= 0x80 || text[i] == '\0')
			text[i] = '?';
	}
	return json ? json : json_stringn(text, n);
}

static enum rfl_rc say_counters(struct job *job, const struct rfl_captures *captures,
				struct rfl_err *err)
{
	struct rfl_buf csv;
	enum rfl_rc rc;

	rfl_buf_init(&csv, 0);
	rfl_counters_write(&csv, captures, true);
	rc = rfl_buf_check(&csv, "counters", err);
	for (size_t at = 0, n; rc == RFL_OK && at < csv.len; at += n) {
		n = piece_of(csv.data + at, csv.len - at);
		send(job, json_pack("{s:s, s:o}", "event", "counters", "csv",
				    piece_to_json(csv.data + at, n)));
	}
	job->counters_len = csv.len;
	rfl_buf_fini(&csv);
	return rc;
}

static enum rfl_rc count_step(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_counted_config config = {
		.detail = c->counters,
		.mode = c->mode,
		.accum = c->accum,
		.request = {
			.sets = rfl_counted_sets(job->choice.device, c->counter_sets),
			.precision = rfl_precision_names[c->precision],
			.label = c->arch,
			.places = c->places,
		},
	};
	const struct rfl_counted_parts parts = {
		.ops = job->choice.ops,
		.engine = job->engine,
		.net = job->net,
		.data = job->data,
	};
	const struct rfl_source_ops *source;
	struct rfl_captures captures;
	enum rfl_rc rc;

	rfl_captures_init(&captures);
	rc = job->source_for(rfl_device_names[job->choice.device], &source, err);
	if (rc == RFL_OK)
		rc = rfl_counted_run(source, &config, &parts, &captures, err);
	if (rc == RFL_OK)
		rc = say_counters(job, &captures, err);
	rfl_captures_fini(&captures);
	return rc;
}

/* The run is measured by now: whatever happens here is news of the counters, not of the run. */
static void count(struct job *job)
{
	struct rfl_err end = RFL_ERR_INIT;

	if (job->config.counters == RFL_DETAIL_OFF)
		return;
	say_progress(job, "counting", 0, 1);
	end.rc = count_step(job, &end);
	send(job, json_pack("{s:s, s:i, s:o, s:I}", "event", "counted", "rc", (int)end.rc, "text",
			    text_of(end.msg), "bytes", (json_int_t)job->counters_len));
}

/* ---- all of it ---- */

static enum rfl_rc open_nvtx(struct job *job, struct rfl_err *err)
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
static void open_sampler(struct job *job)
{
	const char *id = job->pci_bus_id[0] ? job->pci_bus_id : NULL;

	if (job->choice.device == RFL_DEVICE_CUDA &&
	    rfl_sampler_new(id, SAMPLES_PER_S, &job->sampler, &job->no_samples) != RFL_OK)
		job->sampler = NULL;
}

static enum rfl_rc set_up(struct job *job, struct rfl_err *err)
{
	double start = rfl_clock_s();
	enum rfl_rc rc;

	say_progress(job, "setup", 0, 1);
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
	send(job, json_pack("{s:s, s:f, s:b, s:b, s:b}", "event", "ready", "setup_s",
			    rfl_clock_s() - start, "pin_memory", job->config.data.pin_memory,
			    "cudnn_benchmark", job->config.cudnn_benchmark, "cuda_graph",
			    job->config.cuda_graph));
	return RFL_OK;
}

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     rfl_run__emit_fn emit, void *ctx, struct rfl_err *err)
{
	struct job job = {
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
		send(&job, rfl_run__failed_event(&failure));
		rfl_fail(err, rc, failure.native, "%s", failure.msg);
	}
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
