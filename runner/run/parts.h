/*
 * parts.h - inside runner/: what the files of a run share. The child reports events, one JSON
 * object each: {"event":"engine"|"device"|"met"|"ready"|"progress"|"steps"|"timed"|"gpu"|
 * "until"|"world_steps"|"world"|"counters"|"so_far"|"counted"|"failed", ...}. From "timed" on the
 * run is measured; "counters" brings a piece of a table of counters. "so_far" is the end of one
 * that another will replace, "counted" of the last.
 */
#ifndef RFL_RUNNER_RUN_PARTS_H
#define RFL_RUNNER_RUN_PARTS_H

#include <jansson.h>

#include "base/buf.h"
#include "base/proc.h"
#include "complexity/net.h"
#include "machine/sampler.h"
#include "runner/run.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* ---- engine and device (run/engine.c) ---- */

struct rfl_run__choice {
	const struct rfl_engine_ops *ops;
	enum rfl_device device;
	char reason[640]; /* why auto took it; "" when it was asked for */
};

enum rfl_rc rfl_run__choose(const struct rfl_run_config *config, const struct rfl_engine_list *list,
			    struct rfl_run__choice *ret, struct rfl_err *err);

/** Take out of a configuration what the device has no use for, with a warning. RFL_EUNSUPPORTED for
 * what cannot be left out. */
enum rfl_rc rfl_run__suit(struct rfl_run_config *config, const struct rfl_run__choice *choice,
			  struct rfl_err *err);

enum rfl_rc rfl_run__open_engine(const struct rfl_run_config *config,
				 const struct rfl_run__choice *choice, const struct rfl_net *net,
				 struct rfl_engine **ret, struct rfl_err *err);

/* ---- several processes (run/world.c) ---- */

/** What a process has measured beside its steps, and what all have together. NaN: not known. */
struct rfl_run__share {
	double wall_s, ttfb_s, loss_first, loss_last, launch_gap;
	double allocated_peak_bytes, reserved_peak_bytes, host_peak_bytes;
	double skipped; /* files left out */
	double sm_clock_mean_hz, sm_clock_min_hz, memory_clock_mean_hz, power_mean_w, energy_j,
		temperature_max_c, memory_used_peak_bytes;
	double throttle_bits; /* the lower 32 */
};

void rfl_run__share_from_json(const json_t *json, struct rfl_run__share *ret);

/* ---- the child's work (run/measure.c) ---- */

/** Takes the reference. */
typedef void (*rfl_run__emit_fn)(json_t *take_event, void *ctx);

enum rfl_rc rfl_run__measure(const struct rfl_run_config *config, rfl_run_source_fn source_for,
			     rfl_run__emit_fn emit, void *ctx, struct rfl_err *err);

/** The event that says so (run/tell.c). */
json_t *rfl_run__failed_event(const struct rfl_err *end);

/* ---- what the parent has heard (run/report.c) ---- */

struct rfl_run__heard {
	bool ready, timed, failed;
	char engine[64], engine_id[128], engine_version[128];
	int64_t plugin_abi;
	int device; /* RFL_RUN_DEVICE_AUTO until it is known */
	char backend_reason[640];
	struct rfl_engine_device device_info;
	struct rfl_buf describe; /* in the engine's words */
	/* What the run had of what was asked for; -1: not known. */
	int pin_memory, cudnn_benchmark, cuda_graph;
	char optimizer_kernels[16]; /* "" until it is known */
	int64_t oom_kills;          /* of the machine, before the run */
	double setup_s;
	struct rfl_burst burst; /* steps as they came; complete when timed */
	int64_t skipped;
	double queue_mean, queue_min, decode_rate;
	struct rfl_loss_scaling scaling;
	struct rfl_engine_memory memory;
	bool watched; /* gpu and throttle are known */
	struct rfl_gpu_samples gpu;
	char throttle[256];
	char not_watched[512]; /* why a GPU was not; "" */
	double host_peak_bytes;
	enum rfl_rc rc; /* of failed */
	char text[1024];
	struct rfl_buf counters; /* a table, in pieces as they came */
	size_t counters_len;     /* of all that was sent; known when counted */
	struct rfl_buf so_far;   /* the one before it, should the child not end this one */
	size_t so_far_len;
	double within_s,
		late_at_s; /* what the child does now, and when that is too late; 0: never */
	bool late;
	struct {
		int64_t run_number; /* that the processes agreed on; -1: they have not met */
		bool known;         /* the rest is: rank 0 has it of all */
		struct rfl_run__share share;
		struct rfl_burst burst; /* times of the slowest, losses of all */
	} world;
	bool counted; /* the child is through with its counted steps */
	enum rfl_rc counted_rc;
	char counted_text[1024];
};

enum rfl_rc rfl_run__heard_init(struct rfl_run__heard *h, int64_t iters, struct rfl_err *err);
void rfl_run__heard_fini(struct rfl_run__heard *h);

/**
 * Take in one event. What is not understood is logged and left out.
 * @param phase  set to the phase of a progress event, else NULL; borrowed from the event
 */
void rfl_run__hear(struct rfl_run__heard *h, const json_t *event, const char **phase, int64_t *done,
		   int64_t *total);

/* ---- row and files (run/row.c, run/files.c) ---- */

/** FLOPs of a step of so many samples. RFL_EOVERFLOW when they are more than 63 bits hold. */
enum rfl_rc rfl_run__flops(const struct rfl_run_config *config, int64_t batch,
			   const struct rfl_net *net, int64_t *ret, struct rfl_err *err);

/** Everything but identity (label, run_id, timestamp, status). After a failure it has what could be
 * filled in. */
enum rfl_rc rfl_run__fill_row(const struct rfl_run_config *config, const struct rfl_net *net,
			      const struct rfl_run__heard *heard, const struct rfl_machine *machine,
			      struct rfl_ledger_row *row, struct rfl_err *err);

/**
 * The row of all processes, but for its identity: like rank 0's, with the samples of all.
 * @param own  rank 0's row, complete
 */
enum rfl_rc rfl_run__fill_world_row(const struct rfl_run_config *config, const struct rfl_net *net,
				    const struct rfl_run__heard *heard,
				    const struct rfl_machine *machine,
				    const struct rfl_ledger_row *own, struct rfl_ledger_row *row,
				    struct rfl_err *err);

/** N for a label that is to be made: one that is free here. The processes take the largest. */
enum rfl_rc rfl_run__world_number(const struct rfl_run_config *config, const struct rfl_net *net,
				  const char *ledger, const char *time_dir, int64_t *ret,
				  struct rfl_err *err);

/** The label of all processes, from a row with env, model, precision, micro_batch, world_size. */
enum rfl_rc rfl_run__world_label(const struct rfl_ledger_row *row, int64_t number,
				 char ret[RFL_LABEL_MAX + 1], struct rfl_err *err);

/** <label>_rank<R>. RFL_EINVAL when that is too long. */
enum rfl_rc rfl_run__rank_label(const char *label, int rank, char ret[RFL_LABEL_MAX + 1],
				struct rfl_err *err);

/** Decide and set status, error_code and error_text. @return why it is not ok */
enum rfl_rc rfl_run__judge(const struct rfl_run__heard *heard,
			   const struct rfl_proc_result *process, double memory_limit_bytes,
			   struct rfl_ledger_row *row, struct rfl_err *err);

/* ---- counters (run/counters.c) ---- */

/**
 * What became of the counted steps: counters_status and the columns behind it. Nothing when none
 * were asked for.
 * @param to  receives the captures that the child sent
 */
enum rfl_rc rfl_run__fill_counters(const struct rfl_run_config *config,
				   const struct rfl_run__heard *heard,
				   const struct rfl_proc_result *process, struct rfl_captures *to,
				   struct rfl_ledger_row *row, struct rfl_err *err);

/** Give the captures the row's identity and append them to a table. */
enum rfl_rc rfl_run__write_counters(const char *path, const struct rfl_ledger_row *row,
				    struct rfl_captures *captures, struct rfl_err *err);

enum rfl_rc rfl_run__write_steps(const char *path, const struct rfl_burst *burst,
				 struct rfl_err *err);

/** Creates <dir>/<label>_<stamp>.txt, or <label>_<stamp>_2.txt, ... when that is taken. */
enum rfl_rc rfl_run__write_time_log(const char *dir, const char *command_line,
				    const struct rfl_ledger_row *row,
				    const struct rfl_proc_result *process, char *path,
				    size_t path_size, struct rfl_err *err);

#ifdef __cplusplus
}
#endif
#endif
