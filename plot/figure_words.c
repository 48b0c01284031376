/*
 * figure_words.c - display names and numbers, and the title, subtitle and footnote, which state the
 * fields common to all points.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/ledger.h"
#include "plot/figure.h"
#include "roofline/doubts.h"

#define NOTE_LINES 8 /* maximum number */

/* ---- names and numbers ---- */

const char *rfl_words_join(struct rfl_scene *s, const char *list, const char *separator,
			   const char *word)
{
	if (!word || !*word)
		return list;
	return rfl_scene_printf(s, "%s%s%s", list, *list ? separator : "", word);
}

const char *rfl_words_count(struct rfl_scene *s, size_t n, const char *what)
{
	return rfl_scene_printf(s, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

const char *rfl_words_range(struct rfl_scene *s, size_t lo, size_t hi, const char *what)
{
	const char *text = rfl_words_count(s, hi, what);

	return lo == hi ? text : rfl_scene_printf(s, "%zu to %s", lo, text);
}

/* Names of the zoo and their spelling in the papers. After a prefix, '_' becomes `blank`, and
 * letters become capitals: all of them, or the first. The first row that matches counts. A word
 * that only begins like a name, as "resnetlet", is another one. */
static const struct {
	const char *prefix, *title;
	char blank;
	enum { KEEP, UPPER, FIRST } capitals;
} names[] = {
	{ "alexnet", "AlexNet", ' ', KEEP },
	{ "cifar_cnn", "CIFAR CNN", ' ', KEEP },
	{ "convnext_", "ConvNeXt-", ' ', FIRST },
	{ "cs336_10b", "CS336 10B", ' ', KEEP },
	{ "cs336_2p7b", "CS336 2.7B", ' ', KEEP },
	{ "cs336_xl", "CS336 XL", ' ', KEEP },
	{ "cs336_", "CS336 ", ' ', KEEP },
	{ "densenet", "DenseNet-", ' ', KEEP },
	{ "efficientnet_v2_", "EfficientNetV2-", ' ', UPPER },
	{ "efficientnet_", "EfficientNet-", ' ', UPPER },
	{ "googlenet", "GoogLeNet", ' ', KEEP },
	{ "gemma2_", "Gemma 2 ", ' ', UPPER },
	{ "gemma3_", "Gemma 3 ", ' ', UPPER },
	{ "gpt2_xl", "GPT-2 XL", ' ', KEEP },
	{ "gpt2", "GPT-2", ' ', KEEP },
	{ "inception_", "Inception ", ' ', KEEP },
	{ "llama2_", "Llama 2 ", ' ', UPPER },
	{ "llama3.2_", "Llama 3.2 ", ' ', UPPER },
	{ "llama3_", "Llama 3 ", ' ', UPPER },
	{ "maxvit_", "MaxViT-", ' ', UPPER },
	{ "mnasnet", "MNASNet ", '.', KEEP },
	{ "mnist_cnn", "MNIST CNN", ' ', KEEP },
	{ "mobilenet_v3_", "MobileNetV3-", ' ', FIRST },
	{ "mobilenet_v", "MobileNetV", ' ', KEEP },
	{ "qwen2.5_", "Qwen2.5 ", ' ', UPPER },
	{ "qwen3_", "Qwen3 ", ' ', UPPER },
	{ "regnet_x_", "RegNetX-", '.', UPPER },
	{ "regnet_y_", "RegNetY-", '.', UPPER },
	{ "resnet", "ResNet-", ' ', KEEP },
	{ "resnext", "ResNeXt-", ' ', KEEP },
	{ "shufflenet_v2_", "ShuffleNetV2 ", '.', KEEP },
	{ "smollm2_", "SmolLM2 ", ' ', UPPER },
	{ "squeezenet", "SqueezeNet ", '.', KEEP },
	{ "swin_v2_", "SwinV2-", ' ', UPPER },
	{ "swin_", "Swin-", ' ', UPPER },
	{ "tiny_lm", "Tiny LM", ' ', KEEP },
	{ "vgg", "VGG-", ' ', UPPER },
	{ "vit_", "ViT-", '/', UPPER },
	{ "wide_resnet", "Wide ResNet-", '-', KEEP },
};

const char *rfl_words_model(struct rfl_scene *s, const char *model)
{
	size_t i = 0, len;
	char rest[32];

	if (!model || !*model)
		return "(no model)";
	while (i < RFL_ARRAY_LEN(names) && !rfl_span_starts(rfl_span_of(model), names[i].prefix))
		i++;
	len = i < RFL_ARRAY_LEN(names) ? strlen(names[i].prefix) : 0;
	if (len == 0 || strlen(model + len) >= sizeof(rest) ||
	    ((!model[len] || model[len] == '_') &&
	     rfl_span_ends(rfl_span_of(names[i].title), "-")) ||
	    (model[len - 1] != '_' && isalpha((unsigned char)model[len])))
		return rfl_scene_printf(s, "%s", model);
	for (size_t k = 0; k == 0 || rest[k - 1]; k++) {
		const char c = model[len + k];
		const bool capital =
			names[i].capitals == UPPER || (names[i].capitals == FIRST && k == 0);

		rest[k] =
			c == '_' ? names[i].blank : (char)(capital ? toupper((unsigned char)c) : c);
	}
	return rfl_scene_printf(s, "%s%s", names[i].title, rest);
}

const char *rfl_words_compute(struct rfl_scene *s, const char *key)
{
	const size_t len = strcspn(key, ".");
	char type[16] = "";
	const char *text;

	if (len >= sizeof(type))
		return rfl_scene_printf(s, "%s", key);
	for (size_t i = 0; i < len; i++)
		type[i] = (char)toupper((unsigned char)key[i]);
	text = rfl_scene_printf(s, "%s", type);
	for (struct rfl_span rest = rfl_span_of(key + len), word; rest.len > 0;) {
		const char *found = NULL;

		rest = rfl_span_from(rest, 1);
		word = (struct rfl_span){ rest.at, rfl_span_find(rest, ".") };
		rest = rfl_span_from(rest, word.len);
		for (const struct rfl_peaks_part *p = rfl_peaks_parts; p->word; p++)
			if (rfl_span_is(word, p->word))
				found = p->text;
		text = found ? rfl_scene_printf(s, "%s%s", text, found)
			     : rfl_scene_printf(s, "%s %.*s", text, (int)word.len, word.at);
	}
	return text;
}

const char *rfl_words_number(struct rfl_scene *s, double value)
{
	double size = fabs(value);
	int digits = 0;

	if (isnan(value))
		return "n.a.";
	if (size >= 1e6 || (size < 1e-4 && size > 0))
		return rfl_scene_printf(s, "%.2e", value);
	if (size > 0)
		digits = 2 - (int)floor(log10(size) + 1e-9);
	if (digits > 0 && size + 0.5 * pow(10, -digits) >= pow(10, 3 - digits))
		digits--; /* 9.996 becomes 10.0 */
	return rfl_scene_printf(s, "%.*f", digits > 0 ? digits : 0, value);
}

const char *rfl_words_time(struct rfl_scene *s, double ms)
{
	return ms < 0.9995  ? rfl_scene_printf(s, "%s \xc2\xb5s", rfl_words_number(s, ms * 1e3))
	       : ms < 999.5 ? rfl_scene_printf(s, "%s ms", rfl_words_number(s, ms))
			    : rfl_scene_printf(s, "%s s", rfl_words_number(s, ms / 1e3));
}

const char *rfl_words_fit(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
			  double width)
{
	size_t keep = strlen(text);
	const char *cut = text;

	/* not letter by letter from the end of a text that is much too long */
	while (keep > 64 && rfl_text_width(rfl_scene_printf(s, "%.*s", (int)(keep / 2), text), face,
					   size) > width)
		keep /= 2;
	while (keep > 0 && rfl_text_width(cut, face, size) > width) {
		do
			keep--;
		while (keep > 0 && ((unsigned char)text[keep] & 0xc0) == 0x80);
		while (keep > 0 && text[keep - 1] == ' ')
			keep--;
		cut = rfl_scene_printf(s, "%.*s\xe2\x80\xa6", (int)keep, text);
	}
	return cut;
}

#define ENDING 8 /* bytes of a name without a batch size that are kept at its end */

const char *rfl_words_fit_name(struct rfl_scene *s, const char *name, double size, double width)
{
	const size_t len = strlen(name);
	const char *end = strstr(name, " bs ");
	double end_w;

	if (!end)
		for (end = name + len - (len < ENDING ? len : ENDING);
		     ((unsigned char)*end & 0xc0) == 0x80;)
			end++;
	end_w = rfl_width(end, size);
	if (end_w > width / 2 || rfl_width(name, size) <= width)
		return rfl_words_fit(s, name, RFL_FACE_REGULAR, size, width);
	return rfl_scene_printf(s, "%s%s",
				rfl_words_fit(s,
					      rfl_scene_printf(s, "%.*s", (int)(end - name), name),
					      RFL_FACE_REGULAR, size, width - end_w),
				end);
}

size_t rfl_words_wrap(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
		      double width, const char **lines, size_t max)
{
	size_t n = 0;

	while (*text && n < max) {
		const size_t len = rfl_text_line(text, face, size, width);
		const size_t next = len + strspn(text + len, " ");
		const bool cut = n + 1 == max && text[next]; /* no room for the rest of the text */

		lines[n++] = rfl_words_fit(
			s, rfl_scene_printf(s, "%.*s%s", (int)len, text, cut ? "\xe2\x80\xa6" : ""),
			face, size, width);
		text += next;
	}
	return n;
}

/* ---- fields common to all points ---- */

const char *rfl_mark_text(const struct rfl_mark *m, size_t member)
{
	const char *text = *(char *const *)((const char *)m->point + member);

	return text ? text : "";
}

const char *rfl_figure__shared(const struct rfl_figure *f, size_t member)
{
	const char *text = rfl_mark_text(f->marks, member);

	for (size_t i = 1; i < f->nmarks; i++)
		if (strcmp(text, rfl_mark_text(&f->marks[i], member)) != 0)
			return NULL;
	return text;
}

/* A text that all points share; "" if they differ or have none. */
#define SHARED(f, member) shared_or_none(f, offsetof(struct rfl_point, member))

static const char *shared_or_none(const struct rfl_figure *f, size_t member)
{
	const char *text = rfl_figure__shared(f, member);

	return text ? text : "";
}

/* The source that all points share, without its reason; "" if they differ. */
static const char *shared_source(const struct rfl_figure *f, size_t member)
{
	const char *first = rfl_mark_text(f->marks, member);
	size_t len = rfl_point_source_len(first);

	for (size_t i = 1; i < f->nmarks; i++) {
		const char *other = rfl_mark_text(&f->marks[i], member);

		if (rfl_point_source_len(other) == len && strncmp(first, other, len) == 0)
			continue;
		/* each model has its own ratio to the count after the source: "3 x forward; ..." */
		len = strcspn(first, ";");
		if (strcspn(other, ";") != len || !first[len] || strncmp(first, other, len) != 0)
			return "";
	}
	return SAY(f, "%.*s", (int)len, first);
}

static const char *make_title(struct rfl_figure *f)
{
	const char *mode = SHARED(f, mode), *device = SHARED(f, device_name);
	const char *what = "Steps", *known = NULL;
	const struct rfl_peaks_env *env = f->in->env;
	const char *env_device =
		env && !rfl_text_same(env->device, RFL_PEAKS_NO_DEVICE) ? env->device : NULL;
	int64_t threads = f->marks[0].point->threads;
	bool differ = false; /* the points name different devices */
	bool moded = false;  /* a point has a mode */

	if (f->in->title)
		return SAY(f, "%s", f->in->title);
	if (strcmp(mode, "train") == 0)
		what = "Training steps";
	else if (strcmp(mode, "fwd") == 0)
		what = "Forward passes";
	else if (strcmp(mode, "fwd_bwd") == 0)
		what = "Forward and backward passes";
	else if (strcmp(mode, "decode") == 0)
		what = "Decode steps";
	else if (strcmp(mode, "prefill") == 0)
		what = "Prefills";
	else if (strcmp(mode, RFL_LEDGER_PROGRAM) == 0)
		what = "Programs";
	for (size_t i = 0; i < f->nmarks && !moded; i++)
		moded = *rfl_mark_text(&f->marks[i], offsetof(struct rfl_point, mode)) != '\0';
	if (f->parts)
		what = SAY(f, moded ? "%c%ss of %c%s" : "%c%ss",
			   toupper((unsigned char)f->parts[0]), f->parts + 1,
			   tolower((unsigned char)what[0]), what + 1);
	else if (!moded)
		what = "Points";
	if (rfl_figure__is_time(f))
		what = SAY(f, "Times of %c%s", tolower((unsigned char)what[0]), what + 1);
	if (f->nsubs)
		return SAY(f, "%s in %zu environments", what, f->nsubs);
	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const char *name = rfl_mark_text(m, offsetof(struct rfl_point, device_name));

		if (m->point->threads != threads)
			threads = 0;
		differ = differ || (known && *name && strcmp(known, name) != 0);
		known = *name ? name : known;
	}
	if (!*device)
		device = env_device && !differ ? env_device : env->name;
	what = SAY(f, "%s on %s", what, device);
	return threads > 0 ? rfl_words_join(f->scene, what, ", ",
					    rfl_words_count(f->scene, (size_t)threads, "thread"))
			   : what;
}

static const char *repeats_words(struct rfl_figure *f)
{
	int64_t lo[2] = { INT64_MAX, INT64_MAX }, hi[2] = { 0, 0 }; /* runs, steps */

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		const int64_t n[2] = { m->point->runs, m->point->steps };

		for (int k = 0; k < 2; k++) {
			lo[k] = n[k] < lo[k] ? n[k] : lo[k];
			hi[k] = n[k] > hi[k] ? n[k] : hi[k];
		}
	}
	if (lo[0] < 1 || lo[1] < 1)
		return "";
	return SAY(f, "%s, %s per point",
		   rfl_words_range(f->scene, (size_t)lo[0], (size_t)hi[0], "repeat"),
		   rfl_words_range(f->scene, (size_t)lo[1], (size_t)hi[1], "measured step"));
}

/* Add a sentence to a paragraph of the footnote. */
RFL_PRINTF(3, 4)
static void note(struct rfl_figure *f, enum rfl_note paragraph, const char *fmt, ...)
{
	const char **text = &f->notes[paragraph];
	va_list ap;

	va_start(ap, fmt);
	*text = rfl_words_join(f->scene, *text, "  ", rfl_scene_vprintf(f->scene, fmt, ap));
	va_end(ap);
}

/* "measured 2026-11-21: triad nt over 512 MiB", or the source of a value that was not measured.
 * Dates come from the file, never from the clock. */
static const char *ceiling_words(struct rfl_figure *f, const char *what, const struct rfl_peak *p)
{
	const char *text;

	if (p->status != RFL_PEAK_MEASURED)
		return SAY(f, "%s: %s", what,
			   p->source ? p->source : rfl_peak_status_name(p->status));
	text = SAY(f, "%s measured", what);
	if (p->measured_at && strlen(p->measured_at) >= 10)
		text = SAY(f, "%s %.10s", text, p->measured_at);
	if (p->kernel && *p->kernel)
		text = SAY(f, "%s by %s", text, p->kernel);
	if (p->working_set_bytes > 0)
		text = SAY(f, "%s over %.0f MiB", text, (double)p->working_set_bytes / 1048576);
	return text;
}

/* How the ceilings of an environment were obtained; "" if there are none. */
static const char *ceilings_words(struct rfl_figure *f)
{
	const struct rfl_peak *dram = rfl_peaks_dram(f->in->env), *compute;
	/* without points, the roofs have the precision of the first mark of the page */
	const char *key = f->nmarks ? NULL : f->marks[0].point->compute_key;

	for (size_t i = 0; i < f->nmarks && !key; i++)
		if (f->marks[i].point->peak_gflops == f->gflops)
			key = f->marks[i].point->compute_key;
	compute = key ? rfl_peaks_compute(f->in->env, key) : NULL;
	if (!dram)
		return "";
	return SAY(f, "%s%s%s", ceiling_words(f, "memory", dram), compute ? "; " : "",
		   compute ? ceiling_words(f, "compute", compute) : "");
}

#define ABOVE_NOTED 3 /* diagnoses of points above the roof */

/* The verdict of a point above its roof, or only its causes, which several points may share. */
static const char *why_above(const struct rfl_mark *m, bool causes)
{
	static const char said[] = "above the roof: ";
	const char *why = m->point->verdict, *tail;

	if (!why || !*why)
		return "faster than the ceilings allow; measure them again";
	if (causes && (tail = strstr(why, "likely causes:")))
		return tail;
	return why + (strncmp(why, said, sizeof(said) - 1) == 0 ? sizeof(said) - 1 : 0);
}

/* Note the points above their roof: the first one of each diagnosis, and the number of others. */
static void note_above(struct rfl_figure *f)
{
	const struct rfl_mark *noted[ABOVE_NOTED];
	size_t n = 0, more = 0;

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++) {
		size_t same = 0;

		if (!m->above)
			continue;
		while (same < n && strcmp(why_above(noted[same], true), why_above(m, true)) != 0)
			same++;
		if (same < n || n == ABOVE_NOTED) {
			more++;
			continue;
		}
		noted[n++] = m;
		note(f, RFL_NOTE_POINTS, "%s is above its roof: %s.", m->full, why_above(m, false));
	}
	if (more)
		note(f, RFL_NOTE_POINTS, "%zu more point%s above the roof.", more,
		     more == 1 ? " is" : "s are");
}

/* Note the points that the figure cannot show, the first of them by name. */
static void note_skipped(struct rfl_figure *f)
{
	const size_t named = f->nskipped > 4 ? 3 : f->nskipped;
	const char *text = "";

	for (size_t i = 0; i < named; i++) {
		const char *name = rfl_words_fit(f->scene, rfl_figure__part_name(f, f->skipped[i]),
						 RFL_FACE_REGULAR, 1, 20);

		text = rfl_words_join(
			f->scene, text, ", ",
			SAY(f, "%s (%s)", name, rfl_figure__missing(f, f->skipped[i])));
	}
	if (f->nskipped > named)
		text = SAY(f, "%s and %zu more", text, f->nskipped - named);
	if (f->nskipped)
		note(f, RFL_NOTE_POINTS, "Not shown: %s.", text);
}

/* Note clocks that differ from the ceilings; in a hierarchical figure, also missing roofs. */
static void note_caveats(struct rfl_figure *f)
{
	RFL_AUTO(buf) lines = { .len = 0 };
	struct rfl_span rest, line;

	if (f->in->env && (f->parts || f->in->kind == RFL_PLOT_HIERARCHICAL))
		rfl_points_caveats(f->in->points, f->in->env,
				   f->in->peaks_name ? f->in->peaks_name : "peaks.json", &lines);
	rest = rfl_span_of(rfl_buf_str(&lines));
	while (rfl_span_next_line(&rest, &line))
		note(f, RFL_NOTE_POINTS, "%.*s.", (int)line.len, line.at);
}

/* The fields that all points share. */
static const char *make_subtitle(struct rfl_figure *f)
{
	const char *layout = SHARED(f, layout), *data = SHARED(f, data_mode), *text = "";
	const long long context = rfl_figure__context(f->marks[0].point);
	const char *const parts[] = {
		f->step,
		context > 0 && !f->varies.context ? SAY(f, "%lld tokens per sample", context) : "",
		f->varies.past ? "" : rfl_figure__past_words(f->scene, f->marks[0].point),
		SHARED(f, precision),
		strcmp(layout, "nhwc") == 0 ? "channels-last" : layout,
		strcmp(data, "synthetic") == 0     ? "synthetic data"
		: strcmp(data, "imagefolder") == 0 ? "JPEG images"
						   : data,
		SHARED(f, engine),
		repeats_words(f),
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		text = rfl_words_join(f->scene, text, " \xc2\xb7 ", parts[i]);
	return text;
}

/* Sentences on how the points were selected and counted. */
static void note_counts(struct rfl_figure *f)
{
	const char *flops = shared_source(f, offsetof(struct rfl_point, flops_source));
	const char *bytes = shared_source(f, offsetof(struct rfl_point, bytes_source));
	const char *file = f->in->points_name;

	if (f->names_few)
		note(f, RFL_NOTE_COUNTS, "Only the %d longest of %zu %ss are named: see %s.",
		     RFL_FIG_NAMED, f->nmarks, f->parts, file ? file : "the points file");
	if (f->nlost)
		note(f, RFL_NOTE_COUNTS, "%zu of %zu marks have neither name nor number: see %s.",
		     f->nlost, f->nmarks,
		     f->lists_all ? "their positions in the list"
		     : file       ? file
				  : "the points file");
	if (f->has_numbers && !f->has_panel && f->strip.h == 0 && !f->side.columns)
		note(f, RFL_NOTE_COUNTS, "Numbers: points of %s in %s.",
		     f->in->env ? f->in->env->name : "all environments",
		     file ? file : "their file");
	if (f->in->all && rfl_figure__count(f, f->in->all) > rfl_figure__count(f, f->in->points))
		note(f, RFL_NOTE_COUNTS, "Selected: %s; %zu of %zu points.",
		     rfl_words_fit(f->scene, f->in->selection, RFL_FACE_REGULAR, 1, 60),
		     rfl_figure__count(f, f->in->points), rfl_figure__count(f, f->in->all));
	if (*flops)
		note(f, RFL_NOTE_COUNTS, "FLOPs: %s.", flops);
	if (*bytes && strncmp(f->used, "bytes ", 6) == 0)
		note(f, RFL_NOTE_COUNTS, "Bytes %s.", f->used + 6);
	else if (*bytes)
		note(f, RFL_NOTE_COUNTS, "Bytes: %s.", bytes);
}

/* Sentences on ceilings, and on points and what is not drawn. */
static void note_points(struct rfl_figure *f)
{
	const char *ceilings = f->nsubs ? "" : ceilings_words(f), *spread = SHARED(f, step_source);
	bool cut = false;

	for (size_t k = 0; k < f->nsubs; k++)
		ceilings = rfl_words_join(
			f->scene, ceilings, "; ",
			SAY(f, "%s: %s", f->in->envs[k]->name, ceilings_words(&f->subs[k])));
	if (*ceilings)
		note(f, RFL_NOTE_POINTS, "Ceilings: %s.", ceilings);
	if (f->nbefore && f->nbefore < f->nmarks)
		note(f, RFL_NOTE_POINTS, "%zu of %zu points are also in %s.", f->nbefore, f->nmarks,
		     f->in->before_name ? f->in->before_name : "the earlier points");
	note_skipped(f);
	if (f->shares[2] > 0)
		note(f, RFL_NOTE_POINTS, "Points shown: %s of the time%s.",
		     rfl_figure__share(f, f->shares[0] / f->shares[2]),
		     f->shares[1] > 0 ? SAY(f, "; without FLOPs: %s%s",
					    rfl_figure__share(f, f->shares[1] / f->shares[2]),
					    f->gutter_hidden ? ", not listed" : "")
				      : "");
	/* names are short: note that the variants differ in more */
	for (size_t i = 0; i < f->nmarks; i++)
		cut = cut || f->marks[i].cut;
	if (cut)
		note(f, RFL_NOTE_POINTS,
		     "Names omit some differences between variants: see the column 'variant' of "
		     "%s.",
		     f->in->points_name ? f->in->points_name : "the points");
	note_above(f);
	note_caveats(f);
	if (f->bars_hidden)
		note(f, RFL_NOTE_POINTS, "Uncertainties%s%s%s %s are not drawn.",
		     *spread ? " (" : "", spread, *spread ? ")" : "",
		     f->nmarks > RFL_FIG_DOTS ? "of so many points" : "smaller than their mark");
}

void rfl_figure__words(struct rfl_figure *f)
{
	const char *const files[][2] = {
		{ f->in->points_name, f->in->points_hash },
		{ f->in->peaks_name, f->in->peaks_hash },
		{ "ledger", SHARED(f, ledger_hash) },
		{ "roofline", f->in->version },
	};

	f->title = make_title(f);
	f->subtitle = make_subtitle(f);
	for (size_t i = 0; i < RFL_NOTES; i++)
		f->notes[i] = "";
	note_counts(f);
	note_points(f);
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++)
		if (files[i][0] && files[i][1] && *files[i][1])
			f->notes[RFL_NOTE_FILES] = rfl_words_join(
				f->scene, f->notes[RFL_NOTE_FILES], " \xc2\xb7 ",
				SAY(f, i < 3 ? "%s %.8s" : "%s %s", files[i][0], files[i][1]));
}

static const char *all_notes(const struct rfl_figure *f)
{
	const char *text = "";

	for (size_t i = 0; i < RFL_NOTES; i++)
		text = rfl_words_join(f->scene, text, "  ", f->notes[i]);
	return text;
}

const char *rfl_figure__caption(struct rfl_figure *f)
{
	const char *subtitle = *f->subtitle ? SAY(f, " %s.", f->subtitle) : "";

	return SAY(f, "%s%s%s %s", f->title, *f->title ? "." : "", subtitle, all_notes(f));
}

size_t rfl_figure__note_lines(struct rfl_figure *f, const char ***lines)
{
	const double size = SZ(f, footnote);
	const size_t max =
		(size_t)fmin((f->foot.h - 22 * f->scale) / (13 * f->scale) + 0.5, NOTE_LINES);
	size_t n = 0;

	*lines = rfl_arena_array(f->scene->arena, NOTE_LINES + 1, sizeof(const char *));
	for (size_t i = 0; i < RFL_NOTES; i++)
		n += rfl_words_wrap(f->scene, f->notes[i], RFL_FACE_REGULAR, size, f->foot.w,
				    *lines + n, max + 1 - n);
	if (n <= max)
		return n;
	/* too many lines: join all notes and cut the text at the end */
	return rfl_words_wrap(f->scene, all_notes(f), RFL_FACE_REGULAR, size, f->foot.w, *lines,
			      max);
}
