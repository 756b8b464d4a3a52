// StepTraffic: counts the bytes between a worker and its shards in a step, and the time during which something is in
// flight. With overlap_forward that also covers the time between two steps. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"
#include "common/sync_strategy.h"

namespace syncopate::ps {

class StepTraffic {
 public:
  // `clock` must outlive this object.
  explicit StepTraffic(const Clock& clock) : clock_(clock) {}

  // expect() adds to the messages that are due. come() records that one of them has arrived.
  void expect(std::size_t messages);
  void come();
  bool any_due() const { return due_ > 0; }
  // Sets the number of messages that are due, whatever it was before.
  void expect_only(std::size_t messages);
  // Resets the figures that take() returns next.
  void begin();

  void sent(std::size_t bytes) { figures_.bytes_out += static_cast<std::int64_t>(bytes); }
  void received(std::size_t bytes) { figures_.bytes_in += static_cast<std::int64_t>(bytes); }
  // From now until take() the worker waits for responses; heard() records that shard `shard` has sent one.
  void begin_wait();
  void heard(int shard);
  // Records a response to a push with its staleness. `late` means that the push arrived too late for its update.
  void answered(std::int64_t staleness, bool late);

  // Returns the figures since the last call: bytes, staleness, dropped pushes, and communication time up to now.
  SyncStats take();

 private:
  struct Figures {
    std::int64_t bytes_out = 0;
    std::int64_t bytes_in = 0;
    std::int64_t answers = 0;  // to pushes
    std::int64_t late = 0;     // how many of these were late
    std::int64_t staleness_sum = 0;
    std::int64_t staleness_max = 0;
    // In the wait: the shard that was heard last, and the last time that another one was heard, or the wait's begin.
    int last_shard = -1;
    TimePoint last_heard{};
    TimePoint others_heard{};
  };

  const Clock& clock_;
  std::size_t due_ = 0;       // messages
  Duration communication_{};  // until due_since_
  TimePoint due_since_{};     // while a message is due
  Figures figures_;
};

}  // namespace syncopate::ps
