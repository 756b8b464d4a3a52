#include "worker/device_local_strategy.h"

namespace syncopate::worker {

Result<ParamArenas> DeviceLocalStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  for (Events& events : events_) {
    for (std::unique_ptr<Event>* event : {&events.begin, &events.end, &events.done}) {
      SYNCOPATE_ASSIGN_OR_RETURN(*event, device_.make_event());
    }
  }
  return replica_.allocate(layout);
}

Result<std::vector<Range>> DeviceLocalStrategy::join() {
  unfinished_ = first_step();
  SYNCOPATE_RETURN_IF_ERROR(replica_.begin(deadline()));
  return std::vector<Range>{{0, replica_.arenas().weights.size()}};
}

void DeviceLocalStrategy::begin_step(const StepContext& step) {
  begun_ = step.step;
  replica_.begin_step(step);
}

void DeviceLocalStrategy::gradients_complete() {
  const Events& events = events_[turn_of(begun_)];
  device_.compute().record(*events.begin);
  replica_.begin_updates();
  replica_.update({0, replica_.arenas().weights.size()});
  replica_.end_updates();
  device_.compute().record(*events.end);
}

void DeviceLocalStrategy::step_given() { device_.compute().record(*events_[turn_of(begun_)].done); }

Result<SyncStats> DeviceLocalStrategy::finish_step() {
  const Events& events = events_[turn_of(unfinished_)];
  SYNCOPATE_RETURN_IF_ERROR(device_.wait(*events.done, deadline()));
  ++unfinished_;
  SyncStats stats;
  replica_.finish_step(stats);
  stats.optimizer = device_.between(*events.begin, *events.end);
  return stats;
}

}  // namespace syncopate::worker
