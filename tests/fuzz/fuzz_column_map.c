/* A map of columns: what loads has columns of the ledger and sources, is bound to a table or
 * refused by a message of one line, and numbers keep their units. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "ledger/file/steps.h"
#include "ledger/runs.h"

static const char table[] = "a,b c,secs,mem,model,imgs/sec,t*2\n1,2,0.5,3,vgg16,60,7\n";

static void bind(const struct rfl_column_map *map)
{
	struct rfl_ledger_source from[RFL_LEDGER_NREAD];
	struct rfl_csv *csv = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_csv_open_text(table, sizeof(table) - 1, "table", &csv, &err);

	FUZZ_ASSERT(rc == RFL_OK);
	for (size_t i = 0; i < RFL_LEDGER_NREAD; i++)
		from[i] = (struct rfl_ledger_source){ .column = -1 };
	rc = rfl_column_map__bind(map, csv, from, &err);
	FUZZ_ASSERT((rc == RFL_OK) == (err.msg[0] == '\0'));
	FUZZ_ASSERT(!strchr(err.msg, '\n'));
	for (size_t i = 0; rc == RFL_OK && i < RFL_LEDGER_NREAD; i++) {
		FUZZ_ASSERT(from[i].column < (int)csv->ncolumns);
		FUZZ_ASSERT(isfinite(from[i].scale));
		FUZZ_ASSERT(from[i].column < 0 || !from[i].text);
	}
	rfl_csv_close(csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_column_map *map = rfl_column_map_new();
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = fuzz_memory(data, size);
	enum rfl_rc rc = map ? rfl_column_map_load(map, path, &err) : RFL_ENOMEM;

	fuzz_check(rc, rc == RFL_OK ? map : NULL, &err, path);
	for (size_t i = 0; rc == RFL_OK && i < map->n; i++) {
		FUZZ_ASSERT(map->rules[i].column < RFL_LEDGER_NREAD);
		FUZZ_ASSERT(!map->rules[i].constant != !map->rules[i].source);
		for (size_t k = 0; k < i; k++)
			FUZZ_ASSERT(map->rules[k].column != map->rules[i].column);
	}
	if (rc == RFL_OK)
		bind(map);
	rfl_column_map_free(map);
	return 0;
}
