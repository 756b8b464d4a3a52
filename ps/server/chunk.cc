#include "ps/server/chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "common/left_out_step.h"
#include "ps/server/shard_state.h"

namespace syncopate::ps {
namespace {

// What workers have come to is averaged; the update rule is theirs.
OptimizerConfig applied_optimizer(const ChunkOptions& options) {
  return options.consistency.pushes_weights() ? OptimizerConfig{.kind = OptimizerKind::kSgd} : options.optimizer;
}

}  // namespace

Chunk::Chunk(const ChunkOptions& options, const Membership& members, WeightsPool& pool)
    : options_(options),
      members_(members),
      weights_(members.workers(), applied_optimizer(options), options.staleness.compensation, pool, options.function),
      rule_(options.consistency, members),
      workers_(static_cast<std::size_t>(members.workers())) {
  assert(options.consistency.applies_stale_gradients() || !options.staleness.compensation.enabled());
  sum_.gradients.reserve(workers_.size());
}

Status Chunk::restore(Range range, const TrainingState& state) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ChunkCounts counts,
                             chunk_counts(range, members_.workers(), options_.consistency.period(), state));
  rule_.restore(clocks_to_go_on_with(counts.clocks, members_));
  mean_staleness_.restore(counts.staleness_count, counts.staleness);
  if (options_.staleness.correct_momentum) correct_momentum();
  const bool sums = options_.consistency.sums_gradients() || !options_.consistency.quorum().is_all();
  if (sums) {
    summed_ = static_cast<int>(counts.summed);
    come_ = summed_;
    summed_weight_ = counts.summed_weight;
    summed_rate_ = counts.summed_rate;
  }
  return weights_.restore(range, state, counts.version, sums ? counts.summed_weight : 0);
}

void Chunk::save(std::size_t begin, TrainingState& state) const {
  ChunkCounts counts{.version = weights_.version(),
                     .summed = summed_,
                     .summed_weight = summed_weight_,
                     .summed_rate = summed_rate_,
                     .staleness_count = mean_staleness_.count(),
                     .staleness = mean_staleness_.value(),
                     .clocks = Clocks(members_.workers())};
  for (int i = 0; i < members_.workers(); ++i) {
    const auto worker = static_cast<std::size_t>(i);
    counts.clocks.pushes[worker] = clock(i) - (has_pending_gradient(i) ? 1 : 0);
    counts.clocks.away[worker] = members_.is_lost(i);
  }
  put_chunk_counts(begin, counts, state);
  weights_.save(begin, state);
}

Status Chunk::push(const PushRequest& request) {
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  Worker& worker = of(request.step.worker);
  // A gradient of its last answer's weights shows that it has read them; a worker that runs ahead may not have.
  if (request.version == worker.version) weights_.returned(request.step.worker);
  const std::int64_t staleness = weights_.version() - request.version;
  const bool misses_its_update = options_.consistency.updates_together() && staleness > 0;
  const bool counts_in_the_next = misses_its_update && !options_.consistency.quorum().is_all();
  worker.late = misses_its_update && !counts_in_the_next;
  worker.staleness = worker.late ? 0 : staleness;
  worker.pushed_version = request.version;
  worker.pulls = true;
  rule_.on_push(request.step);
  ++counters_.pushes;
  if (worker.late) {
    ++counters_.late;
    return Status();
  }
  last_push_ = std::max(last_push_, request.step.arrived);
  if (counts_in_the_next) {
    counters_.staleness_sum += staleness;
    counters_.staleness_max = std::max(counters_.staleness_max, staleness);
    if (!worker.is_in_sum) ++come_;
    worker.is_in_sum = true;
    add_to_meeting({request.gradient, request.step.worker, request.version}, request.step.learning_rate);
    return update_if_enough_pushed(request.step.arrived);
  }
  if (options_.consistency.updates_together()) {
    worker.gradient = request.gradient;
    ++held_;
    if (!worker.is_in_sum) ++come_;
    worker.learning_rate = request.step.learning_rate;
    return update_if_enough_pushed(request.step.arrived);
  }
  if (is_left_out(request.gradient)) {
    weights_.release(request.step.worker);
    return Status();
  }
  counters_.staleness_sum += staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, staleness);
  if (options_.consistency.pushes_weights())
    return weights_.move_towards(request.gradient, static_cast<float>(request.step.learning_rate));
  return apply_stale(request);
}

bool Chunk::is_left_out(std::span<const float> gradient) const {
  return options_.leaves_out && syncopate::is_left_out(gradient);
}

Status Chunk::apply_stale(const PushRequest& request) {
  const ChunkWeights::StaleGradient gradient{request.gradient, request.step.worker, request.version};
  const std::int64_t staleness = of(request.step.worker).staleness;
  const float weight = options_.staleness.divide_rate ? staleness_factor(staleness) : 1;
  if (options_.staleness.correct_momentum) {
    mean_staleness_.add(staleness);
    correct_momentum();
  }
  const double rate = static_cast<double>(rate_gain_) * request.step.learning_rate;
  if (!options_.consistency.sums_gradients()) {
    return scales_gradients() ? weights_.update(gradient, rate, weight) : weights_.update(gradient, weight * rate);
  }
  weights_.accumulate(gradient, weight);
  summed_weight_ += weight;
  summed_rate_ = static_cast<float>(rate);
  ++summed_;
  return summed_ < options_.consistency.pushes_an_update(members_.workers(), 1) ? Status() : update_from_sum();
}

// sum(weight · g) / count is the gradient of one update. For rules whose steps do not grow with the gradient it is
// instead their weighted mean, at a rate that is lower by their mean weight.
Status Chunk::update_from_sum() {
  const auto count = static_cast<float>(std::exchange(summed_, 0));
  const float weight = std::exchange(summed_weight_, 0.0f);
  if (scales_gradients()) return weights_.update_from_sum(count, summed_rate_);
  return weights_.update_from_sum(weight, summed_rate_ * weight / count);
}

bool Chunk::scales_gradients() const {
  if (options_.function != nullptr) return false;
  return options_.optimizer.kind == OptimizerKind::kSgd || options_.optimizer.kind == OptimizerKind::kMomentum;
}

void Chunk::correct_momentum() {
  const CorrectedMomentum corrected =
      corrected_momentum(options_.optimizer.momentum, options_.optimizer.nesterov, mean_staleness_.value());
  weights_.set_momentum(corrected.momentum);
  rate_gain_ = corrected.rate_factor;
}

void Chunk::lose(int worker) {
  if (has_pending_gradient(worker)) {
    rule_.undo_push(worker);
    --held_;
    if (!of(worker).is_in_sum) --come_;
  }
  of(worker).pulls = false;
  of(worker).gradient = {};
  weights_.release(worker);
}

void Chunk::returned(int worker) {
  weights_.returned(worker);
  weights_.release(worker);
}

void Chunk::add_to_meeting(const ChunkWeights::StaleGradient& moved, double steps) {
  weights_.accumulate(moved, static_cast<float>(steps));
  summed_weight_ += static_cast<float>(steps);
  ++summed_;
}

Status Chunk::meet() {
  summed_ = come_ = held_ = 0;
  for (Worker& worker : workers_) worker.is_in_sum = false;
  meets_at_ = TimePoint::max();
  return weights_.update_from_sum(std::exchange(summed_weight_, 0.0f), 1);
}

Status Chunk::update_if_enough_pushed(TimePoint now) {
  if (!options_.consistency.updates_together()) return Status();
  const int needed = options_.consistency.pushes_an_update(members_.workers(), members_.live());
  const Quorum& quorum = options_.consistency.quorum();
  if (!quorum.is_all()) {
    const bool is_due = come_ > 0 && come_ >= needed;
    meets_at_ = is_due ? std::min(meets_at_, std::max(now, last_push_) + quorum.grace) : TimePoint::max();
    if (!is_due || (come_ < members_.live() && now < meets_at_)) return Status();
    for (int i = 0; i < members_.workers(); ++i) {
      Worker& worker = of(i);
      if (worker.gradient.empty()) continue;
      add_to_meeting({worker.gradient, i, worker.pushed_version}, worker.learning_rate);
      worker.gradient = {};
    }
    return meet();
  }
  if (held_ < needed) return Status();
  sum_.clear();
  double learning_rate = 0;
  for (int i = 0; i < members_.workers(); ++i) {
    if (!members_.is_live(i)) continue;
    const Worker& worker = of(i);
    if (worker.gradient.empty()) continue;
    if (sum_.gradients.empty()) learning_rate = worker.learning_rate;
    sum_.add(worker.gradient, options_.hosts.host_of(i), options_.hosts.gradients_in_push(i));
  }
  if (sum_.gradients.empty() || static_cast<int>(sum_.gradients.size()) < needed) return Status();
  if (std::ranges::any_of(sum_.gradients, [this](auto gradient) { return is_left_out(gradient); })) {
    weights_.leave_out_update();
  } else {
    SYNCOPATE_RETURN_IF_ERROR(weights_.update(sum_, learning_rate));
  }
  for (Worker& worker : workers_) worker.gradient = {};
  held_ = 0;
  return Status();
}

Status Chunk::finish() {
  if (summed_ == 0) return Status();
  return options_.consistency.quorum().is_all() ? update_from_sum() : meet();
}

bool Chunk::may_respond(int worker) const {
  return has_pending_pull(worker) && !has_pending_gradient(worker) && rule_.may_respond(worker);
}

Chunk::Answer Chunk::answer(int worker) {
  Worker& to = of(worker);
  to.pulls = false;
  to.version = weights_.version();
  return {.clock = clock(worker),
          .version = to.version,
          .staleness = to.staleness,
          .late = to.late,
          .weights = weights_.current(),
          .pending = weights_.lend(worker)};
}

Status Chunk::check(const PushRequest& request) const {
  const auto& [rank, clock, learning_rate, arrived] = request.step;
  const Worker& worker = of(rank);
  if (worker.pulls || clock != rule_.clock(rank) + 1) {
    return Status::invalid_argument(fmt::format("push {} from worker {}, which has pushed {} times and {}", clock, rank,
                                                rule_.clock(rank),
                                                worker.pulls ? "waits for an answer" : "has its answer"));
  }
  // A worker that runs ahead pushes gradients of weights that it was given before its last answer.
  if (request.version > worker.version || request.version < worker.pushed_version) {
    return Status::invalid_argument(
        fmt::format("worker {} pushes a gradient from version {} of the weights, but was given {} to {}", rank,
                    request.version, worker.pushed_version, worker.version));
  }
  if (!std::isfinite(learning_rate) || learning_rate < 0) {
    return Status::invalid_argument(fmt::format("a learning rate of {}", learning_rate));
  }
  if (!options_.consistency.quorum().is_all() && learning_rate < 1) {
    return Status::invalid_argument(fmt::format("a push that stands for {} steps", learning_rate));
  }
  if (options_.consistency.is_elastic() && learning_rate >= 1) {
    return Status::invalid_argument(fmt::format("an elastic rate of {}", learning_rate));
  }
  if (request.gradient.size() != weights_.size()) {
    return Status::invalid_argument(
        fmt::format("a gradient of {} floats instead of {}", request.gradient.size(), weights_.size()));
  }
  return Status();
}

}  // namespace syncopate::ps
