/*
 * shim.cpp - a C interface to libtorch: library settings, tensors, batches. The shim is the only
 * C++ code of the project.
 */
#include "runner/torch/shim_impl.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

using namespace rfl_torch;

// ------------------------------------------------------------------ the library

const char *rfl_torch__library_version(void)
{
	static std::array<char, 32> version = {};
	static const char key[] = "TORCH_VERSION=";

	if (version[0])
		return version.data();
	(void)guarded([] {
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

enum rfl_rc rfl_torch_set_up(const struct rfl_engine_config *config, struct rfl_err *err)
{
	const bool tf32 = config->precision == RFL_PRECISION_TF32;

	return guarded("set up", err, [&] {
		at::Context &context = at::globalContext();

		// this can be set only once, before the first operation of the process
		if (at::get_num_interop_threads() != 1)
			(void)guarded([] { at::set_num_interop_threads(1); });
		at::set_num_threads(config->threads);
		context.setDeterministicAlgorithms(config->deterministic, /*warn_only=*/false);
#if TORCH_AT_LEAST(2, 2)
		// Otherwise libtorch fills new memory with NaN, which costs a pass over it.
		context.setDeterministicFillUninitializedMemory(false);
#endif
		context.setDeterministicCuDNN(config->deterministic);
		context.setBenchmarkCuDNN(config->cudnn_benchmark);
		context.setAllowTF32CuBLAS(tf32);
		context.setAllowTF32CuDNN(tf32);
		at::manual_seed(config->seed);
	});
}

const char *rfl_torch_cast_missing(enum rfl_device device, enum rfl_cast cast)
{
	if (cast == RFL_CAST_FP16 && device == RFL_DEVICE_CPU && !TORCH_AT_LEAST(2, 3))
		return "float16 on a CPU needs libtorch 2.3 or newer; use bf16";
	if (cast != RFL_CAST_OFF && device == RFL_DEVICE_MPS && !TORCH_AT_LEAST(2, 5))
		return "autocast on MPS needs libtorch 2.5 or newer; use fp32";
	return nullptr;
}

// Since libtorch 2.4, one interface serves all devices.
static void enable_cast(enum rfl_device device, enum rfl_cast cast, bool on)
{
	const at::ScalarType type = cast == RFL_CAST_BF16 ? at::kBFloat16 : at::kHalf;

#if TORCH_AT_LEAST(2, 4)
	static constexpr at::DeviceType types[] = { at::kCPU, at::kCUDA, at::kMPS };

	at::autocast::set_autocast_enabled(types[device], on);
	if (on)
		at::autocast::set_autocast_dtype(types[device], type);
#else
	TORCH_CHECK(device != RFL_DEVICE_MPS, "this libtorch has no autocast for MPS");
	if (device == RFL_DEVICE_CPU) {
		at::autocast::set_cpu_enabled(on);
		if (on)
			at::autocast::set_autocast_cpu_dtype(type);
	} else {
		at::autocast::set_enabled(on);
		if (on)
			at::autocast::set_autocast_gpu_dtype(type);
	}
#endif
}

enum rfl_rc rfl_torch_forward_begin(const rfl_engine *e, struct rfl_err *err)
{
	return guarded("autocast", err, [&] {
		c10::GradMode::set_enabled(e->mode != RFL_ENGINE_EVAL);
		if (e->cast == RFL_CAST_OFF)
			return;
		enable_cast(e->config.device, e->cast, true);
		at::autocast::set_autocast_cache_enabled(true);
		at::autocast::increment_nesting();
	});
}

enum rfl_rc rfl_torch_forward_end(const rfl_engine *e, struct rfl_err *err)
{
	return guarded("autocast", err, [&] {
		c10::GradMode::set_enabled(false);
		if (e->cast == RFL_CAST_OFF)
			return;
		if (at::autocast::decrement_nesting() == 0)
			at::autocast::clear_cache();
		enable_cast(e->config.device, e->cast, false);
	});
}

// ------------------------------------------------------------------ tensors

static at::Tensor wrap(const void *memory, int64_t ndim, const int64_t *sizes,
		       const int64_t *strides, enum rfl_torch_type type)
{
	static constexpr at::ScalarType types[] = { at::kFloat, at::kByte, at::kLong };
	const at::IntArrayRef shape(sizes, static_cast<size_t>(ndim));
	void *const data = const_cast<void *>(memory);

	if (!strides)
		return at::from_blob(data, shape, types[type]);
	return at::from_blob(data, shape, at::IntArrayRef(strides, shape.size()), types[type]);
}

enum rfl_rc rfl_torch_wrap(const void *data, enum rfl_torch_type type, int ndim,
			   const int64_t *sizes, const int64_t *strides, rfl_torch_tensor **ret,
			   const char *what, struct rfl_err *err)
{
	return giving(ret, what, err, [&] { return wrap(data, ndim, sizes, strides, type); });
}

enum rfl_rc rfl_torch_table(const float *values, enum rfl_torch_type type, int ndim,
			    const int64_t *sizes, const rfl_torch_tensor *like,
			    rfl_torch_tensor **ret, const char *what, struct rfl_err *err)
{
	static constexpr at::ScalarType types[] = { at::kFloat, at::kByte, at::kLong, at::kBool };

	return giving(ret, what, err, [&] {
		return wrap(values, ndim, sizes, nullptr, RFL_TORCH_F32)
			.to(like->t.device(), types[type], false, true);
	});
}

// For autograd, a leaf is not a view of the block, so a change to it does not affect the others.
enum rfl_rc rfl_torch_leaf(const rfl_torch_tensor *block, int64_t offset, int ndim,
			   const int64_t *sizes, const int64_t *strides, bool requires_grad,
			   rfl_torch_tensor **ret, const char *what, struct rfl_err *err)
{
	return giving(ret, what, err, [&] {
		const at::IntArrayRef shape(sizes, static_cast<size_t>(ndim));
		int64_t numel = 1;

		for (const int64_t size : shape)
			numel *= size;
		const at::Tensor flat = block->t.slice(0, offset, offset + numel);
		at::Tensor t =
			strides ? flat.as_strided(shape, at::IntArrayRef(strides, shape.size()))
				: flat.view(shape);

		t = t.variable_data();
		return t.requires_grad_(requires_grad);
	});
}

enum rfl_rc rfl_torch_tensor_as(const rfl_torch_tensor *from, enum rfl_torch_form form,
				rfl_torch_tensor **ret, const char *what, struct rfl_err *err)
{
	return giving(ret, what, err, [&]() -> at::Tensor {
		const at::Tensor &t = from->t;

		switch (form) {
		case RFL_TORCH_COPIED:
			return t.detach().clone();
		case RFL_TORCH_NCHW:
			return t.contiguous();
		case RFL_TORCH_NHWC:
			return t.contiguous(at::MemoryFormat::ChannelsLast);
		case RFL_TORCH_PLAIN:
			return t.detach().to(at::kCPU, at::kFloat).contiguous();
		case RFL_TORCH_SAME:
			break;
		}
		return t;
	});
}

enum rfl_rc rfl_torch_tensor_copy(rfl_torch_tensor *to, const rfl_torch_tensor *from,
				  struct rfl_err *err)
{
	return guarded("inputs", err, [&] { to->t.detach().copy_(from->t.detach()); });
}

void rfl_torch_tensor_free(rfl_torch_tensor *t)
{
	delete t;
}

bool rfl_torch_tensor_is_channels_last(const rfl_torch_tensor *t)
{
	return t->t.dim() != 4 || t->t.is_contiguous(at::MemoryFormat::ChannelsLast);
}

const float *rfl_torch_tensor_data(const rfl_torch_tensor *t, int64_t *numel)
{
	*numel = t->t.numel();
	return static_cast<const float *>(t->t.data_ptr());
}

double rfl_torch_tensor_bytes(const rfl_torch_tensor *t)
{
	return t ? static_cast<double>(t->t.nbytes()) : 0;
}

// ------------------------------------------------------------------ values for the caller

// Wrap the caller's memory in a tensor of the same shape as t.
static at::Tensor in_shape_of(const at::Tensor &t, const float *memory, int64_t numel)
{
	TORCH_CHECK(t.numel() == numel, "the tensor has ", t.numel(), " elements, not ", numel);
	return wrap(memory, t.dim(), t.sizes().data(), nullptr, RFL_TORCH_F32);
}

static enum rfl_rc check_param(const rfl_engine *e, int param, int64_t numel, struct rfl_err *err)
{
	if (param < 0 || param >= e->net->nparams)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: parameter %d does not exist", param);
	if (numel != e->net->params[param].numel)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s has %lld elements, not %lld",
				e->net->params[param].name,
				static_cast<long long>(e->net->params[param].numel),
				static_cast<long long>(numel));
	return RFL_OK;
}

enum rfl_rc rfl_torch__set_param(rfl_engine *e, int param, const float *values, int64_t numel,
				 struct rfl_err *err)
{
	const enum rfl_rc rc = check_param(e, param, numel, err);

	return rc ? rc : guarded(e->net->params[param].name, err, [&] {
		const at::Tensor t = e->param[param]->t.detach();

		t.copy_(in_shape_of(t, values, numel));
	});
}

enum rfl_rc rfl_torch__get_param(rfl_engine *e, int param, float *out, int64_t numel,
				 struct rfl_err *err)
{
	const enum rfl_rc rc = check_param(e, param, numel, err);

	return rc ? rc : guarded(e->net->params[param].name, err, [&] {
		const at::Tensor t = e->param[param]->t.detach();

		in_shape_of(t, out, numel).copy_(t);
	});
}

enum rfl_rc rfl_torch__get_grad(rfl_engine *e, int param, float *out, int64_t numel,
				struct rfl_err *err)
{
	int64_t skipped;
	double scale = 1; // before the step, gradients are multiplied by the loss scale
	enum rfl_rc rc = check_param(e, param, numel, err);

	if (rc)
		return rc;
	const rfl_param &p = e->net->params[param];
	const char *why = rfl_param_is_buffer(p.kind) ? "is a buffer and has no gradient"
			  : !e->has_grads ? "gradients exist only between backward and step"
			  : !e->param[param]->t.grad().defined() ? "has no gradient"
								 : nullptr;

	if (why)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: %s: %s", p.name, why);
	if (e->scaled)
		rc = rfl_torch_optim_scaling(e->optim, &scale, &skipped, err);
	return rc ? rc : guarded(p.name, err, [&] {
		const at::Tensor grad = e->param[param]->t.grad();

		in_shape_of(grad, out, numel).copy_(grad);
		for (int64_t i = 0; i < numel && e->scaled; i++)
			out[i] = static_cast<float>(static_cast<double>(out[i]) / scale);
	});
}

enum rfl_rc rfl_torch__loss(rfl_engine *e, double *ret, struct rfl_err *err)
{
	if (!e->loss)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no loss; run forward first");
	return guarded("loss", err, [&] { *ret = e->loss->t.item().toDouble(); });
}

enum rfl_rc rfl_torch__logits(rfl_engine *e, float *out, int64_t numel, struct rfl_err *err)
{
	if (!e->logits)
		return rfl_fail(err, RFL_EINVAL, 0, "torch: no logits; run forward first");
	return guarded("logits", err, [&] {
		const at::Tensor t = e->logits->t.detach();

		in_shape_of(t, out, numel).copy_(t);
	});
}

// ------------------------------------------------------------------ batches

namespace
{

/* The results of the formula for the 256 values of each channel. A lookup keeps the formula's
 * rounding. */
using table = std::array<std::array<float, 256>, 3>;

// Strides, in elements.
struct steps {
	int64_t image, channel, pixel;

	steps(const at::Tensor &t, bool channels_last)
	{
		const int64_t channels = t.size(1), pixels = t.size(2) * t.size(3);

		image = channels * pixels;
		channel = channels_last ? 1 : pixels;
		pixel = channels_last ? channels : 1;
	}
};

at::Tensor normalize_here(const at::Tensor &pixels, const struct rfl_pixel_scale &scale,
			  at::MemoryFormat format)
{
	const bool plain = pixels.is_contiguous();
	const at::Tensor from = plain ? pixels : pixels.contiguous(at::MemoryFormat::ChannelsLast);
	const at::Tensor to = at::empty(pixels.sizes(), pixels.options().dtype(at::kFloat), format);
	const int64_t channels = from.size(1), rows = from.size(2), width = from.size(3);
	const steps in(from, !plain), out(to, format == at::MemoryFormat::ChannelsLast);
	const uint8_t *const bytes = from.data_ptr<uint8_t>();
	float *const values = to.data_ptr<float>();
	table t = {};

	for (size_t c = 0; c < static_cast<size_t>(channels); c++)
		for (size_t v = 0; v < t[c].size(); v++)
			t[c][v] = (static_cast<float>(v) / 255.0F - scale.mean[c]) / scale.std[c];
	at::parallel_for(0, from.size(0) * rows, 16, [&](int64_t begin, int64_t end) {
		for (int64_t i = begin; i < end; i++) {
			const int64_t image = i / rows, first = i % rows * width;

			for (int64_t c = 0; c < channels; c++) {
				const uint8_t *p = bytes + image * in.image + c * in.channel +
						   first * in.pixel;
				float *v = values + image * out.image + c * out.channel +
					   first * out.pixel;
				const auto &results = t[static_cast<size_t>(c)];

				for (int64_t x = 0; x < width; x++)
					v[x * out.pixel] = results[p[x * in.pixel]];
			}
		}
	});
	return to;
}

/* Compute (v - 255 mean) / (255 std) with kernels of the device. The constants are filled in on the
 * device: copying them from the host would wait for all queued work. */
at::Tensor normalize_there(const at::Tensor &pixels, const struct rfl_pixel_scale &scale,
			   at::MemoryFormat format)
{
	const int64_t channels = pixels.size(1);
	const at::Tensor both =
		at::empty({ 2, channels, 1, 1 }, pixels.options().dtype(at::kFloat));

	for (int64_t c = 0; c < channels; c++) {
		both[0][c].fill_(255.0F * scale.mean[c]);
		both[1][c].fill_(1.0F / (255.0F * scale.std[c]));
	}
	return pixels.contiguous(format).sub(both[0]).mul_(both[1]);
}

} // namespace

enum rfl_rc rfl_torch_normalize(const rfl_torch_tensor *pixels, const struct rfl_pixel_scale *scale,
				bool channels_last, rfl_torch_tensor **ret, struct rfl_err *err)
{
	return giving(ret, "inputs", err, [&] {
		const auto format = channels_last ? at::MemoryFormat::ChannelsLast
						  : at::MemoryFormat::Contiguous;

		return pixels->t.is_cpu() ? normalize_here(pixels->t, *scale, format)
					  : normalize_there(pixels->t, *scale, format);
	});
}
