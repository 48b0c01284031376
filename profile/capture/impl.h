/* impl.h - internals of the capture builder, for the files of capture/ and for importers. */
#ifndef RFL_PROFILE_CAPTURE_IMPL_H
#define RFL_PROFILE_CAPTURE_IMPL_H

#include <stdint.h>

#include "profile/capture.h"
#include "profile/formula.h"
#include "base/keys.h"

#define RFL_CAPTURE_RANGES_MAX ((size_t)1 << 16) /* about 3 KiB each */

/* What the name of a metric that no formula uses suggests: it counts one of these quantities. */
struct rfl_hint {
	const char *word;
	enum rfl_quantity first, last; /* first > last: nothing that has a quantity */
};
extern const struct rfl_hint rfl_capture__hints[];
#define RFL_HINTS_MAX 32 /* a range keeps a bit for each */

/* A metric without its values. Its index is its id: the slots of the formulas come first. */
struct rfl_metric_def {
	const char *name, *unit;
	enum rfl_rollup rollup;
	int hint;    /* index in rfl_capture__hints; -1: none */
	bool hidden; /* kept for its hint only */
};

/* A metric in the current launch. */
struct rfl_given_metric {
	const char *reason;
	int pass;
	bool is_given;
	enum rfl_validity validity;
};

/* A quantity summed over the launches of a range. */
struct rfl_quantity_sum {
	double value;
	int64_t launches; /* launches with a value; 0: `value` is invalid */
	const char *reason;
	int way;
	enum rfl_validity validity;
	bool several_ways;
	bool is_left_out; /* discarded by a trap; not missing */
};

/* A range under construction. Metrics are sums; means are divided by the launches at the end. */
struct rfl_range_sum {
	struct rfl_range range; /* `metrics` and `amount` are set at the end */
	struct rfl_metric *metrics;
	uint32_t *where; /* index in metrics + 1, by id */
	size_t nwhere;
	struct rfl_quantity_sum quantity[RFL_QUANTITY_COUNT];
	uint32_t hinted; /* bits of the hints of metrics above 0 */
};

struct rfl_capture_builder {
	struct rfl_arena
		*scratch; /* everything that the capture does not need, this struct included */
	struct rfl_arena *arena; /* ownership passes to the capture */
	struct rfl_formulas *formulas;
	struct rfl_capture capture; /* filled as values become known; strings are in the arena */
	bool all_metrics;

	struct rfl_keys texts; /* interned */

	struct rfl_metric_def *metrics;
	size_t nmetrics, metrics_cap;
	struct rfl_keys asked; /* names and units of all requested metrics */
	int *ids;              /* their ids; -1: not kept */
	size_t ids_cap;
	const char *hints[RFL_HINTS_MAX]; /* the first metric with each hint; NULL: none */

	/* the current launch, by id */
	double *value;
	struct rfl_given_metric *given;
	uint32_t *touched;
	size_t ntouched;
	size_t given_cap;
	uint64_t present[RFL_SLOT_WORDS];
	enum rfl_validity worst;
	int64_t n;
	struct rfl_range_sum *range; /* the range of the current launch; NULL: there is none */

	/* the ways chosen for the previous launch, valid for all launches with the same metrics */
	uint64_t last_present[RFL_SLOT_WORDS];
	int last_way[RFL_QUANTITY_COUNT];
	bool has_last;

	struct rfl_range_sum **ranges;
	size_t nranges;
	struct rfl_keys range_keys; /* in the order of `ranges` */
	const char *excess;         /* name of the first range too many; NULL: there is none */

	const char **notes;
	struct rfl_refusal *refusals;
};

/** Return the unique copy of a string, owned by the capture. */
const char *rfl_capture__intern(struct rfl_capture_builder *b, const char *text, size_t len);
/** The same for a string that may be NULL. */
const char *rfl_capture__keep(struct rfl_capture_builder *b, const char *text);

/** Find a range or add it. NULL: the capture has too many. */
struct rfl_range_sum *rfl_capture__range(struct rfl_capture_builder *b, enum rfl_range_kind kind,
					 const char *name, const char *block, const char *grid);

/** RFL_EOVERFLOW if there were too many ranges. */
enum rfl_rc rfl_capture__check(const struct rfl_capture_builder *b,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Derive the quantities of the current launch, if any, and add it to its range. */
void rfl_capture__end(struct rfl_capture_builder *b);

/** A builder without formulas, for callers that fill the capture themselves. */
struct rfl_capture_builder *rfl_capture__empty_builder(void);

/** Append the capture to `to`, and free the builder. */
void rfl_capture__hand_over(struct rfl_capture_builder *b, struct rfl_captures *to);

/** Whether a metric is kept for its hint only; its value may be rounded. */
bool rfl_capture__is_hidden(const struct rfl_capture_builder *b, int metric);

#endif
