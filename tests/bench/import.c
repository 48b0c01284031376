/*
 * import.c - for import.sh: a reader to compare with, and the time of a command.
 *
 *   bench_import libcsv FILE       cut into fields by libcsv, and nothing else
 *   bench_import run COMMAND...    its wall time, CPU time and peak memory
 */
#include <csv.h>
#include <stdio.h>
#include <string.h>

#include "base/proc.h"

static void count_field(void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	++*(size_t *)ctx;
}

static int read_by_libcsv(const char *path)
{
	static char block[1 << 16];
	struct csv_parser parser;
	FILE *f = fopen(path, "rb");
	size_t n, fields = 0;

	if (!f || csv_init(&parser, CSV_STRICT) != 0)
		return 1;
	while ((n = fread(block, 1, sizeof(block), f)) > 0)
		if (csv_parse(&parser, block, n, count_field, NULL, &fields) != n)
			return 1;
	(void)csv_fini(&parser, count_field, NULL, &fields);
	csv_free(&parser);
	(void)fclose(f);
	printf("%zu fields\n", fields);
	return 0;
}

static int run(const char *const *argv)
{
	const struct rfl_proc_spec spec = { .argv = argv, .capture_stdout = true };
	struct rfl_proc_result result;
	struct rfl_err err = RFL_ERR_INIT;
	int failed;

	if (rfl_proc_run(&spec, &result, &err) != RFL_OK) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	failed = !result.exited || result.exit_code != 0;
	printf("%.3f %.3f %.1f\n", result.wall_s, result.user_s + result.system_s,
	       result.max_rss_bytes / (1 << 20));
	rfl_proc_result_fini(&result);
	return failed;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "libcsv") == 0)
		return read_by_libcsv(argv[2]);
	if (argc >= 3 && strcmp(argv[1], "run") == 0)
		return run((const char *const *)argv + 2);
	fprintf(stderr, "usage: bench_import libcsv FILE | run COMMAND...\n");
	return 2;
}
