/*
 * engine.cpp - the torch engine: executes a net with libtorch. This file handles failures, opening
 * and closing, parameters, marks and settings.
 *
 * All parameters share one block of memory; on the CPU, inputs and labels are used in place. A step
 * does exactly the work of the same training loop in Python.
 */
#include "runner/torch/engine.hpp"

#include "complexity/op.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>

#include <ATen/Parallel.h>
#include <ATen/Version.h>

using namespace rfl_torch;

// ------------------------------------------------------------------ failures

rfl_torch::failure::failure(rfl_rc rc, const char *fmt, ...)
{
	char text[RFL_ERR_MSG_MAX];
	va_list values;

	va_start(values, fmt);
	(void)std::vsnprintf(text, sizeof(text), fmt, values);
	va_end(values);
	(void)rfl_fail(&err, rc, 0, "torch: %s", text);
}

rfl_torch::failure::failure(const char *what) noexcept
{
	const auto fill = [&](rfl_rc rc, const char *text) {
		char size[32] = "";

		if (rc == RFL_EDEVMEM)
			rfl_torch_asked(text, size, sizeof(size));
		if (what && size[0])
			(void)rfl_fail(&err, rc, 0, "torch: %s: out of memory: %s more do not fit",
				       what, size);
		else if (what)
			(void)rfl_fail(&err, rc, 0, "torch: %s: %s%s", what,
				       rc == RFL_EDEVMEM ? "out of memory: " : "", text);
		else
			(void)rfl_fail(&err, rc, 0, "%s", text);
	};

	try {
		throw;
	} catch (const failure &f) {
		err = f.err;
	} catch (const c10::OutOfMemoryError &e) {
		fill(RFL_EDEVMEM, e.what_without_backtrace());
	} catch (const c10::NotImplementedError &e) {
		fill(RFL_EUNSUPPORTED, e.what_without_backtrace());
	} catch (const c10::Error &e) {
		fill(rfl_torch_meaning(e.what_without_backtrace()), e.what_without_backtrace());
	} catch (const std::bad_alloc &) {
		fill(RFL_EDEVMEM, "out of memory");
	} catch (const std::exception &e) {
		fill(rfl_torch_meaning(e.what()), e.what());
	} catch (...) {
		fill(RFL_EFAILED, "an exception of unknown type");
	}
}

// ------------------------------------------------------------------ the library

const char *rfl_torch__library_version(void)
{
	static std::array<char, 32> version = {};
	static const char key[] = "TORCH_VERSION=";

	if (version[0])
		return version.data();
	attempt([] {
		const std::string config = at::show_config();
		const size_t at = config.find(key);

		if (at == std::string::npos)
			return;
		const size_t from = at + sizeof(key) - 1;
		const size_t n =
			std::min(config.find_first_of(", \n", from) - from, version.size() - 1);

		config.copy(version.data(), n, from);
		version[n] = '\0';
	});
	return version[0] ? version.data() : "unknown";
}

/* Set threads, seed, determinism, cuDNN's choice of algorithms and TF32, so that the library's
 * defaults do not matter, before the first operation of the process, which creates the thread
 * pools. */
static void set_up(const rfl_engine_config &config)
{
	const bool tf32 = config.precision == RFL_PRECISION_TF32;
	at::Context &context = at::globalContext();

#ifdef __GLIBC__
	/* libtorch's CPU allocator is malloc. By default, glibc returns the memory of the
	 * activations to the system after each step, and the next step faults it in again: a
	 * hundred thousand page faults per step of MobileNetV2. Keep freed memory, large blocks
	 * included. */
	(void)mallopt(M_MMAP_MAX, 0);
	(void)mallopt(M_TRIM_THRESHOLD, -1);
#endif
	// this can be set only once, before the first operation of the process
	if (at::get_num_interop_threads() != 1)
		attempt([] { at::set_num_interop_threads(1); });
	at::set_num_threads(config.threads);
	context.setDeterministicAlgorithms(config.deterministic, /*warn_only=*/false);
#if TORCH_AT_LEAST(2, 2)
	// Otherwise libtorch fills new memory with NaN, which costs a pass over it.
	context.setDeterministicFillUninitializedMemory(false);
#endif
	context.setDeterministicCuDNN(config.deterministic);
	context.setBenchmarkCuDNN(config.cudnn_benchmark);
	context.setAllowTF32CuBLAS(tf32);
	context.setAllowTF32CuDNN(tf32);
	at::manual_seed(config.seed);
}

// ------------------------------------------------------------------ opening and closing

// nullptr if this library supports the cast on the device, else the reason and the fix.
static const char *cast_missing(enum rfl_device device, enum rfl_cast cast)
{
	if (cast == RFL_CAST_FP16 && device == RFL_DEVICE_CPU && !TORCH_AT_LEAST(2, 3))
		return "float16 on a CPU needs libtorch 2.3 or newer; use bf16";
	if (cast != RFL_CAST_OFF && device == RFL_DEVICE_MPS && !TORCH_AT_LEAST(2, 5))
		return "autocast on MPS needs libtorch 2.5 or newer; use fp32";
	return nullptr;
}

// With a cache, parameters are stored in the precision, so that nothing is cast.
static enum rfl_cast cast_of(const rfl_engine_config &config)
{
	return config.cache_tokens > 0 ? RFL_CAST_OFF
				       : rfl_precision_cast(config.precision, config.device);
}

// Check what can be checked before the device is opened. @return whether an update is one pass
static bool check_config(const rfl_net &net, const rfl_engine_config &config)
{
	const rfl_optimizer &o = config.optimizer;
	const char *device = rfl_device_names[config.device], *since, *missing;
	const enum rfl_cast cast = cast_of(config);

	require(config.device);
	if (config.precision == RFL_PRECISION_TF32 && config.device != RFL_DEVICE_CUDA)
		throw failure(RFL_EUNSUPPORTED,
			      "tf32 requires the Tensor Cores of an NVIDIA GPU and does not exist "
			      "on %s; use fp32 or bf16",
			      device);
	missing = cast_missing(config.device, cast);
	if (missing)
		throw failure(RFL_EUNSUPPORTED, "%s: %s (this is libtorch " RFL_TORCH_VERSION ")",
			      rfl_precision_names[config.precision], missing);
	since = scaling_since(config.device);
	if (cast == RFL_CAST_FP16 && since)
		throw failure(RFL_EUNSUPPORTED,
			      "on %s, fp16 requires loss scaling, which needs libtorch %s or newer "
			      "(this is " RFL_TORCH_VERSION "); use fp32",
			      device, since);
	since = fused_since(o.rule, config.device);
	if (o.kernels == RFL_KERNELS_FUSED && since)
		throw failure(RFL_EUNSUPPORTED,
			      "libtorch " RFL_TORCH_VERSION " has no fused %s on %s; use libtorch "
			      "%s or newer, or the kernels foreach or auto",
			      rfl_optimizer_rule_names[o.rule], device, since);
	if (config.int8_weights && !TORCH_AT_LEAST(2, 3))
		throw failure(RFL_EUNSUPPORTED,
			      "int8 weights need libtorch 2.3 or newer (this is " RFL_TORCH_VERSION
			      "); leave them in the precision");
	if (config.threads < 1 || config.max_batch < 1)
		throw failure(RFL_EINVAL, "threads and batch must be at least 1, not %d and %lld",
			      config.threads, static_cast<long long>(config.max_batch));
	for (int i = 0; i < net.nnodes; i++) {
		const rfl_node &node = net.nodes[i];
		const char *why = rfl_torch__unsupported(node.op, config.precision);

		if (!why)
			why = unknown_table(node);
		if (why)
			throw failure(RFL_EUNSUPPORTED, "layer '%s': %s", node.name, why);
	}
	return o.kernels != RFL_KERNELS_FOREACH && !since;
}

static const rfl_engine_ops torch_ops = [] {
	rfl_engine_ops ops = {};

	ops.name = "torch";
	ops.version = RFL_TORCH_VERSION;
	ops.variant = RFL_TORCH_VARIANT;
#define MEMBER(member) ops.member = rfl_torch__##member;
	RFL_TORCH__OPS(MEMBER)
#undef MEMBER
	return ops;
}();

rfl_torch::slab::~slab()
{
	if (memory)
		(void)munmap(memory, bytes);
}

rfl_engine::rfl_engine(const rfl_net *n, const rfl_engine_config &c, bool one_pass)
    : ops(&torch_ops), net(n), config(c), cast(cast_of(c)), fused(one_pass),
      value(static_cast<size_t>(n->nnodes)), last_use(static_cast<size_t>(n->nnodes), n->nnodes)
{
	// Outputs that no node reads are logits of the network or of an auxiliary head.
	for (int i = 0; i < net->nnodes; i++)
		for (int j = 0; j < net->nodes[i].ninputs; j++)
			last_use[static_cast<size_t>(net->nodes[i].input[j])] = i;
	last_use[static_cast<size_t>(net->output)] = net->nnodes;
}

rfl_engine::~rfl_engine()
{
	group.reset();
	if (!device)
		return;
	forget_recording();
	attempt([&] { device->sync(); });
}

// In a channels-last engine, 4-D weights are channels-last; all other parameters are row-major.
static bool is_channels_last(const rfl_engine &e, const rfl_param &p) noexcept
{
	return e.config.layout == RFL_LAYOUT_NHWC && p.ndim == 4;
}

static std::vector<int64_t> strides_of(const rfl_engine &e, const rfl_param &p)
{
	if (!is_channels_last(e, p))
		return {};
	return { p.dim[1] * p.dim[2] * p.dim[3], 1, p.dim[3] * p.dim[1], p.dim[1] };
}

// For autograd, a leaf is not a view of the block, so a change to it does not affect the others.
at::Tensor rfl_torch::leaf(const at::Tensor &flat, int64_t offset, at::IntArrayRef shape,
			   at::IntArrayRef strides, bool requires_grad)
{
	const at::Tensor part = flat.slice(0, offset, offset + c10::multiply_integers(shape));
	at::Tensor t = strides.empty() ? part.view(shape) : part.as_strided(shape, strides);

	t = t.variable_data();
	return t.requires_grad_(requires_grad);
}

#define HUGE_PAGE ((size_t)2 << 20)

// Zeroed memory for the parameters.
static at::Tensor make_block(rfl_engine &e, int64_t elements)
{
	const size_t size = c10::elementSize(e.stored());
	const size_t bytes = (static_cast<size_t>(elements) * size + HUGE_PAGE) & ~(HUGE_PAGE - 1);
	void *memory;

	if (!e.is_cpu())
		return at::zeros({ elements },
				 at::TensorOptions(e.stored()).device(e.device->where));
	// new pages are zero, and huge pages make the first touch cheap
	memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		throw failure(RFL_EDEVMEM, "out of memory: %zu bytes of parameters", bytes);
#ifdef MADV_HUGEPAGE
	(void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
	e.slab.memory = memory;
	e.slab.bytes = bytes;
	return at::from_blob(memory, { elements }, e.stored());
}

// Create the block, the parameter tensors over it, and what the optimizer needs.
static void make_params(rfl_engine &e)
{
	constexpr int64_t align = 32; // elements: a multiple of 64 bytes
	int64_t elements = 0;

	e.int8.resize(static_cast<size_t>(e.net->nparams));
	for (int i = 0; i < e.net->nparams; i++) {
		e.offset.push_back(elements);
		if (!is_int8(e, i))
			elements += (e.net->params[i].numel + align - 1) & ~(align - 1);
	}
	e.block = about("parameters", [&] { return make_block(e, elements); });
	for (int i = 0; i < e.net->nparams; i++) {
		const rfl_param &p = e.net->params[i];
		const bool trained = !rfl_param_is_buffer(p.kind) && !e.caches();

		if (is_int8(e, i)) {
			e.param.emplace_back();
			continue;
		}
		e.param.push_back(about(p.name, [&] {
			return leaf(e.block, e.offset[static_cast<size_t>(i)],
				    { p.dim, static_cast<size_t>(p.ndim) }, strides_of(e, p),
				    trained);
		}));
		if (trained)
			e.optim.params.push_back(e.param.back());
	}
	if (e.scaled() && !e.optim.params.empty())
		e.optim.scaler = about(
			"optimizer", [&] { return std::make_unique<scaling>(e.optim.params[0]); });
}

enum rfl_rc rfl_torch__open(const rfl_net *net, const rfl_engine_config *config, rfl_engine **ret,
			    rfl_err *err)
{
	return guarded("set up", err, [&] {
		const bool fused = check_config(*net, *config);
		rfl_engine_device facts = {};
		int capability = 0;

		set_up(*config);
		auto e = std::make_unique<rfl_engine>(net, *config, fused);

		e->device = about(rfl_device_names[config->device],
				  [&] { return open_device(config->device); });
		about("device information", [&] { e->device->facts(&facts, &capability); });
		const char *missing =
			rfl_cuda_precision_missing(config->precision, e->cast, capability);

		if (missing)
			throw failure(RFL_EUNSUPPORTED, "%s: %s", facts.name, missing);
		make_params(*e);
		if (e->caches())
			make_cache(*e);
		*ret = e.release();
	});
}

void rfl_torch__close(rfl_engine *e)
{
	delete e;
}

// ------------------------------------------------------------------ settings

enum rfl_rc rfl_torch__set_mode(rfl_engine *e, enum rfl_engine_mode mode, rfl_err *err)
{
	return guarded("mode", err, [&] {
		if (e->mode != mode) {
			e->forget_recording();
			e->steps = 0; // recording requires earlier ordinary steps in the same mode
		}
		e->mode = mode;
	});
}

enum rfl_rc rfl_torch__set_optimizer(rfl_engine *e, const rfl_optimizer *optimizer, rfl_err *err)
{
	return guarded("optimizer", err, [&] {
		const rfl_optimizer &old = e->config.optimizer;

		if (optimizer->rule != old.rule)
			throw failure(RFL_EUNSUPPORTED,
				      "the optimizer cannot change from %s; open a new engine",
				      rfl_optimizer_rule_names[old.rule]);
		if (optimizer->kernels != old.kernels)
			throw failure(RFL_EUNSUPPORTED,
				      "the optimizer kernels of an open engine stay %s; open a new "
				      "engine",
				      rfl_optimizer_kernels_names[old.kernels]);
		e->forget_recording(); // the recorded kernels contain the old settings
		e->config.optimizer = *optimizer;
	});
}

const char *rfl_torch__optimizer_kernels(rfl_engine *e)
{
	return rfl_optimizer_kernels_names[e->fused ? RFL_KERNELS_FUSED : RFL_KERNELS_FOREACH];
}

enum rfl_rc rfl_torch__mark(rfl_engine *e, rfl_engine_mark_fn fn, void *ctx, rfl_err *err)
{
	return guarded("marks", err, [&] {
		char name[RFL_MARK_SIZE];

		if (e->can_backward) // the hooks of the step use the names freed below
			e->forget_step();
		e->marks = {};
		// Run backward and its hooks on the calling thread. Before 2.0, this switch does
		// not exist, and only CPU work runs on the calling thread.
#if TORCH_AT_LEAST(2, 0)
		c10::AutogradState::get_tls_state().set_multithreading_enabled(!fn);
#endif
		for (int i = 0; fn && i <= e->net->nnodes; i++) {
			e->marks.forward.emplace_back(rfl_mark_name("fwd", e->net, i, name));
			e->marks.backward.emplace_back(rfl_mark_name("bwd", e->net, i, name));
		}
		e->marks.fn = fn;
		e->marks.ctx = ctx;
	});
}

// ------------------------------------------------------------------ values for the caller

// Wrap the caller's memory in a tensor of the same shape as t.
static at::Tensor in_shape_of(const at::Tensor &t, const float *memory, int64_t numel)
{
	TORCH_CHECK(t.numel() == numel, "the tensor has ", t.numel(), " elements, not ", numel);
	return at::from_blob(const_cast<float *>(memory), t.sizes(), at::kFloat);
}

// Run a body on a parameter. @param numel  its number of elements, as the caller knows it
template <typename Body>
static rfl_rc with_param(rfl_engine *e, int i, int64_t numel, rfl_err *err, Body &&body)
{
	const bool exists = i >= 0 && i < e->net->nparams;
	const rfl_param *p = exists ? &e->net->params[i] : nullptr;

	return guarded(p ? p->name : nullptr, err, [&] {
		if (!p)
			throw failure(RFL_EINVAL, "parameter %d does not exist", i);
		if (numel != p->numel)
			throw failure(RFL_EINVAL, "%s has %lld elements, not %lld", p->name,
				      static_cast<long long>(p->numel),
				      static_cast<long long>(numel));
		body(e->param[static_cast<size_t>(i)], *p);
	});
}

enum rfl_rc rfl_torch__set_param(rfl_engine *e, int param, const float *values, int64_t numel,
				 rfl_err *err)
{
	return with_param(e, param, numel, err, [&](const at::Tensor &t, const rfl_param &p) {
		if (is_int8(*e, param))
			e->int8[static_cast<size_t>(param)] =
				to_int8(*e, at::from_blob(const_cast<float *>(values),
							  { p.dim, static_cast<size_t>(p.ndim) },
							  at::kFloat));
		else
			t.detach().copy_(in_shape_of(t, values, numel));
	});
}

enum rfl_rc rfl_torch__get_param(rfl_engine *e, int param, float *out, int64_t numel, rfl_err *err)
{
	return with_param(e, param, numel, err, [&](const at::Tensor &stored, const rfl_param &) {
		const at::Tensor t = is_int8(*e, param)
					     ? from_int8(e->int8[static_cast<size_t>(param)])
					     : stored;

		in_shape_of(t, out, numel).copy_(t.detach());
	});
}

enum rfl_rc rfl_torch__get_grad(rfl_engine *e, int param, float *out, int64_t numel, rfl_err *err)
{
	return with_param(e, param, numel, err, [&](const at::Tensor &t, const rfl_param &p) {
		const char *why = rfl_param_is_buffer(p.kind) ? "is a buffer and has no gradient"
				  : !e->has_grads ? "gradients exist only between backward and step"
				  : !t.grad().defined() ? "has no gradient"
							: nullptr;
		double scale = 1; // before the step, gradients are multiplied by the loss scale

		if (why)
			throw failure(RFL_EINVAL, "%s: %s", p.name, why);
		in_shape_of(t.grad(), out, numel).copy_(t.grad());
		if (e->optim.scaler)
			scale = e->optim.scaler->scale.item().toDouble();
		for (int64_t i = 0; i < numel && e->optim.scaler; i++)
			out[i] = static_cast<float>(static_cast<double>(out[i]) / scale);
	});
}

/* Return the memory if it is in PyTorch's order. It is if the layout is row-major, or if there is
 * one channel or one pixel, where both orders are the same. */
float *rfl_torch__param_data(rfl_engine *e, int param)
{
	if (!e->slab.memory || e->stored() != at::kFloat || param < 0 || param >= e->net->nparams ||
	    is_int8(*e, param))
		return nullptr;
	const rfl_param &p = e->net->params[param];

	if (is_channels_last(*e, p) && p.dim[1] != 1 && p.dim[2] * p.dim[3] != 1)
		return nullptr;
	return static_cast<float *>(e->slab.memory) + e->offset[static_cast<size_t>(param)];
}

enum rfl_rc rfl_torch__loss(rfl_engine *e, double *ret, rfl_err *err)
{
	return guarded("loss", err, [&] {
		if (!e->loss.defined())
			throw failure(RFL_EINVAL, "no loss; run forward first");
		*ret = e->loss.item().toDouble();
	});
}

enum rfl_rc rfl_torch__logits(rfl_engine *e, float *out, int64_t numel, rfl_err *err)
{
	return guarded("logits", err, [&] {
		if (!e->logits.defined())
			throw failure(RFL_EINVAL, "no logits; run forward first");
		in_shape_of(e->logits, out, numel).copy_(e->logits.detach());
	});
}

// ------------------------------------------------------------------ the plugin

extern "C" RFL_EXPORT const rfl_engine_ops *rfl_engine_plugin(uint32_t abi);

RFL_EXPORT const rfl_engine_ops *rfl_engine_plugin(uint32_t abi)
{
	return abi == RFL_ENGINE_ABI ? &torch_ops : nullptr;
}
