#include <algorithm>
#include <bit>
#include <functional>

#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {
namespace {

using Then = ReceivePart::Then;

// One round with one partner, segment by segment; either range may be empty.
void append_exchange(Schedule& schedule, int peer, SendPart out, ReceivePart in, std::size_t segment) {
  out.peer = in.peer = peer;
  const std::size_t count = segments_in(std::max(out.range.size(), in.range.size()), segment);
  const std::vector<Range> outgoing = cut(out.range, count), incoming = cut(in.range, count);
  Timetable parts(std::min(count, kWindow) - 1);
  for (std::size_t j = 0; j < count; ++j) {
    out.range = outgoing[j];
    in.range = incoming[j];
    parts.send(j, out);
    parts.receive(j, in);
  }
  parts.append_to(schedule);
}

// `among` appends what a rank does among `power` ranks, the largest power of two; the others give a rank of these all
// they have, and get the sum.
Schedule folded(int rank, int size, std::size_t length, std::size_t segment,
                const std::function<void(Schedule&, int power)>& among) {
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const Range all{0, length}, none{0, 0};
  Schedule schedule;
  if (rank >= power) {
    append_exchange(schedule, rank - power, {.range = all}, {.range = none}, segment);
    append_exchange(schedule, rank - power, {.range = none}, {.range = all, .then = Then::kCopy}, segment);
    return schedule;
  }
  const bool stands_for_another = rank + power < size;
  if (stands_for_another) {
    append_exchange(schedule, rank + power, {.range = none}, {.range = all, .then = Then::kReduce}, segment);
  }
  among(schedule, power);
  if (stands_for_another) append_exchange(schedule, rank + power, {.range = all}, {.range = none}, segment);
  return schedule;
}

// The chunks that the rank at `place` is left with after the halving of `distance`: of each two halves, the upper one
// where the place has the bit of that round's distance.
std::size_t first_chunk_of(int place, int distance, int power) {
  int first = 0;
  for (int bit = 1, chunks = power / 2; bit <= distance; bit *= 2, chunks /= 2) {
    if ((place & bit) != 0) first += chunks;
  }
  return static_cast<std::size_t>(first);
}

// The ranks of `power` (of two) at their places; rank_at tells the rank at a place.
void append_halving_doubling(Schedule& schedule, int place, int power, std::size_t length, std::size_t segment,
                             const std::function<int(int)>& rank_at) {
  const std::vector<Range> chunks = cut({0, length}, static_cast<std::size_t>(power));
  const auto kept_by = [&](int who, int distance) {
    const std::size_t first = first_chunk_of(who, distance, power);
    const std::size_t last = first + static_cast<std::size_t>(power / (2 * distance)) - 1;
    return Range{chunks[first].begin, chunks[last].end};
  };
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = place ^ distance;
    append_exchange(schedule, rank_at(partner), {.range = kept_by(partner, distance)},
                    {.range = kept_by(place, distance), .then = Then::kReduce}, segment);
  }
  for (int distance = power / 2; distance >= 1; distance /= 2) {
    const int partner = place ^ distance;
    append_exchange(schedule, rank_at(partner), {.range = kept_by(place, distance)},
                    {.range = kept_by(partner, distance), .then = Then::kCopy}, segment);
  }
}

}  // namespace

Schedule halving_doubling_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  return folded(rank, size, length, segment, [&](Schedule& schedule, int power) {
    append_halving_doubling(schedule, rank, power, length, segment, [](int place) { return place; });
  });
}

Schedule doubling_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  return folded(rank, size, length, segment, [&](Schedule& schedule, int power) {
    for (int distance = 1; distance < power; distance *= 2) {
      append_exchange(schedule, rank ^ distance, {.range = {0, length}, .copied = true},
                      {.range = {0, length}, .then = Then::kReduce}, segment);
    }
  });
}

Schedule pair_schedule(int rank, int partner, std::size_t length, std::size_t segment) {
  Schedule schedule;
  const int lower = std::min(rank, partner), higher = std::max(rank, partner);
  append_halving_doubling(schedule, rank == lower ? 0 : 1, 2, length, segment,
                          [&](int place) { return place == 0 ? lower : higher; });
  return schedule;
}

}  // namespace syncopate::allreduce
