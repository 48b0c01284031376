/*
 * import_rig.h - imports of files and texts with what was warned of kept as lines.
 */
#ifndef RFL_TESTS_IMPORT_RIG_H
#define RFL_TESTS_IMPORT_RIG_H

#include <string.h>

#include "base/buf.h"
#include "profile/import/importer.h"
#include "tests/unit/rfl_test.h"

struct import_rig {
	struct rfl_captures captures;
	struct rfl_err err;
	struct rfl_buf warnings; /* a line each */
	size_t nwarnings;
};

static inline void import_rig_warn(const char *line, void *ctx)
{
	struct import_rig *rig = ctx;

	rfl_buf_printf(&rig->warnings, "%s\n", line);
	rig->nwarnings++;
}

static inline void import_rig_init(struct import_rig *rig)
{
	rfl_captures_init(&rig->captures);
	rfl_err_clear(&rig->err);
	rfl_buf_init(&rig->warnings, 0);
	rig->nwarnings = 0;
}

static inline void import_rig_fini(struct import_rig *rig)
{
	rfl_captures_fini(&rig->captures);
	rfl_buf_fini(&rig->warnings);
}

/** Empty it and read a text. @param options  NULL: none; warnings come to the rig */
static inline enum rfl_rc import_rig_text(struct import_rig *rig, const char *text, size_t len,
					  const struct rfl_import_options *options)
{
	struct rfl_import_options o = options ? *options : (struct rfl_import_options){ 0 };

	import_rig_fini(rig);
	import_rig_init(rig);
	o.warn = import_rig_warn;
	o.ctx = rig;
	return rfl_import_text(text, len, "f.csv", &o, &rig->captures, &rig->err);
}

static inline enum rfl_rc import_rig_file(struct import_rig *rig, const char *path,
					  const struct rfl_import_options *options)
{
	struct rfl_import_options o = options ? *options : (struct rfl_import_options){ 0 };

	import_rig_fini(rig);
	import_rig_init(rig);
	o.warn = import_rig_warn;
	o.ctx = rig;
	return rfl_import_file(path, &o, &rig->captures, &rig->err);
}

/** Whether a note of a capture has these words. */
static inline bool import_rig_notes(const struct rfl_capture *c, const char *words)
{
	for (size_t i = 0; i < c->nnotes; i++)
		if (strstr(c->notes[i], words))
			return true;
	return false;
}

#endif
