/*
 * torch_shim.cpp - libtorch behind plain C: the only C++ file of the project. Each function is one
 * call into ATen inside guarded(), which turns every exception into a status and a text.
 *
 * Compiles against libtorch 1.13 and 2.x; what differs between them is under TORCH_AT_LEAST.
 */
#include "runner/torch_shim.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#define TORCH_AT_LEAST(major, minor)      \
	(TORCH_VERSION_MAJOR > (major) || \
	 (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// A fused update of all parameters that runs on the CPU as well.
#define HAVE_FUSED_SGD TORCH_AT_LEAST(2, 4)

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

struct rfl_torch_tensor {
	at::Tensor t;
};

namespace
{

// ------------------------------------------------------------------ errors

// A fixed buffer: recording a failure must not allocate.
thread_local std::array<char, 2048> last_error = {};

void remember(const char *text) noexcept
{
	const size_t n = std::min(std::strlen(text), last_error.size() - 1);

	std::memcpy(last_error.data(), text, n);
	last_error[n] = '\0';
	for (char *c = last_error.data(); *c; c++)
		if (*c == '\n')
			*c = ' ';
}

// The CPU allocator and the vendors' libraries report memory in words only.
bool says_out_of_memory(const char *text) noexcept
{
	static const char *const words[] = {
		"can't allocate memory",  "out of memory", "not enough memory",
		"Cannot allocate memory", "ALLOC_FAILED",
	};

	for (const char *word : words)
		if (std::strstr(text, word))
			return true;
	return false;
}

enum rfl_torch_status classify(const char *text) noexcept
{
	remember(text);
	return says_out_of_memory(text) ? RFL_TORCH_NOMEM : RFL_TORCH_FAILED;
}

template <typename Body> enum rfl_torch_status guarded(Body &&body) noexcept
{
	try {
		body();
		return RFL_TORCH_OK;
	} catch (const c10::OutOfMemoryError &e) {
		remember(e.what_without_backtrace());
		return RFL_TORCH_NOMEM;
	} catch (const c10::Error &e) {
		return classify(e.what_without_backtrace());
	} catch (const std::bad_alloc &) {
		remember("out of memory");
		return RFL_TORCH_NOMEM;
	} catch (const std::exception &e) {
		return classify(e.what());
	} catch (...) {
		remember("an exception of unknown type");
		return RFL_TORCH_FAILED;
	}
}

// Runs an expression that gives a tensor and hands it out.
template <typename Body>
enum rfl_torch_status giving(struct rfl_torch_tensor **ret, Body &&body) noexcept
{
	return guarded([&] { *ret = new rfl_torch_tensor{ body() }; });
}

// ------------------------------------------------------------------ small helpers

using optional_tensor = c10::optional<at::Tensor>;

optional_tensor maybe(const struct rfl_torch_tensor *t)
{
	return t ? optional_tensor(t->t) : optional_tensor();
}

at::Tensor wrap(void *data, int ndim, const int64_t *sizes, const int64_t *strides,
		at::ScalarType type)
{
	const at::IntArrayRef shape(sizes, static_cast<size_t>(ndim));
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

enum rfl_torch_status rfl_torch_set_deterministic(int on) noexcept
{
	return guarded([&] { at::globalContext().setDeterministicAlgorithms(on != 0, false); });
}

void rfl_torch_set_grad_mode(int on) noexcept
{
	c10::GradMode::set_enabled(on != 0);
}

enum rfl_torch_status rfl_torch_random_save(struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [] {
		at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
		const std::lock_guard<std::mutex> lock(generator.mutex());

		return generator.get_state();
	});
}

enum rfl_torch_status rfl_torch_random_restore(const struct rfl_torch_tensor *state) noexcept
{
	return guarded([&] {
		at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
		const std::lock_guard<std::mutex> lock(generator.mutex());

		generator.set_state(state->t);
	});
}

// ------------------------------------------------------------------ tensors

enum rfl_torch_status rfl_torch_wrap_f32(float *data, int ndim, const int64_t *sizes,
					 const int64_t *strides, int requires_grad,
					 struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		at::Tensor t = wrap(data, ndim, sizes, strides, at::kFloat);

		if (requires_grad)
			t.requires_grad_(true);
		return t;
	});
}

enum rfl_torch_status rfl_torch_wrap_i64(int64_t *data, int64_t n,
					 struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return wrap(data, 1, &n, nullptr, at::kLong); });
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
		t->t.detach().copy_(wrap(const_cast<float *>(values), t->t.dim(),
					 t->t.sizes().data(), nullptr, at::kFloat));
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

// ------------------------------------------------------------------ operations

enum rfl_torch_status rfl_torch_conv2d(const struct rfl_torch_tensor *x,
				       const struct rfl_torch_tensor *weight,
				       const struct rfl_torch_tensor *bias,
				       const struct rfl_conv2d *a,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::conv2d(x->t, weight->t, maybe(bias), { a->stride_h, a->stride_w },
				  { a->pad_h, a->pad_w }, { a->dilation_h, a->dilation_w },
				  a->groups);
	});
}

enum rfl_torch_status rfl_torch_batch_norm(const struct rfl_torch_tensor *x,
					   const struct rfl_torch_norm *norm,
					   const struct rfl_batch_norm *attr, int training,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::batch_norm(x->t, maybe(norm->weight), maybe(norm->bias),
				      maybe(norm->running_mean), maybe(norm->running_var),
				      training != 0, attr->momentum, attr->eps,
				      at::globalContext().userEnabledCuDNN());
	});
}

enum rfl_torch_status rfl_torch_relu(struct rfl_torch_tensor *x, int inplace,
				     struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return inplace ? at::relu_(x->t) : at::relu(x->t); });
}

enum rfl_torch_status rfl_torch_relu6(struct rfl_torch_tensor *x, int inplace,
				      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return inplace ? at::hardtanh_(x->t, 0, 6) : at::hardtanh(x->t, 0, 6);
	});
}

enum rfl_torch_status rfl_torch_max_pool2d(const struct rfl_torch_tensor *x,
					   const struct rfl_pool *a,
					   struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return at::max_pool2d(x->t, { a->kernel_h, a->kernel_w },
				      { a->stride_h, a->stride_w }, { a->pad_h, a->pad_w },
				      { 1, 1 }, a->ceil_mode);
	});
}

enum rfl_torch_status rfl_torch_adaptive_avg_pool2d(const struct rfl_torch_tensor *x,
						    const struct rfl_adaptive_pool *a,
						    struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::adaptive_avg_pool2d(x->t, { a->out_h, a->out_w }); });
}

enum rfl_torch_status rfl_torch_linear(const struct rfl_torch_tensor *x,
				       const struct rfl_torch_tensor *weight,
				       const struct rfl_torch_tensor *bias,
				       struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::linear(x->t, weight->t, maybe(bias)); });
}

enum rfl_torch_status rfl_torch_dropout(struct rfl_torch_tensor *x, double probability, int inplace,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		return inplace ? at::dropout_(x->t, probability, true)
			       : at::dropout(x->t, probability, true);
	});
}

enum rfl_torch_status rfl_torch_flatten(const struct rfl_torch_tensor *x,
					struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::flatten(x->t, 1); });
}

enum rfl_torch_status rfl_torch_add(struct rfl_torch_tensor *a, const struct rfl_torch_tensor *b,
				    int inplace, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return inplace ? a->t.add_(b->t) : at::add(a->t, b->t); });
}

enum rfl_torch_status rfl_torch_cross_entropy(const struct rfl_torch_tensor *logits,
					      const struct rfl_torch_tensor *labels,
					      struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] { return at::cross_entropy_loss(logits->t, labels->t); });
}

enum rfl_torch_status rfl_torch_backward(const struct rfl_torch_tensor *loss) noexcept
{
	return guarded([&] { loss->t.backward(); });
}

namespace
{

// Tells somebody, and leaves the gradients as they are.
struct told final : public torch::autograd::FunctionPreHook {
	void (*fn)(void *ctx);
	void *ctx;

	told(void (*f)(void *), void *c) : fn(f), ctx(c)
	{
	}
	torch::autograd::variable_list
	operator()(const torch::autograd::variable_list &grads) override
	{
		fn(ctx);
		return grads;
	}
};

} // namespace

const void *rfl_torch_tensor_history(const struct rfl_torch_tensor *t) noexcept
{
	const void *history = nullptr;

	(void)guarded([&] { history = t->t.grad_fn().get(); });
	return history;
}

enum rfl_torch_status rfl_torch_on_backward(const struct rfl_torch_tensor *t, void (*fn)(void *ctx),
					    void *ctx) noexcept
{
	return guarded([&] {
		const auto &made_by = t->t.grad_fn();

		TORCH_CHECK(made_by, "the tensor has no history");
		made_by->add_pre_hook(std::make_unique<told>(fn, ctx));
	});
}

void rfl_torch_set_backward_here(int on) noexcept
{
	// Before 2.0 the engine has no such switch; there only the CPU's work is done here.
#if TORCH_AT_LEAST(2, 0)
	c10::AutogradState::get_tls_state().set_multithreading_enabled(on == 0);
#else
	(void)on;
#endif
}

// ------------------------------------------------------------------ optimizer

namespace
{

// The same elements at the same places: strides of dimensions with one element do not matter.
bool same_order(const at::Tensor &a, const at::Tensor &b)
{
	for (int64_t d = 0; d < a.dim(); d++)
		if (a.size(d) > 1 && a.stride(d) != b.stride(d))
			return false;
	return true;
}

// Gradients in the order of their parameters, so that both can be walked as flat memory.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor> &params)
{
	std::vector<at::Tensor> grads;

	grads.reserve(params.size());
	for (const at::Tensor &p : params) {
		const at::Tensor &g = p.grad();

		TORCH_CHECK(g.defined(), "a parameter has no gradient: run backward first");
		grads.push_back(same_order(g, p) ? g : at::empty_like(p).copy_(g));
	}
	return grads;
}

#if !HAVE_FUSED_SGD

// Without a fused update SGD is four passes over parameters, gradients and momentum. Running them
// group by group keeps a group in the cache between the passes; the values are the same.
constexpr int64_t group_numel = int64_t(1) << 17;

// A run of consecutive parameters, or a slice of a long one.
struct group {
	size_t first, count;
	int64_t offset, numel; // of the slice; numel 0: whole tensors
};

std::vector<group> make_groups(const std::vector<at::Tensor> &params)
{
	std::vector<group> groups;
	int64_t filled = group_numel; // so that the first tensor opens a group

	for (size_t i = 0; i < params.size(); i++) {
		const int64_t n = params[i].numel();

		if (n > 2 * group_numel && params[i].is_non_overlapping_and_dense()) {
			for (int64_t at = 0; at < n; at += group_numel)
				groups.push_back({ i, 1, at, std::min(group_numel, n - at) });
			filled = group_numel;
			continue;
		}
		if (filled + n > group_numel) {
			groups.push_back({ i, 0, 0, 0 });
			filled = 0;
		}
		groups.back().count++;
		filled += n;
	}
	return groups;
}

// The tensors of a group, or its slice of one tensor's memory.
std::vector<at::Tensor> members(const std::vector<at::Tensor> &all, const group &g)
{
	if (g.numel > 0) {
		const at::Tensor &t = all[g.first];

		return { t.as_strided({ g.numel }, { 1 }, t.storage_offset() + g.offset) };
	}
	return { all.begin() + static_cast<std::ptrdiff_t>(g.first),
		 all.begin() + static_cast<std::ptrdiff_t>(g.first + g.count) };
}

#endif

} // namespace

struct rfl_torch_sgd {
	std::vector<at::Tensor> params;
	std::vector<at::Tensor> momentum; // empty before the first step
#if !HAVE_FUSED_SGD
	std::vector<group> groups;
#endif
};

enum rfl_torch_status rfl_torch_sgd_new(struct rfl_torch_tensor *const *params, size_t n,
					struct rfl_torch_sgd **ret) noexcept
{
	return guarded([&] {
		auto sgd = std::make_unique<rfl_torch_sgd>();

		for (size_t i = 0; i < n; i++)
			sgd->params.push_back(params[i]->t);
#if !HAVE_FUSED_SGD
		sgd->groups = make_groups(sgd->params);
#endif
		*ret = sgd.release();
	});
}

void rfl_torch_sgd_free(struct rfl_torch_sgd *sgd) noexcept
{
	delete sgd;
}

void rfl_torch_sgd_zero_grad(struct rfl_torch_sgd *sgd) noexcept
{
	(void)guarded([&] {
		for (at::Tensor &p : sgd->params)
			p.mutable_grad().reset();
	});
}

void rfl_torch_sgd_reset(struct rfl_torch_sgd *sgd) noexcept
{
	rfl_torch_sgd_zero_grad(sgd);
	sgd->momentum.clear();
}

struct rfl_torch_sgd_state {
	std::vector<at::Tensor> momentum;
};

enum rfl_torch_status rfl_torch_sgd_save(const struct rfl_torch_sgd *sgd,
					 struct rfl_torch_sgd_state **ret) noexcept
{
	return guarded([&] {
		auto state = std::make_unique<rfl_torch_sgd_state>();

		for (const at::Tensor &m : sgd->momentum)
			state->momentum.push_back(m.clone());
		*ret = state.release();
	});
}

// Into the memory that is there, so that a restored step runs on the same addresses.
enum rfl_torch_status rfl_torch_sgd_restore(struct rfl_torch_sgd *sgd,
					    const struct rfl_torch_sgd_state *state) noexcept
{
	return guarded([&] {
		if (state->momentum.empty()) {
			sgd->momentum.clear();
			return;
		}
		if (sgd->momentum.empty())
			for (const at::Tensor &m : state->momentum)
				sgd->momentum.push_back(at::empty_like(m));
		for (size_t i = 0; i < state->momentum.size(); i++)
			sgd->momentum[i].copy_(state->momentum[i]);
	});
}

void rfl_torch_sgd_state_free(struct rfl_torch_sgd_state *state) noexcept
{
	delete state;
}

#if HAVE_FUSED_SGD

const char *rfl_torch_sgd_kind(void) noexcept
{
	return "fused";
}

enum rfl_torch_status rfl_torch_sgd_step(struct rfl_torch_sgd *sgd, double lr, double momentum,
					 double weight_decay) noexcept
{
	return guarded([&] {
		const at::NoGradGuard no_grad;
		const std::vector<at::Tensor> grads = gradients(sgd->params);
		const bool first = sgd->momentum.empty();

		if (momentum != 0 && first)
			for (const at::Tensor &p : sgd->params)
				sgd->momentum.push_back(at::empty_like(p));
		at::_fused_sgd_(sgd->params, grads, sgd->momentum, weight_decay, momentum, lr,
				/*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false, first);
	});
}

#else

const char *rfl_torch_sgd_kind(void) noexcept
{
	return "foreach";
}

static void step_group(const struct rfl_torch_sgd *sgd, const std::vector<at::Tensor> &grads,
		       const group &g, double lr, double momentum, double weight_decay)
{
	const std::vector<at::Tensor> p = members(sgd->params, g);
	std::vector<at::Tensor> d = members(grads, g);

	if (weight_decay != 0)
		at::_foreach_add_(d, p, weight_decay);
	if (momentum != 0 && !sgd->momentum.empty()) {
		std::vector<at::Tensor> m = members(sgd->momentum, g);

		at::_foreach_mul_(m, momentum);
		at::_foreach_add_(m, d);
		d = std::move(m);
	}
	at::_foreach_add_(p, d, -lr);
}

enum rfl_torch_status rfl_torch_sgd_step(struct rfl_torch_sgd *sgd, double lr, double momentum,
					 double weight_decay) noexcept
{
	return guarded([&] {
		const at::NoGradGuard no_grad;
		std::vector<at::Tensor> grads = gradients(sgd->params);

		for (const group &g : sgd->groups)
			step_group(sgd, grads, g, lr, momentum, weight_decay);
		// The momentum of the first step is its gradient: keep that memory.
		if (momentum != 0 && sgd->momentum.empty())
			sgd->momentum = std::move(grads);
	});
}

#endif
