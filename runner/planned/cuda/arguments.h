/*
 * arguments.h - the arguments of the kernels in kernel_*.h: what a plan needs besides cuDNN. The
 * program, NVRTC (which compiles the kernels when an engine is opened) and the compiler of their
 * CPU twins (twins.c) read it.
 *
 * Each kernel has one argument, its struct, and works on `n` independent units (see there), each by
 * one thread; no thread waits for another, and none shares memory with another. "value" is an
 * element of an activation in the engine's type, `type`; pointers to it are void. An image is rows
 * x columns, row-major: rows are samples x height x width, columns the channels (NHWC). Pointers
 * may be NULL only where a comment allows it, and outputs do not overlap inputs unless it does.
 */
#ifndef RFL_RUNNER_PLANNED_CUDA_ARGUMENTS_H
#define RFL_RUNNER_PLANNED_CUDA_ARGUMENTS_H

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

/** The type of values. */
enum rfl_value { RFL_VALUE_F32, RFL_VALUE_BF16, RFL_VALUE_F16 };

/** The name of a kernel, and what its units are. X(name) */
/* clang-format off */
#define RFL_KERNELS(X) \
	X(begin) X(input) X(narrow) X(widen) X(add_floats) \
	X(elements) X(bias) X(column_partials) X(fold_partials) X(column_totals) \
	X(norm_partials) X(norm_finish) X(norm_apply) \
	X(norm_gradient_partials) X(norm_gradient_finish) X(norm_gradient_apply) \
	X(max_pool) X(max_pool_gradient) X(average_pool) X(average_pool_gradient) \
	X(scale_rows) X(scale_rows_gradient) X(columns) X(shuffle) \
	X(dropout) X(dropout_gradient) X(loss) X(totals) \
	X(squares) X(fold_squares) X(decide) X(sgd) X(adam)
/* clang-format on */

/** What a whole step shares, in memory of the device, so that a recorded step can be replayed. */
struct rfl_kernel_state {
	uint64_t counter;  /**< of dropout: distinguishes forward passes */
	int64_t attempts;  /**< updates tried, before and since the pass began */
	double loss;       /**< of the last forward pass */
	double score_loss; /**< sum over rows since the engine read it */
	int64_t score_rows, score_correct;
	/* Loss scaling of fp16; scale is 1 elsewhere. */
	float scale;
	int32_t good;    /**< updates since the scale changed */
	int64_t skipped; /**< updates skipped because a gradient was not finite */
	/* Set by `decide` for the update. */
	int32_t skip;
	float factor;                   /**< gradients are multiplied by it: 1 / scale, clipping */
	float correction1, correction2; /**< of Adam: 1 - beta^t, t = attempts - skipped */
};

/* ---- inputs and types ---- */

/** Units: one. Set the numbers of the state that change from pass to pass. */
struct rfl_k_begin {
	int64_t n; /**< 1 */
	uint64_t counter;
	int64_t attempts;
	float scale; /**< set again, and forget what was skipped; 0: not */
	struct rfl_kernel_state *state;
};

/** Units: pixels of images x channels. y becomes NHWC values from float32 images or from 8-bit
 * pixels: (pixel / 255 - mean) / std. */
struct rfl_k_input {
	int64_t n;
	int32_t type;
	int32_t pixels, nhwc;   /**< what `from` is */
	int64_t channels, area; /**< area: height x width */
	float mean[3], std[3];  /**< of pixels */
	const void *from;
	void *y;
};

/** Units: elements. values = floats */
struct rfl_k_narrow {
	int64_t n;
	int32_t type;
	const float *from;
	void *y;
};
/** Units: elements. floats = values */
struct rfl_k_widen {
	int64_t n;
	int32_t type;
	const void *from;
	float *y;
};
/** Units: elements. y += x */
struct rfl_k_add_floats {
	int64_t n;
	const float *x;
	float *y;
};

/* ---- elementwise ---- */

enum rfl_element_op {
	RFL_E_ADD,      /**< a + b */
	RFL_E_MULTIPLY, /**< a * b */
	RFL_E_AFFINE,   /**< a * scale + shift */
	/* activations of a; the gradients: a is the activation's x (of RELU and RELU6, its y, or x,
	 * which gives the same), b the gradient of its result */
	RFL_E_RELU,
	RFL_E_RELU6,
	RFL_E_SIGMOID,
	RFL_E_TANH,
	RFL_E_SILU,
	RFL_E_MISH,
	RFL_E_GELU,
	RFL_E_GELU_TANH,
	RFL_E_HARD_SIGMOID,
	RFL_E_HARD_SWISH,
	/** of the gradients, in the same order; SIGMOID and TANH from y, not x */
	RFL_E_RELU_GRADIENT,
	RFL_E_RELU6_GRADIENT,
	RFL_E_SIGMOID_GRADIENT,
	RFL_E_TANH_GRADIENT,
	RFL_E_SILU_GRADIENT,
	RFL_E_MISH_GRADIENT,
	RFL_E_GELU_GRADIENT,
	RFL_E_GELU_TANH_GRADIENT,
	RFL_E_HARD_SIGMOID_GRADIENT,
	RFL_E_HARD_SWISH_GRADIENT,
};

/** Units: elements. y may be a or b. */
struct rfl_k_elements {
	int64_t n;
	int32_t type;
	int32_t op;        /**< enum rfl_element_op */
	const void *a, *b; /**< b NULL: an operation of one operand */
	void *y;
	float scale, shift;
};

/** Units: elements. y = activation(y + bias[column]), in place. */
struct rfl_k_bias {
	int64_t n;
	int32_t type;
	int32_t activation; /**< enum rfl_plan_activation */
	int64_t columns;
	const float *bias; /**< NULL: 0 */
	void *y;
};

/** Units: chunks x columns. partials[chunk * columns + column] = sum over the rows chunk, chunk +
 * chunks, ... */
struct rfl_k_column_partials {
	int64_t n;
	int32_t type;
	int64_t rows, columns, chunks;
	const void *x;
	float *partials;
};
/** The same for partials: fewer chunks, for kernels that read all chunks in one thread. Partials of
 * batch norm are a matrix of twice its columns. */
struct rfl_k_fold_partials {
	int64_t n;
	int64_t rows, columns, chunks; /**< rows: the chunks of `from` */
	const float *from;
	float *to;
};
/** Units: columns. y[column] = sum over the chunks */
struct rfl_k_column_totals {
	int64_t n;
	int64_t chunks;
	const float *partials;
	float *y;
};

/* ---- batch norm: y = activation(x * slope + shift + residual) ---- */

/** Units: chunks x columns. Two sums over the rows of a chunk, of d = x - x[row 0]: of d and of
 * d^2, in partials[(2 * chunk) * columns + column] and [(2 * chunk + 1) * ...]. */
struct rfl_k_norm_partials {
	int64_t n;
	int32_t type;
	int64_t rows, columns, chunks;
	const void *x;
	float *partials;
};
/** Units: columns. mean, inverse = 1 / sqrt(biased variance + eps), slope = gamma * inverse, shift
 * = beta - mean * slope; running statistics r += momentum * (new - r), with the unbiased variance.
 */
struct rfl_k_norm_finish {
	int64_t n;
	int32_t type;
	int32_t running; /**< use the running statistics, leave them, and ignore x and partials */
	int64_t rows, chunks;
	float eps, momentum;
	const void *x;
	const float *partials, *gamma, *beta;
	float *mean, *inverse;
	float *running_mean, *running_variance; /**< NULL without `running`: not updated */
	float *slope, *shift;
};
/** Units: elements. y may be x or the residual. */
struct rfl_k_norm_apply {
	int64_t n;
	int32_t type;
	int32_t activation;
	int64_t columns;
	const void *x, *residual; /**< residual NULL: 0 */
	const float *slope, *shift;
	void *y;
	uint8_t *mask; /**< 1 where the activation passes the gradient; NULL: not needed */
};

/* With g = (dy + dy2) * mask: dbeta = sum of g, dgamma = sum of g * (x - mean) * inverse, dx = g *
 * scale + x * slope + shift. */

/** Units: chunks x columns. Sums of g and of g * (x - mean), as above. */
struct rfl_k_norm_gradient_partials {
	int64_t n;
	int32_t type;
	int64_t rows, columns, chunks;
	const void *x, *dy, *dy2; /**< dy2 NULL: 0 */
	const uint8_t *mask;      /**< NULL: 1 */
	const float *mean;
	void *g; /**< written: g; may be dy or dy2; NULL: not needed */
	float *partials;
};
/** Units: columns. */
struct rfl_k_norm_gradient_finish {
	int64_t n;
	int32_t running; /**< the statistics were constants: slope and shift become 0 */
	int64_t rows, chunks;
	const float *partials, *gamma, *mean, *inverse;
	float *dgamma, *dbeta;
	float *scale, *slope, *shift;
};
/** Units: elements. dx may be g, dy or dy2. */
struct rfl_k_norm_gradient_apply {
	int64_t n;
	int32_t type;
	int64_t columns;
	const void *x, *dy, *dy2; /**< dy2 NULL: 0 */
	/** NULL: 1. Where g was written, it is dy here, without dy2 and mask. */
	const uint8_t *mask;
	const float *scale, *slope, *shift;
	void *dx;
};

/* ---- pooling, as struct rfl_plan_window ---- */

struct rfl_kernel_window {
	int64_t samples, columns;
	int32_t in[2], out[2];
	/** Adaptive with windows of different sizes: position o covers [floor(o * in / out),
	 * ceil((o + 1) * in / out)), and the rest is not read. */
	int32_t unequal;
	int32_t kernel[2], stride[2], dilation[2], pad[2];
	int32_t exclude_padding;
};
/** Units: elements of the output. The first of the largest counts, NaN above all; places[i] is its
 * place in the window, row * kernel[1] + column; row * in[1] + column if windows are unequal. */
struct rfl_k_max_pool {
	int64_t n;
	int32_t type;
	struct rfl_kernel_window window;
	const void *x;
	void *y;
	uint16_t *places; /**< NULL: not needed */
};
/** Units: elements of dx. */
struct rfl_k_max_pool_gradient {
	int64_t n;
	int32_t type;
	struct rfl_kernel_window window;
	const void *dy;
	const uint16_t *places;
	void *dx;
};
/** Units: elements of the output. A window may end outside the padded image; that part does not
 * count. */
struct rfl_k_average_pool {
	int64_t n;
	int32_t type;
	struct rfl_kernel_window window;
	const void *x;
	void *y;
};
/** Units: elements of dx. */
struct rfl_k_average_pool_gradient {
	int64_t n;
	int32_t type;
	struct rfl_kernel_window window;
	const void *dy;
	void *dx;
};

/* ---- rows and columns ---- */

/** Units: elements. y[s, r, c] = x[s, r, c] * factor[s, c]; y may be x. */
struct rfl_k_scale_rows {
	int64_t n;
	int32_t type;
	int64_t rows, columns; /**< rows of a sample */
	const void *x, *factor;
	void *y;
};
/** Units: samples x columns. y[s, c] = sum over r of x[s, r, c] * dy[s, r, c] */
struct rfl_k_scale_rows_gradient {
	int64_t n;
	int32_t type;
	int64_t rows, columns;
	const void *x, *dy;
	void *y;
};
/** Units: rows x columns. Copy columns from..from + columns of x, with rows of x_stride, to to..to
 * + columns of y. */
struct rfl_k_columns {
	int64_t n;
	int32_t type;
	int32_t add; /**< add to y instead */
	int64_t columns, x_stride, from, y_stride, to;
	const void *x;
	void *y;
};
/** Units: elements. Each row, seen as groups x columns / groups, is transposed. */
struct rfl_k_shuffle {
	int64_t n;
	int32_t type;
	int64_t columns, groups;
	const void *x;
	void *y;
};

/* ---- dropout ---- */

/** Units: elements. y = x * keep / (1 - probability), with the generator of rfl_host_dropout(), of
 * which a unit is an element or a sample of `each` elements. y may be x. */
struct rfl_k_dropout {
	int64_t n;
	int32_t type;
	int64_t each;
	double probability;
	uint64_t key;
	const struct rfl_kernel_state *state; /**< counter */
	const void *x;
	uint8_t *mask; /**< written: keep, a byte per unit */
	void *y;
};
/** Units: elements. dx may be dy. */
struct rfl_k_dropout_gradient {
	int64_t n;
	int32_t type;
	int64_t each;
	double probability;
	const uint8_t *mask;
	const void *dy;
	void *dx;
};

/* ---- loss ---- */

/** Units: rows. losses[row] = cross entropy; correct[row] = 1 if the largest logit (the first of
 * equals) is the label's. */
struct rfl_k_loss {
	int64_t n;
	int32_t type;
	int64_t classes;
	const void *logits;
	const int64_t *labels;
	double weight; /**< of the gradient, besides the scale of the state and 1 / rows */
	const struct rfl_kernel_state *state;
	void *gradient; /**< NULL: not needed */
	float *losses;
	uint8_t *correct;
};
/** Units: one. Add the mean of `losses`, times the weight, to the loss of the state, and to the
 * score what the last loss of a forward pass adds. */
struct rfl_k_totals {
	int64_t n; /**< 1 */
	int64_t rows;
	double weight;
	int32_t first, last; /**< of the forward pass: first: the loss begins at 0 */
	const float *losses;
	const uint8_t *correct;
	struct rfl_kernel_state *state;
};

/* ---- updates, as struct rfl_optimizer defines them ---- */

/** Units: chunks. partials[chunk] = sum of squares of x[chunk], x[chunk + n], ...; not finite if
 * one is not. */
struct rfl_k_squares {
	int64_t n;
	int64_t size;
	const float *x;
	double *partials;
};
/** Units: chunks. to[chunk] = sum of from[chunk], from[chunk + n], ... */
struct rfl_k_fold_squares {
	int64_t n;
	int64_t size;
	const double *from;
	double *to;
};
/** Units: one. Decide about an update from the sum of all partials: whether it is skipped (only
 * with loss scaling), the factor of the gradients, the corrections of Adam; and grow or shrink the
 * scale of the loss as torch.cuda.amp.GradScaler does: halved after a gradient that is not finite,
 * doubled after 2000 updates. */
struct rfl_k_decide {
	int64_t n;      /**< 1 */
	int64_t chunks; /**< 0: neither scaling nor clipping */
	const double *partials;
	double grad_clip; /**< 0: none */
	double beta1, beta2;
	int32_t scaling; /**< the loss is scaled */
	struct rfl_kernel_state *state;
};
/** Units: elements. The state of the optimizer does not change in a step that is skipped. */
struct rfl_k_sgd {
	int64_t n;
	int32_t type;
	float lr, weight_decay, momentum;
	const struct rfl_kernel_state *state;
	const float *g;
	float *p, *mean; /**< mean NULL: no momentum */
	void *copy;      /**< p as values; NULL: not needed */
};
struct rfl_k_adam {
	int64_t n;
	int32_t type;
	float lr, weight_decay, beta1, beta2, eps;
	float rest1, rest2; /**< 1 - beta1, 1 - beta2, in double */
	int32_t decoupled;  /**< adamw */
	const struct rfl_kernel_state *state;
	const float *g;
	float *p, *mean, *square;
	void *copy;
};

#endif
