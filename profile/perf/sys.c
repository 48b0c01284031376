/* sys.c - system calls: perf_event_open(2), the list of threads, and the PMUs in /sys. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "profile/perf/impl.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"

#define DEVICES  "/sys/bus/event_source/devices"
#define CPUS_MAX 1024 /* CPUs of one cpumask: one per socket or die */

/* ---- calls ---- */

/* Raise the limit of open files to the hard limit when it is reached: events in a hundred threads
 * need more than the usual soft limit of 1024. */
static int sys_open(void *ctx, const struct perf_event_attr *attr, int tid, int cpu, int group)
{
	(void)ctx;
	for (;;) {
		const int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, group,
					    PERF_FLAG_FD_CLOEXEC);
		const int error = errno;
		struct rlimit l;

		if (fd >= 0 || error != EMFILE || getrlimit(RLIMIT_NOFILE, &l) != 0 ||
		    l.rlim_cur >= l.rlim_max) {
			errno = error;
			return fd;
		}
		l.rlim_cur = l.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &l) != 0) {
			errno = error;
			return fd;
		}
	}
}

static int sys_control(void *ctx, int fd, unsigned long request)
{
	(void)ctx;
	return ioctl(fd, request, 0);
}

static int sys_read(void *ctx, int fd, struct rfl_perf_reading *ret)
{
	const ssize_t n = read(fd, ret, sizeof(*ret));

	(void)ctx;
	if (n == (ssize_t)sizeof(*ret))
		return 0;
	if (n >= 0)
		errno = ENODATA; /* error state: a pinned event lost its counter */
	return -1;
}

static void sys_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static size_t sys_threads(void *ctx, int *tids, size_t max)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t n = 0;

	(void)ctx;
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		int64_t tid;

		if (rfl_num_parse_int(entry->d_name, "thread", &tid, NULL) != RFL_OK)
			continue; /* . and .. */
		if (n < max)
			tids[n] = (int)tid;
		n++;
	}
	closedir(dir);
	return n;
}

static double sys_now_s(void *ctx)
{
	(void)ctx;
	return rfl_clock_s();
}

static void sys_rest(void *ctx, double seconds)
{
	struct timespec left = { .tv_sec = (time_t)seconds };

	(void)ctx;
	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
}

const struct rfl_perf_sys rfl_perf_sys_linux = {
	.open = sys_open,
	.control = sys_control,
	.read = sys_read,
	.close = sys_close,
	.threads = sys_threads,
	.now_s = sys_now_s,
	.rest = sys_rest,
	.root = "",
};

bool rfl_perf_slurp(char *out, size_t size, const char *root, const char *path, ...)
{
	char full[4096];
	RFL_AUTO(buf) text = { .max = size - 1 };
	va_list args;
	int n = snprintf(full, sizeof(full), "%s", root);

	va_start(args, path);
	if (n < (int)sizeof(full))
		n += vsnprintf(full + n, sizeof(full) - (size_t)n, path, args);
	va_end(args);
	const bool ok = n < (int)sizeof(full) && rfl_file_read(full, &text, NULL) == RFL_OK;
	snprintf(out, size, "%s", ok ? rfl_buf_str(&text) : "");
	out[strcspn(out, "\n")] = '\0';
	return ok;
}

/* ---- PMUs ---- */

/* Parse "3" or "0-7" and advance `*at` past it. */
static bool take_interval(const char **at, int *first, int *last)
{
	int used = 0;

	if (sscanf(*at, "%d%n", first, &used) != 1)
		return false;
	*at += used;
	*last = *first;
	if (**at == '-') {
		if (sscanf(*at + 1, "%d%n", last, &used) != 1)
			return false;
		*at += 1 + used;
	}
	return *first >= 0 && *last >= *first && (**at == '\0' || **at == ',');
}

/* The number after "prefix_"; -1: the name is the prefix; -2: another name. */
static int number_of(const char *name, const char *prefix)
{
	const size_t len = strlen(prefix);
	int64_t number = -2;

	if (strncmp(name, prefix, len) != 0)
		return -2;
	if (name[len] == '\0')
		return -1;
	if (name[len] != '_' || name[len + 1] < '0' || name[len + 1] > '9' ||
	    rfl_num_parse_int(name + len + 1, name, &number, NULL) != RFL_OK || number > 100000)
		return -2;
	return (int)number;
}

static int by_number(const void *a, const void *b)
{
	const struct rfl_perf_pmu *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* The names and numbers of the matching PMUs, sorted. */
static struct rfl_perf_pmu *list_pmus(struct rfl_arena *arena, const char *root, const char *prefix,
				      size_t *n)
{
	char path[4096];
	const struct dirent *entry;
	struct rfl_perf_pmu *pmus = NULL;

	*n = 0;
	snprintf(path, sizeof(path), "%s" DEVICES, root);
	DIR *dir = opendir(path);
	while (dir && (entry = readdir(dir))) { /* without the directory there are no PMUs */
		struct rfl_perf_pmu pmu = { .number = number_of(entry->d_name, prefix) };
		const size_t len = strlen(entry->d_name);

		if (pmu.number < -1 || len >= sizeof(pmu.name))
			continue;
		memcpy(pmu.name, entry->d_name, len + 1);
		*(struct rfl_perf_pmu *)rfl_arena_append(arena, &pmus, n) = pmu;
	}
	if (dir)
		closedir(dir);
	if (*n > 0)
		qsort(pmus, *n, sizeof(*pmus), by_number);
	return pmus;
}

/* Read the type of a PMU and its CPUs ("0,20" or "0-1"). */
static enum rfl_rc read_pmu(struct rfl_arena *arena, const char *root, struct rfl_perf_pmu *pmu,
			    struct rfl_err *err)
{
	char text[4096];
	int64_t type;

	if (!rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/type", pmu->name) ||
	    rfl_num_parse_int(text, pmu->name, &type, NULL) != RFL_OK || type < 0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s" DEVICES "/%s/type: does not contain the number of a PMU", root,
				pmu->name);
	pmu->type = (uint32_t)type;
	pmu->cpus = rfl_arena_array(arena, CPUS_MAX, sizeof(*pmu->cpus));
	bool good = rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/cpumask", pmu->name);
	for (const char *at = text; good && *at; at += *at == ',') {
		int cpu, last;

		good = take_interval(&at, &cpu, &last);
		for (; good && cpu <= last; cpu++) {
			good = pmu->ncpus < CPUS_MAX;
			if (good)
				pmu->cpus[pmu->ncpus++] = cpu;
		}
	}
	if (!good || pmu->ncpus == 0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s" DEVICES "/%s/cpumask: does not contain a list of CPUs", root,
				pmu->name);
	return RFL_OK;
}

enum rfl_rc rfl_perf_pmus_find(struct rfl_arena *arena, const char *root, const char *prefix,
			       struct rfl_perf_pmu **ret, size_t *n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	*ret = list_pmus(arena, root, prefix, n);
	for (size_t i = 0; i < *n && rc == RFL_OK; i++)
		rc = read_pmu(arena, root, &(*ret)[i], err);
	return rc;
}

bool rfl_perf_has_core_pmu(struct rfl_arena *arena, const char *root)
{
	static const char *const prefixes[] = {
		"cpu",         "cpu_core",          "cpu_atom",         "armv8_pmuv3",
		"armv9_pmuv3", "armv8_neoverse_v1", "armv8_neoverse_v2"
	};
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(prefixes) && n == 0; i++)
		(void)list_pmus(arena, root, prefixes[i], &n);
	return n > 0;
}

/* ---- codes ---- */

/* Store a value in the bits of a format such as "config:0-7,32-35", lowest bits first. */
static bool place(const char *format, uint64_t value, uint64_t config[3])
{
	int word = 0;

	if (strncmp(format, "config1:", 8) == 0)
		word = 1;
	else if (strncmp(format, "config2:", 8) == 0)
		word = 2;
	else if (strncmp(format, "config:", 7) != 0)
		return false;
	for (const char *at = strchr(format, ':') + 1; *at; at += *at == ',') {
		int first, last;

		if (!take_interval(&at, &first, &last) || last > 63)
			return false;
		for (int bit = first; bit <= last; bit++, value >>= 1)
			config[word] |= (value & 1) << bit;
	}
	return value == 0; /* otherwise the value does not fit */
}

/* Encode terms such as "event=0x04,umask=0x0f". A term without a value is 1. If the kernel does not
 * give the format of a term, the usual one applies. */
static enum rfl_rc encode(const char *root, const char *pmu, const char *terms, uint64_t config[3],
			  struct rfl_err *err)
{
	static const struct {
		const char *key, *format;
	} usual[] = {
		{ "event", "config:0-7" },     { "umask", "config:8-15" },
		{ "config", "config:0-63" },   { "config1", "config1:0-63" },
		{ "config2", "config2:0-63" },
	};

	for (const char *at = terms; *at; at += *at == ',') {
		const size_t len = strcspn(at, ",");
		const char *equals = memchr(at, '=', len);
		const size_t key_len = equals ? (size_t)(equals - at) : len;
		char key[48], text[128];
		const char *format = text;
		uint64_t value = 1;

		if (key_len == 0 || key_len >= sizeof(key))
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not a list of terms", pmu,
					terms);
		snprintf(key, sizeof(key), "%.*s", (int)key_len, at);
		if (equals) { /* decimal, or hexadecimal after 0x */
			const char *digits = equals + 1;
			char *end = NULL;
			const bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');

			errno = 0;
			value = strtoull(digits, &end, hex ? 16 : 10);
			if (errno != 0 || *digits < '0' || *digits > '9' || end != at + len)
				return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%.*s' has no number",
						pmu, (int)len, at);
		}
		if (!rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/format/%s", pmu, key)) {
			format = NULL;
			for (size_t i = 0; i < RFL_ARRAY_LEN(usual); i++)
				if (strcmp(usual[i].key, key) == 0)
					format = usual[i].format;
		}
		if (!format)
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: the PMU has no term '%s'", pmu,
					key);
		if (!place(format, value, config))
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%.*s' does not fit in '%s'", pmu,
					(int)len, at, format);
		at += len;
	}
	return RFL_OK;
}

/* Bytes per count from the kernel's scale and unit (6.103515625e-5 MiB is 64 bytes); NaN:
 * unknown. */
static double bytes_of(const char *root, const char *pmu, const char *event)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {
		{ "Bytes", 1 },
		{ "KiB", 0x1p10 },
		{ "MiB", 0x1p20 },
		{ "GiB", 0x1p30 },
	};
	char text[64];
	double scale;

	if (!rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/events/%s.scale", pmu, event) ||
	    rfl_num_parse_double(text, event, &scale, NULL) != RFL_OK || scale <= 0 ||
	    !rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/events/%s.unit", pmu, event))
		return NAN;
	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++)
		if (strcmp(text, units[i].name) == 0)
			return scale * units[i].bytes;
	return NAN;
}

enum rfl_rc rfl_perf_code_find(const char *root, const char *pmu, const char *event,
			       const char *terms, struct rfl_perf_code *ret, struct rfl_err *err)
{
	struct rfl_perf_code code = { .bytes = NAN };

	if (event && rfl_perf_slurp(code.terms, sizeof(code.terms), root, DEVICES "/%s/events/%s",
				    pmu, event))
		code.bytes = bytes_of(root, pmu, event);
	else if (terms)
		snprintf(code.terms, sizeof(code.terms), "%s", terms);
	else
		return rfl_fail(err, RFL_ENOTFOUND, 0, "%s: the kernel has no event '%s'", pmu,
				event ? event : "");
	enum rfl_rc rc = encode(root, pmu, code.terms, code.config, err);
	if (rc == RFL_OK)
		*ret = code;
	return rc;
}
