/*
 * merge_parts.h - inside ledger/: what the parts of a merge share.
 */
#ifndef RFL_LEDGER_MERGE_PARTS_H
#define RFL_LEDGER_MERGE_PARTS_H

#include "ledger/matrix/merge.h"

/** A set of texts, its own; sorted before it is asked. */
struct rfl_merge__ids {
	char **items;
	size_t n, cap;
};

/** @return false: out of memory */
bool rfl_merge__add_id(struct rfl_merge__ids *set, const char *id);
void rfl_merge__sort_ids(struct rfl_merge__ids *set);
bool rfl_merge__has_id(const struct rfl_merge__ids *set, const char *id);
void rfl_merge__ids_fini(struct rfl_merge__ids *set);

struct rfl_merge__job {
	const char *to;
	struct rfl_merge *sum;
	/** run_id of every row that is there or comes. A row is written when all else of its run is
	 * there: what has none yet may be half of it. */
	struct rfl_merge__ids runs;
	struct rfl_merge__ids counted; /**< runs whose counters are there */
	bool knows_counted;
};

/** merge_files.c: steps/, time/ and the records of the machine. */
enum rfl_rc rfl_merge__files(struct rfl_merge__job *m, const char *folder,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** merge_counters.c: counters.csv. */
enum rfl_rc rfl_merge__counters(struct rfl_merge__job *m, const char *folder,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Is there something at this path? RFL_EIO when that cannot be known: what is not read would be
 * lost without a word. */
enum rfl_rc rfl_merge__is_there(const char *path, bool *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** RFL_EIO with errno. */
enum rfl_rc rfl_merge__unreadable(const char *path, struct rfl_err *err);
enum rfl_rc rfl_merge__no_memory(const char *path, struct rfl_err *err);

#endif
