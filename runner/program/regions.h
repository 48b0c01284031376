/*
 * regions.h - the regions that a program marks while it runs (tools/region/). Each of
 * its processes connects to a socket whose name is in ROOFLINE_CONTROL, and sends one packet for
 * each mark: "begin\tNAME" or "end\tNAME\tFLOPS\tBYTES", where "-" means not known. It continues
 * after the answer, so that the counters are read at the mark.
 */
#ifndef RFL_RUNNER_PROGRAM_REGIONS_H
#define RFL_RUNNER_PROGRAM_REGIONS_H

#include <sys/types.h>

#include "base/buf.h"
#include "profile/source.h"

#define RFL_REGIONS_VARIABLE "ROOFLINE_CONTROL"
#define RFL_REGIONS_CLIENTS  256 /* processes at the same time */
#define RFL_REGIONS_NAMES    256 /* distinct names; the program may generate them */

struct rfl_regions {
	char variable[64];       /**< "ROOFLINE_CONTROL=NAME", for the environment of the program */
	int fd;                  /**< readable when there are marks to take */
	double time_s;           /**< in the only region, in this run; NaN: it did not begin */
	struct rfl_buf warnings; /**< lines about marks that do not match, with what was done */

	/* private to regions.c */
	const char *only;
	double flops, bytes;
	struct rfl_arena *arena; /* owns the names */
	int listener;
	struct rfl_region_client {
		int fd;
		pid_t pid;
	} clients[RFL_REGIONS_CLIENTS];
	size_t nclients;
	const char *names[RFL_REGIONS_NAMES];
	size_t nnames;
	struct rfl_ranges *ranges;
	const char *open; /* the current region; NULL: none */
	pid_t owner;      /* its process */
	double since_s;
};

/** @param only  ignore all other regions; NULL: none
 * @param flops,bytes  of the only region in a run, known to the user; NaN: not known */
enum rfl_rc rfl_regions_new(const char *only, double flops, double bytes, struct rfl_regions **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_regions_free(struct rfl_regions *r); /* accepts NULL */
RFL_AUTOPTR_TYPE(regions, free);

/** Add what the user or the program knows to the current range. */
void rfl_regions_add_given(struct rfl_ranges *ranges, double flops, double bytes, bool by_user);

/** Begin a run of the program, whose marks become these ranges. */
void rfl_regions_begin(struct rfl_regions *r, struct rfl_ranges *ranges);
void rfl_regions_take(struct rfl_regions *r);
/** End it: close the connections and a region that is still open. */
void rfl_regions_end(struct rfl_regions *r);

#endif
