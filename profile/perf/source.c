/*
 * source.c - the live source for processors: runs the workload once per pass of the plan, and turns
 * the counts into a capture.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "profile/perf/impl.h"

/* fractions of the time in which an event was counted */
#define SHARE_MIN   0.5   /* reject values with a smaller share */
#define SHARE_WHOLE 0.999 /* above this share, an event was not multiplexed */
#define IDLE_S      0.1
#define COST_MAX    0.01 /* add a note if reading the counters takes a larger share of a range */

#define THREADS_MAX 16384
#define ROUNDS_MAX  8 /* maximum number of searches for threads that started during opening */

/* One open event. */
struct handle {
	int fd;
	size_t item;
	bool leads;
	struct rfl_perf_reading last;
};

struct span {
	enum rfl_range_kind kind;
	const char *name;
	int64_t launches;               /* number in the first pass */
	double time_s;                  /* time in the first pass */
	struct rfl_perf_tally *tallies; /* one per item of the plan */
};

/* Counting a workload: events are opened for every existing thread and inherited by new ones; the
 * values of a range are differences of two readings. */
struct session {
	struct rfl_ranges ranges; /* first member: passed to the workload */
	struct rfl_perf_plan *plan;
	const struct rfl_perf_sys *sys;

	struct handle *handles;
	size_t nhandles, handles_cap;
	int *tids; /* threads with open events */
	size_t ntids;
	int *seen;       /* threads found by look() */
	size_t nthreads; /* may exceed the size of `seen` */

	struct span *spans; /* in the order in which they first began */
	size_t nspans, spans_cap;
	size_t at; /* the current range; SIZE_MAX: none */
	double since_s;
	int pass;

	size_t threads;            /* counted from the start */
	size_t appeared, vanished; /* threads that started or ended while it ran */
	double reading_s;          /* total time of all readings */
	size_t readings;
};

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for perf events");
}

double rfl_perf_tally_value(const struct rfl_perf_tally *t, double *share)
{
	const double whole = t->enabled_s + t->lost_s;

	*share = whole > 0 ? t->running_s / whole : 0;
	if (!(t->enabled_s > 0))
		return NAN;
	return t->lost_s > 0 ? t->value * (whole / t->enabled_s) : t->value;
}

/* Read every event, and add the increase since the last reading to `span` unless it is NULL. */
static void read_all(struct session *s, struct span *span)
{
	const double start = s->sys->now_s(s->sys->ctx);

	for (size_t i = 0; i < s->nhandles; i++) {
		struct handle *h = &s->handles[i];
		struct rfl_perf_item *item = &s->plan->items[h->item];
		struct rfl_perf_reading now;

		if (item->reason)
			continue;
		if (s->sys->read(s->sys->ctx, h->fd, &now) != 0) {
			item->reason = "an open event could not be read";
			continue;
		}
		if (span) {
			struct rfl_perf_tally *t = &span->tallies[h->item];
			const double value = (double)(now.value - h->last.value);
			const double enabled_s =
				(double)(now.enabled_ns - h->last.enabled_ns) * 1e-9;
			const double running_s =
				(double)(now.running_ns - h->last.running_ns) * 1e-9;

			t->read += value;
			if (running_s > 0) {
				t->value += running_s < enabled_s ? value * (enabled_s / running_s)
								  : value;
				t->enabled_s += enabled_s;
				t->running_s += fmin(running_s, enabled_s);
			} else {
				t->lost_s += enabled_s;
			}
		}
		h->last = now;
	}
	s->reading_s += s->sys->now_s(s->sys->ctx) - start;
	s->readings++;
}

static void end_span(struct session *s)
{
	if (s->at == SIZE_MAX)
		return;
	struct span *span = &s->spans[s->at];
	if (s->pass == 0) {
		span->time_s += s->sys->now_s(s->sys->ctx) - s->since_s;
		span->launches++;
	}
	read_all(s, span);
	s->at = SIZE_MAX;
}

static enum rfl_rc ranges_begin(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
				struct rfl_err *err)
{
	struct session *s = (struct session *)r;
	const bool fresh = s->at == SIZE_MAX;
	size_t at = 0;

	end_span(s); /* the readings at the end of the previous range also begin this one */
	while (at < s->nspans &&
	       (s->spans[at].kind != kind || strcmp(s->spans[at].name, name) != 0))
		at++;
	if (at == s->nspans) {
		struct rfl_arena *arena = s->plan->arena;
		struct span span = { .kind = kind, .name = rfl_arena_strdup(arena, name) };

		span.tallies = rfl_arena_array(arena, s->plan->n, sizeof(*span.tallies));
		if (!span.name || !span.tallies ||
		    rfl_grow(&s->spans, &s->spans_cap, at + 1, SIZE_MAX, NULL) != RFL_OK)
			return no_memory(err);
		s->spans[s->nspans++] = span;
	}
	if (fresh)
		read_all(s, NULL);
	s->at = at;
	s->since_s = s->sys->now_s(s->sys->ctx);
	return RFL_OK;
}

/* ---- opening and closing ---- */

static void close_all(struct session *s)
{
	for (size_t i = 0; i < s->nhandles; i++)
		s->sys->close(s->sys->ctx, s->handles[i].fd);
	s->nhandles = 0;
	s->ntids = 0;
}

static bool is_counted(const struct session *s, size_t item, bool uncore)
{
	const struct rfl_perf_item *it = &s->plan->items[item];

	return !it->reason && it->pass == s->pass && it->is_uncore == uncore;
}

/* Drop an item and close its events, except for a group leader that other events still need. If
 * file descriptors run out, which the workload also needs, drop the last item that does not count
 * FLOPs instead, or else the last item. */
static void refuse(struct session *s, size_t item, int error)
{
	const struct rfl_perf_plan *plan = s->plan;
	const bool files = error == EMFILE || error == ENFILE;
	size_t out = plan->n, kept = 0;

	for (int flops = 0; flops <= 1 && files && !plan->items[item].is_uncore; flops++)
		for (size_t i = plan->n; i-- > 0 && out == plan->n;)
			if (is_counted(s, i, false) && plan->items[i].event.is_flops == flops)
				out = i;
	if (out == plan->n)
		out = item;
	rfl_perf_refuse(s->plan, &plan->items[out], error, s->nthreads);
	for (size_t i = 0; i < s->nhandles; i++) {
		const struct handle h = s->handles[i];

		if (h.item == out && !(h.leads && plan->items[out].event.group > 0))
			s->sys->close(s->sys->ctx, h.fd);
		else
			s->handles[kept++] = h;
	}
	s->nhandles = kept;
}

/* Open one event; if it cannot be opened, drop it in all threads.
 * @param leader  of its group; -1: this event leads, and its descriptor is stored here */
static void open_one(struct session *s, size_t item, const struct rfl_perf_target *t, int tid,
		     int *leader)
{
	const bool leads = *leader < 0;
	struct perf_event_attr attr;

	rfl_perf_attr(&s->plan->items[item], t, leads, &attr);
	while (!s->plan->no_memory && !s->plan->items[item].reason) {
		const int fd = s->sys->open(s->sys->ctx, &attr, tid, t->cpu, *leader);

		if (fd < 0 && errno == ESRCH)
			return; /* the thread is gone */
		if (fd < 0) {
			refuse(s, item, errno);
			continue;
		}
		if (rfl_grow(&s->handles, &s->handles_cap, s->nhandles + 1, SIZE_MAX, NULL) !=
		    RFL_OK) {
			s->sys->close(s->sys->ctx, fd);
			s->plan->no_memory = true;
			return;
		}
		if (leads)
			*leader = fd;
		s->handles[s->nhandles++] =
			(struct handle){ .fd = fd, .item = item, .leads = leads };
		return;
	}
}

static bool has_tid(const struct session *s, int tid)
{
	for (size_t i = 0; i < s->ntids; i++)
		if (s->tids[i] == tid)
			return true;
	return false;
}

/* List the current threads; returns the number of them in `seen`. */
static size_t look(struct session *s)
{
	s->nthreads = s->sys->threads(s->sys->ctx, s->seen, THREADS_MAX);
	return s->nthreads < THREADS_MAX ? s->nthreads : THREADS_MAX;
}

/* Open events in all threads until no new thread appears: a thread started by a thread without
 * events inherits none. The first event of a group that can be opened is its leader. */
static void open_all(struct session *s)
{
	const struct rfl_perf_item *items = s->plan->items;
	bool more = true;

	for (int round = 0; round < ROUNDS_MAX && more; round++) {
		const size_t n = look(s);

		more = false;
		for (size_t i = 0; i < n && s->ntids < THREADS_MAX; i++) {
			int leaders[RFL_PERF_GROUPS_MAX];

			if (has_tid(s, s->seen[i]))
				continue;
			memset(leaders, -1, sizeof(leaders));
			for (size_t k = 0; k < s->plan->n; k++) {
				int alone = -1;

				if (is_counted(s, k, false))
					open_one(s, k, items[k].targets, s->seen[i],
						 items[k].event.group > 0
							 ? &leaders[items[k].event.group]
							 : &alone);
			}
			s->tids[s->ntids++] = s->seen[i];
			more = true;
		}
	}
	for (size_t i = 0; i < s->plan->n; i++)
		for (size_t k = 0; k < items[i].ntargets; k++) {
			int alone = -1;

			if (is_counted(s, i, true))
				open_one(s, i, &items[i].targets[k], -1, &alone);
		}
}

static void control_all(struct session *s, unsigned long request)
{
	for (size_t i = 0; i < s->nhandles; i++) {
		const struct handle *h = &s->handles[i];
		struct rfl_perf_item *item = &s->plan->items[h->item];

		/* a dropped event may still lead others */
		if (h->leads && s->sys->control(s->sys->ctx, h->fd, request) != 0 && !item->reason)
			item->reason = "an open event could not be switched on or off";
	}
}

/* Run the workload once per pass, and restore its state in between. Events that cannot be opened
 * get their reason in the plan.
 * @param s  zeroed; release it with session_fini() even after a failure */
static enum rfl_rc session_run(struct session *s, struct rfl_perf_plan *plan,
			       const struct rfl_workload *w, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	s->ranges = (struct rfl_ranges){ .begin = ranges_begin };
	s->plan = plan;
	s->sys = plan->env->sys;
	s->at = SIZE_MAX;
	s->tids = rfl_arena_array(plan->arena, THREADS_MAX, sizeof(*s->tids));
	s->seen = rfl_arena_array(plan->arena, THREADS_MAX, sizeof(*s->seen));
	if (!s->tids || !s->seen)
		return no_memory(err);
	if (plan->passes > 1 && w->save)
		rc = w->save(w->ctx, err);
	for (s->pass = 0; s->pass < plan->passes && rc == RFL_OK; s->pass++) {
		size_t n, stayed = 0, vanished;

		if (s->pass > 0 && w->restore && (rc = w->restore(w->ctx, err)) != RFL_OK)
			break;
		open_all(s);
		if (plan->no_memory) {
			close_all(s);
			return no_memory(err);
		}
		control_all(s, PERF_EVENT_IOC_ENABLE);
		rc = w->run(w->ctx, &s->ranges, err);
		end_span(s);
		control_all(s, PERF_EVENT_IOC_DISABLE);
		n = look(s);
		for (size_t i = 0; i < n; i++)
			stayed += has_tid(s, s->seen[i]);
		vanished = s->ntids > stayed ? s->ntids - stayed : 0;
		s->threads = s->ntids > s->threads ? s->ntids : s->threads;
		s->appeared = n - stayed > s->appeared ? n - stayed : s->appeared;
		s->vanished = vanished > s->vanished ? vanished : s->vanished;
		close_all(s);
	}
	return rc;
}

static void session_fini(struct session *s)
{
	free(s->spans);
	free(s->handles);
}

/* ---- a capture ---- */

/* The value of an item in a range, its validity, and the reason or caveat. */
static enum rfl_validity judge(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item,
			       const struct rfl_perf_tally *tally, double *value,
			       const char **reason)
{
	enum rfl_validity validity = RFL_VALID;
	const char *note = NULL, *text = NULL;
	double share;

	*value = NAN;
	*reason = item->reason;
	if (item->reason)
		return RFL_VALID_UNAVAILABLE;
	if (item->partial) {
		/* perf counts the time on E-cores as time without a counter: do not scale, report
		 * the raw count as a lower bound */
		*reason = "counted on P-cores only, where no thread ran or none had a counter";
		if (!(tally->running_s > 0))
			return RFL_VALID_UNAVAILABLE;
		*value = tally->read * item->event.scale;
		note = "counted on P-cores only: work on E-cores is missing";
		validity = RFL_VALID_PARTIAL;
	} else {
		*value = rfl_perf_tally_value(tally, &share) * item->event.scale;
		if (isnan(*value) || share < SHARE_MIN) {
			*value = NAN;
			validity = RFL_VALID_UNAVAILABLE;
			note = "more events than counters, or another profiler or the NMI watchdog "
			       "uses some; values below 50 % are rejected";
		} else if (share < SHARE_WHOLE) {
			validity = RFL_VALID_SCALED;
			note = "scaled to the whole time";
		}
		if (note)
			text = rfl_arena_printf(plan->arena, "counted for %.3g %% of the time: %s",
						100 * share, note);
		note = text ? text : note;
	}
	if (item->user_only && validity != RFL_VALID_UNAVAILABLE) {
		text = note ? rfl_arena_printf(plan->arena, "%s; user mode only", note)
			    : "user mode only, because of perf_event_paranoid";
		note = text ? text : note;
	}
	*reason = note;
	return validity;
}

static enum rfl_rc put_spans(struct rfl_capture_builder *b, const struct session *s,
			     struct rfl_err *err)
{
	enum rfl_rc rc;

	for (const struct span *span = s->spans; span < s->spans + s->nspans; span++) {
		rc = rfl_capture_begin(b, span->kind, span->name, NULL, NULL, err);
		if (rc != RFL_OK)
			return rc;
		rfl_capture_launches(b, span->launches);
		rfl_capture_put(b, "duration_time", "s", span->time_s, RFL_VALID, 0, NULL);
		for (size_t i = 0; i < s->plan->n; i++) {
			const struct rfl_perf_item *item = &s->plan->items[i];
			const char *reason;
			double value;
			const enum rfl_validity validity =
				judge(s->plan, item, &span->tallies[i], &value, &reason);

			rfl_capture_put(b, item->event.name, item->event.unit, value, validity,
					item->reason ? -1 : item->pass, reason);
		}
	}
	return RFL_OK;
}

/* @param idle  whether the capture has an idle range, because DRAM was counted */
static void add_notes(struct rfl_capture_builder *b, bool idle, const struct session *s)
{
	const struct rfl_perf_plan *p = s->plan;
	const double rate_b_per_s = rfl_capture_so_far(b, RFL_RANGE_IDLE, RFL_QUANTITY_DRAM) /
				    rfl_capture_so_far(b, RFL_RANGE_IDLE, RFL_QUANTITY_TIME);
	const double reading_s = s->readings > 0 ? s->reading_s / (double)s->readings : 0;
	double shortest_s = NAN; /* mean time of the shortest range */
	char first[64], second[64];
	const char *reason = NULL; /* reason of the first hardware event that cannot be counted */

	for (const struct span *span = s->spans; span < s->spans + s->nspans; span++)
		if (span->launches > 0)
			shortest_s = fmin(shortest_s, span->time_s / (double)span->launches);
	for (size_t i = p->n; i-- > 0;)
		if (p->items[i].reason && p->items[i].event.type != PERF_TYPE_SOFTWARE)
			reason = p->items[i].reason;
	if (idle && isnan(rate_b_per_s))
		rfl_capture_note(b, "DRAM bytes cover whole sockets and all processes; the share "
				    "of other processes is unknown");
	else if (idle)
		rfl_capture_note(b,
				 "DRAM bytes cover whole sockets and all processes; while this "
				 "process was idle for %.3g s, the rate was %s",
				 IDLE_S, rfl_num_si(rate_b_per_s, "B/s", 3, first, sizeof(first)));
	if (rfl_perf_plan_usable(p, true) == 0 && reason)
		rfl_capture_note(b, "only software events of the kernel were counted: %s", reason);
	if (p->cpu->no_flops)
		rfl_capture_note(b, "%s: %s", p->cpu->name, p->cpu->no_flops);
	if (s->appeared > 0 || s->vanished > 0)
		rfl_capture_note(b,
				 "of %zu threads, %zu ended and %zu began during the run: new "
				 "threads are counted only if a counted thread started them",
				 s->threads, s->vanished, s->appeared);
	if (reading_s > COST_MAX * shortest_s)
		rfl_capture_note(b,
				 "reading the counters takes %s at each range boundary, more than "
				 "1 %% of the shortest range (%s): count larger ranges",
				 rfl_num_si(reading_s, "s", 3, first, sizeof(first)),
				 rfl_num_si(shortest_s, "s", 3, second, sizeof(second)));
	if (p->passes > 1)
		rfl_capture_note(b,
				 "counted in %d runs of the same step: this processor has fewer "
				 "counters than events",
				 p->passes);
}

static enum rfl_rc rest(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	const struct rfl_perf_sys *sys = ctx;
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_IDLE, "idle", err);

	if (rc == RFL_OK)
		sys->rest(sys->ctx, IDLE_S);
	return rc;
}

enum rfl_rc rfl_source_perf__measure(const struct rfl_perf_env *env,
				     const struct rfl_source_request *request,
				     const struct rfl_workload *workload, struct rfl_captures *to,
				     struct rfl_err *err)
{
	struct rfl_perf_plan *plan = NULL;
	struct rfl_capture_builder *b = NULL;
	struct session idle = { .nspans = 0 }, s = { .nspans = 0 };
	const struct rfl_workload resting = { .run = rest, .ctx = (void *)(uintptr_t)env->sys };
	struct rfl_capture_spec spec = { .source = "perf",
					 .label = request->label,
					 .all_metrics = true };
	bool counts_dram = false;
	enum rfl_rc rc = rfl_perf_plan_new(env, request->precision, &plan, err);

	if (rc != RFL_OK)
		goto done;
	spec.formulas = plan->formulas;
	if ((rc = rfl_capture_builder_new(&spec, &b, err)) != RFL_OK)
		goto done;
	if (rfl_perf_plan_usable(plan, false) == 0) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s",
			      plan->n > 0 ? plan->items[0].reason : "there are no events to count");
		goto done;
	}
	for (size_t i = 0; i < plan->n; i++)
		counts_dram = counts_dram || (plan->items[i].is_uncore && !plan->items[i].reason);
	if ((counts_dram && (rc = session_run(&idle, plan, &resting, err)) != RFL_OK) ||
	    (rc = session_run(&s, plan, workload, err)) != RFL_OK)
		goto done;
	rfl_capture_chip(b, plan->cpu->name, env->brand[0] ? env->brand : NULL);
	if ((counts_dram && (rc = put_spans(b, &idle, err)) != RFL_OK) ||
	    (rc = put_spans(b, &s, err)) != RFL_OK)
		goto done;
	add_notes(b, counts_dram, &s);
	rfl_capture_steps(b, 1, plan->passes);
	rfl_capture_finish(b, to);
done:
	session_fini(&idle);
	session_fini(&s);
	rfl_capture_builder_free(b);
	rfl_perf_plan_free(plan);
	return rc;
}

static enum rfl_rc measure(const struct rfl_source_request *request,
			   const struct rfl_workload *workload, struct rfl_captures *to,
			   struct rfl_err *err)
{
	struct rfl_perf_env env;

	rfl_perf_env_init(&env);
	return rfl_source_perf__measure(&env, request, workload, to, err);
}

/* ---- status ---- */

static void keep(char *out, size_t size, const char *text)
{
	if (out[0] == '\0' && text)
		snprintf(out, size, "%s", text);
}

enum rfl_rc rfl_perf_look__at(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_status *ret, struct rfl_err *err)
{
	struct rfl_perf_plan *plan = NULL;
	enum rfl_rc rc = rfl_perf_plan_new(env, precision, &plan, err);

	if (rc != RFL_OK)
		return rc;
	*ret = (struct rfl_perf_status){ .paranoid = rfl_perf_paranoid(env->sys->root) };
	snprintf(ret->processor, sizeof(ret->processor), "%s", plan->cpu->name);
	ret->hardware = rfl_perf_plan_usable(plan, true);
	ret->software = rfl_perf_plan_usable(plan, false) - ret->hardware;
	keep(ret->no_flops, sizeof(ret->no_flops), plan->cpu->no_flops);
	keep(ret->no_dram, sizeof(ret->no_dram), plan->no_dram);
	for (size_t i = 0; i < plan->n; i++) {
		const struct rfl_perf_item *item = &plan->items[i];

		ret->flops += item->event.is_flops && !item->reason;
		ret->dram += item->is_uncore && !item->reason;
		if (item->event.is_flops)
			keep(ret->no_flops, sizeof(ret->no_flops), item->reason);
		if (!item->is_uncore && item->event.type != PERF_TYPE_SOFTWARE)
			keep(ret->no_hardware, sizeof(ret->no_hardware), item->reason);
	}
	if (ret->software + ret->hardware == 0 && plan->n > 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s", plan->items[0].reason);
	rfl_perf_plan_free(plan);
	return rc;
}

enum rfl_rc rfl_perf_look(struct rfl_perf_status *ret, struct rfl_err *err)
{
	struct rfl_perf_env env;

	rfl_perf_env_init(&env);
	return rfl_perf_look__at(&env, NULL, ret, err);
}

static enum rfl_rc probe(const struct rfl_source_request *request, struct rfl_err *err)
{
	struct rfl_perf_status status;

	(void)request;
	return rfl_perf_look(&status, err);
}

const struct rfl_source_ops rfl_source_perf = {
	.name = "perf",
	.summary = "hardware and kernel counters of processors: FLOPs, DRAM bytes, cycles, "
		   "instructions, cache misses",
	.device = "cpu",
	.probe = probe,
	.measure = measure,
};
