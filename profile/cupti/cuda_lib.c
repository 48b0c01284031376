/*
 * cuda_lib.c - the driver, reached through its gates: library, cuInit, device, context. Each
 * failure says what it means on this machine and what to do about it.
 */
#include "profile/cupti/cuda_lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"

static const char *const libraries[] = { "libcuda.so.1", NULL };

static const char get_driver[] =
	"install NVIDIA's driver; a container has it when it was started with '--gpus all' and "
	"NVIDIA's container toolkit";

static const struct {
	int code;
	const char *meaning, *remedy;
} messages[] = {
	{ RFL_CUDA_OUT_OF_MEMORY, "the device has not enough free memory",
	  "end other programs on it (nvidia-smi lists them)" },
	{ RFL_CUDA_STUB_LIBRARY, "libcuda.so.1 is the stub of a CUDA toolkit, not a driver",
	  "take the folder lib64/stubs out of LD_LIBRARY_PATH, and install NVIDIA's driver" },
	{ RFL_CUDA_DEVICE_UNAVAILABLE, "another process owns the device alone",
	  "end it, or set 'nvidia-smi -c DEFAULT'" },
	{ RFL_CUDA_NO_DEVICE, "the driver shows no GPU",
	  "look at nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with '--gpus all'" },
	{ RFL_CUDA_INVALID_DEVICE, "there is no such device", "choose one that nvidia-smi lists" },
	{ RFL_CUDA_INVALID_CONTEXT, "the context of the device was destroyed",
	  "nothing in this process may call cudaDeviceReset" },
	{ RFL_CUDA_JIT_COMPILER_NOT_FOUND, "the driver's PTX compiler is not installed",
	  "install libnvidia-ptxjitcompiler, a part of the driver" },
	{ RFL_CUDA_NOT_PERMITTED, "the driver does not permit it", NULL },
	{ RFL_CUDA_SYSTEM_NOT_READY, "the GPUs of this machine are not ready",
	  "start nvidia-fabricmanager" },
	{ RFL_CUDA_SYSTEM_DRIVER_MISMATCH,
	  "libcuda.so.1 and the driver in the kernel are of different versions",
	  "restart the machine after an update; in a container take the host's libraries" },
	{ RFL_CUDA_COMPAT_NOT_SUPPORTED,
	  "the CUDA compatibility package does not work with this GPU",
	  "take its folder out of LD_LIBRARY_PATH" },
	{ RFL_CUDA_UNKNOWN, "the driver failed and does not say why",
	  "load its kernel modules ('nvidia-modprobe -u'), look at 'dmesg'" },
};

enum rfl_rc rfl_cuda_check(const struct rfl_cuda *c, int result, const char *call,
			   struct rfl_err *err)
{
	enum rfl_rc rc = result == RFL_CUDA_OUT_OF_MEMORY ? RFL_EDEVMEM : RFL_EUNAVAILABLE;
	const char *name = NULL;

	if (result == RFL_CUDA_SUCCESS)
		return RFL_OK;
	if (!c->calls.error_name || c->calls.error_name(result, &name) != RFL_CUDA_SUCCESS || !name)
		name = "an unknown code";
	for (size_t i = 0; i < RFL_ARRAY_LEN(messages); i++) {
		if (messages[i].code != result)
			continue;
		return rfl_fail(err, rc, result, "%s: %s (%s, code %d)%s%s", call,
				messages[i].meaning, name, result, messages[i].remedy ? ": " : "",
				messages[i].remedy ? messages[i].remedy : "");
	}
	return rfl_fail(err, rc, result, "%s failed: %s (code %d)", call, name, result);
}

static enum rfl_rc open_library(struct rfl_cuda *c, struct rfl_err *err)
{
#define REQUIRED                                  false
#define OPTIONAL                                  true
#define SYMBOL(needed, member, symbol, arguments) { #symbol, &c->calls.member, needed },
	const struct rfl_dl_symbol symbols[] = { RFL_CUDA_FUNCTIONS(SYMBOL) };
#undef SYMBOL
#undef REQUIRED
#undef OPTIONAL
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	rc = rfl_dl_open(libraries, symbols, RFL_ARRAY_LEN(symbols), &c->dl, &why);
	if (rc != RFL_OK)
		rc = rfl_fail(err, why.rc, 0, "no NVIDIA driver here: %s: %s", why.msg, get_driver);
	return rc;
}

static enum rfl_rc init(struct rfl_cuda *c, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_cuda_check(c, c->calls.init(0), "cuInit", err);

	if (rc == RFL_OK)
		rc = rfl_cuda_check(c, c->calls.driver_version(&c->version), "cuDriverGetVersion",
				    err);
	return rc;
}

static int attribute(const struct rfl_cuda *c, enum rfl_cuda_attribute which)
{
	int value = 0;

	return c->calls.device_attribute(&value, (int)which, c->device) == RFL_CUDA_SUCCESS ? value
											    : 0;
}

static enum rfl_rc take_device(struct rfl_cuda *c, struct rfl_err *err)
{
	int count = 0;
	enum rfl_rc rc;

	rc = rfl_cuda_check(c, c->calls.device_count(&count), "cuDeviceGetCount", err);
	if (rc == RFL_OK && count == 0)
		rc = rfl_cuda_check(c, RFL_CUDA_NO_DEVICE, "cuDeviceGetCount", err);
	if (rc == RFL_OK && (c->index < 0 || c->index >= count))
		rc = rfl_fail(err, RFL_EUNAVAILABLE, RFL_CUDA_INVALID_DEVICE,
			      "there is no GPU %d: this machine shows %d (0 to %d)", c->index,
			      count, count - 1);
	if (rc == RFL_OK)
		rc = rfl_cuda_check(c, c->calls.device_get(&c->device, c->index), "cuDeviceGet",
				    err);
	if (rc != RFL_OK)
		return rc;
	if (c->calls.device_name(c->name, (int)sizeof(c->name), c->device) != RFL_CUDA_SUCCESS)
		c->name[0] = '\0';
	c->capability = 10 * attribute(c, RFL_CUDA_ATTRIBUTE_CC_MAJOR) +
			attribute(c, RFL_CUDA_ATTRIBUTE_CC_MINOR);
	c->l2_bytes = attribute(c, RFL_CUDA_ATTRIBUTE_L2_CACHE_BYTES);
	c->ecc = attribute(c, RFL_CUDA_ATTRIBUTE_ECC_ENABLED) > 0;
	return RFL_OK;
}

static enum rfl_rc take_context(struct rfl_cuda *c, struct rfl_err *err)
{
	enum rfl_rc rc;

	rc = rfl_cuda_check(c, c->calls.primary_retain(&c->context, c->device),
			    "cuDevicePrimaryCtxRetain", err);
	if (rc != RFL_OK)
		return rc;
	c->retained = true;
	rc = rfl_cuda_check(c, c->calls.context_push(c->context), "cuCtxPushCurrent", err);
	c->pushed = rc == RFL_OK;
	return rc;
}

enum rfl_rc rfl_cuda_open(int device, enum rfl_cuda_gate *gate, struct rfl_cuda **ret,
			  struct rfl_err *err)
{
	static enum rfl_rc (*const gates[])(struct rfl_cuda *, struct rfl_err *) = {
		[RFL_CUDA_GATE_LIBRARY] = open_library,
		[RFL_CUDA_GATE_INIT] = init,
		[RFL_CUDA_GATE_DEVICE] = take_device,
		[RFL_CUDA_GATE_CONTEXT] = take_context,
	};
	struct rfl_cuda *c = calloc(1, sizeof(*c));
	enum rfl_rc rc = RFL_OK;
	size_t i = 0;

	if (gate)
		*gate = RFL_CUDA_GATE_LIBRARY;
	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	c->index = device;
	for (; i < RFL_ARRAY_LEN(gates) && rc == RFL_OK; i++) {
		rc = gates[i](c, err);
		if (gate && rc == RFL_OK)
			*gate = (enum rfl_cuda_gate)(i + 1);
	}
	if (rc != RFL_OK) {
		rfl_cuda_close(c);
		return rc;
	}
	*ret = c;
	return RFL_OK;
}

void rfl_cuda_close(struct rfl_cuda *c)
{
	struct rfl_cuda_context *popped;

	if (!c)
		return;
	if (c->pushed)
		(void)c->calls.context_pop(&popped);
	if (c->retained)
		(void)c->calls.primary_release(c->device);
	rfl_dl_close(c->dl);
	free(c);
}

size_t rfl_cuda_uuids(char (*ret)[RFL_CUDA_UUID_MAX], size_t max)
{
	struct rfl_cuda c = { .dl = NULL };
	unsigned char uuid[16];
	int count = 0, device;
	size_t n = 0;

	if (open_library(&c, NULL) == RFL_OK && init(&c, NULL) == RFL_OK && c.calls.device_uuid)
		(void)c.calls.device_count(&count);
	for (; n < max && n < (size_t)count; n++) {
		if (c.calls.device_get(&device, (int)n) != RFL_CUDA_SUCCESS ||
		    c.calls.device_uuid(uuid, device) != RFL_CUDA_SUCCESS)
			break;
		for (size_t i = 0; i < sizeof(uuid); i++)
			(void)snprintf(ret[n] + 2 * i, 3, "%02x", uuid[i]);
	}
	rfl_dl_close(c.dl);
	return n;
}

enum rfl_counter_access rfl_cuda_counter_access(const char *path)
{
	static const char key[] = "RmProfilingAdminOnly:";
	enum rfl_counter_access access = RFL_COUNTERS_UNKNOWN;
	struct rfl_buf text;
	const char *at;

	rfl_buf_init(&text, 1 << 20);
	if (rfl_file_read(path ? path : "/proc/driver/nvidia/params", &text, NULL) == RFL_OK) {
		at = strstr(rfl_buf_str(&text), key);
		if (at) {
			at += sizeof(key) - 1;
			at += strspn(at, " \t");
			access = *at == '0'   ? RFL_COUNTERS_ALL
				 : *at == '1' ? RFL_COUNTERS_ADMIN
					      : RFL_COUNTERS_UNKNOWN;
		}
	}
	rfl_buf_fini(&text);
	return access;
}
