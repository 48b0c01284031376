/*
 * peaks.h - ceilings of machines: loads peaks.json, checks it and looks up values, such as the fp32
 * ceiling of lab_cpu.
 *
 * Values are in FLOP/s and byte/s in memory, and in GFLOP/s and GB/s in the file. An unknown
 * ceiling has a status and a reason, and its value is NaN.
 */
#ifndef RFL_PEAKS_PEAKS_H
#define RFL_PEAKS_PEAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "machine/machine.h"
#include "peaks/devices.h"

RFL_API_BEGIN

enum rfl_peak_status {
	RFL_PEAK_MEASURED,
	RFL_PEAK_SPEC,    /**< from a data sheet */
	RFL_PEAK_DERIVED, /**< computed from other values by a stated formula */
	RFL_PEAK_USER,    /**< given by the user */
	RFL_PEAK_UNKNOWN,
	RFL_PEAK_UNSUPPORTED, /**< the device cannot do this at all */
	RFL_PEAK_FAILED,      /**< a measurement failed */
};

struct rfl_peak_stats {
	int64_t n;               /**< 0: no statistics */
	double median, min, max; /**< FLOP/s or byte/s; NaN if absent */
	double spread;           /**< (max - min) / median; NaN if absent */
};

/** What other programs and the hypervisor took during the repeats; shares are fractions. */
struct rfl_peak_interference {
	int64_t disturbed, discarded, switches;
	double off_cpu, steal, other_load; /**< NaN: not known */
};

/** A ceiling, as in the file. Members that are not recorded are NULL, 0 or NaN. */
struct rfl_peak {
	enum rfl_peak_status status;
	double value;       /**< FLOP/s or byte/s; NaN unless measured, spec, derived or user */
	double spec;        /**< data sheet value in addition to a measured one; NaN if absent */
	const char *reason; /**< why unknown, unsupported or failed; otherwise NULL */
	const char *source; /**< title of the source if spec, derived or user; otherwise NULL */
	/* how it was measured */
	const char *kernel; /**< "24 chains of FMA, AVX-512" */
	const char *tool, *measured_at, *bytes_counted, *input, *accumulate;
	enum rfl_known nt_stores;
	int accumulators;
	int64_t working_set_bytes; /**< of a bandwidth */
	size_t nplateau, nshape;
	int64_t *plateau_bytes, *shape;
	struct rfl_peak_stats stats;
	/* and in which conditions */
	int threads;
	const char *pinning;
	enum rfl_known huge_pages;
	double clock_hz, power_w, power_limit_w, temp_c, sustained_s;
	const char *throttled; /**< reasons for lower clocks, "a, b"; "": none */
	const struct rfl_peak_interference *interference;
	size_t ndoubts;
	const char **doubts; /**< found during the measurement */
};

/** A ceiling without anything. */
extern const struct rfl_peak rfl_peak_none;

struct rfl_peak_compute {
	const char *key;  /**< "fp32.vector", "fp32.vector.1core", "bf16.matrix"; in the short form
			     "*" (applies to every key) or a precision: "fp32", "amp" */
	const char *cell; /**< as in the file: "compute.fp32.vector", "fp32.peak_gflops" */
	struct rfl_peak peak;
};

/** The bandwidth of one working set, from a short test: a point of a curve, not a ceiling. */
struct rfl_peak_size {
	const char *scope;         /**< "core": one core; "node": all cores together */
	int64_t working_set_bytes; /**< of all these cores together */
	double value;              /**< byte/s */
};

struct rfl_peak_level {
	const char *level; /**< "L1", "L2", "L3", "DRAM", ... */
	const char *scope; /**< "core", "socket", "node", "device" */
	const char *cell; /**< as in the file: "memory.DRAM.gbs", "peak_gbps"; with the scope if the
			     level also has a wider one: "memory.DRAM.core.gbs" */
	int64_t capacity_bytes; /**< 0 if unknown */
	struct rfl_peak peak;
	size_t nsweep;
	struct rfl_peak_size *sweep; /**< working sets that were tried, by scope and size */
};

/** The name of a device in a file that does not know it. */
#define RFL_PEAKS_NO_DEVICE "not recorded"

/** The note of an environment whose device memory had ECC when it was measured. */
#define RFL_PEAKS_NOTE_ECC "measured: ECC of the device memory is on"

struct rfl_peaks_env {
	const char *name;
	bool short_form;    /**< short form: {"peak_gflops": .., "peak_gbps": ..} */
	const char *kind;   /**< "cpu" or "gpu"; NULL in the short form */
	const char *device; /**< name reported by the driver or cpuid; NULL if unknown */
	int units;          /**< number of SMs or cores; 0 if unknown */
	const char *vendor, *capability, *uuid; /**< of the device */
	int64_t memory_bytes;
	const char *os, *kernel, *driver, *cuda_runtime, *compiler, *governor; /**< of the host */
	enum rfl_known virtualised, smt;
	int numa_nodes;
	bool ecc; /**< it has RFL_PEAKS_NOTE_ECC */
	size_t nisa, nnotes, ncompute, nlevels;
	const char **isa, **notes;
	struct rfl_peak_compute *compute;
	struct rfl_peak_level *levels; /**< fastest first */
};

struct rfl_peaks {
	const char *path;
	const char *text; /**< contents of the file */
	char hash[17];    /**< its fingerprint */
	size_t nenvs;
	struct rfl_peaks_env *envs;
	struct rfl_arena *arena; /**< owns everything above */
};

/**
 * Load and check a peaks file in the long or the short form.
 *
 * @param ret  set on success only; release with rfl_peaks_free()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with file, JSON pointer, fault and fix
 */
enum rfl_rc rfl_peaks_load(const char *path, struct rfl_peaks **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Load and check ceilings in memory; `name` is used as the file name in messages.
 * @param text  NUL-terminated */
enum rfl_rc rfl_peaks_loads(const char *text, size_t len, const char *name, struct rfl_peaks **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_peaks_free(struct rfl_peaks *p);
RFL_AUTOPTR_TYPE(peaks, free);

/** NULL if there is no such environment. */
const struct rfl_peaks_env *rfl_peaks_find(const struct rfl_peaks *p, const char *env);

/** The same, but RFL_ENOTFOUND with the most similar name, or all. */
enum rfl_rc rfl_peaks_get(const struct rfl_peaks *p, const char *env,
			  const struct rfl_peaks_env **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The compute ceiling of a precision and unit class, for example "fp32.vector". In the short form,
 * a value without a precision applies to every key, a value for "fp32" to "fp32.*", and a value for
 * "amp" to fp16 and bf16 if these are not given. None applies to keys with a third part
 * ("fp32.vector.1core"). NULL if the environment has no such ceiling. */
const struct rfl_peak *rfl_peaks_compute(const struct rfl_peaks_env *env, const char *key);

/** The unit of a compute key in the file and in tables: "Gop/s" of integers, otherwise "GFLOP/s".
 */
const char *rfl_peaks_unit(const char *key);

/** How a plot shows a ceiling. Only roofs are used in verdicts. */
enum rfl_peaks_line {
	RFL_LINE_NONE,
	RFL_LINE_ROOF,
	RFL_LINE_LIBRARY, /**< dotted, below the roof of its precision */
	RFL_LINE_BELOW,   /**< thin, below the roof of the key without this part */
	RFL_LINE_ABOVE,   /**< thin, above that roof; not drawn if it is not */
};

/** A part of a compute key, after the precision. */
struct rfl_peaks_part {
	const char *word; /**< "vector", "1core" */
	bool unit;        /**< the second part; otherwise the third, which is optional */
	enum rfl_peaks_line line;
	const char *text; /**< in names for people: " vector", ", one core" */
};

/** All parts; ends with a row without a word. */
extern const struct rfl_peaks_part rfl_peaks_parts[];

/** The second or third part of a key; NULL if it has none or is not valid. */
const struct rfl_peaks_part *rfl_peaks_part(const char *key, bool unit);

/** The thin line of a roof: the usable ceiling of its key with a third part added, such as that of
 * "fp32.vector.1core". NULL if there is none, or if it is not on the side that the part says. */
const struct rfl_peak *rfl_peaks_line(const struct rfl_peaks_env *env, const char *key,
				      const struct rfl_peaks_part *part);

/** Whether a key is of the unit class gemm: what the GEMM of a framework's library
 * achieves, which is never a roof. */
bool rfl_peaks_is_gemm(const char *key);

/** The usable gemm value for the precision of a compute key: that of "bf16.gemm" for "bf16.vector".
 * NULL if the environment has none. */
const struct rfl_peak *rfl_peaks_gemm(const struct rfl_peaks_env *env, const char *key);

/** The DRAM (or HBM, or short-form) bandwidth ceiling of the whole device, never of a single core;
 * NULL if absent. */
const struct rfl_peak *rfl_peaks_dram(const struct rfl_peaks_env *env);

/** The bandwidth ceiling of a cache. A value of one core counts once per core.
 * @param gbps  set to the value for the whole device in GB/s; NULL: not needed
 * @return NULL if the environment has no usable value, and *gbps is unchanged */
const struct rfl_peak *rfl_peaks_cache(const struct rfl_peaks_env *env, const char *level,
				       double *gbps);

/** The memory levels, nearest to the cores first; NULL-terminated. */
extern const char *const rfl_peaks_levels[];
/** The precisions of compute ceilings, and "amp"; ends with NULL. */
extern const char *const rfl_peaks_precisions[];
/** Is it the bandwidth of a part of the machine (a core, a socket) from a level that is also listed
 * with a wider scope? */
bool rfl_peaks_is_part(const struct rfl_peaks_env *env, const struct rfl_peak_level *level);

/** May the ceiling be used in a ratio? True for measured, spec, derived and user. */
bool rfl_peak_usable(const struct rfl_peak *peak);

const char *rfl_peak_status_name(enum rfl_peak_status status);

/** The name of a value in the file, for messages: "compute.fp32.vector", "memory.DRAM.gbs", or in
 * the short form "peak_gflops", "fp32.peak_gflops", "peak_gbps". The value need not exist.
 * @param key  "fp32.vector", "DRAM"; with or without "compute.", "memory."
 * @return out */
char *rfl_peaks_cell(const struct rfl_peaks_env *env, const char *key, char *out, size_t out_size);

/** The recorded values that explain why a measured ceiling is below the data sheet: units, clock,
 * power limit, throttling, ECC, virtual machine.
 * @param sheet  may be NULL
 * @return out; "" if nothing is recorded */
char *rfl_peaks_causes(const struct rfl_peaks_env *env, const char *cell,
		       const struct rfl_peak *peak, const struct rfl_device_sheet *sheet, char *out,
		       size_t out_size);

/** A measured ceiling is unsteady if its fastest repeat is more than this many times the median. */
#define RFL_PEAKS_UNSTEADY 1.10

typedef void (*rfl_peaks_doubt_fn)(const char *env, const char *cell, const char *text, void *ctx);

/** Report doubts about the ceilings of all environments.
 * @param today  the current time, such as "2026-11-21T05:31:00Z"; NULL: do not check ages
 * @return the number of doubts */
size_t rfl_peaks_check(const struct rfl_peaks *p, const char *today, rfl_peaks_doubt_fn fn,
		       void *ctx);

/** A ceiling of an environment. */
struct rfl_peaks_ref {
	const char *env;
	const char *key; /**< as for rfl_peaks_cell(): "fp32.vector", "DRAM"; NULL: ignored */
};

/** The same doubts as one line for each environment and cause:
 * "lab_cpu: fp32.vector, DRAM and 2 more: measured on a busy machine".
 * @param used   the ceilings in use, in any order, also repeated; NULL: all
 * @param lines  gets the lines, each with a newline
 * @return their number */
size_t rfl_peaks_doubts(const struct rfl_peaks *p, const char *today,
			const struct rfl_peaks_ref *used, size_t nused, struct rfl_buf *lines);

RFL_API_END
#endif
