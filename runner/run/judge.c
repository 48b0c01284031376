/*
 * judge.c - the verdict on how a run ended.
 */
#include "runner/run/parts.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "machine/machine.h"

#define NEAR_THE_LIMIT 0.9 /* of the memory limit: a SIGKILL there is the kernel's */

struct verdict {
	const char *status;
	int64_t code; /* signal or exit code; -1 for none */
	enum rfl_rc rc;
	char text[1200];
};

static void judge_failure(const struct rfl_run__heard *h, struct verdict *v)
{
	static const struct {
		enum rfl_rc rc;
		const char *status;
	} known[] = {
		{ RFL_EDEVMEM, "oom" },
		{ RFL_ENOMEM, "oom" },
		{ RFL_EUNSUPPORTED, "unsupported" },
		{ RFL_EUNAVAILABLE, "unsupported" },
		{ RFL_ENOTFOUND, "unsupported" },
		{ RFL_EINTR, "interrupted" },
		{ RFL_ETIMEOUT, "timeout" }, /* another process did not come */
	};

	v->status = "failed";
	for (size_t i = 0; i < RFL_ARRAY_LEN(known); i++) {
		if (known[i].rc == h->rc)
			v->status = known[i].status;
	}
	v->rc = h->rc;
	v->code = 1;
	snprintf(v->text, sizeof(v->text), "%s", h->text);
}

/* A SIGKILL at the limit, or while the kernel says that it ended a process: others share the
 * memory, so the child need not have had much of it. */
static bool was_for_memory(const struct rfl_run__heard *h, const struct rfl_proc_result *p,
			   double memory_limit_bytes)
{
	const int64_t kills = rfl_machine_oom_kills("");

	if (p->signal != SIGKILL)
		return false;
	return (h->oom_kills >= 0 && kills > h->oom_kills) ||
	       (memory_limit_bytes > 0 && p->max_rss_bytes > NEAR_THE_LIMIT * memory_limit_bytes);
}

static void judge_signal(const struct rfl_run__heard *h, const struct rfl_proc_result *p,
			 double memory_limit_bytes, struct verdict *v)
{
	const char *when = h->ready ? "after it was set up" : "while it was being set up";
	char peak[RFL_NUM_MAX], limit[RFL_NUM_MAX];

	v->code = p->signal;
	v->rc = RFL_EFAILED;
	v->status = "crash";
	snprintf(v->text, sizeof(v->text), "killed by signal %d (%s) %s", p->signal,
		 strsignal(p->signal), when);
	if (was_for_memory(h, p, memory_limit_bytes)) {
		v->status = "oom";
		snprintf(v->text, sizeof(v->text),
			 "killed by the system with %s in use of a limit of %s: a smaller batch "
			 "needs less",
			 rfl_num_bytes(p->max_rss_bytes, peak, sizeof(peak)),
			 rfl_num_bytes(memory_limit_bytes, limit, sizeof(limit)));
	} else if (p->signal == SIGINT || p->signal == SIGTERM || p->signal == SIGHUP) {
		v->status = "interrupted";
		v->rc = RFL_EINTR;
	}
}

static void judge_timed(const struct rfl_run__heard *h, struct verdict *v)
{
	v->status = "ok";
	v->code = -1;
	v->rc = RFL_OK;
	if (isfinite(h->r.burst.loss_last))
		return;
	v->status = "nan";
	v->rc = RFL_EFAILED;
	snprintf(v->text, sizeof(v->text),
		 "the loss is not a finite number at the last step: a smaller --lr may help");
}

enum rfl_rc rfl_run__judge(const struct rfl_run__heard *heard, const struct rfl_proc_result *p,
			   double memory_limit_bytes, struct rfl_ledger_row *row,
			   struct rfl_err *err)
{
	struct verdict v = { .status = "crash", .code = -1, .rc = RFL_EFAILED };
	enum rfl_rc rc;

	if (heard->timed) {
		judge_timed(heard, &v); /* measured: what came after does not matter */
	} else if (p->cancelled) {
		v.status = "interrupted";
		v.rc = RFL_EINTR;
		snprintf(v.text, sizeof(v.text), "stopped by a signal to the command");
	} else if (p->timed_out) {
		v.status = "timeout";
		v.rc = RFL_ETIMEOUT;
		snprintf(v.text, sizeof(v.text), "not done after %.3g s", p->wall_s);
	} else if (heard->failed) {
		judge_failure(heard, &v);
	} else if (!p->exited) {
		judge_signal(heard, p, memory_limit_bytes, &v);
	} else {
		v.code = p->exit_code;
		snprintf(v.text, sizeof(v.text), "ended with exit code %d and no result",
			 p->exit_code);
	}
	row->error_code = v.code;
	rc = rfl_ledger_set(&row->status, v.status, err);
	if (rc == RFL_OK)
		rc = rfl_ledger_set(&row->error_text, v.text, err);
	return rc ? rc : v.rc;
}
