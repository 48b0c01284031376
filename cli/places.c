/*
 * places.c - the places of libcupti that a user or a build names.
 */
#include "cli/places.h"

#include <stdlib.h>

#include "rfl_config.h"

/* A variable that is set to nothing is not set. */
static const char *value_of(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] != '\0' ? value : NULL;
}

struct rfl_cupti_places rfl_cli_places(void)
{
	const char *home = value_of("CUDA_HOME");

	return (struct rfl_cupti_places){
		.path = value_of("RFL_CUPTI_PATH"),
		.cuda_home = home ? home : value_of("CUDA_PATH"),
		.beside = RFL_TORCH_LIBRARY_DIR[0] != '\0' ? RFL_TORCH_LIBRARY_DIR : NULL,
	};
}
