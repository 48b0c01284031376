/*
 * facts.h - the ledger columns that describe a configuration. They determine which runs are repeats
 * of each other and which can be compared.
 */
#ifndef RFL_LEDGER_FACTS_H
#define RFL_LEDGER_FACTS_H

#include "base/text.h"
#include "ledger/ledger.h"

enum rfl_fact_role {
	RFL_FACT_WORK, /**< work done: runs that differ in it are not comparable */
	RFL_FACT_WAY,  /**< method: runs that differ in it are comparable, but not repeats */
	RFL_FACT_NOTE, /**< listed only if it differs between runs */
};

struct rfl_fact {
	const char *name;  /**< column name */
	const char *title; /**< title in tables */
	enum rfl_ledger_at column;
	enum rfl_fact_role role;
};

/** The facts, beginning with those that name a configuration. */
extern const struct rfl_fact rfl_facts[];
extern const size_t rfl_nfacts;

/** The names of the facts that are not notes, in the same order, NULL-terminated, for an option. */
extern const char *const rfl_fact_names[];

/** The index of the fact in a column, or rfl_nfacts. */
size_t rfl_fact_find(enum rfl_ledger_at column);

bool rfl_fact_known(const struct rfl_fact *f, const struct rfl_ledger_row *row);

/** The first of model, precision, batch and env that is unknown. NULL: none. */
const char *rfl_facts_lack(const struct rfl_ledger_row *row);

/** Return true if the fact is equal in both rows or unknown in both. */
bool rfl_fact_same(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		   const struct rfl_ledger_row *b);

/** Return true if the fact is equal in both rows or unknown in at least one. */
bool rfl_fact_agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		    const struct rfl_ledger_row *b);

/** Return true if two rows are repeats: the same work done in the same way. An equal config_hash is
 * required but not sufficient: it covers the requested options, whereas the machines of one
 * environment may differ in devices or threads. */
bool rfl_facts_repeats(const void *a, const void *b);

/** Hash the facts of a row; repeats have equal hashes. This function and the one above can be used
 * with struct rfl_row_index. */
uint64_t rfl_facts_hash(const void *row);

/** An upper limit for the number of facts. */
#define RFL_FACTS_MAX 64

/** The facts that differ between rows. A zeroed struct has no rows. */
struct rfl_facts_apart {
	const struct rfl_ledger_row
		*first[RFL_FACTS_MAX]; /**< first known row for each fact; borrowed */
	bool differs[RFL_FACTS_MAX];
};

/** Add a row, which is borrowed. A fact that is unknown in a failed run is not a difference. */
void rfl_facts_apart_add(struct rfl_facts_apart *a, const struct rfl_ledger_row *row);

/** Return true if fact i should be listed next to environment and batch, which are always shown.
 * micro_batch is not listed: it follows from batch and accum. */
bool rfl_facts_apart_told(const struct rfl_facts_apart *a, size_t i);

/** Append the listed facts that are known in a row, such as "optimizer adamw, workers 8". Append
 * nothing if no fact differs. */
void rfl_facts_apart_put(const struct rfl_facts_apart *a, const struct rfl_ledger_row *row,
			 struct rfl_buf *out);

#define RFL_FACT_NAME_MAX 40
/** Append a fact in words: "8 workers" for workers and 8. */
void rfl_fact_say(const char *name, const char *value, struct rfl_buf *out);

/** Take the first fact of a text such as "workers 8, layout nhwc". The key is "" if it is not a
 * ledger column. @return false: there is none left */
bool rfl_variant_next(const char **rest, char key[RFL_FACT_NAME_MAX], struct rfl_span *value);

/** Append such a text in words. NULL: nothing. */
void rfl_variant_say(const char *variant, struct rfl_buf *out);

/** Return true if two rows can be repeats: facts known in both are equal, except notes. */
bool rfl_facts_agree(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b);

#endif
