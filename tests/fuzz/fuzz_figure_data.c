/* The data in a PNG or SVG file: data that was read and written is read back unchanged. */
#include <string.h>

#include <zlib.h>

#include "base/buf.h"
#include "fuzz.h"
#include "plot/surface_data.h"

/* The text for all environments. */
static void write_all(struct rfl_figure_data *d, struct rfl_buf *out)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	for (size_t i = 0; i < d->peaks->nenvs; i++) {
		const char *env = d->peaks->envs[i].name;

		FUZZ_ASSERT(rfl_figure_data_write(d, &env, 1, out, &err) == RFL_OK);
	}
}

static void check(struct rfl_figure_data *once)
{
	struct rfl_figure_data *twice = NULL;
	const char *envs[64];
	struct rfl_buf file, a, b;
	struct rfl_err err = RFL_ERR_INIT;
	size_t n = 0;

	rfl_figure_data_clean(once->points);
	while (n < once->peaks->nenvs && n < RFL_ARRAY_LEN(envs)) {
		envs[n] = once->peaks->envs[n].name;
		n++;
	}
	rfl_buf_init(&file, 0);
	rfl_buf_puts(&file, "<svg:svg><svg:metadata\nid = 'roofline-data'>");
	rfl_buf_init(&a, 0);
	FUZZ_ASSERT(rfl_figure_data_write(once, envs, n, &a, &err) == RFL_OK);
	for (size_t i = 0; i < a.len; i++)
		rfl_buf_printf(&file, strchr("&<>", a.data[i]) ? "&#%d;" : "%c", a.data[i]);
	rfl_buf_puts(&file, "</svg:metadata></svg:svg>");
	rfl_buf_fini(&a);
	FUZZ_ASSERT(rfl_figure_data_load(fuzz_memory((const uint8_t *)file.data, file.len), &twice,
					 &err) == RFL_OK);
	FUZZ_ASSERT(json_equal(once->options, twice->options));
	if (n == once->peaks->nenvs) {
		write_all(once, &a);
		write_all(twice, &b);
		FUZZ_ASSERT(strcmp(rfl_buf_str(&a), rfl_buf_str(&b)) == 0);
		rfl_buf_fini(&a);
		rfl_buf_fini(&b);
	}
	rfl_figure_data_free(twice);
	rfl_buf_fini(&file);
}

static void load(const char *path)
{
	struct rfl_figure_data *d = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	enum rfl_rc rc = rfl_figure_data_load(path, &d, &err);

	fuzz_check(rc, d, &err, path);
	if (d)
		check(d);
	rfl_figure_data_free(d);
}

static void put_word(struct rfl_buf *out, size_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		rfl_buf_putc(out, (char)(value >> shift));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_buf png;

	load(fuzz_memory(data, size));
	/* the input as the chunk of a PNG file, with the checksum that a search does not find */
	rfl_buf_init(&png, 0);
	rfl_buf_append(&png, "\x89PNG\r\n\x1a\n", 8);
	put_word(&png, size + 9);
	rfl_buf_append(&png, "iTXtroofline", 13);
	rfl_buf_append(&png, data, size);
	put_word(&png, crc32(0, (const Bytef *)png.data + 12, (uInt)size + 13));
	load(fuzz_memory((const uint8_t *)png.data, png.len));
	rfl_buf_fini(&png);
	return 0;
}
