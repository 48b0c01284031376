/*
 * test_plot_font.c - text metrics: the compiled table against the carried faces, and UTF-8.
 */
#include "rfl_test.h"

#include <math.h>
#include <stdio.h>

#include "plot/figure.h"

#ifdef RFL_HAVE_CAIRO
#include <ft2build.h>
#include FT_FREETYPE_H

/* Every code point of the table, in both faces, as FreeType reads the carried files. */
static void widths_are_those_of_the_faces(void **state)
{
	FT_Library library;

	(void)state;
	assert_int_equal(FT_Init_FreeType(&library), 0);
	for (int i = 0; i < RFL_FACE_COUNT; i++) {
		char path[4096];
		FT_Face face;
		int n = 0;

		snprintf(path, sizeof(path), "%s/share/roofline/fonts/%s", RFL_TEST_BUILD,
			 rfl_face_files[i]);
		assert_int_equal(FT_New_Face(library, path, 0, &face), 0);
		for (unsigned c = 0x20; c < 0x800; c++) {
			char text[3] = { (char)c, 0, 0 };

			if (c >= 0x80) {
				text[0] = (char)(0xc0 | c >> 6);
				text[1] = (char)(0x80 | (c & 0x3f));
			}
			/* not in the table, or as wide as the box for what is not */
			if (rfl_text_width(text, (enum rfl_face)i, 2048) ==
			    rfl_text_width("\xff", (enum rfl_face)i, 2048))
				continue;
			assert_int_equal(FT_Load_Glyph(face, FT_Get_Char_Index(face, c),
						       FT_LOAD_NO_SCALE | FT_LOAD_NO_HINTING),
					 0);
			assert_close(rfl_text_width(text, (enum rfl_face)i, 2048),
				     (double)face->glyph->metrics.horiAdvance, 0);
			n++;
		}
		assert_true(n > 480);
		FT_Done_Face(face);
	}
	FT_Done_FreeType(library);
}
#else
static void widths_are_those_of_the_faces(void **state)
{
	(void)state;
	skip();
}
#endif

static void widths_add_up(void **state)
{
	(void)state;
	assert_close(rfl_text_width("", RFL_FACE_BOLD, 10), 0, 0);
	/* Liberation Sans has Arial's widths: a digit is 1139/2048 em */
	assert_close(rfl_text_width("2026", RFL_FACE_REGULAR, 2048), 4 * 1139.0, 0);
	assert_close(rfl_text_width("ab", RFL_FACE_REGULAR, 7),
		     rfl_text_width("a", RFL_FACE_REGULAR, 7) +
			     rfl_text_width("b", RFL_FACE_REGULAR, 7),
		     1e-12);
	assert_true(rfl_text_width("W", RFL_FACE_BOLD, 1) > rfl_text_width("i", RFL_FACE_BOLD, 1));
	/* a character that the font lacks has the width of its box */
	assert_close(rfl_text_width("\xe6\xbc\xa2", RFL_FACE_REGULAR, 2048), 748, 0);
}

/* A byte that is not UTF-8 is as wide as a character that the font lacks. */
static void utf8_is_read_and_errors_are_seen(void **state)
{
	static const struct {
		const char *text;
		double width;
	} cases[] = {
		{ "a\xc3\x97", 1139 + 1196 },
		{ "\xe2\x80\xa6", 2048 },
		{ "\xf0\x9f\x98\x80", 748 },
		{ "\xc3", 748 },
		{ "\xc0\x80x", 2 * 748 + 1024 },
		{ "\xed\xa0\x80", 3 * 748 },
		{ "\xff"
		  "a",
		  748 + 1139 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_close(rfl_text_width(cases[i].text, RFL_FACE_REGULAR, 2048), cases[i].width,
			     0);
}

static void numbers_have_three_digits(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 205.4, "205" },     { 47.62, "47.6" },     { 9.996, "10.0" },
		{ 3.7249, "3.72" },   { 99.96, "100" },      { 0.0123, "0.0123" },
		{ 12345.6, "12346" }, { 1.5e7, "1.50e+07" }, { 0.9999, "1.00" },
		{ NAN, "n.a." },
	};
	struct rfl_scene *s = rfl_scene_new(100, 100);

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(rfl_words_number(s, cases[i].value), cases[i].text);
	rfl_scene_free(s);
}

static void names_are_for_people(void **state)
{
	static const char *const models[][2] = {
		{ "resnet50", "ResNet-50" },
		{ "vgg16_bn", "VGG-16 BN" },
		{ "resnetlet", "resnetlet" },
		{ "vggish", "vggish" },
		{ "mobilenet_v2", "MobileNetV2" },
		{ "my_net", "my_net" },
		{ "", "(no model)" },
	};
	static const char *const keys[][2] = {
		{ "fp32.vector", "FP32 vector" },
		{ "fp32.vector.1core", "FP32 vector, one core" },
		{ "bf16.matrix", "BF16 matrix cores" },
		{ "x.new", "X new" },
	};
	struct rfl_scene *s = rfl_scene_new(100, 100);

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		assert_string_equal(rfl_words_model(s, models[i][0]), models[i][1]);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_string_equal(rfl_words_compute(s, keys[i][0]), keys[i][1]);
	rfl_scene_free(s);
}

static void long_texts_are_cut(void **state)
{
	struct rfl_scene *s = rfl_scene_new(100, 100);
	const char *text;

	(void)state;
	assert_non_null(s);
	assert_string_equal(rfl_words_fit(s, "short", RFL_FACE_REGULAR, 10, 100), "short");
	text = rfl_words_fit(s,
			     "gr\xc3\xb6\xc3\x9f"
			     "ere Namen",
			     RFL_FACE_REGULAR, 10, 30);
	assert_true(rfl_text_width(text, RFL_FACE_REGULAR, 10) <= 30);
	assert_string_equal(text, "gr\xc3\xb6\xe2\x80\xa6");
	rfl_scene_free(s);
}

/* A line that fits exactly is not broken before its last word. */
static void lines_use_their_whole_width(void **state)
{
	const double width = rfl_width("one two", 10) + 1e-9;

	(void)state;
	assert_int_equal(rfl_text_line("one two three", RFL_FACE_REGULAR, 10, width), 7);
	assert_int_equal(rfl_text_line("one two  three", RFL_FACE_REGULAR, 10, width), 7);
	assert_int_equal(rfl_text_line("one two", RFL_FACE_REGULAR, 10, width), 7);
	assert_int_equal(rfl_text_line("one twos", RFL_FACE_REGULAR, 10, width), 3);
	assert_int_equal(rfl_text_line("onetwothree", RFL_FACE_REGULAR, 10, width), 7);
	assert_int_equal(rfl_text_line("one", RFL_FACE_REGULAR, 10, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths_are_those_of_the_faces),
		cmocka_unit_test(widths_add_up),
		cmocka_unit_test(utf8_is_read_and_errors_are_seen),
		cmocka_unit_test(numbers_have_three_digits),
		cmocka_unit_test(names_are_for_people),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(lines_use_their_whole_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
