/* onednn.h - private to the oneDNN back end of the planned engine. */
#ifndef RFL_RUNNER_PLANNED_ONEDNN_H
#define RFL_RUNNER_PLANNED_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "runner/planned/backend.h"
#include "runner/planned/host.h"

#if DNNL_VERSION_MAJOR != 2
#error "oneDNN 2 is required: version 3 has another C interface"
#endif

/* A parameter. Trained ones are in the layout in which the library writes their gradient. */
struct weight {
	dnnl_memory_desc_t plain;  /* PyTorch's order */
	dnnl_memory_desc_t layout; /* in memory */
	size_t at;                 /* offset in each part's block, in floats */
	size_t floats;             /* a layout may have padding, which is zero */
};

/* A copy of everything that a step changes. */
struct saved {
	float *part[RFL_PART_COUNT];
	uint64_t generation; /* of the layouts; 0: nothing is saved */
};

struct rfl_backend {
	const struct rfl_net *net; /* borrowed */
	enum rfl_host_type type;   /* of activations */
	int threads;
	uint64_t seed;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct weight *weights; /* per parameter */
	size_t floats;          /* of one part */
	float *part[RFL_PART_COUNT];
	float *sums; /* of gradients, with the offsets of a part; NULL: none */
	/* 1: all layouts are plain; it grows when a plan for training chooses them */
	uint64_t generation;
	uint64_t version; /* grows when values change */
	struct saved saved;
	int64_t update; /* t of the next update */
	struct rfl_totals totals;
	double *clocks; /* events: seconds */
};

/* Where an argument of a primitive lies: in a buffer of the step, or in a parameter. */
struct argument {
	int id; /* DNNL_ARG_... */
	dnnl_memory_desc_t layout;
	enum rfl_plan_slot slot;
	int64_t offset; /* in the slot's buffer, in bytes */
	int param;      /* -1: the slot */
	bool kept;      /* in the session's memory of prepared weights, at `offset` */
};

#define MAX_ARGUMENTS 8
struct primitive {
	dnnl_primitive_t primitive;
	int n;
	struct argument arguments[MAX_ARGUMENTS];
	dnnl_exec_arg_t bound[MAX_ARGUMENTS];
	bool prepares; /* converts a weight: not repeated while it does not change */
};

/* What the back end adds to a step of a plan. */
struct task {
	dnnl_primitive_desc_t chosen; /* the implementation; NULL: our own loop */
	int n;
	struct primitive primitives[3];
	int64_t scratch; /* bytes asked for so far */
};

struct rfl_session {
	struct rfl_backend *b;
	struct rfl_plan *plan;
	struct task *tasks; /* per step */
	char *block;        /* of the plan's buffers */
	char *kept;         /* weights in the layouts of inference; NULL: none */
	int64_t kept_bytes;
	uint64_t version; /* of the weights in `kept` */
};

/* One operation of a plan. `choose` picks an implementation, `make` creates primitives and asks for
 * memory; both may be NULL. `run` is NULL if the primitives are all there is to do. */
struct operation {
	enum rfl_plan_op op;
	enum rfl_rc (*choose)(struct rfl_session *s, int step, struct rfl_err *err);
	enum rfl_rc (*make)(struct rfl_session *s, int step, struct rfl_err *err);
	void (*run)(struct rfl_session *s, const struct rfl_plan_step *step,
		    struct rfl_session_call *call);
};
const struct operation *rfl_dnnl__operation(enum rfl_plan_op op);

/* RFL_OK, or a failure that names the layer. */
enum rfl_rc rfl_dnnl__check(dnnl_status_t status, const struct rfl_net *net, int node,
			    const char *what, struct rfl_err *err);

/* ---- layouts ---- */

/* The row-major layout of a tensor of n dimensions. */
dnnl_memory_desc_t rfl_dnnl__plain(int n, const int64_t *dims, dnnl_data_type_t type);
/* The layout of a node's output. */
dnnl_memory_desc_t rfl_dnnl__value(const struct rfl_session *s, int node);
/* The layout of a weight that the library may choose. */
dnnl_memory_desc_t rfl_dnnl__any(const dnnl_memory_desc_t *like, dnnl_data_type_t type);
dnnl_data_type_t rfl_dnnl__type(const struct rfl_backend *b);

/* ---- primitives ---- */

/* Create the implementation of a step. @param attr  consumed */
enum rfl_rc rfl_dnnl__choose(struct rfl_session *s, int step, const_dnnl_op_desc_t desc,
			     dnnl_primitive_attr_t attr, struct rfl_err *err);
/* Attributes: scratch memory is the caller's; followed by ReLU, if so. */
dnnl_primitive_attr_t rfl_dnnl__attributes(bool relu);

/* Append the step's primitive and its scratch memory. */
enum rfl_rc rfl_dnnl__add(struct rfl_session *s, int step, struct rfl_err *err);
void rfl_dnnl__argument(struct rfl_session *s, int step, int id, const dnnl_memory_desc_t *layout,
			enum rfl_plan_slot slot);
void rfl_dnnl__parameter(struct rfl_session *s, int step, int id, int param);
/* A weight in the layout that the step wants: as it is, or converted before the step. Call it
 * before rfl_dnnl__add(). */
enum rfl_rc rfl_dnnl__weight(struct rfl_session *s, int step, int param,
			     const dnnl_memory_desc_t *wanted, struct argument *ret,
			     struct rfl_err *err);
void rfl_dnnl__take(struct rfl_session *s, int step, const struct argument *argument);

/* Ask for memory of a step. @return its offset in the buffer SCRATCH */
int64_t rfl_dnnl__scratch(struct rfl_session *s, int step, int64_t bytes);

/* ---- memory ---- */

/* A zeroed block at a multiple of 2 MiB, in huge pages where the system has them; NULL if memory
 * runs out. */
void *rfl_dnnl__map(size_t bytes);
void rfl_dnnl__unmap(void *memory, size_t bytes);
/* Convert a tensor. */
enum rfl_rc rfl_dnnl__convert(const struct rfl_backend *b, const dnnl_memory_desc_t *from,
			      const void *data, const dnnl_memory_desc_t *to, void *out,
			      struct rfl_err *err);
/* Give the parameters new layouts. */
enum rfl_rc rfl_dnnl__relayout(struct rfl_backend *b, const dnnl_memory_desc_t *layouts,
			       struct rfl_err *err);

static inline float *rfl_dnnl__data(const struct rfl_backend *b, int param, enum rfl_part part)
{
	return b->part[part] ? b->part[part] + b->weights[param].at : NULL;
}

#endif
