/*
 * files.c - the files of one run besides its row: the table of steps, the process record in the
 * words of GNU time's -v, and the rows of counted steps, of which its row has columns.
 */
#include "runner/run/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "profile/capture.h"
#include "runner/burst/counted.h"

/* ---- the table of steps ---- */

/* Of ten million steps the table has a gigabyte: it is never in memory as a whole. */
#define PIECE ((size_t)8 << 20)

static const char *const step_columns[] = {
	"step",        "data_wait_ms", "upload_ms", "forward_ms",
	"backward_ms", "optimizer_ms", "step_ms",   "loss",
};

enum rfl_rc rfl_run__write_steps(const char *path, const struct rfl_burst *burst,
				 struct rfl_err *err)
{
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err), unlocked;
	char text[RFL_ARRAY_LEN(step_columns)][RFL_NUM_MAX];
	const char *fields[RFL_ARRAY_LEN(step_columns)];
	struct rfl_buf piece;
	bool first = true;
	int fd = -1;

	for (size_t v = 0; v < RFL_ARRAY_LEN(fields); v++)
		fields[v] = text[v];
	rfl_buf_init(&piece, 0);
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

		/* the file begins with the first piece; the others are added to it */
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
				(void)unlink(path); /* half a table is none */
		}
		rfl_buf_reset(&piece);
		first = false;
	}
	rfl_buf_fini(&piece);
	return rc;
}

/* ---- the process record ---- */

/* Line for line as GNU time 1.9 writes it. The zeros are its own: Linux does not count these. */
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

enum rfl_rc rfl_run__write_time_log(const struct rfl_run__state *run, struct rfl_run_result *ret,
				    struct rfl_err *err)
{
	const struct rfl_ledger_row *row = &ret->row;
	char dir[4096], backend[16], stamp[RFL_TIME_ISO_SIZE], nth[16] = "";
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_buf out;
	enum rfl_rc rc;
	int len;

	rfl_buf_init(&out, 0);
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
	if ((rc = rfl_buf_check(&out, "time log", err)) != RFL_OK ||
	    (rc = rfl_file_mkdirs(dir, err)) != RFL_OK)
		goto done;

	/* <label>_<stamp>.txt; a second run of the second gets <label>_<stamp>_2.txt, and so on */
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
done:
	rfl_buf_fini(&out);
	return rc;
}

/* ---- counted steps ---- */

/* Of two quantities over the same launches, and of the same part of them. */
static double ratio(const struct rfl_amount *a, const struct rfl_amount *b)
{
	const bool same = a->launches == b->launches &&
			  (a->validity == RFL_VALID_PARTIAL) == (b->validity == RFL_VALID_PARTIAL);

	return same && b->value > 0 ? a->value / b->value : (double)NAN;
}

static void say_failure(enum rfl_rc rc, const char *text, struct rfl_buf *out)
{
	const bool absent = rc == RFL_EUNAVAILABLE || rc == RFL_EUNSUPPORTED || rc == RFL_ENOTFOUND;

	rfl_buf_printf(out, "%s: %s", absent ? "unavailable" : "failed", text);
}

/* A table that the child sent, taken in; its verdict in `out`. */
static enum rfl_rc take_captures(struct rfl_run__state *run, const struct rfl_buf *table,
				 size_t sent, struct rfl_ledger_row *row, struct rfl_buf *out,
				 struct rfl_err *err)
{
	struct rfl_err bad = RFL_ERR_INIT;
	struct rfl_captures *to = &run->captures;
	const struct rfl_counted_asked asked = {
		.sets = rfl_counted_sets((enum rfl_device)run->heard.r.device,
					 (unsigned)run->config->counter_sets),
		.precision = rfl_precision_names[run->config->precision],
	};
	const struct rfl_capture *c;
	const struct rfl_amount *busy;
	enum rfl_rc rc = rfl_buf_check(table, "counters", &bad);

	if (rc == RFL_OK && table->len != sent)
		rc = rfl_fail(&bad, RFL_EFORMAT, 0,
			      "%zu of %zu bytes of counts came from the run's child", table->len,
			      sent);
	if (rc == RFL_OK)
		rc = rfl_counters_load("counters of the run's child", rfl_buf_str(table),
				       table->len, to, &bad);
	if (rc == RFL_OK && to->n == 0)
		rc = rfl_fail(&bad, RFL_EFORMAT, 0, "the source of counters gave none");
	if (rc) {
		say_failure(rc, bad.msg, out);
		return RFL_OK;
	}
	c = to->captures[0];
	rfl_counted_status(c, &asked, out);

	row->counter_passes = c->passes;
	row->counted_flops_per_step = rfl_counted_per_step(c, &asked, RFL_QUANTITY_FLOPS);
	row->counted_dram_bytes_per_step = rfl_counted_per_step(c, &asked, RFL_QUANTITY_DRAM);
	/* bytes per second, as sources rest for different times */
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == RFL_RANGE_IDLE) {
			row->idle_dram_bytes_per_s = ratio(&c->ranges[i].amount[RFL_QUANTITY_DRAM],
							   &c->ranges[i].amount[RFL_QUANTITY_TIME]);
			break;
		}
	row->ipc = rfl_capture_ipc(c);
	row->cache_misses_per_step = rfl_counted_per_step(c, &asked, RFL_QUANTITY_CACHE_MISSES);
	/* of a processor the cycles are those of its threads, of a GPU those that went by */
	busy = &c->total[RFL_QUANTITY_TASK_CLOCK];
	row->effective_clock_hz = ratio(&c->total[RFL_QUANTITY_CYCLES],
					isnan(busy->value) ? &c->total[RFL_QUANTITY_TIME] : busy);
	row->selftest_flops_ratio = rfl_counted_self_test(c, "flops");
	row->selftest_dram_ratio = rfl_counted_self_test(c, "dram");
	return rfl_field_set(&row->counters_source, c->source, err);
}

enum rfl_rc rfl_run__fill_counters(struct rfl_run__state *run, struct rfl_ledger_row *row,
				   struct rfl_err *err)
{
	const struct rfl_run__heard *h = &run->heard;
	const struct rfl_proc_result *p = &run->process;
	enum rfl_rc rc = RFL_OK;
	struct rfl_buf status;

	if (run->config->counters == RFL_DETAIL_OFF)
		return RFL_OK;
	rfl_buf_init(&status, 0);
	if (!h->counted && h->so_far.len > 0) {
		rc = take_captures(run, &h->so_far, h->so_far_len, row, &status, err);
		rfl_buf_puts(&status, "; ");
	}
	if (h->counted && h->counted_rc != RFL_OK)
		say_failure(h->counted_rc, h->counted_text, &status);
	else if (h->counted)
		rc = take_captures(run, &h->counters, h->counters_len, row, &status, err);
	else if (!h->timed)
		rfl_buf_puts(&status, "unavailable: the run ended before its counted steps");
	else if (h->late)
		rfl_buf_printf(&status,
			       "timeout: not done after %.3g s; leave flops out of --counter-sets",
			       h->within_s);
	else if (p->cancelled)
		rfl_buf_puts(&status, "interrupted: stopped by a signal to the command");
	else if (p->timed_out)
		rfl_buf_printf(&status, "timeout: not done after %.3g s", p->wall_s);
	else if (!p->exited)
		rfl_buf_printf(&status, "crash: signal %d (%s)", p->signal, strsignal(p->signal));
	else
		rfl_buf_printf(&status, "crash: exit code %d, before it was done", p->exit_code);
	if (rc == RFL_OK && (rc = rfl_buf_check(&status, "counters", err)) == RFL_OK)
		rc = rfl_field_set(&row->counters_status, rfl_buf_str(&status), err);
	rfl_buf_fini(&status);
	return rc;
}

enum rfl_rc rfl_run__write_counters(struct rfl_run__state *run, const struct rfl_ledger_row *row,
				    struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < run->captures.n && rc == RFL_OK; i++)
		rc = rfl_capture_identify(&run->captures, i, row->label, row->run_id,
					  row->timestamp_utc, err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs_for(run->counters_path, err);
	return rc ? rc : rfl_counters_append(run->counters_path, &run->captures, err);
}
