/* gpu.c - reads names and settings of GPUs with NVML, and samples a GPU in a thread. */
#include "machine/gpu.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/dl.h"
#include "base/os.h"
#include "machine/nvml.h"

#define REASON_IDLE 0x1u
#define SETTLED_S   1.0 /* minimum window for averages and counters of the driver */

static const char *const libraries[] = { "libnvidia-ml.so.1", "libnvidia-ml.so", NULL };

/* Convert an NVML result to an error; `what` names the call. */
static enum rfl_rc check(const struct rfl_nvml *n, int code, const char *what, struct rfl_err *err)
{
	if (code == RFL_NVML_SUCCESS)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, code, "the NVIDIA driver failed in %s: %s", what,
			n->error(code));
}

/* Open the library and initialise the driver. Call close_nvml() even after a failure. */
static enum rfl_rc open_nvml(struct rfl_nvml *n, struct rfl_err *err)
{
	const struct rfl_dl_symbol symbols[] = { { "nvmlErrorString", &n->error, false },
#define SYMBOL(member, symbol, optional, arguments) { symbol, &n->member, optional },
						 RFL_NVML_FUNCTIONS(SYMBOL) };
	enum rfl_rc rc;

	*n = (struct rfl_nvml){ .dl = NULL };
	rc = rfl_dl_open(libraries, RFL_DL_LOAD, symbols, RFL_ARRAY_LEN(symbols), &n->dl, err);
	if (rc != RFL_OK) {
		rfl_err_prefix(err, "no NVIDIA driver found");
		return rc;
	}
	if (!n->clocks_reasons)
		n->clocks_reasons = n->throttle_reasons;
	rc = check(n, n->init(), "nvmlInit", err);
	if (rc == RFL_OK)
		return RFL_OK;
	rfl_dl_close(n->dl);
	*n = (struct rfl_nvml){ .dl = NULL };
	return rc;
}

static void close_nvml(struct rfl_nvml *n)
{
	if (!n->dl)
		return;
	(void)n->shutdown();
	rfl_dl_close(n->dl);
	*n = (struct rfl_nvml){ .dl = NULL };
}

/* --- names and settings ----------------------------------------------------------------------- */

/* Read a clock, current or maximum, with `ask`. NaN: not reported. */
static double clock_hz(int (*ask)(rfl_nvml_device device, int clock, unsigned *out),
		       rfl_nvml_device device, int clock)
{
	unsigned mhz = 0;

	return ask && ask(device, clock, &mhz) == RFL_NVML_SUCCESS ? mhz * 1e6 : (double)NAN;
}

static double value_of(int (*ask)(rfl_nvml_device device, unsigned *out), rfl_nvml_device device,
		       double unit)
{
	unsigned value = 0;

	return ask && ask(device, &value) == RFL_NVML_SUCCESS ? value * unit : (double)NAN;
}

static enum rfl_rc read_gpu(const struct rfl_nvml *n, unsigned index, struct rfl_gpu *gpu,
			    struct rfl_err *err)
{
	rfl_nvml_device device = NULL;
	struct rfl_nvml_memory memory;
	unsigned ecc, pending;
	double persistence;
	enum rfl_rc rc;

	if ((rc = check(n, n->handle(index, &device), "nvmlDeviceGetHandleByIndex", err)) ||
	    (rc = check(n, n->name(device, gpu->name, sizeof(gpu->name)), "nvmlDeviceGetName",
			err)))
		return rc;
	if (!n->uuid || n->uuid(device, gpu->uuid, sizeof(gpu->uuid)) != RFL_NVML_SUCCESS)
		gpu->uuid[0] = '\0';
	if (n->memory && n->memory(device, &memory) == RFL_NVML_SUCCESS)
		gpu->memory_bytes = (int64_t)memory.total;
	if (!n->compute_capability ||
	    n->compute_capability(device, &gpu->cc_major, &gpu->cc_minor) != RFL_NVML_SUCCESS)
		gpu->cc_major = gpu->cc_minor = 0;
	gpu->sm_clock_max_hz = clock_hz(n->max_clock_mhz, device, RFL_NVML_CLOCK_SM);
	gpu->memory_clock_max_hz = clock_hz(n->max_clock_mhz, device, RFL_NVML_CLOCK_MEMORY);
	gpu->power_limit_w = value_of(n->power_limit_mw, device, 1e-3);
	gpu->ecc = gpu->persistence = RFL_NOT_KNOWN;
	if (n->ecc && n->ecc(device, &ecc, &pending) == RFL_NVML_SUCCESS)
		gpu->ecc = ecc ? RFL_YES : RFL_NO;
	persistence = value_of(n->persistence, device, 1);
	if (!isnan(persistence))
		gpu->persistence = persistence > 0 ? RFL_YES : RFL_NO;
	return RFL_OK;
}

enum rfl_rc rfl_gpus_new(struct rfl_gpus **ret, struct rfl_err *err)
{
	RFL_CLEANUP(close_nvml) struct rfl_nvml n = { .dl = NULL };
	RFL_AUTOPTR(gpus) g = NULL;
	unsigned count = 0;
	enum rfl_rc rc;

	if ((rc = open_nvml(&n, err)) != RFL_OK ||
	    (rc = check(&n, n.count(&count), "nvmlDeviceGetCount", err)) != RFL_OK)
		return rc;
	if (count == 0)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "the NVIDIA driver shows no GPU");
	g = rfl_alloc_array(1, sizeof(*g));
	g->gpus = rfl_alloc_array(count, sizeof(*g->gpus));
	if (n.driver_version(g->driver, sizeof(g->driver)) != RFL_NVML_SUCCESS)
		g->driver[0] = '\0';
	for (; g->n < count; g->n++)
		if ((rc = read_gpu(&n, (unsigned)g->n, &g->gpus[g->n], err)) != RFL_OK)
			return rc;
	*ret = g;
	g = NULL;
	return RFL_OK;
}

void rfl_gpus_free(struct rfl_gpus *g)
{
	if (!g)
		return;
	free(g->gpus);
	free(g);
}

/* --- samples ---------------------------------------------------------------------------------- */

/* The mean of the known values. */
struct mean {
	double sum;
	int64_t n;
};

/* The state of a window; owned by the thread while it runs. */
struct window {
	struct mean sm_hz, memory_hz, power_w;
	struct rfl_gpu_samples samples; /* without means */
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

	int64_t start_ns;
	double energy_start_j; /* NaN: no counter */
	struct window window;
};

static double mean_of(const struct mean *m)
{
	return m->n > 0 ? m->sum / (double)m->n : (double)NAN;
}

static void add_to(struct mean *m, double value)
{
	if (isnan(value))
		return;
	m->sum += value;
	m->n++;
}

static double seconds_since(const struct rfl_sampler *s)
{
	return 1e-9 * (double)(rfl_clock_ns() - s->start_ns);
}

static double read_energy_j(const struct rfl_sampler *s)
{
	unsigned long long mj = 0;

	if (!s->nvml.energy_mj || s->nvml.energy_mj(s->device, &mj) != RFL_NVML_SUCCESS)
		return (double)NAN;
	return 1e-3 * (double)mj;
}

/* fmax() and fmin() ignore NaN. */
static void take_sample(struct rfl_sampler *s)
{
	const int sensor = 0; /* the sensor on the GPU die */
	const struct rfl_nvml *n = &s->nvml;
	struct window *w = &s->window;
	struct rfl_gpu_samples *to = &w->samples;
	const double sm_hz = clock_hz(n->clock_mhz, s->device, RFL_NVML_CLOCK_SM);
	struct rfl_nvml_field instant = { .id = RFL_NVML_POWER_INSTANT };
	struct rfl_nvml_memory memory;
	unsigned long long seen = 0;
	unsigned value = 0;

	add_to(&w->sm_hz, sm_hz);
	to->sm_clock_min_hz = fmin(to->sm_clock_min_hz, sm_hz);
	add_to(&w->memory_hz, clock_hz(n->clock_mhz, s->device, RFL_NVML_CLOCK_MEMORY));
	/* Without instantaneous power (older drivers) most GPUs report the mean of the last second.
	 * In the first second, it would include the time before the window. */
	if (n->fields && n->fields(s->device, 1, &instant) == RFL_NVML_SUCCESS &&
	    instant.result == RFL_NVML_SUCCESS)
		add_to(&w->power_w, 1e-3 * instant.value.natural);
	else if (seconds_since(s) >= SETTLED_S)
		add_to(&w->power_w, value_of(n->power_mw, s->device, 1e-3));
	if (n->temperature_c && n->temperature_c(s->device, sensor, &value) == RFL_NVML_SUCCESS)
		to->temperature_max_c = fmax(to->temperature_max_c, value);
	if (n->memory && n->memory(s->device, &memory) == RFL_NVML_SUCCESS)
		to->memory_used_peak_bytes = fmax(to->memory_used_peak_bytes, (double)memory.used);
	if (n->clocks_reasons && n->clocks_reasons(s->device, &seen) == RFL_NVML_SUCCESS) {
		to->throttle_bits |= seen & ~(unsigned long long)REASON_IDLE;
		to->throttle_known = true;
	}
	to->n++;
}

/* The sampling thread. Samples are on a fixed time grid; missed samples are skipped. */
static void *run(void *arg)
{
	struct rfl_sampler *s = arg;
	const int64_t interval = (int64_t)(s->interval_s * 1e9);
	int64_t next = s->start_ns, now;
	bool stop = false;

	while (!stop) {
		struct timespec until;
		int code = 0;

		take_sample(s);
		now = rfl_clock_ns();
		next += interval;
		if (next < now)
			next += (now - next + interval - 1) / interval * interval;
		until = (struct timespec){ .tv_sec = (time_t)(next / 1000000000),
					   .tv_nsec = (long)(next % 1000000000) };
		(void)pthread_mutex_lock(&s->lock);
		while (!s->stop && code != ETIMEDOUT)
			code = pthread_cond_timedwait(&s->wake, &s->lock, &until);
		stop = s->stop;
		(void)pthread_mutex_unlock(&s->lock);
	}
	take_sample(s);
	return NULL;
}

/* Find the device with a PCI bus id; "0000:0a:00.0" and "00000000:0A:00.0" are the same. Devices
 * that do not report their id do not match. */
static enum rfl_rc find_device(struct rfl_sampler *s, const char *pci_bus_id, struct rfl_err *err)
{
	const struct rfl_nvml *n = &s->nvml;
	struct rfl_nvml_pci want, pci;
	unsigned count = 0;
	enum rfl_rc rc;
	char zero[2];

	if (!pci_bus_id)
		return check(n, n->handle(0, &s->device), "nvmlDeviceGetHandleByIndex", err);
	if (!isxdigit((unsigned char)pci_bus_id[0]) ||
	    sscanf(pci_bus_id, "%8x:%8x:%8x.%1[0]", &want.domain, &want.bus, &want.device, zero) !=
		    4)
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is not a valid PCI bus id; write it as 00000000:0A:00.0",
				pci_bus_id);
	if (!n->pci)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"this NVIDIA driver has no nvmlDeviceGetPciInfo_v3, which is "
				"needed to find GPU %s; install a newer driver",
				pci_bus_id);
	if ((rc = check(n, n->count(&count), "nvmlDeviceGetCount", err)) != RFL_OK)
		return rc;
	for (unsigned i = 0; i < count; i++)
		if (n->handle(i, &s->device) == RFL_NVML_SUCCESS &&
		    n->pci(s->device, &pci) == RFL_NVML_SUCCESS && pci.domain == want.domain &&
		    pci.bus == want.bus && pci.device == want.device)
			return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"the NVIDIA driver shows %u GPUs, but none with PCI bus id %s", count,
			pci_bus_id);
}

static void reset(struct rfl_sampler *s)
{
	s->stop = false;
	s->window = (struct window){ .samples = { .sm_clock_min_hz = NAN,
						  .temperature_max_c = NAN,
						  .memory_used_peak_bytes = NAN } };
}

enum rfl_rc rfl_sampler_new(const char *pci_bus_id, double hz, struct rfl_sampler **ret,
			    struct rfl_err *err)
{
	struct rfl_sampler *s;
	enum rfl_rc rc;

	if (!(hz > 0 && hz <= 1000))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%g GPU samples per second: use a rate above 0, at most 1000", hz);
	s = rfl_alloc_array(1, sizeof(*s));
	s->interval_s = 1 / hz;
	reset(s);
	(void)pthread_mutex_init(&s->lock, NULL);
	rfl_os_cond_init(&s->wake);
	if ((rc = open_nvml(&s->nvml, err)) != RFL_OK ||
	    (rc = find_device(s, pci_bus_id, err)) != RFL_OK) {
		rfl_sampler_free(s);
		return rc;
	}
	*ret = s;
	return RFL_OK;
}

enum rfl_rc rfl_sampler_start(struct rfl_sampler *s, struct rfl_err *err)
{
	int code;

	if (s->running)
		return rfl_fail(err, RFL_EINVAL, 0, "the GPU is already being sampled");
	reset(s);
	s->energy_start_j = read_energy_j(s);
	s->start_ns = rfl_clock_ns();
	code = pthread_create(&s->thread, NULL, run, s);
	if (code != 0)
		return rfl_fail(err, RFL_ENOMEM, code,
				"cannot start the thread that samples the GPU: %s", strerror(code));
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

void rfl_sampler_stop(struct rfl_sampler *s, struct rfl_gpu_samples *ret)
{
	/* read at the end of the window, while the thread is still running */
	const double end_j = s->running ? read_energy_j(s) : (double)NAN;
	const double window_s = s->running ? seconds_since(s) : (double)NAN;
	const struct window *w = &s->window;

	end_thread(s);
	*ret = w->samples;
	ret->sm_clock_mean_hz = mean_of(&w->sm_hz);
	ret->memory_clock_mean_hz = mean_of(&w->memory_hz);
	ret->power_mean_w = mean_of(&w->power_w);
	ret->window_s = window_s;
	/* The counter advances about ten times a second: in short windows, power times time is more
	 * accurate. A counter that went back (driver reset) is ignored. */
	ret->energy_j = ret->power_mean_w * window_s;
	if (end_j > s->energy_start_j && (window_s >= SETTLED_S || isnan(ret->energy_j)))
		ret->energy_j = end_j - s->energy_start_j;
	reset(s);
}

void rfl_sampler_free(struct rfl_sampler *s)
{
	if (!s)
		return;
	end_thread(s);
	close_nvml(&s->nvml);
	(void)pthread_cond_destroy(&s->wake);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* The bits of NVML's nvmlClocksEventReasons. */
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

char *rfl_throttle_words(uint64_t bits, char *out, size_t size)
{
	RFL_AUTO(buf) words = { .len = 0 };

	for (size_t i = 0; i < RFL_ARRAY_LEN(reasons); i++) {
		if (bits & reasons[i].bit)
			rfl_buf_printf(&words, "%s%s", words.len ? ", " : "", reasons[i].words);
		bits &= ~reasons[i].bit;
	}
	if (bits)
		rfl_buf_printf(&words, "%sother reasons (0x%llx)", words.len ? ", " : "",
			       (unsigned long long)bits);
	(void)snprintf(out, size, "%s", rfl_buf_str(&words));
	return out;
}
