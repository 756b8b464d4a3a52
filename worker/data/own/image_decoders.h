// The two decoders behind image_file.h, each in a file that alone knows its library.
#pragma once

#include "worker/data/own/image_file.h"

namespace syncopate::worker {

Result<DecodedImage> decode_png(std::span<const std::uint8_t> bytes);
Result<DecodedImage> decode_jpeg(std::span<const std::uint8_t> bytes);

// Fails with data loss unless both sides are 1 to kLongestImageSide.
Status check_image_sides(std::uint64_t height, std::uint64_t width);

}  // namespace syncopate::worker
