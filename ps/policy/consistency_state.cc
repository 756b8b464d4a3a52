#include "ps/policy/consistency_state.h"

namespace syncopate::ps {

ConsistencyState::ConsistencyState(const Consistency& consistency, const Membership& members)
    : clocks_(members), bound_(consistency.make_bound(members.workers())) {}

void ConsistencyState::restore(const std::vector<std::int64_t>& clocks) {
  for (int worker = 0; worker < clocks_.workers(); ++worker) {
    clocks_.set(worker, clocks[static_cast<std::size_t>(worker)]);
  }
}

void ConsistencyState::on_push(const Step& step) {
  clocks_.set(step.worker, step.clock);
  if (bound_) bound_->on_push(step, clocks_);
}

bool ConsistencyState::may_respond(int worker) const {
  return !bound_ || clocks_.of(worker) - clocks_.slowest() <= bound_->of(worker);
}

bool ConsistencyState::waits_for(int worker, int other) const {
  return bound_ && clocks_.of(worker) - clocks_.of(other) > bound_->of(worker);
}

}  // namespace syncopate::ps
