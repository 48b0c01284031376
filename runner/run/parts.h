/*
 * parts.h - inside runner/: what the files of a run share. The child reports events, one JSON
 * object each: {"event": NAME, ...}. "engine", "device", "ready", "timed", "gpu" and "until" carry
 * results (run/results.c), "world" those of all processes; the others are read in run/parent.c.
 * From "timed" on the run is measured; "counters" brings a piece of a table of counters, "so_far"
 * is the end of one that another will replace, "counted" of the last.
 */
#ifndef RFL_RUNNER_RUN_PARTS_H
#define RFL_RUNNER_RUN_PARTS_H

#include <jansson.h>

#include "base/buf.h"
#include "base/proc.h"
#include "complexity/net.h"
#include "machine/gpu.h"
#include "runner/run.h"

struct rfl_machine;

/* ---- members of a struct as JSON (run/config.c) ---- */

enum rfl_run__kind {
	RFL_RUN__INT, /* int or int64_t */
	RFL_RUN__FLAG,
	RFL_RUN__REAL, /* NaN is null */
	RFL_RUN__TEXT, /* borrowed from the JSON; may be NULL */
	RFL_RUN__CHARS /* an array within the struct */
};

struct rfl_run__member {
	const char *key;
	enum rfl_run__kind kind;
	size_t offset, size;
};

#define RFL_RUN__MEMBER(structure, kind, key, path)                                             \
	{                                                                                       \
		key, RFL_RUN__##kind, offsetof(structure, path), sizeof(((structure *)0)->path) \
	}

json_t *rfl_run__member_to_json(const struct rfl_run__member *m, const void *base);
/** @return false when the value is missing or of another type */
bool rfl_run__member_from_json(const struct rfl_run__member *m, const json_t *value, void *base);

/** A text as JSON, which is UTF-8: of one that is not, other bytes than ASCII are shown as "?". */
json_t *rfl_run__shown(const char *text, size_t n);

/* ---- the configuration (run/config.c) ---- */

/** Samples of a step of this process. */
int64_t rfl_run__batch(const struct rfl_run_config *config);
enum rfl_layout rfl_run__layout(const struct rfl_run_config *config);
struct rfl_data_spec rfl_run__data_spec(const struct rfl_run_config *config);

/** The columns of the ledger that are facts of the configuration. */
enum rfl_rc rfl_run__fill_facts(const struct rfl_run_config *config, struct rfl_ledger_row *row,
				struct rfl_err *err);

/** New reference, or NULL out of memory. */
json_t *rfl_run__config_to_json(const struct rfl_run_config *config);

/** Texts and lists point into `json`, which must stay. `dirs` receives the plugin folders. */
enum rfl_rc rfl_run__config_from_json(const json_t *json, const char **dirs, size_t ndirs,
				      struct rfl_run_config *ret, struct rfl_err *err);

/** Values within bounds, network known, folder with images: all that can be said before a child is
 * started. The net is the caller's. */
enum rfl_rc rfl_run__check(const struct rfl_run_config *config, struct rfl_net **ret,
			   struct rfl_err *err);

/** A fingerprint of all that makes runs comparable, 16 hex digits. */
void rfl_run__config_hash(const struct rfl_run_config *config, const struct rfl_ledger_row *row,
			  char out[17]);

/* ---- results (run/results.c) ---- */

/** What a run ran on and what it measured. The child fills it, the parent has a copy. Not known:
 * NaN, -1, "". */
struct rfl_run__results {
	char engine[64], engine_id[128], engine_version[128];
	int plugin_abi;
	int device; /* RFL_RUN_DEVICE_AUTO: not known */
	char backend_reason[640];
	struct rfl_engine_device on;
	double setup_s;
	int pin_memory, cudnn_benchmark, cuda_graph; /* what the run had of what was asked for */
	char optimizer_kernels[16];
	struct rfl_burst burst;
	struct rfl_engine_memory memory;
	struct rfl_loss_scaling scaling;
	double host_peak_bytes, queue_mean, queue_min;
	double decode_rate;  /* images per second that the loader could keep up with */
	int64_t skipped;     /* files left out */
	bool watched;        /* gpu is known */
	char unwatched[512]; /* why a GPU was not watched */
	struct rfl_gpu_samples gpu;
};

/** The events that carry results; up to UNTIL of what was measured. */
enum rfl_run__event {
	RFL_RUN__TIMED,
	RFL_RUN__GPU,
	RFL_RUN__UNTIL,
	RFL_RUN__ENGINE,
	RFL_RUN__DEVICE,
	RFL_RUN__READY,
	RFL_RUN__WORLD, /* what all processes have together */
};
extern const char *const rfl_run__event_names[];

/** Nothing known, and room for the steps of a window. The burst is released by the caller. */
enum rfl_rc rfl_run__results_init(struct rfl_run__results *r, int64_t iters, struct rfl_err *err);
json_t *rfl_run__pack(enum rfl_run__event event, const struct rfl_run__results *r);
void rfl_run__unpack(enum rfl_run__event event, const json_t *json, struct rfl_run__results *r);

#define RFL_RUN__STEP_NUMBERS 7 /* the members of struct rfl_burst_step, doubles */
/** {"event": event, "first": first, "rows": [[...], ...]} of n steps. */
json_t *rfl_run__pack_steps(const char *event, const struct rfl_burst_step *steps, int64_t first,
			    int64_t n);
void rfl_run__unpack_steps(const json_t *event, struct rfl_burst *burst);
bool rfl_run__has_all_steps(const struct rfl_burst *burst);

/** Exchange results with the other processes, as each of them does: r becomes what all have
 * measured together, but for its steps. */
enum rfl_rc rfl_run__unite(const struct rfl_engine_ops *ops, struct rfl_engine *engine, int size,
			   struct rfl_run__results *r, int *slowest, struct rfl_err *err);

/** The columns of the ledger that are results. @param timed  those that were measured, too */
enum rfl_rc rfl_run__fill_results(const struct rfl_run__results *r, bool timed,
				  struct rfl_ledger_row *row, struct rfl_err *err);

/* ---- the child's work (run/child.c) ---- */

/** Takes the reference. */
typedef void (*rfl_run__emit_fn)(json_t *take_event, void *ctx);

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     rfl_run__emit_fn emit, void *ctx, struct rfl_err *err);

/* ---- what the parent has heard (run/parent.c) ---- */

struct rfl_run__heard {
	bool ready, timed, failed;
	struct rfl_run__results r; /* steps as they came; complete when timed */
	int64_t oom_kills;         /* of the machine, before the run */
	enum rfl_rc rc;            /* of failed */
	char text[1024];
	struct rfl_buf counters; /* a table, in pieces as they came */
	size_t counters_len;     /* of all that was sent; known when counted */
	struct rfl_buf so_far;   /* the one before it, should the child not end this one */
	size_t so_far_len;
	double within_s,
		late_at_s; /* what the child does now, and when that is too late; 0: never */
	bool late;
	int64_t run_number;          /* that the processes agreed on; -1: they have not met */
	bool united;                 /* all is known: rank 0 has it of all processes */
	struct rfl_run__results all; /* times of the slowest, losses of all */
	bool counted;                /* the child is through with its counted steps */
	enum rfl_rc counted_rc;
	char counted_text[1024];
};

/* What the parent holds during a run. */
struct rfl_run__state {
	const struct rfl_run_config *config;
	const struct rfl_run_host *host;
	struct rfl_net *net;
	struct rfl_machine *machine;
	struct rfl_run__heard heard;
	struct rfl_proc_result process;
	struct rfl_captures captures;
	char ledger_path[4096], lock_path[4096], counters_path[4096];
	int64_t number; /* of several processes: N of the label that is made, if they do not agree
			   on another */
	char world_label[RFL_LABEL_MAX + 1]; /* of all of them */
	struct rfl_err trouble; /* what failed first after the child was started: the row is written
				   all the same */
};

/* ---- afterwards (run/record.c) ---- */

/** <label>_rank<R>. RFL_EINVAL when that is too long. */
enum rfl_rc rfl_run__rank_label(const char *label, int rank, char ret[RFL_LABEL_MAX + 1],
				struct rfl_err *err);

/** Set run_id and timestamp_utc: when, where and by whom. No two attempts share an id. */
enum rfl_rc rfl_run__make_id(int rank, struct rfl_ledger_row *row, struct rfl_err *err);

/** Fill the row and write it and the files beside it; ret->rc says what became of the run. */
enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err);

/* ---- the row (run/row.c) ---- */

/** FLOPs of a step of so many samples. RFL_EOVERFLOW when they are more than 63 bits hold. */
enum rfl_rc rfl_run__flops(const struct rfl_run_config *config, int64_t batch,
			   const struct rfl_net *net, int64_t *ret, struct rfl_err *err);

/** Everything but identity (label, run_id, timestamp, status). After a failure it has what could be
 * filled in. */
enum rfl_rc rfl_run__fill_row(const struct rfl_run_config *config, const struct rfl_net *net,
			      const struct rfl_run__results *results, bool timed,
			      const struct rfl_machine *machine, struct rfl_ledger_row *row,
			      struct rfl_err *err);

/**
 * The row of all processes, but for its identity: like rank 0's, with the samples of all.
 * @param own  rank 0's row, complete
 */
enum rfl_rc rfl_run__fill_world_row(const struct rfl_run__state *run,
				    const struct rfl_ledger_row *own, struct rfl_ledger_row *row,
				    struct rfl_err *err);

/* ---- files beside the row (run/files.c) ---- */

/** What became of the counted steps: counters_status and the columns after it, and run->captures.
 * Nothing when none were asked for. */
enum rfl_rc rfl_run__fill_counters(struct rfl_run__state *run, struct rfl_ledger_row *row,
				   struct rfl_err *err);

/** Give the captures the row's identity and append them to the table. */
enum rfl_rc rfl_run__write_counters(struct rfl_run__state *run, const struct rfl_ledger_row *row,
				    struct rfl_err *err);

enum rfl_rc rfl_run__write_steps(const char *path, const struct rfl_burst *burst,
				 struct rfl_err *err);

/** Creates time/<label>_<stamp>.txt, or <label>_<stamp>_2.txt, ... when that is taken. */
enum rfl_rc rfl_run__write_time_log(const struct rfl_run__state *run, struct rfl_run_result *ret,
				    struct rfl_err *err);

#endif
