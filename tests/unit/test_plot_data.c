/*
 * test_plot_data.c - the data that pictures carry: written, drawn into PNG and SVG, read back, and
 * refused if the file is damaged or foreign.
 */
#include "rfl_test.h"

#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/plot.h"
#include "plot/surface_data.h"

#define NASTY "a ]]> & <b> \\ 'q' \xc3\xa9 \xe4\xb8\xad"

struct fixture {
	struct rfl_figure_data data;
	struct rfl_buf text;
	struct rfl_scene *scene;
};

static void open_fixture(struct fixture *f)
{
	static const char *const envs[] = { "lab_cpu" };
	struct rfl_err err = RFL_ERR_INIT;

	*f = (struct fixture){ .data = { .points_name = "points.csv",
					 .peaks_name = "peaks.json" } };
	assert_ok(rfl_points_load(RFL_TEST_DATA "/plot/points.csv", &f->data.points, &err), &err);
	assert_ok(rfl_peaks_load(RFL_TEST_DATA "/plot/peaks.json", &f->data.peaks, &err), &err);
	f->data.points->points[0].model = rfl_arena_strdup(f->data.points->arena, NASTY);
	f->data.options = json_pack("{s:s, s:[s, s]}", "title", NASTY, "env", "lab_cpu", "old_box");
	rfl_figure_data_clean(f->data.points);
	rfl_buf_init(&f->text, 0);
	assert_ok(rfl_figure_data_write(&f->data, envs, 1, &f->text, &err), &err);
	f->scene = rfl_scene_new(60, 40);
	assert_non_null(f->scene);
	f->scene->data = rfl_buf_str(&f->text);
}

static void close_fixture(struct fixture *f)
{
	rfl_scene_free(f->scene);
	rfl_buf_fini(&f->text);
	json_decref(f->data.options);
	rfl_points_free(f->data.points);
	rfl_peaks_free(f->data.peaks);
}

/* Draw the scene into a buffer. @return false if the format was not built */
static bool draw(const struct fixture *f, const char *format, struct rfl_buf *out)
{
	const struct rfl_surface_spec spec = { .no_text = true };
	const struct rfl_surface_ops *ops = rfl_surface_find(format, NULL);
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	if (ops)
		assert_ok(rfl_surface_draw(ops, &spec, f->scene, out, &err), &err);
	return ops != NULL;
}

static enum rfl_rc load_bytes(void **state, const void *bytes, size_t len,
			      struct rfl_figure_data **ret, struct rfl_err *err)
{
	const char *path = tmp_path(*state, "picture");

	*ret = NULL;
	assert_ok(rfl_file_write(path, bytes, len, err), err);
	return rfl_figure_data_load(path, ret, err);
}

static void pictures_carry_their_data(void **state)
{
	static const char *const formats[] = { "png", "svg" };
	struct fixture f;

	open_fixture(&f);
	for (size_t i = 0; i < RFL_ARRAY_LEN(formats); i++) {
		struct rfl_figure_data *got;
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf out;
		size_t n = 0;

		if (!draw(&f, formats[i], &out))
			continue;
		assert_ok(load_bytes(state, out.data, out.len, &got, &err), &err);
		assert_string_equal(got->points->hash, f.data.points->hash);
		assert_string_equal(got->peaks->hash, f.data.peaks->hash);
		assert_string_equal(got->points_name, "points.csv");
		assert_true(json_equal(got->options, f.data.options));
		assert_int_equal(got->peaks->nenvs, 1); /* of two: only the one that is drawn */
		for (size_t k = 0; k < f.data.points->n; k++) {
			const struct rfl_point *p = &f.data.points->points[k];

			if (strcmp(p->env, "lab_cpu") != 0)
				continue;
			assert_true(n < got->points->n);
			for (size_t c = 0; c < RFL_POINT_NCOLUMNS; c++)
				assert_true(rfl_field_same(&rfl_point_fields[c], p,
							   &got->points->points[n]));
			n++;
		}
		assert_true(n > 0 && n == got->points->n);
		rfl_figure_data_free(got);
		rfl_buf_fini(&out);
	}
	close_fixture(&f);
}

static void folders_and_users_stay_at_home(void **state)
{
	static const struct {
		const char *given, *kept;
	} cases[] = {
		{ "see /home/alice/run/counters.csv: no FLOPs", "see counters.csv: no FLOPs" },
		{ "/home/alice", "~" },
		{ "in /Users/alice, '/srv/a b'", "in ~, 'a b'" },
		{ "GFLOP/s, 5 / 7, logs/x.csv, /tmp", "GFLOP/s, 5 / 7, logs/x.csv, /tmp" },
		{ "https://example.org/a/b", "https://example.org/a/b" },
		{ "/opt/data/", "" },
		{ "file:///home/alice/a.csv, file:///home/alice", "file:a.csv, file:~" },
		{ "in JSON: a\\n/srv/run/b", "in JSON: a\\nb" },
		{ "x\001\xff", "x??" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_points *points = rfl_points_new(1);

		assert_non_null(points);
		points->points[0].counters_note = rfl_arena_strdup(points->arena, cases[i].given);
		rfl_figure_data_clean(points);
		assert_string_equal(points->points[0].counters_note, cases[i].kept);
		rfl_points_free(points);
	}
}

/* A PNG that is cut anywhere, or has any byte of its data changed, is refused. */
static void damaged_files_are_refused(void **state)
{
	struct fixture f;
	struct rfl_buf out;
	struct rfl_figure_data *got;
	struct rfl_err sum = RFL_ERR_INIT;
	size_t at, len = 0;

	open_fixture(&f);
	if (!draw(&f, "png", &out))
		skip();
	at = rfl_span_find((struct rfl_span){ out.data, out.len }, "iTXtroofline");
	assert_true(at < out.len);
	for (size_t cut = 0; cut < at + 2000 && cut < out.len; cut += cut < 64 ? 1 : 61) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_not_equal(load_bytes(state, out.data, cut, &got, &err), RFL_OK);
		assert_null(got);
		assert_says(&err, "picture: ");
	}
	for (size_t i = at - 4; i < at + 40; i++) {
		struct rfl_err err = RFL_ERR_INIT;

		out.data[i] ^= 0x10;
		assert_int_not_equal(load_bytes(state, out.data, out.len, &got, &err), RFL_OK);
		assert_null(got);
		out.data[i] ^= 0x10;
	}
	for (size_t i = at - 4; i < at; i++)
		len = len << 8 | (unsigned char)out.data[i];
	out.data[at + 4 + len] ^= 1;
	assert_int_equal(load_bytes(state, out.data, out.len, &got, &sum), RFL_EFORMAT);
	assert_says(&sum, "checksum");
	rfl_buf_fini(&out);
	close_fixture(&f);
}

static void put_word(struct rfl_buf *out, size_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		rfl_buf_putc(out, (char)(value >> shift));
}

/* 100 MiB of blanks, compressed to 100 KiB. */
static void a_bomb_is_not_unpacked(void **state)
{
	const size_t len = (size_t)100 << 20;
	uLongf size = compressBound(len);
	unsigned char *packed = malloc(size), *blanks = malloc(len);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_figure_data *got;
	struct rfl_buf png;

	assert_true(packed && blanks);
	memset(blanks, ' ', len);
	assert_int_equal(compress2(packed, &size, blanks, len, 1), Z_OK);
	rfl_buf_init(&png, 0);
	rfl_buf_append(&png, "\x89PNG\r\n\x1a\n", 8);
	put_word(&png, size + 13);
	rfl_buf_append(&png, "iTXtroofline\0\1\0\0", 17);
	rfl_buf_append(&png, packed, size);
	put_word(&png, crc32(0, (const Bytef *)png.data + 12, (uInt)size + 17));
	assert_int_equal(load_bytes(state, png.data, png.len, &got, &err), RFL_EOVERFLOW);
	assert_says(&err, "64 MiB");
	rfl_buf_fini(&png);
	free(packed);
	free(blanks);
}

static void other_files_are_explained(void **state)
{
	static const struct {
		const char *text;
		enum rfl_rc rc;
		const char *word;
	} cases[] = {
		{ "", RFL_EFORMAT, "not a PNG or SVG" },
		{ "env,model\n", RFL_EFORMAT, "not a PNG or SVG" },
		{ "%PDF-1.5", RFL_EFORMAT, "PDF files carry no" },
		{ "<svg/>", RFL_EMISSING, "no roofline data" },
		{ "<svg><metadata id=\"x\">{}</metadata></svg>", RFL_EMISSING, "no roofline data" },
		{ "<svg><!-- <metadata id='roofline-data'>{}</metadata> --></svg>", RFL_EMISSING,
		  "no roofline data" },
		{ "<svg><metadata id='roofline-data'>{", RFL_EFORMAT, "no element found" },
		{ "<svg><metadata id='roofline-data'>&nbsp;</metadata>", RFL_EFORMAT, "entity" },
		{ "<svg><metadata id='roofline-data'>{}</metadata>", RFL_EFORMAT, "schema" },
		{ "<svg><metadata id='roofline-data'>{&#34;schema&#34;: \"roofline.figure/1\"}"
		  "</metadata>",
		  RFL_EFORMAT, "must have points" },
		{ "<svg><metadata id='roofline-data'>{\"schema\": \"roofline.figure/1\", "
		  "\"points\": "
		  "\"env\", \"peaks\": {}, \"options\": {\"dpi\": 7}}</metadata>",
		  RFL_EFORMAT, "/options/dpi: must be a string" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_figure_data *got;

		assert_int_equal(
			load_bytes(state, cases[i].text, strlen(cases[i].text), &got, &err),
			cases[i].rc);
		assert_null(got);
		assert_says(&err, cases[i].word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pictures_carry_their_data, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(folders_and_users_stay_at_home),
		cmocka_unit_test_setup_teardown(damaged_files_are_refused, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_bomb_is_not_unpacked, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(other_files_are_explained, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
