#include "ps/client/step_traffic.h"

#include <algorithm>
#include <utility>

namespace syncopate::ps {

void StepTraffic::expect(std::size_t messages) {
  if (due_ == 0) due_since_ = clock_.now();
  due_ += messages;
}

void StepTraffic::expect_only(std::size_t messages) {
  due_ = messages;
  due_since_ = clock_.now();
}

void StepTraffic::come() {
  if (--due_ == 0) communication_ += clock_.now() - due_since_;
}

void StepTraffic::begin() {
  communication_ = {};
  figures_ = {};
}

void StepTraffic::answered(std::int64_t staleness, bool late) {
  ++figures_.answers;
  figures_.late += late ? 1 : 0;
  figures_.staleness_sum += staleness;
  figures_.staleness_max = std::max(figures_.staleness_max, staleness);
}

void StepTraffic::begin_wait() {
  figures_.last_shard = -1;
  figures_.last_heard = figures_.others_heard = clock_.now();
}

void StepTraffic::heard(int shard) {
  if (shard != figures_.last_shard) figures_.others_heard = figures_.last_heard;
  figures_.last_shard = shard;
  figures_.last_heard = clock_.now();
}

SyncStats StepTraffic::take() {
  if (due_ > 0) {
    const TimePoint now = clock_.now();
    communication_ += now - std::exchange(due_since_, now);
  }
  const Figures figures = std::exchange(figures_, {});
  SyncStats stats;
  stats.communication = std::exchange(communication_, Duration::zero());
  stats.bytes_out = figures.bytes_out;
  stats.bytes_in = figures.bytes_in;
  stats.staleness_max = figures.staleness_max;
  stats.last_shard = figures.last_shard;
  stats.last_shard_alone = figures.last_heard - figures.others_heard;
  if (figures.answers == 0) return stats;
  stats.staleness_mean = static_cast<double>(figures.staleness_sum) / static_cast<double>(figures.answers);
  stats.dropped = static_cast<double>(figures.late) / static_cast<double>(figures.answers);
  return stats;
}

}  // namespace syncopate::ps
