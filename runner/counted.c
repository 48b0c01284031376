/*
 * counted.c - a training step as a workload of a counter source, and what the counts amount to.
 */
#include "runner/counted.h"

#include <math.h>
#include <string.h>

const char *const rfl_counter_set_names[] = { "core",    "flops",     "audit", "links",
					      "kernels", "self-test", NULL };

unsigned rfl_counted_sets(enum rfl_device device, unsigned asked)
{
	if (device != RFL_DEVICE_CUDA)
		return 0;
	return asked ? asked : RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_KERNELS | RFL_SET_SELF_TEST;
}

/* ---- the step ---- */

struct step {
	const struct rfl_counted_config *config;
	const struct rfl_counted_parts *parts;
	struct rfl_batch batch;
	struct rfl_ranges *ranges; /* of the pass that runs */
};

/* What was started before the boundary is counted before it. */
static enum rfl_rc begin(struct step *s, enum rfl_range_kind kind, const char *name,
			 struct rfl_err *err)
{
	enum rfl_rc rc = s->parts->ops->sync(s->parts->engine, err);

	return rc ? rc : s->ranges->begin(s->ranges, kind, name, err);
}

static enum rfl_rc on_mark(const char *name, void *ctx, struct rfl_err *err)
{
	return begin(ctx, RFL_RANGE_LAYER, name, err);
}

/* Layers begin where the engine says so; the optimizer belongs to none and is one of its own. */
static enum rfl_rc begin_phase(struct step *s, const char *name, struct rfl_err *err)
{
	switch (s->config->detail) {
	case RFL_DETAIL_PHASE:
		return begin(s, RFL_RANGE_PHASE, name, err);
	case RFL_DETAIL_LAYER:
		return strcmp(name, "opt") == 0 ? begin(s, RFL_RANGE_LAYER, name, err) : RFL_OK;
	case RFL_DETAIL_OFF:
	case RFL_DETAIL_STEP:
		break;
	}
	return RFL_OK;
}

static enum rfl_rc phases(struct step *s, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = s->parts->ops;
	struct rfl_engine *e = s->parts->engine;
	enum rfl_rc rc = begin_phase(s, "fwd", err);

	if (rc == RFL_OK)
		rc = ops->forward(e, &s->batch, err);
	if (rc || s->config->mode == RFL_RUN_FWD)
		return rc;
	rc = begin_phase(s, "bwd", err);
	if (rc == RFL_OK)
		rc = ops->backward(e, err);
	if (rc || s->config->mode == RFL_RUN_FWD_BWD)
		return rc;
	rc = begin_phase(s, "opt", err);
	return rc ? rc : ops->step(e, err);
}

static enum rfl_rc run_step(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct step *s = ctx;
	enum rfl_rc rc = RFL_OK;

	s->ranges = ranges;
	if (s->config->detail == RFL_DETAIL_STEP)
		rc = begin(s, RFL_RANGE_STEP, "step", err);
	if (rc == RFL_OK)
		rc = phases(s, err);
	if (rc == RFL_OK)
		rc = s->parts->ops->sync(s->parts->engine, err);
	if (rc == RFL_OK)
		rc = ranges->end(ranges, err);
	s->ranges = NULL;
	return rc;
}

static enum rfl_rc save(void *ctx, struct rfl_err *err)
{
	const struct step *s = ctx;

	return s->parts->ops->snapshot(s->parts->engine, err);
}

static enum rfl_rc restore(void *ctx, struct rfl_err *err)
{
	const struct step *s = ctx;

	return s->parts->ops->restore(s->parts->engine, err);
}

/* ---- counting it ---- */

/* A forward pass in evaluation mode changes nothing; everything else has to be put back. */
static bool changes_state(const struct rfl_counted_config *config)
{
	return config->mode != RFL_RUN_FWD;
}

static enum rfl_rc check_engine(const struct rfl_counted_config *config,
				const struct rfl_engine_ops *ops, struct rfl_err *err)
{
	if (changes_state(config) && (!ops->snapshot || !ops->restore))
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot put a step back (it has no snapshot), so that "
				"its steps cannot be counted in passes: use --mode fwd, or another "
				"--engine",
				ops->name);
	if (config->detail == RFL_DETAIL_LAYER && !ops->mark)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot tell layers apart (it has no marks): use "
				"--counters phase",
				ops->name);
	return RFL_OK;
}

/* Every node forward and backward, the loss in both, the optimizer. */
static size_t most_ranges(const struct rfl_counted_config *config, const struct rfl_net *net)
{
	return config->detail == RFL_DETAIL_LAYER ? 2 * ((size_t)net->nnodes + 1) + 1 : 3;
}

enum rfl_rc rfl_counted_run(const struct rfl_source_ops *source,
			    const struct rfl_counted_config *config,
			    const struct rfl_counted_parts *parts, struct rfl_captures *to,
			    struct rfl_err *err)
{
	const bool marks = config->detail == RFL_DETAIL_LAYER, restores = changes_state(config);
	struct step step = { .config = config, .parts = parts };
	const struct rfl_workload workload = {
		.run = run_step,
		.save = restores ? save : NULL,
		.restore = restores ? restore : NULL,
		.ctx = &step,
		.max_ranges = most_ranges(config, parts->net),
	};
	enum rfl_rc rc = check_engine(config, parts->ops, err), off;

	if (rc == RFL_OK && source->missing)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "source '%s': %s", source->name,
			      source->missing);
	if (rc == RFL_OK)
		rc = rfl_data_next(parts->data, &step.batch, err);
	if (rc == RFL_OK && marks)
		rc = parts->ops->mark(parts->engine, on_mark, &step, err);
	if (rc)
		return rc;
	rc = source->measure(&config->request, &workload, to, err);
	off = marks ? parts->ops->mark(parts->engine, NULL, NULL, err) : RFL_OK;
	return rc ? rc : off;
}

/* ---- what became of it ---- */

/* What each set is for. What a processor was not asked for by name counts all the same. */
static const struct {
	unsigned sets; /* any of them asks for it */
	enum rfl_quantity quantity;
} wanted[] = {
	{ RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_AUDIT, RFL_QUANTITY_FLOPS },
	{ RFL_SET_CORE, RFL_QUANTITY_DRAM },
	{ RFL_SET_LINKS, RFL_QUANTITY_PCIE_READ },
};

/* With one of these there is something that only a counter tells. */
static const enum rfl_quantity counted[] = {
	RFL_QUANTITY_FLOPS,  RFL_QUANTITY_DRAM,         RFL_QUANTITY_L2,
	RFL_QUANTITY_CYCLES, RFL_QUANTITY_INSTRUCTIONS, RFL_QUANTITY_PCIE_READ,
};

static bool is_wanted(size_t i, unsigned sets)
{
	return sets ? (wanted[i].sets & sets) != 0 : wanted[i].quantity != RFL_QUANTITY_PCIE_READ;
}

static bool anything_counted(const struct rfl_capture *c)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(counted); i++)
		if (!isnan(c->total[counted[i]].value))
			return true;
	return false;
}

static const char *why(const struct rfl_amount *a)
{
	return a->reason ? a->reason : "not counted";
}

/* The first reason that any wanted quantity has. */
static void say_unavailable(const struct rfl_capture *c, unsigned sets, struct rfl_buf *out)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(wanted); i++) {
		const struct rfl_amount *a = &c->total[wanted[i].quantity];

		if (is_wanted(i, sets) && isnan(a->value)) {
			rfl_buf_printf(out, "unavailable: %s", why(a));
			return;
		}
	}
	rfl_buf_puts(out, "ok"); /* only kernel times were asked for, and they are there */
}

static void say_lacking(const struct rfl_capture *c, unsigned sets, struct rfl_buf *out)
{
	const char *said = NULL;

	for (size_t i = 0; i < RFL_ARRAY_LEN(wanted); i++) {
		const struct rfl_amount *a = &c->total[wanted[i].quantity];
		const char *name = rfl_quantity_info(wanted[i].quantity)->name;
		bool again = said && strcmp(said, why(a)) == 0;

		if (!is_wanted(i, sets) ||
		    (a->validity != RFL_VALID_UNAVAILABLE && a->validity != RFL_VALID_PARTIAL))
			continue;
		if (again)
			rfl_buf_printf(out, "; %s: the same", name);
		else
			rfl_buf_printf(out, "%s%s: %s", said ? "; " : "partial: ", name, why(a));
		said = why(a);
	}
	for (size_t i = 0; !said && i < RFL_ARRAY_LEN(wanted); i++) {
		const struct rfl_amount *a = &c->total[wanted[i].quantity];

		if (!is_wanted(i, sets) || a->validity != RFL_VALID_MARKED)
			continue;
		rfl_buf_printf(out, "marked: %s: %s", rfl_quantity_info(wanted[i].quantity)->name,
			       why(a));
		said = why(a);
	}
	if (!said)
		rfl_buf_puts(out, "ok");
}

/* ---- self-tests ---- */

static double metric_of(const struct rfl_range *r, const char *name)
{
	for (size_t i = 0; i < r->nmetrics; i++)
		if (strcmp(r->metrics[i].name, name) == 0)
			return r->metrics[i].value;
	return (double)NAN;
}

double rfl_counted_self_test(const struct rfl_capture *capture, enum rfl_quantity quantity)
{
	const char *known =
		quantity == RFL_QUANTITY_DRAM ? RFL_METRIC_KNOWN_DRAM : RFL_METRIC_KNOWN_FLOPS;
	double worst = (double)NAN;

	for (size_t i = 0; i < capture->nranges; i++) {
		const struct rfl_range *r = &capture->ranges[i];
		double ratio = r->amount[quantity].value / metric_of(r, known);

		if (r->kind != RFL_RANGE_SELF_TEST || isnan(ratio))
			continue;
		if (isnan(worst) || fabs(ratio - 1) > fabs(worst - 1))
			worst = ratio;
	}
	return worst;
}

void rfl_counted_status(const struct rfl_capture *capture, unsigned sets, struct rfl_buf *out)
{
	if (anything_counted(capture))
		say_lacking(capture, sets, out);
	else
		say_unavailable(capture, sets, out);
}
