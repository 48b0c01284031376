/*
 * facts.c - this machine and its surroundings, as JSON. A fact that cannot be found is null, and
 * `missing` has the reason under the fact's path.
 */
#define _GNU_SOURCE /* realpath */
#include "runner/env/record.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "machine/gpu.h"
#include "machine/machine.h"
#include "machine/surroundings.h"
#include "rfl_config.h"

/* A section that is being filled; failures are sticky. */
struct section {
	const char *name;
	json_t *object, *missing;
	bool *failed;
};

static void put(struct section *s, const char *key, json_t *take_value, const char *why)
{
	bool known = !json_is_null(take_value);
	char path[256];

	if (json_object_set_new(s->object, key, take_value) != 0)
		*s->failed = true;
	if (known)
		return;
	snprintf(path, sizeof(path), "/%s/%s", s->name, key);
	if (json_object_set_new(s->missing, path,
				json_string(why ? why : "the system does not say")) != 0)
		*s->failed = true;
}

static void put_text(struct section *s, const char *key, const char *value, const char *why)
{
	struct rfl_buf text;
	json_t *string = NULL;

	if (!value || !*value) {
		put(s, key, json_null(), why);
		return;
	}
	string = json_string(value);
	if (!string) { /* not UTF-8: as the writer of JSON mends it */
		rfl_buf_init(&text, 0);
		rfl_json_write_string(&text, value, strlen(value));
		string = text.failed ? NULL : json_loads(text.data, JSON_DECODE_ANY, NULL);
		rfl_buf_fini(&text);
	}
	put(s, key, string, NULL);
}

static void put_real(struct section *s, const char *key, double value, const char *why)
{
	put(s, key, rfl_json_real(value), why);
}

/* 0 and below: not known. */
static void put_count(struct section *s, const char *key, int64_t value, const char *why)
{
	put(s, key, value > 0 ? json_integer(value) : json_null(), why);
}

static void put_flag(struct section *s, const char *key, enum rfl_known value, const char *why)
{
	put(s, key, value == RFL_NOT_KNOWN ? json_null() : json_boolean(value == RFL_YES), why);
}

/* ---- the machine ---- */

static void put_system(struct section *s, const struct rfl_machine *m,
		       const struct rfl_surroundings *around)
{
	put_text(s, "os", m->os, "/etc/os-release does not say");
	put_text(s, "kernel", m->kernel, NULL);
	put_text(s, "architecture", m->architecture, NULL);
	put_flag(s, "virtualised", m->virtualised, "neither processor nor firmware says");
	put_text(s, "hypervisor", m->hypervisor,
		 m->virtualised == RFL_NO ? "the machine is no virtual one"
					  : "it does not name itself");
	put_flag(s, "wsl", strstr(m->kernel, "icrosoft") ? RFL_YES : RFL_NO, NULL);
	put_text(s, "vendor", around->system_vendor, "/sys/class/dmi/id does not say");
	put_text(s, "product", around->system_product, "/sys/class/dmi/id does not say");
}

static json_t *caches_of(const struct rfl_machine *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->ncaches; i++) {
		const struct rfl_cache *c = &m->caches[i];
		json_t *row = json_pack("{s:i, s:I, s:i, s:i}", "level", c->level, "size_bytes",
					(json_int_t)c->size_bytes, "count", c->count, "sharers",
					c->sharers);

		if (json_array_append_new(list, row) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *isa_of(const struct rfl_machine *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < RFL_ISA_COUNT; i++) {
		if (m->isa >> i & 1)
			json_array_append_new(list, json_string(rfl_isa_name(i)));
	}
	return list;
}

static void put_processor(struct section *s, const struct rfl_machine *m,
			  const struct rfl_surroundings *around)
{
	put_text(s, "name", m->cpu_name, "the processor does not name itself");
	put_text(s, "vendor", m->cpu_vendor, "the processor does not say");
	put_count(s, "packages", m->packages, NULL);
	put_count(s, "cores", m->cores, NULL);
	put_count(s, "hw_threads", m->hw_threads, NULL);
	put_flag(s, "smt", m->smt, "the system does not say which threads share a core");
	put_count(s, "numa_nodes", m->numa_nodes, NULL);
	put_text(s, "governor", m->governor,
		 "no frequency governor is shown (usual in virtual machines)");
	put_flag(s, "turbo", around->turbo, "neither intel_pstate nor cpufreq says");
	put(s, "caches", caches_of(m), NULL);
	put(s, "isa", isa_of(m), NULL);
}

static void put_limits(struct section *s, const struct rfl_machine *m)
{
	put_count(s, "usable_cores", m->usable_cores, NULL);
	put_count(s, "usable_hw_threads", (int64_t)m->ncpus, NULL);
	put_real(s, "cpu_quota", m->cpu_quota, "no control group limits it");
	put_count(s, "memory_limit_bytes", m->memory_limit_bytes, "no control group limits it");
}

static int by_index(const void *a, const void *b)
{
	return ((const struct rfl_cpu *)a)->os_index - ((const struct rfl_cpu *)b)->os_index;
}

/* "0-3,8" */
static void put_affinity(struct section *s, const struct rfl_machine *m)
{
	struct rfl_cpu *cpus = m->ncpus ? malloc(m->ncpus * sizeof(*cpus)) : NULL;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	if (cpus) {
		memcpy(cpus, m->cpus, m->ncpus * sizeof(*cpus));
		qsort(cpus, m->ncpus, sizeof(*cpus), by_index);
	}
	for (size_t i = 0, last; cpus && i < m->ncpus; i = last + 1) {
		for (last = i;
		     last + 1 < m->ncpus && cpus[last + 1].os_index == cpus[last].os_index + 1;)
			last++;
		rfl_buf_printf(&text, "%s%d", i ? "," : "", cpus[i].os_index);
		if (last > i)
			rfl_buf_printf(&text, "-%d", cpus[last].os_index);
	}
	put_text(s, "affinity", rfl_buf_str(&text), "out of memory");
	rfl_buf_fini(&text);
	free(cpus);
}

/* ---- GPUs ---- */

static void put_gpu(struct section *s, const struct rfl_gpu *g)
{
	static const char why[] = "the driver does not say";
	char capability[32] = "";

	if (g->cc_major > 0)
		snprintf(capability, sizeof(capability), "%d.%d", g->cc_major, g->cc_minor);
	put_text(s, "name", g->name, why);
	put_count(s, "memory_bytes", g->memory_bytes, why);
	put_text(s, "compute_capability", capability, why);
	put_real(s, "sm_clock_max_hz", g->sm_clock_max_hz, why);
	put_real(s, "memory_clock_max_hz", g->memory_clock_max_hz, why);
	put_real(s, "power_limit_w", g->power_limit_w, why);
	put_flag(s, "ecc", g->ecc, why);
	put_flag(s, "persistence", g->persistence, why);
}

static void put_gpus(struct section *s)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_gpus *g = NULL;
	json_t *list;

	if (rfl_gpus_new(&g, &why) != RFL_OK) {
		put_text(s, "driver", NULL, why.msg);
		put(s, "devices", json_null(), why.msg);
		return;
	}
	put_text(s, "driver", g->driver, "the driver does not say");
	list = json_array();
	for (size_t i = 0; i < g->n; i++) {
		char name[64];
		struct section one = { name, json_object(), s->missing, s->failed };

		snprintf(name, sizeof(name), "gpus/devices/%zu", i);
		put_gpu(&one, &g->gpus[i]);
		if (json_array_append_new(list, one.object) != 0)
			*s->failed = true;
	}
	put(s, "devices", list, NULL);
	rfl_gpus_free(g);
}

/* ---- storage, network, container, cloud ---- */

/* The folder without links, as far as it exists, and absolute. */
static void full_path(const char *folder, char out[PATH_MAX])
{
	char at[PATH_MAX], rest[PATH_MAX] = "", next[PATH_MAX];

	snprintf(at, sizeof(at), "%s", *folder ? folder : ".");
	while (!realpath(at, out)) {
		char *slash = strrchr(at, '/');

		snprintf(next, sizeof(next), "/%.2000s%.2000s", slash ? slash + 1 : at, rest);
		snprintf(rest, sizeof(rest), "%s", next);
		if (!slash)
			snprintf(at, sizeof(at), ".");
		else
			slash[slash == at] = '\0';
	}
	if (rest[0]) {
		snprintf(next, sizeof(next), "%.2000s%.2000s", out[1] ? out : "", rest);
		snprintf(out, PATH_MAX, "%s", next);
	}
}

static void put_storage(struct section *s, const char *key, const char *root, const char *folder,
			struct section *now)
{
	static const char why[] = "neither the mounts nor the device say";
	char path[PATH_MAX], name[64], free_key[64];
	struct section one = { name, NULL, s->missing, s->failed };
	struct rfl_storage st;

	if (!folder) {
		put(s, key, json_null(), "no folder of images was named");
		return;
	}
	full_path(folder, path);
	rfl_storage_of(root, path, &st);
	snprintf(name, sizeof(name), "storage/%s", key);
	one.object = json_object();
	put_text(&one, "file_system", st.file_system, why);
	put_text(&one, "device", st.device, why);
	put_count(&one, "size_bytes", st.size_bytes, "the file system does not say");
	put(s, key, one.object, NULL);
	snprintf(free_key, sizeof(free_key), "%s_free_bytes", key);
	put(now, free_key, st.free_bytes >= 0 ? json_integer(st.free_bytes) : json_null(),
	    "the file system does not say");
}

static json_t *interfaces_of(struct section *s, const struct rfl_surroundings *around)
{
	json_t *list = json_array();

	for (size_t i = 0; i < around->ninterfaces; i++) {
		const struct rfl_interface *n = &around->interfaces[i];
		char name[64];
		struct section one = { name, json_object(), s->missing, s->failed };

		snprintf(name, sizeof(name), "network/interfaces/%zu", i);
		put_text(&one, "name", n->name, NULL);
		put_text(&one, "kind", n->kind, NULL);
		put_text(&one, "driver", n->driver, "the system does not say");
		put_real(&one, "speed_bit_per_s", n->speed_bit_per_s, "the driver does not say");
		put_flag(&one, "up", n->up, "the driver does not say");
		if (json_array_append_new(list, one.object) != 0)
			*s->failed = true;
	}
	return list;
}

static void put_container(struct section *s, const struct rfl_surroundings *around)
{
	put_text(s, "kind", around->container, "no container is seen");
	put_text(s, "image", around->container_image,
		 around->container ? "not visible inside it; --note container=IMAGE:TAG"
				   : "no container is seen");
}

static void put_cloud(struct section *s, const struct rfl_cloud *c)
{
	put_text(s, "provider", c->provider, "no cloud is seen; --note provider=...");
	put_text(s, "region", c->region, "no file here says; --note region=...");
	put_text(s, "zone", c->zone, "no file here says; --note zone=...");
	put_text(s, "instance_type", c->instance_type,
		 "no file here says; --note instance_type=...");
	put_text(s, "source", c->source, "no cloud is seen");
}

/* ---- engines ---- */

static void put_engines(struct section *s, const struct rfl_env_spec *spec)
{
	static const char why[] = "a run with this engine says, where it has one";

	for (size_t i = 0; i < spec->nengines; i++) {
		const struct rfl_env_engine *e = &spec->engines[i];
		char name[128];
		struct section one = { name, json_object(), s->missing, s->failed };

		snprintf(name, sizeof(name), "engines/%.100s", e->id);
		put_text(&one, "version", e->version, "the library does not say");
		put_text(&one, "cuda_runtime", e->cuda_runtime, why);
		put_text(&one, "cuda_driver", e->cuda_driver, why);
		put_text(&one, "cudnn", e->cudnn, why);
		put(s, e->id, one.object, NULL);
	}
}

/* ---- together ---- */

static void begin(struct section *s, json_t *root, const char *name, json_t *take_object)
{
	s->name = name;
	s->object = take_object;
	if (json_object_set_new(root, name, take_object) != 0)
		*s->failed = true;
}

static void fill(const struct rfl_env_spec *spec, const struct rfl_machine *m,
		 const struct rfl_surroundings *around, json_t *root, bool *failed)
{
	struct section s = { .missing = json_object(), .failed = failed };
	struct section now = { "now", json_object(), s.missing, failed };

	begin(&s, root, "system", json_object());
	put_system(&s, m, around);
	begin(&s, root, "program", json_object());
	put_text(&s, "version", RFL_VERSION, NULL);
	put_text(&s, "compiler", RFL_COMPILER, NULL);
	begin(&s, root, "engines", json_object());
	put_engines(&s, spec);
	begin(&s, root, "processor", json_object());
	put_processor(&s, m, around);
	begin(&s, root, "limits", json_object());
	put_limits(&s, m);
	begin(&s, root, "memory", json_object());
	put_count(&s, "bytes", m->memory_bytes, "/proc/meminfo does not say");
	begin(&s, root, "gpus", json_object());
	put_gpus(&s);
	begin(&s, root, "storage", json_object());
	put_storage(&s, "logs", spec->root, spec->log_dir, &now);
	put_storage(&s, "data", spec->root, spec->data_dir, &now);
	begin(&s, root, "network", json_object());
	put(&s, "interfaces", interfaces_of(&s, around), NULL);
	begin(&s, root, "container", json_object());
	put_container(&s, around);
	begin(&s, root, "cloud", json_object());
	put_cloud(&s, &around->cloud);
	begin(&s, root, "now", now.object);
	put_affinity(&s, m);
	put_real(&s, "load_1min", around->load[0], "/proc/loadavg does not say");
	put_real(&s, "load_5min", around->load[1], "/proc/loadavg does not say");
	put_real(&s, "load_15min", around->load[2], "/proc/loadavg does not say");
	put_count(&s, "memory_available_bytes", m->memory_available_bytes,
		  "/proc/meminfo does not say");
	begin(&s, root, "missing", s.missing);
}

enum rfl_rc rfl_env__facts(const struct rfl_env_spec *spec, json_t **ret, struct rfl_err *err)
{
	struct rfl_surroundings *around = NULL;
	struct rfl_machine *m = NULL;
	json_t *root = NULL;
	bool failed = false;
	enum rfl_rc rc = rfl_machine_new(&m, err);

	if (rc == RFL_OK)
		rc = rfl_surroundings_new(spec->root, &around, err);
	if (rc)
		goto done;
	root = json_object();
	if (root)
		fill(spec, m, around, root, &failed);
	if (!root || failed) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "environment: out of memory");
		goto done;
	}
	*ret = root;
	root = NULL;
done:
	json_decref(root);
	rfl_surroundings_free(around);
	rfl_machine_free(m);
	return rc;
}
