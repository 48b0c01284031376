/* train.c - roofline train: train a network to accuracy, on one device after the other. */
#include "cli/cmd/run_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "cli/stop.h"
#include "complexity/zoo.h"
#include "report/training.h"
#include "rfl_config.h"
#include "runner/env/record.h"

extern const struct rfl_cmd rfl_cmd_train;

static const char *const dataset_choices[] = { "auto",    "imagefolder", "imagefolder-cached",
					       "cifar10", "mnist",       NULL };

struct train_args {
	struct rfl_run_config run; /* the members that are options; complete() sets the others */
	const char *checkpoints, *output_dir;
	int dataset, format;
	struct rfl_opt_list devices;
};

#define OPT(kind, member, ...) RFL_OPT(struct train_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, run.data_dir, .group = "Data", .name = "data", .meta = "DIR", .required = true,
	    .help = "folder with a training set and a test set: CIFAR-10, MNIST, or "
		    "DIR/train/<class>/*.jpg and DIR/val/<class>/*.jpg"),
	OPT(CHOICE, dataset, .name = "dataset", .meta = "KIND", .choices = dataset_choices,
	    .def = "auto", .help = "kind of data; auto detects it from the contents of --data"),
	OPT(FLAG, run.no_augment, .name = "no-augment",
	    .help = "train on the images as they are, instead of flipping and rotating or cropping "
		    "them at random"),
	OPT(REAL, run.rotation, .name = "rotation", .meta = "DEGREES", .def = "10", .rmin = 0,
	    .rmax = 180,
	    .help = "largest angle by which images of cifar10 and mnist are rotated at random; 0: "
		    "crop cifar10 at random instead"),
	OPT(INT, run.workers, .name = "workers", .meta = "N", .def = "-1", .min = -1, .max = 1024,
	    .help = "number of threads that load images; 0: load between steps; -1: choose by the "
		    "number of cores"),
	OPT(FLAG, run.pin_memory, .name = "pin-memory",
	    .help = "keep batches in page-locked memory, which a GPU can read while it computes"),

	OPT(TEXT, run.arch, .group = "Network", .name = "arch", .meta = "MODEL",
	    .help = "network to train: a model of 'roofline list models', or a file FILE.json; "
		    "default: cifar_cnn for cifar10, mnist_cnn for mnist"),
	OPT(INT, run.image_size, .name = "image-size", .meta = "N", .def = "0", .min = 0,
	    .max = 65500,
	    .help = "height and width of the images in pixels; 0: the model's default"),

	OPT(INT, run.epochs, .group = "Training", .name = "epochs", .meta = "N", .def = "10",
	    .min = 1, .max = 1000000, .help = "number of passes over the training set"),
	OPT(INT, run.micro_batch, .name = "batch-size", .meta = "N", .def = "64", .min = 1,
	    .max = 1 << 20, .help = "samples per step"),
	OPT(CHOICE, run.optimizer, .name = "optimizer", .meta = "NAME",
	    .choices = rfl_optimizer_rule_names, .def = "adam", .help = "update rule"),
	OPT(REAL, run.lr, .name = "lr", .meta = "X", .def = "0.001", .rmin = 0, .rmax = 1e6,
	    .help = "learning rate of the first epoch"),
	OPT(INT, run.lr_step, .name = "lr-step", .meta = "N", .def = "5", .min = 0, .max = 1000000,
	    .help = "multiply the learning rate by --lr-gamma every N epochs; 0: never"),
	OPT(REAL, run.lr_gamma, .name = "lr-gamma", .meta = "X", .def = "0.1", .rmin = 0,
	    .rmax = 1000, .help = "factor of --lr-step"),
	OPT(REAL, run.momentum, .name = "momentum", .meta = "X", .def = "0.9", .rmin = 0, .rmax = 1,
	    .help = "momentum for sgd"),
	OPT(REAL, run.weight_decay, .name = "weight-decay", .meta = "X", .def = "0.0001", .rmin = 0,
	    .rmax = 1e6, .help = "L2 penalty for sgd and adam, decoupled decay for adamw"),
	OPT(INT, run.seed, .name = "seed", .meta = "N", .def = "0", .min = 0, .max = INT64_MAX,
	    .help = "random seed for dropout, sample order and augmentation, the same on all "
		    "devices"),

	OPT(LIST, devices, .group = "Devices and arithmetic", .name = "devices", .meta = "DEVICE",
	    .choices = rfl_run_device_choices, .def = "auto",
	    .help = "devices to train on, one after the other; auto selects the fastest that "
		    "works"),
	OPT(TEXT, run.engine, .name = "engine", .meta = "NAME", .def = "auto",
	    .help = "engine to use, such as torch or torch@2.11; see 'roofline list engines'"),
	OPT(CHOICE, run.precision, .name = "precision", .meta = "P", .choices = rfl_precision_names,
	    .def = "fp32",
	    .help = "numeric precision; amp autocasts to fp16 on a GPU and to bf16 on a CPU"),
	OPT(FLAG, run.channels_last, .name = "channels-last",
	    .help = "store images and weights in NHWC order"),
	OPT(INT, run.threads, .name = "threads", .meta = "N", .def = "0", .min = 0, .max = 4096,
	    .help = "number of compute threads; 0: one per usable core"),
	OPT(FLAG, run.deterministic, .name = "deterministic",
	    .help = "use only algorithms with identical results in every run"),

	OPT(FLAG, run.resume, .group = "Records", .name = "resume",
	    .help = "continue from the checkpoints; where there is none, start from the beginning"),
	OPT(TEXT, checkpoints, .name = "checkpoint-dir", .meta = "DIR",
	    .help = "folder for checkpoints; default: checkpoints in the log folder"),
	OPT(INT, run.checkpoint_steps, .name = "checkpoint-steps", .meta = "N", .def = "0",
	    .min = 0, .max = 10000000,
	    .help = "replace the checkpoint every N steps, too; 0: only after each epoch"),
	OPT(TEXT, run.env, .name = "env", .meta = "NAME",
	    .help = "name of the environment, as in 'roofline peaks measure'; default: the device"),
	OPT(TEXT, run.log_dir, .name = "log-dir", .meta = "DIR", .def = "logs",
	    .help = "folder for metrics.csv, epochs/, steps/ and time/"),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR",
	    .help = "folder to which training.md and training.json are also written"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

/* ---- configuration ---- */

/* Copy the options of this command into a configuration with the defaults of 'run'. */
static void overwrite(const struct train_args *a, struct rfl_run_config *c)
{
	static const size_t sizes[] = {
		[RFL_OPT_FLAG] = sizeof(bool),   [RFL_OPT_INT] = sizeof(int64_t),
		[RFL_OPT_REAL] = sizeof(double), [RFL_OPT_TEXT] = sizeof(const char *),
		[RFL_OPT_CHOICE] = sizeof(int),
	};

	for (const struct rfl_opt *o = opts; o->name; o++)
		if (o->offset < offsetof(struct train_args, run) + sizeof(a->run))
			memcpy((char *)c + o->offset, (const char *)&a->run + o->offset,
			       sizes[o->kind]);
}

static enum rfl_rc find_data(const struct train_args *a, enum rfl_data_kind *ret,
			     struct rfl_err *err)
{
	size_t i = 0;

	if (a->dataset == 0)
		return rfl_data_detect(a->run.data_dir, ret, err);
	while (strcmp(rfl_data_kind_names[i], dataset_choices[a->dataset]) != 0)
		i++;
	*ret = (enum rfl_data_kind)i;
	return RFL_OK;
}

static enum rfl_rc complete(const struct rfl_cli *cli, const struct train_args *a,
			    struct rfl_run_config *ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *model;
	enum rfl_data_kind kind;
	const char *arch = a->run.arch;

	for (size_t i = 0; i < a->devices.n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(a->devices.items[i], a->devices.items[k]) == 0)
				return rfl_fail(err, RFL_EUSAGE, 0,
						"--devices: '%s' is listed twice; remove one",
						a->devices.items[i]);
	if (arch && !rfl_run_arch_is_file(arch)) {
		if (rfl_zoo_find(arch, &model, err) != RFL_OK)
			return RFL_EUSAGE;
		if (model->context_length > 0)
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--arch: %s is a language model, but 'roofline train' "
					"trains on images; use a network such as mnist_cnn",
					model->name);
	}
	if (find_data(a, &kind, err) != RFL_OK)
		return RFL_EUSAGE;
	if (kind == RFL_DATA_TOKENS)
		return rfl_fail(
			err, RFL_EUSAGE, 0,
			"%s: this is a file of tokens, but 'roofline train' trains on images; "
			"use 'roofline run'",
			a->run.data_dir);
	if (!arch && kind != RFL_DATA_CIFAR10 && kind != RFL_DATA_MNIST)
		return rfl_fail(
			err, RFL_EUSAGE, 0,
			"--arch: imagefolder has no default network; use --arch MODEL, such "
			"as resnet18");
	if (!arch)
		arch = kind == RFL_DATA_MNIST ? "mnist_cnn" : "cifar_cnn";
	const char *const words[] = { "run", "--arch", arch, "--synthetic", NULL };
	enum rfl_rc rc = rfl_run_config_parse(cli, 4, (char *const *)(uintptr_t)words, ret, err);

	if (rc)
		return rc;
	overwrite(a, ret);
	ret->arch = arch;
	ret->data_kind = (int)kind;
	ret->warmup = 0;
	ret->iters = 1; /* until the child has opened the data */
	return RFL_OK;
}

/* ---- results ---- */

/* The training on one device. */
struct trained {
	const char *device; /* as requested, or the choice of "auto": "cuda" */
	struct rfl_run_result result;
};

/* Add a table to a document, and free it. */
static enum rfl_rc add_table(json_t *document, const char *key, struct rfl_table *take_table,
			     struct rfl_err *err)
{
	json_t *value = NULL;
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rfl_table_finish(take_table, RFL_FORMAT_JSON, &text);
	rc = rfl_json_loads(rfl_buf_str(&text), text.len, key, &value, err);
	rfl_buf_fini(&text);
	if (rc == RFL_OK && json_object_set_new(document, key, value) != 0)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", key);
	return rc;
}

static json_t *settings_of(const struct rfl_cli *cli, const struct rfl_run_config *c,
			   const struct rfl_ledger_row *row)
{
	json_t *command = json_array();
	char date[RFL_TIME_ISO_SIZE];

	rfl_clock_iso(date);
	for (int i = 0; i < cli->argc; i++)
		(void)json_array_append_new(command, json_string(cli->argv[i]));
	return json_pack(
		"{s:s, s:s, s:s, s:o, s:s, s:s, s:I, s:s, s:o, s:o, s:I, s:o, s:s, s:I, "
		"s:b, s:o}",
		"schema", "roofline.training/1", "version", RFL_VERSION, "date", date, "command",
		command, "model", row->model ? row->model : c->arch, "dataset",
		rfl_data_kind_names[c->data_kind], "batch_size", (json_int_t)c->micro_batch,
		"optimizer", rfl_optimizer_rule_names[c->optimizer], "lr", rfl_json_real(c->lr),
		"weight_decay", rfl_json_real(c->weight_decay), "lr_step", (json_int_t)c->lr_step,
		"lr_gamma", rfl_json_real(c->lr_gamma), "precision",
		rfl_precision_names[c->precision], "seed", (json_int_t)c->seed, "augment",
		(int)!c->no_augment, "rotation", rfl_json_real(c->rotation));
}

/* The records of the environments in which the devices trained, from the log folder. NULL: none */
static json_t *environments_of(const struct rfl_run_config *c, const struct rfl_training *all,
			       size_t n)
{
	char *path = rfl_path_join(c->log_dir, "env.json");
	json_t *file = NULL, *records = json_object();
	struct rfl_err why = RFL_ERR_INIT;

	if (path && rfl_json_load(path, &file, &why) != RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "%s", why.msg);
	for (size_t i = 0; i < n; i++) {
		const char *env = all[i].row->env;
		json_t *record =
			env ? json_object_get(json_object_get(file, "environments"), env) : NULL;

		if (record)
			rfl_json_put(&records, env, json_incref(record));
	}
	json_decref(file);
	free(path);
	return json_pack("{s:o}", "environments", records);
}

/* Append the report: for people both tables, for programs one document, or the epochs as CSV.
 * @param environments  NULL: left out */
static enum rfl_rc render(const struct rfl_cli *cli, const struct rfl_run_config *c,
			  const struct rfl_training *all, size_t n, json_t *environments,
			  enum rfl_format format, struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *devices;
	size_t epochs = 0;
	json_t *document, *record;
	const char *env;
	enum rfl_rc rc;

	if (format == RFL_FORMAT_JSON) {
		document = settings_of(cli, c, all->row);
		if ((rc = add_table(document, "devices", rfl_training_devices(all, n, true),
				    err)) == RFL_OK)
			rc = add_table(document, "epochs", rfl_training_epochs(all, n), err);
		if (rc == RFL_OK && json_object_update(document, environments) != 0)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
		if (rc == RFL_OK) {
			rfl_json_write(out, document);
			rfl_buf_putc(out, '\n');
			rc = rfl_buf_check(out, "report", err);
		}
		json_decref(document);
		return rc;
	}
	for (size_t i = 0; i < n; i++)
		epochs += all[i].epochs->n;
	if (rfl_format_for_people(format) && epochs == 0)
		return RFL_OK; /* the messages say why */
	rfl_table_finish(rfl_training_epochs(all, n), format, out);
	if (format == RFL_FORMAT_CSV)
		return RFL_OK;
	rfl_buf_putc(out, '\n');
	devices = rfl_training_devices(all, n, false);
	if (c->lr_step > 0)
		rfl_table_note(devices, "The learning rate is multiplied by %g every %lld epoch%s.",
			       c->lr_gamma, (long long)c->lr_step, c->lr_step == 1 ? "" : "s");
	rfl_table_finish(devices, format, out);
	json_object_foreach(json_object_get(environments, "environments"), env, record)
	{
		rfl_buf_putc(out, '\n');
		rfl_env_page(environments, env, true, out);
	}
	return RFL_OK;
}

static enum rfl_rc write_files(const struct rfl_cli *cli, const struct rfl_run_config *c,
			       const struct rfl_training *all, size_t n, json_t *environments,
			       const char *dir, struct rfl_err *err)
{
	static const struct {
		const char *name;
		enum rfl_format format;
	} files[] = { { "training.md", RFL_FORMAT_MD }, { "training.json", RFL_FORMAT_JSON } };
	enum rfl_rc rc = rfl_file_mkdirs(dir, err);

	for (size_t i = 0; i < RFL_ARRAY_LEN(files) && rc == RFL_OK; i++) {
		char *path = rfl_path_join(dir, files[i].name);
		struct rfl_buf text;

		rfl_buf_init(&text, 0);
		rc = path ? render(cli, c, all, n, environments, files[i].format, &text, err)
			  : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
		if (rc == RFL_OK)
			rc = rfl_file_write(path, text.data, text.len, err);
		rfl_buf_fini(&text);
		free(path);
	}
	return rc;
}

/* ---- the command ---- */

/* The fastest device that works, as 'run' selects it: the names of checkpoints contain it. */
static enum rfl_rc choose_device(struct rfl_cli *cli, const char *engine, const char **ret,
				 struct rfl_err *err)
{
	static const enum rfl_device by_speed[] = { RFL_DEVICE_CUDA, RFL_DEVICE_MPS };
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_item item = { .name = engine };
	enum rfl_rc rc = rfl_item_probe(cli, arena, &item, err);

	*ret = rfl_device_names[RFL_DEVICE_CPU]; /* if it does not work, the run says why */
	for (size_t i = RFL_ARRAY_LEN(by_speed); i-- > 0 && rc == RFL_OK;)
		if (item.devices && strstr(item.devices, rfl_device_names[by_speed[i]]))
			*ret = rfl_device_names[by_speed[i]];
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "--devices auto: %s; %s", *ret,
			rfl_item_finding(&item, arena));
	rfl_arena_free(arena);
	return rc;
}

/* <folder>/<model>_<data>_<precision>_bs<batch>_<device>.checkpoint */
static enum rfl_rc name_checkpoint(const struct train_args *a, const struct rfl_run_config *c,
				   const char *device, char out[4096], struct rfl_err *err)
{
	const char *base = rfl_path_base(c->arch);
	const int without = rfl_run_arch_is_file(c->arch) ? (int)strlen(".json") : 0;
	const int len = snprintf(
		out, 4096, "%s%s/%.*s_%s_%s_bs%lld_%s.checkpoint",
		a->checkpoints ? a->checkpoints : c->log_dir, a->checkpoints ? "" : "/checkpoints",
		(int)strlen(base) - without, base, rfl_data_kind_names[c->data_kind],
		rfl_precision_names[c->precision], (long long)c->micro_batch, device);

	return len < 4096 ? RFL_OK
			  : rfl_fail(err, RFL_EUSAGE, 0,
				     "--checkpoint-dir: the name is too long; use a shorter one");
}

static bool is_absent(const struct trained *t)
{
	return rfl_text_same(t->result.row.status, "unsupported") &&
	       t->result.rc == RFL_EUNAVAILABLE;
}

static enum rfl_rc train_on(struct rfl_cli *cli, const struct train_args *a,
			    const struct rfl_run_config *common, const char *command_line,
			    struct trained *t, struct rfl_err *err)
{
	struct rfl_run_config c = *common;
	char name[4096], *checkpoint = NULL, prefix[32];
	enum rfl_rc rc;

	while (strcmp(rfl_run_device_choices[c.device + 1], t->device) != 0)
		c.device++;
	if ((rc = name_checkpoint(a, &c, t->device, name, err)) != RFL_OK ||
	    (rc = rfl_file_target(name, &checkpoint, err)) != RFL_OK)
		return rc;
	c.checkpoint = checkpoint;
	snprintf(prefix, sizeof(prefix), "%s: ", t->device);
	cli->line.prefix = prefix;
	rc = rfl_cli_run(cli, &c, command_line, NULL, &t->result, err);
	cli->line.prefix = NULL;
	free(checkpoint);
	if (rc == RFL_OK && is_absent(t) && a->devices.n > 1)
		rfl_log(RFL_LOG_INFO, "%s: left out: %s", t->device, t->result.row.error_text);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct train_args *a = args;
	struct trained *all = rfl_alloc_array(a->devices.n, sizeof(*all));
	struct rfl_training *trainings = rfl_alloc_array(a->devices.n, sizeof(*trainings));
	struct rfl_err why = RFL_ERR_INIT; /* why the last device has no training */
	size_t n = 0, shown, absent = 0;
	json_t *environments = NULL;
	struct rfl_run_config c;
	struct rfl_buf text;
	enum rfl_rc rc, failed;

	rfl_buf_init(&text, 0);
	if (!all || !trainings) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	rc = complete(cli, a, &c, err);
	if (rc)
		goto done;
	c.device = RFL_RUN_DEVICE_AUTO;
	for (int i = 0; i < cli->argc; i++)
		rfl_buf_printf(&text, "%s%s", i ? " " : "", cli->argv[i]);
	for (size_t i = 0; i < a->devices.n; i++) {
		all[i].device = a->devices.items[i];
		if (strcmp(all[i].device, "auto") == 0 &&
		    (rc = choose_device(cli, a->run.engine, &all[i].device, err)))
			goto done;
	}
	for (size_t i = 0; i < a->devices.n; i++)
		for (size_t k = 0; k < a->devices.n; k++)
			if (i != k && strcmp(a->devices.items[i], "auto") == 0 &&
			    strcmp(all[i].device, all[k].device) == 0) {
				rc = rfl_fail(err, RFL_EUSAGE, 0,
					      "--devices: auto selects %s, which is listed, too; "
					      "remove one",
					      all[i].device);
				goto done;
			}
	while (n < a->devices.n && rc == RFL_OK && !(n > 0 && all[n - 1].result.rc == RFL_EINTR)) {
		rc = train_on(cli, a, &c, rfl_buf_str(&text), &all[n], &why);
		absent += is_absent(&all[n]);
		n++;
	}
	shown = rc && !all[n - 1].result.recorded ? n - 1 : n; /* the others are reported */
	failed = rc;
	if (failed)
		(void)rfl_err_pass(err, &why);
	if (shown == 0)
		goto done;
	for (size_t i = 0; i < shown; i++)
		trainings[i] = (struct rfl_training){
			.device = all[i].device,
			.row = &all[i].result.row,
			.epochs = &all[i].result.epochs,
		};
	rfl_buf_reset(&text);
	environments = environments_of(&c, trainings, shown);
	if ((a->output_dir &&
	     (rc = write_files(cli, &c, trainings, shown, environments, a->output_dir, err))) ||
	    (rc = render(cli, &c, trainings, shown,
			 a->format == RFL_FORMAT_JSON ? environments : NULL,
			 (enum rfl_format)a->format, &text, err)) ||
	    (rc = rfl_cli_put_as(cli, (enum rfl_format)a->format, &text, "report", err)))
		goto done;
	rc = failed;
	if (rc == RFL_OK && absent == n && n > 1) /* the reasons were reported */
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "none of the devices is available");
	for (size_t i = 0; i < shown; i++) {
		const struct rfl_ledger_row *row = &all[i].result.row;

		if (all[i].result.rc == RFL_OK || (is_absent(&all[i]) && n > 1))
			continue;
		if (rc) /* the first failure is that of the command */
			rfl_log(RFL_LOG_ERROR, "%s: %s: %s", all[i].device, row->status,
				row->error_text);
		else
			rc = rfl_fail(err, absent == n ? RFL_EUNAVAILABLE : RFL_EFAILED, 0,
				      "%s: %s: %s", all[i].device, row->status, row->error_text);
	}
done:
	for (size_t i = 0; i < n; i++)
		rfl_run_result_fini(&all[i].result);
	free(all);
	free(trainings);
	json_decref(environments);
	rfl_buf_fini(&text);
	return rc;
}

void rfl_train_write_command(const struct rfl_run_config *c, const struct rfl_ledger_row *row,
			     struct rfl_buf *out)
{
	const char *device = row->backend ? row->backend : rfl_run_device_choices[c->device + 1];
	struct train_args a = { .run = *c, .devices = { .n = 1, .items = &device } };

	rfl_run_forget_records(&a.run, row);
	while (strcmp(dataset_choices[a.dataset], rfl_data_kind_names[c->data_kind]) != 0)
		a.dataset++;
	rfl_opt_write(&rfl_cmd_train, &a, out);
}

static enum rfl_rc train_child(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_stop stop;
	enum rfl_rc rc;

	(void)cli, (void)args, (void)err;
	rfl_stop_catch(&stop);
	rc = rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, NULL, rfl_stop_asked, &why);
	rfl_stop_restore(&stop);
	if (rc)
		rfl_log(RFL_LOG_DEBUG, "%s", why.msg);
	return rc ? RFL_EFAILED : RFL_OK; /* the parent process reports it */
}

const struct rfl_cmd rfl_cmd_train = {
	.name = "train",
	.summary = "train a network to accuracy on one or more devices",
	.description =
		"Trains a network on a data set for a number of epochs and classifies the test set "
		"after each. Prints the losses, accuracies and times of all epochs and compares "
		"the devices. Each device adds a row to metrics.csv in the log folder, and a table "
		"epochs/<run_id>.csv. After each epoch a checkpoint is replaced: a training that "
		"was stopped or killed continues with --resume, and on a CPU ends with the same "
		"numbers, to the bit. A device that is not available is reported and left out.",
	.example = "roofline train --data cifar-10-batches-bin --epochs 10 --devices cpu,cuda\n"
		   "roofline train --data mnist --epochs 3 --resume\n"
		   "roofline train --data images --arch resnet18 --image-size 64 --devices cuda",
	.opts = opts,
	.args_size = sizeof(struct train_args),
	.holds_signals = true,
	.run = run,
};

const struct rfl_cmd rfl_cmd_train_child = {
	.name = "train-child",
	.summary = "train on one device (started by 'roofline train')",
	.hidden = true,
	.holds_signals = true,
	.run = train_child,
};
