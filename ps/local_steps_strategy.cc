#include "ps/local_steps_strategy.h"

#include <algorithm>
#include <cassert>

namespace syncopate::ps {

LocalStepsStrategy::LocalStepsStrategy(const LocalStepsOptions& options, std::unique_ptr<SyncStrategy> servers,
                                       const Clock& clock)
    : options_(options),
      optimizer_(options.optimizer),
      servers_(std::move(servers)),
      clock_(clock),
      state_(options.optimizer.kind, 0) {
  assert(options.period >= 1);
  assert(!options.elastic_rate || (*options.elastic_rate > 0 && *options.elastic_rate < 1));
}

Result<ParamArenas> LocalStepsStrategy::allocate(const ParamLayout& layout) {
  if (!layout.tables().empty()) {
    return Status(Code::kInvalidArgument, "row-sparse tables are not trained by steps of one's own");
  }
  Result<ParamArenas> link = servers_->allocate(layout);
  if (!link.ok()) return link;
  link_ = *link;
  weights_ = AlignedBuffer(layout.size());
  state_ = OptimizerState(options_.optimizer.kind, layout.size());
  return ParamArenas{weights_.span(), link_.gradients};
}

Result<std::vector<Range>> LocalStepsStrategy::join() {
  std::copy_n(weights_.data(), weights_.size(), link_.weights.begin());
  Result<std::vector<Range>> buckets = servers_->join();
  if (!buckets.ok()) return buckets;
  std::copy(link_.weights.begin(), link_.weights.end(), weights_.data());
  buckets_ = *buckets;
  servers_->on_weights([this](Range range) { take(range); });
  return buckets;
}

Result<SyncStats> LocalStepsStrategy::finish_step() {
  const TimePoint begin = clock_.now();
  const UpdateStep update{static_cast<float>(step_.learning_rate), 1.0f, step_.step + 1};
  optimizer_.apply(weights_.span(), link_.gradients, state_, 0, update);
  const Duration optimizer = clock_.now() - begin;
  Result<SyncStats> stats = SyncStats();
  if (++steps_alone_ == options_.period) {
    stats = meet();
  } else {
    report_weights({0, weights_.size()});
  }
  if (stats.ok()) stats->optimizer = optimizer;
  return stats;
}

Status LocalStepsStrategy::leave() {
  if (steps_alone_ > 0) SYNCOPATE_RETURN_IF_ERROR(meet().status());
  leaving_ = true;
  return servers_->leave();
}

Result<SyncStats> LocalStepsStrategy::meet() {
  steps_alone_ = 0;
  servers_->begin_step({step_.step, options_.elastic_rate.value_or(1.0f)});
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    prepare(buckets_[bucket]);
    servers_->gradient_ready(bucket);
  }
  return servers_->finish_step();
}

void LocalStepsStrategy::prepare(Range range) {
  const std::span<const float> own = slice(weights_.span(), range);
  const std::span<const float> given = slice(link_.weights, range);
  const std::span<float> pushed = slice(link_.gradients, range);
  if (options_.elastic_rate) {
    std::copy(own.begin(), own.end(), pushed.begin());
    return;
  }
  for (std::size_t i = 0; i < pushed.size(); ++i) pushed[i] = given[i] - own[i];
}

// The servers' weights of `range` have just come.
void LocalStepsStrategy::take(Range range) {
  const std::span<const float> answer = slice(link_.weights, range);
  const std::span<float> own = slice(weights_.span(), range);
  if (options_.elastic_rate && !leaving_) {
    const float pull = *options_.elastic_rate / (1 - *options_.elastic_rate);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] -= pull * (own[i] - answer[i]);
  } else {
    std::copy(answer.begin(), answer.end(), own.begin());
  }
  report_weights(range);
}

}  // namespace syncopate::ps
