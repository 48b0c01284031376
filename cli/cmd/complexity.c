/*
 * complexity.c - roofline complexity: what networks cost, without running them.
 */
#include "cli/cmd/complexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/put.h"
#include "machine/terms.h"
#include "rfl_config.h"

#define AT(member) offsetof(struct rfl_complexity_args, member)

enum { MAX_SIZE = 1 << 20, MAX_CONTEXT = 1 << 24, MAX_BATCH = 1 << 30 };

/* RFL_FUSION_AUTO, RFL_FUSION_ALL, then the levels in the order of enum rfl_fusion. */
static const char *const fusion_names[] = { "auto", "all", "unfused", "fused", "compulsory", NULL };
static const char *const causal_names[] = { "full", "half", NULL };
/* In the order of enum rfl_memory_device. */
static const char *const device_names[] = { "gpu", "cpu", NULL };

#define TEXT(name_, meta_, member_, help_)                                                 \
	{                                                                                  \
		.name = name_, .meta = meta_, .kind = RFL_OPT_TEXT, .offset = AT(member_), \
		.help = help_                                                              \
	}
#define LIST(name_, meta_, member_, help_)                                                 \
	{                                                                                  \
		.name = name_, .meta = meta_, .kind = RFL_OPT_LIST, .offset = AT(member_), \
		.help = help_                                                              \
	}
#define FLAG(name_, member_, help_)                                                       \
	{                                                                                 \
		.name = name_, .kind = RFL_OPT_FLAG, .offset = AT(member_), .help = help_ \
	}
#define INT(name_, member_, min_, max_, def_, help_)                                    \
	{                                                                               \
		.name = name_, .meta = "N", .kind = RFL_OPT_INT, .offset = AT(member_), \
		.min = (min_), .max = (max_), .def = def_, .help = help_                \
	}
#define CHOICE(name_, meta_, member_, choices_, def_, help_)                                 \
	{                                                                                    \
		.name = name_, .meta = meta_, .kind = RFL_OPT_CHOICE, .offset = AT(member_), \
		.choices = choices_, .def = def_, .help = help_                              \
	}

static const struct rfl_opt opts[] = {
	{ .group = "Networks",
	  .letter = 'm',
	  .name = "models",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(models),
	  .help = "models of the zoo, or 'all'; see 'roofline list models'; without this and --net "
		  "resnet50, vgg16 and mobilenet_v2" },
	LIST("net", "FILE", nets, "networks of your own, as JSON files (docs/net.md)"),
	{ .letter = 'b',
	  .name = "batch-sizes",
	  .meta = "N",
	  .kind = RFL_OPT_INT_LIST,
	  .offset = AT(batches),
	  .def = "1",
	  .min = 1,
	  .max = MAX_BATCH,
	  .help = "samples of one pass" },
	{ .name = "context-length",
	  .meta = "N",
	  .kind = RFL_OPT_INT_LIST,
	  .offset = AT(contexts),
	  .min = 1,
	  .max = MAX_CONTEXT,
	  .help = "tokens of a sample of a language model; without it the model's own" },
	INT("image-size", image_size, 0, MAX_SIZE, "0",
	    "height and width of the images; 0 is the model's own"),
	INT("classes", classes, 0, MAX_SIZE, "0",
	    "outputs of the classifier, tokens of a vocabulary; 0 is the model's own"),
	CHOICE("attention", "HOW", attention, rfl_attention_names, "auto",
	       "how attention is written: composed, naive (two products and a softmax), sdpa (one "
	       "fused operation), or auto, as the published code has it"),
	CHOICE("causal", "HOW", causal, causal_names, "full",
	       "products under a causal mask: the full square, or the half that is needed"),

	{ .group = "Training and storage",
	  .name = "train",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(train),
	  .help = "show a training step, not an inference (the JSON document has both)" },
	FLAG("input-grad", input_grad,
	     "the image needs a gradient too, so the first layer has a dgrad"),
	FLAG("aux", auxiliary, "training runs the auxiliary heads of GoogLeNet and Inception"),
	LIST("freeze", "PATH", frozen, "modules whose parameters are not trained"),
	INT("checkpoint", checkpoint, 0, MAX_SIZE, "0",
	    "activation checkpointing: so many blocks are run again as one; 0 is none"),
	INT("accumulate", accumulate, 1, MAX_SIZE, "1",
	    "passes per update, for memory: gradients stay between them"),
	CHOICE("optimizer", "NAME", optimizer, rfl_optimizer_names, "momentum",
	       "update of a training step; momentum is the sgd of 'roofline run'"),
	CHOICE("update", "HOW", update, rfl_update_names, "foreach",
	       "how the update runs, for memory: over all parameters at once, one after the "
	       "other, or in one kernel"),
	CHOICE("precision", "NAME", precision, rfl_precision_names, "fp32",
	       "of what is stored: bytes per element"),
	CHOICE("device", "WHERE", device, device_names, "gpu",
	       "whose PyTorch the memory is of: a dropout keeps more on a CPU"),

	{ .group = "Other counters, memory, time",
	  .name = "as",
	  .meta = "TOOL",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(peers),
	  .help = "what other counters say of a forward pass, beside ours: names, or 'all'" },
	{ .name = "fit",
	  .meta = "DEVICE",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(fit),
	  .against = "as",
	  .help = "the largest batch, and context, that fits a device (\"NVIDIA L4\") or a size "
		  "(24GiB, 80e9)" },
	TEXT("reserve", "BYTES", reserve,
	     "with --fit, what is kept back of the memory; without it 1/16 and 512 MiB of a "
	     "device, nothing of a size"),
	TEXT("peaks", "FILE", peaks, "ceilings, for least times and bounds; with --env"),
	TEXT("env", "NAME", env, "environment of --peaks"),

	{ .group = "Output",
	  .name = "fusion",
	  .meta = "LEVEL",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(fusion),
	  .choices = fusion_names,
	  .def = "auto",
	  .help = "level at which bytes are shown; auto: tables have FLOPs per fused byte only, "
		  "csv "
		  "and json all levels; least times take fused for auto and all" },
	CHOICE("by", "WHAT", by, rfl_summary_by_names, "model", "one row per what"),
	INT("depth", depth, 1, 8, "1", "parts of the path that make a module, with --by module"),
	INT("top", top, 0, MAX_SIZE, "0",
	    "tables show only the N rows with the most MACs, most first; 0 shows all"),
	LIST("columns", "KEY", columns,
	     "columns of the table; 'help' lists them, 'report' is the table of older reports"),
	{ .name = "summary",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(summary),
	  .against = "fit as columns",
	  .help = "print the list of layers of each network instead of a table" },
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .letter = 'o',
	  .name = "output-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(output_dir),
	  .help = "also write summary.json and one <model>.txt per model here" },
	TEXT("write-net", "DIR", write_net,
	     "also write each network here as <model>.json, for --net"),
	{ .name = NULL },
};

static enum rfl_rc check(const struct rfl_complexity_run *run, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = run->args;
	const bool document = a->output_dir || (a->format == RFL_FORMAT_JSON && !a->summary);
	bool zoo = false;

	if (a->summary && a->format != RFL_FORMAT_TABLE)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--summary prints lists of layers as text: it takes no --format");
	if (a->batches.n > 1 && !document &&
	    (a->summary || (a->fit && rfl_complexity_has_text(&run->r))))
		return rfl_fail(err, RFL_EUSAGE, 0, "--batch-sizes: %s takes one, not %zu",
				a->fit ? "--fit" : "--summary", a->batches.n);
	for (size_t i = 0; i < run->r.n; i++)
		zoo = zoo || run->r.items[i]->model;
	if (!zoo && (a->image_size || a->classes || a->contexts.n))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--%s: a network from a file has the sizes that are written there",
				a->image_size ? "image-size"
				: a->classes  ? "classes"
					      : "context-length");
	return RFL_OK;
}

/* The document is made once: for the file, for standard output, or for both. */
static enum rfl_rc put_answer(const struct rfl_complexity_run *run, struct rfl_buf *out,
			      struct rfl_err *err)
{
	const struct rfl_complexity_args *a = run->args;
	const struct rfl_complexity *r = &run->r;
	const enum rfl_format format = (enum rfl_format)a->format;
	const bool json = format == RFL_FORMAT_JSON;
	struct rfl_err why = RFL_ERR_INIT;
	json_t *document = NULL;
	enum rfl_rc rc = RFL_OK;

	if (a->output_dir || json)
		rc = rfl_complexity_json(r, RFL_VERSION, &document, err);
	if (rc == RFL_OK)
		rc = rfl_complexity_write(run, document, err);
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
	rc = rfl_complexity_table(r, format, out, &why);
	if (rc == RFL_ENOTFOUND || rc == RFL_EINVAL)
		return rfl_fail(err, RFL_EUSAGE, 0, "--columns: %s", why.msg);
	return rc == RFL_OK ? rc : rfl_fail(err, rc, why.native, "%s", why.msg);
}

static enum rfl_rc answer(struct rfl_complexity_run *run, struct rfl_buf *out, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = run->args;
	struct rfl_complexity *r = &run->r;
	enum rfl_rc rc;

	if (a->columns.n == 1 && strcmp(a->columns.items[0], "help") == 0)
		return rfl_complexity_columns_table((enum rfl_format)a->format, out, err);
	rfl_complexity_needs(r,
			     a->fit || a->summary || a->output_dir || a->format == RFL_FORMAT_JSON);
	rc = rfl_complexity_ask(run, err);
	if (rc == RFL_OK)
		rc = rfl_complexity_add_nets(run, err);
	if (rc == RFL_OK)
		rc = check(run, err);
	for (size_t i = 0; a->fit && i < r->n && rc == RFL_OK; i++)
		rc = rfl_summary_fit(r->items[i], a->train,
				     r->device.memory_bytes - r->device.reserve_bytes,
				     r->batches[0], err);
	return rc == RFL_OK ? put_answer(run, out, err) : rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = args;
	struct rfl_complexity_run run = {
		.args = a,
		.r = {
			.options = {
				.sizes = { .image_size = a->image_size,
					   .classes = a->classes,
					   .attention = (enum rfl_attention)a->attention },
				.precision = rfl_precision_names[a->precision],
				.optimizer = (enum rfl_optimizer_kind)a->optimizer,
				.input_grad = a->input_grad,
				.causal_half = a->causal == 1,
				.auxiliary = a->auxiliary,
				.checkpoint = a->checkpoint,
				.accumulate = a->accumulate,
				.frozen = a->frozen.items,
				.nfrozen = a->frozen.n,
				.device = (enum rfl_memory_device)a->device,
				.update = (enum rfl_update)a->update,
				.by = (enum rfl_summary_by)a->by,
				.depth = (int)a->depth,
			},
			.batches = a->batches.items,
			.nbatches = a->batches.n,
			.train = a->train,
			.fusion = a->fusion + RFL_FUSION_AUTO,
			.top = (size_t)a->top,
			.columns = a->columns.items,
			.ncolumns = a->columns.n,
		},
	};
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = answer(&run, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, (enum rfl_format)a->format, &out, "complexity", err);
	rfl_buf_fini(&out);
	for (size_t i = 0; i < run.r.n; i++)
		rfl_summary_free(run.r.items[i]);
	free(run.r.items);
	free(run.r.peers);
	rfl_peaks_free(run.peaks);
	rfl_devices_free(run.devices);
	return rc;
}

const struct rfl_cmd rfl_cmd_complexity = {
	.name = "complexity",
	.summary = "count parameters, FLOPs, bytes and memory of networks",
	.description =
		"Counts networks without running them: multiply-adds of the forward pass, of the "
		"gradients by input and by weight, elementwise operations, the bytes that must "
		"move at three levels of fusion, and with --train the memory of a training step. "
		"A MAC is one multiply-add, and a FLOP count is 2 per MAC.\n\n"
		"--fit asks for the largest batch that fits a memory, --as for what another "
		"counter would print, --peaks and --env for the least time of every operation "
		"under measured ceilings.",
	.example = "roofline complexity --models resnet50 vgg16 --batch-sizes 16 32 --train\n"
		   "roofline complexity --models mobilenet_v2 --by layer --format csv\n"
		   "roofline complexity --models resnet50 --train --fit \"NVIDIA L4\"\n"
		   "roofline complexity --models vit_b_16 --as fvcore torchinfo\n"
		   "roofline complexity --models gpt2 --context-length 256 512 1024 --attention "
		   "naive\n"
		   "roofline complexity --models resnet50 --by kind --peaks peaks.json --env "
		   "lab_cpu\n"
		   "roofline complexity --batch-sizes 16 32 64 128 --output-dir "
		   "logs/model_summaries",
	.opts = opts,
	.args_size = sizeof(struct rfl_complexity_args),
	.operands_offset = -1,
	.run = run,
};
