#include "allreduce/strategy/async_gossip_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "allreduce/strategy/agreement.h"

namespace syncopate::allreduce {

AsyncGossipStrategy::AsyncGossipStrategy(Collective& collective, Transport& meetings, const AsyncGossipOptions& options,
                                         const Clock& clock)
    : collective_(collective), transport_(meetings), options_(options), optimizer_(options.optimizer), clock_(clock) {
  assert(options.period >= 1);
}

Result<ParamArenas> AsyncGossipStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  layout_ = layout;
  SYNCOPATE_ASSIGN_OR_RETURN(replica_, collective_.allocate(layout.size()));
  weights_ = AlignedBuffer(layout.size());
  gradients_ = AlignedBuffer(layout.size());
  optimizer_ = Optimizer(options_.optimizer, layout, {0, layout.size()});
  state_.emplace(options_.optimizer, layout.size());
  return ParamArenas{weights_.span(), gradients_.span()};
}

Result<std::vector<Range>> AsyncGossipStrategy::join() {
  SYNCOPATE_RETURN_IF_ERROR(watch("all_reduce", Stage::kJoining, [&] {
    return prove_agreement(collective_, group_agreement_of(layout_, {}, collective_), deadline());
  }));
  std::ranges::copy(weights_.span(), replica_.begin());  // the chief's are the initial ones
  SYNCOPATE_RETURN_IF_ERROR(
      watch("broadcast", Stage::kJoining, [&] { return collective_.broadcast(replica_, 0, deadline()); }));
  std::ranges::copy(replica_, weights_.data());
  shared_.emplace(replica_, *options_.threads);
  meetings_.emplace(transport_, *shared_, replica_.size(),
                    GossipMeetings::Options{.seed = options_.seed,
                                            .timeout = options_.timeout,
                                            .threads = options_.threads,
                                            .tracer = tracer_of(options_.activity)},
                    clock_);
  SYNCOPATE_RETURN_IF_ERROR(meetings_->start());
  return std::vector<Range>{{0, layout_.size()}};
}

bool AsyncGossipStrategy::is_to_meet() {
  if (!is_active(collective_.rank()) || passive_ranks(collective_.size()) == 0) return false;
  if (++steps_alone_ < options_.period) return false;
  steps_alone_ = 0;
  return true;
}

Result<SyncStats> AsyncGossipStrategy::finish_step() {
  const TimePoint begin = clock_.now();
  TimePoint begun = begin, updated = begin;
  MeetingCosts costs;
  const auto update = [&](std::span<float> replica) {
    begun = clock_.now();
    const TraceSpan span(tracer_of(options_.activity), {.kind = TraceKind::kUpdate, .number = step_.step});
    costs = meetings_->take_costs();  // of meetings before this update: the next one may be over before this step is
    optimizer_.apply(replica, gradients_.span(), *state_, 0, {step_.learning_rate, 1.0f, step_.step + 1});
    clock_.processed(Processing::kUpdate, replica.size_bytes());
    std::ranges::copy(replica, weights_.data());
    updated = clock_.now();
  };
  const std::int64_t averages = shared_->change(update, is_to_meet());
  SYNCOPATE_RETURN_IF_ERROR(meetings_->status().in(fmt::format("step {}", step_.step)));
  report_weights({0, weights_.size()});
  SyncStats stats;
  stats.exposed_wait = begun - begin;
  stats.optimizer = updated - begun;
  stats.communication = costs.communication;
  stats.bytes_out = costs.bytes_out;
  stats.bytes_in = costs.bytes_in;
  stats.staleness_mean = static_cast<double>(averages);
  stats.staleness_max = averages;
  return stats;
}

Status AsyncGossipStrategy::leave() {
  if (options_.progress != nullptr) options_.progress->rest("leave", step_.step);
  SYNCOPATE_RETURN_IF_ERROR(meetings_->finish().in("leave"));
  if (options_.progress != nullptr) options_.progress->set("leave", step_.step);
  SYNCOPATE_RETURN_IF_ERROR(
      watch("all_reduce", Stage::kLeaving, [&] { return collective_.all_reduce(replica_, deadline()); }).in("leave"));
  const auto workers = static_cast<float>(collective_.size());
  std::ranges::transform(replica_, weights_.data(), [workers](float sum) { return sum / workers; });
  report_weights({0, weights_.size()});
  return watch("barrier", Stage::kLeaving, [&] { return collective_.barrier(deadline()); });
}

Status AsyncGossipStrategy::watch(const char* name, Stage stage, const std::function<Status()>& work) {
  const auto bytes = static_cast<std::int64_t>(replica_.size_bytes());
  return watched(options_.activity, clock_, {.name = name, .stage = stage, .bytes = bytes, .step = step_.step}, work);
}

}  // namespace syncopate::allreduce
