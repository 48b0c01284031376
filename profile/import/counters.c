/* counters.c - imports roofline's own counters.csv (see capture.h). */
#include "profile/capture.h"
#include "profile/import/impl.h"

static enum rfl_rc read_file(struct rfl_import *import)
{
	const char *label = import->options->label;
	struct rfl_captures *to = import->to;
	size_t before = to->n;
	enum rfl_rc rc = rfl_counters_read(import->in, to, import->err);

	if (rc != RFL_OK)
		return rc;
	if (label && to->n - before > 1)
		rfl_import_warn(import,
				"--label is ignored: the file contains captures of several runs");
	else if (label && to->n > before)
		rfl_capture_identify(to, before, label, NULL, NULL);
	if (import->options->steps > 0)
		rfl_import_warn(import, "--steps is ignored: each capture contains its steps");
	return RFL_OK;
}

static int detect(struct rfl_span head)
{
	return rfl_span_starts(head, "schema_version,label,run_id,") ? 100 : 0;
}

const struct rfl_importer rfl_importer_counters = {
	.name = "counters",
	.summary = "counters.csv, as roofline writes it",
	.size = sizeof(struct rfl_import),
	.detect = detect,
	.read = read_file,
};
