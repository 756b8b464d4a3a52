// ScriptWorker: what a simulated worker trains whose gradients a rank of a script computes: its model, whose forward
// and backward take the time that the rank has taken, or that is given; and its work, which lasts as long as the
// script.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "experiments/cluster/measurement/compute_times.h"
#include "experiments/cluster/process/process_host.h"
#include "experiments/cluster/script/script_ranks.h"
#include "worker/model.h"
#include "worker/work.h"

namespace syncopate::experiments {

// What all workers of a run train by its script.
struct ScriptTraining {
  ScriptRanks& ranks;
  ScriptOpening opening;
  std::optional<ComputeTimes> times;  // of each step; none: as long as the rank has taken for it
  std::optional<std::int64_t> steps;  // of each worker at most; none: as many as the script makes
};

class ScriptWorker final : public OwnTraining {
 public:
  // `sleep` lets virtual time pass. All must outlive it.
  ScriptWorker(const ScriptTraining& training, int rank, int workers, const Clock& clock,
               std::function<void(Duration)> sleep)
      : training_(training), rank_(rank), workers_(workers), clock_(clock), sleep_(std::move(sleep)) {}

  double learning_rate() const override { return step_.learning_rate; }

  // worker::Work: has the rank compute with the weights that there are after the last step.
  Status begin(std::int64_t first_step) override;
  Result<std::optional<std::int64_t>> next(std::int64_t step) override;

  // worker::Model
  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return training_.opening.layout; }
  int batch_size() const override { return step_.samples; }
  double flops_per_sample() const override { return 0; }
  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  const ParamLayout& local_layout() const override { return local_layout_; }
  std::span<float> local_state() override { return {}; }
  void forward(worker::In weights, const worker::BatchView& batch) override;
  void before_reading(std::function<void(Range)> before) override { before_ = std::move(before); }
  void backward(worker::In weights, worker::Out gradients,
                const std::function<void(std::size_t)>& tensor_ready) override;
  worker::LossAndCorrect loss(std::size_t turn) override;

 private:
  const ScriptTraining& training_;
  const int rank_;
  const int workers_;
  const Clock& clock_;
  const std::function<void(Duration)> sleep_;
  const std::string name_ = "the script's model";
  const ParamLayout local_layout_;
  std::function<void(Range)> before_;
  std::span<const float> weights_;  // the strategy's, from the first step on
  ScriptStep step_;
};

}  // namespace syncopate::experiments
