/*
 * plot_demo.h - a machine and points as figures meet them, built in memory: two threads of a small
 * server, ResNet-50, VGG-16 and MobileNetV2 in fp32 at two batches. Values are synthetic, but
 * realistic for such machines.
 */
#ifndef RFL_TESTS_PLOT_DEMO_H
#define RFL_TESTS_PLOT_DEMO_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peaks/peaks.h"
#include "plot/plot.h"
#include "roofline/points.h"

#define DEMO_COMPUTE 2
#define DEMO_LEVELS  2

struct demo {
	struct rfl_peak_compute compute[DEMO_COMPUTE + 3]; /* see demo_precision() */
	struct rfl_peak_level levels[DEMO_LEVELS];
	struct rfl_peaks_env env;
	struct rfl_point rows[128];
	struct rfl_points points;
	struct rfl_plot_input input;
};

static inline struct rfl_peak demo_peak(double value, const char *kernel, int threads,
					double spread)
{
	return (struct rfl_peak){
		.status = RFL_PEAK_MEASURED,
		.value = value,
		.spec = NAN,
		.kernel = kernel,
		.measured_at = "2026-11-21T08:12:40Z",
		.threads = threads,
		.stats = { 24, value * (1 - spread / 3), value * (1 - spread), value },
	};
}

static inline void demo_machine(struct demo *d)
{
	d->compute[0] = (struct rfl_peak_compute){
		.key = "fp32.vector",
		.cell = "compute.fp32.vector",
		.peak = demo_peak(182.4e9, "avx512 fma, 24 accumulators", 2, 0.018),
	};
	d->compute[1] = (struct rfl_peak_compute){
		.key = "fp32.vector.1core",
		.cell = "compute.fp32.vector.1core",
		.peak = demo_peak(95.1e9, "avx512 fma, 24 accumulators", 1, 0.01),
	};
	d->levels[0] = (struct rfl_peak_level){
		.level = "L3",
		.scope = "socket",
		.cell = "memory.L3.gbs",
		.capacity_bytes = 33554432,
		.peak = demo_peak(141.5e9, "read, avx512", 2, 0.05),
	};
	d->levels[1] = (struct rfl_peak_level){
		.level = "DRAM",
		.scope = "node",
		.cell = "memory.DRAM.gbs",
		.peak = demo_peak(38.6e9, "triad nt, avx512", 2, 0.04),
	};
	d->levels[1].peak.working_set_bytes = (int64_t)512 << 20;
	d->env = (struct rfl_peaks_env){
		.name = "lab_cpu",
		.kind = "cpu",
		.device = "AMD EPYC 9B45",
		.units = 2,
		.ncompute = DEMO_COMPUTE,
		.compute = d->compute,
		.nlevels = DEMO_LEVELS,
		.levels = d->levels,
	};
}

/* A row with everything a merge fills in. Texts are literals: the rows are never freed. */
static inline struct rfl_point *demo_point(struct demo *d, const char *model, int64_t batch,
					   double gflop_per_sample, double gflops, double ai,
					   double ai_fused)
{
	struct rfl_point *p = &d->rows[d->points.n++];

	memset(p, 0, sizeof(*p));
	p->env = (char *)"lab_cpu";
	p->model = (char *)model;
	p->precision = (char *)"fp32";
	p->batch = batch;
	p->mode = (char *)"train";
	p->layout = (char *)"nhwc";
	p->backend = (char *)"cpu";
	p->data_mode = (char *)"synthetic";
	p->engine = (char *)"torch 1.13.1";
	p->device_name = (char *)"AMD EPYC 9B45";
	p->threads = 2;
	p->runs = 3;
	p->steps = 60;
	p->flops_per_step = gflop_per_sample * 1e9 * (double)batch;
	p->flops_source =
		(char *)"counted from the network: convolution and linear layers, forward, dgrad "
			"and wgrad, 2 per multiply-add, no dgrad of the first layer";
	p->step_s = p->flops_per_step / gflops / 1e9;
	p->step_s_lo = p->step_s * 0.99;
	p->step_s_hi = p->step_s * 1.02;
	p->step_source = (char *)"min-max of the repeats";
	p->samples_per_s = (double)batch / p->step_s;
	p->fwd_ms = p->step_s * 310;
	p->bwd_ms = p->step_s * 640;
	p->opt_ms = p->step_s * 40;
	p->data_wait_ms = p->step_s * 10;
	p->bytes_source = (char *)"unfused";
	p->bytes_per_step = p->flops_per_step / ai;
	p->ai = p->ai_unfused = ai;
	p->ai_lo = p->ai_hi = p->uncertainty = p->attained_gbps = NAN;
	p->ai_fused = ai_fused;
	p->ai_compulsory = ai * 14;
	p->attained_gflops = gflops;
	p->attained_gflops_lo = gflops / 1.02;
	p->attained_gflops_hi = gflops / 0.99;
	p->compute_key = (char *)"fp32.vector";
	p->peak_gflops = 182.4e9 / 1e9;
	p->peak_gflops_status = (char *)"measured";
	p->peak_gbps = 38.6e9 / 1e9;
	p->peak_gbps_status = (char *)"measured";
	p->knee_ai = p->peak_gflops / p->peak_gbps;
	p->attainable_gflops = fmin(ai * p->peak_gbps, p->peak_gflops);
	p->percent_of_attainable = 100 * gflops / p->attainable_gflops;
	p->bound = (char *)(ai < p->knee_ai ? "memory" : "compute");
	p->headroom_s = p->step_s - p->flops_per_step / p->attainable_gflops / 1e9;
	p->peaks_hash = (char *)"3f9a1c0de7b25514";
	p->ledger_hash = (char *)"71c2ee09a4f3d680";
	return p;
}

/* Change the precision of a point to bf16 or tf32; add the ceiling if it is missing. */
static inline void demo_precision(struct demo *d, struct rfl_point *p, bool tf32, double gflops)
{
	const struct rfl_peak_compute c = {
		.key = tf32 ? "tf32.matrix" : "bf16.matrix",
		.cell = tf32 ? "compute.tf32.matrix" : "compute.bf16.matrix",
		.peak = demo_peak(gflops * 1e9, "dot products", 2, .02),
	};
	size_t i = DEMO_COMPUTE;

	while (i < d->env.ncompute && strcmp(d->compute[i].key, c.key) != 0)
		i++;
	d->compute[i] = c;
	if (i == d->env.ncompute)
		d->env.ncompute++;
	p->precision = (char *)(tf32 ? "tf32" : "bf16");
	p->compute_key = (char *)(uintptr_t)c.key;
	p->peak_gflops = gflops;
	p->knee_ai = gflops / p->peak_gbps;
	p->attainable_gflops = fmin(p->ai * p->peak_gbps, gflops);
	p->percent_of_attainable = 100 * p->attained_gflops / p->attainable_gflops;
	p->bound = (char *)(p->ai < p->knee_ai ? "memory" : "compute");
}

/** An empty environment. @param d  to be freed by the caller */
static inline struct demo *demo_new(void)
{
	struct demo *d = calloc(1, sizeof(*d));

	demo_machine(d);
	d->points.points = d->rows;
	d->input = (struct rfl_plot_input){
		.points = &d->points,
		.env = &d->env,
		.points_name = "points.csv",
		.points_hash = "5b0e77d1c2a94f36",
		.peaks_name = "peaks.json",
		.peaks_hash = "3f9a1c0de7b25514",
		.version = "0.1.0",
	};
	return d;
}

/** The six points of the demonstration. */
static inline struct demo *demo_six(void)
{
	struct demo *d = demo_new();

	demo_point(d, "resnet50", 4, 24.30, 96.4, 17.2, 38.0);
	demo_point(d, "resnet50", 8, 24.30, 112.0, 21.6, 52.4);
	demo_point(d, "vgg16", 4, 92.65, 141.0, 33.0, 58.0);
	demo_point(d, "vgg16", 8, 92.65, 152.0, 46.1, 92.0);
	demo_point(d, "mobilenet_v2", 4, 1.79, 24.1, 3.31, 8.9);
	demo_point(d, "mobilenet_v2", 8, 1.79, 27.9, 3.72, 10.4);
	return d;
}

#endif
