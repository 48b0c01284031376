/*
 * plot.c - the two passes: data to scene, scene to bytes.
 */
#include "plot/plot.h"

#include "plot/figure.h"

static enum rfl_rc check_size(double width, double height, struct rfl_err *err)
{
	if (!(width >= RFL_PLOT_MIN_WIDTH && width <= RFL_PLOT_MAX_SIDE))
		return rfl_fail(err, RFL_EINVAL, 0, "a width of %g points is not one from %g to %g",
				width, RFL_PLOT_MIN_WIDTH, RFL_PLOT_MAX_SIDE);
	if (!(height >= RFL_PLOT_MIN_HEIGHT && height <= RFL_PLOT_MAX_SIDE))
		return rfl_fail(err, RFL_EINVAL, 0,
				"a height of %g points is not one from %g to %g", height,
				RFL_PLOT_MIN_HEIGHT, RFL_PLOT_MAX_SIDE);
	return RFL_OK;
}

static void draw(struct rfl_figure *f)
{
	f->scene->n = 0;
	f->scene->title = f->title;
	f->scene->paper = f->theme->paper;
	rfl_draw__ground(f);
	rfl_draw__axes(f);
	rfl_draw__roofs(f);
	rfl_draw__mark_obstacles(f);
	rfl_draw__roof_labels(f);
	rfl_draw__marks(f);
	rfl_draw__labels(f);
	rfl_draw__panel(f);
	rfl_draw__caption(f);
}

enum rfl_rc rfl_plot_roofline(const struct rfl_plot_input *in, struct rfl_scene **ret,
			      struct rfl_err *err)
{
	double width = in->width > 0 ? in->width : RFL_PLOT_WIDTH;
	double height = in->height > 0 ? in->height : RFL_PLOT_HEIGHT;
	struct rfl_figure f = { .in = in, .theme = &rfl_theme_light };
	enum rfl_rc rc = check_size(width, height, err);

	if (rc != RFL_OK)
		return rc;
	f.scene = rfl_scene_new(width, height);
	if (!f.scene)
		return rfl_fail(err, RFL_ENOMEM, 0, "no memory for a figure");
	rc = rfl_figure__marks(&f, err);
	if (rc != RFL_OK)
		goto done;
	rc = rfl_figure__ceilings(&f, err);
	if (rc != RFL_OK)
		goto done;
	rfl_figure__layout(&f);
	if (f.place)
		draw(&f);
	/* that marks have numbers is known when there was no place for their names; under the axis
	 * the legend then needs room for one more entry */
	if (f.has_numbers && !f.has_panel) {
		rfl_figure__layout(&f);
		if (f.place)
			draw(&f);
	}
	rc = rfl_scene_check(f.scene, err);
	if (rc != RFL_OK)
		goto done;
	*ret = f.scene;
	f.scene = NULL;
done:
	rfl_scene_free(f.scene);
	return rc;
}
