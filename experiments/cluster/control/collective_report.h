// CollectiveReport: what a worker's heartbeat reports about its collective operations.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"

namespace syncopate::experiments {

struct CollectiveReport {
  // Number of operations so far. All ranks carry out the same ones, so that an equal number means the same operation.
  std::int64_t begun = 0;
  std::string what;        // the last one: "step 17, bucket 3 of 9 (all_reduce, 1.05 MB)"
  bool under_way = false;  // whether it is still running
  Duration age{};          // time since it began
  int waits_for = -1;      // the rank that it waits for; -1: none, or unknown
};

}  // namespace syncopate::experiments
