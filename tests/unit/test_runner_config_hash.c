/* The hash of a configuration stays what it was in rows of older versions. */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "complexity/zoo.h"
#include "runner/run/parts.h"

static int index_of(const char *const *names, const char *text)
{
	int i = 0;

	while (names[i] && !rfl_text_same(names[i], text))
		i++;
	assert_non_null(names[i]);
	return i;
}

static void rows_of_version_0_1_0_keep_their_hash(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;

	(void)state;
	assert_ok(rfl_ledger_load(RFL_TEST_DATA "/ledger/v0.1.0.csv", &l, &err), &err);
	assert_int_equal(l->nrows, 13);
	for (size_t i = 0; i < l->nrows; i++) {
		const struct rfl_ledger_row *row = &l->rows[i];
		const struct rfl_run_config c = {
			.arch = row->model,
			.micro_batch = row->micro_batch,
			.accum = row->accum,
			.mode = index_of(rfl_run_mode_names, row->mode),
			.warmup = row->warmup,
			.iters = row->iters,
			.precision = index_of(rfl_precision_names, row->precision),
			.channels_last = rfl_text_same(row->layout, "nhwc"),
			.threads = row->threads,
			.optimizer = index_of(rfl_optimizer_rule_names,
					      row->optimizer ? row->optimizer : "sgd"),
			.momentum = row->momentum,
			.weight_decay = row->weight_decay,
			.data_kind = index_of(rfl_data_kind_names, row->data_mode),
			.world.size = 1,
		};
		char hash[17];

		rfl_run__config_hash(&c, row, hash);
		assert_string_equal(hash, row->config_hash);
	}
	rfl_ledger_free(l);
}

/* Every part that the text can have. */
static void the_text_of_a_hash(void **state)
{
	static const char text[] =
		"2|lab|fake-1.0|cuda|tiny_lm|-1|24|6|3|3|1|0|1|1|1|1|1|4|6|1|5|7|3|100|2|sgd|fused|"
		"no momentum|no weight decay|epochs=2|rotation=15|bucket_bytes=1048576|"
		"attention=sdpa|grad_clip=0.5";
	const struct rfl_run_config c = {
		.arch = "tiny_lm",
		.micro_batch = 2,
		.accum = 3,
		.attention = RFL_ATTENTION_SDPA,
		.warmup = 3,
		.iters = 100,
		.precision = RFL_PRECISION_BF16,
		.channels_last = true,
		.threads = 4,
		.deterministic = true,
		.cudnn_benchmark = true,
		.cuda_graph = true,
		.sync_each_step = true,
		.optimizer = RFL_RULE_SGD,
		.optimizer_kernels = RFL_KERNELS_FUSED,
		.grad_clip = 0.5,
		.data_dir = "a",
		.data_kind = RFL_DATA_TOKENS,
		.workers = 5,
		.prefetch = 7,
		.pin_memory = true,
		.epochs = 2,
		.rotation = 15,
		.world = { .size = 2, .bucket_bytes = 1 << 20 },
	};
	struct rfl_ledger_row row;
	char hash[17], expected[17];

	(void)state;
	rfl_ledger_row_init(&row);
	rfl_field_set(&row.env, "lab");
	rfl_field_set(&row.engine_id, "fake-1.0");
	rfl_field_set(&row.backend, "cuda");
	row.context_length = 24;
	rfl_run__config_hash(&c, &row, hash);
	rfl_hash64_text(rfl_hash64(0, text, strlen(text)), expected);
	assert_string_equal(hash, expected);
	rfl_ledger_row_fini(&row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_version_0_1_0_keep_their_hash),
		cmocka_unit_test(the_text_of_a_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
