/* inventory.c - gather the rows of every registry, of this machine and of its devices. */
#include "cli/inventory.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "base/proc.h"
#include "cli/inputs.h"
#include "complexity/count.h"
#include "complexity/zoo.h"
#include "machine/gpu.h"
#include "machine/isa.h"
#include "machine/machine.h"
#include "peaks/doubts.h"
#include "peaks/gpu.h"
#include "peaks/kernels.h"
#include "plot/chart.h"
#include "plot/scene.h"
#include "plot/surface.h"
#include "profile/import/importer.h"
#include "profile/source.h"
#include "rfl_config.h"
#include "runner/engine.h"
#include "runner/run.h"

#define LOW_MEMORY    ((int64_t)1 << 30) /* bytes; with less, training is likely to be killed */
#define PARANOID_OWN  2 /* at this level or below, a process may count its own events */
#define PARANOID_NONE 99
#define TIMEOUT_S     120.0 /* to open an engine */

const char *const rfl_item_state_names[] = { "ok", "warn", "no" };

/* Add a row. Without a reason it is OK. */
static struct rfl_item *add(struct rfl_inventory *inv, const char *registry, const char *name,
			    const char *summary, const char *detail, const char *reason,
			    const char *fix)
{
	struct rfl_item *item = rfl_arena_append(inv->arena, &inv->items, &inv->n);

	*item = (struct rfl_item){ .registry = registry,
				   .name = name,
				   .state = reason ? RFL_ITEM_NO : RFL_ITEM_OK,
				   .summary = summary,
				   .detail = detail,
				   .reason = reason,
				   .fix = reason ? fix : NULL,
				   .params = RFL_INT_UNKNOWN,
				   .forward_flops = RFL_INT_UNKNOWN };
	return item;
}

/* Add a property of the machine. @param slow  why it is slow or works only in part; NULL: it is
 * fine */
static void fact(struct rfl_inventory *inv, const char *name, const char *detail, const char *slow,
		 const char *fix)
{
	struct rfl_item *item = add(inv, "machine", name, NULL, detail, slow, fix);

	if (slow)
		item->state = RFL_ITEM_WARN;
}

#define TEXT(inv, ...) rfl_arena_printf((inv)->arena, __VA_ARGS__)

/* The reason why an item was not built in or its probe failed; NULL: it works. */
static const char *reason_of(struct rfl_inventory *inv, const char *missing,
			     const struct rfl_err *probe)
{
	if (missing || probe->rc == RFL_OK)
		return missing;
	return rfl_arena_strdup(inv->arena,
				probe->msg[0] != '\0' ? probe->msg : rfl_rc_text(probe->rc));
}

static void collect_models(struct rfl_inventory *inv)
{
	const struct rfl_count_options one = { .batch = 1 };
	const struct rfl_zoo_model *m;

	for (size_t i = 0; !inv->rc && (m = rfl_zoo_at(i)); i++) {
		const long long channels = m->channels ? m->channels : 3, size = m->image_size,
				classes = m->classes;
		const char *detail;
		struct rfl_item *item;
		struct rfl_count *c = NULL;
		struct rfl_net *net = NULL;

		/* "3x224x224, 1000 classes", "128 tokens, vocabulary 10000; also S" */
		detail = m->context_length ? TEXT(inv, "%lld tokens, vocabulary %lld",
						  (long long)m->context_length, classes)
					   : TEXT(inv, "%lldx%lldx%lld, %lld classes", channels,
						  size, size, classes);
		for (const char *const *alias = m->aliases; alias && *alias; alias++)
			detail = TEXT(inv, "%s%s %s", detail, alias == m->aliases ? "; also" : ",",
				      *alias);
		item = add(inv, "models", m->name, m->summary, detail, NULL, NULL);
		if (!(inv->rc = rfl_zoo_build(m->name, NULL, &net, inv->err)) &&
		    !(inv->rc = rfl_count_net(net, &one, &c, inv->err))) {
			item->params = c->params;
			item->forward_flops = 2 * c->total.macs[RFL_PASS_FORWARD];
		}
		rfl_count_free(c);
		rfl_net_free(net);
	}
}

/* Describe how a child ended, with the last line of its standard error, usually a message of the
 * dynamic loader. */
static const char *what_happened(struct rfl_arena *arena, const struct rfl_proc_result *r)
{
	const char *text = rfl_buf_str(&r->err), *words;
	size_t end = strlen(text), begin;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n'; begin--)
		;
	words = rfl_arena_printf(arena, "%s%.*s", end > begin ? "; last message: " : "",
				 (int)(end - begin), text + begin);
	if (r->timed_out)
		return rfl_arena_printf(arena, "did not respond within %.0f s%s", TIMEOUT_S, words);
	if (!r->exited)
		return rfl_arena_printf(arena, "crashed when opened (signal %d)%s", r->signal,
					words);
	return rfl_arena_printf(arena, "could not be opened (exit code %d)%s", r->exit_code, words);
}

/* The value of a line "probe <key> <value>" in the output of a child; NULL: none. */
static const char *field_of(struct rfl_arena *arena, const char *output, const char *key)
{
	const char *start = rfl_arena_printf(arena, "probe\t%s\t", key);
	const char *at = strstr(output, start);

	if (!at)
		return NULL;
	at += strlen(start);
	return rfl_arena_printf(arena, "%.*s", (int)strcspn(at, "\n"), at);
}

enum rfl_rc rfl_item_probe(struct rfl_cli *cli, struct rfl_arena *arena, struct rfl_item *item,
			   struct rfl_err *err)
{
	const char *const argv[] = { cli->self, "-q", "probe", item->name, NULL };
	const struct rfl_proc_spec spec = {
		.argv = argv,
		.capture_stdout = true,
		.capture_stderr = true,
		.timeout_s = TIMEOUT_S,
	};
	const uint64_t isa = rfl_isa_detect();
	const char *output, *blas, *no_gpu, *libraries, *core = NULL;
	struct rfl_span kernels;
	RFL_AUTO(proc_result) result = { .started = false };
	enum rfl_rc rc = rfl_proc_run(&spec, &result, err);

	if (rc)
		return rc;
	output = rfl_buf_str(&result.out);
	item->devices = field_of(arena, output, "devices");
	item->version = field_of(arena, output, "library");
	item->reason = field_of(arena, output, "reason");
	blas = field_of(arena, output, "blas");
	no_gpu = field_of(arena, output, "no-gpu");
	libraries = field_of(arena, output, "libraries");
	if (!result.exited || result.exit_code != 0 || (!item->devices && !item->reason))
		item->reason = what_happened(arena, &result);
	if (item->reason) {
		item->state = RFL_ITEM_NO;
		if (strstr(item->name, "-cudnn"))
			item->fix = "only needed to train on an NVIDIA GPU without PyTorch";
		return RFL_OK;
	}
	item->detail = rfl_arena_printf(arena, "%s; library %s%s%s%s%s", item->devices,
					item->version ? item->version : "version unknown",
					blas ? "; BLAS " : "", blas ? blas : "",
					no_gpu ? "; no GPU: " : "", no_gpu ? no_gpu : "");
	/* the reference BLAS is correct, but many times slower than others */
	if (blas && strstr(blas, "/blas/libblas")) {
		item->state = RFL_ITEM_WARN;
		item->reason = "the reference BLAS is slow";
		item->fix = "install libopenblas0-pthread";
	}
	if (libraries)
		core = rfl_peaks_openblas_core(libraries, isa & RFL_ISA_BIT(AVX2),
					       isa & RFL_ISA_BIT(AVX512F), &kernels);
	if (core) {
		item->state = RFL_ITEM_WARN;
		item->reason =
			rfl_arena_printf(arena, "OpenBLAS uses its kernels for %.*s, an older CPU",
					 RFL_SPAN_ARG(kernels));
		item->fix = rfl_arena_printf(arena, "set OPENBLAS_CORETYPE=%s in the environment",
					     core);
	}
	return RFL_OK;
}

enum rfl_rc rfl_cli_auto_device(struct rfl_cli *cli, const char *engine, const char **ret,
				struct rfl_err *err)
{
	static const enum rfl_device by_speed[] = { RFL_DEVICE_CUDA, RFL_DEVICE_MPS,
						    RFL_DEVICE_CPU };
	struct rfl_item item = { .name = engine };
	enum rfl_rc rc = rfl_item_probe(cli, cli->arena, &item, err);

	*ret = item.devices ? NULL : rfl_run_likely_device();
	for (size_t i = 0; i < RFL_ARRAY_LEN(by_speed) && !*ret; i++)
		if (strstr(item.devices, rfl_device_names[by_speed[i]]))
			*ret = rfl_device_names[by_speed[i]];
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "auto selects %s; %s", *ret,
			rfl_item_finding(&item, cli->arena));
	return rc;
}

static void collect_engines(struct rfl_inventory *inv)
{
	RFL_AUTOPTR(engine_list) list = NULL;
	const struct rfl_engine_row *row;

	inv->rc = rfl_engine_list_new(inv->cli->plugin_dirs, &list, inv->err);
	for (size_t i = 0; !inv->rc && (row = rfl_engine_list_at(list, i)); i++) {
		/* copied, because the rows are freed with their list */
		struct rfl_item *item = add(
			inv, "engines", rfl_arena_strdup(inv->arena, row->id ? row->id : row->name),
			rfl_arena_strdup(inv->arena, row->summary ? row->summary : ""), NULL,
			rfl_arena_strdup(inv->arena, row->missing), NULL);

		item->path = rfl_arena_strdup(inv->arena, row->path);
		if (!row->missing)
			inv->rc = rfl_item_probe(inv->cli, inv->arena, item, inv->err);
	}
}

static void collect_benchmarks(struct rfl_inventory *inv)
{
	struct rfl_err no_gpu = RFL_ERR_INIT;
	const struct rfl_gpu_kernel *gpu;
	const struct rfl_peak_kernel *k;
	const char *reason;
	char name[256];

	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (!k->missing)
			(void)!rfl_peak_kernel_probe(k, &why);
		add(inv, "benchmarks", k->name, k->summary, NULL, reason_of(inv, k->missing, &why),
		    NULL);
	}
	(void)!rfl_gpu_name(name, sizeof(name), &no_gpu);
	reason = reason_of(inv, NULL, &no_gpu);
	for (size_t i = 0; (gpu = rfl_gpu_kernel_at(i)); i++)
		add(inv, "benchmarks", gpu->name, TEXT(inv, "%s: %s", gpu->key, gpu->summary), NULL,
		    reason, NULL);
}

void rfl_item_perf(struct rfl_arena *arena, struct rfl_item *item, int64_t *level)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_perf_status s;

	*level = RFL_INT_UNKNOWN;
	item->fix = "not required: FLOPs and bytes are computed from the network";
	item->state = RFL_ITEM_NO;
	if (rfl_perf_look(&s, &why) != RFL_OK) {
		item->reason = rfl_arena_strdup(arena, why.msg);
		return;
	}
	if (s.paranoid != PARANOID_NONE)
		*level = s.paranoid;
	item->detail = rfl_arena_printf(arena,
					"%s: %zu kernel events, %zu hardware events (%zu for "
					"FLOPs, %zu for memory controllers)",
					s.processor, s.software, s.hardware, s.flops, s.dram);
	item->state = RFL_ITEM_WARN;
	if (!s.hardware) {
		item->reason = rfl_arena_strdup(arena, s.no_hardware);
	} else if (!s.flops || !s.dram) {
		item->reason = rfl_arena_printf(
			arena, "%s%s%s%s%s", s.flops ? "" : "no FLOPs: ", s.flops ? "" : s.no_flops,
			s.flops || s.dram ? "" : "; ",
			s.dram ? "" : "no DRAM bytes: ", s.dram ? "" : s.no_dram);
	} else {
		item->state = RFL_ITEM_OK;
		item->fix = NULL;
	}
}

/* The counters, and the permission to read them. */
static void collect_sources(struct rfl_inventory *inv)
{
	static const char *const may_count[] = { "whole CPUs", "their own processes",
						 "their own processes in user mode", "nothing" };
	const struct rfl_source_request request = { .sets = RFL_SET_CORE,
						    .precision = "fp32",
						    .places = rfl_cli_places(inv->cli) };
	const struct rfl_source_ops *source;
	int64_t level = RFL_INT_UNKNOWN;

	for (size_t i = 0; (source = rfl_source_at(i)); i++) {
		struct rfl_err why = RFL_ERR_INIT;
		struct rfl_item *item;

		if (strcmp(source->name, "perf") == 0) {
			item = add(inv, "sources", source->name, source->summary, NULL, NULL, NULL);
			rfl_item_perf(inv->arena, item, &level);
			continue;
		}
		(void)!source->probe(&request, &why);
		add(inv, "sources", source->name, source->summary, NULL, reason_of(inv, NULL, &why),
		    "only needed to count on an NVIDIA GPU; to check: roofline counters check");
	}
	if (level != RFL_INT_UNKNOWN) {
		const bool forbids = level > PARANOID_OWN;

		add(inv, "sources", "paranoid",
		    "permission of users other than root to count events",
		    TEXT(inv,
			 "kernel.perf_event_paranoid is %lld: users other than root may count %s",
			 (long long)level,
			 may_count[level < 0 ? 0
				   : forbids ? 3
					     : level]),
		    forbids ? "only root may count events" : NULL,
		    "run: sudo sysctl kernel.perf_event_paranoid=2");
	}
}

static void collect_importers(struct rfl_inventory *inv)
{
	const struct rfl_importer *importer;

	for (size_t i = 0; (importer = rfl_importer_at(i)); i++)
		add(inv, "importers", importer->name, importer->summary, NULL, NULL, NULL);
}

static void collect_surfaces(struct rfl_inventory *inv)
{
	const struct rfl_surface_spec spec = { .font_dir =
						       TEXT(inv, "%s/fonts", inv->cli->data_dir) };
	const struct rfl_surface_ops *s;

	for (size_t i = 0; (s = rfl_surface_at(i)); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (!s->missing && s->probe)
			(void)!s->probe(&spec, &why);
		add(inv, "surfaces", s->name, s->summary, NULL, reason_of(inv, s->missing, &why),
		    NULL)
			->needed = strcmp(s->name, "png") == 0;
	}
}

static void collect_libraries(struct rfl_inventory *inv)
{
#define FEATURE_ROW(name, built_in, purpose, why)                                                  \
	add(inv, "libraries", name, purpose, (built_in) ? (why) : NULL, (built_in) ? NULL : (why), \
	    NULL);
	RFL_FEATURES(FEATURE_ROW)
}

static void collect_machine(struct rfl_inventory *inv)
{
	const bool debug = strcmp(RFL_BUILD_TYPE, "Debug") == 0;
	const char *caches = "", *vectors = "", *missing = NULL;
	RFL_AUTOPTR(machine) m = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	char folder[4096], size[RFL_NUM_MAX], available[RFL_NUM_MAX];
	bool low;

	fact(inv, "program",
	     TEXT(inv, "roofline %s (%s, %s), %s", RFL_VERSION, RFL_COMPILER, RFL_BUILD_TYPE,
		  inv->cli->self ? inv->cli->self : "unknown path"),
	     debug ? "debug builds are slow" : NULL, "build with -DCMAKE_BUILD_TYPE=Release");
	for (int i = 0; i < RFL_FACE_COUNT && !missing; i++) {
		const char *path = TEXT(inv, "%s/fonts/%s", inv->cli->data_dir, rfl_face_files[i]);

		missing = access(path, R_OK) == 0 ? NULL : path;
	}
	add(inv, "machine", "fonts", NULL,
	    missing ? missing : TEXT(inv, "%s/fonts", inv->cli->data_dir),
	    missing ? "not found" : NULL, "install fonts-liberation, then build again");
	if (!getcwd(folder, sizeof(folder)))
		(void)snprintf(folder, sizeof(folder), "%s", strerror(errno));
	fact(inv, "directory", TEXT(inv, "the current one is %s", folder),
	     access(".", W_OK) == 0 ? NULL : "not writable",
	     "change to another directory, or write output files elsewhere");
	if (rfl_machine_new(&m, &why) != RFL_OK) {
		add(inv, "machine", "system", NULL, NULL, reason_of(inv, NULL, &why),
		    "mount /sys and /proc");
		return;
	}
	fact(inv, "system",
	     TEXT(inv, "%s, %s, %s%s%s; topology by %s", m->os ? m->os : "(no name)", m->kernel,
		  m->architecture, m->hypervisor ? ", under " : "",
		  m->hypervisor ? m->hypervisor : "", m->topology_source),
	     NULL, NULL);
	for (size_t i = 0; i < m->ncaches; i++)
		caches = TEXT(inv, "%s, L%d %s", caches, m->caches[i].level,
			      rfl_num_bytes((double)m->caches[i].size_bytes, size, sizeof(size)));
	fact(inv, "cpu",
	     TEXT(inv, "%s: %d of %d cores usable, %zu threads%s",
		  m->cpu_name ? m->cpu_name : "(no name)", m->usable_cores, m->cores, m->ncpus,
		  caches),
	     NULL, NULL);
	if (!isnan(m->cpu_quota) && m->cpu_quota < m->usable_cores)
		fact(inv, "quota", NULL,
		     TEXT(inv, "the control group limits this process to %.3g CPUs", m->cpu_quota),
		     "raise the CPU limit of the container; otherwise you measure a smaller "
		     "machine");
	if (m->governor && strcmp(m->governor, "performance") != 0)
		fact(inv, "governor", NULL,
		     TEXT(inv,
			  "the frequency governor is '%s', so clock rates and results may vary",
			  m->governor),
		     "run: cpupower frequency-set -g performance");
	for (size_t i = 0; rfl_isa_name(i); i++)
		if (m->isa >> i & 1)
			vectors =
				TEXT(inv, "%s%s%s", vectors, *vectors ? " " : "", rfl_isa_name(i));
	fact(inv, "vectors", *vectors ? vectors : "no known vector instructions", NULL, NULL);
	low = m->memory_available_bytes > 0 && m->memory_available_bytes < LOW_MEMORY;
	fact(inv, "memory",
	     m->memory_bytes > 0 ? TEXT(inv, "%s, %s available",
					rfl_num_bytes((double)m->memory_bytes, size, sizeof(size)),
					rfl_num_bytes((double)m->memory_available_bytes, available,
						      sizeof(available)))
				 : "size not reported by the system",
	     low ? "training may be killed for lack of memory" : NULL,
	     "free memory, or use small batches");
}

static void collect_devices(struct rfl_inventory *inv)
{
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTOPTR(gpus) g = NULL;

	/* the message has a reason for each name of the library; keep only the first */
	if (rfl_gpus_new(&g, &why) != RFL_OK)
		add(inv, "devices", "gpu", NULL, NULL,
		    TEXT(inv, "%.*s", (int)strcspn(why.msg, ";"), why.msg),
		    "not required: training runs on the CPU");
	for (size_t i = 0; g && i < g->n; i++)
		add(inv, "devices", "gpu", NULL,
		    TEXT(inv, "%s, driver %s", g->gpus[i].name, g->driver), NULL, NULL);
}

/* clang-format off */
#define REGISTRIES(X) \
	X(machine) X(devices) X(models) X(engines) X(benchmarks) X(sources) X(importers) \
	X(surfaces) X(libraries)
#define NAME(name) #name,
#define ROW(name)  { #name, collect_##name },
/* clang-format on */

const char *const rfl_registry_names[] = { REGISTRIES(NAME) NULL };

static const struct {
	const char *name;
	void (*collect)(struct rfl_inventory *inv);
} registries[] = { REGISTRIES(ROW) };

enum rfl_rc rfl_inventory_new(struct rfl_cli *cli, const char *const *names, size_t nnames,
			      struct rfl_inventory *inv, struct rfl_err *err)
{
	*inv = (struct rfl_inventory){ .arena = cli->arena, .cli = cli, .err = err };
	for (size_t i = 0; i < RFL_ARRAY_LEN(registries) && !inv->rc; i++) {
		bool wanted = nnames == 0;

		for (size_t k = 0; k < nnames; k++)
			wanted |= strcmp(registries[i].name, names[k]) == 0;
		if (wanted)
			registries[i].collect(inv);
	}
	return inv->rc;
}

void rfl_item_put_state(struct rfl_table *t, const void *item)
{
	rfl_table_text(t, rfl_item_state_names[((const struct rfl_item *)item)->state]);
}

int rfl_items_width(const struct rfl_item *items, size_t n, const char *registry)
{
	size_t width = 0;

	for (size_t i = 0; i < n; i++)
		if ((!registry || strcmp(items[i].registry, registry) == 0) &&
		    strlen(items[i].name) > width)
			width = strlen(items[i].name);
	return (int)width;
}

const char *rfl_item_finding(const struct rfl_item *item, struct rfl_arena *arena)
{
	if (!item->detail || !item->reason)
		return item->detail ? item->detail : item->reason;
	return rfl_arena_printf(arena, "%s; %s", item->detail, item->reason);
}

/* ---- the child process that opens an engine ---- */

struct probe_args {
	struct rfl_opt_list id;
};

static void print_field(FILE *out, const char *key, const char *value)
{
	fprintf(out, "probe\t%s\t", key);
	for (; *value != '\0'; value++)
		fputc(*value == '\n' ? ' ' : *value, out);
	fputc('\n', out);
}

/* Strip the device and the plugin from a message, because the row contains both. */
static const char *after_id(const char *message, const char *id)
{
	const char *at = strstr(message, id);

	return at && strncmp(at + strlen(id), ": ", 2) == 0 ? at + strlen(id) + 2 : message;
}

/* torch-2.11-cu130, planned-9-cudnn */
static bool for_gpus(const char *id)
{
	return strstr(id, "-cu") != NULL;
}

static enum rfl_rc run_probe(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const char *id = ((const struct probe_args *)args)->id.items[0];
	RFL_AUTOPTR(engine_list) list = NULL;
	const struct rfl_engine_ops *opened = NULL;
	const char *want;
	struct rfl_err why[RFL_DEVICE_MPS + 1] = { RFL_ERR_INIT }; /* one per device */
	RFL_AUTO(buf) devices = { .len = 0 };
	char line[4096], *path;
	FILE *maps;
	enum rfl_rc rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);

	if (rc != RFL_OK)
		return rc;
	want = rfl_engine_on_any(list, id);
	for (int d = 0; rfl_device_names[d]; d++) {
		const struct rfl_engine_ops *ops = NULL;

		if (rfl_engine_load(list, want, (enum rfl_device)d, &ops, &why[d]) != RFL_OK)
			continue;
		opened = ops;
		rfl_buf_printf(&devices, "%s%s", devices.len > 0 ? ", " : "", rfl_device_names[d]);
	}
	if (opened)
		print_field(cli->out, "library", opened->library_version());
	else /* of a plugin for GPUs, or the CPU, which every machine has */
		print_field(cli->out, "reason",
			    after_id(why[for_gpus(id) ? RFL_DEVICE_CUDA : RFL_DEVICE_CPU].msg, id));

	/* Find the BLAS that was loaded with the plugin: doctor warns about the slow reference
	 * BLAS. */
	maps = opened ? fopen("/proc/self/maps", "r") : NULL;
	while (maps && fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (!path || (!strstr(path, "libblas.so") && !strstr(path, "openblas") &&
			      !strstr(path, "libmkl_core")))
			continue;
		path[strcspn(path, "\n")] = '\0';
		print_field(cli->out, "blas", path);
		break;
	}
	if (maps)
		(void)fclose(maps); /* read-only */

	rfl_run_libraries(line, sizeof(line));
	if (opened && *line)
		print_field(cli->out, "libraries", line);
	/* report why a plugin built for GPUs cannot use one */
	if (opened && why[RFL_DEVICE_CUDA].rc != RFL_OK && for_gpus(id))
		print_field(cli->out, "no-gpu", after_id(why[RFL_DEVICE_CUDA].msg, id));
	if (opened)
		print_field(cli->out, "devices", rfl_buf_str(&devices));
	return RFL_OK;
}

const struct rfl_cmd rfl_cmd_probe = {
	.name = "probe",
	.summary = "open an engine and report its devices (for 'list' and 'doctor')",
	.operands = "ENGINE",
	.args_size = sizeof(struct probe_args),
	.hidden = true,
	.run = run_probe,
};
