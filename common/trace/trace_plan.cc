#include "common/trace/trace_plan.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "common/text/number.h"

namespace syncopate {
namespace {

// Ten megabytes of events: a process that is told more has been told nonsense.
constexpr std::int64_t kMostEvents = 131072;

}  // namespace

std::string TracePlan::to_text() const {
  return fmt::format("{}:{}:{}:{}", steps.first, steps.last, capacity, steps_a_push);
}

Result<TracePlan> TracePlan::parse(std::string_view text) {
  const auto wrong = [&] {
    return Status::invalid_argument(
        fmt::format("trace='{}': must be FIRST:LAST:EVENTS:STEPS, steps from 0, up to {} events, and how many steps a "
                    "push is of",
                    text, kMostEvents));
  };
  std::array<std::int64_t, 4> numbers{};
  std::string_view rest = text;
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    const std::size_t colon = rest.find(':');
    if ((colon == std::string_view::npos) != (index + 1 == numbers.size())) return wrong();
    const std::optional<std::int64_t> number = parse_number<std::int64_t>(rest.substr(0, colon));
    if (!number) return wrong();
    numbers[index] = *number;
    rest.remove_prefix(std::min(rest.size(), colon == std::string_view::npos ? rest.size() : colon + 1));
  }
  const auto& [first, last, capacity, steps_a_push] = numbers;
  if (first < 0 || last < first || capacity < 1 || capacity > kMostEvents || steps_a_push < 1) return wrong();
  return TracePlan{
      .steps = {first, last}, .capacity = static_cast<std::size_t>(capacity), .steps_a_push = steps_a_push};
}

}  // namespace syncopate
