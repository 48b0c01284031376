/* The data sheets: every row holds together, and every device is found by what people call it. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "peaks/devices.h"

/* The table as compiled in, with columns that no struct has. */
extern const char rfl_devices__csv[];
extern const size_t rfl_devices__csv_size;

static bool not_known(double value)
{
	return isnan(value);
}

static bool within(double value, double least, double most)
{
	return isnan(value) || (value >= least && value <= most);
}

/* Limits that a figure in another unit would break. */
static void every_sheet_is_sane(void **state)
{
	struct rfl_devices *d = rfl_devices_new();

	(void)state;
	assert_true(d->n >= 80);
	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_device_sheet *s = &d->sheets[i];
		const bool gpu = strcmp(s->kind, "gpu") == 0;

		if (!gpu)
			assert_string_equal(s->kind, "cpu");
		assert_true(strlen(s->source) > 0);
		assert_true(strlen(s->evidence) > 0);
		assert_true(strlen(s->vendor) > 0);
		assert_in_range(s->units, 4, 1000);
		assert_true(within(s->clock_hz, 0.5e9, 7e9));
		for (int r = 0; r < RFL_DEVICE_RATE_COUNT; r++)
			assert_true(within(s->flop_per_s[r], 0.1e12, 1e16));
		assert_true(within(s->bandwidth_bytes_per_s, 30e9, 20e12));
		assert_false(not_known(s->bandwidth_bytes_per_s));
		assert_true(within(s->memory_bytes, 4 * 0x1p30, 1024 * 0x1p30));
		assert_true(within(s->l2_bytes, 0x1p17, 0x1p30));
		assert_true(within(s->llc_bytes, 0x1p20, 0x1p30));
		assert_true(within(s->power_w, 10, 2000));
		/* tensor units are no slower than the others, small types no slower than large */
		assert_false(s->flop_per_s[RFL_DEVICE_FP64] > s->flop_per_s[RFL_DEVICE_FP32]);
		assert_false(s->flop_per_s[RFL_DEVICE_TF32] > s->flop_per_s[RFL_DEVICE_FP16]);
		assert_false(s->flop_per_s[RFL_DEVICE_FP16] > s->flop_per_s[RFL_DEVICE_FP8]);
		if (gpu)
			assert_false(not_known(s->memory_bytes));
	}
	rfl_devices_free(d);
}

static const struct rfl_device_sheet *found(const struct rfl_devices *d, const char *name)
{
	const struct rfl_device_sheet *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_devices_find(d, name, &s, &err), &err);
	return s;
}

/* Labels and aliases are unique: each finds its own sheet. */
static void every_name_finds_its_sheet(void **state)
{
	struct rfl_devices *d = rfl_devices_new();
	size_t aliases = 0;

	(void)state;
	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_device_sheet *s = &d->sheets[i];

		assert_ptr_equal(found(d, s->label), s);
		for (const char *a = s->aliases; a && *a; a += strspn(a, "; "), aliases++) {
			char alias[64];

			snprintf(alias, sizeof(alias), "%.*s", (int)strcspn(a, ";"), a);
			assert_ptr_equal(found(d, alias), s);
			a += strlen(alias);
		}
	}
	assert_true(aliases >= 3);
	rfl_devices_free(d);
}

static void finds_what_people_write(void **state)
{
	static const struct {
		const char *written, *label;
	} cases[] = {
		{ "nvidia l4", "NVIDIA L4" },
		{ "l4", "NVIDIA L4" },
		{ "L40", "NVIDIA L40" },
		{ "a10", "NVIDIA A10" },
		{ "a10g", "NVIDIA A10G" },
		{ "h200", "NVIDIA H200" },
		{ "rtx 4090", "NVIDIA GeForce RTX 4090" },
		{ "RTX4090", "NVIDIA GeForce RTX 4090" },
		{ "geforce-rtx-4090", "NVIDIA GeForce RTX 4090" },
		{ "T4", "Tesla T4" },
		{ "v100-sxm2-32gb", "Tesla V100-SXM2-32GB" },
		{ "m1", "Apple M1" },
		{ "m3 max (40 units)", "Apple M3 Max (40 units)" },
		{ "graviton4", "Neoverse-V2" },
		{ "epyc 9654", "AMD EPYC 9654 96-Core Processor" },
		{ "h20", "NVIDIA H20" },
		{ "b300", "NVIDIA B300 SXM6 AC" },
		{ "rtx 5070", "NVIDIA GeForce RTX 5070" },
		{ "strix halo", "AMD Radeon 8060S Graphics" },
		{ "arc b580", "Intel(R) Arc(TM) B580 Graphics" },
	};
	struct rfl_devices *d = rfl_devices_new();

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(found(d, cases[i].written)->label, cases[i].label);
	rfl_devices_free(d);
}

static void values_are_in_si_units(void **state)
{
	struct rfl_devices *d = rfl_devices_new();
	const struct rfl_device_sheet *l4 = found(d, "l4"), *epyc = found(d, "epyc 9654");

	(void)state;
	assert_int_equal(l4->units, 58);
	assert_string_equal(l4->compute_capability, "8.9");
	assert_close(l4->clock_hz, 2040e6, 0);
	assert_close(l4->flop_per_s[RFL_DEVICE_FP32], 30.3e12, 1e-15);
	assert_close(l4->flop_per_s[RFL_DEVICE_BF16], 121e12, 1e-15);
	assert_true(not_known(l4->flop_per_s[RFL_DEVICE_FP64]));
	assert_close(l4->bandwidth_bytes_per_s, 300e9, 0);
	assert_close(l4->memory_bytes, 24 * 0x1p30, 0);
	assert_close(l4->l2_bytes, 50331648, 0); /* as deviceQuery prints it */
	assert_true(not_known(epyc->memory_bytes));
	assert_close(found(d, "v100-sxm2-32gb")->memory_bytes, 32 * 0x1p30, 0);
	assert_string_equal(found(d, "H100 SXM")->name, "NVIDIA H100 80GB HBM3");
	rfl_devices_free(d);
}

static void refuses(const char *name, const char *word)
{
	struct rfl_devices *d = rfl_devices_new();
	const struct rfl_device_sheet *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_devices_find(d, name, &s, &err), RFL_ENOTFOUND);
	assert_null(s);
	assert_says(&err, word);
	rfl_devices_free(d);
}

static void says_what_is_not_found(void **state)
{
	char name[600];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refuses("NVIDIA L5", "did you mean NVIDIA L4");
	refuses("abacus", "peaks devices");
	refuses("", "no data sheet for ''");
	refuses("/", "no data sheet for '/'");
	refuses(name, "no data sheet");
	refuses("h100", "ambiguous; choose one of NVIDIA H100 80GB HBM3, NVIDIA H100 PCIe, NVIDIA "
			"H100 NVL");
	refuses("Apple M3 Max",
		"ambiguous; choose one of Apple M3 Max (30 units), Apple M3 Max (40 units)");
	refuses("nvidia", ", ...");
}

/* FLOPs per clock and multiprocessor of dense data, a multiply-add being two, by compute capability
 * and class of the FP32 accumulator (GeForce: half; A10G and L40: half for all types; H20: a
 * quarter). 0: the unit is absent, or no figure is in the table. A vendor's figure with sparsity is
 * twice too high, and one with FP16 accumulation too. */
static const struct per_clock {
	const char *capability, *class;
	double fp64, fp64_tensor, fp32, tf32, fp16, fp8, int8;
} per_clock[] = {
	{ "7.0", "full", 64, 0, 128, 0, 1024, 0, 0 },
	{ "7.5", "full", 4, 0, 128, 0, 1024, 0, 2048 },
	{ "7.5", "half_fp32acc", 4, 0, 128, 0, 512, 0, 2048 },
	{ "8.0", "full", 64, 128, 128, 1024, 2048, 0, 4096 },
	{ "8.6", "full", 4, 0, 256, 512, 1024, 0, 2048 },
	{ "8.6", "half_fp32acc", 4, 0, 256, 256, 512, 0, 2048 },
	{ "8.6", "half_all_tensor", 4, 0, 256, 256, 512, 0, 1024 },
	{ "8.7", "full", 4, 0, 256, 0, 2048, 0, 4096 },
	{ "8.9", "full", 4, 0, 256, 512, 1024, 2048, 2048 },
	{ "8.9", "half_fp32acc", 4, 0, 256, 256, 512, 1024, 2048 },
	{ "8.9", "half_all_tensor", 4, 0, 256, 256, 512, 1024, 1024 },
	{ "9.0", "full", 128, 256, 256, 2048, 4096, 8192, 8192 },
	{ "9.0", "quarter_all_tensor", 0, 0, 256, 512, 1024, 2048, 2048 },
	{ "10.0", "full", 128, 128, 256, 4096, 8192, 16384, 16384 },
	{ "10.3", "full", 0, 0, 256, 4096, 8192, 16384, 0 },
	{ "12.0", "full", 4, 0, 256, 512, 1024, 2048, 2048 },
	{ "12.0", "half_fp32acc", 4, 0, 256, 256, 512, 1024, 2048 },
};

static double number(const struct rfl_csv *csv, const char *column)
{
	struct rfl_err err = RFL_ERR_INIT;
	double value = NAN;

	assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, column), &value, &err), &err);
	return value;
}

static void rates_follow_units_and_clocks(void **state)
{
	struct rfl_csv *csv = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t rows = 0, rates = 0;
	bool more = true;

	(void)state;
	assert_ok(rfl_csv_open_text(rfl_devices__csv, rfl_devices__csv_size, "devices.csv", &csv,
				    &err),
		  &err);
	for (; !rfl_csv_next(csv, &more, &err) && more; rows++) {
		const char *capability = rfl_csv_text(csv, rfl_csv_find(csv, "compute_capability"));
		const char *class = rfl_csv_text(csv, rfl_csv_find(csv, "acc_rate_class"));
		const double units = number(csv, "sm_count");
		const double clock = number(csv, "boost_clock_mhz") * 1e6;
		const double tensor = number(csv, "tensor_clock_mhz") * 1e6;
		const struct per_clock *p = per_clock;

		if (strcmp(rfl_csv_text(csv, rfl_csv_find(csv, "vendor")), "NVIDIA") != 0)
			continue;
		while (p < per_clock + RFL_ARRAY_LEN(per_clock) &&
		       (strcmp(p->capability, capability) != 0 || strcmp(p->class, class) != 0))
			p++;
		assert_true(p < per_clock + RFL_ARRAY_LEN(per_clock));

		const struct {
			const char *column;
			double per_clock, clock_hz;
		} columns[] = {
			{ "fp64_tflops", p->fp64, clock },
			{ "fp64_tensor_tflops", p->fp64_tensor, clock },
			{ "fp32_tflops", p->fp32, clock },
			{ "tf32_tensor_dense_tflops", p->tf32, tensor },
			{ "fp16_tensor_dense_fp32acc_tflops", p->fp16, tensor },
			{ "bf16_tensor_dense_tflops", p->fp16, tensor },
			{ "fp8_dense_tflops", p->fp8, tensor },
			{ "int8_dense_tops", p->int8, tensor },
		};

		for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++) {
			const double rate = number(csv, columns[i].column) * 1e12;

			if (isnan(rate) || isnan(columns[i].clock_hz))
				continue;
			if (fabs(rate / (units * columns[i].clock_hz * columns[i].per_clock) - 1) >
			    0.02)
				fail_msg("devices.csv:%zu: %s: %g", csv->line, columns[i].column,
					 rate);
			rates++;
		}
	}
	assert_true(rows >= 80 && rates >= 240);
	rfl_csv_close(csv);
}

/* A filter may have several words, also the vendor and the kind, in any order. */
static void filters_by_words(void **state)
{
	static const struct {
		const char *filter;
		int matches;
	} cases[] = {
		{ "nvidia 4090", 1 }, { "4090 nvidia", 1 }, { "amd cpu", 5 }, { "amd gpu", 9 },
		{ "aws", 2 },         { "apple m3", 5 },    { "h200", 2 },    { "l4", 1 },
		{ "nvidia m3", 0 },   { "units", 4 },       { "", 0 },        { "/", 0 },
	};
	struct rfl_devices *d = rfl_devices_new();

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		int n = 0;

		for (size_t k = 0; k < d->n; k++)
			n += rfl_device_matches(&d->sheets[k], cases[i].filter);
		if (n != cases[i].matches)
			fail_msg("'%s' matches %d sheets", cases[i].filter, n);
	}
	rfl_devices_free(d);
}

static void keys_of_rates(void **state)
{
	struct rfl_devices *d = rfl_devices_new();
	const struct rfl_device_sheet *h100 = rfl_devices_get(d, "h100 sxm");

	(void)state;
	assert_close(rfl_device_ceiling(h100, "fp64.vector"), 33.5e12, 1e-15);
	assert_close(rfl_device_ceiling(h100, "fp64.matrix"), 66.9e12, 1e-15);
	assert_close(rfl_device_ceiling(h100, "fp16.matrix"), 989.4e12, 1e-15);
	assert_close(rfl_device_ceiling(h100, "int8.matrix"), 1978.9e12, 1e-15);
	assert_close(rfl_device_ceiling(h100, "HBM"), 3350e9, 1e-15);
	assert_true(not_known(rfl_device_ceiling(h100, "fp16.matrix.fp16acc")));
	assert_true(not_known(rfl_device_ceiling(h100, "L2")));
	assert_null(rfl_devices_get(d, "h100"));
	assert_null(rfl_devices_get(d, NULL));
	assert_null(rfl_devices_get(NULL, "l4"));
	rfl_devices_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sheet_is_sane),
		cmocka_unit_test(every_name_finds_its_sheet),
		cmocka_unit_test(finds_what_people_write),
		cmocka_unit_test(values_are_in_si_units),
		cmocka_unit_test(says_what_is_not_found),
		cmocka_unit_test(rates_follow_units_and_clocks),
		cmocka_unit_test(filters_by_words),
		cmocka_unit_test(keys_of_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
