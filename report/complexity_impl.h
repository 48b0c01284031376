/*
 * complexity_impl.h - what the files complexity*.c share; private to the room.
 */
#ifndef RFL_REPORT_COMPLEXITY_IMPL_H
#define RFL_REPORT_COMPLEXITY_IMPL_H

#include "report/complexity.h"

#define RFL_MIB 1048576.0

/** What one cell of a table may look at. */
struct rfl_summary_view {
	const struct rfl_summary *s;
	const struct rfl_summary_options *options;
	const struct rfl_summary_row *row;
	const struct rfl_summary_work *work;  /**< of the row: inference or training step */
	const struct rfl_summary_work *total; /**< of all rows, in the same way */
	const struct rfl_memory *memory;      /**< in the same way; NULL: not accounted for */
};

/** Where a column makes sense. */
enum rfl_summary_scope {
	RFL_SUMMARY_ANYWHERE,
	RFL_SUMMARY_OF_MODELS, /**< a fact of a whole model */
	RFL_SUMMARY_OF_PARTS,  /**< of modules, layers and kinds */
	RFL_SUMMARY_OF_LAYERS, /**< of one operation */
};

struct rfl_summary_column {
	struct rfl_column column;
	enum rfl_summary_scope scope;
	bool memory, roof; /**< what it needs */
	bool train;        /**< only a training step has it */
	bool levelled;     /**< of one level of fusion: `arg` */
	void (*cell)(const struct rfl_summary_view *v, int arg, struct rfl_table *t);
	int arg;
	const char *help;
};

enum { RFL_SUMMARY_MAX_COLUMNS = 64 };

/** The columns of one table. */
struct rfl_summary_columns {
	size_t n;
	const struct rfl_summary_column *items[RFL_SUMMARY_MAX_COLUMNS];
	struct rfl_column columns[RFL_SUMMARY_MAX_COLUMNS]; /**< with the titles of this table */
	char title[96];
	bool report; /**< in the form of the older reports */
};

/** The i-th column, or NULL behind the last. */
const struct rfl_summary_column *rfl_summary_column_at(size_t i);

/** By the first `len` characters of a key, or NULL. */
const struct rfl_summary_column *rfl_summary_column_find(const char *key, size_t len);

/** The i-th column of the table of older reports, or NULL behind the last. */
const struct rfl_summary_column *rfl_summary_report_column_at(size_t i);

/** Which columns the work of these summaries is shown in. */
enum rfl_rc rfl_summary_columns_of(struct rfl_summary *const *summaries, size_t n,
				   const struct rfl_summary_options *options,
				   enum rfl_format format, struct rfl_summary_columns *ret,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/** The columns of memory, for people. */
void rfl_summary_columns_of_memory(struct rfl_summary *const *summaries, size_t n,
				   const struct rfl_summary_options *options,
				   struct rfl_summary_columns *ret);

/** Add the columns whose keys stand in `keys`, parted by blanks, where they have something to
 * show. */
void rfl_summary_columns_add(struct rfl_summary_columns *c, struct rfl_summary *const *summaries,
			     size_t n, const struct rfl_summary_options *options, const char *keys);

/** Append what the counters of options->peers say of a network to a list. */
enum rfl_rc rfl_summary_peers_json(struct rfl_summary *s, const struct rfl_summary_options *options,
				   json_t *list, struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether a format is for people, who see titles and scaled numbers. */
static inline bool rfl_summary_for_people(enum rfl_format format)
{
	return format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD;
}

#endif
