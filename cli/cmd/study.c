/*
 * study.c - roofline study: run the commands of a whole study, from the matrix to the report.
 *
 * Each step is a command of this program, printed and run as a child process, so that users can
 * repeat it. The table `steps` has the options of each command; the study file can replace them and
 * add others.
 */
#include "cli/cmd/matrix.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bind.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "cli/device_lock.h"
#include "cli/inputs.h"
#include "cli/inventory.h"
#include "cli/opt/opt.h"
#include "cli/project.h"
#include "cli/stop.h"
#include "peaks/peaks.h"

struct study_args {
	struct rfl_opt_list operands, env, only;
	bool dry_run, init;
};

enum { STEP_COMPLEXITY, STEP_PEAKS, STEP_RUNS, STEP_POINTS, STEP_FIGURES, STEP_REPORT, STEP_COUNT };

static const char *const step_names[] = { "complexity", "peaks",  "runs", "points",
					  "figures",    "report", NULL };

#define OPT(kind, member, ...) RFL_OPT(struct study_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(LIST, env, .letter = 'e', .name = "env", .meta = "NAME",
	    .help = "environments of the matrix that this machine runs; default: the environment "
		    "in roofline.json, else the only one"),
	OPT(LIST, only, .name = "only", .meta = "STEP", .choices = step_names,
	    .help = "steps to execute; default: all"),
	OPT(FLAG, dry_run, .name = "dry-run", .help = "print the commands without executing them"),
	OPT(FLAG, init, .name = "init",
	    .help = "create FILE: a commented study of two small networks on this machine, to be "
		    "edited"),
	{ .name = NULL },
};

/* examples/study-laptop.json, compiled into the program. */
extern const char rfl_study__laptop[];

#define MAX_WORDS 4096

/* The commands. A word $name is replaced by the values of the study; an option that has no values,
 * or is set in the study file, is omitted. */
static const struct step {
	const char *command;
	/* default options; if they are a list, the file may also have a list, for several commands
	 */
	const char *entries;
} steps[STEP_COUNT] = {
	{ "complexity --models $models --net $nets --batch-sizes $batches --image-size $image "
	  "--context-length $context --output-dir $summaries",
	  "{}" },
	{ "peaks measure --env $env --backend $backend --output $peaks", "{}" },
	{ "matrix run $matrix --log-dir $logs --only $envs", "{}" },
	{ "points --metrics $logs/metrics.csv --peaks $peaks --output $points --skip-missing "
	  "--complexity-json $summaries/summary.json --counters $counters",
	  "{}" },
	{ "plot --points $points --peaks $peaks --metrics $logs/metrics.csv --output-dir "
	  "$figures",
	  "[{\"format\": [\"png\", \"svg\"]}, {\"kind\": \"throughput\"}]" },
	{ "report --title $title --metrics $logs/metrics.csv --points $points --peaks $peaks "
	  "--matrix $matrix --complexity-json $summaries/summary.json --counters $counters "
	  "--env $record --figures $figures --output $report",
	  "[{}]" },
};

/* The values of a variable, or the words of a command. */
struct list {
	size_t n, cap;
	const char **items; /* NULL-terminated */
};

/* clang-format off */
/* The variables. `backend` is the backend of `env`, unless its ceilings are a CPU's; `image` is
 * the image size of all cells (none if they differ); `context` lists the context lengths (none if a
 * cell uses its model's default); `record` is the log directory, if it has records of environments;
 * `counters` and `figures` are the file of counters and the directory of figures, if they exist. */
#define VARIABLES(X) \
	X(matrix) X(logs) X(peaks) X(points) X(summaries) X(title) X(env) X(backend) X(envs) \
	X(models) X(nets) X(batches) X(image) X(context) X(counters) X(record) X(figures) X(report)
#define INDEX(name) VAR_##name,
#define NAME(name) #name,
/* clang-format on */

enum { VARIABLES(INDEX) VAR_COUNT };

static const char *const variable_names[] = { VARIABLES(NAME) };

/* Options that name files or directories that later steps read. The study file can set them. */
static const struct {
	int step;
	const char *option;
	int var;
} outputs[] = {
	{ STEP_RUNS, "log-dir", VAR_logs },
	{ STEP_COMPLEXITY, "output-dir", VAR_summaries },
	{ STEP_POINTS, "output", VAR_points },
	{ STEP_PEAKS, "output", VAR_peaks },
};

/* The first error is kept; functions called after it do nothing. */
struct study {
	struct rfl_cli *cli;
	const struct study_args *a;
	const char *path;
	json_t *root;
	struct rfl_matrix *matrix;
	struct rfl_bind b; /* with the first error */
	struct rfl_project project;
	struct list vars[VAR_COUNT];
	int at, nsteps; /* number of the current step, from 1, and of all steps */
	bool checking;  /* check the commands of all steps before the first one runs */
	/* Steps that failed, but do not prevent later ones: failed runs of a matrix, and a missing
	 * figure, because the report draws its own. */
	bool failed[STEP_COUNT];
	bool drawn, empty; /* there are figures; some lack the values that they show */
};

static void release(struct study *s)
{
	rfl_matrix_free(s->matrix);
	json_decref(s->root);
}

#define FAIL(s, code, ...) \
	((s)->b.rc = (s)->b.rc ? (s)->b.rc : rfl_fail((s)->b.err, (code), 0, __VA_ARGS__))
#define FAIL_AT(s, ...) rfl_bind_refuse(&(s)->b, __VA_ARGS__)

/* Format a text owned by the arena. */
#define TEXT(s, ...) rfl_arena_printf((s)->cli->arena, __VA_ARGS__)

static void append(struct study *s, struct list *l, const char *text)
{
	if (s->b.rc)
		return;
	rfl_arena_reserve(s->cli->arena, &l->items, &l->cap, l->n + 2);
	l->items[l->n++] = text;
	l->items[l->n] = NULL;
}

/* Add a value to a variable, unless the variable has it. The text is borrowed. */
static void add_value(struct study *s, int var, const char *value)
{
	struct list *v = &s->vars[var];

	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->items[i], value) == 0)
			return;
	if (v->n == MAX_WORDS)
		FAIL(s, RFL_EINVAL, "%s: more than %d %s; split the matrix into several studies",
		     s->vars[VAR_matrix].items[0], MAX_WORDS, variable_names[var]);
	append(s, v, value);
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

const char *rfl_study_logs(const char *path, struct rfl_arena *arena)
{
	json_auto_t *root = NULL;
	const json_t *dir;

	/* Errors are reported when the matrix is loaded. A pipe can be read only once. */
	if (!rfl_file_size(path) || rfl_json_load_commented(path, &root, NULL))
		return NULL;
	dir = option_of(json_object_get(root, "runs"), "log-dir");
	dir = dir ? dir : json_object_get(root, "log_dir");
	return json_string_length(dir) ? rfl_arena_strdup(arena, json_string_value(dir)) : NULL;
}

/* Set the variable of an output to the path in the options of its step, else to `path`. */
static void set_output(struct study *s, int var, const char *path)
{
	s->vars[var].n = 0;
	for (size_t i = 0; i < RFL_ARRAY_LEN(outputs); i++) {
		const json_t *entry = json_object_get(s->root, step_names[outputs[i].step]);
		const json_t *value = option_of(entry, outputs[i].option);

		if (outputs[i].var != var || !value || s->b.rc)
			continue;
		if (json_is_false(value) && var == VAR_summaries)
			return;               /* nothing is written */
		if (!json_is_string(value)) { /* later steps would read another file */
			(void)rfl_where_key(&s->b.at, step_names[outputs[i].step]);
			(void)rfl_where_key(&s->b.at, outputs[i].option);
			FAIL_AT(s, "not a path; write \"...\"");
		}
		path = json_string_value(value);
	}
	if (!s->b.rc)
		add_value(s, var, path);
}

/* A value of the project; "" after an error. */
static const char *project_path(struct study *s, const char *name)
{
	const char *value = NULL;

	if (!s->b.rc)
		s->b.rc = rfl_project_path(&s->project, name, &value, s->b.err);
	return value || strcmp(name, "env") == 0 ? value : "";
}

struct keys {
	const char *title, *log_dir, *output_dir, *peaks;
};

/* The options of a step are checked with its command, and the matrix where it is loaded. */
static void read_later(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)b, (void)value, (void)member;
}

/* A path, or the options of 'peaks measure'. */
static void read_peaks(struct rfl_bind *b, const json_t *value, void *member)
{
	if (json_is_string(value) && json_string_length(value) > 0)
		*(const char **)member = json_string_value(value);
	else if (!json_is_object(value))
		rfl_bind_must(b, value, "a path, or an object of options");
}

#define LATER .kind = RFL_BIND_OTHER, .read = read_later

static const struct rfl_member of_study[] = {
	{ "schema", RFL_CHECKED(TEXT) },
	{ "$schema", RFL_CHECKED(TEXT) },
	{ "description", RFL_CHECKED(TEXT) },
	{ "title", RFL_MEMBER(TEXT, struct keys, title), .filled = true },
	{ "log_dir", RFL_MEMBER(TEXT, struct keys, log_dir), .filled = true },
	{ "output_dir", RFL_MEMBER(TEXT, struct keys, output_dir), .filled = true },
	{ "peaks", RFL_MEMBER(OTHER, struct keys, peaks), .read = read_peaks },
	{ "matrix", LATER },
	{ "complexity", LATER },
	{ "runs", LATER },
	{ "points", LATER },
	{ "figures", LATER },
	{ "report", LATER },
	{ .key = NULL },
};

static void read_study(struct study *s)
{
	struct rfl_arena *arena = s->cli->arena;
	struct keys keys = { .log_dir = project_path(s, "log_dir") };
	const char *logs, *out, *peaks = NULL;

	if (s->b.rc ||
	    (s->b.rc = rfl_cli_need_file(s->path, TEXT(s, "roofline study --init %s", s->path),
					 s->b.err)) ||
	    (s->b.rc = rfl_project_given(&s->project, "peaks", &peaks, s->b.err)) ||
	    (s->b.rc = rfl_json_load_commented(s->path, &s->root, s->b.err)))
		return;
	rfl_where_begin(&s->b.at, s->path, "");
	rfl_bind_schema(&s->b, s->root, "roofline.study/1", "a study");
	if (!s->b.rc)
		rfl_bind_read(&s->b, s->root, of_study, &keys);
	if (keys.peaks)
		peaks = keys.peaks;
	else if (!peaks && keys.output_dir)
		peaks = TEXT(s, "%s/peaks.json", keys.output_dir);
	else if (!peaks)
		peaks = project_path(s, "peaks");
	out = keys.output_dir ? keys.output_dir : project_path(s, "output_dir");
	if (!s->b.rc && keys.title)
		add_value(s, VAR_title, keys.title);
	set_output(s, VAR_peaks, peaks);
	set_output(s, VAR_logs, keys.log_dir);
	logs = s->b.rc ? "" : s->vars[VAR_logs].items[0];
	set_output(s, VAR_summaries, TEXT(s, "%s/model_summaries", logs));
	set_output(s, VAR_points, rfl_project_below("output_dir", out, "points", arena));
	set_output(s, VAR_counters, rfl_project_below("log_dir", logs, "counters", arena));
	set_output(s, VAR_record, logs);
	set_output(s, VAR_figures, rfl_project_below("output_dir", out, "figures", arena));
	set_output(s, VAR_report, rfl_project_below("output_dir", out, "report", arena));
	s->vars[VAR_counters].n = !s->b.rc && rfl_file_exists(s->vars[VAR_counters].items[0]);
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

/* Select the environments that this machine runs: from --env, else from the project file,
 * else the only one. */
static void choose_envs(struct study *s)
{
	const struct list known = s->vars[VAR_envs];
	const char *const *envs = s->a->env.items, *from = "--env", *mine = NULL, *names = "";
	size_t n = s->a->env.n;

	if (!n && !executes(s, STEP_PEAKS) && !executes(s, STEP_RUNS))
		return; /* nothing is measured */
	if (!n && (mine = project_path(s, "env"))) {
		n = 1;
		envs = &mine;
		from = "roofline.json";
	}
	if (s->b.rc || (!n && known.n == 1))
		return;
	for (size_t i = 0; i < known.n; i++)
		names = TEXT(s, "%s%s%s", names, i ? ", " : "", known.items[i]);
	s->vars[VAR_envs] = (struct list){ .n = 0 };
	if (!n)
		FAIL(s, RFL_EUSAGE,
		     "%s has several environments; name those that this machine runs with --env: "
		     "%s",
		     s->matrix->path, names);
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < known.n && strcmp(known.items[k], envs[i]) != 0)
			k++;
		if (k == known.n)
			FAIL(s, RFL_EUSAGE,
			     "%s: %s has no environment '%s'; use --env with one of: %s", from,
			     s->matrix->path, envs[i], names);
		add_value(s, VAR_envs, k < known.n ? known.items[k] : "");
	}
}

/* Set models, batch and image sizes, context lengths and environments. */
static void read_matrix(struct study *s)
{
	bool contexts = true;

	if (s->b.rc || (s->b.rc = rfl_cli_matrix_load(s->cli, s->path, &s->matrix, s->b.err)))
		return;
	add_value(s, VAR_matrix, s->matrix->path);
	for (size_t i = 0; i < s->matrix->ncells && !s->b.rc; i++) {
		const struct rfl_matrix_cell *c = &s->matrix->cells[i];
		const char *context = cell_option(c, "context-length");

		contexts = contexts && strcmp(context, "0") != 0;
		add_value(s, c->file ? VAR_nets : VAR_models, c->file ? c->file : c->model);
		add_value(s, VAR_batches, TEXT(s, "%lld", (long long)c->batch));
		add_value(s, VAR_image, cell_option(c, "image-size"));
		add_value(s, VAR_context, context);
		add_value(s, VAR_envs, c->env);
	}
	if (s->vars[VAR_image].n != 1 || strcmp(s->vars[VAR_image].items[0], "0") == 0)
		s->vars[VAR_image].n = 0;
	if (!contexts)
		s->vars[VAR_context].n = 0;
	choose_envs(s);
}

static void add_word(struct study *s, struct list *c, const char *word)
{
	if (c->n == MAX_WORDS)
		FAIL(s, RFL_EINVAL, "%s: a command has more than %d arguments; shorten its lists",
		     s->path, MAX_WORDS);
	append(s, c, word);
}

/* Add a value of an option. One that looks like an option is joined to the name. */
static void add_operand(struct study *s, struct list *c, const char *value)
{
	if (s->b.rc || value[0] != '-' || strncmp(c->items[c->n - 1], "--", 2) != 0)
		add_word(s, c, value);
	else
		c->items[c->n - 1] = TEXT(s, "%s=%s", c->items[c->n - 1], value);
}

/* The variable that a word begins with; NULL: none. *len: length of "$name". */
static const struct list *variable_at(const struct study *s, const char *word, size_t *len)
{
	*len = strcspn(word, "/ ");
	for (int i = 0; *word == '$' && i < VAR_COUNT; i++)
		if (strlen(variable_names[i]) + 1 == *len &&
		    strncmp(variable_names[i], word + 1, *len - 1) == 0)
			return &s->vars[i];
	return NULL;
}

/* Add the words of a step's command, without the options in `entry`. */
static void add_command(struct study *s, struct list *c, const char *word, const json_t *entry)
{
	bool skip = false;

	for (size_t len; *word; word += len + strspn(word + len, " ")) {
		const char *text, *value = strchr(word, ' ');
		const struct list *v;
		size_t name;

		len = strcspn(word, " ");
		text = TEXT(s, "%.*s", (int)len, word);
		if (strncmp(text, "--", 2) == 0) {
			v = value ? variable_at(s, value + 1, &name) : NULL;
			skip = option_of(entry, text + 2) || (v && !v->n);
		}
		if (skip)
			continue;
		v = variable_at(s, word, &name);
		if (!v)
			add_word(s, c, text);
		for (size_t i = 0; v && i < v->n && !s->b.rc; i++)
			add_operand(s, c, TEXT(s, "%s%s", v->items[i], text + name));
	}
}

/* Add an option of the study file. true is a flag; false omits the option. */
static void add_setting(struct study *s, struct list *c, const char *name, const json_t *value)
{
	const bool many = json_is_array(value);
	const size_t n = many ? json_array_size(value) : !json_is_true(value);
	size_t mark;

	if (s->b.rc)
		return;
	mark = rfl_where_key(&s->b.at, name);
	if (!*name || strpbrk(name, "= ")) /* "output=FILE" would hide an output */
		FAIL_AT(s, "not the name of an option; write {\"OPTION\": VALUE}");
	if (!json_is_false(value)) {
		add_word(s, c, TEXT(s, "--%s", name));
		for (size_t i = 0; i < n && !s->b.rc; i++) {
			const json_t *item = many ? json_array_get(value, i) : value;
			char number[RFL_NUM_MAX];
			const char *text = rfl_json_scalar(item, number);

			if (!text)
				FAIL_AT(s, "not a string, a number, true or false, or a list of "
					   "strings and numbers");
			else if (json_is_string(item))
				add_operand(s, c, text);
			else
				add_word(s, c, TEXT(s, "%s", number));
		}
	}
	rfl_where_up(&s->b.at, mark);
}

/* The command of a step with the options of an entry in the study file. */
static struct list build(struct study *s, const char *command, const json_t *entry)
{
	struct list c = { .n = 0 };
	const char *name;
	json_t *value;

	add_word(s, &c, s->cli->self);
	add_command(s, &c, command, entry);
	if (s->cli->verbosity)
		add_word(s, &c, s->cli->verbosity < 0 ? "-q" : "-v");
	json_object_foreach((json_t *)(uintptr_t)entry, name, value)
	{
		add_setting(s, &c, name, value);
	}
	return c;
}

/* Check a command line with the parser that its execution uses. */
static void check(struct study *s, const struct list *c)
{
	const size_t nwords = rfl_cmd_is_group(c->items[1]) ? 2 : 1; /* of the command's name */
	const char *name = nwords > 1 ? TEXT(s, "%s %s", c->items[1], c->items[2]) : c->items[1];
	const struct rfl_cmd *cmd = rfl_cmd_find(name);
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	struct rfl_err why = RFL_ERR_INIT;
	void *args = rfl_alloc_array(1, cmd->args_size);

	if (rfl_opt_parse(cmd, (int)(c->n - nwords), (char *const *)(c->items + nwords), args,
			  &globals, &why) != RFL_OK)
		FAIL_AT(s, "roofline %s: %s", name, why.msg);
	else if (globals.help || globals.version)
		FAIL_AT(s, "--help and --version have no place in a study; leave them out");
	rfl_opt_free(cmd, args);
	free(args);
}

/* Print a command and execute it. */
static void execute(struct study *s, int step, const struct list *c)
{
	const struct rfl_proc_spec spec = { .argv = c->items, .cancelled = rfl_stop_cancels };
	RFL_AUTO(proc_result) result = { .started = false };
	RFL_AUTO(buf) line = { .len = 0 };

	rfl_buf_puts(&line, "roofline");
	rfl_cli_quote(c->items + 1, c->n - 1, &line);
	if (s->a->dry_run) {
		rfl_buf_putc(&line, '\n');
		s->b.rc = rfl_cli_put(s->cli, &line, "command", s->b.err);
		return;
	}
	rfl_log(RFL_LOG_INFO, "==> [%d/%d] %s", s->at, s->nsteps, rfl_buf_str(&line));
	rfl_cli_flush(s->cli);
	if ((s->b.rc = rfl_proc_run(&spec, &result, s->b.err)))
		return;
	if (result.cancelled || rfl_stop_asked())
		FAIL(s, RFL_EINTR, "stopped by a signal; repeat the command to continue");
	else if (!result.exited)
		FAIL(s, RFL_EFAILED, "%s: killed by signal %d", rfl_buf_str(&line), result.signal);
	else if (step == STEP_FIGURES && result.exit_code == rfl_exit_code(RFL_EMISSING))
		s->empty = true;
	else if (result.exit_code != 0 &&
		 (step == STEP_FIGURES || (step == STEP_RUNS && result.exit_code == 1)))
		s->failed[step] = true;
	else if (result.exit_code != 0)
		FAIL(s,
		     result.exit_code == 77  ? RFL_EUNAVAILABLE
		     : result.exit_code == 3 ? RFL_EMISSING
					     : RFL_EFAILED,
		     "step '%s' failed; fix its error and repeat the command, which skips finished "
		     "runs",
		     step_names[step]);
	else if (step == STEP_FIGURES)
		s->drawn = true;
}

/* The device of an environment whose ceilings can be measured: the CPU if it has several;
 * NULL: none. */
static const char *device_of(const struct study *s, const char *env)
{
	static const char *const backends[] = { "cpu", "cuda", "mps" };
	size_t backend = RFL_ARRAY_LEN(backends);

	for (size_t i = 0; i < s->matrix->ncells; i++)
		for (size_t b = 0; b < backend && strcmp(s->matrix->cells[i].env, env) == 0; b++)
			if (strcmp(s->matrix->cells[i].backend, backends[b]) == 0)
				backend = b;
	return backend < RFL_ARRAY_LEN(backends) ? backends[backend] : NULL;
}

/* Whether the ceilings of an environment must be measured. */
static bool needs_peaks(struct study *s, const char *env, bool measurable)
{
	const char *path = s->vars[VAR_peaks].items[0];
	RFL_AUTOPTR(peaks) peaks = NULL;
	bool known;

	if (!s->b.rc && access(path, F_OK) == 0)
		s->b.rc = rfl_cli_load_peaks(path, &peaks, s->b.err);
	if (s->b.rc)
		return false;
	known = peaks && rfl_peaks_find(peaks, env);
	if (known)
		rfl_log(RFL_LOG_INFO, "==> [%d/%d] %s has the ceilings of '%s'", s->at, s->nsteps,
			path, env);
	else if (!measurable)
		rfl_log(RFL_LOG_WARN,
			"%s has no ceilings of '%s', which step 'peaks' does not measure; enter "
			"them with 'roofline peaks set %s %s KEY VALUE --kind gpu --source TEXT'",
			path, env, path, env);
	return measurable && !known;
}

/* Check or execute a command of a step, for one environment. */
static void run_entry(struct study *s, int at, const json_t *entry, const char *env)
{
	const char *device = device_of(s, env);
	struct rfl_device_lock lock = { .n = 0 };
	bool needed = true;
	struct list c;

	s->vars[VAR_env].n = s->vars[VAR_backend].n = 0;
	add_value(s, VAR_env, env);
	if (device && strcmp(device, "cpu") != 0)
		add_value(s, VAR_backend, device);
	if (at == STEP_PEAKS && !s->checking) {
		/* Of two studies on one machine, one measures the ceilings, and the other one waits
		 * for it. An NVIDIA GPU is locked by 'peaks measure' itself: both measure it, one
		 * after the other. */
		s->cli->line.prefix = TEXT(s, "==> [%d/%d] peaks: ", s->at, s->nsteps);
		if (device && strcmp(device, "cuda") != 0 && !s->a->dry_run)
			s->b.rc = rfl_device_lock_wait(&lock, device, 1, s->cli, s->b.err);
		s->cli->line.prefix = NULL;
		needed = needs_peaks(s, env, device != NULL);
	}
	if (needed)
		c = build(s, steps[at].command, entry);
	if (needed && !s->b.rc && s->checking)
		check(s, &c);
	else if (needed && !s->b.rc)
		execute(s, at, &c);
	rfl_device_lock_release(&lock);
}

/* Omit the options for files that do not exist: in the results of other machines, say. */
static void find_inputs(struct study *s, int at)
{
	struct list *record = &s->vars[VAR_record], *summaries = &s->vars[VAR_summaries];
	const char **files;
	size_t n = 0;

	if (record->items && !s->b.rc)
		s->b.rc = rfl_cli_records(record->items[0], s->cli->arena, &files, &n, s->b.err);
	record->n = n > 0;
	s->vars[VAR_counters].n = rfl_file_exists(s->vars[VAR_counters].items[0]);
	if (at == STEP_REPORT)
		s->vars[VAR_figures].n = rfl_dir_exists(s->vars[VAR_figures].items[0]);
	if (at > STEP_COMPLEXITY && summaries->items)
		summaries->n = rfl_file_exists(TEXT(s, "%s/summary.json", summaries->items[0]));
}

static void run_step(struct study *s, int at)
{
	const struct list envs = s->vars[VAR_envs];
	const size_t mark = rfl_where_key(&s->b.at, step_names[at]);
	const bool real = !s->checking && !s->a->dry_run;
	const char *peaks = s->vars[VAR_peaks].items[0];
	json_auto_t *defaults = json_loads(steps[at].entries, 0, NULL);
	json_t *entries = json_object_get(s->root, step_names[at]);
	const bool many = json_is_array(defaults) && json_is_array(entries ? entries : defaults);

	entries =
		entries && !json_is_string(entries) ? entries : defaults; /* the path of "peaks" */
	if (real)
		find_inputs(s, at);
	if (at == STEP_POINTS && real && !option_of(entries, "peaks") && access(peaks, F_OK) != 0)
		FAIL(s, RFL_EMISSING,
		     "%s: no such file; run step 'peaks', or enter ceilings with 'roofline peaks "
		     "set', then repeat the command",
		     peaks);
	for (size_t i = 0; !s->b.rc && i < (many ? json_array_size(entries) : 1); i++) {
		const json_t *entry = many ? json_array_get(entries, i) : entries;
		const size_t item = many ? rfl_where_index(&s->b.at, i) : s->b.at.len;

		if (!json_is_object(entry))
			FAIL_AT(s, "not an object of options; write {\"OPTION\": VALUE}%s",
				json_is_array(defaults) ? " or a list of such objects" : "");
		for (size_t k = 0; !s->b.rc && k < (at == STEP_PEAKS ? envs.n : 1); k++)
			run_entry(s, at, entry, envs.items[k]);
		rfl_where_up(&s->b.at, item);
	}
	rfl_where_up(&s->b.at, mark);
}

/* Create the study of --init: the example, with the name and the device of this machine. */
static enum rfl_rc write_study(struct study *s)
{
	static const char there[] = "{\"name\": \"laptop_cpu\", \"backend\": \"cpu\"}";
	const char *env = project_path(s, "env"), *device, *at;
	RFL_AUTO(buf) text = { .len = 0 };

	at = strstr(rfl_study__laptop, there);
	assert(at);
	if (!s->b.rc && !(s->b.rc = rfl_cli_auto_device(s->cli, "auto", &device, s->b.err))) {
		rfl_buf_printf(&text, "%.*s{\"name\": \"%s\", \"backend\": \"%s\"}%s",
			       (int)(at - rfl_study__laptop), rfl_study__laptop, env ? env : device,
			       device, at + strlen(there));
		s->b.rc = rfl_file_create(s->path, rfl_buf_str(&text), text.len, s->b.err);
	}
	if (!s->b.rc)
		rfl_log(RFL_LOG_INFO, "%s: created; edit it, then run: roofline study %s", s->path,
			s->path);
	return s->b.rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct study_args *a = args;
	RFL_CLEANUP(release)
	struct study s = { .cli = cli,
			   .a = a,
			   .path = a->operands.items[0],
			   .b = { .err = err },
			   .project = { .arena = cli->arena } };
	struct rfl_stop stop;

	if (a->init)
		return write_study(&s);
	rfl_stop_catch(&stop);
	read_study(&s);
	read_matrix(&s);
	for (int pass = 0; pass < 2; pass++) {
		s.checking = pass == 0;
		s.nsteps = s.at;
		s.at = 0;
		for (int i = 0; !s.b.rc && i < STEP_COUNT; i++) {
			if (!executes(&s, i))
				continue;
			s.at++;
			run_step(&s, i);
		}
	}
	if (s.failed[STEP_RUNS])
		FAIL(&s, RFL_EFAILED,
		     "not all runs are ok; run 'roofline matrix status %s --log-dir %s' to see why",
		     s.vars[VAR_matrix].items[0], s.vars[VAR_logs].items[0]);
	else if (s.failed[STEP_FIGURES] || (s.empty && !s.drawn))
		FAIL(&s, RFL_EFAILED,
		     "not all figures were drawn; fix the errors above and repeat the command with "
		     "--only figures");
	rfl_stop_restore(&stop);
	return s.b.rc;
}

const struct rfl_cmd rfl_cmd_study = {
	.name = "study",
	.summary = "run a study: count, measure, train, draw and report",
	.operands = "FILE",
	.description =
		"Executes the commands of a study (docs/reference/study.md) in order: complexity, "
		"peaks measure, matrix run, points, plot and report. Each command is "
		"printed before it runs. Successful runs and ceilings in the peaks file are "
		"not repeated, so the command can be interrupted at any time and repeated "
		"to continue.\n\nA matrix can have environments on several machines: run "
		"the study on each machine with --env, merge the log directories and peaks "
		"files, and use --only points figures report for all results.",
	.example = "roofline study examples/study-laptop.json\n"
		   "roofline study examples/study-laptop.json --only points figures report",
	.opts = opts,
	.args_size = sizeof(struct study_args),
	.holds_signals = true,
	.run = run,
};
