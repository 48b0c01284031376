/*
 * probe.h - inside cli/: what an engine's plugin says of itself when it is opened. It is opened in
 * a child process, so that a plugin that crashes, hangs or takes a gigabyte costs a line of output
 * and not the program.
 */
#ifndef RFL_CLI_PROBE_H
#define RFL_CLI_PROBE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "cli/cmd.h"

struct rfl_probe {
	bool ok;             /**< at least one device can be used */
	const char *devices; /**< "cpu, cuda": those that can be used; "" for none */
	const char
		*library;   /**< version of the library as it reports itself; NULL when not known */
	const char *blas;   /**< file of the BLAS that came with it; NULL when not known */
	const char *no_gpu; /**< why it cannot use a GPU that it was made for; NULL: it can, or was
			       not */
	const char *reason; /**< why not, when not ok */
};

/**
 * Ask the plugin `id` ("torch-1.13-cpu") in a child.
 * @param ret  its texts are owned by the arena
 * @return RFL_OK whatever became of the child; RFL_ENOMEM, RFL_EIO when it could not be started
 */
enum rfl_rc rfl_probe_engine(struct rfl_cli *cli, const char *id, struct rfl_arena *arena,
			     struct rfl_probe *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
