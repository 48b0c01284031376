/* cuda.c - opens the CUDA driver and explains its errors. */
#include "machine/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

const struct rfl_cuda_symbols rfl_cuda_symbols = { RFL_CUDA_FUNCTIONS(RFL_CUDA_NAME) };

#define SYMBOL(member, symbol, arguments) { #symbol, &c->calls.member, false },

static const struct rfl_cuda_message cuda_messages[] = { RFL_CUDA_RESULTS(RFL_CUDA_MESSAGE) };

enum rfl_rc rfl_cuda_explain(const struct rfl_cuda_message *messages, size_t n, int result,
			     const char *call, const char *name, struct rfl_err *err)
{
	for (const struct rfl_cuda_message *m = messages; m < messages + n; m++)
		if (m->result == result && m->meaning)
			return rfl_fail(err, m->rc, result, "%s: %s (%s, %d)%s%s", call, m->meaning,
					name, result, m->remedy ? ": " : "",
					m->remedy ? m->remedy : "");
	return rfl_fail(err, RFL_EUNAVAILABLE, result, "%s: %s (%d)", call, name, result);
}

enum rfl_rc rfl_cuda_check(const struct rfl_cuda *c, int result, const char *call,
			   struct rfl_err *err)
{
	const char *name = NULL;

	if (result == RFL_CUDA_SUCCESS)
		return RFL_OK;
	if (c->calls.error_name(result, &name) != RFL_CUDA_SUCCESS || !name)
		name = "CUDA error";
	return rfl_cuda_explain(cuda_messages, RFL_ARRAY_LEN(cuda_messages), result, call, name,
				err);
}

static enum rfl_rc open_driver(struct rfl_cuda *c, struct rfl_err *err)
{
	static const char *const libraries[] = { "libcuda.so.1", NULL };
	const struct rfl_dl_symbol symbols[] = { RFL_CUDA_FUNCTIONS(SYMBOL) };
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (rfl_dl_open(libraries, RFL_DL_LOAD, symbols, RFL_ARRAY_LEN(symbols), &c->dl, &why) !=
	    RFL_OK)
		return rfl_fail(err, why.rc, 0,
				"no NVIDIA driver was found: %s: install the NVIDIA driver; start "
				"containers with '--gpus all' and the NVIDIA Container Toolkit",
				why.msg);
	rc = RFL_CUDA_CALL(c, init, err, 0);
	return rc == RFL_OK ? RFL_CUDA_CALL(c, driver_version, err, &c->version) : rc;
}

static int attribute(const struct rfl_cuda *c, enum rfl_cuda_attribute which)
{
	int value = 0;

	return c->calls.device_attribute(&value, (int)which, c->device) == RFL_CUDA_SUCCESS ? value
											    : 0;
}

enum rfl_rc rfl_cuda_open(int device, bool *no_driver, struct rfl_cuda **ret, struct rfl_err *err)
{
	RFL_AUTOPTR(cuda) c = rfl_alloc_array(1, sizeof(*c));
	enum rfl_rc rc;
	int count = 0;

	if (no_driver)
		*no_driver = true;
	rc = open_driver(c, err);
	if (rc != RFL_OK)
		return rc;
	if (no_driver)
		*no_driver = false;
	rc = RFL_CUDA_CALL(c, device_count, err, &count);
	if (rc == RFL_OK && count == 0)
		rc = rfl_cuda_check(c, RFL_CUDA_NO_DEVICE, rfl_cuda_symbols.device_count, err);
	if (rc == RFL_OK && (device < 0 || device >= count))
		rc = rfl_fail(err, RFL_EUNAVAILABLE, RFL_CUDA_INVALID_DEVICE,
			      "there is no GPU %d: this machine has %d; choose one from 0 to %d",
			      device, count, count - 1);
	if (rc != RFL_OK || (rc = RFL_CUDA_CALL(c, device_get, err, &c->device, device)) != RFL_OK)
		return rc;
	if (c->calls.device_name(c->name, (int)sizeof(c->name), c->device) != RFL_CUDA_SUCCESS)
		c->name[0] = '\0';
	c->capability = 10 * attribute(c, RFL_CUDA_ATTRIBUTE_CC_MAJOR) +
			attribute(c, RFL_CUDA_ATTRIBUTE_CC_MINOR);
	c->multiprocessors = attribute(c, RFL_CUDA_ATTRIBUTE_MULTIPROCESSORS);
	c->integrated = attribute(c, RFL_CUDA_ATTRIBUTE_INTEGRATED) > 0;
	c->l2_bytes = attribute(c, RFL_CUDA_ATTRIBUTE_L2_CACHE_BYTES);
	c->ecc = attribute(c, RFL_CUDA_ATTRIBUTE_ECC_ENABLED) > 0;
	rc = RFL_CUDA_CALL(c, primary_retain, err, &c->context, c->device);
	c->retained = rc == RFL_OK;
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(c, context_push, err, c->context);
	c->pushed = rc == RFL_OK;
	if (rc != RFL_OK)
		return rc;
	*ret = c;
	c = NULL;
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

	if (open_driver(&c, NULL) == RFL_OK)
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

size_t rfl_cuda_library(struct rfl_arena *arena, const char *file, const char *wheel,
			const struct rfl_cuda_places *places, const char **names, size_t max)
{
	const char *const version = strrchr(file, '.');
	const char *const wheels = rfl_arena_printf(arena, "nvidia/%s/lib", wheel);
	const char *const common =
		rfl_arena_printf(arena, "nvidia/cu%s/lib", version ? version + 1 : "");
	const struct {
		const char *top, *folder;
	} all[] = {
		{ places->cuda_home, "lib64" },
		{ places->cuda_home, "lib" },
		{ places->cuda_home, "extras/CUPTI/lib64" },
		{ places->beside, common },
		{ places->beside, rfl_arena_printf(arena, "../%s", common) },
		{ places->beside, rfl_arena_printf(arena, "../../%s", common) },
		{ places->beside, wheels },
		{ places->beside, rfl_arena_printf(arena, "../%s", wheels) },
		{ places->beside, rfl_arena_printf(arena, "../../%s", wheels) },
		{ places->beside, "." },
		{ "/usr/local/cuda", "lib64" },
		{ "/usr/local/cuda", "lib" },
		{ "/usr/local/cuda", "extras/CUPTI/lib64" },
	};
	size_t n = 0;

	if (n < max)
		names[n++] = rfl_arena_strdup(arena, file);
	for (size_t i = 0; i < RFL_ARRAY_LEN(all) && n < max; i++) {
		if (!all[i].top || !*all[i].top)
			continue;
		names[n] = rfl_arena_printf(arena, "%s/%s/%s", all[i].top, all[i].folder, file);
		n += rfl_file_exists(names[n]);
	}
	return n;
}
