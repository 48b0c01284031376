/*
 * counters_read.h - the state of reading counters.csv, for counters_field.c and counters_read.c.
 */
#ifndef RFL_PROFILE_COUNTERS_READ_H
#define RFL_PROFILE_COUNTERS_READ_H

#include <stdint.h>

#include "base/csv.h"
#include "profile/capture/impl.h"
#include "profile/capture/counters_impl.h"

/* Of launches, steps and rows: sums of them do not overflow. */
#define RFL_COUNTERS_MOST INT64_C(1000000000000)

/* Ranges of one capture: kernels by block and grid. */
#define RFL_COUNTERS_RANGES_MOST 500000

/* A range while its rows are read: its metrics lie in an array that grows. */
struct rfl_counters_range {
	struct rfl_range r;
	struct rfl_metric *metrics;
	size_t nmetrics, cap;
	bool has_amount[RFL_QUANTITY_COUNT];
	uint64_t hash;
};

/* A metric that a range has, to tell when it comes again. */
struct rfl_counters_seen {
	uint64_t hash;
	size_t range, metric;
};

struct rfl_counters_reader {
	struct rfl_csv *csv;
	int column[COUNTER_COLUMNS];
	struct rfl_captures *to;
	struct rfl_err *err;

	/* the capture at hand; a builder keeps its texts and its notes */
	struct rfl_capture_builder *b;
	bool has_total[RFL_QUANTITY_COUNT];
	struct rfl_counters_range *ranges;
	size_t nranges, cap;
	struct rfl_places places;
	size_t last; /* range, most rows are of the one before */
	struct rfl_places metric_places;
	struct rfl_counters_seen *seen;
	size_t nseen, seen_cap;
};

enum rfl_rc rfl_counters__no_memory(const struct rfl_counters_reader *rd);
/** "file:line: column 'name': what" */
enum rfl_rc rfl_counters__bad(const struct rfl_counters_reader *rd, int column, const char *what);
/** The same of a word that is none of those that belong there. */
enum rfl_rc rfl_counters__unknown(const struct rfl_counters_reader *rd, int column);

/** The text of the row in a column, until the next row. */
const char *rfl_counters__text(const struct rfl_counters_reader *rd, int column);
/** The same for the life of the capture; NULL where it is empty. */
enum rfl_rc rfl_counters__take_text(const struct rfl_counters_reader *rd, int column,
				    const char **ret) RFL_WARN_UNUSED;
/** The same, "" where it is empty. */
enum rfl_rc rfl_counters__take_name(const struct rfl_counters_reader *rd, int column,
				    const char **ret) RFL_WARN_UNUSED;
/** A count. @param none  where it is empty */
enum rfl_rc rfl_counters__take_int(const struct rfl_counters_reader *rd, int column, int64_t none,
				   int64_t *ret) RFL_WARN_UNUSED;
/** The index of the row's word among `names`. */
enum rfl_rc rfl_counters__take_choice(const struct rfl_counters_reader *rd, int column,
				      const char *const *names, int *ret) RFL_WARN_UNUSED;
/** The value, which agrees with the validity. */
enum rfl_rc rfl_counters__take_value(const struct rfl_counters_reader *rd, double *value,
				     enum rfl_validity *validity) RFL_WARN_UNUSED;

#endif
