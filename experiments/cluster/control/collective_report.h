// CollectiveReport: what a worker's heartbeat says of its collective operations.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"

namespace syncopate::experiments {

struct CollectiveReport {
  // Operations so far. All ranks carry out the same ones: an equal number is the same operation.
  std::int64_t begun = 0;
  std::string what;        // the last: "step 17, bucket 3 of 9 (all_reduce, 1.05 MB)"
  bool under_way = false;  // it still is
  Duration age{};          // since it began
  int waits_for = -1;      // a rank; -1: none, or it cannot be told
};

}  // namespace syncopate::experiments
