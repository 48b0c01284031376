/*
 * surface_data.c - writes the data that a picture carries, and reads it from PNG and SVG files,
 * which other programs may have changed, truncated or created.
 */
#include "plot/surface_data.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "rfl_config.h"

/* ---- writing ---- */

/* Remove the directories of absolute paths: "/srv/run/points.csv" becomes "points.csv",
 * "/home/alice" becomes "~". @return the length */
static size_t strip_folders(char *text, size_t len)
{
	static const char before[] = " \t\n\"'(=,:;[<", after[] = " \t\n\"'),;]>\\";
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const bool escaped = i > 1 && text[i - 2] == '\\'; /* after "\n" in JSON */
		struct rfl_span path;
		size_t base = 0;
		bool home;

		if (text[i] != '/' || (i > 0 && !escaped && !strchr(before, text[i - 1]))) {
			text[n++] = text[i];
			continue;
		}
		if (rfl_span_starts((struct rfl_span){ text + i, len - i }, "///"))
			i += 2; /* "file:///home" */
		path = (struct rfl_span){ text + i, 0 };
		for (; i + path.len < len && !strchr(after, path.at[path.len]); path.len++)
			if (path.at[path.len] == '/')
				base = path.len;
		home = rfl_span_starts(path, "/home/") || rfl_span_starts(path, "/Users/");
		if (base == 0 || path.at[1] == '/') { /* "/tmp"; "//host" follows "https:" */
			text[n++] = '/';
		} else if (home && !memchr(path.at + 7, '/', path.len > 7 ? path.len - 7 : 0)) {
			text[n++] = '~';
			i += path.len - 1;
		} else {
			i += base;
		}
	}
	return n;
}

void rfl_figure_data_clean(struct rfl_points *points)
{
	for (size_t i = 0; i < points->n; i++)
		for (const struct rfl_field *f = rfl_point_fields;
		     f < rfl_point_fields + RFL_POINT_NCOLUMNS; f++) {
			char *text = f->kind == RFL_FIELD_TEXT
					     ? *rfl_field_text_at(f, &points->points[i])
					     : NULL;

			if (!text)
				continue;
			rfl_text_one_line(text);
			text[strip_folders(text, strlen(text))] = '\0';
		}
}

/* Append the peaks file with only the environments drawn. */
static enum rfl_rc write_peaks(const struct rfl_peaks *peaks, const char *const *envs, size_t nenvs,
			       struct rfl_buf *out, struct rfl_err *err)
{
	json_t *all;
	json_auto_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(peaks->text, strlen(peaks->text), peaks->path, &root, err);
	const size_t from = out->len;

	if (rc != RFL_OK)
		return rc;
	json_object_del(root, "generated_by");
	all = json_object_get(root, "schema_version") ? json_object_get(root, "environments")
						      : root;
	for (void *it = json_object_iter(all), *next; it; it = next) {
		const char *name = json_object_iter_key(it);
		bool drawn = false;

		next = json_object_iter_next(all, it);
		for (size_t i = 0; i < nenvs; i++)
			drawn = drawn || strcmp(name, envs[i]) == 0;
		if (!drawn)
			json_object_del(all, name);
	}
	rfl_json_write_line(out, root);
	if (!out->failed) /* no quote or backslash is removed, so that it remains JSON */
		out->len = from + strip_folders(out->data + from, out->len - from);
	return RFL_OK;
}

static void write_file(struct rfl_buf *out, const char *key, const char *name, const char *hash)
{
	rfl_buf_printf(out, ", \"%s\": {\"name\": ", key);
	rfl_json_write_string(out, name, strlen(name));
	rfl_buf_printf(out, ", \"hash\": \"%s\"}", hash);
}

/* Append the points of the environments as a member with CSV text. */
static enum rfl_rc write_points(struct rfl_buf *out, const char *key,
				const struct rfl_points *points, const char *const *envs,
				size_t nenvs, struct rfl_err *err)
{
	RFL_AUTO(buf) rows = { .len = 0 };

	rfl_fields_write_header(rfl_point_fields, RFL_POINT_NCOLUMNS, &rows);
	for (size_t k = 0; k < nenvs; k++) /* without --env, in the order of the points */
		for (size_t i = 0; i < points->n; i++)
			if (rfl_text_same(points->points[i].env, envs[k]))
				rfl_fields_write(rfl_point_fields, RFL_POINT_NCOLUMNS,
						 &points->points[i], &rows);
	rfl_buf_printf(out, ", \"%s\": ", key);
	rfl_json_write_string(out, rfl_buf_str(&rows), rows.len);
	return rfl_buf_check(&rows, key, err);
}

enum rfl_rc rfl_figure_data_write(const struct rfl_figure_data *data, const char *const *envs,
				  size_t nenvs, struct rfl_buf *out, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (data->points->n > RFL_DATA_POINTS)
		return rfl_fail(err, RFL_EOVERFLOW, 0,
				"%s: a picture carries up to %d points: drawn without data",
				data->points_name, RFL_DATA_POINTS);
	rfl_buf_puts(out, "{\"schema\": \"" RFL_DATA_SCHEMA "\", \"version\": \"" RFL_VERSION
			  "\", \"options\": ");
	rfl_json_write_line(out, data->options);
	write_file(out, "points_file", data->points_name, data->points->hash);
	write_file(out, "peaks_file", data->peaks_name, data->peaks->hash);
	if (data->before)
		write_file(out, "before_file", data->before_name, data->before->hash);
	rfl_buf_puts(out, ", \"peaks\": ");
	rc = write_peaks(data->peaks, envs, nenvs, out, err);
	if (rc == RFL_OK)
		rc = write_points(out, "points", data->points, envs, nenvs, err);
	if (rc == RFL_OK && data->before)
		rc = write_points(out, "before", data->before, envs, nenvs, err);
	rfl_buf_putc(out, '}');
	if (rc == RFL_OK && (out->failed || out->len > RFL_DATA_MAX))
		rc = rfl_fail(err, RFL_EOVERFLOW, 0,
			      "%s: a picture carries up to %zu MiB of points: drawn without data",
			      data->points_name, RFL_DATA_MAX >> 20);
	if (rc == RFL_OK)
		rc = rfl_buf_check(out, "data of the picture", err);
	return rc;
}

/* ---- reading: PNG ---- */

static enum rfl_rc no_data(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EMISSING, 0,
			"%s: no roofline data; use the original picture of 'roofline plot', "
			"since saving it with another program can remove the data",
			path);
}

static enum rfl_rc damaged(const char *path, const char *what, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s; copy the picture again, or redraw it", path,
			what);
}

static enum rfl_rc too_large(const char *path, struct rfl_err *err)
{
	return rfl_fail(
		err, RFL_EOVERFLOW, 0,
		"%s: its roofline data has more than %zu MiB; use a picture of 'roofline plot'",
		path, RFL_DATA_MAX >> 20);
}

static size_t get_word(const char *at)
{
	const unsigned char *p = (const unsigned char *)at;

	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static enum rfl_rc unpack(struct rfl_span packed, const char *path, struct rfl_buf *out,
			  struct rfl_err *err)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)packed.at, .avail_in = (uInt)packed.len };
	unsigned char block[65536];
	int status = inflateInit(&z);

	if (status != Z_OK)
		rfl_out_of_memory();
	while (status == Z_OK && !out->failed) {
		z.next_out = block;
		z.avail_out = sizeof(block);
		status = inflate(&z, Z_NO_FLUSH);
		rfl_buf_append(out, block, sizeof(block) - z.avail_out);
	}
	(void)inflateEnd(&z);
	if (out->failed)
		return too_large(path, err);
	if (status != Z_STREAM_END && !out->failed)
		return damaged(path, "the roofline data cannot be decompressed", err);
	return rfl_buf_check(out, path, err);
}

/* Append the text of an iTXt chunk: keyword, 0, compressed?, method, language, 0, translated
 * keyword, 0, text. */
static enum rfl_rc chunk_text(struct rfl_span chunk, const char *path, struct rfl_buf *out,
			      struct rfl_err *err)
{
	const size_t head = sizeof(RFL_DATA_PNG_KEYWORD) + 2;
	const char *compressed = chunk.at + sizeof(RFL_DATA_PNG_KEYWORD);
	struct rfl_span text = rfl_span_from(chunk, head < chunk.len ? head : chunk.len);

	for (int i = 0; i < 2; i++) {
		const char *end = text.len > 0 ? memchr(text.at, '\0', text.len) : NULL;

		if (!end)
			return damaged(path, "the roofline data is incomplete", err);
		text = rfl_span_from(text, (size_t)(end - text.at) + 1);
	}
	if (*compressed)
		return unpack(text, path, out, err);
	rfl_buf_append(out, text.at, text.len);
	return out->failed ? too_large(path, err) : rfl_buf_check(out, path, err);
}

static enum rfl_rc read_png(struct rfl_span file, const char *path, struct rfl_buf *out,
			    struct rfl_err *err)
{
	for (struct rfl_span rest = rfl_span_from(file, 8);;) {
		const size_t size = rest.len < 12 ? 0 : get_word(rest.at);
		const char *chunk = rest.at + 8;

		if (rest.len < 12 || size > rest.len - 12)
			return damaged(path, "the file is cut off, or a chunk length is wrong",
				       err);
		if (memcmp(rest.at + 4, "IEND", 4) == 0)
			return no_data(path, err);
		if (memcmp(rest.at + 4, "iTXt", 4) == 0 && size > sizeof(RFL_DATA_PNG_KEYWORD) &&
		    memcmp(chunk, RFL_DATA_PNG_KEYWORD, sizeof(RFL_DATA_PNG_KEYWORD)) == 0) {
			if (crc32(0, (const Bytef *)rest.at + 4, (uInt)size + 4) !=
			    get_word(chunk + size))
				return damaged(path, "the checksum of the roofline data is wrong",
					       err);
			return chunk_text((struct rfl_span){ chunk, size }, path, out, err);
		}
		rest = rfl_span_from(rest, size + 12);
	}
}

/* ---- reading: SVG ---- */

struct reader {
	XML_Parser parser;
	struct rfl_buf *out;
	size_t depth; /* in the element with the data */
	bool svg, done;
};

/* The name of an element or attribute without its namespace: "metadata" for "svg:metadata". */
static const char *local(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon ? colon + 1 : name;
}

static void start_element(void *ctx, const char *name, const char **attributes)
{
	struct reader *r = ctx;

	r->svg = r->svg || strcmp(local(name), "svg") == 0;
	r->depth += r->depth > 0;
	for (; *attributes && strcmp(local(name), "metadata") == 0; attributes += 2)
		if (strcmp(attributes[0], "id") == 0 && strcmp(attributes[1], RFL_DATA_SVG_ID) == 0)
			r->depth = 1;
}

static void end_element(void *ctx, const char *name)
{
	struct reader *r = ctx;

	(void)name;
	if (r->depth > 0 && --r->depth == 0) {
		r->done = true;
		(void)XML_StopParser(r->parser, XML_FALSE);
	}
}

static void characters(void *ctx, const char *text, int len)
{
	struct reader *r = ctx;

	if (r->depth > 0)
		rfl_buf_append(r->out, text, (size_t)len);
}

static enum rfl_rc read_svg(struct rfl_span file, const char *path, struct rfl_buf *out,
			    struct rfl_err *err)
{
	struct reader r = { .parser = XML_ParserCreate(NULL), .out = out };
	const char *fault = NULL;
	enum rfl_rc rc = RFL_OK;

	if (!r.parser)
		rfl_out_of_memory();
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, start_element, end_element);
	XML_SetCharacterDataHandler(r.parser, characters);
	if (file.len > INT_MAX ||
	    XML_Parse(r.parser, file.at, (int)file.len, 1) == XML_STATUS_ERROR)
		fault = XML_ErrorString(XML_GetErrorCode(r.parser));
	if (!r.svg)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: not a PNG or SVG file; use one written by 'roofline plot'",
			      path);
	else if (out->failed)
		rc = too_large(path, err);
	else if (!r.done)
		rc = fault ? damaged(path, fault, err) : no_data(path, err);
	XML_ParserFree(r.parser);
	return rc;
}

/* ---- reading: the text ---- */

/* Read the name and the hash of a file. */
static enum rfl_rc read_file(json_t *root, const char *key, struct rfl_where *w, const char **name,
			     char hash[17], struct rfl_err *err)
{
	const char *text = NULL;
	const size_t mark = rfl_where_key(w, key);

	if (json_unpack(root, "{s:{s:s, s:s}}", key, "name", name, "hash", &text) != 0 ||
	    strlen(text) > 16 || strspn(text, "0123456789abcdef") != strlen(text))
		return rfl_where_fail(w, err, "must be an object with a name and a hash");
	(void)rfl_span_copy(rfl_span_of(text), hash, 17);
	rfl_where_up(w, mark);
	return RFL_OK;
}

static enum rfl_rc check_options(const json_t *options, struct rfl_where *w, struct rfl_err *err)
{
	json_t *object = (json_t *)(uintptr_t)options, *value;
	const char *key;

	(void)rfl_where_key(w, "options");
	if (!json_is_object(options))
		return rfl_where_fail(w, err, "must be an object");
	json_object_foreach(object, key, value)
	{
		const size_t mark = rfl_where_key(w, key);
		bool texts = json_is_string(value) || json_is_array(value);

		for (size_t i = 0; i < json_array_size(value); i++)
			texts = texts && json_is_string(json_array_get(value, i));
		if (!texts)
			return rfl_where_fail(w, err, "must be a string or a list of strings");
		rfl_where_up(w, mark);
	}
	rfl_where_up(w, 0);
	return RFL_OK;
}

static enum rfl_rc parse(struct rfl_figure_data *d, const char *path, struct rfl_err *err)
{
	const char *schema = json_string_value(json_object_get(d->root, "schema"));
	const char *points = json_string_value(json_object_get(d->root, "points"));
	const json_t *before = json_object_get(d->root, "before");
	const json_t *peaks = json_object_get(d->root, "peaks");
	char points_hash[17], peaks_hash[17], before_hash[17];
	struct rfl_where w;
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	rfl_where_begin(&w, path, "");
	if (!schema || strcmp(schema, RFL_DATA_SCHEMA) != 0)
		return rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: the data does not have schema %s; use a newer version of roofline",
			path, RFL_DATA_SCHEMA);
	if (!points || !*points || !peaks)
		return rfl_where_fail(&w, err, "must have points (a string) and peaks (an object)");
	if (before && json_string_length(before) == 0) {
		(void)rfl_where_key(&w, "before");
		return rfl_where_fail(&w, err, "must be a string");
	}
	d->options = json_object_get(d->root, "options");
	rfl_json_write_line(&text, peaks);
	(void)((rc = check_options(d->options, &w, err)) ||
	       (rc = read_file(d->root, "points_file", &w, &d->points_name, points_hash, err)) ||
	       (rc = read_file(d->root, "peaks_file", &w, &d->peaks_name, peaks_hash, err)) ||
	       (rc = rfl_points_loads(points, strlen(points), path, &d->points, err)) ||
	       (before &&
		((rc = read_file(d->root, "before_file", &w, &d->before_name, before_hash, err)) ||
		 (rc = rfl_points_loads(json_string_value(before), json_string_length(before), path,
					&d->before, err)))) ||
	       (rc = rfl_buf_check(&text, path, err)) ||
	       (rc = rfl_peaks_loads(text.data, text.len, path, &d->peaks, err)));
	if (rc != RFL_OK)
		return rc;
	memcpy(d->points->hash, points_hash, sizeof(points_hash));
	memcpy(d->peaks->hash, peaks_hash, sizeof(peaks_hash));
	if (before)
		memcpy(d->before->hash, before_hash, sizeof(before_hash));
	return RFL_OK;
}

enum rfl_rc rfl_figure_data_load(const char *path, struct rfl_figure_data **ret,
				 struct rfl_err *err)
{
	RFL_AUTOPTR(figure_data) d = rfl_alloc_array(1, sizeof(*d));
	RFL_AUTO(buf) text = { .max = RFL_DATA_MAX };
	RFL_AUTO(buf) bytes = { .len = 0 };
	struct rfl_span file;
	enum rfl_rc rc;

	if ((rc = rfl_file_read(path, &bytes, err)))
		return rc;
	file = (struct rfl_span){ rfl_buf_str(&bytes), bytes.len };
	if (rfl_span_starts(file, "%PDF-"))
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: PDF files carry no roofline data; use a PNG or SVG file", path);
	else if (rfl_span_starts(file, "\x89PNG\r\n\x1a\n"))
		rc = read_png(file, path, &text, err);
	else
		rc = read_svg(file, path, &text, err);
	if (rc || (rc = rfl_json_loads(rfl_buf_str(&text), text.len, path, &d->root, err)) ||
	    (rc = parse(d, path, err)))
		return rc;
	*ret = d;
	d = NULL;
	return rc;
}

void rfl_figure_data_free(struct rfl_figure_data *data)
{
	if (!data)
		return;
	rfl_points_free(data->points);
	rfl_points_free(data->before);
	rfl_peaks_free(data->peaks);
	json_decref(data->root);
	free(data);
}
