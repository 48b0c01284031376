/*
 * file_order.c - the order of execution: every node behind those it reads, else as the file has
 * them. A node that is written before its inputs pulls them in front of itself. A walk in depth
 * with a stack of its own, so that a chain of any length is no matter, and what is on the stack
 * when it meets itself is the cycle.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "complexity/net/file_impl.h"

enum { NEW, OPEN, DONE };

enum { CYCLE_SHOWN = 12 };

/* A node on the stack, and which of those it needs comes next. */
struct frame {
	int draft, next;
};

struct walk {
	struct frame *stack;
	int depth;
	unsigned char *state;
	int nordered;
};

/* The k-th draft that a draft needs before itself; -1 behind the last. */
static int need(const struct rfl_net_draft *d, int k)
{
	if (k < d->ninputs)
		return d->inputs[k];
	return k == d->ninputs && d->tied ? d->tied : -1;
}

/* Data flows from each node of the stack to the one below it. */
static enum rfl_rc fail_cycle(struct rfl_net_reader *r, const struct walk *w, int meets)
{
	const struct frame *top = &w->stack[w->depth - 1];
	const struct rfl_net_draft *d = &r->drafts[top->draft];
	const bool listed = top->next < d->ninputs && json_object_get(d->obj, "inputs");
	const bool tied = top->next >= d->ninputs;
	struct rfl_buf path;
	int shown = 0;
	enum rfl_rc rc;

	rfl_buf_init(&path, 8192);
	rfl_buf_puts(&path, rfl_net_file__label(&r->drafts[meets]));
	for (int i = w->depth - 1; i >= 0 && w->stack[i].draft != meets; i--)
		if (++shown <= CYCLE_SHOWN)
			rfl_buf_printf(&path, " -> %s",
				       rfl_net_file__label(&r->drafts[w->stack[i].draft]));
	rfl_buf_printf(&path, "%s -> %s", shown > CYCLE_SHOWN ? " -> ..." : "",
		       rfl_net_file__label(&r->drafts[meets]));
	rc = rfl_net_file__fail(r, top->draft,
				tied     ? "tied"
				: listed ? "inputs"
					 : NULL,
				listed ? top->next : -1, "a cycle: %s", rfl_buf_str(&path));
	rfl_buf_fini(&path);
	return rc;
}

static void open_draft(struct walk *w, int draft)
{
	w->state[draft] = OPEN;
	w->stack[w->depth++] = (struct frame){ .draft = draft };
}

/* A draft and all that it needs. */
static enum rfl_rc visit(struct rfl_net_reader *r, struct walk *w, int draft)
{
	if (w->state[draft] == NEW)
		open_draft(w, draft);
	while (w->depth > 0) {
		struct frame *top = &w->stack[w->depth - 1];
		int next = need(&r->drafts[top->draft], top->next);

		if (next < 0) {
			w->state[top->draft] = DONE;
			r->order[w->nordered++] = top->draft;
			w->depth--;
		} else if (w->state[next] == OPEN) {
			return fail_cycle(r, w, next);
		} else {
			top->next++;
			if (w->state[next] == NEW)
				open_draft(w, next);
		}
	}
	return RFL_OK;
}

enum rfl_rc rfl_net_file__sort(struct rfl_net_reader *r)
{
	size_t n = (size_t)r->ndrafts;
	struct walk w = {
		.stack = rfl_alloc_array(n, sizeof(*w.stack)),
		.state = rfl_alloc_array(n, sizeof(*w.state)),
	};
	enum rfl_rc rc = RFL_OK;

	r->order = rfl_arena_array(r->arena, n, sizeof(*r->order));
	if (!w.stack || !w.state || !r->order)
		rc = rfl_net_file__no_memory(r);
	for (int i = 0; i < r->ndrafts && rc == RFL_OK; i++)
		rc = visit(r, &w, i);
	free(w.stack);
	free(w.state);
	return rc;
}
