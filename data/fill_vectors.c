/*
 * fill_vectors.c - test vectors of the golden fill, computed by an independent program: the proof
 * that a weight here is the weight that PyTorch was given. One tensor of each kind.
 */
#include "data/fill.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define CHUNK ((size_t)1 << 16)

static const struct rfl_fill_vector vectors[] = {
	/* clang-format off */
	{ .name = "resnet18 conv1.weight",
	  .param = { .kind = RFL_PARAM_CONV_WEIGHT, .ndim = 4, .dim = { 64, 3, 7, 7 }, .numel = 9408, .position = 0 },
	  .first5 = { 0x3de04aa5, 0x3c9bcac0, 0x3cd56f9c, 0xbde22fd3, 0xbca06ec0 },
	  .bitsum = 0x5a4a9bcf },
	{ .name = "resnet18 bn1.weight",
	  .param = { .kind = RFL_PARAM_NORM_WEIGHT, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 1 },
	  .first5 = { 0x3f86d13c, 0x3f6cda50, 0x3f8524d3, 0x3f8366d1, 0x3f7a2d20 },
	  .bitsum = 0xdf28118e },
	{ .name = "resnet18 bn1.bias",
	  .param = { .kind = RFL_PARAM_NORM_BIAS, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 2 },
	  .first5 = { 0x3da5ea2a, 0x3d5b44d7, 0x3d00b6c7, 0x3db02820, 0xbd558ce0 },
	  .bitsum = 0xc05f89e9 },
	{ .name = "resnet18 bn1.running_mean",
	  .param = { .kind = RFL_PARAM_RUNNING_MEAN, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 3 },
	  .first5 = { 0xbd1aa180, 0x3a52ef33, 0xbdbd7033, 0xbd8eebab, 0x3cf6f5c0 },
	  .bitsum = 0xc1d05281 },
	{ .name = "resnet18 bn1.running_var",
	  .param = { .kind = RFL_PARAM_RUNNING_VAR, .ndim = 1, .dim = { 64 }, .numel = 64, .position = 4 },
	  .first5 = { 0x3f81c391, 0x3f81d76b, 0x3f89ec1a, 0x3f821d49, 0x3f8c717f },
	  .bitsum = 0xe195d14f },
	{ .name = "resnet18 fc.weight",
	  .param = { .kind = RFL_PARAM_LINEAR_WEIGHT, .ndim = 2, .dim = { 1000, 512 }, .numel = 512000, .position = 100 },
	  .first5 = { 0x3cd41387, 0x3d51d2c2, 0x3b9b08c7, 0xbd55a5c0, 0xba07b790 },
	  .bitsum = 0x4f4a022d },
	{ .name = "resnet18 fc.bias",
	  .param = { .kind = RFL_PARAM_LINEAR_BIAS, .ndim = 1, .dim = { 1000 }, .numel = 1000, .position = 101 },
	  .first5 = { 0xbd53941d, 0xbc600f67, 0xbd90243f, 0xbb6a3ecd, 0x3c85bfa0 },
	  .bitsum = 0x2a9e4835 },
	{ .name = "vgg16 classifier.0.weight",
	  .param = { .kind = RFL_PARAM_LINEAR_WEIGHT, .ndim = 2, .dim = { 4096, 25088 }, .numel = 102760448, .position = 26 },
	  .first5 = { 0x3bf1f110, 0xbbaec56b, 0xbbaf323e, 0xb9da7a3f, 0x3bdc463d },
	  .bitsum = 0x36c98eba },
	{ .name = "tiny_lm token_embeddings.weight",
	  .param = { .kind = RFL_PARAM_EMBEDDING_WEIGHT, .ndim = 2, .dim = { 256, 64 }, .numel = 16384, .position = 0 },
	  .first5 = { 0x3cd98d20, 0x3b971c36, 0x3bcf059a, 0xbcdb63b9, 0xbb9b9c83 },
	  .bitsum = 0x4bf48ee6 },
	{ .name = "kind other",
	  .param = { .kind = RFL_PARAM_OTHER, .ndim = 1, .dim = { 768 }, .numel = 768, .position = 0 },
	  .first5 = { 0x3c7b34e1, 0x3b2e7cae, 0x3b6f0c5c, 0xbc7d5447, 0xbb33af3d },
	  .bitsum = 0xd245cd5e },
	/* clang-format on */
};

const struct rfl_fill_vector *rfl_fill_vector_at(size_t i)
{
	return i < RFL_ARRAY_LEN(vectors) ? &vectors[i] : NULL;
}

enum rfl_rc rfl_fill_vector_run(const struct rfl_fill_vector *vector, uint32_t first5[5],
				uint32_t *bitsum, struct rfl_err *err)
{
	const struct rfl_fill_rule rule = rfl_fill_rule_of(&vector->param);
	const size_t total = (size_t)vector->param.numel;
	float *values = rfl_alloc_array(CHUNK, sizeof(*values));

	if (!values)
		return rfl_fail(err, RFL_ENOMEM, 0, "fill: out of memory");
	*bitsum = 0;
	for (size_t first = 0; first < total; first += CHUNK) {
		const size_t n = total - first < CHUNK ? total - first : CHUNK;

		rfl_fill_values(rule, vector->param.position, first, n, values);
		if (first == 0)
			memcpy(first5, values, 5 * sizeof(*first5));
		*bitsum += rfl_fill_bitsum(values, n);
	}
	free(values);
	return RFL_OK;
}
