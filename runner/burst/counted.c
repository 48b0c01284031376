/* counted.c - runs a training step as a counter source's workload and interprets the counts. */
#include "runner/burst/counted.h"

#include <math.h>
#include <string.h>

#include "profile/cupti/plan.h"

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
	struct rfl_ranges *ranges; /* of the current pass */
};

/* Begin a range once earlier work, which belongs to the previous range, is complete. */
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

/* Begin a phase, or the optimizer as a layer; the engine's marks begin the other layers. */
static enum rfl_rc begin_phase(struct step *s, const char *name, struct rfl_err *err)
{
	if (s->config->detail == RFL_DETAIL_PHASE)
		return begin(s, RFL_RANGE_PHASE, name, err);
	if (s->config->detail == RFL_DETAIL_LAYER && strcmp(name, "opt") == 0)
		return begin(s, RFL_RANGE_LAYER, name, err);
	return RFL_OK;
}

static enum rfl_rc run_step(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct step *s = ctx;
	const struct rfl_engine_ops *ops = s->parts->ops;
	const enum rfl_run_mode mode = s->config->mode;
	const int64_t accum = s->config->accum > 1 ? s->config->accum : 1;
	struct rfl_backward how = { .weight = 1.0 / (double)accum };
	const bool backward = rfl_run_mode_backward(mode);
	struct rfl_engine *e = s->parts->engine;
	enum rfl_rc rc = RFL_OK;

	s->ranges = ranges;
	if (s->config->detail == RFL_DETAIL_STEP)
		rc = begin(s, RFL_RANGE_STEP, "step", err);
	for (int64_t m = 0; m < accum && rc == RFL_OK; m++) {
		how.last = m + 1 == accum;
		rc = begin_phase(s, "fwd", err);
		if (rc == RFL_OK && m == 0 && backward)
			rc = ops->zero_grad(e, err);
		if (rc == RFL_OK)
			rc = rfl_run_mode_caches(mode)
				     ? ops->generate(e, &s->batch, s->config->past, err)
				     : ops->forward(e, &s->batch, err);
		if (rc == RFL_OK && backward && (rc = begin_phase(s, "bwd", err)) == RFL_OK)
			rc = ops->backward(e, &how, err);
	}
	if (rc == RFL_OK && mode == RFL_RUN_TRAIN && (rc = begin_phase(s, "opt", err)) == RFL_OK)
		rc = ops->step(e, err);
	if (rc == RFL_OK)
		rc = ops->sync(e, err);
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

/* Run the step on the next batch: by a source, or once in the ranges of `step`. */
static enum rfl_rc with_batch(struct step *step, const struct rfl_source_ops *source,
			      const struct rfl_workload *workload, struct rfl_captures *to,
			      struct rfl_err *err)
{
	const struct rfl_counted_parts *p = step->parts;
	const bool marks = step->config->detail == RFL_DETAIL_LAYER;
	enum rfl_rc rc, off = RFL_OK;

	if ((rc = rfl_data_next(p->data, &step->batch, err)) ||
	    (marks && (rc = p->ops->mark(p->engine, on_mark, step, err))))
		return rc;
	rfl_data_rest(p->data); /* decoding is not part of the step */
	rc = source ? source->measure(&step->config->request, workload, to, err)
		    : run_step(step, step->ranges, err);
	if (marks)
		off = p->ops->mark(p->engine, NULL, NULL, rc == RFL_OK ? err : NULL);
	return rc ? rc : off;
}

enum rfl_rc rfl_counted_run(const struct rfl_source_ops *source,
			    const struct rfl_counted_config *config,
			    const struct rfl_counted_parts *parts, struct rfl_captures *to,
			    struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = parts->ops;
	const bool marks = config->detail == RFL_DETAIL_LAYER;
	/* a forward pass in evaluation mode changes nothing; all other modes need a restore */
	const bool restores = rfl_run_mode_backward(config->mode);
	struct step step = { .config = config, .parts = parts };
	const struct rfl_workload workload = {
		.run = run_step,
		.save = restores ? save : NULL,
		.restore = restores ? restore : NULL,
		.ctx = &step,
		/* one per node and loss, forward and backward, and one for the optimizer */
		.max_ranges = marks ? 2 * ((size_t)parts->net->nnodes + 1) + 1 : 3,
	};

	if (restores && (!ops->snapshot || !ops->restore))
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot undo a step, so its steps cannot be counted in "
				"several passes: use --mode fwd or another --engine",
				ops->name);
	if (marks && !ops->mark)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot tell layers apart (it has no marks): use "
				"--counters phase",
				ops->name);
	return with_batch(&step, source, &workload, to, err);
}

enum rfl_rc rfl_counted_once(const struct rfl_counted_config *config,
			     const struct rfl_counted_parts *parts, struct rfl_ranges *ranges,
			     struct rfl_err *err)
{
	struct step step = { .config = config, .parts = parts, .ranges = ranges };

	return with_batch(&step, NULL, NULL, NULL, err);
}

/* The sets that request each quantity. A CPU, which has no sets, counts all but PCIe. */
static const struct {
	unsigned sets; /* any of these requests the quantity */
	enum rfl_quantity quantity;
} wanted[] = {
	{ RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_AUDIT, RFL_QUANTITY_FLOPS },
	{ RFL_SET_CORE, RFL_QUANTITY_DRAM },
	{ RFL_SET_LINKS, RFL_QUANTITY_PCIE_READ },
};

/* If none of these is known, nothing was counted. */
static const enum rfl_quantity counted[] = {
	RFL_QUANTITY_FLOPS,  RFL_QUANTITY_DRAM,         RFL_QUANTITY_L2,
	RFL_QUANTITY_CYCLES, RFL_QUANTITY_INSTRUCTIONS, RFL_QUANTITY_PCIE_READ,
};

static bool is_wanted(size_t i, unsigned sets)
{
	return sets ? (wanted[i].sets & sets) != 0 : wanted[i].quantity != RFL_QUANTITY_PCIE_READ;
}

/* The total of a quantity over the whole step, or the reason why it is unknown. A GPU's FLOPs are
 * complete if the counts of the Tensor Cores in the run's precision and of fp32, which norms,
 * losses and updates always use, are known. */
static struct rfl_amount whole(const struct rfl_capture *c, const struct rfl_counted_asked *asked,
			       enum rfl_quantity q)
{
	struct rfl_amount a = c->total[q];
	enum rfl_quantity part = RFL_QUANTITY_COUNT;

	if (q == RFL_QUANTITY_FLOPS && asked->sets && !isnan(a.value)) {
		if (strcmp(asked->precision, "fp32") != 0)
			part = rfl_precision_matrix(asked->precision);
		if (isnan(c->total[RFL_QUANTITY_FLOPS_FP32].value))
			part = RFL_QUANTITY_FLOPS_FP32;
		else if (part != RFL_QUANTITY_COUNT && !isnan(c->total[part].value))
			part = RFL_QUANTITY_COUNT;
	}
	if (part != RFL_QUANTITY_COUNT) {
		a.validity = RFL_VALID_PARTIAL;
		a.reason =
			asked->sets & rfl_metric_set_of(part, asked->precision)
				? c->total[part].reason
				: "only some were requested: add core and flops to --counter-sets";
	}
	if (a.validity == RFL_VALID_MARKED && a.launches < rfl_capture_launches_of_total(c))
		a.validity = RFL_VALID_PARTIAL; /* both apply; partial is worse */
	if (a.validity == RFL_VALID_PARTIAL || a.validity == RFL_VALID_ESTIMATE)
		a.value = (double)NAN;
	return a;
}

double rfl_counted_per_step(const struct rfl_capture *capture,
			    const struct rfl_counted_asked *asked, enum rfl_quantity q)
{
	return capture->steps > 0 ? whole(capture, asked, q).value / (double)capture->steps
				  : (double)NAN;
}

/* ---- results as text ---- */

/* Append the reasons for refused sets, each reason once. If nothing was counted for a single
 * reason, omit the names of the sets. */
static size_t say_refusals(const struct rfl_capture *c, bool any, struct rfl_buf *out)
{
	RFL_AUTO(buf) sets = { .len = 0 };
	size_t n = 0, reasons = 0;

	for (size_t i = 0; i < c->nrefusals; i++)
		reasons += rfl_capture_refused_alike(c, i, &sets);
	for (size_t i = 0; i < c->nrefusals; i++) {
		rfl_buf_reset(&sets);
		if (!rfl_capture_refused_alike(c, i, &sets))
			continue;
		rfl_buf_puts(out, n++ ? "; " : "");
		if (any || reasons > 1)
			rfl_buf_printf(out, "%s: ", rfl_buf_str(&sets));
		rfl_buf_puts(out, c->refusals[i].reason);
	}
	return n;
}

/* Append the requested quantities of this validity, except those that a refused set explains. */
static size_t say_quantities(const struct rfl_capture *c, const struct rfl_counted_asked *asked,
			     enum rfl_validity validity, struct rfl_buf *out)
{
	const char *said = NULL;
	unsigned refused = 0; /* bits of the refused sets */
	size_t n = 0;

	for (size_t i = 0; i < c->nrefusals; i++)
		for (unsigned bit = 0; rfl_counter_set_names[bit]; bit++)
			if (strcmp(c->refusals[i].set, rfl_counter_set_names[bit]) == 0)
				refused |= 1U << bit;

	for (size_t i = 0; i < RFL_ARRAY_LEN(wanted); i++) {
		const enum rfl_quantity q = wanted[i].quantity;
		const struct rfl_amount a = whole(c, asked, q);
		const char *reason = a.reason ? a.reason : "no reason given";

		if (!is_wanted(i, asked->sets) || (wanted[i].sets & refused) ||
		    a.validity != validity)
			continue;
		rfl_buf_printf(out, "%s%s: ", out->len ? "; " : "", rfl_quantity_info(q)->name);
		rfl_buf_puts(out, said && strcmp(said, reason) == 0 ? "the same" : reason);
		said = reason;
		n++;
	}
	return n;
}

void rfl_counted_status(const struct rfl_capture *capture, const struct rfl_counted_asked *asked,
			struct rfl_buf *out)
{
	const char *word = "unavailable";
	RFL_AUTO(buf) text = { .len = 0 };
	bool any = false;
	size_t n;

	for (size_t i = 0; i < RFL_ARRAY_LEN(counted); i++)
		any = any || !isnan(capture->total[counted[i]].value);
	n = say_refusals(capture, any, &text);
	if (any) {
		word = "partial";
		n += say_quantities(capture, asked, RFL_VALID_UNAVAILABLE, &text) +
		     say_quantities(capture, asked, RFL_VALID_PARTIAL, &text) +
		     say_quantities(capture, asked, RFL_VALID_ESTIMATE, &text);
		if (n == 0 && say_quantities(capture, asked, RFL_VALID_MARKED, &text))
			word = "marked";
	}
	/* if nothing was counted, give one reason; none if only kernel times were requested */
	for (size_t i = 0; !any && n == 0 && i < RFL_ARRAY_LEN(wanted); i++) {
		const char *why = capture->total[wanted[i].quantity].reason;

		if (!is_wanted(i, asked->sets))
			continue;
		rfl_buf_puts(&text, why ? why : "");
		break;
	}
	if (text.len > 0)
		rfl_buf_printf(out, "%s: %s", word, rfl_buf_str(&text));
	else
		rfl_buf_puts(out, "ok");
	if (text.failed)
		out->failed = true;
}

/* True if a metric is a ratio of the family: "selftest.dram_read_bytes.ratio" belongs to "dram". */
static bool is_ratio_of(const char *metric, const char *family)
{
	static const char prefix[] = "selftest.", suffix[] = ".ratio";
	const size_t n = strlen(metric), front = sizeof(prefix) - 1, back = sizeof(suffix) - 1;

	return n > front + back && strncmp(metric, prefix, front) == 0 &&
	       strncmp(metric + front, family, strlen(family)) == 0 &&
	       strcmp(metric + n - back, suffix) == 0;
}

double rfl_counted_self_test(const struct rfl_capture *capture, const char *family)
{
	double worst = (double)NAN;

	for (size_t i = 0; i < capture->nranges; i++) {
		const struct rfl_range *r = &capture->ranges[i];

		for (size_t m = 0; r->kind == RFL_RANGE_SELF_TEST && m < r->nmetrics; m++) {
			const double ratio = r->metrics[m].value;

			if (isnan(ratio) || !is_ratio_of(r->metrics[m].name, family))
				continue;
			if (isnan(worst) || fabs(ratio - 1) > fabs(worst - 1))
				worst = ratio;
		}
	}
	return worst;
}
