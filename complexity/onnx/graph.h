/*
 * graph.h - private to onnx/: the values of an ONNX graph while it becomes a network.
 *
 * In the file a tensor has all its dimensions, in a network those of one sample. `batch` is the
 * dimension that holds the batch: 0 at first, another one after a transposition. If it also holds
 * other elements (64 windows of each image), `inside` of them belong to one sample, and the network
 * keeps the dimension with that size; otherwise the network's shape omits it.
 */
#ifndef RFL_COMPLEXITY_ONNX_GRAPH_H
#define RFL_COMPLEXITY_ONNX_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/keys.h"
#include "complexity/net/build.h"
#include "complexity/onnx/wire.h"

#define RFL_ONNX_MAX_CONTENT 64 /**< the most elements of a constant whose values are kept */

struct rfl_onnx_value {
	struct rfl_span name;
	int type;
	struct rfl_onnx_dims dims;
	struct rfl_onnx_node *producer; /**< NULL: an input or an initialiser */
	struct rfl_onnx_node *reader;   /**< the first */
	int uses;

	/* a value that does not depend on the network's input */
	bool constant;
	const struct rfl_onnx_tensor *weight; /**< the initialiser that it is, or a view of */
	size_t ncontent;                      /**< 0: unknown; 1: all elements are content[0] */
	double *content;

	/* a value that does */
	int node; /**< in the network; -1: none; for a constant, the node already made from it */
	int batch;
	int64_t inside, outer; /**< elements of dimension `batch` in and before the sample's part */
	bool permuted;         /**< its elements are not in the order of its dimensions */
};

/** The name of an attention that form.c recognised; its second input is transposed. */
#define RFL_ONNX_SDPA "attention"

struct rfl_onnx {
	struct rfl_arena *arena;
	const char *path;
	struct rfl_onnx_graph graph;
	struct rfl_onnx_value *values;
	size_t nvalues;
	struct rfl_keys numbers; /**< of values by name: index + 1 */
	struct rfl_onnx_value *input, *output;
	int64_t batch; /**< samples for which the file was written */

	struct rfl_net_builder *builder;
	json_t *unknown; /**< numbers of the operations of the file that are not supported */
	size_t nafter;   /**< operations that read what those compute */
	json_t *names;   /**< of modules so far, each with the number of its last copy */
	int *owners; /**< of each initialiser: the node in the network that owns its parameter; 0:
			none */
	int batch_norms, folded;
	struct rfl_err err;
};

/** The k-th input or output of a node; NULL: it has none. */
static inline struct rfl_onnx_value *rfl_onnx_in(const struct rfl_onnx_node *n, size_t k)
{
	return k < n->ninputs ? n->in[k] : NULL;
}
static inline struct rfl_onnx_value *rfl_onnx_out(const struct rfl_onnx_node *n, size_t k)
{
	return k < n->noutputs ? n->out[k] : NULL;
}

/** An integer attribute, or its default. */
int64_t rfl_onnx_int(const struct rfl_onnx_node *n, const char *name, int64_t otherwise);
double rfl_onnx_real(const struct rfl_onnx_node *n, const char *name, double otherwise);

/** An element of a constant whose contents are known, as an integer. The ends of slices can be the
 * largest one. */
int64_t rfl_onnx_int_at(const struct rfl_onnx_value *v, int64_t i);

/** A list of integers that is an attribute in older opsets and an input in newer ones.
 * @param k  the input; -1: only an attribute
 * @return false if it is missing or not known */
bool rfl_onnx_ints(const struct rfl_onnx_node *n, const char *name, int k,
		   int64_t out[RFL_ONNX_MAX_DIMS], int *count);

/** A dimension, counted from the end if negative; -1: none. */
int rfl_onnx_axis(int64_t axis, int n);

/** Elements of a value, with the batch; 0 if unknown. */
int64_t rfl_onnx_numel(const struct rfl_onnx_dims *dims);

/** Give a value the dimensions of an initialiser and, if there are few, its elements. */
void rfl_onnx_set_tensor(struct rfl_onnx *c, struct rfl_onnx_value *v,
			 const struct rfl_onnx_tensor *t);

/** Give the result of a constant node its dimensions and, if possible, its contents. */
void rfl_onnx_fold(struct rfl_onnx *c, const struct rfl_onnx_node *n);

/** The dimensions that Reshape, Squeeze, Unsqueeze or Flatten makes of its input. */
bool rfl_onnx_reshaped(const struct rfl_onnx_node *n, struct rfl_onnx_dims *ret);

/** Replace forms that exporters write in several nodes. All values have dimensions. */
void rfl_onnx_recognise(struct rfl_onnx *c);

/** Add a node to the network. False if its operation is not supported in this form. */
bool rfl_onnx_convert(struct rfl_onnx *c, struct rfl_onnx_node *n);

/** Whether a constant mask is 0 up to the diagonal and minus infinity, or very negative, above. */
bool rfl_onnx_is_causal(const struct rfl_onnx *c, const struct rfl_onnx_value *mask);

#endif
