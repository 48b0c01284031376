/*
 * impl.h - the inside of a builder of captures, for the files of capture/ and for importers.
 */
#ifndef RFL_PROFILE_CAPTURE_IMPL_H
#define RFL_PROFILE_CAPTURE_IMPL_H

#include <stdint.h>

#include "profile/capture.h"
#include "profile/formula.h"
#include "profile/places.h"

#define RFL_CAPTURE_RANGES_MAX ((size_t)1 << 16) /* of about 3 KiB each */

/* What is known of a metric beside its values. Ids are slots first, then the others. */
struct rfl_metric_def {
	const char *name, *unit;
	enum rfl_rollup rollup;
};

/* A metric in the current launch. */
struct rfl_given_metric {
	const char *reason;
	int pass;
	bool is_given;
	enum rfl_validity validity;
};

/* A quantity over the launches of a range. */
struct rfl_quantity_sum {
	double value;
	int64_t launches; /* that had it; 0: there is no value */
	const char *reason;
	int way;
	enum rfl_validity validity;
	bool several_ways;
	bool is_left_out; /* by a trap: nothing is missing */
};

/* A range while it is built. Its metrics are sums; means are divided by the launches at the end. */
struct rfl_range_sum {
	struct rfl_range range; /* texts are interned; `metrics` and `amount` are set at the end */
	struct rfl_metric *metrics;
	size_t metrics_cap;
	uint32_t *where; /* index in metrics + 1, by id */
	size_t nwhere;
	struct rfl_quantity_sum quantity[RFL_QUANTITY_COUNT];
};

struct rfl_capture_builder {
	struct rfl_arena *arena; /* becomes the capture's */
	struct rfl_formulas *formulas;
	struct rfl_capture capture; /* what is known so far; texts in the arena */
	bool all_metrics;
	bool no_memory; /* stays: checked when a launch or the capture ends */

	const char **texts; /* interned */
	size_t ntexts, texts_cap;
	struct rfl_places text_places;

	struct rfl_metric_def *metrics;
	size_t nmetrics, metrics_cap;
	struct rfl_places metric_places; /* of those that are not slots */
	bool asked;                      /* ids were handed out */
	/* of those that no formula names: the first that looks like a count of a quantity */
	const char *strange[RFL_QUANTITY_COUNT];

	/* the current launch, by id */
	double *value;
	struct rfl_given_metric *given;
	uint32_t *touched;
	size_t ntouched;
	size_t given_cap;
	uint64_t present[RFL_SLOT_WORDS];
	enum rfl_validity worst;
	int64_t n;
	struct rfl_range_sum *range; /* the last that was begun */

	/* the ways of the last launch that was like this one */
	uint64_t last_present[RFL_SLOT_WORDS];
	int last_way[RFL_QUANTITY_COUNT];
	bool has_last;

	struct rfl_range_sum **ranges;
	size_t nranges, ranges_cap;
	struct rfl_places range_places;

	const char **notes;
	size_t nnotes, notes_cap;
	struct rfl_refusal *refusals;
	size_t nrefusals, refusals_cap;
};

/** One copy of a text for the life of the capture; NULL out of memory, and b->no_memory is set. */
const char *rfl_capture__intern(struct rfl_capture_builder *b, const char *text, size_t len);
/** The same of a text that may be NULL. */
const char *rfl_capture__keep(struct rfl_capture_builder *b, const char *text);

/** Whether it is the range of this kind, name, block and grid; the last two may be NULL. */
bool rfl_capture__is_range(const struct rfl_range *r, enum rfl_range_kind kind, const char *name,
			   const char *block, const char *grid);

void rfl_capture__range_free(struct rfl_range_sum *r);

/** A builder without formulas, for a reader that fills the capture itself; NULL out of memory. */
struct rfl_capture_builder *rfl_capture__empty_builder(void);

/** The notes, and everything into `to`. RFL_ENOMEM, also when an earlier call had no memory. */
enum rfl_rc rfl_capture__hand_over(struct rfl_capture_builder *b, struct rfl_captures *to,
				   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
