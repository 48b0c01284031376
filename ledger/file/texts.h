/*
 * texts.h - inside ledger/: the texts of the rows that were read. What stands in many rows,
 * such as the name of a device, is kept once.
 */
#ifndef RFL_LEDGER_LEDGER_TEXTS_H
#define RFL_LEDGER_LEDGER_TEXTS_H

#include <stdbool.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_ledger_texts;

/** NULL out of memory. */
struct rfl_ledger_texts *rfl_ledger__texts_new(void) RFL_WARN_UNUSED;
void rfl_ledger__texts_free(struct rfl_ledger_texts *t); /* accepts NULL */

/**
 * A copy that lives as long as the texts.
 * @param shared  look for an equal one first; for what is in many rows
 * @return NULL out of memory
 */
char *rfl_ledger__text(struct rfl_ledger_texts *t, const char *text, bool shared) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
