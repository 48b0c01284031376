/* doctor.c - roofline doctor: what works on this machine, in one screen. */
#include "cli/cmd.h"

#include <stdio.h>
#include <string.h>

#include "cli/inventory.h"

/* What the screen shows of each registry: every row, or their number and the rows that fail. */
static const struct view {
	const char *registry;
	const char *check; /* name of its lines; NULL: the name of the row */
	const char *what;  /* of a number of rows; NULL: every row */
	bool failing;      /* with the number, show the rows that do not work */
	bool needed;       /* the main functions need one that works */
} views[] = {
	{ "machine", NULL, NULL, false, false },
	{ "devices", NULL, NULL, false, false },
	{ "sources", "counters", NULL, false, false },
	{ "models", "models", "networks", false, true },
	{ "engines", "engine", NULL, false, true },
	{ "benchmarks", "benchmarks", "loops that measure ceilings", false, true },
	{ "surfaces", "figures", "output formats", true, true },
	{ "libraries", "libraries", "optional libraries", true, false },
};

/* The rows of the screen, in its order, in an arena. */
static struct rfl_item *rows_of(const struct rfl_inventory *inv, size_t *n)
{
	struct rfl_item *rows =
		rfl_arena_array(inv->arena, inv->n + RFL_ARRAY_LEN(views), sizeof(*rows));

	*n = 0;
	for (const struct view *v = views; v < views + RFL_ARRAY_LEN(views); v++) {
		size_t all = 0, usable = 0;

		for (size_t i = 0; i < inv->n; i++)
			if (strcmp(inv->items[i].registry, v->registry) == 0) {
				all++;
				usable += inv->items[i].state != RFL_ITEM_NO;
			}

		if (v->what)
			rows[(*n)++] = (struct rfl_item){
				.name = v->check,
				.state = usable ? RFL_ITEM_OK : RFL_ITEM_NO,
				.needed = v->needed,
				.detail = rfl_arena_printf(inv->arena, "%zu of %zu %s work here",
							   usable, all, v->what),
				.fix = usable == all || v->failing
					       ? NULL
					       : rfl_arena_printf(
							 inv->arena,
							 "for the reasons, run: roofline list %s",
							 v->registry),
			};
		for (size_t i = 0; i < inv->n; i++) {
			struct rfl_item row = inv->items[i];

			if (strcmp(row.registry, v->registry) != 0 ||
			    (v->what && (!v->failing || row.state == RFL_ITEM_OK)))
				continue;
			row.needed |= !v->what && v->needed && !usable; /* one is enough */
			row.detail = rfl_item_finding(&row, inv->arena);
			if (v->check && !v->what) {
				row.detail = rfl_arena_printf(inv->arena, "%s%s%s", row.name,
							      row.detail ? ": " : "",
							      row.detail ? row.detail : "");
				row.name = v->check;
			}
			rows[(*n)++] = row;
		}
	}
	return rows;
}

static void put_needed(struct rfl_table *t, const void *row)
{
	rfl_table_text(t, ((const struct rfl_item *)row)->needed ? "yes" : "no");
}

static const struct rfl_column columns[] = {
	RFL_COLUMN(TEXT, struct rfl_item, name, "check", "Check"),
	{ .put = rfl_item_put_state, .key = "verdict", .title = "Verdict" },
	{ .put = put_needed, .key = "needed", .title = "Needed" },
	RFL_COLUMN(TEXT, struct rfl_item, detail, "finding", "Finding"),
	RFL_COLUMN(TEXT, struct rfl_item, fix, "advice", "What to do"),
};

struct doctor_args {
	int format;
};

static const struct rfl_opt opts[] = {
	RFL_OPT(struct doctor_args, CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const enum rfl_format format = (enum rfl_format)((const struct doctor_args *)args)->format;
	struct rfl_inventory inv;
	struct rfl_item *rows;
	struct rfl_table *t;
	bool works = true;
	int width;
	size_t n;
	enum rfl_rc rc;

	rfl_cli_progress(cli, "checking this machine and its engines ...");
	rc = rfl_inventory_new(cli, NULL, 0, &inv, err);
	rfl_cli_progress(cli, NULL);
	if (rc)
		return rc;
	rows = rows_of(&inv, &n);
	width = rfl_items_width(rows, n, NULL);
	for (size_t i = 0; i < n; i++)
		works &= !rows[i].needed || rows[i].state != RFL_ITEM_NO;
	if (format != RFL_FORMAT_TABLE) {
		t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
		rfl_table_add(t, rows, n, sizeof(*rows));
		rc = rfl_cli_put_table(cli, t, format, err);
		return rc == RFL_OK && !works ? RFL_EFAILED : rc;
	}
	for (const struct rfl_item *row = rows; row < rows + n; row++) {
		rfl_cli_printf(cli, "%-4s  %-*s  %s\n", rfl_item_state_names[row->state], width,
			       row->name, row->detail);
		if (row->fix)
			rfl_cli_printf(cli, "%-4s  %-*s  -> %s\n", "", width, "", row->fix);
	}
	rfl_cli_printf(cli, "\n%s\n",
		       works ? "The main functions work here: training, counting, measuring the "
			       "machine, merging, drawing."
			     : "The main functions do not work here; see the lines marked 'no'.");
	return works ? RFL_OK : RFL_EFAILED;
}

const struct rfl_cmd rfl_cmd_doctor = {
	.name = "doctor",
	.summary = "check what works on this machine, and show how to fix the rest",
	.description =
		"Every check is reported as 'ok', 'warn' (works, but slowly or in part) or 'no' "
		"(not available); for the last two, the next line explains the fix. The exit code "
		"is 0 if the main functions work (training, counting, measuring the machine, "
		"merging, drawing a PNG file), and 1 if not. GPU and JPEG support are optional.",
	.example = "roofline doctor\n"
		   "roofline doctor --format json",
	.opts = opts,
	.args_size = sizeof(struct doctor_args),
	.run = run,
};
