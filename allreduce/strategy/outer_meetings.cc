#include "allreduce/strategy/outer_meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/tensor_ranges.h"

namespace syncopate::allreduce {
namespace {

// In a TrainingState; the last two and the counts (fragment, steps left) are those of a meeting under way.
constexpr const char *kAnchor = "outer.anchor", *kVelocity = "outer.velocity";
constexpr const char *kDifferences = "outer.differences", *kBegun = "outer.begun", *kMeeting = "outer.meeting";

OptimizerConfig optimizer_of(const std::optional<OuterMomentum>& momentum) {
  if (!momentum) return {};
  return {.kind = OptimizerKind::kMomentum, .momentum = momentum->momentum, .nesterov = momentum->nesterov};
}

// Cuts the arena behind the tensors that come nearest to equal parts.
Result<std::vector<Range>> fragments_of(const ParamLayout& layout, std::int64_t count) {
  const TensorRanges tensors = tensor_ranges(layout);
  if (static_cast<std::size_t>(count) > tensors.size()) {
    return Status::invalid_argument(
        fmt::format("{} fragments: the model has {} tensors, and a fragment is of whole ones", count, tensors.size()));
  }
  std::vector<Range> fragments;
  std::size_t begin = 0, tensor = 0;
  for (std::size_t left = static_cast<std::size_t>(count); left > 1; --left) {
    const std::size_t wanted = begin + (layout.size() - begin) / left;
    ++tensor;
    while (tensors.size() - tensor >= left && tensors[tensor].begin < wanted) ++tensor;
    fragments.push_back({begin, tensors[tensor].begin});
    begin = tensors[tensor].begin;
  }
  fragments.push_back({begin, layout.size()});
  return fragments;
}

// Where a fragment's meeting lies in a period, 1 to `period`: behind how many of its steps it begins.
std::int64_t meets_after(std::int64_t fragment, std::int64_t fragments, std::int64_t period) {
  return period * (fragment + 1) / fragments;
}

}  // namespace

OuterMeetings::OuterMeetings(Collective& collective, const OuterOptions& options, std::int64_t period, Duration timeout,
                             CollectiveActivity* activity, const Clock& clock)
    : collective_(collective),
      options_(options),
      period_(period),
      timeout_(timeout),
      activity_(activity),
      clock_(clock),
      outer_(optimizer_of(options.momentum)),
      velocity_(outer_.config(), 0),
      thread_(*options.threads) {
  assert(options.fragments >= 1 && options.fragments <= period);
  assert(options.overlap >= 0 && options.overlap < std::max<std::int64_t>(1, period / options.fragments));
}

Status OuterMeetings::allocate(const ParamLayout& layout, std::span<float> weights) {
  SYNCOPATE_ASSIGN_OR_RETURN(fragments_, fragments_of(layout, options_.fragments));
  weights_ = weights;
  velocity_ = OptimizerState(outer_.config(), layout.size());
  anchor_ = AlignedBuffer(layout.size());
  const std::size_t largest = std::ranges::max(fragments_, {}, &Range::size).size();
  begun_ = AlignedBuffer(largest);
  SYNCOPATE_ASSIGN_OR_RETURN(differences_, collective_.allocate(largest));
  if (options_.codec.kind == CodecKind::kNone) return {};
  SYNCOPATE_ASSIGN_OR_RETURN(compressed_,
                             make_compressed_reduction(options_.codec, layout, options_.seed, collective_, clock_));
  left_out_ = ReductionHistory(compressed_->memories(), collective_.rank());
  return {};
}

void OuterMeetings::begin() { std::ranges::copy(weights_, anchor_.span().begin()); }

Status OuterMeetings::after_step(std::int64_t in_period, const StepContext& step, SyncStats& stats) {
  step_ = step;
  if (meeting_ && --left_ == 0) SYNCOPATE_RETURN_IF_ERROR(finish(stats));
  for (std::size_t fragment = 0; fragment < fragments_.size(); ++fragment) {
    if (meets_after(static_cast<std::int64_t>(fragment), options_.fragments, period_) != in_period) continue;
    begin_meeting(fragment);
    if (options_.overlap == 0) SYNCOPATE_RETURN_IF_ERROR(finish(stats));
  }
  return {};
}

void OuterMeetings::begin_meeting(std::size_t fragment) {
  const Range range = fragments_[fragment];
  const std::span<const float> weights = slice(weights_, range), anchor = slice(anchor_.span(), range);
  std::ranges::copy(weights, begun_.span().begin());
  for (std::size_t i = 0; i < range.size(); ++i) differences_[i] = anchor[i] - weights[i];
  meeting_ = fragment;
  left_ = options_.overlap;
  // Work in memory gains nothing by a thread that takes a processor from one that computes.
  using Begin = CommunicationThread::Begin;
  const Begin begin = options_.overlap > 0 && !collective_.works_in_memory() ? Begin::kNow : Begin::kWhenWaitedFor;
  ticket_ = thread_.submit([this, fragment, step = step_] { sum(fragment, step); }, begin);
}

void OuterMeetings::sum(std::size_t fragment, const StepContext& step) {
  const Range range = fragments_[fragment];
  const TimePoint deadline = clock_.now() + timeout_;
  const std::span<float> differences = differences_.first(range.size());
  const CollectiveOperation operation{.name = "all_reduce",
                                      .bytes = static_cast<std::int64_t>(differences.size_bytes()),
                                      .step = step.step,
                                      .bucket = fragment,
                                      .buckets = fragments_.size()};
  const auto work = [&]() -> Status {
    if (!compressed_) return collective_.all_reduce(differences, deadline);
    SYNCOPATE_ASSIGN_OR_RETURN(codec_, compressed_->reduce(range, differences, {step.step, step.epoch}, deadline));
    return {};
  };
  outcome_ = outcome_of(collective_, clock_, [&] { return watched(activity_, clock_, operation, work); });
}

Status OuterMeetings::finish(SyncStats& stats) {
  if (!meeting_) return {};
  const TimePoint begin = clock_.now();
  thread_.wait_for(ticket_);
  stats.exposed_wait += clock_.now() - begin;
  stats.codec += std::exchange(codec_, Duration::zero());
  SYNCOPATE_RETURN_IF_ERROR(outcome_.count(stats));
  apply(fragments_[*meeting_]);
  meeting_.reset();
  return {};
}

void OuterMeetings::apply(Range range) {
  const std::span<float> anchor = slice(anchor_.span(), range), weights = slice(weights_, range);
  const std::span<float> gradient = differences_.first(range.size());
  for (float& value : gradient) value /= static_cast<float>(collective_.size());
  if (const std::optional<OuterMomentum>& momentum = options_.momentum) {
    const auto own = static_cast<float>(step_.learning_rate);
    const float inner = momentum->nesterov || own == 0 ? 1 : own;
    outer_.apply(anchor, gradient, velocity_, range.begin,
                 {.learning_rate = momentum->rate * static_cast<double>(inner),
                  .gradient_scale = 1 / inner,
                  .number = step_.step / period_ + 1});
  } else {
    for (std::size_t i = 0; i < range.size(); ++i) anchor[i] -= gradient[i];
  }
  if (options_.overlap == 0) {
    std::ranges::copy(anchor, weights.begin());
    return;
  }
  const std::span<const float> begun = begun_.span();
  for (std::size_t i = 0; i < range.size(); ++i) weights[i] += anchor[i] - begun[i];
}

Status OuterMeetings::save(TrainingState& state) const {
  state.put(kAnchor, 0, anchor_.span());
  if (options_.momentum) state.put(kVelocity, 0, velocity_.memories()[0]);
  if (meeting_) {
    thread_.wait_for(ticket_);
    SYNCOPATE_RETURN_IF_ERROR(outcome_.status);
    const Range range = fragments_[*meeting_];
    state.put(kDifferences, range.begin, differences_.first(range.size()));
    state.put(kBegun, range.begin, begun_.span().first(range.size()));
    state.counts[kMeeting] = {static_cast<std::int64_t>(*meeting_), left_};
  }
  left_out_.save(state, false);
  return {};
}

Status OuterMeetings::restore(const TrainingState& state) {
  const Range all{0, weights_.size()};
  SYNCOPATE_RETURN_IF_ERROR(state.read(kAnchor, all, anchor_.span()));
  if (options_.momentum) SYNCOPATE_RETURN_IF_ERROR(state.read(kVelocity, all, velocity_.memories()[0]));
  left_out_.restore(state);
  const auto counts = state.counts.find(kMeeting);
  if (counts == state.counts.end()) return {};
  const std::vector<std::int64_t>& of = counts->second;
  if (of.size() != 2 || of[0] < 0 || of[0] >= options_.fragments || of[1] < 1 || of[1] > options_.overlap) {
    return Status::data_loss(fmt::format("a meeting of {}: must be of one of {} fragments, with up to {} steps left",
                                         fmt::join(of, ", "), options_.fragments, options_.overlap));
  }
  const Range range = fragments_[static_cast<std::size_t>(of[0])];
  SYNCOPATE_RETURN_IF_ERROR(state.read(kDifferences, range, differences_.first(range.size())));
  SYNCOPATE_RETURN_IF_ERROR(state.read(kBegun, range, begun_.span().first(range.size())));
  meeting_ = static_cast<std::size_t>(of[0]);
  left_ = of[1];
  return {};
}

}  // namespace syncopate::allreduce
