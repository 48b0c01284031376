/*
 * label.h - the names of runs: {env}_{model}_{precision}_bs{batch}_run{N}, and what an older form
 * ({env}_{model}_{precision}_bs{batch}_r{N}_{YYYYmmdd}_{HHMMSS}) or a user's own label says. Runs
 * under a profiler end in _prof.
 */
#ifndef RFL_LEDGER_LABEL_H
#define RFL_LEDGER_LABEL_H

#include "ledger/ledger.h"

#define RFL_LABEL_MAX 160

/** What a label says. A part that it does not say is "" or -1. */
struct rfl_label {
	char env[49];
	char not_env[49]; /**< what is in its place, not a valid name: "4090", "My-Lab" */
	char model[64];
	char precision[16];
	char mode[8]; /**< "train", "fwd", "fwd_bwd" */
	int64_t batch;
	int64_t run;   /**< N of _run{N} or _r{N} */
	bool profiled; /**< _prof: the times are those of a run under a profiler */
};

/** Read a label; a free text says less, NULL nothing.
 * @param model  that the run is known to be of; NULL: the longest zoo name in the label */
void rfl_label_parse(const char *label, const char *model, struct rfl_label *ret);

/** The length of a label without the _{YYYYmmdd}_{HHMMSS}, or _{YYYYmmdd}_{HHMMSS}_{N}, that the
 * name of a log has at its end. */
size_t rfl_label_unstamped(const char *label);

/** Is this text fit to be a label, that is the stem of a file name? RFL_EINVAL says the rule. */
enum rfl_rc rfl_label_check(const char *label, struct rfl_err *err) RFL_WARN_UNUSED;

/** The environment of a run: the one that was given (or NULL), else what its label says, else the
 * backend. RFL_EINVAL for a name that is not one. */
enum rfl_rc rfl_label_env(const char *given, const char *label, const char *model,
			  const char *backend, char ret[49], struct rfl_err *err) RFL_WARN_UNUSED;

/** Room for a stem, beside which the largest N has room in a label. */
#define RFL_LABEL_STEM (RFL_LABEL_MAX - 19)

/** What comes before N in the labels that are made: "{env}_{model}_{precision}_bs{batch}_run", or
 * "..._bs{batch}_w{world}_run" for several processes of that batch. RFL_EINVAL: too long. */
enum rfl_rc rfl_label_stem(const char *env, const char *model, const char *precision, int64_t batch,
			   int world, char ret[RFL_LABEL_STEM],
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * One more than the largest N that follows a stem in a ledger and in the folder of time logs
 * (<label>_<stamp>.txt), neither of which need exist. Of a large ledger the numbers are kept in
 * <name>.labels beside it: only new rows are read, and the folder when that file is written.
 */
enum rfl_rc rfl_label_number(const char *stem, const char *ledger, const char *time_dir,
			     int64_t *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Remove <name>.labels: the next number is looked for in the ledger and the whole folder. */
void rfl_label_forget(const char *ledger);

/** Make the next free label, with the N of rfl_label_number(). */
enum rfl_rc rfl_label_next(const char *env, const char *model, const char *precision, int64_t batch,
			   const char *ledger, const char *time_dir, char ret[RFL_LABEL_MAX + 1],
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
