#include "allreduce/schedule.h"

namespace syncopate::allreduce {

Schedule ring_all_reduce(int rank, int size, std::size_t length) {
  Schedule schedule;
  const std::vector<Range> chunks = balanced_ranges(length, static_cast<std::size_t>(size));
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  const auto chunk = [&](int number) { return chunks[static_cast<std::size_t>((number % size + size) % size)]; };
  // After step s of the first phase, rank r holds the sum of s+2 ranks in chunk r-s-1.
  for (int s = 0; s + 1 < size; ++s) {
    schedule.push_back(
        {SendPart{right, chunk(rank - s)}, ReceivePart{left, chunk(rank - s - 1), ReceivePart::Then::kReduce}});
  }
  // Rank r now holds the whole sum of chunk r+1, and hands whole sums on.
  for (int s = 0; s + 1 < size; ++s) {
    schedule.push_back(
        {SendPart{right, chunk(rank + 1 - s)}, ReceivePart{left, chunk(rank - s), ReceivePart::Then::kCopy}});
  }
  return schedule;
}

Schedule binomial_broadcast(int rank, int size, std::size_t length, int root) {
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

Schedule dissemination_barrier(int rank, int size) {
  Schedule schedule;
  const Range nothing{0, 0};
  for (int distance = 1; distance < size; distance *= 2) {
    schedule.push_back({SendPart{(rank + distance) % size, nothing},
                        ReceivePart{(rank + size - distance % size) % size, nothing, ReceivePart::Then::kCopy}});
  }
  return schedule;
}

}  // namespace syncopate::allreduce
