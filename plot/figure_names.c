/*
 * figure_names.c - how marks are named: by model and batch, by what else differs between the marks,
 * and by what tells variants of one configuration apart. No two marks bear the same name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ledger/ledger.h"
#include "plot/figure.h"

#define SHORT 36 /* characters: variants that are no longer are said in full */
#define LONG  60 /* characters: longer ones are not said, but numbered */

/* --- what differs between all marks ---------------------------------------------------------- */

static struct rfl_varies what_varies(const struct rfl_figure *f)
{
	const struct rfl_point *a = f->marks[0].point;
	struct rfl_varies v = { .precision = false };

	for (size_t i = 1; i < f->nmarks; i++) {
		const struct rfl_point *b = f->marks[i].point;

		v.precision |= !rfl_text_same(a->precision, b->precision);
		v.layout |= !rfl_text_same(a->layout, b->layout);
		v.mode |= !rfl_text_same(a->mode, b->mode);
		v.data_mode |= !rfl_text_same(a->data_mode, b->data_mode);
		v.engine |= !rfl_text_same(a->engine, b->engine);
		v.model |= !rfl_text_same(a->model, b->model);
		v.threads |= a->threads != b->threads;
		v.batch |= a->batch != b->batch;
	}
	return v;
}

static const char *append(struct rfl_scene *s, const char *name, bool wanted, const char *word)
{
	return wanted && word && *word ? rfl_scene_printf(s, "%s %s", name, word) : name;
}

static const char *add_word(struct rfl_scene *s, const char *list, const char *word)
{
	if (!word || !*word)
		return list;
	return *list ? rfl_scene_printf(s, "%s, %s", list, word) : rfl_scene_printf(s, "%s", word);
}

static const char *data_word(const struct rfl_point *p)
{
	return rfl_text_same(p->data_mode, "imagefolder") ? "images" : p->data_mode;
}

static const char *threads_words(struct rfl_scene *s, const struct rfl_point *p)
{
	if (p->threads <= 0)
		return NULL;
	return rfl_scene_printf(s, "%lld thread%s", (long long)p->threads,
				p->threads == 1 ? "" : "s");
}

/* "ResNet-50 bs 16", with precision and mode where they vary, and the layout between them. */
static const char *name_of(struct rfl_scene *s, const struct rfl_point *p,
			   const struct rfl_varies *v, bool layout)
{
	const char *name = rfl_words_model(s, p->model);

	if (p->batch > 0)
		name = rfl_scene_printf(s, "%s bs %lld", name, (long long)p->batch);
	name = append(s, name, v->precision, p->precision);
	name = append(s, name, layout, p->layout);
	return append(s, name, v->mode, p->mode);
}

static const char *step_name(struct rfl_scene *s, const struct rfl_point *p,
			     const struct rfl_varies *v)
{
	return name_of(s, p, v, false);
}

static const char *full_name(struct rfl_scene *s, const struct rfl_point *p,
			     const struct rfl_varies *v)
{
	const char *name = name_of(s, p, v, v->layout);

	name = append(s, name, v->data_mode, data_word(p));
	if (v->threads)
		name = add_word(s, name, threads_words(s, p));
	return append(s, name, v->engine, p->engine);
}

/* What a name says beyond the step. */
static const char *way_of(struct rfl_scene *s, const struct rfl_point *p,
			  const struct rfl_varies *v)
{
	const char *way = add_word(s, "", v->layout ? p->layout : NULL);

	way = add_word(s, way, v->data_mode ? data_word(p) : NULL);
	way = add_word(s, way, v->threads ? threads_words(s, p) : NULL);
	return add_word(s, way, v->engine ? p->engine : NULL);
}

/* --- variants -------------------------------------------------------------------------------- */

/* "workers 8" of a variant: the column of the ledger, and how it is said here. */
struct part {
	const char *key, *words;
};

struct variant {
	struct rfl_mark *mark;
	size_t n;
	struct part *parts;
	const char *words, *all; /* those that were chosen, of all that the name does not say */
};

/* Words about a value; the other facts are said as they are written, "accum 4". */
static const struct {
	const char *key;
	const char *one, *many; /* behind the value */
} sayings[] = {
	{ "layout", "", "" },
	{ "optimizer", "", "" },
	{ "backend", "", "" },
	{ "engine", "", "" },
	{ "device_name", "", "" },
	{ "data_mode", "", "" },
	{ "optimizer_kernels", " kernels", " kernels" },
	{ "threads", " thread", " threads" },
	{ "workers", " worker", " workers" },
	{ "world_size", " process", " processes" },
	{ "img_size", " px", " px" },
};

static const char *say(struct rfl_scene *s, const char *key, const char *value)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(sayings); i++)
		if (strcmp(sayings[i].key, key) == 0)
			return rfl_scene_printf(s, "%s%s", value,
						strcmp(value, "1") == 0 ? sayings[i].one
									: sayings[i].many);
	return *key ? rfl_scene_printf(s, "%s %s", key, value) : value;
}

/* The name of a column of the ledger that begins here, with a blank behind it; "" for none. */
static const char *key_at(struct rfl_scene *s, const char *text)
{
	const char *key = rfl_scene_printf(s, "%.*s", (int)strcspn(text, " ,"), text);

	return text[strlen(key)] == ' ' && rfl_ledger_column_find(key) < rfl_ledger_column_count()
		       ? key
		       : "";
}

/* Where the next part begins. A comma may be of a value: of a device's name. */
static const char *next_part(struct rfl_scene *s, const char *text)
{
	const char *comma = strstr(text, ", ");

	while (comma && !*key_at(s, comma + 2))
		comma = strstr(comma + 2, ", ");
	return comma;
}

static void read_variant(struct rfl_scene *s, const char *text, struct variant *ret)
{
	size_t most = 1;

	for (const char *at = text; at && (at = strchr(at, ',')); at++)
		most++;
	ret->parts = rfl_scene_array(s, most, sizeof(*ret->parts));
	while (ret->parts && text && *text) {
		const char *next = next_part(s, text), *key = key_at(s, text);
		const char *value = text + (*key ? strlen(key) + 1 : 0);
		size_t len = next ? (size_t)(next - value) : strlen(value);

		value = rfl_scene_printf(s, "%.*s", (int)len, value);
		if (strcmp(key, "data_mode") == 0 && strcmp(value, "imagefolder") == 0)
			value = "images";
		ret->parts[ret->n++] = (struct part){ key, say(s, key, value) };
		text = next ? next + 2 : NULL;
	}
}

static const char *words_of(const struct variant *v, const char *key)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->parts[i].key, key) == 0)
			return v->parts[i].words;
	return "";
}

/* Does the name say it already? */
static bool is_said(const struct rfl_varies *v, const char *key)
{
	return (v->layout && strcmp(key, "layout") == 0) ||
	       (v->data_mode && strcmp(key, "data_mode") == 0) ||
	       (v->threads && strcmp(key, "threads") == 0) ||
	       (v->engine && (strcmp(key, "engine") == 0 || strcmp(key, "engine_version") == 0));
}

/* Variants of one step. */
struct group {
	struct rfl_scene *scene;
	size_t n;
	struct variant *variants, **order; /* sorted, so that those that are alike are neighbours */
};

static bool are_short(const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (strlen(g->variants[i].words) > SHORT)
			return false;
	return true;
}

static void say_all(struct group *g, const struct rfl_varies *v)
{
	for (size_t i = 0; i < g->n; i++) {
		struct variant *m = &g->variants[i];

		m->words = "";
		for (size_t k = 0; k < m->n; k++)
			if (!is_said(v, m->parts[k].key))
				m->words = add_word(g->scene, m->words, m->parts[k].words);
		m->all = m->words;
	}
}

static bool is_among(const char *const *keys, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static int by_words(const void *a, const void *b)
{
	const struct variant *x = *(const struct variant *const *)a;
	const struct variant *y = *(const struct variant *const *)b;
	int order = strcmp(x->mark->name, y->mark->name);

	return order ? order : strcmp(x->words, y->words);
}

/* Are there two that are still alike, and that this would tell apart? */
static bool tells(struct group *g, const char *key)
{
	qsort(g->order, g->n, sizeof(struct variant *), by_words);
	for (size_t i = 1; i < g->n; i++)
		if (by_words(&g->order[i - 1], &g->order[i]) == 0 &&
		    strcmp(words_of(g->order[i - 1], key), words_of(g->order[i], key)) != 0)
			return true;
	return false;
}

/* Only what it takes to tell them apart, first things first. */
static void say_least(struct group *g)
{
	const char **asked =
		rfl_scene_array(g->scene, rfl_ledger_column_count() + 1, sizeof(const char *));
	size_t nasked = 0;

	g->order = rfl_scene_array(g->scene, g->n, sizeof(struct variant *));
	if (!asked || !g->order)
		return;
	for (size_t i = 0; i < g->n; i++) {
		g->order[i] = &g->variants[i];
		g->variants[i].words = "";
	}
	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->variants[i].n; k++) {
			const char *key = g->variants[i].parts[k].key;

			if (is_among(asked, nasked, key))
				continue;
			asked[nasked++] = key;
			if (!tells(g, key))
				continue;
			for (size_t j = 0; j < g->n; j++) {
				struct variant *m = &g->variants[j];

				m->words = add_word(g->scene, m->words, words_of(m, key));
			}
		}
}

static void name_group(struct rfl_figure *f, struct group *g)
{
	say_all(g, &f->varies);
	if (!are_short(g))
		say_least(g);
	for (size_t i = 0; i < g->n; i++) {
		struct variant *v = &g->variants[i];
		struct rfl_mark *m = v->mark;

		m->numbered = strlen(v->words) > LONG;
		m->cut = m->numbered || strcmp(v->words, v->all) != 0;
		if (m->numbered)
			continue;
		m->name = add_word(f->scene, m->name, v->words);
		m->way = add_word(f->scene, m->way, v->words);
	}
}

/* --- all ------------------------------------------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	int order = strcmp(x->step, y->step);

	return order ? order : x->number - y->number;
}

static int by_name(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;

	return strcmp(x->name, y->name);
}

static void name_variants(struct rfl_figure *f)
{
	struct group g = { .scene = f->scene };
	struct rfl_mark **marks = rfl_figure__sort(f, by_step);

	g.variants = rfl_scene_array(f->scene, f->nmarks, sizeof(*g.variants));
	if (!marks || !g.variants)
		return;
	for (size_t i = 0; i < f->nmarks; i += g.n) {
		for (g.n = 0; i + g.n < f->nmarks; g.n++) {
			struct rfl_mark *m = marks[i + g.n];

			if (strcmp(marks[i]->step, m->step) != 0)
				break;
			g.variants[g.n] = (struct variant){ .mark = m };
			read_variant(f->scene, m->point->variant, &g.variants[g.n]);
		}
		name_group(f, &g);
	}
}

/* Marks that words do not tell apart are told apart by their line in the points file. */
static void number_alike(struct rfl_figure *f)
{
	struct rfl_mark **marks = rfl_figure__sort(f, by_name);

	for (size_t i = 1; marks && i < f->nmarks; i++)
		if (by_name(&marks[i - 1], &marks[i]) == 0)
			marks[i - 1]->numbered = marks[i]->numbered = true;
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];

		if (!m->numbered)
			continue;
		m->name = rfl_scene_printf(f->scene, "%s #%d", m->name, m->number);
		m->way = add_word(f->scene, m->way, rfl_scene_printf(f->scene, "#%d", m->number));
	}
}

/* Where all marks are of one step it is said once, in the subtitle, and they are called by what
 * tells them apart. */
static void leave_out_step(struct rfl_figure *f)
{
	bool variants = false;

	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];

		variants = variants || m->point->variant;
		if (!*m->way || strcmp(m->step, f->marks[0].step) != 0)
			return;
	}
	if (!variants || f->nmarks < 2)
		return;
	f->step = f->marks[0].step;
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].name = f->marks[i].way;
}

void rfl_figure__names(struct rfl_figure *f)
{
	f->varies = what_varies(f);
	for (size_t i = 0; i < f->nmarks; i++) {
		struct rfl_mark *m = &f->marks[i];

		m->step = step_name(f->scene, m->point, &f->varies);
		m->name = full_name(f->scene, m->point, &f->varies);
		m->way = way_of(f->scene, m->point, &f->varies);
	}
	name_variants(f);
	number_alike(f);
	leave_out_step(f);
}
