/*
 * onnx.h - networks as ONNX files, as torch.onnx.export() writes them. Shapes and names of the
 * weights become those of the network; the weights themselves are not read.
 */
#ifndef RFL_COMPLEXITY_ONNX_ONNX_H
#define RFL_COMPLEXITY_ONNX_ONNX_H

#include "base/err.h"
#include "base/text.h"
#include "complexity/net.h"

/** Whether a file is an ONNX file: by its name, or by the first byte of its contents. */
bool rfl_onnx_is_file(const char *path);

/**
 * Read a network. Operations that are not supported are in ret->uncounted.
 *
 * @param path  appears in messages; its name becomes the name of the model
 * @param ret   set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with file and reason; RFL_EUNSUPPORTED
 */
enum rfl_rc rfl_onnx_load(const char *path, struct rfl_net **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a network from memory. */
enum rfl_rc rfl_onnx_from_memory(struct rfl_span data, const char *path, struct rfl_net **ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
