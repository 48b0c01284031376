/*
 * facts.h - what distinguishes one configuration from another: the columns of the ledger that say
 * how a run was done. Which runs are repeats of each other, and which can be compared, is decided
 * by them.
 */
#ifndef RFL_LEDGER_FACTS_H
#define RFL_LEDGER_FACTS_H

#include "ledger/ledger.h"

enum rfl_fact_role {
	RFL_FACT_WORK, /**< what was done: runs that differ in it are not comparable */
	RFL_FACT_WAY,  /**< how: runs that differ in it are no repeats, but can be compared */
	RFL_FACT_NOTE, /**< listed where it differs, and nothing else */
};

struct rfl_fact {
	const char *name;  /**< of the column */
	const char *title; /**< for people */
	enum rfl_ledger_at column;
	enum rfl_fact_role role;
};

/** Those that name a configuration first. */
extern const struct rfl_fact rfl_facts[];
extern const size_t rfl_nfacts;

bool rfl_fact_known(const struct rfl_fact *f, const struct rfl_ledger_row *row);

/** The same, or both not known. */
bool rfl_fact_same(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		   const struct rfl_ledger_row *b);

/** The same, or not known of one of them. */
bool rfl_fact_agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		    const struct rfl_ledger_row *b);

/**
 * Are two rows repeats of one configuration: the same work in the same way? Where they have a
 * config_hash it is the same, too, which alone does not do: it is of what was asked for, and one
 * environment may have machines with other devices or numbers of threads.
 */
bool rfl_facts_repeats(const void *a, const void *b);

/** Equal for rows that are repeats. Both are made for struct rfl_row_index. */
uint64_t rfl_facts_hash(const void *row);

/** Room for more facts than there are. */
#define RFL_FACTS_MAX 64

/** What distinguishes some rows. All zero: of no rows. */
struct rfl_facts_apart {
	const struct rfl_ledger_row *first[RFL_FACTS_MAX]; /**< by fact; borrowed */
	bool differs[RFL_FACTS_MAX];
};

/** Take one more row, which must stay. A run that is not ok makes no difference of what it did not
 * come to know. */
void rfl_facts_apart_add(struct rfl_facts_apart *a, const struct rfl_ledger_row *row);

/** Does fact i distinguish rows, where environment and batch are said anyway? Not micro_batch,
 * which says nothing that batch and accum do not. */
bool rfl_facts_apart_told(const struct rfl_facts_apart *a, size_t i);

/** Append what is listed and known of a row: "optimizer adamw, workers 8"; nothing for rows that
 * are not distinguished. */
void rfl_facts_apart_put(const struct rfl_facts_apart *a, const struct rfl_ledger_row *row,
			 struct rfl_buf *out);

/** Could two rows be of the same work (RFL_FACT_WORK), or even repeats of each other
 * (RFL_FACT_WAY): do they differ in no fact of that role or an earlier one that both know? */
bool rfl_facts_agree(enum rfl_fact_role last, const struct rfl_ledger_row *a,
		     const struct rfl_ledger_row *b);

#endif
