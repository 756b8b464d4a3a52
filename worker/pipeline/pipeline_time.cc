#include "worker/pipeline/pipeline_time.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>

namespace syncopate::worker {
namespace {

constexpr double kNotYet = -1;

// When what a microbatch's pass through a chunk reads is there, by microbatch.
struct Arrivals {
  std::vector<double> forward, backward;
};

struct Stage {
  PipelinePlace place;
  std::vector<PipelineAction> actions;
  std::size_t done = 0;
  double free = 0;         // when it has done them
  double out = 0, in = 0;  // when its link has, each way

  bool is_done() const { return done == actions.size(); }
};

double seconds_of(const PipelinePlace& place, PipelinePass pass, const StageTimes& times) {
  if (pass == PipelinePass::kForward) return times.forward;
  if (pass == PipelinePass::kWeights) return times.weights;
  return times.backward - (splits_backward(place.schedule) ? times.weights : 0);
}

}  // namespace

std::vector<double> pipeline_ends(const PipelinePlace& pipeline, std::span<const StageTimes> chunks, double delay,
                                  std::span<const double> begins) {
  assert(chunks.size() == static_cast<std::size_t>(pipeline.stages * pipeline.chunks));
  std::vector<Stage> stages(static_cast<std::size_t>(pipeline.stages));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    PipelinePlace place = pipeline;
    place.stage = static_cast<int>(s);
    stages[s] = {.place = place, .actions = pipeline_actions(place), .free = begins.empty() ? 0 : begins[s]};
  }
  const std::vector<double> later(static_cast<std::size_t>(pipeline.microbatches), kNotYet), now(later.size(), 0.0);
  std::vector<Arrivals> there(chunks.size(), {.forward = later, .backward = later});
  there.front().forward = there.back().backward = now;
  const auto number_of = [](const Stage& stage, const PipelineAction& action) {
    return static_cast<std::size_t>(stage.place.number_of(action.chunk));
  };
  // Returns when the next action will have been done; kNotYet if another stage has to act before.
  const auto next_end = [&](const Stage& stage) {
    const PipelineAction& next = stage.actions[stage.done];
    const std::size_t number = number_of(stage, next);
    const Arrivals& arrivals = there[number];
    const auto microbatch = static_cast<std::size_t>(next.microbatch);
    const double begin = next.pass == PipelinePass::kForward    ? arrivals.forward[microbatch]
                         : next.pass == PipelinePass::kBackward ? arrivals.backward[microbatch]
                                                                : 0;
    return begin == kNotYet ? kNotYet : std::max(begin, stage.free) + seconds_of(pipeline, next.pass, chunks[number]);
  };
  // The action that ends first is next, so that messages come to a link in the order of their times.
  for (;;) {
    std::optional<std::size_t> first;
    double end = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const double its_end = stages[s].is_done() ? kNotYet : next_end(stages[s]);
      if (its_end == kNotYet || (first && its_end >= end)) continue;
      first = s;
      end = its_end;
    }
    if (!first) break;
    Stage& stage = stages[*first];
    stage.free = end;
    const PipelineAction action = stage.actions[stage.done++];
    const std::size_t number = number_of(stage, action);
    const bool is_forward = action.pass == PipelinePass::kForward;
    if (action.pass == PipelinePass::kWeights) continue;
    if (is_forward ? number + 1 == chunks.size() : number == 0) continue;
    Stage& reader = stages[static_cast<std::size_t>(is_forward ? stage.place.behind() : stage.place.before())];
    const std::size_t read = is_forward ? number + 1 : number - 1;
    stage.out = reader.in = std::max({stage.free, stage.out, reader.in}) + chunks[std::min(number, read)].to_next;
    std::vector<double>& arrivals = is_forward ? there[read].forward : there[read].backward;
    arrivals[static_cast<std::size_t>(action.microbatch)] = stage.out + delay;
  }
  std::vector<double> ends;
  for (const Stage& stage : stages) {
    assert(stage.is_done());
    ends.push_back(stage.free);
  }
  return ends;
}

}  // namespace syncopate::worker
