/* The table of chips: it goes with the families of formulas, and devices are found in it. */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "base/compiler.h"
#include "profile/chips.h"
#include "profile/formula.h"

static void every_chip_has_formulas(void **state)
{
	const struct rfl_chip *chip;
	size_t n = 0;

	(void)state;
	for (; (chip = rfl_chip_at(n)); n++) {
		struct rfl_formulas *f = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		assert_ok(rfl_formulas_new(chip->name, &f, &err), &err);
		assert_string_equal(f->family, chip->family);
		assert_ptr_equal(rfl_chip_find(chip->name), chip);
		rfl_formulas_free(f);
	}
	assert_int_equal(n, 30);
}

static void devices_are_found(void **state)
{
	static const struct {
		const char *device;
		int capability;
		const char *chip;
	} cases[] = {
		{ "NVIDIA H100 80GB HBM3", 90, "GH100" },
		{ "NVIDIA H200", 0, "GH100" },
		{ "NVIDIA GH200 480GB", 0, "GH100" },
		{ "NVIDIA A100-SXM4-40GB", 80, "GA100" },
		{ "A100-SXM4-40GB", 0, "GA100" },
		{ "NVIDIA A10G", 86, "GA102" }, /* by its capability */
		{ "Tesla T4", 75, "TU104" },
		{ "Tesla V100-SXM2-16GB", 0, "GV100" },
		{ "NVIDIA B200", 100, "GB100" },
		{ "NVIDIA L4", 89, "AD104" },
		{ "NVIDIA L40S", 89, "AD102" },
		{ "NVIDIA GeForce RTX 3080", 0, "GA102" },
		{ "NVIDIA GeForce RTX 3080 Ti Laptop GPU", 0, "GA103" },
		{ "NVIDIA GeForce RTX 2080 Ti", 75, "TU102" },
		{ "NVIDIA GeForce RTX 2080", 75, "TU104" },
		{ "NVIDIA GeForce RTX 4060 Ti", 0, "AD106" },
		{ "NVIDIA GeForce GTX 1660 Ti", 75, "TU116" },
		{ "NVIDIA GeForce RTX 5090", 120, "GB202" },
		{ "NVIDIA GB10", 121, "GB20B" },
		{ "", 87, "GA10B" },
		{ NULL, 90, "GH100" },
		{ "NVIDIA GeForce RTX 5090", 90, "GH100" }, /* the capability is not a name */
		{ "Radeon RX 7900", 0, NULL },
		{ "NVIDIA H1000", 0, NULL },
		{ "NVIDIA GeForce GTX 1080", 61, NULL },
		{ NULL, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_chip *chip =
			rfl_chip_of_device(cases[i].device, cases[i].capability);

		if (!cases[i].chip) {
			assert_null(chip);
			continue;
		}
		assert_non_null(chip);
		assert_string_equal(chip->name, cases[i].chip);
	}
}

static void products_are_found_as_people_write_them(void **state)
{
	static const struct {
		const char *text, *chip;
	} cases[] = {
		{ "rtx4090", "AD102" }, { "4090", "AD102" },     { "RTX-2080-ti", "TU102" },
		{ "2080", "TU104" },    { "gtx_1660", "TU116" }, { "rtx6000ada", "AD102" },
		{ "h100", "GH100" },    { "RTX 4090", "AD102" },
	};
	static const char *const none[] = { "", "Ti", "409", "40900", "rtx 4090 x", "Blackwell" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		assert_non_null(rfl_chip_of_product(cases[i].text));
		assert_string_equal(rfl_chip_of_product(cases[i].text)->name, cases[i].chip);
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(none); i++)
		assert_null(rfl_chip_of_product(none[i]));
}

static void chips_are_found_without_case(void **state)
{
	(void)state;
	assert_string_equal(rfl_chip_find("gh100")->name, "GH100");
	assert_null(rfl_chip_find("H100"));
	assert_null(rfl_chip_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_chip_has_formulas),
		cmocka_unit_test(devices_are_found),
		cmocka_unit_test(products_are_found_as_people_write_them),
		cmocka_unit_test(chips_are_found_without_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
