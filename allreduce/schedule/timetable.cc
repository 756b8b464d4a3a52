#include "allreduce/schedule/timetable.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace syncopate::allreduce {

void Timetable::send(std::size_t slot, const SendPart& part) {
  if (part.range.size() > 0) entries_.push_back({slot, {part, std::nullopt}});
}

void Timetable::receive(std::size_t slot, const ReceivePart& part) {
  if (part.range.size() > 0) entries_.push_back({slot + lag_, {std::nullopt, part}});
}

void Timetable::append_to(Schedule& schedule) const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::tuple(a->time, a->part.receive.has_value()) < std::tuple(b->time, b->part.receive.has_value());
  });
  const std::size_t first = schedule.size();
  for (const Entry* entry : order) {
    if (entry->part.receive && schedule.size() > first && !schedule.back().receive) {
      schedule.back().receive = entry->part.receive;
    } else {
      schedule.push_back(entry->part);
    }
  }
}

Schedule Timetable::schedule() const {
  Schedule schedule;
  append_to(schedule);
  return schedule;
}

std::vector<int> every_rank(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::size_t segments_in(std::size_t elements, std::size_t segment) {
  if (segment == 0) return 1;
  const std::size_t aligned = (segment + kAlignment - 1) / kAlignment * kAlignment;
  return std::max<std::size_t>(1, (elements + aligned - 1) / aligned);
}

std::vector<Range> cut(Range range, std::size_t count) {
  std::vector<Range> parts = balanced_ranges(range.size(), count);
  for (Range& part : parts) part = {range.begin + part.begin, range.begin + part.end};
  return parts;
}

std::vector<std::vector<Range>> cut_each(const std::vector<Range>& ranges, std::size_t count) {
  std::vector<std::vector<Range>> parts;
  for (const Range& range : ranges) parts.push_back(cut(range, count));
  return parts;
}

}  // namespace syncopate::allreduce
