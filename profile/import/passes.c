/*
 * passes.c - joins the files of a profiler that runs the application once per set of counters: the
 * kernels are the same in each file, their counters are not. A kernel's sums are joined, not its
 * launches, because formulas are sums; the launch counts must be equal.
 */
#include <math.h>
#include <string.h>

#include "profile/capture/impl.h"
#include "profile/import/importer.h"

/* Whether a capture has a known metric that `other` lacks. */
static bool has_more(struct rfl_arena *arena, const struct rfl_capture *c,
		     const struct rfl_capture *other)
{
	struct rfl_keys names = { 0 };
	bool added = false;

	for (const struct rfl_range *r = other->ranges; r < other->ranges + other->nranges; r++)
		for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics; m++)
			(void)rfl_keys_add(&names, arena, m->name, strlen(m->name), NULL);
	for (const struct rfl_range *r = c->ranges; r < c->ranges + c->nranges; r++)
		for (const struct rfl_metric *m = r->metrics; m < r->metrics + r->nmetrics; m++) {
			if (!isnan(m->value))
				(void)rfl_keys_add(&names, arena, m->name, strlen(m->name), &added);
			if (added)
				return true;
		}
	return false;
}

/* The formulas of both: those that are not the importer's general ones. NULL: other GPUs. */
static const char *common_formulas(const struct rfl_capture *a, const struct rfl_capture *b)
{
	const struct rfl_importer *importer = rfl_importer_find(a->source, NULL);

	if (!importer || !importer->has_passes || strcmp(a->source, b->source) != 0)
		return NULL;
	if (strcmp(a->family, importer->formulas) == 0)
		return b->family;
	return strcmp(b->family, importer->formulas) == 0 || strcmp(a->family, b->family) == 0
		       ? a->family
		       : NULL;
}

static void add_range(struct rfl_capture_builder *b, const struct rfl_range *r,
		      const struct rfl_range *joined)
{
	const struct rfl_range *const both[] = { r, joined };

	rfl_capture_begin(b, r->kind, r->name, r->block, r->grid);
	rfl_capture_launches(b, r->launches);
	for (size_t i = 0; i < RFL_ARRAY_LEN(both); i++)
		for (size_t k = 0; both[i] && k < both[i]->nmetrics; k++) {
			const struct rfl_metric *m = &both[i]->metrics[k];

			rfl_capture_put(b, m->name, m->unit, m->value, m->validity, m->pass,
					m->reason);
		}
}

/* Two captures, and for each range of the first the matching one of the second, or NULL. */
struct pair {
	const struct rfl_capture *a, *b;
	const char *formulas;
	const struct rfl_range **same;
	bool *used; /* ranges of `b` that are in `same` */
	struct rfl_arena *arena;
};

/* A range by kind, name, block and grid: its number, from 1. */
static uint32_t number_of(struct rfl_keys *kernels, struct rfl_arena *arena,
			  const struct rfl_range *r)
{
	const char *key = rfl_arena_printf(arena, "%d\n%s\n%s\n%s", (int)r->kind, r->name,
					   r->block ? r->block : "", r->grid ? r->grid : "");

	return rfl_keys_add(kernels, arena, key, strlen(key), NULL);
}

/* Pair the kernels. Returns the number of kernels that both have; 0 if `differs`, which is set to
 * the first kernel with a different launch count. */
static size_t pair_kernels(struct pair *p, const struct rfl_range **differs)
{
	struct rfl_keys kernels = { 0 };
	size_t n = 0;

	/* ranges of a capture differ in kind, name, block or grid: those of `b` are numbered in
	 * order */
	for (size_t i = 0; i < p->b->nranges; i++)
		(void)number_of(&kernels, p->arena, &p->b->ranges[i]);
	for (size_t i = 0; i < p->a->nranges && !*differs; i++) {
		const struct rfl_range *r = &p->a->ranges[i];
		const uint32_t number = number_of(&kernels, p->arena, r);

		if (number > p->b->nranges)
			continue;
		if (p->b->ranges[number - 1].launches != r->launches)
			*differs = r;
		p->same[i] = &p->b->ranges[number - 1];
		p->used[number - 1] = true;
		n++;
	}
	return *differs ? 0 : n;
}

/* Append the join of a pair. */
static enum rfl_rc join(const struct pair *p, struct rfl_captures *to, struct rfl_err *err)
{
	const struct rfl_capture *a = p->a, *b = p->b;
	const struct rfl_capture_spec spec = { .source = a->source,
					       .label = a->label,
					       .path = a->path,
					       .formulas = p->formulas,
					       .all_metrics = true };
	struct rfl_capture_builder *builder = rfl_capture_builder_new(&spec);

	for (size_t i = 0; i < a->nranges; i++)
		add_range(builder, &a->ranges[i], p->same[i]);
	for (size_t i = 0; i < b->nranges; i++)
		if (!p->used[i])
			add_range(builder, &b->ranges[i], NULL);
	for (size_t i = 0; i < a->nnotes; i++)
		rfl_capture_note(builder, "%s", a->notes[i]);
	for (size_t i = 0; i < b->nnotes; i++)
		rfl_capture_note(builder, "%s", b->notes[i]);
	rfl_capture_note(builder, "joined with the counters of %s", b->path);
	rfl_capture_steps(builder, a->steps, (a->passes < 1 ? 1 : a->passes) + 1);
	rfl_capture_left_out(builder, a->rows_left_out + b->rows_left_out);
	builder->capture.unused_metrics = a->unused_metrics + b->unused_metrics;
	return rfl_capture_finish(builder, to, err);
}

/* Join captures i < j if they are passes of one run; the join replaces both. */
static enum rfl_rc join_pair(struct rfl_captures *c, size_t i, size_t j,
			     const struct rfl_import_options *options, struct rfl_err *err)
{
	struct pair p = { .a = c->captures[i], .b = c->captures[j] };
	const struct rfl_range *differs = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	size_t n = c->n;
	enum rfl_rc rc = RFL_OK;

	if (strcmp(p.a->label, p.b->label) != 0 || !(p.formulas = common_formulas(p.a, p.b)))
		return RFL_OK;
	p.arena = rfl_arena_new();
	p.same = rfl_arena_array(p.arena, p.a->nranges, sizeof(*p.same));
	p.used = rfl_arena_array(p.arena, p.b->nranges, sizeof(*p.used));
	if (has_more(p.arena, p.a, p.b) && has_more(p.arena, p.b, p.a) &&
	    pair_kernels(&p, &differs) > 0)
		rc = join(&p, c, err);
	if (differs && options->warn) {
		(void)rfl_fail(&why, RFL_EFORMAT, 0,
			       "%s and %s are not joined, because their launch counts of '%.80s' "
			       "differ; profile the same work in each pass",
			       p.a->path, p.b->path, differs->name);
		options->warn(why.msg, options->ctx);
	}
	if (rc == RFL_OK && c->n > n) {
		rfl_arena_free(p.a->arena);
		rfl_arena_free(p.b->arena);
		c->captures[i] = c->captures[n];
		c->n = n - 1;
		memmove(&c->captures[j], &c->captures[j + 1], (n - 1 - j) * sizeof(*c->captures));
	}
	rfl_arena_free(p.arena);
	return rc;
}

enum rfl_rc rfl_import_join_passes(struct rfl_captures *c, const struct rfl_import_options *options,
				   struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t j = 1; j < c->n && rc == RFL_OK; j++)
		for (size_t i = 0, n = c->n; i < j && n == c->n && rc == RFL_OK; i++) {
			rc = join_pair(c, i, j, options, err);
			j -= c->n < n;
		}
	return rc;
}
