// TracePlan: what one process of a job is to trace, as it is told by another: a text of four numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/trace/tracer.h"

namespace syncopate {

struct TracePlan {
  TraceSteps steps;
  std::size_t capacity = 0;       // of events that a process keeps
  std::int64_t steps_a_push = 1;  // a worker pushes after every so many

  // "FIRST:LAST:CAPACITY:STEPS_A_PUSH"
  std::string to_text() const;
  // Fails with invalid argument, the text included.
  static Result<TracePlan> parse(std::string_view text);

  // `clock` must outlive the tracer.
  std::unique_ptr<Tracer> make_tracer(const Clock& clock) const {
    return std::make_unique<Tracer>(clock, steps, capacity, steps_a_push);
  }

  bool operator==(const TracePlan&) const = default;
};

}  // namespace syncopate
