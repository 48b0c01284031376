/*
 * summary.h - what `roofline complexity` reports: several models at several batches, each counted
 * in inference and in training, as a JSON document, as tables and as a list of layers.
 *
 * The JSON document is published as docs/complexity.schema.json.
 */
#ifndef RFL_COMPLEXITY_SUMMARY_H
#define RFL_COMPLEXITY_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/table.h"
#include "complexity/count.h"
#include "complexity/net.h"
#include "complexity/zoo.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How rows are gathered: one per model, per module (the first `depth` parts of the path), per
 * operation in order of execution, or per kind of operation. */
enum rfl_by { RFL_BY_MODEL, RFL_BY_MODULE, RFL_BY_LAYER, RFL_BY_KIND };

/** "model", "module", "layer", "kind", NULL: in the order of enum rfl_by. */
extern const char *const rfl_by_names[];

struct rfl_summary_options {
	struct rfl_zoo_options sizes;
	const int64_t *batches; /**< borrowed */
	size_t nbatches;
	const char *precision; /**< one of rfl_precision_words */
	enum rfl_optimizer_kind optimizer;
	bool input_grad;
	enum rfl_by by;
	int depth;  /**< of modules, at least 1 */
	bool train; /**< tables show a training step, not an inference */
	int fusion; /**< the one level that tables show; -1: all */
	/** Rows of a model and batch that tables show, most MACs first; 0: all, in order. */
	size_t top;
};

/** "fp32", "tf32", "amp", "bf16", "fp16", NULL. */
extern const char *const rfl_precision_words[];

/** What a precision means for the counts: element size, and weights kept in F32 (amp).
 * RFL_EINVAL for another word. */
enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err) RFL_WARN_UNUSED;

/** One model at every batch. */
struct rfl_summary {
	const struct rfl_zoo_model *model;
	struct rfl_net *net;
	struct rfl_count *one_forward, *one_training; /**< batch 1: per sample */
	size_t nbatches;
	struct rfl_count **forward, **training; /**< inference and training, by batch */
};

/**
 * Build a model and count it.
 * @param ret  set on success only; release with rfl_summary_free()
 * @return RFL_OK, or the failure of rfl_zoo_build() or rfl_count_net()
 */
enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_summary_free(struct rfl_summary *s);

/** The work of a row: of one inference, or of one training step. */
struct rfl_summary_work {
	int64_t macs, elementwise, bytes[RFL_FUSION_COUNT];
};

struct rfl_summary_row {
	const char *name; /**< of the model, module, layer or kind */
	const char *kind; /**< of operation; "" where several are gathered */
	char output[64];  /**< shape per sample; "" where several are gathered */
	int64_t params;
	bool step_only; /**< the loss and the optimizer: no part of an inference */
	struct rfl_summary_work forward, training;
};

/**
 * The rows of one model at its i-th batch. Rows of a training step add up to the step: the loss and
 * the optimizer are the last two.
 * @param rows  set on success only; free(), before the summary
 */
enum rfl_rc rfl_summary_rows(const struct rfl_summary *s, size_t batch_index, enum rfl_by by,
			     int depth, struct rfl_summary_row **rows, size_t *nrows,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The document.
 * @param version  of the program
 * @param ret      a new reference on success only
 */
enum rfl_rc rfl_summary_json(struct rfl_summary *const *summaries, size_t n,
			     const struct rfl_summary_options *options, const char *version,
			     json_t **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The table that `options` asks for, with the convention under it. */
enum rfl_rc rfl_summary_table(struct rfl_summary *const *summaries, size_t n,
			      const struct rfl_summary_options *options, enum rfl_format format,
			      struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** The list of layers of one model: name, kind, output, parameters, MACs; then the totals. */
enum rfl_rc rfl_summary_text(const struct rfl_summary *s, const struct rfl_summary_options *options,
			     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/** The convention of the counts in one sentence, for the foot of a table. */
extern const char *const rfl_summary_convention;

#ifdef __cplusplus
}
#endif
#endif
