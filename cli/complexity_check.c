/*
 * complexity_check.c - options of roofline complexity that have no effect on what is asked for:
 * they are refused, because a user who passes one expects a difference.
 */
#include "cli/complexity.h"

#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

/* What is made, and so where an option can have an effect. */
enum place {
	TABLE = 1 << 0,        /* of counts */
	TABLE_MODELS = 1 << 1, /* with a row per model: it tells training FLOPs in any case */
	TABLE_PARTS = 1 << 2,
	TABLE_STEP = 1 << 3,   /* of a training step */
	TABLE_MEMORY = 1 << 4, /* with columns of memory */
	STEP_MEMORY = 1 << 5,  /* of memory in a training step */
	FIT = 1 << 6,
	FIT_STEP = 1 << 7,
	FIT_CONTEXT = 1 << 8, /* with a language model, whose context is looked for at a batch */
	PEERS = 1 << 9,
	LISTS = 1 << 10, /* of layers */
	DOCUMENT = 1 << 11,
	DOCUMENT_TIMES = 1 << 12,
	MODULES = 1 << 13,     /* rows of them, in a table or the document */
	TABLE_TIMES = 1 << 14, /* with a column of times, if ceilings are given */
};

#define STEP_FACTS (TABLE_STEP | TABLE_MODELS | FIT_STEP | LISTS | DOCUMENT)
#define OF_STEP    "it is of a training step, which --train shows"

struct rule {
	const char *option;
	unsigned places;
	const char *why;
};

static const struct rule rules[] = {
	{ "batch-sizes", TABLE | LISTS | DOCUMENT | FIT_CONTEXT,
	  "batches are of tables of counts, lists of layers and documents" },
	{ "train", TABLE | FIT | DOCUMENT, "a step is shown in tables of counts and by --fit" },
	{ "input-grad", STEP_FACTS, OF_STEP },
	{ "aux", STEP_FACTS, OF_STEP },
	{ "freeze", STEP_FACTS, OF_STEP },
	{ "checkpoint", STEP_FACTS, OF_STEP },
	{ "accumulate", STEP_MEMORY | FIT_STEP | LISTS | DOCUMENT, OF_STEP },
	{ "update", STEP_MEMORY | FIT_STEP | LISTS | DOCUMENT, OF_STEP },
	{ "optimizer", TABLE_STEP | FIT_STEP | LISTS | DOCUMENT, OF_STEP },
	{ "precision", TABLE | FIT | LISTS | DOCUMENT, "it says how many bytes move and are kept" },
	{ "device", TABLE_MEMORY | FIT | LISTS | DOCUMENT,
	  "it is of memory, which --train, --fit and --summary show" },
	{ "causal", TABLE | LISTS | DOCUMENT, "it is of the counts" },
	{ "peaks", TABLE_TIMES | DOCUMENT, "least times are in tables of counts and in documents" },
	{ "fusion", TABLE | DOCUMENT_TIMES,
	  "it is of tables of counts, and of the times of --peaks" },
	{ "by", TABLE | DOCUMENT, "rows are of tables of counts and of documents" },
	{ "depth", MODULES, "it goes with --by module" },
	{ "top", TABLE_PARTS, "it is of tables --by module, layer or kind" },
	{ "columns", TABLE, "columns are of tables of counts" },
};

static unsigned places_of_table(const struct rfl_complexity_report *r)
{
	const struct rfl_complexity_args *a = r->args;
	bool memory = rfl_summary_wants_memory(&r->options);
	unsigned places = TABLE;

	places |= a->by == RFL_BY_MODEL ? TABLE_MODELS : TABLE_PARTS;
	places |= a->train ? TABLE_STEP : 0;
	places |= rfl_summary_wants_roof(&r->options) ? TABLE_TIMES : 0;
	places |= memory ? TABLE_MEMORY : 0;
	places |= memory && a->train ? STEP_MEMORY : 0;
	return places;
}

static unsigned places_of(const struct rfl_complexity_report *r)
{
	const struct rfl_complexity_args *a = r->args;
	bool document = a->output_dir || (a->format == RFL_FORMAT_JSON && !a->summary);
	unsigned places = 0;

	if (document)
		places |= DOCUMENT | (a->peaks ? DOCUMENT_TIMES : 0);
	if (a->summary || a->output_dir)
		places |= LISTS;
	if (a->fit)
		places |= FIT | (a->train ? FIT_STEP : 0) |
			  (rfl_summary_any_context(r->items, r->n) ? FIT_CONTEXT : 0);
	else if (a->peers.n)
		places |= PEERS;
	else if (!a->summary && a->format != RFL_FORMAT_JSON)
		places |= places_of_table(r);
	if (a->by == RFL_BY_MODULE && places & (TABLE | DOCUMENT))
		places |= MODULES;
	return places;
}

/* --- whether an option was given something else than its default --- */

static const struct rfl_opt *row_of(const char *name)
{
	const struct rfl_opt *row = rfl_complexity_opts;

	while (row->name && strcmp(row->name, name) != 0)
		row++;
	return row->name ? row : NULL;
}

static bool is_given_int(const struct rfl_opt *row, int64_t value)
{
	int64_t usual = 0;

	return !row->def || rfl_num_parse_int(row->def, row->name, &usual, NULL) != RFL_OK ||
	       value != usual;
}

/* A default that was written out is not told apart from one that was not: it has no effect. */
static bool is_given(const struct rfl_complexity_args *args, const struct rfl_opt *row)
{
	const void *member = (const char *)args + row->offset;
	const struct rfl_opt_int_list *ints = member;

	switch (row->kind) {
	case RFL_OPT_FLAG:
		return *(const bool *)member;
	case RFL_OPT_INT:
		return is_given_int(row, *(const int64_t *)member);
	case RFL_OPT_REAL:
		return true; /* there is none here */
	case RFL_OPT_TEXT:
		return *(const char *const *)member != NULL;
	case RFL_OPT_CHOICE:
		return strcmp(row->choices[*(const int *)member], row->def) != 0;
	case RFL_OPT_LIST:
		return ((const struct rfl_opt_list *)member)->n > 0;
	case RFL_OPT_INT_LIST:
		return ints->n > 1 || (ints->n == 1 && is_given_int(row, ints->items[0]));
	}
	return true;
}

/* --- networks that an option says something of --- */

static bool is_of_zoo(const struct rfl_summary *s)
{
	return s->model != NULL;
}

static bool reads_images(const struct rfl_summary *s)
{
	return s->context_length == 0;
}

static bool has_auxiliary(const struct rfl_summary *s)
{
	for (int i = 0; i < s->net->nnodes; i++)
		if (s->net->nodes[i].auxiliary)
			return true;
	return false;
}

static bool has_causal(const struct rfl_summary *s)
{
	for (int i = 0; i < s->net->nnodes; i++) {
		const struct rfl_node *node = &s->net->nodes[i];

		if ((node->op == RFL_OP_MATMUL && node->attr.matmul.causal) ||
		    (node->op == RFL_OP_SDPA && node->attr.sdpa.causal))
			return true;
	}
	return false;
}

static bool has_attention(const struct rfl_summary *s)
{
	for (int i = 0; i < s->net->nnodes && is_of_zoo(s); i++)
		if (s->net->nodes[i].op == RFL_OP_MATMUL || s->net->nodes[i].op == RFL_OP_SDPA)
			return true;
	return false;
}

static const struct {
	const char *option;
	bool (*suits)(const struct rfl_summary *s);
	const char *reason;
} needs[] = {
	{ "image-size", is_of_zoo, "a network from a file has the size that is written there" },
	{ "context-length", is_of_zoo,
	  "a network from a file has the length that is written there" },
	{ "classes", is_of_zoo, "a network from a file has the classes that are written there" },
	{ "attention", has_attention, "no model of the zoo that was named has attention" },
	{ "causal", has_causal, "no network that was named has a causal mask" },
	{ "input-grad", reads_images,
	  "tokens have no gradient; it is for networks that read images" },
	{ "aux", has_auxiliary, "no network that was named has auxiliary heads" },
};

static enum rfl_rc check_needs(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	for (size_t k = 0; k < RFL_ARRAY_LEN(needs); k++) {
		bool suits = !is_given(r->args, row_of(needs[k].option));

		for (size_t i = 0; i < r->n && !suits; i++)
			suits = needs[k].suits(r->items[i]);
		if (!suits)
			return rfl_fail(err, RFL_EUSAGE, 0, "--%s: %s", needs[k].option,
					needs[k].reason);
	}
	return RFL_OK;
}

enum rfl_rc rfl_complexity_check(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	unsigned places = places_of(r);

	if (a->fit && !(places & rules[0].places) && is_given(a, row_of("batch-sizes")))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--batch-sizes has no effect with --fit, which searches for it");
	for (size_t i = 0; i < RFL_ARRAY_LEN(rules); i++)
		if (!(rules[i].places & places) && is_given(a, row_of(rules[i].option)))
			return rfl_fail(err, RFL_EUSAGE, 0, "--%s has no effect here: %s",
					rules[i].option, rules[i].why);
	if (a->batches.n > 1 && !(places & (TABLE | DOCUMENT)))
		return rfl_fail(err, RFL_EUSAGE, 0, "--batch-sizes: %s takes one, not %zu",
				a->fit ? "--fit" : "--summary", a->batches.n);
	return check_needs(r, err);
}
