/*
 * profile.h - FLOPs, bytes and time measured by counters of GPUs and CPUs, in this process or
 * by another profiler. Read this first.
 *
 *   live   a source (source.h) counts a workload, passed as a callback, in one or more passes:
 *          CUPTI's range profiler for NVIDIA GPUs, perf events for CPUs
 *   files  an importer (importer.h) reads files of ncu, nvprof, nsys, rocprof, perf, time and
 *          likwid, and counters.csv
 *
 * Both produce captures (capture.h): ranges (a kernel, a phase, a step, a process) with raw metrics
 * in SI base units. Formulas (formula.h; one data file per family of chips) turn metrics into the
 * quantities listed below. A missing metric or quantity is NaN with a reason; 0 always means that a
 * counter read 0.
 */
#ifndef RFL_PROFILE_PROFILE_H
#define RFL_PROFILE_PROFILE_H

#include <stdbool.h>

#include "base/err.h"

/* X(ID, name, unit, meaning). An FMA is 2 FLOPs. All can be summed over launches and ranges. */
/* clang-format off */
#define RFL_QUANTITIES(X) \
	X(TIME, "time_s", "s", "duration; summed over launches") \
	X(CYCLES, "cycles", "cycle", "elapsed clock cycles; clock = cycles / time_s") \
	X(FLOPS_FP16, "flops.fp16", "FLOP", "fp16 and bf16 outside the Tensor Cores") \
	X(FLOPS_FP32, "flops.fp32", "FLOP", "fp32 outside the Tensor Cores") \
	X(FLOPS_FP64, "flops.fp64", "FLOP", "fp64 outside the Tensor Cores") \
	X(FLOPS_MIXED, "flops.mixed", "FLOP", "all precisions, on CPUs that do not distinguish them") \
	X(FLOPS_TENSOR_FP16, "flops.tensor_fp16", "FLOP", "Tensor Cores, fp16 operands") \
	X(FLOPS_TENSOR_BF16, "flops.tensor_bf16", "FLOP", "Tensor Cores, bf16 operands") \
	X(FLOPS_TENSOR_TF32, "flops.tensor_tf32", "FLOP", "Tensor Cores, tf32 operands") \
	X(FLOPS_TENSOR_FP32, "flops.tensor_fp32", "FLOP", "matrix cores of AMD, fp32 operands") \
	X(FLOPS_TENSOR_FP64, "flops.tensor_fp64", "FLOP", "Tensor Cores, fp64 operands") \
	X(FLOPS_TENSOR_FP8, "flops.tensor_fp8", "FLOP", "Tensor Cores, fp8 operands") \
	X(FLOPS_TENSOR_FP4, "flops.tensor_fp4", "FLOP", "Tensor Cores, fp4 and fp6 operands") \
	X(FLOPS, "flops.total", "FLOP", "the sum of the known FLOPs above") \
	X(DRAM_READ, "dram_read_bytes", "byte", "read from device memory") \
	X(DRAM_WRITE, "dram_write_bytes", "byte", "written to device memory") \
	X(DRAM, "dram_bytes", "byte", "to and from device memory") \
	X(L2_FILL, "l2_fill_bytes", "byte", "filled into the last-level cache on misses; not a substitute for DRAM bytes") \
	X(L2, "l2_bytes", "byte", "through the tags of L2 (the definition of most papers)") \
	X(L2_RETURN, "l2_return_bytes", "byte", "from L2 to the SMs (ncu's hierarchical roofline)") \
	X(L1, "l1_bytes", "byte", "through the tags of L1") \
	X(L1_RETURN, "l1_return_bytes", "byte", "from L1 to the registers (ncu's hierarchical roofline)") \
	X(PCIE_READ, "pcie_read_bytes", "byte", "read over PCI Express by the device") \
	X(PCIE_WRITE, "pcie_write_bytes", "byte", "written over PCI Express by the device") \
	X(NVLINK_RX, "nvlink_rx_bytes", "byte", "received over NVLink") \
	X(NVLINK_TX, "nvlink_tx_bytes", "byte", "sent over NVLink") \
	X(INSTRUCTIONS, "instructions", "inst", "retired instructions; on a CPU, IPC = instructions / cycles") \
	X(CACHE_MISSES, "cache_misses", "", "misses of the last-level cache") \
	X(TASK_CLOCK, "task_clock_s", "s", "CPU time; effective clock = cycles / task_clock_s")
/* clang-format on */

/** Begins the metrics of work that the user or the program knows (formulas/parts/cpu-common). */
#define RFL_METRIC_GIVEN "given "

#define RFL_QUANTITY_ID(id, name, unit, meaning) RFL_QUANTITY_##id,
enum rfl_quantity { RFL_QUANTITIES(RFL_QUANTITY_ID) RFL_QUANTITY_COUNT };

struct rfl_quantity_info {
	const char *name, *unit, *meaning;
};

const struct rfl_quantity_info *rfl_quantity_info(enum rfl_quantity q);
/** The quantity of this name, or RFL_QUANTITY_COUNT. */
enum rfl_quantity rfl_quantity_find(const char *name);
/** Whether `part` is a term of `sum`, which is flops.total or dram_bytes. */
bool rfl_quantity_is_part(enum rfl_quantity part, enum rfl_quantity sum);
/** Whether a quantity is a term of flops.total. */
bool rfl_quantity_is_flops(enum rfl_quantity q);
/** The precision of such a term: "fp32", "tf32", "mixed". */
const char *rfl_quantity_precision(enum rfl_quantity part);

#endif
