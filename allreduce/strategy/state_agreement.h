// What the members of a group agree on before they train: the step that training goes on with, who has the state that
// belongs to it, and who has to be given it. Pure, but for share_standings: from what each member says.
//
// A step is finished by a member when it holds the sum of all gradients of all members, and has made its update. So one
// member that has finished step s proves that every member's gradients of s are summed, each once, and its state is the
// one after s; nobody can have finished s + 1 before all have begun it. Members of one generation are therefore at most
// one step apart, and who is behind takes the state of one that is not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective.h"

namespace syncopate::allreduce {

struct Standing {
  int worker = 0;             // its rank in the job
  bool has_state = false;     // else it is new, or the job is
  std::int64_t steps = 0;     // that are in its state
  std::uint64_t content = 0;  // hash of the state: of what replicas hold alike
  // What its searches in the first steps of a job have found, by search; 0: nothing yet.
  std::vector<std::uint64_t> found = {};
};

struct StatePlan {
  std::int64_t first_step = 0;
  int giver = -1;                    // a rank; -1: nobody has anything, and a job begins
  std::vector<bool> takes;           // by rank: who is given the state
  std::vector<std::uint64_t> found;  // by search: what any of those that are furthest has found

  bool anybody_takes() const { return std::ranges::count(takes, true) > 0; }
};

// The same on all ranks, from what all have said, by rank, with as many searches each. Invalid argument, naming who,
// where states cannot be those of one job: more than a step apart, of the same step with other contents, of less than
// no step; or where ranks are not in the order of workers.
Result<StatePlan> plan_state(std::span<const Standing> members);

// "step 120, given by worker 0 to workers 2, 3", for people.
std::string describe(const StatePlan& plan, std::span<const Standing> members);

// What all members say, by rank: an operation of all ranks.
Result<std::vector<Standing>> share_standings(Collective& collective, const Standing& own, TimePoint deadline);

}  // namespace syncopate::allreduce
