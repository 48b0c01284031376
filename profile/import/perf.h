/*
 * perf.h - inside the importer of perf stat: what the three forms (text, -x, -j) give, and
 * what becomes of it.
 */
#ifndef RFL_PROFILE_IMPORT_PERF_H
#define RFL_PROFILE_IMPORT_PERF_H

#include <stdint.h>

#include "base/alloc.h"
#include "profile/import/impl.h"
#include "profile/import/span.h"

enum rfl_perf_state { RFL_PERF_COUNTED, RFL_PERF_NOT_COUNTED, RFL_PERF_NOT_SUPPORTED };

/* One line of perf: an event on one PMU, one socket or processor, in one interval. */
struct rfl_perf_row {
	struct rfl_span event, unit;
	struct rfl_span place; /* processor, socket or thread; empty: all together */
	struct rfl_span time;  /* of the interval; empty: there is one */
	enum rfl_perf_state state;
	double value;
	double half_digit;    /* of the value as it was printed; 0: it is exact */
	double running;       /* percent of the time; NaN: not given, which is all of it */
	double cpus_utilized; /* printed beside task-clock; NaN: not */
};

/* One PMU of an event: hybrid processors have two, memory controllers many. Counts of user and
 * kernel mode are parts as well. */
struct rfl_perf_part {
	const char *pmu, *modifiers;
	uint64_t interval; /* fingerprint of the newest */
	uint64_t *places;  /* of which it has rows */
	size_t nplaces, cap;
	double value, running, half_digit;
	double raw;    /* what was counted before perf scaled it */
	double shares; /* percent of the time, of all rows */
	bool placed;   /* of single processors or sockets */
	int64_t counted, not_counted, not_supported;
};

struct rfl_perf_event_sum {
	const char *name, *unit;
	struct rfl_perf_part *parts;
	size_t nparts, cap;
};

/* One "Performance counter stats for": a process range. */
struct rfl_perf_block {
	struct rfl_import *import;
	struct rfl_capture_builder *b;
	struct rfl_metric_ids ids;
	struct rfl_arena *arena; /* names and reasons, as long as the builder */
	struct rfl_perf_event_sum *events;
	size_t nevents, cap;
	char command[256];
	double elapsed, user, system;
	double cpus_utilized; /* NaN: not known, or of several rows */
	bool open, intervals;
};

/* ---- import/perf.c ---- */

/** Begin a block, and end the one before. */
enum rfl_rc rfl_perf__begin(struct rfl_perf_block *k, struct rfl_span command,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** Add a row to the block. */
enum rfl_rc rfl_perf__row(struct rfl_perf_block *k, const struct rfl_perf_row *row,
			  struct rfl_err *err) RFL_WARN_UNUSED;

enum rfl_rc rfl_perf__no_memory(const struct rfl_perf_block *k, struct rfl_err *err);

/* ---- import/perf_event.c ---- */

/** What an event is over its PMUs; the name and the reason are borrowed from the block. */
enum rfl_rc rfl_perf__event(struct rfl_perf_block *k, const struct rfl_perf_event_sum *e,
			    struct rfl_reading *r, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- import/perf_names.c ---- */

/* What an event as perf prints it is called in the formulas, and in which unit. */
struct rfl_perf_name {
	char name[160];
	char pmu[64];       /* "cpu_core", "uncore_imc_3"; "": none is named */
	const char *unit;   /* SI base unit */
	double scale;       /* of the value, to that unit; below 0: the value is divided by it */
	char modifiers[16]; /* "u", "k"; "": none */
};
/** False: the unit is not known. */
bool rfl_perf__name(struct rfl_span event, struct rfl_span unit, struct rfl_perf_name *ret);

/* ---- the three forms ---- */

enum rfl_rc rfl_perf__read_text(struct rfl_perf_block *k, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_perf__read_csv(struct rfl_perf_block *k, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_perf__read_json(struct rfl_perf_block *k, struct rfl_err *err) RFL_WARN_UNUSED;

/** How sure it is that these are the first bytes of such a file. */
int rfl_perf__detect_text(struct rfl_span head);
int rfl_perf__detect_csv(struct rfl_span head);
int rfl_perf__detect_json(struct rfl_span head);

#endif
