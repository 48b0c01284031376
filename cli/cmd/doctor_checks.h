/*
 * doctor_checks.h - inside cli/: the checks behind `roofline doctor`.
 */
#ifndef RFL_CLI_DOCTOR_H
#define RFL_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cmd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rfl_doctor_verdict { RFL_DOCTOR_OK, RFL_DOCTOR_WARN, RFL_DOCTOR_NO };

struct rfl_doctor_check {
	const char *name; /**< "memory" */
	enum rfl_doctor_verdict verdict;
	bool needed;         /**< the main job cannot do without it */
	const char *finding; /**< what is here, or why not */
	const char *advice;  /**< what to do; NULL when nothing */
};

struct rfl_doctor {
	struct rfl_arena *arena; /**< owns the texts */
	size_t n, cap;
	struct rfl_doctor_check *checks;
	bool failed; /**< a check was lost for lack of memory */
};

/** Look at everything. @param ret  set on success only; release with rfl_doctor_free() */
enum rfl_rc rfl_doctor_new(struct rfl_cli *cli, struct rfl_doctor **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_doctor_free(struct rfl_doctor *d);

/* ---- for checks ---- */

struct rfl_inventory;

/** Append a check; one that finds no memory is told by d->failed, once, at the end. */
void rfl_doctor_add(struct rfl_doctor *d, struct rfl_doctor_check check);
/** The text, or "" for NULL. */
const char *rfl_doctor_text(const char *text);

/** Counters of the processor and of GPUs. */
void rfl_doctor_check_counters(const struct rfl_inventory *inv, struct rfl_doctor *d);

#ifdef __cplusplus
}
#endif
#endif
