/*
 * cloud.c - which cloud a machine is rented from, where and as what: by the firmware's names and by
 * the files that cloud-init leaves.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "machine/surroundings_parts.h"

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
	char path[128], text[256];

	for (size_t i = 0; i < RFL_ARRAY_LEN(firmware) && !s->cloud.provider; i++) {
		snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", firmware[i].file);
		if (!rfl_machine__slurp(root, path, text, sizeof(text)) ||
		    strcmp(text, firmware[i].value) != 0)
			continue;
		s->cloud.provider = firmware[i].provider;
		name_source(s, "/sys/class/dmi/id");
		if (firmware[i].type)
			s->cloud.instance_type = s->system_product;
	}
}

/* "projects/123/machineTypes/g2-standard-8": the last part is the name. */
static const char *last_part(const char *text)
{
	const char *slash = strrchr(text, '/');

	return slash ? slash + 1 : text;
}

static const char *look_up(const json_t *data, const char *const paths[][6], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *at = data;

		for (size_t k = 0; k < 6 && paths[i][k]; k++)
			at = json_object_get(at, paths[i][k]);
		if (json_is_string(at) && json_string_length(at) > 0)
			return last_part(json_string_value(at));
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

/* What the firmware told stands. */
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

	if (s->cloud.provider || !rfl_machine__slurp(root, file, id, sizeof(id)))
		return;
	s->cloud.provider = provider_of(id);
	if (s->cloud.provider)
		name_source(s, file);
}

void rfl_surroundings__cloud(struct rfl_surroundings *s, const char *root)
{
	by_firmware(s, root);
	by_cloud_init(s, root);
	by_cloud_id(s, root);
}
