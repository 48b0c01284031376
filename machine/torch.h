/* torch.h - the PyTorch of an installation: where it is, its version, and loading it. */
#ifndef RFL_MACHINE_TORCH_H
#define RFL_MACHINE_TORCH_H

#include "base/err.h"

struct rfl_arena;

/** Directory of the libraries of the PyTorch that belongs to an installation: linked as
 * lib/roofline/torch, else in the Python environment in which the program is installed, else the
 * one of the build.
 * @param plugin  path of a plugin, or of the plugin directory with a slash at the end
 * @return NULL: none */
const char *rfl_torch_beside(struct rfl_arena *arena, const char *plugin);

/** "2.11", from the version.py of a PyTorch; "" if it cannot be read. */
const char *rfl_torch_version(struct rfl_arena *arena, const char *libraries);

/** Load the libraries for a plugin in a directory torch-<version>, which has no path to them. Does
 * nothing for other plugins. */
enum rfl_rc rfl_torch_load(const char *plugin, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
