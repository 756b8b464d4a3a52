#include "worker/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <cassert>

namespace syncopate::worker {
namespace {

// Returns the forward passes that a stage makes before its first backward.
int forward_first(const PipelinePlace& place) {
  const int all = place.microbatches * place.chunks, behind = place.stages - place.stage - 1;
  switch (place.schedule) {
    case PipelineSchedule::kGpipe:
      return all;
    case PipelineSchedule::kOneForwardOneBackward:
    case PipelineSchedule::kZeroBubble:
    case PipelineSchedule::kPipedream:
      return std::min(all, behind + 1);
    case PipelineSchedule::kInterleaved:
      return std::min(all, 2 * behind + (place.chunks - 1) * place.stages + 1);
  }
  return all;
}

// Returns the n-th action of that pass: groups of S microbatches pass through the chunks, backward from the last.
PipelineAction nth(const PipelinePlace& place, PipelinePass pass, int n) {
  const bool is_forward = pass == PipelinePass::kForward;
  if (place.schedule == PipelineSchedule::kGpipe && !is_forward) n = place.microbatches - 1 - n;
  const int group = n / (place.stages * place.chunks), chunk = n / place.stages % place.chunks;
  return {pass, group * place.stages + n % place.stages, is_forward ? chunk : place.chunks - 1 - chunk};
}

}  // namespace

const char* name_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kGpipe:
      return "gpipe";
    case PipelineSchedule::kOneForwardOneBackward:
      return "1f1b";
    case PipelineSchedule::kInterleaved:
      return "interleaved";
    case PipelineSchedule::kZeroBubble:
      return "zero-bubble";
    case PipelineSchedule::kPipedream:
      return "pipedream";
  }
  return "";
}

std::vector<PipelineAction> pipeline_actions(const PipelinePlace& place) {
  assert(place.stage >= 0 && place.stage < place.stages && place.microbatches >= 1);
  assert(place.chunks == 1 || place.schedule == PipelineSchedule::kInterleaved);
  assert(place.schedule != PipelineSchedule::kInterleaved || place.microbatches % place.stages == 0);
  assert(!stashes_weights(place.schedule) || place.microbatches == 1);
  std::vector<PipelineAction> actions;
  const auto add = [&](PipelinePass pass, int n) { actions.push_back(nth(place, pass, n)); };
  const bool splits = splits_backward(place.schedule);
  const int all = place.microbatches * place.chunks, ahead = forward_first(place);
  for (int n = 0; n < ahead; ++n) add(PipelinePass::kForward, n);
  for (int done = 0; done < all; ++done) {
    add(PipelinePass::kBackward, done);
    if (splits && done >= place.stage) add(PipelinePass::kWeights, done - place.stage);
    if (ahead + done < all) add(PipelinePass::kForward, ahead + done);
  }
  for (int n = std::max(0, all - place.stage); splits && n < all; ++n) add(PipelinePass::kWeights, n);
  return actions;
}

std::vector<PipelineAction> stashing_actions(const PipelinePlace& place, std::int64_t step, bool is_last) {
  assert(stashes_weights(place.schedule));
  const auto number = static_cast<int>(step);
  std::vector<PipelineAction> actions{{PipelinePass::kForward, number}};
  const int first = number - place.lag(), last = is_last ? number : first;
  for (int batch = std::max(0, first); batch <= last; ++batch) actions.push_back({PipelinePass::kBackward, batch});
  return actions;
}

int most_in_flight(const PipelinePlace& place, int chunk) {
  const PipelinePass last = splits_backward(place.schedule) ? PipelinePass::kWeights : PipelinePass::kBackward;
  int now = place.lag(), most = 0;
  for (const PipelineAction& action : pipeline_actions(place)) {
    if (action.chunk != chunk) continue;
    if (action.pass == PipelinePass::kForward) most = std::max(most, ++now);
    if (action.pass == last) --now;
  }
  return most;
}

}  // namespace syncopate::worker
