/* plot_output.c - roofline plot: the files and printed figures of a command, all of which are
 * complete before the first is written. */
#include "cli/cmd/plot_charts.h"

#include <stdint.h>

#include "base/file.h"

/* @param name  of the file; NULL: printed */
static struct rfl_plot_output *add(struct rfl_plot_outputs *all, const char *name,
				   const char *suffix)
{
	struct rfl_plot_output *o = rfl_arena_append(all->cli->arena, &all->items, &all->n);

	if (name)
		o->path = rfl_cli_path(all->cli, all->args->output_dir,
				       rfl_arena_printf(all->cli->arena, "%s.%s", name, suffix));
	return o;
}

struct rfl_buf *rfl_plot_add_file(struct rfl_plot_outputs *all, const char *name,
				  const char *suffix)
{
	struct rfl_plot_output *o = add(all, name, suffix);

	o->quiet = true;
	return &o->bytes;
}

/* Draw a figure in the size of the terminal, with text of about one size and no small print. */
static enum rfl_rc add_printed(struct rfl_plot_outputs *all, rfl_plot_drawer *draw, void *ctx,
			       const struct rfl_surface_ops *ops, const char *title,
			       struct rfl_err *err)
{
	struct rfl_plot_size size = { .style = "column", .printed = true };
	struct rfl_surface_spec spec = { .dpi = 0 };
	struct rfl_buf *bytes = &add(all, NULL, NULL)->bytes;
	const struct rfl_scene *scene;
	enum rfl_rc rc;

	rfl_cli_terminal(all->cli, &spec, &size.width, &size.height);
	spec.rows--; /* the title has a line of its own */
	rfl_buf_printf(bytes, spec.ansi ? "\033[1m%s\033[0m\n" : "%s\n", title);
	rc = draw(ctx, &size, &scene, err);
	return rc ? rc : rfl_surface_draw(ops, &spec, scene, bytes, err);
}

enum rfl_rc rfl_plot_add(struct rfl_plot_outputs *all, rfl_plot_drawer *draw, void *ctx,
			 const char *name, struct rfl_err *err)
{
	const struct rfl_plot_args *a = all->args;
	struct rfl_arena *arena = all->cli->arena;
	const struct rfl_surface_spec spec = {
		.dpi = a->dpi,
		.font_dir = all->cli->data_dir
				    ? rfl_arena_printf(arena, "%s/fonts", all->cli->data_dir)
				    : NULL,
	};
	const struct rfl_plot_size size = { a->style, a->width, a->height, false };
	const struct rfl_scene *scene;
	const char *title, *caption;
	size_t last = SIZE_MAX;
	enum rfl_rc rc = draw(ctx, &size, &scene, err);

	if (rc)
		return rc;
	title = rfl_arena_strdup(arena, scene->title);
	caption = scene->has_caption ? NULL : rfl_arena_strdup(arena, scene->caption);
	for (int printed = 0; printed < 2; printed++)
		for (size_t i = 0; i < a->format.n; i++) {
			const struct rfl_surface_ops *ops =
				rfl_surface_find(a->format.items[i], err);

			if (!ops) /* a valid choice, so the surface was not built in */
				return RFL_EUNAVAILABLE;
			if (ops->printed != printed || rfl_plot_is_again(&a->format, i))
				continue;
			if (!printed)
				last = all->n;
			rc = printed ? add_printed(all, draw, ctx, ops, title, err)
				     : rfl_surface_draw(ops, &spec, scene,
							&add(all, name, ops->suffix)->bytes, err);
			if (rc)
				return rc;
		}
	if (last < all->n)
		all->items[last].caption = caption;
	return RFL_OK;
}

enum rfl_rc rfl_plot_write(struct rfl_plot_outputs *all, struct rfl_err *err)
{
	for (struct rfl_plot_output *o = all->items; o < all->items + all->n; o++) {
		enum rfl_rc rc = o->path ? rfl_file_mkdirs(all->args->output_dir, err) : RFL_OK;

		if (!rc)
			rc = o->path ? rfl_cli_deliver(all->cli, o->path, 0, &o->bytes, o->path,
						       err)
				     : rfl_cli_put_colored(all->cli, &o->bytes, "figure", err);
		if (rc)
			return rc;
		if (o->path && !o->quiet)
			rfl_cli_printf(all->cli, "%s\n", o->path);
		if (o->caption)
			rfl_cli_printf(all->cli, "caption: %s\n", o->caption);
	}
	return RFL_OK;
}

void rfl_plot_outputs_fini(struct rfl_plot_outputs *all)
{
	for (size_t i = 0; i < all->n; i++)
		rfl_buf_fini(&all->items[i].bytes);
}
