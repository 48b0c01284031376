/*
 * draw_labels.c - names beside the points. Candidates are tried from near to far around the mark;
 * the first that covers nothing is taken, with a leader when it is not near. What finds no place is
 * known by its number. Factors and traffic ratios come last: they are welcome, not needed.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

/* Where a text stands: a direction from the mark, and which part of the text lies left of (u) and
 * above (v) the place where that direction ends. Preferred first: right and left, then the
 * diagonals, then above and below. */
static const struct direction {
	double x, y, u, v;
} directions[] = {
	{ 1, 0, 0, .5 },       { -1, 0, 1, .5 },     { 1, 0, 0, .8 },      { 1, 0, 0, .2 },
	{ 1, 0, 0, 1 },        { 1, 0, 0, 0 },       { .80, -.60, 0, 1 },  { .80, .60, 0, 0 },
	{ -1, 0, 1, .8 },      { -1, 0, 1, .2 },     { -.80, -.60, 1, 1 }, { -.80, .60, 1, 0 },
	{ 0, -1, .5, 1 },      { 0, 1, .5, 0 },      { .45, -.89, .2, 1 }, { .45, .89, .2, 0 },
	{ -.45, -.89, .8, 1 }, { -.45, .89, .8, 0 },
};

#define FEW         14 /* up to so many points are all named, if there is room */
#define LEADER_FROM 12 /* gap beyond which a leader is drawn */
#define NEAR        2  /* gaps without a leader */
#define TRIES       8

static const double gaps[] = { 4, 10, 18, 30, 45, 64, 88, 116, 150 };

struct label {
	struct rfl_box box;
	enum rfl_anchor align;
	bool one_line;
	bool has_leader;
	double lx0, ly0, lx1, ly1;
};

/* What a label needs, as two lines or as one. */
struct label_size {
	double w, h;
	bool one_line;
};

static double name_width(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_text_width(m->name, RFL_FACE_BOLD, SZ(f, label));
}

static double second_width(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_text_width(m->second, RFL_FACE_REGULAR, SZ(f, label_second));
}

static struct label_size size_of(const struct rfl_figure *f, const struct rfl_mark *m,
				 bool one_line)
{
	double a = SZ(f, label), b = SZ(f, label_second);
	struct label_size z = { .one_line = one_line };

	if (one_line) {
		z.w = name_width(f, m) + 0.6 * a + second_width(f, m);
		z.h = (RFL_TEXT_ASCENT + RFL_TEXT_DESCENT) * a;
	} else {
		z.w = fmax(name_width(f, m), second_width(f, m));
		z.h = RFL_TEXT_ASCENT * a + (1.36 + RFL_TEXT_DESCENT) * b;
	}
	return z;
}

/* The box of a text block that stands at distance `gap` of a mark in a direction. */
static struct label at_direction(const struct rfl_figure *f, double x, double y, double w, double h,
				 const struct direction *dir, double gap)
{
	double reach = 1.15 * SZ(f, marker) + gap;
	double ax = x + dir->x * reach, ay = y + dir->y * reach;

	return (struct label){
		.box = { ax - dir->u * w, ay - dir->v * h, w, h },
		.align = dir->u > 0.6   ? RFL_ANCHOR_END
			 : dir->u < 0.4 ? RFL_ANCHOR_START
					: RFL_ANCHOR_MIDDLE,
	};
}

/* From the rim of the mark to the nearest place of the box. It is drawn when the text is not near,
 * but in any case nothing may come between the two. */
static void set_leader(const struct rfl_figure *f, struct label *l, double x, double y, double gap)
{
	double pad = 1.5 * f->scale;
	double tx = fmin(fmax(x, l->box.x - pad), l->box.x + l->box.w + pad);
	double ty = fmin(fmax(y, l->box.y - pad), l->box.y + l->box.h + pad);
	double len = hypot(tx - x, ty - y), r = fmin(1.25 * SZ(f, marker), len);

	l->has_leader = gap > LEADER_FROM && len > r;
	l->lx0 = len > 0 ? x + (tx - x) / len * r : x;
	l->ly0 = len > 0 ? y + (ty - y) / len * r : y;
	l->lx1 = tx;
	l->ly1 = ty;
}

static double distance(const struct rfl_box *b, double x, double y)
{
	double dx = fmax(fmax(b->x - x, x - b->x - b->w), 0);
	double dy = fmax(fmax(b->y - y, y - b->y - b->h), 0);

	return hypot(dx, dy);
}

static double mark_distance(const struct rfl_box *b, const struct rfl_mark *m)
{
	double d = distance(b, m->px, m->py);

	return isnan(m->px_best) ? d : fmin(d, distance(b, m->px_best, m->py));
}

/* A text, and how near it another mark would have to be to seem its owner. */
struct reach {
	const struct rfl_figure *f;
	int owner;
	const struct rfl_box *box;
	double distance;
};

static bool is_within(int mark, const struct rfl_hull *shape, const void *ctx)
{
	const struct reach *r = ctx;

	(void)shape;
	return mark != r->owner && mark_distance(r->box, &r->f->marks[mark]) < r->distance;
}

/* Could a reader take the text for that of another mark, which is as near? */
static bool ambiguous(const struct rfl_figure *f, int owner, const struct rfl_box *box)
{
	double own = mark_distance(box, &f->marks[owner]);
	const struct reach r = { f, owner, box, own * 1.5 + 2 * f->scale };
	const struct rfl_box around = rfl_box_grow(*box, r.distance);

	return rfl_place_any(f->place, RFL_OBSTACLE_MARK, &around, is_within, &r);
}

/* What a place costs; infinite when it covers something, or when a mark, a text or the roof lies
 * between the text and its mark. A leader over other lines is allowed where there are few points.
 */
static double cost_of(const struct rfl_figure *f, int owner, struct label *l, double gap)
{
	double s = f->scale;
	const struct rfl_box roomy = { l->box.x - 7 * s, l->box.y - 3 * s, l->box.w + 14 * s,
				       l->box.h + 6 * s };
	struct rfl_hull box = rfl_hull_box(rfl_box_grow(l->box, 2.5 * s));
	struct rfl_hull column = rfl_hull_box(roomy); /* texts side by side must not read as one */
	struct rfl_hull leader = rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1);
	double cost = gap;

	if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL & ~(unsigned)RFL_OBSTACLE_TEXT, RFL_NO_OWNER,
			    &box) ||
	    rfl_place_hit(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, &column) ||
	    !rfl_place_free(f->place, RFL_OBSTACLE_MARK | RFL_OBSTACLE_TEXT | RFL_OBSTACLE_ROOF,
			    owner, &leader))
		return INFINITY;
	if (ambiguous(f, owner, &l->box)) {
		l->has_leader = hypot(l->lx1 - l->lx0, l->ly1 - l->ly0) > 3 * s;
		cost += 16;
	}
	if (!rfl_place_free(f->place, RFL_OBSTACLE_LINE, owner, &leader))
		return f->nmarks > FEW ? INFINITY : cost + 60;
	if (!rfl_place_free(f->place, RFL_OBSTACLE_QUIET, owner, &leader))
		return cost + 30;
	return l->has_leader ? cost + 6 : cost;
}

/* Try all places around the two marks of a point and take the cheapest. The hollow mark comes
 * first: to its right there is mostly room. Returns the cost, infinite when there is no place. */
static double find_label(const struct rfl_figure *f, int i, const struct label_size *z,
			 size_t ngaps, struct label *ret)
{
	const struct rfl_mark *m = &f->marks[i];
	const double xs[2] = { isnan(m->px_best) ? m->px : m->px_best, m->px };
	size_t nx = isnan(m->px_best) ? 1 : 2;
	double best = INFINITY;

	for (size_t g = 0; g < ngaps && gaps[g] < best; g++) {
		for (size_t d = 0; d < RFL_ARRAY_LEN(directions); d++) {
			for (size_t k = 0; k < nx; k++) {
				struct label l = at_direction(f, xs[k], m->py, z->w, z->h,
							      &directions[d], gaps[g] * f->scale);
				double least = gaps[g] + (double)d * 0.4, cost;

				if (least >= best)
					continue;
				l.one_line = z->one_line;
				set_leader(f, &l, xs[k], m->py, gaps[g]);
				cost = cost_of(f, i, &l, least);
				if (cost < best) {
					best = cost;
					*ret = l;
				}
			}
		}
	}
	return best;
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

static void put_label(struct rfl_figure *f, int i, const struct label *l)
{
	struct rfl_mark *m = &f->marks[i];
	double a = SZ(f, label), b = SZ(f, label_second);
	double y = l->box.y + RFL_TEXT_ASCENT * a, x = anchor_x(l);
	enum rfl_anchor align = l->one_line ? RFL_ANCHOR_START : l->align;
	struct rfl_prim *p;

	put_leader(f, i, l);
	if (l->one_line)
		x = l->box.x;
	p = put_text(f, m->name, x, y, a, f->theme->ink, align);
	p->at.text.face = RFL_FACE_BOLD;
	p->id = rfl_scene_printf(f->scene, "name-%d", m->number);
	if (l->one_line)
		x += name_width(f, m) + 0.6 * a;
	else
		y += 1.36 * b;
	p = put_text(f, m->second, x, y, b, m->above ? f->theme->alarm : f->theme->soft, align);
	p->id = rfl_scene_printf(f->scene, "second-%d", m->number);
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_box(l->box));
	m->named = true;
}

/* One try to place all names. */
struct attempt {
	struct label *labels; /* by index of the mark */
	double *costs;        /* infinite: no place */
	int *order;           /* who comes first */
	int n;
};

/* The cheaper of two lines and one. */
static double place_name(const struct rfl_figure *f, int i, size_t ngaps, struct label *ret)
{
	const struct label_size two = size_of(f, &f->marks[i], false);
	const struct label_size one = size_of(f, &f->marks[i], true);
	struct label flat;
	double cost = find_label(f, i, &two, ngaps, ret);
	double cost_flat = find_label(f, i, &one, ngaps, &flat) + 9;

	if (cost_flat < cost)
		*ret = flat;
	return fmin(cost, cost_flat);
}

/* Names that fit without a leader before those that need one. Returns what it costs in all; a name
 * without a place costs much. */
static double try_names(struct rfl_figure *f, struct attempt *t)
{
	size_t far = f->nmarks > FEW ? 5 : RFL_ARRAY_LEN(gaps);
	double sum = 0;

	for (size_t i = 0; i < f->nmarks; i++)
		t->costs[i] = INFINITY;
	for (int round = 0; round < 2; round++) {
		for (int k = 0; k < t->n; k++) {
			int i = t->order[k];
			struct label *l = &t->labels[i];

			if (t->costs[i] < INFINITY)
				continue;
			t->costs[i] = place_name(f, i, round == 0 ? NEAR : far, l);
			if (t->costs[i] == INFINITY)
				continue;
			rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER,
				      rfl_hull_box(l->box));
			if (l->has_leader)
				rfl_place_add(f->place, RFL_OBSTACLE_LINE, i,
					      rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1));
		}
	}
	for (int k = 0; k < t->n; k++)
		sum += fmin(t->costs[t->order[k]], 500);
	return sum;
}

/* Let the name that fared worst begin the next try; false when all are well. */
static bool promote_worst(struct attempt *t)
{
	int worst = 0, who;

	for (int k = 1; k < t->n; k++)
		if (t->costs[t->order[k]] > t->costs[t->order[worst]])
			worst = k;
	if (worst == 0 || t->costs[t->order[worst]] < 20)
		return false;
	who = t->order[worst];
	for (int k = worst; k > 0; k--)
		t->order[k] = t->order[k - 1];
	t->order[0] = who;
	return true;
}

static bool new_attempt(struct rfl_figure *f, struct attempt *t)
{
	t->labels = rfl_scene_array(f->scene, f->nmarks, sizeof(*t->labels));
	t->costs = rfl_scene_array(f->scene, f->nmarks, sizeof(*t->costs));
	t->order = rfl_scene_array(f->scene, f->nmarks, sizeof(*t->order));
	if (!t->labels || !t->costs || !t->order)
		return false;
	t->n = f->nmarks > FEW ? RFL_FIG_NAMED : (int)f->nmarks;
	memcpy(t->order, f->by_rank, (size_t)t->n * sizeof(*t->order));
	return true;
}

/* Some tries with other orders, and the best of them. */
static void name_marks(struct rfl_figure *f)
{
	size_t before = rfl_place_count(f->place);
	struct attempt t, best;
	double least = INFINITY;

	if (!new_attempt(f, &t) || !new_attempt(f, &best))
		return;
	for (int i = 0; i < (f->nmarks > FEW ? 2 : TRIES); i++) {
		double cost = try_names(f, &t);

		rfl_place_truncate(f->place, before);
		if (cost < least) {
			least = cost;
			memcpy(best.labels, t.labels, f->nmarks * sizeof(*t.labels));
			memcpy(best.costs, t.costs, f->nmarks * sizeof(*t.costs));
		}
		if (!promote_worst(&t))
			break;
	}
	for (size_t i = 0; i < f->nmarks; i++)
		if (best.costs[i] < INFINITY)
			put_label(f, (int)i, &best.labels[i]);
}

/* What stands under the names. A mark at the edge does not show its value by its place: the text
 * does. */
static void say_values(struct rfl_figure *f)
{
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];

		m->named = false;
		m->second = m->rate;
		if (m->edge & (RFL_EDGE_LEFT | RFL_EDGE_RIGHT))
			m->second = rfl_scene_printf(f->scene, "AI %s \xc2\xb7 %s",
						     rfl_words_number(f->scene, m->x), m->rate);
	}
}

/* Numbers of marks without a name: small, near, or not at all. */
static void number_marks(struct rfl_figure *f)
{
	double size = SZ(f, label_second);

	f->has_numbers = false;
	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		struct label_size z = { .h = (RFL_TEXT_ASCENT + RFL_TEXT_DESCENT) * size };
		struct label l;
		const char *text;

		if (m->named)
			continue;
		f->has_numbers = true;
		text = rfl_scene_printf(f->scene, "%d", m->number);
		if (m->edge & (RFL_EDGE_LEFT | RFL_EDGE_RIGHT))
			text = rfl_scene_printf(f->scene, "%s: AI %s", text,
						rfl_words_number(f->scene, m->x));
		else if (m->edge)
			text = rfl_scene_printf(f->scene, "%s: %s GFLOP/s", text,
						rfl_words_number(f->scene, m->y));
		z.w = rfl_text_width(text, RFL_FACE_REGULAR, size);
		if (find_label(f, (int)i, &z, 5, &l) == INFINITY)
			continue;
		put_leader(f, (int)i, &l);
		put_text(f, text, anchor_x(&l), l.box.y + RFL_TEXT_ASCENT * size, size,
			 f->theme->ink, l.align)
			->id = rfl_scene_printf(f->scene, "number-%d", m->number);
		rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_box(l.box));
	}
}

/* A word at the first free of some places; false when there is none. */
static bool put_word(struct rfl_figure *f, const char *text, double size, const struct rfl_xy *at,
		     const enum rfl_anchor *anchors, size_t n, const char *id)
{
	double w = rfl_text_width(text, RFL_FACE_REGULAR, size);

	for (size_t i = 0; i < n; i++) {
		double x = anchors[i] == RFL_ANCHOR_END      ? at[i].x - w
			   : anchors[i] == RFL_ANCHOR_MIDDLE ? at[i].x - w / 2
							     : at[i].x;
		struct rfl_box box = { x, at[i].y - RFL_TEXT_ASCENT * size, w,
				       (RFL_TEXT_ASCENT + RFL_TEXT_DESCENT) * size };
		struct rfl_hull hull = rfl_hull_box(rfl_box_grow(box, 1 * f->scale));

		if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &hull))
			continue;
		put_text(f, text, at[i].x, at[i].y, size, f->theme->soft, anchors[i])->id = id;
		rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_box(box));
		return true;
	}
	return false;
}

static void put_factor(struct rfl_figure *f, size_t i)
{
	static const double heights[] = { 0.5, 0.35, 0.65, 0.2, 0.8 };
	const struct rfl_mark *m = &f->marks[i];
	double top = rfl_axis_at(&f->y, m->roof / f->unit), s = f->scale,
	       size = SZ(f, label_second);
	struct rfl_xy at[2 * RFL_ARRAY_LEN(heights)];
	enum rfl_anchor anchors[2 * RFL_ARRAY_LEN(heights)];

	if (!m->whisker)
		return;
	for (size_t k = 0; k < RFL_ARRAY_LEN(at); k++) {
		at[k] = (struct rfl_xy){ m->px + (k % 2 ? -5 : 5) * s,
					 top + (m->py - top) * heights[k / 2] +
						 RFL_TEXT_CAP / 2 * size };
		anchors[k] = k % 2 ? RFL_ANCHOR_END : RFL_ANCHOR_START;
	}
	put_word(f,
		 rfl_scene_printf(f->scene, "\xc3\x97%.*f", m->roof / m->y < 9.95 ? 1 : 0,
				  m->roof / m->y),
		 size, at, anchors, RFL_ARRAY_LEN(at),
		 rfl_scene_printf(f->scene, "factor-%d", m->number));
}

/* How many times the traffic at best, once: it teaches what the connector means. */
static bool put_ratio(struct rfl_figure *f, size_t i)
{
	static const enum rfl_anchor anchors[2] = { RFL_ANCHOR_MIDDLE, RFL_ANCHOR_MIDDLE };
	const struct rfl_mark *m = &f->marks[i];
	double size = SZ(f, label_second) * 0.95, s = f->scale, mid = (m->px + m->px_best) / 2;
	const struct rfl_xy at[2] = { { mid, m->py - 5 * s },
				      { mid, m->py + 3 * s + RFL_TEXT_ASCENT * size } };
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
	say_values(f);
	name_marks(f);
	number_marks(f);
	for (size_t i = 0; i < f->nmarks; i++)
		put_factor(f, i);
	for (size_t rank = 0; rank < f->nmarks && f->nmarks <= FEW; rank++)
		if (put_ratio(f, (size_t)f->by_rank[rank]))
			return;
}
