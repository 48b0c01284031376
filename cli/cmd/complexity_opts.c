/*
 * complexity_opts.c - the options of roofline complexity.
 */
#include "cli/cmd/complexity.h"
#include "cli/put.h"

#define AT(member) offsetof(struct rfl_complexity_args, member)

enum { MAX_SIZE = 1 << 20, MAX_CONTEXT = 1 << 24, MAX_BATCH = 1 << 30 };

/* "all", then the levels in the order of enum rfl_fusion. */
static const char *const fusion_names[] = { "all", "unfused", "fused", "compulsory", NULL };
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

const struct rfl_opt rfl_complexity_opts[] = {
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
	CHOICE("precision", "NAME", precision, rfl_precision_words, "fp32",
	       "of what is stored: bytes per element"),
	CHOICE("device", "WHERE", device, device_names, "gpu",
	       "whose PyTorch the memory is of: a dropout keeps more on a CPU"),

	{ .group = "Other counters, memory, time",
	  .name = "as",
	  .meta = "TOOL",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(peers),
	  .help = "what other counters say of a forward pass, beside ours: names, or 'all'" },
	TEXT("fit", "DEVICE", fit,
	     "the largest batch, and context, that fits a device (\"NVIDIA L4\") or a size "
	     "(24GiB, 80e9)"),
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
	  .def = "all",
	  .help = "level at which bytes are shown; least times take fused where it is all" },
	CHOICE("by", "WHAT", by, rfl_by_names, "model", "one row per what"),
	INT("depth", depth, 1, 8, "1", "parts of the path that make a module, with --by module"),
	INT("top", top, 0, MAX_SIZE, "0",
	    "tables show only the N rows with the most MACs, most first; 0 shows all"),
	LIST("columns", "KEY", columns,
	     "columns of the table; 'help' lists them, 'report' is the table of older reports"),
	FLAG("summary", summary, "print the list of layers of each network instead of a table"),
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
