// The words that a fault is written in, read and written. Pure. Failures say what is wrong and what would be right,
// without the entry that they stand in.
#pragma once

#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/config/fault_schedule.h"

namespace syncopate::experiments {

// "10s", "1.5s", "200ms": above 0, a day at most.
Result<Duration> parse_fault_time(std::string_view text);
std::string fault_time_text(Duration time);

// "worker1", "server0", "standby0", "evaluator", "any-worker", "any-server".
Result<FaultTarget> parse_fault_target(std::string_view text);
std::string fault_target_text(const FaultTarget& target);

// What follows the kind: "server0@step200", "worker1@10s+3s".
Result<Fault> parse_fault(FaultKind kind, std::string_view text);

}  // namespace syncopate::experiments
