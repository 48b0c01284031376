/*
 * fake_log.c - the file of RFL_FAKE_LOG.
 */
#include "tests/engines/fake_log.h"

#include <stdio.h>
#include <stdlib.h>

static void write_config(FILE *f, const struct rfl_engine_config *c)
{
	const char *workspace = getenv("CUBLAS_WORKSPACE_CONFIG");

	fprintf(f, "device=%s precision=%s layout=%s threads=%d max_batch=%lld seed=%llu\n",
		rfl_device_names[c->device], rfl_precision_names[c->precision],
		rfl_layout_names[c->layout], c->threads, (long long)c->max_batch,
		(unsigned long long)c->seed);
	fprintf(f, "deterministic=%d cudnn_benchmark=%d workspace=%s\n", c->deterministic,
		c->cudnn_benchmark, workspace ? workspace : "");
	fprintf(f,
		"optimizer=%s kernels=%s lr=%g momentum=%g weight_decay=%g betas=%g,%g eps=%g "
		"grad_clip=%g\n",
		rfl_optimizer_rule_names[c->optimizer.rule],
		rfl_optimizer_kernels_names[c->optimizer.kernels], c->optimizer.lr,
		c->optimizer.momentum, c->optimizer.weight_decay, c->optimizer.beta1,
		c->optimizer.beta2, c->optimizer.eps, c->optimizer.grad_clip);
}

void fake_log_write(const struct fake_log *log, const struct rfl_engine_config *config)
{
	const char *path = getenv("RFL_FAKE_LOG");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (f) {
		fprintf(f, "forward=%d backward=%d step=%d snapshot=%d restore=%d updates=%lld\n",
			log->calls[0], log->calls[1], log->calls[2], log->snapshots, log->restores,
			(long long)log->updates);
		fprintf(f,
			"zero_grad=%d last=%d weights=%g sync=%d loss=%d upload=%d pinned=%d "
			"capture=%d "
			"replay=%d\n",
			log->zeroed, log->last_backwards, log->weights, log->syncs, log->losses,
			log->uploads, log->pinned, log->captures, log->replays);
		write_config(f, config);
		fclose(f);
	}
}
