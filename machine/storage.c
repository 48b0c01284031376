/*
 * storage.c - what kind of device a folder lies on, by the table of mounts and the block devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "machine/machine_parts.h"
#include "machine/surroundings.h"

/* Kinds of devices. Names of file systems are enough for some, else those of block devices begin
 * so; `device` NULL: what the device itself says decides. */
static const struct kind {
	const char *device;
	const char *names[12];
} by_file_system[] = {
	{ "network file system",
	  { "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "afs",
	    "fuse.sshfs" } },
	{ "object store", { "fuse.gcsfuse", "fuse.s3fs" } },
	{ "folder of the host", { "9p", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse" } },
	{ "memory", { "tmpfs", "ramfs" } },
	{ "layers of a container", { "overlay" } },
}, by_name[] = {
	{ "NVMe SSD", { "nvme" } },
	{ "virtual disk", { "vd", "xvd" } },
	{ "memory card", { "mmcblk" } },
	{ "persistent memory", { "pmem" } },
	{ "network block device", { "nbd", "rbd" } },
	{ "file as a disk", { "loop" } },
	{ NULL, { "sd", "hd", "dm-", "md" } },
};

/* One line of mountinfo: id parent major:minor root mount-point options ... - fs source ... */
struct mount {
	char device[32], point[1024], fs[32], source[256];
};

/* "\040" of the table is a blank. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
		    from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* The options at the end of a line, which name every layer of a container, may be cut. */
static bool parse_mount(const char *line, size_t len, struct mount *m)
{
	char text[4096];
	const char *dash;

	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, line, len);
	text[len] = '\0';
	dash = strstr(text, " - ");
	if (!dash || sscanf(text, "%*s %*s %31s %*s %1023s", m->device, m->point) != 2 ||
	    sscanf(dash, " - %31s %255s", m->fs, m->source) != 2)
		return false;
	unescape(m->point);
	return true;
}

/* How much of the folder's path the mount covers; 0: it does not. */
static size_t covers(const struct mount *m, const char *folder)
{
	size_t len = strlen(m->point);

	if (strcmp(m->point, "/") == 0)
		return 1;
	if (strncmp(m->point, folder, len) != 0 || (folder[len] != '/' && folder[len] != '\0'))
		return 0;
	return len + 1;
}

/* The last mount with the longest point: a later one hides an earlier. */
static bool find_mount(const char *root, const char *folder, struct mount *ret)
{
	const size_t size = (size_t)1 << 20;
	char *table = malloc(size);
	size_t best = 0;

	if (!table || !rfl_machine__slurp(root, table, size, "/proc/self/mountinfo")) {
		free(table);
		return false;
	}
	for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct mount m;
		size_t covered;

		if (!parse_mount(line, strcspn(line, "\n"), &m))
			continue;
		covered = covers(&m, folder);
		if (covered > 0 && covered >= best) {
			best = covered;
			*ret = m;
		}
	}
	free(table);
	return best > 0;
}

/* The kernel's name of the device: /sys/dev/block/8:1 is a link to .../sda/sda1. */
static bool device_name(const char *root, const struct mount *m, char *out, size_t size)
{
	char path[512], target[512];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/dev/block/%s", root, m->device);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		base = strrchr(target, '/');
		snprintf(out, size, "%.64s", base ? base + 1 : target);
		return true;
	}
	if (strncmp(m->source, "/dev/", 5) != 0) /* btrfs has a number of its own */
		return false;
	snprintf(out, size, "%.64s", strrchr(m->source, '/') + 1);
	return true;
}

static const char *rotating(const char *root, const char *name)
{
	static const char *const places[] = { "queue", "../queue" }; /* of a disk, of a partition */
	int64_t value;

	for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++) {
		if (rfl_machine__slurp_int(root, &value, "/sys/class/block/%s/%s/rotational", name,
					   places[i]))
			return value ? "hard disk" : "SSD";
	}
	return "";
}

static const struct kind *find_kind(const struct kind *kinds, size_t n, const char *name,
				    bool prefix)
{
	for (size_t i = 0; i < n; i++)
		for (const char *const *known = kinds[i].names; *known; known++)
			if (strncmp(name, *known, strlen(*known) + !prefix) == 0)
				return &kinds[i];
	return NULL;
}

static const char *device_class(const char *root, const struct mount *m)
{
	const struct kind *kind =
		find_kind(by_file_system, RFL_ARRAY_LEN(by_file_system), m->fs, false);
	char name[256];

	if (kind)
		return kind->device;
	if (!device_name(root, m, name, sizeof(name)))
		return "";
	kind = find_kind(by_name, RFL_ARRAY_LEN(by_name), name, true);
	if (!kind)
		return "";
	return kind->device ? kind->device : rotating(root, name);
}

/* Of the nearest folder that exists. */
static void ask_sizes(const char *folder, struct rfl_storage *ret)
{
	char path[4096];
	struct statvfs v;

	snprintf(path, sizeof(path), "%s", folder);
	while (statvfs(path, &v) != 0) {
		char *slash = strrchr(path, '/');

		if (!slash || path[1] == '\0')
			return;
		slash[slash == path] = '\0';
	}
	ret->size_bytes = (int64_t)v.f_blocks * (int64_t)v.f_frsize;
	ret->free_bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

void rfl_storage_of(const char *root, const char *folder, struct rfl_storage *ret)
{
	struct mount m;

	*ret = (struct rfl_storage){ .size_bytes = -1, .free_bytes = -1 };
	if (root[0] == '\0')
		ask_sizes(folder, ret);
	if (!find_mount(root, folder, &m))
		return;
	snprintf(ret->file_system, sizeof(ret->file_system), "%s", m.fs);
	snprintf(ret->device, sizeof(ret->device), "%s", device_class(root, &m));
}
