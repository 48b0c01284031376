/*
 * message.c - what the errors of perf_event_open mean here, and what helps.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/perf/plan.h"
#include "profile/perf/sysfs.h"

#define PAGE "docs/counters-cpu.md"

int rfl_perf_paranoid(const char *root)
{
	char text[32];
	int64_t level;

	if (!rfl_perf_slurp(root, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) ||
	    rfl_num_parse_int(text, "perf_event_paranoid", &level, NULL) != RFL_OK)
		return 99;
	return (int)level;
}

struct refusal {
	const struct rfl_perf_env *env;
	const struct rfl_perf_item *item;
	int error;
	size_t threads;
};

static enum rfl_rc say(const struct refusal *r, struct rfl_err *err, const char *why)
{
	return rfl_fail(err, RFL_EUNAVAILABLE, r->error, "%s", why);
}

/* ENOENT: no PMU at all in most guests, else an event that the kernel does not know. */
static enum rfl_rc no_event(const struct refusal *r, struct rfl_err *err)
{
	if (rfl_perf_has_core_pmu(r->env->sys->root))
		return say(r, err,
			   "the kernel does not know this event on this processor: a newer kernel "
			   "may");
	if (r->env->guest)
		return say(
			r, err,
			"this virtual machine shows no hardware counters; take a metal instance, "
			"or a type whose PMU is enabled (" PAGE ")");
	return say(r, err,
		   "this system shows no hardware counters (no PMU of a core in "
		   "/sys/bus/event_source/devices): a container or hypervisor hides them, or the "
		   "kernel has no driver for this processor (" PAGE ")");
}

static enum rfl_rc not_allowed(const struct refusal *r, struct rfl_err *err)
{
	const int level = rfl_perf_paranoid(r->env->sys->root);
	const int need = r->item->is_uncore ? 0 : r->item->needs_kernel ? 1 : 2;
	const char *what = r->item->is_uncore      ? "counting a whole processor"
			   : r->item->needs_kernel ? "counting what happens in the kernel"
						   : "counting this process";

	if (level == 99)
		return rfl_fail(err, RFL_EUNAVAILABLE, r->error,
				"%s is not allowed, and /proc/sys/kernel/perf_event_paranoid "
				"cannot be read: run as root, or give the program CAP_PERFMON",
				what);
	if (level <= need)
		return rfl_fail(err, RFL_EUNAVAILABLE, r->error,
				"%s is not allowed, though perf_event_paranoid is %d: a "
				"container's seccomp filter or a security module forbids "
				"perf_event_open; start the container with --cap-add PERFMON and a "
				"profile that allows it",
				what, level);
	return rfl_fail(err, RFL_EUNAVAILABLE, r->error,
			"%s is not allowed with perf_event_paranoid %d: sudo sysctl "
			"kernel.perf_event_paranoid=%d, or CAP_PERFMON (sudo setcap cap_perfmon+ep "
			"on the program)",
			what, level, need);
}

static enum rfl_rc too_many_files(const struct refusal *r, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EUNAVAILABLE, r->error,
			"too many open files, and the hard limit allows no more: every event "
			"takes one in each of %zu threads; raise it (ulimit -Hn 65536 as root), or "
			"count with fewer threads",
			r->threads);
}

static const struct {
	int error;
	const char *why; /* or */
	enum rfl_rc (*tell)(const struct refusal *r, struct rfl_err *err);
} meanings[] = {
	{ ENOENT, NULL, no_event },
	{ ENODEV, NULL, no_event },
	{ EOPNOTSUPP, NULL, no_event },
	{ EACCES, NULL, not_allowed },
	{ EPERM, NULL, not_allowed },
	{ EMFILE, NULL, too_many_files },
	{ ENFILE, NULL, too_many_files },
	{ EINVAL,
	  "the kernel takes neither this code nor these flags for this processor: it is older than "
	  "the processor, or counts it in another way",
	  NULL },
	{ E2BIG, "the kernel is older than what this program asks for", NULL },
	{ ENOSYS,
	  "this kernel has no perf_event_open: it was built without CONFIG_PERF_EVENTS, or a "
	  "sandbox "
	  "(gVisor, an old container runtime) stands in its place",
	  NULL },
	{ EBUSY,
	  "someone else holds this counter for himself: stop other profilers, and the NMI watchdog "
	  "(sudo sysctl kernel.nmi_watchdog=0)",
	  NULL },
	{ ENOMEM, "the kernel has no memory for another event", NULL },
};

enum rfl_rc rfl_perf_refused(const struct rfl_perf_env *env, const struct rfl_perf_item *item,
			     int error, size_t threads, struct rfl_err *err)
{
	const struct refusal r = { env, item, error, threads };

	for (size_t i = 0; i < RFL_ARRAY_LEN(meanings); i++) {
		if (meanings[i].error != error)
			continue;
		return meanings[i].tell ? meanings[i].tell(&r, err) : say(&r, err, meanings[i].why);
	}
	return rfl_fail(err, RFL_EUNAVAILABLE, error, "perf_event_open: %s", strerror(error));
}
