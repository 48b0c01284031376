/* train.c - roofline train: train a network to accuracy, on one device after the other. */
#include "cli/cmd/run_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/inventory.h"
#include "cli/stop.h"
#include "complexity/net/file.h"
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
	OPT(TEXT, run.data_dir, .group = "Data", .name = "data", .often = true, .meta = "DIR",
	    .required = true,
	    .help = "directory with a training set and a test set: CIFAR-10, MNIST, or "
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

	OPT(TEXT, run.arch, .group = "Network", .name = "arch", .often = true, .meta = "MODEL",
	    .help = "network to train: a model of 'roofline list models', or a file FILE.json or FILE.onnx; "
		    "default: cifar_cnn for cifar10, mnist_cnn for mnist"),
	OPT(INT, run.image_size, .name = "image-size", .meta = "N", .def = "0", .min = 0,
	    .max = 65500,
	    .help = "height and width of the images in pixels; 0: the model's default"),

	OPT(INT, run.epochs, .group = "Training", .name = "epochs", .often = true, .meta = "N",
	    .def = "10", .min = 1, .max = 1000000,
	    .help = "number of passes over the training set"),
	OPT(INT, run.micro_batch, .name = "batch-size", .often = true, .meta = "N", .def = "64",
	    .min = 1, .max = 1 << 20, .help = "samples per step"),
	OPT(CHOICE, run.optimizer, .name = "optimizer", .often = true, .meta = "NAME",
	    .choices = rfl_optimizer_rule_names, .def = "adam", .help = "update rule"),
	OPT(REAL, run.lr, .name = "lr", .often = true, .meta = "X", .def = "0.001", .rmin = 0,
	    .rmax = 1e6, .help = "learning rate of the first epoch"),
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

	OPT(LIST, devices, .group = "Devices and arithmetic", .name = "devices", .often = true,
	    .meta = "DEVICE", .choices = rfl_run_device_choices, .def = "auto",
	    .help = "devices to train on, one after the other; auto selects the fastest that "
		    "works"),
	OPT(TEXT, run.engine, .name = "engine", .meta = "NAME", .def = "auto",
	    .help = "engine to use, such as torch or torch@2.11; see 'roofline list engines'"),
	OPT(CHOICE, run.precision, .name = "precision", .often = true, .meta = "P",
	    .choices = rfl_precision_names, .def = "fp32",
	    .help = "numeric precision; bf16 and fp16 are autocast: weights stay in fp32; amp is "
		    "fp16 on a GPU and bf16 on a CPU"),
	OPT(FLAG, run.channels_last, .name = "channels-last",
	    .help = "store images and weights in NHWC order"),
	OPT(INT, run.threads, .name = "threads", .meta = "N", .def = "0", .min = 0, .max = 4096,
	    .help = "number of compute threads; 0: one per usable core"),
	OPT(FLAG, run.deterministic, .name = "deterministic",
	    .help = "use only algorithms with identical results in every run"),

	OPT(FLAG, run.resume, .group = "Records", .name = "resume", .often = true,
	    .help = "continue from the checkpoints; where there is none, start from the beginning"),
	OPT(TEXT, checkpoints, .name = "checkpoint-dir", .meta = "DIR",
	    .help = "directory for checkpoints; default: checkpoints in the log directory"),
	OPT(INT, run.checkpoint_steps, .name = "checkpoint-steps", .meta = "N", .def = "0",
	    .min = 0, .max = 10000000,
	    .help = "replace the checkpoint every N steps, too; 0: only after each epoch"),
	OPT(TEXT, run.env, .name = "env", .often = true, .meta = "NAME", .project = "env",
	    .help = RFL_ENV_HELP),
	OPT(TEXT, run.log_dir, .name = "log-dir", .often = true, .meta = "DIR",
	    .project = "log_dir", .help = "directory for metrics.csv, epochs/, steps/ and time/"),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR",
	    .help = "directory to which training.md and training.json are also written"),
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
	if (a->dataset == 0)
		return rfl_data_detect(a->run.data_dir, ret, err);
	*ret = 0;
	while (strcmp(rfl_data_kind_names[*ret], dataset_choices[a->dataset]) != 0)
		++*ret;
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
				return rfl_usage(err, "--devices: '%s' is listed twice; remove one",
						 a->devices.items[i]);
	if (arch && !rfl_net_is_file(arch)) {
		if (rfl_zoo_find(arch, &model, err) != RFL_OK)
			return RFL_EUSAGE;
		if (model->context_length > 0)
			return rfl_usage(err,
					 "--arch: %s is a language model, but 'roofline train' "
					 "trains on images; use a network such as mnist_cnn",
					 model->name);
	}
	if (find_data(a, &kind, err) != RFL_OK)
		return RFL_EUSAGE;
	if (kind == RFL_DATA_TOKENS)
		return rfl_usage(err,
				 "%s: this is a file of tokens, but 'roofline train' trains on "
				 "images; use 'roofline run'",
				 a->run.data_dir);
	if (!arch && kind != RFL_DATA_CIFAR10 && kind != RFL_DATA_MNIST)
		return rfl_usage(err, "--arch: imagefolder has no default network; use --arch "
				      "MODEL, such as resnet18");
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
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	rfl_table_finish(take_table, RFL_FORMAT_JSON, &text);
	rc = rfl_json_loads(rfl_buf_str(&text), text.len, key, &value, err);
	if (rc == RFL_OK)
		rfl_json_put(&document, key, value);
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
		"{s:s, s:s, s:s, s:o, s:s, s:s, s:I, s:s, s:o, s:o, s:I, s:o, s:s, s:I, s:b, s:o}",
		"schema", "roofline.training/1", "version", RFL_VERSION, "date", date, "command",
		command, "model", row->model ? row->model : c->arch, "dataset",
		rfl_data_kind_names[c->data_kind], "batch_size", (json_int_t)c->micro_batch,
		"optimizer", rfl_optimizer_rule_names[c->optimizer], "lr", rfl_json_real(c->lr),
		"weight_decay", rfl_json_real(c->weight_decay), "lr_step", (json_int_t)c->lr_step,
		"lr_gamma", rfl_json_real(c->lr_gamma), "precision",
		rfl_precision_names[c->precision], "seed", (json_int_t)c->seed, "augment",
		(int)!c->no_augment, "rotation", rfl_json_real(c->rotation));
}

/* The records of the environments in which the devices trained, from the log directory. */
static json_t *environments_of(struct rfl_cli *cli, const struct rfl_run_config *c,
			       const struct rfl_training *all, size_t n)
{
	json_auto_t *file = NULL;
	json_t *records = json_object();
	struct rfl_err why = RFL_ERR_INIT;

	if (rfl_json_load(rfl_cli_path(cli, c->log_dir, "env.json"), &file, &why) != RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "%s", why.msg);
	for (size_t i = 0; i < n; i++) {
		const char *env = all[i].row->env;
		json_t *record =
			env ? json_object_get(json_object_get(file, "environments"), env) : NULL;

		if (record)
			rfl_json_put(&records, env, json_incref(record));
	}
	return json_pack("{s:o}", "environments", records);
}

/* Append the report: for people both tables, for programs one document, or the epochs as CSV.
 * @param environments  NULL: omitted */
static enum rfl_rc render(const struct rfl_cli *cli, const struct rfl_run_config *c,
			  const struct rfl_training *all, size_t n, json_t *environments,
			  enum rfl_format format, struct rfl_buf *out, struct rfl_err *err)
{
	json_auto_t *document = NULL;
	struct rfl_table *devices;
	size_t epochs = 0;
	json_t *record;
	const char *env;
	enum rfl_rc rc;

	if (format == RFL_FORMAT_JSON) {
		document = settings_of(cli, c, all->row);
		if ((rc = add_table(document, "devices", rfl_training_devices(all, n, true),
				    err)) ||
		    (rc = add_table(document, "epochs", rfl_training_epochs(all, n), err)))
			return rc;
		(void)json_object_update(document, environments);
		rfl_json_write(out, document);
		rfl_buf_putc(out, '\n');
		return RFL_OK;
	}
	for (size_t i = 0; i < n; i++)
		epochs += all[i].epochs->n;
	if (rfl_format_for_people(format) && epochs == 0)
		return RFL_OK; /* the messages have the reasons */
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

static const struct {
	const char *name;
	enum rfl_format format;
} files[] = { { "training.md", RFL_FORMAT_MD }, { "training.json", RFL_FORMAT_JSON } };

/* Check before the training run that the files can be written. */
static enum rfl_rc check_files(struct rfl_cli *cli, const char *dir, struct rfl_err *err)
{
	for (size_t i = 0; dir && i < RFL_ARRAY_LEN(files); i++) {
		const char *path = rfl_cli_path(cli, dir, files[i].name);
		enum rfl_rc rc = rfl_file_check_use(path, RFL_FILE_REPLACED, err);

		if (rc) {
			rfl_err_prefix(err, "--output-dir");
			return rc;
		}
	}
	return RFL_OK;
}

static enum rfl_rc write_files(struct rfl_cli *cli, const struct rfl_run_config *c,
			       const struct rfl_training *all, size_t n, json_t *environments,
			       const char *dir, struct rfl_err *err)
{
	enum rfl_rc rc = dir ? rfl_file_mkdirs(dir, err) : RFL_OK;

	for (size_t i = 0; dir && i < RFL_ARRAY_LEN(files) && rc == RFL_OK; i++) {
		RFL_AUTO(buf) text = { .len = 0 };

		rc = render(cli, c, all, n, environments, files[i].format, &text, err);
		if (rc == RFL_OK)
			rc = rfl_cli_deliver(cli, rfl_cli_path(cli, dir, files[i].name),
					     files[i].format, &text, "report", err);
	}
	return rc;
}

/* ---- the command ---- */

/* <directory>/<model>_<data>_<precision>_bs<batch>_<device>.checkpoint */
static const char *name_checkpoint(struct rfl_cli *cli, const struct train_args *a,
				   const struct rfl_run_config *c, const char *device)
{
	const char *base = rfl_path_base(c->arch);
	const int without = rfl_net_is_file(c->arch) ? (int)strlen(".json") : 0;

	return rfl_arena_printf(
		cli->arena, "%s%s/%.*s_%s_%s_bs%lld_%s.checkpoint",
		a->checkpoints ? a->checkpoints : c->log_dir, a->checkpoints ? "" : "/checkpoints",
		(int)strlen(base) - without, base, rfl_data_kind_names[c->data_kind],
		rfl_precision_names[c->precision], (long long)c->micro_batch, device);
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
	char *checkpoint = NULL, prefix[32];
	enum rfl_rc rc;

	while (strcmp(rfl_run_device_choices[c.device + 1], t->device) != 0)
		c.device++;
	if ((rc = rfl_file_target(name_checkpoint(cli, a, &c, t->device), &checkpoint, err)))
		return rc;
	c.checkpoint = checkpoint;
	snprintf(prefix, sizeof(prefix), "%s: ", t->device);
	cli->line.prefix = prefix;
	rc = rfl_cli_run(cli, &c, command_line, NULL, &t->result, err);
	cli->line.prefix = NULL;
	free(checkpoint);
	if (rc == RFL_OK && is_absent(t) && a->devices.n > 1)
		rfl_log(RFL_LOG_INFO, "%s: skipped: %s", t->device, t->result.row.error_text);
	return rc;
}

/* Set the devices; auto must not select one that is listed. */
static enum rfl_rc find_devices(struct rfl_cli *cli, const struct train_args *a,
				struct trained *all, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &a->devices;
	enum rfl_rc rc;

	for (size_t i = 0; i < asked->n; i++) {
		all[i].device = asked->items[i];
		if (strcmp(all[i].device, "auto") == 0 &&
		    (rc = rfl_cli_auto_device(cli, a->run.engine, &all[i].device, err)))
			return rc;
		if (all[i].device != asked->items[i] && rfl_opt_list_has(asked, all[i].device))
			return rfl_usage(
				err, "--devices: auto selects %s, which is listed, too; remove one",
				all[i].device);
	}
	return RFL_OK;
}

/* Report on the first `shown` of n devices.
 * @param failed  why the last device was not trained on; its message is in err
 * @param absent  number of devices that are not available */
static enum rfl_rc report(struct rfl_cli *cli, const struct train_args *a,
			  const struct rfl_run_config *c, const struct trained *all, size_t n,
			  size_t shown, size_t absent, enum rfl_rc failed, struct rfl_err *err)
{
	const enum rfl_format format = (enum rfl_format)a->format;
	struct rfl_training *trainings = rfl_arena_array(cli->arena, shown, sizeof(*trainings));
	json_auto_t *environments = NULL;
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	for (size_t i = 0; i < shown; i++)
		trainings[i] = (struct rfl_training){
			.device = all[i].device,
			.row = &all[i].result.row,
			.epochs = &all[i].result.epochs,
		};
	environments = environments_of(cli, c, trainings, shown);
	if ((rc = write_files(cli, c, trainings, shown, environments, a->output_dir, err)) ||
	    (rc = render(cli, c, trainings, shown, format == RFL_FORMAT_JSON ? environments : NULL,
			 format, &text, err)) ||
	    (rc = rfl_cli_put_as(cli, format, &text, "report", err)))
		return rc;
	rc = failed;
	if (rc == RFL_OK && absent == n && n > 1) /* the reasons were reported */
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "none of the devices is available");
	for (const struct trained *t = all; t < all + shown; t++) {
		if (t->result.rc == RFL_OK || (is_absent(t) && n > 1))
			continue;
		if (rc) /* the command fails with the first failure */
			rfl_log(RFL_LOG_ERROR, "%s: %s: %s", t->device, t->result.row.status,
				t->result.row.error_text);
		else
			rc = rfl_fail(err, absent == n ? RFL_EUNAVAILABLE : RFL_EFAILED, 0,
				      "%s: %s: %s", t->device, t->result.row.status,
				      t->result.row.error_text);
	}
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct train_args *a = args;
	struct trained *all = rfl_arena_array(cli->arena, a->devices.n, sizeof(*all));
	struct rfl_err why = RFL_ERR_INIT; /* why the last device has no training */
	size_t n = 0, shown, absent = 0;
	struct rfl_run_config c;
	enum rfl_rc rc;

	if ((rc = complete(cli, a, &c, err)) || (rc = check_files(cli, a->output_dir, err)) ||
	    (rc = find_devices(cli, a, all, err)))
		return rc;
	c.device = RFL_RUN_DEVICE_AUTO;
	while (n < a->devices.n && !rc && !(n > 0 && all[n - 1].result.rc == RFL_EINTR)) {
		rc = train_on(cli, a, &c, rfl_cli_line(cli), &all[n], &why);
		absent += is_absent(&all[n++]);
	}
	if (rc)
		(void)rfl_err_pass(err, &why);
	shown = rc && !all[n - 1].result.recorded ? n - 1 : n; /* the others are reported */
	if (shown > 0)
		rc = report(cli, a, &c, all, n, shown, absent, rc, err);
	for (size_t i = 0; i < n; i++)
		rfl_run_result_fini(&all[i].result);
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
	.description = "Trains a network on a data set for a number of epochs and classifies the "
		       "test set after each. Prints the losses, accuracies and times of all epochs "
		       "and compares the devices. Each device adds a row to metrics.csv in the log "
		       "directory, and a table epochs/<run_id>.csv. After each epoch a checkpoint "
		       "is replaced: a training run that was stopped or killed continues with "
		       "--resume, and on a CPU ends with the same numbers, to the bit. A device "
		       "that is not available is reported and skipped.",
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
