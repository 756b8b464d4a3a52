// What codecs make of an arena of small tensors, written out plainly and value by value: the oracle for tensors that
// are followed by padding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/codec/codec_config.h"
#include "common/param_layout.h"

namespace syncopate::testing_support {

// Tensors of 1, 3, 10 and 17 elements: at places 0, 16, 32 and 48 of 80.
inline ParamLayout layout_of_small_tensors() {
  ParamLayout layout;
  for (const std::int64_t elements : {1, 3, 10, 17}) layout.add("of" + std::to_string(elements), {elements});
  return layout;
}
inline constexpr std::size_t kSmallTensorsElements = 1 + 3 + 10 + 17;

inline bool is_padding(const ParamLayout& layout, std::size_t place) {
  return std::ranges::none_of(layout.tensors(), [&](const TensorSpec& tensor) {
    return tensor.range.begin <= place && place < tensor.range.end;
  });
}

// `bits` of mantissa, to nearest and ties to even; `least` is the exponent below which values are denormal.
inline float plainly_rounded(float value, int bits, int least) {
  if (value == 0) return 0;
  const double place = std::exp2(std::max(std::ilogb(value), least) - bits);
  return static_cast<float>(std::nearbyint(value / place) * place);
}

// What arrives of values of one tensor, all in one chunk.
inline void plainly_code(const CodecConfig& codec, std::span<float> values) {
  double sum = 0, largest = 0;
  for (const float value : values) {
    sum += std::abs(value);
    largest = std::max<double>(largest, std::abs(value));
  }
  for (float& value : values) {
    if (codec.kind == CodecKind::kFp16) value = plainly_rounded(value, 10, -14);
    if (codec.kind == CodecKind::kBf16) value = plainly_rounded(value, 7, -126);
    if (codec.kind == CodecKind::kInt8 && largest > 0) {
      value = static_cast<float>(std::nearbyint(value * 127 / largest) * largest / 127);
    }
    if (codec.kind == CodecKind::kSign) {
      value = static_cast<float>((std::signbit(value) ? -1 : 1) * sum / static_cast<double>(values.size()));
    }
  }
}

// The same for top-k with 2 bits: the largest keep their signs, and have the mean of those above their mean, or of
// those below it.
inline void plainly_level(double ratio, std::span<float> values) {
  std::vector<std::size_t> places(values.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::stable_sort(places, [&](auto a, auto b) { return std::abs(values[a]) > std::abs(values[b]); });
  const auto kept = static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(values.size())));
  const auto mean_of = [&](const auto& belongs) {
    double sum = 0;
    int count = 0;
    for (std::size_t i = 0; i < kept; ++i) {
      const double magnitude = std::abs(values[places[i]]);
      if (!belongs(magnitude)) continue;
      sum += magnitude;
      ++count;
    }
    return count > 0 ? sum / count : 0.0;
  };
  const double mean = mean_of([](double) { return true; });
  const double levels[] = {mean_of([&](double magnitude) { return magnitude < mean; }),
                           mean_of([&](double magnitude) { return magnitude >= mean; })};
  std::vector<float> sent(values.size());
  for (std::size_t i = 0; i < kept; ++i) {
    const float value = values[places[i]];
    const double level = levels[std::abs(value) >= mean ? 1 : 0];
    sent[places[i]] = static_cast<float>(std::signbit(value) ? -level : level);
  }
  std::ranges::copy(sent, values.begin());
}

// What arrives of `range` of an arena: zeros where nothing does. Not for random-k and PowerSGD.
inline std::vector<float> plainly_sent(const CodecConfig& codec, const ParamLayout& layout, Range range,
                                       std::span<const float> arena) {
  std::vector<float> sent(range.size());
  std::vector<std::size_t> values;  // places
  for (const TensorSpec& tensor : layout.tensors()) {
    std::vector<float> part;
    const std::size_t begin = std::max(range.begin, tensor.range.begin), end = std::min(range.end, tensor.range.end);
    for (std::size_t i = begin; i < end; ++i) {
      values.push_back(i);
      part.push_back(arena[i]);
    }
    plainly_code(codec, part);
    if (codec.kind == CodecKind::kTopK2Bit) plainly_level(codec.ratio, part);
    if (codec.kind != CodecKind::kTopK && !part.empty()) std::ranges::copy(part, sent.begin() + (begin - range.begin));
  }
  if (codec.kind != CodecKind::kTopK) return sent;
  std::ranges::stable_sort(values, [&](auto a, auto b) { return std::abs(arena[a]) > std::abs(arena[b]); });
  values.resize(static_cast<std::size_t>(std::ceil(codec.ratio * static_cast<double>(values.size()))));
  for (const std::size_t i : values) sent[i - range.begin] = arena[i];
  return sent;
}

// A sender that adds what was lost to what comes next, where its codec asks for that.
class PlainSender {
 public:
  PlainSender(const CodecConfig& codec, const ParamLayout& layout)
      : codec_(codec), layout_(layout), kept_(layout.size()) {}

  // `arena` has values in `range`.
  std::vector<float> send(Range range, std::span<const float> arena) {
    for (std::size_t i = range.begin; i < range.end; ++i) kept_[i] = codec_.decay * kept_[i] + arena[i];
    std::vector<float> sent = plainly_sent(codec_, layout_, range, kept_);
    for (std::size_t i = range.begin; i < range.end; ++i) {
      kept_[i] = needs_error_feedback(codec_.kind) ? kept_[i] - sent[i - range.begin] : 0;
    }
    return sent;
  }

 private:
  CodecConfig codec_;
  ParamLayout layout_;
  std::vector<float> kept_;
};

}  // namespace syncopate::testing_support
