/* Planted: compiles, but with a warning. The test of this header must fail. */
#ifndef RFL_PLANTED_WARNS_H
#define RFL_PLANTED_WARNS_H

static inline int rfl_planted_same(int used, int not_used)
{
	return used;
}

#endif
