/*
 * captures_explain.c - lists unknown quantities by reason, and the rule of each figure with its
 * inputs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "report/captures_impl.h"

static const struct rfl_metric *find_metric(const struct rfl_range *r, const char *name, size_t len)
{
	for (size_t i = 0; i < r->nmetrics; i++)
		if (strncmp(r->metrics[i].name, name, len) == 0 && r->metrics[i].name[len] == '\0')
			return &r->metrics[i];
	return NULL;
}

#define NOT_COUNTED "not counted: "

/* The length of "not counted: ncu --metrics a,b" without the list; 0 for any other reason. */
static size_t command_length(const char *reason)
{
	const char *list = strrchr(reason, ' ');
	size_t word = strlen(NOT_COUNTED);

	if (strncmp(reason, NOT_COUNTED, word) != 0 || !list || (size_t)(list - reason) <= word ||
	    list[-1] == ',')
		return 0;
	return (size_t)(list - reason);
}

/* Return true for quantities that are listed if missing: work and traffic. */
static bool is_missed(int q)
{
	return q != RFL_QUANTITY_FLOPS_MIXED && q != RFL_QUANTITY_L2_FILL &&
	       q != RFL_QUANTITY_CACHE_MISSES && q != RFL_QUANTITY_TASK_CLOCK;
}

/* Return a reason without the metric that precedes it. */
static const char *cause_of(const struct rfl_capture *c, const char *reason)
{
	size_t len = strcspn(reason, " ");

	if (len < 2 || reason[len] == '\0' || reason[len - 1] != ':')
		return reason;
	for (size_t i = 0; i < c->nranges; i++)
		if (find_metric(&c->ranges[i], reason, len - 1))
			return reason + len + 1;
	return reason;
}

static bool is_like(const struct rfl_capture *c, const char *reason, const char *other, size_t len)
{
	if (!other)
		return false;
	return len > 0 ? command_length(other) == len && memcmp(other, reason, len) == 0
		       : strcmp(cause_of(c, other), cause_of(c, reason)) == 0;
}

#define LIST_WIDTH 96

/* Write how to count the missing metrics. */
static void put_remedy(const struct rfl_capture *c, int first, size_t len, struct rfl_buf *out)
{
	const char *reason = c->total[first].reason, *sep = " ";
	const char *command = reason + strlen(NOT_COUNTED);
	const size_t n = len - strlen(NOT_COUNTED);
	bool is_any = !c->chip || !c->family || strcmp(c->family, "any") == 0;

	if (n == strlen("ncu --metrics") && strncmp(command, "ncu --metrics", n) == 0) {
		rfl_buf_printf(out,
			       ": not counted; run 'roofline counters list --chip %s --ncu' to "
			       "list the metrics for ncu\n",
			       is_any ? "CHIP" : c->chip);
		return;
	}
	if (c->family && strcmp(c->family, "cpu") == 0) {
		rfl_buf_puts(out, ": not counted; see docs/reference/events.md for the events of "
				  "each CPU for 'perf stat -e'\n");
		return;
	}
	rfl_buf_printf(out, ": not counted; to count: %.*s", (int)n, command);
	for (int q = first; q < RFL_QUANTITY_COUNT; q++) {
		if (!isnan(c->total[q].value) || !is_like(c, reason, c->total[q].reason, len))
			continue;
		rfl_buf_printf(out, "%s%s", sep, c->total[q].reason + len + 1);
		sep = ",";
	}
	rfl_buf_putc(out, '\n');
}

void rfl_captures__unknown(const struct rfl_capture *c, struct rfl_buf *out)
{
	bool said[RFL_QUANTITY_COUNT] = { false };

	for (int first = 0; first < RFL_QUANTITY_COUNT; first++) {
		const char *reason = c->total[first].reason;
		size_t len = reason ? command_length(reason) : 0, line = out->len, at;

		if (!isnan(c->total[first].value) || !reason || !is_missed(first) || said[first])
			continue;
		rfl_buf_puts(out, "Unknown: ");
		for (int q = first; q < RFL_QUANTITY_COUNT; q++) {
			const char *name = rfl_quantity_info((enum rfl_quantity)q)->name;

			if (!isnan(c->total[q].value) || !is_missed(q) ||
			    !is_like(c, reason, c->total[q].reason, len))
				continue;
			said[q] = true;
			if (q > first && out->len - line + strlen(name) + 3 > LIST_WIDTH) {
				rfl_buf_puts(out, ",\n"); /* continue on an indented line */
				line = out->len;
				rfl_buf_puts(out, "  ");
			} else if (q > first) {
				rfl_buf_puts(out, ", ");
			}
			rfl_buf_puts(out, name);
		}
		if (len > 0) {
			put_remedy(c, first, len, out);
			continue;
		}
		at = out->len;
		rfl_buf_printf(out, ": %s", cause_of(c, reason));
		rfl_captures__end_line(out, at);
	}
}

/* Return true if a rule contains this name. */
static bool is_named(const char *rule, const char *name)
{
	const size_t len = strlen(name);

	for (const char *at = strstr(rule, name); at; at = strstr(at + 1, name))
		if ((at == rule || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
			return true;
	return false;
}

/* @param how  rollup over several launches; NULL: sum */
static void put_input(const char *name, double value, const char *unit, const char *how,
		      struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];
	size_t at = out->len;

	rfl_buf_printf(out, "      %s = %s%s%s", name, rfl_num_exact(value, number),
		       unit[0] ? " " : "", unit);
	if (how)
		rfl_buf_printf(out, " (%s over launches)", how);
	rfl_captures__end_line(out, at);
}

/* Write the rule of a quantity with its metrics and quantities, or why it is unknown. */
static void explain_amount(const struct rfl_range *r, enum rfl_quantity quantity,
			   struct rfl_buf *out)
{
	const struct rfl_quantity_info *info = rfl_quantity_info(quantity);
	const struct rfl_amount *a = &r->amount[quantity];
	char number[RFL_NUM_MAX];
	size_t at = out->len;

	if (isnan(a->value)) {
		rfl_buf_printf(out, "    %s: %s", info->name,
			       a->reason ? a->reason : "not counted");
		rfl_captures__end_line(out, at);
		return;
	}
	rfl_buf_printf(out, "    %s = %s %s", info->name, rfl_num_exact(a->value, number),
		       info->unit);
	if (a->rule)
		rfl_buf_printf(out, " = %s", a->rule);
	if (a->validity != RFL_VALID || a->reason)
		rfl_buf_printf(out, " (%s%s%s)", rfl_validity_names[a->validity],
			       a->reason ? ": " : "", a->reason ? a->reason : "");
	rfl_captures__end_line(out, at);
	if (!a->rule)
		return;
	for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics; m++)
		if (is_named(a->rule, m->name) && find_metric(r, m->name, strlen(m->name)) == m)
			put_input(m->name, m->value, m->unit,
				  m->rollup != RFL_ROLLUP_SUM && m->launches > 1
					  ? rfl_rollup_names[m->rollup]
					  : NULL,
				  out);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		info = rfl_quantity_info((enum rfl_quantity)q);
		if (is_named(a->rule, info->name))
			put_input(info->name, r->amount[q].value, info->unit, NULL, out);
	}
}

static int longest_first(const void *a, const void *b)
{
	const struct rfl_range *x = *(const struct rfl_range *const *)a;
	const struct rfl_range *y = *(const struct rfl_range *const *)b;
	double s = x->amount[RFL_QUANTITY_TIME].value, t = y->amount[RFL_QUANTITY_TIME].value;

	s = isnan(s) ? -1 : s;
	t = isnan(t) ? -1 : t;
	if (s != t)
		return s > t ? -1 : 1;
	return x < y ? -1 : x > y; /* both are elements of one array */
}

void rfl_captures__explain(const struct rfl_capture *c, const struct rfl_capture_view *view,
			   struct rfl_buf *out)
{
	const struct rfl_range **ranges = rfl_alloc_array(c->nranges, sizeof(*ranges));
	size_t n = view->most > 0 && view->most < c->nranges ? view->most : c->nranges, at;
	char number[RFL_NUM_MAX];

	for (size_t i = 0; i < c->nranges; i++)
		ranges[i] = &c->ranges[i];
	if (c->nranges > 0)
		qsort(ranges, c->nranges, sizeof(const struct rfl_range *), longest_first);
	rfl_buf_puts(out, "\nRules and inputs of each figure:\n");
	for (size_t i = 0; i < n; i++) {
		const struct rfl_range *r = ranges[i];

		at = out->len;
		rfl_buf_printf(out, "  %s ", rfl_range_kind_names[r->kind]);
		rfl_buf_puts(out, r->name);
		if (r->block)
			rfl_buf_printf(out, " block %s", r->block);
		if (r->grid)
			rfl_buf_printf(out, " grid %s", r->grid);
		rfl_buf_printf(out, ", launches: %s", rfl_num_grouped(r->launches, number));
		rfl_captures__end_line(out, at);
		for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
			explain_amount(r, (enum rfl_quantity)q, out);
	}
	free(ranges);
}
