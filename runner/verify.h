/*
 * verify.h - compares an engine with PyTorch: runs the network of a reference file and lists every
 * comparison with its tolerance.
 *
 * In every version, PyTorch's float32 results meet these tolerances against its double results:
 * logits   5 times PyTorch's own largest deviation; sums, l2 and loss: the bounds that follow from
 * it; trace    2e-5 of the l2 of the layer's output; losses   1e-5 + 10 times the largest deviation
 * of PyTorch's float32 up to that step; norms    1e-5 + 10 times the largest deviation of PyTorch's
 * float32 in that field; both 4 times that in channels-last or without AVX-512, where PyTorch
 * itself deviates more; gradient (of a logits file) 1e-5 + 10 times PyTorch's largest relative
 * deviation, relative to the value or to a hundredth of the largest value, whichever is larger. On
 * an NVIDIA GPU all but the trace have 16 times the tolerance (verify/rules.c).
 *
 * Batch norm over two images is chaotic at the learning rate of the section sgd, so networks with
 * batch norm are judged only on values from before its first step. running_var is never judged.
 */
#ifndef RFL_RUNNER_VERIFY_H
#define RFL_RUNNER_VERIFY_H

#include <stddef.h>

#include "base/err.h"
#include "runner/engine.h"
#include "runner/verify/golden.h"

enum rfl_verdict { RFL_VERDICT_AGREES, RFL_VERDICT_DIFFERS, RFL_VERDICT_REPORTED };

/** "agrees", "differs", "reported", NULL. */
extern const char *const rfl_verdict_names[];

/** One comparison. The list owns the strings, except `note`. */
struct rfl_check {
	const char *section; /**< "fill", "net", "logits", "trace", "batch_stats", "sgd", ... */
	const char *what;    /**< field: "losses", "l2", "grad_l2_each_step0" */
	const char *item;    /**< "step 2", a layer, a parameter; "" if there is only one */
	double expected, got;
	double allowed; /**< absolute difference; NaN if it is not judged */
	enum rfl_verdict verdict;
	const char *note; /**< why it is not judged, a constant; NULL if it is judged */
};

struct rfl_checks {
	size_t n, cap;
	struct rfl_check *items;
	struct rfl_arena *arena; /* owns the strings */
};

struct rfl_checks *rfl_checks_new(void);
/** Accepts NULL. */
void rfl_checks_free(struct rfl_checks *checks);
RFL_AUTOPTR_TYPE(checks, free);

/** Add a comparison that is judged, or only reported if it has a note or allowed is NaN.
 * @param check  its strings are copied */
void rfl_checks_add(struct rfl_checks *checks, const struct rfl_check *check);

/** |got - expected|; infinite if either is NaN. */
double rfl_check_difference(const struct rfl_check *check);

/** Difference divided by tolerance: 1 at the limit; infinite for a difference with tolerance 0; -1
 * if only reported. */
double rfl_check_strain(const struct rfl_check *check);

struct rfl_verify_setup {
	const struct rfl_engine_ops *ops;
	enum rfl_device device;
	int threads;
	enum rfl_layout layout;
	enum rfl_precision precision;
	enum rfl_attention attention; /**< AUTO: as in the reference file */
};

/** Compare the fill with its test vectors, bit for bit. */
void rfl_verify_fill(struct rfl_checks *checks);

/**
 * Run the network of a reference file and add its comparisons.
 * @return RFL_OK whatever the verdicts; RFL_ENOTFOUND if the zoo has no such model; RFL_EFORMAT if
 *         file and network have different layers; any error of the engine
 */
enum rfl_rc rfl_verify_golden(const struct rfl_golden *golden, const struct rfl_verify_setup *setup,
			      struct rfl_checks *checks, struct rfl_err *err) RFL_WARN_UNUSED;

/* Private: the rules of verify/rules.c, which add the comparisons of one reference file. */
struct rfl_verify__rules {
	struct rfl_checks *to;
	const struct rfl_golden *golden;
	const struct rfl_net *net;
	/* the files hold NCHW, computed on a CPU; others get a larger tolerance */
	enum rfl_device device;
	enum rfl_layout layout;
	bool bf16;          /* else float32 */
	bool other_order;   /* a CPU without AVX-512 */
	bool converts_bf16; /* a CPU without instructions for bfloat16 */
};

/** Relative tolerance of the l2 of a network's outputs in bfloat16, where the CPU has instructions
 * for it. */
double rfl_verify__bf16_error(const struct rfl_net *net);

void rfl_verify__forward(const struct rfl_verify__rules *r, bool batch_statistics,
			 const struct rfl_golden_forward *got);
void rfl_verify__layer(const struct rfl_verify__rules *r, const struct rfl_golden_layer *expected,
		       double l2);
void rfl_verify__gradient(const struct rfl_verify__rules *r, const struct rfl_golden_gradient *got);
void rfl_verify__section(const struct rfl_verify__rules *r,
			 const struct rfl_golden_section *section,
			 const struct rfl_golden_run *got);

#endif
