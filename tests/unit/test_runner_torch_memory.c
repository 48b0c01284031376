/* The memory of a step of the torch engine: allocations that are counted, layer by layer, against
 * the prediction. */
#include "tests/unit/torch_rig.h"

#include <math.h>
#include <stdio.h>

#include "complexity/zoo.h"
#include "ledger/step.h"
#include "runner/burst/allocated.h"

static struct {
	struct rfl_net *net;
	struct rfl_engine *engine;
	struct rfl_data *data;
} on;

static void open_zoo(const char *model, int64_t batch, const struct rfl_zoo_options *sizes)
{
	const struct rfl_engine_config config = {
		.threads = 2,
		.max_batch = batch,
		.optimizer = { .rule = RFL_RULE_ADAMW,
			       .lr = 0.001,
			       .beta1 = 0.9,
			       .beta2 = 0.999,
			       .eps = 1e-8 },
		.dropout = true,
	};
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_zoo_build(model, sizes, &on.net, &err), &err);
	assert_ok(ops->open(on.net, &config, &on.engine, &err), &err);
	assert_ok(rfl_fill_engine(ops, on.engine, on.net, 2, &err), &err);
	assert_ok(rfl_data_open(&(struct rfl_data_spec){ .kind = RFL_DATA_SYNTHETIC }, on.net,
				batch, RFL_LAYOUT_NCHW, 1, NULL, &on.data, &err),
		  &err);
}

static void close_zoo(void)
{
	rfl_data_free(on.data);
	ops->close(on.engine);
	rfl_net_free(on.net);
}

/* One ordinary step, after which the state of the optimizer exists. */
static void train(void)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_batch batch;

	assert_ok(rfl_data_next(on.data, &batch, &err), &err);
	assert_ok(ops->zero_grad(on.engine, &err), &err);
	assert_ok(ops->forward(on.engine, &batch, &err), &err);
	assert_ok(ops->backward(on.engine, NULL, &err), &err);
	assert_ok(ops->step(on.engine, &err), &err);
}

static enum rfl_fused_attention fused_attention(void)
{
	struct rfl_ledger_row row;
	char engine[] = "torch", backend[] = "cpu", version[32];

	rfl_ledger_row_init(&row);
	snprintf(version, sizeof(version), "%s", ops->library_version());
	row.engine = engine;
	row.backend = backend;
	row.engine_version = version;
	return rfl_step_fused_attention(&row);
}

static struct rfl_allocated record(int64_t batch, struct rfl_buf *csv)
{
	const struct rfl_counted_config config = { .mode = RFL_RUN_TRAIN };
	const struct rfl_counted_parts parts = { ops, on.engine, on.net, on.data };
	const struct rfl_memory_options options = {
		.count = { .batch = batch,
			   .training = true,
			   .optimizer = RFL_OPT_ADAMW,
			   .fused_attention = fused_attention() },
		.device = RFL_MEMORY_CPU,
		.update = RFL_UPDATE_FUSED,
	};
	struct rfl_allocated a;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_allocated_run(&config, &parts, &options, &a, csv, &err), &err);
	return a;
}

/* The share of the table's layers with a measured peak that is within 7 % of the predicted one. */
static double close_layers(const char *csv)
{
	size_t all = 0, near = 0;

	for (const char *line = strchr(csv, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		double peak, predicted;
		const char *at = line;

		for (int i = 0; i < 4; i++)
			at = strchr(at, ',') + 1;
		if (sscanf(at, "%lf,%lf", &peak, &predicted) != 2)
			continue;
		all++;
		near += fabs(peak / predicted - 1) < 0.07;
	}
	return (double)near / (double)all;
}

static void measured_memory_is_as_predicted(void **state)
{
	static const struct {
		const char *model;
		int64_t batch;
		struct rfl_zoo_options sizes;
		size_t layers; /* rows of the timeline, at least */
		double near;   /* share of them close to the prediction */
	} cases[] = {
		{ "cifar_cnn", 16, { 0 }, 30, 0.9 },
		{ "tiny_lm", 4, { .attention = RFL_ATTENTION_COMPOSED }, 250, 0.9 },
		{ "tiny_lm", 4, { .attention = RFL_ATTENTION_NAIVE }, 130, 0.9 },
		/* whether the library has a fused kernel or not */
		{ "tiny_lm", 4, { .attention = RFL_ATTENTION_SDPA }, 100, 0.9 },
		/* the peak is the attention; the rest has small temporaries */
		{ "tiny_lm",
		  4,
		  { .attention = RFL_ATTENTION_SDPA, .context_length = 256 },
		  100,
		  0.7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_buf csv, again;
		struct rfl_allocated a;
		size_t rows = 0;

		rfl_buf_init(&csv, 0);
		rfl_buf_init(&again, 0);
		open_zoo(cases[i].model, cases[i].batch, &cases[i].sizes);
		train();
		a = record(cases[i].batch, &csv);
		print_message("%s: peak %.0f at %s, predicted %.0f, layers %.3f\n", cases[i].model,
			      a.peak_bytes, a.peak_at, a.predicted_bytes,
			      close_layers(rfl_buf_str(&csv)));
		assert_close(a.peak_bytes, a.predicted_bytes, 0.07);
		assert_true(close_layers(rfl_buf_str(&csv)) > cases[i].near);
		for (size_t k = 0; k < csv.len; k++)
			rows += csv.data[k] == '\n';
		assert_in_range(rows, cases[i].layers, 1000);

		/* activations, then gradients in their place, which stay until the next step */
		assert_true(a.model_bytes < a.backward_bytes);
		assert_true(a.backward_bytes < a.peak_bytes && a.forward_bytes <= a.peak_bytes);
		assert_true(a.optimizer_bytes <= a.backward_bytes);

		/* ordinary steps in between leave nothing behind */
		train();
		(void)record(cases[i].batch, &again);
		assert_string_equal(rfl_buf_str(&csv), rfl_buf_str(&again));
		close_zoo();
		rfl_buf_fini(&csv);
		rfl_buf_fini(&again);
	}
}

static void nothing_is_counted_when_off(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf csv;
	struct rfl_engine_memory memory;

	(void)state;
	open_zoo("tiny_lm", 2, NULL);
	assert_ok(ops->memory(on.engine, &memory, &err), &err);
	assert_true(isnan(memory.now) && isnan(memory.allocated_peak));
	rfl_buf_init(&csv, 0);
	(void)record(2, &csv);
	rfl_buf_fini(&csv);
	assert_ok(ops->memory(on.engine, &memory, &err), &err);
	assert_true(isnan(memory.now) && isnan(memory.allocated_peak));
	close_zoo();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured_memory_is_as_predicted),
		cmocka_unit_test(nothing_is_counted_when_off),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
