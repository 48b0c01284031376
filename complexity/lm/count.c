/*
 * count.c - counts a step of a language model: one walk over the operations of each kind of layer
 * yields parameters, FLOPs, bytes and memory.
 */
#include "complexity/lm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Elementwise operations per element. */
enum { SOFTMAX = 5, RMS_NORM = 4, LAYER_NORM = 7, SILU = 3, GELU = 9, ROTATION = 3 };

/* The walk. Layers are counted as one device of a tensor-parallel group computes them. */
struct walk {
	const struct rfl_lm *lm; /* the share of a device */
	const struct rfl_lm_step *s;
	const struct rfl_lm_formats *f;
	struct rfl_lm_count *out;
	const char *layer, *module;
	int64_t layers;
	double tokens;        /* of all sequences */
	double hidden, value; /* bytes of an activation */
	double keys, pairs;   /* of one sequence and head, in this layer */
	bool unfused;
};

static bool has(const struct walk *w, unsigned trait)
{
	return (w->lm->traits & trait) != 0;
}

static double bytes_of(const struct rfl_lm_format *f, double values)
{
	return values * f->bits / 8;
}

static double scales_of(const struct rfl_lm_format *f, double rows, double columns)
{
	const double blocks = f->block ? ceil(columns / (double)f->block) : 1;

	return f->scale_bits ? ceil(rows / (double)f->block_rows) * blocks *
				       (f->scale_bits + f->zero_bits) / 8
			     : 0;
}

static struct rfl_lm_op *add(struct walk *w, const char *name)
{
	struct rfl_lm_op *op = &w->out->ops[w->out->n++];

	assert(w->out->n <= RFL_ARRAY_LEN(w->out->ops));
	*op = (struct rfl_lm_op){
		.name = name, .module = w->module, .layer = w->layer, .layers = w->layers
	};
	return op;
}

/* Parameters that are not quantised, all of which a step reads. */
static void own(struct walk *w, struct rfl_lm_op *op, double params)
{
	const double bytes = bytes_of(&w->f->base, params);

	op->params += params;
	op->active += params;
	op->bytes[RFL_LM_WEIGHTS] += bytes;
	op->stored += bytes;
}

/* `rows` vectors times a matrix. */
static struct rfl_lm_op *linear(struct walk *w, const char *name, double rows, double in,
				double out, const struct rfl_lm_format *f, bool bias)
{
	struct rfl_lm_op *op = add(w, name);

	op->params = op->active = in * out;
	op->flops = 2 * rows * in * out;
	op->bytes[RFL_LM_WEIGHTS] = bytes_of(f, in * out);
	op->bytes[RFL_LM_SCALES] = scales_of(f, out, in);
	op->bytes[RFL_LM_ACTIVATIONS] = rows * (in + out) * w->value;
	op->stored = op->bytes[RFL_LM_WEIGHTS] + op->bytes[RFL_LM_SCALES];
	if (bias) {
		own(w, op, out);
		op->elementwise = rows * out;
	}
	return op;
}

/* An elementwise operation. @param unfused,fused  values that it moves at these levels */
static struct rfl_lm_op *each(struct walk *w, const char *name, double operations, double params,
			      double unfused, double fused)
{
	struct rfl_lm_op *op = add(w, name);

	op->elementwise = operations;
	op->bytes[RFL_LM_ACTIVATIONS] = (w->unfused ? unfused : fused) * w->value;
	own(w, op, params);
	return op;
}

static void norm(struct walk *w, const char *name, double vectors, double features)
{
	const bool layer = has(w, RFL_LM_LAYER_NORM);

	each(w, name, vectors * features * (layer ? LAYER_NORM : RMS_NORM),
	     features * (layer ? 2 : 1), 2 * vectors * features, 0);
}

static void residual(struct walk *w, const char *name)
{
	const double n = w->tokens * w->hidden;

	each(w, name, n, 0, 2 * n, n);
}

/* The sum of the results of all devices, of which each has a part of the inputs. */
static void all_reduce(struct walk *w, const char *name)
{
	const double devices = (double)w->s->tensor;

	if (devices > 1)
		add(w, name)->bytes[RFL_LM_LINK] =
			2 * (devices - 1) / devices * w->tokens * w->hidden * w->value;
}

/* The result of a projection goes to the cache, in vectors of one scale each or of several. */
static void to_cache(struct walk *w, struct rfl_lm_op *op, double vectors, double features)
{
	op->bytes[RFL_LM_ACTIVATIONS] -= w->tokens * vectors * features * w->value;
	op->bytes[RFL_LM_CACHE_WRITTEN] = bytes_of(&w->f->cache, w->tokens * vectors * features);
	op->bytes[RFL_LM_SCALES] += scales_of(&w->f->cache, w->tokens * vectors, features);
}

/* Read `features` values of each vector of the cache that a query sees. */
static void from_cache(struct walk *w, struct rfl_lm_op *op, double vectors, double features)
{
	const double rows = (double)w->s->batch * w->keys * vectors;

	op->bytes[RFL_LM_CACHE_READ] += bytes_of(&w->f->cache, rows * features);
	op->bytes[RFL_LM_SCALES] += scales_of(&w->f->cache, rows, features);
}

/* Set the bytes of the cache in memory: of the tokens that a query of the step sees. */
static void keep_cache(struct walk *w, struct rfl_lm_op *op, double vectors, double features)
{
	const double page = w->s->page ? (double)w->s->page : 1;
	const double rows = (double)w->s->batch * ceil(w->keys / page) * page * vectors;

	op->cached =
		bytes_of(&w->f->cache, rows * features) + scales_of(&w->f->cache, rows, features);
}

/* The two products of an attention. */
struct products {
	struct rfl_lm_op *qk, *sv;
};

/* Scores, softmax and weighted sum. @param qk,sv  values of a key and of a value */
static struct products scores(struct walk *w, double qk, double sv)
{
	const double heads = (double)w->lm->heads, pairs = (double)w->s->batch * heads * w->pairs;
	const double queries = w->tokens * heads;
	struct products p;

	p.qk = add(w, "qk_matmul");
	each(w, "softmax", SOFTMAX * pairs, has(w, RFL_LM_SINKS) ? heads : 0, 2 * pairs, 0);
	p.sv = add(w, "sv_matmul");
	p.qk->flops = 2 * pairs * qk;
	p.sv->flops = 2 * pairs * sv;
	p.qk->bytes[RFL_LM_ACTIVATIONS] = (queries * qk + (w->unfused ? pairs : 0)) * w->value;
	p.sv->bytes[RFL_LM_ACTIVATIONS] = (queries * sv + (w->unfused ? pairs : 0)) * w->value;
	return p;
}

static void grouped_attention(struct walk *w)
{
	const struct rfl_lm *lm = w->lm;
	const double heads = (double)lm->heads, groups = (double)lm->kv_heads;
	const double d = (double)lm->head_dim, rotated = w->tokens * (heads + groups) * d;
	const bool bias = has(w, RFL_LM_QKV_BIAS);
	const struct rfl_lm_format *f = &w->f->weights;
	struct products p;

	linear(w, "q_proj", w->tokens, w->hidden, heads * d, f, bias);
	to_cache(w, linear(w, "k_proj", w->tokens, w->hidden, groups * d, f, bias), groups, d);
	to_cache(w, linear(w, "v_proj", w->tokens, w->hidden, groups * d, f, bias), groups, d);
	if (has(w, RFL_LM_QK_NORM)) {
		norm(w, "q_norm", w->tokens * heads, d);
		norm(w, "k_norm", w->tokens * groups, d);
	}
	if (!lm->positions)
		each(w, "rope", ROTATION * rotated, 0, 2 * rotated, 0);
	p = scores(w, d, d);
	from_cache(w, p.qk, groups, d);
	from_cache(w, p.sv, groups, d);
	keep_cache(w, p.qk, groups, d);
	keep_cache(w, p.sv, groups, d);
	linear(w, "o_proj", w->tokens, heads * d, w->hidden, f, has(w, RFL_LM_OUTPUT_BIAS));
}

/* The absorbed form of a decode step and the direct form do the same multiply-adds per row of
 * kv_b_proj; the rows are the new tokens or all keys. */
static void latent_attention(struct walk *w)
{
	const struct rfl_lm *lm = w->lm;
	const double heads = (double)lm->heads, latent = (double)lm->kv_lora;
	const double rope = (double)lm->rope_dim, nope = (double)lm->nope_dim;
	const double v = (double)lm->v_dim, q_lora = (double)lm->q_lora;
	const double keys = (double)w->s->batch * w->keys;
	const double rotated = w->tokens * (heads + 1) * rope;
	const struct rfl_lm_format *f = &w->f->weights;
	const bool absorbed = w->s->decode;
	struct rfl_lm_op *expand;
	struct products p;

	if (lm->q_lora) {
		linear(w, "q_a_proj", w->tokens, w->hidden, q_lora, f, false);
		norm(w, "q_a_norm", w->tokens, q_lora);
		linear(w, "q_b_proj", w->tokens, q_lora, heads * (nope + rope), f, false);
	} else {
		linear(w, "q_proj", w->tokens, w->hidden, heads * (nope + rope), f, false);
	}
	to_cache(w, linear(w, "kv_a_proj", w->tokens, w->hidden, latent + rope, f, false), 1,
		 latent + rope);
	norm(w, "kv_a_norm", w->tokens, latent);
	each(w, "rope", ROTATION * rotated, 0, 2 * rotated, 0);
	expand = linear(w, "kv_b_proj", absorbed ? w->tokens : keys, latent, heads * (nope + v), f,
			false);
	if (absorbed) {
		/* the queries before and after, the result before and after */
		expand->bytes[RFL_LM_ACTIVATIONS] =
			w->tokens * heads * (nope + latent + latent + v) * w->value;
		p = scores(w, latent + rope, latent);
		from_cache(w, p.qk, 1, latent + rope);
		if (w->unfused) /* fused, the values are the keys, which have been read */
			from_cache(w, p.sv, 1, latent);
	} else {
		expand->bytes[RFL_LM_ACTIVATIONS] = keys * heads * (nope + v) * w->value;
		from_cache(w, expand, 1, latent);
		p = scores(w, nope + rope, v);
		from_cache(w, p.qk, 1, rope);
		p.qk->bytes[RFL_LM_ACTIVATIONS] += keys * heads * nope * w->value;
		p.sv->bytes[RFL_LM_ACTIVATIONS] += keys * heads * v * w->value;
	}
	keep_cache(w, p.qk, 1, latent + rope);
	linear(w, "o_proj", w->tokens, heads * v, w->hidden, f, false);
}

/* The names of an MLP's operations. */
struct mlp_names {
	const char *gate, *up, *act, *down;
};

double rfl_lm_experts_read(const struct rfl_lm *lm, double tokens)
{
	const double all = (double)lm->experts;

	if (tokens == 1)
		return (double)lm->active; /* without rounding */
	return all * -expm1(tokens * log1p(-(double)lm->active / all));
}

/* An MLP of all tokens, or the experts, each with its share of the tokens. */
static void mlp(struct walk *w, const struct mlp_names *names, int64_t size, bool experts)
{
	const struct rfl_lm *lm = w->lm;
	const double ffn = (double)size, rows = w->tokens * (experts ? (double)lm->active : 1);
	const struct rfl_lm_format *f = experts ? &w->f->experts : &w->f->weights;
	const bool gated = !has(w, RFL_LM_PLAIN_MLP), bias = has(w, RFL_LM_MLP_BIAS);
	const double per_value = (has(w, RFL_LM_GELU) ? GELU : SILU) + (gated ? 1 : 0);
	const size_t first = w->out->n;

	if (gated)
		linear(w, names->gate, rows, w->hidden, ffn, f, bias);
	linear(w, names->up, rows, w->hidden, ffn, f, bias);
	each(w, names->act, rows * ffn * per_value, 0, rows * ffn * (gated ? 3 : 2),
	     gated ? rows * ffn : 0);
	linear(w, names->down, rows, ffn, w->hidden, f, bias);
	for (size_t i = first; experts && i < w->out->n; i++) {
		struct rfl_lm_op *op = &w->out->ops[i];

		op->bytes[RFL_LM_WEIGHTS] *= rfl_lm_experts_read(lm, w->tokens);
		op->bytes[RFL_LM_SCALES] *= rfl_lm_experts_read(lm, w->tokens);
		op->active *= (double)lm->active;
		op->params *= (double)lm->experts;
		op->stored *= (double)lm->experts;
	}
}

static void experts(struct walk *w)
{
	static const struct mlp_names shared = { "shared_gate_proj", "shared_up_proj", "shared_act",
						 "shared_down_proj" };
	static const struct mlp_names routed = { "expert_gate_proj", "expert_up_proj", "expert_act",
						 "expert_down_proj" };
	const struct rfl_lm *lm = w->lm;
	const double n = (double)lm->experts, chosen = w->tokens * (double)lm->active * w->hidden;
	struct rfl_lm_op *router;

	w->module = "experts";
	router = linear(w, "router", w->tokens, w->hidden, n, &w->f->base,
			has(w, RFL_LM_ROUTER_BIAS));
	router->elementwise += SOFTMAX * w->tokens * n;
	mlp(w, &routed, lm->expert_ffn, true);
	if (lm->shared)
		mlp(w, &shared, lm->shared * lm->expert_ffn, false);
	each(w, "expert_sum", 2 * chosen, 0, chosen + w->tokens * w->hidden, chosen);
}

/* Keys that the queries of a step see: the union of all queries', and their sum. */
static void see(struct walk *w, int64_t window)
{
	const double past = (double)w->s->past, n = (double)w->s->tokens;
	const double limit = window ? (double)window : past + n;
	const double growing = fmin(fmax(limit - past, 0), n); /* queries that see everything */

	w->keys = fmin(past + n, limit + n - 1);
	w->pairs = w->s->causal_half
			   ? growing * past + growing * (growing + 1) / 2 + (n - growing) * limit
			   : n * w->keys;
}

static void layer(struct walk *w, int64_t layers, const char *name, int64_t window, bool moe)
{
	static const struct mlp_names dense = { "gate_proj", "up_proj", "mlp_act", "down_proj" };

	if (!layers)
		return;
	w->layers = layers;
	w->layer = name;
	w->module = "attention";
	see(w, window);
	norm(w, "attn_norm", w->tokens, w->hidden);
	if (w->lm->kv_lora)
		latent_attention(w);
	else
		grouped_attention(w);
	if (!has(w, RFL_LM_PARALLEL))
		all_reduce(w, "attn_all_reduce");
	if (has(w, RFL_LM_POST_NORMS))
		norm(w, "attn_post_norm", w->tokens, w->hidden);
	residual(w, "attn_add");
	w->module = "mlp";
	if (!has(w, RFL_LM_PARALLEL))
		norm(w, "mlp_norm", w->tokens, w->hidden);
	if (moe)
		experts(w);
	else
		mlp(w, &dense, w->lm->ffn, false);
	w->module = "mlp";
	all_reduce(w, "mlp_all_reduce");
	if (has(w, RFL_LM_POST_NORMS))
		norm(w, "mlp_post_norm", w->tokens, w->hidden);
	residual(w, "mlp_add");
}

static void embedding(struct walk *w)
{
	const struct rfl_lm *lm = w->lm;
	const int tables = lm->positions ? 2 : 1;
	struct rfl_lm_op *op;

	op = each(w, "embedding", lm->positions ? w->tokens * w->hidden : 0,
		  (double)(lm->vocab + lm->positions) * w->hidden, w->tokens * w->hidden,
		  w->tokens * w->hidden);
	op->bytes[RFL_LM_WEIGHTS] = bytes_of(&w->f->base, w->tokens * w->hidden * tables);
}

static void head(struct walk *w)
{
	const double rows = (double)(w->s->batch * w->s->logits), vocab = (double)w->lm->vocab;
	const bool tied = has(w, RFL_LM_TIED), bias = has(w, RFL_LM_HEAD_BIAS);
	struct rfl_lm_op *op;

	norm(w, "final_norm", w->tokens, w->hidden);
	op = linear(w, "lm_head", rows, w->hidden, vocab, &w->f->head, bias);
	if (tied) {
		op->params = op->active = bias ? vocab : 0;
		if (w->f->head.bits == w->f->base.bits)
			op->stored = bytes_of(&w->f->base, op->params);
	}
	if (w->s->fusion == RFL_FUSION_COMPULSORY) {
		for (size_t i = 0; i < w->out->n; i++)
			w->out->ops[i].bytes[RFL_LM_ACTIVATIONS] = 0;
		op->bytes[RFL_LM_ACTIVATIONS] = rows * vocab * w->value;
	}
}

/* The memory of a device. Of several stages, each has the embedding or the head. The one that holds
 * most has the later kinds of layers; layers with a window are between the others, so that it has
 * both in proportion. */
static void sum_memory(const struct walk *w)
{
	const int64_t stages = w->s->pipeline > 1 ? w->s->pipeline : 1;
	struct rfl_lm_count *c = w->out;
	int64_t left = (w->lm->layers + stages - 1) / stages, here = 0;
	double outside[2] = { 0 };

	for (size_t i = c->n; i-- > 0;) {
		const struct rfl_lm_op *op = &c->ops[i];
		const bool last = i + 1 == c->n || strcmp(c->ops[i + 1].layer, op->layer) != 0;
		const bool global = strcmp(op->layer, "global") == 0;
		const int64_t most = global ? (op->layers + stages - 1) / stages : op->layers;

		c->workspace_bytes = fmax(c->workspace_bytes, op->bytes[RFL_LM_ACTIVATIONS]);
		if (!*op->layer) {
			outside[i > 0] += op->stored;
			continue;
		}
		if (last) {
			here = most < left ? most : left;
			left -= here;
		}
		c->weights_bytes += op->stored * (double)here;
		c->cache_bytes += op->cached * (double)here;
	}
	c->weights_bytes += stages > 1 ? fmax(outside[0], outside[1]) : outside[0] + outside[1];
	c->workspace_bytes += w->tokens * w->hidden * w->value;
}

/* What a device of a tensor-parallel group computes. */
static struct rfl_lm share_of(const struct rfl_lm *lm, int64_t devices)
{
	struct rfl_lm s = *lm;

	s.heads = lm->heads / devices;
	s.kv_heads = lm->kv_heads > devices ? lm->kv_heads / devices : 1;
	s.ffn = (lm->ffn + devices - 1) / devices;
	s.expert_ffn = (lm->expert_ffn + devices - 1) / devices;
	s.vocab = (lm->vocab + devices - 1) / devices;
	return s;
}

void rfl_lm_count(const struct rfl_lm *lm, const struct rfl_lm_step *s, struct rfl_lm_count *ret)
{
	const struct rfl_lm share = s->tensor > 1 ? share_of(lm, s->tensor) : *lm;
	struct walk w = {
		.lm = &share,
		.s = s,
		.f = &s->formats,
		.out = ret,
		.layer = "",
		.module = "outside",
		.layers = 1,
		.tokens = (double)s->batch * (double)s->tokens,
		.hidden = (double)lm->hidden,
		.value = s->formats.activations.bits / 8.0,
		.unfused = s->fusion == RFL_FUSION_UNFUSED,
	};
	const bool moe = lm->experts > 0;
	const int64_t rest = lm->layers - lm->dense_layers - lm->window_layers;

	*ret = (struct rfl_lm_count){ .n = 0 };
	embedding(&w);
	layer(&w, lm->dense_layers, "dense", 0, false);
	layer(&w, lm->window_layers, "window", lm->window, moe);
	layer(&w, rest,
	      lm->dense_layers    ? "experts"
	      : lm->window_layers ? "global"
				  : "layer",
	      0, moe);
	w.layer = "";
	w.module = "outside";
	w.layers = 1;
	head(&w);
	sum_memory(&w);
	if (s->pipeline > 1) {
		w.layers = s->pipeline - 1;
		add(&w, "stage_border")->bytes[RFL_LM_LINK] = w.tokens * w.hidden * w.value;
	}
}

void rfl_lm_op_add(struct rfl_lm_op *sum, const struct rfl_lm_op *op, int64_t times)
{
	const double n = (double)times;

	sum->flops += n * op->flops;
	sum->elementwise += n * op->elementwise;
	for (int i = 0; i < RFL_LM_BYTES_COUNT; i++)
		sum->bytes[i] += n * op->bytes[i];
}

struct rfl_lm_op rfl_lm_total(const struct rfl_lm_count *c)
{
	struct rfl_lm_op sum = { .name = "total", .module = "", .layer = "" };

	for (size_t i = 0; i < c->n; i++) {
		const struct rfl_lm_op *op = &c->ops[i];

		rfl_lm_op_add(&sum, op, op->layers);
		sum.params += (double)op->layers * op->params;
		sum.active += (double)op->layers * op->active;
		sum.stored += (double)op->layers * op->stored;
		sum.cached += (double)op->layers * op->cached;
	}
	return sum;
}

struct rfl_lm_op rfl_lm_mean(const struct rfl_lm *lm, const struct rfl_lm_step *first,
			     int64_t steps)
{
	struct rfl_lm_step step = *first;
	struct rfl_lm_op sum = { .name = "" };
	struct rfl_lm_count c;

	for (int64_t i = 0; i < steps; i++, step.past += step.tokens) {
		rfl_lm_count(lm, &step, &c);

		const struct rfl_lm_op one = rfl_lm_total(&c);

		rfl_lm_op_add(&sum, &one, 1);
	}
	sum.params /= (double)steps;
	sum.active /= (double)steps;
	sum.flops /= (double)steps;
	sum.elementwise /= (double)steps;
	for (int i = 0; i < RFL_LM_BYTES_COUNT; i++)
		sum.bytes[i] /= (double)steps;
	return sum;
}

double rfl_lm_traffic(const struct rfl_lm_op *op)
{
	double sum = 0;

	for (int i = 0; i < RFL_LM_LINK; i++)
		sum += op->bytes[i];
	return sum;
}

double rfl_lm_intensity(const struct rfl_lm_op *op)
{
	return (op->flops > 0 ? op->flops : op->elementwise) / rfl_lm_traffic(op);
}

double rfl_lm_accepted(int64_t drafts, double p)
{
	double sum = 1, power = 1;

	for (int64_t i = 0; i < drafts; i++)
		sum += power *= p;
	return sum;
}

enum rfl_rc rfl_lm_check(const struct rfl_lm *lm, struct rfl_err *err)
{
	static const struct rfl_lm_step one = { .batch = 1, .tokens = 1, .logits = 1 };
	const bool latent = lm->kv_lora > 0;
	struct rfl_lm_count count;

	if (lm->layers < 1 || lm->hidden < 1 || lm->vocab < 1 || lm->heads < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"layers, hidden size, vocabulary and heads must "
				"be at least 1");
	if (latent ? lm->rope_dim < 1 || lm->nope_dim < 1 || lm->v_dim < 1
		   : lm->head_dim < 1 || lm->kv_heads < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "the heads have no size");
	if (!latent && lm->heads % lm->kv_heads)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%lld query heads are not a multiple of %lld key/value heads",
				(long long)lm->heads, (long long)lm->kv_heads);
	if (lm->active > lm->experts || (lm->experts && (lm->active < 1 || lm->expert_ffn < 1)))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%lld of %lld experts per token is not possible",
				(long long)lm->active, (long long)lm->experts);
	if (lm->ffn < 1 && (!lm->experts || lm->dense_layers))
		return rfl_fail(err, RFL_EINVAL, 0, "the MLP has no size");
	if (lm->dense_layers > lm->layers || lm->window_layers > lm->layers ||
	    (lm->dense_layers && lm->window_layers))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%lld layers cannot have %lld without experts and %lld with a "
				"window",
				(long long)lm->layers, (long long)lm->dense_layers,
				(long long)lm->window_layers);
	rfl_lm_count(lm, &one, &count);
	if (rfl_lm_total(&count).params > 0x1p53)
		return rfl_fail(err, RFL_EINVAL, 0, "it has more than 2^53 parameters");
	return RFL_OK;
}

enum rfl_rc rfl_lm_check_split(const struct rfl_lm *lm, int64_t tensor, int64_t pipeline,
			       struct rfl_err *err)
{
	const int64_t groups = lm->kv_lora ? lm->heads : lm->kv_heads;

	if (tensor > 1 && (lm->heads % tensor || (groups % tensor && tensor % groups)))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%lld query heads and %lld key/value heads cannot be split evenly "
				"over %lld devices",
				(long long)lm->heads, (long long)groups, (long long)tensor);
	if (pipeline > lm->layers)
		return rfl_fail(err, RFL_EINVAL, 0, "%lld layers cannot form %lld stages",
				(long long)lm->layers, (long long)pipeline);
	return RFL_OK;
}

/* --- the largest that fits --- */

int64_t rfl_lm_largest(int64_t limit, bool (*holds)(int64_t value, void *ctx), void *ctx)
{
	int64_t good = 0, bad = limit + 1;

	while (bad - good > 1) {
		const int64_t middle = good + (bad - good) / 2;

		if (holds(middle, ctx))
			good = middle;
		else
			bad = middle;
	}
	return good;
}

struct fit {
	const struct rfl_lm *lm;
	struct rfl_lm_step step;
	int64_t *value; /* the member of the step that varies */
	int64_t offset; /* of it from the value that is searched */
	double bytes;
};

static bool fits(int64_t value, void *ctx)
{
	struct fit *fit = ctx;
	struct rfl_lm_count c;

	*fit->value = value + fit->offset;
	rfl_lm_count(fit->lm, &fit->step, &c);
	return c.weights_bytes + c.cache_bytes + c.workspace_bytes <= fit->bytes;
}

int64_t rfl_lm_fit_batch(const struct rfl_lm *lm, const struct rfl_lm_step *step, double bytes)
{
	struct fit fit = { .lm = lm, .step = *step, .bytes = bytes };

	fit.value = &fit.step.batch;
	return rfl_lm_largest(RFL_LM_FIT_MAX, fits, &fit);
}

int64_t rfl_lm_fit_tokens(const struct rfl_lm *lm, const struct rfl_lm_step *step, double bytes)
{
	struct fit fit = { .lm = lm, .step = *step, .bytes = bytes };
	int64_t limit = RFL_LM_FIT_MAX;

	if (lm->positions)
		limit = lm->positions - (step->decode ? step->tokens : step->past);
	fit.value = step->decode ? &fit.step.past : &fit.step.tokens;
	fit.offset = step->decode ? -1 : 0;
	return rfl_lm_largest(limit + (step->decode ? 1 : 0), fits, &fit) - (step->decode ? 1 : 0);
}
