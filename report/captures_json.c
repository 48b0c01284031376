/*
 * captures_json.c - captures as a JSON document (docs/counters.schema.json). Names of kernels may
 * contain invalid UTF-8, which the writer of base/json.h replaces.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/captures_impl.h"

static json_t *text_of(const char *text)
{
	return text ? json_string_nocheck(text) : json_null();
}

/* -1 means unknown. */
static json_t *integer_of(int64_t value)
{
	return value == -1 ? json_null() : json_integer((json_int_t)value);
}

static json_t *caveat_of(const struct rfl_amount *a)
{
	return json_pack("{s:s, s:o}", "validity", rfl_validity_names[a->validity], "reason",
			 text_of(a->reason));
}

/* Add amounts with their launches, reasons for nulls and caveats, under dotted names.
 * @param launches  total number of launches; an amount of fewer launches is a lower bound
 * @param rules  add the formulas, too */
static void put_amounts(json_t **o, const struct rfl_amount *amount, int64_t launches, bool rules)
{
	const struct rfl_amount *total = &amount[RFL_QUANTITY_FLOPS];
	const struct rfl_amount *bytes = &amount[RFL_QUANTITY_DRAM];
	const struct rfl_amount *worse = bytes->validity > total->validity ? bytes : total;
	json_t *known = json_object(), *flops = json_object(), *reasons = json_object();
	json_t *caveats = json_object(), *formulas = json_object();
	const double ai = rfl_amounts_ai(amount);

	rfl_json_put(o, "launches", integer_of(launches));
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const char *name = rfl_quantity_info((enum rfl_quantity)q)->name;
		const struct rfl_amount *a = &amount[q];

		if (isnan(a->value)) {
			rfl_json_put(&reasons, name,
				     text_of(a->reason ? a->reason : "not counted"));
			continue;
		}
		rfl_json_put(&known, name, integer_of(a->launches));
		if (a->validity != RFL_VALID || a->reason)
			rfl_json_put(&caveats, name, caveat_of(a));
		if (a->rule)
			rfl_json_put(&formulas, name, text_of(a->rule));
	}
	if (isnan(ai))
		rfl_json_put(&reasons, "ai", text_of(rfl_amounts_no_ai(amount)));
	else if (worse->validity != RFL_VALID || worse->reason)
		rfl_json_put(&caveats, "ai", caveat_of(worse));
	rfl_json_put(o, "known", known);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const char *name = rfl_quantity_info((enum rfl_quantity)q)->name;
		const bool dotted = strncmp(name, "flops.", 6) == 0;

		rfl_json_put(dotted ? &flops : o, dotted ? name + 6 : name,
			     rfl_json_real(amount[q].value));
		if (q == RFL_QUANTITY_FLOPS) /* the last of them */
			rfl_json_put(o, "flops", flops);
	}
	rfl_json_put(o, "ai", rfl_json_real(ai));
	rfl_json_put(o, "reasons", reasons);
	rfl_json_put(o, "caveats", caveats);
	if (rules)
		rfl_json_put(o, "rules", formulas);
	else
		json_decref(formulas);
}

static json_t *range_of(const struct rfl_capture *c, size_t capture, const struct rfl_range *r)
{
	json_t *metrics = json_array();
	json_t *o =
		json_pack("{s:I, s:o, s:s, s:o, s:o, s:o}", "capture", (json_int_t)capture, "label",
			  text_of(c->label), "kind", rfl_range_kind_names[r->kind], "name",
			  text_of(r->name), "block", text_of(r->block), "grid", text_of(r->grid));

	put_amounts(&o, r->amount, r->launches, true);
	for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics; m++)
		rfl_json_append(&metrics,
				json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:s, s:o}", "name",
					  text_of(m->name), "unit", text_of(m->unit), "rollup",
					  rfl_rollup_names[m->rollup], "value",
					  rfl_json_real(m->value), "launches",
					  integer_of(m->launches), "pass", integer_of(m->pass),
					  "validity", rfl_validity_names[m->validity], "reason",
					  text_of(m->reason)));
	rfl_json_put(&o, "metrics", metrics);
	return o;
}

static json_t *capture_of(const struct rfl_capture *c)
{
	json_t *total = json_object(), *refused = json_array(), *notes = json_array();

	put_amounts(&total, c->total, rfl_capture_launches_of_total(c), true);
	for (size_t i = 0; i < c->nrefusals; i++)
		rfl_json_append(&refused,
				json_pack("{s:o, s:o}", "set", text_of(c->refusals[i].set),
					  "reason", text_of(c->refusals[i].reason)));
	for (size_t i = 0; i < c->nnotes; i++)
		rfl_json_append(&notes, text_of(c->notes[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, "
			 "s:{s:o, s:o}, s:o, s:o, s:o}",
			 "label", text_of(c->label), "run_id", text_of(c->run_id), "timestamp_utc",
			 text_of(c->time_utc), "source", text_of(c->source), "path",
			 text_of(c->path), "device", text_of(c->device), "chip", text_of(c->chip),
			 "formulas", text_of(c->family), "steps", integer_of(c->steps), "passes",
			 integer_of(c->passes), "rows_left_out", integer_of(c->rows_left_out),
			 "unused_metrics", integer_of(c->unused_metrics), "total_of",
			 rfl_range_kind_names[c->total_kind], "coverage", "flops",
			 rfl_json_real(rfl_capture_coverage(c, RFL_QUANTITY_FLOPS)), "dram_bytes",
			 rfl_json_real(rfl_capture_coverage(c, RFL_QUANTITY_DRAM)), "total", total,
			 "refused", refused, "notes", notes);
}

void rfl_captures__json(const struct rfl_captures *captures, struct rfl_buf *out)
{
	json_t *list = json_array(), *kernels = json_array(), *ranges = json_array();
	json_t *total = json_object();
	json_auto_t *root = NULL;
	struct rfl_amounts_sum sum;

	rfl_captures_total(captures, &sum);
	for (size_t i = 0; i < captures->n; i++) {
		const struct rfl_capture *c = captures->captures[i];

		rfl_json_append(&list, capture_of(c));
		for (size_t k = 0; k < c->nranges; k++)
			rfl_json_append(c->ranges[k].kind == RFL_RANGE_KERNEL ? &kernels : &ranges,
					range_of(c, i, &c->ranges[k]));
	}
	put_amounts(&total, sum.amount, sum.launches, false);
	root = json_pack("{s:s, s:o, s:o, s:o, s:o}", "schema", "roofline.counters/1", "captures",
			 list, "kernels", kernels, "ranges", ranges, "total", total);
	rfl_json_write(out, root);
	rfl_buf_putc(out, '\n');
}
