/*
 * captures_json.c - writes captures as JSON (docs/counters.schema.json), without jansson because
 * kernel names may contain invalid UTF-8.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/captures_impl.h"

struct json {
	struct rfl_buf *out;
	int depth;
	bool has_before; /* the current object or list has entries */
};

static void new_line(struct json *j)
{
	rfl_buf_putc(j->out, '\n');
	for (int i = 0; i < j->depth; i++)
		rfl_buf_puts(j->out, "  ");
}

static void put_key(struct json *j, const char *key)
{
	if (j->has_before)
		rfl_buf_putc(j->out, ',');
	new_line(j);
	j->has_before = true;
	if (!key)
		return;
	rfl_json_write_string(j->out, key, strlen(key));
	rfl_buf_puts(j->out, ": ");
}

static void begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	rfl_buf_putc(j->out, bracket);
	j->depth++;
	j->has_before = false;
}

static void end(struct json *j, char bracket)
{
	j->depth--;
	if (j->has_before)
		new_line(j);
	rfl_buf_putc(j->out, bracket);
	j->has_before = true;
}

static void put_text(struct json *j, const char *key, const char *text)
{
	put_key(j, key);
	if (text)
		rfl_json_write_string(j->out, text, strlen(text));
	else
		rfl_buf_puts(j->out, "null");
}

static void put_real(struct json *j, const char *key, double value)
{
	put_key(j, key);
	rfl_json_write_real(j->out, value);
}

/* Write an integer; -1 means unknown. */
static void put_int(struct json *j, const char *key, int64_t value)
{
	put_key(j, key);
	if (value == -1)
		rfl_buf_puts(j->out, "null");
	else
		rfl_buf_printf(j->out, "%" PRId64, value);
}

static const char *name_of(int q)
{
	return rfl_quantity_info((enum rfl_quantity)q)->name;
}

static void put_caveat(struct json *j, const char *name, const struct rfl_amount *a)
{
	if (a->validity == RFL_VALID && !a->reason)
		return;
	begin(j, name, '{');
	put_text(j, "validity", rfl_validity_names[a->validity]);
	put_text(j, "reason", a->reason);
	end(j, '}');
}

/* Write amounts with their launches, reasons for nulls and caveats, under dotted names.
 * @param launches  total number of launches; an amount of fewer launches is a lower bound */
static void put_amounts(struct json *j, const struct rfl_amount *amount, int64_t launches)
{
	const struct rfl_amount *flops = &amount[RFL_QUANTITY_FLOPS];
	const struct rfl_amount *bytes = &amount[RFL_QUANTITY_DRAM];
	const bool has_ai = !isnan(rfl_amounts_ai(amount));

	put_int(j, "launches", launches);
	begin(j, "known", '{');
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!isnan(amount[q].value))
			put_int(j, name_of(q), amount[q].launches);
	end(j, '}');
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const char *name = name_of(q);

		if (q == RFL_QUANTITY_FLOPS_FP16)
			begin(j, "flops", '{');
		put_real(j, strncmp(name, "flops.", 6) == 0 ? name + 6 : name, amount[q].value);
		if (q == RFL_QUANTITY_FLOPS)
			end(j, '}');
	}
	put_real(j, "ai", rfl_amounts_ai(amount));
	begin(j, "reasons", '{');
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (isnan(amount[q].value))
			put_text(j, name_of(q),
				 amount[q].reason ? amount[q].reason : "not counted");
	if (!has_ai)
		put_text(j, "ai", rfl_amounts_no_ai(amount));
	end(j, '}');
	begin(j, "caveats", '{');
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!isnan(amount[q].value))
			put_caveat(j, name_of(q), &amount[q]);
	if (has_ai)
		put_caveat(j, "ai", bytes->validity > flops->validity ? bytes : flops);
	end(j, '}');
}

static void put_rules(struct json *j, const struct rfl_amount *amount)
{
	begin(j, "rules", '{');
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (!isnan(amount[q].value) && amount[q].rule)
			put_text(j, name_of(q), amount[q].rule);
	end(j, '}');
}

static void put_ranges(struct json *j, const struct rfl_captures *captures, const char *key,
		       bool kernels)
{
	begin(j, key, '[');
	for (size_t i = 0; i < captures->n; i++) {
		const struct rfl_capture *c = captures->captures[i];

		for (const struct rfl_range *r = c->ranges; r < c->ranges + c->nranges; r++) {
			if ((r->kind == RFL_RANGE_KERNEL) != kernels)
				continue;
			begin(j, NULL, '{');
			put_int(j, "capture", (int64_t)i);
			put_text(j, "label", c->label);
			put_text(j, "kind", rfl_range_kind_names[r->kind]);
			put_text(j, "name", r->name);
			put_text(j, "block", r->block);
			put_text(j, "grid", r->grid);
			put_amounts(j, r->amount, r->launches);
			put_rules(j, r->amount);
			begin(j, "metrics", '[');
			for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics;
			     m++) {
				begin(j, NULL, '{');
				put_text(j, "name", m->name);
				put_text(j, "unit", m->unit);
				put_text(j, "rollup", rfl_rollup_names[m->rollup]);
				put_real(j, "value", m->value);
				put_int(j, "launches", m->launches);
				put_int(j, "pass", m->pass);
				put_text(j, "validity", rfl_validity_names[m->validity]);
				put_text(j, "reason", m->reason);
				end(j, '}');
			}
			end(j, ']');
			end(j, '}');
		}
	}
	end(j, ']');
}

void rfl_captures__json(const struct rfl_captures *captures, struct rfl_buf *out)
{
	struct json j = { .out = out, .depth = 1 };
	struct rfl_amounts_sum total;

	rfl_captures_total(captures, &total);
	rfl_buf_putc(out, '{');
	put_text(&j, "schema", "roofline.counters/1");
	begin(&j, "captures", '[');
	for (size_t i = 0; i < captures->n; i++) {
		const struct rfl_capture *c = captures->captures[i];

		begin(&j, NULL, '{');
		put_text(&j, "label", c->label);
		put_text(&j, "run_id", c->run_id);
		put_text(&j, "timestamp_utc", c->time_utc);
		put_text(&j, "source", c->source);
		put_text(&j, "path", c->path);
		put_text(&j, "device", c->device);
		put_text(&j, "chip", c->chip);
		put_text(&j, "formulas", c->family);
		put_int(&j, "steps", c->steps);
		put_int(&j, "passes", c->passes);
		put_int(&j, "rows_left_out", c->rows_left_out);
		put_int(&j, "unused_metrics", c->unused_metrics);
		put_text(&j, "total_of", rfl_range_kind_names[c->total_kind]);
		begin(&j, "coverage", '{');
		put_real(&j, "flops", rfl_capture_coverage(c, RFL_QUANTITY_FLOPS));
		put_real(&j, "dram_bytes", rfl_capture_coverage(c, RFL_QUANTITY_DRAM));
		end(&j, '}');
		begin(&j, "total", '{');
		put_amounts(&j, c->total, rfl_capture_launches_of_total(c));
		put_rules(&j, c->total);
		end(&j, '}');
		begin(&j, "refused", '[');
		for (size_t k = 0; k < c->nrefusals; k++) {
			begin(&j, NULL, '{');
			put_text(&j, "set", c->refusals[k].set);
			put_text(&j, "reason", c->refusals[k].reason);
			end(&j, '}');
		}
		end(&j, ']');
		begin(&j, "notes", '[');
		for (size_t k = 0; k < c->nnotes; k++)
			put_text(&j, NULL, c->notes[k]);
		end(&j, ']');
		end(&j, '}');
	}
	end(&j, ']');
	put_ranges(&j, captures, "kernels", true);
	put_ranges(&j, captures, "ranges", false);
	begin(&j, "total", '{');
	put_amounts(&j, total.amount, total.launches);
	end(&j, '}');
	rfl_buf_puts(out, "\n}\n");
}
