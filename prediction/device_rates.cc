#include "prediction/device_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/list_text.h"
#include "prediction/published_table.h"

namespace syncopate::prediction {
namespace {

DeviceRates rates_in(const PublishedRow& row) {
  constexpr double kGiga = 1e9, kTera = 1e12;
  DeviceRates device{.name = row.text("device"),
                     .title = row.text("title"),
                     .reported = row.text("reported"),
                     .bytes_per_second = row.number("memory_gb_per_second") * kGiga,
                     .memory_bytes = row.number("memory_gb") * kGiga,
                     .source = row.text("source")};
  if (!row.text("note").empty()) device.source += "; " + row.text("note");
  for (std::size_t i = 0; i < kRatePrecisions.size(); ++i) {
    const std::string column = std::string(kRatePrecisions[i]) + "_tflops";
    if (!row.text(column).empty()) device.flops[i] = row.number(column) * kTera;
  }
  return device;
}

}  // namespace

std::optional<double> DeviceRates::flops_in(std::string_view precision) const {
  const auto found = std::ranges::find(kRatePrecisions, precision);
  if (found == kRatePrecisions.end()) return std::nullopt;
  return flops[static_cast<std::size_t>(found - kRatePrecisions.begin())];
}

std::vector<std::string> DeviceRates::precisions() const {
  std::vector<std::string> known;
  for (const std::string_view precision : kRatePrecisions) {
    if (flops_in(precision)) known.emplace_back(precision);
  }
  return known;
}

const std::vector<DeviceRates>& known_devices() {
  static const std::vector<DeviceRates> devices = [] {
    std::vector<DeviceRates> all;
    for (const PublishedRow& row : published_table("device_rates")) all.push_back(rates_in(row));
    return all;
  }();
  return devices;
}

const DeviceRates* device_named(std::string_view name) {
  const auto found = std::ranges::find(known_devices(), name, &DeviceRates::name);
  return found == known_devices().end() ? nullptr : &*found;
}

const DeviceRates* device_reported_as(std::string_view reported) {
  const auto found = std::ranges::find_if(known_devices(), [&](const DeviceRates& device) {
    return reported.find(device.reported) != std::string_view::npos;
  });
  return found == known_devices().end() ? nullptr : &*found;
}

Result<double> rate_of(const DeviceRates& device, std::string_view precision) {
  if (const std::optional<double> rate = device.flops_in(precision)) return *rate;
  return Status::invalid_argument(fmt::format("{} has no rate of {}; there {} {}", device.name, precision,
                                              device.precisions().size() == 1 ? "is" : "are",
                                              list_text(device.precisions(), "and")));
}

}  // namespace syncopate::prediction
