/* counters.c - imports roofline's own counters.csv (see capture.h). */
#include "base/buf.h"
#include "profile/capture.h"
#include "profile/import/impl.h"

/* The file is read into memory as a whole, since a pipe cannot be opened a second time by name. */
#define TEXT_MAX ((size_t)1 << 30)

struct counters {
	struct rfl_import i;
	struct rfl_buf text;
};

static void begin(struct rfl_import *import, struct rfl_span head)
{
	(void)head;
	rfl_buf_init(&((struct counters *)import)->text, TEXT_MAX);
}

static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	struct rfl_buf *text = &((struct counters *)import)->text;

	rfl_buf_append(text, line.at, line.len);
	if (!import->in->torn)
		rfl_buf_putc(text, '\n');
	return RFL_OK;
}

static enum rfl_rc end(struct rfl_import *import)
{
	const struct rfl_buf *text = &((struct counters *)import)->text;
	const char *label = import->options->label, *name = import->in->name;
	struct rfl_captures *to = import->to;
	size_t before = to->n;
	enum rfl_rc rc;

	if ((rc = rfl_buf_check(text, name, import->err)) != RFL_OK ||
	    (rc = rfl_counters_load(name, rfl_buf_str(text), text->len, to, import->err)) != RFL_OK)
		return rc;
	if (label && to->n - before > 1)
		rfl_import_warn(import,
				"--label is ignored: the file contains captures of several runs");
	else if (label && to->n > before)
		rfl_capture_identify(to, before, label, NULL, NULL);
	if (rc == RFL_OK && import->options->steps > 0)
		rfl_import_warn(import, "--steps is ignored: each capture contains its steps");
	return rc;
}

static void fini(struct rfl_import *import)
{
	rfl_buf_fini(&((struct counters *)import)->text);
}

static int detect(struct rfl_span head)
{
	return rfl_span_starts(head, "schema_version,label,run_id,") ? 100 : 0;
}

const struct rfl_importer rfl_importer_counters = {
	.name = "counters",
	.summary = "counters.csv, as roofline writes it",
	.finished = true,
	.size = sizeof(struct counters),
	.detect = detect,
	.begin = begin,
	.line = read_line,
	.end = end,
	.fini = fini,
};
