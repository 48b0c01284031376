/* import_clpeak.c - the results of clpeak: from --json-file or --csv-file, in its format 2, or from
 * --xml-file of version 1. */
#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/json.h"
#include "peaks/import.h"

/* "test/metric". On CPUs, tests end with an instruction set. Tests of matrix units accumulate in
 * FP32 unless they say otherwise. */
static const struct rfl_peaks_name names[] = {
	{ "single_precision_compute*", "fp32.vector" },
	{ "double_precision_compute*", "fp64.vector" },
	{ "half_precision_compute*", "fp16.vector" },
	{ "bfloat16_compute*", "bf16.vector" },
	{ "int8_dot_product_compute*", "int8.vector" },
	{ "integer_compute_int8_dp/*", "int8.vector" },
	{ "cpu_matrix_fp/*", "bf16.matrix" },
	{ "cpu_matrix_fp16/*", "fp16.matrix" },
	{ "cpu_matrix_tf32/*", "tf32.matrix" },
	{ "cpu_matrix_fp8/*", "fp8.matrix" },
	{ "cpu_matrix_fp32/*", "fp32.matrix" },
	{ "cpu_matrix_fp64/*", "fp64.matrix" },
	{ "cpu_matrix_int/*", "int8.matrix" },
	{ "wmma_fp16_f16/*", "fp16.matrix.fp16acc" },
	{ "wmma_int8_k32/*", "int8.matrix" },
	{ "wmma_fp8_*", "fp8.matrix" },
	{ "coopmat_fp8_*", "fp8.matrix" },
	{ "mfma_fp8/*", "fp8.matrix" },
#define MATRIX(type)                                                                  \
	{ "wmma_" type "/*", type ".matrix" }, { "mfma_" type "/*", type ".matrix" }, \
		{ "rocwmma_" type "/*", type ".matrix" },                             \
		{ "coopmat_" type "/*", type ".matrix" },                             \
		{ "simdgroup_matrix_" type "/*", type ".matrix" },                    \
	{                                                                             \
		"joint_matrix_" type "/*", type ".matrix"                             \
	}
	MATRIX("fp64"),
	MATRIX("fp32"),
	MATRIX("tf32"),
	MATRIX("fp16"),
	MATRIX("bf16"),
	MATRIX("int8"),
#undef MATRIX
	{ "global_memory_bandwidth/*", "DRAM" },
	{ "local_memory_bandwidth/*", "shared" },
	{ "cache_bandwidth/L1 *", "L1" },
	{ "cache_bandwidth/L2 *", "L2" },
	{ "cache_bandwidth/L3 *", "L3" },
	{ NULL, NULL },
};

/* The members of a JSON entry, and the columns of the CSV file. */
enum { VERSION, BACKEND, DEVICE, TEST, METRIC, UNIT, STATUS, REASON, FIELDS };
static const char *const fields[FIELDS] = { "format_version", "backend", "device", "test",
					    "metric",         "unit",    "status", "reason" };

static bool detect(struct rfl_span head)
{
	return rfl_span_starts(head, "format_version,backend,") || rfl_span_has(head, "<clpeak ") ||
	       rfl_span_has(head, "\"clpeak_version\"");
}

/* @param value  not used if the status is not "ok" */
static enum rfl_rc take(struct rfl_peaks_import *in, const char *const text[FIELDS], double value)
{
	static const struct {
		const char *name;
		double giga;
	} units[] = {
		{ "gflops", 1 }, { "tflops", 1e3 }, { "gops", 1 }, { "tops", 1e3 }, { "gbps", 1 }
	};
	const char *status = text[STATUS];
	/* on CPUs, "float ST" is one thread */
	const int threads = rfl_span_ends(rfl_span_of(text[METRIC]), " ST") ? 1 : 0;
	const bool cpu = strcmp(text[BACKEND], "CPU") == 0;
	char name[160];
	size_t u = 0;

	/* on Apple chips, processor and GPU have the same name */
	if (!rfl_peaks_import_device(in, cpu ? "CPU" : text[DEVICE], text[DEVICE]))
		return RFL_OK;
	in->gpu = !cpu;
	snprintf(name, sizeof(name), "%s/%s", text[TEST], text[METRIC]);
	if (strcmp(status, "ok") != 0)
		return rfl_peaks_import_lacks(
			in, name, strcmp(status, "unsupported") == 0 ? "unsupported" : "failed",
			text[REASON]);
	while (u < RFL_ARRAY_LEN(units) && strcmp(text[UNIT], units[u].name) != 0)
		u++;
	if (u == RFL_ARRAY_LEN(units))
		return rfl_peaks_import_put(in, NULL, name, value, threads);
	return rfl_peaks_import_put(in, rfl_peaks_import_key(in, name), name, value * units[u].giga,
				    threads);
}

static enum rfl_rc check_version(const struct rfl_peaks_import *in, const char *version)
{
	return strcmp(version, "2") == 0
		       ? RFL_OK
		       : rfl_peaks_import_refuse(in,
						 "format_version '%s' of clpeak is not read; "
						 "use version 2.0 of clpeak or later",
						 version);
}

static enum rfl_rc read_csv(struct rfl_peaks_import *in)
{
	const char *text[FIELDS];
	int at[FIELDS], value_at = -1;
	struct rfl_csv *csv = NULL;
	bool more = true;
	double value;
	enum rfl_rc rc = rfl_csv_open_text(in->text.at, in->text.len, in->name, &csv, in->err);

	for (size_t i = 0; rc == RFL_OK && i < FIELDS; i++)
		rc = rfl_csv_need(csv, fields[i], &at[i], in->err);
	if (rc == RFL_OK)
		rc = rfl_csv_need(csv, "value", &value_at, in->err);
	while (rc == RFL_OK && !(rc = rfl_csv_next(csv, &more, in->err)) && more) {
		if (csv->nfields != csv->ncolumns)
			rc = rfl_peaks_import_refuse(in,
						     "line %zu: %zu fields, but the header has %zu",
						     csv->line, csv->nfields, csv->ncolumns);
		for (size_t i = 0; i < FIELDS; i++)
			text[i] = rfl_csv_text(csv, at[i]);
		if (rc == RFL_OK && !(rc = check_version(in, text[VERSION])) &&
		    !(rc = rfl_csv_double(csv, value_at, &value, in->err)))
			rc = take(in, text, value);
	}
	rfl_csv_close(csv);
	return rc;
}

/* In XML, a device contains an element for each test, named after it and with a unit, and a test
 * contains an element for each metric, unless there is only one. */
struct xml {
	struct rfl_peaks_import *in;
	XML_Parser parser;
	char device[256], test[64], unit[16];
	struct rfl_buf text; /* since the last tag */
	enum rfl_rc rc;
};

static void XMLCALL begin_element(void *ctx, const char *name, const char **attributes)
{
	struct xml *x = ctx;

	rfl_buf_reset(&x->text);
	for (; attributes[0]; attributes += 2)
		if (strcmp(name, "device") == 0 && strcmp(attributes[0], "name") == 0) {
			snprintf(x->device, sizeof(x->device), "%s", attributes[1]);
		} else if (strcmp(attributes[0], "unit") == 0) {
			snprintf(x->test, sizeof(x->test), "%s", name);
			snprintf(x->unit, sizeof(x->unit), "%s", attributes[1]);
		}
}

static void XMLCALL add_text(void *ctx, const char *text, int len)
{
	rfl_buf_append(&((struct xml *)ctx)->text, text, (size_t)len);
}

static void XMLCALL end_element(void *ctx, const char *name)
{
	struct xml *x = ctx;
	const char *begin = rfl_buf_str(&x->text);
	const struct rfl_span value = rfl_span_of(begin + strspn(begin, " \t\n"));
	const char *const text[FIELDS] = {
		[BACKEND] = "OpenCL", [DEVICE] = x->device, [TEST] = x->test,
		[METRIC] = name,      [UNIT] = x->unit,     [STATUS] = "ok",
	};
	double number;

	if (x->rc == RFL_OK)
		x->rc = rfl_buf_check(&x->text, x->in->name, x->in->err);
	if (x->rc == RFL_OK && *x->test && value.len > 0)
		x->rc = rfl_span_number(value, &number)
				? take(x->in, text, number)
				: rfl_peaks_import_refuse(x->in,
							  "line %lu: %s: '%.*s' is not a number",
							  XML_GetCurrentLineNumber(x->parser), name,
							  RFL_SPAN_ARG(value));
	if (strcmp(name, x->test) == 0)
		x->test[0] = '\0';
	rfl_buf_reset(&x->text);
}

static enum rfl_rc read_xml(struct rfl_peaks_import *in)
{
	struct xml x = { .in = in, .parser = XML_ParserCreate(NULL) };
	enum XML_Error error;

	if (!x.parser)
		return rfl_fail(in->err, RFL_ENOMEM, 0, "%s: out of memory", in->name);
	rfl_buf_init(&x.text, 4096);
	XML_SetUserData(x.parser, &x);
	XML_SetElementHandler(x.parser, begin_element, end_element);
	XML_SetCharacterDataHandler(x.parser, add_text);
	if (XML_Parse(x.parser, in->text.at, (int)in->text.len, 1) != XML_STATUS_OK &&
	    x.rc == RFL_OK) {
		error = XML_GetErrorCode(x.parser);
		x.rc = rfl_fail(in->err, error == XML_ERROR_NO_MEMORY ? RFL_ENOMEM : RFL_EFORMAT, 0,
				"%s:%lu: %s", in->name, XML_GetCurrentLineNumber(x.parser),
				XML_ErrorString(error));
	}
	XML_ParserFree(x.parser);
	rfl_buf_fini(&x.text);
	return x.rc;
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	const json_t *entries, *entry, *value;
	const char *text[FIELDS] = { NULL };
	json_t *root = NULL;
	char number[16];
	enum rfl_rc rc;

	if (!rfl_span_starts(rfl_span_trim(in->text), "{"))
		return rfl_span_has(in->text, "<clpeak ") ? read_xml(in) : read_csv(in);
	rc = rfl_json_loads(in->text.at, in->text.len, in->name, &root, in->err);
	if (rc != RFL_OK)
		return rc;
	snprintf(number, sizeof(number), "%lld",
		 (long long)json_integer_value(json_object_get(root, fields[VERSION])));
	rc = check_version(in, number);
	rfl_peaks_import_version(in, json_object_get(root, "clpeak_version"));
	entries = json_object_get(root, "entries");
	if (rc == RFL_OK && !json_is_array(entries))
		rc = rfl_peaks_import_refuse(in, "/entries: must be a list");
	for (size_t i = 0; rc == RFL_OK && i < json_array_size(entries); i++) {
		entry = json_array_get(entries, i);
		value = json_object_get(entry, "value");
		for (size_t f = 0; rc == RFL_OK && f < FIELDS; f++) {
			text[f] = json_string_value(json_object_get(entry, fields[f]));
			if (!text[f] && f >= BACKEND && f <= UNIT)
				rc = rfl_peaks_import_refuse(
					in, "/entries/%zu/%s: must be a string", i, fields[f]);
		}
		text[STATUS] = text[STATUS] ? text[STATUS] : "ok";
		text[REASON] = text[REASON] ? text[REASON] : "";
		if (rc == RFL_OK && strcmp(text[STATUS], "ok") == 0 && !json_is_number(value))
			rc = rfl_peaks_import_refuse(in, "/entries/%zu/value: must be a number", i);
		if (rc == RFL_OK)
			rc = take(in, text, json_number_value(value));
	}
	json_decref(root);
	return rc;
}

const struct rfl_peaks_format rfl_peaks_format_clpeak = {
	.name = "clpeak",
	.tool = "clpeak",
	.detect = detect,
	.read = read_file,
	.names = names,
};
