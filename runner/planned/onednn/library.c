/* library.c - oneDNN itself, the parameters and the state of the optimizer. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "complexity/op.h"
#include "runner/planned/onednn/onednn.h"

const char *rfl_backend_version(void)
{
	static char text[32];
	const dnnl_version_t *v = dnnl_version();

	(void)snprintf(text, sizeof(text), "%d.%d.%d", v->major, v->minor, v->patch);
	return text;
}

enum rfl_rc rfl_backend_probe(enum rfl_device device, struct rfl_err *err)
{
	const dnnl_version_t *v = dnnl_version();

	if (device != RFL_DEVICE_CPU)
		return rfl_fail(
			err, RFL_EUNAVAILABLE, 0,
			"oneDNN runs on the CPU only: use --backend cpu, or --engine torch");
	if (v->major != DNNL_VERSION_MAJOR)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"built for oneDNN %d, but %d.%d is installed: install libdnnl%d",
				DNNL_VERSION_MAJOR, v->major, v->minor, DNNL_VERSION_MAJOR);
	if (v->cpu_runtime != DNNL_RUNTIME_OMP)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"this oneDNN was not built with OpenMP; install Debian's libdnnl2");
	return RFL_OK;
}

enum rfl_rc rfl_dnnl__check(dnnl_status_t status, const struct rfl_net *net, int node,
			    const char *what, struct rfl_err *err)
{
	char name[512] = "loss";

	if (node >= 0 && node < net->nnodes)
		(void)rfl_op_layer_name(&net->nodes[node], name, sizeof(name));
	if (status == dnnl_success)
		return RFL_OK;
	if (status == dnnl_out_of_memory)
		return rfl_fail(err, RFL_EDEVMEM, (int)status, "layer '%s': out of memory", name);
	if (status == dnnl_unimplemented)
		return rfl_fail(err, RFL_EUNSUPPORTED, (int)status,
				"layer '%s': oneDNN %s has no %s for it; use --engine torch", name,
				rfl_backend_version(), what);
	return rfl_fail(err, RFL_EFAILED, (int)status, "layer '%s': oneDNN: %s failed (%s)", name,
			what,
			status == dnnl_invalid_arguments ? "invalid arguments" : "runtime error");
}

/* ---- memory ---- */

#define HUGE_PAGE ((size_t)2 << 20)

void *rfl_dnnl__map(size_t bytes)
{
	const size_t whole = ((bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1)) + HUGE_PAGE;
	char *memory =
		mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start;

	if (memory == MAP_FAILED)
		return NULL;
	start = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
	if (start > memory)
		(void)munmap(memory, (size_t)(start - memory));
	if (start < memory + HUGE_PAGE)
		(void)munmap(start + whole - HUGE_PAGE, (size_t)(memory + HUGE_PAGE - start));
#ifdef MADV_HUGEPAGE
	(void)madvise(start, whole - HUGE_PAGE, MADV_HUGEPAGE);
#endif
	return start;
}

void rfl_dnnl__unmap(void *memory, size_t bytes)
{
	if (memory)
		(void)munmap(memory, (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
}

static enum rfl_rc map_part(const struct rfl_backend *b, size_t floats, float **ret,
			    struct rfl_err *err)
{
	*ret = rfl_dnnl__map(floats * sizeof(float) + 1);
	if (*ret)
		return RFL_OK;
	return rfl_fail(err, RFL_EDEVMEM, 0, "%s: out of memory: %zu MiB for the parameters",
			b->net->model, floats * sizeof(float) >> 20);
}

static void unmap_part(size_t floats, float *memory)
{
	rfl_dnnl__unmap(memory, floats * sizeof(float) + 1);
}

/* ---- layouts ---- */

dnnl_data_type_t rfl_dnnl__type(const struct rfl_backend *b)
{
	return b->type == RFL_HOST_BF16 ? dnnl_bf16 : dnnl_f32;
}

dnnl_memory_desc_t rfl_dnnl__plain(int n, const int64_t *dims, dnnl_data_type_t type)
{
	static const dnnl_format_tag_t tags[] = { dnnl_a,   dnnl_a,    dnnl_ab,
						  dnnl_abc, dnnl_abcd, dnnl_abcde };
	dnnl_memory_desc_t md;

	(void)dnnl_memory_desc_init_by_tag(&md, n, dims, type, tags[n]);
	return md;
}

dnnl_memory_desc_t rfl_dnnl__any(const dnnl_memory_desc_t *like, dnnl_data_type_t type)
{
	dnnl_memory_desc_t md;

	(void)dnnl_memory_desc_init_by_tag(&md, like->ndims, like->dims, type, dnnl_format_tag_any);
	return md;
}

/* The plain layout of a parameter as the primitives see it: a grouped convolution has a dimension
 * of groups, a linear layer after a flattened image that image's dimensions. The order is PyTorch's
 * in each case. */
static dnnl_memory_desc_t plain_of(const struct rfl_net *net, const struct rfl_param *p)
{
	const struct rfl_node *node = &net->nodes[p->node];
	int64_t dims[RFL_NET_MAX_DIMS + 1];
	int n = p->ndim;

	memcpy(dims, p->dim, sizeof(p->dim));
	if (p->kind == RFL_PARAM_CONV_WEIGHT && node->attr.conv2d.groups > 1) {
		memmove(dims + 1, dims, 4 * sizeof(*dims));
		dims[0] = node->attr.conv2d.groups;
		dims[1] /= dims[0];
		n = 5;
	} else if (p->kind == RFL_PARAM_LINEAR_WEIGHT) {
		const struct rfl_shape *in = rfl_plan_image(net, node->input[0]);

		memcpy(dims + 1, in->dim, (size_t)in->ndim * sizeof(*dims));
		n = 1 + in->ndim;
	}
	return rfl_dnnl__plain(n, dims, dnnl_f32);
}

/* Compute the offsets of the parameters. */
static size_t lay_out(struct rfl_backend *b, const dnnl_memory_desc_t *layouts,
		      struct weight *weights)
{
	size_t at = 0;

	for (int i = 0; i < b->net->nparams; i++) {
		weights[i] = b->weights[i];
		weights[i].layout = layouts[i];
		weights[i].floats = dnnl_memory_desc_get_size(&layouts[i]) / sizeof(float);
		weights[i].at = at;
		at += (weights[i].floats + 15) & ~(size_t)15;
	}
	return at;
}

enum rfl_rc rfl_dnnl__convert(const struct rfl_backend *b, const dnnl_memory_desc_t *from,
			      const void *data, const dnnl_memory_desc_t *to, void *out,
			      struct rfl_err *err)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t p = NULL;
	dnnl_memory_t memory[2] = { NULL, NULL };
	dnnl_status_t st;

	if (dnnl_memory_desc_equal(from, to)) {
		memcpy(out, data, dnnl_memory_desc_get_size(to));
		return RFL_OK;
	}
	st = dnnl_reorder_primitive_desc_create(&pd, from, b->engine, to, b->engine, NULL);
	if (st == dnnl_success)
		st = dnnl_primitive_create(&p, pd);
	if (st == dnnl_success)
		st = dnnl_memory_create(&memory[0], from, b->engine, (void *)(uintptr_t)data);
	if (st == dnnl_success)
		st = dnnl_memory_create(&memory[1], to, b->engine, out);
	if (st == dnnl_success) {
		const dnnl_exec_arg_t arguments[] = { { DNNL_ARG_FROM, memory[0] },
						      { DNNL_ARG_TO, memory[1] } };

		st = dnnl_primitive_execute(p, b->stream, 2, arguments);
	}
	if (st == dnnl_success)
		st = dnnl_stream_wait(b->stream);
	(void)dnnl_memory_destroy(memory[0]);
	(void)dnnl_memory_destroy(memory[1]);
	(void)dnnl_primitive_destroy(p);
	(void)dnnl_primitive_desc_destroy(pd);
	if (st == dnnl_success)
		return RFL_OK;
	return rfl_fail(err, st == dnnl_out_of_memory ? RFL_EDEVMEM : RFL_EFAILED, (int)st,
			"%s: oneDNN cannot convert a tensor", b->net->model);
}

/* Move every part to new layouts. */
enum rfl_rc rfl_dnnl__relayout(struct rfl_backend *b, const dnnl_memory_desc_t *layouts,
			       struct rfl_err *err)
{
	RFL_AUTOFREE struct weight *weights =
		rfl_alloc_array((size_t)b->net->nparams, sizeof(*weights));
	const size_t floats = lay_out(b, layouts, weights);
	float *part[RFL_PART_COUNT] = { NULL };
	enum rfl_rc rc = RFL_OK;

	for (int k = 0; k < RFL_PART_COUNT && rc == RFL_OK; k++) {
		if (!b->part[k])
			continue;
		rc = map_part(b, floats, &part[k], err);
		for (int i = 0; i < b->net->nparams && rc == RFL_OK; i++)
			rc = rfl_dnnl__convert(b, &b->weights[i].layout,
					       rfl_dnnl__data(b, i, (enum rfl_part)k),
					       &weights[i].layout, part[k] + weights[i].at, err);
	}
	for (int k = 0; k < RFL_PART_COUNT; k++) {
		unmap_part(rc == RFL_OK ? b->floats : floats, rc == RFL_OK ? b->part[k] : part[k]);
		if (rc == RFL_OK)
			b->part[k] = part[k];
	}
	if (rc != RFL_OK)
		return rc;
	memcpy(b->weights, weights, (size_t)b->net->nparams * sizeof(*weights));
	unmap_part(b->floats, b->sums);
	b->sums = NULL;
	b->floats = floats;
	b->generation++;
	return RFL_OK;
}

/* ---- opening ---- */

/* bfloat16 needs instructions that oneDNN looks for. */
static enum rfl_rc check_bf16(const struct rfl_backend *b, struct rfl_err *err)
{
	const int64_t dims[] = { 1, 16, 8, 8 }, weights[] = { 16, 16, 3, 3 }, ones[] = { 1, 1 };
	dnnl_memory_desc_t image, weight;
	dnnl_convolution_desc_t desc;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t st;

	(void)dnnl_memory_desc_init_by_tag(&image, 4, dims, dnnl_bf16, dnnl_acdb);
	(void)dnnl_memory_desc_init_by_tag(&weight, 4, weights, dnnl_bf16, dnnl_format_tag_any);
	st = dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training,
						dnnl_convolution_direct, &image, &weight, NULL,
						&image, ones, ones, ones);
	if (st == dnnl_success)
		st = dnnl_primitive_desc_create(&pd, &desc, NULL, b->engine, NULL);
	(void)dnnl_primitive_desc_destroy(pd);
	if (st == dnnl_success)
		return RFL_OK;
	return rfl_fail(
		err, RFL_EUNAVAILABLE, 0,
		"bf16: oneDNN %s computes in bfloat16 only on CPUs with AVX-512; use fp32, or "
		"--engine torch, which converts",
		rfl_backend_version());
}

static enum rfl_rc open_library(struct rfl_backend *b, struct rfl_err *err)
{
	dnnl_status_t st = dnnl_engine_create(&b->engine, dnnl_cpu, 0);

	if (st == dnnl_success)
		st = dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags);
	if (st != dnnl_success)
		return rfl_fail(err, RFL_EFAILED, (int)st, "oneDNN cannot use this CPU");
	return b->type == RFL_HOST_BF16 ? check_bf16(b, err) : RFL_OK;
}

enum rfl_rc rfl_backend_open(const struct rfl_net *net, const struct rfl_engine_config *config,
			     struct rfl_backend **ret, struct rfl_err *err)
{
	const enum rfl_cast cast = rfl_precision_cast(config->precision, config->device);
	struct rfl_backend *b = rfl_alloc_array(1, sizeof(*b));
	const size_t n = (size_t)net->nparams;
	RFL_AUTOFREE dnnl_memory_desc_t *layouts = rfl_alloc_array(n, sizeof(*layouts));
	enum rfl_rc rc = RFL_OK;

	*b = (struct rfl_backend){ .net = net,
				   .type = cast == RFL_CAST_BF16 ? RFL_HOST_BF16 : RFL_HOST_F32,
				   .threads = config->threads,
				   .seed = config->seed,
				   .generation = 1,
				   .version = 1 };
	b->weights = rfl_alloc_array(n, sizeof(*b->weights));
	for (int i = 0; i < net->nparams; i++)
		b->weights[i].plain = layouts[i] = plain_of(net, &net->params[i]);
	b->floats = lay_out(b, layouts, b->weights);
	if (config->precision == RFL_PRECISION_TF32 || cast == RFL_CAST_FP16)
		rc = rfl_fail(err, RFL_EUNSUPPORTED, 0, "%s needs a GPU; use fp32 or bf16",
			      rfl_precision_names[config->precision]);
	if (rc == RFL_OK)
		rc = open_library(b, err);
	if (rc == RFL_OK)
		rc = map_part(b, b->floats, &b->part[RFL_PART_VALUE], err);
	if (rc == RFL_OK)
		*ret = b;
	else
		rfl_backend_close(b);
	return rc;
}

static void forget_saved(struct rfl_backend *b)
{
	for (int k = 0; k < RFL_PART_COUNT; k++)
		free(b->saved.part[k]);
	b->saved = (struct saved){ .generation = 0 };
}

void rfl_backend_close(struct rfl_backend *b)
{
	if (!b)
		return;
	forget_saved(b);
	rfl_backend_clear_state(b);
	unmap_part(b->floats, b->part[RFL_PART_VALUE]);
	unmap_part(b->floats, b->sums);
	(void)dnnl_stream_destroy(b->stream);
	(void)dnnl_engine_destroy(b->engine);
	free(b->weights);
	free(b->clocks);
	free(b);
}

bool rfl_backend_separate(const struct rfl_backend *b)
{
	(void)b;
	return false;
}

/* ---- parameters and state ---- */

enum rfl_rc rfl_backend_get(struct rfl_backend *b, int param, enum rfl_part part, float *out,
			    struct rfl_err *err)
{
	const struct weight *w = &b->weights[param];

	return rfl_dnnl__convert(b, &w->layout, rfl_dnnl__data(b, param, part), &w->plain, out,
				 err);
}

enum rfl_rc rfl_backend_set(struct rfl_backend *b, int param, enum rfl_part part,
			    const float *values, struct rfl_err *err)
{
	const struct weight *w = &b->weights[param];

	b->version++;
	return rfl_dnnl__convert(b, &w->plain, values, &w->layout, rfl_dnnl__data(b, param, part),
				 err);
}

bool rfl_backend_has(const struct rfl_backend *b, enum rfl_part part)
{
	return b->part[part] != NULL;
}

enum rfl_rc rfl_backend_make_state(struct rfl_backend *b, const struct rfl_optimizer *optimizer,
				   struct rfl_err *err)
{
	const bool sgd = optimizer->rule == RFL_RULE_SGD;
	enum rfl_rc rc = RFL_OK;

	if (!b->part[RFL_PART_MEAN] && (!sgd || optimizer->momentum != 0))
		rc = map_part(b, b->floats, &b->part[RFL_PART_MEAN], err);
	if (rc == RFL_OK && !b->part[RFL_PART_SQUARE] && !sgd)
		rc = map_part(b, b->floats, &b->part[RFL_PART_SQUARE], err);
	return rc;
}

void rfl_backend_clear_state(struct rfl_backend *b)
{
	for (int k = RFL_PART_MEAN; k < RFL_PART_COUNT; k++) {
		unmap_part(b->floats, b->part[k]);
		b->part[k] = NULL;
	}
}

enum rfl_rc rfl_backend_save(struct rfl_backend *b, struct rfl_err *err)
{
	forget_saved(b);
	for (int k = 0; k < RFL_PART_COUNT; k++) {
		if (!b->part[k])
			continue;
		b->saved.part[k] = rfl_try_array(b->floats, sizeof(float));
		if (!b->saved.part[k]) {
			forget_saved(b);
			return rfl_fail(err, RFL_EDEVMEM, 0, "%s: out of memory for a snapshot",
					b->net->model);
		}
		memcpy(b->saved.part[k], b->part[k], b->floats * sizeof(float));
	}
	b->saved.generation = b->generation;
	return RFL_OK;
}

enum rfl_rc rfl_backend_restore(struct rfl_backend *b, bool *replan, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	*replan = false;
	if (b->saved.generation == 0)
		return rfl_fail(err, RFL_EINVAL, 0, "no snapshot to restore; take one first");
	if (b->saved.generation != b->generation) { /* saved in plain layouts */
		RFL_AUTOFREE dnnl_memory_desc_t *layouts =
			rfl_alloc_array((size_t)b->net->nparams, sizeof(*layouts));

		for (int i = 0; i < b->net->nparams; i++)
			layouts[i] = b->weights[i].plain;
		rc = rfl_dnnl__relayout(b, layouts, err);
		if (rc != RFL_OK)
			return rc;
		b->generation = b->saved.generation;
		*replan = true;
	}
	for (int k = 0; k < RFL_PART_COUNT && rc == RFL_OK; k++) {
		if (!b->saved.part[k]) {
			if (k != RFL_PART_VALUE) {
				unmap_part(b->floats, b->part[k]);
				b->part[k] = NULL;
			}
			continue;
		}
		if (!b->part[k])
			rc = map_part(b, b->floats, &b->part[k], err);
		if (rc == RFL_OK)
			memcpy(b->part[k], b->saved.part[k], b->floats * sizeof(float));
	}
	b->version++;
	return rc;
}

/* ---- results and time ---- */

const struct rfl_backend_queue *const rfl_backend_queue = NULL;

enum rfl_rc rfl_backend_totals(struct rfl_backend *b, bool restart, struct rfl_totals *ret,
			       struct rfl_err *err)
{
	(void)err;
	*ret = b->totals;
	if (restart)
		b->totals.score = (struct rfl_score){ .rows = 0 };
	return RFL_OK;
}

enum rfl_rc rfl_backend_reserve_events(struct rfl_backend *b, int64_t n, struct rfl_err *err)
{
	double *clocks = rfl_try_array((size_t)n, sizeof(*clocks));

	if (!clocks)
		return rfl_fail(err, RFL_ENOMEM, 0, "planned: out of memory for events");
	free(b->clocks);
	b->clocks = clocks;
	return RFL_OK;
}

enum rfl_rc rfl_backend_record_event(struct rfl_backend *b, int64_t i, struct rfl_err *err)
{
	(void)err;
	b->clocks[i] = 1e-9 * (double)rfl_clock_ns();
	return RFL_OK;
}

enum rfl_rc rfl_backend_elapsed(struct rfl_backend *b, int64_t from, int64_t to, double *ret,
				struct rfl_err *err)
{
	(void)err;
	*ret = b->clocks[to] - b->clocks[from];
	return RFL_OK;
}
