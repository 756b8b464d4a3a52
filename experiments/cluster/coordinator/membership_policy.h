// MembershipPolicy: the membership policy: who takes part in a run when processes are lost, or join (again). Pure: it
// receives events, and returns what they mean and what the next membership epoch is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/config/rules/survival_rules.h"

namespace syncopate::experiments {

class MembershipPolicy {
 public:
  // The first membership epoch has all workers, servers and standbys of the plan, which outlives this. Until something
  // has been trained all start from the checkpoint `resume`; empty: from the initial weights.
  MembershipPolicy(const JobPlan& plan, const Recovery& recovery, std::string resume = {});

  const MembershipEpoch& current() const { return current_; }
  bool is_member(std::size_t process) const;

  // The effect of the loss of a process.
  enum class Loss {
    kEndsRun,
    kOthersGoOn,  // unchanged
    kRegroup,     // in a new membership epoch, without it
    kGoBack,      // to the last checkpoint, in a new membership epoch, once all shards have a replica again
  };
  struct Circumstances {
    bool begins = false;       // nothing has been trained yet
    bool can_go_back = false;  // there is a checkpoint
    // of a server's or a standby's shards: the other replica has just joined and may hold nothing
    bool other_replica_is_empty = false;
  };
  Loss on_lost(std::size_t process, const Circumstances& circumstances);

  // A lost process is ready to take part again, in the next membership epoch.
  void on_ready(std::size_t process);

  // Returns whether every shard has a server or a standby that is ready.
  bool has_all_replicas() const;
  bool has_replica(std::size_t process) const;  // the same for the shards of that server or standby
  // Returns whether all are going back to a checkpoint: from the loss that caused it until all have trained on from
  // there. Each membership epoch in between restores the checkpoint, since any member may have missed the last one.
  bool goes_back() const { return goes_back_; }
  // All members have trained in this membership epoch.
  void on_all_train() { goes_back_ = goes_back_ && current_.number < goes_back_in_; }

  // Starts and returns the next membership epoch, with the processes that are there now. If they go back, it is to
  // `checkpoint`. Requires that every shard has a replica.
  const MembershipEpoch& proclaim(bool begins, const std::string& checkpoint = {});

 private:
  const ProcessSpec& spec(std::size_t process) const { return plan_.processes[process]; }
  Loss on_server_lost(ServerRanks& ranks, Role role, const Circumstances& circumstances);

  const JobPlan& plan_;
  const Recovery recovery_;
  const std::string resume_;
  MembershipEpoch current_;
  MembershipEpoch next_;  // the next one, if it began now
  bool goes_back_ = false;
  std::int64_t goes_back_in_ = 0;  // the first membership epoch that goes back for the last loss that required it
};

}  // namespace syncopate::experiments
