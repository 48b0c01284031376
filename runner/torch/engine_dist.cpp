/*
 * engine_dist.cpp - data-parallel training over c10d's process groups.
 *
 * Parameters are assigned to buckets from last to first, the order in which backward reaches them.
 * A hook counts the gradients of each bucket. When a bucket is complete, its gradients are copied
 * into one flat tensor, divided by the number of processes, and sent while backward continues. All
 * processes send the buckets in the same order.
 */
#include "runner/torch/engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <thread>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

/* Gloo's headers come from a separate package (libgloo-dev), but a wheel's libtorch includes Gloo
 * itself. Different versions are safe: only pointers to Gloo's types are used. */
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
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#else
#define HAVE_GROUPS 0
#endif

using namespace rfl_torch;

namespace
{

using clock = std::chrono::steady_clock;

#if HAVE_GROUPS

#if TORCH_AT_LEAST(2, 0)
using backend = c10d::Backend;
#else
using backend = c10d::ProcessGroup;
#endif
using work = decltype(std::declval<backend &>().barrier(c10d::BarrierOptions()));

// Parameters with gradients that are sent together.
struct bucket {
	std::vector<size_t> params;
	int64_t numel = 0;
	size_t pending = 0; // gradients not stored yet
	at::Tensor flat;
	work sent;
};

std::chrono::milliseconds milliseconds(double seconds)
{
	return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

// Whether the processes meet in a file of this machine, and need no port.
bool in_file(const rfl_world &w)
{
	return w.address[0] == '/';
}

c10::intrusive_ptr<backend> make_group(const rfl_world &w, [[maybe_unused]] bool nccl,
				       const c10::intrusive_ptr<c10d::Store> &store)
{
#if RFL_TORCH_HAS_NCCL
	if (nccl) {
		auto options = c10d::ProcessGroupNCCL::Options::create();

		if (in_file(w)) // else NCCL listens on the interface of the network
			(void)setenv("NCCL_SOCKET_IFNAME", "lo", 0);
		options->timeout = milliseconds(w.timeout_s);
		return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, w.rank, w.size, options);
	}
#endif
#if RFL_TORCH_HAS_GLOO
	const std::string address = w.address;
	const bool local = in_file(w) || address == "127.0.0.1" || address == "localhost";
	auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(w.timeout_s));

	options->devices.push_back(
		local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
		      : c10d::ProcessGroupGloo::createDefaultDevice());
	return c10::make_intrusive<c10d::ProcessGroupGloo>(store, w.rank, w.size, options);
#else
	TORCH_CHECK(false, "no library for groups");
#endif
}

/* Unless a group was shut down, NCCL's destructor prints a warning and aborts the communicators.
 * Older versions of libtorch have no shutdown function. */
template <class T> auto shut_down(T &group, int) -> decltype(group.shutdown())
{
	return group.shutdown();
}

template <class T> void shut_down(T & /* group */, long)
{
}

// libtorch 1.13 waits for whole seconds only, and an attempt needs some of the time itself
constexpr std::chrono::milliseconds shortest_attempt(1000), margin(4000);

/* Rank 0 listens unless the launcher does. The other ranks connect: a c10d client gives up early if
 * its next attempt would be too late, so this function retries until the timeout. */
c10::intrusive_ptr<c10d::Store> open_store(const rfl_world &w, clock::time_point until)
{
	c10d::TCPStoreOptions options;

	if (in_file(w))
		return c10::make_intrusive<c10d::FileStore>(w.address, -1);
	options.port = static_cast<uint16_t>(w.port);
	options.isServer = w.rank == 0 && !w.hosted;
	options.waitWorkers = false; // meet() names the missing ranks
	for (;;) {
		const auto left =
			std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now());

		options.timeout = std::max(left, shortest_attempt);
		try {
			const auto store = c10::make_intrusive<c10d::TCPStore>(
				std::string(w.address), options);

			store->setTimeout(milliseconds(w.timeout_s));
			return store;
		} catch (const std::exception &e) {
			if (options.isServer)
				throw;
			TORCH_CHECK(clock::now() < until,
				    w.hosted ? "no process listens at this address: "
					     : "rank 0 is not reachable: ",
				    std::string(e.what()).substr(0, 120));
		}
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
}

// Every process announces itself and waits for the others.
void meet(c10d::Store &store, const rfl_world &w, clock::time_point until)
{
	const auto key = [](int rank) { return "here/" + std::to_string(rank); };
	std::string missing;
	int first = 0; // all lower ranks have arrived

	store.set(key(w.rank), std::vector<uint8_t>{ 1 });
	while (first < w.size) {
		if (store.check({ key(first) })) {
			first++;
			continue;
		}
		if (clock::now() >= until)
			break;
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	}
	for (int r = first; r < w.size && missing.size() < 80; r++)
		if (!store.check({ key(r) }))
			missing += (missing.empty() ? "rank " : ", ") + std::to_string(r);
	TORCH_CHECK(missing.empty(), "missing: ", missing);
}

/* Meet the other processes and connect to them. c10d's stores and sockets can wait for an answer
 * without a limit, even in their destructors, for example if another program is connected to the
 * port. A thread waits for them: after the limit it is left behind, and ends with the process. */
c10::intrusive_ptr<backend> connect(const rfl_world &world, bool nccl)
{
	const auto until = clock::now() + milliseconds(world.timeout_s);
	std::packaged_task<c10::intrusive_ptr<backend>()> task([world, nccl, until] {
		const auto store = c10::make_intrusive<c10d::PrefixStore>("roofline",
									  open_store(world, until));

		meet(*store, world, until);
		return make_group(world, nccl, store);
	});
	auto group = task.get_future();

	std::thread(std::move(task)).detach();
	// later than the last attempt of the functions above, whose messages are more specific
	TORCH_CHECK(group.wait_until(until + margin) == std::future_status::ready,
		    "no answer; another program may be connected to the port");
	return group.get();
}

struct exchange;

// Notifies the group of a stored gradient and leaves the gradients unchanged.
struct stored final : public torch::autograd::FunctionPostHook {
	exchange *to;
	size_t param;

	stored(exchange *g, size_t p) : to(g), param(p)
	{
	}
	torch::autograd::variable_list
	operator()(const torch::autograd::variable_list &outputs,
		   const torch::autograd::variable_list & /* inputs */) override;
};

struct exchange final : public process_group {
	int size;
	tensors params;
	// keep the hooks alive; another kind of pointer since 2.15
	std::vector<decltype(torch::autograd::impl::grad_accumulator(at::Tensor()))> accumulators;
	std::vector<size_t> bucket_of;
	std::vector<bucket> buckets;
	size_t next = 0; // next bucket to send
	bool exchanging = false;
	c10::intrusive_ptr<backend> processes;

	exchange(const rfl_world &world, bool nccl, const tensors &trained)
	    : size(world.size), params(trained), bucket_of(params.size()),
	      processes(connect(world, nccl))
	{
		const size_t n = params.size();

		// backward computes the gradients of the last parameters first
		for (size_t i = n; i-- > 0;) {
			const int64_t numel = params[i].numel();

			if (buckets.empty() ||
			    (buckets.back().numel + numel) * 4 > world.bucket_bytes)
				buckets.emplace_back();
			buckets.back().params.push_back(i);
			buckets.back().numel += numel;
			bucket_of[i] = buckets.size() - 1;
		}
		for (bucket &b : buckets)
			b.flat = at::empty({ b.numel },
					   params[b.params[0]].options().requires_grad(false));
		for (size_t i = 0; i < n; i++) {
			auto accumulator = torch::autograd::impl::grad_accumulator(params[i]);

			TORCH_CHECK(accumulator, "a parameter is not a leaf");
			accumulator->add_post_hook(std::make_unique<stored>(this, i));
			accumulators.push_back(std::move(accumulator));
		}
	}
	~exchange() override
	{
		attempt([&] {
			if (!exchanging) // after a failure, other processes may never respond
				shut_down(*processes, 0);
			exchanging = false;
			processes.reset();
		});
	}

	void begin() override
	{
		for (bucket &b : buckets)
			b.pending = b.params.size();
		next = 0;
		exchanging = true;
	}

	/* Runs on the backward thread right after a gradient is stored: counts it and sends the
	 * complete buckets. */
	void on_gradient(size_t param)
	{
		if (!exchanging)
			return;
		const at::NoGradGuard no_grad;

		buckets[bucket_of[param]].pending--;
		for (; next < buckets.size() && buckets[next].pending == 0; next++) {
			bucket &b = buckets[next];
			tensors flat = { b.flat };
			int64_t at = 0;

			for (const size_t i : b.params) {
				const at::Tensor &grad = params[i].grad();

				b.flat.narrow(0, at, grad.numel()).copy_(grad.reshape(-1));
				at += grad.numel();
			}
			b.flat.div_(size);
			b.sent = processes->allreduce(flat);
		}
	}

	void finish() override
	{
		const at::NoGradGuard no_grad;

		exchanging = false;
		TORCH_CHECK(next == buckets.size(),
			    "a parameter has no gradient after backward; train every parameter in "
			    "every process");
		for (bucket &b : buckets) {
			int64_t at = 0;

			b.sent->wait();
			b.sent.reset();
			for (const size_t i : b.params) {
				at::Tensor grad = params[i].grad();
				const int64_t n = grad.numel();

				grad.copy_(b.flat.narrow(0, at, n).view_as(grad));
				at += n;
			}
		}
	}

	void gather(const double *mine, size_t n, double *all) override
	{
		const auto count = static_cast<int64_t>(n);
		const at::Tensor own =
			at::from_blob(const_cast<double *>(mine), { count }, at::kDouble)
				.to(params.at(0).device(), at::kDouble, false, true);
		tensors in = { own };
		std::vector<tensors> out(1);

		for (int i = 0; i < size; i++)
			out[0].push_back(at::empty_like(own));
		processes->allgather(out, in)->wait();
		for (int i = 0; i < size; i++)
			at::from_blob(all + static_cast<int64_t>(i) * count, { count }, at::kDouble)
				.copy_(out[0][static_cast<size_t>(i)]);
	}
};

torch::autograd::variable_list
stored::operator()(const torch::autograd::variable_list &outputs,
		   const torch::autograd::variable_list & /* inputs */)
{
	to->on_gradient(param);
	return outputs;
}

#endif

} // namespace

// nullptr if this build has NCCL (or Gloo, if !nccl), else the reason and the fix.
static const char *group_missing(bool nccl)
{
	const bool here = nccl ? RFL_TORCH_HAS_NCCL : RFL_TORCH_HAS_GLOO;

	if (here)
		return nullptr;
	return nccl ? "this torch plugin was built without NCCL; build it with a CUDA version of "
		      "PyTorch and nccl.h"
		    : "this torch plugin was built without Gloo's headers; install libgloo-dev and "
		      "build again";
}

static void check_world(const rfl_engine &e, const rfl_world &w, bool nccl)
{
	const std::string interconnect = w.interconnect;

	if (e.group)
		throw failure(RFL_EINVAL, "this engine has already joined");
	if (w.size < 1 || w.rank < 0 || w.rank >= w.size || w.bucket_bytes < 1)
		throw failure(RFL_EINVAL, "rank %d is not valid for %d processes", w.rank, w.size);
	if (e.config.device == RFL_DEVICE_MPS)
		throw failure(RFL_EUNSUPPORTED, "several processes cannot train on mps; use CPUs "
						"or NVIDIA GPUs");
	if (!nccl && interconnect == "nccl")
		throw failure(RFL_EUNSUPPORTED,
			      "NCCL exchanges only GPU memory; use --interconnect gloo");
	if (nccl && interconnect == "gloo")
		throw failure(RFL_EUNSUPPORTED,
			      "gradients on GPUs require NCCL; use --interconnect nccl");
	if (group_missing(nccl))
		throw failure(RFL_EUNAVAILABLE, "%s", group_missing(nccl));
}

enum rfl_rc rfl_torch__join(rfl_engine *e, const rfl_world *w, rfl_err *err)
{
	return guarded(nullptr, err, [&] {
		const bool nccl = e->config.device == RFL_DEVICE_CUDA; // Gloo is for CPUs
		const auto start = clock::now();

		check_world(*e, *w, nccl);
		try {
#if HAVE_GROUPS
			e->group = std::make_unique<exchange>(*w, nccl, e->optim.params);
#endif
		} catch (...) {
			const failure why(nullptr);
			const std::chrono::duration<double> waited = clock::now() - start;
			const bool late = waited.count() >= 0.9 * w->timeout_s;
			const std::string port = w->port ? std::string(" at ") + w->address +
								   " port " +
								   std::to_string(w->port)
							 : "";

			throw failure(late ? RFL_ETIMEOUT : RFL_EUNAVAILABLE,
				      "rank %d of %d: not all processes joined%s within %g s: %s; "
				      "start all of them%s",
				      w->rank, w->size, port.c_str(), w->timeout_s, why.err.msg,
				      w->port ? " and use a free port" : "");
		}
	});
}

enum rfl_rc rfl_torch__gather(rfl_engine *e, const double *mine, size_t n, double *all,
			      rfl_err *err)
{
	return guarded("gather", err, [&] {
		if (e->group)
			e->group->gather(mine, n, all);
		else
			std::copy_n(mine, n, all);
	});
}
