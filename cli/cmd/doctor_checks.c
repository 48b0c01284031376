/*
 * doctor_checks.c - the checks of `roofline doctor`, from the program to the folder it stands in.
 * Each check is one function that adds one line or more.
 */
#include "cli/cmd/doctor_checks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "cli/inventory.h"
#include "machine/gpu.h"
#include "machine/machine.h"
#include "plot/font.h"
#include "rfl_config.h"
#include "data/jpeg.h"

#define OWN_CHECKS 32                 /* at most, beside a line for each engine and each surface */
#define LOW_MEMORY ((int64_t)1 << 30) /* less than this and training is likely to be killed */

/* A check that finds no memory is told by `failed`, once, at the end. */
void rfl_doctor_add(struct rfl_doctor *d, struct rfl_doctor_check check)
{
	if (d->n == d->cap) {
		size_t cap = d->cap > 0 ? 2 * d->cap : 32;
		void *bigger = realloc(d->checks, cap * sizeof(check));

		if (!bigger) {
			d->failed = true;
			return;
		}
		d->checks = bigger;
		d->cap = cap;
	}
	d->checks[d->n++] = check;
}

/* A text that lives as long as the checks. */
#define TEXT(d, ...) rfl_doctor_text(rfl_arena_printf((d)->arena, __VA_ARGS__))

const char *rfl_doctor_text(const char *text)
{
	return text ? text : "";
}

static void check_program(struct rfl_cli *cli, struct rfl_doctor *d)
{
	rfl_doctor_add(d, (struct rfl_doctor_check){
				  .name = "program",
				  .finding = TEXT(d, "roofline %s (%s, %s), %s", RFL_VERSION,
						  RFL_COMPILER, RFL_BUILD_TYPE,
						  cli->self ? cli->self : "path not known"),
				  .verdict = strcmp(RFL_BUILD_TYPE, "Debug") == 0 ? RFL_DOCTOR_WARN
										  : RFL_DOCTOR_OK,
				  .advice = strcmp(RFL_BUILD_TYPE, "Debug") == 0
						    ? "a debug build is slow: measure with "
						      "-DCMAKE_BUILD_TYPE=Release"
						    : NULL,
			  });
}

static void check_processor(const struct rfl_machine *m, struct rfl_doctor *d)
{
	const char *caches = "";
	bool quota = !isnan(m->cpu_quota) && m->cpu_quota < m->usable_cores;
	char size[RFL_NUM_MAX];

	for (size_t i = 0; i < m->ncaches; i++)
		caches = TEXT(d, "%s, L%d %s", caches, m->caches[i].level,
			      rfl_num_bytes((double)m->caches[i].size_bytes, size, sizeof(size)));
	rfl_doctor_add(d, (struct rfl_doctor_check){
				  .name = "processor",
				  .finding = TEXT(d, "%s: %d of %d cores usable, %zu threads%s",
						  m->cpu_name ? m->cpu_name : "(no name)",
						  m->usable_cores, m->cores, m->ncpus, caches),
			  });
	if (quota)
		rfl_doctor_add(
			d,
			(struct rfl_doctor_check){
				.name = "quota",
				.verdict = RFL_DOCTOR_WARN,
				.finding = TEXT(
					d,
					"the control group allows %.3g processors' worth of time",
					m->cpu_quota),
				.advice =
					"raise the limit of the container, or read its results as "
					"those "
					"of a smaller machine",
			});
	if (m->governor && strcmp(m->governor, "performance") != 0)
		rfl_doctor_add(
			d, (struct rfl_doctor_check){
				   .name = "governor",
				   .verdict = RFL_DOCTOR_WARN,
				   .finding = TEXT(
					   d,
					   "the frequency governor is '%s': clocks, and with them "
					   "results, may stray",
					   m->governor),
				   .advice = "cpupower frequency-set -g performance",
			   });
}

static void check_isa(const struct rfl_machine *m, struct rfl_doctor *d)
{
	const char *list = "";

	for (size_t i = 0; rfl_isa_name(i); i++)
		if (m->isa >> i & 1)
			list = TEXT(d, "%s%s%s", list, list[0] != '\0' ? " " : "", rfl_isa_name(i));
	rfl_doctor_add(
		d, (struct rfl_doctor_check){
			   .name = "vectors",
			   .finding = list[0] != '\0' ? list : "no vector instructions known" });
}

static void check_memory(const struct rfl_machine *m, struct rfl_doctor *d)
{
	char all[RFL_NUM_MAX], free_now[RFL_NUM_MAX];
	bool low = m->memory_available_bytes > 0 && m->memory_available_bytes < LOW_MEMORY;

	rfl_num_bytes((double)m->memory_bytes, all, sizeof(all));
	rfl_num_bytes((double)m->memory_available_bytes, free_now, sizeof(free_now));
	rfl_doctor_add(
		d,
		(struct rfl_doctor_check){
			.name = "memory",
			.verdict = low ? RFL_DOCTOR_WARN : RFL_DOCTOR_OK,
			.finding = m->memory_bytes > 0
					   ? TEXT(d, "%s, %s of it available", all, free_now)
					   : "the system does not tell how much there is",
			.advice = low ? "training may be killed for lack of memory: free some, or "
					"use small "
					"batches"
				      : NULL,
		});
}

static void check_machine(struct rfl_doctor *d)
{
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_machine_new(&m, &err) != RFL_OK) {
		rfl_doctor_add(d, (struct rfl_doctor_check){ .name = "machine",
							     .verdict = RFL_DOCTOR_NO,
							     .finding = TEXT(d, "%s", err.msg),
							     .advice = "mount /sys and /proc" });
		return;
	}
	rfl_doctor_add(
		d, (struct rfl_doctor_check){
			   .name = "system",
			   .finding = TEXT(d, "%s, %s, %s%s%s; topology by %s",
					   m->os ? m->os : "(no name)", m->kernel, m->architecture,
					   m->hypervisor ? ", under " : "",
					   m->hypervisor ? m->hypervisor : "", m->topology_source),
		   });
	check_processor(m, d);
	check_isa(m, d);
	check_memory(m, d);
	rfl_machine_free(m);
}

/* One name of a library is tried after the other; what is said of the first is enough here. */
static const char *first_reason(struct rfl_doctor *d, const char *reasons)
{
	return TEXT(d, "%.*s", (int)strcspn(reasons, ";"), reasons);
}

static void check_gpu(struct rfl_doctor *d)
{
	struct rfl_gpus *g = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_gpus_new(&g, &err) != RFL_OK) {
		rfl_doctor_add(d, (struct rfl_doctor_check){
					  .name = "gpu",
					  .verdict = RFL_DOCTOR_NO,
					  .finding = first_reason(d, err.msg),
					  .advice = "not needed: training runs on the processor" });
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		rfl_doctor_add(d, (struct rfl_doctor_check){ .name = "gpu",
							     .finding = TEXT(d, "%s, driver %s",
									     g->gpus[i].name,
									     g->driver) });
	rfl_gpus_free(g);
}

/* Torch with the reference BLAS works, but nobody wants its times. */
static bool is_reference_blas(const char *detail)
{
	return detail && strstr(detail, "/blas/libblas") && !strstr(detail, "openblas");
}

static void check_engines(const struct rfl_inventory *inv, struct rfl_doctor *d)
{
	bool any = rfl_inventory_usable(inv, "engines") > 0;

	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];
		bool slow = is_reference_blas(item->detail);

		if (strcmp(item->registry, "engines") != 0)
			continue;
		rfl_doctor_add(
			d, (struct rfl_doctor_check){
				   .name = "engine",
				   .needed = !any, /* one is enough */
				   .verdict = !item->ok ? RFL_DOCTOR_NO
					      : slow    ? RFL_DOCTOR_WARN
							: RFL_DOCTOR_OK,
				   .finding = TEXT(d, "%s: %s", item->name,
						   item->ok ? rfl_doctor_text(item->detail)
							    : item->reason),
				   .advice = slow ? "the reference BLAS is slow: install "
						    "libopenblas0-pthread"
					     : any || item->ok
						     ? NULL
						     : "without an engine nothing can be trained",
			   });
	}
}

/* The line that says how many rows work, and the first reason where some do not. */
static void check_registry(const struct rfl_inventory *inv, const char *registry, const char *name,
			   const char *what, struct rfl_doctor *d)
{
	size_t ok = rfl_inventory_usable(inv, registry), all = 0;

	for (size_t i = 0; i < inv->n; i++)
		all += strcmp(inv->items[i].registry, registry) == 0;
	rfl_doctor_add(
		d,
		(struct rfl_doctor_check){
			.name = name,
			.needed = true,
			.verdict = ok > 0 ? RFL_DOCTOR_OK : RFL_DOCTOR_NO,
			.finding = TEXT(d, "%zu of %zu %s work here", ok, all, what),
			.advice = ok == all ? NULL
					    : TEXT(d, "the reasons of the others: roofline list %s",
						   registry),
		});
}

static void check_surfaces(const struct rfl_inventory *inv, struct rfl_doctor *d)
{
	const char *good = "";

	for (size_t i = 0; i < inv->n; i++)
		if (inv->items[i].ok && strcmp(inv->items[i].registry, "surfaces") == 0)
			good = TEXT(d, "%s%s%s", good, good[0] != '\0' ? ", " : "",
				    inv->items[i].name);
	rfl_doctor_add(d, (struct rfl_doctor_check){
				  .name = "figures",
				  .verdict = good[0] != '\0' ? RFL_DOCTOR_OK : RFL_DOCTOR_NO,
				  .finding = good[0] != '\0' ? good : "no surface works" });
	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];

		if (!item->ok && strcmp(item->registry, "surfaces") == 0)
			rfl_doctor_add(d, (struct rfl_doctor_check){
						  .name = item->name,
						  .needed = strcmp(item->name, "png") == 0,
						  .verdict = RFL_DOCTOR_NO,
						  .finding = TEXT(d, "%s", item->reason) });
	}
}

static void check_fonts(struct rfl_cli *cli, struct rfl_doctor *d)
{
	for (int i = 0; i < RFL_FACE_COUNT; i++) {
		const char *path = TEXT(d, "%s/fonts/%s", cli->data_dir, rfl_face_files[i]);
		bool there = access(path, R_OK) == 0;

		if (there && i + 1 < RFL_FACE_COUNT)
			continue; /* one line for all of them */
		rfl_doctor_add(
			d, (struct rfl_doctor_check){
				   .name = "fonts",
				   .verdict = there ? RFL_DOCTOR_OK : RFL_DOCTOR_NO,
				   .finding = there ? TEXT(d, "%s/fonts", cli->data_dir)
						    : TEXT(d, "%s is missing", path),
				   .advice = there ? NULL
						   : "install fonts-liberation, then build again",
			   });
		if (!there)
			return;
	}
}

static void check_jpeg(struct rfl_doctor *d)
{
	struct rfl_jpeg *jpeg = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	bool ok = rfl_jpeg_new(&jpeg, &err) == RFL_OK;

	rfl_doctor_add(
		d,
		(struct rfl_doctor_check){
			.name = "jpeg",
			.verdict = ok ? RFL_DOCTOR_OK : RFL_DOCTOR_NO,
			.finding = ok ? "training on folders of images" : TEXT(d, "%s", err.msg),
			.advice = ok ? NULL : "training on generated images works: run --synthetic",
		});
	rfl_jpeg_free(jpeg);
}

static void check_folder(struct rfl_doctor *d)
{
	char path[4096];
	bool known = getcwd(path, sizeof(path)) != NULL;
	bool ok = known && access(".", W_OK) == 0;

	rfl_doctor_add(
		d, (struct rfl_doctor_check){
			   .name = "folder",
			   .verdict = ok ? RFL_DOCTOR_OK : RFL_DOCTOR_WARN,
			   .finding = known ? TEXT(d, "%s can%s be written", path, ok ? "" : "not")
					    : TEXT(d, "the current folder is not known: %s",
						   strerror(errno)),
			   .advice = ok ? NULL : "go to another folder, or name files elsewhere",
		   });
}

enum rfl_rc rfl_doctor_new(struct rfl_cli *cli, struct rfl_doctor **ret, struct rfl_err *err)
{
	struct rfl_doctor *d = calloc(1, sizeof(*d));
	struct rfl_inventory *inv = NULL;
	enum rfl_rc rc;

	if (d)
		d->arena = rfl_arena_new(0);
	if (!d || !d->arena) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	rc = rfl_inventory_new(cli, NULL, 0, &inv, err);
	if (rc != RFL_OK)
		goto done;
	check_program(cli, d);
	check_machine(d);
	check_gpu(d);
	rfl_doctor_check_counters(inv, d);
	check_registry(inv, "models", "models", "networks", d);
	check_engines(inv, d);
	check_registry(inv, "benchmarks", "benchmarks", "loops that measure ceilings", d);
	check_surfaces(inv, d);
	check_fonts(cli, d);
	check_jpeg(d);
	check_folder(d);
	if (d->failed) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	*ret = d;
	d = NULL;
done:
	rfl_inventory_free(inv);
	rfl_doctor_free(d);
	return rc;
}

void rfl_doctor_free(struct rfl_doctor *d)
{
	if (!d)
		return;
	free(d->checks);
	rfl_arena_free(d->arena);
	free(d);
}
