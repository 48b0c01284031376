/*
 * env.c - roofline env: the record of an environment, from this machine and from the notes of its
 * user.
 */
#include "cli/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/probe.h"
#include "cli/put.h"
#include "ledger/label.h"
#include "machine/gpu.h"
#include "runner/engine.h"
#include "runner/env/record.h"

#define ENGINES_MAX 32

struct env_args {
	const char *env, *log_dir, *data;
	struct rfl_opt_list notes;
	bool engines;
	int format;
};

enum { FORMAT_TABLE, FORMAT_JSON, FORMAT_MD };
static const char *const formats[] = { "table", "json", "md", NULL };

static const struct rfl_opt opts[] = {
	{ .name = "env",
	  .meta = "NAME",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct env_args, env),
	  .help = "name of the environment, as runs and peaks.json have it; without it cuda where "
		  "the NVIDIA driver shows a GPU, else cpu" },
	{ .name = "log-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct env_args, log_dir),
	  .def = "logs",
	  .help = "folder of env.json and env_info.md" },
	{ .name = "data",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = offsetof(struct env_args, data),
	  .help = "folder of images, to record the storage that it is on" },
	{ .name = "note",
	  .meta = "KEY=VALUE",
	  .kind = RFL_OPT_LIST,
	  .offset = offsetof(struct env_args, notes),
	  .whole = true,
	  .help = "facts that no file here has: zone, region, instance_type, container, storage, "
		  "network, or any other key; KEY= removes it" },
	{ .name = "engines",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct env_args, engines),
	  .def = "on",
	  .negatable = true,
	  .help = "open every engine in a child, to record its version" },
	{ .letter = 'f',
	  .name = "format",
	  .meta = "FMT",
	  .kind = RFL_OPT_CHOICE,
	  .offset = offsetof(struct env_args, format),
	  .choices = formats,
	  .def = "table",
	  .help = "how to print it" },
	{ .name = NULL },
};

static enum rfl_rc check_args(const struct env_args *a, struct rfl_err *err)
{
	enum rfl_rc rc =
		a->env ? rfl_text_check_env_name("--env", a->env, RFL_EUSAGE, err) : RFL_OK;

	for (size_t i = 0; i < a->notes.n && rc == RFL_OK; i++)
		rc = rfl_env_check_note(a->notes.items[i], err);
	return rc ? RFL_EUSAGE : RFL_OK;
}

/* A plugin that cannot be opened is recorded without a version. */
static enum rfl_rc ask_engines(struct rfl_cli *cli, struct rfl_arena *arena,
			       struct rfl_env_engine engines[ENGINES_MAX], size_t *n,
			       struct rfl_err *err)
{
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_row *row;
	enum rfl_rc rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);

	for (size_t i = 0; rc == RFL_OK && *n < ENGINES_MAX && (row = rfl_engine_list_at(list, i));
	     i++) {
		struct rfl_probe probe = { .ok = false };
		struct rfl_env_engine *e = &engines[*n];

		if (!row->path)
			continue;
		rc = rfl_probe_engine(cli, row->id, arena, &probe, err);
		*e = (struct rfl_env_engine){ .id = rfl_arena_strdup(arena, row->id),
					      .version = probe.library };
		if (rc == RFL_OK && !e->id)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "engines: out of memory");
		*n += 1;
	}
	rfl_engine_list_free(list);
	return rc;
}

static enum rfl_rc print(struct rfl_cli *cli, const struct rfl_env_result *r, const char *env,
			 int format, struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&out, 0);
	if (format == FORMAT_JSON) {
		rfl_json_write(&out,
			       json_object_get(json_object_get(r->document, "environments"), env));
		rfl_buf_putc(&out, '\n');
	} else {
		rc = rfl_env_page(r->document, env, format == FORMAT_MD, &out, err);
	}
	if (rc == RFL_OK)
		rc = rfl_cli_put(cli, &out, "environment", err);
	rfl_buf_fini(&out);
	return rc;
}

/* Under the lock that runs hold while they write. */
static enum rfl_rc record(const struct rfl_env_spec *spec, struct rfl_env_result *ret,
			  struct rfl_err *err)
{
	char *path = rfl_path_join(spec->log_dir, ".lock");
	enum rfl_rc rc, unlocked;
	int lock = -1;

	if (!path)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", spec->log_dir);
	rc = rfl_file_mkdirs(spec->log_dir, err);
	if (rc == RFL_OK)
		rc = rfl_file_lock(path, &lock, err);
	if (rc == RFL_OK)
		rc = rfl_env_record(spec, ret, err);
	unlocked = rfl_file_unlock(lock, path, err);
	free(path);
	return rc ? rc : unlocked;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct env_args *a = args;
	struct rfl_env_engine engines[ENGINES_MAX];
	struct rfl_env_result result = { .document = NULL };
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_gpus *gpus = NULL;
	struct rfl_env_spec spec = {
		.log_dir = a->log_dir,
		.data_dir = a->data,
		.nnotes = a->notes.n,
		.notes = a->notes.items,
		.engines = engines,
		.root = "",
		.refresh = true,
	};
	enum rfl_rc rc = check_args(a, err);

	if (rc == RFL_OK && !arena)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "environment: out of memory");
	if (rc == RFL_OK && a->engines)
		rc = ask_engines(cli, arena, engines, &spec.nengines, err);
	if (rc == RFL_OK) {
		spec.env = a->env; /* without it, the name that a run would give it */
		if (!spec.env)
			spec.env = rfl_gpus_new(&gpus, NULL) == RFL_OK ? "cuda" : "cpu";
		rfl_gpus_free(gpus);
		rc = record(&spec, &result, err);
	}
	if (rc == RFL_OK)
		rc = print(cli, &result, spec.env, a->format, err);
	rfl_env_result_fini(&result);
	rfl_arena_free(arena);
	return rc;
}

const struct rfl_cmd rfl_cmd_env = {
	.name = "env",
	.summary = "record the environment: machine, software, cloud, storage, notes",
	.description = "Writes env.json and env_info.md into the log folder and prints the record. "
		       "Runs do the same when the record is absent or out of date. What cannot be "
		       "known here is null with the reason; add it with --note. No network is "
		       "used; no address, serial number, host or user name is recorded.",
	.example = "roofline env --env gcp_l4 --note zone=us-central1-a --note storage='pd-ssd 200 "
		   "GB'",
	.opts = opts,
	.args_size = sizeof(struct env_args),
	.operands_offset = -1,
	.run = run,
};
