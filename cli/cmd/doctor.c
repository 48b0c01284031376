/* doctor.c - roofline doctor: check the machine, the engines and the build. */
#include "cli/cmd.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/num.h"
#include "cli/inventory.h"
#include "data/jpeg.h"
#include "machine/gpu.h"
#include "machine/machine.h"
#include "plot/scene.h"
#include "profile/source.h"
#include "rfl_config.h"

#define MAX_CHECKS    256
#define LOW_MEMORY    ((int64_t)1 << 30) /* bytes; with less, training is likely to be killed */
#define PARANOID_OWN  2 /* at this level or below, a process may count its own events */
#define PARANOID_NONE 99

static const char ok[] = "ok", warn[] = "warn", no[] = "no"; /* verdicts */

struct check {
	const char *name, *verdict;
	const char *needed; /* "yes": required for the main functions */
	const char *finding;
	const char *advice; /* NULL: none */
};

struct doctor {
	struct rfl_arena *arena; /* owner of the strings */
	const struct rfl_inventory *inv;
	size_t n;
	struct check checks[MAX_CHECKS];
	bool failed; /* out of memory */
};

static const char *keep(struct doctor *d, const char *text)
{
	d->failed |= !text;
	return text ? text : "";
}

/* Format a text owned by the arena. */
#define text(d, ...) keep(d, rfl_arena_printf((d)->arena, __VA_ARGS__))

static struct check *add(struct doctor *d, const char *name, const char *verdict,
			 const char *finding, const char *advice)
{
	struct check *c = &d->checks[d->n < MAX_CHECKS ? d->n++ : MAX_CHECKS - 1];

	*c = (struct check){ .name = name,
			     .verdict = verdict,
			     .needed = "no",
			     .finding = finding,
			     .advice = advice };
	return c;
}

static void check_machine(struct rfl_cli *cli, struct doctor *d)
{
	const bool debug = strcmp(RFL_BUILD_TYPE, "Debug") == 0;
	const char *caches = "", *vectors = "";
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char size[RFL_NUM_MAX], available[RFL_NUM_MAX];
	bool low;

	add(d, "program", debug ? warn : ok,
	    text(d, "roofline %s (%s, %s), %s", RFL_VERSION, RFL_COMPILER, RFL_BUILD_TYPE,
		 cli->self ? cli->self : "unknown path"),
	    debug ? "debug builds are slow; build with -DCMAKE_BUILD_TYPE=Release" : NULL);
	if (rfl_machine_new(&m, &err) != RFL_OK) {
		add(d, "machine", no, text(d, "%s", err.msg), "mount /sys and /proc");
		return;
	}
	add(d, "system", ok,
	    text(d, "%s, %s, %s%s%s; topology by %s", m->os ? m->os : "(no name)", m->kernel,
		 m->architecture, m->hypervisor ? ", under " : "",
		 m->hypervisor ? m->hypervisor : "", m->topology_source),
	    NULL);
	for (size_t i = 0; i < m->ncaches; i++)
		caches = text(d, "%s, L%d %s", caches, m->caches[i].level,
			      rfl_num_bytes((double)m->caches[i].size_bytes, size, sizeof(size)));
	add(d, "processor", ok,
	    text(d, "%s: %d of %d cores usable, %zu threads%s",
		 m->cpu_name ? m->cpu_name : "(no name)", m->usable_cores, m->cores, m->ncpus,
		 caches),
	    NULL);
	if (!isnan(m->cpu_quota) && m->cpu_quota < m->usable_cores)
		add(d, "quota", warn,
		    text(d, "CPU time is limited to that of %.3g processors by the control group",
			 m->cpu_quota),
		    "raise the CPU limit of the container; otherwise the results are those of a "
		    "smaller machine");
	if (m->governor && strcmp(m->governor, "performance") != 0)
		add(d, "governor", warn,
		    text(d, "the frequency governor is '%s', so clock rates and results may vary",
			 m->governor),
		    "run: cpupower frequency-set -g performance");
	for (size_t i = 0; rfl_isa_name(i); i++)
		if (m->isa >> i & 1)
			vectors = text(d, "%s%s%s", vectors, vectors[0] != '\0' ? " " : "",
				       rfl_isa_name(i));
	add(d, "vectors", ok, vectors[0] != '\0' ? vectors : "no known vector instructions", NULL);
	low = m->memory_available_bytes > 0 && m->memory_available_bytes < LOW_MEMORY;
	add(d, "memory", low ? warn : ok,
	    m->memory_bytes > 0 ? text(d, "%s, %s available",
				       rfl_num_bytes((double)m->memory_bytes, size, sizeof(size)),
				       rfl_num_bytes((double)m->memory_available_bytes, available,
						     sizeof(available)))
				: "size not reported by the system",
	    low ? "training may be killed for lack of memory; free memory, or use small batches"
		: NULL);
	rfl_machine_free(m);
}

/* GPUs and counters, which the main functions do not need. */
static void check_gpus(struct doctor *d)
{
	struct rfl_gpus *g = NULL;
	struct rfl_perf_status s;
	struct rfl_err err = RFL_ERR_INIT;
	const char *found, *may_count;
	bool any, all;

	/* the message has a reason for each name of the library; show only the first */
	if (rfl_gpus_new(&g, &err) != RFL_OK)
		add(d, "gpu", no, text(d, "%.*s", (int)strcspn(err.msg, ";"), err.msg),
		    "not required: training runs on the processor");
	for (size_t i = 0; g && i < g->n; i++)
		add(d, "gpu", ok, text(d, "%s, driver %s", g->gpus[i].name, g->driver), NULL);
	rfl_gpus_free(g);
	rfl_err_clear(&err);
	any = rfl_perf_look(&s, &err) == RFL_OK;
	all = any && s.flops > 0 && s.dram > 0;
	if (!any)
		found = text(d, "CPU: %s", err.msg);
	else if (s.hardware == 0)
		found = text(d, "CPU: only kernel events (task clock, page faults): %s",
			     s.no_hardware);
	else if (all)
		found = text(d, "CPU: %zu hardware events of %s, including FLOPs and DRAM bytes",
			     s.hardware, s.processor);
	else if (s.flops == 0 && s.dram == 0)
		found = text(
			d,
			"CPU: %zu hardware events of %s, but no FLOPs: %s; and no DRAM bytes: %s",
			s.hardware, s.processor, s.no_flops, s.no_dram);
	else
		found = text(d, "CPU: %zu hardware events of %s, but no %s: %s", s.hardware,
			     s.processor, s.flops == 0 ? "FLOPs" : "DRAM bytes",
			     s.flops == 0 ? s.no_flops : s.no_dram);
	add(d, "counters",
	    !any || s.hardware == 0 ? no
	    : all                   ? ok
				    : warn,
	    found, all ? NULL : "not required: FLOPs and bytes are computed from the network");
	if (any && s.paranoid != PARANOID_NONE) {
		may_count = s.paranoid > PARANOID_OWN    ? "nothing"
			    : s.paranoid == PARANOID_OWN ? "their own processes in user mode"
			    : s.paranoid == 1            ? "their own processes"
							 : "whole processors";
		add(d, "paranoid", s.paranoid > PARANOID_OWN ? warn : ok,
		    text(d, "kernel.perf_event_paranoid is %d: users other than root may count %s",
			 s.paranoid, may_count),
		    s.paranoid > PARANOID_OWN ? "run: sudo sysctl kernel.perf_event_paranoid=2"
					      : NULL);
	}
	for (const struct rfl_item *item = d->inv->items; item < d->inv->items + d->inv->n; item++)
		if (strcmp(item->registry, "sources") == 0 && strcmp(item->name, "cupti") == 0)
			add(d, "counters", item->ok ? ok : no,
			    text(d, "GPU: %s",
				 item->ok ? "CUPTI can count on this machine" : item->reason),
			    item->ok ? NULL : "run: roofline counters check");
}

static void check_engines(struct doctor *d)
{
	const bool any = rfl_inventory_usable(d->inv, "engines") > 0;

	for (const struct rfl_item *item = d->inv->items; item < d->inv->items + d->inv->n;
	     item++) {
		const char *detail = item->detail ? item->detail : "", *advice = NULL;
		/* the reference BLAS is correct, but many times slower than others */
		const bool slow = strstr(detail, "/blas/libblas") && !strstr(detail, "openblas");

		if (strcmp(item->registry, "engines") != 0)
			continue;
		if (slow)
			advice = "the reference BLAS is slow; install libopenblas0-pthread";
		else if (!any)
			advice = "training needs an engine; install a plugin";
		add(d, "engine",
		    !item->ok ? no
		    : slow    ? warn
			      : ok,
		    text(d, "%s: %s", item->name, item->ok ? detail : item->reason), advice)
			->needed = any ? "no" : "yes"; /* one engine is enough */
	}
}

/* Count the items of a registry that work. */
static void check_registry(struct doctor *d, const char *registry, const char *what)
{
	size_t usable = rfl_inventory_usable(d->inv, registry), all = 0;

	for (size_t i = 0; i < d->inv->n; i++)
		all += strcmp(d->inv->items[i].registry, registry) == 0;
	add(d, registry, usable > 0 ? ok : no,
	    text(d, "%zu of %zu %s work here", usable, all, what),
	    usable == all ? NULL : text(d, "for the reasons, run: roofline list %s", registry))
		->needed = "yes";
}

/* Figures, images and the current folder. */
static void check_files(struct rfl_cli *cli, struct doctor *d)
{
	static const char elsewhere[] = "change to another folder, or write output files elsewhere";
	const char *good = "", *missing = NULL;
	struct rfl_jpeg *jpeg = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char folder[4096];

	for (size_t i = 0; i < d->inv->n; i++)
		if (d->inv->items[i].ok && strcmp(d->inv->items[i].registry, "surfaces") == 0)
			good = text(d, "%s%s%s", good, good[0] != '\0' ? ", " : "",
				    d->inv->items[i].name);
	add(d, "figures", good[0] != '\0' ? ok : no,
	    good[0] != '\0' ? good : "no output format works", NULL);
	for (size_t i = 0; i < d->inv->n; i++) {
		const struct rfl_item *item = &d->inv->items[i];

		if (!item->ok && strcmp(item->registry, "surfaces") == 0)
			add(d, item->name, no, item->reason, NULL)->needed =
				strcmp(item->name, "png") == 0 ? "yes" : "no";
	}
	for (int i = 0; i < RFL_FACE_COUNT && !missing; i++) {
		const char *path = text(d, "%s/fonts/%s", cli->data_dir, rfl_face_files[i]);

		missing = access(path, R_OK) == 0 ? NULL : path;
	}
	if (missing)
		add(d, "fonts", no, text(d, "%s is missing", missing),
		    "install fonts-liberation, then build again");
	else
		add(d, "fonts", ok, text(d, "%s/fonts", cli->data_dir), NULL);
	if (rfl_jpeg_new(&jpeg, &err) == RFL_OK)
		add(d, "jpeg", ok, "training on image folders works", NULL);
	else
		add(d, "jpeg", no, text(d, "%s", err.msg),
		    "not required: train on generated images with --synthetic");
	rfl_jpeg_free(jpeg);
	if (!getcwd(folder, sizeof(folder)))
		add(d, "folder", warn,
		    text(d, "the current folder is unknown: %s", strerror(errno)), elsewhere);
	else if (access(".", W_OK) != 0)
		add(d, "folder", warn, text(d, "%s is not writable", folder), elsewhere);
	else
		add(d, "folder", ok, text(d, "%s is writable", folder), NULL);
}

struct doctor_args {
	int format;
};

#define OPT(kind, member, ...) RFL_OPT(struct doctor_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

#define CELL(member) RFL_CELL(struct check, member)

static const struct rfl_column columns[] = {
	{ CELL(name), .key = "check", .title = "Check" },
	{ CELL(verdict), .key = "verdict", .title = "Verdict" },
	{ CELL(needed), .key = "needed", .title = "Needed" },
	{ CELL(finding), .key = "finding", .title = "Finding" },
	{ CELL(advice), .key = "advice", .title = "What to do" },
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const enum rfl_format format = (enum rfl_format)((const struct doctor_args *)args)->format;
	struct doctor d = { .arena = rfl_arena_new() };
	struct rfl_inventory *inv = NULL;
	struct rfl_table *t;
	bool works = true;
	enum rfl_rc rc;

	if (!d.arena)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rfl_cli_progress(cli, "checking this machine and its engines ...");
	rc = rfl_inventory_new(cli, NULL, 0, &inv, err);
	if (rc != RFL_OK)
		goto done;
	d.inv = inv;
	check_machine(cli, &d);
	check_gpus(&d);
	check_registry(&d, "models", "networks");
	check_engines(&d);
	check_registry(&d, "benchmarks", "loops that measure ceilings");
	check_files(cli, &d);
	rfl_cli_progress(cli, NULL);
	if (d.failed) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	for (size_t i = 0; i < d.n; i++)
		works &= strcmp(d.checks[i].needed, "no") == 0 || d.checks[i].verdict != no;
	if (format != RFL_FORMAT_TABLE) {
		t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
		rfl_table_add(t, d.checks, d.n, sizeof(d.checks[0]));
		rc = rfl_cli_put_table(cli, t, format, err);
	} else {
		for (const struct check *c = d.checks; c < d.checks + d.n; c++) {
			rfl_cli_printf(cli, "%-4s  %-10s  %s\n", c->verdict, c->name, c->finding);
			if (c->advice)
				rfl_cli_printf(cli, "%-4s  %-10s  -> %s\n", "", "", c->advice);
		}
		rfl_cli_printf(
			cli, "\n%s\n",
			works ? "The main functions work here: training, counting, measuring the "
				"machine, merging, drawing."
			      : "The main functions do not work here; see the lines marked 'no'.");
	}
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
	.summary = "check what works on this machine, and show how to fix the rest",
	.description =
		"Every check is reported as 'ok', 'warn' (works, but slowly or in part) or 'no' "
		"(not available); for the last two, the next line explains the fix. The exit code "
		"is 0 if the main functions work (training, counting, measuring the machine, "
		"merging, drawing a PNG "
		"file), and 1 if not. GPU and JPEG support are optional.",
	.opts = opts,
	.args_size = sizeof(struct doctor_args),
	.run = run,
};
