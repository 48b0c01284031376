/* complexity_impl.h - declarations shared by complexity*.c; private to report/. */
#ifndef RFL_REPORT_COMPLEXITY_IMPL_H
#define RFL_REPORT_COMPLEXITY_IMPL_H

#include "report/complexity.h"

#define RFL_MIB 1048576.0

/** The counting convention, for the notes of a table. */
#define RFL_COMPLEXITY_CONVENTION                                                         \
	"A MAC is one multiply-add of a convolution or matmul, including taps in the "    \
	"padding but not the bias; FLOPs = 2 x MACs. Elementwise operations are counted " \
	"separately."

/** The result of another counter for a network, and our own count in its unit. */
struct rfl_peer_line {
	int64_t total; /**< RFL_INT_UNKNOWN if the counter does not cover the network; see `why` */
	int64_t core;
	struct rfl_err why;
};
enum rfl_rc rfl_complexity__peer(struct rfl_summary *s, const struct rfl_peer *peer,
				 struct rfl_peer_line *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Bytes of parameters, buffers and 16-bit copies for the batch of a fit. */
static inline int64_t rfl_complexity__weights(const struct rfl_fit *fit)
{
	return fit->at.weights + fit->at.buffers + fit->at.weight_copies;
}

/** Add a note on checkpointing if it is used. */
void rfl_complexity__note_checkpoint(struct rfl_table *t, const struct rfl_summary_options *o);

#endif
