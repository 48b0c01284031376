/*
 * counters.c - what the parent makes of counted steps: their part of the row, and their rows in
 * logs/counters.csv.
 */
#include "runner/run/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "profile/capture/counters_csv.h"
#include "runner/burst/counted.h"

/* ---- the columns ---- */

/* Of two quantities over the same launches, and of the same part of them. */
static double ratio(const struct rfl_amount *a, const struct rfl_amount *b)
{
	const bool same = a->launches == b->launches &&
			  (a->validity == RFL_VALID_PARTIAL) == (b->validity == RFL_VALID_PARTIAL);

	return same && b->value > 0 ? a->value / b->value : (double)NAN;
}

/* Of a processor the cycles are those of its threads, of a GPU those that went by. */
static double clock_of(const struct rfl_capture *c)
{
	const struct rfl_amount *busy = &c->total[RFL_QUANTITY_TASK_CLOCK];

	return ratio(&c->total[RFL_QUANTITY_CYCLES],
		     isnan(busy->value) ? &c->total[RFL_QUANTITY_TIME] : busy);
}

/* Bytes per second, as sources rest for different times. */
static double idle_rate(const struct rfl_capture *c)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == RFL_RANGE_IDLE)
			return ratio(&c->ranges[i].amount[RFL_QUANTITY_DRAM],
				     &c->ranges[i].amount[RFL_QUANTITY_TIME]);
	return (double)NAN;
}

static enum rfl_rc fill_columns(const struct rfl_capture *c, const struct rfl_counted_asked *asked,
				struct rfl_ledger_row *row, struct rfl_err *err)
{
	row->counter_passes = c->passes;
	row->counted_flops_per_step = rfl_counted_per_step(c, asked, RFL_QUANTITY_FLOPS);
	row->counted_dram_bytes_per_step = rfl_counted_per_step(c, asked, RFL_QUANTITY_DRAM);
	row->idle_dram_bytes_per_s = idle_rate(c);
	row->ipc = rfl_capture_ipc(c);
	row->cache_misses_per_step = rfl_counted_per_step(c, asked, RFL_QUANTITY_CACHE_MISSES);
	row->effective_clock_hz = clock_of(c);
	row->selftest_flops_ratio = rfl_counted_self_test(c, "flops");
	row->selftest_dram_ratio = rfl_counted_self_test(c, "dram");
	return rfl_ledger_set(&row->counters_source, c->source, err);
}

/* ---- the verdict ---- */

static void judge_end(const struct rfl_run__heard *h, const struct rfl_proc_result *p,
		      struct rfl_buf *out)
{
	if (!h->timed)
		rfl_buf_puts(out, "unavailable: the run ended before its counted steps");
	else if (h->late)
		rfl_buf_printf(out,
			       "timeout: not done after %.3g s; leave flops out of "
			       "--counter-sets",
			       h->within_s);
	else if (p->cancelled)
		rfl_buf_puts(out, "interrupted: stopped by a signal to the command");
	else if (p->timed_out)
		rfl_buf_printf(out, "timeout: not done after %.3g s", p->wall_s);
	else if (!p->exited)
		rfl_buf_printf(out, "crash: signal %d (%s)", p->signal, strsignal(p->signal));
	else
		rfl_buf_printf(out, "crash: exit code %d, before it was done", p->exit_code);
}

static void judge_failure(enum rfl_rc rc, const char *text, struct rfl_buf *out)
{
	const bool absent = rc == RFL_EUNAVAILABLE || rc == RFL_EUNSUPPORTED || rc == RFL_ENOTFOUND;

	rfl_buf_printf(out, "%s: %s", absent ? "unavailable" : "failed", text);
}

/* A table that the child sent, taken in; its verdict in `out`. */
static enum rfl_rc take_captures(const struct rfl_run_config *config,
				 const struct rfl_run__heard *heard, const struct rfl_buf *table,
				 size_t sent, struct rfl_captures *to, struct rfl_ledger_row *row,
				 struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_err bad = RFL_ERR_INIT;
	const struct rfl_counted_asked asked = {
		.sets = rfl_counted_sets((enum rfl_device)heard->r.device,
					 (unsigned)config->counter_sets),
		.precision = rfl_precision_names[config->precision],
	};
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
		judge_failure(rc, bad.msg, out);
		return RFL_OK;
	}
	rfl_counted_status(to->captures[0], &asked, out);
	return fill_columns(to->captures[0], &asked, row, err);
}

enum rfl_rc rfl_run__fill_counters(const struct rfl_run_config *config,
				   const struct rfl_run__heard *heard,
				   const struct rfl_proc_result *process, struct rfl_captures *to,
				   struct rfl_ledger_row *row, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	struct rfl_buf status;

	if (config->counters == RFL_DETAIL_OFF)
		return RFL_OK;
	rfl_buf_init(&status, 0);
	if (!heard->counted && heard->so_far.len > 0) {
		rc = take_captures(config, heard, &heard->so_far, heard->so_far_len, to, row,
				   &status, err);
		rfl_buf_puts(&status, "; ");
	}
	if (!heard->counted)
		judge_end(heard, process, &status);
	else if (heard->counted_rc != RFL_OK)
		judge_failure(heard->counted_rc, heard->counted_text, &status);
	else
		rc = take_captures(config, heard, &heard->counters, heard->counters_len, to, row,
				   &status, err);
	if (rc == RFL_OK)
		rc = rfl_buf_check(&status, "counters", err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->counters_status, rfl_buf_str(&status), err);
	rfl_buf_fini(&status);
	return rc;
}

enum rfl_rc rfl_run__write_counters(const char *path, const struct rfl_ledger_row *row,
				    struct rfl_captures *captures, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < captures->n && rc == RFL_OK; i++)
		rc = rfl_capture_identify(captures, i, row->label, row->run_id, row->timestamp_utc,
					  err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs_for(path, err);
	return rc ? rc : rfl_counters_append(path, captures, err);
}
