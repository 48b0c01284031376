/*
 * sysfs.c - the folders of PMUs, read.
 */
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "profile/perf/impl.h"

#define DEVICES  "/sys/bus/event_source/devices"
#define CPUS_MAX 1024 /* of one cpumask: one per socket or die */

bool rfl_perf_slurp(char *out, size_t size, const char *root, const char *path, ...)
{
	struct rfl_buf full, text;
	va_list args;
	bool ok;

	out[0] = '\0';
	rfl_buf_init(&full, 4096);
	rfl_buf_init(&text, size - 1);
	rfl_buf_puts(&full, root);
	va_start(args, path);
	rfl_buf_vprintf(&full, path, args);
	va_end(args);
	ok = !full.failed && rfl_file_read(rfl_buf_str(&full), &text, NULL) == RFL_OK;
	if (ok) {
		snprintf(out, size, "%s", rfl_buf_str(&text));
		out[strcspn(out, "\n")] = '\0';
	}
	rfl_buf_fini(&text);
	rfl_buf_fini(&full);
	return ok;
}

/* ---- finding PMUs ---- */

/* The number after "prefix_", -1 for the prefix alone, -2 for another name. */
static int number_of(const char *name, const char *prefix)
{
	const size_t len = strlen(prefix);
	int64_t number;

	if (strncmp(name, prefix, len) != 0)
		return -2;
	if (name[len] == '\0')
		return -1;
	if (name[len] != '_' || name[len + 1] < '0' || name[len + 1] > '9' ||
	    rfl_num_parse_int(name + len + 1, name, &number, NULL) != RFL_OK || number > 100000)
		return -2;
	return (int)number;
}

/* "3" or "0-7" at `*at`, which moves past it. */
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

/* "0,20" or "0-1": at most CPUS_MAX numbers. False when the text is something else. */
static bool parse_cpus(const char *text, int *cpus, size_t *n)
{
	*n = 0;
	for (const char *at = text; *at; at += *at == ',') {
		int first, last;

		if (!take_interval(&at, &first, &last))
			return false;
		for (int cpu = first; cpu <= last; cpu++) {
			if (*n == CPUS_MAX)
				return false;
			cpus[(*n)++] = cpu;
		}
	}
	return *n > 0;
}

static enum rfl_rc read_pmu(const char *root, const char *name, struct rfl_perf_pmu *ret,
			    struct rfl_err *err)
{
	char text[4096];
	int cpus[CPUS_MAX];
	int64_t type;

	snprintf(ret->name, sizeof(ret->name), "%s", name);
	if (!rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/type", name) ||
	    rfl_num_parse_int(text, name, &type, NULL) != RFL_OK || type < 0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s" DEVICES "/%s/type: not the number of a PMU", root, name);
	ret->type = (uint32_t)type;
	if (!rfl_perf_slurp(text, sizeof(text), root, DEVICES "/%s/cpumask", name) ||
	    !parse_cpus(text, cpus, &ret->ncpus))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s" DEVICES "/%s/cpumask: not a list of processors", root, name);
	ret->cpus = rfl_alloc_array(ret->ncpus, sizeof(*ret->cpus));
	if (!ret->cpus)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	memcpy(ret->cpus, cpus, ret->ncpus * sizeof(*cpus));
	return RFL_OK;
}

struct found {
	int number;
	char name[RFL_PERF_PMU_NAME];
};

static int by_number(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Names of PMUs that match, sorted; free() them. */
static enum rfl_rc list_names(const char *root, const char *prefix, struct found **ret, size_t *n,
			      struct rfl_err *err)
{
	char path[4096];
	DIR *dir;
	const struct dirent *entry;
	size_t cap = 0;
	enum rfl_rc rc = RFL_OK;

	*ret = NULL;
	*n = 0;
	snprintf(path, sizeof(path), "%s" DEVICES, root);
	dir = opendir(path);
	if (!dir)
		return RFL_OK; /* no such folder: no PMU */
	while (rc == RFL_OK && (entry = readdir(dir))) {
		const int number = number_of(entry->d_name, prefix);
		const size_t len = strlen(entry->d_name);

		if (number < -1 || len >= RFL_PERF_PMU_NAME)
			continue;
		rc = rfl_grow(ret, &cap, *n + 1, SIZE_MAX, err);
		if (rc != RFL_OK)
			break;
		(*ret)[*n].number = number;
		memcpy((*ret)[(*n)++].name, entry->d_name, len + 1);
	}
	closedir(dir);
	if (*n > 0)
		qsort(*ret, *n, sizeof(**ret), by_number);
	return rc;
}

enum rfl_rc rfl_perf_pmus_find(const char *root, const char *prefix, struct rfl_perf_pmu **ret,
			       size_t *n, struct rfl_err *err)
{
	struct rfl_perf_pmu *pmus = NULL;
	struct found *names = NULL;
	size_t nnames = 0;
	enum rfl_rc rc = list_names(root, prefix, &names, &nnames, err);

	if (rc != RFL_OK)
		goto done;
	if (nnames > 0) {
		pmus = rfl_alloc_array(nnames, sizeof(*pmus));
		if (!pmus) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", prefix);
			goto done;
		}
	}
	for (size_t i = 0; i < nnames && rc == RFL_OK; i++)
		rc = read_pmu(root, names[i].name, &pmus[i], err);
	if (rc != RFL_OK)
		goto done;
	*ret = pmus;
	*n = nnames;
	pmus = NULL;
done:
	rfl_perf_pmus_free(pmus, nnames);
	free(names);
	return rc;
}

void rfl_perf_pmus_free(struct rfl_perf_pmu *pmus, size_t n)
{
	for (size_t i = 0; pmus && i < n; i++)
		free(pmus[i].cpus);
	free(pmus);
}

bool rfl_perf_has_core_pmu(const char *root)
{
	static const char *const prefixes[] = {
		"cpu",         "cpu_core",          "cpu_atom",         "armv8_pmuv3",
		"armv9_pmuv3", "armv8_neoverse_v1", "armv8_neoverse_v2"
	};
	bool has = false;

	for (size_t i = 0; i < RFL_ARRAY_LEN(prefixes) && !has; i++) {
		struct found *names = NULL;
		size_t n = 0;

		has = list_names(root, prefixes[i], &names, &n, NULL) == RFL_OK && n > 0;
		free(names);
	}
	return has;
}

/* ---- codes ---- */

/* Decimal, or hexadecimal after 0x. */
static bool parse_number(const char *text, size_t len, uint64_t *ret)
{
	const bool hex = len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const uint64_t base = hex ? 16 : 10;
	uint64_t value = 0;

	if (hex) {
		text += 2;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++) {
		static const char digits[] = "0123456789abcdef";
		const char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
		const char *digit = c ? strchr(digits, c) : NULL;

		if (!digit || (uint64_t)(digit - digits) >= base ||
		    value > (UINT64_MAX - 15) / base)
			return false;
		value = value * base + (uint64_t)(digit - digits);
	}
	*ret = value;
	return len > 0;
}

/* Lay a value into the bits that a format names, lowest first: "config:0-7,32-35". */
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
	return value == 0; /* else it does not fit */
}

/* Where a term goes: what the kernel says, else the layout that every PMU began with. */
static const char *format_of(const char *root, const char *pmu, const char *key, char *out,
			     size_t size)
{
	static const struct {
		const char *key, *format;
	} usual[] = {
		{ "event", "config:0-7" },     { "umask", "config:8-15" },
		{ "config", "config:0-63" },   { "config1", "config1:0-63" },
		{ "config2", "config2:0-63" },
	};

	if (rfl_perf_slurp(out, size, root, DEVICES "/%s/format/%s", pmu, key))
		return out;
	for (size_t i = 0; i < RFL_ARRAY_LEN(usual); i++)
		if (strcmp(usual[i].key, key) == 0)
			return usual[i].format;
	return NULL;
}

/* "event=0x04,umask=0x0f"; a term without a value is 1. */
static enum rfl_rc encode(const char *root, const char *pmu, const char *terms, uint64_t config[3],
			  struct rfl_err *err)
{
	for (const char *at = terms; *at; at += *at == ',') {
		const size_t len = strcspn(at, ",");
		const char *equals = memchr(at, '=', len);
		const size_t key_len = equals ? (size_t)(equals - at) : len;
		char key[48], text[128];
		const char *format;
		uint64_t value = 1;

		if (key_len == 0 || key_len >= sizeof(key))
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not a list of terms", pmu,
					terms);
		snprintf(key, sizeof(key), "%.*s", (int)key_len, at);
		format = format_of(root, pmu, key, text, sizeof(text));
		if (equals && !parse_number(equals + 1, len - key_len - 1, &value))
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%.*s' has no number", pmu,
					(int)len, at);
		if (!format)
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: has no term '%s'", pmu, key);
		if (!place(format, value, config))
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%.*s' does not fit '%s'", pmu,
					(int)len, at, format);
		at += len;
	}
	return RFL_OK;
}

/* 6.103515625e-5 MiB is 64 bytes; NaN where the kernel does not say, or counts something else. */
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
	enum rfl_rc rc;

	if (event && rfl_perf_slurp(code.terms, sizeof(code.terms), root, DEVICES "/%s/events/%s",
				    pmu, event))
		code.bytes = bytes_of(root, pmu, event);
	else if (terms)
		snprintf(code.terms, sizeof(code.terms), "%s", terms);
	else
		return rfl_fail(err, RFL_ENOTFOUND, 0, "%s: the kernel names no event '%s'", pmu,
				event ? event : "");
	rc = encode(root, pmu, code.terms, code.config, err);
	if (rc == RFL_OK)
		*ret = code;
	return rc;
}
