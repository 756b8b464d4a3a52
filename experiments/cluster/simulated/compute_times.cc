#include "experiments/cluster/simulated/compute_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "experiments/cluster/process/data_of.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {
namespace {

class TimedModel final : public worker::Model {
 public:
  TimedModel(std::unique_ptr<worker::Model> model, ComputeTimes times, std::function<void(Duration)> sleep)
      : model_(std::move(model)), times_(std::move(times)), sleep_(std::move(sleep)) {}

  const std::string& name() const override { return model_->name(); }
  const ParamLayout& layout() const override { return model_->layout(); }
  int batch_size() const override { return model_->batch_size(); }
  double flops_per_sample() const override { return model_->flops_per_sample(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override { model_->initialize(seed, weights); }
  const ParamLayout& local_layout() const override { return model_->local_layout(); }
  std::span<float> local_state() override { return model_->local_state(); }
  std::span<const RowKeys> touched_rows(const worker::BatchView& batch) override { return model_->touched_rows(batch); }

  void forward(std::span<const float> weights, const worker::BatchView& batch) override {
    passed_ = 0;
    model_->forward(weights, batch);
    pass_before(layout().size());
  }
  void before_reading(std::function<void(Range)> before) override {
    model_->before_reading([this, before = std::move(before)](Range part) {
      pass_before(part.begin);
      before(part);
    });
  }
  void backward(std::span<const float> weights, std::span<float> gradients,
                const std::function<void(std::size_t)>& tensor_ready) override {
    model_->backward(weights, gradients, [&](std::size_t tensor) {
      sleep_(times_.backward[tensor]);
      tensor_ready(tensor);
    });
  }
  worker::LossAndCorrect loss() override { return model_->loss(); }
  std::span<const float> scores() override { return model_->scores(); }

 private:
  // Lets the time of all tensors pass that lie before `end` in the arena.
  void pass_before(std::size_t end) {
    Duration time{};
    const std::vector<TensorSpec>& tensors = layout().tensors();
    for (; passed_ < tensors.size() && tensors[passed_].range.end <= end; ++passed_) time += times_.forward[passed_];
    if (time > Duration::zero()) sleep_(time);
  }

  std::size_t passed_ = 0;  // tensors of this forward pass whose time has passed
  const std::unique_ptr<worker::Model> model_;
  const ComputeTimes times_;
  const std::function<void(Duration)> sleep_;
};

Duration median(std::vector<Duration>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Result<ComputeTimes> measure(const ResolvedRun& config, const worker::Dataset& data) {
  constexpr std::size_t kWarmUp = 5, kSteps = 15;
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
  for (std::size_t step = 0; step < kWarmUp + kSteps; ++step) {
    const worker::BatchView batch = batches.next();
    model->touched_rows(batch);
    const TimePoint begin = clock.now();
    model->forward(weights, batch);
    TimePoint last = clock.now();
    const bool counts = step >= kWarmUp;
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

}  // namespace

Duration ComputeTimes::forward_pass() const { return std::accumulate(forward.begin(), forward.end(), Duration()); }
Duration ComputeTimes::step() const { return std::accumulate(backward.begin(), backward.end(), forward_pass()); }

ComputeTimes divided(Duration step, const ParamLayout& layout) {
  ComputeTimes times;
  double all = 0;
  for (const TensorSpec& tensor : layout.tensors()) all += static_cast<double>(tensor.range.size());
  for (const TensorSpec& tensor : layout.tensors()) {
    const double part = seconds(step) * static_cast<double>(tensor.range.size()) / all;
    times.forward.push_back(from_seconds(part / 3));
    times.backward.push_back(from_seconds(part * 2 / 3));
  }
  return times;
}

Result<ComputeTimes> SoloTimes::of(const ResolvedRun& config) {
  const std::string key = fmt::format("{} {} {} {} {}", model_spec(config), dataset_spec(config), config.data_dir,
                                      config.batch_size, name_of(config.backend));
  const auto known = measured_.find(key);
  if (known != measured_.end()) return known->second;
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::DatasetPair data, open_data_of(config));
  SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, measure(config, *data.train));
  return measured_.emplace(key, std::move(times)).first->second;
}

std::unique_ptr<worker::Model> timed_model(std::unique_ptr<worker::Model> model, ComputeTimes times,
                                           std::function<void(Duration)> sleep) {
  return std::make_unique<TimedModel>(std::move(model), std::move(times), std::move(sleep));
}

}  // namespace syncopate::experiments
