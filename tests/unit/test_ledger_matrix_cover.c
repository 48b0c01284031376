/*
 * Which runs of a matrix a ledger has: by cell and label, by label alone, by columns, in the order
 * of the file.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "ledger/matrix.h"

/* What a test says of a row; NULL and 0 are "not known", cell 'x' is one of no matrix. */
struct row {
	int cell; /* 1 + index, 0: none, -1: of another matrix */
	const char *label, *status;
	const char *env, *model, *precision;
	int64_t batch, requested, micro;
	int64_t world, rank; /* rank: 1 + number, 0: of all processes, or of the only one */
};

static struct rfl_matrix *small_matrix(void)
{
	static const char text[] =
		"{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"repeats\": 2,"
		"\"environments\": [{\"name\": \"lab\", \"backend\": \"cpu\"}],"
		"\"models\": [\"resnet18\", \"vgg16\"], \"batch_sizes\": [2, 4],"
		"\"precisions\": [\"fp32\"]}";
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_matrix_parse(text, strlen(text), "m.json", &m, &err), &err);
	assert_int_equal(m->ncells, 4);
	return m;
}

static struct rfl_ledger make_ledger(const struct rfl_matrix *m, const struct row *rows, size_t n)
{
	struct rfl_ledger l = { .nrows = n, .rows = calloc(n, sizeof(*l.rows)) };

	assert_non_null(l.rows);
	for (size_t i = 0; i < n; i++) {
		struct rfl_ledger_row *r = &l.rows[i];
		const char *cell = rows[i].cell > 0   ? m->cells[rows[i].cell - 1].id
				   : rows[i].cell < 0 ? "0123456789abcdef"
						      : NULL;

		rfl_ledger_row_init(r);
		rfl_field_set(&r->cell, cell);
		rfl_field_set(&r->label, rows[i].label);
		rfl_field_set(&r->status, rows[i].status);
		rfl_field_set(&r->env, rows[i].env);
		rfl_field_set(&r->model, rows[i].model);
		rfl_field_set(&r->precision, rows[i].precision);
		if (rows[i].batch)
			r->batch = rows[i].batch;
		if (rows[i].micro)
			r->micro_batch = rows[i].micro;
		if (rows[i].requested)
			r->requested_batch = rows[i].requested;
		if (rows[i].world)
			r->world_size = rows[i].world;
		r->rank = rows[i].rank - 1;
	}
	return l;
}

/* What is covered by some rows, as one line: a digit per run, repeat by repeat. D done, F failed, -
 * missing; then surplus, foreign and, of these, stale. */
static void assert_cover(const struct row *rows, size_t n, const char *expected)
{
	struct rfl_matrix *m = small_matrix();
	struct rfl_ledger l = make_ledger(m, rows, n);
	struct rfl_matrix_coverage c;
	char text[64];
	size_t len = 0;

	rfl_matrix_cover(m, n ? &l : NULL, &c);
	assert_int_equal(c.nruns, 8);
	assert_int_equal(c.done + c.failed + c.missing, c.nruns);
	for (size_t i = 0; i < c.nruns; i++) {
		assert_int_equal(c.runs[i].cell, i % 4);
		assert_int_equal(c.runs[i].repeat, i / 4 + 1);
		text[len++] = "D-F"[c.runs[i].state];
		assert_int_equal(c.runs[i].row == NULL, c.runs[i].state == RFL_MATRIX_MISSING);
	}
	(void)snprintf(text + len, sizeof(text) - len, " %zu %zu", c.surplus, c.foreign);
	if (c.stale)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " %zu", c.stale);
	assert_string_equal(text, expected);
	rfl_matrix_coverage_fini(&c);
	for (size_t i = 0; i < n; i++)
		rfl_ledger_row_fini(&l.rows[i]);
	free(l.rows);
	rfl_matrix_free(m);
}

#define COVER(expected, ...)                                                  \
	do {                                                                  \
		static const struct row rows[] = { __VA_ARGS__ };             \
		assert_cover(rows, sizeof(rows) / sizeof(rows[0]), expected); \
	} while (0)

static void without_a_ledger_all_is_missing(void **state)
{
	(void)state;
	assert_cover(NULL, 0, "-------- 0 0");
}

static void a_row_belongs_to_its_cell_and_label(void **state)
{
	(void)state;
	COVER("D----F-- 0 4 2", { 1, "lab_resnet18_fp32_bs2_run1", "ok", .batch = 2 },
	      { 2, "lab_resnet18_fp32_bs4_run2", "oom", .batch = 4 },
	      { 3, "lab_vgg16_fp32_bs2_run3", "ok", .batch = 2 },  /* beyond the repeats */
	      { -1, "lab_vgg16_fp32_bs2_run1", "ok", .batch = 2 }, /* other options */
	      { -1, "lab_vgg16_fp32_bs2_run2", "ok", .batch = 2 },
	      { -1, "lab_vgg16_fp32_bs8_run1", "ok", .batch = 8 } /* of another matrix */);
	/* of a smaller batch than was asked for: no measurement of the cell */
	COVER("-F------ 0 1",
	      { 2, "lab_resnet18_fp32_bs4_run1", "oom", .batch = 4, .requested = 4 },
	      { 2, "lab_resnet18_fp32_bs4_run1", "ok", .batch = 2, .requested = 4 });
}

static void what_is_done_stays_done(void **state)
{
	(void)state;
	COVER("D------- 1 0", { 1, "lab_resnet18_fp32_bs2_run1", .status = "oom" },
	      { 1, "lab_resnet18_fp32_bs2_run1", .status = "ok" },
	      { 1, "lab_resnet18_fp32_bs2_run1", .status = "crash" },
	      { 1, "lab_resnet18_fp32_bs2_run1", .status = "ok" });
}

static void rows_without_a_cell_are_found_by_their_label(void **state)
{
	(void)state;
	COVER("D-D---DF 0 3", { 0, "lab_resnet18_fp32_bs2_run1", .status = "ok" },
	      { 0, "lab_vgg16_fp32_bs2_r1_20251114_115032", .status = "ok" },
	      { 0, "lab_vgg16_fp32_bs2_run2", "ok", "other", "vgg16", NULL, .batch = 2 },
	      { 0, "lab_vgg16_fp32_bs4_run2", .status = "nan" },
	      { 0, "lab_vgg16_amp_bs4_run2", .status = "ok" },
	      { 0, "lab_vgg16_fp32_bs4_run1_prof", .status = "ok" },
	      { 0, "tuesday", .status = "ok" });
}

/* Who mistypes a label has not measured what it names. */
static void a_label_that_its_row_contradicts_is_no_run(void **state)
{
	(void)state;
	COVER("D---D--- 0 2",
	      { 0, "lab_resnet18_fp32_bs2_run1", "ok", NULL, "resnet18", "amp", .batch = 2 },
	      { 0, "lab_resnet18_fp32_bs2_run1", "ok", NULL, "resnet18", "fp32", .batch = 4 },
	      { 0, "lab_resnet18_fp32_bs2_run1", "ok", NULL, "resnet18", "fp32", .batch = 2 },
	      { 0, "lab_resnet18_fp32_bs2_run2", "ok", NULL, "resnet18", "fp32", .batch = 8,
		.micro = 2 });
}

/* The numbers are given by the order; a failed row keeps its place until an ok one comes. */
static void rows_without_a_number_fill_in_their_order(void **state)
{
	(void)state;
	COVER("D------- 0 0", { 0, "lab_resnet18_fp32_bs2", .status = "ok" });
	COVER("D---D--- 1 0", { 0, "lab_resnet18_fp32_bs2", .status = "oom" },
	      { 0, "lab_resnet18_fp32_bs2", .status = "ok" },
	      { 0, NULL, "ok", "lab", "resnet18", "fp32", .batch = 2 },
	      { 0, "mine", "ok", "lab", "resnet18", "fp32", .batch = 2 });
	COVER("F------- 0 1", { 0, NULL, "timeout", "lab", "resnet18", "fp32", .batch = 2 },
	      { 0, NULL, "ok", "lab", "resnet18", NULL, .batch = 2 });
}

/* Every process writes a row, and rank 0 one of all: that one is the run, the others are neither
 * repeats nor rows of another program. */
static void rows_of_single_ranks_are_no_runs(void **state)
{
	(void)state;
	COVER("D------- 0 0",
	      { 1, "lab_resnet18_fp32_bs2_run1_rank1", "ok", .batch = 2, .world = 2, .rank = 2 },
	      { 1, "lab_resnet18_fp32_bs2_run1_rank0", "ok", .batch = 2, .world = 2, .rank = 1 },
	      { 1, "lab_resnet18_fp32_bs2_run1", "ok", .batch = 4, .requested = 4, .world = 2 });
	/* a rank that died is not what the run has failed of, one that is ok does not make it done
	 */
	COVER("-------- 0 0",
	      { 1, "lab_resnet18_fp32_bs2_run1_rank1", "ok", .batch = 2, .world = 2, .rank = 2 },
	      { 1, "lab_resnet18_fp32_bs2_run1_rank0", "crash", .batch = 2, .world = 2,
		.rank = 1 });
	/* run by hand: without the id of a cell several processes are of no run, with all or
	 * without */
	COVER("-------- 0 1",
	      { 0, "lab_resnet18_fp32_bs2_w2_run1_rank0", "ok", "lab", "resnet18", "fp32", 2,
		.world = 2, .rank = 1 },
	      { 0, "lab_resnet18_fp32_bs2_w2_run1", "ok", "lab", "resnet18", "fp32", 4,
		.world = 2 });
	/* one process under a launcher has a rank and is a run all the same */
	COVER("D------- 0 0",
	      { 1, "lab_resnet18_fp32_bs2_run1", "ok", .batch = 2, .world = 1, .rank = 1 });
}

/* The row that counts: the last that is ok, else the last. */
static void the_row_that_counts(void **state)
{
	static const struct row rows[] = {
		{ 1, "lab_resnet18_fp32_bs2_run1", .status = "ok" },
		{ 1, "lab_resnet18_fp32_bs2_run1", .status = "ok" },
		{ 1, "lab_resnet18_fp32_bs2_run1", .status = "oom" },
		{ 2, "lab_resnet18_fp32_bs4_run1", .status = "oom" },
		{ 2, "lab_resnet18_fp32_bs4_run1", .status = "crash" },
	};
	struct rfl_matrix *m = small_matrix();
	struct rfl_ledger l = make_ledger(m, rows, RFL_ARRAY_LEN(rows));
	struct rfl_matrix_coverage c;

	(void)state;
	rfl_matrix_cover(m, &l, &c);
	assert_ptr_equal(c.runs[0].row, &l.rows[1]);
	assert_int_equal(c.runs[0].ok, 2);
	assert_int_equal(c.runs[0].failed, 1);
	assert_ptr_equal(c.runs[1].row, &l.rows[4]);
	assert_int_equal(c.runs[1].failed, 2);
	rfl_matrix_coverage_fini(&c);
	for (size_t i = 0; i < l.nrows; i++)
		rfl_ledger_row_fini(&l.rows[i]);
	free(l.rows);
	rfl_matrix_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_ledger_all_is_missing),
		cmocka_unit_test(a_row_belongs_to_its_cell_and_label),
		cmocka_unit_test(what_is_done_stays_done),
		cmocka_unit_test(rows_without_a_cell_are_found_by_their_label),
		cmocka_unit_test(a_label_that_its_row_contradicts_is_no_run),
		cmocka_unit_test(rows_without_a_number_fill_in_their_order),
		cmocka_unit_test(rows_of_single_ranks_are_no_runs),
		cmocka_unit_test(the_row_that_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
