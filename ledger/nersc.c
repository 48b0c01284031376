/* nersc.c - converts a data file of NERSC's roofline scripts (github.com/cyanguwa/nersc-roofline,
 * Plotting/), which has a line per column, to a table. Its roofs are for peaks/import_nersc.c. */
#include "ledger/file/steps.h"

#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define BYTES_MAX ((size_t)1 << 20)

static const struct {
	const char *theirs, *ours;
} columns[] = { { "AI_HBM", "ai" },   { "AI_DRAM", "ai" },  { "AI", "ai" },
		{ "AI_L2", "ai_l2" }, { "AI_L1", "ai_l1" }, { "FLOPS", "attained_gflops" },
		{ "labels", "model" } };

enum rfl_rc rfl_foreign__nersc(const char *path, struct rfl_buf *csv, struct rfl_err *err)
{
	struct rfl_span lines[RFL_ARRAY_LEN(columns)] = { { NULL, 0 } }, rest, line, word;
	const size_t labels = RFL_ARRAY_LEN(columns) - 1;
	RFL_AUTO(buf) text = { .max = BYTES_MAX };
	size_t found = 0, got;

	if (rfl_file_read(path, &text, NULL) != RFL_OK) /* too large, or the reader reports it */
		return RFL_OK;
	rest = (struct rfl_span){ rfl_buf_str(&text), text.len };
	while (rfl_span_next_line(&rest, &line))
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
			struct rfl_span value;

			if (!lines[i].at || !(i == labels ? rfl_span_next_quoted
							  : rfl_span_next_word)(&lines[i], &value))
				continue;
			rfl_buf_puts(csv, got++ ? ",\"" : "\"");
			for (size_t k = 0; k < value.len; k++)
				rfl_buf_printf(csv, value.at[k] == '"' ? "\"%c" : "%c",
					       value.at[k]);
			rfl_buf_putc(csv, '"');
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
