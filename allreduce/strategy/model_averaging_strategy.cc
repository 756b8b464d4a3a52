#include "allreduce/strategy/model_averaging_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "allreduce/collective/communication_outcome.h"
#include "allreduce/collective/shared_words.h"
#include "allreduce/strategy/agreement.h"
#include "common/random.h"

namespace syncopate::allreduce {
namespace {

// In TrainingState::counts: workers, steps since the last meeting, meetings.
constexpr const char* kCounts = "averaging";
constexpr std::int64_t kMostMeetings = std::int64_t{1} << 53;

void divide(std::span<float> sum, int count) {
  const auto divisor = static_cast<float>(count);
  for (float& value : sum) value /= divisor;
}

constexpr std::uint64_t kStream = 0x676F73736970ull << 16;  // apart from those of weights and data

}  // namespace

std::vector<int> gossip_pairs(std::uint64_t seed, std::int64_t round, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> partners = ranks;
  Random random(seed, kStream + static_cast<std::uint64_t>(round));
  for (std::size_t left = ranks.size(); left > 1; --left) std::swap(ranks[left - 1], ranks[random.below(left)]);
  for (std::size_t i = 1; i < ranks.size(); i += 2) {
    partners[static_cast<std::size_t>(ranks[i - 1])] = ranks[i];
    partners[static_cast<std::size_t>(ranks[i])] = ranks[i - 1];
  }
  return partners;
}

ModelAveragingStrategy::ModelAveragingStrategy(Collective& collective, const ModelAveragingOptions& options,
                                               const Clock& clock)
    : collective_(collective), options_(options), optimizer_(options.optimizer), clock_(clock) {
  assert(options.period >= 1);
  assert(!options.gossip_seed || options.outer.are_means());
}

Result<ParamArenas> ModelAveragingStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  layout_ = layout;
  SYNCOPATE_ASSIGN_OR_RETURN(weights_, collective_.allocate(layout.size()));
  gradients_ = AlignedBuffer(layout.size());
  optimizer_ = Optimizer(options_.optimizer, layout, {0, layout.size()});
  state_.emplace(options_.optimizer, layout.size());
  if (!options_.outer.are_means()) {
    outer_ = std::make_unique<OuterMeetings>(collective_, options_.outer, options_.period, options_.timeout,
                                             options_.activity, clock_);
    SYNCOPATE_RETURN_IF_ERROR(outer_->allocate(layout, weights_));
  }
  return ParamArenas{weights_, gradients_.span()};
}

Status ModelAveragingStrategy::restore(const TrainingState& state) {
  const auto counts = state.counts.find(kCounts);
  const std::int64_t workers = counts == state.counts.end() || counts->second.size() != 3 ? 0 : counts->second[0];
  if (workers != collective_.size()) {
    return Status::invalid_argument(
        fmt::format("{} workers cannot go on from the state of {} that average their weights: each has its own",
                    collective_.size(), workers));
  }
  const std::int64_t steps_alone = counts->second[1], meetings = counts->second[2];
  if (steps_alone < 0 || steps_alone >= options_.period || meetings < 0 || meetings > kMostMeetings) {
    return Status::data_loss(fmt::format("{} steps behind meeting {} cannot be, where workers meet every {} steps",
                                         steps_alone, meetings, options_.period));
  }
  const Range all{0, weights_.size()};
  SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kWeights, all, weights_));
  SYNCOPATE_RETURN_IF_ERROR(state_->restore(all, 0, state));
  if (outer_) SYNCOPATE_RETURN_IF_ERROR(outer_->restore(state));
  steps_alone_ = steps_alone;
  meetings_ = meetings;
  restored_ = true;
  first_step_ = steps_done_ = state.step;
  return Status();
}

Status ModelAveragingStrategy::save(TrainingState& state) const {
  if (!whole_) {
    return Status::invalid_argument(
        fmt::format("step {} has failed, and averaged weights cannot be told apart again", step_.step));
  }
  state.step = steps_done_;
  state.put(state_part::kWeights, 0, weights_);
  state_->save({0, weights_.size()}, 0, state);
  if (outer_) SYNCOPATE_RETURN_IF_ERROR(outer_->save(state));
  state.counts[kCounts] = {collective_.size(), steps_alone_, meetings_};
  return Status();
}

Status ModelAveragingStrategy::agree() {
  SYNCOPATE_RETURN_IF_ERROR(
      prove_agreement(collective_, group_agreement_of(layout_, {}, collective_, options_.outer.codec), deadline()));
  const std::uint64_t words[] = {restored_ ? 1u : 0u, static_cast<std::uint64_t>(first_step_)};
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::vector<std::uint64_t>> all,
                             share_words(collective_, words, deadline()));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (std::ranges::equal(all[rank], words)) continue;
    const auto stands = [](std::uint64_t restored, std::uint64_t step) {
      return restored != 0 ? fmt::format("goes on from step {}", step) : "begins anew";
    };
    return Status::invalid_argument(fmt::format("rank {} {}, rank {} {}: all must go on from the same step", rank,
                                                stands(all[rank][0], all[rank][1]), collective_.rank(),
                                                stands(words[0], words[1])));
  }
  return Status();
}

Result<std::vector<Range>> ModelAveragingStrategy::join() {
  const auto bytes = static_cast<std::int64_t>(weights_.size_bytes());
  SYNCOPATE_RETURN_IF_ERROR(
      watched(options_.activity, clock_, {.name = "all_reduce", .stage = Stage::kJoining}, [&] { return agree(); }));
  if (restored_) return std::vector<Range>{{0, layout_.size()}};
  SYNCOPATE_RETURN_IF_ERROR(watched(options_.activity, clock_,
                                    {.name = "broadcast", .stage = Stage::kJoining, .bytes = bytes},
                                    [&] { return collective_.broadcast(weights_, 0, deadline()); }));
  if (outer_) outer_->begin();
  return std::vector<Range>{{0, layout_.size()}};
}

Result<SyncStats> ModelAveragingStrategy::finish_step() {
  SyncStats stats;
  const TimePoint begin = clock_.now();
  const UpdateStep update{step_.learning_rate, 1.0f, step_.step + 1};
  TraceSpan span(tracer_of(options_.activity), {.kind = TraceKind::kUpdate, .number = step_.step});
  optimizer_.apply(weights_, gradients_.span(), *state_, 0, update);
  clock_.processed(Processing::kUpdate, weights_.size_bytes());
  span.end();
  stats.optimizer = clock_.now() - begin;
  ++steps_alone_;
  if (outer_) {
    SYNCOPATE_RETURN_IF_ERROR(outer_->after_step(steps_alone_, step_, stats).in(fmt::format("step {}", step_.step)));
    steps_alone_ %= options_.period;
  } else if (steps_alone_ == options_.period) {
    CommunicationOutcome outcome = outcome_of(collective_, clock_, [&] { return meet(); });
    SYNCOPATE_RETURN_IF_ERROR(outcome.count(stats).in(fmt::format("step {}", step_.step)));
    stats.exposed_wait = stats.communication;
  }
  whole_ = true;
  steps_done_ = step_.step + 1;
  report_weights({0, weights_.size()});
  return stats;
}

Status ModelAveragingStrategy::leave() {
  if (steps_alone_ > 0 || options_.gossip_seed || !options_.outer.leave_all_alike()) {
    whole_ = false;
    SyncStats unrecorded;
    if (outer_) SYNCOPATE_RETURN_IF_ERROR(outer_->finish(unrecorded).in("leave"));
    SYNCOPATE_RETURN_IF_ERROR(average_with_all(Stage::kLeaving).in("leave"));
    whole_ = true;
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
  const TraceSpan span(tracer_of(options_.activity), {.kind = TraceKind::kMeeting,
                                                      .peer = partner,
                                                      .number = step_.step,
                                                      .bytes = static_cast<std::int64_t>(weights_.size_bytes())});
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
