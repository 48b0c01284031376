/*
 * figure.h - internal: declarations shared by the files that create a figure. figure_*.c prepare
 * the data, plot.c arranges the page, draw_*.c draw.
 */
#ifndef RFL_PLOT_FIGURE_H
#define RFL_PLOT_FIGURE_H

#include "plot/place.h"
#include "plot/plot.h"

#define RFL_THEME_COLORS 7

/** A style of figures. Sizes are in points at scale 1. */
struct rfl_theme {
	const char *name;
	double width, height; /* default page; height 0: as high as its contents */
	double scale, least;  /* factor of all sizes on that page, and its minimum */
	bool has_panel, has_title, has_footnote;
	bool names_only;                /* labels of points have no rates */
	double left, right, top, below; /* margins of the plot; `top` has title and subtitle */
	double title_x, title_y;        /* distance of the axis titles from the plot */
	struct rfl_color paper, ink, soft, faint; /* page, main text, secondary text, hairlines */
	struct rfl_color grid, grid_minor;
	struct rfl_color memory, compute; /* tints left and right of the ridge point */
	struct rfl_color roof, roof_quiet, band;
	struct rfl_color leader, alarm;
	struct rfl_color category[RFL_THEME_COLORS]; /* Okabe and Ito's palette */
	struct rfl_color phase[5]; /* forward, backward, optimizer, data, copies */
	double title, subtitle, axis, tick;
	double label, label_second, ceiling, ceiling_quiet;
	double heading, table, table_head, legend, footnote;
	double marker; /* radius */
	double stroke_roof, stroke_quiet, stroke_axis, stroke_grid, stroke_mark, stroke_thin;
	double halo; /* width of the stroke under a text */
};

/** The styles, in the order of rfl_plot_styles. */
extern const struct rfl_theme rfl_themes[];

/** @param name  NULL: the first style. @return NULL if unknown */
const struct rfl_theme *rfl_theme_find(const char *name) RFL_WARN_UNUSED;

/** Whether the regions left and right of the ridge point are shaded. */
bool rfl_theme_is_tinted(const struct rfl_theme *t) RFL_WARN_UNUSED;

/** The i-th of n ordered colours, from light to dark. */
struct rfl_color rfl_theme_ramp(const struct rfl_theme *t, size_t i, size_t n) RFL_WARN_UNUSED;

/** Contrast of two colours as defined by WCAG, from 1 to 21; text needs RFL_CONTRAST. */
double rfl_color_contrast(struct rfl_color a, struct rfl_color b) RFL_WARN_UNUSED;

#define RFL_CONTRAST   4.5
#define RFL_LEAST_TEXT 6.0 /**< size in points of the smallest legible text */
#define RFL_LEAST_LIST 8.0 /**< the same for a list on a screen */

#define RFL_AXIS_MAX_TICKS 128

struct rfl_tick {
	double value;
	bool major; /**< a power of ten */
	bool labelled;
};

struct rfl_axis {
	double min, max; /**< range of the data; both are positive */
	double from, to; /**< range on the page in points; `from` corresponds to min */
	size_t nticks;
	struct rfl_tick ticks[RFL_AXIS_MAX_TICKS];
};

/** Choose a range around [lo, hi] with limits of one significant digit, and ticks for the axis.
 * @param room  minimum distance between two labels */
void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room);

/** The next 1, 2 or 5 times a power of ten, not below the value or not above it. */
double rfl_axis_step(double value, bool up) RFL_WARN_UNUSED;

/** Like rfl_axis_fit(), with exactly these limits. */
void rfl_axis_set(struct rfl_axis *a, double lo, double hi, double from, double to, double room);

/** Position of a value on the page; not clamped. */
double rfl_axis_at(const struct rfl_axis *a, double value);

/* ---- the data as shown ---- */

#define RFL_FIG_CACHES   2    /**< number of levels with intensities except DRAM: L1, L2 */
#define RFL_FIG_CEILINGS 12   /**< maximum number */
#define RFL_FIG_QUIET    4    /**< ceilings that limit no point are added up to this total */
#define RFL_FIG_FEW      14   /**< up to this many points are all named, if there is room */
#define RFL_FIG_NAMED    12   /**< maximum number of names if there are more points */
#define RFL_FIG_PAIRS    24   /**< with more points, hollow marks are omitted */
#define RFL_FIG_BATCHES  16   /**< with more batches, the legend shows a strip */
#define RFL_FIG_NUMBERED 300  /**< with more points, those without a name have no number */
#define RFL_FIG_DOTS     2000 /**< with more points, marks are dots without names or lines */

enum rfl_fig_kind { RFL_FIG_BANDWIDTH, RFL_FIG_COMPUTE };

/** One ceiling, in GFLOP/s or GB/s. */
struct rfl_fig_ceiling {
	enum rfl_fig_kind kind;
	const char *id;
	double value, lo, hi;  /**< lo, hi: spread of the measurements; NaN if unknown */
	bool primary;          /**< part of the roof of a point; other ceilings are drawn thin */
	int color;             /**< of its precision in the palette; -1: none */
	enum rfl_dash dash;    /**< solid: the roof, a measured cache; dotted: a GEMM */
	const char *labels[4]; /**< longest first; the last has only precision and value */
	bool labelled;         /**< it has a label */
	bool listed;           /**< it once had no room for a label: the legend has room for it */
};

/** Edges of the plot beyond which a mark lies. */
enum rfl_fig_edge { RFL_EDGE_LEFT = 1, RFL_EDGE_RIGHT = 2, RFL_EDGE_BOTTOM = 4, RFL_EDGE_TOP = 8 };

/** An error bar on the page. */
struct rfl_fig_bar {
	bool shown;
	double from, to;
};

/** The mark of one configuration. */
struct rfl_mark {
	const struct rfl_point *point;
	int number;  /**< row among the points of the environment, from 1 */
	int rank;    /**< order of naming, from 0 */
	double x, y; /**< arithmetic intensity (FLOP/byte), performance (GFLOP/s); of
			RFL_PLOT_TIME: times of the bytes and of the FLOPs at the ceilings (ms) */
	double x_cache[RFL_FIG_CACHES]; /**< intensities of L1 and L2; NaN if unknown or not drawn
					 */
	double x_was, y_was; /**< of the same configuration in in->before; NaN if there is none */
	double x_best;       /**< intensity with the least traffic; NaN unless greater than x */
	double time;         /**< of RFL_PLOT_TIME: measured time (ms) */
	double roof;         /**< attainable GFLOP/s at x, or minimum time (ms) */
	double percent;      /**< performance as a percentage of `roof` */
	double factor;       /**< possible speedup: 100 / percent */
	bool above;          /**< above the roof by more than the uncertainty */
	enum rfl_marker shape;
	int color;               /**< index in the palette of the figure */
	struct rfl_mark *next;   /**< of its series; NULL: none */
	bool linked;             /**< the previous mark of its series links to it */
	struct rfl_mark *also;   /**< the next mark of another series; NULL: none */
	const char *name;        /**< unique name */
	const char *full;        /**< the same, with its environment if several share the name */
	const char *step;        /**< the name without fields that distinguish variants */
	const char *way;         /**< those fields, abbreviated; "" if none */
	bool numbered;           /**< name and way end in a number ("#3") to be unique */
	struct rfl_mark *decode; /**< of a prefill: the steps that follow; NULL: none */
	const char *variant;     /**< fields of the variant, but not the sizes of the marks */
	bool cut;                /**< the way omits fields of the variant */
	const char *rate;        /**< "112 GFLOP/s" and share of the roof */
	const char *limit;       /**< limit according to its verdict */
	/* on the page */
	const char *second;        /**< `rate`, with the intensity if the mark is at an edge */
	double px, py, px_best, r; /**< r: radius */
	double px_cache[RFL_FIG_CACHES];
	struct rfl_xy goal;    /**< end of its whisker: the roof, or its isochrone */
	double px_was, py_was; /**< NaN outside the plot */
	struct rfl_fig_bar bar_x, bar_y;
	unsigned edge, edge_best;
	bool whisker; /**< a whisker up to its roof is drawn */
	bool ratio;   /**< the ratio of the traffic to the least is drawn */
	bool named;   /**< its name is drawn */
	bool counted; /**< its number is drawn */
	bool lost;    /**< neither is drawn, and no line of its series identifies it */
	/* kept when the figure is laid out again */
	bool listed; /**< it had no name, so that it is in the list below the plot */
	bool bare;   /**< the leader of a label would cross its whisker, which is not drawn */
};

/** The property that the colours stand for. */
enum rfl_fig_by {
	RFL_BY_MODEL,
	RFL_BY_BATCH,
	RFL_BY_CONTEXT,
	RFL_BY_PAST,
	RFL_BY_PRECISION,
	RFL_BY_WAY,
	RFL_BY_ENV,
	RFL_BY_LEVEL,
	RFL_BY_NONE
};

/** Fields that differ between the marks, which names must include. The subtitle has the others. */
struct rfl_varies {
	bool model, precision, layout, mode, data_mode, threads, engine, batch, context, past;
};

/** Columns and rows of a list of mark names, from index `from`. */
struct rfl_key {
	size_t from, columns, rows;
	double column_w, scale;
};

enum rfl_note { RFL_NOTE_COUNTS, RFL_NOTE_POINTS, RFL_NOTE_FILES, RFL_NOTES };

struct rfl_figure {
	struct rfl_scene *scene;
	const struct rfl_plot_input *in;
	const struct rfl_theme *theme;
	double scale;  /**< factor for all sizes of the theme */
	bool grows;    /**< the height of the page follows from its contents */
	double aspect; /**< height of the plot divided by its width, if the page grows */
	bool has_title, has_footnote; /**< otherwise only in the caption of the scene */

	size_t nmarks, nskipped;
	const struct rfl_point **skipped; /**< those without a place; see rfl_figure__missing() */
	size_t nbefore;                   /**< number of marks that are also in in->before */
	size_t nidle;          /**< number of points without FLOPs, which have no intensity */
	struct rfl_mark *idle; /**< those with a share of the time, largest share first */
	const char *parts;     /**< kind of parts: "layer" or "kernel"; NULL: steps */
	double shares[3];      /**< shares of the time: marks, points without FLOPs, all parts */
	bool gutter_hidden;    /**< no room for the list of points without FLOPs */
	struct rfl_mark *marks;
	struct rfl_mark **by_rank; /**< the marks in the order of naming */
	size_t nrows;
	struct rfl_mark **rows; /**< of the table: marks; parts by their share of the time */
	bool names_few;         /**< of many parts, only the longest have names or numbers */
	size_t nceilings;
	struct rfl_fig_ceiling ceilings[RFL_FIG_CEILINGS]; /**< [0] bandwidth, [1] compute */
	double gbps, gflops, knee;                         /**< roof of most marks */
	double top, knee_lo,
		knee_hi; /**< highest compute ceiling of a mark; range of the ridge points */

	struct rfl_varies varies;
	const char *step; /**< common step, if the marks are named only by way; otherwise NULL */
	enum rfl_fig_by by;
	size_t ncolors, nshapes; /**< nshapes 0: more models than shapes, all marks are circles */
	struct rfl_color *palette;
	const char **colors;                  /**< meaning of each colour of the palette */
	const char *shapes[RFL_MARKER_COUNT]; /**< model for each shape */
	const char *used;                     /**< legend text for filled marks */
	const char *best;                     /**< legend text for hollow marks; NULL: none */
	bool best_is_fused; /**< hollow marks are at ai_fused; otherwise at ai_compulsory */

	const char *title, *subtitle;
	const char *notes[RFL_NOTES]; /**< paragraphs of the footnote */

	size_t nsubs;
	struct rfl_figure *subs; /**< one for each of several environments; NULL: only one */

	struct rfl_box plot, panel;
	bool has_panel;
	bool is_cramped;             /**< the page has no room for the cells of the environments */
	bool has_tick_x, has_tick_y; /**< the ticks of the axes have labels */
	struct rfl_axis x, y;
	double unit; /**< GFLOP/s per unit of the y-axis */
	struct rfl_place *place;
	struct rfl_box foot;  /**< box of the footnote; its height depends on the text */
	struct rfl_box strip; /**< box of the legend if there is no panel; h may be 0 */
	struct rfl_box spare; /**< cell without a plot, for the signs of the legend; w 0: none */
	bool has_legend;
	bool needs_key;      /**< some marks have a number or no label */
	bool has_positions;  /**< the list of names has positions of marks without a label */
	bool has_key;        /**< room for the names of all marks in the strip */
	struct rfl_key side; /**< otherwise their list to the right of the plot; columns 0: none */
	bool lists_all;      /**< each mark is in the table or in a list of names */
	bool has_errors, has_whiskers, has_numbers, has_above, has_edges; /**< set while drawing */
	bool unsettled; /**< drawing has found what the layout must allow for */
	unsigned
		joins; /**< the sizes in whose order marks are joined: bits 1 << RFL_BY_BATCH ... */
	bool has_series, has_prefills; /**< prefills are joined with the steps that follow */
	const char *stops; /**< common to all trajectories: "1, 2, 4"; NULL if they differ */
	size_t nlost;      /**< marks without room for their name and number */
	int tight; /**< number of times that marks were shrunk so that more can be labelled */
	bool bars_hidden; /**< an error bar was smaller than its mark */
};

/* figure_data.c: the points of the environment as marks. */
enum rfl_rc rfl_figure__marks(struct rfl_figure *f, struct rfl_err *err) RFL_WARN_UNUSED;
/** The number of points of the environments that a figure of this kind can show. */
size_t rfl_figure__count(const struct rfl_figure *f,
			 const struct rfl_points *points) RFL_WARN_UNUSED;
/** The marks sorted by qsort(), in an array owned by the scene. */
struct rfl_mark **rfl_figure__sort(struct rfl_figure *f,
				   int (*order)(const void *, const void *)) RFL_WARN_UNUSED;
/** The missing value that keeps a point out of the figure: "no bytes"; NULL: none. */
const char *rfl_figure__missing(const struct rfl_figure *f, const struct rfl_point *p);
static inline bool rfl_figure__is_time(const struct rfl_figure *f)
{
	return f->in->kind == RFL_PLOT_TIME;
}
/** A rate with its unit: "29.2 TFLOP/s". */
const char *rfl_figure__rate(const struct rfl_figure *f, double gflops);
/** "61 %", "0.4 %" */
const char *rfl_figure__percent(const struct rfl_figure *f, double percent);
/** A share of the time, from 0 to 1: "49.6 %", "2.6 %", "0.73 %". */
const char *rfl_figure__share(const struct rfl_figure *f, double share);
/* figure_encode.c: shapes, colours and series of the marks. */
void rfl_figure__encode(struct rfl_figure *f);
/** A palette of n colours, to be filled. */
void rfl_figure__palette(struct rfl_figure *f, size_t n);
/** The colour for lines and outlines: from the palette, darkened if it has too little contrast
 * with the paper. */
struct rfl_color rfl_figure__line_color(const struct rfl_figure *f, struct rfl_color color);
/* figure_names.c: names of the marks, and of a part of a step. */
/** "after 64 tokens"; NULL: none, or no step with a cache. */
const char *rfl_figure__past_words(struct rfl_scene *s, const struct rfl_point *p);
/** The tokens of each sequence in a step; in mode decode, where it is one, 0; < 0: unknown. */
int64_t rfl_figure__context(const struct rfl_point *p);
/** The variant of a point without its context length and past; "" if none. */
const char *rfl_figure__variant(struct rfl_scene *s, const struct rfl_point *p);
void rfl_figure__names(struct rfl_figure *f);
const char *rfl_figure__part_name(const struct rfl_figure *f, const struct rfl_point *p);
/* figure_data.c: the roof and further ceilings. */
enum rfl_rc rfl_figure__ceilings(struct rfl_figure *f, struct rfl_err *err) RFL_WARN_UNUSED;
/* figure_words.c: title, subtitle, sentences of the footnote. */
void rfl_figure__words(struct rfl_figure *f);
/** The text at an offset in struct rfl_point; "" if there is none. */
const char *rfl_mark_text(const struct rfl_mark *m, size_t member);
/** The same if all points share it; NULL if they differ. */
const char *rfl_figure__shared(const struct rfl_figure *f, size_t member);
/** Title, subtitle and all notes as one text. */
const char *rfl_figure__caption(struct rfl_figure *f);
/** Wrap the notes into lines, an array owned by the scene. @return their number */
size_t rfl_figure__note_lines(struct rfl_figure *f, const char ***lines);

/* several.c: the parts, from in->envs; their boxes within `box`, of which the height is returned.
 */
enum rfl_rc rfl_figure__several(struct rfl_figure *f, struct rfl_err *err) RFL_WARN_UNUSED;
double rfl_figure__cells(struct rfl_figure *f, struct rfl_box box);
void rfl_draw__survey_cells(struct rfl_figure *f);
void rfl_draw__cells(struct rfl_figure *f);
void rfl_draw__overlay(struct rfl_figure *f);

/** Everything within the plot, with axes. @param titles  also the titles of the axes */
void rfl_draw__plot(struct rfl_figure *f, bool titles);
/* draw_*.c, in the order of drawing. */
void rfl_draw__ground(struct rfl_figure *f); /* tints, grid */
/* draw_time.c: drawn in a time-based roofline instead of tints, roofs and their labels. */
void rfl_draw__time_ground(struct rfl_figure *f);
void rfl_draw__isochrones(struct rfl_figure *f);
/** The value of a tick, which is a digit times a power of ten; "2e5" if it is long. */
const char *rfl_draw__tick_text(const struct rfl_figure *f, double value);
void rfl_draw__isochrone_labels(struct rfl_figure *f);
/** Whether a position is below the diagonal, where the bytes take longer than the FLOPs. */
bool rfl_draw__is_memory_side(const struct rfl_figure *f, double px, double py);
void rfl_draw__axes(struct rfl_figure *f); /* frame, ticks */
void rfl_draw__axis_titles(struct rfl_figure *f);
void rfl_draw__roofs(struct rfl_figure *f);  /* ceilings, ridge point; obstacles */
void rfl_draw__gutter(struct rfl_figure *f); /* points without FLOPs */
/** Radius of a mark with an area proportional to its share of the time. */
double rfl_draw__share_radius(const struct rfl_figure *f, double share);
void rfl_draw__roof_labels(struct rfl_figure *f);
void rfl_draw__survey(struct rfl_figure *f); /* before drawing: positions of marks, has_* */
void rfl_draw__marks(struct rfl_figure *f);  /* connectors, whiskers, bars, marks; obstacles */
void rfl_draw__labels(struct rfl_figure *f); /* names, numbers, factors */
/** Put the marks without a name in the list below the plot. */
void rfl_draw__list(struct rfl_figure *f);
void rfl_draw__panel(struct rfl_figure *f);
/** @param most  maximum number of columns */
struct rfl_key rfl_draw__key_of(const struct rfl_figure *f, size_t from, double width, size_t most);
/** A list of all names of limited size, in smaller text if necessary. */
struct rfl_key rfl_draw__key_in(const struct rfl_figure *f, double width, double height);
double rfl_draw__key_height(const struct rfl_key *k);
void rfl_draw__key(struct rfl_figure *f, const struct rfl_key *k, double x, double y);
/** A list of the roofs without a label, below a list of names to the right of the plot. */
void rfl_draw__roof_list(struct rfl_figure *f, double x, double y);
double rfl_draw__roofs_height(const struct rfl_figure *f);
/** A heading in the panel, with its baseline at y. */
void rfl_draw__heading(struct rfl_figure *f, const char *text, double y);
/** @return the height of the legend at this width; draws it only if `draw` is set */
double rfl_draw__legend(struct rfl_figure *f, struct rfl_box box, bool draw);
void rfl_draw__caption(struct rfl_figure *f); /* title, subtitle, footnote */

/* ---- names and numbers, owned by the scene ---- */

/** A list with one more word, after a separator; NULL and "" add nothing. */
const char *rfl_words_join(struct rfl_scene *s, const char *list, const char *separator,
			   const char *word);

/** "1 run", "3 runs"; "1 to 3 runs". */
const char *rfl_words_count(struct rfl_scene *s, size_t n, const char *what);
const char *rfl_words_range(struct rfl_scene *s, size_t lo, size_t hi, const char *what);

/** Display a model name: "ResNet-50" for "resnet50". Unknown names are unchanged. */
const char *rfl_words_model(struct rfl_scene *s, const char *model);

/** Display a field of a run by the name of its ledger column: "64 px" for "img_size" and "64",
 * "accum 4". */
const char *rfl_words_fact(struct rfl_scene *s, const char *key, const char *value);

/** Display a compute key: "FP32 vector, one core" for "fp32.vector.1core". */
const char *rfl_words_compute(struct rfl_scene *s, const char *key);

/** Three significant digits without a prefix: 205, 47.6, 3.72, 0.0123. "n.a." for NaN. */
const char *rfl_words_number(struct rfl_scene *s, double value);

/** A time with its unit: "38.1 ms". */
const char *rfl_words_time(struct rfl_scene *s, double ms);

/** Cut a text with an ellipsis so that it is at most `width` wide. */
const char *rfl_words_fit(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
			  double width);

/** The same in regular type for the name of a mark. Its end is kept: from the batch on or, if there
 * is none, the last characters, as names of kernels may differ only there. */
const char *rfl_words_fit_name(struct rfl_scene *s, const char *name, double size, double width);

/** Wrap a text into lines of at most `width`. @return the number of lines, at most `max` */
size_t rfl_words_wrap(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
		      double width, const char **lines, size_t max);

/* Shared by draw_*.c. */

/** Format a text owned by the scene of a figure. */
#define SAY(f, ...) rfl_scene_printf((f)->scene, __VA_ARGS__)

/** The id of an element of a mark: "name-3". */
const char *rfl_draw__id(const struct rfl_figure *f, const char *element, const struct rfl_mark *m);

/** Draw lines across a marker, for points above their roof. */
void rfl_draw__hatch(struct rfl_figure *f, const char *id, enum rfl_marker shape, struct rfl_xy at,
		     double r);

/** The background tint of the plot at a position, for halos. */
struct rfl_color rfl_draw__ground_color(const struct rfl_figure *f, double px, double py);
/** Draw a text with an anchor and an id. */
struct rfl_prim *rfl_draw__text(struct rfl_figure *f, const char *id, const char *text, double x,
				double y, double size, struct rfl_color color,
				enum rfl_anchor anchor);
/** Draw a text in the plot with a halo in the background colour. */
struct rfl_prim *rfl_draw__halo_text(struct rfl_figure *f, const char *id, const char *text,
				     double x, double y, double size, struct rfl_color color,
				     enum rfl_anchor anchor);
/** Draw a quiet text if its place is free with a margin of `pad_x` and `pad_y`. @return whether it
 * is
 */
bool rfl_draw__word(struct rfl_figure *f, const char *id, const char *text, double size, double x,
		    double y, enum rfl_anchor anchor, double pad_x, double pad_y);

/** A size of the theme, scaled for the figure. */
#define SZ(f, member) ((f)->theme->member * (f)->scale)

#endif
