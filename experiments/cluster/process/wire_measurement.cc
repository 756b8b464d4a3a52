#include "experiments/cluster/process/wire_measurement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allreduce/collective/link_measurement.h"
#include "allreduce/collective/schedule_collective.h"

namespace syncopate::experiments {
namespace {

constexpr int kMembers = 2;

// Where the two threads tell each other their addresses.
class PairRendezvous final : public Rendezvous {
 public:
  Result<std::vector<std::string>> exchange(const std::string&, int rank, int, const std::string& value,
                                            TimePoint deadline) override {
    std::unique_lock lock(mutex_);
    values_[static_cast<std::size_t>(rank)] = value;
    came_.notify_all();
    if (!came_.wait_until(lock, deadline, [&] { return values_[0] && values_[1]; })) {
      return Status::deadline_exceeded("the other end of the wire has not come");
    }
    return std::vector<std::string>{*values_[0], *values_[1]};
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::array<std::optional<std::string>, kMembers> values_;
};

Result<allreduce::LinkModel> measure_as(int rank, syncopate::TransportKind kind, TransportOptions options,
                                        Rendezvous& rendezvous, TimePoint deadline) {
  options.rank = rank;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport,
                             make_transport(kind, options, rendezvous, deadline));
  const SteadyClock clock;
  const std::unique_ptr<allreduce::ScheduleCollective> ring = allreduce::make_schedule_collective(
      *transport,
      {.kind = allreduce::ScheduleKind::kRing, .segment_bytes = 512 * 1024, .ranks_by_host = {}, .clock = &clock});
  SYNCOPATE_ASSIGN_OR_RETURN(const allreduce::GroupLinks links,
                             allreduce::agree_on_links(*ring, nullptr, std::nullopt, clock, deadline));
  return links.inside;
}

// Returns the value with four digits that count.
double four_digits(double value) {
  const double scale = std::pow(10, 3 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

LinkShape shape_of(const allreduce::LinkModel& link, double payload_part) {
  constexpr double kLeastBits = 1e3, kMostBits = 1e12, kLeastDelay = 1e3, kMostDelay = 1e10;  // nanoseconds
  const double bits = 8 / std::max(link.seconds_per_byte, 1e-15) / payload_part;
  return {.bits_per_second = std::llround(four_digits(std::clamp(bits, kLeastBits, kMostBits))),
          .delay = Duration(std::llround(four_digits(std::clamp(link.latency * 1e9, kLeastDelay, kMostDelay))))};
}

}  // namespace

LinkShape link_between_hosts(const allreduce::LinkModel& link) {
  constexpr std::int64_t kAny = 1'000'000'000;
  return shape_of(link, LinkShape{.bits_per_second = kAny}.payload_bytes_per_second() * 8 / kAny);
}

LinkShape link_inside_a_host(const allreduce::LinkModel& link) { return shape_of(link, 1); }

Result<allreduce::LinkModel> measure_wire(TransportKind transport, int connections, Duration limit) {
  SYNCOPATE_ASSIGN_OR_RETURN(const syncopate::TransportKind kind, parse_transport_kind(name_of(transport)));
  SYNCOPATE_ASSIGN_OR_RETURN(const RunKeys keys, RunKeys::make());
  const TransportOptions options{
      .run_id = "calibrate", .group = "wire", .size = kMembers, .keys = keys, .connections = connections};
  const TimePoint deadline = SteadyClock().now() + limit;
  PairRendezvous rendezvous;
  std::optional<Result<allreduce::LinkModel>> of_other;
  std::thread other([&] { of_other.emplace(measure_as(1, kind, options, rendezvous, deadline)); });
  Result<allreduce::LinkModel> link = measure_as(0, kind, options, rendezvous, deadline);
  other.join();
  return link.ok() && !of_other->ok() ? Result<allreduce::LinkModel>(of_other->status()) : std::move(link);
}

}  // namespace syncopate::experiments
