/*
 * record.h - logs/env.json and logs/env_info.md: on what the runs of an environment ran. One
 * record per environment; one that no longer holds is kept in its history. What cannot be known is
 * null with the reason, and can be noted. Fields and their sources: docs/run.md.
 *
 * No address, serial number, host or user name is recorded.
 */
#ifndef RFL_RUNNER_ENV_RECORD_H
#define RFL_RUNNER_ENV_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

#define RFL_ENV_SCHEMA "1.0"

/** What is known of an engine; texts are borrowed, NULL or "": not known. */
struct rfl_env_engine {
	const char *id; /**< "torch-2.11-cu130" */
	const char *version;
	const char *cuda_runtime, *cuda_driver, *cudnn;
};

struct rfl_env_spec {
	const char *env;
	const char *log_dir;
	const char *data_dir; /**< NULL: none */
	size_t nengines;
	const struct rfl_env_engine *engines; /**< others stay as they are recorded */
	size_t nnotes;
	const char *const *notes; /**< "KEY=VALUE"; "KEY=" takes a note back */
	const char *root;         /**< where /proc, /sys, /run, /etc lie; "" outside tests */
	bool refresh; /**< also what changes from minute to minute: without it a record that still
			   holds is left alone */
};

struct rfl_env_result {
	bool created, changed, written;
	json_t *document; /**< all of env.json; release with rfl_env_result_fini() */
};

/**
 * Record an environment in <log_dir>/env.json and env_info.md. The caller holds the lock of the
 * log folder. A change of what was recorded is reported with what differs; a page that was
 * written by hand is not touched, and reported.
 * @param ret  filled on success
 * @return RFL_OK; RFL_EINVAL for an invalid note; RFL_EFORMAT for an env.json that is not ours;
 *         RFL_EIO; RFL_ENOMEM
 */
enum rfl_rc rfl_env_record(const struct rfl_env_spec *spec, struct rfl_env_result *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_env_result_fini(struct rfl_env_result *r);

/** RFL_EINVAL unless a note is KEY=VALUE with a key of a-z, 0-9, _ and a value of one line. */
enum rfl_rc rfl_env_check_note(const char *note, struct rfl_err *err) RFL_WARN_UNUSED;

/** Two columns, field and value, of one environment or (NULL) of all: as Markdown, or as lines. */
enum rfl_rc rfl_env_page(const json_t *document, const char *env, bool markdown,
			 struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/* Between the files of this folder: the record of this machine, now, a new reference; and the first
 * line of a page that may be written again. */
enum rfl_rc rfl_env__facts(const struct rfl_env_spec *spec, json_t **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
#define RFL_ENV__PAGE_MARK "<!-- made from env.json by roofline; what it cannot know: --note -->"

#endif
