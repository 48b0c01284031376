/*
 * complexity.h - inside cli/: what the files of `roofline complexity` share.
 */
#ifndef RFL_CLI_COMPLEXITY_H
#define RFL_CLI_COMPLEXITY_H

#include "cli/cmd.h"
#include "peaks/devices.h"
#include "peaks/peaks.h"
#include "report/complexity.h"
#include "roofline/attain.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_complexity_args {
	struct rfl_opt_list models, nets, peers, frozen, columns;
	struct rfl_opt_int_list batches, contexts;
	const char *output_dir, *write_net, *fit, *reserve, *peaks, *env;
	int64_t image_size, classes, depth, top, checkpoint, accumulate;
	bool train, input_grad, auxiliary, summary;
	int attention, causal, device, update;
	int optimizer, precision, fusion, by, format;
};

/** The rows of the command's options. */
extern const struct rfl_opt rfl_complexity_opts[];

/** What one run of the command holds. */
struct rfl_complexity_report {
	const struct rfl_complexity_args *args;
	struct rfl_summary_options options;
	struct rfl_summary **items;
	size_t n, cap;
	const struct rfl_peer **peers;
	struct rfl_peaks *peaks;
	struct rfl_attain_roof roof;
	struct rfl_devices *devices;
	struct rfl_fit_device device;
};

/** Build and count every network that was asked for. */
enum rfl_rc rfl_complexity_add_nets(struct rfl_complexity_report *r,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/** Refuse a path of --freeze that freezes nothing in any of the networks. */
enum rfl_rc rfl_complexity_check_frozen(const struct rfl_complexity_report *r,
					struct rfl_err *err) RFL_WARN_UNUSED;

/** Refuse options that contradict each other or the networks, which are there. */
enum rfl_rc rfl_complexity_check(const struct rfl_complexity_report *r,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** --output-dir: the document, and one list of layers per network. */
enum rfl_rc rfl_complexity_write_dir(const struct rfl_complexity_report *r, json_t *document,
				     struct rfl_err *err) RFL_WARN_UNUSED;

/** --write-net: one file per network. */
enum rfl_rc rfl_complexity_write_nets(const struct rfl_complexity_report *r,
				      struct rfl_err *err) RFL_WARN_UNUSED;

/** --as: the counters by name. */
enum rfl_rc rfl_complexity_find_peers(struct rfl_complexity_report *r,
				      struct rfl_err *err) RFL_WARN_UNUSED;

/** --fit and --reserve: whose memory, and how much of it. */
enum rfl_rc rfl_complexity_find_device(struct rfl_complexity_report *r,
				       struct rfl_err *err) RFL_WARN_UNUSED;

/** --peaks and --env: the ceilings. */
enum rfl_rc rfl_complexity_find_roof(struct rfl_complexity_report *r,
				     struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
