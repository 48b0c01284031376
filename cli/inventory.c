/* inventory.c - the items of every registry with their status. */
#include "cli/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "cli/inputs.h"
#include "complexity/count.h"
#include "complexity/zoo.h"
#include "peaks/gpu.h"
#include "peaks/kernels.h"
#include "plot/chart.h"
#include "plot/surface.h"
#include "profile/import/importer.h"
#include "profile/source.h"
#include "rfl_config.h"
#include "runner/engine.h"

static void add(struct rfl_inventory *inv, struct rfl_item item)
{
	item.ok = !item.reason;
	if (!item.params)
		item.params = item.forward_flops = RFL_INT_UNKNOWN;
	inv->failed = inv->failed || rfl_grow(&inv->items, &inv->cap, inv->n + 1, SIZE_MAX, NULL);
	if (!inv->failed)
		inv->items[inv->n++] = item;
}

/* The text, or "" if it is NULL, which means out of memory. */
static const char *keep(struct rfl_inventory *inv, const char *text)
{
	inv->failed = inv->failed || !text;
	return text ? text : "";
}

static const char *copy(struct rfl_inventory *inv, const char *text)
{
	return keep(inv, rfl_arena_strdup(inv->arena, text));
}

#define TEXT(inv, ...) keep(inv, rfl_arena_printf((inv)->arena, __VA_ARGS__))

/* The reason why an item was not built in or its probe failed; NULL: it works. */
static const char *reason_of(struct rfl_inventory *inv, const char *missing,
			     const struct rfl_err *probe)
{
	if (missing || probe->rc == RFL_OK)
		return missing;
	return copy(inv, probe->msg[0] != '\0' ? probe->msg : rfl_rc_text(probe->rc));
}

static enum rfl_rc collect_models(struct rfl_cli *cli, struct rfl_inventory *inv,
				  struct rfl_err *err)
{
	const struct rfl_count_options one = { .batch = 1 };
	const struct rfl_zoo_model *m;
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && (m = rfl_zoo_at(i)); i++) {
		const long long channels = m->channels ? m->channels : 3, size = m->image_size,
				classes = m->classes;
		struct rfl_item item = { .registry = "models",
					 .name = m->name,
					 .summary = m->summary };
		struct rfl_count *c = NULL;
		struct rfl_net *net = NULL;

		/* "3x224x224, 1000 classes", "128 tokens, vocabulary 10000; also S" */
		item.detail = m->context_length ? TEXT(inv, "%lld tokens, vocabulary %lld",
						       (long long)m->context_length, classes)
						: TEXT(inv, "%lldx%lldx%lld, %lld classes",
						       channels, size, size, classes);
		for (const char *const *alias = m->aliases; alias && *alias; alias++)
			item.detail = TEXT(inv, "%s%s %s", item.detail,
					   alias == m->aliases ? "; also" : ",", *alias);
		if (!(rc = rfl_zoo_build(m->name, NULL, &net, err)) &&
		    !(rc = rfl_count_net(net, &one, &c, err))) {
			item.params = c->params;
			item.forward_flops = 2 * c->total.macs[RFL_PASS_FORWARD];
			add(inv, item);
		}
		rfl_count_free(c);
		rfl_net_free(net);
	}
	return rc;
}

static enum rfl_rc collect_engines(struct rfl_cli *cli, struct rfl_inventory *inv,
				   struct rfl_err *err)
{
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_row *row;
	enum rfl_rc rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);

	for (size_t i = 0; rc == RFL_OK && (row = rfl_engine_list_at(list, i)); i++) {
		const char *name = row->id ? row->id : row->name;
		const char *summary = row->summary ? row->summary : "";
		/* copied, because the rows are freed with their list */
		struct rfl_item item = {
			.registry = "engines",
			.name = copy(inv, name),
			.summary = copy(inv, summary),
		};
		struct rfl_probe p = { .ok = false };

		if (row->missing)
			item.reason = copy(inv, row->missing);
		else if ((rc = rfl_probe_engine(cli, row->id, inv->arena, &p, err)))
			break;
		else if (!p.ok)
			item.reason = p.reason;
		else
			item.detail = TEXT(inv, "%s; library %s%s%s%s%s", p.devices,
					   p.library ? p.library : "version unknown",
					   p.blas ? "; BLAS " : "", p.blas ? p.blas : "",
					   p.no_gpu ? "; no GPU: " : "", p.no_gpu ? p.no_gpu : "");
		add(inv, item);
	}
	rfl_engine_list_free(list);
	return rc;
}

static enum rfl_rc collect_benchmarks(struct rfl_cli *cli, struct rfl_inventory *inv,
				      struct rfl_err *err)
{
	struct rfl_err no_gpu = RFL_ERR_INIT;
	const struct rfl_gpu_kernel *gpu;
	const struct rfl_peak_kernel *k;
	const char *reason;
	char name[256];

	(void)cli, (void)err;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (!k->missing)
			(void)!rfl_peak_kernel_probe(k, &why);
		add(inv, (struct rfl_item){ .registry = "benchmarks",
					    .name = k->name,
					    .summary = k->summary,
					    .reason = reason_of(inv, k->missing, &why) });
	}
	(void)!rfl_gpu_name(name, sizeof(name), &no_gpu);
	reason = reason_of(inv, NULL, &no_gpu);
	for (size_t i = 0; (gpu = rfl_gpu_kernel_at(i)); i++)
		add(inv, (struct rfl_item){ .registry = "benchmarks",
					    .name = gpu->name,
					    .summary = TEXT(inv, "%s: %s", gpu->key, gpu->summary),
					    .reason = reason });
	return RFL_OK;
}

/* List the events of the processor that can be counted, and why the others cannot. */
static const char *perf_detail(struct rfl_arena *arena)
{
	struct rfl_perf_status s;

	if (rfl_perf_look(&s, NULL) != RFL_OK)
		return NULL;
	if (s.hardware == 0)
		return rfl_arena_printf(arena, "%s: %zu kernel events only; %s", s.processor,
					s.software, s.no_hardware);
	return rfl_arena_printf(arena,
				"%s: %zu kernel events, %zu hardware events (%zu for FLOPs, %zu "
				"for memory controllers)%s%s%s%s",
				s.processor, s.software, s.hardware, s.flops, s.dram,
				s.flops == 0 ? "; no FLOPs: " : "", s.flops == 0 ? s.no_flops : "",
				s.dram == 0 ? "; no DRAM: " : "", s.dram == 0 ? s.no_dram : "");
}

static enum rfl_rc collect_sources(struct rfl_cli *cli, struct rfl_inventory *inv,
				   struct rfl_err *err)
{
	const struct rfl_source_request request = { .sets = RFL_SET_CORE,
						    .precision = "fp32",
						    .places = rfl_cli_places() };
	const struct rfl_source_ops *source;

	(void)cli, (void)err;
	for (size_t i = 0; (source = rfl_source_at(i)); i++) {
		struct rfl_item item = { .registry = "sources",
					 .name = source->name,
					 .summary = source->summary };
		struct rfl_err why = RFL_ERR_INIT;

		if (source->probe(&request, &why) == RFL_OK && strcmp(source->name, "perf") == 0)
			item.detail = perf_detail(inv->arena);
		item.reason = reason_of(inv, NULL, &why);
		add(inv, item);
	}
	return RFL_OK;
}

static enum rfl_rc collect_importers(struct rfl_cli *cli, struct rfl_inventory *inv,
				     struct rfl_err *err)
{
	const struct rfl_importer *importer;

	(void)cli, (void)err;
	for (size_t i = 0; (importer = rfl_importer_at(i)); i++)
		add(inv, (struct rfl_item){ .registry = "importers",
					    .name = importer->name,
					    .summary = importer->summary });
	return RFL_OK;
}

static enum rfl_rc collect_surfaces(struct rfl_cli *cli, struct rfl_inventory *inv,
				    struct rfl_err *err)
{
	const struct rfl_surface_spec spec = { .font_dir = TEXT(inv, "%s/fonts", cli->data_dir) };
	const struct rfl_surface_ops *s;
	struct rfl_item gnuplot = { .registry = "surfaces",
				    .name = "gnuplot",
				    .summary = "charts of 'roofline plot' (a program)" };
	struct rfl_err no_gnuplot = RFL_ERR_INIT;
	struct rfl_buf version;

	(void)err;
	for (size_t i = 0; (s = rfl_surface_at(i)); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (!s->missing && s->probe)
			(void)!s->probe(&spec, &why);
		add(inv, (struct rfl_item){ .registry = "surfaces",
					    .name = s->name,
					    .summary = s->summary,
					    .reason = reason_of(inv, s->missing, &why) });
	}
	rfl_buf_init(&version, 1 << 10);
	if (rfl_chart_probe(&version, &no_gnuplot) == RFL_OK)
		gnuplot.detail = copy(inv, rfl_buf_str(&version));
	gnuplot.reason = reason_of(inv, NULL, &no_gnuplot);
	add(inv, gnuplot);
	rfl_buf_fini(&version);
	return RFL_OK;
}

static enum rfl_rc collect_libraries(struct rfl_cli *cli, struct rfl_inventory *inv,
				     struct rfl_err *err)
{
#define FEATURE_ROW(name_, built_in, purpose, why) \
	{ .registry = "libraries",                 \
	  .name = name_,                           \
	  .summary = purpose,                      \
	  .detail = (built_in) ? (why) : NULL,     \
	  .reason = (built_in) ? NULL : (why) },
	static const struct rfl_item features[] = { RFL_FEATURES(FEATURE_ROW) };

	(void)cli, (void)err;
	for (size_t i = 0; i < RFL_ARRAY_LEN(features); i++)
		add(inv, features[i]);
	return RFL_OK;
}

/* clang-format off */
#define REGISTRIES(X) \
	X(models) X(engines) X(benchmarks) X(sources) X(importers) X(surfaces) X(libraries)
#define NAME(name) #name,
#define ROW(name)  { #name, collect_##name },
/* clang-format on */

const char *const rfl_registry_names[] = { REGISTRIES(NAME) NULL };

static const struct {
	const char *name;
	enum rfl_rc (*collect)(struct rfl_cli *, struct rfl_inventory *, struct rfl_err *);
} registries[] = { REGISTRIES(ROW) };

enum rfl_rc rfl_inventory_new(struct rfl_cli *cli, const char *const *names, size_t nnames,
			      struct rfl_inventory **ret, struct rfl_err *err)
{
	struct rfl_inventory *inv = calloc(1, sizeof(*inv));
	enum rfl_rc rc = RFL_OK;

	if (inv)
		inv->arena = rfl_arena_new();
	if (!inv || !inv->arena)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < RFL_ARRAY_LEN(registries) && rc == RFL_OK; i++) {
		bool wanted = nnames == 0;

		for (size_t k = 0; k < nnames; k++)
			wanted |= strcmp(registries[i].name, names[k]) == 0;
		if (wanted)
			rc = registries[i].collect(cli, inv, err);
		if (rc == RFL_OK && inv->failed)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "list of %s: out of memory",
				      registries[i].name);
	}
	if (rc == RFL_OK)
		*ret = inv;
	else
		rfl_inventory_free(inv);
	return rc;
}

void rfl_inventory_free(struct rfl_inventory *inv)
{
	if (!inv)
		return;
	free(inv->items);
	rfl_arena_free(inv->arena);
	free(inv);
}

size_t rfl_inventory_usable(const struct rfl_inventory *inv, const char *registry)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n; i++)
		n += inv->items[i].ok && strcmp(inv->items[i].registry, registry) == 0;
	return n;
}

#define TIMEOUT_S 120.0

/* Parse the output of the child. */
static void read_lines(struct rfl_arena *arena, const char *text, struct rfl_probe *ret)
{
	const struct {
		const char *key, **value;
	} fields[] = {
		{ "probe\tlibrary\t", &ret->library }, { "probe\tblas\t", &ret->blas },
		{ "probe\tdevices\t", &ret->devices }, { "probe\tno-gpu\t", &ret->no_gpu },
		{ "probe\treason\t", &ret->reason },
	};

	for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++) {
			const size_t skip = strlen(fields[i].key);
			const char *value = NULL;

			if (strncmp(text, fields[i].key, skip) == 0)
				value = rfl_arena_printf(arena, "%.*s", (int)(len - skip),
							 text + skip);
			if (value)
				*fields[i].value = value;
		}
	}
}

/* Describe how the child ended, with the last line of its standard error, usually a message of the
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
	if (!words)
		return NULL;
	if (r->timed_out)
		return rfl_arena_printf(arena, "did not respond within %.0f s%s", TIMEOUT_S, words);
	if (!r->exited)
		return rfl_arena_printf(arena, "crashed when opened (signal %d)%s", r->signal,
					words);
	return rfl_arena_printf(arena, "could not be opened (exit code %d)%s", r->exit_code, words);
}

enum rfl_rc rfl_probe_engine(struct rfl_cli *cli, const char *id, struct rfl_arena *arena,
			     struct rfl_probe *ret, struct rfl_err *err)
{
	const char *const argv[] = { cli->self, "-q", "probe", id, NULL };
	const struct rfl_proc_spec spec = {
		.argv = argv,
		.capture_stdout = true,
		.capture_stderr = true,
		.timeout_s = TIMEOUT_S,
	};
	struct rfl_proc_result result;
	enum rfl_rc rc = rfl_proc_run(&spec, &result, err);

	if (rc == RFL_OK) {
		*ret = (struct rfl_probe){ .devices = "" };
		read_lines(arena, rfl_buf_str(&result.out), ret);
		ret->ok = result.exited && result.exit_code == 0 && ret->devices[0] != '\0';
		if (!ret->ok && (!ret->reason || !result.exited || result.exit_code != 0))
			ret->reason = what_happened(arena, &result);
		if (!ret->ok && !ret->reason)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	}
	rfl_proc_result_fini(&result);
	return rc;
}

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

static enum rfl_rc run_probe(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const char *id = ((const struct probe_args *)args)->id.items[0];
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_ops *opened = NULL;
	struct rfl_err why[RFL_DEVICE_MPS + 1] = { RFL_ERR_INIT }; /* one per device */
	struct rfl_buf devices;
	char line[4096], *path;
	FILE *maps;
	enum rfl_rc rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);

	if (rc != RFL_OK)
		return rc;
	rfl_buf_init(&devices, 0);
	for (int d = 0; rfl_device_names[d]; d++) {
		const struct rfl_engine_ops *ops = NULL;

		if (rfl_engine_load(list, id, (enum rfl_device)d, &ops, &why[d]) != RFL_OK)
			continue;
		opened = ops;
		rfl_buf_printf(&devices, "%s%s", devices.len > 0 ? ", " : "", rfl_device_names[d]);
	}
	if (opened)
		print_field(cli->out, "library", opened->library_version());
	else /* the CPU exists on every machine */
		print_field(cli->out, "reason", after_id(why[RFL_DEVICE_CPU].msg, id));

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

	/* report why a plugin built for GPUs cannot use one */
	if (opened && why[RFL_DEVICE_CUDA].rc != RFL_OK && strcmp(opened->variant, "cpu") != 0)
		print_field(cli->out, "no-gpu", after_id(why[RFL_DEVICE_CUDA].msg, id));
	print_field(cli->out, "devices", rfl_buf_str(&devices));
	rc = rfl_buf_check(&devices, "devices", err);
	rfl_engine_list_free(list);
	rfl_buf_fini(&devices);
	return rc;
}

const struct rfl_cmd rfl_cmd_probe = {
	.name = "probe",
	.summary = "open an engine and report its devices (for 'list' and 'doctor')",
	.operands = "ENGINE",
	.args_size = sizeof(struct probe_args),
	.hidden = true,
	.run = run_probe,
};
