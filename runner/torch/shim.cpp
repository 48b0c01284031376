/*
 * shim.cpp - libtorch as plain C: errors, the library as a whole, tensors. Operations are
 * in shim_ops.cpp, the optimizer is in shim_optim.cpp. The shim is the only C++ of the
 * project.
 */
#include "runner/torch/shim_impl.hpp"
#include "runner/torch/words.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/GradMode.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

using namespace rfl_torch;

namespace
{

// ------------------------------------------------------------------ errors

// A fixed buffer: recording a failure must not allocate.
thread_local std::array<char, 2048> last_error = {};

} // namespace

void rfl_torch::remember(const char *text) noexcept
{
	const size_t n = std::min(std::strlen(text), last_error.size() - 1);

	std::memcpy(last_error.data(), text, n);
	last_error[n] = '\0';
	for (char *c = last_error.data(); *c; c++)
		if (*c == '\n')
			*c = ' ';
}

enum rfl_torch_status rfl_torch::classify(const char *text) noexcept
{
	remember(text);
	return rfl_torch_meaning(text);
}

namespace
{

at::Tensor wrap(const void *memory, int64_t ndim, const int64_t *sizes, const int64_t *strides,
		at::ScalarType type)
{
	const at::IntArrayRef shape(sizes, static_cast<size_t>(ndim));
	void *const data = const_cast<void *>(memory);
	const auto options = at::TensorOptions().dtype(type);

	if (!strides)
		return at::from_blob(data, shape, options);
	return at::from_blob(data, shape, at::IntArrayRef(strides, static_cast<size_t>(ndim)),
			     options);
}

void require_numel(const at::Tensor &t, int64_t numel)
{
	TORCH_CHECK(t.numel() == numel, "the tensor has ", t.numel(), " elements, not ", numel);
}

} // namespace

// ------------------------------------------------------------------ the library

const char *rfl_torch_error(void) noexcept
{
	return last_error.data();
}

const char *rfl_torch_built_version(void) noexcept
{
	return TEXT(TORCH_VERSION_MAJOR) "." TEXT(TORCH_VERSION_MINOR);
}

const char *rfl_torch_library_version(void) noexcept
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

const char *rfl_torch_describe(void) noexcept
{
	static thread_local std::string text;

	if (guarded([] { text = at::get_parallel_info() + at::show_config(); }) != RFL_TORCH_OK)
		return "";
	return text.c_str();
}

enum rfl_torch_status rfl_torch_set_threads(int threads) noexcept
{
	return guarded([&] {
		if (at::get_num_interop_threads() != 1)
			(void)guarded([] { at::set_num_interop_threads(1); });
		at::set_num_threads(threads);
	});
}

int rfl_torch_get_threads(void) noexcept
{
	int threads = 0;

	(void)guarded([&] { threads = at::get_num_threads(); });
	return threads;
}

enum rfl_torch_status rfl_torch_seed(uint64_t seed) noexcept
{
	return guarded([&] { at::manual_seed(seed); });
}

void rfl_torch_set_grad_mode(int on) noexcept
{
	c10::GradMode::set_enabled(on != 0);
}

enum rfl_torch_status rfl_torch_random_save(const struct rfl_torch_tensor *where,
					    struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		at::Generator generator = at::globalContext().defaultGenerator(where->t.device());
		const std::lock_guard<std::mutex> lock(generator.mutex());

		return generator.get_state();
	});
}

enum rfl_torch_status rfl_torch_random_restore(const struct rfl_torch_tensor *where,
					       const struct rfl_torch_tensor *state) noexcept
{
	return guarded([&] {
		at::Generator generator = at::globalContext().defaultGenerator(where->t.device());
		const std::lock_guard<std::mutex> lock(generator.mutex());

		generator.set_state(state->t);
	});
}

// ------------------------------------------------------------------ tensors

enum rfl_torch_status rfl_torch_wrap(const void *data, enum rfl_torch_type type, int ndim,
				     const int64_t *sizes, const int64_t *strides,
				     struct rfl_torch_tensor **ret) noexcept
{
	static constexpr at::ScalarType types[] = { at::kFloat, at::kByte, at::kLong };

	return giving(ret, [&] { return wrap(data, ndim, sizes, strides, types[type]); });
}

// No view of the block for autograd: a change of one leaf is none of the others.
enum rfl_torch_status rfl_torch_leaf(const struct rfl_torch_tensor *block, int64_t offset, int ndim,
				     const int64_t *sizes, const int64_t *strides,
				     int requires_grad, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		const at::IntArrayRef shape(sizes, static_cast<size_t>(ndim));
		int64_t numel = 1;

		for (const int64_t size : shape)
			numel *= size;
		const at::Tensor flat = block->t.slice(0, offset, offset + numel);
		at::Tensor t =
			strides ? flat.as_strided(shape, at::IntArrayRef(strides, shape.size()))
				: flat.view(shape);

		t = t.variable_data();
		return t.requires_grad_(requires_grad != 0);
	});
}

enum rfl_torch_status rfl_torch_tensor_clone(const struct rfl_torch_tensor *t,
					     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return t->t.detach().clone(); });
}

enum rfl_torch_status rfl_torch_tensor_copy(struct rfl_torch_tensor *to,
					    const struct rfl_torch_tensor *from) noexcept
{
	return guarded([&] { to->t.detach().copy_(from->t.detach()); });
}

void rfl_torch_tensor_free(struct rfl_torch_tensor *t) noexcept
{
	delete t;
}

enum rfl_torch_status rfl_torch_tensor_dup(const struct rfl_torch_tensor *t,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return t->t; });
}

enum rfl_torch_status rfl_torch_tensor_detach(const struct rfl_torch_tensor *t,
					      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return t->t.detach(); });
}

enum rfl_torch_status rfl_torch_tensor_contiguous(const struct rfl_torch_tensor *t,
						  struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return t->t.contiguous(); });
}

enum rfl_torch_status rfl_torch_tensor_channels_last(const struct rfl_torch_tensor *t,
						     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return t->t.contiguous(at::MemoryFormat::ChannelsLast); });
}

int rfl_torch_tensor_is_channels_last(const struct rfl_torch_tensor *t) noexcept
{
	int yes = 0;

	(void)guarded([&] {
		yes = t->t.dim() != 4 || t->t.is_contiguous(at::MemoryFormat::ChannelsLast);
	});
	return yes;
}

enum rfl_torch_status rfl_torch_tensor_plain(const struct rfl_torch_tensor *t,
					     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return t->t.detach().to(at::kCPU, at::kFloat).contiguous(); });
}

const float *rfl_torch_tensor_data(const struct rfl_torch_tensor *t) noexcept
{
	return static_cast<const float *>(t->t.data_ptr());
}

int64_t rfl_torch_tensor_numel(const struct rfl_torch_tensor *t) noexcept
{
	return t->t.numel();
}

enum rfl_torch_status rfl_torch_tensor_read(const struct rfl_torch_tensor *t, float *out,
					    int64_t numel) noexcept
{
	return guarded([&] {
		require_numel(t->t, numel);
		wrap(out, t->t.dim(), t->t.sizes().data(), nullptr, at::kFloat)
			.copy_(t->t.detach());
	});
}

enum rfl_torch_status rfl_torch_tensor_write(struct rfl_torch_tensor *t, const float *values,
					     int64_t numel) noexcept
{
	return guarded([&] {
		require_numel(t->t, numel);
		t->t.detach().copy_(
			wrap(values, t->t.dim(), t->t.sizes().data(), nullptr, at::kFloat));
	});
}

enum rfl_torch_status rfl_torch_tensor_item(const struct rfl_torch_tensor *t, double *ret) noexcept
{
	return guarded([&] { *ret = t->t.item().toDouble(); });
}

enum rfl_torch_status rfl_torch_tensor_grad(const struct rfl_torch_tensor *t,
					    struct rfl_torch_tensor **ret) noexcept
{
	return guarded([&] {
		const at::Tensor &grad = t->t.grad();

		*ret = grad.defined() ? new rfl_torch_tensor{ grad } : nullptr;
	});
}
