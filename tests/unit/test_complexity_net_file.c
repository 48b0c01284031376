/* Networks as files: every model of the zoo there and back, files by hand, and every refusal with
 * its words. */
#include "tests/unit/invalid_files.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "complexity/count.h"
#include "complexity/net/file.h"
#include "complexity/op.h"
#include "complexity/zoo.h"
#include "base/json.h"

static enum rfl_rc net_parse(const char *text, size_t length, const char *name,
			     struct rfl_net **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(text, length, name, &root, err);

	if (rc == RFL_OK)
		rc = rfl_net_from_json(root, name, ret, err);
	json_decref(root);
	return rc;
}

/* --- there and back ------------------------------------------------------------------------------
 */

/* Dimensions that a shape does not have, and the gap before them, may be anything. */
static bool same_shape(const struct rfl_shape *a, const struct rfl_shape *b)
{
	return a->ndim == b->ndim &&
	       memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof(a->dim[0])) == 0;
}

static bool same_attr(enum rfl_attr_type type, const void *a, const void *b)
{
	switch (type) {
	case RFL_ATTR_INT:
		return memcmp(a, b, sizeof(int64_t)) == 0;
	case RFL_ATTR_REAL:
		return memcmp(a, b, sizeof(double)) == 0;
	case RFL_ATTR_BOOL:
		return memcmp(a, b, sizeof(bool)) == 0;
	case RFL_ATTR_SHAPE:
		return same_shape(a, b);
	case RFL_ATTR_ORDER:
		break;
	}
	return memcmp(a, b, RFL_NET_MAX_DIMS * sizeof(int64_t)) == 0;
}

static void assert_same_attrs(const struct rfl_node *a, const struct rfl_node *b)
{
	const struct rfl_op_info *op = rfl_op_info_of(a->op);

	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];

		if (!same_attr(attr->type, (const char *)a + attr->offset,
			       (const char *)b + attr->offset))
			fail_msg("%s (%s): %s differs", a->name, op->name, attr->name);
	}
}

static void assert_same_node(const struct rfl_node *a, const struct rfl_node *b)
{
	assert_int_equal(a->op, b->op);
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->functional, b->functional);
	assert_int_equal(a->inplace, b->inplace);
	assert_int_equal(a->batchless, b->batchless);
	assert_int_equal(a->auxiliary, b->auxiliary);
	assert_int_equal(a->block, b->block);
	assert_int_equal(a->function, b->function);
	assert_int_equal(a->tied, b->tied);
	assert_int_equal(a->dtype, b->dtype);
	assert_true(same_shape(&a->shape, &b->shape));
	assert_int_equal(a->ninputs, b->ninputs);
	for (int i = 0; i < a->ninputs; i++)
		assert_int_equal(a->input[i], b->input[i]);
	assert_int_equal(a->nparams, b->nparams);
	for (int i = 0; i < a->nparams; i++)
		assert_int_equal(a->param[i], b->param[i]);
	assert_same_attrs(a, b);
}

static void assert_same_param(const struct rfl_param *a, const struct rfl_param *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->ndim, b->ndim);
	assert_memory_equal(a->dim, b->dim, sizeof(a->dim));
	assert_int_equal(a->numel, b->numel);
	assert_int_equal(a->position, b->position);
	assert_int_equal(a->node, b->node);
}

static void assert_same_counts(const struct rfl_net *a, const struct rfl_net *b)
{
	const struct rfl_count_options options = {
		.batch = 2,
		.training = true,
		.optimizer = RFL_OPT_ADAMW,
	};
	struct rfl_count *x = NULL, *y = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_count_net(a, &options, &x, &err), &err);
	assert_ok(rfl_count_net(b, &options, &y, &err), &err);
	assert_memory_equal(&x->total, &y->total, sizeof(x->total));
	assert_memory_equal(&x->loss, &y->loss, sizeof(x->loss));
	assert_int_equal(x->params, y->params);
	assert_int_equal(x->buffers, y->buffers);
	rfl_count_free(x);
	rfl_count_free(y);
}

static void assert_same_net(const struct rfl_net *a, const struct rfl_net *b)
{
	assert_string_equal(a->model, b->model);
	assert_string_equal(a->family, b->family);
	assert_string_equal(a->title ? a->title : "", b->title ? b->title : "");
	assert_int_equal(a->nnodes, b->nnodes);
	for (int i = 0; i < a->nnodes; i++)
		assert_same_node(&a->nodes[i], &b->nodes[i]);
	assert_int_equal(a->nparams, b->nparams);
	for (int i = 0; i < a->nparams; i++)
		assert_same_param(&a->params[i], &b->params[i]);
	assert_int_equal(a->output, b->output);
	assert_int_equal(a->classes, b->classes);
	assert_int_equal(a->nblocks, b->nblocks);
	assert_int_equal(a->loss, b->loss);
	assert_same_counts(a, b);
}

/* Write, read, compare; what is written again is the same text. */
static void assert_round_trip(const struct rfl_net *net)
{
	struct rfl_net *again = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text, text_again;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&text_again, 0);
	assert_ok(rfl_net_write(net, &text, &err), &err);
	assert_ok(net_parse(text.data, text.len, net->model, &again, &err), &err);
	assert_same_net(net, again);
	assert_ok(rfl_net_write(again, &text_again, &err), &err);
	assert_string_equal(rfl_buf_str(&text), rfl_buf_str(&text_again));
	rfl_buf_fini(&text);
	rfl_buf_fini(&text_again);
	rfl_net_free(again);
}

static void every_model_comes_back(void **state)
{
	const struct rfl_zoo_model *model;
	size_t n = 0;

	(void)state;
	for (; (model = rfl_zoo_at(n)); n++)
		for (int attention = 0; rfl_attention_names[attention]; attention++) {
			const struct rfl_zoo_options options = {
				.attention = (enum rfl_attention)attention
			};
			struct rfl_net *net = NULL;
			struct rfl_err err = RFL_ERR_INIT;
			enum rfl_rc rc = rfl_zoo_build(model->name, &options, &net, &err);

			if (rc == RFL_EINVAL && attention != RFL_ATTENTION_AUTO)
				continue; /* not every model can be written in every way */
			assert_ok(rc, &err);
			assert_round_trip(net);
			rfl_net_free(net);
		}
	assert_true(n > 0);
}

/* --- by hand -------------------------------------------------------------------------------------
 */

#define HEAD "{\"schema\": \"roofline.net/1\", \"model\": \"mine\", \"input\": "

static struct rfl_net *parse(const char *text)
{
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(net_parse(text, strlen(text), "mine.json", &net, &err), &err);
	return net;
}

static void assert_order(const struct rfl_net *net, const char *const *names)
{
	for (int i = 0; i < net->nnodes; i++)
		assert_string_equal(net->nodes[i].name, names[i]);
}

/* One number, a list of two, two keys. */
static void sizes_in_three_forms(void **state)
{
	struct rfl_net *net = parse(
		HEAD "{\"image\": [3, 20, 30]}, \"nodes\": ["
		     "{\"name\": \"a\", \"op\": \"conv2d\", \"out_channels\": 4, \"kernel\": 3},"
		     "{\"name\": \"b\", \"op\": \"conv2d\", \"out_channels\": 4, "
		     "\"kernel\": [1, 7], \"pad\": [0, 3], \"bias\": true},"
		     "{\"name\": \"c\", \"op\": \"conv2d\", \"out_channels\": 4, \"kernel_h\": 5, "
		     "\"kernel_w\": 1, \"stride_w\": 2},"
		     "{\"op\": \"flatten\"}]}");
	const struct rfl_conv2d *a = &net->nodes[1].attr.conv2d;
	const struct rfl_conv2d *b = &net->nodes[2].attr.conv2d;
	const struct rfl_conv2d *c = &net->nodes[3].attr.conv2d;
	char text[64];

	(void)state;
	assert_int_equal(a->in_channels, 3);
	assert_int_equal(a->kernel_h * 100 + a->kernel_w, 303);
	assert_int_equal(b->kernel_h * 100 + b->kernel_w, 107);
	assert_int_equal(b->pad_h * 100 + b->pad_w, 3);
	assert_int_equal(c->kernel_h * 100 + c->kernel_w, 501);
	assert_int_equal(c->stride_h * 100 + c->stride_w, 102);
	assert_int_equal(c->dilation_h * 100 + c->dilation_w, 101);
	assert_false(a->bias);
	assert_true(b->bias);
	assert_string_equal(rfl_shape_text(&net->nodes[3].shape, text, sizeof(text)), "4x14x14");
	assert_int_equal(net->output, 4);
	assert_string_equal(net->family, "user");
	assert_null(net->title);
	assert_round_trip(net);
	rfl_net_free(net);
}

/* Blanks and the form of an attribute do not matter, its value does. */
static void a_digest_is_of_the_contents(void **state)
{
	static const char *const texts[] = {
		HEAD "{\"image\": [3, 8, 8]}, \"nodes\": [{\"name\": \"a\", \"op\": \"conv2d\", "
		     "\"out_channels\": 4, \"kernel\": 3}, {\"op\": \"flatten\"}]}",
		HEAD "{\"image\":[3,8,8]},\n\"nodes\":[{\"op\":\"conv2d\",\"name\":\"a\", "
		     "\"kernel\": [3, 3], \"out_channels\":4}, {\"op\": \"flatten\"}]}",
		HEAD "{\"image\": [3, 8, 8]}, \"nodes\": [{\"name\": \"a\", \"op\": \"conv2d\", "
		     "\"out_channels\": 5, \"kernel\": 3}, {\"op\": \"flatten\"}]}",
	};
	struct rfl_err err = RFL_ERR_INIT;
	char digests[3][17];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		struct rfl_net *net = parse(texts[i]);

		assert_ok(rfl_net_digest(net, digests[i], &err), &err);
		rfl_net_free(net);
	}
	assert_string_equal(digests[0], digests[1]);
	assert_string_not_equal(digests[0], digests[2]);
}

/* A node before its inputs pulls them forward; the rest stays as it is written. */
static void order_is_free(void **state)
{
	static const char *const executed[] = { "input", "a", "c", "sum", "d", "b", "out" };
	struct rfl_net *net = parse(
		HEAD
		"{\"image\": [1, 1, 6]}, \"nodes\": ["
		"{\"name\": \"a\", \"op\": \"linear\", \"out_features\": 5},"
		"{\"id\": \"s\", \"within\": \"sum\", \"op\": \"add\", \"inputs\": [\"a\", \"c\"]},"
		"{\"name\": \"d\", \"op\": \"relu\"},"
		"{\"name\": \"b\", \"op\": \"flatten\"},"
		"{\"name\": \"c\", \"op\": \"linear\", \"out_features\": 5, "
		"\"inputs\": [\"a\"]},"
		"{\"name\": \"out\", \"op\": \"linear\", \"out_features\": 2, "
		"\"inputs\": [\"b\"]}], \"output\": \"out\"}");

	(void)state;
	assert_order(net, executed);
	assert_true(net->nodes[3].functional);
	assert_false(net->nodes[4].functional);
	assert_string_equal(net->params[1].name, "c.weight");
	assert_int_equal(net->params[1].position, 1);
	assert_round_trip(net);
	rfl_net_free(net);
}

/* Parameters in another order than they are used in; who borrows one follows it. */
static void the_state_dict_has_its_order(void **state)
{
	static const char *const names[] = { "w2.weight", "w2.bias", "w1.weight", "embed.weight" };
	struct rfl_net *net = parse(
		HEAD "{\"tokens\": 4}, \"nodes\": ["
		     "{\"name\": \"embed\", \"op\": \"embedding\", \"vocab\": 9, "
		     "\"features\": 6},"
		     "{\"name\": \"w1\", \"op\": \"linear\", \"out_features\": 7, \"block\": 1},"
		     "{\"name\": \"w2\", \"op\": \"linear\", \"out_features\": 6, "
		     "\"bias\": true, \"block\": 1},"
		     "{\"name\": \"head\", \"op\": \"linear\", \"out_features\": 9, "
		     "\"tied\": \"embed\"}],"
		     "\"loss\": \"composed\","
		     "\"state_dict\": [\"w2\", \"w1\", \"embed\"]}");

	(void)state;
	assert_int_equal(net->nparams, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(net->params[i].name, names[i]);
		assert_int_equal(net->params[i].position, i);
	}
	assert_int_equal(net->nodes[4].tied, 1);
	assert_int_equal(net->nodes[4].param[0], 3);
	assert_int_equal(net->nblocks, 1);
	assert_int_equal(net->classes, 9);
	assert_int_equal(net->loss, RFL_LOSS_COMPOSED);
	assert_int_equal(rfl_net_param_count(net), 9 * 6 + 7 * 6 + 6 * 7 + 6);
	assert_round_trip(net);
	rfl_net_free(net);
}

/* One module three times, and steps that would have the same name. */
static void nodes_of_one_name(void **state)
{
	struct rfl_net *net =
		parse(HEAD "{\"image\": [2, 4, 4]}, \"nodes\": ["
			   "{\"name\": \"relu\", \"op\": \"relu\"},"
			   "{\"name\": \"relu\", \"id\": \"relu:3\", \"op\": \"relu\"},"
			   "{\"name\": \"relu\", \"id\": \"x\", \"op\": \"relu\"},"
			   "{\"id\": \"s\", \"op\": \"add\", \"inputs\": [\"relu\", \"x\"]},"
			   "{\"id\": \"t\", \"op\": \"add\", \"inputs\": [\"s\", \"relu:3\"]},"
			   "{\"op\": \"mul\", \"inputs\": [\"t\", \"s\"]},"
			   "{\"op\": \"flatten\"}]}");

	(void)state;
	assert_int_equal(net->nnodes, 8);
	assert_string_equal(net->nodes[3].name, "relu");
	assert_string_equal(net->nodes[4].name, "");
	assert_int_equal(net->nodes[5].input[1], 2);
	assert_round_trip(net);
	rfl_net_free(net);
}

/* Every node waits for the next: no depth of a walk is too much. */
static void a_long_chain_backwards(void **state)
{
	enum { LINKS = 20000 };
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, HEAD "{\"image\": [2, 4, 4]}, \"output\": \"r0\", \"nodes\": [");
	for (int i = 0; i < LINKS; i++)
		rfl_buf_printf(&text,
			       "{\"name\": \"r%d\", \"op\": \"relu\", \"inputs\": [\"r%d\"]}, ", i,
			       i + 1);
	rfl_buf_printf(&text, "{\"name\": \"r%d\", \"op\": \"flatten\", \"inputs\": [\"input\"]}]}",
		       LINKS);
	assert_ok(net_parse(text.data, text.len, "long.json", &net, &err), &err);
	assert_int_equal(net->nnodes, LINKS + 2);
	assert_string_equal(net->nodes[1].name, "r20000");
	assert_string_equal(net->nodes[LINKS + 1].name, "r0");
	rfl_net_free(net);
	rfl_buf_fini(&text);
}

/* --- refusals ------------------------------------------------------------------------------------
 */

static enum rfl_rc try_load(const char *path, bool *made, struct rfl_err *err)
{
	struct rfl_net *net = NULL;
	enum rfl_rc rc = rfl_net_load(path, &net, err);

	*made = net != NULL;
	rfl_net_free(net);
	return rc;
}

static void refuses_every_invalid_file(void **state)
{
	check_invalid_files(*state, "complexity/net_invalid.txt", 137, try_load);
}

static void refuses_deep_nesting(void **state)
{
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char text[6001];

	memset(text, '[', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(rfl_net_load(write_file(*state, "deep.json", text), &net, &err),
			 RFL_EFORMAT);
	assert_says(&err, "deep.json:1:2049: maximum parsing depth reached near '['");
	assert_null(net);
}

static void says_that_a_file_is_absent(void **state)
{
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_net_load(tmp_path(*state, "absent.json"), &net, &err), RFL_EIO);
	assert_says(&err, "absent.json");
	assert_null(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_model_comes_back),
		cmocka_unit_test(sizes_in_three_forms),
		cmocka_unit_test(a_digest_is_of_the_contents),
		cmocka_unit_test(order_is_free),
		cmocka_unit_test(the_state_dict_has_its_order),
		cmocka_unit_test(nodes_of_one_name),
		cmocka_unit_test(a_long_chain_backwards),
		cmocka_unit_test_setup_teardown(refuses_every_invalid_file, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(refuses_deep_nesting, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(says_that_a_file_is_absent, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
