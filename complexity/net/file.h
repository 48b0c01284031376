/*
 * file.h - networks as JSON files: a user's own, or any zoo model written out. The format is
 * described in docs/reference/net.md, its schema is docs/net.schema.json.
 */
#ifndef RFL_COMPLEXITY_NET_FILE_H
#define RFL_COMPLEXITY_NET_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bind.h"
#include "complexity/net.h"
#include "complexity/op.h"

/** Check that the counts of one sample fit in 63 bits. RFL_EFORMAT if not. */
enum rfl_rc rfl_net_check_counts(const struct rfl_net *net, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a network from a parsed document; `name` replaces the file name in messages. */
enum rfl_rc rfl_net_from_json(const json_t *root, const char *name, struct rfl_net **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** The text of a network with one node per line; reading it yields the same network. */
enum rfl_rc rfl_net_write(const struct rfl_net *net, struct rfl_buf *out,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The hash of this text, which identifies a network: files that differ only in their layout or
 * path have the same hash. If the network is named by its file, the hash leaves the name out. */
enum rfl_rc rfl_net_digest(const struct rfl_net *net, char out[17],
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Write what the hash identifies to dir/<hash>.json, unless the file exists. */
enum rfl_rc rfl_net_keep(const char *dir, const struct rfl_net *net,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the text to a file, atomically. */
enum rfl_rc rfl_net_save(const char *path, const struct rfl_net *net,
			 struct rfl_err *err) RFL_WARN_UNUSED;

#define RFL_NET_FILE_SCHEMA "roofline.net/1"

/** The name of the network's input. */
#define RFL_NET_FILE_INPUT "input"

/** The keys of every node, besides the attributes of its operation. */
extern const struct rfl_member rfl_net_file_node[];

/** Whether a node in a file may be this operation, which excludes the input, the loss and unknown
 * operations. */
static inline bool rfl_net_file_is_node(enum rfl_op op)
{
	return op != RFL_OP_INPUT && op != RFL_OP_CROSS_ENTROPY && op != RFL_OP_UNKNOWN;
}

/** Whether an operation is a layer with weights; false for a bare parameter. */
static inline bool rfl_net_file_has_weights(enum rfl_op op)
{
	return rfl_op_info_of(op)->params && op != RFL_OP_PARAMETER;
}

/** Whether an operation can overwrite its first input; elementwise operations can. */
static inline bool rfl_net_file_can_be_inplace(enum rfl_op op)
{
	return op >= RFL_OP_RELU && op <= RFL_OP_DIV;
}

#endif
