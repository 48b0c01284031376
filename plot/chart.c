/* chart.c - builds a chart of series and rows, and writes its numbers as a gnuplot script. */
#include "plot/chart.h"

#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

struct rfl_chart *rfl_chart_new(const char *stem, const char *env)
{
	struct rfl_scene *s = rfl_scene_new(RFL_CHART_WIDTH, RFL_CHART_HEIGHT);
	struct rfl_chart *c = rfl_arena_array(s->arena, 1, sizeof(*c));

	c->scene = s;
	c->stem = rfl_scene_printf(s, "%s_%s", stem, env);
	c->title = c->subtitle = c->note = "";
	for (size_t i = 0; i < RFL_CHART_PANELS; i++) {
		c->panels[i].x = c->panels[i].y = (struct rfl_chart_axis){ .lo = NAN, .hi = NAN };
		c->panels[i].x.title = c->panels[i].y.title = "";
	}
	return c;
}

struct rfl_chart_series *rfl_chart_series(struct rfl_chart *c, size_t panel, const char *name)
{
	struct rfl_chart_panel *p = &c->panels[panel];

	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->series[i].name, name) == 0)
			return &p->series[i];
	rfl_arena_reserve(c->scene->arena, &p->series, &p->cap, p->n + 1);
	p->series[p->n] = (struct rfl_chart_series){ .name = name };
	return &p->series[p->n++];
}

void rfl_chart_add(struct rfl_chart *c, struct rfl_chart_series *s, struct rfl_chart_row row)
{
	rfl_arena_reserve(c->scene->arena, &s->rows, &s->cap, s->n + 1);
	s->rows[s->n++] = row;
	s->has_value |= !isnan(row.y);
	s->has_bars |= !isnan(row.lo);
	s->has_crossed |= row.n == 0;
}

/* ---- the script ---- */

/* Write a text as a gnuplot string in single quotes, which has no escapes. Single quotes are
 * written in double quotes: gnuplot misreads a doubled one at the beginning of a string. */
static void put_text(struct rfl_buf *out, const char *before, const char *text, const char *after)
{
	rfl_buf_printf(out, "%s'", before);
	for (; *text; text++) {
		if (*text == '\'')
			rfl_buf_puts(out, "'.\"'\".'");
		else
			rfl_buf_putc(out,
				     (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
	}
	rfl_buf_printf(out, "'%s", after);
}

static void put_data(const struct rfl_chart *c, struct rfl_buf *out)
{
	for (size_t i = 0; i < c->npanels; i++)
		for (size_t k = 0; k < c->panels[i].n; k++) {
			const struct rfl_chart_series *s = &c->panels[i].series[k];

			rfl_buf_printf(out, "# x y low high n\n$panel%zu_%zu << EOD\n", i + 1,
				       k + 1);
			for (const struct rfl_chart_row *r = s->rows; r < s->rows + s->n; r++) {
				const double values[] = { r->x, r->y, r->lo, r->hi };
				char text[RFL_NUM_MAX];

				for (size_t v = 0; v < RFL_ARRAY_LEN(values); v++)
					rfl_buf_printf(out, "%s ",
						       isnan(values[v])
							       ? "NaN"
							       : rfl_num_exact(values[v], text));
				rfl_buf_printf(out, "%zu\n", r->n);
			}
			rfl_buf_puts(out, "EOD\n");
		}
}

static void put_plot(const struct rfl_chart *c, size_t i, struct rfl_buf *out)
{
	const struct rfl_chart_panel *d = &c->panels[i];
	const char *before = "plot ";

	put_text(out, "set xlabel ", c->nbars ? d->y.title : d->x.title, "\n");
	put_text(out, "set ylabel ", c->nbars ? "" : d->y.title, "\nunset logscale\n");
	if (d->x.log)
		rfl_buf_printf(out, "set logscale x %d\n", d->x.log);
	if (d->y.log)
		rfl_buf_printf(out, "set logscale y %d\n", d->y.log);
	for (size_t k = 0; k < c->nbars; k++) {
		put_text(out, k ? ", " : "set yrange [] reverse\nset ytics (", c->bars[k].name, "");
		rfl_buf_printf(out, " %zu%s", k, k + 1 == c->nbars ? ")\n" : "");
	}
	for (size_t k = 0; k < d->n; k++) {
		if (!d->series[k].has_value) /* gnuplot would warn */
			continue;
		rfl_buf_printf(out, "%s$panel%zu_%zu using %s title ", before, i + 1, k + 1,
			       c->nbars ? "(($3 + $4) / 2):1:3:4:($1 - 0.3):($1 + 0.3) with "
					  "boxxyerror fillstyle solid"
			       : d->series[k].has_bars ? "1:2:3:4 with yerrorlines"
						       : "1:2 with linespoints");
		put_text(out, "", d->series[k].name, "");
		before = ", \\\n     ";
	}
	rfl_buf_puts(out, "\n");
}

void rfl_chart_script(const struct rfl_chart *c, struct rfl_buf *out)
{
	rfl_buf_printf(out,
		       "# The numbers of a chart. 'gnuplot %s.gp' draws them as %s_gnuplot.png.\n"
		       "set encoding utf8\nset terminal pngcairo size 1200,800\n"
		       "set output '%s_gnuplot.png'\n",
		       c->stem, c->stem, c->stem);
	put_data(c, out);
	rfl_buf_printf(out, "set multiplot layout %zu,%d title ", (c->npanels + 1) / 2,
		       c->npanels > 1 ? 2 : 1);
	put_text(out, "", c->title, " noenhanced\nset key noenhanced\nset tics noenhanced\n");
	for (size_t i = 0; i < c->npanels; i++)
		put_plot(c, i, out);
	rfl_buf_puts(out, "unset multiplot\n");
}
