#include <algorithm>

#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

namespace {

// What one member of a ring does: parts of chunks go round. Each segment of the chunks goes for itself; in each step
// all of them, one after the other.
class Ring {
 public:
  Ring(std::span<const int> members, int place, Range range, std::size_t segment)
      : size_(static_cast<int>(members.size())),
        place_(place),
        right_(members[static_cast<std::size_t>((place + 1) % size_)]),
        left_(members[static_cast<std::size_t>((place + size_ - 1) % size_)]) {
    const std::vector<Range> chunks = cut(range, members.size());
    count_ = segments_in(chunks.front().size(), segment);
    segments_ = cut_each(chunks, count_);
  }

  std::size_t lag() const { return std::min(count_, kWindow) - 1; }
  int steps() const { return size_ - 1; }

  // After step s the member at place r has the sum of s+2 members in chunk r-s-1; in the end the whole sum of chunk
  // r+1.
  void reduce_scatter(Timetable& parts) const {
    for (int s = 0; s < steps(); ++s) {
      for (std::size_t j = 0; j < count_; ++j) {
        parts.send(slot(s, j), {right_, part(place_ - s, j)});
        parts.receive(slot(s, j), {left_, part(place_ - s - 1, j), ReceivePart::Then::kReduce});
      }
    }
  }
  // From step `first` on: the member at place r begins with chunk r+1, and hands on what it has got.
  void all_gather(int first, Timetable& parts) const {
    for (int s = 0; s < steps(); ++s) {
      for (std::size_t j = 0; j < count_; ++j) {
        parts.send(slot(first + s, j), {right_, part(place_ + 1 - s, j)});
        parts.receive(slot(first + s, j), {left_, part(place_ - s, j), ReceivePart::Then::kCopy});
      }
    }
  }

 private:
  std::size_t slot(int step, std::size_t j) const { return static_cast<std::size_t>(step) * count_ + j; }
  Range part(int chunk, std::size_t number) const {
    return segments_[static_cast<std::size_t>((chunk % size_ + size_) % size_)][number];
  }

  const int size_;
  const int place_;
  const int right_;
  const int left_;
  std::size_t count_ = 0;
  std::vector<std::vector<Range>> segments_;  // by chunk
};

}  // namespace

void append_ring(Schedule& schedule, std::span<const int> members, int place, Range range, std::size_t segment) {
  const Ring ring(members, place, range, segment);
  Timetable parts(ring.lag());
  ring.reduce_scatter(parts);
  ring.all_gather(ring.steps(), parts);
  parts.append_to(schedule);
}

Schedule ring_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  Schedule schedule;
  append_ring(schedule, every_rank(size), rank, {0, length}, segment);
  return schedule;
}

Schedule ring_reduce_scatter(int rank, int size, std::size_t length, std::size_t segment) {
  const std::vector<int> ranks = every_rank(size);
  const Ring ring(ranks, rank, {0, length}, segment);
  Timetable parts(ring.lag());
  ring.reduce_scatter(parts);
  return parts.schedule();
}

Schedule ring_all_gather(int rank, int size, std::size_t length, std::size_t segment) {
  const std::vector<int> ranks = every_rank(size);
  const Ring ring(ranks, rank, {0, length}, segment);
  Timetable parts(ring.lag());
  ring.all_gather(0, parts);
  return parts.schedule();
}

}  // namespace syncopate::allreduce
