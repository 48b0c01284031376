/*
 * accumulate.h - a number added many times in fp32, fp16 and bf16, as a table.
 */
#ifndef RFL_REPORT_ACCUMULATE_H
#define RFL_REPORT_ACCUMULATE_H

#include "report/table.h"

/** A row for each precision, with the parts of its error and a note that explains them. NULL: out
 * of memory */
struct rfl_table *rfl_accumulate_table(double value, int64_t count) RFL_WARN_UNUSED;

#endif
