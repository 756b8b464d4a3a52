#include "experiments/cluster/coordinator/membership_policy.h"

#include <algorithm>
#include <utility>

namespace syncopate::experiments {

MembershipPolicy::MembershipPolicy(const JobPlan& plan, const Recovery& recovery, std::string resume)
    : plan_(plan), recovery_(recovery), resume_(std::move(resume)) {
  next_.restore = resume_;
  next_.servers.resize(static_cast<std::size_t>(count_of(plan, Role::kServer)));
  for (const ProcessSpec& process : plan.processes) {
    if (process.role == Role::kWorker) next_.workers.push_back(process.rank);
    if (process.role == Role::kStandby) next_.servers[static_cast<std::size_t>(process.rank)].has_standby = true;
  }
  std::ranges::sort(next_.workers);
  current_ = next_;
}

bool MembershipPolicy::is_member(std::size_t process) const {
  return takes_part(current_, spec(process).role, spec(process).rank);
}

MembershipPolicy::Loss MembershipPolicy::on_lost(std::size_t process, const Circumstances& circumstances) {
  const Role role = spec(process).role;
  const int rank = spec(process).rank;
  switch (role) {
    case Role::kEvaluator:
      return Loss::kOthersGoOn;
    case Role::kServer:
    case Role::kStandby:
      // Before training a standby holds nothing yet.
      if (circumstances.begins) return Loss::kEndsRun;
      return on_server_lost(next_.servers[static_cast<std::size_t>(rank)], role, circumstances);
    case Role::kWorker:
      break;
  }
  std::erase(next_.workers, rank);
  if (!recovery_.survives_workers || next_.workers.empty()) return Loss::kEndsRun;
  return recovery_.regroups_without_worker ? Loss::kRegroup : Loss::kOthersGoOn;
}

MembershipPolicy::Loss MembershipPolicy::on_server_lost(ServerRanks& ranks, Role role,
                                                        const Circumstances& circumstances) {
  const bool was_server = role == Role::kServer;
  // Losing a process that has just joined, before it received any state, loses nothing.
  (was_server ? ranks.has_server : ranks.has_standby) = false;
  const bool has_other = was_server ? ranks.has_standby : ranks.has_server;
  if (has_other) ranks.standby_leads = was_server;
  // A replica that goes back to a checkpoint needs nothing from the lost one.
  if (has_other && (goes_back_ || !circumstances.other_replica_is_empty)) return Loss::kRegroup;
  if (!recovery_.goes_back || !circumstances.can_go_back) return Loss::kEndsRun;
  goes_back_ = true;
  goes_back_in_ = current_.number + 1;
  return Loss::kGoBack;
}

bool MembershipPolicy::has_all_replicas() const {
  return std::ranges::all_of(next_.servers,
                             [](const ServerRanks& ranks) { return ranks.has_server || ranks.has_standby; });
}

bool MembershipPolicy::has_replica(std::size_t process) const {
  const ServerRanks& ranks = next_.servers[static_cast<std::size_t>(spec(process).rank)];
  return ranks.has_server || ranks.has_standby;
}

void MembershipPolicy::on_ready(std::size_t process) {
  const int rank = spec(process).rank;
  switch (spec(process).role) {
    case Role::kWorker:
      if (std::ranges::find(next_.workers, rank) == next_.workers.end()) next_.workers.push_back(rank);
      std::ranges::sort(next_.workers);
      return;
    case Role::kServer:
      next_.servers[static_cast<std::size_t>(rank)].has_server = true;
      return;
    case Role::kStandby:
      next_.servers[static_cast<std::size_t>(rank)].has_standby = true;
      return;
    case Role::kEvaluator:
      return;
  }
}

const MembershipEpoch& MembershipPolicy::proclaim(bool begins, const std::string& checkpoint) {
  for (ServerRanks& ranks : next_.servers) ranks.standby_leads &= ranks.has_standby;
  next_.number = current_.number + 1;
  next_.begins = begins;
  next_.restore = begins ? resume_ : goes_back_ ? checkpoint : "";
  current_ = next_;
  return current_;
}

}  // namespace syncopate::experiments
