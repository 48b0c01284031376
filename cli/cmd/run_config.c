/* run_config.c - check the options of a run and convert them to its configuration. */
#include "cli/cmd/run_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"

#define MOST_LOCAL 1024 /* processes on this machine */

extern const struct rfl_cmd rfl_cmd_run;

static const char *const rfl_run_interconnects[] = { "auto", "gloo", "nccl", NULL };
enum { GLOO = 1, NCCL = 2 };

#define AT(member) offsetof(struct rfl_run_args, member)

const struct rfl_opt rfl_run_opts[] = {
#define FACT(kind_, member_, identity_, column_, ...) \
	{ .kind = RFL_OPT_##kind_,                    \
	  .offset = AT(config.member_),               \
	  .given = AT(given.member_),                 \
	  __VA_ARGS__ },
#define RAW(kind_, member_, identity_, ...) \
	{ .kind = RFL_OPT_##kind_, .offset = AT(member_), __VA_ARGS__ },
#include "runner/run/facts.inc"
	{ .name = NULL },
};

/* Parse "stdrel=0.5%" or "stdrel=0.005". */
static enum rfl_rc parse_until(const char *text, double *ret, struct rfl_err *err)
{
	static const char prefix[] = "stdrel=";
	const size_t skip = sizeof(prefix) - 1, len = strlen(text);
	char number[32] = "";
	double value = 0;

	if (strncmp(text, prefix, skip) == 0 && len - skip < sizeof(number)) {
		const bool percent = text[len - 1] == '%';

		memcpy(number, text + skip, len - skip - percent);
		if (rfl_num_parse_double(number, "--until", &value, NULL) != RFL_OK)
			value = 0;
		value = percent ? value / 100 : value;
	}
	if (!(value > 0 && value < 1))
		return rfl_usage(err,
				 "--until: '%s' is not stdrel=X%% with X above 0 and below 100, "
				 "such as stdrel=0.5%%",
				 text);
	*ret = value;
	return RFL_OK;
}

static const char *from_environment(const char *name, void *ctx)
{
	(void)ctx;
	return getenv(name);
}

static enum rfl_rc find_world(const struct rfl_run_args *a, struct rfl_world *ret,
			      struct rfl_err *err)
{
	struct rfl_world w = { .size = 1, .local_size = -1 };
	int64_t n = 0;

	if (a->world && strcmp(a->world, "env") == 0) {
		if (rfl_world_from_env(from_environment, NULL, &w, err) != RFL_OK)
			return RFL_EUSAGE;
		if (!w.launcher)
			return rfl_usage(err, "--world env: no launcher found (torchrun: RANK, "
					      "srun: SLURM_PROCID, mpirun: OMPI_COMM_WORLD_RANK or "
					      "PMI_RANK); start this command with a launcher, or "
					      "use --world N for N processes on this machine");
	} else if (a->world) {
		if (rfl_num_parse_int(a->world, "--world", &n, NULL) != RFL_OK || n < 1 ||
		    n > MOST_LOCAL)
			return rfl_usage(err,
					 "--world: '%s' is neither 'env' nor a number of processes "
					 "from 1 to %d",
					 a->world, MOST_LOCAL);
		w.size = w.local_size = (int)n;
	}
	w.interconnect = rfl_run_interconnects[a->interconnect];
	w.timeout_s = a->world_timeout_s;
	w.bucket_bytes = (int64_t)(a->bucket_mb * (1 << 20));
	*ret = w;
	return RFL_OK;
}

static bool caches(const struct rfl_run_config *c)
{
	return rfl_run_mode_caches((enum rfl_run_mode)c->mode);
}

enum rfl_rc rfl_run_args_settle(const struct rfl_cli *cli, const struct rfl_run_args *a,
				struct rfl_run_config *ret, struct rfl_err *err)
{
	/* The defaults of torch.optim, except that sgd has the usual value for image networks. */
	static const double weight_decay[] = {
		[RFL_RULE_SGD] = 1e-4, [RFL_RULE_ADAM] = 0, [RFL_RULE_ADAMW] = 1e-2
	};
	const struct rfl_run_config *c = &a->config;
	const struct {
		bool holds;
		const char *text;
	} never[] = {
#define NEVER(condition, text) { (condition), (text) },
#include "runner/run/facts.inc"
	};
	const struct rfl_zoo_model *model;
	enum rfl_rc rc;

	*ret = *c;
	if (!caches(c) && !rfl_net_is_file(c->arch) &&
	    rfl_zoo_find(c->arch, &model, err) != RFL_OK) {
		rfl_err_prefix(err, "--arch");
		return RFL_EUSAGE;
	}
	if (c->env && (rc = rfl_text_check_env_name("--env", c->env, RFL_EUSAGE, err)))
		return rc;
	for (size_t i = 0; i < RFL_ARRAY_LEN(never); i++)
		if (never[i].holds)
			return rfl_usage(err, "%s", never[i].text);
	if ((a->until && (rc = parse_until(a->until, &ret->until_stdrel, err))) ||
	    (rc = find_world(a, &ret->world, err)))
		return rc;
	if (caches(c) && !a->given.micro_batch)
		ret->micro_batch = 1;
	if (!a->given.weight_decay)
		ret->weight_decay = weight_decay[ret->optimizer];
	if ((a->synthetic || caches(c)) && ret->data_kind != RFL_DATA_SYNTHETIC_HOST)
		ret->data_kind = RFL_DATA_SYNTHETIC;
	if (ret->data_kind == RFL_DATA_SYNTHETIC || ret->data_kind == RFL_DATA_SYNTHETIC_HOST) {
		ret->data_dir = NULL;
		ret->workers = 0;
	}
	for (size_t i = 0; i < a->counter_sets.n; i++)
		for (int bit = 0; rfl_counter_set_names[bit]; bit++)
			if (strcmp(a->counter_sets.items[i], rfl_counter_set_names[bit]) == 0)
				ret->counter_sets |= 1 << bit;
	ret->plugin_dirs = cli->plugin_dirs;
	ret->places = rfl_cli_places(cli);
	ret->nvtx_injection = getenv("NVTX_INJECTION64_PATH");
	return RFL_OK;
}

void rfl_run_forget_records(struct rfl_run_config *c, const struct rfl_ledger_row *row)
{
	c->label = c->log_dir = NULL;
	c->env = row->env;
	c->device = RFL_RUN_DEVICE_AUTO;
	for (int i = 0; rfl_device_names[i]; i++)
		if (rfl_text_same(rfl_device_names[i], row->backend))
			c->device = i;
	c->oom = RFL_OOM_RECORD;
	c->timeout_s = 0;
	c->in_process = c->resume = false;
}

void rfl_run_write_command(const struct rfl_run_config *c, const struct rfl_ledger_row *row,
			   struct rfl_buf *out)
{
	struct rfl_run_args a = {
		.config = *c,
		.bucket_mb = (double)c->world.bucket_bytes / (1 << 20),
		.world_timeout_s = c->world.timeout_s,
	};
	char until[sizeof("stdrel=") + RFL_NUM_MAX], number[RFL_NUM_MAX];
	const char *sets[sizeof(c->counter_sets) * CHAR_BIT];

	rfl_run_forget_records(&a.config, row);
	if (!c->data_dir)
		a.config.workers = -1;
	if (c->until_stdrel > 0) {
		(void)snprintf(until, sizeof(until), "stdrel=%s",
			       rfl_num_exact(c->until_stdrel, number));
		a.until = until;
	}
	if (c->world.size > 1) {
		(void)snprintf(number, sizeof(number), "%d", c->world.size);
		a.world = rfl_text_same(c->world.launcher, "roofline") ? number : "env";
		while (rfl_run_interconnects[a.interconnect] &&
		       !rfl_text_same(rfl_run_interconnects[a.interconnect], c->world.interconnect))
			a.interconnect++;
	}
	a.counter_sets.items = sets;
	for (int bit = 0; rfl_counter_set_names[bit]; bit++)
		if (c->counter_sets >> bit & 1)
			sets[a.counter_sets.n++] = rfl_counter_set_names[bit];
	rfl_opt_write(&rfl_cmd_run, &a, out);
}

enum rfl_rc rfl_run_config_parse(const struct rfl_cli *cli, int argc, char *const *argv,
				 struct rfl_run_config *ret, struct rfl_err *err)
{
	struct rfl_run_args args = { .until = NULL };
	enum rfl_rc rc = rfl_opt_parse(&rfl_cmd_run, argc, argv, &args, NULL, err);

	if (rc == RFL_OK)
		rc = rfl_run_args_settle(cli, &args, ret, err);
	rfl_opt_free(&rfl_cmd_run, &args);
	return rc;
}
