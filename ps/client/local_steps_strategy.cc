#include "ps/client/local_steps_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "common/float_loops.h"
#include "common/os/target_clones.h"

namespace syncopate::ps {
namespace {

// Where the worker is, in the counts of a state: meetings, steps since, whether one is under way, and how many of the
// pushes to each bucket have been answered.
constexpr const char* kPlace = "place";
constexpr std::size_t kPlaceCounts = 3;
constexpr std::int64_t kMostMeetings = std::int64_t{1} << 40;
constexpr const char* kBase = "base";
// What was pushed at a meeting of easgd that was broken off.
constexpr const char* kPushed = "pushed";
// Weights that are kept and updated at a time.
constexpr std::size_t kBlock = 4096;

// Elastic averaging: own[i] -= pull · (pushed[i] - answer[i])
SYNCOPATE_CLONES void move_back(const float* __restrict pushed, const float* __restrict answer, float pull,
                                float* __restrict own, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) own[i] -= pull * (pushed[i] - answer[i]);
}

}  // namespace

LocalStepsStrategy::LocalStepsStrategy(const LocalStepsOptions& options, std::unique_ptr<PsStrategy> servers,
                                       const Clock& clock, int worker)
    : options_(options),
      optimizer_(options.optimizer),
      servers_(std::move(servers)),
      clock_(clock),
      worker_(worker),
      state_(options.optimizer, 0) {
  assert(options.period >= 1);
  assert(!options.elastic_rate || (*options.elastic_rate > 0 && *options.elastic_rate < 1));
}

Result<ParamArenas> LocalStepsStrategy::allocate(const ParamLayout& layout) {
  if (!layout.tables().empty()) {
    return Status::invalid_argument("row-sparse tables are not trained by steps of one's own");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(link_, servers_->allocate(layout));
  weights_ = AlignedBuffer(layout.size());
  optimizer_ = Optimizer(options_.optimizer, layout, {0, layout.size()});
  state_ = OptimizerState(options_.optimizer, layout.size());
  return ParamArenas{weights_.span(), link_.gradients};
}

Status LocalStepsStrategy::restore(const TrainingState& state) {
  const auto place = state.counts.find(name_of(kPlace));
  // A worker that was not there goes on from the servers' weights.
  if (place == state.counts.end()) return servers_->restore(state);
  if (place->second.size() < kPlaceCounts) {
    return Status::data_loss(fmt::format("{} numbers where worker {} was", place->second.size(), worker_));
  }
  const std::vector<std::int64_t>& counts = place->second;
  if (counts[0] < 0 || counts[0] > kMostMeetings || counts[1] < 0 ||
      counts[1] > options_.period + (options_.elastic_rate ? 1 : 0)) {
    return Status::data_loss(
        fmt::format("worker {} cannot have been {} steps behind its meeting {}", worker_, counts[1], counts[0]));
  }
  carried_ = {.meetings = counts[0],
              .steps_alone = counts[1],
              .is_meeting = counts[2] != 0,
              .answered = {counts.begin() + std::ptrdiff_t{kPlaceCounts}, counts.end()}};
  const Range all{0, weights_.size()};
  SYNCOPATE_RETURN_IF_ERROR(state.read(name_of(state_part::kWeights), all, weights_.span()));
  if (carried_->is_meeting && options_.elastic_rate) {
    SYNCOPATE_RETURN_IF_ERROR(state.read(name_of(kPushed), all, link_.gradients));
  }
  if (options_.has_quorum) {
    base_ = AlignedBuffer(weights_.size());
    SYNCOPATE_RETURN_IF_ERROR(state.read(name_of(kBase), all, base_.span()));
  }
  TrainingState own;
  for (const char* const part : state_part::kOptimizer) {
    if (!state.covers(name_of(part), all)) continue;
    SYNCOPATE_RETURN_IF_ERROR(state.read(name_of(part), all, own.piece(part, all)));
  }
  SYNCOPATE_RETURN_IF_ERROR(state_.restore(all, 0, own));
  return servers_->restore(state);
}

Status LocalStepsStrategy::save(TrainingState& state) const {
  SYNCOPATE_RETURN_IF_ERROR(servers_->save(state));
  const std::optional<Place> place = has_joined_ ? place_now() : carried_;
  if (!place) return Status();  // nothing of its own yet
  state.step = place->meetings * options_.period + place->steps_alone;
  std::vector<std::int64_t>& counts = state.counts[name_of(kPlace)];
  counts = {place->meetings, place->steps_alone, place->is_meeting ? 1 : 0};
  counts.insert(counts.end(), place->answered.begin(), place->answered.end());
  state.put(name_of(state_part::kWeights), 0, weights_.span());
  if (place->is_meeting && options_.elastic_rate) state.put(name_of(kPushed), 0, link_.gradients);
  if (options_.has_quorum) state.put(name_of(kBase), 0, has_joined_ ? link_.weights : base_.span());
  TrainingState own;
  state_.save({0, weights_.size()}, 0, own);
  for (const std::string& part : own.names()) {
    state.put(name_of(part), 0, own.values(part, {0, weights_.size()}));
  }
  return Status();
}

LocalStepsStrategy::Place LocalStepsStrategy::place_now() const {
  Place place{.meetings = meetings_, .steps_alone = steps_alone_, .is_meeting = is_meeting_, .answered = {}};
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    place.answered.push_back(servers_->answered(bucket));
  }
  return place;
}

std::string LocalStepsStrategy::name_of(std::string_view part) const {
  return fmt::format("own_{}.worker{}", part, worker_);
}

Result<std::vector<Range>> LocalStepsStrategy::join() {
  std::copy_n(weights_.data(), weights_.size(), link_.weights.begin());
  Result<std::vector<Range>> buckets = servers_->join();
  if (!buckets.ok()) return buckets;
  buckets_ = *buckets;
  servers_->on_weights([this](Range range) { take(range); });
  take_up();
  if (options_.has_quorum) make_up_for_chunks();
  has_joined_ = true;
  if (is_meeting_) SYNCOPATE_RETURN_IF_ERROR(meet().status());
  return buckets;
}

void LocalStepsStrategy::make_up_for_chunks() {
  const auto lacks = [this](std::size_t bucket) { return servers_->answered(bucket) == meetings_; };
  bool lacks_all = true;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) lacks_all = lacks_all && lacks(bucket);
  for (std::size_t bucket = 0; bucket < buckets_.size() && !lacks_all; ++bucket) {
    if (lacks(bucket)) servers_->push_as_older(bucket);
  }
}

bool LocalStepsStrategy::is_current(const Place& carried) const {
  if (carried.answered.size() != buckets_.size()) return false;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const std::int64_t applied = servers_->answered(bucket);
    const std::int64_t furthest = carried.meetings + (carried.is_meeting ? 1 : 0);
    if (applied < carried.answered[bucket] || applied > furthest) return false;
  }
  return true;
}

void LocalStepsStrategy::take_up() {
  meetings_ = servers_->first_step();
  if (!carried_ || !is_current(*carried_)) {
    std::copy(link_.weights.begin(), link_.weights.end(), weights_.data());
    return;
  }
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (servers_->answered(bucket) > carried_->answered[bucket]) {
      take(buckets_[bucket]);
    } else if (options_.has_quorum) {
      follow(buckets_[bucket]);
    }
  }
  const bool has_met = meetings_ > carried_->meetings;
  steps_alone_ = has_met ? steps_behind_meeting(carried_->steps_alone) : carried_->steps_alone;
  is_meeting_ = carried_->is_meeting && !has_met;
}

std::int64_t LocalStepsStrategy::steps_behind_meeting(std::int64_t steps_alone) const {
  return options_.elastic_rate ? std::max<std::int64_t>(0, steps_alone - options_.period) : 0;
}

Result<SyncStats> LocalStepsStrategy::finish_step() {
  const TimePoint begin = clock_.now();
  TraceSpan span(options_.tracer, {.kind = TraceKind::kUpdate, .number = step_.step});
  const bool is_elastic = options_.elastic_rate.has_value();
  const bool meets = steps_alone_ + (is_elastic ? 0 : 1) == options_.period;
  has_just_met_ = meets;
  update(is_elastic && meets);
  clock_.processed(Processing::kUpdate, weights_.size() * sizeof(float));
  span.end();
  const Duration optimizer = clock_.now() - begin;
  Result<SyncStats> stats = SyncStats();
  ++steps_alone_;
  if (meets) {
    stats = meet();
  } else {
    report_weights({0, weights_.size()});
  }
  if (stats.ok()) stats->optimizer = optimizer;
  return stats;
}

void LocalStepsStrategy::update(bool keeps) {
  const UpdateStep step{step_.learning_rate, 1.0f, step_.step + 1};
  if (!keeps) return optimizer_.apply(weights_.span(), link_.gradients, state_, 0, step);
  if (is_layerwise(options_.optimizer.kind)) {  // needs whole tensors
    const std::vector<float> before(weights_.span().begin(), weights_.span().end());
    optimizer_.apply(weights_.span(), link_.gradients, state_, 0, step);
    std::ranges::copy(before, link_.gradients.begin());
    return;
  }
  std::array<float, kBlock> before;
  for (std::size_t begin = 0; begin < weights_.size(); begin += kBlock) {
    const Range block{begin, std::min(begin + kBlock, weights_.size())};
    const std::span<float> own = slice(weights_.span(), block), gradient = slice(link_.gradients, block);
    std::ranges::copy(own, before.begin());
    optimizer_.apply(own, gradient, state_, begin, step);
    std::copy_n(before.begin(), block.size(), gradient.begin());
  }
}

Status LocalStepsStrategy::leave() {
  if (steps_alone_ > 0) {
    if (options_.elastic_rate) std::ranges::copy(weights_.span(), link_.gradients.begin());
    SYNCOPATE_RETURN_IF_ERROR(meet().status());
  }
  leaving_ = true;
  return servers_->leave();
}

Result<SyncStats> LocalStepsStrategy::meet() {
  is_meeting_ = true;
  servers_->state_rate(step_.learning_rate);
  const double steps = options_.has_quorum ? static_cast<double>(steps_alone_) : 1.0;
  servers_->begin_step({step_.step, options_.elastic_rate ? *options_.elastic_rate : steps});
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (!options_.elastic_rate) prepare(buckets_[bucket]);
    servers_->gradient_ready(bucket);
  }
  Result<SyncStats> stats = servers_->finish_step();
  if (!stats.ok()) return stats;
  is_meeting_ = false;
  ++meetings_;
  steps_alone_ = steps_behind_meeting(steps_alone_);
  return stats;
}

void LocalStepsStrategy::prepare(Range range) {
  const std::span<const float> own = slice(weights_.span(), range);
  const std::span<const float> given = slice(link_.weights, range);
  const std::span<float> pushed = slice(link_.gradients, range);
  subtract(given.data(), own.data(), pushed.data(), pushed.size());
}

void LocalStepsStrategy::follow(Range range) {
  const std::span<const float> base = slice(base_.span(), range), now = slice(link_.weights, range);
  const std::span<float> own = slice(weights_.span(), range);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] += now[i] - base[i];
}

// The servers' weights of `range` have just come.
void LocalStepsStrategy::take(Range range) {
  const std::span<const float> answer = slice(link_.weights, range);
  const std::span<float> own = slice(weights_.span(), range);
  if (options_.elastic_rate && !leaving_) {
    const float pull = *options_.elastic_rate / (1 - *options_.elastic_rate);
    const std::span<const float> pushed = slice(link_.gradients, range);
    move_back(pushed.data(), answer.data(), pull, own.data(), own.size());
  } else {
    std::copy(answer.begin(), answer.end(), own.begin());
  }
  report_weights(range);
}

}  // namespace syncopate::ps
