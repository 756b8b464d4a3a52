#include "experiments/config/rules/survival_rules.h"

#include <fmt/format.h>

#include <string>

namespace syncopate::experiments {

Recovery recovery_of(const ResolvedRun& config) {
  Recovery recovery;
  if (config.launcher == LauncherKind::kMpirun) return recovery;  // mpirun ends all its processes when one of them dies
  recovery.regroups_without_worker = may_be_elastic(config) && config.elastic;
  const bool has_separate_servers =  // others go with the first worker that is lost
      has_servers_alone(config) && !is_colocated(config);
  const bool go_alone = !aggregates_on_hosts(config) && !is_pipelined(config);
  recovery.survives_workers = (has_separate_servers && go_alone) || recovery.regroups_without_worker;
  recovery.has_standbys = may_have_replicas(config) && config.replicas > 0;
  recovery.goes_back = has_separate_servers && config.checkpoint_every.has_value();
  if (may_respawn(config) && config.respawn_seconds) recovery.respawn_after = from_seconds(*config.respawn_seconds);
  return recovery;
}

bool may_be_elastic(const ResolvedRun& config) {
  if (runs_command(config)) return is_distributed(config);
  return sums_gradients(config) && has_own_collective(config);
}

bool may_have_replicas(const ResolvedRun& config) {
  return has_servers_alone(config) && !is_colocated(config) && config.launcher != LauncherKind::kMpirun;
}

bool may_respawn(const ResolvedRun& config) {
  return may_have_replicas(config) || (may_be_elastic(config) && config.elastic);
}

Status validate_survival(const ResolvedRun& config) {
  if (sums_among_workers(config) && config.elastic) {
    if (config.collective == CollectiveKind::kMpi || config.launcher == LauncherKind::kMpirun) {
      return Status::invalid_argument(
          "--elastic: mpirun ends all processes when one of them dies; use a collective of our own, as in "
          "--collective=ring, and --launcher=local");
    }
    if (is_nccl(config.collective)) {
      return Status::invalid_argument("--elastic: NCCL's groups cannot lose a rank and go on; use --collective=ring");
    }
    if (averages_weights(config)) {
      return Status::invalid_argument(
          "--elastic: workers that average their weights (--sync-every, --gossip) have no step that all have "
          "finished; leave it out, or average gradients");
    }
  }
  return {};
}

}  // namespace syncopate::experiments
