#include "experiments/cluster/control/control_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/transport/link_shape.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;
using ByMatter = std::array<std::int64_t, kControlMatters>;

struct MatterText {
  const char* what;
  const char* lower;
};

MatterText text_of(ControlMatter matter) {
  switch (matter) {
    case ControlMatter::kStepRecords:
      return {"records of steps", "longer steps (--batch-size) or fewer workers make fewer of them"};
    case ControlMatter::kBatches:
      return {"batches that workers ask for", "--work=quota, or longer steps (--batch-size), would lower it"};
    case ControlMatter::kTraces:
      return {"the trace", "fewer traced steps (--trace=FIRST:LAST) would lower it"};
    case ControlMatter::kAllElse:
      return {"heartbeats and the like", "fewer processes or a longer --timeout would lower it"};
  }
  return {"", ""};
}

std::int64_t total(const ByMatter& bytes) { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

}  // namespace

ControlMatter matter_of(const ToCoordinator& message) {
  switch (message.kind_case()) {
    case ToCoordinator::kSteps:
      return ControlMatter::kStepRecords;
    case ToCoordinator::kBatchRequest:
      return ControlMatter::kBatches;
    case ToCoordinator::kTrace:
      return ControlMatter::kTraces;
    default:
      return ControlMatter::kAllElse;
  }
}

ControlMatter matter_of(const FromCoordinator& message) {
  return message.has_batch_lease() ? ControlMatter::kBatches : ControlMatter::kAllElse;
}

void ControlTraffic::add_in(ControlMatter matter, std::size_t bytes) {
  in[static_cast<std::size_t>(matter)] += static_cast<std::int64_t>(bytes_on_wire(bytes));
}

void ControlTraffic::add_out(ControlMatter matter, std::size_t bytes) {
  out[static_cast<std::size_t>(matter)] += static_cast<std::int64_t>(bytes_on_wire(bytes));
}

ControlTraffic ControlTraffic::since(const ControlTraffic& before) const {
  ControlTraffic traffic = *this;
  for (std::size_t matter = 0; matter < kControlMatters; ++matter) {
    traffic.in[matter] -= before.in[matter];
    traffic.out[matter] -= before.out[matter];
  }
  return traffic;
}

std::string notice_of(const ControlTraffic& traffic, Duration duration) {
  const bool is_in = total(traffic.in) >= total(traffic.out);
  const ByMatter& bytes = is_in ? traffic.in : traffic.out;
  const double rate = static_cast<double>(total(bytes)) / seconds(duration);
  if (!(rate > kMuchControlTraffic)) return "";
  const auto most = std::ranges::max_element(bytes);
  const MatterText text = text_of(static_cast<ControlMatter>(most - bytes.begin()));
  return fmt::format(
      "the coordinator {} {:.2f} MB/s {} processes on other hosts, more than 1 % of a link of 1 Gb/s (1.25 MB/s); "
      "{:.0f} % are {}: {}",
      is_in ? "takes" : "sends", rate / 1e6, is_in ? "from" : "to",
      100.0 * static_cast<double>(*most) / static_cast<double>(total(bytes)), text.what, text.lower);
}

void TrafficWatch::begin(const ControlTraffic& before, TimePoint now) {
  if (begun_) return;
  before_ = before;
  begun_ = now;
}

std::string TrafficWatch::take_notice(const ControlTraffic& traffic, TimePoint now) {
  constexpr Duration kLeast = std::chrono::seconds(2);
  if (has_noticed_ || !begun_ || now - *begun_ < kLeast) return "";
  std::string notice = notice_of(traffic.since(before_), now - *begun_);
  has_noticed_ = !notice.empty();
  return notice;
}

}  // namespace syncopate::experiments
