/*
 * cmd_list.c - roofline list: every row of every registry, whether it works here, and what to do
 * where it does not.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/table.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "cli/put.h"

struct list_args {
	int format;
	struct rfl_opt_list registries;
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
};

static enum rfl_rc check_names(const struct rfl_opt_list *names, struct rfl_err *err)
{
	for (size_t i = 0; i < names->n; i++) {
		struct rfl_buf all;
		bool known = false;
		const char *near;

		for (size_t k = 0; rfl_registry_names[k]; k++)
			known = known || strcmp(rfl_registry_names[k], names->items[i]) == 0;
		if (known)
			continue;
		rfl_buf_init(&all, 0);
		for (size_t k = 0; rfl_registry_names[k]; k++)
			rfl_buf_printf(&all, "%s%s", k > 0 ? ", " : "", rfl_registry_names[k]);
		near = rfl_text_nearest(names->items[i], rfl_registry_names);
		rfl_fail(err, RFL_EUSAGE, 0, "'%s' is not one of %s%s%s%s", names->items[i],
			 rfl_buf_str(&all), near ? "; did you mean " : "", near ? near : "",
			 near ? "?" : "");
		rfl_buf_fini(&all);
		return RFL_EUSAGE;
	}
	return RFL_OK;
}

static int width_of_names(const struct rfl_inventory *inv, const char *registry)
{
	size_t width = 0;

	for (size_t i = 0; i < inv->n; i++)
		if (strcmp(inv->items[i].registry, registry) == 0 &&
		    strlen(inv->items[i].name) > width)
			width = strlen(inv->items[i].name);
	return (int)width;
}

/* For people: a section per registry, and the reason below the row. */
static void print_sections(struct rfl_cli *cli, const struct rfl_inventory *inv)
{
	const char *section = "";
	int width = 0;

	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];

		if (strcmp(section, item->registry) != 0) {
			rfl_cli_printf(cli, "%s%s\n", i > 0 ? "\n" : "", item->registry);
			section = item->registry;
			width = width_of_names(inv, section);
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
	}
	rc = rfl_cli_put_table(cli, t, format, err);
	rfl_table_free(t);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct list_args *a = args;
	struct rfl_inventory *inv = NULL;
	enum rfl_rc rc;

	rc = check_names(&a->registries, err);
	if (rc != RFL_OK)
		return rc;
	rfl_cli_progress(cli, "looking at engines ...");
	rc = rfl_inventory_new(cli, a->registries.items, a->registries.n, &inv, err);
	rfl_cli_progress(cli, NULL);
	if (rc != RFL_OK)
		return rc;
	if (a->format == RFL_FORMAT_TABLE)
		print_sections(cli, inv);
	else
		rc = print_table(cli, inv, (enum rfl_format)a->format, err);
	rfl_inventory_free(inv);
	return rc;
}

const struct rfl_cmd rfl_cmd_list = {
	.name = "list",
	.summary = "list models, engines, counter sources, importers, and what works here",
	.operands = "[models|engines|benchmarks|sources|importers|surfaces]...",
	.description =
		"Rows never disappear: one that cannot work on this machine says why and what to "
		"do "
		"about it. An engine is opened in a child process to ask it; that can take a "
		"second. Surfaces are the output formats of figures, benchmarks the loops that "
		"measure ceilings, sources the counters that are read while a program runs, "
		"importers the kinds of other profilers' files.",
	.example = "roofline list\nroofline list engines --format json",
	.opts = opts,
	.args_size = sizeof(struct list_args),
	.operands_offset = offsetof(struct list_args, registries),
	.run = run,
};
