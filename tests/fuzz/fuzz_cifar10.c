/* A file of CIFAR-10's binary version: accepted exactly when it is whole records with labels below
 * ten. */
#include "fuzz.h"

#include "data/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_cifar10_check_records("input", data, size, &err);
	int good = size > 0 && size % RFL_CIFAR10_RECORD == 0;

	for (size_t i = 0; good && i < size; i += RFL_CIFAR10_RECORD)
		good = data[i] < 10;
	fuzz_check(rc, rc == RFL_OK ? data : NULL, &err, "input");
	FUZZ_ASSERT((rc == RFL_OK) == (good != 0));
	return 0;
}
