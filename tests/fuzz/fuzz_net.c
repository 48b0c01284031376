/* A network: what loads has counts for one sample, and what is written of it loads again as the
 * same text with the same counts. */
#include <string.h>

#include "base/buf.h"
#include "complexity/count.h"
#include "complexity/net/file.h"
#include "fuzz.h"
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

static struct rfl_count *count(const struct rfl_net *net)
{
	const struct rfl_count_options one = { .batch = 1, .training = true };
	struct rfl_count *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	FUZZ_ASSERT(rfl_count_net(net, &one, &ret, &err) == RFL_OK);
	return ret;
}

static void check_again(const struct rfl_net *net)
{
	struct rfl_net *again = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *a = count(net), *b;
	struct rfl_buf text, second;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&second, 0);
	FUZZ_ASSERT(rfl_net_write(net, &text, &err) == RFL_OK);
	FUZZ_ASSERT(net_parse(text.data, text.len, "written", &again, &err) == RFL_OK);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = net_parse((const char *)data, size, "net.json", &net, &err);

	fuzz_check(rc, net, &err, "net.json");
	if (rc == RFL_OK)
		check_again(net);
	rfl_net_free(net);
	return 0;
}
