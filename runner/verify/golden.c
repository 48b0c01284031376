/* golden.c - reads reference files by tables, then checks what a table cannot express. */
#include "runner/verify/golden.h"

#include <math.h>
#include <string.h>

#include "base/bind.h"
#include "base/num.h"
#include "complexity/zoo.h"

#define MAX_BATCH (1 << 20) /* as for a run, so that sizes in bytes do not overflow */

#define NORM_NAME(id, name) name,
const char *const rfl_golden_norm_names[] = { RFL_GOLDEN_NORMS(NORM_NAME) NULL };

#define MUST(key_, ...)                                \
	{                                              \
		.key = key_, .must = true, __VA_ARGS__ \
	}
#define REAL(key, structure, member) MUST(key, RFL_MEMBER(REAL, structure, member))

static void require(struct rfl_bind *b, bool ok, const char *what)
{
	if (!ok)
		rfl_bind_refuse(b, "%s", what);
}

static bool has(const json_t *root, const char *key)
{
	return json_object_get(root, key) != NULL;
}

/* Read a list of rows of equal length. */
static void read_matrix(struct rfl_bind *b, const json_t *value, void *member)
{
	struct row {
		size_t n;
		double *values;
	} row = { .n = 0 };
	static const struct rfl_member of_row = { NULL, RFL_MEMBERS(REAL, struct row, values, n) };
	struct rfl_golden_matrix *m = member;

	if (!json_is_array(value))
		rfl_bind_must(b, value, "a list of rows");
	m->rows = (int64_t)json_array_size(value);
	for (int64_t i = 0; i < m->rows && !b->rc; i++) {
		const size_t mark = rfl_where_index(&b->at, (size_t)i);

		rfl_bind_value(b, json_array_get(value, (size_t)i), &of_row, &row);
		if (i == 0) {
			m->columns = (int64_t)row.n;
			m->values = rfl_arena_array(b->arena, (size_t)m->rows * row.n,
						    sizeof(*m->values));
		}
		require(b, (int64_t)row.n == m->columns, "is not as long as the row before it");
		if (!b->rc && row.n > 0)
			memcpy(m->values + i * m->columns, row.values, row.n * sizeof(*row.values));
		rfl_where_up(&b->at, mark);
	}
}

/* ------------------------------------------------------------------ logits files */

/* Results in double are in a separate object, or next to the float results with a prefix. */
#define FORWARD(prefix)                                                                       \
	MUST(prefix "logits_first16", RFL_MEMBER(OTHER, struct rfl_golden_forward, logits),   \
	     .read = read_matrix),                                                            \
		REAL(prefix "sum", struct rfl_golden_forward, sum),                           \
		REAL(prefix "l2", struct rfl_golden_forward, l2),                             \
		REAL(prefix "loss", struct rfl_golden_forward, loss),                         \
		MUST("argmax", RFL_MEMBERS(INT, struct rfl_golden_forward, argmax, nargmax)), \
		REAL("max_abs_diff_fp32", struct rfl_golden_forward, max_abs_diff_fp32),      \
	{                                                                                     \
		"min_top1_margin", RFL_MEMBER(REAL, struct rfl_golden_forward, min_margin)    \
	}

static const struct rfl_member of_forward[] = { FORWARD(""), { .key = NULL } };
static const struct rfl_member of_prefixed_forward[] = { FORWARD("fp64_"), { .key = NULL } };

static const struct rfl_member of_gradient[] = {
	REAL("auxiliary_weight", struct rfl_golden_gradient, auxiliary_weight),
	REAL("loss", struct rfl_golden_gradient, loss),
	REAL("loss_abs_diff_fp32", struct rfl_golden_gradient, loss_abs_diff_fp32),
	MUST("each", RFL_MEMBERS(REAL, struct rfl_golden_gradient, each, n)),
	REAL("max_rel_diff_fp32", struct rfl_golden_gradient, max_rel_diff_fp32),
	{ .key = NULL },
};

static const struct rfl_member of_cast[] = {
	MUST("logits_first16", RFL_MEMBER(OTHER, struct rfl_golden_cast, logits),
	     .read = read_matrix),
	REAL("l2", struct rfl_golden_cast, l2),
	REAL("loss", struct rfl_golden_cast, loss),
	{ .key = NULL },
};

static const struct rfl_member of_bf16[] = {
	MUST("eval", RFL_MEMBER(OBJECT, struct rfl_golden, logits.bf16_eval), .object = of_cast),
	MUST("train", RFL_MEMBER(OBJECT, struct rfl_golden, logits.bf16_train), .object = of_cast),
	MUST("each", RFL_MEMBERS(REAL, struct rfl_golden, logits.bf16_each, logits.nbf16)),
	{ .key = NULL },
};

static void read_shape(struct rfl_bind *b, const json_t *value, void *member)
{
	int64_t *numel = member;
	bool ok = json_is_array(value);

	*numel = 1;
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_int_t size = json_integer_value(json_array_get(value, i));

		ok = ok && size >= 1 && rfl_num_mul(*numel, size, numel);
	}
	require(b, ok, "must be the shape of a layer");
}

static const struct rfl_member of_layer[] = {
	MUST("shape", RFL_MEMBER(OTHER, struct rfl_golden_layer, numel), .read = read_shape),
	MUST("name", RFL_MEMBER(TEXT, struct rfl_golden_layer, name)),
	REAL("l2", struct rfl_golden_layer, l2),
	{ .key = NULL },
};

static void read_classes(struct rfl_bind *b, const json_t *value, void *member)
{
	const size_t ndim = json_array_size(value);
	const json_int_t classes =
		ndim >= 2 ? json_integer_value(json_array_get(value, ndim - 1)) : 0;

	require(b, classes >= 1, "must be [.., rows, classes]");
	*(int64_t *)member = classes;
}

static const struct rfl_member of_logits[] = {
	MUST("logits_shape", RFL_MEMBER(OTHER, struct rfl_golden, logits.classes),
	     .read = read_classes),
	MUST("params", RFL_MEMBER(INT, struct rfl_golden, logits.params)),
	MUST("filled_tensors", RFL_MEMBER(INT, struct rfl_golden, logits.tensors)),
	MUST("fp64", RFL_MEMBER(OBJECT, struct rfl_golden, logits.fp64), .object = of_forward),
	{ .key = NULL },
};
static const struct rfl_member statistics =
	MUST("batch_stats_fp64", RFL_MEMBER(OBJECT, struct rfl_golden, logits.batch_stats),
	     .object = of_forward);
static const struct rfl_member prefixed_statistics =
	MUST("batch_stats", RFL_MEMBER(OBJECT, struct rfl_golden, logits.batch_stats),
	     .object = of_prefixed_forward);
static const struct rfl_member gradient = MUST(
	"gradient", RFL_MEMBER(OBJECT, struct rfl_golden, logits.gradient), .object = of_gradient);
static const struct rfl_member bf16 = { "bf16", .kind = RFL_BIND_OBJECT, .object = of_bf16 };
static const struct rfl_member trace =
	MUST("trace", RFL_MEMBERS(OBJECT, struct rfl_golden, logits.layers, logits.nlayers),
	     .object = of_layer);

static bool same_size(const struct rfl_golden_matrix *a, const struct rfl_golden_matrix *b)
{
	return a->rows == b->rows && a->columns == b->columns;
}

static void read_logits(struct rfl_bind *b, const json_t *root, struct rfl_golden *g)
{
	const bool split = has(root, "batch_stats_fp64");
	const struct rfl_golden_forward *const fp64 = &g->logits.fp64,
					       *const stats = &g->logits.batch_stats;

	g->logits.fp64.min_margin = g->logits.batch_stats.min_margin = (double)NAN;
	rfl_bind_read(b, root, of_logits, g);
	g->logits.has_batch_stats = split || has(root, "batch_stats");
	if (g->logits.has_batch_stats)
		rfl_bind_key(b, root, split ? &statistics : &prefixed_statistics, g);
	require(b, fp64->nargmax == fp64->logits.rows && stats->nargmax == stats->logits.rows,
		"argmax must have one entry per row");
	g->logits.has_gradient = has(root, "gradient");
	if (g->logits.has_gradient)
		rfl_bind_key(b, root, &gradient, g);
	g->logits.has_bf16 = has(root, "bf16");
	if (g->logits.has_bf16) { /* with the same rows and gradients as the double results */
		rfl_bind_key(b, root, &bf16, g);
		require(b, g->logits.nbf16 == g->logits.gradient.n,
			"bf16/each and gradient/each differ in length");
		require(b,
			same_size(&g->logits.bf16_eval.logits, &fp64->logits) &&
				same_size(&g->logits.bf16_train.logits, &fp64->logits) &&
				(!g->logits.has_batch_stats ||
				 same_size(&stats->logits, &fp64->logits)),
			"the logits of bf16, fp64 and the batch statistics differ in length");
	}
	if (has(root, "trace") || !g->logits.has_gradient)
		rfl_bind_key(b, root, &trace, g);
}

/* ------------------------------------------------------------------ train files */

#define NORM(id, name)                                                           \
	{ name, RFL_MEMBER(REAL, struct rfl_golden_run, norms[RFL_GOLDEN_##id]), \
	  .must = RFL_GOLDEN_##id != RFL_GOLDEN_RUNNING_MEAN &&                  \
		  RFL_GOLDEN_##id != RFL_GOLDEN_RUNNING_VAR },

static const struct rfl_member of_run[] = {
	MUST("losses", RFL_MEMBERS(REAL, struct rfl_golden_run, losses, nlosses)),
	MUST("logits_first4_step0", RFL_MEMBER(OTHER, struct rfl_golden_run, logits),
	     .read = read_matrix),
	MUST("grad_l2_each_step0", RFL_MEMBERS(REAL, struct rfl_golden_run, grads, ngrads)),
	RFL_GOLDEN_NORMS(NORM){ .key = NULL },
};

static void read_betas(struct rfl_bind *b, const json_t *value, void *member)
{
	struct rfl_optimizer *o = member;

	require(b,
		json_array_size(value) == 2 && json_is_number(json_array_get(value, 0)) &&
			json_is_number(json_array_get(value, 1)),
		"must be two numbers");
	o->beta1 = json_number_value(json_array_get(value, 0));
	o->beta2 = json_number_value(json_array_get(value, 1));
}

static const struct rfl_member of_sgd[] = {
	REAL("momentum", struct rfl_optimizer, momentum),
	REAL("weight_decay", struct rfl_optimizer, weight_decay),
	REAL("lr", struct rfl_optimizer, lr),
	{ .key = NULL },
};
static const struct rfl_member of_adamw[] = {
	MUST("betas", .kind = RFL_BIND_OTHER, .read = read_betas),
	REAL("eps", struct rfl_optimizer, eps),
	REAL("weight_decay", struct rfl_optimizer, weight_decay),
	REAL("lr", struct rfl_optimizer, lr),
	{ .key = NULL },
};

#define SGD                                                                         \
	MUST("sgd_hyper", RFL_MEMBER(OBJECT, struct rfl_golden_section, optimizer), \
	     .object = of_sgd)
#define ADAMW                                                                         \
	MUST("adamw_hyper", RFL_MEMBER(OBJECT, struct rfl_golden_section, optimizer), \
	     .object = of_adamw)
#define LR(key) \
	REAL(key, struct rfl_golden_section, optimizer.lr) /* instead of that in sgd_hyper */
#define SECTION(rule_, mode_, name, ...)                                                        \
	{                                                                                       \
		.rule = RFL_RULE_##rule_, .mode = RFL_ENGINE_##mode_, .rows = {                 \
			MUST(name, RFL_MEMBER(OBJECT, struct rfl_golden_section, fp32),         \
			     .object = of_run),                                                 \
			MUST(name "_fp64", RFL_MEMBER(OBJECT, struct rfl_golden_section, fp64), \
			     .object = of_run),                                                 \
			__VA_ARGS__                                                             \
		}                                                                               \
	}

/* The sections that a train file may have, each with the keys at the top level that it needs. */
static const struct section {
	enum rfl_optimizer_rule rule;
	enum rfl_engine_mode mode;
	struct rfl_member rows[5];
} sections[] = {
	SECTION(SGD, TRAIN, "sgd", SGD),
	SECTION(SGD, TRAIN, "sgd_gentle", SGD, LR("sgd_gentle_lr")),
	SECTION(SGD, TRAIN_FROZEN_BN, "sgd_frozen_bn", SGD, LR("sgd_frozen_bn_lr")),
	SECTION(ADAMW, TRAIN, "adamw", ADAMW),
};

static void read_section(struct rfl_bind *b, const json_t *root, const struct section *known,
			 struct rfl_golden *g)
{
	struct rfl_golden_section *s = &g->train.sections[g->train.nsections++];

	s->name = known->rows[0].key;
	s->mode = known->mode;
	s->optimizer.rule = known->rule;
	for (int i = 0; i < RFL_GOLDEN_NORM_COUNT; i++)
		s->fp32.norms[i] = s->fp64.norms[i] = (double)NAN;
	for (const struct rfl_member *m = known->rows; m->key; m++)
		rfl_bind_key(b, root, m, s);
	if (b->rc)
		return;
	(void)rfl_where_key(&b->at, known->rows[1].key);
	require(b, s->fp32.nlosses >= 2, "losses must have an entry before and after a step");
	require(b,
		s->fp32.nlosses == s->fp64.nlosses && same_size(&s->fp32.logits, &s->fp64.logits),
		"and the section without _fp64 differ in length");
	require(b, s->fp32.ngrads == g->train.nparams && s->fp64.ngrads == g->train.nparams,
		"grad_l2_each_step0 must have one entry per name in param_names");
}

static void read_train(struct rfl_bind *b, const json_t *root, struct rfl_golden *g)
{
	static const struct rfl_member names =
		MUST("param_names",
		     RFL_MEMBERS(TEXT, struct rfl_golden, train.param_names, train.nparams));
	const size_t top = b->at.len;

	rfl_bind_key(b, root, &names, g);
	g->train.sections =
		rfl_arena_array(b->arena, RFL_ARRAY_LEN(sections), sizeof(*g->train.sections));
	for (size_t i = 0; i < RFL_ARRAY_LEN(sections) && !b->rc; i++)
		if (has(root, sections[i].rows[0].key)) {
			read_section(b, root, &sections[i], g);
			rfl_where_up(&b->at, b->rc ? b->at.len : top);
		}
	require(b, g->train.nsections > 0,
		"has none of the sections sgd, sgd_gentle, sgd_frozen_bn, adamw");
}

/* ------------------------------------------------------------------ the file */

static void read_input(struct rfl_bind *b, const json_t *value, void *member)
{
	struct rfl_golden *g = member;
	int64_t *const images[] = { &g->channels, &g->height, &g->width };
	const size_t ndim = json_array_size(value);
	bool ok = (ndim == 4 || ndim == 2) &&
		  json_integer_value(json_array_get(value, 0)) == g->batch;

	for (size_t i = 1; i < ndim && ok; i++) {
		const json_t *size = json_array_get(value, i);

		ok = json_is_integer(size) && (i > 1 || json_integer_value(size) >= 1);
		*(ndim == 2 ? &g->tokens : images[i - 1]) = json_integer_value(size);
	}
	require(b, ok, "must be [batch, channels, height, width] or [batch, tokens]");
}

static const struct rfl_member of_golden[] = {
	MUST("model", RFL_MEMBER(TEXT, struct rfl_golden, model)),
	MUST("batch", RFL_MEMBER(INT, struct rfl_golden, batch), .min = 1, .max = MAX_BATCH),
	MUST("input_shape", .kind = RFL_BIND_OTHER, .read = read_input),
	{ "attention", RFL_MEMBER(CHOICE, struct rfl_golden, attention),
	  .choices = rfl_attention_names },
	{ .key = NULL },
};

enum rfl_rc rfl_golden_load(const char *path, struct rfl_golden **ret, struct rfl_err *err)
{
	struct rfl_bind b = { .err = err, .open = true };
	struct rfl_golden *g;
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	if (rc)
		return rc;
	b.arena = rfl_arena_new();
	rfl_where_begin(&b.at, path, "");
	g = rfl_arena_array(b.arena, 1, sizeof(*g));
	g->arena = b.arena;
	g->path = rfl_arena_strdup(b.arena, path);
	g->is_train = has(root, "param_names");
	require(&b, g->is_train || has(root, "logits_shape"),
		"is not a reference file: it has neither logits_shape nor param_names");
	rfl_bind_read(&b, root, of_golden, g);
	if (g->is_train)
		read_train(&b, root, g);
	else
		read_logits(&b, root, g);
	json_decref(root);
	if (b.rc)
		rfl_arena_free(b.arena);
	else
		*ret = g;
	return b.rc;
}

void rfl_golden_free(struct rfl_golden *golden)
{
	if (golden)
		rfl_arena_free(golden->arena);
}
