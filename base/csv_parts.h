/*
 * csv_parts.h - what the files of the CSV reader share.
 */
#ifndef RFL_BASE_CSV_PARTS_H
#define RFL_BASE_CSV_PARTS_H

#include <stddef.h>

#include "base/err.h"

/**
 * End a field at every comma of a line.
 *
 * @param text    the line without its end; a NUL takes the place of each comma
 * @param fields  where each field begins in text; room for `most`
 * @param most    at least 1; commas behind that many fields stay
 * @return how many fields there are, at least 1
 */
size_t rfl_csv__cut_at_commas(char *text, size_t len, size_t *fields, size_t most);

#endif
