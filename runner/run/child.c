/*
 * child.c - the measuring process: reads a configuration, sets up the engine, network, weights and
 * data, runs the burst and the counted steps, and reports events as lines of JSON. The parent
 * writes all files.
 */
#include "runner/run/parts.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/os.h"
#include "base/text.h"
#include "complexity/op.h"
#include "machine/load.h"
#include "profile/capture.h"
#include "runner/burst/counted.h"
#include "runner/run/training.h"

#define MAX_PLUGIN_DIRS 64
#define CONFIG_MAX      ((size_t)1 << 20)
#define SAMPLES_PER_S   10
#define STEPS_PER_EVENT 256
#define CSV_PER_EVENT   ((size_t)32 << 10)

struct job {
	struct rfl_run_config config; /* options that the device cannot use are off */
	rfl_run__emit_fn emit;
	void *ctx;
	rfl_run_source_fn source_for;
	struct rfl_net *net;
	struct rfl_engine_list *list;
	enum rfl_device device;
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	struct rfl_data *data;
	struct rfl_load load;                /* before the window */
	struct rfl_sampler *sampler;         /* for a GPU; NULL: not available */
	struct rfl_err no_samples;           /* why there is no sampler */
	const struct rfl_source_ops *source; /* source of counters; NULL: none */
	struct rfl_source_early *early;      /* opened before the engine */
	size_t counters_len;                 /* size of the last table sent */
	bool (*stopped)(void);
	struct rfl_optimizer optimizer;
	struct rfl_run__training training; /* if config.epochs is set */
	struct rfl_run__results r;
};

/* @param take_event  NULL (out of memory): do nothing */
static void report(struct job *job, json_t *take_event)
{
	if (take_event)
		job->emit(take_event, job->ctx);
}

static json_t *failed_event(const struct rfl_err *end)
{
	return json_pack("{s:s, s:i, s:o}", "event", "failed", "rc", (int)end->rc, "text",
			 rfl_run__shown(end->msg, strlen(end->msg)));
}

static void report_progress(const char *phase, int64_t done, int64_t total, void *ctx)
{
	const struct rfl_run_progress p = { .phase = phase, .done = done, .total = total };

	report(ctx, rfl_run__pack_members("progress", rfl_run__progress, &p));
}

static void report_csv(struct job *job, const char *event, const struct rfl_buf *csv)
{
	for (size_t at = 0, n; at < csv->len; at += n) {
		const char *text = csv->data + at;

		/* cut between UTF-8 characters; rows may be split */
		n = csv->len - at;
		if (n > CSV_PER_EVENT)
			for (n = CSV_PER_EVENT;
			     n > CSV_PER_EVENT - 4 && ((unsigned char)text[n] & 0xc0) == 0x80;)
				n--;
		report(job,
		       json_pack("{s:s, s:o}", "event", event, "csv", rfl_run__shown(text, n)));
	}
}

static enum rfl_rc report_counters(struct job *job, const struct rfl_captures *captures,
				   struct rfl_err *err)
{
	RFL_AUTO(buf) csv = { .len = 0 };
	enum rfl_rc rc;

	rfl_counters_write(&csv, captures, true);
	rc = rfl_buf_check(&csv, "counters", err);
	if (rc == RFL_OK)
		report_csv(job, "counters", &csv);
	job->counters_len = csv.len;
	return rc;
}

static void report_so_far(const struct rfl_captures *so_far, double within_s, void *ctx)
{
	struct job *job = ctx;

	if (report_counters(job, so_far, NULL) == RFL_OK)
		report(job, json_pack("{s:s, s:I, s:f}", "event", "so_far", "bytes",
				      (json_int_t)job->counters_len, "within_s", within_s));
}

static struct rfl_source_request counters_request(struct job *job)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_burst *b = &job->r.burst;

	return (struct rfl_source_request){
		.sets = rfl_counted_sets(job->device, (unsigned)c->counter_sets),
		.precision = rfl_precision_names[c->precision],
		.label = c->arch,
		.step_s = b->nsteps ? b->wall_s / (double)b->nsteps : 0,
		.places = c->places,
		.early = job->early,
		.so_far = report_so_far,
		.ctx = job,
	};
}

/* ---- engine ---- */

/* Open the source of counters before the engine's probe loads the first kernel onto a GPU. The
 * engine's libraries are loaded first: if they bring a CUPTI, the source must use it. */
static void open_source(struct job *job)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_source_request request = counters_request(job);

	if (c->counters == RFL_DETAIL_OFF ||
	    (c->device != RFL_RUN_DEVICE_AUTO && c->device != RFL_DEVICE_CUDA) ||
	    job->source_for(rfl_device_names[RFL_DEVICE_CUDA], &job->source, NULL) != RFL_OK ||
	    !job->source->open)
		return;
	(void)!rfl_engine_load(job->list, c->engine, RFL_DEVICE_CPU, &job->ops, NULL);
	job->early = job->source->open(&request);
}

/* A failure to open is reported when counting begins. */
static void close_source(struct job *job)
{
	if (job->early)
		job->source->close(job->early);
	job->early = NULL;
}

/* Choose the device and engine, and record why. GPUs come first, in order of their usual speed. */
static enum rfl_rc choose(struct job *job, struct rfl_err *err)
{
	static const enum rfl_device by_speed[] = { RFL_DEVICE_CUDA, RFL_DEVICE_MPS };
	const struct rfl_run_config *c = &job->config;
	const bool automatic = c->device == RFL_RUN_DEVICE_AUTO;
	char *reason = job->r.backend_reason;
	const char *want = automatic ? rfl_engine_on_any(job->list, c->engine) : c->engine;

	for (size_t i = 0; automatic && i < RFL_ARRAY_LEN(by_speed); i++) {
		const char *name = rfl_device_names[by_speed[i]];
		const size_t at = strlen(reason), left = sizeof(job->r.backend_reason) - at;
		struct rfl_err why = RFL_ERR_INIT;

		job->device = by_speed[i];
		if (rfl_engine_load(job->list, want, job->device, &job->ops, &why) == RFL_OK) {
			snprintf(reason + at, left, "%s%s is available", at ? "; " : "", name);
			return RFL_OK;
		}
		snprintf(reason + at, left, "%snot %s: %s", at ? "; " : "", name, why.msg);
	}
	job->device = automatic ? RFL_DEVICE_CPU : (enum rfl_device)c->device;
	return rfl_engine_load(job->list, want, job->device, &job->ops, err);
}

/* Turn off options without effect on the device. RFL_EUNSUPPORTED: --cuda-graph without CUDA. */
static enum rfl_rc suit(struct job *job, struct rfl_err *err)
{
	struct rfl_run_config *c = &job->config;
	const bool cuda = job->device == RFL_DEVICE_CUDA;

	c->pin_memory = c->pin_memory && cuda && job->ops->host_alloc && job->ops->host_free;
	c->cudnn_benchmark = c->cudnn_benchmark && cuda;
	c->sync_each_step = c->sync_each_step && job->device != RFL_DEVICE_CPU;
	if (c->cuda_graph && !cuda)
		return rfl_fail(
			err, RFL_EUNSUPPORTED, 0,
			"--cuda-graph: the run is on %s, which cannot replay steps; leave it "
			"out, or use --backend cuda",
			rfl_device_names[job->device]);
	return RFL_OK;
}

/* Wait for all processes, and get the largest of their numbers. */
static enum rfl_rc meet(struct job *job, double own, double *most, struct rfl_err *err)
{
	const int size = job->config.world.size;
	RFL_AUTOFREE double *all = rfl_alloc_array((size_t)size, sizeof(*all));
	enum rfl_rc rc = job->ops->gather(job->engine, &own, 1, all, err);

	*most = own;
	for (int r = 0; r < size && rc == RFL_OK; r++)
		*most = fmax(*most, all[r]);
	return rc;
}

/* Join the other processes, and agree with them on the run number. */
static enum rfl_rc join(struct job *job, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	double number;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	if (!job->ops->join || !job->ops->gather)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' does not support several processes; leave out --world",
				job->ops->name);
	if ((rc = job->ops->join(job->engine, w, err)) ||
	    (rc = meet(job, (double)w->run_number, &number, err)))
		return rc;
	report(job, json_pack("{s:s, s:I}", "event", "met", "run_number", (json_int_t)number));
	return RFL_OK;
}

static enum rfl_rc open_engine(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	struct rfl_run__results *r = &job->r;
	const struct rfl_engine_ops *ops;
	enum rfl_rc rc;

	if ((rc = rfl_engine_list_new(c->plugin_dirs, &job->list, err)))
		return rc;
	open_source(job);
	if ((rc = choose(job, err)))
		return rc;
	if (job->device != RFL_DEVICE_CUDA)
		close_source(job);
	ops = job->ops;
	snprintf(r->engine, sizeof(r->engine), "%s", ops->name);
	snprintf(r->engine_id, sizeof(r->engine_id), "%s-%s-%s", ops->name, ops->version,
		 ops->variant);
	snprintf(r->engine_version, sizeof(r->engine_version), "%s", ops->library_version());
	r->plugin_abi = RFL_ENGINE_ABI;
	r->device = (int)job->device;
	report(job, rfl_run__pack(RFL_RUN__ENGINE, r));
	rc = suit(job, err);
	if (rc)
		return rc;

	/* report an unsupported operation before opening the device */
	for (int i = 0; i < job->net->nnodes; i++) {
		const struct rfl_node *node = &job->net->nodes[i];
		const char *why = ops->unsupported(node->op, (enum rfl_precision)c->precision);

		if (why)
			return rfl_fail(err, RFL_EUNSUPPORTED, 0, "%s: %s (%s) in %s: %s",
					ops->name, node->name, rfl_op_info_of(node->op)->module,
					rfl_precision_names[c->precision], why);
	}
	job->optimizer = (struct rfl_optimizer){
		.rule = (enum rfl_optimizer_rule)c->optimizer,
		.kernels = (enum rfl_optimizer_kernels)c->optimizer_kernels,
		.lr = c->lr,
		.weight_decay = c->weight_decay,
		.momentum = c->optimizer == RFL_RULE_SGD ? c->momentum : 0,
		.beta1 = c->beta1,
		.beta2 = c->beta2,
		.eps = c->eps,
		.grad_clip = c->grad_clip,
	};
	const struct rfl_engine_config config = {
		.device = job->device,
		.precision = (enum rfl_precision)c->precision,
		.layout = rfl_run__layout(c),
		.threads = (int)c->threads,
		.max_batch = c->micro_batch,
		.optimizer = job->optimizer,
		.score = c->epochs > 0,
		.seed = (uint64_t)c->seed,
		.dropout = true,
		.deterministic = c->deterministic,
		.cudnn_benchmark = c->cudnn_benchmark,
		.cache_tokens = rfl_run__cache_tokens(c),
		.int8_weights = c->weights == RFL_WEIGHTS_INT8,
	};

	rc = ops->open(job->net, &config, &job->engine, err);
	if (rc == RFL_OK && ops->device_info)
		rc = ops->device_info(job->engine, &r->on, err);
	if (rc)
		return rc;
	report(job, rfl_run__pack(RFL_RUN__DEVICE, r));
	rc = join(job, err);
	/* every process computes the same weights, so none need to be sent */
	return rc ? rc : rfl_fill_engine(ops, job->engine, job->net, (int)c->threads, err);
}

/* ---- burst ---- */

/* Start and stop the monitoring of the window, outside the timed part. */
static void on_window(bool begins, void *ctx)
{
	struct job *job = ctx;
	struct rfl_run__results *r = &job->r;
	struct rfl_data_stats stats;
	struct rfl_load now;

	if (begins) {
		rfl_data_reset_stats(job->data);
		if (job->sampler && rfl_sampler_start(job->sampler, &job->no_samples) != RFL_OK) {
			rfl_sampler_free(job->sampler);
			job->sampler = NULL;
		}
		(void)rfl_load_read("", NULL, 0, &job->load);
		return;
	}
	(void)rfl_load_read("", NULL, 0, &now);
	if (job->config.world.size < 2) /* else the run's other processes would count */
		r->others = rfl_load_others(&job->load, &now);
	if (job->sampler)
		rfl_sampler_stop(job->sampler, &r->gpu);
	stats = rfl_data_stats(job->data);
	r->queue_mean = stats.queue_mean;
	r->queue_min = stats.queue_min;
	if (job->config.epochs > 0) /* also of the evaluations */
		r->gpu.energy_j = (double)NAN;
	r->decode_rate = (double)stats.decoded / stats.decode_s *
			 (double)(job->config.workers > 0 ? job->config.workers : 1);
}

static int64_t on_lap(int64_t done, void *ctx)
{
	return rfl_run__training_lap(&((struct job *)ctx)->training, done);
}

static enum rfl_rc on_lapped(int64_t done, double wall_s, void *ctx, struct rfl_err *err)
{
	return rfl_run__training_lapped(&((struct job *)ctx)->training, done, wall_s, err);
}

static enum rfl_rc on_meet(void *ctx, struct rfl_err *err)
{
	double unused;

	return meet(ctx, 0, &unused, err);
}

/* Combine the measurements of all processes: the times of the slowest, the mean loss of all. Rank 0
 * reports them, in pieces. */
static enum rfl_rc report_world(struct job *job, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const struct rfl_burst *b = &job->r.burst;
	struct rfl_run__results united = job->r;
	RFL_AUTOFREE struct rfl_burst_step *all = NULL;
	int slowest = 0;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	all = rfl_alloc_array((size_t)STEPS_PER_EVENT * (size_t)w->size, sizeof(*all));
	rc = rfl_run__unite(job->ops, job->engine, w->size, &united, &slowest, err);
	for (int64_t first = 0; rc == RFL_OK && first < b->nsteps; first += STEPS_PER_EVENT) {
		const int64_t left = b->nsteps - first;
		const int64_t n = left < STEPS_PER_EVENT ? left : STEPS_PER_EVENT;
		struct rfl_burst_step *times = all + slowest * n;

		rc = job->ops->gather(job->engine, (const double *)(b->steps + first),
				      (size_t)n * RFL_RUN__STEP_NUMBERS, (double *)all, err);
		for (int64_t i = 0; rc == RFL_OK && i < n; i++) {
			double loss = 0;

			for (int r = 0; r < w->size; r++)
				loss += all[r * n + i].loss;
			times[i].loss = loss / w->size;
		}
		if (rc == RFL_OK && w->rank == 0)
			report(job, rfl_run__pack_steps("world_steps", times, first, n));
	}
	if (rc == RFL_OK && w->rank == 0)
		report(job, rfl_run__pack(RFL_RUN__WORLD, &united));
	return rc;
}

static void report_steps(struct job *job, int64_t n)
{
	for (int64_t first = 0; first < n; first += STEPS_PER_EVENT) {
		const int64_t left = n - first;

		report(job, rfl_run__pack_steps("steps", job->r.burst.steps + first, first,
						left < STEPS_PER_EVENT ? left : STEPS_PER_EVENT));
	}
}

/* Report steps, times and memory. The run now counts as measured, even if something fails later. */
static enum rfl_rc on_measured(void *ctx, struct rfl_err *err)
{
	struct job *job = ctx;
	const struct rfl_engine_ops *ops = job->ops;
	struct rfl_run__results *r = &job->r;
	struct rusage usage;
	enum rfl_rc rc = ops->memory(job->engine, &r->memory, err);

	if (rc == RFL_OK && ops->scaling)
		rc = ops->scaling(job->engine, &r->scaling, err);
	if (rc)
		return rc;
	if (job->device == RFL_DEVICE_CPU)
		rfl_run_libraries(r->libraries, sizeof(r->libraries));
	getrusage(RUSAGE_SELF, &usage);
	r->host_peak_bytes = (double)usage.ru_maxrss * rfl_os_rss_unit;
	r->skipped = rfl_data_stats(job->data).skipped;
	if (job->training.test)
		r->skipped += rfl_data_stats(job->training.test).skipped;
	report_steps(job, r->burst.nsteps);
	report(job, rfl_run__pack(RFL_RUN__TIMED, r));
	if (job->device == RFL_DEVICE_CUDA) {
		r->watched = job->sampler != NULL;
		if (!r->watched)
			snprintf(r->unwatched, sizeof(r->unwatched), "%.511s", job->no_samples.msg);
		report(job, rfl_run__pack(RFL_RUN__GPU, r));
	}
	return report_world(job, err);
}

static struct rfl_counted_parts parts_of(const struct job *job)
{
	return (struct rfl_counted_parts){
		.ops = job->ops,
		.engine = job->engine,
		.net = job->net,
		.data = job->data,
	};
}

/* The run is already measured: failures here affect only the memory of a step. */
static void profile_memory(struct job *job)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_counted_config config = {
		.mode = (enum rfl_run_mode)c->mode,
		.accum = c->accum,
	};
	const struct rfl_counted_parts parts = parts_of(job);
	struct rfl_run__results *r = &job->r;
	struct rfl_memory_options options;
	struct rfl_err end = RFL_ERR_INIT;
	RFL_AUTO(buf) csv = { .len = 0 };
	enum rfl_rc rc;

	if (!c->profile_memory)
		return;
	report_progress("memory", 0, 1, job);
	rc = rfl_run__memory_options(c, r, &options, &end);
	if (rc == RFL_OK)
		rc = rfl_allocated_run(&config, &parts, &options, &r->allocated, &csv, &end);
	if (rc == RFL_OK)
		report_csv(job, "timeline", &csv);
	snprintf(r->memory_status, sizeof(r->memory_status), "%s%.480s",
		 rc == RFL_OK             ? "ok"
		 : rc == RFL_EUNSUPPORTED ? "unavailable: "
					  : "failed: ",
		 end.msg);
	report(job, rfl_run__pack(RFL_RUN__MEMORY, r));
}

/* The run is already measured: failures here affect only these times. */
static void time_kinds(struct job *job)
{
	const struct rfl_counted_parts parts = parts_of(job);
	struct rfl_err why = RFL_ERR_INIT;

	if (!rfl_run__cache_tokens(&job->config))
		return;
	if (rfl_kinds_measure(&parts, job->config.past, &job->r.kinds, &why) == RFL_OK)
		report(job, rfl_run__pack(RFL_RUN__KINDS, &job->r));
	else
		rfl_log(RFL_LOG_DEBUG, "the times of the kinds of operations are unknown: %s",
			why.msg);
}

/* The run is already measured: failures here affect only the counters. */
static void count(struct job *job)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_counted_config config = {
		.detail = (enum rfl_detail)c->counters,
		.mode = (enum rfl_run_mode)c->mode,
		.accum = c->accum,
		.past = c->past,
		.request = counters_request(job),
	};
	const struct rfl_counted_parts parts = parts_of(job);
	struct rfl_err end = RFL_ERR_INIT;
	struct rfl_captures captures;
	enum rfl_rc rc;

	if (c->counters == RFL_DETAIL_OFF)
		return;
	report_progress("counting", 0, 1, job);
	rfl_captures_init(&captures);
	if ((rc = job->source_for(rfl_device_names[job->device], &job->source, &end)) == RFL_OK &&
	    (rc = rfl_counted_run(job->source, &config, &parts, &captures, &end)) == RFL_OK)
		rc = report_counters(job, &captures, &end);
	rfl_captures_fini(&captures);
	report(job, json_pack("{s:s, s:i, s:o, s:I}", "event", "counted", "rc", (int)rc, "text",
			      rfl_run__shown(end.msg, strlen(end.msg)), "bytes",
			      (json_int_t)job->counters_len));
}

/* ---- the whole measurement ---- */

static enum rfl_rc alloc_pinned(void *ctx, size_t bytes, void **ret, struct rfl_err *err)
{
	const struct job *job = ctx;

	return job->ops->host_alloc(job->engine, bytes, ret, err);
}

static void free_pinned(void *ctx, void *memory)
{
	const struct job *job = ctx;

	job->ops->host_free(job->engine, memory);
}

static enum rfl_rc open_data(struct job *job, const struct rfl_data_spec *spec,
			     struct rfl_data **ret, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	const struct rfl_data_memory pinned = {
		.alloc = alloc_pinned,
		.free = free_pinned,
		.ctx = job,
	};

	return rfl_data_open(spec, job->net, c->micro_batch, rfl_run__layout(c), (int)c->threads,
			     c->pin_memory ? &pinned : NULL, ret, err);
}

/* Note by what the data are known: of a training run, the digest is of both sets. */
static void note_data(struct job *job)
{
	const uint64_t digests[] = { rfl_data_digest(job->data),
				     job->training.test ? rfl_data_digest(job->training.test) : 0 };
	struct rfl_run__results *r = &job->r;

	if (!digests[0])
		return;
	r->data_samples = rfl_data_samples(job->data);
	rfl_hash64_text(rfl_hash64(0, digests, sizeof(digests)), r->data_digest);
}

/* Open the two sets of a training run, and continue it if requested. */
static enum rfl_rc set_up_training(struct job *job, struct rfl_err *err)
{
	const struct rfl_run_config *c = &job->config;
	struct rfl_run__training *t = &job->training;
	struct rfl_data_spec spec = rfl_run__data_spec(c);
	enum rfl_rc rc;

	*t = (struct rfl_run__training){
		.config = c,
		.ops = job->ops,
		.engine = job->engine,
		.net = job->net,
		.optimizer = job->optimizer,
		.engine_id = job->r.engine_id,
		.device = rfl_device_names[job->device],
		.burst = &job->r.burst,
		.emit = job->emit,
		.ctx = job->ctx,
		.stopped = job->stopped,
		.samples = rfl_data_samples(job->data),
		.per_epoch = rfl_data_epoch_batches(job->data),
	};
	if (t->samples < c->micro_batch)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: fewer training samples (%lld) than a batch; use a smaller "
				"--batch-size",
				c->data_dir, (long long)t->samples);
	spec.test = true;
	rc = open_data(job, &spec, &t->test, err);
	if (rc == RFL_OK) {
		t->test_samples = rfl_data_samples(t->test);
		note_data(job);
		t->data_digest = job->r.data_digest;
		rc = rfl_run__training_begin(t, err);
	}
	if (rc || t->done == 0)
		return rc;
	/* open the training set again, at the position of the checkpoint */
	rfl_data_free(job->data);
	job->data = NULL;
	spec.test = false;
	spec.named = true;
	spec.first_batch = t->done;
	return open_data(job, &spec, &job->data, err);
}

static enum rfl_rc set_up(struct job *job, struct rfl_err *err)
{
	const double start = rfl_clock_s();
	const struct rfl_run_config *c = &job->config;
	struct rfl_run__results *r = &job->r;
	struct rfl_data_spec data;
	enum rfl_rc rc;

	report_progress("setup", 0, 1, job);
	if ((rc = rfl_run__check(c, &job->net, err)) ||
	    (rc = rfl_run__results_init(r, c->iters, err)) || (rc = open_engine(job, err)))
		return rc;
	if (c->nvtx == RFL_DETAIL_LAYER && !job->ops->mark)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot tell layers apart; use --nvtx phase",
				job->ops->name);
	if (c->nvtx != RFL_DETAIL_OFF && (rc = rfl_nvtx_open(c->nvtx_injection, err)))
		return rc;
	data = rfl_run__data_spec(c);
	rc = open_data(job, &data, &job->data, err);
	if (rc)
		return rc;
	note_data(job);
	if (c->epochs > 0 && (rc = set_up_training(job, err)))
		return rc;

	/* the run continues without a sampler */
	if (job->device == RFL_DEVICE_CUDA &&
	    rfl_sampler_new(r->on.pci_bus_id[0] ? r->on.pci_bus_id : NULL, SAMPLES_PER_S,
			    &job->sampler, &job->no_samples) != RFL_OK)
		job->sampler = NULL;
	snprintf(r->optimizer_kernels, sizeof(r->optimizer_kernels), "%s",
		 job->ops->optimizer_kernels ? job->ops->optimizer_kernels(job->engine) : "");
	r->setup_s = rfl_clock_s() - start;
	r->pin_memory = c->pin_memory;
	r->cudnn_benchmark = c->cudnn_benchmark;
	r->cuda_graph = c->cuda_graph;
	report(job, rfl_run__pack(RFL_RUN__READY, r));
	return RFL_OK;
}

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     bool (*stopped)(void), rfl_run__emit_fn emit, void *ctx,
			     struct rfl_err *err)
{
	struct job job = {
		.config = *config,
		.emit = emit,
		.ctx = ctx,
		.stopped = stopped,
		.source_for = source_for ? source_for : rfl_source_for,
		.no_samples = RFL_ERR_INIT,
	};
	const struct rfl_run_config *c = &job.config;
	struct rfl_err failure = RFL_ERR_INIT;
	enum rfl_rc rc = set_up(&job, &failure);
	struct rfl_burst_config burst = {
		.mode = (enum rfl_run_mode)c->mode,
		.warmup = c->warmup,
		.iters = c->iters,
		.accum = c->accum,
		.past = c->past,
		.asynchronous = job.device != RFL_DEVICE_CPU,
		.sync_each_step = c->sync_each_step,
		.cuda_graph = c->cuda_graph,
		.until_stdrel = c->until_stdrel,
		.until_max_s = c->until_max_s,
		.nvtx_detail = (enum rfl_detail)c->nvtx,
		.progress = report_progress,
		.meet = c->world.size > 1 ? on_meet : NULL,
		.window = on_window,
		.measured = on_measured,
		.ctx = &job,
	};

	if (c->epochs > 0) {
		burst.iters = job.r.burst.nsteps;
		burst.done = job.training.done;
		burst.lap = on_lap;
		burst.lapped = on_lapped;
		burst.progress = NULL; /* on_lapped() reports it */
	}
	if (rc == RFL_OK && job.ops->reset_memory) /* exclude the setup from the peaks */
		rc = job.ops->reset_memory(job.engine, &failure);
	if (rc == RFL_OK)
		rc = rfl_burst_run(job.ops, job.engine, job.data, &burst, &job.r.burst, &failure);
	if (rc == RFL_OK && job.r.burst.until_steps > 0)
		report(&job, rfl_run__pack(RFL_RUN__UNTIL, &job.r));
	if (rc == RFL_OK) {
		profile_memory(&job);
		time_kinds(&job);
		count(&job);
	}
	if (rc == RFL_EINTR) /* a training run may never be continued */
		report_steps(&job, job.training.done);
	if (rc) {
		report(&job, failed_event(&failure));
		rfl_err_pass(err, &failure);
	}
	close_source(&job);
	rfl_sampler_free(job.sampler);
	rfl_burst_fini(&job.r.burst);
	rfl_run__training_fini(&job.training);
	rfl_data_free(job.data);
	rfl_nvtx_close();
	if (job.engine)
		job.ops->close(job.engine);
	rfl_net_free(job.net);
	rfl_engine_list_free(job.list);
	return rc;
}

static void emit_line(json_t *take_event, void *ctx)
{
	int fd = *(const int *)ctx;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	RFL_AUTOFREE char *line = NULL;
	size_t len, sent = 0;

	/* a stopped parent does not read, and progress must not block a step */
	if (!rfl_text_same(json_string_value(json_object_get(take_event, "event")), "progress") ||
	    poll(&p, 1, 0) != 0)
		line = json_dumps(take_event, JSON_COMPACT);
	json_decref(take_event);
	if (!line)
		return;
	len = strlen(line);
	line[len] = '\n'; /* replaces the NUL */
	while (sent < len + 1) {
		ssize_t n = write(fd, line + sent, len + 1 - sent);

		if (n < 0 && errno != EINTR)
			break;
		sent += n > 0 ? (size_t)n : 0;
	}
}

enum rfl_rc rfl_run_child(int config_fd, int report_fd, rfl_run_source_fn source_for,
			  bool (*stopped)(void), struct rfl_err *err)
{
	const char *dirs[MAX_PLUGIN_DIRS + 1];
	struct rfl_err failure = RFL_ERR_INIT;
	struct rfl_run_config config;
	RFL_AUTO(buf) text = { .max = CONFIG_MAX };
	json_t *event;
	json_auto_t *json = NULL;
	char block[4096];
	ssize_t n;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && (n = read(config_fd, block, sizeof(block))) != 0) {
		if (n > 0)
			rfl_buf_append(&text, block, (size_t)n);
		else if (errno != EINTR)
			rc = rfl_fail(&failure, RFL_EIO, errno, "configuration: %s",
				      strerror(errno));
	}
	if (rc != RFL_OK || (rc = rfl_buf_check(&text, "configuration", &failure)) ||
	    (rc = rfl_json_loads(rfl_buf_str(&text), text.len, "configuration", &json, &failure)) ||
	    (rc = rfl_run__config_from_json(json, dirs, RFL_ARRAY_LEN(dirs), &config, &failure))) {
		event = failed_event(&failure);
		if (event)
			emit_line(event, &report_fd);
		rfl_err_pass(err, &failure);
		return rc;
	}
	return rfl_run__measure(&config, source_for, stopped, emit_line, &report_fd, err);
}
