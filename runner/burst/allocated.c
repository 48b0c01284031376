/* allocated.c - the memory of a training step, layer by layer. */
#include "runner/burst/allocated.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/num.h"
#include "complexity/op.h"

/* The time from the beginning of a layer to the beginning of the next. */
struct event {
	const char *name; /* "fwd/conv1", "bwd/conv1", "opt"; without layers "fwd" and "bwd" */
	double bytes, peak_bytes; /* at the end, and the most in between */
};

struct recorder {
	struct rfl_ranges ranges; /* first: its functions get this struct */
	const struct rfl_counted_parts *parts;
	struct rfl_arena *arena;
	struct event *events;
	size_t n, cap;
};

static enum rfl_rc end(struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct recorder *r = (struct recorder *)ranges;
	struct rfl_engine_memory memory;
	enum rfl_rc rc = r->parts->ops->memory(r->parts->engine, &memory, err);

	if (rc == RFL_OK && r->n > 0) {
		r->events[r->n - 1].bytes = memory.now;
		r->events[r->n - 1].peak_bytes = memory.allocated_peak;
	}
	return rc ? rc : r->parts->ops->reset_memory(r->parts->engine, err);
}

static enum rfl_rc begin(struct rfl_ranges *ranges, enum rfl_range_kind kind, const char *name,
			 struct rfl_err *err)
{
	struct recorder *r = (struct recorder *)ranges;
	enum rfl_rc rc = end(ranges, err);

	(void)kind;
	rfl_reserve(&r->events, &r->cap, r->n + 1);
	if (rc == RFL_OK)
		r->events[r->n++] = (struct event){ .name = rfl_arena_strdup(r->arena, name) };
	return rc;
}

static enum rfl_phase phase_of(const struct event *e)
{
	return *e->name == 'f'   ? RFL_PHASE_FORWARD
	       : *e->name == 'b' ? RFL_PHASE_BACKWARD
				 : RFL_PHASE_STEP;
}

static const char *layer_of(const struct event *e)
{
	const char *slash = strchr(e->name, '/');

	return slash ? slash + 1 : "";
}

static bool is_node(const struct rfl_net *net, int i, const char *layer)
{
	char name[512] = "loss";

	if (i < net->nnodes)
		(void)rfl_op_layer_name(&net->nodes[i], name, sizeof(name));
	return strncmp(name, layer, sizeof(name) - 1) == 0;
}

/* The node of an event. Several nodes can have one name: begin at the neighbour of the last event,
 * in the direction of the pass. @return nnodes: the loss; -1: not found */
static int node_of(const struct rfl_net *net, const struct event *e, int last)
{
	const int n = net->nnodes + 1, by = phase_of(e) == RFL_PHASE_FORWARD ? 1 : n - 1;

	for (int k = 0, i = (last + by) % n; k < n; k++, i = (i + by) % n)
		if (is_node(net, i, layer_of(e)))
			return i;
	return -1;
}

/* Write the timeline, and find the largest allocation and the last one of each phase. */
static void describe(const struct recorder *r, const struct rfl_memory *m,
		     struct rfl_allocated *ret, struct rfl_buf *csv)
{
	static const char *const columns[] = { "event",           "phase",      "layer",
					       "allocated_bytes", "peak_bytes", "predicted_bytes" };
	const struct rfl_net *net = r->parts->net;
	double *const after[] = { &ret->forward_bytes, &ret->backward_bytes,
				  &ret->optimizer_bytes };
	int node = -1;

	rfl_csv_write_row(csv, columns, RFL_ARRAY_LEN(columns));
	for (size_t i = 0; i < r->n; i++) {
		const struct event *e = &r->events[i];
		const enum rfl_phase phase = phase_of(e);
		int64_t predicted = m->phase_peak[phase];
		char number[4][RFL_NUM_MAX] = { "" };
		const char *fields[] = { number[0],   rfl_phase_names[phase],
					 layer_of(e), number[1],
					 number[2],   number[3] };

		if (*layer_of(e)) {
			if (i == 0 || phase_of(e - 1) != phase) /* the neighbour of the first */
				node = phase == RFL_PHASE_FORWARD ? net->nnodes : 0;
			node = node_of(net, e, node);
			predicted = node < 0 ? 0 : m->node_peak[phase][node];
		}
		(void)snprintf(number[0], sizeof(number[0]), "%zu", i);
		(void)rfl_num_exact(e->bytes, number[1]);
		(void)rfl_num_exact(e->peak_bytes, number[2]);
		if (predicted > 0)
			(void)snprintf(number[3], sizeof(number[3]), "%" PRId64, predicted);
		rfl_csv_write_row(csv, fields, RFL_ARRAY_LEN(fields));
		*after[phase] = e->bytes;
		if (i > 0 && e->peak_bytes <= ret->peak_bytes)
			continue;
		ret->peak_bytes = e->peak_bytes;
		/* without gradients, the loss is not predicted */
		ret->predicted_bytes = predicted > 0 ? (double)m->peak : (double)NAN;
		(void)snprintf(ret->peak_at, sizeof(ret->peak_at), "%s", e->name);
	}
}

enum rfl_rc rfl_allocated_run(const struct rfl_counted_config *config,
			      const struct rfl_counted_parts *parts,
			      const struct rfl_memory_options *options, struct rfl_allocated *ret,
			      struct rfl_buf *csv, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = parts->ops;
	struct rfl_counted_config how = *config;
	struct recorder r = { .ranges = { .begin = begin }, .parts = parts };
	struct rfl_memory *memory = NULL;
	struct rfl_engine_memory before;
	enum rfl_rc rc, off;

	*ret = (struct rfl_allocated){ NAN, NAN, NAN, NAN, NAN, NAN, "" };
	if (!ops->watch_memory || !ops->reset_memory)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' does not count its allocations; leave out "
				"--profile-memory",
				ops->name);
	how.detail = ops->mark ? RFL_DETAIL_LAYER : RFL_DETAIL_PHASE;
	if ((rc = rfl_memory_new(parts->net, options, &memory, err)))
		return rc;
	r.arena = rfl_arena_new();
	rc = ops->watch_memory(parts->engine, true, err);
	if (rc != RFL_OK)
		goto done;
	rc = ops->memory(parts->engine, &before, err);
	ret->model_bytes = rc == RFL_OK ? before.now : (double)NAN;
	if (rc == RFL_OK)
		rc = rfl_counted_once(&how, parts, &r.ranges, err);
	if (rc == RFL_OK)
		rc = end(&r.ranges, err);
	off = ops->watch_memory(parts->engine, false, rc == RFL_OK ? err : NULL);
	rc = rc ? rc : off;
	if (rc == RFL_OK)
		describe(&r, memory, ret, csv);
	if (rc == RFL_OK)
		rc = rfl_buf_check(csv, "memory of a step", err);
done:
	rfl_memory_free(memory);
	rfl_arena_free(r.arena);
	free(r.events);
	return rc;
}
