/*
 * surroundings.c - load, turbo, firmware, container; the cloud that a machine is rented from, by
 * the firmware's names and cloud-init's files; network interfaces, without their addresses.
 */
#include "machine/surroundings.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void read_load(struct rfl_surroundings *s, const char *root)
{
	char text[128];

	s->load[0] = s->load[1] = s->load[2] = NAN;
	if (rfl_machine__slurp(root, text, sizeof(text), "/proc/loadavg") &&
	    sscanf(text, "%lf %lf %lf", &s->load[0], &s->load[1], &s->load[2]) != 3)
		s->load[0] = s->load[1] = s->load[2] = NAN;
}

static enum rfl_known read_turbo(const char *root)
{
	int64_t value;

	if (rfl_machine__slurp_int(root, &value, "/sys/devices/system/cpu/intel_pstate/no_turbo"))
		return value ? RFL_NO : RFL_YES;
	if (rfl_machine__slurp_int(root, &value, "/sys/devices/system/cpu/cpufreq/boost"))
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
	if (rfl_machine__slurp(root, text, sizeof(text), "/run/systemd/container"))
		return rfl_arena_strdup(s->arena, text);
	if (!rfl_machine__slurp(root, text, sizeof(text), "/proc/self/cgroup"))
		return NULL;
	for (size_t i = 0; i < RFL_ARRAY_LEN(groups); i++) {
		if (strstr(text, groups[i].word))
			return groups[i].name;
	}
	return NULL;
}

/* ---- cloud ---- */

/* What the firmware or the chassis calls itself; `type`: product_name is the type of instance. */
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

/* cloud-init's names. */
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

/* Where cloud-init's instance-data.json has a fact; the first that is a text counts. */
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

static const char *keep(struct rfl_surroundings *s, const char *text)
{
	return text && *text ? rfl_arena_strdup(s->arena, text) : NULL;
}

static void name_source(struct rfl_surroundings *s, const char *file)
{
	s->cloud.source = s->cloud.source
				  ? rfl_arena_printf(s->arena, "%s, %s", s->cloud.source, file)
				  : file;
}

static void by_firmware(struct rfl_surroundings *s, const char *root)
{
	char text[256];

	for (size_t i = 0; i < RFL_ARRAY_LEN(firmware) && !s->cloud.provider; i++) {
		if (!rfl_machine__slurp(root, text, sizeof(text), "/sys/class/dmi/id/%s",
					firmware[i].file) ||
		    strcmp(text, firmware[i].value) != 0)
			continue;
		s->cloud.provider = firmware[i].provider;
		name_source(s, "/sys/class/dmi/id");
		if (firmware[i].type)
			s->cloud.instance_type = s->system_product;
	}
}

/* Of "projects/123/machineTypes/g2-standard-8" the last part is the name. */
static const char *look_up(const json_t *data, const char *const paths[][6], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *at = data;

		for (size_t k = 0; k < 6 && paths[i][k]; k++)
			at = json_object_get(at, paths[i][k]);
		if (json_is_string(at) && json_string_length(at) > 0)
			return rfl_path_base(json_string_value(at));
	}
	return NULL;
}

static const char *provider_of(const char *id)
{
	for (size_t i = 0; id && i < RFL_ARRAY_LEN(by_id); i++) {
		if (strcmp(id, by_id[i].id) == 0)
			return by_id[i].provider;
	}
	return NULL;
}

/* What the firmware says takes precedence. */
static void by_cloud_init(struct rfl_surroundings *s, const char *root)
{
	static const char file[] = "/run/cloud-init/instance-data.json";
	struct rfl_cloud *c = &s->cloud;
	json_t *data = NULL;
	const json_t *v1;
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", root, file);
	if (rfl_json_load(path, &data, NULL) != RFL_OK) /* there is none, or not for us */
		return;
	v1 = json_object_get(data, "v1");
	if (!c->provider)
		c->provider = provider_of(json_string_value(json_object_get(v1, "cloud_id")));
	if (!c->provider)
		c->provider = provider_of(json_string_value(json_object_get(v1, "cloud_name")));
	c->region = keep(s, look_up(data, region_paths, RFL_ARRAY_LEN(region_paths)));
	c->zone = keep(s, look_up(data, zone_paths, RFL_ARRAY_LEN(zone_paths)));
	if (!c->instance_type)
		c->instance_type = keep(s, look_up(data, type_paths, RFL_ARRAY_LEN(type_paths)));
	if (c->provider || c->region || c->zone || c->instance_type)
		name_source(s, file);
	json_decref(data);
}

static void by_cloud_id(struct rfl_surroundings *s, const char *root)
{
	static const char file[] = "/run/cloud-init/cloud-id";
	char id[64];

	if (s->cloud.provider || !rfl_machine__slurp(root, id, sizeof(id), "%s", file))
		return;
	s->cloud.provider = provider_of(id);
	if (s->cloud.provider)
		name_source(s, file);
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

static const char *kind_of(const char *root, const char *name)
{
	int64_t type;

	if (has(root, name, "wireless") || has(root, name, "phy80211"))
		return "wifi";
	if (!rfl_machine__slurp_int(root, &type, CLASS "/%s/type", name))
		return "other";
	if (type == TYPE_INFINIBAND)
		return "infiniband";
	if (type != TYPE_ETHERNET)
		return "other";
	return has(root, name, "device") ? "ethernet" : "virtual";
}

/* udev names an interface that it cannot place after its address: "enx0123456789ab". */
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
	ssize_t n;

	snprintf(path, sizeof(path), "%s" CLASS "/%s/device/driver", root, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	return rfl_arena_strdup(arena, rfl_path_base(target));
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
	char state[32];
	int64_t mbit;

	if (rfl_machine__slurp_int(root, &mbit, CLASS "/%s/speed", name) && mbit > 0)
		i.speed_bit_per_s = (double)mbit * 1e6;
	if (rfl_machine__slurp(root, state, sizeof(state), CLASS "/%s/operstate", name) &&
	    strcmp(state, "unknown") != 0)
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

static enum rfl_rc find_interfaces(struct rfl_surroundings *s, const char *root,
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

enum rfl_rc rfl_surroundings_new(const char *root, struct rfl_surroundings **ret,
				 struct rfl_err *err)
{
	struct rfl_surroundings *s = calloc(1, sizeof(*s));
	char text[8192], image[4096];
	enum rfl_rc rc;

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
	if (rfl_machine__slurp(root, text, sizeof(text), "/run/.containerenv") &&
	    rfl_machine__value(text, "image", '=', image, sizeof(image)))
		s->container_image = rfl_arena_strdup(s->arena, image);
	by_firmware(s, root);
	by_cloud_init(s, root);
	by_cloud_id(s, root);
	rc = find_interfaces(s, root, err);
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
