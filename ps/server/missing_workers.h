// MissingWorkers: which workers the others have waited for at a shard for too long. Pure: it is shown, now and then,
// who is awaited.
//
// Where an answer may wait for other workers' pushes, who waits for it can name silent shards alone. The shard knows
// whose push it lacks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "ps/server/shard.h"

namespace syncopate::ps {

// A worker that must push before somebody who waits at the shard can be answered.
struct AwaitedWorker {
  int worker = 0;
  std::int64_t pushes = 0;  // that it has made here so far

  bool operator==(const AwaitedWorker&) const = default;
};

// Those of a job that has started, in the order of ranks. Who has left and waits for the others' end awaits nobody:
// they may take as long as they train.
std::vector<AwaitedWorker> awaited_at(const Shard& shard);

class MissingWorkers {
 public:
  // A worker is missing that has been awaited for `patience` and has pushed nothing meanwhile.
  explicit MissingWorkers(Duration patience) : interval_(patience / kLooks) {}

  // Whether it is time for the next look. Looks are counted, not time: a process that was stopped for long has not
  // looked, and first takes what has come to it meanwhile.
  bool is_due(TimePoint now) const { return now >= next_; }
  // All that were awaited are excused so far.
  void forgive() { watched_.clear(); }
  // Who is missing, each told once until it has pushed again or is no more awaited.
  std::vector<int> look(const std::vector<AwaitedWorker>& awaited, TimePoint now);

 private:
  static constexpr int kLooks = 16;

  struct Watched {
    AwaitedWorker who;
    int looks = 0;  // since the first that found it so
  };

  Duration interval_;
  TimePoint next_{};
  std::vector<Watched> watched_;  // as the last look found them
};

}  // namespace syncopate::ps
