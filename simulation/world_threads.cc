#include "simulation/world_threads.h"

#include <utility>
#include <vector>

namespace syncopate::simulation {
namespace {

// Actors that wait for something, in the order in which they came.
class Waiters {
 public:
  explicit Waiters(World& world) : world_(world) {}

  void wait_until(TimePoint deadline) {
    actors_.push_back(world_.current());
    world_.suspend_until(deadline);
  }
  void wake_all() {
    for (const World::ActorId actor : std::exchange(actors_, {})) world_.wake(actor);
  }

 private:
  World& world_;
  std::vector<World::ActorId> actors_;  // some may have gone on since: to be woken without a reason does no harm
};

class WorldMonitor final : public Monitor {
 public:
  explicit WorldMonitor(World& world) : unlocked_(world), changed_(world) {}

  void lock() override {
    while (locked_) unlocked_.wait_until(TimePoint::max());
    locked_ = true;
  }
  void unlock() override {
    locked_ = false;
    unlocked_.wake_all();
  }
  void wait_until(TimePoint deadline) override {
    unlock();
    changed_.wait_until(deadline);
    lock();
  }
  void notify_all() override { changed_.wake_all(); }

 private:
  Waiters unlocked_, changed_;
  bool locked_ = false;
};

class WorldThread final : public Threads::Handle {
 public:
  WorldThread(World& world, const std::string& name, std::function<void()> body)
      : state_(std::make_shared<State>(world)) {
    world.start(name, [state = state_, body = std::move(body)] {
      body();
      state->ended = true;
      state->waiters.wake_all();
    });
  }
  ~WorldThread() override {
    while (!state_->ended) state_->waiters.wait_until(TimePoint::max());
  }

 private:
  struct State {
    explicit State(World& world) : waiters(world) {}
    bool ended = false;
    Waiters waiters;
  };
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Monitor> WorldThreads::make_monitor() { return std::make_unique<WorldMonitor>(world_); }

std::unique_ptr<Threads::Handle> WorldThreads::start(const std::string& name, std::function<void()> body, Priority) {
  return std::make_unique<WorldThread>(world_, name, std::move(body));
}

}  // namespace syncopate::simulation
