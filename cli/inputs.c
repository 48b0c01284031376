/* inputs.c - load runs, ceilings and libraries for several commands. */
#include "cli/inputs.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/project.h"
#include "peaks/import.h"
#include "roofline/merge.h"

enum rfl_rc rfl_cli_need_file(const char *path, const char *made_by, struct rfl_err *err)
{
	if (access(path, F_OK) == 0 || errno != ENOENT)
		return RFL_OK;
	return rfl_fail(err, RFL_EIO, ENOENT, "%s: no such file; create it with '%s'", path,
			made_by);
}

const char *rfl_cli_made_by(const char *value, const char *path)
{
	const bool peaks = strcmp(value, "peaks") == 0;

	if (strcmp(rfl_path_base(path), rfl_project_usual(value)) == 0)
		return peaks ? "roofline peaks measure" : "roofline points";
	return peaks ? "roofline peaks measure --output FILE" : "roofline points --output FILE";
}

void rfl_cli_log_lines(enum rfl_log_level level, const char *lines)
{
	struct rfl_span rest = rfl_span_of(lines), line;

	while (rfl_span_next_line(&rest, &line))
		rfl_log(level, "%.*s", (int)line.len, line.at);
}

enum rfl_rc rfl_cli_read_map(const struct rfl_opt_list *map_words, struct rfl_column_map **ret,
			     struct rfl_err *err)
{
	RFL_AUTOPTR(column_map) map = map_words->n ? rfl_column_map_new() : NULL;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < map_words->n && rc == RFL_OK; i++) {
		const char *word = map_words->items[i];

		if (!strchr(word, '=')) /* a file of rules, not a rule */
			rc = rfl_column_map_load(map, word, err);
		else if ((rc = rfl_column_map_add(map, word, "--map", err)) == RFL_EINVAL)
			rc = RFL_EUSAGE;
	}
	if (rc == RFL_OK) {
		*ret = map;
		map = NULL;
	}
	return rc;
}

enum rfl_rc rfl_cli_load_runs(const char *const *paths, size_t npaths,
			      const struct rfl_opt_list *map_words,
			      const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			      struct rfl_runs **ret, struct rfl_err *err)
{
	RFL_AUTOPTR(column_map) map = NULL;
	enum rfl_rc rc = rfl_cli_read_map(map_words, &map, err);

	for (size_t i = 0; i < npaths && rc == RFL_OK; i++)
		rc = rfl_cli_need_file(paths[i], "roofline run", err);
	if (rc || (rc = rfl_runs_load(paths, npaths, map, metric, rows, ret, err)))
		return rc;
	rfl_cli_log_lines(RFL_LOG_INFO, rfl_buf_str(&(*ret)->notes));
	return RFL_OK;
}

enum rfl_rc rfl_cli_load_repeats(const char *const *paths, size_t npaths,
				 const struct rfl_cli_runs_args *a, const char *const *envs,
				 size_t nenvs, enum rfl_rows rows, struct rfl_runs **runs,
				 struct rfl_repeats **ret, struct rfl_err *err)
{
	const struct rfl_repeats_options options = {
		.metric = &rfl_ledger_metrics[a->metric],
		.losses = a->losses,
		.filters = { { RFL_LEDGER_AT_env, envs, nenvs },
			     { RFL_LEDGER_AT_model, a->model.items, a->model.n },
			     { RFL_LEDGER_AT_precision, a->precision.items, a->precision.n } },
	};
	enum rfl_rc rc = RFL_OK;

	if (!*runs)
		rc = rfl_cli_load_runs(paths, npaths, &a->map, options.metric, rows, runs, err);
	return rc ? rc : rfl_repeats_new(*runs, &options, ret, err);
}

enum rfl_rc rfl_cli_load_peaks(const char *path, struct rfl_peaks **ret, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_cli_need_file(path, rfl_cli_made_by("peaks", path), err);

	return rc ? rc : rfl_peaks_load(path, ret, err);
}

#define ENV_OF_FILE_MAX 40 /* an environment's name has at most 48 characters */

/* "a100_sxm" for "data/A100 SXM.txt" */
static const char *env_of_file(const char *path, struct rfl_arena *arena)
{
	const char *base = rfl_path_base(path);
	char *name = rfl_arena_printf(arena, "%.*s", (int)strcspn(base, "."), base);

	if (strlen(name) > ENV_OF_FILE_MAX)
		name[ENV_OF_FILE_MAX] = '\0';
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
	return isalpha((unsigned char)name[0]) ? name : rfl_arena_printf(arena, "env_%s", name);
}

/* *ret stays NULL if the file is no other tool's, or a pipe, which is read once. */
static enum rfl_rc import_roofs(const char *path, const char *env, const char *precision,
				struct rfl_peaks **ret, struct rfl_err *err)
{
	/* without a precision, the points have none either, and are reported */
	const struct rfl_peaks_import_options options = { .precision = precision ? precision : "" };
	RFL_AUTOPTR(arena) arena = rfl_arena_new();

	if (rfl_file_size(path) <= 0)
		return RFL_OK;
	return rfl_peaks_import_load(path, &options, env ? env : env_of_file(path, arena), ret,
				     err);
}

enum rfl_rc rfl_cli_load_roofs(const char *path, const char *env, const char *precision,
			       struct rfl_peaks **ret, struct rfl_err *err)
{
	enum rfl_rc rc = import_roofs(path, env, precision, ret, err);

	return rc || *ret ? rc : rfl_cli_load_peaks(path, ret, err);
}

const char *rfl_cli_only_env(const struct rfl_opt_list *env, const struct rfl_peaks *peaks)
{
	return env->n == 1                        ? env->items[0]
	       : env->n == 0 && peaks->nenvs == 1 ? peaks->envs[0].name
						  : NULL;
}

enum rfl_rc rfl_cli_load_table(const char *path, const struct rfl_opt_list *map_words,
			       const struct rfl_opt_list *env, const char *usual,
			       const char **roofs, struct rfl_peaks **peaks,
			       struct rfl_points **points, struct rfl_err *err)
{
	const char *only = env->n == 1 ? env->items[0] : NULL, *precision;
	RFL_AUTOPTR(column_map) map = NULL;
	RFL_AUTOPTR(ledger) table = NULL;
	RFL_AUTO(buf) notes = { .len = 0 };
	enum rfl_rc rc = RFL_OK;

	if (rfl_file_size(path) <= 0 || (rc = rfl_cli_read_map(map_words, &map, err)) ||
	    (rc = rfl_foreign_numbers(path, map, &table, &notes, err)) || !table)
		return rc;
	rfl_cli_log_lines(RFL_LOG_INFO, rfl_buf_str(&notes));
	precision = table->nrows ? table->rows[0].precision : NULL;
	if (!*roofs && (rc = import_roofs(path, only, precision, peaks, err)))
		return rc;
	if (!*roofs)
		*roofs = *peaks ? path : usual;
	if (!*peaks && (rc = rfl_cli_load_roofs(*roofs, only, precision, peaks, err)))
		return rc;
	return rfl_points_of_table(table, path, *peaks, rfl_cli_only_env(env, *peaks), points, err);
}

enum rfl_rc rfl_cli_load_points(const char *path, struct rfl_points **ret, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_cli_need_file(path, rfl_cli_made_by("points", path), err);

	return rc ? rc : rfl_points_load(path, ret, err);
}

enum rfl_rc rfl_cli_find_peer(const char *as, const struct rfl_peer **ret, struct rfl_err *err)
{
	return !as || rfl_peer_find(as, ret, err) == RFL_OK ? RFL_OK : rfl_usage_of("--as", err);
}

/* The value of a variable; NULL if it is unset or empty. */
static const char *value_of(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] != '\0' ? value : NULL;
}

static bool is_record(const char *path)
{
	return rfl_span_ends(rfl_span_of(path), ".json");
}

enum rfl_rc rfl_cli_records(const char *log_dir, struct rfl_arena *arena, const char ***ret,
			    size_t *n, struct rfl_err *err)
{
	const char *own = rfl_arena_printf(arena, "%s/env.json", log_dir), **others;
	enum rfl_rc rc = rfl_dir_list(rfl_arena_printf(arena, "%s/env", log_dir), is_record, arena,
				      &others, n, err);

	if (rc)
		return rc;
	*ret = rfl_arena_array(arena, *n + 1, sizeof(**ret));
	(*ret)[0] = own;
	if (*n)
		memcpy(*ret + rfl_file_exists(own), others, *n * sizeof(*others));
	*n += rfl_file_exists(own);
	return RFL_OK;
}

struct rfl_cupti_places rfl_cli_places(const struct rfl_cli *cli)
{
	const char *home = value_of("CUDA_HOME");

	return (struct rfl_cupti_places){
		.path = value_of("RFL_CUPTI_PATH"),
		.cuda_home = home ? home : value_of("CUDA_PATH"),
		.beside = cli->torch_dir,
	};
}
