/*
 * network.c - the network interfaces of a machine, without their addresses.
 */
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "machine/surroundings_parts.h"

#define CLASS          "/sys/class/net"
#define INTERFACES_MAX 64

/* ARPHRD_* of <linux/if_arp.h>. */
enum { TYPE_ETHERNET = 1, TYPE_INFINIBAND = 32 };

static bool has(const char *root, const char *name, const char *leaf)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s" CLASS "/%s/%s", root, name, leaf);
	return lstat(path, &st) == 0;
}

static const char *kind_of(const char *root, const char *name)
{
	char path[512];
	int64_t type;

	if (has(root, name, "wireless") || has(root, name, "phy80211"))
		return "wifi";
	snprintf(path, sizeof(path), CLASS "/%.255s/type", name);
	if (!rfl_machine__slurp_int(root, path, &type))
		return "other";
	if (type == TYPE_INFINIBAND)
		return "infiniband";
	if (type != TYPE_ETHERNET)
		return "other";
	return has(root, name, "device") ? "ethernet" : "virtual";
}

/* udev names what it cannot place after its address: "enx0123456789ab". */
static const char *without_address(struct rfl_arena *arena, const char *name)
{
	size_t digits = 0;

	while (digits < 12 && strlen(name) == 15 && isxdigit((unsigned char)name[3 + digits]))
		digits++;
	return digits == 12 ? rfl_arena_printf(arena, "%.3s...", name)
			    : rfl_arena_strdup(arena, name);
}

static const char *driver_of(struct rfl_arena *arena, const char *root, const char *name)
{
	char path[4096], target[4096];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "%s" CLASS "/%s/device/driver", root, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	base = strrchr(target, '/');
	return rfl_arena_strdup(arena, base ? base + 1 : target);
}

static struct rfl_interface look_at(struct rfl_arena *arena, const char *root, const char *name)
{
	struct rfl_interface i = {
		.name = without_address(arena, name),
		.kind = kind_of(root, name),
		.driver = driver_of(arena, root, name),
		.speed_bit_per_s = NAN,
		.up = RFL_NOT_KNOWN,
	};
	char path[512], state[32];
	int64_t mbit;

	snprintf(path, sizeof(path), CLASS "/%.255s/speed", name);
	if (rfl_machine__slurp_int(root, path, &mbit) && mbit > 0)
		i.speed_bit_per_s = (double)mbit * 1e6;
	snprintf(path, sizeof(path), CLASS "/%.255s/operstate", name);
	if (rfl_machine__slurp(root, path, state, sizeof(state)) && strcmp(state, "unknown") != 0)
		i.up = strcmp(state, "up") == 0 ? RFL_YES : RFL_NO;
	return i;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every interface but the loop back, sorted; or only those that are devices, of which a machine
 * has few, while each of its containers may bring one that is none. */
static size_t list_names(const char *root, bool devices, char *names[INTERFACES_MAX])
{
	char path[4096];
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" CLASS, root);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (n < INTERFACES_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "lo") == 0)
			continue;
		if (!has(root, entry->d_name, "type")) /* a file of the bonding driver */
			continue;
		if (devices && !has(root, entry->d_name, "device"))
			continue;
		names[n] = strdup(entry->d_name);
		n += names[n] != NULL;
	}
	closedir(dir);
	qsort(names, n, sizeof(*names), by_name);
	return n;
}

enum rfl_rc rfl_surroundings__network(struct rfl_surroundings *s, const char *root,
				      struct rfl_err *err)
{
	char *names[INTERFACES_MAX];
	size_t n = list_names(root, true, names);
	enum rfl_rc rc = RFL_OK;

	if (n == 0)
		n = list_names(root, false, names);
	s->interfaces = rfl_arena_array(s->arena, n ? n : 1, sizeof(*s->interfaces));
	if (!s->interfaces)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking at the network");
	for (size_t i = 0; i < n; i++) {
		if (s->interfaces)
			s->interfaces[s->ninterfaces++] = look_at(s->arena, root, names[i]);
		free(names[i]);
	}
	return rc;
}
