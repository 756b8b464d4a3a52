#include "worker/step_graphs.h"

#include <utility>

#include "common/sync_strategy.h"

namespace syncopate::worker {

Status StepGraphs::launch(std::int64_t step, const BatchView& batch, const std::function<Status()>& give) {
  if (!std::exchange(is_warm_, true)) return give();
  std::unique_ptr<Graph>& graph = graphs_[{turn_of(step), batch.values.data(), batch.ids.data()}];
  if (!graph) {
    SYNCOPATE_RETURN_IF_ERROR(device_.begin_capture());
    const Status given = give();
    Result<std::unique_ptr<Graph>> captured = device_.end_capture();
    SYNCOPATE_RETURN_IF_ERROR(given);
    if (!captured.ok()) return captured.status().in("capturing a step as a CUDA graph");
    graph = std::move(*captured);
  }
  device_.launch(*graph);
  return device_.status();
}

}  // namespace syncopate::worker
