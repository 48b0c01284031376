/*
 * engine_batch.cpp - batches: tensors over the caller's memory, their copies on the device, and
 * pixels as floats. On the CPU, batches are used in place.
 */
#include "runner/torch/engine.hpp"

#include <ATen/Parallel.h>

using namespace rfl_torch;

namespace
{

// ------------------------------------------------------------------ pixels

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

at::Tensor normalize_here(const at::Tensor &pixels, const rfl_pixel_scale &scale,
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
at::Tensor normalize_there(const at::Tensor &pixels, const rfl_pixel_scale &scale,
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

// ------------------------------------------------------------------ tensors

// Tensors over the memory of a batch, which must outlive them.
pair wrap_batch(const rfl_engine &e, const rfl_batch &batch)
{
	const rfl_node &first = e.net->nodes[0];
	const int64_t n = batch.n, c = first.shape.dim[0], h = first.shape.dim[1],
		      w = first.shape.dim[2];
	const bool tokens = first.dtype == RFL_DTYPE_I64, several = e.net->ninputs > 1;
	const bool images = !tokens && !several, nhwc = batch.layout == RFL_LAYOUT_NHWC;
	const bool pixels = batch.kind == RFL_INPUT_PIXELS;
	const at::ScalarType type = tokens ? at::kLong : pixels ? at::kByte : at::kFloat;

	if (n < 1 || n > e.config.max_batch)
		throw failure(RFL_EINVAL, "a batch has 1 to %lld samples, not %lld",
			      static_cast<long long>(e.config.max_batch),
			      static_cast<long long>(n));
	if ((batch.kind == RFL_INPUT_TOKENS) != tokens)
		throw failure(RFL_EINVAL, "%s accepts %s", e.net->model,
			      tokens ? "tokens, not images" : "images, not tokens");
	if (pixels && (!batch.scale || c > 3))
		throw failure(RFL_EINVAL, "pixels need a scale and 1 to 3 channels, not %lld",
			      static_cast<long long>(c));
	return about("inputs", [&] {
		void *const memory = const_cast<float *>(batch.images);
		// labels: one per sample, or one per token of a sample
		const at::Tensor labels = at::from_blob(const_cast<int64_t *>(batch.labels),
							{ images ? n : n * c }, at::kLong);

		if (several) // see split_inputs()
			return pair{ at::from_blob(
					     memory,
					     { e.net->ninputs * n * rfl_shape_numel(&first.shape) },
					     type),
				     labels };
		if (tokens)
			return pair{ at::from_blob(memory, { n, c }, type), labels };
		if (nhwc)
			return pair{ at::from_blob(memory, { n, c, h, w },
						   { c * h * w, 1, w * c, c }, type),
				     labels };
		return pair{ at::from_blob(memory, { n, c, h, w }, type), labels };
	});
}

// The copy of a batch on the device, or nullptr.
copied *copy_of(rfl_engine &e, const rfl_batch &batch)
{
	if (rfl_batch_same(&e.kept.batch, &batch))
		return &e.kept;
	return rfl_batch_same(&e.ahead.batch, &batch) ? &e.ahead : nullptr;
}

// Replace a copy; on failure, it is empty. @param wait  until the batch has been copied
void copy_batch(rfl_engine &e, const rfl_batch &batch, const pair &host, bool wait, copied &to)
{
	const auto copy = [&](const at::Tensor &t) {
		return wait ? t.to(e.device->where) : e.device->copy(t);
	};

	to = {};
	const at::Tensor input =
		about("copy of the inputs to the device", [&] { return copy(host.input); });
	const at::Tensor labels =
		about("copy of the labels to the device", [&] { return copy(host.labels); });

	to = { batch, { input, labels } };
}

// Replace host tensors with copies on the device, which may have been uploaded earlier.
void move_batch(rfl_engine &e, const rfl_batch &batch, pair &io)
{
	copied once, *copy = copy_of(e, batch);

	if (!copy) {
		copy = batch.id ? &e.kept : &once;
		copy_batch(e, batch, io, true, *copy);
	}
	io = copy->io;
	if (copy != &e.kept)
		*copy = {};
	about("batch", [&] {
		e.device->use(io.input);
		e.device->use(io.labels);
	});
}

} // namespace

pair rfl_torch::take_batch(rfl_engine &e, const rfl_batch &batch)
{
	const auto format = e.config.layout == RFL_LAYOUT_NHWC ? at::MemoryFormat::ChannelsLast
							       : at::MemoryFormat::Contiguous;
	pair io = wrap_batch(e, batch);

	e.steps++;
	e.batch_bytes = static_cast<double>(io.input.nbytes() + io.labels.nbytes());
	if (!e.is_cpu())
		move_batch(e, batch, io);
	about("inputs", [&] {
		// convert to the layout and type of the first node, if they differ
		if (batch.kind == RFL_INPUT_PIXELS)
			io.input = io.input.is_cpu()
					   ? normalize_here(io.input, *batch.scale, format)
					   : normalize_there(io.input, *batch.scale, format);
		else if (batch.kind == RFL_INPUT_IMAGES && batch.layout != e.config.layout &&
			 e.net->ninputs == 1)
			io.input = io.input.contiguous(format);
	});
	e.batch_n = batch.n;
	return io;
}

enum rfl_rc rfl_torch__upload(rfl_engine *e, const rfl_batch *batch, rfl_err *err)
{
	return guarded("upload", err, [&] {
		if (e->is_cpu() || copy_of(*e, *batch))
			return;
		if (!batch->id && e->ahead.batch.n)
			throw failure(RFL_EINVAL, "an uploaded batch awaits forward; run it first");
		copy_batch(*e, *batch, wrap_batch(*e, *batch), false,
			   batch->id ? e->kept : e->ahead);
	});
}

enum rfl_rc rfl_torch__uploaded(rfl_engine *e, rfl_err *err)
{
	return guarded("upload", err, [&] { e->device->sync_copies(); });
}
