/* import_nersc.c - the roofs in a data file of NERSC's roofline scripts (github.com/cyanguwa/
 * nersc-roofline, Plotting/). Its points are for ledger/foreign_text.c. */
#include <stdio.h>
#include <string.h>

#include "peaks/import.h"

/* The file names no precision: keys that begin with "." follow the precision of the options. */
static const struct rfl_peaks_name names[] = {
	{ "L1", "L1" },
	{ "L2", "L2" },
	{ "L3", "L3" },
	{ "HBM", "HBM" },
	{ "DRAM", "DRAM" },
	{ "FMA", ".vector" },
	{ "No-FMA", ".vector.nofma" },
	{ "Tensor*", ".matrix" },
	{ NULL, NULL },
};

static bool detect(struct rfl_span head)
{
	return rfl_span_has(head, "memroofs") && rfl_span_has(head, "mem_roof_names");
}

/* What follows a word at the beginning of a line. */
static struct rfl_span find_line(struct rfl_span text, const char *title)
{
	struct rfl_span line, word;

	while (rfl_span_next_line(&text, &line))
		if (rfl_span_next_word(&line, &word) && rfl_span_is(word, title))
			return line;
	return (struct rfl_span){ "", 0 };
}

static enum rfl_rc put(struct rfl_peaks_import *in, const char *name, double value)
{
	const char *key = rfl_peaks_import_key(in, name), *precision = in->options->precision;
	char whole[48];

	if (key && key[0] == '.' && !precision)
		return rfl_fail(in->err, RFL_EINVAL, 0,
				"%s: %s: the file does not name the precision of its roofs; add "
				"--precision, such as --precision fp64",
				in->name, name);
	if (key && key[0] == '.') {
		(void)snprintf(whole, sizeof(whole), "%s%s", precision, key);
		key = whole;
	}
	return rfl_peaks_import_put(in, key, name, value, 0);
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	static const char *const lines[][2] = { { "memroofs", "mem_roof_names" },
						{ "comproofs", "comp_roof_names" } };
	enum rfl_rc rc = RFL_OK;

	in->gpu = rfl_span_has(find_line(in->text, lines[0][1]), "HBM");
	for (size_t i = 0; i < RFL_ARRAY_LEN(lines); i++) {
		struct rfl_span values = find_line(in->text, lines[i][0]), value,
				titles = find_line(in->text, lines[i][1]), title;
		char name[64];
		double rate;

		while (rc == RFL_OK && rfl_span_next_word(&values, &value)) {
			if (!rfl_span_number(value, &rate) ||
			    !rfl_span_next_quoted(&titles, &title))
				return rfl_peaks_import_refuse(
					in, "%s: '%.*s': must be a number with a name in %s",
					lines[i][0], RFL_SPAN_ARG(value), lines[i][1]);
			rc = put(in, rfl_span_copy(title, name, sizeof(name)), rate);
		}
	}
	return rc;
}

const struct rfl_peaks_format rfl_peaks_format_nersc = {
	.name = "nersc",
	.tool = "NERSC's roofline scripts",
	.detect = detect,
	.read = read_file,
	.names = names,
};
