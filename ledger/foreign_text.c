/* foreign_text.c - converts what other programs write about points, but not as a table, to a table:
 * the data file of NERSC's roofline scripts (github.com/cyanguwa/nersc-roofline, Plotting/), which
 * has a line per column, and what 'rocprof-compute analyze' prints of the roofline of each kernel,
 * in its tables 4.1 and 4.2. Their roofs are for peaks/import_nersc.c and peaks/import_rocprof.c.
 */
#include "ledger/file/steps.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/csv.h"
#include "base/log.h"
#include "base/text.h"

static void put_field(struct rfl_buf *csv, struct rfl_span value)
{
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_buf_append(&text, value.at, value.len);
	rfl_csv_write_field(csv, rfl_buf_str(&text));
}

/* --- NERSC --- */

static const struct {
	const char *theirs, *ours;
} columns[] = { { "AI_HBM", "ai" },   { "AI_DRAM", "ai" },  { "AI", "ai" },
		{ "AI_L2", "ai_l2" }, { "AI_L1", "ai_l1" }, { "FLOPS", "attained_gflops" },
		{ "labels", "model" } };

static enum rfl_rc convert_nersc(struct rfl_span text, const char *path, struct rfl_buf *csv,
				 struct rfl_err *err)
{
	struct rfl_span lines[RFL_ARRAY_LEN(columns)] = { { NULL, 0 } }, line, word, value;
	const size_t labels = RFL_ARRAY_LEN(columns) - 1;
	size_t found = 0, got;

	while (rfl_span_next_line(&text, &line))
		for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++) {
			struct rfl_span values = line;

			if (rfl_span_next_word(&values, &word) &&
			    rfl_span_is(word, columns[i].theirs))
				lines[i] = values;
		}
	if (!lines[labels - 1].at || !(lines[0].at || lines[1].at || lines[2].at))
		return RFL_OK; /* another format */
	for (size_t i = 0; i <= labels; i++)
		if (lines[i].at)
			rfl_buf_printf(csv, "%s%s", found++ ? "," : "", columns[i].ours);
	rfl_buf_putc(csv, '\n');
	do {
		got = 0;
		for (size_t i = 0; i <= labels; i++) {
			if (!lines[i].at || !(i == labels ? rfl_span_next_quoted
							  : rfl_span_next_word)(&lines[i], &value))
				continue;
			rfl_buf_puts(csv, got++ ? "," : "");
			put_field(csv, value);
		}
		rfl_buf_puts(csv, got ? "\n" : "");
	} while (got == found);
	return got == 0
		       ? RFL_OK
		       : rfl_fail(err, RFL_EFORMAT, 0,
				  "%s: its lines have different numbers of values; give each point "
				  "a value on every line",
				  path);
}

/* --- rocprof-compute --- */

struct kernel {
	struct rfl_span name, precision;
	double most; /* FLOP/s, in that precision */
	struct rfl_span ai, ai_l2, ai_l1, gflops;
};

static const struct {
	const char *begins, *unit;
	size_t member;
} metrics[] = {
	{ "AI HBM", "Flops/byte", offsetof(struct kernel, ai) },
	{ "AI L2", "Flops/byte", offsetof(struct kernel, ai_l2) },
	{ "AI L1", "Flops/byte", offsetof(struct kernel, ai_l1) },
	{ "Performance", "Gflop/s", offsetof(struct kernel, gflops) },
};

/* @param without  counts kernels without FLOPs, which no roofline shows */
static void put_kernel(struct rfl_buf *csv, const struct kernel *k, size_t *without)
{
	char precision[8] = "";
	double ai;

	if (!rfl_span_number(k->ai, &ai) || !(ai > 0)) {
		*without += k->name.len > 0;
		return;
	}
	for (size_t i = 0; i < k->precision.len && i + 1 < sizeof(precision) &&
			   isalnum((unsigned char)k->precision.at[i]);
	     i++)
		precision[i] = (char)tolower((unsigned char)k->precision.at[i]);
	put_field(csv, k->name); /* "F64" is fp64, "BF16" is bf16 */
	rfl_buf_printf(csv, ",%s%s", precision[0] == 'f' ? "fp" : "",
		       precision + (precision[0] == 'f'));
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics); i++) {
		const struct rfl_span *value = (const void *)((const char *)k + metrics[i].member);

		rfl_buf_putc(csv, ',');
		put_field(csv, *value);
	}
	rfl_buf_putc(csv, '\n');
}

/* Take a row of 4.1 or 4.2: Metric_ID, Metric, Value, Unit, ... */
static enum rfl_rc take_row(struct kernel *k, struct rfl_span row, const char *path,
			    struct rfl_err *err)
{
	struct rfl_span id, name, value, unit;
	double rate;

	if (!rfl_span_next_cell(&row, &id) || !rfl_span_next_cell(&row, &name) ||
	    !rfl_span_next_cell(&row, &value) || !rfl_span_next_cell(&row, &unit))
		return RFL_OK;
	if (rfl_span_starts(id, "4.1.") && rfl_span_has(name, " FLOPs (") &&
	    rfl_span_number(value, &rate) && !(rate <= k->most)) {
		k->most = rate;
		k->precision = rfl_span_from(name, rfl_span_find(name, "(") + 1);
		k->precision.len = rfl_span_find(k->precision, ")");
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics) && rfl_span_starts(id, "4.2."); i++) {
		if (!rfl_span_starts(name, metrics[i].begins))
			continue;
		if (unit.len != strlen(metrics[i].unit) ||
		    strncasecmp(unit.at, metrics[i].unit, unit.len) != 0)
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: %.*s: the unit is %.*s, not %s",
					path, RFL_SPAN_ARG(name), RFL_SPAN_ARG(unit),
					metrics[i].unit);
		*(struct rfl_span *)(void *)((char *)k + metrics[i].member) = value;
	}
	return RFL_OK;
}

static enum rfl_rc convert_rocprof(struct rfl_span text, const char *path, struct rfl_buf *csv,
				   struct rfl_err *err)
{
	struct kernel k = { .most = NAN };
	struct rfl_span line;
	size_t without = 0;
	enum rfl_rc rc = RFL_OK;

	if (!rfl_span_has(text, "Roofline AI Plot Points"))
		return RFL_OK; /* another format */
	rfl_buf_puts(csv, "model,precision,ai,ai_l2,ai_l1,attained_gflops\n");
	while (rc == RFL_OK && rfl_span_next_line(&text, &line)) {
		struct rfl_span name = rfl_span_from(line, rfl_span_find(line, ": ") + 2);

		/* "Kernel 0: name (12.5%)" */
		if (rfl_span_has(line, "Kernel ") && name.len > 1 && rfl_span_ends(name, ")")) {
			put_kernel(csv, &k, &without);
			while (name.len > 1 && name.at[name.len - 1] != '(')
				name.len--;
			name.len--;
			k = (struct kernel){ .most = NAN, .name = rfl_span_trim(name) };
		} else {
			rc = take_row(&k, line, path, err);
		}
	}
	put_kernel(csv, &k, &without);
	if (without)
		rfl_log(RFL_LOG_WARN, "%s: left out %zu kernel%s without FLOPs", path, without,
			without == 1 ? "" : "s");
	return rc;
}

enum rfl_rc rfl_foreign__text(struct rfl_span text, const char *path, struct rfl_buf *csv,
			      struct rfl_err *err)
{
	enum rfl_rc rc = convert_nersc(text, path, csv, err);

	if (rc == RFL_OK && csv->len == 0)
		rc = convert_rocprof(text, path, csv, err);
	return rc ? rc : rfl_buf_check(csv, path, err);
}
