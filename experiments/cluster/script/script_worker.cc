#include "experiments/cluster/script/script_worker.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace syncopate::experiments {
namespace {

// How often a rank that waits for others looks whether they have come.
constexpr Duration kLook = std::chrono::microseconds(100);

}  // namespace

Status ScriptWorker::begin(std::int64_t first_step) {
  return first_step == 0 ? Status() : Status::invalid_argument("a script cannot go on in the midst of a simulated run");
}

Result<std::optional<std::int64_t>> ScriptWorker::next(std::int64_t step) {
  if (training_.steps && step >= *training_.steps) return std::optional<std::int64_t>();
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<ScriptStep> computed,
                             training_.ranks.go_on(rank_, weights_, clock_, [this] { sleep_(kLook); }));
  if (!computed) return std::optional<std::int64_t>();
  step_ = std::move(*computed);
  return std::optional(step * workers_ + rank_);
}

// Ranks that take means have weights of their own.
void ScriptWorker::initialize(std::uint64_t, std::span<float> weights) const {
  std::ranges::fill(weights, 0.0f);
  if (training_.opening.takes_means) return;
  const Result<std::span<const float>> initial = training_.ranks.weights(rank_);
  if (initial.ok()) std::ranges::copy(*initial, weights.begin());
}

void ScriptWorker::forward(worker::In weights, const worker::BatchView&) {
  weights_ = weights;
  if (before_) before_({0, layout().size()});
  if (!training_.times) return sleep_(step_.before);
  sleep_(training_.opening.gives_in_step ? training_.times->step() : training_.times->forward_pass());
}

void ScriptWorker::backward(worker::In, worker::Out gradients, const std::function<void(std::size_t)>& tensor_ready) {
  if (const Result<std::span<const float>> computed = training_.ranks.gradients(rank_); computed.ok()) {
    std::ranges::copy(*computed, gradients.begin());
  }
  Duration passed{};
  for (std::size_t tensor = layout().tensors().size(); tensor-- > 0;) {
    if (!training_.times) {
      // Autograd may finish tensors in another order: one is handed over once all behind it are ready.
      const Duration ready = std::max(passed, step_.ready[tensor]);
      sleep_(ready - std::exchange(passed, ready));
    } else if (!training_.opening.gives_in_step) {
      sleep_(training_.times->backward[tensor]);
    }
    tensor_ready(tensor);
  }
}

// The script may tell it later (ScriptRanks::learnt).
worker::LossAndCorrect ScriptWorker::loss(std::size_t) { return {.loss = std::numeric_limits<double>::quiet_NaN()}; }

}  // namespace syncopate::experiments
