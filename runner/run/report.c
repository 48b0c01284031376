/*
 * report.c - the parent's ear: events of the child become one record.
 */
#include "runner/run/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "machine/machine.h"

#define COUNTERS_MAX ((size_t)256 << 20)
#define DESCRIBE_MAX ((size_t)1 << 20)

enum rfl_rc rfl_run__heard_init(struct rfl_run__heard *h, int64_t iters, struct rfl_err *err)
{
	const double unknown = (double)NAN;

	*h = (struct rfl_run__heard){
		.plugin_abi = -1,
		.device = RFL_RUN_DEVICE_AUTO,
		.device_info = { .memory_bytes = -1 },
		.pin_memory = -1,
		.cudnn_benchmark = -1,
		.cuda_graph = -1,
		.oom_kills = rfl_machine_oom_kills(""),
		.setup_s = unknown,
		.skipped = -1,
		.queue_mean = unknown,
		.queue_min = unknown,
		.decode_rate = unknown,
		.scaling = { .scale = unknown, .skipped = -1 },
		.memory = { unknown, unknown },
		.host_peak_bytes = unknown,
		.world = { .run_number = -1 },
	};
	rfl_buf_init(&h->describe, DESCRIBE_MAX);
	rfl_buf_init(&h->counters, COUNTERS_MAX);
	rfl_buf_init(&h->so_far, COUNTERS_MAX);
	return rfl_burst_init(&h->burst, iters, err);
}

void rfl_run__heard_fini(struct rfl_run__heard *h)
{
	rfl_buf_fini(&h->counters);
	rfl_buf_fini(&h->so_far);
	rfl_buf_fini(&h->describe);
	rfl_burst_fini(&h->burst);
	rfl_burst_fini(&h->world.burst);
}

static double real(const json_t *value)
{
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double real_of(const json_t *event, const char *key)
{
	return real(json_object_get(event, key));
}

static int64_t int_of(const json_t *event, const char *key)
{
	const json_t *value = json_object_get(event, key);

	return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

static void text_of(const json_t *event, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(event, key));

	snprintf(out, size, "%s", text ? text : "");
}

static void hear_engine(struct rfl_run__heard *h, const json_t *event)
{
	int64_t device = int_of(event, "device");

	text_of(event, "name", h->engine, sizeof(h->engine));
	text_of(event, "id", h->engine_id, sizeof(h->engine_id));
	text_of(event, "version", h->engine_version, sizeof(h->engine_version));
	text_of(event, "reason", h->backend_reason, sizeof(h->backend_reason));
	h->plugin_abi = int_of(event, "abi");
	if (device >= RFL_DEVICE_CPU && device <= RFL_DEVICE_MPS)
		h->device = (int)device;
}

static void hear_device(struct rfl_run__heard *h, const json_t *event)
{
	struct rfl_engine_device *d = &h->device_info;
	const char *words = json_string_value(json_object_get(event, "describe"));

	text_of(event, "name", d->name, sizeof(d->name));
	text_of(event, "pci_bus_id", d->pci_bus_id, sizeof(d->pci_bus_id));
	text_of(event, "cuda_runtime", d->cuda_runtime, sizeof(d->cuda_runtime));
	text_of(event, "cuda_driver", d->cuda_driver, sizeof(d->cuda_driver));
	text_of(event, "cudnn", d->cudnn, sizeof(d->cudnn));
	text_of(event, "nccl", d->nccl, sizeof(d->nccl));
	d->memory_bytes = int_of(event, "memory_bytes");
	rfl_buf_puts(&h->describe, words ? words : "");
}

static int flag_of(const json_t *event, const char *key)
{
	const json_t *value = json_object_get(event, key);

	return json_is_boolean(value) ? json_is_true(value) : -1;
}

static void hear_ready(struct rfl_run__heard *h, const json_t *event)
{
	h->ready = true;
	h->setup_s = real_of(event, "setup_s");
	h->pin_memory = flag_of(event, "pin_memory");
	h->cudnn_benchmark = flag_of(event, "cudnn_benchmark");
	h->cuda_graph = flag_of(event, "cuda_graph");
	text_of(event, "optimizer_kernels", h->optimizer_kernels, sizeof(h->optimizer_kernels));
}

static void hear_gpu(struct rfl_run__heard *h, const json_t *event)
{
	struct rfl_gpu_samples *g = &h->gpu;

	text_of(event, "reason", h->not_watched, sizeof(h->not_watched));
	h->watched = h->not_watched[0] == '\0';
	g->sm_clock_mean_hz = real_of(event, "sm_clock_mean_hz");
	g->sm_clock_min_hz = real_of(event, "sm_clock_min_hz");
	g->memory_clock_mean_hz = real_of(event, "memory_clock_mean_hz");
	g->power_mean_w = real_of(event, "power_mean_w");
	g->energy_j = real_of(event, "energy_j");
	g->temperature_max_c = real_of(event, "temperature_max_c");
	g->memory_used_peak_bytes = real_of(event, "memory_used_peak_bytes");
	text_of(event, "throttle", h->throttle, sizeof(h->throttle));
}

static void read_steps(struct rfl_burst *b, const json_t *event)
{
	int64_t at = int_of(event, "first");
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(event, "rows"), i, row)
	{
		if (at < 0 || at >= b->nsteps || json_array_size(row) != 7)
			break;
		b->steps[at++] = (struct rfl_burst_step){
			.data_wait_s = real(json_array_get(row, 0)),
			.upload_s = real(json_array_get(row, 1)),
			.forward_s = real(json_array_get(row, 2)),
			.backward_s = real(json_array_get(row, 3)),
			.optimizer_s = real(json_array_get(row, 4)),
			.total_s = real(json_array_get(row, 5)),
			.loss = real(json_array_get(row, 6)),
		};
	}
}

static void hear_steps(struct rfl_run__heard *h, const json_t *event)
{
	read_steps(&h->burst, event);
}

static bool all_steps_here(const struct rfl_burst *b)
{
	for (int64_t i = 0; i < b->nsteps; i++) {
		if (isnan(b->steps[i].total_s))
			return false;
	}
	return true;
}

static void hear_timed(struct rfl_run__heard *h, const json_t *event)
{
	h->timed = all_steps_here(&h->burst);
	if (!h->timed)
		rfl_log(RFL_LOG_WARN, "the run's child left out steps");
	h->burst.wall_s = real_of(event, "wall_s");
	h->burst.ttfb_s = real_of(event, "ttfb_s");
	h->burst.loss_first = real_of(event, "loss_first");
	h->burst.loss_last = real_of(event, "loss_last");
	h->burst.launch_gap = real_of(event, "launch_gap");
	h->burst.synced = flag_of(event, "synced") == 1;
	h->scaling.scale = real_of(event, "loss_scale");
	h->scaling.skipped = int_of(event, "scale_skipped");
	h->queue_mean = real_of(event, "queue_mean");
	h->queue_min = real_of(event, "queue_min");
	h->decode_rate = real_of(event, "decode_rate");
	h->memory.allocated_peak_bytes = real_of(event, "allocated_peak_bytes");
	h->memory.reserved_peak_bytes = real_of(event, "reserved_peak_bytes");
	h->host_peak_bytes = real_of(event, "host_peak_bytes");
	h->skipped = int_of(event, "skipped");
}

static void hear_met(struct rfl_run__heard *h, const json_t *event)
{
	h->world.run_number = int_of(event, "run_number");
}

/* Room is made when there is something: most runs are of one process. */
static void hear_world_steps(struct rfl_run__heard *h, const json_t *event)
{
	struct rfl_burst *b = &h->world.burst;
	struct rfl_err why = RFL_ERR_INIT;

	if (!b->steps && rfl_burst_init(b, h->burst.nsteps, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s", why.msg);
	if (b->steps)
		read_steps(b, event);
}

static void hear_world(struct rfl_run__heard *h, const json_t *event)
{
	struct rfl_burst *b = &h->world.burst;
	struct rfl_run__share *s = &h->world.share;

	rfl_run__share_from_json(json_object_get(event, "share"), s);
	h->world.known = b->steps && all_steps_here(b);
	b->wall_s = s->wall_s;
	b->ttfb_s = s->ttfb_s;
	b->loss_first = s->loss_first;
	b->loss_last = s->loss_last;
	b->launch_gap = s->launch_gap;
	b->synced = h->burst.synced;
}

static void hear_until(struct rfl_run__heard *h, const json_t *event)
{
	h->burst.until_steps = int_of(event, "steps");
	h->burst.until_step_s = real_of(event, "step_s");
	h->burst.until_stdrel = real_of(event, "stdrel");
	h->burst.until_missed = json_is_true(json_object_get(event, "missed"));
}

static enum rfl_rc failure_of(const json_t *event)
{
	int64_t rc = int_of(event, "rc");

	return rc >= RFL_EUSAGE && rc < RFL_OK ? (enum rfl_rc)rc : RFL_EFAILED;
}

static void hear_failed(struct rfl_run__heard *h, const json_t *event)
{
	h->failed = true;
	h->rc = failure_of(event);
	text_of(event, "text", h->text, sizeof(h->text));
}

static void hear_counters(struct rfl_run__heard *h, const json_t *event)
{
	const char *csv = json_string_value(json_object_get(event, "csv"));

	rfl_buf_puts(&h->counters, csv ? csv : "");
}

static size_t bytes_of(const json_t *event)
{
	const int64_t bytes = int_of(event, "bytes");

	return bytes < 0 ? SIZE_MAX : (size_t)bytes;
}

static void hear_so_far(struct rfl_run__heard *h, const json_t *event)
{
	rfl_buf_fini(&h->so_far);
	h->so_far = h->counters;
	h->so_far_len = bytes_of(event);
	rfl_buf_init(&h->counters, COUNTERS_MAX);
	h->within_s = real_of(event, "within_s");
	h->late_at_s = h->within_s > 0 ? rfl_clock_s() + h->within_s : 0;
}

static void hear_counted(struct rfl_run__heard *h, const json_t *event)
{
	h->counted = true;
	h->late_at_s = 0;
	h->counters_len = bytes_of(event);
	h->counted_rc = int_of(event, "rc") == RFL_OK ? RFL_OK : failure_of(event);
	text_of(event, "text", h->counted_text, sizeof(h->counted_text));
}

void rfl_run__hear(struct rfl_run__heard *h, const json_t *event, const char **phase, int64_t *done,
		   int64_t *total)
{
	static const struct {
		const char *name;
		void (*hear)(struct rfl_run__heard *h, const json_t *event);
	} kinds[] = {
		{ "engine", hear_engine },     { "device", hear_device },
		{ "ready", hear_ready },       { "steps", hear_steps },
		{ "timed", hear_timed },       { "until", hear_until },
		{ "gpu", hear_gpu },           { "failed", hear_failed },
		{ "counters", hear_counters }, { "so_far", hear_so_far },
		{ "counted", hear_counted },   { "met", hear_met },
		{ "world", hear_world },       { "world_steps", hear_world_steps },
	};
	const char *name = json_string_value(json_object_get(event, "event"));

	*phase = NULL;
	for (size_t i = 0; name && i < RFL_ARRAY_LEN(kinds); i++) {
		if (strcmp(name, kinds[i].name) == 0) {
			kinds[i].hear(h, event);
			return;
		}
	}
	if (name && strcmp(name, "progress") == 0) {
		*phase = json_string_value(json_object_get(event, "phase"));
		*done = int_of(event, "done");
		*total = int_of(event, "total");
		return;
	}
	rfl_log(RFL_LOG_WARN, "the run's child said something unknown: '%s'", name ? name : "");
}
