/*
 * report.h - a report on measured runs, built from files only: design, environments, cost, rates,
 * limiting ceilings, and missing inputs.
 */
#ifndef RFL_REPORT_REPORT_H
#define RFL_REPORT_REPORT_H

#include <jansson.h>

#include "complexity/peer.h"
#include "ledger/matrix.h"
#include "ledger/repeats.h"
#include "peaks/peaks.h"
#include "profile/capture.h"
#include "report/page.h"
#include "roofline/points.h"
#include "roofline/work.h"

enum rfl_report_kind {
	RFL_REPORT_RUN,
	RFL_REPORT_PROJECT,   /**< in the order of a graded project, with questions to the author */
	RFL_REPORT_LM,        /**< language models */
	RFL_REPORT_ATTENTION, /**< the attention benchmark */
	RFL_REPORT_TRAINING,  /**< training runs to accuracy */
};
/** Their names, and NULL; for an option. */
extern const char *const rfl_report_kinds[];

/** Whether a report shows a model: others may be in the same files. */
bool rfl_report_shows(enum rfl_report_kind kind, const char *model, int64_t context_length);

/** A file on which the report is based. */
struct rfl_report_file {
	const char *path;
	const char *contents; /**< "points" */
	const char *command;  /**< command that writes such files; NULL: the user does */
	const char *hash;     /**< fingerprint */
};

/** A figure that 'roofline plot' drew. */
struct rfl_report_picture {
	const char *name; /**< of the file, without its directory */
	struct rfl_buf file;
};

/** The inputs, all borrowed and not changed. NULL (or n = 0): not given; the report lists how to
 * create the file. */
struct rfl_report {
	enum rfl_report_kind kind;
	enum rfl_format format; /**< RFL_FORMAT_MD, RFL_FORMAT_HTML or RFL_FORMAT_PDF */
	const char *title;      /**< NULL: a default */
	const char *version;    /**< of this program */
	const char *command;    /**< the command that writes the report */
	const char *stem;       /**< stem of the names of figures next to a Markdown page */
	const char *runs_hash;  /**< fingerprint of the ledger; NULL: none, or several files */
	struct rfl_runs *runs;  /**< read with RFL_ROWS_WHOLE */
	struct rfl_repeats *repeats;
	struct rfl_points *points; /**< of whole steps */
	struct rfl_points *parts;  /**< of layers or kernels */
	const char *points_path;   /**< the first file of steps, or one without points */
	struct rfl_peaks *peaks;
	json_t *peaks_json; /**< the document of `peaks` */
	json_t *complexity; /**< summary.json of `roofline complexity` */
	const struct rfl_captures *captures;
	const struct rfl_peer *peer;  /**< counter for additional rates; NULL: none */
	enum rfl_train_factor factor; /**< training factor for these rates */
	struct rfl_matrix *matrix;
	const struct rfl_matrix_coverage *coverage;
	json_t *const *envs; /**< env.json */
	size_t nenvs;
	const struct rfl_report_picture *pictures; /**< in the format of the page, or PNG */
	size_t npictures;
	const struct rfl_report_file *files;
	size_t nfiles;
	struct rfl_report_work *work; /**< made by rfl_report_build() for its sections */
};

/**
 * Build the report.
 * @param ret  set on success only; release with rfl_page_free()
 * @return RFL_OK; RFL_EMISSING if there is nothing to report
 */
enum rfl_rc rfl_report_build(const struct rfl_report *r, struct rfl_page **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
