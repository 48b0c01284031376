/* matrix.json: what loads has cells with ids of their own, arguments, labels that are file names,
 * and without a ledger nothing of it is done. */
#include <string.h>

#include "fuzz.h"
#include "ledger/matrix.h"

static void check_cell(const struct rfl_matrix *m, size_t i)
{
	const struct rfl_matrix_cell *c = &m->cells[i];
	char label[RFL_LABEL_MAX + 1];

	FUZZ_ASSERT(strlen(c->id) == 16 && strspn(c->id, "0123456789abcdef") == 16);
	FUZZ_ASSERT(c->batch >= 1 && c->args[0] && c->env && c->backend && c->pointer[0] == '/');
	for (size_t k = 1; k < c->noptions; k++)
		FUZZ_ASSERT(strcmp(c->options[k - 1].name, c->options[k].name) < 0);
	rfl_matrix_label(c, m->repeats, label);
	FUZZ_ASSERT(rfl_label_check(label, NULL) == RFL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_matrix_coverage cover;
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_matrix_parse((const char *)data, size, "matrix.json", &m, &err);

	fuzz_check(rc, m, &err, "matrix.json");
	if (rc == RFL_OK) {
		for (size_t i = 0; i < m->ncells; i++)
			check_cell(m, i);
		if (m->ncells < 1000) {
			rfl_matrix_cover(m, NULL, &cover);
			FUZZ_ASSERT(cover.missing == m->ncells * (size_t)m->repeats);
			rfl_matrix_coverage_fini(&cover);
		}
	}
	rfl_matrix_free(m);
	return 0;
}
