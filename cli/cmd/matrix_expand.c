/*
 * matrix_expand.c - roofline matrix expand: every run of a matrix, by name and arguments.
 */
#include "cli/cmd/matrix.h"

#include "base/json.h"
#include "cli/put.h"

enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_JSONL };

static const char *const formats[] = { "table", "csv", "json", "jsonl", NULL };

struct expand_args {
	struct rfl_opt_list operands, only;
	const char *log_dir, *shard;
	int format;
};

#define AT(member) offsetof(struct expand_args, member)

static const struct rfl_opt opts[] = {
	RFL_MATRIX_LOG_DIR_ROW(AT(log_dir)),
	RFL_MATRIX_ONLY_ROW(AT(only)),
	RFL_MATRIX_SHARD_ROW(AT(shard)),
	{ .letter = 'f',
	  .name = "format",
	  .meta = "FMT",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(format),
	  .choices = formats,
	  .def = "table",
	  .help = "how to print it; json and jsonl have the arguments as lists" },
	{ .name = NULL },
};

/* People see the first two. */
static const struct rfl_column columns[] = {
	{ .key = "cell", .title = "Cell", .kind = RFL_COLUMN_TEXT },
	{ .key = "label", .title = "Label", .kind = RFL_COLUMN_TEXT },
	{ .key = "env", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "backend", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "model", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "precision", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "batch", .title = "", .kind = RFL_COLUMN_INT },
	{ .key = "repeat", .title = "", .kind = RFL_COLUMN_INT },
	{ .key = "command", .title = "", .kind = RFL_COLUMN_TEXT },
};

static enum rfl_rc put_table(struct rfl_cli *cli, const struct expand_args *a,
			     const struct rfl_matrix_pick *pick, struct rfl_err *err)
{
	const bool people = a->format == FORMAT_TABLE;
	const struct rfl_matrix *m = pick->m;
	struct rfl_table *t = rfl_table_new(columns, people ? 2 : RFL_ARRAY_LEN(columns));
	struct rfl_buf command;
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	rfl_buf_init(&command, 0);
	for (size_t i = 0; i < pick->n; i++) {
		char label[RFL_LABEL_MAX + 1];
		const struct rfl_matrix_cell *cell = rfl_cli_matrix_cell(m, pick->runs[i], label);

		rfl_table_text(t, cell->id);
		rfl_table_text(t, label);
		if (people)
			continue;
		rfl_table_text(t, cell->env);
		rfl_table_text(t, cell->backend);
		rfl_table_text(t, cell->model);
		rfl_table_text(t, cell->precision);
		rfl_table_int(t, cell->batch);
		rfl_table_int(t, (int64_t)(pick->runs[i] / m->ncells) + 1);
		rfl_buf_reset(&command);
		rfl_cli_matrix_command(m, pick->runs[i], a->log_dir, &command);
		rfl_table_text(t, rfl_buf_str(&command));
	}
	rfl_table_note(t, "%s: %zu of %zu runs; %zu cells, %d %s each", m->name, pick->n,
		       m->ncells * (size_t)m->repeats, m->ncells, m->repeats,
		       m->repeats == 1 ? "repeat" : "repeats");
	rc = rfl_cli_put_table(cli, t, people ? RFL_FORMAT_TABLE : RFL_FORMAT_CSV, err);
	rfl_buf_fini(&command);
	rfl_table_free(t);
	return rc;
}

static enum rfl_rc put_json(struct rfl_cli *cli, const struct expand_args *a,
			    const struct rfl_matrix_pick *pick, struct rfl_err *err)
{
	const bool lines = a->format == FORMAT_JSONL;
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rfl_buf_puts(&out, lines ? "" : "[\n");
	for (size_t i = 0; i < pick->n; i++) {
		const size_t run = pick->runs[i];
		char label[RFL_LABEL_MAX + 1];
		const struct rfl_matrix_cell *c = rfl_cli_matrix_cell(pick->m, run, label);
		json_t *args = json_array(), *object;

		for (size_t k = 0; c->args[k]; k++)
			(void)json_array_append_new(args, json_string(c->args[k]));
		(void)json_array_append_new(args, json_sprintf("--label=%s", label));
		(void)json_array_append_new(args, json_sprintf("--log-dir=%s", a->log_dir));
		object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:o}", "cell", c->id,
				   "label", label, "env", c->env, "backend", c->backend, "model",
				   c->model, "precision", c->precision, "batch",
				   (json_int_t)c->batch, "repeat", (int)(run / pick->m->ncells) + 1,
				   "args", args);
		rfl_buf_puts(&out, lines ? "" : "  ");
		rfl_json_write_line(&out, object); /* NULL fails the buffer */
		rfl_buf_puts(&out, lines || i + 1 == pick->n ? "\n" : ",\n");
		json_decref(object);
	}
	rfl_buf_puts(&out, lines ? "" : "]\n");
	rc = rfl_cli_put(cli, &out, "runs", err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct expand_args *a = args;
	struct rfl_matrix_pick pick;
	enum rfl_rc rc =
		rfl_cli_matrix_pick(cli, a->operands.items[0], &a->only, a->shard, &pick, err);

	if (rc == RFL_OK)
		rc = (a->format <= FORMAT_CSV ? put_table : put_json)(cli, a, &pick, err);
	rfl_matrix_pick_fini(&pick);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_expand = {
	.name = "matrix expand",
	.summary = "list the runs that a matrix asks for",
	.operands = "FILE",
	.description =
		"Checks a run matrix (docs/matrix.md) and prints every run of it in the order in "
		"which they would be run: the id of its cell, its label, and with csv, json and "
		"jsonl the command that runs it alone.",
	.example = "roofline matrix expand examples/matrix-laptop.json\n"
		   "roofline matrix expand matrix.json --shard 0/4 --format jsonl",
	.opts = opts,
	.args_size = sizeof(struct expand_args),
	.operands_offset = AT(operands),
	.run = run,
};
