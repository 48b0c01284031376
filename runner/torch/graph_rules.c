/*
 * graph_rules.c - when a training step can be recorded.
 */
#include "runner/torch/graph_rules.h"

#include <stddef.h>

const char *rfl_graph_refusal(const struct rfl_graph_facts *f)
{
	const bool counts_on_host = f->step && !f->fused && f->rule != RFL_RULE_SGD;
	const bool waits = f->step && !f->fused && f->scaled;
	const struct {
		bool holds;
		const char *why;
	} rows[] = {
		{ f->missing != NULL, f->missing },
		{ f->marked, "a listener to its layers would be called for the recording, not for "
			     "the work: leave out counters and ranges by layer" },
		{ f->exchanged, "the exchange of gradients between processes is not recorded: run "
				"one process, or without --cuda-graph" },
		{ counts_on_host, "Adam by several kernels counts its steps on the host, and a "
				  "recording would repeat one of them: use the fused kernels" },
		{ waits, "loss scaling with an update by several kernels waits for the device: use "
			 "the fused kernels, or bf16" },
		{ f->steps < RFL_GRAPH_STEPS_BEFORE,
		  "it needs at least 3 ordinary steps before it: use --warmup-iters 3 or more" },
		{ f->step && f->updates == 0, "it needs an ordinary update before it, which makes "
					      "the optimizer's memory" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].holds)
			return rows[i].why;
	return NULL;
}
