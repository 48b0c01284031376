/*
 * surroundings.c - load, turbo, firmware and container.
 */
#include "machine/surroundings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "machine/surroundings_parts.h"

static const char *slurp_text(struct rfl_surroundings *s, const char *root, const char *path)
{
	char text[256];

	return rfl_machine__slurp(root, path, text, sizeof(text)) ? rfl_arena_strdup(s->arena, text)
								  : NULL;
}

static void read_load(struct rfl_surroundings *s, const char *root)
{
	char text[128];

	s->load[0] = s->load[1] = s->load[2] = NAN;
	if (rfl_machine__slurp(root, "/proc/loadavg", text, sizeof(text)) &&
	    sscanf(text, "%lf %lf %lf", &s->load[0], &s->load[1], &s->load[2]) != 3)
		s->load[0] = s->load[1] = s->load[2] = NAN;
}

static enum rfl_known read_turbo(const char *root)
{
	int64_t value;

	if (rfl_machine__slurp_int(root, "/sys/devices/system/cpu/intel_pstate/no_turbo", &value))
		return value ? RFL_NO : RFL_YES;
	if (rfl_machine__slurp_int(root, "/sys/devices/system/cpu/cpufreq/boost", &value))
		return value ? RFL_YES : RFL_NO;
	return RFL_NOT_KNOWN;
}

/* ---- containers ---- */

static bool exists(const char *root, const char *path)
{
	char full[4096];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", root, path);
	return stat(full, &st) == 0;
}

/* Files that a container's runtime leaves in it; the first that is there names it. */
static const struct {
	const char *path, *name;
} marks[] = {
	{ "/var/run/secrets/kubernetes.io", "kubernetes" },
	{ "/run/.containerenv", "podman" },
	{ "/.dockerenv", "docker" },
	{ "/.singularity.d", "apptainer" },
};

/* Words of a control group's path. */
static const struct {
	const char *word, *name;
} groups[] = {
	{ "kubepods", "kubernetes" },   { "/docker", "docker" },
	{ "/libpod", "podman" },        { "/lxc", "lxc" },
	{ "containerd", "containerd" }, { "machine.slice", "systemd-nspawn" },
};

static const char *find_container(struct rfl_surroundings *s, const char *root)
{
	char text[4096];

	for (size_t i = 0; i < RFL_ARRAY_LEN(marks); i++) {
		if (exists(root, marks[i].path))
			return marks[i].name;
	}
	if (rfl_machine__slurp(root, "/run/systemd/container", text, sizeof(text)))
		return rfl_arena_strdup(s->arena, text);
	if (!rfl_machine__slurp(root, "/proc/self/cgroup", text, sizeof(text)))
		return NULL;
	for (size_t i = 0; i < RFL_ARRAY_LEN(groups); i++) {
		if (strstr(text, groups[i].word))
			return groups[i].name;
	}
	return NULL;
}

/* The value of NAME="value" in a file of such lines. */
static const char *quoted(struct rfl_surroundings *s, const char *root, const char *path,
			  const char *name)
{
	char text[8192], *at, *end;

	if (!rfl_machine__slurp(root, path, text, sizeof(text)))
		return NULL;
	at = strncmp(text, name, strlen(name)) == 0 ? text : strstr(text, name);
	while (at && at > text && at[-1] != '\n')
		at = strstr(at + 1, name);
	if (!at)
		return NULL;
	at += strlen(name);
	end = strpbrk(at, "\"\n");
	if (!end || end == at)
		return NULL;
	*end = '\0';
	return rfl_arena_strdup(s->arena, at);
}

enum rfl_rc rfl_surroundings_new(const char *root, struct rfl_surroundings **ret,
				 struct rfl_err *err)
{
	struct rfl_surroundings *s = calloc(1, sizeof(*s));
	enum rfl_rc rc = RFL_OK;

	if (s)
		s->arena = rfl_arena_new(0);
	if (!s || !s->arena) {
		rfl_surroundings_free(s);
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking around");
	}
	read_load(s, root);
	s->turbo = read_turbo(root);
	s->system_vendor = slurp_text(s, root, "/sys/class/dmi/id/sys_vendor");
	s->system_product = slurp_text(s, root, "/sys/class/dmi/id/product_name");
	s->container = find_container(s, root);
	s->container_image = quoted(s, root, "/run/.containerenv", "image=\"");
	rfl_surroundings__cloud(s, root);
	rc = rfl_surroundings__network(s, root, err);
	if (rc == RFL_OK) {
		*ret = s;
		s = NULL;
	}
	rfl_surroundings_free(s);
	return rc;
}

void rfl_surroundings_free(struct rfl_surroundings *s)
{
	if (!s)
		return;
	rfl_arena_free(s->arena);
	free(s);
}
