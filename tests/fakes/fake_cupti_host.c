/*
 * fake_cupti_host.c - the host part: forwarded to a real libcupti when the script names one
 * ("real=/path/libcupti.so.13"), so that names of metrics and numbers of passes are NVIDIA's; else
 * answered here, where every metric exists. Values are always made here: the counter data is.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fakes/fake_cupti_impl.h"

#define COMPLAIN(...) fake_script_complain(&fake_cupti_script, __VA_ARGS__)
#define MAX_METRICS   256

struct rfl_cupti_host_object {
	struct rfl_cupti_host_object *real;
	bool has_image; /* of what is available: of counters of a context only */
	char chip[32];
	char *metrics[MAX_METRICS];
	size_t n;
};

static const char *const chips[] = { "TU102", "TU116", "GA100", "GA102", "GA10B", "AD102",
				     "GH100", "GB100", "GB110", "GB202", "GB20B" };

/* ---- the real one ---- */

static const struct rfl_cupti_functions *real(void)
{
	static struct rfl_cupti_functions calls;
	static char opened[FAKE_VALUE_MAX];
	char path[FAKE_VALUE_MAX];
	void *dl;

	if (!fake_script_text(&fake_cupti_script, "real", path))
		return NULL;
	if (strcmp(path, opened) == 0)
		return &calls;
	dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dl || dlsym(dl, "fake_cupti_control")) {
		COMPLAIN("real=%s: %s", path, dl ? "that is the fake itself" : dlerror());
		abort();
	}
#define TAKE(member, symbol, arguments)                           \
	{                                                         \
		void *address = dlsym(dl, #symbol);               \
		memcpy(&calls.member, &address, sizeof(address)); \
	}
	RFL_CUPTI_FUNCTIONS(TAKE)
#undef TAKE
	snprintf(opened, sizeof(opened), "%s", path);
	return &calls;
}

/* Hand a call of a host object `h` on; code is the answer. */
#define FORWARD_CODE(member) (p->host = h->real, code = real()->member(p), p->host = h, code)
#define FORWARD(member)                              \
	do {                                         \
		if (h->real)                         \
			return FORWARD_CODE(member); \
	} while (0)

/* ---- objects and names ---- */

int cuptiProfilerHostInitialize(struct rfl_cupti_host_initialize *p)
{
	struct rfl_cupti_host_object *h;
	struct rfl_cupti_host_initialize theirs;
	bool known = false;
	int code = RFL_CUPTI_SUCCESS;

	ENTER_STRUCT(host_initialize);
	h = calloc(1, sizeof(*h));
	if (!h)
		return RFL_CUPTI_OUT_OF_MEMORY;
	snprintf(h->chip, sizeof(h->chip), "%s", p->chip);
	h->has_image = p->availability != NULL;
	if (p->availability && p->availability[0] != 0xa5)
		COMPLAIN("cuptiProfilerHostInitialize: not the availability of this device");
	if (real()) {
		theirs = *p;
		theirs.availability = NULL; /* ours would crash it */
		code = real()->host_initialize(&theirs);
		h->real = theirs.host;
	} else {
		for (size_t i = 0; i < RFL_ARRAY_LEN(chips); i++)
			known = known || strcmp(chips[i], p->chip) == 0;
		code = known ? RFL_CUPTI_SUCCESS : RFL_CUPTI_INVALID_CHIP_NAME;
	}
	if (code == RFL_CUPTI_SUCCESS)
		p->host = h;
	else
		free(h);
	return code;
}

int cuptiProfilerHostDeinitialize(struct rfl_cupti_host_deinitialize *p)
{
	struct rfl_cupti_host_deinitialize theirs = *p;
	int code = fake_script_enter(&fake_cupti_script, __func__);

	theirs.host = p->host->real;
	if (p->host->real)
		(void)real()->host_deinitialize(&theirs);
	for (size_t i = 0; i < p->host->n; i++)
		free(p->host->metrics[i]);
	free(p->host); /* whatever it answers: nothing could be done about it */
	return code;
}

int cuptiProfilerHostGetSupportedChips(struct rfl_cupti_host_chips *p)
{
	ENTER_STRUCT(host_chips);
	if (real())
		return real()->host_chips(p);
	p->names = chips;
	p->n = RFL_ARRAY_LEN(chips);
	return RFL_CUPTI_SUCCESS;
}

int cuptiProfilerHostGetBaseMetrics(struct rfl_cupti_host_base_metrics *p)
{
	static const char *names[] = { "dram__bytes_read", "dram__bytes_write",
				       "gpu__time_duration" };
	struct rfl_cupti_host_object *h = p->host;
	int code;

	ENTER_STRUCT(host_base_metrics);
	FORWARD(host_base_metrics);
	p->names = names;
	p->n = p->type == RFL_CUPTI_METRIC_COUNTER ? RFL_ARRAY_LEN(names) : 0;
	return RFL_CUPTI_SUCCESS;
}

/* "KEY=NAME" (several): the metrics that begin with the name. */
static bool is_listed(const char *key, const char *metric)
{
	char name[FAKE_VALUE_MAX];
	size_t at = 0;

	while (fake_script_next(&fake_cupti_script, key, &at, name))
		if (strncmp(metric, name, strlen(name)) == 0)
			return true;
	return false;
}

/* "absent=NAME": this metric does not exist on the chip. */
static bool is_absent(const char *metric)
{
	const size_t at = strcspn(metric, ".");

	if (is_listed("absent", metric))
		return true;
	if (metric[at] == '.' && strchr(metric + at + 1, '.') && !strstr(metric + at, ".per_"))
		return true; /* two rollups */
	return !strstr(metric, "__");
}

static const char *unit_of(const char *metric)
{
	static const char *const units[][2] = {
		{ "time_duration", "ns" }, { "bytes", "byte" },       { "cycles", "cycle" },
		{ "sectors", "sector" },   { "ops_path", "math_op" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++)
		if (strstr(metric, units[i][0]))
			return units[i][1];
	return "inst";
}

int cuptiProfilerHostGetMetricProperties(struct rfl_cupti_host_metric_properties *p)
{
	struct rfl_cupti_host_object *h = p->host;
	int code;

	ENTER_STRUCT(host_metric_properties);
	if (is_absent(p->metric))
		return RFL_CUPTI_INVALID_METRIC_NAME;
	FORWARD(host_metric_properties);
	p->description = "a metric of the fake library";
	p->hw_unit = "fake";
	p->unit = unit_of(p->metric);
	p->type = RFL_CUPTI_METRIC_COUNTER;
	return RFL_CUPTI_SUCCESS;
}

/* ---- configuration ---- */

/* PCI Express, NVLink and C2C are counted for the device, all else for a context. */
static bool is_of_device(const char *metric)
{
	return strncmp(metric, "pcie__", 6) == 0 || strncmp(metric, "nvl", 3) == 0 ||
	       strncmp(metric, "ctc__", 5) == 0;
}

int cuptiProfilerHostConfigAddMetrics(struct rfl_cupti_host_add_metrics *p)
{
	struct rfl_cupti_host_object *h = p->host;
	size_t of_device = 0;
	int code;

	ENTER_STRUCT(host_add_metrics);
	if (h->real && FORWARD_CODE(host_add_metrics) != RFL_CUPTI_SUCCESS)
		return code;
	for (size_t i = 0; i < p->n; i++) {
		if (is_absent(p->names[i]) || !strchr(p->names[i], '.'))
			return RFL_CUPTI_INVALID_PARAMETER;
		of_device += is_of_device(p->names[i]);
	}
	if (of_device > 0 && (of_device < p->n || h->has_image))
		return RFL_CUPTI_NOT_SUPPORTED; /* two scopes, or one that is not in the image */
	for (size_t i = 0; i < p->n && h->n < MAX_METRICS; i++)
		h->metrics[h->n++] = strdup(p->names[i]);
	return RFL_CUPTI_SUCCESS;
}

/* SASS counters are a pass of their own, data types of the Tensor Cores one each, as a rule. */
static size_t passes_of(const struct rfl_cupti_host_object *h)
{
	size_t sass = 0, types = 0, others = 0;
	double scripted = fake_script_number(&fake_cupti_script, "passes", 0);

	for (size_t i = 0; i < h->n; i++) {
		bool is_sass = strstr(h->metrics[i], "__sass_") != NULL;
		bool is_type = strstr(h->metrics[i], "__ops_path_") != NULL;

		sass = sass || is_sass;
		types += is_type;
		others = others || !(is_sass || is_type);
	}
	return scripted > 0 ? (size_t)scripted : sass + (types > others ? types : others);
}

int cuptiProfilerHostGetConfigImageSize(struct rfl_cupti_host_config_size *p)
{
	struct rfl_cupti_host_object *h = p->host;
	int code;

	ENTER_STRUCT(host_config_size);
	for (size_t i = 0; i < h->n; i++) /* without the image it has no value in the end */
		if (h->has_image && is_listed("unavailable", h->metrics[i]))
			return RFL_CUPTI_NOT_SUPPORTED;
	FORWARD(host_config_size);
	p->size = fake_size(__func__, sizeof(struct fake_config));
	return h->n ? RFL_CUPTI_SUCCESS : RFL_CUPTI_UNKNOWN;
}

int cuptiProfilerHostGetConfigImage(struct rfl_cupti_host_config_image *p)
{
	struct rfl_cupti_host_object *h = p->host;
	struct fake_config config = { .magic = FAKE_CONFIG_MAGIC };
	int code;

	ENTER_STRUCT(host_config_image);
	FORWARD(host_config_image);
	if (p->size < sizeof(config))
		return RFL_CUPTI_INVALID_PARAMETER;
	config.passes = (uint32_t)passes_of(h);
	for (size_t i = 0; i < h->n; i++) {
		config.metrics = rfl_hash64(config.metrics, h->metrics[i], strlen(h->metrics[i]));
		config.refused = config.refused || is_listed("refuse", h->metrics[i]);
	}
	memcpy(p->image, &config, sizeof(config));
	return RFL_CUPTI_SUCCESS;
}

size_t fake_config_passes(const uint8_t *image, size_t size)
{
	struct fake_config config;
	struct rfl_cupti_host_passes theirs = { RFL_CUPTI_SIZED(host_passes), .size = size };

	if (real()) {
		theirs.image = malloc(size);
		if (!theirs.image)
			return 0;
		memcpy(theirs.image, image, size);
		if (real()->host_passes(&theirs) != RFL_CUPTI_SUCCESS)
			theirs.passes = 0;
		free(theirs.image);
		return theirs.passes;
	}
	if (size < sizeof(config))
		return 0;
	memcpy(&config, image, sizeof(config));
	return config.magic == FAKE_CONFIG_MAGIC ? config.passes : 0;
}

bool fake_config_refused(const uint8_t *image, size_t size)
{
	struct fake_config config = { .magic = 0 };

	if (size >= sizeof(config))
		memcpy(&config, image, sizeof(config));
	return config.magic == FAKE_CONFIG_MAGIC && config.refused;
}

int cuptiProfilerHostGetNumOfPasses(struct rfl_cupti_host_passes *p)
{
	ENTER_STRUCT(host_passes);
	p->passes = fake_config_passes(p->image, p->size);
	return p->passes ? RFL_CUPTI_SUCCESS : RFL_CUPTI_INVALID_PARAMETER;
}

/* ---- values ---- */

/* "KEY=METRIC:VALUE" or "KEY=METRIC@PART:VALUE" for ranges whose name has that part. */
static bool scripted_value(const char *key, const char *metric, const char *range, double *ret)
{
	char item[FAKE_VALUE_MAX];
	size_t at = 0, len = strlen(metric);

	while (fake_script_next(&fake_cupti_script, key, &at, item)) {
		char *colon = strrchr(item, ':'), *part;

		if (colon)
			*colon = '\0';
		part = strchr(item, '@');
		if (part)
			*part++ = '\0';
		if (strlen(item) != len || strcmp(item, metric) != 0 ||
		    (part && !strstr(range, part)))
			continue;
		*ret = colon ? strtod(colon + 1, NULL) : NAN;
		return true;
	}
	return false;
}

/* What the counter saw of the fake GPU's work; NaN: it counts nothing of the kind. */
static double worked(const char *metric, const struct fake_work *w)
{
	static const char *const types[] = { "_src_fp16", "_src_bf16", "_src_tf32" };

	if (strncmp(metric, "dram__bytes.sum", 15) == 0)
		return 2 * w->copied_bytes;
	if (strncmp(metric, "lts__t_sectors", 14) == 0)
		return 2 * w->copied_bytes / 32;
	if (strncmp(metric, "dram__", 6) == 0 || strncmp(metric, "fbpa__dram", 10) == 0)
		return w->copied_bytes;
	if (strstr(metric, "_op_ffma_pred_on.sum"))
		return w->fma_patched;
	if (strstr(metric, "_dst_fp16") || strstr(metric, "_op_hgmma_"))
		return 0; /* the self-test sums up in fp32, by instructions of single warps */
	for (size_t i = 0; i < RFL_ARRAY_LEN(types); i++)
		if (strstr(metric, "__ops_path_") && strstr(metric, types[i]))
			return w->tensor_flops[i];
	return 0;
}

static double value_of(const char *metric, const struct fake_range *r)
{
	bool worked_here = r->work.copied_bytes + r->work.fma_f32 + r->work.tensor_flops[0] +
				   r->work.tensor_flops[1] + r->work.tensor_flops[2] >
			   0;
	double value;

	if (scripted_value("nan", metric, r->name, &value) || is_listed("unavailable", metric))
		return NAN;
	if (strstr(metric, "time_duration") && !scripted_value("val", metric, r->name, &value))
		return 1e9 * r->wall_s;
	if (worked_here)
		return fake_script_number(&fake_cupti_script,
					  strncmp(metric, "dram__", 6) == 0 ? "scale_dram"
									    : "scale",
					  fake_script_number(&fake_cupti_script, "scale", 1)) *
		       worked(metric, &r->work);
	if (strstr(r->name, "idle"))
		return fake_script_number(&fake_cupti_script, "idle", 0);
	return scripted_value("val", metric, r->name, &value)
		       ? value
		       : fake_script_number(&fake_cupti_script, "value", 1e6);
}

int cuptiProfilerHostEvaluateToGpuValues(struct rfl_cupti_host_values *p)
{
	const struct fake_data *data = (const struct fake_data *)(const void *)p->data;

	ENTER_STRUCT(host_values);
	if (data->magic != FAKE_DATA_MAGIC || p->range >= data->n)
		return RFL_CUPTI_INVALID_PARAMETER;
	for (size_t i = 0; i < p->n; i++) /* a range that a pass lacks has no value */
		p->values[i] = data->ranges[p->range].passes == data->passes
				       ? value_of(p->names[i], &data->ranges[p->range])
				       : NAN;
	return RFL_CUPTI_SUCCESS;
}
