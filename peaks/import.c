/*
 * import.c - the formats of other tools' results, the choice of a format, and the environment into
 * which their values are collected.
 */
#include "peaks/import.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "peaks/peaks.h"
#include "peaks/rules.h"

/* In the order of detection. */
static const struct rfl_peaks_format *const formats[] = {
	&rfl_peaks_format_ert,    &rfl_peaks_format_likwid,      &rfl_peaks_format_rocprof,
	&rfl_peaks_format_clpeak, &rfl_peaks_format_nvbandwidth, &rfl_peaks_format_nersc,
};

const char *const rfl_peaks_format_names[] = { "ert",    "likwid-bench", "rocprof-compute",
					       "clpeak", "nvbandwidth",  "nersc",
					       NULL };

enum rfl_rc rfl_peaks_import_refuse(const struct rfl_peaks_import *in, const char *fmt, ...)
{
	char what[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return rfl_fail(in->err, RFL_EFORMAT, 0, "%s: %s", in->name, what);
}

void rfl_peaks_import_init(struct rfl_peaks_import *in,
			   const struct rfl_peaks_import_options *options)
{
	*in = (struct rfl_peaks_import){ .options = options,
					 .compute = json_object(),
					 .memory = json_array(),
					 .devices = json_object(),
					 .ignored = json_object() };
}

void rfl_peaks_import_fini(struct rfl_peaks_import *in)
{
	json_decref(in->compute);
	json_decref(in->memory);
	json_decref(in->devices);
	json_decref(in->ignored);
}

/* --- values --- */

bool rfl_peaks_import_device(struct rfl_peaks_import *in, const char *id, const char *name)
{
	const char *wanted = in->options->select;
	char text[sizeof(in->device)];
	bool taken;

	snprintf(text, sizeof(text), "%s", id);
	rfl_text_one_line(text);
	taken = wanted ? strcmp(wanted, text) == 0
		       : json_object_size(in->devices) == 0 ||
				 json_is_true(json_object_get(in->devices, text));
	json_object_set_new(in->devices, text, json_boolean(taken));
	if (taken && name) {
		snprintf(in->device, sizeof(in->device), "%s", name);
		rfl_text_one_line(in->device);
	}
	return taken;
}

void rfl_peaks_import_version(struct rfl_peaks_import *in, const char *version)
{
	const size_t len = strlen(in->tool);

	if (version)
		snprintf(in->tool + len, sizeof(in->tool) - len, " %s", version);
	rfl_text_one_line(in->tool);
}

static bool is_gpu(const struct rfl_peaks_import *in)
{
	return in->options->kind ? strcmp(in->options->kind, "gpu") == 0 : in->gpu;
}

const char *rfl_peaks_import_key(const struct rfl_peaks_import *in, const char *name)
{
	const struct rfl_peaks_name *n = in->format->names;

	while (n->name && fnmatch(n->name, name, 0) != 0)
		n++;
	return n->key;
}

/* The place of a key in the collected values; with ".1core" if it is a rate of one core.
 * @return NULL: there is no such key */
static json_t *find_cell(struct rfl_peaks_import *in, const char *base, const char *name,
			 int threads)
{
	const char *scope = threads == 1 ? "core" : is_gpu(in) ? "device" : "node";
	const bool compute = base && strchr(base, '.');
	json_t *level;
	char key[48], text[128];

	snprintf(key, sizeof(key), "%s%s", base ? base : "",
		 compute && threads == 1 ? ".1core" : "");
	if (!base || (compute && !rfl_rules__is_compute_key(key))) {
		/* of "test/variant", list the test */
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "/"), name);
		json_object_set_new(in->ignored, text, json_true());
		return NULL;
	}
	if (compute) {
		if (!json_object_get(in->compute, key))
			json_object_set_new(in->compute, key, json_object());
		return json_object_get(in->compute, key);
	}
	for (size_t i = 0; i < json_array_size(in->memory); i++) {
		level = json_array_get(in->memory, i);
		if (strcmp(json_string_value(json_object_get(level, "level")), key) == 0 &&
		    strcmp(json_string_value(json_object_get(level, "scope")), scope) == 0)
			return json_object_get(level, "gbs");
	}
	level = json_pack("{s:s, s:s, s:{}}", "level", key, "scope", scope, "gbs");
	rfl_rules__insert_level(in->memory, level);
	return json_object_get(level, "gbs");
}

enum rfl_rc rfl_peaks_import_put(struct rfl_peaks_import *in, const char *key, const char *name,
				 double value, int threads)
{
	json_t *cell = find_cell(in, key, name, threads);
	json_auto_t *new = NULL;

	if (!cell)
		return RFL_OK;
	if (!(value >= RFL_RULE_LEAST && value <= RFL_RULE_LARGEST))
		return rfl_peaks_import_refuse(
			in, "%s: %g is not a rate from %g to %g GFLOP/s or GB/s; check its unit",
			name, value, RFL_RULE_LEAST, RFL_RULE_LARGEST);
	if (json_number_value(json_object_get(cell, "value")) >= value)
		return RFL_OK;
	new = json_pack("{s:s, s:f, s:{s:s, s:o}, s:o*}", "status", "user", "value", value,
			"source", "title", in->tool, "where",
			json_sprintf("%s: %s", rfl_path_base(in->name), name), "conditions",
			threads > 0 ? json_pack("{s:i}", "threads", threads) : NULL);
	if (!new)
		return rfl_peaks_import_refuse(in, "'%s' or the name of the file is not UTF-8 text",
					       name);
	json_object_clear(cell);
	json_object_update(cell, new);
	return RFL_OK;
}

enum rfl_rc rfl_peaks_import_lacks(struct rfl_peaks_import *in, const char *name,
				   const char *status, const char *reason)
{
	json_t *cell = find_cell(in, rfl_peaks_import_key(in, name), name, 0);
	json_auto_t *new = NULL;

	if (!cell || json_object_size(cell) > 0)
		return RFL_OK;
	new = json_pack("{s:s, s:n, s:o}", "status", status, "value", "reason",
			json_sprintf("%s: %s", in->tool, *reason ? reason : status));
	if (!new)
		return rfl_peaks_import_refuse(in, "'%s' is not UTF-8 text", reason);
	json_object_update(cell, new);
	return RFL_OK;
}

/* --- files --- */

enum rfl_rc rfl_peaks_import_csv(struct rfl_peaks_import *in, const char *const *names, int *at,
				 enum rfl_rc (*row)(struct rfl_peaks_import *in,
						    const struct rfl_csv *csv, const int *at))
{
	RFL_AUTOPTR(csv) csv = NULL;
	bool more = true;
	enum rfl_rc rc = rfl_csv_open_text(in->text.at, in->text.len, in->name, &csv, in->err);

	for (size_t i = 0; rc == RFL_OK && names[i]; i++)
		rc = rfl_csv_need(csv, names[i], &at[i], in->err);
	while (rc == RFL_OK && !(rc = rfl_csv_next(csv, &more, in->err)) && more)
		rc = csv->nfields == csv->ncolumns
			     ? row(in, csv, at)
			     : rfl_peaks_import_refuse(
				       in, "line %zu: %zu fields, but the header has %zu",
				       csv->line, csv->nfields, csv->ncolumns);
	return rc;
}

static enum rfl_rc find_format(struct rfl_peaks_import *in)
{
	const char *from = in->options->from;
	RFL_AUTO(buf) list = { .len = 0 };

	in->format = NULL;
	for (size_t i = 0; !in->format && i < RFL_ARRAY_LEN(formats); i++)
		if (from ? strcmp(formats[i]->name, from) == 0 : formats[i]->detect(in->text))
			in->format = formats[i];
	if (in->format)
		return RFL_OK;
	for (size_t i = 0; i < RFL_ARRAY_LEN(formats); i++)
		rfl_buf_printf(&list, "%s%s", i > 0 ? ", " : "", formats[i]->name);
	return rfl_peaks_import_refuse(in, "unknown format; it is none of: %s", rfl_buf_str(&list));
}

/* One device must have been taken. */
static enum rfl_rc check_devices(const struct rfl_peaks_import *in)
{
	size_t taken = 0;
	RFL_AUTO(buf) list = { .len = 0 };
	const char *id;
	json_t *value;
	enum rfl_rc rc = RFL_OK;

	json_object_foreach(in->devices, id, value)
	{
		taken += json_is_true(value);
		rfl_buf_printf(&list, "%s%s", list.len ? ", " : "", id);
	}
	if (json_object_size(in->devices) > taken && (!in->options->select || taken == 0))
		rc = rfl_fail(in->err, RFL_EINVAL, 0, "%s: the file has the devices %s; select %s",
			      in->name, rfl_buf_str(&list),
			      in->options->select ? "one of them" : "one with --select");
	return rc;
}

/* Read the file in `text`. @param optional  a file that no format fits is not an error */
static enum rfl_rc read_text(struct rfl_peaks_import *in, const char *path,
			     const struct rfl_buf *text, bool optional, struct rfl_err *err)
{
	enum rfl_rc rc;

	in->name = path;
	in->err = err;
	json_object_clear(in->devices);
	in->text = (struct rfl_span){ .at = rfl_buf_str(text), .len = text->len };
	rc = find_format(in);
	if (rc != RFL_OK && optional) {
		rfl_err_clear(err);
		return RFL_OK;
	}
	if (rc != RFL_OK)
		return rc;
	snprintf(in->tool, sizeof(in->tool), "%s", in->format->tool);
	rc = in->format->read(in);
	return rc ? rc : check_devices(in);
}

enum rfl_rc rfl_peaks_import_file(struct rfl_peaks_import *in, const char *path,
				  struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = rfl_file_read(path, &text, err);

	return rc ? rc : read_text(in, path, &text, false, err);
}

enum rfl_rc rfl_peaks_import_load(const char *path, const struct rfl_peaks_import_options *options,
				  const char *env, struct rfl_peaks **ret, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	RFL_AUTO(peaks_import) in;
	json_auto_t *root = NULL;
	json_t *value = NULL;
	char *file = NULL;
	enum rfl_rc rc;

	rfl_peaks_import_init(&in, options);
	if ((rc = rfl_file_read(path, &text, err)) ||
	    (rc = read_text(&in, path, &text, true, err)) || !in.format ||
	    (rc = rfl_text_check_env_name("environment", env, RFL_EINVAL, err)) ||
	    (rc = rfl_peaks_import_env(&in, &value, err)))
		return rc;
	root = json_pack("{s:s, s:{s:o}}", "schema_version", "1.0", "environments", env, value);
	file = json_dumps(root, 0);
	rc = rfl_peaks_loads(file, strlen(file), path, ret, err);
	free(file);
	return rc;
}

static json_t *absent(void)
{
	return json_pack("{s:s, s:n, s:s}", "status", "unknown", "value", "reason",
			 "not in the imported files");
}

enum rfl_rc rfl_peaks_import_env(const struct rfl_peaks_import *in, json_t **ret,
				 struct rfl_err *err)
{
	const char *device = in->options->device ? in->options->device
			     : *in->device       ? in->device
						 : RFL_PEAKS_NO_DEVICE;
	json_t *compute, *memory;

	if (json_object_size(in->compute) == 0 && json_array_size(in->memory) == 0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: the file names no known ceiling; see docs/reference/peaks.md",
				in->name);
	compute = json_deep_copy(in->compute);
	memory = json_deep_copy(in->memory);
	/* both must have an entry */
	if (json_object_size(compute) == 0)
		json_object_set_new(compute, "fp32.vector", absent());
	if (json_array_size(memory) == 0)
		json_array_append_new(memory,
				      json_pack("{s:s, s:s, s:o}", "level", "DRAM", "scope",
						is_gpu(in) ? "device" : "node", "gbs", absent()));
	*ret = json_pack("{s:s, s:{s:s}, s:o, s:o}", "kind", is_gpu(in) ? "gpu" : "cpu", "device",
			 "name", device, "compute", compute, "memory", memory);
	return *ret ? RFL_OK : rfl_peaks_import_refuse(in, "'%s' is not UTF-8 text", device);
}
