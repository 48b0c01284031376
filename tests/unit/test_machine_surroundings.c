/*
 * Surroundings of a machine: load, container, cloud, network and storage, each from directories
 * made for the test; and this machine.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "machine/surroundings.h"
#include "tests/unit/file_rig.h"

static void put_link(const char *root, const char *path, const char *target)
{
	struct rfl_err err = RFL_ERR_INIT;
	char full[1024];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_ok(rfl_file_mkdirs_for(full, &err), &err);
	assert_int_equal(symlink(target, full), 0);
}

static void nothing_is_guessed(void **state)
{
	struct rfl_surroundings *s = rfl_surroundings_new(*state);
	struct rfl_storage st;

	assert_true(isnan(s->load[0]) && isnan(s->load[2]));
	assert_int_equal(s->turbo, RFL_NOT_KNOWN);
	assert_null(s->system_vendor);
	assert_null(s->container);
	assert_null(s->container_image);
	assert_null(s->cloud.provider);
	assert_null(s->cloud.zone);
	assert_null(s->cloud.source);
	assert_int_equal(s->ninterfaces, 0);
	rfl_surroundings_free(s);
	rfl_storage_of(*state, "/logs", &st);
	assert_string_equal(st.file_system, "");
	assert_string_equal(st.device, "");
	assert_int_equal(st.size_bytes, -1);
}

static void load_and_turbo(void **state)
{
	static const struct {
		const char *path, *text;
		enum rfl_known turbo;
	} cases[] = {
		{ "/sys/devices/system/cpu/cpufreq/boost", "0\n", RFL_NO },
		{ "/sys/devices/system/cpu/cpufreq/boost", "1\n", RFL_YES },
		{ "/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n", RFL_NO },
		{ "/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", RFL_YES },
	};

	put(*state, "/proc/loadavg", "0.52 1.58 2.59 1/597 12345\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_surroundings *s;

		put(*state, cases[i].path, cases[i].text);
		s = rfl_surroundings_new(*state);
		assert_int_equal(s->turbo, cases[i].turbo);
		assert_close(s->load[0], 0.52, 0);
		assert_close(s->load[2], 2.59, 0);
		rfl_surroundings_free(s);
	}
}

static void containers_and_their_images(void **state)
{
	static const struct {
		const char *path, *text, *name, *image;
	} cases[] = {
		{ "/a/proc/self/cgroup", "0::/user.slice\n", NULL, NULL },
		{ "/b/.dockerenv", "", "docker", NULL },
		{ "/c/run/.containerenv",
		  "engine=\"podman-4.3\"\nname=\"x\"\nimage=\"docker.io/pytorch/pytorch:2.9\"\n"
		  "imageid=\"0123\"\n",
		  "podman", "docker.io/pytorch/pytorch:2.9" },
		{ "/d/run/.containerenv", "", "podman", NULL },
		{ "/e/proc/self/cgroup", "12:cpu:/kubepods/burstable/pod1\n", "kubernetes", NULL },
		{ "/f/proc/self/cgroup", "3:cpu:/docker/0123456789\n", "docker", NULL },
		{ "/g/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn", NULL },
		{ "/h/.singularity.d/runscript", "", "apptainer", NULL },
		{ "/i/run/.containerenv", "baseimage=\"no\"\n", "podman", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_surroundings *s;
		char root[512];

		put(*state, cases[i].path, cases[i].text);
		snprintf(root, sizeof(root), "%s%.2s", (const char *)*state, cases[i].path);
		s = rfl_surroundings_new(root);
		if (cases[i].name)
			assert_string_equal(s->container, cases[i].name);
		else
			assert_null(s->container);
		if (cases[i].image)
			assert_string_equal(s->container_image, cases[i].image);
		else
			assert_null(s->container_image);
		rfl_surroundings_free(s);
	}
}

static void assert_text(const char *have, const char *expected)
{
	if (expected) {
		assert_non_null(have);
		assert_string_equal(have, expected);
	} else {
		assert_null(have);
	}
}

static void clouds(void **state)
{
	static const struct {
		const char *vendor, *product, *chassis, *data, *id; /* files; NULL: absent */
		const char *provider, *region, *zone, *type;
	} cases[] = {
		{ "Google", "Google Compute Engine", NULL,
		  "{\"v1\":{\"cloud_name\":\"gce\",\"region\":\"us-central1\","
		  "\"availability_zone\":\"us-central1-a\",\"instance_id\":\"42\"},"
		  "\"ds\":{\"meta_data\":{\"machine-type\":\"projects/1/machineTypes/"
		  "g2-standard-8\"}}}",
		  NULL, "Google Cloud", "us-central1", "us-central1-a", "g2-standard-8" },
		{ "Google", "Google Compute Engine", NULL, NULL, NULL, "Google Cloud", NULL, NULL,
		  NULL },
		{ "Amazon EC2", "g6.xlarge", NULL,
		  "{\"v1\":{\"cloud_name\":\"aws\",\"availability_zone\":\"eu-west-1b\","
		  "\"region\":\"eu-west-1\"}}",
		  NULL, "Amazon Web Services", "eu-west-1", "eu-west-1b", "g6.xlarge" },
		{ "Microsoft Corporation", "Virtual Machine", "7783-7084-3265-9085-8269-3286-77",
		  "{\"v1\":{\"cloud_name\":\"azure\",\"region\":\"westeurope\","
		  "\"availability_zone\":null},\"ds\":{\"meta_data\":{\"imds\":{\"compute\":{"
		  "\"vmSize\":\"Standard_NC4as_T4_v3\",\"zone\":\"2\"}}}}}",
		  NULL, "Microsoft Azure", "westeurope", "2", "Standard_NC4as_T4_v3" },
		{ "Microsoft Corporation", "Virtual Machine", NULL, NULL, NULL, NULL, NULL, NULL,
		  NULL }, /* Hyper-V on a desktop */
		{ "QEMU", "Standard PC", NULL, NULL, "hetzner\n", "Hetzner Cloud", NULL, NULL,
		  NULL },
		{ NULL, NULL, NULL, "{ not JSON", NULL, NULL, NULL, NULL, NULL },
		{ NULL, NULL, NULL, "[]", "nocloud", NULL, NULL, NULL, NULL },
		{ NULL, NULL, NULL, "{\"v1\":{\"region\":7},\"ds\":3}", NULL, NULL, NULL, NULL,
		  NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct {
			const char *path, *text;
		} files[] = {
			{ "/sys/class/dmi/id/sys_vendor", cases[i].vendor },
			{ "/sys/class/dmi/id/product_name", cases[i].product },
			{ "/sys/class/dmi/id/chassis_asset_tag", cases[i].chassis },
			{ "/run/cloud-init/instance-data.json", cases[i].data },
			{ "/run/cloud-init/cloud-id", cases[i].id },
		};
		struct rfl_surroundings *s;
		char root[512];

		snprintf(root, sizeof(root), "%s/%zu", (const char *)*state, i);
		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
			if (files[k].text)
				put(root, files[k].path, files[k].text);
		}
		s = rfl_surroundings_new(root);
		assert_text(s->cloud.provider, cases[i].provider);
		assert_text(s->cloud.region, cases[i].region);
		assert_text(s->cloud.zone, cases[i].zone);
		assert_text(s->cloud.instance_type, cases[i].type);
		assert_int_equal(s->cloud.source != NULL, cases[i].provider != NULL);
		rfl_surroundings_free(s);
	}
}

static void interfaces_without_addresses(void **state)
{
	struct rfl_surroundings *s;

	put(*state, "/sys/class/net/lo/type", "772\n");
	put(*state, "/sys/class/net/veth12/type", "1\n");
	put(*state, "/sys/class/net/bonding_masters", "");
	s = rfl_surroundings_new(*state);
	assert_int_equal(s->ninterfaces, 1); /* in a container there is nothing else */
	assert_string_equal(s->interfaces[0].kind, "virtual");
	assert_int_equal(s->interfaces[0].up, RFL_NOT_KNOWN);
	rfl_surroundings_free(s);

	put(*state, "/sys/class/net/eth0/type", "1\n");
	put(*state, "/sys/class/net/eth0/speed", "25000\n");
	put(*state, "/sys/class/net/eth0/operstate", "up\n");
	put(*state, "/sys/class/net/eth0/address", "02:42:ac:11:00:02\n");
	put_link(*state, "/sys/class/net/eth0/device/driver", "../../bus/pci/drivers/ena");
	put(*state, "/sys/class/net/ib0/type", "32\n");
	put(*state, "/sys/class/net/ib0/device/x", "");
	put(*state, "/sys/class/net/ib0/speed", "-1\n");
	put(*state, "/sys/class/net/ib0/operstate", "down\n");
	put(*state, "/sys/class/net/wlan0/type", "1\n");
	put(*state, "/sys/class/net/wlan0/wireless/x", "");
	put(*state, "/sys/class/net/wlan0/device/x", "");
	put(*state, "/sys/class/net/enx0242ac110002/type", "1\n");
	put(*state, "/sys/class/net/enx0242ac110002/device/x", "");
	for (int i = 100; i < 200; i++) { /* of containers */
		char path[64];

		snprintf(path, sizeof(path), "/sys/class/net/veth%d/type", i);
		put(*state, path, "1\n");
	}
	s = rfl_surroundings_new(*state);
	assert_int_equal(s->ninterfaces, 4); /* those that are devices */
	assert_string_equal(s->interfaces[0].name, "enx...");
	assert_string_equal(s->interfaces[1].name, "eth0");
	assert_string_equal(s->interfaces[1].kind, "ethernet");
	assert_string_equal(s->interfaces[1].driver, "ena");
	assert_close(s->interfaces[1].speed_bit_per_s, 25e9, 0);
	assert_int_equal(s->interfaces[1].up, RFL_YES);
	assert_string_equal(s->interfaces[2].kind, "infiniband");
	assert_true(isnan(s->interfaces[2].speed_bit_per_s));
	assert_int_equal(s->interfaces[2].up, RFL_NO);
	assert_string_equal(s->interfaces[3].kind, "wifi");
	rfl_surroundings_free(s);
}

static void folders_and_their_devices(void **state)
{
	static const struct {
		const char *folder, *file_system, *device;
	} cases[] = {
		{ "/home/logs", "ext4", "NVMe SSD" },
		{ "/data", "xfs", "hard disk" },
		{ "/data/set", "xfs", "hard disk" },
		{ "/database", "ext4", "NVMe SSD" },
		{ "/data/fast", "ext4", "SSD" },
		{ "/mnt/nfs/x", "nfs4", "network file system" },
		{ "/tmp/a", "tmpfs", "memory" },
		{ "/my disk/x", "btrfs", "virtual disk" },
		{ "/over", "overlay", "container layers" },
		{ "/odd", "zfs", "" },
	};

	put(*state, "/proc/self/mountinfo",
	    "20 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
	    "21 20 8:1 / /data rw - xfs /dev/sda1 rw\n"
	    "22 21 8:16 / /data/fast rw shared:7 master:2 - ext4 /dev/sdb rw\n"
	    "23 20 0:50 / /mnt/nfs rw - nfs4 server:/x rw\n"
	    "24 20 0:51 / /tmp rw - tmpfs tmpfs rw\n"
	    "25 20 0:52 / /my\\040disk rw - btrfs /dev/vda1 rw\n"
	    "26 20 0:53 / /over rw - overlay overlay rw\n"
	    "27 20 0:54 / /odd rw - zfs pool/set rw\n"
	    "not a line\n");
	put_link(*state, "/sys/dev/block/259:2", "../../devices/pci/nvme/nvme0n1/nvme0n1p2");
	put_link(*state, "/sys/dev/block/8:1", "../../devices/pci/sda/sda1");
	put_link(*state, "/sys/dev/block/8:16", "../../devices/pci/sdb");
	put(*state, "/sys/class/block/sdb/queue/rotational", "0\n");
	put(*state, "/sys/class/block/sda1/x", "");
	put(*state, "/sys/class/block/queue/rotational", "1\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_storage st;

		rfl_storage_of(*state, cases[i].folder, &st);
		assert_string_equal(st.file_system, cases[i].file_system);
		assert_string_equal(st.device, cases[i].device);
		assert_int_equal(st.free_bytes, -1); /* not asked of this machine */
	}
}

/* The options of a container's root name all of its layers. */
static void a_long_line_of_the_mounts_counts(void **state)
{
	struct rfl_storage st;
	struct rfl_buf line;

	rfl_buf_init(&line, 0);
	rfl_buf_puts(&line, "20 1 0:53 / / rw,relatime - overlay overlay rw,lowerdir=");
	for (int i = 0; i < 500; i++)
		rfl_buf_printf(&line, "/var/lib/docker/overlay2/l/%d:", i);
	rfl_buf_puts(&line, "x\n");
	put(*state, "/proc/self/mountinfo", rfl_buf_str(&line));
	rfl_buf_fini(&line);
	rfl_storage_of(*state, "/home", &st);
	assert_string_equal(st.file_system, "overlay");
	assert_string_equal(st.device, "container layers");
}

static void this_machine(void **state)
{
	struct rfl_surroundings *s = rfl_surroundings_new("");
	struct rfl_storage st;

	assert_true(s->load[0] >= 0);
	for (size_t i = 0; i < s->ninterfaces; i++)
		assert_string_not_equal(s->interfaces[i].name, "lo");
	rfl_surroundings_free(s);
	rfl_storage_of("", *state, &st);
	/* a root that was only changed to is in no list of mounts: its file system is not known */
	assert_true(st.size_bytes > 0 && st.free_bytes >= 0 && st.free_bytes <= st.size_bytes);
	rfl_storage_of("", "/no/such/directory", &st);
	assert_true(st.size_bytes > 0); /* of what is there of it */
	rfl_surroundings_free(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_guessed),
		TEST(load_and_turbo),
		TEST(containers_and_their_images),
		TEST(clouds),
		TEST(interfaces_without_addresses),
		TEST(folders_and_their_devices),
		TEST(a_long_line_of_the_mounts_counts),
		TEST(this_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
