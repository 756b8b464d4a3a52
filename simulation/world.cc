#include "simulation/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace syncopate::simulation {
namespace {

constexpr std::uint64_t kMostLooks = 10'000'000;

// To destroy a fiber in its middle would run what its code never expects there.
void abandon(std::unique_ptr<Fiber> fiber) {
  static auto& abandoned = *new std::vector<std::unique_ptr<Fiber>>();
  abandoned.push_back(std::move(fiber));
}

}  // namespace

World::World(FiberKind kind) : kind_(kind), clock_(*this) {}

World::~World() { assert(living_ == 0 || switches_ == 0); }

TimePoint World::look() {
  if (++looks_ > kMostLooks) {
    throw std::logic_error(
        fmt::format("{} looks at the clock again and again, and waits for nothing: in virtual time "
                    "that lasts for ever",
                    actors_[current_].name));
  }
  return now_;
}

World::ActorId World::start(std::string name, std::function<void()> body) {
  return start_in(inside_ ? actors_[current_].group : 0, std::move(name), std::move(body));
}

World::GroupId World::start_group(std::string name, std::function<void()> body) {
  const GroupId group = groups_.size();
  groups_.emplace_back();
  start_in(group, std::move(name), std::move(body));
  return group;
}

void World::kill(GroupId group) {
  Fiber* const own = running_group() == group ? actors_[current_].fiber.get() : nullptr;
  for (Actor& actor : actors_) {
    if (actor.group != group || !actor.fiber) continue;
    abandon(std::move(actor.fiber));
    actor.waits = false;
    --living_;
  }
  groups_[group] = {};
  while (own != nullptr) own->suspend();
}

void World::thaw(GroupId group) {
  groups_[group].frozen = false;
  for (const Event& event : std::exchange(groups_[group].missed, {})) add(now(), event.what, event.which);
}

World::ActorId World::start_in(GroupId group, std::string name, std::function<void()> body) {
  const ActorId id = actors_.size();
  Actor actor{.name = std::move(name), .group = group};
  actor.fiber = Fiber::make(kind_, [this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  });
  actor.woken = true;
  actors_.push_back(std::move(actor));
  ++living_;
  add(now(), What::kGoOn, id);
  return id;
}

Status World::run() {
  while (living_ > 0) {
    const TimePoint next = source_ == nullptr ? TimePoint::max() : source_->next();
    if (next != TimePoint::max() && (events_.empty() || next <= events_.top().time)) {
      now_ = std::max(now_, next);
      ++sequence_;
      source_->change();
      continue;
    }
    if (events_.empty()) return abandon_actors();
    const Event event = events_.top();
    events_.pop();
    happen(event);
  }
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return Status();
}

bool World::suspend_until(TimePoint deadline) {
  if (deadline <= now()) return false;
  Actor& actor = actors_[current_];
  actor.waits = true;
  actor.deadline = deadline;
  // One timer an actor, which moves on with its deadlines: most waits end long before theirs, and an event for each
  // would fill the queue with what never matters.
  if (deadline < actor.timer && deadline != TimePoint::max()) {
    actor.timer = deadline;
    add(deadline, What::kDeadline, current_);
  }
  const ActorId self = current_;
  actor.fiber->suspend();
  // Actors may have been added meanwhile, and moved this one.
  return now() < actors_[self].deadline;
}

void World::sleep_until(TimePoint time) {
  const ActorId self = current_;
  actors_[self].sleeps = true;
  while (now() < time) suspend_until(time);
  actors_[self].sleeps = false;
}

void World::process(Processing what, std::size_t bytes) {
  const Duration time = time_for(what, bytes);
  if (time > Duration::zero()) sleep_until(now() + time);
}

void World::wake(ActorId id) {
  Actor& actor = actors_[id];
  if (!actor.waits || actor.woken || actor.sleeps) return;
  actor.woken = true;
  add(now(), What::kGoOn, id);
}

void World::at(TimePoint time, std::function<void()> action) {
  std::size_t place = actions_.size();
  if (free_actions_.empty()) {
    actions_.push_back(std::move(action));
  } else {
    place = free_actions_.back();
    free_actions_.pop_back();
    actions_[place] = std::move(action);
  }
  add(std::max(time, now()), What::kAction, place);
}

void World::add(TimePoint time, What what, std::size_t which) { events_.push({time, ++sequence_, what, which}); }

void World::happen(const Event& event) {
  now_ = std::max(now_, event.time);
  if (event.what != What::kAction) {
    if (Group& group = groups_[actors_[event.which].group]; group.frozen) return group.missed.push_back(event);
  }
  switch (event.what) {
    case What::kGoOn:
      actors_[event.which].woken = false;
      go_on(event.which);
      return;
    case What::kDeadline:
      look_at_deadline(event.which);
      return;
    case What::kAction: {
      const std::function<void()> action = std::exchange(actions_[event.which], nullptr);
      free_actions_.push_back(event.which);
      action();
      return;
    }
  }
}

void World::look_at_deadline(ActorId id) {
  Actor& actor = actors_[id];
  if (now() < actor.timer) return;  // an earlier one has been set since
  actor.timer = TimePoint::max();
  if (!actor.waits || actor.woken) return;
  if (now() >= actor.deadline) {
    go_on(id);
  } else if (actor.deadline != TimePoint::max()) {
    actor.timer = actor.deadline;
    add(actor.deadline, What::kDeadline, id);
  }
}

void World::go_on(ActorId id) {
  Actor& actor = actors_[id];
  if (!actor.fiber) return;
  actor.waits = false;
  current_ = id;
  looks_ = 0;
  ++switches_;
  Fiber& fiber = *actor.fiber;  // which stays where it is, whatever actors are added
  inside_ = true;
  fiber.resume();
  inside_ = false;
  if (!fiber.ended()) return;
  actors_[id].fiber.reset();
  --living_;
}

Status World::abandon_actors() {
  std::vector<std::string> names;
  for (Actor& actor : actors_) {
    if (!actor.fiber) continue;
    names.push_back(actor.name);
    abandon(std::move(actor.fiber));
  }
  living_ = 0;
  return Status::internal(
      fmt::format("nothing will ever happen again, and these still wait: {}", fmt::join(names, ", ")));
}

}  // namespace syncopate::simulation
