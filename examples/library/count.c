/* count.c - FLOPs, bytes and arithmetic intensity of a training step of a network. */
#include <inttypes.h>
#include <rfl.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	struct rfl_count *count = NULL;
	enum rfl_rc rc;

	if (argc != 3) {
		fprintf(stderr, "usage: count MODEL|FILE.json|FILE.onnx BATCH\n");
		return 2;
	}
	const struct rfl_count_options options = { .batch = strtoll(argv[2], NULL, 10),
						   .training = true,
						   .optimizer = RFL_OPT_MOMENTUM };

	rc = rfl_net_is_file(argv[1]) ? rfl_net_load(argv[1], &net, &err)
				      : rfl_zoo_build(argv[1], NULL, &net, &err);
	if (rc == RFL_OK)
		rc = rfl_count_net(net, &options, &count, &err);
	for (int i = 0; rc == RFL_OK && i < RFL_FUSION_COUNT; i++) {
		const int64_t flops = rfl_count_training_flops(count);
		const int64_t bytes = rfl_count_bytes(count, (enum rfl_fusion)i, RFL_SCOPE_STEP);

		printf("%-10s  %" PRId64 " FLOP  %" PRId64 " bytes  %.3g FLOP/byte\n",
		       rfl_fusion_names[i], flops, bytes, (double)flops / (double)bytes);
	}
	if (rc != RFL_OK)
		fprintf(stderr, "count: %s\n", err.msg);
	rfl_count_free(count);
	rfl_net_free(net);
	return rc != RFL_OK;
}
