/*
 * capture_table_impl.h - what the renderings of captures share.
 */
#ifndef RFL_PROFILE_CAPTURE_TABLE_IMPL_H
#define RFL_PROFILE_CAPTURE_TABLE_IMPL_H

#include "profile/capture_table.h"

/* ---- capture_amounts.c ---- */

/** Add the amounts of one range or capture to a sum that began zeroed with value NaN. Different
 * reasons for what is not known: the first stays. `launches` of all that were added go in. */
struct rfl_amounts_sum {
	struct rfl_amount amount[RFL_QUANTITY_COUNT];
	int64_t launches;
};
void rfl_amounts_begin(struct rfl_amounts_sum *sum);
void rfl_amounts_add(struct rfl_amounts_sum *sum, const struct rfl_amount *amount,
		     int64_t launches);

/** The total over captures: of one it is that capture's. */
void rfl_captures_total(const struct rfl_captures *captures, struct rfl_amounts_sum *ret);

/** What amounts lack for an intensity, in words; never NULL where rfl_amounts_ai() is NaN. */
const char *rfl_amounts_no_ai(const struct rfl_amount *amount);

/** The launches that a capture's totals cover. */
int64_t rfl_capture_launches_of_total(const struct rfl_capture *c);

/* ---- the renderings ---- */

void rfl_captures__json(const struct rfl_captures *captures, struct rfl_buf *out);
/** The rules of one capture's totals, and of its costliest ranges. */
enum rfl_rc rfl_capture__explain(const struct rfl_capture *c, const struct rfl_capture_view *view,
				 struct rfl_buf *out, struct rfl_err *err);
/** What is not known of the totals, and why: one line per reason. */
void rfl_capture__unknown(const struct rfl_capture *c, struct rfl_buf *out);

#endif
