/*
 * session.c - opening, reading and closing the events of one pass.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/perf/impl.h"

#define THREADS_MAX 16384
#define ROUNDS_MAX  8 /* of looking for threads that appeared while events were opened */

/* One open event. */
struct handle {
	int fd;
	size_t item;
	bool leads;
	struct rfl_perf_reading last;
};

struct rfl_perf_session {
	struct rfl_ranges ranges; /* first: what the workload is given */
	struct rfl_perf_plan *plan;
	const struct rfl_perf_sys *sys;

	struct handle *handles;
	size_t nhandles, handles_cap;
	int *tids; /* whose events are open */
	size_t ntids;
	int *seen;       /* those that there are now */
	size_t nthreads; /* how many */

	struct rfl_perf_span *spans;
	size_t nspans, spans_cap;
	size_t at; /* the range that is counted now; SIZE_MAX: none */
	double since_s;
	int pass;

	struct rfl_perf_facts facts;
	double reading_s; /* all boundaries */
	size_t readings;
};

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for perf events");
}

/* ---- reading ---- */

static void add_reading(struct rfl_perf_tally *t, const struct rfl_perf_reading *from,
			const struct rfl_perf_reading *to)
{
	const double value = (double)(to->value - from->value);
	const double enabled = (double)(to->enabled_ns - from->enabled_ns) * 1e-9;
	const double running = (double)(to->running_ns - from->running_ns) * 1e-9;

	t->read += value;
	if (running > 0) {
		t->value += running < enabled ? value * (enabled / running) : value;
		t->enabled_s += enabled;
		t->running_s += running < enabled ? running : enabled;
	} else {
		t->lost_s += enabled;
	}
}

double rfl_perf_tally_value(const struct rfl_perf_tally *t, double *share)
{
	const double whole = t->enabled_s + t->lost_s;

	*share = whole > 0 ? t->running_s / whole : 0;
	if (!(t->enabled_s > 0))
		return NAN;
	return t->lost_s > 0 ? t->value * (whole / t->enabled_s) : t->value;
}

/* Read every event; add what came since the last time to `span`, unless it is NULL. */
static void read_all(struct rfl_perf_session *s, struct rfl_perf_span *span)
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
			span->tallies[h->item].pass = s->pass;
			add_reading(&span->tallies[h->item], &h->last, &now);
		}
		h->last = now;
	}
	s->reading_s += s->sys->now_s(s->sys->ctx) - start;
	s->readings++;
}

/* ---- ranges ---- */

/* The number of a range, made when there is none. */
static enum rfl_rc span_of(struct rfl_perf_session *s, enum rfl_range_kind kind, const char *name,
			   size_t *ret, struct rfl_err *err)
{
	struct rfl_perf_span span = { .kind = kind };

	for (size_t i = 0; i < s->nspans; i++) {
		if (s->spans[i].kind == kind && strcmp(s->spans[i].name, name) == 0) {
			*ret = i;
			return RFL_OK;
		}
	}
	span.name = strdup(name);
	span.tallies = rfl_alloc_array(s->plan->n > 0 ? s->plan->n : 1, sizeof(*span.tallies));
	if (!span.name || !span.tallies ||
	    rfl_grow(&s->spans, &s->spans_cap, s->nspans + 1, SIZE_MAX, NULL) != RFL_OK) {
		free(span.name);
		free(span.tallies);
		return no_memory(err);
	}
	*ret = s->nspans;
	s->spans[s->nspans++] = span;
	return RFL_OK;
}

static void end_span(struct rfl_perf_session *s)
{
	struct rfl_perf_span *span;

	if (s->at == SIZE_MAX)
		return;
	span = &s->spans[s->at];
	if (s->pass == 0) {
		span->time_s += s->sys->now_s(s->sys->ctx) - s->since_s;
		span->launches++;
	}
	read_all(s, span);
	s->at = SIZE_MAX;
}

static enum rfl_rc ranges_end(struct rfl_ranges *r, struct rfl_err *err)
{
	(void)err;
	end_span((struct rfl_perf_session *)r);
	return RFL_OK;
}

static enum rfl_rc ranges_begin(struct rfl_ranges *r, enum rfl_range_kind kind, const char *name,
				struct rfl_err *err)
{
	struct rfl_perf_session *s = (struct rfl_perf_session *)r;
	const bool fresh = s->at == SIZE_MAX;
	size_t at = SIZE_MAX;
	enum rfl_rc rc;

	end_span(s); /* its readings are where this one starts */
	rc = span_of(s, kind, name, &at, err);
	if (rc != RFL_OK)
		return rc;
	if (fresh)
		read_all(s, NULL);
	s->at = at;
	s->since_s = s->sys->now_s(s->sys->ctx);
	return RFL_OK;
}

/* ---- opening and closing ---- */

static void close_all(struct rfl_perf_session *s)
{
	for (size_t i = 0; i < s->nhandles; i++)
		s->sys->close(s->sys->ctx, s->handles[i].fd);
	s->nhandles = 0;
	s->ntids = 0;
}

static bool is_counted(const struct rfl_perf_session *s, size_t item, bool uncore)
{
	const struct rfl_perf_item *it = &s->plan->items[item];

	return !it->reason && it->pass == s->pass && it->is_uncore == uncore;
}

/* An item is out. What is open of it is closed, but for leaders, by which others count: the files
 * are needed where there are too few of them, by the workload as well. */
static void refuse(struct rfl_perf_session *s, size_t item, int error)
{
	size_t kept = 0;

	rfl_perf_refuse(s->plan, &s->plan->items[item], error, s->nthreads);
	for (size_t i = 0; i < s->nhandles; i++) {
		const struct handle h = s->handles[i];

		if (h.item == item && !(h.leads && s->plan->items[item].group > 0))
			s->sys->close(s->sys->ctx, h.fd);
		else
			s->handles[kept++] = h;
	}
	s->nhandles = kept;
}

/* Which event goes when there are too few files for all: the last in the table, FLOPs after all
 * others. */
static size_t least_important(const struct rfl_perf_session *s, size_t item)
{
	for (int flops = 0; flops <= 1 && !s->plan->items[item].is_uncore; flops++)
		for (size_t i = s->plan->n; i-- > 0;)
			if (is_counted(s, i, false) && s->plan->items[i].is_flops == flops)
				return i;
	return item;
}

/* Open one event; one that cannot be opened is out, in every thread. */
static void open_one(struct rfl_perf_session *s, size_t item, const struct rfl_perf_target *t,
		     int tid, int *leader)
{
	const bool leads = *leader < 0;
	struct perf_event_attr attr;

	rfl_perf_attr(&s->plan->items[item], t, leads, &attr);
	while (!s->plan->no_memory && !s->plan->items[item].reason) {
		const int fd = s->sys->open(s->sys->ctx, &attr, tid, t->cpu, *leader);
		const int error = errno;

		if (fd < 0 && error == ESRCH)
			return; /* the thread is gone */
		if (fd < 0) {
			const bool files = error == EMFILE || error == ENFILE;

			refuse(s, files ? least_important(s, item) : item, error);
			continue;
		}
		if (leads)
			*leader = fd;
		if (rfl_grow(&s->handles, &s->handles_cap, s->nhandles + 1, SIZE_MAX, NULL) !=
		    RFL_OK) {
			s->sys->close(s->sys->ctx, fd);
			s->plan->no_memory = true;
			return;
		}
		s->handles[s->nhandles++] =
			(struct handle){ .fd = fd, .item = item, .leads = leads };
		return;
	}
}

/* The events of one thread; the members of a group after their leader. */
static void open_thread(struct rfl_perf_session *s, int tid)
{
	const struct rfl_perf_item *items = s->plan->items;
	uint64_t opened = 0; /* groups */

	for (size_t i = 0; i < s->plan->n; i++) {
		const int group = items[i].group;
		int leader = -1;

		if (!is_counted(s, i, false) || (group > 0 && opened >> group & 1))
			continue;
		open_one(s, i, items[i].targets, tid, &leader);
		for (size_t k = i + 1; k < s->plan->n && group > 0; k++)
			if (is_counted(s, k, false) && items[k].group == group)
				open_one(s, k, items[k].targets, tid, &leader);
		if (group > 0)
			opened |= UINT64_C(1) << group;
	}
}

static bool has_tid(const struct rfl_perf_session *s, int tid)
{
	for (size_t i = 0; i < s->ntids; i++)
		if (s->tids[i] == tid)
			return true;
	return false;
}

/* Look which threads there are; returns how many of them are in `seen`. */
static size_t look(struct rfl_perf_session *s)
{
	s->nthreads = s->sys->threads(s->sys->ctx, s->seen, THREADS_MAX);
	return s->nthreads < THREADS_MAX ? s->nthreads : THREADS_MAX;
}

/* Open what exists, look again for what appeared meanwhile: a thread of which the parent was not
 * counted yet is inherited by no event. */
static void open_all(struct rfl_perf_session *s)
{
	bool more = true;

	for (int round = 0; round < ROUNDS_MAX && more; round++) {
		const size_t n = look(s);

		more = false;
		for (size_t i = 0; i < n && s->ntids < THREADS_MAX; i++) {
			if (has_tid(s, s->seen[i]))
				continue;
			open_thread(s, s->seen[i]);
			s->tids[s->ntids++] = s->seen[i];
			more = true;
		}
	}
	for (size_t i = 0; i < s->plan->n; i++) {
		const struct rfl_perf_item *item = &s->plan->items[i];

		for (size_t k = 0; k < item->ntargets; k++) {
			int alone = -1;

			if (is_counted(s, i, true))
				open_one(s, i, &item->targets[k], -1, &alone);
		}
	}
}

static void control_all(struct rfl_perf_session *s, unsigned long request)
{
	for (size_t i = 0; i < s->nhandles; i++) {
		const struct handle *h = &s->handles[i];
		struct rfl_perf_item *item = &s->plan->items[h->item];

		/* one that is out already may lead others */
		if (h->leads && s->sys->control(s->sys->ctx, h->fd, request) != 0 && !item->reason)
			item->reason = "an open event could not be switched on or off";
	}
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void note_threads(struct rfl_perf_session *s)
{
	const size_t n = look(s);
	size_t stayed = 0;

	for (size_t i = 0; i < n; i++)
		stayed += has_tid(s, s->seen[i]);
	s->facts.threads = larger(s->facts.threads, s->ntids);
	s->facts.appeared = larger(s->facts.appeared, n - stayed);
	if (s->ntids > stayed)
		s->facts.vanished = larger(s->facts.vanished, s->ntids - stayed);
}

enum rfl_rc rfl_perf_session_run(struct rfl_perf_session *s, int pass,
				 const struct rfl_workload *workload, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_ENOMEM;

	s->pass = pass;
	s->at = SIZE_MAX;
	open_all(s);
	if (s->plan->no_memory) {
		(void)no_memory(err);
	} else {
		control_all(s, PERF_EVENT_IOC_ENABLE);
		rc = workload->run(workload->ctx, &s->ranges, err);
		end_span(s);
		control_all(s, PERF_EVENT_IOC_DISABLE);
		note_threads(s);
	}
	close_all(s);
	return rc;
}

/* ---- the session ---- */

enum rfl_rc rfl_perf_session_new(struct rfl_perf_plan *plan, struct rfl_perf_session **ret,
				 struct rfl_err *err)
{
	struct rfl_perf_session *s = calloc(1, sizeof(*s));

	if (!s)
		return no_memory(err);
	s->ranges = (struct rfl_ranges){ .begin = ranges_begin, .end = ranges_end };
	s->plan = plan;
	s->sys = plan->env->sys;
	s->at = SIZE_MAX;
	s->tids = rfl_alloc_array(THREADS_MAX, sizeof(*s->tids));
	s->seen = rfl_alloc_array(THREADS_MAX, sizeof(*s->seen));
	if (!s->tids || !s->seen) {
		rfl_perf_session_free(s);
		return no_memory(err);
	}
	*ret = s;
	return RFL_OK;
}

void rfl_perf_session_free(struct rfl_perf_session *s)
{
	if (!s)
		return;
	close_all(s);
	for (size_t i = 0; i < s->nspans; i++) {
		free(s->spans[i].name);
		free(s->spans[i].tallies);
	}
	free(s->spans);
	free(s->handles);
	free(s->tids);
	free(s->seen);
	free(s);
}

const struct rfl_perf_span *rfl_perf_session_spans(const struct rfl_perf_session *s, size_t *n)
{
	*n = s->nspans;
	return s->spans;
}

struct rfl_perf_facts rfl_perf_session_facts(const struct rfl_perf_session *s)
{
	struct rfl_perf_facts facts = s->facts;

	facts.reading_s = s->readings > 0 ? s->reading_s / (double)s->readings : 0;
	facts.shortest_s = NAN;
	for (size_t i = 0; i < s->nspans; i++) {
		const struct rfl_perf_span *span = &s->spans[i];
		const double mean = span->time_s / (double)span->launches;

		if (span->launches > 0 && !(mean >= facts.shortest_s))
			facts.shortest_s = mean;
	}
	return facts;
}
