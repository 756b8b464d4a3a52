#include "common/codec/top_k_2bit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "common/codec/codec_config.h"
#include "common/codec/unaligned.h"

namespace syncopate::codec {
namespace {

constexpr std::size_t kPlaceBits = 12, kCodeBits = 2;
constexpr std::size_t kMagnitudes = 2 * sizeof(float);
static_assert(kTopKChunk == std::size_t{1} << kPlaceBits);

std::size_t bytes_of(std::size_t bits) { return (bits + 7) / 8; }

// Where a chunk lies among the values, and its parts among the bytes.
struct Chunk {
  std::size_t first = 0, count = 0;  // values
  std::size_t kept = 0;
  std::size_t begin = 0;  // bytes

  std::size_t places() const { return begin + kMagnitudes; }
  std::size_t codes() const { return places() + bytes_of(kPlaceBits * kept); }
  std::size_t end() const { return codes() + bytes_of(kCodeBits * kept); }
};

// Calls body(chunk) for each, in order. Returns the bytes of all.
template <typename Body>
std::size_t each_chunk_of(std::size_t elements, const Tensors& tensors, double ratio, Body&& body) {
  std::size_t bytes = 0;
  each_tensor(elements, tensors, [&](std::size_t first, std::size_t size) {
    for (std::size_t begin = 0; begin < size; begin += kTopKChunk) {
      const std::size_t count = std::min(kTopKChunk, size - begin);
      const Chunk chunk{.first = first + begin, .count = count, .kept = kept_elements(ratio, count), .begin = bytes};
      body(chunk);
      bytes = chunk.end();
    }
  });
  return bytes;
}

// The i-th number of a row of numbers of so many bits, of which none has a bit in more than two bytes.
template <std::size_t kBits>
std::uint32_t number_at(const std::byte* row, std::size_t i) {
  const std::size_t bit = kBits * i;
  std::uint32_t two = std::to_integer<std::uint32_t>(row[bit / 8]);
  if (bit % 8 + kBits > 8) two |= std::to_integer<std::uint32_t>(row[bit / 8 + 1]) << 8;
  return two >> bit % 8 & ((1u << kBits) - 1);
}
// Puts it there, where the row's bits are zero.
template <std::size_t kBits>
void put_number(std::byte* row, std::size_t i, std::uint32_t number) {
  const std::size_t bit = kBits * i;
  row[bit / 8] |= static_cast<std::byte>(number << bit % 8);
  if (bit % 8 + kBits > 8) row[bit / 8 + 1] |= static_cast<std::byte>(number >> (8 - bit % 8));
}

// Ordered as magnitudes are, NaN last.
std::uint32_t order_of(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF; }

// The least order of the k largest values, and how many of those that have it belong to them.
struct Threshold {
  std::uint32_t least = 0;
  std::size_t equal = 0;
};
Threshold threshold_of(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& scratch) {
  scratch.resize(values.size());
  std::ranges::transform(values, scratch.begin(), order_of);
  const auto last = scratch.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scratch.begin(), last, scratch.end(), std::greater<>());
  const std::uint32_t least = *last;
  const auto above = std::count_if(scratch.begin(), last, [&](std::uint32_t order) { return order > least; });
  return {.least = least, .equal = k - static_cast<std::size_t>(above)};
}

float mean_of(double sum, std::size_t count) {
  return count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : 0.0f;
}

// The means of the magnitudes below and from their mean on.
struct Levels {
  float lower = 0, upper = 0, mean = 0;
};
Levels levels_of(const float* values, std::span<const std::uint32_t> places) {
  double sum = 0;
  for (const std::uint32_t place : places) sum += static_cast<double>(std::abs(values[place]));
  Levels levels{.mean = mean_of(sum, places.size())};
  double below = 0, above = 0;
  std::size_t count = 0;  // below
  for (const std::uint32_t place : places) {
    const float magnitude = std::abs(values[place]);
    const bool is_upper = magnitude >= levels.mean;
    (is_upper ? above : below) += static_cast<double>(magnitude);
    count += is_upper ? 0 : 1;
  }
  levels.lower = mean_of(below, count);
  levels.upper = mean_of(above, places.size() - count);
  if (!std::isfinite(levels.mean)) levels.lower = levels.upper = kDiverged;
  return levels;
}

}  // namespace

std::size_t top_k_2bit_size(std::size_t elements, const Tensors& tensors, double ratio) {
  return each_chunk_of(elements, tensors, ratio, [](const Chunk&) {});
}

void encode_top_k_2bit(std::span<const float> values, const Tensors& tensors, double ratio,
                       std::vector<std::uint32_t>& scratch, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  std::vector<std::uint32_t> places;
  each_chunk_of(values.size(), tensors, ratio, [&](const Chunk& chunk) {
    const std::span<const float> own = values.subspan(chunk.first, chunk.count);
    Threshold threshold = threshold_of(own, chunk.kept, scratch);
    places.clear();
    for (std::uint32_t place = 0; place < own.size(); ++place) {
      const std::uint32_t order = order_of(own[place]);
      if (order < threshold.least || (order == threshold.least && threshold.equal == 0)) continue;
      if (order == threshold.least) --threshold.equal;
      places.push_back(place);
    }
    const Levels levels = levels_of(own.data(), places);
    store(out.data() + chunk.begin, levels.lower);
    store(out.data() + chunk.begin + sizeof(float), levels.upper);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const float value = own[places[i]];
      const std::uint32_t code = (std::abs(value) >= levels.mean ? 1 : 0) | (std::signbit(value) ? 2 : 0);
      put_number<kPlaceBits>(out.data() + chunk.places(), i, places[i]);
      put_number<kCodeBits>(out.data() + chunk.codes(), i, code);
    }
  });
}

Status decode_top_k_2bit(std::span<const std::byte> encoded, const Tensors& tensors, double ratio, DecodeMode mode,
                         std::span<float> out) {
  Status status;
  each_chunk_of(out.size(), tensors, ratio, [&](const Chunk& chunk) {
    for (const std::size_t at : {chunk.begin, chunk.begin + sizeof(float)}) {
      const float magnitude = load<float>(encoded.data() + at);
      if (status.ok() && (magnitude < 0 || std::isinf(magnitude))) {
        status =
            Status::data_loss(fmt::format("a magnitude of {}: must be finite and not negative, or NaN", magnitude));
      }
    }
    std::uint32_t least = 0;  // that the next place may be
    for (std::size_t i = 0; i < chunk.kept && status.ok(); ++i) {
      const auto place = number_at<kPlaceBits>(encoded.data() + chunk.places(), i);
      if (place < least || place >= chunk.count) {
        status = Status::data_loss(fmt::format("place {}: must ascend and be below {}", place, chunk.count));
      }
      least = place + 1;
    }
  });
  SYNCOPATE_RETURN_IF_ERROR(status);
  if (mode == DecodeMode::kReplace) std::ranges::fill(out, 0.0f);
  with_constant(mode, [&](auto constant) {
    each_chunk_of(out.size(), tensors, ratio, [&](const Chunk& chunk) {
      const float magnitudes[] = {load<float>(encoded.data() + chunk.begin),
                                  load<float>(encoded.data() + chunk.begin + sizeof(float))};
      for (std::size_t i = 0; i < chunk.kept; ++i) {
        const auto place = number_at<kPlaceBits>(encoded.data() + chunk.places(), i);
        const std::uint32_t code = number_at<kCodeBits>(encoded.data() + chunk.codes(), i);
        const float magnitude = magnitudes[code & 1];
        if (place < chunk.count) {
          put<constant()>((code & 2) != 0 ? -magnitude : magnitude, out[chunk.first + place]);
        }
      }
    });
  });
  return {};
}

}  // namespace syncopate::codec
