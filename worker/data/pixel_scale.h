// PixelScale: what a byte of an image of ink on paper is to a model.
#pragma once

#include <string_view>

namespace syncopate::worker {

// kShifted: 2 · value / 255 - 0.3, whose mean over such images is near zero, without which learning is slow (LeCun et
// al. 1998, "Efficient BackProp", section 4.3). kUnit: value / 255, as Keras's guides have it.
enum class PixelScale { kShifted, kUnit };

// Behind the name of a data set that open_dataset takes: its pixels are scaled by kUnit, as in "mnist:unit".
inline constexpr std::string_view kUnitSuffix = ":unit";

}  // namespace syncopate::worker
