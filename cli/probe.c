/*
 * probe.c - what an engine's plugin reports of itself: the parent that starts a child, and the
 * hidden command that is the child. It opens one plugin and prints "key<TAB>value" lines.
 */
#include "cli/inventory.h"

#include <string.h>

#include "base/buf.h"
#include "base/proc.h"
#include "runner/engine.h"

#define TIMEOUT_S 120.0

/* ---- the parent ---- */

/* Take the values out of the lines of the child. */
static void read_lines(struct rfl_arena *arena, const char *text, struct rfl_probe *ret)
{
	const struct {
		const char *key, **value;
	} fields[] = {
		{ "probe\tlibrary\t", &ret->library }, { "probe\tblas\t", &ret->blas },
		{ "probe\tdevices\t", &ret->devices }, { "probe\tno-gpu\t", &ret->no_gpu },
		{ "probe\treason\t", &ret->reason },
	};

	for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		for (size_t i = 0; i < RFL_ARRAY_LEN(fields); i++) {
			const size_t skip = strlen(fields[i].key);
			const char *value = NULL;

			if (strncmp(text, fields[i].key, skip) == 0)
				value = rfl_arena_printf(arena, "%.*s", (int)(len - skip),
							 text + skip);
			if (value)
				*fields[i].value = value;
		}
	}
}

/* What became of the child, with the last line that it wrote to standard error: usually the
 * loader's message. */
static const char *what_happened(struct rfl_arena *arena, const struct rfl_proc_result *r)
{
	const char *text = rfl_buf_str(&r->err), *words;
	size_t end = strlen(text), begin;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n'; begin--)
		;
	words = rfl_arena_printf(arena, "%s%.*s", end > begin ? "; its last words: " : "",
				 (int)(end - begin), text + begin);
	if (!words)
		return NULL;
	if (r->timed_out)
		return rfl_arena_printf(arena, "did not answer within %.0f s%s", TIMEOUT_S, words);
	if (!r->exited)
		return rfl_arena_printf(arena, "crashed while it was opened (signal %d)%s",
					r->signal, words);
	return rfl_arena_printf(arena, "could not be opened (exit code %d)%s", r->exit_code, words);
}

enum rfl_rc rfl_probe_engine(struct rfl_cli *cli, const char *id, struct rfl_arena *arena,
			     struct rfl_probe *ret, struct rfl_err *err)
{
	const char *const argv[] = { cli->self, "-q", "probe", id, NULL };
	const struct rfl_proc_spec spec = {
		.argv = argv,
		.capture_stdout = true,
		.capture_stderr = true,
		.timeout_s = TIMEOUT_S,
	};
	struct rfl_proc_result result;
	enum rfl_rc rc = rfl_proc_run(&spec, &result, err);

	if (rc == RFL_OK) {
		*ret = (struct rfl_probe){ .devices = "" };
		read_lines(arena, rfl_buf_str(&result.out), ret);
		ret->ok = result.exited && result.exit_code == 0 && ret->devices[0] != '\0';
		if (!ret->ok && (!ret->reason || !result.exited || result.exit_code != 0))
			ret->reason = what_happened(arena, &result);
		if (!ret->ok && !ret->reason)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	}
	rfl_proc_result_fini(&result);
	return rc;
}

/* ---- the child ---- */

struct probe_args {
	struct rfl_opt_list id;
};

static void print_field(FILE *out, const char *key, const char *value)
{
	fprintf(out, "probe\t%s\t", key);
	for (; *value != '\0'; value++)
		fputc(*value == '\n' ? ' ' : *value, out);
	fputc('\n', out);
}

/* A failure to load names the device and the plugin first; the reader of the row knows both. */
static const char *after_id(const char *message, const char *id)
{
	const char *at = strstr(message, id);

	return at && strncmp(at + strlen(id), ": ", 2) == 0 ? at + strlen(id) + 2 : message;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const char *id = ((const struct probe_args *)args)->id.items[0];
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_ops *opened = NULL;
	struct rfl_err why[RFL_DEVICE_MPS + 1] = { RFL_ERR_INIT }; /* of those that it cannot use */
	struct rfl_buf devices;
	char line[4096], *path;
	FILE *maps;
	enum rfl_rc rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);

	if (rc != RFL_OK)
		return rc;
	rfl_buf_init(&devices, 0);
	for (int d = 0; rfl_device_names[d]; d++) {
		const struct rfl_engine_ops *ops = NULL;

		if (rfl_engine_load(list, id, (enum rfl_device)d, &ops, &why[d]) != RFL_OK)
			continue;
		opened = ops;
		rfl_buf_printf(&devices, "%s%s", devices.len > 0 ? ", " : "", rfl_device_names[d]);
	}
	if (opened)
		print_field(cli->out, "library", opened->library_version());
	else /* that of the device which every machine has */
		print_field(cli->out, "reason", after_id(why[RFL_DEVICE_CPU].msg, id));

	/* The BLAS that came in with the plugin: the reference BLAS works, but slowly. */
	maps = opened ? fopen("/proc/self/maps", "r") : NULL;
	while (maps && fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (!path || (!strstr(path, "libblas.so") && !strstr(path, "openblas") &&
			      !strstr(path, "libmkl_core")))
			continue;
		path[strcspn(path, "\n")] = '\0';
		print_field(cli->out, "blas", path);
		break;
	}
	if (maps)
		(void)fclose(maps); /* it was only read */

	/* a plugin made for GPUs that cannot use one here says why */
	if (opened && why[RFL_DEVICE_CUDA].rc != RFL_OK && strcmp(opened->variant, "cpu") != 0)
		print_field(cli->out, "no-gpu", after_id(why[RFL_DEVICE_CUDA].msg, id));
	print_field(cli->out, "devices", rfl_buf_str(&devices));
	rc = rfl_buf_check(&devices, "devices", err);
	rfl_engine_list_free(list);
	rfl_buf_fini(&devices);
	return rc;
}

const struct rfl_cmd rfl_cmd_probe = {
	.name = "probe",
	.summary = "open one engine and report what it can use (for 'list' and 'doctor')",
	.operands = "ENGINE",
	.args_size = sizeof(struct probe_args),
	.hidden = true,
	.run = run,
};
