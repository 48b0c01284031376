/*
 * complexity_choice.c - which columns a table has: those that were chosen, or those that suit what
 * it shows.
 */
#include "report/complexity_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { MAX_KEYS = 128 };

static bool is_called(const struct rfl_summary_column *c, const char *key)
{
	return strcmp(c->column.key, key) == 0;
}

static void add(struct rfl_summary_columns *c, const struct rfl_summary_column *column)
{
	assert(c->n < RFL_SUMMARY_MAX_COLUMNS);
	c->items[c->n] = column;
	c->columns[c->n++] = column->column;
}

bool rfl_summary_any_context(struct rfl_summary *const *summaries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (summaries[i]->context_length)
			return true;
	return false;
}

/* Whether a column that suits the table has something to show there. */
static bool tells(const struct rfl_summary_column *c, struct rfl_summary *const *summaries,
		  size_t n, const struct rfl_summary_options *options)
{
	int level = c->levelled ? c->arg : -1;

	if (is_called(c, "context") && !rfl_summary_any_context(summaries, n))
		return false;
	if (level >= 0 && options->fusion >= 0 && level != options->fusion)
		return false;
	return (!c->memory || options->memory) && (!c->roof || options->roof) &&
	       (!c->train || options->train);
}

void rfl_summary_columns_add(struct rfl_summary_columns *c, struct rfl_summary *const *summaries,
			     size_t n, const struct rfl_summary_options *options, const char *keys)
{
	while (*keys) {
		size_t len = strcspn(keys, " ");
		const struct rfl_summary_column *column = rfl_summary_column_find(keys, len);

		assert(column);
		if (column && tells(column, summaries, n, options))
			add(c, column);
		keys += len;
		keys += strspn(keys, " ");
	}
}

#define LEVEL_BYTES "unfused_bytes fused_bytes compulsory_bytes "
#define LEVEL_AI    "unfused_ai fused_ai compulsory_ai "
#define TIMES       "time_s bound "
#define OF_MEMORY   "weights_bytes gradients_bytes state_bytes saved_bytes peak_bytes peak_phase "

/*
 * The bytes that people see: those that are timed where there are times, else the level that was
 * asked for, else what a table of 160 columns has room for. The compulsory bytes of a part say
 * little.
 */
static const char *people_levels(const struct rfl_summary_options *options, bool one)
{
	static const char *const timed[RFL_FUSION_COUNT] = {
		[RFL_FUSION_UNFUSED] = "unfused_bytes unfused_ai ",
		[RFL_FUSION_FUSED] = "fused_bytes fused_ai ",
		[RFL_FUSION_COMPULSORY] = "compulsory_bytes compulsory_ai ",
	};

	if (options->roof)
		return timed[options->roof->fusion];
	if (options->by == RFL_BY_MODEL)
		return options->fusion < 0 ? LEVEL_BYTES "unfused_ai fused_ai "
					   : LEVEL_BYTES LEVEL_AI;
	if (options->fusion >= 0)
		return LEVEL_BYTES "unfused_pct fused_pct compulsory_pct " LEVEL_AI;
	return options->by == RFL_BY_LAYER || !one
		       ? "unfused_bytes fused_bytes unfused_ai fused_ai "
		       : "unfused_bytes unfused_pct fused_bytes unfused_ai fused_ai ";
}

static bool one_name(struct rfl_summary *const *summaries, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (strcmp(summaries[i]->name, summaries[0]->name) != 0)
			return false;
	return n > 0;
}

static size_t keys_of_models(const struct rfl_summary_options *options, bool people,
			     const char **keys)
{
	size_t k = 0;

	keys[k++] = "model context params forward_macs forward_flops training_flops batch ";
	if (people) { /* the work of a batch is the batch times what is per sample */
		keys[k++] = people_levels(options, true);
	} else {
		keys[k++] = "macs flops ";
		if (options->train)
			keys[k++] = "fwd_flops dgrad_flops wgrad_flops recompute_flops ";
		keys[k++] = "elementwise " LEVEL_BYTES LEVEL_AI OF_MEMORY;
	}
	keys[k++] = TIMES "samples_per_s";
	return k;
}

/* A table of layers has names and shapes in place of some of what is told by kind. */
static size_t keys_of_parts(const struct rfl_summary_options *options, bool people, bool one,
			    const char **keys)
{
	bool layers = options->by == RFL_BY_LAYER;
	size_t k = 0;

	if (!people) {
		keys[k++] = layers ? "model context name kind output params batch "
				   : "model context name params batch ";
		keys[k++] = "macs flops elementwise " LEVEL_BYTES LEVEL_AI "saved_bytes " TIMES;
		return k;
	}
	keys[k++] = one ? "context " : "model context ";
	if (options->nbatches > 1)
		keys[k++] = "batch";
	keys[k++] = layers ? "name kind output params macs flops "
			   : "name params macs flops flops_pct elementwise ";
	keys[k++] = people_levels(options, one);
	keys[k++] = options->roof ? "time_s time_pct bound" : "saved_bytes";
	return k;
}

static void add_default(struct rfl_summary_columns *c, struct rfl_summary *const *summaries,
			size_t n, const struct rfl_summary_options *options, enum rfl_format format)
{
	bool people = rfl_summary_for_people(format);
	const char *keys[8];
	size_t k = options->by == RFL_BY_MODEL
			   ? keys_of_models(options, people, keys)
			   : keys_of_parts(options, people, one_name(summaries, n), keys);

	for (size_t i = 0; i < k; i++)
		rfl_summary_columns_add(c, summaries, n, options, keys[i]);
}

void rfl_summary_columns_of_memory(struct rfl_summary *const *summaries, size_t n,
				   const struct rfl_summary_options *options,
				   struct rfl_summary_columns *ret)
{
	*ret = (struct rfl_summary_columns){ .n = 0 };
	rfl_summary_columns_add(ret, summaries, n, options,
				options->by == RFL_BY_MODEL || !one_name(summaries, n)
					? "model context batch "
					: "context batch ");
	rfl_summary_columns_add(ret, summaries, n, options, OF_MEMORY);
}

static enum rfl_rc no_column(const char *key, struct rfl_err *err)
{
	const char *keys[MAX_KEYS + 2] = { "report" };
	const struct rfl_summary_column *column;
	const char *near;

	for (size_t i = 0; i < MAX_KEYS && (column = rfl_summary_column_at(i)); i++)
		keys[i + 1] = column->column.key;
	near = rfl_text_nearest(key, keys);
	if (near)
		return rfl_fail(err, RFL_ENOTFOUND, 0, "no column '%s'; did you mean %s?", key,
				near);
	return rfl_fail(err, RFL_ENOTFOUND, 0, "no column '%s'; '--columns help' names all", key);
}

static enum rfl_rc check(const struct rfl_summary_column *c,
			 const struct rfl_summary_options *options, struct rfl_err *err)
{
	const char *key = c->column.key;

	if (c->scope == RFL_SUMMARY_OF_MODELS && options->by != RFL_BY_MODEL)
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is of a whole model: it goes with --by model", key);
	if (c->scope == RFL_SUMMARY_OF_PARTS && options->by == RFL_BY_MODEL)
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is of a part: it goes with --by module, layer or kind", key);
	if (c->scope == RFL_SUMMARY_OF_LAYERS && options->by != RFL_BY_LAYER)
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is of one operation: it goes with --by layer", key);
	if (c->roof && !options->roof)
		return rfl_fail(err, RFL_EINVAL, 0, "'%s' needs ceilings: --peaks FILE --env NAME",
				key);
	if (c->train && !options->train)
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is of a training step: it goes with --train", key);
	return RFL_OK;
}

static enum rfl_rc add_chosen(struct rfl_summary_columns *c,
			      const struct rfl_summary_options *options, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < options->ncolumns && rc == RFL_OK; i++) {
		const struct rfl_summary_column *column =
			rfl_summary_column_find(options->columns[i], strlen(options->columns[i]));

		rc = column ? check(column, options, err) : no_column(options->columns[i], err);
		if (rc == RFL_OK && c->n == RFL_SUMMARY_MAX_COLUMNS)
			rc = rfl_fail(err, RFL_EINVAL, 0, "more than %d columns",
				      RFL_SUMMARY_MAX_COLUMNS);
		if (rc == RFL_OK)
			add(c, column);
	}
	return rc;
}

static bool is_report(const struct rfl_summary_options *options)
{
	return options->ncolumns == 1 && strcmp(options->columns[0], "report") == 0;
}

static enum rfl_rc add_report(struct rfl_summary_columns *c,
			      const struct rfl_summary_options *options, struct rfl_err *err)
{
	const struct rfl_summary_column *column;

	if (options->by != RFL_BY_MODEL)
		return rfl_fail(err, RFL_EINVAL, 0,
				"'report' has a row per model: it goes with --by model");
	c->report = true;
	for (size_t i = 0; (column = rfl_summary_report_column_at(i)); i++) {
		bool of_batch = is_called(column, "batch_forward_flops");

		if (options->nbatches > 1 && of_batch)
			rfl_summary_columns_add(c, NULL, 0, options, "batch");
		add(c, column);
		if (options->nbatches == 1 && of_batch)
			(void)snprintf(c->title, sizeof(c->title),
				       "Forward FLOPs/batch (G, bs%lld)",
				       (long long)options->batches[0]);
	}
	return RFL_OK;
}

enum rfl_rc rfl_summary_columns_of(struct rfl_summary *const *summaries, size_t n,
				   const struct rfl_summary_options *options,
				   enum rfl_format format, struct rfl_summary_columns *ret,
				   struct rfl_err *err)
{
	static const char *const part_titles[] = { "Model", "Module", "Layer", "Kind" };
	enum rfl_rc rc = RFL_OK;

	*ret = (struct rfl_summary_columns){ .n = 0 };
	if (!options->ncolumns)
		add_default(ret, summaries, n, options, format);
	else if (is_report(options))
		rc = add_report(ret, options, err);
	else
		rc = add_chosen(ret, options, err);
	for (size_t i = 0; i < ret->n; i++) {
		if (is_called(ret->items[i], "name"))
			ret->columns[i].title = part_titles[options->by];
		if (is_called(ret->items[i], "batch_forward_flops") && ret->title[0])
			ret->columns[i].title = ret->title;
	}
	return rc;
}

/* Whether a chosen column, by key, is one of those. */
static bool any_chosen(const struct rfl_summary_options *options,
		       bool (*is_one)(const struct rfl_summary_column *c))
{
	for (size_t i = 0; i < options->ncolumns; i++) {
		const struct rfl_summary_column *c =
			rfl_summary_column_find(options->columns[i], strlen(options->columns[i]));

		if (c && is_one(c))
			return true;
	}
	return false;
}

static bool is_of_memory(const struct rfl_summary_column *c)
{
	return c->memory;
}

bool rfl_summary_wants_memory(const struct rfl_summary_options *options)
{
	return options->ncolumns ? any_chosen(options, is_of_memory) : options->train;
}

bool rfl_summary_wants_both(const struct rfl_summary_options *options)
{
	/* columns of the forward pass of a batch, whatever the table is of */
	static const char *const keys[] = { "batch_forward_flops", "report" };

	for (size_t i = 0; i < options->ncolumns; i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(keys); k++)
			if (strcmp(options->columns[i], keys[k]) == 0)
				return true;
	return false;
}
