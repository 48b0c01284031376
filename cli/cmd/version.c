/*
 * version.c - roofline version: what this program is and what was built into it.
 */
#include "cli/cmd.h"

#include "base/json.h"
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

struct feature {
	const char *name;
	int built_in;
	const char *purpose, *why;
};

#define FEATURE_ROW(name, built_in, purpose, why) { name, built_in, purpose, why },

static const struct feature features[] = { RFL_FEATURES(FEATURE_ROW) };

static void print_table(FILE *out)
{
	fprintf(out, "roofline %s\ncompiler    %s, %s%s%s\n", RFL_VERSION, RFL_COMPILER,
		RFL_BUILD_TYPE, RFL_SANITIZE[0] != '\0' ? ", sanitizers " : "", RFL_SANITIZE);
	for (size_t i = 0; i < RFL_ARRAY_LEN(features); i++)
		fprintf(out, "%-10s  %-3s  %s (%s)\n", features[i].name,
			features[i].built_in ? "yes" : "no", features[i].purpose, features[i].why);
}

static json_t *to_json(void)
{
	json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:s, s:[]}", "schema", "roofline.version/1",
				 "version", RFL_VERSION, "compiler", RFL_COMPILER, "build_type",
				 RFL_BUILD_TYPE, "sanitizers", RFL_SANITIZE, "features");
	json_t *list = json_object_get(root, "features");

	for (size_t i = 0; i < RFL_ARRAY_LEN(features); i++) {
		json_t *row = json_pack("{s:s, s:b, s:s, s:s}", "name", features[i].name,
					"built_in", features[i].built_in, "purpose",
					features[i].purpose, "reason", features[i].why);

		if (json_array_append_new(list, row) != 0) {
			json_decref(root);
			return NULL;
		}
	}
	return root;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct version_args *a = args;
	struct rfl_buf text;
	json_t *root;
	enum rfl_rc rc;

	if (a->format == 0) {
		print_table(cli->out);
		return RFL_OK;
	}
	root = to_json();
	if (!root)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rfl_buf_init(&text, 0);
	rfl_json_write(&text, root);
	rfl_buf_putc(&text, '\n');
	rc = rfl_cli_put(cli, &text, "version", err);
	rfl_buf_fini(&text);
	json_decref(root);
	return rc;
}

const struct rfl_cmd rfl_cmd_version = {
	.name = "version",
	.summary = "say what this program is and what was built into it",
	.description = "A library that is \"no\" was not there when the program was built, or was "
		       "switched "
		       "off; the reason says how to get it. Plugins are looked for when they are "
		       "needed: see 'roofline list engines'.",
	.opts = opts,
	.args_size = sizeof(struct version_args),
	.operands_offset = -1,
	.run = run,
};
