/*
 * as_peer.c - the table of rates computed with another counter's FLOPs and a training factor, next
 * to those of the exact count.
 */
#include "ledger/step.h"
#include "report/report_impl.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "roofline/merge.h"
#include "roofline/roofline.h"

struct row {
	const char *env, *model, *precision;
	int64_t batch;
	double mean, std, peer_rate, peer_ai, rate, ai, ratio;
};
#define RATE(member_, title_) \
	TEXT(struct row, member_, title_), .kind = RFL_COLUMN_REAL, .decimals = 2
static const struct rfl_column columns[] = {
	{ TEXT(struct row, env, "Environment") },
	{ TEXT(struct row, model, "Model") },
	{ TEXT(struct row, precision, "Precision") },
	{ INT(struct row, batch, "Batch") },
	{ RATE(mean, "Samples/s") },
	{ RATE(std, "Std") },
	{ RATE(peer_rate, "GFLOP/s as there") },
	{ RATE(peer_ai, "FLOP/byte as there") },
	{ RATE(rate, "GFLOP/s exact") },
	{ RATE(ai, "FLOP/byte unfused") },
	{ RATE(ratio, "As there / exact") },
};

/* Count a step exactly, and its forward pass exactly and like the peer. */
static enum rfl_rc count(const struct rfl_peer *peer, const struct rfl_ledger_row *row,
			 struct rfl_work *step, double *forward, double *peer_forward,
			 struct rfl_err *err)
{
	struct rfl_work_query query = rfl_work_query_of(row);
	RFL_AUTO(buf) notes = { .len = 0 }; /* unused: no file can disagree */
	enum rfl_rc rc;

	if (!rfl_step_caches(query.mode)) /* else rfl_work_count() refuses the peer */
		query.mode = "fwd";
	query.as = peer;
	if ((rc = rfl_work_count(&query, NULL, &notes, step, err)))
		return rc;
	*peer_forward = step->flops;
	query.as = NULL;
	if ((rc = rfl_work_count(&query, NULL, &notes, step, err)))
		return rc;
	*forward = step->flops;
	query.mode = row->mode ? row->mode : "train";
	return rfl_work_count(&query, NULL, &notes, step, err);
}

/* The intensity in older reports without measured bytes: rate / bandwidth. NaN: no ceilings. */
static double lower_bound(const struct rfl_report *r, const struct rfl_ledger_row *row,
			  double flop_per_s)
{
	struct rfl_attain_roof roof;

	if (!r->peaks || rfl_attain_find(r->peaks, row->env, row->precision, RFL_FUSION_UNFUSED,
					 &roof, NULL) != RFL_OK)
		return NAN;
	return rfl_roof_lower_bound_ai(
		&(struct rfl_roof){ roof.compute_flop_per_s, roof.bandwidth_byte_per_s },
		flop_per_s);
}

static enum rfl_rc fill(const struct rfl_report *r, const struct rfl_repeats_config *c,
			struct row *ret, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = c->row;
	const double samples = (double)rfl_work_query_of(row).batch; /* of the count */
	double peer_forward = 0, forward = 0, factor;
	struct rfl_work work;
	enum rfl_rc rc;

	if ((rc = count(r->peer, row, &work, &forward, &peer_forward, err)))
		return rc;
	factor = r->factor == RFL_TRAIN_2 ? 2 : r->factor == RFL_TRAIN_3 ? 3 : work.flops / forward;
	if (row->mode && strcmp(row->mode, "fwd") == 0)
		factor = 1;
	*ret = (struct row){
		.env = row->env,
		.model = row->model,
		.precision = row->precision,
		.batch = row->batch,
		.mean = c->stats.mean,
		.std = c->stats.std,
		.peer_rate = c->stats.mean * peer_forward / samples * factor * 1e-9,
		.rate = c->stats.mean * work.flops / samples * 1e-9,
		.ai = work.flops / work.bytes[RFL_FUSION_UNFUSED],
	};
	ret->peer_ai = lower_bound(r, row, ret->peer_rate * 1e9);
	ret->ratio = ret->peer_rate / ret->rate;
	return RFL_OK;
}

void rfl_report__as_peer(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	bool any = false; /* configuration with a result */

	rfl_page_part(page, "As counted by %s", r->peer->name);
	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		struct rfl_err why = RFL_ERR_INIT;
		struct row row;

		if (r->repeats->configs[i].n == 0)
			continue;
		if (fill(r, &r->repeats->configs[i], &row, &why) == RFL_OK)
			rfl_table_add(t, &row, 1, sizeof(row));
		else
			rfl_page_item(page, "%s is omitted: %s.",
				      rfl_report__name(r, page, &r->repeats->configs[i]), why.msg);
		any = true;
	}
	if (!any)
		rfl_report__lacks(r, page, "runs to be counted by %s: name them with --metrics",
				  r->peer->name);
	rfl_table_note(
		t,
		"As there: the %s that %s %s prints for a forward pass%s, times %s for a training "
		"step; FLOP/byte is this rate / bandwidth, a lower bound that places every point "
		"on the roof (at the ridge point near the compute ceiling).",
		r->peer->prints, r->peer->name, r->peer->version,
		r->peer->is_flops ? "" : ", 2 FLOPs each",
		r->factor == RFL_TRAIN_EXACT ? "the exact ratio"
					     : rfl_train_factor_names[r->factor]);
	rfl_table_note(
		t, "Exact: forward and both gradients as counted from the network; unfused bytes.");
	rfl_page_table(page, "Rates by another count, next to the exact ones", t);
}
