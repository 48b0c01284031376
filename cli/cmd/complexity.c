/* complexity.c - roofline complexity: count networks without running them. */
#include "cli/cmd/complexity.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "complexity/net/file.h"
#include "machine/terms.h"
#include "peaks/edit.h"
#include "report/complexity_lm.h"
#include "rfl_config.h"

static void release(struct complexity *c)
{
	for (size_t i = 0; i < c->r.n; i++)
		rfl_summary_free(c->r.items[i]);
	rfl_peaks_free(c->peaks);
	rfl_devices_free(c->devices);
}

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
	OPT(LIST, models, .group = "Networks", .letter = 'm', .name = "models", .often = true,
	    .meta = "NAME", .main = true,
	    .help = "models of the zoo, or 'all'; see 'roofline list models'; default, unless "
		    "--net is given: resnet50, vgg16, mobilenet_v2"),
	OPT(LIST, nets, .name = "net", .meta = "FILE",
	    .help = "JSON files of your own networks (docs/reference/net.md); with --phase, "
		    "config.json files"),
	OPT(INT_LIST, batches, .letter = 'b', .name = "batch-sizes", .often = true, .meta = "N",
	    .def = "1", .min = 1, .max = MAX_BATCH, .help = "samples per pass"),
	OPT(INT_LIST, contexts, .name = "context-length", .often = true, .meta = "N", .min = 1,
	    .max = MAX_CONTEXT,
	    .help = "tokens per sample of a language model; default: depends on the model"),
	OPT(INT, image_size, .name = "image-size", .often = true, .meta = "N", .def = "0", .min = 0,
	    .max = MAX_SIZE,
	    .help = "height and width of the images in pixels; 0: the model's default"),
	OPT(INT, classes, .name = "classes", .meta = "N", .def = "0", .min = 0, .max = MAX_SIZE,
	    .help = "number of classes or size of the vocabulary; 0: the model's default"),
	OPT(CHOICE, attention, .name = "attention", .meta = "HOW", .choices = rfl_attention_names,
	    .def = "auto",
	    .help = "attention implementation: composed; naive (two products and a softmax); sdpa "
		    "(one fused operation); auto: as in the published code"),
	OPT(CHOICE, causal, .name = "causal", .meta = "HOW",
	    .given = offsetof(struct complexity_args, causal_given), .choices = causal_names,
	    .def = "full",
	    .help = "products to count under a causal mask: the full square, or only the half that "
		    "is needed; with --phase the default is half, because kernels skip the rest"),

	OPT(FLAG, train, .group = "Training and storage", .name = "train", .often = true,
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
	OPT(CHOICE, precision, .name = "precision", .often = true, .meta = "NAME",
	    .given = offsetof(struct complexity_args, precision_given),
	    .choices = rfl_precision_names, .def = "fp32",
	    .help = "precision of stored values; with --phase the default is bf16, or the dtype of "
		    "the config.json"),
	OPT(CHOICE, device, .name = "device", .meta = "WHERE", .choices = device_names,
	    .def = "gpu",
	    .help = "device for memory figures: on a CPU, PyTorch saves more tensors for dropout"),

	OPT(CHOICE, phase, .group = "Language models at inference", .name = "phase", .often = true,
	    .meta = "PHASE", .choices = rfl_lm_phase_names, .first = 1,
	    .against = "context-length image-size classes attention train as columns top sort "
		       "summary plan output-dir write-net",
	    .help = "count a pass with a cache of keys and values: prefill (the tokens of a "
		    "prompt), decode (one token per sequence) or generate (both: the prefill gives "
		    "the first token, and decode steps add --new more); --models and --net then "
		    "name language models and "
		    "Hugging Face config.json files"),
	OPT(INT_LIST, pasts, .name = "past", .meta = "N", .min = 0, .max = MAX_CONTEXT,
	    .needs = "phase",
	    .help = "tokens of each sequence in the cache; of generate, the prompt; default: 2048, "
		    "0 for prefill"),
	OPT(INT, tokens, .name = "new", .meta = "N", .def = "0", .min = 0, .max = MAX_CONTEXT,
	    .needs = "phase=prefill phase=generate",
	    .help = "new tokens of each sequence, of generate after the first; 0: 2048 for "
		    "prefill, 256 for generate"),
	OPT(TEXT, weights, .name = "weights", .meta = "FORMAT", .choices = rfl_lm_format_names,
	    .needs = "phase",
	    .help = "format of the matrices of the layers; matmuls compute in the format of the "
		    "activations; default: --precision, or the quantisation of the config.json"),
	OPT(TEXT, expert_weights, .name = "expert-weights", .meta = "FORMAT",
	    .choices = rfl_lm_format_names, .needs = "phase",
	    .help = "format of the experts; default: --weights"),
	OPT(TEXT, head_weights, .name = "head-weights", .meta = "FORMAT",
	    .choices = rfl_lm_format_names, .needs = "phase",
	    .help = "format of the head; default: --precision"),
	OPT(INT, group, .name = "group-size", .meta = "N", .def = "-1", .min = -1,
	    .max = MAX_CONTEXT, .needs = "weights expert-weights head-weights",
	    .help = "weights of int8 and int4 with a common scale; 0: an output channel; -1: 128 "
		    "for int4, 0 for int8"),
	OPT(FLAG, zero_points, .name = "zero-points",
	    .needs = "weights expert-weights head-weights",
	    .help = "store a zero point with each scale of int8 and int4"),
	OPT(TEXT, activations, .name = "activations", .meta = "FORMAT",
	    .choices = rfl_lm_format_names, .needs = "phase",
	    .help = "format of the activations, and of matmuls; default: --precision"),
	OPT(TEXT, cache, .name = "cache", .meta = "FORMAT", .choices = rfl_lm_format_names,
	    .needs = "phase", .help = "format of the cache; default: --precision"),
	OPT(INT, page, .name = "page-size", .meta = "N", .def = "1", .min = 1, .max = MAX_SIZE,
	    .needs = "phase", .help = "tokens of a page of the cache, for --fit"),
	OPT(INT, drafts, .name = "draft-tokens", .meta = "N", .def = "0", .min = 0, .max = 1024,
	    .needs = "phase=decode phase=generate",
	    .help = "tokens that a draft model proposes for each decode step, which verifies them; "
		    "the draft model itself is not counted"),
	OPT(REAL, acceptance, .name = "acceptance", .meta = "P", .def = "0.8", .rmin = 0, .rmax = 1,
	    .needs = "draft-tokens", .help = "probability that a proposed token is accepted"),
	OPT(INT, tensor, .name = "tensor-parallel", .meta = "N", .def = "1", .min = 1,
	    .max = MAX_SIZE, .needs = "phase", .help = "devices that share every layer"),
	OPT(INT, pipeline, .name = "pipeline-parallel", .meta = "N", .def = "1", .min = 1,
	    .max = MAX_SIZE, .needs = "phase", .help = "stages with a part of the layers each"),
	OPT(REAL, link, .name = "link", .meta = "GB/S", .def = "0", .rmin = 0, .rmax = 1e9,
	    .needs = "tensor-parallel pipeline-parallel",
	    .help = "bandwidth of a device's links in one direction; 0: not known"),

	OPT(LIST, peers, .group = "Other FLOP-counting tools, memory, time", .name = "as",
	    .meta = "TOOL",
	    .help = "other FLOP counters with which to compare a forward pass: names, or 'all'"),
	OPT(TEXT, fit, .name = "fit", .often = true, .meta = "DEVICE",
	    .against = "as by top sort columns fusion",
	    .help = "device (\"NVIDIA L4\") or memory size (24GiB, 80e9) for which to find the "
		    "largest batch and context"),
	OPT(TEXT, reserve, .name = "reserve", .meta = "BYTES", .needs = "fit",
	    .help = "memory that --fit leaves free; default: 1/16 of the memory plus 512 MiB for a "
		    "device, 0 for a size"),
	OPT(TEXT, peaks, .name = "peaks", .meta = "FILE", .needs = "env",
	    .help = "ceilings for minimum times and bounds; requires --env"),
	OPT(TEXT, env, .name = "env", .meta = "NAME", .needs = "peaks",
	    .help = "environment in the --peaks file"),
	OPT(TEXT, sheet, .name = "sheet", .meta = "DEVICE", .against = "peaks env",
	    .help = "ceilings of a data sheet ('roofline peaks devices') instead of --peaks"),

	OPT(CHOICE, fusion, .group = "Output", .name = "fusion", .meta = "LEVEL",
	    .choices = fusion_names, .def = "auto",
	    .help = "level of fusion at which bytes are counted; auto: only FLOPs per fused byte "
		    "in tables, all levels in csv and json; minimum times use fused for auto and "
		    "all; with --phase, auto is fused, and all has rows for each level"),
	OPT(CHOICE, by, .name = "by", .meta = "WHAT", .choices = rfl_summary_by_names,
	    .def = "model", .help = "content of each row"),
	OPT(INT, depth, .name = "depth", .often = true, .meta = "N", .def = "1", .min = 1, .max = 8,
	    .needs = "by=module",
	    .help = "path components that identify a module, with --by module"),
	OPT(INT, top, .name = "top", .meta = "N", .def = "0", .min = 0, .max = MAX_SIZE,
	    .help = "number of rows to show, the largest first; 0: all"),
	OPT(TEXT, sort, .name = "sort", .meta = "KEY",
	    .help = "column by which to sort the rows, largest first: a key of '--columns help', "
		    "or time, bytes or memory; default: macs with --top, else the order of the "
		    "network"),
	OPT(LIST, columns, .name = "columns", .often = true, .meta = "KEY",
	    .help = "columns of the table; 'help' lists them; 'report' selects the columns of "
		    "older reports"),
	OPT(FLAG, summary, .name = "summary", .against = "fit as columns by top sort",
	    .help = "print a list of the layers of each network instead of the table"),
	OPT(FLAG, plan, .name = "plan", .against = "fit as columns by top sort summary",
	    .help = "print the steps of 'run --engine planned': what is fused, what each reads and "
		    "writes, and the memory that its tensors need"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	OPT(TEXT, output_dir, .letter = 'o', .name = "output-dir", .meta = "DIR",
	    .help = "directory to which summary.json and a <model>.txt per model are also written"),
	OPT(TEXT, write_net, .name = "write-net", .meta = "DIR",
	    .help = "directory to which each network is also written, as <model>.json, for --net"),
	{ .name = NULL },
};

/* ---- other FLOP-counting tools, memory, ceilings ---- */

static enum rfl_rc find_peers(struct complexity *c, struct rfl_err *err)
{
	const struct rfl_opt_list *names = &c->args->peers;
	const struct rfl_peer *peer = NULL, *one;
	size_t all = 0;

	while (rfl_peer_at(all))
		all++;
	c->r.peers = rfl_arena_array(c->cli->arena, all, sizeof(*c->r.peers));
	for (size_t i = 0; i < names->n; i++) {
		const bool every = strcmp(names->items[i], "all") == 0;

		if (!every && rfl_cli_find_peer(names->items[i], &peer, err))
			return RFL_EUSAGE;
		for (size_t k = 0; k < all; k++) {
			bool known = false;

			one = rfl_peer_at(k);
			for (size_t p = 0; p < c->r.npeers; p++)
				known |= c->r.peers[p] == one;
			if (!known && (every || one == peer))
				c->r.peers[c->r.npeers++] = one;
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
		c->devices = rfl_devices_new();
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
			return rfl_usage(
				err, "--fit: '%s' is less than 1 MiB, which holds no network; %s",
				fit,
				fit[strspn(fit, "0123456789")] ? "use a larger size"
							       : "add a unit, as in 24GiB");
	}
	if (reserve && strcmp(reserve, "0") == 0)
		kept = 0;
	else if (reserve && rfl_num_parse_bytes(reserve, "--reserve", &kept, err) != RFL_OK)
		return RFL_EUSAGE;
	if (kept >= memory)
		return rfl_usage(err, "--reserve: %s leaves no memory of %s; reserve less",
				 reserve ? reserve : "the default", c->r.device.name);
	c->r.device.memory_bytes = memory;
	c->r.device.reserve_bytes = kept;
	return RFL_OK;
}

/* Find the ceilings of --peaks and --env, or of --sheet. */
static enum rfl_rc find_ceilings(struct complexity *c, struct rfl_err *err)
{
	const struct rfl_device_sheet *sheet = NULL;
	enum rfl_rc rc;

	c->env = c->args->env;
	if (!c->args->sheet)
		return c->args->peaks ? rfl_cli_load_peaks(c->args->peaks, &c->peaks, err) : RFL_OK;
	if (!c->devices)
		c->devices = rfl_devices_new();
	rc = rfl_devices_find(c->devices, c->args->sheet, &sheet, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_of_sheet(sheet, &c->peaks, err);
	if (rc == RFL_OK)
		c->env = c->peaks->envs[0].name;
	return rc == RFL_ENOTFOUND ? rfl_usage_of("--sheet", err) : rc;
}

enum rfl_rc rfl_complexity_roof(const struct complexity *c, const char *precision,
				enum rfl_fusion fusion, const char *option,
				struct rfl_attain_roof *ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;

	if (c->peaks)
		rc = rfl_attain_find(c->peaks, c->env, precision, fusion, ret, &why);
	if (rc == RFL_EMISSING && c->args->sheet)
		return rfl_fail(err, rc, 0,
				"--sheet: the data sheet of %s has no rate in %s, or no bandwidth; "
				"change %s",
				c->peaks->envs[0].device, precision, option);
	if (rc != RFL_OK)
		(void)rfl_err_pass(err, &why);
	return rc == RFL_ENOTFOUND ? rfl_usage_of(option, err) : rc;
}

static enum rfl_rc find_roof(struct complexity *c, struct rfl_err *err)
{
	enum rfl_fusion fusion = c->r.fusion < 0 ? RFL_FUSION_FUSED : (enum rfl_fusion)c->r.fusion;

	if (c->peaks)
		c->r.options.roof = &c->roof.base;
	return rfl_complexity_roof(c, c->r.options.precision, fusion, "--precision", &c->roof, err);
}

/* ---- networks ---- */

/* Add a network. With --checkpoint, named models and files must have repeated blocks; with 'all',
 * models without them are not checkpointed. */
static enum rfl_rc accept(struct complexity *c, struct rfl_summary *s, bool named,
			  struct rfl_err *err)
{
	struct rfl_summary **item = rfl_arena_append(c->cli->arena, &c->r.items, &c->r.n);

	*item = s;
	if (!s->options.work.count.checkpoint || s->net->nblocks)
		return RFL_OK;
	if (named)
		return rfl_usage(err,
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
	struct rfl_summary *s = NULL;
	enum rfl_rc rc;

	for (size_t i = 0; i < c->r.n; i++) /* skip duplicates */
		if (strcmp(c->r.items[i]->name, name) == 0 &&
		    c->r.items[i]->context_length == context)
			return RFL_OK;
	rc = rfl_summary_new(name, options, &s, &why);
	if (rc == RFL_OK)
		return accept(c, s, named, err);
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
	return rfl_usage(err, "%s: %s", option, why.msg);
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

/* Whether a name is not in the zoo, but in the table of language models. */
static bool is_lm(const char *name)
{
	RFL_AUTOPTR(lms) lms = NULL;
	const struct rfl_zoo_model *model;
	const struct rfl_lm *lm;

	if (rfl_zoo_find(name, &model, NULL) == RFL_OK)
		return false;
	lms = rfl_lms_new();
	return rfl_lms_find(lms, name, &lm, NULL) == RFL_OK;
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
	if (is_lm(name))
		return rfl_usage(err,
				 "--models: %s is a language model at inference; add --phase "
				 "prefill, decode or generate",
				 name);
	rc = rfl_zoo_find(name, &model, err);
	if (rc == RFL_ENOTFOUND)
		return rfl_usage_of("--models", err);
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

		if (rfl_lm_is_config(a->nets.items[i]))
			return rfl_usage(err,
					 "--net: %s is the configuration of a language model; add "
					 "--phase prefill, decode or generate",
					 a->nets.items[i]);
		rc = rfl_net_load(a->nets.items[i], &net, err);
		if (rc == RFL_OK && net->caution)
			rfl_log(RFL_LOG_WARN, "%s: %s", a->nets.items[i], net->caution);
		if (rc == RFL_OK && net->uncounted)
			rfl_log(RFL_LOG_WARN,
				"%s: incomplete, because these operations are not "
				"supported and not counted: %s",
				a->nets.items[i], net->uncounted);
		if (rc == RFL_OK)
			rc = accept(c, rfl_summary_of_net(net, &c->r.options), true, err);
	}
	if (!a->models.n && !a->nets.n)
		for (size_t i = 0; i < RFL_ARRAY_LEN(default_models) && rc == RFL_OK; i++)
			rc = add_name(c, default_models[i], err);
	if (rc == RFL_OK && c->r.n == 0)
		rc = rfl_usage(err, "--models: none of the models accepts these options; change "
				    "the sizes or --attention");
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
		return rfl_usage(err, "--summary prints only text; leave out --format");
	if (a->batches.n > 1 && !document &&
	    (a->summary || (a->fit && rfl_complexity_has_text(&c->r))))
		return rfl_usage(
			err, "--batch-sizes: %s accepts only one size, but there are %zu; use one",
			a->fit ? "--fit" : "--summary", a->batches.n);
	for (size_t i = 0; i < c->r.n; i++)
		zoo = zoo || c->r.items[i]->model;
	if (!zoo && (a->image_size || a->classes || a->contexts.n))
		return rfl_usage(err, "--%s: a network from a file has fixed sizes; leave it out",
				 a->image_size ? "image-size"
				 : a->classes  ? "classes"
					       : "context-length");
	return RFL_OK;
}

/* Write the files of --output-dir (the document, and DIR/gpt2.txt with the layers of a network) or
 * of --write-net (DIR/gpt2.json). With several context lengths, the name is gpt2-256. */
static enum rfl_rc write_files(const struct complexity *c, const char *dir, const json_t *document,
			       struct rfl_err *err)
{
	const bool several = c->args->contexts.n > 1;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < c->r.n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(c->r.items[i]->name, c->r.items[k]->name) == 0 &&
			    (!several ||
			     c->r.items[i]->context_length == c->r.items[k]->context_length))
				return rfl_usage(err,
						 "%s: two networks are called %s, so their files "
						 "would overwrite each other; rename one",
						 dir, c->r.items[i]->name);
	if ((rc = rfl_file_mkdirs(dir, err)) ||
	    (document &&
	     (rc = rfl_json_save(rfl_arena_printf(c->cli->arena, "%s/summary.json", dir), document,
				 err))))
		return rc;
	for (size_t i = 0; i < c->r.n && rc == RFL_OK; i++) {
		struct rfl_summary *s = c->r.items[i];
		RFL_AUTO(buf) text = { .len = 0 };
		char context[32] = "";
		const char *path;

		if (s->context_length && several)
			snprintf(context, sizeof(context), "-%lld", (long long)s->context_length);
		path = rfl_arena_printf(c->cli->arena, "%s/%s%s.%s", dir, s->name, context,
					document ? "txt" : "json");
		if (!document)
			rc = rfl_net_save(path, s->net, err);
		else if (!(rc = rfl_complexity_layers(&c->r, s, &text, err)))
			rc = rfl_file_write(path, text.data, text.len, err);
	}
	if (rc == RFL_OK && document)
		rfl_log(RFL_LOG_INFO, "wrote %s/summary.json and %zu layer list%s", dir, c->r.n,
			c->r.n == 1 ? "" : "s");
	else if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %zu network%s to %s", c->r.n, c->r.n == 1 ? "" : "s",
			dir);
	return rc;
}

/* Print the result, and write the files. The file and standard output share one document. */
static enum rfl_rc put_answer(const struct complexity *c, struct rfl_buf *out, struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	const struct rfl_complexity *r = &c->r;
	const enum rfl_format format = (enum rfl_format)a->format;
	const bool json = format == RFL_FORMAT_JSON;
	json_auto_t *document = NULL;
	enum rfl_rc rc = RFL_OK;

	if (((a->output_dir || json) &&
	     (rc = rfl_complexity_json(r, RFL_VERSION, &document, err))) ||
	    (a->output_dir && (rc = write_files(c, a->output_dir, document, err))) ||
	    (a->write_net && (rc = write_files(c, a->write_net, NULL, err))))
		return rc;
	if (json && !a->plan) {
		rfl_json_write(out, document);
		rfl_buf_putc(out, '\n');
		return RFL_OK;
	}
	for (size_t i = 0; a->summary && i < r->n && rc == RFL_OK; i++) {
		rfl_buf_puts(out, i > 0 ? "\n" : "");
		rc = rfl_complexity_layers(r, r->items[i], out, err);
	}
	if (a->summary)
		return rc;
	if (a->plan)
		return rfl_complexity_plan_table(r, format, out, err);
	if (a->fit)
		return rfl_complexity_fit_table(r, format, out, err);
	if (r->npeers)
		return rfl_complexity_peers_table(r, format, out, err);
	return rfl_complexity_table(r, format, out, err);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct complexity_args *a = args;
	RFL_CLEANUP(release)
	struct complexity c = {
		.cli = cli,
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
	RFL_AUTO(buf) out = { .len = 0 };
	enum rfl_rc rc;

	if (a->columns.n == 1 && strcmp(a->columns.items[0], "help") == 0)
		return rfl_cli_put_table(cli, rfl_complexity_columns_table(),
					 (enum rfl_format)a->format, err);
	rfl_complexity_needs(&c.r,
			     a->fit || a->summary || a->output_dir || a->format == RFL_FORMAT_JSON);
	if ((rc = find_peers(&c, err)) || (a->fit && (rc = find_device(&c, err))) ||
	    (rc = find_ceilings(&c, err)))
		return rc;
	if (a->phase) {
		if ((rc = rfl_complexity_lm(&c, &out, err)))
			return rc;
		return rfl_cli_put_as(cli, (enum rfl_format)a->format, &out, "complexity", err);
	}
	if ((rc = find_roof(&c, err)) || (rc = add_nets(&c, err)) || (rc = check(&c, err)))
		return rc;
	for (size_t i = 0; a->fit && i < c.r.n && rc == RFL_OK; i++)
		rc = rfl_summary_fit(c.r.items[i], a->train,
				     c.r.device.memory_bytes - c.r.device.reserve_bytes,
				     c.r.batches[0], err);
	if (rc || (rc = put_answer(&c, &out, err)))
		return rc;
	return rfl_cli_put_as(cli, (enum rfl_format)a->format, &out, "complexity", err);
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
		"--as, compares with other FLOP counters; with --peaks and --env, adds the minimum "
		"time of every operation under measured ceilings. With --phase, "
		"counts a pass of a language model with a cache of keys and values.",
	.example = "roofline complexity --models resnet50 vgg16 --batch-sizes 16 32 --train\n"
		   "roofline complexity --models resnet50 --train --fit \"NVIDIA L4\"\n"
		   "roofline complexity --models gpt2 --context-length 256 512 1024 --attention "
		   "naive\n"
		   "roofline complexity --phase decode --models llama3_8b --weights int4 --past "
		   "4096 --batch-sizes 1 16 --sheet \"NVIDIA L4\"",
	.opts = opts,
	.args_size = sizeof(struct complexity_args),
	.run = run,
};
