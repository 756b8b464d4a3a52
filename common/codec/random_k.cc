#include "common/codec/random_k.h"

#include <algorithm>

#include "common/codec/unaligned.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

// Calls body(i, index) for the k indices below n, ascending.
template <typename Body>
void each_drawn(std::uint64_t key, std::size_t n, std::size_t k, Body&& body) {
  Random random(key);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t end = (i + 1) * n / k;
    body(i, begin + random.below(end - begin));
    begin = end;
  }
}

}  // namespace

void encode_random_k(std::span<const float> values, std::uint64_t key, std::span<std::byte> out) {
  each_drawn(key, values.size(), out.size() / kRandomKBytes,
             [&](std::size_t i, std::size_t index) { store(out.data() + kRandomKBytes * i, values[index]); });
}

void decode_random_k(std::span<const std::byte> encoded, std::uint64_t key, DecodeMode mode, std::span<float> out) {
  if (mode == DecodeMode::kReplace) std::ranges::fill(out, 0.0f);
  with_constant(mode, [&](auto constant) {
    each_drawn(key, out.size(), encoded.size() / kRandomKBytes, [&](std::size_t i, std::size_t index) {
      put<constant()>(load<float>(encoded.data() + kRandomKBytes * i), out[index]);
    });
  });
}

}  // namespace syncopate::codec
