#include "experiments/lab/doctor/doctor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/text/format.h"
#include "common/text/printable_text.h"
#include "experiments/config/wrapped_text.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

constexpr int kColumns = 80;
constexpr std::size_t kLongestName = 16;
constexpr std::size_t kMostPairs = 28;  // of eight hosts; of more the slowest

std::string shown_name(const ExaminedHost& host) { return printable(host.name, kLongestName); }

std::string latency_text(double microseconds) {
  return microseconds < 1000 ? fmt::format("{:.3g} us", microseconds) : fmt::format("{:.3g} ms", microseconds / 1000);
}

std::string rate_text(double bytes_per_second) {
  const double megabits = 8e-6 * bytes_per_second;
  return megabits < 1000 ? fmt::format("{:.3g} Mb/s", megabits) : fmt::format("{:.3g} Gb/s", megabits / 1000);
}

std::string gpus_text(const ExaminedHost& host) {
  const std::size_t gpus = host.report.machine.gpus.size();
  return gpus == 0 ? "none" : fmt::format("{}", gpus);
}

Row host_row(const ExaminedHost& host) {
  if (!host.failure.empty()) return {shown_name(host), "-", "-", "-", "-", "-", "-"};
  const HostLimits& limits = host.limits;
  const std::string cores = limits.core_quota
                                ? fmt::format("{} ({:.3g})", host.report.environment.cores, *limits.core_quota)
                                : fmt::format("{}", host.report.environment.cores);
  return {shown_name(host),
          cores,
          fmt::format("{}", limits.descriptors),
          limits.locked_bytes ? format_bytes(static_cast<double>(*limits.locked_bytes)) : "any",
          limits.mtu == 0 ? "-" : fmt::format("{} {}", limits.interface, limits.mtu),
          fmt::format("{:+.2f} ± {:.2f}", host.clock_ms, host.clock_within_ms),
          gpus_text(host)};
}

Row pair_row(const Examination& examination, const ExaminedPair& pair) {
  const std::string between =
      fmt::format("{} - {}", shown_name(examination.hosts[pair.one]), shown_name(examination.hosts[pair.other]));
  if (!pair.failure.empty()) return {between, "-", "-", "-"};
  return {between, rate_text(pair.there), rate_text(pair.back), latency_text(pair.latency_us)};
}

std::string pairs_text(const Examination& examination) {
  std::vector<ExaminedPair> shown = examination.pairs;
  std::string left_out;
  if (shown.size() > kMostPairs) {
    const auto rate = [](const ExaminedPair& pair) { return std::min(pair.there, pair.back); };
    std::ranges::stable_sort(shown, {}, rate);
    left_out = fmt::format("the slowest {} of {} pairs; --output=FILE.json has all\n", kMostPairs, shown.size());
    shown.resize(kMostPairs);
  }
  std::vector<Row> rows{{"pair", "there", "back", "a message's way"}};
  for (const ExaminedPair& pair : shown) rows.push_back(pair_row(examination, pair));
  return "\n" + text_table(rows) + left_out;
}

Json json_of(const ExaminedHost& host) {
  Json json{{"name", host.name}};
  if (!host.failure.empty()) {
    json["failure"] = host.failure;
    return json;
  }
  json["report"] = Json::parse(to_json_line(host.report));
  json["limits"] = Json::parse(to_json_line(host.limits));
  json["clock_ms"] = host.clock_ms;
  json["clock_within_ms"] = host.clock_within_ms;
  return json;
}

Json json_of(const Examination& examination, const ExaminedPair& pair) {
  Json json{{"one", examination.hosts[pair.one].name}, {"other", examination.hosts[pair.other].name}};
  if (!pair.failure.empty()) {
    json["failure"] = pair.failure;
    return json;
  }
  json["latency_us"] = pair.latency_us;
  json["bytes_per_second_there"] = pair.there;
  json["bytes_per_second_back"] = pair.back;
  return json;
}

}  // namespace

std::string doctor_text(const Examination& examination, std::span<const Finding> findings) {
  std::vector<Row> rows{{"host", "cores", "files", "locked", "MTU", "clock ms", "GPUs"}};
  for (const ExaminedHost& host : examination.hosts) rows.push_back(host_row(host));
  std::string text = text_table(rows);
  if (!examination.pairs.empty()) text += pairs_text(examination);
  text += "\n";
  for (const Finding& finding : findings) {
    const std::string said = fmt::format("{}: {}", finding.where, printable(finding.what, 400));
    text += wrapped("wrong: " + said, 0, kColumns) + wrapped("fix: " + finding.remedy, 2, kColumns);
  }
  return text + (findings.empty() ? "all is well\n" : fmt::format("{} wrong\n", findings.size()));
}

std::string doctor_json(const Examination& examination, std::span<const Finding> findings) {
  Json json{{"hosts", Json::array()}, {"pairs", Json::array()}, {"wrong", Json::array()}};
  for (const ExaminedHost& host : examination.hosts) json["hosts"].push_back(json_of(host));
  for (const ExaminedPair& pair : examination.pairs) json["pairs"].push_back(json_of(examination, pair));
  for (const Finding& finding : findings) {
    json["wrong"].push_back({{"where", finding.where}, {"what", finding.what}, {"fix", finding.remedy}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncopate::experiments
