#include "experiments/config/trace_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kMostTraced = 1000000, kLatestTraced = 1000000000;

}  // namespace

Result<TraceRange> TraceRange::parse(std::string_view text) {
  if (text == "auto") return TraceRange();
  const std::size_t colon = text.find(':');
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(text.substr(0, colon));
  if (colon == std::string_view::npos) {
    if (number && *number >= 1 && *number <= kMostTraced) return TraceRange{.count = *number, .first = {}};
  } else if (const auto last = parse_number<std::int64_t>(text.substr(colon + 1)); number && last) {
    const bool is_range = *number >= 0 && *number <= *last && *last <= kLatestTraced && *last - *number < kMostTraced;
    if (is_range) return TraceRange{.count = *last - *number + 1, .first = *number};
  }
  return Status::invalid_argument(fmt::format("must be {}", forms()));
}

std::string TraceRange::forms() {
  return fmt::format("auto ({} steps), COUNT or FIRST:LAST, counted from 0; up to {} steps", kUsualCount, kMostTraced);
}

std::string TraceRange::to_string() const {
  if (first) return fmt::format("{}:{}", *first, *first + count - 1);
  return count == kUsualCount ? "auto" : fmt::format("{}", count);
}

TraceSteps TraceRange::steps_in(std::int64_t begin, std::int64_t end, std::int64_t warmup) const {
  const std::int64_t from = first.value_or(std::max(begin, std::min(begin + warmup, end - count)));
  return {from, from + count - 1};
}

}  // namespace syncopate::experiments
