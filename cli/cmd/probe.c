/*
 * probe.c - the child process of `roofline list engines` and `roofline doctor`: opens one plugin
 * and prints what it says, one "probe<TAB>key<TAB>value" per line. Not shown in the help.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "runner/engine.h"

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

/* The file of the BLAS that came in with the plugin: the reference BLAS works, but slowly. */
static void print_blas(FILE *out)
{
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');

		if (!path || (!strstr(path, "libblas.so") && !strstr(path, "openblas") &&
			      !strstr(path, "libmkl_core")))
			continue;
		path[strcspn(path, "\n")] = '\0';
		print_field(out, "blas", path);
		break;
	}
	(void)fclose(maps); /* it was only read */
}

/* A failure to load names the device and the plugin first; the row has both. */
static const char *behind_id(const char *message, const char *id)
{
	const char *at = strstr(message, id);

	return at && strncmp(at + strlen(id), ": ", 2) == 0 ? at + strlen(id) + 2 : message;
}

/* A plugin made for GPUs that cannot use one here says why. */
static void print_gpu(FILE *out, const struct rfl_engine_ops *ops, const struct rfl_err *why,
		      const char *id)
{
	if (why->rc != RFL_OK && strcmp(ops->variant, "cpu") != 0)
		print_field(out, "no-gpu", behind_id(why->msg, id));
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct probe_args *a = args;
	const char *id = a->id.items[0];
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_ops *opened = NULL;
	struct rfl_err why[RFL_DEVICE_MPS + 1] = { RFL_ERR_INIT }; /* of those that it cannot use */
	struct rfl_buf devices;
	enum rfl_rc rc;

	rfl_buf_init(&devices, 0);
	rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);
	if (rc != RFL_OK)
		goto done;
	for (int d = 0; rfl_device_names[d]; d++) {
		const struct rfl_engine_ops *ops = NULL;

		if (rfl_engine_load(list, id, (enum rfl_device)d, &ops, &why[d]) != RFL_OK)
			continue;
		opened = ops;
		rfl_buf_printf(&devices, "%s%s", devices.len > 0 ? ", " : "", rfl_device_names[d]);
	}
	if (opened) {
		print_field(cli->out, "library", opened->library_version());
		print_blas(cli->out);
		print_gpu(cli->out, opened, &why[RFL_DEVICE_CUDA], id);
	} else {
		/* that of the device which every machine has */
		print_field(cli->out, "reason", behind_id(why[RFL_DEVICE_CPU].msg, id));
	}
	print_field(cli->out, "devices", rfl_buf_str(&devices));
	rc = rfl_buf_check(&devices, "devices", err);
done:
	rfl_engine_list_free(list);
	rfl_buf_fini(&devices);
	return rc;
}

const struct rfl_cmd rfl_cmd_probe = {
	.name = "probe",
	.summary = "open one engine and say what it can use (made for 'list' and 'doctor')",
	.operands = "ENGINE",
	.args_size = sizeof(struct probe_args),
	.operands_offset = offsetof(struct probe_args, id),
	.hidden = true,
	.run = run,
};
