#include "worker/device_local_strategy.h"

#include "common/device/device_state.h"
#include "common/optimizer/decay_parts.h"

namespace syncopate::worker {

Result<ParamArenas> DeviceLocalStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  for (std::span<float>* arena : {&arenas_.weights, &arenas_.gradients}) {
    SYNCOPATE_ASSIGN_OR_RETURN(*arena, allocate_floats(device_, layout.size()));
  }
  if (optimizer_.weight_decay != 0 && !optimizer_.decay_all) undecayed_ = undecayed_ranges(layout);
  SYNCOPATE_ASSIGN_OR_RETURN(state_, allocate_state(device_, optimizer_.kind, layout.size()));
  for (std::unique_ptr<Event>* event : {&begin_, &end_}) {
    SYNCOPATE_ASSIGN_OR_RETURN(*event, device_.make_event());
  }
  return arenas_;
}

Status DeviceLocalStrategy::restore(const TrainingState& state) {
  first_step_ = steps_done_ = state.step;
  return restore_to_device(device_, state, arenas_.weights, state_, clock_.now() + timeout_);
}

Status DeviceLocalStrategy::save(TrainingState& state) const {
  state.step = steps_done_;
  return save_from_device(device_, arenas_.weights, state_, clock_.now() + timeout_, state);
}

Result<std::vector<Range>> DeviceLocalStrategy::join() { return std::vector<Range>{{0, arenas_.weights.size()}}; }

Result<SyncStats> DeviceLocalStrategy::finish_step() {
  const UpdateStep update{step_.learning_rate, 1.0f, step_.step + 1};
  device_.compute().record(*begin_);
  update_range(device_.compute(), optimizer_, undecayed_, {0, arenas_.weights.size()}, arenas_.weights,
               arenas_.gradients, state_, update);
  device_.compute().record(*end_);
  SYNCOPATE_RETURN_IF_ERROR(device_.wait(*end_, clock_.now() + timeout_));
  steps_done_ = step_.step + 1;
  SyncStats stats;
  stats.optimizer = device_.between(*begin_, *end_);
  return stats;
}

}  // namespace syncopate::worker
