/*
 * engine.hpp - the torch engine, the only C++ of the project: its state, and what its files share.
 * rfl_torch__<member>() implements a member of struct rfl_engine_ops.
 *
 * Failures are exceptions inside the engine. None leaves it: each member runs in guarded(), which
 * converts them to a code and a message. Parameters are float32, labels and tokens int64; autocast
 * decides the type of activations.
 *
 * Compiles against libtorch 1.13 and 2.x; TORCH_AT_LEAST guards the differences.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_HPP
#define RFL_RUNNER_TORCH_ENGINE_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/api/include/torch/version.h>

#include "runner/engine.h"
#include "runner/torch/engine_rules.h"

#define TORCH_AT_LEAST(major, minor)      \
	(TORCH_VERSION_MAJOR > (major) || \
	 (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// The members of struct rfl_engine_ops.
/* clang-format off */
#define RFL_TORCH__OPS(X) \
	X(probe) X(library_version) X(unsupported) X(open) X(close) X(set_mode) \
	X(set_optimizer) X(zero_grad) X(forward) \
	X(forward_traced) X(backward) X(step) \
	X(reset_optimizer) X(loss) X(logits) \
	X(set_param) X(get_param) X(get_grad) \
	X(param_data) X(sync) X(memory) \
	X(snapshot) X(restore) X(mark) X(device_info) \
	X(reset_memory) X(scaling) X(host_alloc) \
	X(host_free) X(upload) X(uploaded) \
	X(reserve_events) X(record_event) X(elapsed) X(capture) X(replay) X(join) \
	X(gather) X(optimizer_kernels) X(score) X(visit_state) X(watch_memory) X(generate)
/* clang-format on */

#define RFL_TORCH__DECLARE(member) \
	__typeof__(*((rfl_engine_ops *)nullptr)->member) rfl_torch__##member;
RFL_TORCH__OPS(RFL_TORCH__DECLARE)

namespace rfl_torch
{

using optional_tensor = c10::optional<at::Tensor>;
using tensors = std::vector<at::Tensor>;

struct failure {
	rfl_err err = RFL_ERR_INIT;

	failure() = default;
	// The message is "torch: " and the text.
	failure(rfl_rc rc, const char *fmt, ...) RFL_PRINTF(3, 4);
	/* The current exception. A failure remains as it is. Another exception is RFL_EFAILED,
	 * RFL_EDEVMEM if memory ran out, or RFL_EUNSUPPORTED if libtorch has no kernel for the
	 * operation, or no deterministic one; the message is "torch: WHAT: libtorch's text", or
	 * only the text if `what` is nullptr. */
	explicit failure(const char *what) noexcept;
};

// Run a body; convert its exceptions as failure(what) does.
template <typename Body> rfl_rc guarded(const char *what, rfl_err *err, Body &&body) noexcept
{
	try {
		body();
		return RFL_OK;
	} catch (...) {
		const failure f(what);

		return rfl_err_pass(err, &f.err);
	}
}

// Run a body whose failure does not matter.
template <typename Body> void attempt(Body &&body) noexcept
{
	(void)guarded(nullptr, nullptr, body);
}

// Run a part of a guarded body that is about something more specific.
template <typename Body> auto about(const char *what, Body &&body)
{
	try {
		return body();
	} catch (...) {
		throw failure(what);
	}
}

// Call a function of the caller, which is passed a record for its error.
template <typename Call> void checked(Call &&function)
{
	failure f;

	if (const rfl_rc rc = function(&f.err)) {
		f.err.rc = rc;
		throw f;
	}
}

// Counts the allocations of the CPU while it is the profiler state of a thread.
struct counter final : public c10::MemoryReportingInfoBase {
	std::mutex lock;
	double now = 0, peak = 0;

	void add(int64_t bytes)
	{
		const std::lock_guard<std::mutex> guard(lock);

		now += static_cast<double>(bytes);
		peak = std::max(peak, now);
	}
	// One of the two overrides the virtual function: the types of the totals depend on the
	// version.
	void reportMemoryUsage(void *, int64_t bytes, int64_t, int64_t, c10::Device)
	{
		add(bytes);
	}
	void reportMemoryUsage(void *, int64_t bytes, size_t, size_t, c10::Device)
	{
		add(bytes);
	}
	bool memoryProfilingEnabled() const override
	{
		return true;
	}
};

/* A device. Opening a GPU creates a stream and makes it the current stream of the calling thread:
 * all work of that thread is queued there; a second stream copies batches. The base class is the
 * CPU, which completes its work before a call returns; the classes of other devices override the
 * functions that differ. */
struct device {
	at::Device where = at::Device(at::kCPU);

	device() = default;
	device(const device &) = delete;
	device &operator=(const device &) = delete;
	virtual ~device() = default;

	virtual void sync()
	{
	}
	// Start to copy a host tensor, whose memory must not change until sync_copies().
	virtual at::Tensor copy(const at::Tensor &host)
	{
		return host;
	}
	// Make work that is queued from now on wait for the copy.
	virtual void use(const at::Tensor &)
	{
	}
	virtual void sync_copies()
	{
	}
	virtual void *host_alloc(size_t)
	{
		TORCH_CHECK_NOT_IMPLEMENTED(false, "requires a CUDA device, but this is ", where);
	}
	virtual void host_free(void *)
	{
	}
	virtual void reserve(size_t n)
	{
		clocks.resize(n);
	}
	virtual void record(size_t i)
	{
		clocks.at(i) = std::chrono::steady_clock::now();
	}
	virtual double elapsed(size_t from, size_t to)
	{
		return std::chrono::duration<double>(clocks.at(to) - clocks.at(from)).count();
	}
	// malloc has no statistics
	virtual rfl_engine_memory memory()
	{
		const double unknown = std::nan("");

		if (!count)
			return { unknown, unknown, unknown };
		const std::lock_guard<std::mutex> guard(count->lock);

		return { count->now, count->peak, unknown };
	}
	virtual void reset_memory()
	{
		if (!count)
			return;
		const std::lock_guard<std::mutex> guard(count->lock);

		count->peak = count->now;
	}
	virtual void watch(bool on, double held)
	{
		const auto kind = c10::DebugInfoKind::PROFILER_STATE;

		if (count)
			(void)c10::ThreadLocalDebugInfo::_pop(kind);
		count.reset();
		if (!on)
			return;
		count = std::make_shared<counter>();
		count->now = count->peak = held;
		c10::ThreadLocalDebugInfo::_push(kind, count);
	}
	// Fill in what is known, and the compute capability of an NVIDIA GPU: 80 is 8.0.
	virtual void facts(rfl_engine_device *, int *)
	{
	}
	/* Work queued between begin and end is recorded, not run. A device has one recording. If
	 * the end fails, some of the work cannot be recorded, and the recording is unusable. */
	virtual const char *graph_missing() const
	{
		return "recording requires a CUDA device";
	}
	virtual void graph_begin()
	{
		TORCH_CHECK(false, graph_missing());
	}
	virtual void graph_end()
	{
	}
	virtual void graph_replay()
	{
	}
	virtual void graph_drop()
	{
	}

      private:
	std::vector<std::chrono::steady_clock::time_point> clocks;
	std::shared_ptr<counter> count; // NULL: off
};

// Open the first visible device. Both throw the reason and the fix if it cannot be used.
std::unique_ptr<device> open_device(enum rfl_device device);
std::unique_ptr<device> open_cuda();
void require(enum rfl_device device);
void require_cuda();

/* This process as a member of a group. Without a library for groups, none is ever created. */
struct process_group {
	virtual ~process_group() = default;
	// Send each bucket of gradients as soon as the backward pass has completed it.
	virtual void begin() = 0;
	// Wait for the buckets and store the averages in the gradients.
	virtual void finish() = 0;
	virtual void gather(const double *mine, size_t n, double *all) = 0;
};

// PyTorch's GradScaler with its defaults. It runs on the device, so the host does not wait.
struct scaling {
	at::Tensor scale, good_steps, skipped;
	at::Tensor found; // 1: a gradient of this step is not finite

	explicit scaling(const at::Tensor &where)
	{
		const auto options = where.options().requires_grad(false);

		scale = at::full({}, 65536.0, options);
		good_steps = at::zeros({}, options.dtype(at::kInt));
		skipped = at::zeros({}, options);
		found = at::zeros({}, options);
	}
	// Divide the gradients by the scale, and check whether all of them are finite.
	void unscale(const tensors &grads)
	{
		found.zero_();
		at::_amp_foreach_non_finite_check_and_unscale_(grads, found, scale.reciprocal());
	}
	// Call after an update or a skipped update.
	void next()
	{
		skipped.add_(found);
		at::_amp_update_scale_(scale, good_steps, found, /*growth_factor=*/2.0,
				       /*backoff_factor=*/0.5, /*growth_interval=*/2000);
	}
	// The tensors that persist from one step to the next.
	tensors state() const
	{
		return { scale, good_steps, skipped };
	}
};

// Consecutive parameters, or a slice of a large parameter.
struct group {
	size_t first, count;
	int64_t offset, numel; // position and size of the slice; numel 0: whole tensors
};

struct optim_state {
	tensors mean, square; // SGD: mean is the momentum; empty before the first step
	tensors device_steps; // the steps of fused Adam: one tensor, or none
	int64_t steps = 0;
};

// The trained parameters and what an update needs.
struct optim {
	tensors params;
	std::vector<group> groups; // of the parameters with a gradient at the last step
	size_t grouped = 0;        // number of those parameters
	optim_state state;
	std::unique_ptr<scaling> scaler; // NULL: the loss is not scaled
};

// A copy of all state that a step changes.
struct snapshot {
	at::Tensor block, random;
	optim_state optim;
	tensors scale;
};

// A batch, ready for the first node.
struct pair {
	at::Tensor input, labels;
};

// A batch with its copy on the device. n 0: none.
struct copied {
	rfl_batch batch = {};
	pair io;
};

// A weight as 8-bit integers with a scale for each row.
struct int8_weight {
	at::Tensor values, scales;
};

// The memory of the parameters of a CPU; they are large, and huge pages make them fast.
struct slab {
	void *memory = nullptr;
	size_t bytes = 0;

	slab() = default;
	slab(const slab &) = delete;
	slab &operator=(const slab &) = delete;
	~slab();
};

// Two tensors of a node. Constants: cosines and sines of a rotation, else one table. Cache: keys
// and values.
using tables = std::array<at::Tensor, 2>;

} // namespace rfl_torch

struct rfl_engine {
	const rfl_engine_ops *ops;
	const rfl_net *net; // borrowed
	rfl_engine_config config;
	rfl_cast cast; // the precision's cast on this device
	bool fused;    // an update is one pass
	rfl_engine_mode mode = RFL_ENGINE_TRAIN;

	rfl_torch::slab slab; // empty for parameters that are not in host memory
	std::unique_ptr<rfl_torch::device> device;
	at::Tensor block;            // all parameters and buffers, each at a multiple of 64 bytes
	std::vector<int64_t> offset; // per parameter: its offset in the block, in elements
	rfl_torch::tensors param;    // per parameter: a leaf over its part of the block
	rfl_torch::optim optim;

	rfl_torch::tensors value;                 // per node: its output while it is needed
	std::vector<int> last_use;                // per node: the last node that reads it
	std::vector<rfl_torch::tables> tables;    // per node; empty before the first run
	double tables_bytes = 0;                  // a table of several nodes counts once
	at::Tensor loss, logits;                  // of the last forward pass
	int64_t past = 0;                         // tokens in the cache before this step
	std::vector<rfl_torch::tables> cache;     // per node: {n, heads, tokens, features}
	std::vector<rfl_torch::int8_weight> int8; // per parameter; undefined: not stored so
	at::Tensor next;                          // {n, 1}: the tokens with the largest logits
	at::Tensor score;          // sums since the last score(); undefined: no forward
	int64_t batch_n = 0;       // samples of the last batch
	double batch_bytes = 0;    // its size in host memory
	bool can_backward = false; // the last forward pass recorded its history
	bool has_grads = false;    // backward has run, but step has not
	bool layout_checked = false;
	int64_t updates = 0; // since the optimizer was created, reset or restored
	int64_t steps = 0;   // forward passes since the mode was set

	rfl_torch::copied ahead; // uploaded, but its forward pass has not run
	rfl_torch::copied kept;  // the last batch with an id
	/* A recorded step. Its kernels use fixed addresses: each batch is copied into `reads`, and
	 * gradients stay in the recorded memory. */
	struct {
		bool made = false;
		rfl_torch::copied reads; // batch.id 0: unknown contents
		at::Tensor loss, logits;
		bool backward = false, step = false;
	} recording;

	std::unique_ptr<rfl_torch::process_group> group; // NULL: a single process
	std::unique_ptr<rfl_torch::snapshot> saved;      // NULL: none
	struct {
		rfl_engine_mark_fn fn = nullptr; // NULL: off
		void *ctx = nullptr;
		std::vector<std::string> forward,
			backward;               // per node, then of the loss: "fwd/conv1"
		rfl_err failure = RFL_ERR_INIT; // of fn in backward: hooks cannot return it
	} marks;

	rfl_engine(const rfl_net *net, const rfl_engine_config &config, bool fused);
	~rfl_engine();

	bool is_cpu() const
	{
		return config.device == RFL_DEVICE_CPU;
	}
	bool caches() const // only generate() runs
	{
		return config.cache_tokens > 0;
	}
	at::ScalarType stored() const // the type of parameters
	{
		if (!caches() || config.precision == RFL_PRECISION_FP32 ||
		    config.precision == RFL_PRECISION_TF32)
			return at::kFloat;
		return config.precision == RFL_PRECISION_FP16 ? at::kHalf : at::kBFloat16;
	}
	bool scaled() const // the loss is scaled to prevent fp16 underflow
	{
		return cast == RFL_CAST_FP16;
	}
	// Free the loss and the logits of the last step.
	void forget_step()
	{
		loss.reset();
		logits.reset();
		can_backward = false;
	}
	void zero_grad()
	{
		has_grads = false;
		for (at::Tensor &p : optim.params)
			p.mutable_grad().reset();
	}
	// Drop the recorded step because it no longer matches the engine.
	void forget_recording()
	{
		rfl_torch::attempt([&] { device->graph_drop(); });
		recording = {};
	}
	void mark_forward(size_t node) const // the index after the last node is the loss
	{
		if (marks.fn)
			rfl_torch::checked([&](rfl_err *err) {
				return marks.fn(marks.forward[node].c_str(), marks.ctx, err);
			});
	}
};

namespace rfl_torch
{

// A leaf over part of a flat tensor's memory. @param strides  in elements; empty: contiguous
at::Tensor leaf(const at::Tensor &flat, int64_t offset, at::IntArrayRef shape,
		at::IntArrayRef strides, bool requires_grad);

// ---- batches (engine_batch.cpp)

/* Prepare a batch on the engine's device, in its layout, normalised. */
pair take_batch(rfl_engine &e, const rfl_batch &batch);

// ---- operations (engine_ops.cpp)

// The memory layout of the images that an operation of a channels-last network returns.
enum class order {
	free, // any order, or no images
	kept, // same order as its inputs
	made, // always channels-last
};
order order_of(enum rfl_op op);

// Execute a node with an operation in the table: fill e.value[i].
void execute(rfl_engine &e, int i);

// ---- language models with a cache (engine_generate.cpp)

// Create the cache.
void make_cache(rfl_engine &e);
// Attention to the cache, to which keys and values are added. q, k, v are {n, heads, tokens,
// features}.
at::Tensor attend(const rfl_engine &e, const rfl_node &node, const at::Tensor &q,
		  const at::Tensor &k, const at::Tensor &v);
// Which keys, from `first` on, each of the tokens after `past` sees. @param window  0: all
at::Tensor visible(int64_t first, int64_t past, int64_t tokens, int64_t window,
		   const at::Tensor &like);
// Keys or values, repeated for each query head.
at::Tensor repeat_heads(const at::Tensor &x, int64_t heads);
// softmax(q k^T / sqrt(features)) v; the mask is true where a query sees a key.
at::Tensor fused_attention(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v,
			   const optional_tensor &mask, double dropout, bool causal);

// Whether the weight is stored as integers; how they are made, read and used.
bool is_int8(const rfl_engine &e, int param);
int8_weight to_int8(const rfl_engine &e, const at::Tensor &weight);
at::Tensor from_int8(const int8_weight &weight);
at::Tensor int8_linear(const at::Tensor &x, const int8_weight &weight, const optional_tensor &bias);

// ---- a step (engine_step.cpp)

// Execute all nodes on an input in evaluation mode, and store the logits.
void infer(rfl_engine &e, const at::Tensor &input);

// ---- tables (engine_tables.cpp)

// Create the tables of all nodes that need one.
void make_tables(rfl_engine &e);
// The reason why a node's table is unknown; nullptr if it is known or not needed.
const char *unknown_table(const rfl_node &node);

// ---- updates (engine_optim.cpp)

// nullptr if this library has fused updates on the device, else the first version: "2.4".
const char *fused_since(enum rfl_optimizer_rule rule, enum rfl_device device);
// nullptr if this library scales losses on the device, else the first version: "2.3".
const char *scaling_since(enum rfl_device device);
// Create the state that the rule needs, if there is none yet.
void make_state(rfl_engine &e);

} // namespace rfl_torch

#endif
