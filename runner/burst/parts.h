/*
 * parts.h - inside runner/: what the files of the burst share.
 */
#ifndef RFL_RUNNER_BURST_PARTS_H
#define RFL_RUNNER_BURST_PARTS_H

#include <stddef.h>

#include "runner/burst.h"

#define RFL_BURST__NO_MARKS (-1)

struct rfl_burst__loop {
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	struct rfl_data *data;
	const struct rfl_burst_config *config;
	int64_t accum;
	bool read_losses; /* after every forward: where no one waits for it */
	bool marks;       /* steps are timed by marks in the device's queue */
	bool uploads;     /* batches are brought to the device ahead of their forward */
	bool waits;       /* for the device, at the end of every step */
	bool replays;     /* a step is recorded */

	struct rfl_batch batch; /* the next one, when have_batch */
	bool have_batch;
	bool uploading;    /* the memory of the last batch is still read */
	uint64_t uploaded; /* id of the batch that the device has; 0: of none */

	struct {
		const char *phase;
		int64_t done, total, at_ns;
	} reported; /* to config->progress() */

	enum rfl_detail named; /* ranges that a tool sees; off in the warm-up */
	bool in_layer;         /* one of them is open */
};

/* ---- one step, and its ranges under names for tools (burst/step.c) ---- */

/**
 * @param first_mark  of this step, RFL_BURST__NO_MARKS: it is not timed by them
 * @param ret         by the clock; times by marks come with rfl_burst__read_marks()
 */
enum rfl_rc rfl_burst__step(struct rfl_burst__loop *l, int64_t first_mark,
			    struct rfl_burst_step *ret, struct rfl_err *err);

/** Marks of one step. */
int64_t rfl_burst__marks_per_step(const struct rfl_burst__loop *l);

/** After a sync: the times of a step that was marked. */
enum rfl_rc rfl_burst__read_marks(const struct rfl_burst__loop *l, int64_t first_mark,
				  struct rfl_burst_step *step, struct rfl_err *err);

/** Record a step for replay. */
enum rfl_rc rfl_burst__record(struct rfl_burst__loop *l, struct rfl_err *err);

/** No one reads the memory of the data any more. */
enum rfl_rc rfl_burst__end_uploads(struct rfl_burst__loop *l, struct rfl_err *err);

/** Only where a tool listens: then the window holds the calls too. */
enum rfl_rc rfl_burst__name_ranges(struct rfl_burst__loop *l, struct rfl_err *err);
enum rfl_rc rfl_burst__unname_ranges(struct rfl_burst__loop *l, struct rfl_err *err);

/* ---- how well a mean is known (burst/window.c) ---- */

#define RFL_BURST__FEWEST  16 /* with fewer steps nothing is said */
#define RFL_BURST__BATCHES 64

/** Times that come one by one, in batches of so many neighbours that there are never more than
 * RFL_BURST__BATCHES of them. Begins as zeros. */
struct rfl_burst__mean {
	int64_t n;
	double sum;
	int64_t per_batch; /* a power of two */
	size_t nbatches;
	double batches[RFL_BURST__BATCHES]; /* means */
	double open_sum;                    /* of the batch that is not full yet */
	int64_t open_n;
};

void rfl_burst__mean_add(struct rfl_burst__mean *m, double time_s);
/** Standard error of the mean over the mean; NaN with too few steps. */
double rfl_burst__mean_error(const struct rfl_burst__mean *m);

#endif
