/*
 * peer.h - compute the results that other FLOP-counting tools report for a network. The rule of
 * each tool is a function of the net. docs/reference/peers.md has the rules, their sources and
 * their known errors.
 */
#ifndef RFL_COMPLEXITY_PEER_H
#define RFL_COMPLEXITY_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

struct rfl_peer {
	const char *name;    /**< "fvcore", for --as */
	const char *version; /**< the rule was read from and checked against this version */
	const char *prints;  /**< the tool's name for its number: "FLOPs", "MACs", "mult-adds" */
	bool is_flops;       /**< whether it counts 2 per multiply-add instead of 1 */
	const char *rule;    /**< one sentence: the operations counted and their weights */
	const char *wrong;   /**< one sentence: known errors of the tool; NULL: none */
	const struct rfl_peer_rules *rules; /**< the rule as data */
};

/** The i-th peer, or NULL past the last. */
const struct rfl_peer *rfl_peer_at(size_t i);

/** Find a peer by name. RFL_ENOTFOUND lists all. */
enum rfl_rc rfl_peer_find(const char *name, const struct rfl_peer **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** A peer's result for one forward pass over one sample. */
struct rfl_peer_count {
	int64_t total;  /**< in the peer's unit: FLOPs if is_flops is set */
	int64_t macs;   /**< the multiply-adds included in it */
	int64_t params; /**< parameters reported by the peer */
	/** Elements written by the operations with these multiply-adds: fvcore's activations. */
	int64_t outputs;
};

/**
 * Count a forward pass over one sample as the peer does.
 *
 * @param ret    on success only
 * @param nodes  set to the count of each operation, parallel to net->nodes; may be NULL
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason if the rule does not cover an operation of the
 * net; RFL_EOVERFLOW
 */
enum rfl_rc rfl_peer_count(const struct rfl_peer *peer, const struct rfl_net *net,
			   struct rfl_peer_count *ret, int64_t *nodes,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
