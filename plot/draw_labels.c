/*
 * draw_labels.c - names beside the points. Candidates are tried from near to far around the mark;
 * the first that covers nothing is taken, with a leader when it is not near. What finds no place is
 * known by its number. Factors and traffic ratios come last: they are welcome, not needed.
 */
#include <math.h>

#include "plot/figure.h"

#define DIRECTIONS 12

/* Preferred first: right and left of the mark, then the diagonals, then above and below. */
static const double directions[DIRECTIONS][2] = {
	{ 1, 0 },      { -1, 0 },    { .80, -.60 },  { .80, .60 },  { -.80, -.60 }, { -.80, .60 },
	{ .45, -.89 }, { .45, .89 }, { -.45, -.89 }, { -.45, .89 }, { 0, -1 },      { 0, 1 },
};

static const double gaps[] = { 4, 10, 18, 30, 45, 64, 88, 116, 150 };

struct label {
	struct rfl_box box;
	enum rfl_anchor align;
	bool has_leader;
	double lx0, ly0, lx1, ly1;
};

struct label_size {
	double w, h;
	double baseline[2];
};

static struct label_size size_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	double a = SZ(f, label), b = SZ(f, label_second);
	struct label_size z;

	z.w = fmax(rfl_text_width(m->name, RFL_FACE_BOLD, a),
		   rfl_text_width(m->second, RFL_FACE_REGULAR, b));
	z.baseline[0] = RFL_TEXT_ASCENT * a;
	z.baseline[1] = z.baseline[0] + 1.36 * b;
	z.h = z.baseline[1] + RFL_TEXT_DESCENT * b;
	return z;
}

/* The box of a text block that stands at distance `gap` of a mark in a direction. */
static struct label at_direction(const struct rfl_figure *f, double x, double y, double w, double h,
				 const double *dir, double gap)
{
	double reach = 1.15 * SZ(f, marker) + gap;
	double ax = x + dir[0] * reach, ay = y + dir[1] * reach;
	struct label l = { .box = { ax, ay - h / 2, w, h }, .align = RFL_ANCHOR_START };

	if (dir[0] < -0.4) {
		l.box.x = ax - w;
		l.align = RFL_ANCHOR_END;
	} else if (dir[0] < 0.4) {
		l.box.x = ax - w / 2;
		l.align = RFL_ANCHOR_MIDDLE;
	}
	if (dir[1] < -0.4)
		l.box.y = ay - h;
	else if (dir[1] > 0.4)
		l.box.y = ay;
	return l;
}

/* From the rim of the mark to the nearest place of the box. */
static void set_leader(const struct rfl_figure *f, struct label *l, double x, double y)
{
	double pad = 1.5 * f->scale;
	double tx = fmin(fmax(x, l->box.x - pad), l->box.x + l->box.w + pad);
	double ty = fmin(fmax(y, l->box.y - pad), l->box.y + l->box.h + pad);
	double len = hypot(tx - x, ty - y), r = 1.25 * SZ(f, marker);

	if (len <= r)
		return;
	l->has_leader = true;
	l->lx0 = x + (tx - x) / len * r;
	l->ly0 = y + (ty - y) / len * r;
	l->lx1 = tx;
	l->ly1 = ty;
}

static bool label_fits(const struct rfl_figure *f, int owner, const struct label *l)
{
	struct rfl_hull box = rfl_hull_box(rfl_box_grow(l->box, 2 * f->scale));
	struct rfl_hull leader;

	if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NOBODY, &box))
		return false;
	if (!l->has_leader)
		return true;
	leader = rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1);
	return rfl_place_free(f->place, RFL_OBSTACLE_MARK | RFL_OBSTACLE_TEXT, owner, &leader);
}

/* Try all places around the two marks of a point. The hollow one comes first: to its right there is
 * mostly room. */
static bool find_label(const struct rfl_figure *f, int i, double w, double h, size_t ngaps,
		       struct label *ret)
{
	const struct rfl_mark *m = &f->marks[i];
	const double xs[2] = { isnan(m->px_best) ? m->px : m->px_best, m->px };
	size_t nx = isnan(m->px_best) ? 1 : 2;

	for (size_t g = 0; g < ngaps; g++) {
		for (size_t d = 0; d < DIRECTIONS; d++) {
			for (size_t k = 0; k < nx; k++) {
				*ret = at_direction(f, xs[k], m->py, w, h, directions[d],
						    gaps[g] * f->scale);
				if (gaps[g] > 12)
					set_leader(f, ret, xs[k], m->py);
				if (label_fits(f, i, ret))
					return true;
			}
		}
	}
	return false;
}

static double anchor_x(const struct label *l)
{
	return l->align == RFL_ANCHOR_START ? l->box.x
	       : l->align == RFL_ANCHOR_END ? l->box.x + l->box.w
					    : l->box.x + l->box.w / 2;
}

static void put_leader(struct rfl_figure *f, int i, const struct label *l)
{
	if (!l->has_leader)
		return;
	rfl_scene_line(f->scene, l->lx0, l->ly0, l->lx1, l->ly1, f->theme->leader, 0.7 * f->scale)
		->id = rfl_scene_printf(f->scene, "leader-%d", f->marks[i].number);
	rfl_place_add(f->place, RFL_OBSTACLE_LINE, i,
		      rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1));
}

static struct rfl_prim *put_text(struct rfl_figure *f, const char *text, double x, double y,
				 double size, struct rfl_color color, enum rfl_anchor anchor)
{
	struct rfl_prim *p = rfl_scene_text(f->scene, text, x, y, size, color);

	p->at.text.anchor = anchor;
	p->at.text.halo = rfl_draw__ground_color(f, x);
	p->at.text.halo_width = SZ(f, halo);
	return p;
}

static void put_label(struct rfl_figure *f, int i, const struct label *l,
		      const struct label_size *z)
{
	struct rfl_mark *m = &f->marks[i];
	struct rfl_prim *p;

	put_leader(f, i, l);
	p = put_text(f, m->name, anchor_x(l), l->box.y + z->baseline[0], SZ(f, label),
		     f->theme->ink, l->align);
	p->at.text.face = RFL_FACE_BOLD;
	p->id = rfl_scene_printf(f->scene, "name-%d", m->number);
	p = put_text(f, m->second, anchor_x(l), l->box.y + z->baseline[1], SZ(f, label_second),
		     m->above ? f->theme->alarm : f->theme->soft, l->align);
	p->id = rfl_scene_printf(f->scene, "second-%d", m->number);
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NOBODY, rfl_hull_box(l->box));
	m->named = true;
}

static void name_marks(struct rfl_figure *f)
{
	int most = f->nmarks > RFL_FIG_NAMED + 2 ? RFL_FIG_NAMED : (int)f->nmarks;

	for (int rank = 0; rank < most; rank++) {
		for (size_t i = 0; i < f->nmarks; i++) {
			struct label_size z;
			struct label l;

			if (f->marks[i].rank != rank)
				continue;
			z = size_of(f, &f->marks[i]);
			if (find_label(f, (int)i, z.w, z.h, RFL_ARRAY_LEN(gaps), &l))
				put_label(f, (int)i, &l, &z);
		}
	}
}

/* Numbers of marks without a name: small, near, or not at all. */
static void number_marks(struct rfl_figure *f)
{
	double size = SZ(f, label_second);

	f->has_numbers = false;
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		struct label l;
		const char *text;

		if (m->named)
			continue;
		f->has_numbers = true;
		text = rfl_scene_printf(f->scene, "%d", m->number);
		if (!find_label(f, (int)i, rfl_text_width(text, RFL_FACE_REGULAR, size),
				RFL_TEXT_CAP * size + 1, 5, &l))
			continue;
		put_leader(f, (int)i, &l);
		put_text(f, text, anchor_x(&l), l.box.y + RFL_TEXT_CAP * size + 0.5, size,
			 f->theme->ink, l.align)
			->id = rfl_scene_printf(f->scene, "number-%d", m->number);
		rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NOBODY, rfl_hull_box(l.box));
	}
}

/* A word at the first free of some places; false when there is none. */
static bool put_word(struct rfl_figure *f, const char *text, double size, const struct rfl_xy *at,
		     const enum rfl_anchor *anchors, size_t n, const char *id)
{
	double w = rfl_text_width(text, RFL_FACE_REGULAR, size), h = RFL_TEXT_CAP * size;

	for (size_t i = 0; i < n; i++) {
		double x = anchors[i] == RFL_ANCHOR_END      ? at[i].x - w
			   : anchors[i] == RFL_ANCHOR_MIDDLE ? at[i].x - w / 2
							     : at[i].x;
		struct rfl_box box = { x, at[i].y - h, w, h + 0.2 * size };
		struct rfl_hull hull = rfl_hull_box(rfl_box_grow(box, 1.5 * f->scale));

		if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NOBODY, &hull))
			continue;
		put_text(f, text, at[i].x, at[i].y, size, f->theme->soft, anchors[i])->id = id;
		rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NOBODY, rfl_hull_box(box));
		return true;
	}
	return false;
}

static void put_factor(struct rfl_figure *f, size_t i)
{
	static const enum rfl_anchor anchors[6] = {
		RFL_ANCHOR_START, RFL_ANCHOR_END,   RFL_ANCHOR_START,
		RFL_ANCHOR_END,   RFL_ANCHOR_START, RFL_ANCHOR_END,
	};
	static const double heights[3] = { 0.5, 0.3, 0.7 };
	const struct rfl_mark *m = &f->marks[i];
	double top = rfl_axis_at(&f->y, m->roof / f->unit), s = f->scale,
	       size = SZ(f, label_second);
	struct rfl_xy at[6];

	if (!m->whisker)
		return;
	for (int k = 0; k < 6; k++)
		at[k] = (struct rfl_xy){ m->px + (k % 2 ? -5 : 5) * s,
					 top + (m->py - top) * heights[k / 2] +
						 RFL_TEXT_CAP / 2 * size };
	put_word(f,
		 rfl_scene_printf(f->scene, "\xc3\x97%.*f", m->roof / m->y < 9.95 ? 1 : 0,
				  m->roof / m->y),
		 size, at, anchors, 6, rfl_scene_printf(f->scene, "factor-%d", m->number));
}

/* How many times the traffic at best, once: it teaches what the connector means. */
static bool put_ratio(struct rfl_figure *f, size_t i)
{
	static const enum rfl_anchor anchors[2] = { RFL_ANCHOR_MIDDLE, RFL_ANCHOR_MIDDLE };
	const struct rfl_mark *m = &f->marks[i];
	double size = SZ(f, label_second) * 0.95, s = f->scale, mid = (m->px + m->px_best) / 2;
	const struct rfl_xy at[2] = { { mid, m->py - 4 * s },
				      { mid, m->py + 4 * s + RFL_TEXT_CAP * size } };
	const char *text;

	if (isnan(m->px_best) || m->edge || m->edge_best)
		return false;
	text = rfl_scene_printf(f->scene, "%s\xc3\x97 the traffic",
				rfl_words_number(f->scene, m->x_best / m->x));
	if (rfl_text_width(text, RFL_FACE_REGULAR, size) > m->px_best - m->px - 3 * SZ(f, marker))
		return false;
	return put_word(f, text, size, at, anchors, 2,
			rfl_scene_printf(f->scene, "ratio-%d", m->number));
}

void rfl_draw__labels(struct rfl_figure *f)
{
	name_marks(f);
	number_marks(f);
	for (size_t i = 0; i < f->nmarks; i++)
		put_factor(f, i);
	for (int rank = 0; rank < (int)f->nmarks; rank++)
		for (size_t i = 0; i < f->nmarks; i++)
			if (f->marks[i].rank == rank && put_ratio(f, i))
				return;
}
