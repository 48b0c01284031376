/*
 * program.c - the runs of a program: warm-up, one run per pass of the counters, further repeats;
 * then its row. The program keeps our standard streams, so nothing is printed here.
 */
#include "runner/program.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/text.h"
#include "ledger/label.h"
#include "ledger/repeats/run_stats.h"
#include "machine/load.h"
#include "machine/machine.h"
#include "rfl_config.h"
#include "runner/burst/counted.h"
#include "runner/env/record.h"
#include "runner/program/regions.h"
#include "runner/run/parts.h"

#define ENERGY_S 10 /* between readings; the counters wrap later */

struct job {
	const struct rfl_program_config *config;
	struct rfl_program_result *ret;
	struct rfl_regions *regions;
	struct rfl_launch_spec spec;
	const char *env[2];
	struct rfl_launch *launch; /* started and not yet run */
	double *times_s;
	size_t ntimes, times_cap;
	struct rfl_energy energy; /* of a run */
	double energy_j;          /* of all timed runs */
};

static void ready(void *ctx)
{
	struct job *j = ctx;

	rfl_regions_take(j->regions);
	if (rfl_clock_s() - j->energy.at_s > ENERGY_S)
		rfl_energy_add(j->config->root, &j->energy);
}

static enum rfl_rc start(void *ctx, int *pid, struct rfl_err *err)
{
	struct job *j = ctx;
	enum rfl_rc rc = rfl_launch_new(&j->spec, &j->launch, err);

	if (rc == RFL_OK)
		*pid = (int)rfl_launch_pid(j->launch);
	return rc;
}

/* What the kernel knows of the whole tree. Page faults and switches are counted again by perf,
 * whose counts end with the wait. */
static void add_usage(const struct rfl_proc_result *p, struct rfl_ranges *ranges)
{
	const struct {
		const char *metric, *unit;
		double value;
	} rows[] = {
		{ "user_time", "s", p->user_s },
		{ "system_time", "s", p->system_s },
		{ "max_rss", "byte", p->max_rss_bytes },
		{ "major-faults", "", (double)p->major_faults },
		{ "minor-faults", "", (double)p->minor_faults },
		{ "involuntary_switches", "", (double)p->involuntary_switches },
		{ "voluntary_switches", "", (double)p->voluntary_switches },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		ranges->add(ranges, rows[i].metric, rows[i].unit, rows[i].value, NULL);
}

/* Run the started program to its end. RFL_EFAILED without a message: it was not successful. */
static enum rfl_rc run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct job *j = ctx;
	const struct rfl_program_config *c = j->config;
	struct rfl_proc_result *p = &j->ret->process;
	RFL_AUTOPTR(launch) launch = j->launch;
	enum rfl_rc rc = RFL_OK;
	double time_s;

	j->launch = NULL;
	if (!c->region)
		rc = ranges->begin(ranges, RFL_RANGE_PROCESS, c->name, err);
	rfl_regions_begin(j->regions, ranges);
	rfl_energy_begin(c->root, &j->energy);
	if (rc || (rc = rfl_launch_go(launch, err)) || (rc = rfl_launch_wait(launch, p, err)))
		return rc;
	rfl_energy_add(c->root, &j->energy);
	j->energy_j += j->energy.used_j;
	rfl_regions_end(j->regions);
	if (!c->region)
		rfl_regions_add_given(ranges, c->flops, c->bytes, true);
	add_usage(p, ranges);
	j->ret->ran = true;
	j->ret->status = p->exited ? p->exit_code : 128 + p->signal;
	j->ret->interrupted =
		p->cancelled || p->signal == SIGINT || p->signal == SIGTERM || p->signal == SIGHUP;
	time_s = c->region ? j->regions->time_s : p->wall_s;
	if (j->ret->status == 0 && isnan(time_s))
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: did not begin the region '%s' (share/roofline/region has the "
				"functions)",
				c->name, c->region);
	rfl_reserve(&j->times_s, &j->times_cap, j->ntimes + 1);
	j->times_s[j->ntimes++] = time_s;
	if (p->timed_out)
		rfl_buf_printf(&j->ret->warnings,
			       "its other processes were still running %.3g s after it ended, and "
			       "are not counted further; use --limit, or --wait main\n",
			       c->limit_s);
	return j->ret->status == 0 ? RFL_OK : RFL_EFAILED;
}

/* Why the CPU does not count the work of the program; NULL: it does. */
static const char *why_not_counted(const struct rfl_program_config *c)
{
	if (c->profiler)
		return rfl_profiler_no_work(c->profiler);
	return strcmp(c->backend, "cpu") == 0
		       ? NULL
		       : "events of the CPU do not count the work of a GPU; use --with ncu";
}

static enum rfl_rc run_all(struct job *j, struct rfl_err *err)
{
	const struct rfl_program_config *c = j->config;
	const struct rfl_source_request timed = { .no_events = "not counted, because of "
							       "--no-counters" };
	const struct rfl_source_request counted = { .precision = c->precision,
						    .multiplex = c->multiplex,
						    .no_flops = why_not_counted(c),
						    .no_dram = why_not_counted(c) };
	const struct rfl_workload workload = { .start = start, .run = run, .ctx = j };
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; rc == RFL_OK && (i <= c->warmup || (int64_t)j->ntimes < c->repeats);
	     i++) {
		const bool first = i == c->warmup;
		RFL_AUTO(captures) unused = { .n = 0 };

		j->ntimes = first ? 0 : j->ntimes;
		j->energy_j = first ? 0 : j->energy_j;
		rc = rfl_source_perf.measure(first && !c->no_counters ? &counted : &timed,
					     &workload, first ? &j->ret->captures : &unused, err);
	}
	rfl_launch_free(j->launch); /* a source that failed between start() and run() */
	j->launch = NULL;
	return rc;
}

/* ---- the row ---- */

static void fill_status(const struct rfl_program_config *c, const struct rfl_program_result *r,
			struct rfl_ledger_row *row)
{
	const struct rfl_proc_result *p = &r->process;
	const int n = p->signal;
	RFL_AUTO(buf) text = { .len = 0 };

	row->error_code = r->status == 0 ? -1 : p->exited ? p->exit_code : n;
	if (p->exited && r->status != 0)
		rfl_buf_printf(&text, "%s ended with status %d", c->argv[0], p->exit_code);
	else if (r->status != 0)
		rfl_buf_printf(&text, "%s was %s by signal %d (%s)", c->argv[0],
			       p->cancelled ? "interrupted" : "killed", n, strsignal(n));
	rfl_field_set(&row->status, r->status == 0   ? "ok"
				    : p->exited      ? "failed"
				    : r->interrupted ? "interrupted"
						     : "crash");
	rfl_field_set(&row->error_text, text.len ? rfl_buf_str(&text) : NULL);
}

static void fill_times(struct job *j, struct rfl_ledger_row *row)
{
	RFL_AUTOFREE double *ms = rfl_alloc_array(j->ntimes + 1, sizeof(*ms));
	char flags[RFL_RUN_FLAGS_MAX];
	struct rfl_run_stats s;

	if (j->ret->status != 0 || j->ntimes == 0)
		return;
	row->wall_s = 0;
	for (size_t i = 0; i < j->ntimes; i++) {
		ms[i] = j->times_s[i] * 1e3;
		row->wall_s += j->times_s[i];
	}
	s = rfl_run_stats_of(ms, j->ntimes);
	j->ret->time = rfl_stats_of(j->times_s, j->ntimes);
	row->iters = (int64_t)j->ntimes;
	rfl_run__fill_stats(&s, row);
	row->samples_per_s = (double)(row->batch * row->iters) / row->wall_s;
	if (!j->config->region && j->energy_j > 0) { /* else the runs are too short */
		row->energy_j_per_step = j->energy_j / (double)row->iters;
		row->samples_per_j = (double)row->batch / row->energy_j_per_step;
	}
	if (j->ntimes >= RFL_RUN_FEW_STEPS)
		rfl_field_set(
			&row->flags,
			rfl_run_flags(&s, &(struct rfl_run_signs){ .data_wait_mean = NAN }, flags));
}

const struct rfl_capture *rfl_program_work(const struct rfl_program_result *r)
{
	if (r->profiled.n > 0 && strcmp(r->profiled.captures[0]->source, "ncu") == 0)
		return r->profiled.captures[0];
	return r->captures.n > 0 ? r->captures.captures[0] : NULL;
}

/* The precision of most counted FLOPs; fp32 if they are mixed or have no ceiling. */
static const char *find_precision(const struct rfl_capture *work)
{
	const enum rfl_quantity most =
		work ? rfl_amounts_most_flops(work->total) : RFL_QUANTITY_COUNT;

	return most == RFL_QUANTITY_COUNT || most == RFL_QUANTITY_FLOPS_MIXED ||
			       most == RFL_QUANTITY_FLOPS_TENSOR_FP8 ||
			       most == RFL_QUANTITY_FLOPS_TENSOR_FP4
		       ? "fp32"
		       : rfl_quantity_precision(most);
}

static void fill_row(struct job *j, const struct rfl_machine *machine)
{
	const struct rfl_program_config *c = j->config;
	struct rfl_program_result *r = j->ret;
	struct rfl_ledger_row *row = &r->row;
	const struct rfl_counted_asked asked = { .precision = c->precision };
	RFL_AUTO(buf) status = { .len = 0 };
	char hash[17];

	row->schema_version = RFL_LEDGER_SCHEMA;
	row->batch = row->requested_batch = c->batch;
	row->warmup = c->warmup;
	row->host_peak_bytes = r->process.max_rss_bytes;
	const struct {
		char **field;
		const char *text;
	} texts[] = {
		{ &row->backend, c->backend },
		{ &row->model, c->name },
		{ &row->mode, RFL_LEDGER_PROGRAM },
		{ &row->precision,
		  c->precision ? c->precision : find_precision(rfl_program_work(r)) },
		{ &row->command, c->command },
		{ &row->device_name, strcmp(c->backend, "cpu") == 0 ? machine->cpu_name : NULL },
		{ &row->host, machine->host },
		{ &row->kernel, machine->kernel },
		{ &row->version, RFL_VERSION },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++)
		rfl_field_set(texts[i].field, texts[i].text);
	rfl_hash64_text(rfl_hash64(0, c->command, strlen(c->command)), hash);
	rfl_field_set(&row->config_hash, hash);
	fill_status(c, r, row);
	fill_times(j, row);
	if (rfl_program_work(r) && (!c->no_counters || r->profiled.n > 0)) {
		rfl_run__fill_counts(rfl_program_work(r), &asked, row, &status);
		rfl_field_set(&row->counters_status, rfl_buf_str(&status));
	}
}

static enum rfl_rc make_label(struct job *j, struct rfl_err *err)
{
	const struct rfl_program_config *c = j->config;
	struct rfl_ledger_row *row = &j->ret->row;
	char env[49], label[RFL_LABEL_MAX + 1];
	RFL_AUTOFREE char *time_dir = rfl_path_join(c->log_dir, "time");
	struct rfl_label parts;
	enum rfl_rc rc = rfl_label_env(c->env, c->label, c->name, c->backend, env, err);

	if (rc)
		return rc;
	rfl_field_set(&row->env, env);
	if (c->label)
		snprintf(label, sizeof(label), "%s", c->label);
	else if ((rc = rfl_label_next(env, row->model, row->precision, row->batch, j->ret->ledger,
				      time_dir, label, err)))
		return rc;
	rfl_label_parse(label, row->model, &parts);
	row->repeat = parts.run;
	rfl_field_set(&row->label, label);
	return RFL_OK;
}

/* Write the capture, the environment and the row; the log directory is locked. */
static enum rfl_rc record(struct job *j, struct rfl_err *err)
{
	const struct rfl_program_config *c = j->config;
	struct rfl_program_result *r = j->ret;
	struct rfl_ledger_row *row = &r->row;
	RFL_AUTO(env_result) environment = { .document = NULL };
	struct rfl_env_spec spec = { .log_dir = c->log_dir, .root = "" };
	struct rfl_captures *const captures[] = { &r->captures, &r->profiled };
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = make_label(j, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < RFL_ARRAY_LEN(captures); i++) {
		if (captures[i]->n == 0)
			continue;
		rfl_capture_identify(captures[i], 0, row->label, row->run_id, row->timestamp_utc);
		if ((rc = rfl_counters_append(r->counters, captures[i], err)))
			return rc;
	}
	spec.env = row->env;
	if (rfl_env_record(&spec, &environment, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "the environment was not recorded: %s", why.msg);
	rc = rfl_ledger_append(r->ledger, row, err);
	r->recorded = rc == RFL_OK;
	return rc;
}

/* Find what would prevent recording before the program runs for an hour. */
static enum rfl_rc check(const struct rfl_program_config *c, struct rfl_program_result *r,
			 struct rfl_err *err)
{
	char env[49], stem[RFL_LABEL_STEM];
	enum rfl_rc rc;

	if (snprintf(r->ledger, sizeof(r->ledger), "%s/metrics.csv", c->log_dir) >=
		    (int)sizeof(r->ledger) ||
	    snprintf(r->counters, sizeof(r->counters), "%s/counters.csv", c->log_dir) >=
		    (int)sizeof(r->counters))
		return rfl_fail(err, RFL_EINVAL, ENAMETOOLONG, "%.200s...: %s", c->log_dir,
				strerror(ENAMETOOLONG));
	if ((rc = rfl_label_env(c->env, c->label, c->name, c->backend, env, err)) ||
	    (rc = rfl_label_stem(env, c->name, "fp32", c->batch, 1, stem, err)) ||
	    (c->label && (rc = rfl_label_check(c->label, err))) ||
	    (rc = rfl_ledger_check(r->ledger, err)) || (rc = rfl_counters_check(r->counters, err)))
		return rc;
	return RFL_OK;
}

enum rfl_rc rfl_program_run(const struct rfl_program_config *c, struct rfl_program_result *ret,
			    struct rfl_err *err)
{
	struct job j = { .config = c, .ret = ret };
	RFL_AUTOPTR(regions) regions = NULL;
	RFL_AUTOPTR(machine) machine = NULL;
	struct rfl_err why = RFL_ERR_INIT, unprofiled = RFL_ERR_INIT;
	RFL_AUTOFREE char *lock_path = NULL;
	int lock = -1;
	enum rfl_rc rc, unlocked;

	*ret = (struct rfl_program_result){ .status = 0 };
	rfl_ledger_row_init(&ret->row);
	rfl_captures_init(&ret->captures);
	rfl_captures_init(&ret->profiled);
	ret->time = rfl_stats_of(NULL, 0);
	if ((rc = check(c, ret, err)) || (rc = rfl_machine_new(&machine, err)) ||
	    (rc = rfl_regions_new(c->region, c->flops, c->bytes, &regions, err)))
		return rc;
	rfl_run__make_id(0, &ret->row);
	j.regions = regions;
	j.env[0] = regions->variable;
	j.spec = (struct rfl_launch_spec){ .argv = c->argv,
					   .env = j.env,
					   .all = c->all,
					   .limit_s = c->limit_s,
					   .watch_fd = regions->fd,
					   .ready = ready,
					   .ctx = &j };
	rc = run_all(&j, &why);
	rfl_buf_puts(&ret->warnings, rfl_buf_str(&regions->warnings));
	if (rc == RFL_EUNAVAILABLE && !ret->ran) /* as shells do */
		ret->status = why.native == ENOENT || why.native == ENOTDIR ? 127 : 126;
	if (rc && !(rc == RFL_EFAILED && ret->status != 0)) {
		free(j.times_s);
		return rfl_err_pass(err, &why);
	}
	if (c->profiler && ret->status == 0)
		(void)!rfl_profiler_run(c->profiler, c->argv, c->log_dir, ret->row.run_id,
					&ret->profiled, &ret->profiled_status, &ret->warnings,
					&unprofiled);
	fill_row(&j, machine);
	if (unprofiled.rc)
		rfl_field_set(&ret->row.counters_status, unprofiled.msg);
	free(j.times_s);
	lock_path = rfl_path_join(c->log_dir, ".lock");
	if ((rc = rfl_file_mkdirs(c->log_dir, err)) || (rc = rfl_file_lock(lock_path, &lock, err)))
		return rc;
	rc = record(&j, err);
	unlocked = rfl_file_unlock(lock, lock_path, err);
	if (!rc && !unlocked && unprofiled.rc)
		return rfl_err_pass(err, &unprofiled);
	return rc ? rc : unlocked;
}

void rfl_program_result_fini(struct rfl_program_result *r)
{
	rfl_ledger_row_fini(&r->row);
	rfl_captures_fini(&r->captures);
	rfl_captures_fini(&r->profiled);
	rfl_buf_fini(&r->warnings);
}
