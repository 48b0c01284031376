/*
 * shim_batch.cpp - from what a loader hands out to what a network reads.
 */
#include "runner/torch/shim_impl.hpp"

#include <algorithm>
#include <array>

#include <ATen/Parallel.h>

using namespace rfl_torch;

namespace
{

// The result for each of the 256 values of a channel: every pixel is looked up, so that the order
// of the operations, and with it the rounding, is that of the formula.
using table = std::array<std::array<float, 256>, 3>;

table make_table(const float mean[3], const float std[3], int64_t channels)
{
	table t = {};

	for (size_t c = 0; c < static_cast<size_t>(channels); c++)
		for (size_t v = 0; v < t[c].size(); v++)
			t[c][v] = (static_cast<float>(v) / 255.0F - mean[c]) / std[c];
	return t;
}

// Steps from one element to the next, in elements.
struct steps {
	int64_t image, channel, pixel;
};

steps steps_of(const at::Tensor &t, int64_t pixels, bool channels_last)
{
	const int64_t channels = t.size(1);

	return channels_last ? steps{ channels * pixels, 1, channels }
			     : steps{ channels * pixels, pixels, 1 };
}

// One pass, a row of an image at a time.
void look_up(const at::Tensor &from, const table &t, bool from_last, const at::Tensor &to,
	     bool to_last)
{
	const int64_t channels = from.size(1), rows = from.size(2), width = from.size(3);
	const steps in = steps_of(from, rows * width, from_last);
	const steps out = steps_of(to, rows * width, to_last);
	const uint8_t *const pixels = from.data_ptr<uint8_t>();
	float *const values = to.data_ptr<float>();

	at::parallel_for(0, from.size(0) * rows, 16, [&](int64_t begin, int64_t end) {
		for (int64_t i = begin; i < end; i++) {
			const int64_t image = i / rows, first = i % rows * width;

			for (int64_t c = 0; c < channels; c++) {
				const uint8_t *p = pixels + image * in.image + c * in.channel +
						   first * in.pixel;
				float *v = values + image * out.image + c * out.channel +
					   first * out.pixel;
				const auto &made = t[static_cast<size_t>(c)];

				for (int64_t x = 0; x < width; x++)
					v[x * out.pixel] = made[p[x * in.pixel]];
			}
		}
	});
}

at::Tensor normalize_here(const at::Tensor &pixels, const float mean[3], const float std[3],
			  at::MemoryFormat format)
{
	const bool plain = pixels.is_contiguous();
	const at::Tensor from = plain ? pixels : pixels.contiguous(at::MemoryFormat::ChannelsLast);
	const at::Tensor to = at::empty(pixels.sizes(), pixels.options().dtype(at::kFloat), format);

	look_up(from, make_table(mean, std, pixels.size(1)), !plain, to,
		format == at::MemoryFormat::ChannelsLast);
	return to;
}

// (v - 255 mean) / (255 std), by the device's own kernels. The numbers are filled in there: to copy
// them from here would wait for everything that the device was asked for before.
at::Tensor normalize_there(const at::Tensor &pixels, const float mean[3], const float std[3],
			   at::MemoryFormat format)
{
	const int64_t channels = pixels.size(1);
	const at::Tensor both =
		at::empty({ 2, channels, 1, 1 }, pixels.options().dtype(at::kFloat));

	for (int64_t c = 0; c < channels; c++) {
		both[0][c].fill_(255.0F * mean[c]);
		both[1][c].fill_(1.0F / (255.0F * std[c]));
	}
	return pixels.contiguous(format).sub(both[0]).mul_(both[1]);
}

} // namespace

enum rfl_torch_status rfl_torch_normalize(const struct rfl_torch_tensor *pixels,
					  const float mean[3], const float std[3],
					  int channels_last, struct rfl_torch_tensor **ret) noexcept
{
	return giving(ret, [&] {
		const auto format = channels_last ? at::MemoryFormat::ChannelsLast
						  : at::MemoryFormat::Contiguous;

		return pixels->t.device().is_cpu() ? normalize_here(pixels->t, mean, std, format)
						   : normalize_there(pixels->t, mean, std, format);
	});
}
