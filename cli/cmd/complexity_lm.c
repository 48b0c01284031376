/* complexity_lm.c - roofline complexity --phase: language models at inference. */
#include "cli/cmd/complexity.h"

#include <string.h>

#include "base/log.h"
#include "machine/terms.h"
#include "report/complexity_lm.h"

enum { PAST = 2048, PREFILL_TOKENS = 2048, GENERATE_TOKENS = 256 };

/* Set the formats of an item from the options, else its configuration, else the defaults.
 */
static enum rfl_rc set_formats(const struct complexity_args *a, struct rfl_lm_formats *f,
			       struct rfl_err *err)
{
	const struct {
		const char *name;
		struct rfl_lm_format *format;
		bool weights;
	} asked[] = {
		{ a->weights, &f->weights, true },
		{ a->expert_weights ? a->expert_weights : a->weights, &f->experts, true },
		{ a->head_weights, &f->head, true },
		{ a->activations, &f->activations, false },
		{ a->cache, &f->cache, false },
	};

	if (a->precision_given) {
		enum rfl_dtype dtype = RFL_DTYPE_F32;
		bool masters;
		enum rfl_rc rc = rfl_precision_storage(rfl_precision_names[a->precision], &dtype,
						       &masters, err);

		if (rc != RFL_OK)
			return rc;
		f->base = *rfl_lm_format_find(dtype == RFL_DTYPE_F32   ? "fp32"
					      : dtype == RFL_DTYPE_F16 ? "fp16"
								       : "bf16");
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(asked); i++) {
		struct rfl_lm_format *format = asked[i].format;

		if (!asked[i].name)
			continue;
		*format = *rfl_lm_format_find(asked[i].name);
		if (!asked[i].weights || format->scale_bits != 16) /* int8, int4 */
			continue;
		if (a->group >= 0)
			format->block = a->group;
		if (a->zero_points)
			format->zero_bits = format->bits;
	}
	rfl_lm_formats_fill(f);
	return RFL_OK;
}

/* The steps must not pass the last position of a model. Name the option that is the cause. */
static enum rfl_rc check_positions(const struct rfl_lm_report *r, const struct rfl_lm *lm,
				   struct rfl_err *err)
{
	for (size_t i = 0; lm->positions && i < r->npasts; i++) {
		const char *option = r->pasts[i] + 1 > lm->positions ? "--past"
				     : r->phase == RFL_LM_DECODE     ? "--draft-tokens"
								     : "--new";

		if (rfl_complexity_lm_context(r, r->pasts[i]) > lm->positions)
			return rfl_usage(err, "%s: %s has %lld positions; use fewer tokens", option,
					 lm->name, (long long)lm->positions);
	}
	return RFL_OK;
}

static enum rfl_rc check_split(const struct rfl_lm *lm, int64_t tensor, int64_t pipeline,
			       const char *option, struct rfl_err *err)
{
	if (rfl_lm_check_split(lm, tensor, pipeline, err) == RFL_OK)
		return RFL_OK;
	rfl_err_prefix(err, "%s", lm->name);
	return rfl_usage_of(option, err);
}

/* Complete an item: its formats, its ceilings, and whether it can be split and has the positions.
 */
static enum rfl_rc finish(const struct complexity *c, const struct rfl_lm_report *r,
			  struct rfl_lm_item *item, struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	enum rfl_rc rc;
	bool tf32;

	if ((rc = set_formats(a, &item->formats, err)) ||
	    (rc = check_split(&item->lm, a->tensor, 1, "--tensor-parallel", err)) ||
	    (rc = check_split(&item->lm, 1, a->pipeline, "--pipeline-parallel", err)) ||
	    (rc = check_positions(r, &item->lm, err)))
		return rc;
	tf32 = a->precision_given && a->precision == RFL_PRECISION_TF32 && !a->activations &&
	       strcmp(item->formats.activations.name, "fp32") == 0;
	item->matmuls = tf32 ? "tf32" : item->formats.activations.name;
	return rfl_complexity_roof(c, item->matmuls, r->fusions[0],
				   tf32 ? "--precision" : "--activations", &item->roof, err);
}

static enum rfl_rc find_items(const struct complexity *c, const struct rfl_lms *lms,
			      struct rfl_lm_report *r, struct rfl_lm_item *items,
			      struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	const struct rfl_lm *lm = NULL;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < a->models.n && rc == RFL_OK; i++) {
		const bool all = strcmp(a->models.items[i], "all") == 0;

		for (size_t k = 0; all && k < lms->n && rc == RFL_OK; k++) {
			struct rfl_err why = RFL_ERR_INIT;

			items[r->n].lm = lms->models[k];
			rc = finish(c, r, &items[r->n], &why);
			r->n += rc == RFL_OK;
			if (rc == RFL_EUSAGE) {
				rfl_log(RFL_LOG_WARN, "skipped: %s", why.msg);
				rc = RFL_OK;
			} else if (rc != RFL_OK) {
				(void)rfl_err_pass(err, &why);
			}
		}
		if (all)
			continue;
		rc = rfl_lms_find(lms, a->models.items[i], &lm, err);
		if (rc == RFL_ENOTFOUND)
			return rfl_usage_of("--models", err);
		items[r->n].lm = *lm;
		rc = finish(c, r, &items[r->n++], err);
	}
	for (size_t i = 0; i < a->nets.n && rc == RFL_OK; i++) {
		rc = rfl_lm_load(a->nets.items[i], c->cli->arena, &items[r->n].lm,
				 &items[r->n].formats, err);
		if (rc == RFL_OK)
			rc = finish(c, r, &items[r->n++], err);
	}
	return rc;
}

enum rfl_rc rfl_complexity_lm(const struct complexity *c, struct rfl_buf *out, struct rfl_err *err)
{
	const struct complexity_args *a = c->args;
	const enum rfl_lm_phase phase = (enum rfl_lm_phase)(a->phase - 1);
	const int64_t past = phase == RFL_LM_PREFILL ? 0 : PAST;
	const enum rfl_fusion fusion =
		c->r.fusion < 0 ? RFL_FUSION_FUSED : (enum rfl_fusion)c->r.fusion;
	static const enum rfl_fusion fusions[] = { RFL_FUSION_UNFUSED, RFL_FUSION_FUSED,
						   RFL_FUSION_COMPULSORY };
	const bool levels = c->r.fusion == RFL_FUSION_ALL;
	RFL_AUTOPTR(lms) lms = rfl_lms_new();
	struct rfl_lm_item *items = rfl_arena_array(
		c->cli->arena, a->models.n * (lms->n + 1) + a->nets.n + 1, sizeof(*items));
	struct rfl_lm_report r = {
		.items = items,
		.phase = phase,
		.batches = a->batches.items,
		.nbatches = a->batches.n,
		.pasts = a->pasts.n ? a->pasts.items : &past,
		.npasts = a->pasts.n ? a->pasts.n : 1,
		.tokens = a->tokens                  ? a->tokens
			  : phase == RFL_LM_PREFILL  ? PREFILL_TOKENS
			  : phase == RFL_LM_GENERATE ? GENERATE_TOKENS
						     : 1,
		.drafts = a->drafts,
		.acceptance = a->acceptance,
		.step = { .causal_half = !a->causal_given || a->causal == 1,
			  .page = a->page,
			  .tensor = a->tensor,
			  .pipeline = a->pipeline },
		.fusions = levels ? fusions : &fusion,
		.nfusions = levels ? RFL_ARRAY_LEN(fusions) : 1,
		.link_byte_per_s = a->link * 1e9,
		.by = (enum rfl_summary_by)a->by,
		.device = c->r.device,
	};
	enum rfl_rc rc;

	if (!a->models.n && !a->nets.n)
		return rfl_usage(err, "--phase needs --models, such as llama3_8b, or --net "
				      "config.json; --models all shows all");
	for (size_t i = 0; phase == RFL_LM_GENERATE && i < r.npasts; i++)
		if (r.pasts[i] < 1)
			return rfl_usage(err,
					 "--past: generate needs a prompt of at least 1 token");
	rc = find_items(c, lms, &r, items, err);
	if (rc == RFL_OK && r.n == 0)
		return rfl_usage(err, "--models: none of the models accepts these options; change "
				      "--past, --new or the devices");
	if (rc == RFL_OK)
		rfl_complexity_lm_table(&r, (enum rfl_format)a->format, out);
	return rc;
}
