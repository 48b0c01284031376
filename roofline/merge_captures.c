/*
 * merge_captures.c - configurations without a ledger: each capture is a program, whose step is the
 * whole capture unless the number of steps is known. Its FLOPs, bytes and time are the capture's.
 */
#include "roofline/parts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "profile/chips.h"

double rfl_merge__clock(const struct rfl_capture *c, const struct rfl_amount *amount)
{
	const struct rfl_amount *cycles = &amount[RFL_QUANTITY_CYCLES];
	const struct rfl_amount *time = &amount[RFL_QUANTITY_TIME];

	return rfl_capture_is_of_gpu(c) && cycles->launches == time->launches
		       ? cycles->value / time->value
		       : (double)NAN;
}

enum rfl_by rfl_captures_by(const struct rfl_captures *captures)
{
	for (size_t i = 0; i < captures->n; i++) {
		const struct rfl_capture *c = captures->captures[i];
		const char *first = NULL;

		if (c->total_kind == RFL_RANGE_OP)
			return RFL_BY_OP;
		for (const struct rfl_range *r = c->ranges; r < c->ranges + c->nranges; r++) {
			if (r->kind == RFL_RANGE_KERNEL && first && !rfl_text_same(first, r->name))
				return RFL_BY_KERNEL;
			if (r->kind == RFL_RANGE_KERNEL)
				first = r->name ? r->name : "";
		}
	}
	return RFL_BY_STEP;
}

/* Warn if the ceilings are for another device. Of files that name a device only its kind is
 * compared. */
static void check_device(struct rfl_merge_job *job, const struct rfl_capture *c)
{
	const struct rfl_peaks_env *env = rfl_peaks_find(job->in->peaks, job->options->envs[0]);
	const bool gpu = rfl_capture_is_of_gpu(c);
	const struct rfl_chip *chip = c->chip && !c->device ? rfl_chip_find(c->chip) : NULL;
	const struct rfl_chip *of = env && env->device ? rfl_chip_of_device(env->device, 0) : NULL;

	if (env && env->kind && (strcmp(env->kind, "gpu") == 0) != gpu)
		rfl_buf_printf(
			&job->report->notes,
			"counters: %s was profiled on a %s, but the ceilings of %s are for a "
			"%s; use the environment of its device\n",
			rfl_counters__name(c), gpu ? "GPU" : "CPU", env->name, gpu ? "CPU" : "GPU");
	else if (chip && of && chip->capability != of->capability)
		rfl_buf_printf(&job->report->notes,
			       "counters: %s was counted on a %s, but the ceilings of %s are for a "
			       "%s (%s); use the environment of its device\n",
			       rfl_counters__name(c), chip->name, env->name, of->name, env->device);
}

void rfl_merge__captures(struct rfl_merge_job *job)
{
	const struct rfl_captures *all = job->in->counters.captures;

	job->configs = rfl_arena_array(job->arena, all->n, sizeof(*job->configs));
	for (size_t i = 0; i < all->n; i++) {
		const struct rfl_capture *c = all->captures[i];
		const enum rfl_quantity most = rfl_amounts_most_flops(c->total);
		const char *key = rfl_merge__ceiling_of(most);
		struct rfl_ledger_row *row = rfl_arena_array(job->arena, 1, sizeof(*row));
		struct rfl_config *config = &job->configs[job->n];
		struct rfl_joined *joined;

		if (rfl_text_same(c->source, "time")) {
			rfl_buf_printf(&job->report->notes,
				       "counters: %s is not used: it has neither FLOPs nor bytes\n",
				       rfl_counters__name(c));
			continue;
		}
		if (!key && most != RFL_QUANTITY_COUNT)
			rfl_buf_printf(&job->report->notes,
				       "counters: %s has the FLOPs of all precisions in one count; "
				       "compared with fp32.vector\n",
				       rfl_counters__name(c));
		check_device(job, c);
		rfl_ledger_row_init(row);
		row->env = rfl_arena_strdup(job->arena, job->options->envs[0]);
		row->model = rfl_arena_strdup(job->arena, c->label);
		row->backend =
			rfl_arena_strdup(job->arena, rfl_capture_is_of_gpu(c) ? "cuda" : "cpu");
		row->precision =
			rfl_arena_strdup(job->arena, key ? rfl_quantity_precision(most) : "fp32");
		row->device_name = c->device ? rfl_arena_strdup(job->arena, c->device) : NULL;
		*config = (struct rfl_config){
			.env = row->env,
			.row = row,
			.key = key ? key : "fp32.vector",
			.work = { .flops = NAN, .bytes = { NAN, NAN, NAN } },
			.measured = &rfl_counters__none,
			.flops_why = "",
			.bytes_why = "",
		};
		joined = rfl_arena_append(job->arena, &config->counted, &config->ncounted);
		*joined = (struct rfl_joined){
			.capture = c, .steps = -1, .number = -1, .unknown = ""
		};
		job->n++;
	}
}
