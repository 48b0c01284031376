/*
 * perf.h - inside the importer of perf stat: the rows that its three forms (text, -x, -j) give.
 */
#ifndef RFL_PROFILE_IMPORT_PERF_H
#define RFL_PROFILE_IMPORT_PERF_H

#include "profile/import/impl.h"

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

struct rfl_perf;
typedef enum rfl_rc rfl_perf_form(struct rfl_perf *k, struct rfl_span line);

/* A file, of which one "Performance counter stats for" is open: a process range. */
struct rfl_perf {
	struct rfl_import i;
	rfl_perf_form *form;
	struct rfl_perf_part *parts; /* of events, as they were printed */
	size_t nparts, cap;
	char command[256];
	double elapsed, user, system;
	double cpus_utilized; /* NaN: not known, or of several rows */
	bool open, any, intervals;

	/* of the forms */
	char separator; /* of -x; 0: not known yet */
	char decimal;   /* of the text; 0: not known yet */
	bool begun, interval_text;
	bool ended; /* the elapsed time was there: no events follow */
};

/** Begin a block, and end the one before. */
enum rfl_rc rfl_perf__begin(struct rfl_perf *k, struct rfl_span command) RFL_WARN_UNUSED;
/** Add a row to the block. */
enum rfl_rc rfl_perf__row(struct rfl_perf *k, const struct rfl_perf_row *row) RFL_WARN_UNUSED;
/** Whether a unit is known; events may have none. */
bool rfl_perf__is_known(struct rfl_span unit);

rfl_perf_form rfl_perf__text; /* for people */
/** The form by the first bytes. @return how sure it is that they are of perf stat */
int rfl_perf__form(struct rfl_span head, rfl_perf_form **ret);
/** The first number of perf's own lines that shows the decimal sign: "2.382450831 seconds time
 * elapsed", "0,874 CPUs"; 0: none. */
char rfl_perf__decimal(struct rfl_span head);

#endif
