// StepTraffic: what goes between a worker and its shards, and how long something is under way: the figures of a step.
// With overlap_forward it goes on between two steps, too. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"
#include "common/sync_strategy.h"

namespace syncopate::ps {

class StepTraffic {
 public:
  // `clock` outlives this object.
  explicit StepTraffic(const Clock& clock) : clock_(clock) {}

  // So many messages more are due; and one of them has come.
  void expect(std::size_t messages);
  void come();
  bool any_due() const { return due_ > 0; }
  // So many are due, whatever was before.
  void expect_only(std::size_t messages);
  // Of what is taken next: nothing has gone or come yet.
  void begin();

  void sent(std::size_t bytes) { figures_.bytes_out += static_cast<std::int64_t>(bytes); }
  void received(std::size_t bytes) { figures_.bytes_in += static_cast<std::int64_t>(bytes); }
  // An answer to a push that was so stale, or came too late for its update.
  void answered(std::int64_t staleness, bool late);

  // What has gone and come since this was asked last: bytes, staleness, drops, and the time of communication until now.
  SyncStats take();

 private:
  struct Figures {
    std::int64_t bytes_out = 0;
    std::int64_t bytes_in = 0;
    std::int64_t answers = 0;  // to pushes
    std::int64_t late = 0;     // of these
    std::int64_t staleness_sum = 0;
    std::int64_t staleness_max = 0;
  };

  const Clock& clock_;
  std::size_t due_ = 0;       // messages
  Duration communication_{};  // until due_since_
  TimePoint due_since_{};     // while any is due
  Figures figures_;
};

}  // namespace syncopate::ps
