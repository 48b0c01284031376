/* Several fake engines: they leave each other files in the directory RFL_FAKE_WORLD. */
#ifndef RFL_TESTS_FAKE_WORLD_H
#define RFL_TESTS_FAKE_WORLD_H

#include "runner/engine.h"

struct fake_world; /* NULL: alone */

enum rfl_rc fake_world_join(const struct rfl_world *world, struct fake_world **ret,
			    struct rfl_err *err);
void fake_world_leave(struct fake_world *w); /* accepts NULL */
enum rfl_rc fake_world_gather(struct fake_world *w, const double *mine, size_t n, double *all,
			      struct rfl_err *err);
/** -1: alone. */
int fake_world_rank(const struct fake_world *w);
/** "rank=0 of 2 at 127.0.0.1:29500 hosted=0 bucket=26214400 via auto". */
const char *fake_world_text(const struct fake_world *w);

#endif
