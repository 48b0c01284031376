/*
 * file_attrs.c - the attributes of an operation in a file, both ways. The keys are those of the
 * operation's row; a pair x_h and x_w may be written as x, one number for both or a list of two.
 */
#include "complexity/net/file_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

const char *const rfl_net_file__node_keys[] = { "op",       "name",       "id",        "within",
						"inputs",   "inplace",    "auxiliary", "block",
						"function", "functional", "tied",      NULL };

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

bool rfl_net_file__is_pair(const struct rfl_op_info *op, size_t i)
{
	const char *h = op->attrs[i].name;

	return i + 1 < op->nattrs && ends_with(h, "_h") && ends_with(op->attrs[i + 1].name, "_w") &&
	       strncmp(h, op->attrs[i + 1].name, strlen(h) - 1) == 0;
}

char *rfl_net_file__stem(const struct rfl_op_attr *attr, char *out, size_t size)
{
	(void)snprintf(out, size, "%.*s", (int)strlen(attr->name) - 2, attr->name);
	return out;
}

/* The keys of an operation's nodes, made at its first use. NULL when memory is short. */
static const char **keys_of(struct rfl_net_reader *r, enum rfl_op op)
{
	const struct rfl_op_info *info = rfl_op_info_of(op);
	const char **keys = r->keys[op];
	size_t n = 0;
	char stem[64];

	if (keys)
		return keys;
	keys = rfl_arena_array(r->arena, RFL_NET_FILE_MAX_KEYS, sizeof(*keys));
	if (!keys)
		return NULL;
	/* attributes first: of two keys that are equally near, theirs was meant */
	for (size_t i = 0; i < info->nattrs; i++) {
		if (info->attrs[i].inferred)
			continue;
		if (rfl_net_file__is_pair(info, i)) {
			keys[n] = rfl_arena_strdup(
				r->arena, rfl_net_file__stem(&info->attrs[i], stem, sizeof(stem)));
			if (!keys[n++])
				return NULL;
		}
		keys[n++] = info->attrs[i].name;
	}
	for (size_t i = 0; rfl_net_file__node_keys[i]; i++)
		keys[n++] = rfl_net_file__node_keys[i];
	assert(n < RFL_NET_FILE_MAX_KEYS);
	r->keys[op] = keys;
	return keys;
}

enum rfl_rc rfl_net_file__only_keys(struct rfl_net_reader *r, int draft)
{
	const struct rfl_net_draft *d = &r->drafts[draft];
	const struct rfl_op_info *op = rfl_op_info_of(d->op);
	const char **keys = keys_of(r, d->op);
	size_t mark;
	enum rfl_rc rc;

	if (!keys)
		return rfl_net_file__no_memory(r);
	for (size_t i = 0; i < op->nattrs; i++)
		if (op->attrs[i].inferred && json_object_get(d->obj, op->attrs[i].name))
			return rfl_net_file__fail(r, draft, op->attrs[i].name, -1,
						  "follows from the input's shape; leave it out");
	mark = rfl_where_key(&r->where, "nodes");
	(void)rfl_where_index(&r->where, (size_t)draft - 1);
	rc = rfl_json_only_keys(d->obj, keys, r->where.file, r->where.pointer, r->err);
	rfl_where_up(&r->where, mark);
	return rc;
}

/* --- reading ------------------------------------------------------------------------------------
 */

/* Which value of a file: key, and where it is a list the element. */
struct source {
	struct rfl_net_reader *r;
	int draft;
	const char *key;
	int index;
	const json_t *value;
};

static enum rfl_rc read_int(const struct source *s, int64_t min, int64_t *ret)
{
	char shown[80];

	if (json_is_integer(s->value) && json_integer_value(s->value) >= min) {
		*ret = json_integer_value(s->value);
		return RFL_OK;
	}
	if (min == INT64_MIN)
		return rfl_net_file__fail(s->r, s->draft, s->key, s->index,
					  "must be a whole number, is %s",
					  rfl_json_show(s->value, shown, sizeof(shown)));
	return rfl_net_file__fail(s->r, s->draft, s->key, s->index,
				  "must be a whole number of %lld or more, is %s", (long long)min,
				  rfl_json_show(s->value, shown, sizeof(shown)));
}

static enum rfl_rc read_real(const struct source *s, int64_t min, double *ret)
{
	char shown[80];
	double value = json_number_value(s->value);

	if (json_is_number(s->value) && (min == INT64_MIN || value >= (double)min)) {
		*ret = value;
		return RFL_OK;
	}
	if (min == INT64_MIN)
		return rfl_net_file__fail(s->r, s->draft, s->key, s->index,
					  "must be a number, is %s",
					  rfl_json_show(s->value, shown, sizeof(shown)));
	return rfl_net_file__fail(s->r, s->draft, s->key, s->index,
				  "must be a number of %lld or more, is %s", (long long)min,
				  rfl_json_show(s->value, shown, sizeof(shown)));
}

static enum rfl_rc read_bool(const struct source *s, bool *ret)
{
	char shown[80];

	if (!json_is_boolean(s->value))
		return rfl_net_file__fail(s->r, s->draft, s->key, s->index,
					  "must be true or false, is %s",
					  rfl_json_show(s->value, shown, sizeof(shown)));
	*ret = json_is_true(s->value);
	return RFL_OK;
}

/* `least` to `most` whole numbers. */
static enum rfl_rc read_list(const struct source *s, int least, int most, int64_t min, int64_t *dim,
			     int *ndim)
{
	size_t n = json_array_size(s->value);
	enum rfl_rc rc = RFL_OK;

	if (!json_is_array(s->value) || n < (size_t)least || n > (size_t)most) {
		if (least == most)
			return rfl_net_file__fail(s->r, s->draft, s->key, -1,
						  "must be a list of %d whole numbers", most);
		return rfl_net_file__fail(s->r, s->draft, s->key, -1,
					  "must be a list of %d to %d whole numbers", least, most);
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		struct source element = *s;

		element.index = (int)i;
		element.value = json_array_get(s->value, i);
		rc = read_int(&element, min, &dim[i]);
	}
	*ndim = (int)n;
	return rc;
}

static enum rfl_rc read_order(const struct source *s, const struct rfl_shape *in, int64_t *order)
{
	int ndim;

	if (json_array_size(s->value) != (size_t)in->ndim)
		return rfl_net_file__fail(s->r, s->draft, s->key, -1,
					  "must be a list of %d whole numbers: the input has %d "
					  "dimensions",
					  in->ndim, in->ndim);
	return read_list(s, in->ndim, in->ndim, 0, order, &ndim);
}

static enum rfl_rc read_value(const struct source *s, const struct rfl_op_attr *attr,
			      const struct rfl_shape *in, void *to)
{
	struct rfl_shape *shape = to;

	switch (attr->type) {
	case RFL_ATTR_INT:
		return read_int(s, attr->min, to);
	case RFL_ATTR_REAL:
		return read_real(s, attr->min, to);
	case RFL_ATTR_BOOL:
		return read_bool(s, to);
	case RFL_ATTR_SHAPE:
		return read_list(s, 1, RFL_NET_MAX_DIMS, 1, shape->dim, &shape->ndim);
	case RFL_ATTR_ORDER:
		break;
	}
	return read_order(s, in, to);
}

/* What stands where a file says nothing. */
static void set_default(const struct rfl_op_attr *attr, void *to)
{
	if (attr->type == RFL_ATTR_INT)
		*(int64_t *)to = (int64_t)attr->def;
	else if (attr->type == RFL_ATTR_REAL)
		*(double *)to = attr->def;
	else if (attr->type == RFL_ATTR_BOOL)
		*(bool *)to = attr->def != 0;
}

/* Channels are the first dimension of an image, features the last of a token. */
static void set_inferred(const struct rfl_op_attr *attr, const struct rfl_shape *in, int64_t *to)
{
	if (in && in->ndim > 0)
		*to = in->dim[strstr(attr->name, "channels") ? 0 : in->ndim - 1];
}

enum rfl_rc rfl_net_file__read(struct rfl_net_reader *r, int draft, const char *key,
			       const json_t *value, enum rfl_attr_type type, int64_t min, void *to)
{
	const struct rfl_op_attr attr = { .name = key, .type = type, .min = min };
	const struct source s = { .r = r, .draft = draft, .key = key, .index = -1, .value = value };

	return value ? read_value(&s, &attr, NULL, to) : RFL_OK;
}

static enum rfl_rc missing(struct rfl_net_reader *r, int draft, const char *key)
{
	return rfl_net_file__fail(r, draft, NULL, -1, "the key \"%s\" is missing", key);
}

static enum rfl_rc read_attr(struct rfl_net_reader *r, int draft, const struct rfl_op_attr *attr,
			     const struct rfl_shape *in, void *to)
{
	struct source s = {
		.r = r,
		.draft = draft,
		.key = attr->name,
		.index = -1,
		.value = json_object_get(r->drafts[draft].obj, attr->name),
	};

	if (s.value)
		return read_value(&s, attr, in, to);
	if (attr->required)
		return missing(r, draft, attr->name);
	set_default(attr, to);
	return RFL_OK;
}

/* "kernel": 3, "kernel": [1, 7], or "kernel_h" and "kernel_w" on their own. */
static enum rfl_rc read_pair(struct rfl_net_reader *r, int draft, const struct rfl_op_attr *attr,
			     int64_t *h, int64_t *w)
{
	const json_t *obj = r->drafts[draft].obj;
	char stem[64];
	struct source s = { .r = r, .draft = draft, .key = stem, .index = -1 };
	int64_t both[2] = { 0 };
	int n;
	enum rfl_rc rc;

	s.value = json_object_get(obj, rfl_net_file__stem(attr, stem, sizeof(stem)));
	if (!s.value) {
		if (attr->required && !json_object_get(obj, attr[0].name) &&
		    !json_object_get(obj, attr[1].name))
			return missing(r, draft, stem);
		rc = read_attr(r, draft, &attr[0], NULL, h);
		return rc == RFL_OK ? read_attr(r, draft, &attr[1], NULL, w) : rc;
	}
	for (int i = 0; i < 2; i++)
		if (json_object_get(obj, attr[i].name))
			return rfl_net_file__fail(r, draft, attr[i].name, -1,
						  "\"%s\" says the same already", stem);
	if (json_is_array(s.value)) {
		rc = read_list(&s, 2, 2, attr->min, both, &n);
	} else {
		rc = read_int(&s, attr->min, &both[0]);
		both[1] = both[0];
	}
	if (rc == RFL_OK) {
		*h = both[0];
		*w = both[1];
	}
	return rc;
}

static void *place_of(struct rfl_node *node, const struct rfl_op_attr *attr)
{
	return (char *)node + attr->offset;
}

enum rfl_rc rfl_net_file__read_attrs(struct rfl_net_reader *r, int draft,
				     const struct rfl_shape *in, struct rfl_node *node)
{
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < op->nattrs && rc == RFL_OK; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];

		if (attr->inferred) {
			set_inferred(attr, in, place_of(node, attr));
		} else if (rfl_net_file__is_pair(op, i)) {
			rc = read_pair(r, draft, attr, place_of(node, attr),
				       place_of(node, &attr[1]));
			i++;
		} else {
			rc = read_attr(r, draft, attr, in, place_of(node, attr));
		}
	}
	return rc;
}

/* --- writing ------------------------------------------------------------------------------------
 */

json_t *rfl_net_file__sizes(const int64_t *dim, int n)
{
	json_t *list = json_array();

	for (int i = 0; list && i < n; i++)
		if (json_array_append_new(list, json_integer(dim[i])) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static const void *value_of(const struct rfl_node *node, const struct rfl_op_attr *attr)
{
	return (const char *)node + attr->offset;
}

static bool is_default(const struct rfl_op_attr *attr, const void *value)
{
	if (attr->required)
		return false;
	switch (attr->type) {
	case RFL_ATTR_INT:
		return *(const int64_t *)value == (int64_t)attr->def;
	case RFL_ATTR_REAL:
		return *(const double *)value == attr->def;
	case RFL_ATTR_BOOL:
		return *(const bool *)value == (attr->def != 0);
	case RFL_ATTR_SHAPE:
	case RFL_ATTR_ORDER:
		break;
	}
	return false;
}

static json_t *json_of(const struct rfl_op_attr *attr, const void *value, int in_ndim)
{
	const struct rfl_shape *shape = value;

	switch (attr->type) {
	case RFL_ATTR_INT:
		return json_integer(*(const int64_t *)value);
	case RFL_ATTR_REAL:
		return json_real(*(const double *)value);
	case RFL_ATTR_BOOL:
		return json_boolean(*(const bool *)value);
	case RFL_ATTR_SHAPE:
		return rfl_net_file__sizes(shape->dim, shape->ndim);
	case RFL_ATTR_ORDER:
		break;
	}
	return rfl_net_file__sizes(value, in_ndim);
}

static bool write_pair(const struct rfl_op_attr *attr, const struct rfl_node *node, json_t *obj)
{
	int64_t both[2] = { *(const int64_t *)value_of(node, attr),
			    *(const int64_t *)value_of(node, &attr[1]) };
	char stem[64];

	if (is_default(attr, &both[0]) && is_default(&attr[1], &both[1]))
		return true;
	return json_object_set_new(obj, rfl_net_file__stem(attr, stem, sizeof(stem)),
				   both[0] == both[1] ? json_integer(both[0])
						      : rfl_net_file__sizes(both, 2)) == 0;
}

bool rfl_net_file__write_attrs(const struct rfl_net *net, const struct rfl_node *node, json_t *obj)
{
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	int in_ndim = node->ninputs ? net->nodes[node->input[0]].shape.ndim : 0;

	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];
		bool pair = rfl_net_file__is_pair(op, i);

		if (attr->inferred)
			continue;
		if (pair && !write_pair(attr, node, obj))
			return false;
		i += pair;
		if (!pair && !is_default(attr, value_of(node, attr)) &&
		    json_object_set_new(obj, attr->name,
					json_of(attr, value_of(node, attr), in_ndim)) != 0)
			return false;
	}
	return true;
}
