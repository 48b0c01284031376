/* Formulas: a text that is read has words, values from 0 on, and a reason for each that is missing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "profile/formula.h"

/* Values of all kinds, from the bytes of the input. */
static double *slots_of(const struct rfl_formulas *f, const uint8_t *data, size_t size)
{
	static const double values[] = { 0, 1, 1e300, -1, 0.5, 4096 };
	size_t n = f->nslots;
	double *slots = malloc((n ? n : 1) * sizeof(*slots));

	FUZZ_ASSERT(slots != NULL);
	for (size_t i = 0; i < n; i++) {
		uint8_t byte = size > 0 ? data[(i * 7) % size] : 0;

		slots[i] = byte % 7 == 6 ? (double)NAN : values[byte % 7];
	}
	return slots;
}

static void check(const struct rfl_formulas *f, const double *slots)
{
	double value[RFL_QUANTITY_COUNT];
	int way[RFL_QUANTITY_COUNT];
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	rfl_formulas_eval(f, slots, value, way);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		enum rfl_quantity id = (enum rfl_quantity)q;

		FUZZ_ASSERT(isnan(value[q]) == (way[q] == -1));
		FUZZ_ASSERT(isnan(value[q]) || value[q] >= 0);
		rfl_buf_reset(&text);
		if (way[q] == -1)
			rfl_formula_reason(f, id, slots, NULL, &text);
		else
			rfl_formula_text(f, id, way[q], &text);
		FUZZ_ASSERT(text.len > 0);
	}
	rfl_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_formulas *f = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_formulas_parse((const char *)data, size, "input", &f, &err);

	fuzz_check(rc, f, &err, "input");
	if (rc == RFL_OK) {
		double *slots = slots_of(f, data, size);

		check(f, slots);
		free(slots);
	}
	rfl_formulas_free(f);
	return 0;
}
