// What the members of a group agree on before they train: the step that training goes on with, who has the state that
// belongs to it, and who must receive it. Pure, except share_statuses: computed from the status that each member
// reports.
//
// A member finishes a step when it holds the sum of all gradients of all members, and has made its update. So one
// member that has finished step s proves that every member's gradients of s are summed, each once, and its state is the
// one after s. Nobody can have finished s + 1 before all have begun it. Members of one membership epoch are therefore
// at most one step apart, and a member that is behind takes the state of one that is not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective.h"

namespace syncopate::allreduce {

struct MemberStatus {
  int worker = 0;             // its rank in the job
  bool has_state = false;     // false if it, or the job, is new
  std::int64_t steps = 0;     // the number of steps in its state
  std::uint64_t content = 0;  // hash of the part of the state that replicas have in common
  // By search: what its searches in the first steps of a job have found; 0 for nothing yet.
  std::vector<std::uint64_t> found = {};
};

struct StatePlan {
  std::int64_t first_step = 0;
  int giver = -1;                    // a rank; -1: nobody has a state, and a job begins
  std::vector<bool> takes;           // by rank: whether it is given the state
  std::vector<std::uint64_t> found;  // by search: what any of the furthest members has found

  bool anybody_takes() const { return std::ranges::count(takes, true) > 0; }
};

// Returns the plan, the same on all ranks, from the status of all members, by rank, with equally many searches each.
// Fails with invalid argument, naming a member, if states cannot be of one job: more than a step apart, of the same
// step with other contents, or of a negative number of steps; or if ranks are not in the order of workers.
Result<StatePlan> plan_state(std::span<const MemberStatus> members);

// Describes the plan for people: "step 120, given by worker 0 to workers 2, 3".
std::string describe(const StatePlan& plan, std::span<const MemberStatus> members);

// Returns the status of all members, by rank: an operation of all ranks.
Result<std::vector<MemberStatus>> share_statuses(Collective& collective, const MemberStatus& own, TimePoint deadline);

}  // namespace syncopate::allreduce
