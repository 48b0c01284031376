/* Which CPU this is, from words that CPUs of several kinds answer. */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "machine/isa.h"

static void put_vendor(struct rfl_cpu_leaves *l, const char *vendor)
{
	memcpy(&l->leaf0[1], vendor, 4);
	memcpy(&l->leaf0[3], vendor + 4, 4);
	memcpy(&l->leaf0[2], vendor + 8, 4);
}

/* Signatures as leaf 1 gives them in eax. */
static void tells_family_model_and_counters(void **state)
{
	static const struct {
		const char *vendor;
		unsigned signature, leaf_a, ext1_ecx, ext22_eax, ext22_ebx;
		int family, model, counters;
	} cases[] = {
		/* Ice Lake server; eight counters, version 5 */
		{ "GenuineIntel", 0x606a6, 0x07300805, 0, 0, 0, 6, 0x6a, 8 },
		/* Skylake server with its siblings on */
		{ "GenuineIntel", 0x50654, 0x07300404, 0, 0, 0, 6, 0x55, 4 },
		/* Sapphire Rapids in a guest without a PMU */
		{ "GenuineIntel", 0x806f8, 0, 0, 0, 0, 6, 0x8f, 0 },
		/* Zen 2 (Rome), Zen 4 (Genoa) with the second version, Zen 5 (Turin) */
		{ "AuthenticAMD", 0x830f10, 0, 1u << 23, 0, 0, 0x17, 0x31, 6 },
		{ "AuthenticAMD", 0xa10f11, 0, 1u << 23, 1, 0x6, 0x19, 0x11, 6 },
		{ "AuthenticAMD", 0xb00f21, 0, 1u << 23, 1, 0x6, 0x1a, 0x02, 6 },
		/* a guest that hides the extension */
		{ "AuthenticAMD", 0xa00f11, 0, 0, 0, 0, 0x19, 0x01, 4 },
		{ "HygonGenuine", 0x900f01, 0, 0, 0, 0, 0x18, 0x00, 0 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_cpu_leaves l = { .leaf1 = { cases[i].signature },
					    .leaf_a = { cases[i].leaf_a },
					    .leaf_ext1 = { 0, 0, cases[i].ext1_ecx, 0 },
					    .leaf_ext22 = { cases[i].ext22_eax,
							    cases[i].ext22_ebx } };
		struct rfl_cpu_id id;

		put_vendor(&l, cases[i].vendor);
		rfl_cpu_id_from_leaves(&l, &id);
		assert_string_equal(id.vendor, cases[i].vendor);
		assert_int_equal(id.family, cases[i].family);
		assert_int_equal(id.model, cases[i].model);
		assert_int_equal(id.counters, cases[i].counters);
	}
}

/* This machine: the CPU's own name contains the vendor as well. */
static void agrees_with_the_brand(void **state)
{
	struct rfl_cpu_id id;
	char brand[49];

	(void)state;
	rfl_cpu_id_get("", &id);
	rfl_isa_cpu_brand(brand);
	if (strcmp(id.vendor, "GenuineIntel") != 0 && strcmp(id.vendor, "AuthenticAMD") != 0)
		skip();
	assert_true(id.family > 0);
	if (strstr(brand, "Intel") || strstr(brand, "AMD"))
		assert_non_null(strstr(brand, id.vendor[0] == 'G' ? "Intel" : "AMD"));
}

/* A kernel that saves the state of the tiles also permits them. */
static void tiles_are_permitted_where_there_are_some(void **state)
{
	const bool tiles = rfl_isa_detect() & RFL_ISA_BIT(AMX_TILE);
	struct rfl_err err = RFL_ERR_INIT;
	const enum rfl_rc rc = rfl_isa_permit_tiles(&err);

	(void)state;
	assert_int_equal(rc, tiles ? RFL_OK : RFL_EUNAVAILABLE);
	if (!tiles)
		assert_says(&err, "AMX");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_family_model_and_counters),
		cmocka_unit_test(agrees_with_the_brand),
		cmocka_unit_test(tiles_are_permitted_where_there_are_some),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
