/*
 * run_report.c - the parent's ear: events of the child become one record.
 */
#include "runner/run_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define COUNTERS_MAX ((size_t)256 << 20)

enum rfl_rc rfl_run__heard_init(struct rfl_run__heard *h, int64_t iters, struct rfl_err *err)
{
	*h = (struct rfl_run__heard){
		.plugin_abi = -1,
		.device = RFL_RUN_DEVICE_AUTO,
		.setup_s = (double)NAN,
		.skipped = -1,
		.memory = { (double)NAN, (double)NAN },
		.host_peak_bytes = (double)NAN,
	};
	rfl_buf_init(&h->counters, COUNTERS_MAX);
	return rfl_burst_init(&h->burst, iters, err);
}

void rfl_run__heard_fini(struct rfl_run__heard *h)
{
	rfl_buf_fini(&h->counters);
	rfl_burst_fini(&h->burst);
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
	h->plugin_abi = int_of(event, "abi");
	if (device >= RFL_DEVICE_CPU && device <= RFL_DEVICE_MPS)
		h->device = (int)device;
}

static void hear_ready(struct rfl_run__heard *h, const json_t *event)
{
	h->ready = true;
	h->setup_s = real_of(event, "setup_s");
}

static void hear_steps(struct rfl_run__heard *h, const json_t *event)
{
	int64_t at = int_of(event, "first");
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(event, "rows"), i, row)
	{
		if (at < 0 || at >= h->burst.nsteps || json_array_size(row) != 6)
			break;
		h->burst.steps[at++] = (struct rfl_burst_step){
			.data_wait_s = real(json_array_get(row, 0)),
			.forward_s = real(json_array_get(row, 1)),
			.backward_s = real(json_array_get(row, 2)),
			.optimizer_s = real(json_array_get(row, 3)),
			.total_s = real(json_array_get(row, 4)),
			.loss = real(json_array_get(row, 5)),
		};
	}
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
	h->memory.allocated_peak_bytes = real_of(event, "allocated_peak_bytes");
	h->memory.reserved_peak_bytes = real_of(event, "reserved_peak_bytes");
	h->host_peak_bytes = real_of(event, "host_peak_bytes");
	h->skipped = int_of(event, "skipped");
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

static void hear_counted(struct rfl_run__heard *h, const json_t *event)
{
	const int64_t bytes = int_of(event, "bytes");

	h->counted = true;
	h->counters_len = bytes < 0 ? SIZE_MAX : (size_t)bytes;
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
		{ "engine", hear_engine },   { "ready", hear_ready },
		{ "steps", hear_steps },     { "timed", hear_timed },
		{ "failed", hear_failed },   { "counters", hear_counters },
		{ "counted", hear_counted },
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
