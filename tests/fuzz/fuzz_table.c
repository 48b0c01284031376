/* Another program's table with intensities and rates: its points are judged, or it is refused. */
#include "fuzz.h"
#include "roofline/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rfl_peak_compute compute[] = {
		{ .key = "fp32.vector", .peak = { .status = RFL_PEAK_USER, .value = 420e9 } },
		{ .key = "fp64.vector", .peak = { .status = RFL_PEAK_USER, .value = 210e9 } }
	};
	static struct rfl_peak_level memory[] = { { .level = "DRAM",
						    .scope = "node",
						    .peak = { .status = RFL_PEAK_USER,
							      .value = 92e9 } } };
	static struct rfl_peaks_env lab = {
		.name = "lab", .ncompute = 2, .compute = compute, .nlevels = 1, .levels = memory
	};
	const struct rfl_peaks peaks = { .path = "peaks.json", .nenvs = 1, .envs = &lab };
	const char *path = fuzz_file(data, size);
	struct rfl_ledger *table = NULL;
	struct rfl_points *points = NULL;
	struct rfl_buf notes = { .len = 0 };
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_foreign_numbers(path, NULL, &table, &notes, &err);

	fuzz_check(rc, rc ? NULL : path, &err, path); /* without such columns, there is no table */
	if (table) {
		rc = rfl_points_of_table(table, path, &peaks, "lab", &points, &err);
		if (rc != RFL_EMISSING) /* its message has several lines */
			fuzz_check(rc, points, &err, path);
	}
	for (size_t i = 0; points && i < points->n; i++)
		FUZZ_ASSERT(!points->points[i].verdict || points->points[i].attainable_gflops > 0);
	rfl_points_free(points);
	rfl_ledger_free(table);
	rfl_buf_fini(&notes);
	return 0;
}
