#include "experiments/config/simulated_cluster.h"

#include <fmt/format.h>

#include <utility>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
constexpr double kLeastStepSeconds = 1e-6, kMostStepSeconds = 1000;

}  // namespace

LinkShape usual_simulated_link() { return {.bits_per_second = 10'000'000'000, .delay = std::chrono::microseconds(50)}; }

Result<ComputeModel> ComputeModel::parse(std::string_view text) {
  if (text == "solo") return ComputeModel();
  for (const auto& [unit, seconds_each] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<double> number = parse_number<double>(text.substr(0, text.size() - unit.size()));
    if (!number) continue;
    const double seconds = *number * seconds_each;
    if (seconds >= kLeastStepSeconds && seconds <= kMostStepSeconds) return ComputeModel{.step = from_seconds(seconds)};
  }
  return Status::invalid_argument(fmt::format("'{}': must be {}", text, forms()));
}

std::string ComputeModel::to_string() const { return step ? fmt::format("{:.6g}ms", seconds(*step) * 1e3) : "solo"; }

}  // namespace syncopate::experiments
