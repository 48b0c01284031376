/* import_rocprof.c - the peaks of rocprof-compute (Omniperf before): roofline.csv, one row per GPU,
 * and what 'rocprof-compute analyze' prints, in table 4.1 of each kernel. */
#include "base/csv.h"
#include "base/num.h"
#include "peaks/import.h"

/* MFMA instructions accumulate in FP32 (I8 in INT32). The accumulator of WMMA is not in the file.
 */
static const struct rfl_peaks_name names[] = {
	{ "HBMBw", "HBM" },
	{ "L2Bw", "L2" },
	{ "L1Bw", "L1" },
	{ "LDSBw", "shared" },
	{ "FP16Flops", "fp16.vector" },
	{ "FP32Flops", "fp32.vector" },
	{ "FP64Flops", "fp64.vector" },
	{ "BF16Flops", "bf16.vector" },
	{ "I8Ops", "int8.vector" },
	{ "MFMAF64Flops", "fp64.matrix" },
	{ "MFMAF32Flops", "fp32.matrix" },
	{ "MFMAF16Flops", "fp16.matrix" },
	{ "MFMABF16Flops", "bf16.matrix" },
	{ "MFMAF8Flops", "fp8.matrix" },
	{ "MFMAI8Ops", "int8.matrix" },
	{ "HBM Bandwidth", "HBM" },
	{ "L2 Cache Bandwidth", "L2" },
	{ "L1 Cache Bandwidth", "L1" },
	{ "LDS Bandwidth", "shared" },
	{ "VALU FLOPs (F16)", "fp16.vector" },
	{ "VALU FLOPs (F32)", "fp32.vector" },
	{ "VALU FLOPs (F64)", "fp64.vector" },
	{ "MFMA FLOPs (F8)", "fp8.matrix" },
	{ "MFMA FLOPs (BF16)", "bf16.matrix" },
	{ "MFMA FLOPs (F16)", "fp16.matrix" },
	{ "MFMA FLOPs (F32)", "fp32.matrix" },
	{ "MFMA FLOPs (F64)", "fp64.matrix" },
	{ "MFMA IOPs (Int8)", "int8.matrix" },
	{ NULL, NULL },
};

static bool is_analysis(struct rfl_span text)
{
	return rfl_span_has(text, "Roofline Rate Metrics") && rfl_span_has(text, "(Empirical)");
}

static bool detect(struct rfl_span head)
{
	struct rfl_span line;

	if (is_analysis(head))
		return true;
	return rfl_span_next_line(&head, &line) && rfl_span_starts(line, "device,") &&
	       rfl_span_has(line, "Bw") && rfl_span_has(line, "Flops");
}

static enum rfl_rc read_row(struct rfl_peaks_import *in, const struct rfl_csv *csv, const int *at)
{
	enum rfl_rc rc = RFL_OK;

	in->gpu = true;
	if (!rfl_peaks_import_device(in, rfl_csv_text(csv, at[0]), NULL))
		return RFL_OK;
	for (int i = 0; rc == RFL_OK && i < (int)csv->ncolumns; i++) {
		const char *name = csv->columns[i];
		const struct rfl_span column = rfl_span_of(name),
				      text = rfl_span_of(rfl_csv_text(csv, i));
		double value = 0;

		/* the limits of the confidence interval are not ceilings */
		if (i == at[0] || rfl_span_ends(column, "Low") || rfl_span_ends(column, "High"))
			continue;
		if (!rfl_num_is_missing(text.at, text.len))
			rc = rfl_csv_double(csv, i, &value, in->err);
		if (rc == RFL_OK && value == 0) /* not measured on this GPU */
			rc = rfl_peaks_import_lacks(in, name, "unknown", "0 in the file");
		else if (rc == RFL_OK)
			rc = rfl_peaks_import_put(in, rfl_peaks_import_key(in, name), name, value,
						  0);
	}
	return rc;
}

/* Rows of 4.1: Metric_ID, Metric, Value, Unit, Peak (Empirical), ... */
static enum rfl_rc read_analysis(struct rfl_peaks_import *in)
{
	struct rfl_span text = in->text, line, id, unit, cell;
	enum rfl_rc rc = RFL_OK;

	in->gpu = true;
	while (rc == RFL_OK && rfl_span_next_line(&text, &line)) {
		char name[64];
		double peak;

		if (!rfl_span_next_cell(&line, &id) || !rfl_span_starts(id, "4.1.") ||
		    !rfl_span_next_cell(&line, &cell))
			continue;
		rfl_span_copy(cell, name, sizeof(name));
		if (!rfl_span_next_cell(&line, &cell) || !rfl_span_next_cell(&line, &unit) ||
		    !rfl_span_next_cell(&line, &cell) || !rfl_span_number(cell, &peak) ||
		    !(peak > 0))
			continue;
		if (!rfl_span_starts(unit, "G"))
			rc = rfl_peaks_import_refuse(in,
						     "%s: the unit is %.*s, not Gflop/s or Gb/s",
						     name, RFL_SPAN_ARG(unit));
		else
			rc = rfl_peaks_import_put(in, rfl_peaks_import_key(in, name), name, peak,
						  0);
	}
	return rc;
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	static const char *const columns[] = { "device", NULL };
	int at[1];

	if (is_analysis(in->text))
		return read_analysis(in);
	return rfl_peaks_import_csv(in, columns, at, read_row);
}

const struct rfl_peaks_format rfl_peaks_format_rocprof = {
	.name = "rocprof-compute",
	.tool = "rocprof-compute",
	.detect = detect,
	.read = read_file,
	.names = names,
};
