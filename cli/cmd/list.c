/*
 * list.c - roofline list: every row of every registry, whether it works here, and what to do
 * where it does not.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "cli/put.h"
#include "report/table.h"

struct list_args {
	int format;
	struct rfl_opt_list words; /* registries, and parts of names */
};

static const struct rfl_opt opts[] = {
	RFL_OPT_FORMAT_ROW(offsetof(struct list_args, format)),
	{ .name = NULL },
};

static const struct rfl_column columns[] = {
	{ .key = "registry", .title = "Registry", .kind = RFL_COLUMN_TEXT },
	{ .key = "name", .title = "Name", .kind = RFL_COLUMN_TEXT },
	{ .key = "status", .title = "Here", .kind = RFL_COLUMN_TEXT },
	{ .key = "summary", .title = "What it is", .kind = RFL_COLUMN_TEXT },
	{ .key = "detail", .title = "Detail", .kind = RFL_COLUMN_TEXT },
	{ .key = "reason", .title = "Why not, and what to do", .kind = RFL_COLUMN_TEXT },
	{ .key = "params", .title = "Parameters", .kind = RFL_COLUMN_INT },
	{ .key = "forward_flops", .title = "GFLOPs", .kind = RFL_COLUMN_INT, .scale = 1e9 },
};

static bool is_registry(const char *word)
{
	for (size_t i = 0; rfl_registry_names[i]; i++)
		if (strcmp(rfl_registry_names[i], word) == 0)
			return true;
	return false;
}

/* A word that is not a registry is a part of names, unless it looks like a mistyped registry. */
static enum rfl_rc check_words(const struct rfl_opt_list *words, struct rfl_err *err)
{
	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->items[i];
		const char *near = rfl_text_nearest(word, rfl_registry_names);

		if (near && !is_registry(word))
			return rfl_fail(err, RFL_EUSAGE, 0,
					"'%s' is neither a registry nor a part of a name; did you "
					"mean %s?",
					word, near);
	}
	return RFL_OK;
}

static bool is_asked(const struct rfl_item *item, const struct rfl_opt_list *words)
{
	bool all = true;

	for (size_t i = 0; i < words->n; i++) {
		if (is_registry(words->items[i]))
			continue;
		all = false;
		if (strstr(item->name, words->items[i]))
			return true;
	}
	return all;
}

/* For people: a section per registry; a line per model, of others the reason below the row. */
static void print_sections(struct rfl_cli *cli, const struct rfl_inventory *inv)
{
	const char *section = "";
	int width = 0; /* of the names of the section */

	for (const struct rfl_item *item = inv->items; item < inv->items + inv->n; item++) {
		char params[RFL_NUM_MAX], flops[RFL_NUM_MAX];

		if (strcmp(section, item->registry) != 0) {
			rfl_cli_printf(cli, "%s%s%s\n", item > inv->items ? "\n" : "",
				       item->registry,
				       item->params ? ": parameters, forward FLOPs of one "
						      "sample, its shape"
						    : "");
			section = item->registry;
			width = 0;
			for (size_t i = 0; i < inv->n; i++) {
				const int len = (int)strlen(inv->items[i].name);

				if (strcmp(inv->items[i].registry, section) == 0 && len > width)
					width = len;
			}
		}
		if (item->params) {
			rfl_cli_printf(cli, "  %-*s  %7s M  %7s G  %s; %s\n", width, item->name,
				       rfl_num_people((double)item->params / 1e6, 4, params),
				       rfl_num_people((double)item->forward_flops / 1e9, 4, flops),
				       item->detail, item->summary);
			continue;
		}
		rfl_cli_printf(cli, "  %-*s  %-2s  %s\n", width, item->name, item->ok ? "ok" : "no",
			       item->summary);
		if (item->detail || item->reason)
			rfl_cli_printf(cli, "  %-*s      %s\n", width, "",
				       item->reason ? item->reason : item->detail);
	}
}

static enum rfl_rc print_table(struct rfl_cli *cli, const struct rfl_inventory *inv,
			       enum rfl_format format, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];

		rfl_table_text(t, item->registry);
		rfl_table_text(t, item->name);
		rfl_table_text(t, item->ok ? "ok" : "no");
		rfl_table_text(t, item->summary);
		rfl_table_text(t, item->detail);
		rfl_table_text(t, item->reason);
		if (item->params) {
			rfl_table_int(t, item->params);
			rfl_table_int(t, item->forward_flops);
		} else {
			rfl_table_null(t);
			rfl_table_null(t);
		}
	}
	rc = rfl_cli_put_table(cli, t, format, err);
	rfl_table_free(t);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct list_args *a = args;
	struct rfl_inventory *inv = NULL;
	size_t registries = 0, kept = 0;
	enum rfl_rc rc;

	rc = check_words(&a->words, err);
	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < a->words.n; i++)
		registries += is_registry(a->words.items[i]);
	rfl_cli_progress(cli, "checking engines ...");
	rc = rfl_inventory_new(cli, a->words.items, registries ? a->words.n : 0, &inv, err);
	rfl_cli_progress(cli, NULL);
	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < inv->n; i++)
		if (is_asked(&inv->items[i], &a->words))
			inv->items[kept++] = inv->items[i];
	inv->n = kept;
	if (kept == 0)
		rc = rfl_fail(err, RFL_ENOTFOUND, 0, "no name has '%s' in it",
			      a->words.items[a->words.n - 1]);
	else if (a->format == RFL_FORMAT_TABLE)
		print_sections(cli, inv);
	else
		rc = print_table(cli, inv, (enum rfl_format)a->format, err);
	rfl_inventory_free(inv);
	return rc;
}

const struct rfl_cmd rfl_cmd_list = {
	.name = "list",
	.summary = "list models, engines, counter sources, importers, and what works here",
	.operands = "[models|engines|benchmarks|sources|importers|surfaces|libraries|TEXT]...",
	.description =
		"A row that cannot work on this machine is listed with the reason and what to do "
		"about it. Every engine is opened in a child process, which can take a second. "
		"Benchmarks are the loops that measure ceilings, sources the counters that are "
		"read while a program runs, importers the kinds of other profilers' files, "
		"surfaces the output formats of figures, libraries what was built in. TEXT selects "
		"rows that have it in their name.",
	.example =
		"roofline list\nroofline list models resnet\nroofline list engines --format json",
	.opts = opts,
	.args_size = sizeof(struct list_args),
	.operands_offset = offsetof(struct list_args, words),
	.run = run,
};
