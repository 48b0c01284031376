/*
 * results.c - a table of a run's results: for each, the child's event that carries it, the rule
 * that combines it over several processes, and its column in the ledger.
 */
#include "runner/run/parts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

/* Rules to combine a number over several processes. The slowest process has the longest window. */
enum rule { OWN, OF_SLOWEST, MEAN, SUM, LEAST, MOST, BITS };

#define NONE        SIZE_MAX
#define COL(member) offsetof(struct rfl_ledger_row, member)
#define R(event_, kind_, path_, rule_, column_)                                      \
	{                                                                            \
		.event = RFL_RUN__##event_,                                          \
		.m = RFL_RUN__MEMBER(struct rfl_run__results, kind_, #path_, path_), \
		.rule = rule_, .column = column_                                     \
	}

/* Each column has the type of its member. */
static const struct result {
	enum rfl_run__event event;
	struct rfl_member m;
	enum rule rule;
	size_t column; /* in the ledger; NONE: filled by row.c, or absent */
} results[] = {
	R(TIMED, REAL, burst.wall_s, OF_SLOWEST, COL(wall_s)), /* first: determines the slowest */
	R(TIMED, REAL, burst.ttfb_s, MOST, NONE),
	R(TIMED, REAL, burst.loss_first, MEAN, COL(loss_first)),
	R(TIMED, REAL, burst.loss_last, MEAN, COL(loss_last)),
	R(TIMED, REAL, burst.launch_gap, OF_SLOWEST, COL(launch_gap)),
	R(TIMED, FLAG, burst.synced, OWN, NONE),
	R(TIMED, REAL, memory.allocated_peak, MOST, COL(mem_alloc_peak_bytes)),
	R(TIMED, REAL, memory.reserved_peak, MOST, COL(mem_reserved_peak_bytes)),
	R(TIMED, REAL, host_peak_bytes, MOST, NONE),
	R(TIMED, INT, skipped, SUM, NONE),
	R(TIMED, REAL, scaling.scale, OWN, COL(loss_scale)),
	R(TIMED, INT, scaling.skipped, OWN, COL(scale_skipped)),
	R(TIMED, REAL, queue_mean, OWN, COL(queue_mean)),
	R(TIMED, REAL, queue_min, OWN, NONE),
	R(TIMED, REAL, decode_rate, OWN, COL(decode_samples_per_s)),
	R(TIMED, REAL, others, OWN, NONE),
	R(GPU, REAL, gpu.sm_clock_mean_hz, MEAN, COL(sm_clock_mean_hz)),
	R(GPU, REAL, gpu.sm_clock_min_hz, LEAST, COL(sm_clock_min_hz)),
	R(GPU, REAL, gpu.memory_clock_mean_hz, MEAN, COL(memory_clock_mean_hz)),
	R(GPU, REAL, gpu.power_mean_w, SUM, COL(power_mean_w)),
	R(GPU, REAL, gpu.energy_j, SUM, NONE),
	R(GPU, REAL, gpu.temperature_max_c, MOST, COL(temperature_max_c)),
	R(GPU, REAL, gpu.memory_used_peak_bytes, MOST, COL(device_memory_peak_bytes)),
	R(GPU, INT, gpu.throttle_bits, BITS, NONE),
	R(GPU, FLAG, watched, OWN, NONE),
	R(GPU, CHARS, unwatched, OWN, COL(unwatched)),
	R(MEMORY, CHARS, memory_status, OWN, COL(mem_status)),
	R(MEMORY, REAL, allocated.model_bytes, OWN, COL(mem_model_bytes)),
	R(MEMORY, REAL, allocated.forward_bytes, OWN, COL(mem_fwd_bytes)),
	R(MEMORY, REAL, allocated.backward_bytes, OWN, COL(mem_bwd_bytes)),
	R(MEMORY, REAL, allocated.optimizer_bytes, OWN, COL(mem_opt_bytes)),
	R(MEMORY, REAL, allocated.peak_bytes, OWN, COL(mem_step_peak_bytes)),
	R(MEMORY, REAL, allocated.predicted_bytes, OWN, COL(mem_predicted_bytes)),
	R(MEMORY, CHARS, allocated.peak_at, OWN, COL(mem_peak_at)),
	R(KINDS, REAL, kinds.linear_ms, OWN, COL(linear_ms)),
	R(KINDS, REAL, kinds.attention_ms, OWN, COL(attention_ms)),
	R(KINDS, REAL, kinds.other_ms, OWN, COL(other_ms)),
	R(UNTIL, INT, burst.until_steps, OWN, NONE),
	R(UNTIL, REAL, burst.until_step_s, OWN, NONE),
	R(UNTIL, REAL, burst.until_stdrel, OWN, COL(until_stdrel)),
	R(UNTIL, FLAG, burst.until_missed, OWN, NONE),
	R(ENGINE, CHARS, engine, OWN, COL(engine)),
	R(ENGINE, CHARS, engine_id, OWN, COL(engine_id)),
	R(ENGINE, CHARS, engine_version, OWN, COL(engine_version)),
	R(ENGINE, INT, plugin_abi, OWN, COL(plugin_abi)),
	R(ENGINE, INT, device, OWN, NONE),
	R(ENGINE, CHARS, backend_reason, OWN, COL(backend_reason)),
	R(DEVICE, CHARS, on.name, OWN, NONE),
	R(DEVICE, CHARS, on.pci_bus_id, OWN, COL(pci_bus_id)),
	R(DEVICE, CHARS, on.cuda_runtime, OWN, COL(cuda_runtime)),
	R(DEVICE, CHARS, on.cuda_driver, OWN, COL(cuda_driver)),
	R(DEVICE, CHARS, on.cudnn, OWN, COL(cudnn_version)),
	R(DEVICE, CHARS, on.nccl, OWN, NONE),
	R(DEVICE, INT, on.memory_bytes, OWN, NONE),
	R(READY, REAL, setup_s, OWN, COL(setup_s)),
	R(READY, INT, data_samples, OWN, COL(data_samples)),
	R(READY, CHARS, data_digest, OWN, COL(data_digest)),
	R(READY, INT, pin_memory, OWN, COL(pin_memory)),
	R(READY, INT, cudnn_benchmark, OWN, NONE),
	R(READY, INT, cuda_graph, OWN, NONE),
	R(READY, CHARS, optimizer_kernels, OWN, NONE),
	R(TIMED, CHARS, libraries, OWN, NONE),
};
#define NRESULTS RFL_ARRAY_LEN(results)

const char *const rfl_run__event_names[] = {
	"timed", "gpu", "memory", "kinds", "until", "engine", "device", "ready", "world", NULL,
};

enum rfl_rc rfl_run__results_init(struct rfl_run__results *r, int64_t iters, struct rfl_err *err)
{
	*r = (struct rfl_run__results){ .device = RFL_RUN_DEVICE_AUTO };
	for (size_t i = 0; i < NRESULTS; i++)
		if (results[i].m.kind == RFL_BIND_REAL)
			*(double *)(void *)((char *)r + results[i].m.offset) = (double)NAN;
	r->skipped = r->scaling.skipped = r->on.memory_bytes = r->data_samples = -1;
	r->plugin_abi = r->pin_memory = r->cudnn_benchmark = r->cuda_graph = -1;
	return rfl_burst_init(&r->burst, iters, err);
}

/* WORLD carries the combined results of all processes. */
static bool is_in(const struct result *row, enum rfl_run__event event)
{
	return event == RFL_RUN__WORLD ? row->rule != OWN : row->event == event;
}

json_t *rfl_run__pack(enum rfl_run__event event, const struct rfl_run__results *r)
{
	json_t *json = json_pack("{s:s}", "event", rfl_run__event_names[event]);

	for (size_t i = 0; i < NRESULTS; i++)
		if (is_in(&results[i], event))
			(void)json_object_set_new(json, results[i].m.key,
						  rfl_bind_json(&results[i].m, r));
	return json;
}

void rfl_run__unpack(enum rfl_run__event event, const json_t *json, struct rfl_run__results *r)
{
	for (size_t i = 0; i < NRESULTS; i++)
		if (is_in(&results[i], event))
			(void)rfl_bind_get(&results[i].m, json_object_get(json, results[i].m.key),
					   r);
	if (r->device < RFL_RUN_DEVICE_AUTO || r->device > RFL_DEVICE_MPS)
		r->device = RFL_RUN_DEVICE_AUTO;
}

_Static_assert(sizeof(struct rfl_burst_step) == RFL_RUN__STEP_NUMBERS * sizeof(double),
	       "doubles only");

json_t *rfl_run__pack_steps(const char *event, const struct rfl_burst_step *steps, int64_t first,
			    int64_t n)
{
	json_t *rows = json_array();

	for (int64_t i = 0; i < n; i++) {
		double numbers[RFL_RUN__STEP_NUMBERS];
		json_t *row = json_array();

		memcpy(numbers, &steps[i], sizeof(numbers));
		for (size_t k = 0; k < RFL_RUN__STEP_NUMBERS; k++)
			json_array_append_new(row, rfl_json_real(numbers[k]));
		json_array_append_new(rows, row);
	}
	return json_pack("{s:s, s:I, s:o}", "event", event, "first", (json_int_t)first, "rows",
			 rows);
}

void rfl_run__unpack_steps(const json_t *event, struct rfl_burst *b)
{
	int64_t at = json_integer_value(json_object_get(event, "first"));
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(event, "rows"), i, row)
	{
		double numbers[RFL_RUN__STEP_NUMBERS];

		if (at < 0 || at >= b->nsteps || json_array_size(row) != RFL_RUN__STEP_NUMBERS)
			break;
		for (size_t k = 0; k < RFL_RUN__STEP_NUMBERS; k++) {
			const json_t *x = json_array_get(row, k);

			numbers[k] = json_is_number(x) ? json_number_value(x) : (double)NAN;
		}
		memcpy(&b->steps[at++], numbers, sizeof(numbers));
	}
}

bool rfl_run__has_all_steps(const struct rfl_burst *b)
{
	for (int64_t i = 0; b->steps && i < b->nsteps; i++)
		if (isnan(b->steps[i].total_s))
			return false;
	return b->steps != NULL;
}

static double combine(enum rule rule, const double *all, size_t n, int size, int slowest)
{
	double sum = 0, least = (double)INFINITY, most = (double)-INFINITY;
	uint32_t bits = 0;

	for (int r = 0; r < size; r++) {
		const double x = all[(size_t)r * n];

		if (isnan(x)) /* unknown in one process: unknown for all */
			return x;
		sum += x;
		least = fmin(least, x);
		most = fmax(most, x);
		bits |= rule == BITS ? (uint32_t)x : 0;
	}
	switch (rule) {
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
	default:
		return all[(size_t)slowest * n];
	}
}

enum rfl_rc rfl_run__unite(const struct rfl_engine_ops *ops, struct rfl_engine *engine, int size,
			   struct rfl_run__results *r, int *slowest, struct rfl_err *err)
{
	double own[NRESULTS];
	RFL_AUTOFREE double *all = rfl_alloc_array((size_t)size * NRESULTS, sizeof(*all));
	size_t n = 0, k = 0;
	enum rfl_rc rc;

	for (size_t i = 0; i < NRESULTS; i++) {
		const void *at = (const char *)r + results[i].m.offset;

		if (results[i].rule == BITS)
			own[n++] = (uint32_t) * (const int64_t *)at;
		else if (results[i].rule != OWN)
			own[n++] = results[i].m.kind == RFL_BIND_REAL
					   ? *(const double *)at
					   : (double)*(const int64_t *)at;
	}
	rc = ops->gather(engine, own, n, all, err);
	if (rc)
		goto done;
	*slowest = 0;
	for (int rank = 1; rank < size; rank++)
		if (all[(size_t)rank * n] > all[(size_t)*slowest * n]) /* wall_s */
			*slowest = rank;
	for (size_t i = 0; i < NRESULTS; i++) {
		void *at = (char *)r + results[i].m.offset;
		double x;

		if (results[i].rule == OWN)
			continue;
		x = combine(results[i].rule, all + k++, n, size, *slowest);
		if (results[i].m.kind == RFL_BIND_REAL)
			*(double *)at = x;
		else
			*(int64_t *)at = (int64_t)x;
	}
done:
	return rc;
}

void rfl_run__fill_results(const struct rfl_run__results *r, bool timed, struct rfl_ledger_row *row)
{
	for (size_t i = 0; i < NRESULTS; i++) {
		const struct rfl_member *m = &results[i].m;
		const void *from = (const char *)r + m->offset;
		void *to = (char *)row + results[i].column;

		if (results[i].column == NONE || (results[i].event <= RFL_RUN__UNTIL && !timed))
			continue;
		if (m->kind == RFL_BIND_CHARS)
			rfl_field_set(to, *(const char *)from ? from : NULL);
		else if (m->kind == RFL_BIND_REAL)
			*(double *)to = *(const double *)from;
		else
			*(int64_t *)to = m->size == sizeof(int) ? *(const int *)from
								: *(const int64_t *)from;
	}
}
