/*
 * complexity_lm.h - the output of `roofline complexity --phase`: FLOPs, bytes and minimum times of
 * language models at inference, and what fits into a memory.
 */
#ifndef RFL_REPORT_COMPLEXITY_LM_H
#define RFL_REPORT_COMPLEXITY_LM_H

#include "complexity/summary.h"
#include "report/complexity.h"
#include "roofline/lm_time.h"

/** Prefill passes new tokens after `past` ones, decode one token after them. Generate is a prefill
 * of `past` tokens, which gives a first token, then decode steps that add new ones. */
enum rfl_lm_phase { RFL_LM_PREFILL, RFL_LM_DECODE, RFL_LM_GENERATE };

/** "prefill", "decode", "generate", NULL. */
extern const char *const rfl_lm_phase_names[];

struct rfl_lm_item {
	struct rfl_lm lm;
	struct rfl_lm_formats formats;
	const char *matmuls;         /**< their precision: the format of activations, or "tf32" */
	struct rfl_attain_roof roof; /**< without `base.about`: none */
};

/** All pointers are borrowed. */
struct rfl_lm_report {
	const struct rfl_lm_item *items;
	size_t n;
	enum rfl_lm_phase phase;
	const int64_t *batches, *pasts;
	size_t nbatches, npasts;
	int64_t tokens; /**< new ones of prefill and generate */
	int64_t drafts; /**< proposed per decode step */
	double acceptance;
	/** Pairs, pages, devices; the rest is set by the report. */
	struct rfl_lm_step step;
	const enum rfl_fusion *fusions;
	size_t nfusions;
	double link_byte_per_s; /**< 0: not known */
	enum rfl_summary_by
		by; /**< layer: operations of one layer of each kind; kind: operations */
	struct rfl_fit_device device; /**< with memory_bytes: what fits, instead of counts */
};

/** Tokens of a sequence in the cache after the last step. */
int64_t rfl_complexity_lm_context(const struct rfl_lm_report *r, int64_t past);

/** Write the table. */
void rfl_complexity_lm_table(const struct rfl_lm_report *r, enum rfl_format format,
			     struct rfl_buf *out);

#endif
