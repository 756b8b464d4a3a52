// ShardWork: what a shard's server has had to do for its workers' steps: the time of its thread, and bytes. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace syncopate::ps {

// In steps: pushes, pulls and their responses, without what is sent when workers join and leave.
struct ShardLoad {
  Duration busy{};             // in which the thread worked on messages, rather than waited for one
  Duration serving{};          // from the first of these messages to the end of the last
  std::int64_t bytes_in = 0;   // payload
  std::int64_t bytes_out = 0;  // payload
};

class ShardWork {
 public:
  // `clock` must outlive this object.
  explicit ShardWork(const Clock& clock) : clock_(clock) {}

  // While an object lives, the thread is busy with a message of `bytes`.
  class Busy {
   public:
    Busy(ShardWork& work, std::size_t bytes);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    ShardWork& work_;
    const TimePoint begin_;
  };

  void sent(std::size_t bytes) { load_.bytes_out += static_cast<std::int64_t>(bytes); }

  const ShardLoad& load() const { return load_; }

 private:
  const Clock& clock_;
  ShardLoad load_;
  std::optional<TimePoint> first_;
};

}  // namespace syncopate::ps
