// SimulatedSchedules: the schedules of all ranks of a simulated group, carried out without messages. A rank is a place
// in its schedule: it moves on, in virtual time, when a part of another has come, and its actor goes on when it has
// come to the end. The wire carries the parts as it carries messages of a transport, so that they share its links with
// all else; what is in them, and who has them, stays here.
//
// A ring that nothing disturbs needs no parts either: once the last rank has entered, a recurrence (allreduce/schedule/
// ring_times.h) says when each leaves, and the sum is made once, in the ring's order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/collective/schedule_player.h"
#include "allreduce/schedule/ring_times.h"
#include "common/os/aligned_buffer.h"
#include "simulation/simulated_wire.h"
#include "simulation/world.h"

namespace syncopate::experiments {

// Used by actors of one world.
class SimulatedSchedules final : public allreduce::SchedulePlayer, public simulation::ParcelOwner {
 public:
  // How rings are priced: what their parts take, which are of at most `segment` elements (0: of any size).
  struct RingPrices {
    std::size_t segment = 0;
    allreduce::RingCosts costs;
  };

  // Between `ranks` members of a group of the wire. World and wire must outlive it, and it what it sends. With
  // `ring`, no two of the group's parts share a link, unless they are from the same rank to the same one in a ring of
  // all ranks.
  SimulatedSchedules(simulation::World& world, simulation::SimulatedWire& wire, std::size_t group, int ranks,
                     std::optional<RingPrices> ring);

  Status play(int rank, const allreduce::Schedule& schedule, std::span<float> buffer, TimePoint deadline) override;
  std::optional<Status> sum_by_ring(int rank, std::span<float> buffer, TimePoint deadline) override;
  int waiting_for(int rank) const override;
  void interrupt(int rank) override;
  TransportCounters counters(int rank) const override { return of(rank).counters; }

  void sent(std::uint32_t part) override;
  void arrived(std::uint32_t part) override;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Rank {
    // The schedule that is played; null for none.
    const allreduce::Schedule* schedule = nullptr;
    std::size_t step = 0;
    bool has_sent = false;  // what this step sends
    bool is_adding = false;
    int awaits = -1;
    int unsent = 0;  // parts that have not left
    std::deque<std::uint32_t> to_itself;
    std::vector<std::uint32_t> parts;  // that this operation has sent
    // The ring that is priced.
    TimePoint entered;
    std::optional<TimePoint> leaves;  // once that is known

    std::span<float> buffer;
    std::size_t finished = 0;  // operations
    std::optional<simulation::World::ActorId> waiter;
    bool interrupted = false;
    TransportCounters counters;
  };
  // A part under way, or not taken yet.
  struct Part {
    int from = -1;                  // -1: it has been taken
    std::size_t operation = 0;      // the sender's
    int connection = 0;             // the wire's
    std::span<const float> values;  // the sender's, until its operation is over
    AlignedBuffer copy;             // afterwards, unless they are SharedZeros
    std::uint32_t next = kNone;     // that has arrived over the same connection
  };
  // Parts that have arrived over a connection, the first first.
  struct Arrivals {
    std::uint32_t first = kNone, last = kNone;
  };

  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  // Moves a rank on as far as it comes without waiting.
  void move_on(int rank);
  void send(int rank, const allreduce::SendPart& part);
  // Takes a part that has come; false if none has.
  bool take(int rank, const allreduce::ReceivePart& part);
  bool is_through(const Rank& rank) const { return rank.step == rank.schedule->size() && rank.unsent == 0; }
  void keep(Part& part);
  std::uint32_t new_part(int from, std::span<const float> values, bool copied);
  Arrivals& arrivals_of(int connection);

  // Waits until `done()`, which another has made true.
  template <typename Done>
  Status wait(int rank, TimePoint deadline, const Done& done);

  // Whether the ring that this rank is about to enter is priced: the first that enters decides for all.
  bool is_priced(int rank);
  // The lowest rank that the priced ring under way waits for; -1 for none.
  int missing() const;
  // All have entered.
  void price();
  void add_up() const;
  const allreduce::RingTimes& times_of(std::size_t length);

  simulation::World& world_;
  simulation::SimulatedWire& wire_;
  const std::size_t group_;
  const std::optional<RingPrices> ring_;
  std::vector<Rank> ranks_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> free_parts_;
  std::vector<Arrivals> arrivals_;  // by the wire's connection

  std::size_t entered_ = 0;              // ranks, into the priced ring under way
  std::vector<char> waits_for_;          // by rank
  std::map<std::size_t, bool> decided_;  // by the operation's number
  std::optional<std::size_t> last_ring_;
  std::map<std::size_t, allreduce::RingTimes> times_;  // by the buffer's length
};

}  // namespace syncopate::experiments
