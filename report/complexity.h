/*
 * complexity.h - what `roofline complexity` prints of networks at several batches: a table, a list
 * of layers, what fits into a memory, what other counters say, and the JSON document of
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

/** Where a memory comes from. */
struct rfl_fit_device {
	const char *name;      /**< "NVIDIA L4", or the bytes as they were given */
	int64_t memory_bytes;  /**< all of it; 0: nothing is to be fitted */
	int64_t reserve_bytes; /**< of that, not to be used */
};

/** The networks and what is shown of them. Everything is borrowed. */
struct rfl_complexity {
	struct rfl_summary **items;
	size_t n;
	struct rfl_summary_options options; /**< that the items were made with */
	const int64_t *batches;             /**< rfl_complexity_*() move the items through them */
	size_t nbatches;
	bool train; /**< tables show a training step, not an inference */
	int fusion; /**< a level that tables show, or one of the two above */
	size_t top; /**< rows of a model and batch, most MACs first; 0: all, in order */
	const char *const *columns; /**< keys of what tables show; NULL: what suits the rest */
	size_t ncolumns;
	const struct rfl_peer **peers; /**< counters to compare with */
	size_t npeers;
	struct rfl_fit_device device;
};

/**
 * Set what the options of the summaries must hold for these tables: which modes, and memory.
 * @param document  all of it, for a document or a list of layers
 */
void rfl_complexity_needs(struct rfl_complexity *r, bool document);

/**
 * The table that is asked for, with the convention under it.
 * @return RFL_OK; RFL_ENOTFOUND for a column that does not exist, naming the nearest; RFL_EINVAL
 * for one that these rows do not have
 */
enum rfl_rc rfl_complexity_table(const struct rfl_complexity *r, enum rfl_format format,
				 struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** What `--columns` may name: key, title, where it goes, what it needs, what it is. */
enum rfl_rc rfl_complexity_columns_table(enum rfl_format format, struct rfl_buf *out,
					 struct rfl_err *err) RFL_WARN_UNUSED;

/** What fits, one row per network; all must have a fit. */
enum rfl_rc rfl_complexity_fit_table(const struct rfl_complexity *r, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** What the peers say beside our own count, one row per network and peer. */
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
