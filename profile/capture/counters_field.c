/*
 * counters_field.c - one field of a row of counters.csv, and what is wrong with it.
 */
#include <math.h>
#include <string.h>

#include "profile/capture/counters_read.h"

enum rfl_rc rfl_counters__no_memory(const struct rfl_counters_reader *rd)
{
	return rfl_fail(rd->err, RFL_ENOMEM, 0, "%s: out of memory", rfl_csv_path(rd->csv));
}

const char *rfl_counters__text(const struct rfl_counters_reader *rd, int column)
{
	return rfl_csv_text(rd->csv, rd->column[column]);
}

enum rfl_rc rfl_counters__bad(const struct rfl_counters_reader *rd, int column, const char *what)
{
	return rfl_fail(rd->err, RFL_EFORMAT, 0, "%s:%zu: column '%s': %s", rfl_csv_path(rd->csv),
			rfl_csv_line(rd->csv), rfl_counters_column((size_t)column, NULL), what);
}

enum rfl_rc rfl_counters__unknown(const struct rfl_counters_reader *rd, int column)
{
	return rfl_fail(rd->err, RFL_EFORMAT, 0, "%s:%zu: column '%s': '%.63s' is not known",
			rfl_csv_path(rd->csv), rfl_csv_line(rd->csv),
			rfl_counters_column((size_t)column, NULL), rfl_counters__text(rd, column));
}

/* A text of the row, for the life of the capture; NULL where it is empty. */
enum rfl_rc rfl_counters__take_text(const struct rfl_counters_reader *rd, int column,
				    const char **ret)
{
	const char *text = rfl_counters__text(rd, column);

	if (!rfl_capture__keep(rd->b, ret, text[0] ? text : NULL))
		return rfl_counters__no_memory(rd);
	return RFL_OK;
}

/* The same, "" where it is empty. */
enum rfl_rc rfl_counters__take_name(const struct rfl_counters_reader *rd, int column,
				    const char **ret)
{
	return rfl_capture__keep(rd->b, ret, rfl_counters__text(rd, column))
		       ? RFL_OK
		       : rfl_counters__no_memory(rd);
}

enum rfl_rc rfl_counters__take_int(const struct rfl_counters_reader *rd, int column, int64_t none,
				   int64_t *ret)
{
	enum rfl_rc rc = rfl_csv_int(rd->csv, rd->column[column], none, ret, rd->err);

	if (rc == RFL_OK && *ret < none && *ret < 0)
		return rfl_counters__bad(rd, column, "a count is not below 0");
	if (rc == RFL_OK && *ret > RFL_COUNTERS_MOST)
		return rfl_counters__bad(rd, column, "a count is not above 1,000,000,000,000");
	return rc;
}

/* The index of the row's word among `names`. */
enum rfl_rc rfl_counters__take_choice(const struct rfl_counters_reader *rd, int column,
				      const char *const *names, int *ret)
{
	const char *text = rfl_counters__text(rd, column);

	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		*ret = i;
		return RFL_OK;
	}
	return rfl_counters__unknown(rd, column);
}

/* The value, and whether it agrees with the validity. */
enum rfl_rc rfl_counters__take_value(const struct rfl_counters_reader *rd, double *value,
				     enum rfl_validity *validity)
{
	int choice = 0;
	enum rfl_rc rc = rfl_csv_double(rd->csv, rd->column[COLUMN_value], value, rd->err);

	if (rc == RFL_OK)
		rc = rfl_counters__take_choice(rd, COLUMN_validity, rfl_validity_names, &choice);
	if (rc != RFL_OK)
		return rc;
	*validity = (enum rfl_validity)choice;
	if (isnan(*value) && *validity != RFL_VALID_UNAVAILABLE)
		return rfl_counters__bad(rd, COLUMN_value,
					 "is empty, and 'validity' does not say unavailable");
	if (!isnan(*value) && *validity == RFL_VALID_UNAVAILABLE)
		return rfl_counters__bad(rd, COLUMN_value,
					 "is there, and 'validity' says unavailable");
	return RFL_OK;
}
