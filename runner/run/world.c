/*
 * world.c - a run as one of several processes, on the child's side: meeting, and putting
 * together what each has measured.
 */
#include "runner/run/job.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/json.h"

#define STEPS_PER_PIECE 256

/* ---- meeting ---- */

static enum rfl_rc agree_on_number(struct rfl_run__job *job, int64_t *ret, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const double mine = (double)w->run_number;
	double *all = rfl_alloc_array((size_t)w->size, sizeof(*all));
	enum rfl_rc rc;

	if (!all)
		return rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", w->size);
	rc = job->choice.ops->gather(job->engine, &mine, 1, all, err);
	*ret = w->run_number;
	for (int r = 0; rc == RFL_OK && r < w->size; r++)
		*ret = all[r] > (double)*ret ? (int64_t)all[r] : *ret;
	free(all);
	return rc;
}

static void tell(struct rfl_run__job *job, json_t *take_event)
{
	if (take_event)
		job->emit(take_event, job->ctx);
}

enum rfl_rc rfl_run__join(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	const struct rfl_world *w = &job->config.world;
	const struct rfl_engine_world world = {
		.rank = w->rank,
		.size = w->size,
		.local_rank = w->local_rank,
		.address = w->address,
		.port = w->port,
		.hosted = w->hosted,
		.timeout_s = w->timeout_s,
		.bucket_bytes = w->bucket_bytes,
		.interconnect = w->interconnect,
	};
	int64_t number = 0;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	if (!ops->join || !ops->barrier || !ops->gather)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot be one of several processes; leave out --world",
				ops->name);
	rc = ops->join(job->engine, &world, err);
	if (rc == RFL_OK)
		rc = agree_on_number(job, &number, err);
	if (rc == RFL_OK)
		tell(job,
		     json_pack("{s:s, s:I}", "event", "met", "run_number", (json_int_t)number));
	return rc;
}

enum rfl_rc rfl_run__meet(struct rfl_run__job *job, struct rfl_err *err)
{
	if (job->config.world.size <= 1)
		return RFL_OK;
	return job->choice.ops->barrier(job->engine, err);
}

/* ---- what was measured ---- */

/* What numbers of several processes come to. The slowest is the one with the longest window. */
enum rule { OF_SLOWEST, MEAN, SUM, LEAST, MOST, BITS };

static const struct number {
	const char *key;
	size_t offset;
	enum rule rule;
} numbers[] = {
#define N(member, rule)                                                  \
	{                                                                \
#member, offsetof(struct rfl_run__share, member), (rule) \
	}
	N(wall_s, OF_SLOWEST),
	N(ttfb_s, MOST),
	N(loss_first, MEAN),
	N(loss_last, MEAN),
	N(launch_gap, OF_SLOWEST),
	N(allocated_peak_bytes, MOST),
	N(reserved_peak_bytes, MOST),
	N(host_peak_bytes, MOST),
	N(skipped, SUM),
	N(sm_clock_mean_hz, MEAN),
	N(sm_clock_min_hz, LEAST),
	N(memory_clock_mean_hz, MEAN),
	N(power_mean_w, SUM),
	N(energy_j, SUM),
	N(temperature_max_c, MOST),
	N(memory_used_peak_bytes, MOST),
	N(throttle_bits, BITS),
#undef N
};
#define NUMBERS RFL_ARRAY_LEN(numbers)

static double *number_at(struct rfl_run__share *s, size_t i)
{
	return (double *)(void *)((char *)s + numbers[i].offset);
}

static double number_of(const struct rfl_run__share *s, size_t i)
{
	return *(const double *)(const void *)((const char *)s + numbers[i].offset);
}

static json_t *share_to_json(const struct rfl_run__share *s)
{
	json_t *json = json_object();

	for (size_t i = 0; i < NUMBERS; i++)
		(void)json_object_set_new(json, numbers[i].key, rfl_json_real(number_of(s, i)));
	return json;
}

void rfl_run__share_from_json(const json_t *json, struct rfl_run__share *ret)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		const json_t *value = json_object_get(json, numbers[i].key);

		*number_at(ret, i) = json_is_number(value) ? json_number_value(value) : (double)NAN;
	}
}

/* all[r * NUMBERS + i] is number i of rank r. What one process does not know, all do not. */
static double combine(const double *all, int size, int slowest, size_t i)
{
	double sum = 0, least = (double)INFINITY, most = (double)-INFINITY;
	uint32_t bits = 0;

	for (int r = 0; r < size; r++) {
		const double x = all[(size_t)r * NUMBERS + i];

		if (isnan(x))
			return x;
		sum += x;
		least = fmin(least, x);
		most = fmax(most, x);
		bits |= numbers[i].rule == BITS ? (uint32_t)x : 0;
	}
	switch (numbers[i].rule) {
	case OF_SLOWEST:
		return all[(size_t)slowest * NUMBERS + i];
	case MEAN:
		return sum / size;
	case SUM:
		return sum;
	case LEAST:
		return least;
	case MOST:
		return most;
	case BITS:
		return bits;
	}
	return (double)NAN;
}

static int slowest_of(const double *all, int size)
{
	int slowest = 0;

	for (int r = 1; r < size; r++)
		if (all[(size_t)r * NUMBERS] > all[(size_t)slowest * NUMBERS]) /* wall_s */
			slowest = r;
	return slowest;
}

static double own_peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss * 1024.0;
}

static enum rfl_rc own_share(struct rfl_run__job *job, struct rfl_run__share *ret,
			     struct rfl_err *err)
{
	const struct rfl_gpu_samples *g = &job->gpu;
	const struct rfl_burst *b = &job->burst;
	const double unknown = (double)NAN;
	struct rfl_engine_memory memory;
	enum rfl_rc rc = job->choice.ops->memory(job->engine, &memory, err);

	if (rc)
		return rc;
	*ret = (struct rfl_run__share){
		.wall_s = b->wall_s,
		.ttfb_s = b->ttfb_s,
		.loss_first = b->loss_first,
		.loss_last = b->loss_last,
		.launch_gap = b->launch_gap,
		.allocated_peak_bytes = memory.allocated_peak_bytes,
		.reserved_peak_bytes = memory.reserved_peak_bytes,
		.host_peak_bytes = own_peak_bytes(),
		.skipped = (double)rfl_data_skipped(job->data),
		.sm_clock_mean_hz = job->sampler ? g->sm_clock_mean_hz : unknown,
		.sm_clock_min_hz = job->sampler ? g->sm_clock_min_hz : unknown,
		.memory_clock_mean_hz = job->sampler ? g->memory_clock_mean_hz : unknown,
		.power_mean_w = job->sampler ? g->power_mean_w : unknown,
		.energy_j = job->sampler ? g->energy_j : unknown,
		.temperature_max_c = job->sampler ? g->temperature_max_c : unknown,
		.memory_used_peak_bytes = job->sampler ? g->memory_used_peak_bytes : unknown,
		.throttle_bits = job->sampler ? (double)(uint32_t)g->throttle_bits : unknown,
	};
	return RFL_OK;
}

static enum rfl_rc unite_numbers(struct rfl_run__job *job, struct rfl_run__share *ret, int *slowest,
				 struct rfl_err *err)
{
	const int size = job->config.world.size;
	double own[NUMBERS];
	struct rfl_run__share mine;
	double *all = rfl_alloc_array((size_t)size * NUMBERS, sizeof(*all));
	enum rfl_rc rc = RFL_ENOMEM;

	if (all)
		rc = own_share(job, &mine, err);
	else
		rfl_fail(err, rc, 0, "%d processes: out of memory", size);
	for (size_t i = 0; rc == RFL_OK && i < NUMBERS; i++)
		own[i] = number_of(&mine, i);
	if (rc == RFL_OK)
		rc = job->choice.ops->gather(job->engine, own, NUMBERS, all, err);
	if (rc == RFL_OK) {
		*slowest = slowest_of(all, size);
		for (size_t i = 0; i < NUMBERS; i++)
			*number_at(ret, i) = combine(all, size, *slowest, i);
	}
	free(all);
	return rc;
}

/* ---- steps ---- */

/* A step as it travels: the loss comes last. */
enum { STEP_NUMBERS = 7 };

static void step_numbers(const struct rfl_burst_step *s, double out[STEP_NUMBERS])
{
	const double values[STEP_NUMBERS] = { s->data_wait_s, s->upload_s,    s->forward_s,
					      s->backward_s,  s->optimizer_s, s->total_s,
					      s->loss };

	for (size_t i = 0; i < STEP_NUMBERS; i++)
		out[i] = values[i];
}

/* The times of the slowest process, and the mean loss of all. Each has sent n steps. */
static json_t *united_step(const double *all, int size, int slowest, int64_t n, int64_t step)
{
	const double *times = all + ((int64_t)slowest * n + step) * STEP_NUMBERS;
	json_t *row = json_array();
	double loss = 0;

	for (int i = 0; i < STEP_NUMBERS - 1; i++)
		json_array_append_new(row, rfl_json_real(times[i]));
	for (int r = 0; r < size; r++)
		loss += all[((int64_t)r * n + step + 1) * STEP_NUMBERS - 1];
	json_array_append_new(row, rfl_json_real(loss / size));
	return row;
}

static void tell_steps(struct rfl_run__job *job, const double *all, int slowest, int64_t first,
		       int64_t n)
{
	json_t *rows = json_array();

	for (int64_t i = 0; i < n; i++)
		json_array_append_new(rows,
				      united_step(all, job->config.world.size, slowest, n, i));
	tell(job, json_pack("{s:s, s:I, s:o}", "event", "world_steps", "first", (json_int_t)first,
			    "rows", rows));
}

static enum rfl_rc unite_steps(struct rfl_run__job *job, int slowest, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const size_t piece = (size_t)STEPS_PER_PIECE * STEP_NUMBERS;
	double *mine = rfl_alloc_array(piece, sizeof(*mine));
	double *all = rfl_alloc_array(piece * (size_t)w->size, sizeof(*all));
	enum rfl_rc rc = RFL_OK;

	if (!mine || !all)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", w->size);
	for (int64_t first = 0; rc == RFL_OK && first < job->burst.nsteps;
	     first += STEPS_PER_PIECE) {
		const int64_t left = job->burst.nsteps - first;
		const int64_t n = left < STEPS_PER_PIECE ? left : STEPS_PER_PIECE;

		for (int64_t i = 0; i < n; i++)
			step_numbers(&job->burst.steps[first + i], mine + i * STEP_NUMBERS);
		rc = job->choice.ops->gather(job->engine, mine, (size_t)n * STEP_NUMBERS, all, err);
		if (rc == RFL_OK && w->rank == 0)
			tell_steps(job, all, slowest, first, n);
	}
	free(mine);
	free(all);
	return rc;
}

enum rfl_rc rfl_run__unite(struct rfl_run__job *job, struct rfl_err *err)
{
	struct rfl_run__share all;
	int slowest = 0;
	enum rfl_rc rc;

	if (job->config.world.size <= 1)
		return RFL_OK;
	rc = unite_numbers(job, &all, &slowest, err);
	if (rc == RFL_OK)
		rc = unite_steps(job, slowest, err);
	if (rc == RFL_OK && job->config.world.rank == 0)
		tell(job, json_pack("{s:s, s:o}", "event", "world", "share", share_to_json(&all)));
	return rc;
}
