#include "allreduce/schedule/schedule.h"

#include <fmt/format.h>

#include "allreduce/schedule/algorithms.h"

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

}  // namespace syncopate::allreduce
