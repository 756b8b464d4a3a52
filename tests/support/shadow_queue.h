// ShadowQueues: the work of the shadow device's streams, as queues of closures. Each queue is worked off in its own
// order; between queues only points order. Nothing is done before somebody asks for a point to be reached, and then
// the order among what may be done is drawn. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/random.h"

namespace syncopate::testing_support {

// Where an event was recorded: behind the first `position` pieces of work of a queue.
struct ShadowPoint {
  std::size_t queue = 0;
  std::uint64_t position = 0;
  bool reached = false;
  std::int64_t time = 0;  // of the device, when it was reached
};

struct ShadowWork {
  std::function<void()> run;
  std::shared_ptr<ShadowPoint> awaits;  // null: begins when what lies before it in its queue is done
  std::shared_ptr<ShadowPoint> reaches;
  std::span<const std::byte> host;  // host memory that it touches
};

class ShadowQueues {
 public:
  explicit ShadowQueues(std::uint64_t seed) : random_(seed) {}

  // The new queue's number.
  std::size_t add_queue();

  void push(std::size_t queue, ShadowWork work);
  // The point behind all work of the queue so far.
  std::shared_ptr<ShadowPoint> mark(std::size_t queue);

  // Does work until `point` is reached: by lot, only what must come before it, or anything else along with it.
  void reach(const std::shared_ptr<ShadowPoint>& point);
  // Does at most `steps` pieces of the work that must come before `point`.
  void approach(const std::shared_ptr<ShadowPoint>& point, std::uint64_t steps);
  // How many pieces an impatient question gets done: 0, 1, 2 or 3, by lot.
  std::uint64_t draw_patience() { return random_.below(4); }
  // Does all work there is.
  void finish();

  // Drops all work, undone. Points not yet reached stay so.
  void clear();

  std::size_t pending() const;
  // Whether work that is not done yet touches any of this host memory.
  bool touches(std::span<const std::byte> host) const;

 private:
  struct Queue {
    std::deque<ShadowWork> work;
    std::uint64_t begun = 0;  // pieces taken out so far
    std::uint64_t end() const { return begun + work.size(); }
  };
  // By queue, the position up to which it is to be worked off.
  using Targets = std::vector<std::uint64_t>;

  Targets everything() const;
  // What must be done for `point`, through all that its work awaits.
  Targets needed_for(const ShadowPoint& point) const;
  // A queue below its target whose next piece may begin, by lot; none if there is none.
  std::optional<std::size_t> draw(const Targets& targets);
  void run_one(std::size_t queue);

  Random random_;
  std::vector<Queue> queues_;
  std::int64_t time_ = 0;
};

}  // namespace syncopate::testing_support
