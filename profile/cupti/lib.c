/*
 * lib.c - opens libcupti and explains its errors. A libcupti that is already loaded is used,
 * because two in one process conflict; otherwise the version of the driver comes first, then the
 * newest.
 */
#include "profile/cupti/lib.h"

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
	"builds of PyTorch), or set RFL_CUPTI_PATH to its directory"

const struct rfl_cupti_symbols rfl_cupti_symbols = { RFL_CUPTI_FUNCTIONS(RFL_CUDA_NAME) };

#define SYMBOL(member, symbol, arguments) { #symbol, &c->calls.member, false },

/* ---- results ---- */

#define OWN_MISTAKE "this CUPTI handles the call differently from CUDA 13.0"
#define UPDATE      "use CUPTI from CUDA 12.6 Update 2 or later (set RFL_CUPTI_PATH to its directory)"
#define ADMIN                                                                                  \
	"run as root, or set 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "       \
	"/etc/modprobe.d, rebuild the initramfs and reboot; in a container, run as root with " \
	"--cap-add=SYS_ADMIN; for a rented container, ask the provider"

static const struct rfl_cuda_message cupti_messages[] = { RFL_CUPTI_RESULTS(RFL_CUDA_MESSAGE) };

/* libcupti opens libnvperf_host.so itself, but its error does not name the file if missing. */
static enum rfl_rc without_neighbour(const struct rfl_cupti *c, int result, const char *call,
				     struct rfl_err *err)
{
	static const char library[] = "libnvperf_host.so";
	RFL_AUTOFREE char *neighbour = rfl_path_beside(c->path, library);
	const size_t len = strlen(neighbour) - strlen(library);
	enum rfl_rc rc = RFL_OK;

	if (!rfl_file_exists(neighbour))
		rc = rfl_fail(err, RFL_EUNAVAILABLE, result,
			      "%s: %s is missing from %.*s, the directory of libcupti: reinstall "
			      "CUPTI, or set RFL_CUPTI_PATH to the directory of another one",
			      call, library, len ? (int)len : 2, len ? neighbour : "./");
	return rc;
}

enum rfl_rc rfl_cupti_image(size_t size, uint8_t **ret, struct rfl_err *err)
{
	*ret = rfl_try_array(size, 1);
	return *ret ? RFL_OK
		    : rfl_fail(err, RFL_EUNAVAILABLE, 0,
			       "CUPTI needs an image of %zu bytes, which does not fit in memory",
			       size);
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
	return rfl_cuda_explain(cupti_messages, RFL_ARRAY_LEN(cupti_messages), result, call, name,
				err);
}

/* ---- libcupti ---- */

/* The major versions that have a range profiler, newest first. */
static const int majors[] = { 13, 12 };

/* Candidates in order of preference: names for the loader, and existing files. */
struct ladder {
	struct rfl_arena *arena;
	const char *names[64]; /* NULL past the end */
	size_t n;
};

static void add(struct ladder *l, const char *path, bool even_if_absent)
{
	if (l->n + 1 < RFL_ARRAY_LEN(l->names) && (even_if_absent || rfl_file_exists(path)))
		l->names[l->n++] = path;
}

/* Add the directories of a toolkit, and of PyTorch's wheels. */
static void add_usual(struct ladder *l, const struct rfl_cupti_places *places, int major)
{
	const struct rfl_cuda_places where = { places->cuda_home, places->beside };

	l->n += rfl_cuda_library(l->arena, rfl_arena_printf(l->arena, "libcupti.so.%d", major),
				 "cuda_cupti", &where, l->names + l->n,
				 RFL_ARRAY_LEN(l->names) - 1 - l->n);
}

/* Since CUDA 13.2 every call of CUPTI needs a driver: without one, 13.2 crashes and later versions
 * fail. A function added in 13.2 identifies these versions. */
static bool can_answer(const struct rfl_cupti *c)
{
	char uuid[1][RFL_CUDA_UUID_MAX];

	return !rfl_dl_sym(c->dl, "cuptiProfilerHostGetSinglePassSets") ||
	       rfl_cuda_uuids(uuid, 1) > 0;
}

/* Open the first of these names that loads. */
static enum rfl_rc open_first(struct rfl_cupti *c, const char *const *names, enum rfl_dl_mode mode,
			      struct rfl_err *err)
{
	const struct rfl_dl_symbol symbols[] = { RFL_CUPTI_FUNCTIONS(SYMBOL) };

	return rfl_dl_open(names, mode, symbols, RFL_ARRAY_LEN(symbols), &c->dl, err);
}

static enum rfl_rc open_ladder(struct rfl_cupti *c, const struct rfl_cupti_places *places,
			       struct rfl_err *err)
{
	const char *const named = places->path && places->path[0] != '\0' ? places->path : NULL;
	struct ladder l = { .arena = rfl_arena_new() };
	struct rfl_err why = RFL_ERR_INIT; /* the first error */
	enum rfl_rc rc = RFL_OK;

	if (named && !rfl_dir_exists(named)) /* chosen by the user: try nothing else */
		add(&l, named, true);
	for (size_t i = 0; named && rfl_dir_exists(named) && i < RFL_ARRAY_LEN(majors); i++)
		add(&l, rfl_arena_printf(l.arena, "%s/libcupti.so.%d", named, majors[i]), false);
	for (int others = 0; !named && others <= 1; others++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(majors); i++)
			if ((majors[i] != places->driver_major) == others)
				add_usual(&l, places, majors[i]);
	if (l.n == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
			      "%s: contains neither libcupti.so.13 nor libcupti.so.12: %s", named,
			      REMEDY);
	/* each iteration opens the first of the remaining candidates that loads */
	for (size_t i = 0; rc == RFL_OK && i < l.n; i++) {
		rc = open_first(c, l.names + i, RFL_DL_LOAD, &why);
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
			strstr(why.msg, ": symbol ") ? " (it has no range profiler)" : "", REMEDY);
}

enum rfl_rc rfl_cupti_open(const struct rfl_cupti_places *places, struct rfl_cupti **ret,
			   struct rfl_err *err)
{
	static const struct rfl_cupti_places nowhere = { .path = NULL };
	struct rfl_cupti *c = rfl_alloc_array(1, sizeof(*c));
	const char *const mapped[] = { rfl_dl_mapped("libcupti"), NULL };
	enum rfl_rc rc = RFL_OK;

	if (mapped[0]) {
		struct rfl_err why = RFL_ERR_INIT;

		if (open_first(c, mapped, RFL_DL_MAPPED, &why) != RFL_OK)
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
	if (rc == RFL_OK)
		c->path = rfl_dl_path(c->dl);
	/* NVIDIA's library uses RTLD_DEEPBIND, which makes an address sanitizer abort the process.
	 * It has cuptiSubscribe, unlike the fake library of the tests. */
	if (rc == RFL_OK && WITH_ASAN && rfl_dl_sym(c->dl, "cuptiSubscribe"))
		rc = rfl_fail(
			err, RFL_EUNAVAILABLE, 0,
			"%s cannot be used in a program with an address sanitizer, because it "
			"opens libnvperf_host.so with RTLD_DEEPBIND: build without the sanitizer",
			c->path);
	else if (rc == RFL_OK)
		rc = RFL_CUPTI_CALL(c, get_version, err, &c->version);
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

enum rfl_counter_access rfl_cuda_counter_access(const char *path)
{
	static const char key[] = "RmProfilingAdminOnly:";
	enum rfl_counter_access access = RFL_COUNTERS_UNKNOWN;
	RFL_AUTO(buf) text = { .max = 1 << 20 };
	const char *at = NULL;

	if (rfl_file_read(path ? path : "/proc/driver/nvidia/params", &text, NULL) == RFL_OK)
		at = strstr(rfl_buf_str(&text), key);
	if (at) {
		at += sizeof(key) - 1;
		at += strspn(at, " \t");
		access = *at == '0'   ? RFL_COUNTERS_ALL
			 : *at == '1' ? RFL_COUNTERS_ADMIN
				      : RFL_COUNTERS_UNKNOWN;
	}
	return access;
}
