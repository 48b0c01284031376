/*
 * terms.h - the settings for running a network: device, precision, layout and optimizer, with the
 * names used in options, labels, files and engines.
 */
#ifndef RFL_MACHINE_TERMS_H
#define RFL_MACHINE_TERMS_H

#ifdef __cplusplus
extern "C" {
#endif

enum rfl_device { RFL_DEVICE_CPU, RFL_DEVICE_CUDA, RFL_DEVICE_MPS };

enum rfl_precision {
	RFL_PRECISION_FP32,
	RFL_PRECISION_TF32, /**< fp32; matmuls round their operands to 10 bits */
	RFL_PRECISION_AMP,  /**< the device's usual 16-bit autocast */
	RFL_PRECISION_BF16, /**< autocast to bfloat16 */
	RFL_PRECISION_FP16, /**< autocast to float16, with loss scaling in training */
};

enum rfl_layout { RFL_LAYOUT_NCHW, RFL_LAYOUT_NHWC /**< channels-last */ };

/** The type to which operands of matmuls and convolutions are cast. */
enum rfl_cast { RFL_CAST_OFF, RFL_CAST_FP16, RFL_CAST_BF16 };

enum rfl_optimizer_rule { RFL_RULE_SGD, RFL_RULE_ADAM, RFL_RULE_ADAMW };

/** The kernels of an optimizer step; their results differ only by rounding. */
enum rfl_optimizer_kernels {
	RFL_KERNELS_AUTO,    /**< fused if the library supports it on the device */
	RFL_KERNELS_FOREACH, /**< one operation at a time over all parameters */
	RFL_KERNELS_FUSED,   /**< one pass over all parameters */
};

/** Names in the order of the enums ("cpu", "cuda", "mps"), NULL-terminated. */
extern const char *const rfl_device_names[];
extern const char *const rfl_precision_names[];
extern const char *const rfl_layout_names[];
extern const char *const rfl_cast_names[]; /**< "off", "fp16", "bf16", NULL */
extern const char *const rfl_optimizer_rule_names[];
extern const char *const rfl_optimizer_kernels_names[];

/** Return the cast of a precision on a device: amp is fp16 on a GPU and bf16 on a CPU. */
enum rfl_cast rfl_precision_cast(enum rfl_precision precision, enum rfl_device device);

#ifdef __cplusplus
}
#endif
#endif
