/*
 * surroundings_parts.h - internal: the pieces that fill a struct rfl_surroundings. Each takes the
 * folder under which /proc, /sys and /run lie ("" outside tests).
 */
#ifndef RFL_MACHINE_SURROUNDINGS_PARTS_H
#define RFL_MACHINE_SURROUNDINGS_PARTS_H

#include "machine/machine_parts.h"
#include "machine/surroundings.h"

/* system_product is set. */
void rfl_surroundings__cloud(struct rfl_surroundings *s, const char *root);
enum rfl_rc rfl_surroundings__network(struct rfl_surroundings *s, const char *root,
				      struct rfl_err *err);

#endif
