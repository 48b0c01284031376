/* env.c - roofline env: record this machine and the user's notes as an environment. */
#include "cli/cmd.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "runner/env/record.h"
#include "runner/run.h"

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
	OPT(TEXT, env, .name = "env", .meta = "NAME", .project = "env", .help = RFL_ENV_HELP),
	OPT(TEXT, log_dir, .name = "log-dir", .meta = "DIR", .project = "log_dir",
	    .help = "directory for env.json and env_info.md"),
	OPT(TEXT, data, .name = "data", .meta = "DIR",
	    .help = "directory of training data; its storage device is recorded"),
	OPT(LIST, notes, .name = "note", .meta = "KEY=VALUE", .whole = true,
	    .help = "notes on values that cannot be detected: zone, region, instance_type, "
		    "container, storage, network, or any other key; KEY= removes a note"),
	OPT(FLAG, engines, .name = "engines", .def = "on", .negatable = true,
	    .help = "open every engine in a child process to record its version"),
	OPT(CHOICE, format, .letter = 'f', .name = "format", .meta = "FMT", .choices = formats,
	    .def = "table", .help = "output format"),
	{ .name = NULL },
};

/* Record while the lock is held that runs hold while they write. */
static enum rfl_rc record(const struct rfl_env_spec *spec, const char *lock_path,
			  struct rfl_env_result *ret, struct rfl_err *err)
{
	int lock = -1;
	enum rfl_rc rc = rfl_file_mkdirs(spec->log_dir, err), unlocked;

	if (!rc && !(rc = rfl_file_lock(lock_path, &lock, err)))
		rc = rfl_env_record(spec, ret, err);
	unlocked = rfl_file_unlock(lock, lock_path, err);
	return rc ? rc : unlocked;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct env_args *a = args;
	static const char *const registry[] = { "engines" };
	struct rfl_inventory inv = { .n = 0 };
	struct rfl_env_engine engines[ENGINES_MAX];
	RFL_AUTO(env_result) result = { .document = NULL };
	RFL_AUTO(buf) out = { .len = 0 };
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
	enum rfl_rc rc;

	if (a->env && (rc = rfl_text_check_env_name("--env", a->env, RFL_EUSAGE, err)))
		return rc;
	for (size_t i = 0; i < a->notes.n; i++)
		if (rfl_env_check_note(a->notes.items[i], err) != RFL_OK)
			return RFL_EUSAGE;
	if (a->engines && (rc = rfl_inventory_new(cli, registry, 1, &inv, err)))
		return rc;
	/* a plugin that cannot be opened is recorded without a version */
	for (size_t i = 0; i < inv.n && spec.nengines < ENGINES_MAX; i++)
		if (inv.items[i].path)
			engines[spec.nengines++] =
				(struct rfl_env_engine){ .id = inv.items[i].name,
							 .version = inv.items[i].version };
	if ((!spec.env && (rc = rfl_cli_auto_device(cli, "auto", &spec.env, err))) ||
	    (rc = record(&spec, rfl_cli_path(cli, spec.log_dir, ".lock"), &result, err)))
		return rc;
	if (a->format == FORMAT_JSON) {
		rfl_json_write(&out,
			       json_object_get(json_object_get(result.document, "environments"),
					       spec.env));
		rfl_buf_putc(&out, '\n');
	} else {
		rfl_env_page(result.document, spec.env, a->format == FORMAT_MD, &out);
	}
	return rfl_cli_put(cli, &out, "environment", err);
}

const struct rfl_cmd rfl_cmd_env = {
	.name = "env",
	.summary = "record the environment: machine, software, cloud, storage and notes",
	.description = "Writes env.json and env_info.md into the log directory and prints the "
		       "record. Runs also write these files if the record is missing or out of "
		       "date. Values that cannot be detected are null, with the reason; add them "
		       "with --note. The command does not use the network, and records no address, "
		       "serial number, host name or user name.",
	.example = "roofline env\n"
		   "roofline env --env gcp_l4 --note zone=us-central1-a --note storage='pd-ssd 200 "
		   "GB'",
	.opts = opts,
	.args_size = sizeof(struct env_args),
	.run = run,
};
