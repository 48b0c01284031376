/*
 * complexity.h - the output of `roofline complexity` at several batches: a table, a list of layers,
 * the largest batch that fits a memory, results of other counters, and the JSON document of
 * docs/complexity.schema.json.
 */
#ifndef RFL_REPORT_COMPLEXITY_H
#define RFL_REPORT_COMPLEXITY_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "complexity/peer.h"
#include "complexity/summary.h"
#include "report/table.h"

/** Which levels of fusion a table shows; from 0 on it is one of enum rfl_fusion. */
enum {
	RFL_FUSION_ALL = -1,
	RFL_FUSION_AUTO = -2 /**< people see FLOPs per fused byte, programs all levels */
};

/** The memory to fit into. */
struct rfl_fit_device {
	const char *name;      /**< "NVIDIA L4", or the size as the user wrote it */
	int64_t memory_bytes;  /**< in total; 0: no --fit */
	int64_t reserve_bytes; /**< of it, not for tensors */
};

/** The networks and the form of the output. Everything is borrowed. */
struct rfl_complexity {
	struct rfl_summary **items;
	size_t n;
	struct rfl_summary_options options; /**< of the items */
	const int64_t *batches;             /**< rfl_complexity_*() move the items through them */
	size_t nbatches;
	bool train; /**< tables show a training step, not an inference */
	int fusion; /**< a level that tables show, or one of the two above */
	size_t top; /**< rows of a model and batch, most MACs first; 0: all, in order */
	const char *const *columns; /**< keys of columns; NULL: chosen by the other members */
	size_t ncolumns;
	const struct rfl_peer **peers; /**< counters to compare with */
	size_t npeers;
	struct rfl_fit_device device;
};

/**
 * Set the options of the summaries that these tables need: modes and memory.
 * @param document  all of it, for a document or a list of layers
 */
void rfl_complexity_needs(struct rfl_complexity *r, bool document);

/**
 * The requested table, with the convention in its notes.
 * @return RFL_OK; RFL_ENOTFOUND for a column that does not exist, naming the nearest; RFL_EINVAL
 * for one that these rows do not have
 */
enum rfl_rc rfl_complexity_table(const struct rfl_complexity *r, enum rfl_format format,
				 struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** All columns for `--columns`: key, title, rows, needs, meaning. */
enum rfl_rc rfl_complexity_columns_table(enum rfl_format format, struct rfl_buf *out,
					 struct rfl_err *err) RFL_WARN_UNUSED;

/** The largest batches that fit, one row per network; all must have a fit. */
enum rfl_rc rfl_complexity_fit_table(const struct rfl_complexity *r, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** The results of the peers and our own count, one row per network and peer. */
enum rfl_rc rfl_complexity_peers_table(const struct rfl_complexity *r, enum rfl_format format,
				       struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** The list of layers of one network as torchsummary writes it, at the first batch. */
enum rfl_rc rfl_complexity_layers(const struct rfl_complexity *r, struct rfl_summary *s,
				  struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The document.
 * @param version  of the program
 * @param ret      a new reference on success only
 */
enum rfl_rc rfl_complexity_json(const struct rfl_complexity *r, const char *version, json_t **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether any of the networks reads text. */
bool rfl_complexity_has_text(const struct rfl_complexity *r);

#endif
