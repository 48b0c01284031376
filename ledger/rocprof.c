/* rocprof.c - converts what 'rocprof-compute analyze' prints of its roofline (tables 4.1 and 4.2 of
 * each kernel) to a table. The peaks in 4.1 are for peaks/import_rocprof.c. */
#include "ledger/file/steps.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define BYTES_MAX ((size_t)64 << 20)

struct kernel {
	struct rfl_span name, precision;
	double most; /* GFLOP/s, in that precision */
	struct rfl_span ai, ai_l2, ai_l1, gflops;
};

static const struct {
	const char *begins;
	size_t member;
} metrics[] = {
	{ "AI HBM", offsetof(struct kernel, ai) },
	{ "AI L2", offsetof(struct kernel, ai_l2) },
	{ "AI L1", offsetof(struct kernel, ai_l1) },
	{ "Performance", offsetof(struct kernel, gflops) },
};

static void put(struct rfl_buf *csv, const struct kernel *k)
{
	char precision[8] = "";
	double ai;

	if (!k->gflops.len || !rfl_span_number(k->ai, &ai) || !(ai > 0))
		return; /* not in the roofline: it has no FLOPs */
	for (size_t i = 0; i < k->precision.len && i + 1 < sizeof(precision); i++)
		precision[i] = (char)tolower((unsigned char)k->precision.at[i]);
	rfl_buf_puts(csv, "\"");
	for (size_t i = 0; i < k->name.len; i++)
		rfl_buf_printf(csv, k->name.at[i] == '"' ? "\"%c" : "%c", k->name.at[i]);
	rfl_buf_printf(csv, "\",%s%s", precision[0] == 'f' ? "fp" : "",
		       precision + (precision[0] == 'f'));
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics); i++) {
		const struct rfl_span *value = (const void *)((const char *)k + metrics[i].member);

		rfl_buf_printf(csv, ",%.*s", (int)value->len, value->at);
	}
	rfl_buf_putc(csv, '\n');
}

/* A row of 4.1 or 4.2: Metric_ID, Metric, Value, Unit, ... */
static void take_row(struct kernel *k, struct rfl_span row)
{
	struct rfl_span id, name, value;
	double rate;

	if (!rfl_span_next_cell(&row, &id) || !rfl_span_next_cell(&row, &name) ||
	    !rfl_span_next_cell(&row, &value))
		return;
	if (rfl_span_starts(id, "4.1.") && rfl_span_has(name, " FLOPs (") &&
	    rfl_span_number(value, &rate) && !(rate <= k->most)) {
		k->most = rate;
		k->precision = rfl_span_from(name, rfl_span_find(name, "(") + 1);
		k->precision.len = rfl_span_find(k->precision, ")");
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(metrics) && rfl_span_starts(id, "4.2."); i++)
		if (rfl_span_starts(name, metrics[i].begins))
			*(struct rfl_span *)(void *)((char *)k + metrics[i].member) = value;
}

enum rfl_rc rfl_foreign__rocprof(const char *path, struct rfl_buf *csv, struct rfl_err *err)
{
	struct kernel k = { .most = NAN };
	RFL_AUTO(buf) text = { .max = BYTES_MAX };
	struct rfl_span rest, line;

	(void)err;
	if (rfl_file_read(path, &text, NULL) != RFL_OK) /* too large, or the reader reports it */
		return RFL_OK;
	rest = (struct rfl_span){ rfl_buf_str(&text), text.len };
	if (!rfl_span_has(rest, "Roofline AI Plot Points"))
		return RFL_OK; /* another format */
	rfl_buf_puts(csv, "model,precision,ai,ai_l2,ai_l1,attained_gflops\n");
	while (rfl_span_next_line(&rest, &line)) {
		const size_t at = rfl_span_find(line, "Kernel ");
		const struct rfl_span name = rfl_span_from(line, rfl_span_find(line, ": ") + 2);

		if (at < line.len && name.len > 1 && line.at[line.len - 1] == ')') {
			put(csv, &k);
			k = (struct kernel){ .most = NAN, .name = name };
			while (k.name.len > 1 && k.name.at[k.name.len - 1] != '(')
				k.name.len--;
			k.name = rfl_span_trim((struct rfl_span){ k.name.at, k.name.len - 1 });
		} else {
			take_row(&k, line);
		}
	}
	put(csv, &k);
	return RFL_OK;
}
