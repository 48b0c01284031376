/*
 * Every chip that CUPTI knows: each metric that a formula names exists there, and sets of metrics
 * take the passes that are expected. Asks NVIDIA's library, which needs no GPU for it.
 */
#include "tests/unit/rfl_test.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/csv.h"
#include "profile/chips.h"
#include "profile/cupti/plan.h"
#include "profile/formula.h"
#include "tests/unit/cupti_rig.h"

/* The version that tables and names were made with (12.8 agrees); a later one has other chips and
 * may schedule otherwise. */
#define MADE_WITH 130001

static struct rfl_cupti *lib;

static void the_table_of_chips_is_that_of_cupti(void **state)
{
	const char *const *names = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t n = 0;

	(void)state;
	assert_ok(rfl_cupti_chips(lib, &names, &n, &err), &err);
	assert_true(n >= 20);
	for (size_t i = 0; i < n; i++) {
		if (!rfl_chip_find(names[i]))
			print_error("chip %s of CUPTI is not in profile/chips.c\n", names[i]);
		if (lib->version <= MADE_WITH)
			assert_non_null(rfl_chip_find(names[i]));
	}
}

/* How many metrics of a chip's formulas it does not have. */
static size_t absent_metrics(struct rfl_cupti_host *h, const struct rfl_formulas *f,
			     const char *chip, size_t *asked)
{
	size_t absent = 0;

	for (size_t slot = 0; slot < f->nslots; slot++) {
		struct rfl_err err = RFL_ERR_INIT;

		if (f->slots[slot].is_report)
			continue;
		(*asked)++;
		if (rfl_cupti_metric(h, f->slots[slot].name, NULL, &err) == RFL_OK)
			continue;
		print_error("%s (family %s): %s\n", chip, f->family, err.msg);
		absent++;
	}
	return absent;
}

static void every_metric_of_a_formula_exists(void **state)
{
	size_t asked = 0, absent = 0, chips = 0;
	const struct rfl_chip *chip;

	(void)state;
	for (size_t i = 0; (chip = rfl_chip_at(i)); i++) {
		struct rfl_formulas *f = NULL;
		struct rfl_cupti_host *h = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		enum rfl_rc rc;

		assert_ok(rfl_formulas_new(chip->name, &f, &err), &err);
		rc = rfl_cupti_host_open(lib, chip->name, NULL, &h, &err);
		if (rc == RFL_OK) {
			absent += absent_metrics(h, f, chip->name, &asked);
			chips++;
		} else if (rc == RFL_ENOTFOUND) { /* newer than this CUPTI */
			assert_true(lib->version < MADE_WITH);
		} else { /* listed, but not described: its formulas may name no metric */
			assert_int_equal(rc, RFL_EUNSUPPORTED);
			for (size_t slot = 0; slot < f->nslots; slot++)
				assert_true(f->slots[slot].is_report);
		}
		rfl_cupti_host_close(h);
		rfl_formulas_free(f);
	}
	print_message("%zu metrics asked for on %zu chips\n", asked, chips);
	assert_int_equal(absent, 0);
	assert_true(chips >= (lib->version < MADE_WITH ? 20 : 29));
	assert_true(asked > chips * 20);
}

/* ------------------------------------------------------------------ passes */

struct chip_sets {
	struct rfl_formulas *f;
	struct rfl_metric_set core, sass, dtypes, link, dtype;
};

static void add_all(struct rfl_metric_set *s, const struct rfl_formulas *f,
		    const enum rfl_quantity *q, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const int way = rfl_metric_set_way(f, q[i], NULL);
		const struct rfl_formula_way *w = way < 0 ? NULL : &f->quantities[q[i]].ways[way];

		for (size_t k = 0; w && k < w->nterms; k++)
			s->names[s->n++] = f->slots[w->terms[k].slot[0]].name;
	}
}

/* The sets of tests/data/profile/cupti_passes.csv, made from the formulas. */
static void make_sets(struct chip_sets *s, const char *dtype)
{
	static const enum rfl_quantity core[] = { RFL_QUANTITY_TIME,      RFL_QUANTITY_CYCLES,
						  RFL_QUANTITY_DRAM_READ, RFL_QUANTITY_DRAM_WRITE,
						  RFL_QUANTITY_L2,        RFL_QUANTITY_L1 };
	static const enum rfl_quantity sass[] = { RFL_QUANTITY_FLOPS_FP32, RFL_QUANTITY_FLOPS_FP16,
						  RFL_QUANTITY_FLOPS_FP64 };
	static const enum rfl_quantity dtypes[] = {
		RFL_QUANTITY_FLOPS_TENSOR_FP16, RFL_QUANTITY_FLOPS_TENSOR_BF16,
		RFL_QUANTITY_FLOPS_TENSOR_TF32, RFL_QUANTITY_FLOPS_TENSOR_FP64,
		RFL_QUANTITY_FLOPS_TENSOR_FP8,  RFL_QUANTITY_FLOPS_TENSOR_FP4
	};
	static const enum rfl_quantity pcie[] = { RFL_QUANTITY_PCIE_READ, RFL_QUANTITY_PCIE_WRITE };

	add_all(&s->core, s->f, core, RFL_ARRAY_LEN(core));
	add_all(&s->sass, s->f, sass, RFL_ARRAY_LEN(sass));
	add_all(&s->dtypes, s->f, dtypes, RFL_ARRAY_LEN(dtypes));
	add_all(&s->link, s->f, pcie, RFL_ARRAY_LEN(pcie));
	if (dtype[0] != '\0')
		s->dtype.names[s->dtype.n++] = dtype;
	assert_true(s->sass.n == 9 || s->sass.n == 12); /* with three packed ones */
}

static void join(struct rfl_metric_set *to, const struct rfl_metric_set *from)
{
	for (size_t i = 0; i < from->n; i++)
		to->names[to->n++] = from->names[i];
}

/* Passes of up to three sets together; NaN when the one that matters is empty. */
static double passes(struct rfl_cupti_host *h, const struct rfl_metric_set *a,
		     const struct rfl_metric_set *b, const struct rfl_metric_set *c)
{
	struct rfl_metric_set all = *a;
	struct rfl_err err = RFL_ERR_INIT;
	size_t n = 0;

	if (b)
		join(&all, b);
	if (c)
		join(&all, c);
	if (all.n == 0)
		return NAN;
	assert_ok(rfl_cupti_passes(h, all.names, all.n, &n, NULL, &err), &err);
	return (double)n;
}

static int compare(const struct rfl_csv *csv, const char *column, double found)
{
	struct rfl_err err = RFL_ERR_INIT;
	double expected = 0;

	assert_ok(rfl_csv_double(csv, rfl_csv_find(csv, column), &expected, &err), &err);
	if (expected == found || (isnan(expected) && isnan(found)))
		return 0;
	print_error("%s, %s: %g passes, not %g\n", rfl_csv_text(csv, 0), column, found, expected);
	return 1;
}

static int check_row(const struct rfl_csv *csv)
{
	struct chip_sets s = { .f = NULL };
	struct rfl_cupti_host *h = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const char *chip = rfl_csv_text(csv, 0);
	int wrong = 0;

	assert_ok(rfl_formulas_new(chip, &s.f, &err), &err);
	assert_ok(rfl_cupti_host_open(lib, chip, NULL, &h, &err), &err);
	make_sets(&s, rfl_csv_text(csv, 1));
	wrong += compare(csv, "core", passes(h, &s.core, NULL, NULL));
	wrong += compare(csv, "core_dtype", s.dtype.n ? passes(h, &s.core, &s.dtype, NULL) : NAN);
	wrong += compare(csv, "sass", passes(h, &s.sass, NULL, NULL));
	wrong += compare(csv, "core_dtype_sass", passes(h, &s.core, &s.dtype, &s.sass));
	wrong += compare(csv, "all_float", passes(h, &s.dtypes, NULL, NULL));
	wrong += compare(csv, "core_all_sass", passes(h, &s.core, &s.dtypes, &s.sass));
	wrong += compare(csv, "pcie", passes(h, &s.link, NULL, NULL));
	rfl_cupti_host_close(h);
	rfl_formulas_free(s.f);
	return wrong;
}

/* Rows of a table of tests/data/profile: every chip that CUPTI describes, once. */
static void check_table(const char *file, int (*check)(const struct rfl_csv *csv))
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	bool more = false;
	size_t rows = 0;
	int wrong = 0;

	if (lib->version > MADE_WITH) {
		print_message("CUPTI %u: the table is that of %d\n", lib->version, MADE_WITH);
		skip();
	}
	assert_ok(rfl_csv_open(data_path(file), &csv, &err), &err);
	for (;;) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
		wrong += check(csv);
		rows++;
	}
	rfl_csv_close(csv);
	assert_int_equal(wrong, 0);
	assert_int_equal(rows, 29);
}

static void sets_take_the_passes_that_are_known(void **state)
{
	(void)state;
	check_table("profile/cupti_passes.csv", check_row);
}

/* Whether a quantity that the chip can count whole is counted in part only. */
static bool is_needless_part(const struct rfl_formulas *f, enum rfl_quantity q,
			     const struct rfl_metric_set *set)
{
	const int first = rfl_metric_set_way(f, q, NULL), way = rfl_metric_set_way(f, q, set);

	return way >= 0 && f->quantities[q].ways[way].kind != RFL_WAY_FULL &&
	       f->quantities[q].ways[first].kind == RFL_WAY_FULL;
}

static double chosen(struct rfl_cupti_host *h, const struct rfl_formulas *f, unsigned sets,
		     const char *precision)
{
	struct rfl_metric_set set;
	struct rfl_err err = RFL_ERR_INIT;
	size_t n = 0;

	assert_ok(rfl_metric_set_choose(h, f, sets, precision, &set, &n, &err), &err);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (is_needless_part(f, (enum rfl_quantity)q, &set))
			fail_msg("%s, %s: %s is counted in part", f->family, precision,
				 rfl_quantity_info((enum rfl_quantity)q)->name);
	return set.n ? (double)n : NAN;
}

static int check_sessions(const struct rfl_csv *csv)
{
	static const char *const precisions[] = { "fp32", "tf32", "amp", "bf16", "fp16" };
	struct rfl_formulas *f = NULL;
	struct rfl_cupti_host *h = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const char *chip = rfl_csv_text(csv, 0);
	int wrong = 0;

	assert_ok(rfl_formulas_new(chip, &f, &err), &err);
	assert_ok(rfl_cupti_host_open(lib, chip, NULL, &h, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(precisions); i++)
		wrong += compare(csv, precisions[i], chosen(h, f, RFL_SET_CORE, precisions[i]));
	wrong += compare(csv, "flops", chosen(h, f, RFL_SET_FLOPS, "amp"));
	wrong += compare(csv, "audit", chosen(h, f, RFL_SET_AUDIT, "amp"));
	wrong += compare(csv, "links", chosen(h, f, RFL_SET_LINKS, "amp"));
	rfl_cupti_host_close(h);
	rfl_formulas_free(f);
	return wrong;
}

/* What a run costs: the core of each precision, and the other sets. */
static void sessions_take_the_passes_that_are_known(void **state)
{
	(void)state;
	check_table("profile/cupti_sessions.csv", check_sessions);
}

static bool has(const struct rfl_metric_set *s, const char *part)
{
	for (size_t i = 0; i < s->n; i++)
		if (strstr(s->names[i], part))
			return true;
	return false;
}

/* Which count of matrix FLOPs is taken into the core: one that is whole. */
static void the_core_takes_the_whole_count(void **state)
{
	static const struct {
		const char *chip, *precision, *with, *without;
	} cases[] = {
		{ "GH100", "fp32", "src_tf32", "src_fp16" },
		{ "GB100", "fp32", "srcnode_gpc.sum", "src_tf32" }, /* it would take two more */
		{ "GB100", "tf32", "src_tf32", "src_bf16" },
		{ "GH100", "amp", "tensor_src_fp16.sum", "op_hgmma_src_fp16.sum" },
		{ "GH100", "bf16", "read_bytes_pipe_tma.sum", "lts__t_bytes.sum" },
		{ "GA100", "amp", "src_fp16_dst_fp16.sum", "pipe_tma" },
		{ "GV100", "amp", "src_fp16_dst_fp16.sum", "src_bf16" }, /* both fit */
		{ "GA100", "bf16", "src_bf16_dst_fp32.sum", "src_fp16" },
		{ "GB202", "amp", "dram__bytes_op_read.sum", "dram__bytes_read.sum" },
		{ "GB10B", "amp", "lts__d_sectors_fill_sysmem.sum", "dram__" },
		{ "GA100", NULL, "dram__bytes_read.sum", "ops_path" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_formulas *f = NULL;
		struct rfl_cupti_host *h = NULL;
		struct rfl_metric_set set;
		struct rfl_err err = RFL_ERR_INIT;
		size_t n = 0;

		assert_ok(rfl_formulas_new(cases[i].chip, &f, &err), &err);
		assert_ok(rfl_cupti_host_open(lib, cases[i].chip, NULL, &h, &err), &err);
		assert_ok(rfl_metric_set_choose(h, f, RFL_SET_CORE, cases[i].precision, &set, &n,
						&err),
			  &err);
		assert_true(has(&set, cases[i].with));
		assert_false(has(&set, cases[i].without));
		rfl_cupti_host_close(h);
		rfl_formulas_free(f);
	}
}

/* ------------------------------------------------------------------ refusals */

static void a_metric_is_refused_with_its_reason(void **state)
{
	static const struct {
		const char *chip, *metric, *says;
	} cases[] = {
		{ "GH100", "flop_count_sp.sum",
		  "GH100 has no metric 'flop_count_sp.sum', a name from nvprof" },
		{ "GB202", "dram__bytes_read.sum", "similar: dram__bytes_op_read" },
		{ "GH100", "dram__bytes_read", "needs a rollup, for example dram__bytes_read.sum" },
		{ "GH100", "l1tex__t_sector_hit_rate", "needs a rollup" },
		{ "GH100", "sm__throughput", "needs a rollup" },
		{ "GH100", "dram__bytes_read.pct", "no metric" },
		{ "GH100", "", "no metric" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_cupti_host *h = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_cupti_host_metric_properties info = { .unit = "untouched" };

		assert_ok(rfl_cupti_host_open(lib, cases[i].chip, NULL, &h, &err), &err);
		assert_int_equal(rfl_cupti_metric(h, cases[i].metric, &info, &err), RFL_ENOTFOUND);
		assert_says(&err, cases[i].says);
		assert_string_equal(info.unit, "untouched");
		rfl_cupti_host_close(h);
	}
}

static void a_metric_has_a_unit_and_a_description(void **state)
{
	static const char *const good[] = { "dram__bytes_read.sum", "l1tex__t_sector_hit_rate.pct",
					    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
					    "dram__bytes_read.sum.per_second" };
	struct rfl_cupti_host *h = NULL;
	struct rfl_cupti_host_metric_properties info;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_cupti_host_open(lib, "GH100", NULL, &h, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(good); i++)
		assert_ok(rfl_cupti_metric(h, good[i], &info, &err), &err);
	assert_ok(rfl_cupti_metric(h, good[0], &info, &err), &err);
	assert_string_equal(info.unit, "byte");
	assert_string_equal(info.hw_unit, "dram");
	assert_non_null(strstr(info.description, "DRAM"));
	assert_ok(rfl_cupti_describe(h, "dram__bytes_read", &info, &err), &err);
	assert_string_equal(info.unit, "byte");
	rfl_cupti_host_close(h);
}

static void a_set_is_refused_with_the_metric_that_does_not_fit(void **state)
{
	static const char *const links[] = { "gpu__time_duration.sum", "dram__bytes_read.sum",
					     "lts__t_bytes.sum", "pcie__read_bytes.sum" };
	static const char *const typo[] = { "dram__bytes_read.sum", "dram__bytes_wirte.sum" };
	struct rfl_cupti_host *h = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t n = 77;

	(void)state;
	assert_ok(rfl_cupti_host_open(lib, "GH100", NULL, &h, &err), &err);
	assert_int_equal(rfl_cupti_passes(h, links, 4, &n, NULL, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "cannot count 'pcie__read_bytes.sum' together with");
	rfl_err_clear(&err);
	assert_int_equal(rfl_cupti_passes(h, typo, 2, &n, NULL, &err), RFL_ENOTFOUND);
	assert_says(&err, "dram__bytes_wirte.sum");
	assert_says(&err, "similar: dram__bytes_write");
	rfl_err_clear(&err);
	assert_int_equal(rfl_cupti_passes(h, links, 0, &n, NULL, &err), RFL_EINVAL);
	assert_int_equal(n, 77);
	rfl_err_clear(&err); /* and it can be used after all that */
	assert_ok(rfl_cupti_passes(h, links, 3, &n, NULL, &err), &err);
	assert_int_equal(n, 1);
	rfl_cupti_host_close(h);
}

static void a_chip_is_refused_with_those_that_there_are(void **state)
{
	struct rfl_cupti_host *h = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(rfl_cupti_host_open(lib, "gh100", NULL, &h, &err), RFL_ENOTFOUND);
	assert_says(&err, "GH100");
	assert_null(h);
}

static void all_metrics_are_listed(void **state)
{
	struct rfl_cupti_host *h = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const char **metrics = NULL;
	size_t n = 0;

	(void)state;
	assert_ok(rfl_cupti_host_open(lib, "GV100", NULL, &h, &err), &err);
	assert_ok(rfl_cupti_metrics(h, &metrics, &n, &err), &err);
	free(metrics);
	rfl_cupti_host_close(h);
	assert_in_range(n, 1500, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_of_chips_is_that_of_cupti),
		cmocka_unit_test(every_metric_of_a_formula_exists),
		cmocka_unit_test(sets_take_the_passes_that_are_known),
		cmocka_unit_test(sessions_take_the_passes_that_are_known),
		cmocka_unit_test(the_core_takes_the_whole_count),
		cmocka_unit_test(a_metric_is_refused_with_its_reason),
		cmocka_unit_test(a_metric_has_a_unit_and_a_description),
		cmocka_unit_test(a_set_is_refused_with_the_metric_that_does_not_fit),
		cmocka_unit_test(a_chip_is_refused_with_those_that_there_are),
		cmocka_unit_test(all_metrics_are_listed),
	};
	int failed;

	lib = cupti_for_tests();
	if (!lib)
		return 77;
	print_message("%s\n", lib->path);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rfl_cupti_close(lib);
	return failed;
}
