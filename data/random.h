/*
 * random.h - random numbers as a function of (seed, epoch, sample), so that a batch does not depend
 * on the number of threads: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
 * 2, 3", SC 2011).
 */
#ifndef RFL_DATA_RANDOM_H
#define RFL_DATA_RANDOM_H

#include <stdint.h>

/** A stream of random numbers, in the caller's memory. */
struct rfl_random {
	uint32_t key[2];
	uint32_t counter[4];
	uint32_t out[4];
	int used; /**< numbers of `out` */
};

/** Compute one block of Philox4x32-10. */
void rfl_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

void rfl_random_init(struct rfl_random *r, uint64_t seed, uint32_t epoch, uint64_t sample);
uint32_t rfl_random_u32(struct rfl_random *r);
/** Return a number in [low, high), from 53 random bits. */
double rfl_random_between(struct rfl_random *r, double low, double high);
/** Return a number in [0, n), every value equally likely; n must be at least 1. */
uint32_t rfl_random_below(struct rfl_random *r, uint32_t n);

/** Return the position of i in a random order of 0 ... n-1: a bijection for every (seed, epoch). */
uint64_t rfl_random_permute(uint64_t seed, uint32_t epoch, uint64_t n, uint64_t i);

#endif
