#include "worker/pipeline/pipeline_time.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>

namespace syncopate::worker {
namespace {

constexpr double kNotYet = -1;

struct Stage {
  std::vector<PipelineAction> actions;
  std::size_t done = 0;
  double free = 0;                        // when it has done them
  double out = 0, in = 0;                 // when its link has, each way
  std::vector<double> forward, backward;  // when what a microbatch's pass reads is there

  bool is_done() const { return done == actions.size(); }
  // Returns when the next action will have been done; kNotYet if another stage has to act before.
  double next_end(const StageTimes& times) const {
    const PipelineAction& next = actions[done];
    const double there = (next.is_forward ? forward : backward)[static_cast<std::size_t>(next.microbatch)];
    return there == kNotYet ? kNotYet : std::max(there, free) + (next.is_forward ? times.forward : times.backward);
  }
};

}  // namespace

std::vector<double> pipeline_ends(PipelineSchedule schedule, int microbatches, std::span<const StageTimes> stages,
                                  double delay) {
  assert(microbatches >= 1);
  const int count = static_cast<int>(stages.size());
  std::vector<Stage> at(stages.size());
  for (int stage = 0; stage < count; ++stage) {
    const std::vector<double> later(static_cast<std::size_t>(microbatches), kNotYet), now(later.size(), 0.0);
    at[static_cast<std::size_t>(stage)] = {.actions = pipeline_actions({schedule, count, stage, microbatches}),
                                           .free = stages[static_cast<std::size_t>(stage)].begins,
                                           .forward = stage == 0 ? now : later,
                                           .backward = stage == count - 1 ? now : later};
  }
  // The action that ends first is next, so that messages come to a link in the order of their times.
  for (;;) {
    std::optional<std::size_t> first;
    double end = 0;
    for (std::size_t s = 0; s < at.size(); ++s) {
      const double its_end = at[s].is_done() ? kNotYet : at[s].next_end(stages[s]);
      if (its_end == kNotYet || (first && its_end >= end)) continue;
      first = s;
      end = its_end;
    }
    if (!first) break;
    const std::size_t s = *first;
    Stage& stage = at[s];
    stage.free = end;
    const auto [is_forward, microbatch] = stage.actions[stage.done++];
    if (is_forward ? s + 1 == at.size() : s == 0) continue;
    Stage& reader = is_forward ? at[s + 1] : at[s - 1];
    stage.out = reader.in = std::max({stage.free, stage.out, reader.in}) + stages[is_forward ? s : s - 1].to_next;
    (is_forward ? reader.forward : reader.backward)[static_cast<std::size_t>(microbatch)] = stage.out + delay;
  }
  std::vector<double> ends;
  for (const Stage& stage : at) {
    assert(stage.is_done());
    ends.push_back(stage.free);
  }
  return ends;
}

}  // namespace syncopate::worker
