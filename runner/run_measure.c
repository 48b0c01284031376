/*
 * run_measure.c - the child's work: engine, network, weights, data, burst. It reports what it did
 * and leaves every file to the parent.
 */
#include "runner/run_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "complexity/op.h"
#include "profile/counters_csv.h"
#include "runner/counted.h"
#include "data/fill.h"
#include "runner/fill_engine.h"

#define STEPS_PER_EVENT 256
#define CSV_PER_EVENT   ((size_t)32 << 10)
#define MAX_PLUGIN_DIRS 64
#define CONFIG_MAX      ((size_t)1 << 20)

/* What a measurement owns. */
struct job {
	const struct rfl_run_config *config;
	rfl_run__emit_fn emit;
	void *ctx;
	struct rfl_net *net;
	struct rfl_engine_list *list;
	const struct rfl_engine_ops *ops;
	enum rfl_device device;
	struct rfl_engine *engine;
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

static json_t *failed_event(struct rfl_err *end)
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

static enum rfl_rc load_engine(struct job *job, struct rfl_err *err)
{
	static const enum rfl_device by_speed[] = { RFL_DEVICE_CUDA, RFL_DEVICE_MPS };
	const struct rfl_run_config *c = job->config;
	enum rfl_rc rc = rfl_engine_list_new(c->plugin_dirs, &job->list, err);

	if (rc)
		return rc;
	if (c->device != RFL_RUN_DEVICE_AUTO) {
		job->device = (enum rfl_device)c->device;
		return rfl_engine_load(job->list, c->engine, job->device, &job->ops, err);
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(by_speed); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		job->device = by_speed[i];
		if (rfl_engine_load(job->list, c->engine, job->device, &job->ops, &why) == RFL_OK)
			return RFL_OK;
		rfl_log(RFL_LOG_DEBUG, "not on %s: %s", rfl_device_names[job->device], why.msg);
	}
	job->device = RFL_DEVICE_CPU;
	return rfl_engine_load(job->list, c->engine, job->device, &job->ops, err);
}

static void say_engine(struct job *job)
{
	char id[128];

	snprintf(id, sizeof(id), "%s-%s-%s", job->ops->name, job->ops->version, job->ops->variant);
	send(job, json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "event", "engine", "name",
			    job->ops->name, "id", id, "version", job->ops->library_version(), "abi",
			    RFL_ENGINE_ABI, "device", (int)job->device));
}

/* Named before anything is opened: which operation the engine cannot do, and why. */
static enum rfl_rc check_operations(const struct job *job, struct rfl_err *err)
{
	for (int i = 0; i < job->net->nnodes; i++) {
		const struct rfl_node *node = &job->net->nodes[i];
		const char *why = job->ops->unsupported(node->op, job->config->precision);

		if (why)
			return rfl_fail(err, RFL_EUNSUPPORTED, 0, "%s: %s (%s) in %s: %s",
					job->ops->name, node->name,
					rfl_op_info_of(node->op)->module,
					rfl_precision_names[job->config->precision], why);
	}
	return RFL_OK;
}

static enum rfl_rc open_engine(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = job->config;
	const struct rfl_engine_config engine = {
		.device = job->device,
		.precision = c->precision,
		.layout = c->layout,
		.threads = c->threads,
		.max_batch = c->batch,
		.optimizer = c->optimizer,
		.seed = c->seed,
		.dropout = true,
		.deterministic = c->deterministic,
	};
	enum rfl_rc rc = check_operations(job, err);

	if (rc == RFL_OK)
		rc = job->ops->open(job->net, &engine, &job->engine, err);
	if (rc == RFL_OK)
		rc = rfl_fill_engine(job->ops, job->engine, job->net, c->threads, err);
	return rc;
}

/* ---- data ---- */

static enum rfl_rc open_data(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = job->config;
	const struct rfl_loader_config loader = {
		.batch = c->batch,
		.image_size = (int)job->net->nodes[0].shape.dim[1],
		.classes = job->net->classes,
		.layout = c->layout,
		.workers = c->data.workers,
		.ahead = c->data.ahead,
		.augment = c->data.augment,
		.seed = c->seed,
	};
	struct rfl_dataset *set = NULL;
	enum rfl_rc rc;

	if (!c->data.dir)
		return rfl_data_synthetic(job->net, c->batch, c->layout, c->threads, &job->data,
					  err);
	rc = rfl_dataset_open(c->data.dir, &set, err);
	if (rc)
		return rc;
	return rfl_data_folder(set, &loader, &job->data, err);
}

/* ---- burst ---- */

static void on_progress(int64_t done, int64_t total, void *ctx)
{
	struct job *job = ctx;

	say_progress(job, "warmup", done, total);
	if (done == total)
		say_progress(job, "window", 0, job->config->iters);
}

static json_t *step_to_json(const struct rfl_burst_step *s)
{
	return json_pack("[o, o, o, o, o, o]", rfl_json_real(s->data_wait_s),
			 rfl_json_real(s->forward_s), rfl_json_real(s->backward_s),
			 rfl_json_real(s->optimizer_s), rfl_json_real(s->total_s),
			 rfl_json_real(s->loss));
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

static double own_peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss * 1024.0;
}

static enum rfl_rc say_timed(struct job *job, struct rfl_err *err)
{
	struct rfl_engine_memory memory;
	enum rfl_rc rc = job->ops->memory(job->engine, &memory, err);

	if (rc)
		return rc;
	say_steps(job);
	send(job,
	     json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "event", "timed", "wall_s",
		       rfl_json_real(job->burst.wall_s), "ttfb_s", rfl_json_real(job->burst.ttfb_s),
		       "loss_first", rfl_json_real(job->burst.loss_first), "loss_last",
		       rfl_json_real(job->burst.loss_last), "allocated_peak_bytes",
		       rfl_json_real(memory.allocated_peak_bytes), "reserved_peak_bytes",
		       rfl_json_real(memory.reserved_peak_bytes), "host_peak_bytes",
		       rfl_json_real(own_peak_bytes()), "skipped",
		       (json_int_t)rfl_data_skipped(job->data)));
	return RFL_OK;
}

static enum rfl_rc burst(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = job->config;
	const struct rfl_burst_config config = {
		.mode = c->mode,
		.warmup = c->warmup,
		.iters = c->iters,
		.asynchronous = job->device != RFL_DEVICE_CPU,
		.nvtx = job->nvtx,
		.nvtx_detail = c->nvtx,
		.progress = on_progress,
		.ctx = job,
	};
	enum rfl_rc rc = rfl_burst_init(&job->burst, c->iters, err);

	if (rc == RFL_OK)
		rc = rfl_burst_run(job->ops, job->engine, job->data, &config, &job->burst, err);
	if (rc == RFL_OK)
		rc = say_timed(job, err);
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
	const struct rfl_run_config *c = job->config;
	const struct rfl_counted_config config = {
		.detail = c->counters,
		.mode = c->mode,
		.request = {
			.sets = rfl_counted_sets(job->device, c->counter_sets),
			.precision = rfl_precision_names[c->precision],
			.label = c->arch,
			.places = c->places,
		},
	};
	const struct rfl_counted_parts parts = {
		.ops = job->ops,
		.engine = job->engine,
		.net = job->net,
		.data = job->data,
	};
	const struct rfl_source_ops *source;
	struct rfl_captures captures;
	enum rfl_rc rc;

	if (c->counter_sets && job->device != RFL_DEVICE_CUDA)
		rfl_log(RFL_LOG_WARN,
			"--counter-sets: they are of a GPU; this run is on the %s, where "
			"all that can be is counted at once",
			rfl_device_names[job->device]);
	rfl_captures_init(&captures);
	rc = job->source_for(rfl_device_names[job->device], &source, err);
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

	if (job->config->counters == RFL_DETAIL_OFF)
		return;
	say_progress(job, "counting", 0, 1);
	end.rc = count_step(job, &end);
	send(job, json_pack("{s:s, s:i, s:o, s:I}", "event", "counted", "rc", (int)end.rc, "text",
			    text_of(end.msg), "bytes", (json_int_t)job->counters_len));
}

/* ---- all of it ---- */

static enum rfl_rc open_nvtx(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = job->config;

	if (c->nvtx == RFL_DETAIL_OFF)
		return RFL_OK;
	if (c->nvtx == RFL_DETAIL_LAYER && !job->ops->mark)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"engine '%s' cannot tell layers apart (it has no marks): use --nvtx "
			"phase",
			job->ops->name);
	return rfl_nvtx_open(c->nvtx_injection, &job->nvtx, err);
}

static enum rfl_rc set_up(struct job *job, struct rfl_err *err)
{
	double start = rfl_clock_s();
	enum rfl_rc rc;

	say_progress(job, "setup", 0, 1);
	rc = rfl_run__check(job->config, &job->net, err);
	if (rc == RFL_OK)
		rc = load_engine(job, err);
	if (rc)
		return rc;
	say_engine(job);
	rc = open_engine(job, err);
	if (rc == RFL_OK)
		rc = open_nvtx(job, err);
	if (rc == RFL_OK)
		rc = open_data(job, err);
	if (rc == RFL_OK)
		send(job,
		     json_pack("{s:s, s:f}", "event", "ready", "setup_s", rfl_clock_s() - start));
	return rc;
}

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     rfl_run__emit_fn emit, void *ctx, struct rfl_err *err)
{
	struct job job = {
		.config = config,
		.emit = emit,
		.ctx = ctx,
		.source_for = source_for ? source_for : rfl_source_for,
	};
	struct rfl_err failure = RFL_ERR_INIT;
	enum rfl_rc rc = set_up(&job, &failure);

	if (rc == RFL_OK)
		rc = burst(&job, &failure);
	if (rc == RFL_OK)
		count(&job);
	if (rc) {
		send(&job, failed_event(&failure));
		rfl_fail(err, rc, failure.native, "%s", failure.msg);
	}
	rfl_burst_fini(&job.burst);
	rfl_data_free(job.data);
	rfl_nvtx_close(job.nvtx);
	if (job.engine)
		job.ops->close(job.engine);
	rfl_net_free(job.net);
	rfl_engine_list_free(job.list);
	return rc;
}

/* ---- as a child ---- */

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

/* A line to the parent. When it cannot be written there is nobody left to tell. */
static void emit_line(json_t *take_event, void *ctx)
{
	int fd = *(const int *)ctx;
	char *line = json_dumps(take_event, JSON_COMPACT);
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

enum rfl_rc rfl_run_child(int config_fd, int report_fd, struct rfl_err *err)
{
	return rfl_run_child_with(config_fd, report_fd, rfl_source_for, err);
}

enum rfl_rc rfl_run_child_with(int config_fd, int report_fd, rfl_run_source_fn source_for,
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
