/*
 * config.c - a run's configuration: the table of its fields, its JSON for the child, its columns in
 * the ledger, its hash and the checks before a run.
 */
#include "runner/run/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "complexity/net/file.h"
#include "complexity/lm.h"
#include "complexity/zoo.h"
#include "ledger/facts.h"
#include "machine/gpu.h"
#include "runner/burst/counted.h"
#include "runner/run/facts.h"

const char *rfl_run_likely_device(void)
{
	RFL_AUTOPTR(gpus) gpus = NULL;
	const bool gpu = rfl_gpus_new(&gpus, NULL) == RFL_OK;

	return rfl_device_names[gpu ? RFL_DEVICE_CUDA : RFL_DEVICE_CPU];
}

const char *const rfl_run_device_choices[] = { "auto", "cpu", "cuda", "mps", NULL };
const char *const rfl_run_data_choices[] = {
	"auto",    "synthetic", "synthetic-host", "imagefolder", "imagefolder-cached",
	"cifar10", "mnist",     "tokens",         NULL
};

int64_t rfl_run__int_of(const json_t *obj, const char *key)
{
	const json_t *value = json_object_get(obj, key);

	return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* ---- members of a struct as JSON ---- */

json_t *rfl_run__shown(const char *text, size_t n)
{
	json_t *json = json_stringn(text, n);
	RFL_AUTOFREE char *shown = json ? NULL : rfl_alloc_array(n, 1);

	for (size_t i = 0; !json && i < n; i++)
		shown[i] = (unsigned char)text[i] >= 0x80 || text[i] == '\0' ? '?' : text[i];
	json = json ? json : json_stringn(shown, n);
	return json;
}

json_t *rfl_run__to_json(json_t *take_json, const struct rfl_member *members, const void *base)
{
	for (const struct rfl_member *m = members; m->key; m++)
		(void)json_object_set_new(take_json, m->key, rfl_bind_json(m, base));
	return take_json;
}

json_t *rfl_run__pack_members(const char *name, const struct rfl_member *members, const void *base)
{
	return rfl_run__to_json(json_pack("{s:s}", "event", name), members, base);
}

bool rfl_run__from_json(const struct rfl_member *members, const json_t *json, void *base)
{
	bool ok = true;

	for (const struct rfl_member *m = members; m->key; m++)
		ok = rfl_bind_get(m, json_object_get(json, m->key), base) && ok;
	return ok;
}

const struct rfl_member rfl_run__progress[] = {
#define P(kind, name) RFL_RUN__MEMBER(struct rfl_run_progress, kind, #name, name)
	P(TEXT, phase), P(INT, done),      P(INT, total),   P(INT, epoch),
	P(REAL, loss),  P(REAL, accuracy), P(REAL, left_s), { .key = NULL },
};

const struct rfl_member rfl_run__epoch[] = {
#define E(kind, name, meaning) RFL_RUN__MEMBER(struct rfl_epoch, kind, #name, name),
	RFL_EPOCH_COLUMNS(E){ .key = NULL },
};

const char *const rfl_run_weights_names[] = { "plain", "int8", NULL };

enum when { NO, ALWAYS, TRAINS, SGD, ADAM, CLIPS, FILES, EPOCHS, CACHES };

#define C                       struct rfl_run_config
#define RFL_RUN__CHOICE         RFL_RUN__INT
#define COLUMN_NO(member)       0
#define COLUMN_ALWAYS(member)   RFL_LEDGER_AT_##member
#define COLUMN_TRAINS(member)   COLUMN_ALWAYS(member)
#define COLUMN_SGD(member)      COLUMN_ALWAYS(member)
#define COLUMN_ADAM(member)     COLUMN_ALWAYS(member)
#define COLUMN_CLIPS(member)    COLUMN_ALWAYS(member)
#define COLUMN_FILES(member)    COLUMN_ALWAYS(member)
#define COLUMN_EPOCHS(member)   COLUMN_ALWAYS(member)
#define COLUMN_CACHES(member)   COLUMN_ALWAYS(member)
#define MEMBER(kind, key, path) RFL_RUN__MEMBER(C, kind, key, path)

/* The rows of run/facts.inc. */
static const struct fact {
	struct rfl_member m;
	unsigned identity; /* bits */
	enum when when;
	enum rfl_ledger_at column; /* unless `when` is NO */
	/* as in struct rfl_opt; NULL and 0 if it is not an option of run */
	const char *group, *name, *meta, *def, *bare, *help, *project;
	const char *const *choices; /* NULL: not a CHOICE */
	int first;
	int64_t min, max;
	double rmin, rmax;
	bool required, often;
} facts[] = {
#define FACT(kind_, member_, identity_, when_, ...) \
	{ .m = MEMBER(kind_, #member_, member_),    \
	  .identity = identity_,                    \
	  .when = when_,                            \
	  .column = COLUMN_##when_(member_),        \
	  __VA_ARGS__ },
#define TRAIN(kind_, key_, member_, identity_, when_) \
	{ .m = MEMBER(kind_, key_, member_),          \
	  .identity = identity_,                      \
	  .when = when_,                              \
	  .column = COLUMN_##when_(member_) },
#define OTHER(kind_, key_, member_) { .m = MEMBER(kind_, key_, member_) },
#include "runner/run/facts.inc"
};

#define NFACTS RFL_ARRAY_LEN(facts)

/* The member of a field if it is sent to the child, else NULL. */
static const struct rfl_member *sent(size_t i)
{
	return facts[i].identity & LOCAL ? NULL : &facts[i].m;
}

char *rfl_run__setting_text(const char *key, const json_t *value, char *out, size_t size)
{
	const struct fact *f = facts;
	const char *text = NULL;
	char shown[200];

	while (f < facts + NFACTS && strcmp(f->m.key, key) != 0)
		f++;
	if (f < facts + NFACTS && f->choices && json_is_integer(value))
		for (int64_t i = 0; f->choices[i]; i++)
			if (i + f->first == json_integer_value(value))
				text = f->choices[i];
	if (!text)
		text = value ? rfl_json_show(value, shown, sizeof(shown)) : "(unknown)";
	snprintf(out, size, "--%s %s", f < facts + NFACTS && f->name ? f->name : key, text);
	return out;
}

json_t *rfl_run__config_to_json(const struct rfl_run_config *c)
{
	json_t *dirs = json_array(), *json = json_pack("{s:o}", "plugin_dirs", dirs);
	bool ok = json != NULL;

	for (size_t i = 0; ok && c->plugin_dirs && c->plugin_dirs[i]; i++)
		ok = json_array_append_new(dirs, json_string(c->plugin_dirs[i])) == 0;
	for (size_t i = 0; ok && i < NFACTS; i++)
		if (sent(i))
			ok = json_object_set_new(json, sent(i)->key, rfl_bind_json(sent(i), c)) ==
			     0;
	if (!ok) {
		json_decref(json);
		return NULL;
	}
	return json;
}

json_t *rfl_run__training_to_json(const struct rfl_run_config *c)
{
	json_t *json = json_object();

	for (const struct fact *f = facts; f < facts + NFACTS; f++)
		if ((f->identity & (TRAINING | REPEAT)) && f->m.offset != offsetof(C, arch) &&
		    f->m.offset != offsetof(C, data_dir))
			rfl_json_put(&json, f->m.key, rfl_bind_json(&f->m, c));
	return json;
}

enum rfl_rc rfl_run__config_from_json(const json_t *json, const char **dirs, size_t ndirs,
				      struct rfl_run_config *ret, struct rfl_err *err)
{
	const json_t *list = json_object_get(json, "plugin_dirs"), *item;
	struct rfl_run_config c = { .plugin_dirs = dirs };
	size_t i, n = 1;

	if (!json_is_array(list) || json_array_size(list) + 1 > ndirs)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"configuration: plugin_dirs is not a list of at most %zu directories",
			ndirs - 1);
	json_array_foreach(list, i, item)
	{
		dirs[i] = json_string_value(item);
		if (!dirs[i])
			return rfl_fail(err, RFL_EFORMAT, 0,
					"configuration: plugin_dirs[%zu] is not a string", i);
	}
	dirs[json_array_size(list)] = NULL;
	for (i = 0; i < NFACTS; i++) {
		if (!sent(i))
			continue;
		n++;
		if (!rfl_bind_get(sent(i), json_object_get(json, sent(i)->key), &c))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"configuration: '%s' is missing or has the wrong type",
					sent(i)->key);
	}
	if (json_object_size(json) != n)
		return rfl_fail(err, RFL_EFORMAT, 0, "configuration: %zu members instead of %zu",
				json_object_size(json), n);
	if (!c.arch || !c.engine)
		return rfl_fail(err, RFL_EFORMAT, 0, "configuration: '%s' is missing",
				c.arch ? "engine" : "arch");
	*ret = c;
	return RFL_OK;
}

/* ---- derived values ---- */

int64_t rfl_run__batch(const struct rfl_run_config *c)
{
	return c->micro_batch * c->accum;
}

enum rfl_layout rfl_run__layout(const struct rfl_run_config *c)
{
	return c->channels_last ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW;
}

struct rfl_data_spec rfl_run__data_spec(const struct rfl_run_config *c)
{
	return (struct rfl_data_spec){
		.kind = (enum rfl_data_kind)c->data_kind,
		.dir = c->data_dir,
		.augment = !c->no_augment,
		.rotation = c->rotation,
		.workers = (int)c->workers,
		.ahead = (int)c->prefetch,
		.pin_memory = c->pin_memory,
		.seed = (uint64_t)c->seed,
		.rank = c->world.rank,
		.world_size = c->world.size,
	};
}

enum rfl_rc rfl_run__lm(const struct rfl_run_config *c, struct rfl_arena *arena, struct rfl_lm *ret,
			struct rfl_err *err)
{
	return rfl_lm_named(c->arch, arena, ret, NULL, err);
}

int64_t rfl_run__tokens(const struct rfl_run_config *c)
{
	if (c->mode == RFL_RUN_DECODE)
		return 1;
	return c->context_length > 0 ? c->context_length : RFL_RUN_PROMPT;
}

int64_t rfl_run__cache_tokens(const struct rfl_run_config *c)
{
	if (!rfl_run_mode_caches((enum rfl_run_mode)c->mode))
		return 0;
	return c->past + rfl_run__tokens(c) * (c->mode == RFL_RUN_DECODE ? c->iters : 1);
}

enum rfl_rc rfl_run__digest(const struct rfl_run_config *c, const struct rfl_net *net, char out[17],
			    struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	RFL_AUTOPTR(net) step = NULL;
	struct rfl_lm lm;
	enum rfl_rc rc = RFL_OK;

	if (rfl_run__cache_tokens(c) && (rc = rfl_run__lm(c, arena, &lm, err)) == RFL_OK)
		rc = rfl_lm_net(&lm, 1, &step, err);
	rfl_arena_free(arena);
	return rc ? rc : rfl_net_digest(step ? step : net, out, err);
}

/* The network of a step with a cache. */
static enum rfl_rc build_step(const struct rfl_run_config *c, struct rfl_net **ret,
			      struct rfl_err *err)
{
	const int64_t tokens = rfl_run__cache_tokens(c);
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_lm lm;
	enum rfl_rc rc = rfl_run__lm(c, arena, &lm, err);

	if (rc == RFL_OK && lm.positions && tokens > lm.positions)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s has %" PRId64 " positions, but the run needs %" PRId64
			      "; use a smaller --past or --%s",
			      lm.name, lm.positions, tokens,
			      c->mode == RFL_RUN_DECODE ? "iters" : "context-length");
	if (rc == RFL_OK)
		rc = rfl_lm_net(&lm, rfl_run__tokens(c), ret, err);
	rfl_arena_free(arena);
	return rc;
}

enum rfl_rc rfl_run__check(const struct rfl_run_config *c, struct rfl_net **ret,
			   struct rfl_err *err)
{
	const struct rfl_zoo_options sizes = {
		.image_size = c->image_size,
		.context_length = c->context_length,
		.attention = (enum rfl_attention)c->attention,
	};
	struct rfl_data_spec data = rfl_run__data_spec(c);
	struct rfl_net *net = NULL;
	enum rfl_rc rc;

	for (size_t i = 0; i < NFACTS; i++) {
		const struct fact *f = &facts[i];
		const bool one = f->m.offset == offsetof(C, threads); /* 0 has been resolved */
		const bool none = f->m.offset == offsetof(C, workers);
		const int64_t least = one ? 1 : none ? 0 : f->min;
		int64_t value;

		if (f->m.kind != RFL_BIND_INT || f->choices || !f->name)
			continue;
		memcpy(&value, (const char *)c + f->m.offset, sizeof(value));
		if (value < least)
			return rfl_fail(err, RFL_EINVAL, 0,
					"%s: %" PRId64 " is too small; the minimum is %" PRId64,
					f->name, value, least);
	}
	/* strings are sent to the child as JSON, which must be UTF-8 */
	for (size_t i = 0; i < NFACTS; i++) {
		const char *text;

		if (!sent(i) || sent(i)->kind != RFL_BIND_TEXT)
			continue;
		memcpy(&text, (const char *)c + sent(i)->offset, sizeof(text));
		for (const char *bad = text ? text : ""; *bad;) {
			const size_t n = rfl_text_utf8(bad, strlen(bad));

			if (n == 0)
				return rfl_fail(err, RFL_EINVAL, 0,
						"%s: '%.160s' is not UTF-8: rename it, or use a "
						"link with another name",
						sent(i)->key, text);
			bad += n;
		}
	}
	if (rfl_run_mode_caches((enum rfl_run_mode)c->mode))
		rc = build_step(c, &net, err);
	else if (!rfl_net_is_file(c->arch))
		rc = rfl_zoo_build(c->arch, &sizes, &net, err);
	else if (c->image_size || c->context_length)
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: its input has a fixed size; leave out --%s",
			      c->arch, c->image_size ? "image-size" : "context-length");
	else
		rc = rfl_net_load(c->arch, &net, err);
	if (rc == RFL_OK && net->uncounted)
		rc = rfl_fail(err, RFL_EUNSUPPORTED, 0,
			      "%s: cannot run, because these operations are not supported: %s",
			      c->arch, net->uncounted);
	if (rc == RFL_OK && net->ninputs == 1 && net->nodes[0].shape.ndim != 3 &&
	    net->nodes[0].dtype == RFL_DTYPE_F32)
		rc = rfl_fail(err, RFL_EUNSUPPORTED, 0,
			      "%s: cannot run, because its input is not an image or tokens",
			      c->arch);
	if (rc == RFL_OK && c->mode == RFL_RUN_TRAIN && rfl_net_param_count(net) == 0)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s has no parameters to train; use --mode fwd_bwd or fwd", c->arch);
	for (int test = 0; rc == RFL_OK && test <= (c->epochs > 0); test++) {
		data.test = test;
		rc = rfl_data_probe(&data, net, err);
	}
	if (rc == RFL_OK)
		*ret = net;
	else
		rfl_net_free(net);
	return rc;
}

void rfl_run__fill_facts(const struct rfl_run_config *c, struct rfl_ledger_row *row)
{
	const bool trains = c->mode == RFL_RUN_TRAIN;
	const bool applies[] = {
		[NO] = false,
		[ALWAYS] = true,
		[TRAINS] = trains,
		[SGD] = trains && c->optimizer == RFL_RULE_SGD,
		[ADAM] = trains && c->optimizer != RFL_RULE_SGD,
		[CLIPS] = trains && c->grad_clip > 0,
		[FILES] = c->data_dir != NULL,
		[EPOCHS] = c->epochs > 0,
		[CACHES] = rfl_run_mode_caches((enum rfl_run_mode)c->mode),
	};

	for (size_t i = 0; i < NFACTS; i++) {
		const struct fact *f = &facts[i];
		const void *from = (const char *)c + f->m.offset;
		void *to = rfl_field_text_at(&rfl_ledger_fields[f->column], row);

		if (!applies[f->when])
			continue;
		if (f->choices)
			rfl_field_set(to, f->choices[*(const int *)from - f->first]);
		else if (f->m.kind == RFL_BIND_TEXT)
			rfl_field_set(to, *(const char *const *)from);
		else if (f->m.kind == RFL_BIND_FLAG)
			*(int64_t *)to = *(const bool *)from;
		else
			memcpy(to, from, sizeof(double)); /* INT or REAL, like the column */
	}
}

static void put_option(struct rfl_buf *out, const char *name, const char *value)
{
	if (value && value[0]) {
		rfl_buf_printf(out, " --%s ", name);
		rfl_text_shell_word(value, out);
	}
}

void rfl_run_command(const struct rfl_ledger_row *row, struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];

	if (row->command) {
		rfl_buf_puts(out, row->command);
		return;
	}
	/* a row of an older version */
	rfl_buf_puts(out, "roofline run");
	put_option(out, "arch", row->model);
	put_option(out, "env", row->env);
	put_option(out, "backend", row->backend);
	if (row->micro_batch <= 0 && row->batch > 0)
		rfl_buf_printf(out, " --batch-size %lld", (long long)row->batch);
	if (row->img_size > 0)
		rfl_buf_printf(out, " --image-size %lld", (long long)row->img_size);
	if (row->context_length > 0)
		rfl_buf_printf(out, " --context-length %lld", (long long)row->context_length);
	if (rfl_text_same(row->layout, "nhwc"))
		rfl_buf_puts(out, " --channels-last");
	if (row->cuda_graph == 1)
		rfl_buf_puts(out, " --cuda-graph");
	put_option(out, "attention", row->attention);
	put_option(out, "data-mode", row->data_mode);
	for (size_t i = 0; i < NFACTS; i++) {
		const struct fact *f = &facts[i];
		const struct rfl_field *column = &rfl_ledger_fields[f->column];
		const char *value;

		if (f->when == NO || !f->name || !rfl_field_known(column, row))
			continue;
		value = rfl_field_write(column, row, number);
		if (f->m.kind == RFL_BIND_FLAG && strcmp(value, "1") == 0)
			rfl_buf_printf(out, " --%s", f->name);
		else if (f->m.kind != RFL_BIND_FLAG && (!f->def || strcmp(value, f->def) != 0))
			put_option(out, f->name, value);
	}
}

/* The hash of the fields of the speed. It includes the number of steps: a run of 3 steps is not a
 * repeat of a run of 100. What only a training run depends on, and the contents of the data, are
 * compared by their columns. */
void rfl_run__config_hash(const struct rfl_run_config *c, const struct rfl_ledger_row *row,
			  char out[17])
{
	const bool files = c->data_dir != NULL;
	const char *on = row->backend ? row->backend : rfl_device_names[RFL_DEVICE_CUDA];
	const bool cuda = strcmp(on, rfl_device_names[RFL_DEVICE_CUDA]) == 0;
	const bool cpu = strcmp(on, rfl_device_names[RFL_DEVICE_CPU]) == 0;
	RFL_AUTO(buf) b = { .len = 0 };

	rfl_buf_printf(&b, "2|%s|%s|%s|%s|", row->env ? row->env : "",
		       row->engine_id ? row->engine_id : c->engine,
		       row->backend ? row->backend : "auto",
		       row->net_digest ? row->net_digest : c->arch);
	rfl_buf_printf(&b, "%" PRId64 "|%" PRId64 "|%" PRId64 "|%" PRId64 "|", row->img_size,
		       row->context_length, rfl_run__batch(c), c->accum);
	rfl_buf_printf(&b, "%d|%d|%d|%d|", c->precision, (int)rfl_run__layout(c), c->mode,
		       c->deterministic);
	/* Device-specific options: as requested, off on other devices. The values in effect are
	 * unknown if a run ends early, but it must still count as a repeat of complete runs. */
	rfl_buf_printf(&b, "%d|%d|%d|%d|", cuda && c->cudnn_benchmark, cuda && c->cuda_graph,
		       !cpu && c->sync_each_step, cuda && c->pin_memory);
	rfl_buf_printf(&b, "%" PRId64 "|%d|%d|%" PRId64 "|%" PRId64 "|", c->threads, c->data_kind,
		       files && !c->no_augment, files ? c->workers : 0, files ? c->prefetch : 0);
	rfl_buf_printf(&b, "%" PRId64 "|%" PRId64 "|%d", c->warmup, c->iters, c->world.size);
	if (c->mode == RFL_RUN_TRAIN) {
		rfl_buf_printf(&b, "|%s|%s", rfl_optimizer_rule_names[c->optimizer],
			       rfl_optimizer_kernels_names[c->optimizer_kernels]);
		/* without these, the update reads and writes less */
		if (c->optimizer == RFL_RULE_SGD && c->momentum == 0)
			rfl_buf_puts(&b, "|no momentum");
		if (c->weight_decay == 0)
			rfl_buf_puts(&b, "|no weight decay");
	}
	if (c->epochs > 0)
		rfl_buf_printf(&b, "|epochs=%" PRId64 "|rotation=%g", c->epochs,
			       c->no_augment ? 0 : c->rotation);
	if (c->world.size > 1 && c->world.bucket_bytes != RFL_WORLD_BUCKET_BYTES)
		rfl_buf_printf(&b, "|bucket_bytes=%" PRId64, c->world.bucket_bytes);
	for (size_t i = 0; i < NFACTS; i++) {
		const struct fact *f = &facts[i];
		const void *at = (const char *)c + f->m.offset;
		const char *text = NULL;
		char number[RFL_NUM_MAX];

		if (!(f->identity & LATER))
			continue;
		if (f->choices)
			text = f->choices[*(const int *)at - f->first];
		else if (f->m.kind == RFL_BIND_FLAG)
			text = *(const bool *)at ? "on" : NULL;
		else if (f->m.kind == RFL_BIND_TEXT)
			text = *(const char *const *)at;
		else if (f->m.kind == RFL_BIND_REAL)
			text = rfl_num_exact(*(const double *)at, number);
		else if (snprintf(number, sizeof(number), "%" PRId64, *(const int64_t *)at) > 0)
			text = number;
		if (text && !rfl_text_same(text, f->def))
			rfl_buf_printf(&b, "|%s=%s", f->m.key, text);
	}
	rfl_hash64_text(rfl_hash64(0, rfl_buf_str(&b), b.len), out);
}
