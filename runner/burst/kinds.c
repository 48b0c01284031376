/* kinds.c - times each operation of a few steps by marks and events, and adds them up by kind. */
#include "runner/burst/kinds.h"

#include <math.h>

enum { STEPS = 5 };

/* The k-th mark of a step is node k: each node is reported once, in order. */
struct marks {
	const struct rfl_counted_parts *parts;
	int64_t n;
};

static enum rfl_rc on_mark(const char *name, void *ctx, struct rfl_err *err)
{
	struct marks *m = ctx;

	(void)name;
	return m->parts->ops->record_event(m->parts->engine, m->n++, err);
}

static double *kind_of(enum rfl_op op, struct rfl_kinds *kinds)
{
	return op == RFL_OP_LINEAR ? &kinds->linear_ms
	       : op == RFL_OP_SDPA ? &kinds->attention_ms
				   : &kinds->other_ms;
}

static enum rfl_rc one_step(struct marks *m, const struct rfl_batch *batch, int64_t past,
			    struct rfl_kinds *sum, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = m->parts->ops;
	struct rfl_engine *e = m->parts->engine;
	const struct rfl_net *net = m->parts->net;
	enum rfl_rc rc;

	m->n = 0;
	if ((rc = ops->generate(e, batch, past, err)) || (rc = on_mark("", m, err)) ||
	    (rc = ops->sync(e, err)))
		return rc;
	if (m->n != net->nnodes + 1)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' runs several operations as one", ops->name);
	for (int i = 0; i < net->nnodes && rc == RFL_OK; i++) {
		double s = 0;

		rc = ops->elapsed(e, i, i + 1, &s, err);
		*kind_of(net->nodes[i].op, sum) += s * 1e3 / STEPS;
	}
	return rc;
}

enum rfl_rc rfl_kinds_measure(const struct rfl_counted_parts *parts, int64_t past,
			      struct rfl_kinds *ret, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = parts->ops;
	struct marks m = { .parts = parts };
	struct rfl_kinds sum = { 0 };
	struct rfl_batch batch;
	enum rfl_rc rc, off;

	*ret = (struct rfl_kinds){ (double)NAN, (double)NAN, (double)NAN };
	if (!ops->mark || !ops->reserve_events || !ops->record_event || !ops->elapsed)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot tell operations apart", ops->name);
	if ((rc = rfl_data_next(parts->data, &batch, err)) ||
	    (rc = ops->reserve_events(parts->engine, parts->net->nnodes + 1, err)) ||
	    (rc = ops->mark(parts->engine, on_mark, &m, err)))
		return rc;
	for (int i = 0; i < STEPS && rc == RFL_OK; i++)
		rc = one_step(&m, &batch, past, &sum, err);
	off = ops->mark(parts->engine, NULL, NULL, rc == RFL_OK ? err : NULL);
	rc = rc ? rc : off;
	if (rc == RFL_OK)
		*ret = sum;
	return rc;
}
