/*
 * devices.c - the table of data sheets: read from the CSV that is compiled in. Finding one is
 * devices_find.c.
 */
#include "peaks/devices.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "peaks/devices_data.h"

enum { MAX_SHEETS = 1024, MAX_ALIASES = 8 };

#define NAME "peaks/devices.csv"

/* Columns of the file, and what a number of theirs is in SI units. */
struct number {
	const char *column;
	size_t offset;
	double unit;
};

#define NUMBER(column_, member_, unit_)                                                  \
	{                                                                                \
		.column = column_, .offset = offsetof(struct rfl_device_sheet, member_), \
		.unit = unit_                                                            \
	}

static const struct number numbers[] = {
	NUMBER("boost_clock_mhz", clock_hz, 1e6),
	NUMBER("fp64_tflops", flop_per_s[RFL_DEVICE_FP64], 1e12),
	NUMBER("fp32_tflops", flop_per_s[RFL_DEVICE_FP32], 1e12),
	NUMBER("fp64_tensor_tflops", flop_per_s[RFL_DEVICE_FP64_TENSOR], 1e12),
	NUMBER("tf32_tensor_dense_tflops", flop_per_s[RFL_DEVICE_TF32], 1e12),
	NUMBER("fp16_tensor_dense_fp32acc_tflops", flop_per_s[RFL_DEVICE_FP16], 1e12),
	NUMBER("bf16_tensor_dense_tflops", flop_per_s[RFL_DEVICE_BF16], 1e12),
	NUMBER("fp8_dense_tflops", flop_per_s[RFL_DEVICE_FP8], 1e12),
	NUMBER("int8_dense_tops", flop_per_s[RFL_DEVICE_INT8], 1e12),
	NUMBER("dram_gbs", bandwidth_bytes_per_s, 1e9),
	NUMBER("l2_mb", l2_bytes, 0x1p20),
	NUMBER("llc_mb", llc_bytes, 0x1p20),
	NUMBER("memory_gb", memory_bytes, 0x1p30),
	NUMBER("tdp_w", power_w, 1),
};

struct text {
	const char *column;
	size_t offset;
	bool required;
};

#define TEXT(column_, member_, required_)                                                \
	{                                                                                \
		.column = column_, .offset = offsetof(struct rfl_device_sheet, member_), \
		.required = required_                                                    \
	}

static const struct text texts[] = {
	TEXT("device_name", name, true), TEXT("vendor", vendor, true),
	TEXT("kind", kind, true),        TEXT("compute_capability", compute_capability, false),
	TEXT("source", source, true),    TEXT("evidence", evidence, true),
	TEXT("notes", notes, false),
};

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, NAME ": out of memory");
}

static enum rfl_rc read_numbers(const struct rfl_csv *csv, struct rfl_device_sheet *sheet,
				struct rfl_err *err)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(numbers); i++) {
		double *to = (double *)((char *)sheet + numbers[i].offset);
		int column = -1;
		enum rfl_rc rc = rfl_csv_need(csv, numbers[i].column, &column, err);

		if (rc == RFL_OK)
			rc = rfl_csv_double(csv, column, to, err);
		if (rc == RFL_OK && !isnan(*to) && !(*to > 0 && isfinite(*to)))
			rc = rfl_fail(err, RFL_EFORMAT, 0, NAME ":%zu: %s must be greater than 0",
				      rfl_csv_line(csv), numbers[i].column);
		if (rc != RFL_OK)
			return rc;
		*to *= numbers[i].unit;
	}
	return RFL_OK;
}

static enum rfl_rc read_texts(struct rfl_arena *arena, const struct rfl_csv *csv,
			      struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const char **to = (const char **)((char *)sheet + texts[i].offset);
		int column = -1;
		enum rfl_rc rc = rfl_csv_need(csv, texts[i].column, &column, err);
		const char *value;

		if (rc != RFL_OK)
			return rc;
		value = rfl_csv_text(csv, column);
		if (!*value && texts[i].required)
			return rfl_fail(err, RFL_EFORMAT, 0, NAME ":%zu: %s is empty",
					rfl_csv_line(csv), texts[i].column);
		if (!*value)
			continue;
		*to = rfl_arena_strdup(arena, value);
		if (!*to)
			return no_memory(err);
	}
	return RFL_OK;
}

/* "one; two" */
static enum rfl_rc read_aliases(struct rfl_arena *arena, const struct rfl_csv *csv,
				struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	const char **list = rfl_arena_array(arena, MAX_ALIASES + 1, sizeof(*list));
	const char *rest;
	size_t n = 0;
	int column = -1;
	enum rfl_rc rc = rfl_csv_need(csv, "aliases", &column, err);

	if (rc != RFL_OK)
		return rc;
	if (!list)
		return no_memory(err);
	for (rest = rfl_csv_text(csv, column); *rest && n < MAX_ALIASES; n++) {
		size_t len = strcspn(rest, ";");

		list[n] = rfl_arena_printf(arena, "%.*s", (int)len, rest);
		if (!list[n])
			return no_memory(err);
		rest += len;
		rest += strspn(rest, "; ");
	}
	if (*rest)
		return rfl_fail(err, RFL_EFORMAT, 0, NAME ":%zu: more than %d aliases",
				rfl_csv_line(csv), MAX_ALIASES);
	sheet->aliases = list;
	return RFL_OK;
}

static enum rfl_rc read_sheet(struct rfl_arena *arena, const struct rfl_csv *csv,
			      struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	enum rfl_rc rc = read_texts(arena, csv, sheet, err);
	int column = -1;

	if (rc == RFL_OK)
		rc = read_numbers(csv, sheet, err);
	if (rc == RFL_OK)
		rc = rfl_csv_need(csv, "sm_count", &column, err);
	if (rc == RFL_OK)
		rc = rfl_csv_int(csv, column, 0, &sheet->units, err);
	if (rc == RFL_OK && sheet->units < 1)
		rc = rfl_fail(err, RFL_EFORMAT, 0, NAME ":%zu: sm_count must be 1 or more",
			      rfl_csv_line(csv));
	return rc == RFL_OK ? read_aliases(arena, csv, sheet, err) : rc;
}

/* Two devices of one name are told apart by their units. */
static enum rfl_rc make_labels(struct rfl_arena *arena, struct rfl_device_sheet *sheets, size_t n,
			       struct rfl_err *err)
{
	for (size_t i = 0; i < n; i++) {
		size_t same = 0;

		for (size_t k = 0; k < n; k++)
			same += strcmp(sheets[i].name, sheets[k].name) == 0;
		sheets[i].label =
			same == 1 ? sheets[i].name
				  : rfl_arena_printf(arena, "%s (%lld units)", sheets[i].name,
						     (long long)sheets[i].units);
		if (!sheets[i].label)
			return no_memory(err);
	}
	return RFL_OK;
}

static enum rfl_rc read_all(struct rfl_arena *arena, struct rfl_csv *csv, struct rfl_devices **ret,
			    struct rfl_err *err)
{
	struct rfl_device_sheet *sheets = rfl_arena_array(arena, MAX_SHEETS, sizeof(*sheets));
	struct rfl_devices *devices = rfl_arena_array(arena, 1, sizeof(*devices));
	size_t n = 0;
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	if (!sheets || !devices)
		return no_memory(err);
	while (rc == RFL_OK) {
		rc = rfl_csv_next(csv, &more, err);
		if (rc != RFL_OK || !more)
			break;
		if (n == MAX_SHEETS)
			return rfl_fail(err, RFL_EFORMAT, 0, NAME ": more than %d rows",
					MAX_SHEETS);
		rc = read_sheet(arena, csv, &sheets[n++], err);
	}
	if (rc == RFL_OK)
		rc = make_labels(arena, sheets, n, err);
	if (rc != RFL_OK)
		return rc;
	*devices = (struct rfl_devices){ .n = n, .sheets = sheets, .arena = arena };
	*ret = devices;
	return RFL_OK;
}

enum rfl_rc rfl_devices_load(struct rfl_devices **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_csv *csv = NULL;
	enum rfl_rc rc;

	if (!arena)
		return no_memory(err);
	rc = rfl_csv_open_text(rfl_devices__csv, rfl_devices__csv_size, NAME, &csv, err);
	if (rc == RFL_OK)
		rc = read_all(arena, csv, ret, err);
	if (rc != RFL_OK)
		rfl_arena_free(arena);
	rfl_csv_close(csv);
	return rc;
}

void rfl_devices_free(struct rfl_devices *devices)
{
	if (devices)
		rfl_arena_free(devices->arena);
}
