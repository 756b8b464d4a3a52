#include "common/codec/random_k.h"

#include <algorithm>

#include "common/codec/unaligned.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

// Calls body(i, index) for k indices of `elements` values, ascending.
template <typename Body>
void each_drawn(std::uint64_t key, std::size_t elements, const Tensors& tensors, std::size_t k, Body&& body) {
  const std::size_t n = values_of_tensors(elements, tensors);
  Random random(key);
  std::size_t i = 0, begin = 0, drawn = 0;  // among the n
  const auto draw = [&] {
    const std::size_t end = (i + 1) * n / k;
    drawn = begin + random.below(end - begin);
    begin = end;
  };
  if (k > 0) draw();
  std::size_t passed = 0;
  each_tensor(elements, tensors, [&](std::size_t first, std::size_t count) {
    while (i < k && drawn < passed + count) {
      body(i, first + drawn - passed);
      if (++i < k) draw();
    }
    passed += count;
  });
}

}  // namespace

void encode_random_k(std::span<const float> values, const Tensors& tensors, std::uint64_t key,
                     std::span<std::byte> out) {
  each_drawn(key, values.size(), tensors, out.size() / kRandomKBytes,
             [&](std::size_t i, std::size_t index) { store(out.data() + kRandomKBytes * i, values[index]); });
}

void decode_random_k(std::span<const std::byte> encoded, const Tensors& tensors, std::uint64_t key, DecodeMode mode,
                     std::span<float> out) {
  if (mode == DecodeMode::kReplace) std::ranges::fill(out, 0.0f);
  with_constant(mode, [&](auto constant) {
    each_drawn(key, out.size(), tensors, encoded.size() / kRandomKBytes, [&](std::size_t i, std::size_t index) {
      put<constant()>(load<float>(encoded.data() + kRandomKBytes * i), out[index]);
    });
  });
}

}  // namespace syncopate::codec
