#include "experiments/config/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "common/os/regular_file.h"
#include "common/text/list_text.h"
#include "common/text/nearest_name.h"
#include "common/text/printable_text.h"
#include "common/text/quantity.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

using prediction::DeviceRates;
using prediction::kRatePrecisions;

// One entry of a file: what it is, and how it is read.
struct DeviceEntry {
  std::string name;
  std::string what;
  std::string example;
  std::string range;
  std::function<bool(const std::string&, DeviceRates&)> read;
};

// Sets a quantity in [least, most].
bool set_within(const std::optional<double>& value, double least, double most, double& to) {
  if (!value || !(*value >= least && *value <= most)) return false;
  to = *value;
  return true;
}

bool set_text(const std::string& value, std::string& to) {
  constexpr std::size_t kMostLetters = 200;
  to = printable(value, kMostLetters);
  return !value.empty() && value.size() <= kMostLetters;
}

const std::vector<DeviceEntry>& entries() {
  static const std::vector<DeviceEntry> all = [] {
    constexpr double kMega = 1e6, kGiga = 1e9, kPeta = 1e15;
    std::vector<DeviceEntry> made{
        {"name", "what to call it", "my card", "up to 200 letters",
         [](const std::string& value, DeviceRates& device) { return set_text(value, device.name); }}};
    for (std::size_t i = 0; i < kRatePrecisions.size(); ++i) {
      made.push_back({std::string(kRatePrecisions[i]), "operations a second", "19.5TFLOPS", "1GFLOPS to 1000PFLOPS",
                      [i](const std::string& value, DeviceRates& device) {
                        return set_within(parse_flops(value), kGiga, 1000 * kPeta, device.flops[i].emplace());
                      }});
    }
    made.push_back({"bandwidth", "bytes a second of its memory", "2039GB/s", "100MB/s to 1000TB/s",
                    [](const std::string& value, DeviceRates& device) {
                      return set_within(parse_bytes_per_second(value), 100 * kMega, kPeta, device.bytes_per_second);
                    }});
    made.push_back({"memory", "bytes", "80GB", "1MB to 1000TB", [](const std::string& value, DeviceRates& device) {
                      return set_within(parse_bytes(value), kMega, kPeta, device.memory_bytes);
                    }});
    made.push_back({"launch", "the host's time for a kernel", "7us", "up to 1s",
                    [](const std::string& value, DeviceRates& device) {
                      return set_within(parse_time(value), 0, 1, device.launch_seconds);
                    }});
    made.push_back({"source", "where the figures are from", "its data sheet", "up to 200 letters",
                    [](const std::string& value, DeviceRates& device) { return set_text(value, device.source); }});
    return made;
  }();
  return all;
}

const DeviceEntry& entry_named(std::string_view name) {
  return *std::ranges::find(entries(), name, &DeviceEntry::name);
}

// Returns "bytes, as in memory = "80GB"".
std::string line_of(const DeviceEntry& entry) {
  return fmt::format("{}, as in {} = \"{}\"", entry.what, entry.name, entry.example);
}

// Fails for what a device needs and a file has not.
Status check_complete(const std::set<std::string>& given, const DeviceRates& device) {
  for (const char* const name : {"name", "bandwidth", "memory"}) {
    if (!given.contains(name)) {
      return Status::invalid_argument(fmt::format("{} is missing: {}", name, line_of(entry_named(name))));
    }
  }
  if (!device.precisions().empty()) return {};
  const std::vector<std::string> precisions(kRatePrecisions.begin(), kRatePrecisions.end());
  return Status::invalid_argument(fmt::format("{} is missing, one of them at least: {}", list_text(precisions, "or"),
                                              line_of(entry_named(precisions.front()))));
}

}  // namespace

Result<DeviceRates> read_device(std::string_view toml) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto lines, read_toml(toml));
  std::vector<std::string> known;
  for (const DeviceEntry& entry : entries()) known.push_back(entry.name);
  std::set<std::string> given;
  DeviceRates device;
  for (const auto& [name, value] : lines) {
    const std::string shown = printable(name, 80);
    if (std::ranges::find(known, name) == known.end()) {
      const std::string nearest = nearest_name(shown, known);
      return Status::invalid_argument(fmt::format(
          "{}: no such entry; {}", shown,
          nearest.empty() ? "there are " + list_text(known, "and") : fmt::format("did you mean {}?", nearest)));
    }
    if (!given.insert(name).second) return Status::invalid_argument(name + ": given twice; once is enough");
    const DeviceEntry& entry = entry_named(name);
    if (entry.read(value, device)) continue;
    return Status::invalid_argument(fmt::format("{} = '{}': must be {}, as in {} ({})", name, printable(value, 80),
                                                entry.what, entry.example, entry.range));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_complete(given, device));
  device.title = device.name;
  if (device.source.empty()) device.source = "the file that names it, which gives no source";
  return device;
}

Result<DeviceRates> open_device(const std::string& name_or_file) {
  constexpr std::uint64_t kMostBytes = 1 << 16;
  if (name_or_file.ends_with(".toml")) {
    const Result<std::string> text = read_regular_file(name_or_file, kMostBytes);
    if (!text.ok()) return Status::invalid_argument("--device=" + text.status().message());
    Result<DeviceRates> device = read_device(*text);
    if (!device.ok()) return device.status().in("--device=" + name_or_file);
    return device;
  }
  if (const DeviceRates* const device = prediction::device_named(name_or_file)) return *device;
  std::vector<std::string> names;
  for (const DeviceRates& device : prediction::known_devices()) names.push_back(device.name);
  const std::string nearest = nearest_name(name_or_file, names);
  return Status::invalid_argument(fmt::format("--device={}: must be {}, or a file that ends in .toml{}",
                                              printable(name_or_file, 80), list_text(names, "or"),
                                              nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

}  // namespace syncopate::experiments
