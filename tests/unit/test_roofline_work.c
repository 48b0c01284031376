/* Counts from a file of `roofline complexity`: used, compared with our own, refused when wrong. */
#include "roofline_fixture.h"

#include "base/json.h"
#include "complexity/count.h"
#include "complexity/zoo.h"
#include "report/complexity.h"

static const int64_t batches[] = { 4, 8 };

/* What `roofline complexity` is asked for when nothing else is said. */
static const struct rfl_summary_options plain = {
	.precision = "fp32",
	.work.count.optimizer = RFL_OPT_MOMENTUM,
	.depth = 1,
};

/* What it writes of one model at batches 4 and 8. */
static const char *write_summary_of(void **state, const char *model, struct rfl_summary_options o)
{
	const char *path = tmp_path(*state, "summary.json");
	struct rfl_summary *s = NULL;
	const struct rfl_complexity r = {
		.items = &s, .n = 1, .options = o, .batches = batches, .nbatches = 2
	};
	struct rfl_err err = RFL_ERR_INIT;
	json_t *root = NULL;

	assert_ok(rfl_summary_new(model, &o, &s, &err), &err);
	assert_ok(rfl_complexity_json(&r, "0", &root, &err), &err);
	assert_ok(rfl_json_save(path, root, &err), &err);
	json_decref(root);
	rfl_summary_free(s);
	return path;
}

static const char *write_summary(void **state, const char *model)
{
	return write_summary_of(state, model, plain);
}

static const struct rfl_work_query resnet = {
	.model = "resnet50",
	.precision = "fp32",
	.mode = "train",
	.optimizer = "sgd",
	.batch = 4,
	.micro_batch = 4,
	.accum = 1,
	.image_size = 224,
	.classes = 1000,
	.context_length = -1,
};

/* A network with fused attention, one that reads text. */
static const struct rfl_work_query vit = {
	.model = "vit_b_16",
	.precision = "fp32",
	.mode = "train",
	.optimizer = "sgd",
	.batch = 4,
	.micro_batch = -1,
	.accum = -1,
	.image_size = -1,
	.classes = -1,
	.context_length = -1,
}, lm = {
	.model = "tiny_lm",
	.precision = "fp32",
	.mode = "train",
	.optimizer = "sgd",
	.batch = 4,
	.micro_batch = -1,
	.accum = -1,
	.image_size = -1,
	.classes = -1,
	.context_length = -1,
};

static void count(const struct rfl_work_query *q, const struct rfl_work_file *file,
		  struct rfl_buf *notes, struct rfl_work *ret)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_reset(notes);
	assert_ok(rfl_work_count(q, file, notes, ret, &err), &err);
}

static void assert_same_work(const struct rfl_work *a, const struct rfl_work *b)
{
	assert_close(a->flops, b->flops, 0);
	assert_string_equal(a->flops_source, b->flops_source);
	for (int k = 0; k < RFL_FUSION_COUNT; k++)
		assert_close(a->bytes[k], b->bytes[k], 0);
}

/* In every mode and with every factor the file says what the network says. */
static void file_and_network_agree(void **state)
{
	static const char *const modes[] = { "train", "fwd_bwd", "fwd" };
	struct rfl_work_file *file = NULL;
	struct rfl_work a, b;
	struct rfl_buf notes;
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(&notes, 0);
	assert_ok(rfl_work_file_load(write_summary(state, "resnet50"), &file, &err), &err);
	for (size_t m = 0; m < RFL_ARRAY_LEN(modes); m++)
		for (int factor = RFL_TRAIN_EXACT; factor <= RFL_TRAIN_3; factor++)
			for (int64_t accum = 1; accum <= 2; accum++) {
				struct rfl_work_query q = resnet;

				q.mode = modes[m];
				q.factor = (enum rfl_train_factor)factor;
				q.accum = accum;
				q.batch = 4 * accum;
				count(&q, NULL, &notes, &a);
				count(&q, file, &notes, &b);
				assert_string_equal(rfl_buf_str(&notes), "");
				assert_same_work(&a, &b);
			}
	rfl_work_file_free(file);
	rfl_buf_fini(&notes);
}

/* What the file lacks is counted from the network, and said, unless a study may have several. */
static void what_the_file_lacks(void **state)
{
	struct rfl_work_query q[6] = { resnet, resnet, resnet, resnet, resnet, resnet };
	static const char *const says[] = {
		"no such batch size", NULL, NULL, "another image size", "another number of classes",
		"no such model",
	};
	struct rfl_work_file *file = NULL;
	struct rfl_work a, b;
	struct rfl_buf notes;
	struct rfl_err err = RFL_ERR_INIT;

	q[0].batch = q[0].micro_batch = 16;
	q[1].precision = "amp";
	q[2].optimizer = "adam";
	q[3].image_size = 160;
	q[4].classes = 10;
	q[5].model = "resnet18";
	rfl_buf_init(&notes, 0);
	assert_ok(rfl_work_file_load(write_summary(state, "resnet50"), &file, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(q); i++) {
		count(&q[i], NULL, &notes, &a);
		count(&q[i], file, &notes, &b);
		assert_same_work(&a, &b);
		if (says[i])
			assert_non_null(strstr(rfl_buf_str(&notes), says[i]));
		else
			assert_string_equal(rfl_buf_str(&notes), "");
		rfl_buf_reset(&notes);
	}
	/* another optimizer does not matter where none runs */
	q[2].mode = "fwd_bwd";
	count(&q[2], file, &notes, &b);
	assert_string_equal(rfl_buf_str(&notes), "");
	rfl_work_file_free(file);
	rfl_buf_fini(&notes);
}

/* Text and attention: the file's sizes and forms are checked like those of images. */
static void transformers_in_a_file(void **state)
{
	struct rfl_work_query text = lm, longer = lm;
	struct rfl_work_file *file = NULL;
	struct rfl_work a, b;
	struct rfl_buf notes;
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(&notes, 0);
	assert_ok(rfl_work_file_load(write_summary(state, "vit_b_16"), &file, &err), &err);
	count(&vit, NULL, &notes, &a);
	count(&vit, file, &notes, &b);
	assert_string_equal(rfl_buf_str(&notes), "");
	assert_same_work(&a, &b);
	assert_string_equal(b.flops_source, "counted: forward + dgrad + wgrad + recomputed");
	rfl_work_file_free(file);

	assert_ok(rfl_work_file_load(write_summary(state, "tiny_lm"), &file, &err), &err);
	text.context_length = 32;
	longer.context_length = 64;
	count(&lm, NULL, &notes, &a);
	count(&lm, file, &notes, &b);
	assert_same_work(&a, &b);
	count(&text, file, &notes, &b);
	assert_same_work(&a, &b);
	assert_string_equal(rfl_buf_str(&notes), "");
	assert_string_equal(b.flops_source, "counted: forward + dgrad + wgrad");
	count(&longer, file, &notes, &b);
	assert_non_null(strstr(rfl_buf_str(&notes), "another context length"));
	assert_true(b.flops > 2 * a.flops);
	rfl_work_file_free(file);
	rfl_buf_fini(&notes);
}

/* Counts of work that no run does are used for no run. */
static void files_of_another_convention(void **state)
{
	static const char *const frozen[] = { "layers.0" };
	const struct {
		struct rfl_summary_options options;
		const char *says;
	} cases[] = {
		{ { .work.count.checkpoint = 1 },
		  "the file has checkpointed blocks; counts from the network are used" },
		{ { .work.count = { .frozen = frozen, .nfrozen = 1 } }, "frozen modules" },
		{ { .work.count.causal_half = true }, "half of causal attention" },
		{ { .work.count.auxiliary = true }, "auxiliary heads" },
		{ { .work.count.input_grad = true }, "gradients of the input" },
		{ { .sizes.context_length = 16 }, "another context length" },
		{ { .sizes.attention = RFL_ATTENTION_SDPA }, NULL }, /* as in a study of several */
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_summary_options o = cases[i].options;
		struct rfl_work_file *file = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_work a, b;
		struct rfl_buf notes;

		o.precision = plain.precision;
		o.work.count.optimizer = plain.work.count.optimizer;
		o.depth = plain.depth;
		rfl_buf_init(&notes, 0);
		assert_ok(rfl_work_file_load(write_summary_of(state, "tiny_lm", o), &file, &err),
			  &err);
		count(&lm, NULL, &notes, &a);
		count(&lm, file, &notes, &b);
		assert_same_work(&a, &b);
		if (cases[i].says)
			assert_non_null(strstr(rfl_buf_str(&notes), cases[i].says));
		else
			assert_string_equal(rfl_buf_str(&notes), "");
		rfl_work_file_free(file);
		rfl_buf_fini(&notes);
	}
}

/* The ledger may hold a run of any model. */
static void every_model_of_the_zoo_has_work(void **state)
{
	const struct rfl_zoo_model *model;
	struct rfl_buf notes;
	struct rfl_work w;

	(void)state;
	rfl_buf_init(&notes, 0);
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_work_query q = lm;

		q.model = model->name;
		count(&q, NULL, &notes, &w);
		assert_true(w.flops > 0 && w.bytes[RFL_FUSION_COMPULSORY] > 0);
		assert_true(w.bytes[RFL_FUSION_FUSED] > w.bytes[RFL_FUSION_COMPULSORY]);
	}
	rfl_buf_fini(&notes);
}

/* What a run's row says of precision, optimizer and accumulation is what its bytes are made of. */
static void a_row_says_what_is_stored(void **state)
{
	const struct {
		struct rfl_count_options options; /* of the count that it must be */
		const char *precision, *optimizer;
		bool autocast, no_momentum;
		enum rfl_attention attention;
	} cases[] = {
		{ { .optimizer = RFL_OPT_ADAMW, .grad_clip = true },
		  "fp32",
		  "adamw",
		  false,
		  false,
		  RFL_ATTENTION_NAIVE },
		{ { .optimizer = RFL_OPT_ADAM }, "fp32", "adam", false, false, RFL_ATTENTION_SDPA },
		{ { .dtype = RFL_DTYPE_BF16,
		    .master_weights = true,
		    .optimizer = RFL_OPT_MOMENTUM },
		  "bf16",
		  "sgd",
		  true,
		  false,
		  RFL_ATTENTION_AUTO },
		{ { .dtype = RFL_DTYPE_BF16, .optimizer = RFL_OPT_MOMENTUM },
		  "bf16",
		  "sgd",
		  false,
		  false,
		  RFL_ATTENTION_AUTO },
		{ { .dtype = RFL_DTYPE_F16, .master_weights = true, .optimizer = RFL_OPT_ADAM },
		  "amp",
		  "adam",
		  true,
		  false,
		  RFL_ATTENTION_AUTO },
		{ { .dtype = RFL_DTYPE_F32, .optimizer = RFL_OPT_ADAMW },
		  "tf32",
		  "adamw",
		  false,
		  false,
		  RFL_ATTENTION_AUTO },
		{ { .dtype = RFL_DTYPE_F32, .optimizer = RFL_OPT_SGD },
		  "fp32",
		  "sgd",
		  false,
		  true,
		  RFL_ATTENTION_AUTO },
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf notes;
	struct rfl_work w;

	(void)state;
	rfl_buf_init(&notes, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_zoo_options sizes = { .context_length = 24,
						       .attention = cases[i].attention };
		struct rfl_net *net = NULL;
		struct rfl_count_options options = cases[i].options;
		struct rfl_work_query q = lm;
		struct rfl_count *once = NULL;

		options.batch = 2;
		options.training = true;
		assert_ok(rfl_zoo_build("tiny_lm", &sizes, &net, &err), &err);
		assert_ok(rfl_count_net(net, &options, &once, &err), &err);
		q.attention = rfl_attention_names[cases[i].attention];
		q.grad_clip = cases[i].options.grad_clip;
		q.precision = cases[i].precision;
		q.optimizer = cases[i].optimizer;
		q.autocast = cases[i].autocast;
		q.no_momentum = cases[i].no_momentum;
		q.context_length = 24;
		q.micro_batch = 2;
		q.accum = 2; /* of the four */
		count(&q, NULL, &notes, &w);
		assert_close(w.flops, 2.0 * (double)rfl_count_training_flops(once), 0);
		for (int f = 0; f < RFL_FUSION_COUNT; f++)
			assert_close(
				w.bytes[f],
				(double)(rfl_count_bytes(once, (enum rfl_fusion)f, RFL_SCOPE_STEP) +
					 rfl_count_bytes(once, (enum rfl_fusion)f,
							 RFL_SCOPE_FORWARD_BACKWARD)),
				0);
		rfl_count_free(once);
		rfl_net_free(net);
	}
	rfl_buf_fini(&notes);
}

#define FILE_OF(model, flops, unfused)                                                             \
	"{\"schema\": \"roofline.complexity/1\", \"convention\": {\"precision\": \"fp32\", "       \
	"\"optimizer\": \"momentum\"}, \"models\": [{\"model\": \"" model "\", \"batches\": "      \
	"[{\"batch\": 4, \"forward\": {\"flops\": 100, \"bytes\": {\"unfused\": 8, \"fused\": 6, " \
	"\"compulsory\": 4}}, \"training\": {\"flops\": " flops                                    \
	", \"bytes\": {\"unfused\": " unfused ", \"fused\": 16, \"compulsory\": 10}}}]}]}"

/* Both numbers are printed, once, and the file's are used. */
static void disagreement_is_told(void **state)
{
	struct rfl_work_file *file = NULL;
	struct rfl_work w;
	struct rfl_buf notes;
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(&notes, 0);
	assert_ok(rfl_work_file_load(write_file(*state, "s.json", FILE_OF("resnet50", "290", "20")),
				     &file, &err),
		  &err);
	count(&resnet, file, &notes, &w);
	assert_close(w.flops, 290, 0);
	assert_close(w.bytes[RFL_FUSION_UNFUSED], 20, 0);
	assert_non_null(
		strstr(rfl_buf_str(&notes),
		       "s.json: resnet50 at batch 4, train: the file has 290 FLOPs per step, "
		       "the network 97196310528; the file is used"));
	assert_non_null(
		strstr(rfl_buf_str(&notes), "the file has 20 bytes per step unfused, the "));
	{
		size_t len = notes.len;

		assert_ok(rfl_work_count(&resnet, file, &notes, &w, &err), &err);
		assert_int_equal(notes.len, len);
	}
	rfl_work_file_free(file);
	rfl_buf_fini(&notes);
}

static void a_model_of_ones_own(void **state)
{
	struct rfl_work_query q = resnet;
	struct rfl_work_file *file = NULL;
	struct rfl_work w;
	struct rfl_buf notes;
	struct rfl_err err = RFL_ERR_INIT;

	q.model = "mynet";
	rfl_buf_init(&notes, 0);
	assert_ok(rfl_work_file_load(write_file(*state, "s.json", FILE_OF("mynet", "290", "20")),
				     &file, &err),
		  &err);
	count(&q, file, &notes, &w);
	assert_close(w.flops, 290, 0);
	assert_close(w.bytes[RFL_FUSION_FUSED], 16, 0);
	q.factor = RFL_TRAIN_3;
	count(&q, file, &notes, &w);
	assert_close(w.flops, 300, 0);
	q.mode = "fwd";
	count(&q, file, &notes, &w);
	assert_close(w.flops, 100, 0);
	assert_close(w.bytes[RFL_FUSION_COMPULSORY], 4, 0);
	/* what neither the file nor the program has */
	q.mode = "fwd_bwd";
	assert_int_equal(rfl_work_count(&q, file, &notes, &w, &err), RFL_EMISSING);
	assert_says(&err, "no counts for that mode");
	rfl_err_clear(&err);
	q.mode = "train";
	q.batch = q.micro_batch = 5;
	assert_int_equal(rfl_work_count(&q, file, &notes, &w, &err), RFL_EMISSING);
	assert_says(&err, "model 'mynet' is unknown to this program");
	assert_says(&err, "at batch 5: no such batch size");
	rfl_err_clear(&err);
	assert_int_equal(rfl_work_count(&q, NULL, &notes, &w, &err), RFL_EMISSING);
	assert_says(&err, "roofline list models");
	rfl_work_file_free(file);
	rfl_buf_fini(&notes);
}

static void bad_files_are_refused(void **state)
{
#define HEAD                                                                                 \
	"{\"schema\": \"roofline.complexity/1\", \"convention\": {\"precision\": \"fp32\", " \
	"\"optimizer\": \"momentum\"}, \"models\": "
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "{", "bad.json:1" },
		{ "[]", "not a summary of 'roofline complexity'" },
		/* an older summary: forward MACs per sample */
		{ "{\"resnet50\": {\"params\": 25557032, \"macs\": 4089184256}}",
		  "forward MACs per sample do not determine" },
		{ "{\"schema\": \"roofline.complexity/2\"}", "schema must be" },
		{ "{\"schema\": 1}", "schema must be" },
		{ "{\"schema\": \"roofline.complexity/1\", \"model\": []}", "model" },
		{ "{\"schema\": \"roofline.complexity/1\"}", "the key \"convention\" is missing" },
		{ "{\"schema\": \"roofline.complexity/1\", \"models\": [1]}",
		  "the key \"convention\" is missing" },
		{ "{\"schema\": \"roofline.complexity/1\", \"models\": [1], \"convention\": "
		  "{\"precision\": \"fp7\", \"optimizer\": \"sgd\"}}",
		  "fp7" },
		{ "{\"schema\": \"roofline.complexity/1\", \"models\": [1], \"convention\": "
		  "{\"precision\": \"fp32\", \"optimizer\": \"lion\"}}",
		  "/convention/optimizer: must be one of" },
		{ HEAD "[1]}", "/models/0: must be an object" },
		{ HEAD "[{}]}", "/models/0: the key \"model\" is missing" },
		{ HEAD "[{\"model\": \"a\"}]}", "/models/0: the key \"batches\" is missing" },
		{ HEAD "[{\"model\": \"a\", \"batches\": [7]}]}",
		  "/models/0/batches/0: must be an object" },
		{ HEAD "[{\"model\": \"a\", \"batches\": [{\"batch\": 0}]}]}",
		  "/models/0/batches/0/batch: must be an integer of at least 1" },
		{ FILE_OF("a", "-1", "2"), "/models/0/batches/0/training/flops: must be" },
		{ FILE_OF("a", "1", "0"), "/models/0/batches/0/training/bytes/unfused: must be" },
		{ FILE_OF("a", "1", "2.5"), "/models/0/batches/0/training/bytes/unfused: must be" },
		{ FILE_OF("a", "1", "2, \"fusde\": 1"), "/models/0/batches/0/training/bytes" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_work_file *file = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		const char *path = write_file(*state, "bad.json", cases[i].text);

		assert_int_equal(rfl_work_file_load(path, &file, &err), RFL_EFORMAT);
		assert_says(&err, "bad.json");
		assert_says(&err, cases[i].word);
		assert_null(file);
	}
}

/* Through the merge: a model of one's own gets its point. */
static void file_in_a_merge(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_work_file *file = NULL;

	set(&add_run(f, "lab_cpu", "aa", 4, 1000)->model, "mynet");
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(rfl_work_file_load(write_file(*state, "s.json",
						FILE_OF("mynet", "2000000000", "1000000000")),
				     &file, &f->err),
		  &f->err);
	f->in.work = file;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].ai, 2, 0);
	assert_close(f->pts->points[0].attained_gflops, 2, 1e-15);
	assert_close(f->pts->points[0].attainable_gflops, 184, 1e-15);
	assert_string_equal(f->pts->points[0].bound, "neither");
	rfl_work_file_free(file);
	fixture_free(f);
}

/* ResNet-50 by torchinfo has 4089238376 multiply-adds. */
static void flops_of_another_counter(void **state)
{
	struct rfl_work_query query = resnet;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_work work;
	struct rfl_buf notes;

	(void)state;
	rfl_buf_init(&notes, 0);
	assert_ok(rfl_peer_find("torchinfo", &query.as, &err), &err);
	query.factor = RFL_TRAIN_2;
	assert_ok(rfl_work_count(&query, NULL, &notes, &work, &err), &err);
	assert_true(work.flops == 2 * 2 * 4089238376.0 * 4);
	assert_string_equal(work.flops_source,
			    "2 x forward as counted by torchinfo 1.8.0; counting "
			    "every pass gives 1.486 times as many");
	query.mode = "fwd";
	query.factor = RFL_TRAIN_EXACT;
	assert_ok(rfl_work_count(&query, NULL, &notes, &work, &err), &err);
	assert_true(work.flops == 2 * 4089238376.0 * 4);
	query.mode = "fwd_bwd";
	assert_int_equal(rfl_work_count(&query, NULL, &notes, &work, &err), RFL_EUSAGE);
	assert_says(&err, "--as torchinfo: it counts the forward pass only; use --train-factor 2");
	rfl_buf_fini(&notes);
}

/* The layers of a step add up to it: nothing is missing or counted twice. */
static void layers_add_up_to_the_step(void **state)
{
	static const struct rfl_work_query queries[] = {
		{ "resnet50", "fp32", "train", "sgd", .batch = 4, .image_size = 224 },
		{ "resnet50", "amp", "fwd_bwd", .batch = 4, .autocast = true },
		{ "mobilenet_v2", "fp32", "fwd", .batch = 2 },
		{ "gpt2", "bf16", "train", "adamw", .batch = 4, .micro_batch = 2, .accum = 2 },
		{ "vit_b_16", "fp32", "train", "adam", .batch = 2, .factor = RFL_TRAIN_2 },
		{ "inception_v3", "fp32", "train", "sgd", true, .batch = 2 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(queries); i++) {
		struct rfl_arena *arena = rfl_arena_new();
		struct rfl_work_layers l;
		struct rfl_work step, sum = { .flops = 0 };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf notes;

		rfl_buf_init(&notes, 0);
		assert_ok(rfl_work_count(&queries[i], NULL, &notes, &step, &err), &err);
		assert_ok(rfl_work_count_layers(&queries[i], arena, &l, &err), &err);
		for (size_t k = 0; k < l.n; k++) {
			assert_true(k == 0 || strcmp(l.layers[k - 1].name, l.layers[k].name) < 0);
			sum.flops += l.layers[k].flops;
			for (int f = 0; f < RFL_FUSION_COUNT; f++)
				sum.bytes[f] += l.layers[k].bytes[f];
		}
		assert_true(sum.flops == step.flops);
		assert_true(sum.bytes[RFL_FUSION_UNFUSED] == step.bytes[RFL_FUSION_UNFUSED]);
		assert_true(sum.bytes[RFL_FUSION_FUSED] == step.bytes[RFL_FUSION_FUSED]);
		assert_true(isnan(sum.bytes[RFL_FUSION_COMPULSORY]));
		assert_string_equal(l.flops_source, step.flops_source);
		rfl_arena_free(arena);
		rfl_buf_fini(&notes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(layers_add_up_to_the_step),
		T(flops_of_another_counter),
		T(file_and_network_agree),
		T(what_the_file_lacks),
		T(disagreement_is_told),
		T(a_model_of_ones_own),
		T(bad_files_are_refused),
		T(file_in_a_merge),
		T(transformers_in_a_file),
		T(files_of_another_convention),
		T(every_model_of_the_zoo_has_work),
		T(a_row_says_what_is_stored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
