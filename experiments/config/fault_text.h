// Reads and writes the text of a fault. Pure. Failures say what is wrong and what would be right; they do not name the
// entry that holds the text.
#pragma once

#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/config/fault_schedule.h"

namespace syncopate::experiments {

// Reads "10s", "1.5s" or "200ms"; the time must be above 0 and at most a day.
Result<Duration> parse_fault_time(std::string_view text);
std::string fault_time_text(Duration time);

// Reads "worker1", "server0", "standby0", "evaluator", "any-worker" or "any-server".
Result<FaultTarget> parse_fault_target(std::string_view text);
std::string fault_target_text(const FaultTarget& target);

// Reads what follows the kind: "server0@step200", "worker1@10s+3s".
Result<Fault> parse_fault(FaultKind kind, std::string_view text);

}  // namespace syncopate::experiments
