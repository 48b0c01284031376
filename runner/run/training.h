/*
 * training.h - internal to runner/run/: the state of a training run in its child process, and its
 * checkpoints.
 */
#ifndef RFL_RUNNER_RUN_TRAINING_H
#define RFL_RUNNER_RUN_TRAINING_H

#include "runner/run/parts.h"

struct rfl_run__training {
	const struct rfl_run_config *config;
	const struct rfl_engine_ops *ops;
	struct rfl_engine *engine;
	const struct rfl_net *net;
	struct rfl_optimizer optimizer; /* lr is for the first epoch */
	const char *engine_id, *device, *data_digest;
	struct rfl_burst *burst;
	struct rfl_data *test;
	rfl_run__emit_fn emit;
	void *ctx;
	bool (*stopped)(void);

	int64_t samples, test_samples; /* in the two sets */
	int64_t per_epoch;             /* steps */
	int64_t done;                  /* steps in all */
	struct rfl_score sums;         /* over the training samples of the current epoch */
	double train_s;                /* time of its steps */
	int64_t lap;                   /* steps of a lap on a GPU */
	struct rfl_epochs epochs;      /* complete and evaluated */
	int64_t saved;                 /* value of `done` in the checkpoint; -1: none */

	int64_t began, began_ns; /* first step of this process, and when it began */
	int64_t reported_ns;
};

/**
 * Read the checkpoint into the engine and t, if config->resume is set and the file exists. Fills
 * done, sums, train_s, epochs, saved, and the measured steps of the burst, for which it allocates
 * all steps. t->samples and the others must be set.
 * @return RFL_OK; RFL_EFORMAT if the file is damaged or of another version; RFL_EINVAL if it
 * belongs to another network, engine, data set or setting
 */
enum rfl_rc rfl_run__checkpoint_load(struct rfl_run__training *t,
				     struct rfl_err *err) RFL_WARN_UNUSED;
/** Replace the checkpoint atomically. */
enum rfl_rc rfl_run__checkpoint_save(struct rfl_run__training *t,
				     struct rfl_err *err) RFL_WARN_UNUSED;

/** The callbacks of the burst: choose the length of a lap; evaluate after the last step of an
 * epoch, and write checkpoints. */
int64_t rfl_run__training_lap(const struct rfl_run__training *t, int64_t done);
enum rfl_rc rfl_run__training_lapped(struct rfl_run__training *t, int64_t done, double wall_s,
				     struct rfl_err *err) RFL_WARN_UNUSED;

/** Set the number of steps and continue from the checkpoint, if requested. */
enum rfl_rc rfl_run__training_begin(struct rfl_run__training *t,
				    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_run__training_fini(struct rfl_run__training *t);

/* Events: "plan" has the number of steps, "continued" the step at which a training run continues,
 * "epoch" and "earlier_epoch" a row. */

/** The learning rate of an epoch, counted from 0. */
double rfl_run__training_lr(const struct rfl_run_config *config, int64_t epoch);

#endif
