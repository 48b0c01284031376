/*
 * parts.h - declarations shared by the files of runner/run/. The child reports events, one JSON
 * object each: {"event": NAME, ...}. "engine", "device", "ready", "timed", "gpu" and "until" carry
 * results (run/results.c), and "world" carries the results of all processes; run/parent.c reads the
 * others; those of a training are in run/training.h. A run counts as measured once "timed" has
 * arrived. "counters" carries a piece of a table of counters; "so_far" ends a preliminary table,
 * "counted" the final one.
 */
#ifndef RFL_RUNNER_RUN_PARTS_H
#define RFL_RUNNER_RUN_PARTS_H

#include <jansson.h>

#include "base/bind.h"
#include "base/buf.h"
#include "base/proc.h"
#include "complexity/net.h"
#include "machine/gpu.h"
#include "runner/burst/allocated.h"
#include "runner/burst/kinds.h"
#include "runner/run.h"

struct rfl_machine;

/* Members of the structs that are sent between parent and child: NaN and NULL are null, and texts
 * are borrowed from the JSON. */
#define RFL_RUN__INT    RFL_BIND_INT
#define RFL_RUN__FLAG   RFL_BIND_FLAG
#define RFL_RUN__REAL   RFL_BIND_REAL
#define RFL_RUN__SIGNED RFL_BIND_REAL
#define RFL_RUN__TEXT   RFL_BIND_TEXT
#define RFL_RUN__CHARS  RFL_BIND_CHARS
#define RFL_RUN__MEMBER(structure, kind_, key_, path)                                            \
	{                                                                                        \
		.key = key_, .kind = RFL_RUN__##kind_, .null = RFL_RUN__##kind_ != RFL_RUN__INT, \
		.offset = offsetof(structure, path), .size = sizeof(((structure *)0)->path)      \
	}

/** Those of struct rfl_run_progress (without `epochs`) and of struct rfl_epoch. */
extern const struct rfl_member rfl_run__progress[], rfl_run__epoch[];

/** A member of an object; -1 if it is missing or has another type. */
int64_t rfl_run__int_of(const json_t *obj, const char *key);

/** Add all members to an object. @return it */
json_t *rfl_run__to_json(json_t *take_json, const struct rfl_member *members, const void *base);
/** An event with all members. */
json_t *rfl_run__pack_members(const char *name, const struct rfl_member *members, const void *base);
/** @return false if a value is missing or has the wrong type */
bool rfl_run__from_json(const struct rfl_member *members, const json_t *json, void *base);

/** A string as JSON, of the same length. If it is not UTF-8, all non-ASCII bytes become "?". */
json_t *rfl_run__shown(const char *text, size_t n);

/* ---- the configuration (run/config.c) ---- */

struct rfl_lm;

/** Tokens of the prompt of mode prefill, unless --context-length sets them. */
#define RFL_RUN_PROMPT 512

/** The language model of a run with a cache. @param arena  owns its texts */
enum rfl_rc rfl_run__lm(const struct rfl_run_config *config, struct rfl_arena *arena,
			struct rfl_lm *ret, struct rfl_err *err);
/** New tokens of each sequence in a step with a cache. */
int64_t rfl_run__tokens(const struct rfl_run_config *config);
/** Tokens of each sequence that the cache holds after the window; 0: there is no cache. */
int64_t rfl_run__cache_tokens(const struct rfl_run_config *config);

/** The digest of the network of a file; of a language model, of its decode step. */
enum rfl_rc rfl_run__digest(const struct rfl_run_config *config, const struct rfl_net *net,
			    char out[17], struct rfl_err *err);

/** Samples per step of this process. */
int64_t rfl_run__batch(const struct rfl_run_config *config);
enum rfl_layout rfl_run__layout(const struct rfl_run_config *config);
struct rfl_data_spec rfl_run__data_spec(const struct rfl_run_config *config);

/** Fill the ledger's columns that describe the configuration. */
void rfl_run__fill_facts(const struct rfl_run_config *config, struct rfl_ledger_row *row);

/** A member of the JSON configuration as an option: "--batch-size 64". @return out */
char *rfl_run__setting_text(const char *key, const json_t *value, char *out, size_t size);

/** New reference. */
json_t *rfl_run__config_to_json(const struct rfl_run_config *config);

/** The members with which a training run must have begun to be continued, except for its network
 * and data. New reference. */
json_t *rfl_run__training_to_json(const struct rfl_run_config *config);

/** Strings and lists point into `json`. `dirs` receives the plugin directories. */
enum rfl_rc rfl_run__config_from_json(const json_t *json, const char **dirs, size_t ndirs,
				      struct rfl_run_config *ret, struct rfl_err *err);

/** Check bounds, network and data before a child is started. The caller owns the net. */
enum rfl_rc rfl_run__check(const struct rfl_run_config *config, struct rfl_net **ret,
			   struct rfl_err *err);

/** A hash of the options that repeats share, as 16 hex digits, from the configuration and the
 * environment, engine, backend, network and sizes of its row. */
void rfl_run__config_hash(const struct rfl_run_config *config, const struct rfl_ledger_row *row,
			  char out[17]);

/* ---- results (run/results.c) ---- */

/** The device and the measurements of a run, filled by the child and copied to the parent. Unknown
 * values are NaN, -1 or "". */
struct rfl_run__results {
	char engine[64], engine_id[128], engine_version[128];
	int plugin_abi;
	int device; /* RFL_RUN_DEVICE_AUTO: unknown */
	char backend_reason[640];
	struct rfl_engine_device on;
	double setup_s;
	int pin_memory, cudnn_benchmark, cuda_graph; /* values in effect */
	char optimizer_kernels[16];
	int64_t data_samples;
	char data_digest[17]; /* "": synthetic */
	char libraries[256];  /* for GEMMs on the CPU; "": unknown */
	struct rfl_burst burst;
	struct rfl_engine_memory memory;
	struct rfl_loss_scaling scaling;
	double host_peak_bytes, queue_mean, queue_min;
	double decode_rate;  /* images per second that the loader could sustain */
	double others;       /* share of the machine that other programs used; NaN: unknown */
	int64_t skipped;     /* files that were skipped */
	bool watched;        /* gpu is filled */
	char unwatched[512]; /* why a GPU was not watched */
	struct rfl_gpu_samples gpu;
	char memory_status[512]; /* of allocated: "ok", or why it is unknown */
	struct rfl_allocated allocated;
	struct rfl_kinds kinds; /* of a step with a cache */
};

/** The events that carry results; those up to UNTIL carry measurements. */
enum rfl_run__event {
	RFL_RUN__TIMED,
	RFL_RUN__GPU,
	RFL_RUN__MEMORY, /* follows the pieces of its table, events "timeline" */
	RFL_RUN__KINDS,
	RFL_RUN__UNTIL,
	RFL_RUN__ENGINE,
	RFL_RUN__DEVICE,
	RFL_RUN__READY,
	RFL_RUN__WORLD, /* results of all processes */
};
extern const char *const rfl_run__event_names[];

/** Set everything to unknown and allocate the steps of a window. The caller releases the burst. */
enum rfl_rc rfl_run__results_init(struct rfl_run__results *r, int64_t iters, struct rfl_err *err);
json_t *rfl_run__pack(enum rfl_run__event event, const struct rfl_run__results *r);
void rfl_run__unpack(enum rfl_run__event event, const json_t *json, struct rfl_run__results *r);

#define RFL_RUN__STEP_NUMBERS 7 /* the members of struct rfl_burst_step, doubles */
/** Pack n steps as {"event": event, "first": first, "rows": [[...], ...]}. */
json_t *rfl_run__pack_steps(const char *event, const struct rfl_burst_step *steps, int64_t first,
			    int64_t n);
void rfl_run__unpack_steps(const json_t *event, struct rfl_burst *burst);
bool rfl_run__has_all_steps(const struct rfl_burst *burst);

/** Combine the results of all processes, each of which must call this: r receives the combined
 * results, but its steps are unchanged. */
enum rfl_rc rfl_run__unite(const struct rfl_engine_ops *ops, struct rfl_engine *engine, int size,
			   struct rfl_run__results *r, int *slowest, struct rfl_err *err);

/** Fill the ledger's result columns. @param timed  include measurements */
void rfl_run__fill_results(const struct rfl_run__results *r, bool timed,
			   struct rfl_ledger_row *row);

/** Receives an event and takes ownership of the reference. */
typedef void (*rfl_run__emit_fn)(json_t *take_event, void *ctx);

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     bool (*stopped)(void), rfl_run__emit_fn emit, void *ctx,
			     struct rfl_err *err);

struct rfl_run__received {
	bool ready, timed, failed;
	struct rfl_run__results r; /* steps received so far; complete once timed */
	int64_t oom_kills;         /* kills on the machine before the run */
	struct rfl_epochs epochs;  /* of a training */
	int64_t continued;         /* steps that it had when it was continued */
	enum rfl_rc rc;            /* error code, if failed */
	char text[1024];
	struct rfl_buf timeline; /* the part of the table of memory received so far */
	struct rfl_buf counters; /* the part of the table received so far */
	size_t counters_len;     /* size of the table as sent; set with counted */
	struct rfl_buf so_far;   /* last preliminary table, used if the final one is incomplete */
	size_t so_far_len;
	double within_s, late_at_s; /* limit on the rest of the counting, and its end; 0: none */
	bool late;
	int64_t run_number;          /* agreed on by the processes; -1: not yet */
	bool united;                 /* in rank 0: `all` has the results of all processes */
	struct rfl_run__results all; /* times of the slowest process, mean losses of all */
	bool counted;                /* the child has completed its counted steps */
	enum rfl_rc counted_rc;
	char counted_text[1024];
};

/* State of the parent during a run. */
struct rfl_run__state {
	const struct rfl_run_config *config;
	const struct rfl_run_host *host;
	struct rfl_net *net;
	struct rfl_machine *machine;
	struct rfl_run__received received;
	struct rfl_proc_result process;
	struct rfl_captures captures;
	char ledger_path[4096], lock_path[4096], counters_path[4096], epochs_path[4096];
	size_t epochs_written;
	/* held until the row is written: checkpoint of a training run; N of a generated label */
	struct rfl_run__lock {
		char path[4096];
		int fd; /* -1: not locked */
	} checkpoint_lock, number_lock;
	int64_t number; /* with several processes, the proposed N of their generated label */
	char world_label[RFL_LABEL_MAX + 1]; /* label of the combined row */
	struct rfl_err trouble; /* first failure after the child's start; the row is still written
				 */
};

/** Compose <label>_rank<R>. RFL_EINVAL if that is too long. */
enum rfl_rc rfl_run__rank_label(const char *label, int rank, char ret[RFL_LABEL_MAX + 1],
				struct rfl_err *err);

/** Set run_id, which is unique to this attempt, and timestamp_utc. */
void rfl_run__make_id(int rank, struct rfl_ledger_row *row);

struct rfl_counted_asked;
struct rfl_run_stats;

/** Fill the columns of a row that come from a capture, and append its counters_status. */
void rfl_run__fill_counts(const struct rfl_capture *capture, const struct rfl_counted_asked *asked,
			  struct rfl_ledger_row *row, struct rfl_buf *status);

/** Fill the columns of step times, in milliseconds. */
void rfl_run__fill_stats(const struct rfl_run_stats *stats, struct rfl_ledger_row *row);

/** Fill and write the row and the other files; ret->rc is the outcome of the run. */
enum rfl_rc rfl_run__conclude(struct rfl_run__state *run, struct rfl_run_result *ret,
			      struct rfl_err *err);

/* ---- the row (run/row.c) ---- */

/** FLOPs of a step of `batch` samples. RFL_EOVERFLOW if they exceed 63 bits. */
enum rfl_rc rfl_run__flops(const struct rfl_run_config *config, int64_t batch,
			   const struct rfl_net *net, enum rfl_fused_attention fused, int64_t *ret,
			   struct rfl_err *err);

/** Options of the prediction of a run's memory, on its device and with its update kernels. */
enum rfl_rc rfl_run__memory_options(const struct rfl_run_config *config,
				    const struct rfl_run__results *results,
				    struct rfl_memory_options *ret, struct rfl_err *err);

/** Fill all columns but the identity (label, run_id, timestamp, status); on failure, as many as
 * possible. */
enum rfl_rc rfl_run__fill_row(const struct rfl_run_config *config, const struct rfl_net *net,
			      const struct rfl_run__results *results, bool timed,
			      const struct rfl_machine *machine, struct rfl_ledger_row *row,
			      struct rfl_err *err);

/** Fill the combined row, except its identity, from rank 0's complete row `own`. */
enum rfl_rc rfl_run__fill_world_row(const struct rfl_run__state *run,
				    const struct rfl_ledger_row *own, struct rfl_ledger_row *row,
				    struct rfl_err *err);

/** Write the table of the window's steps. */
enum rfl_rc rfl_run__write_steps(const char *path, const struct rfl_burst *burst,
				 struct rfl_err *err);

#endif
