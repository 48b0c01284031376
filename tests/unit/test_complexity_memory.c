/*
 * test_complexity_memory.c - what a step takes in memory beside what was measured: the tensors that
 * PyTorch keeps, by class and by producer, to the byte; peaks of steps that PyTorch made on a CPU;
 * peaks that others measured on a GPU; and the tables of docs/internals/memory.md.
 */
#include "tests/unit/published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "complexity/count/memory.h"
#include "complexity/count/memory_impl.h"

#define MIB 1048576.0

enum {
	LOSS_WEIGHT = 4, /* cross entropy also keeps the sum of its classes' weights: one float */
	SMALL = 4 * 4096,
};

static struct rfl_memory *memory_of(const struct rfl_net *net, struct rfl_memory_options options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_memory *m = NULL;

	if (!options.count.batch)
		options.count.batch = 1;
	assert_ok(rfl_memory_new(net, &options, &m, &err), &err);
	return m;
}

static const struct rfl_memory_options on_cpu = {
	.count = { .training = true },
	.device = RFL_MEMORY_CPU,
};

/* --- the tensors that autograd keeps --- */

/* Something that is kept: a storage, or what an operation keeps beside tensors. */
struct item {
	int64_t bytes;
	const char *producer;   /* as the reference names it */
	const char *size_class; /* NULL: floating, by its size */
};

#define MAX_ITEMS 4096

static int add_item(struct item *items, int n, int64_t bytes, const char *producer,
		    const char *size_class)
{
	if (bytes == 0)
		return n;
	assert_true(n < MAX_ITEMS);
	items[n] = (struct item){ .bytes = bytes, .producer = producer, .size_class = size_class };
	return n + 1;
}

/* On a CPU a dropout is a product with noise. */
static const char *producer_of(const struct rfl_node *node)
{
	return node->op == RFL_OP_DROPOUT ? "MulBackward0" : rfl_op_info_of(node->op)->autograd;
}

static int extras_of(const struct rfl_memory_workspace *w, int i, struct item *items, int n)
{
	const int64_t *saved = w->extras[i].saved_class;
	const struct rfl_node *node = w->links->contexts[i].node;
	int64_t statistics = saved[RFL_SAVED_CLASS_STATISTICS];
	bool causal = node->op == RFL_OP_CAUSAL_MASK;

	n = add_item(items, n, saved[RFL_SAVED_CLASS_CLONES], "CloneBackward0", NULL);
	n = add_item(items, n, saved[RFL_SAVED_CLASS_INDICES],
		     "MaxPool2DWithIndicesBackward0.result1", "int64_indices");
	n = add_item(items, n, saved[RFL_SAVED_CLASS_MASKS],
		     causal ? "MaskedFillBackward0.mask" : "MulBackward0.other",
		     causal ? "masks" : NULL);
	n = add_item(items, n, statistics / 2, "NativeBatchNormBackward0.result1", NULL);
	n = add_item(items, n, statistics - statistics / 2, "NativeBatchNormBackward0.result2",
		     NULL);
	n = add_item(items, n, saved[RFL_SAVED_CLASS_LOSS], "LogSoftmaxBackward0", NULL);
	return add_item(items, n, saved[RFL_SAVED_CLASS_ACTIVATIONS], "", NULL);
}

static int items_of(const struct rfl_memory *m, struct item *items)
{
	const struct rfl_memory_workspace *w = m->workspace;
	int n = add_item(items, 0, w->labels, "(labels)", "input_and_labels");

	n = add_item(items, n, LOSS_WEIGHT, "NllLossBackward0.total_weight", NULL);
	for (int i = 0; i < w->links->nops; i++) {
		const struct rfl_memory_tensor *t = &w->tensors[i];

		if (t->root == i && t->life[RFL_LIFE_KEPT].end != RFL_MEMORY_NOBODY)
			n = add_item(items, n, t->size,
				     t->given ? "(input)"
					      : producer_of(w->links->contexts[t->saved_as].node),
				     t->given ? "input_and_labels" : NULL);
		n = extras_of(w, i, items, n);
	}
	return n;
}

static const char *class_of(const struct item *item)
{
	if (item->size_class)
		return item->size_class;
	return item->bytes > SMALL ? "activations" : "small_up_to_16KiB";
}

/*
 * Buffers of modules are left out: they are there anyway. tiny_lm is compared by class only,
 * because PyTorch makes three nodes of a linear layer over three dimensions.
 */
static void keeps_what_pytorch_keeps(void **state)
{
	struct rfl_csv *csv = open_published("saved_tensors.csv");
	struct item *items = calloc(MAX_ITEMS, sizeof(*items));
	char model[64] = "";
	struct rfl_net *net = NULL;
	struct rfl_memory *m = NULL;
	int n = 0, rows = 0;

	(void)state;
	assert_non_null(items);
	while (next(csv)) {
		const char *group = text(csv, "group"), *key = text(csv, "key");
		bool by_class = strcmp(group, "class") == 0;
		int64_t bytes = 0;

		if (strcmp(model, text(csv, "model")) != 0) {
			rfl_memory_free(m);
			rfl_net_free(net);
			(void)snprintf(model, sizeof(model), "%s", text(csv, "model"));
			net = build(model);
			m = memory_of(net, on_cpu);
			n = items_of(m, items);
		}
		if ((!by_class && strcmp(group, "producer") != 0) ||
		    strcmp(key, "module_buffers") == 0 || strcmp(key, "(module_buffer)") == 0 ||
		    (!by_class && strcmp(model, "tiny_lm") == 0))
			continue;
		for (int i = 0; i < n; i++)
			if (strcmp(key, by_class ? class_of(&items[i]) : items[i].producer) == 0)
				bytes += items[i].bytes;
		if (bytes != integer(csv, "storage_bytes"))
			fail_msg("%s: %s: %lld bytes, PyTorch keeps %lld", model, key,
				 (long long)bytes, (long long)integer(csv, "storage_bytes"));
		rows++;
	}
	assert_int_equal(rows, 78);
	rfl_memory_free(m);
	rfl_net_free(net);
	free(items);
	rfl_csv_close(csv);
}

/* --- steps that PyTorch made on a CPU --- */

static double percent(double computed, double measured)
{
	return 100.0 * (computed - measured) / measured;
}

/* A line that docs/internals/memory.md must have. */
static void documented(const struct rfl_buf *doc, const char *row)
{
	if (!strstr(rfl_buf_str(doc), row))
		fail_msg("docs/internals/memory.md lacks the row %s", row);
}

static void read_doc(struct rfl_buf *doc)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(doc, 0);
	assert_ok(rfl_file_read(data_path("../../docs/internals/memory.md"), doc, &err), &err);
}

/*
 * What is kept and what is there is exact; but Swin makes its masks of constants anew in each pass,
 * and keeps the clamped norms of version 2's cosine attention. The peaks are what they are without
 * the copies that oneDNN's convolutions make of images and weights in an order of their own, and
 * without its workspaces: those are what is missing.
 */
static void peaks_as_on_a_cpu(void **state)
{
	struct rfl_csv *csv = open_published("step_memory.csv");
	struct rfl_buf doc;
	char row[256], a[RFL_NUM_MAX];

	(void)state;
	read_doc(&doc);
	while (next(csv)) {
		struct rfl_memory_options options = on_cpu;
		struct rfl_net *net = build(text(csv, "model"));
		struct rfl_memory *m;
		double forward, backward, slack;
		int64_t saved, present;

		options.count.batch = integer(csv, "batch");
		options.count.auxiliary = strcmp(net->model, "inception_v3") == 0;
		m = memory_of(net, options);
		saved = m->saved + LOSS_WEIGHT * (m->workspace->links->nops - m->nnodes);
		present = m->weights + m->buffers + m->input;
		slack = strncmp(net->model, "swin", 4) == 0 ? 0.015 : 0.0;
		assert_close((double)saved, (double)integer(csv, "saved_bytes"), slack);
		assert_close((double)present, (double)integer(csv, "present_bytes"), slack);
		forward = percent((double)m->phase_peak[RFL_PHASE_FORWARD],
				  (double)integer(csv, "forward_peak_bytes"));
		backward = percent((double)m->phase_peak[RFL_PHASE_BACKWARD],
				   (double)integer(csv, "backward_peak_bytes"));
		(void)snprintf(row, sizeof(row), "| %s | %s | %+.2f | %+.2f |\n", net->model,
			       rfl_num_grouped(m->saved, a), forward, backward);
		documented(&doc, row);
		assert_true(forward > -10.0 && forward < 0.5);
		assert_true(backward > -10.0 && backward < 0.5);
		rfl_memory_free(m);
		rfl_net_free(net);
	}
	rfl_buf_fini(&doc);
	rfl_csv_close(csv);
}

/* As the page says it: "training, checkpoint 2". */
static void say_step(struct rfl_csv *csv, struct rfl_buf *out)
{
	rfl_buf_puts(out, integer(csv, "training") ? "training" : "inference");
	if (integer(csv, "checkpoint"))
		rfl_buf_printf(out, ", checkpoint %s", text(csv, "checkpoint"));
	if (integer(csv, "accumulate") > 1)
		rfl_buf_printf(out, ", accumulate %s", text(csv, "accumulate"));
	if (strcmp(text(csv, "optimizer"), "sgd") != 0)
		rfl_buf_printf(out, ", %s %s", text(csv, "optimizer"), text(csv, "update"));
}

static int index_of(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	fail_msg("unknown word %s", word);
	return -1;
}

/* cs336_small, written out in steps. */
static void peaks_of_a_language_model(void **state)
{
	struct rfl_csv *csv = open_published("step_memory_lm.csv");
	struct rfl_buf doc, row;
	int rows = 0;

	(void)state;
	read_doc(&doc);
	rfl_buf_init(&row, 0);
	for (; next(csv); rows++) {
		const struct rfl_zoo_options shape = { .context_length = integer(csv, "ctx"),
						       .attention = RFL_ATTENTION_COMPOSED };
		struct rfl_memory_options options = {
			.count = {
				.batch = integer(csv, "batch"),
				.training = integer(csv, "training"),
				.checkpoint = integer(csv, "checkpoint"),
				.optimizer = (enum rfl_optimizer_kind)index_of(
					text(csv, "optimizer"), rfl_optimizer_names),
			},
			.device = RFL_MEMORY_CPU,
			.update = (enum rfl_update)index_of(text(csv, "update"), rfl_update_names),
			.accumulate = integer(csv, "accumulate"),
		};
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;
		struct rfl_memory *m;
		int64_t measured = integer(csv, "peak_bytes"), computed;
		char a[RFL_NUM_MAX], b[RFL_NUM_MAX];
		double error;

		assert_ok(rfl_zoo_build("cs336_small", &shape, &net, &err), &err);
		m = memory_of(net, options);
		computed = m->phase_peak[index_of(text(csv, "phase"), rfl_phase_names)];
		error = percent((double)computed, (double)measured);
		rfl_buf_reset(&row);
		rfl_buf_printf(&row, "| %s | ", text(csv, "ctx"));
		say_step(csv, &row);
		rfl_buf_printf(&row, " | %s | %s | %s | %+.4f |\n", text(csv, "phase"),
			       rfl_num_grouped(computed, a), rfl_num_grouped(measured, b), error);
		documented(&doc, rfl_buf_str(&row));
		assert_true(fabs(error) < 0.6);
		rfl_memory_free(m);
		rfl_net_free(net);
	}
	assert_int_equal(rows, 16);
	rfl_buf_fini(&row);
	rfl_buf_fini(&doc);
	rfl_csv_close(csv);
}

/* --- what others measured on a GPU --- */

/* The row asks for a peak that the program knows. Without an optimizer nothing is kept for it and
 * the step is not made. */
static bool peak_options(struct rfl_csv *csv, struct rfl_memory_options *options)
{
	const char *quantity = text(csv, "quantity"), *k = strstr(quantity, "checkpoint_k");

	*options = (struct rfl_memory_options){
		.count = {
			.batch = integer(csv, "batch"),
			.training = strcmp(quantity, "forward_only_peak_allocated") != 0,
			.optimizer = k ? RFL_OPT_SGD : RFL_OPT_ADAMW,
			.checkpoint = k ? strtoll(k + strlen("checkpoint_k"), NULL, 10) : 0,
			.master_weights = strcmp(text(csv, "dtype"), "bf16-autocast") == 0,
		},
	};
	if (options->count.master_weights)
		options->count.dtype = RFL_DTYPE_BF16;
	return k || strcmp(quantity, "train_step_peak_allocated") == 0 ||
	       strcmp(quantity, "forward_only_peak_allocated") == 0;
}

static struct rfl_net *cs336(struct rfl_csv *csv)
{
	static const struct {
		const char *published, *model;
	} names[] = {
		{ "small", "cs336_small" },
		{ "medium", "cs336_medium" },
		{ "large", "cs336_large" },
		{ "2.7B", "cs336_2p7b_2025" },
	};
	struct rfl_zoo_options options = { .context_length = integer(csv, "ctx"),
					   .attention = RFL_ATTENTION_COMPOSED };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].published, text(csv, "model")) == 0)
			assert_ok(rfl_zoo_build(names[i].model, &options, &net, &err), &err);
	assert_non_null(net);
	return net;
}

static void peaks_as_published(void **state)
{
	struct rfl_csv *csv = open_published("cs336_public_measurements.csv");
	struct rfl_memory_options options;
	struct rfl_buf doc;
	int rows = 0;

	(void)state;
	read_doc(&doc);
	while (next(csv)) {
		const char *unit = text(csv, "unit");
		struct rfl_net *net;
		struct rfl_memory *m;
		double computed, measured, error;
		char row[256];

		if (strcmp(unit, "MiB") != 0 || !peak_options(csv, &options))
			continue;
		net = cs336(csv);
		m = memory_of(net, options);
		computed = (double)m->peak / MIB;
		measured = strtod(text(csv, "value"), NULL);
		error = percent(computed, measured);
		(void)snprintf(row, sizeof(row), "| %s | %s | %s | %s | %.2f | %.2f | %+.2f |\n",
			       text(csv, "model"), text(csv, "ctx"), text(csv, "dtype"),
			       text(csv, "quantity"), computed, measured, error);
		documented(&doc, row);
		/* The promise is 7 %; what is known to be missing is smaller. */
		assert_true(fabs(error) < 2.0);
		rows++;
		rfl_memory_free(m);
		rfl_net_free(net);
	}
	assert_int_equal(rows, 13);
	rfl_buf_fini(&doc);
	rfl_csv_close(csv);
}

/* Of the third of 32 blocks, to the two decimals that were published. */
static void block_as_published(void **state)
{
	const struct rfl_zoo_options shape = { .context_length = 128,
					       .attention = RFL_ATTENTION_COMPOSED };
	const struct rfl_memory_options options = { .count = { .batch = 4, .training = true } };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	struct rfl_memory *m;
	int64_t saved = 0, gradients = 0;

	(void)state;
	assert_ok(rfl_zoo_build("cs336_2p7b_2025", &shape, &net, &err), &err);
	m = memory_of(net, options);
	for (int i = 0; i < net->nnodes; i++) {
		if (net->nodes[i].block != 3)
			continue;
		saved += m->node_saved[i];
		gradients += 4 * rfl_node_param_count(net, &net->nodes[i]);
	}
	assert_int_equal(lround(100.0 * (double)saved / MIB), 16621);
	assert_int_equal(lround(100.0 * (double)gradients / MIB), 40002);
	rfl_memory_free(m);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_pytorch_keeps),  cmocka_unit_test(peaks_as_on_a_cpu),
		cmocka_unit_test(peaks_of_a_language_model), cmocka_unit_test(peaks_as_published),
		cmocka_unit_test(block_as_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
