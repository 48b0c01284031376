/*
 * devices.c - reads the table of data sheets from the compiled-in CSV, and finds a device by name.
 */
#include "peaks/devices.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/csv.h"
#include "base/text.h"

enum { MAX_WORDS_TEXT = 256, SUGGESTIONS = 4, LISTED = 12 };

#define NAME "peaks/devices.csv"

/* The contents of the file, embedded by CMake. */
extern const char rfl_devices__csv[];
extern const size_t rfl_devices__csv_size;

/* Columns of the file: text if `unit` is 0, otherwise a number in multiples of `unit` (SI). Tests
 * check the contents. */
#define COLUMN(name, member, unit)                                    \
	{                                                             \
		name, offsetof(struct rfl_device_sheet, member), unit \
	}
static const struct {
	const char *name;
	size_t offset;
	double unit;
} columns[] = {
	COLUMN("device_name", name, 0),
	COLUMN("aliases", aliases, 0),
	COLUMN("vendor", vendor, 0),
	COLUMN("kind", kind, 0),
	COLUMN("compute_capability", compute_capability, 0),
	COLUMN("source", source, 0),
	COLUMN("evidence", evidence, 0),
	COLUMN("notes", notes, 0),
	COLUMN("boost_clock_mhz", clock_hz, 1e6),
	COLUMN("fp64_tflops", flop_per_s[RFL_DEVICE_FP64], 1e12),
	COLUMN("fp32_tflops", flop_per_s[RFL_DEVICE_FP32], 1e12),
	COLUMN("fp64_tensor_tflops", flop_per_s[RFL_DEVICE_FP64_TENSOR], 1e12),
	COLUMN("tf32_tensor_dense_tflops", flop_per_s[RFL_DEVICE_TF32], 1e12),
	COLUMN("fp16_tensor_dense_fp32acc_tflops", flop_per_s[RFL_DEVICE_FP16], 1e12),
	COLUMN("bf16_tensor_dense_tflops", flop_per_s[RFL_DEVICE_BF16], 1e12),
	COLUMN("fp8_dense_tflops", flop_per_s[RFL_DEVICE_FP8], 1e12),
	COLUMN("int8_dense_tops", flop_per_s[RFL_DEVICE_INT8], 1e12),
	COLUMN("dram_gbs", bandwidth_bytes_per_s, 1e9),
	COLUMN("l2_mb", l2_bytes, 0x1p20),
	COLUMN("llc_mb", llc_bytes, 0x1p20),
	COLUMN("memory_gb", memory_bytes, 0x1p30),
	COLUMN("tdp_w", power_w, 1),
};

/* Read the current row. */
static enum rfl_rc read_sheet(struct rfl_arena *arena, const struct rfl_csv *csv,
			      struct rfl_device_sheet *sheet)
{
	enum rfl_rc rc = rfl_csv_int(csv, rfl_csv_find(csv, "sm_count"), 0, &sheet->units, NULL);

	for (size_t i = 0; i < RFL_ARRAY_LEN(columns) && rc == RFL_OK; i++) {
		const int at = rfl_csv_find(csv, columns[i].name);
		void *const member = (char *)sheet + columns[i].offset;
		const char **text = member;
		double *number = member;

		assert(at >= 0);
		if (columns[i].unit != 0) {
			rc = rfl_csv_double(csv, at, number, NULL);
			*number *= columns[i].unit;
		} else if (*rfl_csv_text(csv, at)) {
			*text = rfl_arena_strdup(arena, rfl_csv_text(csv, at));
		}
	}
	return rc;
}

struct rfl_devices *rfl_devices_new(void)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_devices *devices = rfl_arena_array(arena, 1, sizeof(*devices));
	struct rfl_device_sheet *sheets = NULL;
	struct rfl_csv *csv = NULL;
	size_t n = 0;
	bool more = true;
	enum rfl_rc rc =
		rfl_csv_open_text(rfl_devices__csv, rfl_devices__csv_size, NAME, &csv, NULL);

	while (rc == RFL_OK && !(rc = rfl_csv_next(csv, &more, NULL)) && more)
		rc = read_sheet(arena, csv, rfl_arena_append(arena, &sheets, &n));
	assert(rc == RFL_OK); /* the file is compiled in */
	rfl_csv_close(csv);
	for (size_t i = 0; i < n; i++) { /* equal names get units in the label */
		size_t same = 0;

		for (size_t k = 0; k < n; k++)
			same += strcmp(sheets[i].name, sheets[k].name) == 0;
		sheets[i].label =
			same == 1 ? sheets[i].name
				  : rfl_arena_printf(arena, "%s (%lld units)", sheets[i].name,
						     (long long)sheets[i].units);
	}
	*devices = (struct rfl_devices){ .n = n, .sheets = sheets, .arena = arena };
	return devices;
}

void rfl_devices_free(struct rfl_devices *devices)
{
	if (devices)
		rfl_arena_free(devices->arena);
}

/* How well a name matches, from worst to best. */
enum fit { FIT_NONE, FIT_PART, FIT_END, FIT_WHOLE };

/* Convert a name to " nvidia rtx 4090 ": lower case, with a space around every word. Letters and
 * digits are separate words, so that "RTX4090" equals "RTX 4090". Empty if too long. */
static void words_of(const char *name, char out[MAX_WORDS_TEXT])
{
	size_t n = 0;
	int before = 0;

	out[n++] = ' ';
	for (; *name && n + 3 < MAX_WORDS_TEXT; name++) {
		const unsigned char c = (unsigned char)*name;
		const int kind = isdigit(c) ? 1 : isalpha(c) ? 2 : 0;

		if (before && kind != before)
			out[n++] = ' ';
		if (kind)
			out[n++] = (char)tolower(c);
		before = kind;
	}
	if (before)
		out[n++] = ' ';
	out[n] = '\0';
	if (*name)
		out[0] = '\0';
}

static enum fit fit_name(const char *wanted, const char *name)
{
	char words[MAX_WORDS_TEXT];
	size_t n = strlen(wanted), all;

	words_of(name, words);
	all = strlen(words);
	if (n < 3 || n > all)
		return FIT_NONE;
	if (strcmp(wanted, words) == 0)
		return FIT_WHOLE;
	if (strcmp(wanted, words + all - n) == 0)
		return FIT_END;
	return strstr(words, wanted) ? FIT_PART : FIT_NONE;
}

static enum fit fit_sheet(const char *wanted, const struct rfl_device_sheet *sheet)
{
	struct rfl_span rest = rfl_span_of(sheet->aliases ? sheet->aliases : ""), alias;
	enum fit best = fit_name(wanted, sheet->label), fit = fit_name(wanted, sheet->name);
	char name[MAX_WORDS_TEXT];

	best = fit > best ? fit : best;
	while (rfl_span_next_field(&rest, ';', &alias)) {
		fit = fit_name(wanted, rfl_span_copy(alias, name, sizeof(name)));
		best = fit > best ? fit : best;
	}
	return best;
}

bool rfl_device_matches(const struct rfl_device_sheet *sheet, const char *name)
{
	struct rfl_span rest = rfl_span_of(name), word;
	bool all = true, any = false;

	while (all && rfl_span_next_word(&rest, &word)) {
		char text[MAX_WORDS_TEXT], words[MAX_WORDS_TEXT];

		words_of(rfl_span_copy(word, text, sizeof(text)), words);
		all = fit_sheet(words, sheet) || fit_name(words, sheet->vendor) ||
		      fit_name(words, sheet->kind);
		any = true;
	}
	return all && any;
}

const char *const rfl_device_keys[RFL_DEVICE_RATE_COUNT] = {
	[RFL_DEVICE_FP64] = "fp64.vector",        [RFL_DEVICE_FP32] = "fp32.vector",
	[RFL_DEVICE_FP64_TENSOR] = "fp64.matrix", [RFL_DEVICE_TF32] = "tf32.matrix",
	[RFL_DEVICE_FP16] = "fp16.matrix",        [RFL_DEVICE_BF16] = "bf16.matrix",
	[RFL_DEVICE_FP8] = "fp8.matrix",          [RFL_DEVICE_INT8] = "int8.matrix",
};

double rfl_device_ceiling(const struct rfl_device_sheet *sheet, const char *key)
{
	if (strcmp(key, "fp8.matrix.fastacc") == 0)
		key = "fp8.matrix"; /* sheets do not tell them apart */
	for (size_t i = 0; i < RFL_DEVICE_RATE_COUNT; i++)
		if (strcmp(rfl_device_keys[i], key) == 0)
			return sheet->flop_per_s[i];
	return strcmp(key, "DRAM") == 0 || strcmp(key, "HBM") == 0 ? sheet->bandwidth_bytes_per_s
								   : (double)NAN;
}

/* Append the labels, aliases and model numbers ("H100" of "NVIDIA H100 PCIe") similar to a name.
 * @return their number */
static size_t suggest(const struct rfl_devices *devices, const char *name, struct rfl_buf *list)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const char **names = NULL, **next;
	size_t n = 0, found;

	for (size_t i = 0; i < devices->n; i++) {
		const struct rfl_device_sheet *sheet = &devices->sheets[i];
		const char *texts[] = { sheet->label, sheet->aliases };

		for (size_t k = 0; k < 4; k++) { /* the texts, then their words */
			struct rfl_span rest = rfl_span_of(texts[k % 2] ? texts[k % 2] : ""), part;
			const char separator = k == 1 ? ';' : k == 0 ? '\n' : ' ';

			while (rfl_span_next_field(&rest, separator, &part)) {
				const char *text =
					rfl_arena_printf(arena, "%.*s", (int)part.len, part.at);
				size_t at = 0;

				if (k >= 2 && (!strpbrk(text, "0123456789") ||
					       (isdigit((unsigned char)*text) && part.len < 4)))
					continue;
				while (at < n && strcasecmp(names[at], text) != 0)
					at++;
				if (at < n)
					continue;
				next = rfl_arena_append(arena, &names, &n);
				*next = text;
			}
		}
	}
	(void)rfl_arena_append(arena, &names, &n); /* NULL ends it */
	found = rfl_text_suggest(name, names, SUGGESTIONS, list);
	return found;
}

enum rfl_rc rfl_devices_find(const struct rfl_devices *devices, const char *name,
			     const struct rfl_device_sheet **ret, struct rfl_err *err)
{
	const struct rfl_device_sheet *found = NULL;
	RFL_AUTO(buf) list = { .len = 0 }; /* the best matches, or similar names */
	enum fit best = FIT_NONE;
	size_t n = 0;
	char wanted[MAX_WORDS_TEXT];
	enum rfl_rc rc = RFL_OK;

	words_of(name, wanted);
	for (size_t i = 0; i < devices->n; i++) {
		const struct rfl_device_sheet *sheet = &devices->sheets[i];
		enum fit fit = fit_sheet(wanted, sheet);

		if (fit == FIT_NONE || fit < best)
			continue;
		if (fit > best) {
			rfl_buf_reset(&list);
			n = 0;
		}
		if (n < LISTED)
			rfl_buf_printf(&list, "%s%s", n ? ", " : "", sheet->label);
		n++;
		best = fit;
		found = sheet;
	}
	if (n == 1)
		*ret = found;
	else if (n > 1)
		rc = rfl_fail(err, RFL_ENOTFOUND, 0, "device '%s' is ambiguous; choose one of %s%s",
			      name, rfl_buf_str(&list), n > LISTED ? ", ..." : "");
	else if (suggest(devices, name, &list) > 0)
		rc = rfl_fail(err, RFL_ENOTFOUND, 0, "no data sheet for '%s'; did you mean %s?",
			      name, rfl_buf_str(&list));
	else
		rc = rfl_fail(err, RFL_ENOTFOUND, 0,
			      "no data sheet for '%s'; list all with 'roofline peaks devices'",
			      name);
	return rc;
}

const struct rfl_device_sheet *rfl_devices_get(const struct rfl_devices *devices, const char *name)
{
	const struct rfl_device_sheet *sheet = NULL;

	return devices && name && rfl_devices_find(devices, name, &sheet, NULL) == RFL_OK ? sheet
											  : NULL;
}
