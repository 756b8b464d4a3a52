// PricedRing: rings of a simulated cluster that nothing disturbs. What such an all_reduce does follows from its
// schedule, so that no message of it is sent: once the last rank has entered, a recurrence (allreduce/schedule/
// ring_times.h) says when each leaves, and the sum is made once, in the ring's order.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/schedule/ring_times.h"
#include "simulation/world.h"

namespace syncopate::experiments {

// What the ranks of a group share. Used by actors of one world.
class PricedRing {
 public:
  // No two of the group's messages share a link, unless they are from the same rank to the same one in a ring of all
  // ranks. The world must outlive it.
  PricedRing(simulation::World& world, int ranks, std::size_t segment, allreduce::RingCosts costs);

  // Returns a rank's collective, which carries out by `collective` whatever is no ring, and rings while messages of
  // something else may be under way.
  static std::unique_ptr<allreduce::Collective> join(std::shared_ptr<PricedRing> ring,
                                                     std::unique_ptr<allreduce::ScheduleCollective> collective);

 private:
  class Member;
  struct Rank {
    std::size_t finished = 0;  // operations of all ranks
    bool by_messages = false;  // is in an operation that sends them
    TimePoint entered;
    std::span<float> buffer;
    std::optional<TimePoint> leaves;  // of the ring that it is in, once that is known
    std::optional<simulation::World::ActorId> waiter;
  };

  Rank& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  // Whether the ring that this rank is about to enter is priced: the first that enters decides for all.
  bool is_priced(int number);
  // The lowest rank that the ring under way waits for; -1 for none.
  int missing() const;
  Status all_reduce(int number, std::span<float> buffer, TimePoint deadline, const bool& interrupted);
  // All have entered.
  void price();
  void add_up() const;
  const allreduce::RingTimes& times_of(std::size_t length);

  simulation::World& world_;
  const std::size_t segment_;
  const allreduce::RingCosts costs_;
  std::vector<Rank> ranks_;
  std::size_t entered_ = 0;              // ranks, into the ring under way
  std::vector<char> waits_for_;          // by rank
  std::map<std::size_t, bool> decided_;  // by the operation's number
  std::optional<std::size_t> last_ring_;
  std::map<std::size_t, allreduce::RingTimes> times_;  // by the buffer's length
};

}  // namespace syncopate::experiments
