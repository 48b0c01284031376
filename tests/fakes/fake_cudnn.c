/*
 * fake_cudnn.c - libcudnn.so.9 for tests: descriptors and their attributes. It rejects what cuDNN
 * rejects, and also what cuDNN lets pass though its documentation does not allow it. Steered by
 * FAKE_CUDNN or fake_cudnn_control(); see README.md.
 */
#include "tests/fakes/fake_cudnn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(member, symbol, result, arguments) RFL_EXPORT result symbol arguments;
RFL_CUDNN_FUNCTIONS(DECLARE)
#undef DECLARE
RFL_EXPORT void fake_cudnn_control(const char *script);
RFL_EXPORT const char *fake_cudnn_log(void);
RFL_EXPORT const char *fake_cudnn_complaints(void);
RFL_EXPORT int fake_cudnn_open(void);

struct fake_script fake_cudnn_script = { .variable = "FAKE_CUDNN" };
static struct fake_descriptor *descriptors; /* also destroyed ones that others refer to */
static int handles, undestroyed;
static char last_error[FAKE_VALUE_MAX];

#define ENTER()                                                                \
	do {                                                                   \
		int entered = fake_script_enter(&fake_cudnn_script, __func__); \
		if (entered)                                                   \
			return entered;                                        \
	} while (0)

int fake_refuse(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, args);
	va_end(args);
	fake_script_complain(&fake_cudnn_script, "%d: %s", status, last_error);
	return status;
}

/* ---- attributes ---- */

enum { ANY_OPERATION = -1 };

struct fake_kind {
	int type;
	const char *name;
	int (*finish)(struct fake_descriptor *d);
	struct attribute {
		int name, type;
		int64_t least, most; /* elements; least 0: may be missing; most 0: is only read */
		int refers;          /* to descriptors of this type */
	} attributes[16];
};

static int finish_heuristics(struct fake_descriptor *d);
static int finish_plan(struct fake_descriptor *d);
static int finish_pack(struct fake_descriptor *d);
static int finish_device(struct fake_descriptor *d);
static int finish_result(struct fake_descriptor *d);

#define A(name, type, least, most)                                           \
	{                                                                    \
		RFL_CUDNN_ATTR_##name, RFL_CUDNN_TYPE_##type, least, most, 0 \
	}
#define R(name, least, most, to)                                                          \
	{                                                                                 \
		RFL_CUDNN_ATTR_##name, RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, least, most, to \
	}
#define REFERS(name, to) R(name, 1, 1, RFL_CUDNN_BACKEND_##to##_DESCRIPTOR)
#define CONVOLUTION_OPERATION(name, x, w, y)                                           \
	{                                                                              \
		A(OPERATION_CONVOLUTION_##name##_ALPHA, FLOAT, 1, 1),                  \
			A(OPERATION_CONVOLUTION_##name##_BETA, FLOAT, 1, 1),           \
			REFERS(OPERATION_CONVOLUTION_##name##_CONV_DESC, CONVOLUTION), \
			REFERS(OPERATION_CONVOLUTION_##name##_##x, TENSOR),            \
			REFERS(OPERATION_CONVOLUTION_##name##_##w, TENSOR),            \
			REFERS(OPERATION_CONVOLUTION_##name##_##y, TENSOR),            \
	}

/* clang-format off */
static const struct fake_kind kinds[] = {
	{ RFL_CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor", fake_finish_tensor, {
		A(TENSOR_BYTE_ALIGNMENT, INT64, 1, 1), A(TENSOR_DATA_TYPE, DATA_TYPE, 1, 1),
		A(TENSOR_DIMENSIONS, INT64, 1, 8), A(TENSOR_STRIDES, INT64, 1, 8),
		A(TENSOR_UNIQUE_ID, INT64, 1, 1), A(TENSOR_IS_VIRTUAL, BOOLEAN, 0, 1),
		A(TENSOR_IS_BY_VALUE, BOOLEAN, 0, 1) } },
	{ RFL_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution", fake_finish_convolution, {
		A(CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, 1),
		A(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, 1),
		A(CONVOLUTION_DILATIONS, INT64, 1, 8), A(CONVOLUTION_FILTER_STRIDES, INT64, 1, 8),
		A(CONVOLUTION_POST_PADDINGS, INT64, 1, 8), A(CONVOLUTION_PRE_PADDINGS, INT64, 1, 8),
		A(CONVOLUTION_SPATIAL_DIMS, INT64, 1, 1) } },
	{ RFL_CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise", fake_finish_pointwise, {
		A(POINTWISE_MODE, POINTWISE_MODE, 1, 1), A(POINTWISE_MATH_PREC, DATA_TYPE, 1, 1) } },
	{ RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "forward convolution",
	  fake_finish_operation, CONVOLUTION_OPERATION(FORWARD, X, W, Y) },
	{ RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "backward data",
	  fake_finish_operation, CONVOLUTION_OPERATION(BWD_DATA, DX, W, DY) },
	{ RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, "backward filter",
	  fake_finish_operation, CONVOLUTION_OPERATION(BWD_FILTER, X, DW, DY) },
	{ RFL_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation",
	  fake_finish_pointwise_operation, {
		REFERS(OPERATION_POINTWISE_PW_DESCRIPTOR, POINTWISE),
		REFERS(OPERATION_POINTWISE_XDESC, TENSOR),
		R(OPERATION_POINTWISE_BDESC, 0, 1, RFL_CUDNN_BACKEND_TENSOR_DESCRIPTOR),
		REFERS(OPERATION_POINTWISE_YDESC, TENSOR) } },
	{ RFL_CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, "norm", fake_finish_norm, {
		A(OPERATION_NORM_FWD_MODE, NORM_MODE, 1, 1),
		A(OPERATION_NORM_FWD_PHASE, NORM_FWD_PHASE, 1, 1),
		REFERS(OPERATION_NORM_FWD_XDESC, TENSOR), REFERS(OPERATION_NORM_FWD_MEAN_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_INV_VARIANCE_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_SCALE_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_BIAS_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_EPSILON_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, TENSOR),
		REFERS(OPERATION_NORM_FWD_YDESC, TENSOR) } },
	{ RFL_CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, "backward norm", fake_finish_norm, {
		A(OPERATION_NORM_BWD_MODE, NORM_MODE, 1, 1),
		REFERS(OPERATION_NORM_BWD_XDESC, TENSOR), REFERS(OPERATION_NORM_BWD_MEAN_DESC, TENSOR),
		REFERS(OPERATION_NORM_BWD_INV_VARIANCE_DESC, TENSOR),
		REFERS(OPERATION_NORM_BWD_DYDESC, TENSOR), REFERS(OPERATION_NORM_BWD_SCALE_DESC, TENSOR),
		REFERS(OPERATION_NORM_BWD_DSCALE_DESC, TENSOR),
		REFERS(OPERATION_NORM_BWD_DBIAS_DESC, TENSOR),
		REFERS(OPERATION_NORM_BWD_DXDESC, TENSOR) } },
	{ RFL_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph", fake_finish_graph, {
		A(OPERATIONGRAPH_HANDLE, HANDLE, 0, 1),
		R(OPERATIONGRAPH_OPS, 1, 16, ANY_OPERATION) } },
	{ RFL_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics", finish_heuristics, {
		A(ENGINEHEUR_MODE, HEUR_MODE, 1, 1), REFERS(ENGINEHEUR_OPERATION_GRAPH, OPERATIONGRAPH),
		R(ENGINEHEUR_DEVICEPROP, 0, 1, RFL_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR),
		R(ENGINEHEUR_RESULTS, 0, 0, RFL_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) } },
	{ RFL_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration", finish_result, {
		R(ENGINECFG_ENGINE, 0, 0, RFL_CUDNN_BACKEND_ENGINE_DESCRIPTOR) } },
	{ RFL_CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine", finish_result, {
		A(ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, 0, 0) } },
	{ RFL_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan", finish_plan, {
		A(EXECUTION_PLAN_HANDLE, HANDLE, 0, 1),
		REFERS(EXECUTION_PLAN_ENGINE_CONFIG, ENGINECFG),
		R(EXECUTION_PLAN_DEVICEPROP, 0, 1, RFL_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR),
		A(EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 0, 0) } },
	{ RFL_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack", finish_pack, {
		A(VARIANT_PACK_UNIQUE_IDS, INT64, 1, 32), A(VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, 32),
		A(VARIANT_PACK_WORKSPACE, VOID_PTR, 0, 1) } },
	{ RFL_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device", finish_device, {
		A(DEVICEPROP_JSON_REPRESENTATION, CHAR, 1, 1 << 20) } },
};
/* clang-format on */

_Static_assert(RFL_ARRAY_LEN(((struct fake_descriptor *)0)->values) ==
		       RFL_ARRAY_LEN(kinds[0].attributes),
	       "a value for each attribute");

static const struct attribute *attribute_of(const struct fake_kind *kind, int name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(kind->attributes); i++)
		if (kind->attributes[i].name == name &&
		    (kind->attributes[i].type || name == RFL_CUDNN_ATTR_OPERATIONGRAPH_HANDLE ||
		     name == RFL_CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
			return &kind->attributes[i];
	return NULL;
}

static size_t size_of(int type)
{
	switch (type) {
	case RFL_CUDNN_TYPE_BOOLEAN:
		return sizeof(bool);
	case RFL_CUDNN_TYPE_CHAR:
		return 1;
	case RFL_CUDNN_TYPE_HANDLE:
	case RFL_CUDNN_TYPE_VOID_PTR:
	case RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR:
	case RFL_CUDNN_TYPE_INT64:
		return 8;
	default:
		return 4;
	}
}

const void *fake_values(const struct fake_descriptor *d, int name, int64_t *n)
{
	const struct fake_value *v = &d->values[attribute_of(d->kind, name) - d->kind->attributes];

	if (n)
		*n = v->n;
	return v->data;
}

int64_t fake_int(const struct fake_descriptor *d, int name)
{
	return *(const int64_t *)fake_values(d, name, NULL);
}

int fake_enum(const struct fake_descriptor *d, int name)
{
	return *(const int *)fake_values(d, name, NULL);
}

struct fake_descriptor *fake_ref(const struct fake_descriptor *d, int name)
{
	struct fake_descriptor *const *refs = fake_values(d, name, NULL);

	return refs ? refs[0] : NULL;
}

/* ---- descriptors ---- */

static void release(struct fake_descriptor *d);

static void forget(struct fake_descriptor *d, size_t i)
{
	struct fake_descriptor **refs = d->values[i].data;

	for (int64_t k = 0; d->kind->attributes[i].refers && k < d->values[i].n; k++)
		release(refs[k]);
	free(d->values[i].data);
	d->values[i] = (struct fake_value){ .n = 0 };
}

static void release(struct fake_descriptor *d)
{
	struct fake_descriptor **at = &descriptors;

	if (--d->references > 0)
		return;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	for (size_t i = 0; i < RFL_ARRAY_LEN(d->values); i++)
		forget(d, i);
	free(d);
}

/* A descriptor that exists, or NULL after a complaint. */
static struct fake_descriptor *known(rfl_cudnn_descriptor descriptor, const char *call)
{
	struct fake_descriptor *d = descriptors;

	while (d && d != descriptor)
		d = d->next;
	if (d && !d->destroyed)
		return d;
	(void)fake_refuse(FAKE_BAD_PARAM, "%s: %s", call,
			  d ? "the descriptor was destroyed" : "no such descriptor");
	return NULL;
}

int cudnnBackendCreateDescriptor(int type, rfl_cudnn_descriptor *descriptor)
{
	struct fake_descriptor *d;
	size_t i = 0;

	ENTER();
	while (i < RFL_ARRAY_LEN(kinds) && kinds[i].type != type)
		i++;
	if (i == RFL_ARRAY_LEN(kinds))
		return fake_refuse(FAKE_ALLOCATION, "no descriptors of type %d", type);
	d = calloc(1, sizeof(*d));
	if (!d)
		return FAKE_ALLOCATION;
	d->kind = &kinds[i];
	d->type = type;
	d->references = 1;
	d->next = descriptors;
	descriptors = d;
	undestroyed++;
	*descriptor = d;
	return 0;
}

int cudnnBackendDestroyDescriptor(rfl_cudnn_descriptor descriptor)
{
	int code = fake_script_enter(&fake_cudnn_script, __func__);
	struct fake_descriptor *d;

	if (!descriptor)
		return fake_refuse(FAKE_NULL_POINTER, "%s: NULL", __func__);
	d = known(descriptor, __func__);
	if (!d)
		return FAKE_BAD_PARAM;
	d->destroyed = true;
	undestroyed--;
	release(d);
	return code;
}

/* A reference that an attribute may hold. */
static int check_reference(const struct fake_descriptor *from, const struct attribute *a,
			   rfl_cudnn_descriptor descriptor)
{
	const struct fake_descriptor *d = known(descriptor, "cudnnBackendSetAttribute");
	bool fits;

	if (!d)
		return FAKE_BAD_PARAM;
	fits = a->refers == ANY_OPERATION
		       ? d->kind->finish == fake_finish_operation ||
				 d->kind->finish == fake_finish_norm ||
				 d->kind->finish == fake_finish_pointwise_operation
		       : d->type == a->refers;
	if (!fits)
		return fake_refuse(FAKE_DESCRIPTOR_TYPE, "attribute %d of the %s is set to a %s",
				   a->name, from->kind->name, d->kind->name);
	if (!d->finalized)
		return fake_refuse(FAKE_NOT_FINALIZED,
				   "attribute %d of the %s: the %s is not finalized", a->name,
				   from->kind->name, d->kind->name);
	return 0;
}

int cudnnBackendSetAttribute(rfl_cudnn_descriptor descriptor, int name, int type, int64_t n,
			     const void *values)
{
	struct fake_descriptor *d, *const *refs = values;
	const struct attribute *a;
	size_t i, size;
	int code = 0;

	ENTER();
	d = known(descriptor, __func__);
	if (!d)
		return FAKE_BAD_PARAM;
	a = attribute_of(d->kind, name);
	if (d->finalized)
		return fake_refuse(FAKE_BAD_PARAM, "a %s changes after it was finalized",
				   d->kind->name);
	if (!a || a->most == 0)
		return fake_refuse(FAKE_BAD_PARAM, "a %s has no attribute %d to be set",
				   d->kind->name, name);
	if (type != a->type)
		return fake_refuse(FAKE_ATTRIBUTE_TYPE, "attribute %d of a %s has type %d, not %d",
				   name, d->kind->name, a->type, type);
	if (n < 1 || n > a->most || !values)
		return fake_refuse(FAKE_BAD_PARAM, "attribute %d of a %s: %lld values", name,
				   d->kind->name, values ? (long long)n : 0);
	for (int64_t k = 0; a->refers && k < n && code == 0; k++)
		code = check_reference(d, a, refs[k]);
	if (code)
		return code;
	i = (size_t)(a - d->kind->attributes);
	size = size_of(type) * (size_t)n;
	for (int64_t k = 0; a->refers && k < n; k++)
		refs[k]->references++;
	forget(d, i);
	d->values[i] = (struct fake_value){ .n = n, .data = malloc(size) };
	if (!d->values[i].data)
		abort();
	memcpy(d->values[i].data, values, size);
	return 0;
}

int cudnnBackendFinalize(rfl_cudnn_descriptor descriptor)
{
	struct fake_descriptor *d;
	int code;

	ENTER();
	d = known(descriptor, __func__);
	if (!d)
		return FAKE_BAD_PARAM;
	if (d->finalized)
		return fake_refuse(FAKE_BAD_PARAM, "a %s is finalized twice", d->kind->name);
	for (size_t i = 0; i < RFL_ARRAY_LEN(d->values); i++) {
		const struct attribute *a = &d->kind->attributes[i];
		struct fake_descriptor *const *refs = d->values[i].data;

		if (d->values[i].n < a->least)
			return fake_refuse(FAKE_BAD_PARAM, "attribute %d of a %s is missing",
					   a->name, d->kind->name);
		for (int64_t k = 0; a->refers && k < d->values[i].n; k++)
			if (refs[k]->destroyed)
				return fake_refuse(FAKE_BAD_PARAM,
						   "a %s was destroyed before the %s was finalized",
						   refs[k]->kind->name, d->kind->name);
	}
	code = d->kind->finish(d);
	d->finalized = code == 0;
	return code;
}

/* ---- devices, heuristics and plans ---- */

static int finish_device(struct fake_descriptor *d)
{
	int64_t n;
	const char *json = fake_values(d, RFL_CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, &n);
	static const char version[] = "\"deviceVer\":";
	const char *at = json[n - 1] == '\0' ? strstr(json, version) : NULL;

	if (!at)
		return fake_refuse(FAKE_BAD_PARAM, "the JSON of a device has no %s, or no end",
				   version);
	d->conv.capability = (int)(strtod(at + strlen(version), NULL) / 10);
	return 0;
}

static int finish_heuristics(struct fake_descriptor *d)
{
	const struct fake_descriptor *device = fake_ref(d, RFL_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
	const int mode = fake_enum(d, RFL_CUDNN_ATTR_ENGINEHEUR_MODE);

	d->conv = fake_ref(d, RFL_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->conv;
	if (device)
		d->conv.capability = device->conv.capability;
	if (d->conv.capability == 0)
		return fake_refuse(FAKE_BAD_PARAM,
				   "heuristics with neither a handle nor a described device");
	if (mode != RFL_CUDNN_HEUR_MODE_A && mode != RFL_CUDNN_HEUR_MODE_FALLBACK)
		return fake_refuse(FAKE_BAD_PARAM, "heuristics of mode %d", mode);
	return 0;
}

static int finish_result(struct fake_descriptor *d)
{
	return fake_refuse(FAKE_BAD_PARAM, "a %s is finalized by cuDNN", d->kind->name);
}

static int finish_plan(struct fake_descriptor *d)
{
	const struct fake_descriptor *config =
		fake_ref(d, RFL_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	const int code = fake_script_enter(&fake_cudnn_script, "plan");

	d->conv = config->conv;
	d->engine = config->engine;
	return code;
}

static int finish_pack(struct fake_descriptor *d)
{
	int64_t nids, npointers;
	const int64_t *ids = fake_values(d, RFL_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &nids);
	void *const *pointers =
		fake_values(d, RFL_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &npointers);

	if (nids != npointers)
		return fake_refuse(FAKE_BAD_PARAM, "%lld ids and %lld pointers", (long long)nids,
				   (long long)npointers);
	for (int64_t i = 0; i < nids; i++) {
		if (!pointers[i])
			return fake_refuse(FAKE_NULL_POINTER, "tensor %lld is NULL",
					   (long long)ids[i]);
		for (int64_t k = 0; k < i; k++)
			if (ids[k] == ids[i])
				return fake_refuse(FAKE_DUPLICATED, "two pointers for tensor %lld",
						   (long long)ids[i]);
	}
	return 0;
}

/* ---- results ---- */

/* Make a descriptor of the caller the result of another. */
static int fill(const struct fake_descriptor *from, const struct attribute *a,
		rfl_cudnn_descriptor descriptor, enum fake_cudnn_engine engine)
{
	struct fake_descriptor *d = known(descriptor, "cudnnBackendGetAttribute");

	if (!d)
		return FAKE_BAD_PARAM;
	if (d->type != a->refers)
		return fake_refuse(FAKE_BAD_PARAM, "attribute %d of a %s does not fit into a %s",
				   a->name, from->kind->name, d->kind->name);
	if (d->finalized)
		return fake_refuse(FAKE_BAD_PARAM, "a %s holds a result already", d->kind->name);
	d->conv = from->conv;
	d->engine = engine;
	d->finalized = true;
	return 0;
}

static int notes_of(const struct fake_descriptor *engine, int notes[4])
{
	const bool wide = engine->conv.type[FAKE_X] == RFL_CUDNN_DATA_FLOAT;
	int n = 0;

	if (engine->conv.kind >= FAKE_NORM_FORWARD)
		return 0;
	if (engine->engine == FAKE_REDUCED || (!wide && engine->engine != FAKE_FALLBACK))
		notes[n++] = RFL_CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
	if (engine->engine == FAKE_REDUCED)
		notes[n++] = wide ? RFL_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
				  : RFL_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
	if (engine->engine == FAKE_NONDETERMINISTIC)
		notes[n++] = RFL_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
	return n;
}

int cudnnBackendGetAttribute(rfl_cudnn_descriptor descriptor, int name, int type, int64_t wanted,
			     int64_t *n, void *values)
{
	const rfl_cudnn_descriptor *to = values;
	enum fake_cudnn_engine engines[FAKE_ENGINE_COUNT];
	const struct attribute *a;
	struct fake_descriptor *d;
	int64_t available = 1, size;
	int notes[4], code = 0;

	ENTER();
	d = known(descriptor, __func__);
	if (!d)
		return FAKE_BAD_PARAM;
	a = attribute_of(d->kind, name);
	if (!d->finalized)
		return fake_refuse(FAKE_NOT_INITIALIZED, "a %s is read before it was finalized",
				   d->kind->name);
	if (!a || a->most)
		return fake_refuse(FAKE_BAD_PARAM, "a %s has no attribute %d to be read",
				   d->kind->name, name);
	if (type != a->type)
		return fake_refuse(FAKE_ATTRIBUTE_TYPE, "attribute %d of a %s has type %d, not %d",
				   name, d->kind->name, a->type, type);
	if (wanted < 0 || !n || (wanted > 0 && !values))
		return fake_refuse(FAKE_BAD_PARAM, "attribute %d of a %s: no place for it", name,
				   d->kind->name);
	if (name == RFL_CUDNN_ATTR_ENGINEHEUR_RESULTS)
		available = fake_engines(&d->conv, fake_enum(d, RFL_CUDNN_ATTR_ENGINEHEUR_MODE),
					 engines);
	if (name == RFL_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
		available = notes_of(d, notes);
	*n = wanted > 0 && wanted < available ? wanted : available;
	if (wanted == 0)
		return 0;
	if (name == RFL_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
		memcpy(values, notes, (size_t)*n * sizeof(notes[0]));
	if (name == RFL_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
		size = fake_workspace(&d->conv, d->engine);
		memcpy(values, &size, sizeof(size));
	}
	for (int64_t i = 0; a->refers && i < *n && code == 0; i++)
		code = fill(d, a, to[i],
			    name == RFL_CUDNN_ATTR_ENGINEHEUR_RESULTS ? engines[i] : d->engine);
	return code;
}

int cudnnBackendExecute(struct rfl_cudnn_handle *handle, rfl_cudnn_descriptor plan,
			rfl_cudnn_descriptor pack)
{
	const struct fake_descriptor *p, *v;

	ENTER();
	p = known(plan, __func__);
	v = known(pack, __func__);
	if (!p || !v || !handle)
		return FAKE_BAD_PARAM;
	if (p->type != RFL_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
	    v->type != RFL_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		return fake_refuse(FAKE_DESCRIPTOR_TYPE, "a %s is executed with a %s",
				   p->kind->name, v->kind->name);
	if (!p->finalized || !v->finalized)
		return fake_refuse(FAKE_NOT_FINALIZED,
				   "a plan or its variant pack is not finalized");
	return fake_execute(handle, p, v);
}

/* ---- the library ---- */

size_t cudnnGetVersion(void)
{
	return (size_t)fake_script_number(&fake_cudnn_script, "version", 91900);
}

const char *cudnnGetErrorString(int status)
{
	static const struct {
		int status;
		const char *name;
	} names[] = {
		{ 0, "CUDNN_STATUS_SUCCESS" },
		{ FAKE_NOT_INITIALIZED, "CUDNN_STATUS_NOT_INITIALIZED" },
		{ FAKE_BAD_PARAM, "CUDNN_STATUS_BAD_PARAM" },
		{ FAKE_NULL_POINTER, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER" },
		{ FAKE_MISALIGNED, "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER" },
		{ FAKE_NOT_FINALIZED, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED" },
		{ FAKE_SHAPE_MISMATCH, "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH" },
		{ FAKE_DUPLICATED, "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES" },
		{ FAKE_ATTRIBUTE_TYPE, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE" },
		{ FAKE_DESCRIPTOR_TYPE, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE" },
		{ FAKE_NOT_SUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED" },
		{ FAKE_PATTERN, "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN" },
		{ FAKE_DATA_TYPE, "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE" },
		{ FAKE_LAYOUT, "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT" },
		{ FAKE_ALLOCATION, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED" },
		{ 5000, "CUDNN_STATUS_EXECUTION_FAILED" },
		{ FAKE_DRIVER, "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++)
		if (names[i].status == status)
			return names[i].name;
	return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
	if (size > 0)
		snprintf(message, size, "%s", last_error);
	last_error[0] = '\0';
}

int cudnnCreate(struct rfl_cudnn_handle **handle)
{
	void *address = fake_script_driver("cuDeviceGetAttribute");
	void *context = fake_script_driver("fake_cuda_current");
	int (*get)(int *value, int attribute, int device);
	bool (*current)(void);
	int major = 0, minor = 0;

	ENTER();
	if (!address || !context)
		return FAKE_NOT_INITIALIZED; /* no driver */
	memcpy(&get, &address, sizeof(get));
	memcpy(&current, &context, sizeof(current));
	if (!current())
		return fake_refuse(FAKE_NOT_INITIALIZED, "%s: no context is current", __func__);
	if (get(&major, RFL_CUDA_ATTRIBUTE_CC_MAJOR, 0) ||
	    get(&minor, RFL_CUDA_ATTRIBUTE_CC_MINOR, 0))
		return FAKE_NOT_INITIALIZED;
	*handle = calloc(1, sizeof(**handle));
	if (!*handle)
		return FAKE_ALLOCATION;
	(*handle)->capability = 10 * major + minor;
	handles++;
	return 0;
}

int cudnnDestroy(struct rfl_cudnn_handle *handle)
{
	int code = fake_script_enter(&fake_cudnn_script, __func__);

	free(handle);
	handles--;
	return code;
}

int cudnnSetStream(struct rfl_cudnn_handle *handle, struct rfl_cuda_stream *stream)
{
	ENTER();
	if (!handle)
		return FAKE_NULL_POINTER;
	handle->stream = stream;
	return 0;
}

void fake_cudnn_control(const char *text)
{
	fake_script_set(&fake_cudnn_script, text);
	fake_executions_reset();
	last_error[0] = '\0';
}

const char *fake_cudnn_log(void)
{
	return fake_cudnn_script.log;
}

const char *fake_cudnn_complaints(void)
{
	return fake_cudnn_script.complaints;
}

int fake_cudnn_open(void)
{
	return handles + undestroyed;
}

__attribute__((destructor)) static void at_exit(void)
{
	if (handles || undestroyed)
		fprintf(stderr, "FAKE_CUDNN: LEAK: %d handles, %d descriptors\n", handles,
			undestroyed);
}
