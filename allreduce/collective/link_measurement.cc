#include "allreduce/collective/link_measurement.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "allreduce/schedule/algorithms.h"
#include "common/float_loops.h"

namespace syncopate::allreduce {
namespace {

constexpr std::size_t kMessageFloats[] = {16, 1024, 4096, 16384, 65536};
constexpr int kMostRounds = 18;  // of each length; a third of them to warm up
constexpr int kLeastRounds = 3;
constexpr double kSecondsALength = 0.5;  // with more rounds than the least
constexpr double kLongestRound = 1;      // seconds: where one of the next length would last longer, there is none

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double seconds_per_added_byte(const Clock& clock) {
  std::vector<float> sum(65536), part(65536, 1.0f);
  std::vector<double> times;
  for (int round = 0; round < kMostRounds; ++round) {
    const TimePoint begin = clock.now();
    add(part.data(), sum.data(), sum.size());
    times.push_back(seconds(clock.now() - begin));
    part[0] = sum[1];  // so that the sums count
  }
  return median(times) / static_cast<double>(sum.size() * sizeof(float));
}

// Sums that are timed, of `size` ranks that this one is of. Other ranks of the group do the same among themselves.
struct TimedSum {
  std::size_t size = 1;
  std::span<float> buffer;
  std::function<Status(std::span<float> buffer, TimePoint deadline)> all_reduce;
};

// Measures what connects a group, by the mean of all ranks: all of them decide alike how often and how long.
class Measurement {
 public:
  Measurement(Collective& group, std::span<float> shared, const Clock& clock, TimePoint deadline)
      : group_(group), shared_(shared), clock_(clock), deadline_(deadline), gamma_(seconds_per_added_byte(clock)) {}

  // A ring lasts 2(n-1)·(α + β·m) + (n-1)·γ·m, where m is a message. Returns nothing on a rank that is alone.
  Result<LinkModel> of(const TimedSum& sum) {
    const auto steps = static_cast<double>(sum.size - 1);
    std::vector<TransferSample> samples;
    std::vector<double> rounds_last;  // by length
    for (const std::size_t floats : kMessageFloats) {
      const std::size_t bytes = floats * sizeof(float);
      if (samples.size() >= 2 && next_round(samples, rounds_last, bytes) > kLongestRound) break;
      const std::span<float> buffer = sum.buffer.first(floats * sum.size);
      SYNCOPATE_ASSIGN_OR_RETURN(const double first, mean_of_one(sum, buffer));
      rounds_last.push_back(first);
      const int rounds = static_cast<int>(std::clamp<double>(kSecondsALength / first, kLeastRounds, kMostRounds));
      std::vector<double> times;
      for (int round = 0; round < rounds; ++round) {
        const TimePoint begin = clock_.now();
        SYNCOPATE_RETURN_IF_ERROR(sum.all_reduce(buffer, deadline_));
        if (round >= rounds / 3) times.push_back(seconds(clock_.now() - begin));
      }
      const double step = steps > 0 ? median(times) / steps - gamma_ * static_cast<double>(bytes) : 0;
      samples.push_back({bytes, std::max(step, 1e-9) / 2});
    }
    if (sum.size < 2) return LinkModel();
    Result<LinkModel> link = fit_link(samples);
    if (link.ok()) link->reduce_seconds_per_byte = gamma_;
    return link;
  }

 private:
  // How long one sum lasts, in seconds: the mean of all ranks of the group, the same on each.
  Result<double> mean_of_one(const TimedSum& sum, std::span<float> buffer) {
    const TimePoint begin = clock_.now();
    SYNCOPATE_RETURN_IF_ERROR(sum.all_reduce(buffer, deadline_));
    shared_[0] = static_cast<float>(seconds(clock_.now() - begin));
    SYNCOPATE_RETURN_IF_ERROR(group_.all_reduce(shared_.first(1), deadline_));
    return std::max(1e-9, static_cast<double>(shared_[0]) / group_.size());
  }

  // How long a round of so many bytes will last, from the last two lengths.
  static double next_round(std::span<const TransferSample> samples, std::span<const double> rounds_last,
                           std::size_t bytes) {
    const std::size_t last = samples.size() - 1;
    const double slope = (rounds_last[last] - rounds_last[last - 1]) /
                         static_cast<double>(samples[last].bytes - samples[last - 1].bytes);
    return rounds_last[last] + std::max(slope, 0.0) * static_cast<double>(bytes - samples[last].bytes);
  }

  Collective& group_;
  const std::span<float> shared_;
  const Clock& clock_;
  const TimePoint deadline_;
  const double gamma_;
};

const std::vector<int>& largest_of(const RanksByHost& hosts) {
  return *std::ranges::max_element(hosts, {}, [](const std::vector<int>& ranks) { return ranks.size(); });
}

// As floats, whose relative error of 1e-7 is nothing to what is measured.
constexpr std::size_t kFigures = 3;
void write(const LinkModel& link, std::span<float> to) {
  to[0] = static_cast<float>(link.latency);
  to[1] = static_cast<float>(link.seconds_per_byte);
  to[2] = static_cast<float>(link.reduce_seconds_per_byte);
}
LinkModel link_model_in(std::span<const float> from) { return {from[0], from[1], from[2]}; }

void write(const GroupLinks& links, std::span<float> to) {
  write(links.inside, to);
  write(links.across, to.subspan(kFigures));
  write(links.two_level_inside, to.subspan(2 * kFigures));
}
GroupLinks group_links_in(std::span<const float> from) {
  return {link_model_in(from), link_model_in(from.subspan(kFigures)), link_model_in(from.subspan(2 * kFigures))};
}

bool says_something(const LinkModel& link) { return link.latency > 0 || link.seconds_per_byte > 0; }

Result<GroupLinks> measure(ScheduleCollective& wire, DirectCollective* memory, std::span<float> shared,
                           const Clock& clock, TimePoint deadline) {
  const RanksByHost& hosts = wire.ranks_by_host();
  const std::size_t longest = *std::ranges::max_element(kMessageFloats), ranks = static_cast<std::size_t>(wire.size());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> buffer, wire.allocate(longest * ranks));
  std::ranges::fill(buffer, 0.0f);  // sums of zeros stay zeros
  Measurement measurement(wire, shared, clock, deadline);
  const auto by_all = [&](std::span<float> part, TimePoint due) { return wire.all_reduce(part, due); };
  SYNCOPATE_ASSIGN_OR_RETURN(const LinkModel of_all, measurement.of({ranks, buffer, by_all}));
  GroupLinks links = uniform_links(of_all);
  if (hosts.size() < 2 || largest_of(hosts).size() < 2) return links;

  const std::size_t here = hosts[host_of(wire.rank(), hosts)].size();
  const auto by_host = [&](std::span<float> part, TimePoint due) { return wire.all_reduce_inside_host(part, due); };
  SYNCOPATE_ASSIGN_OR_RETURN(links.inside, measurement.of({here, buffer, by_host}));
  links.two_level_inside = links.inside;
  if (memory == nullptr) return links;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> mapped, memory->allocate(longest * here));
  std::ranges::fill(mapped, 0.0f);
  const auto in_memory = [&](std::span<float> part, TimePoint due) { return memory->all_reduce(part, due); };
  SYNCOPATE_ASSIGN_OR_RETURN(links.two_level_inside, measurement.of({here, mapped, in_memory}));
  return links;
}

}  // namespace

// Rank 0 says what it knows (all zeros: nothing); if that is nothing all measure.
Result<GroupLinks> agree_on_links(ScheduleCollective& wire, DirectCollective* memory,
                                  const std::optional<GroupLinks>& known, const Clock& clock, TimePoint deadline) {
  if (wire.size() < 2) return known.value_or(GroupLinks{});
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> figures, wire.allocate(3 * kFigures));
  write(known.value_or(GroupLinks{}), figures);
  SYNCOPATE_RETURN_IF_ERROR(wire.broadcast(figures, 0, deadline));
  if (const GroupLinks told = group_links_in(figures); says_something(told.inside) || says_something(told.across)) {
    return told;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const GroupLinks measured, measure(wire, memory, figures, clock, deadline));
  write(measured, figures);
  SYNCOPATE_RETURN_IF_ERROR(wire.broadcast(figures, largest_of(wire.ranks_by_host()).front(), deadline));
  return group_links_in(figures);
}

}  // namespace syncopate::allreduce
