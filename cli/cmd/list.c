/* list.c - roofline list and version: list the items of all registries, print the version. */
#include "cli/cmd.h"

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "rfl_config.h"

struct list_args {
	struct rfl_opt_list words; /* names of registries and parts of item names */
	int format;
	bool json; /* of version */
};

#define OPT(kind, member, ...) RFL_OPT(struct list_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static const struct rfl_column columns[] = {
	RFL_COLUMN(TEXT, struct rfl_item, registry, "registry", "Registry"),
	RFL_COLUMN(TEXT, struct rfl_item, name, "name", "Name"),
	{ .put = rfl_item_put_state, .key = "status", .title = "Status" },
	RFL_COLUMN(TEXT, struct rfl_item, summary, "summary", "Description"),
	RFL_COLUMN(TEXT, struct rfl_item, detail, "detail", "Detail"),
	RFL_COLUMN(TEXT, struct rfl_item, reason, "reason", "Reason"),
	RFL_COLUMN(TEXT, struct rfl_item, fix, "fix", "What to do"),
	RFL_COLUMN(INT, struct rfl_item, params, "params", "Parameters"),
	RFL_COLUMN(INT, struct rfl_item, forward_flops, "forward_flops", "GFLOPs", .scale = 1e9),
};

static bool is_registry(const char *word)
{
	for (size_t i = 0; rfl_registry_names[i]; i++)
		if (strcmp(rfl_registry_names[i], word) == 0)
			return true;
	return false;
}

/* Print a section for each registry. A model has one line; other items have a second one with the
 * detail or the reason. */
static void print_sections(struct rfl_cli *cli, const struct rfl_inventory *inv)
{
	const char *section = "";
	int width = 0; /* of the longest name in the section */

	for (const struct rfl_item *item = inv->items; item < inv->items + inv->n; item++) {
		char params[RFL_NUM_MAX], flops[RFL_NUM_MAX];
		const char *finding;

		if (strcmp(section, item->registry) != 0) {
			rfl_cli_printf(
				cli, "%s%s%s\n", item > inv->items ? "\n" : "", item->registry,
				item->params != RFL_INT_UNKNOWN
					? ": parameters, forward FLOPs per sample, shape of a "
					  "sample\n  (language models at inference: roofline "
					  "complexity --phase prefill --new 1 --models all)"
					: "");
			section = item->registry;
			width = rfl_items_width(inv->items, inv->n, section);
		}
		if (item->params != RFL_INT_UNKNOWN) {
			rfl_cli_printf(cli, "  %-*s  %7s M  %7s G  %s; %s\n", width, item->name,
				       rfl_num_people((double)item->params / 1e6, 4, params),
				       rfl_num_people((double)item->forward_flops / 1e9, 4, flops),
				       item->detail, item->summary);
			continue;
		}
		finding = rfl_item_finding(item, inv->arena);
		rfl_cli_printf(cli, "  %-*s  %-4s  %s\n", width, item->name,
			       rfl_item_state_names[item->state],
			       item->summary ? item->summary : finding);
		if (item->summary && finding)
			rfl_cli_printf(cli, "  %-*s        %s\n", width, "", finding);
		if (item->fix)
			rfl_cli_printf(cli, "  %-*s        -> %s\n", width, "", item->fix);
	}
}

/* Whether an item is selected. Words other than registries select items by name. */
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

/* Fail because no item is selected; suggest the nearest registry or name. */
static enum rfl_rc none_asked(const struct rfl_inventory *inv, const struct rfl_opt_list *words,
			      struct rfl_err *err)
{
	const char **names = rfl_arena_array(inv->arena, inv->n + 16, sizeof(*names)), *word = "";
	char advice[RFL_ADVICE_SIZE];
	size_t n = 0;

	for (; rfl_registry_names[n]; n++)
		names[n] = rfl_registry_names[n];
	for (size_t i = 0; i < inv->n; i++)
		names[n++] = inv->items[i].name;
	for (size_t i = 0; i < words->n; i++)
		if (!is_registry(words->items[i]))
			word = words->items[i];
	return rfl_usage(
		err, "no registry and no name contains '%s'; %s", word,
		rfl_text_advice(word, names, 3, "run 'roofline list' for all names", advice));
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct list_args *a = args;
	struct rfl_inventory inv;
	struct rfl_table *t;
	size_t registries = 0, kept = 0;
	enum rfl_rc rc;

	for (size_t i = 0; i < a->words.n; i++)
		registries += is_registry(a->words.items[i]);
	rfl_cli_progress(cli, "checking engines ...");
	rc = rfl_inventory_new(cli, a->words.items, registries ? a->words.n : 0, &inv, err);
	rfl_cli_progress(cli, NULL);
	if (rc)
		return rc;
	for (size_t i = 0; i < inv.n; i++)
		if (is_asked(&inv.items[i], &a->words)) {
			const struct rfl_item item = inv.items[i];

			inv.items[i] = inv.items[kept]; /* keep all, for suggestions */
			inv.items[kept++] = item;
		}
	if (kept == 0)
		return none_asked(&inv, &a->words, err);
	if (a->format == RFL_FORMAT_TABLE) {
		inv.n = kept;
		print_sections(cli, &inv);
		return RFL_OK;
	}
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	rfl_table_add(t, inv.items, kept, sizeof(*inv.items));
	return rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
}

const struct rfl_cmd rfl_cmd_list = {
	.name = "list",
	.summary = "list models, engines, counter sources and more, and whether they work here",
	.operands = "[machine|devices|models|engines|benchmarks|sources|importers|surfaces|"
		    "libraries|TEXT]...",
	.description =
		"Items that do not work on this machine, or only in part, are listed with the "
		"reason and the fix. Every engine is opened in a child process, which can take a "
		"second. Benchmarks are the loops that measure ceilings; sources are the counters "
		"that can be read during a run; importers read the files of other profilers; "
		"surfaces are the output formats of figures; libraries are the optional libraries "
		"of this build. TEXT selects items by part of the name.",
	.example =
		"roofline list\nroofline list models resnet\nroofline list engines --format json",
	.opts = opts,
	.args_size = sizeof(struct list_args),
	.run = run,
};

static const char *const version_formats[] = { "table", "json", NULL };

static const struct rfl_opt version_opts[] = {
	OPT(CHOICE, format, .name = "format", .meta = "FMT", .choices = version_formats,
	    .def = "table", .against = "json", .help = "output format"),
	OPT(FLAG, json, .name = "json", .help = "the same as --format json"),
	{ .name = NULL },
};

static enum rfl_rc run_version(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	static const char *const libraries[] = { "libraries" };
	const char *commit = RFL_COMMIT[0] != '\0' ? RFL_COMMIT : NULL;
	const struct list_args *a = args;
	json_t *features = json_array();
	json_auto_t *root = json_pack(
		"{s:s, s:s, s:s?, s:s, s:s, s:s, s:o}", "schema", "roofline.version/1", "version",
		RFL_VERSION, "commit", commit, "compiler", RFL_COMPILER, "build_type",
		RFL_BUILD_TYPE, "sanitizers", RFL_SANITIZE, "features", features);
	RFL_AUTO(buf) out = { .len = 0 };
	struct rfl_inventory inv;
	enum rfl_rc rc = rfl_inventory_new(cli, libraries, 1, &inv, err);

	if (rc)
		return rc;
	rfl_buf_printf(&out, "roofline %s\ncommit      %s\ncompiler    %s, %s%s%s\n", RFL_VERSION,
		       commit ? commit : "unknown", RFL_COMPILER, RFL_BUILD_TYPE,
		       RFL_SANITIZE[0] != '\0' ? ", sanitizers " : "", RFL_SANITIZE);
	for (const struct rfl_item *item = inv.items; item < inv.items + inv.n; item++) {
		const char *reason = rfl_item_finding(item, inv.arena);
		const bool built_in = item->state == RFL_ITEM_OK;

		rfl_buf_printf(&out, "%-10s  %-3s  %s (%s)\n", item->name, built_in ? "yes" : "no",
			       item->summary, reason);
		json_array_append_new(
			features, json_pack("{s:s, s:b, s:s, s:s}", "name", item->name, "built_in",
					    built_in, "purpose", item->summary, "reason", reason));
	}
	return a->format || a->json ? rfl_cli_put_json(cli, root, "version", err)
				    : rfl_cli_put(cli, &out, "version", err);
}

const struct rfl_cmd rfl_cmd_version = {
	.name = "version",
	.summary = "print the version and the built-in libraries",
	.description = "A library marked \"no\" was not found when the program was built, or was "
		       "disabled; the reason explains how to add it. Plugins are located at run "
		       "time; see 'roofline list engines'.",
	.example = "roofline version --json",
	.opts = version_opts,
	.args_size = sizeof(struct list_args),
	.run = run_version,
};
