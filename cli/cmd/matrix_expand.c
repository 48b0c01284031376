/*
 * matrix_expand.c - roofline matrix expand: every run of a matrix, by name and arguments.
 */
#include "cli/cmd.h"

#include <inttypes.h>

#include "base/json.h"
#include "cli/cmd/matrix.h"
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

/* ---- as a table ---- */

static const struct rfl_column for_people[] = {
	{ .key = "cell", .title = "Cell", .kind = RFL_COLUMN_TEXT },
	{ .key = "label", .title = "Label", .kind = RFL_COLUMN_TEXT },
};

static const struct rfl_column for_programs[] = {
	{ .key = "cell", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "label", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "env", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "backend", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "model", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "precision", .title = "", .kind = RFL_COLUMN_TEXT },
	{ .key = "batch", .title = "", .kind = RFL_COLUMN_INT },
	{ .key = "repeat", .title = "", .kind = RFL_COLUMN_INT },
	{ .key = "command", .title = "", .kind = RFL_COLUMN_TEXT },
};

static const struct rfl_matrix_cell *cell_of(const struct rfl_matrix *m, size_t run)
{
	return &m->cells[run % m->ncells];
}

static int repeat_of(const struct rfl_matrix *m, size_t run)
{
	return (int)(run / m->ncells) + 1;
}

static void add_programs_part(struct rfl_table *t, const struct rfl_matrix *m, size_t run,
			      const char *log_dir)
{
	const struct rfl_matrix_cell *cell = cell_of(m, run);
	struct rfl_buf command;

	rfl_table_text(t, cell->env);
	rfl_table_text(t, cell->backend);
	rfl_table_text(t, cell->model);
	rfl_table_text(t, cell->precision);
	rfl_table_int(t, cell->batch);
	rfl_table_int(t, repeat_of(m, run));
	rfl_buf_init(&command, 0);
	rfl_cli_matrix_command(m, run, log_dir, &command);
	rfl_table_text(t, rfl_buf_str(&command));
	rfl_buf_fini(&command);
}

static enum rfl_rc put_table(struct rfl_cli *cli, const struct expand_args *a,
			     const struct rfl_matrix *m, const struct rfl_matrix_pick *pick,
			     struct rfl_err *err)
{
	const bool people = a->format == FORMAT_TABLE;
	struct rfl_table *t = people ? rfl_table_new(for_people, RFL_ARRAY_LEN(for_people))
				     : rfl_table_new(for_programs, RFL_ARRAY_LEN(for_programs));
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", m->path);
	for (size_t i = 0; i < pick->n; i++) {
		char label[RFL_LABEL_MAX + 1];

		rfl_matrix_label(cell_of(m, pick->runs[i]), repeat_of(m, pick->runs[i]), label);
		rfl_table_text(t, cell_of(m, pick->runs[i])->id);
		rfl_table_text(t, label);
		if (!people)
			add_programs_part(t, m, pick->runs[i], a->log_dir);
	}
	rfl_table_note(t, "%s: %zu of %zu runs; %zu cells, %d %s each", m->name, pick->n,
		       m->ncells * (size_t)m->repeats, m->ncells, m->repeats,
		       m->repeats == 1 ? "repeat" : "repeats");
	rc = rfl_cli_put_table(cli, t, people ? RFL_FORMAT_TABLE : RFL_FORMAT_CSV, err);
	rfl_table_free(t);
	return rc;
}

/* ---- as JSON ---- */

static json_t *args_of(const struct rfl_matrix_cell *cell, const char *label, const char *log_dir)
{
	json_t *args = json_array();
	bool ok = args != NULL;

	for (size_t i = 0; ok && cell->args[i]; i++)
		ok = json_array_append_new(args, json_string(cell->args[i])) == 0;
	ok = ok && json_array_append_new(args, json_sprintf("--label=%s", label)) == 0;
	ok = ok && json_array_append_new(args, json_sprintf("--log-dir=%s", log_dir)) == 0;
	if (ok)
		return args;
	json_decref(args);
	return NULL;
}

static void write_run(struct rfl_buf *out, const struct rfl_matrix *m, size_t run,
		      const char *log_dir)
{
	const struct rfl_matrix_cell *c = cell_of(m, run);
	char label[RFL_LABEL_MAX + 1];
	json_t *object;

	rfl_matrix_label(c, repeat_of(m, run), label);
	object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:o}", "cell", c->id, "label",
			   label, "env", c->env, "backend", c->backend, "model", c->model,
			   "precision", c->precision, "batch", (json_int_t)c->batch, "repeat",
			   repeat_of(m, run), "args", args_of(c, label, log_dir));
	rfl_json_write_line(out, object); /* NULL fails the buffer */
	json_decref(object);
}

static enum rfl_rc put_json(struct rfl_cli *cli, const struct expand_args *a,
			    const struct rfl_matrix *m, const struct rfl_matrix_pick *pick,
			    struct rfl_err *err)
{
	const bool lines = a->format == FORMAT_JSONL;
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	if (!lines)
		rfl_buf_puts(&out, "[\n");
	for (size_t i = 0; i < pick->n; i++) {
		rfl_buf_puts(&out, lines ? "" : "  ");
		write_run(&out, m, pick->runs[i], a->log_dir);
		rfl_buf_puts(&out, lines || i + 1 == pick->n ? "\n" : ",\n");
	}
	if (!lines)
		rfl_buf_puts(&out, "]\n");
	rc = rfl_cli_put(cli, &out, "runs", err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct expand_args *a = args;
	struct rfl_matrix_pick pick = { 0 };
	struct rfl_matrix *m = NULL;
	enum rfl_rc rc = rfl_cli_matrix_load(cli, a->operands.items[0], &m, err);

	if (rc == RFL_OK)
		rc = rfl_cli_matrix_pick(m, &a->only, a->shard, &pick, err);
	if (rc == RFL_OK && a->format <= FORMAT_CSV)
		rc = put_table(cli, a, m, &pick, err);
	else if (rc == RFL_OK)
		rc = put_json(cli, a, m, &pick, err);
	rfl_matrix_pick_fini(&pick);
	rfl_matrix_free(m);
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
