/* The format of network files is documented by the rows of the operations: the table of docs/reference/net.md
 * and docs/net.schema.json are what the rows say. With RFL_TEST_UPDATE=1 both are written. The
 * examples are read as users would. */
#include "tests/unit/docs_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "complexity/count.h"
#include "complexity/net/file.h"
#include "complexity/op.h"

#define DOCS  RFL_TEST_DATA "/../../docs/"
#define TABLE "<!-- operations: written by test_complexity_net_docs with RFL_TEST_UPDATE=1 -->\n"
#define AFTER "<!-- end of operations -->\n"

static bool updating(void)
{
	return getenv("RFL_TEST_UPDATE") != NULL;
}

/* --- the table of docs/reference/net.md --- */

static void put_default(struct rfl_buf *out, const struct rfl_op_attr *attr)
{
	char number[RFL_NUM_MAX];

	if (attr->type == RFL_ATTR_BOOL)
		rfl_buf_printf(out, " (%s)", attr->def != 0 ? "true" : "false");
	else
		rfl_buf_printf(out, " (%s)", rfl_num_exact(attr->def, number));
}

/* The attributes that must be said, or those that may. */
static void put_attrs(struct rfl_buf *out, const struct rfl_op_info *op, bool required)
{
	const char *between = " ";
	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];
		i += attr->pair != NULL;
		if (attr->inferred || attr->required != required)
			continue;
		rfl_buf_printf(out, "%s`%s`", between, attr->pair ? attr->pair : attr->name);
		if (!required)
			put_default(out, attr);
		between = ", ";
	}
}

static void put_table(struct rfl_buf *out)
{
	rfl_buf_puts(out, "| `op` | in PyTorch | reads | must say | may say |\n");
	rfl_buf_puts(out, "|---|---|---|---|---|\n");
	for (int i = 0; i < RFL_OP_COUNT; i++) {
		const struct rfl_op_info *op = rfl_op_info_of((enum rfl_op)i);

		if (!rfl_net_file_is_node((enum rfl_op)i))
			continue;
		rfl_buf_printf(out, "| `%s` | %s |", op->name, op->module);
		if (op->arity == RFL_OP_ANY_INPUTS)
			rfl_buf_printf(out, " 1 to %d |", RFL_NET_MAX_INPUTS);
		else
			rfl_buf_printf(out, " %d |",
				       op->arity == RFL_OP_NO_INPUTS ? 0
				       : op->arity                   ? op->arity
								     : 1);
		put_attrs(out, op, true);
		rfl_buf_puts(out, " |");
		put_attrs(out, op, false);
		rfl_buf_puts(out, " |\n");
	}
}

static void the_page_lists_every_attribute(void **state)
{
	struct rfl_buf table;

	(void)state;
	rfl_buf_init(&table, 0);
	put_table(&table);
	check_page_part(DOCS "reference/net.md", TABLE, AFTER, &table);
	rfl_buf_fini(&table);
}

/* --- docs/net.schema.json --- */

/* Whole numbers; no minimum where any will do. */
static json_t *integer(int64_t min)
{
	return min == INT64_MIN
		       ? json_pack("{s:s}", "type", "integer")
		       : json_pack("{s:s, s:I}", "type", "integer", "minimum", (json_int_t)min);
}

static json_t *list_of(json_t *items, int least, int most)
{
	return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", items, "minItems", least,
			 "maxItems", most);
}

static json_t *value_schema(const struct rfl_op_attr *attr)
{
	switch (attr->type) {
	case RFL_ATTR_INT:
		return integer(attr->min);
	case RFL_ATTR_REAL:
		return attr->min == INT64_MIN ? json_pack("{s:s}", "type", "number")
					      : json_pack("{s:s, s:I}", "type", "number", "minimum",
							  (json_int_t)attr->min);
	case RFL_ATTR_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case RFL_ATTR_SHAPE:
		return list_of(integer(1), 1, RFL_NET_MAX_DIMS);
	case RFL_ATTR_ORDER:
		break;
	}
	return list_of(integer(0), 1, RFL_NET_MAX_DIMS);
}

static json_t *ref(const char *name)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "#/$defs/%s", name);
	return json_pack("{s:s}", "$ref", text);
}

/* "kernel", or "kernel_h" and "kernel_w" */
static void require_pair(json_t *all, const struct rfl_op_attr *attr)
{
	json_array_append_new(all, json_pack("{s:[{s:[s]}, {s:[s, s]}]}", "anyOf", "required",
					     attr->pair, "required", attr[0].name, attr[1].name));
}

static void add_attrs(const struct rfl_op_info *op, json_t *properties, json_t *required,
		      json_t *all)
{
	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];

		if (attr->inferred)
			continue;
		json_object_set_new(properties, attr->name, value_schema(attr));
		if (attr->pair) {
			json_object_set_new(properties, attr->pair,
					    json_pack("{s:[o, o]}", "anyOf", value_schema(attr),
						      list_of(value_schema(attr), 2, 2)));
			json_object_set_new(properties, attr[1].name, value_schema(&attr[1]));
			if (attr->required)
				require_pair(all, attr);
			i++;
		} else if (attr->required) {
			json_array_append_new(required, json_string(attr->name));
		}
	}
}

static json_t *inputs_schema(const struct rfl_op_info *op)
{
	int n = op->arity > 0 ? op->arity : 1;

	if (op->arity == RFL_OP_ANY_INPUTS)
		return list_of(ref("name"), 1, RFL_NET_MAX_INPUTS);
	return op->arity == RFL_OP_NO_INPUTS ? list_of(ref("name"), 0, 0)
					     : list_of(ref("name"), n, n);
}

static json_t *op_schema(enum rfl_op i)
{
	const struct rfl_op_info *op = rfl_op_info_of(i);
	json_t *properties = json_pack("{s:{s:s}, s:o, s:o, s:o}", "op", "const", op->name, "name",
				       ref("name"), "id", ref("name"), "inputs", inputs_schema(op));
	json_t *required = json_pack("[s]", "op"), *all = json_array();
	json_t *schema;

	if (op->params || op->arity == RFL_OP_NO_INPUTS)
		json_array_append_new(required, json_string("name"));
	else
		json_object_set_new(properties, "within", ref("name"));
	if (op->arity > 0 || op->arity == RFL_OP_ANY_INPUTS)
		json_array_append_new(required, json_string("inputs"));
	add_attrs(op, properties, required, all);
	if (rfl_net_file_can_be_inplace(i))
		json_object_set_new(properties, "inplace", json_pack("{s:s}", "type", "boolean"));
	if (rfl_net_file_has_weights(i)) {
		json_object_set_new(properties, "tied", ref("name"));
		json_object_set_new(properties, "functional",
				    json_pack("{s:s}", "type", "boolean"));
	}
	json_object_set_new(properties, "auxiliary", json_pack("{s:s}", "type", "boolean"));
	json_object_set_new(properties, "block", integer(1));
	json_object_set_new(properties, "function", integer(1));
	schema = json_pack("{s:s, s:b, s:o, s:o}", "type", "object", "additionalProperties", 0,
			   "required", required, "properties", properties);
	if (json_array_size(all))
		json_object_set(schema, "allOf", all);
	json_decref(all);
	return schema;
}

static json_t *node_schema(void)
{
	json_t *list = json_array();

	for (int i = 0; i < RFL_OP_COUNT; i++)
		if (rfl_net_file_is_node((enum rfl_op)i))
			json_array_append_new(list, ref(rfl_op_info_of((enum rfl_op)i)->name));
	return json_pack("{s:o}", "oneOf", list);
}

static void hold(json_t *defs, const char *name, json_t *take_wanted)
{
	if (updating())
		json_object_set(defs, name, take_wanted);
	else if (!json_equal(json_object_get(defs, name), take_wanted))
		fail_msg("docs/net.schema.json: $defs/%s is not what the rows say; "
			 "RFL_TEST_UPDATE=1 writes it",
			 name);
	json_decref(take_wanted);
}

static void the_schema_is_what_the_rows_say(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *schema = NULL, *defs;
	size_t n = 2; /* name, node */

	(void)state;
	assert_ok(rfl_json_load(DOCS "net.schema.json", &schema, &err), &err);
	defs = json_object_get(schema, "$defs");
	hold(defs, "node", node_schema());
	for (int i = 0; i < RFL_OP_COUNT; i++)
		if (rfl_net_file_is_node((enum rfl_op)i)) {
			hold(defs, rfl_op_info_of((enum rfl_op)i)->name, op_schema((enum rfl_op)i));
			n++;
		}
	assert_int_equal(json_object_size(defs), n);
	if (updating())
		assert_ok(rfl_json_save(DOCS "net.schema.json", schema, &err), &err);
	json_decref(schema);
}

/* Every attribute of every row can be read: a key that two attributes share, or too many for the
 * list of keys, would show here. */
static void every_row_has_keys_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < RFL_OP_COUNT; i++) {
		const struct rfl_op_info *op = rfl_op_info_of((enum rfl_op)i);
		json_t *keys = json_object();
		size_t n = 0;

		for (size_t k = 0; rfl_net_file_node[k].key; k++, n++)
			json_object_set_new(keys, rfl_net_file_node[k].key, json_true());
		for (size_t k = 0; k < op->nattrs; k++, n++) {
			json_object_set_new(keys, op->attrs[k].name, json_true());
			if (op->attrs[k].pair) {
				json_object_set_new(keys, op->attrs[k].pair, json_true());
				n++;
			}
		}
		assert_int_equal(json_object_size(keys), n);
		json_decref(keys);
	}
}

/* --- examples --- */

/* Parameters and multiply-adds of one sample, worked out by hand. */
static void assert_counts(const char *path, int64_t params, int64_t macs)
{
	const struct rfl_count_options one = { .batch = 1 };
	struct rfl_net *net = NULL;
	struct rfl_count *count = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_net_load(path, &net, &err), &err);
	assert_ok(rfl_count_net(net, &one, &count, &err), &err);
	assert_int_equal(count->params, params);
	assert_int_equal(count->total.macs[RFL_PASS_FORWARD], macs);
	rfl_count_free(count);
	rfl_net_free(net);
}

static void the_examples_count(void **state)
{
	const int64_t image = 32 * 32, half = 16 * 16, tokens = 128, width = 64, hidden = 176;

	(void)state;
	assert_counts(RFL_TEST_DATA "/../../examples/nets/small_resnet.json",
		      /* conv1 and its norm, two blocks, fc */
		      (27 * 16 + 32) + 2 * (144 * 16 + 32) + (144 * 32 + 64) + (288 * 32 + 64) +
			      (16 * 32 + 64) + (32 * 10 + 10),
		      image * (27 * 16 + 2 * 144 * 16) + half * (144 * 32 + 288 * 32 + 16 * 32) +
			      32 * 10);
	assert_counts(RFL_TEST_DATA "/../../examples/nets/small_transformer.json",
		      1000 * width + 2 * (4 * width * width + 3 * width * hidden + 2 * width) +
			      width,
		      2 * tokens * (4 * width * width + 3 * width * hidden + 2 * tokens * width) +
			      tokens * width * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_lists_every_attribute),
		cmocka_unit_test(the_schema_is_what_the_rows_say),
		cmocka_unit_test(every_row_has_keys_of_its_own),
		cmocka_unit_test(the_examples_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
