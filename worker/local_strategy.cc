#include "worker/local_strategy.h"

namespace syncopate::worker {

Result<ParamArenas> LocalStrategy::allocate(const ParamLayout& layout) {
  weights_ = AlignedBuffer(layout.size());
  gradients_ = AlignedBuffer(layout.size());
  state_.emplace(optimizer_.config().kind, layout.size());
  return ParamArenas{weights_.span(), gradients_.span()};
}

Result<std::vector<Range>> LocalStrategy::join() { return std::vector<Range>{{0, weights_.size()}}; }

Result<SyncStats> LocalStrategy::finish_step() {
  const TimePoint begin = clock_.now();
  const UpdateStep update{static_cast<float>(step_.learning_rate), 1.0f, step_.step + 1};
  optimizer_.apply(weights_.span(), gradients_.span(), *state_, 0, update);
  SyncStats stats;
  stats.optimizer = clock_.now() - begin;
  report_weights({0, weights_.size()});
  return stats;
}

}  // namespace syncopate::worker
