// Prints a line for each loop that is made for several processors (common/os/target_clones.h): its name, and a digest
// of what it makes of drawn numbers. Built once for each of these processors, so that a test can compare the bits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective/rank_order_sum.h"
#include "common/codec/codec.h"
#include "common/codec/power_sgd.h"
#include "common/float_loops.h"
#include "common/optimizer/optimizer.h"

namespace {

using namespace syncopate;

// Not a multiple of any vector's length.
constexpr std::size_t kCount = 4099;

std::vector<float> drawn(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(kCount);
  // They have many magnitudes, so that sums round.
  for (float& value : values) {
    const auto bits = static_cast<std::int32_t>(random());
    value = static_cast<float>(bits) / static_cast<float>(1u << (20 + random() % 24));
  }
  return values;
}

// Fowler, Noll and Vo's hash, FNV-1a.
void print(const std::string& name, std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(hash));
}
void print(const std::string& name, std::span<const float> values) { print(name, std::as_bytes(values)); }

void codecs() {
  for (const char* name : {"fp16", "bf16", "int8", "topk:0.01", "randomk:0.01", "sign"}) {
    Codec codec(*parse_codec(name));
    std::vector<float> values = drawn(1), decoded(kCount);
    std::vector<std::byte> encoded(codec.encoded_size(kCount));
    codec.encode(values, 7, encoded);
    if (!codec.decode(encoded, 7, decoded).ok()) std::abort();
    if (!codec.subtract_decoded(encoded, 7, values).ok()) std::abort();
    print(std::string(name) + " encoded", encoded);
    print(std::string(name) + " decoded", decoded);
    print(std::string(name) + " lost", values);
  }
  const power_sgd::Shape shape{.rows = 61, .columns = 67, .rank = 4};
  const std::vector<float> all = drawn(2);
  std::vector<float> matrix(all.begin(), all.begin() + 61 * 67);
  std::vector<float> right(shape.right_elements()), left(shape.left_elements());
  power_sgd::fill_empty_columns(3, shape.columns, right);
  power_sgd::left_factor(shape, matrix, right, left);
  power_sgd::orthogonalize(shape.rows, left);
  power_sgd::right_factor(shape, matrix, left, right);
  power_sgd::subtract_product(shape, left, right, matrix);
  print("powersgd lost", matrix);
  power_sgd::reconstruct(shape, left, right, matrix);
  print("powersgd", matrix);
}

void optimizers() {
  const OptimizerKind kinds[] = {OptimizerKind::kSgd,     OptimizerKind::kMomentum, OptimizerKind::kAdam,
                                 OptimizerKind::kAdamW,   OptimizerKind::kAdagrad,  OptimizerKind::kFtrl,
                                 OptimizerKind::kRmsprop, OptimizerKind::kAdadelta, OptimizerKind::kAdamax,
                                 OptimizerKind::kLars,    OptimizerKind::kLamb};
  for (const OptimizerKind kind : kinds) {
    const Optimizer optimizer(OptimizerConfig{.kind = kind, .weight_decay = kind == OptimizerKind::kFtrl ? 0 : 0.01f});
    OptimizerState state({.kind = kind}, kCount);
    std::vector<float> weights = drawn(4);
    for (int step = 1; step <= 3; ++step) {
      optimizer.apply(weights, drawn(4 + static_cast<std::uint32_t>(step)), state, 0,
                      {.learning_rate = 0.01f, .gradient_scale = 1.0f / 3, .number = step});
    }
    print("optimizer " + std::to_string(static_cast<int>(kind)), weights);
  }
}

void sums() {
  for (const std::size_t ranks : {2, 3, 9}) {
    std::vector<std::vector<float>> parts;
    std::vector<float*> buffers;
    for (std::size_t rank = 0; rank < ranks; ++rank) parts.push_back(drawn(20 + static_cast<std::uint32_t>(rank)));
    for (std::vector<float>& part : parts) buffers.push_back(part.data());
    allreduce::sum_everywhere(buffers, kCount);
    print("sum of " + std::to_string(ranks), parts.back());
  }
  const std::vector<float> values = drawn(30);
  std::vector<float> sum = drawn(31);
  add(values.data(), sum.data(), kCount);
  std::vector<float> mean(kCount);
  scale(1.0f / 7, sum.data(), mean.data(), kCount);
  print("mean", mean);
}

}  // namespace

int main() {
  codecs();
  optimizers();
  sums();
}
