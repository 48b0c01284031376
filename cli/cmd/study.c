/*
 * study.c - roofline study: run the commands of a whole study, from the matrix to the report.
 *
 * Each step is a command of this program, printed and run as a child process, so that users can
 * repeat it. The table `steps` has the options of each command; the study file can replace them and
 * add others.
 */
#include "cli/cmd/matrix.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "cli/device_lock.h"
#include "cli/inputs.h"
#include "cli/opt/opt.h"
#include "cli/project.h"
#include "cli/stop.h"
#include "peaks/peaks.h"

struct study_args {
	struct rfl_opt_list operands, env, only;
	bool dry_run;
};

enum { STEP_COMPLEXITY, STEP_PEAKS, STEP_RUNS, STEP_POINTS, STEP_FIGURES, STEP_REPORT, STEP_COUNT };

static const char *const step_names[] = { "complexity", "peaks",  "runs", "points",
					  "figures",    "report", NULL };

#define OPT(kind, member, ...) RFL_OPT(struct study_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(LIST, env, .letter = 'e', .name = "env", .meta = "NAME",
	    .help = "environments of the matrix that this machine runs; default: the only one"),
	OPT(LIST, only, .name = "only", .meta = "STEP", .choices = step_names,
	    .help = "steps to execute; default: all"),
	OPT(FLAG, dry_run, .name = "dry-run", .help = "print the commands without executing them"),
	{ .name = NULL },
};

#define MAX_WORDS 4096

/* The commands. A word $name is replaced by the values of the study; an option that has no values,
 * or is set in the study file, is omitted. */
static const struct step {
	const char *command;
	/* default options; if they are a list, the file may also have a list, for several commands
	 */
	const char *entries;
} steps[STEP_COUNT] = {
	{ "complexity --models $models --batch-sizes $batches --image-size $image "
	  "--context-length $context --output-dir $summaries",
	  "{}" },
	{ "peaks measure --env $env --backend $backend --output $peaks", "{}" },
	{ "matrix run $matrix --log-dir $logs --only $envs", "{}" },
	{ "points --metrics $logs/metrics.csv --peaks $peaks --output $points --skip-missing "
	  "--complexity-json $summaries/summary.json",
	  "{}" },
	{ "plot --points $points --peaks $peaks --metrics $logs/metrics.csv "
	  "--output-dir $out/figures",
	  "[{\"format\": [\"png\", \"svg\"]}, {\"kind\": \"throughput\"}]" },
	{ "report --title $title --metrics $logs/metrics.csv --points $points --peaks $peaks "
	  "--matrix $matrix --complexity-json $summaries/summary.json --env $record "
	  "--output $out/report.html",
	  "[{}]" },
};

/* A variable of the commands. */
struct variable {
	size_t n;
	const char **values;
};

/* clang-format off */
/* backend: of env if its ceilings are not those of a processor; image: the image size of all cells,
 * none if they differ; context: context lengths, none if a cell uses the default of its model;
 * record: of the environments, none if the file does not exist */
#define VARIABLES(X) \
	X(matrix) X(logs) X(out) X(peaks) X(points) X(summaries) X(title) X(env) X(backend) X(envs) \
	X(models) X(batches) X(image) X(context) X(record)
#define INDEX(name) VAR_##name,
#define NAME(name) #name,
/* clang-format on */

enum { VARIABLES(INDEX) VAR_COUNT };

static const char *const variable_names[] = { VARIABLES(NAME) };

/* Options that name files or folders that later steps read. The study file can set them. */
static const struct {
	int step;
	const char *option;
	int var;
} outputs[] = {
	{ STEP_RUNS, "log-dir", VAR_logs },
	{ STEP_COMPLEXITY, "output-dir", VAR_summaries },
	{ STEP_POINTS, "output", VAR_points },
};

struct study {
	struct rfl_cli *cli;
	const struct study_args *a;
	const char *path;
	struct rfl_arena *arena;
	json_t *root;
	struct rfl_matrix *matrix;
	struct rfl_where where;
	struct rfl_project project;
	struct variable vars[VAR_COUNT];
	int at, nsteps; /* number of the current step, from 1, and of all steps */
	bool checking;  /* check the commands of all steps before the first one runs */
};

/* One command line. */
struct command {
	size_t n;
	const char *words[MAX_WORDS + 1];
};

/* Add a value to a variable, unless the variable has it. The text is borrowed. */
static enum rfl_rc add_value(struct study *s, int var, const char *value, struct rfl_err *err)
{
	struct variable *v = &s->vars[var];
	const char **values;

	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->values[i], value) == 0)
			return RFL_OK;
	if (v->n == MAX_WORDS)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: more than %d %s; split the matrix into several studies",
				s->vars[VAR_matrix].values[0], MAX_WORDS, variable_names[var]);
	values = rfl_arena_array(s->arena, v->n + 1, sizeof(*values));
	if (!values)
		return rfl_no_memory(err, s->path);
	if (v->n)
		memcpy(values, v->values, v->n * sizeof(*values));
	values[v->n++] = value;
	v->values = values;
	return RFL_OK;
}

/* Read a text of the study file. @param def  the default; NULL: the key is required */
static enum rfl_rc read_text(struct study *s, const char *key, int var, const char *def,
			     struct rfl_err *err)
{
	const json_t *value = json_object_get(s->root, key);
	const size_t mark = rfl_where_key(&s->where, key);
	const char *text = json_string_value(value);

	if (value && (!text || !*text))
		return rfl_where_fail(&s->where, err, "not a text; write \"%s\": \"...\"", key);
	rfl_where_up(&s->where, mark);
	if (!value && !def)
		return rfl_where_fail(&s->where, err,
				      "the key \"%s\" is missing; write \"%s\": \"matrix.json\"",
				      key, key);
	text = text ? text : def;
	return *text ? add_value(s, var, text, err) : RFL_OK;
}

/* The value of an option in an entry of the study file, by any of its names; NULL: not set. */
static const json_t *option_of(const json_t *entry, const char *name)
{
	json_t *object = (json_t *)(uintptr_t)entry;

	for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
		if (rfl_opt_same_name(json_object_iter_key(it), name))
			return json_object_iter_value(it);
	return NULL;
}

/* Set the variable of an output to the path in the options of its step, else to `path`.
 * @param path  NULL: out of memory */
static enum rfl_rc set_output(struct study *s, int var, const char *path, struct rfl_err *err)
{
	s->vars[var].n = 0;
	for (size_t i = 0; i < RFL_ARRAY_LEN(outputs); i++) {
		const json_t *entry = json_object_get(s->root, step_names[outputs[i].step]);
		const json_t *value = option_of(entry, outputs[i].option);

		if (outputs[i].var != var || !value)
			continue;
		if (json_is_false(value))
			return RFL_OK;        /* nothing is written */
		if (!json_is_string(value)) { /* later steps would read another file */
			(void)rfl_where_key(&s->where, step_names[outputs[i].step]);
			(void)rfl_where_key(&s->where, outputs[i].option);
			return rfl_where_fail(&s->where, err, "not a path; write \"...\"");
		}
		path = json_string_value(value);
	}
	return path ? add_value(s, var, path, err) : rfl_no_memory(err, s->path);
}

static enum rfl_rc read_study(struct study *s, struct rfl_err *err)
{
	static const char *const keys[] = { "schema",     "title",  "matrix",      "log_dir",
					    "output_dir", "peaks",  "description", "complexity",
					    "runs",       "points", "figures",     "report",
					    NULL };
	const char *schema, *logs, *out, *peaks;
	enum rfl_rc rc;

	if ((rc = rfl_json_load(s->path, &s->root, err)))
		return rc;
	rfl_where_begin(&s->where, s->path, "");
	schema = json_string_value(json_object_get(s->root, "schema"));
	if (!json_is_object(s->root) || !schema || strcmp(schema, "roofline.study/1") != 0)
		return rfl_where_fail(
			&s->where, err,
			"not a study; begin the file with {\"schema\": \"roofline.study/1\", "
			"\"matrix\": \"matrix.json\"}");
	if ((rc = rfl_json_only_keys(s->root, keys, s->path, "", err)) ||
	    (rc = rfl_project_value(&s->project, "log-dir", &logs, err)) ||
	    (rc = rfl_project_value(&s->project, "peaks", &peaks, err)) ||
	    (rc = read_text(s, "matrix", VAR_matrix, NULL, err)) ||
	    (rc = read_text(s, "log_dir", VAR_logs, logs ? logs : "logs", err)) ||
	    (rc = read_text(s, "output_dir", VAR_out, "results", err)) ||
	    (rc = read_text(s, "title", VAR_title, "", err)))
		return rc;
	out = s->vars[VAR_out].values[0];
	peaks = peaks ? peaks : rfl_arena_printf(s->arena, "%s/peaks.json", out);
	if (!peaks)
		return rfl_no_memory(err, s->path);
	/* "peaks" is the path of the peaks file; 'peaks measure' has no key for options */
	if ((rc = read_text(s, "peaks", VAR_peaks, peaks, err)) ||
	    (rc = set_output(s, VAR_logs, s->vars[VAR_logs].values[0], err)))
		return rc;
	logs = s->vars[VAR_logs].n ? s->vars[VAR_logs].values[0] : "logs";
	if ((rc = set_output(s, VAR_summaries,
			     rfl_arena_printf(s->arena, "%s/model_summaries", logs), err)) ||
	    (rc = set_output(s, VAR_points,
			     rfl_arena_printf(s->arena, "%s/roofline_points.csv", out), err)))
		return rc;
	return set_output(s, VAR_record, rfl_arena_printf(s->arena, "%s/env.json", logs), err);
}

/* The value of an option of a cell; "0", the model's default, if there is none. */
static const char *cell_option(const struct rfl_matrix_cell *c, const char *name)
{
	for (size_t i = 0; i < c->noptions; i++)
		if (strcmp(c->options[i].name, name) == 0 && c->options[i].n == 1)
			return c->options[i].values[0];
	return "0";
}

static bool executes(const struct study *s, int step)
{
	return !s->a->only.n || rfl_opt_list_has(&s->a->only, step_names[step]);
}

/* Select the environments that this machine runs: those of --env, else that of the project file,
 * else the only one. */
static enum rfl_rc choose_envs(struct study *s, struct rfl_err *err)
{
	const struct variable known = s->vars[VAR_envs];
	const char *const *envs = s->a->env.items, *from = "--env", *mine = NULL;
	size_t n = s->a->env.n;
	struct rfl_buf names;
	enum rfl_rc rc = RFL_OK;

	if (!n && !executes(s, STEP_PEAKS) && !executes(s, STEP_RUNS))
		return RFL_OK; /* nothing is measured */
	if (!n && (rc = rfl_project_value(&s->project, "env", &mine, err)))
		return rc;
	if (!n && mine) {
		n = 1;
		envs = &mine;
		from = "roofline.json";
	}
	if (!n && known.n == 1)
		return RFL_OK;
	rfl_buf_init(&names, 0);
	for (size_t i = 0; i < known.n; i++)
		rfl_buf_printf(&names, "%s%s", i ? ", " : "", known.values[i]);
	s->vars[VAR_envs] = (struct variable){ 0, NULL };
	if (!n)
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "%s has several environments; name those that this machine runs with "
			      "--env: %s",
			      s->matrix->path, rfl_buf_str(&names));
	for (size_t i = 0; rc == RFL_OK && i < n; i++) {
		size_t k = 0;

		while (k < known.n && strcmp(known.values[k], envs[i]) != 0)
			k++;
		rc = k < known.n ? add_value(s, VAR_envs, known.values[k], err)
				 : rfl_fail(err, RFL_EUSAGE, 0,
					    "%s: %s has no environment '%s'; use --env with one "
					    "of: %s",
					    from, s->matrix->path, envs[i], rfl_buf_str(&names));
	}
	rfl_buf_fini(&names);
	return rc;
}

/* Set models, batch and image sizes, context lengths and environments. */
static enum rfl_rc read_matrix(struct study *s, struct rfl_err *err)
{
	const char **path = s->vars[VAR_matrix].values;
	const int dir = (int)(rfl_path_base(s->path) - s->path);
	const char *beside = rfl_arena_printf(s->arena, "%.*s%s", dir, s->path, *path);
	bool contexts = true;
	enum rfl_rc rc;

	if (!beside)
		return rfl_no_memory(err, s->path);
	/* The matrix is beside the study file, or in a path from the current folder. */
	if (**path != '/' && access(beside, F_OK) == 0)
		*path = beside;
	rc = rfl_cli_matrix_load(s->cli, *path, &s->matrix, err);

	for (size_t i = 0; rc == RFL_OK && i < s->matrix->ncells; i++) {
		const struct rfl_matrix_cell *c = &s->matrix->cells[i];
		const char *batch = rfl_arena_printf(s->arena, "%lld", (long long)c->batch);
		const char *context = cell_option(c, "context-length");

		contexts = contexts && strcmp(context, "0") != 0;
		if (!batch)
			rc = rfl_no_memory(err, s->path);
		else if (!(rc = add_value(s, VAR_models, c->model, err)) &&
			 !(rc = add_value(s, VAR_batches, batch, err)) &&
			 !(rc = add_value(s, VAR_image, cell_option(c, "image-size"), err)) &&
			 !(rc = add_value(s, VAR_context, context, err)))
			rc = add_value(s, VAR_envs, c->env, err);
	}
	if (rc)
		return rc;
	if (s->vars[VAR_image].n != 1 || strcmp(s->vars[VAR_image].values[0], "0") == 0)
		s->vars[VAR_image].n = 0;
	if (!contexts)
		s->vars[VAR_context].n = 0;
	return choose_envs(s, err);
}

static enum rfl_rc add_word(struct study *s, struct command *c, const char *word,
			    struct rfl_err *err)
{
	if (!word)
		return rfl_no_memory(err, s->path);
	if (c->n == MAX_WORDS)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: a command has more than %d arguments; shorten its lists",
				s->path, MAX_WORDS);
	c->words[c->n++] = word;
	c->words[c->n] = NULL;
	return RFL_OK;
}

/* Add a value of an option. One that looks like an option is joined to the name. */
static enum rfl_rc add_operand(struct study *s, struct command *c, const char *value,
			       struct rfl_err *err)
{
	const char **last = &c->words[c->n - 1];

	if (!value || value[0] != '-' || strncmp(*last, "--", 2) != 0)
		return add_word(s, c, value, err);
	*last = rfl_arena_printf(s->arena, "%s=%s", *last, value);
	return *last ? RFL_OK : rfl_no_memory(err, s->path);
}

/* The variable that a word begins with; NULL: none. *len: length of "$name". */
static const struct variable *variable_at(const struct study *s, const char *word, size_t *len)
{
	*len = strcspn(word, "/ ");
	for (int i = 0; *word == '$' && i < VAR_COUNT; i++)
		if (strlen(variable_names[i]) + 1 == *len &&
		    strncmp(variable_names[i], word + 1, *len - 1) == 0)
			return &s->vars[i];
	return NULL;
}

/* Add the words of a step's command, without the options in `entry`. */
static enum rfl_rc add_command(struct study *s, struct command *c, const char *word,
			       const json_t *entry, struct rfl_err *err)
{
	bool skip = false;
	enum rfl_rc rc = RFL_OK;

	for (size_t len; rc == RFL_OK && *word; word += len + strspn(word + len, " ")) {
		const char *text, *value = strchr(word, ' ');
		const struct variable *v;
		size_t name;

		len = strcspn(word, " ");
		text = rfl_arena_printf(s->arena, "%.*s", (int)len, word);
		if (!text)
			return rfl_no_memory(err, s->path);
		if (strncmp(text, "--", 2) == 0) {
			v = value ? variable_at(s, value + 1, &name) : NULL;
			skip = option_of(entry, text + 2) || (v && !v->n);
		}
		if (skip)
			continue;
		v = variable_at(s, word, &name);
		for (size_t i = 0; rc == RFL_OK && i < (v ? v->n : 1); i++)
			rc = v ? add_operand(s, c,
					     rfl_arena_printf(s->arena, "%s%s", v->values[i],
							      text + name),
					     err)
			       : add_word(s, c, text, err);
	}
	return rc;
}

/* Add an option of the study file. true is a flag; false omits the option. */
static enum rfl_rc add_setting(struct study *s, struct command *c, const char *name,
			       const json_t *value, struct rfl_err *err)
{
	const bool many = json_is_array(value);
	const size_t n = many ? json_array_size(value) : 1;
	const size_t mark = rfl_where_key(&s->where, name);
	enum rfl_rc rc;

	if (!*name || strpbrk(name, "= ")) /* "output=FILE" would hide an output */
		return rfl_where_fail(&s->where, err,
				      "not the name of an option; write "
				      "{\"OPTION\": VALUE}");
	if (json_is_false(value)) {
		rfl_where_up(&s->where, mark);
		return RFL_OK;
	}
	rc = add_word(s, c, rfl_arena_printf(s->arena, "--%s", name), err);
	for (size_t i = 0; rc == RFL_OK && !json_is_true(value) && i < n; i++) {
		const json_t *item = many ? json_array_get(value, i) : value;

		char number[RFL_NUM_MAX];
		const char *text = rfl_json_scalar(item, number);

		if (!text)
			rc = rfl_where_fail(
				&s->where, err,
				"not a text, a number, true or false, or a list of texts "
				"and numbers");
		else if (text == number)
			rc = add_word(s, c, rfl_arena_strdup(s->arena, number), err);
		else
			rc = add_operand(s, c, text, err);
	}
	rfl_where_up(&s->where, mark);
	return rc;
}

/* Set `c` to the command of a step with the options of an entry in the study file. */
static enum rfl_rc build(struct study *s, const char *command, const json_t *entry,
			 struct command *c, struct rfl_err *err)
{
	const char *name;
	json_t *value;
	enum rfl_rc rc;

	c->n = 0;
	if ((rc = add_word(s, c, s->cli->self, err)) ||
	    (rc = add_command(s, c, command, entry, err)))
		return rc;
	if (s->cli->verbosity)
		rc = add_word(s, c, s->cli->verbosity < 0 ? "-q" : "-v", err);
	json_object_foreach((json_t *)entry, name, value) if (rc == RFL_OK) rc =
		add_setting(s, c, name, value, err);
	return rc;
}

/* Check a command line with the parser that its execution uses. */
static enum rfl_rc check(struct study *s, const struct command *c, struct rfl_err *err)
{
	const size_t nwords = rfl_cmd_is_group(c->words[1]) ? 2 : 1; /* of the command's name */
	const char *name = rfl_arena_printf(s->arena, "%s%s%s", c->words[1], nwords > 1 ? " " : "",
					    nwords > 1 ? c->words[2] : "");
	const struct rfl_cmd *cmd = name ? rfl_cmd_find(name) : NULL;
	struct rfl_opt_globals globals = { .help = false };
	struct rfl_err why = RFL_ERR_INIT;
	void *args = cmd ? calloc(1, cmd->args_size) : NULL;
	enum rfl_rc rc;

	if (!args)
		return rfl_no_memory(err, s->path);
	rc = rfl_opt_parse(cmd, (int)(c->n - nwords), (char *const *)(c->words + nwords), args,
			   &globals, &why);
	rfl_opt_free(cmd, args);
	free(args);
	if (rc)
		return rfl_where_fail(&s->where, err, "roofline %s: %s", name, why.msg);
	if (globals.help || globals.version)
		return rfl_where_fail(&s->where, err,
				      "with --help and --version, a command does nothing else; "
				      "leave them out");
	return RFL_OK;
}

static bool was_stopped(void *ctx)
{
	(void)ctx;
	return rfl_stop_asked();
}

/* Print a command and execute it. failed[step] is set after a failure that does not prevent later
 * steps: failed runs of a matrix, and a missing figure, because the report draws its own. */
static enum rfl_rc execute(struct study *s, int step, const struct command *c,
			   bool failed[STEP_COUNT], struct rfl_err *err)
{
	const struct rfl_proc_spec spec = { .argv = c->words, .cancelled = was_stopped };
	struct rfl_proc_result result = { .started = false };
	struct rfl_buf line;
	enum rfl_rc rc;

	rfl_buf_init(&line, 0);
	rfl_buf_puts(&line, "roofline");
	for (size_t i = 1; i < c->n; i++) {
		rfl_buf_putc(&line, ' ');
		rfl_text_shell_word(c->words[i], &line);
	}
	if (s->a->dry_run) {
		rfl_buf_putc(&line, '\n');
		rc = rfl_cli_put(s->cli, &line, "command", err);
		goto done;
	}
	rfl_log(RFL_LOG_INFO, "==> [%d/%d] %s", s->at, s->nsteps, rfl_buf_str(&line));
	rfl_cli_flush(s->cli);
	rc = rfl_proc_run(&spec, &result, err);
	if (rc == RFL_OK && (result.cancelled || rfl_stop_asked()))
		rc = rfl_fail(err, RFL_EINTR, 0,
			      "stopped by a signal; repeat the command to continue");
	else if (rc == RFL_OK && result.exited && result.exit_code != 0 &&
		 (step == STEP_FIGURES || (step == STEP_RUNS && result.exit_code == 1)))
		failed[step] = true;
	else if (rc == RFL_OK && !result.exited)
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s: killed by signal %d", rfl_buf_str(&line),
			      result.signal);
	else if (rc == RFL_OK && result.exit_code != 0)
		rc = rfl_fail(err,
			      result.exit_code == 77  ? RFL_EUNAVAILABLE
			      : result.exit_code == 3 ? RFL_EMISSING
						      : RFL_EFAILED,
			      0,
			      "step '%s' failed; fix its error and repeat the command, which skips "
			      "finished runs",
			      step_names[step]);
done:
	rfl_proc_result_fini(&result);
	rfl_buf_fini(&line);
	return rc;
}

/* The device of an environment whose ceilings can be measured: the processor if it has several;
 * NULL: none. */
static const char *const *device_of(const struct study *s, const char *env)
{
	static const char *const backends[] = { "cpu", "cuda", "mps" };
	size_t backend = RFL_ARRAY_LEN(backends);

	for (size_t i = 0; i < s->matrix->ncells; i++)
		for (size_t b = 0; b < backend && strcmp(s->matrix->cells[i].env, env) == 0; b++)
			if (strcmp(s->matrix->cells[i].backend, backends[b]) == 0)
				backend = b;
	return backend < RFL_ARRAY_LEN(backends) ? &backends[backend] : NULL;
}

/* Whether the ceilings of an environment must be measured. */
static enum rfl_rc needs_peaks(const struct study *s, const char *env, bool measurable, bool *ret,
			       struct rfl_err *err)
{
	const char *path = s->vars[VAR_peaks].values[0];
	struct rfl_peaks *peaks = NULL;
	bool known;
	enum rfl_rc rc = RFL_OK;

	if (access(path, F_OK) == 0)
		rc = rfl_cli_load_peaks(path, &peaks, err);
	known = peaks && rfl_peaks_find(peaks, env);
	*ret = measurable && !known;
	if (rc == RFL_OK && known)
		rfl_log(RFL_LOG_INFO, "==> [%d/%d] %s has the ceilings of '%s'", s->at, s->nsteps,
			path, env);
	else if (rc == RFL_OK && !*ret)
		rfl_log(RFL_LOG_WARN,
			"%s has no ceilings of '%s', which step 'peaks' does not measure; enter "
			"them with 'roofline peaks set %s %s KEY VALUE --kind gpu --source TEXT'",
			path, env, path, env);
	rfl_peaks_free(peaks);
	return rc;
}

/* Check or execute a command of a step, for the environment `env`. */
static enum rfl_rc run_entry(struct study *s, int at, const json_t *entry, const char **env,
			     struct command *c, bool failed[STEP_COUNT], struct rfl_err *err)
{
	const char *const *device = device_of(s, *env);
	struct rfl_device_lock lock = { .n = 0 };
	bool needed = true;
	enum rfl_rc rc = RFL_OK;

	s->vars[VAR_env] = (struct variable){ 1, env };
	s->vars[VAR_backend] = (struct variable){ device && strcmp(*device, "cpu") != 0,
						  (const char **)(uintptr_t)device };
	if (at == STEP_PEAKS && !s->checking) {
		/* Two studies on one machine: one measures the ceilings, and the other one waits
		 * for it. 'peaks measure' itself locks an NVIDIA GPU. */
		if (device && strcmp(*device, "cuda") != 0 && !s->a->dry_run)
			rc = rfl_device_lock_wait(&lock, *device, 1, s->cli, err);
		if (rc == RFL_OK)
			rc = needs_peaks(s, *env, device != NULL, &needed, err);
	}
	if (rc == RFL_OK && needed && !(rc = build(s, steps[at].command, entry, c, err)))
		rc = s->checking ? check(s, c, err) : execute(s, at, c, failed, err);
	rfl_device_lock_release(&lock);
	return rc;
}

static enum rfl_rc run_step(struct study *s, int at, bool failed[STEP_COUNT], struct rfl_err *err)
{
	const struct variable envs = s->vars[VAR_envs];
	const size_t mark = rfl_where_key(&s->where, step_names[at]);
	const size_t times = at == STEP_PEAKS ? envs.n : 1;
	json_t *defaults = json_loads(steps[at].entries, 0, NULL);
	/* "peaks" in the study file is a path */
	json_t *entries = at == STEP_PEAKS ? NULL : json_object_get(s->root, step_names[at]);
	const bool many = json_is_array(defaults) && json_is_array(entries ? entries : defaults);
	struct command *c = rfl_arena_array(s->arena, 1, sizeof(*c));
	enum rfl_rc rc = c && defaults ? RFL_OK : rfl_no_memory(err, s->path);

	entries = entries ? entries : defaults;
	if (!s->checking && !s->a->dry_run)
		s->vars[VAR_record].n = access(s->vars[VAR_record].values[0], F_OK) == 0;
	if (rc == RFL_OK && at == STEP_POINTS && !s->checking && !s->a->dry_run &&
	    !option_of(entries, "peaks") && access(s->vars[VAR_peaks].values[0], F_OK) != 0)
		rc = rfl_fail(
			err, RFL_EMISSING, 0,
			"%s: no such file; run step 'peaks', or enter ceilings with 'roofline "
			"peaks set', then repeat the command",
			s->vars[VAR_peaks].values[0]);
	for (size_t i = 0; rc == RFL_OK && i < (many ? json_array_size(entries) : 1); i++) {
		const json_t *entry = many ? json_array_get(entries, i) : entries;
		const size_t item = many ? rfl_where_index(&s->where, i) : s->where.len;

		if (!json_is_object(entry))
			rc = rfl_where_fail(&s->where, err,
					    "not an object of options; write {\"OPTION\": VALUE}%s",
					    json_is_array(defaults) ? " or a list of such objects"
								    : "");
		for (size_t k = 0; rc == RFL_OK && k < times; k++)
			rc = run_entry(s, at, entry, envs.values + k, c, failed, err);
		rfl_where_up(&s->where, item);
	}
	rfl_where_up(&s->where, mark);
	json_decref(defaults);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct study_args *a = args;
	struct study s = {
		.cli = cli, .a = a, .path = a->operands.items[0], .arena = rfl_arena_new(0)
	};
	struct rfl_stop stop;
	bool failed[STEP_COUNT] = { false };
	enum rfl_rc rc = s.arena ? RFL_OK : rfl_no_memory(err, s.path);

	rfl_stop_catch(&stop);
	if (rc == RFL_OK && !(rc = read_study(&s, err)))
		rc = read_matrix(&s, err);
	for (int pass = 0; pass < 2; pass++) {
		s.checking = pass == 0;
		s.nsteps = s.at;
		s.at = 0;
		for (int i = 0; rc == RFL_OK && i < STEP_COUNT; i++) {
			if (!executes(&s, i))
				continue;
			s.at++;
			rc = run_step(&s, i, failed, err);
		}
	}
	if (rc == RFL_OK && failed[STEP_RUNS])
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "not all runs are ok; run 'roofline matrix status %s --log-dir %s' "
			      "to see why",
			      s.vars[VAR_matrix].values[0], s.vars[VAR_logs].values[0]);
	else if (rc == RFL_OK && failed[STEP_FIGURES])
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "not all figures were drawn; fix the errors above and repeat the "
			      "command with --only figures");
	rfl_stop_restore(&stop);
	rfl_matrix_free(s.matrix);
	json_decref(s.root);
	rfl_project_fini(&s.project);
	rfl_arena_free(s.arena);
	return rc;
}

const struct rfl_cmd rfl_cmd_study = {
	.name = "study",
	.summary = "run a study: count, measure, train, draw and report",
	.operands = "FILE",
	.description =
		"Executes the commands of a study (docs/study.md) in order: complexity, peaks "
		"measure, matrix run, points, plot and report. Each command is printed before it "
		"runs. Successful runs and ceilings in the peaks file are not repeated, so the "
		"command can be interrupted at any time and repeated to continue.\n\nA matrix can "
		"have environments on several machines: run the study on each machine with --env, "
		"merge the log folders and peaks files, and use --only points figures report for "
		"all results.",
	.example = "roofline study examples/study-laptop.json\n"
		   "roofline study examples/study-laptop.json --only points figures report",
	.opts = opts,
	.args_size = sizeof(struct study_args),
	.holds_signals = true,
	.run = run,
};
