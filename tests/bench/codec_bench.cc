// What a codec costs one core, beside memcpy in the same run. bytes_per_second counts the float32 that go in, over the
// time of encoding and decoding together (round_trip), of encoding with error feedback, or of one round of PowerSGD on
// a square matrix. Arrays of 256 KiB, which a core's own cache holds, and of 64 MiB, which none does.
//   build/release/tests/bench/codec_bench
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "common/codec/error_feedback.h"
#include "common/codec/power_sgd.h"
#include "common/os/aligned_buffer.h"
#include "common/random.h"

namespace syncopate {
namespace {

constexpr std::int64_t kInCache = 256 << 10;
constexpr std::int64_t kInMemory = 64 << 20;

AlignedBuffer gradients(std::size_t bytes) {
  AlignedBuffer values(bytes / sizeof(float));
  Random random(1);
  for (float& value : values.span()) value = static_cast<float>(random.normal());
  return values;
}

void memory_copy(benchmark::State& state) {
  const AlignedBuffer from = gradients(static_cast<std::size_t>(state.range(0)));
  AlignedBuffer to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.span().size_bytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(memory_copy)->Arg(kInCache)->Arg(kInMemory);

void round_trip(benchmark::State& state, const char* name, Int8Rounding rounding = Int8Rounding::kNearest) {
  const AlignedBuffer values = gradients(static_cast<std::size_t>(state.range(0)));
  AlignedBuffer decoded(values.size());
  CodecConfig config = *parse_codec(name);
  config.rounding = rounding;
  Codec codec(config);
  std::vector<std::byte> encoded(codec.encoded_size(values.size()));
  std::uint64_t key = 0;
  for (auto _ : state) {
    codec.encode(values.span(), ++key, encoded);
    if (!codec.decode(encoded, key, decoded.span()).ok()) state.SkipWithError("not decoded");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(round_trip, none, "none")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, fp16, "fp16")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, bf16, "bf16")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, int8, "int8")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, int8_stochastic, "int8", Int8Rounding::kStochastic)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, sign, "sign")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, topk_001, "topk:0.01")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(round_trip, randomk_001, "randomk:0.01")->Arg(kInCache)->Arg(kInMemory);

void encode_with_feedback(benchmark::State& state, const char* name) {
  const AlignedBuffer values = gradients(static_cast<std::size_t>(state.range(0)));
  ErrorFeedback feedback(*parse_codec(name), values.size());
  std::vector<std::byte> encoded(feedback.codec().encoded_size(values.size()));
  std::uint64_t key = 0;
  for (auto _ : state) {
    feedback.encode({0, values.size()}, values.span(), ++key, encoded);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(encode_with_feedback, sign, "sign")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(encode_with_feedback, topk_001, "topk:0.01")->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(encode_with_feedback, randomk_001, "randomk:0.01")->Arg(kInCache)->Arg(kInMemory);

void power_sgd_round(benchmark::State& state) {
  const AlignedBuffer matrix = gradients(static_cast<std::size_t>(state.range(0)));
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(matrix.size())));
  const power_sgd::Shape shape = *power_sgd::shape_of(std::vector{side, side}, static_cast<int>(state.range(1)));
  AlignedBuffer left(shape.left_elements()), right(shape.right_elements()), product(shape.elements());
  power_sgd::fill_empty_columns(1, shape.columns, right.span());
  for (auto _ : state) {
    power_sgd::left_factor(shape, matrix.span(), right.span(), left.span());
    power_sgd::orthogonalize(shape.rows, left.span());
    power_sgd::right_factor(shape, matrix.span(), left.span(), right.span());
    power_sgd::reconstruct(shape, left.span(), right.span(), product.span());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(power_sgd_round)->Args({kInCache, 4})->Args({kInMemory, 4});

}  // namespace
}  // namespace syncopate

BENCHMARK_MAIN();
