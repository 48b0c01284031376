/* MNIST's idx files, plain or gzipped: what is read has as many values as its header says. */
#include "fuzz.h"

#include "data/parts.h"

static void try_read(const char *path, int ndim)
{
	struct rfl_idx idx = { .ndim = 0 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf values;
	int64_t numel = 1;
	enum rfl_rc rc;

	rfl_buf_init(&values, (size_t)64 << 20);
	rc = rfl_idx_read(path, ndim, &idx, &values, &err);
	fuzz_check(rc, rc == RFL_OK ? &idx : NULL, &err, path);
	for (int d = 0; rc == RFL_OK && d < idx.ndim; d++)
		numel *= idx.dim[d];
	FUZZ_ASSERT(rc != RFL_OK || (idx.ndim == ndim && (int64_t)values.len == numel));
	rfl_buf_fini(&values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_file(data, size);

	try_read(path, 3);
	try_read(path, 1);
	return 0;
}
