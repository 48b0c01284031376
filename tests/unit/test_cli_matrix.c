/*
 * What is shown of a large matrix: tables of models and batch sizes, runs that are not done under
 * their reasons, and the time that is left. A matrix of 20,000 cells is shown like one of four.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/cmd/matrix.h"

/* One model, so that all cells are in one table and alike. */
#define LARGE 5000

static struct rfl_matrix *parse(const char *text)
{
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_matrix_parse(text, strlen(text), "m.json", &m, &err), &err);
	return m;
}

/* Two environments of one name whose options differ: every model has two rows. */
static struct rfl_matrix *small_matrix(void)
{
	return parse("{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"repeats\": 2,"
		     "\"environments\": [{\"name\": \"lab\", \"backend\": \"cpu\"},"
		     "{\"name\": \"lab\", \"backend\": \"cpu\", \"options\": {\"seed\": 1},"
		     "\"models\": [\"alexnet\", \"vgg16\"], \"batch_sizes\": [8, 2]}],"
		     "\"models\": [\"vgg16\", \"resnet18\"], \"batch_sizes\": [4, 2],"
		     "\"precisions\": [\"fp32\"]}");
}

static struct rfl_matrix *large_matrix(void)
{
	struct rfl_matrix *m;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, "{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"repeats\": 1,"
			    "\"models\": [\"vgg16\"], \"precisions\": [\"fp32\"],"
			    "\"environments\": [");
	for (int i = 0; i < 4; i++)
		rfl_buf_printf(&text,
			       "%s{\"name\": \"lab\", \"backend\": \"cpu\","
			       "\"options\": {\"seed\": %d}}",
			       i ? "," : "", i);
	rfl_buf_puts(&text, "], \"batch_sizes\": [");
	for (int i = 1; i <= LARGE; i++)
		rfl_buf_printf(&text, "%s%d", i > 1 ? "," : "", i);
	rfl_buf_puts(&text, "]}");
	m = parse(rfl_buf_str(&text));
	assert_int_equal(m->ncells, 4 * LARGE);
	rfl_buf_fini(&text);
	return m;
}

/* ---- tables ---- */

static void a_row_for_each_model_and_variant(void **state)
{
	struct rfl_matrix *m = small_matrix();
	struct rfl_matrix_share shares[8];
	struct rfl_buf out;

	(void)state;
	assert_int_equal(m->ncells, 8);
	for (size_t i = 0; i < 8; i++) /* the third cell was not asked for */
		shares[i] = (struct rfl_matrix_share){ .asked = i == 2 ? 0 : 9, .done = i };
	rfl_buf_init(&out, 0);
	rfl_matrix_grid_render(m, shares, RFL_FORMAT_CSV, &out);
	assert_string_equal(rfl_buf_str(&out), "lab, fp32\n\n"
					       "model,bs 2,bs 4,bs 8\n"
					       "vgg16,1/9,0/9,6/9\n"
					       "vgg16 (2),7/9,-,-\n"
					       "resnet18,3/9,-,-\n"
					       "alexnet,5/9,-,4/9\n");
	rfl_buf_fini(&out);
	rfl_matrix_free(m);
}

/* ---- reasons ---- */

static void a_reason_stands_once(void **state)
{
	struct rfl_matrix *m = small_matrix();
	struct rfl_matrix_gap gaps[] = {
		{ 1, "missing", "no row" }, { 3, "oom", "no memory" },  { 4, "missing", "no row" },
		{ 5, "oom", "no memory" },  { 6, "crash", NULL },       { 7, "oom", "no room" },
		{ 8, "missing", "no row" }, { 9, "missing", "no row" },
	};
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	rfl_matrix_gaps_render(m, gaps, 0, RFL_FORMAT_CSV, &out);
	assert_int_equal(out.len, 0);
	rfl_matrix_gaps_render(m, gaps, RFL_ARRAY_LEN(gaps), RFL_FORMAT_CSV, &out);
	assert_string_equal(
		rfl_buf_str(&out),
		"labels,runs,status,reason\n"
		"\"lab_vgg16_fp32_bs2_run1, lab_alexnet_fp32_bs8_run1 and 2 more\",4,missing,no "
		"row\n"
		"\"lab_resnet18_fp32_bs2_run1, lab_alexnet_fp32_bs2_run1\",2,oom,no memory\n"
		"lab_vgg16_fp32_bs8_run1,1,crash,\n"
		"lab_vgg16_fp32_bs2_run1,1,oom,no room\n");
	rfl_buf_fini(&out);
	rfl_matrix_free(m);
}

/* ---- the time that is left ---- */

static void as_others_of_the_cell_the_model_or_all(void **state)
{
	struct rfl_matrix *m = small_matrix();
	struct rfl_matrix_left left;

	(void)state;
	rfl_matrix_left_init(m, &left);
	assert_true(isnan(rfl_matrix_left_cell(&left, 0)));
	rfl_matrix_left_add(&left, 0, (double)NAN);
	assert_true(isnan(rfl_matrix_left_cell(&left, 0)));
	rfl_matrix_left_add(&left, 0, 8); /* vgg16 at 4, twice */
	rfl_matrix_left_add(&left, 0, 12);
	assert_close(rfl_matrix_left_cell(&left, 0), 10, 1e-12);
	assert_close(rfl_matrix_left_cell(&left, 1), 5, 1e-12); /* per sample */
	assert_close(rfl_matrix_left_cell(&left, 6), 20, 1e-12);
	assert_close(rfl_matrix_left_cell(&left, 2), 10, 1e-12); /* resnet18: as any run */
	rfl_matrix_left_add(&left, 4, 4);                        /* alexnet at 8 */
	assert_close(rfl_matrix_left_cell(&left, 5), 1, 1e-12);
	assert_close(rfl_matrix_left_cell(&left, 2), 8, 1e-12);
	rfl_matrix_left_fini(&left);
	rfl_matrix_free(m);
}

/* ---- size ---- */

/* What grows with the square of the cells needs minutes here; a tenth of a second is what it takes.
 */
static void a_large_matrix_takes_no_time(void **state)
{
	const double begin_s = rfl_clock_s();
	struct rfl_matrix *m = large_matrix();
	struct rfl_matrix_share *shares = rfl_alloc_array(m->ncells, sizeof(*shares));
	struct rfl_matrix_gap *gaps = rfl_alloc_array(m->ncells, sizeof(*gaps));
	struct rfl_matrix_left left;
	struct rfl_buf out;
	double sum = 0;

	(void)state;
	assert_non_null(shares);
	assert_non_null(gaps);
	for (size_t i = 0; i < m->ncells; i++) {
		shares[i] = (struct rfl_matrix_share){ .asked = 1 };
		gaps[i] = (struct rfl_matrix_gap){ i, "missing", i % 2 ? "odd" : "even" };
	}
	rfl_buf_init(&out, 0);
	rfl_matrix_grid_render(m, shares, RFL_FORMAT_CSV, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "\nvgg16 (4),0/1,"));
	rfl_matrix_gaps_render(m, gaps, m->ncells, RFL_FORMAT_CSV, &out);
	assert_non_null(strstr(rfl_buf_str(&out), " more\",10000,missing,odd"));
	rfl_matrix_left_init(m, &left);
	rfl_matrix_left_add(&left, 0, 1); /* one sample */
	for (size_t i = 0; i < m->ncells; i++)
		sum += rfl_matrix_left_cell(&left, i);
	assert_close(sum, 4.0 * LARGE * (LARGE + 1) / 2, 1e-12);
	assert_true(rfl_clock_s() - begin_s < 30);
	rfl_matrix_left_fini(&left);
	rfl_buf_fini(&out);
	free(gaps);
	free(shares);
	rfl_matrix_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_for_each_model_and_variant),
		cmocka_unit_test(a_reason_stands_once),
		cmocka_unit_test(as_others_of_the_cell_the_model_or_all),
		cmocka_unit_test(a_large_matrix_takes_no_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
