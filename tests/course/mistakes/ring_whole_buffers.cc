// Sends whole buffers round, as long as it takes for all to have come by: fails EachRankSendsTheLeastThatIsPossible
#include "docs/course/exercises/ring/ring.h"

namespace syncopate::course {

allreduce::Schedule ring_schedule(int rank, int size, std::size_t length) {
  using allreduce::ReceivePart;
  const Range all{0, length};
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  allreduce::Schedule schedule;
  if (size == 1) return schedule;
  // A running sum goes from rank 0 to the last one, and then round as a whole.
  if (rank > 0) schedule.push_back({.send = {}, .receive = ReceivePart{left, all, ReceivePart::Then::kReduce}});
  schedule.push_back({.send = allreduce::SendPart{.peer = right, .range = all}, .receive = {}});
  if (rank < size - 1) schedule.push_back({.send = {}, .receive = ReceivePart{left, all, ReceivePart::Then::kCopy}});
  if (rank < size - 2) schedule.push_back({.send = allreduce::SendPart{.peer = right, .range = all}, .receive = {}});
  return schedule;
}

}  // namespace syncopate::course
