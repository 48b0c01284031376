/*
 * summary_fit.c - how much of a network fits into a memory: the largest batch, for a language model
 * the largest context, and which options would lower the peak of a network that does not fit.
 */
#include "complexity/summary.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"

static void name_peak(const struct rfl_summary *s, const struct rfl_memory *memory,
		      struct rfl_fit *fit)
{
	const char *phase = rfl_phase_names[memory->peak_phase];
	const char *node = memory->peak_node < 0 ? NULL : s->net->nodes[memory->peak_node].name;

	if (node && *node)
		(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s of %s", phase, node);
	else if (memory->peak_phase != RFL_PHASE_STEP)
		(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s of the loss", phase);
	else
		(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s", phase);
}

static enum rfl_rc fit_batch(struct rfl_summary *s, struct rfl_memory *memory, struct rfl_fit *fit,
			     struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_memory_fit(memory, fit->bytes, &fit->batch, err);

	if (rc != RFL_OK)
		return rc;
	fit->at = *memory;
	fit->at.node_saved = NULL;
	fit->at.workspace = NULL;
	name_peak(s, memory, fit);
	fit->next_peak = memory->peak;
	if (!fit->batch)
		return RFL_OK;
	rc = rfl_memory_at(memory, fit->batch + 1, &why);
	fit->next_peak = rc == RFL_OK ? memory->peak : -1;
	return rc == RFL_EOVERFLOW || rc == RFL_OK ? RFL_OK
						   : rfl_fail(err, rc, why.native, "%s", why.msg);
}

/* The peak of the model at another context. Beyond 63 bits is too much as well: -1. */
static enum rfl_rc peak_at(const struct rfl_summary *s,
			   const struct rfl_memory_options *memory_options, int64_t context,
			   int64_t *ret, struct rfl_err *err)
{
	struct rfl_zoo_options sizes = s->options.sizes;
	struct rfl_memory *memory = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	enum rfl_rc rc;

	sizes.context_length = context;
	rc = rfl_zoo_build(s->model->name, &sizes, &net, &why);
	if (rc == RFL_OK)
		rc = rfl_memory_new(net, memory_options, &memory, &why);
	if (rc == RFL_OK)
		*ret = memory->peak;
	rfl_memory_free(memory);
	rfl_net_free(net);
	if (rc == RFL_EOVERFLOW) {
		*ret = -1;
		rc = RFL_OK;
	}
	return rc == RFL_OK ? rc : rfl_fail(err, rc, why.native, "%s", why.msg);
}

/* More tokens never take less: halve the range. */
static enum rfl_rc fit_context(const struct rfl_summary *s, const struct rfl_memory *memory,
			       struct rfl_fit *fit, struct rfl_err *err)
{
	struct rfl_memory_options at = memory->options;
	int64_t fits = 0, limit = s->model->max_context_length, fails;
	enum rfl_rc rc = RFL_OK;

	fit->has_context = true;
	fit->context_limit = limit ? limit : RFL_FIT_MAX_CONTEXT;
	fails = fit->context_limit + 1;
	at.count.batch = fit->context_batch;
	while (fails - fits > 1 && rc == RFL_OK) {
		int64_t middle = fits + (fails - fits) / 2, peak = 0;

		rc = peak_at(s, &at, middle, &peak, err);
		if (rc == RFL_OK && peak >= 0 && peak <= fit->bytes) {
			fits = middle;
			fit->context_peak = peak;
		} else {
			fails = middle;
		}
	}
	fit->context = fits;
	return rc;
}

enum rfl_rc rfl_summary_fit(struct rfl_summary *s, bool training, int64_t bytes,
			    int64_t context_batch, struct rfl_err *err)
{
	struct rfl_fit *fit = NULL;
	enum rfl_rc rc = rfl_summary_at(s, 1, err);

	if (rc != RFL_OK)
		return rc;
	fit = calloc(1, sizeof(*fit));
	if (!fit)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	fit->training = training;
	fit->bytes = bytes;
	fit->context_batch = context_batch;
	rc = fit_batch(s, s->memory[training], fit, err);
	if (rc == RFL_OK && s->model && s->model->context_length)
		rc = fit_context(s, s->memory[training], fit, err);
	rfl_summary_rest(s);
	if (rc != RFL_OK) {
		free(fit);
		return rc;
	}
	free(s->fit);
	s->fit = fit;
	return RFL_OK;
}

/* --- what would help ------------------------------------------------------------------------- */

enum { CHECKPOINT, BF16, SGD, FUSED_UPDATE, NO_ACCUMULATION, HELPS };

static const char *const helps[HELPS] = { "--checkpoint 1", "--precision bf16", "--optimizer sgd",
					  "--update fused", "--accumulate 1" };

/* False where the option is in use, or has no effect on such a network. */
static bool apply(int help, const struct rfl_net *net, struct rfl_memory_options *o)
{
	struct rfl_count_options *c = &o->count;
	bool new = false;

	switch (help) {
	case CHECKPOINT:
		new = c->training && net->nblocks && !c->checkpoint;
		c->checkpoint = new ? 1 : c->checkpoint;
		break;
	case BF16:
		new = c->master_weights ||
		      (c->dtype != RFL_DTYPE_BF16 && c->dtype != RFL_DTYPE_F16);
		c->dtype = new ? RFL_DTYPE_BF16 : c->dtype;
		c->master_weights = false;
		break;
	case SGD:
		new = c->training && c->optimizer != RFL_OPT_SGD;
		c->optimizer = new ? RFL_OPT_SGD : c->optimizer;
		break;
	case FUSED_UPDATE:
		new = c->training && o->update != RFL_UPDATE_FUSED;
		o->update = new ? RFL_UPDATE_FUSED : o->update;
		break;
	case NO_ACCUMULATION:
		new = c->training && o->accumulate > 1;
		o->accumulate = new ? 1 : o->accumulate;
		break;
	}
	return new;
}

/* Append "--option (peak 3 GiB)" where it lowers the peak of one sample. */
static enum rfl_rc add_help(const struct rfl_summary *s, const char *what,
			    const struct rfl_memory_options *options, struct rfl_buf *text,
			    struct rfl_err *err)
{
	struct rfl_memory *memory = NULL;
	char peak[RFL_NUM_MAX];
	enum rfl_rc rc = rfl_memory_new(s->net, options, &memory, err);

	if (rc == RFL_OK && memory->peak < s->fit->at.peak)
		rfl_buf_printf(text, "%s%s (peak %s)",
			       text->len ? ", " : " What would help: ", what,
			       rfl_num_bytes((double)memory->peak, peak, sizeof(peak)));
	rfl_memory_free(memory);
	return rc;
}

enum rfl_rc rfl_summary_fit_help(const struct rfl_summary *s, struct rfl_buf *text,
				 struct rfl_err *err)
{
	struct rfl_memory_options now = s->fit->at.options, all;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	now.count.batch = 1;
	all = now;
	for (int i = 0; i < HELPS && rc == RFL_OK; i++) {
		struct rfl_memory_options o = now;

		if (!apply(i, s->net, &o))
			continue;
		(void)apply(i, s->net, &all);
		rc = add_help(s, helps[i], &o, text, err);
		n++;
	}
	if (rc == RFL_OK && n > 1)
		rc = add_help(s, "all of these", &all, text, err);
	if (text->len)
		rfl_buf_putc(text, '.');
	return rc;
}
