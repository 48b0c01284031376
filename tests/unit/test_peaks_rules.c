/* The tables that read a peaks file say the same as the schema that is published. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "peaks/peaks.h"
#include "peaks/rules.h"

static json_t *load_schema(void)
{
	json_t *schema = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_json_load(RFL_TEST_DATA "/../../docs/peaks.schema.json", &schema, &err),
		  &err);
	return schema;
}

static bool contains(const json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
			return true;
	}
	return false;
}

/* Same keys, same required ones, same choices. */
static void same_object(const json_t *object, const struct rfl_member *table)
{
	const json_t *properties = json_object_get(object, "properties");
	size_t n = 0;

	assert_non_null(properties);
	for (const struct rfl_member *r = table; r->key; r++, n++) {
		const json_t *property = json_object_get(properties, r->key);
		const json_t *choices = json_object_get(property, "enum");
		size_t nchoices = 0;

		if (!property)
			print_error("the schema has no '%s'\n", r->key);
		assert_non_null(property);
		assert_int_equal(contains(json_object_get(object, "required"), r->key), r->must);
		for (; r->choices && r->choices[nchoices]; nchoices++)
			assert_true(contains(choices, r->choices[nchoices]));
		assert_int_equal(json_array_size(choices), nchoices);
		if (json_object_get(property, "minimum"))
			assert_close(json_number_value(json_object_get(property, "minimum")),
				     r->min, 0);
	}
	assert_int_equal(json_object_size(properties), n);
	assert_true(json_is_false(json_object_get(object, "additionalProperties")));
}

static void tables_and_schema_agree(void **state)
{
	static const struct {
		const char *def;
		const struct rfl_member *table;
	} pairs[] = {
		{ "environment", rfl_rules_environment },
		{ "device", rfl_rules_device },
		{ "host", rfl_rules_host },
		{ "level", rfl_rules_level },
		{ "size", rfl_rules_size },
		{ "source", rfl_rules_source },
		{ "method", rfl_rules_method },
		{ "stats", rfl_rules_stats },
		{ "conditions", rfl_rules_conditions },
		{ "interference", rfl_rules_interference },
	};
	json_t *schema = load_schema();
	const json_t *defs = json_object_get(schema, "$defs");

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(pairs); i++)
		same_object(json_object_get(defs, pairs[i].def), pairs[i].table);
	json_decref(schema);
}

static void both_shapes_of_a_ceiling_agree(void **state)
{
	json_t *schema = load_schema();
	json_t *peak = json_object_get(json_object_get(schema, "$defs"), "peak");
	json_t *shapes = json_object_get(peak, "oneOf");
	json_t *unknown = json_array_get(shapes, 0);

	(void)state;
	/* the schema asks for the reason through dependentRequired */
	assert_int_equal(
		json_array_append_new(json_object_get(unknown, "required"), json_string("reason")),
		0);
	same_object(unknown, rfl_rules_unknown);
	same_object(json_array_get(shapes, 1), rfl_rules_known);
	json_decref(schema);
}

static void limits_of_rates_agree(void **state)
{
	static const char *const names[] = { "number", "short_value" };
	json_t *schema = load_schema();

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		const json_t *def = json_object_get(json_object_get(schema, "$defs"), names[i]);

		assert_close(json_number_value(json_object_get(def, "minimum")), RFL_RULE_LEAST,
			     1e-15);
		assert_close(json_number_value(json_object_get(def, "maximum")), RFL_RULE_LARGEST,
			     1e-15);
	}
	json_decref(schema);
}

static void compute_keys(void **state)
{
	static const char *const good[] = { "fp32.vector",       "fp64.scalar",
					    "bf16.matrix",       "fp16.matrix.fp16acc",
					    "fp32.vector.1core", "int8.vector.nofma",
					    "tf32.matrix",       "fp8.matrix",
					    "bf16.gemm" };
	static const char *const bad[] = { "",
					   "fp32",
					   "fp32.",
					   "fp32.vec",
					   "fp32.vector.",
					   "fp32.vector.2core",
					   "fp31.vector",
					   "fp32.vector.1core.nofma",
					   ".vector",
					   "FP32.vector",
					   "fp3.vector" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(good); i++)
		assert_true(rfl_rules__is_compute_key(good[i]));
	for (size_t i = 0; i < RFL_ARRAY_LEN(bad); i++)
		assert_false(rfl_rules__is_compute_key(bad[i]));
	for (const char *const *key = rfl_peaks_compute_keys; *key; key++)
		assert_true(rfl_rules__is_compute_key(*key));
}

/* --- doubts --- */

struct heard {
	int n;
	char cell[64];
	char text[512];
};

static void hear(const char *env, const char *cell, const char *text, void *ctx)
{
	struct heard *h = ctx;

	assert_string_equal(env, "lab");
	h->n++;
	snprintf(h->cell, sizeof(h->cell), "%s", cell);
	snprintf(h->text, sizeof(h->text), "%s", text);
}

static struct rfl_peak measured(double value)
{
	return (struct rfl_peak){ .status = RFL_PEAK_MEASURED,
				  .value = value,
				  .spec = NAN,
				  .measured_at = "2026-11-01T00:00:00Z",
				  .threads = 4,
				  .stats = {
					  .n = 15, .median = value, .min = value, .max = value } };
}

static void each_doubt_is_heard_once(void **state)
{
	static const struct {
		const char *cell, *word;
		int who; /* 0 all cores, 1 one core, 2 L1, 3 DRAM, 4 none */
		double value, spec, max, min;
		const char *at;
	} cases[] = {
		{ "", "", 5, 0, 0, 0, 0, NULL },
		{ "fp32", "120 % of the data sheet", 0, 400e9, 400e9 / 1.2, 0, 0, NULL },
		{ "fp32", "20 % of the data sheet", 0, 400e9, 2000e9, 0, 0, NULL },
		{ "fp32", "1.25 times the median", 0, 400e9, NAN, 500e9, 0, NULL },
		{ "fp32", "out of order", 0, 400e9, NAN, 0, 410e9, NULL },
		{ "fp32", "above the fastest repeat", 0, 400e9, NAN, 399e9, 399e9, NULL },
		{ "fp32", "measured 365 days ago", 0, 400e9, NAN, 0, 0, "2025-11-21T05:31:00Z" },
		{ "fp32.1core", "one core is faster", 1, 500e9, NAN, 0, 0, NULL },
		{ "fp32.1core", "more than 4 times", 1, 50e9, NAN, 0, 0, NULL },
		{ "DRAM", "faster than L1", 3, 900e9, NAN, 0, 0, NULL },
		{ "DRAM", "faster than L1", 2, 5e9, NAN, 0, 0, NULL }, /* 4 cores: 20 GB/s */
		{ "gemm", "110 % of fp32.vector", 4, 440e9, NAN, 0, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_peak_compute compute[] = {
			{ .key = "fp32.vector", .cell = "fp32", .peak = measured(400e9) },
			{ .key = "fp32.vector.1core",
			  .cell = "fp32.1core",
			  .peak = measured(100e9) },
			{ .key = "fp32.gemm", .cell = "gemm", .peak = measured(415e9) },
			{ .key = "fp64.gemm", .cell = "no roof", .peak = measured(900e9) },
		};
		struct rfl_peak_level levels[] = {
			{ .level = "L1", .scope = "core", .cell = "L1", .peak = measured(100e9) },
			{ .level = "DRAM",
			  .scope = "node",
			  .cell = "DRAM",
			  .peak = measured(40e9) },
		};
		struct rfl_peak *all[] = { &compute[0].peak, &compute[1].peak, &levels[0].peak,
					   &levels[1].peak, &compute[2].peak };
		struct rfl_peaks_env env = { .name = "lab",
					     .units = 4,
					     .ncompute = RFL_ARRAY_LEN(compute),
					     .compute = compute,
					     .nlevels = 2,
					     .levels = levels };
		const struct rfl_peaks p = { .nenvs = 1, .envs = &env };
		struct heard h = { .n = 0 };

		if (cases[i].who < 5) {
			struct rfl_peak *peak = all[cases[i].who];

			*peak = measured(cases[i].value);
			peak->spec = cases[i].spec;
			if (cases[i].max > 0)
				peak->stats.max = cases[i].max;
			if (cases[i].max > 0 && cases[i].min > 0)
				peak->stats.median = cases[i].min;
			if (cases[i].min > 0)
				peak->stats.min = cases[i].min;
			if (cases[i].at)
				peak->measured_at = cases[i].at;
		}
		const size_t n = rfl_peaks_check(&p, "2026-11-21T05:31:00Z", hear, &h);

		if (n != (cases[i].who < 5))
			print_error("case %zu: %zu doubts, the last: %s: %s\n", i, n, h.cell,
				    h.text);
		assert_int_equal(n, cases[i].who < 5);
		assert_int_equal(h.n, n);
		assert_string_equal(h.cell, cases[i].cell);
		assert_non_null(strstr(h.text, cases[i].word));
	}
}

/* Rates of a CPU sheet are at base clock, so more is no doubt; shared memory is no cache level. */
static void no_doubt_where_more_is_usual(void **state)
{
	struct rfl_peak_compute compute[] = {
		{ .key = "fp32.vector", .cell = "compute.fp32.vector", .peak = measured(500e9) },
	};
	struct rfl_peak_level levels[] = {
		{ .level = "L1", .scope = "device", .cell = "L1", .peak = measured(100e9) },
		{ .level = "shared", .scope = "device", .cell = "shared", .peak = measured(200e9) },
		{ .level = "DRAM", .scope = "device", .cell = "DRAM", .peak = measured(40e9) },
		{ .level = "link", .scope = "device", .cell = "link", .peak = measured(50e9) },
	};
	struct rfl_peaks_env env = { .name = "lab",
				     .kind = "cpu",
				     .ncompute = 1,
				     .compute = compute,
				     .nlevels = 4,
				     .levels = levels };
	const struct rfl_peaks p = { .nenvs = 1, .envs = &env };
	struct heard h = { .n = 0 };

	(void)state;
	compute[0].peak.spec = 300e9;
	assert_int_equal(rfl_peaks_check(&p, NULL, hear, &h), 0);
	env.kind = "gpu";
	assert_int_equal(rfl_peaks_check(&p, NULL, hear, &h), 1);
}

static void names_recorded_causes(void **state)
{
	struct rfl_devices *devices = NULL;
	struct rfl_peaks_env env = { .name = "lab", .kind = "gpu", .device = "NVIDIA L4" };
	struct rfl_peak peak = measured(30e12);
	struct rfl_peak_compute compute = { .key = "bf16.matrix", .cell = "compute.bf16.matrix" };
	const struct rfl_peaks p = { .nenvs = 1, .envs = &env };
	const struct rfl_device_sheet *l4;
	struct heard h = { .n = 0 };
	char out[256], small[12];

	(void)state;
	devices = rfl_devices_new();
	l4 = rfl_devices_get(devices, "NVIDIA L4"); /* 2040 MHz, 72 W */
#define CAUSES rfl_peaks_causes(&env, "compute.bf16.matrix", &peak, l4, out, sizeof(out))
	peak.clock_hz = peak.power_limit_w = NAN;
	assert_string_equal(CAUSES, "");
	peak.clock_hz = 2030e6;
	peak.power_limit_w = 72;
	assert_string_equal(CAUSES, "");
	peak.clock_hz = 1410e6;
	assert_string_equal(CAUSES, "clock 1410 of 2040 MHz");
	assert_string_equal(rfl_peaks_causes(&env, "memory.DRAM.gbs", &peak, l4, out, sizeof(out)),
			    "");
	peak.power_limit_w = 60;
	peak.throttled = "sw_power_cap";
	env.virtualised = true;
	peak.stats.max = 1.2 * peak.stats.median;
	assert_string_equal(CAUSES, "clock 1410 of 2040 MHz, power limit 60 of 72 W, throttled: "
				    "sw_power_cap, virtual machine");
	assert_string_equal(rfl_peaks_causes(&env, "", &peak, l4, small, sizeof(small)),
			    "power limit");
	compute.peak = peak;
	env.compute = &compute;
	env.ncompute = 1;
	assert_int_equal(rfl_peaks_check(&p, NULL, hear, &h), 1);
	assert_string_equal(h.text,
			    "throttled (sw_power_cap): the fastest repeat is 1.20 times the "
			    "median; the value is what the GPU sustains");
	peak.throttled = NULL;
	assert_non_null(strstr(CAUSES, ", other load,"));
	peak.stats.max = peak.stats.median;
	peak.spec = 121e12;
	compute.peak = peak;
	assert_int_equal(rfl_peaks_check(&p, NULL, hear, &h), 1);
	assert_non_null(strstr(h.text, "only 24.79 % of the data sheet; likely causes: clock 1410 "
				       "of 2040 MHz, power limit"));
	rfl_devices_free(devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_and_schema_agree),
		cmocka_unit_test(limits_of_rates_agree),
		cmocka_unit_test(both_shapes_of_a_ceiling_agree),
		cmocka_unit_test(compute_keys),
		cmocka_unit_test(each_doubt_is_heard_once),
		cmocka_unit_test(no_doubt_where_more_is_usual),
		cmocka_unit_test(names_recorded_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
