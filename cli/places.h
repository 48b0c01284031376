/*
 * places.h - inside cli/: where libcupti may be, from the environment and from how this program
 * was built.
 */
#ifndef RFL_CLI_PLACES_H
#define RFL_CLI_PLACES_H

#include "profile/cupti/lib.h"

/** RFL_CUPTI_PATH; CUDA_HOME or CUDA_PATH; the PyTorch of the engine. The texts belong to the
 * environment and the program. */
struct rfl_cupti_places rfl_cli_places(void);

#endif
