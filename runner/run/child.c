/*
 * child.c - a measurement as a process of its own: a configuration comes in; engine, network,
 * weights, data, burst and counted steps follow; events go out, one line of JSON each. Every file
 * is left to the parent.
 */
#include "runner/run/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "profile/capture/counters_csv.h"
#include "runner/burst/counted.h"
#include "runner/fill_engine.h"

#define MAX_PLUGIN_DIRS 64
#define CONFIG_MAX      ((size_t)1 << 20)
#define SAMPLES_PER_S   10
#define STEPS_PER_EVENT 256
#define CSV_PER_EVENT   ((size_t)32 << 10)

/* ---- events ---- */

void rfl_run__tell(struct rfl_run__job *job, json_t *take_event)
{
	if (take_event)
		job->emit(take_event, job->ctx);
}

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

static json_t *failed_event(const struct rfl_err *end)
{
	return json_pack("{s:s, s:i, s:o}", "event", "failed", "rc", (int)end->rc, "text",
			 rfl_run__shown(end->msg, strlen(end->msg)));
}

static void tell_progress(const char *phase, int64_t done, int64_t total, void *ctx)
{
	rfl_run__tell(ctx, json_pack("{s:s, s:s, s:I, s:I}", "event", "progress", "phase", phase,
				     "done", (json_int_t)done, "total", (json_int_t)total));
}

/* ---- counters ---- */

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

static enum rfl_rc tell_counters(struct rfl_run__job *job, const struct rfl_captures *captures,
				 struct rfl_err *err)
{
	struct rfl_buf csv;
	enum rfl_rc rc;

	rfl_buf_init(&csv, 0);
	rfl_counters_write(&csv, captures, true);
	rc = rfl_buf_check(&csv, "counters", err);
	for (size_t at = 0, n; rc == RFL_OK && at < csv.len; at += n) {
		n = piece_of(csv.data + at, csv.len - at);
		rfl_run__tell(job, json_pack("{s:s, s:o}", "event", "counters", "csv",
					     rfl_run__shown(csv.data + at, n)));
	}
	job->counters_len = csv.len;
	rfl_buf_fini(&csv);
	return rc;
}

static void tell_so_far(const struct rfl_captures *so_far, double within_s, void *ctx)
{
	struct rfl_run__job *job = ctx;

	if (tell_counters(job, so_far, NULL) == RFL_OK)
		rfl_run__tell(job, json_pack("{s:s, s:I, s:f}", "event", "so_far", "bytes",
					     (json_int_t)job->counters_len, "within_s", within_s));
}

static struct rfl_source_request counters_request(struct rfl_run__job *job)
{
	const struct rfl_run_config *c = &job->config;

	return (struct rfl_source_request){
		.sets = rfl_counted_sets(job->choice.device, (unsigned)c->counter_sets),
		.precision = rfl_precision_names[c->precision],
		.label = c->arch,
		.step_s =
			job->r.burst.nsteps ? job->r.burst.wall_s / (double)job->r.burst.nsteps : 0,
		.places = c->places,
		.early = job->early,
		.so_far = tell_so_far,
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

/* ---- engine and data ---- */

static enum rfl_rc open_engine(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	struct rfl_run__results *r = &job->r;
	const struct rfl_engine_ops *ops;
	enum rfl_rc rc = rfl_engine_list_new(c->plugin_dirs, &job->list, err);

	if (rc == RFL_OK)
		rc = rfl_run__choose(c, job->list, &job->choice, err);
	if (rc)
		return rc;
	ops = job->choice.ops;
	snprintf(r->engine, sizeof(r->engine), "%s", ops->name);
	snprintf(r->engine_id, sizeof(r->engine_id), "%s-%s-%s", ops->name, ops->version,
		 ops->variant);
	snprintf(r->engine_version, sizeof(r->engine_version), "%s", ops->library_version());
	snprintf(r->backend_reason, sizeof(r->backend_reason), "%s", job->choice.reason);
	r->plugin_abi = RFL_ENGINE_ABI;
	r->device = (int)job->choice.device;
	rfl_run__tell(job, rfl_run__pack(RFL_RUN__ENGINE, r));
	rc = rfl_run__suit(&job->config, &job->choice, err);
	if (rc == RFL_OK)
		open_counters(job);
	if (rc == RFL_OK)
		rc = rfl_run__open_engine(c, &job->choice, job->net, &job->engine, err);
	if (rc == RFL_OK && ops->device_info)
		rc = ops->device_info(job->engine, &r->on, err);
	if (rc)
		return rc;
	rfl_run__tell(job, rfl_run__pack(RFL_RUN__DEVICE, r));
	rc = rfl_run__join(job, err);
	if (rc == RFL_OK) /* the same weights in every process: none has to be sent */
		rc = rfl_fill_engine(ops, job->engine, job->net, (int)c->threads, err);
	return rc;
}

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

/* Beside the window, not in it: the threads that watch begin and end here. */
static void on_window(bool begins, void *ctx)
{
	struct rfl_run__job *job = ctx;
	struct rfl_run__results *r = &job->r;
	struct rfl_data_stats stats;

	if (begins) {
		rfl_data_reset_stats(job->data);
		if (job->sampler && rfl_sampler_start(job->sampler, &job->no_samples) != RFL_OK) {
			rfl_sampler_free(job->sampler);
			job->sampler = NULL;
		}
		return;
	}
	if (job->sampler)
		rfl_sampler_stop(job->sampler, &r->gpu);
	stats = rfl_data_stats(job->data);
	r->queue_mean = stats.queue_mean;
	r->queue_min = stats.queue_min;
	r->decode_rate = (double)stats.decoded / stats.decode_s *
			 (double)(job->config.workers > 0 ? job->config.workers : 1);
}

static enum rfl_rc on_meet(void *ctx, struct rfl_err *err)
{
	return rfl_run__meet(ctx, err);
}

/* Steps, times and memory: from here on the run is measured, whatever follows. */
static enum rfl_rc on_measured(void *ctx, struct rfl_err *err)
{
	struct rfl_run__job *job = ctx;
	const struct rfl_engine_ops *ops = job->choice.ops;
	struct rfl_run__results *r = &job->r;
	const struct rfl_burst *b = &r->burst;
	struct rusage usage;
	enum rfl_rc rc = ops->memory(job->engine, &r->memory, err);

	if (rc == RFL_OK && ops->scaling)
		rc = ops->scaling(job->engine, &r->scaling, err);
	if (rc)
		return rc;
	getrusage(RUSAGE_SELF, &usage);
	r->host_peak_bytes = (double)usage.ru_maxrss * 1024.0;
	r->skipped = rfl_data_stats(job->data).skipped;
	for (int64_t first = 0; first < b->nsteps; first += STEPS_PER_EVENT) {
		const int64_t left = b->nsteps - first;

		rfl_run__tell(job,
			      rfl_run__pack_steps("steps", b->steps + first, first,
						  left < STEPS_PER_EVENT ? left : STEPS_PER_EVENT));
	}
	rfl_run__tell(job, rfl_run__pack(RFL_RUN__TIMED, r));
	if (job->choice.device == RFL_DEVICE_CUDA) {
		r->watched = job->sampler != NULL;
		if (!r->watched)
			snprintf(r->unwatched, sizeof(r->unwatched), "%.511s", job->no_samples.msg);
		rfl_run__tell(job, rfl_run__pack(RFL_RUN__GPU, r));
	}
	return rfl_run__report_world(job, err);
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
		.progress = tell_progress,
		.meet = on_meet,
		.window = on_window,
		.measured = on_measured,
		.ctx = job,
	};
	enum rfl_rc rc = RFL_OK;

	if (ops->reset_memory) /* of training, not of setting up */
		rc = ops->reset_memory(job->engine, err);
	if (rc == RFL_OK)
		rc = rfl_burst_run(ops, job->engine, job->data, &config, &job->r.burst, err);
	if (rc == RFL_OK && job->r.burst.until_steps > 0)
		rfl_run__tell(job, rfl_run__pack(RFL_RUN__UNTIL, &job->r));
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
		rc = tell_counters(job, &captures, err);
	rfl_captures_fini(&captures);
	return rc;
}

/* The run is measured by now: whatever happens here is news of the counters, not of the run. */
static void count(struct rfl_run__job *job)
{
	struct rfl_err end = RFL_ERR_INIT;

	if (job->config.counters == RFL_DETAIL_OFF)
		return;
	tell_progress("counting", 0, 1, job);
	end.rc = count_step(job, &end);
	rfl_run__tell(job, json_pack("{s:s, s:i, s:o, s:I}", "event", "counted", "rc", (int)end.rc,
				     "text", rfl_run__shown(end.msg, strlen(end.msg)), "bytes",
				     (json_int_t)job->counters_len));
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

static enum rfl_rc set_up(struct rfl_run__job *job, struct rfl_err *err)
{
	const double start = rfl_clock_s();
	const struct rfl_run_config *c = &job->config;
	const struct rfl_engine_ops *ops;
	struct rfl_run__results *r = &job->r;
	enum rfl_rc rc;

	tell_progress("setup", 0, 1, job);
	rc = rfl_run__check(c, &job->net, err);
	if (rc == RFL_OK)
		rc = rfl_run__results_init(r, c->iters, err);
	if (rc == RFL_OK)
		rc = open_engine(job, err);
	if (rc == RFL_OK)
		rc = open_nvtx(job, err);
	if (rc == RFL_OK)
		rc = open_data(job, err);
	if (rc)
		return rc;
	/* a GPU that cannot be watched trains all the same */
	if (job->choice.device == RFL_DEVICE_CUDA &&
	    rfl_sampler_new(r->on.pci_bus_id[0] ? r->on.pci_bus_id : NULL, SAMPLES_PER_S,
			    &job->sampler, &job->no_samples) != RFL_OK)
		job->sampler = NULL;
	ops = job->choice.ops;
	snprintf(r->optimizer_kernels, sizeof(r->optimizer_kernels), "%s",
		 ops->optimizer_kernels ? ops->optimizer_kernels(job->engine) : "");
	r->setup_s = rfl_clock_s() - start;
	r->pin_memory = c->pin_memory;
	r->cudnn_benchmark = c->cudnn_benchmark;
	r->cuda_graph = c->cuda_graph;
	rfl_run__tell(job, rfl_run__pack(RFL_RUN__READY, r));
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
	};
	struct rfl_err failure = RFL_ERR_INIT;
	enum rfl_rc rc = set_up(&job, &failure);

	if (rc == RFL_OK)
		rc = burst(&job, &failure);
	if (rc == RFL_OK)
		count(&job);
	if (rc) {
		rfl_run__tell(&job, failed_event(&failure));
		rfl_fail(err, rc, failure.native, "%s", failure.msg);
	}
	if (job.early)
		job.source->close(job.early);
	rfl_sampler_free(job.sampler);
	rfl_burst_fini(&job.r.burst);
	rfl_data_free(job.data);
	rfl_nvtx_close(job.nvtx);
	if (job.engine)
		job.choice.ops->close(job.engine);
	rfl_net_free(job.net);
	rfl_engine_list_free(job.list);
	return rc;
}

/* ---- the process ---- */

static enum rfl_rc read_config(int fd, struct rfl_buf *text, struct rfl_err *err)
{
	char block[4096];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rfl_fail(err, RFL_EIO, errno, "configuration: %s", strerror(errno));
		rfl_buf_append(text, block, (size_t)n);
	}
	return rfl_buf_check(text, "configuration", err);
}

/* A parent whose terminal is stopped does not read; its progress must not hold up a step. */
static bool would_wait(const json_t *event, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return rfl_text_same(json_string_value(json_object_get(event, "event")), "progress") &&
	       poll(&p, 1, 0) == 0;
}

static void emit_line(json_t *take_event, void *ctx)
{
	int fd = *(const int *)ctx;
	char *line = would_wait(take_event, fd) ? NULL : json_dumps(take_event, JSON_COMPACT);
	size_t len = line ? strlen(line) : 0, sent = 0;

	json_decref(take_event);
	if (!line)
		return;
	line[len] = '\n'; /* in place of the NUL; written with its length */
	while (sent < len + 1) {
		ssize_t n = write(fd, line + sent, len + 1 - sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	free(line);
}

enum rfl_rc rfl_run_child(int config_fd, int report_fd, rfl_run_source_fn source_for,
			  struct rfl_err *err)
{
	const char *dirs[MAX_PLUGIN_DIRS + 1];
	struct rfl_err failure = RFL_ERR_INIT;
	struct rfl_run_config config;
	struct rfl_buf text;
	json_t *json = NULL, *event;
	enum rfl_rc rc;

	rfl_buf_init(&text, CONFIG_MAX);
	rc = read_config(config_fd, &text, &failure);
	if (rc == RFL_OK)
		rc = rfl_json_loads(rfl_buf_str(&text), text.len, "configuration", &json, &failure);
	if (rc == RFL_OK)
		rc = rfl_run__config_from_json(json, dirs, RFL_ARRAY_LEN(dirs), &config, &failure);
	if (rc == RFL_OK) {
		rc = rfl_run__measure(&config, source_for, emit_line, &report_fd, err);
	} else {
		event = failed_event(&failure);
		if (event)
			emit_line(event, &report_fd);
		rfl_fail(err, rc, failure.native, "%s", failure.msg);
	}
	json_decref(json);
	rfl_buf_fini(&text);
	return rc;
}
