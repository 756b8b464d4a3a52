// ServerFigures: what a process reports of itself when it has finished; most of it is a server's.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace syncopate::experiments {

struct ServerFigures {
  std::int64_t updates = 0;  // of the last membership epoch, whose state goes on
  std::int64_t pushes = 0;
  std::int64_t dropped = 0;  // of any process: messages and connections that failed their checks
  // In steps alone, without what is sent when workers join and leave:
  Duration busy{};             // in which the thread of the busiest shard worked on messages
  Duration serving{};          // from a shard's first push to the end of its last
  std::int64_t bytes_in = 0;   // payload, sum over its shards
  std::int64_t bytes_out = 0;  // payload, sum over its shards
  // In which a thread of a shard was ready and had no core to run on, the longest; none where that is not known.
  std::optional<Duration> core_wait = {};

  bool operator==(const ServerFigures&) const = default;
};

}  // namespace syncopate::experiments
