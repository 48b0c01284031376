/*
 * figure_words.c - title, subtitle and footnote, all from the data: what does not differ between
 * the points is said here, once.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

/* A text that all points share, or NULL. */
#define SHARED(field)                                                 \
	static const char *shared_##field(const struct rfl_figure *f) \
	{                                                             \
		const char *a = f->marks[0].point->field;             \
		for (size_t i = 1; i < f->nmarks; i++) {              \
			const char *b = f->marks[i].point->field;     \
			if (strcmp(a ? a : "", b ? b : "") != 0)      \
				return NULL;                          \
		}                                                     \
		return a && *a ? a : NULL;                            \
	}

SHARED(precision)
SHARED(mode)
SHARED(layout)
SHARED(data_mode)
SHARED(engine)
SHARED(device_name)
SHARED(ledger_hash)
#undef SHARED

static bool same_source(const char *a, const char *b)
{
	size_t len = rfl_point_source_len(a ? a : "");

	return rfl_point_source_len(b ? b : "") == len && (len == 0 || memcmp(a, b, len) == 0);
}

/* The source that all points share, without why it is not another; or NULL. */
#define SHARED_SOURCE(field)                                                                      \
	static const char *shared_##field(const struct rfl_figure *f)                             \
	{                                                                                         \
		const char *a = f->marks[0].point->field;                                         \
		for (size_t i = 1; i < f->nmarks; i++)                                            \
			if (!same_source(a, f->marks[i].point->field))                            \
				return NULL;                                                      \
		return a && *a ? rfl_scene_printf(f->scene, "%.*s", (int)rfl_point_source_len(a), \
						  a)                                              \
			       : NULL;                                                            \
	}

SHARED_SOURCE(flops_source)
SHARED_SOURCE(bytes_source)
#undef SHARED_SOURCE

static const char *join(struct rfl_scene *s, const char *a, const char *b)
{
	if (!b || !*b)
		return a;
	return *a ? rfl_scene_printf(s, "%s \xc2\xb7 %s", a, b) : b;
}

/* Are there two of which it is known, and not the same? */
static bool devices_differ(const struct rfl_figure *f)
{
	const char *first = NULL;

	for (size_t i = 0; i < f->nmarks; i++) {
		const char *device = f->marks[i].point->device_name;

		if (!device || !*device)
			continue;
		if (first && strcmp(first, device) != 0)
			return true;
		first = device;
	}
	return false;
}

static const char *make_title(struct rfl_figure *f)
{
	const char *mode = shared_mode(f);
	const char *device = shared_device_name(f);
	const char *what = "Steps";
	int64_t threads = f->marks[0].point->threads;

	if (f->in->title)
		return rfl_scene_printf(f->scene, "%s", f->in->title);
	if (mode && strcmp(mode, "train") == 0)
		what = "Training steps";
	else if (mode && strcmp(mode, "fwd") == 0)
		what = "Forward passes";
	else if (mode && strcmp(mode, "fwd_bwd") == 0)
		what = "Forward and backward passes";
	if (!device && devices_differ(f))
		device = f->in->env->name;
	else if (!device)
		device = f->in->env->device ? f->in->env->device : f->in->env->name;
	for (size_t i = 1; i < f->nmarks; i++)
		if (f->marks[i].point->threads != threads)
			threads = 0;
	if (threads > 0)
		return rfl_scene_printf(f->scene, "%s on %s, %lld thread%s", what, device,
					(long long)threads, threads == 1 ? "" : "s");
	return rfl_scene_printf(f->scene, "%s on %s", what, device);
}

/* "3", "3 to 5" */
static const char *range_words(struct rfl_scene *s, int64_t lo, int64_t hi)
{
	if (lo == hi)
		return rfl_scene_printf(s, "%lld", (long long)lo);
	return rfl_scene_printf(s, "%lld to %lld", (long long)lo, (long long)hi);
}

static const char *repeats_words(struct rfl_figure *f)
{
	int64_t runs_lo = INT64_MAX, runs_hi = 0, steps_lo = INT64_MAX, steps_hi = 0;

	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_point *p = f->marks[i].point;

		runs_lo = p->runs < runs_lo ? p->runs : runs_lo;
		runs_hi = p->runs > runs_hi ? p->runs : runs_hi;
		steps_lo = p->steps < steps_lo ? p->steps : steps_lo;
		steps_hi = p->steps > steps_hi ? p->steps : steps_hi;
	}
	if (runs_lo < 1 || steps_lo < 1)
		return "";
	return rfl_scene_printf(f->scene, "%s repeat%s, %s measured step%s each point",
				range_words(f->scene, runs_lo, runs_hi), runs_hi == 1 ? "" : "s",
				range_words(f->scene, steps_lo, steps_hi),
				steps_hi == 1 ? "" : "s");
}

static const char *make_subtitle(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const char *layout = shared_layout(f);
	const char *data = shared_data_mode(f);
	const char *text = join(s, f->step ? f->step : "", shared_precision(f));

	if (layout && strcmp(layout, "nhwc") == 0)
		layout = "channels-last";
	if (data && strcmp(data, "synthetic") == 0)
		data = "synthetic data";
	else if (data && strcmp(data, "imagefolder") == 0)
		data = "JPEG images";
	text = join(s, text, layout);
	text = join(s, text, data);
	text = join(s, text, shared_engine(f));
	return join(s, text, repeats_words(f));
}

static void note(struct rfl_figure *f, const char *text)
{
	if (f->nnotes < RFL_ARRAY_LEN(f->notes) && *text)
		f->notes[f->nnotes++] = text;
}

/* "measured 2026-11-21: triad nt over 512 MiB", or the source of a value that was not measured.
 * Dates come from the file, never from now. */
static const char *ceiling_words(struct rfl_figure *f, const char *what, const struct rfl_peak *p)
{
	struct rfl_scene *s = f->scene;
	const char *text;

	if (p->status != RFL_PEAK_MEASURED)
		return rfl_scene_printf(s, "%s from %s", what,
					p->source ? p->source : rfl_peak_status_name(p->status));
	text = rfl_scene_printf(s, "%s measured", what);
	if (p->measured_at && strlen(p->measured_at) >= 10)
		text = rfl_scene_printf(s, "%s %.10s", text, p->measured_at);
	if (p->kernel && *p->kernel)
		text = rfl_scene_printf(s, "%s by %s", text, p->kernel);
	if (p->working_set_bytes > 0)
		text = rfl_scene_printf(s, "%s over %.0f MiB", text,
					(double)p->working_set_bytes / 1048576);
	return text;
}

static void note_ceilings(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const struct rfl_peak *dram = rfl_peaks_dram(f->in->env);
	const char *key = NULL;
	const struct rfl_peak *compute;

	for (size_t i = 0; i < f->nmarks && !key; i++)
		if (f->marks[i].point->peak_gflops == f->gflops)
			key = f->marks[i].point->compute_key;
	compute = key ? rfl_peaks_compute(f->in->env, key) : NULL;
	if (!dram)
		return;
	note(f, rfl_scene_printf(s, "Ceilings: %s%s%s.", ceiling_words(f, "memory", dram),
				 compute ? "; " : "",
				 compute ? ceiling_words(f, "compute", compute) : ""));
}

static const char *file_words(struct rfl_scene *s, const char *text, const char *name,
			      const char *hash)
{
	if (!name || !hash)
		return text;
	return join(s, text, rfl_scene_printf(s, "%s %.8s", name, hash));
}

static void note_files(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const char *text = file_words(s, "", f->in->points_name, f->in->points_hash);

	text = file_words(s, text, f->in->peaks_name, f->in->peaks_hash);
	text = file_words(s, text, "ledger", shared_ledger_hash(f));
	if (f->in->version)
		text = join(s, text, rfl_scene_printf(s, "roofline %s", f->in->version));
	note(f, text);
}

/* The first point above its roof, with what its verdict says; how many more there are. */
static void note_above(struct rfl_figure *f)
{
	static const char said[] = "above the roof: ";
	const struct rfl_mark *first = NULL;
	const char *why = "faster than the ceilings allow; measure them again";
	size_t more = 0;

	for (size_t i = 0; i < f->nmarks; i++) {
		if (!f->marks[i].above)
			continue;
		more += first != NULL;
		first = first ? first : &f->marks[i];
	}
	if (!first)
		return;
	if (first->point->verdict && *first->point->verdict)
		why = first->point->verdict;
	if (strncmp(why, said, sizeof(said) - 1) == 0)
		why += sizeof(said) - 1;
	note(f, rfl_scene_printf(f->scene, "%s is above its roof: %s.", first->name, why));
	if (more)
		note(f, rfl_scene_printf(f->scene, "%zu more point%s above the roof.", more,
					 more == 1 ? " is" : "s are"));
}

/* Names are as short as they can be; what else differs must not be overlooked. */
static void note_variants(struct rfl_figure *f)
{
	for (size_t i = 0; i < f->nmarks; i++)
		if (f->marks[i].cut) {
			note(f, rfl_scene_printf(
					f->scene,
					"Variants differ in more than their names say: see the "
					"column 'variant' of %s.",
					f->in->points_name ? f->in->points_name : "the points"));
			return;
		}
}

static void note_points(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const char *source = f->marks[0].point->step_source;

	for (size_t i = 1; i < f->nmarks; i++)
		if (strcmp(source ? source : "",
			   f->marks[i].point->step_source ? f->marks[i].point->step_source : "") !=
		    0)
			source = NULL;
	if (f->nskipped)
		note(f, rfl_scene_printf(s, "%zu more configuration%s without intensity or rate.",
					 f->nskipped, f->nskipped == 1 ? "" : "s"));
	note_variants(f);
	note_above(f);
	if (f->bars_hidden)
		note(f, rfl_scene_printf(
				s, "Uncertainties%s%s%s smaller than their mark are not drawn.",
				source ? " (" : "", source ? source : "", source ? ")" : ""));
}

void rfl_figure__words(struct rfl_figure *f)
{
	struct rfl_scene *s = f->scene;
	const char *flops = shared_flops_source(f), *bytes = shared_bytes_source(f);

	f->title = make_title(f);
	f->subtitle = make_subtitle(f);
	f->nnotes = 0;
	if (flops)
		note(f, rfl_scene_printf(s, "FLOPs: %s.", flops));
	if (bytes && strncmp(f->used, "bytes ", 6) == 0)
		note(f, rfl_scene_printf(s, "Bytes %s.", f->used + 6));
	else if (bytes)
		note(f, rfl_scene_printf(s, "Bytes: %s.", bytes));
	f->note_groups[0] = f->nnotes;
	note_ceilings(f);
	note_points(f);
	f->note_groups[1] = f->nnotes;
	note_files(f);
	f->note_groups[2] = f->nnotes;
}
