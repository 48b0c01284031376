/*
 * cmd_complexity.c - roofline complexity: what the zoo's networks cost, without running them.
 */
#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/put.h"
#include "complexity/complexity.h"
#include "rfl_config.h"

struct complexity_args {
	struct rfl_opt_list models;
	struct rfl_opt_int_list batches;
	const char *output_dir;
	int64_t image_size, classes, depth, top;
	bool train, input_grad;
	int optimizer, precision, fusion, by, format;
};

#define AT(member) offsetof(struct complexity_args, member)

enum { MAX_SIZE = 1 << 20, MAX_BATCH = 1 << 30, FUSION_ALL = 0 };

/* "all", then the levels in the order of enum rfl_fusion. */
static const char *const fusion_names[] = { "all", "unfused", "fused", "compulsory", NULL };

static const struct rfl_opt opts[] = {
	{ .letter = 'm',
	  .name = "models",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(models),
	  .def = "resnet50 vgg16 mobilenet_v2",
	  .help = "models of the zoo, or 'all'; see 'roofline list models'" },
	{ .letter = 'b',
	  .name = "batch-sizes",
	  .meta = "N",
	  .kind = RFL_OPT_INT_LIST,
	  .offset = AT(batches),
	  .def = "1",
	  .min = 1,
	  .max = MAX_BATCH,
	  .help = "samples per step" },
	{ .letter = 'o',
	  .name = "output-dir",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(output_dir),
	  .help = "also write summary.json and one <model>.txt per model here" },
	{ .name = "image-size",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(image_size),
	  .min = 0,
	  .max = MAX_SIZE,
	  .def = "0",
	  .help = "height and width of the images; 0 is the model's own" },
	{ .name = "classes",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(classes),
	  .min = 0,
	  .max = MAX_SIZE,
	  .def = "0",
	  .help = "outputs of the classifier; 0 is the model's own" },
	{ .name = "train",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(train),
	  .help = "show a training step, not an inference (the JSON document has both)" },
	{ .name = "input-grad",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(input_grad),
	  .help = "the image needs a gradient too, so the first layer has a dgrad" },
	{ .name = "optimizer",
	  .meta = "NAME",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(optimizer),
	  .choices = rfl_optimizer_names,
	  .def = "momentum",
	  .help = "update of a training step; momentum is the sgd of 'roofline run'" },
	{ .name = "precision",
	  .meta = "NAME",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(precision),
	  .choices = rfl_precision_words,
	  .def = "fp32",
	  .help = "of what is stored: bytes per element" },
	{ .name = "fusion",
	  .meta = "LEVEL",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(fusion),
	  .choices = fusion_names,
	  .def = "all",
	  .help = "level at which bytes are shown" },
	{ .name = "by",
	  .meta = "WHAT",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(by),
	  .choices = rfl_by_names,
	  .def = "model",
	  .help = "one row per what" },
	{ .name = "depth",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(depth),
	  .def = "1",
	  .min = 1,
	  .max = 8,
	  .help = "parts of the path that make a module, with --by module" },
	{ .name = "top",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(top),
	  .def = "0",
	  .min = 0,
	  .max = MAX_SIZE,
	  .help = "tables show only the N rows with the most MACs, most first; 0 shows all" },
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};

/* The summaries of one run of the command. */
struct report {
	struct rfl_summary_options options;
	struct rfl_summary **items;
	size_t n;
};

static void report_fini(struct report *r)
{
	for (size_t i = 0; i < r->n; i++)
		rfl_summary_free(r->items[i]);
	free(r->items);
}

static size_t zoo_size(void)
{
	size_t n = 0;

	while (rfl_zoo_at(n))
		n++;
	return n;
}

/* A model that was named twice stands there once. */
static enum rfl_rc add_model(struct report *r, const char *name, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->items[i]->model->name, name) == 0)
			return RFL_OK;
	rc = rfl_summary_new(name, &r->options, &r->items[r->n], &why);
	if (rc == RFL_OK) {
		r->n++;
		return RFL_OK;
	}
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--models: %s", why.msg);
	if (rc == RFL_EINVAL)
		return rfl_fail(err, RFL_EUSAGE, 0, "--image-size: %s", why.msg);
	return rfl_fail(err, rc, why.native, "%s", why.msg);
}

static enum rfl_rc add_models(struct report *r, const struct rfl_opt_list *names,
			      struct rfl_err *err)
{
	size_t all = zoo_size();
	enum rfl_rc rc = RFL_OK;

	r->items = rfl_alloc_array(all, sizeof(struct rfl_summary *));
	if (!r->items)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < names->n && rc == RFL_OK; i++) {
		if (strcmp(names->items[i], "all") != 0) {
			rc = add_model(r, names->items[i], err);
			continue;
		}
		for (size_t k = 0; k < all && rc == RFL_OK; k++)
			rc = add_model(r, rfl_zoo_at(k)->name, err);
	}
	return rc;
}

static enum rfl_rc write_text(const struct report *r, const struct rfl_summary *s, const char *dir,
			      struct rfl_err *err)
{
	char *path = NULL;
	struct rfl_buf name, text;
	enum rfl_rc rc;

	rfl_buf_init(&name, 0);
	rfl_buf_init(&text, 0);
	rfl_buf_printf(&name, "%s.txt", s->model->name);
	rc = rfl_buf_check(&name, dir, err);
	if (rc == RFL_OK)
		rc = rfl_summary_text(s, &r->options, &text, err);
	if (rc != RFL_OK)
		goto done;
	path = rfl_path_join(dir, rfl_buf_str(&name));
	if (!path)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
	else
		rc = rfl_file_write(path, text.data, text.len, err);
done:
	free(path);
	rfl_buf_fini(&name);
	rfl_buf_fini(&text);
	return rc;
}

static enum rfl_rc write_dir(const struct report *r, json_t *document, const char *dir,
			     struct rfl_err *err)
{
	char *path = NULL;
	enum rfl_rc rc = rfl_file_mkdirs(dir, err);

	if (rc != RFL_OK)
		return rc;
	path = rfl_path_join(dir, "summary.json");
	rc = path ? rfl_json_save(path, document, err)
		  : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
	free(path);
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		rc = write_text(r, r->items[i], dir, err);
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %s/summary.json and %zu list%s of layers", dir, r->n,
			r->n == 1 ? "" : "s");
	return rc;
}

/* The document is made once: for the file, for standard output, or for both. */
static enum rfl_rc make(const struct report *r, const struct complexity_args *a,
			struct rfl_buf *out, struct rfl_err *err)
{
	json_t *document = NULL;
	enum rfl_rc rc = RFL_OK;

	if (a->output_dir || a->format == RFL_FORMAT_JSON)
		rc = rfl_summary_json(r->items, r->n, &r->options, RFL_VERSION, &document, err);
	if (rc == RFL_OK && a->output_dir)
		rc = write_dir(r, document, a->output_dir, err);
	if (rc == RFL_OK && a->format == RFL_FORMAT_JSON) {
		rfl_json_write(out, document);
		rfl_buf_putc(out, '\n');
	} else if (rc == RFL_OK) {
		rc = rfl_summary_table(r->items, r->n, &r->options, (enum rfl_format)a->format, out,
				       err);
	}
	json_decref(document);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct complexity_args *a = args;
	struct report r = {
		.options = {
			.sizes = { .image_size = a->image_size, .classes = a->classes },
			.batches = a->batches.items,
			.nbatches = a->batches.n,
			.precision = rfl_precision_words[a->precision],
			.optimizer = (enum rfl_optimizer_kind)a->optimizer,
			.input_grad = a->input_grad,
			.by = (enum rfl_by)a->by,
			.depth = (int)a->depth,
			.top = (size_t)a->top,
			.train = a->train,
			.fusion = a->fusion == FUSION_ALL ? -1 : a->fusion - 1,
		},
	};
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = add_models(&r, &a->models, err);
	if (rc == RFL_OK)
		rc = make(&r, a, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put(cli, &out, "complexity", err);
	rfl_buf_fini(&out);
	report_fini(&r);
	return rc;
}

const struct rfl_cmd rfl_cmd_complexity = {
	.name = "complexity",
	.summary = "count parameters, MACs, FLOPs and bytes of models",
	.description =
		"Counts networks without running them: multiply-adds of the forward pass, of the "
		"gradients by input and by weight, elementwise operations, and the bytes that must "
		"move at three levels of fusion. Both MACs and FLOPs (2 per MAC) are always shown.",
	.example = "roofline complexity --models resnet50 vgg16 --batch-sizes 16 32 --train\n"
		   "roofline complexity --models mobilenet_v2 --by layer --format csv\n"
		   "roofline complexity --batch-sizes 16 32 64 128 --output-dir "
		   "logs/model_summaries",
	.opts = opts,
	.args_size = sizeof(struct complexity_args),
	.operands_offset = -1,
	.run = run,
};
