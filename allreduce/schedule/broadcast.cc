#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

Schedule broadcast_schedule(int rank, int size, std::size_t length, int root, std::size_t) {
  Schedule schedule;
  const Range all{0, length};
  const int place = (rank - root + size) % size;  // 0 is the root
  const auto rank_at = [&](int other) { return (other + root) % size; };
  // In the round of `distance`, places below it send to the place that far above them.
  for (int distance = 1; distance < size; distance *= 2) {
    if (place < distance && place + distance < size) {
      schedule.push_back({SendPart{rank_at(place + distance), all}, std::nullopt});
    } else if (place >= distance && place < 2 * distance) {
      schedule.push_back({std::nullopt, ReceivePart{rank_at(place - distance), all, ReceivePart::Then::kCopy}});
    }
  }
  return schedule;
}

Schedule barrier_schedule(int rank, int size) {
  Schedule schedule;
  const Range nothing{0, 0};
  for (int distance = 1; distance < size; distance *= 2) {
    schedule.push_back({SendPart{(rank + distance) % size, nothing},
                        ReceivePart{(rank + size - distance % size) % size, nothing, ReceivePart::Then::kCopy}});
  }
  return schedule;
}

}  // namespace syncopate::allreduce
