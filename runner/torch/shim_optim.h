/*
 * shim_optim.h - updates of all parameters at once: SGD, Adam and AdamW, with loss scaling.
 * The rules of shim.h hold.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_OPTIM_H
#define RFL_RUNNER_TORCH_SHIM_OPTIM_H

#include "runner/engine.h"
#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_torch_optim;

/** NULL: this library updates by one pass on that device. Else the first that does: "2.4". */
const char *rfl_torch_fused_since(enum rfl_optimizer_rule rule,
				  enum rfl_device device) RFL_TORCH_NOEXCEPT;

/** NULL: this library can scale losses on that device. Else the first that can: "2.3". */
const char *rfl_torch_scaling_since(enum rfl_device device) RFL_TORCH_NOEXCEPT;

struct rfl_torch_optim_config {
	enum rfl_optimizer_rule rule;
	int fused;  /**< one pass over everything; else operations over lists of tensors */
	int scaled; /**< the loss is scaled, as PyTorch's GradScaler does by default */
};

/** @param params  borrowed; the tensors are referenced */
RFL_TORCH_CALL rfl_torch_optim_new(struct rfl_torch_tensor *const *params, size_t n,
				   const struct rfl_torch_optim_config *config,
				   struct rfl_torch_optim **ret) RFL_TORCH_NOEXCEPT;

/** Accepts NULL. */
void rfl_torch_optim_free(struct rfl_torch_optim *o) RFL_TORCH_NOEXCEPT;

/** Drop every gradient (set to none: the memory goes back). */
void rfl_torch_optim_zero_grad(struct rfl_torch_optim *o) RFL_TORCH_NOEXCEPT;

/** Gradients of weight * loss, times the scale, added to those that are there; the recorded history
 * is freed. */
RFL_TORCH_CALL rfl_torch_optim_backward(struct rfl_torch_optim *o,
					const struct rfl_torch_tensor *loss,
					double weight) RFL_TORCH_NOEXCEPT;

/**
 * One update. The gradients are used up: their values are undefined afterwards.
 * @param numbers  rate, decay and so on; the rule is the one of new
 */
RFL_TORCH_CALL rfl_torch_optim_step(struct rfl_torch_optim *o,
				    const struct rfl_optimizer *numbers) RFL_TORCH_NOEXCEPT;

/** Forget gradients, momentum, step count; the scale is the first one again. */
RFL_TORCH_CALL rfl_torch_optim_reset(struct rfl_torch_optim *o) RFL_TORCH_NOEXCEPT;

/** Waits for the device. scale is NaN when losses are not scaled. */
RFL_TORCH_CALL rfl_torch_optim_scaling(const struct rfl_torch_optim *o, double *scale,
				       int64_t *skipped) RFL_TORCH_NOEXCEPT;

struct rfl_torch_optim_state; /* a copy of everything that a step changes */
RFL_TORCH_CALL rfl_torch_optim_save(const struct rfl_torch_optim *o,
				    struct rfl_torch_optim_state **ret) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL
rfl_torch_optim_restore(struct rfl_torch_optim *o,
			const struct rfl_torch_optim_state *state) RFL_TORCH_NOEXCEPT;
/** Accepts NULL. */
void rfl_torch_optim_state_free(struct rfl_torch_optim_state *state) RFL_TORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
