/*
 * complexity.c - roofline complexity: what networks cost, without running them.
 */
#include "cli/cmd/complexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/put.h"
#include "complexity/complexity.h"
#include "rfl_config.h"

static struct rfl_summary_options options_of(const struct rfl_complexity_args *a)
{
	return (struct rfl_summary_options){
		.sizes = { .image_size = a->image_size,
			   .classes = a->classes,
			   .attention = (enum rfl_attention)a->attention },
		.batches = a->batches.items,
		.nbatches = a->batches.n,
		.precision = rfl_precision_words[a->precision],
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
		.by = (enum rfl_by)a->by,
		.depth = (int)a->depth,
		.top = (size_t)a->top,
		.train = a->train,
		.fusion = a->fusion - 1, /* "all" is -1 */
		.columns = a->columns.items,
		.ncolumns = a->columns.n,
	};
}

static void report_fini(struct rfl_complexity_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		rfl_summary_free(r->items[i]);
	free(r->items);
	free(r->peers);
	rfl_peaks_free(r->peaks);
	rfl_devices_free(r->devices);
}

static enum rfl_rc put_summaries(const struct rfl_complexity_report *r, struct rfl_buf *out,
				 struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < r->n && rc == RFL_OK; i++) {
		if (i > 0)
			rfl_buf_putc(out, '\n');
		rc = rfl_summary_text(r->items[i], &r->options, out, err);
	}
	return rc;
}

/* What was asked for, as tables or lists. */
static enum rfl_rc put_answer(const struct rfl_complexity_report *r, struct rfl_buf *out,
			      struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	enum rfl_format format = (enum rfl_format)a->format;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (a->summary)
		return put_summaries(r, out, err);
	if (a->fit)
		return rfl_summary_fit_table(r->items, r->n, &r->options, &r->device, format, out,
					     err);
	if (r->options.npeers)
		return rfl_summary_peers_table(r->items, r->n, &r->options, format, out, err);
	rc = rfl_summary_table(r->items, r->n, &r->options, format, out, &why);
	if (rc == RFL_ENOTFOUND || rc == RFL_EINVAL)
		return rfl_fail(err, RFL_EUSAGE, 0, "--columns: %s", why.msg);
	return rc == RFL_OK ? rc : rfl_fail(err, rc, why.native, "%s", why.msg);
}

/* The document is made once: for the file, for standard output, or for both. */
static enum rfl_rc make(const struct rfl_complexity_report *r, struct rfl_buf *out,
			struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	bool json = a->format == RFL_FORMAT_JSON && !a->summary;
	json_t *document = NULL;
	enum rfl_rc rc = RFL_OK;

	if (a->output_dir || json)
		rc = rfl_summary_json(r->items, r->n, &r->options, a->fit ? &r->device : NULL,
				      RFL_VERSION, &document, err);
	if (rc == RFL_OK && a->output_dir)
		rc = rfl_complexity_write_dir(r, document, err);
	if (rc == RFL_OK && a->write_net)
		rc = rfl_complexity_write_nets(r, err);
	if (rc == RFL_OK && json) {
		rfl_json_write(out, document);
		rfl_buf_putc(out, '\n');
	} else if (rc == RFL_OK) {
		rc = put_answer(r, out, err);
	}
	json_decref(document);
	return rc;
}

static enum rfl_rc fit_all(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	int64_t bytes = r->device.memory_bytes - r->device.reserve_bytes;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; r->args->fit && i < r->n && rc == RFL_OK; i++)
		rc = rfl_summary_fit(r->items[i], &r->options, bytes, r->options.batches[0], err);
	return rc;
}

static enum rfl_rc check_args(const struct rfl_complexity_args *a, struct rfl_err *err)
{
	if (a->summary && (a->fit || a->peers.n || a->columns.n))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--summary prints lists of layers: it takes no --fit, --as or "
				"--columns");
	if (a->summary && a->format != RFL_FORMAT_TABLE)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--summary prints lists of layers as text: it takes no --format");
	if (a->fit && a->peers.n)
		return rfl_fail(err, RFL_EUSAGE, 0, "--fit and --as are two questions: ask one");
	return RFL_OK;
}

static enum rfl_rc answer(struct rfl_complexity_report *r, struct rfl_buf *out, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	enum rfl_rc rc = check_args(a, err);

	if (rc == RFL_OK && a->columns.n == 1 && strcmp(a->columns.items[0], "help") == 0)
		return rfl_summary_columns_table((enum rfl_format)a->format, out, err);
	r->options.both = rfl_summary_wants_both(&r->options);
	r->options.memory = a->fit || a->summary || a->output_dir || a->format == RFL_FORMAT_JSON ||
			    rfl_summary_wants_memory(&r->options);
	if (rc == RFL_OK)
		rc = rfl_complexity_find_peers(r, err);
	if (rc == RFL_OK)
		rc = rfl_complexity_find_device(r, err);
	if (rc == RFL_OK)
		rc = rfl_complexity_find_roof(r, err);
	if (rc == RFL_OK)
		rc = rfl_complexity_add_nets(r, err);
	if (rc == RFL_OK)
		rc = rfl_complexity_check(r, err);
	if (rc == RFL_OK)
		rc = fit_all(r, err);
	return rc == RFL_OK ? make(r, out, err) : rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct rfl_complexity_report r = { .args = args, .options = options_of(args) };
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = answer(&r, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, (enum rfl_format)r.args->format, &out, "complexity", err);
	rfl_buf_fini(&out);
	report_fini(&r);
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
	.opts = rfl_complexity_opts,
	.args_size = sizeof(struct rfl_complexity_args),
	.operands_offset = -1,
	.run = run,
};
