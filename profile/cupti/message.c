/*
 * message.c - what the results of CUPTI mean here, and what can be done.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "profile/cupti/api.h"
#include "profile/cupti/lib.h"

struct message {
	int result;
	enum rfl_rc rc;
	const char *meaning, *cure; /* cure NULL: nothing can be done from here */
};

#define OWN_MISTAKE "this CUPTI takes the call otherwise than that of CUDA 13.0 does"
#define UPDATE      "use CUPTI of CUDA 12.6 Update 2 or later (RFL_CUPTI_PATH names its folder)"
#define ADMIN                                                                                 \
	"run as root, or set 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "      \
	"/etc/modprobe.d, rebuild the initramfs and reboot; in a container run as root with " \
	"--cap-add=SYS_ADMIN; a rented container cannot be changed from inside"

static const struct message messages[] = {
	{ RFL_CUPTI_INVALID_PARAMETER, RFL_EFAILED, OWN_MISTAKE, UPDATE },
	{ RFL_CUPTI_INVALID_DEVICE, RFL_EUNAVAILABLE, "there is no such GPU",
	  "see 'roofline probe'" },
	{ RFL_CUPTI_INVALID_CONTEXT, RFL_EUNAVAILABLE, "no CUDA context is current on this thread",
	  NULL },
	{ RFL_CUPTI_INVALID_OPERATION, RFL_EFAILED,
	  "the call is not allowed in this state, or there are too many ranges in one pass",
	  "count fewer ranges: --counters phase or step instead of layer" },
	{ RFL_CUPTI_OUT_OF_MEMORY, RFL_EDEVMEM, "no memory is left for the counters",
	  "use a smaller batch" },
	{ RFL_CUPTI_HARDWARE, RFL_EUNAVAILABLE, "the counters of the GPU do not work",
	  "reboot, or have the GPU looked at" },
	{ RFL_CUPTI_PARAMETER_SIZE, RFL_EFAILED, OWN_MISTAKE, UPDATE },
	{ RFL_CUPTI_NOT_IMPLEMENTED, RFL_EUNAVAILABLE, "this CUPTI does not have the call",
	  UPDATE },
	{ RFL_CUPTI_MAX_LIMIT_REACHED, RFL_EFAILED, "there are no more records", NULL },
	{ RFL_CUPTI_NOT_READY, RFL_EUNAVAILABLE, "CUPTI is not ready yet", "try again" },
	{ RFL_CUPTI_NOT_COMPATIBLE, RFL_EUNAVAILABLE,
	  "CUPTI does not go with this driver, or with another tool in the process",
	  "use the CUPTI of the driver's CUDA version (RFL_CUPTI_PATH names its folder)" },
	{ RFL_CUPTI_NOT_INITIALIZED, RFL_EUNAVAILABLE,
	  "CUPTI could not start: libnvperf_host.so is missing or of another version",
	  "it belongs beside libcupti: install CUPTI again, or name another in RFL_CUPTI_PATH" },
	{ RFL_CUPTI_INVALID_METRIC_NAME, RFL_ENOTFOUND, "the chip has no such metric",
	  "see 'roofline counters list --chip CHIP --all'" },
	{ RFL_CUPTI_INVALID_KIND, RFL_EFAILED, "the chip has no records of this kind", NULL },
	{ RFL_CUPTI_DISABLED, RFL_EUNAVAILABLE, "profiling is switched off on this system",
	  "ask who administers it" },
	{ RFL_CUPTI_HARDWARE_BUSY, RFL_EUNAVAILABLE, "somebody else holds the counters of this GPU",
	  "end dcgm-exporter, nv-hostengine, ncu and other profilers, or count when they rest" },
	{ RFL_CUPTI_NOT_SUPPORTED, RFL_EUNSUPPORTED,
	  "the chip is not supported, or these metrics cannot be counted together",
	  "'roofline counters check --chip CHIP --metrics ...' names the metric" },
	{ RFL_CUPTI_VIRTUALIZED_DEVICE, RFL_EUNAVAILABLE,
	  "counters are not there on this virtual GPU", "use a GPU that is passed through whole" },
	{ RFL_CUPTI_INSUFFICIENT_PRIVILEGES, RFL_EUNAVAILABLE,
	  "the driver allows counters to administrators only", ADMIN },
	{ RFL_CUPTI_OLD_PROFILER_API, RFL_EUNAVAILABLE,
	  "something in this process uses CUPTI's old profiler, which excludes the new one",
	  "count without it" },
	{ RFL_CUPTI_LEGACY_PROFILER, RFL_EUNAVAILABLE,
	  "the chip does not have the old profiler any more", UPDATE },
	{ RFL_CUPTI_MULTIPLE_SUBSCRIBERS, RFL_EUNAVAILABLE,
	  "another profiler is in this process: ncu, nsys, cuda-gdb, or PyTorch's",
	  "run without it, or without --counters and import its file ('roofline counters "
	  "import')" },
	{ RFL_CUPTI_VIRTUALIZED_PRIVILEGES, RFL_EUNAVAILABLE,
	  "this virtual GPU may not be profiled",
	  "the hypervisor's administrator has to allow it (vGPU profiling)" },
	{ RFL_CUPTI_CONFIDENTIAL_COMPUTING, RFL_EUNAVAILABLE,
	  "the GPU is in confidential computing mode, which has no counters",
	  "an administrator can turn it off" },
	{ RFL_CUPTI_CMP_DEVICE, RFL_EUNAVAILABLE, "mining cards have no counters", NULL },
	{ RFL_CUPTI_MIG_DEVICE, RFL_EUNAVAILABLE, "this MIG instance may not be profiled",
	  "use an instance of its own (not a shared compute instance), or the whole GPU" },
	{ RFL_CUPTI_SLI_DEVICE, RFL_EUNAVAILABLE, "GPUs joined by SLI may not be profiled",
	  "turn SLI off" },
	{ RFL_CUPTI_WSL_DEVICE, RFL_EUNAVAILABLE,
	  "this version of WSL or of its driver has no counters",
	  "update both: driver 525 or later" },
	{ RFL_CUPTI_INVALID_CHIP_NAME, RFL_EUNAVAILABLE,
	  "CUPTI does not know this chip: it is older than the GPU",
	  "install a newer CUPTI, or name it in RFL_CUPTI_PATH" },
	{ RFL_CUPTI_UNKNOWN, RFL_EUNAVAILABLE,
	  "an error inside CUPTI; it is the answer to most calls where no NVIDIA driver works",
	  "look whether nvidia-smi works" },
};

static const struct message *find(int result)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(messages); i++)
		if (messages[i].result == result)
			return &messages[i];
	return NULL;
}

/* "CUPTI_ERROR_HARDWARE_BUSY", also of a result that is newer than the table. */
static const char *result_name(const struct rfl_cupti *c, int result)
{
	const char *name = NULL;

	if (c && rfl_cupti_calls(c)->result_string(result, &name) == RFL_CUPTI_SUCCESS && name)
		return name;
	return "CUPTI error";
}

/* The neighbour that libcupti opens itself, and says nothing of when it is not there. */
static enum rfl_rc without_neighbour(const struct rfl_cupti *c, int result, const char *call,
				     struct rfl_err *err)
{
	const char *path = rfl_cupti_path(c);
	const size_t len = (size_t)(rfl_path_base(path) - path);
	char *folder = strndup(len ? path : "./", len ? len : 2);
	char *neighbour = folder ? rfl_path_join(folder, "libnvperf_host.so") : NULL;
	enum rfl_rc rc = RFL_OK;

	if (!neighbour)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	else if (!rfl_file_exists(neighbour))
		rc = rfl_fail(
			err, RFL_EUNAVAILABLE, result,
			"%s: libnvperf_host.so is not in %s, beside libcupti, which needs it: "
			"install CUPTI again, or name another in RFL_CUPTI_PATH",
			call, folder);
	free(neighbour);
	free(folder);
	return rc;
}

enum rfl_rc rfl_cupti_check(const struct rfl_cupti *c, int result, const char *call,
			    struct rfl_err *err)
{
	const struct message *m;
	enum rfl_rc rc;

	if (result == RFL_CUPTI_SUCCESS)
		return RFL_OK;
	if (result == RFL_CUPTI_NOT_INITIALIZED && c) {
		rc = without_neighbour(c, result, call, err);
		if (rc != RFL_OK)
			return rc;
	}
	m = find(result);
	if (!m)
		return rfl_fail(err, RFL_EUNAVAILABLE, result, "%s: %s (%d)", call,
				result_name(c, result), result);
	return rfl_fail(err, m->rc, result, "%s: %s (%s, %d)%s%s", call, m->meaning,
			result_name(c, result), result, m->cure ? ": " : "",
			m->cure ? m->cure : "");
}
