/* page.c - formats the record of an environment, one field per line. */
#include "runner/env/record.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

static const json_t *at(const json_t *record, const char *section, const char *key)
{
	return json_object_get(json_object_get(record, section), key);
}

static const char *text_at(const json_t *record, const char *section, const char *key)
{
	return json_string_value(at(record, section, key));
}

/* A member of the record to show in a cell, unless it is unknown. */
struct part {
	enum { TEXT, COUNT, FLAG, BYTES, SI } kind;
	const char *section, *key; /* section NULL: use each element of the field's list */
	/* TEXT: prefix. COUNT: singular, plural. FLAG: yes, no. BYTES: suffix. SI: unit, suffix. */
	const char *a, *b;
};

static void put_part(struct rfl_buf *out, const json_t *object, const struct part *p)
{
	const json_t *value = json_object_get(object, p->key);
	const char *comma = out->len ? ", " : "", *text = json_string_value(value);
	const json_int_t n = json_integer_value(value);
	char number[RFL_NUM_MAX];

	if (p->kind == TEXT && text && *text)
		rfl_buf_printf(out, "%s%s%s", comma, p->a, text);
	if (p->kind == COUNT && json_is_integer(value))
		rfl_buf_printf(out, "%s%lld %s", comma, (long long)n, n == 1 ? p->a : p->b);
	text = json_is_true(value) ? p->a : p->b;
	if (p->kind == FLAG && json_is_boolean(value) && *text)
		rfl_buf_printf(out, "%s%s", comma, text);
	if (p->kind == BYTES && json_is_integer(value))
		rfl_buf_printf(out, "%s%s%s", comma,
			       rfl_num_bytes((double)n, number, sizeof(number)), p->a);
	if (p->kind == SI && json_is_number(value))
		rfl_buf_printf(
			out, "%s%s%s", comma,
			rfl_num_si(json_number_value(value), p->a, 4, number, sizeof(number)),
			p->b);
}

static void program_field(const json_t *r, struct rfl_buf *out)
{
	const char *version = text_at(r, "program", "version");
	const char *compiler = text_at(r, "program", "compiler");

	if (version)
		rfl_buf_printf(out, "roofline %s", version);
	if (version && compiler)
		rfl_buf_printf(out, " (%s)", compiler);
}

/* Records of other tools have this field. */
static void python_field(const json_t *r, struct rfl_buf *out)
{
	(void)r;
	rfl_buf_puts(out, "not used: the engine is PyTorch's C++ library");
}

static void engine_field(const json_t *r, struct rfl_buf *out)
{
	const char *id;
	json_t *e;

	json_object_foreach(json_object_get(r, "engines"), id, e)
	{
		const char *version = json_string_value(json_object_get(e, "version"));

		rfl_buf_printf(out, "%s%s%s%s", out->len ? ", " : "", id,
			       version ? ": libtorch " : "", version ? version : "");
	}
}

static void cache_field(const json_t *r, struct rfl_buf *out)
{
	const json_t *cache;
	size_t i;

	json_array_foreach(at(r, "processor", "caches"), i, cache)
	{
		char what[64];

		snprintf(what, sizeof(what), " L%d x %d",
			 (int)json_integer_value(json_object_get(cache, "level")),
			 (int)json_integer_value(json_object_get(cache, "count")));
		put_part(out, cache, &(struct part){ BYTES, NULL, "size_bytes", what, "" });
	}
}

static void limits_field(const json_t *r, struct rfl_buf *out)
{
	static const struct part cores = { COUNT, NULL, "usable_cores", "core", "cores" };
	static const struct part quota = { SI, NULL, "cpu_quota", "", " CPUs by quota" };
	const char *affinity = text_at(r, "now", "affinity");

	put_part(out, json_object_get(r, "limits"), &cores);
	if (affinity)
		rfl_buf_printf(out, " (CPUs %s)", affinity);
	put_part(out, json_object_get(r, "limits"), &quota);
}

static void storage_field(const json_t *r, struct rfl_buf *out)
{
	static const char *const folders[] = { "logs", "data" };
	static const struct part size = { BYTES, NULL, "size_bytes", "", "" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(folders); i++) {
		const json_t *s = at(r, "storage", folders[i]);
		const char *fs = json_string_value(json_object_get(s, "file_system"));
		const char *device = json_string_value(json_object_get(s, "device"));

		if (!fs)
			continue;
		rfl_buf_printf(out, "%s%s: %s%s%s", out->len ? "; " : "", folders[i],
			       device ? device : "", device ? ", " : "", fs);
		put_part(out, s, &size);
	}
}

static void network_field(const json_t *r, struct rfl_buf *out)
{
	static const struct part parts[] = {
		{ TEXT, NULL, "driver", "", "" },
		{ SI, NULL, "speed_bit_per_s", "bit/s", "" },
	};
	const json_t *n;
	size_t i;

	json_array_foreach(at(r, "network", "interfaces"), i, n)
	{
		rfl_buf_printf(out, "%s%s (%s", i ? ", " : "",
			       json_string_value(json_object_get(n, "name")),
			       json_string_value(json_object_get(n, "kind")));
		put_part(out, n, &parts[0]);
		put_part(out, n, &parts[1]);
		rfl_buf_putc(out, ')');
	}
}

static void container_field(const json_t *r, struct rfl_buf *out)
{
	const char *kind = text_at(r, "container", "kind"), *image;
	const char *why = text_at(r, "missing", "/container/image");

	image = text_at(r, "container", "image");
	rfl_buf_printf(out, "%s%s%s", kind ? kind : "", kind && image ? ", " : "",
		       image ? image : "");
	if (kind && !image && why && !text_at(r, "notes", "container"))
		rfl_buf_printf(out, ", image: %s", why);
}

static void load_field(const json_t *r, struct rfl_buf *out)
{
	static const char *const keys[] = { "load_1min", "load_5min", "load_15min" };
	static const struct part memory = { BYTES, NULL, "memory_available_bytes",
					    " of memory available", "" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(keys); i++) {
		const json_t *v = at(r, "now", keys[i]);

		if (json_is_number(v))
			rfl_buf_printf(out, "%s%.2f", out->len ? " " : "", json_number_value(v));
	}
	put_part(out, json_object_get(r, "now"), &memory);
}

#define PARTS(...) ((const struct part[]){ __VA_ARGS__, { 0 } })

/* `note`: the key of the user's note; NULL: none. `why`: the reason for an empty cell, or its path
 * in the record. A field has either parts or `put`. */
static const struct {
	const char *title, *note, *why;
	void (*put)(const json_t *record, struct rfl_buf *out);
	const struct part *parts;
	const char *list[2]; /* path of a list or an object, for parts without a section */
} fields[] = {
	{ "Host", "host", "host names are not recorded; use --note host=...",
	  .parts = PARTS({ TEXT, "system", "vendor", "", "" },
			 { TEXT, "system", "product", "", "" }) },
	{ "OS/kernel", "os", "/system/os",
	  .parts = PARTS({ TEXT, "system", "os", "", "" }, { TEXT, "system", "kernel", "", "" },
			 { TEXT, "system", "architecture", "", "" },
			 { FLAG, "system", "wsl", "WSL", "" }) },
	{ "Program", NULL, NULL, .put = program_field },
	{ "Python", NULL, NULL, .put = python_field },
	{ "Engine (PyTorch's library)", "engine", "no engine has been used yet; a run records it",
	  .put = engine_field },
	{ "CUDA, driver, cuDNN", "cuda", "/gpus/driver",
	  .parts = PARTS({ TEXT, "gpus", "driver", "driver ", "" },
			 { TEXT, NULL, "cuda_runtime", "CUDA ", "" },
			 { TEXT, NULL, "cuda_driver", "driver supports CUDA ", "" },
			 { TEXT, NULL, "cudnn", "cuDNN ", "" }),
	  .list = { "engines" } },
	{ "CPU", "cpu", "/processor/name",
	  .parts =
		  PARTS({ TEXT, "processor", "name", "", "" },
			{ COUNT, "processor", "packages", "package", "packages" },
			{ COUNT, "processor", "cores", "core", "cores" },
			{ COUNT, "processor", "hw_threads", "hardware thread", "hardware threads" },
			{ FLAG, "processor", "smt", "SMT on", "SMT off" },
			{ COUNT, "processor", "numa_nodes", "NUMA node", "NUMA nodes" }) },
	{ "Caches", NULL, "reported neither by hwloc nor by cpuid", .put = cache_field },
	{ "Clock", "clock", "/processor/governor",
	  .parts = PARTS({ TEXT, "processor", "governor", "governor ", "" },
			 { FLAG, "processor", "turbo", "turbo on", "turbo off" }) },
	{ "Usable CPUs", NULL, "not reported by the system", .put = limits_field },
	{ "Memory", "memory", "/memory/bytes",
	  .parts = PARTS({ BYTES, "memory", "bytes", "", "" },
			 { BYTES, "limits", "memory_limit_bytes", " control-group limit", "" }) },
	{ "GPU", "gpu", "/gpus/devices",
	  .parts = PARTS({ TEXT, NULL, "name", "", "" }, { BYTES, NULL, "memory_bytes", "", "" },
			 { SI, NULL, "sm_clock_max_hz", "Hz", " at most" },
			 { SI, NULL, "power_limit_w", "W", " power limit" },
			 { FLAG, NULL, "ecc", "ECC on", "ECC off" },
			 { FLAG, NULL, "persistence", "persistence on", "persistence off" }),
	  .list = { "gpus", "devices" } },
	{ "Virtualisation", "virtualisation", "/system/virtualised",
	  .parts = PARTS({ FLAG, "system", "virtualised", "virtual machine", "bare metal" },
			 { TEXT, "system", "hypervisor", "", "" }) },
	{ "Cloud", "provider", "/cloud/provider",
	  .parts = PARTS({ TEXT, "cloud", "provider", "", "" }) },
	{ "Region", "region", "/cloud/region",
	  .parts = PARTS({ TEXT, "cloud", "region", "", "" }) },
	{ "Zone", "zone", "/cloud/zone", .parts = PARTS({ TEXT, "cloud", "zone", "", "" }) },
	{ "Instance type", "instance_type", "/cloud/instance_type",
	  .parts = PARTS({ TEXT, "cloud", "instance_type", "", "" }) },
	{ "Storage", "storage", "/storage/logs/file_system", .put = storage_field },
	{ "Network", "network", "no interfaces in /sys/class/net", .put = network_field },
	{ "Container (image tag)", "container", "/container/image", .put = container_field },
	{ "Load when recorded", NULL, "/now/load_1min", .put = load_field },
};

/* Append the values of field i, without the user's note. */
static void put_fact(const json_t *record, size_t i, struct rfl_buf *out)
{
	const struct part *p = fields[i].parts;
	json_t *list = json_object_get(record, fields[i].list[0] ? fields[i].list[0] : "");
	json_t *one;
	const char *key;
	size_t k;

	if (fields[i].put)
		fields[i].put(record, out);
	for (; p && p->key && p->section; p++)
		put_part(out, json_object_get(record, p->section), p);
	if (fields[i].list[1])
		list = json_object_get(list, fields[i].list[1]);
	json_array_foreach(list, k, one) for (const struct part *each = p; each->key; each++)
		put_part(out, one, each);
	json_object_foreach(list, key, one) for (const struct part *each = p; each->key; each++)
		put_part(out, one, each);
}

/* The value and the user's note; if both are missing, the reason, in full only once. */
void rfl_env_each_field(const json_t *record,
			void (*fn)(const char *title, const char *value, void *ctx), void *ctx)
{
	const char *whys[RFL_ARRAY_LEN(fields)] = { NULL }; /* reasons for empty fields */
	const char *key;
	json_t *note;

	for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++) {
		const char *mine = fields[i].note ? text_at(record, "notes", fields[i].note) : NULL;
		const char *why = fields[i].why;
		RFL_AUTO(buf) value = { .len = 0 };
		size_t like = 0;

		put_fact(record, i, &value);
		if (mine)
			rfl_buf_printf(&value, "%s%s (noted)", value.len ? "; " : "", mine);
		if (value.len == 0) {
			if (why && why[0] == '/')
				why = text_at(record, "missing", why);
			whys[i] = why ? why : "no reason recorded";
			while (!whys[like] || strcmp(whys[like], whys[i]) != 0)
				like++; /* ends at i at the latest */
			if (like < i)
				rfl_buf_printf(&value, "unknown: see '%s'", fields[like].title);
			else
				rfl_buf_printf(&value, "unknown: %s", whys[i]);
		}
		fn(fields[i].title, rfl_buf_str(&value), ctx);
	}
	json_object_foreach(json_object_get(record, "notes"), key, note)
	{
		size_t i = 0;

		while (i < RFL_ARRAY_LEN(fields) && !rfl_text_same(fields[i].note, key))
			i++;
		if (i == RFL_ARRAY_LEN(fields)) /* a note without a field */
			fn(key, json_is_string(note) ? json_string_value(note) : "", ctx);
	}
}

struct rows {
	struct rfl_buf *out;
	bool markdown;
};

static void put_row(const char *field, const char *value, void *ctx)
{
	const struct rows *r = ctx;
	int width = 0;

	if (!r->markdown) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
			if ((int)strlen(fields[i].title) > width)
				width = (int)strlen(fields[i].title);
		rfl_buf_printf(r->out, "%-*s  %s\n", width, field, value);
		return;
	}
	rfl_buf_printf(r->out, "| %s | ", field);
	for (; *value; value++) {
		if (*value == '|')
			rfl_buf_putc(r->out, '\\');
		rfl_buf_putc(r->out, *value);
	}
	rfl_buf_puts(r->out, " |\n");
}

static void put_record(const char *env, const json_t *record, bool markdown, struct rfl_buf *out)
{
	const char *recorded = json_string_value(json_object_get(record, "recorded_utc"));
	const json_t *history = json_object_get(record, "history");
	struct rows rows = { .out = out, .markdown = markdown };

	rfl_buf_printf(out, "%s%s\n\n", markdown ? "## " : "", env);
	if (markdown)
		rfl_buf_puts(out, "| field | value |\n|---|---|\n");
	rfl_env_each_field(record, put_row, &rows);
	rfl_buf_printf(out, "\nRecorded %s", recorded ? recorded : "at an unknown time");
	if (json_array_size(history) > 0)
		rfl_buf_printf(out, "; %zu earlier %s in env.json", json_array_size(history),
			       json_array_size(history) == 1 ? "record" : "records");
	rfl_buf_puts(out, ".\n");
}

void rfl_env_page(const json_t *document, const char *env, bool markdown, struct rfl_buf *out)
{
	const size_t begin = out->len;
	const char *name;
	json_t *record;
	size_t n = 0;

	if (markdown && !env)
		rfl_buf_puts(out, RFL_ENV__PAGE_MARK "\n# Environments\n\n");
	json_object_foreach(json_object_get(document, "environments"), name, record)
	{
		if (env && strcmp(env, name) != 0)
			continue;
		if (n++ > 0)
			rfl_buf_putc(out, '\n');
		put_record(name, record, markdown, out);
	}
	rfl_text_mask_from(out, begin);
}
