/* Threads that count networks and draw the same points at the same time, from the first call on,
 * get what one thread gets. The preset tsan runs it under the thread sanitizer. */
#include "plot_demo.h"
#include "rfl_test.h"

#include <pthread.h>

#include "complexity/count.h"
#include "complexity/zoo.h"
#include "plot/surface.h"

#define NTHREADS 4
#define ROUNDS   3

static const char *const formats[] = { "svg", "pdf", "png", "terminal" };

struct work {
	struct demo *demo; /* shared */
	int64_t flops;
	struct rfl_buf figures[RFL_ARRAY_LEN(formats)];
	struct rfl_err err;
	enum rfl_rc rc;
};

static enum rfl_rc count(struct work *w)
{
	const struct rfl_count_options options = { .batch = 2, .training = true };
	RFL_AUTOPTR(net) net = NULL;
	RFL_AUTOPTR(count) count = NULL;
	enum rfl_rc rc = rfl_zoo_build("resnet18", NULL, &net, &w->err);

	if (rc || (rc = rfl_count_net(net, &options, &count, &w->err)))
		return rc;
	w->flops += rfl_count_training_flops(count);
	return RFL_OK;
}

static enum rfl_rc draw(struct work *w)
{
	struct rfl_plot_input in = w->demo->input;
	struct rfl_scene *scene = NULL;
	enum rfl_rc rc = rfl_plot_roofline(&in, &scene, &w->err);

	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(formats); i++) {
		const struct rfl_surface_ops *surface = rfl_surface_find(formats[i], NULL);
		const struct rfl_surface_spec spec = { .font_dir = RFL_TEST_BUILD
						       "/share/roofline/fonts",
						       .dpi = 72,
						       .columns = 80,
						       .rows = 24 };

		if (surface) /* with cairo */
			rc = rfl_surface_draw(surface, &spec, scene, &w->figures[i], &w->err);
	}
	rfl_scene_free(scene);
	return rc;
}

static void *run(void *at)
{
	struct work *w = at;

	for (int i = 0; i < ROUNDS && w->rc == RFL_OK; i++)
		if (!(w->rc = count(w)))
			w->rc = draw(w);
	return NULL;
}

static void threads_get_what_one_gets(void **state)
{
	struct demo *demo = demo_six();
	struct work all[NTHREADS + 1] = { { .demo = NULL } };
	pthread_t threads[NTHREADS];

	(void)state;
	for (size_t i = 0; i <= NTHREADS; i++)
		all[i].demo = demo;
	for (size_t i = 0; i < NTHREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, &all[i]), 0);
	for (size_t i = 0; i < NTHREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	run(&all[NTHREADS]);
	for (size_t i = 0; i <= NTHREADS; i++) {
		assert_ok(all[i].rc, &all[i].err);
		assert_int_equal(all[i].flops, all[NTHREADS].flops);
		for (size_t k = 0; k < RFL_ARRAY_LEN(formats); k++)
			assert_string_equal(rfl_buf_str(&all[i].figures[k]),
					    rfl_buf_str(&all[NTHREADS].figures[k]));
	}
	assert_true(all[0].figures[0].len > 1000);
	for (size_t i = 0; i <= NTHREADS; i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(formats); k++)
			rfl_buf_fini(&all[i].figures[k]);
	free(demo);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(threads_get_what_one_gets) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
