/*
 * impl.h - internals of the cupti source: the device, counting the ranges of a workload, kernel
 * times, and the self-test with its PTX.
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

/* ---- session.c: these calls crash inside the library without a driver ---- */

/* Conditions for counting, in the order in which they are checked. */
enum rfl_cupti_gate {
	RFL_CUPTI_GATE_START,   /* CUPTI works with this driver */
	RFL_CUPTI_GATE_CHIP,    /* CUPTI knows the chip */
	RFL_CUPTI_GATE_SUPPORT, /* the range profiler supports the device and its configuration */
	RFL_CUPTI_GATE_PERMISSION, /* this user may read counters */
	RFL_CUPTI_GATE_OPEN,       /* all conditions hold */
};

struct rfl_cupti_target {
	struct rfl_cupti *lib; /* the caller owns it and the context */
	struct rfl_cuda_context *context;
	bool started;
	enum rfl_cupti_gate gate; /* the condition that failed, or OPEN */
	char chip[32];            /* "GH100"; "": unknown */
	bool limited;             /* some metrics are not supported */
	uint8_t *availability;    /* NULL unless OPEN */
	int stuck; /* error of disabling counters, which then cannot be enabled again; 0: none */
};

/** Check the conditions one by one. Even after a failure, the target contains the results so far
 * and must be released. @param access  for the error message */
enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  const struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err) RFL_WARN_UNUSED;
/** Stop the profiler, which conflicts with the activity API; the results of init are kept. */
void rfl_cupti_target_stop(struct rfl_cupti_target *t);
enum rfl_rc rfl_cupti_target_start(struct rfl_cupti_target *t, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_target_fini(struct rfl_cupti_target *t); /* accepts a zeroed struct */

/* The ranges of a workload that runs once per pass are counted by CUPTI's range profiler
 * (UserRange, UserReplay). */

/** The maximum number of ranges per pass; CUPTI refuses about 2000. More ranges need more runs. */
#define RFL_CUPTI_RANGES_AT_ONCE 1000

/** A workload, which runs passes x batches times. */
struct rfl_replay {
	/* saves or restores the state before each run, uncounted; may be NULL */
	enum rfl_rc (*ready)(void *ctx, struct rfl_err *err);
	enum rfl_rc (*run)(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err);
	void *ctx;
	enum rfl_rc rc; /* out: the failure of ready() or run(), described by the error */
};
/** Call ready(). rfl_cupti_count() does this itself; callers of rfl_counted_walk() must do it. */
enum rfl_rc rfl_replay_ready(struct rfl_replay *work, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_counted_range {
	enum rfl_range_kind kind;
	const char *name;
	double wall_s;  /* time in the last run, including the overhead of counting */
	bool has_data;  /* false: CUPTI has no data for it */
	double *values; /* one per metric of the session, in SI base units; NaN: no value */
};

/** Ranges in the order in which they began. */
struct rfl_counted {
	struct rfl_arena *arena;
	struct rfl_counted_range *ranges;
	size_t n;
	size_t nvalues; /* values per range */
	size_t runs;    /* runs of the workload */
};
void rfl_counted_fini(struct rfl_counted *c);           /* accepts a zeroed struct */
double rfl_counted_wall_s(const struct rfl_counted *c); /* over all ranges */

/** Enable the counters, count a workload, disable them. Fails if earlier counters could not be
 * disabled. Returns RFL_OK even if a range without work has no data, RFL_EFAILED if ranges were
 * dropped or differ from run to run. Release `ret` even after a failure.
 * @param max_ranges  maximum number of ranges per run, at least 1 */
enum rfl_rc rfl_cupti_count(struct rfl_cupti_target *target,
			    const struct rfl_cupti_planned *planned, size_t max_ranges,
			    struct rfl_replay *work, struct rfl_counted *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Run a workload once without counting: `ret` has ranges without values. */
enum rfl_rc rfl_counted_walk(struct rfl_replay *work, struct rfl_counted *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- kernels.c: the activity API uses no counters, so no permission is needed ---- */

struct rfl_kernel_launch {
	const char *name; /* demangled if possible */
	double time_s;
	uint64_t begin_ns, end_ns; /* by CUPTI's clock */
	int grid[3], block[3];
};

struct rfl_kernel_launches {
	struct rfl_arena *arena;
	struct rfl_kernel_launch *launches; /* in the order of their begin */
	size_t n;
	size_t lost;    /* records that CUPTI dropped */
	size_t untimed; /* records without a begin or an end, excluded from the launches */
};
void rfl_kernel_launches_fini(struct rfl_kernel_launches *l); /* accepts a zeroed struct */

/** Run the workload once and record its kernels. Release `ranges` and `ret` even after a failure.
 * Returns work->rc if that failed, or RFL_EUNAVAILABLE. */
enum rfl_rc rfl_cupti_kernels(struct rfl_cupti *lib, struct rfl_replay *work,
			      struct rfl_counted *ranges, struct rfl_kernel_launches *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Add launches and notes to a capture. @param step_s  step time without recording; 0: unknown */
void rfl_kernel_launches_add(const struct rfl_kernel_launches *l, double step_s,
			     struct rfl_capture_builder *b);

/* ---- selftest.c: a copy with known bytes, and GEMMs with known FLOPs. Counting them
 * shows how accurate the counters are ---- */

/** The values of a family are marked if its self-test has a larger error. */
#define RFL_SELFTEST_TOLERANCE 0.02

struct rfl_selftest_row {
	const char *work;             /* "copy", "rfl_selftest_f32" */
	enum rfl_quantity quantity;   /* the counted quantity */
	double known, measured;       /* `measured` is NaN if not counted */
	char reason[RFL_ERR_MSG_MAX]; /* why it was not counted; "": it was */
};

struct rfl_selftest {
	struct rfl_selftest_row rows[8];
	size_t n;
	bool ecc; /* ECC of the device memory is enabled */
};

/** Run and count the work of one set (RFL_SET_CORE, RFL_SET_FLOPS), and add rows to `ret`, which
 * must be zeroed before the first call. Returns RFL_EUNAVAILABLE if nothing could be counted,
 * RFL_EFAILED if a kernel computed a wrong result.
 * @param precision  of the run: the GEMM of its data type is in the core */
enum rfl_rc rfl_selftest_run(const struct rfl_cuda *cuda, struct rfl_cupti_target *target,
			     const char *precision, unsigned set, struct rfl_selftest *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** measured / known; NaN if it was not counted. */
double rfl_selftest_ratio(const struct rfl_selftest_row *row);
/** The row with the largest error in a family (a prefix of quantities such as "dram" or
 * "flops.tensor"). NULL: all are within the tolerance. */
const struct rfl_selftest_row *rfl_selftest_worst(const struct rfl_selftest *t, const char *family);
/** Whether ECC explains the excess bytes: GDDR keeps check bits with the data. */
bool rfl_selftest_is_ecc(const struct rfl_selftest *t, const struct rfl_selftest_row *row);
/** Add all rows to a capture, as ranges and a note. */
void rfl_selftest_add(const struct rfl_selftest *t, struct rfl_capture_builder *b);

/*
 * ---- selftest_ptx.c: kernels with an exactly known number of FLOPs, as PTX that the driver
 * compiles: no CUDA runtime, cuBLAS or CUDA compiler is needed. They compute C = A x B with A of
 * rows x k, B stored transposed as columns x k, and C of fp32, rows x columns, row by row: exactly
 * 2 x rows x columns x k FLOPs, and no other floating-point instruction ----
 */

enum rfl_selftest_type { RFL_SELFTEST_F32, RFL_SELFTEST_F16, RFL_SELFTEST_BF16, RFL_SELFTEST_TF32 };

struct rfl_selftest_kernel {
	const char *name;            /**< name of the entry point: "rfl_selftest_f32" */
	enum rfl_selftest_type type; /**< type of A and B */
	int element_bytes;
	int min_capability;          /**< 75, 80 */
	int tile_rows, tile_columns; /**< the part of C computed by one block */
	int threads;                 /**< threads of a block */
	enum rfl_quantity quantity;  /**< quantity that counts its FLOPs */
	const char *step;            /**< the arithmetic on 32 bytes of a row of A and of B */
};

/** The i-th kernel; NULL past the end. The first runs on every GPU that supports counting. */
const struct rfl_selftest_kernel *rfl_selftest_kernel_at(size_t i);

/** The kernel as PTX for the oldest version and target that has its instructions. Parameters: u64
 * a, u64 b, u64 c, u32 columns, u32 bytes of k elements (a multiple of 32); grid: columns /
 * tile_columns, rows / tile_rows, and any z: each layer computes all of C. */
void rfl_selftest_ptx(const struct rfl_selftest_kernel *k, struct rfl_buf *out);

/** A copy kernel; each thread of a block copies 16 bytes. */
#define RFL_SELFTEST_COPY "rfl_selftest_copy"
enum { RFL_SELFTEST_COPY_THREADS = 256, RFL_SELFTEST_COPY_BYTES = 4096 };

/** The copy kernel as PTX. Parameters: u64 to, u64 from; grid: a block per 4096 bytes. */
void rfl_selftest_copy_ptx(struct rfl_buf *out);

#endif
