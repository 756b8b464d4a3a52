// World: virtual time, and the actors that live in it. An actor is a fiber that runs ordinary code; where that code
// would wait, the actor is suspended, and the world goes on with whoever is due next. Time passes only between actors:
// what an actor computes takes none, unless it sleeps for it. Events at one time happen in the order in which they were
// asked for, so that a world that begins alike always goes on alike, on every machine.
//
// Everything here is called by the thread that calls run(): by actors and events, or before run().
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "simulation/fiber.h"

namespace syncopate::simulation {

// What changes by itself as time passes, without being asked for, such as a network.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Returns when it next changes; TimePoint::max() while nothing is under way.
  virtual TimePoint next() const = 0;
  // Its time has come. It must not wait.
  virtual void change() = 0;
};

class World {
 public:
  explicit World(FiberKind kind = default_fiber_kind());
  // Every actor must have ended, or never have begun.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Virtual time, which begins at one second: some code takes a time of zero for "never". An actor that looks at this
  // clock ten million times without waiting is in a loop that no time will end: its look throws, and names the actor.
  const Clock& clock() const { return clock_; }
  TimePoint now() const { return now_; }

  // Adds an actor. It begins now, once the caller is suspended or run() is called. `name` is for errors.
  using ActorId = std::size_t;
  ActorId start(std::string name, std::function<void()> body);

  // Actors that live and die together, as the threads of a process do: an actor belongs to the group of the one that
  // has started it. An actor that start_group() adds begins a group, under this name.
  using GroupId = std::size_t;
  GroupId start_group(std::string name, std::function<void()> body);
  // The group's actors are never gone on with; what they hold is lost. If one of them calls it, it does not return.
  void kill(GroupId group);
  // Until thaw() nothing goes on in the group; what was due meanwhile happens then. Not called by one of its actors.
  void freeze(GroupId group) { groups_[group].frozen = true; }
  void thaw(GroupId group);

  // Runs until every actor has ended. Rethrows what an actor has thrown, once the others have ended. If every actor
  // that is left waits for ever, fails with internal, naming them. They are never gone on with, and what they hold is
  // lost.
  Status run();

  // From now on what an actor processes (Clock::processed) takes it this long; until then it takes no time.
  void set_seconds_per_byte(Processing what, double seconds_per_byte) {
    seconds_per_byte_[static_cast<std::size_t>(what)] = seconds_per_byte;
  }

  Duration time_for(Processing what, std::size_t bytes) const {
    return from_seconds(seconds_per_byte_[static_cast<std::size_t>(what)] * static_cast<double>(bytes));
  }

  // By an actor. The one that runs.
  ActorId current() const { return current_; }
  // By anybody: the group of the actor that runs; none while an action does.
  std::optional<GroupId> running_group() const {
    return inside_ ? std::optional(actors_[current_].group) : std::nullopt;
  }
  // By an actor: waits until the deadline or wake(). Returns false at the deadline. May return true without a reason.
  bool suspend_until(TimePoint deadline);
  void sleep_until(TimePoint time);

  // Lets an actor go on now, if it waits in suspend_until().
  void wake(ActorId actor);
  // Has `action` happen at `time`, or now if that is past. It must not wait.
  void at(TimePoint time, std::function<void()> action);

  // From now on this, and none that was set before, changes when it says so, before all else of that time.
  void set_source(EventSource& source) { source_ = &source; }
  void forget_source(const EventSource& source) {
    if (source_ == &source) source_ = nullptr;
  }

  std::uint64_t switches() const { return switches_; }
  std::uint64_t events() const { return sequence_; }

 private:
  struct Actor {
    std::string name;
    GroupId group = 0;
    std::unique_ptr<Fiber> fiber;
    TimePoint deadline = TimePoint::max();  // of its wait
    TimePoint timer = TimePoint::max();     // when an event next looks at its deadline
    bool waits = false;
    bool woken = false;  // an event that goes on with it is due
    bool sleeps = false;
  };
  enum class What { kGoOn, kDeadline, kAction };
  struct Event {
    TimePoint time;
    std::uint64_t number;
    What what;
    std::size_t which;  // the actor, or the place of the action
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;  // a queue has its largest first
    }
  };

  struct Group {
    bool frozen = false;
    std::vector<Event> missed;  // while it was frozen
  };

  class ActorsClock final : public Clock {
   public:
    explicit ActorsClock(World& world) : world_(world) {}
    TimePoint now() const override { return world_.look(); }
    void processed(Processing what, std::size_t bytes) const override { world_.process(what, bytes); }

   private:
    World& world_;
  };

  ActorId start_in(GroupId group, std::string name, std::function<void()> body);
  TimePoint look();
  void process(Processing what, std::size_t bytes);
  void add(TimePoint time, What what, std::size_t which);
  void happen(const Event& event);
  void look_at_deadline(ActorId actor);
  void go_on(ActorId actor);
  Status abandon_actors();

  const FiberKind kind_;
  const ActorsClock clock_;
  TimePoint now_{std::chrono::seconds(1)};
  std::vector<Actor> actors_;
  std::vector<Group> groups_{1};  // the first is that of actors that nobody has started
  std::priority_queue<Event> events_;
  std::vector<std::function<void()>> actions_;
  std::vector<std::size_t> free_actions_;
  std::uint64_t sequence_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t looks_ = 0;  // at the clock, since the last switch
  std::size_t living_ = 0;
  EventSource* source_ = nullptr;
  ActorId current_ = 0;
  bool inside_ = false;  // an actor runs
  std::array<double, 4> seconds_per_byte_{};
  std::exception_ptr thrown_;
};

}  // namespace syncopate::simulation
