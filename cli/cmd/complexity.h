/* complexity.h - inside cli/: what the files of `roofline complexity` share. */
#ifndef RFL_CLI_CMD_COMPLEXITY_H
#define RFL_CLI_CMD_COMPLEXITY_H

#include "cli/cmd.h"
#include "complexity/lm.h"
#include "peaks/devices.h"
#include "report/complexity.h"
#include "roofline/roofline.h"

struct complexity_args {
	struct rfl_opt_list models, nets, peers, frozen, columns;
	struct rfl_opt_int_list batches, contexts;
	const char *output_dir, *write_net, *fit, *reserve, *peaks, *env, *sort;
	int64_t image_size, classes, depth, top, checkpoint, accumulate;
	bool train, input_grad, auxiliary, summary, plan;
	const char *sheet;
	bool precision_given, causal_given;
	/* of language models at inference */
	int phase; /* 1 + enum rfl_lm_phase; 0: none */
	struct rfl_opt_int_list pasts;
	const char *weights, *expert_weights, *head_weights, *activations, *cache;
	int64_t tokens, group, page, drafts, tensor, pipeline;
	double acceptance, link;
	bool zero_points;
	int attention, causal, device, update;
	int optimizer, precision, fusion, by, format;
};

/* The state of the command; `r` has the memory of --fit. */
struct complexity {
	struct rfl_cli *cli;
	const struct complexity_args *args;
	struct rfl_complexity r;
	struct rfl_peaks *peaks; /* NULL: no ceilings */
	const char *env;
	struct rfl_attain_roof roof;
	struct rfl_devices *devices;
};

/** Find the ceilings of a precision, if any are given. @param option  has named the precision */
enum rfl_rc rfl_complexity_roof(const struct complexity *c, const char *precision,
				enum rfl_fusion fusion, const char *option,
				struct rfl_attain_roof *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the table of --phase. */
enum rfl_rc rfl_complexity_lm(const struct complexity *c, struct rfl_buf *out,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
