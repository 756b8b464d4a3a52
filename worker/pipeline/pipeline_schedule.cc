#include "worker/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <cassert>

namespace syncopate::worker {

const char* name_of(PipelineSchedule schedule) { return schedule == PipelineSchedule::kGpipe ? "gpipe" : "1f1b"; }

std::vector<PipelineAction> pipeline_actions(const PipelinePlace& place) {
  assert(place.stage >= 0 && place.stage < place.stages && place.microbatches >= 1);
  std::vector<PipelineAction> actions;
  const int ahead = most_in_flight(place);
  for (int microbatch = 0; microbatch < ahead; ++microbatch) actions.push_back({true, microbatch});
  for (int done = 0; done < place.microbatches; ++done) {
    const bool is_gpipe = place.schedule == PipelineSchedule::kGpipe;
    actions.push_back({false, is_gpipe ? place.microbatches - 1 - done : done});
    if (ahead + done < place.microbatches) actions.push_back({true, ahead + done});
  }
  return actions;
}

int most_in_flight(const PipelinePlace& place) {
  if (place.schedule == PipelineSchedule::kGpipe) return place.microbatches;
  return std::min(place.microbatches, place.stages - place.stage);
}

}  // namespace syncopate::worker
