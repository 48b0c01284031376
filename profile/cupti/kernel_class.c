/*
 * kernel_class.c - the table of words in the names of kernels of cuBLAS, cuDNN, CUTLASS, PyTorch
 * and Triton.
 */
#include "profile/cupti/kernel_class.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
	const char *name;
	bool only_moves;
} classes[RFL_KERNEL_CLASSES] = {
	[RFL_KERNEL_MATRIX] = { "matrix products", false },
	[RFL_KERNEL_NORMALISATION] = { "normalisation", false },
	[RFL_KERNEL_OPTIMIZER] = { "optimizer", false },
	[RFL_KERNEL_REDUCTION] = { "reduction", false },
	[RFL_KERNEL_POOLING] = { "pooling", false },
	[RFL_KERNEL_ELEMENTWISE] = { "elementwise", false },
	[RFL_KERNEL_COPY] = { "copies", true },
	[RFL_KERNEL_COLLECTIVE] = { "collectives", false },
	[RFL_KERNEL_OTHER] = { "other", false },
};

/* The first row decides. Words that are parts of others' names stand in front of these: a kernel
 * that converts a layout is not a convolution, and the sum after a split matrix product is a part
 * of it. */
static const struct {
	enum rfl_kernel_class is;
	const char *word; /* in small letters */
} words[] = {
	{ RFL_KERNEL_COLLECTIVE, "nccl" },
	{ RFL_KERNEL_COLLECTIVE, "allreduce" },
	{ RFL_KERNEL_COPY, "direct_copy_kernel" },
	{ RFL_KERNEL_COPY, "converttensor" },
	{ RFL_KERNEL_COPY, "nchwtonhwc" },
	{ RFL_KERNEL_COPY, "nhwctonchw" },
	{ RFL_KERNEL_COPY, "catarraybatchedcopy" },
	{ RFL_KERNEL_COPY, "memcpy" },
	{ RFL_KERNEL_COPY, "memset" },
	{ RFL_KERNEL_COPY, "foldednhwc" },
	{ RFL_KERNEL_COPY, "nhwcaddpadding" },
	{ RFL_KERNEL_COPY, "im2col" },
	{ RFL_KERNEL_COPY, "vol2col" },
	{ RFL_KERNEL_ELEMENTWISE, "col2im" }, /* adds up where patches overlap */
	{ RFL_KERNEL_ELEMENTWISE, "indexing_backward" },
	{ RFL_KERNEL_COPY, "transpose_readwrite" },
	{ RFL_KERNEL_COPY, "fillfunctor" },
	{ RFL_KERNEL_COPY, "index_select" },
	{ RFL_KERNEL_COPY, "indexselect" },
	{ RFL_KERNEL_OPTIMIZER, "multi_tensor_apply" },
	{ RFL_KERNEL_OPTIMIZER, "multitensorapply" },
	{ RFL_KERNEL_OPTIMIZER, "fusedadam" },
	{ RFL_KERNEL_OPTIMIZER, "fusedsgd" },
	{ RFL_KERNEL_NORMALISATION, "batch_norm" },
	{ RFL_KERNEL_NORMALISATION, "batchnorm" },
	{ RFL_KERNEL_NORMALISATION, "bn_fw" },
	{ RFL_KERNEL_NORMALISATION, "bn_bw" },
	{ RFL_KERNEL_NORMALISATION, "bn_inf" },
	{ RFL_KERNEL_NORMALISATION, "layer_norm" },
	{ RFL_KERNEL_NORMALISATION, "layernorm" },
	{ RFL_KERNEL_NORMALISATION, "rowwisemoments" },
	{ RFL_KERNEL_NORMALISATION, "gammabeta" },
	{ RFL_KERNEL_NORMALISATION, "group_norm" },
	{ RFL_KERNEL_NORMALISATION, "groupnorm" },
	{ RFL_KERNEL_NORMALISATION, "rms_norm" },
	{ RFL_KERNEL_NORMALISATION, "rmsnorm" },
	/* these have the names of the operations around which they were fused */
	{ RFL_KERNEL_MATRIX, "triton_tem" },
	{ RFL_KERNEL_REDUCTION, "triton_red" },
	{ RFL_KERNEL_REDUCTION, "triton_per" },
	{ RFL_KERNEL_ELEMENTWISE, "triton_poi" },
	{ RFL_KERNEL_MATRIX, "gemm" },
	{ RFL_KERNEL_MATRIX, "gemv" },
	{ RFL_KERNEL_MATRIX, "splitkreduce" },
	{ RFL_KERNEL_MATRIX, "xmma" },
	{ RFL_KERNEL_MATRIX, "nvjet" },
	{ RFL_KERNEL_MATRIX, "cutlass" },
	{ RFL_KERNEL_MATRIX, "scudnn" },
	{ RFL_KERNEL_MATRIX, "884cudnn" },
	{ RFL_KERNEL_MATRIX, "1688cudnn" },
	{ RFL_KERNEL_MATRIX, "16816cudnn" },
	{ RFL_KERNEL_MATRIX, "wgrad" },
	{ RFL_KERNEL_MATRIX, "dgrad" },
	{ RFL_KERNEL_MATRIX, "fprop" },
	{ RFL_KERNEL_MATRIX, "bprop" },
	{ RFL_KERNEL_MATRIX, "winograd" },
	{ RFL_KERNEL_MATRIX, "fft2d" },
	{ RFL_KERNEL_MATRIX, "implicit" },
	{ RFL_KERNEL_MATRIX, "conv" },
	{ RFL_KERNEL_MATRIX, "flash_fwd" },
	{ RFL_KERNEL_MATRIX, "flash_bwd" },
	{ RFL_KERNEL_MATRIX, "fmha" },
	{ RFL_KERNEL_MATRIX, "attention" },
	{ RFL_KERNEL_MATRIX, "attn" },
	{ RFL_KERNEL_MATRIX, "sdpa" },
	{ RFL_KERNEL_MATRIX, "dot_kernel" },
	{ RFL_KERNEL_POOLING, "pool" },
	{ RFL_KERNEL_REDUCTION, "softmax" },
	{ RFL_KERNEL_REDUCTION, "nll_loss" },
	{ RFL_KERNEL_REDUCTION, "nllloss" },
	{ RFL_KERNEL_REDUCTION, "reduce" },
	{ RFL_KERNEL_REDUCTION, "reduction" },
	{ RFL_KERNEL_ELEMENTWISE, "elementwise" },
	{ RFL_KERNEL_ELEMENTWISE, "dropout" },
	{ RFL_KERNEL_ELEMENTWISE, "activation" },
	{ RFL_KERNEL_ELEMENTWISE, "op_tensor" },
	{ RFL_KERNEL_ELEMENTWISE, "op_generic_tensor" },
	{ RFL_KERNEL_ELEMENTWISE, "add_tensor" },
	{ RFL_KERNEL_ELEMENTWISE, "scaletensor" },
	{ RFL_KERNEL_ELEMENTWISE, "scalepackedtensor" },
	{ RFL_KERNEL_ELEMENTWISE, "distribution_" },
	{ RFL_KERNEL_COPY, "copy" },
	{ RFL_KERNEL_COPY, "transpose" },
	{ RFL_KERNEL_COPY, "gather" },
	{ RFL_KERNEL_COPY, "index" },
};

/* Whether the first len characters have the word, in whatever case. */
static bool has_word(const char *text, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++) {
		size_t k = 0;

		while (k < n && tolower((unsigned char)text[i + k]) == word[k])
			k++;
		if (k == n)
			return true;
	}
	return false;
}

static enum rfl_kernel_class classify(const char *text, size_t len)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (has_word(text, len, words[i].word))
			return words[i].is;
	return RFL_KERNEL_OTHER;
}

/* What an elementwise kernel does is in its template arguments: only that it copies, or updates
 * parameters, is of interest there. */
static enum rfl_kernel_class refine(enum rfl_kernel_class own, const char *arguments)
{
	enum rfl_kernel_class inner;

	if (own != RFL_KERNEL_ELEMENTWISE && own != RFL_KERNEL_OTHER)
		return own;
	inner = classify(arguments, strlen(arguments));
	if (own == RFL_KERNEL_OTHER || inner == RFL_KERNEL_COPY)
		return inner;
	return own;
}

enum rfl_kernel_class rfl_kernel_classify(const char *name)
{
	size_t own = strcspn(name, "<");

	if (name[own] == '\0')
		own = strcspn(name, "(");
	if (own == 0) /* "<unnamed>::..." */
		own = strlen(name);
	return refine(classify(name, own), name + own);
}

const char *rfl_kernel_class_name(enum rfl_kernel_class c)
{
	return classes[c].name;
}

bool rfl_kernel_class_only_moves(enum rfl_kernel_class c)
{
	return classes[c].only_moves;
}
