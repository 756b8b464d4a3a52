// CheckpointInterval: how often a run writes checkpoints, by steps or by seconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::experiments {

struct CheckpointInterval {
  std::int64_t steps = 0;  // 0: the interval is in seconds
  double seconds = 0;

  // Reads "200" as steps, and "30s" or "0.5s" as seconds. Fails with invalid argument for anything else.
  static Result<CheckpointInterval> parse(std::string_view text);
  static const char* forms();
  // Returns the text that parse() reads.
  std::string to_string() const;

  bool operator==(const CheckpointInterval&) const = default;
};

}  // namespace syncopate::experiments
