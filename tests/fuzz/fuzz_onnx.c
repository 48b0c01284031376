/* An ONNX file: what loads has counts for one sample and, if it is complete and reads images or
 * tokens, can be written as a network file. */
#include "complexity/onnx/onnx.h"
#include "net_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rfl_span file = { size ? (const char *)data : "", size };
	struct rfl_net *net = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_onnx_from_memory(file, "net.onnx", &net, &err);

	fuzz_check(rc, net, &err, "net.onnx");
	if (rc == RFL_OK && !net->uncounted &&
	    (net->nodes[0].shape.ndim == 3 || net->nodes[0].dtype != RFL_DTYPE_F32))
		check_again(net);
	rfl_net_free(net);
	return 0;
}
