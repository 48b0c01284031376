/*
 * table_impl.h - what the renderings of captures share.
 */
#ifndef RFL_PROFILE_CAPTURE_TABLE_IMPL_H
#define RFL_PROFILE_CAPTURE_TABLE_IMPL_H

#include "base/num.h"
#include "profile/capture/table.h"

/* ---- capture/amounts.c ---- */

/** What several captures hold together. */
struct rfl_amounts_sum {
	struct rfl_amount amount[RFL_QUANTITY_COUNT];
	int64_t launches;
};

/** The total over captures: of one it is that capture's. */
void rfl_captures_total(const struct rfl_captures *captures, struct rfl_amounts_sum *ret);

/** What amounts lack for an intensity, in words; never NULL where rfl_amounts_ai() is NaN. */
const char *rfl_amounts_no_ai(const struct rfl_amount *amount);

/* ---- capture/total_table.c ---- */

/** a / b where both are of the same launches and b is above 0, else NaN. */
double rfl_amounts_ratio(double a, int64_t a_launches, double b, int64_t b_launches);
/** Render a table, and release it. NULL is one that could not be made. */
enum rfl_rc rfl_capture__finish_table(struct rfl_table *t, enum rfl_format format,
				      struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_capture__total_table(const struct rfl_capture *c, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- capture/name.c ---- */

#define RFL_CAPTURE_NAME_MAX 40

/** A name that fits a column: without its return type and parameters where it is long, and with its
 * middle left out where it still is. On one line. @return out */
const char *rfl_capture__short_name(const char *name, char out[RFL_CAPTURE_NAME_MAX + 1]);

/** End the line that began at `at`: control characters, which texts of files may hold, do not reach
 * a terminal. */
void rfl_capture__end_line(struct rfl_buf *out, size_t at);

/* ---- the renderings ---- */

void rfl_captures__json(const struct rfl_captures *captures, struct rfl_buf *out);
/** The rules of one capture's totals, and of its costliest ranges. */
enum rfl_rc rfl_capture__explain(const struct rfl_capture *c, const struct rfl_capture_view *view,
				 struct rfl_buf *out, struct rfl_err *err);
/** What is not known of the totals, and why: one line per reason. */
void rfl_capture__unknown(const struct rfl_capture *c, struct rfl_buf *out);

#endif
