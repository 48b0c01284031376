/*
 * shim_dist.cpp - data-parallel training over c10d's process groups.
 *
 * Parameters are put into buckets from the last to the first, as backward reaches them. A hook
 * after each gradient counts; when a bucket is complete its gradients are copied into one flat
 * tensor, divided by the number of processes, and sent while backward continues. Buckets leave in
 * the same order everywhere.
 */
#include "runner/torch/shim_dist.h"
#include "runner/torch/shim_impl.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

/* Gloo's headers are a package of their own (libgloo-dev); a wheel's libtorch has Gloo inside. What
 * is made of them here does not depend on their version: pointers only. */
#if RFL_TORCH_HAS_GLOO
#define USE_C10D_GLOO 1
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#if RFL_TORCH_HAS_NCCL
#define USE_C10D_NCCL 1
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#if RFL_TORCH_HAS_GLOO || RFL_TORCH_HAS_NCCL
#define HAVE_GROUPS 1
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#else
#define HAVE_GROUPS 0
#endif

using namespace rfl_torch;

const char *rfl_torch_group_missing(int nccl) noexcept
{
#if RFL_TORCH_HAS_GLOO
	const bool gloo_here = true;
#else
	const bool gloo_here = false;
#endif
#if RFL_TORCH_HAS_NCCL
	const bool nccl_here = true;
#else
	const bool nccl_here = false;
#endif
	if (nccl)
		return nccl_here ? nullptr
				 : "this torch plugin was built without NCCL: it needs a PyTorch "
				   "with CUDA and nccl.h beside it";
	return gloo_here ? nullptr
			 : "this torch plugin was built without Gloo's headers: install "
			   "libgloo-dev and build again";
}

#if HAVE_GROUPS

namespace
{

#if TORCH_AT_LEAST(2, 0)
using process_group = c10d::Backend;
#else
using process_group = c10d::ProcessGroup;
#endif
using work = decltype(std::declval<process_group &>().barrier(c10d::BarrierOptions()));

// Parameters that travel together.
struct bucket {
	std::vector<size_t> params;
	int64_t numel = 0;
	size_t pending = 0; // gradients that are still to come
	at::Tensor flat;
	work sent;
};

std::chrono::milliseconds milliseconds(double seconds)
{
	return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

// The last parameters' gradients come first.
std::vector<bucket> make_buckets(const std::vector<at::Tensor> &params, int64_t bytes)
{
	std::vector<bucket> buckets;

	for (size_t i = params.size(); i-- > 0;) {
		const int64_t numel = params[i].numel();

		if (buckets.empty() || (buckets.back().numel + numel) * 4 > bytes)
			buckets.emplace_back();
		buckets.back().params.push_back(i);
		buckets.back().numel += numel;
	}
	return buckets;
}

c10::intrusive_ptr<process_group> make_group(const struct rfl_torch_group_config *c,
					     const c10::intrusive_ptr<c10d::Store> &store)
{
#if RFL_TORCH_HAS_NCCL
	if (c->nccl) {
		auto options = c10d::ProcessGroupNCCL::Options::create();

		options->timeout = milliseconds(c->timeout_s);
		return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, c->rank, c->size,
								   options);
	}
#endif
#if RFL_TORCH_HAS_GLOO
	auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(c->timeout_s));

	options->devices.push_back(
		c->address == std::string("127.0.0.1") || c->address == std::string("localhost")
			? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
			: c10d::ProcessGroupGloo::createDefaultDevice());
	return c10::make_intrusive<c10d::ProcessGroupGloo>(store, c->rank, c->size, options);
#else
	TORCH_CHECK(false, rfl_torch_group_missing(0));
#endif
}

/* NCCL's destructor takes a group that was not shut down for one in trouble: it warns and aborts
 * the communicators. Older libtorch have nothing to be called. */
template <class T> auto shut_down(T &group, int) -> decltype(group.shutdown())
{
	return group.shutdown();
}

template <class T> void shut_down(T & /* group */, long)
{
}

} // namespace

struct rfl_torch_group {
	int size = 1;
	std::vector<at::Tensor> params;
	std::vector<std::shared_ptr<torch::autograd::Node>> accumulators; // keep the hooks alive
	std::vector<size_t> bucket_of;
	std::vector<bucket> buckets;
	size_t next = 0; // bucket to be sent
	bool exchanging = false;
	c10::intrusive_ptr<process_group> group;

	void send(bucket &b)
	{
		int64_t at = 0;

		for (const size_t i : b.params) {
			const at::Tensor &grad = params[i].grad();

			b.flat.narrow(0, at, grad.numel()).copy_(grad.reshape(-1));
			at += grad.numel();
		}
		b.flat.div_(size);

		std::vector<at::Tensor> tensors = { b.flat };

		b.sent = group->allreduce(tensors);
	}

	void send_complete()
	{
		for (; next < buckets.size() && buckets[next].pending == 0; next++)
			send(buckets[next]);
	}

	// On the thread of backward, right after a gradient was stored.
	void on_gradient(size_t param)
	{
		if (!exchanging)
			return;
		const at::NoGradGuard no_grad;

		buckets[bucket_of[param]].pending--;
		send_complete();
	}
};

namespace
{

// Notifies the group and changes nothing.
struct stored final : public torch::autograd::FunctionPostHook {
	rfl_torch_group *group;
	size_t param;

	stored(rfl_torch_group *g, size_t p) : group(g), param(p)
	{
	}
	torch::autograd::variable_list
	operator()(const torch::autograd::variable_list &outputs,
		   const torch::autograd::variable_list & /* inputs */) override
	{
		group->on_gradient(param);
		return outputs;
	}
};

void add_hooks(rfl_torch_group *group)
{
	for (size_t i = 0; i < group->params.size(); i++) {
		auto accumulator = torch::autograd::impl::grad_accumulator(group->params[i]);

		TORCH_CHECK(accumulator, "a parameter is not a leaf");
		accumulator->add_post_hook(std::make_unique<stored>(group, i));
		group->accumulators.push_back(std::move(accumulator));
	}
}

// Rank 0 listens, unless the launcher does. The others wait for it: a client of c10d gives up early
// when its own next try would come too late, so that it is asked again until the time is over.
c10::intrusive_ptr<c10d::Store> open_store(const struct rfl_torch_group_config *c)
{
	const auto until = std::chrono::steady_clock::now() + milliseconds(c->timeout_s);
	c10d::TCPStoreOptions options;

	options.port = static_cast<uint16_t>(c->port);
	options.isServer = c->rank == 0 && !c->hosted;
	options.waitWorkers = false; // those who are missing shall be named
	options.timeout = milliseconds(c->timeout_s);
	for (;;) {
		try {
			return c10::make_intrusive<c10d::TCPStore>(std::string(c->address),
								   options);
		} catch (const std::exception &e) {
			if (options.isServer)
				throw;
			TORCH_CHECK(std::chrono::steady_clock::now() < until,
				    c->hosted ? "no process listens there: "
					      : "rank 0 is not there: ",
				    std::string(e.what()).substr(0, 120));
		}
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
}

std::string here_key(int rank)
{
	return "here/" + std::to_string(rank);
}

// Everybody says that they are here, and looks for the others.
void meet(c10d::Store &store, const struct rfl_torch_group_config *c)
{
	const auto until = std::chrono::steady_clock::now() + milliseconds(c->timeout_s);
	std::string missing;
	int first = 0; // all before it are here

	store.set(here_key(c->rank), std::vector<uint8_t>{ 1 });
	while (first < c->size) {
		if (store.check({ here_key(first) })) {
			first++;
			continue;
		}
		if (std::chrono::steady_clock::now() >= until)
			break;
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	}
	for (int r = first; r < c->size && missing.size() < 80; r++)
		if (!store.check({ here_key(r) }))
			missing += (missing.empty() ? "rank " : ", ") + std::to_string(r);
	TORCH_CHECK(missing.empty(), "missing: ", missing);
}

} // namespace

enum rfl_torch_status rfl_torch_group_join(const struct rfl_torch_group_config *config,
					   struct rfl_torch_group **ret) noexcept
{
	return guarded([&] {
		auto group = std::make_unique<rfl_torch_group>();
		TORCH_CHECK(!rfl_torch_group_missing(config->nccl),
			    rfl_torch_group_missing(config->nccl));

		const auto store =
			c10::make_intrusive<c10d::PrefixStore>("roofline", open_store(config));

		meet(*store, config);
		group->size = config->size;
		for (size_t i = 0; i < config->nparams; i++)
			group->params.push_back(config->params[i]->t);
		group->buckets = make_buckets(group->params, config->bucket_bytes);
		group->bucket_of.resize(group->params.size());
		for (size_t b = 0; b < group->buckets.size(); b++) {
			for (const size_t i : group->buckets[b].params)
				group->bucket_of[i] = b;
			group->buckets[b].flat = at::empty(
				{ group->buckets[b].numel },
				group->params[group->buckets[b].params[0]].options().requires_grad(
					false));
		}
		group->group = make_group(config, store);
		add_hooks(group.get());
		*ret = group.release();
	});
}

void rfl_torch_group_leave(struct rfl_torch_group *group) noexcept
{
	if (!group)
		return;
	(void)guarded([&] {
		if (!group->exchanging) /* else it is in trouble: the others may never answer */
			shut_down(*group->group, 0);
		group->exchanging = false;
		group->group.reset();
	});
	delete group;
}

enum rfl_torch_status rfl_torch_group_begin(struct rfl_torch_group *group) noexcept
{
	return guarded([&] {
		for (bucket &b : group->buckets)
			b.pending = b.params.size();
		group->next = 0;
		group->exchanging = true;
	});
}

enum rfl_torch_status rfl_torch_group_finish(struct rfl_torch_group *group) noexcept
{
	return guarded([&] {
		const at::NoGradGuard no_grad;

		group->exchanging = false;
		TORCH_CHECK(group->next == group->buckets.size(),
			    "backward gave no gradient to a parameter: every process must train "
			    "every parameter");
		for (bucket &b : group->buckets) {
			int64_t at = 0;

			b.sent->wait();
			b.sent.reset();
			for (const size_t i : b.params) {
				at::Tensor grad = group->params[i].grad();
				const int64_t n = grad.numel();

				grad.copy_(b.flat.narrow(0, at, n).view_as(grad));
				at += n;
			}
		}
	});
}

enum rfl_torch_status rfl_torch_group_barrier(struct rfl_torch_group *group) noexcept
{
	return guarded([&] { group->group->barrier(c10d::BarrierOptions())->wait(); });
}

enum rfl_torch_status rfl_torch_group_gather(struct rfl_torch_group *group, const double *mine,
					     size_t n, double *all) noexcept
{
	return guarded([&] {
		const auto count = static_cast<int64_t>(n);
		const auto device = group->params.at(0).device();
		const at::Tensor own =
			at::from_blob(const_cast<double *>(mine), { count }, at::kDouble)
				.to(device, at::kDouble, false, true);
		std::vector<at::Tensor> in = { own };
		std::vector<std::vector<at::Tensor>> out(1);

		for (int i = 0; i < group->size; i++)
			out[0].push_back(at::empty_like(own));
		group->group->allgather(out, in)->wait();
		for (int i = 0; i < group->size; i++)
			at::from_blob(all + static_cast<int64_t>(i) * count, { count }, at::kDouble)
				.copy_(out[0][static_cast<size_t>(i)]);
	});
}

#else

enum rfl_torch_status rfl_torch_group_join(const struct rfl_torch_group_config *config,
					   struct rfl_torch_group ** /* ret */) noexcept
{
	remember(rfl_torch_group_missing(config->nccl));
	return RFL_TORCH_FAILED;
}

// There is no group here: join never makes one.
struct rfl_torch_group {
};

void rfl_torch_group_leave(struct rfl_torch_group *group) noexcept
{
	delete group;
}

enum rfl_torch_status rfl_torch_group_begin(struct rfl_torch_group * /* group */) noexcept
{
	return RFL_TORCH_FAILED;
}

enum rfl_torch_status rfl_torch_group_finish(struct rfl_torch_group * /* group */) noexcept
{
	return RFL_TORCH_FAILED;
}

enum rfl_torch_status rfl_torch_group_barrier(struct rfl_torch_group * /* group */) noexcept
{
	return RFL_TORCH_FAILED;
}

enum rfl_torch_status rfl_torch_group_gather(struct rfl_torch_group * /* group */,
					     const double * /* mine */, size_t /* n */,
					     double * /* all */) noexcept
{
	return RFL_TORCH_FAILED;
}

#endif
