/*
 * fake_cuda_queue.c - streams, events, copies, captures and graphs of the fake driver. Work waits
 * in the queue of its stream until something waits for it, as on a GPU that is slower than the
 * program: one that forgets to wait, or reuses memory too early, gets wrong values. The default
 * stream works at once.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/fake_cuda.h"

#define complain(...) fake_script_complain(&fake_cuda_script, __VA_ARGS__)

/* A piece of work; or, with an event, its record or a wait for it. */
struct record {
	struct record *next;
	void (*run)(const void *argument);
	struct rfl_cuda_event *event;
	long wait; /* for so many records of the event; 0: this is one */
	size_t bytes;
	alignas(16) unsigned char argument[];
};
struct queue {
	struct record *first, **last;
};
struct rfl_cuda_event {
	double at_s;
	long issued, done; /* records */
	struct rfl_cuda_stream *stream;
	int references;
};
struct rfl_cuda_stream {
	struct rfl_cuda_stream *next;
	unsigned flags;
	struct queue queue;
	bool captured, invalid;
	pthread_t thread; /* that captures */
	struct queue graph;
};
struct rfl_cuda_graph {
	struct queue records;
};
struct rfl_cuda_graph_exec {
	struct queue records;
};

static struct rfl_cuda_stream *streams;
static struct fake_cuda_open open_now;

#define ENTER()                                          \
	do {                                             \
		int entered = fake_cuda_enter(__func__); \
		if (entered)                             \
			return entered;                  \
	} while (0)

/* ---- queues ---- */

static void release(struct rfl_cuda_event *event)
{
	if (event && --event->references == 0)
		free(event);
}

static void drop(struct record *r)
{
	release(r->event);
	free(r);
}

static int append(struct queue *q, const struct record *from, const void *argument)
{
	struct record *r = malloc(sizeof(*r) + from->bytes);

	if (!r)
		return RFL_CUDA_OUT_OF_MEMORY;
	*r = *from;
	r->next = NULL;
	if (from->bytes)
		memcpy(r->argument, argument, from->bytes);
	if (r->event)
		r->event->references++;
	if (!q->first)
		q->last = &q->first;
	*q->last = r;
	q->last = &r->next;
	return RFL_CUDA_SUCCESS;
}

static void empty(struct queue *q)
{
	for (struct record *r = q->first, *next; r; r = next) {
		next = r->next;
		drop(r);
	}
	q->first = NULL;
}

static int append_all(struct queue *to, const struct queue *from)
{
	int code = 0;

	for (const struct record *r = from->first; r && code == 0; r = r->next)
		code = append(to, r, r->argument);
	return code;
}

static void await(struct rfl_cuda_event *event, long records);

static void run_first(struct rfl_cuda_stream *s)
{
	struct record *r = s->queue.first;

	s->queue.first = r->next;
	if (!r->event)
		r->run(r->argument);
	else if (r->wait)
		await(r->event, r->wait);
	else {
		r->event->at_s = fake_cuda_clock();
		r->event->done++;
	}
	drop(r);
}

static void drain(struct rfl_cuda_stream *s)
{
	while (s->queue.first)
		run_first(s);
}

static void await(struct rfl_cuda_event *event, long records)
{
	while (event->done < records)
		run_first(event->stream);
}

void fake_cuda_drain(void)
{
	for (struct rfl_cuda_stream *s = streams; s; s = s->next)
		drain(s);
}

struct fake_cuda_open fake_cuda_queue_open(void)
{
	return open_now;
}

static void free_stream(struct rfl_cuda_stream *s)
{
	empty(&s->queue);
	empty(&s->graph);
	free(s);
}

void fake_cuda_queue_reset(void)
{
	for (struct rfl_cuda_stream *s = streams, *next; s; s = next) {
		next = s->next;
		free_stream(s);
	}
	streams = NULL;
	open_now = (struct fake_cuda_open){ .streams = 0 };
}

/* ---- what captures allow ---- */

static int invalidate(struct rfl_cuda_stream *s, const char *call, int code)
{
	complain("%s: not allowed during the capture of a stream", call);
	s->invalid = true;
	return code;
}

int fake_cuda_forbidden(const char *call)
{
	for (struct rfl_cuda_stream *s = streams; s; s = s->next)
		if (s->captured && pthread_equal(s->thread, pthread_self()))
			return invalidate(s, call, FAKE_CUDA_CAPTURE_UNSUPPORTED);
	return RFL_CUDA_SUCCESS;
}

int fake_cuda_settle(const char *call)
{
	const int code = fake_cuda_forbidden(call);

	if (code)
		return code;
	for (struct rfl_cuda_stream *s = streams; s; s = s->next) {
		if (s->flags & RFL_STREAM_NON_BLOCKING)
			continue;
		if (s->captured)
			return invalidate(s, call, FAKE_CUDA_CAPTURE_IMPLICIT);
		drain(s);
	}
	return RFL_CUDA_SUCCESS;
}

/* Is it a stream, and one that was not destroyed? */
static int check(const struct rfl_cuda_stream *stream, const char *call)
{
	const struct rfl_cuda_stream *s = streams;

	while (s && s != stream)
		s = s->next;
	if (s)
		return s->invalid ? FAKE_CUDA_CAPTURE_INVALIDATED : RFL_CUDA_SUCCESS;
	complain("%s: no such stream", call);
	return FAKE_CUDA_INVALID_HANDLE;
}

int fake_cuda_submit(struct rfl_cuda_stream *stream, void (*run)(const void *argument),
		     const void *argument, size_t bytes)
{
	const struct record r = { .run = run, .bytes = bytes };
	struct rfl_cuda_stream now = { .captured = false };
	int code;

	if (stream) {
		code = check(stream, "work");
		return code ? code
			    : append(stream->captured ? &stream->graph : &stream->queue, &r,
				     argument);
	}
	code = fake_cuda_settle("work on the default stream");
	if (code == 0)
		code = append(&now.queue, &r, argument);
	drain(&now);
	return code;
}

/* ---- streams ---- */

int cuStreamCreate(struct rfl_cuda_stream **ret, unsigned flags)
{
	struct rfl_cuda_stream *s;

	ENTER();
	if (flags & ~(unsigned)RFL_STREAM_NON_BLOCKING)
		return RFL_CUDA_INVALID_VALUE;
	s = calloc(1, sizeof(*s));
	if (!s)
		return RFL_CUDA_OUT_OF_MEMORY;
	s->flags = flags;
	s->next = streams;
	streams = s;
	open_now.streams++;
	*ret = s;
	return RFL_CUDA_SUCCESS;
}

int cuStreamDestroy_v2(struct rfl_cuda_stream *stream)
{
	int code = fake_script_enter(&fake_cuda_script, __func__);
	struct rfl_cuda_stream **at = &streams;

	if (check(stream, __func__) == FAKE_CUDA_INVALID_HANDLE)
		return FAKE_CUDA_INVALID_HANDLE;
	if (stream->captured)
		complain("%s: it is captured", __func__);
	drain(stream);
	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	open_now.streams--;
	free_stream(stream);
	return code;
}

int cuStreamSynchronize(struct rfl_cuda_stream *stream)
{
	int code;

	ENTER();
	code = stream ? check(stream, __func__) : fake_cuda_settle(__func__);
	if (code == 0)
		code = fake_cuda_forbidden(__func__);
	if (code == 0 && stream)
		drain(stream);
	return code;
}

/* ---- events ---- */

int cuEventCreate(struct rfl_cuda_event **ret, unsigned flags)
{
	ENTER();
	if (flags & ~3u) /* CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING */
		return RFL_CUDA_INVALID_VALUE;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return RFL_CUDA_OUT_OF_MEMORY;
	(*ret)->references = 1;
	open_now.events++;
	return RFL_CUDA_SUCCESS;
}

int cuEventDestroy_v2(struct rfl_cuda_event *event)
{
	int code = fake_script_enter(&fake_cuda_script, __func__);

	release(event);
	open_now.events--;
	return code;
}

int cuEventRecord(struct rfl_cuda_event *event, struct rfl_cuda_stream *stream)
{
	int code;

	ENTER();
	code = stream ? check(stream, __func__) : fake_cuda_settle(__func__);
	if (code)
		return code;
	if (stream && stream->captured) /* a real driver would record a dependence */
		return invalidate(stream, __func__, FAKE_CUDA_CAPTURE_UNSUPPORTED);
	await(event, event->issued);
	event->stream = stream;
	event->issued++;
	if (stream)
		return append(&stream->queue, &(struct record){ .event = event }, NULL);
	event->at_s = fake_cuda_clock();
	event->done = event->issued;
	return RFL_CUDA_SUCCESS;
}

int cuEventSynchronize(struct rfl_cuda_event *event)
{
	int code;

	ENTER();
	code = fake_cuda_forbidden(__func__);
	if (code)
		return code;
	await(event, event->issued);
	return event->issued ? RFL_CUDA_SUCCESS : RFL_CUDA_INVALID_VALUE;
}

int cuEventElapsedTime(float *ms, struct rfl_cuda_event *from, struct rfl_cuda_event *to)
{
	ENTER();
	*ms = (float)(1e3 * (to->at_s - from->at_s));
	if (!from->issued || !to->issued)
		return FAKE_CUDA_INVALID_HANDLE;
	if (from->done == from->issued && to->done == to->issued)
		return RFL_CUDA_SUCCESS;
	complain("%s: nothing has waited for the events", __func__);
	return FAKE_CUDA_NOT_READY;
}

int cuStreamWaitEvent(struct rfl_cuda_stream *stream, struct rfl_cuda_event *event, unsigned flags)
{
	int code;

	ENTER();
	code = stream ? check(stream, __func__) : fake_cuda_settle(__func__);
	if (code == 0 && flags)
		code = RFL_CUDA_INVALID_VALUE;
	if (code || !event->issued)
		return code;
	if (stream && stream->captured)
		return invalidate(stream, __func__, FAKE_CUDA_CAPTURE_ISOLATION);
	if (stream)
		return append(&stream->queue,
			      &(struct record){ .event = event, .wait = event->issued }, NULL);
	await(event, event->issued);
	return RFL_CUDA_SUCCESS;
}

/* ---- copies ---- */

struct copy {
	void *to;
	const void *from; /* NULL: a value */
	size_t size;
	int value;
	const char *rate; /* NULL: of the memory */
	bool to_device, from_device;
	bool idle; /* only takes time: transfers that are measured, on the default stream */
};

static void run_copy(const void *argument)
{
	const struct copy *c = argument;

	if ((c->to_device && !fake_cuda_owns((uintptr_t)c->to, c->size)) ||
	    (c->from_device && !fake_cuda_owns((uintptr_t)c->from, c->size))) {
		complain("memory of a copy was freed before the copy");
		return;
	}
	fake_cuda_spend(c->rate ? c->rate : "copy", (double)c->size, c->rate ? 1e10 : 1e12);
	if (c->idle)
		return;
	if (c->from)
		memcpy(c->to, c->from, c->size);
	else
		memset(c->to, c->value, c->size);
}

static int queue_copy(struct rfl_cuda_stream *stream, const char *call, struct copy c)
{
	const char *to = c.to, *from = c.from;

	c.idle = !stream && c.rate;
	if ((!c.to_device || fake_cuda_owns((uintptr_t)to, c.size)) &&
	    (!c.from_device || fake_cuda_owns((uintptr_t)from, c.size)) && to &&
	    (from || !c.rate) && (!from || to + c.size <= from || from + c.size <= to))
		return fake_cuda_submit(stream, run_copy, &c, sizeof(c));
	complain("%s: %zu bytes that overlap, or are not in memory of the device", call, c.size);
	return RFL_CUDA_INVALID_VALUE;
}

static void *host(rfl_cuda_address address)
{
	return (void *)(uintptr_t)address;
}

int cuMemcpyHtoDAsync_v2(rfl_cuda_address to, const void *from, size_t size,
			 struct rfl_cuda_stream *stream)
{
	ENTER();
	return queue_copy(stream, __func__,
			  (struct copy){ .to = host(to),
					 .from = from,
					 .size = size,
					 .rate = fake_cuda_pinned ? "send_pinned" : "send",
					 .to_device = true });
}

int cuMemcpyDtoHAsync_v2(void *to, rfl_cuda_address from, size_t size,
			 struct rfl_cuda_stream *stream)
{
	ENTER();
	return queue_copy(stream, __func__,
			  (struct copy){ .to = to,
					 .from = host(from),
					 .size = size,
					 .rate = fake_cuda_pinned ? "fetch_pinned" : "fetch",
					 .from_device = true });
}

int cuMemcpyDtoDAsync_v2(rfl_cuda_address to, rfl_cuda_address from, size_t size,
			 struct rfl_cuda_stream *stream)
{
	ENTER();
	return queue_copy(stream, __func__,
			  (struct copy){ .to = host(to),
					 .from = host(from),
					 .size = size,
					 .to_device = true,
					 .from_device = true });
}

int cuMemsetD8Async(rfl_cuda_address to, unsigned char value, size_t size,
		    struct rfl_cuda_stream *stream)
{
	ENTER();
	return queue_copy(
		stream, __func__,
		(struct copy){ .to = host(to), .size = size, .value = value, .to_device = true });
}

/* ---- captures and graphs ---- */

int cuStreamBeginCapture_v2(struct rfl_cuda_stream *stream, int mode)
{
	int code;

	ENTER();
	if (!stream)
		return FAKE_CUDA_CAPTURE_UNSUPPORTED;
	code = check(stream, __func__);
	if (code)
		return code;
	if (mode != RFL_CAPTURE_MODE_THREAD_LOCAL) {
		complain("%s: mode %d, which other threads would suffer from", __func__, mode);
		return RFL_CUDA_INVALID_VALUE;
	}
	if (stream->captured)
		return invalidate(stream, __func__, FAKE_CUDA_CAPTURE_UNSUPPORTED);
	stream->captured = true;
	stream->thread = pthread_self();
	return RFL_CUDA_SUCCESS;
}

int cuStreamEndCapture(struct rfl_cuda_stream *stream, struct rfl_cuda_graph **ret)
{
	int code = fake_cuda_enter(__func__), checked = check(stream, __func__);
	struct rfl_cuda_graph *g = NULL;

	*ret = NULL;
	if (checked == FAKE_CUDA_INVALID_HANDLE)
		return checked;
	if (!stream->captured)
		return FAKE_CUDA_CAPTURE_UNMATCHED;
	if (!pthread_equal(stream->thread, pthread_self())) {
		complain("%s: another thread has begun the capture", __func__);
		return FAKE_CUDA_CAPTURE_WRONG_THREAD;
	}
	stream->captured = stream->invalid = false;
	if (code == 0)
		code = checked;
	if (code == 0)
		g = calloc(1, sizeof(*g));
	if (g) {
		g->records = stream->graph;
		open_now.graphs++;
		*ret = g;
	} else
		empty(&stream->graph);
	stream->graph = (struct queue){ .first = NULL };
	return g ? RFL_CUDA_SUCCESS : code ? code : RFL_CUDA_OUT_OF_MEMORY;
}

int cuGraphInstantiateWithFlags(struct rfl_cuda_graph_exec **ret, struct rfl_cuda_graph *graph,
				unsigned long long flags)
{
	struct rfl_cuda_graph_exec *e;
	int code;

	ENTER();
	code = fake_cuda_forbidden(__func__);
	if (code || flags)
		return code ? code : RFL_CUDA_INVALID_VALUE;
	e = calloc(1, sizeof(*e));
	if (!e || append_all(&e->records, &graph->records))
		abort();
	open_now.execs++;
	*ret = e;
	return RFL_CUDA_SUCCESS;
}

int cuGraphLaunch(struct rfl_cuda_graph_exec *exec, struct rfl_cuda_stream *stream)
{
	int code;

	ENTER();
	if (!stream) { /* the engines have their own */
		complain("%s: on the default stream", __func__);
		return FAKE_CUDA_INVALID_HANDLE;
	}
	code = check(stream, __func__);
	if (code == 0 && stream->captured) /* a real driver would record a graph within a graph */
		code = invalidate(stream, __func__, FAKE_CUDA_CAPTURE_UNSUPPORTED);
	return code ? code : append_all(&stream->queue, &exec->records);
}

int cuGraphExecDestroy(struct rfl_cuda_graph_exec *exec)
{
	int code = fake_script_enter(&fake_cuda_script, __func__);

	empty(&exec->records);
	free(exec);
	open_now.execs--;
	return code;
}

int cuGraphDestroy(struct rfl_cuda_graph *graph)
{
	int code = fake_script_enter(&fake_cuda_script, __func__);

	empty(&graph->records);
	free(graph);
	open_now.graphs--;
	return code;
}
