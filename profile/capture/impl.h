/*
 * impl.h - the inside of a builder of captures, for the files of capture/.
 */
#ifndef RFL_PROFILE_CAPTURE_IMPL_H
#define RFL_PROFILE_CAPTURE_IMPL_H

#include <stdint.h>

#include "base/buf.h"
#include "profile/capture.h"
#include "profile/formula/impl.h"

#define RFL_CAPTURE_RANGES_MAX ((size_t)1 << 16) /* of about 2 KiB each */

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
	uint8_t validity;
};

/* A metric over the launches of a range. */
struct rfl_metric_sum {
	double value;
	double weight;    /* launches behind a mean */
	int64_t launches; /* that had it */
	const char *reason;
	uint32_t id;
	int pass;
	uint8_t validity;
};

/* A quantity over the launches of a range. */
struct rfl_quantity_sum {
	double value;
	int64_t launches; /* that had it; 0: the value is none */
	const char *reason;
	int way;
	uint8_t validity;
	bool several_ways;
	bool is_left_out; /* by a trap: nothing is missing */
};

struct rfl_range_sum {
	enum rfl_range_kind kind;
	const char *name, *block, *grid; /* interned */
	uint64_t hash;
	int64_t launches;
	struct rfl_metric_sum *metrics;
	uint32_t nmetrics, metrics_cap;
	uint32_t *where; /* index in metrics + 1, by id */
	uint32_t nwhere;
	struct rfl_quantity_sum quantity[RFL_QUANTITY_COUNT];
};

/* A table of places by hash: 0 is free. */
struct rfl_places {
	uint32_t *at;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

struct rfl_capture_builder {
	struct rfl_arena *arena; /* becomes the capture's */
	struct rfl_formulas *formulas;
	struct rfl_capture capture; /* what is known so far; texts in the arena */
	bool all_metrics;
	bool no_memory; /* sticky, of functions that return nothing */

	const char **texts; /* interned */
	size_t ntexts, texts_cap;
	struct rfl_places text_places;

	struct rfl_metric_def *metrics;
	size_t nmetrics, metrics_cap;
	struct rfl_places metric_places; /* of those that are no slot */
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
	struct rfl_range_sum *range; /* NULL: none begun */

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

/* ---- capture/text.c ---- */

/** Where to look first. The next place is (at + 1) & (size - 1). */
size_t rfl_places_first(const struct rfl_places *p, uint64_t hash);
void rfl_places_put(struct rfl_places *p, uint64_t hash, uint32_t value);
/** Twice as many places, all free: the caller puts everything into them again. */
bool rfl_places_grow(struct rfl_places *p);
bool rfl_places_are_full(const struct rfl_places *p);

/** One copy of a text for the life of the capture; NULL out of memory. */
const char *rfl_capture__intern(struct rfl_capture_builder *b, const char *text, size_t len);

/** The same of a text that may be NULL; false out of memory. */
bool rfl_capture__keep(struct rfl_capture_builder *b, const char **to, const char *text);

/** Room for one more element in a malloc'ed array, whose address is `array`. */
bool rfl_capture__room(void *array, size_t n, size_t *cap, size_t size);

/* ---- capture/launch.c ---- */

/** No launch is begun. */
void rfl_capture__forget_launch(struct rfl_capture_builder *b);

/* ---- capture/finish.c, capture/total.c ---- */

/* What is made while a capture is finished. */
struct rfl_finish {
	struct rfl_capture_builder *b;
	struct rfl_buf text; /* scratch */
	double *slots;       /* of the range at hand */
	struct rfl_range *ranges;
	bool left_out[RFL_QUANTITY_COUNT]; /* of a range, by a trap: nothing is missing */
	uint64_t present[RFL_SLOT_WORDS];
	bool has_reasons; /* reasons are those of `present` */
	const char *reasons[RFL_QUANTITY_COUNT];
	struct rfl_err *err;
};

enum rfl_rc rfl_finish__no_memory(struct rfl_finish *f);
/** What was written into the scratch buffer, for the life of the capture; NULL out of memory. */
const char *rfl_finish__kept(struct rfl_finish *f);
/** An amount is no better than this; the reason of the worst goes first. */
void rfl_finish__raise(struct rfl_finish *f, struct rfl_amount *amount, enum rfl_validity validity,
		       const char *reason);
/** @param why  it is not known of the others; NULL: nothing to say of that */
enum rfl_rc rfl_finish__partial(struct rfl_finish *f, int64_t counted, int64_t all,
				const char *what, const char *why,
				struct rfl_amount *amount) RFL_WARN_UNUSED;
/** Of amounts that are all there: a lower bound of 0 says nothing and is not known; flops.total has
 * its parts for a rule, and those that were not counted for a remark.
 * @param is_sum  flops.total is the sum of its parts */
enum rfl_rc rfl_finish__settle(struct rfl_finish *f, bool is_sum, bool is_total,
			       struct rfl_amount *amounts) RFL_WARN_UNUSED;
/** The totals over the capture's ranges. */
enum rfl_rc rfl_finish__totals(struct rfl_finish *f) RFL_WARN_UNUSED;

/* ---- capture.c, capture/build.c ---- */

/** Append a finished capture and its arena, which is taken on success only. */
enum rfl_rc rfl_captures__add(struct rfl_captures *to, const struct rfl_capture *capture,
			      struct rfl_arena *arena, struct rfl_err *err) RFL_WARN_UNUSED;

/** A builder without formulas, for a reader that fills the capture itself; NULL out of memory. */
struct rfl_capture_builder *rfl_capture__empty_builder(void);

/** The notes, and everything into `to`. On failure the builder is as it was. */
enum rfl_rc rfl_capture__hand_over(struct rfl_capture_builder *b, struct rfl_captures *to,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** A note of which the builder's text is kept once. */
void rfl_capture__note(struct rfl_capture_builder *b, const char *text);

#endif
