/* descriptors.c - cuDNN's descriptors, and the plans of a graph of them. */
#include "runner/planned/cuda/descriptors.h"

#include "base/alloc.h"

/* ---- descriptors ---- */

rfl_cudnn_descriptor rfl_cudnn__make(struct rfl_making *m, int type)
{
	rfl_cudnn_descriptor *d = &m->all[m->n];

	if (m->status == 0)
		m->status = m->lib->calls.descriptor_create(type, d);
	if (m->status != 0)
		return NULL;
	m->n++;
	return *d;
}

void rfl_cudnn__set(struct rfl_making *m, rfl_cudnn_descriptor d, int name, int type, int64_t n,
		    const void *values)
{
	if (m->status == 0)
		m->status = m->lib->calls.set(d, name, type, n, values);
}

void rfl_cudnn__link(struct rfl_making *m, rfl_cudnn_descriptor d, int name,
		     rfl_cudnn_descriptor value)
{
	rfl_cudnn__set(m, d, name, RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

rfl_cudnn_descriptor rfl_cudnn__finish(struct rfl_making *m, rfl_cudnn_descriptor d)
{
	if (m->status == 0)
		m->status = m->lib->calls.finalize(d);
	return d;
}

void rfl_cudnn__release(struct rfl_making *m)
{
	while (m->n > 0)
		(void)m->lib->calls.descriptor_destroy(m->all[--m->n]);
}

/* ---- graphs ---- */

int rfl_cudnn__type(enum rfl_value type)
{
	switch (type) {
	case RFL_VALUE_BF16:
		return RFL_CUDNN_DATA_BFLOAT16;
	case RFL_VALUE_F16:
		return RFL_CUDNN_DATA_HALF;
	default:
		return RFL_CUDNN_DATA_FLOAT;
	}
}

rfl_cudnn_descriptor rfl_cudnn__tensor(struct rfl_making *m, int64_t id, int type, int64_t n,
				       int64_t c, const int64_t size[2], enum rfl_tensor_kind kind)
{
	const int64_t dims[] = { n, c, size[0], size[1] }, alignment = 16;
	const int64_t strides[] = { c * size[0] * size[1], 1, c * size[1], c };
	const bool yes = true;
	rfl_cudnn_descriptor d = rfl_cudnn__make(m, RFL_CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_DATA_TYPE, RFL_CUDNN_TYPE_DATA_TYPE, 1, &type);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_DIMENSIONS, RFL_CUDNN_TYPE_INT64, 4, dims);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_STRIDES, RFL_CUDNN_TYPE_INT64, 4, strides);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_UNIQUE_ID, RFL_CUDNN_TYPE_INT64, 1, &id);
	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, RFL_CUDNN_TYPE_INT64, 1,
		       &alignment);
	if (kind == RFL_TENSOR_VIRTUAL)
		rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_IS_VIRTUAL, RFL_CUDNN_TYPE_BOOLEAN, 1,
			       &yes);
	if (kind == RFL_TENSOR_VALUE)
		rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_TENSOR_IS_BY_VALUE, RFL_CUDNN_TYPE_BOOLEAN, 1,
			       &yes);
	return rfl_cudnn__finish(m, d);
}

rfl_cudnn_descriptor rfl_cudnn__pointwise(struct rfl_making *m, int mode, rfl_cudnn_descriptor x,
					  rfl_cudnn_descriptor b, rfl_cudnn_descriptor y)
{
	const int type = RFL_CUDNN_DATA_FLOAT;
	rfl_cudnn_descriptor what = rfl_cudnn__make(m, RFL_CUDNN_BACKEND_POINTWISE_DESCRIPTOR), d;

	rfl_cudnn__set(m, what, RFL_CUDNN_ATTR_POINTWISE_MODE, RFL_CUDNN_TYPE_POINTWISE_MODE, 1,
		       &mode);
	rfl_cudnn__set(m, what, RFL_CUDNN_ATTR_POINTWISE_MATH_PREC, RFL_CUDNN_TYPE_DATA_TYPE, 1,
		       &type);
	(void)rfl_cudnn__finish(m, what);
	d = rfl_cudnn__make(m, RFL_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	rfl_cudnn__link(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
	rfl_cudnn__link(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		rfl_cudnn__link(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	rfl_cudnn__link(m, d, RFL_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	return rfl_cudnn__finish(m, d);
}

rfl_cudnn_descriptor rfl_cudnn__graph(struct rfl_making *m, int n, const rfl_cudnn_descriptor *ops)
{
	rfl_cudnn_descriptor d = rfl_cudnn__make(m, RFL_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

	rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_OPERATIONGRAPH_OPS, RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR,
		       n, ops);
	if (m->lib->handle)
		rfl_cudnn__set(m, d, RFL_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, RFL_CUDNN_TYPE_HANDLE, 1,
			       &m->lib->handle);
	return rfl_cudnn__finish(m, d);
}

/* ---- plans ---- */

/* Whether an engine computes within the rules. */
static bool allowed(const struct rfl_cudnn *lib, rfl_cudnn_descriptor config,
		    const struct rfl_conv_rules *rules)
{
	int notes[RFL_CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	rfl_cudnn_descriptor engine = NULL;
	const bool strict = rules->type == RFL_VALUE_F32 && !rules->tf32;
	int64_t n = 0;
	bool ok;

	if (lib->calls.descriptor_create(RFL_CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != 0)
		return false;
	ok = lib->calls.get(config, RFL_CUDNN_ATTR_ENGINECFG_ENGINE,
			    RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == 0 &&
	     lib->calls.get(engine, RFL_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
			    RFL_CUDNN_TYPE_NUMERICAL_NOTE, RFL_ARRAY_LEN(notes), &n, notes) == 0;
	for (int64_t i = 0; i < n && ok; i++)
		ok = !(strict && (notes[i] == RFL_CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
				  notes[i] == RFL_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) &&
		     !(rules->deterministic &&
		       notes[i] == RFL_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) &&
		     notes[i] != RFL_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
	(void)lib->calls.descriptor_destroy(engine);
	return ok;
}

/* The plan of a configuration. cuDNN's heuristics also propose some that it then refuses. */
static bool finalize(const struct rfl_cudnn *lib, rfl_cudnn_descriptor config, int64_t most,
		     struct rfl_conv_plan *ret)
{
	struct rfl_making m = { .lib = lib };
	rfl_cudnn_descriptor d = rfl_cudnn__make(&m, RFL_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t n = 0;

	if (lib->handle)
		rfl_cudnn__set(&m, d, RFL_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, RFL_CUDNN_TYPE_HANDLE,
			       1, &lib->handle);
	else
		rfl_cudnn__link(&m, d, RFL_CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, lib->device);
	rfl_cudnn__link(&m, d, RFL_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	(void)rfl_cudnn__finish(&m, d);
	if (m.status == 0)
		m.status = lib->calls.get(d, RFL_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
					  RFL_CUDNN_TYPE_INT64, 1, &n, &ret->workspace);
	if (m.status == 0 && ret->workspace <= most) {
		ret->plan = d;
		return true;
	}
	rfl_cudnn__release(&m);
	return false;
}

/* Append the plans that a mode of the heuristics proposes. */
static int propose(const struct rfl_cudnn *lib, rfl_cudnn_descriptor of, int mode,
		   const struct rfl_conv_rules *rules, int most, struct rfl_conv_plan *plans,
		   int *n)
{
	enum { CONFIGS = 64 }; /* cuDNN 9.19 proposes up to 40 */
	struct rfl_making m = { .lib = lib };
	rfl_cudnn_descriptor d = rfl_cudnn__make(&m, RFL_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
			     configs[CONFIGS];
	int made = 0;
	int64_t found = 0;

	rfl_cudnn__link(&m, d, RFL_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
	rfl_cudnn__set(&m, d, RFL_CUDNN_ATTR_ENGINEHEUR_MODE, RFL_CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (!lib->handle)
		rfl_cudnn__link(&m, d, RFL_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, lib->device);
	(void)rfl_cudnn__finish(&m, d);
	while (made < CONFIGS && m.status == 0) {
		m.status = lib->calls.descriptor_create(RFL_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
							&configs[made]);
		made += m.status == 0;
	}
	if (m.status == 0)
		m.status =
			lib->calls.get(d, RFL_CUDNN_ATTR_ENGINEHEUR_RESULTS,
				       RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &found, configs);
	for (int i = 0; i < found && m.status == 0 && *n < most; i++)
		if (allowed(lib, configs[i], rules) &&
		    finalize(lib, configs[i], rules->workspace, &plans[*n]))
			++*n;
	while (made > 0)
		(void)lib->calls.descriptor_destroy(configs[--made]);
	rfl_cudnn__release(&m);
	return m.status;
}

enum rfl_rc rfl_cudnn__plans(struct rfl_making *m, rfl_cudnn_descriptor of, const char *what,
			     const struct rfl_conv_rules *rules, int most,
			     struct rfl_conv_plan *plans, int *n, struct rfl_err *err)
{
	const struct rfl_cudnn *const lib = m->lib;
	int status = m->status;

	*n = 0;
	if (m->status == 0)
		status = propose(lib, of, RFL_CUDNN_HEUR_MODE_A, rules, most, plans, n);
	if (m->status == 0 && *n < most) /* some layers have an exact plan only there */
		status = propose(lib, of, RFL_CUDNN_HEUR_MODE_FALLBACK, rules, most, plans, n);
	rfl_cudnn__release(m);
	if (*n > 0)
		return RFL_OK;
	if (m->status != 0)
		return rfl_cudnn_check(lib, m->status, what, err);
	return rfl_fail(err, RFL_EUNSUPPORTED, status,
			"cuDNN %s has no plan for %s%s; use --engine torch", lib->version, what,
			rules->deterministic ? " that is deterministic" : "");
}

enum rfl_rc rfl_cudnn__run(const struct rfl_cudnn *lib, const struct rfl_conv_plan *plan,
			   const char *what, int64_t n, const int64_t *ids, const void *const *data,
			   void *workspace, struct rfl_err *err)
{
	struct rfl_making m = { .lib = lib };
	rfl_cudnn_descriptor pack = rfl_cudnn__make(&m, RFL_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

	rfl_cudnn__set(&m, pack, RFL_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, RFL_CUDNN_TYPE_INT64, n,
		       ids);
	rfl_cudnn__set(&m, pack, RFL_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, RFL_CUDNN_TYPE_VOID_PTR,
		       n, data);
	rfl_cudnn__set(&m, pack, RFL_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, RFL_CUDNN_TYPE_VOID_PTR, 1,
		       &workspace);
	(void)rfl_cudnn__finish(&m, pack);
	if (m.status == 0)
		m.status = lib->calls.execute(lib->handle, plan->plan, pack);
	rfl_cudnn__release(&m);
	return rfl_cudnn_check(lib, m.status, what, err);
}
