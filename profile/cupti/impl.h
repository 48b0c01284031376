/*
 * impl.h - the inside of the cupti source. In its order: CUPTI on a device; one configuration of
 * counters over the ranges of a workload; the times of kernels; work of known size, and its PTX.
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

enum rfl_cupti_gate {                            /* in the order in which they are asked */
		      RFL_CUPTI_GATE_START,      /* CUPTI works with this driver */
		      RFL_CUPTI_GATE_CHIP,       /* and knows the name of the chip */
		      RFL_CUPTI_GATE_SUPPORT,    /* the range profiler supports device and
						    configuration */
		      RFL_CUPTI_GATE_PERMISSION, /* counters may be read */
		      RFL_CUPTI_GATE_OPEN,       /* all of them */
};

struct rfl_cupti_target {
	struct rfl_cupti *lib; /* it and the context are the caller's */
	struct rfl_cuda_context *context;
	bool started;
	enum rfl_cupti_gate gate; /* the gate that was closed, or OPEN */
	char chip[32];            /* "GH100"; "": not known */
	bool limited;             /* supported, but not with all metrics */
	uint8_t *availability;    /* NULL until the last gate */
	int stuck; /* what turning counters off returned when that failed: there are no more */
};

/** Pass the gates one by one. After a failure the target holds what was learnt before it, and is to
 * be released as well. @param access  what the driver's parameters say, for the message */
enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  const struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err) RFL_WARN_UNUSED;
/** End the profiler before what does not go with it (the activity API); what was learnt stays. */
void rfl_cupti_target_stop(struct rfl_cupti_target *t);
enum rfl_rc rfl_cupti_target_start(struct rfl_cupti_target *t, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_target_fini(struct rfl_cupti_target *t); /* accepts a zeroed struct */

/* ---- and ranges of a workload that is run once per pass, counted by CUPTI's range profiler (with
 * UserRange and UserReplay) ---- */

/** Ranges at once: CUPTI refuses some 2000 and more. Workloads that have more are run again for the
 * rest. */
#define RFL_CUPTI_RANGES_AT_ONCE 1000

/** A workload as the session sees it: it is run passes x batches times. */
struct rfl_replay {
	/* before each run, and never counted with it: it saves or restores the state; may be NULL
	 */
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
void rfl_counted_fini(struct rfl_counted *c);           /* accepts a zeroed struct */
double rfl_counted_wall_s(const struct rfl_counted *c); /* of all ranges */

/** Turn counters on, count a workload, turn them off. Where those before could not be turned off,
 * that is the error. RFL_OK also when a range without work has no data; RFL_EFAILED when ranges
 * were dropped, or differ from run to run. `ret` is to be released, also after a failure.
 * @param max_ranges  of one run, at least 1 */
enum rfl_rc rfl_cupti_count(struct rfl_cupti_target *target,
			    const struct rfl_cupti_planned *planned, size_t max_ranges,
			    struct rfl_replay *work, struct rfl_counted *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Run a workload once without counting: `ret` is as above, without values. */
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

/** Run the workload once and note its kernels. Ranges and `ret` are to be released, also after a
 * failure: that of work->rc, or RFL_EUNAVAILABLE. */
enum rfl_rc rfl_cupti_kernels(struct rfl_cupti *lib, struct rfl_replay *work,
			      struct rfl_counted *ranges, struct rfl_kernel_launches *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Add the launches to a capture, and notes. @param step_s  of a step that nothing was recorded of;
 * 0: not known */
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

/** Do the work of one set (RFL_SET_CORE, RFL_SET_FLOPS) and count it: rows are added to `ret`,
 * which is zeroed before the first. RFL_EUNAVAILABLE when nothing could be counted; RFL_EFAILED
 * when a kernel computed something wrong.
 * @param precision  of the run: the matrix product of its data type is in the core */
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

/*
 * ---- selftest_ptx.c: kernels with an exactly known number of FLOPs, as PTX that the driver
 * compiles for the GPU at hand: no CUDA runtime, no cuBLAS, no compiler at build time.
 *
 * All of them compute C = A x B with A of rows x k, B of columns x k (its transpose, so that both
 * are read along k) and C of fp32, rows x columns, row by row. No element is computed twice and
 * none is padded: exactly 2 x rows x columns x k FLOPs, and no other floating-point instruction
 * ----
 */

enum rfl_selftest_type { RFL_SELFTEST_F32, RFL_SELFTEST_F16, RFL_SELFTEST_BF16, RFL_SELFTEST_TF32 };

struct rfl_selftest_kernel {
	const char *name;            /**< of the entry: "rfl_selftest_f32" */
	enum rfl_selftest_type type; /**< of A and B */
	int element_bytes;
	int min_capability;          /**< 75, 80 */
	int tile_rows, tile_columns; /**< of C, computed by one block */
	int threads;                 /**< of a block */
	enum rfl_quantity quantity;  /**< that counts its FLOPs */
	const char *step;            /**< the arithmetic on 32 bytes of a row of A and of B */
};

/** The i-th kernel; NULL past the end. The first runs on every GPU that can be counted. */
const struct rfl_selftest_kernel *rfl_selftest_kernel_at(size_t i);

/** The kernel as PTX of the oldest version and target that knows its instructions. Parameters: u64
 * a, u64 b, u64 c, u32 columns, u32 bytes of k elements (a multiple of 32); grid: columns /
 * tile_columns, rows / tile_rows, and as often as wanted in z: each computes all of C. */
void rfl_selftest_ptx(const struct rfl_selftest_kernel *k, struct rfl_buf *out);

/** A kernel that copies: each block so many bytes by so many threads, 16 bytes each. */
#define RFL_SELFTEST_COPY "rfl_selftest_copy"
enum { RFL_SELFTEST_COPY_THREADS = 256, RFL_SELFTEST_COPY_BYTES = 4096 };

/** It as PTX. Parameters: u64 to, u64 from; grid: a block per 4096 bytes. */
void rfl_selftest_copy_ptx(struct rfl_buf *out);

#endif
