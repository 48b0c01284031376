/*
 * impl.h - the inside of the cupti source. In its order: CUPTI on a device; one configuration of
 * counters over the ranges of a workload; the times of kernels; work of known size.
 */
#ifndef RFL_PROFILE_CUPTI_IMPL_H
#define RFL_PROFILE_CUPTI_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/cupti/plan.h"
#include "profile/source.h"

/* ---- session.c: without a driver these calls crash inside the library ---- */

/* What is asked, in this order. */
enum rfl_cupti_gate {
	RFL_CUPTI_GATE_START,      /* CUPTI works with this driver */
	RFL_CUPTI_GATE_CHIP,       /* and knows the name of the chip */
	RFL_CUPTI_GATE_SUPPORT,    /* the range profiler supports device and configuration */
	RFL_CUPTI_GATE_PERMISSION, /* counters may be read */
	RFL_CUPTI_GATE_OPEN,       /* all of them */
};

struct rfl_cupti_target {
	struct rfl_cupti *lib;            /* the caller's */
	struct rfl_cuda_context *context; /* the caller's */
	bool started;
	enum rfl_cupti_gate gate; /* the gate that was closed, or OPEN */
	char chip[32];            /* "GH100"; "": not known */
	bool limited;             /* supported, but not with all metrics */
	uint8_t *availability;    /* NULL until the last gate */
	int stuck; /* what turning counters off returned when that failed: there are no more */
};

/**
 * Pass the gates one by one. After a failure the target holds what was learnt before it.
 * @param t       in the caller's memory; release with rfl_cupti_target_fini(), also after a failure
 * @param access  what the driver's parameters say of permission, for the message
 */
enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  const struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err) RFL_WARN_UNUSED;
/** End the profiler before what does not go with it (the activity API); what was learnt stays. */
void rfl_cupti_target_stop(struct rfl_cupti_target *t);
/** Begin it again; nothing where it has not ended. */
enum rfl_rc rfl_cupti_target_start(struct rfl_cupti_target *t, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_target_fini(struct rfl_cupti_target *t); /* accepts a zeroed struct */

/* ---- and ranges of a workload that is run once per pass, counted by CUPTI's range profiler
 * with ranges and replay of our own (UserRange, UserReplay). Nothing is saved or restored here: the
 * caller's ready() does that ---- */

/** Ranges at once: CUPTI refuses some 2000 and more. Workloads that have more are run again for the
 * rest. */
#define RFL_CUPTI_RANGES_AT_ONCE 1000

/** A workload as the session sees it: it is run passes x batches times. */
struct rfl_replay {
	/* before each run, and never counted with it; NULL: nothing to do */
	enum rfl_rc (*ready)(void *ctx, struct rfl_err *err);
	enum rfl_rc (*run)(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err);
	void *ctx;
	enum rfl_rc rc; /* out: what ready() or run() returned when it failed: then the error is
			 * its own */
};
/** Call its ready(). The session does it; a caller of rfl_counted_walk() has to. */
enum rfl_rc rfl_replay_ready(struct rfl_replay *work, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_counted_range {
	enum rfl_range_kind kind;
	const char *name;
	double wall_s;  /* of the last run: with what counting costs */
	bool has_data;  /* false: CUPTI kept nothing of it */
	double *values; /* per metric of the session, in SI base units; NaN: no value */
};

/** Ranges in the order of their beginning. */
struct rfl_counted {
	struct rfl_arena *arena;
	struct rfl_counted_range *ranges;
	size_t n, cap;
	size_t nvalues; /* per range */
	size_t runs;    /* of the workload */
};
void rfl_counted_fini(struct rfl_counted *c); /* accepts a zeroed struct */
/** Of all ranges. */
double rfl_counted_wall_s(const struct rfl_counted *c);

struct rfl_cupti_session;

/**
 * Turn counters on. Where those of a session before could not be turned off, that is the error.
 * @param target, planned  kept by the caller until the session is closed
 * @param max_ranges       of all workloads that it will count
 * @param ret              set on success only; release with rfl_cupti_session_close()
 */
enum rfl_rc rfl_cupti_session_open(struct rfl_cupti_target *target,
				   const struct rfl_cupti_planned *planned, size_t max_ranges,
				   struct rfl_cupti_session **ret,
				   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_session_close(struct rfl_cupti_session *s); /* accepts NULL */

/**
 * Count a workload; can be called again, for another one.
 * @param ret  its arena and ranges are made here; release with rfl_counted_fini(), also after a
 *             failure
 * @return RFL_OK, also when a range without work has no data; RFL_EFAILED when ranges were dropped,
 *         or differ from run to run
 */
enum rfl_rc rfl_cupti_session_count(struct rfl_cupti_session *s, struct rfl_replay *work,
				    struct rfl_counted *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Run a workload once without counting, for its ranges and their wall times.
 * @param ret  as above; values are NULL */
enum rfl_rc rfl_counted_walk(struct rfl_replay *work, struct rfl_counted *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- kernels.c: the activity API has no counters, so no permission is needed ---- */

struct rfl_kernel_launch {
	const char *name; /* demangled where that is possible */
	double time_s;
	uint64_t begin_ns, end_ns; /* by CUPTI's clock */
	int grid[3], block[3];
};

struct rfl_kernel_launches {
	struct rfl_arena *arena;
	struct rfl_kernel_launch *launches; /* in the order of CUPTI's buffers */
	size_t n, cap;
	size_t lost;    /* records that CUPTI had no room for */
	size_t untimed; /* records without begin and end; they are not among the launches */
};
void rfl_kernel_launches_fini(struct rfl_kernel_launches *l); /* accepts a zeroed struct */

/**
 * Run the workload once and note its kernels.
 * @param ranges  those of the workload, with wall times; release with rfl_counted_fini()
 * @param ret     release with rfl_kernel_launches_fini(); both also after a failure
 * @return RFL_OK; when work->rc is a failure, that one; RFL_EUNAVAILABLE
 */
enum rfl_rc rfl_cupti_kernels(struct rfl_cupti *lib, struct rfl_replay *work,
			      struct rfl_counted *ranges, struct rfl_kernel_launches *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the launches to a capture, and notes: shares of time by class of kernel, the longest
 * kernels, those that only move data, lost records, and the share of a step in which none ran.
 * @param step_s  of a step that nothing was recorded of; 0: not known */
enum rfl_rc rfl_kernel_launches_add(const struct rfl_kernel_launches *l, double step_s,
				    struct rfl_capture_builder *b,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- selftest.c: a copy of known bytes, and matrix products of known FLOPs by kernels of our own.
 * What a counter says of them shows how far it can be trusted ---- */

/** Values of a family with a self-test further off are marked. */
#define RFL_SELFTEST_TOLERANCE 0.02

struct rfl_selftest_row {
	const char *work;             /* "copy", "rfl_selftest_f32" */
	enum rfl_quantity quantity;   /* what was counted of it */
	double known, measured;       /* measured NaN: not counted */
	char reason[RFL_ERR_MSG_MAX]; /* why not; "" when it was */
};

struct rfl_selftest {
	struct rfl_selftest_row rows[8];
	size_t n;
	bool ecc; /* of the device's memory is on */
};

/**
 * Do the work of one set and count it.
 * @param precision  of the run: the matrix product of its data type is in the core
 * @param set        RFL_SET_CORE or RFL_SET_FLOPS
 * @param ret        rows are added to it; zero it before the first
 * @return RFL_OK whenever there are results, counted or not; RFL_EUNAVAILABLE when nothing could be
 *         counted; RFL_EFAILED when a kernel computed something wrong. No rows are added then
 */
enum rfl_rc rfl_selftest_run(const struct rfl_cuda *cuda, struct rfl_cupti_target *target,
			     const char *precision, unsigned set, struct rfl_selftest *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** measured / known; NaN when it was not counted. */
double rfl_selftest_ratio(const struct rfl_selftest_row *row);
/** Of the quantities with names that begin so ("dram", "flops.tensor") the row that is furthest
 * off; NULL: all are within the tolerance. */
const struct rfl_selftest_row *rfl_selftest_worst(const struct rfl_selftest *t, const char *family);
/** More was moved than is known, and ECC is why where its check bits are beside the data (GDDR). */
bool rfl_selftest_is_ecc(const struct rfl_selftest *t, const struct rfl_selftest_row *row);
/** All of it as ranges of a capture, and a note. */
enum rfl_rc rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
