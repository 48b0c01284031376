/*
 * record.c - concludes a run: its status, label and ledger row, the table of steps, the time log in
 * the format of GNU time -v, the rows of counters and the record of the environment.
 */
#include "runner/run/parts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "complexity/net/file.h"
#include "machine/machine.h"
#include "profile/capture.h"
#include "runner/burst/counted.h"
#include "runner/env/record.h"

#define NEAR_THE_LIMIT 0.9 /* part of the memory limit above which SIGKILL means "oom" */

static const char *status_of_failure(enum rfl_rc rc)
{
	switch (rc) {
	case RFL_EDEVMEM:
	case RFL_ENOMEM:
		return "oom";
	case RFL_EUNSUPPORTED:
	case RFL_EUNAVAILABLE:
	case RFL_ENOTFOUND:
		return "unsupported";
	case RFL_EINTR:
		return "interrupted";
	case RFL_ETIMEOUT: /* another process did not join */
		return "timeout";
	default:
		return "failed";
	}
}

/* Set status, error_code (signal or exit code; -1: none) and error_text. @return RFL_OK, or why the
 * run is not ok */
static enum rfl_rc judge(const struct rfl_run__received *h, const struct rfl_proc_result *p,
			 bool losses, double limit, struct rfl_ledger_row *row)
{
	const char *status = "crash";
	char text[1200] = "", peak[RFL_NUM_MAX], most[RFL_NUM_MAX];
	enum rfl_rc why = RFL_EFAILED;
	struct rlimit space;
	int64_t kills;

	row->error_code = -1;
	if (h->timed) { /* measured: later failures do not matter */
		const bool finite = !losses || isfinite(h->r.burst.loss_last);

		status = finite ? "ok" : "nan";
		why = finite ? RFL_OK : RFL_EFAILED;
		if (!finite)
			snprintf(text, sizeof(text),
				 "the loss is not finite at the last step: try a smaller --lr");
	} else if (p->cancelled) {
		status = "interrupted";
		why = RFL_EINTR;
		snprintf(text, sizeof(text), "%s",
			 h->failed && h->rc == RFL_EINTR
				 ? h->text
				 : "stopped by a signal sent to the command");
	} else if (p->timed_out) {
		status = "timeout";
		why = RFL_ETIMEOUT;
		snprintf(text, sizeof(text), "not finished after %.3g s", p->wall_s);
	} else if (h->failed) {
		status = status_of_failure(h->rc);
		why = h->rc;
		row->error_code = 1;
		/* most systems grant a CPU more memory than they have, up to a limit */
		if (h->rc == RFL_EDEVMEM && h->r.device == RFL_DEVICE_CPU &&
		    getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
			snprintf(text, sizeof(text),
				 "%s; the address space is limited to %s (ulimit -v)", h->text,
				 rfl_num_bytes((double)space.rlim_cur, most, sizeof(most)));
		else
			snprintf(text, sizeof(text), "%s", h->text);
	} else if (p->exited) {
		row->error_code = p->exit_code;
		snprintf(text, sizeof(text), "ended with exit code %d and no result", p->exit_code);
	} else {
		row->error_code = p->signal;
		snprintf(text, sizeof(text), "killed by signal %d (%s) %s", p->signal,
			 strsignal(p->signal), h->ready ? "after setup" : "during setup");
		if (p->signal == SIGINT || p->signal == SIGTERM || p->signal == SIGHUP) {
			status = "interrupted";
			why = RFL_EINTR;
		}
		/* SIGKILL means out of memory near the limit, or if the kernel counted an OOM kill:
		 * other processes share the memory, so the child may have used little of it */
		kills = rfl_machine_oom_kills("");
		if (p->signal == SIGKILL &&
		    ((h->oom_kills >= 0 && kills > h->oom_kills) ||
		     (limit > 0 && p->max_rss_bytes > NEAR_THE_LIMIT * limit))) {
			status = "oom";
			snprintf(text, sizeof(text),
				 "killed by the system while using %s of a limit of %s: use a "
				 "smaller batch",
				 rfl_num_bytes(p->max_rss_bytes, peak, sizeof(peak)),
				 rfl_num_bytes(limit, most, sizeof(most)));
		}
	}
	rfl_field_set(&row->status, status);
	rfl_field_set(&row->error_text, text);
	return why;
}

/* ---- label and id ---- */

enum rfl_rc rfl_run__rank_label(const char *label, int rank, char ret[RFL_LABEL_MAX + 1],
				struct rfl_err *err)
{
	const int len = snprintf(ret, RFL_LABEL_MAX + 1, "%s_rank%d", label, rank);

	if (len > RFL_LABEL_MAX)
		return rfl_fail(err, RFL_EINVAL, 0,
				"label '%s': too long, because the label of rank %d would have %d "
				"characters; the maximum is %d",
				label, rank, len, RFL_LABEL_MAX);
	return RFL_OK;
}

/* Set env, label and repeat of a row. The ledger is locked, so a label generated here is unique. */
static enum rfl_rc make_label(struct rfl_run__state *run, struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	const int64_t agreed = run->received.run_number;
	const char *backend = row->backend ? row->backend : rfl_run_likely_device();
	char env[49], label[RFL_LABEL_MAX + 1], stem[RFL_LABEL_STEM], time_dir[4096];
	struct rfl_label parts;
	enum rfl_rc rc;

	if ((rc = rfl_label_env(c->env, c->label, row->model, backend, env, err)))
		return rc;
	rfl_field_set(&row->env, env);
	if (c->label) {
		snprintf(label, sizeof(label), "%s", c->label);
	} else if (c->world.size > 1) {
		rc = rfl_label_stem(row->env, row->model, row->precision, row->micro_batch,
				    (int)row->world_size, stem, err);
		snprintf(label, sizeof(label), "%s%" PRId64, rc ? "" : stem,
			 agreed > 0 ? agreed : run->number);
	} else {
		snprintf(time_dir, sizeof(time_dir), "%s/time", c->log_dir);
		rc = rfl_label_next(row->env, row->model, row->precision, row->micro_batch,
				    run->ledger_path, time_dir, label, err);
	}
	if (rc == RFL_OK && c->world.size > 1) {
		memcpy(run->world_label, label, sizeof(label));
		rc = rfl_run__rank_label(run->world_label, c->world.rank, label, err);
	}
	if (rc)
		return rc;
	rfl_label_parse(label, row->model, &parts);
	row->repeat = parts.run;
	rfl_field_set(&row->label, label);
	if (!c->label || c->world.rank > 0)
		return RFL_OK;

	/* Labels are free text, but other tools read a precision or batch in the generated form:
	 * warn if it is wrong. Only the first process warns; the total batch is accepted, too. */
	rfl_label_parse(c->label, row->model, &parts);
	if (parts.precision[0] && !rfl_text_same(parts.precision, row->precision))
		rfl_log(RFL_LOG_WARN,
			"--label %s: contains %s, but the run uses %s; correct the label", c->label,
			parts.precision, row->precision);
	if (parts.batch >= 0 && parts.batch != row->micro_batch && parts.batch != row->batch &&
	    parts.batch != row->requested_batch && parts.batch != row->batch * c->world.size)
		rfl_log(RFL_LOG_WARN,
			"--label %s: contains batch %" PRId64 ", but the run uses %" PRId64
			"; correct the label",
			c->label, parts.batch, row->micro_batch);
	return RFL_OK;
}

void rfl_run__make_id(int rank, struct rfl_ledger_row *row)
{
	char iso[RFL_TIME_ISO_SIZE], id[64], host[256] = "";
	int64_t now = rfl_clock_ns();
	pid_t pid = getpid();
	uint64_t h;

	gethostname(host, sizeof(host) - 1);
	h = rfl_hash64(rfl_hash64((uint64_t)rank, host, strlen(host)), &pid, sizeof(pid));
	h = rfl_hash64(h, &now, sizeof(now));
	rfl_clock_iso(iso);
	snprintf(id, sizeof(id), "%.4s%.2s%.2sT%.2s%.2s%.2s-%08" PRIx32, iso, iso + 5, iso + 8,
		 iso + 11, iso + 14, iso + 17, (uint32_t)(h ^ h >> 32));
	rfl_field_set(&row->run_id, id);
	rfl_field_set(&row->timestamp_utc, iso);
}

/* Written in pieces, because the table of ten million steps takes a gigabyte. */
#define PIECE ((size_t)8 << 20)

enum rfl_rc rfl_run__write_steps(const char *path, const struct rfl_burst *burst,
				 struct rfl_err *err)
{
	static const char *const step_columns[] = {
		"step",        "data_wait_ms", "upload_ms", "forward_ms",
		"backward_ms", "optimizer_ms", "step_ms",   "loss",
	};
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err), unlocked;
	char text[RFL_ARRAY_LEN(step_columns)][RFL_NUM_MAX];
	const char *fields[RFL_ARRAY_LEN(step_columns)];
	RFL_AUTO(buf) piece = { .len = 0 };
	bool first = true;
	int fd = -1;

	for (size_t v = 0; v < RFL_ARRAY_LEN(fields); v++)
		fields[v] = text[v];
	rfl_csv_write_row(&piece, step_columns, RFL_ARRAY_LEN(step_columns));
	for (int64_t i = 0; i < burst->nsteps && rc == RFL_OK; i++) {
		const struct rfl_burst_step *s = &burst->steps[i];
		const double values[] = {
			s->data_wait_s * 1e3,
			s->upload_s * 1e3,
			s->forward_s * 1e3,
			s->backward_s * 1e3,
			s->optimizer_s * 1e3,
			s->total_s * 1e3,
			s->loss,
		};

		snprintf(text[0], sizeof(text[0]), "%" PRId64, i);
		for (size_t v = 0; v < RFL_ARRAY_LEN(values); v++)
			(void)rfl_num_exact(values[v], text[v + 1]);
		rfl_csv_write_row(&piece, fields, RFL_ARRAY_LEN(fields));
		if (piece.len < PIECE && i + 1 < burst->nsteps && !piece.failed)
			continue;

		rc = rfl_buf_check(&piece, path, err);
		if (rc == RFL_OK && first) {
			rc = rfl_file_create(path, piece.data, piece.len, err);
		} else if (rc == RFL_OK) {
			rc = rfl_file_lock(path, &fd, err);
			if (rc == RFL_OK)
				rc = rfl_file_append(fd, path, piece.data, piece.len, err);
			unlocked = rfl_file_unlock(fd, path, err);
			rc = rc ? rc : unlocked;
			if (rc)
				(void)unlink(path); /* leave no partial table */
		}
		rfl_buf_reset(&piece);
		first = false;
	}
	return rc;
}

/* Write the output of GNU time 1.9, with its zeros for values that Linux does not count. */
static void put_record(struct rfl_buf *out, const char *command_line,
		       const struct rfl_proc_result *p)
{
	const double busy = p->wall_s > 0 ? (p->user_s + p->system_s) / p->wall_s * 100.0 : 0;
	const int64_t centi = (int64_t)llrint(p->wall_s * 100.0), s = centi / 100;

	if (!p->exited)
		rfl_buf_printf(out, "Command terminated by signal %d\n", p->signal);
	else if (p->exit_code)
		rfl_buf_printf(out, "Command exited with non-zero status %d\n", p->exit_code);
	rfl_buf_printf(out,
		       "\tCommand being timed: \"%s\"\n"
		       "\tUser time (seconds): %.2f\n"
		       "\tSystem time (seconds): %.2f\n"
		       "\tPercent of CPU this job got: %.0f%%\n"
		       "\tElapsed (wall clock) time (h:mm:ss or m:ss): ",
		       command_line, p->user_s, p->system_s, busy);
	if (s >= 3600)
		rfl_buf_printf(out, "%" PRId64 ":%02" PRId64 ":%02" PRId64 "\n", s / 3600,
			       s / 60 % 60, s % 60);
	else
		rfl_buf_printf(out, "%" PRId64 ":%02" PRId64 ".%02" PRId64 "\n", s / 60, s % 60,
			       centi % 100);
	rfl_buf_printf(out,
		       "\tAverage shared text size (kbytes): 0\n"
		       "\tAverage unshared data size (kbytes): 0\n"
		       "\tAverage stack size (kbytes): 0\n"
		       "\tAverage total size (kbytes): 0\n"
		       "\tMaximum resident set size (kbytes): %.0f\n"
		       "\tAverage resident set size (kbytes): 0\n"
		       "\tMajor (requiring I/O) page faults: %ld\n"
		       "\tMinor (reclaiming a frame) page faults: %ld\n"
		       "\tVoluntary context switches: %ld\n"
		       "\tInvoluntary context switches: %ld\n"
		       "\tSwaps: 0\n"
		       "\tFile system inputs: %ld\n"
		       "\tFile system outputs: %ld\n"
		       "\tSocket messages sent: 0\n"
		       "\tSocket messages received: 0\n"
		       "\tSignals delivered: 0\n"
		       "\tPage size (bytes): %ld\n"
		       "\tExit status: %d\n",
		       p->max_rss_bytes / 1024.0, p->major_faults, p->minor_faults,
		       p->voluntary_switches, p->involuntary_switches, p->fs_inputs, p->fs_outputs,
		       sysconf(_SC_PAGESIZE), p->exited ? p->exit_code : 0);
}

/* Create time/<label>_<stamp>.txt, or <label>_<stamp>_2.txt and so on if that exists. */
static enum rfl_rc write_time_log(const struct rfl_run__state *run, struct rfl_run_result *ret,
				  struct rfl_err *err)
{
	const struct rfl_ledger_row *row = &ret->row;
	char dir[4096], backend[16], stamp[RFL_TIME_ISO_SIZE], nth[16] = "";
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTO(buf) out = { .len = 0 };
	enum rfl_rc rc;
	int len;

	snprintf(backend, sizeof(backend), "%s", row->backend ? row->backend : "");
	for (char *p = backend; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	if (!isnan(row->wall_s))
		rfl_buf_printf(&out,
			       "MEASURED_SEC=%.6f IMGS_PER_SEC=%.2f BATCH=%" PRId64
			       " ARCH=%s BACKEND=%s\n",
			       row->wall_s, row->samples_per_s, row->batch, row->model, backend);
	put_record(&out, run->host->command_line, &run->process);
	snprintf(dir, sizeof(dir), "%s/time", run->config->log_dir);
	if ((rc = rfl_buf_check(&out, "time log", err)) || (rc = rfl_file_mkdirs(dir, err)))
		return rc;

	rfl_clock_stamp(stamp);
	for (unsigned n = 1; n == 1 || why.native == EEXIST; n++) {
		rfl_err_clear(&why);
		if (n > 1)
			snprintf(nth, sizeof(nth), "_%u", n);
		len = snprintf(ret->time_log, sizeof(ret->time_log), "%s/%s_%s%s.txt", dir,
			       row->label, stamp, nth);
		if (len < 0 || (size_t)len >= sizeof(ret->time_log))
			rfl_fail(&why, RFL_EIO, ENAMETOOLONG, "%s: %s", dir,
				 strerror(ENAMETOOLONG));
		else
			(void)!rfl_file_create(ret->time_log, out.data, out.len, &why);
	}
	if (why.rc)
		rc = rfl_fail(err, why.rc, why.native, "%s", why.msg);
	return rc;
}

/* ---- counted steps ---- */

/* a / b; NaN unless both cover the same part of the same launches. */
static double ratio(const struct rfl_amount *a, const struct rfl_amount *b)
{
	const bool same = a->launches == b->launches &&
			  (a->validity == RFL_VALID_PARTIAL) == (b->validity == RFL_VALID_PARTIAL);

	return same && b->value > 0 ? a->value / b->value : (double)NAN;
}

static void put_failure(enum rfl_rc rc, const char *text, struct rfl_buf *out)
{
	const bool absent = rc == RFL_EUNAVAILABLE || rc == RFL_EUNSUPPORTED || rc == RFL_ENOTFOUND;

	rfl_buf_printf(out, "%s: %s", absent ? "unavailable" : "failed", text);
}

void rfl_run__fill_counts(const struct rfl_capture *c, const struct rfl_counted_asked *asked,
			  struct rfl_ledger_row *row, struct rfl_buf *out)
{
	const struct rfl_amount *busy;

	rfl_counted_status(c, asked, out);

	row->counter_passes = c->passes;
	row->counted_flops_per_step = rfl_counted_per_step(c, asked, RFL_QUANTITY_FLOPS);
	row->counted_dram_bytes_per_step = rfl_counted_per_step(c, asked, RFL_QUANTITY_DRAM);
	/* bytes per second, because sources measure idle traffic for different durations */
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == RFL_RANGE_IDLE) {
			row->idle_dram_bytes_per_s = ratio(&c->ranges[i].amount[RFL_QUANTITY_DRAM],
							   &c->ranges[i].amount[RFL_QUANTITY_TIME]);
			break;
		}
	row->ipc = rfl_capture_ipc(c);
	row->cache_misses_per_step = rfl_counted_per_step(c, asked, RFL_QUANTITY_CACHE_MISSES);
	/* a CPU's cycles are its threads'; a GPU's are elapsed cycles */
	busy = &c->total[RFL_QUANTITY_TASK_CLOCK];
	row->effective_clock_hz = ratio(&c->total[RFL_QUANTITY_CYCLES],
					isnan(busy->value) ? &c->total[RFL_QUANTITY_TIME] : busy);
	row->selftest_flops_ratio = rfl_counted_self_test(c, "flops");
	row->selftest_dram_ratio = rfl_counted_self_test(c, "dram");
	rfl_field_set(&row->counters_source, c->source);
}

/* Load a table from the child into run->captures, and write its status to `out`. */
static void take_captures(struct rfl_run__state *run, const struct rfl_buf *table, size_t sent,
			  struct rfl_ledger_row *row, struct rfl_buf *out)
{
	struct rfl_err bad = RFL_ERR_INIT;
	struct rfl_captures *to = &run->captures;
	const struct rfl_counted_asked asked = {
		.sets = rfl_counted_sets((enum rfl_device)run->received.r.device,
					 (unsigned)run->config->counter_sets),
		.precision = rfl_precision_names[run->config->precision],
	};
	enum rfl_rc rc = rfl_buf_check(table, "counters", &bad);

	if (rc == RFL_OK && table->len != sent)
		rc = rfl_fail(&bad, RFL_EFORMAT, 0,
			      "only %zu of %zu bytes of counts arrived from the run's child",
			      table->len, sent);
	if (rc == RFL_OK)
		rc = rfl_counters_load("counters of the run's child", rfl_buf_str(table),
				       table->len, to, &bad);
	if (rc == RFL_OK && to->n == 0)
		rc = rfl_fail(&bad, RFL_EFORMAT, 0, "the source returned no counters");
	if (rc) {
		put_failure(rc, bad.msg, out);
		return;
	}
	rfl_run__fill_counts(to->captures[0], &asked, row, out);
}

/* If counters were requested, fill counters_status, the columns after it and run->captures. */
static void fill_counters(struct rfl_run__state *run, struct rfl_ledger_row *row)
{
	const struct rfl_run__received *h = &run->received;
	const struct rfl_proc_result *p = &run->process;
	RFL_AUTO(buf) status = { .len = 0 };

	if (run->config->counters == RFL_DETAIL_OFF)
		return;
	if (!h->counted && h->so_far.len > 0) {
		take_captures(run, &h->so_far, h->so_far_len, row, &status);
		rfl_buf_puts(&status, "; ");
	}
	if (h->counted && h->counted_rc != RFL_OK)
		put_failure(h->counted_rc, h->counted_text, &status);
	else if (h->counted)
		take_captures(run, &h->counters, h->counters_len, row, &status);
	else if (!h->timed)
		rfl_buf_puts(&status, "unavailable: the run ended before its counted steps");
	else if (h->late)
		rfl_buf_printf(
			&status,
			"timeout: not finished after %.3g s; leave flops out of --counter-sets",
			h->within_s);
	else if (p->cancelled)
		rfl_buf_puts(&status, "interrupted: stopped by a signal sent to the command");
	else if (p->timed_out)
		rfl_buf_printf(&status, "timeout: not finished after %.3g s", p->wall_s);
	else if (!p->exited)
		rfl_buf_printf(&status, "crash: signal %d (%s)", p->signal, strsignal(p->signal));
	else
		rfl_buf_printf(&status, "crash: exit code %d, before counting was complete",
			       p->exit_code);
	rfl_field_set(&row->counters_status, rfl_buf_str(&status));
}

/* ---- the row, written last ---- */

static enum rfl_rc write_steps(const struct rfl_run__state *run, const struct rfl_burst *burst,
			       struct rfl_run_result *ret, struct rfl_err *err)
{
	snprintf(ret->steps_file, sizeof(ret->steps_file), "%s/steps/%s.csv", run->config->log_dir,
		 ret->row.run_id);
	return rfl_run__write_steps(ret->steps_file, burst, err);
}

/* Write the steps of a training run that was interrupted. */
static void write_steps_so_far(struct rfl_run__state *run, struct rfl_run_result *ret)
{
	struct rfl_burst done = run->received.r.burst;

	done.nsteps = 0;
	while (done.steps && done.nsteps < run->received.r.burst.nsteps &&
	       !isnan(done.steps[done.nsteps].total_s))
		done.nsteps++;
	if (done.nsteps > 0)
		(void)write_steps(run, &done, ret, &run->trouble);
}

/* Write the timeline of the profiled step. If no status arrived, the row has that reason. */
static void write_memory(const struct rfl_run__state *run, struct rfl_run_result *ret,
			 struct rfl_err *err)
{
	const struct rfl_buf *csv = &run->received.timeline;
	struct rfl_ledger_row *row = &ret->row;

	if (!run->config->profile_memory)
		return;
	if (!row->mem_status)
		rfl_field_set(&row->mem_status,
			      "unavailable: the run ended before its profiled step");
	if (!rfl_text_same(row->mem_status, "ok"))
		return;
	(void)snprintf(ret->memory_file, sizeof(ret->memory_file), "%s/memory/%s.csv",
		       run->config->log_dir, row->run_id);
	if (rfl_buf_check(csv, ret->memory_file, err) != RFL_OK ||
	    rfl_file_mkdirs_for(ret->memory_file, err) != RFL_OK ||
	    rfl_file_create(ret->memory_file, csv->data, csv->len, err) != RFL_OK)
		ret->memory_file[0] = '\0';
}

/* Keep the configuration of a language model under the digest of the network of its step. */
static void keep_configuration(const struct rfl_run__state *run, const char *dir,
			       struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	char digest[17], path[4096];

	if (rfl_run__digest(run->config, run->net, digest, err) ||
	    rfl_file_read(run->config->arch, &text, err))
		return;
	(void)snprintf(path, sizeof(path), "%s/%s.json", dir, digest);
	if (!rfl_file_exists(path) && rfl_file_mkdirs_for(path, err) == RFL_OK)
		(void)!rfl_file_write(path, text.data, text.len, err);
}

/* Keep the network of a file, which may change, for its count. */
static void write_network(const struct rfl_run__state *run, struct rfl_err *err)
{
	RFL_AUTOFREE char *dir = rfl_path_join(run->config->log_dir, "networks");

	if (!rfl_net_is_file(run->config->arch))
		return;
	if (rfl_run__cache_tokens(run->config))
		keep_configuration(run, dir, err);
	else
		(void)!rfl_net_keep(dir, run->net, err);
}

/* If the run is ok, record a failure after the measurement in its row. */
static void note_trouble(const struct rfl_run__state *run, struct rfl_ledger_row *row)
{
	if (run->trouble.rc && !row->error_text)
		rfl_field_set(&row->error_text, run->trouble.msg);
}

static enum rfl_rc append(const struct rfl_run__state *run, struct rfl_run_result *ret,
			  struct rfl_err *err)
{
	const struct rfl_run_host *o = run->host;
	enum rfl_rc rc = rfl_ledger_append(run->ledger_path, &ret->row, err);

	ret->recorded = rc == RFL_OK;
	if (rc && o->unrecorded)
		o->unrecorded(run->ledger_path, &ret->row, o->ctx);
	return rc;
}

static void identify(const struct rfl_run__state *run, struct rfl_ledger_row *row)
{
	RFL_AUTO(buf) command = { .len = 0 };
	char hash[17];

	rfl_run__config_hash(run->config, row, hash);
	if (run->host->command)
		run->host->command(run->config, row, &command);
	rfl_field_set(&row->config_hash, hash);
	rfl_field_set(&row->cell, run->host->cell);
	rfl_field_set(&row->command, rfl_buf_str(&command));
}

/* After the row of rank 0, write the combined row, which becomes the result. */
static enum rfl_rc record_world(struct rfl_run__state *run, struct rfl_run_result *ret,
				struct rfl_err *err)
{
	struct rfl_err *trouble = &run->trouble;
	struct rfl_ledger_row all;

	rfl_ledger_row_init(&all);
	(void)rfl_run__fill_world_row(run, &ret->row, &all, trouble);
	rfl_run__make_id(run->config->world.size, &all);
	rfl_field_set(&all.timestamp_utc, ret->row.timestamp_utc);
	rfl_field_set(&all.env, ret->row.env);
	rfl_field_set(&all.label, run->world_label);
	identify(run, &all);
	all.repeat = ret->row.repeat;
	rfl_ledger_row_fini(&ret->row);
	ret->row = all;
	if (ret->rc == RFL_OK && (!all.status || strcmp(all.status, "ok") != 0))
		ret->rc = RFL_EFAILED;
	if (run->received.united)
		(void)write_steps(run, &run->received.all.burst, ret, trouble);
	note_trouble(run, &ret->row);
	return append(run, ret, err);
}

/* Write the other files, then the row that refers to them, even if a file could not be written. The
 * log directory is locked. */
static enum rfl_rc record(struct rfl_run__state *run, struct rfl_run_result *ret,
			  struct rfl_err *err)
{
	const struct rfl_run_config *c = run->config;
	struct rfl_ledger_row *row = &ret->row;
	struct rfl_err *trouble = &run->trouble, why = RFL_ERR_INIT;
	RFL_AUTO(env_result) environment = { .document = NULL };
	struct rfl_captures *captures = &run->captures;
	enum rfl_rc rc, all, counted = RFL_OK;

	memcpy(ret->libraries, run->received.r.libraries, sizeof(ret->libraries));
	if (make_label(run, row, trouble) != RFL_OK)
		rfl_field_set(&row->label, row->run_id); /* run_id is unique as well */
	identify(run, row);

	if (run->received.timed)
		(void)write_steps(run, &run->received.r.burst, ret, trouble);
	else if (rfl_text_same(row->status, "interrupted"))
		write_steps_so_far(run, ret);
	if (run->received.epochs.n > run->epochs_written)
		(void)!rfl_epochs_save(run->epochs_path, &run->received.epochs, trouble);
	(void)write_time_log(run, ret, trouble);
	write_memory(run, ret, trouble);
	write_network(run, trouble);
	if (captures->n > 0)
		counted = rfl_file_mkdirs_for(run->counters_path, trouble);
	for (size_t i = 0; i < captures->n; i++)
		rfl_capture_identify(captures, i, row->label, row->run_id, row->timestamp_utc);
	if (captures->n > 0 && counted == RFL_OK &&
	    rfl_counters_append(run->counters_path, captures, trouble) == RFL_OK)
		snprintf(ret->counters_file, sizeof(ret->counters_file), "%s", run->counters_path);

	/* a failure to record the environment is only a warning */
	const struct rfl_env_engine engine = {
		.id = row->engine_id,
		.version = row->engine_version,
		.cuda_runtime = row->cuda_runtime,
		.cuda_driver = row->cuda_driver,
		.cudnn = row->cudnn_version,
	};
	const struct rfl_env_spec spec = {
		.env = row->env,
		.log_dir = c->log_dir,
		.data_dir = c->data_dir,
		.nengines = row->engine_id ? 1 : 0,
		.engines = &engine,
		.root = "",
	};

	if (rfl_env_record(&spec, &environment, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "the environment was not recorded: %s", why.msg);

	note_trouble(run, row);
	rc = append(run, ret, err);
	if (c->world.size > 1 && c->world.rank == 0) {
		all = record_world(run, ret, err);
		rc = rc ? rc : all;
	}
	return rc;
}

/* A complete training that is continued has nothing left to do. Unless it was killed before its row
 * was written, the ledger already has the row, and a second one would look like a repeat.
 * @return true: row->run_id is of the row in the ledger */
static bool is_recorded(const struct rfl_run__state *run, struct rfl_ledger_row *row)
{
	const struct rfl_run__received *h = &run->received;
	RFL_AUTOPTR(ledger) ledger = NULL;
	bool found = false;

	if (run->config->epochs == 0 || !h->timed || h->continued < h->r.burst.nsteps ||
	    !rfl_file_exists(run->ledger_path) ||
	    rfl_ledger_load_columns(run->ledger_path, "run_id model loss_hash wall_s status", 0,
				    &ledger, NULL) != RFL_OK)
		return false;
	for (size_t i = 0; i < ledger->nrows && !found; i++) {
		const struct rfl_ledger_row *old = &ledger->rows[i];

		found = rfl_text_same(old->status, row->status) &&
			rfl_text_same(old->model, row->model) &&
			rfl_text_same(old->loss_hash, row->loss_hash) && old->wall_s == row->wall_s;
		if (found)
			rfl_field_set(&row->run_id, old->run_id);
	}
	return found;
}

enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err)
{
	static const char *const swept[] = { "env.json", "env_info.md", "metrics.csv",
					     "metrics.jsonl" };
	const struct rfl_run_config *c = run->config;
	const struct rfl_run_host *host = run->host;
	const struct rfl_run__received *received = &run->received;
	struct rfl_ledger_row *row = &ret->row;
	struct rfl_err *trouble = &run->trouble;
	const bool unwatched = trouble->rc != RFL_OK; /* it is unknown how the child ended */
	const struct rfl_machine *m = run->machine;
	const double limit =
		(double)(m->memory_limit_bytes > 0 ? m->memory_limit_bytes : m->memory_bytes);
	const char *why = NULL;
	enum rfl_rc rc;
	int lock = -1;

	(void)rfl_run__fill_row(c, run->net, &received->r, received->timed, m, row, trouble);
	row->requested_batch =
		host->requested_batch > 0 ? host->requested_batch : rfl_run__batch(c);
	row->host_peak_bytes = isnan(received->r.host_peak_bytes) ? run->process.max_rss_bytes
								  : received->r.host_peak_bytes;
	ret->memory_bytes = row->device_memory_bytes > 0 ? row->device_memory_bytes : limit;
	ret->rc = judge(received, &run->process, !rfl_run__cache_tokens(run->config), limit, row);
	if (run->process.cancelled && !received->timed && host->why_cancelled)
		why = host->why_cancelled(host->ctx);
	if (unwatched)
		why = trouble->msg;
	if (why)
		rfl_field_set(&row->error_text, why);
	fill_counters(run, row);
	if (is_recorded(run, row)) {
		rfl_log(RFL_LOG_INFO, "this training run is complete and recorded as run %s",
			row->run_id);
		(void)unlink(run->epochs_path);
		return RFL_OK;
	}

	/* The log directory may have been removed. If locking fails, a duplicate label is better
	 * than no row. */
	if (rfl_file_mkdirs(c->log_dir, trouble) == RFL_OK)
		(void)!rfl_file_lock(run->lock_path, &lock, trouble);
	rc = record(run, ret, err);
	/* remove temporary files of killed runs */
	for (size_t i = 0; i < RFL_ARRAY_LEN(swept); i++) {
		RFL_AUTOFREE char *path = rfl_path_join(c->log_dir, swept[i]);

		rfl_file_sweep(path);
	}
	if (c->checkpoint) {
		RFL_AUTOFREE char *epochs = rfl_path_join(c->log_dir, "epochs");

		rfl_dir_sweep(epochs);
		rfl_file_sweep(c->checkpoint);
	}
	(void)!rfl_file_unlock(lock, run->lock_path, trouble);
	if (rc && trouble->rc)
		rfl_log(RFL_LOG_WARN, "%s", trouble->msg);
	else if (trouble->rc)
		rc = rfl_err_pass(err, trouble);
	return rc;
}
