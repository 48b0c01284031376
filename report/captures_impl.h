/* captures_impl.h - declarations shared by captures*.c. */
#ifndef RFL_REPORT_CAPTURES_IMPL_H
#define RFL_REPORT_CAPTURES_IMPL_H

#include "report/captures.h"

#define RFL_CAPTURE_NAME_MAX 40

/** Shorten a name to fit a column: remove its return type and parameters, then its middle.
 * @return out */
const char *rfl_captures__short_name(const char *name, char out[RFL_CAPTURE_NAME_MAX + 1]);

/** End the line that began at `at`, and mask control characters in it, which files may contain. */
void rfl_captures__end_line(struct rfl_buf *out, size_t at);

void rfl_captures__json(const struct rfl_captures *captures, struct rfl_buf *out);
/** Write the rules and inputs of the figures of the longest ranges. */
void rfl_captures__explain(const struct rfl_capture *c, const struct rfl_capture_view *view,
			   struct rfl_buf *out);
/** List unknown totals, with one line per reason. */
void rfl_captures__unknown(const struct rfl_capture *c, struct rfl_buf *out);

#endif
