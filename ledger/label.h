/*
 * label.h - run names: {env}_{model}_{precision}_bs{batch}_run{N}, the older form
 * {env}_{model}_{precision}_bs{batch}_r{N}_{YYYYmmdd}_{HHMMSS}, or a label chosen by the user.
 * Labels of profiled runs end in _prof.
 */
#ifndef RFL_LEDGER_LABEL_H
#define RFL_LEDGER_LABEL_H

#include "ledger/ledger.h"

#define RFL_LABEL_MAX 160

/** The parts of a label. Missing parts are "" or -1. */
struct rfl_label {
	char env[49];
	char not_env[49]; /**< invalid name in the position of the environment: "4090", "My-Lab" */
	char model[64];
	char precision[16];
	char mode[8]; /**< "train", "fwd", "fwd_bwd" */
	int64_t batch;
	int64_t run;   /**< N of _run{N} or _r{N} */
	bool profiled; /**< ends in _prof: run under a profiler */
};

/** Parse a label, which may be any text or NULL.
 * @param model  model of the run; NULL: use the longest model name in the label */
void rfl_label_parse(const char *label, const char *model, struct rfl_label *ret);

/** The length of a label without a final _{YYYYmmdd}_{HHMMSS} or _{YYYYmmdd}_{HHMMSS}_{N}, as in
 * log file names. */
size_t rfl_label_unstamped(const char *label);

/** Check that a label is valid as the stem of a file name. RFL_EINVAL states the rule. */
enum rfl_rc rfl_label_check(const char *label, struct rfl_err *err) RFL_WARN_UNUSED;

/** The environment of a run: `given` unless NULL, else the one in the label, else the backend.
 * RFL_EINVAL: the name is invalid. */
enum rfl_rc rfl_label_env(const char *given, const char *label, const char *model,
			  const char *backend, char ret[49], struct rfl_err *err) RFL_WARN_UNUSED;

/** Buffer size for a stem; leaves room for any N in a label. */
#define RFL_LABEL_STEM (RFL_LABEL_MAX - 19)

/** Write the part of a generated label before N: "{env}_{model}_{precision}_bs{batch}_run", or
 * "..._bs{batch}_w{world}_run" for several processes. RFL_EINVAL: it is too long. */
enum rfl_rc rfl_label_stem(const char *env, const char *model, const char *precision, int64_t batch,
			   int world, char ret[RFL_LABEL_STEM],
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Find the next N for a stem: one more than the largest N in the ledger and in the directory of
 * time logs (<label>_<stamp>.txt). Either may be missing. */
enum rfl_rc rfl_label_number(const char *stem, const char *ledger, const char *time_dir,
			     int64_t *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Generate the next free label, with N from rfl_label_number(). */
enum rfl_rc rfl_label_next(const char *env, const char *model, const char *precision, int64_t batch,
			   const char *ledger, const char *time_dir, char ret[RFL_LABEL_MAX + 1],
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
