/*
 * tell.c - what the child tells the parent: one JSON object per event (run/parts.h). The
 * parent's ear is run/report.c.
 */
#include "runner/run/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/json.h"
#include "profile/capture/counters_csv.h"

#define STEPS_PER_EVENT 256
#define CSV_PER_EVENT   ((size_t)32 << 10)

static void send(struct rfl_run__job *job, json_t *take_event)
{
	if (take_event)
		job->emit(take_event, job->ctx);
}

/* Texts quote file names and devices, and JSON is UTF-8: what is not is shown as '?'. */
json_t *rfl_run__shown(const char *text, size_t n)
{
	json_t *json = json_stringn(text, n);
	char *shown = json ? NULL : malloc(n);

	if (!shown)
		return json;
	for (size_t i = 0; i < n; i++)
		shown[i] = (unsigned char)text[i] >= 0x80 || text[i] == '\0' ? '?' : text[i];
	json = json_stringn(shown, n);
	free(shown);
	return json;
}

static json_t *text_of(const char *text)
{
	return text ? rfl_run__shown(text, strlen(text)) : json_null();
}

json_t *rfl_run__failed_event(const struct rfl_err *end)
{
	return json_pack("{s:s, s:i, s:o}", "event", "failed", "rc", (int)end->rc, "text",
			 text_of(end->msg));
}

void rfl_run__tell_failed(struct rfl_run__job *job, const struct rfl_err *end)
{
	send(job, rfl_run__failed_event(end));
}

void rfl_run__tell_progress(struct rfl_run__job *job, const char *phase, int64_t done,
			    int64_t total)
{
	send(job, json_pack("{s:s, s:s, s:I, s:I}", "event", "progress", "phase", phase, "done",
			    (json_int_t)done, "total", (json_int_t)total));
}

/* ---- what it runs on ---- */

void rfl_run__tell_engine(struct rfl_run__job *job)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	char id[128];

	snprintf(id, sizeof(id), "%s-%s-%s", ops->name, ops->version, ops->variant);
	send(job,
	     json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "event", "engine", "name", ops->name,
		       "id", id, "version", ops->library_version(), "abi", RFL_ENGINE_ABI, "device",
		       (int)job->choice.device, "reason", text_of(job->choice.reason)));
}

enum rfl_rc rfl_run__tell_device(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	struct rfl_engine_device d = { .memory_bytes = -1 };
	enum rfl_rc rc = ops->device_info ? ops->device_info(job->engine, &d, err) : RFL_OK;

	if (rc)
		return rc;
	snprintf(job->pci_bus_id, sizeof(job->pci_bus_id), "%s", d.pci_bus_id);
	send(job, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "event", "device",
			    "name", text_of(d.name), "pci_bus_id", text_of(d.pci_bus_id),
			    "cuda_runtime", text_of(d.cuda_runtime), "cuda_driver",
			    text_of(d.cuda_driver), "cudnn", text_of(d.cudnn), "nccl",
			    text_of(d.nccl), "memory_bytes", (json_int_t)d.memory_bytes, "describe",
			    text_of(ops->describe(job->engine))));
	return RFL_OK;
}

/* Which kernels make the updates, in the engine's word; "" where it has none. */
static const char *kernels_of(const struct rfl_run__job *job)
{
	const struct rfl_engine_ops *ops = job->choice.ops;

	return ops->optimizer_kernels ? ops->optimizer_kernels(job->engine) : "";
}

void rfl_run__tell_ready(struct rfl_run__job *job)
{
	const struct rfl_run_config *c = &job->config;

	send(job,
	     json_pack("{s:s, s:f, s:b, s:b, s:b, s:o}", "event", "ready", "setup_s", job->setup_s,
		       "pin_memory", c->pin_memory, "cudnn_benchmark", c->cudnn_benchmark,
		       "cuda_graph", c->cuda_graph, "optimizer_kernels", text_of(kernels_of(job))));
}

/* ---- what was measured ---- */

static json_t *step_to_json(const struct rfl_burst_step *s)
{
	return json_pack("[o, o, o, o, o, o, o]", rfl_json_real(s->data_wait_s),
			 rfl_json_real(s->upload_s), rfl_json_real(s->forward_s),
			 rfl_json_real(s->backward_s), rfl_json_real(s->optimizer_s),
			 rfl_json_real(s->total_s), rfl_json_real(s->loss));
}

static void say_steps(struct rfl_run__job *job)
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
static void say_gpu(struct rfl_run__job *job)
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
static double decode_rate(const struct rfl_run__job *job)
{
	const int threads = job->config.workers > 0 ? (int)job->config.workers : 1;

	return (double)job->data_stats.decoded / job->data_stats.decode_s * threads;
}

static json_t *burst_to_json(const struct rfl_burst *b)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "event", "timed", "wall_s",
			 rfl_json_real(b->wall_s), "ttfb_s", rfl_json_real(b->ttfb_s), "loss_first",
			 rfl_json_real(b->loss_first), "loss_last", rfl_json_real(b->loss_last),
			 "launch_gap", rfl_json_real(b->launch_gap), "synced", b->synced);
}

void rfl_run__tell_until(struct rfl_run__job *job)
{
	const struct rfl_burst *b = &job->burst;

	if (b->until_steps > 0)
		send(job, json_pack("{s:s, s:I, s:o, s:o, s:b}", "event", "until", "steps",
				    (json_int_t)b->until_steps, "step_s",
				    rfl_json_real(b->until_step_s), "stdrel",
				    rfl_json_real(b->until_stdrel), "missed", b->until_missed));
}

enum rfl_rc rfl_run__tell_measured(struct rfl_run__job *job, struct rfl_err *err)
{
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

/* ---- what was counted ---- */

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

enum rfl_rc rfl_run__tell_counters(struct rfl_run__job *job, const struct rfl_captures *captures,
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
				    rfl_run__shown(csv.data + at, n)));
	}
	job->counters_len = csv.len;
	rfl_buf_fini(&csv);
	return rc;
}

void rfl_run__tell_so_far(const struct rfl_captures *so_far, double within_s, void *ctx)
{
	struct rfl_run__job *job = ctx;

	if (rfl_run__tell_counters(job, so_far, NULL) == RFL_OK)
		send(job, json_pack("{s:s, s:I, s:f}", "event", "so_far", "bytes",
				    (json_int_t)job->counters_len, "within_s", within_s));
}

void rfl_run__tell_counted(struct rfl_run__job *job, const struct rfl_err *end)
{
	send(job, json_pack("{s:s, s:i, s:o, s:I}", "event", "counted", "rc", (int)end->rc, "text",
			    text_of(end->msg), "bytes", (json_int_t)job->counters_len));
}
