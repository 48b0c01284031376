/*
 * counters.c - our own counters.csv (counters_csv.h), as a file among others.
 */
#include <string.h>

#include "base/buf.h"
#include "profile/capture/counters_csv.h"
#include "profile/import/impl.h"
#include "profile/import/span.h"

/* The loader takes a text: a pipe cannot be opened a second time by name. */
#define TEXT_MAX ((size_t)1 << 30)

static enum rfl_rc read_text(struct rfl_import *import, struct rfl_buf *text, struct rfl_err *err)
{
	struct rfl_span line;
	bool more;
	enum rfl_rc rc;

	while ((rc = rfl_input_line(import->in, &line, &more, err)) == RFL_OK && more) {
		rfl_buf_append(text, line.at, line.len);
		if (!rfl_input_torn(import->in))
			rfl_buf_putc(text, '\n');
	}
	return rc == RFL_OK ? rfl_buf_check(text, rfl_input_name(import->in), err) : rc;
}

static enum rfl_rc read_counters(struct rfl_import *import, struct rfl_captures *to,
				 struct rfl_err *err)
{
	const char *label = import->options->label;
	size_t before = to->n;
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, TEXT_MAX);
	rc = read_text(import, &text, err);
	if (rc == RFL_OK)
		rc = rfl_counters_load(rfl_input_name(import->in), rfl_buf_str(&text), text.len, to,
				       err);
	if (rc == RFL_OK && label && to->n - before > 1)
		rfl_import_warn(import, "--label is not used: the file has captures of several "
					"runs, which keep their labels");
	else if (rc == RFL_OK && label && to->n > before)
		rc = rfl_capture_identify(to, before, label, NULL, NULL, err);
	if (rc == RFL_OK && import->options->steps > 0)
		rfl_import_warn(import, "--steps is not used: the captures of this file keep what "
					"they say of their steps");
	rfl_buf_fini(&text);
	return rc;
}

static int detect(struct rfl_span head)
{
	return rfl_span_starts(head, "schema_version,label,run_id,") ? 100 : 0;
}

const struct rfl_importer rfl_importer_counters = {
	.name = "counters",
	.summary = "counters.csv of this program",
	.detect = detect,
	.read = read_counters,
};
