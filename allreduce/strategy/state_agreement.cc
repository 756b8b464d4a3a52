#include "allreduce/strategy/state_agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allreduce/collective/shared_words.h"

namespace syncopate::allreduce {
namespace {

Status check_workers(std::span<const MemberStatus> members) {
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i].worker > members[i - 1].worker) continue;
    return Status::invalid_argument(
        fmt::format("rank {} is worker {}, rank {} is worker {}: ranks must be in the order of workers", i - 1,
                    members[i - 1].worker, i, members[i].worker));
  }
  return {};
}

Status check_against(const MemberStatus& furthest, const MemberStatus& member) {
  if (member.steps < 0) {
    return Status::invalid_argument(
        fmt::format("worker {} has finished {} steps: must be 0 or more", member.worker, member.steps));
  }
  if (furthest.steps - member.steps > 1) {
    return Status::invalid_argument(
        fmt::format("worker {} has finished {} steps, worker {} only {}: members of one membership are at most one "
                    "apart, and who was away brings no state",
                    furthest.worker, furthest.steps, member.worker, member.steps));
  }
  if (furthest.steps == member.steps && furthest.content != member.content) {
    return Status::invalid_argument(
        fmt::format("workers {} and {} have both finished {} steps, but hold different weights: {:016x} and "
                    "{:016x}",
                    furthest.worker, member.worker, member.steps, furthest.content, member.content));
  }
  return {};
}

int furthest_of(std::span<const MemberStatus> members) {
  int furthest = -1;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (!members[rank].has_state) continue;
    if (furthest >= 0 && members[rank].steps <= members[static_cast<std::size_t>(furthest)].steps) continue;
    furthest = static_cast<int>(rank);
  }
  return furthest;
}

// Each search ends in an agreement of all, of which some may not have heard.
void add_found(std::span<const std::uint64_t> found, std::vector<std::uint64_t>& known) {
  for (std::size_t search = 0; search < known.size(); ++search) {
    if (known[search] == 0) known[search] = found[search];
  }
}

}  // namespace

Result<StatePlan> plan_state(std::span<const MemberStatus> members) {
  SYNCOPATE_RETURN_IF_ERROR(check_workers(members));
  StatePlan plan{.giver = furthest_of(members), .takes = std::vector<bool>(members.size())};
  plan.found.resize(members.front().found.size());
  if (plan.giver < 0) return plan;
  const MemberStatus& furthest = members[static_cast<std::size_t>(plan.giver)];
  plan.first_step = furthest.steps;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const MemberStatus& member = members[rank];
    plan.takes[rank] = !member.has_state || member.steps < furthest.steps;
    if (!member.has_state) continue;
    SYNCOPATE_RETURN_IF_ERROR(check_against(furthest, member));
    add_found(member.found, plan.found);
  }
  return plan;
}

std::string describe(const StatePlan& plan, std::span<const MemberStatus> members) {
  if (plan.giver < 0) return "a new job";
  std::string text = fmt::format("step {}", plan.first_step);
  if (!plan.anybody_takes()) return text + ", which all have";
  std::vector<int> takers;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (plan.takes[rank]) takers.push_back(members[rank].worker);
  }
  return text + fmt::format(", given by worker {} to {} {}", members[static_cast<std::size_t>(plan.giver)].worker,
                            takers.size() == 1 ? "worker" : "workers", fmt::join(takers, ", "));
}

Result<std::vector<MemberStatus>> share_statuses(Collective& collective, const MemberStatus& own, TimePoint deadline) {
  std::vector<std::uint64_t> words{static_cast<std::uint64_t>(own.worker), own.has_state ? 1u : 0u,
                                   static_cast<std::uint64_t>(own.steps), own.content};
  words.insert(words.end(), own.found.begin(), own.found.end());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::vector<std::uint64_t>> all,
                             share_words(collective, words, deadline));
  std::vector<MemberStatus> members;
  for (const std::vector<std::uint64_t>& said : all) {
    members.push_back({.worker = static_cast<int>(said[0]),
                       .has_state = said[1] != 0,
                       .steps = static_cast<std::int64_t>(said[2]),
                       .content = said[3],
                       .found = {said.begin() + 4, said.end()}});
  }
  return members;
}

}  // namespace syncopate::allreduce
