/*
 * wire.h - the graph of an ONNX file, as stored: nodes, their attributes, and tensors without their
 * elements. The reader works on the mapped file and copies nothing, so that names and elements
 * point into the mapping, and a file with gigabytes of weights is read in milliseconds.
 *
 * ONNX is a protobuf format: onnx.proto of github.com/onnx/onnx, whose field numbers never change.
 */
#ifndef RFL_COMPLEXITY_ONNX_WIRE_H
#define RFL_COMPLEXITY_ONNX_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

struct rfl_arena;
struct rfl_onnx_value;

#define RFL_ONNX_MAX_DIMS 8
#define RFL_ONNX_DYNAMIC  -1 /**< a dimension that the file does not fix */

/** TensorProto.DataType, as far as it matters here. */
enum rfl_onnx_type {
	RFL_ONNX_FLOAT = 1,
	RFL_ONNX_INT32 = 6,
	RFL_ONNX_INT64 = 7,
	RFL_ONNX_BOOL = 9,
	RFL_ONNX_FLOAT16 = 10,
	RFL_ONNX_DOUBLE = 11,
	RFL_ONNX_BFLOAT16 = 16,
};

struct rfl_onnx_dims {
	bool known;
	int n;
	int64_t dim[RFL_ONNX_MAX_DIMS]; /**< at least 0, or RFL_ONNX_DYNAMIC */
};

/** A tensor with its elements, or a value with only its type. */
struct rfl_onnx_tensor {
	struct rfl_span name;
	int type;
	struct rfl_onnx_dims dims;
	struct rfl_span data;     /**< little-endian elements; empty if external or packed */
	struct rfl_span floats;   /**< packed float_data */
	struct rfl_span integers; /**< packed int64_data or int32_data: varints */
	struct rfl_span location; /**< external: a file in the directory of the ONNX file */
	int64_t offset;           /**< of the elements in it */
};

struct rfl_onnx_attribute {
	struct rfl_span name, text;
	int64_t integer;
	double real;
	size_t nints;
	int64_t *ints;
	const struct rfl_onnx_tensor *tensor;
};

struct rfl_onnx_node {
	struct rfl_span name, op, domain;
	size_t ninputs, noutputs, nattributes;
	struct rfl_span *inputs, *outputs;
	struct rfl_onnx_attribute *attributes;

	/* set by load.c */
	struct rfl_onnx_value **in, **out; /**< by name; NULL: omitted */
	bool live;                         /**< the output needs it */
};

struct rfl_onnx_graph {
	int64_t opset;
	size_t nnodes, ntensors, ninputs, noutputs, nvalues;
	struct rfl_onnx_node *nodes;
	struct rfl_onnx_tensor *tensors; /**< initialisers */
	struct rfl_onnx_tensor *inputs, *outputs, *values;
};

/**
 * Read a graph.
 *
 * @param data   must outlive the graph
 * @param arena  owns lists, but neither names nor elements
 * @return RFL_OK; RFL_EFORMAT with a message that does not name the file
 */
enum rfl_rc rfl_onnx_read(struct rfl_span data, struct rfl_arena *arena, struct rfl_onnx_graph *ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Read the i-th element of a tensor that is in the file itself. */
bool rfl_onnx_element(const struct rfl_onnx_tensor *t, size_t i, double *ret);

/** The attribute of a node; NULL: it has none of this name. */
const struct rfl_onnx_attribute *rfl_onnx_attribute(const struct rfl_onnx_node *node,
						    const char *name);

#endif
