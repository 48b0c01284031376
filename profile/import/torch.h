/* torch.h - the FLOPs and bytes of an operator of PyTorch, from the shapes of its inputs. */
#ifndef RFL_PROFILE_IMPORT_TORCH_H
#define RFL_PROFILE_IMPORT_TORCH_H

#include <stdbool.h>
#include <stddef.h>

#define RFL_TORCH_INPUTS 16
#define RFL_TORCH_DIMS   8

/** An input of an operator, as record_shapes=True records it. */
struct rfl_torch_input {
	double elements;            /**< in a list: the sum over its tensors */
	double dim[RFL_TORCH_DIMS]; /**< in a list: the last tensor's */
	size_t ndims;
	bool is_list;   /**< of tensors, whose types are not recorded */
	char type[24];  /**< "float", "c10::BFloat16", "Scalar", "" */
	char value[64]; /**< of an input that is not a tensor: "[2, 2]", "True"; or "" */
};

/** A call of an operator. */
struct rfl_torch_call {
	size_t n; /**< number of inputs; those beyond RFL_TORCH_INPUTS are dropped */
	struct rfl_torch_input in[RFL_TORCH_INPUTS];
	bool has_shapes, has_values;
};

/** The work of a call: 2 FLOPs per multiply-add of products and convolutions, and each input and
 * output once in memory. NaN, with a reason: unknown. */
struct rfl_torch_work {
	double flops, bytes;
	const char *reason; /**< static; NULL: known */
	unsigned metric;    /**< index in rfl_torch_metrics: FLOPs by the type of the operands */
};
/** The metrics of FLOPs by type: "flops_fp32", ...; the first is "", for other
 * types; NULL past the last. */
extern const char *const rfl_torch_metrics[];

struct rfl_torch_rule;
/** The rule of an operator, such as "aten::mm"; NULL: none. */
const struct rfl_torch_rule *rfl_torch_rule_of(const char *name);
enum rfl_torch_kind {
	RFL_TORCH_UNKNOWN,
	RFL_TORCH_CALLS, /**< views, allocations, and operators that compute only by calls */
	RFL_TORCH_FILLS, /**< only fills a tensor */
	RFL_TORCH_COMPUTES,
	RFL_TORCH_MULTIPLIES, /**< has products */
};
enum rfl_torch_kind rfl_torch_kind_of(const struct rfl_torch_rule *rule); /* accepts NULL */
/** Why the work of an operator without a rule is unknown. */
extern const char rfl_torch_no_rule[];
struct rfl_torch_work rfl_torch_work_of(const struct rfl_torch_rule *rule,
					const struct rfl_torch_call *call);

#endif
