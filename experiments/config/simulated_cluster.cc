#include "experiments/config/simulated_cluster.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
constexpr double kLeastStepSeconds = 1e-6, kMostStepSeconds = 1000;
constexpr std::pair<std::string_view, double> kRates[] = {{"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}};
constexpr double kLeastFlops = 1e6, kMostFlops = 1e19;

// Returns a number with one of the units behind it, in terms of the unit 1.
std::optional<double> quantity(std::string_view text, std::span<const std::pair<std::string_view, double>> units) {
  for (const auto& [unit, each] : units) {
    if (!text.ends_with(unit)) continue;
    const std::optional<double> number = parse_number<double>(text.substr(0, text.size() - unit.size()));
    if (number) return *number * each;
  }
  return std::nullopt;
}

}  // namespace

LinkShape usual_simulated_link() { return {.bits_per_second = 10'000'000'000, .delay = std::chrono::microseconds(50)}; }

Result<ComputeModel> ComputeModel::parse(std::string_view text) {
  if (text == "solo") return ComputeModel();
  const std::optional<double> time = quantity(text, kUnits), rate = quantity(text, kRates);
  if (time && *time >= kLeastStepSeconds && *time <= kMostStepSeconds) {
    return ComputeModel{.step = from_seconds(*time), .flops_per_second = {}};
  }
  if (rate && *rate >= kLeastFlops && *rate <= kMostFlops) return ComputeModel{.step = {}, .flops_per_second = rate};
  return Status::invalid_argument(fmt::format("'{}': must be {}", text, forms()));
}

std::string ComputeModel::to_string() const {
  if (step) return fmt::format("{:.6g}ms", seconds(*step) * 1e3);
  return flops_per_second ? fmt::format("{:.6g}GFLOPS", *flops_per_second / 1e9) : "solo";
}

}  // namespace syncopate::experiments
