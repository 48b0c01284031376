/*
 * inventory.c - the rows of every registry with their status here: one function per registry.
 */
#include "cli/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/places.h"
#include "cli/probe.h"
#include "complexity/count.h"
#include "complexity/zoo.h"
#include "peaks/kernels.h"
#include "plot/surface.h"
#include "profile/import/importer.h"
#include "profile/source.h"
#include "rfl_config.h"
#include "runner/engine.h"

#define ITEMS_MAX 4096

/* Append an item. `missing` or else a failed probe is the reason that it does not work here. */
static enum rfl_rc add(struct rfl_inventory *inv, struct rfl_item item, const char *missing,
		       const struct rfl_err *probe, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_grow(&inv->items, &inv->cap, inv->n + 1, ITEMS_MAX, err);

	if (rc != RFL_OK)
		return rc;
	item.reason = missing;
	if (!missing && probe && probe->rc != RFL_OK) {
		item.reason = rfl_arena_strdup(
			inv->arena, probe->msg[0] != '\0' ? probe->msg : rfl_rc_text(probe->rc));
		if (!item.reason)
			return rfl_fail(err, RFL_ENOMEM, 0, "list of %s: out of memory",
					item.registry);
	}
	item.ok = !item.reason;
	inv->items[inv->n++] = item;
	return RFL_OK;
}

/* "3x224x224, 1000 classes", "128 tokens, vocabulary 10000; also S": what a sample is, and other
 * names. NULL: out of memory. */
static const char *model_detail(struct rfl_arena *arena, const struct rfl_zoo_model *m)
{
	long long channels = m->channels ? m->channels : 3, size = m->image_size;
	const char *detail =
		m->context_length
			? rfl_arena_printf(arena, "%lld tokens, vocabulary %lld",
					   (long long)m->context_length, (long long)m->classes)
			: rfl_arena_printf(arena, "%lldx%lldx%lld, %lld classes", channels, size,
					   size, (long long)m->classes);

	for (const char *const *alias = m->aliases; alias && *alias && detail; alias++)
		detail = rfl_arena_printf(arena, "%s%s %s", detail,
					  alias == m->aliases ? "; also" : ",", *alias);
	return detail;
}

static enum rfl_rc collect_models(struct rfl_cli *cli, struct rfl_inventory *inv,
				  struct rfl_err *err)
{
	const struct rfl_count_options one = { .batch = 1 };
	const struct rfl_zoo_model *m;
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && (m = rfl_zoo_at(i)); i++) {
		struct rfl_item item = { .registry = "models",
					 .name = m->name,
					 .summary = m->summary,
					 .detail = model_detail(inv->arena, m) };
		struct rfl_count *c = NULL;
		struct rfl_net *net = NULL;

		if (!item.detail)
			return rfl_fail(err, RFL_ENOMEM, 0, "list of models: out of memory");
		rc = rfl_zoo_build(m->name, NULL, &net, err);
		if (rc == RFL_OK)
			rc = rfl_count_net(net, &one, &c, err);
		if (rc == RFL_OK) {
			item.params = c->params;
			item.forward_flops = 2 * c->total.macs[RFL_PASS_FORWARD];
			rc = add(inv, item, NULL, NULL, err);
		}
		rfl_count_free(c);
		rfl_net_free(net);
	}
	return rc;
}

/* Each engine is asked in a child process. */
static enum rfl_rc collect_engines(struct rfl_cli *cli, struct rfl_inventory *inv,
				   struct rfl_err *err)
{
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_row *row;
	enum rfl_rc rc;

	rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);
	for (size_t i = 0; rc == RFL_OK && (row = rfl_engine_list_at(list, i)); i++) {
		struct rfl_probe p = { .ok = false };
		struct rfl_item item = {
			/* copies: the rows end with their list */
			.registry = "engines",
			.name = rfl_arena_strdup(inv->arena, row->id ? row->id : row->name),
			.summary = rfl_arena_strdup(inv->arena, row->summary ? row->summary : ""),
		};
		const char *reason = NULL;

		if (row->missing)
			reason = rfl_arena_strdup(inv->arena, row->missing);
		else
			rc = rfl_probe_engine(cli, row->id, inv->arena, &p, err);
		if (rc != RFL_OK)
			break;
		if (p.ok)
			item.detail = rfl_arena_printf(
				inv->arena, "%s; library %s%s%s%s%s", p.devices,
				p.library ? p.library : "of unknown version",
				p.blas ? "; BLAS " : "", p.blas ? p.blas : "",
				p.no_gpu ? "; no GPU: " : "", p.no_gpu ? p.no_gpu : "");
		else if (!row->missing)
			reason = p.reason;
		if (!item.name || !item.summary || (!reason && !item.detail))
			rc = rfl_fail(err, RFL_ENOMEM, 0, "list of engines: out of memory");
		else
			rc = add(inv, item, reason, NULL, err);
	}
	rfl_engine_list_free(list);
	return rc;
}

static enum rfl_rc collect_benchmarks(struct rfl_cli *cli, struct rfl_inventory *inv,
				      struct rfl_err *err)
{
	const struct rfl_peak_kernel *k;
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && (k = rfl_peak_kernel_at(i)); i++) {
		struct rfl_item item = { .registry = "benchmarks",
					 .name = k->name,
					 .summary = k->summary };
		struct rfl_err why = RFL_ERR_INIT;
		const bool ok = !k->missing && rfl_peak_kernel_probe(k, &why) == RFL_OK;

		rc = add(inv, item, k->missing, ok ? NULL : &why, err);
	}
	return rc;
}

/* Which events of the processor can be counted, and why the others cannot. */
static const char *perf_detail(struct rfl_arena *arena)
{
	struct rfl_perf_status s;

	if (rfl_perf_look(&s, NULL) != RFL_OK)
		return NULL;
	if (s.hardware == 0)
		return rfl_arena_printf(arena, "%s: %zu events of the kernel only; %s", s.processor,
					s.software, s.no_hardware);
	return rfl_arena_printf(arena,
				"%s: %zu events of the kernel, %zu of hardware (%zu of FLOPs, %zu "
				"of memory controllers)%s%s%s%s",
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
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && (source = rfl_source_at(i)); i++) {
		struct rfl_item item = { .registry = "sources",
					 .name = source->name,
					 .summary = source->summary };
		struct rfl_err why = RFL_ERR_INIT;

		if (!source->missing && source->probe(&request, &why) == RFL_OK &&
		    strcmp(source->name, "perf") == 0)
			item.detail = perf_detail(inv->arena);
		rc = add(inv, item, source->missing, &why, err);
	}
	return rc;
}

/* Importers need nothing but the file. */
static enum rfl_rc collect_importers(struct rfl_cli *cli, struct rfl_inventory *inv,
				     struct rfl_err *err)
{
	const struct rfl_importer *importer;
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && (importer = rfl_importer_at(i)); i++)
		rc = add(inv,
			 (struct rfl_item){ .registry = "importers",
					    .name = importer->name,
					    .summary = importer->summary },
			 NULL, NULL, err);
	return rc;
}

static enum rfl_rc collect_surfaces(struct rfl_cli *cli, struct rfl_inventory *inv,
				    struct rfl_err *err)
{
	const char *fonts = rfl_arena_printf(inv->arena, "%s/fonts", cli->data_dir);
	const struct rfl_surface_spec spec = { .font_dir = fonts };
	const struct rfl_surface_ops *s;
	enum rfl_rc rc = RFL_OK;

	if (!fonts)
		return rfl_fail(err, RFL_ENOMEM, 0, "list of surfaces: out of memory");
	for (size_t i = 0; rc == RFL_OK && (s = rfl_surface_at(i)); i++) {
		struct rfl_item item = { .registry = "surfaces",
					 .name = s->name,
					 .summary = s->summary };
		struct rfl_err why = RFL_ERR_INIT;
		const bool ok = !s->missing && (!s->probe || s->probe(&spec, &why) == RFL_OK);

		rc = add(inv, item, s->missing, ok ? NULL : &why, err);
	}
	return rc;
}

/* What was built in, and why the rest was not. */
static enum rfl_rc collect_libraries(struct rfl_cli *cli, struct rfl_inventory *inv,
				     struct rfl_err *err)
{
#define FEATURE_ROW(name, built_in, purpose, why) { name, built_in, purpose, why },
	static const struct {
		const char *name;
		int built_in;
		const char *purpose, *why;
	} features[] = { RFL_FEATURES(FEATURE_ROW) };
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(features); i++)
		rc = add(inv,
			 (struct rfl_item){ .registry = "libraries",
					    .name = features[i].name,
					    .summary = features[i].purpose,
					    .detail =
						    features[i].built_in ? features[i].why : NULL },
			 features[i].built_in ? NULL : features[i].why, NULL, err);
	return rc;
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
		inv->arena = rfl_arena_new(0);
	if (!inv || !inv->arena)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < RFL_ARRAY_LEN(registries) && rc == RFL_OK; i++) {
		bool wanted = nnames == 0;

		for (size_t k = 0; k < nnames; k++)
			wanted |= strcmp(registries[i].name, names[k]) == 0;
		if (wanted)
			rc = registries[i].collect(cli, inv, err);
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
