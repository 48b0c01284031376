/*
 * kernel_times.c - launches of kernels as ranges of a capture, and what their times say.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/num.h"
#include "profile/cupti/activity.h"
#include "profile/cupti/kernel_class.h"

#define MOST_KERNELS   5  /* in a note */
#define NAME_MAX_SHOWN 60 /* characters of a name there */

static const char metric[] = "gpu__time_duration.sum";

/* A kernel over its launches, whatever their grids. */
struct kernel {
	const char *name;
	enum rfl_kernel_class is;
	double time_s;
	size_t launches;
};

static void dimensions(const int d[3], char out[48])
{
	snprintf(out, 48, "(%d, %d, %d)", d[0], d[1], d[2]);
}

static enum rfl_rc add_launch(const struct rfl_kernel_launch *l, struct rfl_capture_builder *b,
			      int id, struct rfl_err *err)
{
	char block[48], grid[48];
	enum rfl_rc rc;

	dimensions(l->block, block);
	dimensions(l->grid, grid);
	rc = rfl_capture_begin(b, RFL_RANGE_KERNEL, l->name, block, grid, err);
	if (rc != RFL_OK)
		return rc;
	if (id >= 0)
		(void)rfl_capture_metric(b, id, l->time_s, RFL_VALID, -1, NULL);
	return rfl_capture_end(b, err);
}

/* ------------------------------------------------------------------ notes */

static int by_name(const void *a, const void *b)
{
	const struct rfl_kernel_launch *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_begin(const void *a, const void *b)
{
	const struct rfl_kernel_launch *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Launches to kernels, the longest first. `sorted` and `kernels` have room for all launches. */
static size_t group(struct rfl_kernel_launch *sorted, size_t n, struct kernel *kernels)
{
	size_t used = 0;

	qsort(sorted, n, sizeof(*sorted), by_name);
	for (size_t i = 0; i < n; i++) {
		if (used == 0 || strcmp(kernels[used - 1].name, sorted[i].name) != 0)
			kernels[used++] =
				(struct kernel){ .name = sorted[i].name,
						 .is = rfl_kernel_classify(sorted[i].name) };
		kernels[used - 1].time_s += sorted[i].time_s;
		kernels[used - 1].launches++;
	}
	qsort(kernels, used, sizeof(*kernels), by_time);
	return used;
}

static void note_classes(struct rfl_capture_builder *b, const struct kernel *kernels, size_t n,
			 size_t launches)
{
	double time_s[RFL_KERNEL_CLASSES] = { 0 }, total_s = 0;
	char total[32];
	struct rfl_buf rest;

	for (size_t i = 0; i < n; i++) {
		time_s[kernels[i].is] += kernels[i].time_s;
		total_s += kernels[i].time_s;
	}
	rfl_buf_init(&rest, 0);
	for (int c = 0; c < RFL_KERNEL_CLASSES; c++)
		if (c != RFL_KERNEL_MATRIX && time_s[c] > 0)
			rfl_buf_printf(&rest, ", %s %.1f %%",
				       rfl_kernel_class_name((enum rfl_kernel_class)c),
				       100 * time_s[c] / total_s);
	rfl_capture_note(b,
			 "kernels: %zu launches of %zu kernels take %s: %s %.1f %% of it%s (told "
			 "apart by their names)",
			 launches, n, rfl_num_si(total_s, "s", 4, total, sizeof(total)),
			 rfl_kernel_class_name(RFL_KERNEL_MATRIX),
			 100 * time_s[RFL_KERNEL_MATRIX] / total_s, rfl_buf_str(&rest));
	rfl_buf_fini(&rest);
}

/* The longest kernels, of all or of those that only move data. */
static void note_longest(struct rfl_capture_builder *b, const struct kernel *kernels, size_t n,
			 bool only_moves, const char *what)
{
	struct rfl_buf list;
	size_t shown = 0;
	char time[32];

	rfl_buf_init(&list, 0);
	for (size_t i = 0; i < n && shown < MOST_KERNELS; i++) {
		if (only_moves && !rfl_kernel_class_only_moves(kernels[i].is))
			continue;
		rfl_buf_printf(&list, "%s%.*s %s in %zu launch%s", shown++ ? "; " : "",
			       NAME_MAX_SHOWN, kernels[i].name,
			       rfl_num_si(kernels[i].time_s, "s", 3, time, sizeof(time)),
			       kernels[i].launches, kernels[i].launches == 1 ? "" : "es");
	}
	if (shown)
		rfl_capture_note(b, "%s: %s", what, rfl_buf_str(&list));
	rfl_buf_fini(&list);
}

/* Kernels that run at the same time are busy once. Their times are those of the recorded step, the
 * step is one of the timed window: recording makes a step longer, not its kernels. */
static void note_idle(struct rfl_kernel_launch *sorted, size_t n, double step_s,
		      struct rfl_capture_builder *b)
{
	uint64_t busy_ns = 0, until_ns = 0;
	char busy[32], step[32];

	qsort(sorted, n, sizeof(*sorted), by_begin);
	for (size_t i = 0; i < n; i++) {
		const uint64_t from = sorted[i].begin_ns > until_ns ? sorted[i].begin_ns : until_ns;

		if (sorted[i].end_ns > from)
			busy_ns += sorted[i].end_ns - from;
		until_ns = sorted[i].end_ns > until_ns ? sorted[i].end_ns : until_ns;
	}
	rfl_capture_note(b,
			 "idle: a kernel runs for %s of a step of %s: for %.1f %% of it none does",
			 rfl_num_si(1e-9 * (double)busy_ns, "s", 4, busy, sizeof(busy)),
			 rfl_num_si(step_s, "s", 4, step, sizeof(step)),
			 fmax(0, 100 * (1 - 1e-9 * (double)busy_ns / step_s)));
}

static enum rfl_rc add_notes(const struct rfl_kernel_launches *l, double step_s,
			     struct rfl_capture_builder *b, struct rfl_err *err)
{
	struct rfl_kernel_launch *sorted = rfl_alloc_array(l->n, sizeof(*sorted));
	struct kernel *kernels = rfl_alloc_array(l->n, sizeof(*kernels));
	enum rfl_rc rc = RFL_OK;

	if (!sorted || !kernels) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %zu kernels", l->n);
	} else {
		size_t n;

		memcpy(sorted, l->launches, l->n * sizeof(*sorted));
		n = group(sorted, l->n, kernels);
		note_classes(b, kernels, n, l->n);
		note_longest(b, kernels, n, false, "longest kernels");
		note_longest(b, kernels, n, true, "kernels without FLOPs, by time");
		if (step_s > 0 && l->lost + l->untimed == 0)
			note_idle(sorted, l->n, step_s, b);
	}
	free(sorted);
	free(kernels);
	return rc;
}

enum rfl_rc rfl_kernel_launches_add(const struct rfl_kernel_launches *l, double step_s,
				    struct rfl_capture_builder *b, struct rfl_err *err)
{
	int id = rfl_capture_metric_id(b, metric, strlen(metric), "s");
	enum rfl_rc rc = id == -2 ? rfl_fail(err, RFL_ENOMEM, 0, "out of memory") : RFL_OK;

	for (size_t i = 0; i < l->n && rc == RFL_OK; i++)
		rc = add_launch(&l->launches[i], b, id, err);
	if (l->lost)
		rfl_capture_note(b,
				 "CUPTI lost the records of %zu kernels: the times of kernels are "
				 "a lower bound",
				 l->lost);
	if (l->untimed)
		rfl_capture_note(b,
				 "CUPTI has no times of %zu launches of kernels: the times of "
				 "kernels are a lower bound",
				 l->untimed);
	if (rc != RFL_OK)
		return rc;
	if (l->n == 0) {
		if (l->lost + l->untimed == 0)
			rfl_capture_note(b, "CUPTI gave no record of a kernel: nothing ran on a "
					    "GPU");
		return RFL_OK;
	}
	return add_notes(l, step_s, b, err);
}
