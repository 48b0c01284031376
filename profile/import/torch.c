/*
 * torch.c - imports traces of PyTorch's profiler (Kineto's Chrome JSON): times of operators and GPU
 * kernels, with FLOPs and bytes from the shapes of the operators (torch_work.c).
 *
 * The file is read as a stream, and each event is reduced to a small record. Operators are nested.
 * The innermost one with products, else the outermost one that computes, includes the operators
 * that it calls. The others keep only their own time, so that nothing counts twice. If there are
 * kernels, the time of an operator is the time of the kernels that it launched.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json_stream.h"
#include "profile/capture/impl.h"
#include "profile/import/impl.h"
#include "profile/import/torch.h"

#define EVENTS_MAX ((size_t)1 << 23)
#define NAMES_MAX  (3 * RFL_CAPTURE_RANGES_MAX) /* names, blocks and grids */
#define NONE       UINT32_MAX

enum category { OTHER, OPERATOR, CALL, KERNEL, COPY, ANNOTATION };

/* A call of an operator, or of the GPU's runtime. */
struct op {
	double start, end, time_s, flops, bytes;
	const char *reason;
	int64_t id; /* "External id" or, of the runtime, "correlation"; 0: unknown */
	uint32_t thread, name, sequence, owner, kernels;
	uint32_t end_of_calls; /* it includes the operators up to this one; 0: none */
	uint8_t metric;
	bool is_call, is_caller, has_work, has_product;
};

struct kernel {
	double time_s, bytes;                        /* bytes: NaN unless it is a copy or fill */
	uint32_t name, grid, block, id, correlation; /* numbers of keys; 0: unknown */
};

/* The event that is being read. */
struct event {
	enum category category;
	char phase, name[RFL_JSON_TEXT_MAX + 1], grid[64], block[64];
	double start, duration, id, correlation, bytes;
	uint64_t place[2]; /* process and thread */
	struct rfl_torch_call call;
};

struct torch {
	struct rfl_import i;
	struct rfl_json_stream json;
	struct event event;
	struct op *ops;
	struct kernel *kernels;
	size_t nops, ops_cap, nkernels, kernels_cap, rules_cap;
	struct rfl_keys names, threads, ids, steps;
	const struct rfl_torch_rule **rules; /* by name */
	double step_s;
	unsigned metrics; /* a bit for each metric with FLOPs */
	char device[128];
};

static const struct {
	const char *name;
	enum category category;
} categories[] = {
	{ "cpu_op", OPERATOR },  { "Operator", OPERATOR }, { "cuda_runtime", CALL },
	{ "cuda_driver", CALL }, { "hip_runtime", CALL },  { "Runtime", CALL },
	{ "kernel", KERNEL },    { "gpu_memcpy", COPY },   { "Memcpy", COPY },
	{ "gpu_memset", COPY },  { "Memset", COPY },       { "user_annotation", ANNOTATION },
};

/* ---- reading an event ---- */

/* Read the dimensions of the inputs: [[8, 3], [], [[2], [2]]]. The third one is a list of tensors.
 */
static void read_shapes(struct torch *k, enum rfl_json_token token)
{
	struct rfl_json_stream *s = &k->json;
	struct rfl_torch_call *call = &k->event.call;
	struct rfl_torch_input dropped = { .elements = 0 }, *in = &dropped;
	const size_t depth = s->depth;
	double elements = 1;
	bool is_tensor = false;
	size_t n = 0;

	call->has_shapes = token == RFL_JSON_ARRAY;
	while (call->has_shapes && (token = rfl_json_next(s)) > RFL_JSON_END && s->depth >= depth) {
		if (token == RFL_JSON_ARRAY) {
			if (s->depth == depth + 1)
				in = n < RFL_TORCH_INPUTS ? &call->in[n++] : &dropped;
			in->is_list = s->depth > depth + 1;
			in->ndims = 0;
			elements = 1;
			is_tensor = true;
		} else if (token == RFL_JSON_CLOSE && is_tensor) {
			in->elements += elements;
			is_tensor = false;
		} else if (token == RFL_JSON_NUMBER) {
			elements *= s->number >= 0 && in->ndims < RFL_TORCH_DIMS ? s->number : NAN;
			if (in->ndims < RFL_TORCH_DIMS)
				in->dim[in->ndims++] = s->number;
		}
	}
	call->n = n;
}

/* Read the types or values of the inputs, a list of strings. */
static void read_texts(struct torch *k, enum rfl_json_token token, bool values)
{
	struct rfl_json_stream *s = &k->json;
	const size_t depth = s->depth;

	for (size_t i = 0; token > RFL_JSON_END && s->depth >= depth; i++) {
		token = rfl_json_skip(s, rfl_json_next(s));
		if (token != RFL_JSON_STRING || i >= RFL_TORCH_INPUTS)
			continue;
		struct rfl_torch_input *in = &k->event.call.in[i];
		(void)rfl_span_copy((struct rfl_span){ s->text, s->len },
				    values ? in->value : in->type,
				    values ? sizeof(in->value) : sizeof(in->type));
	}
}

/* Read [12, 1, 1] as "(12, 1, 1)". */
static void read_numbers(struct torch *k, enum rfl_json_token token, char out[64])
{
	struct rfl_json_stream *s = &k->json;
	const size_t depth = s->depth;
	size_t len = 0;

	out[0] = '\0';
	while (token > RFL_JSON_END && s->depth >= depth && len < 40) {
		token = rfl_json_skip(s, rfl_json_next(s));
		if (token == RFL_JSON_NUMBER && fabs(s->number) < 1e12)
			len += (size_t)snprintf(out + len, 64 - len, "%s%.0f", len ? ", " : "(",
						s->number);
	}
	if (len > 0)
		(void)snprintf(out + len, 64 - len, ")");
}

static enum category category_of(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(categories); i++)
		if (strcmp(categories[i].name, name) == 0)
			return categories[i].category;
	return OTHER;
}

/* Read an event or, with `args`, its arguments. The object has begun. Older versions wrote some
 * keys in other cases. */
static void read_event(struct torch *k, bool args)
{
	struct rfl_json_stream *s = &k->json;
	struct event *e = &k->event;
	const size_t depth = s->depth;
	enum rfl_json_token token;
	char key[32];

	while (rfl_json_next(s) == RFL_JSON_KEY) {
		(void)rfl_span_copy((struct rfl_span){ s->text, s->len }, key, sizeof(key));
		token = rfl_json_next(s);
		const bool is_list = token == RFL_JSON_ARRAY;
		if (args && is_list && strcasecmp(key, "Input Dims") == 0)
			read_shapes(k, token);
		else if (args && is_list && strcasecmp(key, "Input type") == 0)
			read_texts(k, token, false);
		else if (args && is_list && strcasecmp(key, "Concrete Inputs") == 0)
			read_texts(k, token, e->call.has_values = true);
		else if (args && is_list && strcmp(key, "grid") == 0)
			read_numbers(k, token, e->grid);
		else if (args && is_list && strcmp(key, "block") == 0)
			read_numbers(k, token, e->block);
		else if (args && strcasecmp(key, "External id") == 0)
			e->id = s->number;
		else if (args && strcmp(key, "correlation") == 0)
			e->correlation = s->number;
		else if (args && strcmp(key, "bytes") == 0)
			e->bytes = s->number;
		else if (!args && strcmp(key, "args") == 0 && token == RFL_JSON_OBJECT)
			read_event(k, true);
		else if (!args && strcmp(key, "cat") == 0 && token == RFL_JSON_STRING)
			e->category = category_of(s->text);
		else if (!args && strcmp(key, "name") == 0 && token == RFL_JSON_STRING)
			memcpy(e->name, s->text, s->len + 1);
		else if (!args && strcmp(key, "ph") == 0 && token == RFL_JSON_STRING)
			e->phase = s->len == 1 ? s->text[0] : '\0';
		else if (!args && strcmp(key, "ts") == 0)
			e->start = s->number;
		else if (!args && strcmp(key, "dur") == 0)
			e->duration = s->number;
		else if (!args && (strcmp(key, "pid") == 0 || strcmp(key, "tid") == 0))
			e->place[key[0] == 't'] =
				token > RFL_JSON_KEY ? rfl_hash64(0, s->text, s->len) : 0;
		while (s->depth > depth && s->rc == RFL_OK) /* what was not read of the value */
			(void)rfl_json_next(s);
	}
}

static uint32_t number_of_name(struct torch *k, const char *name)
{
	bool added;
	const uint32_t number = rfl_keys_add(&k->names, k->i.arena, name, strlen(name), &added);

	rfl_arena_reserve(k->i.arena, &k->rules, &k->rules_cap, number);
	if (added)
		k->rules[number - 1] = rfl_torch_rule_of(name);
	return number;
}

static int64_t id_of(double id)
{
	return id >= 1 && id < 9e15 ? (int64_t)id : 0;
}

/* The number of an "External id" or, with `call`, of a correlation, that a kernel has; 0: none. */
static uint32_t number_of_id(struct torch *k, double id, bool call)
{
	const int64_t key[2] = { id_of(id), call };

	return key[0] ? rfl_keys_add(&k->ids, k->i.arena, key, sizeof(key), NULL) : 0;
}

static void add_op(struct torch *k, const struct event *e)
{
	rfl_reserve(&k->ops, &k->ops_cap, k->nops + 1);
	struct op *o = &k->ops[k->nops];
	*o = (struct op){ .start = e->start,
			  .end = e->start + e->duration,
			  .time_s = e->duration / 1e6,
			  .id = id_of(e->category == CALL ? e->correlation : e->id),
			  .thread = rfl_keys_add(&k->threads, k->i.arena, e->place,
						 sizeof(e->place), NULL),
			  .sequence = (uint32_t)k->nops++,
			  .is_call = e->category == CALL };
	if (o->is_call)
		return;
	o->name = number_of_name(k, e->name);
	const struct rfl_torch_work work = rfl_torch_work_of(k->rules[o->name - 1], &e->call);
	o->flops = work.flops;
	o->bytes = work.bytes;
	o->reason = work.reason;
	o->metric = (uint8_t)work.metric;
	if (o->flops > 0)
		k->metrics |= 1U << o->metric;
}

static void add_kernel(struct torch *k, const struct event *e)
{
	const bool is_copy = e->category == COPY && e->bytes >= 0;

	rfl_reserve(&k->kernels, &k->kernels_cap, k->nkernels + 1);
	k->kernels[k->nkernels++] = (struct kernel){
		.time_s = e->duration / 1e6,
		.bytes = is_copy ? e->bytes * (strstr(e->name, "DtoD") ? 2 : 1) : (double)NAN,
		.name = number_of_name(k, e->name),
		.grid = e->grid[0] ? number_of_name(k, e->grid) : 0,
		.block = e->block[0] ? number_of_name(k, e->block) : 0,
		.id = number_of_id(k, e->id, false),
		.correlation = number_of_id(k, e->correlation, true),
	};
}

/* Read an event that has begun, and keep what is needed of it. */
static enum rfl_rc take_event(struct torch *k)
{
	struct event *e = &k->event;

	rfl_json_settle(&k->json);
	const size_t line = k->i.in->line;
	*e->name = *e->grid = *e->block = e->phase = '\0';
	e->category = OTHER;
	e->start = e->duration = e->id = e->correlation = e->bytes = NAN;
	memset(&e->call, 0, sizeof(e->call));
	read_event(k, false);
	if (k->json.rc != RFL_OK || e->phase != 'X' || e->category == OTHER)
		return RFL_OK;
	k->i.in->line = line;
	if (!(fabs(e->start) < 1e18) || !(e->duration >= 0 && e->duration < 1e15))
		return rfl_import_bad_row(
			&k->i, NULL, "the event '%.60s' has no valid time and duration", e->name);
	if (k->nops + k->nkernels + k->steps.n >= EVENTS_MAX || k->names.n > NAMES_MAX)
		return rfl_fail(k->i.err, RFL_EOVERFLOW, 0,
				"%s:%zu: more than %zu %s; profile fewer steps", k->i.in->name,
				line, k->names.n > NAMES_MAX ? NAMES_MAX : EVENTS_MAX,
				k->names.n > NAMES_MAX ? "names" : "operators and kernels");
	if (e->category == OPERATOR || e->category == CALL) {
		add_op(k, e);
	} else if (e->category != ANNOTATION) {
		add_kernel(k, e);
	} else if (strncmp(e->name, "ProfilerStep#", strlen("ProfilerStep#")) == 0) {
		const uint64_t step = rfl_hash64(0, e->name, strlen(e->name));

		(void)rfl_keys_add(&k->steps, k->i.arena, &step, sizeof(step), NULL);
		k->step_s += e->duration / 1e6;
	}
	return RFL_OK;
}

/* Read the name of the first device. */
static void read_devices(struct torch *k)
{
	struct rfl_json_stream *s = &k->json;
	const size_t depth = s->depth;
	enum rfl_json_token token = RFL_JSON_ARRAY;

	while (token > RFL_JSON_END && s->depth >= depth) {
		const bool is_name = token == RFL_JSON_KEY && strcmp(s->text, "name") == 0;

		token = rfl_json_next(s);
		if (is_name && token == RFL_JSON_STRING && k->device[0] == '\0')
			(void)rfl_span_copy((struct rfl_span){ s->text, s->len }, k->device,
					    sizeof(k->device));
	}
}

static enum rfl_rc read_events(struct torch *k)
{
	struct rfl_json_stream *s = &k->json;
	const size_t depth = s->depth;
	enum rfl_json_token token = RFL_JSON_ARRAY;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && token > RFL_JSON_END && s->depth >= depth) {
		token = rfl_json_next(s);
		if (token == RFL_JSON_OBJECT)
			rc = take_event(k);
		else
			token = rfl_json_skip(s, token);
	}
	return rc;
}

/* Read the whole file: a list of events, or an object that has one. */
static enum rfl_rc read_trace(struct torch *k)
{
	struct rfl_json_stream *s = &k->json;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_json_token token;
	enum rfl_rc rc = RFL_OK;

	*s = (struct rfl_json_stream){ .in = k->i.in, .err = &why };
	token = rfl_json_next(s);
	if (token == RFL_JSON_ARRAY)
		rc = read_events(k);
	else if (token != RFL_JSON_OBJECT && token != RFL_JSON_ERROR)
		return rfl_import_refuse(&k->i, 0, "not a trace: neither an object nor a list");
	while (rc == RFL_OK && token > RFL_JSON_END) {
		token = rfl_json_next(s);
		if (token != RFL_JSON_KEY)
			continue;
		const bool events = strcmp(s->text, "traceEvents") == 0;
		const bool devices = strcmp(s->text, "deviceProperties") == 0;
		token = rfl_json_next(s);
		if (events && token == RFL_JSON_ARRAY)
			rc = read_events(k);
		else if (devices && token == RFL_JSON_ARRAY)
			read_devices(k);
		else
			token = rfl_json_skip(s, token);
	}
	if (rc != RFL_OK || s->rc == RFL_OK)
		return rc;
	if (!k->i.options->keep_going && s->rc == RFL_EFORMAT)
		return rfl_fail(k->i.err, s->rc, 0, "%s; use --keep-going to keep what precedes it",
				why.msg);
	return rfl_import_leave_out(&k->i, &why);
}

/* ---- operators that call others ---- */

static int by_start(const void *a, const void *b)
{
	const struct op *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start < y->start || x->start > y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end < y->end || x->end > y->end)
		return x->end > y->end ? -1 : 1;
	return x->sequence < y->sequence ? -1 : 1;
}

/* Decide what an operator is, after those that it calls, which precede ops[end]. */
static void close_op(struct torch *k, size_t i, size_t end, struct op *parent)
{
	struct op *o = &k->ops[i];
	const enum rfl_torch_kind kind = rfl_torch_kind_of(k->rules[o->name - 1]);

	if (kind >= RFL_TORCH_FILLS && !o->has_product) {
		o->end_of_calls = (uint32_t)end;
		o->has_work = kind > RFL_TORCH_FILLS;
		o->has_product = kind == RFL_TORCH_MULTIPLIES;
	} else if (kind && (o->has_work || !o->reason)) { /* views, and calls that compute */
		o->flops = o->bytes = 0;
		o->reason = NULL;
		o->is_caller = true;
	}
	if (parent) {
		parent->has_work = parent->has_work || o->has_work;
		parent->has_product = parent->has_product || o->has_product;
	}
}

/* Find the calls between operators, and give each operator its time and work. */
static void nest(struct torch *k)
{
	uint32_t *stack = rfl_alloc_array(k->nops, sizeof(*stack));
	size_t depth = 0;

	if (k->nops > 0)
		qsort(k->ops, k->nops, sizeof(*k->ops), by_start);
	for (size_t i = 0; i <= k->nops; i++) {
		struct op *o = i < k->nops ? &k->ops[i] : NULL, *top = NULL;

		while (depth > 0) {
			top = &k->ops[stack[depth - 1]];
			if (o && top->thread == o->thread && o->start < top->end)
				break;
			depth--;
			close_op(k, stack[depth], i, depth > 0 ? &k->ops[stack[depth - 1]] : NULL);
			top = NULL;
		}
		if (!o)
			break;
		o->owner = o->is_call ? NONE : (uint32_t)i;
		if (o->is_call && top)
			o->owner = stack[depth - 1];
		if (o->is_call)
			continue;
		if (top)
			top->time_s -= (fmin(o->end, top->end) - o->start) / 1e6;
		stack[depth++] = (uint32_t)i;
	}
	free(stack);
	/* the outermost operator that includes others, in one pass */
	for (size_t i = 0, owner = 0, end = 0; i < k->nops; i++) {
		struct op *o = &k->ops[i];

		if (i >= end) {
			owner = i;
			end = o->end_of_calls;
			continue;
		}
		o->owner = (uint32_t)owner;
		k->ops[owner].time_s += o->is_call ? 0 : fmax(o->time_s, 0);
	}
}

/* ---- the capture ---- */

/* Add a call of an operator or a launch of a kernel. */
static void put(struct torch *k, enum rfl_range_kind kind, const char *name, const char *block,
		const char *grid, double time_s, const struct op *o)
{
	const enum rfl_validity validity = o->reason ? RFL_VALID_UNAVAILABLE : RFL_VALID;
	const struct rfl_reading readings[] = {
		{ "duration", "s", time_s, RFL_VALID, NULL },
		{ "flops", "FLOP", o->flops, validity, o->reason },
		{ "tensor_bytes", "byte", o->bytes, validity, o->reason },
	};

	rfl_capture_begin(k->i.b, kind, name, block, grid);
	for (size_t i = 0; i < RFL_ARRAY_LEN(readings); i++)
		(void)rfl_import_give(&k->i, &readings[i]);
	/* every type of the trace, so that its total covers the operators with other types */
	for (unsigned m = 1; rfl_torch_metrics[m]; m++) {
		const struct rfl_reading typed = { rfl_torch_metrics[m], "FLOP",
						   m == o->metric || isnan(o->flops) ? o->flops : 0,
						   validity, o->reason };

		if (k->metrics >> m & 1)
			(void)rfl_import_give(&k->i, &typed);
	}
}

static const char *text_of(const struct torch *k, uint32_t name)
{
	return name > 0 ? k->names.keys[name - 1].at : NULL;
}

/* The operators that launched the kernels: by "External id", else by the call of the runtime. */
static void launch(struct torch *k)
{
	const struct op unknown = {
		.flops = NAN,
		.bytes = NAN,
		.reason = "some kernels were not launched by an operator of the trace"
	};
	uint32_t *launcher = rfl_alloc_array(k->ids.n + 1, sizeof(*launcher));
	/* bytes of the kernels of each operator; NaN unless all are copies or fills */
	double *copied = rfl_alloc_array(k->nops, sizeof(*copied));

	for (size_t i = 0; i <= k->ids.n; i++)
		launcher[i] = NONE;
	for (size_t i = k->nops; i-- > 0;) { /* the first of several with one id wins */
		const int64_t key[2] = { k->ops[i].id, k->ops[i].is_call };
		const uint32_t number = rfl_keys_find(&k->ids, key, sizeof(key));

		launcher[number] = number > 0 ? k->ops[i].owner : NONE;
	}
	for (struct kernel *c = k->kernels; c < k->kernels + k->nkernels; c++) {
		c->id = launcher[c->id] != NONE ? launcher[c->id] : launcher[c->correlation];
		if (c->id == NONE)
			continue;
		struct op *o = &k->ops[c->id];
		if (o->kernels++ == 0)
			o->time_s = 0;
		o->time_s += c->time_s;
		copied[c->id] += c->bytes;
		if (o->is_caller) { /* it launched kernels itself */
			o->flops = o->bytes = NAN;
			o->reason = rfl_torch_no_rule;
		}
	}
	free(launcher);
	for (size_t i = 0; i < k->nops; i++)
		if (k->ops[i].kernels > 0 && !isnan(copied[i])) { /* a side can be the host */
			k->ops[i].flops = 0;
			k->ops[i].bytes = copied[i];
			k->ops[i].reason = NULL;
		}
	free(copied);
	for (const struct kernel *c = k->kernels; c < k->kernels + k->nkernels; c++) {
		struct op o = c->id == NONE ? unknown : k->ops[c->id];

		if (o.kernels > 1 && !o.reason) {
			o.flops = o.bytes = NAN;
			o.reason = "one operator launched several kernels; see the operators";
		}
		if (!isnan(c->bytes))
			o = (struct op){ .flops = 0, .bytes = c->bytes };
		if (c->id == NONE)
			put(k, RFL_RANGE_OP, "(no operator)", NULL, NULL, c->time_s, &o);
		put(k, RFL_RANGE_KERNEL, text_of(k, c->name), text_of(k, c->block),
		    text_of(k, c->grid), c->time_s, &o);
	}
}

static void note_steps(struct torch *k, double all_s)
{
	if (k->steps.n == 0)
		return;
	if (k->i.options->steps <= 0)
		rfl_capture_steps(k->i.b, (int64_t)k->steps.n, -1);
	if (k->step_s > 0)
		rfl_capture_note(k->i.b,
				 "%zu steps (ProfilerStep) took %.6g s; the %s in the trace take "
				 "%.3g %% of it",
				 k->steps.n, k->step_s, k->nkernels ? "kernels" : "operators",
				 100 * all_s / k->step_s);
}

static enum rfl_rc put_all(struct torch *k)
{
	double all_s = 0;

	if (k->nops + k->nkernels == 0)
		return rfl_import_refuse(
			&k->i, 0,
			"no operators and no kernels in the trace; profile with "
			"activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
	nest(k);
	if (k->nkernels > 0)
		rfl_capture_chip(k->i.b, NULL, k->device[0] ? k->device : "GPU");
	if (k->nkernels > 0)
		launch(k);
	for (size_t i = 0; i < k->nkernels; i++)
		all_s += k->kernels[i].time_s;
	for (size_t i = 0; i < k->nops; i++) {
		const struct op *o = &k->ops[i];

		if (o->owner != i || (k->nkernels > 0 && o->kernels == 0))
			continue;
		put(k, RFL_RANGE_OP, text_of(k, o->name), NULL, NULL, fmax(o->time_s, 0), o);
		all_s += k->nkernels > 0 ? 0 : fmax(o->time_s, 0);
	}
	note_steps(k, all_s);
	return RFL_OK;
}

static enum rfl_rc read_stream(struct rfl_import *import)
{
	struct torch *k = (struct torch *)import;
	enum rfl_rc rc = read_trace(k);

	if (rc == RFL_OK)
		rc = put_all(k);
	free(k->ops);
	free(k->kernels);
	return rc;
}

static int detect(struct rfl_span head)
{
	static const char *const marks[] = { "\"cpu_op\"", "\"deviceProperties\"",
					     "\"user_annotation\"", "\"gpu_memcpy\"" };

	while (head.len > 0 && (*head.at == ' ' || *head.at == '\n' || *head.at == '\r'))
		head = rfl_span_from(head, 1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(marks); i++)
		if ((rfl_span_starts(head, "{") || rfl_span_starts(head, "[")) &&
		    rfl_span_has(head, marks[i]))
			return 90;
	return 0;
}

const struct rfl_importer rfl_importer_torch = {
	.name = "torch",
	.summary = "torch.profiler: Chrome traces (JSON) with operators, shapes and GPU kernels",
	.formulas = "torch",
	.size = sizeof(struct torch),
	.detect = detect,
	.stream = read_stream,
};
