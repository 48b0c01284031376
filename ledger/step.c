/* step.c - the step of a row: precision, optimizer, and the kernels that its engine used. */
#include "ledger/step.h"

#include <stdio.h>

#include "base/text.h"

bool rfl_step_caches(const char *mode)
{
	return rfl_text_same(mode, "decode") || rfl_text_same(mode, "prefill");
}

enum rfl_fused_attention rfl_step_fused_attention(const struct rfl_ledger_row *row)
{
	const bool cpu = rfl_text_same(row->backend, "cpu");
	int major = 0, minor = 0;

	/* libtorch has fused kernels on GPUs from 2.0 on, and on CPUs from 2.1 on, there without
	 * dropout. Earlier versions and MPS compute the parts. */
	if (!rfl_text_same(row->engine, "torch") || !row->backend || !row->engine_version ||
	    sscanf(row->engine_version, "%d.%d", &major, &minor) != 2)
		return RFL_FUSED_ALWAYS;
	if (rfl_text_same(row->backend, "mps") || major < 2 || (cpu && major == 2 && minor < 1))
		return RFL_FUSED_NEVER;
	return cpu ? RFL_FUSED_WITHOUT_DROPOUT : RFL_FUSED_ALWAYS;
}

const char *rfl_step_optimizer(const struct rfl_ledger_row *row)
{
	return row->optimizer ? row->optimizer : "sgd"; /* the default of a run */
}

enum rfl_rc rfl_step_options(const struct rfl_ledger_row *row, struct rfl_memory_options *ret,
			     struct rfl_err *err)
{
	const bool cpu = rfl_text_same(row->backend, "cpu");
	const char *optimizer = rfl_step_optimizer(row);
	struct rfl_memory_options o = {
		.count = { .batch = row->micro_batch > 0 ? row->micro_batch : row->batch,
			   .training =
				   !rfl_text_same(row->mode, "fwd") && !rfl_step_caches(row->mode),
			   .grad_clip = row->grad_clip > 0,
			   .fused_attention = rfl_step_fused_attention(row) },
		.device = cpu ? RFL_MEMORY_CPU : RFL_MEMORY_GPU,
		/* The foreach kernels of the engine process a CPU's parameters in small parts. */
		.update = !cpu && rfl_text_same(row->optimizer_kernels, "foreach")
				  ? RFL_UPDATE_FOREACH
				  : RFL_UPDATE_FUSED,
		.accumulate = row->accum,
	};
	enum rfl_rc rc = rfl_precision_storage(row->precision ? row->precision : "fp32",
					       &o.count.dtype, &o.count.master_weights, err);

	if (rc)
		return rc;
	o.count.master_weights = o.count.dtype != RFL_DTYPE_F32; /* autocast */
	if (rfl_text_same(row->mode, "train")) {
		int kind = RFL_OPT_SGD;

		while (rfl_optimizer_names[kind] &&
		       !rfl_text_same(rfl_optimizer_names[kind], optimizer))
			kind++;
		if (!rfl_optimizer_names[kind])
			return rfl_fail(err, RFL_EINVAL, 0,
					"optimizer '%s' is not valid; use sgd, adam or adamw",
					optimizer);
		o.count.optimizer = (enum rfl_optimizer_kind)kind;
		if (kind == RFL_OPT_SGD && row->momentum != 0) /* the default of a run is not 0 */
			o.count.optimizer = RFL_OPT_MOMENTUM;
	}
	*ret = o;
	return RFL_OK;
}
