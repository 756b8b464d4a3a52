#include "docs/course/exercises/ring/ring.h"

namespace syncopate::course {

using allreduce::ReceivePart;
using allreduce::Schedule;
using allreduce::ScheduleStep;

// Where chunk number `chunk` of `size` lies in a buffer of `length` elements. Chunks may differ by one element.
[[maybe_unused]] static Range chunk_of(int chunk, int size, std::size_t length) {
  const auto number = static_cast<std::size_t>(chunk), count = static_cast<std::size_t>(size);
  return {length * number / count, length * (number + 1) / count};
}

Schedule ring_schedule(int rank, int size, std::size_t length) {
  Schedule schedule;
  // 1. Reduce-scatter: in size - 1 steps, each rank comes to hold the whole sum of one chunk.
  // 2. Allgather: in size - 1 steps more, the whole sums go round.
  //
  // One step looks like this, which sends the first chunk to the right and adds what comes from the left:
  //   schedule.push_back(ScheduleStep{
  //       .send = allreduce::SendPart{.peer = (rank + 1) % size, .range = chunk_of(0, size, length)},
  //       .receive = ReceivePart{.peer = (rank + size - 1) % size, .range = chunk_of(0, size, length),
  //                              .then = ReceivePart::Then::kReduce}});
  (void)rank;
  (void)size;
  (void)length;
  return schedule;
}

}  // namespace syncopate::course
