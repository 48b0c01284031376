/*
 * figure.h - what the files of one figure share: the data as it will be shown (figure_*.c), then
 * where it is on the page and how it looks (plot.c), then the drawing (draw_*.c). Private to the
 * room.
 */
#ifndef RFL_PLOT_FIGURE_H
#define RFL_PLOT_FIGURE_H

#include "plot/place.h"
#include "plot/plot.h"

#define RFL_THEME_COLORS 7

struct rfl_theme {
	struct rfl_color paper, ink, soft, faint; /* page, main text, secondary text, hairlines */
	struct rfl_color grid, grid_minor;
	struct rfl_color memory, compute; /* tint left and right of the knee */
	struct rfl_color roof, roof_quiet, band;
	struct rfl_color leader, alarm;
	struct rfl_color category[RFL_THEME_COLORS]; /* Okabe and Ito's palette, by distance */
	struct rfl_color phase[4];                   /* forward, backward, optimizer, data */
	double title, subtitle, axis, tick;
	double label, label_second, ceiling, ceiling_quiet;
	double heading, table, table_head, legend, footnote;
	double marker; /* radius */
	double stroke_roof, stroke_quiet, stroke_axis, stroke_grid, stroke_mark, stroke_thin;
	double halo; /* width of the stroke under a text */
};

/** White paper. */
extern const struct rfl_theme rfl_theme_light;

#define RFL_AXIS_MAX_TICKS 128

struct rfl_tick {
	double value;
	bool major; /**< a decade */
	bool labelled;
};

struct rfl_axis {
	double min, max; /**< data, both positive */
	double from, to; /**< points on the page; `from` is where min lies */
	size_t nticks;
	struct rfl_tick ticks[RFL_AXIS_MAX_TICKS];
};

/**
 * Choose a range with ends of one digit around [lo, hi], and ticks for a length on the page.
 * @param room  the least distance between two labels
 */
void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room);

/** Where a value lies on the page; not clamped. */
double rfl_axis_at(const struct rfl_axis *a, double value);

/* ---- the data as it is shown ---- */

#define RFL_FIG_CEILINGS   4 /**< at most this many, the two of the roof included */
#define RFL_FIG_CATEGORIES RFL_THEME_COLORS
#define RFL_FIG_FEW        14 /**< up to so many points are all named, if there is room */
#define RFL_FIG_NAMED      12 /**< of more points, at most this many are named directly */

enum rfl_fig_kind { RFL_FIG_BANDWIDTH, RFL_FIG_COMPUTE };

/** One ceiling. GFLOP/s or GB/s. */
struct rfl_fig_ceiling {
	enum rfl_fig_kind kind;
	const char *id;
	double value, lo, hi;  /**< lo and hi: spread of the measurements, NaN when not known */
	bool primary;          /**< the roof itself: strong; else quiet */
	bool solid;            /**< a measured cache; other quiet ceilings are dashed */
	const char *labels[3]; /**< longest first; the last is the value alone */
};

/** Beyond which edges of the axes a mark lies. */
enum rfl_fig_edge { RFL_EDGE_LEFT = 1, RFL_EDGE_RIGHT = 2, RFL_EDGE_BOTTOM = 4, RFL_EDGE_TOP = 8 };

/** An uncertainty on the page. */
struct rfl_fig_bar {
	bool shown;
	double from, to;
};

/** One configuration. */
struct rfl_mark {
	const struct rfl_point *point;
	int number;     /**< row among the environment's points, from 1 */
	int rank;       /**< 0 is named first */
	double x, y;    /**< FLOP/byte, GFLOP/s */
	double x_best;  /**< intensity at best; NaN when there is none beyond x */
	double roof;    /**< attainable at x, GFLOP/s */
	double percent; /**< of it */
	bool above;     /**< visibly beyond the roof */
	enum rfl_marker shape;
	int color;        /**< category */
	const char *name; /**< of no other mark */
	const char *step; /**< the name without what distinguishes variants */
	const char *way;  /**< that, in short; "" for nothing */
	bool numbered;    /**< name and way end in "#3", its number: words do not suffice */
	bool cut;         /**< the variant says more than the way */
	const char *rate; /**< "112 GFLOP/s", share of the roof */
	/* on the page */
	const char *second; /**< that, with the intensity where the place does not show it */
	double px, py, px_best;
	struct rfl_fig_bar bar_x, bar_y;
	unsigned edge, edge_best;
	bool whisker; /**< has a line up to its roof */
	bool named;   /**< has its label; else its number is shown */
};

/** What the colours stand for. */
enum rfl_fig_by { RFL_BY_MODEL, RFL_BY_BATCH, RFL_BY_PRECISION, RFL_BY_WAY };

/** What differs between the marks is said of each; what does not, once in the subtitle. */
struct rfl_varies {
	bool precision, layout, mode, data_mode, threads, engine, batch;
};

struct rfl_figure {
	struct rfl_scene *scene;
	const struct rfl_plot_input *in;
	const struct rfl_theme *theme;
	double scale; /**< of all sizes of the theme */

	size_t nmarks, nskipped;
	struct rfl_mark *marks;
	int *by_rank; /**< indices of marks: which are named first */
	size_t nceilings;
	struct rfl_fig_ceiling ceilings[RFL_FIG_CEILINGS]; /**< [0] bandwidth, [1] compute */
	double gbps, gflops, knee;

	struct rfl_varies varies;
	const char *step; /**< of all marks, where their names are the ways alone; else NULL */
	enum rfl_fig_by by;
	size_t ncolors, nshapes;
	const char *colors[RFL_FIG_CATEGORIES]; /**< what each colour stands for */
	int color_index[RFL_FIG_CATEGORIES];    /**< into the theme's categories */
	const char *shapes[RFL_MARKER_COUNT];   /**< model of each shape */
	const char *used;                       /**< words for filled marks */
	const char *best;                       /**< for hollow ones; NULL: there are none */
	bool best_is_fused; /**< hollow marks are at ai_fused, else at ai_compulsory */

	const char *title, *subtitle;
	size_t nnotes;
	const char *notes[12]; /**< sentences of the footnote */
	size_t note_groups[3]; /**< notes up to here are what was counted; ceilings; files */

	struct rfl_box plot, panel;
	bool has_panel;
	struct rfl_axis x, y;
	double unit; /**< GFLOP/s per unit of the y axis */
	struct rfl_place *place;
	struct rfl_box foot;  /**< of the footnote; its height is what the text needs */
	struct rfl_box strip; /**< of the legend under the axis, without a panel; h may be 0 */
	bool has_errors, has_whiskers, has_numbers, has_above, has_edges; /**< seen while drawing */
	bool bars_hidden; /**< an uncertainty was smaller than its mark */
};

/* figure_data.c: the points of the environment, encoded. */
enum rfl_rc rfl_figure__marks(struct rfl_figure *f, struct rfl_err *err) RFL_WARN_UNUSED;
/** The marks in an order of qsort(), as an array of the scene; NULL: it has failed */
struct rfl_mark **rfl_figure__sort(struct rfl_figure *f,
				   int (*order)(const void *, const void *)) RFL_WARN_UNUSED;
/* figure_names.c: what the marks are called. */
void rfl_figure__names(struct rfl_figure *f);
/* figure_data.c: the roof and what is worth showing beside it. */
enum rfl_rc rfl_figure__ceilings(struct rfl_figure *f, struct rfl_err *err) RFL_WARN_UNUSED;
/* figure_words.c: title, subtitle, sentences of the footnote. */
void rfl_figure__words(struct rfl_figure *f);
/** The text of all points, "" for none, by the offset of a member of struct rfl_point; NULL when
 * they differ. */
const char *rfl_figure__shared(const struct rfl_figure *f, size_t member);
/** The notes in lines. @return how many; lines is an array of the scene */
size_t rfl_figure__note_lines(struct rfl_figure *f, const char ***lines);
/** Lay text out in lines of at most `width`. @return the number of lines, at most `max` */
size_t rfl_figure__wrap(struct rfl_figure *f, const char *text, double size, double width,
			const char **lines, size_t max);

/* draw_*.c, in the order of drawing. */
void rfl_draw__ground(struct rfl_figure *f); /* tints, grid */
void rfl_draw__axes(struct rfl_figure *f);   /* frame, ticks, titles */
void rfl_draw__roofs(struct rfl_figure *f);  /* ceilings, knee; obstacles */
void rfl_draw__roof_labels(struct rfl_figure *f);
void rfl_draw__survey(struct rfl_figure *f); /* before drawing: places of marks, has_* */
void rfl_draw__mark_obstacles(struct rfl_figure *f);
void rfl_draw__marks(struct rfl_figure *f);  /* connectors, whiskers, bars, marks */
void rfl_draw__labels(struct rfl_figure *f); /* names, numbers, factors */
void rfl_draw__panel(struct rfl_figure *f);
/** @return the height that the legend takes at this width; draws only when `draw` is set */
double rfl_draw__legend(struct rfl_figure *f, struct rfl_box box, bool draw);
void rfl_draw__caption(struct rfl_figure *f); /* title, subtitle, footnote */

/* ---- names and numbers: texts of the scene ---- */

/** "resnet50" is "ResNet-50", "vgg16_bn" is "VGG-16 BN"; an unknown name stays as it is. */
const char *rfl_words_model(struct rfl_scene *s, const char *model);

/** "fp32.vector.1core" is "FP32 vector, one core". */
const char *rfl_words_compute(struct rfl_scene *s, const char *key);

/** Three significant digits without a prefix: 205, 47.6, 3.72, 0.0123. "n/a" for NaN. */
const char *rfl_words_number(struct rfl_scene *s, double value);

/** The text, cut with an ellipsis so that it is at most `width` wide. */
const char *rfl_words_fit(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
			  double width);

/* Shared by the drawings. */

/** The tint that lies at a place of the plot, for halos. */
struct rfl_color rfl_draw__ground_color(const struct rfl_figure *f, double px);
/** A text with its anchor and id. */
struct rfl_prim *rfl_draw__text(struct rfl_figure *f, const char *id, const char *text, double x,
				double y, double size, struct rfl_color color,
				enum rfl_anchor anchor);
/** A text within the plot: with a halo in the colour of the ground. */
struct rfl_prim *rfl_draw__halo_text(struct rfl_figure *f, const char *id, const char *text,
				     double x, double y, double size, struct rfl_color color,
				     enum rfl_anchor anchor);
/** A quiet word at the first of n places that is free, `pad_x` and `pad_y` points beyond it
 * included. @return false when none is */
bool rfl_draw__word(struct rfl_figure *f, const char *id, const char *text, double size,
		    const struct rfl_xy *at, const enum rfl_anchor *anchors, size_t n, double pad_x,
		    double pad_y);

/** A size of the theme at the figure's scale. */
#define SZ(f, member) ((f)->theme->member * (f)->scale)

#endif
