// What one worker's processor core does: training steps without data or peers, and the optimizer alone.
//   build/release/tests/bench/compute_bench
#include <benchmark/benchmark.h>

#include "common/optimizer/optimizer.h"
#include "common/os/flush_denormals.h"
#include "worker/data/image_dataset.h"
#include "worker/data/text_form.h"
#include "worker/local_strategy.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

const SampleForm kDigit = form_of_images({28, 28, 1}, 10);
const SampleForm kColour = form_of_images({32, 32, 3}, 10);
const SampleForm kText = form_of_text(64, 256);

std::vector<int> random_numbers(int count, int range, Random& random) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  for (int& number : numbers) number = static_cast<int>(random.below(static_cast<std::uint64_t>(range)));
  return numbers;
}

// Items are labels: images, or characters of a text.
void train_steps(benchmark::State& state, const char* spec, const SampleForm& form) {
  const int batch_size = static_cast<int>(state.range(0));
  const auto backend = make_onednn_backend();
  const auto model = std::move(*make_model(spec, form, batch_size, *backend));
  const SteadyClock clock;
  LocalStrategy strategy({.kind = OptimizerKind::kAdam}, clock);
  const ParamArenas arenas = *strategy.allocate(model->layout());
  model->initialize(1, arenas.weights);

  AlignedBuffer images(static_cast<std::size_t>(batch_size * form.values()));
  Random random(1);
  for (float& value : images.span()) value = static_cast<float>(random.uniform());
  const std::vector<int> ids = random_numbers(batch_size * form.id_columns(), form.classes, random);
  const std::vector<int> labels = random_numbers(batch_size * form.labels, form.classes, random);

  const FlushDenormals flush;  // as in train()
  std::int64_t step = 0;
  Duration forward{}, backward{}, optimizer{};
  for (auto _ : state) {
    const TimePoint start = clock.now();
    strategy.begin_step({step++, 1e-4});
    model->forward(arenas.weights, {images.span(), labels, ids});
    benchmark::DoNotOptimize(model->loss().loss);
    const TimePoint middle = clock.now();
    model->backward(arenas.weights, arenas.gradients, [](std::size_t) {});
    backward += clock.now() - middle;
    forward += middle - start;
    optimizer += strategy.finish_step()->optimizer;
  }
  state.SetItemsProcessed(state.iterations() * batch_size * form.labels);
  const auto each = [&](Duration sum) { return benchmark::Counter(microseconds(sum) / static_cast<double>(step)); };
  state.counters["forward_us"] = each(forward);
  state.counters["backward_us"] = each(backward);
  state.counters["optimizer_us"] = each(optimizer);
  state.counters["forward_flops"] =
      benchmark::Counter(model->flops_per_sample() * batch_size / seconds(forward) * static_cast<double>(step));
}
BENCHMARK_CAPTURE(train_steps, mlp, "mlp", kDigit)->Arg(32)->Arg(128)->Arg(512)->UseRealTime();
BENCHMARK_CAPTURE(train_steps, lenet, "lenet", kDigit)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(train_steps, resnet20, "resnet20", kColour)->Arg(32)->UseRealTime();
BENCHMARK_CAPTURE(train_steps, gpt, "gpt:4-4-128", kText)->Arg(8)->UseRealTime();

void optimizer(benchmark::State& state, OptimizerKind kind) {
  const std::size_t elements = static_cast<std::size_t>(state.range(0));
  const Optimizer rule({.kind = kind});
  OptimizerState memory({.kind = kind}, elements);
  AlignedBuffer weights(elements), gradient(elements);
  Random random(1);
  for (float& value : gradient.span()) value = static_cast<float>(random.normal());
  std::int64_t number = 0;
  for (auto _ : state) {
    rule.apply(weights.span(), gradient.span(), memory, 0, {1e-3f, 1.0f, ++number});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * memory.bytes() + elements * 12));
}
BENCHMARK_CAPTURE(optimizer, sgd, OptimizerKind::kSgd)->Arg(270'000);
BENCHMARK_CAPTURE(optimizer, momentum, OptimizerKind::kMomentum)->Arg(270'000);
BENCHMARK_CAPTURE(optimizer, adam, OptimizerKind::kAdam)->Arg(270'000);

}  // namespace
}  // namespace syncopate::worker

BENCHMARK_MAIN();
