/*
 * config.c - a run's configuration: as JSON for the child, checked before the start, and as a
 * fingerprint that repeats share.
 */
#include "runner/run/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "complexity/zoo.h"

/* ---- as JSON ---- */

/* What a configuration says, member by member; a new one is a row. The folders of plugins, the only
 * list, are beside it. */
enum kind {
	K_INT,
	K_INT64, /* also of uint64_t */
	K_BOOL,
	K_REAL,
	K_TEXT, /* borrowed; may be NULL */
	K_CHARS /* an array within the struct */
};

static const struct member {
	const char *key;
	enum kind kind;
	size_t offset, size;
} members[] = {
#define M(kind, key, member)                                         \
	{                                                            \
		key, kind, offsetof(struct rfl_run_config, member),  \
			sizeof(((struct rfl_run_config *)0)->member) \
	}
	M(K_TEXT, "arch", arch),
	M(K_INT64, "image_size", image_size),
	M(K_INT64, "context_length", context_length),
	M(K_INT64, "batch", batch),
	M(K_INT64, "accum", accum),
	M(K_INT, "mode", mode),
	M(K_INT, "device", device),
	M(K_INT, "precision", precision),
	M(K_INT, "layout", layout),
	M(K_TEXT, "engine", engine),
	M(K_INT, "optimizer", optimizer.rule),
	M(K_INT, "optimizer_kernels", optimizer.kernels),
	M(K_REAL, "lr", optimizer.lr),
	M(K_REAL, "momentum", optimizer.momentum),
	M(K_REAL, "weight_decay", optimizer.weight_decay),
	M(K_REAL, "beta1", optimizer.beta1),
	M(K_REAL, "beta2", optimizer.beta2),
	M(K_REAL, "eps", optimizer.eps),
	M(K_INT64, "seed", seed),
	M(K_BOOL, "deterministic", deterministic),
	M(K_BOOL, "cudnn_benchmark", cudnn_benchmark),
	M(K_BOOL, "cuda_graph", cuda_graph),
	M(K_BOOL, "sync_each_step", sync_each_step),
	M(K_INT, "threads", threads),
	M(K_INT, "data_kind", data.kind),
	M(K_TEXT, "data_dir", data.dir),
	M(K_BOOL, "augment", data.augment),
	M(K_INT, "workers", data.workers),
	M(K_INT, "ahead", data.ahead),
	M(K_BOOL, "pin_memory", data.pin_memory),
	M(K_INT64, "data_seed", data.seed),
	M(K_INT, "data_rank", data.rank),
	M(K_INT, "data_world_size", data.world_size),
	M(K_INT64, "cache_bytes", data.cache_bytes),
	M(K_INT64, "warmup", warmup),
	M(K_INT64, "iters", iters),
	M(K_REAL, "until_stdrel", until_stdrel),
	M(K_REAL, "until_max_s", until_max_s),
	M(K_INT, "rank", world.rank),
	M(K_INT, "world_size", world.size),
	M(K_INT, "local_rank", world.local_rank),
	M(K_INT, "local_size", world.local_size),
	M(K_CHARS, "address", world.address),
	M(K_INT, "port", world.port),
	M(K_BOOL, "hosted", world.hosted),
	M(K_REAL, "world_timeout_s", world.timeout_s),
	M(K_INT64, "bucket_bytes", world.bucket_bytes),
	M(K_INT64, "run_number", world.run_number),
	M(K_TEXT, "launcher", world.launcher),
	M(K_TEXT, "interconnect", world.interconnect),
	M(K_INT, "counters", counters),
	M(K_INT, "counter_sets", counter_sets),
	M(K_TEXT, "cupti_path", places.path),
	M(K_TEXT, "cuda_home", places.cuda_home),
	M(K_TEXT, "cupti_beside", places.beside),
	M(K_INT, "nvtx", nvtx),
	M(K_TEXT, "nvtx_injection", nvtx_injection),
#undef M
};

static json_t *text_to_json(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *member_to_json(const struct member *m, const char *config)
{
	const void *at = config + m->offset;

	switch (m->kind) {
	case K_INT:
		return json_integer(*(const int *)at);
	case K_INT64:
		return json_integer(*(const int64_t *)at);
	case K_BOOL:
		return json_boolean(*(const bool *)at);
	case K_REAL:
		return json_real(*(const double *)at);
	case K_TEXT:
		return text_to_json(*(const char *const *)at);
	case K_CHARS:
		return text_to_json(at);
	}
	return NULL;
}

static json_t *strings(const char *const *items)
{
	json_t *list = json_array();

	for (; list && items && *items; items++) {
		if (json_array_append_new(list, json_string(*items)) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *rfl_run__config_to_json(const struct rfl_run_config *c)
{
	json_t *json = json_pack("{s:o}", "plugin_dirs", strings(c->plugin_dirs));

	for (size_t i = 0; json && i < RFL_ARRAY_LEN(members); i++) {
		json_t *value = member_to_json(&members[i], (const char *)c);

		if (json_object_set_new(json, members[i].key, value) != 0) {
			json_decref(json);
			return NULL;
		}
	}
	return json;
}

static enum rfl_rc unpack_dirs(json_t *list, const char **dirs, size_t ndirs, struct rfl_err *err)
{
	size_t i;
	json_t *item;

	if (!json_is_array(list) || json_array_size(list) + 1 > ndirs)
		return rfl_fail(err, RFL_EINVAL, 0,
				"configuration: plugin_dirs is not a list of at most %zu folders",
				ndirs - 1);
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"configuration: plugin_dirs[%zu] is not a string", i);
		dirs[i] = json_string_value(item);
	}
	dirs[json_array_size(list)] = NULL;
	return RFL_OK;
}

static bool member_from_json(const struct member *m, const json_t *value, char *config)
{
	void *at = config + m->offset;

	switch (m->kind) {
	case K_INT:
		*(int *)at = (int)json_integer_value(value);
		return json_is_integer(value);
	case K_INT64:
		*(int64_t *)at = (int64_t)json_integer_value(value);
		return json_is_integer(value);
	case K_BOOL:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value);
	case K_REAL:
		*(double *)at = json_number_value(value);
		return json_is_number(value);
	case K_TEXT:
		*(const char **)at = json_string_value(value);
		return json_is_string(value) || json_is_null(value);
	case K_CHARS:
		snprintf(at, m->size, "%s", json_is_string(value) ? json_string_value(value) : "");
		return json_is_string(value);
	}
	return false;
}

enum rfl_rc rfl_run__config_from_json(const json_t *json, const char **dirs, size_t ndirs,
				      struct rfl_run_config *ret, struct rfl_err *err)
{
	struct rfl_run_config c = { .arch = NULL };
	enum rfl_rc rc = unpack_dirs(json_object_get(json, "plugin_dirs"), dirs, ndirs, err);

	if (rc)
		return rc;
	if (json_object_size(json) != RFL_ARRAY_LEN(members) + 1)
		return rfl_fail(err, RFL_EFORMAT, 0, "configuration: %zu members, not %zu",
				json_object_size(json), RFL_ARRAY_LEN(members) + 1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(members); i++) {
		const json_t *value = json_object_get(json, members[i].key);

		if (!member_from_json(&members[i], value, (char *)&c))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"configuration: '%s' is missing, or of "
					"another type",
					members[i].key);
	}
	if (!c.arch || !c.engine)
		return rfl_fail(err, RFL_EFORMAT, 0, "configuration: no '%s'",
				c.arch ? "engine" : "arch");
	c.plugin_dirs = dirs;
	*ret = c;
	return RFL_OK;
}

/* ---- checked ---- */

static enum rfl_rc check_numbers(const struct rfl_run_config *c, struct rfl_err *err)
{
	const struct {
		const char *name;
		int64_t value, least;
	} bounds[] = {
		{ "batch size", c->batch, 1 },         { "micro-batches per step", c->accum, 1 },
		{ "image size", c->image_size, 0 },    { "context length", c->context_length, 0 },
		{ "warm-up steps", c->warmup, 0 },     { "steps", c->iters, 1 },
		{ "threads", c->threads, 1 },          { "loader threads", c->data.workers, 0 },
		{ "batches ahead", c->data.ahead, 1 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(bounds); i++) {
		if (bounds[i].value < bounds[i].least)
			return rfl_fail(err, RFL_EINVAL, 0, "%s: %lld is less than %lld",
					bounds[i].name, (long long)bounds[i].value,
					(long long)bounds[i].least);
	}
	if (c->batch % c->accum != 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"batch size: %lld samples cannot be divided into %lld forwards",
				(long long)c->batch, (long long)c->accum);
	return RFL_OK;
}

/* They go to a child as JSON. */
static enum rfl_rc check_texts(const struct rfl_run_config *c, struct rfl_err *err)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(members); i++) {
		const char *text, *bad;

		if (members[i].kind != K_TEXT)
			continue;
		text = *(const char *const *)((const char *)c + members[i].offset);
		for (bad = text ? text : ""; *bad;) {
			const size_t n = rfl_text_utf8(bad, strlen(bad));

			if (n == 0)
				break;
			bad += n;
		}
		if (*bad == '\0')
			continue;
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: '%.160s' is not UTF-8: give it another name, or a link that "
				"has one",
				members[i].key, text);
	}
	return RFL_OK;
}

enum rfl_rc rfl_run__check(const struct rfl_run_config *config, struct rfl_net **ret,
			   struct rfl_err *err)
{
	const struct rfl_zoo_options sizes = {
		.image_size = config->image_size,
		.context_length = config->context_length,
	};
	struct rfl_net *net = NULL;
	enum rfl_rc rc = check_numbers(config, err);

	if (rc == RFL_OK)
		rc = check_texts(config, err);
	if (rc == RFL_OK)
		rc = rfl_zoo_build(config->arch, &sizes, &net, err);
	if (rc == RFL_OK)
		rc = rfl_data_probe(&config->data, net, err);
	if (rc) {
		rfl_net_free(net);
		return rc;
	}
	*ret = net;
	return RFL_OK;
}

/* ---- as a fingerprint ---- */

static bool has_files(const struct rfl_run_config *c)
{
	return c->data.dir != NULL;
}

/* The rule, its kernels, and what makes it do less: without momentum no buffer is read and
 * written. */
static void add_optimizer(struct rfl_buf *b, const struct rfl_run_config *c)
{
	const struct rfl_optimizer *o = &c->optimizer;

	if (c->mode != RFL_RUN_TRAIN)
		return;
	rfl_buf_printf(b, "|%s|%s", rfl_optimizer_rule_names[o->rule],
		       rfl_optimizer_kernels_names[o->kernels]);
	if (o->rule == RFL_RULE_SGD && o->momentum == 0)
		rfl_buf_puts(b, "|no momentum");
	if (o->weight_decay == 0)
		rfl_buf_puts(b, "|no weight decay");
}

/* What is of use on the device only: as it was asked for, elsewhere not at all. Not as the run had
 * it, which one that ended early cannot say: it would be no repeat of those that did not. */
static void add_device(struct rfl_buf *b, const struct rfl_run_config *c,
		       const struct rfl_ledger_row *row)
{
	const char *on = row->backend ? row->backend : rfl_device_names[RFL_DEVICE_CUDA];
	const bool cuda = strcmp(on, rfl_device_names[RFL_DEVICE_CUDA]) == 0;
	const bool cpu = strcmp(on, rfl_device_names[RFL_DEVICE_CPU]) == 0;

	rfl_buf_printf(b, "%d|%d|%d|%d|", cuda && c->cudnn_benchmark, cuda && c->cuda_graph,
		       !cpu && c->sync_each_step, cuda && c->data.pin_memory);
}

/* Steps are part of it: a run of 3 steps is not a repeat of a run of 100. The seed, the learning
 * rate and the folder are not: they do not change what is computed. */
void rfl_run__config_hash(const struct rfl_run_config *c, const struct rfl_ledger_row *row,
			  char out[17])
{
	const char *engine = row->engine_id ? row->engine_id : c->engine;
	struct rfl_buf b;

	rfl_buf_init(&b, 0);
	rfl_buf_printf(&b, "2|%s|%s|%s|%s|", row->env ? row->env : "", engine,
		       row->backend ? row->backend : "auto", c->arch);
	rfl_buf_printf(&b, "%" PRId64 "|%" PRId64 "|%" PRId64 "|%" PRId64 "|", row->img_size,
		       row->context_length, c->batch, c->accum);
	rfl_buf_printf(&b, "%d|%d|%d|%d|", (int)c->precision, (int)c->layout, (int)c->mode,
		       c->deterministic);
	add_device(&b, c, row);
	rfl_buf_printf(&b, "%d|%d|%d|%d|%d|", c->threads, (int)c->data.kind,
		       has_files(c) && c->data.augment, has_files(c) ? c->data.workers : 0,
		       has_files(c) ? c->data.ahead : 0);
	rfl_buf_printf(&b, "%" PRId64 "|%" PRId64 "|%d", c->warmup, c->iters, c->world.size);
	add_optimizer(&b, c);
	rfl_hash64_text(rfl_hash64(0, rfl_buf_str(&b), b.len), out);
	rfl_buf_fini(&b);
}
