/*
 * fake_cudnn.h - what the files of the fake cuDNN share: descriptors, and what a graph computes.
 */
#ifndef RFL_TESTS_FAKE_CUDNN_H
#define RFL_TESTS_FAKE_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "runner/planned/cuda/cudnn.h"
#include "tests/fakes/fake_script.h"

/* cudnnStatus_t */
enum {
	FAKE_NOT_INITIALIZED = 1001,
	FAKE_BAD_PARAM = 2000,
	FAKE_NULL_POINTER = 2002,
	FAKE_MISALIGNED = 2003,
	FAKE_NOT_FINALIZED = 2004,
	FAKE_SHAPE_MISMATCH = 2008,
	FAKE_DUPLICATED = 2009,
	FAKE_ATTRIBUTE_TYPE = 2010,
	FAKE_DESCRIPTOR_TYPE = 2012,
	FAKE_NOT_SUPPORTED = 3000,
	FAKE_PATTERN = 3001,
	FAKE_DATA_TYPE = 3003,
	FAKE_LAYOUT = 3004,
	FAKE_ALLOCATION = 4003,
	FAKE_DRIVER = 5001,
};

enum fake_cudnn_kind {
	FAKE_FORWARD,
	FAKE_FORWARD_BIAS,
	FAKE_FORWARD_BIAS_RELU,
	FAKE_FORWARD_RELU,
	FAKE_BACKWARD_DATA,
	FAKE_BACKWARD_FILTER,
	FAKE_KIND_COUNT,
};

enum fake_cudnn_engine {
	FAKE_REDUCED,          /* fast, with a shorter mantissa */
	FAKE_NONDETERMINISTIC, /* every second execution has other roundings */
	FAKE_WORKSPACE,
	FAKE_FALLBACK,
	FAKE_ENGINE_COUNT,
};

enum { FAKE_X, FAKE_W, FAKE_Y, FAKE_B, FAKE_TENSORS };

/* A graph: a convolution, perhaps with a bias and ReLU. */
struct fake_conv {
	enum fake_cudnn_kind kind;
	int type[FAKE_TENSORS];   /* of the elements */
	int64_t id[FAKE_TENSORS]; /* unique ids */
	int64_t n, c, k, groups;  /* samples, channels in and out */
	int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2], post[2];
	int ntensors;   /* 3; with a bias 4 */
	int capability; /* of the device; 0: not yet known */
};

struct fake_descriptor {
	struct fake_descriptor *next;
	const struct fake_kind *kind;
	int type;
	bool finalized, destroyed;
	int references;
	struct fake_value {
		int64_t n; /* 0: not set */
		void *data;
	} values[8];                   /* in the order of the kind's attributes */
	struct fake_conv conv;         /* of a graph and of all that is made for it */
	enum fake_cudnn_engine engine; /* of a configuration, an engine, a plan */
};

struct rfl_cudnn_handle {
	struct rfl_cuda_stream *stream;
	int capability;
};

extern struct fake_script fake_cudnn_script;

/* Complain, and return the status. */
int fake_refuse(int status, const char *fmt, ...) RFL_PRINTF(2, 3);

/* The values of an attribute; NULL: not set. */
const void *fake_values(const struct fake_descriptor *d, int name, int64_t *n);
int64_t fake_int(const struct fake_descriptor *d, int name);
int fake_enum(const struct fake_descriptor *d, int name);
struct fake_descriptor *fake_ref(const struct fake_descriptor *d, int name);

/* ---- fake_cudnn_graph.c: what finalizing checks ---- */
int fake_finish_tensor(struct fake_descriptor *d);
int fake_finish_convolution(struct fake_descriptor *d);
int fake_finish_pointwise(struct fake_descriptor *d);
int fake_finish_operation(struct fake_descriptor *d); /* a convolution */
int fake_finish_pointwise_operation(struct fake_descriptor *d);
int fake_finish_graph(struct fake_descriptor *d);
/* The configurations of a mode for a convolution. */
int fake_engines(const struct fake_conv *conv, int mode, enum fake_cudnn_engine *engines);

/* ---- fake_cudnn_run.c ---- */
int64_t fake_workspace(const struct fake_conv *conv, enum fake_cudnn_engine engine);
int fake_execute(struct rfl_cudnn_handle *handle, const struct fake_descriptor *plan,
		 const struct fake_descriptor *pack);
/* How many convolutions of a kind the fake GPU has executed; kind -1: all. */
RFL_EXPORT long fake_cudnn_executions(int kind);
void fake_executions_reset(void);

#endif
