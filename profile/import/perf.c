/*
 * perf.c - perf stat. Its three forms (import/perf_text.c, _csv.c, _json.c) give rows; here
 * rows of one event are added up over intervals and processors, by PMU. What an event is over its
 * PMUs is in import/perf_event.c.
 */
#include "profile/import/perf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/capture/impl.h"

#define EVENTS_MAX 4096

/* --- rows of one event ----------------------------------------------------------------------- */

enum rfl_rc rfl_perf__no_memory(const struct rfl_perf_block *k, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_input_name(k->import->in));
}

static struct rfl_perf_event_sum *event_of(struct rfl_perf_block *k,
					   const struct rfl_perf_name *name)
{
	for (size_t i = 0; i < k->nevents; i++)
		if (strcmp(k->events[i].name, name->name) == 0)
			return &k->events[i];
	if (!rfl_capture__room(&k->events, k->nevents, &k->cap, sizeof(*k->events)))
		return NULL;
	k->events[k->nevents] = (struct rfl_perf_event_sum){
		.name = rfl_arena_strdup(k->arena, name->name),
		.unit = name->unit,
	};
	return k->events[k->nevents].name ? &k->events[k->nevents++] : NULL;
}

static struct rfl_perf_part *part_of(struct rfl_perf_block *k, struct rfl_perf_event_sum *e,
				     const struct rfl_perf_name *name)
{
	struct rfl_perf_part *part;

	for (size_t i = 0; i < e->nparts; i++)
		if (strcmp(e->parts[i].pmu, name->pmu) == 0 &&
		    strcmp(e->parts[i].modifiers, name->modifiers) == 0)
			return &e->parts[i];
	if (!rfl_capture__room(&e->parts, e->nparts, &e->cap, sizeof(*e->parts)))
		return NULL;
	part = &e->parts[e->nparts];
	*part = (struct rfl_perf_part){
		.pmu = rfl_arena_strdup(k->arena, name->pmu),
		.modifiers = rfl_arena_strdup(k->arena, name->modifiers),
		.running = 100.0,
	};
	if (!part->pmu || !part->modifiers)
		return NULL;
	e->nparts++;
	return part;
}

enum seen { FIRST, AGAIN, NO_MEMORY };

/* Groups of events name one several times: perf prints it as often, and it is one count. */
static enum seen see_place(struct rfl_perf_part *part, const struct rfl_perf_row *row)
{
	uint64_t interval = rfl_hash64(1, row->time.at, row->time.len);
	uint64_t place = rfl_hash64(1, row->place.at, row->place.len);

	if (interval != part->interval)
		part->nplaces = 0;
	part->interval = interval;
	for (size_t i = 0; i < part->nplaces; i++)
		if (part->places[i] == place)
			return AGAIN;
	if (!rfl_capture__room(&part->places, part->nplaces, &part->cap, sizeof(*part->places)))
		return NO_MEMORY;
	part->places[part->nplaces++] = place;
	return FIRST;
}

static void add_row(struct rfl_perf_block *k, struct rfl_perf_part *part,
		    const struct rfl_perf_row *row, double scale)
{
	double value, share = isnan(row->running) ? 100.0 : row->running;

	part->counted += row->state == RFL_PERF_COUNTED;
	part->not_counted += row->state == RFL_PERF_NOT_COUNTED;
	part->not_supported += row->state == RFL_PERF_NOT_SUPPORTED;
	if (row->state != RFL_PERF_COUNTED)
		return;
	value = scale < 0 ? row->value / -scale : row->value * scale;
	part->value += value;
	part->half_digit += scale < 0 ? row->half_digit / -scale : row->half_digit * scale;
	part->raw += value * share / 100.0;
	part->shares += share;
	part->placed = part->placed || row->place.len > 0;
	if (row->running < part->running)
		part->running = row->running;
	if (!isnan(row->cpus_utilized))
		k->cpus_utilized =
			part->counted + part->not_counted == 1 ? row->cpus_utilized : NAN;
}

enum rfl_rc rfl_perf__row(struct rfl_perf_block *k, const struct rfl_perf_row *row,
			  struct rfl_err *err)
{
	struct rfl_perf_name name;
	struct rfl_perf_event_sum *e;
	struct rfl_perf_part *part;
	enum seen seen;

	if (!rfl_perf__name(row->event, row->unit, &name))
		return rfl_import_bad_row(k->import, "unit", err,
					  "'%.*s' of %.*s is no unit that is known here",
					  RFL_SPAN_ARG(row->unit), RFL_SPAN_ARG(row->event));
	if (row->state == RFL_PERF_COUNTED && row->value < 0)
		return rfl_import_bad_row(k->import, NULL, err, "%.*s is below 0",
					  RFL_SPAN_ARG(row->event));
	if (row->state == RFL_PERF_COUNTED && k->import->options->strict &&
	    rfl_import_is_rounded(row->value, row->half_digit))
		return rfl_import_bad_row(k->import, NULL, err,
					  "%.*s was rounded by its unit; run perf stat with -j, or "
					  "leave out --strict",
					  RFL_SPAN_ARG(row->event));
	if (k->nevents >= EVENTS_MAX)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: more than %d events",
				rfl_input_name(k->import->in), rfl_input_line_number(k->import->in),
				EVENTS_MAX);
	e = event_of(k, &name);
	part = e ? part_of(k, e, &name) : NULL;
	seen = part ? see_place(part, row) : NO_MEMORY;
	if (seen == NO_MEMORY)
		return rfl_perf__no_memory(k, err);
	if (seen == AGAIN) {
		rfl_capture_note(k->b, "events that perf printed several times are counted once: "
				       "the first of each");
		return RFL_OK;
	}
	if (strcmp(name.modifiers, "u") == 0)
		rfl_capture_note(k->b, "events with ':u' were counted in user mode only");
	add_row(k, part, row, name.scale);
	return RFL_OK;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void empty(struct rfl_perf_block *k)
{
	for (size_t i = 0; i < k->nevents; i++) {
		for (size_t p = 0; p < k->events[i].nparts; p++)
			free(k->events[i].parts[p].places);
		free(k->events[i].parts);
	}
	k->nevents = 0;
	k->elapsed = k->user = k->system = k->cpus_utilized = NAN;
	k->open = k->intervals = false;
}

static enum rfl_rc give_events(struct rfl_perf_block *k, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < k->nevents && rc == RFL_OK; i++) {
		struct rfl_reading r;

		rc = rfl_perf__event(k, &k->events[i], &r, err);
		if (rc == RFL_OK)
			rc = rfl_import_give(k->b, &k->ids, &r, NULL, err);
	}
	return rc;
}

static const struct rfl_perf_event_sum *find_event(const struct rfl_perf_block *k, const char *name)
{
	for (size_t i = 0; i < k->nevents; i++)
		if (strcmp(k->events[i].name, name) == 0)
			return &k->events[i];
	return NULL;
}

/* -x and -j print no elapsed time, but a clock over it: that of the process, or of processors. */
static struct rfl_reading elapsed_of(const struct rfl_perf_block *k)
{
	const struct rfl_perf_event_sum *task = find_event(k, "task-clock"),
					*clock = task ? task : find_event(k, "cpu-clock");
	struct rfl_reading r = { .name = "duration_time", .unit = "s", .value = k->elapsed };

	if (!isnan(r.value) || isnan(k->cpus_utilized) || k->cpus_utilized <= 0.0 || !clock ||
	    clock->nparts != 1)
		return r;
	if (k->import->options->strict)
		return r;
	r.value = clock->parts[0].value / k->cpus_utilized;
	r.validity = RFL_VALID_ESTIMATE;
	r.reason = "the clock over 'CPUs utilized', which perf rounds: add duration_time to the "
		   "events";
	return r;
}

static enum rfl_rc flush(struct rfl_perf_block *k, struct rfl_err *err)
{
	struct rfl_reading times[] = {
		elapsed_of(k),
		{ .name = "user_time", .unit = "s", .value = k->user },
		{ .name = "system_time", .unit = "s", .value = k->system },
	};
	enum rfl_rc rc;

	if (!k->open || (k->nevents == 0 && isnan(k->elapsed))) {
		empty(k);
		return RFL_OK;
	}
	rc = rfl_capture_begin(k->b, RFL_RANGE_PROCESS, k->command, NULL, NULL, err);
	if (rc == RFL_OK)
		rc = give_events(k, err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(times) && rc == RFL_OK; i++)
		if (!isnan(times[i].value) && !find_event(k, times[i].name))
			rc = rfl_import_give(k->b, &k->ids, &times[i], NULL, err);
	if (rc == RFL_OK && k->intervals)
		rfl_capture_note(k->b, "the values of all intervals were added up");
	if (rc == RFL_OK)
		rc = rfl_capture_end(k->b, err);
	empty(k);
	return rc;
}

enum rfl_rc rfl_perf__begin(struct rfl_perf_block *k, struct rfl_span command, struct rfl_err *err)
{
	enum rfl_rc rc = flush(k, err);

	k->open = true;
	rfl_span_copy(command, k->command, sizeof(k->command));
	return rc;
}

/* --- the file -------------------------------------------------------------------------------- */

typedef enum rfl_rc form_fn(struct rfl_perf_block *k, struct rfl_err *err);

/* The text is the form that is looked for where nothing is found. */
static form_fn *form_of(struct rfl_span head)
{
	if (rfl_perf__detect_text(head) > 0)
		return rfl_perf__read_text;
	if (rfl_perf__detect_json(head) > 0)
		return rfl_perf__read_json;
	return rfl_perf__detect_csv(head) > 0 ? rfl_perf__read_csv : rfl_perf__read_text;
}

static enum rfl_rc read_form(struct rfl_perf_block *k, bool *any, struct rfl_err *err)
{
	struct rfl_span head;
	enum rfl_rc rc = rfl_input_peek(k->import->in, &head, err);

	if (rc == RFL_OK)
		rc = form_of(head)(k, err);
	*any = k->open && (k->nevents > 0 || !isnan(k->elapsed));
	return rc == RFL_OK ? flush(k, err) : rc;
}

static enum rfl_rc read_perf(struct rfl_import *import, struct rfl_captures *to,
			     struct rfl_err *err)
{
	struct rfl_perf_block k = { .import = import, .arena = rfl_arena_new(0) };
	bool any = false;
	enum rfl_rc rc;

	empty(&k);
	if (!k.arena)
		return rfl_perf__no_memory(&k, err);
	rc = rfl_import_builder(import, "perf", "cpu", false, &k.b, err);
	if (rc == RFL_OK)
		rc = read_form(&k, &any, err);
	if (rc == RFL_OK && !any)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: no events: expected what perf stat, perf stat -x or perf stat "
			      "-j print",
			      rfl_input_name(import->in));
	if (rc == RFL_OK)
		rc = rfl_import_finish(import, k.b, to, err);
	empty(&k);
	free(k.events);
	rfl_metric_ids_fini(&k.ids);
	rfl_capture_builder_free(k.b);
	rfl_arena_free(k.arena);
	return rc;
}

static int detect(struct rfl_span head)
{
	int text = rfl_perf__detect_text(head), json = rfl_perf__detect_json(head);
	int best = text > json ? text : json;

	return best > 0 ? best : rfl_perf__detect_csv(head);
}

const struct rfl_importer rfl_importer_perf = {
	.name = "perf",
	.summary = "perf stat: what it prints, -x with any separator, -j",
	.detect = detect,
	.read = read_perf,
};
