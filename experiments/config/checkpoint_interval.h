// How often checkpoints are written: every so many steps, or every so many seconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::experiments {

struct CheckpointInterval {
  std::int64_t steps = 0;  // 0: by time
  double seconds = 0;

  // "200": steps; "30s", "0.5s": seconds. Invalid argument for anything else.
  static Result<CheckpointInterval> parse(std::string_view text);
  static const char* forms();
  // As parse reads it.
  std::string to_string() const;

  bool operator==(const CheckpointInterval&) const = default;
};

}  // namespace syncopate::experiments
