#include "experiments/cluster/measurement/compute_times.h"

#include <numeric>
#include <utility>

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

  void forward(worker::In weights, const worker::BatchView& batch) override {
    passed_ = 0;
    cost_ = worker::cost_of(batch);
    model_->forward(weights, batch);
    pass_before(layout().size());
  }
  void before_reading(std::function<void(Range)> before) override {
    model_->before_reading([this, before = std::move(before)](Range part) {
      pass_before(part.begin);
      before(part);
    });
  }
  void backward(worker::In weights, worker::Out gradients,
                const std::function<void(std::size_t)>& tensor_ready) override {
    model_->backward(weights, gradients, [&](std::size_t tensor) {
      sleep_(costly(times_.backward[tensor]));
      tensor_ready(tensor);
    });
  }
  // Half of what a tensor's backward takes makes its gradient, half that of the input.
  void backward_inputs(worker::In weights, worker::Out gradients,
                       const std::function<void(std::size_t)>& tensor_ready) override {
    std::vector<Duration> left = times_.backward;
    model_->backward_inputs(weights, gradients, [&](std::size_t tensor) {
      sleep_(costly(std::exchange(left[tensor], Duration::zero())));
      tensor_ready(tensor);
    });
    sleep_(costly(std::accumulate(left.begin(), left.end(), Duration::zero()) / 2));
  }
  void backward_weights(worker::Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    model_->backward_weights(gradients, [&](std::size_t tensor) {
      sleep_(costly(times_.backward[tensor] / 2));
      tensor_ready(tensor);
    });
  }
  worker::LossAndCorrect loss(std::size_t turn) override { return model_->loss(turn); }
  std::span<const float> scores() override { return model_->scores(); }

 private:
  // Lets the time of all tensors pass that lie before `end` in the arena.
  void pass_before(std::size_t end) {
    Duration time{};
    const std::vector<TensorSpec>& tensors = layout().tensors();
    for (; passed_ < tensors.size() && tensors[passed_].range.end <= end; ++passed_) time += times_.forward[passed_];
    if (time > Duration::zero()) sleep_(costly(time));
  }
  Duration costly(Duration time) const { return cost_ == 1 ? time : from_seconds(cost_ * seconds(time)); }

  double cost_ = 1;         // of this pass's batch
  std::size_t passed_ = 0;  // tensors of this forward pass whose time has passed
  const std::unique_ptr<worker::Model> model_;
  const ComputeTimes times_;
  const std::function<void(Duration)> sleep_;
};

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

std::unique_ptr<worker::Model> timed_model(std::unique_ptr<worker::Model> model, ComputeTimes times,
                                           std::function<void(Duration)> sleep) {
  return std::make_unique<TimedModel>(std::move(model), std::move(times), std::move(sleep));
}

}  // namespace syncopate::experiments
