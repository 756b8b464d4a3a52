#include "allreduce/collective/link_measurement.h"

#include <algorithm>
#include <utility>
#include <vector>

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

// How long one all_reduce lasts, in seconds: the mean of all ranks, the same on each.
Result<double> time_one(Collective& ring, std::span<float> buffer, const Clock& clock, TimePoint deadline) {
  const TimePoint begin = clock.now();
  SYNCOPATE_RETURN_IF_ERROR(ring.all_reduce(buffer, deadline));
  buffer[0] = static_cast<float>(seconds(clock.now() - begin));
  SYNCOPATE_RETURN_IF_ERROR(ring.all_reduce(buffer.first(1), deadline));
  return std::exchange(buffer[0], 0.0f) / static_cast<double>(ring.size());
}

// How long a round of so many bytes will last, from the last two lengths.
double next_round(std::span<const TransferSample> samples, std::span<const double> rounds_last, std::size_t bytes) {
  const std::size_t last = samples.size() - 1;
  const double slope =
      (rounds_last[last] - rounds_last[last - 1]) / static_cast<double>(samples[last].bytes - samples[last - 1].bytes);
  return rounds_last[last] + std::max(slope, 0.0) * static_cast<double>(bytes - samples[last].bytes);
}

// A ring lasts 2(n-1)·(α + β·m) + (n-1)·γ·m, where m is a message.
Result<LinkModel> measure(Collective& ring, std::span<float> buffer, const Clock& clock, TimePoint deadline) {
  const double gamma = seconds_per_added_byte(clock);
  const auto ranks = static_cast<std::size_t>(ring.size());
  const auto steps = static_cast<double>(ranks - 1);
  std::vector<TransferSample> samples;
  std::vector<double> rounds_last;  // by length
  for (const std::size_t floats : kMessageFloats) {
    const std::size_t bytes = floats * sizeof(float);
    if (samples.size() >= 2 && next_round(samples, rounds_last, bytes) > kLongestRound) break;
    SYNCOPATE_ASSIGN_OR_RETURN(const double first, time_one(ring, buffer.first(floats * ranks), clock, deadline));
    rounds_last.push_back(first);
    const int rounds = static_cast<int>(std::clamp<double>(kSecondsALength / first, kLeastRounds, kMostRounds));
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      const TimePoint begin = clock.now();
      SYNCOPATE_RETURN_IF_ERROR(ring.all_reduce(buffer.first(floats * ranks), deadline));
      if (round >= rounds / 3) times.push_back(seconds(clock.now() - begin));
    }
    const double step = median(times) / steps - gamma * static_cast<double>(bytes);
    samples.push_back({bytes, std::max(step, 1e-9) / 2});
  }
  Result<LinkModel> link = fit_link(samples);
  if (link.ok()) link->reduce_seconds_per_byte = gamma;
  return link;
}

// As floats, whose relative error of 1e-7 is nothing to what is measured.
void write(const LinkModel& link, std::span<float> to) {
  to[0] = static_cast<float>(link.latency);
  to[1] = static_cast<float>(link.seconds_per_byte);
  to[2] = static_cast<float>(link.reduce_seconds_per_byte);
}
LinkModel link_model_in(std::span<const float> from) { return {from[0], from[1], from[2]}; }

}  // namespace

// Rank 0 says what it knows (all zeros: nothing); if that is nothing all measure, and rank 0 says what it has found.
Result<LinkModel> agree_on_link(Collective& ring, const std::optional<LinkModel>& known, const Clock& clock,
                                TimePoint deadline) {
  if (ring.size() < 2) return known.value_or(LinkModel{});
  constexpr std::size_t kFigures = 3;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> figures, ring.allocate(kFigures));
  write(known.value_or(LinkModel{}), figures);
  SYNCOPATE_RETURN_IF_ERROR(ring.broadcast(figures, 0, deadline));
  if (const LinkModel told = link_model_in(figures); told.latency > 0 || told.seconds_per_byte > 0) return told;
  const std::size_t longest = *std::ranges::max_element(kMessageFloats) * static_cast<std::size_t>(ring.size());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> buffer, ring.allocate(longest));
  std::ranges::fill(buffer, 0.0f);  // sums of zeros stay zeros
  SYNCOPATE_ASSIGN_OR_RETURN(const LinkModel measured, measure(ring, buffer, clock, deadline));
  write(measured, figures);
  SYNCOPATE_RETURN_IF_ERROR(ring.broadcast(figures, 0, deadline));
  return link_model_in(figures);
}

}  // namespace syncopate::allreduce
