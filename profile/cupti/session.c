/*
 * session.c - prepares a device for counting and runs the range profiler pass by pass. A counter
 * failure never interrupts a step: it is reported when the step has ended.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "profile/cupti/impl.h"

/* ---- the device ---- */

enum rfl_rc rfl_cupti_target_start(struct rfl_cupti_target *t, struct rfl_err *err)
{
	struct rfl_cupti_profiler_initialize p = { RFL_CUPTI_SIZED(profiler_initialize) };

	if (t->started)
		return RFL_OK;
	enum rfl_rc rc = RFL_CUPTI_CALL(t->lib, profiler_initialize, err, &p);
	t->started = rc == RFL_OK;
	return rc;
}

/* Report why counting is not supported; an unknown state is reported last. */
static enum rfl_rc not_supported(const struct rfl_cupti_device_supported *p, struct rfl_err *err)
{
	const struct {
		int32_t level;
		const char *meaning, *remedy;
	} fields[] = {
		{ p->architecture,
		  "its architecture has no range profiler (Turing is the first with one)",
		  "use a GPU of compute capability 7.5 or later" },
		{ p->vgpu, "it is a virtual GPU (vGPU) with profiling disabled",
		  "ask the hypervisor's administrator to enable it" },
		{ p->confidential_compute, "it is in confidential computing mode",
		  "ask an administrator to turn it off" },
		{ p->cmp, "it is a mining card (CMP)", "use another GPU" },
		{ p->sli, "GPUs are joined by SLI", "turn SLI off" },
		{ p->wsl, "this WSL version or its driver lacks counters",
		  "update WSL, and the driver to 525 or later" },
	};
	static const struct {
		int32_t level;
		const char *name;
	} levels[] = {
		{ RFL_CUPTI_SUPPORT_UNSUPPORTED, "unsupported" },
		{ RFL_CUPTI_SUPPORT_DISABLED, "switched off" },
		{ RFL_CUPTI_SUPPORT_UNKNOWN, "possibly unsupported" },
	};

	for (size_t k = 0; k < RFL_ARRAY_LEN(levels); k++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
			if (fields[i].level == levels[k].level)
				return rfl_fail(err, RFL_EUNAVAILABLE, levels[k].level,
						"counters of this GPU are %s: %s: %s",
						levels[k].name, fields[i].meaning,
						fields[i].remedy);
	return rfl_fail(err, RFL_EUNAVAILABLE, p->supported,
			"CUPTI does not support the counters of this GPU and gives no reason: "
			"check whether ncu does");
}

enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  const struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err)
{
	struct rfl_cupti_chip_name chip = { RFL_CUPTI_SIZED(chip_name),
					    .device = (size_t)cuda->device };
	struct rfl_cupti_device_supported supported = { RFL_CUPTI_SIZED(device_supported),
							.device = cuda->device,
							.api = RFL_CUPTI_API_RANGE_PROFILING };
	struct rfl_cupti_availability image = { RFL_CUPTI_SIZED(availability),
						.context = cuda->context };
	enum rfl_rc rc;

	*t = (struct rfl_cupti_target){ .lib = lib,
					.context = cuda->context,
					.gate = RFL_CUPTI_GATE_START };
	if ((rc = rfl_cupti_target_start(t, err)) != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_CHIP;
	if ((rc = RFL_CUPTI_CALL(lib, chip_name, err, &chip)) != RFL_OK)
		return rc;
	snprintf(t->chip, sizeof(t->chip), "%s", chip.name);
	t->gate = RFL_CUPTI_GATE_SUPPORT;
	rc = RFL_CUPTI_CALL(lib, device_supported, err, &supported);
	t->limited = supported.supported == RFL_CUPTI_SUPPORT_LIMITED;
	if (rc == RFL_OK && !t->limited && supported.supported != RFL_CUPTI_SUPPORT_SUPPORTED)
		rc = not_supported(&supported, err);
	if (rc != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_PERMISSION;
	rc = RFL_CUPTI_CALL(lib, availability, err, &image);
	if (rc == RFL_OK && (rc = rfl_cupti_image(image.size, &t->availability, err)) == RFL_OK) {
		image.image = t->availability;
		rc = RFL_CUPTI_CALL(lib, availability, err, &image);
	}
	if (rc == RFL_OK)
		t->gate = RFL_CUPTI_GATE_OPEN;
	else if (err && access == RFL_COUNTERS_ADMIN)
		rfl_err_prefix(err, "the driver was loaded with RmProfilingAdminOnly: 1");
	return rc;
}

void rfl_cupti_target_stop(struct rfl_cupti_target *t)
{
	struct rfl_cupti_profiler_deinitialize p = { RFL_CUPTI_SIZED(profiler_deinitialize) };

	if (t->started)
		(void)t->lib->calls.profiler_deinitialize(&p);
	t->started = false;
}

void rfl_cupti_target_fini(struct rfl_cupti_target *t)
{
	if (t->lib)
		rfl_cupti_target_stop(t);
	free(t->availability);
	*t = (struct rfl_cupti_target){ .lib = NULL };
}

struct session {
	struct rfl_cupti_target *target;
	struct rfl_cupti *lib; /* library of the target */
	const struct rfl_cupti_planned *planned;
	struct rfl_cupti_range_object *profiler; /* NULL: not enabled */
	size_t capacity;                         /* ranges per pass */
	uint8_t *data;                           /* used by the profiler until it is disabled */
	size_t data_size;
};

/* One run: receives the ranges from the workload. */
struct walk {
	struct rfl_ranges pub; /* first */
	struct session *s;     /* NULL: nothing is counted */
	struct rfl_counted *counted;
	bool first_run;
	size_t next;        /* number of the next range */
	size_t from, until; /* the ranges counted in this run */
	bool open, pushed;
	double began_s;
	struct rfl_err failure; /* a counter failed, or the ranges of two runs differ */
};

void rfl_counted_fini(struct rfl_counted *c)
{
	rfl_arena_free(c->arena);
	*c = (struct rfl_counted){ .arena = NULL };
}

double rfl_counted_wall_s(const struct rfl_counted *c)
{
	double sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += c->ranges[i].wall_s;
	return sum;
}

/* ---- ranges ---- */

static void end_range(struct walk *w)
{
	double now_s = rfl_clock_s();

	if (!w->open)
		return;
	w->open = false;
	if (w->next - 1 < w->counted->n)
		w->counted->ranges[w->next - 1].wall_s = now_s - w->began_s;
	if (w->pushed) {
		struct rfl_cupti_pop_range p = { RFL_CUPTI_SIZED(pop_range),
						 .profiler = w->s->profiler };

		w->pushed = false;
		(void)!RFL_CUPTI_CALL(w->s->lib, pop_range, &w->failure, &p);
	}
}

/* The first run appends ranges; every other run must have the same ranges. */
static enum rfl_rc begin_range(struct rfl_ranges *ranges, enum rfl_range_kind kind,
			       const char *name, struct rfl_err *err)
{
	struct walk *w = (struct walk *)(void *)ranges;
	struct rfl_counted *c = w->counted;
	const struct rfl_counted_range *r = w->next < c->n ? &c->ranges[w->next] : NULL;

	(void)err;
	end_range(w);
	if (w->first_run) {
		struct rfl_counted_range *new = rfl_arena_append(c->arena, &c->ranges, &c->n);

		new->kind = kind;
		new->name = rfl_arena_strdup(c->arena, name);
		new->values = rfl_arena_array(c->arena, c->nvalues, sizeof(*new->values));
		for (size_t i = 0; i < c->nvalues; i++)
			new->values[i] = NAN;
	} else if (!r || r->kind != kind || strcmp(r->name, name) != 0) {
		(void)rfl_fail(&w->failure, RFL_EFAILED, 0,
			       "the runs differ, so their passes cannot be combined: range %zu is "
			       "'%s' in one run and '%s' in the next",
			       w->next, r ? r->name : "(none)", name);
	}
	if (w->failure.rc == RFL_OK && w->s && w->next >= w->from && w->next < w->until) {
		struct rfl_cupti_push_range p = { RFL_CUPTI_SIZED(push_range),
						  .profiler = w->s->profiler };

		/* range names must be unique: prefix the number */
		p.name = rfl_arena_printf(c->arena, "%zu:%s", w->next, name);
		w->pushed = RFL_CUPTI_CALL(w->s->lib, push_range, &w->failure, &p) == RFL_OK;
	}
	w->next++;
	w->open = true;
	w->began_s = rfl_clock_s();
	return RFL_OK;
}

static struct walk walk_of(struct session *s, struct rfl_counted *counted)
{
	return (struct walk){ .pub = { .begin = begin_range },
			      .s = s,
			      .counted = counted,
			      .first_run = counted->runs == 0 };
}

enum rfl_rc rfl_replay_ready(struct rfl_replay *work, struct rfl_err *err)
{
	work->rc = work->ready ? work->ready(work->ctx, err) : RFL_OK;
	return work->rc;
}

/* Run the workload once and end its last range. */
static enum rfl_rc run(struct walk *w, struct rfl_replay *work, struct rfl_err *err)
{
	work->rc = work->run(work->ctx, &w->pub, err);
	w->counted->runs++;
	end_range(w);
	return work->rc;
}

enum rfl_rc rfl_counted_walk(struct rfl_replay *work, struct rfl_counted *ret, struct rfl_err *err)
{
	*ret = (struct rfl_counted){ .arena = rfl_arena_new() };
	struct walk w = walk_of(NULL, ret);
	enum rfl_rc rc = run(&w, work, err);
	if (rc == RFL_OK && w.failure.rc != RFL_OK)
		rc = rfl_err_pass(err, &w.failure);
	return rc;
}

static void turn_off(struct session *s)
{
	if (s->profiler) {
		struct rfl_cupti_disable p = { RFL_CUPTI_SIZED(disable), .profiler = s->profiler };

		s->target->stuck = s->lib->calls.disable(&p);
	}
	s->profiler = NULL;
	free(s->data);
	s->data = NULL;
}

/* Call turn_off() even after a failure. */
static enum rfl_rc turn_on(struct session *s, struct rfl_err *err)
{
	const struct rfl_cupti_planned *planned = s->planned;
	struct rfl_cupti_enable on = { RFL_CUPTI_SIZED(enable), .context = s->target->context };
	struct rfl_cupti_data_size size = {
		RFL_CUPTI_SIZED(data_size),
		.names = (const char **)planned->metrics.names, /* read only */
		.n = planned->metrics.n,
		.max_ranges = s->capacity,
		.max_nodes = (uint32_t)s->capacity + 1,
	};
	struct rfl_cupti_data_initialize empty = { RFL_CUPTI_SIZED(data_initialize) };
	struct rfl_cupti_set_config config = {
		RFL_CUPTI_SIZED(set_config),
		.config_size = planned->config_size,
		.config = planned->config,
		.range = RFL_CUPTI_USER_RANGE,
		.replay = RFL_CUPTI_USER_REPLAY,
		.max_ranges = s->capacity,
		.nesting_levels = 1,
		.min_nesting_level = 1,
		.pass = 0,
		.target_nesting_level = 1,
	};
	enum rfl_rc rc = rfl_cupti_check(s->lib, s->target->stuck, rfl_cupti_symbols.disable, err);

	if (rc == RFL_OK)
		rc = RFL_CUPTI_CALL(s->lib, enable, err, &on);
	if (rc != RFL_OK)
		return rc;
	s->profiler = size.profiler = empty.profiler = config.profiler = on.profiler;
	if ((rc = RFL_CUPTI_CALL(s->lib, data_size, err, &size)) != RFL_OK ||
	    (rc = rfl_cupti_image(size.size, &s->data, err)) != RFL_OK)
		return rc;
	s->data_size = empty.size = config.data_size = size.size;
	empty.data = config.data = s->data;
	rc = RFL_CUPTI_CALL(s->lib, data_initialize, err, &empty);
	return rc == RFL_OK ? RFL_CUPTI_CALL(s->lib, set_config, err, &config) : rc;
}

/* Run one pass. Counter failures are reported when the workload has ended. */
static enum rfl_rc pass(struct session *s, struct rfl_replay *work, struct rfl_counted *counted,
			size_t from, bool *last, struct rfl_err *err)
{
	struct rfl_cupti_start start = { RFL_CUPTI_SIZED(start), .profiler = s->profiler };
	struct rfl_cupti_stop stop = { RFL_CUPTI_SIZED(stop), .profiler = s->profiler };
	struct walk w = walk_of(s, counted);
	enum rfl_rc rc;

	w.from = from;
	w.until = from + s->capacity;
	if ((rc = rfl_replay_ready(work, err)) != RFL_OK ||
	    (rc = RFL_CUPTI_CALL(s->lib, start, err, &start)) != RFL_OK)
		return rc;
	rc = run(&w, work, err);
	int stopped = s->lib->calls.stop(&stop);
	if (rc != RFL_OK)
		return rc;
	if (w.failure.rc == RFL_OK && w.next != counted->n)
		(void)rfl_fail(&w.failure, RFL_EFAILED, 0,
			       "the runs differ, so their passes cannot be combined: %zu ranges in "
			       "one run, %zu in another",
			       counted->n, w.next);
	if (w.failure.rc != RFL_OK)
		return rfl_err_pass(err, &w.failure);
	*last = stop.all_passes_submitted;
	return rfl_cupti_check(s->lib, stopped, rfl_cupti_symbols.stop, err);
}

/* Assign the decoded values to ranges by the numbers in their names. A range in which nothing ran
 * may have no data; it is an error if all lack data, or if one was dropped. */
static enum rfl_rc read_data(struct session *s, struct rfl_counted *counted, size_t expected,
			     struct rfl_err *err)
{
	const struct rfl_metric_set *metrics = &s->planned->metrics;
	struct rfl_cupti_decode decode = { RFL_CUPTI_SIZED(decode), .profiler = s->profiler };
	struct rfl_cupti_data_info info = { RFL_CUPTI_SIZED(data_info), .data = s->data,
					    .size = s->data_size };
	enum rfl_rc rc;

	if ((rc = RFL_CUPTI_CALL(s->lib, decode, err, &decode)) != RFL_OK ||
	    (rc = RFL_CUPTI_CALL(s->lib, data_info, err, &info)) != RFL_OK)
		return rc;
	if (decode.dropped > 0 || info.ranges > expected || (expected > 0 && info.ranges == 0))
		return rfl_fail(err, RFL_EFAILED, 0,
				"CUPTI dropped %zu of %zu ranges and has data for %zu: count fewer "
				"ranges (--counters phase or step)",
				decode.dropped, expected, info.ranges);
	for (size_t i = 0; i < info.ranges && rc == RFL_OK; i++) {
		struct rfl_cupti_range_info p = { RFL_CUPTI_SIZED(range_info), .data = s->data,
						  .size = s->data_size, .range = i,
						  .delimiter = "/" };
		struct rfl_counted_range *r = NULL;
		char *end = NULL;

		rc = RFL_CUPTI_CALL(s->lib, range_info, err, &p);
		if (rc != RFL_OK)
			break;
		if (!p.name)
			rfl_out_of_memory();
		unsigned long number = strtoul(p.name, &end, 10);
		if (*end == ':' && number < counted->n)
			r = &counted->ranges[number];
		if (!r || r->has_data)
			rc = rfl_fail(err, RFL_EFAILED, 0,
				      "CUPTI returned the range '%s', which was never begun, or "
				      "returned it twice",
				      p.name);
		else
			rc = rfl_cupti_values(s->planned->host, s->data, s->data_size, i,
					      metrics->names, metrics->n, r->values, err);
		free((char *)(uintptr_t)p.name); /* owned by the caller */
		for (size_t k = 0; rc == RFL_OK && k < metrics->n; k++)
			r->values[k] *= s->planned->units[k].factor;
		if (rc == RFL_OK)
			r->has_data = true;
	}
	return rc;
}

enum rfl_rc rfl_cupti_count(struct rfl_cupti_target *target,
			    const struct rfl_cupti_planned *planned, size_t max_ranges,
			    struct rfl_replay *work, struct rfl_counted *ret, struct rfl_err *err)
{
	const size_t most = RFL_CUPTI_RANGES_AT_ONCE;
	struct session s = { .target = target,
			     .lib = target->lib,
			     .planned = planned,
			     .capacity = max_ranges < most ? max_ranges : most };
	enum rfl_rc rc;
	size_t from = 0;

	work->rc = RFL_OK;
	*ret = (struct rfl_counted){ .arena = rfl_arena_new(), .nvalues = planned->metrics.n };
	do { /* all passes of a batch of ranges: after decoding, another start is not allowed */
		bool last = false;

		rc = turn_on(&s, err);
		for (size_t passes = 0; rc == RFL_OK && !last; passes++) {
			rc = pass(&s, work, ret, from, &last, err);
			if (rc == RFL_OK && !last && passes > 2 * planned->passes)
				rc = rfl_fail(
					err, RFL_EFAILED, 0,
					"CUPTI planned %zu passes but has not finished after %zu",
					planned->passes, passes + 1);
		}
		if (rc == RFL_OK)
			rc = read_data(&s, ret,
				       ret->n - from < s.capacity ? ret->n - from : s.capacity,
				       err);
		turn_off(&s);
		from += s.capacity;
	} while (rc == RFL_OK && from < ret->n);
	return rc;
}
