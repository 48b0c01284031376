/*
 * lib.c - opening libcupti. A copy that is mapped already is the one to use: two in one
 * process do not get along. Else the newest that is found, in front of it the one that fits the
 * driver.
 */
#include "profile/cupti/lib.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dl.h"
#include "base/file.h"
#include "profile/cupti/cuda_lib.h"
#include "profile/cupti/api.h"

/* GCC says it with a macro, clang with a feature. */
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

struct rfl_cupti {
	struct rfl_dl *dl;
	struct rfl_cupti_functions calls;
	uint32_t version;
};

#define CURE                                                                                     \
	"install CUPTI of CUDA 12.6 Update 2 or later (a CUDA toolkit brings it, and so does a " \
	"PyTorch built with CUDA), or name its folder in RFL_CUPTI_PATH"

/* The major versions that have a range profiler, newest first. */
static const int majors[] = { 13, 12 };

/* Where a toolkit keeps its libraries, and where wheels do, seen from a folder beside them. */
static const char *const toolkit_folders[] = { "lib64", "lib", "extras/CUPTI/lib64" };
static const char *const wheel_folders[] = {
	"nvidia/cu13/lib",       "../nvidia/cu13/lib",       "../../nvidia/cu13/lib",
	"nvidia/cuda_cupti/lib", "../nvidia/cuda_cupti/lib", "../../nvidia/cuda_cupti/lib",
};
static const char default_toolkit[] = "/usr/local/cuda";

/* ------------------------------------------------------------------ candidates */

/* What is tried, in order: names for the loader, and files that are there. */
struct ladder {
	struct rfl_arena *arena;
	const char *names[64]; /* NULL behind the last */
	size_t n;
	bool no_memory;
};

static void add(struct ladder *l, const char *name)
{
	if (!name)
		l->no_memory = true;
	else if (l->n + 1 < RFL_ARRAY_LEN(l->names))
		l->names[l->n++] = name;
}

/* A library in a folder, when it is there. */
static void add_in(struct ladder *l, const char *folder, int major)
{
	const char *path = rfl_arena_printf(l->arena, "%s/libcupti.so.%d", folder, major);

	if (!path || rfl_file_exists(path))
		add(l, path);
}

static void add_below(struct ladder *l, const char *top, const char *const *folders, size_t n,
		      int major)
{
	for (size_t i = 0; top && top[0] != '\0' && i < n; i++) {
		const char *folder = rfl_arena_printf(l->arena, "%s/%s", top, folders[i]);

		if (folder)
			add_in(l, folder, major);
		else
			l->no_memory = true;
	}
}

static void add_major(struct ladder *l, const struct rfl_cupti_places *places, int major)
{
	add(l, rfl_arena_printf(l->arena, "libcupti.so.%d", major));
	add_below(l, places->cuda_home, toolkit_folders, RFL_ARRAY_LEN(toolkit_folders), major);
	add_below(l, places->beside, wheel_folders, RFL_ARRAY_LEN(wheel_folders), major);
	add_below(l, default_toolkit, toolkit_folders, RFL_ARRAY_LEN(toolkit_folders), major);
}

/* The user's word is taken: what lies there or nothing. */
static void add_named(struct ladder *l, const char *path)
{
	if (!rfl_dir_exists(path)) {
		add(l, path);
		return;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(majors); i++)
		add_in(l, path, majors[i]);
}

static void add_usual(struct ladder *l, const struct rfl_cupti_places *places)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(majors); i++)
		if (majors[i] == places->driver_major)
			add_major(l, places, majors[i]);
	for (size_t i = 0; i < RFL_ARRAY_LEN(majors); i++)
		if (majors[i] != places->driver_major)
			add_major(l, places, majors[i]);
}

/* ------------------------------------------------------------------ opening */

static enum rfl_rc resolve(struct rfl_cupti *c, const char *const *names, bool mapped,
			   struct rfl_err *err)
{
#define REQUIRED                                  false
#define OPTIONAL                                  true
#define SYMBOL(needed, member, symbol, arguments) { #symbol, &c->calls.member, needed },
	const struct rfl_dl_symbol symbols[] = { RFL_CUPTI_FUNCTIONS(SYMBOL) };
#undef SYMBOL
#undef OPTIONAL
#undef REQUIRED

	return mapped ? rfl_dl_open_mapped(names, symbols, RFL_ARRAY_LEN(symbols), &c->dl, err)
		      : rfl_dl_open(names, symbols, RFL_ARRAY_LEN(symbols), &c->dl, err);
}

/* A library without the range profiler fails by a symbol, which says too little. */
static enum rfl_rc cannot_use(const struct rfl_err *why, struct rfl_err *err)
{
	const bool old = strstr(why->msg, "has no symbol") != NULL;

	if (strstr(why->msg, "RFL_CUPTI_PATH"))
		return rfl_fail(err, why->rc, why->native, "%s", why->msg);
	return rfl_fail(err, why->rc, why->native, "%s%s: %s", why->msg,
			old ? " (it has no range profiler)" : "", CURE);
}

static enum rfl_rc open_mapped(struct rfl_cupti *c, const char *path, struct rfl_err *err)
{
	const char *const names[] = { path, NULL };
	struct rfl_err why = RFL_ERR_INIT;

	if (resolve(c, names, true, &why) != RFL_OK)
		return rfl_fail(err, why.rc, why.native,
				"the CUPTI that another library brought into this process cannot "
				"be used, and a second one beside it neither: %s",
				why.msg);
	return RFL_OK;
}

/* Since CUDA 13.2 CUPTI needs a driver for every call: without one, 13.2 crashes at the first and
 * later versions refuse it. A function that is new in 13.2 gives them away. */
static bool can_answer(const struct rfl_cupti *c)
{
	char uuid[1][RFL_CUDA_UUID_MAX];

	return !rfl_dl_sym(c->dl, "cuptiProfilerHostGetSinglePassSets") ||
	       rfl_cuda_uuids(uuid, 1) > 0;
}

static enum rfl_rc open_ladder(struct rfl_cupti *c, const struct rfl_cupti_places *places,
			       struct rfl_err *err)
{
	const bool named = places->path && places->path[0] != '\0';
	struct ladder l = { .arena = rfl_arena_new(0) };
	struct rfl_err why = RFL_ERR_INIT; /* the first */
	enum rfl_rc rc = RFL_OK;

	if (!l.arena)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	if (named)
		add_named(&l, places->path);
	else
		add_usual(&l, places);
	if (l.no_memory)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	else if (l.n == 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
			      "%s: neither libcupti.so.13 nor libcupti.so.12 is in it: %s",
			      places->path, CURE);
	/* each opens the first that loads of the rest */
	for (size_t i = 0; rc == RFL_OK && i < l.n; i++) {
		rc = resolve(c, l.names + i, false, &why);
		if (rc != RFL_OK || can_answer(c))
			break;
		(void)rfl_fail(&why, RFL_EUNAVAILABLE, 0,
			       "%s answers no question without an NVIDIA driver, as no CUPTI since "
			       "CUDA 13.2 does: name one of CUDA 13.1 or earlier in RFL_CUPTI_PATH",
			       rfl_dl_path(c->dl));
		rfl_dl_close(c->dl);
		c->dl = NULL;
	}
	rfl_arena_free(l.arena);
	if (rc == RFL_OK && c->dl)
		return RFL_OK;
	return why.rc == RFL_OK ? rc : cannot_use(&why, err);
}

/* NVIDIA's library opens its neighbour with RTLD_DEEPBIND, at which an address sanitizer ends the
 * process. It is told from a stand-in for tests by a function that only the real one has. */
static enum rfl_rc refuse_under_asan(const struct rfl_cupti *c, struct rfl_err *err)
{
	if (!WITH_ASAN || !rfl_dl_sym(c->dl, "cuptiSubscribe"))
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"%s cannot be used in a program with an address sanitizer, which does not "
			"allow the way in which it opens libnvperf_host.so: build without it",
			rfl_cupti_path(c));
}

enum rfl_rc rfl_cupti_open(const struct rfl_cupti_places *places, struct rfl_cupti **ret,
			   struct rfl_err *err)
{
	static const struct rfl_cupti_places nowhere = { .path = NULL };
	struct rfl_cupti *c = calloc(1, sizeof(*c));
	const char *path = rfl_dl_mapped("libcupti");
	enum rfl_rc rc;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for libcupti");
	rc = path ? open_mapped(c, path, err) : RFL_OK;
	if (rc == RFL_OK && (!path || !can_answer(c))) {
		rfl_dl_close(c->dl);
		c->dl = NULL;
		rc = open_ladder(c, places ? places : &nowhere, err);
	}
	if (rc != RFL_OK)
		goto done;
	rc = refuse_under_asan(c, err);
	if (rc == RFL_OK)
		rc = rfl_cupti_check(c, c->calls.get_version(&c->version), "cuptiGetVersion", err);
	if (rc != RFL_OK)
		goto done;
	*ret = c;
	return RFL_OK;
done:
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

const struct rfl_cupti_functions *rfl_cupti_calls(const struct rfl_cupti *c)
{
	return &c->calls;
}

const char *rfl_cupti_path(const struct rfl_cupti *c)
{
	return rfl_dl_path(c->dl);
}

uint32_t rfl_cupti_version(const struct rfl_cupti *c)
{
	return c->version;
}
