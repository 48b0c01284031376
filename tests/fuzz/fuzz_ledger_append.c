/* metrics.csv: a row added to whatever file is there stands at its end, and what is added next
 * changes nothing before it; or the file is refused and stays as it was. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fuzz.h"
#include "ledger/ledger.h"

static enum rfl_rc append(const char *path, struct rfl_err *err)
{
	struct rfl_ledger_row row;
	enum rfl_rc rc;

	rfl_ledger_row_init(&row);
	row.schema_version = RFL_LEDGER_SCHEMA;
	row.batch = 4;
	rfl_field_set(&row.run_id, "fuzz-run");
	rfl_field_set(&row.version, "0.1.0");
	rc = rfl_ledger_append(path, &row, err);
	rfl_ledger_row_fini(&row);
	return rc;
}

static void read_whole(const char *path, struct rfl_buf *out)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	FUZZ_ASSERT(rfl_file_read(path, out, &err) == RFL_OK);
}

/* The last line has our run and our version. */
static void check_end(const struct rfl_buf *text)
{
	size_t at = text->len - 1;

	FUZZ_ASSERT(text->len > 0 && text->data[at] == '\n');
	while (at > 0 && text->data[at - 1] != '\n')
		at--;
	FUZZ_ASSERT(strstr(text->data + at, "fuzz-run"));
	FUZZ_ASSERT(strstr(text->data + at, "0.1.0"));
}

/* The mirror, what was set aside, and the older file. */
static void remove_beside(const char *path)
{
	char pattern[128];
	glob_t found;

	(void)snprintf(pattern, sizeof(pattern), "%s.*", path);
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			(void)unlink(found.gl_pathv[i]);
		globfree(&found);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf first, second;
	const char *path = fuzz_file(data, size);

	if (append(path, &err) == RFL_OK) {
		FUZZ_ASSERT(err.msg[0] == '\0');
		read_whole(path, &first);
		check_end(&first);
		FUZZ_ASSERT(append(path, &err) == RFL_OK);
		read_whole(path, &second);
		check_end(&second);
		FUZZ_ASSERT(second.len > first.len);
		FUZZ_ASSERT(memcmp(first.data, second.data, first.len) == 0);
		rfl_buf_fini(&second);
	} else {
		read_whole(path, &first);
		FUZZ_ASSERT(err.msg[0] != '\0');
	}
	rfl_buf_fini(&first);
	remove_beside(path);
	return 0;
}
