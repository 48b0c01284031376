/*
 * terms.c - the words for how a network is run.
 */
#include "machine/terms.h"

#include <stdbool.h>
#include <stddef.h>

const char *const rfl_device_names[] = { "cpu", "cuda", "mps", NULL };
const char *const rfl_precision_names[] = { "fp32", "tf32", "amp", "bf16", "fp16", NULL };
const char *const rfl_layout_names[] = { "nchw", "nhwc", NULL };
const char *const rfl_cast_names[] = { "off", "fp16", "bf16", NULL };
const char *const rfl_optimizer_rule_names[] = { "sgd", "adam", "adamw", NULL };
const char *const rfl_optimizer_kernels_names[] = { "auto", "foreach", "fused", NULL };

enum rfl_cast rfl_precision_cast(enum rfl_precision precision, enum rfl_device device)
{
	const bool amp = precision == RFL_PRECISION_AMP, cpu = device == RFL_DEVICE_CPU;

	if (precision == RFL_PRECISION_BF16 || (amp && cpu))
		return RFL_CAST_BF16;
	return precision == RFL_PRECISION_FP16 || amp ? RFL_CAST_FP16 : RFL_CAST_OFF;
}
