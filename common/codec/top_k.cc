#include "common/codec/top_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "common/codec/unaligned.h"
#include "common/os/read_once.h"
#include "common/os/target_clones.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

constexpr std::size_t kBlock = 32;

// Ordered as magnitudes are, NaN last.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF; }

// The `rank`-th largest, counted from 1. Changes the order of `keys`.
std::uint32_t nth_largest(std::span<std::uint32_t> keys, std::size_t rank) {
  std::nth_element(keys.begin(), keys.begin() + (rank - 1), keys.end(), std::greater<>());
  return keys[rank - 1];
}

// A magnitude that k values and some more are expected to reach: three standard deviations of the sample's count more.
// One of each of equal strata is sampled, at a drawn place, so that no pattern in the values can meet the sample's.
std::uint32_t sampled_threshold(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& keys) {
  const std::size_t stride = std::clamp<std::size_t>(values.size() / 1024, 1, 16);
  const std::size_t samples = std::min<std::size_t>(values.size() / stride, 65536);
  const double expected = static_cast<double>(samples) * static_cast<double>(k) / static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(expected + 3 * std::sqrt(expected) + 4);
  if (rank > samples / 2) return 0;  // hardly anything would be left out
  keys.resize(samples);
  Random random(values.size());
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t begin = i * values.size() / samples;
    keys[i] = magnitude(values[begin + random.below((i + 1) * values.size() / samples - begin)]);
  }
  return nth_largest(keys, rank);
}

bool any_reaches(const float* values, std::uint32_t threshold) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < kBlock; ++i) found |= magnitude(values[i]) >= threshold ? 1 : 0;
  return found != 0;
}

// The indices of all values that reach the threshold, ascending, at the beginning of `indices`. Returns how many.
SYNCOPATE_CLONES std::size_t collect(std::span<const float> values, std::uint32_t threshold,
                                     std::vector<std::uint32_t>& indices) {
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, values.size() - begin);
    if (size == kBlock && !any_reaches(values.data() + begin, threshold)) continue;
    if (indices.size() < count + kBlock) indices.resize(2 * (count + kBlock));
    for (std::size_t i = begin; i < begin + size; ++i) {
      indices[count] = static_cast<std::uint32_t>(i);
      count += magnitude(values[i]) >= threshold ? 1 : 0;
    }
  }
  return count;
}

// Keeps k of the ascending `indices`: those of the largest magnitudes, and of equal ones the first.
void keep_largest(std::span<const float> values, std::span<std::uint32_t> indices, std::size_t k) {
  std::vector<std::uint32_t> keys(indices.size());
  std::ranges::transform(indices, keys.begin(), [&](std::uint32_t index) { return magnitude(values[index]); });
  const std::uint32_t least = nth_largest(keys, k);
  std::size_t equal = k - std::count_if(keys.begin(), keys.begin() + k, [&](std::uint32_t key) { return key > least; });
  std::size_t kept = 0;
  for (const std::uint32_t index : indices) {
    const std::uint32_t key = magnitude(values[index]);
    if (key < least || (key == least && equal == 0)) continue;
    if (key == least) --equal;
    indices[kept++] = index;
  }
}

}  // namespace

void encode_top_k(std::span<const float> values, std::vector<std::uint32_t>& scratch, std::span<std::byte> out) {
  const std::size_t k = out.size() / kTopKBytes;
  if (k == 0) return;
  // Zeros are the first to be left out, however many the sample held.
  const std::uint32_t threshold = std::max(sampled_threshold(values, k, scratch), 1u);
  std::size_t found = collect(values, threshold, scratch);
  if (found < k) found = collect(values, 0, scratch);
  if (found > k) keep_largest(values, std::span(scratch).first(found), k);
  for (std::size_t i = 0; i < k; ++i) {
    store(out.data() + 4 * i, scratch[i]);
    store(out.data() + 4 * (k + i), values[scratch[i]]);
  }
}

Status decode_top_k(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out) {
  const std::size_t k = encoded.size() / kTopKBytes;
  const auto index = [&](std::size_t i) { return read_once<std::uint32_t>(encoded.data() + 4 * i); };
  std::uint64_t least = 0;  // that the next index may be
  for (std::size_t i = 0; i < k; ++i) {
    const std::uint32_t at = index(i);
    if (at < least || at >= out.size()) {
      return Status::data_loss(fmt::format("index {}: must ascend and be below {}", at, out.size()));
    }
    least = std::uint64_t{at} + 1;
  }
  if (mode == DecodeMode::kReplace) std::ranges::fill(out, 0.0f);
  with_constant(mode, [&](auto constant) {
    for (std::size_t i = 0; i < k; ++i) {
      const std::uint32_t at = index(i);
      if (at < out.size()) put<constant()>(load<float>(encoded.data() + 4 * (k + i)), out[at]);
    }
  });
  return {};
}

void clear_sent(std::span<const std::byte> encoded, std::span<float> values) {
  const std::size_t k = encoded.size() / kTopKBytes;
  for (std::size_t i = 0; i < k; ++i) values[load<std::uint32_t>(encoded.data() + 4 * i)] = 0;
}

}  // namespace syncopate::codec
