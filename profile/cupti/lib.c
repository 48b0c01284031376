/*
 * lib.c - opens libcupti and the driver, and explains their errors. A libcupti that is already
 * loaded is used, because two in one process conflict; otherwise the version of the driver comes
 * first, then the newest.
 */
#include "profile/cupti/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"

/* GCC defines a macro, clang has a feature test. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif

#define REMEDY                                                                               \
	"install CUPTI from CUDA 12.6 Update 2 or later (part of CUDA toolkits and of CUDA " \
	"builds of PyTorch), or set RFL_CUPTI_PATH to its folder"

#define NAME(member, symbol, arguments) .member = #symbol,
const struct rfl_cupti_symbols rfl_cupti_symbols = { RFL_CUPTI_FUNCTIONS(NAME) };
const struct rfl_cuda_symbols rfl_cuda_symbols = { RFL_CUDA_FUNCTIONS(NAME) };

#define SYMBOL(member, symbol, arguments) { #symbol, &c->calls.member, false },

/* ---- results ---- */

#define OWN_MISTAKE "this CUPTI handles the call differently from CUDA 13.0"
#define UPDATE      "use CUPTI from CUDA 12.6 Update 2 or later (set RFL_CUPTI_PATH to its folder)"
#define ADMIN                                                                                  \
	"run as root, or set 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "       \
	"/etc/modprobe.d, rebuild the initramfs and reboot; in a container, run as root with " \
	"--cap-add=SYS_ADMIN; for a rented container, ask the provider"

struct message {
	int result;
	enum rfl_rc rc;
	const char *meaning, *remedy;
};

#define MESSAGE(name, theirs, value, rc, meaning, remedy) { value, RFL_##rc, meaning, remedy },
static const struct message cupti_messages[] = { RFL_CUPTI_RESULTS(MESSAGE) };
static const struct message cuda_messages[] = { RFL_CUDA_RESULTS(MESSAGE) };

/* @param name  the library's name for the result, which the table may lack */
static enum rfl_rc explain(const struct message *messages, size_t n, int result, const char *call,
			   const char *name, struct rfl_err *err)
{
	for (const struct message *m = messages; m < messages + n; m++)
		if (m->result == result && m->meaning)
			return rfl_fail(err, m->rc, result, "%s: %s (%s, %d)%s%s", call, m->meaning,
					name, result, m->remedy ? ": " : "",
					m->remedy ? m->remedy : "");
	return rfl_fail(err, RFL_EUNAVAILABLE, result, "%s: %s (%d)", call, name, result);
}

/* libcupti opens libnvperf_host.so itself, but its error does not name the file if missing. */
static enum rfl_rc without_neighbour(const struct rfl_cupti *c, int result, const char *call,
				     struct rfl_err *err)
{
	const size_t len = (size_t)(rfl_path_base(c->path) - c->path);
	char *folder = strndup(len ? c->path : "./", len ? len : 2);
	char *neighbour = folder ? rfl_path_join(folder, "libnvperf_host.so") : NULL;
	enum rfl_rc rc = RFL_OK;

	if (!neighbour)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	else if (!rfl_file_exists(neighbour))
		rc = rfl_fail(err, RFL_EUNAVAILABLE, result,
			      "%s: libnvperf_host.so is missing from %s, the folder of libcupti: "
			      "reinstall CUPTI, or set RFL_CUPTI_PATH to the folder of another one",
			      call, folder);
	free(neighbour);
	free(folder);
	return rc;
}

enum rfl_rc rfl_cupti_check(const struct rfl_cupti *c, int result, const char *call,
			    struct rfl_err *err)
{
	const char *name = NULL;
	enum rfl_rc rc = RFL_OK;

	if (result == RFL_CUPTI_SUCCESS)
		return RFL_OK;
	if (result == RFL_CUPTI_NOT_INITIALIZED && c)
		rc = without_neighbour(c, result, call, err);
	if (rc != RFL_OK)
		return rc;
	if (!c || c->calls.result_string(result, &name) != RFL_CUPTI_SUCCESS || !name)
		name = "CUPTI error";
	return explain(cupti_messages, RFL_ARRAY_LEN(cupti_messages), result, call, name, err);
}

enum rfl_rc rfl_cuda_check(const struct rfl_cuda *c, int result, const char *call,
			   struct rfl_err *err)
{
	const char *name = NULL;

	if (result == RFL_CUDA_SUCCESS)
		return RFL_OK;
	if (c->calls.error_name(result, &name) != RFL_CUDA_SUCCESS || !name)
		name = "CUDA error";
	return explain(cuda_messages, RFL_ARRAY_LEN(cuda_messages), result, call, name, err);
}

/* ---- libcupti ---- */

/* The major versions that have a range profiler, newest first. */
static const int majors[] = { 13, 12 };

/* Candidates in order of preference: names for the loader, and existing files. */
struct ladder {
	struct rfl_arena *arena;
	const char *names[64]; /* NULL past the end */
	size_t n;
	bool no_memory;
};

/* @param path  NULL: out of memory */
static void add(struct ladder *l, const char *path, bool even_if_absent)
{
	if (!path)
		l->no_memory = true;
	else if (l->n + 1 < RFL_ARRAY_LEN(l->names) && (even_if_absent || rfl_file_exists(path)))
		l->names[l->n++] = path;
}

/* @param folders  NULL past the end */
static void add_below(struct ladder *l, const char *top, const char *const *folders, int major)
{
	for (; top && top[0] != '\0' && *folders; folders++)
		add(l, rfl_arena_printf(l->arena, "%s/%s/libcupti.so.%d", top, *folders, major),
		    false);
}

/* Add the folders of a toolkit, and those of PyTorch wheels relative to `places->beside`. */
static void add_usual(struct ladder *l, const struct rfl_cupti_places *places, int major)
{
	static const char *const toolkit[] = { "lib64", "lib", "extras/CUPTI/lib64", NULL };
	static const char *const wheel[] = {
		"nvidia/cu13/lib",
		"../nvidia/cu13/lib",
		"../../nvidia/cu13/lib",
		"nvidia/cuda_cupti/lib",
		"../nvidia/cuda_cupti/lib",
		"../../nvidia/cuda_cupti/lib",
		NULL,
	};

	add(l, rfl_arena_printf(l->arena, "libcupti.so.%d", major), true);
	add_below(l, places->cuda_home, toolkit, major);
	add_below(l, places->beside, wheel, major);
	add_below(l, "/usr/local/cuda", toolkit, major);
}

/* Since CUDA 13.2 every call of CUPTI needs a driver: without one, 13.2 crashes and later versions
 * fail. A function added in 13.2 identifies these versions. */
static bool can_answer(const struct rfl_cupti *c)
{
	char uuid[1][RFL_CUDA_UUID_MAX];

	return !rfl_dl_sym(c->dl, "cuptiProfilerHostGetSinglePassSets") ||
	       rfl_cuda_uuids(uuid, 1) > 0;
}

static enum rfl_rc open_ladder(struct rfl_cupti *c, const struct rfl_cupti_places *places,
			       struct rfl_err *err)
{
	const struct rfl_dl_symbol symbols[] = { RFL_CUPTI_FUNCTIONS(SYMBOL) };
	const char *const named = places->path && places->path[0] != '\0' ? places->path : NULL;
	struct ladder l = { .arena = rfl_arena_new(0) };
	struct rfl_err why = RFL_ERR_INIT; /* the first error */
	enum rfl_rc rc = RFL_OK;

	if (!l.arena)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	if (named && !rfl_dir_exists(named)) /* chosen by the user: try nothing else */
		add(&l, named, true);
	for (size_t i = 0; named && rfl_dir_exists(named) && i < RFL_ARRAY_LEN(majors); i++)
		add(&l, rfl_arena_printf(l.arena, "%s/libcupti.so.%d", named, majors[i]), false);
	for (int others = 0; !named && others <= 1; others++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(majors); i++)
			if ((majors[i] != places->driver_major) == others)
				add_usual(&l, places, majors[i]);
	if (l.no_memory)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	else if (l.n == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
			      "%s: contains neither libcupti.so.13 nor libcupti.so.12: %s", named,
			      REMEDY);
	/* each iteration opens the first of the remaining candidates that loads */
	for (size_t i = 0; rc == RFL_OK && i < l.n; i++) {
		rc = rfl_dl_open(l.names + i, RFL_DL_LOAD, symbols, RFL_ARRAY_LEN(symbols), &c->dl,
				 &why);
		if (rc != RFL_OK || can_answer(c))
			break;
		(void)rfl_fail(
			&why, RFL_EUNAVAILABLE, 0,
			"%s needs an NVIDIA driver, like every CUPTI since CUDA 13.2: install a "
			"driver, or set RFL_CUPTI_PATH to a CUPTI from CUDA 13.1 or earlier",
			rfl_dl_path(c->dl));
		rfl_dl_close(c->dl);
		c->dl = NULL;
	}
	rfl_arena_free(l.arena);
	if (c->dl || why.rc == RFL_OK)
		return rc;
	if (strstr(why.msg, "RFL_CUPTI_PATH"))
		return rfl_err_pass(err, &why);
	/* a missing symbol alone does not reveal that the range profiler is missing */
	return rfl_fail(err, why.rc, why.native, "%s%s: %s", why.msg,
			strstr(why.msg, ": symbol ") ? " (it has no range profiler)" : "",
			REMEDY);
}

enum rfl_rc rfl_cupti_open(const struct rfl_cupti_places *places, struct rfl_cupti **ret,
			   struct rfl_err *err)
{
	static const struct rfl_cupti_places nowhere = { .path = NULL };
	struct rfl_cupti *c = calloc(1, sizeof(*c));
	const char *const mapped[] = { rfl_dl_mapped("libcupti"), NULL };
	enum rfl_rc rc = RFL_OK;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for libcupti");
	if (mapped[0]) {
		const struct rfl_dl_symbol symbols[] = { RFL_CUPTI_FUNCTIONS(SYMBOL) };
		struct rfl_err why = RFL_ERR_INIT;

		if (rfl_dl_open(mapped, RFL_DL_MAPPED, symbols, RFL_ARRAY_LEN(symbols), &c->dl,
				&why) != RFL_OK)
			rc = rfl_fail(err, why.rc, why.native,
				      "the CUPTI loaded by another library in this process cannot "
				      "be used, and a second one cannot be loaded: %s",
				      why.msg);
	}
	if (rc == RFL_OK && (!c->dl || !can_answer(c))) {
		rfl_dl_close(c->dl);
		c->dl = NULL;
		rc = open_ladder(c, places ? places : &nowhere, err);
	}
	if (rc != RFL_OK)
		goto done;
	c->path = rfl_dl_path(c->dl);
	/* NVIDIA's library uses RTLD_DEEPBIND, which makes an address sanitizer abort the process.
	 * It has cuptiSubscribe, unlike the fake library of the tests. */
	if (WITH_ASAN && rfl_dl_sym(c->dl, "cuptiSubscribe"))
		rc = rfl_fail(
			err, RFL_EUNAVAILABLE, 0,
			"%s cannot be used in a program with an address sanitizer, because it "
			"opens libnvperf_host.so with RTLD_DEEPBIND: build without the sanitizer",
			c->path);
	else
		rc = RFL_CUPTI_CALL(c, get_version, err, &c->version);
done:
	if (rc == RFL_OK)
		*ret = c;
	else
		rfl_cupti_close(c);
	return rc;
}

void rfl_cupti_close(struct rfl_cupti *c)
{
	if (!c)
		return;
	rfl_dl_close(c->dl);
	free(c);
}

/* ---- the driver ---- */

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
	struct rfl_cuda *c = calloc(1, sizeof(*c));
	enum rfl_rc rc;
	int count = 0;

	if (no_driver)
		*no_driver = true;
	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rc = open_driver(c, err);
	if (rc != RFL_OK)
		goto done;
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
		goto done;
	if (c->calls.device_name(c->name, (int)sizeof(c->name), c->device) != RFL_CUDA_SUCCESS)
		c->name[0] = '\0';
	c->capability = 10 * attribute(c, RFL_CUDA_ATTRIBUTE_CC_MAJOR) +
			attribute(c, RFL_CUDA_ATTRIBUTE_CC_MINOR);
	c->l2_bytes = attribute(c, RFL_CUDA_ATTRIBUTE_L2_CACHE_BYTES);
	c->ecc = attribute(c, RFL_CUDA_ATTRIBUTE_ECC_ENABLED) > 0;
	rc = RFL_CUDA_CALL(c, primary_retain, err, &c->context, c->device);
	c->retained = rc == RFL_OK;
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(c, context_push, err, c->context);
	c->pushed = rc == RFL_OK;
done:
	if (rc == RFL_OK)
		*ret = c;
	else
		rfl_cuda_close(c);
	return rc;
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

enum rfl_counter_access rfl_cuda_counter_access(const char *path)
{
	static const char key[] = "RmProfilingAdminOnly:";
	enum rfl_counter_access access = RFL_COUNTERS_UNKNOWN;
	struct rfl_buf text;
	const char *at = NULL;

	rfl_buf_init(&text, 1 << 20);
	if (rfl_file_read(path ? path : "/proc/driver/nvidia/params", &text, NULL) == RFL_OK)
		at = strstr(rfl_buf_str(&text), key);
	if (at) {
		at += sizeof(key) - 1;
		at += strspn(at, " \t");
		access = *at == '0'   ? RFL_COUNTERS_ALL
			 : *at == '1' ? RFL_COUNTERS_ADMIN
				      : RFL_COUNTERS_UNKNOWN;
	}
	rfl_buf_fini(&text);
	return access;
}
