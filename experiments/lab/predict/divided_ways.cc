#include "experiments/lab/predict/divided_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiments/cluster/process/part_of.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/run/run_prediction.h"
#include "prediction/host_memory.h"

namespace syncopate::experiments {
namespace {

using prediction::FormedWay;
using prediction::Way;

constexpr const char* kNoForm = "there is no closed form of divided models whose hosts have several workers";
constexpr const char* kSchedules[] = {"1f1b", "interleaved", "zero-bubble"};

// Returns the numbers of microbatches to try for a pipeline's batch, in groups of `group`: 8, or the nearest that can
// be; and twice and four times as many.
std::vector<int> microbatches_for(int batch, int group) {
  constexpr int kUsual = 8, kMost = 1024;
  const auto can_be = [&](int count) { return count <= kMost && batch % count == 0 && count % group == 0; };
  int usual = kUsual;
  while (usual > 0 && !can_be(usual)) --usual;
  for (int more = kUsual; usual == 0 && more <= std::min(batch, kMost); ++more) usual = can_be(more) ? more : 0;
  std::vector<int> counts;
  for (const int times : {1, 2, 4}) {
    if (usual > 0 && can_be(times * usual)) counts.push_back(times * usual);
  }
  return counts;
}

// Fails with why a run by that way could not be, or has no form.
Result<FormedWay> formed(const AdviseRequest& request, int workers, const Way& way) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest asked, run_of(words_of(request.job, workers, way)));
  const ResolvedRun config = presumed(asked);
  SYNCOPATE_RETURN_IF_ERROR(check_division(config));
  FormedWay one{.way = way, .prediction = {}};
  const double compute = request.job.step_seconds;
  const auto set = [&](const auto& found) {
    one.prediction = {.step = found.step, .exposed = found.step - compute};
    one.least_step = found.least;
  };
  if (is_pipelined(config)) {
    const std::optional<PipelinePrediction> found = predicted_pipeline(config, compute);
    if (!found) return Status::invalid_argument(kNoForm);
    set(*found);
    for (std::size_t stage = 0; stage < found->own_bytes.size(); ++stage) {
      one.host_bytes =
          std::max(one.host_bytes, prediction::stage_host_bytes(found->own_bytes[stage], found->borrowed_bytes[stage],
                                                                way.pipeline.microbatches, request.state_floats));
    }
    return one;
  }
  const std::optional<PartsPrediction> found = predicted_parts(config, compute);
  if (!found) return Status::invalid_argument(kNoForm);
  set(*found);
  one.host_bytes = prediction::stage_host_bytes(found->own_bytes, 0, 1, request.state_floats);
  return one;
}

// Adds a way with each bucket. Fails with why there is none.
Status add_buckets(const AdviseRequest& request, int workers, Way way, std::vector<FormedWay>& ways) {
  for (const double bucket : request.bucket_bytes) {
    way.plan.bucket_bytes = bucket;
    SYNCOPATE_ASSIGN_OR_RETURN(const FormedWay one, formed(request, workers, way));
    ways.push_back(one);
    if (way.pipeline.stages * way.parts == workers) break;  // nobody has the same weights
  }
  return {};
}

Status add_schedule(const AdviseRequest& request, int workers, int stages, const std::string& schedule,
                    std::vector<FormedWay>& ways) {
  for (const int count : microbatches_for(stages * request.job.batch_size, schedule == "interleaved" ? stages : 1)) {
    SYNCOPATE_RETURN_IF_ERROR(
        add_buckets(request, workers,
                    {.plan = {}, .pipeline = {.stages = stages, .microbatches = count, .schedule = schedule}}, ways));
  }
  return {};
}

}  // namespace

DividedWays divided_ways(const AdviseRequest& request, int workers) {
  DividedWays found;
  if (!request.job.own_model) return found;
  const auto note = [&](const std::string& name, const Status& added) {
    if (!added.ok()) found.refused.push_back({name, added.message()});
  };
  for (int count = 2; count <= workers; ++count) {
    if (workers % count != 0) continue;
    Status added = add_schedule(request, workers, count, kSchedules[0], found.ways);
    note(fmt::format("pipelines of {} stages", count), added);
    // No other schedule needs less.
    for (std::size_t i = 1; added.ok() && i < std::size(kSchedules); ++i) {
      note(fmt::format("pipelines of {} stages, {}", count, kSchedules[i]),
           add_schedule(request, workers, count, kSchedules[i], found.ways));
    }
    note(fmt::format("layers in {} parts", count),
         add_buckets(request, workers, {.plan = {}, .parts = count}, found.ways));
  }
  return found;
}

}  // namespace syncopate::experiments
