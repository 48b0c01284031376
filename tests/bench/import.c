/*
 * import.c - one side of import.sh: reads a CSV file and prints seconds and peak memory.
 *
 *   bench_import ours FILE      the importer, from file to totals
 *   bench_import libcsv FILE    libcsv, counting fields and nothing else
 */
#include <csv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "profile/importer.h"

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
	printf("%zu fields ", fields);
	return 0;
}

static int read_by_importer(const char *path)
{
	const struct rfl_import_options options = { .from = "ncu" };
	struct rfl_captures captures;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc;

	rfl_captures_init(&captures);
	rc = rfl_import_file(path, &options, &captures, &err);
	if (rc != RFL_OK)
		fprintf(stderr, "%s\n", err.msg);
	else
		printf("%.17g FLOP ", captures.captures[0]->total[RFL_QUANTITY_FLOPS].value);
	rfl_captures_fini(&captures);
	return rc != RFL_OK;
}

int main(int argc, char **argv)
{
	double begin = rfl_clock_s();
	struct rusage usage;
	int failed = 2;

	if (argc == 3 && strcmp(argv[1], "ours") == 0)
		failed = read_by_importer(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "libcsv") == 0)
		failed = read_by_libcsv(argv[2]);
	else
		fprintf(stderr, "usage: bench_import ours|libcsv FILE\n");
	if (failed)
		return failed;
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("%.4f s %ld KiB\n", rfl_clock_s() - begin, usage.ru_maxrss);
	return 0;
}
