/* summary.json: what loads can be asked for any of its steps, in every mode and with every factor.
 */
#include "fuzz.h"
#include "roofline/work.h"

static void ask(const struct rfl_work_file *file, const char *model)
{
	static const char *const modes[] = { "train", "fwd_bwd", "fwd" };
	struct rfl_buf notes;

	rfl_buf_init(&notes, 1 << 20);
	for (size_t m = 0; m < RFL_ARRAY_LEN(modes); m++)
		for (int factor = RFL_TRAIN_EXACT; factor <= RFL_TRAIN_3; factor++) {
			const struct rfl_work_query q = {
				.model = model,
				.precision = "fp32",
				.mode = modes[m],
				.batch = 4,
				.optimizer = "sgd",
				.micro_batch = 4,
				.accum = 1 + factor,
				.image_size = 224,
				.classes = -1,
				.factor = (enum rfl_train_factor)factor,
			};
			struct rfl_err err = RFL_ERR_INIT;
			struct rfl_work work;

			if (rfl_work_count(&q, file, &notes, &work, &err) == RFL_OK) {
				FUZZ_ASSERT(work.flops > 0 && work.flops_source);
				for (int k = 0; k < RFL_FUSION_COUNT; k++)
					FUZZ_ASSERT(work.bytes[k] > 0);
			} else {
				FUZZ_ASSERT(err.rc == RFL_EMISSING && err.msg[0]);
			}
		}
	rfl_buf_fini(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_work_file *file = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = fuzz_memory(data, size);
	enum rfl_rc rc = rfl_work_file_load(path, &file, &err);

	fuzz_check(rc, file, &err, path);
	if (rc == RFL_OK)
		ask(file, "mynet"); /* no model of the zoo: nothing is counted, only read */
	rfl_work_file_free(file);
	return 0;
}
