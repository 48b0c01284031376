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
	FAKE_NORM_FORWARD,
	FAKE_NORM_BACKWARD,
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

/* The tensors of a batch norm. Images are of the type of X, MASK has a bit per element; the
 * scalars are in memory of the host; the others are float32 per channel. */
enum fake_norm_tensor {
	FAKE_NORM_X,
	FAKE_NORM_OTHER,
	FAKE_NORM_Y,
	FAKE_NORM_DY,
	FAKE_NORM_DY2,
	FAKE_NORM_G,
	FAKE_NORM_DX,
	FAKE_NORM_MASK,
	FAKE_NORM_GAMMA,
	FAKE_NORM_BETA,
	FAKE_NORM_MEAN,
	FAKE_NORM_INVERSE,
	FAKE_NORM_RUNNING_MEAN,
	FAKE_NORM_RUNNING_VARIANCE,
	FAKE_NORM_NEW_MEAN, /* of the running statistics; may be the same memory */
	FAKE_NORM_NEW_VARIANCE,
	FAKE_NORM_DGAMMA,
	FAKE_NORM_DBETA,
	FAKE_NORM_EPS, /* scalars */
	FAKE_NORM_MOMENTUM,
	FAKE_NORM_ZERO,
	FAKE_NORM_TENSORS,
};

/* What a graph computes: a convolution, perhaps with a bias and ReLU; or a batch norm. */
struct fake_graph {
	enum fake_cudnn_kind kind;
	int type[FAKE_TENSORS];   /* of the elements */
	int64_t id[FAKE_TENSORS]; /* unique ids */
	int64_t n, c, k, groups;  /* samples, channels in and out */
	int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2], post[2];
	int ntensors;   /* 3; with a bias 4 */
	int capability; /* of the device; 0: not yet known */
	struct {        /* of a batch norm; also n, c, in and type[FAKE_X] */
		bool has[FAKE_NORM_TENSORS];
		int64_t id[FAKE_NORM_TENSORS];
	} norm;
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
	} values[16];                  /* in the order of the kind's attributes */
	struct fake_graph conv;        /* of a graph and of all that is made for it */
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
const int64_t *fake_dims(const struct fake_descriptor *tensor);
bool fake_is_virtual(const struct fake_descriptor *tensor);
/* The configurations of a mode for a convolution. */
int fake_engines(const struct fake_graph *conv, int mode, enum fake_cudnn_engine *engines);

/* ---- fake_cudnn_norm.c ---- */
int fake_finish_norm(struct fake_descriptor *d);
int fake_finish_norm_graph(struct fake_descriptor *d); /* a graph with a batch norm */
int fake_execute_norm(struct rfl_cudnn_handle *handle, const struct fake_descriptor *plan,
		      const struct fake_descriptor *pack);

/* ---- fake_cudnn_run.c ---- */
/* The fake driver's fake_cuda_owns(), ...; has_driver: all were found. */
struct fake_driver {
	bool (*owns)(uint64_t address, size_t size);
	void (*spend)(const char *what, double amount, double usual);
	int (*submit)(struct rfl_cuda_stream *stream, void (*run)(const void *argument),
		      const void *argument, size_t bytes);
};
extern struct fake_driver fake_driver;
bool fake_has_driver(void);
bool fake_owns(const void *memory, size_t size);
bool fake_overlap(const void *a, size_t a_size, const void *b, size_t b_size);
/* An element of a tensor. */
double fake_load(int type, const void *from, int64_t i);
void fake_store(int type, void *to, int64_t i, double value);
void fake_count(enum fake_cudnn_kind kind);
int64_t fake_workspace(const struct fake_graph *conv, enum fake_cudnn_engine engine);
int fake_execute(struct rfl_cudnn_handle *handle, const struct fake_descriptor *plan,
		 const struct fake_descriptor *pack);
/* How many convolutions of a kind the fake GPU has executed; kind -1: all. */
RFL_EXPORT long fake_cudnn_executions(int kind);
void fake_executions_reset(void);

#endif
