/*
 * peer.h - the exact results of other counters for a network: the rule of each tool as a function
 * of the net. docs/appendix/peers.md has the rules, their sources and their known errors.
 */
#ifndef RFL_COMPLEXITY_PEER_H
#define RFL_COMPLEXITY_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

struct rfl_peer {
	const char *name;    /**< "fvcore": for --as */
	const char *version; /**< that the rule was read from and checked against */
	const char *prints;  /**< the tool's name for its number: "FLOPs", "MACs", "mult-adds" */
	bool is_flops;       /**< 2 per multiply-add; else its number is of multiply-adds */
	const char *rule;    /**< one sentence: what it counts, and how much each */
	const char *wrong;   /**< known errors of the tool's number, one sentence; NULL: none */
	const struct rfl_peer_rules *rules; /**< the rule as data */
};

/** The i-th peer, or NULL past the last. */
const struct rfl_peer *rfl_peer_at(size_t i);

/** By name. RFL_ENOTFOUND names all. */
enum rfl_rc rfl_peer_find(const char *name, const struct rfl_peer **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The result of a peer for one forward pass over one sample. */
struct rfl_peer_count {
	int64_t total;  /**< in its own unit: FLOPs where is_flops is set */
	int64_t macs;   /**< the multiply-adds in it */
	int64_t params; /**< parameters that it reports */
	/** Elements that the operations with these multiply-adds write: fvcore's activations. */
	int64_t outputs;
};

/**
 * Count one forward pass over one sample as the peer does.
 *
 * @param ret    on success only
 * @param nodes  the count of each operation, parallel to net->nodes; may be NULL
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason if the tool's rule does not cover an
 * operation of this net; RFL_EOVERFLOW; RFL_ENOMEM
 */
enum rfl_rc rfl_peer_count(const struct rfl_peer *peer, const struct rfl_net *net,
			   struct rfl_peer_count *ret, int64_t *nodes,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
