/*
 * lib.c - opening libcupti. A copy that is mapped already is the one to use: two in one
 * process do not get along. Else the newest that is found, in front of it the one that fits the
 * driver.
 */
#include "profile/cupti/lib.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "profile/cupti/cuda_lib.h"

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

#define REMEDY                                                                                   \
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

const struct rfl_cupti_symbols rfl_cupti_symbols = {
#define SYMBOL_NAME(needed, member, symbol, arguments) .member = #symbol,
	RFL_CUPTI_FUNCTIONS(SYMBOL_NAME)
#undef SYMBOL_NAME
};

/* ------------------------------------------------------------------ candidates */

/* What is tried, in order: names for the loader, and files that are there. */
struct ladder {
	struct rfl_arena *arena;
	const char *names[64]; /* NULL past the end */
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
			old ? " (it has no range profiler)" : "", REMEDY);
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
			      places->path, REMEDY);
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
 * process. It is distinguished from a stand-in for tests by a function that only the real one has.
 */
static enum rfl_rc refuse_under_asan(const struct rfl_cupti *c, struct rfl_err *err)
{
	if (!WITH_ASAN || !rfl_dl_sym(c->dl, "cuptiSubscribe"))
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"%s cannot be used in a program with an address sanitizer, which does not "
			"allow the way in which it opens libnvperf_host.so: build without it",
			c->path);
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
	c->path = rfl_dl_path(c->dl);
	rc = refuse_under_asan(c, err);
	if (rc == RFL_OK)
		rc = RFL_CUPTI_CALL(c, get_version, err, &c->version);
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

/* ------------------------------------------------------------------ results */

struct message {
	int result;
	enum rfl_rc rc;
	const char *meaning, *remedy; /* remedy NULL: nothing can be done from here */
};

#define OWN_MISTAKE "this CUPTI takes the call otherwise than that of CUDA 13.0 does"
#define UPDATE      "use CUPTI of CUDA 12.6 Update 2 or later (RFL_CUPTI_PATH names its folder)"
#define ADMIN                                                                                 \
	"run as root, or set 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "      \
	"/etc/modprobe.d, rebuild the initramfs and reboot; in a container run as root with " \
	"--cap-add=SYS_ADMIN; a rented container cannot be changed from inside"

static const struct message messages[] = {
	{ RFL_CUPTI_INVALID_PARAMETER, RFL_EFAILED, OWN_MISTAKE, UPDATE },
	{ RFL_CUPTI_INVALID_DEVICE, RFL_EUNAVAILABLE, "there is no such GPU",
	  "see 'roofline probe'" },
	{ RFL_CUPTI_INVALID_CONTEXT, RFL_EUNAVAILABLE, "no CUDA context is current on this thread",
	  NULL },
	{ RFL_CUPTI_INVALID_OPERATION, RFL_EFAILED,
	  "the call is not allowed in this state, or there are too many ranges in one pass",
	  "count fewer ranges: --counters phase or step instead of layer" },
	{ RFL_CUPTI_OUT_OF_MEMORY, RFL_EDEVMEM, "no memory is left for the counters",
	  "use a smaller batch" },
	{ RFL_CUPTI_HARDWARE, RFL_EUNAVAILABLE, "the counters of the GPU do not work",
	  "reboot, or have the GPU examined" },
	{ RFL_CUPTI_PARAMETER_SIZE, RFL_EFAILED, OWN_MISTAKE, UPDATE },
	{ RFL_CUPTI_NOT_IMPLEMENTED, RFL_EUNAVAILABLE, "this CUPTI does not have the call",
	  UPDATE },
	{ RFL_CUPTI_MAX_LIMIT_REACHED, RFL_EFAILED, "there are no more records", NULL },
	{ RFL_CUPTI_NOT_READY, RFL_EUNAVAILABLE, "CUPTI is not ready yet", "try again" },
	{ RFL_CUPTI_NOT_COMPATIBLE, RFL_EUNAVAILABLE,
	  "CUPTI does not go with this driver, or with another tool in the process",
	  "use the CUPTI of the driver's CUDA version (RFL_CUPTI_PATH names its folder)" },
	{ RFL_CUPTI_NOT_INITIALIZED, RFL_EUNAVAILABLE,
	  "CUPTI could not start: libnvperf_host.so is missing or of another version",
	  "it belongs beside libcupti: install CUPTI again, or name another in RFL_CUPTI_PATH" },
	{ RFL_CUPTI_INVALID_METRIC_NAME, RFL_ENOTFOUND, "the chip has no such metric",
	  "see 'roofline counters list --chip CHIP --all'" },
	{ RFL_CUPTI_INVALID_KIND, RFL_EFAILED, "the chip has no records of this kind", NULL },
	{ RFL_CUPTI_DISABLED, RFL_EUNAVAILABLE, "profiling is switched off on this system",
	  "ask who administers it" },
	{ RFL_CUPTI_HARDWARE_BUSY, RFL_EUNAVAILABLE,
	  "another program holds the counters of this GPU",
	  "end dcgm-exporter, nv-hostengine, ncu and other profilers, or count when they rest" },
	{ RFL_CUPTI_NOT_SUPPORTED, RFL_EUNSUPPORTED,
	  "the chip is not supported, or these metrics cannot be counted together",
	  "'roofline counters check --chip CHIP --metrics ...' names the metric" },
	{ RFL_CUPTI_VIRTUALIZED_DEVICE, RFL_EUNAVAILABLE,
	  "counters are not there on this virtual GPU", "use a GPU that is passed through whole" },
	{ RFL_CUPTI_INSUFFICIENT_PRIVILEGES, RFL_EUNAVAILABLE,
	  "the driver allows counters to administrators only", ADMIN },
	{ RFL_CUPTI_OLD_PROFILER_API, RFL_EUNAVAILABLE,
	  "something in this process uses CUPTI's old profiler, which excludes the new one",
	  "count without it" },
	{ RFL_CUPTI_LEGACY_PROFILER, RFL_EUNAVAILABLE,
	  "the chip does not have the old profiler any more", UPDATE },
	{ RFL_CUPTI_MULTIPLE_SUBSCRIBERS, RFL_EUNAVAILABLE,
	  "another profiler is in this process: ncu, nsys, cuda-gdb, or PyTorch's",
	  "run without it, or without --counters and import its file ('roofline counters "
	  "import')" },
	{ RFL_CUPTI_VIRTUALIZED_PRIVILEGES, RFL_EUNAVAILABLE,
	  "this virtual GPU may not be profiled",
	  "the hypervisor's administrator has to allow it (vGPU profiling)" },
	{ RFL_CUPTI_CONFIDENTIAL_COMPUTING, RFL_EUNAVAILABLE,
	  "the GPU is in confidential computing mode, which has no counters",
	  "an administrator can turn it off" },
	{ RFL_CUPTI_CMP_DEVICE, RFL_EUNAVAILABLE, "mining cards have no counters", NULL },
	{ RFL_CUPTI_MIG_DEVICE, RFL_EUNAVAILABLE, "this MIG instance may not be profiled",
	  "use an instance of its own (not a shared compute instance), or the whole GPU" },
	{ RFL_CUPTI_SLI_DEVICE, RFL_EUNAVAILABLE, "GPUs joined by SLI may not be profiled",
	  "turn SLI off" },
	{ RFL_CUPTI_WSL_DEVICE, RFL_EUNAVAILABLE,
	  "this version of WSL or of its driver has no counters",
	  "update both: driver 525 or later" },
	{ RFL_CUPTI_INVALID_CHIP_NAME, RFL_EUNAVAILABLE,
	  "CUPTI does not know this chip: it is older than the GPU",
	  "install a newer CUPTI, or name it in RFL_CUPTI_PATH" },
	{ RFL_CUPTI_UNKNOWN, RFL_EUNAVAILABLE,
	  "an error inside CUPTI; it is the answer to most calls where no NVIDIA driver works",
	  "look whether nvidia-smi works" },
};

/* The neighbour that libcupti opens itself, and says nothing of when it is not there. */
static enum rfl_rc without_neighbour(const struct rfl_cupti *c, int result, const char *call,
				     struct rfl_err *err)
{
	const char *path = c->path;
	const size_t len = (size_t)(rfl_path_base(path) - path);
	char *folder = strndup(len ? path : "./", len ? len : 2);
	char *neighbour = folder ? rfl_path_join(folder, "libnvperf_host.so") : NULL;
	enum rfl_rc rc = RFL_OK;

	if (!neighbour)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	else if (!rfl_file_exists(neighbour))
		rc = rfl_fail(
			err, RFL_EUNAVAILABLE, result,
			"%s: libnvperf_host.so is not in %s, beside libcupti, which needs it: "
			"install CUPTI again, or name another in RFL_CUPTI_PATH",
			call, folder);
	free(neighbour);
	free(folder);
	return rc;
}

enum rfl_rc rfl_cupti_check(const struct rfl_cupti *c, int result, const char *call,
			    struct rfl_err *err)
{
	const struct message *m = messages, *end = messages + RFL_ARRAY_LEN(messages);
	const char *name = NULL;
	enum rfl_rc rc = RFL_OK;

	if (result == RFL_CUPTI_SUCCESS)
		return RFL_OK;
	if (result == RFL_CUPTI_NOT_INITIALIZED && c)
		rc = without_neighbour(c, result, call, err);
	if (rc != RFL_OK)
		return rc;
	/* "CUPTI_ERROR_HARDWARE_BUSY", also of a result that is newer than the table */
	if (!c || c->calls.result_string(result, &name) != RFL_CUPTI_SUCCESS || !name)
		name = "CUPTI error";
	while (m < end && m->result != result)
		m++;
	if (m == end)
		return rfl_fail(err, RFL_EUNAVAILABLE, result, "%s: %s (%d)", call, name, result);
	return rfl_fail(err, m->rc, result, "%s: %s (%s, %d)%s%s", call, m->meaning, name, result,
			m->remedy ? ": " : "", m->remedy ? m->remedy : "");
}
