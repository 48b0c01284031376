/* import_clpeak.c - the results of clpeak: from --json-file, --csv-file or --xml-file, in its
 * format 2, or from --xml-file of version 1. */
#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/json.h"
#include "peaks/import.h"

/* "test/metric". On CPUs, tests end with an instruction set. Tests of Tensor Cores accumulate in
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
enum { VERSION, BACKEND, DEVICE, TEST, METRIC, UNIT, STATUS, REASON, VALUE, FIELDS };
static const char *const fields[FIELDS + 1] = {
	"format_version", "backend", "device", "test",  "metric",
	"unit",           "status",  "reason", "value", NULL,
};

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

	/* on Apple chips, CPU and GPU have the same name */
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

static enum rfl_rc read_row(struct rfl_peaks_import *in, const struct rfl_csv *csv, const int *at)
{
	const char *text[FIELDS];
	double value = 0;
	enum rfl_rc rc;

	for (size_t i = 0; i < FIELDS; i++)
		text[i] = rfl_csv_text(csv, at[i]);
	if ((rc = check_version(in, text[VERSION])) ||
	    (rc = rfl_csv_double(csv, at[VALUE], &value, in->err)))
		return rc;
	return take(in, text, value);
}

/* In XML, a device contains an element for each test with its unit, and a test one for each metric.
 * In version 1, which does not name its format, these elements have the names of tests and metrics,
 * and a test may have no metric but one value. */
struct xml {
	struct rfl_peaks_import *in;
	XML_Parser parser;
	char fields[FIELDS][256];
	struct rfl_buf text; /* since the last tag */
	enum rfl_rc rc;
};

static void set(struct xml *x, int field, const char *text)
{
	snprintf(x->fields[field], sizeof(x->fields[field]), "%s", text);
}

static void XMLCALL begin_element(void *ctx, const char *name, const char **attributes)
{
	static const struct {
		const char *element, *attribute;
		int field;
	} places[] = {
		{ "clpeak", "format_version", VERSION },
		{ "device", "name", DEVICE },
		{ "run", "device", DEVICE },
		{ "run", "backend", BACKEND },
		{ "test", "name", TEST },
		{ "test", "unit", UNIT },
		{ "metric", "name", METRIC },
		{ "metric", "status", STATUS },
		{ "metric", "reason", REASON },
	};
	struct xml *x = ctx;

	rfl_buf_reset(&x->text);
	set(x, STATUS, "ok");
	set(x, REASON, "");
	for (; attributes[0]; attributes += 2) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++)
			if (strcmp(name, places[i].element) == 0 &&
			    strcmp(attributes[0], places[i].attribute) == 0)
				set(x, places[i].field, attributes[1]);
		if (!*x->fields[VERSION] && strcmp(attributes[0], "unit") == 0) {
			set(x, TEST, name);
			set(x, UNIT, attributes[1]);
		}
		if (strcmp(attributes[0], "clpeak_version") == 0)
			rfl_peaks_import_version(x->in, attributes[1]);
		if (x->rc == RFL_OK && strcmp(attributes[0], fields[VERSION]) == 0)
			x->rc = check_version(x->in, attributes[1]);
	}
}

static void XMLCALL add_text(void *ctx, const char *text, int len)
{
	rfl_buf_append(&((struct xml *)ctx)->text, text, (size_t)len);
}

static void XMLCALL end_element(void *ctx, const char *name)
{
	struct xml *x = ctx;
	const bool first = !*x->fields[VERSION]; /* version 1 */
	const char *begin = rfl_buf_str(&x->text), *text[FIELDS];
	const struct rfl_span value = rfl_span_of(begin + strspn(begin, " \t\n"));
	double number = 0;

	if (x->rc == RFL_OK)
		x->rc = rfl_buf_check(&x->text, x->in->name, x->in->err);
	if (first)
		set(x, METRIC, name);
	for (size_t i = 0; i < FIELDS; i++)
		text[i] = x->fields[i];
	if (x->rc == RFL_OK && *text[TEST] && (first ? value.len > 0 : strcmp(name, "metric") == 0))
		x->rc = strcmp(text[STATUS], "ok") != 0 || rfl_span_number(value, &number)
				? take(x->in, text, number)
				: rfl_peaks_import_refuse(x->in,
							  "line %lu: %s: '%.*s' is not a number",
							  XML_GetCurrentLineNumber(x->parser),
							  text[METRIC], RFL_SPAN_ARG(value));
	if (first && strcmp(name, text[TEST]) == 0)
		set(x, TEST, "");
	rfl_buf_reset(&x->text);
}

static enum rfl_rc read_xml(struct rfl_peaks_import *in)
{
	struct xml x = { .in = in, .parser = XML_ParserCreate(NULL) };

	if (!x.parser)
		rfl_out_of_memory();
	rfl_buf_init(&x.text, 4096);
	set(&x, BACKEND, "OpenCL");
	XML_SetUserData(x.parser, &x);
	XML_SetElementHandler(x.parser, begin_element, end_element);
	XML_SetCharacterDataHandler(x.parser, add_text);
	if (XML_Parse(x.parser, in->text.at, (int)in->text.len, 1) != XML_STATUS_OK &&
	    x.rc == RFL_OK)
		x.rc = rfl_fail(in->err, RFL_EFORMAT, 0, "%s:%lu: %s", in->name,
				XML_GetCurrentLineNumber(x.parser),
				XML_ErrorString(XML_GetErrorCode(x.parser)));
	XML_ParserFree(x.parser);
	rfl_buf_fini(&x.text);
	return x.rc;
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	const json_t *entries, *entry, *value;
	const char *text[FIELDS] = { NULL };
	json_auto_t *root = NULL;
	char number[RFL_NUM_MAX];
	const char *version;
	int at[FIELDS];
	enum rfl_rc rc;

	if (!rfl_span_starts(rfl_span_trim(in->text), "{"))
		return rfl_span_has(in->text, "<clpeak ")
			       ? read_xml(in)
			       : rfl_peaks_import_csv(in, fields, at, read_row);
	rc = rfl_json_loads(in->text.at, in->text.len, in->name, &root, in->err);
	if (rc != RFL_OK)
		return rc;
	version = rfl_json_scalar(json_object_get(root, fields[VERSION]), number);
	rc = check_version(in, version ? version : "");
	rfl_peaks_import_version(in, json_string_value(json_object_get(root, "clpeak_version")));
	entries = json_object_get(root, "entries");
	if (rc == RFL_OK && !json_is_array(entries))
		rc = rfl_peaks_import_refuse(in, "/entries: must be a list");
	for (size_t i = 0; rc == RFL_OK && i < json_array_size(entries); i++) {
		entry = json_array_get(entries, i);
		value = json_object_get(entry, "value");
		for (size_t f = 0; rc == RFL_OK && f < VALUE; f++) {
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
	return rc;
}

const struct rfl_peaks_format rfl_peaks_format_clpeak = {
	.name = "clpeak",
	.tool = "clpeak",
	.detect = detect,
	.read = read_file,
	.names = names,
};
