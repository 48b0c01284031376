/* complexity.c - roofline complexity: count networks without running them. */
#include "cli/cmd.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "complexity/net/file.h"
#include "machine/terms.h"
#include "peaks/devices.h"
#include "report/complexity.h"
#include "rfl_config.h"
#include "roofline/roofline.h"

struct complexity_args {
	struct rfl_opt_list models, nets, peers, frozen, columns;
	struct rfl_opt_int_list batches, contexts;
	const char *output_dir, *write_net, *fit, *reserve, *peaks, *env, *sort;
	int64_t image_size, classes, depth, top, checkpoint, accumulate;
	bool train, input_grad, auxiliary, summary;
	int attention, causal, device, update;
	int optimizer, precision, fusion, by, format;
};

/* The state of the command. */
struct complexity {
	const struct complexity_args *args;
	struct rfl_complexity r;
	size_t cap; /* capacity of r.items */
	struct rfl_peaks *peaks;
	struct rfl_attain_roof roof;
	struct rfl_devices *devices;
};

#define OPT(kind, member, ...) RFL_OPT(struct complexity_args, kind, member, __VA_ARGS__)

enum { MAX_SIZE = 1 << 20, MAX_CONTEXT = 1 << 24, MAX_BATCH = 1 << 30, LEAST_MEMORY = 1 << 20 };

/* RFL_FUSION_AUTO, RFL_FUSION_ALL, then the levels in the order of enum rfl_fusion. */
static const char *const fusion_names[] = { "auto", "all", "unfused", "fused", "compulsory", NULL };
static const char *const causal_names[] = { "full", "half", NULL };
/* Names in the order of enum rfl_memory_device. */
static const char *const device_names[] = { "gpu", "cpu", NULL };

/* Options of a training step have an effect with --train, on the JSON document, which has both
 * modes, and on the columns for programs. */
#define STEP "train output-dir format=json format=csv columns"

static const struct rfl_opt opts[] = {
	OPT(LIST, models, .group = "Networks", .letter = 'm', .name = "models", .meta = "NAME",
	    .main = true,
	    .help = "models of the zoo, or 'all'; see 'roofline list models'; default, unless "
		    "--net is given: resnet50, vgg16, mobilenet_v2"),
	OPT(LIST, nets, .name = "net", .meta = "FILE",
	    .help = "JSON files of your own networks (docs/net.md)"),
	OPT(INT_LIST, batches, .letter = 'b', .name = "batch-sizes", .meta = "N", .def = "1",
	    .min = 1, .max = MAX_BATCH, .help = "samples per pass"),
	OPT(INT_LIST, contexts, .name = "context-length", .meta = "N", .min = 1, .max = MAX_CONTEXT,
	    .help = "tokens per sample of a language model; default: depends on the model"),
	OPT(INT, image_size, .name = "image-size", .meta = "N", .def = "0", .min = 0,
	    .max = MAX_SIZE,
	    .help = "height and width of the images in pixels; 0: the model's default"),
	OPT(INT, classes, .name = "classes", .meta = "N", .def = "0", .min = 0, .max = MAX_SIZE,
	    .help = "number of classes or size of the vocabulary; 0: the model's default"),
	OPT(CHOICE, attention, .name = "attention", .meta = "HOW", .choices = rfl_attention_names,
	    .def = "auto",
	    .help = "form of attention: composed; naive (two products and a softmax); sdpa (one "
		    "fused operation); auto: as in the published code"),
	OPT(CHOICE, causal, .name = "causal", .meta = "HOW", .choices = causal_names, .def = "full",
	    .help = "products to count under a causal mask: the full square, or only the half that "
		    "is needed"),

	OPT(FLAG, train, .group = "Training and storage", .name = "train",
	    .help = "show a training step instead of inference (the JSON document has both)"),
	OPT(FLAG, input_grad, .name = "input-grad", .needs = STEP,
	    .help = "also compute the gradient of the input, that is, the dgrad of the first "
		    "layer"),
	OPT(FLAG, auxiliary, .name = "aux", .needs = STEP,
	    .help = "train the auxiliary heads of GoogLeNet and Inception"),
	OPT(LIST, frozen, .name = "freeze", .meta = "PATH", .needs = STEP,
	    .help = "paths of parameters or modules that are not trained"),
	OPT(INT, checkpoint, .name = "checkpoint", .meta = "N", .def = "0", .min = 0,
	    .max = MAX_SIZE, .needs = STEP,
	    .help = "number of blocks to recompute at a time (activation checkpointing); 0: none"),
	OPT(INT, accumulate, .name = "accumulate", .meta = "N", .def = "1", .min = 1,
	    .max = MAX_SIZE, .needs = STEP,
	    .help = "passes per update, during which gradients stay in memory"),
	OPT(CHOICE, optimizer, .name = "optimizer", .meta = "NAME", .choices = rfl_optimizer_names,
	    .def = "momentum", .needs = STEP,
	    .help = "update rule of a training step; momentum is the sgd of 'roofline run'"),
	OPT(CHOICE, update, .name = "update", .meta = "HOW", .choices = rfl_update_names,
	    .def = "fused", .needs = STEP,
	    .help = "form of the update, for memory: all parameters at once (foreach, the default "
		    "of PyTorch on a GPU), one after the other, or in one kernel, as in 'roofline "
		    "run'"),
	OPT(CHOICE, precision, .name = "precision", .meta = "NAME", .choices = rfl_precision_names,
	    .def = "fp32", .help = "precision of stored values"),
	OPT(CHOICE, device, .name = "device", .meta = "WHERE", .choices = device_names,
	    .def = "gpu",
	    .help = "device for memory figures: on a CPU, PyTorch saves more tensors for dropout"),

	OPT(LIST, peers, .group = "Other counters, memory, time", .name = "as", .meta = "TOOL",
	    .help = "other FLOP counters with which to compare a forward pass: names, or 'all'"),
	OPT(TEXT, fit, .name = "fit", .meta = "DEVICE", .against = "as by top sort columns fusion",
	    .help = "device (\"NVIDIA L4\") or memory size (24GiB, 80e9) for which to find the "
		    "largest batch and context"),
	OPT(TEXT, reserve, .name = "reserve", .meta = "BYTES", .needs = "fit",
	    .help = "memory that --fit leaves free; default: 1/16 of the memory plus 512 MiB for a "
		    "device, 0 for a size"),
	OPT(TEXT, peaks, .name = "peaks", .meta = "FILE", .no_project = true, .needs = "env",
	    .help = "ceilings for least times and bounds; requires --env"),
	OPT(TEXT, env, .name = "env", .meta = "NAME", .no_project = true, .needs = "peaks",
	    .help = "environment in the --peaks file"),

	OPT(CHOICE, fusion, .group = "Output", .name = "fusion", .meta = "LEVEL",
	    .choices = fusion_names, .def = "auto",
	    .help = "level of fusion at which bytes are counted; auto: only FLOPs per fused byte "
		    "in tables, all levels in csv and json; least times use fused for auto and "
		    "all"),
	OPT(CHOICE, by, .name = "by", .meta = "WHAT", .choices = rfl_summary_by_names,
	    .def = "model", .help = "content of each row"),
	OPT(INT, depth, .name = "depth", .meta = "N", .def = "1", .min = 1, .max = 8,
	    .needs = "by=module",
	    .help = "path components that identify a module, with --by module"),
	OPT(INT, top, .name = "top", .meta = "N", .def = "0", .min = 0, .max = MAX_SIZE,
	    .help = "number of rows to show, the largest first; 0: all"),
	OPT(TEXT, sort, .name = "sort", .meta = "KEY",
	    .help = "column by which to sort the rows, largest first: a key of '--columns help', "
		    "or time, bytes or memory; default: macs with --top, else the order of the "
		    "network"),
	OPT(LIST, columns, .name = "columns", .meta = "KEY",
	    .help = "columns of the table; 'help' lists them; 'report' selects those of older "
		    "reports"),
	OPT(FLAG, summary, .name = "summary", .against = "fit as columns by top sort",
	    .help = "print a list of the layers of each network instead of the table"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR",
	    .help = "folder to which summary.json and a <model>.txt per model are also written"),
	OPT(TEXT, write_net, .name = "write-net", .meta = "DIR",
	    .help = "folder to which each network is also written, as <model>.json, for --net"),
	{ .name = NULL },
};

/* ---- other counters, memory, ceilings ---- */

static void add_peer(struct rfl_complexity *r, const struct rfl_peer *peer)
{
	for (size_t i = 0; i < r->npeers; i++)
		if (r->peers[i] == peer)
			return;
	r->peers[r->npeers++] = peer;
}

static enum rfl_rc find_peers(struct complexity *c, struct rfl_err *err)
{
	const struct rfl_opt_list *names = &c->args->peers;
	const struct rfl_peer *peer = NULL;
	size_t all = 0;

	while (rfl_peer_at(all))
		all++;
	c->r.peers = rfl_alloc_array(all, sizeof(*c->r.peers));
	if (!c->r.peers)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < names->n; i++) {
		if (strcmp(names->items[i], "all") == 0) {
			for (size_t k = 0; k < all; k++)
				add_peer(&c->r, rfl_peer_at(k));
		} else if (rfl_peer_find(names->items[i], &peer, err) == RFL_OK) {
			add_peer(&c->r, peer);
		} else {
			rfl_err_prefix(err, "--as");
			return RFL_EUSAGE;
		}
	}
	return RFL_OK;
}

/* Set the available memory from --fit (a device or a size) and --reserve. */
static enum rfl_rc find_device(struct complexity *c, struct rfl_err *err)
{
	const char *fit = c->args->fit, *reserve = c->args->reserve;
	const struct rfl_device_sheet *sheet = NULL;
	int64_t memory = 0, kept = 0;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	c->r.device.name = fit;
	if (isalpha((unsigned char)fit[0])) {
		rc = rfl_devices_load(&c->devices, err);
		if (rc != RFL_OK)
			return rc;
		rc = rfl_devices_find(c->devices, fit, &sheet, &why);
		if (rc != RFL_OK)
			return rfl_fail(err, rc == RFL_ENOTFOUND ? RFL_EUSAGE : rc, why.native,
					"--fit: %s (a memory size is written as 24GiB or 80e9)",
					why.msg);
		if (!(sheet->memory_bytes > 0))
			return rfl_fail(err, RFL_EMISSING, 0,
					"--fit: the data sheet of %s has no memory size; use a "
					"size such as 24GiB",
					sheet->label);
		/* A sixteenth of the memory is lost to error correction (GDDR) or fragmentation;
		 * the context, with the kernels and workspaces of the libraries, needs 512 MiB. A
		 * size is used unchanged. */
		c->r.device.name = sheet->label;
		memory = (int64_t)sheet->memory_bytes;
		kept = memory / 16 + (INT64_C(512) << 20);
	} else {
		if (rfl_num_parse_bytes(fit, "--fit", &memory, err) != RFL_OK)
			return RFL_EUSAGE;
		/* "24" probably lacks a unit */
		if (memory < LEAST_MEMORY)
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--fit: '%s' is less than 1 MiB, which holds no network; "
					"%s",
					fit,
					fit[strspn(fit, "0123456789")] ? "use a larger size"
								       : "add a unit, as in 24GiB");
	}
	if (reserve && strcmp(reserve, "0") == 0)
		kept = 0;
	else if (reserve && rfl_num_parse_bytes(reserve, "--reserve", &kept, err) != RFL_OK)
		return RFL_EUSAGE;
	if (kept >= memory)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--reserve: %s leaves no memory of %s; reserve less",
				reserve ? reserve : "the default", c->r.device.name);
	c->r.device.memory_bytes = memory;
	c->r.device.reserve_bytes = kept;
	return RFL_OK;
}

static enum rfl_rc find_roof(struct complexity *c, struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	enum rfl_fusion fusion = c->r.fusion < 0 ? RFL_FUSION_FUSED : (enum rfl_fusion)c->r.fusion;
	enum rfl_rc rc;

	if (!a->peaks)
		return RFL_OK;
	rc = rfl_cli_load_peaks(a->peaks, &c->peaks, err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_attain_find(c->peaks, a->env, c->r.options.precision, fusion, &c->roof, err);
	if (rc == RFL_ENOTFOUND) {
		rfl_err_prefix(err, "--precision");
		return RFL_EUSAGE;
	}
	c->r.options.roof = &c->roof.base;
	return rc;
}

/* ---- networks ---- */

/* Accept the most recently added network. With --checkpoint, named models and files must have
 * repeated blocks; with 'all', models without them are not checkpointed. */
static enum rfl_rc accept(struct complexity *c, bool named, struct rfl_err *err)
{
	struct rfl_summary *s = c->r.items[c->r.n++];

	if (!s->options.work.count.checkpoint || s->net->nblocks)
		return RFL_OK;
	if (named)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--checkpoint: %s has no repeated blocks; leave out --checkpoint",
				s->name);
	s->options.work.count.checkpoint = 0;
	return RFL_OK;
}

/* Add one model at one context length. A named model must accept the options; with 'all', models
 * that do not are skipped with a warning. */
static enum rfl_rc add_at(struct complexity *c, const struct rfl_zoo_model *model, const char *name,
			  const struct rfl_summary_options *options, bool named,
			  struct rfl_err *err)
{
	const struct rfl_zoo_options *sizes = &options->sizes;
	const int64_t context =
		sizes->context_length ? sizes->context_length : model->context_length;
	struct rfl_err why = RFL_ERR_INIT;
	const char *option; /* the option that was rejected */
	enum rfl_rc rc = rfl_grow(&c->r.items, &c->cap, c->r.n + 1, SIZE_MAX, err);

	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < c->r.n; i++) /* skip duplicates */
		if (strcmp(c->r.items[i]->name, name) == 0 &&
		    c->r.items[i]->context_length == context)
			return RFL_OK;
	rc = rfl_summary_new(name, options, &c->r.items[c->r.n], &why);
	if (rc == RFL_OK)
		return accept(c, named, err);
	if (rc != RFL_EINVAL)
		return rfl_err_pass(err, &why);
	if (!named) {
		rfl_log(RFL_LOG_WARN, "skipped: %s", why.msg);
		return RFL_OK;
	}
	if (model->score_bias && sizes->attention == RFL_ATTENTION_SDPA)
		option = "--attention";
	else if (sizes->context_length)
		option = "--context-length";
	else
		option = sizes->image_size || !model->context_length ? "--image-size" : "--models";
	return rfl_fail(err, RFL_EUSAGE, 0, "%s: %s", option, why.msg);
}

/* With 'all', the context length applies to language models and the image size to image models. */
static enum rfl_rc add_model(struct complexity *c, const struct rfl_zoo_model *model,
			     const char *name, bool named, struct rfl_err *err)
{
	const struct rfl_opt_int_list *contexts = &c->args->contexts;
	struct rfl_summary_options options = c->r.options;
	enum rfl_rc rc = RFL_OK;

	if (!named && model->context_length)
		options.sizes.image_size = 0;
	if (contexts->n == 0 || (!named && !model->context_length))
		return add_at(c, model, name, &options, named, err);
	for (size_t i = 0; i < contexts->n && rc == RFL_OK; i++) {
		options.sizes.context_length = contexts->items[i];
		rc = add_at(c, model, name, &options, named, err);
	}
	return rc;
}

static enum rfl_rc add_name(struct complexity *c, const char *name, struct rfl_err *err)
{
	const struct rfl_zoo_model *model = NULL;
	enum rfl_rc rc = RFL_OK;

	if (strcmp(name, "all") == 0) {
		for (size_t i = 0; rc == RFL_OK && (model = rfl_zoo_at(i)); i++)
			rc = add_model(c, model, model->name, false, err);
		return rc;
	}
	rc = rfl_zoo_find(name, &model, err);
	if (rc == RFL_ENOTFOUND) {
		rfl_err_prefix(err, "--models");
		return RFL_EUSAGE;
	}
	return rc ? rc : add_model(c, model, model->numbered ? name : model->name, true, err);
}

static enum rfl_rc add_nets(struct complexity *c, struct rfl_err *err)
{
	static const char *const default_models[] = { "resnet50", "vgg16", "mobilenet_v2" };
	const struct complexity_args *a = c->args;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < a->models.n && rc == RFL_OK; i++)
		rc = add_name(c, a->models.items[i], err);
	for (size_t i = 0; i < a->nets.n && rc == RFL_OK; i++) {
		struct rfl_net *net = NULL;

		if ((rc = rfl_grow(&c->r.items, &c->cap, c->r.n + 1, SIZE_MAX, err)) ||
		    (rc = rfl_net_load(a->nets.items[i], &net, err)) ||
		    (rc = rfl_summary_of_net(net, &c->r.options, &c->r.items[c->r.n], err)))
			break;
		rc = accept(c, true, err);
	}
	if (!a->models.n && !a->nets.n)
		for (size_t i = 0; i < RFL_ARRAY_LEN(default_models) && rc == RFL_OK; i++)
			rc = add_name(c, default_models[i], err);
	if (rc == RFL_OK && c->r.n == 0)
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--models: none of the models accepts these options; change the "
			      "sizes or --attention");
	return rc;
}

/* A frozen module must be in one of the networks. */
static enum rfl_rc check_frozen(const struct complexity *c, const char *path, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT; /* for the first network */
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < c->r.n; i++) {
		rc = rfl_count_check_frozen(c->r.items[i]->net, path, &why);
		if (rc != RFL_EINVAL)
			break;
	}
	if (rc == RFL_OK)
		return RFL_OK;
	return rfl_fail(err, rc == RFL_EINVAL ? RFL_EUSAGE : rc, 0, "--freeze: %s", why.msg);
}

static enum rfl_rc check(const struct complexity *c, struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	const bool document = a->output_dir || (a->format == RFL_FORMAT_JSON && !a->summary);
	bool zoo = false;
	enum rfl_rc rc;

	for (size_t k = 0; k < a->frozen.n; k++)
		if ((rc = check_frozen(c, a->frozen.items[k], err)))
			return rc;
	if (a->summary && a->format != RFL_FORMAT_TABLE)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--summary prints only text; leave out --format");
	if (a->batches.n > 1 && !document &&
	    (a->summary || (a->fit && rfl_complexity_has_text(&c->r))))
		return rfl_fail(
			err, RFL_EUSAGE, 0,
			"--batch-sizes: %s accepts only one size, but there are %zu; use one",
			a->fit ? "--fit" : "--summary", a->batches.n);
	for (size_t i = 0; i < c->r.n; i++)
		zoo = zoo || c->r.items[i]->model;
	if (!zoo && (a->image_size || a->classes || a->contexts.n))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--%s: a network from a file has fixed sizes; leave it out",
				a->image_size ? "image-size"
				: a->classes  ? "classes"
					      : "context-length");
	return RFL_OK;
}

/* Write the files of --output-dir (the document, and DIR/gpt2.txt with the layers of a network) or
 * those of --write-net (DIR/gpt2.json). With several context lengths, the name is gpt2-256. */
static enum rfl_rc write_files(const struct complexity *c, const char *dir, const json_t *document,
			       struct rfl_err *err)
{
	struct rfl_buf path, text;
	enum rfl_rc rc;

	for (size_t i = 0; i < c->r.n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(c->r.items[i]->name, c->r.items[k]->name) == 0 &&
			    (c->args->contexts.n < 2 ||
			     c->r.items[i]->context_length == c->r.items[k]->context_length))
				return rfl_fail(err, RFL_EUSAGE, 0,
						"%s: two networks are called %s, so their files "
						"would overwrite each other; rename one",
						dir, c->r.items[i]->name);
	rc = rfl_file_mkdirs(dir, err);
	rfl_buf_init(&path, 0);
	rfl_buf_init(&text, 0);
	if (rc == RFL_OK && document) {
		rfl_buf_printf(&path, "%s/summary.json", dir);
		rc = rfl_buf_check(&path, dir, err);
		if (rc == RFL_OK)
			rc = rfl_json_save(rfl_buf_str(&path), document, err);
	}
	for (size_t i = 0; i < c->r.n && rc == RFL_OK; i++) {
		struct rfl_summary *s = c->r.items[i];

		rfl_buf_reset(&path);
		rfl_buf_reset(&text);
		rfl_buf_printf(&path, "%s/%s", dir, s->name);
		if (s->context_length && c->args->contexts.n > 1)
			rfl_buf_printf(&path, "-%lld", (long long)s->context_length);
		rfl_buf_puts(&path, document ? ".txt" : ".json");
		rc = rfl_buf_check(&path, dir, err);
		if (rc == RFL_OK && !document)
			rc = rfl_net_save(rfl_buf_str(&path), s->net, err);
		else if (rc == RFL_OK && !(rc = rfl_complexity_layers(&c->r, s, &text, err)))
			rc = rfl_file_write(rfl_buf_str(&path), text.data, text.len, err);
	}
	if (rc == RFL_OK && document)
		rfl_log(RFL_LOG_INFO, "wrote %s/summary.json and %zu layer list%s", dir, c->r.n,
			c->r.n == 1 ? "" : "s");
	else if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %zu network%s to %s", c->r.n, c->r.n == 1 ? "" : "s",
			dir);
	rfl_buf_fini(&path);
	rfl_buf_fini(&text);
	return rc;
}

/* Print the result, and write the files. The file and standard output share one document. */
static enum rfl_rc put_answer(const struct complexity *c, struct rfl_buf *out, struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	const struct rfl_complexity *r = &c->r;
	const enum rfl_format format = (enum rfl_format)a->format;
	const bool json = format == RFL_FORMAT_JSON;
	json_t *document = NULL;
	enum rfl_rc rc = RFL_OK;

	if (a->output_dir || json)
		rc = rfl_complexity_json(r, RFL_VERSION, &document, err);
	if (rc == RFL_OK && a->output_dir)
		rc = write_files(c, a->output_dir, document, err);
	if (rc == RFL_OK && a->write_net)
		rc = write_files(c, a->write_net, NULL, err);
	if (rc == RFL_OK && json) {
		rfl_json_write(out, document);
		rfl_buf_putc(out, '\n');
	}
	json_decref(document);
	if (rc != RFL_OK || json)
		return rc;
	for (size_t i = 0; a->summary && i < r->n && rc == RFL_OK; i++) {
		rfl_buf_puts(out, i > 0 ? "\n" : "");
		rc = rfl_complexity_layers(r, r->items[i], out, err);
	}
	if (a->summary)
		return rc;
	if (a->fit)
		return rfl_complexity_fit_table(r, format, out, err);
	if (r->npeers)
		return rfl_complexity_peers_table(r, format, out, err);
	return rfl_complexity_table(r, format, out, err);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct complexity_args *a = args;
	struct complexity c = {
		.args = a,
		.r = {
			.options = {
				.sizes = { .image_size = a->image_size,
					   .classes = a->classes,
					   .attention = (enum rfl_attention)a->attention },
				.precision = rfl_precision_names[a->precision],
				.work = { .count = { .optimizer = (enum rfl_optimizer_kind)a->optimizer,
						     .input_grad = a->input_grad,
						     .causal_half = a->causal == 1,
						     .auxiliary = a->auxiliary,
						     .checkpoint = a->checkpoint,
						     .frozen = a->frozen.items,
						     .nfrozen = a->frozen.n },
					  .accumulate = a->accumulate,
					  .device = (enum rfl_memory_device)a->device,
					  .update = (enum rfl_update)a->update },
				.by = (enum rfl_summary_by)a->by,
				.depth = (int)a->depth,
			},
			.batches = a->batches.items,
			.nbatches = a->batches.n,
			.train = a->train,
			.fusion = a->fusion + RFL_FUSION_AUTO,
			.top = (size_t)a->top,
			.sort = a->sort,
			.columns = a->columns.items,
			.ncolumns = a->columns.n,
		},
	};
	struct rfl_buf out;
	enum rfl_rc rc;

	if (a->columns.n == 1 && strcmp(a->columns.items[0], "help") == 0)
		return rfl_cli_put_table(cli, rfl_complexity_columns_table(),
					 (enum rfl_format)a->format, err);
	rfl_buf_init(&out, 0);
	rfl_complexity_needs(&c.r,
			     a->fit || a->summary || a->output_dir || a->format == RFL_FORMAT_JSON);
	if ((rc = find_peers(&c, err)) || (a->fit && (rc = find_device(&c, err))) ||
	    (rc = find_roof(&c, err)) || (rc = add_nets(&c, err)) || (rc = check(&c, err)))
		goto done;
	for (size_t i = 0; a->fit && i < c.r.n && rc == RFL_OK; i++)
		rc = rfl_summary_fit(c.r.items[i], a->train,
				     c.r.device.memory_bytes - c.r.device.reserve_bytes,
				     c.r.batches[0], err);
	if (rc == RFL_OK)
		rc = put_answer(&c, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, (enum rfl_format)a->format, &out, "complexity", err);
done:
	rfl_buf_fini(&out);
	for (size_t i = 0; i < c.r.n; i++)
		rfl_summary_free(c.r.items[i]);
	free(c.r.items);
	free(c.r.peers);
	rfl_peaks_free(c.peaks);
	rfl_devices_free(c.devices);
	return rc;
}

const struct rfl_cmd rfl_cmd_complexity = {
	.name = "complexity",
	.summary = "count parameters, FLOPs, bytes and memory of networks",
	.description =
		"Analyses networks without running them: counts the multiply-adds of the forward "
		"pass and of the gradients with respect to inputs and weights, the elementwise "
		"operations, the bytes that must be moved at three levels of fusion and, with "
		"--train, the memory of a training step. A MAC is one multiply-add, which counts "
		"as 2 FLOPs.\n\nWith --fit, finds the largest batch that fits in memory; with "
		"--as, compares with other FLOP counters; with --peaks and --env, adds the least "
		"time of every operation under measured ceilings.",
	.example =
		"roofline complexity --models resnet50 vgg16 --batch-sizes 16 32 --train\n"
		"roofline complexity --models mobilenet_v2 --by layer --format csv\n"
		"roofline complexity --models resnet50 --train --fit \"NVIDIA L4\"\n"
		"roofline complexity --models vit_b_16 --as fvcore torchinfo\n"
		"roofline complexity --models gpt2 --context-length 256 512 1024 --attention "
		"naive\n"
		"roofline complexity --models resnet50 --by kind --peaks peaks.json --env lab_cpu\n"
		"roofline complexity --batch-sizes 16 32 64 128 --output-dir logs/model_summaries",
	.opts = opts,
	.args_size = sizeof(struct complexity_args),
	.run = run,
};
