/* metrics.csv: what loads can be merged into points, or is refused with a message that names it. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "roofline/merge.h"

/* Ceilings for two environments; a third is missing. */
static struct rfl_peak_compute compute[] = { { .key = "fp32.vector" } };
static struct rfl_peak_level memory[] = { { .level = "DRAM", .scope = "node" } };
static struct rfl_peaks_env envs[] = {
	{ .name = "lab_cpu", .ncompute = 1, .compute = compute, .nlevels = 1, .levels = memory },
	{ .name = "cpu", .ncompute = 1, .compute = compute, .nlevels = 1, .levels = memory },
};

static void check_points(const struct rfl_points *pts)
{
	for (size_t i = 0; i < pts->n; i++) {
		const struct rfl_point *p = &pts->points[i];

		FUZZ_ASSERT(p->env && p->model && p->bound && p->verdict);
		FUZZ_ASSERT(p->step_s > 0 && p->ai > 0 && p->attained_gflops >= 0);
		FUZZ_ASSERT(p->attainable_gflops > 0 && p->attainable_gflops <= p->peak_gflops);
	}
}

static void merge(const struct rfl_runs *runs, bool skip_missing)
{
	const struct rfl_peaks peaks = { .path = "peaks.json", .nenvs = 2, .envs = envs };
	const struct rfl_merge_inputs in = { .runs = runs, .peaks = &peaks };
	const struct rfl_merge_options options = { .skip_missing = skip_missing };
	struct rfl_merge_report report;
	struct rfl_points *pts = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_merge(&in, &options, &pts, &report, &err);

	FUZZ_ASSERT((rc == RFL_OK) == (pts != NULL));
	FUZZ_ASSERT((rc == RFL_OK) == (err.msg[0] == '\0'));
	FUZZ_ASSERT(!skip_missing || rc != RFL_EMISSING);
	if (pts)
		check_points(pts);
	rfl_buf_fini(&report.notes);
	rfl_points_free(pts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_ledger *ledger = NULL;
	struct rfl_runs *runs = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = fuzz_file(data, size);
	enum rfl_rc rc = rfl_ledger_load(path, &ledger, &err);

	compute[0].peak = (struct rfl_peak){ .status = RFL_PEAK_USER, .value = 420e9 };
	memory[0].peak = (struct rfl_peak){ .status = RFL_PEAK_USER, .value = 92e9 };
	fuzz_check(rc, ledger, &err, path);
	rfl_ledger_free(ledger);
	rfl_err_clear(&err);
	rc = rfl_runs_load(&path, 1, NULL, &rfl_ledger_metrics[0], RFL_ROWS_TIMES, &runs, &err);
	fuzz_check(rc, runs, &err, path);
	if (rc == RFL_OK && fuzz_due(data, size, 0)) /* it counts networks, which takes longer */
		merge(runs, false);
	if (rc == RFL_OK && fuzz_due(data, size, 1))
		merge(runs, true);
	rfl_runs_free(runs);
	return 0;
}
