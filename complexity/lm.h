/*
 * lm.h - decoder-only language models at inference: parameters, and the FLOPs and bytes of a
 * prefill or a decode step with a cache of keys and values. Nothing is run.
 *
 * A step passes `tokens` new tokens of each sequence of a batch through the model, after `past`
 * tokens whose keys and values are in the cache. Prefill: the tokens of a prompt. Decode: one
 * token, or with drafts N + 1, of which the last N are verified (speculative decoding; the draft
 * model is not part of the step).
 *
 * Conventions. A multiply-add of a matmul is 2 FLOPs, as in count.h. Elementwise operations are
 * separate: per element 5 for softmax, 4 for RMS norm, 7 for layer norm, 3 for SiLU, 9 for GELU, 3
 * for the rotation, 1 for an addition, a bias or a product, without the few operations per row. The
 * first three are LLM-Viewer's (Yuan et al., "LLM Inference Unveiled: Survey and
 * Roofline Model Insights", arXiv 2402.16363), and so are the bytes of the unfused level:
 *
 *	weights       each matrix once per step; the rows of the embedding that are read
 *	scales        scales and zero points of quantised weights and of a quantised cache
 *	cache read    keys and values that a query of the step sees, including the new ones
 *	cache written new keys and values, by their projections
 *	activations   inputs and outputs of operations; an addition reads one input and writes
 *	link          sent and received by each device for all-reduces and borders of stages
 *
 * fused: normalisation, rotation, activation and softmax move nothing (the scores never leave the
 * chip), an addition reads only the residual. compulsory: only the logits remain of the
 * activations.
 *
 * Not counted: sampling, soft caps, masks, the table of the rotation, communication of the experts.
 *
 * Attention counts queries x keys that any of them sees or, with causal_half, only the pairs that
 * are not masked, which is the least that a kernel can do. A query in a layer with a window sees
 * the last `window` tokens, and the cache keeps what the queries of a step see. Latent attention
 * (DeepSeek) caches kv_lora + rope_dim values per token; it is counted in the direct form in
 * prefill (keys and values of all tokens are expanded from the cache) and in the absorbed form in
 * decode (the expansion is applied to the queries and the result instead).
 *
 * Experts: a step of T tokens reads the weights of E (1 - (1 - k/E)^T) experts, the expectation if
 * each token chooses k of E at random.
 */
#ifndef RFL_COMPLEXITY_LM_H
#define RFL_COMPLEXITY_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"

/** What deviates from a Llama: RMS norms before attention and MLP, SwiGLU, no biases, untied. */
enum {
	RFL_LM_TIED = 1 << 0,        /**< the head is the embedding */
	RFL_LM_PLAIN_MLP = 1 << 1,   /**< two matrices instead of three */
	RFL_LM_GELU = 1 << 2,        /**< instead of SiLU */
	RFL_LM_LAYER_NORM = 1 << 3,  /**< with bias, instead of RMS norm */
	RFL_LM_PARALLEL = 1 << 4,    /**< attention and MLP read the same norm */
	RFL_LM_POST_NORMS = 1 << 5,  /**< also norms after attention and MLP */
	RFL_LM_QK_NORM = 1 << 6,     /**< a norm per head of queries and keys */
	RFL_LM_QKV_BIAS = 1 << 7,    /**< biases of the projections of queries, keys, values */
	RFL_LM_OUTPUT_BIAS = 1 << 8, /**< of the projection after attention */
	RFL_LM_MLP_BIAS = 1 << 9,    /**< of MLP or experts */
	RFL_LM_HEAD_BIAS = 1 << 10,
	RFL_LM_ROUTER_BIAS = 1 << 11,
	RFL_LM_SINKS = 1 << 12, /**< a learned logit per head in every softmax */
};

/** The names of the traits in models.csv, from the lowest bit; NULL-terminated. */
extern const char *const rfl_lm_trait_names[];

/** The traits of a text of such names, separated by blanks. */
unsigned rfl_lm_traits(const char *text);

/** A model. Sizes that do not apply are 0. */
struct rfl_lm {
	char *name, *aliases, *source; /**< NULL: a configuration */
	int64_t published; /**< parameters according to the source; 0: a configuration */
	unsigned traits;
	int64_t layers, hidden, vocab;
	int64_t heads, kv_heads, head_dim;
	int64_t ffn;
	int64_t window, window_layers;               /**< tokens; layers that have it */
	int64_t positions;                           /**< learned positions; 0: rotation */
	int64_t experts, active, shared, expert_ffn; /**< experts per layer, of them per token */
	int64_t dense_layers;                        /**< the first layers, without experts */
	int64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim; /**< latent attention; q_lora 0: none */
};

struct rfl_lms {
	size_t n;
	struct rfl_lm *models;
	struct rfl_arena *arena; /**< owns everything above, including this struct */
};

/** Read the table, complexity/lm/models.csv, which is compiled into the program. */
struct rfl_lms *rfl_lms_new(void) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_lms_free(struct rfl_lms *lms);
RFL_AUTOPTR_TYPE(lms, free);

/** Find a model by name or alias; case and punctuation do not matter. RFL_ENOTFOUND suggests the
 * nearest. */
enum rfl_rc rfl_lms_find(const struct rfl_lms *lms, const char *name, const struct rfl_lm **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Check that the sizes are consistent and that the parameters can be counted. RFL_EINVAL. */
enum rfl_rc rfl_lm_check(const struct rfl_lm *lm, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Build the network of a step that passes `tokens` new tokens of each sequence through the model,
 * and returns the logits of the last one, {1, vocab}. It has no past: an engine with a cache adds
 * it. It has the model's parameters, in the order of execution.
 * @param ret  set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_EUNSUPPORTED: experts, latent attention or sinks; RFL_EINVAL
 */
enum rfl_rc rfl_lm_net(const struct rfl_lm *lm, int64_t tokens, struct rfl_net **ret,
		       struct rfl_err *err) RFL_WARN_UNUSED;

/** How values are stored. */
struct rfl_lm_format {
	const char *name; /**< "int4"; NULL: not set */
	int bits;
	/** Rows and columns of a block with a common scale, and the bits of scale and zero point; 0
	 * columns: a whole row, an output channel. */
	int64_t block_rows, block;
	int scale_bits, zero_bits;
};

/** "fp32", "fp16", "bf16", "fp8", "int8", "int4", "mxfp4", NULL; the formats in the same order. */
extern const char *const rfl_lm_format_names[];
extern const struct rfl_lm_format rfl_lm_formats_known[];

/** Find a format by name. NULL: there is none. */
const struct rfl_lm_format *rfl_lm_format_find(const char *name);

/** The formats of the parts of a model. */
struct rfl_lm_formats {
	struct rfl_lm_format base;        /**< embedding, norms, biases, router; default bf16 */
	struct rfl_lm_format activations; /**< and matmuls; default: base, as for the others */
	struct rfl_lm_format cache;
	struct rfl_lm_format weights; /**< the matrices of the layers */
	struct rfl_lm_format experts; /**< default: weights */
	struct rfl_lm_format head;
};

/** Set the formats that are not set to their defaults. */
void rfl_lm_formats_fill(struct rfl_lm_formats *f);

/**
 * Read the config.json of a Hugging Face model. Keys that are absent have the defaults of the type.
 * @param arena    owns the name of the model
 * @param formats  gets the dtype and the quantisation, if the file has them
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with file, key and reason
 */
enum rfl_rc rfl_lm_load(const char *path, struct rfl_arena *arena, struct rfl_lm *ret,
			struct rfl_lm_formats *formats, struct rfl_err *err) RFL_WARN_UNUSED;

/** Load a configuration if `name` is one, else find a model of the table.
 * @param arena    owns the texts
 * @param formats  as for rfl_lm_load(); may be NULL
 * @return as rfl_lm_load() and rfl_lms_find() */
enum rfl_rc rfl_lm_named(const char *name, struct rfl_arena *arena, struct rfl_lm *ret,
			 struct rfl_lm_formats *formats, struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether a file is such a configuration: a JSON object with "model_type" or "architectures". */
bool rfl_lm_is_config(const char *path);

struct rfl_lm_step {
	int64_t batch;    /**< sequences */
	int64_t past;     /**< tokens of each in the cache before the step */
	int64_t tokens;   /**< new tokens of each */
	int64_t logits;   /**< of these, tokens for which the head is computed */
	bool decode;      /**< latent attention in the absorbed form */
	bool causal_half; /**< count only the pairs that are not masked */
	enum rfl_fusion fusion;
	int64_t page;                  /**< tokens of a page of the cache; 0: 1 */
	int64_t tensor, pipeline;      /**< devices that share each layer, stages; 0: 1 */
	struct rfl_lm_formats formats; /**< all set */
};

/**
 * The step that an engine with a cache runs: logits of the last token, only the pairs that are not
 * masked, fused; everything in a precision ("fp32", "tf32", "fp16" or "bf16").
 * @param int8  whether the matrices of the layers are int8, with scales in the precision
 */
struct rfl_lm_step rfl_lm_step_of(const char *precision, bool int8, int64_t batch, int64_t past,
				  int64_t tokens);

enum rfl_lm_bytes {
	RFL_LM_WEIGHTS,
	RFL_LM_SCALES,
	RFL_LM_CACHE_READ,
	RFL_LM_CACHE_WRITTEN,
	RFL_LM_ACTIVATIONS,
	RFL_LM_LINK, /**< not of the device's memory */
	RFL_LM_BYTES_COUNT
};

/** An operation of one layer, on one device. Counts are doubles, exact up to 2^53. */
struct rfl_lm_op {
	const char *name;   /**< "q_proj" */
	const char *module; /**< "attention", "mlp", "experts", "outside" */
	const char *layer;  /**< the kind of layer: "layer", "window", "dense", ...; "" outside */
	int64_t layers;     /**< layers of this kind; 1 outside; 0 for the sum of several */
	double params, active; /**< parameters; of these, used by one token */
	double flops;          /**< of matmuls */
	double elementwise;
	double bytes[RFL_LM_BYTES_COUNT];
	double stored; /**< bytes of its parameters in memory, with scales, and of all experts */
	double cached; /**< bytes of its cache after the step, in whole pages */
};

/** Most operations of a count: three kinds of layers. */
#define RFL_LM_OPS_MAX 128

/** Each operation of each kind of layer, in order. */
struct rfl_lm_count {
	size_t n;
	struct rfl_lm_op ops[RFL_LM_OPS_MAX];
	/** Memory of a device (of several stages the one that holds most): parameters, cache, and
	 * the residual stream with the activations of the operation that has most. */
	double weights_bytes, cache_bytes, workspace_bytes;
};

/** Count a step. The sizes have been checked. */
void rfl_lm_count(const struct rfl_lm *lm, const struct rfl_lm_step *step,
		  struct rfl_lm_count *ret);

/** Add `times` the FLOPs and bytes of an operation to a sum. */
void rfl_lm_op_add(struct rfl_lm_op *sum, const struct rfl_lm_op *op, int64_t times);

/** The sum of all operations in all layers, with parameters and memory. */
struct rfl_lm_op rfl_lm_total(const struct rfl_lm_count *count);

/** The mean of so many steps, each after the tokens of the one before. */
struct rfl_lm_op rfl_lm_mean(const struct rfl_lm *lm, const struct rfl_lm_step *first,
			     int64_t steps);

/** Bytes of the device's memory: all but the link's. */
double rfl_lm_traffic(const struct rfl_lm_op *op);

/** FLOPs (elementwise operations, if it has no matmul) per byte of the device's memory. */
double rfl_lm_intensity(const struct rfl_lm_op *op);

/** Experts of a layer that a step is expected to read. */
double rfl_lm_experts_read(const struct rfl_lm *lm, double tokens);

/** Tokens that a decode step is expected to add: 1, or with `drafts` proposed tokens, each accepted
 * with probability p, (1 - p^(N + 1)) / (1 - p). */
double rfl_lm_accepted(int64_t drafts, double p);

/** Check that a model can be split. RFL_EINVAL: the heads or the layers do not suffice. */
enum rfl_rc rfl_lm_check_split(const struct rfl_lm *lm, int64_t tensor, int64_t pipeline,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** The largest value from 1 to `limit` that holds; a larger one must not hold again. 0: none. */
int64_t rfl_lm_largest(int64_t limit, bool (*holds)(int64_t value, void *ctx), void *ctx);

/** The largest batch of a step that fits into the memory of a device; 0: none. */
int64_t rfl_lm_fit_batch(const struct rfl_lm *lm, const struct rfl_lm_step *step, double bytes);

/** The largest `past` of a decode step, or `tokens` of a prefill, that fits; -1: not even 0 or 1.
 */
int64_t rfl_lm_fit_tokens(const struct rfl_lm *lm, const struct rfl_lm_step *step, double bytes);

/** The maximum of both. */
#define RFL_LM_FIT_MAX (INT64_C(1) << 30)

#endif
