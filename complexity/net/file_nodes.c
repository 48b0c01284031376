/*
 * file_nodes.c - the nodes of a file: what they are called, whom they read, and the order in which
 * they run. Attributes come later, when the shapes of the inputs are known.
 */
#include "complexity/net/file_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

enum {
	MAX_NODES = 1000000, /* what the builder holds */
	MAX_NAME = 255,
	MAX_CANDIDATES = 4096, /* names that a suggestion is looked for in */
};

enum rfl_rc rfl_net_file__no_memory(const struct rfl_net_reader *r)
{
	return rfl_fail(r->err, RFL_ENOMEM, 0, "%s: out of memory", r->where.file);
}

const char *rfl_net_file__label(const struct rfl_net_draft *d)
{
	return d->id ? d->id : rfl_op_info_of(d->op)->name;
}

enum rfl_rc rfl_net_file__fail(struct rfl_net_reader *r, int draft, const char *key, int index,
			       const char *fmt, ...)
{
	const struct rfl_net_draft *d = &r->drafts[draft];
	size_t mark = rfl_where_key(&r->where, "nodes");
	/* before its operation is known, a node without a name has nothing to be called */
	const char *label = d->id ? d->id : d->op != RFL_OP_INPUT ? rfl_net_file__label(d) : NULL;
	char text[RFL_ERR_MSG_MAX];
	va_list ap;
	enum rfl_rc rc;

	(void)rfl_where_index(&r->where, (size_t)draft - 1);
	if (key)
		(void)rfl_where_key(&r->where, key);
	if (index >= 0)
		(void)rfl_where_index(&r->where, (size_t)index);
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rc = rfl_where_fail(&r->where, r->err, "%s%s%s", label ? label : "", label ? ": " : "",
			    text);
	rfl_where_up(&r->where, mark);
	return rc;
}

bool rfl_net_file__is_name(const char *text)
{
	size_t n = 0;

	for (; text[n]; n++)
		if (n >= MAX_NAME || rfl_text_control(text + n))
			return false;
	return n > 0;
}

bool rfl_net_file__is_node(enum rfl_op op)
{
	return op != RFL_OP_INPUT && op != RFL_OP_CROSS_ENTROPY;
}

/* Those that enum rfl_op calls elementwise. */
bool rfl_net_file__can_be_inplace(enum rfl_op op)
{
	return op >= RFL_OP_RELU && op <= RFL_OP_DIV;
}

bool rfl_net_file__has_weights(enum rfl_op op)
{
	return rfl_op_info_of(op)->params && op != RFL_OP_PARAMETER;
}

int rfl_net_file__find(const struct rfl_net_reader *r, const char *id)
{
	const json_t *draft = json_object_get(r->ids, id);

	return draft ? (int)json_integer_value(draft) : -1;
}

enum rfl_rc rfl_net_file__no_node(struct rfl_net_reader *r, int draft, const char *key, int index,
				  const char *id)
{
	const char **names = rfl_alloc_array(MAX_CANDIDATES + 1, sizeof(*names));
	const bool is_name = rfl_net_file__is_name(id); /* else it may be of any length */
	const int shown = is_name ? MAX_NAME : 60;
	const char *nearest = NULL;
	char text[2 * MAX_NAME + 64];
	size_t n = 0;

	if (!names)
		return rfl_net_file__no_memory(r);
	for (int i = 0; i < r->ndrafts && n < MAX_CANDIDATES; i++)
		if (r->drafts[i].id)
			names[n++] = r->drafts[i].id;
	nearest = is_name ? rfl_text_nearest(id, names) : NULL;
	free(names);
	(void)snprintf(text, sizeof(text), "no node '%.*s%s'%s%s%s", shown, id,
		       strlen(id) > (size_t)shown ? "..." : "", nearest ? "; did you mean '" : "",
		       nearest ? nearest : "", nearest ? "'?" : "");
	return draft ? rfl_net_file__fail(r, draft, key, index, "%s", text)
		     : rfl_where_fail(&r->where, r->err, "%s", text);
}

/* --- what a node says of itself --- */

static enum rfl_rc read_name(struct rfl_net_reader *r, int draft, const char *key, const char **ret)
{
	const json_t *value = json_object_get(r->drafts[draft].obj, key);
	char shown[80];

	*ret = NULL;
	if (!value)
		return RFL_OK;
	if (!json_is_string(value) || !rfl_net_file__is_name(json_string_value(value)))
		return rfl_net_file__fail(r, draft, key, -1,
					  "must be a text of 1 to %d bytes without control "
					  "characters, is %s",
					  MAX_NAME, rfl_json_show(value, shown, sizeof(shown)));
	*ret = json_string_value(value);
	return RFL_OK;
}

static enum rfl_rc unknown_op(struct rfl_net_reader *r, int draft, const char *name)
{
	const char *names[RFL_OP_COUNT + 1] = { 0 };
	const char *nearest;
	size_t n = 0;

	for (int op = 0; op < RFL_OP_COUNT; op++)
		if (rfl_net_file__is_node((enum rfl_op)op))
			names[n++] = rfl_op_info_of((enum rfl_op)op)->name;
	nearest = rfl_text_nearest(name, names);
	if (nearest)
		return rfl_net_file__fail(r, draft, "op", -1,
					  "no operation '%s'; did you mean '%s'?", name, nearest);
	return rfl_net_file__fail(r, draft, "op", -1, "no operation '%s'; docs/net.md lists them",
				  name);
}

static enum rfl_rc read_op(struct rfl_net_reader *r, int draft)
{
	const json_t *value = json_object_get(r->drafts[draft].obj, "op");
	const char *name = json_string_value(value);
	char shown[80];

	if (!value)
		return rfl_net_file__fail(r, draft, NULL, -1, "the key \"op\" is missing");
	if (!name || !rfl_net_file__is_name(name))
		return rfl_net_file__fail(r, draft, "op", -1, "must be an operation, is %s",
					  rfl_json_show(value, shown, sizeof(shown)));
	for (int op = 0; op < RFL_OP_COUNT; op++)
		if (rfl_net_file__is_node((enum rfl_op)op) &&
		    strcmp(rfl_op_info_of((enum rfl_op)op)->name, name) == 0) {
			r->drafts[draft].op = (enum rfl_op)op;
			return RFL_OK;
		}
	return unknown_op(r, draft, name);
}

/* Others know a node by its id, or by its name where it has none. */
static enum rfl_rc take_id(struct rfl_net_reader *r, int draft)
{
	struct rfl_net_draft *d = &r->drafts[draft];
	const bool named = !json_object_get(d->obj, "id");
	int taken;

	if (!d->id)
		return RFL_OK;
	taken = rfl_net_file__find(r, d->id);
	if (taken == 0)
		return rfl_net_file__fail(r, draft, named ? "name" : "id", -1,
					  "this is what nodes call the network's input");
	if (taken > 0 && named)
		return rfl_net_file__fail(
			r, draft, "name", -1,
			"the name is taken by /nodes/%d; a module that runs again needs an \"id\" "
			"that is its own, such as \"%.200s:2\"",
			taken - 1, d->id);
	if (taken > 0)
		return rfl_net_file__fail(r, draft, "id", -1, "the id is taken by /nodes/%d",
					  taken - 1);
	if (json_object_set_new(r->ids, d->id, json_integer(draft)) != 0)
		return rfl_net_file__no_memory(r);
	return RFL_OK;
}

static enum rfl_rc check_names(struct rfl_net_reader *r, int draft)
{
	const struct rfl_net_draft *d = &r->drafts[draft];
	const bool outside = d->op == RFL_OP_PARAMETER || d->op == RFL_OP_CONSTANT;

	if (outside && !d->name)
		return rfl_net_file__fail(r, draft, NULL, -1, "the key \"name\" is missing");
	if (d->name && d->within)
		return rfl_net_file__fail(
			r, draft, "within", -1,
			"a node with a \"name\" has its path there; \"within\" is "
			"for steps that are no module");
	if (d->inplace && !rfl_net_file__can_be_inplace(d->op))
		return rfl_net_file__fail(r, draft, "inplace", -1,
					  "%s cannot overwrite its input; elementwise operations "
					  "can",
					  rfl_op_info_of(d->op)->name);
	if (d->functional && !rfl_net_file__has_weights(d->op))
		return rfl_net_file__fail(r, draft, "functional", -1,
					  "%s has no weights; without a \"name\" it is a step "
					  "that is no module",
					  rfl_op_info_of(d->op)->name);
	if (!d->name && rfl_op_info_of(d->op)->params)
		return rfl_net_file__fail(r, draft, NULL, -1,
					  "it has parameters, which need a \"name\"");
	return RFL_OK;
}

/* What a node may say of itself beside its names. */
static const struct {
	const char *key;
	enum rfl_attr_type type;
	size_t offset; /* in struct rfl_net_draft */
} facts[] = {
	{ "inplace", RFL_ATTR_BOOL, offsetof(struct rfl_net_draft, inplace) },
	{ "auxiliary", RFL_ATTR_BOOL, offsetof(struct rfl_net_draft, auxiliary) },
	{ "functional", RFL_ATTR_BOOL, offsetof(struct rfl_net_draft, functional) },
	{ "block", RFL_ATTR_INT, offsetof(struct rfl_net_draft, block) },
	{ "function", RFL_ATTR_INT, offsetof(struct rfl_net_draft, function) },
};

static enum rfl_rc read_draft(struct rfl_net_reader *r, int draft)
{
	struct rfl_net_draft *d = &r->drafts[draft];
	const char *id;
	enum rfl_rc rc;

	if (!json_is_object(d->obj))
		return rfl_net_file__fail(r, draft, NULL, -1, "must be an object");
	rc = read_name(r, draft, "name", &d->name);
	if (rc == RFL_OK)
		rc = read_name(r, draft, "id", &id);
	if (rc != RFL_OK)
		return rc;
	d->id = id ? id : d->name;
	rc = read_op(r, draft);
	if (rc == RFL_OK)
		rc = rfl_net_file__only_keys(r, draft);
	if (rc == RFL_OK)
		rc = read_name(r, draft, "within", &d->within);
	for (size_t i = 0; i < RFL_ARRAY_LEN(facts) && rc == RFL_OK; i++)
		rc = rfl_net_file__read(r, draft, facts[i].key,
					json_object_get(d->obj, facts[i].key), facts[i].type, 1,
					(char *)d + facts[i].offset);
	if (rc == RFL_OK)
		rc = check_names(r, draft);
	return rc == RFL_OK ? take_id(r, draft) : rc;
}

/* --- whom it reads --- */

static enum rfl_rc check_arity(struct rfl_net_reader *r, int draft, size_t n)
{
	const struct rfl_op_info *op = rfl_op_info_of(r->drafts[draft].op);
	const size_t wanted = op->arity == 0                  ? 1
			      : op->arity == RFL_OP_NO_INPUTS ? 0
							      : (size_t)op->arity;

	if (op->arity == RFL_OP_ANY_INPUTS && (n < 1 || n > RFL_NET_MAX_INPUTS))
		return rfl_net_file__fail(r, draft, "inputs", -1,
					  "%s reads 1 to %d tensors, not %zu", op->name,
					  RFL_NET_MAX_INPUTS, n);
	if (op->arity != RFL_OP_ANY_INPUTS && n != wanted)
		return rfl_net_file__fail(r, draft, "inputs", -1, "reads %zu tensor%s, not %zu",
					  wanted, wanted == 1 ? "" : "s", n);
	return RFL_OK;
}

/* Where nothing is said: the node before. */
static enum rfl_rc default_inputs(struct rfl_net_reader *r, int draft)
{
	struct rfl_net_draft *d = &r->drafts[draft];
	const struct rfl_op_info *op = rfl_op_info_of(d->op);
	int *inputs;

	if (op->arity == RFL_OP_NO_INPUTS)
		return RFL_OK;
	if (op->arity != 0)
		return rfl_net_file__fail(r, draft, NULL, -1,
					  "reads several tensors; name them in \"inputs\"");
	inputs = rfl_arena_array(r->arena, 1, sizeof(*inputs));
	if (!inputs)
		return rfl_net_file__no_memory(r);
	inputs[0] = draft - 1;
	r->drafts[draft - 1].read = true;
	d->ninputs = 1;
	d->inputs = inputs;
	return RFL_OK;
}

static enum rfl_rc resolve(struct rfl_net_reader *r, int draft, const char *key, int index,
			   const json_t *value, int *ret)
{
	char shown[80];
	int found;

	if (!json_is_string(value))
		return rfl_net_file__fail(r, draft, key, index, "must be the name of a node, is %s",
					  rfl_json_show(value, shown, sizeof(shown)));
	found = rfl_net_file__find(r, json_string_value(value));
	if (found < 0)
		return rfl_net_file__no_node(r, draft, key, index, json_string_value(value));
	*ret = found;
	return RFL_OK;
}

static enum rfl_rc read_inputs(struct rfl_net_reader *r, int draft)
{
	struct rfl_net_draft *d = &r->drafts[draft];
	const json_t *value = json_object_get(d->obj, "inputs");
	size_t n = json_array_size(value);
	int *inputs;
	enum rfl_rc rc;

	if (!value)
		return default_inputs(r, draft);
	if (!json_is_array(value))
		return rfl_net_file__fail(r, draft, "inputs", -1,
					  "must be a list of names of nodes");
	rc = check_arity(r, draft, n);
	if (rc != RFL_OK)
		return rc;
	inputs = rfl_arena_array(r->arena, n + 1, sizeof(*inputs));
	if (!inputs)
		return rfl_net_file__no_memory(r);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		rc = resolve(r, draft, "inputs", (int)i, json_array_get(value, i), &inputs[i]);
		if (rc == RFL_OK)
			r->drafts[inputs[i]].read = true;
	}
	d->ninputs = (int)n;
	d->inputs = inputs;
	return rc;
}

static enum rfl_rc read_tied(struct rfl_net_reader *r, int draft)
{
	struct rfl_net_draft *d = &r->drafts[draft];
	const json_t *value = json_object_get(d->obj, "tied");
	enum rfl_rc rc;

	if (!value)
		return RFL_OK;
	rc = resolve(r, draft, "tied", -1, value, &d->tied);
	if (rc != RFL_OK)
		return rc;
	if (!rfl_net_file__has_weights(d->op))
		return rfl_net_file__fail(r, draft, "tied", -1, "%s has no weight to share",
					  rfl_op_info_of(d->op)->name);
	if (d->tied == 0 || !rfl_op_info_of(r->drafts[d->tied].op)->params ||
	    json_object_get(r->drafts[d->tied].obj, "tied"))
		return rfl_net_file__fail(r, draft, "tied", -1,
					  "'%s' has no weight of its own to share",
					  json_string_value(value));
	return RFL_OK;
}

/* The main network runs without the auxiliary heads and has none of their weights. */
static enum rfl_rc check_auxiliary(struct rfl_net_reader *r, int draft)
{
	const struct rfl_net_draft *d = &r->drafts[draft];

	if (d->auxiliary)
		return RFL_OK;
	if (r->drafts[d->tied].auxiliary)
		return rfl_net_file__fail(
			r, draft, "tied", -1,
			"'%s' is auxiliary: only other auxiliary nodes may use its weight",
			rfl_net_file__label(&r->drafts[d->tied]));
	for (int i = 0; i < d->ninputs; i++)
		if (r->drafts[d->inputs[i]].auxiliary)
			return rfl_net_file__fail(
				r, draft, NULL, -1,
				"reads '%s', which is auxiliary: only other auxiliary nodes may",
				rfl_net_file__label(&r->drafts[d->inputs[i]]));
	return RFL_OK;
}

enum rfl_rc rfl_net_file__drafts(struct rfl_net_reader *r, const json_t *nodes)
{
	size_t n = json_array_size(nodes);
	enum rfl_rc rc = RFL_OK;

	if (n < 1 || n > MAX_NODES)
		return rfl_fail(r->err, RFL_EFORMAT, 0,
				"%s: /nodes: must be a list of 1 to %d nodes", r->where.file,
				MAX_NODES);
	r->ids = json_object();
	r->drafts = rfl_arena_array(r->arena, n + 1, sizeof(*r->drafts));
	if (!r->ids || !r->drafts ||
	    json_object_set_new(r->ids, RFL_NET_FILE_INPUT, json_integer(0)) != 0)
		return rfl_net_file__no_memory(r);
	r->drafts[0].id = RFL_NET_FILE_INPUT;
	r->ndrafts = (int)n + 1;
	for (int i = 1; i < r->ndrafts && rc == RFL_OK; i++) {
		r->drafts[i].obj = json_array_get(nodes, (size_t)i - 1);
		rc = read_draft(r, i);
	}
	for (int i = 1; i < r->ndrafts && rc == RFL_OK; i++) {
		rc = read_inputs(r, i);
		if (rc == RFL_OK)
			rc = read_tied(r, i);
	}
	for (int i = 1; i < r->ndrafts && rc == RFL_OK; i++)
		rc = check_auxiliary(r, i);
	return rc;
}

/* --- order of execution ----------------------------------------------------------------------
 *
 * Every node after those it reads, else as the file has them. A walk in depth with a stack of its
 * own, so that a chain may have any length; what is on the stack when it meets itself is the cycle.
 */

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

/* The k-th draft that a draft needs before itself; -1 past the last. */
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
