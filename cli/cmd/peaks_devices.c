/*
 * peaks_devices.c - roofline peaks devices: the data sheets that are compiled in.
 */
#include "cli/cmd.h"

#include "base/table.h"
#include "cli/put.h"
#include "peaks/devices.h"

struct devices_args {
	struct rfl_opt_list operands;
	int format;
};

static const struct rfl_opt opts[] = {
	RFL_OPT_FORMAT_ROW(offsetof(struct devices_args, format)),
	{ .name = NULL },
};

#define REAL(key_, title_, digits_, scale_)                                               \
	{                                                                                 \
		.key = key_, .title = title_, .kind = RFL_COLUMN_REAL, .digits = digits_, \
		.scale = scale_                                                           \
	}
#define TEXT(key_, title_)                                            \
	{                                                             \
		.key = key_, .title = title_, .kind = RFL_COLUMN_TEXT \
	}

/* What people look for; the last columns are for programs. */
static const struct rfl_column columns[] = {
	TEXT("device", "Device"),
	{ .key = "units", .title = "Units", .kind = RFL_COLUMN_INT },
	REAL("fp64_flop_per_s", "FP64 TFLOP/s", 4, 1e12),
	REAL("fp32_flop_per_s", "FP32", 4, 1e12),
	REAL("tf32_flop_per_s", "TF32", 4, 1e12),
	REAL("fp16_flop_per_s", "FP16", 4, 1e12),
	REAL("bf16_flop_per_s", "BF16", 4, 1e12),
	REAL("bandwidth_bytes_per_s", "GB/s", 4, 1e9),
	REAL("memory_bytes", "Memory GiB", 4, 0x1p30),
	REAL("power_w", "W", 3, 0),
	TEXT("evidence", "Evidence"),
	TEXT("vendor", "Vendor"),
	TEXT("kind", "Kind"),
	TEXT("compute_capability", "Compute capability"),
	REAL("clock_hz", "Clock MHz", 4, 1e6),
	REAL("fp64_tensor_flop_per_s", "FP64 tensor", 4, 1e12),
	REAL("fp8_flop_per_s", "FP8", 4, 1e12),
	REAL("int8_op_per_s", "INT8", 4, 1e12),
	REAL("l2_bytes", "L2 MiB", 4, 0x1p20),
	REAL("llc_bytes", "Last cache MiB", 4, 0x1p20),
	TEXT("source", "Source"),
	TEXT("notes", "Notes"),
};

enum { FOR_PEOPLE = 11 };

static void for_programs(struct rfl_table *t, const struct rfl_device_sheet *s)
{
	rfl_table_text(t, s->vendor);
	rfl_table_text(t, s->kind);
	rfl_table_text(t, s->compute_capability);
	rfl_table_real(t, s->clock_hz);
	rfl_table_real(t, s->flop_per_s[RFL_DEVICE_FP64_TENSOR]);
	rfl_table_real(t, s->flop_per_s[RFL_DEVICE_FP8]);
	rfl_table_real(t, s->flop_per_s[RFL_DEVICE_INT8]);
	rfl_table_real(t, s->l2_bytes);
	rfl_table_real(t, s->llc_bytes);
	rfl_table_text(t, s->source);
	rfl_table_text(t, s->notes);
}

static void row(struct rfl_table *t, const struct rfl_device_sheet *s, bool people)
{
	static const enum rfl_device_rate rates[] = { RFL_DEVICE_FP64, RFL_DEVICE_FP32,
						      RFL_DEVICE_TF32, RFL_DEVICE_FP16,
						      RFL_DEVICE_BF16 };

	rfl_table_text(t, s->label);
	rfl_table_int(t, s->units);
	for (size_t i = 0; i < RFL_ARRAY_LEN(rates); i++)
		rfl_table_real(t, s->flop_per_s[rates[i]]);
	rfl_table_real(t, s->bandwidth_bytes_per_s);
	rfl_table_real(t, s->memory_bytes);
	rfl_table_real(t, s->power_w);
	rfl_table_text(t, s->evidence);
	if (!people)
		for_programs(t, s);
}

static enum rfl_rc fill(struct rfl_table *t, const struct rfl_devices *devices,
			const struct rfl_opt_list *names, bool people, struct rfl_err *err)
{
	for (size_t i = 0; i < devices->n && names->n == 0; i++)
		row(t, &devices->sheets[i], people);
	for (size_t k = 0; k < names->n; k++) {
		const struct rfl_device_sheet *none;
		const size_t before = rfl_table_rows(t);

		for (size_t i = 0; i < devices->n; i++)
			if (rfl_device_matches(&devices->sheets[i], names->items[k]))
				row(t, &devices->sheets[i], people);
		if (rfl_table_rows(t) == before)
			return rfl_devices_find(devices, names->items[k], &none, err);
	}
	return RFL_OK;
}

static enum rfl_rc devices_run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct devices_args *a = args;
	const enum rfl_format format = (enum rfl_format)a->format;
	const bool people = format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD;
	struct rfl_devices *devices = NULL;
	struct rfl_table *t = NULL;
	enum rfl_rc rc = rfl_devices_load(&devices, err);

	if (rc != RFL_OK)
		goto done;
	t = rfl_table_new(columns, people ? FOR_PEOPLE : RFL_ARRAY_LEN(columns));
	if (!t) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the table");
		goto done;
	}
	rc = fill(t, devices, &a->operands, people, err);
	if (rc != RFL_OK)
		goto done;
	rfl_table_note(t, "Dense rates, without sparsity; FP16 and BF16 of tensor units with FP32 "
			  "accumulation; of a CPU at its base clock.");
	rfl_table_note(t,
		       "Evidence: ds the vendor's figure, dq read out of a device, calc computed "
		       "from units and clock, mem unverified (quoted from memory). --format csv "
		       "has sources.");
	rc = rfl_cli_put_table(cli, t, format, err);
done:
	rfl_table_free(t);
	rfl_devices_free(devices);
	return rc;
}

const struct rfl_cmd rfl_cmd_peaks_devices = {
	.name = "peaks devices",
	.summary = "print the data sheets of devices that the program knows",
	.operands = "[DEVICE...]",
	.description =
		"DEVICE is a name, an alias or a part of one: 'NVIDIA L4', l4, m3; all that match "
		"are listed. A data sheet is what the vendor says: measure before you believe "
		"it.",
	.example = "roofline peaks devices l4 'rtx 4090'",
	.opts = opts,
	.args_size = sizeof(struct devices_args),
	.operands_offset = offsetof(struct devices_args, operands),
	.run = devices_run,
};
