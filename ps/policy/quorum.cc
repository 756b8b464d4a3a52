#include "ps/policy/quorum.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "common/group_limits.h"
#include "common/text/number.h"
#include "common/text/quantity.h"

namespace syncopate::ps {
namespace {

constexpr double kLongestGrace = 3600;  // seconds

}  // namespace

std::string Quorum::forms() {
  return fmt::format("K or K+TIME with K from 1 to the workers and TIME from 1us to {:g}s, as in 3+200ms",
                     kLongestGrace);
}

Result<Quorum> Quorum::parse(std::string_view text) {
  const std::size_t plus = text.find('+');
  const std::optional<int> workers = parse_number<int>(text.substr(0, plus));
  Quorum quorum{.workers = workers.value_or(0)};
  bool is_read = quorum.workers >= 1 && quorum.workers <= kMostWorkers;
  if (plus != text.npos) {
    const double grace = parse_time(text.substr(plus + 1)).value_or(0);
    is_read = is_read && grace >= 1e-6 && grace <= kLongestGrace;  // NaN is none of these
    if (is_read) quorum.grace = Duration(std::llround(grace * 1e9));
  }
  if (!is_read) return Status::invalid_argument(fmt::format("'{}' is not {}", text, forms()));
  return quorum;
}

std::string Quorum::to_string() const {
  if (is_all()) return {};
  if (grace == Duration::zero()) return fmt::to_string(workers);
  return fmt::format("{}+{}", workers,
                     grace < std::chrono::milliseconds(1) ? fmt::format("{:g}us", seconds(grace) * 1e6)
                     : grace < std::chrono::seconds(1)    ? fmt::format("{:g}ms", seconds(grace) * 1e3)
                                                          : fmt::format("{:g}s", seconds(grace)));
}

}  // namespace syncopate::ps
