/*
 * label.h - the names of runs: {env}_{model}_{precision}_bs{batch}_run{N}, the older form
 * {env}_{model}_{precision}_bs{batch}_r{N}_{YYYYmmdd}_{HHMMSS}, or a user's own label. Labels of
 * runs under a profiler end in _prof.
 */
#ifndef RFL_LEDGER_LABEL_H
#define RFL_LEDGER_LABEL_H

#include "ledger/ledger.h"

#define RFL_LABEL_MAX 160

/** The parts of a label; those that it lacks are "" or -1. */
struct rfl_label {
	char env[49];
	char not_env[49]; /**< an invalid name in its place: "4090", "My-Lab" */
	char model[64];
	char precision[16];
	char mode[8]; /**< "train", "fwd", "fwd_bwd" */
	int64_t batch;
	int64_t run;   /**< N of _run{N} or _r{N} */
	bool profiled; /**< _prof: run under a profiler */
};

/** Parse a label, which may be free text or NULL.
 * @param model  model of the run, if known; NULL: the longest model name in the label */
void rfl_label_parse(const char *label, const char *model, struct rfl_label *ret);

/** The length of a label without the _{YYYYmmdd}_{HHMMSS} or _{YYYYmmdd}_{HHMMSS}_{N} with which
 * names of logs end. */
size_t rfl_label_unstamped(const char *label);

/** Is this a valid label, that is the stem of a file name? RFL_EINVAL with the rule. */
enum rfl_rc rfl_label_check(const char *label, struct rfl_err *err) RFL_WARN_UNUSED;

/** The environment of a run: `given` unless NULL, else the one in its label, else the backend.
 * RFL_EINVAL for an invalid name. */
enum rfl_rc rfl_label_env(const char *given, const char *label, const char *model,
			  const char *backend, char ret[49], struct rfl_err *err) RFL_WARN_UNUSED;

/** Size of a stem that leaves room for any N in a label. */
#define RFL_LABEL_STEM (RFL_LABEL_MAX - 19)

/** The part of a generated label before N: "{env}_{model}_{precision}_bs{batch}_run", or
 * "..._bs{batch}_w{world}_run" for several processes. RFL_EINVAL: too long. */
enum rfl_rc rfl_label_stem(const char *env, const char *model, const char *precision, int64_t batch,
			   int world, char ret[RFL_LABEL_STEM],
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * One more than the largest N after a stem in a ledger and in the folder of time logs
 * (<label>_<stamp>.txt), neither of which need exist. For a large ledger the numbers are cached in
 * <name>.labels next to it: only new rows are read, and the folder only when the cache is written.
 */
enum rfl_rc rfl_label_number(const char *stem, const char *ledger, const char *time_dir,
			     int64_t *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Remove <name>.labels, so that the next call reads the ledger and the folder again. */
void rfl_label_forget(const char *ledger);

/** Generate the next free label, with the N of rfl_label_number(). */
enum rfl_rc rfl_label_next(const char *env, const char *model, const char *precision, int64_t batch,
			   const char *ledger, const char *time_dir, char ret[RFL_LABEL_MAX + 1],
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
