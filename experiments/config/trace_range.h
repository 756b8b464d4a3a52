// TraceRange: which steps of a run are traced, as it is typed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/trace/trace_event.h"

namespace syncopate::experiments {

struct TraceRange {
  static constexpr std::int64_t kUsualCount = 20;

  std::int64_t count = kUsualCount;   // steps
  std::optional<std::int64_t> first;  // none: the first after the warm-up, or earlier in a run that ends before

  // Reads "auto" as the usual count, "50" as so many steps, and "100:119" as the first and the last step, counted from
  // 0. Fails with invalid argument for anything else.
  static Result<TraceRange> parse(std::string_view text);
  static std::string forms();
  // Returns the text that parse() reads.
  std::string to_string() const;

  // Returns the steps of a run that goes from step `begin` up to, not including, step `end`. Without `first` they are
  // the last ones, where the run ends before the warm-up and the count.
  TraceSteps steps_in(std::int64_t begin, std::int64_t end, std::int64_t warmup) const;

  bool operator==(const TraceRange&) const = default;
};

}  // namespace syncopate::experiments
