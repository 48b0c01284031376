/*
 * doctor.c - roofline doctor: one screen with what works here, what does not, what that means and
 * what to do. Each check is one function that adds one line or more.
 */
#include "cli/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/num.h"
#include "cli/inventory.h"
#include "cli/put.h"
#include "data/jpeg.h"
#include "machine/gpu.h"
#include "machine/machine.h"
#include "plot/scene.h"
#include "profile/source.h"
#include "report/table.h"
#include "rfl_config.h"

#define MAX_CHECKS    256
#define LOW_MEMORY    ((int64_t)1 << 30) /* with less, training is likely to be killed */
#define PARANOID_OWN  2                  /* up to here a process may count itself */
#define PARANOID_NONE 99

enum verdict { OK, WARN, NO };

static const char *const verdict_names[] = { "ok", "warn", "no" };

struct check {
	const char *name;
	enum verdict verdict;
	bool needed; /* the main job cannot do without it */
	const char *finding;
	const char *advice; /* NULL: nothing to do */
};

struct doctor {
	struct rfl_arena *arena; /* owns the texts */
	size_t n;
	struct check checks[MAX_CHECKS];
	bool failed; /* out of memory */
};

/* A text that lives as long as the checks. */
static const char *text(struct doctor *d, const char *fmt, ...) RFL_PRINTF(2, 3);
static const char *text(struct doctor *d, const char *fmt, ...)
{
	struct rfl_buf out;
	const char *kept;
	va_list ap;

	rfl_buf_init(&out, 0);
	va_start(ap, fmt);
	rfl_buf_vprintf(&out, fmt, ap);
	va_end(ap);
	kept = rfl_arena_strdup(d->arena, rfl_buf_str(&out));
	rfl_buf_fini(&out);
	d->failed |= !kept;
	return kept ? kept : "";
}

static struct check *add(struct doctor *d, const char *name, enum verdict verdict,
			 const char *finding, const char *advice)
{
	struct check *c = &d->checks[d->n < MAX_CHECKS ? d->n++ : MAX_CHECKS - 1];

	*c = (struct check){
		.name = name, .verdict = verdict, .finding = finding, .advice = advice
	};
	return c;
}

static void check_program(struct rfl_cli *cli, struct doctor *d)
{
	const bool debug = strcmp(RFL_BUILD_TYPE, "Debug") == 0;

	add(d, "program", debug ? WARN : OK,
	    text(d, "roofline %s (%s, %s), %s", RFL_VERSION, RFL_COMPILER, RFL_BUILD_TYPE,
		 cli->self ? cli->self : "path not known"),
	    debug ? "a debug build is slow: measure with -DCMAKE_BUILD_TYPE=Release" : NULL);
}

static void check_processor(const struct rfl_machine *m, struct doctor *d)
{
	const char *caches = "", *vectors = "";
	char size[RFL_NUM_MAX];

	for (size_t i = 0; i < m->ncaches; i++)
		caches = text(d, "%s, L%d %s", caches, m->caches[i].level,
			      rfl_num_bytes((double)m->caches[i].size_bytes, size, sizeof(size)));
	add(d, "processor", OK,
	    text(d, "%s: %d of %d cores usable, %zu threads%s",
		 m->cpu_name ? m->cpu_name : "(no name)", m->usable_cores, m->cores, m->ncpus,
		 caches),
	    NULL);
	if (!isnan(m->cpu_quota) && m->cpu_quota < m->usable_cores)
		add(d, "quota", WARN,
		    text(d, "the control group allows %.3g processors' worth of time",
			 m->cpu_quota),
		    "raise the limit of the container, or read its results as those of a smaller "
		    "machine");
	if (m->governor && strcmp(m->governor, "performance") != 0)
		add(d, "governor", WARN,
		    text(d, "the frequency governor is '%s': clocks, and so results, may vary",
			 m->governor),
		    "cpupower frequency-set -g performance");
	for (size_t i = 0; rfl_isa_name(i); i++)
		if (m->isa >> i & 1)
			vectors = text(d, "%s%s%s", vectors, vectors[0] != '\0' ? " " : "",
				       rfl_isa_name(i));
	add(d, "vectors", OK, vectors[0] != '\0' ? vectors : "no vector instructions known", NULL);
}

static void check_machine(struct doctor *d)
{
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char all[RFL_NUM_MAX], available[RFL_NUM_MAX];
	bool low;

	if (rfl_machine_new(&m, &err) != RFL_OK) {
		add(d, "machine", NO, text(d, "%s", err.msg), "mount /sys and /proc");
		return;
	}
	add(d, "system", OK,
	    text(d, "%s, %s, %s%s%s; topology by %s", m->os ? m->os : "(no name)", m->kernel,
		 m->architecture, m->hypervisor ? ", under " : "",
		 m->hypervisor ? m->hypervisor : "", m->topology_source),
	    NULL);
	check_processor(m, d);
	low = m->memory_available_bytes > 0 && m->memory_available_bytes < LOW_MEMORY;
	add(d, "memory", low ? WARN : OK,
	    m->memory_bytes > 0 ? text(d, "%s, %s available",
				       rfl_num_bytes((double)m->memory_bytes, all, sizeof(all)),
				       rfl_num_bytes((double)m->memory_available_bytes, available,
						     sizeof(available)))
				: "the system does not report its size",
	    low ? "training may be killed for lack of memory: free some, or use small batches"
		: NULL);
	rfl_machine_free(m);
}

static void check_gpu(struct doctor *d)
{
	struct rfl_gpus *g = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_gpus_new(&g, &err) != RFL_OK) {
		/* several names of the library were tried: the first reason is enough here */
		add(d, "gpu", NO, text(d, "%.*s", (int)strcspn(err.msg, ";"), err.msg),
		    "not needed: training runs on the processor");
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		add(d, "gpu", OK, text(d, "%s, driver %s", g->gpus[i].name, g->driver), NULL);
	rfl_gpus_free(g);
}

static const char *cpu_counters(struct doctor *d, const struct rfl_perf_status *s)
{
	if (s->hardware == 0)
		return text(d, "CPU: only what the kernel counts (task clock, page faults): %s",
			    s->no_hardware);
	if (s->flops > 0 && s->dram > 0)
		return text(d, "CPU: %zu hardware events of %s, including FLOPs and DRAM bytes",
			    s->hardware, s->processor);
	if (s->flops == 0 && s->dram == 0)
		return text(d,
			    "CPU: %zu hardware events of %s, without FLOPs: %s; and without DRAM "
			    "bytes: %s",
			    s->hardware, s->processor, s->no_flops, s->no_dram);
	return text(d, "CPU: %zu hardware events of %s, without %s: %s", s->hardware, s->processor,
		    s->flops == 0 ? "FLOPs" : "DRAM bytes",
		    s->flops == 0 ? s->no_flops : s->no_dram);
}

/* Nothing of the main job needs counters. */
static void check_counters(const struct rfl_inventory *inv, struct doctor *d)
{
	struct rfl_perf_status s;
	struct rfl_err err = RFL_ERR_INIT;
	const bool any = rfl_perf_look(&s, &err) == RFL_OK;
	const bool all = any && s.flops > 0 && s.dram > 0;

	add(d, "counters",
	    !any || s.hardware == 0 ? NO
	    : all                   ? OK
				    : WARN,
	    any ? cpu_counters(d, &s) : text(d, "CPU: %s", err.msg),
	    all ? NULL : "not needed: FLOPs and bytes are counted analytically");
	if (any && s.paranoid != PARANOID_NONE) {
		const bool none = s.paranoid > PARANOID_OWN;

		add(d, "paranoid", none ? WARN : OK,
		    text(d, "kernel.perf_event_paranoid is %d: users other than root may count %s",
			 s.paranoid,
			 none                         ? "nothing"
			 : s.paranoid == PARANOID_OWN ? "their own processes in user mode"
			 : s.paranoid == 1            ? "their own processes"
						      : "whole processors"),
		    none ? "sudo sysctl kernel.perf_event_paranoid=2" : NULL);
	}
	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];

		if (strcmp(item->registry, "sources") == 0 && strcmp(item->name, "cupti") == 0)
			add(d, "counters", item->ok ? OK : NO,
			    text(d, "GPU: %s", item->ok ? "CUPTI can count here" : item->reason),
			    item->ok ? NULL
				     : "every condition, one by one: roofline counters check");
	}
}

static void check_engines(const struct rfl_inventory *inv, struct doctor *d)
{
	const bool any = rfl_inventory_usable(inv, "engines") > 0;

	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];
		const char *detail = item->detail ? item->detail : "";
		/* correct, but many times slower than any other */
		const bool slow = strstr(detail, "/blas/libblas") && !strstr(detail, "openblas");

		if (strcmp(item->registry, "engines") == 0)
			add(d, "engine",
			    !item->ok ? NO
			    : slow    ? WARN
				      : OK,
			    text(d, "%s: %s", item->name, item->ok ? detail : item->reason),
			    slow  ? "the reference BLAS is slow: install libopenblas0-pthread"
			    : any ? NULL
				  : "without an engine nothing can be trained")
				->needed = !any; /* one is enough */
	}
}

/* How many rows of a registry work. */
static void check_registry(const struct rfl_inventory *inv, const char *registry, const char *what,
			   struct doctor *d)
{
	size_t ok = rfl_inventory_usable(inv, registry), all = 0;

	for (size_t i = 0; i < inv->n; i++)
		all += strcmp(inv->items[i].registry, registry) == 0;
	add(d, registry, ok > 0 ? OK : NO, text(d, "%zu of %zu %s work here", ok, all, what),
	    ok == all ? NULL : text(d, "the reasons of the others: roofline list %s", registry))
		->needed = true;
}

static void check_figures(struct rfl_cli *cli, const struct rfl_inventory *inv, struct doctor *d)
{
	const char *good = "", *missing = NULL;

	for (size_t i = 0; i < inv->n; i++)
		if (inv->items[i].ok && strcmp(inv->items[i].registry, "surfaces") == 0)
			good = text(d, "%s%s%s", good, good[0] != '\0' ? ", " : "",
				    inv->items[i].name);
	add(d, "figures", good[0] != '\0' ? OK : NO, good[0] != '\0' ? good : "no surface works",
	    NULL);
	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];

		if (!item->ok && strcmp(item->registry, "surfaces") == 0)
			add(d, text(d, "%s", item->name), NO, text(d, "%s", item->reason), NULL)
				->needed = strcmp(item->name, "png") == 0;
	}
	for (int i = 0; i < RFL_FACE_COUNT && !missing; i++) {
		const char *path = text(d, "%s/fonts/%s", cli->data_dir, rfl_face_files[i]);

		missing = access(path, R_OK) == 0 ? NULL : path;
	}
	if (missing)
		add(d, "fonts", NO, text(d, "%s is missing", missing),
		    "install fonts-liberation, then build again");
	else
		add(d, "fonts", OK, text(d, "%s/fonts", cli->data_dir), NULL);
}

static void check_jpeg(struct doctor *d)
{
	struct rfl_jpeg *jpeg = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_jpeg_new(&jpeg, &err) == RFL_OK)
		add(d, "jpeg", OK, "training on folders of images", NULL);
	else
		add(d, "jpeg", NO, text(d, "%s", err.msg),
		    "training on generated images works: run --synthetic");
	rfl_jpeg_free(jpeg);
}

static void check_folder(struct doctor *d)
{
	char path[4096];

	if (!getcwd(path, sizeof(path)))
		add(d, "folder", WARN,
		    text(d, "the current folder is not known: %s", strerror(errno)),
		    "change to another folder, or name output files elsewhere");
	else if (access(".", W_OK) != 0)
		add(d, "folder", WARN, text(d, "%s cannot be written", path),
		    "change to another folder, or name output files elsewhere");
	else
		add(d, "folder", OK, text(d, "%s can be written", path), NULL);
}

struct doctor_args {
	int format;
};

static const struct rfl_opt opts[] = {
	RFL_OPT_FORMAT_ROW(offsetof(struct doctor_args, format)),
	{ .name = NULL },
};

static const struct rfl_column columns[] = {
	{ .key = "check", .title = "Check", .kind = RFL_COLUMN_TEXT },
	{ .key = "verdict", .title = "Verdict", .kind = RFL_COLUMN_TEXT },
	{ .key = "needed", .title = "Needed", .kind = RFL_COLUMN_TEXT },
	{ .key = "finding", .title = "Finding", .kind = RFL_COLUMN_TEXT },
	{ .key = "advice", .title = "What to do", .kind = RFL_COLUMN_TEXT },
};

static void print_lines(struct rfl_cli *cli, const struct doctor *d, bool works)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct check *c = &d->checks[i];

		rfl_cli_printf(cli, "%-4s  %-10s  %s\n", verdict_names[c->verdict], c->name,
			       c->finding);
		if (c->advice)
			rfl_cli_printf(cli, "%-4s  %-10s  -> %s\n", "", "", c->advice);
	}
	rfl_cli_printf(
		cli, "\n%s\n",
		works ? "The main job works here: train, count, measure the machine, merge, draw."
		      : "The main job does not work here: see the lines that say no.");
}

static enum rfl_rc print_table(struct rfl_cli *cli, const struct doctor *d, enum rfl_format format,
			       struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < d->n; i++) {
		const struct check *c = &d->checks[i];

		rfl_table_text(t, c->name);
		rfl_table_text(t, verdict_names[c->verdict]);
		rfl_table_text(t, c->needed ? "yes" : "no");
		rfl_table_text(t, c->finding);
		rfl_table_text(t, c->advice);
	}
	rc = rfl_cli_put_table(cli, t, format, err);
	rfl_table_free(t);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const enum rfl_format format = (enum rfl_format)((const struct doctor_args *)args)->format;
	struct doctor d = { .arena = rfl_arena_new(0) };
	struct rfl_inventory *inv = NULL;
	bool works = true;
	enum rfl_rc rc;

	if (!d.arena)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rfl_cli_progress(cli, "checking this machine and its engines ...");
	rc = rfl_inventory_new(cli, NULL, 0, &inv, err);
	if (rc != RFL_OK)
		goto done;
	check_program(cli, &d);
	check_machine(&d);
	check_gpu(&d);
	check_counters(inv, &d);
	check_registry(inv, "models", "networks", &d);
	check_engines(inv, &d);
	check_registry(inv, "benchmarks", "loops that measure ceilings", &d);
	check_figures(cli, inv, &d);
	check_jpeg(&d);
	check_folder(&d);
	rfl_cli_progress(cli, NULL);
	if (d.failed) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	for (size_t i = 0; i < d.n; i++)
		works &= !(d.checks[i].needed && d.checks[i].verdict == NO);
	if (format == RFL_FORMAT_TABLE)
		print_lines(cli, &d, works);
	else
		rc = print_table(cli, &d, format, err);
	if (rc == RFL_OK && !works)
		rc = RFL_EFAILED;
done:
	rfl_cli_progress(cli, NULL);
	rfl_inventory_free(inv);
	rfl_arena_free(d.arena);
	return rc;
}

const struct rfl_cmd rfl_cmd_doctor = {
	.name = "doctor",
	.summary = "check what works on this machine, and say what to do where something does not",
	.description =
		"Every line is ok, warn (it works, but slower or with less than it could) or no "
		"(not here), followed by what to do about it. The exit code is 0 when the main job "
		"works (train, count, measure the machine, merge, draw a PNG), and 1 when "
		"something that it needs is missing; a GPU or JPEG support may be missing.",
	.opts = opts,
	.args_size = sizeof(struct doctor_args),
	.operands_offset = -1,
	.run = run,
};
