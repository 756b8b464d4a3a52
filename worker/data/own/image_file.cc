#include "worker/data/own/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "worker/data/own/image_decoders.h"

namespace syncopate::worker {
namespace {

constexpr std::array<std::uint8_t, 4> kPngMagic{0x89, 'P', 'N', 'G'};
constexpr std::array<std::uint8_t, 3> kJpegMagic{0xff, 0xd8, 0xff};

template <std::size_t count>
bool begins_with(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, count>& magic) {
  return bytes.size() >= count && std::ranges::equal(bytes.first(count), magic);
}

// Which pixels of a row (or column) of `from` make pixel `to` of a row of `size`, and how much of it.
struct Source {
  int first;
  std::vector<float> weights;
};

std::vector<Source> sources_of(int from, int size) {
  const double ratio = static_cast<double>(from) / size, reach = std::max(ratio, 1.0);
  std::vector<Source> sources;
  for (int to = 0; to < size; ++to) {
    const double center = (to + 0.5) * ratio;  // a tent of this reach on each side
    const int first = std::clamp(static_cast<int>(std::floor(center - reach)), 0, from - 1);
    const int last = std::clamp(static_cast<int>(std::ceil(center + reach)), first, from - 1);
    Source source{.first = first, .weights = {}};
    double sum = 0;
    for (int at = first; at <= last; ++at) {
      const double weight = std::max(0.0, 1 - std::abs(at + 0.5 - center) / reach);
      source.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : source.weights) weight = static_cast<float>(weight / sum);
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace

Status check_image_sides(std::uint64_t height, std::uint64_t width) {
  if (height >= 1 && width >= 1 && height <= kLongestImageSide && width <= kLongestImageSide) return {};
  return Status::data_loss(
      fmt::format("an image of {}x{} pixels, expected sides of 1 to {}", height, width, kLongestImageSide));
}

bool is_image_name(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.ends_with(".png") || lower.ends_with(".jpg") || lower.ends_with(".jpeg");
}

Result<DecodedImage> decode_image(std::span<const std::uint8_t> bytes) {
  if (begins_with(bytes, kPngMagic)) return decode_png(bytes);
  if (begins_with(bytes, kJpegMagic)) return decode_jpeg(bytes);
  return Status::data_loss("is neither a PNG nor a JPEG");
}

DecodedImage scaled_image(const DecodedImage& image, int height, int width) {
  const auto [from_height, from_width, channels] = image.shape;
  if (from_height == height && from_width == width) return image;
  const std::vector<Source> columns = sources_of(from_width, width), rows = sources_of(from_height, height);
  const auto index = [per_pixel = channels](int y, int x, int c, int row) {
    return static_cast<std::size_t>((static_cast<std::int64_t>(y) * row + x) * per_pixel + c);
  };
  std::vector<float> narrowed(static_cast<std::size_t>(from_height) * width * channels);
  for (int y = 0; y < from_height; ++y) {
    for (int x = 0; x < width; ++x) {
      const Source& source = columns[static_cast<std::size_t>(x)];
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::size_t i = 0; i < source.weights.size(); ++i) {
          sum += source.weights[i] * image.pixels[index(y, source.first + static_cast<int>(i), c, from_width)];
        }
        narrowed[index(y, x, c, width)] = sum;
      }
    }
  }
  DecodedImage scaled{.shape = {height, width, channels},
                      .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(height) * width * channels)};
  for (int y = 0; y < height; ++y) {
    const Source& source = rows[static_cast<std::size_t>(y)];
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::size_t i = 0; i < source.weights.size(); ++i) {
          sum += source.weights[i] * narrowed[index(source.first + static_cast<int>(i), x, c, width)];
        }
        scaled.pixels[index(y, x, c, width)] = static_cast<std::uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
      }
    }
  }
  return scaled;
}

DecodedImage with_three_channels(const DecodedImage& image) {
  if (image.shape.channels == 3) return image;
  DecodedImage colour{.shape = {image.shape.height, image.shape.width, 3}, .pixels = {}};
  colour.pixels.reserve(3 * image.pixels.size());
  for (const std::uint8_t grey : image.pixels) colour.pixels.insert(colour.pixels.end(), 3, grey);
  return colour;
}

}  // namespace syncopate::worker
