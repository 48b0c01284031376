/*
 * golden.c - reading golden files. What is done with them is in verify.c.
 */
#include "runner/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

#define NORM_NAME(id, name) name,
const char *const rfl_golden_norm_names[] = { RFL_GOLDEN_NORMS(NORM_NAME) NULL };

/* ------------------------------------------------------------------ a reader that fails once */

/* The first failure is kept in rc; every later read gives 0 or NULL. */
struct reader {
	const char *file;
	struct rfl_arena *arena;
	struct rfl_err *err;
	enum rfl_rc rc;
};

/* An object or array of the file, and its path for messages. */
struct place {
	const json_t *json;
	char path[96];
};

static void refuse(struct reader *r, const struct place *at, const char *key, const char *what)
{
	if (r->rc == RFL_OK)
		r->rc = rfl_fail(r->err, RFL_EFORMAT, 0, "%s: %s%s%s%s%s", r->file, at->path,
				 key ? "/" : "", key ? key : "", key || *at->path ? " " : "", what);
}

static void *take(struct reader *r, int64_t n, size_t size)
{
	void *memory = NULL;

	if (r->rc == RFL_OK) {
		memory = rfl_arena_array(r->arena, (size_t)n, size);
		if (!memory && n > 0)
			r->rc = rfl_fail(r->err, RFL_ENOMEM, 0, "%s: out of memory", r->file);
	}
	return memory;
}

static struct place member(struct reader *r, const struct place *at, const char *key)
{
	struct place p = { .json = r->rc == RFL_OK ? json_object_get(at->json, key) : NULL };

	(void)snprintf(p.path, sizeof(p.path), "%.60s/%.32s", at->path, key);
	if (!p.json)
		refuse(r, at, key, "is missing");
	return p;
}

static struct place element(const struct place *at, int64_t i)
{
	struct place p = { .json = json_array_get(at->json, (size_t)i) };

	(void)snprintf(p.path, sizeof(p.path), "%.72s/%lld", at->path, (long long)i);
	return p;
}

static double real_of(struct reader *r, const struct place *at)
{
	if (r->rc == RFL_OK && !json_is_number(at->json))
		refuse(r, at, NULL, "is not a number");
	return r->rc == RFL_OK ? json_number_value(at->json) : 0;
}

static int64_t int_of(struct reader *r, const struct place *at)
{
	if (r->rc == RFL_OK && !json_is_integer(at->json))
		refuse(r, at, NULL, "is not an integer");
	return r->rc == RFL_OK ? json_integer_value(at->json) : 0;
}

static int64_t length_of(struct reader *r, const struct place *at)
{
	if (r->rc == RFL_OK && !json_is_array(at->json))
		refuse(r, at, NULL, "is not a list");
	return r->rc == RFL_OK ? (int64_t)json_array_size(at->json) : 0;
}

static double get_real(struct reader *r, const struct place *at, const char *key)
{
	const struct place p = member(r, at, key);

	return real_of(r, &p);
}

static int64_t get_int(struct reader *r, const struct place *at, const char *key)
{
	const struct place p = member(r, at, key);

	return int_of(r, &p);
}

static const char *text_of(struct reader *r, const struct place *at)
{
	char *copy = NULL;

	if (r->rc == RFL_OK && !json_is_string(at->json))
		refuse(r, at, NULL, "is not a text");
	if (r->rc == RFL_OK) {
		copy = rfl_arena_strdup(r->arena, json_string_value(at->json));
		if (!copy)
			r->rc = rfl_fail(r->err, RFL_ENOMEM, 0, "%s: out of memory", r->file);
	}
	return copy;
}

static const char *get_text(struct reader *r, const struct place *at, const char *key)
{
	const struct place p = member(r, at, key);

	return text_of(r, &p);
}

static double *get_reals(struct reader *r, const struct place *at, const char *key, int64_t *n)
{
	const struct place list = member(r, at, key);
	double *values;

	*n = length_of(r, &list);
	values = take(r, *n, sizeof(*values));
	for (int64_t i = 0; values && i < *n; i++) {
		const struct place p = element(&list, i);

		values[i] = real_of(r, &p);
	}
	return values;
}

static int64_t *get_ints(struct reader *r, const struct place *at, const char *key, int64_t *n)
{
	const struct place list = member(r, at, key);
	int64_t *values;

	*n = length_of(r, &list);
	values = take(r, *n, sizeof(*values));
	for (int64_t i = 0; values && i < *n; i++) {
		const struct place p = element(&list, i);

		values[i] = int_of(r, &p);
	}
	return values;
}

/* A list of rows, all of one length. */
static double *get_matrix(struct reader *r, const struct place *at, const char *key, int64_t *rows,
			  int64_t *columns)
{
	const struct place list = member(r, at, key);
	double *values = NULL;

	*rows = length_of(r, &list);
	*columns = 0;
	for (int64_t i = 0; r->rc == RFL_OK && i < *rows; i++) {
		const struct place row = element(&list, i);
		const int64_t n = length_of(r, &row);

		if (i == 0) {
			*columns = n;
			values = take(r, *rows * n, sizeof(*values));
		}
		if (n != *columns)
			refuse(r, &row, NULL, "is not as long as the row before it");
		for (int64_t j = 0; r->rc == RFL_OK && j < n; j++) {
			const struct place p = element(&row, j);

			values[i * n + j] = real_of(r, &p);
		}
	}
	return values;
}

/* ------------------------------------------------------------------ logits files */

/* The double results lie in an object of their own, or beside the float ones with a prefix. */
static void read_forward(struct reader *r, const struct place *at, const char *prefix,
			 struct rfl_golden_forward *f)
{
	char key[40];
	int64_t n;

#define KEY(name) ((void)snprintf(key, sizeof(key), "%s%s", prefix, (name)), key)
	f->logits = get_matrix(r, at, KEY("logits_first16"), &f->rows, &f->first);
	f->sum = get_real(r, at, KEY("sum"));
	f->l2 = get_real(r, at, KEY("l2"));
	f->loss = get_real(r, at, KEY("loss"));
#undef KEY
	f->argmax = get_ints(r, at, "argmax", &n);
	if (n != f->rows)
		refuse(r, at, "argmax", "has not one entry per row");
	f->max_abs_diff_fp32 = get_real(r, at, "max_abs_diff_fp32");
	f->min_margin = NAN;
	if (r->rc == RFL_OK && json_object_get(at->json, "min_top1_margin"))
		f->min_margin = get_real(r, at, "min_top1_margin");
}

static void read_trace(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	const struct place list = member(r, root, "trace");

	g->logits.nlayers = length_of(r, &list);
	g->logits.layers = take(r, g->logits.nlayers, sizeof(*g->logits.layers));
	for (int64_t i = 0; r->rc == RFL_OK && i < g->logits.nlayers; i++) {
		struct rfl_golden_layer *layer = &g->logits.layers[i];
		const struct place p = element(&list, i);
		int64_t ndim, *dim = get_ints(r, &p, "shape", &ndim);

		layer->name = get_text(r, &p, "name");
		layer->l2 = get_real(r, &p, "l2");
		layer->sum = get_real(r, &p, "sum");
		layer->numel = 1;
		for (int64_t d = 0; r->rc == RFL_OK && d < ndim; d++)
			layer->numel *= dim[d];
	}
}

static void read_logits(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	const struct place fp64 = member(r, root, "fp64");
	int64_t ndim, *shape = get_ints(r, root, "logits_shape", &ndim);

	if (r->rc == RFL_OK && (ndim != 2 || shape[1] < 1))
		refuse(r, root, "logits_shape", "is not [rows, classes]");
	g->logits.classes = r->rc == RFL_OK ? shape[1] : 0;
	g->logits.params = get_int(r, root, "params");
	g->logits.tensors = get_int(r, root, "filled_tensors");
	read_forward(r, &fp64, "", &g->logits.fp64);
	if (r->rc == RFL_OK && json_object_get(root->json, "batch_stats")) {
		const struct place stats = member(r, root, "batch_stats");

		g->logits.has_batch_stats = true;
		read_forward(r, &stats, "fp64_", &g->logits.batch_stats);
	}
	read_trace(r, root, g);
}

/* ------------------------------------------------------------------ train files */

static void read_run(struct reader *r, const struct place *at, struct rfl_golden_run *run)
{
	run->losses = get_reals(r, at, "losses", &run->nlosses);
	if (r->rc == RFL_OK && run->nlosses < 2)
		refuse(r, at, "losses", "has not one entry before and one after a step");
	run->logits = get_matrix(r, at, "logits_first4_step0", &run->rows, &run->first);
	run->grads = get_reals(r, at, "grad_l2_each_step0", &run->ngrads);
	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT; i++) {
		const char *name = rfl_golden_norm_names[i];
		const bool optional = i == RFL_GOLDEN_RUNNING_MEAN || i == RFL_GOLDEN_RUNNING_VAR;

		run->norms[i] = NAN;
		if (r->rc == RFL_OK && (!optional || json_object_get(at->json, name)))
			run->norms[i] = get_real(r, at, name);
	}
}

/* The sections that a train file may have. lr NULL: that of sgd_hyper. */
static const struct {
	const char *name, *lr, *uncovered;
	enum rfl_engine_mode mode;
} known_sections[] = {
	{ .name = "sgd", .mode = RFL_ENGINE_TRAIN },
	{ .name = "sgd_gentle", .lr = "sgd_gentle_lr", .mode = RFL_ENGINE_TRAIN },
	{ .name = "sgd_frozen_bn", .lr = "sgd_frozen_bn_lr", .mode = RFL_ENGINE_TRAIN_FROZEN_BN },
	{ .name = "adamw", .uncovered = "the engines have no AdamW", .mode = RFL_ENGINE_TRAIN },
};

static void check_runs(struct reader *r, const struct place *at, const struct rfl_golden_section *s,
		       int64_t nparams)
{
	if (s->fp32.nlosses != s->fp64.nlosses || s->fp32.rows != s->fp64.rows ||
	    s->fp32.first != s->fp64.first)
		refuse(r, at, NULL, "and its _fp64 differ in length");
	if (s->fp32.ngrads != nparams || s->fp64.ngrads != nparams)
		refuse(r, at, "grad_l2_each_step0", "has not one entry per name in param_names");
}

static void read_section(struct reader *r, const struct place *root, size_t known,
			 struct rfl_golden *g)
{
	struct rfl_golden_section *s = &g->train.sections[g->train.nsections++];
	const struct place hyper = member(r, root, "sgd_hyper");
	struct place at;
	char twin[40];

	s->name = known_sections[known].name;
	s->uncovered = known_sections[known].uncovered;
	s->mode = known_sections[known].mode;
	if (s->uncovered)
		return;
	s->optimizer.momentum = get_real(r, &hyper, "momentum");
	s->optimizer.weight_decay = get_real(r, &hyper, "weight_decay");
	s->optimizer.lr = known_sections[known].lr ? get_real(r, root, known_sections[known].lr)
						   : get_real(r, &hyper, "lr");
	at = member(r, root, s->name);
	read_run(r, &at, &s->fp32);
	(void)snprintf(twin, sizeof(twin), "%s_fp64", s->name);
	at = member(r, root, twin);
	read_run(r, &at, &s->fp64);
	check_runs(r, &at, s, g->train.nparams);
}

static void read_train(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	const struct place names = member(r, root, "param_names");

	g->train.nparams = length_of(r, &names);
	g->train.param_names = take(r, g->train.nparams, sizeof(*g->train.param_names));
	for (int64_t i = 0; r->rc == RFL_OK && i < g->train.nparams; i++) {
		const struct place p = element(&names, i);

		g->train.param_names[i] = text_of(r, &p);
	}
	g->train.sections = take(r, RFL_ARRAY_LEN(known_sections), sizeof(*g->train.sections));
	for (size_t i = 0; r->rc == RFL_OK && i < RFL_ARRAY_LEN(known_sections); i++)
		if (json_object_get(root->json, known_sections[i].name))
			read_section(r, root, i, g);
	if (g->train.nsections == 0)
		refuse(r, root, NULL, "has none of the sections sgd, sgd_gentle, sgd_frozen_bn");
}

/* ------------------------------------------------------------------ both */

static void read_golden(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	int64_t ndim, *shape;

	if (!json_is_object(root->json)) {
		refuse(r, root, NULL, "is not a golden file: an object is expected");
		return;
	}
	g->is_train = json_object_get(root->json, "param_names") != NULL;
	if (!g->is_train && !json_object_get(root->json, "logits_first16")) {
		refuse(r, root, NULL,
		       "is not a golden file: neither logits_first16 nor param_names is there");
		return;
	}
	g->model = get_text(r, root, "model");
	g->batch = get_int(r, root, "batch");
	shape = get_ints(r, root, "input_shape", &ndim);
	if (r->rc == RFL_OK && (ndim != 4 || shape[0] != g->batch || g->batch < 1 || shape[1] < 1))
		refuse(r, root, "input_shape", "is not [batch, channels, height, width]");
	if (r->rc != RFL_OK)
		return;
	g->channels = shape[1];
	g->height = shape[2];
	g->width = shape[3];
	if (g->is_train)
		read_train(r, root, g);
	else
		read_logits(r, root, g);
}

enum rfl_rc rfl_golden_load(const char *path, struct rfl_golden **ret, struct rfl_err *err)
{
	struct reader r = { .file = path, .err = err };
	struct place root = { .path = "" };
	struct rfl_golden *g = NULL;
	json_t *json = NULL;

	r.rc = rfl_json_load(path, &json, err);
	if (r.rc != RFL_OK)
		goto done;
	r.arena = rfl_arena_new(0);
	if (!r.arena) {
		r.rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	root.json = json;
	g = take(&r, 1, sizeof(*g));
	if (g) {
		g->arena = r.arena;
		g->path = rfl_arena_strdup(r.arena, path);
		read_golden(&r, &root, g);
	}
	if (r.rc != RFL_OK)
		goto done;
	*ret = g;
	r.arena = NULL;
done:
	rfl_arena_free(r.arena);
	json_decref(json);
	return r.rc;
}

void rfl_golden_free(struct rfl_golden *golden)
{
	if (golden)
		rfl_arena_free(golden->arena);
}
