#include "allreduce/schedule/schedule.h"

#include <fmt/format.h>

#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

const char* name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kRing:
      return "ring";
    case ScheduleKind::kHalvingDoubling:
      return "halving-doubling";
    case ScheduleKind::kDoubling:
      return "doubling";
    case ScheduleKind::kTree:
      return "tree";
    case ScheduleKind::kBinomialTree:
      return "binomial-tree";
    case ScheduleKind::kDirect:
      return "direct";
    case ScheduleKind::kHierarchical:
      return "hierarchical";
  }
  return "?";
}

Result<ScheduleKind> parse_schedule_kind(std::string_view text) {
  for (const ScheduleKind kind : kAllScheduleKinds) {
    if (text == name_of(kind)) return kind;
  }
  return Status::invalid_argument(
      fmt::format("{}: a schedule is ring, halving-doubling, doubling, tree, binomial-tree, direct or "
                  "hierarchical",
                  text));
}

Schedule all_reduce_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment,
                             const RanksByHost& hosts) {
  switch (kind) {
    case ScheduleKind::kRing:
      return ring_all_reduce(rank, size, length, segment);
    case ScheduleKind::kHalvingDoubling:
      return halving_doubling_all_reduce(rank, size, length, segment);
    case ScheduleKind::kDoubling:
      return doubling_all_reduce(rank, size, length, segment);
    case ScheduleKind::kTree:
      return tree_all_reduce(rank, size, length, segment);
    case ScheduleKind::kBinomialTree:
      return binomial_tree_all_reduce(rank, size, length, segment);
    case ScheduleKind::kDirect:
      return direct_all_reduce(rank, size, length, segment);
    case ScheduleKind::kHierarchical:
      return hosts.empty() ? direct_all_reduce(rank, size, length, segment)
                           : hierarchical_all_reduce(rank, length, segment, hosts);
  }
  return {};
}

Schedule reduce_scatter_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment) {
  return kind == ScheduleKind::kDirect ? direct_reduce_scatter(rank, size, length, segment)
                                       : ring_reduce_scatter(rank, size, length, segment);
}

Schedule all_gather_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment) {
  return kind == ScheduleKind::kDirect ? direct_all_gather(rank, size, length, segment)
                                       : ring_all_gather(rank, size, length, segment);
}

Range own_part(ScheduleKind kind, int rank, int size, std::size_t length) {
  const int chunk = kind == ScheduleKind::kDirect ? rank : (rank + 1) % size;
  return cut({0, length}, static_cast<std::size_t>(size))[static_cast<std::size_t>(chunk)];
}

}  // namespace syncopate::allreduce
