/*
 * source.c - the registry of live counters. A source is one file with its row, and one line here.
 */
#include "profile/source.h"

#include <string.h>

const char *const rfl_counter_set_names[] = { "core",    "flops",     "audit", "links",
					      "kernels", "self-test", NULL };

const char *rfl_counter_set_name(unsigned set)
{
	size_t i = 0;

	while (rfl_counter_set_names[i + 1] && set != 1U << i)
		i++;
	return rfl_counter_set_names[i];
}

/* In the order of preference for a backend that several serve. */
static const struct rfl_source_ops *const sources[] = { &rfl_source_cupti, &rfl_source_perf };

const struct rfl_source_ops *rfl_source_at(size_t i)
{
	return i < RFL_ARRAY_LEN(sources) ? sources[i] : NULL;
}

enum rfl_rc rfl_source_for(const char *backend, const struct rfl_source_ops **ret,
			   struct rfl_err *err)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(sources); i++) {
		if (strcmp(sources[i]->device, backend) == 0) {
			*ret = sources[i];
			return RFL_OK;
		}
	}
	return rfl_fail(err, RFL_ENOTFOUND, 0, "no source of counters serves the backend '%s'",
			backend);
}
