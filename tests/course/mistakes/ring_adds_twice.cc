// Adds whole sums where it should put them in place: fails AnyNumberOfRanksEndsWithTheSum
#include "docs/course/exercises/ring/ring.h"

namespace syncopate::course {

allreduce::Schedule ring_schedule(int rank, int size, std::size_t length) {
  using allreduce::ReceivePart;
  const auto chunk = [&](int number) -> Range {
    const auto index = static_cast<std::size_t>((number % size + size) % size);
    const auto count = static_cast<std::size_t>(size);
    return {length * index / count, length * (index + 1) / count};
  };
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  allreduce::Schedule schedule;
  for (int step = 0; step < 2 * (size - 1); ++step) {
    schedule.push_back({.send = allreduce::SendPart{.peer = right, .range = chunk(rank - step)},
                        .receive = ReceivePart{left, chunk(rank - step - 1), ReceivePart::Then::kReduce}});
  }
  return schedule;
}

}  // namespace syncopate::course
