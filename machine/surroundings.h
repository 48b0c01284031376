/*
 * surroundings.h - what surrounds a program: load, firmware, container, cloud, network and storage,
 * read from files of the system. Nothing is asked over a network, and no address, serial number or
 * user name is taken.
 */
#ifndef RFL_MACHINE_SURROUNDINGS_H
#define RFL_MACHINE_SURROUNDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

/** One network interface that is a device, or any but the loop back where none is one. */
struct rfl_interface {
	const char *name;       /**< "eth0"; an address in it is left out ("enx...") */
	const char *kind;       /**< "ethernet", "infiniband", "wifi", "virtual", "other" */
	const char *driver;     /**< "virtio_net"; NULL when not known */
	double speed_bit_per_s; /**< NaN when not known */
	enum rfl_known up;
};

/** Where a cloud put the machine; NULL: not known. */
struct rfl_cloud {
	const char *provider; /**< "Google Cloud" */
	const char *region, *zone;
	const char *instance_type; /**< "g2-standard-8" */
	const char *source;        /**< the files that say so, "a, b" */
};

struct rfl_surroundings {
	double load[3];            /**< processes that want to run, mean of 1, 5, 15 min; NaN */
	enum rfl_known turbo;      /**< the clock may go beyond the nominal one */
	const char *system_vendor; /**< by the firmware; NULL when not known */
	const char *system_product;
	const char *container;       /**< "docker", "podman", ...; NULL: none is seen */
	const char *container_image; /**< NULL when not known */
	struct rfl_cloud cloud;
	size_t ninterfaces;
	struct rfl_interface *interfaces; /**< by name */
	struct rfl_arena *arena;          /**< owns everything above */
};

/** Look around.
 * @param root  the folder under which /proc, /sys, /run and /etc lie; "" outside tests
 * @param ret   release with rfl_surroundings_free()
 * @return RFL_OK; RFL_ENOMEM */
enum rfl_rc rfl_surroundings_new(const char *root, struct rfl_surroundings **ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_surroundings_free(struct rfl_surroundings *s);

/** What a folder lies on; "" and -1 where it is not known. */
struct rfl_storage {
	char file_system[32]; /**< "ext4", "overlay" */
	char device[48];      /**< "NVMe SSD", "hard disk", "network file system", ... */
	int64_t size_bytes, free_bytes;
};

/** Look up a folder among the mounts.
 * @param root    as above; sizes are asked for only when it is ""
 * @param folder  absolute, without links; need not exist */
void rfl_storage_of(const char *root, const char *folder, struct rfl_storage *ret);

#endif
