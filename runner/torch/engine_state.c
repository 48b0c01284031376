/*
 * engine_state.c - what counted steps ask of the torch engine: going back to where it was,
 * and telling which node is at work.
 */
#include "runner/torch/engine_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"

/* ------------------------------------------------------------------ snapshots */

static void drop_snapshot(struct rfl_torch__snapshot *s)
{
	rfl_torch_tensor_free(s->block);
	rfl_torch_optim_state_free(s->optim);
	rfl_torch_tensor_free(s->random);
	*s = (struct rfl_torch__snapshot){ .taken = false };
}

enum rfl_rc rfl_torch__snapshot(struct rfl_engine *e, struct rfl_err *err)
{
	struct rfl_torch__snapshot s = { .taken = true };
	enum rfl_rc rc;

	drop_snapshot(&e->saved);
	rc = rfl_torch__check(rfl_torch_tensor_clone(e->block, &s.block), "snapshot", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_optim_save(e->optim, &s.optim), "snapshot", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_random_save(e->block, &s.random), "snapshot", err);
	if (rc != RFL_OK) {
		drop_snapshot(&s);
		return rc;
	}
	e->saved = s;
	return RFL_OK;
}

enum rfl_rc rfl_torch__restore(struct rfl_engine *e, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (!e->saved.taken)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: restore needs a snapshot before it");
	rfl_torch__graph_forget(e); /* the optimizer's memory may be another afterwards */
	e->updates = 0;
	rfl_torch__forget_step(e);
	rfl_torch_optim_zero_grad(e->optim);
	e->has_grads = false;
	rc = rfl_torch__check(rfl_torch_tensor_copy(e->block, e->saved.block), "restore", err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_optim_restore(e->optim, e->saved.optim), "restore",
				      err);
	if (rc == RFL_OK)
		rc = rfl_torch__check(rfl_torch_random_restore(e->block, e->saved.random),
				      "restore", err);
	return rc;
}

/* ------------------------------------------------------------------ marks */

static void drop_marks(struct rfl_engine *e)
{
	struct rfl_torch__node_mark *nodes = e->marks.nodes;

	for (int i = 0; nodes && i <= e->net->nnodes; i++) {
		free(nodes[i].forward);
		free(nodes[i].backward);
	}
	free(nodes);
	e->marks = (struct rfl_torch__marks){ .fn = NULL };
}

void rfl_torch__state_fini(struct rfl_engine *e)
{
	drop_snapshot(&e->saved);
	drop_marks(e);
}

/* A step without a module is named after its operation: "fwd/layer1.0.add". */
static char *name_of(const char *phase, const struct rfl_node *node)
{
	const bool is_step = node && node->functional && node->op != RFL_OP_INPUT;
	const char *name = node ? node->name : "loss";
	const char *op = is_step ? rfl_op_info_of(node->op)->name : "";
	const char *dot = is_step && *name ? "." : "";
	const size_t n = strlen(phase) + strlen(name) + strlen(dot) + strlen(op) + 1;
	char *text = malloc(n);

	if (text)
		(void)snprintf(text, n, "%s%s%s%s", phase, name, dot, op);
	return text;
}

/* The one after the last is the loss. */
static bool name_node(struct rfl_engine *e, int i)
{
	const struct rfl_node *node = i < e->net->nnodes ? &e->net->nodes[i] : NULL;
	struct rfl_torch__node_mark *m = &e->marks.nodes[i];

	*m = (struct rfl_torch__node_mark){
		.e = e,
		.forward = name_of("fwd/", node),
		.backward = name_of("bwd/", node),
	};
	return m->forward && m->backward;
}

enum rfl_rc rfl_torch__mark(struct rfl_engine *e, rfl_engine_mark_fn fn, void *ctx,
			    struct rfl_err *err)
{
	bool named = true;

	if (e->can_backward) /* its hooks use the names that are freed now */
		rfl_torch__forget_step(e);
	drop_marks(e);
	rfl_torch_set_backward_here(fn != NULL);
	if (!fn)
		return RFL_OK;
	e->marks.nodes = rfl_alloc_array((size_t)e->net->nnodes + 1, sizeof(*e->marks.nodes));
	for (int i = 0; e->marks.nodes && named && i <= e->net->nnodes; i++)
		named = name_node(e, i);
	if (!e->marks.nodes || !named) {
		drop_marks(e);
		return rfl_fail(err, RFL_ENOMEM, 0, "torch: out of memory");
	}
	e->marks.fn = fn;
	e->marks.ctx = ctx;
	return RFL_OK;
}

enum rfl_rc rfl_torch__mark_forward(struct rfl_engine *e, int node, struct rfl_err *err)
{
	return e->marks.fn(e->marks.nodes[node].forward, e->marks.ctx, err);
}

enum rfl_rc rfl_torch__mark_backward(struct rfl_engine *e, int node, struct rfl_err *err)
{
	rfl_err_clear(&e->marks.failure);
	return e->marks.fn(e->marks.nodes[node].backward, e->marks.ctx, err);
}

/* After a failure nothing more is reported; backward() returns it at its end. */
static void on_backward(void *ctx)
{
	const struct rfl_torch__node_mark *m = ctx;
	struct rfl_torch__marks *marks = &m->e->marks;

	if (marks->fn && marks->failure.rc == RFL_OK)
		marks->failure.rc = marks->fn(m->backward, marks->ctx, &marks->failure);
}

enum rfl_rc rfl_torch__mark_later(struct rfl_engine *e, int node,
				  const struct rfl_torch_tensor *value, struct rfl_err *err)
{
	return rfl_torch__check(rfl_torch_on_backward(value, on_backward, &e->marks.nodes[node]),
				e->net->nodes[node].name, err);
}
