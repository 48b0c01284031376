/*
 * test_plot_truth.c - a figure says what its points say: ceilings and knees of each precision,
 * limits, factors, statistics and coverage.
 */
#include "rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "plot_demo.h"

static struct rfl_scene *draw(struct demo *d)
{
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	return s;
}

/* The primitive of an id; it is an error if there is none. */
static const struct rfl_prim *get(const struct rfl_scene *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->prims[i].id, id) == 0)
			return &s->prims[i];
	fail_msg("no '%s'", id);
	return NULL;
}

static size_t count(const struct rfl_scene *s, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += strncmp(s->prims[i].id, word, strlen(word)) == 0;
	return n;
}

static void precisions_have_their_own_knees(void **state)
{
	struct demo *d = demo_six();
	const struct rfl_prim *memory, *knee, *tint;
	struct rfl_scene *s;

	(void)state;
	/* GPU-like: the ceiling of a few points is sixteen times that of most */
	demo_precision(d, demo_point(d, "resnet50", 4, 24.3, 900, 60, 70), false, 2900);
	demo_precision(d, demo_point(d, "resnet50", 8, 24.3, 300, 150, 160), true, 700);
	s = draw(d);
	assert_int_equal(count(s, "knee-drop"), 3);
	assert_int_equal(count(s, "label-knee"), 3);
	/* the bandwidth reaches the knee of the highest ceiling */
	memory = get(s, "roof-memory");
	knee = get(s, "knee-roof-bf16.matrix");
	assert_close(memory->at.line.x1, knee->at.marker.x, 1e-9);
	assert_close(memory->at.line.y1, knee->at.marker.y, 1e-9);
	assert_close(get(s, "roof-bf16.matrix")->at.line.y0, knee->at.marker.y, 1e-9);
	/* each knee has the colour of its precision */
	assert_memory_equal(&knee->fill, &get(s, "mark-7")->fill, sizeof(knee->fill));
	assert_memory_equal(&get(s, "knee")->fill, &get(s, "mark-1")->fill, sizeof(knee->fill));
	/* tints only where all ceilings agree */
	tint = get(s, "ground-memory");
	assert_close(tint->at.rect.x + tint->at.rect.w, get(s, "knee")->at.marker.x, 1e-9);
	tint = get(s, "ground-compute");
	assert_close(tint->at.rect.x, knee->at.marker.x, 1e-9);
	/* compute-bound in tf32, memory-bound in bf16: headroom up to its own roof */
	assert_true(get(s, "headroom-8")->at.line.y1 > get(s, "headroom-7")->at.line.y1);
	assert_close(get(s, "headroom-8")->at.line.y1, get(s, "roof-tf32.matrix")->at.line.y0,
		     1e-9);
	rfl_scene_free(s);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(precisions_have_their_own_knees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
