/* library.c - the device, the parameters and the state of the optimizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runner/planned/cuda/backend.h"

const char *rfl_backend_version(void)
{
	static char version[32] = "9"; /* until cuDNN is loaded */
	struct rfl_cudnn *lib = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	if (strcmp(version, "9") == 0 && rfl_cudnn_open(NULL, &lib, &err) == RFL_OK)
		memcpy(version, lib->version, sizeof(version));
	rfl_cudnn_close(lib);
	return version;
}

static enum rfl_rc check_device(const struct rfl_cuda *cuda, struct rfl_err *err)
{
	if (cuda->capability >= 80)
		return RFL_OK;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"%s has compute capability %d.%d; this engine needs 8.0 (A100) or newer: "
			"use --engine torch",
			cuda->name, cuda->capability / 10, cuda->capability % 10);
}

enum rfl_rc rfl_backend_probe(enum rfl_device device, struct rfl_err *err)
{
	RFL_AUTOPTR(cuda) cuda = NULL;
	struct rfl_cudnn *cudnn = NULL;
	enum rfl_rc rc;

	if (device != RFL_DEVICE_CUDA)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "cuDNN runs on NVIDIA GPUs only");
	rc = rfl_cuda_open(0, NULL, &cuda, err);
	if (rc == RFL_OK)
		rc = check_device(cuda, err);
	if (rc == RFL_OK)
		rc = rfl_cudnn_open(NULL, &cudnn, err);
	if (rc == RFL_OK)
		rc = rfl_cuda__probe_kernels(cuda->version, err);
	rfl_cudnn_close(cudnn);
	return rc;
}

/* ---- memory ---- */

enum rfl_rc rfl_cuda__alloc(const struct rfl_backend *b, size_t bytes, const char *what,
			    rfl_cuda_address *ret, struct rfl_err *err)
{
	const size_t whole = (bytes + 255) & ~(size_t)255;
	struct rfl_err why = RFL_ERR_INIT;
	rfl_cuda_address address = 0;
	enum rfl_rc rc;

	*ret = 0;
	rc = RFL_CUDA_CALL(b->cuda, memory_alloc, &why, &address, whole ? whole : 256);
	if (rc == RFL_EDEVMEM)
		return rfl_fail(err, rc, why.native, "%s: out of memory: %zu MiB for %s",
				b->net->model, (bytes >> 20) + 1, what);
	if (rc != RFL_OK)
		return rfl_err_pass(err, &why);
	rc = QUEUE(b, fill, err, address, 0, whole ? whole : 256, b->stream);
	if (rc == RFL_OK)
		*ret = address;
	else
		rfl_cuda__free(b, &address);
	return rc;
}

void rfl_cuda__free(const struct rfl_backend *b, rfl_cuda_address *address)
{
	if (*address)
		(void)b->cuda->calls.memory_free(*address);
	*address = 0;
}

enum rfl_rc rfl_cuda__send(const struct rfl_backend *b, rfl_cuda_address to, const void *from,
			   size_t bytes, struct rfl_err *err)
{
	const enum rfl_rc rc = RFL_CUDA_CALL(b->cuda, send, err, to, from, bytes, b->stream);

	return rc == RFL_OK ? QUEUE(b, synchronize, err, b->stream) : rc;
}

enum rfl_rc rfl_cuda__fetch(const struct rfl_backend *b, void *to, rfl_cuda_address from,
			    size_t bytes, struct rfl_err *err)
{
	const enum rfl_rc rc = QUEUE(b, synchronize, err, b->stream);

	return rc == RFL_OK ? RFL_CUDA_CALL(b->cuda, copy_from_device, err, to, from, bytes) : rc;
}

/* One block for a part of all parameters. */
static enum rfl_rc alloc_part(const struct rfl_backend *b, rfl_cuda_address *ret,
			      struct rfl_err *err)
{
	return rfl_cuda__alloc(b, 4 * b->floats, "the parameters", ret, err);
}

static enum rfl_rc copy(const struct rfl_backend *b, rfl_cuda_address to, rfl_cuda_address from,
			size_t bytes, struct rfl_err *err)
{
	return QUEUE(b, copy, err, to, from, bytes, b->stream);
}

/* ---- opening ---- */

const struct rfl_queue_symbols rfl_queue_symbols = { RFL_QUEUE_FUNCTIONS(RFL_CUDA_NAME) };

static enum rfl_rc open_queue(struct rfl_backend *b, struct rfl_err *err)
{
#define SYMBOL(member, symbol, arguments) { #symbol, &b->queue.member, false },
	const struct rfl_dl_symbol symbols[] = { RFL_QUEUE_FUNCTIONS(SYMBOL) };
#undef SYMBOL
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(symbols); i++) {
		void *address = rfl_dl_sym(b->cuda->dl, symbols[i].name);

		if (!address)
			return rfl_fail(err, RFL_EUNAVAILABLE, 0,
					"the NVIDIA driver is too old: it has no %s",
					symbols[i].name);
		memcpy(symbols[i].slot, &address, sizeof(address));
	}
	rc = QUEUE(b, create, err, &b->stream, RFL_STREAM_NON_BLOCKING);
	if (rc == RFL_OK)
		rc = QUEUE(b, create, err, &b->copies, RFL_STREAM_NON_BLOCKING);
	for (int i = 0; i < 2 && rc == RFL_OK; i++)
		rc = RFL_CUDA_CALL(b->cuda, event_create, err, &b->ends[i], 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(b->staged) && rc == RFL_OK; i++) {
		rc = RFL_CUDA_CALL(b->cuda, event_create, err, &b->staged[i].ready, 0);
		if (rc == RFL_OK)
			rc = RFL_CUDA_CALL(b->cuda, event_create, err, &b->staged[i].used, 0);
	}
	return rc;
}

static enum rfl_rc open_libraries(struct rfl_backend *b, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_cudnn_open(NULL, &b->cudnn, err);

	if (rc == RFL_OK)
		rc = rfl_cudnn_start(b->cudnn, b->stream, err);
	return rc == RFL_OK ? rfl_cuda__load_kernels(b, err) : rc;
}

static enum rfl_rc alloc_all(struct rfl_backend *b, struct rfl_err *err)
{
	const struct rfl_kernel_state state = { .scale = b->type == RFL_VALUE_F16 ? FIRST_SCALE : 1,
						.factor = 1 };
	const size_t rows = (size_t)b->max_batch;
	enum rfl_rc rc = alloc_part(b, &b->part[RFL_PART_VALUE], err);

	if (rc == RFL_OK && b->type != RFL_VALUE_F32)
		rc = rfl_cuda__alloc(b, 2 * b->floats, "the parameters", &b->values, err);
	if (rc == RFL_OK)
		rc = rfl_cuda__alloc(b, sizeof(state), "state", &b->state, err);
	if (rc == RFL_OK)
		rc = rfl_cuda__alloc(b, 8 * rows, "labels", &b->labels, err);
	if (rc == RFL_OK)
		rc = rfl_cuda__alloc(b, 5 * rows, "losses", &b->losses, err);
	if (rc == RFL_OK)
		rc = rfl_cuda__alloc(b, 8 * (SQUARES + FOLDED), "sums", &b->partials, err);
	return rc == RFL_OK ? rfl_cuda__send(b, b->state, &state, sizeof(state), err) : rc;
}

enum rfl_rc rfl_backend_open(const struct rfl_net *net, const struct rfl_engine_config *config,
			     struct rfl_backend **ret, struct rfl_err *err)
{
	const enum rfl_cast cast = rfl_precision_cast(config->precision, config->device);
	struct rfl_backend *b = rfl_alloc_array(1, sizeof(*b));
	enum rfl_rc rc;

	*b = (struct rfl_backend){ .net = net,
				   .type = cast == RFL_CAST_BF16   ? RFL_VALUE_BF16
					   : cast == RFL_CAST_FP16 ? RFL_VALUE_F16
								   : RFL_VALUE_F32,
				   .tf32 = config->precision == RFL_PRECISION_TF32,
				   .deterministic = config->deterministic,
				   .benchmark = config->cudnn_benchmark,
				   .seed = config->seed,
				   .max_batch = config->max_batch,
				   .stale = true };
	b->at = rfl_alloc_array((size_t)net->nparams, sizeof(*b->at));
	for (int i = 0; i < net->nparams; i++) {
		b->at[i] = b->floats;
		b->floats += ((size_t)net->params[i].numel + 15) & ~(size_t)15;
	}
	rc = rfl_cuda_open(0, NULL, &b->cuda, err);
	if (rc == RFL_OK)
		rc = check_device(b->cuda, err);
	if (rc == RFL_OK)
		rc = open_queue(b, err);
	if (rc == RFL_OK)
		rc = open_libraries(b, err);
	if (rc == RFL_OK)
		rc = alloc_all(b, err);
	if (rc == RFL_OK)
		*ret = b;
	else
		rfl_backend_close(b);
	return rc;
}

static void forget_saved(struct rfl_backend *b)
{
	for (int k = 0; k < RFL_PART_COUNT; k++)
		rfl_cuda__free(b, &b->saved.part[k]);
	b->saved.exists = false;
}

void rfl_backend_close(struct rfl_backend *b)
{
	if (!b)
		return;
	if (b->stream)
		(void)b->queue.synchronize(b->stream);
	if (b->copies)
		(void)b->queue.synchronize(b->copies);
	for (size_t i = 0; i < b->nmade; i++)
		(void)b->cudnn->calls.descriptor_destroy(b->made[i].plan.plan);
	rfl_cudnn_close(b->cudnn); /* before its stream */
	if (b->cuda) {
		rfl_cuda_address *const all[] = { &b->values, &b->gradients, &b->sums,    &b->state,
						  &b->labels, &b->losses,    &b->partials };

		forget_saved(b);
		for (int k = 0; k < RFL_PART_COUNT; k++)
			rfl_cuda__free(b, &b->part[k]);
		for (size_t i = 0; i < RFL_ARRAY_LEN(all); i++)
			rfl_cuda__free(b, all[i]);
		if (b->module)
			(void)b->cuda->calls.module_unload(b->module);
		rfl_cuda__close_queue(b);
	}
	rfl_cuda_close(b->cuda);
	free(b->made);
	free(b->at);
	free(b);
}

bool rfl_backend_separate(const struct rfl_backend *b)
{
	return b->benchmark; /* cuDNN's batch norms are candidates */
}

/* ---- parameters and state ---- */

/* The parameter as groups of rows x columns that the device has transposed: a convolution's is K x
 * C x RS there K x RS x C; a linear layer's, after an image of C x HW, the same. */
void rfl_cuda__reorder(const struct rfl_net *net, int param, bool to_device, const float *from,
		       float *to)
{
	const struct rfl_param *p = &net->params[param];
	int64_t rows = 1, columns = 1;

	if (p->kind == RFL_PARAM_CONV_WEIGHT) {
		rows = p->dim[1];
		columns = p->dim[2] * p->dim[3];
	} else if (p->kind == RFL_PARAM_LINEAR_WEIGHT) {
		const struct rfl_shape *in = rfl_plan_image(net, net->nodes[p->node].input[0]);

		rows = in->dim[0];
		columns = rfl_shape_numel(in) / rows;
	}
	for (int64_t i = 0; i < p->numel; i++) {
		const int64_t group = i / (rows * columns) * rows * columns, at = i - group;
		const int64_t other = group + at % columns * rows + at / columns;

		to[to_device ? other : i] = from[to_device ? i : other];
	}
}

/* Get or set a parameter's floats at an address. */
static enum rfl_rc transfer(struct rfl_backend *b, int param, rfl_cuda_address address, float *out,
			    const float *values, struct rfl_err *err)
{
	const size_t n = (size_t)b->net->params[param].numel;
	RFL_AUTOFREE float *there = rfl_try_array(n, sizeof(*there));
	enum rfl_rc rc;

	if (!there)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %s",
				b->net->params[param].name);
	address += 4 * b->at[param];
	if (values) {
		rfl_cuda__reorder(b->net, param, true, values, there);
		return rfl_cuda__send(b, address, there, 4 * n, err);
	}
	rc = rfl_cuda__fetch(b, there, address, 4 * n, err);
	if (rc == RFL_OK)
		rfl_cuda__reorder(b->net, param, false, there, out);
	return rc;
}

enum rfl_rc rfl_backend_get(struct rfl_backend *b, int param, enum rfl_part part, float *out,
			    struct rfl_err *err)
{
	return transfer(b, param, b->part[part], out, NULL, err);
}

enum rfl_rc rfl_backend_set(struct rfl_backend *b, int param, enum rfl_part part,
			    const float *values, struct rfl_err *err)
{
	b->stale = true;
	return transfer(b, param, b->part[part], NULL, values, err);
}

bool rfl_backend_has(const struct rfl_backend *b, enum rfl_part part)
{
	return b->part[part] != 0;
}

enum rfl_rc rfl_backend_make_state(struct rfl_backend *b, const struct rfl_optimizer *optimizer,
				   struct rfl_err *err)
{
	const bool sgd = optimizer->rule == RFL_RULE_SGD;
	enum rfl_rc rc = RFL_OK;

	if (!b->part[RFL_PART_MEAN] && (!sgd || optimizer->momentum != 0))
		rc = alloc_part(b, &b->part[RFL_PART_MEAN], err);
	if (rc == RFL_OK && !b->part[RFL_PART_SQUARE] && !sgd)
		rc = alloc_part(b, &b->part[RFL_PART_SQUARE], err);
	return rc;
}

void rfl_backend_clear_state(struct rfl_backend *b)
{
	for (int k = RFL_PART_MEAN; k < RFL_PART_COUNT; k++)
		rfl_cuda__free(b, &b->part[k]);
	b->restart_scaling = true;
}

enum rfl_rc rfl_backend_save(struct rfl_backend *b, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	forget_saved(b);
	for (int k = 0; k < RFL_PART_COUNT && rc == RFL_OK; k++) {
		if (!b->part[k])
			continue;
		rc = rfl_cuda__alloc(b, 4 * b->floats, "a snapshot", &b->saved.part[k], err);
		if (rc == RFL_OK)
			rc = copy(b, b->saved.part[k], b->part[k], 4 * b->floats, err);
	}
	if (rc == RFL_OK)
		rc = rfl_cuda__fetch(b, &b->saved.state, b->state, sizeof(b->saved.state), err);
	if (rc == RFL_OK)
		b->saved.exists = true;
	else
		forget_saved(b);
	return rc;
}

enum rfl_rc rfl_backend_restore(struct rfl_backend *b, bool *replan, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	*replan = false;
	if (!b->saved.exists)
		return rfl_fail(err, RFL_EINVAL, 0, "no snapshot to restore; take one first");
	b->stale = true;
	b->restart_scaling = false;
	for (int k = 0; k < RFL_PART_COUNT && rc == RFL_OK; k++) {
		if (!b->saved.part[k]) {
			rfl_cuda__free(b, &b->part[k]);
			continue;
		}
		if (!b->part[k])
			rc = alloc_part(b, &b->part[k], err);
		if (rc == RFL_OK)
			rc = copy(b, b->part[k], b->saved.part[k], 4 * b->floats, err);
	}
	return rc == RFL_OK
		       ? rfl_cuda__send(b, b->state, &b->saved.state, sizeof(b->saved.state), err)
		       : rc;
}

int64_t rfl_backend_bytes(const struct rfl_backend *b, const struct rfl_session *s)
{
	int64_t blocks = (b->gradients != 0) + (b->sums != 0), bytes;

	for (int k = 0; k < RFL_PART_COUNT; k++)
		blocks += (b->part[k] != 0) + (b->saved.part[k] != 0);
	bytes = (4 * blocks + (b->values ? 2 : 0)) * (int64_t)b->floats;
	for (size_t i = 0; i < RFL_ARRAY_LEN(b->staged); i++)
		bytes += (int64_t)(b->staged[i].bytes[0] + b->staged[i].bytes[1]);
	return bytes + (s ? s->plan->bytes : 0);
}
