/*
 * complexity.h - read this first: what can be said of a network without running it.
 *
 * The room answers: which layers and parameters does a model have, how many multiply-adds and other
 * operations does a pass over it take, how many bytes must that pass move, and how much memory
 * does a step take.
 *
 *	struct rfl_net *net = NULL;
 *	struct rfl_count *count = NULL;
 *	struct rfl_count_options options = { .batch = 32, .training = true };
 *
 *	rc = rfl_zoo_build("resnet50", NULL, &net, &err);
 *	if (rc == RFL_OK)
 *		rc = rfl_count_net(net, &options, &count, &err);
 *	if (rc == RFL_OK)
 *		printf("%lld FLOPs\n", (long long)rfl_count_training_flops(count));
 *	rfl_count_free(count);
 *	rfl_net_free(net);
 *
 * net.h      the network: a static graph of operations with its parameters. Immutable once built,
 *            owned by its builder, freed at once. Engines execute the same object that is
 *            counted here; there is no second description.
 * zoo.h      the models that the program knows, by name
 * count.h    MACs per pass, elementwise operations by kind, bytes at three levels of fusion, the
 *            least time of counted work under ceilings
 * memory.h   what a step takes of a memory, and the largest batch that fits
 * peer.h     what other counters would say
 * net/file.h networks as JSON files
 * summary.h  all of it for one network, by module, layer or kind of operation
 * op.h       the table of operations: what each one is called, owns and costs
 *
 * To write: net/build.h (how a zoo file writes a network down), zoo/impl.h (how a family joins the
 * zoo). docs/complexity.md has the formulas, a layer worked out by hand, and how to add to it.
 */
#ifndef RFL_COMPLEXITY_COMPLEXITY_H
#define RFL_COMPLEXITY_COMPLEXITY_H

#include "complexity/count.h"
#include "complexity/count/memory.h"
#include "complexity/net.h"
#include "complexity/net/file.h"
#include "complexity/op.h"
#include "complexity/peer.h"
#include "complexity/summary.h"
#include "complexity/zoo.h"

#endif
