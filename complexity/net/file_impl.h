/*
 * file_impl.h - what the reader (net/file.c) and the writer (net/file_write.c) of networks agree
 * on.
 */
#ifndef RFL_COMPLEXITY_NET_FILE_IMPL_H
#define RFL_COMPLEXITY_NET_FILE_IMPL_H

#include <stdbool.h>

#include "complexity/net.h"
#include "complexity/op.h"

#define RFL_NET_FILE_SCHEMA "roofline.net/1"

/** The name by which nodes read what comes from outside. */
#define RFL_NET_FILE_INPUT "input"

/** What an operation's node may say, with a key for each pair of attributes x_h and x_w. */
#define RFL_NET_FILE_MAX_KEYS 40

/** Keys that every node may have, ended by NULL. */
extern const char *const rfl_net_file__node_keys[];

/** Whether a file's node may be this operation: not the input, not the loss. */
static inline bool rfl_net_file__is_node(enum rfl_op op)
{
	return op != RFL_OP_INPUT && op != RFL_OP_CROSS_ENTROPY;
}

/** Whether an operation has weights, as a module has: all that has parameters but a bare tensor. */
static inline bool rfl_net_file__has_weights(enum rfl_op op)
{
	return rfl_op_info_of(op)->params && op != RFL_OP_PARAMETER;
}

/** Whether an operation can overwrite its first input: those that enum rfl_op calls elementwise. */
static inline bool rfl_net_file__can_be_inplace(enum rfl_op op)
{
	return op >= RFL_OP_RELU && op <= RFL_OP_DIV;
}

#endif
