/*
 * attained.h - the least time of counted work on a machine. The ceilings are the caller's: this
 * room has none.
 */
#ifndef RFL_COMPLEXITY_ATTAINED_H
#define RFL_COMPLEXITY_ATTAINED_H

#include "complexity/count.h"

/** What the least time of some work is spent waiting for. */
enum rfl_limit {
	RFL_LIMIT_COMPUTE, /**< multiply-adds of convolutions and matrix products */
	RFL_LIMIT_VECTOR,  /**< elementwise operations */
	RFL_LIMIT_MEMORY,  /**< DRAM traffic */
	RFL_LIMIT_COUNT
};

/** "compute", "vector", "memory", NULL. */
extern const char *const rfl_limit_names[];

/** The least time of some work, split by what bounds its parts: the time is the sum. */
struct rfl_attained {
	double limit_s[RFL_LIMIT_COUNT];
};

/** The sum over all limits. */
double rfl_attained_time(const struct rfl_attained *a);

/** The limit that most of the time goes to; RFL_LIMIT_COUNT when there is no time at all. */
enum rfl_limit rfl_attained_bound(const struct rfl_attained *a);

void rfl_attained_add(struct rfl_attained *sum, const struct rfl_attained *a);

/** A machine, as the caller knows it. */
struct rfl_attained_roof {
	/**
	 * The least time of every node, then of the loss, then of the update; the last two are left
	 * out of an inference.
	 * @param times  count->nnodes + 2, zeroed
	 */
	void (*attain)(const struct rfl_attained_roof *roof, const struct rfl_count *count,
		       struct rfl_attained *times);
	const char *about;      /**< one line for people: the environment and its ceilings */
	const char *env;        /**< its name */
	enum rfl_fusion fusion; /**< the bytes that stand against its bandwidth */
};

#endif
