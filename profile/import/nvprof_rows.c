/*
 * nvprof_rows.c - rows of nvprof's tables: metrics over invocations, metrics of a launch,
 * times.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/import/nvprof.h"

const char *const rfl_nvprof__titles[NVPROF_COLUMNS] = {
	[NVPROF_DEVICE] = "Device",
	[NVPROF_KERNEL] = "Kernel",
	[NVPROF_INVOCATIONS] = "Invocations",
	[NVPROF_METRIC] = "Metric Name",
	[NVPROF_LEAST] = "Min",
	[NVPROF_MOST] = "Max",
	[NVPROF_AVERAGE] = "Avg",
	[NVPROF_TYPE] = "Type",
	[NVPROF_TIME] = "Time",
	[NVPROF_CALLS] = "Calls",
	[NVPROF_DURATION] = "Duration",
	[NVPROF_SIZE] = "Size",
};

enum rfl_rc rfl_nvprof__close(struct rfl_nvprof *k, struct rfl_err *err)
{
	if (!k->open)
		return RFL_OK;
	k->open = false;
	return rfl_capture_end(k->b, err);
}

/* "GeForce GTX 1080 Ti (0)": without the index. */
static enum rfl_rc tell_device(struct rfl_nvprof *k, struct rfl_span device, struct rfl_err *err)
{
	char name[256];
	size_t n = device.len;

	if (k->device_told)
		return RFL_OK;
	k->device_told = true; /* now or never: the builder takes it in front of all metrics */
	if (device.len == 0)
		return RFL_OK;
	while (n > 0 && device.at[n - 1] != '(')
		n--;
	if (n > 1 && device.at[device.len - 1] == ')')
		device.len = n - 1;
	rfl_span_copy(rfl_span_trim(device), name, sizeof(name));
	return rfl_capture_chip(k->b, NULL, name, err);
}

static enum rfl_rc open_range(struct rfl_nvprof *k, struct rfl_span kernel, struct rfl_span device,
			      int64_t launches, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_nvprof__close(k, err);

	if (rc == RFL_OK)
		rc = tell_device(k, device, err);
	rfl_span_copy(kernel, k->kernel, sizeof(k->kernel));
	rfl_span_copy(device, k->device, sizeof(k->device));
	if (rc == RFL_OK)
		rc = rfl_capture_begin(k->b, RFL_RANGE_KERNEL, k->kernel, NULL, NULL, err);
	if (rc != RFL_OK)
		return rc;
	k->open = true;
	rfl_capture_launches(k->b, launches);
	return RFL_OK;
}

static bool same_range(const struct rfl_nvprof *k, struct rfl_span kernel, struct rfl_span device)
{
	char text[sizeof(k->kernel)];

	return k->open && strcmp(rfl_span_copy(kernel, text, sizeof(text)), k->kernel) == 0 &&
	       strcmp(rfl_span_copy(device, text, sizeof(k->device)), k->device) == 0;
}

/* One metric over the invocations of a kernel. */
static enum rfl_rc give_metric(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
			       double launches, struct rfl_err *err)
{
	static const char rounded[] = "average x invocations; nvprof rounds the average of counts";
	struct rfl_span average = rfl_import_field(f, n, k->column[NVPROF_AVERAGE]);
	struct rfl_span least = rfl_import_field(f, n, k->column[NVPROF_LEAST]);
	struct rfl_span most = rfl_import_field(f, n, k->column[NVPROF_MOST]);
	struct rfl_reading r = { .validity = RFL_VALID };
	enum rfl_given given;
	enum rfl_nvprof_kind kind = rfl_nvprof__value(average, &r.value, &r.unit);
	bool same = least.len == most.len && memcmp(least.at, most.at, least.len) == 0;
	char name[256];
	enum rfl_rc rc;

	if (kind == RFL_NVPROF_NO_VALUE)
		return rfl_import_bad_row(k->import, rfl_nvprof__titles[NVPROF_AVERAGE], err,
					  "'%.*s' is no value", RFL_SPAN_ARG(average));
	r.name =
		rfl_span_copy(rfl_import_field(f, n, k->column[NVPROF_METRIC]), name, sizeof(name));
	if (kind == RFL_NVPROF_COUNT)
		r.value *= launches;
	if (kind == RFL_NVPROF_COUNT && launches > 1 && !same && k->import->options->strict)
		return rfl_import_bad_row(k->import, rfl_nvprof__titles[NVPROF_AVERAGE], err,
					  "'%s' is an average of %.0f invocations that nvprof has "
					  "rounded; leave out --strict, or count with "
					  "--print-gpu-trace",
					  name, launches);
	if (kind == RFL_NVPROF_COUNT && launches > 1 && !same) {
		r.validity = RFL_VALID_ESTIMATE;
		r.reason = rounded;
	}
	if (kind == RFL_NVPROF_NOT_THERE) {
		r.value = NAN;
		r.validity = RFL_VALID_UNAVAILABLE;
		r.reason = "nvprof has no value for it";
	}
	rc = rfl_import_give(k->b, &k->ids, &r, &given, err);
	if (rc == RFL_OK && given == RFL_GIVEN_DIFFERS)
		return rfl_import_bad_row(k->import, rfl_nvprof__titles[NVPROF_METRIC], err,
					  "'%s' is there a second time for this kernel, with "
					  "another value",
					  name);
	return rc;
}

static enum rfl_rc metrics_row(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
			       struct rfl_err *err)
{
	struct rfl_span kernel = rfl_import_field(f, n, k->column[NVPROF_KERNEL]);
	struct rfl_span device = rfl_import_field(f, n, k->column[NVPROF_DEVICE]);
	struct rfl_span many = rfl_import_field(f, n, k->column[NVPROF_INVOCATIONS]);
	double launches;
	enum rfl_rc rc = RFL_OK;

	if (!rfl_span_number(many, &launches) || launches < 1 || launches > 9e15 ||
	    launches != floor(launches))
		return rfl_import_bad_row(k->import, rfl_nvprof__titles[NVPROF_INVOCATIONS], err,
					  "'%.*s' is no number of launches", RFL_SPAN_ARG(many));
	if (!same_range(k, kernel, device))
		rc = open_range(k, kernel, device, (int64_t)launches, err);
	return rc == RFL_OK ? give_metric(k, f, n, launches, err) : rc;
}

static enum rfl_rc launch_row(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
			      struct rfl_err *err)
{
	struct rfl_span kernel = rfl_import_field(f, n, k->column[NVPROF_KERNEL]);
	size_t at = rfl_span_find(kernel, " [");
	enum rfl_rc rc;

	/* "name [307]": the correlation of the launch. */
	if (rfl_span_ends(kernel, "]") && at < kernel.len)
		kernel.len = at;
	rc = open_range(k, kernel, rfl_import_field(f, n, k->column[NVPROF_DEVICE]), 1, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const char *unit;
		double value = NAN;
		enum rfl_nvprof_kind kind;

		if (k->metric[i] < 0)
			continue;
		kind = rfl_nvprof__value(rfl_span_trim(f[i]), &value, &unit);
		if (kind == RFL_NVPROF_NO_VALUE)
			rc = rfl_import_bad_row(k->import, NULL, err, "'%.*s' is no value",
						RFL_SPAN_ARG(f[i]));
		else
			(void)rfl_capture_metric(
				k->b, k->metric[i], kind == RFL_NVPROF_NOT_THERE ? NAN : value,
				kind == RFL_NVPROF_NOT_THERE ? RFL_VALID_UNAVAILABLE : RFL_VALID,
				-1,
				kind == RFL_NVPROF_NOT_THERE ? "nvprof has no value for it" : NULL);
	}
	return rc == RFL_OK ? rfl_nvprof__close(k, err) : rc;
}

static bool is_copy(struct rfl_span name)
{
	return rfl_span_starts(name, "[CUDA mem") || rfl_span_starts(name, "[CUDA peer");
}

/* "[Unified Memory Memcpy DtoD]" has a field more than the header, for the second device, page
 * faults have no duration, and none has a size where copies have theirs. */
static bool is_unified_memory(const struct rfl_span *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rfl_span_starts(f[i], "[Unified Memory"))
			return true;
	return false;
}

static void take_unified_memory(struct rfl_nvprof *k, const struct rfl_span *f, size_t n)
{
	double duration;

	if (!rfl_span_number(rfl_import_field(f, n, k->column[NVPROF_DURATION]), &duration) ||
	    duration < 0)
		return;
	k->copied_bytes = NAN;
	k->copied_s += duration / k->per_second;
	k->copies++;
}

bool rfl_nvprof__time(const struct rfl_nvprof *k, struct rfl_span s, struct rfl_reading *ret)
{
	struct rfl_span unit = rfl_span_from(s, rfl_span_number_len(s));
	double per_second = unit.len > 0 ? rfl_import_per_second(unit) : k->per_second;

	s.len -= unit.len;
	*ret = (struct rfl_reading){ .name = "time_s", .unit = "s" };
	if (per_second == 0.0 || !rfl_span_number(s, &ret->value) || ret->value < 0)
		return false;
	ret->value /= per_second;
	if (unit.len > 0 &&
	    rfl_import_is_rounded(ret->value,
				  rfl_span_half_digit(s, RFL_DECIMAL_POINT) / per_second)) {
		ret->validity = RFL_VALID_ESTIMATE;
		ret->reason = "rounded by its unit";
	}
	return true;
}

/* A row of the trace or the summary: a kernel, a copy, or a call that is passed over. */
static enum rfl_rc time_row(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
			    struct rfl_err *err)
{
	bool trace = k->table == NVPROF_TRACE;
	struct rfl_span name = rfl_import_field(f, n, k->name);
	struct rfl_span text =
		rfl_import_field(f, n, trace ? k->column[NVPROF_DURATION] : k->column[NVPROF_TIME]);
	struct rfl_span many = rfl_import_field(f, n, k->column[NVPROF_CALLS]),
			size = rfl_import_field(f, n, k->column[NVPROF_SIZE]),
			type = rfl_import_field(f, n, k->column[NVPROF_TYPE]);
	struct rfl_reading time;
	double calls = 1.0, bytes = 0.0;
	char block[64], grid[64];
	size_t at = rfl_span_find(name, " [");
	enum rfl_rc rc;

	if (!trace && type.len > 0 && !rfl_span_is(type, "GPU activities"))
		return RFL_OK; /* calls of the API, OpenACC, ranges */
	if (!rfl_nvprof__time(k, text, &time))
		return rfl_import_bad_row(k->import,
					  rfl_nvprof__titles[trace ? NVPROF_DURATION : NVPROF_TIME],
					  err, "'%.*s' is not a time", RFL_SPAN_ARG(text));
	if (!trace && (!rfl_span_number(many, &calls) || calls < 1 || calls > 9e15))
		return rfl_import_bad_row(k->import, rfl_nvprof__titles[NVPROF_CALLS], err,
					  "'%.*s' is no number of launches", RFL_SPAN_ARG(many));
	if (is_copy(name)) {
		if (trace && (!rfl_span_number(size, &bytes) || k->size_unit == 0.0))
			return rfl_import_bad_row(k->import, rfl_nvprof__titles[NVPROF_SIZE], err,
						  "'%.*s' is no size", RFL_SPAN_ARG(size));
		k->copied_bytes += trace ? bytes * k->size_unit : NAN;
		k->copied_s += time.value;
		k->copies += (int64_t)calls;
		return RFL_OK;
	}
	if (trace && rfl_span_ends(name, "]") && at < name.len)
		name.len = at;
	rfl_span_copy(name, k->kernel, sizeof(k->kernel));
	rc = tell_device(k, rfl_import_field(f, n, k->column[NVPROF_DEVICE]), err);
	if (rc == RFL_OK)
		rc = rfl_capture_begin(k->b, RFL_RANGE_KERNEL, k->kernel,
				       rfl_import_shape(f, n, k->block, block),
				       rfl_import_shape(f, n, k->grid, grid), err);
	if (rc != RFL_OK)
		return rc;
	rfl_capture_launches(k->b, (int64_t)calls);
	rc = rfl_import_give(k->b, &k->ids, &time, NULL, err);
	return rc == RFL_OK ? rfl_capture_end(k->b, err) : rc;
}

enum rfl_rc rfl_nvprof__row(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
			    struct rfl_err *err)
{
	if (k->table == NVPROF_TRACE && is_unified_memory(f, n)) {
		take_unified_memory(k, f, n);
		return RFL_OK;
	}
	if (n != k->width)
		return rfl_import_bad_row(
			k->import, NULL, err, "%zu fields where the header has %zu%s", n, k->width,
			rfl_input_torn(k->import->in) ? ": the file is cut off" : "");
	switch (k->table) {
	case NVPROF_METRICS:
		return metrics_row(k, f, n, err);
	case NVPROF_LAUNCHES:
		return launch_row(k, f, n, err);
	case NVPROF_TRACE:
	case NVPROF_SUMMARY:
		return time_row(k, f, n, err);
	case NVPROF_NO_TABLE:
	case NVPROF_EVENTS:
	case NVPROF_CALLS_OF_API:
		break;
	}
	return RFL_OK;
}
