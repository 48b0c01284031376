/*
 * target.c - whether a device can be counted, and what is in the way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/cupti/impl.h"

/* The fields of cuptiProfilerDeviceSupported, in the order in which they are checked. */
static const struct {
	size_t offset;
	const char *meaning, *remedy;
} fields[] = {
#define FIELD(member) offsetof(struct rfl_cupti_device_supported, member)
	{ FIELD(architecture), "its architecture has no range profiler (Turing is the first)",
	  "use a GPU of compute capability 7.5 or later" },
	{ FIELD(vgpu), "it is a virtual GPU (vGPU) with profiling off",
	  "the hypervisor's administrator has to allow it" },
	{ FIELD(confidential_compute), "it is in confidential computing mode",
	  "an administrator can turn it off" },
	{ FIELD(cmp), "it is a mining card (CMP)", "use another GPU" },
	{ FIELD(sli), "GPUs are joined by SLI", "turn SLI off" },
	{ FIELD(wsl), "this version of WSL or of its driver has no counters",
	  "update both: driver 525 or later" },
#undef FIELD
};

enum rfl_rc rfl_cupti_target_start(struct rfl_cupti_target *t, struct rfl_err *err)
{
	struct rfl_cupti_profiler_initialize p = { RFL_CUPTI_SIZED(profiler_initialize) };
	enum rfl_rc rc;

	if (t->started)
		return RFL_OK;
	rc = RFL_CUPTI_CALL(t->lib, profiler_initialize, err, &p);
	t->started = rc == RFL_OK;
	return rc;
}

/* The field that is in the way; one with an unknown state only where no other is. */
static enum rfl_rc not_supported(const struct rfl_cupti_device_supported *p, struct rfl_err *err)
{
	static const struct {
		int32_t level;
		const char *name;
	} levels[] = {
		{ RFL_CUPTI_SUPPORT_UNSUPPORTED, "unsupported" },
		{ RFL_CUPTI_SUPPORT_DISABLED, "switched off" },
		{ RFL_CUPTI_SUPPORT_UNKNOWN, "not supported, perhaps for this" },
	};

	for (size_t k = 0; k < RFL_ARRAY_LEN(levels); k++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++)
			if (memcmp((const char *)p + fields[i].offset, &levels[k].level,
				   sizeof(levels[k].level)) == 0)
				return rfl_fail(err, RFL_EUNAVAILABLE, levels[k].level,
						"counters of this GPU are %s: %s: %s",
						levels[k].name, fields[i].meaning,
						fields[i].remedy);
	return rfl_fail(err, RFL_EUNAVAILABLE, p->supported,
			"CUPTI does not support counters of this GPU, and does not say why: use "
			"ncu to see whether it can");
}

enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  const struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err)
{
	struct rfl_cupti_chip_name chip = { RFL_CUPTI_SIZED(chip_name),
					    .device = (size_t)cuda->device };
	struct rfl_cupti_device_supported supported = { RFL_CUPTI_SIZED(device_supported),
							.device = cuda->device,
							.api = RFL_CUPTI_API_RANGE_PROFILING };
	struct rfl_cupti_availability image = { RFL_CUPTI_SIZED(availability),
						.context = cuda->context };
	enum rfl_rc rc;

	*t = (struct rfl_cupti_target){ .lib = lib,
					.context = cuda->context,
					.gate = RFL_CUPTI_GATE_START };
	rc = rfl_cupti_target_start(t, err);
	if (rc != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_CHIP;
	rc = RFL_CUPTI_CALL(lib, chip_name, err, &chip);
	if (rc != RFL_OK)
		return rc;
	snprintf(t->chip, sizeof(t->chip), "%s", chip.name);
	t->gate = RFL_CUPTI_GATE_SUPPORT;
	rc = RFL_CUPTI_CALL(lib, device_supported, err, &supported);
	t->limited = supported.supported == RFL_CUPTI_SUPPORT_LIMITED;
	if (rc == RFL_OK && !t->limited && supported.supported != RFL_CUPTI_SUPPORT_SUPPORTED)
		rc = not_supported(&supported, err);
	if (rc != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_PERMISSION;
	rc = RFL_CUPTI_CALL(lib, availability, err, &image);
	if (rc == RFL_OK) {
		t->availability = image.image = calloc(1, image.size ? image.size : 1);
		rc = image.image ? RFL_CUPTI_CALL(lib, availability, err, &image)
				 : rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %zu bytes",
					    image.size);
	}
	if (rc == RFL_OK)
		t->gate = RFL_CUPTI_GATE_OPEN;
	else if (err && access == RFL_COUNTERS_ADMIN)
		rfl_err_prefix(err, "the driver was loaded with RmProfilingAdminOnly: 1");
	return rc;
}

void rfl_cupti_target_stop(struct rfl_cupti_target *t)
{
	struct rfl_cupti_profiler_deinitialize p = { RFL_CUPTI_SIZED(profiler_deinitialize) };

	if (t->started)
		(void)t->lib->calls.profiler_deinitialize(&p);
	t->started = false;
}

void rfl_cupti_target_fini(struct rfl_cupti_target *t)
{
	if (t->lib)
		rfl_cupti_target_stop(t);
	free(t->availability);
	*t = (struct rfl_cupti_target){ .lib = NULL };
}
