/* next.c - roofline without a command: what to do next, from the files that are here. */
#include "cli/cmd.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/project.h"

#define MAX_LINES   6
#define MAX_FILES   100       /* that may be studies */
#define STUDY_SIZE  (1 << 16) /* a larger file is not read */
#define MAX_STUDIES 2

/* The files of a project, in the order in which they are made. */
enum { METRICS, COUNTERS, PEAKS, POINTS, FIGURES, REPORT, FILES };

static const char *const values[FILES] = {
	"metrics", "counters", "peaks", "points", "figures", "report",
};

struct next {
	struct rfl_cli *cli;
	const char *paths[FILES];
	struct timespec times[FILES]; /* of the last change; tv_sec 0: absent */
	const char *studies[MAX_STUDIES];
	struct {
		const char *command, *words;
	} lines[MAX_LINES];
	size_t nstudies, nlines;
	struct rfl_buf here;
};

static bool is_there(const struct next *s, int file)
{
	return s->times[file].tv_sec != 0;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static bool is_older(const struct next *s, int file, int than)
{
	return is_before(&s->times[file], &s->times[than]);
}

static void see(struct next *s, int file, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && is_before(&s->times[file], &st.st_mtim))
		s->times[file] = st.st_mtim;
}

static bool is_json(const char *path)
{
	uint64_t size;

	if (!rfl_span_ends(rfl_span_of(path), ".json"))
		return false;
	size = rfl_file_size(path); /* 0: not a regular file; a pipe would be waited for */
	return size > 0 && size <= STUDY_SIZE;
}

static void find_studies(struct next *s)
{
	const char **paths;
	size_t n;

	if (rfl_dir_list(".", is_json, s->cli->arena, &paths, &n, NULL))
		return;
	for (size_t i = 0; i < n && i < MAX_FILES && s->nstudies < MAX_STUDIES; i++) {
		json_auto_t *root = NULL;
		const char *schema;

		if (rfl_json_load_commented(paths[i], &root, NULL))
			continue;
		schema = json_string_value(json_object_get(root, "schema"));
		if (schema && strcmp(schema, "roofline.study/1") == 0)
			s->studies[s->nstudies++] = rfl_path_base(paths[i]);
	}
}

static void find_files(struct next *s)
{
	struct rfl_project project = { .arena = s->cli->arena };
	struct rfl_err why = RFL_ERR_INIT;
	const char **figures;
	size_t n;

	for (int i = 0; i < FILES; i++) {
		if (rfl_project_path(&project, values[i], &s->paths[i], &why)) {
			rfl_log(RFL_LOG_WARN, "%s", why.msg);
			rfl_err_clear(&why);
			s->paths[i] = rfl_project_usual(values[i]);
		}
		see(s, i, s->paths[i]);
	}
	if (rfl_dir_list(s->paths[FIGURES], NULL, s->cli->arena, &figures, &n, NULL) == RFL_OK)
		for (size_t i = 0; i < n; i++)
			see(s, FIGURES, figures[i]);
	find_studies(s);
	for (size_t i = 0; i < s->nstudies; i++)
		rfl_buf_printf(&s->here, "%s%s", s->here.len ? ", " : "", s->studies[i]);
	for (int i = 0; i < FILES; i++)
		if (is_there(s, i))
			rfl_buf_printf(&s->here, "%s%s%s", s->here.len ? ", " : "", s->paths[i],
				       i == FIGURES ? "/" : "");
}

/* @param command  not copied */
static void add(struct next *s, const char *command, const char *words)
{
	if (s->nlines == MAX_LINES)
		return;
	s->lines[s->nlines].command = command;
	s->lines[s->nlines++].words = words;
}

static void add_study(struct next *s, const char *command, const char *words)
{
	for (size_t i = 0; i < s->nstudies; i++) {
		RFL_AUTO(buf) line = { .len = 0 };

		rfl_buf_puts(&line, command);
		rfl_text_shell_word(s->studies[i], &line);
		add(s, rfl_arena_strdup(s->cli->arena, rfl_buf_str(&line)), words);
	}
}

/* Add the steps from the first one that is not done, or outdated, to the report. */
static void add_steps(struct next *s)
{
	const bool peaks = !is_there(s, PEAKS);
	const bool points = peaks || !is_there(s, POINTS) || is_older(s, POINTS, PEAKS) ||
			    is_older(s, POINTS, METRICS) || is_older(s, POINTS, COUNTERS);
	const bool figures = points || !is_there(s, FIGURES) || is_older(s, FIGURES, POINTS);

	if (peaks)
		add(s, "roofline peaks measure", "measure the limits of this machine");
	if (points && is_there(s, METRICS))
		add(s, "roofline points", "compare the runs with these limits");
	if (figures)
		add(s, "roofline plot", "draw the roofline");
	if (figures || !is_there(s, REPORT) || is_older(s, REPORT, FIGURES))
		add(s, "roofline report", "write everything on one page");
}

enum rfl_rc rfl_cli_next(struct rfl_cli *cli, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	struct next s = { .cli = cli };
	size_t width = 0;

	find_files(&s);
	add_study(&s, "roofline study ", "run this study; finished runs are kept");
	add_study(&s, "roofline matrix status ", "list its runs: done, failed and missing");
	if (is_there(&s, METRICS) || is_there(&s, POINTS))
		add_steps(&s);
	else if (!s.nstudies && is_there(&s, PEAKS))
		add(&s, "roofline run --arch resnet50 --synthetic", "measure training steps");
	if (!s.here.len) {
		add(&s, "roofline tour", "see all steps at work, in a minute");
		add(&s, "roofline study --init study.json", "describe runs of your own");
		add(&s, "roofline complexity --models resnet50", "count what a network costs");
		add(&s, "roofline doctor", "check what works on this machine");
	} else if (!s.nlines) {
		add(&s, "roofline summary", "print mean and spread of the repeats");
		add(&s, "roofline run --help", "measure another network");
	}
	add(&s, "roofline --help", "list all commands");
	for (size_t i = 0; i < s.nlines; i++)
		if (strlen(s.lines[i].command) > width)
			width = strlen(s.lines[i].command);
	if (s.here.len)
		rfl_buf_printf(&text, "Here: %s. Next:\n", rfl_buf_str(&s.here));
	else
		rfl_buf_puts(&text, "Nothing is measured in this directory yet. To begin:\n");
	for (size_t i = 0; i < s.nlines; i++)
		rfl_buf_printf(&text, "  %-*s  %s\n", (int)width, s.lines[i].command,
			       s.lines[i].words);
	rfl_buf_fini(&s.here);
	return rfl_cli_put(cli, &text, "advice", err);
}
