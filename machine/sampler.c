/*
 * sampler.c - what a GPU does while something else runs on it, by NVML.
 */
#include "machine/sampler.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "machine/nvml.h"

#define REASON_IDLE 0x1u
#define SETTLED_S   1.0 /* of a window: what the driver averages or counts in ticks is right then */

/* The mean of the known values. */
struct mean {
	double sum;
	int64_t n;
};

struct rfl_sampler {
	struct rfl_nvml nvml;
	rfl_nvml_device device;
	double interval_s;

	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop; /* under lock */

	/* of the window; the thread's while it runs */
	int64_t n, start_ns;
	struct mean sm_hz, memory_hz, power_w;
	double sm_min_hz, temperature_max_c, used_peak_bytes; /* NaN: never known */
	double energy_start_j;                                /* NaN: no counter */
	uint64_t reasons;
	bool reasons_known;
};

/* ------------------------------------------------------------------ which device */

/* "0000:0a:00.0" and "00000000:0A:00.0" are the same place. */
static bool parse_bus_id(const char *text, struct rfl_nvml_pci *ret)
{
	char zero[2];

	return isxdigit((unsigned char)text[0]) &&
	       sscanf(text, "%8x:%8x:%8x.%1[0]", &ret->domain, &ret->bus, &ret->device, zero) == 4;
}

/* A device that does not report its place is not at the one wanted. */
static enum rfl_rc find_device(struct rfl_sampler *s, const char *pci_bus_id, struct rfl_err *err)
{
	const struct rfl_nvml *n = &s->nvml;
	struct rfl_nvml_pci want, pci;
	unsigned count = 0;
	enum rfl_rc rc;

	if (!pci_bus_id)
		return rfl_nvml_check(n, n->handle(0, &s->device), "nvmlDeviceGetHandleByIndex",
				      err);
	if (!parse_bus_id(pci_bus_id, &want))
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is not a valid place of a GPU, such as 00000000:0A:00.0",
				pci_bus_id);
	if (!n->pci)
		return rfl_fail(
			err, RFL_EUNAVAILABLE, 0,
			"this NVIDIA driver has no nvmlDeviceGetPciInfo_v3, by which GPU %s "
			"would be found: install a newer driver",
			pci_bus_id);
	rc = rfl_nvml_check(n, n->count(&count), "nvmlDeviceGetCount", err);
	if (rc != RFL_OK)
		return rc;
	for (unsigned i = 0; i < count; i++)
		if (n->handle(i, &s->device) == RFL_NVML_SUCCESS &&
		    n->pci(s->device, &pci) == RFL_NVML_SUCCESS && pci.domain == want.domain &&
		    pci.bus == want.bus && pci.device == want.device)
			return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"the NVIDIA driver shows no GPU at %s: it has %u elsewhere", pci_bus_id,
			count);
}

/* ------------------------------------------------------------------ one sample */

static double mean_of(const struct mean *m)
{
	return m->n > 0 ? m->sum / (double)m->n : (double)NAN;
}

static double seconds_since(const struct rfl_sampler *s)
{
	return 1e-9 * (double)(rfl_clock_ns() - s->start_ns);
}

static double read_hz(const struct rfl_sampler *s, int clock)
{
	unsigned mhz = 0;

	if (!s->nvml.clock_mhz || s->nvml.clock_mhz(s->device, clock, &mhz) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return 1e6 * mhz;
}

/* Of an older driver the mean of the last second, on most GPUs: in the window's first second it
 * would be that of the time before. */
static double read_power_w(const struct rfl_sampler *s)
{
	struct rfl_nvml_field f = { .id = RFL_NVML_POWER_INSTANT };
	unsigned mw = 0;

	if (s->nvml.fields && s->nvml.fields(s->device, 1, &f) == RFL_NVML_SUCCESS &&
	    f.result == RFL_NVML_SUCCESS)
		return 1e-3 * f.value.natural;
	if (seconds_since(s) < SETTLED_S || !s->nvml.power_mw ||
	    s->nvml.power_mw(s->device, &mw) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return 1e-3 * mw;
}

static double read_temperature_c(const struct rfl_sampler *s)
{
	const int sensor = 0; /* the GPU's own */
	unsigned c = 0;

	if (!s->nvml.temperature_c ||
	    s->nvml.temperature_c(s->device, sensor, &c) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return c;
}

static double read_used_bytes(const struct rfl_sampler *s)
{
	struct rfl_nvml_memory m;

	if (!s->nvml.memory || s->nvml.memory(s->device, &m) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return (double)m.used;
}

static double read_energy_j(const struct rfl_sampler *s)
{
	unsigned long long mj = 0;

	if (!s->nvml.energy_mj || s->nvml.energy_mj(s->device, &mj) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return 1e-3 * (double)mj;
}

static void add_known(struct mean *m, double value)
{
	if (isnan(value))
		return;
	m->sum += value;
	m->n++;
}

/* fmax and fmin take the other one when one is NaN. */
static void take_sample(struct rfl_sampler *s)
{
	const double sm_hz = read_hz(s, RFL_NVML_CLOCK_SM);
	unsigned long long reasons = 0;

	add_known(&s->sm_hz, sm_hz);
	s->sm_min_hz = fmin(s->sm_min_hz, sm_hz);
	add_known(&s->memory_hz, read_hz(s, RFL_NVML_CLOCK_MEMORY));
	add_known(&s->power_w, read_power_w(s));
	s->temperature_max_c = fmax(s->temperature_max_c, read_temperature_c(s));
	s->used_peak_bytes = fmax(s->used_peak_bytes, read_used_bytes(s));
	if (s->nvml.clocks_reasons &&
	    s->nvml.clocks_reasons(s->device, &reasons) == RFL_NVML_SUCCESS) {
		s->reasons |= reasons & ~(unsigned long long)REASON_IDLE;
		s->reasons_known = true;
	}
	s->n++;
}

/* ------------------------------------------------------------------ the thread */

/* Sleep until an instant of the monotonic clock; true when the window ends. */
static bool sleep_until(struct rfl_sampler *s, int64_t ns)
{
	const struct timespec until = { .tv_sec = (time_t)(ns / 1000000000),
					.tv_nsec = (long)(ns % 1000000000) };
	bool stop;
	int rc = 0;

	(void)pthread_mutex_lock(&s->lock);
	while (!s->stop && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&s->wake, &s->lock, &until);
	stop = s->stop;
	(void)pthread_mutex_unlock(&s->lock);
	return stop;
}

/* Ticks keep to a grid; those that were missed are left out. */
static void *run(void *arg)
{
	struct rfl_sampler *s = arg;
	const int64_t interval = (int64_t)(s->interval_s * 1e9);
	int64_t next = s->start_ns, now;

	do {
		take_sample(s);
		now = rfl_clock_ns();
		next += interval;
		if (next < now)
			next += (now - next + interval - 1) / interval * interval;
	} while (!sleep_until(s, next));
	take_sample(s);
	return NULL;
}

/* ------------------------------------------------------------------ life */

enum rfl_rc rfl_sampler_new(const char *pci_bus_id, double hz, struct rfl_sampler **ret,
			    struct rfl_err *err)
{
	struct rfl_sampler *s;
	pthread_condattr_t monotonic;
	enum rfl_rc rc;

	if (!(hz > 0 && hz <= 1000))
		return rfl_fail(err, RFL_EINVAL, 0,
				"a GPU is sampled up to 1000 times a second, not %g times", hz);
	s = calloc(1, sizeof(*s));
	if (!s)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	s->interval_s = 1 / hz;
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->wake, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	rc = rfl_nvml_open(&s->nvml, err);
	if (rc == RFL_OK)
		rc = find_device(s, pci_bus_id, err);
	if (rc != RFL_OK)
		goto done;

	*ret = s;
	s = NULL;
done:
	rfl_sampler_free(s);
	return rc;
}

enum rfl_rc rfl_sampler_start(struct rfl_sampler *s, struct rfl_err *err)
{
	int code;

	if (s->running)
		return rfl_fail(err, RFL_EINVAL, 0, "the GPU is sampled already");
	s->stop = false;
	s->n = 0;
	s->sm_hz = s->memory_hz = s->power_w = (struct mean){ .n = 0 };
	s->sm_min_hz = s->temperature_max_c = s->used_peak_bytes = (double)NAN;
	s->reasons = 0;
	s->reasons_known = false;
	s->energy_start_j = read_energy_j(s);
	s->start_ns = rfl_clock_ns();
	code = pthread_create(&s->thread, NULL, run, s);
	if (code != 0)
		return rfl_fail(err, RFL_ENOMEM, code, "no thread to sample the GPU: %s",
				strerror(code));
	s->running = true;
	return RFL_OK;
}

static void end_thread(struct rfl_sampler *s)
{
	if (!s->running)
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->stop = true;
	(void)pthread_cond_signal(&s->wake);
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_join(s->thread, NULL);
	s->running = false;
}

/* The counter moves some ten times a second: in a short window power times time is nearer. One that
 * went back, as after a reset of the driver, says nothing. */
static double energy_of(const struct rfl_sampler *s, double end_j, double window_s)
{
	const double by_power_j = mean_of(&s->power_w) * window_s;

	if (end_j > s->energy_start_j && (window_s >= SETTLED_S || isnan(by_power_j)))
		return end_j - s->energy_start_j;
	return by_power_j;
}

void rfl_sampler_stop(struct rfl_sampler *s, struct rfl_gpu_samples *ret)
{
	double energy_end_j, window_s;

	if (!s->running) {
		*ret = (struct rfl_gpu_samples){
			.sm_clock_mean_hz = NAN,
			.sm_clock_min_hz = NAN,
			.memory_clock_mean_hz = NAN,
			.power_mean_w = NAN,
			.energy_j = NAN,
			.temperature_max_c = NAN,
			.memory_used_peak_bytes = NAN,
			.window_s = NAN,
		};
		return;
	}
	energy_end_j = read_energy_j(s); /* at the edge; the thread may be asking too */
	window_s = seconds_since(s);
	end_thread(s);
	*ret = (struct rfl_gpu_samples){
		.n = s->n,
		.sm_clock_mean_hz = mean_of(&s->sm_hz),
		.sm_clock_min_hz = s->sm_min_hz,
		.memory_clock_mean_hz = mean_of(&s->memory_hz),
		.power_mean_w = mean_of(&s->power_w),
		.energy_j = energy_of(s, energy_end_j, window_s),
		.temperature_max_c = s->temperature_max_c,
		.memory_used_peak_bytes = s->used_peak_bytes,
		.throttle_bits = s->reasons,
		.throttle_known = s->reasons_known,
		.window_s = window_s,
	};
}

void rfl_sampler_free(struct rfl_sampler *s)
{
	if (!s)
		return;
	end_thread(s);
	rfl_nvml_close(&s->nvml);
	(void)pthread_cond_destroy(&s->wake);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ------------------------------------------------------------------ words */

/* NVML's nvmlClocksEventReasons. */
static const struct {
	uint64_t bit;
	const char *words;
} reasons[] = {
	{ 0x1, "idle" },
	{ 0x2, "application clocks" },
	{ 0x4, "SW power cap" },
	{ 0x8, "HW slowdown" },
	{ 0x10, "sync boost" },
	{ 0x20, "SW thermal slowdown" },
	{ 0x40, "HW thermal slowdown" },
	{ 0x80, "HW power brake" },
	{ 0x100, "display clocks" },
};

void rfl_throttle_words(uint64_t bits, char *out, size_t size)
{
	struct rfl_buf words;

	rfl_buf_init(&words, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(reasons); i++) {
		if (bits & reasons[i].bit)
			rfl_buf_printf(&words, "%s%s", words.len ? ", " : "", reasons[i].words);
		bits &= ~reasons[i].bit;
	}
	if (bits)
		rfl_buf_printf(&words, "%sother reasons (0x%llx)", words.len ? ", " : "",
			       (unsigned long long)bits);
	(void)snprintf(out, size, "%s", rfl_buf_str(&words));
	rfl_buf_fini(&words);
}
