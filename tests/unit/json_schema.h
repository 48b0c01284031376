/*
 * json_schema.h - whether a document is what its schema under docs/ says, with the part of JSON
 * Schema that those files use.
 */
#ifndef RFL_TESTS_JSON_SCHEMA_H
#define RFL_TESTS_JSON_SCHEMA_H

#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#include "tests/unit/rfl_test.h"

/** `value` has exactly what `schema` says; `root` holds its $defs. */
static inline void conforms(const json_t *root, const json_t *schema, const json_t *value);

static inline void conforms_object(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *props = json_object_get(schema, "properties"), *item;
	const json_t *others = json_object_get(schema, "additionalProperties");
	size_t i;
	const char *key;
	json_t *member;

	assert_true(json_is_object(value));
	assert_true(json_is_false(others) || json_is_object(others));
	json_array_foreach(json_object_get(schema, "required"), i, item)
	{
		if (!json_object_get(value, json_string_value(item)))
			fail_msg("the document lacks '%s'", json_string_value(item));
	}
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		const json_t *of = json_object_get(props, key);

		if (!of && !json_is_object(others))
			fail_msg("the schema lacks '%s'", key);
		conforms(root, of ? of : others, member);
	}
}

static inline bool is_of_type(const char *type, const json_t *value)
{
	static const struct {
		const char *name;
		json_type types[2];
	} rows[] = {
		{ "object", { JSON_OBJECT, JSON_OBJECT } },
		{ "array", { JSON_ARRAY, JSON_ARRAY } },
		{ "string", { JSON_STRING, JSON_STRING } },
		{ "integer", { JSON_INTEGER, JSON_INTEGER } },
		{ "number", { JSON_INTEGER, JSON_REAL } },
		{ "boolean", { JSON_TRUE, JSON_FALSE } },
		{ "null", { JSON_NULL, JSON_NULL } },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (strcmp(type, rows[i].name) == 0)
			return json_typeof(value) == rows[i].types[0] ||
			       json_typeof(value) == rows[i].types[1];
	fail_msg("this test does not know the type '%s'", type);
	return false;
}

/* "type" is a word, or a list of words of which one must hold. */
static inline void conforms_type(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *types = json_object_get(schema, "type"), *item;
	const json_t *least = json_object_get(schema, "minimum");
	bool found = false;
	size_t i;

	if (json_is_string(types))
		found = is_of_type(json_string_value(types), value);
	json_array_foreach(types, i, item) found |= is_of_type(json_string_value(item), value);
	assert_true(found);
	if (json_is_object(value))
		conforms_object(root, schema, value);
	json_array_foreach(value, i, item) conforms(root, json_object_get(schema, "items"), item);
	if (least && json_is_number(value))
		assert_true(json_number_value(value) >= json_number_value(least));
}

static inline void conforms(const json_t *root, const json_t *schema, const json_t *value)
{
	static const char prefix[] = "#/$defs/";
	const json_t *ref = json_object_get(schema, "$ref"), *item;
	const json_t *constant = json_object_get(schema, "const");
	const json_t *choices = json_object_get(schema, "enum");
	bool found = false;
	size_t i;

	if (ref) {
		const char *name = json_string_value(ref);

		assert_memory_equal(name, prefix, strlen(prefix));
		schema = json_object_get(json_object_get(root, "$defs"), name + strlen(prefix));
		assert_non_null(schema);
		conforms(root, schema, value);
	} else if (constant) {
		assert_true(json_equal(constant, value));
	} else if (choices) {
		json_array_foreach(choices, i, item) found |= json_equal(item, value) == 1;
		assert_true(found);
	} else {
		conforms_type(root, schema, value);
	}
}

#endif
