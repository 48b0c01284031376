/*
 * page.c - the record of an environment as people read it: a field and a value a line.
 */
#include "runner/env/record.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

/* A page: the fields in their order. */
struct page {
	const json_t *record;
	bool markdown;
	size_t width;
	struct rfl_buf *out;
};

static const json_t *at(const json_t *record, const char *section, const char *key)
{
	return json_object_get(json_object_get(record, section), key);
}

static const char *text_at(const json_t *record, const char *section, const char *key)
{
	return json_string_value(at(record, section, key));
}

static void put_row(struct page *p, const char *field, const char *value)
{
	if (!p->markdown) {
		rfl_buf_printf(p->out, "%-*s  %s\n", (int)p->width, field, value);
		return;
	}
	rfl_buf_printf(p->out, "| %s | ", field);
	for (; *value; value++) {
		if (*value == '|')
			rfl_buf_putc(p->out, '\\');
		rfl_buf_putc(p->out, *value);
	}
	rfl_buf_puts(p->out, " |\n");
}

/* ---- values ---- */

/* What a cell says of one member of the record; nothing where it is not known. */
struct part {
	enum { TEXT, COUNT, FLAG, BYTES, SI } kind;
	const char *section, *key;
	/* TEXT: before it. COUNT: one, many. FLAG: yes, no. BYTES: after it. SI: unit, after it. */
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

/* @param p  ends with one that has no key
 * @param object  of which all are members; NULL: of the sections of the record that they name */
static void put_parts(struct rfl_buf *out, const json_t *record, const json_t *object,
		      const struct part *p)
{
	for (; p->key; p++)
		put_part(out, object ? object : json_object_get(record, p->section), p);
}

/* ---- fields that are more than their parts ---- */

static void program_field(const json_t *r, struct rfl_buf *out)
{
	rfl_buf_printf(out, "roofline %s (%s)", text_at(r, "program", "version"),
		       text_at(r, "program", "compiler"));
}

/* Records of other tools have this field: here it says why it is empty. */
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

static void cuda_field(const json_t *r, struct rfl_buf *out)
{
	static const struct part driver[] = { { TEXT, "gpus", "driver", "driver ", "" }, { 0 } };
	static const struct part parts[] = {
		{ TEXT, NULL, "cuda_runtime", "CUDA ", "" },
		{ TEXT, NULL, "cuda_driver", "CUDA of the driver ", "" },
		{ TEXT, NULL, "cudnn", "cuDNN ", "" },
		{ 0 },
	};
	const char *id;
	json_t *e;

	put_parts(out, r, NULL, driver);
	json_object_foreach(json_object_get(r, "engines"), id, e)
	{
		put_parts(out, r, e, parts);
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
	static const struct part quota = { SI, NULL, "cpu_quota", "",
					   " processors' time by quota" };
	const char *affinity = text_at(r, "now", "affinity");

	put_part(out, json_object_get(r, "limits"), &cores);
	if (affinity)
		rfl_buf_printf(out, " (cpus %s)", affinity);
	put_part(out, json_object_get(r, "limits"), &quota);
}

static void gpu_field(const json_t *r, struct rfl_buf *out)
{
	static const struct part parts[] = {
		{ TEXT, NULL, "name", "", "" },
		{ BYTES, NULL, "memory_bytes", "", "" },
		{ SI, NULL, "sm_clock_max_hz", "Hz", " at most" },
		{ SI, NULL, "power_limit_w", "W", " power limit" },
		{ FLAG, NULL, "ecc", "ECC on", "ECC off" },
		{ FLAG, NULL, "persistence", "persistence on", "persistence off" },
		{ 0 },
	};
	const json_t *g;
	size_t i;

	json_array_foreach(at(r, "gpus", "devices"), i, g)
	{
		put_parts(out, r, g, parts);
	}
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
	static const struct part name = { TEXT, NULL, "name", "", "" };
	static const struct part parts[] = {
		{ TEXT, NULL, "driver", "", "" },
		{ SI, NULL, "speed_bit_per_s", "bit/s", "" },
		{ 0 },
	};
	const json_t *n;
	size_t i;

	json_array_foreach(at(r, "network", "interfaces"), i, n)
	{
		put_part(out, n, &name);
		rfl_buf_printf(out, " (%s", json_string_value(json_object_get(n, "kind")));
		put_parts(out, r, n, parts);
		rfl_buf_putc(out, ')');
	}
}

static void container_field(const json_t *r, struct rfl_buf *out)
{
	static const struct part parts[] = {
		{ TEXT, "container", "kind", "", "" },
		{ TEXT, "container", "image", "", "" },
		{ 0 },
	};
	const char *why = text_at(r, "missing", "/container/image");

	put_parts(out, r, NULL, parts);
	if (text_at(r, "container", "kind") && !text_at(r, "container", "image") && why &&
	    !text_at(r, "notes", "container"))
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

/* ---- the fields ---- */

static const struct part system_parts[] = {
	{ TEXT, "system", "os", "", "" },
	{ TEXT, "system", "kernel", "", "" },
	{ TEXT, "system", "architecture", "", "" },
	{ FLAG, "system", "wsl", "WSL", "" },
	{ 0 },
};
static const struct part cpu_parts[] = {
	{ TEXT, "processor", "name", "", "" },
	{ COUNT, "processor", "packages", "package", "packages" },
	{ COUNT, "processor", "cores", "core", "cores" },
	{ COUNT, "processor", "hw_threads", "hardware thread", "hardware threads" },
	{ FLAG, "processor", "smt", "SMT on", "SMT off" },
	{ COUNT, "processor", "numa_nodes", "NUMA node", "NUMA nodes" },
	{ 0 },
};
static const struct part clock_parts[] = {
	{ TEXT, "processor", "governor", "governor ", "" },
	{ FLAG, "processor", "turbo", "turbo on", "turbo off" },
	{ 0 },
};
static const struct part memory_parts[] = {
	{ BYTES, "memory", "bytes", "", "" },
	{ BYTES, "limits", "memory_limit_bytes", " allowed to this control group", "" },
	{ 0 },
};
/* What was bought or rented; its owner notes its name. */
static const struct part host_parts[] = {
	{ TEXT, "system", "vendor", "", "" },
	{ TEXT, "system", "product", "", "" },
	{ 0 },
};
static const struct part virtual_parts[] = {
	{ FLAG, "system", "virtualised", "virtual machine", "bare metal" },
	{ TEXT, "system", "hypervisor", "", "" },
	{ 0 },
};
static const struct part provider_parts[] = { { TEXT, "cloud", "provider", "", "" }, { 0 } };
static const struct part region_parts[] = { { TEXT, "cloud", "region", "", "" }, { 0 } };
static const struct part zone_parts[] = { { TEXT, "cloud", "zone", "", "" }, { 0 } };
static const struct part type_parts[] = { { TEXT, "cloud", "instance_type", "", "" }, { 0 } };

/* `note`: the key under which a user notes it; NULL: free notes only. `why`: the path of the reason
 * that an empty cell gives, or that reason itself. A field has parts, or is put. */
static const struct {
	const char *title, *note, *why;
	const struct part *parts;
	void (*put)(const json_t *record, struct rfl_buf *out);
} fields[] = {
	{ "Host", "host", "no host name is recorded; --note host=...", host_parts, NULL },
	{ "OS/kernel", "os", "/system/os", system_parts, NULL },
	{ "Program", NULL, NULL, NULL, program_field },
	{ "Python", NULL, NULL, NULL, python_field },
	{ "Engine (PyTorch's library)", "engine", "no engine was asked; a run with one says", NULL,
	  engine_field },
	{ "CUDA, driver, cuDNN", "cuda", "/gpus/driver", NULL, cuda_field },
	{ "CPU", "cpu", "/processor/name", cpu_parts, NULL },
	{ "Caches", NULL, "neither hwloc nor /sys says", NULL, cache_field },
	{ "Clock", "clock", "/processor/governor", clock_parts, NULL },
	{ "CPUs that may be used", NULL, "the system does not say", NULL, limits_field },
	{ "Memory", "memory", "/memory/bytes", memory_parts, NULL },
	{ "GPU", "gpu", "/gpus/devices", NULL, gpu_field },
	{ "Virtualisation", "virtualisation", "/system/virtualised", virtual_parts, NULL },
	{ "Cloud", "provider", "/cloud/provider", provider_parts, NULL },
	{ "Region", "region", "/cloud/region", region_parts, NULL },
	{ "Zone", "zone", "/cloud/zone", zone_parts, NULL },
	{ "Instance type", "instance_type", "/cloud/instance_type", type_parts, NULL },
	{ "Storage", "storage", "/storage/logs/file_system", NULL, storage_field },
	{ "Network", "network", "no interface is in /sys/class/net", NULL, network_field },
	{ "Container (image tag)", "container", "/container/image", NULL, container_field },
	{ "Load when recorded", NULL, "/now/load_1min", NULL, load_field },
};

static bool is_known_note(const char *key)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
		if (fields[i].note && strcmp(fields[i].note, key) == 0)
			return true;
	return false;
}

/* The fact, then the user's note; without either the reason, in full at its first field.
 * @param reasons  per field: why it is empty, or NULL; that of i is set */
static void put_field(struct page *p, size_t i, const char **reasons)
{
	const char *note = fields[i].note ? text_at(p->record, "notes", fields[i].note) : NULL;
	const char *why = fields[i].why;
	struct rfl_buf value;
	size_t like = 0;

	if (why && why[0] == '/')
		why = text_at(p->record, "missing", why);
	if (!why)
		why = "nothing here says";
	rfl_buf_init(&value, 0);
	if (fields[i].put)
		fields[i].put(p->record, &value);
	else
		put_parts(&value, p->record, NULL, fields[i].parts);
	if (note)
		rfl_buf_printf(&value, "%s%s (noted)", value.len ? "; " : "", note);
	reasons[i] = value.len == 0 ? why : NULL;
	if (value.len == 0) {
		while (!reasons[like] || strcmp(reasons[like], why) != 0)
			like++; /* up to i itself */
		if (like < i)
			rfl_buf_printf(&value, "not known: as '%s'", fields[like].title);
		else
			rfl_buf_printf(&value, "not known: %s", why);
	}
	put_row(p, fields[i].title, rfl_buf_str(&value));
	if (value.failed)
		p->out->failed = true;
	rfl_buf_fini(&value);
}

static void put_record(struct page *p, const char *env, const json_t *record)
{
	const char *key, *recorded = json_string_value(json_object_get(record, "recorded_utc"));
	const json_t *history = json_object_get(record, "history");
	const char *shown[RFL_ARRAY_LEN(fields)];
	json_t *note;

	p->record = record;
	rfl_buf_printf(p->out, "%s%s\n\n", p->markdown ? "## " : "", env);
	if (p->markdown)
		rfl_buf_puts(p->out, "| field | value |\n|---|---|\n");
	for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
		put_field(p, i, shown);
	json_object_foreach(json_object_get(record, "notes"), key, note)
	{
		if (!is_known_note(key))
			put_row(p, key, json_string_value(note));
	}
	rfl_buf_printf(p->out, "\nRecorded %s", recorded ? recorded : "at an unknown time");
	if (json_array_size(history) > 0)
		rfl_buf_printf(p->out, "; %zu earlier %s in env.json", json_array_size(history),
			       json_array_size(history) == 1 ? "record" : "records");
	rfl_buf_puts(p->out, ".\n");
}

enum rfl_rc rfl_env_page(const json_t *document, const char *env, bool markdown,
			 struct rfl_buf *out, struct rfl_err *err)
{
	struct page p = { .markdown = markdown, .out = out };
	const size_t begin = out->len;
	const char *name;
	json_t *record;
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++) {
		if (strlen(fields[i].title) > p.width)
			p.width = strlen(fields[i].title);
	}
	if (markdown && !env)
		rfl_buf_puts(out, RFL_ENV__PAGE_MARK "\n# Environments\n\n");
	json_object_foreach(json_object_get(document, "environments"), name, record)
	{
		if (env && strcmp(env, name) != 0)
			continue;
		if (n++ > 0)
			rfl_buf_putc(out, '\n');
		put_record(&p, name, record);
	}
	rfl_text_mask_from(out, begin);
	return rfl_buf_check(out, "environments", err);
}
