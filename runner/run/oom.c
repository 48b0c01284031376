/* oom.c - repeats a run with other batches if one does not fit in memory. */
#include "runner/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "complexity/count/memory.h"
#include "ledger/step.h"
#include "runner/run/parts.h"

const char *const rfl_oom_policy_names[] = { "record", "shrink", "search", NULL };

#define LARGEST ((int64_t)1 << 20)

/* 1024 768 512 384 256 192 128 96 64 48 32 24 16 12 8 6 4 3 2 1: powers of two and the midpoints
 * between them, like timm's benchmark. 0 after 1. */
int64_t rfl_oom_smaller(int64_t batch)
{
	int64_t power = 1, half;

	if (batch <= 1)
		return 0;
	while (power * 2 < batch)
		power *= 2;
	half = power + power / 2;
	return power > 1 && half < batch ? half : power;
}

int64_t rfl_oom_between(int64_t fits, int64_t does_not)
{
	if (does_not <= 0) /* every batch has fit so far */
		return fits < LARGEST ? fits * 2 : 0;
	return does_not - fits > 1 ? fits + (does_not - fits) / 2 : 0;
}

/* The largest batch known to fit, and the smallest known not to fit; 0: none. */
struct known {
	int64_t fits, does_not;
	int64_t most; /* the largest batch that fits by its predicted memory; 0: not computed yet */
};

/* The largest batch for which a step fits in memory by prediction. Without this limit, a search on
 * a CPU would end in swap space. */
static int64_t predict(const struct rfl_run_config *config, const struct rfl_run_result *like)
{
	struct rfl_memory_options options;
	RFL_AUTOPTR(memory) memory = NULL;
	RFL_AUTOPTR(net) net = NULL;
	int64_t most;

	if (!(like->memory_bytes > 0) || rfl_run__check(config, &net, NULL) != RFL_OK ||
	    rfl_step_options(&like->row, &options, NULL) != RFL_OK ||
	    rfl_memory_new(net, &options, &memory, NULL) != RFL_OK ||
	    rfl_memory_fit(memory, (int64_t)like->memory_bytes, &most, NULL) != RFL_OK)
		most = INT64_MAX;
	return most;
}

/* The next batch of a search; 0: none. */
static int64_t search(const struct rfl_run_config *config, const struct rfl_run_result *last,
		      struct known *known)
{
	int64_t next = rfl_oom_between(known->fits, known->does_not);
	char bytes[RFL_NUM_MAX];

	if (known->most == 0)
		known->most = predict(config, last);
	if (next > known->most) {
		const int64_t most = known->most > known->fits ? known->most : known->fits;

		rfl_log(RFL_LOG_INFO,
			"batch sizes above %" PRId64
			" are not tried: they need more than the %s of "
			"the device",
			most, rfl_num_bytes(last->memory_bytes, bytes, sizeof(bytes)));
		known->does_not = most + 1;
		next = rfl_oom_between(known->fits, known->does_not);
	} else if (next == 0 && known->does_not == 0) {
		rfl_log(RFL_LOG_INFO, "batch sizes above %" PRId64 " are not tried", known->fits);
	}
	return next;
}

/* @return the batch to try after this one; 0: none, or the run ended for a reason other than memory
 */
static int64_t attempt(const struct rfl_run_config *asked, const struct rfl_run_host *ours,
		       int64_t batch, struct known *known, struct rfl_run_result *ret,
		       enum rfl_rc *rc, struct rfl_err *err)
{
	struct rfl_run_config config = *asked;
	struct rfl_run_host host = *ours;
	char label[RFL_LABEL_MAX + 32], was[32];
	const char *at;
	int len;

	config.micro_batch = batch;
	host.requested_batch = asked->micro_batch * asked->accum;
	/* replace the batch in the label, or append it */
	if (config.label && batch != asked->micro_batch) {
		len = snprintf(was, sizeof(was), "_bs%" PRId64, asked->micro_batch);
		at = strstr(config.label, was);
		if (at && at[len] >= '0' && at[len] <= '9')
			at = NULL;
		snprintf(label, sizeof(label), "%.*s_bs%" PRId64 "%s",
			 at ? (int)(at - config.label) : RFL_LABEL_MAX, config.label, batch,
			 at ? at + len : "");
		config.label = label;
	}
	*rc = rfl_run(&config, &host, ret, err);
	if (*rc != RFL_OK && !ret->recorded)
		return 0;
	if (rfl_text_same(ret->row.status, "oom"))
		known->does_not = batch;
	else if (rfl_text_same(ret->row.status, "ok") || rfl_text_same(ret->row.status, "nan"))
		known->fits = batch; /* even if the loss is not finite */
	else
		return 0;
	if (asked->oom == RFL_OOM_SEARCH)
		return search(&config, ret, known);
	return asked->oom == RFL_OOM_RECORD || known->fits ? 0 : rfl_oom_smaller(known->does_not);
}

enum rfl_rc rfl_run_fitting(const struct rfl_run_config *config, const struct rfl_run_host *host,
			    struct rfl_run_result *ret, struct rfl_err *err)
{
	static const char longest[] = "_bs1048576";
	const size_t most = RFL_LABEL_MAX - (sizeof(longest) - 1);
	struct known known = { .fits = 0 };
	int64_t batch, next;
	enum rfl_rc rc;

	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	/* check the labels of all attempts before the first one */
	if (config->label && config->oom != RFL_OOM_RECORD && strlen(config->label) > most)
		return rfl_fail(err, RFL_EINVAL, 0,
				"label '%.200s': too long for --oom %s, which adds the batch; use "
				"at most %zu characters",
				config->label, rfl_oom_policy_names[config->oom], most);

	next = attempt(config, host, config->micro_batch, &known, ret, &rc, err);
	if (next > 0 && host->attempt)
		host->attempt(&ret->row, next, host->ctx);
	while (next > 0) {
		const struct rfl_run_result before = *ret;
		struct rfl_run_result now;
		enum rfl_rc its;

		batch = next;
		next = attempt(config, host, batch, &known, &now, &its, err);
		rc = rc ? rc : its;
		if (next > 0 && host->attempt)
			host->attempt(&now.row, next, host->ctx);
		/* keep the result of the largest batch that fits, else of the last */
		if ((its == RFL_OK || now.recorded) &&
		    (!known.fits || known.fits == batch || known.does_not != batch)) {
			*ret = now;
			now = before;
		}
		rfl_run_result_fini(&now);
	}
	return rc;
}
