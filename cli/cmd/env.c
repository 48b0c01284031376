/* env.c - roofline env: record this machine and the user's notes as an environment. */
#include "cli/cmd.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/inventory.h"
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

#define OPT(kind, member, ...) RFL_OPT(struct env_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, env, .name = "env", .meta = "NAME",
	    .help = "name of the environment in runs and peaks.json; default: cuda if the NVIDIA "
		    "driver finds a GPU, else cpu"),
	OPT(TEXT, log_dir, .name = "log-dir", .meta = "DIR", .def = "logs",
	    .help = "folder for env.json and env_info.md"),
	OPT(TEXT, data, .name = "data", .meta = "DIR",
	    .help = "folder of training data; its storage device is recorded"),
	OPT(LIST, notes, .name = "note", .meta = "KEY=VALUE", .whole = true,
	    .help = "notes on facts that cannot be detected: zone, region, instance_type, "
		    "container, storage, network, or any other key; KEY= removes a note"),
	OPT(FLAG, engines, .name = "engines", .def = "on", .negatable = true,
	    .help = "open every engine in a child process to record its version"),
	OPT(CHOICE, format, .letter = 'f', .name = "format", .meta = "FMT", .choices = formats,
	    .def = "table", .help = "output format"),
	{ .name = NULL },
};

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
			rc = rfl_no_memory(err, "engines");
		*n += 1;
	}
	rfl_engine_list_free(list);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct env_args *a = args;
	struct rfl_env_engine engines[ENGINES_MAX];
	struct rfl_env_result result = { .document = NULL };
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_gpus *gpus = NULL;
	struct rfl_buf out;
	struct rfl_env_spec spec = {
		.env = a->env,
		.log_dir = a->log_dir,
		.data_dir = a->data,
		.nnotes = a->notes.n,
		.notes = a->notes.items,
		.engines = engines,
		.root = "",
		.refresh = true,
	};
	char *path = NULL;
	int lock = -1;
	enum rfl_rc rc = RFL_OK, unlocked;

	rfl_buf_init(&out, 0);
	if (!arena) {
		rc = rfl_no_memory(err, "environment");
		goto done;
	}
	if (a->env && (rc = rfl_text_check_env_name("--env", a->env, RFL_EUSAGE, err)))
		goto done;
	for (size_t i = 0; i < a->notes.n && rc == RFL_OK; i++)
		if (rfl_env_check_note(a->notes.items[i], err) != RFL_OK)
			rc = RFL_EUSAGE;
	if (rc || (a->engines && (rc = ask_engines(cli, arena, engines, &spec.nengines, err))))
		goto done;
	if (!spec.env) /* the same default as in a run */
		spec.env = rfl_gpus_new(&gpus, NULL) == RFL_OK ? "cuda" : "cpu";

	/* Runs hold the same lock while they write. */
	path = rfl_path_join(spec.log_dir, ".lock");
	if (!(rc = rfl_file_mkdirs(spec.log_dir, err)) && !(rc = rfl_file_lock(path, &lock, err)))
		rc = rfl_env_record(&spec, &result, err);
	unlocked = rfl_file_unlock(lock, path, err);
	rc = rc ? rc : unlocked;
	if (rc)
		goto done;
	if (a->format == FORMAT_JSON) {
		rfl_json_write(&out,
			       json_object_get(json_object_get(result.document, "environments"),
					       spec.env));
		rfl_buf_putc(&out, '\n');
	} else {
		rfl_env_page(result.document, spec.env, a->format == FORMAT_MD, &out);
	}
	if (rc == RFL_OK)
		rc = rfl_cli_put(cli, &out, "environment", err);
done:
	free(path);
	rfl_buf_fini(&out);
	rfl_gpus_free(gpus);
	rfl_env_result_fini(&result);
	rfl_arena_free(arena);
	return rc;
}

const struct rfl_cmd rfl_cmd_env = {
	.name = "env",
	.summary = "record the environment: machine, software, cloud, storage and notes",
	.description =
		"Writes env.json and env_info.md into the log folder and prints the record. Runs "
		"also write these files if the record is missing or out of date. Facts that cannot "
		"be detected are null, with the reason; add them with --note. The command does not "
		"use the network, and records no address, serial number, host name or user name.",
	.example = "roofline env --env gcp_l4 --note zone=us-central1-a --note storage='pd-ssd 200 "
		   "GB'",
	.opts = opts,
	.args_size = sizeof(struct env_args),
	.run = run,
};
