/*
 * version.c - roofline version: the version, and what was built in.
 */
#include "cli/cmd.h"

#include "base/json.h"
#include "cli/inventory.h"
#include "cli/put.h"
#include "rfl_config.h"

struct version_args {
	int format;
};

static const char *const formats[] = { "table", "json", NULL };

static const struct rfl_opt opts[] = {
	{ .name = "format",
	  .meta = "FMT",
	  .kind = RFL_OPT_CHOICE,
	  .offset = offsetof(struct version_args, format),
	  .choices = formats,
	  .def = "table",
	  .help = "how to print it" },
	{ .name = NULL },
};

static json_t *to_json(const struct rfl_inventory *inv)
{
	json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:s, s:[]}", "schema", "roofline.version/1",
				 "version", RFL_VERSION, "compiler", RFL_COMPILER, "build_type",
				 RFL_BUILD_TYPE, "sanitizers", RFL_SANITIZE, "features");

	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];
		json_t *row = json_pack("{s:s, s:b, s:s, s:s}", "name", item->name, "built_in",
					item->ok, "purpose", item->summary, "reason",
					item->ok ? item->detail : item->reason);

		if (json_array_append_new(json_object_get(root, "features"), row) != 0) {
			json_decref(root);
			return NULL;
		}
	}
	return root;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	static const char *const libraries[] = { "libraries" };
	const struct version_args *a = args;
	struct rfl_inventory *inv = NULL;
	struct rfl_buf out;
	json_t *root = NULL;
	enum rfl_rc rc = rfl_inventory_new(cli, libraries, 1, &inv, err);

	if (rc != RFL_OK)
		return rc;
	rfl_buf_init(&out, 0);
	if (a->format == 0) {
		rfl_buf_printf(&out, "roofline %s\ncompiler    %s, %s%s%s\n", RFL_VERSION,
			       RFL_COMPILER, RFL_BUILD_TYPE,
			       RFL_SANITIZE[0] != '\0' ? ", sanitizers " : "", RFL_SANITIZE);
		for (size_t i = 0; i < inv->n; i++)
			rfl_buf_printf(&out, "%-10s  %-3s  %s (%s)\n", inv->items[i].name,
				       inv->items[i].ok ? "yes" : "no", inv->items[i].summary,
				       inv->items[i].ok ? inv->items[i].detail
							: inv->items[i].reason);
	} else {
		root = to_json(inv);
		if (!root) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
			goto done;
		}
		rfl_json_write(&out, root);
		rfl_buf_putc(&out, '\n');
	}
	rc = rfl_cli_put(cli, &out, "version", err);
done:
	rfl_buf_fini(&out);
	json_decref(root);
	rfl_inventory_free(inv);
	return rc;
}

const struct rfl_cmd rfl_cmd_version = {
	.name = "version",
	.summary = "print the version and what was built in",
	.description = "A library that is \"no\" was not found when the program was built, or was "
		       "switched off; the reason says how to get it. Plugins are found when they "
		       "are needed: see 'roofline list engines'.",
	.opts = opts,
	.args_size = sizeof(struct version_args),
	.operands_offset = -1,
	.run = run,
};
