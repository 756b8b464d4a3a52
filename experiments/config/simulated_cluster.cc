#include "experiments/config/simulated_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/text/number.h"
#include "common/text/quantity.h"
#include "prediction/device_steps.h"

namespace syncopate::experiments {
namespace {

constexpr double kLeastStepSeconds = 1e-6, kMostStepSeconds = 1000;
constexpr double kLeastFlops = 1e6, kMostFlops = 1e19;
constexpr double kLeastByteRate = 1e6, kMostByteRate = 1e15;
constexpr std::pair<std::string_view, double ProcessingModel::*> kProcessed[] = {{"sum", &ProcessingModel::sum},
                                                                                 {"update", &ProcessingModel::update},
                                                                                 {"encode", &ProcessingModel::encode},
                                                                                 {"decode", &ProcessingModel::decode}};

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

std::string ComputeModel::forms() {
  return fmt::format(
      "solo, the time of a step (250us, 5ms, 1.5s; up to 1000s), a device's rate (900GFLOPS, 15TFLOPS), a known device "
      "({}; a100:amp in that precision), a profile with times (mlp.json), or profile, for that of --model",
      fmt::join(prediction::device_names(), ", "));
}

Result<ComputeModel> ComputeModel::parse(std::string_view text) {
  if (text == "solo") return ComputeModel();
  if (text == kOwnProfile || text.ends_with(".json")) {
    return ComputeModel{.step = {}, .flops_per_second = {}, .profile = std::string(text)};
  }
  if (prediction::names_device(text)) {
    return ComputeModel{.step = {}, .flops_per_second = {}, .profile = {}, .device = std::string(text)};
  }
  const std::optional<double> time = parse_in_unit(text, "seconds"), rate = parse_flops(text);
  if (time && *time >= kLeastStepSeconds && *time <= kMostStepSeconds) {
    return ComputeModel{.step = from_seconds(*time), .flops_per_second = {}, .profile = {}};
  }
  if (rate && *rate >= kLeastFlops && *rate <= kMostFlops)
    return ComputeModel{.step = {}, .flops_per_second = rate, .profile = {}};
  return Status::invalid_argument(fmt::format("'{}': must be {}", text, forms()));
}

std::string ComputeModel::to_string() const {
  if (step) return fmt::format("{:.6g}ms", seconds(*step) * 1e3);
  if (flops_per_second) return fmt::format("{:.6g}GFLOPS", *flops_per_second / 1e9);
  if (!device.empty()) return device;
  return profile.empty() ? "solo" : profile;
}

std::optional<double> parse_byte_rate(std::string_view text) {
  const std::optional<double> rate = parse_bytes_per_second(text);
  return rate && *rate >= kLeastByteRate && *rate <= kMostByteRate ? rate : std::nullopt;
}

std::string byte_rate_text(double bytes_per_second) {
  return bytes_per_second < 1e9 ? fmt::format("{:.4g}MB/s", bytes_per_second / 1e6)
                                : fmt::format("{:.4g}GB/s", bytes_per_second / 1e9);
}

Result<ProcessingModel> ProcessingModel::parse(std::string_view text) {
  if (text == "none") return ProcessingModel();
  if (text == "solo") return ProcessingModel{.source = Source::kSolo};
  const Status wrong = Status::invalid_argument(fmt::format("'{}': must be {}", text, forms()));
  ProcessingModel model{.source = Source::kGiven};
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t colon = part.find(':');
    const auto kind = std::ranges::find(kProcessed, part.substr(0, colon), [](const auto& each) { return each.first; });
    const std::optional<double> rate = colon == part.npos ? std::nullopt : parse_byte_rate(part.substr(colon + 1));
    if (kind == std::end(kProcessed) || !rate || model.*kind->second > 0) return wrong;
    model.*kind->second = *rate;
    if (comma == rest.npos) return model;
    rest.remove_prefix(comma + 1);
  }
}

std::string ProcessingModel::to_string() const {
  if (source != Source::kGiven) return source == Source::kSolo ? "solo" : "none";
  std::string text;
  for (const auto& [name, rate] : kProcessed) {
    if (this->*rate > 0) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, byte_rate_text(this->*rate));
  }
  return text.empty() ? "none" : text;
}

}  // namespace syncopate::experiments
