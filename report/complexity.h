/*
 * complexity.h - what `roofline complexity` prints: networks at several batches, as tables, as
 * lists of layers, and as the JSON document of docs/complexity.schema.json.
 *
 * The functions move the summaries through all batches of the options themselves.
 */
#ifndef RFL_REPORT_COMPLEXITY_H
#define RFL_REPORT_COMPLEXITY_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/table.h"
#include "complexity/summary.h"

/** Where a memory comes from, for the table of what fits. */
struct rfl_fit_device {
	const char *name;      /**< "NVIDIA L4", or the bytes as they were given */
	int64_t memory_bytes;  /**< all of it */
	int64_t reserve_bytes; /**< of that, not to be used */
};

/** What fits, one row per summary; all must have a fit. */
enum rfl_rc rfl_summary_fit_table(struct rfl_summary *const *summaries, size_t n,
				  const struct rfl_summary_options *options,
				  const struct rfl_fit_device *device, enum rfl_format format,
				  struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** What the counters of options->peers say beside our own count, one row per network and counter.
 */
enum rfl_rc rfl_summary_peers_table(struct rfl_summary *const *summaries, size_t n,
				    const struct rfl_summary_options *options,
				    enum rfl_format format, struct rfl_buf *out,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The document.
 * @param device   of the fits; NULL: none
 * @param version  of the program
 * @param ret      a new reference on success only
 */
enum rfl_rc rfl_summary_json(struct rfl_summary *const *summaries, size_t n,
			     const struct rfl_summary_options *options,
			     const struct rfl_fit_device *device, const char *version, json_t **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The table that `options` asks for, with the convention under it.
 * @return RFL_OK; RFL_ENOTFOUND for a column that does not exist, naming the nearest; RFL_EINVAL
 * for one that these rows do not have
 */
enum rfl_rc rfl_summary_table(struct rfl_summary *const *summaries, size_t n,
			      const struct rfl_summary_options *options, enum rfl_format format,
			      struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** What `--columns` may name: key, title, where it goes, what it needs, what it is. */
enum rfl_rc rfl_summary_columns_table(enum rfl_format format, struct rfl_buf *out,
				      struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether any of the networks reads text. */
bool rfl_summary_any_context(struct rfl_summary *const *summaries, size_t n);

/** Whether a table of these options, or a document, needs options.memory. */
bool rfl_summary_wants_memory(const struct rfl_summary_options *options);

/** Whether a table of these options needs options.both. */
bool rfl_summary_wants_both(const struct rfl_summary_options *options);

/** The list of layers of one network as torchsummary writes it: layer, output, parameters, then
 * the sizes. Its batch is the first of the options. */
enum rfl_rc rfl_summary_text(struct rfl_summary *s, const struct rfl_summary_options *options,
			     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** The convention of the counts in one sentence, for the foot of a table. */
extern const char *const rfl_summary_convention;

#endif
