/*
 * ncu_file.c - large files in ncu's form, the same on every machine, for import.sh:
 *
 *   bench_ncu_file long ROWS              a row per metric and launch, 15 columns, 16 metrics
 *   bench_ncu_file wide ROWS COLUMNS      a row per launch, with a row of units
 *
 * Values are drawn; only their form is that of a profiler.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/num.h"

static uint64_t state = 20250101;

static uint64_t draw(uint64_t n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 11) % n;
}

static const char *const kernels[] = {
	"void cutlass_80_simt_sgemm_128x64_8x5_nt_align1<Params>(Params)",
	"void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>, Array<char *, "
	"3>>(int, "
	"AddFunctor<float>, Array<char *, 3>)",
	"void at::native::batch_norm_collect_statistics_kernel<float, float, int>(Tensor, float, "
	"float, Tensor)",
	"sm80_xmma_fprop_implicit_gemm_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x32_stage3",
	"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, 1, 1, 1>(TensorStruct, const "
	"float *)",
	"void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float>>>(ReduceOp)",
};

struct metric {
	const char *name, *unit;
	uint64_t most;
};

static const struct metric metrics[] = {
	{ "dram__bytes_read.sum", "byte", UINT64_C(1) << 36 },
	{ "dram__bytes_write.sum", "byte", UINT64_C(1) << 35 },
	{ "gpu__time_duration.sum", "ns", UINT64_C(1) << 24 },
	{ "l1tex__t_bytes.sum", "byte", UINT64_C(1) << 40 },
	{ "lts__t_bytes.sum", "byte", UINT64_C(1) << 38 },
	{ "sm__cycles_elapsed.max", "cycle", UINT64_C(1) << 24 },
	{ "sm__ops_path_tensor_src_tf32_dst_fp32.sum", "", UINT64_C(1) << 40 },
	{ "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "inst", 1 },
	{ "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "inst", 1 },
	{ "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", "inst", 1 },
	{ "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "inst", UINT64_C(1) << 36 },
	{ "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", UINT64_C(1) << 40 },
	{ "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "inst", UINT64_C(1) << 36 },
	{ "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", "inst", 1 },
	{ "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", "inst", 1 },
	{ "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", "inst", 1 },
};

static void write_long(uint64_t rows)
{
	char number[RFL_NUM_MAX];

	puts("\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\","
	     "\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\","
	     "\"Metric Name\",\"Metric Unit\",\"Metric Value\"");
	for (uint64_t row = 0, launch = 0; row < rows; launch++) {
		uint64_t k = draw(RFL_ARRAY_LEN(kernels)), grid = 1 + draw(8);

		for (size_t m = 0; m < RFL_ARRAY_LEN(metrics) && row < rows; m++, row++)
			printf("\"%" PRIu64
			       "\",\"1984564\",\"python3.11\",\"127.0.0.1\",\"%s\",\"1\",\"7\","
			       "\"(%d, 1, 1)\",\"(%" PRIu64 ", 4, 1)\",\"0\",\"8.0\","
			       "\"Command line profiler metrics\",\"%s\",\"%s\",\"%s\"\n",
			       launch, kernels[k], 128, 256 * grid, metrics[m].name,
			       metrics[m].unit,
			       rfl_num_grouped((int64_t)draw(metrics[m].most), number));
	}
}

/* The titles of a wide page, or its units, after the columns that identify launches. */
static void wide_head(uint64_t columns, bool titles)
{
	for (uint64_t i = 0; i + 11 < columns; i++) {
		if (i < RFL_ARRAY_LEN(metrics))
			printf(",\"%s\"", titles ? metrics[i].name : metrics[i].unit);
		else if (titles)
			printf(",\"sm__other_counter_%" PRIu64 ".avg\"", i);
		else
			printf(",\"%%\"");
	}
	putchar('\n');
}

static void write_wide(uint64_t rows, uint64_t columns)
{
	printf("\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\","
	       "\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\"");
	wide_head(columns, true);
	printf("\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"");
	wide_head(columns, false);
	for (uint64_t row = 0; row < rows; row++) {
		printf("\"%" PRIu64
		       "\",\"1984564\",\"python3.11\",\"127.0.0.1\",\"%s\",\"1\",\"7\","
		       "\"(128, 1, 1)\",\"(%" PRIu64 ", 4, 1)\",\"0\",\"8.0\"",
		       row, kernels[draw(RFL_ARRAY_LEN(kernels))], 256 * (1 + draw(8)));
		for (uint64_t i = 0; i + 11 < columns; i++)
			if (i < RFL_ARRAY_LEN(metrics))
				printf(",\"%" PRIu64 "\"", draw(metrics[i].most));
			else
				printf(",\"%" PRIu64 ".%06" PRIu64 "\"", draw(100), draw(1000000));
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	static char block[1 << 20];
	int64_t rows = 0, columns = 0;

	(void)setvbuf(stdout, block, _IOFBF, sizeof(block));
	if (argc == 3 && strcmp(argv[1], "long") == 0 &&
	    rfl_num_parse_int(argv[2], "ROWS", &rows, NULL) == RFL_OK && rows > 0)
		write_long((uint64_t)rows);
	else if (argc == 4 && strcmp(argv[1], "wide") == 0 &&
		 rfl_num_parse_int(argv[2], "ROWS", &rows, NULL) == RFL_OK && rows > 0 &&
		 rfl_num_parse_int(argv[3], "COLUMNS", &columns, NULL) == RFL_OK && columns > 26)
		write_wide((uint64_t)rows, (uint64_t)columns);
	else {
		fprintf(stderr, "usage: bench_ncu_file long ROWS | wide ROWS COLUMNS\n");
		return 2;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
