/*
 * fake_cupti.c - libcupti.so.13 for tests, the target part: a range profiler that is a state
 * machine and says so when it is driven in a wrong order, and counters of what the fake GPU did.
 * Steered by FAKE_CUPTI or fake_cupti_control(); see README.md.
 */
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "tests/fakes/fake_cupti_impl.h"

RFL_EXPORT void fake_cupti_control(const char *script);
RFL_EXPORT const char *fake_cupti_log(void);
RFL_EXPORT const char *fake_cupti_complaints(void);
RFL_EXPORT int fake_cupti_profiler(void);

struct rfl_cupti_range_object {
	bool enabled, configured, running, open, decoded;
	const uint8_t *config;
	size_t config_size, passes, pass;
	uint64_t config_hash;
	struct fake_data *data;
	struct fake_range current;
	struct fake_work at_push;
	struct timespec pushed;
};

struct fake_script fake_cupti_script = { .variable = "FAKE_CUPTI" };
static struct rfl_cupti_range_object object;
static int initialized, initializations;

#define COMPLAIN(...) fake_script_complain(&fake_cupti_script, __VA_ARGS__)

void fake_cupti_control(const char *text)
{
	fake_script_set(&fake_cupti_script, text);
	memset(&object, 0, sizeof(object));
	initialized = 0;
}

const char *fake_cupti_log(void)
{
	return fake_cupti_script.log;
}

const char *fake_cupti_complaints(void)
{
	return fake_cupti_script.complaints;
}

/* Which initialisation of the profiler is in effect; 0: none. Its end loses the kernels that it has
 * patched. */
int fake_cupti_profiler(void)
{
	return initialized ? initializations : 0;
}

__attribute__((destructor)) static void at_exit(void)
{
	if (object.enabled)
		COMPLAIN("LEAK: the range profiler is still enabled");
	if (initialized)
		COMPLAIN("LEAK: cuptiProfilerDeInitialize is missing %d times", initialized);
}

/* What the fake GPU did so far; nothing where another driver is loaded. */
static struct fake_work work_now(void)
{
	static const struct fake_work none;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *address = cuda ? dlsym(cuda, "fake_cuda_work") : NULL;
	const struct fake_work *(*get)(void);

	if (cuda)
		dlclose(cuda);
	if (!address)
		return none;
	memcpy(&get, &address, sizeof(get));
	return *get();
}

/* ---- device ---- */

#ifdef FAKE_CUPTI_13_2
RFL_EXPORT int cuptiProfilerHostGetSinglePassSets(void *p);

int cuptiProfilerHostGetSinglePassSets(void *p)
{
	(void)p;
	return RFL_CUPTI_NOT_IMPLEMENTED;
}
#endif

int cuptiGetVersion(uint32_t *version)
{
#ifdef FAKE_CUPTI_13_2
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!cuda)
		raise(SIGSEGV); /* as NVIDIA's does */
	dlclose(cuda);
#endif
	*version = (uint32_t)fake_script_number(&fake_cupti_script, "version", 130001);
	return RFL_CUPTI_SUCCESS;
}

int cuptiGetResultString(int result, const char **text)
{
#define NAME(member, theirs, value, ...) { value, #theirs },
	static const struct {
		int code;
		const char *name;
	} names[] = { RFL_CUPTI_RESULTS(NAME) };
#undef NAME

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++)
		if (names[i].code == result) {
			*text = names[i].name;
			return RFL_CUPTI_SUCCESS;
		}
	return RFL_CUPTI_INVALID_PARAMETER;
}

int cuptiProfilerInitialize(struct rfl_cupti_profiler_initialize *p)
{
	ENTER_STRUCT(profiler_initialize);
	initializations += initialized++ == 0;
	return RFL_CUPTI_SUCCESS;
}

int cuptiProfilerDeInitialize(struct rfl_cupti_profiler_deinitialize *p)
{
	ENTER_STRUCT(profiler_deinitialize);
	if (object.enabled)
		COMPLAIN("cuptiProfilerDeInitialize before cuptiRangeProfilerDisable");
	if (initialized-- == 0)
		COMPLAIN("cuptiProfilerDeInitialize once too often");
	return RFL_CUPTI_SUCCESS;
}

/* "unsupported=vgpu:2": this field has that level, and the whole is unsupported. "support=4": the
 * whole has that level. */
int cuptiProfilerDeviceSupported(struct rfl_cupti_device_supported *p)
{
	static const char *const names[] = { "architecture", "sli", "vgpu",
					     "confidential", "cmp", "wsl" };
	char text[FAKE_VALUE_MAX];
	int32_t *levels[] = { &p->architecture,         &p->sli, &p->vgpu,
			      &p->confidential_compute, &p->cmp, &p->wsl };

	ENTER_STRUCT(device_supported);
	if (!initialized)
		return RFL_CUPTI_NOT_INITIALIZED;
	p->supported = (int32_t)fake_script_number(&fake_cupti_script, "support",
						   RFL_CUPTI_SUPPORT_SUPPORTED);
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]), at = 0;

		*levels[i] = RFL_CUPTI_SUPPORT_SUPPORTED;
		while (fake_script_next(&fake_cupti_script, "unsupported", &at, text)) {
			if (strncmp(text, names[i], len) != 0 || text[len] != ':')
				continue;
			*levels[i] = (int32_t)strtod(text + len + 1, NULL);
			p->supported = RFL_CUPTI_SUPPORT_UNSUPPORTED;
		}
	}
	return RFL_CUPTI_SUCCESS;
}

int cuptiDeviceGetChipName(struct rfl_cupti_chip_name *p)
{
	static char chip[FAKE_VALUE_MAX];

	ENTER_STRUCT(chip_name);
	snprintf(chip, sizeof(chip), "GH100");
	(void)fake_script_text(&fake_cupti_script, "chip", chip);
	p->name = chip;
	return RFL_CUPTI_SUCCESS;
}

int cuptiProfilerGetCounterAvailability(struct rfl_cupti_availability *p)
{
	const size_t size = 200;

	ENTER_STRUCT(availability);
	if (!initialized)
		return RFL_CUPTI_NOT_INITIALIZED;
	if (!p->context)
		return RFL_CUPTI_INVALID_CONTEXT;
	if (p->image && p->size < size)
		return RFL_CUPTI_PARAMETER_SIZE;
	if (p->image)
		memset(p->image, 0xa5, size);
	p->size = fake_size(__func__, size);
	return RFL_CUPTI_SUCCESS;
}

/* ---- session ---- */

int cuptiRangeProfilerEnable(struct rfl_cupti_enable *p)
{
	ENTER_STRUCT(enable);
	if (!initialized)
		return RFL_CUPTI_NOT_INITIALIZED;
	if (!p->context)
		return RFL_CUPTI_INVALID_CONTEXT;
	if (object.enabled) {
		COMPLAIN("cuptiRangeProfilerEnable twice");
		return RFL_CUPTI_INVALID_OPERATION;
	}
	memset(&object, 0, sizeof(object));
	object.enabled = true;
	p->profiler = &object;
	return RFL_CUPTI_SUCCESS;
}

/* A wrong order is answered as CUPTI does, with code 7, and noted. */
static int refuse(const char *call, const char *why)
{
	COMPLAIN("%s: %s", call, why);
	return RFL_CUPTI_INVALID_OPERATION;
}
#define REQUIRE(condition, why)                       \
	do {                                          \
		if (!(condition))                     \
			return refuse(__func__, why); \
	} while (0)
#define REQUIRE_OBJECT() REQUIRE(p->profiler == &object && object.enabled, "no such profiler")

int cuptiRangeProfilerDisable(struct rfl_cupti_disable *p)
{
	ENTER_STRUCT(disable);
	REQUIRE_OBJECT();
	if (object.configured &&
	    rfl_hash64(0, object.config, object.config_size) != object.config_hash)
		COMPLAIN("the config image changed or was freed before Disable");
	if (object.configured && object.data->magic != FAKE_DATA_MAGIC)
		COMPLAIN("the counter data changed or was freed before Disable");
	object.enabled = false;
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerGetCounterDataSize(struct rfl_cupti_data_size *p)
{
	ENTER_STRUCT(data_size);
	REQUIRE_OBJECT();
	if (p->n == 0 || p->max_nodes < p->max_ranges)
		return RFL_CUPTI_INVALID_PARAMETER;
	p->size = fake_size(__func__,
			    sizeof(struct fake_data) + p->max_ranges * sizeof(struct fake_range));
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerCounterDataImageInitialize(struct rfl_cupti_data_initialize *p)
{
	struct fake_data *data = (struct fake_data *)(void *)p->data;

	ENTER_STRUCT(data_initialize);
	REQUIRE_OBJECT();
	memset(data, 0, p->size);
	data->magic = FAKE_DATA_MAGIC;
	data->max_ranges = (p->size - sizeof(*data)) / sizeof(data->ranges[0]);
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerSetConfig(struct rfl_cupti_set_config *p)
{
	ENTER_STRUCT(set_config);
	REQUIRE_OBJECT();
	REQUIRE(!object.configured, "twice");
	REQUIRE(p->range == RFL_CUPTI_USER_RANGE && p->replay == RFL_CUPTI_USER_REPLAY,
		"range and replay mode do not go together");
	REQUIRE(p->nesting_levels == 1 && p->min_nesting_level == 1 && p->target_nesting_level == 1,
		"levels of nesting");
	if ((double)p->max_ranges > fake_script_number(&fake_cupti_script, "max_ranges", 2000))
		return RFL_CUPTI_INVALID_OPERATION;
	object.data = (struct fake_data *)(void *)p->data;
	REQUIRE(object.data->magic == FAKE_DATA_MAGIC, "the counter data is not initialised");
	object.passes = fake_config_passes(p->config, p->config_size);
	REQUIRE(object.passes > 0, "this is no config image");
	if (fake_config_refused(p->config, p->config_size))
		return RFL_CUPTI_NOT_SUPPORTED;
	object.data->passes = object.passes;
	object.config = p->config;
	object.config_size = p->config_size;
	object.config_hash = rfl_hash64(0, p->config, p->config_size);
	object.configured = true;
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerStart(struct rfl_cupti_start *p)
{
	ENTER_STRUCT(start);
	REQUIRE_OBJECT();
	REQUIRE(object.configured, "before SetConfig");
	REQUIRE(!object.running, "twice");
	REQUIRE(!object.decoded, "after DecodeData, which no document allows");
	REQUIRE(object.pass < object.passes, "all passes are done: decode");
	object.running = true;
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerPushRange(struct rfl_cupti_push_range *p)
{
	ENTER_STRUCT(push_range);
	REQUIRE_OBJECT();
	REQUIRE(object.running, "outside of Start and Stop");
	REQUIRE(!object.open, "one level of nesting was asked for");
	REQUIRE(strlen(p->name) < sizeof(object.current.name), "the name is too long for the fake");
	snprintf(object.current.name, sizeof(object.current.name), "%s", p->name);
	object.open = true;
	object.at_push = work_now();
	clock_gettime(CLOCK_MONOTONIC, &object.pushed);
	return RFL_CUPTI_SUCCESS;
}

static struct fake_range *range_of(struct fake_data *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->ranges[i].name, name) == 0)
			return &d->ranges[i];
	if (d->n == d->max_ranges)
		return NULL;
	snprintf(d->ranges[d->n].name, sizeof(d->ranges[d->n].name), "%s", name);
	return &d->ranges[d->n++];
}

int cuptiRangeProfilerPopRange(struct rfl_cupti_pop_range *p)
{
	struct fake_range *r;
	struct fake_work now = work_now();
	struct timespec popped;
	char part[FAKE_VALUE_MAX];

	ENTER_STRUCT(pop_range);
	REQUIRE_OBJECT();
	REQUIRE(object.running && object.open, "no range is open");
	object.open = false;
	if (fake_script_text(&fake_cupti_script, "empty", part) &&
	    strstr(object.current.name, part))
		return RFL_CUPTI_SUCCESS;
	r = range_of(object.data, object.current.name);
	if (!r) {
		object.data->dropped++;
		return RFL_CUPTI_SUCCESS;
	}
	if (r->passes > object.pass) {
		COMPLAIN("the range '%s' comes twice in a pass", r->name);
		object.data->dropped++;
		return RFL_CUPTI_SUCCESS;
	}
	r->passes++;
	clock_gettime(CLOCK_MONOTONIC, &popped);
	r->wall_s = (double)(popped.tv_sec - object.pushed.tv_sec) +
		    1e-9 * (double)(popped.tv_nsec - object.pushed.tv_nsec);
	r->work.copied_bytes = now.copied_bytes - object.at_push.copied_bytes;
	r->work.fma_f32 = now.fma_f32 - object.at_push.fma_f32;
	r->work.fma_patched = now.fma_patched - object.at_push.fma_patched;
	for (size_t i = 0; i < RFL_ARRAY_LEN(now.tensor_flops); i++)
		r->work.tensor_flops[i] = now.tensor_flops[i] - object.at_push.tensor_flops[i];
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerStop(struct rfl_cupti_stop *p)
{
	ENTER_STRUCT(stop);
	REQUIRE_OBJECT();
	REQUIRE(object.running, "not started");
	REQUIRE(!object.open, "a range is open");
	object.running = false;
	object.pass++;
	p->pass = object.pass;
	p->target_nesting_level = 1;
	p->all_passes_submitted = object.pass == object.passes;
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerDecodeData(struct rfl_cupti_decode *p)
{
	ENTER_STRUCT(decode);
	REQUIRE_OBJECT();
	REQUIRE(!object.running && object.pass == object.passes, "before all passes are done");
	object.decoded = true;
	p->dropped =
		object.data->dropped + (size_t)fake_script_number(&fake_cupti_script, "drop", 0);
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerGetCounterDataInfo(struct rfl_cupti_data_info *p)
{
	const struct fake_data *data = (const struct fake_data *)(const void *)p->data;

	ENTER_STRUCT(data_info);
	REQUIRE(data->magic == FAKE_DATA_MAGIC, "this is no counter data");
	p->ranges = data->n;
	return RFL_CUPTI_SUCCESS;
}

int cuptiRangeProfilerCounterDataGetRangeInfo(struct rfl_cupti_range_info *p)
{
	const struct fake_data *data = (const struct fake_data *)(const void *)p->data;

	ENTER_STRUCT(range_info);
	REQUIRE(data->magic == FAKE_DATA_MAGIC && p->range < data->n && p->delimiter, "no range");
	p->name = strdup(data->ranges[p->range].name); /* the caller's */
	return p->name ? RFL_CUPTI_SUCCESS : RFL_CUPTI_OUT_OF_MEMORY;
}
