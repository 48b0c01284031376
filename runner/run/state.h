/*
 * state.h - inside runner/: what the parent of a run holds, for the files that start it, name
 * it and record it.
 */
#ifndef RFL_RUNNER_RUN_STATE_H
#define RFL_RUNNER_RUN_STATE_H

#include "runner/run/parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the parent holds during a run. */
struct rfl_run__state {
	const struct rfl_run_config *config;
	const struct rfl_run_host *host;
	struct rfl_net *net;
	struct rfl_machine *machine;
	struct rfl_run__heard heard;
	struct rfl_proc_result process;
	struct rfl_captures captures;
	char ledger_path[4096], lock_path[4096], counters_path[4096];
	int64_t number; /* of several processes: N of the label that is made, if they do not
			   agree on another */
	char world_label[RFL_LABEL_MAX + 1]; /* of all of them */
	struct rfl_err trouble; /* what failed first after the child was started: the row is
				   written all the same */
};

/* ---- names (run/label.c) ---- */

/** The N that this process of several proposes for their label; nothing for one process alone. */
enum rfl_rc rfl_run__choose_number(struct rfl_run__state *run, struct rfl_err *err);

/** Set env, label and repeat of a row. The ledger's lock is held: a label that is made here is
 * nobody else's. */
enum rfl_rc rfl_run__make_label(struct rfl_run__state *run, struct rfl_ledger_row *row,
				struct rfl_err *err);

/** Set run_id and timestamp_utc: when, where and by whom. No two attempts share an id. */
enum rfl_rc rfl_run__make_id(int rank, struct rfl_ledger_row *row, struct rfl_err *err);

/* ---- afterwards (run/record.c) ---- */

/** Fill the row and write it and the files beside it; ret->rc says what became of the run. */
enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err);

#ifdef __cplusplus
}
#endif
#endif
