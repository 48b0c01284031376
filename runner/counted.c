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

/* A reason that says no more than that it was not counted. */
static bool is_general(const char *reason)
{
	return !reason || strncmp(reason, "not counted: ", 13) == 0 ||
	       strcmp(reason, "none of its parts is known") == 0;
}

static bool is_part_of(enum rfl_quantity part, enum rfl_quantity whole)
{
	if (whole == RFL_QUANTITY_DRAM)
		return part == RFL_QUANTITY_DRAM_READ || part == RFL_QUANTITY_DRAM_WRITE;
	return whole == RFL_QUANTITY_FLOPS && rfl_quantity_is_flops(part);
}

/* Why a quantity lacks: its own reason, or of the parts that it would be the sum of. */
static const char *why(const struct rfl_capture *c, enum rfl_quantity q)
{
	const char *reason = c->total[q].reason;

	for (int part = 0; part < RFL_QUANTITY_COUNT && is_general(reason); part++) {
		const struct rfl_amount *a = &c->total[part];

		if (is_part_of((enum rfl_quantity)part, q) && isnan(a->value) &&
		    !is_general(a->reason))
			reason = a->reason;
	}
	return reason ? reason : "not counted";
}

/* How a source says in its notes that a whole set lacks, and why. */
static const struct {
	const char *set; /* NULL: all that are counters */
	const char *prefix;
	bool beside; /* goes without saying where nothing at all was counted */
} told[] = {
	{ NULL, "no counters: ", false },
	{ "core", "core: not counted: ", false },
	{ "flops", "flops: not counted: ", false },
	{ "audit", "audit: not counted: ", false },
	{ "links", "links: not counted: ", false },
	{ "kernels", "no times of kernels: ", true },
	{ "self-test", "self-test: not done: ", true },
};

/* One note. @return what it says behind the prefix, or NULL */
static const char *say_note(const char *note, bool any, const char *said, struct rfl_buf *out)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(told); i++) {
		const size_t n = strlen(told[i].prefix);
		const char *reason = note + n;

		if (strncmp(note, told[i].prefix, n) != 0 || (told[i].beside && !any))
			continue;
		rfl_buf_puts(out, said ? "; " : "");
		if (told[i].set)
			rfl_buf_printf(out, "%s: ", told[i].set);
		rfl_buf_puts(out, said && strcmp(said, reason) == 0 ? "the same" : reason);
		return reason;
	}
	return NULL;
}

/* What the source says of whole sets. @return whether it said anything */
static bool say_sets(const struct rfl_capture *c, bool any, struct rfl_buf *out)
{
	const char *said = NULL;

	for (size_t i = 0; i < c->nnotes; i++) {
		const char *reason = say_note(c->notes[i], any, said, out);

		said = reason ? reason : said;
	}
	return said != NULL;
}

/* What was wanted and is not whole. @return how many there are */
static size_t say_quantities(const struct rfl_capture *c, unsigned sets, bool whole,
			     enum rfl_validity validity, struct rfl_buf *out)
{
	const char *said = NULL;
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(wanted); i++) {
		const enum rfl_quantity q = wanted[i].quantity;

		if (!is_wanted(i, sets) || c->total[q].validity != validity)
			continue;
		rfl_buf_puts(out, n++ ? "; " : "");
		if (!whole)
			rfl_buf_printf(out, "%s: ", rfl_quantity_info(q)->name);
		rfl_buf_puts(out, said && strcmp(said, why(c, q)) == 0 ? "the same" : why(c, q));
		said = why(c, q);
		if (whole)
			break; /* of nothing at all one reason is enough */
	}
	return n;
}

void rfl_counted_status(const struct rfl_capture *capture, unsigned sets, struct rfl_buf *out)
{
	static const struct {
		enum rfl_validity validity;
		const char *word;
	} grades[] = {
		{ RFL_VALID_UNAVAILABLE, "partial: " },
		{ RFL_VALID_PARTIAL, "partial: " },
		{ RFL_VALID_MARKED, "marked: " },
	};
	const bool any = anything_counted(capture);
	struct rfl_buf text;
	const char *word = any ? "partial: " : "unavailable: ";
	size_t n;

	rfl_buf_init(&text, 0);
	n = say_sets(capture, any, &text);
	if (n == 0 && !any)
		n = say_quantities(capture, sets, true, RFL_VALID_UNAVAILABLE, &text);
	for (size_t i = 0; n == 0 && i < RFL_ARRAY_LEN(grades); i++) {
		word = grades[i].word;
		n = say_quantities(capture, sets, false, grades[i].validity, &text);
	}
	if (n > 0)
		rfl_buf_printf(out, "%s%s", word, rfl_buf_str(&text));
	else
		rfl_buf_puts(out, "ok"); /* perhaps times of kernels only were asked for */
	rfl_buf_fini(&text);
}

/* ---- self-tests ---- */

/* "selftest.dram_read_bytes.ratio" is of the family "dram". */
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
