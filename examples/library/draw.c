/* draw.c - what bounds each point, and the roofline of an environment as an SVG file. */
#include <rfl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_surface_spec spec = { .dpi = 0 };
	struct rfl_plot_input in = { .version = RFL_VERSION };
	struct rfl_peaks *peaks = NULL;
	struct rfl_points *points = NULL;
	struct rfl_scene *scene = NULL;
	struct rfl_buf svg = { .len = 0 };

	if (argc != 5) {
		fprintf(stderr, "usage: draw PEAKS.json POINTS.csv ENVIRONMENT FIGURE.svg\n");
		return 2;
	}
	bool failed = rfl_peaks_load(argv[1], &peaks, &err) ||
		      rfl_points_load(argv[2], &points, &err) ||
		      rfl_peaks_get(peaks, argv[3], &in.env, &err);
	for (size_t i = 0; !failed && i < points->n; i++) {
		const struct rfl_point *p = &points->points[i];
		const char *bound = rfl_point_bound(p);

		printf("%s %s bs%lld: %s, %.1f %% of the roof\n", p->env, p->model,
		       (long long)p->batch, bound ? bound : "?", 100 * rfl_point_verdict(p).share);
	}
	in.points = points;
	failed = failed || rfl_plot_roofline(&in, &scene, &err) ||
		 rfl_surface_draw(rfl_surface_find("svg", NULL), &spec, scene, &svg, &err) ||
		 rfl_file_write(argv[4], svg.data, svg.len, &err);
	if (failed)
		fprintf(stderr, "draw: %s\n", err.msg);
	rfl_buf_fini(&svg);
	rfl_scene_free(scene);
	rfl_points_free(points);
	rfl_peaks_free(peaks);
	return failed;
}
