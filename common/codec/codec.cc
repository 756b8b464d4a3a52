#include "common/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "common/codec/chunks.h"
#include "common/codec/half_floats.h"
#include "common/codec/int8_chunks.h"
#include "common/codec/random_k.h"
#include "common/codec/sign_chunks.h"
#include "common/codec/top_k.h"
#include "common/codec/top_k_2bit.h"
#include "common/codec/unaligned.h"
#include "common/os/target_clones.h"

namespace syncopate {
namespace {

using codec::DecodeMode;
using codec::Tensors;

SYNCOPATE_CLONES void decode_floats(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out) {
  codec::with_constant(mode, [&](auto constant) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      codec::put<constant()>(codec::load<float>(encoded.data() + sizeof(float) * i), out[i]);
    }
  });
}

// Calls body(the values of a tensor, their bytes) for each tensor, where a value has `width` bytes.
template <typename Values, typename Encoded, typename Body>
void each_part(Values values, Encoded encoded, std::size_t width, const Tensors& tensors, Body&& body) {
  std::size_t offset = 0;
  codec::each_tensor(values.size(), tensors, [&](std::size_t first, std::size_t count) {
    body(values.subspan(first, count), encoded.subspan(offset, width * count));
    offset += width * count;
  });
}

void clear_padding(const Tensors& tensors, std::span<float> values) {
  std::size_t end = 0;  // of the last tensor
  codec::each_tensor(values.size(), tensors, [&](std::size_t first, std::size_t count) {
    std::ranges::fill(values.subspan(end, first - end), 0.0f);
    end = first + count;
  });
  std::ranges::fill(values.subspan(end), 0.0f);
}

std::size_t size_of(const CodecConfig& config, std::size_t elements, const Tensors& tensors, std::int64_t epoch) {
  const std::size_t values = codec::values_of_tensors(elements, tensors);
  switch (config.kind) {
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return 2 * values;
    case CodecKind::kInt8:
      return codec::int8_size(elements, tensors);
    case CodecKind::kTopK:
      return codec::kTopKBytes * kept_elements(ratio_in_epoch(config, epoch), values);
    case CodecKind::kTopK2Bit:
      return codec::top_k_2bit_size(elements, tensors, config.ratio);
    case CodecKind::kRandomK:
      return codec::kRandomKBytes * kept_elements(config.ratio, values);
    case CodecKind::kSign:
      return codec::sign_size(elements, tensors);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:  // never is
      break;
  }
  return sizeof(float) * values;
}

Status decode_values(const CodecConfig& config, std::span<const std::byte> encoded, std::uint64_t key, DecodeMode mode,
                     const Tensors& tensors, std::span<float> out) {
  const auto in_parts = [&](std::size_t width, auto decode) {
    each_part(out, encoded, width, tensors,
              [&](std::span<float> values, std::span<const std::byte> bytes) { decode(bytes, mode, values); });
    return Status();
  };
  switch (config.kind) {
    case CodecKind::kFp16:
      return in_parts(2, codec::decode_fp16);
    case CodecKind::kBf16:
      return in_parts(2, codec::decode_bf16);
    case CodecKind::kInt8:
      return codec::decode_int8(encoded, tensors, mode, out);
    case CodecKind::kTopK:
      return codec::decode_top_k(encoded, mode, out);
    case CodecKind::kTopK2Bit:
      return codec::decode_top_k_2bit(encoded, tensors, config.ratio, mode, out);
    case CodecKind::kRandomK:
      codec::decode_random_k(encoded, tensors, key, mode, out);
      return {};
    case CodecKind::kSign:
      return codec::decode_sign(encoded, tensors, mode, out);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:  // never is
      break;
  }
  return in_parts(sizeof(float), [](auto... parts) { decode_floats(parts...); });
}

Status decode_into(const Codec& codec, std::span<const std::byte> encoded, std::uint64_t key, DecodeMode mode,
                   std::span<float> out, std::size_t begin) {
  if (!codec.epoch_of(encoded.size(), out.size(), begin)) {
    return Status::data_loss(fmt::format("{} bytes of {}: {} values have {}", encoded.size(), to_string(codec.config()),
                                         out.size(), codec.encoded_size(out.size(), begin)));
  }
  const Tensors tensors{codec.tensors(), begin};
  SYNCOPATE_RETURN_IF_ERROR(decode_values(codec.config(), encoded, key, mode, tensors, out));
  if (mode == DecodeMode::kReplace) clear_padding(tensors, out);
  return {};
}

}  // namespace

Codec::Codec(const CodecConfig& config, TensorRanges tensors) : config_(config), tensors_(std::move(tensors)) {
  assert(config.kind != CodecKind::kPowerSgd);
}

std::size_t Codec::encoded_size(std::size_t elements, std::size_t begin) const {
  return size_of(config_, elements, {tensors_, begin}, epoch_);
}

std::size_t Codec::largest_size(std::size_t elements, std::size_t begin) const {
  return size_of(config_, elements, {tensors_, begin}, 0);
}

std::optional<std::int64_t> Codec::epoch_of(std::size_t bytes, std::size_t elements, std::size_t begin) const {
  const std::int64_t last = config_.kind == CodecKind::kTopK ? config_.warmup_epochs : 0;
  for (std::int64_t epoch = 0; epoch <= last; ++epoch) {
    if (size_of(config_, elements, {tensors_, begin}, epoch) == bytes) return epoch;
  }
  return std::nullopt;
}

void Codec::encode(std::span<const float> values, std::uint64_t key, std::span<std::byte> out, std::size_t begin) {
  assert(out.size() == encoded_size(values.size(), begin));
  const Tensors tensors{tensors_, begin};
  switch (config_.kind) {
    case CodecKind::kFp16:
      return each_part(values, out, 2, tensors, codec::encode_fp16);
    case CodecKind::kBf16:
      return each_part(values, out, 2, tensors, codec::encode_bf16);
    case CodecKind::kInt8:
      return config_.rounding == Int8Rounding::kStochastic ? codec::encode_int8_stochastic(values, tensors, key, out)
                                                           : codec::encode_int8(values, tensors, out);
    case CodecKind::kTopK:
      return codec::encode_top_k(values, scratch_, out);  // padding is zero, and so the last to be chosen
    case CodecKind::kTopK2Bit:
      return codec::encode_top_k_2bit(values, tensors, config_.ratio, scratch_, out);
    case CodecKind::kRandomK:
      return codec::encode_random_k(values, tensors, key, out);
    case CodecKind::kSign:
      return codec::encode_sign(values, tensors, out);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:
      break;
  }
  each_part(values, out, sizeof(float), tensors, [](std::span<const float> part, std::span<std::byte> bytes) {
    if (!part.empty()) std::memcpy(bytes.data(), part.data(), part.size_bytes());
  });
}

Status Codec::decode(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> out,
                     std::size_t begin) const {
  return decode_into(*this, encoded, key, DecodeMode::kReplace, out, begin);
}

Status Codec::add_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum,
                          std::size_t begin) const {
  return decode_into(*this, encoded, key, DecodeMode::kAdd, sum, begin);
}

Status Codec::subtract_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum,
                               std::size_t begin) const {
  return decode_into(*this, encoded, key, DecodeMode::kSubtract, sum, begin);
}

}  // namespace syncopate
