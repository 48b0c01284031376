/* Errors, log, buffer, arena, names, clock: the small ground. */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/dl.h"
#include "base/log.h"
#include "base/text.h"

static void the_first_failure_wins(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(rfl_fail(&err, RFL_EIO, 5, "disk %d", 1), RFL_EIO);
	assert_int_equal(rfl_fail(&err, RFL_ENOMEM, 0, "later"), RFL_ENOMEM);
	assert_int_equal(err.rc, RFL_EIO);
	assert_int_equal(err.native, 5);
	assert_string_equal(err.msg, "disk 1");
	rfl_err_prefix(&err, "run %d", 7);
	assert_string_equal(err.msg, "run 7: disk 1");
	rfl_err_clear(&err);
	assert_string_equal(err.msg, "");
	rfl_err_prefix(&err, "nothing");
	assert_string_equal(err.msg, "");
	assert_int_equal(rfl_fail(NULL, RFL_EINVAL, 0, "no record"), RFL_EINVAL);
}

static void a_long_message_says_that_it_was_cut(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	char *big = malloc(2 * RFL_ERR_MSG_MAX);

	(void)state;
	memset(big, 'x', 2 * RFL_ERR_MSG_MAX - 1);
	big[2 * RFL_ERR_MSG_MAX - 1] = '\0';
	rfl_fail(&err, RFL_EIO, 0, "%s", big);
	assert_int_equal(strlen(err.msg), RFL_ERR_MSG_MAX - 1);
	assert_string_equal(err.msg + RFL_ERR_MSG_MAX - 4, "...");
	rfl_err_prefix(&err, "run");
	assert_int_equal(strlen(err.msg), RFL_ERR_MSG_MAX - 1);
	assert_int_equal(strncmp(err.msg, "run: xxx", 8), 0);
	assert_string_equal(err.msg + RFL_ERR_MSG_MAX - 4, "...");
	rfl_err_prefix(&err, "%s", big); /* a prefix without room leaves the cause */
	assert_int_equal(strncmp(err.msg, "run: xxx", 8), 0);
	free(big);
}

/* ESC, DEL, C1 controls, changes of direction, U+FFFE and what is not UTF-8; what else there is,
 * stays. */
static const char hostile[] = "a\x1b[1m\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xef\xbf\xbe\xff\r\n\t"
			      "\xc3\xa9\xe2\x82\xac\xf0\x9f\x93\x88";
#define SHOWN "a?[1m???????"
#define REST  "\xc3\xa9\xe2\x82\xac\xf0\x9f\x93\x88"

static void what_steers_a_terminal_is_masked(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf b = { 0 };
	char line[64];

	(void)state;
	snprintf(line, sizeof(line), "%s", hostile);
	rfl_text_one_line(line);
	assert_string_equal(line, SHOWN "??" REST);
	rfl_fail(&err, RFL_EFORMAT, 0, "%s", hostile);
	assert_string_equal(err.msg, SHOWN "??" REST);
	rfl_err_prefix(&err, "\x1b%s", "\xe2\x80");
	assert_string_equal(err.msg, "???: " SHOWN "??" REST);
	rfl_err_clear(&err);
	rfl_fail(&err, RFL_EMISSING, 0, "%s", hostile); /* values have lines of their own */
	assert_string_equal(err.msg, SHOWN "\n\t" REST);
	rfl_buf_append(&b, "\x1b|\0|", 4);
	rfl_buf_puts(&b, hostile);
	rfl_text_mask_from(&b, 1);
	assert_string_equal(rfl_buf_str(&b), "\x1b|?|" SHOWN "\n\t" REST);
	assert_int_equal(b.len, strlen(b.data));
	rfl_text_mask_from(&b, b.len);
	assert_int_equal(b.len, strlen(b.data));
	rfl_buf_fini(&b);
}

static void every_code_has_a_text(void **state)
{
	(void)state;
	for (int rc = RFL_EUSAGE; rc <= RFL_OK; rc++) {
		assert_string_not_equal(rfl_rc_text((enum rfl_rc)rc), "unknown code");
		for (int other = rc + 1; other <= RFL_OK; other++)
			assert_string_not_equal(rfl_rc_text((enum rfl_rc)rc),
						rfl_rc_text((enum rfl_rc)other));
	}
}

struct heard {
	char text[256];
	int calls;
};

static void hear(enum rfl_log_level level, const char *line, void *ctx)
{
	struct heard *h = ctx;
	size_t len = strlen(h->text);

	h->calls++;
	snprintf(h->text + len, sizeof(h->text) - len, "%d:%s|", (int)level, line);
}

static void log_lines(void **state)
{
	struct heard h = { .calls = 0 };

	(void)state;
	rfl_log(RFL_LOG_ERROR, "no one listens");
	rfl_log_set(hear, &h, RFL_LOG_WARN);
	rfl_log(RFL_LOG_WARN, "one %d\ntwo\n", 1);
	rfl_log(RFL_LOG_INFO, "too talkative");
	rfl_log(RFL_LOG_ERROR, "three\x1b");
	rfl_log_set(NULL, NULL, RFL_LOG_DEBUG);
	rfl_log(RFL_LOG_ERROR, "no one");
	assert_string_equal(h.text, "1:one 1|1:two|0:three?|");
	assert_int_equal(h.calls, 3);
}

static void buffer_grows_to_its_maximum(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf b;

	(void)state;
	rfl_buf_init(&b, 1000);
	assert_string_equal(rfl_buf_str(&b), "");
	for (int i = 0; i < 100; i++)
		rfl_buf_printf(&b, "%09d,", i);
	assert_int_equal(b.len, 1000);
	assert_int_equal(rfl_buf_check(&b, "it", NULL), RFL_OK);
	rfl_buf_putc(&b, 'x');
	rfl_buf_puts(&b, "");
	assert_int_equal(b.len, 1000);
	assert_int_equal(rfl_buf_check(&b, "the report", &err), RFL_EOVERFLOW);
	assert_says(&err, "the report");
	assert_says(&err, "1000");
	rfl_buf_reset(&b);
	rfl_buf_printf(&b, "%400s", "wide");
	assert_int_equal(b.len, 400);
	assert_int_equal(rfl_buf_check(&b, "it", NULL), RFL_OK);
	rfl_buf_fini(&b);
	assert_string_equal(rfl_buf_str(&b), "");
}

static void buffer_without_init(void **state)
{
	struct rfl_buf b = { 0 };

	(void)state;
	rfl_buf_append(&b, "a\0b", 3);
	assert_int_equal(b.len, 3);
	assert_memory_equal(rfl_buf_str(&b), "a\0b", 4);
	rfl_buf_fini(&b);
	rfl_buf_fini(&b);
}

static void arrays_are_checked(void **state)
{
	char *none = rfl_alloc_array(0, 8);

	(void)state;
	assert_non_null(none);
	free(none);
}

static jmp_buf out_of_memory;

static void leave(void)
{
	longjmp(out_of_memory, 1);
}

/* What cannot be allocated ends in the handler, which may leave with longjmp(). */
static void memory_that_runs_out(void **state)
{
	struct rfl_arena *a = rfl_arena_new();
	volatile int left = 0;
	size_t cap = 0;
	char(*odd)[100] = NULL;

	(void)state;
	assert_null(rfl_try_array(SIZE_MAX / 2, 3));
	rfl_set_out_of_memory(leave);
	rfl_reserve(&odd, &cap, 1);
	if (setjmp(out_of_memory) == 0)
		free(rfl_alloc_array(SIZE_MAX / 2, 3));
	else
		left++;
	if (setjmp(out_of_memory) == 0)
		(void)!rfl_arena_array(a, SIZE_MAX / 2, 3);
	else
		left++;
	if (setjmp(out_of_memory) == 0)
		rfl_reserve(&odd, &cap, SIZE_MAX / 64);
	else
		left++;
	rfl_set_out_of_memory(NULL);
	assert_int_equal(left, 3);
	assert_int_equal(cap, 16);
	free(odd);
	rfl_arena_free(a);
}

static void arrays_grow(void **state)
{
	size_t cap = 0, grown = 0;
	int *items = NULL;

	(void)state;
	for (size_t n = 0; n < 1000; n++) {
		size_t old = cap;

		rfl_reserve(&items, &cap, n + 1);
		items[n] = (int)n;
		grown += cap != old;
	}
	assert_in_range(grown, 2, 10);
	for (size_t n = 0; n < 1000; n++)
		assert_int_equal(items[n], n);
	free(items);
}

static void arena_objects(void **state)
{
	struct rfl_arena *a = rfl_arena_new();
	char *first, *last = NULL;

	(void)state;
	assert_non_null(a);
	first = rfl_arena_strdup(a, "first");
	for (size_t i = 0; i < 5000; i++) {
		size_t size = 1 + i % 777;
		unsigned char *p = rfl_arena_array(a, size, 1);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, size);
	}
	last = rfl_arena_printf(a, "%s %d %600s", "last", 5, "wide");
	assert_string_equal(first, "first");
	assert_int_equal(strlen(last), 607);
	rfl_arena_free(a);
	rfl_arena_free(NULL);
}

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		size_t distance;
	} cases[] = {
		{ "", "", 0 },
		{ "resnet50", "resnet50", 0 },
		{ "ResNet50", "resnet50", 0 },
		{ "", "abc", 3 },
		{ "abc", "", 3 },
		{ "kitten", "sitting", 3 },
		{ "restnet50", "resnet50", 1 },
		{ "renset50", "resnet50", 1 }, /* a swap */
		{ "ca", "abc", 3 },            /* restricted: no letter is edited twice */
		{ "abcd", "acbd", 1 },
		{ "vgg16", "resnet50", 8 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		assert_int_equal(rfl_text_distance(cases[i].a, cases[i].b), cases[i].distance);
		assert_int_equal(rfl_text_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
}

static void long_names_have_a_bound(void **state)
{
	char a[600], b[600];

	(void)state;
	memset(a, 'a', 599);
	memset(b, 'b', 599);
	a[599] = b[599] = '\0';
	assert_int_equal(rfl_text_distance(a, b), 599);
	a[63] = b[63] = '\0';
	b[0] = b[62] = 'a';
	assert_int_equal(rfl_text_distance(a, b), 61); /* this much is compared letter by letter */
	a[63] = 'a';
	b[63] = 'b';
	memset(b, 'a', 599);
	b[300] = 'x';
	assert_int_equal(rfl_text_distance(a, b), 1);
}

static void suggestions(void **state)
{
	static const char *const names[] = { "resnet18", "resnet50",     "resnet101", "vgg16",
					     "vgg16_bn", "mobilenet_v2", NULL };
	struct rfl_buf out = { 0 };

	(void)state;
	assert_string_equal(rfl_text_nearest("resnet5", names), "resnet50");
	assert_string_equal(rfl_text_nearest("mobilnet_v2", names), "mobilenet_v2");
	assert_string_equal(rfl_text_nearest("resnet50_v1_fp32", names), "resnet50");
	assert_null(rfl_text_nearest("resnet50v1.5-fp32", names));
	assert_null(rfl_text_nearest("transformer", names));
	assert_null(rfl_text_nearest("z", names));
	assert_int_equal(rfl_text_suggest("resnet10", names, 2, &out), 2);
	assert_string_equal(rfl_buf_str(&out), "resnet18, resnet50");
	rfl_buf_reset(&out);
	assert_int_equal(rfl_text_suggest("resnet10", names, 9, &out), 3);
	assert_string_equal(rfl_buf_str(&out), "resnet18, resnet50, resnet101");
	rfl_buf_reset(&out);
	assert_int_equal(rfl_text_suggest("zzzzz", names, 9, &out), 0);
	assert_string_equal(rfl_buf_str(&out), "");
	rfl_buf_fini(&out);
}

/* In a short name, each letter counts: another digit or first letter is another name. */
static void suggestions_are_plausible(void **state)
{
	static const char *const names[] = { "fp32", "fp16", "bf16",          "gpu",
					     "sgd",  "h100", "samples_per_s", NULL };
	static const struct {
		const char *name, *near;
	} cases[] = {
		{ "fp23", "fp32" }, { "fp31", "fp32" },
		{ "fp3", "fp32" },  { "fp8", NULL },
		{ "fp64", NULL },   { "FP16", "fp16" },
		{ "cpu", NULL },    { "gup", "gpu" },
		{ "sgdd", "sgd" },  { "fp32x", "fp32" },
		{ "H10", "h100" },  { "H1O0", "h100" },
		{ "hl00", "h100" }, { "samples", "samples_per_s" },
		{ "step", NULL },
	};
	char advice[RFL_ADVICE_SIZE];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *near = rfl_text_nearest(cases[i].name, names);

		assert_string_equal(near ? near : "", cases[i].near ? cases[i].near : "");
	}
	assert_string_equal(rfl_text_advice("fp32x", names, 1, NULL, advice), "did you mean fp32?");
	assert_string_equal(rfl_text_advice("fp8", names, 3, NULL, advice),
			    "use one of fp32, fp16, bf16, gpu, sgd, h100, samples_per_s");
	assert_string_equal(rfl_text_advice("fp8", names, 3, "see the list", advice),
			    "see the list");
}

static void environment_names(void **state)
{
	(void)state;
	assert_true(rfl_text_is_env_name("lab_cpu2"));
	assert_true(rfl_text_is_env_name("a12345678901234567890123456789012345678901234567"));
	assert_false(rfl_text_is_env_name("a123456789012345678901234567890123456789012345678"));
	assert_false(rfl_text_is_env_name(""));
	assert_false(rfl_text_is_env_name("2lab"));
	assert_false(rfl_text_is_env_name("Lab"));
	assert_false(rfl_text_is_env_name("lab-cpu"));
	assert_false(rfl_text_is_env_name("_lab"));
	assert_false(rfl_text_is_env_name("../lab"));
}

static void shell_words(void **state)
{
	static const char *const cases[][2] = {
		{ "a-Z_0@%+=:,./", "a-Z_0@%+=:,./" },
		{ "", "''" },
		{ "two words", "'two words'" },
		{ "it's", "'it'\\''s'" },
		{ "$x", "'$x'" },
		{ "~", "'~'" },
		{ "line\nbreak", "'line\nbreak'" },
		{ "a*b", "'a*b'" },
	};
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rfl_buf_reset(&out);
		rfl_text_shell_word(cases[i][0], &out);
		assert_string_equal(rfl_buf_str(&out), cases[i][1]);
	}
	rfl_buf_fini(&out);
}

static void clocks(void **state)
{
	int64_t before = rfl_clock_ns();
	char text[RFL_TIME_ISO_SIZE];
	double s = rfl_clock_s();

	(void)state;
	assert_true(rfl_clock_ns() >= before);
	assert_true(s * 1e9 >= (double)before - 1e3);
	rfl_clock_iso(text);
	assert_int_equal(strlen(text), 20);
	rfl_clock_stamp(text);
	assert_int_equal(strlen(text), 15);
	rfl_clock_fix(1795239060);
	rfl_clock_iso(text);
	assert_string_equal(text, "2026-11-21T05:31:00Z");
	rfl_clock_stamp(text);
	assert_string_equal(text, "20261121_053100");
}

static void libraries(void **state)
{
	static const char *const names[] = { "libno-such-library.so.9", "libm.so.6", NULL };
	static const char *const absent[] = { "libno-such.so.1", "libno-such.so", NULL };
	double (*cosine)(double) = NULL;
	int (*nothing)(void) = NULL;
	struct rfl_dl_symbol symbols[] = {
		{ .name = "cos", .slot = &cosine },
		{ .name = "no_such_function", .slot = &nothing, .optional = true },
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dl *dl = NULL;

	(void)state;
	assert_ok(rfl_dl_open(names, RFL_DL_LOAD, symbols, 2, &dl, &err), &err);
	assert_true(cosine(0) == 1);
	assert_null(nothing);
	assert_non_null(rfl_dl_sym(dl, "sin"));
	assert_null(rfl_dl_sym(dl, "no_such_function"));
	rfl_dl_close(dl);
	dl = NULL;

	symbols[1].optional = false;
	assert_int_equal(rfl_dl_open(names, RFL_DL_LOAD, symbols, 2, &dl, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "libm.so.6");
	assert_says(&err, "no_such_function");
	assert_null(dl);
	assert_true(cosine == NULL); /* nothing half resolved remains */

	rfl_err_clear(&err);
	assert_int_equal(rfl_dl_open(absent, RFL_DL_LOAD, NULL, 0, &dl, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "libno-such.so.1: ");
	assert_says(&err, "libno-such.so: ");
	assert_null(strstr(err.msg, "libno-such.so: libno-such.so: ")); /* each is named once */
	assert_null(dl);
	rfl_dl_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_failure_wins),
		cmocka_unit_test(a_long_message_says_that_it_was_cut),
		cmocka_unit_test(what_steers_a_terminal_is_masked),
		cmocka_unit_test(every_code_has_a_text),
		cmocka_unit_test(log_lines),
		cmocka_unit_test(buffer_grows_to_its_maximum),
		cmocka_unit_test(buffer_without_init),
		cmocka_unit_test(arrays_are_checked),
		cmocka_unit_test(memory_that_runs_out),
		cmocka_unit_test(arrays_grow),
		cmocka_unit_test(arena_objects),
		cmocka_unit_test(distances),
		cmocka_unit_test(long_names_have_a_bound),
		cmocka_unit_test(suggestions),
		cmocka_unit_test(suggestions_are_plausible),
		cmocka_unit_test(environment_names),
		cmocka_unit_test(shell_words),
		cmocka_unit_test(clocks),
		cmocka_unit_test(libraries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
