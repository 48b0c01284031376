/*
 * facts.c - describes this machine and its surroundings as JSON. An unknown value is null;
 * `missing` maps its path to the reason.
 */
#define _GNU_SOURCE /* realpath */
#include "runner/env/record.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "machine/gpu.h"
#include "machine/machine.h"
#include "machine/surroundings.h"
#include "rfl_config.h"

#define BY "not reported by "

/* The first pattern that matches the path applies. */
static const struct {
	const char *path, *why;
} reasons[] = {
	{ "/system/os", BY "/etc/os-release" },
	{ "/system/virtualised", BY "the CPU or the firmware" },
	{ "/system/hypervisor", "not reported by the hypervisor" },
	{ "/system/*", BY "/sys/class/dmi/id" },
	{ "/engines/*/version", BY "the library" },
	{ "/engines/*", "recorded by runs with this engine, if it uses CUDA" },
	{ "/processor/name", BY "the CPU" },
	{ "/processor/vendor", BY "the CPU" },
	{ "/processor/governor", "no frequency governor (usual in virtual machines)" },
	{ "/processor/turbo", BY "intel_pstate or cpufreq" },
	{ "/limits/*", "not limited by a control group" },
	{ "/memory/*", BY "/proc/meminfo" },
	{ "/gpus/*", BY "the driver" },
	{ "/storage/data", "no data directory was given" },
	{ "/storage/*/size_bytes", BY "the file system" },
	{ "/storage/*", BY "the mount table or the device" },
	{ "/network/interfaces/*/driver", BY "the system" },
	{ "/network/*", BY "the driver" },
	{ "/container/*", "no container detected" },
	{ "/cloud/provider", "no cloud detected; use --note provider=..." },
	{ "/cloud/region", "not found in any file; use --note region=..." },
	{ "/cloud/zone", "not found in any file; use --note zone=..." },
	{ "/cloud/instance_type", "not found in any file; use --note instance_type=..." },
	{ "/cloud/source", "no cloud detected" },
	{ "/now/load*", BY "/proc/loadavg" },
	{ "/now/memory*", BY "/proc/meminfo" },
	{ "/now/*", BY "the file system" },
	{ "*", BY "the system" },
};

static void set(json_t *object, const char *key, json_t *take_value)
{
	(void)json_object_set_new(object, key, take_value);
}

/* Add a reason for every null in `value` that has none yet. */
static void explain(json_t *missing, const char *path, json_t *value)
{
	char below[256];
	const char *key;
	json_t *one;
	size_t i = 0;

	if (json_is_null(value) && !json_object_get(missing, path)) {
		while (fnmatch(reasons[i].path, path, 0) != 0)
			i++;
		set(missing, path, json_string(reasons[i].why));
	}
	json_object_foreach(value, key, one)
	{
		snprintf(below, sizeof(below), "%.140s/%.100s", path, key);
		explain(missing, below, one);
	}
	json_array_foreach(value, i, one)
	{
		snprintf(below, sizeof(below), "%.140s/%zu", path, i);
		explain(missing, below, one);
	}
}

/* ---- values ---- */

static json_t *text(const char *value)
{
	json_t *string = value && *value ? json_string(value) : json_null();
	struct rfl_buf mended;

	if (!string) { /* not UTF-8: replace invalid bytes */
		rfl_buf_init(&mended, 0);
		rfl_json_write_string(&mended, value, strlen(value));
		string = json_loads(mended.data, JSON_DECODE_ANY, NULL);
		rfl_buf_fini(&mended);
	}
	return string;
}

/* 0 or less means unknown. */
static json_t *count(int64_t value)
{
	return value > 0 ? json_integer(value) : json_null();
}

static json_t *flag(enum rfl_known value)
{
	return value == RFL_NOT_KNOWN ? json_null() : json_boolean(value == RFL_YES);
}

static int by_index(const void *a, const void *b)
{
	return ((const struct rfl_cpu *)a)->os_index - ((const struct rfl_cpu *)b)->os_index;
}

/* "0-3,8" */
static json_t *affinity_of(const struct rfl_machine *m)
{
	RFL_AUTOFREE struct rfl_cpu *cpus = rfl_alloc_array(m->ncpus, sizeof(*cpus));
	RFL_AUTO(buf) list = { .len = 0 };
	json_t *string;

	if (m->ncpus)
		memcpy(cpus, m->cpus, m->ncpus * sizeof(*cpus));
	qsort(cpus, m->ncpus, sizeof(*cpus), by_index);
	for (size_t i = 0, last; i < m->ncpus; i = last + 1) {
		for (last = i;
		     last + 1 < m->ncpus && cpus[last + 1].os_index == cpus[last].os_index + 1;)
			last++;
		rfl_buf_printf(&list, "%s%d", i ? "," : "", cpus[i].os_index);
		if (last > i)
			rfl_buf_printf(&list, "-%d", cpus[last].os_index);
	}
	string = text(rfl_buf_str(&list));
	return string;
}

/* ---- sections ---- */

static json_t *processor_of(const struct rfl_machine *m, const struct rfl_surroundings *around)
{
	json_t *caches = json_array(), *isa = json_array();

	for (size_t i = 0; i < m->ncaches; i++) {
		const struct rfl_cache *c = &m->caches[i];

		(void)json_array_append_new(caches,
					    json_pack("{s:i, s:I, s:i, s:i}", "level", c->level,
						      "size_bytes", (json_int_t)c->size_bytes,
						      "count", c->count, "sharers", c->sharers));
	}
	for (size_t i = 0; i < RFL_ISA_COUNT; i++)
		if (m->isa >> i & 1)
			(void)json_array_append_new(isa, json_string(rfl_isa_name(i)));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
			 text(m->cpu_name), "vendor", text(m->cpu_vendor), "packages",
			 count(m->packages), "cores", count(m->cores), "hw_threads",
			 count(m->hw_threads), "smt", flag(m->smt), "numa_nodes",
			 count(m->numa_nodes), "governor", text(m->governor), "turbo",
			 flag(around->turbo), "caches", caches, "isa", isa);
}

static json_t *gpus_of(json_t *missing)
{
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTOPTR(gpus) gpus = NULL;
	json_t *list, *ret;

	if (rfl_gpus_new(&gpus, &why) != RFL_OK) {
		set(missing, "/gpus/driver", text(why.msg));
		set(missing, "/gpus/devices", text(why.msg));
		return json_pack("{s:n, s:n}", "driver", "devices");
	}
	list = json_array();
	for (size_t i = 0; i < gpus->n; i++) {
		const struct rfl_gpu *g = &gpus->gpus[i];
		char capability[32] = "";

		if (g->cc_major > 0)
			snprintf(capability, sizeof(capability), "%d.%d", g->cc_major, g->cc_minor);
		(void)json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
					text(g->name), "memory_bytes", count(g->memory_bytes),
					"compute_capability", text(capability), "sm_clock_max_hz",
					rfl_json_real(g->sm_clock_max_hz), "memory_clock_max_hz",
					rfl_json_real(g->memory_clock_max_hz), "power_limit_w",
					rfl_json_real(g->power_limit_w), "ecc", flag(g->ecc),
					"persistence", flag(g->persistence)));
	}
	ret = json_pack("{s:o, s:o}", "driver", text(gpus->driver), "devices", list);
	return ret;
}

static json_t *interfaces_of(const struct rfl_surroundings *around)
{
	json_t *list = json_array();

	for (size_t i = 0; i < around->ninterfaces; i++) {
		const struct rfl_interface *n = &around->interfaces[i];

		(void)json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", text(n->name), "kind",
					text(n->kind), "driver", text(n->driver), "speed_bit_per_s",
					rfl_json_real(n->speed_bit_per_s), "up", flag(n->up)));
	}
	return list;
}

/* Describe the storage of a directory, and add its free bytes to `now`. */
static json_t *storage_of(const char *root, const char *folder, json_t *now, const char *free_key)
{
	char at[PATH_MAX], path[PATH_MAX], rest[PATH_MAX] = "", next[PATH_MAX];
	struct rfl_storage st;

	if (!folder)
		return json_null();
	/* make the path absolute, and resolve links in the part that exists */
	snprintf(at, sizeof(at), "%s", *folder ? folder : ".");
	while (!realpath(at, path)) {
		char *slash = strrchr(at, '/');

		if (strcmp(at, ".") == 0) /* the current directory was removed */
			return json_null();
		snprintf(next, sizeof(next), "/%.2000s%.2000s", slash ? slash + 1 : at, rest);
		snprintf(rest, sizeof(rest), "%s", next);
		if (!slash)
			snprintf(at, sizeof(at), ".");
		else
			slash[slash == at] = '\0';
	}
	if (rest[0]) {
		snprintf(next, sizeof(next), "%.2000s%.2000s", path[1] ? path : "", rest);
		snprintf(path, sizeof(path), "%s", next);
	}
	rfl_storage_of(root, path, &st);
	set(now, free_key, st.free_bytes >= 0 ? json_integer(st.free_bytes) : json_null());
	return json_pack("{s:o, s:o, s:o}", "file_system", text(st.file_system), "device",
			 text(st.device), "size_bytes", count(st.size_bytes));
}

static json_t *engines_of(const struct rfl_env_spec *spec)
{
	json_t *engines = json_object();

	for (size_t i = 0; i < spec->nengines; i++) {
		const struct rfl_env_engine *e = &spec->engines[i];

		set(engines, e->id,
		    json_pack("{s:o, s:o, s:o, s:o}", "version", text(e->version), "cuda_runtime",
			      text(e->cuda_runtime), "cuda_driver", text(e->cuda_driver), "cudnn",
			      text(e->cudnn)));
	}
	return engines;
}

enum rfl_rc rfl_env__facts(const struct rfl_env_spec *spec, json_t **ret, struct rfl_err *err)
{
	json_t *missing, *root, *now;
	RFL_AUTOPTR(surroundings) around = NULL;
	const struct rfl_cloud *cloud;
	RFL_AUTOPTR(machine) m = NULL;
	enum rfl_rc rc;

	if ((rc = rfl_machine_new(&m, err)))
		return rc;
	around = rfl_surroundings_new(spec->root);
	cloud = &around->cloud;
	missing = json_object();
	root = json_object();
	now = json_object();
	if (m->virtualised == RFL_NO)
		set(missing, "/system/hypervisor", text("not a virtual machine"));
	if (around->container && !around->container_image)
		set(missing, "/container/image",
		    text("invisible from inside; use --note container=IMAGE:TAG"));

	set(root, "system",
	    json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "os", text(m->os), "kernel",
		      text(m->kernel), "architecture", text(m->architecture), "virtualised",
		      flag(m->virtualised), "hypervisor", text(m->hypervisor), "wsl",
		      strstr(m->kernel, "icrosoft") != NULL, "vendor", text(around->system_vendor),
		      "product", text(around->system_product)));
	set(root, "program",
	    json_pack("{s:s, s:s}", "version", RFL_VERSION, "compiler", RFL_COMPILER));
	set(root, "engines", engines_of(spec));
	set(root, "processor", processor_of(m, around));
	set(root, "limits",
	    json_pack("{s:o, s:o, s:o, s:o}", "usable_cores", count(m->usable_cores),
		      "usable_hw_threads", count((int64_t)m->ncpus), "cpu_quota",
		      rfl_json_real(m->cpu_quota), "memory_limit_bytes",
		      count(m->memory_limit_bytes)));
	set(root, "memory", json_pack("{s:o}", "bytes", count(m->memory_bytes)));
	set(root, "gpus", gpus_of(missing));
	set(root, "storage", json_object());
	set(json_object_get(root, "storage"), "logs",
	    storage_of(spec->root, spec->log_dir, now, "logs_free_bytes"));
	set(json_object_get(root, "storage"), "data",
	    storage_of(spec->root, spec->data_dir, now, "data_free_bytes"));
	set(root, "network", json_pack("{s:o}", "interfaces", interfaces_of(around)));
	set(root, "container",
	    json_pack("{s:o, s:o}", "kind", text(around->container), "image",
		      text(around->container_image)));
	set(root, "cloud",
	    json_pack("{s:o, s:o, s:o, s:o, s:o}", "provider", text(cloud->provider), "region",
		      text(cloud->region), "zone", text(cloud->zone), "instance_type",
		      text(cloud->instance_type), "source", text(cloud->source)));
	set(now, "affinity", affinity_of(m));
	set(now, "load_1min", rfl_json_real(around->load[0]));
	set(now, "load_5min", rfl_json_real(around->load[1]));
	set(now, "load_15min", rfl_json_real(around->load[2]));
	set(now, "memory_available_bytes", count(m->memory_available_bytes));
	set(root, "now", now);
	explain(missing, "", root);
	set(root, "missing", missing);
	*ret = root;
	return rc;
}
