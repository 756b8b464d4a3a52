#include <algorithm>
#include <numeric>

#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

void append_ring(Schedule& schedule, std::span<const int> members, int place, Range range, std::size_t segment) {
  const auto size = static_cast<int>(members.size());
  const int right = members[static_cast<std::size_t>((place + 1) % size)];
  const int left = members[static_cast<std::size_t>((place + size - 1) % size)];
  const std::vector<Range> chunks = cut(range, members.size());
  // Each segment of the chunks goes round for itself; in each step all of them, one after the other.
  const std::size_t count = segments_in(chunks.front().size(), segment);
  const std::vector<std::vector<Range>> segments = cut_each(chunks, count);
  const auto part = [&](int chunk, std::size_t number) {
    return segments[static_cast<std::size_t>((chunk % size + size) % size)][number];
  };
  Timetable parts(std::min(count, kWindow) - 1);
  for (int s = 0; s + 1 < size; ++s) {
    for (std::size_t j = 0; j < count; ++j) {
      // After step s of the reduce-scatter, the rank at place r holds the sum of s+2 ranks in chunk r-s-1.
      const std::size_t slot = static_cast<std::size_t>(s) * count + j;
      parts.send(slot, {right, part(place - s, j)});
      parts.receive(slot, {left, part(place - s - 1, j), ReceivePart::Then::kReduce});
      // In the end the whole sum of chunk r+1, and hands whole sums on.
      const std::size_t behind = static_cast<std::size_t>(s + size - 1) * count + j;
      parts.send(behind, {right, part(place + 1 - s, j)});
      parts.receive(behind, {left, part(place - s, j), ReceivePart::Then::kCopy});
    }
  }
  parts.append_to(schedule);
}

Schedule ring_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  std::vector<int> everybody(static_cast<std::size_t>(size));
  std::iota(everybody.begin(), everybody.end(), 0);
  Schedule schedule;
  append_ring(schedule, everybody, rank, {0, length}, segment);
  return schedule;
}

}  // namespace syncopate::allreduce
