#include "experiments/cluster/process/shard_checkpoints.h"

#include <utility>

#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/checkpoint_keeper.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/part_of.h"
#include "experiments/cluster/process/replica_group.h"
#include "ps/tables/row_partition.h"

namespace syncopate::experiments {

Result<std::unique_ptr<ShardCheckpoints>> ShardCheckpoints::create(const RoleContext& context,
                                                                   std::vector<HeldShard> shards) {
  const ResolvedRun& config = context.config;
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of(config));
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout local_layout, local_state_layout_of(config));
  std::unique_ptr<ShardCheckpoints> made(new ShardCheckpoints(context, std::move(shards), layout, local_layout));
  const std::string& folder = context.control.checkpoints();
  if (folder.empty()) return made;
  SYNCOPATE_RETURN_IF_ERROR(check_shared(folder, context.run_id));
  for (const HeldShard& held : made->shards_) {
    const std::string writer = shard_writer(ps_group_of(config, held.stage).number_of_shard(held.shard));
    made->cutters_.push_back(std::make_unique<ShardCutter>(
        ShardCutterOptions{.folder = folder,
                           .writer = writer,
                           .interval = *config.checkpoint_every,
                           .together = moves_together(config),
                           .period = config.consistency.period(),
                           .last_step = context.control.checkpoint_terms().last_step,
                           .patience = from_seconds(config.timeout_seconds / 4),
                           .digests = context.control.checkpoint_terms().digests},
        made->forms_,
        [&control = context.control, writer](const CheckpointReport& report) {
          control.report_checkpoint(writer, report);
        },
        context.host.threads()));
  }
  return made;
}

Result<TrainingState> ShardCheckpoints::read(const std::string& folder, std::size_t place) const {
  const ResolvedRun& config = context_.config;
  SYNCOPATE_ASSIGN_OR_RETURN(
      const Checkpoint checkpoint,
      Checkpoint::open(folder, {.digest = context_.control.checkpoint_terms().digest_of(folder)}));
  const auto shards = static_cast<std::size_t>(ps_group_of(config).shards());
  const auto shard = static_cast<std::size_t>(shards_[place].shard);
  const auto is_mine = [shards, shard](std::size_t table, RowKey key) {
    return ps::shard_of_row(table, key, shards) == shard;
  };
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of_stage(config, shards_[place].stage, layout_));
  TrainingState state;
  SYNCOPATE_RETURN_IF_ERROR(checkpoint.read(
      forms_, {.ranges = ps::shard_map(layout, shards, sharding_of(config)).chunks[shard], .row = is_mine}, state));
  return state;
}

void ShardCheckpoints::begin(std::int64_t membership_epoch, const std::vector<ps::ShardServer*>& servers,
                             const std::vector<std::int64_t>& first_steps) {
  if (cutters_.empty()) return;
  for (std::size_t i = 0; i < cutters_.size(); ++i) {
    cutters_[i]->begin(membership_epoch, first_steps[i],
                       [server = servers[i]](std::int64_t version, TrainingState memory, ShardCutter::StateDone done) {
                         server->save_when(version, std::move(memory), std::move(done));
                       });
  }
  orders_ = context_.control.on_checkpoint_order([this](std::int64_t of, std::int64_t step) {
    for (const std::unique_ptr<ShardCutter>& cutter : cutters_) cutter->on_order(of, step);
  });
}

void ShardCheckpoints::end() {
  if (cutters_.empty()) return;
  orders_.reset();
  for (const std::unique_ptr<ShardCutter>& cutter : cutters_) cutter->end();
}

void ShardCheckpoints::finish() {
  for (const std::unique_ptr<ShardCutter>& cutter : cutters_) cutter->finish();
}

}  // namespace syncopate::experiments
