#include "experiments/cluster/coordinator/run_checkpoints.h"

#include <utility>

#include "experiments/checkpoint/run_facts.h"

namespace syncopate::experiments {

Status RunCheckpoints::open(const std::optional<CheckpointKeeperOptions>& options,
                            CheckpointKeeper::Callbacks callbacks, Threads& threads) {
  if (!options) return {};
  SYNCOPATE_ASSIGN_OR_RETURN(keeper_, CheckpointKeeper::create(*options, std::move(callbacks), threads));
  return {};
}

void RunCheckpoints::begin(const MembershipEpoch& membership, TimePoint now) {
  if (!keeper_) return;
  keeper_->policy().on_membership(membership.number, checkpoint_writers(config_, has_local_state_, membership.workers),
                                  now);
}

void RunCheckpoints::on_steps(int worker, std::int64_t steps_done, TimePoint now) {
  if (keeper_) keeper_->policy().on_steps(worker_writer(worker), steps_done, now);
}

void RunCheckpoints::on_job_steps(std::int64_t steps_done, TimePoint now) {
  if (keeper_ && steps_done > 0) keeper_->policy().on_steps("job", steps_done, now);
}

void RunCheckpoints::on_report(const std::string& writer, const CheckpointReport& report) {
  if (keeper_) keeper_->policy().on_report(writer, report);
}

void RunCheckpoints::on_worker_lost(int worker) {
  if (keeper_) keeper_->policy().on_lost(worker_writer(worker));
}

bool RunCheckpoints::take_last(TimePoint now) {
  if (!keeper_ || !keeper_->policy().has_begun()) return false;
  keeper_->policy().on_last_wanted(now);
  return true;
}

std::optional<std::int64_t> RunCheckpoints::last_taken() const {
  return keeper_ ? keeper_->policy().last_wanted() : std::nullopt;
}

void RunCheckpoints::act(TimePoint now) {
  if (keeper_) keeper_->act(now);
}

std::optional<CheckpointFigures> RunCheckpoints::finish(TimePoint now) {
  return keeper_ ? std::optional(keeper_->finish(now)) : std::nullopt;
}

}  // namespace syncopate::experiments
