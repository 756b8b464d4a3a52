#include "allreduce/model_averaging_strategy.h"

#include <fmt/format.h>

#include <cassert>

#include "allreduce/agreement.h"
#include "allreduce/gossip_pairs.h"

namespace syncopate::allreduce {
namespace {

void divide(std::span<float> sum, int count) {
  const auto divisor = static_cast<float>(count);
  for (float& value : sum) value /= divisor;
}

}  // namespace

ModelAveragingStrategy::ModelAveragingStrategy(Collective& collective, const ModelAveragingOptions& options,
                                               const Clock& clock)
    : collective_(collective), options_(options), optimizer_(options.optimizer), clock_(clock) {
  assert(options.period >= 1);
}

Result<ParamArenas> ModelAveragingStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  layout_ = layout;
  const Result<std::span<float>> weights = collective_.allocate(layout.size());
  if (!weights.ok()) return weights.status();
  weights_ = *weights;
  gradients_ = AlignedBuffer(layout.size());
  state_.emplace(options_.optimizer.kind, layout.size());
  return ParamArenas{weights_, gradients_.span()};
}

Result<std::vector<Range>> ModelAveragingStrategy::join() {
  const auto bytes = static_cast<std::int64_t>(weights_.size_bytes());
  SYNCOPATE_RETURN_IF_ERROR(watched(options_.activity, clock_, {.name = "all_reduce", .stage = Stage::kJoining}, [&] {
    return prove_agreement(collective_, common_ground_of(layout_, {}, collective_), deadline());
  }));
  SYNCOPATE_RETURN_IF_ERROR(watched(options_.activity, clock_,
                                    {.name = "broadcast", .stage = Stage::kJoining, .bytes = bytes},
                                    [&] { return collective_.broadcast(weights_, 0, deadline()); }));
  return std::vector<Range>{{0, layout_.size()}};
}

Result<SyncStats> ModelAveragingStrategy::finish_step() {
  SyncStats stats;
  const TimePoint begin = clock_.now();
  const UpdateStep update{static_cast<float>(step_.learning_rate), 1.0f, step_.step + 1};
  optimizer_.apply(weights_, gradients_.span(), *state_, 0, update);
  const TimePoint updated = clock_.now();
  stats.optimizer = updated - begin;
  if (++steps_alone_ == options_.period) {
    const TransportCounters before = collective_.counters();
    SYNCOPATE_RETURN_IF_ERROR(meet().in(fmt::format("step {}", step_.step)));
    const TransportCounters after = collective_.counters();
    stats.exposed_wait = stats.communication = clock_.now() - updated;
    stats.bytes_out = after.payload_bytes_out - before.payload_bytes_out;
    stats.bytes_in = after.payload_bytes_in - before.payload_bytes_in;
  }
  report_weights({0, weights_.size()});
  return stats;
}

Status ModelAveragingStrategy::leave() {
  if (steps_alone_ > 0 || options_.gossip_seed) {
    SYNCOPATE_RETURN_IF_ERROR(average_with_all(Stage::kLeaving).in("leave"));
    report_weights({0, weights_.size()});
  }
  return watched(options_.activity, clock_, {.name = "barrier", .stage = Stage::kLeaving},
                 [&] { return collective_.barrier(deadline()); });
}

Status ModelAveragingStrategy::meet() {
  steps_alone_ = 0;
  const std::int64_t meeting = meetings_++;
  if (!options_.gossip_seed) return average_with_all(Stage::kTraining);
  const int rank = collective_.rank();
  const int partner = gossip_pairs(*options_.gossip_seed, meeting, collective_.size())[static_cast<std::size_t>(rank)];
  if (partner == rank) return {};
  SYNCOPATE_RETURN_IF_ERROR(collective_.reduce_pair(weights_, partner, deadline()));
  divide(weights_, 2);
  return {};
}

Status ModelAveragingStrategy::average_with_all(Stage stage) {
  const CollectiveOperation operation{.name = "all_reduce",
                                      .stage = stage,
                                      .bytes = static_cast<std::int64_t>(weights_.size_bytes()),
                                      .step = step_.step,
                                      .buckets = 1};
  SYNCOPATE_RETURN_IF_ERROR(
      watched(options_.activity, clock_, operation, [&] { return collective_.all_reduce(weights_, deadline()); }));
  divide(weights_, collective_.size());
  return {};
}

}  // namespace syncopate::allreduce
