/*
 * source.c - the live source for CPUs: runs the workload once per pass of the plan, and turns
 * the counts into a capture.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "profile/perf/impl.h"

/* fractions of the time in which an event was counted */
#define SHARE_MIN   0.5   /* reject values with a smaller share */
#define SHARE_WHOLE 0.999 /* above this share, an event was not multiplexed */
#define IDLE_S      0.1
#define COST_MAX    0.01 /* add a note if reading the counters takes a larger share of a range */
/* for programs: */
#define SHARE_MIN_ASKED 0.05 /* SHARE_MIN with --multiplex */
#define RUNS_DIFFER     0.03 /* runs whose instructions differ by more are not combined */
#define IDLE_MAX        0.2  /* share of other programs in the DRAM bytes */

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
	size_t nadded;
	struct added {
		const char *metric, *unit, *reason;
		double value;
	} * added; /* by the workload */
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
	size_t nspans;
	size_t at;    /* the current range; SIZE_MAX: none */
	size_t outer; /* the process around it; SIZE_MAX: none */
	double since_s, outer_since_s;
	int pass;
	int tid;                             /* of a started process; 0: this process is counted */
	double checked[RFL_PERF_GROUPS_MAX]; /* count of plan->check in each pass */

	size_t threads;            /* counted from the start */
	size_t appeared, vanished; /* threads that started or ended while it ran */
	double reading_s;          /* total time of all readings */
	size_t readings;
};

double rfl_perf_tally_value(const struct rfl_perf_tally *t, double *share)
{
	const double whole = t->enabled_s + t->lost_s;

	*share = whole > 0 ? t->running_s / whole : 0;
	if (!(t->enabled_s > 0))
		return NAN;
	return t->lost_s > 0 ? t->value * (whole / t->enabled_s) : t->value;
}

static void add_reading(struct rfl_perf_tally *t, const struct rfl_perf_reading *last,
			const struct rfl_perf_reading *now)
{
	const double value = (double)(now->value - last->value);
	const double enabled_s = (double)(now->enabled_ns - last->enabled_ns) * 1e-9;
	const double running_s = (double)(now->running_ns - last->running_ns) * 1e-9;

	t->read += value;
	if (running_s > 0) {
		t->value += running_s < enabled_s ? value * (enabled_s / running_s) : value;
		t->enabled_s += enabled_s;
		t->running_s += fmin(running_s, enabled_s);
	} else {
		t->lost_s += enabled_s;
	}
}

/* Read every event, and add the increase since the last reading to the current ranges. */
static void read_all(struct session *s)
{
	const double start = s->sys->now_s(s->sys->ctx);
	const size_t spans[] = { s->at, s->outer };

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
		for (size_t k = 0; k < RFL_ARRAY_LEN(spans); k++)
			if (spans[k] != SIZE_MAX && item->pass == s->pass)
				add_reading(&s->spans[spans[k]].tallies[h->item], &h->last, &now);
		if (h->item == s->plan->check && (s->at != SIZE_MAX || s->outer != SIZE_MAX))
			s->checked[s->pass] += (double)(now.value - h->last.value);
		h->last = now;
	}
	s->reading_s += s->sys->now_s(s->sys->ctx) - start;
	s->readings++;
}

/* End a range, whose counts have been read. */
static void close_span(struct session *s, size_t *at, double since_s, double now_s)
{
	if (*at != SIZE_MAX && s->pass == 0) {
		s->spans[*at].time_s += now_s - since_s;
		s->spans[*at].launches++;
	}
	*at = SIZE_MAX;
}

static void ranges_end(struct rfl_ranges *r)
{
	struct session *s = (struct session *)r;
	const double now_s = s->sys->now_s(s->sys->ctx);

	if (s->at == SIZE_MAX)
		return;
	read_all(s);
	close_span(s, &s->at, s->since_s, now_s);
}

static void end_all(struct session *s)
{
	const double now_s = s->sys->now_s(s->sys->ctx);

	if (s->at == SIZE_MAX && s->outer == SIZE_MAX)
		return;
	read_all(s);
	close_span(s, &s->at, s->since_s, now_s);
	close_span(s, &s->outer, s->outer_since_s, now_s);
}

static enum rfl_rc ranges_begin(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
				struct rfl_err *err)
{
	struct session *s = (struct session *)r;
	const bool fresh = s->at == SIZE_MAX;
	size_t at = 0;

	(void)err;
	ranges_end(r); /* the readings at the end of the previous range also begin this one */
	while (at < s->nspans &&
	       (s->spans[at].kind != kind || strcmp(s->spans[at].name, name) != 0))
		at++;
	if (at == s->nspans) {
		struct rfl_arena *arena = s->plan->arena;
		struct span *span = rfl_arena_append(arena, &s->spans, &s->nspans);

		span->kind = kind;
		span->name = rfl_arena_strdup(arena, name);
		span->tallies = rfl_arena_array(arena, s->plan->n, sizeof(*span->tallies));
	}
	if (fresh)
		read_all(s);
	if (kind == RFL_RANGE_PROCESS) {
		s->outer = at;
		s->outer_since_s = s->sys->now_s(s->sys->ctx);
	} else {
		s->at = at;
		s->since_s = s->sys->now_s(s->sys->ctx);
	}
	return RFL_OK;
}

static void ranges_add(struct rfl_ranges *r, const char *metric, const char *unit, double value,
		       const char *reason)
{
	struct session *s = (struct session *)r;
	const size_t at = s->at != SIZE_MAX ? s->at : s->outer;
	struct span *span = at != SIZE_MAX ? &s->spans[at] : NULL;
	size_t i = 0;

	if (!span || s->pass > 0)
		return;
	while (i < span->nadded && strcmp(span->added[i].metric, metric) != 0)
		i++;
	if (i == span->nadded)
		*(struct added *)rfl_arena_append(s->plan->arena, &span->added, &span->nadded) =
			(struct added){ .metric = metric, .unit = unit, .reason = reason };
	span->added[i].value += value;
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

	return !it->reason && it->is_uncore == uncore &&
	       (it->pass == s->pass || item == s->plan->check);
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
	plan->items[out].reason = rfl_perf_refusal(plan, &plan->items[out], error, s->nthreads);
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
	attr.enable_on_exec = leads && s->tid > 0 && t->cpu < 0;
	while (!s->plan->items[item].reason) {
		const int fd = s->sys->open(s->sys->ctx, &attr, tid, t->cpu, *leader);

		if (fd < 0 && errno == ESRCH)
			return; /* the thread is gone */
		if (fd < 0) {
			refuse(s, item, errno);
			continue;
		}
		if (leads)
			*leader = fd;
		rfl_arena_reserve(s->plan->arena, &s->handles, &s->handles_cap, s->nhandles + 1);
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
	if (s->tid > 0) {
		s->seen[0] = s->tid;
		s->nthreads = 1;
		return 1;
	}
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

		/* a dropped event may still lead others; a started process enables its events */
		if (h->leads && (s->tid == 0 || item->is_uncore) &&
		    s->sys->control(s->sys->ctx, h->fd, request) != 0 && !item->reason)
			item->reason = "an open event could not be switched on or off";
	}
}

/* Drop the events of runs that did not do the same work as the first. */
static void compare_runs(struct session *s)
{
	struct rfl_perf_plan *plan = s->plan;

	if (plan->check == SIZE_MAX || plan->items[plan->check].reason)
		return;
	for (struct rfl_perf_item *item = plan->items; item < plan->items + plan->n; item++) {
		const double ratio = s->checked[item->pass] / s->checked[0];

		if (item->pass > 0 && !item->reason && !(fabs(ratio - 1) <= RUNS_DIFFER))
			item->reason = rfl_arena_printf(
				plan->arena,
				"run %d executed %.3g times the instructions of the first run, so "
				"their counts are not combined; fix the seed and the number of "
				"threads, or use --multiplex",
				item->pass + 1, ratio);
	}
}

/* Run the workload once per pass, and restore its state in between. Events that cannot be opened
 * get their reason in the plan. @param s  zeroed */
static enum rfl_rc session_run(struct session *s, struct rfl_perf_plan *plan,
			       const struct rfl_workload *w, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	s->ranges =
		(struct rfl_ranges){ .begin = ranges_begin, .end = ranges_end, .add = ranges_add };
	s->plan = plan;
	s->sys = plan->env->sys;
	s->at = s->outer = SIZE_MAX;
	s->tids = rfl_arena_array(plan->arena, THREADS_MAX, sizeof(*s->tids));
	s->seen = rfl_arena_array(plan->arena, THREADS_MAX, sizeof(*s->seen));
	if (plan->passes > 1 && w->save)
		rc = w->save(w->ctx, err);
	for (s->pass = 0; s->pass < plan->passes && rc == RFL_OK; s->pass++) {
		size_t n, stayed = 0, vanished;

		if (s->pass > 0 && w->restore && (rc = w->restore(w->ctx, err)) != RFL_OK)
			break;
		if (w->start && (rc = w->start(w->ctx, &s->tid, err)) != RFL_OK)
			break;
		open_all(s);
		control_all(s, PERF_EVENT_IOC_ENABLE);
		rc = w->run(w->ctx, &s->ranges, err);
		end_all(s);
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
	if (w->start && rc == RFL_OK)
		compare_runs(s);
	return rc;
}

/* ---- a capture ---- */

/* The value of an item in a range, its validity, and the reason or caveat. */
static enum rfl_validity judge(const struct rfl_perf_plan *plan, const struct rfl_perf_item *item,
			       const struct rfl_perf_tally *tally, double *value,
			       const char **reason)
{
	enum rfl_validity validity = RFL_VALID;
	const char *note = NULL;
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
		if (isnan(*value) || share < (plan->env->multiplex ? SHARE_MIN_ASKED : SHARE_MIN)) {
			*value = NAN;
			validity = RFL_VALID_UNAVAILABLE;
			note = plan->env->multiplex
				       ? "values below 5 % are rejected; omit --multiplex"
				       : "more events than counters, or another profiler or the "
					 "NMI watchdog uses some; values below 50 % are rejected";
		} else if (share < SHARE_WHOLE) {
			validity = RFL_VALID_SCALED;
			note = "scaled to the whole time";
		}
		if (note)
			note = rfl_arena_printf(plan->arena, "counted for %.3g %% of the time: %s",
						100 * share, note);
	}
	if (item->user_only && validity != RFL_VALID_UNAVAILABLE)
		note = note ? rfl_arena_printf(plan->arena, "%s; user mode only", note)
			    : "user mode only, because of perf_event_paranoid";
	*reason = note;
	return validity;
}

/* Subtract the traffic of other programs from the DRAM bytes of a program's range.
 * @param idle  counted while nothing of the program ran */
static enum rfl_validity less_idle(const struct session *s, const struct session *idle,
				   const struct span *span, size_t item, double *value,
				   const char **reason)
{
	const struct span *rest = idle->nspans > 0 ? &idle->spans[0] : NULL;
	double all = 0, others = 0, mine = 0, share;

	for (size_t i = 0; i < s->plan->n && rest && rest->time_s > 0; i++) {
		const struct rfl_perf_item *it = &s->plan->items[i];
		double other;

		if (!it->is_uncore || it->reason)
			continue;
		other = rfl_perf_tally_value(&rest->tallies[i], &share) * span->time_s /
			rest->time_s * it->event.scale;
		all += rfl_perf_tally_value(&span->tallies[i], &share) * it->event.scale;
		others += other;
		mine = i == item ? other : mine;
	}
	if (rest && all == 0) /* nothing was moved */
		return RFL_VALID;
	share = rest ? others / all : (double)NAN;
	if (!(share <= IDLE_MAX)) {
		*value = NAN;
		*reason = isnan(share) ? "the traffic of other programs could not be counted; "
					 "repeat the run without other profilers"
				       : rfl_arena_printf(s->plan->arena,
							  "other programs cause %.3g %% of these "
							  "bytes, as measured before the run; stop "
							  "them, or count a longer run",
							  100 * share);
		return RFL_VALID_UNAVAILABLE;
	}
	*value = fmax(*value - mine, 0);
	*reason = rfl_arena_printf(s->plan->arena,
				   "%s%sof whole sockets, minus %.3g %% by other programs, as "
				   "measured before the run",
				   *reason ? *reason : "", *reason ? "; " : "", 100 * share);
	return RFL_VALID;
}

/* @param idle  subtracted from the DRAM bytes of a program; NULL: nothing */
static void put_spans(struct rfl_capture_builder *b, const struct session *s,
		      const struct session *idle)
{
	for (const struct span *span = s->spans; span < s->spans + s->nspans; span++) {
		rfl_capture_begin(b, span->kind, span->name, NULL, NULL);
		rfl_capture_launches(b, span->launches);
		rfl_capture_put(b, "duration_time", "s", span->time_s, RFL_VALID, 0, NULL);
		for (size_t i = 0; i < s->plan->n; i++) {
			const struct rfl_perf_item *item = &s->plan->items[i];
			const char *reason;
			double value;
			enum rfl_validity validity =
				judge(s->plan, item, &span->tallies[i], &value, &reason);

			if (idle && item->is_uncore && !isnan(value) &&
			    less_idle(s, idle, span, i, &value, &reason) != RFL_VALID)
				validity = RFL_VALID_UNAVAILABLE;
			rfl_capture_put(b, item->event.name, item->event.unit, value, validity,
					item->reason ? -1 : item->pass, reason);
		}
		for (const struct added *a = span->added; a < span->added + span->nadded; a++)
			rfl_capture_put(b, a->metric, a->unit, a->value,
					a->reason ? RFL_VALID_ESTIMATE : RFL_VALID, 0, a->reason);
	}
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
	else if (idle && s->tid == 0)
		rfl_capture_note(b,
				 "DRAM bytes cover whole sockets and all processes; while this "
				 "process was idle for %.3g s, the rate was %s",
				 IDLE_S, rfl_num_si(rate_b_per_s, "B/s", 3, first, sizeof(first)));
	if (rfl_perf_plan_usable(p, true) == 0 && reason)
		rfl_capture_note(b, "only software events of the kernel were counted: %s", reason);
	if (p->cpu->no_flops)
		rfl_capture_note(b, "%s: %s", p->cpu->name, p->cpu->no_flops);
	if (s->tid == 0 && (s->appeared > 0 || s->vanished > 0))
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
				 "counted in %d runs of the same %s: this CPU has fewer "
				 "counters than events",
				 p->passes, s->tid > 0 ? "program" : "step");
}

static enum rfl_rc rest(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	const struct rfl_perf_sys *sys = ctx;
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_IDLE, "idle", err);

	if (rc == RFL_OK)
		sys->rest(sys->ctx, IDLE_S);
	return rc;
}

static void refuse_by_request(struct rfl_perf_plan *plan, const struct rfl_source_request *request)
{
	for (struct rfl_perf_item *item = plan->items; item < plan->items + plan->n; item++) {
		if (request->no_events)
			item->reason = request->no_events;
		else if (item->event.is_flops && request->no_flops)
			item->reason = request->no_flops;
		else if (item->is_uncore && request->no_dram)
			item->reason = request->no_dram;
	}
	if (request->no_events)
		plan->passes = 1;
}

enum rfl_rc rfl_source_perf__measure(const struct rfl_perf_env *env,
				     const struct rfl_source_request *request,
				     const struct rfl_workload *workload, struct rfl_captures *to,
				     struct rfl_err *err)
{
	RFL_AUTOPTR(perf_plan) plan = NULL;
	struct session idle = { .nspans = 0 }, s = { .nspans = 0 };
	const struct rfl_workload resting = { .run = rest, .ctx = (void *)(uintptr_t)env->sys };
	bool counts_dram = false;
	struct rfl_perf_env how = *env;

	how.program = workload->start != NULL;
	how.multiplex = request->multiplex;
	enum rfl_rc rc = rfl_perf_plan_new(&how, request->precision, &plan, err);

	if (rc != RFL_OK)
		return rc;
	refuse_by_request(plan, request);
	if (rfl_perf_plan_usable(plan, false) == 0 && !workload->start)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s",
			      plan->n > 0 ? plan->items[0].reason : "there are no events to count");
	for (size_t i = 0; i < plan->n; i++)
		counts_dram = counts_dram || (plan->items[i].is_uncore && !plan->items[i].reason);
	if (rc == RFL_OK && counts_dram)
		rc = session_run(&idle, plan, &resting, err);
	if (rc == RFL_OK)
		rc = session_run(&s, plan, workload, err);
	if (rc == RFL_OK) {
		struct rfl_capture_builder *b = rfl_capture_builder_new(
			&(struct rfl_capture_spec){ .source = "perf",
						    .label = request->label,
						    .formulas = plan->formulas,
						    .all_metrics = true });

		rfl_capture_chip(b, plan->cpu->name, env->brand[0] ? env->brand : NULL);
		put_spans(b, &idle, NULL);
		put_spans(b, &s, s.tid > 0 ? &idle : NULL);
		add_notes(b, counts_dram, &s);
		rfl_capture_steps(b, 1, plan->passes);
		rc = rfl_capture_finish(b, to, err);
	}
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
	RFL_AUTOPTR(perf_plan) plan = NULL;
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
	.summary = "hardware and kernel counters of CPUs: FLOPs, DRAM bytes, cycles, "
		   "instructions, cache misses",
	.device = "cpu",
	.probe = probe,
	.measure = measure,
};
