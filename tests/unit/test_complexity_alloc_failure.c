/* Every allocation of building, reading, writing and counting a network fails once; a sweep has
 * none. */
#include "tests/unit/alloc_failure.h"
#include "tests/unit/rfl_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "complexity/count.h"
#include "complexity/count/memory.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"

static const char text[] =
	"{\"schema\": \"roofline.net/1\", \"model\": \"m\", \"title\": \"t\", \"input\": "
	"{\"tokens\": 4},"
	"\"nodes\": ["
	"{\"name\": \"e\", \"op\": \"embedding\", \"vocab\": 9, \"features\": 8},"
	"{\"name\": \"w\", \"op\": \"linear\", \"out_features\": 8, \"bias\": true},"
	"{\"name\": \"r\", \"op\": \"relu\"}, {\"name\": \"r\", \"id\": \"r2\", \"op\": \"relu\"},"
	"{\"op\": \"reshape\", \"shape\": [4, 2, 4]}, {\"op\": \"permute\", \"order\": [0, 2, 1]},"
	"{\"op\": \"contiguous\"}, {\"id\": \"x\", \"op\": \"reshape\", \"shape\": [4, 8]},"
	"{\"within\": \"b\", \"op\": \"add\", \"inputs\": [\"x\", \"w\"]},"
	"{\"name\": \"h\", \"op\": \"linear\", \"out_features\": 9, \"tied\": \"e\"}],"
	"\"state_dict\": [\"w\", \"e\"]}";

static const char cycle[] =
	"{\"schema\": \"roofline.net/1\", \"model\": \"m\", \"input\": {\"tokens\": 4},"
	"\"nodes\": [{\"name\": \"a\", \"op\": \"relu\", \"inputs\": [\"b\"]},"
	"{\"name\": \"b\", \"op\": \"relu\"}]}";

/* From text: jansson 2.14 itself writes beyond a buffer that it could not enlarge. */
static json_t *document, *refused;
static struct rfl_net *net; /* of the document, for what only reads one */

static enum rfl_rc read_net(struct rfl_err *err)
{
	struct rfl_net *ret = NULL;
	enum rfl_rc rc = rfl_net_from_json(document, "m.json", &ret, err);

	assert_int_equal(rc == RFL_OK, ret != NULL);
	rfl_net_free(ret);
	return rc;
}

/* A refusal is made of memory too. */
static enum rfl_rc refuse(struct rfl_err *err)
{
	struct rfl_net *ret = NULL;
	enum rfl_rc rc = rfl_net_from_json(refused, "m.json", &ret, err);

	assert_null(ret);
	return rc == RFL_EFORMAT ? RFL_OK : rc;
}

static enum rfl_rc write_net(struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = rfl_net_write(net, &out, err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc count(struct rfl_err *err)
{
	const struct rfl_count_options options = { .batch = 2, .training = true };
	struct rfl_count *ret = NULL;
	enum rfl_rc rc = rfl_count_net(net, &options, &ret, err);

	assert_int_equal(rc == RFL_OK, ret != NULL);
	rfl_count_free(ret);
	return rc;
}

static enum rfl_rc account(struct rfl_err *err)
{
	const struct rfl_memory_options options = { .count = { .batch = 2, .training = true } };
	struct rfl_memory *ret = NULL;
	enum rfl_rc rc = rfl_memory_new(net, &options, &ret, err);

	assert_int_equal(rc == RFL_OK, ret != NULL);
	rfl_memory_free(ret);
	return rc;
}

static enum rfl_rc build(const char *model, struct rfl_err *err)
{
	struct rfl_net *ret = NULL;
	enum rfl_rc rc = rfl_zoo_build(model, NULL, &ret, err);

	assert_int_equal(rc == RFL_OK, ret != NULL);
	rfl_net_free(ret);
	return rc;
}

static enum rfl_rc build_resnet(struct rfl_err *err)
{
	return build("resnet18", err);
}

static enum rfl_rc build_gpt2(struct rfl_err *err)
{
	return build("gpt2", err);
}

/* Heads that branch off in the middle are put last in the order of parameters. */
static enum rfl_rc build_googlenet(struct rfl_err *err)
{
	return build("googlenet_aux", err);
}

/* Each block puts its parameters in order. */
static enum rfl_rc build_swin(struct rfl_err *err)
{
	return build("swin_v2_t", err);
}

static void each_allocation_fails_once(void **state)
{
	static const struct alloc_operation operations[] = {
		{ "read a network", read_net, 20 },        { "refuse a cycle", refuse, 8 },
		{ "write a network", write_net, 20 },      { "count a network", count, 3 },
		{ "build ResNet-18", build_resnet, 5 },    { "build GPT-2", build_gpt2, 5 },
		{ "build GoogLeNet", build_googlenet, 5 }, { "build Swin", build_swin, 15 },
		{ "account for a network", account, 2 },
	};
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_json_loads(text, strlen(text), "m.json", &document, &err), &err);
	assert_ok(rfl_json_loads(cycle, strlen(cycle), "m.json", &refused, &err), &err);
	assert_ok(rfl_net_from_json(document, "m.json", &net, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(operations); i++)
		assert_each_allocation_fails(&operations[i]);
	rfl_net_free(net);
	json_decref(document);
	json_decref(refused);
}

static struct rfl_count *counted;
static struct rfl_memory *accounted;

static enum rfl_rc sweep_counts(struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int64_t batch = 1; rc == RFL_OK && batch <= 1024; batch *= 2)
		rc = rfl_count_at(counted, batch, err);
	return rc;
}

static enum rfl_rc sweep_memory(struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int64_t batch = 1; rc == RFL_OK && batch <= 1024; batch *= 2)
		rc = rfl_memory_at(accounted, batch, err);
	return rc;
}

static enum rfl_rc fit_memory(struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	int64_t batch;

	for (int64_t bytes = 1; rc == RFL_OK && bytes < INT64_MAX / 4; bytes *= 4)
		rc = rfl_memory_fit(accounted, bytes, &batch, err);
	return rc;
}

/* Of a net with everything that a count can have: blocks, attention, a tied head. */
static void a_sweep_allocates_nothing(void **state)
{
	static const char *const frozen[] = { "transformer.h.0" };
	static const struct alloc_operation operations[] = {
		{ "count at other batches", sweep_counts, 0 },
		{ "account at other batches", sweep_memory, 0 },
		{ "the largest batch that fits", fit_memory, 0 },
	};
	const struct rfl_memory_options options = {
		.count = {
			.batch = 1,
			.training = true,
			.optimizer = RFL_OPT_ADAMW,
			.checkpoint = 2,
			.frozen = frozen,
			.nfrozen = 1,
		},
	};
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_zoo_build("gpt2", NULL, &net, &err), &err);
	assert_ok(rfl_count_net(net, &options.count, &counted, &err), &err);
	assert_ok(rfl_memory_new(net, &options, &accounted, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(operations); i++)
		assert_no_allocation(&operations[i]);
	rfl_memory_free(accounted);
	rfl_count_free(counted);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_once),
		cmocka_unit_test(a_sweep_allocates_nothing),
	};

	watch_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
