/*
 * surroundings.c - load, turbo, firmware and container; the cloud, from firmware names and
 * cloud-init's files; network interfaces, without addresses; the storage device of a directory.
 */
#include "machine/surroundings.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "machine/machine_parts.h"

static const char *slurp_text(struct rfl_surroundings *s, const char *root, const char *path)
{
	char text[256];

	return rfl_machine__slurp(root, text, sizeof(text), "%s", path)
		       ? rfl_arena_strdup(s->arena, text)
		       : NULL;
}

/* Files that container runtimes create; the first that exists names the runtime. */
static const struct {
	const char *path, *name;
} marks[] = {
	{ "/var/run/secrets/kubernetes.io", "kubernetes" },
	{ "/run/.containerenv", "podman" },
	{ "/.dockerenv", "docker" },
	{ "/.singularity.d", "apptainer" },
};

/* Substrings of control-group paths. */
static const struct {
	const char *word, *name;
} groups[] = {
	{ "kubepods", "kubernetes" },   { "/docker", "docker" },
	{ "/libpod", "podman" },        { "/lxc", "lxc" },
	{ "containerd", "containerd" }, { "machine.slice", "systemd-nspawn" },
};

/* Find our container and its image. */
static void find_container(struct rfl_surroundings *s, const char *root)
{
	char text[8192], image[4096];
	struct stat st;

	if (rfl_machine__slurp(root, text, sizeof(text), "/run/.containerenv") &&
	    rfl_machine__value(text, "image", '=', image, sizeof(image)))
		s->container_image = rfl_arena_strdup(s->arena, image);
	for (size_t i = 0; i < RFL_ARRAY_LEN(marks) && !s->container; i++) {
		snprintf(text, sizeof(text), "%s%s", root, marks[i].path);
		if (stat(text, &st) == 0)
			s->container = marks[i].name;
	}
	if (!s->container)
		s->container = slurp_text(s, root, "/run/systemd/container");
	if (s->container || !rfl_machine__slurp(root, text, sizeof(text), "/proc/self/cgroup"))
		return;
	for (size_t i = 0; i < RFL_ARRAY_LEN(groups) && !s->container; i++)
		if (strstr(text, groups[i].word))
			s->container = groups[i].name;
}

/* Files of /sys/class/dmi/id and their values; `type`: product_name is the instance type. */
static const struct {
	const char *file, *value, *provider;
	bool type;
} firmware[] = {
	{ "product_name", "Google Compute Engine", "Google Cloud", false },
	{ "sys_vendor", "Amazon EC2", "Amazon Web Services", true },
	{ "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", "Microsoft Azure", false },
	{ "chassis_asset_tag", "OracleCloud.com", "Oracle Cloud", false },
	{ "sys_vendor", "Alibaba Cloud", "Alibaba Cloud", false },
	{ "sys_vendor", "Tencent Cloud", "Tencent Cloud", false },
	{ "sys_vendor", "DigitalOcean", "DigitalOcean", false },
	{ "sys_vendor", "Hetzner", "Hetzner Cloud", false },
	{ "sys_vendor", "Scaleway", "Scaleway", false },
	{ "sys_vendor", "Akamai", "Akamai", false },
	{ "sys_vendor", "Linode", "Akamai", false },
	{ "sys_vendor", "Vultr", "Vultr", false },
	{ "sys_vendor", "UpCloud", "UpCloud", false },
	{ "sys_vendor", "Exoscale", "Exoscale", false },
	{ "sys_vendor", "OpenStack Foundation", "OpenStack", false },
	{ "product_name", "OpenStack Compute", "OpenStack", false },
	{ "product_name", "OpenStack Nova", "OpenStack", false },
};

/* cloud-init's provider names. */
static const struct {
	const char *id, *provider;
} by_id[] = {
	{ "gce", "Google Cloud" },        { "aws", "Amazon Web Services" },
	{ "ec2", "Amazon Web Services" }, { "azure", "Microsoft Azure" },
	{ "oracle", "Oracle Cloud" },     { "aliyun", "Alibaba Cloud" },
	{ "tencent", "Tencent Cloud" },   { "digitalocean", "DigitalOcean" },
	{ "hetzner", "Hetzner Cloud" },   { "scaleway", "Scaleway" },
	{ "akamai", "Akamai" },           { "vultr", "Vultr" },
	{ "upcloud", "UpCloud" },         { "exoscale", "Exoscale" },
	{ "openstack", "OpenStack" },     { "lxd", "LXD" },
	{ "vmware", "VMware" },           { "ibmcloud", "IBM Cloud" },
};

/* Paths of a value in cloud-init's instance-data.json; the first that contains a string is used. */
static const char *const region_paths[][6] = {
	{ "v1", "region" },
	{ "ds", "meta_data", "imds", "compute", "location" },
	{ "ds", "meta_data", "placement", "region" },
};
static const char *const zone_paths[][6] = {
	{ "v1", "availability_zone" },
	{ "v1", "availability-zone" },
	{ "ds", "meta_data", "imds", "compute", "zone" },
	{ "ds", "meta_data", "placement", "availability-zone" },
};
static const char *const type_paths[][6] = {
	{ "ds", "meta_data", "instance-type" },
	{ "ds", "meta_data", "instance_type" },
	{ "ds", "meta_data", "machine-type" },
	{ "ds", "meta_data", "imds", "compute", "vmSize" },
	{ "ds", "meta_data", "instance", "instance-type" },
	{ "ds", "meta_data", "shape" },
};

/* Return the string at the first path that contains one; only the last part of
 * "projects/123/machineTypes/g2-standard-8". */
static const char *look_up(struct rfl_surroundings *s, const json_t *data,
			   const char *const paths[][6], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *at = data;

		for (size_t k = 0; k < 6 && paths[i][k]; k++)
			at = json_object_get(at, paths[i][k]);
		if (json_is_string(at) && json_string_length(at) > 0) {
			const char *text = rfl_path_base(json_string_value(at));

			return *text ? rfl_arena_strdup(s->arena, text) : NULL;
		}
	}
	return NULL;
}

static const char *provider_of(const char *id)
{
	for (size_t i = 0; id && i < RFL_ARRAY_LEN(by_id); i++)
		if (strcmp(id, by_id[i].id) == 0)
			return by_id[i].provider;
	return NULL;
}

/* Firmware names take precedence over cloud-init's files. */
static void find_cloud(struct rfl_surroundings *s, const char *root)
{
	static const char file[] = "/run/cloud-init/instance-data.json";
	static const char id_file[] = "/run/cloud-init/cloud-id";
	static const char *const keys[] = { "cloud_id", "cloud_name" };
	struct rfl_cloud *c = &s->cloud;
	const char *sources[3];
	size_t nsources = 0;
	json_t *data = NULL, *v1;
	char text[4096];

	for (size_t i = 0; i < RFL_ARRAY_LEN(firmware) && !c->provider; i++) {
		if (!rfl_machine__slurp(root, text, sizeof(text), "/sys/class/dmi/id/%s",
					firmware[i].file) ||
		    strcmp(text, firmware[i].value) != 0)
			continue;
		c->provider = firmware[i].provider;
		sources[nsources++] = "/sys/class/dmi/id";
		if (firmware[i].type)
			c->instance_type = s->system_product;
	}
	snprintf(text, sizeof(text), "%s%s", root, file);
	if (rfl_json_load(text, &data, NULL) == RFL_OK) { /* else absent or unreadable */
		v1 = json_object_get(data, "v1");
		for (size_t i = 0; i < RFL_ARRAY_LEN(keys) && !c->provider; i++)
			c->provider = provider_of(json_string_value(json_object_get(v1, keys[i])));
		c->region = look_up(s, data, region_paths, RFL_ARRAY_LEN(region_paths));
		c->zone = look_up(s, data, zone_paths, RFL_ARRAY_LEN(zone_paths));
		if (!c->instance_type)
			c->instance_type = look_up(s, data, type_paths, RFL_ARRAY_LEN(type_paths));
		if (c->provider || c->region || c->zone || c->instance_type)
			sources[nsources++] = file;
		json_decref(data);
	}
	if (!c->provider && rfl_machine__slurp(root, text, sizeof(text), "%s", id_file)) {
		c->provider = provider_of(text);
		if (c->provider)
			sources[nsources++] = id_file;
	}
	for (size_t i = 0; i < nsources; i++)
		c->source = i ? rfl_arena_printf(s->arena, "%s, %s", c->source, sources[i])
			      : sources[i];
}

/* ---- network ---- */

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

static struct rfl_interface look_at(struct rfl_arena *arena, const char *root, const char *name)
{
	struct rfl_interface i = { .kind = "other", .speed_bit_per_s = NAN, .up = RFL_NOT_KNOWN };
	char path[4096], target[4096], state[32];
	size_t digits = 0;
	int64_t type, mbit;
	ssize_t n;

	/* udev names some interfaces by their address: "enx0123456789ab" */
	while (digits < 12 && strlen(name) == 15 && isxdigit((unsigned char)name[3 + digits]))
		digits++;
	i.name = digits == 12 ? rfl_arena_printf(arena, "%.3s...", name)
			      : rfl_arena_strdup(arena, name);

	if (has(root, name, "wireless") || has(root, name, "phy80211"))
		i.kind = "wifi";
	else if (!rfl_machine__slurp_int(root, &type, CLASS "/%s/type", name))
		i.kind = "other";
	else if (type == TYPE_INFINIBAND)
		i.kind = "infiniband";
	else if (type == TYPE_ETHERNET)
		i.kind = has(root, name, "device") ? "ethernet" : "virtual";

	snprintf(path, sizeof(path), "%s" CLASS "/%s/device/driver", root, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		i.driver = rfl_arena_strdup(arena, rfl_path_base(target));
	}
	if (rfl_machine__slurp_int(root, &mbit, CLASS "/%s/speed", name) && mbit > 0)
		i.speed_bit_per_s = (double)mbit * 1e6;
	if (rfl_machine__slurp(root, state, sizeof(state), CLASS "/%s/operstate", name) &&
	    strcmp(state, "unknown") != 0)
		i.up = strcmp(state, "up") == 0 ? RFL_YES : RFL_NO;
	return i;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* List only hardware devices, if any exist: a machine has few of them, while every container may
 * add a virtual interface. Otherwise list all interfaces except loopback. */
static void find_interfaces(struct rfl_surroundings *s, const char *root)
{
	char path[4096];
	struct dirent **entries = NULL;
	int n, devices = 0;

	snprintf(path, sizeof(path), "%s" CLASS, root);
	n = scandir(path, &entries, NULL, by_name);
	s->interfaces = rfl_arena_array(s->arena, INTERFACES_MAX, sizeof(*s->interfaces));
	for (int i = 0; i < n; i++)
		devices += has(root, entries[i]->d_name, "device");
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		/* the check of "type" skips the file bonding_masters */
		if (s->interfaces && s->ninterfaces < INTERFACES_MAX && name[0] != '.' &&
		    strcmp(name, "lo") != 0 && has(root, name, "type") &&
		    (devices == 0 || has(root, name, "device")))
			s->interfaces[s->ninterfaces++] = look_at(s->arena, root, name);
		free(entries[i]);
	}
	free(entries);
}

struct rfl_surroundings *rfl_surroundings_new(const char *root)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_surroundings *s = rfl_arena_array(arena, 1, sizeof(*s));
	int64_t value;
	char text[128];

	s->arena = arena;
	if (!rfl_machine__slurp(root, text, sizeof(text), "/proc/loadavg") ||
	    sscanf(text, "%lf %lf %lf", &s->load[0], &s->load[1], &s->load[2]) != 3)
		s->load[0] = s->load[1] = s->load[2] = NAN;
	s->turbo = RFL_NOT_KNOWN;
	if (rfl_machine__slurp_int(root, &value, "/sys/devices/system/cpu/intel_pstate/no_turbo"))
		s->turbo = value ? RFL_NO : RFL_YES;
	else if (rfl_machine__slurp_int(root, &value, "/sys/devices/system/cpu/cpufreq/boost"))
		s->turbo = value ? RFL_YES : RFL_NO;
	s->system_vendor = slurp_text(s, root, "/sys/class/dmi/id/sys_vendor");
	s->system_product = slurp_text(s, root, "/sys/class/dmi/id/product_name");
	find_container(s, root);
	find_cloud(s, root);
	find_interfaces(s, root);
	return s;
}

void rfl_surroundings_free(struct rfl_surroundings *s)
{
	if (s)
		rfl_arena_free(s->arena);
}

/* ---- storage, from the mount table and the block devices ---- */

/* Kinds of devices, by the name of the file system, else by the prefix of the block device's name;
 * if `device` is NULL, the block device's file "rotational" decides. */
static const struct kind {
	const char *device;
	const char *names[12];
} by_file_system[] = {
	{ "network file system",
	  { "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "afs",
	    "fuse.sshfs" } },
	{ "object store", { "fuse.gcsfuse", "fuse.s3fs" } },
	{ "host folder", { "9p", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse" } },
	{ "memory", { "tmpfs", "ramfs" } },
	{ "container layers", { "overlay" } },
}, by_device[] = {
	{ "NVMe SSD", { "nvme" } },
	{ "virtual disk", { "vd", "xvd" } },
	{ "memory card", { "mmcblk" } },
	{ "persistent memory", { "pmem" } },
	{ "network block device", { "nbd", "rbd" } },
	{ "disk image file", { "loop" } },
	{ NULL, { "sd", "hd", "dm-", "md" } },
};

/* One line of mountinfo: id parent major:minor root mount-point options ... - fs source ... */
struct mount {
	char device[32], point[1024], fs[32], source[256];
};

/* The mount of a directory: the last with the longest mount point, because later mounts hide
 * earlier mounts. */
static bool find_mount(const char *root, const char *folder, struct mount *ret)
{
	const size_t size = (size_t)1 << 20;
	char *table = rfl_alloc_array(size, 1), *next;
	bool found = false;
	size_t best = 0;

	if (!rfl_machine__slurp(root, table, size, "/proc/self/mountinfo"))
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
		for (const char *from = m.point; *from; from++) { /* "\040" is a space */
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
	static const char *const places[] = { "", "../" }; /* of a disk, of a partition */
	const struct kind *kind =
		find_kind(by_file_system, RFL_ARRAY_LEN(by_file_system), m->fs, false);
	char name[512], target[512];
	int64_t rotates;
	ssize_t n;

	if (kind)
		return kind->device;
	/* Find the kernel's name of the device: /sys/dev/block/8:1 is a link to .../sda/sda1. */
	snprintf(name, sizeof(name), "%s/sys/dev/block/%s", root, m->device);
	n = readlink(name, target, sizeof(target) - 1);
	if (n <= 0 && strncmp(m->source, "/dev/", 5) != 0)
		return "";
	target[n > 0 ? n : 0] = '\0'; /* btrfs uses device numbers that are not in /sys */
	snprintf(name, sizeof(name), "%.64s", rfl_path_base(n > 0 ? target : m->source));
	kind = find_kind(by_device, RFL_ARRAY_LEN(by_device), name, true);
	if (!kind)
		return "";
	for (size_t i = 0; !kind->device && i < RFL_ARRAY_LEN(places); i++)
		if (rfl_machine__slurp_int(root, &rotates, "/sys/class/block/%s/%squeue/rotational",
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
	if (root[0] == '\0') { /* sizes at the directory or its nearest existing ancestor */
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
