/*
 * runs_args.c - files of runs and maps of their columns, from the command line.
 */
#include "cli/cmd/runs_args.h"

#include <string.h>

#include "base/log.h"

/* A word with a '=' is a rule, one without a file of them. */
static enum rfl_rc read_map(const struct rfl_opt_list *words, struct rfl_column_map **ret,
			    struct rfl_err *err)
{
	struct rfl_column_map *map;
	enum rfl_rc rc = RFL_OK;

	if (words->n == 0)
		return RFL_OK;
	map = rfl_column_map_new();
	if (!map)
		return rfl_fail(err, RFL_ENOMEM, 0, "--map: out of memory");
	for (size_t i = 0; i < words->n && rc == RFL_OK; i++) {
		if (!strchr(words->items[i], '=')) {
			rc = rfl_column_map_load(map, words->items[i], err);
			continue;
		}
		rc = rfl_column_map_add(map, words->items[i], "--map", err);
		if (rc == RFL_EINVAL)
			rc = RFL_EUSAGE;
	}
	if (rc == RFL_OK)
		*ret = map;
	else
		rfl_column_map_free(map);
	return rc;
}

void rfl_cli_log_lines(enum rfl_log_level level, const char *lines)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		rfl_log(level, "%.*s", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}

enum rfl_rc rfl_cli_load_runs(const char *const *paths, size_t npaths,
			      const struct rfl_opt_list *map_words,
			      const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			      struct rfl_runs **ret, struct rfl_err *err)
{
	struct rfl_column_map *map = NULL;
	enum rfl_rc rc = read_map(map_words, &map, err);

	for (size_t i = 0; i < npaths && rc == RFL_OK; i++)
		rc = rfl_cli_need_file(paths[i], "roofline run", err);
	if (rc == RFL_OK)
		rc = rfl_runs_load(paths, npaths, map, metric, rows, ret, err);
	if (rc == RFL_OK)
		rfl_cli_log_lines(RFL_LOG_INFO, rfl_buf_str(&(*ret)->notes));
	rfl_column_map_free(map);
	return rc;
}

enum rfl_rc rfl_cli_load_repeats(const char *const *paths, size_t npaths,
				 const struct rfl_cli_runs_args *a, const char *const *envs,
				 size_t nenvs, enum rfl_rows rows, struct rfl_runs **runs,
				 struct rfl_repeats **ret, struct rfl_err *err)
{
	const struct rfl_repeats_options options = {
		.metric = &rfl_ledger_metrics[a->metric],
		.envs = envs,
		.nenvs = nenvs,
		.models = a->model.items,
		.nmodels = a->model.n,
		.precisions = a->precision.items,
		.nprecisions = a->precision.n,
	};
	enum rfl_rc rc = RFL_OK;

	if (!*runs)
		rc = rfl_cli_load_runs(paths, npaths, &a->map, options.metric, rows, runs, err);
	return rc ? rc : rfl_repeats_new(*runs, &options, ret, err);
}
