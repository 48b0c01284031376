/*
 * merge_parts.h - what the files merge_*.c share; private to the room.
 */
#ifndef RFL_ROOFLINE_MERGE_PARTS_H
#define RFL_ROOFLINE_MERGE_PARTS_H

#include "ledger/repeats.h"
#include "roofline/counters.h"
#include "roofline/merge.h"
#include "roofline/roofline.h"

struct rfl_joined;

/** A configuration: its repeats, its work, its roof, its counters. */
struct rfl_config {
	const char *env;
	const struct rfl_ledger_row *row; /* stands for all runs; the label is theirs */
	const struct rfl_repeat *runs;    /* borrowed from the repeats */
	size_t nruns;
	struct rfl_stats rate;            /* samples per second, over the repeats */
	const struct rfl_peaks_env *penv; /* NULL until resolved */
	const char *key; /* of its ceiling; NULL: its backend and precision have none */
	const struct rfl_peak *compute, *dram;
	struct rfl_work work;
	struct rfl_joined *counted; /* captures that are of it; owned */
	size_t ncounted, counted_cap;
	struct rfl_measured measured;
	bool flops_counted, bytes_counted;   /* the point stands on counters */
	char flops_why[600], bytes_why[600]; /* why not, where there are counters; "" else */
	bool missing;                        /* a fact is missing: no point */
};

struct rfl_configs {
	size_t n;
	struct rfl_config *configs;
	struct rfl_repeats *repeats;
	struct rfl_row_index hashes; /* runs by config_hash and environment */
};

/**
 * Under how many roofs a step ran: a roof is that of one GPU, or of a machine's processors, which
 * `--world N` shares among its processes. 0: the number of machines is not known.
 */
int64_t rfl_merge__roofs(const struct rfl_ledger_row *row);

/** Samples of a step under one roof. */
int64_t rfl_merge__batch(const struct rfl_ledger_row *row);

/** Was this environment asked for? */
bool rfl_merge__wanted(const struct rfl_merge_options *options, const char *env);

/** Facts that are not known, in the order in which they were met, each once. */
struct rfl_missing {
	size_t n, cap;
	size_t of_counters; /* of the n: nothing that a peaks file could supply */
	struct rfl_missing_fact *facts;
};

/**
 * Note that a configuration lacks a fact.
 * @param fact  what it is, for example "compute.fp32.vector (unknown: not measured)"
 * @param fix   the commands that supply it
 */
enum rfl_rc rfl_missing_add(struct rfl_missing *m, const char *fact, const char *fix,
			    struct rfl_config *config, struct rfl_err *err) RFL_WARN_UNUSED;

/** All facts as lines: fact, who needs it, fix; brief: the facts alone. Ends without a newline. */
void rfl_missing_text(const struct rfl_missing *m, bool brief, struct rfl_buf *out);
void rfl_missing_fini(struct rfl_missing *m);

/** Say that an environment is not in a peaks file, and what puts it there. Texts are appended. */
enum rfl_rc rfl_missing_env_text(const struct rfl_peaks *peaks, const char *env,
				 struct rfl_buf *fact, struct rfl_buf *fix,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Say that a cell is absent (peak NULL) or has no usable value, and what supplies it. Of a cell
 * that a device cannot have, the fix ends in "the device cannot do this: ". */
void rfl_missing_cell_text(const struct rfl_peaks *peaks, const struct rfl_peaks_env *env,
			   const char *key, const struct rfl_peak *peak, struct rfl_buf *fact,
			   struct rfl_buf *fix);

/** Find the two ceilings of a configuration, or note what is missing. */
enum rfl_rc rfl_merge__roof(const struct rfl_peaks *peaks, struct rfl_config *config,
			    struct rfl_missing *missing, struct rfl_err *err) RFL_WARN_UNUSED;

/** A text of a point, and where it is kept. */
struct rfl_merge_text {
	char **to;
	const char *from;
};

/** Copy them. RFL_ENOMEM. */
enum rfl_rc rfl_merge__texts(const struct rfl_merge_text *texts, size_t n,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** All columns of a point from a configuration that has work and roof. */
enum rfl_rc rfl_merge__point(const struct rfl_merge_inputs *in,
			     const struct rfl_merge_options *options,
			     const struct rfl_config *config, struct rfl_point *p,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Name what distinguishes every point from those of the same environment, model, precision, mode
 * and batch, as the summary does. Where there are none, nothing.
 * @param points  from the configurations that miss nothing, in their order
 */
enum rfl_rc rfl_merge__variants(const struct rfl_configs *configs, struct rfl_points *points,
				struct rfl_err *err) RFL_WARN_UNUSED;

#endif
