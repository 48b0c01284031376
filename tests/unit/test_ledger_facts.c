/* Fields in which rows of a ledger differ, as text. */
#include "rfl_test.h"

#include <string.h>

#include "ledger/facts.h"

#define ROWS 3

struct rows {
	struct rfl_ledger_row row[ROWS];
	struct rfl_facts_apart apart;
	struct rfl_buf words;
};

static void set(char **field, const char *text)
{
	rfl_field_set(field, text);
}

static void rows_init(struct rows *r)
{
	*r = (struct rows){ .apart = { .first = { NULL } } };
	rfl_buf_init(&r->words, 0);
	for (size_t i = 0; i < ROWS; i++) {
		rfl_ledger_row_init(&r->row[i]);
		set(&r->row[i].status, "ok");
		set(&r->row[i].env, "lab");
		set(&r->row[i].optimizer, "sgd");
		r->row[i].batch = r->row[i].micro_batch = 8;
		r->row[i].workers = 2;
	}
}

static void rows_fini(struct rows *r)
{
	for (size_t i = 0; i < ROWS; i++)
		rfl_ledger_row_fini(&r->row[i]);
	rfl_buf_fini(&r->words);
}

static void compare(struct rows *r)
{
	memset(&r->apart, 0, sizeof(r->apart));
	for (size_t i = 0; i < ROWS; i++)
		rfl_facts_apart_add(&r->apart, &r->row[i]);
}

static const char *words(struct rows *r, size_t i)
{
	rfl_buf_reset(&r->words);
	rfl_facts_apart_put(&r->apart, &r->row[i], &r->words);
	return rfl_buf_str(&r->words);
}

static void equal_rows_have_no_words(void **state)
{
	struct rows r;

	(void)state;
	rows_init(&r);
	compare(&r);
	for (size_t i = 0; i < rfl_nfacts; i++)
		assert_false(rfl_facts_apart_told(&r.apart, i));
	assert_string_equal(words(&r, 0), "");
	rows_fini(&r);
}

static void what_differs_is_told(void **state)
{
	struct rows r;

	(void)state;
	rows_init(&r);
	set(&r.row[1].optimizer, "adamw");
	r.row[2].workers = 8;
	r.row[2].deterministic = 1;
	compare(&r);
	assert_string_equal(words(&r, 0), "optimizer sgd, workers 2");
	assert_string_equal(words(&r, 1), "optimizer adamw, workers 2");
	assert_string_equal(words(&r, 2), "optimizer sgd, workers 8, deterministic 1");
	rows_fini(&r);
}

/* What stands beside the words anyway, what follows, and what is only noted. */
static void some_facts_are_not_told(void **state)
{
	struct rows r;

	(void)state;
	rows_init(&r);
	r.row[1].batch = 16;
	r.row[1].micro_batch = 4;
	set(&r.row[1].env, "desk");
	set(&r.row[1].host, "other");
	compare(&r);
	assert_string_equal(words(&r, 0), "");
	assert_string_equal(words(&r, 1), "");
	rows_fini(&r);
}

static void a_failed_run_need_not_know(void **state)
{
	struct rows r;

	(void)state;
	rows_init(&r);
	set(&r.row[1].status, "crash");
	r.row[1].workers = -1;
	compare(&r);
	assert_string_equal(words(&r, 0), "");
	set(&r.row[1].status, "ok");
	compare(&r);
	assert_string_equal(words(&r, 0), "workers 2");
	assert_string_equal(words(&r, 1), "");
	rows_fini(&r);
}

static void variants_in_words(void **state)
{
	static const struct {
		const char *variant, *words;
	} cases[] = {
		{ NULL, "" },
		{ "", "" },
		{ "context_length 16, attention naive", "16 tokens, naive attention" },
		{ "warmup 1, workers 8", "1 warm-up step, 8 workers" },
		{ "device_name Card, big, layout nhwc", "Card, big, nhwc" },
		{ "grad_clip 1, prefetch 4", "gradients clipped to 1, prefetch 4" },
		{ "no column, x", "no column, x" },
	};
	struct rfl_buf out;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rfl_buf_init(&out, 0);
		rfl_variant_say(cases[i].variant, &out);
		assert_string_equal(rfl_buf_str(&out), cases[i].words);
		rfl_buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_rows_have_no_words),
		cmocka_unit_test(what_differs_is_told),
		cmocka_unit_test(some_facts_are_not_told),
		cmocka_unit_test(a_failed_run_need_not_know),
		cmocka_unit_test(variants_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
