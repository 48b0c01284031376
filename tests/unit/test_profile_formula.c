/* Formulas: the syntax and its refusals, every family that was compiled in, values by hand. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "profile/formula.h"

static struct rfl_formulas *parse(const char *text)
{
	struct rfl_formulas *f = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_formulas_parse(text, strlen(text), "t", &f, &err), &err);
	return f;
}

static struct rfl_formulas *of_chip(const char *chip)
{
	struct rfl_formulas *f = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_formulas_new(chip, &f, &err), &err);
	return f;
}

/* Values by name; the others are not there. */
struct given {
	const char *name;
	double value;
};

static double *slots_of(const struct rfl_formulas *f, const struct given *given, size_t n)
{
	double *slots = calloc(f->nslots, sizeof(*slots));

	assert_non_null(slots);
	for (size_t i = 0; i < f->nslots; i++)
		slots[i] = NAN;
	for (size_t i = 0; i < n; i++) {
		int slot = rfl_formulas_slot(f, given[i].name, strlen(given[i].name));

		if (slot < 0)
			fail_msg("no formula names %s", given[i].name);
		slots[slot] = given[i].value;
	}
	return slots;
}

static void eval(const struct rfl_formulas *f, const struct given *given, size_t n,
		 double value[RFL_QUANTITY_COUNT], int way[RFL_QUANTITY_COUNT])
{
	double *slots = slots_of(f, given, n);

	rfl_formulas_eval(f, slots, value, way);
	free(slots);
}

/* --- the syntax ------------------------------------------------------------------------------ */

static void refuses_with_place_and_reason(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "famly a", "t:1: expected a statement or a quantity, not 'famly'" },
		{ "time_s", "t:1: expected '=', '|=' or 'impossible', not 'the end of the "
			    "statement'" },
		{ "time_s =", "t:1: expected a metric, not 'the end of the statement'" },
		{ "time_s = a |", "t:1: expected a metric, not 'the end of the statement'" },
		{ "time_s = a +\n\t| b", "t:2: expected a metric, not '|'" },
		{ "time_s = 2 3 x", "t:1: expected a metric, not '3'" },
		{ "time_s = 0 x", "t:1: expected a weight above 0, not '0'" },
		{ "time_s = 1x y", "t:1: expected a weight above 0, not '1x'" },
		{ "time_s = a b", "t:1: expected the end of the statement, not 'b'" },
		{ "time_s = a\ntime_s = b",
		  "t:2: expected '|=' after an earlier formula, not '='" },
		{ "time_s = a * dram_bytes", "t:1: expected a second metric, or one quantity that "
					     "is computed earlier, not 'dram_bytes'" },
		{ "cycles = a * time_s * time_s", "t:1: expected a second metric, or one quantity "
						  "that is computed earlier, not 'time_s'" },
		{ "cycles = a * b * c", "t:1: expected a second metric, or one quantity that is "
					"computed earlier, not 'c'" },
		{ "time_s impossible",
		  "t:1: expected a reason in \"quotes\", not 'the end of the statement'" },
		{ "time_s impossible why", "t:1: expected a reason in \"quotes\", not 'why'" },
		{ "time_s impossible \"why",
		  "t:1: expected text, with both quotes on one line, not 'why'" },
		{ "time_s = 'x\n\ty'",
		  "t:1: expected text, with both quotes on one line, not 'x?\?y'" },
		{ "time_s = ''", "t:1: expected text, with both quotes on one line, not ''" },
		{ "time_s = a partial",
		  "t:1: expected a remark in \"quotes\", not 'the end of the statement'" },
		{ "use nothing", "t:1: expected the name of a part, not 'nothing'" },
		{ "use", "t:1: expected the name of a part, not 'the end of the statement'" },
		{ "use hopper", "t:1: expected the name of a part, not 'hopper'" },
		{ "subtract x y \"z\"", "t:1: expected a quantity, not 'x'" },
		{ "subtract", "t:1: expected a quantity, not 'the end of the statement'" },
		{ "subtract cycles 2 y",
		  "t:1: expected a reason in \"quotes\", not 'the end of the statement'" },
		{ "exclude cycles a b", "t:1: expected '=', not 'b'" },
		{ "alias sm__", "t:1: expected a prefix of names, not 'the end of the statement'" },
		{ "alias sm__ 'x'", "t:1: expected a prefix of names, not 'x'" },
		{ "alias a b c", "t:1: expected the end of the statement, not 'c'" },
		{ "command ncu", "t:1: expected a command in \"quotes\", not 'ncu'" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_formulas *f = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		enum rfl_rc rc =
			rfl_formulas_parse(cases[i].text, strlen(cases[i].text), "t", &f, &err);

		assert_string_equal(err.msg, cases[i].message);
		assert_int_equal(rc, RFL_EFORMAT);
		assert_null(f);
	}
}

static void finds_metrics_by_an_alias(void **state)
{
	struct rfl_formulas *f = parse("alias sm__sass_ smsp__sass_\n"
				       "flops.fp32 = smsp__sass_fadd.sum\n"
				       "cycles = sm__sass_cycles.sum | smsp__sass_cycles.sum\n");
	static const struct {
		const char *name, *is;
	} cases[] = {
		{ "smsp__sass_fadd.sum", "smsp__sass_fadd.sum" },
		{ "sm__sass_fadd.sum", "smsp__sass_fadd.sum" },
		{ "sm__sass_cycles.sum", "sm__sass_cycles.sum" }, /* a name of its own */
		{ "sm__sass_fadd", NULL },
		{ "derived__sm__sass_fadd.sum", NULL },
		{ "sm__sass", NULL },
	};
	char longest[300];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		int slot = rfl_formulas_slot(f, cases[i].name, strlen(cases[i].name));

		if (cases[i].is)
			assert_string_equal(f->slots[slot].name, cases[i].is);
		else
			assert_int_equal(slot, -1);
	}
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "sm__sass_", 9);
	assert_int_equal(rfl_formulas_slot(f, longest, sizeof(longest)), -1);
	rfl_formulas_free(f);
}

static void reads_statements_over_lines_and_comments(void **state)
{
	struct rfl_formulas *f = parse("# a comment\n"
				       "command \"count\" # after it\n"
				       "\n"
				       "time_s = a\n"
				       "# in the first column, and an empty line\n"
				       "\n"
				       "\t| b.sum / b.rate # continues\n"
				       "  | 'Long Name [s]'\n"
				       "\tcaveat \"as printed\"\r\n"
				       "cycles impossible \"no clock\"\n"
				       "cycles |= c\n"
				       "dram_bytes = 32 d - 0.5 e * time_s");
	const struct rfl_term *t;
	struct rfl_buf text;

	(void)state;
	assert_string_equal(f->family, "t");
	assert_string_equal(f->command, "count");
	assert_int_equal(f->quantities[RFL_QUANTITY_TIME].nways, 3);
	assert_string_equal(f->quantities[RFL_QUANTITY_TIME].ways[2].caveat, "as printed");
	assert_int_equal(f->quantities[RFL_QUANTITY_TIME].ways[2].kind, RFL_WAY_FULL);
	assert_string_equal(f->quantities[RFL_QUANTITY_CYCLES].impossible, "no clock");
	assert_int_equal(f->quantities[RFL_QUANTITY_CYCLES].nways, 0);
	t = f->quantities[RFL_QUANTITY_TIME].ways[2].terms;
	assert_string_equal(f->slots[t->slot[0]].name, "Long Name");
	assert_string_equal(f->slots[t->slot[0]].unit, "s");
	assert_true(f->slots[t->slot[0]].is_report);
	rfl_buf_init(&text, 0);
	rfl_formula_text(f, RFL_QUANTITY_DRAM, 0, &text);
	assert_string_equal(rfl_buf_str(&text), "32 x d - 0.5 x e x time_s");
	rfl_buf_reset(&text);
	rfl_formula_text(f, RFL_QUANTITY_TIME, 1, &text);
	assert_string_equal(rfl_buf_str(&text), "b.sum / b.rate");
	rfl_buf_fini(&text);
	rfl_formulas_free(f);
}

static void names_the_families_where_a_chip_is_unknown(void **state)
{
	struct rfl_formulas *f = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(rfl_formulas_new("GH101", &f, &err), RFL_ENOTFOUND);
	assert_says(&err, "no formulas for 'GH101'");
	assert_says(&err, "hopper (GH100)");
	assert_null(f);
	rfl_err_clear(&err);
	assert_int_equal(rfl_formulas_new("", &f, &err), RFL_ENOTFOUND);
	rfl_err_clear(&err);
	/* the name of a part is not that of a family */
	assert_int_equal(rfl_formulas_new("gpu-sass", &f, &err), RFL_ENOTFOUND);
	/* nor is the beginning of a chip's name the chip */
	rfl_err_clear(&err);
	assert_int_equal(rfl_formulas_new("GA10", &f, &err), RFL_ENOTFOUND);
}

/* --- the families ---------------------------------------------------------------------------- */

/* The others read what one program prints. */
static bool is_gpu(const struct rfl_formulas *f)
{
	const char *command = f->command;

	return command && strcmp(command, "ncu --metrics") == 0;
}

/* A GPU's quantities can be measured, or a reason says why not; flops.total is a sum. */
static void check_quantities(const struct rfl_formulas *f, const char *family)
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		enum rfl_quantity id = (enum rfl_quantity)q;
		size_t ways = f->quantities[id].nways;

		if (q != RFL_QUANTITY_FLOPS && is_gpu(f) && ways == 0 &&
		    !f->quantities[id].impossible)
			fail_msg("%s: neither a way nor a reason for %s", family,
				 rfl_quantity_info(id)->name);
		assert_false(ways > 0 && f->quantities[id].impossible);
	}
}

/* Every slot is found by its name and used by a way, a correction or a trap. */
static void check_slots(const struct rfl_formulas *f)
{
	for (size_t i = 0; i < f->nslots; i++) {
		const char *name = f->slots[i].name;

		assert_int_equal(rfl_formulas_slot(f, name, strlen(name)), (int)i);
	}
	assert_int_equal(rfl_formulas_slot(f, "no such metric", 14), -1);
	assert_int_equal(rfl_formulas_slot(f, "", 0), -1);
}

static void every_family_answers_for_every_quantity(void **state)
{
	const char *family;
	int gpus = 0;

	(void)state;
	for (size_t n = 0; (family = rfl_formula_families[n].name); n++) {
		struct rfl_formulas *f = of_chip(family);

		assert_string_equal(f->family, family);
		check_quantities(f, family);
		check_slots(f);
		gpus += is_gpu(f);
		rfl_formulas_free(f);
	}
	assert_int_equal(gpus, 15);
}

/* What is asked of a GPU is the first way: it holds no name of a report. */
static void the_first_way_can_be_counted(void **state)
{
	const char *family;

	(void)state;
	for (size_t k = 0; (family = rfl_formula_families[k].name); k++) {
		struct rfl_formulas *f = of_chip(family);

		for (int q = 0; is_gpu(f) && q < RFL_QUANTITY_COUNT; q++) {
			const struct rfl_formula_way *way = f->quantities[q].ways;

			if (f->quantities[q].nways == 0 || strcmp(family, "xavier") == 0)
				continue;
			for (size_t i = 0; i < way->nterms; i++)
				assert_false(f->slots[way->terms[i].slot[0]].is_report);
		}
		rfl_formulas_free(f);
	}
}

/* --- values ---------------------------------------------------------------------------------- */

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"

static void counts_flops_by_precision(void **state)
{
	static const struct given given[] = {
		{ SASS("fadd"), 10 },  { SASS("fmul"), 20 },
		{ SASS("ffma"), 300 }, { SASS("hadd"), 1 },
		{ SASS("hmul"), 2 },   { SASS("hfma"), 3 },
		{ SASS("dadd"), 4 },   { SASS("dmul"), 5 },
		{ SASS("dfma"), 6 },   { "sm__ops_path_tensor_src_tf32_dst_fp32.sum", 4096 },
	};
	struct rfl_formulas *f = of_chip("GA102");
	double value[RFL_QUANTITY_COUNT];
	int way[RFL_QUANTITY_COUNT];

	(void)state;
	eval(f, given, RFL_ARRAY_LEN(given), value, way);
	assert_close(value[RFL_QUANTITY_FLOPS_FP32], 10 + 20 + 2 * 300, 0);
	assert_close(value[RFL_QUANTITY_FLOPS_FP16], 2 * 1 + 2 * 2 + 4 * 3, 0);
	assert_close(value[RFL_QUANTITY_FLOPS_FP64], 4 + 5 + 2 * 6, 0);
	assert_close(value[RFL_QUANTITY_FLOPS_TENSOR_TF32], 4096, 0);
	assert_close(value[RFL_QUANTITY_FLOPS], 630 + 18 + 21 + 4096, 0);
	assert_int_equal(way[RFL_QUANTITY_FLOPS], RFL_FORMULA_SUM);
	assert_int_equal(way[RFL_QUANTITY_FLOPS_TENSOR_BF16], -1);
	assert_true(isnan(value[RFL_QUANTITY_TIME]));
	rfl_formulas_free(f);
}

/* FADD2, FMUL2 and FFMA2 of GB100 do two of each. */
static void counts_packed_single_precision(void **state)
{
	static const struct given given[] = {
		{ SASS("fadd"), 1 },    { SASS("fmul"), 2 },     { SASS("ffma"), 3 },
		{ SASS("fadd2"), 100 }, { SASS("fmul2"), 1000 }, { SASS("ffma2"), 10000 },
	};
	struct rfl_formulas *f = of_chip("GB100");
	double value[RFL_QUANTITY_COUNT];
	int way[RFL_QUANTITY_COUNT];

	(void)state;
	eval(f, given, RFL_ARRAY_LEN(given), value, way);
	assert_close(value[RFL_QUANTITY_FLOPS_FP32], 1 + 2 + 6 + 200 + 2000 + 40000, 0);
	assert_int_equal(way[RFL_QUANTITY_FLOPS_FP32], 0);
	eval(f, given, 3, value, way);
	assert_close(value[RFL_QUANTITY_FLOPS_FP32], 9, 0);
	assert_int_equal(
		f->quantities[RFL_QUANTITY_FLOPS_FP32].ways[way[RFL_QUANTITY_FLOPS_FP32]].kind,
		RFL_WAY_PARTIAL);
	rfl_formulas_free(f);
	f = of_chip("GB202"); /* which has no such instructions */
	eval(f, given, 3, value, way);
	assert_close(value[RFL_QUANTITY_FLOPS_FP32], 9, 0);
	assert_int_equal(way[RFL_QUANTITY_FLOPS_FP32], 0);
	rfl_formulas_free(f);
}

/* Both directions that were counted go before a total that is made of rounded figures. */
static void takes_directions_before_an_estimate(void **state)
{
	static const struct given given[] = {
		{ "Memory Throughput", 90 },
		{ "gpu__time_duration.sum", 1 },
		{ "dram__bytes_read.sum", 64 },
		{ "dram__bytes_write.sum", 32 },
	};
	struct rfl_formulas *f = of_chip("GA102");
	double value[RFL_QUANTITY_COUNT];
	int way[RFL_QUANTITY_COUNT];

	(void)state;
	eval(f, given, RFL_ARRAY_LEN(given), value, way);
	assert_close(value[RFL_QUANTITY_DRAM], 96, 0);
	assert_int_equal(way[RFL_QUANTITY_DRAM], RFL_FORMULA_SUM);
	eval(f, given, 3, value, way);
	assert_close(value[RFL_QUANTITY_DRAM], 90, 0);
	rfl_formulas_free(f);
}

static void takes_dram_bytes_by_what_is_there(void **state)
{
	static const struct {
		const char *chip;
		struct given given[3];
		size_t n;
		double read, write, both;
	} cases[] = {
		{ "GH100",
		  { { "dram__bytes_read.sum", 100 }, { "dram__bytes_write.sum", 50 } },
		  2,
		  100,
		  50,
		  150 },
		{ "GH100", { { "dram__bytes_read.sum", 100 } }, 1, 100, NAN, NAN },
		{ "GH100", { { "dram__bytes.sum", 160 } }, 1, NAN, NAN, 160 },
		{ "GH100",
		  { { "dram__sectors_read.sum", 2 }, { "dram__sectors_write.sum", 3 } },
		  2,
		  64,
		  96,
		  160 },
		{ "GB202",
		  { { "dram__bytes_op_read.sum", 7 }, { "dram__bytes_op_write.sum", 8 } },
		  2,
		  7,
		  8,
		  15 },
		{ "GB202",
		  { { "dram__bytes_read.sum", 7 }, { "dram__bytes_write.sum", 8 } },
		  2,
		  7,
		  8,
		  15 },
		{ "TU102",
		  { { "fbpa__dram_read_bytes.sum", 1 }, { "fbpa__dram_write_bytes.sum", 2 } },
		  2,
		  1,
		  2,
		  3 },
		{ "any",
		  { { "dram__bytes.sum.per_second", 1e9 }, { "Duration", 2e-3 } },
		  2,
		  NAN,
		  NAN,
		  2e6 },
		{ "any",
		  { { "dram_read_transactions", 3 }, { "dram_write_transactions", 5 } },
		  2,
		  96,
		  160,
		  256 },
		{ "any",
		  { { "dram_read_throughput", 1e9 }, { "Duration", 0.5 } },
		  2,
		  5e8,
		  NAN,
		  NAN },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_formulas *f = of_chip(cases[i].chip);
		double value[RFL_QUANTITY_COUNT];

		eval(f, cases[i].given, cases[i].n, value, NULL);
		assert_close(value[RFL_QUANTITY_DRAM_READ], cases[i].read, 0);
		assert_close(value[RFL_QUANTITY_DRAM_WRITE], cases[i].write, 0);
		assert_close(value[RFL_QUANTITY_DRAM], cases[i].both, 0);
		rfl_formulas_free(f);
	}
}

static void takes_time_from_cycles_and_their_rate(void **state)
{
	static const struct given given[] = {
		{ "smsp__cycles_elapsed.avg", 5143174222.52 },
		{ "smsp__cycles_elapsed.avg.per_second", 764999989.86 },
	};
	static const struct given nothing[] = {
		{ "smsp__cycles_elapsed.avg", 0 },
		{ "smsp__cycles_elapsed.avg.per_second", 0 },
	};
	struct rfl_formulas *f = of_chip("any");
	double value[RFL_QUANTITY_COUNT];
	int way[RFL_QUANTITY_COUNT];

	(void)state;
	eval(f, given, 2, value, way);
	assert_close(value[RFL_QUANTITY_TIME], 5143174222.52 / 764999989.86, 0);
	assert_close(value[RFL_QUANTITY_CYCLES], 5143174222.52, 0);
	/* 0 / 0 is no time */
	eval(f, nothing, 2, value, way);
	assert_true(isnan(value[RFL_QUANTITY_TIME]));
	assert_int_equal(way[RFL_QUANTITY_TIME], -1);
	rfl_formulas_free(f);
}

/* ncu's roofline section: rates per cycle, and the clock. */
static void takes_flops_from_rates(void **state)
{
	static const struct given given[] = {
		{ SASS("fadd") ".per_cycle_elapsed", 1.5 },
		{ SASS("fmul") ".per_cycle_elapsed", 2.5 },
		{ "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2", 100 },
		{ "smsp__cycles_elapsed.avg.per_second", 1e9 },
		{ "gpu__time_duration.sum", 2e-3 },
	};
	struct rfl_formulas *f = of_chip("GA100");
	double value[RFL_QUANTITY_COUNT];
	int way[RFL_QUANTITY_COUNT];

	(void)state;
	eval(f, given, RFL_ARRAY_LEN(given), value, way);
	assert_close(value[RFL_QUANTITY_CYCLES], 2e6, 1e-15);
	assert_close(value[RFL_QUANTITY_FLOPS_FP32], 104 * 2e6, 1e-15);
	assert_true(way[RFL_QUANTITY_FLOPS_FP32] > 0);
	assert_int_equal(
		f->quantities[RFL_QUANTITY_FLOPS_FP32].ways[way[RFL_QUANTITY_FLOPS_FP32]].kind,
		RFL_WAY_ESTIMATE);
	rfl_formulas_free(f);
}

/* Moves by HFMA2.MMA are taken out where they were counted: 128 FLOPs of a warp each. */
static void takes_moves_out_of_half_precision(void **state)
{
	static const struct given given[] = {
		{ SASS("hadd"), 0 },
		{ SASS("hmul"), 0 },
		{ SASS("hfma"), 3200 },
		{ "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", 100 },
	};
	static const struct given more[] = {
		{ SASS("hadd"), 0 },
		{ SASS("hmul"), 0 },
		{ SASS("hfma"), 3200 },
		{ "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", 101 },
	};
	struct rfl_formulas *f = of_chip("GH100");
	double value[RFL_QUANTITY_COUNT];

	(void)state;
	eval(f, given, 3, value, NULL);
	assert_close(value[RFL_QUANTITY_FLOPS_FP16], 12800, 0);
	eval(f, given, 4, value, NULL);
	assert_close(value[RFL_QUANTITY_FLOPS_FP16], 0, 0);
	/* more moves than FMAs: counts of different passes that do not fit together */
	eval(f, more, 4, value, NULL);
	assert_true(isnan(value[RFL_QUANTITY_FLOPS_FP16]));
	rfl_formulas_free(f);
}

static void assert_reason(const struct rfl_formulas *f, enum rfl_quantity q,
			  const struct given *given, size_t n, const char *expected)
{
	double *slots = slots_of(f, given, n);
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	rfl_formula_reason(f, q, slots, NULL, &text);
	assert_string_equal(rfl_buf_str(&text), expected);
	rfl_buf_fini(&text);
	free(slots);
}

static void says_what_is_missing(void **state)
{
	static const struct given ffma[] = { { SASS("fadd"), 1 }, { SASS("fmul"), 1 } };
	static const struct given rate[] = { { "dram__bytes.sum.per_second", 1 } };
	static const struct given moves[] = {
		{ SASS("hadd"), 0 },
		{ SASS("hmul"), 0 },
		{ SASS("hfma"), 1 },
		{ "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", 1 },
	};
	struct rfl_formulas *f = of_chip("GA100"), *orin = of_chip("GA10B");

	(void)state;
	assert_reason(f, RFL_QUANTITY_FLOPS_FP32, ffma, 2,
		      "not counted: ncu --metrics " SASS("ffma"));
	assert_reason(f, RFL_QUANTITY_DRAM_READ, NULL, 0,
		      "not counted: ncu --metrics dram__bytes_read.sum");
	assert_reason(f, RFL_QUANTITY_DRAM, rate, 1, "needs time_s, which is unknown");
	assert_reason(f, RFL_QUANTITY_FLOPS, NULL, 0, "none of its parts is known");
	assert_reason(f, RFL_QUANTITY_FLOPS_TENSOR_FP8, NULL, 0,
		      "Ampere's Tensor Cores do not support fp8 or fp4");
	assert_reason(orin, RFL_QUANTITY_DRAM, NULL, 0,
		      "integrated memory, for which this chip has no byte counter; l2_fill_bytes "
		      "are the reads caused by L2 misses");
	assert_reason(
		f, RFL_QUANTITY_FLOPS_FP16, moves, 4,
		"the counts are inconsistent: 2 x " SASS("hadd") " + 2 x " SASS(
			"hmul") " + 4 x " SASS("hfma") " less "
						       "sm__inst_executed_pipe_tensor_op_hmma_type_"
						       "hfma2.sum is negative or not a number");
	rfl_formulas_free(orin);
	rfl_formulas_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_with_place_and_reason),
		cmocka_unit_test(finds_metrics_by_an_alias),
		cmocka_unit_test(reads_statements_over_lines_and_comments),
		cmocka_unit_test(names_the_families_where_a_chip_is_unknown),
		cmocka_unit_test(every_family_answers_for_every_quantity),
		cmocka_unit_test(the_first_way_can_be_counted),
		cmocka_unit_test(counts_flops_by_precision),
		cmocka_unit_test(counts_packed_single_precision),
		cmocka_unit_test(takes_directions_before_an_estimate),
		cmocka_unit_test(takes_dram_bytes_by_what_is_there),
		cmocka_unit_test(takes_time_from_cycles_and_their_rate),
		cmocka_unit_test(takes_flops_from_rates),
		cmocka_unit_test(takes_moves_out_of_half_precision),
		cmocka_unit_test(says_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
