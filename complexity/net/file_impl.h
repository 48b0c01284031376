/*
 * file_impl.h - between the files that read and write networks: net/file.c (the document,
 * and its nodes through the builder), net/file_nodes.c (nodes, their names and order),
 * net/file_attrs.c (attributes, both ways), net/file_write.c.
 */
#ifndef RFL_COMPLEXITY_NET_FILE_IMPL_H
#define RFL_COMPLEXITY_NET_FILE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/where.h"
#include "complexity/net.h"
#include "complexity/net/build.h"
#include "complexity/op.h"

#define RFL_NET_FILE_SCHEMA "roofline.net/1"

/** The name by which nodes read what comes from outside. */
#define RFL_NET_FILE_INPUT "input"

/** A node as the file has it. Draft 0 is the input; draft i is the file's node i - 1. */
struct rfl_net_draft {
	const json_t *obj;
	const char *id;     /**< what other nodes call it; NULL: nothing */
	const char *name;   /**< of the module; NULL: a step that is no module */
	const char *within; /**< of a step: the block that runs it; NULL: the network itself */
	enum rfl_op op;
	int ninputs;
	const int *inputs; /**< drafts */
	int tied;          /**< a draft; 0: none */
	int64_t block, function;
	bool inplace, auxiliary, functional;
	bool read; /**< some node reads it */
	int node;  /**< in the network, once it is built */
};

/** What an operation's node may say, with a key for each pair of attributes x_h and x_w. */
#define RFL_NET_FILE_MAX_KEYS 40

struct rfl_net_reader {
	struct rfl_where where;
	struct rfl_err *err;
	struct rfl_arena *arena; /**< of what is gone when the file has been read */
	const json_t *root;
	int ndrafts;
	struct rfl_net_draft *drafts;
	json_t *ids; /**< name to draft */
	int *order;  /**< drafts in order of execution */
	const char **keys[RFL_OP_COUNT];
	struct rfl_net_builder *b;
	char label[1400]; /**< of the builder's messages */
};

enum rfl_rc rfl_net_file__no_memory(const struct rfl_net_reader *r);

/** Read one value of a node, as rows of attributes describe it: an int64_t, a double or a bool.
 * @param value  NULL: *to stays */
enum rfl_rc rfl_net_file__read(struct rfl_net_reader *r, int draft, const char *key,
			       const json_t *value, enum rfl_attr_type type, int64_t min, void *to);

/**
 * Fail at a node, or at one of its keys, or at an element of it.
 * @param key    NULL: the node itself
 * @param index  of the key's list, -1: the key itself
 */
enum rfl_rc rfl_net_file__fail(struct rfl_net_reader *r, int draft, const char *key, int index,
			       const char *fmt, ...) RFL_PRINTF(5, 6);

/** How messages call a node: its name for others, else its operation. */
const char *rfl_net_file__label(const struct rfl_net_draft *d);

/** A text that is not empty, no longer than 255 bytes and without control characters. */
bool rfl_net_file__is_name(const char *text);

/** The draft of this name, or -1. */
int rfl_net_file__find(const struct rfl_net_reader *r, const char *id);

/** Fail because a name is not there; the nearest one is suggested. Draft 0: where the walk is. */
enum rfl_rc rfl_net_file__no_node(struct rfl_net_reader *r, int draft, const char *key, int index,
				  const char *id);

/** Make drafts of all nodes and resolve their names. */
enum rfl_rc rfl_net_file__drafts(struct rfl_net_reader *r, const json_t *nodes);

/** Fill r->order: inputs before those who read them, else as in the file. */
enum rfl_rc rfl_net_file__sort(struct rfl_net_reader *r);

/** Whether a file's node may be this operation: not the input, not the loss. */
bool rfl_net_file__is_node(enum rfl_op op);

/** Whether an operation has weights, as a module has: all that has parameters but a bare tensor. */
bool rfl_net_file__has_weights(enum rfl_op op);

/** Whether an operation can overwrite its first input. */
bool rfl_net_file__can_be_inplace(enum rfl_op op);

/** Two neighbouring attributes x_h and x_w, which a file may call x. */
bool rfl_net_file__is_pair(const struct rfl_op_info *op, size_t i);

/** "kernel" of "kernel_h". @return out */
char *rfl_net_file__stem(const struct rfl_op_attr *attr, char *out, size_t size);

/** Keys that every node may have, ended by NULL. */
extern const char *const rfl_net_file__node_keys[];

/** Refuse keys that the draft's operation does not know. */
enum rfl_rc rfl_net_file__only_keys(struct rfl_net_reader *r, int draft);

/**
 * The attributes of a draft into a node.
 * @param in  of its first input; NULL: it has none
 */
enum rfl_rc rfl_net_file__read_attrs(struct rfl_net_reader *r, int draft,
				     const struct rfl_shape *in, struct rfl_node *node);

/** The attributes of a node into an object. False when memory is short. */
bool rfl_net_file__write_attrs(const struct rfl_net *net, const struct rfl_node *node, json_t *obj);

/** A list of sizes. New reference, or NULL. */
json_t *rfl_net_file__sizes(const int64_t *dim, int n);

#endif
