// Crop: how a training image is transformed in one epoch: shifted, and perhaps mirrored. Pure.
#pragma once

#include <cstdint>

namespace syncopate::worker {

// Pixels of padding on each side of an image before it is cropped to its own size.
inline constexpr int kCropPadding = 4;

struct Crop {
  int top = kCropPadding;  // begin of the crop in the padded image: 0 to 2 * kCropPadding; default: no shift
  int left = kCropPadding;
  bool flipped = false;  // left and right exchanged

  bool operator==(const Crop&) const = default;
};

// Returns the crop of image `index` in epoch `epoch`. All positions and both directions are equally likely (He et al.
// 2016, "Deep residual learning for image recognition", section 4.2, after Lee et al. 2015, "Deeply-supervised nets").
// It depends only on its arguments, so that every mode sees the same images.
Crop draw_crop(std::uint64_t seed, std::int64_t epoch, std::int64_t index);

}  // namespace syncopate::worker
