/*
 * limits.c - memory of the machine, and the limits that control groups (v1 or v2) set on memory and
 * CPU time.
 */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "machine/machine.h"
#include "machine/machine_parts.h"

/* Return the integer at the beginning of a value of rfl_machine__value(), or `missing`. */
static int64_t find_number(const char *text, const char *key, char separator, int64_t missing)
{
	char value[64];
	int64_t n;

	return rfl_machine__value(text, key, separator, value, sizeof(value)) &&
			       sscanf(value, "%" SCNd64, &n) == 1
		       ? n
		       : missing;
}

/* Get the path of our group below the mount of a controller, from its line "5:cpu,cpuacct:/a/b" in
 * /proc/self/cgroup; the controller "" selects the only line of v2. False if no line matches. */
static bool cgroup_path(const char *text, const char *controller, char *out, size_t size)
{
	for (const char *line = text, *next; line; line = next) {
		const char *names = strchr(line, ':'),
			   *path = names ? strchr(names + 1, ':') : NULL;
		char list[256], want[64];

		if (!path)
			return false;
		next = strchr(path, '\n');
		next = next ? next + 1 : NULL;
		if (path - names > (ptrdiff_t)sizeof(list) - 2 || strcspn(path + 1, "\n") >= size)
			continue;
		snprintf(list, sizeof(list), ",%.*s,", (int)(path - names - 1), names + 1);
		snprintf(want, sizeof(want), ",%s,", controller);
		if (*controller ? !strstr(list, want) : path != names + 1)
			continue;
		snprintf(out, size, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
		return true;
	}
	return false;
}

/* Shorten the path to its parent directory; false at the top. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* The files of a hierarchy; NULL: the hierarchy has no such limit. */
struct hierarchy {
	const char *controller; /* its name in /proc/self/cgroup */
	const char *mount;
	const char *quota, *period; /* v2: both in one file */
	const char *limit, *used;
	const char *inactive, *active; /* lines of memory.stat, including child groups */
};

static const struct hierarchy hierarchies[] = {
	{ .controller = "",
	  .mount = "/sys/fs/cgroup",
	  .quota = "cpu.max",
	  .limit = "memory.max",
	  .used = "memory.current",
	  .inactive = "inactive_file",
	  .active = "active_file" },
	{ .controller = "cpu",
	  .mount = "/sys/fs/cgroup/cpu",
	  .quota = "cpu.cfs_quota_us",
	  .period = "cpu.cfs_period_us" },
	{ .controller = "memory",
	  .mount = "/sys/fs/cgroup/memory",
	  .limit = "memory.limit_in_bytes",
	  .used = "memory.usage_in_bytes",
	  .inactive = "total_inactive_file",
	  .active = "total_active_file" },
};

/* Lower quota and limit to a group's. A limit above the machine's memory is ignored. */
static void read_group(struct rfl_machine *m, const struct hierarchy *h, const char *root,
		       const char *dir)
{
	char text[16384];
	int64_t quota = 0, period = 0, limit, used, left, pages = 0;

	if (h->quota && rfl_machine__slurp(root, text, sizeof(text), "%s/%s", dir, h->quota))
		(void)sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period);
	if (h->period && !rfl_machine__slurp_int(root, &period, "%s/%s", dir, h->period))
		period = 0;
	if (quota > 0 && period > 0) /* fmin() ignores NaN */
		m->cpu_quota = fmin(m->cpu_quota, (double)quota / (double)period);

	/* v1 writes "no limit" as a number near 2^63 */
	if (!h->limit || !rfl_machine__slurp_int(root, &limit, "%s/%s", dir, h->limit) ||
	    limit > INT64_MAX / 2 || !rfl_machine__slurp_int(root, &used, "%s/%s", dir, h->used))
		return;
	/* The kernel counts cached files as used, but frees them on demand: without this, no memory
	 * would seem available after reading a large data set. */
	if (rfl_machine__slurp(root, text, sizeof(text), "%s/memory.stat", dir))
		pages = find_number(text, h->inactive, ' ', 0) +
			find_number(text, h->active, ' ', 0);
	if (pages > 0 && pages < used)
		used -= pages;
	if ((m->memory_bytes == 0 || limit < m->memory_bytes) &&
	    (m->memory_limit_bytes == 0 || limit < m->memory_limit_bytes))
		m->memory_limit_bytes = limit;
	left = limit > used ? limit - used : 1; /* 0 means unknown */
	if (m->memory_available_bytes == 0 || left < m->memory_available_bytes)
		m->memory_available_bytes = left;
}

int64_t rfl_machine_oom_kills(const char *root)
{
	char text[32768];

	return rfl_machine__slurp(root, text, sizeof(text), "/proc/vmstat")
		       ? find_number(text, "oom_kill", ' ', -1)
		       : -1;
}

void rfl_machine__limits(struct rfl_machine *m, const char *root)
{
	char text[8192], path[1024], dir[2048];

	if (rfl_machine__slurp(root, text, sizeof(text), "/proc/meminfo")) {
		m->memory_bytes = find_number(text, "MemTotal", ':', 0) * 1024;
		m->memory_available_bytes = find_number(text, "MemAvailable", ':', 0) * 1024;
	}
	m->cpu_quota = NAN;
	/* Apply the limits of our group and its ancestors. In a container, the path may be outside
	 * the mount; the walk upwards still ends at the mount. */
	rfl_machine__slurp(root, text, sizeof(text), "/proc/self/cgroup");
	for (const struct hierarchy *h = hierarchies; h < hierarchies + RFL_ARRAY_LEN(hierarchies);
	     h++) {
		bool more = cgroup_path(text, h->controller, path, sizeof(path));

		for (; more; more = go_up(path)) {
			snprintf(dir, sizeof(dir), "%s%s", h->mount, path[1] ? path : "");
			read_group(m, h, root, dir);
		}
	}
}
