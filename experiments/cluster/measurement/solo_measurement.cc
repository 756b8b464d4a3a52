#include "experiments/cluster/measurement/solo_measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/os/aligned_buffer.h"
#include "common/random.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/process/data_of.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kWarmUpRepeats = 5, kLeastRepeats = 15, kMostRepeats = 400;
constexpr Duration kMeasuringTime = std::chrono::milliseconds(500);  // after the least

Duration median(std::vector<Duration>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Calls `once` for each repeat, and says whether it counts.
void repeat(const std::function<void(bool counts)>& once) {
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  for (std::size_t repeat = 0; repeat < kWarmUpRepeats + kMostRepeats; ++repeat) {
    if (repeat >= kWarmUpRepeats + kLeastRepeats && clock.now() - begin > kMeasuringTime) return;
    once(repeat >= kWarmUpRepeats);
  }
}

double seconds_per_byte(std::size_t bytes, const std::function<void()>& process) {
  const SteadyClock clock;
  std::vector<Duration> took;
  repeat([&](bool counts) {
    const TimePoint begin = clock.now();
    process();
    if (counts) took.push_back(clock.now() - begin);
  });
  return seconds(median(took)) / static_cast<double>(bytes);
}

void fill_with_noise(std::span<float> values) {
  Random random(1, 0);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
}

}  // namespace

std::size_t elements_to_measure(const ParamLayout& layout) {
  constexpr std::size_t kMostElements = std::size_t{1} << 22;
  return std::clamp(layout.dense().size(), kAlignment, kMostElements);
}

Result<ComputeTimes> measure_computing(const ResolvedRun& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::DatasetPair pair, open_data_of(config));
  const worker::Dataset& data = *pair.train;
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<worker::Model> model,
                             worker::make_model(model_spec(config), data.form(), config.batch_size, *backend));
  worker::BatchLoader batches(data,
                              {.seed = config.seed, .dataset_size = data.size(), .batch_size = config.batch_size});
  std::vector<float> weights(model->layout().size()), gradients(weights.size());
  model->initialize(config.seed, weights);
  std::vector<Duration> forward;
  std::vector<std::vector<Duration>> backward(model->layout().tensors().size());
  const SteadyClock clock;
  repeat([&](bool counts) {
    const worker::BatchView batch = batches.next();
    model->touched_rows(batch);
    const TimePoint begin = clock.now();
    model->forward(weights, batch);
    TimePoint last = clock.now();
    if (counts) forward.push_back(last - begin);
    model->backward(weights, gradients, [&](std::size_t tensor) {
      const TimePoint now = clock.now();
      if (counts) backward[tensor].push_back(now - last);
      last = now;
    });
  });
  ComputeTimes times;
  for (std::vector<Duration>& each : backward) times.backward.push_back(each.empty() ? Duration() : median(each));
  const double ratio = seconds(median(forward)) / std::max(1e-9, seconds(times.step()));
  for (const Duration each : times.backward) times.forward.push_back(from_seconds(ratio * seconds(each)));
  return times;
}

Result<prediction::ModelProfile> measure_profile(const ResolvedRun& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of(config));
  if (!layout.tables().empty()) {
    return Status::invalid_argument(fmt::format(
        "--model={}: has row-sparse tables, of which each step touches other rows; a profile has the same tensors in "
        "every step",
        config.model));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                             worker::make_model(model_spec(config), form, 1, *backend));
  SYNCOPATE_ASSIGN_OR_RETURN(const ComputeTimes times, measure_computing(config));
  const Environment here = this_environment();
  prediction::ModelProfile profile{
      .model = config.model,
      .source = fmt::format("run_experiment profile, {} on {}, medians of one thread with nothing beside it",
                            name_of(config.backend), here.cpu_model.empty() ? here.kernel : here.cpu_model),
      .input = {std::max(1, form.values() + form.id_columns())},
      .other_forward_flops = model->flops_per_sample(),
      .batch_size = config.batch_size,
      .tensors = {}};
  for (std::size_t index = 0; const TensorSpec& tensor : layout.tensors()) {
    prediction::TensorProfile entry{.name = tensor.name, .shape = {}, .parameters = 1};
    for (const auto size : tensor.shape) {
      entry.shape.push_back(static_cast<std::int64_t>(size));
      entry.parameters *= static_cast<std::int64_t>(size);
    }
    entry.forward_seconds = seconds(times.forward[index]);
    entry.backward_seconds = seconds(times.backward[index]);
    profile.tensors.push_back(std::move(entry));
    ++index;
  }
  return profile;
}

double measure_sum(std::size_t elements) {
  AlignedBuffer part(elements), sum(elements);
  fill_with_noise(part.span());
  const Codec whole((CodecConfig()));
  return seconds_per_byte(elements * sizeof(float),
                          [&] { (void)whole.add_decoded(std::as_bytes(part.span()), 0, sum.span()); });
}

double measure_update(const OptimizerConfig& config, std::size_t elements) {
  AlignedBuffer weights(elements), gradients(elements);
  fill_with_noise(gradients.span());
  const Optimizer optimizer(config);
  OptimizerState state(config, elements);
  std::int64_t number = 0;
  return seconds_per_byte(elements * sizeof(float), [&] {
    optimizer.apply(weights.span(), gradients.span(), state, 0,
                    {.learning_rate = 1e-3f, .gradient_scale = 1, .number = ++number});
  });
}

CodecTimes measure_codec(const CodecConfig& config, std::size_t elements) {
  AlignedBuffer gradients(elements), sum(elements);
  fill_with_noise(gradients.span());
  Codec codec(config);
  std::vector<std::byte> encoded(codec.encoded_size(elements));
  const std::size_t bytes = elements * sizeof(float);
  CodecTimes times;
  times.encode = seconds_per_byte(bytes, [&] { codec.encode(gradients.span(), 1, encoded); });
  times.decode = seconds_per_byte(bytes, [&] { (void)codec.add_decoded(encoded, 1, sum.span()); });
  return times;
}

}  // namespace syncopate::experiments
