/* Results of other tools, as a file of any content: what is imported is a valid environment. */
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "peaks/import.h"
#include "peaks/peaks.h"

/* With its environment in a peaks file, the same text is read as any other. */
static void check_env(json_t *take_env)
{
	json_t *file = json_pack("{s:s, s:{s:o}}", "schema_version", "1.0", "environments", "lab",
				 take_env);
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	rfl_json_write(&text, file);
	FUZZ_ASSERT(rfl_peaks_loads(rfl_buf_str(&text), text.len, "again", &p, &err) == RFL_OK);
	rfl_buf_reset(&text);
	json_decref(rfl_peaks_export_ert(&p->envs[0], &text));
	rfl_buf_fini(&text);
	rfl_peaks_free(p);
	json_decref(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rfl_peaks_import_options options[] = {
		{ .from = NULL }, { .level = "DRAM", .select = "0", .kind = "gpu" }
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(options); i++) {
		const char *path = fuzz_memory(data, size);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_peaks_import in;
		json_t *env = NULL;
		enum rfl_rc rc;

		rfl_peaks_import_init(&in, &options[i]);
		rc = rfl_peaks_import_file(&in, path, &err);
		if (rc == RFL_OK)
			rc = rfl_peaks_import_env(&in, &env, &err);
		fuzz_check(rc, env, &err, path);
		rfl_peaks_import_fini(&in);
		if (env)
			check_env(env);
	}
	return 0;
}
