/* Structs as rows of a table: base/fields.h. */
#include "rfl_test.h"

#include <math.h>
#include <string.h>

#include "base/fields.h"

struct row {
	char *name;
	int64_t count;
	double time_s, rate, change;
};

#define FIELD(kind, name) RFL_FIELD(kind, struct row, name, "")
static const struct rfl_field fields[] = {
	FIELD(TEXT, name),
	FIELD(INT, count),
	{ .name = "time_ms",
	  .kind = RFL_FIELD_REAL,
	  .power = -3,
	  .offset = offsetof(struct row, time_s) },
	{ .name = "gflops",
	  .kind = RFL_FIELD_REAL,
	  .power = 9,
	  .offset = offsetof(struct row, rate),
	  .needed = true },
	FIELD(SIGNED, change),
};
#define N RFL_ARRAY_LEN(fields)

static struct rfl_arena *arena; /* owns the texts of the rows */

static enum rfl_rc read_one(const char *text, struct row *row, struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	bool more = false;
	int at[N];
	enum rfl_rc rc = rfl_csv_open_text(text, strlen(text), "t.csv", &csv, err);

	rfl_fields_clear(fields, N, row);
	if (rc == RFL_OK)
		rc = rfl_fields_bind(fields, N, csv, at, err);
	if (rc == RFL_OK)
		rc = rfl_csv_next(csv, &more, err);
	if (rc == RFL_OK)
		rc = rfl_fields_read(fields, N, csv, at, arena, row, err);
	rfl_csv_close(csv);
	return rc;
}

static void rows_come_back(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;
	struct row row, none;

	(void)state;
	assert_ok(read_one("gflops,time_ms,other,count,name\n2.5,40,x,7,\"a, b\"\n", &row, &err),
		  &err);
	assert_string_equal(row.name, "a, b");
	assert_int_equal(row.count, 7);
	assert_true(row.time_s == 0.04 && row.rate == 2.5e9);
	rfl_fields_clear(fields, N, &none);
	rfl_buf_init(&text, 0);
	rfl_fields_write_header(fields, N, &text);
	rfl_fields_write(fields, N, &row, &text);
	rfl_fields_write(fields, N, &none, &text);
	assert_string_equal(rfl_buf_str(&text), "name,count,time_ms,gflops,change\n"
						"\"a, b\",7,40,2.5,\n"
						",,,,\n");
	assert_false(rfl_field_known(&fields[0], &none) || rfl_field_known(&fields[1], &none) ||
		     rfl_field_known(&fields[2], &none));
	assert_true(rfl_field_same(&fields[2], &none, &none));
	assert_false(rfl_field_same(&fields[0], &row, &none));
	rfl_buf_fini(&text);
}

static void errors_name_the_place(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct row row;

	(void)state;
	assert_int_equal(read_one("gflops,count\n1,x\n", &row, &err), RFL_EFORMAT);
	assert_string_equal(err.msg, "t.csv:2: column 'count': 'x' is not an integer");
	rfl_err_clear(&err);
	assert_int_equal(read_one("gflops,count\n1,-1\n", &row, &err), RFL_EFORMAT);
	assert_string_equal(err.msg, "t.csv:2: column 'count': '-1' is negative");
	rfl_err_clear(&err);
	assert_int_equal(read_one("gflops\n-1e-9\n", &row, &err), RFL_EFORMAT);
	assert_string_equal(err.msg, "t.csv:2: column 'gflops': '-1e-9' is negative");
	assert_ok(read_one("gflops,change\n-0,-2\n", &row, NULL), NULL);
	assert_close(row.change, -2, 0);
	rfl_err_clear(&err);
	assert_int_equal(read_one("name\na\n", &row, &err), RFL_EFORMAT);
	assert_non_null(strstr(err.msg, "gflops"));
}

/* Of a unit that is not ours: one rounding each way, so one unit in the last place at most. */
static void scaled_values_survive(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct row row, back;
		struct rfl_buf text;
		double x;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		x = (double)(seed >> 11) / 0x1p40;
		rfl_fields_clear(fields, N, &row);
		row.rate = x * 1e9;
		rfl_buf_init(&text, 0);
		rfl_fields_write_header(fields, N, &text);
		rfl_fields_write(fields, N, &row, &text);
		assert_ok(read_one(rfl_buf_str(&text), &back, NULL), NULL);
		rfl_buf_fini(&text);
		assert_close(back.rate, row.rate, 2.3e-16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),
		cmocka_unit_test(errors_name_the_place),
		cmocka_unit_test(scaled_values_survive),
	};
	int failed;

	arena = rfl_arena_new();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rfl_arena_free(arena);
	return failed;
}
