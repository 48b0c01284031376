/*
 * summary_fit.c - what of a network fits into a memory: the largest batch, and for a language model
 * the largest context.
 */
#include "complexity/summary.h"

#include <stdio.h>
#include <stdlib.h>

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
static enum rfl_rc peak_at(const struct rfl_summary *s, const struct rfl_summary_options *options,
			   const struct rfl_memory_options *memory_options, int64_t context,
			   int64_t *ret, struct rfl_err *err)
{
	struct rfl_zoo_options sizes = options->sizes;
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
static enum rfl_rc fit_context(const struct rfl_summary *s,
			       const struct rfl_summary_options *options,
			       const struct rfl_memory *memory, struct rfl_fit *fit,
			       struct rfl_err *err)
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

		rc = peak_at(s, options, &at, middle, &peak, err);
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

enum rfl_rc rfl_summary_fit(struct rfl_summary *s, const struct rfl_summary_options *options,
			    int64_t bytes, int64_t context_batch, struct rfl_err *err)
{
	struct rfl_memory *memory;
	struct rfl_fit *fit;
	enum rfl_rc rc = rfl_summary_at(s, 1, err);

	if (rc != RFL_OK)
		return rc;
	memory = options->train ? s->training_memory : s->forward_memory;
	fit = calloc(1, sizeof(*fit));
	if (!fit)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	fit->training = options->train;
	fit->bytes = bytes;
	fit->context_batch = context_batch;
	rc = fit_batch(s, memory, fit, err);
	if (rc == RFL_OK && s->model && s->model->context_length)
		rc = fit_context(s, options, memory, fit, err);
	rfl_summary_rest(s);
	if (rc != RFL_OK) {
		free(fit);
		return rc;
	}
	free(s->fit);
	s->fit = fit;
	return RFL_OK;
}

int64_t rfl_fit_weights(const struct rfl_fit *fit)
{
	return fit->at.weights + fit->at.buffers + fit->at.weight_copies;
}
