/*
 * target.c - whether a device can be counted, and what is in the way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/cupti/impl.h"

/* The fields of cuptiProfilerDeviceSupported, in the order in which they are looked at. */
static const struct {
	size_t offset;
	const char *meaning, *remedy;
} fields[] = {
#define FIELD(member) offsetof(struct rfl_cupti_device_supported, member)
	{ FIELD(architecture), "its architecture has no range profiler (Turing is the first)",
	  "use a GPU of compute capability 7.5 or later" },
	{ FIELD(vgpu), "it is a virtual GPU (vGPU) whose profiling is off",
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
	rc = rfl_cupti_check(t->lib, t->lib->calls.profiler_initialize(&p),
			     "cuptiProfilerInitialize", err);
	t->started = rc == RFL_OK;
	return rc;
}

static enum rfl_rc ask_chip(struct rfl_cupti_target *t, int device, struct rfl_err *err)
{
	struct rfl_cupti_chip_name p = { RFL_CUPTI_SIZED(chip_name), .device = (size_t)device };
	enum rfl_rc rc;

	rc = rfl_cupti_check(t->lib, t->lib->calls.chip_name(&p), "cuptiDeviceGetChipName", err);
	if (rc == RFL_OK)
		snprintf(t->chip, sizeof(t->chip), "%s", p.name);
	return rc;
}

static int32_t level_of(const struct rfl_cupti_device_supported *p, size_t field)
{
	int32_t level;

	memcpy(&level, (const char *)p + fields[field].offset, sizeof(level));
	return level;
}

/* The field that is in the way: what is not known is one only where nothing else is. */
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
			if (level_of(p, i) == levels[k].level)
				return rfl_fail(err, RFL_EUNAVAILABLE, levels[k].level,
						"counters of this GPU are %s: %s: %s",
						levels[k].name, fields[i].meaning,
						fields[i].remedy);
	return rfl_fail(err, RFL_EUNAVAILABLE, p->supported,
			"CUPTI does not support counters of this GPU, and does not say why: use "
			"ncu to see whether it can");
}

static enum rfl_rc ask_support(struct rfl_cupti_target *t, int device, struct rfl_err *err)
{
	struct rfl_cupti_device_supported p = { RFL_CUPTI_SIZED(device_supported), .device = device,
						.api = RFL_CUPTI_API_RANGE_PROFILING };
	enum rfl_rc rc;

	rc = rfl_cupti_check(t->lib, t->lib->calls.device_supported(&p),
			     "cuptiProfilerDeviceSupported", err);
	t->limited = p.supported == RFL_CUPTI_SUPPORT_LIMITED;
	if (rc != RFL_OK || t->limited || p.supported == RFL_CUPTI_SUPPORT_SUPPORTED)
		return rc;
	return not_supported(&p, err);
}

static enum rfl_rc ask_permission(struct rfl_cupti_target *t, struct rfl_err *err)
{
	static const char call[] = "cuptiProfilerGetCounterAvailability";
	struct rfl_cupti_availability p = { RFL_CUPTI_SIZED(availability), .context = t->context };
	enum rfl_rc rc;

	rc = rfl_cupti_check(t->lib, t->lib->calls.availability(&p), call, err);
	if (rc != RFL_OK)
		return rc;
	t->availability = calloc(1, p.size ? p.size : 1);
	if (!t->availability)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %zu bytes", p.size);
	p.image = t->availability;
	return rfl_cupti_check(t->lib, t->lib->calls.availability(&p), call, err);
}

enum rfl_rc rfl_cupti_target_init(struct rfl_cupti_target *t, struct rfl_cupti *lib,
				  const struct rfl_cuda *cuda, enum rfl_counter_access access,
				  struct rfl_err *err)
{
	int device = cuda->device;
	enum rfl_rc rc;

	*t = (struct rfl_cupti_target){ .lib = lib,
					.context = cuda->context,
					.gate = RFL_CUPTI_GATE_START };
	rc = rfl_cupti_target_start(t, err);
	if (rc != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_CHIP;
	rc = ask_chip(t, device, err);
	if (rc != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_SUPPORT;
	rc = ask_support(t, device, err);
	if (rc != RFL_OK)
		return rc;
	t->gate = RFL_CUPTI_GATE_PERMISSION;
	rc = ask_permission(t, err);
	if (rc != RFL_OK) {
		if (err && access == RFL_COUNTERS_ADMIN)
			rfl_err_prefix(err, "the driver was loaded with RmProfilingAdminOnly: 1");
		return rc;
	}
	t->gate = RFL_CUPTI_GATE_OPEN;
	return RFL_OK;
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
