#include "allreduce/schedule/ring_times.h"

#include <algorithm>

#include "allreduce/schedule/timetable.h"
#include "common/os/target_clones.h"

namespace syncopate::allreduce {
namespace {

constexpr double kTicksPerNanosecond = 1000;

// Rounds ticks up to a whole nanosecond. Adding this number leaves no bits for fractions; 0.4995 is below a half by
// less than the thousandth that a tick is.
inline double rounded_up(double ticks) {
  constexpr double kNoFractions = 6755399441055744.0;  // 1.5 * 2^52
  return ((ticks * (1 / kTicksPerNanosecond) + 0.4995) + kNoFractions - kNoFractions) * kTicksPerNanosecond;
}

// Each rank sends a part: it is at `now`, and its link is busy until `busy`. arrivals[r + 1] is when rank r's part has
// come; zero for a part that is not sent, which takes no time.
SYNCOPATE_CLONES void send_each(const double* __restrict now, const double* __restrict on_link, double latency,
                                double* __restrict busy, double* __restrict arrivals, std::size_t ranks) {
  for (std::size_t r = 0; r < ranks; ++r) {
    const double end = (now[r] > busy[r] ? now[r] : busy[r]) + on_link[r];
    busy[r] = end;
    arrivals[r + 1] = on_link[r] > 0 ? end + latency : 0;
  }
}

SYNCOPATE_CLONES void copy_each(const double* __restrict arrivals, double* __restrict now, std::size_t ranks) {
  for (std::size_t r = 0; r < ranks; ++r) {
    const double arrived = rounded_up(arrivals[r]);
    now[r] = now[r] > arrived ? now[r] : arrived;
  }
}

SYNCOPATE_CLONES void add_each(const double* __restrict arrivals, const double* __restrict sums, double* __restrict now,
                               std::size_t ranks) {
  for (std::size_t r = 0; r < ranks; ++r) {
    const double arrived = rounded_up(arrivals[r]);
    now[r] = (now[r] > arrived ? now[r] : arrived) + sums[r];
  }
}

}  // namespace

RingTimes::RingTimes(int ranks, std::size_t length, std::size_t segment, const RingCosts& costs)
    : ranks_(ranks), latency_(costs.ticks_of_latency) {
  const auto count = static_cast<std::size_t>(ranks);
  const std::vector<Range> chunks = cut({0, length}, count);
  segments_ = segments_in(chunks.front().size(), segment);
  const std::vector<std::vector<Range>> parts = cut_each(chunks, segments_);
  for (const Range& chunk : chunks) chunk_bytes_.push_back(static_cast<std::int64_t>(chunk.size() * sizeof(float)));
  bytes_ = static_cast<std::int64_t>(length * sizeof(float));
  on_link_.assign(segments_, std::vector<double>(2 * count));
  sums_ = on_link_;
  for (std::size_t j = 0; j < segments_; ++j) {
    for (std::size_t place = 0; place < 2 * count; ++place) {
      const std::size_t bytes = parts[place % count][j].size() * sizeof(float);
      if (bytes == 0) continue;
      on_link_[j][place] = static_cast<double>(costs.ticks_on_link(bytes));
      sums_[j][place] = static_cast<double>(costs.sum(bytes).count()) * kTicksPerNanosecond;
    }
  }
}

std::vector<TimePoint> RingTimes::leave(std::span<const TimePoint> entered) const {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const TimePoint first = std::ranges::min(entered);
  std::vector<double> now, busy(ranks);
  for (const TimePoint time : entered) now.push_back(static_cast<double>((time - first).count()) * kTicksPerNanosecond);
  const std::size_t steps = 2 * (ranks - 1), slots = steps * segments_, lag = std::min(segments_, kWindow) - 1;
  std::vector<std::vector<double>> arrivals(lag + 1, std::vector<double>(ranks + 1));  // of the slots under way
  // The chunk that rank 0 sends in a step; rank r sends the r-th behind it.
  const auto chunk = [&](std::size_t step) {
    return step < ranks - 1 ? (ranks - step) % ranks : (2 * ranks - step) % ranks;
  };
  for (std::size_t slot = 0; slot < slots + lag; ++slot) {
    if (slot < slots) {
      std::vector<double>& arrive = arrivals[slot % (lag + 1)];
      send_each(now.data(), on_link_[slot % segments_].data() + chunk(slot / segments_), static_cast<double>(latency_),
                busy.data(), arrive.data(), ranks);
      arrive[0] = arrive[ranks];
    }
    if (slot < lag) continue;
    const std::size_t received = slot - lag, step = received / segments_;
    const double* const arrive = arrivals[received % (lag + 1)].data();
    if (step < ranks - 1) {  // rank r receives what the rank before it has sent
      const double* const sums = sums_[received % segments_].data() + (chunk(step) + ranks - 1) % ranks;
      add_each(arrive, sums, now.data(), ranks);
    } else {
      copy_each(arrive, now.data(), ranks);
    }
  }
  copy_each(busy.data(), now.data(), ranks);
  std::vector<TimePoint> leave;
  for (const double ticks : now) {
    leave.push_back(first + Duration(static_cast<std::int64_t>(ticks / kTicksPerNanosecond)));
  }
  return leave;
}

std::int64_t RingTimes::bytes_sent(int rank) const {
  const auto ranks = static_cast<std::size_t>(ranks_), own = static_cast<std::size_t>(rank);
  // In the reduce-scatter all but the chunk behind its own, which it has in the end; then all but the one behind that.
  return 2 * bytes_ - chunk_bytes_[(own + 1) % ranks] - chunk_bytes_[(own + 2) % ranks];
}

}  // namespace syncopate::allreduce
