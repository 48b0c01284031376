/*
 * engine.c - which engine and which device a run gets, and why; and the part of the request that
 * the device has no use for.
 */
#include "runner/run/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "complexity/op.h"

/* ---- the choice ---- */

static void add_reason(struct rfl_run__choice *c, const char *device, const char *why)
{
	const size_t at = strlen(c->reason);

	snprintf(c->reason + at, sizeof(c->reason) - at, "%snot %s: %s", at ? "; " : "", device,
		 why);
}

/* GPUs in the order of their usual speed; where none can be used the processor can. */
static enum rfl_rc choose(const struct rfl_run_config *c, const struct rfl_engine_list *list,
			  struct rfl_run__choice *ret, struct rfl_err *err)
{
	static const enum rfl_device by_speed[] = { RFL_DEVICE_CUDA, RFL_DEVICE_MPS };

	for (size_t i = 0; i < RFL_ARRAY_LEN(by_speed); i++) {
		struct rfl_err why = RFL_ERR_INIT;

		ret->device = by_speed[i];
		if (rfl_engine_load(list, c->engine, ret->device, &ret->ops, &why) == RFL_OK) {
			const size_t at = strlen(ret->reason);

			snprintf(ret->reason + at, sizeof(ret->reason) - at,
				 "%s%s can be used here", at ? "; " : "",
				 rfl_device_names[ret->device]);
			return RFL_OK;
		}
		add_reason(ret, rfl_device_names[ret->device], why.msg);
	}
	ret->device = RFL_DEVICE_CPU;
	return rfl_engine_load(list, c->engine, ret->device, &ret->ops, err);
}

enum rfl_rc rfl_run__choose(const struct rfl_run_config *c, const struct rfl_engine_list *list,
			    struct rfl_run__choice *ret, struct rfl_err *err)
{
	*ret = (struct rfl_run__choice){ .ops = NULL };
	if (c->device == RFL_RUN_DEVICE_AUTO)
		return choose(c, list, ret, err);
	ret->device = (enum rfl_device)c->device;
	return rfl_engine_load(list, c->engine, ret->device, &ret->ops, err);
}

/* ---- what the device has no use for ---- */

enum rfl_rc rfl_run__suit(struct rfl_run_config *c, const struct rfl_run__choice *choice,
			  struct rfl_err *err)
{
	const bool cuda = choice->device == RFL_DEVICE_CUDA;
	const struct {
		bool *asked;
		bool of_use;
		const char *name;
	} rows[] = {
		{ &c->pin_memory, cuda && choice->ops->host_alloc && choice->ops->host_free,
		  "--pin-memory" },
		{ &c->cudnn_benchmark, cuda, "--cudnn-benchmark" },
		{ &c->sync_each_step, choice->device != RFL_DEVICE_CPU, "--sync-each-step" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		if (!*rows[i].asked || rows[i].of_use)
			continue;
		rfl_log(RFL_LOG_DEBUG, "%s has no effect on %s", rows[i].name,
			rfl_device_names[choice->device]);
		*rows[i].asked = false;
	}
	if (c->counter_sets && !cuda)
		rfl_log(RFL_LOG_DEBUG,
			"--counter-sets has no effect on %s, where all is counted at once",
			rfl_device_names[choice->device]);
	if (c->cuda_graph && !cuda)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"--cuda-graph: the run is on the %s, which replays no steps (%s)",
				rfl_device_names[choice->device],
				choice->reason[0] ? choice->reason : "as was asked for");
	return RFL_OK;
}

/* ---- the engine ---- */

/* Named before anything is opened: which operation the engine cannot do, and why. */
static enum rfl_rc check_operations(const struct rfl_run_config *c,
				    const struct rfl_run__choice *choice, const struct rfl_net *net,
				    struct rfl_err *err)
{
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const char *why =
			choice->ops->unsupported(node->op, (enum rfl_precision)c->precision);

		if (why)
			return rfl_fail(err, RFL_EUNSUPPORTED, 0, "%s: %s (%s) in %s: %s",
					choice->ops->name, node->name,
					rfl_op_info_of(node->op)->module,
					rfl_precision_names[c->precision], why);
	}
	return RFL_OK;
}

enum rfl_rc rfl_run__open_engine(const struct rfl_run_config *c,
				 const struct rfl_run__choice *choice, const struct rfl_net *net,
				 struct rfl_engine **ret, struct rfl_err *err)
{
	const struct rfl_engine_config engine = {
		.device = choice->device,
		.precision = (enum rfl_precision)c->precision,
		.layout = rfl_run__layout(c),
		.threads = (int)c->threads,
		.max_batch = c->micro_batch,
		.optimizer = {
			.rule = (enum rfl_optimizer_rule)c->optimizer,
			.kernels = (enum rfl_optimizer_kernels)c->optimizer_kernels,
			.lr = c->lr,
			.weight_decay = c->weight_decay,
			.momentum = c->optimizer == RFL_RULE_SGD ? c->momentum : 0,
			.beta1 = c->beta1,
			.beta2 = c->beta2,
			.eps = c->eps,
		},
		.seed = (uint64_t)c->seed,
		.dropout = true,
		.deterministic = c->deterministic,
		.cudnn_benchmark = c->cudnn_benchmark,
	};
	enum rfl_rc rc = check_operations(c, choice, net, err);

	return rc ? rc : choice->ops->open(net, &engine, ret, err);
}
