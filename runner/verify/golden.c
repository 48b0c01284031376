/*
 * golden.c - reads golden files. A reader keeps its first failure in rc; every later read returns 0
 * or NULL, so rc is checked only before a value is used.
 */
#include "runner/verify/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/num.h"
#include "complexity/zoo.h"

enum { MAX_BATCH = 1 << 20 }; /* as for a run, so that sizes in bytes do not overflow */

#define NORM_NAME(id, name) name,
const char *const rfl_golden_norm_names[] = { RFL_GOLDEN_NORMS(NORM_NAME) NULL };

/* ------------------------------------------------------------------ the reader */

struct reader {
	const char *file;
	struct rfl_arena *arena; /* owns the values read */
	struct rfl_err *err;
	enum rfl_rc rc;
};

/* A value in the file, and its path for messages. */
struct place {
	const json_t *json;
	char path[96];
};

/* Unless ok, fail with the message "file: path what". @param key  a member of `at`, or NULL */
static void require(struct reader *r, const struct place *at, const char *key, bool ok,
		    const char *what)
{
	if (!ok && r->rc == RFL_OK)
		r->rc = rfl_fail(r->err, RFL_EFORMAT, 0, "%s: %s%s%s%s%s", r->file, at->path,
				 key ? "/" : "", key ? key : "", key || *at->path ? " " : "", what);
}

/* Allocate zeroed memory from the arena. */
static void *take(struct reader *r, int64_t n, size_t size)
{
	return r->rc == RFL_OK ? rfl_arena_array(r->arena, (size_t)n, size) : NULL;
}

static bool has(const struct reader *r, const struct place *at, const char *key)
{
	return r->rc == RFL_OK && json_object_get(at->json, key);
}

static struct place member(struct reader *r, const struct place *at, const char *key)
{
	struct place p = { .json = r->rc == RFL_OK ? json_object_get(at->json, key) : NULL };

	(void)snprintf(p.path, sizeof(p.path), "%.60s/%.32s", at->path, key);
	require(r, at, key, p.json, "is missing");
	return p;
}

static struct place element(const struct place *at, int64_t i)
{
	struct place p = { .json = json_array_get(at->json, (size_t)i) };

	(void)snprintf(p.path, sizeof(p.path), "%.72s/%lld", at->path, (long long)i);
	return p;
}

static double real_of(struct reader *r, struct place at)
{
	require(r, &at, NULL, json_is_number(at.json), "is not a number");
	return r->rc == RFL_OK ? json_number_value(at.json) : 0;
}

static int64_t int_of(struct reader *r, struct place at)
{
	require(r, &at, NULL, json_is_integer(at.json), "is not an integer");
	return r->rc == RFL_OK ? json_integer_value(at.json) : 0;
}

static int64_t length_of(struct reader *r, struct place at)
{
	require(r, &at, NULL, json_is_array(at.json), "is not a list");
	return r->rc == RFL_OK ? (int64_t)json_array_size(at.json) : 0;
}

static const char *text_of(struct reader *r, struct place at)
{
	const size_t size = json_string_length(at.json) + 1;
	char *copy;

	require(r, &at, NULL, json_is_string(at.json), "is not a string");
	copy = take(r, (int64_t)size, 1);
	return copy ? memcpy(copy, json_string_value(at.json), size) : NULL;
}

static double get_real(struct reader *r, const struct place *at, const char *key)
{
	return real_of(r, member(r, at, key));
}

static int64_t get_int(struct reader *r, const struct place *at, const char *key)
{
	return int_of(r, member(r, at, key));
}

static const char *get_text(struct reader *r, const struct place *at, const char *key)
{
	return text_of(r, member(r, at, key));
}

/* Read a list of doubles or of 64-bit integers. */
static void *get_list(struct reader *r, const struct place *at, const char *key, bool integers,
		      int64_t *n)
{
	const struct place list = member(r, at, key);
	int64_t *ints;
	double *reals;

	*n = length_of(r, list);
	reals = take(r, *n, sizeof(*reals));
	ints = (int64_t *)(void *)reals;
	for (int64_t i = 0; reals && i < *n; i++)
		if (integers)
			ints[i] = int_of(r, element(&list, i));
		else
			reals[i] = real_of(r, element(&list, i));
	return reals;
}

static double *get_reals(struct reader *r, const struct place *at, const char *key, int64_t *n)
{
	return get_list(r, at, key, false, n);
}

static int64_t *get_ints(struct reader *r, const struct place *at, const char *key, int64_t *n)
{
	return get_list(r, at, key, true, n);
}

/* Read a list of rows of equal length. */
static double *get_matrix(struct reader *r, const struct place *at, const char *key, int64_t *rows,
			  int64_t *columns)
{
	const struct place list = member(r, at, key);
	double *values = NULL;

	*rows = length_of(r, list);
	*columns = 0;
	for (int64_t i = 0; r->rc == RFL_OK && i < *rows; i++) {
		const struct place row = element(&list, i);
		const int64_t n = length_of(r, row);

		if (i == 0) {
			*columns = n;
			values = take(r, *rows * n, sizeof(*values));
		}
		require(r, &row, NULL, n == *columns, "is not as long as the row before it");
		for (int64_t j = 0; r->rc == RFL_OK && j < n; j++)
			values[i * n + j] = real_of(r, element(&row, j));
	}
	return values;
}

/* ------------------------------------------------------------------ logits files */

/* Results in double are in a separate object, or next to the float results with a prefix. */
static void read_forward(struct reader *r, const struct place *root, const char *object,
			 const char *prefix, struct rfl_golden_forward *f)
{
	const struct place at = member(r, root, object);
	char key[40];
	int64_t n;

#define KEY(name) ((void)snprintf(key, sizeof(key), "%s%s", prefix, (name)), key)
	f->logits = get_matrix(r, &at, KEY("logits_first16"), &f->rows, &f->first);
	f->sum = get_real(r, &at, KEY("sum"));
	f->l2 = get_real(r, &at, KEY("l2"));
	f->loss = get_real(r, &at, KEY("loss"));
#undef KEY
	f->argmax = get_ints(r, &at, "argmax", &n);
	require(r, &at, "argmax", n == f->rows, "must have one entry per row");
	f->max_abs_diff_fp32 = get_real(r, &at, "max_abs_diff_fp32");
	f->min_margin =
		has(r, &at, "min_top1_margin") ? get_real(r, &at, "min_top1_margin") : (double)NAN;
}

static void read_trace(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	const struct place list = member(r, root, "trace");

	g->logits.nlayers = length_of(r, list);
	g->logits.layers = take(r, g->logits.nlayers, sizeof(*g->logits.layers));
	for (int64_t i = 0; r->rc == RFL_OK && i < g->logits.nlayers; i++) {
		struct rfl_golden_layer *layer = &g->logits.layers[i];
		const struct place p = element(&list, i);
		int64_t ndim, *dim = get_ints(r, &p, "shape", &ndim);

		layer->name = get_text(r, &p, "name");
		layer->l2 = get_real(r, &p, "l2");
		layer->numel = 1;
		for (int64_t d = 0; r->rc == RFL_OK && d < ndim; d++)
			require(r, &p, "shape",
				dim[d] >= 1 && rfl_num_mul(layer->numel, dim[d], &layer->numel),
				"is not the shape of a layer");
	}
}

static void read_cast(struct reader *r, const struct place *bf16, const char *mode,
		      struct rfl_golden_cast *c)
{
	const struct place at = member(r, bf16, mode);

	c->logits = get_matrix(r, &at, "logits_first16", &c->rows, &c->first);
	c->l2 = get_real(r, &at, "l2");
	c->loss = get_real(r, &at, "loss");
}

static void read_logits(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	int64_t ndim, *shape = get_ints(r, root, "logits_shape", &ndim);
	const bool split = has(r, root, "batch_stats_fp64");

	require(r, root, "logits_shape", ndim >= 2 && shape && shape[ndim - 1] >= 1,
		"is not [.., rows, classes]");
	g->logits.classes = r->rc == RFL_OK ? shape[ndim - 1] : 0;
	g->logits.params = get_int(r, root, "params");
	g->logits.tensors = get_int(r, root, "filled_tensors");
	read_forward(r, root, "fp64", "", &g->logits.fp64);
	g->logits.has_batch_stats = split || has(r, root, "batch_stats");
	if (g->logits.has_batch_stats)
		read_forward(r, root, split ? "batch_stats_fp64" : "batch_stats",
			     split ? "" : "fp64_", &g->logits.batch_stats);
	g->logits.has_gradient = has(r, root, "gradient");
	if (g->logits.has_gradient) {
		const struct place at = member(r, root, "gradient");
		struct rfl_golden_gradient *gradient = &g->logits.gradient;

		gradient->auxiliary_weight = get_real(r, &at, "auxiliary_weight");
		gradient->loss = get_real(r, &at, "loss");
		gradient->loss_abs_diff_fp32 = get_real(r, &at, "loss_abs_diff_fp32");
		gradient->each = get_reals(r, &at, "each", &gradient->n);
		gradient->max_rel_diff_fp32 = get_real(r, &at, "max_rel_diff_fp32");
	}
	g->logits.has_bf16 = has(r, root, "bf16");
	if (g->logits.has_bf16) { /* with the same rows and gradients as the double results */
		const struct place at = member(r, root, "bf16");
		struct rfl_golden_cast *train = &g->logits.bf16_train, *eval = &g->logits.bf16_eval;
		const struct rfl_golden_forward *stats = &g->logits.batch_stats;
		const struct rfl_golden_forward *like = &g->logits.fp64;
		int64_t n;

		read_cast(r, &at, "eval", eval);
		read_cast(r, &at, "train", train);
		g->logits.bf16_each = get_reals(r, &at, "each", &n);
		require(r, &at, "each", n == g->logits.gradient.n,
			"is not as long as that of /gradient");
		require(r, &at, NULL,
			eval->rows == like->rows && eval->first == like->first &&
				train->rows == like->rows && train->first == like->first,
			"and /fp64 differ in length");
		require(r, &at, NULL,
			!g->logits.has_batch_stats ||
				(stats->rows == like->rows && stats->first == like->first),
			"and batch_stats differ in length");
	}
	if (has(r, root, "trace") || !g->logits.has_gradient)
		read_trace(r, root, g);
}

/* ------------------------------------------------------------------ train files */

static void read_run(struct reader *r, const struct place *at, struct rfl_golden_run *run)
{
	run->losses = get_reals(r, at, "losses", &run->nlosses);
	require(r, at, "losses", run->nlosses >= 2, "must have an entry before and after a step");
	run->logits = get_matrix(r, at, "logits_first4_step0", &run->rows, &run->first);
	run->grads = get_reals(r, at, "grad_l2_each_step0", &run->ngrads);
	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT; i++) {
		const char *name = rfl_golden_norm_names[i];
		const bool optional = i == RFL_GOLDEN_RUNNING_MEAN || i == RFL_GOLDEN_RUNNING_VAR;

		run->norms[i] = optional && !has(r, at, name) ? (double)NAN : get_real(r, at, name);
	}
}

/* The sections that a train file may have. lr NULL: use the lr of sgd_hyper or adamw_hyper. */
static const struct section {
	const char *name, *twin, *lr;
	enum rfl_optimizer_rule rule;
	enum rfl_engine_mode mode;
} known_sections[] = {
	{ "sgd", "sgd_fp64", NULL, RFL_RULE_SGD, RFL_ENGINE_TRAIN },
	{ "sgd_gentle", "sgd_gentle_fp64", "sgd_gentle_lr", RFL_RULE_SGD, RFL_ENGINE_TRAIN },
	{ "sgd_frozen_bn", "sgd_frozen_bn_fp64", "sgd_frozen_bn_lr", RFL_RULE_SGD,
	  RFL_ENGINE_TRAIN_FROZEN_BN },
	{ "adamw", "adamw_fp64", NULL, RFL_RULE_ADAMW, RFL_ENGINE_TRAIN },
};

static void read_section(struct reader *r, const struct place *root, const struct section *known,
			 struct rfl_golden *g)
{
	struct rfl_golden_section *s = &g->train.sections[g->train.nsections++];
	const bool adamw = known->rule == RFL_RULE_ADAMW;
	const struct place hyper = member(r, root, adamw ? "adamw_hyper" : "sgd_hyper");
	struct rfl_optimizer *o = &s->optimizer;
	struct place at;

	s->name = known->name;
	s->mode = known->mode;
	o->rule = known->rule;
	if (adamw) {
		int64_t n;
		const double *betas = get_reals(r, &hyper, "betas", &n);

		require(r, &hyper, "betas", n == 2, "must have two entries");
		o->eps = get_real(r, &hyper, "eps");
		o->beta1 = r->rc == RFL_OK ? betas[0] : 0;
		o->beta2 = r->rc == RFL_OK ? betas[1] : 0;
	} else {
		o->momentum = get_real(r, &hyper, "momentum");
	}
	o->weight_decay = get_real(r, &hyper, "weight_decay");
	o->lr = get_real(r, known->lr ? root : &hyper, known->lr ? known->lr : "lr");
	at = member(r, root, known->name);
	read_run(r, &at, &s->fp32);
	at = member(r, root, known->twin);
	read_run(r, &at, &s->fp64);
	require(r, &at, NULL,
		s->fp32.nlosses == s->fp64.nlosses && s->fp32.rows == s->fp64.rows &&
			s->fp32.first == s->fp64.first,
		"and its _fp64 section differ in length");
	require(r, &at, "grad_l2_each_step0",
		s->fp32.ngrads == g->train.nparams && s->fp64.ngrads == g->train.nparams,
		"must have one entry per name in param_names");
}

static void read_train(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	const struct place names = member(r, root, "param_names");

	g->train.nparams = length_of(r, names);
	g->train.param_names = take(r, g->train.nparams, sizeof(*g->train.param_names));
	for (int64_t i = 0; r->rc == RFL_OK && i < g->train.nparams; i++)
		g->train.param_names[i] = text_of(r, element(&names, i));
	g->train.sections = take(r, RFL_ARRAY_LEN(known_sections), sizeof(*g->train.sections));
	for (size_t i = 0; i < RFL_ARRAY_LEN(known_sections); i++)
		if (has(r, root, known_sections[i].name))
			read_section(r, root, &known_sections[i], g);
	require(r, root, NULL, g->train.nsections > 0,
		"has none of the sections sgd, sgd_gentle, sgd_frozen_bn, adamw");
}

/* ------------------------------------------------------------------ the file */

static void read_golden(struct reader *r, const struct place *root, struct rfl_golden *g)
{
	const int64_t *shape;
	int64_t ndim;

	require(r, root, NULL, json_is_object(root->json),
		"is not a golden file: it must be a JSON object");
	g->is_train = has(r, root, "param_names");
	require(r, root, NULL, g->is_train || has(r, root, "logits_shape"),
		"is not a golden file: it has neither logits_shape nor param_names");
	g->model = get_text(r, root, "model");
	g->batch = get_int(r, root, "batch");
	shape = get_ints(r, root, "input_shape", &ndim);
	require(r, root, "input_shape",
		(ndim == 4 || ndim == 2) && shape && shape[0] == g->batch && shape[1] >= 1,
		"is not [batch, channels, height, width] or [batch, tokens]");
	require(r, root, "batch", g->batch >= 1 && g->batch <= MAX_BATCH,
		"is not a number from 1 to 1048576");
	if (has(r, root, "attention")) {
		const char *word = get_text(r, root, "attention");
		int i = 0;

		while (word && rfl_attention_names[i] && strcmp(word, rfl_attention_names[i]) != 0)
			i++;
		require(r, root, "attention", rfl_attention_names[i],
			"is not a known form of attention");
		g->attention = (enum rfl_attention)i;
	}
	if (r->rc != RFL_OK)
		return;
	if (ndim == 2) {
		g->tokens = shape[1];
	} else {
		g->channels = shape[1];
		g->height = shape[2];
		g->width = shape[3];
	}
	if (g->is_train)
		read_train(r, root, g);
	else
		read_logits(r, root, g);
}

enum rfl_rc rfl_golden_load(const char *path, struct rfl_golden **ret, struct rfl_err *err)
{
	struct reader r = { .file = path, .err = err };
	struct place root = { .path = "" };
	struct rfl_golden *g;
	json_t *json = NULL;

	r.rc = rfl_json_load(path, &json, err);
	if (r.rc != RFL_OK)
		return r.rc;
	root.json = json;
	r.arena = rfl_arena_new();
	g = take(&r, 1, sizeof(*g));
	g->arena = r.arena;
	g->path = rfl_arena_strdup(r.arena, path);
	read_golden(&r, &root, g);
	if (r.rc == RFL_OK)
		*ret = g;
	else
		rfl_arena_free(r.arena);
	json_decref(json);
	return r.rc;
}

void rfl_golden_free(struct rfl_golden *golden)
{
	if (golden)
		rfl_arena_free(golden->arena);
}
