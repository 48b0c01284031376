/* epochs.c - reads and writes the table of a training run's epochs. */
#include "ledger/epochs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"

#define FIELD(kind, name, meaning) RFL_FIELD(kind, struct rfl_epoch, name, meaning),

const struct rfl_field rfl_epoch_fields[RFL_EPOCH_NCOLUMNS] = { RFL_EPOCH_COLUMNS(FIELD) };

void rfl_epochs_add(struct rfl_epochs *e, const struct rfl_epoch *row)
{
	rfl_reserve(&e->rows, &e->cap, e->n + 1);
	e->rows[e->n++] = *row;
}

void rfl_epochs_fini(struct rfl_epochs *e)
{
	free(e->rows);
	*e = (struct rfl_epochs){ .n = 0 };
}

enum rfl_rc rfl_epochs_save(const char *path, const struct rfl_epochs *e, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err);

	rfl_fields_write_header(rfl_epoch_fields, RFL_EPOCH_NCOLUMNS, &text);
	for (size_t i = 0; i < e->n; i++)
		rfl_fields_write(rfl_epoch_fields, RFL_EPOCH_NCOLUMNS, &e->rows[i], &text);
	if (rc == RFL_OK && (rc = rfl_buf_check(&text, path, err)) == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	return rc;
}

enum rfl_rc rfl_epochs_load(const char *path, struct rfl_epochs *e, struct rfl_err *err)
{
	int columns[RFL_EPOCH_NCOLUMNS];
	RFL_AUTOPTR(csv) csv = NULL;
	bool more = true;
	enum rfl_rc rc;

	if (!(rc = rfl_csv_open(path, &csv, err)))
		rc = rfl_fields_bind(rfl_epoch_fields, RFL_EPOCH_NCOLUMNS, csv, columns, err);
	while (!rc && !(rc = rfl_csv_next(csv, &more, err)) && more) {
		struct rfl_epoch row;

		rfl_fields_clear(rfl_epoch_fields, RFL_EPOCH_NCOLUMNS, &row);
		rc = rfl_fields_read(rfl_epoch_fields, RFL_EPOCH_NCOLUMNS, csv, columns, NULL, &row,
				     err);
		if (!rc)
			rfl_epochs_add(e, &row);
	}
	return rc;
}
