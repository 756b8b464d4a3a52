#include "experiments/cluster/process/aggregating_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "allreduce/collective/rank_order_sum.h"
#include "allreduce/collective/shared_words.h"
#include "ps/client/arena_links.h"

namespace syncopate::experiments {
namespace {

// As many timeouts as the coordinator gives workers to leave in.
constexpr int kLeaveTimeouts = 3;

// What the workers of a host tell each other when the leader has joined.
enum SaidAtJoin : std::size_t { kLayoutHash, kFirstStep, kSaidAtJoin };

Status sum_into_first(std::span<float* const> parts, std::size_t count) {
  std::vector<const float*> of_all(parts.begin(), parts.end());
  allreduce::sum_into(parts[0], of_all, count);
  return Status();
}

}  // namespace

AggregatingStrategy::AggregatingStrategy(const AggregationOptions& options, allreduce::DirectCollective& inside,
                                         std::unique_ptr<ps::PsStrategy> servers, const Clock& clock,
                                         Activity* activity)
    : options_(options),
      inside_(inside),
      servers_(std::move(servers)),
      clock_(clock),
      activity_(activity),
      thread_(*options.threads) {}

Result<ParamArenas> AggregatingStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  set_activity("meet its host");
  layout_ = layout;
  ParamArenas arenas;
  if (servers_) {
    SYNCOPATE_ASSIGN_OR_RETURN(arenas, servers_->allocate(layout));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(arenas.weights, inside_.allocate(layout.size()));
    SYNCOPATE_ASSIGN_OR_RETURN(arenas.gradients, inside_.allocate(layout.size()));
  }
  SYNCOPATE_RETURN_IF_ERROR(inside_.barrier(within(options_.timeout)).in("its host"));
  SYNCOPATE_ASSIGN_OR_RETURN(arenas.weights, inside_.buffer_of(0, arenas.weights));
  gradients_ = arenas.gradients;
  return arenas;
}

Status AggregatingStrategy::restore(const TrainingState& state) {
  return servers_ ? servers_->restore(state) : Status();
}

Status AggregatingStrategy::save(TrainingState& state) const {
  thread_.wait_for(last_ticket_);
  if (servers_) return servers_->save(state);
  state.step = steps_done_;
  return Status();
}

Result<std::vector<Range>> AggregatingStrategy::join() {
  set_activity("join");
  if (servers_) {
    SYNCOPATE_RETURN_IF_ERROR(servers_->join().status());
    first_step_ = servers_->first_step();
  }
  const ps::ArenaLinks links = ps::arena_links(layout_, options_.shards, options_.sharding);
  std::array<std::uint64_t, kSaidAtJoin> own{};
  own[kLayoutHash] = links.hash;
  own[kFirstStep] = static_cast<std::uint64_t>(first_step_);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const auto said, allreduce::share_words(inside_, own, within(options_.timeout + options_.longer_than_leader)));
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank][kLayoutHash] == own[kLayoutHash]) continue;
    return Status::invalid_argument(fmt::format("rank {} of this host has the layout {:016x}, and rank {} {:016x}",
                                                rank, said[rank][kLayoutHash], inside_.rank(), own[kLayoutHash]));
  }
  first_step_ = steps_done_ = static_cast<std::int64_t>(said[0][kFirstStep]);
  buckets_ = links.ranges();
  return buckets_;
}

void AggregatingStrategy::begin_step(const StepContext& step) {
  step_ = step;
  if (servers_) servers_->begin_step(step);
}

void AggregatingStrategy::gradient_ready(std::size_t bucket) {
  if (bucket == 0) begin_ = clock_.now();
  last_ticket_ = thread_.submit([this, bucket] { sum(bucket); });
}

void AggregatingStrategy::sum(std::size_t bucket) {
  if (!failure_.ok()) return;
  failure_ = inside_
                 .all_reduce_by_parts(slice(gradients_, buckets_[bucket]), static_cast<std::size_t>(inside_.size()),
                                      sum_into_first, within(options_.timeout))
                 .in(fmt::format("step {}, chunk {} on its host", step_.step, bucket));
  if (failure_.ok() && servers_) servers_->gradient_ready(bucket);
}

Result<SyncStats> AggregatingStrategy::finish_step() {
  set_activity("wait for its host");
  const TimePoint wait_begin = clock_.now();
  thread_.wait_for(last_ticket_);
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  SyncStats stats;
  if (servers_) {
    SYNCOPATE_ASSIGN_OR_RETURN(stats, servers_->finish_step());
  } else {
    set_activity("wait for weights");
  }
  SYNCOPATE_RETURN_IF_ERROR(inside_.barrier(within(options_.timeout + options_.longer_than_leader))
                                .in(fmt::format("step {}, the weights of its host", step_.step)));
  ++steps_done_;
  const TimePoint now = clock_.now();
  stats.exposed_wait = now - wait_begin;
  stats.communication = now - begin_;
  report_weights({0, layout_.size()});
  return stats;
}

Status AggregatingStrategy::leave() {
  if (servers_) {
    SYNCOPATE_RETURN_IF_ERROR(servers_->leave());
  } else if (activity_ != nullptr) {
    activity_->rest("leave", step_.step);
  }
  SYNCOPATE_RETURN_IF_ERROR(inside_.barrier(within(kLeaveTimeouts * options_.timeout)).in("leave"));
  report_weights({0, layout_.size()});
  return Status();
}

void AggregatingStrategy::set_activity(const char* operation) {
  if (activity_ != nullptr) activity_->set(operation, step_.step);
}

}  // namespace syncopate::experiments
