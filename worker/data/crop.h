// Crop: how a training image is shown in one epoch: shifted, and perhaps as in a mirror. Pure.
#pragma once

#include <cstdint>

namespace syncopate::worker {

// Pixels that are put around an image before it is cut out again in its own size.
inline constexpr int kCropPadding = 4;

struct Crop {
  int top = kCropPadding;  // where the cut begins in the padded image: 0 to 2 * kCropPadding; usual: in the middle
  int left = kCropPadding;
  bool flipped = false;  // left and right

  bool operator==(const Crop&) const = default;
};

// That of image `index` in epoch `epoch`: each of the places and both directions equally likely (He et al. 2016, "Deep
// residual learning for image recognition", section 4.2, after Lee et al. 2015, "Deeply-supervised nets"). A function
// of its arguments alone, so that every mode sees the same images.
Crop draw_crop(std::uint64_t seed, std::int64_t epoch, std::int64_t index);

}  // namespace syncopate::worker
