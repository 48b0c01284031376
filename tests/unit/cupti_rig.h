/*
 * cupti_rig.h - NVIDIA's libcupti for tests that ask it about chips: that of RFL_CUPTI_PATH, or the
 * one that was found when this was configured. Needs no GPU.
 */
#ifndef RFL_TESTS_CUPTI_RIG_H
#define RFL_TESTS_CUPTI_RIG_H

#include <stdio.h>
#include <stdlib.h>

#include "profile/cupti/plan.h"
#include "profile/cupti/lib.h"

/** NULL when there is none, or none that can be used here: the reason is printed, and the test is
 * to be left with 77. */
static inline struct rfl_cupti *cupti_for_tests(void)
{
	const char *named = getenv("RFL_CUPTI_PATH");
	const struct rfl_cupti_places places = { .path = named ? named : RFL_TEST_CUPTI_LIBRARY };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_cupti *lib = NULL;

	if (places.path[0] == '\0')
		puts("skipped: no libcupti was found when this was configured; RFL_CUPTI_PATH "
		     "names one");
	else if (rfl_cupti_open(&places, &lib, &err) != RFL_OK)
		printf("skipped: %s\n", err.msg);
	return lib;
}

#endif
