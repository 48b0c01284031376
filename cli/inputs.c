/* inputs.c - load runs, ceilings and libraries for several commands. */
#include "cli/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum rfl_rc rfl_cli_need_file(const char *path, const char *made_by, struct rfl_err *err)
{
	if (access(path, F_OK) == 0 || errno != ENOENT)
		return RFL_OK;
	return rfl_fail(err, RFL_EIO, ENOENT, "%s: no such file; create it with '%s'", path,
			made_by);
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
	struct rfl_column_map *map = rfl_column_map_new();
	enum rfl_rc rc = map ? RFL_OK : rfl_no_memory(err, "--map");

	for (size_t i = 0; i < map_words->n && rc == RFL_OK; i++) {
		const char *word = map_words->items[i];

		if (!strchr(word, '=')) /* a file of rules, not a rule */
			rc = rfl_column_map_load(map, word, err);
		else if ((rc = rfl_column_map_add(map, word, "--map", err)) == RFL_EINVAL)
			rc = RFL_EUSAGE;
	}
	for (size_t i = 0; i < npaths && rc == RFL_OK; i++)
		rc = rfl_cli_need_file(paths[i], "roofline run", err);
	if (rc == RFL_OK)
		rc = rfl_runs_load(paths, npaths, map_words->n ? map : NULL, metric, rows, ret,
				   err);
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
	enum rfl_rc rc =
		rfl_cli_need_file(path, "roofline peaks measure --env NAME --output FILE", err);

	return rc ? rc : rfl_peaks_load(path, ret, err);
}

/* The value of a variable; NULL if it is unset or empty. */
static const char *value_of(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] != '\0' ? value : NULL;
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
