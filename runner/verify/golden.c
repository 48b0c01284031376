/*
 * golden.c - reading golden files. What is done with them is in verify.c.
 */
#include "runner/verify/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "complexity/zoo.h"
#include "runner/verify/golden_read.h"

enum { MAX_BATCH = 1 << 20 }; /* as of a run: sizes in bytes do not overflow */

#define NORM_NAME(id, name) name,
const char *const rfl_golden_norm_names[] = { RFL_GOLDEN_NORMS(NORM_NAME) NULL };

/* ------------------------------------------------------------------ logits files */

/* The double results lie in an object of their own, or beside the float ones with a prefix. */
static void read_forward(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			 const char *prefix, struct rfl_golden_forward *f)
{
	char key[40];
	int64_t n;

#define KEY(name) ((void)snprintf(key, sizeof(key), "%s%s", prefix, (name)), key)
	f->logits = rfl_golden__get_matrix(r, at, KEY("logits_first16"), &f->rows, &f->first);
	f->sum = rfl_golden__get_real(r, at, KEY("sum"));
	f->l2 = rfl_golden__get_real(r, at, KEY("l2"));
	f->loss = rfl_golden__get_real(r, at, KEY("loss"));
#undef KEY
	f->argmax = rfl_golden__get_ints(r, at, "argmax", &n);
	if (n != f->rows)
		rfl_golden__refuse(r, at, "argmax", "has not one entry per row");
	f->max_abs_diff_fp32 = rfl_golden__get_real(r, at, "max_abs_diff_fp32");
	f->min_margin = NAN;
	if (r->rc == RFL_OK && json_object_get(at->json, "min_top1_margin"))
		f->min_margin = rfl_golden__get_real(r, at, "min_top1_margin");
}

static void read_trace(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
		       struct rfl_golden *g)
{
	const struct rfl_golden_place list = rfl_golden__member(r, root, "trace");

	g->logits.nlayers = rfl_golden__length_of(r, &list);
	g->logits.layers = rfl_golden__take(r, g->logits.nlayers, sizeof(*g->logits.layers));
	for (int64_t i = 0; r->rc == RFL_OK && i < g->logits.nlayers; i++) {
		struct rfl_golden_layer *layer = &g->logits.layers[i];
		const struct rfl_golden_place p = rfl_golden__element(&list, i);
		int64_t ndim, *dim = rfl_golden__get_ints(r, &p, "shape", &ndim);

		layer->name = rfl_golden__get_text(r, &p, "name");
		layer->l2 = rfl_golden__get_real(r, &p, "l2");
		layer->sum = rfl_golden__get_real(r, &p, "sum");
		layer->numel = 1;
		for (int64_t d = 0; r->rc == RFL_OK && d < ndim; d++)
			if (dim[d] < 1 || !rfl_num_mul(layer->numel, dim[d], &layer->numel))
				rfl_golden__refuse(r, &p, "shape", "is not the shape of a layer");
	}
}

static void read_gradient(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
			  struct rfl_golden *g)
{
	const struct rfl_golden_place at = rfl_golden__member(r, root, "gradient");
	struct rfl_golden_gradient *gradient = &g->logits.gradient;

	g->logits.has_gradient = true;
	gradient->auxiliary_weight = rfl_golden__get_real(r, &at, "auxiliary_weight");
	gradient->loss = rfl_golden__get_real(r, &at, "loss");
	gradient->loss_abs_diff_fp32 = rfl_golden__get_real(r, &at, "loss_abs_diff_fp32");
	gradient->each = rfl_golden__get_reals(r, &at, "each", &gradient->n);
	gradient->max_rel_diff_fp32 = rfl_golden__get_real(r, &at, "max_rel_diff_fp32");
}

static void read_cast(struct rfl_golden_reader *r, const struct rfl_golden_place *bf16,
		      const char *mode, struct rfl_golden_cast *c)
{
	const struct rfl_golden_place at = rfl_golden__member(r, bf16, mode);

	c->logits = rfl_golden__get_matrix(r, &at, "logits_first16", &c->rows, &c->first);
	c->l2 = rfl_golden__get_real(r, &at, "l2");
	c->loss = rfl_golden__get_real(r, &at, "loss");
}

/* Rows and gradients are those of the double results. */
static void read_bf16(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
		      struct rfl_golden *g)
{
	const struct rfl_golden_place at = rfl_golden__member(r, root, "bf16");
	const struct rfl_golden_forward *like = &g->logits.fp64;
	int64_t n;

	g->logits.has_bf16 = true;
	read_cast(r, &at, "eval", &g->logits.bf16_eval);
	read_cast(r, &at, "train", &g->logits.bf16_train);
	g->logits.bf16_each = rfl_golden__get_reals(r, &at, "each", &n);
	if (n != g->logits.gradient.n)
		rfl_golden__refuse(r, &at, "each", "is not as long as that of /gradient");
	if (g->logits.bf16_eval.rows != like->rows || g->logits.bf16_eval.first != like->first ||
	    g->logits.bf16_train.rows != like->rows || g->logits.bf16_train.first != like->first)
		rfl_golden__refuse(r, &at, NULL, "and /fp64 differ in length");
	if (g->logits.has_batch_stats && (g->logits.batch_stats.rows != like->rows ||
					  g->logits.batch_stats.first != like->first))
		rfl_golden__refuse(r, &at, NULL,
				   "and the statistics of the batch differ in length");
}

static bool has(const struct rfl_golden_reader *r, const struct rfl_golden_place *at,
		const char *key)
{
	return r->rc == RFL_OK && json_object_get(at->json, key);
}

static void read_logits(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
			struct rfl_golden *g)
{
	const struct rfl_golden_place fp64 = rfl_golden__member(r, root, "fp64");
	int64_t ndim, *shape = rfl_golden__get_ints(r, root, "logits_shape", &ndim);

	if (r->rc == RFL_OK && (ndim < 2 || shape[ndim - 1] < 1))
		rfl_golden__refuse(r, root, "logits_shape", "is not [.., rows, classes]");
	g->logits.classes = r->rc == RFL_OK ? shape[ndim - 1] : 0;
	g->logits.params = rfl_golden__get_int(r, root, "params");
	g->logits.tensors = rfl_golden__get_int(r, root, "filled_tensors");
	read_forward(r, &fp64, "", &g->logits.fp64);
	g->logits.has_batch_stats = has(r, root, "batch_stats") || has(r, root, "batch_stats_fp64");
	if (has(r, root, "batch_stats_fp64")) {
		const struct rfl_golden_place at = rfl_golden__member(r, root, "batch_stats_fp64");

		read_forward(r, &at, "", &g->logits.batch_stats);
	} else if (has(r, root, "batch_stats")) {
		const struct rfl_golden_place at = rfl_golden__member(r, root, "batch_stats");

		read_forward(r, &at, "fp64_", &g->logits.batch_stats);
	}
	if (has(r, root, "gradient"))
		read_gradient(r, root, g);
	if (has(r, root, "bf16"))
		read_bf16(r, root, g);
	if (has(r, root, "trace") || !g->logits.has_gradient)
		read_trace(r, root, g);
}

/* ------------------------------------------------------------------ train files */

static void read_run(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
		     struct rfl_golden_run *run)
{
	run->losses = rfl_golden__get_reals(r, at, "losses", &run->nlosses);
	if (r->rc == RFL_OK && run->nlosses < 2)
		rfl_golden__refuse(r, at, "losses",
				   "has not one entry before and one after a step");
	run->logits = rfl_golden__get_matrix(r, at, "logits_first4_step0", &run->rows, &run->first);
	run->grads = rfl_golden__get_reals(r, at, "grad_l2_each_step0", &run->ngrads);
	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT; i++) {
		const char *name = rfl_golden_norm_names[i];
		const bool optional = i == RFL_GOLDEN_RUNNING_MEAN || i == RFL_GOLDEN_RUNNING_VAR;

		run->norms[i] = NAN;
		if (r->rc == RFL_OK && (!optional || json_object_get(at->json, name)))
			run->norms[i] = rfl_golden__get_real(r, at, name);
	}
}

/* The sections that a train file may have. lr NULL: that of the rule's numbers. */
static const struct {
	const char *name, *lr;
	enum rfl_optimizer_rule rule;
	enum rfl_engine_mode mode;
} known_sections[] = {
	{ "sgd", NULL, RFL_RULE_SGD, RFL_ENGINE_TRAIN },
	{ "sgd_gentle", "sgd_gentle_lr", RFL_RULE_SGD, RFL_ENGINE_TRAIN },
	{ "sgd_frozen_bn", "sgd_frozen_bn_lr", RFL_RULE_SGD, RFL_ENGINE_TRAIN_FROZEN_BN },
	{ "adamw", NULL, RFL_RULE_ADAMW, RFL_ENGINE_TRAIN },
};

static void read_adamw(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
		       struct rfl_optimizer *o)
{
	const struct rfl_golden_place hyper = rfl_golden__member(r, root, "adamw_hyper");
	int64_t n;
	const double *betas = rfl_golden__get_reals(r, &hyper, "betas", &n);

	if (r->rc == RFL_OK && n != 2)
		rfl_golden__refuse(r, &hyper, "betas", "are not two");
	o->lr = rfl_golden__get_real(r, &hyper, "lr");
	o->weight_decay = rfl_golden__get_real(r, &hyper, "weight_decay");
	o->eps = rfl_golden__get_real(r, &hyper, "eps");
	o->beta1 = r->rc == RFL_OK ? betas[0] : 0;
	o->beta2 = r->rc == RFL_OK ? betas[1] : 0;
}

static void read_sgd(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
		     const char *lr, struct rfl_optimizer *o)
{
	const struct rfl_golden_place hyper = rfl_golden__member(r, root, "sgd_hyper");

	o->momentum = rfl_golden__get_real(r, &hyper, "momentum");
	o->weight_decay = rfl_golden__get_real(r, &hyper, "weight_decay");
	o->lr = lr ? rfl_golden__get_real(r, root, lr) : rfl_golden__get_real(r, &hyper, "lr");
}

static void check_runs(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
		       const struct rfl_golden_section *s, int64_t nparams)
{
	if (s->fp32.nlosses != s->fp64.nlosses || s->fp32.rows != s->fp64.rows ||
	    s->fp32.first != s->fp64.first)
		rfl_golden__refuse(r, at, NULL, "and its _fp64 differ in length");
	if (s->fp32.ngrads != nparams || s->fp64.ngrads != nparams)
		rfl_golden__refuse(r, at, "grad_l2_each_step0",
				   "has not one entry per name in param_names");
}

static void read_section(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
			 size_t known, struct rfl_golden *g)
{
	struct rfl_golden_section *s = &g->train.sections[g->train.nsections++];
	struct rfl_golden_place at;
	char twin[40];

	s->name = known_sections[known].name;
	s->mode = known_sections[known].mode;
	s->optimizer.rule = known_sections[known].rule;
	if (s->optimizer.rule == RFL_RULE_ADAMW)
		read_adamw(r, root, &s->optimizer);
	else
		read_sgd(r, root, known_sections[known].lr, &s->optimizer);
	at = rfl_golden__member(r, root, s->name);
	read_run(r, &at, &s->fp32);
	(void)snprintf(twin, sizeof(twin), "%s_fp64", s->name);
	at = rfl_golden__member(r, root, twin);
	read_run(r, &at, &s->fp64);
	check_runs(r, &at, s, g->train.nparams);
}

static void read_train(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
		       struct rfl_golden *g)
{
	const struct rfl_golden_place names = rfl_golden__member(r, root, "param_names");

	g->train.nparams = rfl_golden__length_of(r, &names);
	g->train.param_names = rfl_golden__take(r, g->train.nparams, sizeof(*g->train.param_names));
	for (int64_t i = 0; r->rc == RFL_OK && i < g->train.nparams; i++) {
		const struct rfl_golden_place p = rfl_golden__element(&names, i);

		g->train.param_names[i] = rfl_golden__text_of(r, &p);
	}
	g->train.sections =
		rfl_golden__take(r, RFL_ARRAY_LEN(known_sections), sizeof(*g->train.sections));
	for (size_t i = 0; r->rc == RFL_OK && i < RFL_ARRAY_LEN(known_sections); i++)
		if (json_object_get(root->json, known_sections[i].name))
			read_section(r, root, i, g);
	if (g->train.nsections == 0)
		rfl_golden__refuse(
			r, root, NULL,
			"has none of the sections sgd, sgd_gentle, sgd_frozen_bn, adamw");
}

/* ------------------------------------------------------------------ both */

static void read_input_shape(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
			     struct rfl_golden *g)
{
	int64_t ndim;
	const int64_t *shape = rfl_golden__get_ints(r, root, "input_shape", &ndim);

	if (r->rc != RFL_OK)
		return;
	if ((ndim != 4 && ndim != 2) || shape[0] != g->batch || shape[1] < 1) {
		rfl_golden__refuse(r, root, "input_shape",
				   "is not [batch, channels, height, width] or [batch, tokens]");
		return;
	}
	if (g->batch < 1 || g->batch > MAX_BATCH) {
		rfl_golden__refuse(r, root, "batch", "is not a number from 1 to 1048576");
		return;
	}
	if (ndim == 2) {
		g->tokens = shape[1];
		return;
	}
	g->channels = shape[1];
	g->height = shape[2];
	g->width = shape[3];
}

static void read_attention(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
			   struct rfl_golden *g)
{
	const char *word = rfl_golden__get_text(r, root, "attention");

	for (int i = 0; r->rc == RFL_OK && rfl_attention_names[i]; i++)
		if (strcmp(word, rfl_attention_names[i]) == 0) {
			g->attention = (enum rfl_attention)i;
			return;
		}
	rfl_golden__refuse(r, root, "attention", "is not a word for it");
}

static void read_golden(struct rfl_golden_reader *r, const struct rfl_golden_place *root,
			struct rfl_golden *g)
{
	if (!json_is_object(root->json)) {
		rfl_golden__refuse(r, root, NULL, "is not a golden file: an object is expected");
		return;
	}
	g->is_train = json_object_get(root->json, "param_names") != NULL;
	if (!g->is_train && !json_object_get(root->json, "logits_shape")) {
		rfl_golden__refuse(
			r, root, NULL,
			"is not a golden file: neither logits_shape nor param_names is there");
		return;
	}
	g->model = rfl_golden__get_text(r, root, "model");
	g->batch = rfl_golden__get_int(r, root, "batch");
	read_input_shape(r, root, g);
	if (has(r, root, "attention"))
		read_attention(r, root, g);
	if (r->rc != RFL_OK)
		return;
	if (g->is_train)
		read_train(r, root, g);
	else
		read_logits(r, root, g);
}

enum rfl_rc rfl_golden_load(const char *path, struct rfl_golden **ret, struct rfl_err *err)
{
	struct rfl_golden_reader r = { .file = path, .err = err };
	struct rfl_golden_place root = { .path = "" };
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
	g = rfl_golden__take(&r, 1, sizeof(*g));
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
