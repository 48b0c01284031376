/*
 * facts.h - the columns of the ledger that describe a configuration. They decide which runs are
 * repeats of each other and which can be compared.
 */
#ifndef RFL_LEDGER_FACTS_H
#define RFL_LEDGER_FACTS_H

#include "ledger/ledger.h"

enum rfl_fact_role {
	RFL_FACT_WORK, /**< the work: runs that differ in it are not comparable */
	RFL_FACT_WAY,  /**< how it was done: runs that differ are not repeats, but comparable */
	RFL_FACT_NOTE, /**< only listed if it differs */
};

struct rfl_fact {
	const char *name;  /**< of the column */
	const char *title; /**< in tables */
	enum rfl_ledger_at column;
	enum rfl_fact_role role;
};

/** The facts that name a configuration come first. */
extern const struct rfl_fact rfl_facts[];
extern const size_t rfl_nfacts;

bool rfl_fact_known(const struct rfl_fact *f, const struct rfl_ledger_row *row);

/** Equal, or unknown in both rows. */
bool rfl_fact_same(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		   const struct rfl_ledger_row *b);

/** Equal, or unknown in one of the rows. */
bool rfl_fact_agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		    const struct rfl_ledger_row *b);

/** Are two rows repeats of one configuration: the same work done in the same way? An equal
 * config_hash is required but not sufficient: it covers the requested options, and the machines of
 * one environment may differ in devices or threads. */
bool rfl_facts_repeats(const void *a, const void *b);

/** Equal for repeats. Both functions suit struct rfl_row_index. */
uint64_t rfl_facts_hash(const void *row);

/** More than the number of facts. */
#define RFL_FACTS_MAX 64

/** The facts in which some rows differ. A zeroed struct has no rows. */
struct rfl_facts_apart {
	const struct rfl_ledger_row *first[RFL_FACTS_MAX]; /**< by fact; borrowed */
	bool differs[RFL_FACTS_MAX];
};

/** Add a row, which is borrowed. Facts that a failed run does not know are not a difference. */
void rfl_facts_apart_add(struct rfl_facts_apart *a, const struct rfl_ledger_row *row);

/** Is fact i worth listing next to environment and batch, which are always shown? micro_batch is
 * not: it follows from batch and accum. */
bool rfl_facts_apart_told(const struct rfl_facts_apart *a, size_t i);

/** Append the listed facts that a row knows: "optimizer adamw, workers 8"; nothing if no fact
 * differs. */
void rfl_facts_apart_put(const struct rfl_facts_apart *a, const struct rfl_ledger_row *row,
			 struct rfl_buf *out);

/** Could two rows be the same work (RFL_FACT_WORK) or even repeats (RFL_FACT_WAY)? True unless they
 * differ in a fact of that role, or of an earlier one, that both know. */
bool rfl_facts_agree(enum rfl_fact_role last, const struct rfl_ledger_row *a,
		     const struct rfl_ledger_row *b);

#endif
