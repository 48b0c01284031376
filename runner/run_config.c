/*
 * run_config.c - a run's configuration: as JSON for the child, checked before the start, and as a
 * fingerprint that repeats share.
 */
#include "runner/run_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "complexity/zoo.h"

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
	return json_pack(
		"{s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:s, s:o, s:f, s:f, s:f, s:I, s:b, s:i, s:s?, "
		"s:b, s:i, s:i, s:I, s:I, s:i, s:i, s:s?, s:s?, s:s?, s:i, s:s?}",
		"arch", c->arch, "image_size", (json_int_t)c->image_size, "batch",
		(json_int_t)c->batch, "mode", (int)c->mode, "device", c->device, "precision",
		(int)c->precision, "layout", (int)c->layout, "engine", c->engine, "plugin_dirs",
		strings(c->plugin_dirs), "lr", c->optimizer.lr, "momentum", c->optimizer.momentum,
		"weight_decay", c->optimizer.weight_decay, "seed", (json_int_t)c->seed,
		"deterministic", c->deterministic, "threads", c->threads, "data_dir", c->data.dir,
		"augment", c->data.augment, "workers", c->data.workers, "ahead", c->data.ahead, "warmup",
		(json_int_t)c->warmup, "iters", (json_int_t)c->iters, "counters", (int)c->counters,
		"counter_sets", (int)c->counter_sets, "cupti_path", c->places.path, "cuda_home",
		c->places.cuda_home, "cupti_beside", c->places.beside, "nvtx", (int)c->nvtx,
		"nvtx_injection", c->nvtx_injection);
}

static enum rfl_rc unpack_dirs(json_t *list, const char **dirs, size_t ndirs, struct rfl_err *err)
{
	size_t i;
	json_t *item;

	if (json_array_size(list) + 1 > ndirs)
		return rfl_fail(err, RFL_EINVAL, 0, "configuration: more than %zu plugin folders",
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

enum rfl_rc rfl_run__config_from_json(const json_t *json, const char **dirs, size_t ndirs,
				      struct rfl_run_config *ret, struct rfl_err *err)
{
	json_int_t image_size, batch, seed, warmup, iters;
	int mode, precision, layout, deterministic, augment, counters, sets, nvtx;
	json_t *list = NULL, *data_dir = NULL, *path = NULL, *home = NULL, *beside = NULL;
	json_t *injection = NULL;
	json_error_t why;
	struct rfl_run_config c = { .arch = NULL };
	enum rfl_rc rc;

	if (json_unpack_ex((json_t *)(uintptr_t)json, &why, JSON_STRICT,
			   "{s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:s, s:o, s:F, s:F, s:F, s:I, s:b, "
			   "s:i, s:o, s:b, s:i, s:i, s:I, s:I, s:i, s:i, s:o, s:o, s:o, s:i, s:o}",
			   "arch", &c.arch, "image_size", &image_size, "batch", &batch, "mode",
			   &mode, "device", &c.device, "precision", &precision, "layout", &layout,
			   "engine", &c.engine, "plugin_dirs", &list, "lr", &c.optimizer.lr,
			   "momentum", &c.optimizer.momentum, "weight_decay",
			   &c.optimizer.weight_decay, "seed", &seed, "deterministic",
			   &deterministic, "threads", &c.threads, "data_dir", &data_dir, "augment",
			   &augment, "workers", &c.data.workers, "ahead", &c.data.ahead, "warmup", &warmup,
			   "iters", &iters, "counters", &counters, "counter_sets", &sets,
			   "cupti_path", &path, "cuda_home", &home, "cupti_beside", &beside, "nvtx",
			   &nvtx, "nvtx_injection", &injection) != 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "configuration: %s", why.text);
	rc = unpack_dirs(list, dirs, ndirs, err);
	if (rc)
		return rc;
	c.image_size = image_size;
	c.batch = batch;
	c.mode = (enum rfl_run_mode)mode;
	c.precision = (enum rfl_precision)precision;
	c.layout = (enum rfl_layout)layout;
	c.seed = (uint64_t)seed;
	c.deterministic = deterministic != 0;
	c.data.augment = augment != 0;
	c.warmup = warmup;
	c.iters = iters;
	c.plugin_dirs = dirs;
	c.data.dir = json_string_value(data_dir); /* null: synthetic */
	c.counters = (enum rfl_detail)counters;
	c.counter_sets = (unsigned)sets;
	c.places.path = json_string_value(path);
	c.places.cuda_home = json_string_value(home);
	c.places.beside = json_string_value(beside);
	c.nvtx = (enum rfl_detail)nvtx;
	c.nvtx_injection = json_string_value(injection);
	*ret = c;
	return RFL_OK;
}

static enum rfl_rc check_numbers(const struct rfl_run_config *c, struct rfl_err *err)
{
	const struct {
		const char *name;
		int64_t value, least;
	} bounds[] = {
		{ "batch size", c->batch, 1 },     { "image size", c->image_size, 0 },
		{ "warm-up steps", c->warmup, 0 }, { "steps", c->iters, 1 },
		{ "threads", c->threads, 1 },      { "loader threads", c->data.workers, 0 },
		{ "batches ahead", c->data.ahead, 1 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(bounds); i++) {
		if (bounds[i].value < bounds[i].least)
			return rfl_fail(err, RFL_EINVAL, 0, "%s: %lld is less than %lld",
					bounds[i].name, (long long)bounds[i].value,
					(long long)bounds[i].least);
	}
	return RFL_OK;
}

enum rfl_rc rfl_run__check(const struct rfl_run_config *config, struct rfl_net **ret,
			   struct rfl_err *err)
{
	const struct rfl_zoo_options sizes = { .image_size = config->image_size };
	struct rfl_net *net = NULL;
	enum rfl_rc rc = check_numbers(config, err);

	if (rc == RFL_OK)
		rc = rfl_zoo_build(config->arch, &sizes, &net, err);
	if (rc == RFL_OK && config->data.dir)
		rc = rfl_dataset_probe(config->data.dir, net->classes, err);
	if (rc) {
		rfl_net_free(net);
		return rc;
	}
	*ret = net;
	return RFL_OK;
}

/* Steps are part of it: a run of 3 steps is not a repeat of a run of 100. The seed, the learning
 * rate and the folder are not: they do not change what is computed. Without momentum, or without
 * weight decay, less is. */
void rfl_run__config_hash(const struct rfl_run_config *c, const struct rfl_ledger_row *row,
			  char out[17])
{
	const char *engine = row->engine_id ? row->engine_id : c->engine;
	struct rfl_buf b;

	rfl_buf_init(&b, 0);
	rfl_buf_printf(&b, "1|%s|%s|%s|%s|", row->env ? row->env : "", engine,
		       row->backend ? row->backend : "auto", c->arch);
	rfl_buf_printf(&b, "%" PRId64 "|%" PRId64 "|%d|%d|%d|%d|", row->img_size, c->batch,
		       (int)c->precision, (int)c->layout, (int)c->mode, c->deterministic);
	rfl_buf_printf(&b, "%d|%d|%d|%d|%d|", c->threads, c->data.dir != NULL, c->data.augment,
		       c->data.dir ? c->data.workers : 0, c->data.dir ? c->data.ahead : 0);
	rfl_buf_printf(&b, "%" PRId64 "|%" PRId64, c->warmup, c->iters);
	if (c->mode == RFL_RUN_TRAIN && c->optimizer.momentum == 0)
		rfl_buf_puts(&b, "|no momentum");
	if (c->mode == RFL_RUN_TRAIN && c->optimizer.weight_decay == 0)
		rfl_buf_puts(&b, "|no weight decay");
	snprintf(out, 17, "%016" PRIx64, rfl_hash64(0, rfl_buf_str(&b), b.len));
	rfl_buf_fini(&b);
}
