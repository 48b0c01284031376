/*
 * test_plot_surface.c - the registry, what each surface writes, and what it says when it cannot.
 */
#include "rfl_test.h"

#include <math.h>
#include <string.h>

#include "plot/plot.h"

static const struct rfl_surface_spec spec = { .dpi = 100,
					      .font_dir = RFL_TEST_BUILD "/share/roofline/fonts" };

/* One of each primitive. */
static struct rfl_scene *small_scene(void)
{
	static const struct rfl_color red = { 200, 0, 0, 255 }, half = { 0, 0, 200, 128 };
	const struct rfl_xy points[] = { { 10, 10 }, { 20, 30 }, { 30, 10 } };
	struct rfl_scene *s = rfl_scene_new(120, 80);
	struct rfl_prim *p;

	assert_non_null(s);
	s->title = "A & B";
	p = rfl_scene_line(s, 0, 0, 120, 80, red, 1.5);
	p->dash = RFL_DASH_DASHED;
	p->id = "diagonal";
	p = rfl_scene_polygon(s, points, 3, half);
	p->stroke = red;
	p->width = 1;
	rfl_scene_rect(s, (struct rfl_box){ 40, 40, 30, 20 }, half)->tip = "a < b";
	rfl_scene_marker(s, RFL_MARKER_CIRCLE, 90, 20, 7, red, half, 1);
	rfl_scene_marker(s, RFL_MARKER_TRIANGLE, 90, 50, 7, red, RFL_COLOR_NONE, 0);
	p = rfl_scene_text(s, "5 < 7 & \"so\" \xc3\x97 \x01\xff", 10, 70, 9, red);
	p->at.text.angle = 0.5;
	p->at.text.face = RFL_FACE_BOLD;
	p->at.text.anchor = RFL_ANCHOR_END;
	p->at.text.halo = (struct rfl_color){ 255, 255, 255, 255 };
	p->at.text.halo_width = 3;
	return s;
}

static void draw(const char *format, struct rfl_buf *out)
{
	struct rfl_scene *s = small_scene();
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	assert_ok(rfl_surface_draw(rfl_surface_find(format, NULL), &spec, s, out, &err), &err);
	rfl_scene_free(s);
}

static void rows_are_complete_and_named_once(void **state)
{
	const struct rfl_surface_ops *a, *b;

	(void)state;
	for (size_t i = 0; (a = rfl_surface_at(i)); i++) {
		assert_non_null(a->name);
		assert_non_null(a->summary);
		assert_non_null(a->suffix);
		for (size_t k = 0; k < i && (b = rfl_surface_at(k)); k++)
			assert_string_not_equal(a->name, b->name);
		if (a->missing)
			continue;
		assert_true(a->begin && a->draw);
	}
	for (size_t i = 0; (a = rfl_surface_at(i)) || rfl_surface_formats[i]; i++)
		assert_string_equal(a->name, rfl_surface_formats[i]);
}

static void unknown_formats_are_refused(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_null(rfl_surface_find("bmp", &err));
	assert_int_equal(err.rc, RFL_ENOTFOUND);
	assert_says(&err, "roofline list surfaces");
}

static void record_lists_every_primitive(void **state)
{
	static const char expected[] =
		"scene 120 80 title \"A & B\"\n"
		"line id=diagonal 0 0 120 80 stroke #c80000 width 1.5 dashed\n"
		"polygon 10 10 20 30 30 10 fill #0000c880 stroke #c80000 width 1\n"
		"rect 40 40 30 20 fill #0000c880 tip \"a < b\"\n"
		"marker circle 90 20 7 fill #c80000 stroke #0000c880 width 1\n"
		"marker triangle 90 50 7 fill #c80000\n"
		"text 10 70 size 9 bold end angle 28.65 halo #ffffff \"5 < 7 & \"so\" \xc3\x97 "
		"??\" "
		"fill #c80000\n";
	struct rfl_buf out;

	(void)state;
	draw("record", &out);
	assert_string_equal(rfl_buf_str(&out), expected);
	rfl_buf_fini(&out);
}

/* Lines in braille, marks and texts in cells; with ANSI codes only if requested. */
static void terminals_get_characters(void **state)
{
	static const char expected[] = "⠉ ⣤⣀⣀⣀⡀\n"
				       "  ⠱⡀⢑⠎⣀           ●\n"
				       "   ⠑⠎   ⠒ ⡀\n"
				       "        ⣤⣤⣬⣤⣤⣤\n"
				       "        ⣿⣿⣿⣿⣿⣿⠉ ⢄ ▲\n"
				       "        ⠉⠉⠉⠉⠉⠉    ⠒ ⣀\n"
				       "5 < 7 & \"so\" × ?\?     ⠢\n";
	struct rfl_surface_spec small = { .columns = 24, .rows = 8 };
	const struct rfl_surface_ops *ops = rfl_surface_find("terminal", NULL);
	struct rfl_scene *s = small_scene();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	assert_ok(rfl_surface_draw(ops, &small, s, &out, &err), &err);
	assert_string_equal(rfl_buf_str(&out), expected);
	assert_null(strchr(rfl_buf_str(&out), '\033'));
	small.ansi = true;
	rfl_buf_reset(&out);
	assert_ok(rfl_surface_draw(ops, &small, s, &out, &err), &err);
	assert_non_null(strstr(rfl_buf_str(&out), "\033[0m\033[38;5;160m\xe2\x97\x8f")); /* red */
	assert_non_null(strstr(rfl_buf_str(&out), "\033[0;1m"));                         /* bold */
	assert_string_equal(strrchr(rfl_buf_str(&out), '\033'), "\033[0m\n");
	rfl_buf_fini(&out);
	rfl_scene_free(s);
}

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* A number that no surface can draw, or one that it can. */
static double any_number(uint64_t *r)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e6, -1e6, 0, -0.0 };
	const uint64_t k = next(r) % 40;

	return k < RFL_ARRAY_LEN(odd) ? odd[k] : (double)(next(r) % 4000) / 10 - 100;
}

static struct rfl_scene *any_scene(uint64_t *r, size_t n)
{
	static const char *const texts[] = {
		"",
		" ",
		"a",
		"\xff\xfe",
		"e\xcc\x81 \xe4\xb8\xad\xe6\x96\x87",
		"a text that is far wider than any picture that it is in, "
		"whatever its size, and has nowhere to go to from there"
	};
	struct rfl_scene *s = rfl_scene_new(200, 150);

	assert_non_null(s);
	for (size_t i = 0; i < n; i++) {
		const double a = any_number(r), b = any_number(r), c = any_number(r),
			     d = any_number(r);
		const struct rfl_xy xy[] = { { a, b }, { c, d }, { b, c } };
		const struct rfl_color color = { 200, (uint8_t)i, 0, i % 3 ? 255 : 0 };
		struct rfl_prim *p = NULL;

		switch (next(r) % 5) {
		case 0:
			p = rfl_scene_line(s, a, b, c, d, color, any_number(r));
			break;
		case 1:
			p = rfl_scene_polygon(s, xy, next(r) % 4, color);
			p->stroke = i % 2 ? color : RFL_COLOR_NONE;
			p->width = 1;
			break;
		case 2:
			p = rfl_scene_rect(s, (struct rfl_box){ a, b, c, d }, color);
			break;
		case 3:
			p = rfl_scene_marker(s, (enum rfl_marker)(i % (RFL_MARKER_RIGHT + 1)), a, b,
					     c, color, color, d);
			break;
		default:
			p = rfl_scene_text(s, texts[i % RFL_ARRAY_LEN(texts)], a, b, c, color);
			p->at.text.angle = i % 2 ? any_number(r) : 0;
			p->at.text.anchor = (enum rfl_anchor)(i % 3);
			p->at.text.halo = color;
			p->at.text.halo_width = d;
		}
		p->dash = (enum rfl_dash)(i % 3);
	}
	return s;
}

/* Any scene is drawn; primitives that cannot be drawn are omitted. */
static void any_scene_is_drawn(void **state)
{
	uint64_t r = 7;
	const struct rfl_surface_ops *ops;

	(void)state;
	for (size_t round = 0; round < 60; round++) {
		struct rfl_scene *s = any_scene(&r, round == 0 ? 10000 : round % 30);

		for (size_t i = 0; (ops = rfl_surface_at(i)); i++) {
			const struct rfl_surface_spec any = { .dpi = 72,
							      .font_dir = spec.font_dir,
							      .columns = (int)(1 + round * 3),
							      .rows = (int)(2 + round),
							      .ansi = round % 2 };
			struct rfl_err err = RFL_ERR_INIT;
			struct rfl_buf out;

			if (ops->missing)
				continue;
			rfl_buf_init(&out, 0);
			assert_ok(rfl_surface_draw(ops, &any, s, &out, &err), &err);
			if (strcmp(ops->name, "svg") == 0)
				assert_true(!strstr(rfl_buf_str(&out), "nan") &&
					    !strstr(rfl_buf_str(&out), "\"-9223"));
			if (ops->printed) {
				size_t rows = 0;

				for (size_t k = 0; k < out.len; k++)
					rows += out.data[k] == '\n';
				assert_true(rows <= (size_t)any.rows);
			}
			rfl_buf_fini(&out);
		}
		rfl_scene_free(s);
	}
}

static void svg_has_text_and_escapes_it(void **state)
{
	struct rfl_buf out;
	const char *svg;

	(void)state;
	draw("svg", &out);
	svg = rfl_buf_str(&out);
	assert_non_null(strstr(svg, "<title>A &amp; B</title>"));
	assert_non_null(strstr(svg, ">5 &lt; 7 &amp; &quot;so&quot; \xc3\x97 ?\?</text>"));
	assert_non_null(strstr(svg, "<line id=\"diagonal\""));
	assert_non_null(strstr(svg, "stroke-dasharray="));
	assert_non_null(strstr(svg, "fill-opacity=\"0.502\""));
	assert_non_null(strstr(svg, "><title>a &lt; b</title></rect>"));
	assert_non_null(strstr(svg, "text-anchor=\"end\""));
	assert_non_null(strstr(svg, "transform=\"rotate(-28.648 10 70)\""));
	assert_non_null(strstr(svg, "paint-order=\"stroke\""));
	/* the triangle is a polygon, the stand-in for what SVG has no element for */
	assert_non_null(strstr(svg, "<polygon points=\"90,41.25"));
	rfl_buf_fini(&out);
}

static bool built(const char *format)
{
	const struct rfl_surface_ops *ops;

	for (size_t i = 0; (ops = rfl_surface_at(i)); i++)
		if (strcmp(ops->name, format) == 0)
			return !ops->missing;
	return false;
}

static void absent_surfaces_say_how_to_get_them(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (built("png"))
		skip();
	assert_null(rfl_surface_find("png", &err));
	assert_int_equal(err.rc, RFL_EUNAVAILABLE);
	assert_says(&err, "libcairo2-dev");
	assert_says(&err, "--format svg");
}

static uint32_t word_at(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void png_has_size_and_resolution_and_no_time(void **state)
{
	struct rfl_buf out;
	const unsigned char *p;
	bool resolution = false;

	(void)state;
	if (!built("png"))
		skip();
	draw("png", &out);
	p = (const unsigned char *)out.data;
	assert_memory_equal(p, "\x89PNG\r\n\x1a\n", 8);
	assert_int_equal(word_at(p + 16), 167); /* 120 points at 100 dpi */
	assert_int_equal(word_at(p + 20), 111);
	for (size_t at = 8; at + 12 <= out.len; at += 12 + word_at(p + at)) {
		assert_memory_not_equal(p + at + 4, "tIME", 4);
		if (memcmp(p + at + 4, "pHYs", 4) == 0) {
			resolution = true;
			assert_int_equal(word_at(p + at + 8), 3937);
		}
	}
	assert_true(resolution);
	rfl_buf_fini(&out);
}

static size_t count(const struct rfl_buf *b, const char *word)
{
	size_t n = 0, len = strlen(word);

	for (size_t i = 0; i + len <= b->len; i++)
		n += memcmp(b->data + i, word, len) == 0;
	return n;
}

static void pdf_has_one_page_and_a_fixed_date(void **state)
{
	struct rfl_buf out;

	(void)state;
	if (!built("pdf"))
		skip();
	draw("pdf", &out);
	assert_memory_equal(out.data, "%PDF-", 5);
	assert_int_equal(count(&out, "/Type /Page "), 1);
	assert_int_equal(count(&out, "/Count 1"), 1);
	assert_int_equal(count(&out, "/CreationDate (20000101000000Z)"), 1);
	assert_true(count(&out, "LiberationSans-Bold") > 0); /* embedded by name */
	rfl_buf_fini(&out);
}

static void same_scene_same_bytes(void **state)
{
	static const char *const formats[] = { "record", "terminal", "svg", "png", "pdf" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(formats); i++) {
		struct rfl_buf a, b;

		if (!built(formats[i]))
			continue;
		draw(formats[i], &a);
		draw(formats[i], &b);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.data, b.data, a.len);
		rfl_buf_fini(&a);
		rfl_buf_fini(&b);
	}
}

static void missing_fonts_are_named(void **state)
{
	static const char *const formats[] = { "png", "pdf" };

	for (size_t i = 0; i < 2; i++) {
		struct rfl_surface_spec nowhere = { .font_dir = *state };
		const struct rfl_surface_ops *ops;
		struct rfl_scene *s;
		struct rfl_buf out;
		struct rfl_err err = RFL_ERR_INIT;

		if (!built(formats[i]))
			skip();
		s = small_scene();
		rfl_buf_init(&out, 0);
		ops = rfl_surface_find(formats[i], NULL);
		assert_int_equal(rfl_surface_draw(ops, &nowhere, s, &out, &err), RFL_EUNAVAILABLE);
		assert_says(&err, "LiberationSans-Regular.ttf");
		assert_says(&err, "fonts-liberation");
		rfl_err_clear(&err);
		write_file(*state, "LiberationSans-Regular.ttf", "not a font");
		assert_int_equal(ops->probe(&nowhere, &err), RFL_EUNAVAILABLE);
		assert_says(&err, "not a font");
		assert_int_equal(ops->probe(&spec, NULL), RFL_OK);
		/* without text no font is asked for */
		nowhere.no_text = true;
		rfl_buf_reset(&out);
		rfl_err_clear(&err);
		assert_ok(rfl_surface_draw(ops, &nowhere, s, &out, &err), &err);
		rfl_buf_fini(&out);
		rfl_scene_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_complete_and_named_once),
		cmocka_unit_test(unknown_formats_are_refused),
		cmocka_unit_test(record_lists_every_primitive),
		cmocka_unit_test(terminals_get_characters),
		cmocka_unit_test(any_scene_is_drawn),
		cmocka_unit_test(svg_has_text_and_escapes_it),
		cmocka_unit_test(absent_surfaces_say_how_to_get_them),
		cmocka_unit_test(png_has_size_and_resolution_and_no_time),
		cmocka_unit_test(pdf_has_one_page_and_a_fixed_date),
		cmocka_unit_test(same_scene_same_bytes),
		cmocka_unit_test_setup_teardown(missing_fonts_are_named, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
