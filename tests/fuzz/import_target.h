/*
 * import_target.h - a fuzz target for one importer: fuzz_import_<kind>.c defines IMPORTER and
 * includes this file. What is read holds together, is the same with and without --keep-going, and
 * is the same after a way through counters.csv.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "report/captures.h"
#include "profile/capture.h"
#include "profile/import/importer.h"

static void check_amount(const struct rfl_amount *a)
{
	if (isnan(a->value))
		FUZZ_ASSERT(a->reason && a->reason[0] && a->validity == RFL_VALID_UNAVAILABLE);
	else
		FUZZ_ASSERT(isfinite(a->value) && a->value >= 0 &&
			    a->validity != RFL_VALID_UNAVAILABLE);
}

static void check_capture(const struct rfl_capture *c)
{
	FUZZ_ASSERT(c->label && c->source && c->family);
	FUZZ_ASSERT(c->rows_left_out >= 0 && c->unused_metrics >= 0);
	for (size_t q = 0; q < RFL_QUANTITY_COUNT; q++)
		check_amount(&c->total[q]);
	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];

		FUZZ_ASSERT(r->name && r->launches >= 1);
		for (size_t q = 0; q < RFL_QUANTITY_COUNT; q++)
			check_amount(&r->amount[q]);
		for (size_t m = 0; m < r->nmetrics; m++)
			FUZZ_ASSERT(r->metrics[m].name && r->metrics[m].unit &&
				    (isnan(r->metrics[m].value) ? r->metrics[m].reason != NULL
								: isfinite(r->metrics[m].value)));
	}
}

/* Written and read again, the text is the same. */
static void check_round_trip(const struct rfl_captures *captures)
{
	struct rfl_captures again;
	struct rfl_buf first, second;
	struct rfl_err err = RFL_ERR_INIT;

	rfl_captures_init(&again);
	rfl_buf_init(&first, 0);
	rfl_buf_init(&second, 0);
	rfl_counters_write(&first, captures, true);
	FUZZ_ASSERT(rfl_counters_load("again", rfl_buf_str(&first), first.len, &again, &err) ==
		    RFL_OK);
	rfl_counters_write(&second, &again, true);
	FUZZ_ASSERT(!first.failed && !second.failed && first.len == second.len &&
		    memcmp(first.data, second.data, first.len) == 0);
	rfl_buf_fini(&first);
	rfl_buf_fini(&second);
	rfl_captures_fini(&again);
}

static void render(const struct rfl_captures *captures)
{
	for (int format = RFL_FORMAT_TABLE; format <= RFL_FORMAT_MD; format++) {
		const struct rfl_capture_view view = { .format = (enum rfl_format)format,
						       .explain = true };
		struct rfl_buf out;

		rfl_buf_init(&out, 0);
		rfl_captures_render(captures, &view, &out);
		FUZZ_ASSERT(!out.failed);
		rfl_buf_fini(&out);
	}
}

static void count_line(const char *line, void *ctx)
{
	FUZZ_ASSERT(line[0] != '\0' && !strchr(line, '\n'));
	++*(size_t *)ctx;
}

static enum rfl_rc import(const uint8_t *data, size_t size, bool keep_going, bool all_metrics,
			  struct rfl_captures *to, size_t *warned)
{
	const struct rfl_import_options options = { .from = IMPORTER,
						    .keep_going = keep_going,
						    .all_metrics = all_metrics,
						    .warn = count_line,
						    .ctx = warned };
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_import_text((const char *)data, size, "input", &options, to, &err);

	fuzz_check(rc, to->n > 0 ? to : NULL, &err, "input");
	return rc;
}

/* Without --keep-going the same is read, or the first row that would be left out is refused. */
static void check_strict(const uint8_t *data, size_t size, const struct rfl_captures *going,
			 enum rfl_rc rc_going)
{
	struct rfl_captures strict;
	size_t warned = 0;
	enum rfl_rc rc;

	rfl_captures_init(&strict);
	rc = import(data, size, false, false, &strict, &warned);
	FUZZ_ASSERT(rc != RFL_OK || (rc_going == RFL_OK && strict.n == going->n));
	for (size_t i = 0; i < strict.n; i++)
		FUZZ_ASSERT(strict.captures[i]->rows_left_out == 0);
	rfl_captures_fini(&strict);
}

static void check_all_metrics(const uint8_t *data, size_t size, enum rfl_rc rc_going)
{
	struct rfl_captures all;
	size_t warned = 0;

	rfl_captures_init(&all);
	FUZZ_ASSERT((import(data, size, true, true, &all, &warned) == RFL_OK) ==
		    (rc_going == RFL_OK));
	for (size_t i = 0; i < all.n; i++)
		check_capture(all.captures[i]);
	rfl_captures_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_captures going;
	size_t warned = 0;
	enum rfl_rc rc;

	rfl_captures_init(&going);
	rc = import(data, size, true, false, &going, &warned);
	for (size_t i = 0; i < going.n; i++)
		check_capture(going.captures[i]);
	if (fuzz_due(data, size, 0))
		check_strict(data, size, &going, rc);
	if (fuzz_due(data, size, 1))
		check_all_metrics(data, size, rc);
	if (going.n > 0 && fuzz_due(data, size, 2))
		check_round_trip(&going);
	if (going.n > 0 && fuzz_due(data, size, 3))
		render(&going);
	rfl_captures_fini(&going);
	return 0;
}
