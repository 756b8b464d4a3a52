// All ranks' schedules, carried out without a network, threads or time: parts wait in inboxes, and the rank that moves
// next is drawn, so that every order of delivery can come up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "allreduce/schedule/schedule.h"
#include "common/random.h"

namespace syncopate::testing_support {

struct SimulatedWire {
  // Whether a part's payload is what the sender's buffer holds when it is sent, or when it is received (unless the
  // schedule says that it must be copied).
  enum class Reads { kWhenSent, kWhenReceived };

  Reads reads = Reads::kWhenReceived;
  // A rank with so many parts on their way to one peer waits before it sends another.
  std::size_t room = allreduce::kMaxPartsUnderWay;
  std::uint64_t seed = 0;
  // Moves only when no other rank can; -1 for none.
  int slowest = -1;
};

class ScheduleSimulation {
 public:
  using Buffer = std::vector<double>;

  // One schedule and one buffer a rank.
  ScheduleSimulation(std::vector<allreduce::Schedule> schedules, std::vector<Buffer> buffers,
                     const SimulatedWire& wire);

  // Returns whether all ranks came to their schedule's end, and all that was sent was received, as it was due.
  bool run();

  const std::vector<Buffer>& buffers() const { return buffers_; }
  // What each rank has sent to others.
  const std::vector<std::size_t>& sent_elements() const { return sent_elements_; }
  const std::vector<std::size_t>& sent_messages() const { return sent_messages_; }
  // Ranks that came to their schedule's end.
  std::size_t finished() const;

 private:
  struct Part {
    Range range;
    bool in_place = false;
    Buffer payload;  // unless in place
  };
  struct Progress {
    std::size_t step = 0;
    bool sent = false;  // this step's part
  };

  std::deque<Part>& inbox(int from, int to) {
    return inboxes_[static_cast<std::size_t>(from) * schedules_.size() + static_cast<std::size_t>(to)];
  }
  bool can_move(int rank);
  // False if what comes is not what is due.
  bool move(int rank);
  void send(int rank, const allreduce::SendPart& part);
  bool receive(int rank, const allreduce::ReceivePart& part);

  const std::vector<allreduce::Schedule> schedules_;
  std::vector<Buffer> buffers_;
  const SimulatedWire wire_;
  Random random_;
  std::vector<Progress> progress_;
  std::vector<std::deque<Part>> inboxes_;  // by sender and receiver
  std::vector<std::size_t> sent_elements_;
  std::vector<std::size_t> sent_messages_;
};

// schedule(rank), for every rank.
std::vector<allreduce::Schedule> for_all_ranks(int size, const std::function<allreduce::Schedule(int rank)>& schedule);

}  // namespace syncopate::testing_support
