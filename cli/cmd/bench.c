/* bench.c - what the benchmarks share whose runs are a matrix in memory. */
#include "cli/cmd/bench.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"

static enum rfl_rc check_output(const char *path, struct rfl_err *err)
{
	struct stat st;
	enum rfl_rc rc;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return RFL_OK; /* a device or pipe */
	if ((rc = rfl_file_check_use(path, RFL_FILE_REPLACED, err)))
		rfl_err_prefix(err, "--output");
	return rc;
}

enum rfl_rc rfl_bench_output(const char *output, int format, bool given, bool check,
			     enum rfl_format *ret, struct rfl_err *err)
{
	const char *dot = output ? strrchr(rfl_path_base(output), '.') : NULL;

	if (dot && !given && strcmp(dot, ".txt") != 0) {
		format = 0;
		while (rfl_format_names[format] && strcmp(dot + 1, rfl_format_names[format]) != 0)
			format++;
		if (!rfl_format_names[format])
			return rfl_usage(err,
					 "--output: '%s' has an unknown suffix; use .md, .csv, "
					 ".json or .txt, or add --format",
					 output);
	}
	*ret = (enum rfl_format)format;
	return output && check ? check_output(output, err) : RFL_OK;
}

enum rfl_rc rfl_bench_matrix(const char *name, int64_t repeats, json_t *take_environments,
			     struct rfl_matrix **ret, struct rfl_err *err)
{
	json_auto_t *root =
		json_pack("{s:s, s:s, s:I, s:o}", "schema", "roofline.matrix/1", "name", "bench",
			  "repeats", (json_int_t)repeats, "environments", take_environments);
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_json_write(&text, root);
	if (rfl_buf_check(&text, name, err))
		return RFL_EOVERFLOW;
	return rfl_matrix_parse(rfl_buf_str(&text), text.len, name, ret, err);
}

enum rfl_rc rfl_bench_execute(struct rfl_cli *cli, struct rfl_matrix *m,
			      const struct rfl_matrix_execution *how, struct rfl_err *err)
{
	struct rfl_matrix_execution quiet = *how;
	struct rfl_matrix_pick pick = { .m = m, .n = m->ncells * (size_t)m->repeats };
	struct rfl_run_config config;
	enum rfl_rc rc;

	quiet.shuffle = -1;
	quiet.quiet = true;
	for (size_t i = 0; i < m->ncells; i++)
		if ((rc = rfl_cli_matrix_config(cli, &m->cells[i], NULL, &config, err)))
			return rc;
	pick.runs = rfl_arena_array(cli->arena, pick.n, sizeof(*pick.runs));
	for (size_t i = 0; i < pick.n; i++)
		pick.runs[i] = i;
	return rfl_cli_matrix_execute(cli, &pick, &quiet, err);
}
