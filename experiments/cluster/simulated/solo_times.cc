#include "experiments/cluster/simulated/solo_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/os/aligned_buffer.h"
#include "common/random.h"
#include "experiments/cluster/process/data_of.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kWarmUpSteps = 5, kMeasuredSteps = 15;

Duration median(std::vector<Duration>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Result<ComputeTimes> measure_model(const ResolvedRun& config, const worker::Dataset& data) {
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<worker::Model> model,
                             worker::make_model(model_spec(config), data.form(), config.batch_size, *backend));
  worker::BatchLoader batches(data,
                              {.seed = config.seed, .dataset_size = data.size(), .batch_size = config.batch_size});
  std::vector<float> weights(model->layout().size()), gradients(weights.size());
  model->initialize(config.seed, weights);
  const std::size_t tensors = model->layout().tensors().size();
  std::vector<Duration> forward;
  std::vector<std::vector<Duration>> backward(tensors);
  const SteadyClock clock;
  for (std::size_t step = 0; step < kWarmUpSteps + kMeasuredSteps; ++step) {
    const worker::BatchView batch = batches.next();
    model->touched_rows(batch);
    const TimePoint begin = clock.now();
    model->forward(weights, batch);
    TimePoint last = clock.now();
    const bool counts = step >= kWarmUpSteps;
    if (counts) forward.push_back(last - begin);
    model->backward(weights, gradients, [&](std::size_t tensor) {
      const TimePoint now = clock.now();
      if (counts) backward[tensor].push_back(now - last);
      last = now;
    });
  }
  ComputeTimes times;
  for (std::vector<Duration>& each : backward) times.backward.push_back(each.empty() ? Duration() : median(each));
  // A tensor has as large a part of the forward pass as of the backward pass.
  const double ratio = seconds(median(forward)) / std::max(1e-9, seconds(times.step()));
  for (const Duration each : times.backward) times.forward.push_back(from_seconds(ratio * seconds(each)));
  return times;
}

// Returns the seconds a byte of what `process` does with `bytes` bytes.
double seconds_per_byte(std::size_t bytes, const std::function<void()>& process) {
  const SteadyClock clock;
  std::vector<Duration> took;
  for (std::size_t turn = 0; turn < kWarmUpSteps + kMeasuredSteps; ++turn) {
    const TimePoint begin = clock.now();
    process();
    if (turn >= kWarmUpSteps) took.push_back(clock.now() - begin);
  }
  return seconds(median(took)) / static_cast<double>(bytes);
}

// Measures with as many elements as the model has, up to as many as are far from any cache.
Result<ProcessingTimes> measure_processing(const ResolvedRun& config) {
  constexpr std::size_t kMostElements = std::size_t{1} << 22;
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of(config));
  const std::size_t elements = std::clamp(layout.dense().size(), kAlignment, kMostElements);
  const std::size_t bytes = elements * sizeof(float);
  AlignedBuffer weights(elements), gradients(elements);
  Random random(config.seed, 0);
  for (float& value : gradients.span()) value = static_cast<float>(random.uniform(-1, 1));
  ProcessingTimes times;
  const Codec whole((CodecConfig()));
  times.sum =
      seconds_per_byte(bytes, [&] { (void)whole.add_decoded(std::as_bytes(gradients.span()), 0, weights.span()); });
  const OptimizerConfig config_of_updates = optimizer_of(config);
  const Optimizer optimizer(config_of_updates);
  OptimizerState state(config_of_updates.kind, elements);
  std::int64_t number = 0;
  times.update = seconds_per_byte(bytes, [&] {
    optimizer.apply(weights.span(), gradients.span(), state, 0,
                    {static_cast<float>(config.learning_rate), 1, ++number});
  });
  if (!compresses(config) || !may_compress(config) || codec_of(config).kind == CodecKind::kPowerSgd) return times;
  Codec codec(codec_of(config));
  std::vector<std::byte> encoded(codec.encoded_size(elements));
  times.encode = seconds_per_byte(bytes, [&] { codec.encode(gradients.span(), 1, encoded); });
  times.decode = seconds_per_byte(bytes, [&] { (void)codec.add_decoded(encoded, 1, weights.span()); });
  return times;
}

}  // namespace

Result<SoloTimes::Figures> SoloTimes::of(const ResolvedRun& config) {
  const std::string key = fmt::format("{} {} {} {} {} {} {}", model_spec(config), dataset_spec(config), config.data_dir,
                                      config.batch_size, name_of(config.backend), name_of(config.optimizer),
                                      compresses(config) ? to_string(config.compress) : "");
  const auto known = measured_.find(key);
  if (known != measured_.end()) return known->second;
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::DatasetPair data, open_data_of(config));
  SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, measure_model(config, *data.train));
  SYNCOPATE_ASSIGN_OR_RETURN(const ProcessingTimes processing, measure_processing(config));
  return measured_.emplace(key, Figures{std::move(times), processing}).first->second;
}

}  // namespace syncopate::experiments
