/* backend.h - private to the back end of the planned engine for NVIDIA GPUs. */
#ifndef RFL_RUNNER_PLANNED_CUDA_BACKEND_H
#define RFL_RUNNER_PLANNED_CUDA_BACKEND_H

#include "runner/planned/backend.h"
#include "runner/planned/cuda/arguments.h"
#include "runner/planned/cuda/graph_norm.h"

/* The largest workspace of a convolution. */
#define MAX_WORKSPACE ((int64_t)1 << 30)

/* Threads that add squares; and sums that remain after folding, which one thread then adds. */
enum { SQUARES = 4096, FOLDED = 64 };

/* What torch.cuda.amp.GradScaler begins with. */
#define FIRST_SCALE 65536.0F

#define KERNEL_ID(name) KERNEL_##name,
enum kernel { RFL_KERNELS(KERNEL_ID) KERNEL_COUNT };
#undef KERNEL_ID

/* A batch on the device, as the host has it. */
struct staged {
	rfl_cuda_address images, labels;
	size_t bytes[2]; /* of these */
	struct rfl_batch batch;
	bool filled;
	struct rfl_cuda_event *ready, *used; /* copied; read by the last forward pass */
};

/* A copy of everything that a step changes. */
struct saved {
	bool exists;
	rfl_cuda_address part[RFL_PART_COUNT];
	struct rfl_kernel_state state;
};

struct rfl_backend {
	const struct rfl_net *net; /* borrowed */
	enum rfl_value type;       /* of activations */
	bool tf32, deterministic, benchmark;
	uint64_t seed;
	struct rfl_cuda *cuda;
	struct rfl_queue_functions queue;
	struct rfl_cuda_stream *stream, *copies; /* copies: of batches, beside the steps */
	struct rfl_cudnn *cudnn;
	struct rfl_cuda_module *module;
	struct rfl_cuda_function *kernels[KERNEL_COUNT];
	size_t *at;    /* per parameter: its offset in each part, in floats */
	size_t floats; /* of one part */
	/* The parameters and the state of the optimizer; 0: none. Weights of convolutions are KRSC,
	 * of linear layers after a flattened image in the order of its memory. */
	rfl_cuda_address part[RFL_PART_COUNT];
	rfl_cuda_address values; /* the parameters as 16-bit values, at the same offsets; 0: none */
	rfl_cuda_address gradients, sums; /* the same, float32 */
	rfl_cuda_address state;           /* struct rfl_kernel_state */
	rfl_cuda_address labels;          /* of the batch in the step */
	rfl_cuda_address losses;          /* per row: a float, then a byte */
	rfl_cuda_address partials;        /* of sums of squares */
	bool stale;                       /* `values` must be made again */
	bool restart_scaling;             /* and the scale of the loss set again */
	struct staged staged[2];
	int last_staged;
	int64_t max_batch;
	struct rfl_cuda_event **events;
	int64_t nevents;
	struct rfl_cuda_event *ends[2];        /* of what is timed */
	struct rfl_cuda_graph_exec *recording; /* NULL: none */
	struct saved saved;
	/* The execution plans of convolutions, one per kind; tasks borrow them. */
	struct made {
		struct rfl_conv conv;
		struct rfl_conv_plan plan;
		bool fused;
	} * made;
	size_t nmade, made_cap;
};

/* What the back end adds to a step of a plan: offsets in the buffer SCRATCH; -1: none. */
struct task {
	struct rfl_conv_plan conv;
	bool fused; /* the convolution's plan adds the bias, and applies ReLU */
	int64_t workspace, gradient, partials, factors;
	int64_t chunks; /* of partial sums over rows */
	int norm;       /* index into the session's norms, for both directions */
};

/* A batch norm for which cuDNN has plans. */
struct norm {
	struct rfl_norm_graph graph[2]; /* forward, backward */
	struct rfl_conv_plan plan[2];
	int step[2];  /* the first with these graphs */
	bool refused; /* there are no plans */
	bool used;    /* they are faster than our kernels */
};

struct rfl_session {
	struct rfl_backend *b;
	struct rfl_plan *plan;
	struct task *tasks; /* per step */
	bool *has_gradient; /* per parameter */
	rfl_cuda_address block;
	struct norm *norms;
	int nnorms;
};

/* ---- steps (steps.c) ---- */

/* Ask for the memory of a step. */
void rfl_cuda__ask(struct rfl_session *s, int step);
enum rfl_rc rfl_cuda__run(struct rfl_session *s, int step, const struct rfl_session_call *call,
			  struct rfl_err *err);
/* The gradient of a loss, times the weight. */
enum rfl_rc rfl_cuda__run_loss(struct rfl_session *s, int step, double weight, struct rfl_err *err);
/* A place in the buffer SCRATCH of a step; NULL: none. */
void *rfl_cuda__scratch(const struct rfl_session *s, int step, int64_t at);
/* The address of a step's buffer; NULL: none. */
void *rfl_cuda__data(const struct rfl_session *s, const struct rfl_plan_step *at,
		     enum rfl_plan_slot slot);

/* ---- batch norm by cuDNN (norms.c) ---- */

/* Make cuDNN's plans of the batch norms, where it has any. Before memory is asked for. */
void rfl_cuda__make_norms(struct rfl_session *s);
/* Use those that are faster than our kernels on the device. Once the session has its memory. */
enum rfl_rc rfl_cuda__time_norms(struct rfl_session *s, struct rfl_err *err);
void rfl_cuda__free_norms(struct rfl_session *s);
/* Run a step by its plan. */
enum rfl_rc rfl_cuda__run_norm(struct rfl_session *s, int step, struct rfl_err *err);

/* ---- kernels (launch.c) ---- */

/* RFL_OK, or RFL_EUNAVAILABLE if the compiler is missing. @param version  of CUDA, of the driver */
enum rfl_rc rfl_cuda__probe_kernels(int version, struct rfl_err *err);
/* Compile the kernels for the device and the type. */
enum rfl_rc rfl_cuda__load_kernels(struct rfl_backend *b, struct rfl_err *err);
/* Queue a kernel. @param argument  its struct, which begins with n */
enum rfl_rc rfl_cuda__launch(const struct rfl_backend *b, enum kernel kernel, const void *argument,
			     struct rfl_err *err);
#define LAUNCH(b, err, name, ...) \
	rfl_cuda__launch(b, KERNEL_##name, &(struct rfl_k_##name){ __VA_ARGS__ }, err)

/* ---- memory (library.c) ---- */

/* Memory filled with zeros. `what` is for the message. */
enum rfl_rc rfl_cuda__alloc(const struct rfl_backend *b, size_t bytes, const char *what,
			    rfl_cuda_address *ret, struct rfl_err *err);
void rfl_cuda__free(const struct rfl_backend *b, rfl_cuda_address *address);
/* Copy to the device after everything that is queued; wait for it. */
enum rfl_rc rfl_cuda__send(const struct rfl_backend *b, rfl_cuda_address to, const void *from,
			   size_t bytes, struct rfl_err *err);
/* Copy from the device after everything that is queued; wait for it. */
enum rfl_rc rfl_cuda__fetch(const struct rfl_backend *b, void *to, rfl_cuda_address from,
			    size_t bytes, struct rfl_err *err);
/* Reorder a parameter between PyTorch's order and the device's. */
void rfl_cuda__reorder(const struct rfl_net *net, int param, bool to_device, const float *from,
		       float *to);

/* ---- batches, events and recordings (queue.c) ---- */

/* Make the batch the one of the next steps: images in Y of the step INPUT, labels in b->labels. */
enum rfl_rc rfl_cuda__take_batch(struct rfl_backend *b, const struct rfl_batch *batch, void *y,
				 struct rfl_err *err);
void rfl_cuda__close_queue(struct rfl_backend *b);
/* The milliseconds of some work when the device has much to do. */
enum rfl_rc rfl_cuda__time(const struct rfl_backend *b,
			   enum rfl_rc (*work)(void *ctx, struct rfl_err *err), void *ctx,
			   float *ret, struct rfl_err *err);

/* ---- helpers ---- */

static inline void *rfl_cuda__pointer(rfl_cuda_address address)
{
	return (void *)(uintptr_t)address;
}

/* The floats, in a block, of the parameter of this kind of a step's node; NULL: it has none. */
static inline float *rfl_cuda__floats(const struct rfl_session *s, const struct rfl_plan_step *at,
				      enum rfl_param_kind kind, rfl_cuda_address block)
{
	const int param = rfl_plan_param(s->plan->net, at->node, kind);

	return param < 0 ? NULL : rfl_cuda__pointer(block + 4 * s->b->at[param]);
}

/* What cuDNN's plans may use. */
static inline struct rfl_conv_rules rfl_cuda__rules(const struct rfl_backend *b)
{
	return (struct rfl_conv_rules){ .type = b->type,
					.tf32 = b->tf32,
					.deterministic = b->deterministic,
					.workspace = MAX_WORKSPACE };
}

static inline int64_t rfl_cuda__size(enum rfl_value type)
{
	return type == RFL_VALUE_F32 ? 4 : 2;
}

#define QUEUE(b, member, err, ...) \
	rfl_cuda_check((b)->cuda, (b)->queue.member(__VA_ARGS__), rfl_queue_symbols.member, err)

#endif
