/* net_again.h - what holds of every network that was read: it has counts for one sample, and what
 * is written of it is read again as the same text with the same counts. */
#ifndef RFL_TESTS_FUZZ_NET_AGAIN_H
#define RFL_TESTS_FUZZ_NET_AGAIN_H

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "complexity/count.h"
#include "complexity/net/file.h"
#include "fuzz.h"

static inline enum rfl_rc net_parse(const char *text, size_t length, const char *name,
				    struct rfl_net **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(text, length, name, &root, err);

	if (rc == RFL_OK)
		rc = rfl_net_from_json(root, name, ret, err);
	json_decref(root);
	return rc;
}

static inline struct rfl_count *count(const struct rfl_net *net)
{
	const struct rfl_count_options one = { .batch = 1, .training = true };
	struct rfl_count *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	FUZZ_ASSERT(rfl_count_net(net, &one, &ret, &err) == RFL_OK);
	return ret;
}

static inline void check_again(const struct rfl_net *net)
{
	struct rfl_net *again = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *a = count(net), *b;
	struct rfl_buf text, second;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&second, 0);
	FUZZ_ASSERT(rfl_net_write(net, &text, &err) == RFL_OK);
	if (net_parse(text.data, text.len, "written", &again, &err) != RFL_OK) {
		/* an ONNX file may have such nodes, a network file may not */
		FUZZ_ASSERT(strstr(err.msg, "no node reads it"));
		rfl_buf_fini(&text);
		rfl_count_free(a);
		return;
	}
	b = count(again);
	FUZZ_ASSERT(a->params == b->params && a->buffers == b->buffers);
	FUZZ_ASSERT(memcmp(&a->total, &b->total, sizeof(a->total)) == 0);
	FUZZ_ASSERT(rfl_net_write(again, &second, &err) == RFL_OK);
	FUZZ_ASSERT(text.len == second.len && memcmp(text.data, second.data, text.len) == 0);
	rfl_count_free(a);
	rfl_count_free(b);
	rfl_buf_fini(&text);
	rfl_buf_fini(&second);
	rfl_net_free(again);
}

#endif
