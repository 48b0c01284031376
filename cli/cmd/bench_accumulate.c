/* bench_accumulate.c - roofline bench accumulate: the same sum in several precisions. */
#include "cli/cmd.h"
#include "report/accumulate.h"

struct accumulate_args {
	double value;
	int64_t count;
	int format;
};

#define OPT(kind, member, ...) RFL_OPT(struct accumulate_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(REAL, value, .name = "value", .meta = "X", .def = "0.01", .rmin = -1e30, .rmax = 1e30,
	    .help = "number to add"),
	OPT(INT, count, .name = "count", .meta = "N", .def = "1000", .min = 1, .max = 1000000000,
	    .help = "number of additions"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct accumulate_args *a = args;

	return rfl_cli_put_table(cli, rfl_accumulate_table(a->value, a->count),
				 (enum rfl_format)a->format, err);
}

const struct rfl_cmd rfl_cmd_bench_accumulate = {
	.name = "bench accumulate",
	.summary = "add a number many times in fp32, fp16 and bf16",
	.description =
		"Shows how a sum depends on the precision of the sum and of what is added, with "
		"the part of the error that each contributes. The additions are computed with "
		"integers, rounded to nearest and ties to even as IEEE 754 requires, so the result "
		"is the same on every machine and equal to PyTorch's.",
	.example = "roofline bench accumulate\n"
		   "roofline bench accumulate --value 0.1 --count 10000",
	.opts = opts,
	.args_size = sizeof(struct accumulate_args),
	.run = run,
};
