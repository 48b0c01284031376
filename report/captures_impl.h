/*
 * captures_impl.h - what the renderings of captures share.
 */
#ifndef RFL_REPORT_CAPTURES_IMPL_H
#define RFL_REPORT_CAPTURES_IMPL_H

#include "report/captures.h"

#define RFL_CAPTURE_NAME_MAX 40

/** A name that fits a column: without its return type and parameters where it is long, and with its
 * middle left out where it still is. On one line. @return out */
const char *rfl_captures__short_name(const char *name, char out[RFL_CAPTURE_NAME_MAX + 1]);

/** End the line that began at `at`: control characters, which texts of files may hold, do not reach
 * a terminal. */
void rfl_captures__end_line(struct rfl_buf *out, size_t at);

void rfl_captures__json(const struct rfl_captures *captures, struct rfl_buf *out);
/** The rules of one capture's totals, and of its costliest ranges. */
enum rfl_rc rfl_captures__explain(const struct rfl_capture *c, const struct rfl_capture_view *view,
				  struct rfl_buf *out, struct rfl_err *err);
/** What is not known of the totals, and why: one line per reason. */
void rfl_captures__unknown(const struct rfl_capture *c, struct rfl_buf *out);

#endif
