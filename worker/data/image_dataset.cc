#include "worker/data/image_dataset.h"

#include <cassert>

namespace syncopate::worker {

void normalize(std::span<const std::uint8_t> bytes, std::span<float> values, PixelScale scale) {
  assert(bytes.size() == values.size());
  if (scale == PixelScale::kUnit) {
    for (std::size_t i = 0; i < bytes.size(); ++i) values[i] = static_cast<float>(bytes[i]) / 255.0f;
    return;
  }
  constexpr float kScale = 2.0f / 255.0f, kShift = -0.3f;
  for (std::size_t i = 0; i < bytes.size(); ++i) values[i] = static_cast<float>(bytes[i]) * kScale + kShift;
}

void ImageDataset::read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const {
  // The values' own room holds the bytes meanwhile: the last quarter, so that none is overwritten before it is read.
  const std::span<std::byte> room = std::as_writable_bytes(to.values).last(to.values.size());
  const std::span<std::uint8_t> scratch(reinterpret_cast<std::uint8_t*>(room.data()), room.size());
  normalize(image(index, scratch), to.values, scale_);
  to.labels[0] = label(index);
}

}  // namespace syncopate::worker
