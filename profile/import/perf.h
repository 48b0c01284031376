/* perf.h - interface between perf.c and perf_forms.c, which reads perf stat's text, -x and -j. */
#ifndef RFL_PROFILE_IMPORT_PERF_H
#define RFL_PROFILE_IMPORT_PERF_H

#include "profile/import/impl.h"

enum rfl_perf_state { RFL_PERF_COUNTED, RFL_PERF_NOT_COUNTED, RFL_PERF_NOT_SUPPORTED };

/* A row of perf's output: an event on one PMU, one socket or CPU, in one interval. */
struct rfl_perf_row {
	struct rfl_span event, unit;
	struct rfl_span place; /* CPU, socket or thread; empty: all */
	struct rfl_span time;  /* end of the interval; empty: there is only one */
	enum rfl_perf_state state;
	double value;
	double half_digit;    /* half a unit of the last printed digit; 0: exact */
	double running;       /* percent of the time; NaN: not printed, which means 100 */
	double cpus_utilized; /* printed next to task-clock, else NaN */
};

struct rfl_perf;
typedef enum rfl_rc rfl_perf_form(struct rfl_perf *k, struct rfl_span line);

/* The state of a file. "Performance counter stats for" begins a block, a range of a process. */
struct rfl_perf {
	struct rfl_import i;
	rfl_perf_form *form;
	struct rfl_perf_part *parts; /* parts of events, in the order of the file */
	size_t nparts;
	struct rfl_keys rows; /* part, time and place of the rows of the block */
	char command[256];
	double elapsed, user, system;
	double cpus_utilized; /* NaN: unknown, or printed in several rows */
	bool open, any, intervals;

	/* used by perf_forms.c */
	char separator; /* the separator of -x; 0: unknown so far */
	char decimal;   /* the decimal sign of the text; 0: unknown so far */
	bool begun, interval_text;
	bool ended; /* the elapsed time was read: no events follow */
};

/** Begin a block, and end the previous one. */
void rfl_perf__begin(struct rfl_perf *k, struct rfl_span command);
/** Add a row to the block. */
enum rfl_rc rfl_perf__row(struct rfl_perf *k, const struct rfl_perf_row *row) RFL_WARN_UNUSED;
/** Whether a unit is known, or empty. */
bool rfl_perf__is_known(struct rfl_span unit);

rfl_perf_form rfl_perf__text; /* perf stat's default output */
/** Detect the form of a file. @return how sure it is that perf stat wrote the file, 0 to 100 */
int rfl_perf__form(struct rfl_span head, rfl_perf_form **ret);
/** Detect the decimal sign from lines of perf: "2.382450831 seconds time elapsed", "0,874 CPUs"; 0:
 * no line shows it. */
char rfl_perf__decimal(struct rfl_span head);

#endif
