#include "common/codec/codec.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "common/codec/half_floats.h"
#include "common/codec/int8_chunks.h"
#include "common/codec/random_k.h"
#include "common/codec/sign_chunks.h"
#include "common/codec/top_k.h"
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

std::size_t size_of(const CodecConfig& config, std::size_t elements, const Tensors& tensors, std::int64_t epoch) {
  switch (config.kind) {
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return 2 * elements;
    case CodecKind::kInt8:
      return codec::int8_size(elements, tensors);
    case CodecKind::kTopK:
      return codec::kTopKBytes * kept_elements(ratio_in_epoch(config, epoch), elements);
    case CodecKind::kRandomK:
      return codec::kRandomKBytes * kept_elements(config.ratio, elements);
    case CodecKind::kSign:
      return codec::sign_size(elements, tensors);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:  // never is
      break;
  }
  return sizeof(float) * elements;
}

Status decode_into(const Codec& codec, std::span<const std::byte> encoded, std::uint64_t key, DecodeMode mode,
                   std::span<float> out, std::size_t begin) {
  if (!codec.epoch_of(encoded.size(), out.size(), begin)) {
    return Status::data_loss(fmt::format("{} bytes of {}: {} values have {}", encoded.size(), to_string(codec.config()),
                                         out.size(), codec.encoded_size(out.size(), begin)));
  }
  const Tensors tensors{codec.begins(), begin};
  switch (codec.config().kind) {
    case CodecKind::kFp16:
      codec::decode_fp16(encoded, mode, out);
      return {};
    case CodecKind::kBf16:
      codec::decode_bf16(encoded, mode, out);
      return {};
    case CodecKind::kInt8:
      return codec::decode_int8(encoded, tensors, mode, out);
    case CodecKind::kTopK:
      return codec::decode_top_k(encoded, mode, out);
    case CodecKind::kRandomK:
      codec::decode_random_k(encoded, key, mode, out);
      return {};
    case CodecKind::kSign:
      return codec::decode_sign(encoded, tensors, mode, out);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:  // never is
      break;
  }
  decode_floats(encoded, mode, out);
  return {};
}

}  // namespace

Codec::Codec(const CodecConfig& config, TensorBegins begins) : config_(config), begins_(std::move(begins)) {
  assert(config.kind != CodecKind::kPowerSgd);
}

std::size_t Codec::encoded_size(std::size_t elements, std::size_t begin) const {
  return size_of(config_, elements, {begins_, begin}, epoch_);
}

std::size_t Codec::largest_size(std::size_t elements, std::size_t begin) const {
  return size_of(config_, elements, {begins_, begin}, 0);
}

std::optional<std::int64_t> Codec::epoch_of(std::size_t bytes, std::size_t elements, std::size_t begin) const {
  const std::int64_t last = config_.kind == CodecKind::kTopK ? config_.warmup_epochs : 0;
  for (std::int64_t epoch = 0; epoch <= last; ++epoch) {
    if (size_of(config_, elements, {begins_, begin}, epoch) == bytes) return epoch;
  }
  return std::nullopt;
}

void Codec::encode(std::span<const float> values, std::uint64_t key, std::span<std::byte> out, std::size_t begin) {
  assert(out.size() == encoded_size(values.size(), begin));
  const Tensors tensors{begins_, begin};
  switch (config_.kind) {
    case CodecKind::kFp16:
      return codec::encode_fp16(values, out);
    case CodecKind::kBf16:
      return codec::encode_bf16(values, out);
    case CodecKind::kInt8:
      return config_.rounding == Int8Rounding::kStochastic ? codec::encode_int8_stochastic(values, tensors, key, out)
                                                           : codec::encode_int8(values, tensors, out);
    case CodecKind::kTopK:
      return codec::encode_top_k(values, scratch_, out);
    case CodecKind::kRandomK:
      return codec::encode_random_k(values, key, out);
    case CodecKind::kSign:
      return codec::encode_sign(values, tensors, out);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:
      break;
  }
  if (!values.empty()) std::memcpy(out.data(), values.data(), values.size_bytes());
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
