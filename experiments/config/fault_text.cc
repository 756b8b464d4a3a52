#include "experiments/config/fault_text.h"

#include <fmt/format.h>

#include <cmath>

#include "common/text/number.h"
#include "common/text/quantity.h"

namespace syncopate::experiments {
namespace {

constexpr double kLongestSeconds = 24 * 3600;
constexpr std::int64_t kLastFaultStep = 1'000'000'000'000;
constexpr int kMostRank = 1 << 20;

// Sets the time and the duration from "step200", "10s" or "10s+3s".
Status parse_when(std::string_view text, Fault& fault) {
  const std::size_t plus = text.find('+');
  const std::string_view when = text.substr(0, plus);
  if (constexpr std::string_view kStep = "step"; when.starts_with(kStep)) {
    fault.step = parse_number<std::int64_t>(when.substr(kStep.size()));
    if (!fault.step || *fault.step < 0 || *fault.step > kLastFaultStep) {
      return Status::invalid_argument(fmt::format("'{}' must be step and a number from 0, as in step200", when));
    }
  } else if (Result<Duration> time = parse_fault_time(when); time.ok()) {
    fault.time = *time;
  } else {
    return Status::invalid_argument(
        fmt::format("'{}' must be a step, as in step200, or a time since training began, as in 10s or 500ms", when));
  }
  if (!lasts(fault.kind) && plus != std::string_view::npos)
    return Status::invalid_argument(
        fmt::format("a {} does not last; leave out {}", name_of(fault.kind), text.substr(plus)));
  if (!lasts(fault.kind)) return {};
  if (plus == std::string_view::npos)
    return Status::invalid_argument(fmt::format("how long is missing, as in {}+3s", text));
  SYNCOPATE_ASSIGN_OR_RETURN(fault.length, parse_fault_time(text.substr(plus + 1)));
  return {};
}

}  // namespace

Result<Duration> parse_fault_time(std::string_view text) {
  const std::optional<double> value = parse_time(text);
  // This form rejects NaN, too.
  if (!value || !(*value >= 1e-3 && *value <= kLongestSeconds)) {
    return Status::invalid_argument(
        fmt::format("'{}' must be a time of 1ms to {:g}s, as in 10s, 1.5s or 200ms", text, kLongestSeconds));
  }
  return Duration(std::llround(*value * 1e9));
}

std::string fault_time_text(Duration time) {
  return time < std::chrono::seconds(1) ? fmt::format("{}ms", seconds(time) * 1e3) : fmt::format("{}s", seconds(time));
}

Result<FaultTarget> parse_fault_target(std::string_view text) {
  if (text == "evaluator") return FaultTarget{FaultRole::kEvaluator, 0};
  if (text == "any-worker") return FaultTarget{FaultRole::kWorker, {}};
  if (text == "any-server") return FaultTarget{FaultRole::kServer, {}};
  for (const FaultRole role : {FaultRole::kWorker, FaultRole::kServer, FaultRole::kStandby}) {
    if (!text.starts_with(name_of(role))) continue;
    const std::optional<int> rank = parse_number<int>(text.substr(std::string_view(name_of(role)).size()));
    if (rank && *rank >= 0 && *rank <= kMostRank) return FaultTarget{role, rank};
  }
  return Status::invalid_argument(
      fmt::format("'{}' must be worker, server or standby and a rank, as in worker1, or evaluator, any-worker or "
                  "any-server",
                  text));
}

std::string fault_target_text(const FaultTarget& target) {
  if (target.role == FaultRole::kEvaluator) return name_of(target.role);
  return target.rank ? fmt::format("{}{}", name_of(target.role), *target.rank)
                     : fmt::format("any-{}", name_of(target.role));
}

Result<Fault> parse_fault(FaultKind kind, std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) {
    return Status::invalid_argument(
        fmt::format("when is missing, as in {0}@step200 or {0}@10s", text.empty() ? "worker1" : text));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(FaultTarget target, parse_fault_target(text.substr(0, at)));
  Fault fault{.kind = kind, .target = target, .step = {}, .time = {}, .length = {}};
  SYNCOPATE_RETURN_IF_ERROR(parse_when(text.substr(at + 1), fault));
  return fault;
}

}  // namespace syncopate::experiments
