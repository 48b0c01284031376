/*
 * complexity.h - the output of `roofline complexity` for several batches: a table, a list of
 * layers, the largest batch that fits in memory, results of other FLOP-counting tools, and the JSON
 * document described by docs/complexity.schema.json.
 */
#ifndef RFL_REPORT_COMPLEXITY_H
#define RFL_REPORT_COMPLEXITY_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "complexity/peer.h"
#include "complexity/summary.h"
#include "report/table.h"

/** Levels of fusion shown in a table: one of these, or a value of enum rfl_fusion. */
enum {
	RFL_FUSION_ALL = -1,
	RFL_FUSION_AUTO = -2 /**< for people FLOPs per fused byte, for programs all levels */
};

/** The memory available to a network. */
struct rfl_fit_device {
	const char *name;      /**< "NVIDIA L4", or the size as given by the user */
	int64_t memory_bytes;  /**< total size; 0: no --fit */
	int64_t reserve_bytes; /**< part of it that is not available for tensors */
};

/** The networks and the form of the output. All pointers are borrowed. */
struct rfl_complexity {
	struct rfl_summary **items;
	size_t n;
	struct rfl_summary_options options; /**< options used for the items */
	const int64_t *batches; /**< rfl_complexity_*() evaluates the items for each of them */
	size_t nbatches;
	bool train; /**< tables show a training step instead of an inference */
	int fusion; /**< level of fusion in tables, or a value of the enum above */
	size_t top; /**< rows of the table or, of parts, per model and batch; 0: all */
	/** The key of a column by which rows are sorted, largest first; NULL: by MACs with `top`,
	 * else in order. */
	const char *sort;
	const char *const *columns; /**< column keys; NULL: chosen by the other members */
	size_t ncolumns;
	const struct rfl_peer **peers; /**< counters to compare with */
	size_t npeers;
	struct rfl_fit_device device;
};

/**
 * Set the options of the summaries that the tables need: modes and memory.
 * @param document  set all of them, for a document or a list of layers
 */
void rfl_complexity_needs(struct rfl_complexity *r, bool document);

/**
 * Write the requested table, with the counting convention in its notes.
 * @return RFL_OK; RFL_EUSAGE: a column does not exist or does not apply to these rows
 */
enum rfl_rc rfl_complexity_table(const struct rfl_complexity *r, enum rfl_format format,
				 struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Make the tables of rfl_complexity_table().
 * @param ret  of work, and of memory or NULL; free them, or finish them. On failure both are NULL
 * @return as rfl_complexity_table()
 */
enum rfl_rc rfl_complexity_tables(const struct rfl_complexity *r, bool people,
				  struct rfl_table *ret[2], struct rfl_err *err) RFL_WARN_UNUSED;

/** List all columns for `--columns`: key, title, rows, needs and meaning. */
struct rfl_table *rfl_complexity_columns_table(void) RFL_WARN_UNUSED;

/** Write the largest batches that fit, one row per network. All networks must have a fit. */
enum rfl_rc rfl_complexity_fit_table(const struct rfl_complexity *r, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the results of other FLOP-counting tools and our own count, one row per network and
 * counter. */
enum rfl_rc rfl_complexity_peers_table(const struct rfl_complexity *r, enum rfl_format format,
				       struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the steps of the planned engine, one row each. RFL_EUNSUPPORTED names the layer that a plan
 * cannot contain. */
enum rfl_rc rfl_complexity_plan_table(const struct rfl_complexity *r, enum rfl_format format,
				      struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the list of layers of one network in the form of torchsummary, for the first batch. */
enum rfl_rc rfl_complexity_layers(const struct rfl_complexity *r, struct rfl_summary *s,
				  struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create the JSON document.
 * @param version  version of the program
 * @param ret  a new reference, set on success only
 */
enum rfl_rc rfl_complexity_json(const struct rfl_complexity *r, const char *version, json_t **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Return true if any of the networks reads text. */
bool rfl_complexity_has_text(const struct rfl_complexity *r);

#endif
