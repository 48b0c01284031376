/*
 * surroundings.h - load, firmware, container, cloud, network and storage, read from system files.
 * No network request is made, and no address, serial number or user name is read.
 */
#ifndef RFL_MACHINE_SURROUNDINGS_H
#define RFL_MACHINE_SURROUNDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

/** A network interface: a hardware device or, if none exists, any interface except loopback. */
struct rfl_interface {
	const char *name;       /**< "eth0"; an address in the name is removed ("enx...") */
	const char *kind;       /**< "ethernet", "infiniband", "wifi", "virtual", "other" */
	const char *driver;     /**< "virtio_net"; NULL if unknown */
	double speed_bit_per_s; /**< NaN if unknown */
	enum rfl_known up;
};

/** Cloud provider and location; NULL: unknown. */
struct rfl_cloud {
	const char *provider; /**< "Google Cloud" */
	const char *region, *zone;
	const char *instance_type; /**< "g2-standard-8" */
	const char *source;        /**< files that these values were read from: "a, b" */
};

struct rfl_surroundings {
	double load[3];            /**< mean runnable processes over 1, 5, 15 min, or NaN */
	enum rfl_known turbo;      /**< clocks above the nominal clock are enabled */
	const char *system_vendor; /**< from the firmware; NULL if unknown */
	const char *system_product;
	const char *container;       /**< "docker", "podman", ...; NULL: none detected */
	const char *container_image; /**< NULL if unknown */
	struct rfl_cloud cloud;
	size_t ninterfaces;
	struct rfl_interface *interfaces; /**< sorted by name */
	struct rfl_arena *arena;          /**< owns everything above */
};

/** Describe the surroundings.
 * @param root  the directory that contains /proc, /sys, /run and /etc; "" outside tests
 * @return release with rfl_surroundings_free() */
struct rfl_surroundings *rfl_surroundings_new(const char *root) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_surroundings_free(struct rfl_surroundings *s);
RFL_AUTOPTR_TYPE(surroundings, free);

/** The storage of a directory; "" and -1: unknown. */
struct rfl_storage {
	char file_system[32]; /**< "ext4", "overlay" */
	char device[48];      /**< "NVMe SSD", "hard disk", "network file system", ... */
	int64_t size_bytes, free_bytes;
};

/** Find the storage of a directory.
 * @param root    as above; sizes are read only if it is ""
 * @param folder  absolute, without links; need not exist */
void rfl_storage_of(const char *root, const char *folder, struct rfl_storage *ret);

#endif
