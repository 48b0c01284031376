/* A network: what loads has counts for one sample, and what is written of it loads again as the
 * same text with the same counts. */
#include "net_again.h"

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
