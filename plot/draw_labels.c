/*
 * draw_labels.c - labels next to the points. Candidate positions are tried from near to far around
 * the mark. The best free one is used, with a leader line if it is not near. A mark without room
 * for its name shows its number. Factors and traffic ratios are drawn last, if there is room.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "plot/figure.h"

/* A label position: a direction from the mark, and which part of the text lies left of (u) and
 * above (v) the end of that direction. In order of preference: right and left, diagonals, above and
 * below. */
static const struct direction {
	double x, y, u, v;
} directions[] = {
	{ 1, 0, 0, .5 },       { -1, 0, 1, .5 },     { 1, 0, 0, .8 },      { 1, 0, 0, .2 },
	{ 1, 0, 0, 1 },        { 1, 0, 0, 0 },       { .80, -.60, 0, 1 },  { .80, .60, 0, 0 },
	{ -1, 0, 1, .8 },      { -1, 0, 1, .2 },     { -.80, -.60, 1, 1 }, { -.80, .60, 1, 0 },
	{ 0, -1, .5, 1 },      { 0, 1, .5, 0 },      { .45, -.89, .2, 1 }, { .45, .89, .2, 0 },
	{ -.45, -.89, .8, 1 }, { -.45, .89, .8, 0 },
};

#define FAN 32 /* directions of leaders that may cross lines */

#define LEADER_FROM 12 /* larger gaps get a leader */
#define NEAR        2  /* number of gaps tried first */
#define TRIES       8

#define FAR 7 /* number of gaps tried otherwise; the others are for numbers */

static const double gaps[] = { 4, 10, 18, 30, 45, 64, 88, 116, 150, 200, 260, 330 };

struct label {
	double cost; /* infinite: no room */
	struct rfl_box box;
	enum rfl_anchor align;
	bool one_line, alone; /* alone: with no more than the brief() text */
	bool has_leader;
	double lx0, ly0, lx1, ly1;
};

/* Size of a label in two lines or in one. */
struct label_size {
	double w, h;
	bool one_line;
	bool crosses; /**< its leader may cross lines */
};

/* A short part among many, which has no name. */
static bool is_minor(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return f->names_few && m->rank >= RFL_FIG_NAMED;
}

static double name_width(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_text_width(m->name, RFL_FACE_BOLD, SZ(f, label));
}

/* Faster than hypot(), which also prevents overflow. */
static double length(double dx, double dy)
{
	return sqrt(dx * dx + dy * dy);
}

/* Distance of a box from a mark, or from its hollow mark if nearer. */
static double mark_distance(const struct rfl_box *b, const struct rfl_mark *m)
{
	double dy = fmax(fmax(b->y - m->py, m->py - b->y - b->h), 0);
	double to_mark = length(fmax(fmax(b->x - m->px, m->px - b->x - b->w), 0), dy);

	if (isnan(m->px_best))
		return to_mark;
	return fmin(to_mark,
		    length(fmax(fmax(b->x - m->px_best, m->px_best - b->x - b->w), 0), dy));
}

/* A text, and the distance within which another mark would seem to own it. */
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

/* Cost of a label position; infinite if it covers something, or if a mark, a text or the roof lies
 * between the text and its mark. A leader may cross other lines if there are few points. */
static double cost_of(const struct rfl_figure *f, int owner, struct label *l, double gap,
		      bool crosses)
{
	const double s = f->scale;
	const struct rfl_hull box = rfl_hull_box(rfl_box_grow(l->box, 2.5 * s));

	if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL & ~RFL_OBSTACLE_TEXT, RFL_NO_OWNER, &box))
		return INFINITY; /* true of most positions, so this is checked first */

	const struct rfl_box roomy = { l->box.x - 7 * s, l->box.y - 3 * s, l->box.w + 14 * s,
				       l->box.h + 6 * s };
	/* keep texts on one line apart */
	const struct rfl_hull column = rfl_hull_box(roomy);
	const struct rfl_hull leader = rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1);
	const struct rfl_hull wide = rfl_hull_band(l->lx0, l->ly0, l->lx1, l->ly1, 4 * s);
	/* a leader that crosses lines may also begin above marks that touch its mark */
	const double len = length(l->lx1 - l->lx0, l->ly1 - l->ly0);
	const double skip = crosses && len > 0 ? fmin(2 * f->marks[owner].r / len, 1) : 0;
	const struct rfl_hull rest =
		rfl_hull_line(l->lx0 + skip * (l->lx1 - l->lx0), l->ly0 + skip * (l->ly1 - l->ly0),
			      l->lx1, l->ly1);
	const double own = mark_distance(&l->box, &f->marks[owner]);
	const struct reach r = { f, owner, &l->box, own * 1.5 + 2 * s };
	const struct rfl_box around = rfl_box_grow(l->box, r.distance);

	if (rfl_place_hit(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, &column) ||
	    !rfl_place_free(f->place,
			    crosses ? RFL_OBSTACLE_MARK : RFL_OBSTACLE_MARK | RFL_OBSTACLE_ROOF,
			    owner, &rest) ||
	    !rfl_place_free(f->place, RFL_OBSTACLE_TEXT, owner, &wide))
		return INFINITY;
	/* draw a leader if another mark is about as near as the owner */
	if (rfl_place_any(f->place, RFL_OBSTACLE_MARK, &around, is_within, &r)) {
		l->has_leader = len > 3 * s;
		gap += 16;
	}
	if (!rfl_place_free(f->place, RFL_OBSTACLE_LINE | RFL_OBSTACLE_LEADER | RFL_OBSTACLE_SERIES,
			    owner, &leader))
		return f->nmarks > RFL_FIG_FEW && !crosses ? INFINITY : gap + 60;
	if (!rfl_place_free(f->place, RFL_OBSTACLE_QUIET, owner, &leader))
		return gap + 30;
	return l->has_leader ? gap + 6 : gap;
}

/* A text block at distance `gap` from the mark at x, y, with a line from the rim of the mark to the
 * nearest point of the box. The line is drawn only for a distant text, but must always be clear. */
static struct label at_direction(const struct rfl_figure *f, double x, double y, double mark_r,
				 const struct label_size *z, const struct direction *dir,
				 double gap)
{
	double reach = 1.15 * mark_r + gap * f->scale;
	double ax = x + dir->x * reach, ay = y + dir->y * reach, pad = 1.5 * f->scale, len, r;
	struct label l = {
		.box = { ax - dir->u * z->w, ay - dir->v * z->h, z->w, z->h },
		.align = dir->u > 0.6   ? RFL_ANCHOR_END
			 : dir->u < 0.4 ? RFL_ANCHOR_START
					: RFL_ANCHOR_MIDDLE,
		.one_line = z->one_line,
	};

	l.lx1 = fmin(fmax(x, l.box.x - pad), l.box.x + l.box.w + pad);
	l.ly1 = fmin(fmax(y, l.box.y - pad), l.box.y + l.box.h + pad);
	len = length(l.lx1 - x, l.ly1 - y);
	r = fmin(1.25 * mark_r, len);
	l.has_leader = gap > LEADER_FROM && len > r;
	l.lx0 = len > 0 ? x + (l.lx1 - x) / len * r : x;
	l.ly0 = len > 0 ? y + (l.ly1 - y) / len * r : y;
	return l;
}

static struct direction fan_at(size_t i)
{
	const double angle = 2 * acos(-1) * (double)i / FAN, x = cos(angle), y = sin(angle);

	return (struct direction){ x, y, (1 - x) / 2, (1 - y) / 2 };
}

/* Try all positions around both marks of a point and take the cheapest; the hollow mark first,
 * which usually has room to its right. */
static struct label find_label(const struct rfl_figure *f, int i, const struct label_size *z,
			       size_t ngaps)
{
	const struct rfl_mark *m = &f->marks[i];
	const double xs[2] = { isnan(m->px_best) ? m->px : m->px_best, m->px };
	const size_t ndirections = z->crosses ? FAN : RFL_ARRAY_LEN(directions);
	const size_t nx = isnan(m->px_best) ? 1 : 2;
	struct label best = { .cost = INFINITY };

	for (size_t g = 0; g < ngaps && gaps[g] < best.cost; g++)
		for (size_t k = 0; k < ndirections * nx; k++) {
			const struct direction dir =
				z->crosses ? fan_at(k / nx) : directions[k / nx];
			const double least = gaps[g] + (double)(k / nx) * 0.4;
			struct label l;

			if (least >= best.cost)
				continue;
			l = at_direction(f, xs[k % nx], m->py, m->r, z, &dir, gaps[g]);
			l.cost = cost_of(f, i, &l, least, z->crosses);
			if (l.cost < best.cost)
				best = l;
		}
	return best;
}

/* The value of a mark at the edge that its position does not show. */
static const char *edge_value(const struct rfl_figure *f, const struct rfl_mark *m)
{
	const bool beside = m->edge & (RFL_EDGE_LEFT | RFL_EDGE_RIGHT);

	if (rfl_figure__is_time(f))
		return SAY(f, "%s %s", beside ? "bytes" : "FLOPs",
			   rfl_words_time(f->scene, beside ? m->x : m->y));
	return beside ? SAY(f, "AI %s", rfl_words_number(f->scene, m->x))
		      : rfl_figure__rate(f, m->y);
}

/* What the name of a mark is never drawn without. */
static const char *brief(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return m->edge ? edge_value(f, m) : "";
}

/* Find a position for a name in two lines, in one, or without its rate, whichever costs least. */
static struct label place_name(const struct rfl_figure *f, int i, size_t ngaps)
{
	const struct rfl_mark *m = &f->marks[i];
	const double a = SZ(f, label), b = SZ(f, label_second), name = name_width(f, m);
	const double second = rfl_width(m->second, b);
	const struct label_size two = { fmax(name, second),
					RFL_TEXT_ASCENT * a + (1.36 + RFL_TEXT_DESCENT) * b, false,
					false };
	const struct label_size one = { name + 0.6 * a + second,
					(RFL_TEXT_ASCENT + RFL_TEXT_DESCENT) * a, true, false };
	const char *rest = brief(f, m);
	const struct label_size alone = { fmax(name, rfl_width(rest, b)), *rest ? two.h : one.h,
					  !*rest, false };
	const double without = f->has_panel ? 25 : 60; /* the table has the rate */
	struct label best = find_label(f, i, *m->second ? &two : &one, ngaps), other;

	other = *m->second && best.cost > 9 ? find_label(f, i, &one, ngaps) : best;
	other.cost += 9;
	best = other.cost < best.cost ? other : best;
	other = *m->second && best.cost > without ? find_label(f, i, &alone, ngaps) : best;
	other.cost += without;
	other.alone = true;
	return other.cost < best.cost ? other : best;
}

/* Register a label as an obstacle for later texts. */
static void add_label(struct rfl_figure *f, int i, const struct label *l)
{
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_box(l->box));
	if (l->has_leader)
		rfl_place_add(f->place, RFL_OBSTACLE_LEADER, i,
			      rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1));
}

static double anchor_x(const struct label *l)
{
	return l->box.x + l->box.w * l->align / 2;
}

/* Draw the leader of a label; the caller draws its texts. A whisker that it crosses is not drawn in
 * the next round. */
static void put_label(struct rfl_figure *f, int i, const struct label *l)
{
	const struct rfl_hull leader = rfl_hull_line(l->lx0, l->ly0, l->lx1, l->ly1);

	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks && l->has_leader; m++) {
		const struct rfl_hull whisker = rfl_hull_line(m->px, m->py, m->goal.x, m->goal.y);

		m->bare = m->bare ||
			  (m->whisker && m != &f->marks[i] && rfl_hull_meet(&leader, &whisker));
		f->unsettled |= m->bare && m->whisker;
	}
	if (l->has_leader)
		rfl_scene_line(f->scene, l->lx0, l->ly0, l->lx1, l->ly1, f->theme->leader,
			       0.7 * f->scale)
			->id = SAY(f, "leader-%d", f->marks[i].number);
	add_label(f, i, l);
}

/* Is a mark between the ends of its trajectory, or of a part with little time among many? */
static bool is_between(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return (f->in->kind == RFL_PLOT_TRAJECTORY && m->linked && m->next) || is_minor(f, m);
}

/* Label the marks by name. Try several orders and keep the best: names that fit without a leader
 * come first, and the name with the highest cost is first in the next try. */
static void name_marks(struct rfl_figure *f)
{
	const double a = SZ(f, label), b = SZ(f, label_second);
	const size_t n = f->nmarks, before = rfl_place_count(f->place);
	const enum rfl_plot_labels labels_at = f->in->labels;
	const bool few = n <= RFL_FIG_FEW;
	struct label *labels, *best;
	double least = INFINITY;
	int named = 0, *order;

	if (n > RFL_FIG_DOTS)
		return;
	labels = rfl_arena_array(f->scene->arena, n, sizeof(*labels));
	best = rfl_arena_array(f->scene->arena, n, sizeof(*best));
	order = rfl_arena_array(f->scene->arena, n, sizeof(*order));
	for (size_t i = 0; i < n; i++) {
		labels[i].cost = INFINITY;
		named += !is_between(f, &f->marks[i]);
	}
	if (!few && labels_at != RFL_PLOT_LABELS_ALL && named > RFL_FIG_NAMED)
		named = RFL_FIG_NAMED;
	if (labels_at >= RFL_PLOT_LABELS_NONE)
		named = 0;
	for (int k = 0; k < named; k++)
		order[k] = (int)(f->by_rank[k] - f->marks);
	for (int try = 0; try < (few ? TRIES : 2); try++) {
		double sum = 0;
		int worst = 0, which;

		for (int k = 0; k < 2 * named; k++) {
			const int i = order[k % named];

			if (k >= named && labels[i].cost < INFINITY)
				continue;
			labels[i] = place_name(f, i, k < named ? NEAR : FAR);
			if (labels[i].cost < INFINITY)
				add_label(f, i, &labels[i]);
		}
		rfl_place_truncate(f->place, before);
		for (int k = 0; k < named; k++) {
			sum += fmin(labels[order[k]].cost, 500); /* cost of a name without room */
			if (labels[order[k]].cost > labels[order[worst]].cost)
				worst = k;
		}
		if (sum < least) {
			least = sum;
			memcpy(best, labels, n * sizeof(*labels));
		}
		which = order[worst];
		if (named == 0 || worst == 0 || labels[which].cost < 20)
			break;
		memmove(order + 1, order, (size_t)worst * sizeof(*order));
		order[0] = which;
	}
	for (size_t i = 0; i < n; i++) {
		struct rfl_mark *m = &f->marks[i];
		const struct label *l = &best[i];
		const enum rfl_anchor align = l->one_line ? RFL_ANCHOR_START : l->align;
		double y = l->box.y + RFL_TEXT_ASCENT * a, x = l->one_line ? l->box.x : anchor_x(l);
		const char *second;

		m->named = l->cost < INFINITY;
		if (!m->named)
			continue;
		put_label(f, (int)i, l);
		rfl_draw__halo_text(f, rfl_draw__id(f, "name", m), m->name, x, y, a, f->theme->ink,
				    align)
			->at.text.face = RFL_FACE_BOLD;
		second = l->alone ? brief(f, m) : m->second;
		if (!*second)
			continue;
		if (l->one_line)
			x += name_width(f, m) + 0.6 * a;
		else
			y += 1.36 * b;
		rfl_draw__halo_text(f, rfl_draw__id(f, "second", m), second, x, y, b,
				    m->above ? f->theme->alarm : f->theme->soft, align);
	}
}

/* Draw a number inside its mark unless another mark or text covers it, or it would be illegible. */
static bool put_inside(struct rfl_figure *f, int i, const char *text)
{
	const struct rfl_mark *m = &f->marks[i];
	const double size = fmax(SZ(f, label_second) * 0.82, RFL_LEAST_TEXT);
	const double y = m->py + RFL_TEXT_CAP / 2 * size;
	const double w = rfl_text_width(text, RFL_FACE_BOLD, size);
	const struct rfl_hull box = rfl_hull_box(rfl_text_box(m->px - w / 2, y, w, size));
	const struct rfl_color fill = f->palette[m->color], ink = f->theme->ink;
	const struct rfl_color paper = f->theme->paper;
	const bool dark = rfl_color_contrast(fill, ink) > rfl_color_contrast(fill, paper);
	const struct rfl_color color = dark ? ink : paper;
	struct rfl_prim *p;

	if (w > 1.8 * m->r || size > 2 * m->r || rfl_color_contrast(fill, color) < RFL_CONTRAST ||
	    m->shape == RFL_MARKER_PLUS ||
	    rfl_place_hit(f->place, RFL_OBSTACLE_MARK | RFL_OBSTACLE_TEXT | RFL_OBSTACLE_LEADER, i,
			  &box))
		return false;
	p = rfl_draw__text(f, rfl_draw__id(f, "number", m), text, m->px, y, size, color,
			   RFL_ANCHOR_MIDDLE);
	p->at.text.face = RFL_FACE_BOLD;
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, box);
	return true;
}

/* The numbers of a mark and of all marks without a name near it: "5, 9". */
static const char *numbers_of(const struct rfl_figure *f, size_t i, int *group, bool between)
{
	const struct rfl_mark *m = &f->marks[i];
	const char *text = SAY(f, "%d", m->number);
	const double near = 0.45 * m->r;

	group[i] = (int)i;
	for (size_t k = i + 1; k < f->nmarks && !m->edge; k++) {
		const struct rfl_mark *o = &f->marks[k];

		if (group[k] >= 0 || o->named || o->counted || o->edge ||
		    (!between && is_between(f, o)) || hypot(o->px - m->px, o->py - m->py) > near)
			continue;
		group[k] = (int)i;
		text = SAY(f, "%s, %d", text, o->number);
	}
	/* the text shows the values of a mark at the edge, which its position does not */
	return m->edge ? SAY(f, "%s: %s", text, edge_value(f, m)) : text;
}

/* Draw the numbers of marks without a name: next to the mark, inside it, or at the end of a leader
 * that crosses other lines.
 * @param between  also number marks between the ends of a trajectory */
static void number_marks(struct rfl_figure *f, bool between)
{
	const double size = SZ(f, label_second);
	int *group = rfl_arena_array(f->scene->arena, f->nmarks,
				     sizeof(*group)); /* first mark of a group */

	f->has_numbers = false;
	for (size_t i = 0; i < f->nmarks; i++)
		group[i] = -1;
	/* the ends of series first */
	for (size_t k = 0; f->nmarks <= RFL_FIG_NUMBERED && k < 2 * f->nmarks; k++) {
		const size_t i = k % f->nmarks;
		struct rfl_mark *m = &f->marks[i];
		struct label_size z = { .h = (RFL_TEXT_ASCENT + RFL_TEXT_DESCENT) * size };
		struct label l;
		const char *text;

		if (m->named || m->counted || group[i] >= 0 || (!between && is_between(f, m)) ||
		    (k < f->nmarks && m->next && m->linked))
			continue;
		text = numbers_of(f, i, group, between);
		z.w = rfl_width(text, size);
		m->counted = true;
		l = find_label(f, (int)i, &z, NEAR);
		if (!(l.cost < INFINITY) && put_inside(f, (int)i, text))
			continue;
		if (!(l.cost < INFINITY))
			l = find_label(f, (int)i, &z, FAR);
		if (!(l.cost < INFINITY)) {
			z.crosses = true;
			l = find_label(f, (int)i, &z, RFL_ARRAY_LEN(gaps));
			m->counted = l.cost < INFINITY;
		}
		if (!m->counted)
			continue;
		put_label(f, (int)i, &l);
		rfl_draw__halo_text(f, rfl_draw__id(f, "number", m), text, anchor_x(&l),
				    l.box.y + RFL_TEXT_ASCENT * size, size, f->theme->ink, l.align);
	}
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];

		m->counted =
			m->counted || (!m->named && group[i] >= 0 && f->marks[group[i]].counted);
		f->has_numbers |= m->counted;
	}
}

/* Count the marks that the figure does not identify. A line identifies the marks that it joins: two
 * names or numbers show its direction; if a colour is a batch, one is enough. */
static void count_lost(struct rfl_figure *f)
{
	/* the colours show the order */
	const bool ordered =
		f->ncolors <= RFL_FIG_BATCHES && ((f->by == RFL_BY_BATCH && !f->varies.context) ||
						  (f->by == RFL_BY_CONTEXT && !f->varies.batch));
	const size_t enough = ordered ? 1 : 2;

	f->nlost = 0;
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].lost = false;
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i], *from = m;
		size_t known = 0; /* of the marks that lines join */

		while (m && !f->marks[i].linked) {
			const bool last = !m->next || m->edge || m->next->edge;

			known += m->named || m->counted;
			for (; last && from != m->next; from = from->next) {
				from->lost = known < enough && !from->named && !from->counted &&
					     !is_minor(f, from);
				f->nlost += from->lost;
			}
			known = last ? 0 : known;
			m = m->next;
		}
	}
}

static void put_factor(struct rfl_figure *f, const struct rfl_mark *m)
{
	static const double heights[] = { 0.5, 0.35, 0.65, 0.2, 0.8 };
	const double s = f->scale, size = SZ(f, label_second), cap = RFL_TEXT_CAP * size;
	const bool flat = m->goal.y == m->py;
	const char *text = SAY(f, "\xc3\x97%.*f", m->factor < 9.95 ? 1 : 0, m->factor);

	for (size_t k = 0; k < 2 * RFL_ARRAY_LEN(heights); k++) {
		const double x = m->goal.x + (m->px - m->goal.x) * heights[k / 2];
		const double y = m->goal.y + (m->py - m->goal.y) * heights[k / 2];
		const double dx = flat ? 0 : k % 2 ? -5 * s : 5 * s;
		const double dy = !flat ? cap / 2 : k % 2 ? 4 * s + cap : -5 * s;

		if (rfl_draw__word(f, rfl_draw__id(f, "factor", m), text, size, x + dx, y + dy,
				   flat    ? RFL_ANCHOR_MIDDLE
				   : k % 2 ? RFL_ANCHOR_END
					   : RFL_ANCHOR_START,
				   s, s))
			return;
	}
}

/* Label a connector with the traffic relative to the least possible; if `first`, with its meaning.
 */
static bool put_ratio(struct rfl_figure *f, const struct rfl_mark *m, bool first)
{
	const double size = SZ(f, label_second) * 0.95, s = f->scale;
	const double x = (m->px + m->px_best) / 2, ratio = m->x_best / m->x;
	const char *id = rfl_draw__id(f, "ratio", m);
	const char *text =
		SAY(f, "%.*f\xc3\x97%s", ratio < 9.95 ? 1 : 0, ratio, first ? " the traffic" : "");

	if (isnan(m->px_best) || m->edge || m->edge_best ||
	    rfl_width(text, size) > m->px_best - m->px - 3 * m->r)
		return false;
	return rfl_draw__word(f, id, text, size, x, m->py - 5 * s, RFL_ANCHOR_MIDDLE, s, s) ||
	       rfl_draw__word(f, id, text, size, x, m->py + 3 * s + RFL_TEXT_ASCENT * size,
			      RFL_ANCHOR_MIDDLE, s, s);
}

void rfl_draw__labels(struct rfl_figure *f)
{
	bool said = false;

	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		m->named = m->counted = m->ratio = false;
		m->second = f->theme->names_only ? "" : m->rate;
		/* the position of a mark at the edge does not show its intensity: the text does */
		if (m->edge & (rfl_figure__is_time(f) ? ~0U : RFL_EDGE_LEFT | RFL_EDGE_RIGHT))
			m->second = SAY(f, "%s \xc2\xb7 %s", edge_value(f, m), m->rate);
	}
	name_marks(f);
	f->has_numbers = false;
	f->nlost = 0;
	if (f->in->labels != RFL_PLOT_LABELS_NONE) {
		number_marks(f, false);
		count_lost(f);
	}
	if (f->nlost && f->in->kind == RFL_PLOT_TRAJECTORY) { /* an end has no label */
		number_marks(f, true);
		count_lost(f);
	}
	for (size_t i = 0; i < f->nmarks; i++)
		if (f->marks[i].whisker)
			put_factor(f, &f->marks[i]);
	/* one ratio has its meaning; without room for it, all ratios are in the table */
	for (size_t i = 0; i < 2 * f->nmarks; i++) {
		struct rfl_mark *m = f->by_rank[i % f->nmarks];

		if (i < f->nmarks ? !said : said && !m->ratio)
			m->ratio = put_ratio(f, m, i < f->nmarks);
		said = said || m->ratio;
	}
	rfl_draw__list(f);
}

void rfl_draw__list(struct rfl_figure *f)
{
	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const bool lacks = m->counted || m->lost;

		f->unsettled |= lacks && !m->listed && !f->has_panel;
		m->listed = m->listed || lacks;
	}
}
