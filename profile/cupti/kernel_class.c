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

/* The first row with one of its words in the name decides. A word that is a part of other names
 * comes before those: a kernel that converts a layout is not a convolution, and the sum after a
 * split matrix product is a part of it. */
static const struct {
	enum rfl_kernel_class is;
	const char *words; /* in lower case, a space after each */
} rules[] = {
	{ RFL_KERNEL_COLLECTIVE, "nccl allreduce " },
	{ RFL_KERNEL_COPY, "direct_copy_kernel converttensor nchwtonhwc nhwctonchw "
			   "catarraybatchedcopy memcpy memset foldednhwc nhwcaddpadding "
			   "im2col vol2col " },
	/* col2im adds up where patches overlap */
	{ RFL_KERNEL_ELEMENTWISE, "col2im indexing_backward " },
	{ RFL_KERNEL_COPY, "transpose_readwrite fillfunctor index_select indexselect " },
	{ RFL_KERNEL_OPTIMIZER, "multi_tensor_apply multitensorapply fusedadam fusedsgd " },
	{ RFL_KERNEL_NORMALISATION, "batch_norm batchnorm bn_fw bn_bw bn_inf layer_norm "
				    "layernorm rowwisemoments gammabeta group_norm groupnorm "
				    "rms_norm rmsnorm " },
	/* these have the names of the operations around which they were fused */
	{ RFL_KERNEL_MATRIX, "triton_tem " },
	{ RFL_KERNEL_REDUCTION, "triton_red triton_per " },
	{ RFL_KERNEL_ELEMENTWISE, "triton_poi " },
	{ RFL_KERNEL_MATRIX, "gemm gemv splitkreduce xmma nvjet cutlass scudnn 884cudnn "
			     "1688cudnn 16816cudnn wgrad dgrad fprop bprop winograd fft2d "
			     "implicit conv flash_fwd flash_bwd fmha attention attn sdpa "
			     "dot_kernel " },
	{ RFL_KERNEL_POOLING, "pool " },
	{ RFL_KERNEL_REDUCTION, "softmax nll_loss nllloss reduce reduction " },
	{ RFL_KERNEL_ELEMENTWISE, "elementwise dropout activation op_tensor op_generic_tensor "
				  "add_tensor scaletensor scalepackedtensor distribution_ " },
	{ RFL_KERNEL_COPY, "copy transpose gather index " },
};

/* Whether the text contains the word, in any case. */
static bool has_word(const char *text, size_t len, const char *word, size_t n)
{
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
	for (size_t i = 0; i < RFL_ARRAY_LEN(rules); i++)
		for (const char *word = rules[i].words; *word; word = strchr(word, ' ') + 1)
			if (has_word(text, len, word, strcspn(word, " ")))
				return rules[i].is;
	return RFL_KERNEL_OTHER;
}

enum rfl_kernel_class rfl_kernel_classify(const char *name)
{
	enum rfl_kernel_class is, inner;
	size_t own = strcspn(name, "<");

	if (name[own] == '\0')
		own = strcspn(name, "(");
	if (own == 0) /* "<unnamed>::..." */
		own = strlen(name);
	is = classify(name, own);
	if (is != RFL_KERNEL_ELEMENTWISE && is != RFL_KERNEL_OTHER)
		return is;
	/* The operation of an elementwise kernel is in its template arguments: it matters only
	 * whether it copies. */
	inner = classify(name + own, strlen(name + own));
	return is == RFL_KERNEL_OTHER || inner == RFL_KERNEL_COPY ? inner : is;
}

const char *rfl_kernel_class_name(enum rfl_kernel_class c)
{
	return classes[c].name;
}

bool rfl_kernel_class_only_moves(enum rfl_kernel_class c)
{
	return classes[c].only_moves;
}
