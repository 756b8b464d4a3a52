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

LinkShape usual_link_inside() { return {.bits_per_second = 40'000'000'000, .delay = std::chrono::microseconds(5)}; }

Result<FabricChoice> FabricChoice::parse(std::string_view text) {
  constexpr std::string_view kRacks = "racks:", kOversubscription = ",oversubscription:";
  constexpr int kMostRacks = 1024;
  constexpr double kMostOversubscription = 1000;
  if (text == "switch") return FabricChoice();
  const Status wrong = Status::invalid_argument(fmt::format("'{}': must be {}, with R from 1 to {} and K from 1 to {}",
                                                            text, forms(), kMostRacks, kMostOversubscription));
  if (!text.starts_with(kRacks)) return wrong;
  const std::size_t comma = text.find(',');
  const std::optional<int> racks =
      parse_number<int>(text.substr(kRacks.size(), comma == text.npos ? text.npos : comma - kRacks.size()));
  if (!racks || *racks < 1 || *racks > kMostRacks) return wrong;
  if (comma == text.npos) return FabricChoice{.racks = *racks};
  if (!text.substr(comma).starts_with(kOversubscription)) return wrong;
  const std::optional<double> factor = parse_number<double>(text.substr(comma + kOversubscription.size()));
  if (!factor || !(*factor >= 1 && *factor <= kMostOversubscription)) return wrong;
  return FabricChoice{.racks = *racks, .oversubscription = *factor};
}

std::string FabricChoice::to_string() const {
  if (racks == 1 && oversubscription == 1) return "switch";
  return fmt::format("racks:{}", racks) +
         (oversubscription == 1 ? "" : fmt::format(",oversubscription:{:.6g}", oversubscription));
}

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
