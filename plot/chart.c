/* chart.c - builds a chart of series and rows, and has gnuplot draw it. */
#include "plot/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"

#define TIMEOUT_S 60.0

const char *const rfl_chart_formats[] = { "png", "svg", "pdf", NULL };

struct rfl_chart *rfl_chart_new(const char *stem, const char *env)
{
	struct rfl_chart *c = calloc(1, sizeof(*c));
	struct rfl_scene *s = rfl_scene_new(RFL_CHART_WIDTH, RFL_CHART_HEIGHT);

	if (!c || !s) {
		rfl_scene_free(s);
		free(c);
		return NULL;
	}
	c->scene = s;
	c->stem = rfl_scene_printf(s, "%s_%s", stem, env);
	c->title = c->subtitle = c->note = "";
	for (size_t i = 0; i < RFL_CHART_PANELS; i++)
		c->panels[i].x = c->panels[i].y = (struct rfl_chart_axis){ .lo = NAN, .hi = NAN };
	return c;
}

void rfl_chart_free(struct rfl_chart *c)
{
	if (c)
		rfl_scene_free(c->scene);
	free(c);
}

struct rfl_chart_series *rfl_chart_series(struct rfl_chart *c, size_t panel, const char *name)
{
	struct rfl_chart_panel *p = &c->panels[panel];
	struct rfl_chart_series *s;

	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->series[i].name, name) == 0)
			return &p->series[i];
	if (rfl_scene_grow(c->scene, &p->series, p->n, 1, &p->cap, sizeof(*s)))
		s = &p->series[p->n++];
	else
		s = &c->scratch;
	*s = (struct rfl_chart_series){ .name = name };
	return s;
}

void rfl_chart_add(struct rfl_chart *c, struct rfl_chart_series *s, struct rfl_chart_row row)
{
	if (!rfl_scene_grow(c->scene, &s->rows, s->n, 1, &s->cap, sizeof(row)))
		return;
	s->rows[s->n++] = row;
	s->has_value |= !isnan(row.y);
	s->has_bars |= !isnan(row.lo);
	s->has_crossed |= row.n == 0;
}

/* Run gnuplot with a script on its standard input, without its startup files, GNUTERM and the
 * locale. */
static enum rfl_rc run_gnuplot(const char *arg, const struct rfl_buf *script, const char *data_dir,
			       struct rfl_proc_result *ret, struct rfl_err *err)
{
	char fonts[4096];
	const char *const argv[] = { "gnuplot", "-d", arg, NULL };
	const char *const env[] = { "GNUTERM=unknown", "LC_ALL=C.UTF-8", data_dir ? fonts : NULL,
				    NULL };
	const struct rfl_proc_spec spec = {
		.argv = argv,
		.env = env,
		.input = script->data,
		.input_len = script->len,
		.capture_stdout = true,
		.capture_stderr = true,
		.timeout_s = TIMEOUT_S,
	};
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (data_dir) /* fontconfig looks for fonts in $XDG_DATA_HOME/fonts */
		(void)snprintf(fonts, sizeof(fonts), "XDG_DATA_HOME=%s", data_dir);
	rc = rfl_proc_run(&spec, ret, &why);
	if (rc == RFL_EUNAVAILABLE)
		return rfl_fail(err, rc, why.native,
				"gnuplot: not found in PATH; install the package gnuplot-nox to "
				"draw charts");
	return rc == RFL_OK ? rc : rfl_fail(err, rc, why.native, "%s", why.msg);
}

enum rfl_rc rfl_chart_probe(struct rfl_buf *version, struct rfl_err *err)
{
	const struct rfl_buf none = { .data = NULL };
	struct rfl_proc_result result = { .started = false };
	enum rfl_rc rc = run_gnuplot("--version", &none, NULL, &result, err);

	if (rc == RFL_OK && (!result.exited || result.exit_code != 0))
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
			      "'gnuplot --version' failed; reinstall the package gnuplot-nox");
	if (rc == RFL_OK && version) { /* "gnuplot 5.4 patchlevel 4" */
		const char *text = rfl_buf_str(&result.out);

		text += strncmp(text, "gnuplot ", 8) == 0 ? 8 : 0;
		rfl_buf_append(version, text, strcspn(text, "\n"));
	}
	rfl_proc_result_fini(&result);
	return rc;
}

/* Whether the output is a complete picture. */
static bool is_picture(const char *format, const struct rfl_buf *b)
{
	const struct rfl_span span = { .at = rfl_buf_str(b), .len = b->len };

	if (b->failed)
		return false;
	if (strcmp(format, "png") == 0)
		return rfl_span_starts(span, "\x89PNG") && span.len > 12 &&
		       memcmp(span.at + span.len - 8, "IEND", 4) == 0;
	if (strcmp(format, "pdf") == 0)
		return rfl_span_starts(span, "%PDF") && rfl_span_ends(span, "%%EOF\n");
	return rfl_span_starts(span, "<?xml") && rfl_span_has(span, "</svg>");
}

/* Replace the time in a PDF file, so that the same input gives the same bytes. */
static void fix_date(struct rfl_buf *pdf)
{
	static const char key[] = "/CreationDate (D:", date[] = "20000101000000";
	const struct rfl_span span = { .at = pdf->data, .len = pdf->len };
	const size_t at = rfl_span_find(span, key) + strlen(key);

	if (at + strlen(date) < pdf->len)
		memcpy(pdf->data + at, date, strlen(date));
}

enum rfl_rc rfl_chart_draw(const struct rfl_chart *c, const struct rfl_chart_spec *spec,
			   const char *format, const char *script_path, struct rfl_buf *out,
			   struct rfl_err *err)
{
	struct rfl_proc_result r = { .started = false };
	struct rfl_buf script;
	char *said;
	enum rfl_rc rc;

	rfl_buf_init(&script, 0);
	if ((rc = rfl_chart_script(c, spec, &format, 1, false, &script, err)) ||
	    (rc = run_gnuplot("-", &script, spec->data_dir, &r, err)))
		goto done;
	rfl_text_mask_from(&r.err, 0);
	said = r.err.data;
	for (size_t i = 0; said && i < r.err.len; i++)
		said[i] = said[i] == '\n' || said[i] == '\t' ? ' ' : said[i];
	if (said)
		said += strspn(said, " ");
	if (r.timed_out || !r.exited || r.exit_code != 0)
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s: gnuplot %s%s%s", script_path,
			      r.timed_out ? "did not finish within a minute" : "failed",
			      said && *said ? ": " : "", said ? said : "");
	else if (!is_picture(format, &r.out))
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s: gnuplot wrote no %s picture%s%s",
			      script_path, format, said && *said ? ": " : "", said ? said : "");
	if (rc)
		goto done;
	if (said && *said)
		rfl_log(RFL_LOG_WARN, "%s: gnuplot: %s", script_path, said);
	if (strcmp(format, "pdf") == 0)
		fix_date(&r.out);
	rfl_buf_append(out, r.out.data, r.out.len);
	rc = rfl_buf_check(out, c->stem, err);
done:
	rfl_buf_fini(&script);
	rfl_proc_result_fini(&r);
	return rc;
}
