#include "worker/pipeline/pipeline_time.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <iterator>
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

// Returns when each stage has done the last of its actions. `behind`: what it takes after each backward pass.
std::vector<double> ends_of(const PipelinePlace& pipeline, std::vector<Stage> stages, int microbatches,
                            std::span<const StageTimes> chunks, double delay, std::span<const double> behind = {}) {
  assert(chunks.size() == static_cast<std::size_t>(pipeline.stages * pipeline.chunks));
  const std::vector<double> later(static_cast<std::size_t>(microbatches), kNotYet), now(later.size(), 0.0);
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
    const double sent = end;
    if (action.pass == PipelinePass::kBackward && !behind.empty()) stage.free += behind[*first];
    const std::size_t number = number_of(stage, action);
    const bool is_forward = action.pass == PipelinePass::kForward;
    if (action.pass == PipelinePass::kWeights) continue;
    if (is_forward ? number + 1 == chunks.size() : number == 0) continue;
    Stage& reader = stages[static_cast<std::size_t>(is_forward ? stage.place.behind() : stage.place.before())];
    const std::size_t read = is_forward ? number + 1 : number - 1;
    stage.out = reader.in = std::max({sent, stage.out, reader.in}) + chunks[std::min(number, read)].to_next;
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

// A stage for each of the pipeline's places, which has done nothing yet.
std::vector<Stage> stages_of(const PipelinePlace& pipeline) {
  std::vector<Stage> stages(static_cast<std::size_t>(pipeline.stages));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].place = pipeline;
    stages[s].place.stage = static_cast<int>(s);
    stages[s].actions = pipeline_actions(stages[s].place);
  }
  return stages;
}

}  // namespace

std::vector<double> pipeline_ends(const PipelinePlace& pipeline, std::span<const StageTimes> chunks, double delay,
                                  std::span<const double> begins) {
  std::vector<Stage> stages = stages_of(pipeline);
  for (std::size_t s = 0; s < begins.size(); ++s) stages[s].free = begins[s];
  return ends_of(pipeline, std::move(stages), pipeline.microbatches, chunks, delay);
}

double pipeline_period(const PipelinePlace& pipeline, std::span<const StageTimes> stages, double delay,
                       std::span<const double> behind) {
  assert(stashes_weights(pipeline.schedule));
  const auto end_of = [&](int steps) {
    std::vector<Stage> carried = stages_of(pipeline);
    for (Stage& stage : carried) {
      stage.actions.clear();
      for (int step = 0; step < steps; ++step) {
        std::ranges::copy(stashing_actions(stage.place, step, false), std::back_inserter(stage.actions));
      }
    }
    return ends_of(pipeline, std::move(carried), steps, stages, delay, behind).front();
  };
  const int filled = 8 * pipeline.stages;
  return (end_of(2 * filled) - end_of(filled)) / filled;
}

}  // namespace syncopate::worker
