/*
 * record.h - logs/env.json and logs/env_info.md: the hardware and software of each environment.
 * When an environment changes, its old record moves to the history. Unknown values are null, with a
 * reason; users can supply them as notes. docs/reference/run.md lists the fields and their sources.
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

/** Strings are borrowed; NULL or "": unknown. */
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
	const struct rfl_env_engine *engines; /**< records of other engines are kept */
	size_t nnotes;
	const char *const *notes; /**< "KEY=VALUE"; "KEY=" removes a note */
	const char *root;         /**< prefix of /proc, /sys, /run, /etc; "" outside tests */
	bool refresh; /**< write even if only volatile values, such as the load, have changed */
};

struct rfl_env_result {
	bool created, changed, written;
	json_t *document; /**< all of env.json; release with rfl_env_result_fini() */
};

/**
 * Record an environment in <log_dir>/env.json and env_info.md. The caller locks the log directory.
 * Logs a warning if the values have changed, or if it keeps a page that was not generated.
 * @param ret  filled on success
 * @return RFL_OK; RFL_EINVAL for an invalid note; RFL_EFORMAT for an invalid env.json; RFL_EIO
 */
enum rfl_rc rfl_env_record(const struct rfl_env_spec *spec, struct rfl_env_result *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_env_result_fini(struct rfl_env_result *r);

/** RFL_EINVAL unless a note is KEY=VALUE, with a key of a-z, 0-9 and _ and a one-line value. */
enum rfl_rc rfl_env_check_note(const char *note, struct rfl_err *err) RFL_WARN_UNUSED;

/** Call fn for every field of one record of the document ("environments"/NAME), with its value or
 * the reason why it is unknown. */
void rfl_env_each_field(const json_t *record,
			void (*fn)(const char *title, const char *value, void *ctx), void *ctx);

/** Append the fields of one environment, or of all if env is NULL, as Markdown or plain text. */
void rfl_env_page(const json_t *document, const char *env, bool markdown, struct rfl_buf *out);

/* Private: the current values of this machine (a new reference), and the first line of a generated
 * page, which may be overwritten. */
enum rfl_rc rfl_env__facts(const struct rfl_env_spec *spec, json_t **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
#define RFL_ENV__PAGE_MARK "<!-- generated from env.json by roofline; add facts with --note -->"

#endif
