/*
 * figure_names.c - names the marks by model and batch, by other fields that differ between them,
 * and by fields that distinguish variants of one configuration. Names are unique.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "plot/figure.h"

#define SHORT  36 /* characters; up to this length, variants are named in full */
#define LONG   60 /* characters; longer names are replaced by a number */
#define LABEL  30 /* bytes of the name of a layer or a kernel */
#define ENDING 12 /* of which at the end, if it is cut: names that begin alike may differ there */
#define LITTLE 10 /* characters; shorter names of kernels keep their template arguments */

/* Append a word to a name if it is wanted. */
static const char *append(struct rfl_scene *s, const char *name, bool wanted, const char *word)
{
	return rfl_words_join(s, name, " ", wanted ? word : NULL);
}

static const char *add_word(struct rfl_scene *s, const char *list, const char *word)
{
	return rfl_words_join(s, list, ", ", word);
}

/* The name of a layer, or of a kernel without return type, namespaces, template arguments and
 * parameters, cut in the middle: "sm90_gemm_bf16" for "void lib::sm90_gemm_bf16<128>(int)".
 * Template arguments remain if the name says little: "Kernel2<sm80_gemm>". */
static const char *short_part(struct rfl_scene *s, const struct rfl_point *p)
{
	const char *part = p->part;
	size_t len = strlen(part), keep = LABEL - ENDING - 1, end;

	if (rfl_text_same(p->part_kind, "kernel")) {
		end = strcspn(part, "<(");
		part += strncmp(part, "void ", 5) == 0 ? 5 : 0;
		for (size_t i = 0; p->part + end > part + i; i++)
			if (part[i] == ':' && part[i + 1] == ':') {
				part += i + 2;
				i = 0;
			}
		len = strcspn(part, "<(");
		if (len < LITTLE && part[len] == '<')
			len += strcspn(part + len, ">") + 1;
		if (len == 0 || len > strlen(part))
			len = strlen(part);
	}
	if (len <= LABEL)
		return rfl_scene_printf(s, "%.*s", (int)len, part);
	for (end = len - ENDING; end < len && ((unsigned char)part[end] & 0xc0) == 0x80;)
		end++;
	while (keep > 0 && ((unsigned char)part[keep] & 0xc0) == 0x80)
		keep--;
	return rfl_scene_printf(s, "%.*s\xe2\x80\xa6%.*s", (int)keep, part, (int)(len - end),
				part + end);
}

/* Set `name` ("ResNet-50 bs 16" and the fields that vary), `step` (without the fields that
 * distinguish variants) and `way` (those fields alone). */
static void set_names(struct rfl_scene *s, struct rfl_mark *m, const struct rfl_varies *v)
{
	const struct rfl_point *p = m->point;
	const char *data = rfl_text_same(p->data_mode, "imagefolder") ? "images" : p->data_mode;
	const bool part = p->part && *p->part;
	const char *threads = NULL, *past = NULL, *name = rfl_words_model(s, p->model);

	/* the subtitle has the fields that all parts share */
	if (part)
		name = v->model ? rfl_scene_printf(s, "%s %s", short_part(s, p), name)
				: short_part(s, p);
	if (v->threads && p->threads > 0)
		threads = rfl_words_count(s, (size_t)p->threads, "thread");
	if (v->past)
		past = rfl_figure__past_words(s, p);
	if (p->batch > 0 && (!part || v->batch))
		name = rfl_scene_printf(s, "%s bs %lld", name, (long long)p->batch);
	if (v->context && rfl_figure__context(p) > 0)
		name = rfl_scene_printf(s, "%s ctx %lld", name, (long long)p->context_length);
	name = append(s, name, v->precision, p->precision);
	m->step = append(s, name, v->mode, p->mode);
	name = append(s, append(s, name, v->layout, p->layout), v->mode, p->mode);
	name = add_word(s, name, past);
	name = add_word(s, append(s, name, v->data_mode, data), threads);
	m->name = append(s, name, v->engine, p->engine);
	m->way = add_word(s, past ? past : "", v->layout ? p->layout : NULL);
	m->way = add_word(s, m->way, v->data_mode ? data : NULL);
	m->way = add_word(s, m->way, threads);
	m->way = add_word(s, m->way, v->engine ? p->engine : NULL);
}

const char *rfl_figure__part_name(const struct rfl_figure *f, const struct rfl_point *p)
{
	struct rfl_mark m = { .point = p };

	set_names(f->scene, &m, &f->varies);
	return m.name;
}

/* A field of a variant, such as "workers 8": ledger column, and wording in a name. */
struct part {
	const char *key, *words;
};

struct variant {
	struct rfl_mark *mark;
	size_t n;
	struct part *parts;
	const char *words, *all; /* fields chosen for the name, and all fields it lacks */
};

const char *rfl_words_fact(struct rfl_scene *s, const char *key, const char *value)
{
	const char *words;
	RFL_AUTO(buf) out = { .len = 0 };

	rfl_fact_say(key, value, &out);
	words = rfl_scene_printf(s, "%s", rfl_buf_str(&out));
	return words;
}

static void read_variant(struct rfl_scene *s, const char *text, struct variant *ret)
{
	char key[RFL_FACT_NAME_MAX];
	struct rfl_span value;
	size_t most = 1;

	for (const char *at = text; at && (at = strchr(at, ',')); at++)
		most++;
	ret->parts = rfl_arena_array(s->arena, most, sizeof(*ret->parts));
	while (rfl_variant_next(&text, key, &value)) {
		const char *shown = rfl_scene_printf(s, "%.*s", (int)value.len, value.at);

		ret->parts[ret->n++] = (struct part){ rfl_scene_printf(s, "%s", key),
						      rfl_words_fact(s, key, shown) };
	}
}

static const char *words_of(const struct variant *v, const char *key)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->parts[i].key, key) == 0)
			return v->parts[i].words;
	return "";
}

/* Does the name already include this field? */
static bool is_said(const struct rfl_varies *v, const char *key)
{
	return (v->layout && strcmp(key, "layout") == 0) ||
	       (v->context && strcmp(key, "context_length") == 0) ||
	       (v->past && strcmp(key, "past") == 0) ||
	       (v->data_mode && strcmp(key, "data_mode") == 0) ||
	       (v->threads && strcmp(key, "threads") == 0) ||
	       (v->engine && (strcmp(key, "engine") == 0 || strcmp(key, "engine_version") == 0));
}

static int by_words(const void *a, const void *b)
{
	const struct variant *x = *(const struct variant *const *)a;
	const struct variant *y = *(const struct variant *const *)b;
	int order = strcmp(x->mark->name, y->mark->name);

	return order ? order : strcmp(x->words, y->words);
}

/* Name the variants of one step by the fewest fields that distinguish them. */
static void say_least(struct rfl_scene *s, struct variant *variants, size_t n)
{
	const char **asked =
		rfl_arena_array(s->arena, RFL_LEDGER_NCOLUMNS + 1, sizeof(const char *));
	struct variant **order = rfl_arena_array(s->arena, n, sizeof(struct variant *));
	size_t nasked = 0;

	for (size_t i = 0; i < n; i++) {
		order[i] = &variants[i];
		variants[i].words = "";
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < variants[i].n; k++) {
			const char *key = variants[i].parts[k].key;
			bool wanted = false;
			size_t at = 0;

			while (at < nasked && strcmp(asked[at], key) != 0)
				at++;
			if (at < nasked)
				continue;
			asked[nasked++] = key;
			/* does it distinguish two variants that still have equal names? */
			qsort(order, n, sizeof(struct variant *), by_words);
			for (size_t j = 1; j < n && !wanted; j++)
				wanted = by_words(&order[j - 1], &order[j]) == 0 &&
					 strcmp(words_of(order[j - 1], key),
						words_of(order[j], key)) != 0;
			for (struct variant *v = variants; v < variants + n && wanted; v++)
				v->words = add_word(s, v->words, words_of(v, key));
		}
}

static int by_step(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	int order = strcmp(x->step, y->step);

	return order ? order : x->number - y->number;
}

static void name_variants(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	struct rfl_mark **marks = rfl_figure__sort(f, by_step);
	struct variant *variants = rfl_arena_array(s->arena, f->nmarks, sizeof(*variants));

	for (size_t i = 0, n; i < f->nmarks; i += n) {
		bool all_short = true;

		/* collect the variants of one step, with the fields that their names lack */
		for (n = 0; i + n < f->nmarks; n++) {
			struct variant *v = &variants[n];
			struct rfl_mark *m = marks[i + n];

			if (strcmp(marks[i]->step, m->step) != 0)
				break;
			*v = (struct variant){ .mark = m, .words = "" };
			read_variant(s, m->point->variant, v);
			for (size_t k = 0; k < v->n; k++)
				if (!is_said(&f->varies, v->parts[k].key))
					v->words = add_word(s, v->words, v->parts[k].words);
			v->all = v->words;
			all_short = all_short && strlen(v->words) <= SHORT;
		}
		if (!all_short)
			say_least(s, variants, n);
		for (struct variant *v = variants; v < variants + n; v++) {
			struct rfl_mark *m = v->mark;

			m->numbered = strlen(v->words) > LONG;
			m->cut = m->numbered || strcmp(v->words, v->all) != 0;
			if (m->numbered)
				continue;
			m->name = add_word(s, m->name, v->words);
			m->way = add_word(s, m->way, v->words);
		}
	}
}

static int by_name(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;
	const int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->point->env, y->point->env);
}

/* A variant without a field. */
static const char *without(struct rfl_scene *s, const char *text, const char *key)
{
	const char *at = strstr(text, key), *end;
	size_t before;

	/* a whole field of the list */
	if (!at || (at > text && at[-1] != ' '))
		return text;
	end = at + strcspn(at, ",");
	end += strspn(end, ", ");
	before = (size_t)(at - text);
	if (!*end) /* the last one: without the comma before it */
		before = before > 2 ? before - 2 : 0;
	return rfl_scene_printf(s, "%.*s%s", (int)before, text, end);
}

const char *rfl_figure__variant(struct rfl_scene *s, const struct rfl_point *p)
{
	const char *text = p->variant ? p->variant : "";

	if (p->context_length > 0)
		text = without(s, text, "context_length ");
	return p->past >= 0 ? without(s, text, "past ") : text;
}

const char *rfl_figure__past_words(struct rfl_scene *s, const struct rfl_point *p)
{
	if (p->past < 0 || (p->past == 0 && !rfl_text_same(p->mode, "decode")))
		return NULL;
	return rfl_words_fact(s, "past", rfl_scene_printf(s, "%lld", (long long)p->past));
}

int64_t rfl_figure__context(const struct rfl_point *p)
{
	return rfl_text_same(p->mode, "decode") ? 0 : p->context_length;
}

void rfl_figure__names(struct rfl_figure *f)
{
	const struct rfl_point *a = f->marks[0].point;
	bool one_step = f->nmarks > 1, variants = false;
	struct rfl_mark **marks;

	f->varies = (struct rfl_varies){
		.model = !rfl_figure__shared(f, offsetof(struct rfl_point, model)),
		.precision = !rfl_figure__shared(f, offsetof(struct rfl_point, precision)),
		.layout = !rfl_figure__shared(f, offsetof(struct rfl_point, layout)),
		.mode = !rfl_figure__shared(f, offsetof(struct rfl_point, mode)),
		.data_mode = !rfl_figure__shared(f, offsetof(struct rfl_point, data_mode)),
		.engine = !rfl_figure__shared(f, offsetof(struct rfl_point, engine)),
	};
	for (size_t i = 1; i < f->nmarks; i++) {
		const struct rfl_point *p = f->marks[i].point, *before = f->marks[i - 1].point;

		f->varies.threads |=
			p->threads != before->threads && rfl_text_same(p->env, before->env);
		f->varies.batch |= a->batch != f->marks[i].point->batch;
		f->varies.context |= rfl_figure__context(a) != rfl_figure__context(p);
		f->varies.past |= a->past != p->past;
	}
	for (size_t i = 0; i < f->nmarks; i++)
		set_names(f->scene, &f->marks[i], &f->varies);
	name_variants(f);
	/* number marks that still have equal names, by their row in the points file */
	marks = rfl_figure__sort(f, by_name);
	for (size_t i = 1; i < f->nmarks; i++)
		if (by_name(&marks[i - 1], &marks[i]) == 0)
			marks[i - 1]->numbered = marks[i]->numbered = true;
	for (struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		if (m->numbered) {
			const char *number = SAY(f, "#%d", m->number);

			m->name = SAY(f, "%s %s", m->name, number);
			m->way = add_word(f->scene, m->way, number);
		}
		variants = variants || m->point->variant;
		one_step = one_step && *m->way && strcmp(m->step, f->marks[0].step) == 0;
	}
	if (f->parts && !f->varies.model && !f->varies.batch && !f->varies.context) {
		f->step = rfl_words_model(f->scene, a->model);
		if (a->batch > 0)
			f->step = SAY(f, "%s bs %lld", f->step, (long long)a->batch);
		return;
	}
	/* if all marks belong to one step, the subtitle names it, and the marks omit it */
	if (!one_step || !variants)
		return;
	f->step = f->marks[0].step;
	for (size_t i = 0; i < f->nmarks; i++)
		f->marks[i].name = f->marks[i].way;
}
