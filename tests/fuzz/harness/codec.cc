// Every codec: bytes that are no encoding change nothing, and of what is one each way to take it says the same.
#include "common/codec/codec.h"

#include <array>
#include <cstring>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

constexpr std::array<CodecConfig, 8> kCodecs = {{{.kind = CodecKind::kNone},
                                                 {.kind = CodecKind::kFp16},
                                                 {.kind = CodecKind::kBf16},
                                                 {.kind = CodecKind::kInt8},
                                                 {.kind = CodecKind::kTopK, .ratio = 0.1},
                                                 {.kind = CodecKind::kRandomK, .ratio = 0.1},
                                                 {.kind = CodecKind::kSign},
                                                 {.kind = CodecKind::kTopK, .ratio = 1}}};
// What the values were before, so that a change can be seen.
constexpr float kBefore = 0.5f;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

const Harness codec("codec", [](Bytes bytes) {
  Input input(bytes);
  const Codec coder(kCodecs[input.below(kCodecs.size())]);
  const std::size_t elements = input.value<std::uint16_t>() % 3000;
  const std::uint64_t key = input.value<std::uint32_t>();
  // Mostly of the right length, so that what is looked at behind the length is reached.
  std::vector<std::byte> encoded(input.coin() ? coder.encoded_size(elements) : input.value<std::uint16_t>());
  const Bytes rest = input.rest();
  for (std::size_t i = 0; i < encoded.size() && !rest.empty(); ++i) encoded[i] = std::byte{rest[i % rest.size()]};

  const std::vector<float> before(elements, kBefore);
  std::vector<float> out = before, sum = before, difference = before;
  const bool decoded = coder.decode(encoded, key, out).ok();
  require(coder.add_decoded(encoded, key, sum).ok() == decoded, "add_decoded takes what decode takes");
  require(coder.subtract_decoded(encoded, key, difference).ok() == decoded, "subtract_decoded takes what decode takes");
  if (decoded) return;
  require(same_bits(out, before) && same_bits(sum, before) && same_bits(difference, before),
          "what is no encoding changes nothing");
});

}  // namespace
}  // namespace syncopate::fuzz
