/*
 * storage.c - what kind of device a folder lies on, by the table of mounts and the block devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
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

/* The mount of a folder: the last one with the longest point, because a later one hides an earlier.
 */
static bool find_mount(const char *root, const char *folder, struct mount *ret)
{
	const size_t size = (size_t)1 << 20;
	char *table = malloc(size), *next;
	bool found = false;
	size_t best = 0;

	if (!table || !rfl_machine__slurp(root, table, size, "/proc/self/mountinfo"))
		goto done;
	for (char *line = table; line; line = next) {
		struct mount m;
		const char *dash;
		char *to = m.point;
		size_t covered;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		dash = strstr(line, " - ");
		if (!dash || sscanf(line, "%*s %*s %31s %*s %1023s", m.device, m.point) != 2 ||
		    sscanf(dash, " - %31s %255s", m.fs, m.source) != 2)
			continue;
		for (const char *from = m.point; *from; from++) { /* "\040" is a blank */
			if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
				*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 +
					       from[3] - '0');
				from += 3;
			} else {
				*to++ = *from;
			}
		}
		*to = '\0';
		covered = strcmp(m.point, "/") == 0 ? 0 : strlen(m.point);
		if (covered >= best && strncmp(m.point, folder, covered) == 0 &&
		    (covered == 0 || folder[covered] == '/' || folder[covered] == '\0')) {
			best = covered;
			found = true;
			*ret = m;
		}
	}
done:
	free(table);
	return found;
}

/* The kernel's name of the device: /sys/dev/block/8:1 is a link to .../sda/sda1. */
static bool device_name(const char *root, const struct mount *m, char *out, size_t size)
{
	char path[512], target[512];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/dev/block/%s", root, m->device);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0 && strncmp(m->source, "/dev/", 5) != 0)
		return false;
	target[n > 0 ? n : 0] = '\0'; /* btrfs has a number of its own */
	snprintf(out, size, "%.64s", rfl_path_base(n > 0 ? target : m->source));
	return true;
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
	static const char *const places[] = { "queue", "../queue" }; /* of a disk, of a partition */
	const struct kind *kind =
		find_kind(by_file_system, RFL_ARRAY_LEN(by_file_system), m->fs, false);
	char name[256];
	int64_t rotates;

	if (kind)
		return kind->device;
	if (!device_name(root, m, name, sizeof(name)))
		return "";
	kind = find_kind(by_name, RFL_ARRAY_LEN(by_name), name, true);
	if (!kind)
		return "";
	for (size_t i = 0; !kind->device && i < RFL_ARRAY_LEN(places); i++)
		if (rfl_machine__slurp_int(root, &rotates, "/sys/class/block/%s/%s/rotational",
					   name, places[i]))
			return rotates ? "hard disk" : "SSD";
	return kind->device ? kind->device : "";
}

void rfl_storage_of(const char *root, const char *folder, struct rfl_storage *ret)
{
	char path[4096], *slash;
	struct statvfs v;
	struct mount m;

	*ret = (struct rfl_storage){ .size_bytes = -1, .free_bytes = -1 };
	if (root[0] == '\0') { /* of the nearest folder that exists */
		snprintf(path, sizeof(path), "%s", folder);
		while (statvfs(path, &v) != 0 && path[1] != '\0' && (slash = strrchr(path, '/')))
			slash[slash == path] = '\0';
		if (statvfs(path, &v) == 0) {
			ret->size_bytes = (int64_t)v.f_blocks * (int64_t)v.f_frsize;
			ret->free_bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
		}
	}
	if (!find_mount(root, folder, &m))
		return;
	snprintf(ret->file_system, sizeof(ret->file_system), "%s", m.fs);
	snprintf(ret->device, sizeof(ret->device), "%s", device_class(root, &m));
}
