#include "allreduce/schedule/timetable.h"
#include "allreduce/schedule/tree.h"

namespace syncopate::allreduce {

Schedule broadcast_schedule(int rank, int size, std::size_t length, int root, std::size_t segment) {
  const std::size_t count = segments_in(length, segment);
  // In a chain, each rank sends the buffer once; but the last one gets the first segment after all others have.
  const bool is_long = count > static_cast<std::size_t>(size);
  const Tree tree = is_long ? chain(size) : binomial_tree(size);
  const std::vector<Range> segments = cut({0, length}, count);
  const std::function<int(int)> rank_at = [&](int place) { return (place + root) % size; };
  Timetable parts(TreeTraffic::lag(segments));
  TreeTraffic(tree, (rank - root + size) % size, rank_at, segments).down(parts, 0);
  Schedule schedule;
  parts.append_to(schedule);
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
