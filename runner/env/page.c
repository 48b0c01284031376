/*
 * page.c - the record of an environment as people read it: a field and a value a line.
 */
#include "runner/env/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

/* What a page is made of: the fields in their order, with what stands in a cell. */
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

/* "a, b": what is known of a list of texts. */
static void join(struct rfl_buf *out, const char *text)
{
	if (text && *text)
		rfl_buf_printf(out, "%s%s", out->len ? ", " : "", text);
}

static void join_bytes(struct rfl_buf *out, const json_t *bytes, const char *what)
{
	char number[RFL_NUM_MAX];

	if (json_is_integer(bytes))
		rfl_buf_printf(
			out, "%s%s%s", out->len ? ", " : "",
			rfl_num_bytes((double)json_integer_value(bytes), number, sizeof(number)),
			what);
}

static void join_si(struct rfl_buf *out, const json_t *value, const char *unit, const char *what)
{
	char number[RFL_NUM_MAX];

	if (json_is_number(value))
		rfl_buf_printf(
			out, "%s%s%s", out->len ? ", " : "",
			rfl_num_si(json_number_value(value), unit, 4, number, sizeof(number)),
			what);
}

static void join_count(struct rfl_buf *out, const json_t *value, const char *one, const char *many)
{
	json_int_t n = json_integer_value(value);

	if (json_is_integer(value))
		rfl_buf_printf(out, "%s%lld %s", out->len ? ", " : "", (long long)n,
			       n == 1 ? one : many);
}

static void join_flag(struct rfl_buf *out, const json_t *value, const char *yes, const char *no)
{
	if (json_is_boolean(value))
		join(out, json_is_true(value) ? yes : no);
}

/* ---- fields ---- */

static void system_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "system", "os"));
	join(out, text_at(r, "system", "kernel"));
	join(out, text_at(r, "system", "architecture"));
	join_flag(out, at(r, "system", "wsl"), "WSL", NULL);
}

static void program_field(const json_t *r, struct rfl_buf *out)
{
	rfl_buf_printf(out, "roofline %s (%s)", text_at(r, "program", "version"),
		       text_at(r, "program", "compiler"));
}

/* What the runs of others are asked for: here it says why there is nothing to tell. */
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
	static const struct {
		const char *key, *name;
	} parts[] = {
		{ "cuda_runtime", "CUDA" },
		{ "cuda_driver", "CUDA of the driver" },
		{ "cudnn", "cuDNN" },
	};
	const char *driver = text_at(r, "gpus", "driver"), *id;
	json_t *e;

	if (driver)
		rfl_buf_printf(out, "driver %s", driver);
	json_object_foreach(json_object_get(r, "engines"), id, e)
	{
		for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++) {
			const char *v = json_string_value(json_object_get(e, parts[i].key));

			if (v)
				rfl_buf_printf(out, "%s%s %s", out->len ? ", " : "", parts[i].name,
					       v);
		}
	}
}

static void cpu_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "processor", "name"));
	join_count(out, at(r, "processor", "packages"), "package", "packages");
	join_count(out, at(r, "processor", "cores"), "core", "cores");
	join_count(out, at(r, "processor", "hw_threads"), "hardware thread", "hardware threads");
	join_flag(out, at(r, "processor", "smt"), "SMT on", "SMT off");
	join_count(out, at(r, "processor", "numa_nodes"), "NUMA node", "NUMA nodes");
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
		join_bytes(out, json_object_get(cache, "size_bytes"), what);
	}
}

static void clock_field(const json_t *r, struct rfl_buf *out)
{
	const char *governor = text_at(r, "processor", "governor");

	if (governor)
		rfl_buf_printf(out, "governor %s", governor);
	join_flag(out, at(r, "processor", "turbo"), "turbo on", "turbo off");
}

static void memory_field(const json_t *r, struct rfl_buf *out)
{
	join_bytes(out, at(r, "memory", "bytes"), "");
	join_bytes(out, at(r, "limits", "memory_limit_bytes"), " allowed to this control group");
}

static void limits_field(const json_t *r, struct rfl_buf *out)
{
	const char *affinity = text_at(r, "now", "affinity");

	join_count(out, at(r, "limits", "usable_cores"), "core", "cores");
	if (affinity)
		rfl_buf_printf(out, " (cpus %s)", affinity);
	join_si(out, at(r, "limits", "cpu_quota"), "", " processors' time by quota");
}

static void gpu_field(const json_t *r, struct rfl_buf *out)
{
	const json_t *g;
	size_t i;

	json_array_foreach(at(r, "gpus", "devices"), i, g)
	{
		join(out, json_string_value(json_object_get(g, "name")));
		join_bytes(out, json_object_get(g, "memory_bytes"), "");
		join_si(out, json_object_get(g, "sm_clock_max_hz"), "Hz", " at most");
		join_si(out, json_object_get(g, "power_limit_w"), "W", " power limit");
		join_flag(out, json_object_get(g, "ecc"), "ECC on", "ECC off");
		join_flag(out, json_object_get(g, "persistence"), "persistence on",
			  "persistence off");
	}
}

/* What was bought or rented; what it is called, its owner notes. */
static void host_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "system", "vendor"));
	join(out, text_at(r, "system", "product"));
}

static void virtual_field(const json_t *r, struct rfl_buf *out)
{
	join_flag(out, at(r, "system", "virtualised"), "virtual machine", "bare metal");
	join(out, text_at(r, "system", "hypervisor"));
}

static void provider_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "cloud", "provider"));
}

static void region_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "cloud", "region"));
}

static void zone_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "cloud", "zone"));
}

static void type_field(const json_t *r, struct rfl_buf *out)
{
	join(out, text_at(r, "cloud", "instance_type"));
}

static void storage_field(const json_t *r, struct rfl_buf *out)
{
	static const char *const folders[] = { "logs", "data" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(folders); i++) {
		const json_t *s = at(r, "storage", folders[i]);
		const char *fs = json_string_value(json_object_get(s, "file_system"));
		const char *device = json_string_value(json_object_get(s, "device"));

		if (fs)
			rfl_buf_printf(out, "%s%s: %s%s%s", out->len ? "; " : "", folders[i],
				       device ? device : "", device ? ", " : "", fs);
		if (fs)
			join_bytes(out, json_object_get(s, "size_bytes"), "");
	}
}

static void network_field(const json_t *r, struct rfl_buf *out)
{
	const json_t *n;
	size_t i;

	json_array_foreach(at(r, "network", "interfaces"), i, n)
	{
		join(out, json_string_value(json_object_get(n, "name")));
		rfl_buf_printf(out, " (%s", json_string_value(json_object_get(n, "kind")));
		join(out, json_string_value(json_object_get(n, "driver")));
		join_si(out, json_object_get(n, "speed_bit_per_s"), "bit/s", "");
		rfl_buf_putc(out, ')');
	}
}

static void container_field(const json_t *r, struct rfl_buf *out)
{
	const char *kind = text_at(r, "container", "kind"),
		   *image = text_at(r, "container", "image");
	const char *why = text_at(r, "missing", "/container/image");

	join(out, kind);
	join(out, image);
	if (kind && !image && why && !text_at(r, "notes", "container"))
		rfl_buf_printf(out, ", image: %s", why);
}

static void load_field(const json_t *r, struct rfl_buf *out)
{
	static const char *const keys[] = { "load_1min", "load_5min", "load_15min" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(keys); i++) {
		const json_t *v = at(r, "now", keys[i]);

		if (json_is_number(v))
			rfl_buf_printf(out, "%s%.2f", out->len ? " " : "", json_number_value(v));
	}
	join_bytes(out, at(r, "now", "memory_available_bytes"), " of memory available");
}

/* `note`: the key under which a user tells it; NULL: free notes only. `why`: the path whose reason
 * stands in an empty cell, or that reason itself. */
static const struct {
	const char *title, *note, *why;
	void (*put)(const json_t *record, struct rfl_buf *out);
} fields[] = {
	{ "Host", "host", "no host name is recorded; --note host=...", host_field },
	{ "OS/kernel", "os", "/system/os", system_field },
	{ "Program", NULL, NULL, program_field },
	{ "Python", NULL, NULL, python_field },
	{ "Engine (PyTorch's library)", "engine", "no engine was asked; a run with one tells",
	  engine_field },
	{ "CUDA, driver, cuDNN", "cuda", "/gpus/driver", cuda_field },
	{ "CPU", "cpu", "/processor/name", cpu_field },
	{ "Caches", NULL, "neither hwloc nor /sys tells", cache_field },
	{ "Clock", "clock", "/processor/governor", clock_field },
	{ "CPUs that may be used", NULL, "the system does not tell", limits_field },
	{ "Memory", "memory", "/memory/bytes", memory_field },
	{ "GPU", "gpu", "/gpus/devices", gpu_field },
	{ "Virtualisation", "virtualisation", "/system/virtualised", virtual_field },
	{ "Cloud", "provider", "/cloud/provider", provider_field },
	{ "Region", "region", "/cloud/region", region_field },
	{ "Zone", "zone", "/cloud/zone", zone_field },
	{ "Instance type", "instance_type", "/cloud/instance_type", type_field },
	{ "Storage", "storage", "/storage/logs/file_system", storage_field },
	{ "Network", "network", "no interface is in /sys/class/net", network_field },
	{ "Container (image tag)", "container", "/container/image", container_field },
	{ "Load when recorded", NULL, "/now/load_1min", load_field },
};

static const char *note_of(const json_t *record, const char *key)
{
	return key ? text_at(record, "notes", key) : NULL;
}

static bool is_known_note(const char *key)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++) {
		if (fields[i].note && strcmp(fields[i].note, key) == 0)
			return true;
	}
	return false;
}

static const char *reason(const json_t *record, const char *why)
{
	const char *text = why && why[0] == '/' ? text_at(record, "missing", why) : why;

	return text ? text : "nothing here tells";
}

/* The field above that stays empty for the same reason; NULL: there is none. */
static const char *same_reason(const char *const *told, size_t i, const char *why)
{
	for (size_t k = 0; k < i; k++)
		if (told[k] && strcmp(told[k], why) == 0)
			return fields[k].title;
	return NULL;
}

/* The fact, then what the user noted; without either the reason, which is told once.
 * @param told  per field: the reason for which it is empty, or NULL; that of i is set */
static void put_field(struct page *p, size_t i, const char **told)
{
	const char *note = note_of(p->record, fields[i].note);
	const char *why = reason(p->record, fields[i].why), *like;
	struct rfl_buf value;

	rfl_buf_init(&value, 0);
	fields[i].put(p->record, &value);
	if (note)
		rfl_buf_printf(&value, "%s%s (noted)", value.len ? "; " : "", note);
	told[i] = value.len == 0 ? why : NULL;
	if (value.len == 0) {
		like = same_reason(told, i, why);
		if (like)
			rfl_buf_printf(&value, "not known: as '%s'", like);
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
	const char *told[RFL_ARRAY_LEN(fields)];
	json_t *note;

	p->record = record;
	rfl_buf_printf(p->out, "%s%s\n\n", p->markdown ? "## " : "", env);
	if (p->markdown)
		rfl_buf_puts(p->out, "| field | value |\n|---|---|\n");
	for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
		put_field(p, i, told);
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
