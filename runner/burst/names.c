/*
 * names.c - the ranges of the window under names, for a tool that listens.
 */
#include "runner/burst/parts.h"

const char *const rfl_detail_names[] = { "off", "step", "phase", "layer", NULL };

void rfl_burst__push(const struct rfl_burst__loop *l, enum rfl_detail detail, const char *name)
{
	if (l->named >= detail)
		rfl_nvtx_push(l->config->nvtx, name);
}

void rfl_burst__pop(const struct rfl_burst__loop *l, enum rfl_detail detail)
{
	if (l->named >= detail)
		rfl_nvtx_pop(l->config->nvtx);
}

static void end_layer(struct rfl_burst__loop *l)
{
	if (l->in_layer)
		rfl_nvtx_pop(l->config->nvtx);
	l->in_layer = false;
}

static enum rfl_rc on_layer(const char *name, void *ctx, struct rfl_err *err)
{
	struct rfl_burst__loop *l = ctx;

	(void)err;
	end_layer(l);
	rfl_nvtx_push(l->config->nvtx, name);
	l->in_layer = true;
	return RFL_OK;
}

void rfl_burst__end_phase(struct rfl_burst__loop *l)
{
	end_layer(l);
	rfl_burst__pop(l, RFL_DETAIL_PHASE);
}

enum rfl_rc rfl_burst__name_ranges(struct rfl_burst__loop *l, struct rfl_err *err)
{
	const struct rfl_burst_config *c = l->config;

	if (!c->nvtx || c->nvtx_detail == RFL_DETAIL_OFF || !rfl_nvtx_is_heard(c->nvtx))
		return RFL_OK;
	l->named = c->nvtx_detail;
	return l->named == RFL_DETAIL_LAYER ? l->ops->mark(l->engine, on_layer, l, err) : RFL_OK;
}

enum rfl_rc rfl_burst__unname_ranges(struct rfl_burst__loop *l, struct rfl_err *err)
{
	const bool marked = l->named == RFL_DETAIL_LAYER;

	l->named = RFL_DETAIL_OFF;
	return marked ? l->ops->mark(l->engine, NULL, NULL, err) : RFL_OK;
}
