/*
 * summary_fit_help.c - which options would lower the peak of a network that does not fit, and how
 * far.
 */
#include "complexity/summary.h"

#include "base/num.h"

static bool checkpoint_all(const struct rfl_net *net, struct rfl_memory_options *o)
{
	if (!net->nblocks || o->count.checkpoint || !o->count.training)
		return false;
	o->count.checkpoint = 1;
	return true;
}

static bool store_bf16(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (o->count.dtype == RFL_DTYPE_BF16 || o->count.dtype == RFL_DTYPE_F16) {
		if (!o->count.master_weights)
			return false;
	}
	o->count.dtype = RFL_DTYPE_BF16;
	o->count.master_weights = false;
	return true;
}

static bool plain_sgd(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (!o->count.training || o->count.optimizer == RFL_OPT_SGD)
		return false;
	o->count.optimizer = RFL_OPT_SGD;
	return true;
}

static bool fused_update(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (!o->count.training || o->update == RFL_UPDATE_FUSED)
		return false;
	o->update = RFL_UPDATE_FUSED;
	return true;
}

static bool no_accumulation(const struct rfl_net *net, struct rfl_memory_options *o)
{
	(void)net;
	if (!o->count.training || o->accumulate <= 1)
		return false;
	o->accumulate = 1;
	return true;
}

static const struct {
	const char *option;
	bool (*apply)(const struct rfl_net *net, struct rfl_memory_options *o);
} helps[] = {
	{ "--checkpoint 1", checkpoint_all },  { "--precision bf16", store_bf16 },
	{ "--optimizer sgd", plain_sgd },      { "--update fused", fused_update },
	{ "--accumulate 1", no_accumulation },
};

/* Append "--option (peak 3 GiB)" where it lowers the peak of one sample. */
static enum rfl_rc add_help(const struct rfl_summary *s, const char *what,
			    const struct rfl_memory_options *options, struct rfl_buf *text,
			    struct rfl_err *err)
{
	struct rfl_memory *memory = NULL;
	char peak[RFL_NUM_MAX];
	enum rfl_rc rc = rfl_memory_new(s->net, options, &memory, err);

	if (rc == RFL_OK && memory->peak < s->fit->at.peak)
		rfl_buf_printf(text, "%s%s (peak %s)",
			       text->len ? ", " : " What would help: ", what,
			       rfl_num_bytes((double)memory->peak, peak, sizeof(peak)));
	rfl_memory_free(memory);
	return rc;
}

enum rfl_rc rfl_summary_fit_help(const struct rfl_summary *s, struct rfl_buf *text,
				 struct rfl_err *err)
{
	struct rfl_memory_options now = s->fit->at.options, all;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	now.count.batch = 1;
	all = now;
	for (size_t i = 0; i < RFL_ARRAY_LEN(helps) && rc == RFL_OK; i++) {
		struct rfl_memory_options o = now;

		if (!helps[i].apply(s->net, &o))
			continue;
		(void)helps[i].apply(s->net, &all);
		rc = add_help(s, helps[i].option, &o, text, err);
		n++;
	}
	if (rc == RFL_OK && n > 1)
		rc = add_help(s, "all of these", &all, text, err);
	if (text->len)
		rfl_buf_putc(text, '.');
	return rc;
}
