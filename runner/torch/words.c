/*
 * words.c - what libtorch means by the text of an exception. The CPU allocator and the
 * vendors' libraries report a lack of memory in words only, and so does a missing kernel.
 */
#include "runner/torch/words.h"

#include <string.h>

#include "base/compiler.h"

static const struct {
	const char *word;
	enum rfl_torch_status status;
} words[] = {
	{ "can't allocate memory", RFL_TORCH_NOMEM },
	{ "out of memory", RFL_TORCH_NOMEM },
	{ "not enough memory", RFL_TORCH_NOMEM },
	{ "Cannot allocate memory", RFL_TORCH_NOMEM },
	{ "ALLOC_FAILED", RFL_TORCH_NOMEM },
	/* "... not implemented for 'Half'" */
	{ "not implemented for", RFL_TORCH_UNSUPPORTED },
	/* "Could not run 'aten::x' with arguments from the 'MPS' backend" */
	{ "Could not run '", RFL_TORCH_UNSUPPORTED },
	{ "does not have a deterministic implementation", RFL_TORCH_UNSUPPORTED },
	/* cuBLAS without a workspace configuration */
	{ "Deterministic behavior was enabled", RFL_TORCH_UNSUPPORTED },
};

enum rfl_torch_status rfl_torch_meaning(const char *text)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strstr(text, words[i].word))
			return words[i].status;
	return RFL_TORCH_FAILED;
}
