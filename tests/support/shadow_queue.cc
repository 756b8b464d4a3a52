#include "tests/support/shadow_queue.h"

#include <algorithm>
#include <utility>

namespace syncopate::testing_support {

std::size_t ShadowQueues::add_queue() {
  queues_.emplace_back();
  return queues_.size() - 1;
}

void ShadowQueues::push(std::size_t queue, ShadowWork work) { queues_[queue].work.push_back(std::move(work)); }

std::shared_ptr<ShadowPoint> ShadowQueues::mark(std::size_t queue) {
  auto point = std::make_shared<ShadowPoint>();
  point->queue = queue;
  point->position = queues_[queue].end() + 1;  // the piece that reaches it included
  push(queue, {.reaches = point});
  return point;
}

void ShadowQueues::reach(const std::shared_ptr<ShadowPoint>& point) {
  const bool as_late_as_possible = random_.below(2) == 0;
  while (!point->reached) {
    const std::optional<std::size_t> queue = draw(as_late_as_possible ? needed_for(*point) : everything());
    if (!queue) return;  // the work was dropped
    run_one(*queue);
  }
}

void ShadowQueues::approach(const std::shared_ptr<ShadowPoint>& point, std::uint64_t steps) {
  for (; steps > 0 && !point->reached; --steps) {
    const std::optional<std::size_t> queue = draw(needed_for(*point));
    if (!queue) return;
    run_one(*queue);
  }
}

void ShadowQueues::finish() {
  while (const std::optional<std::size_t> queue = draw(everything())) run_one(*queue);
}

void ShadowQueues::clear() {
  for (Queue& queue : queues_) {
    queue.begun = queue.end();
    queue.work.clear();
  }
}

std::size_t ShadowQueues::pending() const {
  std::size_t count = 0;
  for (const Queue& queue : queues_) count += queue.work.size();
  return count;
}

bool ShadowQueues::touches(std::span<const std::byte> host) const {
  for (const Queue& queue : queues_) {
    for (const ShadowWork& work : queue.work) {
      if (work.host.data() < host.data() + host.size() && host.data() < work.host.data() + work.host.size()) {
        return true;
      }
    }
  }
  return false;
}

ShadowQueues::Targets ShadowQueues::everything() const {
  Targets targets;
  for (const Queue& queue : queues_) targets.push_back(queue.end());
  return targets;
}

ShadowQueues::Targets ShadowQueues::needed_for(const ShadowPoint& point) const {
  Targets targets(queues_.size(), 0);
  targets[point.queue] = point.position;
  Targets searched(queues_.size(), 0);  // by queue, the position up to which its work was asked what it awaits
  for (bool more = true; more;) {
    more = false;
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      const Queue& queue = queues_[q];
      for (std::uint64_t i = std::max(searched[q], queue.begun); i < targets[q] && i < queue.end(); ++i) {
        const auto& awaits = queue.work[i - queue.begun].awaits;
        if (awaits && !awaits->reached && targets[awaits->queue] < awaits->position) {
          targets[awaits->queue] = awaits->position;
          more = true;
        }
      }
      searched[q] = targets[q];
    }
  }
  return targets;
}

std::optional<std::size_t> ShadowQueues::draw(const Targets& targets) {
  std::vector<std::size_t> ready;
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const Queue& queue = queues_[q];
    if (queue.work.empty() || queue.begun >= targets[q]) continue;
    const auto& awaits = queue.work.front().awaits;
    if (!awaits || awaits->reached) ready.push_back(q);
  }
  if (ready.empty()) return std::nullopt;
  return ready[random_.below(ready.size())];
}

void ShadowQueues::run_one(std::size_t queue) {
  ShadowWork work = std::move(queues_[queue].work.front());
  queues_[queue].work.pop_front();
  ++queues_[queue].begun;
  ++time_;
  if (work.run) work.run();
  if (work.reaches) {
    work.reaches->reached = true;
    work.reaches->time = time_;
  }
}

}  // namespace syncopate::testing_support
