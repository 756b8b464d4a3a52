// MissingWorkers: finds the workers that others have waited for at a shard for too long. Pure: it is called now and
// then with the workers that are awaited.
//
// If a response waits for other workers' pushes, the worker that waits for it can name only silent shards. The shard
// knows whose push is missing.
#pragma once

#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "ps/server/shard.h"

namespace syncopate::ps {

// A worker that must push before somebody who waits at the shard can be answered.
struct AwaitedWorker {
  int worker = 0;
  std::int64_t pushes = 0;  // that it has made at this shard so far

  bool operator==(const AwaitedWorker&) const = default;
};

// Returns the awaited workers of a job that has started, in rank order. A worker that has left and waits for the end of
// the others awaits nobody, since they may train as long as they like.
std::vector<AwaitedWorker> awaited_at(const Shard& shard);

class MissingWorkers {
 public:
  // A worker is missing if it has been awaited for `patience` and has pushed nothing meanwhile.
  explicit MissingWorkers(Duration patience) : interval_(patience / kLooks) {}

  // Returns whether the next look is due. Looks are counted rather than time: a process that was stopped for long has
  // not looked, and first takes the messages that have arrived meanwhile.
  bool is_due(TimePoint now) const { return now >= next_; }
  // Forgets how long the awaited workers have been awaited.
  void forgive() { watched_.clear(); }
  // Returns the missing workers. Each is reported once, until it has pushed again or is no longer awaited.
  std::vector<int> look(const std::vector<AwaitedWorker>& awaited, TimePoint now);

 private:
  static constexpr int kLooks = 16;

  struct Watched {
    AwaitedWorker who;
    int looks = 0;  // since the first look that found it so
  };

  Duration interval_;
  TimePoint next_{};
  std::vector<Watched> watched_;  // as the last look found them
};

}  // namespace syncopate::ps
