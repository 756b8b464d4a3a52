#include <algorithm>
#include <numeric>

#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

Schedule direct_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  const std::vector<Range> chunks = cut({0, length}, static_cast<std::size_t>(size));
  const std::size_t count = segments_in(chunks.front().size(), segment);
  const std::size_t lag = count > 1 ? 1 : 0;
  const std::vector<std::vector<Range>> segments = cut_each(chunks, count);
  const auto part = [&](int of, std::size_t j) { return segments[static_cast<std::size_t>(of)][j]; };
  // Each rank begins with another, so that not all send to the same.
  const auto other = [&](int k) { return (rank + k) % size; };
  // The sum begins with rank 0's contribution and not with what this rank's buffer holds: the third rank and those
  // behind it keep theirs aside until it is its turn.
  const bool kept_aside = rank >= 2;

  Timetable parts(lag);
  for (std::size_t j = 0; j < count; ++j) {
    const Range own = part(rank, j);
    for (int k = 1; k < size; ++k) parts.send(j, {other(k), part(other(k), j)});
    if (kept_aside) parts.send(j, {rank, own, true});
    for (int from = 0; from < size; ++from) {
      if (from == rank && !kept_aside) continue;
      parts.receive(j, {from, own, from == 0 && kept_aside ? ReceivePart::Then::kCopy : ReceivePart::Then::kReduce});
    }
    const std::size_t summed = j + lag + 1;
    for (int k = 1; k < size; ++k) parts.send(summed, {other(k), own});
    for (int k = 1; k < size; ++k) {
      const int from = other(size - k);
      parts.receive(summed, {from, part(from, j), ReceivePart::Then::kCopy});
    }
  }
  Schedule schedule;
  parts.append_to(schedule);
  return schedule;
}

}  // namespace syncopate::allreduce
