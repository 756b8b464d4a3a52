// Decodes images as files have them: PNG by libpng, JPEG by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kLongestImageSide = 4096;

struct DecodedImage {
  ImageShape shape;                  // one channel for grey images, else three
  std::vector<std::uint8_t> pixels;  // in the order (height, width, channel)
};

// Returns whether the name is one of an image that is read: it ends in .png, .jpg or .jpeg.
bool is_image_name(std::string_view name);

// Decodes by what the bytes are, whatever the file is called. Colours that are partly transparent lie on black; 16 bits
// a channel become 8. Fails with data loss, saying what was found, for another kind, for sides of more than
// kLongestImageSide, before it takes memory for them, and for what is truncated or not sound.
Result<DecodedImage> decode_image(std::span<const std::uint8_t> bytes);

// Returns the image at another size: each pixel is the mean of those that it covers, or interpolated between the
// nearest four where the image grows.
DecodedImage scaled_image(const DecodedImage& image, int height, int width);
// Returns a grey image in three equal channels.
DecodedImage with_three_channels(const DecodedImage& image);

}  // namespace syncopate::worker
