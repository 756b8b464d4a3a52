#include <fmt/format.h>
#include <png.h>

#include "worker/data/own/image_decoders.h"

namespace syncopate::worker {
namespace {

// Frees what libpng keeps of an image that is being read.
class PngReading {
 public:
  PngReading() { image_.version = PNG_IMAGE_VERSION; }
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;
  ~PngReading() { ::png_image_free(&image_); }

  png_image& image() { return image_; }

 private:
  png_image image_{};
};

}  // namespace

Result<DecodedImage> decode_png(std::span<const std::uint8_t> bytes) {
  PngReading reading;
  png_image& png = reading.image();
  const auto broken = [&] { return Status::data_loss(fmt::format("no sound PNG: {}", png.message)); };
  if (::png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) return broken();
  SYNCOPATE_RETURN_IF_ERROR(check_image_sides(png.height, png.width));
  const bool is_grey = (png.format & PNG_FORMAT_FLAG_COLOR) == 0;
  png.format = is_grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  DecodedImage decoded{.shape = {static_cast<int>(png.height), static_cast<int>(png.width), is_grey ? 1 : 3},
                       .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(png))};
  const png_color black{};
  if (::png_image_finish_read(&png, &black, decoded.pixels.data(), 0, nullptr) == 0) return broken();
  return decoded;
}

}  // namespace syncopate::worker
