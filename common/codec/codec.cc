#include "common/codec/codec.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>

#include "common/codec/half_floats.h"
#include "common/codec/int8_chunks.h"
#include "common/codec/random_k.h"
#include "common/codec/sign_chunks.h"
#include "common/codec/top_k.h"
#include "common/codec/unaligned.h"

namespace syncopate {
namespace {

using codec::Into;

void decode_floats(std::span<const std::byte> encoded, Into into, std::span<float> out) {
  codec::with_constant(into, [&](auto constant) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      codec::put<constant()>(codec::load<float>(encoded.data() + sizeof(float) * i), out[i]);
    }
  });
}

Status decode_into(const Codec& codec, std::span<const std::byte> encoded, std::uint64_t key, Into into,
                   std::span<float> out) {
  if (encoded.size() != codec.encoded_size(out.size())) {
    return Status(Code::kDataLoss, fmt::format("{} bytes of {}: {} values have {}", encoded.size(),
                                               to_string(codec.config()), out.size(), codec.encoded_size(out.size())));
  }
  switch (codec.config().kind) {
    case CodecKind::kFp16:
      codec::decode_fp16(encoded, into, out);
      return {};
    case CodecKind::kBf16:
      codec::decode_bf16(encoded, into, out);
      return {};
    case CodecKind::kInt8:
      return codec::decode_int8(encoded, into, out);
    case CodecKind::kTopK:
      return codec::decode_top_k(encoded, into, out);
    case CodecKind::kRandomK:
      codec::decode_random_k(encoded, key, into, out);
      return {};
    case CodecKind::kSign:
      return codec::decode_sign(encoded, into, out);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:  // never is
      break;
  }
  decode_floats(encoded, into, out);
  return {};
}

}  // namespace

Codec::Codec(const CodecConfig& config) : config_(config) { assert(config.kind != CodecKind::kPowerSgd); }

std::size_t Codec::encoded_size(std::size_t elements) const {
  switch (config_.kind) {
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return 2 * elements;
    case CodecKind::kInt8:
      return codec::int8_size(elements);
    case CodecKind::kTopK:
      return codec::kTopKBytes * kept_elements(config_.ratio, elements);
    case CodecKind::kRandomK:
      return codec::kRandomKBytes * kept_elements(config_.ratio, elements);
    case CodecKind::kSign:
      return codec::sign_size(elements);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:
      break;
  }
  return sizeof(float) * elements;
}

void Codec::encode(std::span<const float> values, std::uint64_t key, std::span<std::byte> out) {
  assert(out.size() == encoded_size(values.size()));
  switch (config_.kind) {
    case CodecKind::kFp16:
      return codec::encode_fp16(values, out);
    case CodecKind::kBf16:
      return codec::encode_bf16(values, out);
    case CodecKind::kInt8:
      return codec::encode_int8(values, out);
    case CodecKind::kTopK:
      return codec::encode_top_k(values, scratch_, out);
    case CodecKind::kRandomK:
      return codec::encode_random_k(values, key, out);
    case CodecKind::kSign:
      return codec::encode_sign(values, out);
    case CodecKind::kNone:
    case CodecKind::kPowerSgd:
      break;
  }
  if (!values.empty()) std::memcpy(out.data(), values.data(), values.size_bytes());
}

Status Codec::decode(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> out) const {
  return decode_into(*this, encoded, key, Into::kReplace, out);
}

Status Codec::add_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum) const {
  return decode_into(*this, encoded, key, Into::kAdd, sum);
}

Status Codec::subtract_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum) const {
  return decode_into(*this, encoded, key, Into::kSubtract, sum);
}

}  // namespace syncopate
