/*
 * file.h - networks as JSON files: a user's own, or any model of the zoo written out. The
 * format is docs/net.md, its schema docs/net.schema.json.
 */
#ifndef RFL_COMPLEXITY_NET_FILE_H
#define RFL_COMPLEXITY_NET_FILE_H

#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "complexity/net.h"

/**
 * Read a network.
 *
 * @param path  named in messages
 * @param ret   set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with file, JSON path and reason (a cycle, a tensor that is
 * not there, shapes that do not fit, a name that is there twice, sizes beyond 63 bits); RFL_ENOMEM
 */
enum rfl_rc rfl_net_load(const char *path, struct rfl_net **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** The same from text in memory; `name` stands for the file in messages. */
enum rfl_rc rfl_net_parse(const char *text, size_t length, const char *name, struct rfl_net **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The same from a document. */
enum rfl_rc rfl_net_from_json(const json_t *root, const char *name, struct rfl_net **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** The text of a network, one node a line: reading it back gives the same network. */
enum rfl_rc rfl_net_write(const struct rfl_net *net, struct rfl_buf *out,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The same as a file, atomically. */
enum rfl_rc rfl_net_save(const char *path, const struct rfl_net *net,
			 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
