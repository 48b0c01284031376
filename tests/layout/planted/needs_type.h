/* Planted: uses a type of <stddef.h> without including it. The test of this header must fail. */
#ifndef RFL_PLANTED_NEEDS_TYPE_H
#define RFL_PLANTED_NEEDS_TYPE_H

size_t rfl_planted_size(void);

#endif
