/*
 * complexity.h - inside cli/: what the files of `roofline complexity` share.
 */
#ifndef RFL_CLI_COMPLEXITY_H
#define RFL_CLI_COMPLEXITY_H

#include "cli/cmd.h"
#include "peaks/devices.h"
#include "peaks/peaks.h"
#include "report/complexity.h"
#include "roofline/roofline.h"

struct rfl_complexity_args {
	struct rfl_opt_list models, nets, peers, frozen, columns;
	struct rfl_opt_int_list batches, contexts;
	const char *output_dir, *write_net, *fit, *reserve, *peaks, *env;
	int64_t image_size, classes, depth, top, checkpoint, accumulate;
	bool train, input_grad, auxiliary, summary;
	int attention, causal, device, update;
	int optimizer, precision, fusion, by, format;
};

/** What one run of the command holds. */
struct rfl_complexity_run {
	const struct rfl_complexity_args *args;
	struct rfl_complexity r;
	size_t cap; /**< of r.items */
	struct rfl_peaks *peaks;
	struct rfl_attain_roof roof;
	struct rfl_devices *devices;
};

/** --as, --fit, --reserve, --peaks and --env: which counters, whose memory, which ceilings. */
enum rfl_rc rfl_complexity_ask(struct rfl_complexity_run *run, struct rfl_err *err) RFL_WARN_UNUSED;

/** Build every network that was asked for; a path of --freeze that freezes nothing in any of them
 * is refused. */
enum rfl_rc rfl_complexity_add_nets(struct rfl_complexity_run *run,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/** --output-dir: the document, and one list of layers per network. --write-net: one file per
 * network. */
enum rfl_rc rfl_complexity_write(const struct rfl_complexity_run *run, json_t *document,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
